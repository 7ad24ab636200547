//! A client as a process, and what it takes.

use crate::brokers::{Broker, program};
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Who reads and publishes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Client {
    /// The program, with a state file or without.
    Lately { state: bool },
    /// The connections of this crate, without anything between them.
    Ours,
    /// mosquitto's own clients, which acknowledge a message before it is published again.
    Mosquitto,
    /// A client of async-nats that acknowledges a message when the server has its copy; whether copies have ids.
    Nats { ids: bool },
    /// A client of librdkafka that commits what has been delivered.
    Kafka,
}

/// What a run took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) seconds: f64,
    /// Of all processors, in seconds.
    pub(crate) processor: f64,
    /// The most memory at a time, in bytes.
    pub(crate) memory: u64,
}

impl Run {
    pub(crate) fn median(runs: &mut [Self]) -> Self {
        runs.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        runs[runs.len() / 2]
    }
}

/// Processes of a client, killed when this is dropped.
pub(crate) struct Processes(Vec<Child>);

impl Client {
    pub(crate) fn is_there(self) -> bool {
        self != Self::Mosquitto || program("mosquitto_sub").is_some()
    }

    /// Reads what the broker has under the name of `reader`, and publishes it.
    pub(crate) fn start(self, from: &Broker, to: &Broker, reader: &str) -> Processes {
        if self == Self::Mosquitto {
            return mosquitto(from.port, to.port, reader);
        }
        self.run(&from.input(reader), &to.output(), &from.path(&format!("{reader}.state")))
    }

    /// Reads and publishes at these addresses; the program's state, if it has one, is at this path.
    pub(crate) fn run(self, input: &str, output: &str, saved: &str) -> Processes {
        let mut command = match self {
            Self::Lately { state } => {
                let mut command = Command::new(lately());
                let how = "dedup --format ndjson --key id --time t --within 10m --expect 200k";
                command.args(how.split(' ')).args([input, "-o", output]);
                if state {
                    command.args(["--state", saved]);
                }
                command
            }
            _ => {
                let how = match self {
                    Self::Nats { ids: true } => "copy-nats-ids",
                    Self::Nats { ids: false } => "copy-nats",
                    Self::Kafka => "copy-kafka",
                    _ => "copy",
                };
                let mut command = Command::new(std::env::current_exe().unwrap());
                command.args([how, input, output]);
                command
            }
        };
        Processes(vec![command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()])
    }
}

fn mosquitto(from: u16, to: u16, reader: &str) -> Processes {
    let mut subscriber = Command::new(program("mosquitto_sub").unwrap());
    let how = format!("-V 5 -p {from} -q 1 -c -i {reader} -x 3600 -t raw");
    let subscriber = subscriber.args(how.split(' ')).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut subscriber = subscriber.spawn().unwrap();
    let mut publisher = Command::new(program("mosquitto_pub").unwrap());
    let how = format!("-V 5 -p {to} -q 1 -t clean -l");
    let lines = subscriber.stdout.take().unwrap();
    let publisher = publisher.args(how.split(' ')).stdin(lines).spawn().unwrap();
    Processes(vec![subscriber, publisher])
}

/// The program: where `LATELY` says, or as `cargo build --release` leaves it.
fn lately() -> PathBuf {
    let built = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/release/lately");
    let path = std::env::var_os("LATELY").map_or_else(|| built.into(), PathBuf::from);
    assert!(path.is_file(), "{} is not there; build it first", path.display());
    path
}

impl Processes {
    /// Processor time so far, in seconds.
    pub(crate) fn processor(&self) -> f64 {
        let of = |id: u32| {
            let text = fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
            let fields: Vec<&str> = text.rsplit(')').next().unwrap().split_whitespace().collect();
            // In hundredths of a second, whatever the kernel counts in.
            (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
        };
        self.0.iter().map(|one| of(one.id())).sum()
    }

    /// A line of what the kernel says of memory, such as `VmHWM`, in bytes.
    pub(crate) fn memory(&self, line: &str) -> u64 {
        let of = |id: u32| {
            let text = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
            let found = text.lines().find(|one| one.starts_with(line)).unwrap();
            found.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
        };
        self.0.iter().map(|one| of(one.id())).sum()
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for process in &mut self.0 {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
