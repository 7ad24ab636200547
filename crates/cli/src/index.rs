//! `lately index`: keeps a range window over a field of a stream in a file.

use crate::arguments::{self, SpanArguments, TimeArguments};
use crate::input::InputArguments;
use crate::notes::{self, NoteArguments};
use crate::output::{Opener, SummaryFile};
use crate::place::{self, Place};
use crate::progress::{Progress, Words};
use crate::ranges::NumberArguments;
use crate::signals::Signals;
use crate::{Failure, many};
use clap::{ArgGroup, Args};
use lately::range::{RangePlan, RangeSpec, RangeWindow};
use lately::{Digester, PlanError, Window};
use lately_stream::index::{Index, Indexer};
use lately_stream::number::{NumberFormat, interval_length};
use lately_stream::pipeline::{Keeper, Pipeline};
use lately_stream::quantity;
use lately_stream::sink::{Output, Sink};
use lately_stream::source::Source;
use lately_stream::state::StateError;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Keys planned for where nobody says how many: with few of them a window for so many takes some 150 KiB, and
/// with many more than planned each arrival costs more.
const EXPECTED: u64 = 1_000_000;

/// Remember which keys were seen lately, to be asked for intervals of them
///
/// Reads records as `lately dedup` does and keeps the keys of the last while, which are numbers,
/// times, EPCs or addresses, in a file. `lately ask` then tells whether any key of an interval, of a
/// block of addresses or of a product's EPCs was among them: surely not, or perhaps, with the chance
/// that this is wrong. That costs some 10 to 50 bits a key, however long the intervals are.
///
/// Passes nothing on: `tee` in front of it does. A record ends in exactly one class: indexed, late
/// (behind the clock by more than --lateness), skewed (its time is too far in the future), missing_key
/// (its key is absent or cannot be read as asked), invalid (unreadable, or without a time). Only the
/// indexed are remembered; the others are counted and told of.
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
    /// Inputs in order; `-` or none: standard input
    files: Vec<String>,

    /// The file: gone on from if there, saved at the end, every --state-every, and on SIGINT,
    /// SIGTERM and SIGUSR1. The window in it keeps the size and the rate it was begun with. One run
    /// at a time writes it (FILE.lock is locked meanwhile); any number may ask
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

    /// Threads that parse [default: one a core]
    #[arg(long, value_name = "COUNT")]
    threads: Option<usize>,
}

#[derive(Args)]
#[command(next_help_heading = "Window")]
struct IndexSpan {
    /// Remember keys for this long (10m, 1h30m, 7d)
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration)]
    within: Option<u64>,

    /// Remember the keys of the last so many records (100k, 2.5M); in a list of keys each counts
    #[arg(long, value_name = "COUNT", value_parser = quantity::count)]
    last: Option<u64>,

    /// How much longer than the window a key may be reported: a duration, a count or a share of the
    /// window. Half of it costs one bit a key more, and some time a question
    #[arg(long, value_name = "QUANTITY", default_value = "12.5%")]
    slack: String,
}

#[derive(Args)]
#[command(next_help_heading = "Filter")]
struct SizeArguments {
    /// Distinct keys expected within the window [default: 1M]. With many more it grows, gets slower, and
    /// `perhaps` is wrong more often, as each answer says
    #[arg(long, value_name = "COUNT", value_parser = quantity::count)]
    expect: Option<u64>,

    /// The most memory it may take (64MiB, 1GB) [default: 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = quantity::bytes)]
    memory: Option<u64>,

    /// The chance that `perhaps` is wrong, for an interval of the length of --interval with no key
    /// of the window in it
    #[arg(long, value_name = "SHARE", value_parser = quantity::share, default_value = "0.001")]
    fpr: f64,

