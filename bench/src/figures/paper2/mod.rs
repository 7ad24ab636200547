//! Figures 4–14 of the time-decaying cuckoo paper (INFOCOM 2013): its two-table structure against
//! the Timing Bloom filter, on numbers by Zipf's law and on real traces.
//!
//! [`run`] measures and writes tables; [`page::draw`] makes plots and the results page from the
//! tables alone.

pub mod claims;
pub mod measure;
pub mod page;
pub mod paper_list;
pub mod streams;
pub mod structures;

use super::facts::Facts;
use super::sheet::Sheet;
use crate::workload::traces;
use lately::plan::{bloom_hashes, range_emptiness_bound, time_decaying_bound};
use measure::{ERRORS, Look, Outcome, Times, judge, time};
use std::error::Error;
use std::path::Path;
use streams::Stream;
use structures::{Build, Setup, Structure, WindowUnderTest, planned_bits};

/// What is varied while the rest is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Experiment {
    /// Figures 4–7: 4,000 to 10,000 counters at n = 1,000, for two laws.
    Space,
    /// Figures 8–10: n from 1,000 to 10,000 at 20,000 counters.
    Window,
    /// Figures 9 and 10 with the paper's list of whole keys.
    List,
    /// Figures 11 and 12: 1 to 10 hashes or bits of a signature at 10,000 counters.
    Signature,
    /// Figure 13: three real traces at n = 10,000.
    Traces,
    /// Figure 14: how wrong the time of the last sighting is.
    Ages,
}

impl Experiment {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Space, Self::Window, Self::List, Self::Signature, Self::Traces, Self::Ages];

    /// The file of its table.
    pub fn file(self) -> &'static str {
        match self {
            Self::Space => "figure-04-07.csv",
            Self::Window => "figure-08-10.csv",
            Self::List => "figure-09-10-list.csv",
            Self::Signature => "figure-11-12.csv",
            Self::Traces => "figure-13.csv",
            Self::Ages => "figure-14.csv",
        }
    }

    /// The columns of its table.
    pub fn columns(self) -> &'static [&'static str] {
        if self == Self::Ages { &AGE_COLUMNS } else { &COLUMNS }
    }
}

const COLUMNS: [&str; 17] = [
    "stream",
    "structure",
    "k",
    "window",
    "counters",
    "positions",
    "bits",
    "asked",
    "negatives",
    "false_positives",
    "fpr",
    "longest_overflow",
    "query_ns",
    "update_ns",
    "planned_bits",
    "bound",
    "decaying_bound",
];

const AGE_COLUMNS: [&str; 8] =
    ["stream", "structure", "k", "counters", "ages", "error_above", "errors", "share"];

/// Arrivals in the window on the real traces.
pub const TRACE_WINDOW: u64 = 10_000;

/// Counters that our few users load as the paper's load its 20,000.
pub const FEW_COUNTERS: u64 = 2_000;

/// How large a run is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// 1 is the full run; streams and repetitions shrink, structures and windows do not.
    pub scale: f64,
}

impl Size {
    /// Arrivals of a synthetic stream.
    fn steps(self, experiment: Experiment) -> usize {
        // Ten bits of a signature leave three false positives in ten million.
        let full = if experiment == Experiment::Signature { 1e7 } else { 4e6 };
        (full * self.scale) as usize / self.seeds(experiment) as usize
    }

    /// Runs of a stream, each with other hash functions: which keys look alike is chance, and the
    /// same in all of a run.
    fn seeds(self, experiment: Experiment) -> u64 {
        let full = match experiment {
            Experiment::Space | Experiment::Window | Experiment::List => 8.0,
            Experiment::Signature => 20.0,
            Experiment::Traces | Experiment::Ages => 64.0,
        };
        (full * self.scale).ceil() as u64
    }
}

