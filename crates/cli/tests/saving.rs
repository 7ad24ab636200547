//! When and how a state is saved: not without a change, never half, without the memory of a second
//! filter; and files that earlier versions saved.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
#![cfg(unix)]

mod support;

use lately::{Digester, Filter, Tick};
use lately_stream::judge::class::Class;
use lately_stream::session::{Dedup, DedupSpec};
use lately_stream::state::dedup::State;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use support::{Folder, LATELY, Live, dedup, dedup_with, lately};

const PATIENT: Duration = Duration::from_secs(20);

/// A file that version 1 saved, copied into the folder.
fn golden(folder: &Folder, name: &str) -> String {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    folder.file(name, fs::read(from).unwrap())
}

/// The version of the format of a file.
fn version(path: &str) -> u8 {
    fs::read(path).unwrap()[8]
}

/// What `lately inspect` says of a file.
fn clock_of(path: &str) -> String {
    String::from_utf8(lately(&["inspect", path], "").stdout).unwrap()
}

#[test]
fn files_of_version_1_are_resumed() {
    let folder = Folder::new();
    let state = golden(&folder, "changes-v1.state");
    assert_eq!(version(&state), 1);
    let flags = format!("--key k --time t --within 10s --pass-on-change v --state {state}");
    let run = dedup(&flags.replace("10s", "9s"), "t,k,v\n");
    run.code(1).says("other settings").says("window: saved 10s, asked 9s");
    // a: the same value. b: another one. d: a new key.
    let run = dedup(&flags, "t,k,v\n1640995203,a,1\n1640995203,b,2\n1640995203,d,1\n");
    run.counts([2, 1, 0, 0, 0, 0]).out("t,k,v\n1640995203,b,2\n1640995203,d,1\n");
    assert_eq!(version(&state), 3);
    dedup(&flags, "t,k,v\n1640995204,b,2\n").counts([0, 1, 0, 0, 0, 0]);

    let state = golden(&folder, "held-v1.state");
    let flags = format!(
        "--format csv --key k --time t --within 10s --best r:max --hold 20s --time-zone America/Chicago --state {state}"
    );
    let run = dedup(&flags.replace("Chicago", "New_York"), "t,k,r\n");
    run.code(1).says("time-zone: saved America/Chicago, asked America/New_York");
    let run = dedup(&flags, "t,k,r\n1640995202,a,9\n1640995300,c,1\n");
    run.out("t,k,r\n1640995202,a,9\n1640995201,b,7\n1640995300,c,1\n");

    let state = golden(&folder, "last-v1.state");
    dedup(&format!("--last 100 --state {state}"), "c\nd\n").out("d\n");

    let index = golden(&folder, "numbers-v1.index");
    assert_eq!(lately(&["ask", &index, "--range", "1990..2010"], "").code, 0);
    assert_eq!(lately(&["ask", &index, "--range", "2500..2600"], "").code, 1);
    let flags = ["index", "--key", "id", "--time", "t", "--within", "10m", "--state", &*index];
    lately(&flags, "t,id\n1640995203,2550\n").code(0);
    assert_eq!(version(&index), 3);
    for range in ["1990..2010", "2500..2600"] {
        assert_eq!(lately(&["ask", &index, "--range", range], "").code, 0);
    }
}

#[test]
fn files_of_version_2_are_resumed_where_their_ticks_are() {
    let folder = Folder::new();
    let state = golden(&folder, "within-v2.state");
    assert_eq!(version(&state), 2);
    let flags = format!("--key k --time t --within 10s --state {state}");
    let rows = "2024-05-01T10:00:05Z,a\n2024-05-01T10:00:06Z,c\n1969-12-31T23:00:00Z,b\n";
    dedup(&flags, format!("t,k\n{rows}")).counts([1, 1, 1, 0, 0, 0]);
    assert_eq!(version(&state), 3);
    // Saved in the new version, its ticks still begin in 1970.
    dedup(&flags, "t,k\n2024-05-01T10:00:15Z,c\n2024-05-01T10:00:15Z,a\n")
        .counts([0, 2, 0, 0, 0, 0]);
    assert!(clock_of(&state).contains("2024-05-01T10:00:15Z"));

    let index = golden(&folder, "times-v2.index");
    assert_eq!(version(&index), 2);
    // Keys are read as the index read them, and in its zone.
    assert_eq!(lately(&["ask", &index, "--key", "01.05.2024 09:00"], "").code, 0);
    assert_eq!(
        lately(&["ask", &index, "--key", "01.05.2024 07:00", "--time-zone", "UTC"], "").code,
        0
    );
    assert_eq!(lately(&["ask", &index, "--key", "01.05.2024 08:00"], "").code, 1);
    assert!(clock_of(&index).contains("2024-05-01T08:00:00Z"));
}

