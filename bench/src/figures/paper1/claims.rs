//! The ten figures: what the paper says of each, and how that is checked against our tables.

use super::Experiment;
use super::data::Kind;
use super::measure::Structure::{self, Bloom, Interval, Time};
use super::table::{Row, Sheet};
use crate::figures::report::{Check, ends, extremes, percent};

/// The vertical axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Reads a second.
    Rate,
    /// Share of non-duplicates dropped.
    Error,
}

/// One figure of the paper.
pub struct Figure {
    /// Its number.
    pub number: u32,
    /// The data set.
    pub kind: Kind,
    /// The horizontal axis.
    pub experiment: Experiment,
    /// The vertical axis.
    pub quantity: Quantity,
    /// What the paper says, in our words.
    pub claim: &'static str,
    /// Why ours is or is not alike.
    pub why: &'static str,
}

impl Figure {
    /// The figures in order.
    pub fn all() -> Vec<Self> {
        let figure = |number, kind, experiment, quantity, claim, why| Self {
            number,
            kind,
            experiment,
            quantity,
            claim,
            why,
        };
        use Experiment::{Hashes, Rates, Reads, Space};
        use Kind::{Multiple, Single};
        use Quantity::{Error, Rate};
        vec![
            figure(14, Single, Rates, Rate, RATE_READS, WHY_RATE_READS),
            figure(15, Multiple, Rates, Rate, RATE_READS_M, WHY_RATE_READS_M),
            figure(16, Single, Reads, Error, ERROR_READS, WHY_ERROR_READS),
            figure(17, Multiple, Reads, Error, ERROR_READS, WHY_ERROR_READS_M),
            figure(18, Single, Space, Rate, RATE_SPACE, WHY_RATE_SPACE),
            figure(19, Multiple, Space, Rate, RATE_SPACE_M, WHY_RATE_SPACE_M),
            figure(20, Single, Space, Error, ERROR_SPACE, WHY_ERROR_SPACE),
            figure(21, Multiple, Space, Error, ERROR_SPACE, WHY_ERROR_SPACE),
            figure(22, Single, Hashes, Error, HASHES, WHY_HASHES),
            figure(23, Multiple, Hashes, Error, HASHES, WHY_HASHES),
        ]
    }

    /// The parts of the claim against our table; `other` is that of the other kind of data.
    pub fn checks(&self, sheet: &Sheet, other: &Sheet) -> Vec<Check> {
        match (self.experiment, self.quantity) {
            (Experiment::Rates, _) => rate_by_reads(sheet, other),
            (Experiment::Reads, _) => error_by_reads(sheet),
            (Experiment::Space | Experiment::WholeTimes, Quantity::Rate) => rate_by_space(sheet),
            (Experiment::Space | Experiment::WholeTimes, Quantity::Error) => error_by_space(sheet),
            (Experiment::Hashes, _) => error_by_hashes(sheet),
        }
    }
}

const RATE_READS: &str = "BF is the fastest, and gets faster with more reads, since its k = ln 2 · m/n falls as the distinct tags n rise. TBF and TIBF have a constant rate: their k depends only on the tags within τ.";
const RATE_READS_M: &str = "As in Figure 14; and BF is slower than for SData, since MData has fewer distinct tags and so a larger k.";
const ERROR_READS: &str = "BF is far worse than the others. TIBF is the best, below 0.007 % everywhere; TBF is a little worse. All errors rise with the number of reads.";
const RATE_SPACE: &str =
    "All rates fall as space grows, since k grows with it. BF is much faster than the others.";
const RATE_SPACE_M: &str = "As Figure 18, but BF is only a little faster than the others, since its k grows much more for MData.";
const ERROR_SPACE: &str = "BF's error stays almost constant; those of TBF and TIBF fall considerably. TIBF is the best in many cases.";
const HASHES: &str = "The k of section 7 (thick circle) is a good choice, not always the best one; the k of the plain Bloom filter's formula (double circle) is much worse.";

