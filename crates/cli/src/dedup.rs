//! `lately dedup`: the main job.

pub mod output;
mod report;

use crate::arguments::{FilterArguments, TimeArguments, WindowArguments};
use crate::input::InputArguments;
use crate::output::SummaryFile;
use crate::place::{self, Place};
use crate::progress::{Progress, Words};
use crate::signals::Signals;
use crate::{Failure, arguments, many};
use clap::{Args, ValueEnum};
use lately::{AnyFilter, Digester, Plan, Renewal};
use lately_stream::change::LastValues;
use lately_stream::hold::{Better, Hold};
use lately_stream::judge::Judge;
use lately_stream::options::{KeyFormat, Options};
use lately_stream::pipeline::{Keeper, Pipeline};
use lately_stream::source::Source;
use lately_stream::state::State;
use lately_stream::{quantity, summary};
use output::OutputArguments;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Pass on each record once; keep back those seen lately
///
/// Reads files or standard input (lines, CSV, TSV, NDJSON, Zeek logs, RFID formats; gzip and zstd
/// by content) and writes the records that are fresh, unchanged and in order.
///
/// A record ends in exactly one class: fresh (passed on), duplicate (kept back), late (behind the
/// clock by more than --lateness: passed on), skewed (its time is too far in the future: passed
/// on), missing_key (passed on), invalid (unreadable, or without a time: a dead letter).
#[derive(Args)]
#[command(after_help = "\
Examples:
  lately dedup access.log                                    # each line once
  zcat log.gz | lately dedup --last 100k                     # ... among the last 100,000
  lately dedup reads.csv --key epc --time timestamp --within 5s
  lately dedup events.ndjson --key /user/id,type --within 10m --time ts
  lately dedup reads.csv --key epc --within 5s --renew fresh  # one read a tag every 5 s
  lately dedup reads.csv --key epc --within 5s --best rssi:max --hold 200ms
  tail -F app.log | lately dedup --within 1m --state app.state  # remembers across restarts")]
pub struct Arguments {
    /// Inputs in order; `-` or none: standard input
    files: Vec<String>,

    #[command(flatten)]
    input: InputArguments,

    /// `epc`: one tag in any spelling (hex, base64, b'..', tag URI) is one key
    #[arg(long, value_enum, default_value_t = KeyForm::Text, help_heading = "Input")]
    key_format: KeyForm,

    #[command(flatten)]
    window: WindowArguments,

    #[command(flatten)]
    time: TimeArguments,

    #[command(flatten)]
    filter: FilterArguments,

    #[command(flatten)]
    burst: BurstArguments,

    #[command(flatten)]
    output: OutputArguments,

    #[command(flatten)]
    state: StateArguments,

    /// Threads that parse [default: one a core]
    #[arg(long, value_name = "COUNT")]
    threads: Option<usize>,
}

#[derive(Args)]
#[command(next_help_heading = "Which of several")]
struct BurstArguments {
    /// A record passes, though its key was seen, if one of these fields differs from the key's
    /// last record
    #[arg(long, value_name = "FIELD,..", value_delimiter = ',', conflicts_with = "best")]
    pass_on_change: Vec<String>,

    /// Hold a fresh record for --hold and pass on the best of its burst instead of the first:
    /// the one with the largest (FIELD:max) or smallest (FIELD:min) number
    #[arg(long, value_name = "FIELD:max|min", value_parser = best, requires = "hold")]
    best: Option<(String, Better)>,

    /// How long to hold
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration, requires = "best")]
    hold: Option<u64>,
}

#[derive(Args)]
#[command(next_help_heading = "State")]
struct StateArguments {
    /// Remember across restarts in this file: loaded if there, saved at the end, every
    /// --state-every, and on SIGINT, SIGTERM and SIGUSR1. The filter in it keeps the size and the
    /// rate it was begun with. One run at a time uses it: FILE.lock is locked meanwhile, and may be
    /// left behind
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,