#[test]
fn a_state_of_the_program_is_one_of_the_session_and_back() {
    const SECOND: i64 = 1_000_000_000;
    let folder = Folder::new();
    let state = folder.path("state");
    let flags = format!("--key k --time t --within 10s --state {state}");
    dedup(&flags, "t,k\n1640995200,a\n").code(0);
    let mut session = Dedup::load(Path::new(&state)).unwrap().unwrap();
    assert_eq!(session.observe(b"a", Some(1_640_995_203 * SECOND)), Class::Duplicate);
    assert_eq!(session.observe(b"b", Some(1_640_995_203 * SECOND)), Class::Fresh);
    session.save(Path::new(&state)).unwrap();
    // What the session did not look at, how keys are read, is kept.
    dedup(&flags.replace("--key k", "--key t"), "t,k\n").code(1).says("key: saved k, asked t");
    dedup(&flags, "t,k\n1640995204,a\n1640995204,b\n1640995204,c\n")
        .counts([1, 2, 0, 0, 0, 0])
        .out("t,k\n1640995204,c\n");
    // And one that a session began, of keys as they are, is resumed by the program.
    let begun = folder.path("begun");
    let mut session = DedupSpec::last(1000).build().unwrap();
    assert_eq!(session.observe(b"a", None), Class::Fresh);
    session.save(Path::new(&begun)).unwrap();
    dedup(&format!("--last 1000 --state {begun}"), "a\nb\n").out("b\n");
}

/// What changes whenever a file is replaced.
fn identity(path: &str) -> Option<(u64, i64, i64)> {
    let file = fs::metadata(path).ok()?;
    Some((file.ino(), file.mtime(), file.mtime_nsec()))
}

#[test]
fn nothing_is_written_when_nothing_has_changed() {
    let folder = Folder::new();
    let state = folder.path("state");
    let mut live = Live::dedup(&["--state", &state, "--state-every", "10ms", "--format", "ndjson"]);
    // A first save makes the file, even of nothing.
    let wait = |is_done: &dyn Fn() -> bool| {
        let began = Instant::now();
        while !is_done() {
            assert!(began.elapsed() < PATIENT);
            thread::sleep(Duration::from_millis(5));
        }
    };
    wait(&|| identity(&state).is_some());
    let empty = identity(&state);
    thread::sleep(Duration::from_millis(300));
    assert_eq!(identity(&state), empty);
    live.send("{\"k\":1}\n");
    wait(&|| identity(&state) != empty);
    thread::sleep(Duration::from_millis(100));
    let full = identity(&state);
    // Records that nothing is remembered of, a signal, silence, and the end.
    live.send("not JSON\n");
    live.signal("USR1");
    thread::sleep(Duration::from_millis(300));
    live.signal("TERM");
    assert_eq!(live.wait().0, 0);
    assert_eq!(identity(&state), full);
    // A run without records leaves what it resumed, one with records does not.
    let flags = ["--state", &*state, "--format", "ndjson"];
    dedup_with(&flags, "").code(0);
    assert_eq!(identity(&state), full);
    dedup_with(&flags, "{\"k\":1}\n").counts([0, 1, 0, 0, 0, 0]);
    assert_ne!(identity(&state), full);
}

