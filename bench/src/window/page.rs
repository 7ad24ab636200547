//! The results page, from the tables.

use super::adapter::candidates;
use super::{Experiment, latency};
use crate::figures::comparison;
use crate::figures::facts::Facts;
use crate::figures::report::{self, chance, percent};
use crate::figures::sheet::{Row, Sheet};
use crate::plot::{Axis, Chart, Line, Scale, si};
use std::error::Error;
use std::fmt::Write;
use std::path::Path;

/// The structure that is to win.
pub(super) const OURS: &str = "aged-table";

/// Structures in the figures, besides ours and the bound: the colours end at six.
const DRAWN: [&str; 4] =
    ["aged-buckets", "blocked-bloom", "rotating-bloom-filter", "HashMap + VecDeque"];

/// The tables that are there.
pub(super) struct Tables {
    facts: Facts,
    check: Option<Sheet>,
    pub(super) speed: Option<Sheet>,
    pub(super) rates: Option<Sheet>,
    pub(super) exact: Option<Sheet>,
    latency: Option<Sheet>,
    endurance: Option<Sheet>,
    pub(super) sparse: Option<Sheet>,
    pub(super) many: Option<Sheet>,
}

/// Reads the tables in `folder`, writes plots next to them, and the page next to the folder, under
/// its name. What was not measured is left out.
///
/// # Errors
/// When a table is damaged, or a file cannot be written.
pub fn draw(folder: &Path) -> Result<(), Box<dyn Error>> {
    let read =
        |experiment: Experiment| comparison::table(folder, experiment.file(), experiment.columns());
    let tables = Tables {
        facts: Facts::read(folder)?,
        check: read(Experiment::Check)?,
        speed: read(Experiment::Speed)?,
        rates: read(Experiment::Rates)?,
        exact: read(Experiment::Exact)?,
        latency: read(Experiment::Latency)?,
        endurance: read(Experiment::Endurance)?,
        sparse: read(Experiment::Sparse)?,
        many: read(Experiment::Many)?,
    };
    let mut page = INTRODUCTION.to_owned();
    page += &comparison::measured(&tables.facts, "one thread, the default target CPU");
    page += &tables.aims();
    page += &tables.winners();
    page += &comparison::figures(folder, tables.charts())?;
    page += &tables.measured();
    page += &tables.answers();
    page += &tables.latencies();
    page += &tables.endured();
    page += &tables.sparse();
    page += &tables.many();
    page += &structures();
    report::write(folder, &page)
}

/// Numbers as the tables write them.
pub(super) fn of<'a>(sheet: &'a Sheet, structure: &str, n: u64, fpr: f64) -> Option<Row<'a>> {
    sheet.rows().find(|row| {
        row.text("structure") == structure
            && row.number("n") == n as f64
            && row.number("fpr_asked") == fpr
    })
}

impl Tables {
    /// The numbers of keys that were measured, in the table's order.
    pub(super) fn sizes(&self) -> Vec<u64> {
        let mut sizes: Vec<u64> = Vec::new();
        for row in self.speed.iter().flat_map(Sheet::rows) {
            let n = row.number("n") as u64;
            if !sizes.contains(&n) {
                sizes.push(n);
            }
        }
        sizes
    }

    /// What is smaller or faster than ours at the largest size, and what it does not do.
    fn winners(&self) -> String {
        let Some(speed) = &self.speed else { return String::new() };
        let mut text = "\n## Where others win\n\n".to_owned();
        for n in self.sizes() {
            let Some(ours) = of(speed, OURS, n, 1e-3) else { continue };
            let columns = [
                ("bits per key", "bits"),
                ("observe fresh", "fresh"),
                ("observe repeated", "repeat"),
                ("observe mixed", "mixed"),
                ("contains, hit", "hit"),
                ("contains, miss", "miss"),
            ];
            let _ = writeln!(text, "n = {}:\n", si(n as f64));
            for (what, column) in columns {
                let own = ours.number(column);
                let _ = writeln!(text, "- {what}, ours {own:.1}:");
                for (which, forgets) in [("with a window", true), ("without expiry", false)] {
                    let mut better: Vec<(f64, String)> = speed
                        .rows()
                        .filter(|row| row.number("n") == n as f64 && row.text("structure") != OURS)
                        .filter(|row| (row.text("contract") != "forever") == forgets)
                        .filter(|row| row.number(column) < own)
                        .map(|row| (row.number(column), self.named(&row, column)))
                        .collect();
                    better.sort_by(|a, b| a.0.total_cmp(&b.0));
                    let list: Vec<String> = better.into_iter().map(|(_, text)| text).collect();
                    let list = if list.is_empty() { "none".to_owned() } else { list.join(", ") };
                    let _ = writeln!(text, "  - {which}: {list}");
                }
            }
            text.push('\n');
        }
        text + "Keys are observed one by one here, since no peer supports batches.\n"
    }

