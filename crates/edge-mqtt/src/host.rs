//! A process with hosts at a broker.

use crate::broker::{Broker, Profile, RECEIVE_MAXIMUM};
use crate::clock::Clock;
use crate::link::{Arrived, Event, Link, Status};
use crate::run::{PATIENCE, RunError, Stop};
use crate::store::{Entries, Folder, Journal, blobs};
use crate::topic::{Address, Sender, topic};
use crate::traffic::Traffic;
use lately_edge::Millis;
use lately_edge::cell::Square;
use lately_edge::host::{Handled, Host, HostConfig, Receipt, WRONG_CLOCK};
use lately_edge::message::{HostId, Message, Outgoing, Peer};
use lately_edge::process::Process;
use lately_edge::wire;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use tokio::time::{MissedTickBehavior, interval};

const STATE: &str = "hosts";
/// Messages that wait to be sent at most.
const QUEUE: usize = 1 << 16;
/// While more than this wait to be sent, nothing more is taken from the broker.
const BUSY: usize = 1 << 13;
/// Messages that may be unconfirmed at a time.
const INFLIGHT: u16 = 1_024;
/// Messages that may be unhandled, or handled and not confirmed yet, at a time, and the bytes of the unhandled ones. Far
/// beyond what was agreed with the broker: mosquitto 2.0.11 was seen to send more than 65,536 unconfirmed under load.
const HELD: (usize, usize) = (1 << 20, 1 << 26);
/// A journal may always get as long as this.
const SHORTEST: u64 = 1 << 20;

/// A process with hosts to run.
///
/// # Guarantee
/// A message is confirmed to the broker when what it changed is on disk, and only then others are told of it.
/// What was not confirmed comes again, and is known again. So a reading that was kept outlives the process.
///
/// # Cost
/// Of each batch of messages (all that have arrived, at most [`RECEIVE_MAXIMUM`])
/// one write to the journal and one sync; of each tick that hands readings on, another, so that batches keep their
/// numbers after a crash. When the journal is longer than the state was (and than 1 MiB), all hosts are
/// written as a whole and it begins anew: what is written is a few times what comes, however much is kept.
pub struct HostRun {
    broker: Broker,
    clock: Clock,
    folder: Folder,
    process: Process,
    /// The number of the state on disk and its journal.
    number: u64,
    journal: Journal,
    /// How long the journal may get.
    most: u64,
    /// The moment up to which hosts have been told the time.
    now: Millis,
    /// Something happened to hosts that no message brought about, so the journal is not enough.
    unseen: bool,
    resumed: Resumed,
}

/// What a process found when it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resumed {
    /// Hosts in the state.
    pub hosts: usize,
    /// Messages that came after it, and batches of readings that were sent.
    pub messages: usize,
    /// Bytes of a write that the end cut off; nobody was told that anything of it is safe.
    pub cut_off: usize,
}

/// What somebody who looks on is shown.
pub struct HostView<'a> {
    /// The role.
    pub process: &'a Process,
    /// Its connection.
    pub link: Status<'a>,
}

impl HostRun {
    /// A process that runs at most `room` squares, with the state in the folder, if there is one.
    ///
    /// # Errors
    /// What the file system says, or that the state is damaged.
    pub fn new(
        broker: Broker,
        clock: Clock,
        folder: Folder,
        room: u32,
        config: HostConfig,
    ) -> io::Result<Self> {
        let id = HostId(folder.identity("id")?);
        let mut process = Process::new(id, room, config);
        let mut resumed = Resumed::default();
        let mut number = 0;
        let now = clock.now();
        if let Some((saved, blobs)) = blobs::read(&folder, STATE)? {
            number = saved;
            let Entries { records, cut_off } = Journal::read(&folder, number)?;
            resumed = Resumed {
                hosts: reopen(&mut process, &blobs, config, &folder)?,
                messages: records.len(),
                cut_off,
            };
            records.iter().for_each(|record| replay(&mut process, record));
            process.resume(now);
        }
        let (journal, most) = snapshot(&folder, number + 1, &process)?;
        // One that is left behind is of no use, and harms nobody.
        let _ = std::fs::remove_file(folder.file(&format!("journal-{number}")));
        let (number, unseen) = (number + 1, false);
        Ok(Self { broker, clock, folder, process, number, journal, most, now, unseen, resumed })
    }

