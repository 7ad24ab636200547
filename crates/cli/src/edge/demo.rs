//! `lately edge demo`: a whole system on this machine, in fast motion.

use super::coordinator::RulesArguments;
use super::live::{block_on, summary_of};
use super::routes::{Plan, minute, routes};
use super::{host, worker};
use crate::{Failure, many};
use clap::Args;
use lately_edge::cell::KmCell;
use lately_edge::coordinator::CoordinatorConfig;
use lately_edge::element::Property;
use lately_edge::host::HostCounts;
use lately_edge::ids::{RequesterId, TaskId};
use lately_edge::process::Process;
use lately_edge::rules::Rules;
use lately_edge::task::{Area, Task};
use lately_edge_mqtt::broker::Broker;
use lately_edge_mqtt::clock::Clock;
use lately_edge_mqtt::coordinator::CoordinatorRun;
use lately_edge_mqtt::mosquitto::Mosquitto;
use lately_edge_mqtt::process::ProcessRun;
use lately_edge_mqtt::requester::RequesterRun;
use lately_edge_mqtt::run::{RunError, Stop, stop};
use lately_edge_mqtt::store::Folder;
use lately_edge_mqtt::worker::{Fleet, FleetSummary, Source, WorkerRun, run_fleet};
use lately_stream::quantity;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{IsTerminal, Write as _, stderr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Cells that are shown.
const SHOWN: usize = 16;
/// Between two pictures on a terminal, and two lines elsewhere.
const PICTURES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(10));
/// How long nobody may have a connection at the start.
const CONNECT: Duration = Duration::from_secs(5);
/// How long the last readings may take to their requester.
const LAST: Duration = Duration::from_secs(2);

/// Show the whole system at work: coordinator, hosts, workers and a requester
///
/// Walks workers of a generated city or of a trace through part of their day, and shows the busiest
/// cells, the messages sent and the messages saved. All roles run in this process and exchange messages in memory;
/// with --broker they use a real MQTT broker. Leaves no files behind.
#[derive(Args)]
pub struct Arguments {
    /// A trace, as for `lately edge worker` [default: a generated city]
    trace: Option<PathBuf>,

    /// Number of workers, each with its own connection
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    workers: usize,

    /// Number of processes that run hosts
    #[arg(long, value_name = "COUNT", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    hosts: u32,

    /// Run this many times faster than real time
    #[arg(long, value_name = "FACTOR", default_value_t = 60.0)]
    speed: f64,

    /// Time of day to start at
    #[arg(long, value_name = "TIME", default_value = "8:00", value_parser = minute)]
    from: usize,

    /// Minutes of the day to run
    #[arg(long, value_name = "COUNT", default_value_t = 60)]
    minutes: usize,

    /// MQTT broker to use: `mosquitto` starts the installed one on a free port; mqtt://host:1883 is one
    /// that no other part of Lately uses [default: none, messages stay in memory]
    #[arg(long, value_name = "BROKER", value_parser = choice)]
    broker: Option<Choice>,

    #[command(flatten)]
    rules: RulesArguments,

    /// Whom hosts tell that filters were emptied, as for `lately edge host`
    #[arg(long, value_enum, default_value = "cell")]
    reset_by: host::ResetName,

