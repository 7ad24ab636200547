//! `lately serve` on a port of its own.

#![allow(dead_code, unreachable_pub, reason = "each test file uses some of it")]

use crate::support::LATELY;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A server on a port of its own.
pub struct Server {
    pub child: Child,
    pub port: String,
}

impl Server {
    pub fn start(arguments: &[&str]) -> Self {
        Self::spawn(Command::new(LATELY).args(["serve", "--listen", "127.0.0.1:0"]).args(arguments))
    }

    /// The same, after a command of the shell; `None` if that fails.
    pub fn start_in(before: &str, arguments: &[&str]) -> Option<Self> {
        let does = |rest: &str| format!("{before} && {rest}");
        let can = Command::new("sh").args(["-c", &does("true")]).stderr(Stdio::null()).status();
        can.unwrap().success().then_some(())?;
        let serve = does("exec \"$0\" serve --listen 127.0.0.1:0 \"$@\"");
        Some(Self::spawn(Command::new("sh").args(["-c", &serve, LATELY]).args(arguments)))
    }

    fn spawn(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let port = line
            .trim()
            .strip_prefix("lately: listening on 127.0.0.1:")
            .unwrap_or_else(|| panic!("{line}"));
        let port = port.to_owned();
        // What it says later is of no interest, but must not block it.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Self { child, port }
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(format!("127.0.0.1:{}", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// Ends it at once, whatever it is doing.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// The replies to requests in lines, the last of which ends the conversation.
    pub fn ask(&self, lines: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(format!("{lines}\r\nQUIT\r\n").as_bytes()).unwrap();
        let mut replies = String::new();
        stream.read_to_string(&mut replies).unwrap();
        replies.strip_suffix("+OK\r\n").unwrap_or(&replies).to_owned()
    }

    pub fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    /// Ends it in good order.
    pub fn end(mut self) {
        self.signal("-TERM");
        let status = self.child.wait().unwrap();
        assert_eq!(status.code(), Some(0));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
