//! A server that is measured: it is started, asked, and looked at from outside.

use super::Settings;
use std::error::Error;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Lately,
    Redis,
    RedisBloom,
}

/// How it is started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    /// The processors it may use, as of `taskset`.
    pub(crate) processors: &'static str,
    /// Keys of `SET` that `lately` is to expect.
    pub(crate) keys: u64,
    /// `lately`'s `--durability`.
    pub(crate) durability: &'static str,
}

/// A running server, with a folder of its own.
#[derive(Debug)]
pub(crate) struct Server {
    kind: Kind,
    child: Child,
    port: u16,
    folder: PathBuf,
}

const PATIENCE: Duration = Duration::from_secs(60);

impl Server {
    pub(crate) fn start(
        kind: Kind,
        start: Start,
        settings: &Settings,
    ) -> Result<Self, Box<dyn Error>> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let folder =
            std::env::temp_dir().join(format!("lately-bench-{}-{port}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let mut command = Command::new("taskset");
        command.args(["-c", start.processors]);
        match kind {
            Kind::Lately => {
                let config = folder.join("serve.toml");
                fs::write(
                    &config,
                    format!(
                        "allow_flush = true\nmemory = \"8GiB\"\n[keyspace]\ncapacity = {}\n",
                        start.keys
                    ),
                )?;
                command.arg(&settings.lately);
                if !settings.huge_pages {
                    command.arg("--no-huge-pages");
                }
                command.args(["serve", "--threads", "1", "--config"]);
                command.arg(&config).args(["--listen", &format!("127.0.0.1:{port}")]);
                command.args(["--save-every", "24h", "--durability", start.durability]);
                if start.durability != "none" {
                    command.arg("--dir").arg(&folder);
                }
            }
            Kind::Redis | Kind::RedisBloom => {
                let bloom = settings.bloom.as_ref().filter(|_| kind == Kind::RedisBloom);
                command.arg(bloom.map_or(&settings.redis, |bloom| &bloom.server));
                command.args(["--port", &port.to_string(), "--save", "", "--bind", "127.0.0.1"]);
                command.arg("--dir").arg(&folder);
                if let Some(bloom) = bloom {
                    command.arg("--loadmodule").arg(&bloom.module);
                }
            }
        }
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let mut server = Self { kind, child, port, folder };
        let begun = Instant::now();
        while server.ask("PING").is_err() {
            if server.child.try_wait()?.is_some() || begun.elapsed() > PATIENCE {
                return Err(format!("{kind:?} does not start").into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn connect(&self) -> std::io::Result<TcpStream> {
        let stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// The reply to a command in one line, which must not be an error.
    pub(crate) fn ask(&self, line: &str) -> Result<String, Box<dyn Error>> {
        let mut stream = self.connect()?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut request = Vec::new();
        let words: Vec<&str> = line.split(' ').collect();
        write_command(&words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>(), &mut request);
        write_command(&[b"QUIT"], &mut request);
        stream.write_all(&request)?;
        let mut reply = String::new();
        stream.read_to_string(&mut reply)?;
        match reply.starts_with('-') {
            true => Err(format!("{line}: {reply}").into()),
            false => Ok(reply),
        }
    }

    /// Processor time that all its threads have used, in nanoseconds.
    pub(crate) fn processor_time(&self) -> std::io::Result<u64> {
        let mut sum = 0;
        for thread in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let times = fs::read_to_string(thread?.path().join("schedstat"))?;
            sum += times.split(' ').next().and_then(|time| time.parse().ok()).unwrap_or(0);
        }
        Ok(sum)
    }

    /// Resident memory, in bytes.
    pub(crate) fn resident(&self) -> std::io::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        Ok(kilobytes.unwrap_or(0) * 1024)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A command as clients send it.
pub(crate) fn write_command(words: &[&[u8]], into: &mut Vec<u8>) {
    into.extend(format!("*{}\r\n", words.len()).bytes());
    for word in words {
        into.extend(format!("${}\r\n", word.len()).bytes());
        into.extend_from_slice(word);
        into.extend_from_slice(b"\r\n");
    }
}
