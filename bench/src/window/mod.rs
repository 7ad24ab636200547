//! Windows of keys: this library compared with its peers, all in one run.

pub mod adapter;
mod aims;
pub mod allocator;
pub mod check;
pub mod endurance;
mod exact;
pub mod latency;
mod library;
pub mod many;
pub mod measure;
pub mod page;
#[cfg(feature = "peers")]
mod peers;
pub mod sparse;
pub mod stream;

use crate::figures::comparison;
use crate::figures::sheet::Sheet;
use adapter::{Candidate, Contract, candidates};
use clap::ValueEnum;
use lately::Structure;
use measure::{Effort, Speeds};
use std::error::Error;
use std::path::{Path, PathBuf};

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Experiment {
    /// Answers at every offset of a run, rates and slack
    Check,
    /// Space and time at a false positive rate of 0.1 %, for three numbers of keys
    Speed,
    /// Space and time at rates of 1e-6 and 1e-9
    Rates,
    /// The exact count window: no slack at all
    Exact,
    /// The slowest single arrival among 10^8
    Latency,
    /// 10^9 arrivals at irregular times against an exact answer
    Endurance,
    /// Few keys in a large window
    Sparse,
    /// Many filters, of which each arrival is one's
    Many,
}

impl Experiment {
    /// Those that compare all structures.
    pub const TABLE: [Self; 4] = [Self::Check, Self::Speed, Self::Rates, Self::Exact];

    /// Its table's file.
    pub const fn file(self) -> &'static str {
        match self {
            Self::Check => "check.csv",
            Self::Speed => "speed.csv",
            Self::Rates => "rates.csv",
            Self::Exact => "exact.csv",
            Self::Latency => "latency.csv",
            Self::Endurance => "endurance.csv",
            Self::Sparse => "sparse.csv",
            Self::Many => "many.csv",
        }
    }

    /// Its table's columns.
    pub const fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Check => &[
                "structure",
                "contract",
                "n",
                "fpr_asked",
                "offsets",
                "questions",
                "missed",
                "fpr",
                "in_slack",
                "past_slack",
                "fault",
            ],
            Self::Speed | Self::Rates | Self::Exact => &[
                "structure",
                "contract",
                "n",
                "fpr_asked",
                "bits",
                "peak_bits",
                "bound",
                "fpr",
                "fresh",
                "fresh_batch",
                "repeat",
                "repeat_batch",
                "mixed",
                "mixed_batch",
                "hit",
                "miss",
                "missed",
                "fault",
            ],
            Self::Latency => &[
                "structure",
                "n",
                "arrivals",
                "median",
                "p99",
                "p9999",
                "slowest",
                "over",
                "repeated",
            ],
            Self::Endurance => &[
                "law",
                "n",
                "fpr_asked",
                "arrivals",
                "in_a_window",
                "windows",
                "repeats",
                "missed",
                "strangers",
                "wrong",
                "given_up",
                "grown",
                "fill",
                "bits",
                "filter_seconds",
                "seconds",
            ],
            Self::Sparse => &["structure", "n", "arrivals", "gap", "mean", "slowest"],
            Self::Many => &["filters", "n", "bytes", "each", "ahead"],
        }
    }
}

/// What to measure, and how much of it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// A share of keys and operations.
    pub scale: f64,
    /// Only structures whose names contain one of these; all, where there is none.
    pub structures: Vec<String>,
    /// Where the tables go.
    pub folder: PathBuf,
}

impl Settings {
    fn scaled(&self, number: u64, least: u64) -> u64 {
        ((number as f64 * self.scale) as u64).max(least)
    }

    fn effort(&self, n: u64) -> Effort {
        let passes = if n > 5_000_000 { 2 } else { 3 };
        Effort { least: self.scaled(1 << 20, 2_000), passes }
    }

    fn chosen(&self) -> impl Iterator<Item = Candidate> {
        let wanted = |name: &str| {
            self.structures.is_empty()
                || self.structures.iter().any(|part| name.contains(part.as_str()))
        };
        candidates().into_iter().filter(move |candidate| wanted(&candidate.name))
    }
}

/// The rate of most tables.
const FPR: f64 = 1e-3;

/// Measures, into one table an experiment; those of others stay as they are.
///
/// # Errors
/// Those of the file system.
pub fn run(settings: &Settings, experiments: &[Experiment]) -> Result<(), Box<dyn Error>> {
    let facts = comparison::facts(&settings.folder, settings.scale)?;
    for &experiment in experiments {
        let mut sheet = Sheet::new(experiment.columns());
        let file = settings.folder.join(experiment.file());
        match experiment {
            Experiment::Check => check_all(settings, &mut sheet, &file)?,
            Experiment::Speed => {
                for n in [100_000, 1_000_000, 20_000_000] {
                    measure_all(settings, n, FPR, |_| true, &mut sheet, &file)?;
                }
            }
            Experiment::Rates => {
                for fpr in [1e-6, 1e-9] {
                    measure_all(settings, 10_000_000, fpr, |_| true, &mut sheet, &file)?;
                }
            }
            Experiment::Exact => {
                let exact = |contract| contract == Contract::Window(0.0);
                measure_all(settings, 1_000_000, 0.01, exact, &mut sheet, &file)?;
            }
            Experiment::Latency => latencies(settings, &mut sheet, &file)?,
            Experiment::Endurance => endure(settings, &mut sheet, &file)?,
            Experiment::Sparse => sparse_all(settings, &mut sheet, &file)?,
            Experiment::Many => many_all(settings, &mut sheet, &file)?,
        }
    }
    facts.write(&settings.folder)?;
    Ok(())
}