    /// Seed of the generated city and of the choice of workers
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Which broker is asked for.
#[derive(Clone, Debug)]
enum Choice {
    Mosquitto,
    Elsewhere(Broker),
}

fn choice(text: &str) -> Result<Choice, String> {
    match text {
        "mosquitto" => Ok(Choice::Mosquitto),
        _ => Broker::new(text, None)
            .map(Choice::Elsewhere)
            .map_err(|error| format!("not `mosquitto`, and {error}")),
    }
}

impl Choice {
    /// Where it is, and what must live as long as it is used.
    fn start(&self) -> Result<(Broker, Option<Mosquitto>), Failure> {
        let trouble = |error: &dyn std::fmt::Display| Failure::Trouble(error.to_string());
        match self {
            Self::Mosquitto => {
                let own = Mosquitto::start("").map_err(|error| trouble(&error))?;
                let broker = Broker::new(&own.address(), None).map_err(|error| trouble(&error))?;
                Ok((broker, Some(own)))
            }
            Self::Elsewhere(broker) => Ok((broker.clone(), None)),
        }
    }
}

/// What a host process shows: filter bits set in each cell, readings kept and redundant.
#[derive(Clone, Default)]
struct Shown {
    cells: Vec<(KmCell, u32)>,
    squares: u64,
    kept: u64,
    redundant: u64,
}

/// What the picture is made of.
#[derive(Default)]
struct Board {
    hosts: Mutex<BTreeMap<u32, Shown>>,
    received: AtomicU64,
    fleet: Arc<Fleet>,
    /// Readings that there are to take.
    readings: u64,
}

/// The roles, which have not begun.
struct Roles {
    coordinator: CoordinatorRun,
    hosts: Vec<ProcessRun>,
    workers: Vec<(WorkerRun, Source)>,
    requester: RequesterRun,
    /// Readings that the workers will take.
    readings: u64,
}

impl Roles {
    fn new(
        arguments: &Arguments,
        rules: Rules,
        broker: &Broker,
        clock: Clock,
        states: &Scratch,
    ) -> Result<Self, Failure> {
        let trace = worker::trace(arguments.trace.as_ref(), arguments.seed)?;
        let noise = Property::new("noise").map_err(|error| Failure::Trouble(error.to_string()))?;
        let config = CoordinatorConfig { rules, ..CoordinatorConfig::default() };
        let folder = Folder::open(&states.0.join("coordinator"))?;
        let coordinator = CoordinatorRun::new(broker.clone(), clock, folder, config)?;
        let hosts = (0..arguments.hosts).map(|number| {
            let folder = Folder::open(&states.0.join(format!("host-{number}")))?;
            let config = host::config(false, arguments.reset_by);
            ProcessRun::new(broker.clone(), clock, folder, 4096, config)
        });
        let hosts = hosts.collect::<Result<Vec<_>, _>>()?;
        // Leaves time for all connections.
        let begin = (clock.now() + (arguments.speed * 1_500.0) as u64).next_multiple_of(60_000);
        let plan = Plan {
            properties: vec![noise],
            part: (arguments.from, arguments.from.saturating_add(arguments.minutes)),
            begin,
            seed: arguments.seed,
            walks: (0, arguments.workers),
        };
        let routes = routes(&trace, &plan)?;
        let fixes = routes.iter().flat_map(|(_, fixes)| fixes);
        let readings = fixes.map(|fix| fix.readings.len() as u64).sum();
        let workers = worker::fleet_of(broker, clock, 20_000, &plan.properties, routes);
        let (id, from) = (TaskId(1), clock.now());
        let task =
            Task { id, property: noise, area: Area::Everywhere, from, until: u64::MAX, wanted: 1 };
        let (id, broker) = (RequesterId(1), broker.clone());
        let requester = RequesterRun { broker, clock, id, task, most: None, stays: false };
        Ok(Self { coordinator, hosts, workers, requester, readings })
    }

