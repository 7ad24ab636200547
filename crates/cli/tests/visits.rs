//! `lately visits`, against programs that sort all reads.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use lately_stream::simulate::rfid::{Read, RfidModel, RfidReads, write_csv, write_ndjson};
use lately_stream::stamp::display_time;
use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;
use support::{Folder, Live, Outcome, lately, real, summed};

const SECOND: u64 = 1_000_000_000;

fn visits(arguments: &str, input: impl AsRef<[u8]>) -> Outcome {
    let arguments: Vec<_> = arguments.split_whitespace().collect();
    let run = summed(&[&["visits"], &*arguments].concat(), input);
    if run.code == 0 {
        adds_up(&run);
    }
    run
}

/// Every record is in one class, and every read of a visit in one visit.
#[track_caller]
fn adds_up(run: &Outcome) {
    let classes = ["in_visits", "late", "invalid", "missing_key", "skewed"];
    let sum: u64 = classes.iter().map(|name| run.count(name)).sum();
    assert_eq!(run.count("read"), sum, "{}", run.stderr);
    let numbers = &run.summary["visits"];
    let number = |name: &str| numbers[name].as_u64().unwrap();
    let reads = run.count("in_visits") + number("resumed_reads");
    assert_eq!(number("written_reads") + number("open_reads"), reads);
    let ended: u64 =
        numbers["ended"].as_object().unwrap().values().filter_map(|n| n.as_u64()).sum();
    assert_eq!(number("written"), ended);
}

/// One read, as the exact program sees it.
struct Seen {
    at: u64,
    key: String,
    strength: f64,
    place: String,
}

/// A visit as the exact program finds it.
#[derive(Clone, Debug, PartialEq)]
struct Exact {
    key: String,
    arrived: u64,
    left: u64,
    reads: u64,
    strength: f64,
    place: String,
    came: usize,
}

/// Leaves out what is late, sorts all by key and time, and splits at pauses.
fn exact(reads: &[Seen], within: u64, lateness: u64) -> (Vec<Exact>, u64) {
    let (mut newest, mut late) = (0, 0);
    let mut kept: Vec<(&str, u64, usize)> = Vec::new();
    for (came, read) in reads.iter().enumerate() {
        if read.at + lateness < newest {
            late += 1;
        } else {
            newest = newest.max(read.at);
            kept.push((&read.key, read.at, came));
        }
    }
    kept.sort_unstable();
    let mut visits: Vec<Exact> = Vec::new();
    for (key, at, came) in kept {
        let Seen { strength, place, .. } = &reads[came];
        match visits.last_mut() {
            Some(visit) if visit.key == key && at - visit.left <= within => {
                (visit.left, visit.reads) = (at, visit.reads + 1);
                visit.came = visit.came.min(came);
                if *strength > visit.strength {
                    (visit.strength, visit.place) = (*strength, place.clone());
                }
            }
            _ => visits.push(Exact {
                key: key.into(),
                arrived: at,
                left: at,
                reads: 1,
                strength: *strength,
                place: place.clone(),
                came,
            }),
        }
    }
    visits.sort_by_key(|visit| (visit.left, visit.came));
    (visits, late)
}

/// Its rows, but for why visits ended.
fn rows(visits: &[Exact]) -> Vec<String> {
    let row = |visit: &Exact| {
        let times = [visit.arrived, visit.left].map(|time| display_time(time.cast_signed()));
        let Exact { key, reads, strength, place, .. } = visit;
        let dwell = seconds(visit.left - visit.arrived);
        format!("{key},{},{},{dwell},{reads},{strength},{place}", times[0], times[1])
    };
    visits.iter().map(row).collect()
}

fn seconds(nanos: u64) -> String {
    let text = format!("{}.{:09}", nanos / SECOND, nanos % SECOND);
    text.trim_end_matches('0').trim_end_matches('.').into()
}

/// The rows of a run, without the header and why they ended.
fn found(run: &Outcome) -> Vec<&str> {
    run.text().lines().skip(1).map(|row| row.rsplit_once(',').unwrap().0).collect()
}

/// `123.45` in units of 10^-digits.
fn fixed(text: &str, digits: usize) -> u64 {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    whole.parse::<u64>().unwrap() * 10_u64.pow(digits as u32)
        + format!("{part:0<digits$}").parse::<u64>().unwrap()
}

