//! What the paper says of each figure, and how that is checked against our tables.

use super::Source;
use crate::figures::report::{Check, ends, extremes, heights};
use crate::figures::sheet::Sheet;
use crate::plot::Scale;

/// A quantity of a whole day, and how a figure shows it.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    /// Its column.
    pub column: &'static str,
    /// For the axis.
    pub label: &'static str,
    /// Of the axis.
    pub scale: Scale,
}

/// The share of readings sent, the saving, the redundant share.
pub const SENT: Quantity =
    Quantity { column: "sent_share", label: "share of readings sent", scale: Scale::Linear };
/// The paper's equation 8.
pub const SAVING: Quantity = Quantity { column: "saving", label: "saving", scale: Scale::Linear };
/// Of what hosts got. Persons and days differ by orders of magnitude.
pub const REDUNDANT: Quantity = Quantity {
    column: "redundant_share",
    label: "redundant share of received readings",
    scale: Scale::Log,
};
/// The paper's largest redundant share with m_MEC of 5 and more.
pub const MOST_REDUNDANT: f64 = 0.06;

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
    /// Shares that it names: of which line, at which window, from and to.
    pub named: &'static [(u16, f64, f64, f64)],
    /// Points that the second line lies below the first, at one minute and at two hours, if it says.
    pub apart: Option<(f64, f64)>,
    /// Why ours is or is not alike.
    pub why: &'static str,
}

/// Values of m_MEC, and of m_worker.
const WANTED: &[u16] = &[1, 2, 3, 5, 10, 15];
const SENDS: &[u16] = &[1, 2, 3, 5];

/// Figures 8 to 12. Part a of Figure 10 is Figure 9 again.
pub const FIGURES: [Figure; 12] = [
    Figure {
        name: "Figure 8",
        quantity: SENT,
        lines: ("m_mec", WANTED),
        held: ("m_worker", "1"),
        claim: "With m_worker = 1, 18 to 19 % of the readings are sent when filters are reset every minute, whatever m_MEC is, and 11 to 15.5 % when they are reset every two hours, rising with m_MEC.",
        named: &[
            (1, 1.0, 0.18, 0.19),
            (15, 1.0, 0.18, 0.19),
            (1, 120.0, 0.11, 0.11),
            (15, 120.0, 0.155, 0.155),
        ],
        apart: None,
        why: WHY_8,
    },
    Figure {
        name: "Figure 9",
        quantity: SAVING,
        lines: ("m_mec", WANTED),
        held: ("m_worker", "1"),
        claim: "The saving is 53 % at a window of one minute and up to 62 % at two hours (61.2 % with m_MEC = 5); it falls as m_MEC grows. Figure 10a is identical.",
        named: &[(1, 1.0, 0.53, 0.53), (1, 120.0, 0.62, 0.62), (5, 120.0, 0.612, 0.612)],
        apart: None,
        why: WHY_9,
    },
    Figure {
        name: "Figure 10b",
        quantity: SAVING,
        lines: ("m_mec", WANTED),
        held: ("m_worker", "2"),
        claim: "The text names no number; by Tables 2 and 3 and Figure 9 the saving with m_MEC = 5 is 6.7 points below that with m_worker = 1 at one minute, and 3.4 points at two hours.",
        named: &[],
        apart: None,
        why: "",
    },
    Figure {
        name: "Figure 10c",
        quantity: SAVING,
        lines: ("m_mec", WANTED),
        held: ("m_worker", "3"),
        claim: "The text names no number; by Table 2 another 4.9 and 2.0 points.",
        named: &[],
        apart: None,
        why: "",
    },
    Figure {
        name: "Figure 10d",
        quantity: SAVING,
        lines: ("m_mec", WANTED),
        held: ("m_worker", "5"),
        claim: "At m_worker = 5 the saving is around 35 % at one minute and grows up to 55 % at two hours.",
        named: &[(5, 1.0, 0.35, 0.35), (5, 120.0, 0.55, 0.55)],
        apart: None,
        why: WHY_10,
    },
    Figure {
        name: "Figure 11a",
        quantity: SAVING,
        lines: ("m_worker", SENDS),
        held: ("m_mec", "5"),
        claim: "With m_MEC = 5, m_worker = 5 costs 18 points at one minute and 7.5 points at two hours.",
        named: &[],
        apart: Some((18.0, 7.5)),
        why: "",
    },
    Figure {
        name: "Figure 11b",
        quantity: SAVING,
        lines: ("m_worker", SENDS),
        held: ("m_mec", "10"),
        claim: "With m_MEC = 10 it costs 18.5 points at one minute and 9.3 points at two hours.",
        named: &[],
        apart: Some((18.5, 9.3)),
        why: "",
    },
    Figure {
        name: "Figure 11c",
        quantity: SAVING,
        lines: ("m_worker", SENDS),
        held: ("m_mec", "15"),
        claim: "No numbers in the text; Table 2 adds up to 19.3 points at one minute and 10.3 at two hours.",
        named: &[],
        apart: Some((19.3, 10.3)),
        why: "",
    },
    Figure {
        name: "Figure 12a",
        quantity: REDUNDANT,
        lines: ("m_mec", WANTED),
        held: ("m_worker", "1"),
        claim: "The redundant share grows with the window and falls with m_MEC, and never exceeds 6 % for m_MEC of 5 and more.",
        named: &[],
        apart: None,
        why: WHY_12,
    },
    Figure {
        name: "Figure 12b",
        quantity: REDUNDANT,
        lines: ("m_mec", WANTED),
        held: ("m_worker", "2"),
        claim: "The same.",
        named: &[],
        apart: None,
        why: "",
    },
    Figure {
        name: "Figure 12c",
        quantity: REDUNDANT,
        lines: ("m_mec", WANTED),
        held: ("m_worker", "3"),
        claim: "The same.",
        named: &[],
        apart: None,
        why: "",
    },
    Figure {
        name: "Figure 12d",
        quantity: REDUNDANT,
        lines: ("m_mec", WANTED),
        held: ("m_worker", "5"),
        claim: "The same; the share is larger than with m_worker = 1.",
        named: &[],
        apart: None,
        why: "",
    },
];

