//! Nothing written is lost, and nothing is glued: outputs across restarts, crashes, full disks,
//! signals and readers that go away.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
#![cfg(unix)]

mod signals;
#[path = "../support/mod.rs"]
mod support;

use std::env;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::{Folder, LATELY, Live, dedup_with, lately, summed};

const PATIENT: Duration = Duration::from_secs(60);

fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
}

fn lines(numbers: std::ops::Range<u32>) -> String {
    numbers.map(|number| format!("{number}\n")).collect()
}

fn wait_for(path: &str, is_there: impl Fn(&str) -> bool) {
    let started = Instant::now();
    loop {
        let text = fs::read_to_string(path).unwrap_or_default();
        if is_there(&text) {
            return;
        }
        assert!(started.elapsed() < PATIENT, "{text:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn fifo(folder: &Folder) -> String {
    let path = folder.path("fifo");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

/// Hardening case 1: 1,000 lines became 5.
#[test]
fn outputs_stay_when_the_state_was_never_saved() {
    let folder = Folder::new();
    let (state, out) = (folder.path("state"), folder.path("out"));
    let flags = ["--state", &*state, "-o", &out];
    let mut live = Live::dedup(&flags);
    live.send(&lines(0..1000));
    let started = Instant::now();
    while fs::read_to_string(&out).unwrap_or_default() != lines(0..1000) {
        assert!(started.elapsed() < PATIENT);
        std::thread::sleep(Duration::from_millis(10));
    }
    live.kill();
    dedup_with(&flags, lines(1000..1005)).code(0);
    assert_eq!(folder.read("out"), lines(0..1005));
    // A damaged state that was moved away, as is advised.
    fs::write(&state, "damaged").unwrap();
    dedup_with(&flags, "a\n").code(1).says("move the file away");
    fs::remove_file(&state).unwrap();
    dedup_with(&flags, "a\n").code(0);
    assert_eq!(folder.read("out"), lines(0..1005) + "a\n");
    // One that cannot be saved.
    fs::remove_file(&state).unwrap();
    fs::create_dir(folder.path("state.new")).unwrap();
    dedup_with(&flags, "b\n").code(1);
    dedup_with(&flags, "c\n").code(1);
    assert_eq!(folder.read("out"), lines(0..1005) + "a\nb\nc\n");
    dedup_with(&[&flags[..], &["--overwrite"]].concat(), "d\n").code(1);
    assert_eq!(folder.read("out"), "d\n");
    // Without a state everything is replaced, as ever.
    dedup_with(&["-o", &out], "e\n").code(0);
    assert_eq!(folder.read("out"), "e\n");
}

#[test]
fn the_files_of_an_index_stay_too() {
    let folder = Folder::new();
    let (state, missing) = (folder.path("state"), folder.file("missing", "old\n"));
    let flags = ["index", "--key", "k", "--format", "ndjson", "--last", "10"];
    let flags = [&flags[..], &["--state", &state, "--missing", &missing]].concat();
    lately(&flags, "{\"k\":1}\n{\"x\":1}\n").code(0);
    assert_eq!(folder.read("missing"), "old\n{\"x\":1}\n");
}

#[test]
fn a_file_that_is_cut_off_meanwhile_gets_no_hole() {
    let folder = Folder::new();
    let out = folder.path("out");
    let mut live = Live::dedup(&["-o", &out]);
    let wait_for = |text: &str| {
        let started = Instant::now();
        while fs::read_to_string(&out).unwrap_or_default() != text {
            assert!(started.elapsed() < PATIENT, "{:?}", fs::read_to_string(&out));
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    live.send("a\nb\n");
    wait_for("a\nb\n");
    File::options().write(true).open(&out).unwrap().set_len(0).unwrap();
    live.send("c\n");
    wait_for("c\n");
}

/// Hardening case 2: `a`, `bc`, `d`.
#[test]
fn what_ends_in_mid_line_is_ended_before_more_is_appended() {
    let folder = Folder::new();
    let (state, out, twice) = (folder.path("state"), folder.path("out"), folder.path("twice"));
    let flags = ["--state", &*state, "-o", &out, "--duplicates", &twice];
    dedup_with(&flags, "a\na\nb").code(0);
    assert_eq!(folder.read("out"), "a\nb");
    dedup_with(&flags, "b\nb\na").code(0);
    // Nothing follows in the one, and nothing is added to it.
    assert_eq!((folder.read("out"), folder.read("twice")), ("a\nb".into(), "a\nb\nb\na".into()));
    dedup_with(&flags, "c\nd\na\n").code(0);
    assert_eq!(folder.read("out"), "a\nb\nc\nd\n");
    assert_eq!(folder.read("twice"), "a\nb\nb\na\na\n");
}

/// Hardening case 2: `4554` and `101` became 4554101.
#[test]
fn a_full_disk_leaves_no_part_of_a_record() {
    let folder = Folder::new();
    let input = folder.file("in", lines(0..200_000));
    // A limit to the size of files stands for the end of a disk: 100 blocks of 1 KiB.
    let command = format!(
        "trap '' XFSZ; cd '{}'; ulimit -f 100; exec '{LATELY}' dedup in --state s -o out --summary sum",
        folder.path("")
    );
    let run = Command::new("bash").args(["-c", &command]).stdin(Stdio::null()).output().unwrap();
    let stderr = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("cannot write out"), "{stderr}");
    let written = folder.read("out");
    assert!(written.is_empty() || written.ends_with('\n'), "{written}");
    assert!(lines(0..200_000).starts_with(&written));
    assert!(fs::metadata(folder.path("s")).is_err(), "nothing unwritten is remembered");
    let sum: serde_json::Value = serde_json::from_str(&folder.read("sum")).unwrap();
    assert_eq!(sum["fresh"], written.lines().count());
    assert_eq!(sum["bytes_out"], written.len());
    assert!(sum["unwritten"].as_u64().unwrap() > 0);
    // The next run has everything after it.
    let flags = ["--state", &folder.path("s"), "-o", &folder.path("out")];
    dedup_with(&[&[&*input], &flags[..]].concat(), "").code(0);
    assert_eq!(folder.read("out"), written + &lines(0..200_000));
}

#[test]
fn nothing_is_counted_as_fresh_that_was_not_written() {
    for count in [10, 300_000] {
        let run = summed(&["dedup", "-o", "/dev/full"], lines(0..count));
        run.code(1).says("cannot write /dev/full");
        assert_eq!(run.count("fresh"), 0);
        assert!(run.count("unwritten") >= 10 && run.count("read") == run.count("unwritten"));
        assert_eq!(run.count("bytes_out"), 0);
    }
}

/// A record comes out before the next one goes in, at once: not when a timer next looks for it.
#[test]
fn a_record_of_a_live_stream_comes_out_at_once() {
    let timed = ["--key", "k", "--time", "t", "--within", "1h", "--format", "ndjson"];
    for flags in [&[][..], &["--within", "10s"], &timed] {
        let mut child = support::spawn(Command::new(LATELY).arg("dedup").args(flags));
        let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut took = Vec::new();
        for number in 0..200 {
            let record = format!("{{\"t\":{},\"k\":{number}}}\n", 1_700_000_000 + number);
            let started = Instant::now();
            stdin.write_all(record.as_bytes()).unwrap();
            let mut got = vec![0; record.len()];
            stdout.read_exact(&mut got).unwrap();
            assert_eq!(std::str::from_utf8(&got).unwrap(), record);
            took.push(started.elapsed());
        }
        drop(stdin);
        assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
        took.sort();
        println!("{flags:?}: median {:?}, the slowest {:?}", took[100], took[199]);
        // A timer of 20 ms would be twice as slow, however fast the machine is.
        assert!(took[100] < Duration::from_millis(10), "{:?}", took[100]);
    }
}

/// A reader in a process of its own, which opens the pipe itself. The reading end of a pipe of this process
/// would be inherited, until it executes, by whatever another test starts at that moment; then the pipe still
/// has a reader although this one has gone.
fn reader(script: &str, pipe: &str) -> (Child, File) {
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh", pipe]).stdin(Stdio::null()).stdout(Stdio::piped());
    let child = command.spawn().unwrap();
    // This waits until the reader has opened it.
    (child, File::options().write(true).open(pipe).unwrap())
}

#[test]
fn a_reader_that_goes_away_leaves_a_state_that_does_not_lie() {
    let folder = Folder::new();
    let (state, sum) = (folder.path("state"), folder.path("sum"));
    let pipe = fifo(&folder);
    let start = |stdout: File| {
        let mut command = Command::new(LATELY);
        command.args(["dedup", "--state", &state, "--summary", &sum]);
        command.stdin(Stdio::piped()).stdout(stdout).stderr(Stdio::piped()).spawn().unwrap()
    };
    // All that was judged was written by the time the reader went away.
    let (reads, stdout) = reader("exec head -c 4 < \"$1\"", &pipe);
    let mut child = start(stdout);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"a\nb\n").unwrap();
    assert_eq!(reads.wait_with_output().unwrap().stdout, b"a\nb\n");
    // It may have ended by then.
    let _ = stdin.write_all(b"c\n");
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &*output.stderr), (Some(0), &b""[..]));
    let summary: serde_json::Value = serde_json::from_str(&folder.read("sum")).unwrap();
    assert_eq!((&summary["reader_left"], &summary["state_saved"]), (&true.into(), &true.into()));
    drop(stdin);
    dedup_with(&["--state", &state], "a\nb\nc\n").code(0).out("c\n");
    // Some of it was not: the state of the last save stands, and the summary says so.
    let (mut reads, stdout) = reader("exec sleep 600 < \"$1\"", &pipe);
    let mut child = start(stdout);
    let mut stdin = child.stdin.take().unwrap();
    let feeder = std::thread::spawn(move || drop(stdin.write_all(lines(0..400_000).as_bytes())));
    std::thread::sleep(Duration::from_millis(1500));
    reads.kill().unwrap();
    reads.wait().unwrap();
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    assert_eq!((output.status.code(), &*output.stderr), (Some(0), &b""[..]));
    let summary: serde_json::Value = serde_json::from_str(&folder.read("sum")).unwrap();
    assert_eq!((&summary["reader_left"], &summary["state_saved"]), (&true.into(), &false.into()));
    assert!(summary["unwritten"].as_u64().unwrap() > 0);
    dedup_with(&["--state", &state], lines(0..400_000)).code(0).out(&lines(0..400_000));
}

/// A save that failed is no trouble once a later one worked.
#[test]
fn what_was_saved_in_the_end_was_saved() {
    let folder = Folder::new();
    let state = folder.path("state");
    fs::create_dir(folder.path("state.new")).unwrap();
    let mut live = Live::dedup(&["--state", &state, "--state-every", "10ms"]);
    live.send("a\n");
    live.expect_said("the stream continues without it", PATIENT);
    fs::remove_dir(folder.path("state.new")).unwrap();
    live.send("b\n");
    live.expect("a\nb\n", PATIENT);
    live.signal("TERM");
    let (code, stderr) = live.wait();
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("it was saved since"), "{stderr}");
    dedup_with(&["--state", &state], "a\nb\nc\n").out("c\n");
}

