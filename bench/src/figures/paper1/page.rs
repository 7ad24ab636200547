//! Plots and the results page, from the tables.

use super::claims::{Figure, Quantity, millions};
use super::data::Kind;
use super::measure::{Structure, Widths};
use super::table::{Row, Sheet};
use super::{Experiment, SPAN_SECONDS, theorem};
use crate::figures::facts::Facts;
use crate::figures::report::{self, Section, percent};
use crate::plot::{Axis, Chart, Line, Mark, Scale, plain, si};
use std::error::Error;
use std::fmt::Write;
use std::path::Path;

/// Reads the tables in `folder`, writes a plot for each figure next to them, and the page next to the
/// folder, under its name.
///
/// # Errors
/// When a table is missing or damaged, or a file cannot be written.
pub fn draw(folder: &Path) -> Result<(), Box<dyn Error>> {
    let mut page = heading(&Facts::read(folder)?);
    for figure in Figure::all() {
        let sheet = Sheet::read(folder, figure.experiment, figure.kind)?;
        let other_kind = if figure.kind == Kind::Single { Kind::Multiple } else { Kind::Single };
        let other = Sheet::read(folder, figure.experiment, other_kind)?;
        page += &section(&figure, &sheet, &other).write(folder)?;
    }
    page += &whole_times(folder)?;
    page += &theorem::section()?;
    report::write(folder, &page)
}

fn title(figure: &Figure) -> String {
    let quantity = match figure.quantity {
        Quantity::Rate => "processing rate",
        Quantity::Error => "error rate",
    };
    let against = match figure.experiment {
        Experiment::Rates | Experiment::Reads => "the number of reads",
        Experiment::Space | Experiment::WholeTimes => "space",
        Experiment::Hashes => "k",
    };
    format!("Figure {}: {quantity} against {against}, {}", figure.number, figure.kind.name())
}

fn x_of(experiment: Experiment, row: &Row) -> f64 {
    match experiment {
        Experiment::Rates | Experiment::Reads => row.reads as f64,
        Experiment::Space | Experiment::WholeTimes => row.bits as f64,
        Experiment::Hashes => f64::from(row.hashes),
    }
}

fn y_of(quantity: Quantity, row: &Row) -> f64 {
    match quantity {
        Quantity::Rate => row.rate(),
        Quantity::Error => 100.0 * row.error(),
    }
}

fn chart(figure: &Figure, sheet: &Sheet) -> Chart {
    let axis = |label: &str, scale, tick| Axis { label: label.to_owned(), scale, tick };
    let line = |structure: Structure| {
        let rows = sheet.of(structure);
        let points =
            rows.clone().map(|row| (x_of(figure.experiment, row), y_of(figure.quantity, row)));
        let marked = figure.experiment == Experiment::Hashes && structure != Structure::Bloom;
        let marks = rows.enumerate().filter(|_| marked).flat_map(|(at, row)| {
            let thick = (row.hashes == row.formula).then_some((at, Mark::Thick));
            let double = (row.hashes == row.plain).then_some((at, Mark::Double));
            thick.into_iter().chain(double)
        });
        let name = structure.name().to_owned();
        let line = Line { name, points: points.collect(), marks: marks.collect() };
        match figure.quantity {
            Quantity::Rate => spread(line, &sheet.of(structure).copied().collect::<Vec<_>>()),
            Quantity::Error => {
                let dropped: Vec<f64> = sheet.of(structure).map(|row| row.dropped as f64).collect();
                report::bars(line, &dropped)
            }
        }
    };
    Chart {
        title: title(figure),
        x: match figure.experiment {
            Experiment::Rates | Experiment::Reads => axis("reads", Scale::Linear, si),
            Experiment::Space | Experiment::WholeTimes => axis("space in bits", Scale::Linear, si),
            Experiment::Hashes => axis(
                "k, cells set per key (thick circle: section 7; double: plain Bloom formula)",
                Scale::Counting,
                plain,
            ),
        },
        y: match figure.quantity {
            Quantity::Rate => axis("reads per second", Scale::Log, si),
            Quantity::Error => axis("error rate in % of non-duplicates", Scale::Log, plain),
        },
        lines: Structure::ALL.map(line).into(),
    }
}

