//! `lately serve` on ports of its own.

use super::LATELY;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A server that is running; what it says is kept.
pub struct Serving {
    child: Child,
    /// The port for clients of Redis, and that for HTTP.
    pub port: String,
    pub http: String,
    said: Arc<Mutex<String>>,
}

impl Serving {
    /// Starts one that keeps nothing.
    pub fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(LATELY)
            .args(["serve", "--durability", "none"])
            .args(["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"])
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut next = || {
            let mut line = String::new();
            lines.read_line(&mut line).unwrap();
            let port =
                line.trim().rsplit_once(':').unwrap_or_else(|| panic!("{line}")).1.to_owned();
            assert!(port.parse::<u16>().is_ok(), "{line}");
            port
        };
        let (port, http) = (next(), next());
        let said = Arc::new(Mutex::new(String::new()));
        let kept = Arc::clone(&said);
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                let mut said = kept.lock().unwrap();
                said.push_str(&line);
                said.push('\n');
            }
        });
        Self { child, port, http, said }
    }

    pub fn connect(&self, port: &str) -> TcpStream {
        let stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// The body of the answer to a request over HTTP.
    pub fn ask(&self, method: &str, path: &str, body: &str) -> String {
        let mut stream = self.connect(&self.http);
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        let (head, body) = said.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 2"), "{said}");
        body.to_owned()
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits until it has said this.
    pub fn says(&self, words: &str) {
        let end = Instant::now() + Duration::from_secs(30);
        while !self.said.lock().unwrap().contains(words) {
            let said = self.said.lock().unwrap().clone();
            assert!(Instant::now() < end, "it never said {words:?}, but {said}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Kibibytes of memory that it has now.
    pub fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Ends it in good order.
    pub fn end(mut self) {
        self.signal("-TERM");
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Is this program here? Says that a test is skipped if not.
pub fn is_there(program: &str, argument: &str) -> bool {
    let there =
        Command::new(program).arg(argument).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let there = there.is_ok_and(|status| status.success());
    if !there {
        eprintln!("skipped: {program} is not installed");
    }
    there
}
