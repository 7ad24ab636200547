//! Real files against an exact program: the same records are kept, byte for byte.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use support::{Folder, Outcome, dedup, real};

type Row<'a> = &'a [u8];

/// What the program should do, with every key kept. A record is judged by its own time: it is a
/// duplicate if an earlier record of its key (one that passed, if duplicates do not renew) lies within
/// the window of it, before or after. One behind the largest time so far by more than the lateness
/// passes unjudged.
struct Exact {
    window: u64,
    lateness: u64,
    renew_always: bool,
    now: u64,
    seen: HashMap<Vec<u8>, BTreeSet<u64>>,
    duplicate: u64,
    late: u64,
    missing: u64,
}

impl Exact {
    fn new(window: u64, renew_always: bool) -> Self {
        let seen = HashMap::new();
        Self {
            window,
            lateness: window,
            renew_always,
            now: 0,
            seen,
            duplicate: 0,
            late: 0,
            missing: 0,
        }
    }

    /// Does it pass?
    fn passes(&mut self, key: Option<Vec<u8>>, time: u64) -> bool {
        let late = time + self.lateness < self.now;
        self.now = self.now.max(time);
        let Some(key) = key else {
            self.missing += 1;
            return true;
        };
        if late {
            self.late += 1;
            return true;
        }
        let seen = self.seen.entry(key).or_default();
        let near = time.saturating_sub(self.window)..=time + self.window;
        let duplicate = seen.range(near).next().is_some();
        if !duplicate || self.renew_always {
            seen.insert(time);
        }
        self.duplicate += u64::from(duplicate);
        !duplicate
    }

    /// Runs over rows and compares.
    #[track_caller]
    fn compare<'a>(
        mut self,
        asides: &[u8],
        rows: impl Iterator<Item = Row<'a>>,
        read: impl Fn(&[&[u8]]) -> (Option<Vec<u8>>, u64),
        separator: u8,
        run: &Outcome,
    ) {
        let mut expected = asides.to_vec();
        for row in rows {
            let fields: Vec<_> = row.trim_ascii_end().split(|c| *c == separator).collect();
            if row[0] == b'#' || {
                let (key, time) = read(&fields);
                self.passes(key, time)
            } {
                expected.extend_from_slice(row);
            }
        }
        assert_eq!(run.count("duplicate"), self.duplicate, "{}", run.stderr);
        assert_eq!(run.count("late"), self.late, "{}", run.stderr);
        assert_eq!(run.count("missing_key"), self.missing, "{}", run.stderr);
        assert_eq!(run.count("skewed") + run.count("invalid"), 0, "{}", run.stderr);
        assert!(run.stdout == expected, "the output differs: {}", run.stderr);
        assert_eq!(run.code, 0);
    }
}

/// `123.45` in nanoseconds.
fn nanos(text: &[u8]) -> u64 {
    let text = std::str::from_utf8(text).unwrap();
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    whole.parse::<u64>().unwrap() * 1_000_000_000 + format!("{part:0<9}").parse::<u64>().unwrap()
}

fn key(fields: &[&[u8]], wanted: &[usize]) -> Option<Vec<u8>> {
    Some(wanted.iter().map(|&at| fields[at]).collect::<Vec<_>>().join(&0))
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = Row<'_>> {
    bytes.split_inclusive(|c| *c == b'\n')
}

/// The header line and the rest.
fn table(bytes: &[u8]) -> (Row<'_>, Vec<Row<'_>>) {
    let mut lines = lines(bytes);
    (lines.next().unwrap(), lines.collect())
}

