//! `lately watch`: the records whose key is in one of many intervals.

use crate::input::InputArguments;
use crate::notes::{self, NoteArguments};
use crate::output::{Opener, SummaryFile, is_dash};
use crate::place::{self, Place};
use crate::progress::{Progress, Words};
use crate::ranges::{self, NumberArguments};
use crate::signals::Signals;
use crate::{Failure, arguments, many};
use clap::Args;
use lately::Digester;
use lately_stream::number::{Intervals, NumberReader};
use lately_stream::pipeline::Pipeline;
use lately_stream::quantity;
use lately_stream::sink::{Output, Sink};
use lately_stream::source::Source;
use lately_stream::watch::Watcher;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Pass on the records whose key is in one of many intervals
///
/// The other way round than `lately ask`: there many records are remembered and intervals are asked
/// for, here many intervals are, and records pass by. Exact: nothing is remembered of the records, and
/// overlapping intervals are merged.
///
/// A record ends in exactly one class: inside (passed on, unchanged), outside (kept back), missing_key
/// (its key is absent or cannot be read as asked: kept back, counted and told of), invalid (unreadable:
/// a dead letter). Header lines and comments are passed on.
#[derive(Args)]
#[command(after_help = "\
Examples:
  lately watch dns.log --key id.orig_h --key-format ip --ranges watchlist.txt
  lately watch reads.csv --key epc --ranges products.txt > of-those-products.csv
  tail -F app.log | lately watch --format ndjson --key id --ranges <(echo 1000..1999)

A file of intervals has one a line, `#` begins a comment:
  1000..1999                              # both ends are in it; either may be left out
  10.1.0.0/16                             # a block of addresses
  urn:epc:idpat:sgtin:0614141.812345.*    # all tags of a product, whatever their filter value
  3034257BF7*                             # EPCs that begin with these hex digits
  4711                                    # a single key")]
pub struct Arguments {
    /// Inputs in order; `-` or none: standard input
    files: Vec<String>,

    /// The file of intervals, one a line; `-`: standard input
    #[arg(long, value_name = "FILE")]
    ranges: String,

    #[command(flatten)]
    input: InputArguments,

    #[command(flatten)]
    number: NumberArguments,

    #[command(flatten)]
    output: WatchOutput,

    /// Threads that parse [default: one a core]
    #[arg(long, value_name = "COUNT")]
    threads: Option<usize>,
}

#[derive(Args)]
#[command(next_help_heading = "Output")]
struct WatchOutput {
    /// Where records are passed on to [default: standard output]. A file that is there is
    /// replaced, as soon as there is something to replace it with. So are the files below
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write the records outside to this file
    #[arg(long, value_name = "FILE")]
    others: Option<PathBuf>,

    /// Write records without a usable key to this file
    #[arg(long, value_name = "FILE")]
    missing: Option<PathBuf>,

    /// Write dead letters to this file: input, line, reason and the record, separated by tabs
    #[arg(long, value_name = "FILE")]
    invalid: Option<PathBuf>,

    #[command(flatten)]
    notes: NoteArguments,
}