    /// The longest interval for which --fpr is to hold, in keys: 1000, 2^38, for addresses /24, for
    /// times 1h. Each doubling costs one bit a key; longer ones are answered too, with the chance
    /// that then holds [default: 1000; epc: 2^38, a product; ip: /16; time: 1h; decimal: 10^9, which
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
    /// Write late records to this file. A file that is there is replaced; when the state goes on,
    /// it is appended to. So are the files below
    #[arg(long, value_name = "FILE")]
    late: Option<PathBuf>,

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
    invalid: "the first invalid record, not indexed",
    missing: "the first record without a usable key, not indexed",
    late: "not indexed",
    skewed: "not indexed",
    forgotten: "the window is full and begins to forget early: `no` may be said of keys seen within it",
    refused: "the window is full and new keys are not remembered: `no` may be said of them",
    done: "indexed",
};

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let started = Instant::now();
    let signals = Signals::listen()?;
    let span = arguments.span.arguments();
    let mut options =
        arguments.input.options(Digester::new(arguments.size.seed), span.within.is_some())?;
    let format = arguments.number.format(&arguments.input)?;
    options.numbers = Some(format);
    let plan = arguments.plan(&span, format)?;
    let files = if arguments.files.is_empty() { vec!["-".into()] } else { arguments.files.clone() };
    let places = arguments.places(&files)?;
    place::refuse_clashes(&places)?;

    let _lock = place::lock(&arguments.state)?;
    let settings = arguments.settings(&span, format);
    let index = arguments.load(&settings, &plan)?;
    let goes_on = index.is_some();
    let clock =
        (options.time.is_some() || options.time_wanted).then(|| arguments.time.clock(&span));
    let mut indexer = Indexer::new(plan.build(), clock, format);
    if let Some(index) = index {
        indexer.window = index.window;
        if let Some(now) = index.clock {
            indexer.resume_clock(now, index.of_events);
        }
    }

    let output = &arguments.output;
    let mut opener = Opener::new(goes_on);
    let sink = Sink::new(Output::none())
        .late(opener.maybe(output.late.as_deref())?)
        .missing(opener.maybe(output.missing.as_deref())?)
        .invalid(opener.maybe(output.invalid.as_deref())?);
    let summary = SummaryFile::open(output.notes.summary.as_deref())?;
    place::refuse_clashes(&places)?;

    let every = Duration::from_nanos(arguments.state_every);
    let keeper = Keeper { path: arguments.state.clone(), settings, every };
    let mut pipeline = Pipeline::new(indexer, sink, None, Some(keeper));
    let source = Source::new(files.clone(), options);
    let live = source.is_live();
    let mut progress =
        Progress::new(&files, false, output.notes.quiet, signals, opener.done(), live, WORDS);
    let result = pipeline.run(source, arguments::parsers(arguments.threads), &mut progress);
    let nothing_read = progress.end(&pipeline.report)?;

    let took = started.elapsed();
    arguments.tell(&pipeline, goes_on, nothing_read, took);
    SummaryFile::write(summary, output.notes.summary.is_some(), &numbers(&pipeline, took))?;
    result.map_err(|error| Failure::Trouble(error.to_string()))?;
    arguments.output.notes.failure(&pipeline.report).map_or(Ok(()), Err)
}

impl IndexSpan {
    fn arguments(&self) -> SpanArguments {
        SpanArguments { within: self.within, last: self.last, slack: Some(self.slack.clone()) }
    }
}

impl Arguments {
    /// A plan for the window. What was not asked for gives way: a capacity nobody named shrinks
    /// until it fits into the memory.
    fn plan(&self, span: &SpanArguments, format: NumberFormat) -> Result<RangePlan, Failure> {
        let size = &self.size;
        let interval = size.interval.as_deref().map(|text| interval_length(text, format));
        let interval =
            interval.transpose().map_err(|error| Failure::Usage(format!("--interval: {error}")))?;
        let interval = interval.unwrap_or(format.usual_interval());
        let memory = size.memory.unwrap_or(arguments::MEMORY);
        let slack = span.slack()?;
        let mut keys = size.expect.unwrap_or(EXPECTED);
        loop {
            let window = span.window(keys)?;
            let spec = RangeSpec::new(window)
                .interval(interval)
                .fpr(size.fpr)
                .slack(slack)
                .memory(memory)
                .seed(size.seed);
            match spec.plan() {
                Err(PlanError::Memory { .. })
                    if size.expect.is_none() && span.last.is_none() && keys > 1 =>
                {
                    keys /= 2;
                }
                Err(error) => {
                    let flag = match &error {
                        PlanError::Fpr(_) => "--fpr",
                        PlanError::Memory { .. } => "--memory",
                        _ if spec.interval(1).plan().is_ok() => "--interval",
                        _ if span.last.is_some() => "--last",
                        _ if size.expect.is_some() => "--expect",
                        _ => "--within",
                    };
                    return Err(Failure::Usage(format!("{flag}: {error}")));
                }
                Ok(plan) => return Ok(plan),
            }
        }
    }

    /// What decides which number a record has and how long it counts, as text.
    fn settings(&self, span: &SpanArguments, format: NumberFormat) -> String {
        let mut settings = self.input.settings(&format.to_string());
        settings.push_str(&span.settings());
        settings + &format!(" seed={}", self.size.seed)
    }

    /// The saved index, if there is one that fits this run.
    fn load(&self, settings: &str, plan: &RangePlan) -> Result<Option<Index>, Failure> {
        let trouble = |error: StateError| Failure::Trouble(error.to_string());
        let Some(index) = Index::load(&self.state).map_err(trouble)? else { return Ok(None) };
        if index.settings != settings {
            let (saved, asked) = (index.settings, settings.to_owned());
            return Err(trouble(StateError::Settings(self.state.clone(), saved, asked)));
        }
        if index.window.plan() != plan {
            eprintln!(
                "lately: the window in {} goes on with the size and rate it was begun with; --memory, --expect, --fpr, --slack and --interval count for a new one",
                self.state.display()
            );
        }
        Ok(Some(index))
    }

