//! Processor time, throughput and latency of two servers, by turns.

use super::load::{Keys, Load, Operation, Outcome, Until, run};
use super::server::{Kind, Server, Start};
use super::{Settings, show, spread, verdict};
use std::error::Error;
use std::fmt::Write;

const PIPELINES: [usize; 4] = [1, 16, 64, 256];
const START: Start = Start { processors: "0", keys: 10_000_000, durability: "none" };
/// Keys that are there before the load of what asks for known keys.
const KNOWN: u64 = 200_000;
/// How many times the peer's p99 ours may be, without pipelines.
const MOST_P99: f64 = 1.05;

/// A pair that is compared: a load, and how each server is made ready for it.
struct Pair {
    name: &'static str,
    operation: Operation,
    keys: Keys,
    lately: &'static str,
    peer: &'static str,
    /// The share of replies that must be positive.
    positive: f64,
    /// How many times our processor time the peer's is to be, for each length of pipelines.
    aims: [f64; 4],
}

const RESERVE: &str = "BF.RESERVE f 0.001 10000000";
/// The first key with a time to live makes the table of all that follow.
const TABLE: &str = "SET first 1 NX EX 600";

fn pairs() -> [Pair; 6] {
    let bloom = |name, operation, keys, positive| Pair {
        name,
        operation,
        keys,
        lately: RESERVE,
        peer: RESERVE,
        positive,
        aims: [1.0, 1.6, 3.0, 5.0],
    };
    let set = |name, keys, positive| Pair {
        lately: TABLE,
        peer: TABLE,
        aims: [1.0, 2.5, 7.0, 14.0],
        ..bloom(name, Operation::Set, keys, positive)
    };
    let half = Keys::HalfKnown(KNOWN);
    [
        bloom("`BF.ADD`, fresh keys", Operation::Add, Keys::Fresh(0), 1.0),
        bloom("`BF.ADD`, half known", Operation::Add, half, 0.5),
        bloom("`BF.EXISTS`, half known", Operation::Exists, Keys::Below(2 * KNOWN), 0.5),
        Pair {
            lately: "BF.RESERVE f 0.001 10000000 WINDOW 600",
            aims: [1.0, 1.3, 2.5, 4.5],
            ..bloom("`BF.ADD` with a window of 600 s, half known", Operation::Add, half, 0.5)
        },
        set("`SET … NX EX 600`, fresh keys", Keys::Fresh(0), 1.0),
        set("`SET … NX EX 600`, half known", half, 0.5),
    ]
}

