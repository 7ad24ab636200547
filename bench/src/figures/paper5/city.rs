//! What a trace gives before any message is sent: how often elements repeat, and how close together people are.
//! Some of it is what the city with hubs was fitted to.

use super::Source;
use crate::figures::report;
use crate::figures::sheet::Sheet;
use lately_edge::cell::{KmCell, SmallCell};
use lately_edge::filter::FilterSize;
use lately_edge::simulate::trace::{DAY, Trace};
use std::error::Error;

/// Columns of [`measure`].
pub const COLUMNS: [&str; 3] = ["trace", "what", "value"];

/// What is counted, the paper's number of it, and whether the city with hubs was fitted to that.
const FACTS: [(&str, &str, bool); 16] = [
    ("fixes that enter another cell of 1 km", "12.3 %", true),
    ("distinct elements of ten minutes from 4 to 7 pm", "15 to 17 %", true),
    ("distinct elements of two hours", "at most 11 %", false),
    ("of a person in a minute: the first reading", "18 to 19 %", true),
    ("the second reading", "6.93 %", true),
    ("the third", "5.02 %", true),
    ("the fourth and fifth", "7.34 %", true),
    ("of a person in two hours: the first reading", "15.5 % or more", false),
    ("the second reading in two hours", "4.34 %", false),
    ("the third in two hours", "2.68 %", false),
    ("the fourth and fifth in two hours", "3.27 %", false),
    ("elements lost at one minute (n = 50 and p = 0.1)", "1.1 ‰", true),
    ("elements lost at 15 minutes", "7.6 ‰", true),
    ("elements lost at 60 minutes", "17 ‰", false),
    ("elements lost at 60 minutes (n = 100 and p = 0.001)", "0.008 ‰", false),
    ("elements of the fullest filter of 15 minutes", "100", true),
];

/// Counts traces, by their names.
///
/// # Errors
/// When a filter has no size.
pub fn measure(traces: &[(Source, Trace)]) -> Result<Sheet, Box<dyn Error>> {
    let mut sheet = Sheet::new(&COLUMNS);
    let size = FilterSize::for_elements(50, 0.1).ok_or("no such filter")?;
    let large = FilterSize::for_elements(100, 0.001).ok_or("no such filter")?;
    for &(source, ref trace) in traces {
        let name = source.name();
        let day = (0, DAY);
        let [minute, quarter, hour, long] =
            [1, 15, 60, 120].map(|length| Windows::of(trace, length, day));
        let afternoon = Windows::of(trace, 10, (16 * 60, 19 * 60));
        let percent = report::percent;
        let repeats = |windows: &Windows| {
            let [first, second, third, fourth, fifth] = windows.repeat_shares();
            [first, second, third, fourth + fifth].map(percent)
        };
        let per_mille = |share: f64| format!("{:.4} ‰", 1000.0 * share);
        let entering = trace.arrivals() as f64 / trace.fixes().max(1) as f64;
        let mut values = vec![percent(entering), percent(afternoon.share()), percent(long.share())];
        values.extend(repeats(&minute));
        values.extend(repeats(&long));
        values.push(per_mille(minute.expected_loss(size)));
        values.push(per_mille(quarter.expected_loss(size)));
        values.push(per_mille(hour.expected_loss(size)));
        values.push(per_mille(hour.expected_loss(large)));
        values.push(quarter.filters.iter().max().unwrap_or(&0).to_string());
        for ((what, ..), value) in FACTS.iter().zip(values) {
            sheet.push(&[&name, what, &value])?;
        }
    }
    Ok(sheet)
}

/// The section of the page.
pub fn section(sheet: &Sheet) -> String {
    let of = |trace: &str, what: &str| {
        let rows = sheet.of(&[("trace", trace), ("what", what)]);
        rows.first().map_or("", |row| row.text("value")).to_owned()
    };
    let rows = FACTS.map(|(what, paper, fitted)| {
        let fitted = if fitted { "yes" } else { "" }.to_owned();
        let [city, hubs, crowd] = ["city", "hubs", "crowd"].map(|trace| of(trace, what));
        vec![what.to_owned(), paper.to_owned(), city, hubs, fitted, crowd]
    });
    let head = ["", "the paper", "city", "with hubs", "fitted", "crowd"];
    format!("{TOGETHER}{}", report::table(&head, rows))
}

