//! Memory per key: what is resident after many keys, less what was before.

use super::load::{Keys, Load, Operation, Until, run};
use super::server::{Kind, Server, Start};
use super::speed::chosen;
use super::{Settings, show, verdict};
use std::error::Error;
use std::fmt::Write;
use std::time::Duration;

/// Keys that are added and dropped before anything is measured.
const WARM_UP: u64 = 12_500;
/// How long a server may take to give memory back.
const SETTLING: Duration = Duration::from_secs(1);

/// A load whose memory is measured.
struct Case {
    name: &'static str,
    operation: Operation,
    /// What the server is asked before.
    reserve: String,
    /// Keys of `SET` that `lately` is to expect.
    expected: u64,
}

fn cases(keys: u64) -> [Case; 8] {
    let set = |name, expected| Case {
        name,
        operation: Operation::Set,
        reserve: "PING".to_owned(),
        expected,
    };
    let add = |name, rate: &str, capacity: u64| Case {
        name,
        operation: Operation::Add,
        reserve: format!("BF.RESERVE f {rate} {capacity}"),
        expected: 1,
    };
    [
        set("`SET … NX EX 600` at 1e-9, planned", keys),
        set("`SET … NX EX 600` at 1e-9, a tenth expected", keys / 10 + 1),
        add("`BF.ADD` at 1e-2, planned", "0.01", keys),
        add("`BF.ADD` at 1e-3, planned", "0.001", keys),
        add("`BF.ADD` at 1e-6, planned", "0.000001", keys),
        add("`BF.ADD` at 1e-3, a 20th expected", "0.001", keys / 20 + 1),
        add("`BF.ADD` at 1e-6, a 20th expected", "0.000001", keys / 20 + 1),
        // RedisBloom's defaults.
        add("`BF.ADD` at 1e-2, 100 expected", "0.01", 100),
    ]
}

/// Bytes, and nanoseconds of processor time, per key.
fn measure(kind: Kind, case: &Case, settings: &Settings) -> Result<(f64, f64), Box<dyn Error>> {
    let start = Start { processors: "0", keys: case.expected, durability: "none" };
    let server = Server::start(kind, start, settings)?;
    let load = Load { operation: Operation::Add, keys: Keys::Fresh(0), pipeline: 250 };
    if kind != Kind::Redis {
        // Buffers of clients and the code of commands are no part of a filter, so they are there before.
        server.ask("BF.RESERVE f 0.01 50000")?;
        run(&server, load, Until::Commands(WARM_UP))?;
        server.ask("FLUSHALL")?;
        std::thread::sleep(SETTLING);
    }
    let before = server.resident()?;
    server.ask(&match kind {
        Kind::Lately => chosen(&case.reserve, settings),
        Kind::Redis | Kind::RedisBloom => case.reserve.clone(),
    })?;
    let load = Load { operation: case.operation, ..load };
    let outcome = run(&server, load, Until::Commands(settings.keys))?;
    let bytes = server.resident()?.saturating_sub(before);
    let fresh = outcome.positive as f64 / outcome.commands as f64;
    if fresh < 0.98 {
        return Err(format!("{}: {fresh} of fresh keys are called fresh", case.name).into());
    }
    Ok((bytes as f64 / outcome.commands as f64, outcome.processor_per_command()))
}

pub(super) fn table(settings: &Settings) -> Result<String, Box<dyn Error>> {
    let settings = &Settings { huge_pages: false, ..settings.clone() };
    let mut table = String::from(
        "| | bytes per key | peer | aim | CPU ns | peer |\n|---|---:|---:|---|---:|---:|\n",
    );
    // Redis is not told how many keys to expect.
    let mut redis = None;
    for case in cases(settings.keys) {
        let peer = case.operation.peer();
        if peer == Kind::RedisBloom && settings.bloom.is_none() {
            continue;
        }
        let (bytes, time) = measure(Kind::Lately, &case, settings)?;
        let (peer_bytes, peer_time) = match (peer, redis) {
            (Kind::Redis, Some(measured)) => measured,
            _ => measure(peer, &case, settings)?,
        };
        if peer == Kind::Redis {
            redis = Some((peer_bytes, peer_time));
        }
        let aim = if peer == Kind::Redis { 9.0 } else { peer_bytes };
        let verdict = verdict(bytes <= aim);
        let row = format!(
            "| {} | {bytes:.2} | {peer_bytes:.2} | ≤ {aim:.2}: {verdict} | {time:.0} | {peer_time:.0} |",
            case.name
        );
        show(&row);
        writeln!(table, "{row}")?;
    }
    Ok(table)
}
