//! `lately dedup`: the main job.

mod output;
mod report;

use crate::arguments::{self, FilterArguments, TimeArguments, WindowArguments, usage};
use crate::brokers::BrokerArguments;
use crate::fields;
use crate::form::FormArguments;
use crate::input::InputArguments;
use crate::notes::NoteArguments;
use crate::output::Opener;
use crate::place::Place;
use crate::progress::Messages;
use crate::run::{self, Begun, Done, Job};
use crate::{Failure, many};
use clap::Args;
use lately::Digester;
use lately_stream::judge::Decide;
use lately_stream::judge::class::Class;
use lately_stream::judge::hold::{Better, Wanted};
use lately_stream::options::Options;
use lately_stream::quantity;
use lately_stream::read::Source;
use lately_stream::session::{CountSpec, Dedup, DedupSpec, HoldSpec, Span};
use lately_stream::state::file::StateFile;
use lately_stream::write::sink::Sink;
use output::OutputArguments;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Forward each record once; drop those seen lately
///
/// Reads files or standard input (lines, tables, JSON, logs, RFID reads: see --format; gzip,
/// zstd, bzip2 and xz are recognized by content) and writes the fresh records unchanged and in order.
///
/// Each record ends in exactly one class: fresh (forwarded), duplicate (dropped), late (behind the
/// clock by more than --lateness; forwarded), skewed (its time is too far in the future; forwarded),
/// missing_key (forwarded), invalid (unreadable; not forwarded); withheld with --duplicates-only or
/// --unique-only (fresh, but not wanted; dropped).
///
/// A record that is not late is judged by its own time, even if it arrives out of order: it is a
/// duplicate if an earlier record of its key lies within the window of it, before or after.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tail -F app.log | lately dedup --within 1m                 # an error that never pauses for 1m: once
  tail -F app.log | lately dedup --within 1m --renew fresh   # ... and this way: once a minute
  lately dedup access.log                                    # each line once
  zcat log.gz | lately dedup --last 100k                     # ... among the last 100,000
  lately dedup reads.csv --key epc --time timestamp --within 5s
  lately dedup events.ndjson --key /user/id,type --within 10m --time ts
  lately dedup reads.csv --key epc --within 5s --renew fresh  # one read per tag every 5 s
  lately dedup reads.csv --key epc --within 5s --best rssi:max --hold 200ms
  lately dedup app.log --within 1m --count                    # ... with the number of its copies
  tail -F app.log | lately dedup --within 1m --state app.state  # remembers across restarts")]
pub struct Arguments {
    /// Inputs, read in order; `-` or none means standard input
    files: Vec<String>,

    #[command(flatten)]
    input: InputArguments,

    #[command(flatten)]
    form: FormArguments,

    #[command(flatten)]
    window: WindowArguments,

    #[command(flatten)]
    time: TimeArguments,

    #[command(flatten)]
    filter: FilterArguments,

    #[command(flatten)]
    selection: SelectionArguments,

    #[command(flatten)]
    output: OutputArguments,

    #[command(flatten)]
    state: StateArguments,

    /// Threads that parse [default: one per core]
    #[arg(long, value_name = "COUNT", value_parser = arguments::threads)]
    threads: Option<usize>,
}

#[derive(Args)]
#[command(next_help_heading = "Selection")]
struct SelectionArguments {
    /// Forward a duplicate if one of these fields differs from the key's last record; FIELD:BAND if its
    /// number differs by more than BAND from that of the key's last record that was forwarded (v:0.5)
    #[arg(long, value_name = "FIELD[:BAND],..", conflicts_with = "best", value_parser = changes)]
    pass_on_change: Vec<Changes>,

    /// Hold a fresh record for --hold, and forward the best record of its burst instead of the first:
    /// the one with the largest (FIELD:max) or smallest (FIELD:min) number or time
    #[arg(long, value_name = "FIELD:max|min", value_parser = best, requires = "hold")]
    best: Option<(String, Better)>,

    /// Hold each fresh record until its window closes, and forward it with the number of times its key
    /// was seen by then, itself included, as a column or JSON member of this name [default: count]. What
    /// is forwarded without being judged gets a 1
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = "count")]
    #[arg(long_help = COUNT, conflicts_with_all = ["best", "mark", "sort_within"])]
    count: Option<String>,

    /// Forward only records that came more than once within their window, the first of each, when the
    /// window closes, as `uniq -d` does
    #[arg(long, conflicts_with_all = ["unique_only", "best", "mark", "sort_within"])]
    duplicates_only: bool,

    /// Forward only records that came just once within their window, when it closes, as `uniq -u` does
    #[arg(long, conflicts_with_all = ["best", "mark", "sort_within"])]
    unique_only: bool,

    /// How long to hold it
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration, requires = "best")]
    hold: Option<u64>,
}

#[derive(Args)]
#[command(next_help_heading = "State")]
struct StateArguments {
    /// Remember across restarts in this file: loaded if it exists, and saved, if anything has changed,
    /// every --state-every, at the end, and on SIGINT, SIGTERM, SIGHUP and SIGUSR1. Output files are then
    /// appended to, never replaced, unless --overwrite is given. An existing state keeps
    /// the size and error rate of its filter. Only one run at a time can use it: FILE.lock is locked
    /// meanwhile, and may be left behind
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,

