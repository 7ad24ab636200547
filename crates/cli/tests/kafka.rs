//! Kafka in the place of files, with the cluster that librdkafka has for tests and a client of its own. What a run makes of
//! the messages of a topic is what it makes of a file of them; after crashes nothing is missing, and what repeats says so.
#![cfg(feature = "kafka")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "support/kafka.rs"]
mod cluster;
#[path = "support/reads.rs"]
mod reads;
mod support;

use cluster::{Cluster, Gathered};
use reads::{
    SOON, arguments, certificate, end, free_port, kills, of_file, random, reads, refuse, start,
};
use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};
use support::{Folder, lately};

/// Messages that may be unacknowledged in these tests.
const INFLIGHT: usize = 100;

/// Records by the ids that they were published with, the first of each.
fn first_of_each(gathered: &[Gathered]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let is_new = |one: &&Gathered| seen.insert(one.header("lately-id").unwrap().to_owned());
    gathered.iter().filter(is_new).map(|one| one.line.clone()).collect()
}

/// What `clean` has, once it has so many different records.
fn gathered(cluster: &Cluster, count: usize) -> Vec<Gathered> {
    let mut gathered = cluster.client.gathered("clean", count);
    let begun = Instant::now();
    while first_of_each(&gathered).len() < count && begun.elapsed() < SOON {
        gathered = cluster.client.gathered("clean", gathered.len());
    }
    gathered
}

/// Thousands of lines are not to be printed.
#[track_caller]
fn same(found: &[String], expected: &[String], said: &str) {
    let differs = found.iter().zip(expected).position(|(one, other)| one != other);
    assert_eq!((found.len(), differs), (expected.len(), None), "{said}");
}

/// A line that no file has.
fn another(number: usize) -> String {
    format!("another.example\t-\t{}\tGET\t/{number}\t200\t1\t\t", 807_270_000 + number)
}

#[test]
fn a_real_file_through_a_topic_is_what_the_file_is() {
    let cluster = Cluster::start();
    let (file, lines) = reads(&cluster.folder, 3_000);
    let expected = of_file(&file);
    assert!(expected.len() < lines.len() && expected.len() > lines.len() / 10);
    let state = cluster.folder.path("state");
    for (name, more) in [("plain", vec![]), ("saved", vec!["--state", state.as_str()])] {
        let raw = format!("raw-{name}");
        cluster.topic(&raw, 1);
        cluster.topic(name, 1);
        cluster.publish(&raw, &lines, None);
        let input = cluster.address(&raw);
        let output = cluster.address(name);
        let all = arguments(&[&[input.as_str(), "-o", &output], &more[..]].concat());
        let mut run = start(&all);
        same(&cluster.lines(name, expected.len()), &expected, name);
        end(&mut run);
        // All of it was committed: only what is new comes.
        let mut run = start(&all);
        cluster.publish(&raw, &[another(1)], None);
        let more = [expected.clone(), vec![another(1)]].concat();
        same(&cluster.lines(name, more.len()), &more, name);
        end(&mut run);
    }
}

/// A group that is to begin with what is new has all that is published from its first start on, also while it is away.
#[test]
fn what_is_new_is_not_missed() {
    let cluster = Cluster::start();
    cluster.topic("raw", 2);
    cluster.topic("clean", 1);
    let (one, other) = (another(1), another(2));
    cluster.publish("raw", &[another(3), another(4)], None);
    let (input, output) = (cluster.address("raw?from=new"), cluster.address("clean"));
    let all = arguments(&[&input, "-o", &output]);
    let mut run = start(&all);
    // Nobody tells when it has the partitions; what comes before is not for it.
    sleep(Duration::from_secs(10));
    end(&mut run);
    cluster.publish("raw", &[one.clone(), other.clone()], None);
    let mut run = start(&all);
    let mut lines = cluster.lines("clean", 2);
    lines.sort();
    assert_eq!(lines, [one, other]);
    end(&mut run);
}