    /// A structure, its number, and what is wrong with its answers.
    fn named(&self, row: &Row<'_>, column: &str) -> String {
        let (name, value) = (row.text("structure"), row.number(column));
        let loose = if row.text("contract") == "n" { " (slack n)" } else { "" };
        let wrong = if self.fault(name).is_empty() { "" } else { " (**wrong answers**)" };
        format!("{name} {value:.1}{loose}{wrong}")
    }

    /// What a structure promises, and whether that was found to be wrong.
    fn promise(&self, row: &Row<'_>) -> String {
        let contract = match row.text("contract") {
            "forever" => "no expiry",
            "exact" => "window",
            "n/8" => "window, slack n/8",
            _ => "window, slack n",
        };
        let fault = self.fault(row.text("structure"));
        if fault.is_empty() {
            contract.to_owned()
        } else {
            format!("{contract}; **wrong**: {fault}")
        }
    }

    fn fault(&self, structure: &str) -> String {
        let rows = self.check.iter().flat_map(|sheet| sheet.of(&[("structure", structure)]));
        rows.map(|row| row.text("fault")).find(|fault| !fault.is_empty()).unwrap_or("").to_owned()
    }

    fn charts(&self) -> Vec<(&'static str, Chart)> {
        let axis = |label: &str, scale, tick| Axis { label: label.to_owned(), scale, tick };
        let largest = self.sizes().last().map_or(0.0, |&n| n as f64);
        let of_rates = |structure: &str, column: &str| {
            let fits = |row: &Row<'_>| row.text("structure") == structure;
            let speed =
                self.speed.iter().flat_map(Sheet::rows).filter(|row| row.number("n") == largest);
            let rates = self.rates.iter().flat_map(Sheet::rows);
            points(speed.chain(rates).filter(fits), |row| row.number("fpr_asked").recip(), column)
        };
        let of_sizes = |structure: &str, column: &str| {
            let rows = self.speed.iter().flat_map(Sheet::rows);
            points(
                rows.filter(|row| row.text("structure") == structure),
                |row| row.number("n"),
                column,
            )
        };
        let all = |line: &dyn Fn(&str) -> Vec<(f64, f64)>, ours: Vec<Line>| -> Vec<Line> {
            let others = DRAWN.iter().map(|name| report::line(*name, line(name)));
            let lines = ours.into_iter().chain(others);
            lines.filter(|line| !line.points.is_empty()).collect()
        };
        let bound = report::line("bound (window, slack n/8)", of_rates(OURS, "bound"));
        let mut bits = all(
            &|name| of_rates(name, "bits"),
            vec![bound, report::line(OURS, of_rates(OURS, "bits"))],
        );
        // A hash map's bits would flatten all others.
        bits.retain(|line| line.name != "HashMap + VecDeque");
        let times = |title: &str, column: &str, batch: Option<&str>| {
            let mut ours = vec![report::line(OURS, of_sizes(OURS, column))];
            if let Some(batch) = batch {
                ours.push(report::line(format!("{OURS}, batched"), of_sizes(OURS, batch)));
            }
            Chart {
                title: title.to_owned(),
                x: axis("keys in the window, n", Scale::Log, si),
                y: axis("nanoseconds", Scale::Log, si),
                lines: all(&|name| of_sizes(name, column), ours),
            }
        };
        vec![
            (
                "bits.svg",
                Chart {
                    title: "Allocated bits per key against the false positive rate".to_owned(),
                    x: axis("1/ε", Scale::Log, si),
                    y: axis("bits per key", Scale::Linear, crate::plot::plain),
                    lines: bits,
                },
            ),
            ("observe.svg", times("Observe, half of the keys new", "mixed", Some("mixed_batch"))),
            ("contains.svg", times("Lookup of a key in the window", "hit", None)),
            ("contains-miss.svg", times("Lookup of a key that was never seen", "miss", None)),
        ]
    }

    fn measured(&self) -> String {
        let mut text = String::new();
        let sheets = [&self.speed, &self.rates, &self.exact];
        for sheet in sheets.into_iter().flatten() {
            let mut groups: Vec<(&str, &str)> = Vec::new();
            for row in sheet.rows() {
                let group = (row.text("n"), row.text("fpr_asked"));
                if !groups.contains(&group) {
                    groups.push(group);
                }
            }
            for (n, fpr) in groups {
                let rows = sheet.of(&[("n", n), ("fpr_asked", fpr)]);
                let title = format!("n = {}, ε = {}", si(n.parse().unwrap_or(0.0)), fpr);
                let _ = write!(text, "\n## {title}\n\n{}", self.table(&rows));
            }
        }
        text
    }

