//! The figures: what the paper says of each, and how that is checked against our tables.

use super::Experiment;
use super::measure::ERRORS;
use crate::figures::report::{Check, chance, ends, extremes, heights, percent, time};
use crate::figures::sheet::Sheet;

/// What is on a vertical axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Share of absent keys called present.
    Fpr,
    /// Nanoseconds an update.
    Update,
    /// Nanoseconds a query.
    Query,
    /// Keys in the overflow list, at most.
    Overflow,
    /// Share of the told ages that are too small by more than so much.
    AgeError,
}

impl Quantity {
    /// Its column.
    pub fn column(self) -> &'static str {
        match self {
            Self::Fpr => "fpr",
            Self::Update => "update_ns",
            Self::Query => "query_ns",
            Self::Overflow => "longest_overflow",
            Self::AgeError => "share",
        }
    }
}

/// A line of a figure.
#[derive(Clone, Debug)]
pub struct Series {
    /// For the legend.
    pub name: &'static str,
    /// Its points.
    pub points: Vec<(f64, f64)>,
}

/// One figure of the paper.
pub struct Figure {
    /// Its number.
    pub number: u32,
    /// Where its table comes from.
    pub experiment: Experiment,
    /// A plot for each.
    pub quantities: &'static [Quantity],
    /// What it is about.
    pub title: &'static str,
    /// What the paper says, in our words.
    pub claim: &'static str,
    /// Why ours is or is not alike.
    pub why: &'static str,
}

impl Figure {
    /// The figures in order.
    pub fn all() -> Vec<Self> {
        use Experiment::{Ages, Signature, Space, Traces, Window};
        use Quantity::{AgeError, Fpr, Overflow, Query, Update};
        let figure = |number, experiment, quantities, title, claim, why| Self {
            number,
            experiment,
            quantities,
            title,
            claim,
            why,
        };
        vec![
            figure(4, Space, &[Fpr], "false positives against space", C4, W4),
            figure(5, Space, &[Update], "time of an update against space", C5, W5),
            figure(6, Space, &[Query], "time of a query against space", C6, W6),
            figure(7, Space, &[Overflow], "longest overflow list against space", C7, W7),
            figure(8, Window, &[Update, Query], "times against the window", C8, W8),
            figure(9, Window, &[Fpr], "false positives against the window", C9, W9),
            figure(10, Window, &[Overflow], "longest overflow list against the window", C10, W10),
            figure(11, Signature, &[Update, Query], "times against k and K", C11, W11),
            figure(12, Signature, &[Fpr], "false positives against k and K", C12, W12),
            figure(13, Traces, &[Fpr], "false positives on real traces", C13, W13),
            figure(14, Ages, &[AgeError], "error of the time last seen", C14, W14),
        ]
    }

