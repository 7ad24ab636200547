//! Plots and the results page, from the tables.

use super::claims::{Figure, Quantity, TABLE_2, TABLE_2_CLAIM, TABLE_2_WHY, table_2};
use super::measure::{Law, UNIVERSE};
use super::structures::{FPR, Setup, Structure};
use super::{COLUMNS, Experiment, PROBES, Size, updates};
use crate::figures::facts::Facts;
use crate::figures::report::{self, Section, chance, percent, time};
use crate::figures::sheet::{Row, Sheet};
use crate::plot::{Axis, Chart, Scale, plain, si};
use std::error::Error;
use std::fmt::Write;
use std::path::Path;

/// Reads the tables in `folder`, writes plots next to them, and the page next to the folder, under
/// its name.
///
/// # Errors
/// When a table is missing or damaged, or a file cannot be written.
pub fn draw(folder: &Path) -> Result<(), Box<dyn Error>> {
    let read = |experiment: Experiment| Sheet::read(&folder.join(experiment.file()), &COLUMNS);
    let (length, window) = (read(Experiment::Length)?, read(Experiment::Window)?);
    let mut page = heading(&Facts::read(folder)?);
    for figure in Figure::all() {
        let sheet = if figure.experiment == Experiment::Length { &length } else { &window };
        page += &section(&figure, sheet).write(folder)?;
    }
    let section = Section {
        title: TABLE_2.to_owned(),
        plots: Vec::new(),
        claim: TABLE_2_CLAIM.to_owned(),
        checks: table_2(&length, &window),
        why: TABLE_2_WHY.to_owned(),
        numbers: scaling(&length, &window),
    };
    page += &section.write(folder)?;
    page += &updates::section(&Sheet::read(
        &folder.join(Experiment::Updates.file()),
        &updates::COLUMNS,
    )?);
    page += memory(&[&length, &window])?.trim_end();
    report::write(folder, &page)
}

fn section(figure: &Figure, sheet: &Sheet) -> Section {
    let against = match figure.experiment {
        Experiment::Length => "the length of intervals",
        Experiment::Window | Experiment::Updates => "the window",
    };
    let title = format!("Figure {}: against {against}, {}", figure.number, figure.law.name());
    let plots = Quantity::ALL.map(|quantity| {
        let file =
            format!("figure-{}-{}.svg", figure.number, quantity.column().trim_end_matches("_ns"));
        (file, chart(figure, sheet, quantity))
    });
    Section {
        title,
        plots: plots.into(),
        claim: figure.claim.to_owned(),
        checks: figure.checks(sheet),
        why: figure.why.to_owned(),
        numbers: figure.ours(sheet) + &numbers(figure, sheet),
    }
}

fn label(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Fpr => "false positive rate",
        Quantity::Bits => "allocated bits",
        Quantity::Query => "time of a query in ns",
        Quantity::Insert => "time of an insertion in ns",
    }
}

fn chart(figure: &Figure, sheet: &Sheet, quantity: Quantity) -> Chart {
    let axis = |label: &str, scale, tick| Axis { label: label.to_owned(), scale, tick };
    let line = |structure: Structure| {
        let line = report::line(structure.name(), figure.points(sheet, structure, quantity));
        if quantity != Quantity::Fpr {
            return line;
        }
        let wanted = [("data", figure.law.name()), ("structure", structure.name())];
        let wrong = sheet.line(&wanted, figure.x(), "false_positives");
        report::bars(line, &report::heights(&wrong))
    };
    let mut lines: Vec<_> = Structure::ALL.map(line).into();
    // A table may be from before there were as many structures.
    lines.retain(|line| !line.points.is_empty());
    if quantity == Quantity::Bits {
        lines.push(report::line("lower bound", figure.bound(sheet)));
    }
    Chart {
        title: format!("Figure {}: {}, {}", figure.number, label(quantity), figure.law.name()),
        x: match figure.experiment {
            Experiment::Length => axis("numbers in an interval, L", Scale::Log, si),
            Experiment::Window | Experiment::Updates => {
                axis("window in arrivals, n", Scale::Log, si)
            }
        },
        y: match quantity {
            Quantity::Fpr => axis(label(quantity), Scale::Linear, plain),
            Quantity::Insert => axis(label(quantity), Scale::Linear, plain),
            Quantity::Bits | Quantity::Query => axis(label(quantity), Scale::Log, si),
        },
        lines,
    }
}

