//! Acceptance cases S1, S2, S5 and S6, signals, and slow pipes.

#![allow(clippy::unwrap_used, clippy::panic, non_snake_case, reason = "tests, named after cases")]
#![cfg(unix)]

mod support;

use std::fs::{self, File};
use std::process::{Command, Stdio};
use std::time::Duration;
use support::{Folder, LATELY, Live, dedup, dedup_with, lately};

/// What must come without more input is waited for this long: it comes at once or never, and a busy
/// machine is no reason to fail.
const PATIENT: Duration = Duration::from_secs(20);

/// 2022-01-01.
const Y2022: u64 = 1_640_995_200;

/// A run with its standard output on a device that is always full.
fn onto_full_device(arguments: &[&str]) -> (i32, String) {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = Command::new(LATELY)
        .arg("dedup")
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::from(full))
        .output()
        .unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn case_S1_what_could_not_be_handed_on_is_not_remembered() {
    let folder = Folder::new();
    let (input, state) = (folder.file("in", "a\nb\n"), folder.path("state"));
    let arguments = [&*input, "--state", &state];
    let (code, stderr) = onto_full_device(&arguments);
    assert_eq!(code, 1);
    assert!(stderr.contains("cannot write standard output: "), "{stderr}");
    assert!(fs::metadata(&state).is_err());
    // The retry is accepted; from then on they are known.
    dedup_with(&arguments, "").out("a\nb\n").code(0);
    dedup_with(&arguments, "").out("").counts([0, 2, 0, 0, 0, 0]);
    // A state that is there is not advanced either.
    let before = fs::read(&state).unwrap();
    let more = folder.file("more", "a\nc\n");
    assert_eq!(onto_full_device(&[&more, "--state", &state, "--state-every", "0s"]).0, 1);
    assert_eq!(fs::read(&state).unwrap(), before);
    dedup_with(&[&more, "--state", &state], "").out("c\n");
    // The same of a class that has an output of its own.
    let run = dedup_with(&[&input, "--state", &state, "--duplicates", "/dev/full"], "");
    run.code(1).says("cannot write /dev/full");
}

#[test]
fn case_S2_a_key_expires_after_a_restart() {
    let folder = Folder::new();
    let state = folder.path("state");
    let flags = format!("--key k --time t --time-format s --within 10s --state {state}");
    dedup(&flags, "t,k\n100,a\n").out("t,k\n100,a\n");
    dedup(&flags, "t,k\n109,a\n").out("t,k\n");
    dedup(&flags, "t,k\n120,a\n").out("t,k\n120,a\n");
    // The clock resumes, too: what was late before the restart is late after it.
    dedup(&flags, "t,k\n90,b\n").counts([0, 0, 1, 0, 0, 0]);
    dedup(&flags, "t,k\n90000000,b\n89999999,b\n120,c\n").counts([1, 1, 1, 0, 0, 0]);
}

#[test]
fn case_S2_a_wild_stamp_after_a_restart_is_still_wild() {
    let folder = Folder::new();
    let flags = format!("--key k --time t --within 10s --state {}", folder.path("state"));
    dedup(&flags, "t,k\n1640995200,a\n").counts([1, 0, 0, 0, 0, 0]);
    dedup(&flags, "t,k\n1641995200,w\n1640995201,a\n1640995202,b\n1640995203,c\n")
        .counts([2, 1, 0, 0, 0, 1]);
}

#[test]
fn case_S5_a_state_that_cannot_be_saved_is_loud_and_the_stream_goes_on() {
    let folder = Folder::new();
    let nowhere = folder.path("no/such/folder/state");
    let run = dedup_with(&["--state", &nowhere], "a\nb\na\n");
    run.out("a\nb\n").code(1).says(&nowhere).says("the state could not be saved");
    assert_eq!(run.count("state_errors"), 1);
    // It is told at once, not when the stream ends.
    let mut live = Live::dedup(&["--state", &nowhere, "--state-every", "10ms"]);
    live.send("a\n");
    live.expect("a\n", PATIENT);
    std::thread::sleep(Duration::from_millis(100));
    live.send("b\n");
    live.expect("a\nb\n", PATIENT);
    live.signal("TERM");
    let (code, stderr) = live.wait();
    assert_eq!(code, 1);
    assert!(stderr.contains("the stream continues without it"), "{stderr}");
}

