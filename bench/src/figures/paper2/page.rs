//! Plots and the results page, from the tables.

use super::claims::{Figure, Quantity, Series};
use super::streams::{REPLAYS, UNIVERSE};
use super::{Experiment, TRACE_WINDOW};
use crate::figures::facts::Facts;
use crate::figures::report::{self, Section, chance, percent, time};
use crate::figures::sheet::{Row, Sheet};
use crate::plot::{Axis, Chart, Line, Scale, plain, si};
use std::error::Error;
use std::fmt::Write;
use std::path::Path;

/// Reads the tables in `folder`, writes plots next to them, and the page next to the folder, under
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
        if figure.number == 10 {
            let list = Experiment::List;
            page += &lists(&sheet, &Sheet::read(&folder.join(list.file()), list.columns())?);
        }
    }
    let space = Sheet::read(&folder.join(Experiment::Space.file()), Experiment::Space.columns())?;
    page += &memory(&space);
    report::write(folder, &page)
}

/// Bits at the places of Figure 4, uniform numbers, against what any structure needs.
fn memory(space: &Sheet) -> String {
    let head = [
        "counters",
        "structure",
        "fpr",
        "longest list",
        "bits",
        "× bound",
        "× the paper's bound",
        "plan for this fpr",
        "× bound",
        "× the paper's bound",
    ];
    let all = space.of(&[("stream", "z = 0")]);
    let rows: Vec<_> =
        all.iter().filter(|row| ["TBF", "cuckoo"].contains(&row.text("structure"))).collect();
    let over = |row: &&Row<'_>, bits: &str, bound: &str| {
        let (bits, bound) = (row.number(bits), row.number(bound));
        // No error, no plan; and a bound of 0 says nothing.
        (bits > 0.0 && bound > 0.0 && bound.is_finite()).then_some(bits / bound)
    };
    let cell = |ratio: Option<f64>| ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.2}"));
    let cells = |row: &&Row<'_>| {
        vec![
            row.text("counters").to_owned(),
            format!("{}, {}", row.text("structure"), row.text("k")),
            chance(row.number("fpr")),
            row.text("longest_overflow").to_owned(),
            row.text("bits").to_owned(),
            cell(over(row, "bits", "bound")),
            cell(over(row, "bits", "decaying_bound")),
            row.text("planned_bits").to_owned(),
            cell(over(row, "planned_bits", "bound")),
            cell(over(row, "planned_bits", "decaying_bound")),
        ]
    };
    let span = |structure: &str, bits: &str| {
        let of = rows.iter().copied().filter(|row| row.text("structure") == structure);
        let ratios: Vec<f64> = of.filter_map(|row| over(&row, bits, "bound")).collect();
        let (least, most) = report::extremes(&ratios);
        format!("{least:.2} to {most:.2}")
    };
    let mut text = "\n## Memory: allocated bits compared with the lower bounds\n\n".to_owned();
    let _ = write!(
        text,
        "Equal numbers of counters are not equal numbers of bits: the paper does not count the overflow list, and \
         an empty position costs it O(1) bits thanks to a variable-bit-length array. The table shows the bits \
         allocated at each point of Figure 4, z = 0 (the CSV files of the other figures have the same columns, with 0 and inf where no error occurred): \
         those of the measured structure, including its list, with room for an entry in every position; \
         and those of the blocked layout that the library plans for n = 1,000 and the measured rate, in \
         which an empty position costs one bit. The bound is n·(log 1/ε + log n); the paper's own is \
         (n - ε·|U|)·log(n - ε·|U|), here with |U| = {UNIVERSE}, which omits log 1/ε and is void where ε·|U| ≥ n. The \
         TBF takes {} times the bound, the raw cuckoo tables {} times, the plan for the cuckoo \
         tables' rates {} times. At low rates the cuckoo structure is far better; at high rates its plan has no \
         signature bits left to save. It is not near the bound: its expected constant time requires four \
         positions for each key, spare room in blocks, and entries that store their other \
         position.\n\n",
        span("TBF", "bits"),
        span("cuckoo", "bits"),
        span("cuckoo", "planned_bits"),
    );
    text + &report::table(&head, rows.iter().map(cells))
}

/// Our stash against the paper's list, at the places of Figures 9 and 10.
fn lists(stash: &Sheet, list: &Sheet) -> String {
    let head = [
        "window",
        "K",
        "keys in the stash",
        "its fpr",
        "in the list",
        "its fpr",
        "list's fpr ÷ stash's",
    ];
    let rows = list.rows().map(|listed| {
        let (window, k) = (listed.text("window"), listed.text("k"));
        let ours = stash.of(&[("structure", "cuckoo"), ("window", window), ("k", k)]);
        let of = |column| ours.first().map_or(f64::NAN, |row| row.number(column));
        let length = listed.number("longest_overflow");
        vec![
            window.to_owned(),
            k.to_owned(),
            plain(of("longest_overflow")),
            chance(of("fpr")),
            plain(length),
            chance(listed.number("fpr")),
            format!("{:.2}", listed.number("fpr") / of("fpr")),
        ]
    });
    format!("{LISTS}{}", report::table(&head, rows))
}

const LISTS: &str = "
## Our stash and the paper's list

The paper keeps keys without a position in a list of whole keys, which never errs; a query compares each of
them. Our stash keeps both positions and the signature of such a key, as a position would, in order, so that
it takes less space and a query takes O(log) time, and errs as the tables do. So while the list is long, the
paper's rate is lower, by about the share of keys in it. The same streams and
sizes as in Figures 9 and 10, z = 0:

