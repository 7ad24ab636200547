//! What is measured, and the tables of it.

use super::Settings;
use super::load::{Keys, Load, Operation, Outcome, Until, run};
use super::server::{Kind, Server, Start};
use std::cell::Cell;
use std::error::Error;
use std::fmt::Write;
use std::time::{Duration, Instant};

const PIPELINES: [usize; 4] = [1, 16, 64, 256];
const START: Start = Start { processors: "0", keys: 10_000_000, durability: "none" };
/// Keys that are there before the load of what asks for known keys.
const KNOWN: u64 = 200_000;

/// A pair that is compared: a load, and how each server is made ready for it.
struct Pair {
    name: &'static str,
    operation: Operation,
    keys: Keys,
    lately: &'static str,
    redis: &'static str,
    /// The share of replies that must be positive.
    positive: f64,
}

const RESERVE: &str = "BF.RESERVE f 0.001 10000000";

fn pairs() -> [Pair; 6] {
    let pair = |name, operation, keys, positive| Pair {
        name,
        operation,
        keys,
        positive,
        lately: RESERVE,
        redis: RESERVE,
    };
    let none = |pair| Pair { lately: "PING", redis: "PING", ..pair };
    [
        pair("`BF.ADD`, fresh keys", Operation::Add, Keys::Fresh(0), 1.0),
        pair("`BF.ADD`, half known", Operation::Add, Keys::HalfKnown(KNOWN), 0.5),
        pair("`BF.EXISTS`, half known", Operation::Exists, Keys::Below(2 * KNOWN), 0.5),
        Pair {
            lately: "BF.RESERVE f 0.001 10000000 WINDOW 600",
            ..pair(
                "`BF.ADD` with a window of 600 s, half known",
                Operation::Add,
                Keys::HalfKnown(KNOWN),
                0.5,
            )
        },
        none(pair("`SET … NX EX 600`, fresh keys", Operation::Set, Keys::Fresh(0), 1.0)),
        none(pair("`SET … NX EX 600`, half known", Operation::Set, Keys::HalfKnown(KNOWN), 0.5)),
    ]
}

impl Pair {
    /// A measurement of one server, which is empty before it.
    fn measure(
        &self,
        kind: Kind,
        server: &Server,
        pipeline: usize,
        settings: &Settings,
    ) -> Result<Outcome, Box<dyn Error>> {
        server.ask("FLUSHALL")?;
        match kind {
            Kind::Lately => server.ask(&chosen(self.lately, settings))?,
            Kind::Redis => server.ask(self.redis)?,
        };
        if !matches!(self.keys, Keys::Fresh(_)) {
            let operation =
                if self.operation == Operation::Exists { Operation::Add } else { self.operation };
            let known = Load { operation, keys: Keys::Fresh(0), pipeline: 50 };
            run(server, known, Until::Commands(KNOWN))?;
        }
        let load = Load { operation: self.operation, keys: self.keys, pipeline };
        let outcome = run(server, load, Until::Seconds(settings.seconds))?;
        let share = outcome.positive as f64 / outcome.commands as f64;
        match (share - self.positive).abs() < 0.03 {
            true => Ok(outcome),
            false => Err(format!("{}: {share} of the replies are positive", self.name).into()),
        }
    }
}

/// A `BF.RESERVE` that names the structure that was chosen.
fn chosen(command: &str, settings: &Settings) -> String {
    let structure = settings.structure.as_ref().filter(|_| command.starts_with("BF.RESERVE"));
    structure.map_or(command.into(), |name| format!("{command} STRUCTURE {name}"))
}

/// Least, median and greatest.
fn spread(values: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let at = |n: usize| values.get(n).copied().unwrap_or(f64::NAN);
    [at(0), at(values.len() / 2), at(values.len().saturating_sub(1))]
}

