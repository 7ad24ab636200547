//! `lately index` and `lately ask`: was any key of an interval seen lately?

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;
use support::{Folder, Live, Outcome, dedup, lately, summed};

/// What must come without more input is waited for this long.
const PATIENT: Duration = Duration::from_secs(20);

fn index(arguments: &str, state: &str, input: impl AsRef<[u8]>) -> Outcome {
    let mut all = vec!["index", "--state", state];
    all.extend(arguments.split_whitespace());
    summed(&all, input)
}

/// `lately ask` with arguments separated by blanks.
fn ask(state: &str, arguments: &str) -> Outcome {
    let mut all = vec!["ask", state];
    all.extend(arguments.split_whitespace());
    lately(&all, "")
}

/// Perhaps?
#[track_caller]
fn asked(state: &str, arguments: &str) -> bool {
    let run = ask(state, arguments);
    match run.code {
        0 => assert!(run.text().contains("\tperhaps\t"), "{}", run.text()),
        1 => assert!(run.text().ends_with("\tno\t0.00e0\n"), "{}", run.text()),
        code => panic!("status {code}: {}", run.stderr),
    }
    run.code == 0
}

/// So rare an error that no test meets it.
const SURE: &str = "--fpr 1e-9";

/// The number is a part of a line or of a field, for `index` and for `watch`.
#[test]
fn a_part_of_a_text_is_the_number() {
    let folder = Folder::new();
    let state = folder.path("orders.index");
    let log = "order-17 paid\norder-4711 paid\nno order\n17\n";
    let flags = format!("--key-regex order-([0-9]+) --last 100 {SURE}");
    let run = index(&flags, &state, log);
    run.code(0).says("the regular expression does not match");
    assert_eq!((run.count("indexed"), run.count("missing_key")), (2, 2));
    assert!(asked(&state, "--key 17") && asked(&state, "--range 4000..5000"));
    assert!(!asked(&state, "--range 18..4710"));
    let other = index(&format!("--last 100 {SURE}"), &state, log);
    other.code(1).says("key-regex: saved order-([0-9]+), asked default");
    // In a member, of which a list is text like any other.
    let rows = "{\"u\":\"/a/17?x\"}\n{\"u\":[\"/b/9?\"]}\n{\"u\":\"/c\"}\n";
    let ranges = folder.file("ranges", "17\n5..9\n");
    let watch = ["watch", "--ranges", &ranges, "--key", "u", "--key-regex", "/(?:a|b)/([0-9]+)"];
    let run = summed(&watch, rows);
    run.out("{\"u\":\"/a/17?x\"}\n{\"u\":[\"/b/9?\"]}\n");
    assert_eq!((run.count("inside"), run.count("missing_key")), (2, 1));
    for command in
        [&["index", "--last", "9", "--state", &state][..], &["watch", "--ranges", &ranges]]
    {
        lately(&[command, &["--key-regex", "(a)(b)"]].concat(), "").code(2).says("is one group");
    }
}

#[test]
fn numbers_of_the_last_records() {
    let folder = Folder::new();
    let state = folder.path("ids.index");
    let numbers: String = (0..1000).map(|n| format!("{}\n", n * 100)).collect();
    let run = index(&format!("--last 500 {SURE}"), &state, numbers);
    run.code(0)
        .out("")
        .says("1,000 records: 1,000 indexed, 0 late, 0 invalid, 0 missing key, 0 skewed");
    assert_eq!((run.count("read"), run.count("indexed")), (1000, 1000));
    assert!(asked(&state, "--key 99900"));
    assert!(asked(&state, "--range 99801..99900"));
    assert!(!asked(&state, "--range 99801..99899"));
    // The chance is one however small it is.
    assert!(!ask(&state, "--key 99900").text().contains("0.00e0"));
    // Far longer than planned: answered, with the chance that then holds.
    ask(&state, "--range 100000..").code(0).out("100000..\tperhaps\t1.00e0\n");
    // Within the window, and within a shorter one.
    assert!(asked(&state, "--range 50001..50100"));
    assert!(!asked(&state, "--range 40000..40099"), "700 records ago, past window and slack");
    assert!(asked(&state, "--range 99001..99100 --last 10"));
    assert!(!asked(&state, "--range 90000..90099 --last 10"));
    // Of several, one is enough.
    let run = ask(&state, "--key 1 --key 99900 --range 7..8");
    run.code(0);
    let lines: Vec<_> = run.text().lines().collect();
    assert_eq!(lines.len(), 3);
    assert_eq!([lines[0], lines[1]], ["7..8\tno\t0.00e0", "1\tno\t0.00e0"]);
    assert!(lines[2].starts_with("99900\tperhaps\t"));
    ask(&state, "--key 1 --quiet").code(1).out("");
    ask(&state, "--key 99900 -q").code(0).out("");
}