    /// Runs all until the workers have ended, or until told to stop: what they did, and what the hosts are then.
    async fn run(
        self,
        asked: Stop,
        board: Arc<Board>,
        bits: u32,
        broker: &Broker,
    ) -> Result<(FleetSummary, Vec<Process>), Failure> {
        let Self { coordinator, hosts, workers, requester, .. } = self;
        let picture = tokio::spawn(paint(Arc::clone(&board), bits));
        let (stopper, stopped) = stop();
        let mut around = tokio::task::JoinSet::new();
        for (number, host) in (0..).zip(hosts) {
            let (stop, board) = (stopped.clone(), Arc::clone(&board));
            around.spawn(host_process(number, host, stop, board));
        }
        let stop = stopped.clone();
        around.spawn(async move { coordinator.run(stop, |_| ()).await.map(|_| None) });
        let (stop, received) = (stopped.clone(), Arc::clone(&board));
        around.spawn(async move {
            let sink = |arrived: &[lately_edge::requester::Arrived]| {
                let count: usize = arrived.iter().map(|batch| batch.readings.len()).sum();
                received.received.fetch_add(count as u64, Ordering::Relaxed);
                Ok(())
            };
            requester.run(stop, sink, |_| ()).await.map(|_| None)
        });
        drop(stopped);
        let workers = run_fleet(workers, asked, Arc::clone(&board.fleet));
        let summary = tokio::select! {
            summary = workers => summary?,
            why = unreachable(&board) => {
                return Err(Failure::Trouble(format!("no connection to {broker}: {why}")));
            }
            Some(ended) = around.join_next() => {
                let why = ended.map_err(|error| Failure::Trouble(error.to_string()))?;
                return Err(why.err().map_or_else(|| Failure::Trouble("a part has ended".into()), Failure::from));
            }
        };
        // So that the last picture is not one without workers.
        picture.abort();
        tokio::time::sleep(LAST).await;
        stopper.stop();
        let mut processes = Vec::new();
        while let Some(ended) = around.join_next().await {
            let ended = ended.map_err(|error| Failure::Trouble(error.to_string()))?;
            processes.extend(ended?);
        }
        Ok((summary, processes))
    }
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let clock = Clock::new(arguments.speed, Clock::system())
        .ok_or_else(|| Failure::Usage(format!("--speed must be 1 to {}", Clock::FASTEST)))?;
    let rules = arguments.rules.rules()?;
    let (broker, _own) = match &arguments.broker {
        Some(choice) => choice.start()?,
        None => (Broker::in_memory(), None),
    };
    let states = Scratch::new()?;
    let bits = rules.size.bits;
    let roles = Roles::new(arguments, rules, &broker, clock, &states)?;
    let board = Arc::new(Board { readings: roles.readings, ..Board::default() });
    eprintln!(
        "lately: {} and {}, {} of the day at {}× real time, {}",
        many(u64::from(arguments.hosts), "host process").replace("processs", "processes"),
        many(roles.workers.len() as u64, "worker"),
        many(arguments.minutes as u64, "minute"),
        arguments.speed,
        match &arguments.broker {
            Some(_) => format!("broker {broker}"),
            None => "messages in memory".into(),
        }
    );
    let run = |asked| roles.run(asked, Arc::clone(&board), bits, &broker);
    let (summary, processes) = block_on(run)?;
    tell(&board, &summary, &processes);
    Ok(())
}

async fn host_process(
    number: u32,
    host: ProcessRun,
    stop: Stop,
    board: Arc<Board>,
) -> Result<Option<Process>, RunError> {
    let watch = |view: &lately_edge_mqtt::process::ProcessView<'_>| {
        let HostCounts { kept, redundant, .. } = view.process.counts();
        let cells = view.process.hosts().flat_map(|host| host.occupancy()).collect();
        let squares = view.process.hosts().count() as u64;
        if let Ok(mut hosts) = board.hosts.lock() {
            hosts.insert(number, Shown { cells, squares, kept, redundant });
        }
    };
    host.run(stop, watch).await.map(|(process, _)| Some(process))
}

/// Paints the picture again and again.
async fn paint(board: Arc<Board>, bits: u32) {
    let terminal = stderr().is_terminal();
    let mut lines = 0;
    loop {
        tokio::time::sleep(if terminal { PICTURES.0 } else { PICTURES.1 }).await;
        if terminal {
            let picture = picture(&board, bits);
            // Back to the first line of the last picture, and clear from there. A line that is longer than
            // the terminal is wide would count for two, so it is cut off.
            let back = if lines > 0 { format!("\x1b[{lines}A\x1b[J") } else { String::new() };
            lines = picture.lines().count();
            let _ = write!(stderr(), "{back}\x1b[?7l{picture}\x1b[?7h");
        } else if board.fleet.running.load(Ordering::Relaxed) > 0 {
            eprintln!("lately: {}", counts(&board).join(": "));
        }
    }
}

/// Returns why when nobody has a connection after a while.
async fn unreachable(board: &Board) -> String {
    tokio::time::sleep(CONNECT).await;
    let trouble = board.fleet.trouble.lock().ok().and_then(|trouble| trouble.clone());
    match trouble {
        Some(why) if board.fleet.connected.load(Ordering::Relaxed) == 0 => why,
        _ => std::future::pending().await,
    }
}

