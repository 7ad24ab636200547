//! The live commands of `lately edge`, with a real broker: what is killed comes back, and no reading that
//! a host has accepted is lost.
#![cfg(feature = "edge")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "support/edge.rs"]
mod system;

use serde_json::Value;
use std::fs::{self, File};
use std::io::Write;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use system::{PATIENCE, System, Walker, log};

#[test]
fn whatever_is_killed_comes_back_and_no_reading_is_lost() {
    let Some(mut system) = System::start("edge-kill") else { return };
    ["coordinator", "host-a", "host-b", "requester"].into_iter().for_each(|name| system.role(name));
    system.wait_for_log("requester", "task accepted");
    let input = system.spawn("worker", &["worker"]).stdin.take().unwrap();
    let mut walker = Walker { input, number: 0 };
    walker.walk(15.97, 1);
    system.wait_for(0..1);
    walker.walk(15.97, 2);
    system.wait_for(0..3);

    // The requester, and then both hosts, with readings that nobody has got yet.
    system.kill("requester");
    walker.walk(15.97, 3);
    sleep(Duration::from_millis(500));
    ["host-a", "host-b"].into_iter().for_each(|name| system.kill(name));
    walker.walk(15.97, 1);
    ["host-a", "host-b", "requester"].into_iter().for_each(|name| system.role(name));
    system.wait_for(0..7);

    // The broker, which keeps nothing on disk.
    system.broker.kill().unwrap();
    sleep(Duration::from_millis(300));
    system.broker.restart().unwrap();
    // Another square: this needs everybody.
    walker.walk(16.15, 1);
    system.wait_for(0..8);

    // The coordinator: a square that is known already does not need it, a new one waits for it.
    system.kill("coordinator");
    walker.walk(15.97, 1);
    system.wait_for(0..9);
    walker.walk(16.35, 1);
    system.role("coordinator");
    system.wait_for(0..10);

    // A worker whose input ends, ends.
    drop(walker);
    let at = system.running.iter().position(|(name, _)| *name == "worker").unwrap();
    let (_, mut worker) = system.running.remove(at);
    assert!(worker.wait().unwrap().success());
    for name in ["requester", "host-a", "host-b", "coordinator"] {
        assert!(system.end(name), "{name}\n{}", system.logs());
    }
    let logs = system.logs();
    assert!(logs.contains("resumes with"), "{logs}");
    assert!(logs.contains("10 fixes: 10 readings sent, 0 skipped"), "{logs}");
}

/// The task of a requester with a name stays, whichever way that ends; and what a crash has cut off in its file
/// swallows no reading.
#[test]
fn a_named_requester_that_is_stopped_goes_on_after_a_restart() {
    let Some(mut system) = System::start("edge-named") else { return };
    ["coordinator", "host-a", "requester"].into_iter().for_each(|name| system.role(name));
    system.wait_for_log("requester", "task accepted");
    let input = system.spawn("worker", &["worker"]).stdin.take().unwrap();
    let mut walker = Walker { input, number: 0 };
    walker.walk(15.97, 1);
    system.wait_for(0..1);
    assert!(system.end("requester"), "{}", system.logs());
    // Nobody gets these now.
    walker.walk(15.97, 3);
    sleep(Duration::from_millis(500));
    let fragment = r#"{"n":"mgrs:33TWL75"#;
    write!(File::options().append(true).open(system.readings()).unwrap(), "{fragment}").unwrap();
    system.role("requester");
    let start = Instant::now();
    let whole = || {
        let text = log(&system.readings());
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.iter().filter(|line| line.contains("\"v\":") && line.starts_with("{\"n\"")).count()
    };
    while whole() < 4 {
        assert!(start.elapsed() < PATIENCE, "{}\n{}", log(&system.readings()), system.logs());
        sleep(Duration::from_millis(50));
    }
    let text = log(&system.readings());
    let spoiled: Vec<&str> =
        text.lines().filter(|line| serde_json::from_str::<Value>(line).is_err()).collect();
    assert_eq!(spoiled, [fragment]);
}

/// `sensor | lately edge worker`: its readings arrive, although nobody had run the square before, and although
/// its input ends at once.
#[test]
fn a_pipe_into_a_worker_loses_no_reading() {
    let Some(mut system) = System::start("edge-pipe") else { return };
    ["coordinator", "host-a", "requester"].into_iter().for_each(|name| system.role(name));
    system.wait_for_log("requester", "task accepted");
    let mut input = system.spawn("worker", &["worker"]).stdin.take().unwrap();
    let lines: &[&[u8]] = &[
        br#"{"lat":45.7985,"lon":15.97,"noise":0}"#,
        b"\xff\xfe",
        br#"{"lat":45.7995,"lon":15.97,"noise":1}"#,
        br#"{"lat":45.8005,"lon":15.97,"noise":"loud"}"#,
        // The square next to it.
        br#"{"lat":45.8005,"lon":16.15,"noise":2}"#,
    ];
    input.write_all(&lines.join(&b'\n')).unwrap();
    drop(input);
    let at = system.running.iter().position(|(name, _)| *name == "worker").unwrap();
    let (_, mut worker) = system.running.remove(at);
    assert!(worker.wait().unwrap().success());
    system.wait_for(0..3);
    let words = log(&system.folder.join("worker"));
    for part in
        ["3 fixes: 3 readings sent", "line 2", "line 4", "\"noise\" is not a number", "2 lines"]
    {
        assert!(words.contains(part), "no {part} in {words}");
    }
}