#[test]
fn times_expire_and_the_window_goes_on_after_a_restart() {
    let folder = Folder::new();
    let state = folder.path("state");
    let flags = format!("--key k --time t --time-format s --within 100s --slack 10s {SURE}");
    index(&flags, &state, "t,k\n1000,5\n1050,70\n").code(0);
    assert!(asked(&state, "--range 0..9") && asked(&state, "--range 60..79"));
    assert!(
        !asked(&state, "--range 0..9 --within 20s") && asked(&state, "--range 60..79 --within 20s")
    );
    index(&flags, &state, "t,k\n1115,300\n").code(0);
    assert!(!asked(&state, "--range 0..9"), "115 s ago");
    assert!(asked(&state, "--range 60..79") && asked(&state, "--range 250..350"));
    // Behind the clock by more than the window: late, not indexed.
    let run = index(&flags, &state, "t,k\n1000,900\n1116,901\n");
    run.code(0).says("1 record late");
    assert_eq!((run.count("late"), run.count("indexed")), (1, 1));
    assert!(!asked(&state, "--key 900") && asked(&state, "--key 901"));
    // With other keys or another window it is another index.
    let run = index(
        &format!("--key k --time t --time-format s --within 50s {SURE}"),
        &state,
        "t,k\n1,1\n",
    );
    run.code(1).says("other settings").says("window: saved 1m40s, asked 50s");
    // With another size it keeps the size it was begun with.
    index("--key k --time t --time-format s --within 100s --fpr 0.1", &state, "t,k\n1117,9\n")
        .code(0)
        .says("using the size and error rate stored in");
}

#[test]
fn every_record_is_in_one_class() {
    let folder = Folder::new();
    let state = folder.path("state");
    let [late, missing, invalid] = ["late", "missing", "invalid"].map(|name| folder.path(name));
    let input = "t,k\n1640995200,1\n1640995201,x\nnever,2\n1640995000,3\n1650995200,4\n1640995202,\n1640995203,6\n1640995204,-7\n";
    let run = index(
        &format!(
            "--key k --time t --within 100s --on-bad-time drop --late {late} --missing {missing} --invalid {invalid}"
        ),
        &state,
        input,
    );
    let classes =
        ["indexed", "missing_key", "invalid", "late", "skewed"].map(|name| run.count(name));
    assert_eq!(classes, [2, 3, 1, 1, 1], "{}", run.stderr);
    assert_eq!(run.count("read"), 8);
    run.says("`x` is not a whole number").says("looks like one of --key-format signed");
    assert_eq!(folder.read("late"), "t,k\n1640995000,3\n");
    assert_eq!(folder.read("missing"), "t,k\n1640995201,x\n1640995202,\n1640995204,-7\n");
    assert!(folder.read("invalid").contains("never,2"));
    let flags = "--key k --time t --within 100s --on-bad-time drop --strict";
    index(flags, &folder.path("other"), input).code(3);
}

