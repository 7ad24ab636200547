//! `lately index`: keeps a range window over a field of a stream in a file.

use crate::arguments::{SpanArguments, TimeArguments, no_window, usage};
use crate::brokers::BrokerArguments;
use crate::input::InputArguments;
use crate::notes::{self, NoteArguments};
use crate::output::Opener;
use crate::place::Place;
use crate::progress::Messages;
use crate::ranges::NumberArguments;
use crate::run::{self, Begun, Done, Job};
use crate::{Failure, many, plan};
use clap::{ArgGroup, Args};
use lately::Digester;
use lately::range::RangeWindow;
use lately_stream::judge::Decide;
use lately_stream::judge::class::Class;
use lately_stream::number::interval_length;
use lately_stream::options::Options;
use lately_stream::quantity;
use lately_stream::read::Looked;
use lately_stream::session::{Index, IndexSpec};
use lately_stream::write::output::Output;
use lately_stream::write::sink::Sink;
use lately_stream::write::summary;
use std::path::{Path, PathBuf};

/// Remember which keys were seen lately, to answer questions about intervals of them
///
/// Reads records as `lately dedup` does and keeps the keys seen within the window (numbers, times, EPCs
/// or addresses) in a file. `lately ask` then tells whether any key of an interval, a block of
/// addresses or a product's EPCs was among them: `no`, which is certain, or `perhaps`, with the
/// probability that this is wrong. That takes about 10 to 50 bits per key, however long the intervals
/// are.
///
/// Writes no records; put `tee` before it if you need them. Each record ends in exactly one class:
/// indexed, late (behind the clock by more than --lateness), skewed (its time is too far in the
/// future), missing_key (its key is absent or cannot be read as requested), invalid (unreadable, or
/// without a time). Only indexed records are remembered; all others are counted and reported.
#[derive(Args)]
#[command(group = ArgGroup::new("span").args(["within", "last"]).required(true))]
#[command(after_help = "\
Examples:
  lately index reads.csv --key epc --within 10m --state tags.index
  lately ask tags.index --prefix 'urn:epc:idpat:sgtin:0614141.812345.*' --within 2m
  lately index dns.log --key id.orig_h --key-format ip --within 1h --interval /16 --state hosts.index
  lately ask hosts.index --prefix 10.1.0.0/16 && echo 'somebody of 10.1 was here'
  tail -F reads.csv | lately index --key epc --time timestamp --within 10m --state tags.index")]
pub struct Arguments {
    /// Inputs, read in order; `-` or none means standard input
    files: Vec<String>,

    /// Index file. Loaded if it exists; saved, if anything has changed, every --state-every, on exit, and
    /// on SIGINT, SIGTERM, SIGHUP and SIGUSR1. An existing index keeps its size and error rate. One run at a
    /// time writes it (FILE.lock is locked meanwhile); any number may ask
    #[arg(long, value_name = "FILE")]
    state: PathBuf,

    #[command(flatten)]
    input: InputArguments,

    #[command(flatten)]
    number: NumberArguments,

    #[command(flatten)]
    span: IndexSpan,

    #[command(flatten)]
    time: TimeArguments,

    #[command(flatten)]
    size: SizeArguments,

    #[command(flatten)]
    output: IndexOutput,

    /// How often to save the file
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration, default_value = "30s")]
    state_every: u64,

    /// Threads that parse [default: one per core]
    #[arg(long, value_name = "COUNT", value_parser = crate::arguments::threads)]
    threads: Option<usize>,
}

#[derive(Args)]
#[command(next_help_heading = "Window")]
struct IndexSpan {
    /// Remember keys for this long (10m, 1h30m, 7d)
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration)]
    within: Option<u64>,

    /// Remember the keys of the last COUNT records (100k, 2.5M); in a list of keys each one counts
    #[arg(long, value_name = "COUNT", value_parser = quantity::count)]
    last: Option<u64>,

    /// How much longer than the window a key may still count as seen: a duration, a count or a
    /// share of the window. Halving it costs one more bit per key and slightly slower queries
    #[arg(long, value_name = "QUANTITY", default_value = "12.5%")]
    slack: String,

    /// What other programs call it.
    #[arg(long = "window", hide = true, value_name = "DURATION", value_parser = no_window)]
    _window: Option<String>,
}

#[derive(Args)]
#[command(next_help_heading = "Filter")]
struct SizeArguments {
    /// Distinct keys expected within the window [default: 1M, or fewer if --memory is small]. With many
    /// more keys the index grows and gets slower, and `perhaps` is wrong more often, as each answer says
    #[arg(long, value_name = "COUNT", value_parser = quantity::count)]
    expect: Option<u64>,

    /// Memory limit (64MiB, 1GB) [default: 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = quantity::bytes)]
    memory: Option<u64>,

