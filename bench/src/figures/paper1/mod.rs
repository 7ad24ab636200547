//! Figures 14–23 of Lee & Chung (2011), "An approximate duplicate elimination in RFID data
//! streams": classic, Time and Time Interval Bloom filters on simulated reads.
//!
//! [`run`] measures and writes tables; [`page::draw`] makes plots and the results page from the
//! tables alone, so that a word can be changed without measuring again.

pub mod claims;
pub mod data;
pub mod measure;
pub mod page;
pub mod table;
pub mod theorem;

use super::facts::Facts;
pub use data::Kind;
use data::{Data, SPAN};
use measure::{Keys, Setup, Structure, Widths};
use std::error::Error;
use std::path::Path;
use table::{Row, Sheet};

/// What is varied while the rest is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Experiment {
    /// The rates of Figures 14 and 15, at a quarter of their sizes: to be run alone on the machine, several times.
    Rates,
    /// 1 to 6·10^7 reads at 4·10^7 bits.
    Reads,
    /// 1 to 8·10^7 bits at 4·10^7 reads.
    Space,
    /// As [`Experiment::Space`], with cells as wide as the paper's.
    WholeTimes,
    /// 1 to 12 hashes at 3·10^7 bits and reads.
    Hashes,
}

impl Experiment {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Rates, Self::Reads, Self::Space, Self::WholeTimes, Self::Hashes];

    /// The files of its tables.
    pub fn files(self) -> [&'static str; 2] {
        Kind::ALL.map(|kind| self.file(kind))
    }

    /// The file of its table with this data.
    pub fn file(self, kind: Kind) -> &'static str {
        Sheet::file(self, kind)
    }
}

/// How large a run is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// 1 is the paper's; reads, tags and bits shrink alike, so that error rates stay.
    pub scale: f64,
    /// Each time is the best of this many runs; the worst is noted as well.
    pub repeats: u32,
}

/// The share of reads, tags and bits of [`Experiment::Rates`]: with all of them a run takes too long to have the machine
/// alone.
pub const QUARTER: f64 = 0.25;

impl Size {
    fn of(self, experiment: Experiment) -> Self {
        let share = if experiment == Experiment::Rates { QUARTER } else { 1.0 };
        Self { scale: self.scale * share, ..self }
    }

    fn reads(self, full: f64) -> usize {
        (full * self.scale) as usize
    }

    fn bits(self, full: f64) -> u64 {
        (full * self.scale) as u64
    }
}

/// Measures everything and writes the tables into a folder.
///
/// # Errors
/// When a file cannot be written, or a filter lets a duplicate pass.
pub fn run(
    size: Size,
    experiments: &[Experiment],
    kinds: &[Kind],
    folder: &Path,
) -> Result<(), Box<dyn Error>> {
    std::fs::create_dir_all(folder)?;
    let mut facts = Facts::read(folder).unwrap_or_default();
    facts.note("scale", &size.scale);
    for experiment in experiments {
        facts.note(format!("{experiment:?} runs"), &size.repeats);
    }
    facts.note("processor", &crate::machine::processor());
    for &kind in kinds {
        for quarter in [true, false] {
            let experiments: Vec<Experiment> = experiments
                .iter()
                .copied()
                .filter(|experiment| (*experiment == Experiment::Rates) == quarter)
                .collect();
            let Some(&first) = experiments.first() else { continue };
            let size = size.of(first);
            let reads = size.reads(6e7);
            eprintln!("{}: {reads} reads", kind.name());
            let data = Data::generate(kind.model(size.scale), reads)?;
            if !quarter {
                note(&mut facts, kind, &data, reads);
            }
            for experiment in experiments {
                let rows = measure(experiment, kind, size, &data)?;
                Sheet { experiment, kind, rows }.write(folder)?;
            }
        }
    }
    facts.write(folder)?;
    Ok(())
}

