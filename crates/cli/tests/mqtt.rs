//! MQTT brokers in the place of files, with a real mosquitto and independent clients (paho). What a run makes of
//! messages is what it makes of a file of them; what a crash repeats is counted.
#![cfg(feature = "mqtt")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "support/mqtt.rs"]
mod broker;
#[path = "support/reads.rs"]
mod reads;
mod support;

use broker::Broker;
use reads::{
    Killed, SOON, arguments, certificate, end, kills, of_file, random, reads, refuse, start,
};
use std::collections::{BTreeMap, BTreeSet};
use std::thread::sleep;
use std::time::Duration;
use support::{Folder, lately};

/// Messages that may be unacknowledged in these tests: what a crash may repeat.
const INFLIGHT: usize = 100;

#[test]
fn a_real_file_through_a_broker_is_what_the_file_is() {
    let Some(broker) = Broker::start("") else { return };
    let (file, lines) = reads(&broker.folder, 8_000);
    let expected = of_file(&file);
    assert!(expected.len() < lines.len() && expected.len() > lines.len() / 10);
    let state = broker.folder.path("state");
    for (name, more) in [("plain", vec![]), ("saved", vec!["--state", state.as_str()])] {
        let output = broker.address(&format!("clean/{name}"));
        let input = broker.address(&format!("raw/{name}/#"));
        let all = arguments(&[&[input.as_str(), "-o", &output], &more[..]].concat());
        let _collector = broker.collect(&format!("clean/{name}"), name, &[]);
        let mut run = start(&all);
        broker.publish(&format!("raw/{name}/a"), &file);
        assert_eq!(broker.gathered(name, expected.len()), expected, "{name}");
        end(&mut run);
        // All of it was acknowledged: nothing comes again.
        let mut run = start(&all);
        sleep(Duration::from_millis(500));
        end(&mut run);
        assert_eq!(broker.gathered(name, 0).len(), expected.len(), "{name}");
    }
}

/// How many of those gathered came again; checks that they are those expected otherwise.
fn repeats(gathered: &[String], expected: &[String]) -> usize {
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    expected.iter().for_each(|line| *counts.entry(line).or_default() -= 1);
    gathered.iter().for_each(|line| *counts.entry(line).or_default() += 1);
    let missing: Vec<_> = counts.iter().filter(|(_, count)| **count < 0).collect();
    assert!(missing.is_empty(), "lost: {missing:?}");
    let known: BTreeSet<_> = expected.iter().collect();
    let strangers = gathered.iter().filter(|line| !known.contains(line)).count();
    assert_eq!(strangers, 0, "forwarded although they are duplicates");
    gathered.len() - expected.len()
}

#[test]
fn a_run_that_is_killed_loses_nothing_and_repeats_little() {
    let Some(broker) = Broker::start("") else { return };
    let count = kills("LATELY_KILLS", 4);
    let (file, _) = reads(&broker.folder, 800 * count);
    let expected = of_file(&file);
    let state = broker.folder.path("state");
    let input = broker.address(&format!("raw/#?client=killed&inflight={INFLIGHT}"));
    let output = broker.address("clean");
    let _collector = broker.collect("clean", "clean", &[]);
    let all = arguments(&[&input, "-o", &output, "--state", &state]);
    let mut run = start(&all);
    let mut publisher = broker.publishing("raw/a", &file, "0.0005");
    for _ in 0..count {
        sleep(Duration::from_millis(random(20..600)));
        run.kill();
        run = start(&all);
    }
    assert!(publisher.wait().unwrap().success());
    // Repeats are lines, too.
    let distinct = |lines: &[String]| lines.iter().collect::<BTreeSet<_>>().len();
    let (started, wanted) = (std::time::Instant::now(), distinct(&expected));
    while distinct(&broker.gathered("clean", expected.len())) < wanted && started.elapsed() < SOON {
        sleep(Duration::from_millis(50));
    }
    sleep(Duration::from_millis(500));
    let said = end(&mut run);
    let repeated = repeats(&broker.gathered("clean", 0), &expected);
    println!("killed {count} times: {} records, {repeated} repeated", expected.len());
    assert!(repeated <= count * INFLIGHT, "{repeated} repeated in {count} crashes\n{said}");
}

/// The key of a line of a log, as the runs of these tests take it. The file covers less than the window of an hour, so each
/// key is fresh once.
fn key(line: &str) -> String {
    let fields: Vec<_> = line.split('\t').collect();
    [fields[0], fields[4]].join("\t")
}