/// Bars from the slowest run to the fastest.
fn spread(mut line: Line, rows: &[Row]) -> Line {
    for (at, row) in rows.iter().enumerate().filter(|(_, row)| row.slowest > row.seconds) {
        line.marks.push((at, Mark::Bar(row.slowest_rate(), row.rate())));
    }
    line
}

/// What is true of one kind of data.
fn of<'a>(facts: &'a Facts, kind: Kind, name: &str) -> &'a str {
    facts.get(&format!("{} {name}", kind.name()))
}

/// Reads for each visit of a tag.
fn reads_per_visit(facts: &Facts, kind: Kind) -> f64 {
    let number = |name| of(facts, kind, name).parse().unwrap_or(f64::NAN);
    number("reads") / number("non-duplicates")
}

const INTRODUCTION: &str = "# Lee & Chung (2011), Figures 14–23

<!-- Written by `lately-bench figures paper1`; change bench/src/figures/paper1. -->

C.-H. Lee, C.-W. Chung, “An approximate duplicate elimination in RFID data streams”, Data &
Knowledge Engineering 70, 2011. The paper compares the classic Bloom filter (BF), the Time Bloom
filter (TBF) and the space-optimised Time Interval Bloom filter (TIBF) on simulated reads, with one
reader at each location (SData) or three (MData). We run the same experiments with the library's
structures. We know the paper's figures only from their description in its text, so shapes are
compared, not values.

## Setup

The paper does not state τ, velocities, group sizes or probabilities. We chose ours so that the
numbers it does state come out plausibly: the k of section 7, and that of a plain Bloom filter, within or
near 1 to 10 at 3·10^7 bits and reads, and TIBF's error near 0.007 % at 4·10^7 bits. What was chosen
for is not counted as agreement.

";

fn heading(facts: &Facts) -> String {
    let mut page = INTRODUCTION.to_owned() + &model(facts) + &method(facts);
    let scale = facts.get("scale");
    if scale != "1" {
        let _ = write!(page, "**Reads, tags and bits are scaled by {scale}.**\n\n");
    }
    page += "| | SData | MData |\n|---|---:|---:|\n";
    for name in [
        "reads",
        "distinct tags",
        "non-duplicates",
        "mean distinct tags within the window",
        "most distinct tags within the window",
        "seconds simulated",
    ] {
        let [single, multiple] = Kind::ALL.map(|kind| of(facts, kind, name));
        let _ = writeln!(page, "| {name} | {single} | {multiple} |");
    }
    page
}

fn model(facts: &Facts) -> String {
    let model = Kind::Single.model(1.0);
    let (slow, fast) = model.velocity;
    let (fewest, most) = model.group_tags;
    let [single, multiple] = Kind::ALL.map(|kind| reads_per_visit(facts, kind));
    format!(
        "- Key: the tag id. τ = {SPAN_SECONDS} s, in ticks of 1 ms; every read renews its tag. That is \
         longer than any tag takes to pass a reader ({:.1} s at most), and shorter than the trip to \
         the next location, so a duplicate is another read of the same visit.\n\
         - Simulator: `lately_stream::simulate::rfid`, seed {}. {} locations {} m apart; major region \
         {} m (detection probability {}), minor region to {} m; each reader polls every {} s; a group \
         of {fewest} to {most} tags departs every {} s at {slow} to {fast} m/s. That gives \
         {single:.1} reads per visit in SData and {multiple:.1} in MData.\n",
        2.0 * model.minor_radius / slow,
        model.seed,
        model.locations,
        model.spacing,
        model.major_radius,
        model.major_probability,
        model.minor_radius,
        model.epoch as f64 / 1e9,
        model.departure_interval as f64 / 1e9,
    )
}

