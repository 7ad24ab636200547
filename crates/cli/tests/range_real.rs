//! Real files, indexed and asked through the program, beside exact programs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::Ipv4Addr;
use support::{Folder, lately, real, summed};

/// Answers of `lately ask` for a file of questions: perhaps?
fn answers(state: &str, folder: &Folder, questions: &[String], more: &[&str]) -> Vec<bool> {
    let list = folder.file("list", questions.join("\n"));
    let run = lately(&[&["ask", state, "--ranges", &list], more].concat(), "");
    assert!(run.code < 2, "{}", run.stderr);
    let answers: Vec<bool> = run.text().lines().map(|line| line.contains("\tperhaps\t")).collect();
    assert_eq!((answers.len(), run.code), (questions.len(), i32::from(!answers.contains(&true))));
    answers
}

/// Every question with a key is answered with perhaps; of the others, no more than `rate` allows.
#[track_caller]
fn compare(answers: &[bool], truth: &[bool], rate: f64) {
    let pairs = || answers.iter().zip(truth);
    assert_eq!(pairs().filter(|&(perhaps, any)| *any && !perhaps).count(), 0);
    let empty = truth.iter().filter(|&&any| !any).count() as f64;
    let wrong = pairs().filter(|&(perhaps, any)| !any && *perhaps).count() as f64;
    assert!(empty > 10.0 && truth.contains(&true), "{empty} empty");
    assert!(wrong <= rate * empty + 5.0 * (rate * empty).sqrt() + 1.0, "{wrong} of {empty}");
}

/// Digits of an EPC in one of the spellings of the R420 files.
fn digits(field: &str) -> String {
    let epc = field.trim_start_matches("b'").trim_end_matches('\'').to_lowercase();
    if epc.len() != 48 {
        return epc;
    }
    let pair = |i: usize| u8::from_str_radix(&epc[i..i + 2], 16).unwrap() as char;
    (0..48).step_by(2).map(pair).collect()
}

#[test]
fn tags_of_one_reader_by_product() {
    let names = [
        ("runtimestamp.csv", 2),
        ("Fingerprint1-13_speedwayconnect.csv", 1),
        ("Test9-8.csv", 4),
        ("Test10-2.csv", 4),
        ("Test11-2.csv", 4),
    ];
    let folder = Folder::new();
    let state = folder.path("tags.index");
    let mut tags = BTreeSet::new();
    let mut records = 0;
    for (name, column) in names {
        let Some(path) = real(&format!("rfid_impinj_r420/{name}")) else { return };
        let text = fs::read_to_string(&path).unwrap();
        for row in text.lines().skip(1) {
            tags.insert(digits(row.split(',').nth(column).unwrap()));
            records += 1;
        }
        // One file after another into one index, each under the name that its column has.
        let run = summed(
            &["index", &path, "--key", "epc", "--last", "100k", "--fpr", "1e-4", "--state", &state],
            "",
        );
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_eq!(run.count("indexed"), run.count("read"));
        records -= run.count("indexed");
    }
    assert_eq!(records, 0);
    // What the program itself says of each tag.
    let all: Vec<&str> = tags.iter().map(String::as_str).collect();
    let run = lately(&["epc"], all.join("\n"));
    let mut classes: BTreeMap<String, bool> = BTreeMap::new();
    for line in run.text().lines() {
        let id = line.rsplit_once('\t').unwrap().1;
        let Some(rest) = id.strip_prefix("urn:epc:id:sgtin:") else { continue };
        let parts: Vec<&str> = rest.split('.').collect();
        classes.insert(format!("{}.{}", parts[0], parts[1]), true);
        let near: u64 = parts[1].parse().unwrap();
        for near in [near.saturating_sub(1), near + 1, near / 10] {
            let near = format!("{near:0width$}", width = parts[1].len());
            if near.len() == parts[1].len() {
                classes.entry(format!("{}.{near}", parts[0])).or_insert(false);
            }
        }
    }
    assert!(classes.values().filter(|&&any| any).count() > 20);
    for (pattern, intervals) in [("idpat:sgtin", 2.0), ("idpat:sgtin-96", 1.0)] {
        let questions: Vec<String> =
            classes.keys().map(|class| format!("urn:epc:{pattern}:{class}.*")).collect();
        let truth: Vec<bool> = classes.values().copied().collect();
        compare(&answers(&state, &folder, &questions, &[]), &truth, intervals * 1e-4);
    }
    // Single tags, in another spelling than most came in.
    let raw: Vec<String> =
        tags.iter().map(|tag| format!("urn:epc:raw:96.x{}", tag.to_uppercase())).collect();
    assert!(answers(&state, &folder, &raw, &[]).iter().all(|&perhaps| perhaps));
}

