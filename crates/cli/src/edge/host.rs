//! `lately edge host`.

use super::live::{BrokerArguments, ClockArguments, Line, block_on, state_folder, summary_of};
use super::web::{Metrics, MetricsArguments};
use crate::{Failure, many};
use clap::{Args, ValueEnum};
use lately_edge::host::{Host, HostConfig, HostCounts, Refusal, ResetBy};
use lately_edge::process::Process;
use lately_edge_mqtt::process::{Missing, ProcessRun, ProcessView};
use lately_edge_mqtt::store::Folder;
use lately_stream::quantity;
use std::path::PathBuf;

/// Run hosts: they keep the filters and readings of squares of 10 km
///
/// The coordinator assigns the squares. Run as many processes as you like, each with its own state
/// folder. A message is acknowledged to the broker only after its changes are on disk, so no reading that
/// was kept is lost when the process is killed.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    broker: BrokerArguments,

    #[command(flatten)]
    clock: ClockArguments,

    #[command(flatten)]
    metrics: MetricsArguments,

    /// Folder for its state and its id [default: host in the folder `edge` of $STATE_DIRECTORY (systemd) or of
    /// $XDG_STATE_HOME/lately, /var/lib/lately (root) or ~/.local/state/lately]
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,

    /// How old a reading may be when it is sent: devices may buffer what they measure
    #[arg(long, value_name = "DURATION", default_value = "2h", value_parser = quantity::duration)]
    max_age: u64,

    /// Maximum number of squares
    #[arg(long, value_name = "COUNT", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=4096))]
    room: u32,

    /// Whom to tell at the end of a window that filters were emptied: each worker by itself, a topic of the square
    /// kilometre, or one of the whole square of 10 km, whose newest message stays at the broker. `square` takes the fewest
    /// messages; workers from before this option do not hear them
    #[arg(long, value_enum, default_value = "cell")]
    reset_by: ResetName,

    /// Follow the paper: send whole filters instead of deltas, and do not check a reading again that the filter
    /// rejects
    #[arg(long)]
    plain: bool,
}

/// Who is told of a reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ResetName {
    Worker,
    Cell,
    Square,
}

impl From<ResetName> for ResetBy {
    fn from(name: ResetName) -> Self {
        match name {
            ResetName::Worker => Self::Worker,
            ResetName::Cell => Self::Cell,
            ResetName::Square => Self::Square,
        }
    }
}

/// How hosts work.
pub fn config(plain: bool, reset_by: ResetName) -> HostConfig {
    let default = HostConfig::default();
    HostConfig {
        reset_by: reset_by.into(),
        deltas: default.deltas && !plain,
        names: default.names && !plain,
        second_look: default.second_look && !plain,
        ..default
    }
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (broker, clock) = (arguments.broker.broker()?, arguments.clock.clock()?);
    let web = arguments.metrics.serve()?;
    let mut line = Line::new(&broker, false);
    let state = state_folder(arguments.state.as_ref(), "host")?;
    line.say(&format!("state in {}", state.display()));
    let folder = Folder::open(&state)?;
    let config = config(arguments.plain, arguments.reset_by);
    let config = HostConfig { max_age: arguments.max_age / 1_000_000, ..config };
    let run = ProcessRun::new(broker, clock, folder, arguments.room, config)?;
    let resumed = run.resumed();
    if resumed.hosts > 0 || resumed.messages > 0 {
        line.say(&format!(
            "resumes with {} and {} after that",
            many(resumed.hosts as u64, "square"),
            many(resumed.messages as u64, "message"),
        ));
    }
    match resumed.missing {
        Some(Missing::Hosts) => line.say(&format!(
            "{}: `hosts` is missing although a journal is there; starting without what was kept. Put `hosts` back, with its journal, to have it again",
            state.display()
        )),
        Some(Missing::Journal(number)) => line.say(&format!(
            "{}: `journal-{number}` is missing; what was accepted after `hosts` was written is lost",
            state.display()
        )),
        None => {}
    }
    if resumed.cut_off > 0 {
        line.say(&format!(
            "ignoring {} of an incomplete write at the end of the journal; they were never acknowledged, and the broker sends them again",
            many(resumed.cut_off as u64, "byte"),
        ));
    }
    let (process, traffic) = block_on(|stop| async {
        let watch = run.run(stop, |view| {
            web.iter().for_each(|web| metrics(view).publish(web));
            line.show(view.link, || {
                let HostCounts { kept, redundant, .. } = view.process.counts();
                format!(
                    "{}, {} kept, {} redundant",
                    many(view.process.hosts().count() as u64, "square"),
                    quantity::display_count(kept),
                    quantity::display_count(redundant),
                )
            });
        });
        Ok(watch.await?)
    })?;
    line.finish();
    summary(&process);
    eprintln!("lately: {}", summary_of(&traffic));
    Ok(())
}

