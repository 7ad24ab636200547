//! Clients that send commands as fast as replies come, all in one thread.

use super::server::{Kind, Server, write_command};
use oorandom::Rand64;
use rustix::event::epoll;
use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// What is sent again and again, each time with another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// `BF.ADD f key`
    Add,
    /// `BF.EXISTS f key`
    Exists,
    /// `SET key 1 NX EX 600`
    Set,
}

/// Which keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keys {
    /// Numbers from here on, each once.
    Fresh(u64),
    /// Every second one is fresh; the others are any of those below.
    HalfKnown(u64),
    /// Any of those below.
    Below(u64),
}

/// When it ends.
#[derive(Clone, Copy)]
pub(crate) enum Until<'a> {
    Seconds(f64),
    Commands(u64),
    /// This says so; it is asked now and then.
    Says(&'a dyn Fn() -> bool),
}

/// A load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) operation: Operation,
    pub(crate) keys: Keys,
    /// Commands that each client sends before it waits for their replies.
    pub(crate) pipeline: usize,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) commands: u64,
    /// Replies that call a key fresh, or for [`Operation::Exists`] known.
    pub(crate) positive: u64,
    pub(crate) seconds: f64,
    /// Processor time of the server, in nanoseconds.
    pub(crate) processor: u64,
    /// From sending a pipeline to its last reply, in nanoseconds, in ascending order.
    latencies: Vec<u32>,
}

impl Outcome {
    /// The latency that this share of pipelines did not exceed, in microseconds.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let at = (self.latencies.len() as f64 * share) as usize;
        let latency = self.latencies.get(at).or(self.latencies.last());
        latency.map_or(f64::NAN, |&ns| f64::from(ns) / 1e3)
    }

    /// Nanoseconds of the server's processor per command.
    pub(crate) fn processor_per_command(&self) -> f64 {
        self.processor as f64 / self.commands as f64
    }

    /// Commands per second.
    pub(crate) fn throughput(&self) -> f64 {
        self.commands as f64 / self.seconds
    }
}

const CLIENTS: usize = 50;
/// Keys from here on are no known ones.
const NEW: u64 = 1 << 40;

impl Operation {
    /// A command, and where in it the 16 hexadecimal digits of its key begin.
    fn template(self) -> (Vec<u8>, usize) {
        const KEY: &[u8] = b"key:0000000000000000";
        let mut command = Vec::new();
        match self {
            Self::Add => write_command(&[b"BF.ADD", b"f", KEY], &mut command),
            Self::Exists => write_command(&[b"BF.EXISTS", b"f", KEY], &mut command),
            Self::Set => write_command(&[b"SET", KEY, b"1", b"NX", b"EX", b"600"], &mut command),
        }
        let at = command.windows(KEY.len()).position(|bytes| bytes == KEY).unwrap_or(0);
        (command, at + 4)
    }

    /// Whom `lately` is compared with.
    pub(crate) fn peer(self) -> Kind {
        match self {
            Self::Add | Self::Exists => Kind::RedisBloom,
            Self::Set => Kind::Redis,
        }
    }

    /// Bytes of a reply, and a byte that only a positive one has.
    fn reply(self) -> (usize, u8) {
        match self {
            Self::Add | Self::Exists => (b":1\r\n".len(), b'1'),
            Self::Set => (b"+OK\r\n".len(), b'K'),
        }
    }
}

/// Writes commands with other keys.
struct Writer {
    command: Vec<u8>,
    digits: usize,
    keys: Keys,
    sent: u64,
    random: Rand64,
}

impl Writer {
    fn new(load: Load) -> Self {
        let (command, digits) = load.operation.template();
        Self { command, digits, keys: load.keys, sent: 0, random: Rand64::new(7) }
    }

    fn write(&mut self, into: &mut Vec<u8>) {
        let n = self.sent;
        self.sent += 1;
        let key = match self.keys {
            Keys::Fresh(from) => from + n,
            Keys::HalfKnown(_) if n.is_multiple_of(2) => NEW + n / 2,
            Keys::HalfKnown(end) => self.random.rand_range(0..end),
            Keys::Below(end) => self.random.rand_range(0..end),
        };
        for (at, digit) in self.command[self.digits..][..16].iter_mut().enumerate() {
            *digit = b"0123456789abcdef"[(key >> (60 - 4 * at)) as usize & 15];
        }
        into.extend_from_slice(&self.command);
    }
}

struct Client {
    stream: TcpStream,
    /// Bytes of replies that are awaited.
    awaited: usize,
    since: Instant,
}

/// Puts the load on a server.
pub(crate) fn run(
    server: &Server,
    load: Load,
    until: Until<'_>,
) -> Result<Outcome, Box<dyn Error>> {
    let (length, positive) = load.operation.reply();
    let (mut writer, mut outcome) = (Writer::new(load), Outcome::default());
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        let stream = server.connect()?;
        stream.set_nonblocking(true)?;
        let data = epoll::EventData::new_u64(number as u64);
        epoll::add(&epoll, &stream, data, epoll::EventFlags::IN)?;
        clients.push(Client { stream, awaited: 0, since: Instant::now() });
    }
    let (mut request, mut replies) = (Vec::new(), vec![0; 1 << 16]);
    let mut events = Vec::with_capacity(CLIENTS);
    let before = server.processor_time()?;
    let begun = Instant::now();
    let mut is_over = false;
    for client in &mut clients {
        client.send(&mut writer, load.pipeline, length, &mut request)?;
    }
    let mut waiting = clients.len();
    while waiting > 0 {
        events.clear();
        epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), None)?;
        is_over |= match until {
            Until::Seconds(seconds) => begun.elapsed().as_secs_f64() >= seconds,
            Until::Commands(commands) => writer.sent >= commands,
            Until::Says(says) => says(),
        };
        for event in &events {
            let data = event.data;
            let client = &mut clients[data.u64() as usize];
            let read = match client.stream.read(&mut replies) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                read => read?,
            };
            if read == 0 || read > client.awaited {
                return Err("the server ends, or says more than it is asked".into());
            }
            outcome.positive +=
                replies[..read].iter().filter(|&&byte| byte == positive).count() as u64;
            client.awaited -= read;
            if client.awaited == 0 {
                let latency = client.since.elapsed().as_nanos();
                outcome.latencies.push(u32::try_from(latency).unwrap_or(u32::MAX));
                outcome.commands += load.pipeline as u64;
                if is_over {
                    waiting -= 1;
                } else {
                    client.send(&mut writer, load.pipeline, length, &mut request)?;
                }
            }
        }
    }
    outcome.seconds = begun.elapsed().as_secs_f64();
    outcome.processor = server.processor_time()? - before;
    outcome.latencies.sort_unstable();
    Ok(outcome)
}

impl Client {
    fn send(
        &mut self,
        writer: &mut Writer,
        commands: usize,
        length: usize,
        request: &mut Vec<u8>,
    ) -> Result<(), Box<dyn Error>> {
        request.clear();
        (0..commands).for_each(|_| writer.write(request));
        self.awaited = commands * length;
        self.since = Instant::now();
        let mut rest = &request[..];
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(sent) => rest = &rest[sent..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    std::thread::sleep(Duration::from_micros(50));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