/// Processor time, throughput and latency, as a table. Only pairs whose names contain this.
///
/// # Errors
/// A server does not start, or answers wrongly.
pub fn speed(settings: &Settings, only: &str) -> Result<String, Box<dyn Error>> {
    run_on_processor_1()?;
    let mut table = String::from(
        "| | P | CPU ns | peer | CPU ratio | M/s | peer | p50 µs | peer | p99 µs | peer | p99 ratio |\n\
         |---|---:|---:|---:|---|---:|---:|---:|---:|---:|---:|---|\n",
    );
    let servers = [Kind::Lately, Kind::Redis]
        .map(|kind| Server::start(kind, START, settings).map(|server| (kind, server)));
    let [lately, redis] = servers;
    let servers = [lately?, redis?];
    for pair in pairs().iter().filter(|pair| pair.name.contains(only)) {
        if pair.operation != Operation::Set && settings.module.is_none() {
            continue;
        }
        for pipeline in PIPELINES {
            let mut rounds = Vec::new();
            for round in 0..settings.rounds {
                let measure = |at: usize| {
                    let (kind, server) = &servers[at];
                    pair.measure(*kind, server, pipeline, settings)
                };
                // By turns, in turn.
                let pair = match round % 2 {
                    0 => {
                        let ours = measure(0)?;
                        (ours, measure(1)?)
                    }
                    _ => {
                        let peer = measure(1)?;
                        (measure(0)?, peer)
                    }
                };
                rounds.push(pair);
            }
            let of = |what: fn(&Outcome) -> f64| {
                let [_, ours, _] = spread(rounds.iter().map(|(ours, _)| what(ours)));
                let [_, peers, _] = spread(rounds.iter().map(|(_, peer)| what(peer)));
                (ours, peers)
            };
            let ratio = |above: fn(&Outcome) -> f64, is_ours_above: bool| {
                let [least, median, most] = spread(rounds.iter().map(|(ours, peer)| {
                    let (ours, peer) = (above(ours), above(peer));
                    if is_ours_above { ours / peer } else { peer / ours }
                }));
                format!("{least:.2} / **{median:.2}** / {most:.2}")
            };
            let processor = of(Outcome::processor_per_command);
            let throughput = of(|outcome| outcome.throughput() / 1e6);
            let (middle, late) =
                (of(|outcome| outcome.quantile(0.5)), of(|outcome| outcome.quantile(0.99)));
            let row = format!(
                "| {} | {pipeline} | {:.0} | {:.0} | {} | {:.3} | {:.3} | {:.0} | {:.0} | {:.0} | {:.0} | {} |",
                pair.name,
                processor.0,
                processor.1,
                ratio(Outcome::processor_per_command, false),
                throughput.0,
                throughput.1,
                middle.0,
                middle.1,
                late.0,
                late.1,
                ratio(|outcome| outcome.quantile(0.99), true),
            );
            eprintln!("{row} load {}", load_average());
            writeln!(table, "{row}")?;
        }
    }
    Ok(table)
}

/// Memory per key, as a table.
///
/// # Errors
/// A server does not start, or answers wrongly.
pub fn memory(settings: &Settings) -> Result<String, Box<dyn Error>> {
    run_on_processor_1()?;
    let keys = settings.keys;
    let reserve = |rate: &str| format!("BF.RESERVE f {rate} {keys}");
    let set = |name: &str, expected| (name.to_owned(), Operation::Set, "PING".to_owned(), expected);
    let add = |name: &str, reserve| (name.to_owned(), Operation::Add, reserve, 1);
    let cases = [
        set("`SET … NX EX 600`, planned", keys),
        set("`SET … NX EX 600`, grown from a million", 1_000_000),
        add("`BF.ADD` at 1e-2, planned", reserve("0.01")),
        add("`BF.ADD` at 1e-3, planned", reserve("0.001")),
        add("`BF.ADD` at 1e-6, planned", reserve("0.000001")),
        add("`BF.ADD` at 1e-3, grown from 100,000", "BF.RESERVE f 0.001 100000".into()),
        add("`BF.ADD` at 1e-2, grown from 100", "PING".into()),
    ];
    let mut table =
        String::from("| | bytes per key | peer | CPU ns | peer |\n|---|---:|---:|---:|---:|\n");
    for (name, operation, reserve, expected) in cases {
        if operation == Operation::Add && settings.module.is_none() {
            continue;
        }
        let mut found = Vec::new();
        for kind in [Kind::Lately, Kind::Redis] {
            let server = Server::start(kind, Start { keys: expected, ..START }, settings)?;
            let before = server.resident()?;
            server.ask(&match kind {
                Kind::Lately => chosen(&reserve, settings),
                Kind::Redis => reserve.clone(),
            })?;
            let load = Load { operation, keys: Keys::Fresh(0), pipeline: 250 };
            let outcome = run(&server, load, Until::Commands(keys))?;
            let bytes = server.resident()?.saturating_sub(before);
            found.push((bytes as f64 / outcome.commands as f64, outcome.processor_per_command()));
        }
        let row = format!(
            "| {name} | {:.2} | {:.2} | {:.0} | {:.0} |",
            found[0].0, found[1].0, found[0].1, found[1].1
        );
        eprintln!("{row} load {}", load_average());
        writeln!(table, "{row}")?;
    }
    Ok(table)
}

