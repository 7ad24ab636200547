//! `lately dedup`: the main job.

mod input;
mod output;
mod report;

use crate::arguments::{FilterArguments, WindowArguments};
use crate::progress::Progress;
use crate::signals::Signals;
use crate::{Failure, arguments};
use clap::Args;
use input::InputArguments;
use lately::{AnyFilter, Digester, Renewal};
use lately_stream::change::LastValues;
use lately_stream::clock::StreamClock;
use lately_stream::hold::{Better, Hold};
use lately_stream::judge::Judge;
use lately_stream::pipeline::{Keeper, Pipeline};
use lately_stream::source::Source;
use lately_stream::state::State;
use lately_stream::{quantity, summary};
use output::OutputArguments;
use std::path::PathBuf;
use std::thread;
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
  lately dedup access.log                                    each line once
  zcat log.gz | lately dedup --last 100k                     ... among the last 100,000
  lately dedup reads.csv --key epc --time timestamp --within 5s
  lately dedup events.ndjson --key /user/id,type --within 10m --time ts
  lately dedup reads.csv --key epc --within 5s --renew fresh one read a tag every 5 s
  lately dedup reads.csv --key epc --within 5s --best rssi:max --hold 200ms
  tail -F app.log | lately dedup --within 1m --state app.state")]
pub struct Arguments {
    /// Inputs in order; `-` or none: standard input
    files: Vec<String>,

    #[command(flatten)]
    input: InputArguments,

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
#[command(next_help_heading = "Stream clock")]
struct TimeArguments {
    /// How far behind the newest time a record may be to be judged [default: the window]
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration)]
    lateness: Option<u64>,

    /// How far ahead of the clock a time is believed, if the records after it do not follow
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration, default_value = "1h")]
    max_skew: u64,
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
    /// rate it was begun with
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,

    /// How often to save it
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration, default_value = "30s")]
    state_every: u64,
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
    let started = Instant::now();
    let signals = Signals::listen()?;
    let plan = arguments.filter_arguments().plan(&arguments.window)?;
    let digester = Digester::new(arguments.filter.seed);
    let options = arguments.input.options(digester, &arguments.window, &arguments.burst)?;
    let files = if arguments.files.is_empty() { vec!["-".into()] } else { arguments.files.clone() };

    let mut judge = arguments.judge(plan.build(), options.time.is_some() || options.time_wanted);
    let mut hold = arguments.hold();
    let keeper = arguments.keeper();
    if let Some(keeper) = &keeper {
        let state = State::load(&keeper.path, &keeper.settings)
            .map_err(|error| Failure::Trouble(error.to_string()))?;
        if let Some(state) = state {
            if hold.is_none() && !state.held.is_empty() {
                return Err(Failure::Usage(format!(
                    "state {} holds {} records that wait under --best; go on with --best and --hold",
                    keeper.path.display(),
                    state.held.len()
                )));
            }
            if state.filter.plan() != judge.filter.plan() {
                eprintln!(
                    "lately: the filter in {} goes on with the size, rate and structure it was begun with; --memory, --expect, --fpr, --slack, --on-full and --structure count for a new state",
                    keeper.path.display()
                );
            }
            resume(&mut judge, hold.as_mut(), state, arguments.change_bytes());
        }
    }

    let sink = arguments.output.sink(&files)?;
    let mut pipeline = Pipeline::new(judge, sink, hold, keeper);
    let quiet = arguments.output.quiet;
    let to_stdout = arguments.output.to_stdout();
    let mut progress = Progress::new(&files, to_stdout, quiet, signals);
    let threads = arguments.threads.unwrap_or_else(|| {
        thread::available_parallelism().map_or(1, std::num::NonZero::get).min(8)
    });
    let result = pipeline.run(Source::new(files, options), threads, &mut progress);
    progress.finish();

    let took = started.elapsed();
    let notes = report::Notes { arguments, pipeline: &pipeline, took };
    notes.print();
    arguments.output.write_summary(&summary::to_json(&pipeline.report, &pipeline.judge, took))?;
    result.map_err(|error| Failure::Trouble(error.to_string()))?;
    notes.failure().map_or(Ok(()), Err)
}

impl Arguments {
    fn judge(&self, filter: AnyFilter, timed: bool) -> Judge {
        let lateness = self.time.lateness.or(self.window.within).unwrap_or(u64::MAX);
        let clock = timed.then(|| StreamClock::new(lateness, self.time.max_skew));
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
        let mut settings = self.input.settings();
        let mut add = |name: &str, value: String| settings.push_str(&format!(" {name}={value}"));
        match (self.window.within, self.window.last) {
            (Some(span), _) => add("within", quantity::display_duration(span)),
            (None, Some(n)) => add("last", quantity::display_count(n)),
            (None, None) => add("within", "ever".into()),
        }
        let fresh = matches!(self.window.renew, arguments::Renew::Fresh);
        add("renew", if fresh { "fresh" } else { "always" }.into());
        add("seed", self.filter.seed.to_string());
        if !self.burst.pass_on_change.is_empty() {
            add("pass-on-change", self.burst.pass_on_change.join(","));
        }
        settings
    }
}

/// Goes on from a saved state.
fn resume(judge: &mut Judge, hold: Option<&mut Hold>, state: State, change_bytes: usize) {
    judge.filter = state.filter;
    if let Some(now) = state.clock {
        judge.resume_clock(now, state.of_events);
    }
    if let (Some(own), Some(saved)) = (&mut judge.last_values, state.last_values) {
        *own = saved.limited(change_bytes);
    }
    if let Some(hold) = hold {
        for (until, key, record) in state.held {
            hold.resume(until, key, record);
        }
    }
}
