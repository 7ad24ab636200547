//! `lately edge coordinator`.

use super::live::{BrokerArguments, ClockArguments, Line, block_on, state_folder, summary_of};
use super::web::{Metrics, MetricsArguments};
use crate::{Failure, many};
use clap::{Args, ValueEnum};
use lately_edge::cell::Square;
use lately_edge::coordinator::{Coordinator, CoordinatorConfig};
use lately_edge::filter::FilterSize;
use lately_edge::message::Aggregate;
use lately_edge::rules::{Mode, Rules};
use lately_edge_mqtt::coordinator::{CoordinatorRun, CoordinatorView};
use lately_edge_mqtt::store::Folder;
use lately_stream::quantity;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Run the coordinator: assigns a host to each square and forwards tasks
///
/// One acts at a broker; others that are started wait, and take over when it ends or falls silent. Its rules apply to all
/// hosts and workers. Processes, squares and tasks are
/// kept in the state folder, so it may be stopped or killed at any time; meanwhile workers, hosts and requesters
/// continue with what they know.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    broker: BrokerArguments,

    #[command(flatten)]
    clock: ClockArguments,

    #[command(flatten)]
    rules: RulesArguments,

    #[command(flatten)]
    metrics: MetricsArguments,

    /// Folder for its state [default: coordinator in the folder `edge` of $STATE_DIRECTORY (systemd) or of
    /// $XDG_STATE_HOME/lately, /var/lib/lately (root) or ~/.local/state/lately]
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,

    /// Most tasks in all
    #[arg(long, value_name = "COUNT", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=256))]
    tasks: u32,

    /// Most tasks of one requester
    #[arg(long, value_name = "COUNT", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=256))]
    tasks_of_one: u32,

    /// How long a square waits for a lost process before it is assigned to another one. A process that returns
    /// in time still has the square's readings
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = quantity::duration)]
    grace: u64,
}

/// The rules of all squares.
#[derive(Args, Clone)]
#[command(next_help_heading = "Rules")]
pub struct RulesArguments {
    /// How long a reading is valid; after that, a new one is wanted
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = quantity::duration)]
    window: u64,

    /// Elements (a cell of 100 m and a property) that the filter of a 1 km cell is sized for
    #[arg(long, default_value_t = 100)]
    n: u32,

    /// False positive rate that the filter is sized for
    #[arg(long, default_value = "0.001", value_parser = quantity::share)]
    p: f64,

    /// Readings of one element that a worker sends before it stops
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    m_worker: u8,

    /// `reset` empties all filters at the end of each window; with `ageing`, each element is due again one
    /// window after its last reading
    #[arg(long, value_enum, default_value = "reset")]
    mode: ModeName,

    /// Resolution of an ageing filter: steps per window
    #[arg(long, value_name = "COUNT", default_value_t = 60, value_parser = clap::value_parser!(u8).range(1..=120))]
    steps: u8,

    /// Share of suppressed readings that are sent anyway, so that no false positive silences a place for good
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = quantity::share)]
    refresh: f64,
}

#[derive(Clone, Copy, ValueEnum)]
enum ModeName {
    Reset,
    Ageing,
}