    /// How often to save it
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration, default_value = "30s")]
    state_every: u64,
}

/// `--key-format`.
#[derive(Clone, Copy, ValueEnum)]
enum KeyForm {
    Text,
    Epc,
}

/// What is told while it runs.
const WORDS: Words = Words {
    invalid: "the first invalid record, not passed on",
    missing: "the first record without a key, passed on",
    late: "not judged",
    skewed: "passed on, not judged",
    forgotten: "the filter is full and begins to forget early: duplicates may pass",
    refused: "the filter is full and new records are passed on but not remembered: duplicates may pass",
    done: "fresh",
};

fn best(text: &str) -> Result<(String, Better), String> {
    let (field, which) = text.rsplit_once(':').ok_or("write FIELD:max or FIELD:min")?;
    match which {
        "max" => Ok((field.into(), Better::Max)),
        "min" => Ok((field.into(), Better::Min)),
        other => Err(format!("`{other}` is neither `max` nor `min`")),
    }
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let started = Instant::now();
    let signals = Signals::listen()?;
    let plan = arguments.filter_arguments().plan(&arguments.window)?;
    let digester = Digester::new(arguments.filter.seed);
    let options = arguments.options(digester)?;
    let files = if arguments.files.is_empty() { vec!["-".into()] } else { arguments.files.clone() };

    let places = arguments.places(&files)?;
    place::refuse_clashes(&places)?;

    let keeper = arguments.keeper();
    let _lock = keeper.as_ref().map(|keeper| place::lock(&keeper.path)).transpose()?;
    let state = keeper.as_ref().map(|keeper| arguments.load(keeper, &plan)).transpose()?.flatten();
    let goes_on = state.is_some();
    let timed = options.time.is_some() || options.time_wanted;
    let (judge, hold) = arguments.begin(&plan, state, timed)?;

    let outputs = arguments.output.open(&places, goes_on)?;
    let mut pipeline = Pipeline::new(judge, outputs.sink, hold, keeper);
    let source = Source::new(files.clone(), options);
    let quiet = arguments.output.notes.quiet;
    let to_stdout = arguments.output.to_stdout();
    let mut progress =
        Progress::new(&files, to_stdout, quiet, signals, outputs.begins, source.is_live(), WORDS);
    let result = pipeline.run(source, arguments::parsers(arguments.threads), &mut progress);
    let nothing_read = progress.end(&pipeline.report)?;

    let took = started.elapsed();
    let notes = report::Notes { arguments, pipeline: &pipeline, goes_on, nothing_read, took };
    notes.print();
    let numbers = summary::to_json(&pipeline.report, &pipeline.judge, took);
    SummaryFile::write(outputs.summary, arguments.output.notes.summary.is_some(), &numbers)?;
    result.map_err(|error| Failure::Trouble(error.to_string()))?;
    arguments.output.notes.failure(&pipeline.report).map_or(Ok(()), Err)
}

impl Arguments {
    /// What is wanted of the records.
    fn options(&self, digester: Digester) -> Result<Options, Failure> {
        let mut options = self.input.options(digester, self.window.span.within.is_some())?;
        options.key_format = match self.key_format {
            KeyForm::Text => KeyFormat::Text,
            KeyForm::Epc => KeyFormat::Epc,
        };
        options.change.clone_from(&self.burst.pass_on_change);
        options.rank = self.burst.best.as_ref().map(|(field, _)| field.clone());
        Ok(options)
    }

    /// All files of the run.
    fn places(&self, files: &[String]) -> Result<Vec<Place>, Failure> {
        let mut places = Place::inputs(files.iter());
        places.extend(self.output.places()?);
        places.extend(self.state.state.iter().flat_map(|path| Place::state(path)));
        Ok(places)
    }