/// Latency while many keys of `SET` are being saved, and while they are not, as a table.
///
/// # Errors
/// A server does not start, or answers wrongly.
pub fn saving(settings: &Settings) -> Result<String, Box<dyn Error>> {
    run_on_processor_1()?;
    let mut table = String::from(
        "| | p50 µs | while saving | p99 µs | while saving | p99 ratio | p99.9 µs | while saving | a save takes |\n\
         |---|---:|---:|---:|---:|---|---:|---:|---:|\n",
    );
    for (kind, name) in [(Kind::Lately, "`lately serve`"), (Kind::Redis, "Redis")] {
        let start = Start { processors: "0,1", keys: settings.keys, durability: "snapshot" };
        let server = Server::start(kind, start, settings)?;
        let load = Load { operation: Operation::Set, keys: Keys::Fresh(0), pipeline: 250 };
        run(&server, load, Until::Commands(settings.keys))?;
        // Keys that are there, so that all are the same work.
        let load =
            Load { operation: Operation::Set, keys: Keys::Below(settings.keys), pipeline: 1 };
        let mut rounds = Vec::new();
        for _ in 0..settings.rounds {
            let quiet = run(&server, load, Until::Seconds(settings.seconds))?;
            server.ask("BGSAVE")?;
            let looked = Cell::new(Instant::now());
            let has_ended = || {
                if looked.get().elapsed() < Duration::from_millis(20) {
                    return false;
                }
                looked.set(Instant::now());
                let info = server.ask("INFO persistence");
                info.is_ok_and(|info| info.contains("rdb_bgsave_in_progress:0"))
            };
            rounds.push((quiet, run(&server, load, Until::Says(&has_ended))?));
        }
        let of = |share: f64| {
            let [_, quiet, _] = spread(rounds.iter().map(|(quiet, _)| quiet.quantile(share)));
            let [_, saving, _] = spread(rounds.iter().map(|(_, saving)| saving.quantile(share)));
            (quiet, saving)
        };
        let [least, median, most] = spread(
            rounds.iter().map(|(quiet, saving)| saving.quantile(0.99) / quiet.quantile(0.99)),
        );
        let [_, seconds, _] = spread(rounds.iter().map(|(_, saving)| saving.seconds));
        let (middle, late, latest) = (of(0.5), of(0.99), of(0.999));
        let row = format!(
            "| {name} | {:.0} | {:.0} | {:.0} | {:.0} | {least:.2} / **{median:.2}** / {most:.2} | {:.0} | {:.0} | {seconds:.2} s |",
            middle.0, middle.1, late.0, late.1, latest.0, latest.1
        );
        eprintln!("{row} load {}", load_average());
        writeln!(table, "{row}")?;
    }
    Ok(table)
}

/// Keeps this thread off the processor that the server has.
fn run_on_processor_1() -> Result<(), Box<dyn Error>> {
    let mut processors = rustix::thread::CpuSet::new();
    processors.set(1);
    rustix::thread::sched_setaffinity(None, &processors)?;
    Ok(())
}

fn load_average() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').next().unwrap_or_default().to_owned()
}
