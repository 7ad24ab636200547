//! `lately edge demo`: every reading is counted in one class.
#![cfg(feature = "edge")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::process::{Command, Stdio};

fn demo(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_lately"))
        // Whoever asks for logs gets none of the broker either.
        .env("RUST_LOG", "trace")
        .args(["edge", "demo"])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "");
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// The number before that word in the last line that has these words.
fn count(told: &str, line: &str, word: &str) -> u64 {
    let line =
        told.lines().rev().find(|told| told.contains(line)).unwrap_or_else(|| panic!("{told}"));
    let words: Vec<&str> = line.split([' ', ',', ':']).filter(|word| !word.is_empty()).collect();
    let at = words.iter().position(|other| *other == word).unwrap_or_else(|| panic!("{line}"));
    words[at - 1].parse().unwrap_or_else(|_| panic!("{line}"))
}

#[test]
fn every_reading_is_accounted_for() {
    let (status, told) = demo(&["--workers", "8", "--minutes", "5", "--speed", "60"]);
    assert_eq!(status, Some(0), "{told}");
    let [readings, sent, skipped, unasked] =
        ["readings", "sent", "skipped", "asked"].map(|word| count(&told, " sent, ", word));
    assert_eq!(sent + skipped + unasked, readings, "{told}");
    assert!(sent > 0 && readings >= 8, "{told}");
    let [kept, redundant, lost, refused] =
        ["kept", "redundant", "lost", "refused"].map(|word| count(&told, " kept, ", word));
    assert_eq!(kept + redundant + lost + refused, sent, "{told}");
    assert_eq!(count(&told, "the requester received", "readings"), kept, "{told}");
    // No logs of the broker, no cursor movements.
    assert!(told.lines().all(|line| line.starts_with("lately: ")), "{told}");
    assert!(!told.contains('\x1b'), "{told}");
}

#[test]
fn a_broker_that_is_none_is_told() {
    for broker in ["embeded", "localhost", "http://localhost"] {
        let (status, told) = demo(&["--broker", broker]);
        assert_eq!(status, Some(2), "{told}");
        assert!(told.contains("mqtt://localhost:1883") && told.contains("mosquitto"), "{told}");
    }
}

#[test]
fn a_broker_that_is_not_there_is_told() {
    // Nobody listens on a port that was free a moment ago.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("mqtt://{}", listener.local_addr().unwrap());
    drop(listener);
    let (status, told) = demo(&["--workers", "2", "--broker", &address]);
    assert_eq!(status, Some(1), "{told}");
    assert!(told.contains(&format!("no connection to {address}: ")), "{told}");
}