/// The broker of the input is killed; that of the output is ended, as mosquitto confirms messages a moment before it has
/// saved them, and what it loses in that moment nobody can send again.
///
/// What the broker of the input loses in that moment comes again after later records of the same keys, and is their
/// duplicate. So each key comes out, but not always by its first record.
#[test]
fn brokers_that_are_killed_or_ended_lose_nothing() {
    let Some(mut broker) = Broker::start(broker::ON_DISK) else { return };
    let Some(mut clean) = Broker::start(broker::ON_DISK) else { return };
    let (file, lines) = reads(&broker.folder, 600);
    let expected: Vec<_> = of_file(&file).iter().map(|line| key(line)).collect();
    let state = broker.folder.path("state");
    let (input, output) = (
        broker.address(&format!("raw/#?client=stays&inflight={INFLIGHT}")),
        clean.address("clean"),
    );
    let _collector = clean.collect("clean", "clean", &[]);
    let mut run = start(&arguments(&[&input, "-o", &output, "--state", &state]));
    let count = kills("LATELY_BROKER_KILLS", 2);
    for _ in 0..count {
        let _publisher = Killed(broker.publishing("raw/a", &file, "0.0005"));
        sleep(Duration::from_millis(random(200..1_500)));
        broker.kill();
        sleep(Duration::from_millis(random(0..500)));
        clean.end();
        sleep(Duration::from_millis(1_000));
    }
    // The source sends at least once; what the broker lost of that with its memory comes again.
    broker.publish("raw/a", &file);
    let started = std::time::Instant::now();
    let mut gathered = clean.gathered("clean", expected.len());
    let keys = |lines: &[String]| lines.iter().map(|line| key(line)).collect::<BTreeSet<_>>().len();
    while keys(&gathered) < expected.len() && started.elapsed() < SOON {
        sleep(Duration::from_millis(100));
        gathered = clean.gathered("clean", 0);
    }
    let said = end(&mut run);
    assert!(said.contains("connected again"), "{said}");
    assert!(gathered.iter().all(|line| lines.contains(line)), "it sent something else");
    let gathered: Vec<_> = gathered.iter().map(|line| key(line)).collect();
    let repeated = repeats(&gathered, &expected);
    println!("brokers killed {count} times: {} records, {repeated} repeated", expected.len());
    // What was on its way to a broker when it ended: far less than the duplicates that were published.
    assert!(repeated <= 2 * count * INFLIGHT && 2 * INFLIGHT < lines.len(), "{repeated}\n{said}");
}

