//! The live commands of `lately edge`, with a real broker, while operators do what operators do: start a coordinator
//! without its state, or two; leave a host switched off; set a clock; misspell a property. No reading vanishes without
//! being counted, and whoever looks is told why.
#![cfg(feature = "edge")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod counts;
mod resets;
#[path = "../support/edge.rs"]
mod system;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use system::{PATIENCE, System, Walker, fixes, get, program, run_on, told};

/// A system with these roles, whose requester has been heard.
fn running(test: &str, roles: &[&'static str]) -> Option<System> {
    let mut system = System::start(test)?;
    roles.iter().for_each(|name| system.role(name));
    if roles.contains(&"requester") {
        system.wait_for_log("requester", "task accepted");
    }
    Some(system)
}

const ALL: [&str; 3] = ["coordinator", "host-a", "requester"];
const ID: [&str; 2] = ["--id", "00000000000000ab"];

/// A clock that was 5 s ahead and is set right: what is sent afterwards is no repetition of what was sent before.
#[test]
fn a_clock_that_is_set_back_hides_no_reading() {
    if Command::new("faketime").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("skipped: faketime is not installed (apt-get install faketime)");
        return;
    }
    let Some(system) = running("edge-clock", &ALL) else { return };
    let ours = system.command(&["worker", ID[0], ID[1]], system.since);
    let mut ahead = Command::new("faketime");
    ahead.args(["-f", "+5s"]).arg(ours.get_program()).args(ours.get_args());
    let first = run_on(&mut ahead, &fixes(15.97, 0..8));
    assert!(told(&first).contains("8 readings sent"), "{}", told(&first));
    let second = system.work(&ID, system.since, &fixes(15.97, 8..16));
    assert!(told(&second).contains("8 readings sent"), "{}", told(&second));
    system.wait_for(0..16);
    assert!(told(&second).contains("8 kept"), "{}", told(&second));
    assert_eq!(second.status.code(), Some(0));
}

/// Two devices with one id: both are heard, and both are told that there is another one.
#[test]
fn two_workers_of_one_id_lose_nothing() {
    let Some(mut system) = running("edge-twins", &ALL) else { return };
    let mut twins = ["worker", "second"].map(|name| {
        let input = system.spawn(name, &["worker", ID[0], ID[1]]).stdin.take().unwrap();
        Walker { input, number: 0 }
    });
    twins[1].number = 40;
    for _ in 0..20 {
        twins[0].walk(15.97, 1);
        twins[1].walk(15.97, 1);
        sleep(Duration::from_millis(20));
    }
    system.wait_for(0..20);
    system.wait_for(40..60);
    drop(twins);
    for name in ["worker", "second"] {
        let words = system.ended(name);
        assert!(words.contains("of those sent, 20 kept, 0 redundant"), "{words}");
        assert!(words.contains("another worker uses this id"), "{words}");
    }
}

/// A coordinator that is started without its state (from another folder, say) silences nobody.
#[test]
fn a_coordinator_without_its_state_silences_nobody() {
    let Some(mut system) = running("edge-amnesia", &ALL) else { return };
    let input = system.spawn("worker", &["worker"]).stdin.take().unwrap();
    let mut walker = Walker { input, number: 0 };
    walker.walk(15.97, 2);
    system.wait_for(0..2);
    system.kill("coordinator");
    fs::remove_dir_all(system.folder.join("coordinator-state")).unwrap();
    system.role("coordinator");
    // Through the time at which it greets and is greeted.
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(6) {
        walker.walk(15.97, 1);
        sleep(Duration::from_millis(200));
    }
    // A square that nobody runs yet: for that, the coordinator itself must know the task.
    walker.walk(16.15, 1);
    let walked = walker.number;
    system.wait_for(0..walked);
    drop(walker);
    let words = system.ended("worker");
    assert!(words.contains(&format!("{walked} readings sent, 0 skipped")), "{words}");
    assert!(words.contains(&format!("{walked} kept, 0 redundant")), "{words}");
    let tasks = run_on(program().args(["tasks", "--broker", &system.broker.address()]), "");
    assert_eq!(String::from_utf8_lossy(&tasks.stdout).lines().count(), 1, "{}", told(&tasks));
}