/// The reads of one of the real files: columns of time, tag, antenna and strength.
fn reads_of(
    name: &str,
    [time, tag, antenna, rssi]: [usize; 4],
    digits: usize,
) -> Option<(String, Vec<Seen>)> {
    let path = real(&format!("rfid_impinj_r420/{name}"))?;
    let text = fs::read_to_string(&path).unwrap();
    let read = |row: &str| {
        let fields: Vec<_> = row.split(',').collect();
        let mut key = fields[tag].trim_start_matches("b'").trim_end_matches('\'').to_uppercase();
        if key.len() == 48 {
            let pair = |i: usize| char::from(u8::from_str_radix(&key[i..i + 2], 16).unwrap());
            key = (0..48).step_by(2).map(pair).collect::<String>().to_uppercase();
        }
        Seen {
            // Microseconds, or seconds with a fraction.
            at: if digits == 0 {
                fields[time].parse::<u64>().unwrap() * 1000
            } else {
                fixed(fields[time], digits)
            },
            key,
            strength: fields[rssi].parse().unwrap(),
            place: fields[antenna].into(),
        }
    };
    Some((path, text.lines().skip(1).map(read).collect()))
}

#[test]
fn impinj_reads_are_the_visits_of_an_exact_program() {
    let sllurp = [0, 4, 2, 3];
    let files = [
        ("Test10-2.csv", sllurp, 9),
        ("Test11-2.csv", sllurp, 9),
        ("Test9-8.csv", sllurp, 9),
        ("Fingerprint1-13_speedwayconnect.csv", [2, 1, 0, 4], 0),
        ("runtimestamp.csv", [1, 2, 3, 4], 0),
    ];
    for (name, columns, digits) in files {
        let Some((path, reads)) = reads_of(name, columns, digits) else { return };
        for (within, window) in [("1s", SECOND), ("5s", 5 * SECOND), ("30s", 30 * SECOND)] {
            let run = visits(&format!("{path} --within {within}"), "");
            let (expected, late) = exact(&reads, window, window);
            assert_eq!(found(&run), rows(&expected), "{name}, {within}");
            assert_eq!((run.count("late"), run.count("skewed")), (late, 0));
            assert_eq!(run.count("in_visits"), reads.len() as u64 - late);
            let dwell: u64 = expected.iter().map(|visit| visit.left - visit.arrived).sum();
            println!(
                "{name}, {within}: {} reads, {late} late, {} visits, {} s in all",
                reads.len(),
                expected.len(),
                dwell / SECOND
            );
            // By antenna, all of them late by nothing.
            let by_antenna: Vec<_> = reads
                .iter()
                .map(|read| Seen {
                    key: format!("{},{}", read.key, read.place),
                    place: String::new(),
                    ..*read
                })
                .collect();
            let run = visits(&format!("{path} --within {within} --by antenna --lateness 1h"), "");
            let (expected, late) = exact(&by_antenna, window, 3600 * SECOND);
            let expected: Vec<_> =
                rows(&expected).iter().map(|row| row.trim_end_matches(',').to_owned()).collect();
            assert_eq!(found(&run), expected, "{name} by antenna, {within}");
            assert_eq!(run.count("late"), late);
        }
    }
}