#[test]
fn case_S6_a_state_that_is_none_is_refused() {
    let folder = Folder::new();
    let state = folder.path("state");
    dedup_with(&["--state", &state], "a\nb\n").code(0);
    let good = fs::read(&state).unwrap();
    let mut future = good.clone();
    future[8] = 99;
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 4;
    let longest = [&good[..10], &[0xFF; 64]].concat();
    for (bytes, words) in [
        (&good[..good.len() - 1], "cut off or damaged"),
        (&good[..5], "not a Lately state"),
        (b"", "not a Lately state"),
        (b"PK\x03\x04 something else", "not a Lately state"),
        (&flipped, "checksum"),
        (&longest, "damaged"),
        (&future, "format version 99"),
    ] {
        fs::write(&state, bytes).unwrap();
        let run = dedup_with(&["--state", &state], "c\n");
        run.code(1).out("").says(&state).says(words).says("move the file away");
        assert_eq!(fs::read(&state).unwrap(), bytes, "it must not be overwritten");
        lately(&["inspect", &state], "").code(1).says(words);
    }
    fs::write(&state, &good).unwrap();
    for other in ["--key a", "--within 5s", "--last 5", "--seed 4", "--renew fresh"] {
        let run = dedup(&format!("--state {state} {other}"), "a\n1\n");
        run.code(1).out("").says("was made with other settings");
    }
    let text = lately(&["inspect", &state], "");
    assert!(text.code(0).text().contains("everything ever seen"), "{}", text.text());
    let json = lately(&["inspect", "--json", &state], "");
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["held"], 0);
    assert!(json["filter"]["memory_bytes"].as_u64().unwrap() > 0);
    let folder_as_state = folder.path("");
    dedup_with(&["--state", &folder_as_state], "a\n").code(1).out("");
}

#[test]
fn a_state_of_event_times_is_not_taken_for_one_of_arrival() {
    let folder = Folder::new();
    let state = folder.path("state");
    dedup(&format!("--key k --within 10s --state {state}"), "t,k\n5,a\n").code(0);
    let run = dedup(&format!("--key k --time t --within 10s --state {state}"), "t,k\n5,a\n");
    run.code(1).says("other settings");
}

#[test]
fn signals_end_the_run_in_good_order() {
    for (signal, _) in [("TERM", 15), ("INT", 2)].into_iter().filter(|one| !support::ignores(one.1))
    {
        let folder = Folder::new();
        let state = folder.path("state");
        let mut live = Live::dedup(&["--state", &state]);
        live.send("a\nb\na\n");
        live.expect("a\nb\n", PATIENT);
        live.send("c\n");
        live.signal(signal);
        let (code, stderr) = live.wait();
        assert_eq!(code, 0, "{signal}: {stderr}");
        let got = live.got();
        assert!(got == "a\nb\nc\n" || got == "a\nb\n", "{got:?}");
        // Whatever was handed on is remembered, whatever was not is not.
        let run = dedup_with(&["--state", &state], "a\nb\nc\n");
        assert_eq!(got + run.text(), "a\nb\nc\n");
    }
}

#[test]
fn a_signal_loses_nothing_of_what_was_read() {
    // What the pipe has handed over is gone from it, so it must come out, whatever is on its way.
    let folder = Folder::new();
    let fifo = folder.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut live = Live::dedup(&[&fifo, "--key", "k", "--time", "t", "--within", "1s"]);
    let mut pipe = File::options().read(true).write(true).open(&fifo).unwrap();
    let rows: String = (Y2022..Y2022 + 3000).map(|i| format!("{i},k{i}\n")).collect();
    std::io::Write::write_all(&mut pipe, format!("t,k\n{rows}").as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(8));
    live.signal("TERM");
    assert_eq!(live.wait().0, 0);
    let mut left = vec![0; 1 << 17];
    // One byte more, so that reading what is left does not wait.
    std::io::Write::write_all(&mut pipe, b"#").unwrap();
    let n = std::io::Read::read(&mut pipe, &mut left).unwrap();
    let all = live.got() + std::str::from_utf8(&left[..n - 1]).unwrap();
    assert_eq!(all, format!("t,k\n{rows}"));
}

