//! Real files through the program, compared with an exact program that reads them the same way.

use lately::{Digest, Digester};
use lately_stream::options::{Format, Options, read_time};
use lately_stream::read::Parser;
use lately_stream::record::{Batch, Kind, Record, Time};
use lately_stream::source::Source;
use lately_stream::stamp::{StampParser, TimeFormat, Zone};
use std::collections::{BTreeSet, HashMap};
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SECOND: u64 = 1_000_000_000;

/// One file and how it is read.
struct Job {
    file: &'static str,
    /// Sort the records by their first column, as numbers, before anything else.
    sorted: bool,
    format: Format,
    key: &'static [&'static str],
    time: Option<&'static str>,
    /// Nanoseconds; `None` is ever.
    within: Option<u64>,
    /// `--renew fresh`.
    on_fresh: bool,
}

/// What came out.
struct Row {
    records: u64,
    kept: u64,
    exact: u64,
    memory: u64,
    bytes: u64,
    seconds: f64,
}

fn jobs() -> Vec<Job> {
    let rfid = |within, sorted, on_fresh| Job {
        file: "rfid_impinj_r420/Test10-2.csv",
        sorted,
        format: Format::Csv,
        key: &["epc"],
        time: Some("timestamp"),
        within: Some(within),
        on_fresh,
    };
    let dns = |sorted| Job {
        file: "ip_zeek/dns.log",
        sorted,
        format: Format::Zeek,
        key: &["id.orig_h", "id.orig_p", "id.resp_h", "trans_id", "query", "qtype"],
        time: Some("ts"),
        within: Some(SECOND / 1000),
        on_fresh: false,
    };
    let other = |file, format, key, time, within| Job {
        file,
        sorted: false,
        format,
        key,
        time,
        within,
        on_fresh: false,
    };
    let hour = Some(3600 * SECOND);
    let crowd = "crowd_interscity2017/locations_by_write_ts.csv";
    vec![
        rfid(SECOND / 10, true, true),
        rfid(SECOND, true, true),
        rfid(5 * SECOND, true, true),
        rfid(30 * SECOND, true, true),
        rfid(SECOND / 10, false, true),
        rfid(SECOND, false, true),
        rfid(5 * SECOND, false, true),
        rfid(30 * SECOND, false, true),
        rfid(SECOND / 10, false, false),
        rfid(SECOND, false, false),
        rfid(5 * SECOND, false, false),
        rfid(30 * SECOND, false, false),
        dns(true),
        dns(false),
        other("http_nasa/nasa_19950801.tsv", Format::Tsv, &["host", "url"], Some("time"), hour),
        other("msg_collegemsg/CollegeMsg.txt", Format::Columns, &["1", "2"], Some("3"), hour),
        other("sensor_ulb/N1.txt", Format::Columns, &["2", "3", "4", "5"], Some("1"), hour),
        other("sensor_ulb/N1.txt", Format::Lines, &[], None, None),
        other(
            crowd,
            Format::Csv,
            &["user", "ts", "lat", "lon"],
            Some("ts"),
            Some(24 * 3600 * SECOND),
        ),
        other(crowd, Format::Csv, &["user", "ts", "lat", "lon"], None, None),
        other(
            "gps_geolife/geolife_sample.csv",
            Format::Csv,
            &["uid", "lat", "lng"],
            Some("datetime"),
            hour,
        ),
    ]
}

/// Runs all jobs over the files in `data` and returns the page.
///
/// # Errors
/// A file that is not there, or a program that fails.
pub fn run(data: &Path, lately: &Path, runs: usize) -> Result<String, Box<dyn Error>> {
    let mut page = String::from(HEAD);
    for job in jobs() {
        let (input, temporary) = prepare(data, &job)?;
        let row = compare(&input, lately, &job, runs);
        if temporary {
            fs::remove_file(&input)?;
        }
        describe(&mut page, &job, &row?)?;
    }
    Ok(page)
}

/// What the program keeps of an input and what an exact one does; the best time of several runs.
fn compare(input: &Path, lately: &Path, job: &Job, runs: usize) -> Result<Row, Box<dyn Error>> {
    let exact = exact(input, job)?;
    let mut row = measure(lately, input, job, exact)?;
    for _ in 1..runs {
        row.seconds = row.seconds.min(measure(lately, input, job, exact)?.seconds);
    }
    Ok(row)
}

const HEAD: &str = "\
# Real files

`lately dedup` at its default false positive rate (1e-6), compared with an exact program: a map from every
key to all times at which it was seen. A record is a duplicate if an earlier one of its key (with `--renew fresh`: one that was
kept) lies within the window of it, before or after; one behind the latest time by more than the window is late. *Kept* counts the records forwarded: fresh, late, and
missing key. Written by `lately-bench files`. MB/s is for the whole program, the best of several
runs, and means little for files this small: a large part is the time to start the program.

Where a row *differs*, the program set its clock back: in `gps_geolife` the tracks of several people follow one another, each
beginning long before the last one ended. It then judges records that the exact program, which never sets its
clock back, takes for late and keeps.

| file | records | key | window | renew | kept | exact | filter | MB/s |
|---|---:|---|---|---|---:|---:|---:|---:|
";