#[test]
fn more_threads_than_are_of_use_are_refused() {
    for threads in ["0", "257", "100000"] {
        lately(&["dedup", "--threads", threads], "a\n").code(2).says("1 to 256");
    }
    dedup_with(&["--threads", "256"], "a\na\n").code(0).out("a\n");
}

#[test]
fn nothing_but_invalid_records_is_a_failure() {
    let run = dedup_with(&["--key", "id", "--format", "ndjson"], "x\ny\n");
    run.code(1).says("no record could be read: 2 records invalid");
    dedup_with(&["--key", "id", "--format", "ndjson"], "x\n{\"id\":1}\n").code(0);
}

#[cfg(target_os = "linux")]
#[test]
fn held_records_take_no_more_memory_than_allowed() {
    let flags =
        "--format columns --key 1 --within 1h --best 1:max --hold 1h --memory 64MiB -o /dev/null";
    let mut live = Live::dedup(&flags.split_whitespace().collect::<Vec<_>>());
    for from in (0..1_000_000).step_by(50_000) {
        live.send(&lines(from..from + 50_000));
    }
    std::thread::sleep(Duration::from_millis(300));
    // 1 GB at four million; the limit, and what the program takes in any case.
    assert!(live.peak_memory() < 120 << 20, "{}", live.peak_memory());
}

