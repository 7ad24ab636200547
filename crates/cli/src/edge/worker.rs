//! `lately edge worker`.

use super::live::{BrokerArguments, ClockArguments, Line, block_on, summary_of};
use super::routes::{Plan, minute, routes};
use crate::{Failure, many};
use clap::Args;
use lately_edge::Millis;
use lately_edge::cell::{Position, SmallCell};
use lately_edge::element::Property;
use lately_edge::message::WorkerId;
use lately_edge::simulate::trace::Trace;
use lately_edge::simulate::{City, generate};
use lately_edge_mqtt::broker::Broker;
use lately_edge_mqtt::clock::Clock;
use lately_edge_mqtt::worker::{Fix, Fleet, FleetSummary, Source, WorkerRun, run_fleet};
use lately_stream::quantity;
use serde_json::{Map, Value};
use std::fs;
use std::io::{BufRead, stdin};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;

/// Run workers: from a trace, or one that is fed on standard input
///
/// With a trace (or --generate) each walk is a worker with a connection of its own and a fix a
/// minute; the values are made up. Without one, each line of standard input is a fix with what the
/// sensors show, and this is one worker:
/// {"lat":45.8131,"lon":15.9772,"noise":57.5,"pm2.5":12}
#[derive(Args)]
#[command(after_help = "\
Examples:
  lately edge worker --generate --workers 50 --speed 60
  lately edge worker locations.csv --from 8:00 --minutes 60 --speed 60
  sensor | lately edge worker --property noise

The trace is a CSV with the columns user, ts (seconds since 1970), lat and lon, and perhaps tz and
accuracy_m. All days are laid over one.")]
pub struct Arguments {
    /// The trace
    #[arg(conflicts_with = "generate")]
    trace: Option<PathBuf>,

    /// Make up a city
    #[arg(long)]
    generate: bool,

    #[command(flatten)]
    broker: BrokerArguments,

    #[command(flatten)]
    clock: ClockArguments,

    /// What the workers can measure
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "noise")]
    property: Vec<Property>,

    /// Who this worker is, 16 hexadecimal digits, for a broker whose access list names workers [default: by lot]
    #[arg(long, value_name = "HEX", value_parser = id, conflicts_with_all = ["trace", "generate"])]
    id: Option<WorkerId>,

    /// Workers of the trace at most
    #[arg(long, value_name = "COUNT", default_value_t = 200)]
    workers: usize,

    /// Workers of the trace to leave out: another process runs them
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    skip: usize,

    /// From when on in the trace's day
    #[arg(long, value_name = "TIME", default_value = "8:00", value_parser = minute)]
    from: usize,

    /// How many minutes of it
    #[arg(long, value_name = "COUNT", default_value_t = 60)]
    minutes: usize,

    /// How long a worker waits for the host of a new cell before it decides without
    #[arg(long, value_name = "DURATION", default_value = "20s", value_parser = quantity::duration)]
    settle: u64,

    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn id(digits: &str) -> Result<WorkerId, String> {
    let id = lately_edge_mqtt::topic::id(digits).map(WorkerId);
    id.ok_or_else(|| "an id has 16 hexadecimal digits".into())
}

/// A trace from a file or made up, for so many workers.
pub fn trace(file: Option<&PathBuf>, seed: u64) -> Result<Trace, Failure> {
    match file {
        None => {
            // As many days as walk at any hour when a few hundred workers are wanted.
            let city = City { people: 67, days: 1_000, seed, ..City::default() };
            Ok(generate(&city))
        }
        Some(path) => {
            let wrong = |error: &dyn std::fmt::Display| {
                Failure::Trouble(format!("{}: {error}", path.display()))
            };
            let text = fs::read_to_string(path).map_err(|error| wrong(&error))?;
            Trace::from_csv(&text, 100.0).map_err(|error| wrong(&error))
        }
    }
}

pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let (broker, clock) = (arguments.broker.broker()?, arguments.clock.clock()?);
    let fleet = Arc::new(Fleet::default());
    let settle = arguments.settle / 1_000_000;
    let mut invalid = None;
    let workers = if arguments.generate || arguments.trace.is_some() {
        let trace = trace(arguments.trace.as_ref(), arguments.seed)?;
        let now = clock.now();
        let plan = Plan {
            properties: arguments.property.clone(),
            part: (arguments.from, arguments.from.saturating_add(arguments.minutes)),
            begin: now.next_multiple_of(60_000),
            seed: arguments.seed,
            walks: (arguments.skip, arguments.workers),
        };
        fleet_of(&broker, clock, settle, &plan.properties, routes(&trace, &plan)?)
    } else {
        let lot = lately::Digester::new(u64::from(std::process::id()))
            .digest(&Clock::system().to_le_bytes());
        let (fixes, count) = listen(clock);
        invalid = Some(count);
        let (broker, properties) = (broker.clone(), arguments.property);
        let id = arguments.id.unwrap_or(WorkerId(lot.lo()));
        vec![(WorkerRun { broker, clock, id, properties, settle }, Source::Live(fixes))]
    };
    let line = Line::new(&broker, false);
    let summary = block_on(|stop| async {
        let shown = tokio::spawn(show(Arc::clone(&fleet), line));
        let summary = run_fleet(workers, stop, Arc::clone(&fleet)).await;
        shown.abort();
        Ok(summary?)
    })?;
    tell(&summary);
    if let Some(invalid) = invalid.map(|invalid| invalid.load(Ordering::Relaxed))
        && invalid > 0
    {
        eprintln!("lately: {} could not be read as a fix", many(invalid, "line"));
    }
    Ok(())
}

/// What workers did, on standard error.
pub fn tell(summary: &FleetSummary) {
    let counts = &summary.counts;
    let all = counts.sent + counts.skipped;
    eprintln!(
        "lately: {}, {}: {} sent, {} skipped ({:.1} % saved), {} asked for by nobody\nlately: {}",
        many(summary.workers, "worker"),
        many(summary.fixes, "fix").replace("fixs", "fixes"),
        many(counts.sent, "reading"),
        quantity::display_count(counts.skipped),
        100.0 * counts.skipped as f64 / all.max(1) as f64,
        quantity::display_count(counts.unasked),
        summary_of(&summary.traffic),
    );
}

/// Keeps the line on the terminal up to date.
async fn show(fleet: Arc<Fleet>, mut line: Line) {
    let count = |count: &AtomicU64| quantity::display_count(count.load(Ordering::Relaxed));
    loop {
        tokio::time::sleep(Duration::from_millis(250)).await;
        let up = fleet.connected.load(Ordering::Relaxed) > 0;
        let trouble = fleet.trouble.lock().ok().and_then(|trouble| trouble.clone());
        line.news(up, trouble.as_deref().filter(|_| !up));
        line.message(|| {
            format!(
                "{} of {} workers connected, {} fixes, {} sent, {} skipped",
                count(&fleet.connected),
                count(&fleet.running),
                count(&fleet.fixes),
                count(&fleet.sent),
                count(&fleet.skipped)
            )
        });
    }
}

/// Reads fixes from standard input, in a thread of its own; counts lines that are none.
fn listen(clock: Clock) -> (mpsc::Receiver<Fix>, Arc<AtomicU64>) {
    // Bounded: a sensor that is faster than the worker waits.
    let (tell, fixes) = mpsc::channel(64);
    let invalid = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&invalid);
    std::thread::spawn(move || {
        for line in stdin().lock().lines() {
            let Ok(line) = line else { break };
            match fix(&line, clock) {
                Some(fix) => {
                    if tell.blocking_send(fix).is_err() {
                        break;
                    }
                }
                None if line.trim().is_empty() => {}
                None => {
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    });
    (fixes, invalid)
}

/// A fix as a JSON object: `lat`, `lon`, and what was measured by name.
fn fix(line: &str, clock: Clock) -> Option<Fix> {
    let object: Map<String, Value> = serde_json::from_str(line).ok()?;
    let number = |name: &str| object.get(name).and_then(Value::as_f64);
    let position = Position { latitude: number("lat")?, longitude: number("lon")? };
    let cell = SmallCell::at(position).ok()?;
    let mut readings = Vec::new();
    for (name, value) in object.iter().filter(|(name, _)| *name != "lat" && *name != "lon") {
        readings.push((Property::new(name).ok()?, value.as_f64()?));
    }
    Some(Fix { time: clock.now(), cell, readings })
}

/// Workers with these ways.
pub fn fleet_of(
    broker: &Broker,
    clock: Clock,
    settle: Millis,
    properties: &[Property],
    routes: Vec<(WorkerId, Vec<Fix>)>,
) -> Vec<(WorkerRun, Source)> {
    let worker = |id| WorkerRun {
        broker: broker.clone(),
        clock,
        id,
        properties: properties.to_vec(),
        settle,
    };
    let routes = routes.into_iter();
    routes.map(|(id, fixes)| (worker(id), Source::Route(Box::new(fixes.into_iter())))).collect()
}