const WHY_8: &str = "With persons as workers and m_worker = 1, a person sends once per element and window: at one \
     minute, the share sent is the share of distinct persons and elements per minute, and m_MEC has nothing to suppress, as two persons are \
     hardly ever within 100 m in the same minute. The city's share is larger than the paper's, whose people were at fewer places \
     at a time. At two hours the shares agree. With days as workers, all readings must be sent at one minute.";

const WHY_9: &str = "At one minute two things cost more in the city than in the paper (last table below): more is sent (Figure 8), and \
     more square kilometres are occupied, each of which needs a reset. The paper's numbers leave 4 to 5 hundredths of \
     the readings for updates and resets, about 150 resets per minute, while the city has about 500: the paper's people were \
     closer together. At two hours the city saves more: it sends a \
     little less, and has less than half a hundredth of updates and resets, where the paper's numbers leave two. One reset per square \
     kilometre cannot add up to that; the paper does not say what else it counted. With days as workers the saving is below 0 at \
     one minute: an update is sent for each redundant reading, and the next reset undoes it.";

const WHY_10: &str =
    "At one minute as in Figure 9. m_worker costs less in the city than in the paper: see Table 2.";

const WHY_12: &str = "With m_MEC = 1 the share, if any, is largest at short windows: after a reset, each worker sends \
     once more before it learns that the host has enough.";

/// Shares are called similar if they differ by no more than this.
pub const ALIKE: f64 = 0.03;