    fn table(&self, rows: &[Row<'_>]) -> String {
        let head = [
            "structure",
            "remembers",
            "bits per key",
            "bound",
            "ratio",
            "fpr",
            "observe fresh",
            "repeated",
            "mixed",
            "contains hit",
            "miss",
        ];
        let cells = |row: &Row<'_>| {
            if row.text("bits") == "-" {
                let mut cells =
                    vec![row.text("structure").to_owned(), row.text("fault").to_owned()];
                cells.resize(head.len(), String::new());
                return cells;
            }
            let pair = |column: &str, batch: &str| {
                let one = row.number(column);
                match row.number(batch) {
                    batch if batch.is_nan() => format!("{one:.1}"),
                    batch => format!("{one:.1} / {batch:.1}"),
                }
            };
            let own = candidates().iter().any(|one| one.own && one.name == row.text("structure"));
            let name = if own {
                format!("`{}`", row.text("structure"))
            } else {
                row.text("structure").to_owned()
            };
            let fault = if row.number("missed") > 0.0 { "; **keys missed here**" } else { "" };
            vec![
                name,
                self.promise(row) + fault,
                format!("{:.1}", row.number("bits")),
                row.text("bound").to_owned(),
                format!("{:.2}", row.number("bits") / row.number("bound")),
                chance(row.number("fpr")),
                pair("fresh", "fresh_batch"),
                pair("repeat", "repeat_batch"),
                pair("mixed", "mixed_batch"),
                format!("{:.1}", row.number("hit")),
                format!("{:.1}", row.number("miss")),
            ]
        };
        report::table(&head, rows.iter().map(cells))
    }

    fn answers(&self) -> String {
        let Some(check) = &self.check else { return String::new() };
        let head = [
            "structure",
            "contract",
            "offsets",
            "lookups",
            "false negatives",
            "fpr",
            "found, age n – 1.125 n",
            "found, – 1.25 n",
            "verdict",
        ];
        let cells = |row: Row<'_>| {
            let share = |column| percent(row.number(column));
            let ages = row.text("contract") != "forever";
            let verdict = match row.text("fault") {
                "" => "kept".to_owned(),
                fault => format!("**wrong**: {fault}"),
            };
            vec![
                row.text("structure").to_owned(),
                row.text("contract").to_owned(),
                row.text("offsets").to_owned(),
                row.text("questions").to_owned(),
                row.text("missed").to_owned(),
                chance(row.number("fpr")),
                if ages { share("in_slack") } else { String::new() },
                if ages { share("past_slack") } else { String::new() },
                verdict,
            ]
        };
        let n = check.rows().next().map_or(0.0, |row| row.number("n"));
        format!("\n## Are the answers right?\n\nn = {}, ε = 0.1 %. {CHECKED}\n\n", si(n))
            + &report::table(&head, check.rows().map(cells))
    }

    fn latencies(&self) -> String {
        let Some(sheet) = &self.latency else { return String::new() };
        let head = [
            "structure",
            "median",
            "99 %",
            "99.99 %",
            "slowest",
            "over 50 µs",
            "slowest in both runs",
        ];
        let control =
            sheet.of(&[("structure", "nothing")]).first().map_or(0.0, |row| row.number("over"));
        let cells = |row: Row<'_>| {
            let time = |column| report::time(row.number(column));
            let twice = match row.text("repeated") {
                "-" => "below 20 µs".to_owned(),
                _ => time("repeated"),
            };
            let (name, over) = (row.text("structure").to_owned(), row.text("over").to_owned());
            vec![name, time("median"), time("p99"), time("p9999"), time("slowest"), over, twice]
        };
        let first = sheet.rows().next();
        let (n, arrivals) =
            first.map_or((0.0, 0.0), |row| (row.number("n"), row.number("arrivals")));
        let ours = sheet.of(&[("structure", OURS)]);
        let ours = ours.first().map_or(String::new(), |row| {
            let repeated = row.number("repeated");
            let allowed = latency::ALLOWED as f64;
            let kept = if repeated > allowed { "**missed**" } else { "met" };
            let worst =
                if repeated.is_nan() { "below 20 µs".to_owned() } else { report::time(repeated) };
            format!("Goal: no pause above 50 µs; ours {worst}: {kept}. ")
        });
        format!(
            "\n## The slowest arrival\n\nn = {}, {} arrivals in steady state, half of them new, observed one by one, each between two readings of the clock. {ours}The machine itself interrupts programs: with nothing between the readings, {control} of them took more than 50 µs. So each run is made twice: a pause caused by the structure recurs at the same arrival. “Slowest in both runs” takes the faster of the two times for each arrival, and is the slowest of those.\n\n",
            si(n),
            si(arrivals)
        ) + &report::table(&head, sheet.rows().map(cells))
    }

    fn endured(&self) -> String {
        let Some(sheet) = &self.endurance else { return String::new() };
        let head = [
            "keys",
            "arrivals",
            "windows passed",
            "repeats",
            "false negatives",
            "new keys",
            "false positives",
            "fpr",
            "forgotten early",
            "grown",
            "bits per key",
            "ns in the filter",
        ];
        let cells = |row: Row<'_>| {
            vec![
                row.text("law").to_owned(),
                row.text("arrivals").to_owned(),
                row.text("windows").to_owned(),
                row.text("repeats").to_owned(),
                row.text("missed").to_owned(),
                row.text("strangers").to_owned(),
                row.text("wrong").to_owned(),
                chance(row.number("wrong") / row.number("strangers")),
                row.text("given_up").to_owned(),
                row.text("grown").to_owned(),
                row.text("bits").to_owned(),
                format!("{:.1}", row.number("filter_seconds") * 1e9 / row.number("arrivals")),
            ]
        };
        let n = sheet.rows().next().map_or(0.0, |row| row.number("n"));
        let kept = sheet.rows().all(|row| {
            row.number("missed") == 0.0
                && row.number("wrong") <= row.number("fpr_asked") * row.number("strangers")
        });
        let verdict = if kept {
            "No false negatives, and the false positive rate is within its bound."
        } else {
            "**The contract was not kept.**"
        };
        format!(
            "\n## Endurance\n\nn = {}, ε = 0.1 %, slack of an eighth of the window. {ENDURED} {verdict}\n\n",
            si(n)
        ) + &report::table(&head, sheet.rows().map(cells))
    }
}

