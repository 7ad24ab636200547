//! `lately visits`: when each key came, and when it left.

use crate::arguments::{SourceArguments, usage};
use crate::brokers::BrokerArguments;
use crate::fields::{self, Names};
use crate::form::FormArguments;
use crate::input::InputArguments;
use crate::notes::{self, NoteArguments};
use crate::output::{Opener, is_dash};
use crate::place::Place;
use crate::progress::Messages;
use crate::run::{self, Begun, Done, Job};
use crate::{Failure, many};
use clap::{Args, ValueEnum};
use lately::Digester;
use lately_stream::judge::Decide;
use lately_stream::judge::class::Class;
use lately_stream::judge::visit::Ended;
use lately_stream::judge::visit_row::RowFormat;
use lately_stream::options::Options;
use lately_stream::quantity;
use lately_stream::session::{VisitSpec, Visits};
use lately_stream::write::sink::Sink;
use lately_stream::write::summary;
use std::path::{Path, PathBuf};

/// Turn reads into visits: when each key arrived, when it left, how often it was read
///
/// A visit is a chain of reads of one key (a tag; with --by, a tag at a place), each at most --within
/// after the one before it. Each is written as one row: the key, `arrived` and `left` (the times of its
/// first and last read), `dwell` (the seconds between them), `reads`, the strength and the place (the
/// antenna) of its strongest read, and `ended`, why it ended.
///
/// Reads may be out of order by up to --lateness: one that comes late extends a visit backwards, or
/// joins two. A visit is written when the newest time is past its last read by more than --within and
/// --lateness (`ended` is then `gap`), in the order of last reads, or before: `end`, at the end of the
/// input (not with --state); `memory`, the one whose last read is the oldest, to keep to --memory;
/// `silence`, when nothing has come from a pipe for --within and --lateness; `clock`, when the clock was
/// found to be wrong and was set back. Reads that come after that begin another visit, so none is lost.
///
/// Each read ends in exactly one class: in_visits, late (behind the newest time by more than --lateness),
/// skewed (its time is too far in the future), missing_key, invalid (unreadable, or without a time).
#[derive(Args)]
#[command(after_help = "\
Examples:
  lately visits reads.csv --within 5s               # RFID formats: tag, time, strength and antenna are known
  lately visits reads.csv --key epc --time timestamp --by location --within 5s --strength rssi
  lately visits sessions.ndjson --key user --time ts --within 30m --to ndjson
  tail -F reads.csv | lately visits --within 10s --state floor.state -o visits.csv")]
pub struct Arguments {
    /// Inputs, read in order; `-` or none means standard input
    files: Vec<String>,

    #[command(flatten)]
    input: InputArguments,

    #[command(flatten)]
    form: FormArguments,

    #[command(flatten)]
    visit: VisitArguments,

    #[command(flatten)]
    time: VisitTime,

    /// The most memory for visits that have not ended. When more is needed, the one whose last read is
    /// the oldest is written early; its row says `memory`, and the summary how many there were [default: 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = quantity::bytes, help_heading = "Visits")]
    memory: Option<u64>,

    #[command(flatten)]
    output: VisitOutput,

    #[command(flatten)]
    state: VisitState,

    /// Threads that parse [default: one per core]
    #[arg(long, value_name = "COUNT", value_parser = crate::arguments::threads)]
    threads: Option<usize>,
}

#[derive(Args)]
#[command(next_help_heading = "Visits")]
struct VisitArguments {
    /// The longest pause within a visit (5s, 1m30s, 200ms)
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration)]
    within: u64,

    /// Also divide visits by these fields, such as location: a read elsewhere is part of another visit
    #[arg(long, value_name = "FIELD,..", value_parser = fields::names)]
    by: Vec<Names>,

    /// The field with the strength of a read, a number: the largest is written [default: that of an RFID
    /// format]
    #[arg(long, value_name = "FIELD")]
    strength: Option<String>,

    /// The field that says where a read was made: that of the strongest is written [default: the antenna
    /// of an RFID format]
    #[arg(long, value_name = "FIELD")]
    place: Option<String>,
}