/// A row for each structure and place.
fn numbers(figure: &Figure, sheet: &Sheet) -> String {
    let x = figure.x();
    let head =
        [x, "structure", "fpr", "± (1 σ)", "intervals", "bits", "× bound", "query", "insertion"];
    let cells = |row: Row<'_>| {
        let number = |column| row.number(column);
        vec![
            row.text(x).to_owned(),
            row.text("structure").to_owned(),
            chance(number("fpr")),
            chance(number("fpr_error")),
            row.text("intervals").to_owned(),
            row.text("bits").to_owned(),
            format!("{:.2}", number("bits") / number("lower_bound")),
            time(number("query_ns")),
            time(number("insert_ns")),
        ]
    };
    report::table(&head, sheet.of(&[("data", figure.law.name())]).into_iter().map(cells))
}

const INTRODUCTION: &str = "# Wang et al. (2019), Figures 3–6 and Table 2

<!-- Written by `lately-bench figures paper4`; change bench/src/figures/paper4. -->

X. Wang, Z. Liu, Y. Gao, X. Zheng, X. Chen, C. Wu, “Near-optimal data structure for approximate
range emptiness problem in information-centric Internet of Things”, IEEE Access 7, 2019. “Is any
number of [a, b] among the last n?” The paper compares its structure A with a time-decaying Bloom
filter (T-DBF) that is queried for every number of the interval. We run the same experiments with the
library's `DleftWindow`, which is A with the paper's numbers of buckets and fingerprint bits,
and `TimingBloom`, both queried through `KeyByKey`. A third line is not in the paper: the library's own
`RangeWindow`. We know the paper's figures only from their
description in its text, so shapes are compared, not values.

## Setup

";

fn heading(facts: &Facts) -> String {
    let mut page = INTRODUCTION.to_owned();
    let [uniform, zipf] = Law::ALL.map(Law::name);
    let full = Size { scale: 1.0 };
    let _ = write!(
        page,
        "- Numbers from 1 to {UNIVERSE}, uniform ({uniform}) or by Zipf's law with z = 1 ({zipf}); {} \
         arrivals. ε = {FPR}. n = 1,000 where L varies, L = 1,000 where n does.\n\
         - Intervals of L numbers start at uniformly random positions. The paper queries 10^7 intervals at \
         every point; that would be 10^11 numbers at L = 10^4. We query 10^7 as well, but no \
         more than {PROBES:e} numbers in total: {} intervals at L = 1,000, {} at L = 10,000. The \
         resulting standard error is given next to each rate. Queries are made after each thousandth of \
         the stream, once the window is full.\n\
         - No structure had a false negative: the run aborts if one has.\n\
         - T-DBF has an error rate of ε/L per number: k = ⌈log2(L/ε)⌉ hashes, n·k / ln 2 counters. Bits are \
         allocated bits. The lower bound is n·(log 1/ε + log L + log n), without the paper's O(n).\n\
         - Times: the first decile of the thousand measurements, since other work may run at the same time; \
         including hashing, as both structures hash every number of an interval. In runs alongside other \
         work, A's queries took up to 1.8 times as long at some points, while insertions in the \
         same measurements did not. Measured on {}.\n{}",
        facts.get("arrivals"),
        full.intervals(1_000),
        full.intervals(10_000),
        facts.get("processor"),
        bits(),
    );
    let scale = facts.get("scale");
    if scale != "1" {
        let _ = write!(page, "\n**Stream and queries are scaled by {scale}.**\n");
    }
    page
}

/// What memory and time grow with, measured: exponents of powers.
fn scaling(length: &Sheet, window: &Sheet) -> String {
    let head = [
        "",
        "structure",
        "× bound",
        "query, L 1 → 10,000",
        "as L to the power",
        "query, n 100 → 100,000",
        "as n to the power",
        "insertion, L 1 → 10,000",
        "insertion, n 100 → 100,000",
    ];
    let row = |law: Law, structure: Structure| {
        let of = |sheet: &Sheet, x: &str, y: &str| {
            let wanted = [("data", law.name()), ("structure", structure.name())];
            sheet.line(&wanted, x, y)
        };
        let ends = |points: &[(f64, f64)]| report::ends(&report::heights(points));
        let arrow = |points: &[(f64, f64)]| {
            let (first, last) = ends(points);
            format!("{} → {}", time(first), time(last))
        };
        let power = |points: &[(f64, f64)]| {
            let (first, last) = ends(points);
            let places: Vec<f64> = points.iter().map(|point| point.0).collect();
            let (low, high) = report::ends(&places);
            format!("{:.2}", (last / first).ln() / (high / low).ln())
        };
        let mut multiples = Vec::new();
        for sheet in [length, window] {
            let bits = report::heights(&of(sheet, "length", "bits"));
            let bounds = report::heights(&of(sheet, "length", "lower_bound"));
            multiples.extend(bits.iter().zip(bounds).map(|(bits, bound)| bits / bound));
        }
        let (least, most) = report::extremes(&multiples);
        let by_length = of(length, "length", "query_ns");
        let by_window = of(window, "window", "query_ns");
        vec![
            law.name().to_owned(),
            structure.name().to_owned(),
            format!("{least:.2} to {most:.2}"),
            arrow(&by_length),
            power(&by_length),
            arrow(&by_window),
            power(&by_window),
            arrow(&of(length, "length", "insert_ns")),
            arrow(&of(window, "window", "insert_ns")),
        ]
    };
    let rows =
        Law::ALL.into_iter().flat_map(|law| Structure::PAPER.map(|structure| row(law, structure)));
    report::table(&head, rows)
}