/// The points of a day's quantity over the window.
pub fn points(
    sheet: &Sheet,
    source: Source,
    column: &str,
    wanted: &[(&str, &str)],
) -> Vec<(f64, f64)> {
    let all: Vec<(&str, &str)> = [("trace", source.name())].iter().chain(wanted).copied().collect();
    let mut points = sheet.line(&all, "window", column);
    // A table that was added to is not in this order.
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    points
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

    /// The claim's parts against our numbers of a trace.
    pub fn checks(&self, sheet: &Sheet, judged: Source) -> Vec<Check> {
        let mut checks: Vec<Check> =
            self.named.iter().filter_map(|named| self.named_check(sheet, judged, named)).collect();
        // Lines that are not simulated at both ends say nothing.
        let measured = |value: &&u16| {
            let line = self.line(sheet, judged, **value);
            [1.0, 120.0].iter().all(|window| line.iter().any(|point| point.0 == *window))
        };
        let values: Vec<u16> = self.lines.1.iter().filter(measured).copied().collect();
        let line = |value: &u16| heights(&self.line(sheet, judged, *value));
        let lines: Vec<Vec<f64>> = values.iter().map(line).collect();
        let (Some(least), Some(most)) = (values.first(), values.last()) else { return checks };
        let first: Vec<f64> = lines.iter().map(|line| ends(line).0).collect();
        let last: Vec<f64> = lines.iter().map(|line| ends(line).1).collect();
        if let Some(paper) = self.apart {
            let cost = |values: &[f64]| 100.0 * (ends(values).0 - ends(values).1);
            checks.extend(apart(paper, (cost(&first), cost(&last))));
        } else if self.quantity.column == "redundant_share" {
            let many = values.iter().position(|&wanted| wanted >= 5).unwrap_or(0);
            checks.extend(redundant(&lines, many, &first, &last));
        } else {
            let saving = self.quantity.column == "saving";
            let better = |one: f64, other: f64| if saving { one < other } else { one > other };
            let all = first.iter().zip(&last).all(|(&short, &long)| better(short, long));
            let (word, more) = if saving { ("more", "falls") } else { ("fewer", "rises") };
            let text =
                format!("{} at one minute, {word} at two hours: {}", range(&first), range(&last));
            checks.push(Check::new(all, text));
            // A tenth of a point is no difference.
            let slack = if saving { 0.001 } else { -0.001 };
            let ordered = last.windows(2).all(|pair| !better(pair[0] + slack, pair[1]));
            let ordered = ordered && (ends(&last).0 - ends(&last).1).abs() > 0.001;
            checks.push(Check::new(
                ordered,
                format!("at two hours it {more} as m_MEC grows from {least} to {most}"),
            ));
        }
        checks
    }

    /// A share that the paper names.
    fn named_check(
        &self,
        sheet: &Sheet,
        judged: Source,
        named: &(u16, f64, f64, f64),
    ) -> Option<Check> {
        let &(value, window, least, most) = named;
        let points = self.line(sheet, judged, value);
        let ours = points.iter().find(|point| point.0 == window)?.1;
        let paper = if least < most {
            format!("{} to {}", percent(least), percent(most))
        } else {
            percent(least)
        };
        let time = if window > 1.0 { format!("{window} minutes") } else { "one minute".into() };
        let text =
            format!("{} = {value}, {time}: {} (the paper: {paper})", self.lines.0, percent(ours));
        // How often a person's days meet within a minute is what the hubs were fitted to.
        let fitted = judged == Source::Hubs && self.quantity.column == SENT.column && window == 1.0;
        let holds = (least - ALIKE..=most + ALIKE).contains(&ours);
        Some(Check::unless_fitted(fitted, holds, text))
    }
}

fn range(values: &[f64]) -> String {
    let (least, most) = extremes(values);
    format!("{} to {}", percent(least), percent(most))
}

/// How far two lines are apart at the two ends, in points.
fn apart((short, long): (f64, f64), ours: (f64, f64)) -> [Check; 3] {
    let near = |ours: f64, paper: f64, when: &str| {
        let text = format!("it costs {ours:.1} points at {when} (the paper: {paper})");
        Check::new((ours - paper).abs() <= 100.0 * ALIKE, text)
    };
    [
        near(ours.0, short, "one minute"),
        near(ours.1, long, "two hours"),
        Check::new(ours.0 > ours.1 && ours.1 > 0.0, "it costs more the shorter the window"),
    ]
}

fn redundant(lines: &[Vec<f64>], many: usize, first: &[f64], last: &[f64]) -> [Check; 3] {
    let grows = lines.iter().all(|line| ends(line).0 < ends(line).1);
    let most = lines.iter().skip(many).flatten().copied().fold(0.0, f64::max);
    [
        Check::new(
            grows,
            format!(
                "it grows with the window: {} at one minute, {} at two hours",
                range(first),
                range(last)
            ),
        ),
        Check::new(
            last.is_sorted_by(|one, other| one >= other) && ends(last).0 > ends(last).1,
            "it falls as m_MEC grows, at two hours",
        ),
        Check::new(
            most <= MOST_REDUNDANT,
            format!("at most {} for m_MEC of 5 and more", percent(most)),
        ),
    ]
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