    /// The column of the horizontal axis.
    pub fn x(&self) -> &'static str {
        match self.experiment {
            Experiment::Space | Experiment::Traces => "counters",
            Experiment::Window | Experiment::List => "window",
            Experiment::Signature => "k",
            Experiment::Ages => "error_above",
        }
    }

    /// The lines of one plot, those without points left out.
    pub fn series(&self, sheet: &Sheet, stream: &str, quantity: Quantity) -> Vec<Series> {
        self.columns(sheet, stream, quantity, quantity.column())
    }

    /// The lines that a plot of this quantity has, through another column.
    pub fn columns(
        &self,
        sheet: &Sheet,
        stream: &str,
        quantity: Quantity,
        column: &str,
    ) -> Vec<Series> {
        let known: &[(&'static str, &[(&str, &str)])] = match self.experiment {
            Experiment::Signature => &[
                ("TBF, k hashes", &[("structure", "TBF")]),
                ("cuckoo, K bits", &[("structure", "cuckoo")]),
            ],
            Experiment::Ages => &[
                ("TBF, 20,000 counters", &[("structure", "TBF"), ("counters", "20000")]),
                ("TBF, 2,000 counters", &[("structure", "TBF"), ("counters", "2000")]),
                ("cuckoo, 20,000 counters", &[("structure", "cuckoo"), ("counters", "20000")]),
                ("cuckoo, 2,000 counters", &[("structure", "cuckoo"), ("counters", "2000")]),
            ],
            Experiment::Space | Experiment::Window | Experiment::List | Experiment::Traces => &[
                ("TBF, k = 4", &[("structure", "TBF"), ("k", "4")]),
                ("TBF, best k", &[("structure", "TBF with the best k")]),
                ("cuckoo, K = 0", &[("structure", "cuckoo"), ("k", "0")]),
                ("cuckoo, K = 4", &[("structure", "cuckoo"), ("k", "4")]),
            ],
        };
        let line = |&(name, texts): &(&'static str, &[(&str, &str)])| {
            let wanted = [&[("stream", stream)], texts].concat();
            Series { name, points: sheet.line(&wanted, self.x(), column) }
        };
        let lists = |name: &str| quantity != Quantity::Overflow || name.starts_with("cuckoo");
        let lines = known.iter().filter(|series| lists(series.0)).map(line);
        lines.filter(|series| !series.points.is_empty()).collect()
    }

    /// The parts of the claim against our table.
    pub fn checks(&self, sheet: &Sheet, streams: &[&str]) -> Vec<Check> {
        let lines = |stream: &str, quantity| self.series(sheet, stream, quantity);
        let each = |check: fn(&str, &[Series]) -> Vec<Check>, quantity| {
            streams.iter().flat_map(|&stream| check(stream, &lines(stream, quantity))).collect()
        };
        match self.number {
            4 | 9 => each(errs_less, Quantity::Fpr),
            5 | 6 => {
                let mut checks: Vec<Check> = each(slow_when_small, self.quantities[0]);
                let [uniform, skewed] =
                    ["z = 0", "z = 1"].map(|stream| lines(stream, self.quantities[0]));
                checks.extend(alike(&uniform, &skewed));
                checks
            }
            7 => each(list_vanishes, Quantity::Overflow),
            8 => self
                .quantities
                .iter()
                .flat_map(|&q| constant_and_rising(q, &lines("z = 0", q)))
                .collect(),
            10 => each(list_grows, Quantity::Overflow),
            11 => query_against_k(&lines("z = 0", Quantity::Query)),
            12 => fpr_against_k(&lines("z = 0", Quantity::Fpr)),
            13 => {
                let mut checks: Vec<Check> = each(errs_less, Quantity::Fpr);
                let [caching, attack] =
                    ["caching", "attack"].map(|stream| lines(stream, Quantity::Fpr));
                checks.extend(attack_is_harder(&caching, &attack));
                checks
            }
            _ => each(ages_are_better, Quantity::AgeError),
        }
    }
}

const C4: &str = "The errors of the cuckoo structure are much smaller than those of the TBF at the same space, for uniform and for skewed numbers.";
const C5: &str = "When the tables are small, many keys are in the overflow list and an update takes long. Uniform and skewed numbers do not differ much.";
const C6: &str = "As in Figure 5, for queries.";
const C7: &str = "The smaller the tables, the more keys are in the overflow list; the error remains bounded nevertheless.";
const C8: &str = "The TBF's time does not depend on the window. The cuckoo structure's grows with it, since its overflow list does.";
const C9: &str = "The cuckoo structure has fewer errors than the TBF at every window.";
const C10: &str = "The overflow list grows with the window.";
const C11: &str = "A query's time is determined by its memory accesses: the TBF's grows with k, the cuckoo structure's does not depend on K.";
const C12: &str = "The cuckoo structure's error falls very quickly with K; the TBF's rises again when k is too large.";
const C13: &str = "The cuckoo structure errs much less than the TBF on each trace. The attack gives slightly more errors than caching, since more of its requests are distinct.";
const C14: &str =
    "The cuckoo structure's estimate of when a user was last active is far closer than the TBF's.";

