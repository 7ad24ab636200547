//! Whole pipelines: the answer depends on the records alone.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use lately::Digester;
use lately_stream::judge::hold::{Better, Hold};
use lately_stream::options::{Format, Options};
use lately_stream::pipeline::{Observer, Pipeline};
use lately_stream::session::{ClockSpec, DedupSpec};
use lately_stream::source::Source;
use lately_stream::stamp::{StampParser, TimeFormat, Zone};
use lately_stream::write::output::Output;
use lately_stream::write::report::{Counts, Report};
use lately_stream::write::sink::Sink;
use proptest::prelude::*;
use std::io::{Cursor, Read, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Reads of at most so many bytes.
struct Drip(Cursor<Vec<u8>>, usize);

impl Read for Drip {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let most = self.1.min(buffer.len());
        self.0.read(&mut buffer[..most])
    }
}

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

impl Shared {
    fn output(&self) -> Output {
        Output::new("memory", Box::new(self.clone()))
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

struct Undisturbed;

impl Observer for Undisturbed {
    fn progress(&mut self, _: &Report) {}

    fn stop(&self) -> bool {
        false
    }
}

const SECOND: u64 = 1_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Good,
    NoTime,
    Broken,
}

/// Key, tenths of a second since the last, kind, rank.
type Event = (u8, i64, Kind, u8);

fn events() -> impl Strategy<Value = Vec<Event>> {
    let kind =
        prop_oneof![12 => Just(Kind::Good), 1 => Just(Kind::NoTime), 1 => Just(Kind::Broken)];
    prop::collection::vec((0..12_u8, -30..60_i64, kind, 0..9_u8), 0..300)
}

fn is_json(format: Format) -> bool {
    matches!(format, Format::Ndjson | Format::Json)
}

fn has_header(format: Format) -> bool {
    matches!(format, Format::Csv | Format::Tsv)
}

/// The events as text, a record a line.
fn write(format: Format, events: &[Event]) -> String {
    let mut now = 16_409_952_000_i64;
    let mut out = String::new();
    let separator = match format {
        Format::Tsv => '\t',
        Format::Columns => ' ',
        _ => ',',
    };
    if has_header(format) {
        out += &format!("n{separator}k{separator}t{separator}r\n");
    }
    for (n, &(key, step, kind, rank)) in events.iter().enumerate() {
        now += step;
        let time = format!("{}.{}", now / 10, now % 10);
        let json = is_json(format);
        out += &match kind {
            Kind::Good if json => {
                format!("{{\"n\":{n},\"k\":\"{key}\",\"t\":{time},\"r\":{rank}}}")
            }
            Kind::Good => format!("{n}{separator}{key}{separator}{time}{separator}{rank}"),
            Kind::NoTime if json => format!("{{\"n\":{n},\"k\":\"{key}\",\"t\":\"soon\"}}"),
            Kind::NoTime => format!("{n}{separator}{key}{separator}soon{separator}1"),
            Kind::Broken if json => format!("{{\"n\":{n},]"),
            Kind::Broken if format == Format::Columns => format!("{n}"),
            Kind::Broken => format!("{n}{separator}x"),
        };
        out.push('\n');
    }
    out
}

#[derive(Clone, Copy, Debug)]
struct Setup {
    format: Format,
    timed: bool,
    hold: bool,
    /// Records without a readable time are dead letters.
    drop: bool,
}

/// The output, the duplicates and the counts of a run.
fn run(setup: Setup, text: &str, read: usize, chunk: usize, threads: usize) -> [String; 3] {
    let stamps = StampParser::new(TimeFormat::Auto, Zone::default()).unwrap();
    let read_time = move |text: &[u8]| stamps.parse(text).map_err(|error| error.to_string());
    let mut options = Options::new(Digester::new(0), Arc::new(read_time));
    options.format = setup.format;
    options.chunk = chunk;
    let names = if setup.format == Format::Columns { ["2", "3", "4"] } else { ["k", "t", "r"] };
    let [key, time, rank] = names.map(String::from);
    if setup.format != Format::Lines {
        options.key = vec![key];
        options.drop_untimed = setup.drop;
        options.time = setup.timed.then_some(time).into_iter().collect();
        options.rank = setup.hold.then_some(rank);
    }
    let lasting = if setup.timed {
        DedupSpec { expect: Some(1000), ..DedupSpec::within(Duration::from_secs(5)) }
    } else {
        DedupSpec::last(40)
    };
    // No leap is doubted: the records after one, which would decide, are those at hand.
    let clock = ClockSpec {
        timed: Some(setup.timed),
        max_skew: Some(3600 * 1_000_000_000),
        ..ClockSpec::default()
    };
    let judge = DedupSpec { clock, ..lasting }.build().unwrap();
    let (main, duplicates) = (Shared::default(), Shared::default());
    let sink = Sink::new(main.output()).dropped(Some(duplicates.output()));
    let hold = setup.hold.then(|| Hold::new(SECOND, Better::Max, 1 << 20));
    let reader = Drip(Cursor::new(text.into()), read);
    let source = Source::from_reader("input", Box::new(reader), options);
    let mut pipeline = Pipeline::new(judge, sink, hold, None);
    pipeline.run(source, threads, &mut Undisturbed).unwrap();
    let report = &pipeline.report;
    assert!(report.inputs.is_empty(), "{:?}", report.inputs);
    assert_eq!(report.counts.bytes_out, main.text().len() as u64);
    let counts = {
        let mut counts: Counts = report.counts;
        counts.bytes_in = 0;
        counts
    };
    let said = format!("{} {counts:?} {:?}", counts.read(), report.invalid);
    [main.text(), duplicates.text(), said]
}

fn is_subsequence(part: &str, whole: &str) -> bool {
    let mut whole = whole.lines();
    part.lines().all(|line| whole.any(|other| other == line))
}

/// Records that are dead letters.
fn broken(setup: Setup, events: &[Event]) -> usize {
    let is_broken = |kind| match kind {
        Kind::Good => false,
        Kind::NoTime => setup.timed && setup.drop,
        Kind::Broken if setup.format == Format::Columns => setup.timed && setup.drop,
        Kind::Broken => setup.format != Format::Lines,
    };
    events.iter().filter(|event| is_broken(event.2)).count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn threads_and_chunks_do_not_matter(
        events in events(),
        format in prop::sample::select(vec![
            Format::Lines, Format::Columns, Format::Csv, Format::Tsv, Format::Ndjson, Format::Json,
        ]),
        timed: bool,
        hold: bool,
        drop: bool,
        read in 1..200_usize,
        chunk in 1..200_usize,
        threads in 1..5_usize,
    ) {
        let timed = timed && format != Format::Lines;
        // A burst is held by time; a raw line has no rank.
        let setup = Setup { format, timed, hold: hold && timed, drop };
        let text = write(format, &events);
        let found = run(setup, &text, read, chunk, threads);
        prop_assert_eq!(&found, &run(setup, &text, 1 << 20, 1 << 18, 1));
        let [main, duplicates, counts] = found;
        prop_assert!(counts.starts_with(&format!("{} ", events.len())), "{}", counts);
        if !setup.hold {
            prop_assert!(is_subsequence(&main, &text) && is_subsequence(&duplicates, &text));
        }
        // Each record is in one place, but for the dead letters, which have none here.
        let header = usize::from(has_header(format));
        let mut all: Vec<_> = main.lines().skip(header).collect();
        all.extend(duplicates.lines().skip(header));
        let total = all.len();
        all.sort_unstable();
        all.dedup();
        prop_assert_eq!(all.len(), total, "a record came out twice");
        prop_assert_eq!(total, events.len() - broken(setup, &events));
    }
}
