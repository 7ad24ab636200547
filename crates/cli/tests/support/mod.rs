//! Runs the program as a user would.

#![allow(dead_code, unreachable_pub, reason = "each test file uses some of it")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::new_without_default, reason = "tests")]

pub mod serving;

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub const LATELY: &str = env!("CARGO_BIN_EXE_lately");

/// A folder that goes when the test is over.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("lately-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().into()
    }

    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    pub fn read(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.path(name)).unwrap()).into_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What a run left.
pub struct Outcome {
    pub stdout: Vec<u8>,
    pub stderr: String,
    pub code: i32,
    pub summary: serde_json::Value,
}

impl Outcome {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap()
    }

    pub fn count(&self, name: &str) -> u64 {
        self.summary[name].as_u64().unwrap_or_else(|| panic!("no {name}: {}", self.stderr))
    }

    /// Checks fresh, duplicate, late, invalid, missing_key and skewed, and that they add up.
    #[track_caller]
    pub fn counts(&self, expected: [u64; 6]) -> &Self {
        let names = ["fresh", "duplicate", "late", "invalid", "missing_key", "skewed"];
        let found = names.map(|name| self.count(name));
        assert_eq!(found, expected, "{names:?}\n{}", self.stderr);
        assert_eq!(self.count("read"), found.iter().sum::<u64>());
        self
    }

    #[track_caller]
    pub fn out(&self, expected: &str) -> &Self {
        assert_eq!(String::from_utf8_lossy(&self.stdout), expected, "{}", self.stderr);
        self
    }

    #[track_caller]
    pub fn code(&self, expected: i32) -> &Self {
        assert_eq!(self.code, expected, "{}", self.stderr);
        self
    }

    #[track_caller]
    pub fn says(&self, words: &str) -> &Self {
        assert!(self.stderr.contains(words), "`{words}` is not in\n{}", self.stderr);
        self
    }
}

/// `lately dedup` with these arguments (separated by blanks) on this standard input.
pub fn dedup(arguments: &str, input: impl AsRef<[u8]>) -> Outcome {
    let arguments: Vec<_> = arguments.split_whitespace().collect();
    dedup_with(&arguments, input)
}

pub fn dedup_with(arguments: &[&str], input: impl AsRef<[u8]>) -> Outcome {
    summed(&[&["dedup"], arguments].concat(), input)
}

/// `lately` with these arguments and `--summary`.
pub fn summed(arguments: &[&str], input: impl AsRef<[u8]>) -> Outcome {
    let folder = Folder::new();
    let summary = folder.path("summary.json");
    let mut outcome = lately(&[arguments, &["--summary", &summary]].concat(), input);
    if let Ok(text) = fs::read_to_string(&summary) {
        outcome.summary = serde_json::from_str(&text).unwrap();
    }
    outcome
}

/// The program with these arguments.
pub fn lately(arguments: &[&str], input: impl AsRef<[u8]>) -> Outcome {
    let mut child = spawn(Command::new(LATELY).args(arguments));
    let mut stdin = child.stdin.take().unwrap();
    let input = input.as_ref().to_vec();
    let feeder = std::thread::spawn(move || {
        // The program may end before it has read everything.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    Outcome {
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        code: output.status.code().unwrap_or(-1),
        summary: serde_json::Value::Null,
    }
}

pub fn spawn(command: &mut Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// A run whose input stays open.
pub struct Live {
    child: Child,
    got: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
    said: Arc<Mutex<Vec<u8>>>,
    listener: Option<JoinHandle<()>>,
}

/// Gathers what comes out of a pipe.
fn gather(mut pipe: impl Read + Send + 'static) -> (Arc<Mutex<Vec<u8>>>, JoinHandle<()>) {
    let got = Arc::<Mutex<Vec<u8>>>::default();
    let into = Arc::clone(&got);
    let reader = std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(n @ 1..) = pipe.read(&mut buffer) {
            into.lock().unwrap().extend_from_slice(&buffer[..n]);
        }
    });
    (got, reader)
}