/// Killed while it works, a run leaves in the topic what it leaves without crashes, and beyond that only repeats, of what
/// was in flight, that have the ids they had.
#[test]
fn a_run_that_is_killed_leaves_each_record() {
    const PORTION: usize = 600;
    let cluster = Cluster::start();
    let count = kills("LATELY_KILLS", 2);
    let (file, lines) = reads(&cluster.folder, PORTION * (count + 1));
    let expected = of_file(&file);
    cluster.topic("raw", 1);
    cluster.topic("clean", 1);
    let state = cluster.folder.path("state");
    let input = cluster.address(&format!("raw?inflight={INFLIGHT}"));
    let output = cluster.address("clean");
    let all = arguments(&[&input, "-o", &output, "--state", &state]);
    let mut run = start(&all);
    for portion in lines.chunks(PORTION).take(count) {
        let client = cluster.client.clone();
        let before = cluster.lines("clean", 0).len();
        thread::scope(|scope| {
            scope.spawn(|| client.publish("raw", portion, None, Duration::from_millis(1)));
            cluster.client.wait_for("clean", before + 1);
            sleep(Duration::from_millis(random(0..500)));
            run.kill();
        });
        run = start(&all);
    }
    cluster.publish("raw", lines.get(PORTION * count..).unwrap_or_default(), None);
    let gathered = gathered(&cluster, expected.len());
    let said = end(&mut run);
    let repeats = gathered.len() - expected.len();
    println!("killed {count} times: {} records, {repeats} repeats; {said}", expected.len());
    same(&first_of_each(&gathered), &expected, &said);
    assert!(repeats <= count * INFLIGHT, "{repeats} repeats");
}

#[test]
fn a_cluster_that_is_away_loses_nothing_and_repeats_nothing() {
    let cluster = Cluster::start();
    let count = kills("LATELY_BROKER_KILLS", 2);
    let (file, lines) = reads(&cluster.folder, 500 * count);
    let expected = of_file(&file);
    cluster.topic("raw", 1);
    cluster.topic("clean", 1);
    let state = cluster.folder.path("state");
    let (input, output) = (cluster.address("raw"), cluster.address("clean"));
    let all = arguments(&[&input, "-o", &output, "--state", &state]);
    let mut run = start(&all);
    let (first, others) = lines.split_at(10);
    cluster.publish("raw", first, None);
    cluster.client.wait_for("clean", 1);
    let client = cluster.client.clone();
    thread::scope(|scope| {
        scope.spawn(|| client.publish("raw", others, None, Duration::from_millis(3)));
        for _ in 0..count {
            sleep(Duration::from_millis(random(200..1_000)));
            cluster.away(Duration::from_millis(random(100..1_500)));
        }
    });
    let gathered = cluster.lines("clean", expected.len());
    let said = end(&mut run);
    println!("cluster away {count} times: {} records; {said}", expected.len());
    same(&gathered, &expected, &said);
}

/// Two processes of one group share the partitions. One that comes or goes in good order costs nothing: what it had of them
/// is dealt with before the other begins. Where the group takes one for gone, as may be on a busy machine, that one says so.
#[test]
fn partitions_are_handed_on() {
    const ALL: usize = 5_000;
    let cluster = Cluster::start();
    cluster.topic("raw", 4);
    cluster.topic("clean", 2);
    let lines: Vec<String> = (0..ALL).map(|number| format!("record {number}")).collect();
    let (input, output) = (cluster.address("raw?group=both"), cluster.address("clean"));
    let all = ["dedup", input.as_str(), "-o", &output];
    let mut first = start(&all);
    let (some, others) = lines.split_at(40);
    cluster.publish("raw", some, None);
    cluster.client.wait_for("clean", 40);
    // It has all partitions; from here on both take turns in them.
    let mut second = start(&all);
    let client = cluster.client.clone();
    thread::scope(|scope| {
        scope.spawn(|| client.publish("raw", others, None, Duration::from_millis(7)));
        // This cluster takes nine seconds to share out again, and does it twice. One ends before, in or after that.
        sleep(Duration::from_millis(random(5_000..30_000)));
        end(&mut first);
    });
    let gathered = gathered(&cluster, ALL);
    let said = end(&mut second);
    // The end of a run tells how much it forwarded.
    let fresh = |said: &str| {
        let words: Vec<_> = said.split_whitespace().collect();
        let at = words.iter().position(|word| word.starts_with("fresh")).unwrap();
        words[at - 1].replace(',', "").parse::<usize>().unwrap()
    };
    let shares = [fresh(&first.said()), fresh(&said)];
    println!("forwarded: {shares:?}");
    assert!(shares.iter().all(|share| *share > 0), "{}\n{said}", first.said());
    let said = format!("{}\n{said}", first.said());
    if !said.contains("delivered again") {
        assert_eq!(gathered.len(), ALL, "{said}");
    }
    let mut found = first_of_each(&gathered);
    found.sort();
    let mut expected = lines;
    expected.sort();
    same(&found, &expected, &said);
}

