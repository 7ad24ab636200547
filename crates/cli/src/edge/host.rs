//! `lately edge host`.

use super::live::{BrokerArguments, ClockArguments, Line, block_on, summary_of};
use crate::{Failure, many};
use clap::Args;
use lately_edge::host::{HostConfig, HostCounts, Refusal};
use lately_edge::process::Process;
use lately_edge_mqtt::process::ProcessRun;
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

    /// Folder for its state and its id
    #[arg(long, value_name = "FOLDER", default_value = "edge-state/host")]
    state: PathBuf,

    /// Maximum number of squares
    #[arg(long, value_name = "COUNT", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=4096))]
    room: u32,

    /// Follow the paper: send whole filters instead of deltas, and do not check a reading again that the filter
    /// rejects
    #[arg(long)]
    plain: bool,
}

/// How hosts work.
pub fn config(plain: bool) -> HostConfig {
    let default = HostConfig::default();
    HostConfig {
        deltas: default.deltas && !plain,
        names: default.names && !plain,
        second_look: default.second_look && !plain,
        ..default
    }
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (broker, clock) = (arguments.broker.broker()?, arguments.clock.clock()?);
    let mut line = Line::new(&broker, false);
    let folder = Folder::open(&arguments.state)?;
    let run = ProcessRun::new(broker, clock, folder, arguments.room, config(arguments.plain))?;
    let resumed = run.resumed();
    if resumed.hosts > 0 || resumed.messages > 0 {
        line.say(&format!(
            "resumes with {} and {} after that",
            many(resumed.hosts as u64, "square"),
            many(resumed.messages as u64, "message"),
        ));
    }
    if resumed.cut_off > 0 {
        line.say(&format!(
            "ignoring {} of an incomplete write at the end of the journal; they were never acknowledged, and the broker sends them again",
            many(resumed.cut_off as u64, "byte"),
        ));
    }
    let (process, traffic) = block_on(|stop| async {
        let watch = run.run(stop, |view| {
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

/// What the hosts did, on standard error.
pub fn summary(process: &Process) {
    let counts = process.counts();
    let HostCounts { kept, redundant, lost, refused, .. } = counts;
    let (pending, expected) = (process.pending(), counts.expected_lost);
    eprintln!(
        "lately: {}: {} kept, {redundant} redundant, {lost} lost to filters, {refused} refused; {pending} waiting for their requesters; {expected:.2} expected to be lost to workers' filters",
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