#[test]
fn products_are_asked_for_in_any_spelling() {
    let folder = Folder::new();
    let state = folder.path("tags.index");
    let reads = "epc\n3074257BF7194E4000001A85\nMAgzst3ZAUAAAAAA\nb'e2801191a5030065f26ccbff'\n\
                 urn:epc:tag:sgtin-198:3.0614141.712345.32a%2Fb\n";
    index(&format!("--key epc --last 100 {SURE}"), &state, reads).code(0);
    for (question, perhaps) in [
        ("--prefix urn:epc:idpat:sgtin:0614141.812345.*", true),
        ("--prefix urn:epc:idpat:sgtin:0614141.712345.*", true),
        ("--prefix urn:epc:idpat:sgtin:0614141.812346.*", false),
        ("--prefix urn:epc:pat:sgtin-96:*.0614141.812345.*", true),
        ("--prefix urn:epc:pat:sgtin-96:*.0614141.712345.*", false),
        ("--prefix urn:epc:idpat:sgtin-96:0614141.712345.*", false),
        ("--prefix 3074257BF7194E4", true),
        ("--prefix 3074257BF7194E5*", false),
        ("--key urn:epc:tag:sgtin-96:3.0614141.812345.6789", true),
        ("--key urn:epc:id:sgtin:0614141.812345.6789", true),
        ("--key urn:epc:id:sgtin:0614141.812345.6790", false),
        ("--key 300833B2DDD9014000000000", true),
        ("--key 4oARkaUDAGXybMv/", true),
        ("--range 3074257BF7194E4000001A00..3074257BF7194E4000001AFF", true),
        ("--range 3074257BF7194E4000001B00..3074257BF7194E4000001BFF", false),
    ] {
        assert_eq!(asked(&state, question), perhaps, "{question}");
    }
    ask(&state, "--prefix urn:epc:class:lgtin:0614141.812345.L1")
        .code(2)
        .says("ask for the product");
}

/// Events of EPCIS name things, not tags, and several at a time.
#[test]
fn things_of_an_event_are_found_by_their_tags() {
    let folder = Folder::new();
    let state = folder.path("things.index");
    let event =
        |list: &str| format!("{{\"eventTime\":\"2022-01-01T00:00:00Z\",\"epcList\":{list}}}\n");
    let events =
        event("[\"urn:epc:id:sgtin:0614141.812345.6789\",\"urn:epc:id:sgtin:0614141.712345.a1\"]")
            + &event("[\"urn:epc:id:sscc:0614141.1234567890\"]")
            + &event("[\"urn:epc:id:sgtin:0614141.912345.1\",\"urn:epc:class:lgtin:1.2.3\"]")
            + &event("[]");
    let run = index(&format!("--format epcis --within 1h {SURE}"), &state, events);
    assert_eq!((run.count("indexed"), run.count("missing_key")), (2, 2), "{}", run.stderr);
    for (question, perhaps) in [
        ("--key 3074257BF7194E4000001A85", true),
        ("--key urn:epc:tag:sgtin-198:1.0614141.712345.a1", true),
        ("--key urn:epc:tag:sgtin-198:1.0614141.712345.a2", false),
        ("--prefix urn:epc:idpat:sscc:0614141.*", true),
        ("--prefix urn:epc:idpat:sgtin:0614141.812345.*", true),
        ("--prefix urn:epc:idpat:sgtin:0614141.912345.*", false),
    ] {
        assert_eq!(asked(&state, question), perhaps, "{question}");
    }
}

#[test]
fn blocks_of_addresses() {
    let folder = Folder::new();
    let state = folder.path("hosts.index");
    let log = "{\"a\":\"10.1.2.3\"}\n{\"a\":\"2001:db8::7\"}\n{\"a\":\"::ffff:192.168.0.9\"}\n{\"a\":17}\n";
    let run =
        index(&format!("--key a --key-format ip --last 100 --interval /8 {SURE}"), &state, log);
    run.code(0).says("`17` is not an address");
    for (question, perhaps) in [
        ("--prefix 10.1.0.0/16", true),
        ("--prefix 10.2.0.0/16", false),
        ("--prefix 10.1.2.3/32", true),
        ("--prefix 10.1.2.0/31", false),
        ("--prefix 192.168.0.0/24", true),
        ("--range 10.1.2.4..10.255.255.255", false),
        ("--key 2001:db8::7", true),
        ("--key 2001:db8::8", false),
        ("--key 192.168.0.9", true),
    ] {
        assert_eq!(asked(&state, question), perhaps, "{question}");
    }
    ask(&state, "--prefix 10.1.2.3/16").code(2).says("did you mean 10.1.0.0/16?");
    ask(&state, "--range 10.0.0.0/8").code(2).says("not A..B");
}