/// The state is in one place whatever the working folder is, and that is told.
#[test]
fn a_state_does_not_depend_on_the_working_folder() {
    let Some(system) = System::start("edge-place") else { return };
    let states = system.folder.join("states");
    for working in ["one", "other"] {
        let place = system.folder.join(working);
        fs::create_dir(&place).unwrap();
        for (role, kept) in [("coordinator", "coordinator"), ("host", "id")] {
            let mut command = system.command(&[role], system.since);
            let command = command.current_dir(&place).env("XDG_STATE_HOME", &states);
            let mut child =
                command.env_remove("STATE_DIRECTORY").stderr(Stdio::piped()).spawn().unwrap();
            let (tell, lines_told) = std::sync::mpsc::channel();
            let lines = BufReader::new(child.stderr.take().unwrap()).lines();
            let reader = std::thread::spawn(move || {
                lines.map_while(Result::ok).for_each(|line| drop(tell.send(line)));
            });
            let expected = format!("state in {}", states.display());
            while !lines_told.recv_timeout(PATIENCE).unwrap().contains(&expected) {}
            let file = states.join("lately/edge").join(role).join(kept);
            let start = Instant::now();
            while !file.exists() {
                assert!(start.elapsed() < PATIENCE, "no {}", file.display());
                sleep(Duration::from_millis(20));
            }
            child.kill().unwrap();
            child.wait().unwrap();
            reader.join().unwrap();
        }
        assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
    }
}

/// A host that is killed and stays away for fifteen minutes gets all that was sent to it meanwhile.
#[test]
fn a_host_that_was_away_takes_what_was_sent_meanwhile() {
    let Some(mut system) = System::start("edge-away") else { return };
    system.speed = 60;
    ALL.into_iter().for_each(|name| system.role(name));
    system.wait_for_log("requester", "task accepted");
    let input = system.spawn("worker", &["worker", "--settle", "10m"]).stdin.take().unwrap();
    let mut walker = Walker { input, number: 0 };
    walker.walk(15.97, 1);
    system.wait_for(0..1);
    system.kill("host-a");
    // In the cell that it was assigned to, all is sent at once; the broker keeps it.
    walker.walk(15.97, 7);
    sleep(Duration::from_secs(15));
    system.role("host-a");
    system.wait_for(0..8);
    drop(walker);
    let words = system.ended("worker");
    assert!(words.contains("of those sent, 8 kept, 0 redundant"), "{words}");
}

/// The advice that a host gives about a damaged journal works, and a state that was taken away is told.
#[test]
fn a_host_with_a_damaged_state_says_what_to_do() {
    let Some(mut system) = running("edge-damage", &ALL) else { return };
    for numbers in [0..2, 2..4, 4..6] {
        let output = system.work(&[], system.since, &fixes(15.97, numbers));
        assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    }
    system.wait_for(0..6);
    system.kill("host-a");
    let state = system.folder.join("host-a-state");
    let files = fs::read_dir(&state).unwrap().map(|entry| entry.unwrap().path());
    let is_journal = |path: &PathBuf| path.to_str().unwrap().contains("/journal-");
    let journal = files.filter(is_journal).max_by_key(|path| fs::metadata(path).unwrap().len());
    let journal = journal.unwrap();
    let mut bytes = fs::read(&journal).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&journal, &bytes).unwrap();
    let mut host = system.command(&["host", "--state", state.to_str().unwrap()], system.since);
    let output = run_on(&mut host, "");
    let words = told(&output);
    assert_eq!(output.status.code(), Some(1), "{words}");
    assert_eq!(fs::read(&journal).unwrap(), bytes);
    let (_, advice) = words.trim_end().split_once("truncate -s ").unwrap();
    let cut = Command::new("sh").arg("-c").arg(format!("truncate -s {advice}")).status().unwrap();
    assert!(cut.success() && fs::metadata(&journal).unwrap().len() < bytes.len() as u64);
    // What comes after that is kept.
    system.role("host-a");
    system.wait_for_log("host-a", "resumes with");
    let output = system.work(&[], system.since, &fixes(15.97, 6..8));
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    system.wait_for(0..8);
    system.kill("host-a");
    fs::remove_file(state.join("hosts")).unwrap();
    system.role("host-a");
    system.wait_for_log("host-a", "`hosts` is missing although a journal is there");
}

