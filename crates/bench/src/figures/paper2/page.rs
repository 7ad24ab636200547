//! Plots and the results page, from the tables.

use super::claims::{Figure, Quantity, Series};
use super::streams::{REPLAYS, UNIVERSE};
use super::{Experiment, TRACE_WINDOW};
use crate::figures::facts::Facts;
use crate::figures::report::{self, Section, chance, percent, time};
use crate::figures::sheet::Sheet;
use crate::plot::{Axis, Chart, Line, Scale, plain, si};
use std::error::Error;
use std::fmt::Write;
use std::path::Path;

/// Reads the tables in `folder`, writes plots beside them, and the page beside the folder, under
/// its name.
///
/// # Errors
/// When a table is missing or damaged, or a file cannot be written.
pub fn draw(folder: &Path) -> Result<(), Box<dyn Error>> {
    let facts = Facts::read(folder)?;
    let mut page = heading(&facts);
    for figure in Figure::all() {
        let experiment = figure.experiment;
        let sheet = Sheet::read(&folder.join(experiment.file()), experiment.columns())?;
        page += &section(&figure, &sheet, &facts).write(folder)?;
    }
    std::fs::write(folder.with_extension("md"), page)?;
    Ok(())
}

/// The streams a figure has a plot for.
fn streams(experiment: Experiment) -> &'static [&'static str] {
    match experiment {
        Experiment::Space => &["z = 0", "z = 1"],
        Experiment::Window | Experiment::Signature => &["z = 0"],
        Experiment::Traces => &["caching", "attack", "wall posts"],
        Experiment::Ages => &["wall posts"],
    }
}

fn section(figure: &Figure, sheet: &Sheet, facts: &Facts) -> Section {
    let there: Vec<&str> = streams(figure.experiment)
        .iter()
        .copied()
        .filter(|stream| !sheet.of(&[("stream", stream)]).is_empty())
        .collect();
    let (mut plots, mut numbers) = (Vec::new(), String::new());
    for &stream in &there {
        for &quantity in figure.quantities {
            let lines = lines(figure.series(sheet, stream, quantity));
            let name = label(quantity);
            let several = there.len() * figure.quantities.len() > 1;
            let mut file = format!("figure-{}", figure.number);
            if several {
                let _ = write!(numbers, "{stream}, {name}:\n\n");
                let _ = write!(file, "-{}", short(stream, quantity, figure));
            }
            numbers += &report::numbers(figure.x(), plain, &lines, cell(quantity));
            numbers.push('\n');
            plots.push((file + ".svg", chart(figure, stream, quantity, lines)));
        }
    }
    let missing = facts.get(&format!("{:?} missing", figure.experiment));
    if !matches!(missing, "" | "?") {
        let _ = writeln!(numbers, "Left out, for want of the data: {missing}.");
    }
    Section {
        title: format!("Figure {}: {}", figure.number, figure.title),
        plots,
        claim: figure.claim.to_owned(),
        checks: figure.checks(sheet, &there),
        why: figure.why.to_owned(),
        numbers: numbers.trim_end().to_owned() + "\n",
    }
}

/// What tells this plot's file from the figure's others.
fn short(stream: &str, quantity: Quantity, figure: &Figure) -> String {
    if figure.quantities.len() > 1 {
        let column = quantity.column();
        return column.trim_end_matches("_ns").to_owned();
    }
    stream.replace(" = ", "").replace(' ', "-")
}

fn lines(series: Vec<Series>) -> Vec<Line> {
    series.into_iter().map(|series| report::line(series.name, series.points)).collect()
}

fn label(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Fpr => "false positive rate",
        Quantity::Update => "time of an update in ns",
        Quantity::Query => "time of a query in ns",
        Quantity::Overflow => "keys in the overflow list at most",
        Quantity::AgeError => "share of the ages told",
    }
}

fn cell(quantity: Quantity) -> fn(f64) -> String {
    match quantity {
        Quantity::Fpr => chance,
        Quantity::Update | Quantity::Query => time,
        Quantity::Overflow => plain,
        Quantity::AgeError => percent,
    }
}