fn check_all(settings: &Settings, sheet: &mut Sheet, file: &Path) -> Result<(), Box<dyn Error>> {
    let n = settings.scaled(10_000, 500);
    for candidate in settings.chosen() {
        let (name, contract) = (&candidate.name, candidate.contract.name());
        match check::check(&candidate, n, FPR) {
            Ok(checked) => sheet.push(&[
                name,
                &contract,
                &n,
                &FPR,
                &checked.offsets,
                &checked.questions,
                &checked.missed,
                &format!("{:.3e}", checked.fpr),
                &format!("{:.3e}", checked.in_slack),
                &format!("{:.3e}", checked.past_slack),
                &checked.fault,
            ])?,
            Err(reason) => sheet.push(&[
                name,
                &contract,
                &n,
                &FPR,
                &"-",
                &"-",
                &"-",
                &"-",
                &"-",
                &"-",
                &clean(&reason),
            ])?,
        }
        eprintln!("{}", sheet.newest());
        sheet.write(file)?;
    }
    Ok(())
}

fn measure_all(
    settings: &Settings,
    n: u64,
    fpr: f64,
    wanted: impl Fn(Contract) -> bool,
    sheet: &mut Sheet,
    file: &Path,
) -> Result<(), Box<dyn Error>> {
    let n = settings.scaled(n, 2_000);
    for candidate in settings.chosen().filter(|candidate| wanted(candidate.contract)) {
        let (name, contract) = (&candidate.name, candidate.contract);
        let bound = format!("{:.2}", contract.bound(n, fpr));
        let measured = if is_huge(name, n) {
            Err("left out: cells of 128 bits need gigabytes here".to_owned())
        } else {
            measure::measure(&candidate, n, fpr, settings.effort(n))
        };
        match measured {
            Ok(speeds) => push_speeds(sheet, name, contract, (n, fpr, &bound), &speeds)?,
            Err(reason) => {
                let none = [&"-" as &dyn std::fmt::Display; 9];
                let mut cells: Vec<&dyn std::fmt::Display> = Vec::new();
                let (contract, reason) = (contract.name(), clean(&reason));
                cells.extend([name as &dyn std::fmt::Display, &contract, &n, &fpr, &"-", &"-"]);
                cells.push(&bound);
                cells.extend(none);
                cells.extend([&"-" as &dyn std::fmt::Display, &reason]);
                sheet.push(&cells)?;
            }
        }
        eprintln!("{}", sheet.newest());
        sheet.write(file)?;
    }
    Ok(())
}

fn push_speeds(
    sheet: &mut Sheet,
    name: &str,
    contract: Contract,
    (n, fpr, bound): (u64, f64, &str),
    speeds: &Speeds,
) -> Result<(), Box<dyn Error>> {
    let time = |time: f64| format!("{time:.2}");
    let maybe = |time: Option<f64>| time.map_or("-".to_owned(), |time| format!("{time:.2}"));
    let fault = if speeds.missed > 0 { "false negatives" } else { "" };
    sheet.push(&[
        &name,
        &contract.name(),
        &n,
        &fpr,
        &format!("{:.3}", speeds.bits),
        &format!("{:.3}", speeds.peak_bits),
        &bound,
        &format!("{:.3e}", speeds.fpr),
        &time(speeds.fresh),
        &maybe(speeds.fresh_batch),
        &time(speeds.repeat),
        &maybe(speeds.repeat_batch),
        &time(speeds.mixed),
        &maybe(speeds.mixed_batch),
        &time(speeds.hit),
        &time(speeds.miss),
        &speeds.missed,
        &fault,
    ])
}

/// Are its cells of 128 bits too large for a machine with other work?
fn is_huge(name: &str, n: u64) -> bool {
    name.starts_with("interval-bloom-plain") && n > 5_000_000
}

/// A reason as a cell.
fn clean(reason: &str) -> String {
    reason.replace([',', '\n'], ";")
}

/// Those whose slowest arrivals are looked for: ours, what one would write without it, and a peer that
/// scans.
const TIMED: [&str; 5] = [
    "aged-table",
    "aged-table by time",
    "dleft-window by time",
    "HashMap + VecDeque",
    "cuckoo-clock",
];

