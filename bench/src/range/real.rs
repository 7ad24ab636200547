//! Real files: EPCs asked for by product, addresses by block, times by interval; compared with an exact map.

use super::adapter::SLACK;
use lately::range::{RangeFilter, RangeSpec};
use lately::{Digester, Tick, Window};
use lately_stream::epc::Epc;
use lately_stream::judge::clock::{StreamClock, Timing};
use lately_stream::number::{NumberFormat, NumberReader};
use lately_stream::options::{Options, read_time};
use lately_stream::quantity;
use lately_stream::read::Parser;
use lately_stream::record::{Batch, Kind, Record};
use lately_stream::source::Source;
use lately_stream::stamp::{StampParser, TimeFormat, Zone};
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::net::Ipv6Addr;
use std::num::NonZeroU64;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Instant;

const SECOND: u64 = 1_000_000_000;

/// A file and what is asked of it.
struct Job {
    what: &'static str,
    /// Names, and the fields with their times.
    files: &'static [(&'static str, &'static str)],
    key: &'static str,
    format: NumberFormat,
    span: Span,
    length: u128,
    fpr: f64,
    questions: fn(&[u128], &NumberReader) -> Vec<Question>,
}

/// Intervals that are one question: a key in any of them?
type Question = Vec<RangeInclusive<u128>>;

/// The window.
#[derive(Clone, Copy, Debug)]
pub enum Span {
    /// Nanoseconds.
    Within(u64),
    /// Records.
    Last(u64),
}

impl Span {
    /// As tables write it.
    pub fn name(self) -> String {
        match self {
            Self::Within(span) => quantity::display_duration(span),
            Self::Last(n) => format!("last {n}"),
        }
    }

    fn length(self) -> u64 {
        match self {
            Self::Within(span) => span,
            Self::Last(n) => n,
        }
    }
}

/// What came of one job.
#[derive(Clone, Debug)]
pub struct Row {
    /// The file, its field, and the kind of question.
    pub what: String,
    /// The window.
    pub span: Span,
    /// Keys that were put in.
    pub records: u64,
    /// Most distinct keys in the window at a time.
    pub keys: u64,
    /// Questions asked: each of several intervals, perhaps.
    pub questions: u64,
    /// Of them, those with a key of the window: all must be answered with perhaps.
    pub occupied: u64,
    /// Those of these that were not.
    pub missed: u64,
    /// Questions without a key of the window or its slack.
    pub empty: u64,
    /// Those of these answered with perhaps.
    pub wrong: u64,
    /// How many of them may be, by the rate of each question.
    pub allowed: f64,
    /// Bytes allocated, by the window's own account, at the end.
    pub memory: u64,
    /// Nanoseconds a question.
    pub nanoseconds: f64,
}

/// The files of one reader model, oldest first, and what they call their time.
const TAGS: [(&str, &str); 5] = [
    ("rfid_impinj_r420/runtimestamp.csv", "Timestamp"),
    ("rfid_impinj_r420/Fingerprint1-13_speedwayconnect.csv", "first_seen_timestamp"),
    ("rfid_impinj_r420/Test9-8.csv", "timestamp"),
    ("rfid_impinj_r420/Test10-2.csv", "timestamp"),
    ("rfid_impinj_r420/Test11-2.csv", "timestamp"),
];

fn jobs() -> Vec<Job> {
    let tags = |what, files, span| Job {
        what,
        files,
        key: "epc",
        format: NumberFormat::Epc,
        span,
        length: 1 << 38,
        fpr: 1e-3,
        questions: products,
    };
    vec![
        tags(
            "the five R420 files one after another, EPCs by SGTIN class",
            &TAGS,
            Span::Last(20_000),
        ),
        tags("Test10-2.csv, EPCs by SGTIN class", &TAGS[3..4], Span::Within(5 * SECOND)),
        Job {
            what: "ip_zeek/dns.log, `id.orig_h` by /24 and /28",
            files: &[("ip_zeek/dns.log", "ts")],
            key: "id.orig_h",
            format: NumberFormat::Ip,
            span: Span::Within(60 * SECOND),
            length: 256,
            fpr: 1e-3,
            questions: blocks,
        },
        Job {
            what: "nasa_19950801.tsv, times by interval of a second",
            files: &[("http_nasa/nasa_19950801.tsv", "time")],
            key: "time",
            format: NumberFormat::Time,
            span: Span::Within(600 * SECOND),
            length: SECOND.into(),
            fpr: 1e-3,
            questions: seconds,
        },
    ]
}