#[derive(Args)]
#[command(next_help_heading = "Stream clock")]
struct VisitTime {
    /// How far behind the newest time a read may be and still be part of a visit; visits are written
    /// that much later [default: --within]
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration)]
    lateness: Option<u64>,

    /// Largest forward jump in time accepted from a single read; a larger one must be confirmed by the
    /// reads after it [default: --within, at least 1s and at most 1h]
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration)]
    max_skew: Option<u64>,

    #[command(flatten)]
    source: SourceArguments,
}

#[derive(Args)]
#[command(next_help_heading = "Output")]
struct VisitOutput {
    /// How visits are written
    #[arg(long, value_enum, default_value_t = To::Csv)]
    to: To,

    /// Write visits to this file [default: standard output]. An existing file is replaced when the first
    /// input is read; with --state it is appended to instead. This also holds for the files below
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Replace existing output files although there is a --state
    #[arg(long)]
    overwrite: bool,

    /// Write late reads to this file
    #[arg(long, value_name = "FILE")]
    late: Option<PathBuf>,

    /// Write reads without a key to this file
    #[arg(long, value_name = "FILE")]
    missing: Option<PathBuf>,

    /// Write invalid records to this file: input, line, reason and the record, separated by tabs
    #[arg(long, value_name = "FILE")]
    invalid: Option<PathBuf>,

    #[command(flatten)]
    notes: NoteArguments,
}

#[derive(Args)]
#[command(next_help_heading = "State")]
struct VisitState {
    /// Keep open visits across restarts in this file: loaded if it exists, and saved, if anything has
    /// changed, every --state-every, at the end, and on SIGINT, SIGTERM, SIGHUP and SIGUSR1. Output files
    /// are then appended to, unless --overwrite is given
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,

    /// How often to save it
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration, default_value = "30s")]
    state_every: u64,

    /// Write the visits that are open at the end of the input although there is a --state
    #[arg(long, requires = "state")]
    close: bool,
}

/// `--to`.
#[derive(Clone, Copy, ValueEnum)]
enum To {
    Csv,
    Ndjson,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    check(arguments)?;
    run::run(arguments)
}

/// Refuses what cannot be kept, before a file is touched.
pub fn check(arguments: &Arguments) -> Result<(), Failure> {
    arguments.spec().build().map_err(|error| usage(&error))?;
    Ok(())
}

impl Job for Arguments {
    type Judge = Visits;

    const MESSAGES: Messages = Messages {
        invalid: "the first invalid record, part of no visit",
        missing: "the first record without a key, part of no visit",
        late: "part of no visit",
        skewed: "part of no visit",
        forgotten: "there is no room for all open visits: the oldest are written early",
        refused: "",
        done: Class::Visit,
    };

    fn files(&self) -> &[String] {
        &self.files
    }

    fn threads(&self) -> Option<usize> {
        self.threads
    }

    fn keeps_records(&self) -> bool {
        true
    }

    fn brokers(&self) -> &BrokerArguments {
        &self.input.brokers
    }

    fn notes(&self) -> &NoteArguments {
        &self.output.notes
    }

    fn state(&self) -> Option<&Path> {
        self.state.state.as_deref()
    }

    fn overwrites(&self) -> bool {
        self.output.overwrite
    }

    fn writes_to_stdout(&self) -> bool {
        self.output.output.as_deref().is_none_or(is_dash)
    }

    fn places(&self) -> Result<Vec<Place>, Failure> {
        let output = &self.output;
        let others = [
            ("--late", &output.late),
            ("--missing", &output.missing),
            ("--invalid", &output.invalid),
        ];
        let others = Place::outputs(others, "standard output is for visits; ")?;
        Ok(Place::main(output.output.as_deref()).into_iter().chain(others).collect())
    }

