//! Latency while many keys of `SET` are being saved, and while they are not.

use super::load::{Keys, Load, Operation, Outcome, Until, run};
use super::server::{Kind, Server, Start};
use super::{Settings, show, spread, verdict};
use std::error::Error;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How many times the p99 without a save that with one may be.
const MOST: f64 = 1.5;

/// Looks after which a save that was never seen is over.
const LOOKS: u32 = 40;

/// A load without a save, and one while a save is under way.
fn round(server: &Server, load: Load, seconds: f64) -> Result<(Outcome, Outcome), Box<dyn Error>> {
    let (has_begun, has_saved) = (AtomicBool::new(false), AtomicBool::new(false));
    let is_over = AtomicBool::new(false);
    // Asks all the time, so that both loads bear it.
    let watch = || {
        let mut looks = 0;
        while !is_over.load(Ordering::Relaxed) {
            // A save begins a moment after it is asked for, and a small one ends between two looks.
            let was_asked = has_begun.load(Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(5));
            let info = server.ask("INFO persistence").unwrap_or_default();
            if was_asked {
                looks += if info.contains("rdb_bgsave_in_progress:1") { LOOKS } else { 1 };
            }
            let idle = info.contains("rdb_bgsave_in_progress:0");
            has_saved.store(looks >= LOOKS && idle, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(watch);
        let both = || {
            let quiet = run(server, load, Until::Seconds(seconds))?;
            server.ask("BGSAVE")?;
            has_begun.store(true, Ordering::Relaxed);
            let has_ended = || has_saved.load(Ordering::Relaxed);
            Ok((quiet, run(server, load, Until::Says(&has_ended))?))
        };
        let both = both();
        is_over.store(true, Ordering::Relaxed);
        both
    })
}

pub(super) fn table(settings: &Settings) -> Result<String, Box<dyn Error>> {
    let mut table = String::from(
        "| | p50 µs | while saving | p99 µs | while saving | p99 ratio | aim | p99.9 µs | while saving | a save takes |\n\
         |---|---:|---:|---:|---:|---|---|---:|---:|---:|\n",
    );
    for (kind, name) in [(Kind::Lately, "`lately serve`"), (Kind::Redis, "Redis")] {
        let start = Start { processors: "0,1", keys: settings.keys, durability: "snapshot" };
        let server = Server::start(kind, start, settings)?;
        let load = Load { operation: Operation::Set, keys: Keys::Fresh(0), pipeline: 250 };
        run(&server, load, Until::Commands(settings.keys))?;
        // Keys that are there, so that all are the same work.
        let load = Load { keys: Keys::Below(settings.keys), pipeline: 1, ..load };
        let rounds = (0..settings.rounds)
            .map(|_| round(&server, load, settings.seconds))
            .collect::<Result<Vec<_>, _>>()?;
        let medians = |share: f64| {
            let [_, quiet, _] = spread(rounds.iter().map(|(quiet, _)| quiet.quantile(share)));
            let [_, saving, _] = spread(rounds.iter().map(|(_, saving)| saving.quantile(share)));
            (quiet, saving)
        };
        let [least, median, most] = spread(
            rounds.iter().map(|(quiet, saving)| saving.quantile(0.99) / quiet.quantile(0.99)),
        );
        let aim = match kind {
            Kind::Lately => format!("≤ {MOST}: {}", verdict(median <= MOST)),
            Kind::Redis | Kind::RedisBloom => String::new(),
        };
        let [_, seconds, _] = spread(rounds.iter().map(|(_, saving)| saving.seconds));
        let (middle, late, latest) = (medians(0.5), medians(0.99), medians(0.999));
        let row = format!(
            "| {name} | {:.0} | {:.0} | {:.0} | {:.0} | {least:.2} / **{median:.2}** / {most:.2} | {aim} | {:.0} | {:.0} | {seconds:.2} s |",
            middle.0, middle.1, late.0, late.1, latest.0, latest.1
        );
        show(&row);
        writeln!(table, "{row}")?;
    }
    Ok(table)
}
