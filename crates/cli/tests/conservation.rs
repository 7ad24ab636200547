//! Whatever ends a run, every record is in exactly one output or counted: random inputs, cut at random
//! places, and runs that are ended by signals, kills, full disks and readers that go away, compared with
//! an exact model. `LATELY_LONG=1` does two thousand of them instead of thirty; `LATELY_SEED` begins
//! elsewhere.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
#![cfg(unix)]

mod support;

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::{Folder, LATELY};

/// How long a run may take to end.
const PATIENT: Duration = Duration::from_secs(60);

/// A small filter that takes no record for another one: the model does not either.
const EXACT: [&str; 4] = ["--expect", "1000", "--fpr", "1e-15"];

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % n
    }

    /// Records of which about half come again: lines, no one of which begins another.
    fn records(&mut self, n: usize) -> Vec<String> {
        let keys = n / 2 + 1;
        let record = |key: usize| format!("{key}-{}.\n", "x".repeat(key * 7919 % 40));
        (0..n).map(|_| record(self.below(keys))).collect()
    }
}

/// What an exact program puts out: each record once, and those that come again.
fn model(records: &[String]) -> (String, String) {
    let mut seen = HashSet::new();
    let (fresh, again): (Vec<_>, Vec<_>) =
        records.iter().cloned().partition(|record| seen.insert(record.clone()));
    (fresh.concat(), again.concat())
}

fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
}

fn start(folder: &Folder, input: &str, more: &[&str]) -> Child {
    let [state, out, again] = ["state", "out", "again"].map(|name| folder.path(name));
    let flags = ["--state", &state, "--quiet", "--duplicates", &again];
    let flags = [&flags[..], &EXACT].concat();
    let mut command = Command::new(LATELY);
    command.args(["dedup", input]).args(flags).args(["-o", &out]).args(more);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

fn end(child: Child) -> (Option<i32>, String) {
    let id = child.id().to_string();
    let (done, waiting) = std::sync::mpsc::channel::<()>();
    let guard = std::thread::spawn(move || {
        if waiting.recv_timeout(PATIENT) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            let _ = Command::new("kill").args(["-9", &id]).status();
            panic!("a run did not end");
        }
    });
    let output = child.wait_with_output().unwrap();
    drop(done);
    guard.join().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn read(folder: &Folder, name: &str) -> String {
    fs::read_to_string(folder.path(name)).unwrap_or_default()
}

/// Compares outputs with the records that came in, in order: each is fresh, or again, or was cut by ends of
/// runs, which forward its parts one after another and do not judge it. How many were cut.
fn compare(folder: &Folder, records: &[String]) -> usize {
    let (out, again) = (read(folder, "out"), read(folder, "again"));
    let (out, again): (Vec<_>, Vec<_>) = (out.lines().collect(), again.lines().collect());
    let (mut at, mut again_at, mut cut) = (0, 0, 0);
    let mut seen = HashSet::new();
    for record in records.iter().map(|record| record.trim_end()) {
        // It may have been cut just before its line end.
        let is_whole = out.get(at) == Some(&record) && out.get(at + 1) != Some(&"");
        if seen.contains(record) && again.get(again_at) == Some(&record) {
            again_at += 1;
        } else if is_whole && !seen.contains(record) {
            seen.insert(record);
            at += 1;
        } else {
            let mut parts = String::new();
            let from = at;
            while parts != record || out.get(at) == Some(&"") {
                let part = out.get(at).unwrap_or_else(|| panic!("{record} is lost after {parts}"));
                assert!(record[parts.len()..].starts_with(part), "{part} is no part of {record}");
                parts += part;
                at += 1;
            }
            assert!(at > from + 1, "{record} was forwarded again");
            cut += 1;
        }
    }
    assert_eq!((at, again_at), (out.len(), again.len()), "there is more than was read");
    cut
}

/// Runs that are ended by signals, and share a pipe. How many records were cut by the end of a run for
/// longer than its rest is waited for.
fn signals(random: &mut Random) -> usize {
    let folder = Folder::new();
    let fifo = folder.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let n = 20 + random.below(400);
    let records = random.records(n);
    let bytes = records.concat().into_bytes();
    let mut pieces = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let to = bytes.len().min(at + 1 + random.below(200));
        pieces.push((bytes[at..to].to_vec(), Duration::from_micros(random.below(4000) as u64)));
        at = to;
    }
    // One that is longer than the rest of a record is waited for.
    if random.below(3) == 0 {
        let at = random.below(pieces.len());
        pieces[at].1 = Duration::from_millis(700);
    }
    let mut pipe = File::options().read(true).write(true).open(&fifo).unwrap();
    let keeps_it_open = pipe.try_clone().unwrap();
    let writer = std::thread::spawn(move || {
        for (piece, pause) in pieces {
            pipe.write_all(&piece).unwrap();
            std::thread::sleep(pause);
        }
    });
    let finish = |child: Child| {
        let (code, stderr) = end(child);
        // A signal that comes before anything is read ends the program as it ends any.
        assert!(matches!(code, Some(0) | None), "{code:?}: {stderr}");
    };
    for _ in 0..1 + random.below(4) {
        let child = start(&folder, &fifo, &["--state-every", "5ms"]);
        std::thread::sleep(Duration::from_millis(random.below(150) as u64));
        let kinds = [("TERM", 15), ("INT", 2), ("HUP", 1)];
        let kinds = kinds.into_iter().filter(|&(_, number)| !support::ignores(number));
        let kinds: Vec<_> = kinds.map(|(name, _)| name).collect();
        signal(&child, kinds[random.below(kinds.len())]);
        finish(child);
    }
    writer.join().unwrap();
    let child = start(&folder, &fifo, &[]);
    let started = Instant::now();
    let size = |name| fs::metadata(folder.path(name)).map_or(0, |file| file.len() as usize);
    while size("out") + size("again") < bytes.len() {
        assert!(started.elapsed() < PATIENT, "{} of {}", size("out") + size("again"), bytes.len());
        std::thread::sleep(Duration::from_millis(2));
    }
    signal(&child, "TERM");
    finish(child);
    drop(keeps_it_open);
    compare(&folder, &records)
}

