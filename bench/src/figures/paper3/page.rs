//! Plots and the results page, from the tables.

use super::claims::{Figure, equation_22, table_2_rows};
use super::structures::{BITS, FPR, Setup, Structure, TIGHTENING};
use super::{COLUMNS, Experiment};
use crate::figures::facts::Facts;
use crate::figures::report::{self, Section, chance, time};
use crate::figures::sheet::Sheet;
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
    let mut page = heading(&Facts::read(folder)?);
    for figure in Figure::all() {
        let sheet = Sheet::read(&folder.join(figure.experiment.file()), &COLUMNS)?;
        page += &section(&figure, &sheet).write(folder)?;
    }
    let keys = Sheet::read(&folder.join(Experiment::Keys.file()), &COLUMNS)?;
    page += &sliced(&keys, &Sheet::read(&folder.join(Experiment::Slices.file()), &COLUMNS)?);
    page += &formulas(&keys);
    report::write(folder, &page)
}

fn section(figure: &Figure, sheet: &Sheet) -> Section {
    let line =
        |structure: Structure| report::line(structure.name(), figure.points(sheet, structure));
    let lines: Vec<Line> =
        Structure::ALL.map(line).into_iter().filter(|line| !line.points.is_empty()).collect();
    let x = match figure.experiment {
        Experiment::Keys | Experiment::Slices => "keys",
        Experiment::Hashes => "hashes",
        Experiment::PartHashes => "k1",
    };
    let numbers = match figure.plot {
        None => table_2(sheet),
        Some(_) if figure.y == "fpr" => rates_and_bits(figure, sheet, x, &lines),
        Some(_) => report::numbers(x, plain, &lines, time),
    };
    Section {
        title: figure.title.to_owned(),
        plots: figure
            .plot
            .map(|file| (file.to_owned(), chart(figure, lines)))
            .into_iter()
            .collect(),
        claim: figure.claim.to_owned(),
        checks: (figure.checks)(sheet),
        why: figure.why.to_owned(),
        numbers,
    }
}

/// The rate of every structure at every place, with the bits it takes for each key.
fn rates_and_bits(figure: &Figure, sheet: &Sheet, x: &str, lines: &[Line]) -> String {
    let mut places: Vec<f64> = sheet.rows().map(|row| row.number(figure.x())).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let cell = |line: &Line, place: f64| {
        let wanted = [("structure", line.name.as_str())];
        let rows = sheet.of(&wanted);
        let row = rows.iter().find(|row| row.number(figure.x()) == place);
        row.map_or(String::new(), |row| {
            format!("{} ({:.1})", chance(row.number("fpr")), row.number("bits_a_key"))
        })
    };
    let head: Vec<&str> =
        std::iter::once(x).chain(lines.iter().map(|line| line.name.as_str())).collect();
    let rows = places.iter().map(|&place| {
        let cells = lines.iter().map(|line| cell(line, place));
        std::iter::once(plain(place)).chain(cells).collect()
    });
    "False positive rate, and in brackets bits per key:\n\n".to_owned()
        + &report::table(&head, rows)
}

/// The SBF that grows by slices of 1,600 bits, next to the one that doubles.
fn sliced(keys: &Sheet, slices: &Sheet) -> String {
    let head = ["keys", "fpr", "bits per key", "slices", "hit", "miss", "SBF: fpr", "bits per key"];
    let rows = slices.rows().map(|row| {
        let other = keys.of(&[("structure", "SBF"), ("keys", row.text("keys"))]);
        let of = |column| other.first().map_or(f64::NAN, |row| row.number(column));
        vec![
            row.text("keys").to_owned(),
            chance(row.number("fpr")),
            format!("{:.1}", row.number("bits_a_key")),
            row.text("parts").to_owned(),
            time(row.number("hit_ns")),
            time(row.number("miss_ns")),
            chance(of("fpr")),
            format!("{:.1}", of("bits_a_key")),
        ]
    });
    format!("{SLICED}{}", report::table(&head, rows))
}

/// Equation 22 against what was measured.
fn formulas(keys: &Sheet) -> String {
    let head = ["b", "keys", "slices per bucket", "equation 22", "measured", "bits per key"];
    let of = |buckets: u32| {
        let rows = keys.of(&[("structure", Structure::PaperSlices(buckets).name())]);
        rows.into_iter()
            .map(|row| {
                vec![
                    buckets.to_string(),
                    row.text("keys").to_owned(),
                    row.text("parts").to_owned(),
                    chance(equation_22(buckets, row.number("parts"))),
                    chance(row.number("fpr")),
                    format!("{:.1}", row.number("bits_a_key")),
                ]
            })
            .collect::<Vec<_>>()
    };
    format!("{FORMULAS}{}", report::table(&head, [4, 16].into_iter().flat_map(of)))
}

const SLICED: &str = "
## The SBF of the paper's experiment

In section 4 the SBF grows by slices of m/k = 1,600 bits, not by doubling. With the tightening of its own
section 2.2 that cannot be: slice i takes log2(1/(P0·ρ^i)) bits per key, so it holds ever fewer keys, and all
slices together hold about 4,700·ln(1 + i/40) of them: for the 24,597 keys of the log more than 7,000 slices, the
last of which have more hashes than a partition has bits. So we give each slice four hashes and let it be full
at half its bits: an error rate of 1/16 each, which adds up. The SBF that doubles stands next to it:

";

const FORMULAS: &str = "
## Equation 22, evaluated