#[test]
fn formats_with_a_key_of_their_own_are_indexed_by_it() {
    let folder = Folder::new();
    let reads = "timestamp,reader,antenna,rssi,epc\n\
        2024-01-01T00:00:00Z,r,1,-50,3034257BF7194E4000001A85\n\
        2024-01-01T00:00:01Z,r,1,-50,3034257BF7194E4000001A86\n";
    let input = folder.file("reads.csv", reads);
    let index = folder.path("tags.index");
    let run = summed(&["index", &input, "--within", "10m", "--state", &index], "");
    run.code(0);
    assert_eq!((run.count("indexed"), run.count("missing_key")), (2, 0), "{}", run.stderr);
    lately(&["ask", &index, "--key", "3034257BF7194E4000001A85"], "").code(0);
    // Also where they come on standard input, however slowly.
    let other = folder.path("other.index");
    let flags = ["index", "--within", "10m", "--state", &other];
    let mut live = Live::start(&flags);
    for piece in [&reads[..30], &reads[30..80], &reads[80..]] {
        live.send(piece);
        std::thread::sleep(Duration::from_millis(100));
    }
    live.close();
    let (code, stderr) = live.wait();
    assert!(code == 0 && stderr.contains("2 records: 2 indexed"), "{stderr}");
    lately(&["ask", &other, "--key", "3034257BF7194E4000001A85"], "").code(0);
    lately(&["ask", &other, "--key", "3034257BF7194E4000001A99"], "").code(1);
    let again = ["index", "-", "--within", "10m", "--state", &other];
    let run = summed(&again, reads);
    assert_eq!((run.count("indexed"), run.count("missing_key")), (2, 0), "{}", run.stderr);
    // A signal ends one that waits for its first line.
    let third = folder.path("third.index");
    let mut live = Live::start(&["index", "--within", "10m", "--state", &third]);
    live.send("timestamp,reader,");
    std::thread::sleep(Duration::from_millis(300));
    live.signal("TERM");
    assert_eq!(live.wait().0, 0);
    // What is no such format is read as ever.
    let numbers = folder.path("numbers.index");
    let run = summed(&["index", "--last", "10", "--state", &numbers], "17\n18\nx\n");
    assert_eq!((run.count("indexed"), run.count("missing_key")), (2, 1), "{}", run.stderr);
    let ranges = folder.file("ranges", "3034257BF7194E4000001A86\n");
    let watched: String = reads
        .lines()
        .take(1)
        .chain(reads.lines().skip(2))
        .map(|line| format!("{line}\n"))
        .collect();
    lately(&["watch", "--ranges", &ranges], reads).code(0).out(&watched);
    let run = lately(&["watch", &input, "--ranges", &ranges], "");
    run.code(0).out(&watched);
    // That nothing matches is no failure.
    let none = folder.file("none", "3034257BF7194E4000001A87\n");
    lately(&["watch", &input, "--ranges", &none], "").code(0);
}

#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn huge_pages_are_asked_for_once_and_change_no_answer() {
    const ADVICE: &str = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1";
    let enabled = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    let on_request = enabled.is_ok_and(|enabled| enabled.contains("[madvise]"));
    // Whoever runs the test may have decided already.
    let is_open =
        ["GLIBC_TUNABLES", "LATELY_HUGE_PAGES"].iter().all(|name| env::var_os(name).is_none());
    for (arguments, asks) in [(&[][..], on_request && is_open), (&["--no-huge-pages"][..], false)] {
        let mut run = Live::dedup(arguments);
        run.send("a\na\nb\n");
        run.expect("a\nb\n", PATIENT);
        if is_open {
            assert_eq!(run.environment().contains(&ADVICE.to_owned()), asks, "{arguments:?}");
        }
        run.close();
        assert_eq!(run.wait().0, 0);
        let text = lines(0..20_000) + &lines(10_000..30_000);
        dedup_with(arguments, text).code(0).out(&lines(0..30_000));
    }
}