fn points<'a>(
    rows: impl Iterator<Item = Row<'a>>,
    x: impl Fn(&Row<'_>) -> f64,
    y: &str,
) -> Vec<(f64, f64)> {
    let pairs = rows.map(|row| (x(&row), row.number(y)));
    pairs.filter(|(x, y)| x.is_finite() && y.is_finite()).collect()
}

/// How each was built.
fn structures() -> String {
    let mut text = "\n## How each was set up\n\n".to_owned();
    let _ = writeln!(
        text,
        "- Names in code font: this library's structures, built through `Spec`; digests are computed beforehand; “exact” is without slack, “by time” has one arrival per tick. Those without expiry refuse keys beyond n, so that one table has the whole false positive rate."
    );
    for candidate in candidates().iter().filter(|candidate| !candidate.own) {
        let _ = writeln!(text, "- {}: {}.", candidate.name, candidate.how);
    }
    text
}

const INTRODUCTION: &str = "# Windows of keys, compared with other libraries

<!-- Written by `lately-bench window`; change bench/src/window. -->

All structures get the same keys in the same run: `cargo run --release --manifest-path bench/Cargo.toml --features peers --
window`. Bits are the memory that is allocated while the window is full, divided by n.
Times are nanoseconds of processor time, the mean of the fastest of three passes (two where n is above
5 M); where a cell has two times, the second is for batches. Keys are generated in blocks, outside the timing.

- fresh: keys never seen before, while the window is full. repeated: keys seen n arrivals ago, in
  their original order (which favours linked lists such as that of lru). mixed: half of the
  arrivals are new, the others have any age up to n. hit: lookups of keys in the window, in random order. miss:
  lookups of keys never seen. Structures without expiry are filled from empty to n keys instead, repeatedly; their
  times include the first access to their memory.
- The bound is log2(1/ε) bits to recognize a key plus log2(n / slack) bits for its age: 3 bits for a
  slack of n/8, none for a slack of n, and log2 n without slack. No structure with the same contract can be smaller. (Some
  authors also count the ages within the slack: 0.3 bits more at n/8.)
";

const CHECKED: &str = "Two runs of four windows each, one over new keys and one over a mixture. After every arrival, keys of \
    the window are looked up: the newest, the oldest, and six others; at about n/10 offsets all of \
    them, those of the 0.25 n arrivals before, and keys never seen. So a filter that errs only at \
    some offsets is caught.";

const ENDURED: &str = "By time: half of the arrivals have the same tick as the one before, the others come 1 to 40 \
    ticks later; about four times per window nothing arrives for up to an eighth of it, and occasionally \
    for up to three windows. Without these pauses a window holds 0.97 n distinct keys. Zipf draws from 10 n \
    keys, uniform from 4 n. Every eighth block is observed key by key, the others as batches. The exact \
    answer is computed from the last tick of every key.";
