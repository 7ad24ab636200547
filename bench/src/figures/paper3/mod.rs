//! Figures 6–9 and Table 2 of the Accommodative Bloom filter's paper (2018): sets that grow, in
//! Dynamic, Scalable and Accommodative Bloom filters.
//!
//! [`run`] measures and writes tables; [`page::draw`] makes plots and the results page from the
//! tables alone.

pub mod claims;
pub mod keys;
pub mod measure;
pub mod page;
pub mod paper_slices;
pub mod structures;

use super::facts::Facts;
use super::sheet::Sheet;
use keys::{KEYS, Keys};
use measure::{Outcome, fill};
use std::error::Error;
use std::path::Path;
use structures::{Build, Setup, Structure};

/// What is varied while the rest is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Experiment {
    /// Figure 6: 4 to 12 hashes, over the keys of the log.
    Hashes,
    /// Figures 7 and 8 and Table 2: 500 to 400,468 keys.
    Keys,
    /// Figures 7 and 8 for the SBF of the paper's experiment, which adds slices of 1,600 bits.
    Slices,
    /// Figure 9: 1 to 10 bits per key in each bucket of an ABF.
    PartHashes,
}

impl Experiment {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Hashes, Self::Keys, Self::Slices, Self::PartHashes];

    /// The file of its table.
    pub fn file(self) -> &'static str {
        match self {
            Self::Hashes => "figure-06.csv",
            Self::Keys => "figure-07-08.csv",
            Self::Slices => "figure-07-08-slices.csv",
            Self::PartHashes => "figure-09.csv",
        }
    }

    /// Numbers of keys at which it looks.
    fn sizes(self, size: Size) -> Vec<usize> {
        let full: &[usize] = match self {
            Self::Hashes => &[LOGGED],
            Self::Keys | Self::Slices => {
                &[500, 1_000, 2_000, 5_000, 10_000, LOGGED, 50_000, 100_000, 200_000, KEYS]
            }
            Self::PartHashes => &[2_000],
        };
        let scaled = |&keys: &usize| ((keys as f64 * size.scale) as usize).max(1);
        full.iter().map(scaled).collect()
    }

    /// The structures with their parameters, each with its place on the horizontal axis.
    fn setups(self) -> Vec<(u32, Setup)> {
        match self {
            Self::Hashes => [4, 6, 8, 10, 12]
                .into_iter()
                .flat_map(|hashes| {
                    Structure::ALL.map(|structure| (hashes, Setup::with_hashes(structure, hashes)))
                })
                .collect(),
            Self::Keys => Structure::ALL.map(|structure| (4, Setup::standard(structure))).into(),
            Self::Slices => vec![(4, Setup::standard(Structure::SlicedScalable))],
            Self::PartHashes => (1..=10)
                .flat_map(|part_hashes| {
                    let accommodative = &Structure::ALL[2..];
                    let setup = move |&structure| {
                        (part_hashes, Setup { part_hashes, ..Setup::standard(structure) })
                    };
                    accommodative.iter().map(setup)
                })
                .collect(),
        }
    }
}

/// Distinct keys of the log.
pub const LOGGED: usize = 24_597;

/// The columns of each table.
pub const COLUMNS: [&str; 13] = [
    "structure",
    "k",
    "keys",
    "bits",
    "bits_a_key",
    "parts",
    "asked",
    "false_positives",
    "fpr",
    "hit_ns",
    "miss_ns",
    "query_ns",
    "insert_ns",
];

/// How large a run is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// 1 is the paper's; the numbers of keys shrink, the filters do not.
    pub scale: f64,
}

/// Absent keys asked for at every size.
const ABSENT: f64 = 200_000.0;

