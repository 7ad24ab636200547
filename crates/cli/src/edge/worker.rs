//! `lately edge worker`.

use super::live::{BrokerArguments, ClockArguments, Line, block_on, summary_of};
use super::routes::{Plan, minute, routes};
use crate::{Failure, many};
use clap::Args;
use lately_edge::Millis;
use lately_edge::cell::{Position, SmallCell};
use lately_edge::element::Property;
use lately_edge::host::Refusal;
use lately_edge::ids::WorkerId;
use lately_edge::simulate::trace::Trace;
use lately_edge::simulate::{City, generate};
use lately_edge::worker::Lack;
use lately_edge_mqtt::broker::Broker;
use lately_edge_mqtt::clock::Clock;
use lately_edge_mqtt::worker::{Fix, Fleet, FleetSummary, Source, WorkerRun, run_fleet};
use lately_stream::quantity;
use serde_json::{Map, Value};
use std::fs;
use std::io::{self, BufRead, Read, stdin};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;

/// Run workers: one fed from standard input, or many from a trace
///
/// With a trace (or --generate), each walk is a worker with its own connection and one position fix per
/// minute; the measured values are synthetic. Without one, this is a single worker, and each line of standard input is
/// a fix with the readings of its sensors:
/// {"lat":45.8131,"lon":15.9772,"noise":57.5,"pm2.5":12}
/// With "t", in seconds since 1970, the readings are of that moment: what a device has buffered can be sent later.
/// After the end of the input it finishes once every reading is decided, at the latest after --settle, and hosts have said
/// what became of what was sent, at the latest after 3 s.
#[derive(Args)]
#[command(after_help = "\
Examples:
  lately edge worker --generate --workers 50 --speed 60
  lately edge worker locations.csv --from 8:00 --minutes 60 --speed 60
  sensor | lately edge worker --property noise

Exit status:
  0  success
  1  failure at run time
  2  wrong usage
  4  no connection to the broker was made
  5  readings were not sent because no coordinator answered
  6  readings were not sent because no host was there
  7  no task asked for any reading of some property
  8  hosts refused readings because a clock is wrong (`future`)
  9  readings were dropped as too many waited for the broker, or hosts have not answered yet
Of several, the first in the order 4, 5, 6, 8, 9, 7.

The trace is a CSV with the columns user, ts (seconds since 1970), lat and lon, and perhaps tz and
accuracy_m. All days of the trace are folded into one.")]
pub struct Arguments {
    /// The trace
    #[arg(conflicts_with = "generate")]
    trace: Option<PathBuf>,

    /// Use a generated city instead of a trace
    #[arg(long)]
    generate: bool,

    #[command(flatten)]
    broker: BrokerArguments,

    #[command(flatten)]
    clock: ClockArguments,

    /// Properties that the workers can measure
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "noise")]
    property: Vec<Property>,

    /// Id of this worker, 16 hexadecimal digits, for a broker whose access list names workers [default: random]
    #[arg(long, value_name = "HEX", value_parser = id, conflicts_with_all = ["trace", "generate"])]
    id: Option<WorkerId>,

    /// Maximum number of workers to take from the trace
    #[arg(long, value_name = "COUNT", default_value_t = 200)]
    workers: usize,

    /// Number of workers of the trace to skip, for example because another process runs them
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    skip: usize,

    /// Start time of day
    #[arg(long, value_name = "TIME", default_value = "8:00", value_parser = minute)]
    from: usize,

    /// Minutes of the day to run
    #[arg(long, value_name = "COUNT", default_value_t = 60)]
    minutes: usize,

    /// How long a worker waits for the host of a new cell before it decides without its filter
    #[arg(long, value_name = "DURATION", default_value = "20s", value_parser = quantity::duration)]
    settle: u64,

    /// Seed of the generated city, and of the times at which workers measure
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn id(digits: &str) -> Result<WorkerId, String> {
    let id = lately_edge_mqtt::topic::id(digits).map(WorkerId);
    id.ok_or_else(|| "an id has 16 hexadecimal digits".into())
}

/// A trace from a file, or a generated one.
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
    let rejects = Arc::new(Rejects::default());
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
        let fixes = listen(clock, Arc::clone(&rejects));
        let (broker, properties) = (broker.clone(), arguments.property);
        let id = arguments.id.unwrap_or_else(|| WorkerId(fastrand::u64(..)));
        vec![(WorkerRun { broker, clock, id, properties, settle }, Source::Live(fixes))]
    };
    let line = Line::new(&broker, false);
    let summary = block_on(|stop| async {
        let shown = tokio::spawn(show(Arc::clone(&fleet), Arc::clone(&rejects), line));
        let summary = run_fleet(workers, stop, Arc::clone(&fleet)).await;
        shown.abort();
        Ok(summary?)
    })?;
    tell(&summary);
    rejects.untold().iter().for_each(|words| eprintln!("lately: {words}"));
    let rejected = rejects.count.load(Ordering::Relaxed);
    if rejected > 0 {
        eprintln!("lately: {} could not be read as a position fix", many(rejected, "line"));
    }
    verdict(&summary)
}