/// All of one group, and when it departed, are known; so is where it is at any time.
#[test]
fn simulated_tags_arrive_and_leave_when_they_do() {
    let model = RfidModel { velocity: (1.0, 1.0), locations: 3, ..RfidModel::default() };
    let start = model.start;
    let reads: Vec<Read> = RfidReads::new(model).unwrap().take(20_000).collect();
    let mut truth: BTreeMap<(u128, u32), Vec<Read>> = BTreeMap::new();
    for read in &reads {
        truth.entry((read.epc, read.location)).or_default().push(*read);
    }
    // Late by up to two seconds each.
    let mut shuffled: Vec<_> = (reads.iter().zip(0_u64..))
        .map(|(read, n)| (read.time + n.wrapping_mul(0x9E37_79B9_7F4A_7C15) % (2 * SECOND), *read))
        .collect();
    shuffled.sort_by_key(|read| read.0);
    let shuffled = shuffled.into_iter().map(|read| read.1);
    let (mut csv, mut json) = (Vec::new(), Vec::new());
    write_csv(&mut csv, shuffled.clone()).unwrap();
    write_ndjson(&mut json, shuffled).unwrap();
    let fields = "--key epc --time timestamp --strength rssi --place antenna";
    let run = visits(&format!("{fields} --by location --within 5s --lateness 2s"), &csv);
    assert_eq!(run.count("in_visits"), 20_000);
    let mut times = 0;
    let mut seen: BTreeMap<(u128, u32), ()> = BTreeMap::new();
    for row in run.text().lines().skip(1) {
        let fields: Vec<_> = row.split(',').collect();
        let epc = u128::from_str_radix(fields[0], 16).unwrap();
        let location = fields[1].trim_start_matches("loc-").parse::<u32>().unwrap();
        let own = &truth[&(epc, location)];
        let (first, last) = (own[0].time, own[own.len() - 1].time);
        assert_eq!(
            [fields[2], fields[3]],
            [first, last].map(|time| display_time(time.cast_signed())),
            "{row}"
        );
        assert_eq!(fields[5], own.len().to_string(), "{row}");
        let rssi = own.iter().map(|read| read.rssi).max().unwrap();
        let strongest = own.iter().find(|read| read.rssi == rssi).unwrap();
        assert_eq!(fields[6..8], [rssi.to_string(), strongest.antenna.to_string()], "{row}");
        assert!(seen.insert((epc, location), ()).is_none(), "two visits: {row}");
        // It walks 1 m a second and is seen for 3 m before and after each of the locations.
        let group = (epc >> 38 & 0xFFFFF) as u64 - 100_000;
        let there = start + (10 * group + 20 * u64::from(location)) * SECOND;
        assert!((there - 3 * SECOND..=there + 3 * SECOND).contains(&first), "{row}");
        assert!((there - 3 * SECOND..=there + 3 * SECOND).contains(&last), "{row}");
        times += u64::from(last - first >= 3 * SECOND);
    }
    assert_eq!(seen.len(), truth.len());
    assert!(times * 10 > seen.len() as u64 * 9, "most are seen for most of the six metres");
    // The same in JSON, and the time and tag are known without being named.
    let other =
        visits(&format!("{fields} --by location --within 5s --lateness 2s --to ndjson"), &json);
    assert_eq!(other.text().lines().count(), seen.len());
    for (row, line) in run.text().lines().skip(1).zip(other.text().lines()) {
        let visit: serde_json::Value = serde_json::from_str(line).unwrap();
        let values =
            ["epc", "location", "arrived", "left", "dwell", "reads", "rssi", "antenna", "ended"]
                .map(|name| {
                    visit[name].as_str().map_or_else(|| visit[name].to_string(), String::from)
                });
        assert_eq!(values.join(","), row);
    }
    let bare = visits("--by location --within 5s --lateness 2s", &csv);
    assert_eq!(bare.text(), run.text());
}

const ROWS: &str = "\
t,tag,rssi,antenna
1700000000,a,-60,1
1700000003,a,-50,2
1700000004,b,,1
1700000100,c,-70,1
1700000110,a,-55,1
";

const FIELDS: &str = "--key tag --time t --strength rssi --place antenna --within 5s";

#[test]
fn visits_have_what_was_asked_for() {
    visits(FIELDS, ROWS).code(0).out(
        "tag,arrived,left,dwell,reads,rssi,antenna,ended\n\
         a,2023-11-14T22:13:20Z,2023-11-14T22:13:23Z,3,2,-50,2,gap\n\
         b,2023-11-14T22:13:24Z,2023-11-14T22:13:24Z,0,1,,1,gap\n\
         c,2023-11-14T22:15:00Z,2023-11-14T22:15:00Z,0,1,-70,1,end\n\
         a,2023-11-14T22:15:10Z,2023-11-14T22:15:10Z,0,1,-55,1,end\n",
    );
    let json =
        "{\"u\":7,\"t\":1700000000}\n{\"u\":\"7\",\"t\":1700000001}\n{\"u\":7,\"t\":1700000002}\n";
    visits("--key u --time t --within 5s --to ndjson", json).code(0).out(
        "{\"u\":\"7\",\"arrived\":\"2023-11-14T22:13:21Z\",\"left\":\"2023-11-14T22:13:21Z\",\"dwell\":0,\"reads\":1,\"ended\":\"end\"}\n\
         {\"u\":7,\"arrived\":\"2023-11-14T22:13:20Z\",\"left\":\"2023-11-14T22:13:22Z\",\"dwell\":2,\"reads\":2,\"ended\":\"end\"}\n",
    );
    // All fields but some are one of a list, and names may have commas.
    let rows = "t,a,\"b,c\"\n1700000000,x,1\n1700000001,x,1\n1700000002,x,2\n";
    let run = visits("--key *,-t --time t --within 5s", rows);
    run.out(
        "\"*,-t\",arrived,left,dwell,reads,ended\n\
         \"[\"\"x\"\",\"\"1\"\"]\",2023-11-14T22:13:20Z,2023-11-14T22:13:21Z,1,2,end\n\
         \"[\"\"x\"\",\"\"2\"\"]\",2023-11-14T22:13:22Z,2023-11-14T22:13:22Z,0,1,end\n",
    );
    let run = visits("--key a --by \"b,c\" --time t --within 5s", rows);
    assert!(run.text().starts_with("a,\"b,c\",arrived"), "{}", run.text());
    // A table without rows still has its names.
    visits("--key tag --time t --within 5s", "t,tag\n")
        .code(0)
        .out("tag,arrived,left,dwell,reads,ended\n");
    visits("--key tag --time t --within 0s", ROWS).code(2).says("--within");
    visits("--key tag --time t", ROWS).code(2).says("--within");
}

