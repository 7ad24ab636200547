//! The live commands of `lately edge`, with a real broker: what is killed comes back, and no reading that
//! a host has accepted is lost.
#![cfg(feature = "edge")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use lately_edge_mqtt::clock::Clock;
use lately_edge_mqtt::mosquitto::{Mosquitto, find};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long something that must happen may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time runs so fast.
const SPEED: &str = "10";

/// A system of processes. What runs when it is dropped is killed.
struct System {
    broker: Mosquitto,
    folder: PathBuf,
    since: String,
    running: Vec<(&'static str, Child)>,
}

impl System {
    /// `None`, and says so, where no broker is installed.
    fn start(test: &str) -> Option<Self> {
        if find().is_none() {
            eprintln!("skipped: mosquitto is not installed (apt-get install mosquitto)");
            return None;
        }
        let folder = std::env::temp_dir().join(format!("lately-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        let broker = Mosquitto::start("").unwrap();
        let since = (Clock::system() / 1000).to_string();
        Some(Self { broker, folder, since, running: Vec::new() })
    }

    fn readings(&self) -> PathBuf {
        self.folder.join("readings")
    }

    fn spawn(&mut self, name: &'static str, arguments: &[&str]) -> &mut Child {
        let log = File::options().create(true).append(true).open(self.folder.join(name)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_lately"));
        command.arg("edge").args(arguments).args(["--broker", &self.broker.address()]);
        command.args(["--speed", SPEED, "--since", &self.since]);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log).spawn();
        self.running.push((name, child.unwrap()));
        &mut self.running.last_mut().unwrap().1
    }

    fn role(&mut self, name: &'static str) {
        let state = self.folder.join(format!("{name}-state"));
        let state = state.to_str().unwrap();
        match name {
            "coordinator" => self.spawn(name, &[name, "--state", state, "--grace", "1h"]),
            "requester" => {
                let readings = self.readings();
                let output = readings.to_str().unwrap();
                self.spawn(name, &[name, "--name", "me", "--for", "10h", "--output", output])
            }
            _ => self.spawn(name, &["host", "--state", state]),
        };
    }

    /// As `kill -9` does.
    fn kill(&mut self, name: &str) {
        let at = self.running.iter().position(|(running, _)| *running == name).unwrap();
        let (_, mut child) = self.running.remove(at);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Ends it by a signal, and returns whether it ended well.
    fn end(&mut self, name: &str) -> bool {
        let at = self.running.iter().position(|(running, _)| *running == name).unwrap();
        let (_, mut child) = self.running.remove(at);
        let kill = Command::new("kill").arg(child.id().to_string()).status().unwrap();
        assert!(kill.success());
        child.wait().unwrap().success()
    }

    /// The values that the requester has: each one is a reading's number.
    fn received(&self) -> BTreeSet<u64> {
        let text = fs::read_to_string(self.readings()).unwrap_or_default();
        let value = |line: &str| {
            let record: Value = serde_json::from_str(line).unwrap();
            assert!(record["n"].as_str().unwrap().starts_with("mgrs:33T"), "{line}");
            record["v"].as_f64().unwrap() as u64
        };
        // A line that is being written has no end yet.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(value).collect()
    }

    #[track_caller]
    fn wait_for(&self, readings: std::ops::Range<u64>) {
        let wanted: BTreeSet<u64> = readings.collect();
        let start = Instant::now();
        while !self.received().is_superset(&wanted) {
            assert!(
                start.elapsed() < PATIENCE,
                "{:?} of {wanted:?}\n{}",
                self.received(),
                self.logs()
            );
            sleep(Duration::from_millis(50));
        }
    }

    #[track_caller]
    fn wait_for_log(&self, name: &str, words: &str) {
        let start = Instant::now();
        while !log(&self.folder.join(name)).contains(words) {
            assert!(start.elapsed() < PATIENCE, "no {words} in the log of {name}\n{}", self.logs());
            sleep(Duration::from_millis(20));
        }
    }

    fn logs(&self) -> String {
        let names = ["coordinator", "host-a", "host-b", "requester", "worker"];
        names.map(|name| format!("{name}: {}", log(&self.folder.join(name)))).join("\n")
    }
}

impl Drop for System {
    fn drop(&mut self) {
        for (_, child) in &mut self.running {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn log(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// A worker that goes where it is told, and takes a reading with a number of its own at each place.
struct Walker {
    input: ChildStdin,
    number: u64,
}

impl Walker {
    /// Goes through `count` cells of 100 m in a row, in the square around 45.8 N and this longitude.
    fn walk(&mut self, longitude: f64, count: u64) {
        for _ in 0..count {
            // 100 m are 0.0009 degrees; the first eight places lie within one cell of 1 km.
            let latitude = 45.7985 + 0.001 * self.number as f64;
            let number = self.number;
            writeln!(self.input, r#"{{"lat":{latitude},"lon":{longitude},"noise":{number}}}"#)
                .unwrap();
            self.number += 1;
        }
    }
}

#[test]
fn whatever_is_killed_comes_back_and_no_reading_is_lost() {
    let Some(mut system) = System::start("edge-kill") else { return };
    ["coordinator", "host-a", "host-b", "requester"].into_iter().for_each(|name| system.role(name));
    system.wait_for_log("requester", "task accepted");
    let input = system.spawn("worker", &["worker"]).stdin.take().unwrap();
    let mut walker = Walker { input, number: 0 };
    walker.walk(15.97, 1);
    system.wait_for(0..1);
    walker.walk(15.97, 2);
    system.wait_for(0..3);

    // The requester, and then both hosts, with readings that nobody has got yet.
    system.kill("requester");
    walker.walk(15.97, 3);
    sleep(Duration::from_millis(500));
    ["host-a", "host-b"].into_iter().for_each(|name| system.kill(name));
    walker.walk(15.97, 1);
    ["host-a", "host-b", "requester"].into_iter().for_each(|name| system.role(name));
    system.wait_for(0..7);

    // The broker, which keeps nothing on disk.
    system.broker.kill().unwrap();
    sleep(Duration::from_millis(300));
    system.broker.restart().unwrap();
    // Another square: this needs everybody.
    walker.walk(16.15, 1);
    system.wait_for(0..8);

    // The coordinator: a square that is known already does not need it, a new one waits for it.
    system.kill("coordinator");
    walker.walk(15.97, 1);
    system.wait_for(0..9);
    walker.walk(16.35, 1);
    system.role("coordinator");
    system.wait_for(0..10);

    // A worker whose input ends, ends.
    drop(walker);
    let at = system.running.iter().position(|(name, _)| *name == "worker").unwrap();
    let (_, mut worker) = system.running.remove(at);
    assert!(worker.wait().unwrap().success());
    for name in ["requester", "host-a", "host-b", "coordinator"] {
        assert!(system.end(name), "{name}\n{}", system.logs());
    }
    let logs = system.logs();
    assert!(logs.contains("resumes with"), "{logs}");
    assert!(logs.contains("10 fixes: 10 readings sent, 0 skipped"), "{logs}");
}

/// The task of a requester with a name stays, whichever way that ends; and what a crash has cut off in its file
/// swallows no reading.
#[test]
fn a_named_requester_that_is_stopped_goes_on_after_a_restart() {
    let Some(mut system) = System::start("edge-named") else { return };
    ["coordinator", "host-a", "requester"].into_iter().for_each(|name| system.role(name));
    system.wait_for_log("requester", "task accepted");
    let input = system.spawn("worker", &["worker"]).stdin.take().unwrap();
    let mut walker = Walker { input, number: 0 };
    walker.walk(15.97, 1);
    system.wait_for(0..1);
    assert!(system.end("requester"), "{}", system.logs());
    // Nobody gets these now.
    walker.walk(15.97, 3);
    sleep(Duration::from_millis(500));
    let fragment = r#"{"n":"mgrs:33TWL75"#;
    write!(File::options().append(true).open(system.readings()).unwrap(), "{fragment}").unwrap();
    system.role("requester");
    let start = Instant::now();
    let whole = || {
        let text = log(&system.readings());
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.iter().filter(|line| line.contains("\"v\":") && line.starts_with("{\"n\"")).count()
    };
    while whole() < 4 {
        assert!(start.elapsed() < PATIENCE, "{}\n{}", log(&system.readings()), system.logs());
        sleep(Duration::from_millis(50));
    }
    let text = log(&system.readings());
    let spoiled: Vec<&str> =
        text.lines().filter(|line| serde_json::from_str::<Value>(line).is_err()).collect();
    assert_eq!(spoiled, [fragment]);
}

/// `sensor | lately edge worker`: its readings arrive, although nobody had run the square before, and although
/// its input ends at once.
#[test]
fn a_pipe_into_a_worker_loses_no_reading() {
    let Some(mut system) = System::start("edge-pipe") else { return };
    ["coordinator", "host-a", "requester"].into_iter().for_each(|name| system.role(name));
    system.wait_for_log("requester", "task accepted");
    let mut input = system.spawn("worker", &["worker"]).stdin.take().unwrap();
    let lines: &[&[u8]] = &[
        br#"{"lat":45.7985,"lon":15.97,"noise":0}"#,
        b"\xff\xfe",
        br#"{"lat":45.7995,"lon":15.97,"noise":1}"#,
        br#"{"lat":45.8005,"lon":15.97,"noise":"loud"}"#,
        // The square next to it.
        br#"{"lat":45.8005,"lon":16.15,"noise":2}"#,
    ];
    input.write_all(&lines.join(&b'\n')).unwrap();
    drop(input);
    let at = system.running.iter().position(|(name, _)| *name == "worker").unwrap();
    let (_, mut worker) = system.running.remove(at);
    assert!(worker.wait().unwrap().success());
    system.wait_for(0..3);
    let words = log(&system.folder.join("worker"));
    for part in
        ["3 fixes: 3 readings sent", "line 2", "line 4", "\"noise\" is not a number", "2 lines"]
    {
        assert!(words.contains(part), "no {part} in {words}");
    }
}

/// Each error names the file that it is about.
#[test]
fn errors_name_the_file() {
    let place = std::env::temp_dir().join(format!("lately-edge-errors-{}", std::process::id()));
    let _ = fs::remove_dir_all(&place);
    fs::create_dir(&place).unwrap();
    fs::write(place.join("file"), b"").unwrap();
    let path = place.join("file/within");
    let path = path.to_str().unwrap();
    for arguments in [
        ["host", "--state", path],
        ["coordinator", "--state", path],
        ["requester", "--output", path],
    ] {
        let command =
            Command::new(env!("CARGO_BIN_EXE_lately")).arg("edge").args(arguments).output();
        let output = command.unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {told}");
        assert!(told.contains(path), "{arguments:?}: {told}");
    }
    fs::remove_dir_all(&place).unwrap();
}

#[test]
fn two_processes_do_not_share_a_state() {
    let Some(mut system) = System::start("edge-state") else { return };
    system.role("host-a");
    system.wait_for_log("host-a", "connected to");
    let state = system.folder.join("host-a-state");
    let state = state.to_str().unwrap();
    let second = Command::new(env!("CARGO_BIN_EXE_lately"))
        .args(["edge", "host", "--state", state, "--broker", &system.broker.address()])
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(1));
    let words = String::from_utf8(second.stderr).unwrap();
    assert!(words.contains("another process uses this state"), "{words}");
    assert!(words.contains("give each its own --state"), "{words}");
}

#[test]
fn wrong_usage_is_told() {
    for (arguments, words) in [
        (&["host", "--broker", "http://x"][..], "mqtt://localhost:1883"),
        (&["host", "--broker", "mqtt://x", "--ca", "Cargo.toml"], "mqtts://"),
        (&["host", "--broker", "mqtt://x", "--user", "me"], "--password-file"),
        (&["coordinator", "--window", "0s"], "validity"),
        (&["requester", "--property", "a b"], "property"),
        (&["requester", "--area", "33TWL7"], "MGRS"),
        (&["worker", "--from", "25:00"], "time of day"),
        (&["worker", "--speed", "0.5"], "--speed"),
        (&["worker", "--id", "7"], "16 hexadecimal digits"),
        (&["worker", "--generate", "--id", "0000000000000007"], "--generate"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_lately"))
            .arg("edge")
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {told}");
        assert!(told.contains(words), "{arguments:?}: {told}");
    }
}
