//! `lately edge simulate`: a day of a city in memory.

use super::host::ResetName;
use crate::{Failure, many};
use clap::{Args, ValueEnum};
use lately_edge::filter::FilterSize;
use lately_edge::rules::{Mode, Rules};
use lately_edge::simulate::trace::Trace;
use lately_edge::simulate::{
    City, Identity, Ledger, Resets, Sending, Setting, generate, run as simulate,
};
use lately_stream::quantity;
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Simulate a day of a city: what is sent, saved and lost
///
/// Coordinator, hosts, workers and a requester exchange messages in memory. Prints CSV with one row for
/// each combination of flags that have several values (`--n 50,100`).
#[derive(Args)]
#[command(after_help = "\
Examples:
  lately edge simulate --generate --window 1m,30m,2h
  lately edge simulate locations.csv --mode reset,ageing --deltas

The trace is a CSV with the columns user, ts (seconds since 1970), lat and lon, and perhaps tz and
accuracy_m. All days of the trace are folded into one, with one position fix per minute.")]
pub struct Arguments {
    /// The trace
    #[arg(required_unless_present = "generate", conflicts_with = "generate")]
    trace: Option<PathBuf>,

    /// Generate a city with the numbers of the paper: 67 people, 7,724 days, 4.7 million fixes
    #[arg(long)]
    generate: bool,

    /// People in the generated city
    #[arg(long, requires = "generate", value_name = "COUNT", value_parser = quantity::count)]
    people: Option<u64>,

    /// Days of all people together
    #[arg(long, requires = "generate", value_name = "COUNT", value_parser = quantity::count)]
    days: Option<u64>,

    /// Skip position fixes of a trace that are less accurate than this, in metres
    #[arg(long, default_value_t = 100.0, value_name = "METRES")]
    accuracy: f64,

    /// Elements that the filter of a cell is sized for
    #[arg(long, default_value = "100", value_delimiter = ',')]
    n: Vec<u32>,

    /// False positive rate that the filter of a cell is sized for
    #[arg(long, default_value = "0.001", value_delimiter = ',', value_parser = quantity::share)]
    p: Vec<f64>,

    /// How long a reading is valid, in whole minutes
    #[arg(long, default_value = "30m", value_delimiter = ',', value_parser = quantity::duration)]
    window: Vec<u64>,

    /// Readings of one element that a worker sends before it stops
    #[arg(long, default_value = "1", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..))]
    m_worker: Vec<u8>,

    /// Readings of one element wanted per window
    #[arg(long, default_value = "1", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..))]
    m_mec: Vec<u16>,

    /// Whether filters are emptied at the end of each window, or age
    #[arg(long, value_enum, default_value = "reset", value_delimiter = ',')]
    mode: Vec<ModeName>,

    /// What a reset is sent to, and so how many messages it is: each worker, a topic of the square kilometre, or a topic
    /// of the host's whole square
    #[arg(long, value_enum, default_value = "cell")]
    reset_by: ResetName,

    /// Empty a filter also when this share of its bits is set
    #[arg(long, value_name = "SHARE", value_parser = quantity::share)]
    reset_fill: Option<f64>,

    /// Send the empty filter after a reset to this many workers of a cell only, those of whom most readings were kept
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..), conflicts_with = "reset_by")]
    preferred: Option<u16>,

    /// Judge losses and freshness by this period instead of the window, in whole minutes
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration)]
    judged_by: Option<u64>,

    /// Resolution of an ageing filter: steps per window
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u8).range(1..=120))]
    steps: u8,

    /// Send deltas of filters instead of whole filters
    #[arg(long)]
    deltas: bool,

    /// Send the names of elements instead of filter bits where that is not longer
    #[arg(long)]
    names: bool,

    /// Hosts check exactly whether a reading that their filter rejects is redundant
    #[arg(long)]
    second_look: bool,

    /// Share of suppressed readings that are sent anyway
    #[arg(long, default_value = "0", value_name = "SHARE", value_parser = quantity::share)]
    refresh: f64,

    /// A worker is a day of a person, or all days of a person in a cell
    #[arg(long, value_enum, default_value = "day")]
    worker: WorkerName,

    /// Send every reading, without filters
    #[arg(long)]
    send_all: bool,

    /// Seed of the generated city and of the simulation
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ModeName {
    Reset,
    Ageing,
}

#[derive(Clone, Copy, ValueEnum)]
enum WorkerName {
    Day,
    Person,
}