const WHY_RATE_READS: &str = "BF's time follows its k, which falls as the number of distinct tags rises; the k of the others is chosen for the tags within τ. The rates are of the fastest of the runs, alone on the machine; the slowest run is given next to it. A filter of one size passes over the reads once, and its rate is noted at each number of reads, so that the points of TBF and TIBF are of one filter each.";
const WHY_RATE_READS_M: &str = "As for SData.";
const WHY_ERROR_READS: &str = "A tag passes four locations, and BF cannot forget the first: it drops every later visit, and most non-duplicates are later visits. TIBF's cells are nearly twice as wide as TBF's, so it has half as many; it still does better, because a visit is short compared with τ and the k intervals of a false positive rarely intersect. The errors rise while the line of tags fills, then remain constant.";
const WHY_ERROR_READS_M: &str = "As for SData. The number of tags within τ, and with it the error, rises for longer: at three times as many reads per second, the reads cover a third of the time. With the fewest reads there are so few errors that chance decides which filter is ahead.";
const WHY_RATE_SPACE: &str = "k grows in proportion to the space for all three, and larger tables leave the processor's caches. These rates were measured while the machine's other core was busy, unlike those of Figures 14 and 15: only large factors between them mean anything.";
const WHY_RATE_SPACE_M: &str = "BF's lead does shrink compared with SData, but remains larger than in the paper. For a duplicate our BF only reads bits, while TBF and TIBF write their k packed cells at every read and sweep the table; the paper's filters were arrays of Java integers, where setting a cell costs the same in each.";
const WHY_ERROR_SPACE: &str = "BF's errors come from never forgetting, which more space does not change. TIBF is behind in the smallest spaces: with k = 2, which is all that fits there, the single intersection gains less than having half as many cells loses. With cells as wide as the paper's (last section) it is ahead from the second smallest space on.";
const WHY_HASHES: &str = "The plain formula counts all distinct tags, most of which have long expired, and leaves k = 1. TIBF's best k lies above section 7's, which was derived for TBF: in TIBF, each additional hash also adds an interval that has to intersect the others.";

/// A series' values in the order of the table.
fn series(sheet: &Sheet, structure: Structure, value: fn(&Row) -> f64) -> Vec<f64> {
    sheet.of(structure).map(value).collect()
}

/// Millions a second.
pub fn millions(rate: f64) -> String {
    format!("{:.1} M/s", rate / 1e6)
}

fn faster_everywhere(sheet: &Sheet, factor: f64) -> (f64, bool) {
    let rates = Structure::ALL.map(|structure| series(sheet, structure, Row::rate));
    let least = (0..rates[0].len())
        .map(|at| rates[0][at] / rates[1][at].max(rates[2][at]))
        .reduce(f64::min)
        .unwrap_or(0.0);
    (least, least >= factor)
}

fn rate_by_reads(sheet: &Sheet, other: &Sheet) -> Vec<Check> {
    let (factor, fastest) = faster_everywhere(sheet, 1.0);
    let bloom = series(sheet, Bloom, Row::rate);
    let (first, last) = ends(&bloom);
    let mut checks = vec![
        Check::new(
            fastest,
            format!("BF is fastest: at least {factor:.1} times as fast as the second"),
        ),
        Check::new(
            last > first,
            format!("BF gets faster with more reads: {} to {}", millions(first), millions(last)),
        ),
    ];
    checks.extend([Time, Interval].map(|structure| constant(sheet, structure)));
    if sheet.kind == Kind::Multiple {
        let single: Vec<&Row> = other.of(Bloom).collect();
        let pairs = || sheet.of(Bloom).zip(&single);
        let slower = pairs().filter(|(here, there)| here.rate() < there.rate()).count();
        // Apart even when one had its fastest run and the other its slowest.
        let apart = |(here, there): &(&Row, &&Row)| {
            here.rate() < there.slowest_rate() || there.rate() < here.slowest_rate()
        };
        let text = format!("BF is slower than for SData: at {slower} of {} sizes", bloom.len());
        let decided = pairs().all(|pair| apart(&pair));
        checks.push(if decided {
            Check::new(slower == bloom.len(), text)
        } else {
            Check::noise(text)
        });
    }
    checks
}

/// Constant is within a quarter: not decided where runs of one size differ by more than that, unless the sizes differ by
/// far more.
fn constant(sheet: &Sheet, structure: Structure) -> Check {
    let (least, most) = extremes(&series(sheet, structure, Row::rate));
    let spreads: Vec<f64> =
        sheet.of(structure).map(|row| row.rate() / row.slowest_rate()).collect();
    let (_, spread) = extremes(&spreads);
    let text = format!(
        "{} is constant: {} to {}, runs of one size up to {:.0} % apart",
        structure.name(),
        millions(least),
        millions(most),
        100.0 * (spread - 1.0)
    );
    let decided = spread <= 1.25 || most > 1.25 * spread * least;
    if decided { Check::new(most <= 1.25 * least, text) } else { Check::noise(text) }
}

