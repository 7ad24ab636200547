//! How a run ends that is told to: what was read is written, and what is left in a pipe stays for the next one.

use super::support::{self, Folder, LATELY, Live, dedup_with};
use super::{PATIENT, fifo, lines, signal, wait_for};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Hardening case 2: `bbbb-2,encccc`, and the rest of a record was dropped as a duplicate.
#[test]
fn a_record_that_a_signal_comes_in_is_finished_or_left_whole() {
    let folder = Folder::new();
    let (fifo, state, out) = (fifo(&folder), folder.path("state"), folder.path("out"));
    let mut pipe = File::options().read(true).write(true).open(&fifo).unwrap();
    for (before, rest) in [("aaaa-1\naaaa-2,en", "d\n"), ("bbbb-1\nbbbb-2,en", "d\n")] {
        let mut live = Live::dedup(&[&fifo, "--state", &state, "-o", &out]);
        pipe.write_all(before.as_bytes()).unwrap();
        let started = Instant::now();
        while !fs::read_to_string(&out).unwrap_or_default().contains(&before[..6]) {
            assert!(started.elapsed() < PATIENT);
            std::thread::sleep(Duration::from_millis(10));
        }
        live.signal("TERM");
        std::thread::sleep(Duration::from_millis(100));
        // What comes after the record stays for the next run.
        pipe.write_all(format!("{rest}next-{rest}").as_bytes()).unwrap();
        assert_eq!(live.wait().0, 0);
        let mut left = vec![0; 100];
        let n = pipe.read(&mut left).unwrap();
        assert_eq!(std::str::from_utf8(&left[..n]).unwrap(), format!("next-{rest}"));
    }
    assert_eq!(folder.read("out"), "aaaa-1\naaaa-2,end\nbbbb-1\nbbbb-2,end\n");
}

/// Where the rest does not come, what was read is forwarded and counted, but not judged as a record.
#[test]
fn a_record_whose_rest_does_not_come_is_forwarded_unjudged() {
    let folder = Folder::new();
    let (state, out, sum) = (folder.path("state"), folder.path("out"), folder.path("sum"));
    for _ in 0..2 {
        let flags = ["--state", &*state, "-o", &out, "--summary", &sum];
        let mut live = Live::dedup(&flags);
        live.send("whole\npart");
        std::thread::sleep(Duration::from_millis(500));
        let started = Instant::now();
        live.signal("TERM");
        let (code, stderr) = live.wait();
        assert_eq!(code, 0, "{stderr}");
        assert!(started.elapsed() < Duration::from_secs(4));
        assert!(stderr.contains("told to end in the middle of this record"), "{stderr}");
        let sum: serde_json::Value = serde_json::from_str(&folder.read("sum")).unwrap();
        assert_eq!((&sum["missing_key"], &sum["read"]), (&1.into(), &2.into()));
    }
    // The second one is no duplicate of the first, and stands on a line of its own.
    assert_eq!(folder.read("out"), "whole\npart\npart");
    dedup_with(&["--state", &state, "-o", &out], "part\n").code(0).counts([1, 0, 0, 0, 0, 0]);
    assert_eq!(folder.read("out"), "whole\npart\npart\npart\n");
}

/// Hardening case 2: what comes of a record after its run has ended is not judged as a record by the next
/// one, of which the true one would be a duplicate.
#[test]
fn the_rest_of_a_record_that_comes_too_late_is_no_record() {
    // How records are read, what comes before the end of the first run and what after it, and what is
    // forwarded in the end.
    let cases = [
        ("", "whole\nsome-", "thing\nthing\n", "whole\nsome-\nthing\nthing\n"),
        (
            "--format csv --no-header --key 1",
            "0,x\n1,\"a\nb",
            "c\"\n1,y\n",
            "0,x\n1,\"a\nb\nc\"\n1,y\n",
        ),
        (
            "--key id",
            "{\"id\":1}\n{\"id\":",
            "2}\n{\"id\":2}\n",
            "{\"id\":1}\n{\"id\":\n2}\n{\"id\":2}\n",
        ),
        // Its line end alone.
        ("", "whole\nalso", "\nalso\n", "whole\nalso\n\nalso\n"),
    ];
    for (flags, before, after, forwarded) in cases {
        let folder = Folder::new();
        let (fifo, state, out) = (fifo(&folder), folder.path("state"), folder.path("out"));
        let again = folder.path("again");
        let mut pipe = File::options().read(true).write(true).open(&fifo).unwrap();
        let flags: Vec<_> = flags.split_whitespace().collect();
        let start = || {
            let more = [&*fifo, "--state", &state, "-o", &out, "--duplicates", &again];
            Live::dedup(&[&flags[..], &more].concat())
        };
        let first = before.split_inclusive('\n').next().unwrap();
        let mut live = start();
        pipe.write_all(before.as_bytes()).unwrap();
        wait_for(&out, |text| text.starts_with(first));
        live.signal("TERM");
        let (code, stderr) = live.wait();
        assert_eq!(code, 0, "{stderr}");
        assert_eq!(folder.read("out"), before);
        // One that is ended before anything comes changes nothing.
        let mut live = start();
        std::thread::sleep(Duration::from_millis(300));
        live.signal("TERM");
        // It may not even have listened.
        assert!(matches!(live.wait().0, 0 | -1));
        assert_eq!(folder.read("out"), before);
        let mut live = start();
        pipe.write_all(after.as_bytes()).unwrap();
        let last = after.lines().last().unwrap();
        wait_for(&out, |text| text.len() >= forwarded.len());
        live.signal("TERM");
        let (code, stderr) = live.wait();
        assert_eq!(code, 0, "{stderr}");
        assert_eq!(folder.read("out"), forwarded, "{stderr}");
        assert!(stderr.contains("the rest of a record"), "{stderr}");
        // After that, a record is a record again.
        let mut live = start();
        pipe.write_all(format!("{last}\n").as_bytes()).unwrap();
        wait_for(&again, |text| text == format!("{last}\n"));
        live.signal("TERM");
        assert_eq!(live.wait().0, 0);
        assert_eq!(folder.read("out"), forwarded);
    }
}

