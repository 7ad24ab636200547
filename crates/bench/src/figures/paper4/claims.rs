//! The figures: what the paper says of each, and how that is checked against our tables.

use super::Experiment;
use super::measure::Law;
use super::structures::{FPR, Structure};
use crate::figures::report::{Check, chance, ends, extremes, heights, percent, time};
use crate::figures::sheet::Sheet;

/// A quantity, with the unit it is shown in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Share of empty intervals called not empty.
    Fpr,
    /// Bits allocated.
    Bits,
    /// Nanoseconds a query.
    Query,
    /// Nanoseconds an insertion.
    Insert,
}

impl Quantity {
    /// All of them: each figure has a plot of each.
    pub const ALL: [Self; 4] = [Self::Fpr, Self::Bits, Self::Query, Self::Insert];

    /// Its column.
    pub fn column(self) -> &'static str {
        match self {
            Self::Fpr => "fpr",
            Self::Bits => "bits",
            Self::Query => "query_ns",
            Self::Insert => "insert_ns",
        }
    }
}

/// One figure of the paper.
pub struct Figure {
    /// Its number.
    pub number: u32,
    /// The data.
    pub law: Law,
    /// Where its table comes from.
    pub experiment: Experiment,
    /// What the paper says, in our words.
    pub claim: &'static str,
    /// Why ours is or is not alike.
    pub why: &'static str,
    /// A's share of T-DBF's bits that the paper states, at this place.
    pub share: Option<(f64, f64)>,
}

impl Figure {
    /// The figures in order.
    pub fn all() -> [Self; 4] {
        let figure = |number, law, experiment, claim, why, share| Self {
            number,
            law,
            experiment,
            claim,
            why,
            share,
        };
        use Experiment::{Length, Window};
        [
            figure(3, Law::Uniform, Length, C3, W3, Some((10_000.0, 0.116))),
            figure(4, Law::Uniform, Window, C4, W4, None),
            figure(5, Law::Zipf, Length, C5, W5, None),
            figure(6, Law::Zipf, Window, C6, W6, Some((10_000.0, 0.076))),
        ]
    }

    /// The column of the horizontal axis.
    pub fn x(&self) -> &'static str {
        if self.experiment == Experiment::Length { "length" } else { "window" }
    }

    /// The points of one structure.
    pub fn points(
        &self,
        sheet: &Sheet,
        structure: Structure,
        quantity: Quantity,
    ) -> Vec<(f64, f64)> {
        let wanted = [("data", self.law.name()), ("structure", structure.name())];
        sheet.line(&wanted, self.x(), quantity.column())
    }

    /// The lower bound at each place.
    pub fn bound(&self, sheet: &Sheet) -> Vec<(f64, f64)> {
        let wanted = [("data", self.law.name()), ("structure", Structure::Dleft.name())];
        sheet.line(&wanted, self.x(), "lower_bound")
    }

    /// A's values as multiples of T-DBF's.
    fn ratios(&self, sheet: &Sheet, quantity: Quantity) -> Vec<f64> {
        let [ours, theirs] =
            Structure::ALL.map(|structure| heights(&self.points(sheet, structure, quantity)));
        ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs).collect()
    }

    /// The parts of the claim against our table.
    pub fn checks(&self, sheet: &Sheet) -> Vec<Check> {
        let (query, insert) =
            if self.experiment == Experiment::Length { (1.7, 3.0) } else { (3.0, 1.7) };
        let mut checks = vec![
            self.same_rate(sheet),
            self.rate_kept(sheet),
            self.at_most(sheet, Quantity::Query, "query", query),
            self.at_most(sheet, Quantity::Insert, "insertion", insert),
            self.near_the_bound(sheet),
        ];
        checks.extend(self.share_of_bits(sheet));
        checks
    }

    fn same_rate(&self, sheet: &Sheet) -> Check {
        let (least, most) = extremes(&self.ratios(sheet, Quantity::Fpr));
        Check::new(
            least > 0.67 && most < 1.5,
            format!("the rates are almost the same: A's is {least:.2} to {most:.2} times T-DBF's"),
        )
    }

    fn rate_kept(&self, sheet: &Sheet) -> Check {
        let wanted = [("data", self.law.name())];
        let rows = sheet.of(&wanted);
        // Four standard errors beyond the rate asked for, and no more.
        let kept = rows.iter().all(|row| row.number("fpr") <= FPR + 4.0 * row.number("fpr_error"));
        let most = rows.iter().map(|row| row.number("fpr")).fold(0.0, f64::max);
        Check::new(kept, format!("neither errs more than {FPR}: at most {}", chance(most)))
    }

    fn at_most(&self, sheet: &Sheet, quantity: Quantity, what: &str, factor: f64) -> Check {
        let (least, most) = extremes(&self.ratios(sheet, quantity));
        Check::new(
            most <= factor,
            format!(
                "A's {what} takes at most {factor} times as long as T-DBF's: {least:.2} to {most:.2} times"
            ),
        )
    }

    fn near_the_bound(&self, sheet: &Sheet) -> Check {
        let of = |points: Vec<(f64, f64)>| heights(&points);
        let [ours, theirs] = Structure::ALL
            .map(|structure| of(self.points(sheet, structure, Quantity::Bits)))
            .map(|bits| -> Vec<f64> {
                bits.iter().zip(of(self.bound(sheet))).map(|(bits, bound)| bits / bound).collect()
            });
        let ((least, most), (their_least, their_most)) = (extremes(&ours), extremes(&theirs));
        Check::new(
            most <= 1.34,
            format!(
                "A takes 1.33 times the lower bound: {least:.2} to {most:.2} times, T-DBF {their_least:.1} to {their_most:.1} times"
            ),
        )
    }

    fn share_of_bits(&self, sheet: &Sheet) -> Option<Check> {
        let (place, stated) = self.share?;
        let at = self
            .points(sheet, Structure::Dleft, Quantity::Bits)
            .iter()
            .position(|p| p.0 == place)?;
        let share = *self.ratios(sheet, Quantity::Bits).get(at)?;
        Some(Check::new(
            share <= 1.1 * stated,
            format!(
                "A takes {} of T-DBF's bits at {} = {place}: {}",
                percent(stated),
                if self.experiment == Experiment::Length { "L" } else { "n" },
                percent(share)
            ),
        ))
    }
}