/// Measures and writes tables into a folder; `data` is where the log is.
///
/// # Errors
/// When a file cannot be written, or a structure loses a key.
pub fn run(
    size: Size,
    experiments: &[Experiment],
    data: &Path,
    folder: &Path,
    build: Build,
) -> Result<(), Box<dyn Error>> {
    std::fs::create_dir_all(folder)?;
    let most = Experiment::Keys.sizes(size).last().copied().unwrap_or(1);
    let keys = Keys::load(data, most, (ABSENT * size.scale).ceil() as usize);
    let mut facts = Facts::read(folder).unwrap_or_default();
    facts.note("scale", &size.scale);
    facts.note("processor", &crate::machine::processor());
    facts.note("logged keys", &keys.real);
    facts.note("missing", &keys.missing);
    for &experiment in experiments {
        let mut sheet = Sheet::new(&COLUMNS);
        for (k, setup) in experiment.setups() {
            let mut structure = build(setup)?;
            for outcome in fill(&mut *structure, &keys, &experiment.sizes(size)) {
                push(k, setup, &outcome, &mut sheet)?;
                eprintln!("{experiment:?}: {}", sheet.newest());
            }
        }
        sheet.write(&folder.join(experiment.file()))?;
    }
    facts.write(folder)?;
    Ok(())
}

fn push(k: u32, setup: Setup, outcome: &Outcome, sheet: &mut Sheet) -> Result<(), Box<dyn Error>> {
    let name = setup.structure.name();
    if outcome.false_negatives > 0 {
        return Err(format!("{name} lost {} keys: {setup:?}", outcome.false_negatives).into());
    }
    let Outcome { keys, bits, parts, asked, false_positives, hit, miss, insert, .. } = *outcome;
    sheet.push(&[
        &name,
        &k,
        &keys,
        &bits,
        &format_args!("{:.2}", outcome.bits_a_key()),
        &parts,
        &asked,
        &false_positives,
        &format_args!("{:.4e}", outcome.fpr()),
        &format_args!("{hit:.1}"),
        &format_args!("{miss:.1}"),
        // Half of the questions are about keys that are there.
        &format_args!("{:.1}", (hit + miss) / 2.0),
        &format_args!("{insert:.1}"),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_written_and_drawn() {
        let folder = std::env::temp_dir().join(format!("lately-paper3-{}", std::process::id()));
        let figures = folder.join("paper3");
        let data = folder.join("nowhere");
        run(Size { scale: 0.02 }, &Experiment::ALL, &data, &figures, structures::build).unwrap();
        page::draw(&figures).unwrap();
        let text = std::fs::read_to_string(folder.join("paper3.md")).unwrap();
        for heading in ["Figure 6", "Figure 7", "Figure 8", "Figure 9", "Table 2"] {
            assert!(text.contains(&format!("## {heading}:")), "{heading}");
        }
        assert!(text.contains("dns.log"), "says what is missing");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_filter_is_full_when_it_errs_as_asked() {
        let setup = Setup::standard(Structure::Dynamic);
        // 4 · 608 bits set in 6,400 leave (1 - e^(-0.38))^4 = 0.01.
        assert_eq!(setup.filter_capacity(), 608);
        assert_eq!(Setup::with_hashes(Structure::Dynamic, 4).filter_capacity(), 1_109);
    }

    #[test]
    fn all_begin_with_the_same_bits() {
        for structure in [Structure::Dynamic, Structure::Scalable, Structure::PaperSlices(16)] {
            let bits = structures::build(Setup::standard(structure)).unwrap().bits();
            assert!((6_200..6_500).contains(&bits), "{structure:?}: {bits}");
        }
        // The same, with the lists of slices of 16 buckets.
        let ours = structures::build(Setup::standard(Structure::Accommodative)).unwrap().bits();
        assert!((6_400..6_400 + 16 * 1_024).contains(&ours), "{ours}");
        for hashes in [4, 6, 8, 10, 12] {
            let first = structures::build(Setup::with_hashes(Structure::Scalable, hashes)).unwrap();
            assert!((6_200..6_500).contains(&first.bits()), "{hashes}: {}", first.bits());
        }
    }
}