    /// What it found when it started.
    pub fn resumed(&self) -> Resumed {
        self.resumed
    }

    /// Its name.
    pub fn id(&self) -> HostId {
        self.process.id()
    }

    /// Runs until it is asked to stop. `watch` is shown it about once a second.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn run(
        mut self,
        mut stop: Stop,
        mut watch: impl FnMut(&HostView<'_>),
    ) -> Result<(Process, Traffic), RunError> {
        let id = self.process.id();
        let gone = Message::Gone { host: id };
        let mut will = Vec::new();
        wire::encode(&gone, &mut will);
        let will = Some((topic(Peer::Coordinator, Sender::Process), will));
        let client = format!("lately-host-{id}");
        let profile = Profile { client: &client, will, durable: true, inflight: INFLIGHT };
        let mut link = Link::open(&self.broker, Sender::Process, profile, QUEUE);
        link.subscribe(Peer::Process(id));
        link.subscribe(Address::Gone);
        self.listen_to_all(&mut link);
        let mut ticks = interval(self.clock.tick());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut held = Held::new(HELD);
        loop {
            tokio::select! {
                biased;
                () = stop.asked() => break,
                _ = ticks.tick() => {
                    self.tick(&mut link)?;
                    watch(&HostView { process: &self.process, link: link.status() });
                }
                event = link.next((!held.queue.is_empty()).then_some(BUSY / 2)) => {
                    self.take(&mut link, event, &mut held)?;
                    while let Some(event) = link.next_arrived() {
                        self.take(&mut link, event, &mut held)?;
                    }
                }
            }
            while !held.queue.is_empty() && link.waiting() < BUSY {
                self.batch(&mut link, &mut held)?;
            }
            if held.left_out && held.queue.is_empty() && link.unconfirmed() == 0 {
                link.reconnect();
            }
        }
        self.tick(&mut link)?;
        self.begin_journal()?;
        link.send_to(Peer::Coordinator, &gone);
        let traffic = link.close(PATIENCE).await;
        Ok((self.process, traffic))
    }

    fn take(&mut self, link: &mut Link, event: Event, held: &mut Held) -> Result<(), RunError> {
        match event {
            Event::Arrived(arrived) => held.take(link, arrived),
            Event::Up => link.send(&self.process.hello()),
            // They come again.
            Event::Down => *held = Held::new(HELD),
            Event::Room => {}
            Event::Refused(reason) => return Err(RunError::Refused(reason)),
        }
        Ok(())
    }

    /// Handles what has arrived, makes it safe, confirms it, and tells others.
    fn batch(&mut self, link: &mut Link, held: &mut Held) -> io::Result<()> {
        if held.queue.is_empty() {
            return Ok(());
        }
        let mut out = Vec::new();
        // No more at a time, even if a broker sends more: what they lead to must find room.
        let count = held.queue.len().min(usize::from(RECEIVE_MAXIMUM));
        for arrived in held.queue.iter().take(count) {
            let Some(letter) = link.read(arrived) else { continue };
            let now = self.pass();
            match letter.to {
                Address::Peer(to) => {
                    let moved = moved(&letter.message);
                    let handled = self.process.handle(now, to, letter.message, &mut out);
                    if is_change(handled) {
                        self.journal.add(&record(now, to, arrived.payload()));
                        moved.into_iter().for_each(|square| self.listen(link, square));
                    }
                }
                Address::Gone => self.gone(now, &letter.message, &mut out),
            }
        }
        self.make_safe()?;
        for arrived in held.queue.drain(..count) {
            held.bytes -= arrived.payload().len();
            link.confirm(arrived);
        }
        out.iter().for_each(|outgoing| link.send(outgoing));
        Ok(())
    }

