//! NATS JetStream in the place of files, with a real nats-server and independent clients (nats-py). What a run makes of the
//! messages of a stream is what it makes of a file of them, also after crashes, as the server drops what comes again.
#![cfg(feature = "nats")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "support/reads.rs"]
mod reads;
#[path = "support/nats.rs"]
mod server;
mod support;

use reads::{SOON, arguments, certificate, end, kills, of_file, random, reads, refuse, start};
use server::Server;
use std::thread::{self, sleep};
use std::time::Duration;
use support::{Folder, lately};

/// Messages that may be unacknowledged in these tests.
const INFLIGHT: usize = 100;

#[test]
fn a_real_file_through_a_stream_is_what_the_file_is() {
    let Some(server) = Server::start() else { return };
    let (file, lines) = reads(&server.folder, 3_000);
    let expected = of_file(&file);
    assert!(expected.len() < lines.len() && expected.len() > lines.len() / 10);
    server.stream("RAW", &["raw.>"]);
    server.publish("raw.a", &file);
    let state = server.folder.path("state");
    for (name, more) in [("plain", vec![]), ("saved", vec!["--state", state.as_str()])] {
        server.stream(name, &[&format!("clean.{name}")]);
        let input = server.address(&format!("RAW?consumer={name}"));
        let output = server.address(&format!("clean.{name}"));
        let all = arguments(&[&[input.as_str(), "-o", &output], &more[..]].concat());
        let mut run = start(&all);
        assert_eq!(server.gathered(name, expected.len()), expected, "{name}");
        end(&mut run);
        assert_eq!(server.policy("RAW", name), "all");
        assert_eq!(server.unacknowledged("RAW", name), 0, "{name}");
        // All of it was acknowledged: nothing comes again.
        let mut run = start(&all);
        sleep(Duration::from_millis(500));
        let said = end(&mut run);
        assert!(!said.contains("repeats"), "{name}: {said}");
        assert_eq!(server.gathered(name, 0), expected, "{name}");
    }
}

/// Where an acknowledgement cannot stand for all messages before it, each is acknowledged: in a queue of work, and with a
/// consumer that another client has made.
#[test]
fn messages_are_acknowledged_one_by_one_where_they_must_be() {
    let Some(server) = Server::start() else { return };
    let (file, _) = reads(&server.folder, 500);
    let expected = of_file(&file);
    server.queue("WORK", &["work"]);
    server.stream("RAW", &["raw"]);
    server.consumer("RAW", "there");
    for (stream, subject) in [("WORK", "work"), ("RAW", "raw")] {
        server.stream(&format!("{stream}-CLEAN"), &[&format!("clean.{subject}")]);
        server.publish(subject, &file);
        let input = server.address(&format!("{stream}?consumer=there"));
        let output = server.address(&format!("clean.{subject}"));
        let mut run = start(&arguments(&[&input, "-o", &output]));
        assert_eq!(server.gathered(&format!("{stream}-CLEAN"), expected.len()), expected);
        end(&mut run);
        assert_eq!(server.policy(stream, "there"), "explicit");
        assert_eq!(server.unacknowledged(stream, "there"), 0, "{stream}");
    }
    assert!(server.gathered("WORK", 0).is_empty(), "the queue keeps what was acknowledged");
}

/// Killed at random moments, a run leaves in the stream what it leaves without crashes, each record once and in order: what it
/// publishes again has the id that it had.
#[test]
fn a_run_that_is_killed_leaves_each_record_once() {
    let Some(server) = Server::start() else { return };
    let count = kills("LATELY_KILLS", 4);
    let (file, _) = reads(&server.folder, 400 * count);
    let expected = of_file(&file);
    server.stream("RAW", &["raw"]);
    server.stream("CLEAN", &["clean"]);
    let state = server.folder.path("state");
    let input = server.address(&format!("RAW?consumer=killed&inflight={INFLIGHT}"));
    let output = server.address("clean");
    let all = arguments(&[&input, "-o", &output, "--state", &state]);
    let mut run = start(&all);
    let mut publisher = server.publishing("raw", &file, "0.0005");
    for _ in 0..count {
        sleep(Duration::from_millis(random(20..600)));
        run.kill();
        run = start(&all);
    }
    assert!(publisher.wait().unwrap().success());
    let gathered = server.gathered("CLEAN", expected.len());
    let said = end(&mut run);
    println!("killed {count} times: {} records; the last run: {said}", expected.len());
    assert_eq!(gathered, expected, "{said}");
    assert_eq!(server.gathered("CLEAN", 0), expected, "more came when the run ended");
}