/// Measures and writes tables into a folder; `data` is where the traces are.
///
/// # Errors
/// When a file cannot be written, or a structure has a false negative.
pub fn run(
    size: Size,
    experiments: &[Experiment],
    data: &Path,
    folder: &Path,
    build: Build,
) -> Result<(), Box<dyn Error>> {
    std::fs::create_dir_all(folder)?;
    let mut facts = Facts::read(folder).unwrap_or_default();
    facts.note("scale", &size.scale);
    facts.note("processor", &crate::machine::processor());
    for &experiment in experiments {
        let (streams, missing) = streams(experiment, size, data);
        facts.note(format!("{experiment:?} missing"), &missing);
        let mut sheet = Sheet::new(experiment.columns());
        for stream in &streams {
            note(&mut facts, size, experiment, stream);
            for setup in setups(experiment, stream) {
                measure(experiment, size, stream, setup, build, &mut sheet)?;
            }
        }
        sheet.write(&folder.join(experiment.file()))?;
    }
    facts.write(folder)?;
    Ok(())
}

fn note(facts: &mut Facts, size: Size, experiment: Experiment, stream: &Stream) {
    let name = |what: &str| format!("{experiment:?} {} {what}", stream.name);
    facts.note(name("arrivals"), &stream.steps.len());
    facts.note(name("runs"), &size.seeds(experiment));
    facts.note(name("keys"), &stream.keys);
    let window = if stream.name.starts_with('z') { 1_000 } else { TRACE_WINDOW };
    facts.note(name("live"), &stream.live(window as usize));
}

/// The streams of an experiment, and why some are left out; empty when none is.
fn streams(experiment: Experiment, size: Size, data: &Path) -> (Vec<Stream>, String) {
    let steps = size.steps(experiment);
    let real = match experiment {
        Experiment::Space => {
            return (vec![Stream::zipf(0, steps), Stream::zipf(1, steps)], "".into());
        }
        Experiment::Window | Experiment::List | Experiment::Signature => {
            return (vec![Stream::zipf(0, steps)], "".into());
        }
        Experiment::Traces => vec![
            traces::requests(data).map(|requests| Stream::caching(&requests)),
            traces::requests(data).map(|requests| Stream::attack(&requests, TRACE_WINDOW as usize)),
            traces::messages(data).map(|messages| Stream::wall_posts(&messages)),
        ],
        Experiment::Ages => {
            vec![traces::messages(data).map(|messages| Stream::wall_posts(&messages))]
        }
    };
    let (mut streams, mut missing) = (Vec::new(), Vec::new());
    for stream in real {
        match stream {
            Ok(stream) => streams.push(stream),
            Err(error) => missing.push(error.to_string().replace(',', ";")),
        }
    }
    missing.dedup();
    for reason in &missing {
        eprintln!("left out: {reason}");
    }
    (streams, missing.join("; "))
}

fn setups(experiment: Experiment, stream: &Stream) -> Vec<Setup> {
    use Structure::{BestTiming, Cuckoo, Timing};
    let at = |structure: Structure, counters: u64, window| Setup {
        structure,
        positions: structure.positions(counters),
        counters,
        window,
    };
    match experiment {
        Experiment::Space => (4_000..=10_000)
            .step_by(1_000)
            .flat_map(|counters| {
                let best = bloom_hashes(counters, stream.live(1_000) as f64);
                [Timing(4), BestTiming(best), Cuckoo(0), Cuckoo(4)]
                    .map(|structure| at(structure, counters, 1_000))
            })
            .collect(),
        Experiment::Window => (1_000..=10_000)
            .step_by(1_000)
            .flat_map(|window| {
                [Timing(4), Cuckoo(0), Cuckoo(4)].map(|structure| at(structure, 20_000, window))
            })
            .collect(),
        Experiment::List => (1_000..=10_000)
            .step_by(1_000)
            .flat_map(|window| {
                [Structure::Listed(0), Structure::Listed(4)]
                    .map(|structure| at(structure, 20_000, window))
            })
            .collect(),
        Experiment::Signature => (1..=10)
            .flat_map(|k| [Timing(k), Cuckoo(k)].map(|structure| at(structure, 10_000, 1_000)))
            .collect(),
        Experiment::Traces => [8_000, 12_000, 20_000, 30_000, 40_000]
            .into_iter()
            .flat_map(|counters| {
                [Timing(4), Cuckoo(0), Cuckoo(4)]
                    .map(|structure| at(structure, counters, TRACE_WINDOW))
            })
            .collect(),
        Experiment::Ages => [20_000, FEW_COUNTERS]
            .into_iter()
            .flat_map(|counters| {
                [Timing(4), Cuckoo(0)].map(|structure| at(structure, counters, TRACE_WINDOW))
            })
            .collect(),
    }
}