/// What is told while it runs.
const WORDS: Words = Words {
    invalid: "the first invalid record, kept back",
    missing: "the first record without a usable key, kept back",
    late: "",
    skewed: "",
    forgotten: "",
    refused: "",
    done: "inside",
};

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let started = Instant::now();
    let signals = Signals::listen()?;
    let files = if arguments.files.is_empty() { vec!["-".into()] } else { arguments.files.clone() };
    if arguments.ranges == Source::STDIN && files.iter().any(|name| name == Source::STDIN) {
        return Err(Failure::Usage(
            "--ranges -: standard input is an input already; name a file for one of them".into(),
        ));
    }
    let mut options = arguments.input.options(Digester::new(0), false)?;
    let format = arguments.number.format(&arguments.input)?;
    options.numbers = Some(format);
    let reader = NumberReader::new(format, Arc::clone(&options.read_time));
    let questions = ranges::read(&arguments.ranges, &reader)?;
    let lines = questions.len();
    let intervals: Intervals = questions.into_iter().flat_map(|one| one.intervals).collect();

    let places = arguments.places(&files)?;
    place::refuse_clashes(&places)?;
    let output = &arguments.output;
    let mut opener = Opener::new(false);
    let main = opener.main(output.output.as_deref())?;
    let missing = opener.maybe(output.missing.as_deref())?;
    let sink = Sink::new(main)
        .duplicates(opener.maybe(output.others.as_deref())?)
        .missing(Some(missing.unwrap_or_else(Output::none)))
        .invalid(opener.maybe(output.invalid.as_deref())?);
    let summary = SummaryFile::open(output.notes.summary.as_deref())?;
    // What two names lead to is sure only now that all of it is there.
    place::refuse_clashes(&places)?;

    let mut pipeline = Pipeline::new(Watcher::new(intervals), sink, None, None);
    let source = Source::new(files.clone(), options);
    let to_stdout = output.output.as_deref().is_none_or(is_dash);
    let live = source.is_live();
    let mut progress =
        Progress::new(&files, to_stdout, output.notes.quiet, signals, opener.done(), live, WORDS);
    let result = pipeline.run(source, arguments::parsers(arguments.threads), &mut progress);
    let nothing_read = progress.end(&pipeline.report)?;

    let took = started.elapsed();
    arguments.tell(&pipeline, lines, nothing_read, took);
    let numbers = numbers(&pipeline, lines, took);
    SummaryFile::write(summary, output.notes.summary.is_some(), &numbers)?;
    result.map_err(|error| Failure::Trouble(error.to_string()))?;
    arguments.output.notes.failure(&pipeline.report).map_or(Ok(()), Err)
}

impl Arguments {
    /// All files of the run.
    fn places(&self, files: &[String]) -> Result<Vec<Place>, Failure> {
        let mut places = Place::inputs(files.iter().chain([&self.ranges]));
        let output = &self.output;
        places.extend(Place::main(output.output.as_deref()));
        let others = [
            ("--others", &output.others),
            ("--missing", &output.missing),
            ("--invalid", &output.invalid),
        ];
        places.extend(Place::outputs(others, "standard output is for what is passed on; ")?);
        places.extend(Place::summary(output.notes.summary.as_deref()));
        Ok(places)
    }

    /// Prints warnings, and the summary unless it is not wanted.
    fn tell(&self, pipeline: &Pipeline<Watcher>, lines: usize, nothing: bool, took: Duration) {
        let report = &pipeline.report;
        notes::inputs(report);
        if report.closed {
            return;
        }
        let counts = &report.counts;
        let output = &self.output;
        notes::invalid(report, "passed on", output.invalid.is_some());
        notes::without_key(report, "passed on", output.missing.is_some());
        notes::mismatched_headers(&pipeline.sink);
        if !output.notes.for_people() || nothing {
            return;
        }
        let seconds = took.as_secs_f64().max(1e-9);
        eprintln!(
            "{}: {} inside, {} outside, {} missing key, {} invalid",
            many(counts.read(), "record"),
            quantity::display_count(counts.fresh),
            quantity::display_count(counts.duplicate),
            quantity::display_count(counts.missing_key),
            quantity::display_count(counts.invalid),
        );
        eprintln!(
            "{} in, {} out, {seconds:.2} s, {}/s; {} of {}, exact",
            quantity::display_bytes(counts.bytes_in),
            quantity::display_bytes(counts.bytes_out),
            quantity::display_bytes((counts.bytes_in as f64 / seconds) as u64),
            many(pipeline.judge.intervals().len() as u64, "interval"),
            many(lines as u64, "line"),
        );
    }
}

fn numbers(pipeline: &Pipeline<Watcher>, lines: usize, took: Duration) -> Value {
    let counts = &pipeline.report.counts;
    json!({
        "read": counts.read(),
        "inside": counts.fresh,
        "outside": counts.duplicate,
        "missing_key": counts.missing_key,
        "invalid": counts.invalid,
        "bytes_in": counts.bytes_in,
        "bytes_out": counts.bytes_out,
        "seconds": took.as_secs_f64(),
        "lines": lines,
        "intervals": pipeline.judge.intervals().len(),
    })
}