const C3: &str = "A and T-DBF have almost the same false positive rate, and neither has a false negative. A's query takes at most 1.7 times as long, its insertion at most three times. A's bits are close to the lower bound and far fewer than T-DBF's: 11.6 % of them at L = 10^4.";
const C4: &str = "The rates are almost the same. A's query takes at most three times as long, its insertion at most 1.7 times. A uses much less memory.";
const C5: &str = "As Figure 3, for numbers by Zipf's law.";
const C6: &str =
    "As Figure 4, for numbers by Zipf's law: A takes 7.6 % of T-DBF's bits at n = 10^4.";

// Written when the figures were measured; see the page.
const W3: &str = "";
const W4: &str = "";
const W5: &str = "";
const W6: &str = "";

/// Table 2's heading.
pub const TABLE_2: &str = "Table 2: what memory and time grow with";

/// What the paper says in it.
pub const TABLE_2_CLAIM: &str = "Memory: A 1.33 times the lower bound, T-DBF at least O(log n) times. Query: A O(L), T-DBF O(L·log(L/ε)). Insertion: A O(1), T-DBF O(log(L/ε)).";

/// Why ours is or is not alike.
pub const TABLE_2_WHY: &str = "";

/// Table 2's parts against both tables, uniform numbers.
pub fn table_2(length: &Sheet, window: &Sheet) -> Vec<Check> {
    let [by_length, _, _, _] = Figure::all();
    let [_, by_window, _, _] = Figure::all();
    let values = |structure, quantity| heights(&by_length.points(length, structure, quantity));
    let grows = |structure, quantity| {
        let (first, last) = ends(&values(structure, quantity));
        (last / first, format!("{} → {}", time(first), time(last)))
    };
    let (query, query_text) = grows(Structure::Dleft, Quantity::Query);
    let (insert, insert_text) = grows(Structure::Dleft, Quantity::Insert);
    let (their_insert, their_text) = grows(Structure::KeyByKey, Quantity::Insert);
    let multiples: Vec<f64> =
        heights(&by_window.points(window, Structure::KeyByKey, Quantity::Bits))
            .iter()
            .zip(heights(&by_window.bound(window)))
            .map(|(bits, bound)| bits / bound)
            .collect();
    let (few, many) = ends(&multiples);
    vec![
        Check::new(
            multiples.is_sorted(),
            format!("T-DBF's multiple of the bound rises with n: {few:.1} → {many:.1}"),
        ),
        Check::new(
            (1_000.0..100_000.0).contains(&query),
            format!("A's query grows with L, 1 → 10,000: {query_text}"),
        ),
        Check::new(insert < 1.5, format!("A's insertion does not grow with L: {insert_text}")),
        Check::new(their_insert > 1.5, format!("T-DBF's insertion grows with log L: {their_text}")),
    ]
}