#[test]
fn addresses_of_a_log_by_block() {
    let Some(path) = real("ip_zeek/dns.log") else { return };
    let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
    let folder = Folder::new();
    let state = folder.path("hosts.index");
    let run = summed(
        &[
            "index",
            &path,
            "--key",
            "id.orig_h",
            "--key-format",
            "ip",
            "--time",
            "ts",
            "--within",
            "30s",
            "--slack",
            "1s",
            "--interval",
            "/24",
            "--fpr",
            "1e-3",
            "--state",
            &state,
        ],
        "",
    );
    assert_eq!((run.code, run.count("read")), (0, 53_615), "{}", run.stderr);
    // Late by more than the window: not indexed, here and there.
    let (mut now, mut last, mut all, mut late, mut six) =
        (0.0, BTreeMap::new(), BTreeSet::new(), 0, 0);
    for row in text.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = row.split('\t').collect();
        let time: f64 = fields[0].parse().unwrap();
        if time < now - 30.0 {
            late += 1;
            continue;
        }
        now = time.max(now);
        match fields[2].parse::<Ipv4Addr>() {
            Ok(address) => {
                all.insert(address.to_bits());
                last.insert(address.to_bits(), now);
            }
            Err(_) => six += 1,
        }
    }
    assert_eq!(run.count("late"), late);
    assert_eq!(run.count("indexed") + run.count("late"), 53_615, "{six} of IPv6 among them");
    for (within, bits) in [(30.0, 24), (30.0, 28), (5.0, 24), (5.0, 32)] {
        let size = 1_u32.checked_shl(32 - bits).unwrap_or(0);
        let mut blocks = BTreeSet::new();
        for address in &all {
            let base = address & !(size - 1);
            blocks.extend([base.wrapping_sub(size), base, base.wrapping_add(size)]);
        }
        let questions: Vec<String> =
            blocks.iter().map(|&base| format!("{}/{bits}", Ipv4Addr::from_bits(base))).collect();
        let age = |base: u32| {
            last.range(base..=base | (size - 1)).map(|(_, seen)| now - seen).reduce(f64::min)
        };
        let within_flag = format!("{within}s");
        let perhaps = answers(&state, &folder, &questions, &["--within", &within_flag]);
        // Those whose youngest is in the slack are answered either way.
        let clear: Vec<(bool, bool)> = blocks
            .iter()
            .zip(perhaps)
            .filter(|(base, _)| age(**base).is_none_or(|age| age <= within || age > within + 1.0))
            .map(|(&base, perhaps)| (perhaps, age(base).is_some_and(|age| age <= within)))
            .collect();
        let (perhaps, truth): (Vec<bool>, Vec<bool>) = clear.into_iter().unzip();
        compare(&perhaps, &truth, 1e-3);
    }
}

#[test]
fn times_of_requests_by_interval() {
    let Some(path) = real("http_nasa/nasa_19950801.tsv") else { return };
    let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
    let times: Vec<u64> = text
        .lines()
        .skip(1)
        .map(|line| line.split('\t').nth(2).unwrap().parse().unwrap())
        .collect();
    let folder = Folder::new();
    let state = folder.path("times.index");
    let run = summed(
        &[
            "index",
            &path,
            "--key",
            "time",
            "--key-format",
            "time",
            "--last",
            "5000",
            "--slack",
            "1",
            "--interval",
            "2s",
            "--fpr",
            "1e-3",
            "--state",
            &state,
        ],
        "",
    );
    assert_eq!((run.code, run.count("indexed")), (0, times.len() as u64), "{}", run.stderr);
    let (window, before) = (&times[times.len() - 5000..], &times[times.len() - 5002..]);
    let seconds: BTreeSet<u64> = window.iter().copied().collect();
    let slack: BTreeSet<u64> = before.iter().copied().collect();
    let first = *seconds.first().unwrap() - 3000;
    let last = *seconds.last().unwrap();
    // Half a second on either side of each, in the two notations.
    let (mut questions, mut truth) = (Vec::new(), Vec::new());
    for second in
        (first..last + 3000).filter(|second| seconds.contains(second) == slack.contains(second))
    {
        questions.push(format!("{}.5..{second}.5", second - 1));
        truth.push(seconds.contains(&second));
    }
    compare(&answers(&state, &folder, &questions, &[]), &truth, 1e-3);
    let run = lately(&["ask", &state, "--range", "1995-08-01T00:00:00Z..1995-08-02T12:00:00Z"], "");
    assert_eq!(run.code, 0, "{}", run.stderr);
}

#[test]
fn watching_real_files() {
    if let Some(path) = real("ip_zeek/dns.log") {
        let text = fs::read(&path).unwrap();
        let folder = Folder::new();
        let list = folder.file("list", "10.47.1.0/24\n10.47.0.0..10.47.0.100\n");
        let run = summed(
            &["watch", &path, "--key", "id.orig_h", "--key-format", "ip", "--ranges", &list],
            "",
        );
        let inside = |row: &&[u8]| {
            let field = row.split(|c| *c == b'\t').nth(2).unwrap_or_default();
            let address: Option<Ipv4Addr> = std::str::from_utf8(field).unwrap().parse().ok();
            row[0] == b'#'
                || address.is_some_and(|address| {
                    let [a, b, c, d] = address.octets();
                    (a, b) == (10, 47) && (c == 1 || c == 0 && d <= 100)
                })
        };
        let expected: Vec<u8> =
            text.split_inclusive(|c| *c == b'\n').filter(inside).collect::<Vec<_>>().concat();
        assert!(run.stdout == expected, "{}", run.stderr);
        assert!(run.count("inside") > 100 && run.count("missing_key") == 0, "{}", run.stderr);
    }
    if let Some(path) = real("rfid_impinj_r420/Test10-2.csv") {
        let text = fs::read_to_string(&path).unwrap();
        let folder = Folder::new();
        // 0073149.092504, by the pattern and by hand.
        let list = folder.file("list", "urn:epc:idpat:sgtin:0073149.092504.*\n");
        let run = summed(&["watch", &path, "--key", "epc", "--ranges", &list], "");
        let mut lines = text.split_inclusive('\n');
        let head = lines.next().unwrap().to_owned();
        let inside = |row: &&str| row.split(',').nth(4).unwrap().contains("30340476f45a56");
        let expected: String = head + &lines.filter(inside).collect::<String>();
        assert!(run.count("inside") > 10 && run.stdout == expected.as_bytes(), "{}", run.stderr);
    }
}