/// Bits at every place, measured and by the formulas.
fn memory(sheets: &[&Sheet]) -> Result<String, Box<dyn Error>> {
    let head = [
        "n",
        "L",
        "bound",
        "with its constants",
        "equation 27",
        "whole-bit fields",
        "A, allocated",
        "× bound",
        "× the one with constants",
        "plan",
        "× bound",
        "T-DBF",
        "equation 27 / T-DBF",
        "A / T-DBF",
        "u/(nL) ≥ 1/ε",
    ];
    let mut rows: Vec<Vec<String>> = Vec::new();
    for sheet in sheets {
        for row in
            sheet.of(&[("data", Law::Uniform.name()), ("structure", Structure::Dleft.name())])
        {
            let [window, length] = ["window", "length"].map(|column| row.number(column) as u64);
            let setup = Setup { structure: Structure::Dleft, window, length };
            let (bound, bits) = (setup.lower_bound(), row.number("bits"));
            let timing = setup.timing_bits() as f64;
            let planned = setup.planned_bits()?;
            let constants = setup.bound_with_constants();
            let cells = vec![
                window.to_string(),
                length.to_string(),
                format!("{bound:.0}"),
                format!("{constants:.0}"),
                format!("{:.0} ({:.2}×)", setup.paper_bits(), setup.paper_bits() / bound),
                format!("{} ({:.2}×)", setup.whole_bits(), setup.whole_bits() as f64 / bound),
                format!("{bits}"),
                format!("{:.2}", bits / bound),
                format!("{:.2}", bits / constants),
                planned.to_string(),
                format!("{:.2}", planned as f64 / bound),
                format!("{timing}"),
                percent(setup.paper_bits() / setup.timing_formula()),
                percent(bits / timing),
                if setup.universe_is_large() { "yes" } else { "**no**" }.to_owned(),
            ];
            if !rows.contains(&cells) {
                rows.push(cells);
            }
        }
    }
    let mut text = "\n## Memory, measured and by formula\n\n".to_owned();
    text += "Bound: n·(log 1/ε + log L + log n), without the paper's O(n). With its constants: what the paper's \
             proof leaves when nothing is rounded off (its equations 17 to 21), which is what any structure must \
             really take. Equation 27: what the \
             paper says A takes, with fields of fractional bits. Whole-bit fields: the same with whole \
             bits and whole buckets. A, allocated: the library's `DleftWindow` of the paper's \
             size, including its stash; its stamps have ⌈log2(9/8·n + 3)⌉ bits, at some n one fewer. Plan: what `Spec` plans for a rate of ε/L. T-DBF: \
             whole hashes and counters of ⌈log2(2n + 1)⌉ bits; equation 27 is compared with log2(L/ε) \
             hashes, not rounded. The last column says whether the universe is as large \
             as the lower bound requires: where it is not, fewer bits may suffice, and the multiples \
             prove nothing.\n\n";
    Ok(text + &report::table(&head, rows))
}

/// What the paper's own formulas say of memory.
fn bits() -> String {
    let setup = |window, length| Setup { structure: Structure::Dleft, window, length };
    let pin = setup(1_000, 1_000);
    let share = |setup: Setup| percent(setup.paper_bits() / setup.timing_formula());
    format!(
        "- Memory by the paper's formulas: A's equation 27 gives {:.0} bits at n = L = 1,000 ({} with \
         whole-bit fields), compared with a bound of {:.0}: that is {:.2} ({:.2}) times, not 1.33 times, \
         since the paper omits the constants there. It is {} of a T-DBF with counters no wider than \
         necessary at n = 1,000, L = 10^4 (the paper: 11.6 %) and {} at n = 10^4, L = 1,000 (7.6 %): the \
         paper must have assumed wider counters. See the last table.\n",
        pin.paper_bits(),
        pin.whole_bits(),
        pin.lower_bound(),
        pin.paper_bits() / pin.lower_bound(),
        pin.whole_bits() as f64 / pin.lower_bound(),
        share(setup(1_000, 10_000)),
        share(setup(10_000, 1_000)),
    )
}
