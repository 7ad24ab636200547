//! A system of the live commands of `lately edge` with a real broker, for tests.

#![allow(dead_code, reason = "each test uses a part of it")]

use lately_edge_mqtt::clock::Clock;
use lately_edge_mqtt::mosquitto::{Mosquitto, find};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long something that must happen may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Time runs so fast.
pub(crate) const SPEED: u64 = 10;

/// A system of processes. What runs when it is dropped is killed.
pub(crate) struct System {
    pub(crate) broker: Mosquitto,
    pub(crate) folder: PathBuf,
    /// When its time began, in seconds since 1970, and how fast it runs.
    pub(crate) since: u64,
    pub(crate) speed: u64,
    /// What requesters get besides.
    pub(crate) requests: Vec<&'static str>,
    pub(crate) running: Vec<(&'static str, Child)>,
}

impl System {
    /// `None`, and says so, where no broker is installed.
    pub(crate) fn start(test: &str) -> Option<Self> {
        if find().is_none() {
            eprintln!("skipped: mosquitto is not installed (apt-get install mosquitto)");
            return None;
        }
        let folder = std::env::temp_dir().join(format!("lately-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        let broker = Mosquitto::start("").unwrap();
        let since = Clock::system() / 1000;
        let (speed, requests) = (SPEED, Vec::new());
        Some(Self { broker, folder, since, speed, requests, running: Vec::new() })
    }

    pub(crate) fn readings(&self) -> PathBuf {
        self.folder.join("readings")
    }

    pub(crate) fn spawn(&mut self, name: &'static str, arguments: &[&str]) -> &mut Child {
        let log = File::options().create(true).append(true).open(self.folder.join(name)).unwrap();
        let mut command = self.command(arguments, self.since);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log).spawn();
        self.running.push((name, child.unwrap()));
        &mut self.running.last_mut().unwrap().1
    }

    /// A command of this system, whose time began then.
    pub(crate) fn command(&self, arguments: &[&str], since: u64) -> Command {
        let mut command = program();
        command.args(arguments).args(["--broker", &self.broker.address()]);
        command.args(["--speed", &self.speed.to_string(), "--since", &since.to_string()]);
        command
    }

    /// Runs a worker on these lines, to the end.
    pub(crate) fn work(&self, arguments: &[&str], since: u64, lines: &str) -> Output {
        let arguments = [&["worker"], arguments].concat();
        run_on(&mut self.command(&arguments, since), lines)
    }

    /// The moment by its clock.
    pub(crate) fn now(&self) -> u64 {
        (self.since * 1000 + (Clock::system() - self.since * 1000) * self.speed) / 1000
    }

    pub(crate) fn role(&mut self, name: &'static str) {
        let state = self.folder.join(format!("{name}-state"));
        let state = state.to_str().unwrap();
        match name {
            "coordinator" => self.spawn(name, &[name, "--state", state, "--grace", "1h"]),
            "requester" => {
                let readings = self.readings();
                let output = readings.to_str().unwrap();
                let arguments = [name, "--name", "me", "--for", "10h", "--output", output];
                let arguments = [&arguments[..], &self.requests.clone()].concat();
                self.spawn(name, &arguments)
            }
            _ => self.spawn(name, &["host", "--state", state]),
        };
    }

    /// As `kill -9` does.
    pub(crate) fn kill(&mut self, name: &str) {
        let at = self.running.iter().position(|(running, _)| *running == name).unwrap();
        let (_, mut child) = self.running.remove(at);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Ends it by a signal, and returns whether it ended well.
    pub(crate) fn end(&mut self, name: &str) -> bool {
        let at = self.running.iter().position(|(running, _)| *running == name).unwrap();
        let (_, mut child) = self.running.remove(at);
        let kill = Command::new("kill").arg(child.id().to_string()).status().unwrap();
        assert!(kill.success());
        child.wait().unwrap().success()
    }

    /// Waits for a role that has no more input, which must end well, and returns what it has told.
    #[track_caller]
    pub(crate) fn ended(&mut self, name: &str) -> String {
        let at = self.running.iter().position(|(running, _)| *running == name).unwrap();
        let (_, mut child) = self.running.remove(at);
        assert_eq!(child.wait().unwrap().code(), Some(0), "{}", self.logs());
        log(&self.folder.join(name))
    }

    /// The values that the requester has: each one is a reading's number.
    pub(crate) fn received(&self) -> BTreeSet<u64> {
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
    pub(crate) fn wait_for(&self, readings: std::ops::Range<u64>) {
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
    pub(crate) fn wait_for_log(&self, name: &str, words: &str) {
        let start = Instant::now();
        while !log(&self.folder.join(name)).contains(words) {
            assert!(start.elapsed() < PATIENCE, "no {words} in the log of {name}\n{}", self.logs());
            sleep(Duration::from_millis(20));
        }
    }

    /// The address that a role has told.
    pub(crate) fn address(&self, name: &str, before: &str) -> String {
        self.wait_for_log(name, before);
        let words = log(&self.folder.join(name));
        let rest = words.split_once(before).unwrap().1;
        rest.split(['/', '\n']).next().unwrap().to_owned()
    }

    pub(crate) fn logs(&self) -> String {
        let names = ["coordinator", "host-a", "host-b", "requester", "worker", "second"];
        let names = names.into_iter().chain(self.running.iter().map(|&(name, _)| name));
        let names: BTreeSet<&str> = names.collect();
        let logs =
            names.into_iter().map(|name| format!("{name}: {}", log(&self.folder.join(name))));
        logs.collect::<Vec<_>>().join("\n")
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

pub(crate) fn log(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The program under test: another one, where that is asked for, to see what it did before.
pub(crate) fn program() -> Command {
    let path = std::env::var_os("LATELY_PROGRAM").unwrap_or(env!("CARGO_BIN_EXE_lately").into());
    let mut command = Command::new(path);
    command.arg("edge");
    command
}

/// Runs a command on this input, to the end.
pub(crate) fn run_on(command: &mut Command, input: &str) -> Output {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // One that ends at once takes no input.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

/// What is at a path of a server that a role runs.
pub(crate) fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{path}: {head}");
    body.to_owned()
}

/// What a command has told.
pub(crate) fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Lines of fixes at `count` places in a row, from a number on, which is the value of the reading.
pub(crate) fn fixes(longitude: f64, numbers: std::ops::Range<u64>) -> String {
    let line = |number: u64| {
        let latitude = 45.7985 + 0.001 * number as f64;
        format!("{{\"lat\":{latitude},\"lon\":{longitude},\"noise\":{number}}}\n")
    };
    numbers.map(line).collect()
}

/// A worker that goes where it is told, and takes a reading with a number of its own at each place.
pub(crate) struct Walker {
    pub(crate) input: ChildStdin,
    pub(crate) number: u64,
}

impl Walker {
    /// Goes through `count` cells of 100 m in a row, in the square around 45.8 N and this longitude.
    pub(crate) fn walk(&mut self, longitude: f64, count: u64) {
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
