//! `lately watch`: the records whose key is in one of many intervals.

use crate::brokers::BrokerArguments;
use crate::input::InputArguments;
use crate::notes::{self, NoteArguments};
use crate::output::{Opener, is_dash};
use crate::place::Place;
use crate::progress::Messages;
use crate::ranges::{self, NumberArguments};
use crate::run::{self, Begun, Done, Job};
use crate::{Failure, many};
use clap::Args;
use lately::Digester;
use lately_stream::judge::class::Class;
use lately_stream::judge::watch::Watcher;
use lately_stream::number::NumberReader;
use lately_stream::read::{Looked, Source};
use lately_stream::write::output::Output;
use lately_stream::write::sink::Sink;
use lately_stream::write::summary;
use serde_json::{Value, json};
use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;

/// Forward the records whose key is in one of many intervals
///
/// The reverse of `lately index` and `lately ask`: there, records are remembered and intervals are
/// asked about; here, the intervals are known beforehand and the records pass by. The answers are exact:
/// no record is remembered, and overlapping intervals are merged.
///
/// Each record ends in exactly one class: inside (forwarded unchanged), outside (dropped), missing_key
/// (its key is absent or cannot be read as requested; dropped, counted and reported), invalid
/// (unreadable; dropped). Header lines and comments are forwarded.
#[derive(Args)]
#[command(after_help = "\
Examples:
  lately watch dns.log --key id.orig_h --key-format ip --ranges watchlist.txt
  lately watch reads.csv --key epc --ranges products.txt > of-those-products.csv
  tail -F app.log | lately watch --format ndjson --key id --ranges <(echo 1000..1999)

A file of intervals has one per line, `#` begins a comment:
  1000..1999                              # both ends are included; either may be left out
  10.1.0.0/16                             # a block of addresses
  urn:epc:idpat:sgtin:0614141.812345.*    # all tags of a product, whatever their filter value
  3034257BF7*                             # EPCs that begin with these hex digits
  4711                                    # a single key")]
pub struct Arguments {
    /// Inputs, read in order; `-` or none means standard input
    files: Vec<String>,

    /// The file of intervals, one per line; `-` means standard input
    #[arg(long, value_name = "FILE")]
    ranges: String,

    #[command(flatten)]
    input: InputArguments,

    #[command(flatten)]
    number: NumberArguments,

    #[command(flatten)]
    output: WatchOutput,

    /// Threads that parse [default: one per core]
    #[arg(long, value_name = "COUNT", value_parser = crate::arguments::threads)]
    threads: Option<usize>,
}

#[derive(Args)]
#[command(next_help_heading = "Output")]
struct WatchOutput {
    /// Write forwarded records to this file [default: standard output]. An existing file is replaced when
    /// the first input is read. This also holds for the files below
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write records outside all intervals to this file
    #[arg(long, value_name = "FILE")]
    others: Option<PathBuf>,

    /// Write records without a usable key to this file
    #[arg(long, value_name = "FILE")]
    missing: Option<PathBuf>,

    /// Write invalid records to this file: input, line, reason and the record, separated by tabs
    #[arg(long, value_name = "FILE")]
    invalid: Option<PathBuf>,

    #[command(flatten)]
    notes: NoteArguments,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    run::run(&Watch { arguments, lines: Cell::new(0) })
}

/// A run of the subcommand.
struct Watch<'a> {
    arguments: &'a Arguments,
    /// Lines of the file of intervals.
    lines: Cell<usize>,
}

impl Job for Watch<'_> {
    type Judge = Watcher;

    const MESSAGES: Messages = Messages {
        invalid: "the first invalid record, dropped",
        missing: "the first record without a usable key, dropped",
        late: "",
        skewed: "",
        forgotten: "",
        refused: "",
        done: Class::Inside,
    };

    fn files(&self) -> &[String] {
        &self.arguments.files
    }

    fn threads(&self) -> Option<usize> {
        self.arguments.threads
    }

    fn brokers(&self) -> &BrokerArguments {
        &self.arguments.input.brokers
    }

    fn notes(&self) -> &NoteArguments {
        &self.arguments.output.notes
    }

    fn writes_to_stdout(&self) -> bool {
        self.arguments.output.output.as_deref().is_none_or(is_dash)
    }

    fn places(&self) -> Result<Vec<Place>, Failure> {
        let output = &self.arguments.output;
        let others = [
            ("--others", &output.others),
            ("--missing", &output.missing),
            ("--invalid", &output.invalid),
        ];
        let others = Place::outputs(others, "standard output is for forwarded records; ")?;
        let main = Place::main(output.output.as_deref());
        let ranges = Place::input(&self.arguments.ranges);
        Ok(ranges.into_iter().chain(main).chain(others).collect())
    }

    fn look(&self, stop: &dyn Fn() -> bool) -> Result<Option<Looked>, Failure> {
        let arguments = self.arguments;
        if arguments.ranges == Source::STDIN {
            return Ok(None);
        }
        arguments.number.look(&arguments.input, &arguments.files, stop)
    }

    fn begin(&self) -> Result<Begun<Watcher>, Failure> {
        let arguments = self.arguments;
        let from_stdin =
            |files: &[String]| files.is_empty() || files.iter().any(|name| name == Source::STDIN);
        if arguments.ranges == Source::STDIN && from_stdin(&arguments.files) {
            return Err(Failure::Usage(
                "--ranges -: standard input is an input already; name a file for one of them"
                    .into(),
            ));
        }
        let mut options = arguments.input.options(Digester::new(0), false)?;
        let format = arguments.number.format(&arguments.input, &arguments.files)?;
        options.numbers = Some(format);
        options.fields_wanted |= arguments.number.is_found(&arguments.input, format);
        let reader = NumberReader::new(format, Arc::clone(&options.read_time));
        let questions = ranges::read(&arguments.ranges, &reader)?;
        self.lines.set(questions.len());
        let intervals = questions.into_iter().flat_map(|one| one.intervals).collect();
        let judge = Watcher::new(intervals);
        Ok(Begun { judge, options, hold: None, state: None, resumes: false })
    }

    fn sink(&self, opener: &mut Opener) -> Result<Sink, Failure> {
        let output = &self.arguments.output;
        let main = opener.main(output.output.as_deref())?;
        let missing = opener.maybe(output.missing.as_deref())?;
        Ok(Sink::new(main)
            .dropped(opener.maybe(output.others.as_deref())?)
            .missing(Some(missing.unwrap_or_else(Output::none)))
            .invalid(opener.maybe(output.invalid.as_deref())?))
    }

    fn warn(&self, done: &Done<'_, Watcher>) {
        let (report, output) = (&done.pipeline.report, &self.arguments.output);
        notes::invalid(report, "forwarded", output.invalid.is_some());
        notes::without_key(report, "forwarded", output.missing.is_some());
    }

    fn summarise(&self, done: &Done<'_, Watcher>) {
        let report = &done.pipeline.report;
        let records = many(report.counts.read(), "record");
        eprintln!("{records}: {}", summary::classes_in_words::<Watcher>(report));
        eprintln!(
            "{}; {} of {}, exact",
            notes::throughput(report, done.took, true),
            many(done.pipeline.judge.intervals().len() as u64, "interval"),
            many(self.lines.get() as u64, "line"),
        );
    }

    fn numbers(&self) -> Vec<(&'static str, Value)> {
        vec![("lines", json!(self.lines.get()))]
    }
}