#[test]
fn what_is_part_of_no_visit_is_counted_and_kept() {
    let folder = Folder::new();
    let [late, missing, invalid] = ["late", "missing", "invalid"].map(|name| folder.path(name));
    let record = |time: &str, tag: &str| format!("{{\"t\":{time},\"tag\":{tag}}}\n");
    let [old, without] =
        [("1700000050", "\"a\""), ("1700000101", "null")].map(|one| record(one.0, one.1));
    let others = ["1700000100", "\"soon\"", "1700000102"].map(|time| record(time, "\"a\""));
    let input = format!("{}{old}{without}{}{}x\n", others[0], others[1], others[2]);
    let run = visits(
        &format!(
            "--key tag --time t --within 5s --late {late} --missing {missing} --invalid {invalid}"
        ),
        input,
    );
    assert_eq!(
        ["in_visits", "late", "missing_key", "invalid"].map(|name| run.count(name)),
        [2, 1, 1, 2]
    );
    assert_eq!(found(&run), ["a,2023-11-14T22:15:00Z,2023-11-14T22:15:02Z,2,2"]);
    assert_eq!(folder.read("late"), old);
    assert_eq!(folder.read("missing"), without);
    assert_eq!(folder.read("invalid").lines().count(), 2);
    run.says("6 records: 2 in visits, 1 late, 2 invalid, 1 missing key, 0 skewed")
        .says("1 visit of 2 reads");
}

#[test]
fn a_late_read_extends_a_visit_or_joins_two() {
    let at = |times: &[u64]| -> String {
        let rows = times.iter().map(|time| format!("{},a\n", 1_700_000_000 + time));
        std::iter::once("t,tag\n".to_owned()).chain(rows).collect()
    };
    let spans = |times: &[u64]| -> Vec<String> {
        let run = visits("--key tag --time t --within 5s --lateness 30s", at(times));
        found(&run).iter().map(|row| row.split(',').skip(3).collect::<Vec<_>>().join(" ")).collect()
    };
    assert_eq!(spans(&[10, 20]), ["0 1", "0 1"]);
    assert_eq!(spans(&[10, 20, 15]), ["10 3"]);
    assert_eq!(spans(&[10, 20, 5]), ["5 2", "0 1"]);
    assert_eq!(spans(&[10, 20, 4]), ["0 1", "0 1", "0 1"]);
}

#[test]
fn open_visits_survive_a_restart() {
    let folder = Folder::new();
    let (state, out) = (folder.path("state"), folder.path("out"));
    let run = |more: &str, rows: &str| {
        let input = format!("t,tag,rssi,antenna\n{rows}");
        visits(&format!("{FIELDS} --state {state} -o {out} {more}"), input).code(0).summary["visits"]["open"]
            .as_u64()
            .unwrap()
    };
    assert_eq!(run("", "1700000000,a,-60,1\n"), 1);
    assert_eq!(run("", "1700000003,a,-50,2\n1700000004,b,,1\n"), 2);
    let shown = lately(&["inspect", &state], "");
    shown.code(0);
    assert!(shown.text().contains("open       2 visits of 3 reads"), "{}", shown.text());
    assert_eq!(run("", "1700000100,c,-70,1\n"), 1);
    assert_eq!(run("--close", "1700000110,a,-55,1\n"), 0);
    let one = visits(FIELDS, ROWS);
    assert_eq!(folder.read("out"), one.text());
    let other = visits(&format!("--key tag --time t --within 6s --state {state}"), ROWS);
    other.code(1).says("window: saved 5s, asked 6s");
    fs::write(&state, "no state").unwrap();
    visits(&format!("{FIELDS} --state {state}"), ROWS)
        .code(1)
        .says("not a state of `lately visits`");
}

