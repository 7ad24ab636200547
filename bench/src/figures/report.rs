//! A page that compares each figure with what the paper says about it.

use crate::plot::{Chart, Line, Mark};
use std::error::Error;
use std::fmt::Write;
use std::path::Path;

/// A part of a claim, with our numbers in it.
#[derive(Clone, Debug)]
pub struct Check {
    /// What was looked at, and what it came to.
    pub text: String,
    /// What follows from it.
    pub outcome: Outcome,
}

/// Does a part of a claim come out as the paper says?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It does.
    Holds,
    /// It does not.
    Fails,
    /// Runs of the same measurement differ by more than what is to be decided.
    Noise,
    /// Our parameters were chosen so that it does, so that it proves nothing.
    Fitted,
}

impl Outcome {
    fn words(self) -> &'static str {
        match self {
            Self::Holds => "as in the paper",
            Self::Fails => "**not** as in the paper",
            Self::Noise => "not decided, as runs differ by more",
            Self::Fitted => "fitted, so it does not count",
        }
    }
}

impl Check {
    /// A part of a claim that holds or not.
    pub fn new(holds: bool, text: impl Into<String>) -> Self {
        Self { text: text.into(), outcome: if holds { Outcome::Holds } else { Outcome::Fails } }
    }

    /// A part of a claim that our parameters may have been chosen for: one that does not hold all the same fails.
    pub fn unless_fitted(fitted: bool, holds: bool, text: impl Into<String>) -> Self {
        if fitted && holds { Self::fitted(text) } else { Self::new(holds, text) }
    }

    /// A part of a claim that our parameters were chosen for.
    pub fn fitted(text: impl Into<String>) -> Self {
        Self { text: text.into(), outcome: Outcome::Fitted }
    }

    /// A part of a claim about which the measurement says nothing.
    pub fn noise(text: impl Into<String>) -> Self {
        Self { text: text.into(), outcome: Outcome::Noise }
    }

    /// As an item of a list in Markdown.
    pub fn line(&self) -> String {
        format!("- {}: {}\n", self.outcome.words(), self.text)
    }
}

/// How many parts of a claim hold, how many do not, and how many were fitted.
pub fn tally(checks: &[Check]) -> [usize; 3] {
    [Outcome::Holds, Outcome::Fails, Outcome::Fitted]
        .map(|outcome| checks.iter().filter(|check| check.outcome == outcome).count())
}

/// One figure on the page.
pub struct Section {
    /// Heading and description of its plots.
    pub title: String,
    /// File names and charts.
    pub plots: Vec<(String, Chart)>,
    /// What the paper says, in our words.
    pub claim: String,
    /// The claim's parts against our numbers.
    pub checks: Vec<Check>,
    /// Why ours is or is not alike; may be empty.
    pub why: String,
    /// The numbers, as Markdown.
    pub numbers: String,
}

impl Section {
    /// How many parts of the claim hold, how many do not, and how many were fitted.
    pub fn tally(&self) -> [usize; 3] {
        tally(&self.checks)
    }

    /// Draws the plots into the folder, and gives the text, which links to them from next to it.
    ///
    /// # Errors
    /// When there is nothing to draw, or a file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<String, Box<dyn Error>> {
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or(".");
        let title = &self.title;
        let mut text = format!("\n## {title}\n\n");
        for (file, chart) in &self.plots {
            std::fs::write(folder.join(file), chart.svg()?)?;
            let _ = write!(text, "![{}]({name}/{file})\n\n", chart.title);
        }
        let _ = write!(text, "**The paper.** {}\n\n", self.claim);
        if !self.checks.is_empty() {
            let _ = write!(text, "**Ours.** {}:\n\n", verdict(&self.checks));
        }
        for check in &self.checks {
            text += &check.line();
        }
        if !self.why.is_empty() {
            let _ = write!(text, "\n**Why.** {}\n", self.why);
        }
        Ok(text + "\n" + &self.numbers)
    }
}

fn verdict(checks: &[Check]) -> &'static str {
    let count = |outcome| checks.iter().filter(|check| check.outcome == outcome).count();
    match (count(Outcome::Holds), count(Outcome::Fails)) {
        (0, 0) => "This says nothing about the shape",
        (_, 0) => "The shape is the same",
        (0, _) => "The shape is different",
        _ => "The shape is partly the same",
    }
}

/// Writes a page next to the folder of its tables and plots, under its name.
///
/// # Errors
/// Those of the file system.
pub fn write(folder: &Path, page: &str) -> Result<(), Box<dyn Error>> {
    std::fs::write(folder.with_extension("md"), page.trim_end().to_owned() + "\n")?;
    Ok(())
}