    /// The probability that `perhaps` is wrong, for an interval of the length of --interval that
    /// contains no key of the window
    #[arg(long, value_name = "SHARE", value_parser = quantity::share, default_value = "0.001")]
    fpr: f64,

    /// The longest interval for which --fpr holds, in keys: 1000, 2^38, for addresses /24, for times 1h.
    /// Each doubling costs one bit per key; questions about longer intervals are answered too, at the
    /// rate that then holds [default: 1000; epc: 2^38, a product; ip: /16; time: 1h; decimal: 10^9, which
    /// is 1]
    #[arg(long, value_name = "LENGTH")]
    interval: Option<String>,

    /// Seed of the hash
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    seed: u64,
}

#[derive(Args)]
#[command(next_help_heading = "Output")]
struct IndexOutput {
    /// Write late records to this file. An existing file is appended to, unless --overwrite is given. This
    /// also holds for the files below
    #[arg(long, value_name = "FILE")]
    late: Option<PathBuf>,

    /// Write records without a usable key to this file
    #[arg(long, value_name = "FILE")]
    missing: Option<PathBuf>,

    /// Write invalid records to this file: input, line, reason and the record, separated by tabs
    #[arg(long, value_name = "FILE")]
    invalid: Option<PathBuf>,

    /// Replace existing files of records, instead of appending to them
    #[arg(long)]
    overwrite: bool,

    #[command(flatten)]
    notes: NoteArguments,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    check(arguments)?;
    run::run(arguments)
}

/// Refuses what cannot be kept, before a file is touched.
pub fn check(arguments: &Arguments) -> Result<(), Failure> {
    arguments.spec()?.plan().map_err(|error| usage(&error))?;
    Ok(())
}

impl Job for Arguments {
    type Judge = Index;

    const MESSAGES: Messages = Messages {
        invalid: "the first invalid record, not indexed",
        missing: "the first record without a usable key, not indexed",
        late: "not indexed",
        skewed: "not indexed",
        forgotten: "the window is full and starts to forget early: the answer may be `no` for keys seen within it",
        refused: "the window is full and new keys are not remembered: the answer may be `no` for them",
        done: Class::Indexed,
    };

    fn files(&self) -> &[String] {
        &self.files
    }

    fn threads(&self) -> Option<usize> {
        self.threads
    }

    fn brokers(&self) -> &BrokerArguments {
        &self.input.brokers
    }

    fn notes(&self) -> &NoteArguments {
        &self.output.notes
    }

    fn state(&self) -> Option<&Path> {
        Some(&self.state)
    }

    fn overwrites(&self) -> bool {
        self.output.overwrite
    }

    fn writes_to_stdout(&self) -> bool {
        false
    }

    fn places(&self) -> Result<Vec<Place>, Failure> {
        let output = &self.output;
        let others = [
            ("--late", &output.late),
            ("--missing", &output.missing),
            ("--invalid", &output.invalid),
        ];
        Place::outputs(others, "")
    }

    fn look(&self, stop: &dyn Fn() -> bool) -> Result<Option<Looked>, Failure> {
        self.number.look(&self.input, &self.files, stop)
    }

    fn begin(&self) -> Result<Begun<Index>, Failure> {
        let (spec, options) = (self.spec()?, self.options()?);
        let resumed = self.resume(&spec)?;
        let state = self.state().map(|path| (path, self.state_every));
        Begun::new(resumed, || spec.build().map_err(|error| usage(&error)), options, state)
    }

    #[cfg(feature = "parquet")]
    fn refuses_columns(&self) -> Option<(&'static str, &'static str)> {
        let output = &self.output;
        let refused = [
            (output.late.is_some(), "--late"),
            (output.missing.is_some(), "--missing"),
            (output.invalid.is_some(), "--invalid"),
            (self.input.merge, "--merge"),
        ];
        let refused = refused.into_iter().find(|(is_asked, _)| *is_asked);
        refused.map(|(_, flag)| (flag, "it is for records that are lines"))
    }

    fn sink(&self, opener: &mut Opener) -> Result<Sink, Failure> {
        let output = &self.output;
        Ok(Sink::new(Output::none())
            .late(opener.maybe(output.late.as_deref())?)
            .missing(opener.maybe(output.missing.as_deref())?)
            .invalid(opener.maybe(output.invalid.as_deref())?))
    }

