//! The results page, from the tables.

use super::adapter::{DLEFT, EXACT, FPR, OURS, TDBF};
use super::workload::Workload;
use super::{Experiment, aims};
use crate::figures::comparison;
use crate::figures::facts::Facts;
use crate::figures::report::{self, chance, time};
use crate::figures::sheet::{Row, Sheet};
use crate::plot::{Axis, Chart, Line, Scale, plain, si};
use lately_stream::quantity;
use std::error::Error;
use std::path::Path;

/// The tables that are there.
pub(super) struct Tables {
    facts: Facts,
    pub(super) check: Option<Sheet>,
    pub(super) paper: Option<Sheet>,
    pub(super) speed: Option<Sheet>,
    real: Option<Sheet>,
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
        paper: read(Experiment::Paper)?,
        speed: read(Experiment::Speed)?,
        real: read(Experiment::Real)?,
    };
    let mut page = INTRODUCTION.to_owned();
    page += &comparison::measured(&tables.facts, "one thread");
    page += &aims::table(&tables);
    page += &comparison::figures(folder, tables.charts())?;
    page += &tables.rates();
    page += &tables.measured();
    page += &tables.against_paper();
    page += &tables.answers();
    page += &tables.real_files();
    report::write(folder, &page)
}

const INTRODUCTION: &str = "\
# Intervals over a window

<!-- Written by `lately-bench range`; change bench/src/range. -->

“Was any key of [a, b] among the last n?” Our `RangeWindow` is compared with the structure A of Wang et al. (2019;
`DleftWindow`, queried number by number) and the T-DBF they compare it with, both sized as the paper says;
with an exact window (a sorted map of counts and a queue of arrivals); and, in a build with `--features peers`,
with the crate `grafite` 0.2 by C. Tsui (MIT), a static range filter after Costa, Ferragina, Vinciguerra (SIGMOD
2024), which has no expiry and no insertion: it is rebuilt from the n newest keys each time it is queried.

- Keys are 64-bit numbers. ε = 1 % for an interval of L numbers. Windows hold the last n arrivals; ours has
  a slack of n/8, the paper's structures have none.
- *Bits* are the allocated memory divided by n, averaged over the moments at
  which the stream was paused for queries; *peak* is the maximum between them. The *bound* is
  log2(L/ε) + log2(n / slack), where the second term is log2(n) without slack and 0 for a static structure.
- *Empty* and *hit* are medians over blocks of 2048 queries: intervals without a key in the window or its
  slack, and intervals with a key in the window. *Arrival* is the mean, including all sealing and dropping of slices; *tail*
  is exceeded by one arrival in 10,000, each timed by the wall clock, including the reading of it. All other times are
  processor time: other work on the machine does not count, except through shared caches.
- fpr is the share of empty intervals that were reported as occupied. No occupied interval may ever be reported as empty.
";