/// What is true of the data.
fn note(facts: &mut Facts, kind: Kind, data: &Data, reads: usize) {
    let (live, busiest) = data.live(reads);
    let duration = data.ticks.last().map_or(0, |tick| tick.0 / 1_000);
    for (fact, value) in [
        ("reads", reads),
        ("distinct tags", data.distinct(reads)),
        ("non-duplicates", data.fresh(reads)),
        ("mean distinct tags within the window", live),
        ("most distinct tags within the window", busiest),
        ("seconds simulated", duration as usize),
    ] {
        facts.note(format!("{} {fact}", kind.name()), &value);
    }
}

/// One filter to be measured.
struct Point {
    structure: Structure,
    reads: usize,
    bits: u64,
    widths: Widths,
    /// `None` for the formula's.
    hashes: Option<u32>,
    repeats: u32,
}

/// What is built at a point. Points with equal filters share a pass, up to the most reads of any.
#[derive(Clone, Copy)]
struct Filter {
    structure: Structure,
    setup: Setup,
    width: u64,
    formula: u32,
    /// What the plain Bloom filter's formula says of this filter's cells.
    plain: u32,
}

impl Filter {
    fn is_same(&self, other: &Self) -> bool {
        (self.structure, self.setup) == (other.structure, other.setup)
    }
}

impl Point {
    fn filter(&self, data: &Data, live: usize) -> Filter {
        let Self { structure, reads, bits, widths, .. } = *self;
        let width = structure.width(widths);
        let cells = (bits / width).max(1);
        let keys = Keys { distinct: data.distinct(reads), live };
        let formula = structure.hashes(cells, keys);
        let hashes = self.hashes.unwrap_or(formula);
        let setup = Setup { cells, hashes, live: live as u64 };
        let plain = Structure::Bloom.hashes(cells, keys);
        Filter { structure, setup, width, formula, plain }
    }
}

fn points(experiment: Experiment, size: Size) -> Vec<Point> {
    let timed = |reads, bits, widths, structure| Point {
        structure,
        reads: size.reads(reads),
        bits: size.bits(bits),
        widths,
        hashes: None,
        repeats: size.repeats,
    };
    let all =
        |reads, bits, widths| Structure::ALL.map(|structure| timed(reads, bits, widths, structure));
    let spaces = [1e7, 2e7, 3e7, 4e7, 6e7, 8e7].into_iter();
    match experiment {
        Experiment::Rates | Experiment::Reads => {
            let sizes = [1e7, 2e7, 3e7, 4e7, 5e7, 6e7].into_iter();
            sizes.flat_map(|reads| all(reads, 4e7, Widths::Library)).collect()
        }
        Experiment::Space => spaces.flat_map(|bits| all(4e7, bits, Widths::Library)).collect(),
        Experiment::WholeTimes => spaces
            .flat_map(|bits| all(4e7, bits, Widths::WholeTimes))
            .map(|point| Point { repeats: 1, ..point })
            .collect(),
        Experiment::Hashes => (1..=12)
            .flat_map(|hashes| {
                all(3e7, 3e7, Widths::Library).map(|point| Point {
                    hashes: Some(hashes),
                    repeats: 1,
                    ..point
                })
            })
            .collect(),
    }
}