/// What is missing is told, and each lack has its exit status.
#[test]
fn each_lack_has_its_exit_status() {
    let Some(mut system) = System::start("edge-lack") else { return };
    let settle = ["--settle", "30s"];
    let since = system.since;
    let work = |system: &System, more: &[&str], since, lines: &str, status, words: &str| {
        let output = system.work(&[&settle[..], more].concat(), since, lines);
        let told = told(&output);
        assert_eq!(output.status.code(), Some(status), "{told}");
        assert!(told.contains(words), "no {words} in {told}");
    };
    // A port that nobody listens at.
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let nobody = format!("mqtt://127.0.0.1:{port}");
    let mut command = program();
    command.args(["worker", "--settle", "1s", "--broker", &nobody]);
    let output = run_on(&mut command, &fixes(15.97, 0..2));
    assert_eq!(output.status.code(), Some(4), "{}", told(&output));
    work(&system, &[], since, &fixes(15.97, 0..2), 5, "2 readings not sent: no coordinator");
    system.role("coordinator");
    system.wait_for_log("coordinator", "connected to");
    sleep(Duration::from_millis(1_500));
    work(&system, &[], since, &fixes(15.97, 0..2), 6, "2 readings not sent: no host");
    system.role("host-a");
    system.role("requester");
    system.wait_for_log("requester", "task accepted");
    system.wait_for_log("host-a", "connected to");
    sleep(Duration::from_millis(500));
    let nosie = r#"{"lat":45.7985,"lon":15.97,"nosie":1}"#;
    work(&system, &["--property", "nosie"], since, nosie, 7, "no task asks for nosie");
    // Nine minutes ahead: 60 s in real time, at ten times the speed.
    let ahead = "2 readings refused: their time is ahead";
    work(&system, &[], since - 60, &fixes(15.97, 0..2), 8, ahead);
    work(&system, &[], since, &fixes(15.97, 0..2), 0, "of those sent, 2 kept, 0 redundant");
    // A host that is away has not answered.
    system.kill("host-a");
    let outcome = system.work(&settle, since, &fixes(15.97, 3..4));
    assert_ne!(outcome.status.code(), Some(0), "{}", told(&outcome));
}

/// More fixes at once than may wait: the pipe waits, and none is dropped.
#[test]
fn what_is_piped_at_once_is_sent() {
    let Some(system) = running("edge-flood", &ALL) else { return };
    let line = |at: u64| {
        let (latitude, longitude) =
            (45.7985 + 0.001 * (at / 25) as f64, 15.97 + 0.0015 * (at % 25) as f64);
        format!("{{\"lat\":{latitude},\"lon\":{longitude},\"noise\":{at}}}\n")
    };
    let lines: String = (0..600).map(line).collect();
    let output = system.work(&[], system.since, &lines);
    let words = told(&output);
    assert!(words.contains("600 fixes: 600 readings sent, 0 skipped"), "{words}");
    assert!(words.contains("0 asked for by nobody"), "{words}");
    assert_eq!(output.status.code(), Some(0), "{words}");
    system.wait_for(0..600);
}

/// What a device has buffered is judged by its own time: one reading in each period, not one in all.
#[test]
fn buffered_readings_belong_to_their_own_periods() {
    let Some(mut system) = System::start("edge-buffered") else { return };
    system.requests = vec!["--back", "2h"];
    ALL.into_iter().for_each(|name| system.role(name));
    system.wait_for_log("requester", "task accepted");
    let begin = system.now() - 5_400;
    let times = (0..9).map(|at| begin + at * 540);
    let line = |(at, time): (usize, u64)| {
        format!("{{\"lat\":45.7985,\"lon\":15.97,\"t\":{time},\"noise\":{at}}}\n")
    };
    let lines: String = times.clone().enumerate().map(line).collect();
    let output = system.work(&[], system.since, &lines);
    let words = told(&output);
    // The first of each period of 30 minutes is kept.
    let mut seen = BTreeSet::new();
    let firsts = times.enumerate().filter(|(_, time)| seen.insert(time / 1_800));
    let firsts: BTreeSet<u64> = firsts.map(|(at, _)| at as u64).collect();
    let kept = format!("{} kept", firsts.len());
    assert!(words.contains(&kept), "no {kept} in {words}");
    assert_eq!(output.status.code(), Some(0), "{words}");
    let start = Instant::now();
    while system.received().len() < firsts.len() {
        assert!(start.elapsed() < PATIENCE, "{words}");
        sleep(Duration::from_millis(50));
    }
    assert_eq!(system.received(), firsts);
}

