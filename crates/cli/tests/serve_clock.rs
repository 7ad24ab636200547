//! `lately serve` on machines whose clock is wrong.
#![cfg(all(unix, feature = "serve"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "support/server.rs"]
mod server;
mod support;

use server::Server;
use std::time::{Duration, Instant};
use support::Folder;

/// A machine whose wall clock is as far off as a file says.
struct Machine {
    folder: Folder,
    offset: String,
}

impl Machine {
    fn new() -> Self {
        let folder = Folder::new();
        let offset = folder.file("offset", "+0");
        Self { folder, offset }
    }

    fn set(&self, offset: &str) {
        // As a whole: the server reads it all the time.
        let new = self.folder.file("new", offset);
        std::fs::rename(new, &self.offset).unwrap();
    }

    fn start(&self) -> Option<Server> {
        let before = format!(
            "LD_PRELOAD=$(ls /usr/lib/*/faketime/libfaketimeMT.so.1) && export LD_PRELOAD && \
             export FAKETIME_TIMESTAMP_FILE='{}' FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1",
            self.offset
        );
        let dir = self.folder.path("state");
        let server = Server::start_in(&before, &["--dir", &dir, "--durability", "everysec"]);
        if server.is_none() {
            eprintln!("skipped: faketime is not installed (apt-get install faketime)");
        }
        server
    }
}

/// What the server takes for the time, in seconds since 1970.
fn time(server: &Server) -> u64 {
    let reply = server.ask("TIME");
    reply
        .lines()
        .nth(2)
        .and_then(|seconds| seconds.parse().ok())
        .unwrap_or_else(|| panic!("{reply}"))
}

fn wall() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

const DAY: u64 = 86_400;
const ASK: &str = "SET order 1 NX EX 6000\r\nLATELY.SEEN window key";

/// Set back or ahead by a day while it runs: what is in its windows stays in them.
#[test]
fn a_clock_that_is_set_while_it_runs() {
    let machine = Machine::new();
    let Some(server) = machine.start() else { return };
    assert_eq!(
        server.ask("BF.RESERVE window 1e-6 1000 WINDOW 6000\r\nBF.ADD window key"),
        "+OK\r\n:1\r\n"
    );
    assert_eq!(server.ask("SET order 1 NX EX 6000"), "+OK\r\n");
    let before = time(&server);
    machine.set("-1d");
    assert_eq!(server.ask(ASK), "$-1\r\n:1\r\n");
    assert!(time(&server) >= before);
    // New keys are remembered, and live as long as ever.
    assert_eq!(server.ask("SET later 1 NX EX 6000\r\nSET later 1 NX EX 6000"), "+OK\r\n$-1\r\n");
    let left: u64 = server.ask("TTL later").trim()[1..].parse().unwrap();
    assert!((3_000..=6_000).contains(&left), "{left}");
    machine.set("+1d");
    let ahead = Instant::now();
    let replies = server.ask(ASK);
    // One that lasts is believed.
    if ahead.elapsed() < Duration::from_secs(10) {
        assert_eq!(replies, "$-1\r\n:1\r\n");
    }
    machine.set("+0");
    server.end();
}

/// A clock that was a day ahead when it was killed: it resumes from there.
#[test]
fn a_clock_that_was_ahead() {
    let machine = Machine::new();
    machine.set("+1d");
    let Some(server) = machine.start() else { return };
    assert!(time(&server) >= wall() + DAY - 60);
    assert_eq!(
        server.ask("BF.RESERVE window 1e-6 1000 WINDOW 6000\r\nBF.ADD window key"),
        "+OK\r\n:1\r\n"
    );
    assert_eq!(server.ask("SET order 1 NX EX 6000"), "+OK\r\n");
    server.kill();
    machine.set("+0");
    let server = machine.start().unwrap();
    assert_eq!(server.ask(ASK), "$-1\r\n:1\r\n");
    let left: u64 = server.ask("TTL order").trim()[1..].parse().unwrap();
    assert!((3_000..=6_000).contains(&left), "{left}");
    server.end();
}
