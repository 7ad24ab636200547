//! Windows asked for intervals: this library compared with the structures of paper 4, an exact map and a
//! static range filter, all in one run.

pub mod adapter;
mod aims;
pub mod check;
pub mod measure;
pub mod page;
pub mod real;
pub mod workload;

use crate::figures::comparison;
use crate::figures::sheet::Sheet;
use adapter::{BY_TIME, Candidate, Contract, DLEFT, EXACT, OURS, TDBF};
use clap::ValueEnum;
use measure::{Effort, Outcome, Place};
use std::error::Error;
use std::path::{Path, PathBuf};
use workload::Workload;

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Experiment {
    /// Answers at every offset of a run
    Check,
    /// Against the structures of paper 4, for n = 10^3 to 10^6 and L = 1 to 10^4
    Paper,
    /// Space, time and rates for n = 10^5, 10^6 and 2·10^7, L = 1, 10^3 and 10^9, on every workload
    Speed,
    /// Real files
    Real,
}

impl Experiment {
    /// Its table's file.
    pub const fn file(self) -> &'static str {
        match self {
            Self::Check => "check.csv",
            Self::Paper => "paper.csv",
            Self::Speed => "speed.csv",
            Self::Real => "real.csv",
        }
    }

    /// Its table's columns.
    pub const fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Check => &[
                "structure",
                "workload",
                "n",
                "length",
                "offsets",
                "hits",
                "missed",
                "empty",
                "wrong",
                "fault",
            ],
            Self::Paper | Self::Speed => &[
                "structure",
                "contract",
                "workload",
                "n",
                "length",
                "bits",
                "peak_bits",
                "bound",
                "empty_ns",
                "hit_ns",
                "insert_ns",
                "insert_p9999_ns",
                "questions",
                "false_positives",
                "fpr",
                "hits",
                "missed",
                "fault",
            ],
            Self::Real => &[
                "what",
                "window",
                "records",
                "keys",
                "questions",
                "occupied",
                "missed",
                "empty",
                "wrong",
                "allowed",
                "memory",
                "query_ns",
            ],
        }
    }
}

/// What to measure, and how much of it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// A share of keys and questions.
    pub scale: f64,
    /// Where real files are.
    pub data: PathBuf,
    /// Where the tables go.
    pub folder: PathBuf,
}

impl Settings {
    fn scaled(&self, number: u64, least: u64) -> u64 {
        ((number as f64 * self.scale) as u64).max(least)
    }

    fn effort(&self, n: u64) -> Effort {
        Effort {
            questions: self.scaled(1 << 19, 4_000),
            numbers: self.scaled(100_000_000, 3_000_000),
            turns: if n > 5_000_000 { 4 } else { 8 },
        }
    }
}

/// Measures, into one table an experiment; those of others stay as they are.
///
/// # Errors
/// Those of the file system, and a structure that denies a key of its window.
pub fn run(settings: &Settings, experiments: &[Experiment]) -> Result<(), Box<dyn Error>> {
    let facts = comparison::facts(&settings.folder, settings.scale)?;
    for &experiment in experiments {
        let mut sheet = Sheet::new(experiment.columns());
        let file = settings.folder.join(experiment.file());
        match experiment {
            Experiment::Check => check_all(settings, &mut sheet, &file)?,
            Experiment::Paper => paper(settings, &mut sheet, &file)?,
            Experiment::Speed => speed(settings, &mut sheet, &file)?,
            Experiment::Real => real_files(settings, &mut sheet)?,
        }
        sheet.write(&file)?;
    }
    facts.write(&settings.folder)?;
    Ok(())
}

fn check_all(settings: &Settings, sheet: &mut Sheet, file: &Path) -> Result<(), Box<dyn Error>> {
    let n = settings.scaled(2_000, 200);
    let lengths = |candidate: &Candidate| {
        if candidate.by_number { vec![1, 100] } else { vec![1, 100, 1_000_000] }
    };
    for candidate in [OURS, BY_TIME, DLEFT, TDBF, EXACT] {
        for workload in Workload::ALL {
            for length in lengths(&candidate) {
                let checked = check::check(&candidate, workload, n, length)?;
                let fault = if checked.missed > 0 {
                    "false negatives"
                } else if checked.too_many() {
                    "errs more often than it promises"
                } else {
                    ""
                };
                sheet.push(&[
                    &candidate.name,
                    &workload.name(),
                    &n,
                    &length,
                    &checked.offsets,
                    &checked.hits,
                    &checked.missed,
                    &checked.empty,
                    &checked.wrong,
                    &fault,
                ])?;
                eprintln!("{}", sheet.newest());
            }
        }
        sheet.write(file)?;
    }
    Ok(())
}

