//! The figures: what the paper says of each, and how that is checked against our tables.

use super::structures::Structure;
use super::{Experiment, LOGGED};
use crate::figures::report::{Check, chance, ends, extremes, heights, time};
use crate::figures::sheet::Sheet;

/// One figure or table of the paper.
pub struct Figure {
    /// Its heading.
    pub title: &'static str,
    /// The file of its plot; a table has none.
    pub plot: Option<&'static str>,
    /// Where its table comes from.
    pub experiment: Experiment,
    /// The column of the vertical axis.
    pub y: &'static str,
    /// What the paper says, in our words.
    pub claim: &'static str,
    /// Why ours is or is not alike.
    pub why: &'static str,
    /// The claim's parts against our table.
    pub checks: fn(&Sheet) -> Vec<Check>,
}

impl Figure {
    /// The figures in order.
    pub fn all() -> [Self; 5] {
        [
            Self {
                title: "Figure 6: time of a query against the number of hashes",
                plot: Some("figure-6.svg"),
                experiment: Experiment::Hashes,
                y: "query_ns",
                claim: "The DBF's query takes considerably longer with more hashes, since its filters reach their threshold sooner and more of them are added. The SBF's rises slowly. The ABF's rises even less, since its hashes are divided into two sets.",
                why: "",
                checks: time_against_hashes,
            },
            Self {
                title: "Figure 7: time of a query against the number of keys",
                plot: Some("figure-7.svg"),
                experiment: Experiment::Keys,
                y: "query_ns",
                claim: "The DBF's query time rises drastically with the keys; those of SBF and ABF are almost constant. The ABF's is the shortest.",
                why: "",
                checks: time_against_keys,
            },
            Self {
                title: "Figure 8: false positive rate against the number of keys",
                plot: Some("figure-8.svg"),
                experiment: Experiment::Keys,
                y: "fpr",
                claim: "The DBF's rate rises with the keys. Those of SBF and ABF do not rise alike, and the ABF's is about the same as the SBF's.",
                why: "",
                checks: fpr_against_keys,
            },
            Self {
                title: "Figure 9: false positive rate of the ABF against k1",
                plot: Some("figure-9.svg"),
                experiment: Experiment::PartHashes,
                y: "fpr",
                claim: "The rate falls as the hashes of the second level become more, k = 4 held.",
                why: "",
                checks: fpr_against_part_hashes,
            },
            Self {
                title: "Table 2: size, query and false positives",
                plot: None,
                experiment: Experiment::Keys,
                y: "bits_a_key",
                claim: "Sizes: DBF `(⌊N/N0⌋ + 1)·m`, SBF `m·(2^(⌊log(N/N0 + 1)⌋ + 1) - 1)`, ABF `b(m̂ + l)`, which grows by `m/(k·k1)` at a time and so saves much memory. Queries: DBF O(kN), SBF O(k log N), ABF O(k) + O(k1·x) with x slices. The ABF outperforms the DBF in size, query time and false positives, and the SBF in size.",
                why: "",
                checks: table_2,
            },
        ]
    }

    /// The column of the horizontal axis.
    pub fn x(&self) -> &'static str {
        if self.experiment == Experiment::Keys { "keys" } else { "k" }
    }

    /// The points of one structure.
    pub fn points(&self, sheet: &Sheet, structure: Structure) -> Vec<(f64, f64)> {
        sheet.line(&[("structure", structure.name())], self.x(), self.y)
    }
}

use Structure::{Accommodative, Dynamic, PaperSlices, Scalable};

fn values(sheet: &Sheet, structure: Structure, y: &str) -> Vec<f64> {
    heights(&sheet.line(&[("structure", structure.name())], "k", y))
}

/// How many times as large the last value is as the first.
fn growth(values: &[f64]) -> f64 {
    let (first, last) = ends(values);
    last / first
}

fn growths(sheet: &Sheet, y: &str) -> [f64; 3] {
    [Dynamic, Scalable, Accommodative].map(|structure| growth(&values(sheet, structure, y)))
}

fn time_against_hashes(sheet: &Sheet) -> Vec<Check> {
    let [dynamic, scalable, accommodative] = growths(sheet, "query_ns");
    vec![
        Check::new(dynamic > 2.0, format!("the DBF's time rises much: {dynamic:.1}-fold")),
        Check::new(
            scalable > 1.0 && scalable < dynamic,
            format!("the SBF's rises slowly: {scalable:.1}-fold"),
        ),
        Check::new(
            accommodative < scalable,
            format!("the ABF's rises even less: {accommodative:.1}-fold"),
        ),
    ]
}