/// Of two coordinators one waits, says so, and takes over when the other is killed.
#[test]
fn of_two_coordinators_one_acts() {
    let Some(mut system) = running("edge-two", &ALL) else { return };
    let state = system.folder.join("second-state");
    system.spawn("second", &["coordinator", "--grace", "1h", "--state", state.to_str().unwrap()]);
    system.wait_for_log("second", "another coordinator");
    let input = system.spawn("worker", &["worker"]).stdin.take().unwrap();
    let mut walker = Walker { input, number: 0 };
    for _ in 0..20 {
        walker.walk(15.97, 1);
        sleep(Duration::from_millis(100));
    }
    system.wait_for(0..20);
    system.kill("coordinator");
    system.wait_for_log("second", "acting as the coordinator");
    // A square that nobody runs yet.
    walker.walk(16.15, 1);
    system.wait_for(0..21);
    drop(walker);
    let words = system.ended("worker");
    assert!(words.contains("of those sent, 21 kept, 0 redundant"), "{words}");
}

/// A copy of a state folder has the identity of the original: the copy is refused, and the original is not disturbed.
#[test]
fn of_two_processes_with_one_identity_the_second_ends() {
    let Some(system) = running("edge-copy", &ALL) else { return };
    system.wait_for_log("host-a", "connected to");
    let (state, copy) = (system.folder.join("host-a-state"), system.folder.join("copy"));
    fs::create_dir(&copy).unwrap();
    fs::copy(state.join("id"), copy.join("id")).unwrap();
    let mut second = system.command(&["host", "--state", copy.to_str().unwrap()], system.since);
    let output = run_on(&mut second, "");
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    assert!(told(&output).contains("another process with the identity"), "{}", told(&output));
    let output = system.work(&[], system.since, &fixes(15.97, 0..3));
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    system.wait_for(0..3);
}

/// What is kept for a requester that is away is published ever less often, and at once when it is there again.
#[test]
fn a_requester_that_is_away_is_seldom_written_to() {
    const READINGS: u64 = 8;
    let Some(mut system) = System::start("edge-absent") else { return };
    system.speed = 120;
    system.spawn("second", &["view", "--listen", "127.0.0.1:0"]);
    let address = system.address("second", "map at http://");
    system.wait_for_log("second", "connected to");
    ALL.into_iter().for_each(|name| system.role(name));
    system.wait_for_log("requester", "task accepted");
    system.kill("requester");
    // Until a host is there for the place: a minute of a worker's patience is half a second here.
    let mut words = String::new();
    for _ in 0..20 {
        words = told(&system.work(&[], system.since, &fixes(15.97, 0..READINGS)));
        if !words.contains(" 0 readings sent") {
            break;
        }
    }
    assert!(words.contains("8 kept"), "{words}");
    // Readings that were published to it, each time they were.
    let published = || {
        let state: serde_json::Value = serde_json::from_str(&get(&address, "/state.json")).unwrap();
        state["counts"]["results"].as_u64().unwrap()
    };
    // Through 36 minutes of its time.
    sleep(Duration::from_secs(18));
    let count = published();
    println!(
        "{READINGS} readings for a requester that is away: {count} times published in 36 minutes"
    );
    // At once, and 0.5, 1.5, 3.5, 7.5, 15.5 and 31.5 minutes later; every 30 seconds would be 73 times. A machine that is busy
    // may be late with one of them.
    assert!((5 * READINGS..=7 * READINGS).contains(&count), "{count}\n{}", system.logs());
    system.role("requester");
    system.wait_for(0..READINGS);
    sleep(Duration::from_secs(2));
    assert!(published() <= count + 2 * READINGS, "{} after {count}", published());
}

/// Tasks can be listed, and ended by whoever may.
#[test]
fn tasks_are_listed_and_ended() {
    let Some(system) = running("edge-tasks", &ALL) else { return };
    let address = system.broker.address();
    let tasks =
        |more: &[&str]| run_on(program().args(["tasks", "--broker", &address]).args(more), "");
    let listed = tasks(&[]);
    let line: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(line["property"], "noise");
    let id = line["task"].as_str().unwrap().to_owned();
    assert_eq!(tasks(&["--withdraw", &id]).status.code(), Some(0));
    let start = Instant::now();
    while !tasks(&[]).stdout.is_empty() {
        assert!(start.elapsed() < PATIENCE);
    }
    assert_eq!(tasks(&["--withdraw", &id]).status.code(), Some(1));
}