impl RulesArguments {
    pub fn rules(&self) -> Result<Rules, Failure> {
        let size = FilterSize::for_elements(self.n, self.p)
            .ok_or_else(|| Failure::Usage("--n and --p: no filter of that size".into()))?;
        let mode = match self.mode {
            ModeName::Reset => Mode::Reset,
            ModeName::Ageing => Mode::Ageing { steps: self.steps },
        };
        let refresh = (self.refresh * 65_536.0) as u16;
        let validity = self.window / 1_000_000;
        let rules = Rules { mode, validity, size, m_worker: self.m_worker, refresh };
        rules.check().map_err(|error| Failure::Usage(error.to_string()))?;
        Ok(rules)
    }
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (broker, clock) = (arguments.broker.broker()?, arguments.clock.clock()?);
    let config = CoordinatorConfig {
        rules: arguments.rules.rules()?,
        grace: arguments.grace / 1_000_000,
        tasks: arguments.tasks,
        tasks_of_one: arguments.tasks_of_one,
        ..CoordinatorConfig::default()
    };
    let web = arguments.metrics.serve()?;
    let mut line = Line::new(&broker, false);
    let state = state_folder(arguments.state.as_ref(), "coordinator")?;
    line.say(&format!("state in {}", state.display()));
    let run = CoordinatorRun::new(broker, clock, Folder::open(&state)?, config)?;
    let mut waits = None;
    let (role, traffic) = block_on(|stop| async {
        let watch = run.run(stop, |view| {
            if view.other != waits {
                line.say(&match view.other {
                    Some(other) => format!("another coordinator ({other:016x}) acts at this broker; waiting until it ends"),
                    None => "acting as the coordinator from now on, with what processes and requesters tell".into(),
                });
                waits = view.other;
            }
            web.iter().for_each(|web| metrics(view).publish(web));
            line.show(view.link, || {
                let counts = view.role.counts();
                format!(
                    "{}, {}, {}; {}",
                    many(view.role.squares().count() as u64, "square"),
                    many(counts.look_ups, "look-up"),
                    many(view.role.tasks().count() as u64, "task"),
                    gathered(view.role),
                )
            });
        });
        Ok(watch.await?)
    })?;
    line.finish();
    let counts = role.counts();
    eprintln!(
        "lately: {} with a host, {}, {}; {} could not be placed\nlately: hosts report {}\nlately: {}",
        many(role.squares().count() as u64, "square"),
        many(counts.look_ups, "look-up"),
        many(role.tasks().count() as u64, "task"),
        quantity::display_count(counts.unplaced),
        gathered(&role),
        summary_of(&traffic),
    );
    Ok(())
}

/// What it counts, and what hosts have told it.
fn metrics(view: &CoordinatorView<'_>) -> Metrics {
    let (role, counts) = (view.role, view.role.counts());
    let mut metrics = Metrics::default();
    metrics.link(view.link);
    metrics.gauge(
        "acts",
        "1 while this coordinator acts, 0 while another does.",
        u8::from(view.other.is_none()),
    );
    metrics.counter("look_ups_total", "Look-ups.", counts.look_ups);
    metrics.counter(
        "unplaced_total",
        "Look-ups for squares that nobody can host.",
        counts.unplaced,
    );
    metrics.gauge("tasks", "Tasks known.", role.tasks().count());
    metrics.counter("tasks_refused_total", "Tasks refused.", counts.refused);
    let processes: Vec<_> = role.processes().collect();
    let of = |id| format!("process=\"{id}\"");
    let heard = processes.iter().map(|&(id, _, heard, _)| (of(id), heard as f64 / 1000.0));
    metrics.family(
        "process_last_heard_seconds",
        "gauge",
        "When a process was last heard of, since 1970.",
        heard,
    );
    let there = processes.iter().map(|&(id, .., there)| (of(id), u8::from(there)));
    metrics.family("process_up", "gauge", "1 for a process that is there.", there);
    let used = processes.iter().map(|&(id, (used, _), ..)| (of(id), used));
    metrics.family("process_squares", "gauge", "Squares that a process runs.", used);
    let squares: BTreeMap<Square, Aggregate> =
        role.aggregates().map(|(square, _, aggregate)| (square, aggregate)).collect();
    let verdicts = squares.iter().flat_map(|(square, told)| {
        [("kept", told.kept), ("redundant", told.redundant)]
            .map(|(verdict, count)| (format!("square=\"{square}\",verdict=\"{verdict}\""), count))
    });
    metrics.family(
        "square_readings_total",
        "counter",
        "Readings of a square, as its host told last.",
        verdicts,
    );
    metrics
}

/// The last reports of all hosts, summed.
fn gathered(role: &Coordinator) -> String {
    // Each property of a square comes with the counts of all of it.
    let squares: BTreeMap<Square, Aggregate> =
        role.aggregates().map(|(square, _, aggregate)| (square, aggregate)).collect();
    if squares.is_empty() {
        return "nothing yet".to_owned();
    }
    let sum = |count: fn(&Aggregate) -> u64| squares.values().map(count).sum();
    format!(
        "{}, {} kept and {} redundant",
        many(sum(|told| u64::from(told.workers)), "worker"),
        many(sum(|told| told.kept), "reading"),
        quantity::display_count(sum(|told| told.redundant)),
    )
}
