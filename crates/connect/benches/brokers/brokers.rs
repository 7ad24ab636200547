//! Brokers on free ports, with folders of their own.

use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Mqtt,
    Nats,
}

/// A running broker, stopped when this is dropped.
pub(crate) struct Broker {
    pub(crate) kind: Kind,
    pub(crate) port: u16,
    process: Child,
    folder: PathBuf,
}

/// A program, where it is found: on the path, where Debian puts what not everybody runs, or where Python is.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let python = std::env::var_os("LATELY_PYTHON").map(PathBuf::from);
    let near = python.and_then(|python| python.parent().map(PathBuf::from));
    let also = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
    let mut folders = std::env::split_paths(&path).chain(also).chain(near);
    folders.find_map(|folder| Some(folder.join(name)).filter(|program| program.is_file()))
}

impl Broker {
    /// `None`, and says so, where it is not installed.
    pub(crate) fn start(kind: Kind, name: &str) -> Option<Self> {
        let broker = if kind == Kind::Mqtt { "mosquitto" } else { "nats-server" };
        let Some(program) = program(broker) else {
            eprintln!("skipped: {broker} is not installed");
            return None;
        };
        let folder = format!("lately-brokers-{}-{name}-{broker}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        fs::create_dir_all(&folder).unwrap();
        let port =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let settings = match kind {
            Kind::Mqtt => format!(
                "listener {port} 127.0.0.1\nallow_anonymous true\nmax_inflight_messages 1000\n\
                 max_queued_messages 0\nset_tcp_nodelay true\nlog_type error\n"
            ),
            Kind::Nats => format!(
                "listen: 127.0.0.1:{port}\njetstream {{ store_dir: \"{}\" }}\n",
                folder.display()
            ),
        };
        let path = folder.join("settings");
        fs::write(&path, settings).unwrap();
        let mut command = Command::new(program);
        let silent = command.arg("-c").arg(path).stdin(Stdio::null());
        let process = silent.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut broker = Self { kind, port, process, folder };
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            assert!(broker.process.try_wait().unwrap().is_none(), "the broker has ended");
            sleep(Duration::from_millis(20));
        }
        Some(broker)
    }

    /// Where messages are read, under this name.
    pub(crate) fn input(&self, reader: &str) -> String {
        match self.kind {
            Kind::Mqtt => format!("mqtt://127.0.0.1:{}/raw?client={reader}", self.port),
            Kind::Nats => format!("nats://127.0.0.1:{}/RAW?consumer={reader}", self.port),
        }
    }

    /// Where they are published.
    pub(crate) fn output(&self) -> String {
        match self.kind {
            Kind::Mqtt => format!("mqtt://127.0.0.1:{}/clean", self.port),
            Kind::Nats => format!("nats://127.0.0.1:{}/clean", self.port),
        }
    }

    /// A path in its folder.
    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// It does not do anything any more, and keeps its connections.
    pub(crate) fn stop(&self) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-STOP", &id]).status().unwrap().success());
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
