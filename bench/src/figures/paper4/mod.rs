//! Figures 3–6 and Table 2 of Wang et al. (2019) on range emptiness over sliding windows: their
//! structure A against a time-decaying Bloom filter that is asked for every number of an interval.
//!
//! [`run`] measures and writes tables; [`page::draw`] makes plots and the results page from the
//! tables alone.

pub mod claims;
pub mod measure;
pub mod page;
pub mod structures;
pub mod updates;

use super::facts::Facts;
use super::sheet::Sheet;
use measure::{Law, Outcome, Trial};
use std::error::Error;
use std::path::Path;
use structures::{Build, Setup, Structure};

/// What is varied while the rest is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Experiment {
    /// Figures 3 and 5: intervals of 1 to 10,000 numbers, n = 1,000.
    Length,
    /// Figures 4 and 6: n from 100 to 100,000, intervals of 1,000 numbers.
    Window,
    /// Table 2's last row, and Theorem 4, at the same windows.
    Updates,
}

impl Experiment {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Length, Self::Window, Self::Updates];

    /// The file of its table.
    pub fn file(self) -> &'static str {
        match self {
            Self::Length => "figure-3-5.csv",
            Self::Window => "figure-4-6.csv",
            Self::Updates => "updates.csv",
        }
    }

    /// Windows and lengths of intervals.
    fn points(self) -> Vec<(u64, u64)> {
        match self {
            Self::Length => [1, 10, 100, 1_000, 10_000].map(|length| (1_000, length)).into(),
            Self::Window | Self::Updates => WINDOWS.map(|window| (window, 1_000)).into(),
        }
    }
}

/// Windows of Figures 4 and 6.
const WINDOWS: [u64; 4] = [100, 1_000, 10_000, 100_000];

/// The columns of each table but that of the updates.
pub const COLUMNS: [&str; 13] = [
    "data",
    "structure",
    "window",
    "length",
    "bits",
    "lower_bound",
    "intervals",
    "empty",
    "false_positives",
    "fpr",
    "fpr_error",
    "query_ns",
    "insert_ns",
];

/// How large a run is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// 1 is the full run; the stream and the questions shrink, windows and intervals do not.
    pub scale: f64,
}

/// Single numbers asked for at each point, at most: the paper's 10^7 intervals of 10^4 numbers
/// would be 10^11.
pub const PROBES: f64 = 3e8;

/// Arrivals, and intervals where they are short.
const FULL: f64 = 1e7;

impl Size {
    fn numbers(self) -> usize {
        (FULL * self.scale) as usize
    }

    fn intervals(self, length: u64) -> usize {
        (FULL.min(PROBES / length as f64) * self.scale).ceil() as usize
    }
}

/// Measures and writes tables into a folder.
///
/// # Errors
/// When a file cannot be written, or a structure has a false negative.
pub fn run(
    size: Size,
    experiments: &[Experiment],
    folder: &Path,
    build: Build,
) -> Result<(), Box<dyn Error>> {
    std::fs::create_dir_all(folder)?;
    let mut facts = Facts::read(folder).unwrap_or_default();
    facts.note("scale", &size.scale);
    facts.note("processor", &crate::machine::processor());
    facts.note("arrivals", &size.numbers());
    for &experiment in experiments {
        if experiment == Experiment::Updates {
            let sheet = updates::measure(&WINDOWS, size.numbers() / 10)?;
            sheet.write(&folder.join(experiment.file()))?;
            continue;
        }
        let mut sheet = Sheet::new(&COLUMNS);
        for law in Law::ALL {
            let numbers = law.numbers(size.numbers());
            for (window, length) in experiment.points() {
                let trial = Trial::new(&numbers, window, length, size.intervals(length));
                for structure in Structure::ALL {
                    let setup = Setup { structure, window, length };
                    let mut structure = build(setup)?;
                    let outcome = trial.run(&mut *structure);
                    push(law, setup, structure.bits(), &outcome, &mut sheet)?;
                    eprintln!("{experiment:?}: {}", sheet.newest());
                }
            }
        }
        sheet.write(&folder.join(experiment.file()))?;
    }
    facts.write(folder)?;
    Ok(())
}

fn push(
    law: Law,
    setup: Setup,
    bits: u64,
    outcome: &Outcome,
    sheet: &mut Sheet,
) -> Result<(), Box<dyn Error>> {
    let name = setup.structure.name();
    if outcome.false_negatives > 0 {
        let missed = outcome.false_negatives;
        return Err(format!("{name} missed {missed} intervals: {setup:?}").into());
    }
    let Outcome { intervals, empty, false_positives, query, insert, .. } = *outcome;
    sheet.push(&[
        &law.name(),
        &name,
        &setup.window,
        &setup.length,
        &bits,
        &format_args!("{:.0}", setup.lower_bound()),
        &intervals,
        &empty,
        &false_positives,
        &format_args!("{:.4e}", outcome.fpr()),
        &format_args!("{:.1e}", outcome.fpr_error()),
        &format_args!("{query:.1}"),
        &format_args!("{insert:.1}"),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_written_and_drawn() {
        let folder = std::env::temp_dir().join(format!("lately-paper4-{}", std::process::id()));
        let figures = folder.join("paper4");
        run(Size { scale: 0.001 }, &Experiment::ALL, &figures, structures::build).unwrap();
        page::draw(&figures).unwrap();
        let text = std::fs::read_to_string(folder.join("paper4.md")).unwrap();
        for heading in ["Figure 3", "Figure 4", "Figure 5", "Figure 6", "Table 2"] {
            assert!(text.contains(&format!("## {heading}:")), "{heading}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// The filter errs as often as it was sized for.
    #[test]
    fn the_baseline_keeps_its_rate() {
        let numbers = Law::Uniform.numbers(30_000);
        let setup = Setup { structure: Structure::KeyByKey, window: 1_000, length: 100 };
        let trial = Trial::new(&numbers, setup.window, setup.length, 20_000);
        let outcome = trial.run(&mut *structures::build(setup).unwrap());
        assert_eq!(outcome.false_negatives, 0);
        assert!(outcome.fpr() > 0.001 && outcome.fpr() < 0.02, "{outcome:?}");
    }

    #[test]
    fn the_bounds_of_the_specification() {
        let setup = Setup { structure: Structure::Dleft, window: 1_000, length: 1_000 };
        assert_eq!(setup.lower_bound().round(), 26_575.0);
        assert_eq!(setup.paper_bits().round(), 42_881.0);
        assert_eq!(setup.hashes(), 17);
        assert_eq!(setup.whole_bits(), 44_352);
        let share = |window, length| {
            let setup = Setup { window, length, ..setup };
            (1_000.0 * setup.paper_bits() / setup.timing_formula()).round()
        };
        assert_eq!([share(1_000, 10_000), share(10_000, 1_000)], [150.0, 132.0]);
    }
}