#[test]
fn impinj_reads_sorted_by_time() {
    let Some(path) = real("rfid_impinj_r420/Test10-2.csv") else { return };
    let bytes = fs::read(path).unwrap();
    let (header, mut rows) = table(&bytes);
    let time = |row: &&[u8]| nanos(row.split(|c| *c == b',').next().unwrap());
    rows.sort_by_key(time);
    let folder = Folder::new();
    let file = folder.file("sorted.csv", [&[header], &*rows].concat().concat());
    for (seconds, kept) in [("0.1", 15_589), ("1", 2927), ("5", 833), ("30", 214)] {
        for key in ["epc", "epc --key-format epc"] {
            let run = dedup(
                &format!("{file} --key {key} --time timestamp --renew fresh --within {seconds}s"),
                "",
            );
            run.counts([kept, 49_184 - kept, 0, 0, 0, 0]).code(0);
        }
        let run = dedup(&format!("{file} --renew fresh --within {seconds}s"), "");
        run.counts([kept, 49_184 - kept, 0, 0, 0, 0]);
        let window = (seconds.parse::<f64>().unwrap() * 1e9) as u64;
        Exact::new(window, false).compare(
            header,
            rows.iter().copied(),
            |f| (key(f, &[4]), nanos(f[0])),
            b',',
            &run,
        );
    }
}

#[test]
fn impinj_reads_as_they_came() {
    let Some(path) = real("rfid_impinj_r420/Test10-2.csv") else { return };
    let bytes = fs::read(&path).unwrap();
    let (header, rows) = table(&bytes);
    // With the counts of an exact program in another language.
    for (within, window, counts) in [
        ("100ms", 100_000_000, [15_399, 5_643, 418]),
        ("1s", 1_000_000_000, [2919, 621, 32]),
        ("5s", 5_000_000_000, [832, 274, 13]),
        ("30s", 30_000_000_000, [214, 49, 1]),
    ] {
        for (renew, always) in [("fresh", false), ("always", true)] {
            let run = dedup(&format!("{path} --within {within} --renew {renew}"), "");
            assert_eq!(run.count("read"), 49_184);
            let fresh = if always { counts[1] } else { counts[0] };
            assert_eq!((run.count("fresh"), run.count("late")), (fresh, counts[2]));
            Exact::new(window, always).compare(
                header,
                rows.iter().copied(),
                |f| (key(f, &[4]), nanos(f[0])),
                b',',
                &run,
            );
        }
    }
}

#[test]
fn one_tag_in_the_spellings_of_four_programs() {
    let names = [
        "Test10-2.csv",
        "Test9-8.csv",
        "Test11-2.csv",
        "Fingerprint1-13_speedwayconnect.csv",
        "runtimestamp.csv",
    ];
    let mut paths = Vec::new();
    let mut tags = HashSet::new();
    for (name, column) in names.into_iter().zip([4, 4, 4, 1, 2]) {
        let Some(path) = real(&format!("rfid_impinj_r420/{name}")) else { return };
        let text = fs::read_to_string(&path).unwrap();
        for row in text.lines().skip(1) {
            let epc =
                row.split(',').nth(column).unwrap().trim_start_matches("b'").trim_end_matches('\'');
            let mut epc = epc.to_lowercase();
            if epc.len() == 48 {
                let pair = |i: usize| u8::from_str_radix(&epc[i..i + 2], 16).unwrap() as char;
                epc = (0..48).step_by(2).map(pair).collect();
            }
            tags.insert(epc);
        }
        paths.push(path);
    }
    let run = dedup(&format!("{} --key epc --key-format epc", paths.join(" ")), "");
    assert_eq!(run.count("fresh"), tags.len() as u64);
    assert_eq!(run.count("invalid") + run.count("missing_key"), 0);
    run.says("runtimestamp.csv has a different header line");
}