fn describe(page: &mut String, job: &Job, row: &Row) -> Result<(), Box<dyn Error>> {
    let window = job.within.map_or("ever".into(), lately_stream::quantity::display_duration);
    let key = if job.key.is_empty() { "whole line".into() } else { job.key.join(", ") };
    writeln!(
        page,
        "| {}{} | {} | {key} | {window} | {} | {} | {}{} | {} | {:.0} |",
        job.file,
        if job.sorted { ", sorted by time" } else { "" },
        row.records,
        if job.on_fresh { "fresh" } else { "always" },
        row.kept,
        row.exact,
        if row.kept == row.exact { "" } else { " **differs**" },
        lately_stream::quantity::display_bytes(row.memory),
        row.bytes as f64 / 1e6 / row.seconds,
    )?;
    Ok(())
}

/// The input of a job: the file itself, or a sorted copy of it.
fn prepare(data: &Path, job: &Job) -> Result<(PathBuf, bool), Box<dyn Error>> {
    let path = data.join(job.file);
    if !job.sorted {
        return Ok((path, false));
    }
    let text = fs::read_to_string(&path)?;
    let is_header = |line: &&str| line.starts_with('#') || line.starts_with("timestamp");
    let (header, mut records): (Vec<&str>, Vec<&str>) = text.lines().partition(is_header);
    let time = |line: &str| -> f64 {
        line.split([',', '\t']).next().and_then(|text| text.parse().ok()).unwrap_or(0.0)
    };
    records.sort_by(|a, b| time(a).total_cmp(&time(b)));
    // What follows the last record in a Zeek log is a comment too; before them it does no harm.
    let lines: Vec<&str> = header.into_iter().chain(records).collect();
    let copy = std::env::temp_dir().join(format!("lately-sorted-{}", std::process::id()));
    fs::write(&copy, lines.join("\n") + "\n")?;
    Ok((copy, true))
}

/// How many records an exact program keeps.
fn exact(input: &Path, job: &Job) -> Result<u64, Box<dyn Error>> {
    let stamps = StampParser::new(TimeFormat::Auto, Zone::default())?;
    let mut options = Options::new(Digester::new(0), read_time(stamps));
    options.format = job.format;
    options.fields_wanted = job.time.is_some();
    options.key = job.key.iter().map(ToString::to_string).collect();
    options.time = job.time.map(Into::into).into_iter().collect();
    let mut source = Source::new(vec![input.display().to_string()], options);
    let (mut parser, mut records, mut kept) = (Parser::new(), Vec::new(), 0);
    while let Some(chunk) = source.next_chunk(Vec::new())? {
        let mut batch = Batch::default();
        parser.parse(chunk, &mut batch);
        for record in batch.records {
            match record.kind {
                Kind::Keyed => records.push(record),
                Kind::KeyMissing => {
                    kept += 1;
                    records.push(record);
                }
                Kind::Untimed => return Err("a record without a time".into()),
                Kind::Invalid | Kind::Header | Kind::Aside => {}
            }
        }
    }
    Ok(kept + keep(&records, job))
}

/// The judging, with all times of every key instead of a filter.
fn keep(records: &[Record], job: &Job) -> u64 {
    let span = job.within.unwrap_or(u64::MAX);
    let mut latest = 0;
    let mut seen: HashMap<Digest, BTreeSet<u64>> = HashMap::new();
    let mut kept = 0;
    for record in records {
        let time = record.time.and_then(Time::nanos).map_or(0, i64::cast_unsigned);
        let is_late = time.saturating_add(span) < latest;
        latest = latest.max(time);
        if record.kind == Kind::KeyMissing {
            continue;
        }
        if is_late {
            kept += 1;
            continue;
        }
        let times = seen.entry(record.digest).or_default();
        let near = time.saturating_sub(span)..=time.saturating_add(span);
        let is_duplicate = times.range(near).next().is_some();
        kept += u64::from(!is_duplicate);
        if !is_duplicate || !job.on_fresh {
            times.insert(time);
        }
    }
    kept
}

fn measure(lately: &Path, input: &Path, job: &Job, exact: u64) -> Result<Row, Box<dyn Error>> {
    let mut command = Command::new(lately);
    command.arg("dedup").arg(input).args([
        "--summary",
        "-",
        "--max-skew",
        "1h",
        "--format",
        &job.format.to_string(),
    ]);
    if !job.key.is_empty() {
        command.args(["--key", &job.key.join(",")]);
    }
    if let Some(time) = job.time {
        command.args(["--time", time]);
    }
    if let Some(within) = job.within {
        command.args(["--within", &format!("{within}ns")]);
    }
    if job.on_fresh {
        command.args(["--renew", "fresh"]);
    }
    let output = command.stdout(Stdio::null()).stderr(Stdio::piped()).output()?;
    let said = String::from_utf8(output.stderr)?;
    if !output.status.success() {
        return Err(said.into());
    }
    let numbers = said.lines().last().unwrap_or("");
    let numbers: serde_json::Value = serde_json::from_str(numbers).map_err(|_| said.clone())?;
    let number = |name: &str| numbers[name].as_u64().unwrap_or(0);
    Ok(Row {
        records: number("read"),
        kept: number("read") - number("duplicate") - number("invalid"),
        exact,
        memory: numbers["filter"]["memory_bytes"].as_u64().unwrap_or(0),
        bytes: number("bytes_in"),
        seconds: numbers["seconds"].as_f64().unwrap_or(f64::INFINITY),
    })
}