/// Each product there is, the one with the next item reference, and the one before.
fn products(keys: &[u128], reader: &NumberReader) -> Vec<Question> {
    let mut classes = BTreeSet::new();
    for key in keys {
        let epc = Epc::from_bytes(&key.to_be_bytes()[4..]);
        let Some(id) = epc.ok().and_then(|epc| epc.to_id_uri().ok()) else { continue };
        let Some(rest) = id.strip_prefix("urn:epc:id:sgtin:") else { continue };
        let mut parts = rest.split('.');
        let (Some(company), Some(item)) = (parts.next(), parts.next()) else { continue };
        let number: u64 = item.parse().unwrap_or(0);
        for near in [number.saturating_sub(1), number, number + 1] {
            let near = format!("{near:0width$}", width = item.len());
            if near.len() == item.len() {
                classes.insert(format!("urn:epc:idpat:sgtin-96:{company}.{near}.*"));
            }
        }
    }
    classes.iter().filter_map(|class| reader.prefix(class).ok()).collect()
}

/// The /24 and the /28 of each address, and the blocks on either side of them.
fn blocks(keys: &[u128], reader: &NumberReader) -> Vec<Question> {
    let mut all = BTreeSet::new();
    for key in keys {
        let Some(four) = Ipv6Addr::from_bits(*key).to_ipv4_mapped() else { continue };
        for bits in [24, 28] {
            let size = 1_u32 << (32 - bits);
            let base = four.to_bits() & !(size - 1);
            for near in [base.wrapping_sub(size), base, base.wrapping_add(size)] {
                all.insert(format!("{}/{bits}", std::net::Ipv4Addr::from_bits(near)));
            }
        }
    }
    all.iter().filter_map(|block| reader.prefix(block).ok()).collect()
}

/// A thousand spells of a second over the day.
fn seconds(keys: &[u128], _: &NumberReader) -> Vec<Question> {
    let first = keys.iter().copied().min().unwrap_or(0);
    let last = keys.iter().copied().max().unwrap_or(0);
    let step = ((last - first) / 1000).max(1);
    let spell = |at: u128| {
        let from = first + at * step + u128::from(SECOND) / 2;
        vec![from..=from + u128::from(SECOND) - 1]
    };
    (0..1000).map(spell).collect()
}

/// The records of a file: moments and numbers, those that are late left out. In a window of records
/// the moment is the number of the record.
fn read(data: &Path, job: &Job) -> Result<Vec<(u64, u128)>, Box<dyn Error>> {
    let mut records = Vec::new();
    for (file, time) in job.files {
        let stamps = StampParser::new(TimeFormat::Auto, Zone::default())?;
        let mut options = Options::new(Digester::new(0), read_time(stamps));
        options.key = vec![job.key.into()];
        options.time = vec![(*time).into()];
        options.numbers = Some(job.format);
        let name = data.join(file).display().to_string();
        let mut source = Source::new(vec![name], options);
        let mut parser = Parser::new();
        while let Some(chunk) = source.next_chunk(Vec::new())? {
            let mut batch = Batch::default();
            parser.parse(chunk, &mut batch);
            let keyed = batch.records.iter().filter(|record| record.kind == Kind::Keyed);
            let timed =
                |record: &Record| Some((record.time?.nanos()?.cast_unsigned(), record.number()));
            records.extend(keyed.filter_map(timed));
        }
    }
    let Span::Within(span) = job.span else {
        return Ok((1..).zip(records).map(|(arrival, record)| (arrival, record.1)).collect());
    };
    let mut clock = StreamClock::new(span, 3600 * SECOND);
    let mut placed = Vec::with_capacity(records.len());
    for (index, &(time, number)) in records.iter().enumerate() {
        let later = || records.iter().skip(index + 1).map(|record| record.0);
        // A range window remembers what is behind the clock as seen at its time.
        if let Timing::At(_) = clock.place(time, || u64::MAX / 2, later) {
            placed.push((clock.now().unwrap_or_default().0, number));
        }
    }
    Ok(placed)
}

/// Moments at which everything is asked.
const MOMENTS: usize = 60;

/// Runs the files that are there in `data`; what is not is left out.
///
/// # Errors
/// A file that cannot be read, or a window that cannot be planned.
pub fn run(data: &Path) -> Result<Vec<Row>, Box<dyn Error>> {
    let mut rows = Vec::new();
    for job in jobs() {
        match job.files.iter().find(|(file, _)| !data.join(file).is_file()) {
            Some((file, _)) => eprintln!("left out: {} is not there", data.join(file).display()),
            None => rows.push(one(data, &job)?),
        }
    }
    Ok(rows)
}