#[test]
fn zeek_dns_captured_twice() {
    let Some(path) = real("ip_zeek/dns.log") else { return };
    let bytes = fs::read(&path).unwrap();
    let comment = |row: &&[u8]| row[0] == b'#';
    let head: Vec<u8> = lines(&bytes).take_while(comment).collect::<Vec<_>>().concat();
    // With the comment that closes it.
    let rows: Vec<_> = lines(&bytes[head.len()..]).collect();
    let fields =
        "--key id.orig_h,id.orig_p,id.resp_h,trans_id,query,qtype --within 1ms --max-skew 1h";
    let read = |f: &[&[u8]]| {
        let wanted = [2, 3, 4, 7, 9, 12];
        let unset = wanted.iter().any(|&at| f[at] == b"-");
        (key(f, &wanted).filter(|_| !unset), nanos(f[0]))
    };
    for renew in ["always", "fresh"] {
        let run = dedup(&format!("{path} {fields} --time ts --renew {renew}"), "");
        assert_eq!((run.count("read"), run.count("missing_key")), (53_615, 9));
        assert!(run.count("late") > 0);
        Exact::new(1_000_000, renew == "always").compare(
            &head,
            rows.iter().copied(),
            read,
            b'\t',
            &run,
        );
    }
    let mut sorted = rows.clone();
    sorted.retain(|row| !comment(row));
    sorted.sort_by_key(|row| nanos(row.split(|c| *c == b'\t').next().unwrap()));
    let folder = Folder::new();
    let file = folder.file("dns.log", [&[&*head], &*sorted].concat().concat());
    // The time is the log's own if none is named.
    let run = dedup(&format!("{file} {fields}"), "");
    assert_eq!(run.count("late"), 0);
    Exact::new(1_000_000, true).compare(&head, sorted.iter().copied(), read, b'\t', &run);
}

#[test]
fn web_requests_and_messages() {
    if let Some(path) = real("http_nasa/nasa_19950801.tsv") {
        let bytes = fs::read(&path).unwrap();
        let (header, rows) = table(&bytes);
        let run = dedup(&format!("{path} --key host,url --time time --within 1h"), "");
        let hour = 3_600_000_000_000;
        let read = |f: &[&[u8]]| (key(f, &[0, 4]), nanos(f[2]));
        Exact::new(hour, true).compare(header, rows.iter().copied(), read, b'\t', &run);
    }
    if let Some(path) = real("msg_collegemsg/CollegeMsg.txt") {
        let bytes = fs::read(&path).unwrap();
        let run = dedup(&format!("{path} --format columns --key 1,2 --time 3 --within 1h"), "");
        assert_eq!(run.count("read"), 59_835);
        let read = |f: &[&[u8]]| (key(f, &[0, 1]), nanos(f[2]));
        Exact::new(3_600_000_000_000, true).compare(b"", lines(&bytes), read, b' ', &run);
    }
}

#[test]
fn sensor_packets() {
    if let Some(path) = real("sensor_ulb/N1.txt") {
        let run = dedup(&format!("{path} --format columns --key 2,3,4,5"), "");
        assert_eq!(run.count("duplicate"), 475);
        let run = dedup(&path, "");
        run.counts([127_903 - 16, 16, 0, 0, 0, 0]);
        let bytes = fs::read(&path).unwrap();
        let run = dedup(&format!("{path} --format columns --key 3,4 --time 1 --within 30s"), "");
        let (seconds, rest) = (10, 3);
        let millis =
            |text: &[u8]| nanos(&[&text[..seconds], b".", &text[text.len() - rest..]].concat());
        let read = |f: &[&[u8]]| (key(f, &[2, 3]), millis(f[0]));
        Exact::new(30_000_000_000, true).compare(b"", lines(&bytes), read, b' ', &run);
    }
    if let Some(path) = real("sensor_ulb/R3.txt") {
        let bytes = fs::read(&path).unwrap();
        assert!(std::str::from_utf8(&bytes).is_err());
        let mut seen = HashSet::new();
        let mut expected = Vec::new();
        for line in lines(&bytes).filter(|line| seen.insert(line.trim_ascii_end().to_vec())) {
            expected.extend_from_slice(line);
        }
        assert!(dedup(&path, "").stdout == expected);
    }
}

#[test]
fn positions_of_a_crowd() {
    let Some(path) = real("crowd_interscity2017/locations_by_write_ts.csv") else { return };
    let bytes = fs::read(&path).unwrap();
    let (header, rows) = table(&bytes);
    let run = dedup(&format!("{path} --key user,ts,lat,lon"), "");
    run.counts([131_131 - 1459, 1459, 0, 0, 0, 0]);
    let read = |f: &[&[u8]]| (key(f, &[0, 1, 3, 4]), 1);
    Exact::new(1, true).compare(header, rows.iter().copied(), read, b',', &run);
}