const COLUMNS: &str = "mode,deltas,names,n,p,bits,hashes,window_min,m_worker,m_mec,readings,unasked,\
suppressed,suppressed_wrongly,suppressed_stale,sent,refreshed,kept,recovered,redundant,lost_at_host,duplicates,refused,\
announce,assign,submit,update,reset,reset_deliveries,messages,bytes,saving,sent_share,redundant_share,\
elements,elements_lost_per_mille,readings_lost_per_mille,expected_lost,coverage,fresh_share,peak_per_second";

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let settings = arguments.settings()?;
    let trace = arguments.trace()?;
    if trace.too_short + trace.inaccurate > 0 {
        eprintln!(
            "lately: left out: {} without a whole minute between their first and last fix, {} less accurate than --accuracy",
            many(trace.too_short as u64, "day of a user")
                .replace("day of a users", "days of a user"),
            many(trace.inaccurate as u64, "fix").replace("fixs", "fixes"),
        );
    }
    let mut out = stdout().lock();
    writeln!(out, "{COLUMNS}")?;
    for (row, setting) in in_parallel(&trace, &settings).into_iter().zip(&settings) {
        let Some(ledger) = row else { continue };
        writeln!(out, "{}", line(setting, &ledger))?;
    }
    Ok(())
}

/// Runs all settings, as many at a time as there are processors.
fn in_parallel(trace: &Trace, settings: &[(Setting, u32, f64)]) -> Vec<Option<Ledger>> {
    let rows = Mutex::new(vec![None; settings.len()]);
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads.min(settings.len()) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some((setting, ..)) = settings.get(at) else { break };
                    let ledger = simulate(trace, setting);
                    if let Ok(mut rows) = rows.lock()
                        && let Some(row) = rows.get_mut(at)
                    {
                        *row = Some(ledger);
                    }
                }
            });
        }
    });
    rows.into_inner().unwrap_or_default()
}

fn line((setting, n, p): &(Setting, u32, f64), ledger: &Ledger) -> String {
    use lately_edge::message::Kind;
    let rules = setting.rules;
    let mode = if rules.mode == Mode::Reset { "reset" } else { "ageing" };
    let counts = [
        ledger.readings,
        ledger.unasked,
        ledger.suppressed,
        ledger.suppressed_wrongly,
        ledger.suppressed_stale,
        ledger.sent,
        ledger.refreshed,
        ledger.kept,
        ledger.recovered,
        ledger.redundant,
        ledger.lost_at_host,
        ledger.duplicates,
        ledger.refused,
        ledger.of(Kind::Announce).count,
        ledger.of(Kind::Assign).count,
        ledger.of(Kind::Submit).count,
        ledger.of(Kind::Update).count,
        ledger.of(Kind::Reset).count,
        ledger.reset_deliveries,
        ledger.cost().count,
        ledger.cost().bytes,
    ];
    let counts: String = counts.iter().map(|count| format!(",{count}")).collect();
    format!(
        "{mode},{},{},{n},{p},{},{},{},{},{}{counts},{:.5},{:.5},{:.5},{},{:.4},{:.4},{:.2},{:.5},{:.5},{}",
        setting.deltas,
        setting.names,
        rules.size.bits,
        rules.size.hashes,
        rules.validity / 60_000,
        rules.m_worker,
        setting.m_mec,
        ledger.saving(),
        ledger.sent_share(),
        ledger.redundant_share(),
        ledger.elements().0,
        ledger.lost_per_mille(),
        ledger.readings_lost_per_mille(),
        ledger.expected_lost,
        ledger.coverage(),
        ledger.fresh as f64 / ledger.readings.max(1) as f64,
        ledger.peak,
    )
}

impl Arguments {
    fn trace(&self) -> Result<Trace, Failure> {
        let Some(path) = &self.trace else {
            let city = City { seed: self.seed, ..City::default() };
            let few = |count: Option<u64>, usual: u32| match count {
                None => Ok(usual),
                Some(count) => u32::try_from(count)
                    .ok()
                    .filter(|count| (1..=1_000_000).contains(count))
                    .ok_or_else(|| Failure::Usage("--people and --days: 1 to 1,000,000".into())),
            };
            let (people, days) = (few(self.people, city.people)?, few(self.days, city.days)?);
            return Ok(generate(&City { people, days, ..city }));
        };
        let trouble = |error: &dyn std::fmt::Display| {
            Failure::Trouble(format!("{}: {error}", path.display()))
        };
        let text = std::fs::read_to_string(path).map_err(|error| trouble(&error))?;
        Trace::from_csv(&text, self.accuracy).map_err(|error| trouble(&error))
    }