    /// Subscribes to what concerns a square: all of it, or only confirmations if it lets go of it, or nothing.
    fn listen(&self, link: &mut Link, square: Square) {
        let (host, by) = (Peer::Host(square), Sender::Requester);
        if self.process.host(square).is_some() {
            link.subscribe(host);
            link.unsubscribe_by(host, by);
        } else {
            if self.process.leaving().any(|host| host.square() == square) {
                link.subscribe_by(host, by);
            } else {
                link.unsubscribe_by(host, by);
            }
            link.unsubscribe(host);
        }
    }

    /// A worker's connection was lost, wherever it is.
    fn gone(&mut self, now: Millis, message: &Message, out: &mut Vec<Outgoing>) {
        let Message::Leave { worker } = *message else { return };
        let knowing = self.process.hosts().filter(|host| host.knows(worker));
        let squares: Vec<Square> = knowing.map(Host::square).collect();
        for square in squares {
            // It is there, and has nothing to refuse.
            let _ = self.process.handle(now, Peer::Host(square), message.clone(), out);
        }
    }

    /// The moment, and that all know it. Time does not go back, as replay could not tell what hosts had been told
    /// without a message; but for a clock that was wrong by more than they put up with.
    fn pass(&mut self) -> Millis {
        let now = self.clock.now();
        let was_wrong = now.saturating_add(WRONG_CLOCK) < self.now;
        self.unseen |= was_wrong;
        self.now = if was_wrong { now } else { self.now.max(now) };
        self.now
    }

    /// Subscribes to what concerns any of its hosts.
    fn listen_to_all(&self, link: &mut Link) {
        self.process.all_hosts().for_each(|host| self.listen(link, host.square()));
    }

    /// Lets time pass. Of readings that are handed on for the first time it is noted in which batch, before they
    /// are.
    fn tick(&mut self, link: &mut Link) -> io::Result<()> {
        let mut out = Vec::new();
        let leaving: Vec<Square> = self.process.leaving().map(Host::square).collect();
        let hosts = self.process.all_hosts();
        let last: BTreeMap<Square, u64> =
            hosts.filter_map(|host| Some((host.square(), host.last_batch()?))).collect();
        let now = self.pass();
        self.process.tick(now, &mut out);
        for outgoing in &out {
            if let Message::Results { square, batch, .. } = &outgoing.message
                && last.get(square).is_none_or(|last| batch > last)
            {
                let mut bytes = Vec::new();
                wire::encode(&outgoing.message, &mut bytes);
                self.journal.add(&record(now, Peer::Host(*square), &bytes));
            }
        }
        self.unseen |= self.process.leaving().count() < leaving.len();
        self.make_safe()?;
        leaving.into_iter().for_each(|square| self.listen(link, square));
        out.iter().for_each(|outgoing| link.send(outgoing));
        Ok(())
    }

    /// Makes what has changed outlive the process.
    fn make_safe(&mut self) -> io::Result<()> {
        self.journal.commit()?;
        if self.unseen || self.journal.length() > self.most {
            self.begin_journal()?;
        }
        Ok(())
    }

    /// Writes all hosts, and begins the journal anew.
    fn begin_journal(&mut self) -> io::Result<()> {
        let (next, most) = snapshot(&self.folder, self.number + 1, &self.process)?;
        (self.number, self.most, self.unseen) = (self.number + 1, most, false);
        std::mem::replace(&mut self.journal, next).discard()
    }
}

/// What has arrived and was not handled yet.
struct Held {
    queue: VecDeque<Arrived>,
    /// Bytes in it.
    bytes: usize,
    /// Messages and bytes that there is room for.
    most: (usize, usize),
    /// So many came that some were left out; and so must be all that follow, as their order matters.
    left_out: bool,
}