fn measure(
    experiment: Experiment,
    kind: Kind,
    size: Size,
    data: &Data,
) -> Result<Vec<Row>, Box<dyn Error>> {
    let live = data.live(data.digests.len()).0.max(1);
    let points = points(experiment, size);
    let filters: Vec<Filter> = points.iter().map(|point| point.filter(data, live)).collect();
    let mut rows = vec![None; points.len()];
    for at in 0..points.len() {
        if rows[at].is_some() {
            continue;
        }
        // The same filter over more reads: they rise from point to point.
        let same: Vec<usize> =
            (at..points.len()).filter(|&other| filters[other].is_same(&filters[at])).collect();
        let stops: Vec<usize> = same.iter().map(|&at| points[at].reads).collect();
        let Point { structure, bits, repeats, .. } = points[at];
        let outcomes = structure.run(filters[at].setup, &stops, data, repeats)?;
        for (at, outcome) in same.into_iter().zip(outcomes) {
            if outcome.passed > 0 {
                let name = structure.name();
                return Err(format!("{name} let {} duplicates pass", outcome.passed).into());
            }
            let Filter { setup, width, formula, plain, .. } = filters[at];
            let reads = points[at].reads;
            let row = Row {
                structure,
                reads,
                bits,
                width,
                cells: setup.cells,
                hashes: setup.hashes,
                formula,
                plain,
                fresh: data.fresh(reads),
                dropped: outcome.dropped,
                seconds: outcome.time.as_secs_f64(),
                slowest: outcome.slowest.as_secs_f64(),
            };
            eprintln!("{} {experiment:?}: {row}", kind.name());
            rows[at] = Some(row);
        }
    }
    Ok(rows.into_iter().flatten().collect())
}

/// τ in seconds.
pub const SPAN_SECONDS: u64 = SPAN / 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    const TINY: Size = Size { scale: 0.004, repeats: 1 };

    fn errors(rows: &[Row], structure: Structure) -> Vec<f64> {
        rows.iter().filter(|row| row.structure == structure).map(Row::error).collect()
    }

    /// The shapes of Figures 16, 17 and 20–23 on a small copy of the data. That no duplicate passes
    /// is checked by `measure` itself.
    #[test]
    fn shapes_of_the_errors() {
        for kind in Kind::ALL {
            let data = Data::generate(kind.model(TINY.scale), TINY.reads(6e7)).unwrap();
            let rows = |experiment| measure(experiment, kind, TINY, &data).unwrap();

            let space = rows(Experiment::Space);
            for structure in [Structure::Time, Structure::Interval] {
                let errors = errors(&space, structure);
                assert!(errors[0] > 20.0 * errors[5], "{structure:?}: {errors:?}");
            }
            let bloom = errors(&space, Structure::Bloom);
            assert!(bloom.iter().all(|&error| error > 0.4), "{bloom:?}");

            let reads = rows(Experiment::Reads);
            let (bloom, time) = (errors(&reads, Structure::Bloom), errors(&reads, Structure::Time));
            assert!(bloom.iter().zip(&time).all(|(bloom, time)| *bloom > 100.0 * time));

            let hashes = rows(Experiment::Hashes);
            for structure in [Structure::Time, Structure::Interval] {
                let errors = errors(&hashes, structure);
                let least = errors.iter().copied().reduce(f64::min).unwrap();
                assert!(errors[0] > 20.0 * least, "{structure:?}: {errors:?}");
            }
        }
    }

    /// Theorem 2: with the same cells and hashes a time interval filter drops no more.
    #[test]
    fn intervals_err_no_more_than_times() {
        let data = Data::generate(Kind::Multiple.model(0.004), 100_000).unwrap();
        for hashes in 1..=8 {
            let setup = Setup { cells: 2_000, hashes, live: 600 };
            let dropped = |structure: Structure| {
                structure.run(setup, &[100_000], &data, 1).unwrap()[0].dropped
            };
            let (time, interval) = (dropped(Structure::Time), dropped(Structure::Interval));
            assert!(interval <= time && time > 0, "k = {hashes}: {interval} > {time}");
        }
    }

    #[test]
    fn every_table_is_written_and_drawn() {
        let folder = std::env::temp_dir().join(format!("lately-paper1-{}", std::process::id()));
        let figures = folder.join("paper1");
        run(Size { scale: 0.0005, repeats: 2 }, &Experiment::ALL, &Kind::ALL, &figures).unwrap();
        page::draw(&figures).unwrap();
        let text = std::fs::read_to_string(folder.join("paper1.md")).unwrap();
        for number in 14..=23 {
            assert!(figures.join(format!("figure-{number}.svg")).exists());
            assert!(text.contains(&format!("## Figure {number}")), "{number}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