fn latencies(settings: &Settings, sheet: &mut Sheet, file: &Path) -> Result<(), Box<dyn Error>> {
    let n = settings.scaled(10_000_000, 2_000);
    let arrivals = settings.scaled(100_000_000, 20_000);
    let mut push = |name: &str, latency: &latency::Latency| -> Result<(), Box<dyn Error>> {
        sheet.push(&[
            &name,
            &n,
            &arrivals,
            &latency.median,
            &latency.p99,
            &latency.p9999,
            &latency.slowest,
            &latency.over,
            &latency.repeated.map_or("-".to_owned(), |time| time.to_string()),
        ])?;
        eprintln!("{}", sheet.newest());
        Ok(sheet.write(file)?)
    };
    push("nothing", &latency::control(n, arrivals)?)?;
    for candidate in settings.chosen().filter(|one| TIMED.contains(&one.name.as_str())) {
        push(&candidate.name, &latency::latency(&candidate, n, FPR, arrivals)?)?;
    }
    Ok(())
}

fn endure(settings: &Settings, sheet: &mut Sheet, file: &Path) -> Result<(), Box<dyn Error>> {
    let n = settings.scaled(10_000_000, 2_000);
    let arrivals = settings.scaled(1_000_000_000, 100_000);
    for law in endurance::Law::ALL {
        let outcome = endurance::run(law, n, FPR, arrivals)?;
        sheet.push(&[
            &law.name(),
            &n,
            &FPR,
            &outcome.arrivals,
            &outcome.in_a_window,
            &format!("{:.1}", outcome.windows),
            &outcome.repeats,
            &outcome.missed,
            &outcome.strangers,
            &outcome.wrong,
            &outcome.given_up,
            &outcome.grown,
            &format!("{:.3}", outcome.fill),
            &format!("{:.2}", outcome.bits),
            &format!("{:.1}", outcome.filter_seconds),
            &format!("{:.1}", outcome.seconds),
        ])?;
        eprintln!("{}", sheet.newest());
        sheet.write(file)?;
    }
    Ok(())
}

/// Structures that keep windows of time.
fn sparse_all(settings: &Settings, sheet: &mut Sheet, file: &Path) -> Result<(), Box<dyn Error>> {
    let n = settings.scaled(1_000_000, 2_000);
    let wanted = |name: &str| {
        settings.structures.is_empty() || settings.structures.iter().any(|part| name.contains(part))
    };
    let windows = Structure::ALL.iter().filter(|one| !one.is_unbounded() && wanted(one.name()));
    for &structure in windows {
        for gap in sparse::GAPS {
            // One that keeps no window of time is left out.
            let Ok(cost) = sparse::regular(structure, n, FPR, gap, 500) else { break };
            let mean = format!("{:.0}", cost.mean);
            sheet.push(&[&structure.name(), &n, &"every", &gap, &mean, &cost.slowest])?;
            eprintln!("{}", sheet.newest());
        }
        for pause in sparse::PAUSES {
            let Ok(time) = sparse::after_pause(structure, n, FPR, pause) else { break };
            sheet.push(&[&structure.name(), &n, &"after a full window", &pause, &time, &time])?;
            eprintln!("{}", sheet.newest());
        }
        sheet.write(file)?;
    }
    Ok(())
}

/// As many keys in all, in one filter or in many.
fn many_all(settings: &Settings, sheet: &mut Sheet, file: &Path) -> Result<(), Box<dyn Error>> {
    for (filters, n) in many::SIZES {
        let n = settings.scaled(n, 200);
        let cost = many::cost(filters, n, FPR, settings.effort(filters * n))?;
        let times = [cost.each, cost.ahead].map(|time| format!("{time:.2}"));
        sheet.push(&[&filters, &n, &cost.bytes, &times[0], &times[1]])?;
        eprintln!("{}", sheet.newest());
        sheet.write(file)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_run_fills_every_table_and_the_page() {
        let folder = std::env::temp_dir().join(format!("lately-window-{}", std::process::id()));
        let settings =
            Settings { scale: 1e-6, structures: Vec::new(), folder: folder.join("window") };
        run(&settings, Experiment::value_variants()).unwrap();
        page::draw(&settings.folder).unwrap();
        let page = std::fs::read_to_string(folder.join("window.md")).unwrap();
        for text in [
            "aged-table",
            "HashMap + VecDeque",
            "| goal |",
            "window/bits.svg",
            "## Few keys",
            "## Many",
        ] {
            assert!(page.contains(text), "{text}");
        }
        for experiment in Experiment::TABLE {
            let file = settings.folder.join(experiment.file());
            let sheet = Sheet::read(&file, experiment.columns()).unwrap();
            let own: Vec<String> =
                candidates().into_iter().filter(|one| one.own).map(|one| one.name).collect();
            for row in
                sheet.rows().filter(|row| own.iter().any(|name| name == row.text("structure")))
            {
                assert_eq!(row.text("fault"), "", "{row:?}");
            }
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
