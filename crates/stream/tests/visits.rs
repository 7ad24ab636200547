//! Visits against an exact program that sorts all reads.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use lately::{Digest, Digester, Tick};
use lately_stream::judge::class::Class;
use lately_stream::judge::visit::{Ended, OpenVisits, Read as Sighting};
use lately_stream::options::{Format, Options};
use lately_stream::pipeline::{Observer, Pipeline};
use lately_stream::session::{VisitSpec, Visits};
use lately_stream::source::Source;
use lately_stream::stamp::{StampParser, TimeFormat, Zone, display_time};
use lately_stream::state::file::StateFile;
use lately_stream::write::output::Output;
use lately_stream::write::report::Report;
use lately_stream::write::sink::Sink;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io::{Cursor, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

struct Undisturbed;

impl Observer for Undisturbed {
    fn progress(&mut self, _: &Report) {}

    fn stop(&self) -> bool {
        false
    }
}

const TENTH: u64 = 100_000_000;
const START: u64 = 17_000_000_000 * TENTH;

/// Tenths of a second after the start, tag, strength, antenna.
type Event = (u64, u8, Option<i8>, u8);

fn text(events: &[Event]) -> String {
    let mut text = String::from("time,tag,rssi,antenna\n");
    for (at, tag, strength, antenna) in events {
        let (seconds, tenth) = ((START / TENTH + at) / 10, at % 10);
        let strength = strength.map_or_else(String::new, |strength| strength.to_string());
        text += &format!("{seconds}.{tenth},{tag},{strength},{antenna}\n");
    }
    text
}

/// What a run adds to an output, and its session and report.
fn run(
    spec: &VisitSpec,
    text: &str,
    chunk: usize,
    state: Option<&Path>,
) -> (String, Visits, Report) {
    let stamps = StampParser::new(TimeFormat::Auto, Zone::default()).unwrap();
    let read_time = move |text: &[u8]| stamps.parse(text).map_err(|error| error.to_string());
    let mut options = Options::new(Digester::new(0), Arc::new(read_time));
    options.format = Format::Csv;
    options.chunk = chunk;
    options.key = vec!["tag".into()];
    options.time = vec!["time".into()];
    options.rank = Some("rssi".into());
    options.place = Some("antenna".into());
    options.texts = true;
    options.drop_untimed = true;
    let resumed = state.and_then(|path| spec.resume(path).unwrap());
    let has_header = resumed.is_some();
    let judge = resumed.unwrap_or_else(|| spec.build().unwrap());
    let main = Shared::default();
    let output = Output::new("memory", Box::new(main.clone())).has_header(has_header);
    let state = state.map(|path| StateFile::new(path.into(), Duration::from_secs(3600), None));
    let mut pipeline = Pipeline::new(judge, Sink::new(output).of_rows(), None, state);
    let source = Source::from_reader("input", Box::new(Cursor::new(text.to_owned())), options);
    pipeline.run(source, 2, &mut Undisturbed).unwrap();
    assert_eq!(pipeline.report.state_errors.0, 0, "{:?}", pipeline.report.state_errors);
    let bytes = main.0.lock().unwrap().clone();
    (String::from_utf8(bytes).unwrap(), pipeline.judge, pipeline.report)
}

/// One visit of the exact program.
#[derive(Debug)]
struct Exact {
    arrived: u64,
    left: u64,
    reads: u64,
    /// Strength, time and antenna of the strongest.
    best: (Option<i8>, u64, u8),
    tag: u8,
    /// When the first of its reads came.
    came: usize,
}

/// Sorts all reads that are not late by tag and time, and splits them at pauses. Also tells how many are
/// late.
fn exact(events: &[Event], within: u64, lateness: u64) -> (Vec<Exact>, u64) {
    let (mut newest, mut late) = (0, 0);
    let mut by_tag: BTreeMap<u8, Vec<_>> = BTreeMap::new();
    for (came, &(at, tag, strength, antenna)) in events.iter().enumerate() {
        if at + lateness < newest {
            late += 1;
            continue;
        }
        newest = newest.max(at);
        by_tag.entry(tag).or_default().push((at, came, strength, antenna));
    }
    let mut visits: Vec<Exact> = Vec::new();
    for (tag, mut reads) in by_tag {
        reads.sort_unstable();
        let mut last = None;
        for (at, came, strength, antenna) in reads {
            if last.is_none_or(|last| at - last > within) {
                let best = (strength, at, antenna);
                visits.push(Exact { arrived: at, left: at, reads: 0, best, tag, came });
            }
            last = Some(at);
            let visit = visits.last_mut().unwrap();
            (visit.left, visit.reads) = (at, visit.reads + 1);
            visit.came = visit.came.min(came);
            // In the order of time, so of equal ones the first stays.
            if strength > visit.best.0 {
                visit.best = (strength, at, antenna);
            }
        }
    }
    visits.sort_by_key(|visit| (visit.left, visit.came));
    (visits, late)
}

/// Its rows. Those that no read could belong to any more say so.
fn rows(visits: &[Exact], newest: u64, patience: u64) -> String {
    let mut rows = String::new();
    for Exact { arrived, left, reads, best: (strength, _, antenna), tag, .. } in visits {
        let [from, to] = [arrived, left].map(|at| display_time((START + at * TENTH).cast_signed()));
        let dwell = left - arrived;
        let dwell = match (dwell / 10, dwell % 10) {
            (seconds, 0) => seconds.to_string(),
            (seconds, tenth) => format!("{seconds}.{tenth}"),
        };
        let strength = strength.map_or_else(String::new, |strength| strength.to_string());
        let ended = if left + patience < newest { "gap" } else { "end" };
        rows += &format!("{tag},{from},{to},{dwell},{reads},{strength},{antenna},{ended}\n");
    }
    rows
}

const HEADER: &str = "tag,arrived,left,dwell,reads,rssi,antenna,ended\n";

/// Fewer than would overrule the clock.
fn events() -> impl Strategy<Value = Vec<Event>> {
    let step = prop_oneof![4 => 0..5_i64, 3 => -40..40_i64, 1 => -120..200_i64];
    let strength = prop::option::weighted(0.8, -80..-70_i8);
    prop::collection::vec((step, 0..4_u8, strength, 0..4_u8), 0..60).prop_map(|steps| {
        let mut now = 1000_i64;
        let mut event = |(step, tag, strength, antenna): (i64, _, _, _)| {
            now = (now + step).max(0);
            (now as u64, tag, strength, antenna)
        };
        steps.into_iter().map(&mut event).collect()
    })
}

fn spec(within: u64, lateness: u64) -> VisitSpec {
    VisitSpec {
        lateness: Some(lateness * TENTH),
        // No leap is doubted: the records after one, which would decide, are those at hand.
        max_skew: Some(1 << 62),
        ..VisitSpec::within(within * TENTH)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn visits_are_those_of_an_exact_program(
        events in events(),
        within in 1..40_u64,
        lateness in prop_oneof![Just(0), 0..40_u64, 0..400_u64],
        chunk in 1..300_usize,
    ) {
        let (visits, late) = exact(&events, within, lateness);
        let newest = events.iter().map(|event| event.0).max().unwrap_or(0);
        let expected = rows(&visits, newest, within + lateness);
        let (found, judge, report) = run(&spec(within, lateness), &text(&events), chunk, None);
        prop_assert_eq!(found, format!("{HEADER}{expected}"));
        prop_assert_eq!(report.counts.of(Class::Late), late);
        prop_assert_eq!(report.counts.of(Class::Visit), events.len() as u64 - late);
        prop_assert_eq!(judge.written_reads(), events.len() as u64 - late);
        prop_assert!(judge.open().is_empty());
        prop_assert_eq!(judge.open().memory(), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn a_restart_changes_no_visit(
        events in events(),
        within in 1..40_u64,
        lateness in 0..100_u64,
        cuts in prop::collection::vec(0..61_usize, 1..4),
    ) {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("lately-visits-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let state = std::env::temp_dir().join(name);
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(events.len())).collect();
        cuts.sort_unstable();
        let (mut found, mut reads, mut begin) = (String::new(), 0, 0);
        let keeping = VisitSpec { keeps_open: true, ..spec(within, lateness) };
        for end in cuts {
            let (rows, judge, report) = run(&keeping, &text(&events[begin..end]), 100, Some(&state));
            found += &rows;
            reads += judge.written_reads();
            let all = judge.resumed_reads() + report.counts.of(Class::Visit);
            prop_assert_eq!(judge.written_reads() + judge.open().reads(), all);
            begin = end;
        }
        let (rest, judge, _) = run(&spec(within, lateness), &text(&events[begin..]), 100, Some(&state));
        std::fs::remove_file(&state).unwrap();
        let (visits, late) = exact(&events, within, lateness);
        let newest = events.iter().map(|event| event.0).max().unwrap_or(0);
        prop_assert_eq!(found + &rest, format!("{HEADER}{}", rows(&visits, newest, within + lateness)));
        prop_assert_eq!(reads + judge.written_reads(), events.len() as u64 - late);
    }

    #[test]
    fn little_memory_divides_visits_and_loses_none(
        events in events(),
        within in 1..40_u64,
        visits in 1..5_usize,
    ) {
        let (all, late) = exact(&events, within, 400);
        let limit = visits * 700;
        let small = VisitSpec { memory: Some(limit as u64), ..spec(within, 400) };
        let (found, judge, _) = run(&small, &text(&events), 100, None);
        let mut reads = 0;
        for row in found.lines().skip(1) {
            let fields: Vec<_> = row.split(',').collect();
            reads += fields[4].parse::<u64>().unwrap();
        }
        prop_assert_eq!(reads, events.len() as u64 - late);
        let early = judge.ended(Ended::Memory);
        prop_assert_eq!(found.matches(",memory\n").count() as u64, early);
        // Each that is closed early makes at most one more of what it belongs to.
        prop_assert!(judge.written() <= all.len() as u64 + early);
        if early == 0 {
            let newest = events.iter().map(|event| event.0).max().unwrap_or(0);
            prop_assert_eq!(found, format!("{HEADER}{}", rows(&all, newest, within + 400)));
        }
    }
}

fn sighting(key: u64, at: u64) -> Sighting<'static> {
    Sighting { key: Digest::new(key, 0), at: Tick(at), text: b"", strength: None, place: b"" }
}

#[test]
fn open_visits_keep_to_their_memory() {
    let limit = 1 << 20;
    let mut open = OpenVisits::new(5, limit);
    let (mut closed, mut last) = (0, 0);
    for n in 0..200_000 {
        // Two reads of each, and for each third key many that stand alone.
        let key = if n % 3 == 0 { 1 << 40 } else { n / 2 };
        open.add(&sighting(key, n * 10));
        while open.is_full() {
            let visit = open.close_oldest().unwrap();
            assert!(visit.left.0 >= last, "in the order of last reads");
            (closed, last) = (closed + visit.reads, visit.left.0);
        }
        assert!(open.memory() <= limit);
    }
    assert!(open.len() > 1000, "{}", open.len());
    assert_eq!(closed + open.reads(), 200_000);
    while let Some(visit) = open.close_before(Tick(u64::MAX)) {
        closed += visit.reads;
    }
    assert_eq!((closed, open.memory(), open.len()), (200_000, 0, 0));
}

#[test]
fn a_read_between_two_visits_joins_them() {
    let mut open = OpenVisits::new(10, usize::MAX);
    [100, 120, 110].into_iter().for_each(|at| open.add(&sighting(1, at)));
    assert_eq!((open.len(), open.reads()), (1, 3));
    // Backwards, too.
    open.add(&sighting(1, 90));
    open.add(&sighting(1, 79));
    assert_eq!(open.len(), 2);
    let visits: Vec<_> = std::iter::from_fn(|| open.close_oldest()).collect();
    let spans: Vec<_> =
        visits.iter().map(|visit| (visit.arrived.0, visit.left.0, visit.reads)).collect();
    assert_eq!(spans, [(79, 79, 1), (90, 120, 4)]);
}

#[test]
fn what_joins_many_times_leaves_no_queue_behind() {
    let mut open = OpenVisits::new(10, usize::MAX);
    // Every second read joins what the one before it had begun apart from the rest.
    for n in 0..50_000 {
        open.add(&sighting(1, 1000 + n * 10 + 20));
        open.add(&sighting(1, 1000 + n * 10 + 10));
    }
    assert_eq!(open.len(), 1);
    assert!(open.memory() < 1000, "{}", open.memory());
}