    /// All combinations, each with its n and p.
    fn settings(&self) -> Result<Vec<(Setting, u32, f64)>, Failure> {
        let mut settings = Vec::new();
        for &mode in &self.mode {
            for (&n, &p) in self.n.iter().flat_map(|n| self.p.iter().map(move |p| (n, p))) {
                let size = FilterSize::for_elements(n, p).ok_or_else(|| {
                    Failure::Usage(format!(
                        "--n {n} --p {p}: no filter of 1 to 65,536 bits; choose fewer elements or a higher rate"
                    ))
                })?;
                for &window in &self.window {
                    self.with(mode, size, window, &mut |setting| settings.push((setting, n, p)))?;
                }
            }
        }
        Ok(settings)
    }

    fn with(
        &self,
        mode: ModeName,
        size: FilterSize,
        window: u64,
        each: &mut dyn FnMut(Setting),
    ) -> Result<(), Failure> {
        const MINUTE: u64 = 60_000_000_000;
        for (flag, minutes) in [("--window", Some(window)), ("--judged-by", self.judged_by)] {
            if minutes.is_some_and(|minutes| minutes == 0 || !minutes.is_multiple_of(MINUTE)) {
                return Err(Failure::Usage(format!("{flag} must be whole minutes, such as 30m")));
            }
        }
        let mode = match mode {
            ModeName::Reset => Mode::Reset,
            ModeName::Ageing => Mode::Ageing { steps: self.steps },
        };
        let refresh = (self.refresh * 65_536.0).min(65_535.0) as u16;
        let identity = match self.worker {
            WorkerName::Day => Identity::Walk,
            WorkerName::Person => Identity::Person,
        };
        for &m_worker in &self.m_worker {
            let rules = Rules { mode, validity: window / 1_000_000, size, m_worker, refresh };
            rules.check().map_err(|error| Failure::Usage(format!("--window: {error}")))?;
            for &m_mec in &self.m_mec {
                each(Setting {
                    rules,
                    m_mec,
                    deltas: self.deltas,
                    names: self.names,
                    second_look: self.second_look,
                    resets: match self.reset_by {
                        ResetName::Worker => Resets::Workers,
                        ResetName::Cell => Resets::Cells,
                        ResetName::Square => Resets::Squares,
                    },
                    reset_fill: self.reset_fill,
                    preferred: self.preferred,
                    judged_by: self.judged_by.map(|period| period / 1_000_000),
                    identity,
                    sending: if self.send_all { Sending::All } else { Sending::Decide },
                    seed: self.seed,
                    ..Setting::default()
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn arguments(line: &str) -> Arguments {
        let words = std::iter::once("simulate").chain(line.split_whitespace());
        Line::try_parse_from(words).map(|line| line.arguments).unwrap()
    }

    #[test]
    fn a_row_for_each_combination() {
        let arguments = arguments(
            "--generate --people 2 --days 4 --n 50,100 --p 0.1 --window 10m,1h --mode reset,ageing --m-mec 1,3",
        );
        let settings = arguments.settings().ok().unwrap();
        assert_eq!(settings.len(), 16);
        let trace = arguments.trace().ok().unwrap();
        assert_eq!(trace.walks.len(), 4);
        for (row, setting) in in_parallel(&trace, &settings).into_iter().zip(&settings) {
            let ledger = row.unwrap();
            assert!(ledger.adds_up());
            let line = line(setting, &ledger);
            assert_eq!(line.split(',').count(), COLUMNS.split(',').count(), "{line}");
        }
    }

    #[test]
    fn wrong_usage_says_which_flag() {
        for (line, flag) in [
            ("--generate --window 90s", "--window"),
            ("--generate --window 0s", "--window"),
            ("--generate --window 400d", "--window"),
            ("--generate --n 0", "--n 0"),
            ("--generate --n 1000000", "--p 0.001"),
        ] {
            match arguments(line).settings() {
                Err(Failure::Usage(message)) => assert!(message.contains(flag), "{message}"),
                _ => panic!("{line} is taken"),
            }
        }
        assert!(matches!(arguments("/nowhere").trace(), Err(Failure::Trouble(_))));
        let none = arguments("--generate --days 0");
        assert!(matches!(none.trace(), Err(Failure::Usage(_))));
    }
}