/// Each error names the file that it is about.
#[test]
fn errors_name_the_file() {
    let place = std::env::temp_dir().join(format!("lately-edge-errors-{}", std::process::id()));
    let _ = fs::remove_dir_all(&place);
    fs::create_dir(&place).unwrap();
    fs::write(place.join("file"), b"").unwrap();
    let path = place.join("file/within");
    let path = path.to_str().unwrap();
    for arguments in [
        ["host", "--state", path],
        ["coordinator", "--state", path],
        ["requester", "--output", path],
    ] {
        let command =
            Command::new(env!("CARGO_BIN_EXE_lately")).arg("edge").args(arguments).output();
        let output = command.unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {told}");
        assert!(told.contains(path), "{arguments:?}: {told}");
    }
    fs::remove_dir_all(&place).unwrap();
}

#[test]
fn two_processes_do_not_share_a_state() {
    let Some(mut system) = System::start("edge-state") else { return };
    system.role("host-a");
    system.wait_for_log("host-a", "connected to");
    let state = system.folder.join("host-a-state");
    let state = state.to_str().unwrap();
    let second = Command::new(env!("CARGO_BIN_EXE_lately"))
        .args(["edge", "host", "--state", state, "--broker", &system.broker.address()])
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(1));
    let words = String::from_utf8(second.stderr).unwrap();
    assert!(words.contains("another process uses this state"), "{words}");
    assert!(words.contains("give each its own --state"), "{words}");
}

/// Of a trace, days without a whole minute and fixes that are not accurate enough are left out, and that is told.
#[test]
fn a_simulation_tells_what_it_leaves_out() {
    let simulate = |lines: &[&str], more: &[&str]| {
        let path = std::env::temp_dir().join(format!("lately-trace-{}", std::process::id()));
        let header = ["user,ts,lat,lon,accuracy_m"];
        fs::write(&path, [&header, lines].concat().join("\n")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_lately"));
        let output = command.args(["edge", "simulate"]).arg(&path).args(more).output().unwrap();
        fs::remove_file(path).unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{told}");
        let rows = String::from_utf8(output.stdout).unwrap();
        let rows: Vec<Vec<String>> =
            rows.lines().map(|row| row.split(',').map(str::to_owned).collect()).collect();
        let readings = rows[0].iter().position(|column| column == "readings").unwrap();
        (told, rows[1][readings].clone())
    };
    // From 0:00 to 0:04: five fixes of each of two users.
    let whole = [
        "a,1500076800,45.81,15.97,5",
        "a,1500077040,45.82,15.97,100",
        "b,1500076800,45.81,15.98,5",
        "b,1500077040,45.82,15.98,5",
    ];
    assert_eq!(simulate(&whole, &[]), (String::new(), "10".into()));
    let short =
        ["c,1500076801,45.81,15.97,5", "d,1500076802,45.81,15.97,5", "d,1500076859,45.81,15.97,5"];
    let inaccurate = ["a,1500076900,45.81,15.99,101", "e,1500076800,45.81,15.97,5000"];
    let lines = [&whole[..], &short[..1], &inaccurate[..1]].concat();
    let told = "lately: left out: 1 day of a user without a whole minute between their first and last fix, 1 fix less accurate than --accuracy\n";
    assert_eq!(simulate(&lines, &[]), (told.into(), "10".into()));
    let lines = [&whole[..], &short, &inaccurate].concat();
    let told = "lately: left out: 2 days of a user without a whole minute between their first and last fix, 2 fixes less accurate than --accuracy\n";
    assert_eq!(simulate(&lines, &[]), (told.into(), "10".into()));
    // Another bound leaves out others: of user a, the fix of a whole minute stays.
    let told = "lately: left out: 2 days of a user without a whole minute between their first and last fix, 3 fixes less accurate than --accuracy\n";
    assert_eq!(simulate(&lines, &["--accuracy", "50"]), (told.into(), "6".into()));
}

#[test]
fn wrong_usage_is_told() {
    for (arguments, words) in [
        (&["host", "--broker", "http://x"][..], "mqtt://localhost:1883"),
        (&["host", "--broker", "mqtt://x", "--ca", "Cargo.toml"], "mqtts://"),
        (&["host", "--broker", "mqtt://x", "--user", "me"], "--password-file"),
        (&["coordinator", "--window", "0s"], "validity"),
        (&["requester", "--property", "a b"], "property"),
        (&["requester", "--area", "33TWL7"], "MGRS"),
        (&["worker", "--from", "25:00"], "time of day"),
        (&["worker", "--speed", "0.5"], "--speed"),
        (&["worker", "--id", "7"], "16 hexadecimal digits"),
        (&["worker", "--generate", "--id", "0000000000000007"], "--generate"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_lately"))
            .arg("edge")
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {told}");
        assert!(told.contains(words), "{arguments:?}: {told}");
    }
}