/// What is in the outputs after `ends` runs that were ended in the middle, and one over all of the input:
/// each record at least once, none more often than runs could have forwarded it, and nothing else; of
/// which at most `torn` parts of records.
fn check(folder: &Folder, records: &[String], ends: usize, torn: usize) {
    let known: HashSet<&str> = records.iter().map(|record| record.trim_end()).collect();
    let out = read(folder, "out");
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let mut parts = 0;
    for line in out.lines() {
        if known.contains(line) {
            *counts.entry(line).or_default() += 1;
        } else {
            assert!(known.iter().any(|record| record.starts_with(line)), "glued: {line}");
            parts += 1;
        }
    }
    assert!(parts <= torn, "{parts} parts of records");
    assert_eq!(counts.len(), known.len(), "records are lost");
    assert!(counts.values().all(|&count| count <= 1 + ends));
    for line in read(folder, "again").lines() {
        assert!(known.iter().any(|record| record.starts_with(line)), "glued: {line}");
    }
}

/// Runs over one input, each ended by anything: killed, which may leave a part of a record, told to end, or
/// out of room.
fn mixed(random: &mut Random, kinds: &[fn(&mut Random, &Folder)], tears: bool) {
    let folder = Folder::new();
    let n = 100 + random.below(8_000);
    let records = random.records(n);
    let input = folder.file("in", records.concat());
    let ends = 1 + random.below(3);
    for _ in 0..ends {
        kinds[random.below(kinds.len())](random, &folder);
    }
    let (code, stderr) = end(start(&folder, &input, &[]));
    assert_eq!(code, Some(0), "{stderr}");
    check(&folder, &records, ends, if tears { ends } else { 0 });
}