impl Held {
    fn new(most: (usize, usize)) -> Self {
        Self { queue: VecDeque::new(), bytes: 0, most, left_out: false }
    }

    /// Keeps what arrived, if there is room. A broker that keeps to what was agreed sends only so many before they
    /// are confirmed; one that does not gets no confirmation, and delivers it again to the next connection.
    fn take(&mut self, link: &mut Link, arrived: Arrived) {
        let unconfirmed = self.queue.len() + link.unconfirmed();
        self.left_out |= unconfirmed >= self.most.0 || self.bytes >= self.most.1;
        if self.left_out {
            link.traffic.note_dropped("left-out");
        } else {
            self.bytes += arrived.payload().len();
            self.queue.push_back(arrived);
        }
    }
}

/// Writes all hosts, and begins the journal that follows, which may get as long as they are.
fn snapshot(folder: &Folder, number: u64, process: &Process) -> io::Result<(Journal, u64)> {
    // The journal first: a state without one would be mistaken for a state after which nothing came.
    let journal = Journal::begin(folder, number)?;
    // How many of them are not leaving, and all.
    let mut blobs = vec![(process.hosts().count() as u64).to_le_bytes().to_vec()];
    blobs.extend(process.all_hosts().map(Host::save));
    let length: usize = blobs.iter().map(Vec::len).sum();
    blobs::write(folder, STATE, number, &blobs)?;
    Ok((journal, SHORTEST.max(length as u64)))
}

/// The hosts of a state, as they were; how many there are.
fn reopen(
    process: &mut Process,
    blobs: &[Vec<u8>],
    config: HostConfig,
    folder: &Folder,
) -> io::Result<usize> {
    let damaged = |error: &dyn std::fmt::Display| {
        let path = folder.file(STATE);
        io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", path.display()))
    };
    let (staying, hosts) = blobs.split_first().ok_or_else(|| damaged(&"too short"))?;
    let staying = staying.as_slice().try_into().map(u64::from_le_bytes);
    let staying = staying.map_err(|_| damaged(&"no number of hosts"))?;
    for (at, bytes) in (0..).zip(hosts) {
        let host = Host::reopen(bytes, config).map_err(|error| damaged(&error))?;
        if at < staying { process.adopt(host) } else { process.adopt_leaving(host) }
    }
    Ok(hosts.len())
}

/// The square that the process gets or lets go of.
fn moved(message: &Message) -> Option<Square> {
    match message {
        Message::Place { square, .. } | Message::Release { square } => Some(*square),
        _ => None,
    }
}

/// Must it be known after a crash?
fn is_change(handled: Handled) -> bool {
    !matches!(handled, Handled::Refused(_) | Handled::Reading(Receipt::Duplicate))
}

/// A message that was handled: the moment, the square (0: the process itself), the message.
fn record(now: Millis, to: Peer, payload: &[u8]) -> Vec<u8> {
    let square = if let Peer::Host(square) = to { square.id() } else { 0 };
    let mut record = now.to_le_bytes().to_vec();
    record.extend(square.to_le_bytes());
    record.extend(payload);
    record
}

/// Handles a message again. What it led to then was sent, or is sent again by those who miss it.
fn replay(process: &mut Process, record: &[u8]) {
    let Some((now, rest)) = record.split_first_chunk::<8>() else { return };
    let Some((square, payload)) = rest.split_first_chunk::<8>() else { return };
    let to = match u64::from_le_bytes(*square) {
        0 => Some(Peer::Process(process.id())),
        id => Square::from_id(id).ok().map(Peer::Host),
    };
    if let (Some(to), Ok(message)) = (to, wire::decode(payload)) {
        process.replay(u64::from_le_bytes(*now), to, message);
    }
}

#[cfg(test)]
mod tests;