impl Tables {
    fn charts(&self) -> Vec<(&'static str, Chart)> {
        let largest = |sheet: &Option<Sheet>| {
            sheet.iter().flat_map(Sheet::rows).map(|row| row.number("n")).fold(0.0, f64::max)
        };
        let n = largest(&self.paper);
        // Of a workload, along one column where another is held.
        let line = |sheet: &Option<Sheet>, name: &str, x: &str, held: (&str, f64), y: &str| {
            let rows = sheet.iter().flat_map(Sheet::rows).filter(|row| {
                row.text("structure") == name
                    && row.text("workload") == Workload::Uniform.name()
                    && row.number(held.0) == held.1
                    && row.text("fault").is_empty()
            });
            let points = rows.map(|row| (row.number(x), row.number(y)));
            points.filter(|point| point.1.is_finite()).collect::<Vec<_>>()
        };
        let axis = |label: &str, scale, tick| Axis { label: label.to_owned(), scale, tick };
        let of_paper = |y: &str| -> Vec<Line> {
            let names = [OURS.name, DLEFT.name, TDBF.name];
            let held = ("n", n);
            let one = |name| report::line(name, line(&self.paper, name, "length", held, y));
            names.map(one).into()
        };
        let mut bits = of_paper("bits");
        let bound = line(&self.paper, OURS.name, "length", ("n", n), "bound");
        bits.push(report::line("bound (slack n/8)", bound));
        let by_length = |title: String, label: &str, lines| Chart {
            title,
            x: axis("numbers in an interval, L", Scale::Log, si),
            y: axis(label, Scale::Log, si),
            lines,
        };
        let by_window = |title: &str, y: &str| {
            let ours = [1.0, 1e3, 1e9].map(|length| {
                let points = line(&self.speed, OURS.name, "n", ("length", length), y);
                report::line(format!("{}, L = {}", OURS.name, si(length)), points)
            });
            let others = [EXACT.name, "grafite 0.2"].map(|name| {
                report::line(
                    format!("{name}, L = 1 k"),
                    line(&self.speed, name, "n", ("length", 1e3), y),
                )
            });
            let lines = ours.into_iter().chain(others).filter(|line| !line.points.is_empty());
            Chart {
                title: title.to_owned(),
                x: axis("arrivals in the window, n", Scale::Log, si),
                y: axis("nanoseconds", Scale::Linear, plain),
                lines: lines.collect(),
            }
        };
        let n = si(n);
        vec![
            (
                "bits-length.svg",
                by_length(format!("Bits per key against L, n = {n}"), "bits per key", bits),
            ),
            (
                "query-length.svg",
                by_length(
                    format!("An empty interval against L, n = {n}"),
                    "nanoseconds",
                    of_paper("empty_ns"),
                ),
            ),
            (
                "insert-length.svg",
                by_length(
                    format!("An arrival against L, n = {n}"),
                    "nanoseconds",
                    of_paper("insert_ns"),
                ),
            ),
            ("query-window.svg", by_window("An empty interval against n", "empty_ns")),
            ("hit-window.svg", by_window("An occupied interval against n", "hit_ns")),
            ("insert-window.svg", by_window("An arrival against n", "insert_ns")),
        ]
    }

    /// Rates of ours on each workload.
    fn rates(&self) -> String {
        let Some(speed) = &self.speed else { return String::new() };
        let head: Vec<&str> =
            ["n", "L"].into_iter().chain(Workload::ALL.map(Workload::name)).collect();
        let mut places: Vec<(&str, &str)> = Vec::new();
        for row in speed.rows() {
            let place = (row.text("n"), row.text("length"));
            if !places.contains(&place) {
                places.push(place);
            }
        }
        let rows = places.into_iter().map(|(n, length)| {
            let rate = |workload: Workload| {
                let wanted = [
                    ("structure", OURS.name),
                    ("n", n),
                    ("length", length),
                    ("workload", workload.name()),
                ];
                let found = speed.of(&wanted);
                found.first().map_or(String::new(), |row| {
                    let over =
                        row.number("fpr") > FPR + 5.0 * (FPR / row.number("questions")).sqrt();
                    let rate = chance(row.number("fpr"));
                    if over { format!("**{rate}**") } else { rate }
                })
            };
            let number = |text: &str| si(text.parse().unwrap_or(0.0));
            [number(n), number(length)].into_iter().chain(Workload::ALL.map(rate)).collect()
        });
        "\n## False positive rates of the range window\n\nPromised: 0.01. Rates above that by more than \
         chance allows are bold. `zipf`: Zipf's law over numbers far apart, intervals in the gaps after recent \
         keys; `runs`: runs of a thousand consecutive numbers, intervals shortly after a run; `correlated`: intervals that \
         begin with one of the eight numbers after a key. No interval is queried twice.\n\n"
            .to_owned()
            + &report::table(&head, rows)
    }

    fn measured(&self) -> String {
        let Some(speed) = &self.speed else { return String::new() };
        let rows: Vec<Row<'_>> = speed.of(&[("workload", Workload::Uniform.name())]);
        format!("\n## Space and time, uniform keys\n\n{}", table(&rows))
    }

    fn against_paper(&self) -> String {
        let Some(paper) = &self.paper else { return String::new() };
        let rows: Vec<Row<'_>> = paper.rows().collect();
        format!("\n## Against the structures of paper 4\n\n{}", table(&rows))
    }