    /// All files of the run.
    fn places(&self, files: &[String]) -> Result<Vec<Place>, Failure> {
        let output = &self.output;
        let others = [
            ("--late", &output.late),
            ("--missing", &output.missing),
            ("--invalid", &output.invalid),
        ];
        let mut places = Place::inputs(files.iter());
        places.extend(Place::outputs(others, "")?);
        places.extend(Place::summary(output.notes.summary.as_deref()));
        places.extend(Place::state(&self.state));
        Ok(places)
    }

    /// Prints warnings, and the summary unless it is not wanted.
    fn tell(&self, pipeline: &Pipeline<Indexer>, goes_on: bool, nothing: bool, took: Duration) {
        let report = &pipeline.report;
        notes::inputs(report);
        self.warn(pipeline, goes_on);
        if !self.output.notes.for_people() || nothing {
            return;
        }
        let counts = &report.counts;
        let seconds = took.as_secs_f64().max(1e-9);
        eprintln!(
            "{}: {} indexed, {} late, {} invalid, {} missing key, {} skewed",
            many(counts.read(), "record"),
            quantity::display_count(counts.fresh),
            quantity::display_count(counts.late),
            quantity::display_count(counts.invalid),
            quantity::display_count(counts.missing_key),
            quantity::display_count(counts.skewed),
        );
        eprintln!(
            "{} in, {seconds:.2} s, {}/s",
            quantity::display_bytes(counts.bytes_in),
            quantity::display_bytes((counts.bytes_in as f64 / seconds) as u64),
        );
        eprintln!("{}", describe(&pipeline.judge.window));
    }

    fn warn(&self, pipeline: &Pipeline<Indexer>, goes_on: bool) {
        let report = &pipeline.report;
        let (counts, output) = (&report.counts, &self.output);
        notes::invalid(report, "indexed", output.invalid.is_some());
        notes::without_key(report, "indexed", output.missing.is_some());
        notes::off_the_clock(report, "not indexed", "not indexed");
        let overload = report.overload;
        if overload.forgotten + overload.refused > 0 {
            let remedy = if goes_on {
                "begin a new state with more --memory"
            } else {
                "allow more --memory"
            };
            eprintln!(
                "lately: the window was full ({}): {} forgotten early, {} not remembered, and `no` may be said of them; {remedy}",
                quantity::display_bytes(pipeline.judge.window.memory() as u64),
                many(overload.forgotten, "key"),
                quantity::display_count(overload.refused),
            );
        }
        let window = &pipeline.judge.window;
        if window.estimated_fpr() > window.fpr() {
            eprintln!(
                "lately: many more keys than expected: `perhaps` is wrong for {:.1e} of the intervals of {} keys by now, which each answer says; begin a new state with a larger --expect",
                window.estimated_fpr(),
                display_length(window.plan().interval()),
            );
        }
        let by_arrival = pipeline.judge.moments.by_arrival();
        let files = !self.files.is_empty() && self.files.iter().all(|file| file != Source::STDIN);
        if self.span.within.is_some() && by_arrival && files && counts.read() > 0 {
            eprintln!("lately: no --time: records were indexed as of when they were read");
        }
        notes::state_errors(report);
    }
}

/// A window and what it costs, on a line.
pub fn describe(window: &RangeWindow) -> String {
    let plan = window.plan();
    format!(
        "range window over {}: {}, a false positive rate of {:.1e} for intervals of {} keys",
        crate::plan::describe_window(window.window()),
        quantity::display_bytes(window.memory() as u64),
        window.fpr(),
        display_length(plan.interval()),
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

/// A window's parameters and condition as JSON.
pub fn to_json(window: &RangeWindow) -> Value {
    let overload = window.overload();
    let plan = window.plan();
    let (kind, span) = match window.window() {
        Window::Count(n) => ("count", Some(n.get())),
        Window::Time { span, .. } => ("time_ns", Some(span.get())),
        Window::Unbounded { .. } => ("unbounded", None),
    };
    json!({
        "structure": "range-window",
        "window": { "kind": kind, "length": span },
        "slack": window.slack(),
        "capacity": window.window().capacity(),
        "interval": plan.interval().to_string(),
        "fpr_planned": window.fpr(),
        "memory_bytes": window.memory(),
        "overloaded": overload.happened(),
        "grown": overload.grown,
        "forgotten": overload.forgotten,
        "refused": overload.refused,
    })
}

fn numbers(pipeline: &Pipeline<Indexer>, took: Duration) -> Value {
    let counts = &pipeline.report.counts;
    json!({
        "read": counts.read(),
        "indexed": counts.fresh,
        "late": counts.late,
        "invalid": counts.invalid,
        "missing_key": counts.missing_key,
        "skewed": counts.skewed,
        "bytes_in": counts.bytes_in,
        "seconds": took.as_secs_f64(),
        "state_errors": pipeline.report.state_errors.0,
        "filter": to_json(&pipeline.judge.window),
    })
}