    fn warn(&self, done: &Done<'_, Index>) {
        let (report, output) = (&done.pipeline.report, &self.output);
        notes::invalid(report, "indexed", output.invalid.is_some());
        notes::without_key(report, "indexed", output.missing.is_some());
        notes::off_the_clock(report, "not indexed", "not indexed");
        let window = done.pipeline.judge.window();
        warn_of_overload(window, done.resumes);
        if window.estimated_fpr() > window.fpr() {
            eprintln!(
                "lately: many more keys than expected: `perhaps` is now wrong for {:.1e} of the intervals of {} keys, as each answer says; begin a new state with a larger --expect",
                window.estimated_fpr(),
                display_length(window.plan().interval()),
            );
        }
        if window.tables() > 1 {
            eprintln!(
                "lately: more keys than expected: the index has grown to {} tables, which take more memory and time than one; begin a new state with a larger --expect",
                window.tables(),
            );
        }
        let by_arrival = done.pipeline.judge.moments().by_arrival();
        let read_any = report.counts.read() > 0;
        if self.span.within.is_some()
            && by_arrival
            && done.reads_files
            && !self.input.is_timed()
            && read_any
        {
            eprintln!("lately: no --time: records were indexed by when they were read");
        }
    }

    fn summarise(&self, done: &Done<'_, Index>) {
        let report = &done.pipeline.report;
        let records = many(report.counts.read(), "record");
        eprintln!("{records}: {}", summary::classes_in_words::<Index>(report));
        eprintln!("{}", notes::throughput(report, done.took, false));
        eprintln!("{}", describe(done.pipeline.judge.window()));
    }
}

fn warn_of_overload(window: &RangeWindow, resumes: bool) {
    let overload = window.overload();
    if overload.forgotten + overload.refused > 0 {
        let remedy =
            if resumes { "begin a new state with more --memory" } else { "allow more --memory" };
        eprintln!(
            "lately: the window was full ({}): {} forgotten early, {} not remembered, and the answer may be `no` for them; {remedy}",
            quantity::display_bytes(window.memory() as u64),
            many(overload.forgotten, "key"),
            quantity::display_count(overload.refused),
        );
    }
}

impl IndexSpan {
    fn arguments(&self) -> SpanArguments {
        SpanArguments { within: self.within, last: self.last, slack: Some(self.slack.clone()) }
    }
}

impl Arguments {
    /// What is asked, but for the bytes.
    fn spec(&self) -> Result<IndexSpec, Failure> {
        let (size, span) = (&self.size, self.span.arguments());
        let format = self.number.format(&self.input, &self.files)?;
        let interval = size.interval.as_deref().map(|text| interval_length(text, format));
        let interval =
            interval.transpose().map_err(|error| Failure::Usage(format!("--interval: {error}")))?;
        let timed = self.input.may_bring_times(span.within.is_some());
        let reading = self.input.reading(&format.to_string());
        let reading = reading.with("clock-by", self.time.clock_by());
        Ok(IndexSpec {
            expect: size.expect,
            memory: size.memory,
            fpr: Some(size.fpr),
            slack: span.slack()?,
            interval,
            seed: size.seed,
            clock: self.time.clock(timed),
            reading: Some(reading),
            ..IndexSpec::new(span.span(), format)
        })
    }

    /// What is wanted of the records.
    fn options(&self) -> Result<Options, Failure> {
        let timed = self.span.within.is_some();
        let mut options = self.input.options(Digester::new(self.size.seed), timed)?;
        let format = self.number.format(&self.input, &self.files)?;
        options.numbers = Some(format);
        options.fields_wanted |= self.number.is_found(&self.input, format);
        self.time.apply(&mut options);
        Ok(options)
    }

    /// The saved index, if there is one that fits this run.
    fn resume(&self, spec: &IndexSpec) -> Result<Option<Index>, Failure> {
        let index =
            spec.resume(&self.state).map_err(|error| Failure::Trouble(error.to_string()))?;
        let Some(index) = index else { return Ok(None) };
        if spec.plan().is_ok_and(|plan| plan != *index.window().plan()) {
            eprintln!(
                "lately: using the size and error rate stored in {}; --memory, --expect, --fpr, --slack and --interval only apply to a new state",
                self.state.display()
            );
        }
        Ok(Some(index))
    }
}

/// A window and what it costs, in one line.
pub fn describe(window: &RangeWindow) -> String {
    let interval = window.plan().interval();
    format!(
        "range window over {}: {}, a false positive rate of {:.1e} for intervals of {} keys",
        plan::describe_window(window.window()),
        quantity::display_bytes(window.memory() as u64),
        window.fpr(),
        display_length(interval),
    )
}

/// A length of intervals, as a power of two where it is a large one.
pub fn display_length(length: u128) -> String {
    match u64::try_from(length) {
        Ok(length) if length < 1 << 20 || !length.is_power_of_two() => {
            quantity::display_count(length)
        }
        _ if length.is_power_of_two() => format!("2^{}", length.trailing_zeros()),
        _ => format!("{:.1e}", length as f64),
    }
}