/// What the outputs of a run repeat after a crash is at most what was in flight, and the server says that it drops it: a
/// run that has published all, and was killed before it acknowledged anything, publishes all of it again.
#[test]
fn what_is_published_again_is_dropped_and_counted() {
    let Some(server) = Server::start() else { return };
    let (file, _) = reads(&server.folder, INFLIGHT);
    let expected = of_file(&file);
    server.stream("RAW", &["raw"]);
    server.stream("CLEAN", &["clean"]);
    server.publish("raw", &file);
    let (input, output) = (server.address("RAW?consumer=late"), server.address("clean"));
    let all = arguments(&[&input, "-o", &output]);
    let mut run = start(&all);
    assert_eq!(server.gathered("CLEAN", expected.len()), expected);
    end(&mut run);
    // Another consumer of this name, as if nothing had been acknowledged.
    server.forget("RAW", "late");
    let mut run = start(&all);
    wait_until_acknowledged(&server, "late");
    let said = end(&mut run);
    let counted = format!("repeats that the broker dropped: {}", expected.len());
    assert!(said.contains(&counted), "{said}");
    assert_eq!(server.gathered("CLEAN", 0), expected);
}

fn wait_until_acknowledged(server: &Server, consumer: &str) {
    let started = std::time::Instant::now();
    while server.unacknowledged("RAW", consumer) > 0 {
        assert!(started.elapsed() < SOON, "not all was acknowledged");
        sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_server_that_is_killed_loses_nothing_and_repeats_nothing() {
    let Some(mut server) = Server::start() else { return };
    let count = kills("LATELY_BROKER_KILLS", 2);
    let (file, _) = reads(&server.folder, 300 * count);
    let expected = of_file(&file);
    server.stream("RAW", &["raw"]);
    server.stream("CLEAN", &["clean"]);
    let state = server.folder.path("state");
    let input = server.address("RAW?consumer=stays");
    let output = server.address("clean");
    let all = arguments(&[&input, "-o", &output, "--state", &state]);
    let mut run = start(&all);
    let mut publisher = server.publishing("raw", &file, "0.001");
    for _ in 0..count {
        sleep(Duration::from_millis(random(200..1_500)));
        server.kill();
    }
    assert!(publisher.wait().unwrap().success());
    let gathered = server.gathered("CLEAN", expected.len());
    // Also what was dealt with while there was no connection.
    wait_until_acknowledged(&server, "stays");
    let said = end(&mut run);
    println!("server killed {count} times: {} records; {said}", expected.len());
    assert!(said.contains("connected again"), "{said}");
    assert_eq!(gathered, expected, "{said}");
    assert_eq!(server.gathered("CLEAN", 0), expected, "more came when the run ended");
}

/// A process that was away while another one took its consumer ends, or that one does; the stream is read once, whichever
/// it is.
#[test]
fn of_two_that_read_through_one_consumer_one_ends() {
    let Some(mut server) = Server::start() else { return };
    server.stream("RAW", &["raw"]);
    server.stream("CLEAN", &["clean"]);
    let (input, output) = (server.address("RAW?consumer=both"), server.address("clean"));
    let all = ["dedup", input.as_str(), "-o", &output];
    let first = start(&all);
    server.publish("raw", &server.folder.file("some", "a\nb\n"));
    assert_eq!(server.gathered("CLEAN", 2), ["a", "b"]);
    first.signal("STOP");
    server.kill();
    let second = start(&all);
    first.signal("CONT");
    let words = "another process reads through the consumer `both`";
    let started = std::time::Instant::now();
    while ![&first, &second].into_iter().any(|run| run.said().contains(words)) {
        assert!(started.elapsed() < SOON, "{}\n{}", first.said(), second.said());
        sleep(Duration::from_millis(50));
    }
    let (mut ended, mut stays) = (first, second);
    if !ended.said().contains(words) {
        (ended, stays) = (stays, ended);
    }
    assert_eq!(ended.wait().0, 1);
    server.publish("raw", &server.folder.file("more", "c\nd\n"));
    assert_eq!(server.gathered("CLEAN", 4), ["a", "b", "c", "d"], "{}", stays.said());
    end(&mut stays);
}

#[test]
fn what_surrounds_a_message_is_a_field_and_dead_letters_say_why() {
    let Some(server) = Server::start() else { return };
    let lines = r#"{"tag":"a","t":"2025-01-01T00:00:00Z"}
{"tag":"a","t":"2025-01-01T00:00:01Z"}
{"tag":"b","t":"2025-01-01T00:00:02Z"}
{"tag":"a","t":"2025-01-01T00:00:03Z"}
nonsense
{"tag":"c","t":"2024-01-01T00:00:00Z"}
[{"tag":"d","t":"2025-01-01T00:00:04Z"},{"tag":"e","t":"2025-01-01T00:00:05Z"}]
"#;
    let file = server.folder.file("lines", lines);
    server.stream("RAW", &["dock.>"]);
    server.stream("OUT", &["clean.>", "twice", "late", "dead"]);
    server.publish("dock.{n}", &file);
    let address = |path: &str| server.address(path);
    let mut run = start(&[
        "dedup",
        "--format",
        "json",
        "--key",
        "@subject,@header.site,tag",
        "--time",
        "t",
        "--within",
        "10s",
        &address("RAW?subject=dock.*"),
        "-o",
        &address("clean.{@topic}.{@header.site}"),
        "--duplicates",
        &address("twice"),
        "--late",
        &address("late"),
        "--invalid",
        &address("dead"),
    ]);
    let mut gathered = server.gathered_with_headers("OUT", 8);
    end(&mut run);
    let dead = gathered.iter().position(|line| line.contains(r#""subject": "dead""#)).unwrap();
    let dead = gathered.remove(dead);
    for part in [
        r#""lately-topic": "dock.1""#,
        r#""lately-class": "invalid""#,
        "lately-reason",
        "\tnonsense",
    ] {
        assert!(dead.contains(part), "{part}: {dead}");
    }
    // Each output in its order; between them there is none.
    gathered.sort_by_key(|line| line.contains("lately-class"));
    let clean = |n: u32| format!(r#"{{"site": "north", "subject": "clean.dock.{n}.north"}}"#);
    let class = |class: &str, subject: &str| {
        format!(r#"{{"lately-class": "{class}", "site": "north", "subject": "{subject}"}}"#)
    };
    let read = |tag: &str, t: &str| format!(r#"	{{"tag":"{tag}","t":"{t}"}}"#);
    let mut expected = [
        clean(0) + &read("a", "2025-01-01T00:00:00Z"),
        clean(1) + &read("a", "2025-01-01T00:00:01Z"),
        clean(2) + &read("b", "2025-01-01T00:00:02Z"),
        clean(0) + &read("d", "2025-01-01T00:00:04Z"),
        clean(0) + &read("e", "2025-01-01T00:00:05Z"),
        class("duplicate", "twice") + &read("a", "2025-01-01T00:00:03Z"),
        class("late", "late") + &read("c", "2024-01-01T00:00:00Z"),
    ];
    expected[5..].sort();
    gathered[5..].sort();
    assert_eq!(gathered, expected);
}

#[test]
fn what_cannot_be_is_told_clearly() {
    let Some(server) = Server::start() else { return };
    server.stream("RAW", &["raw"]);
    server.stream("CLEAN", &["clean"]);
    let address = |path: &str| server.address(path);
    let folder = Folder::new();
    let line = folder.file("line", "a\n");
    refuse(&["dedup", &address("NONE")], 1, &["no stream `NONE`", "nats stream add"]);
    refuse(&["dedup", &address("")], 2, &["no stream"]);
    refuse(&["dedup", &address("a.b")], 2, &["names of streams"]);
    refuse(&["dedup", &address("RAW?group=x")], 2, &["no parameter `group`", "consumer, from"]);
    refuse(&["dedup", &address("RAW?subject=a..b")], 2, &["subject"]);
    refuse(&["dedup", &address("RAW"), &line], 2, &["read alone"]);
    refuse(&["dedup", "nats://ann:pw@localhost/RAW"], 2, &["--password-file"]);
    refuse(&["dedup", &line, "-o", &address("other")], 1, &["no stream takes", "`other`"]);
    refuse(&["dedup", &line, "-o", &address("clean.*")], 2, &["published to one subject"]);
    let long = folder.file("long", "x".repeat(100_100) + "\n");
    refuse(
        &["dedup", &long, "-o", &address("clean")],
        1,
        &["100100 bytes", "100000 at most", "--max-line"],
    );
    // Two processes on one consumer.
    let one = address("RAW?consumer=one");
    let mut run = start(&["dedup", &one, "-o", &address("clean")]);
    let Some(plain) = Server::start_with("") else { return };
    // Each of these is patient for seconds.
    let nobody = "nats://127.0.0.1:1/RAW";
    thread::scope(|scope| {
        scope.spawn(|| refuse(&["dedup", &one], 1, &["another process reads through", "`one`"]));
        scope.spawn(|| refuse(&["dedup", nobody], 1, &["cannot be reached", "onnection refused"]));
        scope.spawn(|| refuse(&["dedup", &plain.address("RAW")], 1, &["JetStream", "enabled"]));
        refuse(&["dedup", &line, "-o", &plain.address("a")], 1, &["JetStream is not enabled"]);
    });
    end(&mut run);
}

#[test]
fn whoever_may_not_get_in_is_told() {
    let folder = Folder::new();
    let line = folder.file("line", "a\n");
    let [password, wrong] = ["secret", "other"].map(|word| folder.file(word, format!("{word}\n")));
    let users = r#"jetstream { store_dir: STORE }
authorization { users: [
    { user: ann, password: secret }
    { user: bob, password: secret, permissions: { publish: ["$JS.API.INFO", "ok"] } }
] }"#;
    let Some(closed) = Server::start_with(users) else { return };
    let of = |user: &str, path: &str| closed.address(path).replace("//", &format!("//{user}@"));
    refuse(&["dedup", &closed.address("RAW")], 1, &["refuses the connection", "not authorized"]);
    let other = ["dedup", &of("ann", "RAW"), "--password-file", &wrong];
    refuse(&other, 1, &["refuses the connection"]);
    let known = ["dedup", &of("ann", "RAW"), "--password-file", &password];
    refuse(&known, 1, &["no stream `RAW`"]);
    let limited = ["dedup", &line, "-o", &of("bob", "clean"), "--password-file", &password];
    refuse(&limited, 1, &["does not authorize", "clean"]);
    let token = "jetstream { store_dir: STORE }\nauthorization { token: secret }";
    let Some(closed) = Server::start_with(token) else { return };
    refuse(&["dedup", &closed.address("RAW")], 1, &["refuses the connection"]);
    let known = ["dedup", &closed.address("RAW"), "--password-file", &password];
    refuse(&known, 1, &["no stream `RAW`"]);
}

/// A server with a certificate of an authority of its own: it is trusted only where that is named, and under its own name.
#[test]
fn certificates_are_checked() {
    let folder = Folder::new();
    let Some((key, certificate)) = certificate(&folder) else { return };
    let settings = format!(
        "jetstream {{ store_dir: STORE }}\ntls {{ cert_file: \"{certificate}\", key_file: \"{key}\" }}"
    );
    let Some(server) = Server::start_with(&settings) else { return };
    let [named, numbered] =
        ["localhost", "127.0.0.1"].map(|host| format!("nats+tls://{host}:{}/RAW", server.port));
    refuse(&["dedup", &named], 1, &["authority that is not trusted", "--ca"]);
    let other = ["dedup", &numbered, "--ca", &certificate];
    refuse(&other, 1, &["certificate is for another host"]);
    refuse(&["dedup", &named, "--ca", &certificate], 1, &["no stream `RAW`"]);
    // The server asks for TLS, whatever the address says.
    let plain = named.replace("nats+tls", "nats");
    refuse(&["dedup", &plain, "--ca", &certificate], 1, &["no stream `RAW`"]);
    let Some(plain) = Server::start_with("jetstream { store_dir: STORE }") else { return };
    let secure = plain.address("RAW").replace("nats:", "nats+tls:");
    let outcome = lately(&["dedup", &secure], "");
    outcome.code(1).says("TLS");
}