fn one(data: &Path, job: &Job) -> Result<Row, Box<dyn Error>> {
    let records = read(data, job)?;
    let stamps = StampParser::new(TimeFormat::Auto, Zone::default())?;
    let reader = NumberReader::new(job.format, read_time(stamps));
    let keys: Vec<u128> = records.iter().map(|record| record.1).collect();
    let questions = (job.questions)(&keys, &reader);
    let (length, slack) = (job.span.length(), job.span.length() / SLACK);
    // An arrival is asked about from the next one on.
    let step = u64::from(matches!(job.span, Span::Last(_)));
    let most = most_at_a_time(&records, length - step);
    let capacity = NonZeroU64::new(most).ok_or("no records")?;
    let span = NonZeroU64::new(length).ok_or("no window")?;
    let spec = RangeSpec::new(match job.span {
        Span::Within(_) => Window::Time { span, capacity },
        Span::Last(_) => Window::Count(span),
    });
    let plan = spec.interval(job.length).fpr(job.fpr).slack(slack).plan()?;
    let mut window = plan.build();
    let mut last: BTreeMap<u128, u64> = BTreeMap::new();
    let mut row = Row {
        what: job.what.to_owned(),
        span: job.span,
        records: records.len() as u64,
        keys: most,
        questions: 0,
        occupied: 0,
        missed: 0,
        empty: 0,
        wrong: 0,
        allowed: 0.0,
        memory: 0,
        nanoseconds: 0.0,
    };
    let mut seconds = 0.0;
    for part in records.chunks((records.len() / MOMENTS).max(1)) {
        for &(now, key) in part {
            window.insert(key, Tick(now));
            last.insert(key, now);
        }
        let now = part.last().map_or(0, |record| record.0) + step;
        let started = Instant::now();
        let answer = |intervals: &Vec<RangeInclusive<u128>>| {
            intervals.iter().any(|keys| window.any(keys.clone(), Tick(now)).is_perhaps())
        };
        let answers: Vec<bool> = questions.iter().map(answer).collect();
        seconds += started.elapsed().as_secs_f64();
        for (intervals, perhaps) in questions.iter().zip(answers) {
            let ages = |keys: &RangeInclusive<u128>| {
                last.range(keys.clone()).map(|(_, seen)| now - seen).min()
            };
            let age = intervals.iter().filter_map(ages).min();
            row.questions += 1;
            if age.is_some_and(|age| age <= length) {
                row.occupied += 1;
                row.missed += u64::from(!perhaps);
            } else if age.is_none_or(|age| age > length + slack) {
                row.empty += 1;
                row.wrong += u64::from(perhaps);
                let rate =
                    |keys: &RangeInclusive<u128>| window.fpr_of(keys.end() - keys.start() + 1);
                row.allowed += intervals.iter().map(rate).sum::<f64>().min(1.0);
            }
        }
    }
    row.memory = window.memory() as u64;
    row.nanoseconds = seconds * 1e9 / row.questions.max(1) as f64;
    Ok(row)
}

/// The most distinct keys within a window.
fn most_at_a_time(records: &[(u64, u128)], within: u64) -> u64 {
    let mut last: BTreeMap<u128, u64> = BTreeMap::new();
    let mut ages: std::collections::VecDeque<(u64, u128)> = Default::default();
    let mut most = 0;
    for &(now, key) in records {
        last.insert(key, now);
        ages.push_back((now, key));
        while let Some(&(time, key)) = ages.front().filter(|age| now - age.0 > within) {
            ages.pop_front();
            if last.get(&key) == Some(&time) {
                last.remove(&key);
            }
        }
        most = most.max(last.len() as u64);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_keys_at_a_time() {
        let records = [(0, 1), (1, 2), (2, 1), (12, 3), (13, 3), (30, 4)];
        assert_eq!(most_at_a_time(&records, 10), 2);
        assert_eq!(most_at_a_time(&records, 100), 4);
    }

    #[test]
    fn real_files_are_answered_as_by_an_exact_program() {
        let near = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
        let shared = std::env::var_os("LATELY_SHARED").map_or(near, Into::into);
        let data = shared.join("data");
        if !data.is_dir() {
            println!("skipped: {} is not there; LATELY_SHARED names its folder", data.display());
            return;
        }
        let rows = run(&data).unwrap();
        for row in &rows {
            println!("{row:?}");
            assert_eq!(row.missed, 0, "{row:?}");
            assert!(row.occupied > 100 && row.empty > 500, "{row:?}");
            // The rate allowed, and five standard deviations; the answers at neighbouring moments are
            // not independent, so a few more.
            let bound = row.allowed + 5.0 * row.allowed.sqrt() + MOMENTS as f64;
            assert!((row.wrong as f64) < bound, "{row:?}");
        }
    }
}
