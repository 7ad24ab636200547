//! What the paper says of each figure, and how that is checked against our tables.

use super::Source;
use crate::figures::report::{Check, ends, extremes, heights};
use crate::figures::sheet::Sheet;

/// A quantity of a whole day, and how a figure shows it.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    /// Its column.
    pub column: &'static str,
    /// For the axis.
    pub label: &'static str,
}

/// The share of readings sent, the saving, the redundant share.
pub const SENT: Quantity = Quantity { column: "sent_share", label: "share of readings sent" };
/// The paper's equation 8.
pub const SAVING: Quantity = Quantity { column: "saving", label: "saving" };
/// Of what hosts got.
pub const REDUNDANT: Quantity =
    Quantity { column: "redundant_share", label: "redundant share of what hosts got" };

/// A figure over the window, with a line for each value of one parameter.
pub struct Figure {
    /// Its number, with its part.
    pub name: &'static str,
    /// What it shows.
    pub quantity: Quantity,
    /// The parameter of its lines, and its values.
    pub lines: (&'static str, &'static [u16]),
    /// The parameter that is held, and its value.
    pub held: (&'static str, &'static str),
    /// What the paper says, in our words.
    pub claim: &'static str,
}

/// Figures 8 to 12, each with the part that says most.
pub const FIGURES: [Figure; 8] = [
    Figure {
        name: "Figure 8",
        quantity: SENT,
        lines: ("m_mec", &[1, 2, 3, 5, 10, 15]),
        held: ("m_worker", "1"),
        claim: "With m_worker = 1, 18 to 19 % of the readings are sent when filters are reset every minute, whatever m_MEC is, and 11 to 15.5 % when every two hours.",
    },
    Figure {
        name: "Figure 9",
        quantity: SAVING,
        lines: ("m_mec", &[1, 2, 3, 5, 10, 15]),
        held: ("m_worker", "1"),
        claim: "The saving is 53 % at a window of one minute and up to 62 % at two hours; it falls as m_MEC grows.",
    },
    Figure {
        name: "Figure 10a",
        quantity: SAVING,
        lines: ("m_mec", &[1, 5, 15]),
        held: ("m_worker", "1"),
        claim: "Savings fall with more readings wanted and shorter windows (this part is Figure 9 again).",
    },
    Figure {
        name: "Figure 10d",
        quantity: SAVING,
        lines: ("m_mec", &[1, 5, 15]),
        held: ("m_worker", "5"),
        claim: "At m_worker = 5 the saving is around 35 % at one minute and grows up to 55 % at two hours.",
    },
    Figure {
        name: "Figure 11a",
        quantity: SAVING,
        lines: ("m_worker", &[1, 5]),
        held: ("m_mec", "5"),
        claim: "With m_MEC = 5, m_worker = 5 costs 18 points at one minute and 7.5 points at two hours.",
    },
    Figure {
        name: "Figure 11c",
        quantity: SAVING,
        lines: ("m_worker", &[1, 5]),
        held: ("m_mec", "15"),
        claim: "More readings wanted by the host cost less than a point (from m_MEC = 5 to 10), so savings stay high.",
    },
    Figure {
        name: "Figure 12a",
        quantity: REDUNDANT,
        lines: ("m_mec", &[1, 5, 15]),
        held: ("m_worker", "1"),
        claim: "The redundant share grows with the window.",
    },
    Figure {
        name: "Figure 12d",
        quantity: REDUNDANT,
        lines: ("m_mec", &[1, 5, 15]),
        held: ("m_worker", "5"),
        claim: "It grows with m_worker, and falls with m_MEC; for m_MEC of 5 and more it never exceeds 6 %.",
    },
];