#[test]
fn what_surrounds_a_message_is_a_field_and_dead_letters_say_why() {
    let Some(broker) = Broker::start("") else { return };
    let folder = &broker.folder;
    let lines = r#"{"tag":"a","t":"2025-01-01T00:00:00Z"}
{"tag":"a","t":"2025-01-01T00:00:01Z"}
{"tag":"b","t":"2025-01-01T00:00:02Z"}
{"tag":"a","t":"2025-01-01T00:00:03Z"}
nonsense
{"tag":"c","t":"2024-01-01T00:00:00Z"}
[{"tag":"d","t":"2025-01-01T00:00:04Z"},{"tag":"e","t":"2025-01-01T00:00:05Z"}]
"#;
    let file = folder.file("lines", lines);
    let collectors = ["clean/#", "twice", "late", "dead"];
    let _collectors =
        collectors.map(|filter| broker.collect(filter, &filter[..4], &["properties"]));
    let address = |path: &str| broker.address(path);
    let mut run = start(&[
        "dedup",
        "--format",
        "json",
        "--key",
        "@topic,@header.site,tag",
        "--time",
        "t",
        "--within",
        "10s",
        &address("dock/+"),
        "-o",
        &address("clean/{@topic}/{@header.site}"),
        "--duplicates",
        &address("twice"),
        "--late",
        &address("late"),
        "--invalid",
        &address("dead"),
    ]);
    broker.publish("dock/{n}", &file);
    let clean = broker.gathered("clea", 5);
    let expected = [
        r#"{"site": "north", "topic": "clean/dock/0/north"}	{"tag":"a","t":"2025-01-01T00:00:00Z"}"#,
        r#"{"site": "north", "topic": "clean/dock/1/north"}	{"tag":"a","t":"2025-01-01T00:00:01Z"}"#,
        r#"{"site": "north", "topic": "clean/dock/2/north"}	{"tag":"b","t":"2025-01-01T00:00:02Z"}"#,
        r#"{"site": "north", "topic": "clean/dock/0/north"}	{"tag":"d","t":"2025-01-01T00:00:04Z"}"#,
        r#"{"site": "north", "topic": "clean/dock/0/north"}	{"tag":"e","t":"2025-01-01T00:00:05Z"}"#,
    ];
    assert_eq!(clean, expected);
    assert_eq!(
        broker.gathered("twic", 1),
        [
            r#"{"lately-class": "duplicate", "site": "north", "topic": "twice"}	{"tag":"a","t":"2025-01-01T00:00:03Z"}"#
        ]
    );
    assert_eq!(
        broker.gathered("late", 1),
        [
            r#"{"lately-class": "late", "site": "north", "topic": "late"}	{"tag":"c","t":"2024-01-01T00:00:00Z"}"#
        ]
    );
    let dead = broker.gathered("dead", 1);
    assert!(
        dead[0].ends_with("\tnonsense") && dead[0].contains(r#""lately-topic": "dock/1""#),
        "{dead:?}"
    );
    assert!(
        dead[0].contains(r#""lately-class": "invalid""#) && dead[0].contains("lately-reason"),
        "{dead:?}"
    );
    end(&mut run);
}

#[test]
fn the_best_of_a_burst_of_rfid_reads() {
    let Some(broker) = Broker::start("") else { return };
    let read = |second: u32, tag: &str, rssi: i32| {
        format!(
            r#"{{"timestamp":"2025-01-01T00:00:{second:02}Z","eventType":"tagInventory","tagInventoryEvent":{{"epcHex":"{tag}","antennaPort":1,"peakRssiCdbm":{rssi}}}}}"#
        )
    };
    let tag = "3034257BF461A80000000001";
    let lines = [
        read(0, tag, -6000),
        read(1, tag, -4500),
        read(1, tag, -5000),
        read(9, "3034257BF461A80000000002", -5500),
        read(20, "3034257BF461A80000000003", -5500),
    ];
    let file = broker.folder.file("lines", lines.join("\n") + "\n");
    let _collector = broker.collect("clean", "clean", &[]);
    let state = broker.folder.path("state");
    let mut run = start(&[
        "dedup",
        "--within",
        "5s",
        "--best",
        "rssi:max",
        "--hold",
        "2s",
        "--state",
        &state,
        &broker.address("reads/+"),
        "-o",
        &broker.address("clean"),
    ]);
    broker.publish("reads/{n}", &file);
    let best = [lines[1].clone(), lines[3].clone(), lines[4].clone()];
    assert_eq!(broker.gathered("clean", 3), best);
    end(&mut run);
}

#[test]
fn visits_indexes_and_watched_intervals_read_brokers() {
    let Some(broker) = Broker::start("") else { return };
    let read =
        |second: u32, tag: u32| format!(r#"{{"t":"2025-01-01T00:00:{second:02}Z","tag":{tag}}}"#);
    let lines: Vec<_> =
        [(0, 1), (2, 1), (3, 2), (20, 3), (40, 3)].map(|(second, tag)| read(second, tag)).into();
    let file = broker.folder.file("lines", lines.join("\n") + "\n");
    let _rows = broker.collect("visits", "visits", &[]);
    let _inside = broker.collect("inside", "inside", &[]);
    let (state, index) = (broker.folder.path("state"), broker.folder.path("index"));
    let ranges = broker.folder.file("ranges", "2..2\n");
    let (input, visits) = (broker.address("reads"), broker.address("visits"));
    let mut all = [
        start(&[
            "visits", "--format", "ndjson", "--key", "tag", "--time", "t", "--within", "5s",
            &input, "-o", &visits, "--state", &state, "--to", "ndjson",
        ]),
        start(&[
            "index", "--format", "ndjson", "--key", "tag", "--last", "10", &input, "--state",
            &index,
        ]),
        start(&[
            "watch",
            "--format",
            "ndjson",
            "--key",
            "tag",
            "--ranges",
            &ranges,
            &input,
            "-o",
            &broker.address("inside"),
        ]),
    ];
    broker.publish("reads", &file);
    let rows = broker.gathered("visits", 2);
    assert!(rows[0].contains(r#""reads":2"#) || rows[1].contains(r#""reads":2"#), "{rows:?}");
    assert_eq!(broker.gathered("inside", 1), lines[2..3]);
    all.iter_mut().for_each(|run| drop(end(run)));
    lately(&["ask", &index, "--range", "2..2"], "").code(0);
    lately(&["ask", &index, "--range", "7..9"], "").code(1);
}

/// A broker with a certificate of an authority of its own: it is trusted only where that is named, and under its own name.
fn refuse_certificates(folder: &Folder) {
    let Some((key, certificate)) = certificate(folder) else { return };
    let settings = format!("keyfile {key}\ncertfile {certificate}");
    let Some(broker) = Broker::start_alone(&settings) else { return };
    let port = broker.port;
    let [named, numbered] =
        ["localhost", "127.0.0.1"].map(|host| format!("mqtts://{host}:{port}/a"));
    let input = folder.file("line", "a\n");
    refuse(&["dedup", &input, "-o", &named], 1, &["authority that is not trusted", "--ca"]);
    let other = ["dedup", &input, "-o", &numbered, "--ca", &certificate];
    refuse(&other, 1, &["certificate is for another host"]);
    lately(&["dedup", &input, "-o", &named, "--ca", &certificate], "").code(0);
}

#[test]
fn what_cannot_be_is_told_clearly() {
    let secret = Folder::new();
    let Some(plain) = Broker::start_alone("") else { return };
    let passwords = secret.path("passwords");
    secret.file("acl", "user ann\ntopic read in/#\ntopic write out\ntopic read out2\n");
    let made = std::process::Command::new("mosquitto_passwd")
        .args(["-c", "-b", &passwords, "ann", "secret"])
        .status();
    let address = |path: &str| plain.address(path);
    refuse(&["dedup", &address("a"), "-o", &address("b/#")], 2, &["published to one topic"]);
    refuse(&["dedup", &address("a#")], 2, &["`#` stands alone"]);
    refuse(&["dedup", &address("")], 2, &["no topic"]);
    refuse(&["dedup", &address("a"), "file"], 2, &["read alone"]);
    refuse(&["dedup", &address("a?qos=2")], 2, &["no parameter `qos`", "client, expiry, inflight"]);
    refuse(&["dedup", "mqtt://ann:pw@localhost/a"], 2, &["--password-file"]);
    refuse(&["dedup", "mqtt://localhost:99999/a"], 2, &["a port is a number"]);
    refuse(
        &["dedup", "--within", "5s", "--best", "x:max", "--hold", "1s", &address("a")],
        2,
        &["--state"],
    );
    refuse(&["dedup", "--user", "ann", "--ca", "/no/such", &address("a")], 2, &["--ca /no/such"]);
    // Those that nobody answers are patient for ten seconds.
    let (nobody, unanswered) = ("mqtt://127.0.0.1:1/a", address("a").replace("mqtt:", "mqtts:"));
    std::thread::scope(|scope| {
        scope.spawn(|| refuse(&["dedup", nobody], 1, &["cannot be reached", "onnection refused"]));
        scope.spawn(|| refuse(&["dedup", &unanswered], 1, &["TLS"]));
        refuse_certificates(&secret);
    });
    // A broker that takes messages of 1,000 bytes.
    let Some(small) = Broker::start_alone("max_packet_size 1000") else { return };
    let long = secret.file("long", "x".repeat(2_000) + "\n");
    let output = small.address("out");
    refuse(&["dedup", &long, "-o", &output], 1, &["2000 bytes", "1000 at most", "--max-line"]);
    refuse(
        &["dedup", &long, "-o", &output, "--max-line", "500", "--invalid", &secret.path("dead")],
        1,
        &["no record could be read"],
    );
    if !made.is_ok_and(|status| status.success()) {
        println!("skipped in part: no mosquitto_passwd");
        return;
    }
    let _ = std::process::Command::new("chmod").args(["-R", "a+rX", &secret.path("")]).status();
    let settings = format!("password_file {passwords}\nacl_file {}", secret.path("acl"));
    let Some(closed) = Broker::start_alone(&settings) else { return };
    let address = |path: &str| closed.address(path).replace("mqtt://", "mqtt://ann@");
    let password = secret.file("password", "secret\n");
    let wrong = secret.file("wrong", "other\n");
    refuse(&["dedup", &closed.address("in")], 1, &["refuses the connection", "not authorized"]);
    refuse(&["dedup", &address("in"), "--password-file", &wrong], 1, &["refuses the connection"]);
    refuse(
        &["dedup", &long, "-o", &address("other"), "--password-file", &password],
        1,
        &["not authorized to publish"],
    );
    // And one that may do it.
    lately(&["dedup", &long, "-o", &address("out"), "--password-file", &password], "").code(0);
}