/// What went wrong, with its exit status.
fn verdict(summary: &FleetSummary) -> Result<(), Failure> {
    let lacking = |lack: Lack| summary.counts.lacking.get(lack as usize).copied().unwrap_or(0);
    let readings = |count| many(count, "reading");
    let own = |status, words: String| Err(Failure::Own(status, words));
    if summary.workers > 0 && summary.unconnected == summary.workers {
        return own(4, "no connection to the broker was made".into());
    }
    let (nobody, none) = (lacking(Lack::Coordinator), lacking(Lack::Host) + lacking(Lack::Answer));
    if nobody > 0 {
        let words = readings(nobody);
        return own(
            5,
            format!(
                "{words} not sent: no coordinator answered; is `lately edge coordinator` running at this broker?"
            ),
        );
    }
    if none > 0 {
        let words = readings(none);
        return own(
            6,
            format!(
                "{words} not sent: no host is there for the place; is `lately edge host` running, with --room left?"
            ),
        );
    }
    let ahead = summary.tally.refused_for(Refusal::Future);
    if ahead > 0 {
        let words = readings(ahead);
        return own(
            8,
            format!(
                "{words} refused: their time is ahead of the host's clock; set this machine's clock, or the host's"
            ),
        );
    }
    if summary.traffic.readings_dropped > 0 {
        let words = readings(summary.traffic.readings_dropped);
        return own(9, format!("{words} dropped: too many waited for the broker"));
    }
    if summary.unanswered > 0 {
        let words = readings(summary.unanswered);
        return own(
            9,
            format!("{words} not answered by a host yet: the broker keeps them for up to an hour"),
        );
    }
    let unwanted = summary.properties.iter().filter(|(_, (all, unasked))| all == unasked);
    let names: Vec<&str> = unwanted.map(|(property, _)| property.as_str()).collect();
    if !names.is_empty() {
        let words = names.join(", ");
        return own(
            7,
            format!(
                "no task asks for {words} there and then; `lately edge tasks` lists what is asked for"
            ),
        );
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
    if counts.sent > 0 {
        eprintln!("lately: of those sent, {}", outcome(summary));
    }
    if counts.of_others > 0 {
        eprintln!(
            "lately: another worker uses this id, or did a short while ago: hosts have told {} about what it sent",
            many(counts.of_others, "time")
        );
    }
}

/// What became of what was sent.
fn outcome(summary: &FleetSummary) -> String {
    let tally = &summary.tally;
    let mut words = format!(
        "{} kept, {} redundant",
        quantity::display_count(tally.kept),
        quantity::display_count(tally.redundant)
    );
    let mut add = |count: u64, what: &str| {
        if count > 0 {
            words += &format!(", {} {what}", quantity::display_count(count));
        }
    };
    add(tally.lost, "lost to filters");
    for refusal in Refusal::ALL {
        add(tally.refused_for(refusal), &format!("refused ({})", refusal.reason()));
    }
    let dropped = summary.traffic.readings_dropped.min(summary.unanswered);
    add(dropped, "dropped before the broker");
    add(summary.unanswered - dropped, "not answered yet");
    add(tally.repeated, "that arrived again");
    words
}

/// Keeps the status line on the terminal up to date.
async fn show(fleet: Arc<Fleet>, rejects: Arc<Rejects>, mut line: Line) {
    let count = |count: &AtomicU64| quantity::display_count(count.load(Ordering::Relaxed));
    loop {
        tokio::time::sleep(Duration::from_millis(250)).await;
        rejects.untold().iter().for_each(|words| line.say(words));
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

/// Lines that are not a position fix.
#[derive(Default)]
struct Rejects {
    count: AtomicU64,
    untold: Mutex<Vec<String>>,
}

impl Rejects {
    /// The reason is reported for this many of them.
    const TOLD: u64 = 5;

    fn note(&self, line: u64, why: &str) {
        let before = self.count.fetch_add(1, Ordering::Relaxed);
        if before < Self::TOLD {
            self.say(format!("line {line} of the input is not a position fix: {why}"));
        }
    }

    fn say(&self, words: String) {
        if let Ok(mut untold) = self.untold.lock() {
            untold.push(words);
        }
    }

    /// What is to be told now.
    fn untold(&self) -> Vec<String> {
        self.untold.lock().map(|mut untold| std::mem::take(&mut *untold)).unwrap_or_default()
    }
}

/// A line is no longer than this.
const LONGEST_LINE: u64 = 1 << 16;

/// Reads fixes from standard input, in a thread of its own.
fn listen(clock: Clock, rejects: Arc<Rejects>) -> mpsc::Receiver<Fix> {
    // Bounded: a sensor that is faster than the worker waits.
    let (tell, fixes) = mpsc::channel(64);
    std::thread::spawn(move || {
        let each = |number: u64, line: Result<&[u8], &str>| {
            let fix = line.map_err(str::to_owned).and_then(|line| fix(line, clock));
            match fix {
                Ok(Some(fix)) => return tell.blocking_send(fix).is_ok(),
                Ok(None) => {}
                Err(why) => rejects.note(number, &why),
            }
            true
        };
        if let Err(error) = for_each_line(stdin().lock(), each) {
            rejects.say(format!("standard input: {error}"));
        }
    });
    fixes
}

/// Passes each line and its number to `each` until that returns `false`; for a line that is too long, an error.
fn for_each_line(
    mut input: impl BufRead,
    mut each: impl FnMut(u64, Result<&[u8], &str>) -> bool,
) -> io::Result<()> {
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if input.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let whole = line.ends_with(b"\n") || (line.len() as u64) < LONGEST_LINE;
        let mut rest = whole;
        while !rest {
            line.clear();
            input.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)?;
            rest = line.is_empty() || line.ends_with(b"\n");
        }
        if !each(number, if whole { Ok(&line) } else { Err("longer than 64 KiB") }) {
            break;
        }
    }
    Ok(())
}

/// A fix as a JSON object: `lat`, `lon`, and what was measured by name. `None` for an empty line.
fn fix(line: &[u8], clock: Clock) -> Result<Option<Fix>, String> {
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    let object: Map<String, Value> = serde_json::from_slice(line).map_err(|error| {
        let words = error.to_string();
        let what = words.split(" at line").next().unwrap_or_default();
        format!("not a JSON object: {what}, at byte {}", error.column())
    })?;
    let number = |name: &str| match object.get(name) {
        None => Err(format!("\"{name}\" is missing")),
        Some(value) => value.as_f64().ok_or_else(|| format!("\"{name}\" is not a number")),
    };
    let position = Position { latitude: number("lat")?, longitude: number("lon")? };
    let cell = SmallCell::at(position).map_err(|error| error.to_string())?;
    let mut readings = Vec::new();
    for name in object.keys().filter(|name| !["lat", "lon", "t"].contains(&name.as_str())) {
        let property = Property::new(name).map_err(|error| format!("\"{name}\": {error}"))?;
        readings.push((property, number(name)?));
    }
    let time = match object.get("t") {
        None => clock.now(),
        Some(_) => moment(number("t")?)?,
    };
    Ok(Some(Fix { time, cell, readings }))
}

/// A moment in seconds since 1970.
fn moment(seconds: f64) -> Result<Millis, String> {
    // SenML takes smaller numbers for offsets, and larger ones are milliseconds.
    if (268_435_456.0..1e11).contains(&seconds) {
        Ok((seconds * 1000.0).round() as Millis)
    } else {
        Err("\"t\" is not a time in seconds since 1970".into())
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn why(line: &[u8]) -> String {
        fix(line, Clock::default()).map(|fix| format!("{fix:?}")).unwrap_err()
    }

    #[test]
    fn a_fix_may_carry_its_time() {
        let line = br#"{"lat":45.8,"lon":15.97,"t":1700000000.25}"#;
        let fix = fix(line, Clock::default()).unwrap().unwrap();
        assert_eq!((fix.time, fix.readings.len()), (1_700_000_000_250, 0));
    }

    #[test]
    fn a_line_that_is_no_fix_says_why() {
        assert!(fix(b" \r\n", Clock::default()).unwrap().is_none());
        let good = fix(br#"{"lat":45.8,"lon":15.97,"noise":57.5,"pm2.5":12}"#, Clock::default());
        assert_eq!(good.unwrap().unwrap().readings.len(), 2);
        for (line, words) in [
            (&b"\xff\xfe"[..], "not a JSON object"),
            (br#"{"lat":45.8,"lon":15.97"#, "not a JSON object: EOF"),
            (br#"{"lon":15.97}"#, r#""lat" is missing"#),
            (br#"{"lat":"45.8","lon":15.97}"#, r#""lat" is not a number"#),
            (br#"{"lat":45.8,"lon":15.97,"noise":null}"#, r#""noise" is not a number"#),
            (br#"{"lat":45.8,"lon":15.97,"a b":1}"#, r#""a b": "#),
            (br#"{"lat":99,"lon":15.97}"#, ""),
            (br#"{"lat":45.8,"lon":15.97,"t":5}"#, "seconds since 1970"),
            (br#"{"lat":45.8,"lon":15.97,"t":1700000000000}"#, "seconds since 1970"),
            (br#"{"lat":45.8,"lon":15.97,"t":"now"}"#, r#""t" is not a number"#),
        ] {
            let why = why(line);
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn lines_are_numbered_whatever_is_in_them() {
        let mut input = b"one\n\xff\n".to_vec();
        input.extend(vec![b'x'; 3 * LONGEST_LINE as usize]);
        input.extend(b"\n\nlast");
        let mut lines = Vec::new();
        let each = |number, line: Result<&[u8], &str>| {
            lines.push((number, line.map(<[u8]>::to_vec).ok()));
            true
        };
        for_each_line(input.as_slice(), each).unwrap();
        let line = |text: &[u8]| Some(text.to_vec());
        let wanted = [line(b"one\n"), line(b"\xff\n"), None, line(b"\n"), line(b"last")];
        assert_eq!(lines, (1..).zip(wanted).collect::<Vec<_>>());
    }
}