/// A run that saves all the time, killed this long after it began its first save.
fn killed_while_saving(input: &str, output: &str, state: &str, later: Duration) {
    let files = || (identity(state), identity(&format!("{state}.new")));
    let before = files();
    let mut child = Command::new(LATELY)
        .args(["dedup", input, "-o", output, "--state", state, "--state-every", "0s", "--quiet"])
        .args(["--expect", "2M", "--memory", "1GiB", "--threads", "1"])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let began = Instant::now();
    while files() == before && child.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < PATIENT);
        thread::sleep(Duration::from_millis(1));
    }
    thread::sleep(later);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn killed_while_it_saves_there_is_the_old_state_or_the_new_one() {
    let rounds = if std::env::var_os("LATELY_LONG").is_some() { 50 } else { 8 };
    let folder = Folder::new();
    let key = |n: u32| format!("{n:<60}\n");
    let all: String = (0..400_000).map(key).collect();
    let input = folder.file("input", &all);
    let (output, state) = (folder.path("output"), folder.path("state"));
    let digester = Digester::new(0);
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    let (mut loaded, mut half_written, mut different) = (0, 0, 0);
    let mut before = Vec::new();
    for round in 0..rounds {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        killed_while_saving(&input, &output, &state, Duration::from_micros(random % 200_000));
        half_written += u32::from(fs::metadata(format!("{state}.new")).is_ok());
        let Ok(bytes) = fs::read(&state) else { continue };
        let found = State::from_bytes(&bytes).unwrap_or_else(|why| panic!("round {round}: {why}"));
        loaded += 1;
        different += u32::from(bytes != before);
        before = bytes;
        // Nothing is remembered that was not written, and synced, before. That is a prefix of the
        // input, as the keys are.
        let written = fs::read_to_string(&output).unwrap();
        let knows = |n: u32| {
            found
                .filter
                .contains(digester.digest(key(n).trim_end_matches('\n').as_bytes()), Tick(0))
        };
        let keys = written.lines().filter_map(|line| line.trim().parse().ok()).max();
        let next = keys.map_or(0, |last: u32| last + 1);
        assert!((next..400_000).step_by(97).all(|n| !knows(n)), "round {round}: {next}");
        if next == 400_000 {
            // There is nothing new to be remembered any more.
            fs::remove_file(&state).unwrap();
            fs::remove_file(&output).unwrap();
        }
    }
    assert!(loaded >= rounds / 2 && different > rounds / 8, "{loaded} loaded, {different} differ");
    println!(
        "{rounds} kills: {loaded} states, {different} different, {half_written} left half a file"
    );
    // What was left behind is in nobody's way, and in the end every record is there once or more.
    dedup_with(&[&*input, "-o", &output, "--state", &state], "").code(0);
    let mut written: Vec<_> =
        fs::read(&output).unwrap().split(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
    written.sort_unstable();
    written.dedup();
    let lost = (0..400_000).filter(|n| {
        written.binary_search(&key(*n).trim_end_matches('\n').as_bytes().to_vec()).is_err()
    });
    assert_eq!(lost.count(), 0);
    assert!(fs::metadata(format!("{state}.new")).is_err());
}

/// The most memory that a run with these arguments took, in bytes.
#[cfg(target_os = "linux")]
fn peak(arguments: &[&str]) -> u64 {
    let mut live = Live::dedup(arguments);
    live.send("a\n");
    live.expect("a\n", PATIENT);
    live.signal("USR1");
    let state = arguments[1];
    let began = Instant::now();
    let is_saved = || fs::metadata(state).is_ok_and(|file| file.len() > 0);
    while !is_saved() || fs::metadata(format!("{state}.new")).is_ok() {
        assert!(began.elapsed() < PATIENT);
        thread::sleep(Duration::from_millis(10));
    }
    live.peak_memory()
}

#[cfg(target_os = "linux")]
#[test]
fn a_save_and_a_load_take_no_second_filter() {
    let folder = Folder::new();
    let state = folder.path("state");
    // A filter of some 64 MiB, of which a run touches what a load writes.
    let flags = ["--state", &*state, "--expect", "12M", "--state-every", "1h"];
    let _ = peak(&flags);
    let filter = fs::metadata(&state).unwrap().len();
    assert!(filter > 48 << 20, "{filter}");
    // Loads it, and saves it again: twice its size and more before saves were streams.
    let mut live = Live::dedup(&flags);
    live.send("b\n");
    live.expect("b\n", PATIENT);
    let old = identity(&state);
    live.signal("USR1");
    let began = Instant::now();
    while identity(&state) == old {
        assert!(began.elapsed() < PATIENT);
        thread::sleep(Duration::from_millis(10));
    }
    let peak = live.peak_memory();
    assert!(peak < filter + filter / 4 + (24 << 20), "{peak} bytes for a state of {filter}");
}