/// A compressed pipe that stalls: all that was read of it is decompressed and written, and the run ends.
#[test]
fn signals_end_a_run_whose_compressed_pipe_stalls() {
    for tool in ["gzip", "zstd"] {
        let folder = Folder::new();
        let (fifo, out) = (fifo(&folder), folder.path("out"));
        let mut pipe = File::options().read(true).write(true).open(&fifo).unwrap();
        let mut live = Live::dedup(&[&fifo, "-o", &out]);
        // Half of a file: what is whole in it comes out.
        let text = lines(0..200_000);
        let input = folder.file("in", &text);
        let Ok(packed) = Command::new(tool).args(["-c", &input]).output() else {
            println!("skipped: there is no {tool}");
            continue;
        };
        let half = &packed.stdout[..packed.stdout.len() / 2];
        pipe.write_all(half).unwrap();
        wait_for(&out, |text| text.len() > 1000);
        std::thread::sleep(Duration::from_millis(300));
        let started = Instant::now();
        live.signal("TERM");
        let (code, stderr) = live.wait();
        assert_eq!(code, 0, "{stderr}");
        assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
        let got = folder.read("out");
        assert!(text.starts_with(&got) && got.len() > text.len() / 4, "{tool}: {}", got.len());
    }
}

/// Of two that read one pipe, one may find that what was there a moment ago is gone. It must end all the same.
#[test]
fn runs_that_share_a_pipe_all_end() {
    let folder = Folder::new();
    let fifo = fifo(&folder);
    let mut pipe = File::options().read(true).write(true).open(&fifo).unwrap();
    let held = pipe.try_clone().unwrap();
    let mut runs: Vec<_> = (0..3).map(|_| Live::dedup(&[&fifo, "--last", "100"])).collect();
    let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let end = std::sync::Arc::clone(&done);
    let writer = std::thread::spawn(move || {
        let mut number = 0;
        while !end.load(std::sync::atomic::Ordering::Relaxed) {
            pipe.write_all(format!("{number}\n").as_bytes()).unwrap();
            number += 1;
        }
    });
    std::thread::sleep(Duration::from_millis(300));
    let (last, others) = runs.split_last_mut().unwrap();
    for run in others {
        run.signal("TERM");
        assert_eq!(run.wait().0, 0);
    }
    done.store(true, std::sync::atomic::Ordering::Relaxed);
    writer.join().unwrap();
    last.signal("TERM");
    assert_eq!(last.wait().0, 0);
    drop(held);
}

/// Hardening case 7.
#[test]
fn signals_end_a_run_whose_reader_is_stuck() {
    let folder = Folder::new();
    let input = folder.file("in", lines(0..400_000));
    let start = || {
        let mut command = Command::new(LATELY);
        command.args(["dedup", &input, "--state", &folder.path("state")]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(1500));
        child
    };
    let mut child = start();
    let started = Instant::now();
    signal(&child, "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("an output has taken nothing for 5 s"), "{said}");
    // What was not taken is not remembered.
    assert!(fs::metadata(folder.path("state")).is_err());
    let kinds = [("TERM", 15, 143), ("INT", 2, 130)];
    for (name, _, status) in kinds.into_iter().filter(|&(_, number, _)| !support::ignores(number)) {
        let mut child = start();
        signal(&child, name);
        std::thread::sleep(Duration::from_millis(200));
        signal(&child, name);
        let started = Instant::now();
        assert_eq!(child.wait().unwrap().code(), Some(status));
        assert!(started.elapsed() < Duration::from_secs(4));
    }
}

#[test]
fn a_hangup_saves() {
    if support::ignores(1) {
        println!("skipped: the tests are run by something that ignores hangups, as nohup does");
        return;
    }
    let folder = Folder::new();
    let state = folder.path("state");
    let mut live = Live::dedup(&["--state", &state]);
    live.send("a\n");
    live.expect("a\n", PATIENT);
    live.signal("HUP");
    assert_eq!(live.wait().0, 0);
    dedup_with(&["--state", &state], "a\nb\n").code(0).out("b\n");
}

/// What `nohup` does to hangups, and a script to the interrupts of what it starts in the background. They
/// used to be lost before the program listened, and to end it after that.
#[test]
fn signals_that_are_ignored_at_the_start_stay_so() {
    for name in ["HUP", "INT"] {
        let folder = Folder::new();
        let fifo = fifo(&folder);
        let out = folder.path("out");
        let mut pipe = File::options().read(true).write(true).open(&fifo).unwrap();
        let command = format!("trap '' {name}; exec '{LATELY}' dedup '{fifo}' -o '{out}'");
        let mut child = Command::new("bash").args(["-c", &command]).spawn().unwrap();
        let wait_for = |text: &str| {
            let started = Instant::now();
            while fs::read_to_string(&out).unwrap_or_default() != text {
                assert!(started.elapsed() < PATIENT);
                std::thread::sleep(Duration::from_millis(10));
            }
        };
        pipe.write_all(b"a\n").unwrap();
        wait_for("a\n");
        signal(&child, name);
        std::thread::sleep(Duration::from_millis(200));
        pipe.write_all(b"b\n").unwrap();
        wait_for("a\nb\n");
        signal(&child, "TERM");
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}