#[test]
fn signs_fractions_and_times() {
    let folder = Folder::new();
    let [signed, decimal, times] = ["signed", "decimal", "times"].map(|name| folder.path(name));
    index(&format!("--key-format signed --last 10 {SURE}"), &signed, "-5\n12\n").code(0);
    assert!(asked(&signed, "--range -9..-1") && !asked(&signed, "--range -4..11"));
    assert!(asked(&signed, "--key -5"));
    let run = format!("--key 2 --format columns --key-format decimal --last 10 {SURE}");
    index(&run, &decimal, "a -23.5505\nb 1e-3\n").code(0);
    assert!(asked(&decimal, "--range -23.6..-23.5") && !asked(&decimal, "--range -23.5..0.0009"));
    index(
        &format!("--key t --key-format time --last 10 {SURE}"),
        &times,
        "t\n1995-08-01T06:00:04Z\n",
    )
    .code(0);
    assert!(asked(&times, "--range 1995-08-01T06:00:00Z..1995-08-01T06:01:00Z"));
    assert!(!asked(&times, "--range 807256805..807260000"));
    // Midnight in Chicago is five hours after midnight.
    let hour = "--range 1995-08-01T01:00:00..1995-08-01T01:30:00";
    assert!(asked(&times, &format!("{hour} --time-zone America/Chicago")) && !asked(&times, hour));
}

#[test]
fn a_file_of_intervals() {
    let folder = Folder::new();
    let state = folder.path("state");
    index(&format!("--last 10 {SURE}"), &state, "5\n70\n").code(0);
    let list = folder.file("list", "\u{feff}# dealers\n1..9\n\n  70  \n80..90\r\n");
    let run = ask(&state, &format!("--ranges {list}"));
    run.code(0);
    let answers: Vec<_> =
        run.text().lines().map(|line| line.rsplit_once('\t').unwrap().0).collect();
    assert_eq!(answers, ["1..9\tperhaps", "70\tperhaps", "80..90\tno"]);
    let list = folder.file("list", "80..90\n100\n");
    ask(&state, &format!("--ranges {list}")).code(1).out("80..90\tno\t0.00e0\n100\tno\t0.00e0\n");
    let run = lately(&["ask", &state, "--ranges", "-"], "5\n");
    run.code(0);
    // What is wrong is said with its line, before anything is answered.
    for (text, words) in [
        ("5\n9..1\n", "list:2: 9..1: the first end is larger"),
        ("5\nx\n", "list:2: `x` is not a whole number"),
        ("# none\n", "has no interval in it"),
    ] {
        let list = folder.file("list", text);
        ask(&state, &format!("--ranges {list}")).code(2).out("").says(words);
    }
    ask(&state, &format!("--ranges {}", folder.path("nowhere"))).code(2).says("nowhere");
}

#[test]
fn what_cannot_be_asked_is_status_2() {
    let folder = Folder::new();
    let [state, timed, other] = ["state", "timed", "other"].map(|name| folder.path(name));
    index("--last 10", &state, "5\n").code(0);
    index("--within 10m", &timed, "5\n").code(0);
    dedup(&format!("--state {other}"), "a\n").code(0);
    for (state, question, words) in [
        (&state, "", "required"),
        (&state, "--key x", "--key: `x` is not a whole number"),
        (&state, "--range 5", "not A..B"),
        (&state, "--prefix 12", "only EPCs and addresses have prefixes"),
        (&state, "--key 5 --within 1m", "ask with --last"),
        (&state, "--key 5 --last 11", "only remembers the last 10 records"),
        (&timed, "--key 5 --last 1", "ask with --within"),
        (&timed, "--key 5 --within 11m", "only remembers 10m"),
        (&other, "--key 5", "not an index"),
        (&folder.path("none"), "--key 5", "no such file"),
    ] {
        ask(state, question).code(2).out("").says(words);
    }
    // By arrival: now is the time of day, and that was just now.
    assert!(asked(&timed, "--key 5 --within 9m"));
    let run = dedup(&format!("--state {state}"), "a\n");
    run.code(1).says("not a Lately state");
}