#[test]
fn usr1_saves() {
    let folder = Folder::new();
    let state = folder.path("state");
    let mut live = Live::dedup(&["--state", &state]);
    live.send("a\n");
    live.expect("a\n", PATIENT);
    live.signal("USR1");
    let started = std::time::Instant::now();
    while fs::metadata(&state).is_err() {
        assert!(started.elapsed() < PATIENT);
        std::thread::sleep(Duration::from_millis(10));
    }
    live.kill();
    dedup_with(&["--state", &state], "a\nb\n").out("b\n");
}

#[test]
fn a_slow_pipe_gets_its_records_at_once() {
    for flags in ["", "--within 1h", "--key k --time t --within 10s"] {
        let flags: Vec<_> = flags.split_whitespace().collect();
        let mut live = Live::dedup(&flags);
        live.send("t,k\n");
        // It takes a moment to start.
        live.expect("t,k\n", PATIENT);
        let mut expected = String::from("t,k\n");
        for i in 0..5 {
            let record = format!("{},x{i}\n", 1_640_995_200 + i);
            live.send(&record);
            expected += &record;
            live.expect(&expected, PATIENT);
        }
        // A record in two parts.
        live.send("1640995300,");
        std::thread::sleep(Duration::from_millis(50));
        live.expect(&expected, PATIENT);
        live.send("end\n");
        live.expect(&(expected + "1640995300,end\n"), PATIENT);
    }
}

#[test]
fn a_steady_pipe_gets_its_records_at_once_too() {
    let mut live = Live::dedup(&[]);
    live.send("begin\n");
    live.expect("begin\n", PATIENT);
    for i in 0..200 {
        live.send(&format!("{i}\n"));
        std::thread::sleep(Duration::from_millis(5));
    }
    // Without a pause in it, a second of records must not all be in some buffer.
    assert!(live.got().lines().count() > 100, "{}", live.got().lines().count());
}

#[test]
fn a_held_record_does_not_wait_for_a_clock_that_stands_still() {
    let flags = "--key k --time t --within 10s --best r:max --hold 200ms";
    let mut live = Live::dedup(&flags.split_whitespace().collect::<Vec<_>>());
    live.send("t,k,r\n1640995200,a,1\n1640995200.1,a,2\n");
    live.expect("t,k,r\n1640995200.1,a,2\n", PATIENT);
}

#[test]
fn held_records_outlive_a_crash() {
    let folder = Folder::new();
    let state = folder.path("state");
    let flags = format!("--key k --time t --within 10s --best r:max --hold 20s --state {state}");
    let flags: Vec<_> = flags.split_whitespace().collect();
    let mut live = Live::dedup(&[&flags[..], &["--state-every", "1ms"]].concat());
    live.send("t,k,r\n1640995200,a,1\n1640995201,b,1\n");
    std::thread::sleep(Duration::from_millis(1500));
    live.kill();
    assert_eq!(live.got(), "t,k,r\n");
    let bare = format!("--key k --time t --within 10s --state {state}");
    dedup(&bare, "t,k,r\n").code(2).says("2 records that wait under --best");
    let run = dedup_with(&flags, "t,k,r\n1640995202,a,7\n1640995230,c,1\n");
    run.out("t,k,r\n1640995202,a,7\n1640995201,b,1\n1640995230,c,1\n");
}

#[test]
fn an_output_that_is_an_input_is_refused() {
    let folder = Folder::new();
    let input = folder.file("in", "a\na\n");
    for flag in ["--output", "--duplicates", "--summary"] {
        lately(&["dedup", &input, flag, &input], "").code(2).says("are the same file");
        assert_eq!(folder.read("in"), "a\na\n");
    }
    let out = folder.path("out");
    lately(&["dedup", &input, "-o", &out, "--late", &out], "").code(2).says("are the same file");
    lately(&["dedup", &input, "-o", &out], "").code(0).out("");
    assert_eq!(folder.read("out"), "a\n");
}