    fn answers(&self) -> String {
        let Some(check) = &self.check else { return String::new() };
        let head = [
            "structure",
            "workload",
            "L",
            "moments",
            "occupied",
            "false negatives",
            "empty",
            "false positives",
            "rate",
            "verdict",
        ];
        let cells = |row: Row<'_>| {
            let verdict = match row.text("fault") {
                "" => "kept".to_owned(),
                fault => format!("**wrong**: {fault}"),
            };
            vec![
                row.text("structure").to_owned(),
                row.text("workload").to_owned(),
                si(row.number("length")),
                row.text("offsets").to_owned(),
                row.text("hits").to_owned(),
                row.text("missed").to_owned(),
                row.text("empty").to_owned(),
                row.text("wrong").to_owned(),
                chance(row.number("wrong") / row.number("empty")),
                verdict,
            ]
        };
        let n = check.rows().next().map_or(0.0, |row| row.number("n"));
        format!(
            "\n## Are the answers right?\n\nn = {}, queried after every arrival of the first 5 n and compared with a sorted map: intervals \
             around keys of every age, including the oldest of the window and those that have just left it, and empty intervals; every \
             second query is about a shorter window, where the structure supports that. Intervals whose newest key is in the slack are not counted.\n\n",
            si(n)
        ) + &report::table(&head, check.rows().map(cells))
    }

    fn real_files(&self) -> String {
        let Some(real) = &self.real else { return String::new() };
        let head = [
            "file, field, queries",
            "window",
            "records",
            "most keys",
            "queries",
            "occupied",
            "false negatives",
            "empty",
            "false positives",
            "allowed",
            "memory",
            "time per query",
        ];
        let cells = |row: Row<'_>| {
            vec![
                row.text("what").to_owned(),
                row.text("window").to_owned(),
                row.text("records").to_owned(),
                row.text("keys").to_owned(),
                row.text("questions").to_owned(),
                row.text("occupied").to_owned(),
                row.text("missed").to_owned(),
                row.text("empty").to_owned(),
                row.text("wrong").to_owned(),
                row.text("allowed").to_owned(),
                quantity::display_bytes(row.number("memory") as u64),
                time(row.number("query_ns")),
            ]
        };
        "\n## Real files\n\nQueried at 60 moments of each file and compared with an exact map. A product is one interval of \
         2^38 EPCs, whatever their filter values. *Allowed* is the sum of the \
         promised rates. The window of the last 20,000 records is sized as if \
         all keys were different.\n\n"
            .to_owned()
            + &report::table(&head, real.rows().map(cells))
    }
}

fn table(rows: &[Row<'_>]) -> String {
    let head = [
        "n",
        "L",
        "structure",
        "remembers",
        "bits",
        "peak",
        "bound",
        "ratio",
        "fpr",
        "empty",
        "hit",
        "arrival",
        "tail",
    ];
    let cells = |row: &Row<'_>| {
        let start =
            vec![si(row.number("n")), si(row.number("length")), row.text("structure").to_owned()];
        if row.number("bits") == 0.0 {
            let mut cells = start;
            cells.push(row.text("fault").to_owned());
            cells.resize(head.len(), String::new());
            return cells;
        }
        let bits = row.number("bits");
        let bound = row.number("bound");
        let known = |text: String| if bound.is_finite() { text } else { String::new() };
        let missed = if row.number("missed") > 0.0 { "; **false negatives**" } else { "" };
        let late = row.number("insert_p9999_ns");
        let rest = vec![
            row.text("contract").replace(';', ",") + missed,
            format!("{bits:.2}"),
            format!("{:.2}", row.number("peak_bits")),
            known(format!("{bound:.2}")),
            known(format!("{:.2}", bits / bound)),
            chance(row.number("fpr")),
            time(row.number("empty_ns")),
            time(row.number("hit_ns")),
            time(row.number("insert_ns")),
            if late > 0.0 { time(late) } else { String::new() },
        ];
        start.into_iter().chain(rest).collect()
    };
    report::table(&head, rows.iter().map(cells))
}