/// A Markdown table of right-aligned cells.
pub fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut text = format!("| {} |\n|{}\n", head.join(" | "), "---:|".repeat(head.len()));
    for row in rows {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    text
}

/// The points of a chart's lines as a table: a row for each place on the horizontal axis.
pub fn numbers(
    x: &str,
    tick: fn(f64) -> String,
    lines: &[Line],
    cell: fn(f64) -> String,
) -> String {
    let mut places: Vec<f64> = Vec::new();
    for &(place, _) in lines.iter().flat_map(|line| &line.points) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places.sort_by(f64::total_cmp);
    let head: Vec<&str> =
        std::iter::once(x).chain(lines.iter().map(|line| line.name.as_str())).collect();
    let rows = places.into_iter().map(|place| {
        let at = |line: &Line| line.points.iter().find(|point| point.0 == place).map(|&(_, y)| y);
        let cells = lines.iter().map(|line| at(line).map_or(String::new(), cell));
        std::iter::once(tick(place)).chain(cells).collect()
    });
    table(&head, rows)
}

/// Bars of one standard deviation at the points that stand for few events: how many there were.
/// More than a hundred events need no bar.
pub fn bars(mut line: Line, events: &[f64]) -> Line {
    for (at, (&events, point)) in events.iter().zip(&line.points).enumerate() {
        if events > 0.0 && events < 100.0 {
            let share = point.1 / events;
            let (low, high) = (events - events.sqrt(), events + events.sqrt());
            line.marks.push((at, Mark::Bar(share * low, share * high)));
        }
    }
    line
}

/// A line without marks.
pub fn line(name: impl Into<String>, points: Vec<(f64, f64)>) -> Line {
    Line { name: name.into(), points, marks: Vec::new() }
}

/// The values of a line, from left to right.
pub fn heights(points: &[(f64, f64)]) -> Vec<f64> {
    points.iter().map(|&(_, y)| y).collect()
}

/// The least and the greatest value; zeros when there is none.
pub fn extremes(values: &[f64]) -> (f64, f64) {
    let bound = |pick: fn(f64, f64) -> f64| values.iter().copied().reduce(pick).unwrap_or(0.0);
    (bound(f64::min), bound(f64::max))
}

/// The first and the last value; zeros when there is none.
pub fn ends(values: &[f64]) -> (f64, f64) {
    (values.first().copied().unwrap_or(0.0), values.last().copied().unwrap_or(0.0))
}

/// A share in percent, with the digits that a small one needs.
pub fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    match percent {
        0.0 => "0 %".to_owned(),
        p if p >= 10.0 => format!("{p:.1} %"),
        p if p >= 0.1 => format!("{p:.2} %"),
        p if p >= 0.001 => format!("{p:.4} %"),
        p => format!("{p:.6} %"),
    }
}

/// A probability that may be very small.
pub fn chance(share: f64) -> String {
    match share {
        0.0 => "0".to_owned(),
        p if p >= 0.001 => format!("{p:.4}"),
        p => format!("{p:.1e}"),
    }
}

/// A time of nanoseconds.
pub fn time(nanoseconds: f64) -> String {
    match nanoseconds {
        t if t >= 1e6 => format!("{:.1} ms", t / 1e6),
        t if t >= 1e4 => format!("{:.1} µs", t / 1e3),
        t => format!("{t:.0} ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_every_place_once() {
        let lines =
            [line("a", vec![(2.0, 0.5), (1.0, 0.25)]), line("b", vec![(2.0, 0.0), (3.0, 1e-5)])];
        let text = numbers("x", crate::plot::plain, &lines, chance);
        assert_eq!(
            text,
            "| x | a | b |\n|---:|---:|---:|\n| 1 | 0.2500 |  |\n| 2 | 0.5000 | 0 |\n\
             | 3 |  | 1.0e-5 |\n"
        );
    }

    #[test]
    fn verdicts() {
        let checks = |held: &[bool]| held.iter().map(|&held| Check::new(held, "")).collect();
        let verdicts = [&[true, true][..], &[true, false], &[false]]
            .map(|held| verdict(&Vec::<Check>::from_iter::<Vec<Check>>(checks(held))));
        assert_eq!(
            verdicts,
            ["The shape is the same", "The shape is partly the same", "The shape is different"]
        );
        // What was fitted, or drowns in noise, counts on neither side.
        let other = [Check::fitted(""), Check::noise("")];
        assert_eq!(verdict(&other), "This says nothing about the shape");
        let [fitted, noise] = other;
        assert_eq!(verdict(&[fitted, noise, Check::new(true, "")]), "The shape is the same");
        let outcome = |holds| Check::unless_fitted(true, holds, "").outcome;
        assert_eq!([true, false].map(outcome), [Outcome::Fitted, Outcome::Fails]);
    }
}