fn time_against_keys(sheet: &Sheet) -> Vec<Check> {
    let [dynamic, scalable, accommodative] = growths(sheet, "query_ns");
    let (abf, sbf) =
        (values(sheet, Accommodative, "query_ns"), values(sheet, Scalable, "query_ns"));
    let fastest = abf.iter().zip(&sbf).filter(|(abf, sbf)| abf < sbf).count();
    let paper = values(sheet, PaperSlices(16), "query_ns");
    let (first, last) = ends(&paper);
    vec![
        Check::new(dynamic > 20.0, format!("the DBF's time rises drastically: {dynamic:.0}-fold")),
        Check::new(scalable < 3.0, format!("the SBF's is almost constant: {scalable:.1}-fold")),
        Check::new(
            accommodative < 3.0,
            format!("the ABF's, with our slices, is almost constant: {accommodative:.1}-fold"),
        ),
        Check::new(
            last < 3.0 * first,
            format!(
                "the ABF's, with the paper's slices (b = 16): {} → {}",
                time(first),
                time(last)
            ),
        ),
        Check::new(
            fastest == abf.len(),
            format!("the ABF is faster than the SBF: at {fastest} of {} sizes", abf.len()),
        ),
    ]
}

fn fpr_against_keys(sheet: &Sheet) -> Vec<Check> {
    let rises = |structure| {
        let (first, last) = ends(&values(sheet, structure, "fpr"));
        format!("{} → {}", chance(first), chance(last))
    };
    let most = |structure| extremes(&values(sheet, structure, "fpr")).1;
    let mut checks = vec![
        Check::new(most(Dynamic) > 0.1, format!("the DBF's rate rises: {}", rises(Dynamic))),
        Check::new(most(Scalable) < 0.015, format!("the SBF's stays: {}", rises(Scalable))),
        Check::new(
            most(Accommodative) < 0.015,
            format!("the ABF's, with our slices, stays: {}", rises(Accommodative)),
        ),
    ];
    for buckets in [4, 16] {
        checks.push(Check::new(
            most(PaperSlices(buckets)) < 0.05,
            format!(
                "the ABF's, with the paper's slices (b = {buckets}), stays: {}",
                rises(PaperSlices(buckets))
            ),
        ));
    }
    checks
}

fn fpr_against_part_hashes(sheet: &Sheet) -> Vec<Check> {
    let falls = |structure| {
        let rates = values(sheet, structure, "fpr");
        let (first, last) = ends(&rates);
        let (least, most) = extremes(&rates);
        Check::new(
            last < first && most == first,
            format!(
                "{}: {} at k1 = 1, {} at k1 = 10, least {}",
                structure.name(),
                chance(first),
                chance(last),
                chance(least)
            ),
        )
    };
    [Accommodative, PaperSlices(4), PaperSlices(16)].map(falls).into()
}

fn table_2(sheet: &Sheet) -> Vec<Check> {
    let at_end = |structure, y: &str| ends(&values(sheet, structure, y)).1;
    let less = |what: &str, y: &str, other: Structure, ours: Structure| {
        let (theirs, ours_is) = (at_end(other, y), at_end(ours, y));
        Check::new(
            ours_is < theirs,
            format!("{what}: {} {ours_is}, {} {theirs}", ours.name(), other.name()),
        )
    };
    vec![
        less("smaller than the DBF, bits a key", "bits_a_key", Dynamic, Accommodative),
        less("smaller than the SBF, bits a key", "bits_a_key", Scalable, Accommodative),
        less("as the paper grows it, bits a key", "bits_a_key", Scalable, PaperSlices(16)),
        less("fewer false positives than the DBF", "fpr", Dynamic, Accommodative),
        less("fewer false positives than the SBF", "fpr", Scalable, Accommodative),
        less("with the paper's slices, than the SBF", "fpr", Scalable, PaperSlices(16)),
        less("quicker to ask than the DBF, ns", "query_ns", Dynamic, Accommodative),
        less("quicker to ask than the SBF, ns", "query_ns", Scalable, Accommodative),
    ]
}

/// The sizes that Table 2 is filled in for: the log's keys, and all.
pub fn table_2_rows(sheet: &Sheet) -> Vec<Vec<String>> {
    let mut sizes: Vec<f64> = sheet.rows().map(|row| row.number("keys")).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    // In a scaled run the log's size is the sixth as well.
    let logged = sizes.iter().position(|&keys| keys == LOGGED as f64).unwrap_or(5);
    let wanted = [sizes.get(logged), sizes.last()].map(|keys| keys.copied().unwrap_or(0.0));
    let of_wanted = sheet.rows().filter(|row| wanted.contains(&row.number("keys")));
    of_wanted
        .map(|row| {
            let number = |column| row.number(column);
            vec![
                row.text("structure").to_owned(),
                row.text("keys").to_owned(),
                row.text("bits").to_owned(),
                format!("{:.1}", number("bits_a_key")),
                row.text("parts").to_owned(),
                chance(number("fpr")),
                time(number("hit_ns")),
                time(number("miss_ns")),
                time(number("insert_ns")),
            ]
        })
        .collect()
}