#[test]
fn a_damaged_index_is_refused_and_left_alone() {
    let folder = Folder::new();
    let state = folder.path("state");
    index("--last 10", &state, "5\n").code(0);
    let good = fs::read(&state).unwrap();
    for at in (0..good.len()).step_by(7) {
        let mut bytes = good.clone();
        bytes[at] ^= 16;
        fs::write(&state, &bytes).unwrap();
        index("--last 10", &state, "6\n").code(1).says(&state);
        assert_eq!(fs::read(&state).unwrap(), bytes, "it must not be overwritten");
        ask(&state, "--key 5").code(2).says(&state);
    }
    fs::write(&state, &good[..good.len() - 3]).unwrap();
    index("--last 10", &state, "6\n").code(1).says("cut off or damaged");
}

#[test]
fn usage_is_explained() {
    let folder = Folder::new();
    let state = folder.path("state");
    for (flags, words) in [
        ("", "--within <DURATION>|--last <COUNT>"),
        ("--last 10 --within 5s", "cannot be used with"),
        ("--last 0", "--last: must be more than 0"),
        ("--last 10 --key a,b", "`b` is a second one"),
        ("--last 10 --key-format hex", "known are number, signed, decimal, time, epc, ip"),
        ("--last 10 --interval many", "--interval: `many`: expected a length such as 1000"),
        ("--last 10 --interval /24", "--interval"),
        ("--last 10 --fpr 2", "--fpr"),
        ("--last 1M --memory 1k", "--memory"),
    ] {
        index(flags, &state, "1\n").code(2).says(words);
    }
    assert!(fs::metadata(&state).is_err());
    let run = lately(&["index", "--last", "10"], "");
    run.code(2).says("--state");
    index("--last 10", &folder.path("no/folder/state"), "1\n").code(1).says("no/folder/state");
}

#[test]
fn inspect_shows_an_index() {
    let folder = Folder::new();
    let state = folder.path("state");
    index("--key k --time t --within 10m --key-format signed", &state, "t,k\n1640995200,-4\n")
        .code(0);
    let run = lately(&["inspect", &state], "");
    run.code(0);
    for words in ["key-format=signed", "range-window", "2022-01-01", "10m", "1,000 keys"] {
        assert!(run.text().contains(words), "{words}: {}", run.text());
    }
    let run = lately(&["inspect", "--json", &state], "");
    let json: serde_json::Value = serde_json::from_str(run.text()).unwrap();
    assert_eq!(json["key_format"], "signed");
    assert_eq!(json["filter"]["structure"], "range-window");
}

#[test]
fn a_full_window_says_so() {
    let folder = Folder::new();
    let state = folder.path("state");
    let numbers: String = (0..100_000).map(|n| format!("{n}\n")).collect();
    let run = index("--within 1h --memory 100KiB", &state, &numbers);
    run.code(0).says("the window was full").says("allow more --memory");
    assert_eq!(run.count("indexed"), 100_000);
    assert_eq!(run.summary["filter"]["overloaded"], true);
    assert!(run.summary["filter"]["memory_bytes"].as_u64().unwrap() <= 100 << 10);
    let run = index("--within 1h --memory 100KiB", &state, &numbers);
    run.says("begin a new state with more --memory");
    // What was given up is no secret.
    assert!(ask(&state, "--key 1").stderr.contains("was full"));
    let run = lately(&["inspect", &state], "");
    assert!(
        !run.text().contains(", 0 keys forgotten early, 0 keys not remembered"),
        "{}",
        run.text()
    );
}