fn method(facts: &Facts) -> String {
    let [time, interval] = [Structure::Time, Structure::Interval].map(|s| s.width(Widths::Library));
    format!(
        "- Space: bits ÷ cell width = cells. The library's cells are {time} bits for TBF (a cyclic \
         stamp) and {interval} for TIBF (the stamp and the interval's length); see the last section \
         for whole times.\n\
         - k = ln 2 · m/n', with n' the mean number of distinct tags within τ over the whole data \
         set; for BF, k = ln 2 · m/n with all n distinct tags of the reads processed. The “plain Bloom \
         formula” of Figures 22 and 23 is the latter with the filter's own m. These figures extend to k = 12 \
         instead of 10, so that they include all marks.\n\
         - Error rate: share of true non-duplicates that the filter drops, |S' − Ŝ| / |S'|, against \
         an exact oracle (the paper prints the difference the other way round). No filter missed a \
         duplicate: the run aborts if one does.\n\
         - Processing rate: reads per second of the filter alone, one at a time, with keys hashed \
         in advance. Figures 14 and 15: {} runs alone on the machine, and a quarter of the reads, tags and bits, as a run \
         with all of them takes longer than the others could wait; the plots show the fastest run and the \
         spread, the tables the slowest and the fastest. Figures 18 and 19: the best of {} runs. Measured on {}.\n\n",
        facts.get("Rates runs"),
        facts.get("Space runs"),
        facts.get("processor"),
    )
}

fn section(figure: &Figure, sheet: &Sheet, other: &Sheet) -> Section {
    Section {
        title: title(figure),
        plots: vec![(format!("figure-{}.svg", figure.number), chart(figure, sheet))],
        claim: figure.claim.to_owned(),
        checks: figure.checks(sheet, other),
        why: figure.why.to_owned(),
        numbers: numbers(figure.experiment, figure.quantity, sheet),
    }
}

/// The figure as a table: a row for each place on the horizontal axis.
fn numbers(experiment: Experiment, quantity: Quantity, sheet: &Sheet) -> String {
    let (x, tick): (_, fn(f64) -> String) = match experiment {
        Experiment::Rates | Experiment::Reads => ("reads", si),
        Experiment::Space | Experiment::WholeTimes => ("bits", si),
        Experiment::Hashes => ("k", plain),
    };
    let names = Structure::ALL.map(Structure::name);
    let head: Vec<&str> = std::iter::once(x).chain(names).collect();
    let columns = Structure::ALL.map(|structure| sheet.of(structure).collect::<Vec<_>>());
    let rows = (0..columns[0].len()).map(|at| {
        let cells = columns.iter().filter_map(|column| column.get(at)).map(|row| {
            let value = match quantity {
                Quantity::Rate if row.slowest > row.seconds => {
                    format!("{:.1} to {}", row.slowest_rate() / 1e6, millions(row.rate()))
                }
                Quantity::Rate => millions(row.rate()),
                Quantity::Error => percent(row.error()),
            };
            let k = if experiment == Experiment::Hashes {
                String::new()
            } else {
                format!(" (k {})", row.hashes)
            };
            format!("{value}{k}")
        });
        std::iter::once(tick(x_of(experiment, columns[0][at]))).chain(cells).collect()
    });
    report::table(&head, rows)
}

fn whole_times(folder: &Path) -> Result<String, Box<dyn Error>> {
    let [time, interval] =
        [Structure::Time, Structure::Interval].map(|s| s.width(Widths::WholeTimes));
    let mut text = format!(
        "\n## Figures 20 and 21 with whole times in the cells\n\n\
         The paper's cells hold whole times (Java integers), so the length that an interval adds \
         matters less: {time} bits for TBF and {interval} for TIBF, compared with the library's {} and \
         {}. The same data and spaces, with correspondingly fewer cells:\n",
        Structure::Time.width(Widths::Library),
        Structure::Interval.width(Widths::Library),
    );
    for kind in Kind::ALL {
        let sheet = Sheet::read(folder, Experiment::WholeTimes, kind)?;
        let numbers = numbers(Experiment::WholeTimes, Quantity::Error, &sheet);
        let _ = write!(text, "\n{}:\n\n{numbers}", kind.name());
    }
    Ok(text)
}
