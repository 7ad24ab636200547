//! The figures: what the paper says of each, and how that is checked against our tables.

use super::structures::{BITS, Setup, Structure};
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
                why: "A DBF's query checks one filter after another, and with more hashes each is half full sooner. With more hashes an SBF has one or two additional filters, and each of them rejects an absent key at about the second bit, however many hashes there are. The ABF does not rise least: the paper divides its hashes into two sets, but a key that is present must be found in k/2 buckets by k/2 bits, in one of several slices each, so both factors of k²/4 grow. The paper's slices cost most: they are small, all of one size, and so numerous that a query goes through a long list.",
                checks: time_against_hashes,
            },
            Self {
                title: "Figure 7: time of a query against the number of keys",
                plot: Some("figure-7.svg"),
                experiment: Experiment::Keys,
                y: "query_ns",
                claim: "The DBF's query time rises drastically with the keys; those of SBF and ABF are almost constant. The ABF's is the shortest.",
                why: "A query of a DBF with r filters checks r filters; ours levels off a little at the end, since it does not insert keys that it wrongly finds. SBF and our ABF go through a number of filters that grows with log N, which explains the slow rise. With the paper's slices the number of slices per bucket grows with N; the time stops rising only because by then nearly every absent key is “found” in one of the newest few. The ABF checks k = 4 buckets in separate memory, while the SBF checks one list of filters: the ABF is not the fastest, and with the paper's slices it is slower than a DBF of few filters.",
                checks: time_against_keys,
            },
            Self {
                title: "Figure 8: false positive rate against the number of keys",
                plot: Some("figure-8.svg"),
                experiment: Experiment::Keys,
                y: "fpr",
                claim: "The DBF's rate rises with the keys. Those of SBF and ABF do not, and the ABF's is about the same as the SBF's.",
                why: "The DBF's error rate is the sum of its filters' rates. An SBF's filters have rates that add up to the requested rate, and so do our ABF's slices; the actual rate approaches it as filters fill. The paper's ABF exceeds the rate: every slice adds the same probability of a false positive to its bucket, and since all chosen buckets use the same positions, with b = k they are copies of one another, so the probabilities do not multiply. Having more buckets than are chosen only delays that. **The ABF does not beat the SBF**: with the paper's slices it takes more bits per key for a rate near 1; with ours it keeps the rate, and has fewer errors than the SBF, but at more bits per key, as it stores every key k times.",
                checks: fpr_against_keys,
            },
            Self {
                title: "Figure 9: false positive rate of the ABF against k1",
                plot: Some("figure-9.svg"),
                experiment: Experiment::PartHashes,
                y: "fpr",
                claim: "The rate falls as the number of second-level hashes grows, at a fixed k = 4.",
                why: "With the paper's slices the rate depends on the number of slices: more bits per key fill the slices sooner (a slice has 1,600/k1 bits), and each additional slice adds its error rate, so beyond a few bits the rate rises again. In our ABF the thresholds follow from the requested rate, so it is kept at every k1; with one bit per key this takes a very large filter. The paper varies k1 without saying how the size of slices or N change with it.",
                checks: fpr_against_part_hashes,
            },
            Self {
                title: "Table 2: size, query and false positives",
                plot: None,
                experiment: Experiment::Keys,
                y: "bits_a_key",
                claim: "Sizes: DBF `(⌊N/N0⌋ + 1)·m`, SBF `m·(2^(⌊log(N/N0 + 1)⌋ + 1) - 1)`, ABF `b(m̂ + l)`, which grows by `m/(k·k1)` at a time and so saves a lot of memory. Queries: DBF O(kN), SBF O(k log N), ABF O(k) + O(k1·x) with x slices. The ABF outperforms the DBF in size, query time and false positives, and the SBF in size.",
                why: "The sizes show that slices of constant size save nothing: the bits per key are of the same order as the SBF's, and the rate is not kept. The DBF is the smallest, because its rate is not kept either; by the formula it would be larger, as the paper inserts keys that are wrongly found. In our ABF each key is in k = 4 buckets: it is larger than the SBF by the factor that Figure 8 shows, and slower to query and to fill. The formula for the SBF assumes the same number of hashes in every filter; later ones have more, for their smaller error rates. Of the three, the SBF is the one to use for a growing set.",
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
        Check::new(dynamic > 2.0, format!("the DBF's time rises considerably: {dynamic:.1}-fold")),
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
        Check::new(most(Scalable) < 0.015, format!("the SBF's stays low: {}", rises(Scalable))),
        Check::new(
            most(Accommodative) < 0.015,
            format!("the ABF's, with our slices, stays low: {}", rises(Accommodative)),
        ),
    ];
    for buckets in [4, 16] {
        checks.push(Check::new(
            most(PaperSlices(buckets)) < 0.05,
            format!(
                "the ABF's, with the paper's slices (b = {buckets}), stays low: {}",
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
                "{}: {} at k1 = 1, {} at k1 = 10, smallest {}",
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
        less("smaller than the DBF, bits per key", "bits_a_key", Dynamic, Accommodative),
        less("smaller than the SBF, bits per key", "bits_a_key", Scalable, Accommodative),
        less(
            "grown as in the paper, smaller than the SBF, bits per key",
            "bits_a_key",
            Scalable,
            PaperSlices(16),
        ),
        less("fewer false positives than the DBF", "fpr", Dynamic, Accommodative),
        less("fewer false positives than the SBF", "fpr", Scalable, Accommodative),
        less(
            "with the paper's slices, fewer false positives than the SBF",
            "fpr",
            Scalable,
            PaperSlices(16),
        ),
        less("faster to query than the DBF, ns", "query_ns", Dynamic, Accommodative),
        less("faster to query than the SBF, ns", "query_ns", Scalable, Accommodative),
    ]
}

/// Bits by the paper's formulas. That of the ABF, b(m̂ + l), leaves open how many slices there are: as many
/// as there were; l, the bits of a bucket's counter, is left out.
fn formula(structure: &str, keys: f64, slices: f64) -> String {
    let bits = f64::from(BITS);
    if structure == Dynamic.name() {
        let filter = Setup::standard(Dynamic).filter_capacity() as f64;
        format!("{}", ((keys / filter).floor() + 1.0) * bits)
    } else if structure == Scalable.name() {
        let first = Setup::standard(Scalable).scalable_capacity() as f64;
        format!("{}", bits * (((keys / first + 1.0).log2().floor() + 1.0).exp2() - 1.0))
    } else if let Some(paper) = [4, 16].map(PaperSlices).iter().find(|abf| abf.name() == structure)
    {
        // Each further slice has m/(k·k1) bits.
        format!("{}", bits + f64::from(paper.buckets()) * (slices - 1.0) * bits / 16.0)
    } else {
        String::new()
    }
}

/// The false positive rate of a sum of filters by equation 22, with half of each slice's bits set: at level I
/// all of the buckets are in use, at level II `f = (fill^k)^b` for each of the slices.
pub fn equation_22(buckets: u32, slices: f64) -> f64 {
    let slice = 0.5_f64.powi(4 * buckets as i32);
    // 1 - (1 - f)^slices, where f may be too small to be subtracted from 1.
    -(slices * (-slice).ln_1p()).exp_m1()
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
                formula(row.text("structure"), number("keys"), number("parts")),
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