fn measure(
    experiment: Experiment,
    size: Size,
    stream: &Stream,
    setup: Setup,
    build: Build,
    sheet: &mut Sheet,
) -> Result<(), Box<dyn Error>> {
    let look = match experiment {
        Experiment::Traces => Look::All,
        Experiment::Ages => Look::Ages,
        Experiment::Space | Experiment::Window | Experiment::List | Experiment::Signature => {
            Look::Filled
        }
    };
    let mut outcome = Outcome::default();
    let mut bits = 0;
    for seed in 0..size.seeds(experiment) {
        let mut structure = build(setup)?;
        outcome.add(&judge(&mut *structure, stream, &stream.digests(seed), setup.window, look));
        bits = structure.bits();
    }
    let name = setup.structure.name();
    if outcome.false_negatives > 0 {
        return Err(format!("{name} missed {} keys: {setup:?}", outcome.false_negatives).into());
    }
    if experiment == Experiment::Ages {
        push_ages(stream, setup, &outcome, sheet)?;
    } else {
        let times = match look {
            // The list's times are not the paper's.
            _ if experiment == Experiment::List => Times::default(),
            Look::Filled => times(build(setup)?, stream, setup, size),
            Look::All | Look::Ages => Times::default(),
        };
        push(stream, setup, bits, &outcome, times, sheet)?;
    }
    eprintln!("{experiment:?}: {}", sheet.newest());
    Ok(())
}

fn times(
    mut structure: Box<dyn WindowUnderTest>,
    stream: &Stream,
    setup: Setup,
    size: Size,
) -> Times {
    let blocks = (400.0 * size.scale).ceil() as usize;
    time(&mut *structure, stream, &stream.digests(0), setup.window, blocks)
}

fn push(
    stream: &Stream,
    setup: Setup,
    bits: u64,
    outcome: &Outcome,
    times: Times,
    sheet: &mut Sheet,
) -> Result<(), Box<dyn Error>> {
    let Setup { structure, positions, counters, window } = setup;
    sheet.push(&[
        &stream.name,
        &structure.name(),
        &structure.k(),
        &window,
        &counters,
        &positions,
        &bits,
        &outcome.asked,
        &outcome.negatives,
        &outcome.false_positives,
        &format_args!("{:.4e}", outcome.fpr()),
        &outcome.longest_overflow,
        &format_args!("{:.1}", times.query),
        &format_args!("{:.1}", times.update),
        &planned_bits(window, outcome.fpr()).unwrap_or(0),
        &format_args!("{:.0}", bound(window, outcome.fpr())),
        &format_args!("{:.0}", time_decaying_bound(window, outcome.fpr(), stream.keys as f64)),
    ])
}

/// Bits that tell the last `n` arrivals and their order apart at this rate, less `O(n)`.
fn bound(window: u64, fpr: f64) -> f64 {
    range_emptiness_bound(window, fpr, 1)
}

fn push_ages(
    stream: &Stream,
    setup: Setup,
    outcome: &Outcome,
    sheet: &mut Sheet,
) -> Result<(), Box<dyn Error>> {
    let Setup { structure, counters, .. } = setup;
    for (bound, errors) in ERRORS.into_iter().zip(outcome.age_errors) {
        let share = errors as f64 / outcome.ages.max(1) as f64;
        sheet.push(&[
            &stream.name,
            &structure.name(),
            &structure.k(),
            &counters,
            &outcome.ages,
            &bound,
            &errors,
            &format_args!("{share:.4e}"),
        ])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_written_and_drawn() {
        let folder = std::env::temp_dir().join(format!("lately-paper2-{}", std::process::id()));
        let figures = folder.join("paper2");
        let data = folder.join("nowhere");
        run(Size { scale: 0.0006 }, &Experiment::ALL, &data, &figures, structures::build).unwrap();
        page::draw(&figures).unwrap();
        let text = std::fs::read_to_string(folder.join("paper2.md")).unwrap();
        for number in 4..=12 {
            assert!(text.contains(&format!("## Figure {number}:")), "{number}");
        }
        for number in [13, 14] {
            assert!(text.contains(&format!("## Figure {number}:")), "{number}");
        }
        assert!(text.contains("nasa_19950801.tsv"), "says what is missing");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