impl Pair {
    /// A measurement of one server, which is empty before it.
    fn measure(
        &self,
        server: &Server,
        pipeline: usize,
        settings: &Settings,
    ) -> Result<Outcome, Box<dyn Error>> {
        server.ask("FLUSHALL")?;
        match server.kind() {
            Kind::Lately => server.ask(&chosen(self.lately, settings))?,
            Kind::Redis | Kind::RedisBloom => server.ask(self.peer)?,
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

    fn row(&self, place: usize, rounds: &[(Outcome, Outcome)]) -> String {
        let medians = |what: fn(&Outcome) -> f64| {
            let [_, ours, _] = spread(rounds.iter().map(|(ours, _)| what(ours)));
            let [_, peers, _] = spread(rounds.iter().map(|(_, peer)| what(peer)));
            (ours, peers)
        };
        let ratios = |of: fn(&Outcome, &Outcome) -> f64| {
            spread(rounds.iter().map(|(ours, peer)| of(ours, peer)))
        };
        let text =
            |[least, median, most]: [f64; 3]| format!("{least:.2} / **{median:.2}** / {most:.2}");
        let processor = medians(Outcome::processor_per_command);
        let throughput = medians(Outcome::throughput);
        let middle = medians(|outcome| outcome.quantile(0.5));
        let late = medians(|outcome| outcome.quantile(0.99));
        let less = ratios(|ours, peer| peer.processor_per_command() / ours.processor_per_command());
        let later = ratios(|ours, peer| ours.quantile(0.99) / peer.quantile(0.99));
        let (pipeline, aim) = (PIPELINES[place], self.aims[place]);
        let late_aim = match pipeline {
            1 => format!("≤ {MOST_P99}: {}", verdict(later[1] <= MOST_P99)),
            _ => String::new(),
        };
        format!(
            "| {} | {pipeline} | {:.0} | {:.0} | {} | ≥ {aim}: {} | {:.2} | {:.2} | {:.0} | {:.0} | {:.0} | {:.0} | {} | {late_aim} |",
            self.name,
            processor.0,
            processor.1,
            text(less),
            verdict(less[1] >= aim),
            throughput.0 / 1e6,
            throughput.1 / 1e6,
            middle.0,
            middle.1,
            late.0,
            late.1,
            text(later),
        )
    }
}

/// A `BF.RESERVE` that names the structure that was chosen, if it is of a filter that never forgets.
pub(super) fn chosen(command: &str, settings: &Settings) -> String {
    let structure = settings.structure.as_ref();
    let has_one = command.starts_with("BF.RESERVE") && !command.contains("WINDOW");
    let structure = structure.filter(|_| has_one);
    structure.map_or(command.into(), |name| format!("{command} STRUCTURE {name}"))
}

/// Two outcomes for each round, by turns, in turn.
fn rounds(
    count: usize,
    mut measure: impl FnMut(usize) -> Result<Outcome, Box<dyn Error>>,
) -> Result<Vec<(Outcome, Outcome)>, Box<dyn Error>> {
    let round = |round: usize| {
        let first = measure(round % 2)?;
        let second = measure(1 - round % 2)?;
        Ok(if round.is_multiple_of(2) { (first, second) } else { (second, first) })
    };
    (0..count).map(round).collect()
}

pub(super) fn table(settings: &Settings, only: &str) -> Result<String, Box<dyn Error>> {
    let mut table = String::from(
        "| | P | CPU ns | peer | CPU ratio | aim | M/s | peer | p50 µs | peer | p99 µs | peer | p99 ratio | aim |\n\
         |---|---:|---:|---:|---|---|---:|---:|---:|---:|---:|---:|---|---|\n",
    );
    for pair in pairs().iter().filter(|pair| pair.name.contains(only)) {
        let peer = pair.operation.peer();
        if peer == Kind::RedisBloom && settings.bloom.is_none() {
            continue;
        }
        let servers = [Kind::Lately, peer].map(|kind| Server::start(kind, START, settings));
        let [ours, peer] = servers;
        let servers = [ours?, peer?];
        for (place, pipeline) in PIPELINES.into_iter().enumerate() {
            let measure = |at: usize| pair.measure(&servers[at], pipeline, settings);
            let row = pair.row(place, &rounds(settings.rounds, measure)?);
            show(&row);
            writeln!(table, "{row}")?;
        }
    }
    Ok(table)
}

/// What `--durability everysec` costs, as a table.
pub(super) fn journal(settings: &Settings) -> Result<String, Box<dyn Error>> {
    let mut table = String::from(
        "| | P | CPU ns without a journal | with `everysec` | difference, least / median / greatest | aim |\n\
         |---|---:|---:|---:|---|---|\n",
    );
    let kinds = ["none", "everysec"]
        .map(|durability| Server::start(Kind::Lately, Start { durability, ..START }, settings));
    let [without, with] = kinds;
    let servers = [without?, with?];
    for pair in pairs().iter().filter(|pair| matches!(pair.keys, Keys::Fresh(_))) {
        for pipeline in [64, 256] {
            let measure = |at: usize| pair.measure(&servers[at], pipeline, settings);
            let rounds = rounds(settings.rounds, measure)?;
            let time = Outcome::processor_per_command;
            let [_, before, _] = spread(rounds.iter().map(|(without, _)| time(without)));
            let [_, after, _] = spread(rounds.iter().map(|(_, with)| time(with)));
            let [least, median, most] =
                spread(rounds.iter().map(|(without, with)| time(with) - time(without)));
            let verdict = verdict(median <= 40.0);
            let row = format!(
                "| {} | {pipeline} | {before:.0} | {after:.0} | {least:.0} / **{median:.0}** / {most:.0} | ≤ 40: {verdict} |",
                pair.name
            );
            show(&row);
            writeln!(table, "{row}")?;
        }
    }
    Ok(table)
}