fn chart(figure: &Figure, stream: &str, quantity: Quantity, lines: Vec<Line>) -> Chart {
    let axis = |label: &str, scale, tick| Axis { label: label.to_owned(), scale, tick };
    Chart {
        title: format!("Figure {}: {}, {stream}", figure.number, label(quantity)),
        x: match figure.experiment {
            Experiment::Space | Experiment::Traces => axis("space in counters", Scale::Linear, si),
            Experiment::Window => axis("window in arrivals, n", Scale::Linear, si),
            Experiment::Signature => {
                axis("hashes k, or bits of a signature K", Scale::Counting, plain)
            }
            Experiment::Ages => axis("too small by more arrivals than", Scale::Log, si),
        },
        y: axis(
            label(quantity),
            if quantity == Quantity::Overflow { Scale::Linear } else { Scale::Log },
            plain,
        ),
        lines,
    }
}

const INTRODUCTION: &str = "# Time-decaying windows by cuckoo hashing (2013), Figures 4–14

<!-- Written by `lately-bench figures paper2`; change crates/bench/src/figures/paper2. -->

“Near-optimal approximate membership query over time-decaying windows”, Proceedings IEEE INFOCOM
2013. The paper compares its structure, two hash tables in each of which a key has one place, with
the Timing Bloom filter (TBF). We run the same experiments with the library's `CuckooWindow` and
`TimingBloom`. The paper's figures are known to us by their description in its text only, so shapes
are compared, not values.

## Set-up

";

fn heading(facts: &Facts) -> String {
    let mut page = INTRODUCTION.to_owned();
    let replays = percent(REPLAYS);
    let _ = write!(
        page,
        "- A window is the last n arrivals. Each arrival is first asked for, then remembered. An \
         answer “present” for a key not in the window is a false positive; the rate is their share \
         of the questions about such keys, counted once two windows have passed (on traces, from \
         the start). No structure missed a key: the run stops if one does.\n\
         - Synthetic streams: integers of 1 to {UNIVERSE} by Zipf's law, z = 0 and 1; {} arrivals \
         for Figures 4–10, {} for Figures 11 and 12. n = 1,000 unless stated.\n\
         - Equal space, as the paper measures it: ζ counters of a TBF; two tables of ζ/4 positions \
         each (a stamp and the place in the other table) without signature, K = 0, or of ζ/6 with a \
         signature of K = 4 bits. The tables' CSV has the bits really allocated. The paper gives the \
         TBF K hashes; where K is 0 it must have had some other number, and we give it 4 throughout, \
         and in Figures 4–6 also the best number for its load.\n\
         - Times: the median of 400 blocks of 1,000 operations on a full window, queries and \
         updates in turn, keys hashed beforehand. On {}.\n",
        facts.get("Space z = 0 arrivals"),
        facts.get("Signature z = 0 arrivals"),
        facts.get("processor"),
    );
    let _ = writeln!(
        page,
        "- Traces, n = {TRACE_WINDOW}, each run 64 times with other hash functions. None of the \
         paper's is to be had; ours stand in. *Caching*: the URLs of one day of NASA's web server \
         ({} requests, {} URLs); a page that is not in the cache is fetched and kept, one that is \
         there is not renewed. *Attack*: the same requests, whole ({} distinct), with {replays} of \
         the arrivals replays of one of the last {TRACE_WINDOW}; the paper keeps HTML pages only, \
         which in our one day would be less than one window. *Wall posts*: messages among students \
         (CollegeMsg, {} messages, {} people); whose page it is counts as seen, asked is whether \
         the writer has had posts lately. The paper does not state ζ for the traces; 20,000 is what \
         it gives for Figure 14.",
        facts.get("Traces caching arrivals"),
        facts.get("Traces caching keys"),
        facts.get("Traces attack keys"),
        facts.get("Traces wall posts arrivals"),
        facts.get("Traces wall posts keys"),
    );
    let scale = facts.get("scale");
    if scale != "1" {
        let _ = write!(page, "\n**Streams and repetitions are scaled by {scale}.**\n");
    }
    page
}