/// What was written since the last save is written again, and nothing is lost.
#[test]
fn open_visits_survive_a_crash() {
    let folder = Folder::new();
    let (state, out) = (folder.path("state"), folder.path("out"));
    let arguments: Vec<_> = FIELDS.split(' ').chain(["--state", &state, "-o", &out]).collect();
    let mut lines = ROWS.split_inclusive('\n');
    let header = lines.next().unwrap();
    let lines: Vec<_> = lines.collect();
    let mut live = Live::start(&[&["visits"], &*arguments].concat());
    live.send(&format!("{header}{}", lines[..2].concat()));
    let started = std::time::Instant::now();
    // Both came in one piece.
    while !lately(&["inspect", &state], "").text().contains("1 visit of 2 reads") {
        assert!(started.elapsed() < Duration::from_secs(30));
        live.signal("USR1");
        std::thread::sleep(Duration::from_millis(20));
    }
    // Two visits end, and the state does not know.
    live.send(&lines[2..4].concat());
    let ended = |out: &str| out.matches(",gap\n").count();
    while !std::path::Path::new(&out).exists() || ended(&folder.read("out")) < 2 {
        assert!(started.elapsed() < Duration::from_secs(60), "{}", folder.read("out"));
        std::thread::sleep(Duration::from_millis(5));
    }
    live.kill();
    let once = folder.read("out");
    let run = visits(&arguments[..].join(" "), format!("{header}{}", lines[2..].concat()));
    assert_eq!(run.summary["visits"]["open"], 2);
    let close = visits(&format!("{} --close", arguments.join(" ")), header);
    assert_eq!(close.summary["visits"]["written_reads"], 2);
    let all = visits(FIELDS, ROWS);
    let again = &once[once.find('\n').unwrap() + 1..];
    assert_eq!(
        folder.read("out"),
        format!(
            "{once}{}",
            all.text().replacen("tag,arrived,left,dwell,reads,rssi,antenna,ended\n", "", 1)
        )
    );
    assert!(all.text().contains(again), "{again}");
}

#[test]
fn without_room_the_oldest_visits_end_early() {
    let mut input = String::from("t,tag\n");
    // A thousand tags in turns, all present all the time.
    for n in 0..20_000 {
        input += &format!("{}.{:03},tag-{}\n", 1_700_000_000 + n / 1000, n % 1000, n % 1000);
    }
    let run = visits("--key tag --time t --within 5s --memory 64KiB", &input);
    assert_eq!(run.count("in_visits"), 20_000);
    let early = run.summary["visits"]["ended"]["memory"].as_u64().unwrap();
    assert!(early > 10_000);
    assert_eq!(run.text().matches(",memory\n").count() as u64, early);
    let rows = found(&run);
    let reads = rows.iter().map(|row| row.rsplit(',').next().unwrap().parse::<u64>().unwrap());
    assert_eq!(reads.sum::<u64>(), 20_000);
    run.says("written early, for lack of room");
    let enough = visits("--key tag --time t --within 5s --memory 1MiB", &input);
    assert_eq!(enough.summary["visits"]["written"], 1000);
}