F = (1 − Π(1 − f_s))·(1 − e^(−kN/b))^k with f_s = ((1 − e^(−k·N_s/m_s))^k)^b. The second factor is 1 as soon as there are
many more keys than buckets. Slices are full at half their bits, so f_s = 2^(−4b), with as many slices as a bucket
had in the measurement. The formula takes the b-th power as if a key were looked for in all buckets, at independent
positions, and in slices of the same number; it is looked for in k of them, at the same positions, and in *some* slice of
each, so the measured rate is larger by orders of magnitude. By Table 2's size, b(m̂ + l) with m̂ = m/b + (slices − 1)·m/(k·k1),
the filter has the bits that we measured (without the counters, l; with b = 16 a few more, as the slices of the bucket that has most are counted).

";

fn table_2(sheet: &Sheet) -> String {
    let head = [
        "structure",
        "keys",
        "bits",
        "by formula",
        "bits per key",
        "filters, or slices per bucket",
        "fpr",
        "hit",
        "miss",
        "insert",
    ];
    report::table(&head, table_2_rows(sheet))
}

fn chart(figure: &Figure, lines: Vec<Line>) -> Chart {
    let axis = |label: &str, scale, tick| Axis { label: label.to_owned(), scale, tick };
    Chart {
        title: figure.title.to_owned(),
        x: match figure.experiment {
            Experiment::Keys | Experiment::Slices => axis("keys inserted, N", Scale::Log, si),
            Experiment::Hashes => axis("hashes per key (ABF: k + k1)", Scale::Counting, plain),
            Experiment::PartHashes => axis("k1", Scale::Counting, plain),
        },
        y: match figure.y {
            "fpr" => axis("false positive rate", Scale::Log, plain),
            _ => axis("time of a query in ns", Scale::Log, plain),
        },
        lines,
    }
}

const INTRODUCTION: &str = "# The Accommodative Bloom filter (2018), Figures 6–9 and Table 2

<!-- Written by `lately-bench figures paper3`; change bench/src/figures/paper3. -->

A. Singh, S. Garg, S. Batra, N. Kumar, J. J. P. C. Rodrigues, “Bloom filter based optimization
scheme for massive data handling in IoT environment”, Future Generation Computer Systems, 2018. The
paper compares the Dynamic (DBF), the Scalable (SBF) and its own Accommodative Bloom filter (ABF) on a
growing set. We run the same experiments with the library's structures, and with an ABF that adds
slices as the paper says, which the library does not ship. We know the paper's figures only from
their description in its text, so shapes are compared, not values.

## Setup

";

fn heading(facts: &Facts) -> String {
    let mut page = INTRODUCTION.to_owned();
    let logged = facts.get("logged keys");
    let keys = match facts.get("missing") {
        "" | "?" => format!(
            "the {logged} distinct (source, port, destination, transaction, name, type) of a Zeek \
             DNS log, then generated ones"
        ),
        missing => format!("generated ones only, as the log is missing ({missing})"),
    };
    let _ = write!(
        page,
        "- Every structure begins with {BITS} bits and aims at a false positive rate of {FPR}; \
         k = k1 = 4 unless varied.\n\
         - DBF: filters of {BITS} bits, full when four hashes reach that rate ({} keys). \
         The library's DBF does not insert a key that it already finds, rightly or not: as its rate rises it \
         inserts fewer keys, and has fewer filters than the paper's formula says.\n\
         - SBF: each filter is twice as large as the previous one and has {TIGHTENING} times its error rate, so that the rates \
         add up to {FPR}; the number of hashes follows from the rate. The paper gives no capacity: we give the \
         first filter the number of keys ({}) that fills half of {BITS} bits at its error rate P0.\n\
         - In Figure 6, which varies the hashes, filters of DBF and SBF are full when half of their bits are set, \
         since otherwise more hashes would not fill them sooner, and an SBF's first error rate is 2^-k: their rates \
         are those of that number of hashes, not {FPR}. The figure begins with 4 hashes: with 2, an SBF's error rates would \
         add up to more than 1. For an ABF, k hashes mean k/2 buckets and k/2 bits in each.\n\
         - ABF with the paper's slices: b = 4 (b = k is our inference from the paper's 400 bits per \
         slice) and b = 16; slices of 1,600/k1 bits, with a new one at half fill; the same positions in \
         each bucket; some slice of each chosen bucket must have all k1 bits (if all slices must, as \
         printed, nearly every key is lost after a slice is added). ABF with our slices: b = 16, see \
         `AccommodativeBloom`.\n\
         - Keys: {keys}. Lookups are of all inserted keys, none of which may be lost (the run aborts if \
         one is), and of 200,000 keys that were not inserted.\n\
         - Bits are allocated bits, including the lists of filters and slices. The lists of our ABF matter \
         while the filter is small.\n\
         - Times: median of blocks of 200 queries, with keys hashed in advance; half of the queries are \
         for inserted keys. An insertion into DBF, SBF and our ABF includes a lookup. Measured on {}; its \
         other core was busy.\n\
         - The paper's data set (team, source address, URL; 400,468 entries) is not available.\n",
        Setup::standard(Structure::Dynamic).filter_capacity(),
        Setup::standard(Structure::Scalable).scalable_capacity(),
        facts.get("processor"),
    );
    let scale = facts.get("scale");
    if scale != "1" {
        let _ = write!(page, "\n**Numbers of keys are scaled by {scale}.**\n");
    }
    page
}