#[test]
fn what_surrounds_a_message_is_a_field_and_dead_letters_say_why() {
    let cluster = Cluster::start();
    for topic in ["dock.1", "clean-dock.1-0", "twice", "dead"] {
        cluster.topic(topic, 1);
    }
    let lines = [
        r#"{"tag":"a","t":"2025-01-01T00:00:00Z"}"#,
        r#"{"tag":"a","t":"2025-01-01T00:00:01Z"}"#,
        "nonsense",
        r#"[{"tag":"d","t":"2025-01-01T00:00:04Z"},{"tag":"e","t":"2025-01-01T00:00:05Z"}]"#,
    ];
    let lines = lines.map(str::to_owned);
    cluster.publish("dock.1", &lines, Some("north"));
    let address = |path: &str| cluster.address(path);
    let mut run = start(&[
        "dedup",
        "--format",
        "json",
        "--key",
        "@topic,@partition,@key,tag",
        "--time",
        "t",
        "--within",
        "10s",
        &address("dock.1"),
        "-o",
        &address("clean-{@topic}-{@partition}"),
        "--duplicates",
        &address("twice?key={@header.n}"),
        "--invalid",
        &address("dead"),
    ]);
    let clean = cluster.client.gathered("clean-dock.1-0", 3);
    let (twice, dead) = (cluster.client.gathered("twice", 1), cluster.client.gathered("dead", 1));
    end(&mut run);
    let tags: Vec<_> = clean.iter().map(|one| one.line.get(8..9).unwrap()).collect();
    assert_eq!(tags, ["a", "d", "e"]);
    assert!(clean.iter().all(|one| one.key.as_deref() == Some("north")));
    assert!(clean.iter().all(|one| one.header("lately-class").is_none()));
    let ids: BTreeSet<_> = clean.iter().map(|one| one.header("lately-id").unwrap()).collect();
    assert_eq!(ids.len(), 3);
    assert_eq!(twice[0].key.as_deref(), Some("1"));
    assert_eq!(twice[0].header("lately-class"), Some("duplicate"));
    let dead = &dead[0];
    assert_eq!((dead.line.as_str(), dead.header("lately-class")), ("nonsense", Some("invalid")));
    assert_eq!(dead.header("lately-topic"), Some("dock.1"));
    assert!(dead.header("lately-reason").is_some());
}

#[test]
fn what_cannot_be_is_told_clearly() {
    let cluster = Cluster::start();
    cluster.topic("raw", 1);
    let address = |path: &str| cluster.address(path);
    let line = cluster.folder.file("line", "a\n");
    refuse(&["dedup", &address("")], 2, &["no topic"]);
    refuse(&["dedup", &address("a/b")], 2, &["not a valid name of a Kafka topic"]);
    refuse(&["dedup", &address("raw?consumer=x")], 2, &["no parameter `consumer`", "group"]);
    refuse(&["dedup", &address("raw"), &line], 2, &["read alone"]);
    refuse(&["dedup", &address("raw?mechanism=x")], 2, &["mechanism", "SCRAM-SHA-512"]);
    refuse(&["dedup", "kafka://ann:pw@localhost/raw"], 2, &["--password-file"]);
    refuse(&["dedup", &line, "-o", &address("a b")], 2, &["not a valid name of a Kafka topic"]);
    refuse(&["dedup", &line, "-o", &address("raw?key={x}")], 2, &["@key"]);
    // Each of these is patient for ten seconds.
    let nobody = "kafka://127.0.0.1:1/raw";
    thread::scope(|scope| {
        scope.spawn(|| refuse(&["dedup", &line, "-o", nobody], 1, &["cannot be reached"]));
        refuse(&["dedup", nobody], 1, &["cannot be reached", "onnection refused"]);
    });
}

/// A broker with a certificate of an authority of its own is trusted only where that is named.
#[test]
fn certificates_are_checked() {
    let folder = Folder::new();
    let Some((key, certificate)) = certificate(&folder) else { return };
    let port = free_port();
    // It speaks TLS, and that is as far as these runs get.
    let accept = port.to_string();
    let server = Command::new("openssl")
        .args(["s_server", "-quiet", "-accept", &accept, "-key", &key, "-cert", &certificate])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let _server = reads::Killed(server.unwrap());
    let named = format!("kafka+tls://localhost:{port}/raw");
    refuse(&["dedup", &named], 1, &["authority that is not trusted", "--ca"]);
    let trusted = lately(&["dedup", &named, "--ca", &certificate], "");
    trusted.code(1);
    assert!(!trusted.stderr.contains("certificate"), "{}", trusted.stderr);
}
