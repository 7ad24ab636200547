//! The state under fire: the program is killed at any moment and nothing is lost or corrupt.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
#![cfg(unix)]

mod support;

use lately::{Digester, Filter, Tick};
use lately_stream::state::dedup::State;
use std::collections::HashSet;
use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use support::{Folder, LATELY};

const ROUNDS: usize = 50;

/// Keys come twice, and now and then again later.
fn record(at: usize) -> String {
    let key = if at % 7 == 6 { at / 3 } else { at / 2 };
    format!("key {key}\n")
}

/// One run that gets records from `from` on and is killed after `life`: what it put out.
fn killed_run(state: &str, from: usize, life: Duration) -> String {
    let started = Instant::now();
    let mut child = Command::new(LATELY)
        .args(["dedup", "--state", state, "--state-every", "50ms", "--quiet"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let reader = thread::spawn(move || {
        let mut got = Vec::new();
        stdout.read_to_end(&mut got).unwrap();
        String::from_utf8(got).unwrap()
    });
    let mut stdin = child.stdin.take().unwrap();
    let mut at = from;
    while started.elapsed() < life {
        let records: String = (at..at + 5).map(record).collect();
        stdin.write_all(records.as_bytes()).expect("it refused its own state");
        at += 5;
        thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let mut got = reader.join().unwrap();
    // A line cut off by the kill has not arrived.
    got.truncate(got.rfind('\n').map_or(0, |at| at + 1));
    got
}

#[test]
fn killed_at_any_moment_nothing_vanishes_and_nothing_saved_passes_again() {
    let folder = Folder::new();
    let path = folder.path("state");
    let digester = Digester::new(0);
    let mut random = 0x2545_F491_4F6C_DD1D_u64;
    let mut arrived = HashSet::new();
    let mut next = 0;
    let (mut loaded, mut repeats) = (0, 0);
    for round in 0..ROUNDS {
        // What the run is about to find.
        let saved = fs::read(&path).ok().map(|bytes| State::from_bytes(&bytes).unwrap());
        loaded += usize::from(saved.is_some());
        if let Some(state) = &saved {
            // Marked only after it was handed on.
            let seen = |at: usize| {
                let record = record(at);
                state.filter.contains(digester.digest(record.trim_end().as_bytes()), Tick(0))
            };
            assert!(
                (0..next + 5000).all(|at| !seen(at) || arrived.contains(&record(at))),
                "round {round}"
            );
        }
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let got = killed_run(&path, next, Duration::from_millis(20 + random % 230));
        for line in got.split_inclusive('\n') {
            let digest = digester.digest(line.trim_end().as_bytes());
            let was_saved =
                saved.as_ref().is_some_and(|state| state.filter.contains(digest, Tick(0)));
            assert!(!was_saved, "round {round}: {line} was saved and passed again");
            repeats += usize::from(!arrived.insert(line.to_owned()));
        }
        // What has not come out is sent again.
        while arrived.contains(&record(next)) {
            next += 1;
        }
    }
    assert!(
        loaded > ROUNDS / 4 && next > 1000,
        "{loaded} states, {next} records, {repeats} repeats"
    );
    // A run that ends by itself leaves its state and nothing else.
    let rest: String = (next..next + 100).map(record).collect();
    let run = support::dedup_with(&["--state", &path], &rest);
    arrived.extend(run.code(0).text().split_inclusive('\n').map(str::to_owned));
    assert!((0..next + 100).all(|at| arrived.contains(&record(at))));
    assert!(fs::metadata(format!("{path}.new")).is_err());
    support::dedup_with(&["--state", &path], &rest).out("");
}