impl Live {
    pub fn dedup(arguments: &[&str]) -> Self {
        Self::start(&[&["dedup"], arguments].concat())
    }

    pub fn start(arguments: &[&str]) -> Self {
        let mut child = spawn(Command::new(LATELY).args(arguments));
        let (got, reader) = gather(child.stdout.take().unwrap());
        let (said, listener) = gather(child.stderr.take().unwrap());
        Self { child, got, reader: Some(reader), said, listener: Some(listener) }
    }

    pub fn send(&mut self, bytes: &str) {
        self.child.stdin.as_mut().unwrap().write_all(bytes.as_bytes()).unwrap();
    }

    /// The same, of a run that may have ended.
    pub fn send_or_not(&mut self, bytes: &str) {
        let _ = self.child.stdin.as_mut().unwrap().write_all(bytes.as_bytes());
    }

    /// Ends its input.
    pub fn close(&mut self) {
        drop(self.child.stdin.take());
    }

    /// The variables of its environment.
    #[cfg(target_os = "linux")]
    pub fn environment(&self) -> Vec<String> {
        let bytes = fs::read(format!("/proc/{}/environ", self.child.id())).unwrap();
        bytes
            .split(|&byte| byte == 0)
            .map(|one| String::from_utf8_lossy(one).into_owned())
            .collect()
    }

    /// The most memory it has taken so far, in bytes, if it has not ended.
    #[cfg(target_os = "linux")]
    pub fn peak_memory_or_none(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
        Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
    }

    pub fn got(&self) -> String {
        String::from_utf8(self.got.lock().unwrap().clone()).unwrap()
    }

    /// Waits until this much came out.
    #[track_caller]
    pub fn expect(&self, text: &str, within: Duration) {
        let started = Instant::now();
        while self.got() != text {
            assert!(started.elapsed() < within, "waited for {text:?}, got {:?}", self.got());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends a signal, once the process has got as far as listening to signals.
    pub fn signal(&self, name: &str) {
        let started = Instant::now();
        while !self.listens() && started.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    /// Does it catch the signal that ends a process politely? Before it does, any signal kills.
    fn listens(&self) -> bool {
        const TERM: u32 = 15;
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let Ok(status) = status else { return true };
        let Some(line) = status.lines().find(|line| line.starts_with("SigCgt:")) else {
            return true;
        };
        let caught = line.split_whitespace().nth(1).map(|mask| u64::from_str_radix(mask, 16));
        !matches!(caught, Some(Ok(mask)) if mask >> (TERM - 1) & 1 == 0)
    }

    /// The most memory it has taken so far, in bytes.
    #[cfg(target_os = "linux")]
    pub fn peak_memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kilobytes * 1024
    }

    /// What is on standard error so far.
    pub fn said(&self) -> String {
        String::from_utf8(self.said.lock().unwrap().clone()).unwrap()
    }

    /// Waits until this is on standard error.
    #[track_caller]
    pub fn expect_said(&self, words: &str, within: Duration) {
        let started = Instant::now();
        while !self.said().contains(words) {
            assert!(started.elapsed() < within, "waited for {words:?}, got {:?}", self.said());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The exit status and what is on standard error.
    pub fn wait(&mut self) -> (i32, String) {
        self.reader.take().unwrap().join().unwrap();
        self.listener.take().unwrap().join().unwrap();
        (self.child.wait().unwrap().code().unwrap_or(-1), self.said())
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.reader.take().unwrap().join().unwrap();
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether whoever runs the tests ignores this signal (`nohup` 1, a script in the background 2): then so
/// does what they start.
pub fn ignores(signal: u32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_none_or(|mask| mask >> (signal - 1) & 1 == 1)
}

/// A real file, or `None` with a note where it is not at hand.
pub fn real(name: &str) -> Option<String> {
    let near = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("LATELY_SHARED").map_or(near, PathBuf::from);
    let path = shared.join("data").join(name);
    if path.is_file() {
        return Some(path.to_str().unwrap().into());
    }
    println!("skipped: {} is not there; LATELY_SHARED names its folder", path.display());
    None
}