";

/// The streams a figure has a plot for.
fn streams(experiment: Experiment) -> &'static [&'static str] {
    match experiment {
        Experiment::Space => &["z = 0", "z = 1"],
        Experiment::Window | Experiment::List | Experiment::Signature => &["z = 0"],
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
            let mut lines = lines_of(figure.series(sheet, stream, quantity));
            if quantity == Quantity::Fpr {
                let wrong = figure.columns(sheet, stream, quantity, "false_positives");
                lines = lines
                    .into_iter()
                    .zip(wrong)
                    .map(|(line, wrong)| report::bars(line, &report::heights(&wrong.points)))
                    .collect();
            }
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
        if matches!(figure.number, 10 | 13) {
            let _ = write!(numbers, "{stream}, allocated bits, including the overflow list:\n\n");
            let lines = lines_of(figure.columns(sheet, stream, Quantity::Fpr, "bits"));
            numbers += &report::numbers(figure.x(), plain, &lines, plain);
            numbers.push('\n');
        }
    }
    let missing = facts.get(&format!("{:?} missing", figure.experiment));
    if !matches!(missing, "" | "?") {
        let _ = writeln!(numbers, "Not run, because the data is missing: {missing}.");
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

fn lines_of(series: Vec<Series>) -> Vec<Line> {
    series.into_iter().map(|series| report::line(series.name, series.points)).collect()
}

fn label(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Fpr => "false positive rate",
        Quantity::Update => "time of an update in ns",
        Quantity::Query => "time of a query in ns",
        Quantity::Overflow => "longest overflow list, in keys",
        Quantity::AgeError => "share of ages with a larger error",
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
            Experiment::Window | Experiment::List => {
                axis("window in arrivals, n", Scale::Linear, si)
            }
            Experiment::Signature => {
                axis("hashes k, or bits of a signature K", Scale::Counting, plain)
            }
            Experiment::Ages => axis("error in arrivals", Scale::Log, si),
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

<!-- Written by `lately-bench figures paper2`; change bench/src/figures/paper2. -->

“Near-optimal approximate membership query over time-decaying windows”, Proceedings IEEE INFOCOM
2013. The paper compares its structure, two hash tables in each of which a key has one position, with
the Timing Bloom filter (TBF). We run the same experiments with the library's `CuckooWindow` and
`TimingBloom`. We know the paper's figures only from their description in its text, so shapes
are compared, not values.

## Setup

";

fn heading(facts: &Facts) -> String {
    let mut page = INTRODUCTION.to_owned();
    let replays = percent(REPLAYS);
    let _ = write!(
        page,
        "- A window holds the last n arrivals. Each arrival is looked up and then inserted. An \
         answer “present” for a key not in the window is a false positive; the rate is their share \
         of the lookups of such keys, counted after two windows have passed (on traces, from \
         the start). No structure missed a key: the run aborts if one does.\n\
         - Synthetic streams: integers from 1 to {UNIVERSE} by Zipf's law, z = 0 and 1: {} arrivals, \
         {} runs for Figures 4–10, {} arrivals, {} runs for Figures 11 and 12, each run with different \
         hash functions. n = 1,000 unless stated otherwise.\n\
         - Equal space, as the paper measures it: ζ counters of a TBF; two tables of ζ/4 positions \
         each (a stamp and the position in the other table) without signature, K = 0, or of ζ/6 with a \
         signature of K = 4 bits. The last \
         section has the bits actually allocated. The paper gives the \
         TBF K hashes; where K is 0 it must have used some other number. We always give it 4, \
         and in Figures 4–6 also the best number for its load.\n\
         - Times: the median of 400 blocks of 1,000 operations on a full window, alternating queries and \
         updates, with keys hashed in advance; the machine's other core was busy. Measured on {}.\n",
        facts.get("Space z = 0 arrivals"),
        facts.get("Space z = 0 runs"),
        facts.get("Signature z = 0 arrivals"),
        facts.get("Signature z = 0 runs"),
        facts.get("processor"),
    );
    let _ = writeln!(
        page,
        "- Traces, n = {TRACE_WINDOW}, each run {} times with different hash functions. The \
         paper's traces are not available, so we use similar ones. *Caching*: the URLs of one day of NASA's web server \
         ({} requests, {} URLs); a page that is not in the cache is fetched and inserted, a cached page \
         is not renewed. *Attack*: the same requests as whole records ({} distinct), where {replays} of \
         the arrivals are replays of one of the last {TRACE_WINDOW}; the paper keeps only HTML pages, \
         which in our single day would be less than one window. *Wall posts*: messages among students \
         (CollegeMsg, {} messages, {} people); the receiver of a message counts as seen, and the query is whether \
         its sender has received messages lately. The paper does not state ζ for the traces; 20,000 is what \
         it gives for Figure 14. Distinct keys in the last {TRACE_WINDOW} arrivals at the end: {} for \
         caching, {} for the attack, {} for wall posts.",
        facts.get("Traces caching runs"),
        facts.get("Traces caching arrivals"),
        facts.get("Traces caching keys"),
        facts.get("Traces attack keys"),
        facts.get("Traces wall posts arrivals"),
        facts.get("Traces wall posts keys"),
        facts.get("Traces caching live"),
        facts.get("Traces attack live"),
        facts.get("Traces wall posts live"),
    );
    let scale = facts.get("scale");
    if scale != "1" {
        let _ = write!(page, "\n**Streams and repetitions are scaled by {scale}.**\n");
    }
    page
}