    fn begin(&self) -> Result<Begun<Visits>, Failure> {
        let (spec, options) = (self.spec(), self.options()?);
        let resumed = self.state().map(|path| spec.resume(path)).transpose();
        let resumed = resumed.map_err(|error| Failure::Trouble(error.to_string()))?.flatten();
        let state = self.state().map(|path| (path, self.state.state_every));
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
        let main = opener.main(output.output.as_deref())?;
        Ok(Sink::new(main)
            .of_rows()
            .late(opener.maybe(output.late.as_deref())?)
            .missing(opener.maybe(output.missing.as_deref())?)
            .invalid(opener.maybe(output.invalid.as_deref())?))
    }

    fn warn(&self, done: &Done<'_, Visits>) {
        let (report, output) = (&done.pipeline.report, &self.output);
        let judge = &done.pipeline.judge;
        notes::invalid(report, "part of a visit", output.invalid.is_some());
        notes::without_key(report, "part of a visit", output.missing.is_some());
        notes::off_the_clock(report, "part of no visit", "part of no visit");
        notes::clock(judge.moments(), report);
        let early = judge.ended(Ended::Memory);
        if early > 0 {
            eprintln!(
                "lately: {} written early, for lack of room: reads that came later begin others; allow more --memory",
                many(early, "visit")
            );
        }
        let (read_any, timed) = (report.counts.read() > 0, !judge.moments().by_arrival());
        if read_any && !timed && done.reads_files && !self.input.is_timed() {
            eprintln!("lately: no --time: reads were placed by when they were read");
        }
        if let Some(field) = &self.visit.strength
            && report.counts.of(Class::Visit) > 0
            && report.with_rank == 0
        {
            eprintln!("lately: no read has a number in the field `{field}` of --strength");
        }
    }

    fn summarise(&self, done: &Done<'_, Visits>) {
        let (report, judge) = (&done.pipeline.report, &done.pipeline.judge);
        let records = many(report.counts.read(), "record");
        eprintln!("{records}: {}", summary::classes_in_words::<Visits>(report));
        eprintln!("{}", notes::throughput(report, done.took, true));
        notes::times(judge.moments());
        eprintln!("{}", in_words(judge));
    }
}

/// `69 visits of 2,000 reads; 3 of 17 open`.
fn in_words(visits: &Visits) -> String {
    let of = |visits: u64, reads| format!("{} of {}", many(visits, "visit"), many(reads, "read"));
    let mut words = of(visits.written(), visits.written_reads());
    let open = visits.open();
    if !open.is_empty() {
        words += &format!("; {} still open", of(open.len() as u64, open.reads()));
    }
    if visits.resumed_reads() > 0 {
        let reads = many(visits.resumed_reads(), "read");
        words += &format!("; {reads} of them from the state");
    }
    words
}

impl Arguments {
    fn spec(&self) -> VisitSpec {
        let visit = &self.visit;
        let fields = |field: &Option<String>| field.iter().cloned().collect::<Vec<_>>();
        let clock_by = self.time.source.clock_by();
        VisitSpec {
            within: visit.within,
            lateness: self.time.lateness,
            max_skew: self.time.max_skew,
            by_source: !clock_by.is_empty(),
            memory: self.memory,
            rows: match self.output.to {
                To::Csv => RowFormat::Csv,
                To::Ndjson => RowFormat::Ndjson,
            },
            keeps_open: self.state.state.is_some() && !self.state.close,
            reading: Some(
                self.form
                    .reading(&self.input)
                    .with("clock-by", clock_by)
                    .with("by", fields::all(&visit.by))
                    .with("strength", fields(&visit.strength))
                    .with("place", fields(&visit.place)),
            ),
        }
    }

    /// What is wanted of the records.
    fn options(&self) -> Result<Options, Failure> {
        let mut options = self.input.options(Digester::new(0), true)?;
        self.form.apply(&mut options);
        options.source = self.time.source.clock_by();
        options.by = fields::all(&self.visit.by);
        options.texts = true;
        options.rank.clone_from(&self.visit.strength);
        options.place.clone_from(&self.visit.place);
        // A time that is made up would be that of a visit.
        options.drop_untimed = true;
        Ok(options)
    }
}