/// How far it is; each line shorter than a terminal is wide.
fn counts(board: &Board) -> [String; 2] {
    let of = |count: &AtomicU64| quantity::display_count(count.load(Ordering::Relaxed));
    let fleet = &board.fleet;
    [
        format!(
            "{} of {} workers connected, {} of {} readings taken",
            of(&fleet.connected),
            of(&fleet.running),
            of(&fleet.fixes),
            quantity::display_count(board.readings),
        ),
        format!(
            "{} sent, {} skipped ({:.1} % saved), {} received by the requester",
            of(&fleet.sent),
            of(&fleet.skipped),
            saved(fleet.sent.load(Ordering::Relaxed), fleet.skipped.load(Ordering::Relaxed)),
            of(&board.received)
        ),
    ]
}

/// The share of the wanted readings that was not sent, in percent.
fn saved(sent: u64, skipped: u64) -> f64 {
    100.0 * skipped as f64 / (sent + skipped).max(1) as f64
}

/// The counts, and the cells with the fullest filters.
fn picture(board: &Board, bits: u32) -> String {
    let mut text = counts(board).join("\n") + "\n";
    let hosts = board.hosts.lock().map(|hosts| hosts.clone()).unwrap_or_default();
    let sum = |count: fn(&Shown) -> u64| hosts.values().map(count).sum();
    let _ = writeln!(
        text,
        "{} kept, {} redundant in {}; the fullest filters of {}:",
        quantity::display_count(sum(|shown| shown.kept)),
        quantity::display_count(sum(|shown| shown.redundant)),
        many(sum(|shown| shown.squares), "square"),
        many(sum(|shown| shown.cells.len() as u64), "cell"),
    );
    let mut cells: Vec<(KmCell, u32)> = hosts.into_values().flat_map(|shown| shown.cells).collect();
    cells.sort_by_key(|&(cell, ones)| (std::cmp::Reverse(ones), cell));
    let fullest = cells.first().map_or(1, |&(_, ones)| ones.max(1));
    for (cell, ones) in cells.into_iter().take(SHOWN).filter(|&(_, ones)| ones > 0) {
        // Filters are sized to stay mostly empty, so bars are relative to the fullest one.
        let bar = "█".repeat((f64::from(ones) / f64::from(fullest) * 40.0).ceil() as usize);
        let full = 100.0 * f64::from(ones) / f64::from(bits.max(1));
        let _ = writeln!(text, "  {cell:<10} {bar:<40} {full:5.1} % of the bits");
    }
    text
}

/// What became of every reading.
fn tell(board: &Board, summary: &FleetSummary, processes: &[Process]) {
    let counts = &summary.counts;
    let number = quantity::display_count;
    eprintln!(
        "lately: {}, {}: {} sent, {} skipped ({:.1} % saved), {} asked for by nobody",
        many(summary.workers, "worker"),
        many(counts.sent + counts.skipped + counts.unasked, "reading"),
        number(counts.sent),
        number(counts.skipped),
        saved(counts.sent, counts.skipped),
        number(counts.unasked),
    );
    let mut all = HostCounts::default();
    processes.iter().for_each(|process| all.add(&process.counts()));
    let squares = processes.iter().map(|process| process.hosts().count() as u64).sum();
    eprintln!(
        "lately: {} on {}: {} kept, {} redundant, {} lost to filters, {} refused",
        many(squares, "square"),
        many(processes.len() as u64, "host process").replace("processs", "processes"),
        number(all.kept),
        number(all.redundant),
        number(all.lost),
        number(all.refused),
    );
    let received = board.received.load(Ordering::Relaxed);
    eprintln!("lately: the requester received {}", many(received, "reading"));
    eprintln!("lately: the workers' connections: {}", summary_of(&summary.traffic));
}

/// A folder that goes with this value.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, Failure> {
        let name = format!("lately-demo-{}-{}", std::process::id(), Clock::system());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is a few small files.
        let _ = fs::remove_dir_all(&self.0);
    }
}