    /// The saved state, if there is one that fits this run.
    fn load(&self, keeper: &Keeper, plan: &Plan) -> Result<Option<State>, Failure> {
        let state = State::load(&keeper.path, &keeper.settings)
            .map_err(|error| Failure::Trouble(error.to_string()))?;
        let Some(state) = state else { return Ok(None) };
        let path = keeper.path.display();
        if self.burst.best.is_none() && !state.held.is_empty() {
            let waiting = match state.held.len() {
                1 => "1 record that waits".into(),
                n => format!("{} that wait", many(n as u64, "record")),
            };
            return Err(Failure::Usage(format!(
                "state {path} holds {waiting} under --best; go on with --best and --hold"
            )));
        }
        if state.filter.plan() != plan {
            eprintln!(
                "lately: the filter in {path} goes on with the size, rate and structure it was begun with; --memory, --expect, --fpr, --slack, --on-full and --structure count for a new state"
            );
        }
        Ok(Some(state))
    }

    /// The parts that remember: empty, or as a state left them.
    fn begin(
        &self,
        plan: &Plan,
        state: Option<State>,
        timed: bool,
    ) -> Result<(Judge, Option<Hold>), Failure> {
        let mut hold = self.hold();
        let Some(state) = state else {
            let filter = plan.try_build().map_err(|error| {
                Failure::Usage(format!("{error}; give less with --memory or --expect"))
            })?;
            return Ok((self.judge(filter, timed), hold));
        };
        let mut judge = self.judge(state.filter, timed);
        if let Some(now) = state.clock {
            judge.resume_clock(now, state.of_events);
        }
        if let (Some(own), Some(saved)) = (&mut judge.last_values, state.last_values) {
            *own = saved.limited(self.change_bytes());
        }
        if let Some(hold) = &mut hold {
            for (until, key, record) in state.held {
                hold.resume(until, key, record);
            }
        }
        Ok((judge, hold))
    }

    fn judge(&self, filter: AnyFilter, timed: bool) -> Judge {
        let clock = timed.then(|| self.time.clock(&self.window.span));
        let renewal: Renewal = self.window.renew.into();
        let last_values =
            (!self.burst.pass_on_change.is_empty()).then(|| LastValues::new(self.change_bytes()));
        Judge::new(filter, clock, last_values, renewal)
    }

    fn memory(&self) -> u64 {
        self.filter.memory.unwrap_or(arguments::MEMORY)
    }

    /// The most bytes that last values take: a quarter of what is allowed.
    fn change_bytes(&self) -> usize {
        usize::try_from(self.memory() / 4).unwrap_or(usize::MAX)
    }

    /// What the filter is to do: within the rest of the memory where last values take their part.
    fn filter_arguments(&self) -> FilterArguments {
        let mut filter = self.filter.clone();
        if !self.burst.pass_on_change.is_empty() {
            filter.memory = Some(self.memory() - self.memory() / 4);
        }
        filter
    }

    fn hold(&self) -> Option<Hold> {
        let (_, better) = self.burst.best.as_ref()?;
        Some(Hold::new(self.burst.hold.unwrap_or(0), *better, arguments::HELD_BYTES))
    }

    fn keeper(&self) -> Option<Keeper> {
        let path = self.state.state.clone()?;
        let every = Duration::from_nanos(self.state.state_every);
        Some(Keeper { path, settings: self.settings(), every })
    }

    /// What decides which records have equal keys and when they are duplicates, as text.
    fn settings(&self) -> String {
        let mut settings = self.input.settings(match self.key_format {
            KeyForm::Text => "text",
            KeyForm::Epc => "epc",
        });
        settings.push_str(&self.window.span.settings());
        let mut add = |name: &str, value: String| settings.push_str(&format!(" {name}={value}"));
        let fresh = matches!(self.window.renew, arguments::Renew::Fresh);
        add("renew", if fresh { "fresh" } else { "always" }.into());
        add("seed", self.filter.seed.to_string());
        if !self.burst.pass_on_change.is_empty() {
            add("pass-on-change", self.burst.pass_on_change.join(","));
        }
        settings
    }
}
