//! A real broker, and independent clients of it.

#![allow(dead_code, unreachable_pub, reason = "each test file uses some of it")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use crate::reads::{Killed, free_port, program, python};
use crate::support::Folder;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

/// Lines of a configuration that keep messages on disk, whatever that costs.
pub const ON_DISK: &str = "persistence true\nautosave_on_changes true\nautosave_interval 1";

/// A running mosquitto. It is stopped when this is dropped.
pub struct Broker {
    program: PathBuf,
    child: Child,
    pub port: u16,
    pub folder: Folder,
}

impl Broker {
    /// `None`, and says why, where there is no broker or no independent client.
    pub fn start(more: &str) -> Option<Self> {
        if program("mosquitto").is_none() {
            println!("skipped: mosquitto is not installed (apt-get install mosquitto)");
            return None;
        }
        if python("paho.mqtt").is_none() {
            println!(
                "skipped: no Python with paho-mqtt (pip install paho-mqtt; LATELY_PYTHON names it)"
            );
            return None;
        }
        Some(Self::start_alone(more)).flatten()
    }

    /// The same where no other client is needed.
    pub fn start_alone(more: &str) -> Option<Self> {
        let Some(program) = program("mosquitto") else {
            println!("skipped: mosquitto is not installed (apt-get install mosquitto)");
            return None;
        };
        let folder = Folder::new();
        let port = free_port();
        let access = if more.contains("password_file") { "" } else { "allow_anonymous true\n" };
        let settings = format!(
            "listener {port} 127.0.0.1\n{access}persistence_location {}/\nmax_inflight_messages 1000\n\
             max_queued_messages 0\nset_tcp_nodelay true\nlog_type error\n{more}\n",
            folder.path("")
        );
        folder.file("mosquitto.conf", settings);
        // It gives up its rights where it is started with those of root.
        let _ = Command::new("chmod").args(["-R", "a+rwX", &folder.path("")]).status();
        let child = launch(&program, &folder, port);
        Some(Self { program, child, port, folder })
    }

    pub fn address(&self, path: &str) -> String {
        format!("mqtt://127.0.0.1:{}/{path}", self.port)
    }

    /// Ends it as a power cut would, and starts it again.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = launch(&self.program, &self.folder, self.port);
    }

    /// Ends it in good order, and starts it again.
    pub fn end(&mut self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        self.child.wait().unwrap();
        self.child = launch(&self.program, &self.folder, self.port);
    }

    fn client(&self, arguments: &[&str]) -> Command {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/mqtt_client.py");
        let mut command = Command::new(python("paho.mqtt").unwrap());
        command.arg(script).arg(arguments[0]).arg(self.port.to_string()).args(&arguments[1..]);
        command
    }

    /// Another client gathers what is published there in this file of the folder.
    pub fn collect(&self, filter: &str, file: &str, more: &[&str]) -> Killed {
        let path = self.folder.path(file);
        let arguments = [&["collect", filter, &path, file], more].concat();
        let mut child = self.client(&arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Killed(child)
    }

    /// Another client publishes the lines of a file; returns when the broker has confirmed all.
    pub fn publish(&self, topic: &str, file: &str) {
        assert!(self.publishing(topic, file, "0").wait().unwrap().success());
    }

    /// The same, with a pause after each line, meanwhile.
    pub fn publishing(&self, topic: &str, file: &str, pause: &str) -> Child {
        self.client(&["publish", topic, file, pause]).spawn().unwrap()
    }

    /// What was gathered, when it has so many lines.
    pub fn gathered(&self, file: &str, lines: usize) -> Vec<String> {
        let started = Instant::now();
        loop {
            let text = fs::read_to_string(self.folder.path(file)).unwrap_or_default();
            let count = text.lines().count();
            if count >= lines && text.ends_with('\n') || lines == 0 {
                return text.lines().map(str::to_owned).collect();
            }
            assert!(started.elapsed() < PATIENCE, "{count} of {lines} messages came");
            sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn launch(program: &Path, folder: &Folder, port: u16) -> Child {
    let mut command = Command::new(program);
    command.arg("-c").arg(folder.path("mosquitto.conf")).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let started = Instant::now();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        assert!(child.try_wait().unwrap().is_none(), "mosquitto has ended");
        assert!(started.elapsed() < PATIENCE, "mosquitto does not listen");
        sleep(Duration::from_millis(20));
    }
    child
}
