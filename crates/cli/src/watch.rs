//! `lately watch`: the records whose key is in one of many intervals.

use crate::input::InputArguments;
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
use std::path::{Path, PathBuf};
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

    /// Write the numbers of the run as JSON to this file, replacing it; `-`: one line on standard
    /// error instead of the summary for people
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,

    /// Exit with status 3 if there were invalid records
    #[arg(long)]
    strict: bool,

    /// No summary, no progress bar; warnings only
    #[arg(long, short)]
    quiet: bool,
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
    let summary = SummaryFile::open(output.summary.as_deref())?;
    // What two names lead to is sure only now that all of it is there.
    place::refuse_clashes(&places)?;

    let mut pipeline = Pipeline::new(Watcher::new(intervals), sink, None, None);
    let source = Source::new(files.clone(), options);
    let to_stdout = output.output.as_deref().is_none_or(is_dash);
    let live = source.is_live();
    let mut progress =
        Progress::new(&files, to_stdout, output.quiet, signals, opener.done(), live, WORDS);
    let result = pipeline.run(source, arguments::parsers(arguments.threads), &mut progress);
    progress.finish();
    let nothing_read = pipeline.report.counts.read() == 0 && !pipeline.report.inputs.is_empty();
    if !nothing_read {
        progress.begins.begin()?;
    }

    let took = started.elapsed();
    arguments.tell(&pipeline, lines, nothing_read, took);
    let numbers = numbers(&pipeline, lines, took);
    SummaryFile::write(summary, output.summary.is_some(), &numbers)?;
    result.map_err(|error| Failure::Trouble(error.to_string()))?;
    arguments.failure(&pipeline).map_or(Ok(()), Err)
}

impl Arguments {
    /// All files of the run.
    fn places(&self, files: &[String]) -> Result<Vec<Place>, Failure> {
        let named = files.iter().chain([&self.ranges]).filter(|name| *name != Source::STDIN);
        let mut places: Vec<_> = named.map(|name| Place::input(name)).collect();
        if files.iter().chain([&self.ranges]).any(|name| name == Source::STDIN) {
            places.extend(Place::stdin());
        }
        places.extend(Place::stderr());
        let output = &self.output;
        match &output.output {
            Some(path) if !is_dash(path) => places.push(Place::output("--output", path)),
            _ => places.extend(Place::stdout()),
        }
        let others = [
            ("--others", &output.others),
            ("--missing", &output.missing),
            ("--invalid", &output.invalid),
        ];
        for (flag, path) in others {
            let Some(path) = path else { continue };
            if is_dash(path) {
                return Err(Failure::Usage(format!(
                    "{flag} -: standard output is for what is passed on; name a file"
                )));
            }
            places.push(Place::output(flag, path));
        }
        let summary = output.summary.iter().filter(|path| !is_dash(path));
        places.extend(summary.map(|path| Place::output("--summary", path)));
        Ok(places)
    }

    /// Prints warnings, and the summary unless it is not wanted.
    fn tell(&self, pipeline: &Pipeline<Watcher>, lines: usize, nothing: bool, took: Duration) {
        let report = &pipeline.report;
        for error in &report.inputs {
            eprintln!("lately: {error}");
        }
        if report.closed {
            return;
        }
        let counts = &report.counts;
        let output = &self.output;
        let kinds = [
            (counts.invalid, "invalid record", "", &report.invalid, output.invalid.is_some()),
            (
                counts.missing_key,
                "record",
                " without a usable key",
                &report.missing,
                output.missing.is_some(),
            ),
        ];
        for ((count, noun, how, examples, kept), flag) in
            kinds.into_iter().zip(["invalid", "missing"])
        {
            if count == 0 {
                continue;
            }
            eprintln!("lately: {}{how}, such as", many(count, noun));
            examples.iter().for_each(|example| eprintln!("  {example}"));
            if !kept {
                eprintln!("  they were not passed on; --{flag} FILE keeps them");
            }
        }
        for input in pipeline.sink.strangers() {
            eprintln!(
                "lately: {input} has another header line than the first input; its records are in the output under the names of the first"
            );
        }
        if output.quiet || output.summary.as_deref() == Some(Path::new("-")) || nothing {
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

    /// The exit status that the run deserves.
    fn failure(&self, pipeline: &Pipeline<Watcher>) -> Option<Failure> {
        let report = &pipeline.report;
        crate::inputs_failed(&report.inputs, report.counts.read()).or_else(|| {
            (self.output.strict && report.counts.invalid > 0).then_some(Failure::Strict)
        })
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