/// What of the paper's numbers no city has together, and what hubs explain.
const TOGETHER: &str = "
## What places that people share explain

Our city's people move independently: fitted to the counts, it loses 0.003 ‰ at one minute, where the paper says 1.1. So we generated another one (`City::with_hubs`),
in which each person has a home, a workplace and two other places to stay at; six of ten of these, and three of ten of the places people explore, lie in one of fourteen *hubs*, areas of about
a square kilometre (a campus, a station) where people also walk about; elsewhere they only pass through. How often people leave, how fast they are and how busy hubs are was fitted to the numbers
marked below. The table is counted in the traces, without any message (losses are those that the fill of the filters makes one expect); percentages are of the readings. *Of a person* is what is sent if all days of a
person are one worker and hosts want any number of readings: the paper's numbers are those of Figure 8, and of Table 2 with m_MEC = 15.

Hubs give the paper's losses and its fullest filters at all windows at once. Two things cannot be reached at the same time, whatever was tried:

- **Readings sent at one minute.** 12.3 % of all fixes enter another square kilometre, and are nearly all the only ones of their person, element and minute; by Table 2 another 6.9 % are the first at places where
  two days of a person meet. That is all of the 18 to 19 % of Figure 8, and leaves none for people who are alone at a place, or for two minutes on the way in one square kilometre.
- **Repeats in two hours.** By Table 2, 4.3 % of the readings are the second of their person and element within two hours, three times as many as with hubs or without.

The rest of this page is about the city without hubs; days with hubs are called so where they were simulated.

";

/// Counts of all windows of one length.
#[derive(Clone, Debug, Default)]
pub struct Windows {
    /// Fixes.
    pub readings: u64,
    /// Distinct elements.
    pub elements: u64,
    /// How many elements of a person, by how often it is there in the window: once or more, twice or more, … five times or more.
    pub repeats: [u64; 5],
    /// Elements of each square kilometre and window that anybody is in, in order.
    pub filters: Vec<u32>,
}

impl Windows {
    /// Those of a trace that begin in a part of the day, in minutes.
    pub fn of(trace: &Trace, minutes: usize, (from, until): (usize, usize)) -> Self {
        let fixes = trace.walks.iter().flat_map(|walk| {
            let at = |(later, &cell): (usize, &SmallCell)| {
                (usize::from(walk.start) + later, cell, walk.person)
            };
            walk.cells.iter().enumerate().map(at)
        });
        let mut all: Vec<(usize, KmCell, SmallCell, u32)> = fixes
            .filter(|(minute, ..)| (from..until).contains(minute))
            .map(|(minute, cell, person)| (minute / minutes, cell.km(), cell, person))
            .collect();
        all.sort_unstable();
        let mut counts = Self { readings: all.len() as u64, ..Self::default() };
        for filter in all.chunk_by(|one, other| (one.0, one.1) == (other.0, other.1)) {
            let elements = filter.chunk_by(|one, other| one.2 == other.2).count();
            counts.elements += elements as u64;
            counts.filters.push(elements as u32);
            for same in filter.chunk_by(|one, other| (one.2, one.3) == (other.2, other.3)) {
                for count in counts.repeats.iter_mut().take(same.len()) {
                    *count += 1;
                }
            }
        }
        counts.filters.sort_unstable();
        counts
    }

    /// The share of the readings that are the first of their person and element, the second, ….
    pub fn repeat_shares(&self) -> [f64; 5] {
        self.repeats.map(|count| count as f64 / self.readings.max(1) as f64)
    }

    /// The share of elements that filters of this size are expected to lose, if all are added that are not lost.
    pub fn expected_loss(&self, size: FilterSize) -> f64 {
        let (bits, hashes) = (f64::from(size.bits), f64::from(size.hashes));
        let lost = |&elements: &u32| {
            let mut added = 0.0;
            for _ in 0..elements {
                added += 1.0 - (1.0 - (-hashes * added / bits).exp()).powf(hashes);
            }
            f64::from(elements) - added
        };
        self.filters.iter().map(lost).sum::<f64>() / self.elements.max(1) as f64
    }

    /// The share of the readings that are of distinct elements.
    pub fn share(&self) -> f64 {
        self.elements as f64 / self.readings.max(1) as f64
    }
}