/// Readers whose clocks are wrong by hours or decades, each by as much all the time.
#[test]
fn a_reader_with_a_wrong_clock_has_its_visits_by_its_own() {
    const FIELDS: &str = "--key tag --time t --within 3s --lateness 2s --max-skew 1h";
    let wrong = [0, -3_600, 754_000_000, -86_400 * 365 * 20, 7];
    let mut state = 7_u64;
    let mut random = |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let (mut right, mut skewed, mut now) = (Vec::new(), Vec::new(), 1_700_000_000_000_u64);
    for n in 0..4_000 {
        // Each reader begins on time, which is how far it is wrong then.
        let reader = if n < 5 { n } else { random(5) as usize };
        let late = if n < 5 {
            0
        } else {
            now += random(900);
            random(1_900)
        };
        let at = now - late;
        let row = |at: i64| format!("{}.{:03},tag-{},r{reader}\n", at / 1000, at % 1000, n % 7);
        right.push(row(at.cast_signed()));
        skewed.push(row(at.cast_signed() + wrong[reader] * 1000));
    }
    let header = "t,tag,reader\n";
    let all = |rows: &[String]| format!("{header}{}", rows.concat());
    let expected = visits(FIELDS, all(&right));
    assert!(expected.count("late") == 0 && found(&expected).len() > 100);
    let by = format!("{FIELDS} --clock-by reader");
    let run = visits(&by, all(&skewed));
    assert_eq!((run.count("late"), found(&run)), (0, found(&expected)));
    // Without, all of one reader is late, or all of the others.
    assert!(visits(FIELDS, all(&skewed)).count("late") > 700);
    // A saved state keeps the clocks, and to them.
    let folder = Folder::new();
    let state = format!("--state {}", folder.path("state"));
    let first = visits(&format!("{by} {state}"), all(&skewed[..2_000]));
    visits(&format!("{FIELDS} {state}"), header)
        .code(1)
        .says("clock-by: saved reader, asked default");
    let second = visits(&format!("{by} {state} --close"), all(&skewed[2_000..]));
    assert_eq!([found(&first), found(&second)].concat(), found(&expected));
}

/// The key is a part of a field; `--by` divides it further all the same.
#[test]
fn a_part_of_a_field_is_the_key_of_a_visit() {
    let rows = "t,tag,at\n1700000000,A-1,x\n1700000001,B-1,x\n1700000002,a-2,y\n1700000003,A-2,x\n1700000004,?,x\n";
    let fields = ["visits", "--key", "tag", "--time", "t", "--within", "5s"];
    let run = |more: &[&str]| summed(&[&fields[..], more].concat(), rows);
    let one = run(&["--key-regex", "-(.)"]);
    adds_up(&one);
    one.says("the regular expression does not match").out(
        "tag,arrived,left,dwell,reads,ended\n\
         1,2023-11-14T22:13:20Z,2023-11-14T22:13:21Z,1,2,end\n\
         2,2023-11-14T22:13:22Z,2023-11-14T22:13:23Z,1,2,end\n",
    );
    assert_eq!(one.count("missing_key"), 1);
    run(&["--key-regex", "-(.)", "--by", "at"]).out(
        "tag,at,arrived,left,dwell,reads,ended\n\
         1,x,2023-11-14T22:13:20Z,2023-11-14T22:13:21Z,1,2,end\n\
         2,y,2023-11-14T22:13:22Z,2023-11-14T22:13:22Z,0,1,end\n\
         2,x,2023-11-14T22:13:23Z,2023-11-14T22:13:23Z,0,1,end\n",
    );
    // Several groups are shown as a list, and letters of either case are the same.
    run(&["--key-regex", "^(\\w)(-)?1?", "--key-case", "fold"]).out(
        "tag,arrived,left,dwell,reads,ended\n\
         \"[\"\"B\"\",\"\"-\"\"]\",2023-11-14T22:13:21Z,2023-11-14T22:13:21Z,0,1,end\n\
         \"[\"\"A\"\",\"\"-\"\"]\",2023-11-14T22:13:20Z,2023-11-14T22:13:23Z,3,3,end\n",
    );
}

#[test]
fn a_visit_ends_although_nothing_more_comes() {
    let arguments = ["visits", "--key", "tag", "--time", "t", "--within", "200ms"];
    let mut live = Live::start(&arguments);
    live.send("t,tag\n1700000000,a\n1700000000.1,a\n");
    live.expect(
        "tag,arrived,left,dwell,reads,ended\na,2023-11-14T22:13:20Z,2023-11-14T22:13:20.1Z,0.1,2,silence\n",
        Duration::from_secs(30),
    );
    // Without times, by when reads arrive.
    let mut live = Live::start(&["visits", "--format", "csv", "--key", "tag", "--within", "200ms"]);
    live.send("tag\na\n");
    let started = std::time::Instant::now();
    while !live.got().contains(",1,gap\n") {
        assert!(started.elapsed() < Duration::from_secs(30), "{:?}", live.got());
        std::thread::sleep(Duration::from_millis(5));
    }
}