#[test]
fn a_second_interrupt_ends_at_once() {
    let folder = Folder::new();
    // An output that nobody reads: the first signal cannot end this.
    let lines: String = (0..200_000).map(|i| format!("{i}\n")).collect();
    let input = folder.file("in", lines);
    let mut child =
        Command::new(LATELY).args(["dedup", &input]).stdout(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    let (name, status) = if support::ignores(2) { ("TERM", 143) } else { ("INT", 130) };
    let interrupt = || {
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
        std::thread::sleep(Duration::from_millis(100));
    };
    interrupt();
    interrupt();
    assert_eq!(child.wait().unwrap().code(), Some(status));
}

#[test]
fn last_values_outlive_a_restart() {
    let folder = Folder::new();
    let flags = format!("--key k --pass-on-change v --state {}", folder.path("state"));
    dedup(&flags, "k,v\na,1\nb,1\n").counts([2, 0, 0, 0, 0, 0]);
    dedup(&flags, "k,v\na,1\nb,2\n").counts([1, 1, 0, 0, 0, 0]).out("k,v\nb,2\n");
    let flags = format!("--last 2 --state {}", folder.path("count"));
    dedup(&flags, "a\nb\n").code(0);
    dedup(&flags, "a\nc\na\nb\n").out("c\nb\n");
}

#[test]
fn a_state_keeps_its_filter_and_says_so() {
    let folder = Folder::new();
    let state = folder.path("state");
    let flags = ["--state", &*state, "--memory", "16KiB"];
    let keys = |from: u32, to: u32| (from..to).map(|i| format!("{i}\n")).collect::<String>();
    dedup_with(&flags, keys(0, 3000)).code(0);
    let run = dedup_with(&flags, keys(2000, 6000));
    assert!(!run.stderr.contains("structure stored in"), "{}", run.stderr);
    let run = dedup_with(&["--state", &state, "--memory", "16MiB"], keys(5999, 6001));
    run.says("the size, error rate and structure stored in").counts([1, 1, 0, 0, 0, 0]);
    assert!(run.summary["filter"]["memory_bytes"].as_u64().unwrap() <= 16 << 10);
}

#[test]
fn a_state_is_of_one_run_at_a_time() {
    let folder = Folder::new();
    let state = folder.path("state");
    let mut live = Live::dedup(&["--state", &state]);
    live.send("a\n");
    live.expect("a\n", PATIENT);
    let run = lately(&["dedup", "--state", &state], "b\n");
    run.code(1).out("").says(&state).says("in use by another lately");
    // However the other ends, what it leaves behind locks nothing.
    live.kill();
    assert!(fs::metadata(folder.path("state.lock")).is_ok());
    dedup_with(&["--state", &state], "b\n").code(0).out("b\n");
}

/// Hardening case 6: a run on a link to the state of another run overwrote what that one remembered.
#[test]
fn two_names_of_one_state_are_one_state() {
    let folder = Folder::new();
    let (state, link) = (folder.path("s"), folder.path("sl"));
    std::os::unix::fs::symlink(&state, &link).unwrap();
    let mut live = Live::dedup(&["--state", &state]);
    live.send("a\n");
    live.expect("a\n", PATIENT);
    let run = lately(&["dedup", "--state", &link], "b\n");
    run.code(1).out("").says(&link).says("in use by another lately");
    live.signal("TERM");
    assert_eq!(live.wait().0, 0);
    dedup_with(&["--state", &link], "a\nb\n").code(0).out("b\n");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    dedup_with(&["--state", &state], "a\nb\n").code(0).out("");
}

/// Hardening case 6: a link in the place of the new file made a save overwrite the file it leads to.
#[test]
fn a_state_is_not_written_through_a_link_that_was_put_there() {
    let folder = Folder::new();
    let (state, victim) = (folder.path("s"), folder.file("victim", "precious"));
    dedup_with(&["--state", &state], "a\n").code(0);
    let before = fs::read(&state).unwrap();
    std::os::unix::fs::symlink(&victim, folder.path("s.new")).unwrap();
    let run = dedup_with(&["--state", &state], "b\n");
    run.code(1).out("b\n").says("s.new").says("in the way");
    assert_eq!(folder.read("victim"), "precious");
    assert_eq!(fs::read(&state).unwrap(), before);
    assert!(fs::symlink_metadata(&state).unwrap().is_file());
}

#[test]
fn a_state_without_a_folder_is_told_at_the_start() {
    let folder = Folder::new();
    let nowhere = folder.path("no/such/folder/state");
    let mut live = Live::dedup(&["--state", &nowhere, "--state-every", "1h"]);
    live.send("a\n");
    live.expect("a\n", PATIENT);
    live.expect_said("the state may not be saved", PATIENT);
}

#[test]
fn times_and_tables_read_otherwise_are_other_settings() {
    let folder = Folder::new();
    let flags = |state: &str, more: &str| {
        format!("--key 1 --time 2 --no-header --within 5s --state {}{more}", folder.path(state))
    };
    dedup(&flags("a", ""), "x,2025-01-06 08:00:20\n").code(0);
    for more in [" --time-zone America/Chicago", " --time-format rfc3339"] {
        let run = dedup(&flags("a", more), "x,2025-01-06 08:00:20\n");
        run.code(1)
            .out("")
            .says("other settings")
            .says(more.trim().split(' ').next_back().unwrap());
    }
    let bare = flags("a", "").replace(" --no-header", "");
    dedup(&bare, "1,2\nx,2025-01-06 08:00:20\n").code(1).says("no-header");
}

#[test]
fn trouble_in_a_live_stream_is_told_when_it_comes() {
    let mut live = Live::dedup(&["--key", "k", "--time", "t", "--within", "5s"]);
    live.send("{\"t\":1640995200,\"k\":\"a\"}\n");
    live.expect("{\"t\":1640995200,\"k\":\"a\"}\n", PATIENT);
    for (record, words) in [
        ("{\n", "-:2: "),
        ("{\"t\":1640995200}\n", "-:4: "),
        ("{\"t\":1640995100,\"k\":\"b\"}\n", "-:6: the first late record"),
        // The clock believes a leap only if the records that follow bear it out.
        (
            "{\"t\":1740995200,\"k\":\"c\"}\n{\"t\":1640995201,\"k\":\"d\"}\n{\"t\":1640995202,\"k\":\"e\"}\n",
            "-:8: the first record with a time too far",
        ),
    ] {
        assert!(!live.said().contains(words), "{}", live.said());
        live.send(record);
        live.expect_said(words, PATIENT);
        // Once.
        live.send(record);
    }
    live.expect_said("raise --lateness", PATIENT);
    live.signal("TERM");
    let (code, stderr) = live.wait();
    assert_eq!(code, 0);
    for words in ["the first invalid record", "the first record without a key", "the first late"] {
        assert_eq!(stderr.matches(words).count(), 1, "{stderr}");
    }
    for flag in ["forget", "refuse"] {
        let flags = ["--expect", "64", "--on-full", flag, "--state-every", "1h"];
        let mut live = Live::dedup(&flags);
        live.send(&(0..100_000).map(|i| format!("{i}\n")).collect::<String>());
        live.expect_said("the filter is full and", PATIENT);
    }
}

#[test]
fn a_full_filter_says_what_helps() {
    let folder = Folder::new();
    let state = folder.path("state");
    let flags = ["--memory", "16KiB", "--state", &*state];
    let keys: String = (0..50_000).map(|i| format!("{i}\n")).collect();
    dedup_with(&flags, &keys).code(0).says("allow more --memory");
    let run = dedup_with(&flags, &keys);
    run.code(0).says("begin a new state with more");
    assert!(!run.stderr.contains("allow more --memory"), "{}", run.stderr);
}

#[test]
fn a_held_record_keeps_its_mark_through_a_restart() {
    let folder = Folder::new();
    let state = folder.path("state");
    let flags =
        format!("--key k --time t --within 1h --best r:max --hold 1h --mark --state {state}");
    let flags: Vec<_> = flags.split_whitespace().collect();
    let mut live = Live::dedup(&[&flags[..], &["--state-every", "1ms"]].concat());
    live.send("k,t,r\na,1640995200,1\n");
    std::thread::sleep(Duration::from_millis(800));
    live.kill();
    let run = dedup_with(&flags, "{\"k\":\"b\",\"t\":1640995201,\"r\":1}\n");
    run.out("a,1640995200,1,fresh\n{\"k\":\"b\",\"t\":1640995201,\"r\":1,\"lately\":\"fresh\"}\n");
}

#[test]
fn records_held_by_event_time_do_not_meet_the_time_of_day_after_a_restart() {
    let folder = Folder::new();
    let state = folder.path("state");
    let flags = format!("--key k --time t --within 1h --best r:max --hold 1h --state {state}");
    let flags: Vec<_> = flags.split_whitespace().collect();
    let mut live = Live::dedup(&[&flags[..], &["--state-every", "1ms"]].concat());
    live.send("k,t,r\na,1640995200,1\n");
    std::thread::sleep(Duration::from_millis(800));
    live.kill();
    assert_eq!(live.got(), "k,t,r\n");
    let mut live = Live::dedup(&flags);
    // Some silence before the first record.
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(live.got(), "");
    live.send("k,t,r\na,1640995201,2\n");
    live.signal("TERM");
    assert_eq!(live.wait().0, 0);
    assert_eq!(live.got(), "k,t,r\na,1640995201,2\n");
}

#[test]
fn keys_expire_after_a_clock_that_was_far_ahead() {
    // Reads of an RFID reader with a wrong date, and then records that bring no time.
    let folder = Folder::new();
    let row = |n: u32| format!("2040-01-01T00:00:0{n}Z,r,1,-50,E{n}\n");
    let rows = (0..9).map(row).collect::<String>();
    let rows = format!("timestamp,reader,antenna,rssi,epc\n{rows}");
    let early = folder.file("2040.csv", &rows);
    let state = folder.path("state");
    let flags = format!("--key epc --within 1s --state {state}");
    let flags: Vec<_> = flags.split_whitespace().collect();
    let first = dedup_with(&[&[&*early], &flags[..]].concat(), "");
    first.counts([9, 0, 0, 0, 0, 0]);
    // In a later run, and in one run.
    let flags_of_one_run = ["--key", "epc", "--within", "1s"];
    let runs = [(vec![], &flags[..], "epc\n"), (vec![&*early, "-"], &flags_of_one_run, &*rows)];
    for (files, flags, before) in runs {
        let mut live = Live::dedup(&[&files, flags].concat());
        live.send("epc\nA\n");
        let began = std::time::Instant::now();
        while !live.got().ends_with("A\n") {
            assert!(began.elapsed() < PATIENT);
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_millis(2200));
        live.send("A\n");
        live.expect(&format!("{before}A\nA\n"), PATIENT);
    }
}

#[test]
fn a_signal_does_not_lose_the_beginning_of_a_line() {
    for (flags, sent, before, all) in [
        ("", "a\nb", "a\n", "a\nb"),
        (
            "--key k --time t --time-format s --within 10s",
            "t,k\n1,a\n2,b",
            "t,k\n1,a\n",
            "t,k\n1,a\n2,b",
        ),
        // The format is not yet known.
        ("--key k", "k", "", "k"),
        ("--key k", "{\"k\":1}\n{\"k\":2}\n{\"k\":3}", "{\"k\":1}\n{\"k\":2}\n", ""),
        // One that is too long already.
        ("--max-line 4", "a\nbcdefgh", "a\n", ""),
    ] {
        let folder = Folder::new();
        let summary = folder.path("summary");
        let flags: Vec<_> = flags.split_whitespace().chain(["--summary", &summary]).collect();
        let mut live = Live::dedup(&flags);
        live.send(sent);
        live.expect(before, PATIENT);
        std::thread::sleep(Duration::from_millis(300));
        live.signal("TERM");
        let (code, stderr) = live.wait();
        assert_eq!(code, 0, "{stderr}");
        let got = live.got();
        match all {
            // A dead letter.
            "" if flags.contains(&"--max-line") => assert_eq!(got, "a\n"),
            "" => assert_eq!(got, sent),
            all => assert_eq!(got, all),
        }
        let summary: serde_json::Value = serde_json::from_str(&folder.read("summary")).unwrap();
        // Headers are no records, and the dead letter is one that does not come out.
        let records = match sent {
            "k" => 0,
            "a\nbcdefgh" => 2,
            _ => got.lines().count() - got.matches("t,k").count(),
        };
        assert_eq!(summary["read"], records, "{got:?}");
    }
}

#[test]
fn a_signal_ends_a_run_that_waits_for_a_pipe_to_open() {
    let folder = Folder::new();
    let fifo = folder.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut live = Live::dedup(&[&fifo, "--summary", "-"]);
    std::thread::sleep(Duration::from_millis(500));
    live.signal("TERM");
    assert_eq!(live.wait().0, 0);
}

#[test]
fn a_live_stream_does_not_wait_for_a_bracket_to_close() {
    let mut live = Live::dedup(&["--within", "1m"]);
    live.send("[start\n");
    live.expect("[start\n", PATIENT);
}