const W4: &str = "An absent key is reported only if an entry agrees with it in both positions and in the signature: a probability of n/(ℓ²·2^K), which matches the measurement. A counter of a TBF only says that some key was hashed to it; with 4 to 10 counters for each key in the window, even the best number of hashes does not help much. Skewed numbers repeat, so the window holds fewer distinct keys and both structures have fewer errors.";
const W5: &str = "If both positions of a key are occupied, entries are moved along a path of up to O(log ℓ) steps before the key goes to the list, so updates become slow before the list becomes long. Skewed numbers do differ: most of their updates renew an existing entry, and the window has fewer distinct keys, for which the same tables are not small. The TBF with k = 4 is still faster; its updates take longer with more space, since it sweeps m/n counters at each arrival.";
const W6: &str = "A query checks two positions, and the list only if it is not empty: so it becomes slow as soon as the list has entries. With skewed numbers the list is almost empty at every size, since there are few distinct keys. The TBF's query ends at the first expired counter; with a suitable amount of space both take about the same time.";
const W7: &str = "Below ℓ ≈ 1.1 n the entries of the window no longer fit into the two tables; with equal counters, K = 4 has two thirds of the positions of K = 0, so its list is longer. The rate is still that of Figure 4: our stash keeps of a key what a position would (both positions and the signature), so it errs as a position does. The paper's list keeps the whole key and errs never: see the section after Figure 10.";
const W8: &str = "The cuckoo structure's times rise for the reason the paper gives, and more for updates: in full tables these first search for a path to a free position, and an insertion into the library's sorted list moves half of it. The TBF's times are not constant. An update sweeps m/n counters, which dominates in a small window. A query ends at the first expired counter, which comes later the fuller the filter is.";
const W9: &str = "As in Figure 4. With two counters for each key, at the longest window, the TBF is nearly useless, while the tables' error only grows in proportion to n. But by then many of their keys are in the list, whose space is not counted in ζ: see the bits under Figure 10. These are the rates of our stash; with the paper's list they are lower by the share of keys in it (next section but one).";
const W10: &str = "The list holds what does not fit: once the tables are full, it grows by nearly every additional key of the window. In the library a key in the list takes far more bits than a position, so the comparison at equal counters flatters the cuckoo structure on long windows.";
const W11: &str = "A TBF's query ends at the first expired counter, so its time grows less than k does; its updates set all k counters. A signature is compared as part of its entry, without another access.";
const W12: &str = "Each bit of a signature halves the error, n/(ℓ²·2^K). A TBF's counters are fuller the more of them a key sets, and beyond the best k this outweighs the additional counter that must agree. With ten bits only a handful of pairs among all 100,000 numbers collide, so the last points are dominated by chance.";
const W13: &str = "As in Figure 4. The attack is much harder than caching, not slightly, because of our traces: nearly every request of the attack is a distinct key, while those of caching are for few pages, and a cached page is not inserted again. Where the tables are small compared with the keys of the attack, the list holds much of the window, and the structure takes many times the TBF's bits.";
const W14: &str = "An entry's stamp belongs to one key, so the age is exact unless that key was confused with another. A TBF's estimate is its oldest counter: it is right if any of the k counters was set by this user alone. We have few users (see the setup), so at the paper's 20,000 counters both are nearly always right; 2,000 counters have the load that 20,000 would have if nearly every arrival were by a different user.";

/// The line of that name's beginning; empty when there is none.
fn of<'a>(lines: &'a [Series], beginning: &str) -> &'a [(f64, f64)] {
    let found = lines.iter().find(|line| line.name.starts_with(beginning));
    found.map_or(&[], |line| line.points.as_slice())
}

fn cuckoos(lines: &[Series]) -> impl Iterator<Item = &Series> {
    lines.iter().filter(|line| line.name.starts_with("cuckoo"))
}

/// Much smaller is less than half, everywhere that any of the two erred at all.
fn errs_less(stream: &str, lines: &[Series]) -> Vec<Check> {
    let timing = heights(of(lines, "TBF, k"));
    let check = |line: &Series| {
        let cuckoo = heights(&line.points);
        let places: Vec<(f64, f64)> = timing.iter().copied().zip(cuckoo.iter().copied()).collect();
        let erred = places.iter().filter(|(timing, cuckoo)| timing + cuckoo > 0.0).count();
        let less = places.iter().filter(|(timing, cuckoo)| *cuckoo < 0.5 * timing).count();
        let arrow = |(first, last)| format!("{} → {}", chance(first), chance(last));
        Check::new(
            less == erred,
            format!(
                "{stream}: {} has less than half the TBF's errors at {less} of the {erred} points with any error ({} compared with {})",
                line.name,
                arrow(ends(&cuckoo)),
                arrow(ends(&timing)),
            ),
        )
    };
    cuckoos(lines).map(check).collect()
}

fn slow_when_small(stream: &str, lines: &[Series]) -> Vec<Check> {
    let check = |line: &Series| {
        let (small, large) = ends(&heights(&line.points));
        Check::new(
            small > 1.5 * large,
            format!(
                "{stream}: {} is slow when small: {} → {}",
                line.name,
                time(small),
                time(large)
            ),
        )
    };
    cuckoos(lines).map(check).collect()
}

/// Not much apart: within a factor of two at every place.
fn alike(uniform: &[Series], skewed: &[Series]) -> Vec<Check> {
    let mut checks = Vec::new();
    for line in uniform {
        let other = heights(of(skewed, line.name));
        let ratios: Vec<f64> =
            heights(&line.points).iter().zip(&other).map(|(a, b)| b / a).collect();
        let (least, most) = extremes(&ratios);
        checks.push(Check::new(
            least > 0.5 && most < 2.0,
            format!(
                "{}: skewed numbers take {least:.1} to {most:.1} times as long as uniform ones",
                line.name
            ),
        ));
    }
    checks
}