fn paper(settings: &Settings, sheet: &mut Sheet, file: &Path) -> Result<(), Box<dyn Error>> {
    for n in [1_000, 10_000, 100_000, 1_000_000] {
        let n = settings.scaled(n, 500);
        for length in [1, 10, 100, 1_000, 10_000] {
            for candidate in [OURS, DLEFT, TDBF] {
                let place = Place { workload: Workload::Uniform, n, length };
                push(&candidate, place, settings.effort(n), sheet)?;
            }
            sheet.write(file)?;
        }
    }
    Ok(())
}

fn speed(settings: &Settings, sheet: &mut Sheet, file: &Path) -> Result<(), Box<dyn Error>> {
    for full in [100_000, 1_000_000, 20_000_000] {
        let n = settings.scaled(full, 500);
        for length in [1, 1_000, 1_000_000_000] {
            for workload in Workload::ALL {
                for candidate in adapter::candidates() {
                    // What goes through an interval one by one is in the other table.
                    let exact = candidate.contract == Contract::Exact;
                    let told =
                        workload == Workload::Uniform && (full < 5_000_000 || length == 1_000);
                    let by_time = candidate.name == BY_TIME.name;
                    let once = workload == Workload::Uniform && length == 1_000;
                    if candidate.by_number || exact && !told || by_time && !once {
                        continue;
                    }
                    push(&candidate, Place { workload, n, length }, settings.effort(n), sheet)?;
                }
                sheet.write(file)?;
            }
        }
    }
    Ok(())
}

fn push(
    candidate: &Candidate,
    place: Place,
    effort: Effort,
    sheet: &mut Sheet,
) -> Result<(), Box<dyn Error>> {
    let Place { workload, n, length } = place;
    let (contract, workload) = (candidate.contract, workload.name());
    let bound = match contract {
        Contract::Exact => "-".to_owned(),
        contract => format!("{:.2}", contract.bound(n, length)),
    };
    let (outcome, fault) = match measure::measure(candidate, place, effort) {
        Ok(outcome) if outcome.missed > 0 => (outcome, "false negatives".to_owned()),
        Ok(outcome) => (outcome, String::new()),
        Err(reason) => (Outcome::default(), reason.replace([',', '\n'], ";")),
    };
    let name = contract.name().replace(',', ";");
    sheet.push(&[
        &candidate.name,
        &name,
        &workload,
        &n,
        &length,
        &format!("{:.3}", outcome.bits),
        &format!("{:.3}", outcome.peak_bits),
        &bound,
        &format!("{:.1}", outcome.empty),
        &format!("{:.1}", outcome.hit),
        &format!("{:.1}", outcome.insert),
        &outcome.insert_late,
        &outcome.questions,
        &outcome.false_positives,
        &format!("{:.3e}", outcome.fpr()),
        &outcome.hits,
        &outcome.missed,
        &fault,
    ])?;
    eprintln!("{}", sheet.newest());
    Ok(())
}

fn real_files(settings: &Settings, sheet: &mut Sheet) -> Result<(), Box<dyn Error>> {
    for row in real::run(&settings.data)? {
        sheet.push(&[
            &row.what.replace(',', ";"),
            &row.span.name(),
            &row.records,
            &row.keys,
            &row.questions,
            &row.occupied,
            &row.missed,
            &row.empty,
            &row.wrong,
            &format!("{:.2}", row.allowed),
            &row.memory,
            &format!("{:.0}", row.nanoseconds),
        ])?;
        eprintln!("{}", sheet.newest());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::adapter::FPR;
    use super::*;

    /// Every table is filled and the page is drawn; no structure denies a key, none errs more often
    /// than it promises.
    #[test]
    fn a_small_run_is_right() {
        let folder = std::env::temp_dir().join(format!("lately-range-{}", std::process::id()));
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
        let settings = Settings { scale: 1e-6, data, folder: folder.join("range") };
        run(&settings, Experiment::value_variants()).unwrap();
        page::draw(&settings.folder).unwrap();
        let page = std::fs::read_to_string(folder.join("range.md")).unwrap();
        for text in ["range-window", "d-left", "BTreeMap", "| goal |", "range/bits-length.svg"] {
            assert!(page.contains(text), "{text}");
        }
        for experiment in [Experiment::Check, Experiment::Paper, Experiment::Speed] {
            let file = settings.folder.join(experiment.file());
            let sheet = Sheet::read(&file, experiment.columns()).unwrap();
            for row in sheet.rows() {
                assert_eq!((row.text("missed"), row.text("fault")), ("0", ""), "{row:?}");
            }
        }
        for experiment in [Experiment::Paper, Experiment::Speed] {
            let sheet = Sheet::read(&settings.folder.join(experiment.file()), experiment.columns())
                .unwrap();
            for row in sheet.rows() {
                let (asked, wrong) = (row.number("questions"), row.number("false_positives"));
                let expected = asked * FPR;
                assert!(wrong <= expected + 6.0 * expected.sqrt() + 2.0, "{row:?}");
                assert!(row.number("hits") > 0.0, "{row:?}");
            }
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