/// The points of a day's quantity over the window.
pub fn points(
    sheet: &Sheet,
    source: Source,
    column: &str,
    wanted: &[(&str, &str)],
) -> Vec<(f64, f64)> {
    let all: Vec<(&str, &str)> = [("trace", source.name())].iter().chain(wanted).copied().collect();
    sheet.line(&all, "window", column)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

impl Figure {
    /// The points of one of its lines.
    pub fn line(&self, sheet: &Sheet, source: Source, value: u16) -> Vec<(f64, f64)> {
        let value = value.to_string();
        points(sheet, source, self.quantity.column, &[(self.lines.0, &value), self.held])
    }

    /// The claim's parts against our numbers, on the made-up city.
    pub fn checks(&self, sheet: &Sheet) -> Vec<Check> {
        let line = |value| heights(&self.line(sheet, Source::City, value));
        let lines: Vec<Vec<f64>> = self.lines.1.iter().map(|&value| line(value)).collect();
        let first: Vec<f64> = lines.iter().map(|line| ends(line).0).collect();
        let last: Vec<f64> = lines.iter().map(|line| ends(line).1).collect();
        let range = |values: &[f64]| {
            let (least, most) = extremes(values);
            format!("{} to {}", percent(least), percent(most))
        };
        let mut checks = Vec::new();
        match self.quantity.column {
            "sent_share" => {
                let (least, most) = extremes(&first);
                checks.push(Check::new(
                    most - least < 0.03,
                    format!("{} at one minute, m_MEC hardly matters", range(&first)),
                ));
                checks.push(Check::new(
                    extremes(&last).0 < least,
                    format!("{} at two hours, fewer than at one minute", range(&last)),
                ));
            }
            "saving" if self.lines.0 == "m_mec" => {
                let all = lines.iter().all(|line| ends(line).0 < ends(line).1);
                let text =
                    format!("{} at one minute, {} at two hours", range(&first), range(&last));
                checks.push(Check::new(all, text));
                let falls = last.windows(2).all(|pair| pair[0] >= pair[1] - 0.002);
                checks.push(Check::new(falls, "at two hours it falls as m_MEC grows"));
            }
            "saving" => {
                let cost = |values: &[f64]| ends(values).0 - ends(values).1;
                let (short, long) = (cost(&first), cost(&last));
                let text = format!(
                    "m_worker = 5 costs {:.1} points at one minute, {:.1} at two hours",
                    100.0 * short,
                    100.0 * long
                );
                checks.push(Check::new(short > long && long > 0.0, text));
            }
            _ => {
                let grows = lines.iter().all(|line| ends(line).0 <= ends(line).1);
                let text =
                    format!("{} at one minute, {} at two hours", range(&first), range(&last));
                checks.push(Check::new(grows, text));
                let falls = last.windows(2).all(|pair| pair[0] >= pair[1]);
                checks.push(Check::new(falls, "it falls as m_MEC grows, at two hours"));
                let most = lines.iter().skip(1).flatten().copied().fold(0.0, f64::max);
                let text = format!("at most {} for m_MEC of 5 and more", percent(most));
                checks.push(Check::new(most <= 0.06, text));
            }
        }
        checks
    }
}

/// A cell of Table 2 or 3: window, the held parameter, from and to, and the paper's points.
pub type Difference = (&'static str, &'static str, &'static str, &'static str, f64);

/// Table 2: m_worker, by window and m_MEC.
pub const TABLE_2: [Difference; 18] = [
    ("1", "5", "1", "2", 6.73),
    ("1", "5", "2", "3", 4.91),
    ("1", "5", "3", "5", 6.09),
    ("1", "10", "1", "2", 6.86),
    ("1", "10", "2", "3", 4.91),
    ("1", "10", "3", "5", 7.11),
    ("1", "15", "1", "2", 6.93),
    ("1", "15", "2", "3", 5.02),
    ("1", "15", "3", "5", 7.34),
    ("120", "5", "1", "2", 3.41),
    ("120", "5", "2", "3", 1.96),
    ("120", "5", "3", "5", 1.93),
    ("120", "10", "1", "2", 3.98),
    ("120", "10", "2", "3", 2.39),
    ("120", "10", "3", "5", 2.92),
    ("120", "15", "1", "2", 4.34),
    ("120", "15", "2", "3", 2.68),
    ("120", "15", "3", "5", 3.27),
];

/// Table 3: m_MEC, by window and m_worker.
pub const TABLE_3: [Difference; 16] = [
    ("1", "1", "5", "10", 0.06),
    ("1", "1", "10", "15", 0.01),
    ("1", "2", "5", "10", 0.19),
    ("1", "2", "10", "15", 0.08),
    ("1", "3", "5", "10", 0.19),
    ("1", "3", "10", "15", 0.19),
    ("1", "5", "5", "10", 1.21),
    ("1", "5", "10", "15", 0.42),
    ("120", "1", "5", "10", 0.95),
    ("120", "1", "10", "15", 0.55),
    ("120", "2", "5", "10", 1.52),
    ("120", "2", "10", "15", 0.91),
    ("120", "3", "5", "10", 1.95),
    ("120", "3", "10", "15", 1.20),
    ("120", "5", "5", "10", 2.84),
    ("120", "5", "10", "15", 1.65),
];

/// Our points of such a cell: how much the saving falls.
pub fn difference(
    sheet: &Sheet,
    source: Source,
    (varied, held): (&str, &str),
    cell: &Difference,
) -> Option<f64> {
    let &(window, fixed, from, to, _) = cell;
    let saving = |value| {
        let wanted = [("trace", source.name()), ("window", window), (held, fixed), (varied, value)];
        sheet.of(&wanted).first().map(|row| row.number("saving"))
    };
    Some(100.0 * (saving(from)? - saving(to)?))
}