    /// How often to save it
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration, default_value = "30s")]
    state_every: u64,
}

/// The help of `--count`.
const COUNT: &str = "\
Hold each fresh record until its window closes, and forward it with the number of times its key was \
seen by then, itself included, as a column or JSON member of this name [default: count].

A fresh record and the duplicates of its key that come before the next fresh one are one group. Its window \
closes when the clock is past its last record (with --renew fresh: past the fresh one) by more than \
--within and --lateness; with --last, after so many more records; without a window, at the end of the \
input. Groups are forwarded in that order. At the end of the input all are.

What is forwarded without being judged (late, skewed, without a key) gets a 1. Records that wait take at \
most 64 MiB, or a quarter of --memory if that is less: beyond that the oldest are forwarded early, with \
the number so far, and duplicates that come later are in no count; the summary says how many.";

/// The most memory for records that wait under --best and --count.
const HELD: usize = 64 << 20;

/// The fields of one `--pass-on-change`.
#[derive(Clone)]
struct Changes(Vec<Change>);

/// One of them.
#[derive(Clone)]
struct Change {
    field: String,
    /// By how much its number must change.
    band: Option<f64>,
}

impl Change {
    /// As it was written.
    fn text(&self) -> String {
        match self.band {
            Some(band) => format!("{}:{band}", self.field),
            None => self.field.clone(),
        }
    }
}

fn changes(text: &str) -> Result<Changes, String> {
    let names = fields::names(text)?.0;
    names.iter().map(|name| change(name)).collect::<Result<_, _>>().map(Changes)
}

/// A colon is part of the name unless a number follows it.
fn change(text: &str) -> Result<Change, String> {
    let number = |(field, band): (&str, &str)| Some((field.to_owned(), band.parse::<f64>().ok()?));
    match text.rsplit_once(':').and_then(number) {
        Some((_, band)) if !band.is_finite() || band < 0.0 => {
            Err(format!("a dead band of {band}: it must be 0 or more"))
        }
        Some((field, band)) => Ok(Change { field, band: Some(band) }),
        None => Ok(Change { field: text.into(), band: None }),
    }
}

impl SelectionArguments {
    /// The fields whose change lets a record pass.
    fn changes(&self) -> impl Iterator<Item = &Change> {
        self.pass_on_change.iter().flat_map(|changes| &changes.0)
    }

    /// Which records are forwarded by the number of their copies; `None` where these are not counted.
    fn wanted(&self) -> Option<Wanted> {
        match (self.duplicates_only, self.unique_only) {
            (true, _) => Some(Wanted::Repeated),
            (_, true) => Some(Wanted::Unique),
            _ => self.count.as_ref().map(|_| Wanted::All),
        }
    }
}

fn best(text: &str) -> Result<(String, Better), String> {
    let (field, which) = text.rsplit_once(':').ok_or("write FIELD:max or FIELD:min")?;
    match which {
        "max" => Ok((field.into(), Better::Max)),
        "min" => Ok((field.into(), Better::Min)),
        other => Err(format!("`{other}` is neither `max` nor `min`")),
    }
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    check(arguments)?;
    run::run(arguments)
}

/// Refuses what cannot be kept, before a file is touched.
pub fn check(arguments: &Arguments) -> Result<(), Failure> {
    arguments.spec()?.plan().map_err(|error| usage(&error))?;
    arguments.options()?;
    arguments.output.check_topics(arguments.keeps_records())
}

impl Job for Arguments {
    type Judge = Dedup;

    const MESSAGES: Messages = Messages {
        invalid: "the first invalid record, not forwarded",
        missing: "the first record without a key, forwarded",
        late: "not judged",
        skewed: "forwarded without being judged",
        forgotten: "the filter is full and starts to forget early: duplicates may be forwarded",
        refused: "the filter is full and new records are forwarded without being remembered: duplicates may be forwarded",
        done: Class::Fresh,
    };

    fn files(&self) -> &[String] {
        &self.files
    }

    fn threads(&self) -> Option<usize> {
        self.threads
    }

    fn keeps_records(&self) -> bool {
        let selection = &self.selection;
        selection.best.is_some() || selection.wanted().is_some() || self.output.sorts()
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
        self.output.overwrites()
    }

    fn writes_to_stdout(&self) -> bool {
        self.output.to_stdout()
    }

    fn places(&self) -> Result<Vec<Place>, Failure> {
        self.output.places()
    }

