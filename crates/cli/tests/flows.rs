//! Several runs from one file: `lately run` and `lately check`.
#![cfg(all(target_os = "linux", feature = "flows"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "support/reads.rs"]
mod reads;
mod support;

use reads::Killed;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::sync::mpsc;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};
use support::{Folder, Live, lately};

/// How long something may take that takes a moment.
const SOON: Duration = Duration::from_secs(60);

#[track_caller]
fn until(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < SOON, "waited in vain: {what}");
        sleep(Duration::from_millis(20));
    }
}

/// A pipe with a name, held open for writing.
fn pipe(folder: &Folder, name: &str) -> (String, File) {
    let path = folder.path(name);
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    // For reading, too, so that opening it waits for nobody.
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    (path, file)
}

/// The processes that have this word among their arguments, and what each was started as.
fn processes(word: &str) -> Vec<(u32, String)> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let one = |entry: fs::DirEntry| {
        let number = entry.file_name().to_str()?.parse().ok()?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.contains(word).then_some((number, line))
    };
    all.filter_map(one).collect()
}

fn kill(number: u32) {
    let number = number.to_string();
    assert!(Command::new("kill").args(["-s", "KILL", &number]).status().unwrap().success());
}

/// A flow that reads a pipe, and has a state.
fn flow(folder: &Folder, name: &str, input: &str) -> String {
    let [output, state] = ["out", "state"].map(|what| folder.path(&format!("{name}.{what}")));
    format!(
        "[{name}]\ninput = \"{input}\"\nformat = \"lines\"\noutput = \"{output}\"\nlast = \"1k\"\nstate = \"{state}\"\n"
    )
}

fn read(folder: &Folder, name: &str) -> String {
    fs::read_to_string(folder.path(name)).unwrap_or_default()
}

#[test]
fn flows_over_files_are_what_single_runs_are() {
    let folder = Folder::new();
    let rfid = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/rfid.csv");
    let [clean, visits] = ["clean.csv", "visits.ndjson"].map(|name| folder.path(name));
    let config = folder.file(
        "flows.toml",
        format!(
            "[clean]\ninput = [\"{rfid}\"]\nkey = \"epc\"\ntime = \"timestamp\"\nwithin = \"5s\"\noutput = \"{clean}\"\n\n\
             [stays]\ncommand = \"visits\"\ninput = \"{rfid}\"\nwithin = \"5s\"\noutput = \"{visits}\"\n"
        ),
    );
    let checked = lately(&["check", &config], "");
    checked.code(0);
    let expected = format!("clean: lately dedup {rfid} --key=epc --time=timestamp");
    assert!(checked.text().starts_with(&expected), "{}", checked.text());
    let outcome = lately(&["run", &config], "");
    outcome.code(0).says("clean: started 1 time").says("stays: started 1 time");
    let single = |words: &str| lately(&words.split(' ').collect::<Vec<_>>(), "").stdout;
    let alone = single(&format!("dedup {rfid} --key epc --time timestamp --within 5s"));
    assert!(!alone.is_empty());
    assert_eq!(fs::read(clean).unwrap(), alone);
    assert_eq!(fs::read(visits).unwrap(), single(&format!("visits {rfid} --within 5s")));
}

#[test]
fn what_is_wrong_with_a_file_is_told_with_its_line() {
    let folder = Folder::new();
    let wrong = "[a]\ninput = \"x\"\noutput = \"y\"\nwithin = \"5 parsecs\"\n[b]\ninput = 7\nouput = \"z\"\n";
    let config = folder.file("flows.toml", wrong);
    for command in ["check", "run"] {
        let outcome = lately(&[command, &config], "");
        outcome.code(2).says(&format!("{config}:4: a: ")).says("--within");
        outcome.says(&format!("{config}:7: b: `ouput`")).says("did you mean `output`?");
        assert!(outcome.stdout.is_empty());
    }
    lately(&["check", &folder.path("none")], "").code(2).says("none: ");
}