fn error_by_reads(sheet: &Sheet) -> Vec<Check> {
    let [bloom, time, interval] =
        Structure::ALL.map(|structure| series(sheet, structure, Row::error));
    let best = time.iter().zip(&interval).filter(|(time, interval)| interval <= time).count();
    let (bloom_least, _) = extremes(&bloom);
    let ((_, time_most), (_, interval_most)) = (extremes(&time), extremes(&interval));
    let rising = |errors: &[f64]| errors.is_sorted();
    vec![
        Check::new(
            bloom_least > 10.0 * time_most,
            format!(
                "BF is far worse: at least {}, compared with at most {} for TBF",
                percent(bloom_least),
                percent(time_most)
            ),
        ),
        Check::new(
            best == interval.len(),
            format!("TIBF is best: at {best} of {} sizes", interval.len()),
        ),
        Check::fitted(format!("TIBF is below 0.007 %: at most {}", percent(interval_most))),
        Check::new(
            rising(&bloom) && rising(&time) && rising(&interval),
            format!(
                "errors rise with the reads: BF {}, TBF {}, TIBF {}",
                arrow(&bloom),
                arrow(&time),
                arrow(&interval)
            ),
        ),
    ]
}

fn arrow(errors: &[f64]) -> String {
    let (first, last) = ends(errors);
    format!("{} → {}", percent(first), percent(last))
}

fn rate_by_space(sheet: &Sheet) -> Vec<Check> {
    let mut checks: Vec<Check> = Structure::ALL
        .into_iter()
        .map(|structure| {
            let (first, last) = ends(&series(sheet, structure, Row::rate));
            Check::new(
                last < first,
                format!(
                    "{} gets slower with more space: {} to {}",
                    structure.name(),
                    millions(first),
                    millions(last)
                ),
            )
        })
        .collect();
    let (factor, _) = faster_everywhere(sheet, 1.0);
    let single = sheet.kind == Kind::Single;
    let words = if single { "BF is much faster" } else { "BF is only a little faster" };
    checks.push(Check::new(
        if single { factor > 2.0 } else { (1.0..2.0).contains(&factor) },
        format!("{words}: at least {factor:.1} times as fast as the second"),
    ));
    checks
}

fn error_by_space(sheet: &Sheet) -> Vec<Check> {
    let (least, most) = extremes(&series(sheet, Bloom, Row::error));
    let mut checks = vec![Check::new(
        most < 1.25 * least,
        format!("BF is almost constant: {} to {}", percent(least), percent(most)),
    )];
    for structure in [Time, Interval] {
        let errors = series(sheet, structure, Row::error);
        let (first, last) = ends(&errors);
        checks.push(Check::new(
            last < first / 10.0,
            format!("{} falls considerably: {}", structure.name(), arrow(&errors)),
        ));
    }
    let (time, interval) = (series(sheet, Time, Row::error), series(sheet, Interval, Row::error));
    let best = time.iter().zip(&interval).filter(|(time, interval)| interval <= time).count();
    checks.push(Check::new(
        2 * best >= time.len(),
        format!("TIBF is best in many cases: {best} of {} spaces", time.len()),
    ));
    checks
}

fn error_by_hashes(sheet: &Sheet) -> Vec<Check> {
    let mut checks = Vec::new();
    for structure in [Time, Interval] {
        let rows: Vec<&Row> = sheet.of(structure).collect();
        let Some(best) = rows.iter().min_by(|a, b| a.error().total_cmp(&b.error())) else {
            continue;
        };
        let at = |hashes: u32| rows.iter().find(|row| row.hashes == hashes);
        let (name, least) = (structure.name(), percent(best.error()));
        for (hashes, good) in [(best.formula, true), (best.plain, false)] {
            let Some(row) = at(hashes) else { continue };
            let (error, k) = (percent(row.error()), best.hashes);
            let words =
                if good { "section 7's k is good" } else { "plain Bloom's k is much worse" };
            checks.push(Check::new(
                (row.error() <= 2.0 * best.error()) == good,
                format!("{name}, {words}: {error} at k = {hashes}, smallest {least} at k = {k}"),
            ));
        }
    }
    checks
}