/// What its hosts count.
fn metrics(view: &ProcessView<'_>) -> Metrics {
    let (process, counts) = (view.process, view.process.counts());
    let mut metrics = Metrics::default();
    metrics.link(view.link);
    metrics.counter("submissions_total", "Readings that arrived.", counts.submissions);
    let verdicts = [
        ("kept", counts.kept),
        ("redundant", counts.redundant),
        ("lost", counts.lost),
        ("repeated", counts.duplicates),
        ("refused", counts.refused),
    ];
    let verdicts = verdicts.map(|(verdict, count)| (format!("verdict=\"{verdict}\""), count));
    metrics.family(
        "readings_total",
        "counter",
        "Readings by verdict; they add up to the submissions.",
        verdicts,
    );
    let refusals =
        Refusal::ALL.map(|why| (format!("reason=\"{}\"", why.reason()), counts.refused_for(why)));
    metrics.family(
        "refused_total",
        "counter",
        "Messages refused, readings too, by reason.",
        refusals,
    );
    metrics.gauge("pending", "Readings that wait for their requesters.", process.pending());
    metrics.counter(
        "undelivered_total",
        "Readings that a requester did not get.",
        counts.undelivered,
    );
    metrics.gauge("squares", "Squares of 10 km that it hosts.", process.hosts().count());
    metrics.gauge(
        "workers",
        "Workers that are there.",
        process.hosts().map(Host::workers).sum::<usize>(),
    );
    let (elements, cells) = process
        .hosts()
        .map(Host::coverage)
        .fold((0, 0), |(elements, cells), more| (elements + more.0, cells + more.1));
    metrics.gauge("covered_elements", "Elements with a reading in this period.", elements);
    metrics.gauge("covered_cells", "Cells of 1 km with a reading in this period.", cells);
    metrics.gauge(
        "expected_lost",
        "Elements that false positives are expected to have cost.",
        counts.expected_lost,
    );
    metrics
}

/// What the hosts did, on standard error.
pub fn summary(process: &Process) {
    let counts = process.counts();
    let HostCounts { kept, redundant, lost, refused, duplicates, .. } = counts;
    let (pending, expected) = (process.pending(), counts.expected_lost);
    eprintln!(
        "lately: {}: {} kept, {redundant} redundant, {lost} lost to filters, {refused} refused ({duplicates} more arrived again); {pending} waiting for their requesters; {expected:.2} expected to be lost to workers' filters",
        many(process.hosts().count() as u64, "square"),
        many(kept, "reading"),
    );
    let reasons = Refusal::ALL.into_iter().filter_map(|refusal| {
        let count = counts.refused_for(refusal);
        (count > 0).then(|| format!("{} {count}", refusal.reason()))
    });
    let reasons: Vec<String> = reasons.collect();
    if !reasons.is_empty() {
        eprintln!("lately: refused: {}", reasons.join(", "));
    }
}