/// A flow that is killed is started again and knows what it knew; one that ends for good, and the end of all, are told.
#[test]
fn a_flow_that_fails_is_started_again() {
    let folder = Folder::new();
    let (input, mut writer) = pipe(&folder, "input");
    let config = folder.file("flows.toml", flow(&folder, "lines", &input));
    let mut run = Live::start(&["run", &config]);
    writer.write_all(b"a\nb\na\n").unwrap();
    until("the first lines", || read(&folder, "lines.out") == "a\nb\n");
    run.signal("USR1");
    until("a state", || fs::metadata(folder.path("lines.state")).is_ok());
    let [(first, _)] = processes(&input)[..] else { panic!("{:?}", processes(&input)) };
    kill(first);
    run.expect_said("it is started again in 1 s", SOON);
    until("another process", || processes(&input).iter().any(|(number, _)| *number != first));
    writer.write_all(b"b\nc\n").unwrap();
    until("further lines", || read(&folder, "lines.out") == "a\nb\nc\n");
    run.signal("TERM");
    let (code, said) = run.wait();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("lines: started 2 times") && said.contains("lines: 2 "), "{said}");
    assert_eq!(processes(&input), []);
}

/// When the supervisor is killed its flows end in good order: what they know is saved, and nothing holds the state.
#[test]
fn flows_end_with_their_supervisor() {
    let folder = Folder::new();
    let (input, mut writer) = pipe(&folder, "input");
    let config = folder.file("flows.toml", flow(&folder, "lines", &input));
    let mut run = Live::start(&["run", &config]);
    writer.write_all(b"a\n").unwrap();
    until("the first line", || read(&folder, "lines.out") == "a\n");
    run.kill();
    until("an end", || processes(&input).is_empty());
    let mut run = Live::start(&["run", &config]);
    writer.write_all(b"a\nb\n").unwrap();
    until("what is new", || read(&folder, "lines.out") == "a\nb\n");
    run.signal("INT");
    assert_eq!(run.wait().0, 0);
}

#[test]
fn a_file_that_is_read_again_changes_what_has_changed() {
    let folder = Folder::new();
    let pipes = ["one", "two", "three"].map(|name| pipe(&folder, name));
    let flows: Vec<_> = ["one", "two", "three"]
        .iter()
        .zip(&pipes)
        .map(|(name, pipe)| flow(&folder, name, &pipe.0))
        .collect();
    let config = folder.file("flows.toml", flows[..2].concat());
    let mut run = Live::start(&["run", &config]);
    let number = |at: usize| processes(&pipes[at].0).first().map(|one| one.0);
    until("two flows", || number(0).is_some() && number(1).is_some());
    // Each has begun to read.
    for (at, name) in ["one", "two"].into_iter().enumerate() {
        (&pipes[at].1).write_all(b"a\n").unwrap();
        until("a line", || read(&folder, &format!("{name}.out")) == "a\n");
    }
    let [one, two] = [0, 1].map(number);
    fs::write(&config, "[one]\n").unwrap();
    run.signal("HUP");
    run.expect_said("SIGHUP: the flows stay as they were", SOON);
    assert!(run.said().contains("one: there is no `input`"), "{}", run.said());
    assert_eq!([0, 1].map(number), [one, two]);
    // The first stays, wherever it stands; the second ends, the third begins.
    fs::write(&config, format!("{}{}", flows[2], flows[0])).unwrap();
    run.signal("HUP");
    run.expect_said("SIGHUP: 1 to end, 1 to start, 1 as they were", SOON);
    until("the third flow", || number(2).is_some());
    // It was to wait until the other one has ended.
    assert_eq!([0, 1].map(number), [one, None]);
    assert!(fs::metadata(folder.path("two.state")).is_ok());
    run.signal("TERM");
    assert_eq!(run.wait().0, 0);
}

/// What systemd wants to know: that it is ready, that it lives, and that it ends.
#[test]
fn systemd_is_told() {
    let folder = Folder::new();
    let (input, _writer) = pipe(&folder, "input");
    let config = folder.file("flows.toml", flow(&folder, "lines", &input));
    let socket = UnixDatagram::bind(folder.path("notify")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_lately"));
    command.args(["run", &config]).env("NOTIFY_SOCKET", folder.path("notify"));
    let mut child = Killed(command.env("WATCHDOG_USEC", "300000").spawn().unwrap());
    // Until the end, as who sends waits for whoever hears.
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(length) = socket.recv(&mut buffer) {
            let _ = tell.send(String::from_utf8_lossy(&buffer[..length]).into_owned());
        }
    });
    let hear = |words: &str| {
        while !told.recv_timeout(SOON).unwrap().contains(words) {}
    };
    hear("READY=1");
    hear("STATUS=1 of 1 flow running");
    (0..3).for_each(|_| hear("WATCHDOG=1"));
    let number = child.0.id().to_string();
    assert!(Command::new("kill").args(["-s", "TERM", &number]).status().unwrap().success());
    hear("STOPPING=1");
    assert_eq!(child.0.wait().unwrap().code(), Some(0));
}