fn list_vanishes(stream: &str, lines: &[Series]) -> Vec<Check> {
    let check = |line: &Series| {
        let lengths = heights(&line.points);
        let (first, last) = ends(&lengths);
        // A key more or less is chance.
        let falls = lengths.is_sorted_by(|a, b| a + 1.0 >= *b);
        Check::new(
            falls && first > last,
            format!("{stream}: {}'s list gets shorter with space: {first} → {last}", line.name),
        )
    };
    cuckoos(lines).map(check).collect()
}

fn list_grows(_: &str, lines: &[Series]) -> Vec<Check> {
    let check = |line: &Series| {
        let lengths = heights(&line.points);
        let (first, last) = ends(&lengths);
        Check::new(
            lengths.is_sorted() && last > first,
            format!("{}'s list grows: {first} → {last}", line.name),
        )
    };
    cuckoos(lines).map(check).collect()
}

fn constant_and_rising(quantity: Quantity, lines: &[Series]) -> Vec<Check> {
    let what = if quantity == Quantity::Update { "update" } else { "query" };
    let check = |line: &Series| {
        let times = heights(&line.points);
        let ((least, most), (first, last)) = (extremes(&times), ends(&times));
        if line.name.starts_with("TBF") {
            let text = format!("TBF, {what}: constant, {} to {}", time(least), time(most));
            Check::new(most < 1.35 * least, text)
        } else {
            let name = line.name;
            let text = format!("{name}, {what}: rises, {} → {}", time(first), time(last));
            Check::new(last > 1.5 * first, text)
        }
    };
    lines.iter().map(check).collect()
}

fn query_against_k(lines: &[Series]) -> Vec<Check> {
    let (timing, cuckoo) = (heights(of(lines, "TBF")), heights(of(lines, "cuckoo")));
    let ((first, last), (least, most)) = (ends(&timing), extremes(&cuckoo));
    vec![
        Check::new(
            last > 1.2 * first,
            format!("the TBF's query takes longer: {} → {}", time(first), time(last)),
        ),
        Check::new(
            most < 1.35 * least,
            format!("the cuckoo structure's does not: {} to {}", time(least), time(most)),
        ),
    ]
}

fn fpr_against_k(lines: &[Series]) -> Vec<Check> {
    let (timing, cuckoo) = (heights(of(lines, "TBF")), heights(of(lines, "cuckoo")));
    let ((first, last), (least, _), (_, most_k)) =
        (ends(&cuckoo), extremes(&timing), ends(&timing));
    vec![
        Check::new(
            last < first / 100.0,
            format!("the cuckoo structure's error falls: {} → {}", chance(first), chance(last)),
        ),
        Check::new(
            most_k > 1.1 * least,
            format!(
                "the TBF's rises again: smallest {}, with ten hashes {}",
                chance(least),
                chance(most_k)
            ),
        ),
    ]
}

fn attack_is_harder(caching: &[Series], attack: &[Series]) -> Vec<Check> {
    let [calm, attacked] = [caching, attack].map(|lines| heights(of(lines, "TBF, k")));
    let ratios: Vec<f64> = attacked.iter().zip(&calm).map(|(a, c)| a / c).collect();
    let (least, most) = extremes(&ratios);
    let mut checks = vec![Check::new(
        most < 2.0,
        format!(
            "TBF, k = 4: slightly more errors under attack: {least:.0} to {most:.0} times as many"
        ),
    )];
    for line in caching {
        let other = heights(of(attack, line.name));
        let more = heights(&line.points).iter().zip(&other).filter(|(c, a)| a > c).count();
        let places = line.points.len();
        checks.push(Check::new(
            more == places,
            format!(
                "{}: more errors under attack than caching at {more} of {places} points",
                line.name
            ),
        ));
    }
    checks
}

fn ages_are_better(_: &str, lines: &[Series]) -> Vec<Check> {
    let mut checks = Vec::new();
    for counters in ["20,000 counters", "2,000 counters"] {
        let [timing, cuckoo] =
            ["TBF", "cuckoo"].map(|name| heights(of(lines, &format!("{name}, {counters}"))));
        let better = timing.iter().zip(&cuckoo).filter(|(timing, cuckoo)| cuckoo < timing).count();
        let at = |bound: u64, shares: &[f64]| {
            let place = ERRORS.iter().position(|&error| error == bound);
            percent(place.and_then(|place| shares.get(place)).copied().unwrap_or(0.0))
        };
        checks.push(Check::new(
            better == timing.len(),
            format!(
                "{counters}: out of {} error thresholds, the cuckoo structure exceeds {better} less often than the TBF; any error: {} compared with {}, by more than 1,000 arrivals: {} compared with {}",
                timing.len(),
                at(0, &cuckoo),
                at(0, &timing),
                at(1_000, &cuckoo),
                at(1_000, &timing),
            ),
        ));
    }
    checks
}