    fn begin(&self) -> Result<Begun<Dedup>, Failure> {
        let (mut spec, options) = (self.spec()?, self.options()?);
        // Filters that are kept are of one size, whatever the first input was: those of several runs can be merged.
        let may_plan = self.state.state.is_none() && spec.expect.is_none();
        if may_plan && spec.span == Span::Ever {
            spec.records = Source::new(run::files(self), options.clone()).estimate_records();
        }
        let resumed = self.state().map(|path| self.resume(&spec, path)).transpose()?.flatten();
        let resumes = resumed.is_some();
        let mut judge = match resumed {
            Some(session) => session,
            None => spec.build().map_err(|error| usage(&error))?,
        };
        let mut hold = spec.buffer(&judge);
        if let Some(hold) = &mut hold {
            for (until, key, record) in judge.take_waiting() {
                hold.resume(until, key, record);
            }
        }
        let held = hold.as_ref().map_or(0, |hold| hold.changes());
        let saved = resumes.then(|| judge.changes() + held);
        let every = Duration::from_nanos(self.state.state_every);
        let state = self.state().map(|path| StateFile::new(path.into(), every, saved));
        Ok(Begun { judge, options, hold, state, resumes })
    }

    #[cfg(feature = "parquet")]
    fn refuses_columns(&self) -> Option<(&'static str, &'static str)> {
        let (selection, held) =
            (&self.selection, "its rows are forwarded as they come, none is held");
        let refused = [
            (self.state.state.is_some(), "--state", "such a file cannot be appended to"),
            (self.input.merge, "--merge", "such files are read one after another"),
            (selection.best.is_some(), "--best", held),
            (selection.count.is_some(), "--count", held),
            (selection.duplicates_only, "--duplicates-only", held),
            (selection.unique_only, "--unique-only", held),
        ];
        let refused = refused.into_iter().find(|(is_asked, ..)| *is_asked);
        refused.map(|(_, flag, why)| (flag, why)).or_else(|| self.output.refuses_columns())
    }

    fn sink(&self, opener: &mut Opener) -> Result<Sink, Failure> {
        Ok(self.output.sink(opener)?.counted(self.selection.count.clone()))
    }

    fn warn(&self, done: &Done<'_, Dedup>) {
        self.print_warnings(done);
    }

    fn summarise(&self, done: &Done<'_, Dedup>) {
        report::summarise(done);
    }
}

impl Arguments {
    /// What is asked, but for the bytes.
    fn spec(&self) -> Result<DedupSpec, Failure> {
        let selection = &self.selection;
        // Within the memory that was allowed, as far as that is known.
        let limit = self.filter.memory;
        let limit = limit.map(|most| usize::try_from(most / 4).unwrap_or(usize::MAX).min(HELD));
        let hold = selection.best.as_ref().map(|(_, better)| HoldSpec {
            length: selection.hold.unwrap_or(0),
            better: *better,
            limit,
        });
        let count = selection.wanted().map(|wanted| CountSpec { wanted, limit });
        let window = self.window.span.within.unwrap_or(u64::MAX);
        let flag = if count.is_some() { "--count" } else { "--best" };
        if (hold.is_some() || count.is_some())
            && self.time.lateness.lateness.is_some_and(|lateness| lateness > window)
        {
            return Err(Failure::Usage(format!(
                "{flag}: records are held by their keys, so --lateness can be at most --within"
            )));
        }
        let mut spec = self.filter.spec(&self.window)?;
        let timed = self.input.may_bring_times(self.window.span.within.is_some());
        spec.clock = self.time.clock(timed);
        spec.changes = selection.changes().map(Change::text).collect();
        spec.bands = selection.changes().filter_map(|change| change.band).collect();
        (spec.hold, spec.count) = (hold, count);
        let reading = self.form.reading(&self.input).with("clock-by", self.time.clock_by());
        // What waits has numbers of copies, which mean nothing elsewhere.
        spec.reading = Some(reading.with("count", count.map(|_| "true")));
        Ok(spec)
    }

    /// What is wanted of the records.
    fn options(&self) -> Result<Options, Failure> {
        let digester = Digester::new(self.filter.seed);
        let mut options = self.input.options(digester, self.window.span.within.is_some())?;
        self.form.apply(&mut options);
        for Change { field, band } in self.selection.changes() {
            let fields = if band.is_some() { &mut options.bands } else { &mut options.change };
            fields.push(field.clone());
        }
        self.time.apply(&mut options);
        options.rank = self.selection.best.as_ref().map(|(field, _)| field.clone());
        Ok(options)
    }

    /// The saved state, if there is one that fits this run.
    fn resume(&self, spec: &DedupSpec, path: &Path) -> Result<Option<Dedup>, Failure> {
        let session = spec.resume(path).map_err(|error| Failure::Trouble(error.to_string()))?;
        let Some(session) = session else { return Ok(None) };
        let path = path.display();
        if spec.hold.is_none() && spec.count.is_none() && !session.waiting().is_empty() {
            let waiting = match session.waiting().len() {
                1 => "1 record that waits".into(),
                n => format!("{} that wait", many(n as u64, "record")),
            };
            return Err(Failure::Usage(format!(
                "state {path} holds {waiting} under --best; resume it with --best and --hold"
            )));
        }
        if spec.plan().is_ok_and(|plan| plan != *session.filter().plan()) {
            eprintln!(
                "lately: using the size, error rate and structure stored in {path}; --memory, --expect, --fpr, --slack, --lateness, --on-full and --structure only apply to a new state"
            );
        }
        Ok(Some(session))
    }
}