fn kill(random: &mut Random, folder: &Folder) {
    let mut child = start(folder, &folder.path("in"), &["--state-every", "1ms"]);
    std::thread::sleep(Duration::from_millis(random.below(80) as u64));
    child.kill().unwrap();
    child.wait().unwrap();
}

fn tell(random: &mut Random, folder: &Folder) {
    let child = start(folder, &folder.path("in"), &["--state-every", "1ms"]);
    std::thread::sleep(Duration::from_millis(random.below(80) as u64));
    signal(&child, "TERM");
    let (code, stderr) = end(child);
    assert!(matches!(code, Some(0) | None), "{code:?}: {stderr}");
}

fn full_disk(random: &mut Random, folder: &Folder) {
    let command = format!(
        "trap '' XFSZ; cd '{}'; ulimit -f {}; exec '{LATELY}' dedup in --state state --expect 1000 --fpr 1e-15 \
         --quiet --duplicates again -o out --state-every 1ms --summary /dev/stdout",
        folder.path(""),
        1 + random.below(60)
    );
    let run = Command::new("bash").args(["-c", &command]).stdin(Stdio::null()).output().unwrap();
    // It may have been large enough.
    let stderr = String::from_utf8_lossy(&run.stderr);
    assert!(matches!(run.status.code(), Some(0 | 1)), "{:?}: {stderr}", run.status);
    let Ok(sum) = serde_json::from_slice::<serde_json::Value>(&run.stdout) else { return };
    let count = |name: &str| sum[name].as_u64().unwrap();
    assert_eq!(count("read"), count("fresh") + count("duplicate") + count("unwritten"));
    assert!(count("fresh") <= read(folder, "out").lines().count() as u64);
}

/// A reader that goes away: what comes after that is not remembered, as nobody has it.
fn closed_pipes(random: &mut Random) {
    let folder = Folder::new();
    let state = folder.path("state");
    let n = 10 + random.below(300);
    let records = random.records(n);
    let mut got = String::new();
    let mut at = 0;
    for round in 0.. {
        let to = if round == 3 { n } else { at + random.below(n - at + 1) };
        let mut command = Command::new(LATELY);
        command.args(["dedup", "--state", &state]).args(EXACT);
        let mut child = support::spawn(&mut command);
        let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (before, all) = (model(&records[..at]).0, model(&records[..to]).0);
        stdin.write_all(records[at..to].concat().as_bytes()).unwrap();
        let mut part = vec![0; all.len() - before.len()];
        stdout.read_exact(&mut part).unwrap();
        got += std::str::from_utf8(&part).unwrap();
        assert_eq!(got, all);
        at = to;
        if to == n {
            break;
        }
        drop(stdout);
        // Sent again in the next round, as nobody has it.
        let _ = stdin.write_all(records[to..].concat().as_bytes());
        drop(stdin);
        let (code, stderr) = end(child);
        assert_eq!((code, &*stderr), (Some(0), ""));
    }
}

#[test]
fn every_record_is_in_one_output_whatever_ends_a_run() {
    let is_long = std::env::var_os("LATELY_LONG").is_some();
    let runs = if is_long { 2000 } else { 30 };
    let seed = std::env::var("LATELY_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1u64);
    let mut cut = 0;
    for run in 0..runs {
        let at = seed + run;
        let mut random = Random(at.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        for _ in 0..4 {
            let _ = random.below(2);
        }
        let which = random.below(6);
        let names = ["signals", "signals", "kills", "full", "closed", "mixed"];
        println!("LATELY_SEED={at}: {}", names[which]);
        match which {
            0 | 1 => cut += signals(&mut random),
            2 => mixed(&mut random, &[kill], true),
            3 => mixed(&mut random, &[full_disk], false),
            4 => closed_pipes(&mut random),
            _ => mixed(&mut random, &[kill, tell, full_disk], true),
        }
    }
    println!("{runs} runs; {cut} records whose rest came too late");
}