#[test]
fn more_keys_than_expected_are_told() {
    let folder = Folder::new();
    let numbers: String = (0..20_000).map(|n| format!("{}\n", n * 1_000)).collect();
    let arguments = "--within 1h --fpr 0.01 --interval 100";
    let run = index(arguments, &folder.path("enough"), &numbers);
    run.code(0);
    assert!(!run.stderr.contains("--expect"), "{}", run.stderr);
    let run = index(&format!("{arguments} --expect 1k"), &folder.path("few"), &numbers);
    run.code(0).says("more keys than expected").says("a larger --expect");
    // Twenty times as many keys take more tables, and the rate is what was asked for, as an answer says.
    let answer = ask(&folder.path("few"), "--range 1000..1099");
    let rate: f64 = answer.text().trim().rsplit('\t').next().unwrap().parse().unwrap();
    assert!((0.005..=0.01).contains(&rate), "{rate}");
}

#[cfg(unix)]
#[test]
fn a_live_stream_is_saved_when_asked_and_at_the_end() {
    let folder = Folder::new();
    let state = folder.path("state");
    let mut live = Live::start(&["index", "--last", "10", "--fpr", "1e-9", "--state", &state]);
    live.send("5\n");
    // One cannot see when it has been read; the signal is repeated until it was.
    let started = std::time::Instant::now();
    while ask(&state, "--key 5 -q").code != 0 {
        assert!(started.elapsed() < PATIENT);
        live.signal("USR1");
        std::thread::sleep(Duration::from_millis(30));
    }
    live.send("6\n");
    std::thread::sleep(Duration::from_millis(200));
    index("--last 10", &state, "7\n").code(1).says("in use by another lately");
    live.signal("TERM");
    let (code, stderr) = live.wait();
    assert_eq!(code, 0, "{stderr}");
    assert!(asked(&state, "--range 6..6"));
}

/// A stream with times against a sorted map, at the end of each of several runs.
#[test]
fn no_key_of_the_window_is_ever_denied() {
    let folder = Folder::new();
    let state = folder.path("state");
    let mut random = 7_u64;
    let mut next = |below: u64| {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    let mut now = 1_640_995_200;
    let (mut wrong, mut empty) = (0_u64, 0_u64);
    for _ in 0..6 {
        let mut input = "t,k\n".to_owned();
        for _ in 0..2_000 {
            now += next(3) / 2;
            // Runs of numbers, as tags have them.
            let key = next(40) * 1_000_000 + next(300);
            last.insert(key, now);
            input += &format!("{now},{key}\n");
        }
        let flags =
            "--key k --time t --within 200s --slack 20s --fpr 0.01 --interval 100 --expect 500";
        index(flags, &state, &input).code(0);
        let questions: Vec<(u64, u64)> =
            (0..1_000).map(|_| (next(40) * 1_000_000 + next(600), next(100))).collect();
        let list: String =
            questions.iter().map(|(from, more)| format!("{from}..{}\n", from + more)).collect();
        let list = folder.file("list", list);
        for within in [200, 50] {
            let run = ask(&state, &format!("--ranges {list} --within {within}s"));
            assert_eq!(run.text().lines().count(), questions.len());
            for (line, &(from, more)) in run.text().lines().zip(&questions) {
                let youngest = last.range(from..=from + more).map(|(_, &seen)| now - seen).min();
                let perhaps = line.contains("\tperhaps\t");
                assert!(perhaps || youngest.is_none_or(|age| age > within), "{line}: {youngest:?}");
                if youngest.is_none_or(|age| age > within + 20) {
                    empty += 1;
                    wrong += u64::from(perhaps);
                }
            }
        }
    }
    // 1 %, and five standard deviations.
    assert!(empty > 2_000, "{empty}");
    let bound = 0.01 * empty as f64 + 5.0 * (0.01 * empty as f64).sqrt();
    assert!((wrong as f64) < bound, "{wrong} of {empty}");
}
