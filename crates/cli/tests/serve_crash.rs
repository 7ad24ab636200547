//! `lately serve` that is killed: what was answered is not lost, and nobody wins twice.
#![cfg(all(unix, feature = "serve"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "support/server.rs"]
mod server;
mod support;

use server::Server;
use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::Folder;

/// Times that each server is killed; `LATELY_CRASHES` says otherwise.
fn crashes() -> u64 {
    std::env::var("LATELY_CRASHES").ok().and_then(|n| n.parse().ok()).unwrap_or(50)
}

const CLIENTS: u64 = 4;

/// Numbers that look random, the same in each run.
fn random(seed: u64) -> u64 {
    let mut x = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// What a client heard: keys that were fresh for it, and keys that were not.
#[derive(Default)]
struct Heard {
    won: Vec<String>,
    known: Vec<String>,
}

/// The command that asks for a key, which begins with its kind.
fn command(key: &str) -> String {
    match &key[..1] {
        "s" => format!("SET {key} 1 NX EX 6000\r\n"),
        "w" => format!("BF.ADD window {key}\r\n"),
        "r" => format!("LATELY.OBSERVE range {}000\r\n", &key[1..]),
        _ => format!("BF.ADD ever {key}\r\n"),
    }
}

/// Sends keys from a number on, until the server is gone. Counts those that were fresh.
fn client(stream: TcpStream, number: u64, from: u64, fresh: &AtomicU64) -> Heard {
    let mut heard = Heard::default();
    let mut stream = BufReader::new(stream);
    let mut next = from;
    loop {
        // Pipelines of different lengths and kinds; all clients send the same keys.
        let length = 1 + random(next * CLIENTS + number) % 40;
        let keys: Vec<String> = (next..next + length)
            .map(|n| format!("{}{n}", ["s", "w", "e", "r"][n as usize % 4]))
            .collect();
        next += length;
        let lines: String = keys.iter().map(|key| command(key)).collect();
        if stream.get_mut().write_all(lines.as_bytes()).is_err() {
            return heard;
        }
        for key in keys {
            let mut reply = String::new();
            if stream.read_line(&mut reply).is_err() || !reply.ends_with('\n') {
                return heard;
            }
            match reply.trim() {
                "+OK" | ":1" => {
                    fresh.fetch_add(1, Ordering::Relaxed);
                    heard.won.push(key);
                }
                "$-1" | ":0" => heard.known.push(key),
                other => panic!("{key}: {other}"),
            }
        }
    }
}

/// Kills a server at random moments while clients ask for the same keys at the same time. Of a key that anybody has heard
/// of, nobody may hear after the crash that it is fresh; a key has at most one winner, over all crashes.
fn killed_again_and_again(durability: &str) {
    let folder = Folder::new();
    let dir = folder.path("state");
    let arguments =
        ["--dir", &dir, "--durability", durability, "--save-every", "50ms", "--threads", "2"];
    let reserve = "BF.RESERVE window 1e-9 100000 WINDOW 6000\r\nBF.RESERVE ever 1e-9 100000\r\nLATELY.RESERVE range WINDOW 6000 CAPACITY 100000 FPR 1e-12 RANGE NUMBER";
    let (mut winners, mut known) = (HashMap::new(), HashSet::new());
    let mut from = 0;
    for round in 0..crashes() {
        let server = Server::start(&arguments);
        let reserved = server.ask(reserve);
        assert!(round > 0 || reserved == "+OK\r\n+OK\r\n+OK\r\n", "{reserved}");
        assert!(round == 0 || reserved.matches("item exists").count() == 3, "{reserved}");
        let (barrier, fresh) = (Barrier::new(CLIENTS as usize + 1), AtomicU64::new(0));
        let heard: Vec<Heard> = std::thread::scope(|scope| {
            let start = |number| {
                let (stream, barrier, fresh) = (server.connect(), &barrier, &fresh);
                scope.spawn(move || {
                    barrier.wait();
                    client(stream, number, from, fresh)
                })
            };
            let clients: Vec<_> = (0..CLIENTS).map(start).collect();
            barrier.wait();
            // Each second time some have won, however slow the disk is: together more than there are crashes.
            let begun = Instant::now();
            while round % 2 == 0
                && fresh.load(Ordering::Relaxed) < 3
                && begun.elapsed() < Duration::from_secs(60)
            {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_micros(random(round) % 60_000));
            server.kill();
            clients.into_iter().map(|client| client.join().unwrap()).collect()
        });
        for key in heard.iter().flat_map(|heard| &heard.won) {
            assert!(!known.contains(key), "{key} was known, and is fresh in round {round}");
            let before = winners.insert(key.clone(), round);
            assert_eq!(before, None, "{key} is fresh in round {round}, too");
        }
        known.extend(heard.into_iter().flat_map(|heard| [heard.won, heard.known].concat()));
        // The next round begins with keys of this one.
        let numbers = known.iter().map(|key| key[1..].parse::<u64>().unwrap());
        from = numbers.max().unwrap_or(0).saturating_sub(150);
    }
    assert!(winners.len() as u64 > crashes(), "{}", winners.len());
    // All of them, at the end.
    let server = Server::start(&arguments);
    let mut keys: Vec<_> = known.into_iter().collect();
    keys.sort();
    for part in keys.chunks(500) {
        let lines: String = part.iter().map(|key| command(key)).collect();
        let replies = server.ask(lines.trim_end());
        assert!(replies.lines().all(|reply| reply == ":0" || reply == "$-1"), "{replies}");
        assert_eq!(replies.lines().count(), part.len());
    }
    // Intervals that have one of them, and intervals between them that have none.
    let numbers = keys.iter().filter_map(|key| key.strip_prefix('r')?.parse::<u64>().ok());
    for number in numbers.map(|n| n * 1000).take(500) {
        let (before, behind) = (number.saturating_sub(5), number + 5);
        let asked = format!(
            "LATELY.RANGE range {before} {behind}\r\nLATELY.RANGE range {} {}",
            number + 1,
            number + 999
        );
        assert_eq!(server.ask(&asked), ":1\r\n:0\r\n", "{number}");
    }
    server.end();
}

#[test]
fn killed_with_always() {
    killed_again_and_again("always");
}

#[test]
fn killed_with_everysec() {
    killed_again_and_again("everysec");
}

/// What was answered before a snapshot that was heard to be taken is not lost.
#[test]
fn killed_with_snapshots() {
    let folder = Folder::new();
    let dir = folder.path("state");
    let arguments = ["--dir", &dir, "--save-every", "20ms", "--threads", "2"];
    let mut saved = 0;
    for round in 0..crashes() {
        let server = Server::start(&arguments);
        let known: String = (0..saved).map(|n| format!("SET k{n} 1 NX EX 6000\r\n")).collect();
        let replies = server.ask(known.trim_end());
        assert!(saved == 0 || replies.lines().all(|reply| reply == "$-1"), "{round}: {replies}");
        let more: String =
            (saved..saved + 5).map(|n| format!("SET k{n} 1 NX EX 6000\r\n")).collect();
        assert!(server.ask(&format!("{more}SAVE")).ends_with("+OK\r\n"));
        saved += 5;
        // Killed while it saves by itself.
        let stream = server.connect();
        std::thread::scope(|scope| {
            scope.spawn(|| client(stream, 0, round * 1_000_000, &AtomicU64::new(0)));
            std::thread::sleep(Duration::from_micros(random(round) % 60_000));
            server.kill();
        });
    }
}

/// Nothing outlives the process, and nothing is left behind.
#[test]
fn killed_without_anything() {
    let folder = Folder::new();
    let dir = folder.path("state");
    for round in 0..crashes() {
        let server = Server::start(&["--dir", &dir, "--durability", "none"]);
        assert_eq!(server.ask("SET k 1 NX EX 6000\r\nSET k 1 NX EX 6000"), "+OK\r\n$-1\r\n");
        let stream = server.connect();
        std::thread::scope(|scope| {
            scope.spawn(|| client(stream, 0, round, &AtomicU64::new(0)));
            std::thread::sleep(Duration::from_micros(random(round) % 20_000));
            server.kill();
        });
    }
    assert!(!std::fs::exists(&dir).unwrap());
}

/// A disk that fills up: changes are refused, questions are answered, and nothing that was answered is lost. Takes a file
/// system of its own, which only root may make.
#[test]
fn a_full_disk() {
    let folder = Folder::new();
    let dir = folder.path("small");
    std::fs::create_dir(&dir).unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=24m", "tmpfs", &dir])
        .stderr(std::process::Stdio::null())
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        eprintln!("skipped: only root may mount a small file system");
        return;
    }
    let state = format!("{dir}/state");
    let arguments = ["--dir", &state, "--durability", "always", "--save-every", "1h"];
    let server = Server::start(&arguments);
    assert_eq!(server.ask("BF.RESERVE f 1e-6 100000 WINDOW 1h"), "+OK\r\n");
    let (mut added, mut refused) = (0, String::new());
    while refused.is_empty() {
        assert!(added < 3_000_000, "the disk does not fill up");
        let items: String = (added..added + 500).map(|n| format!(" {}", n % 50_000)).collect();
        let reply = server.ask(&format!("LATELY.MOBSERVE f ITEMS{items}"));
        match reply.starts_with('*') {
            true => added += 500,
            false => refused = reply,
        }
    }
    assert!(refused.starts_with("-MISCONF Errors writing to the journal: "), "{refused}");
    assert_eq!(server.ask("LATELY.SEEN f 0\r\nLATELY.SEEN f none"), ":1\r\n:0\r\n");
    server.kill();
    let server = Server::start(&arguments);
    for part in 0..100 {
        let items: String = (part * 500..part * 500 + 500).map(|n| format!(" {n}")).collect();
        let reply = server.ask(&format!("LATELY.MSEEN f ITEMS{items}"));
        assert_eq!(reply.matches(":1").count(), 500.min((added - part * 500).max(0)) as usize);
    }
    drop(server);
    let _ = std::process::Command::new("umount").arg(&dir).status();
}
