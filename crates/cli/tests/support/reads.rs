//! Records for the tests of brokers, what a run makes of them as a file, and what else these tests need.

#![allow(dead_code, unreachable_pub, reason = "each test file uses some of it")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use crate::support::{Folder, Live, lately, real};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// How long something may take that takes a moment.
pub const SOON: Duration = Duration::from_secs(60);

/// How the records of these tests are read, as messages and as a file.
const READS: &str = "dedup --format tsv --no-header --key 1,5 --time 3 --within 1h";

pub fn arguments<'a>(more: &[&'a str]) -> Vec<&'a str> {
    READS.split(' ').chain(more.iter().copied()).collect()
}

/// Lines of a real log, without its header.
pub fn reads(folder: &Folder, count: usize) -> (String, Vec<String>) {
    let near = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/nasa-http.tsv");
    let path = real("http_nasa/nasa_19950801.tsv").unwrap_or_else(|| near.into());
    let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
    let lines: Vec<_> = text.lines().skip(1).take(count).map(str::to_owned).collect();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    (folder.file("reads.tsv", text), lines)
}

/// What the same run makes of the file.
pub fn of_file(file: &str) -> Vec<String> {
    let outcome = lately(&arguments(&[file]), "");
    outcome.code(0);
    outcome.text().lines().map(str::to_owned).collect()
}

/// How often something is killed: a few times, or as often as this variable says.
pub fn kills(variable: &str, few: usize) -> usize {
    std::env::var(variable).ok().and_then(|count| count.parse().ok()).unwrap_or(few)
}

pub fn random(range: Range<u64>) -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    range.start + RandomState::new().build_hasher().finish() % (range.end - range.start)
}

/// A run that reads.
pub fn start(arguments: &[&str]) -> Live {
    let run = Live::start(arguments);
    run.expect_said("lately: reading ", SOON);
    run
}

pub fn end(run: &mut Live) -> String {
    run.signal("TERM");
    let (code, said) = run.wait();
    assert_eq!(code, 0, "{said}");
    said
}

/// A run that ends so, and says that.
#[track_caller]
pub fn refuse(arguments: &[&str], code: i32, words: &[&str]) {
    let outcome = lately(arguments, "a\n");
    outcome.code(code);
    for words in words {
        outcome.says(words);
    }
}

/// The key and the certificate of a broker at `localhost`, by an authority of its own.
pub fn certificate(folder: &Folder) -> Option<(String, String)> {
    let (key, certificate) = (folder.path("key.pem"), folder.path("cert.pem"));
    let request = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost \
                   -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE";
    let made = Command::new("openssl")
        .args(request.split_whitespace())
        .args(["-keyout", &key, "-out", &certificate])
        .stderr(Stdio::null())
        .status();
    if !made.is_ok_and(|status| status.success()) {
        println!("skipped in part: no openssl");
        return None;
    }
    let _ = Command::new("chmod").args(["-R", "a+rX", &folder.path("")]).status();
    Some((key, certificate))
}

/// A process that is killed when this is dropped.
pub struct Killed(pub Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A Python that has this module; `LATELY_PYTHON` names it.
pub fn python(module: &str) -> Option<String> {
    let python = std::env::var("LATELY_PYTHON").unwrap_or_else(|_| "python3".into());
    let mut asked = Command::new(&python);
    let asked = asked.args(["-c", &format!("import {module}")]).stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success()).then_some(python)
}

/// A program, where it is found: on the path, where Debian puts what not everybody runs, or where Python is.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let also = ["/usr/sbin", "/usr/local/sbin", "/opt/homebrew/sbin"].map(PathBuf::from);
    let python = std::env::var_os("LATELY_PYTHON").map(PathBuf::from);
    let near = python.and_then(|python| python.parent().map(PathBuf::from));
    let mut folders = std::env::split_paths(&path).chain(also).chain(near);
    folders.find_map(|folder| Some(folder.join(name)).filter(|program| program.is_file()))
}

/// A port that nobody listens on, and that nobody is given before a broker listens there: it is below those that the system
/// takes for connections (from 32768 on), and each process of tests has its own.
pub fn free_port() -> u16 {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = std::process::id() * 50 + GIVEN.fetch_add(1, Ordering::Relaxed);
        let port = 10_000 + (number % 22_000) as u16;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}
