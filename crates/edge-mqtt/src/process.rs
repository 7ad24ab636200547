//! A process with hosts at a broker.

mod disk;

pub use disk::{Missing, Resumed};

use crate::broker::{Broker, Profile, RECEIVE_MAXIMUM};
use crate::clock::Clock;
use crate::guard::{self, Guard};
use crate::link::{Arrived, Event, Link, Status};
use crate::run::{PATIENCE, RunError, Stop};
use crate::store::Folder;
use crate::topic::{Address, Office, Sender, topic};
use crate::traffic::Traffic;
use disk::Disk;
use lately_edge::Millis;
use lately_edge::cell::Square;
use lately_edge::host::{Handled, Host, HostConfig, Receipt, WRONG_CLOCK};
use lately_edge::ids::ProcessId;
use lately_edge::lease::Standing;
use lately_edge::message::{Message, Outgoing, Peer};
use lately_edge::process::Process;
use lately_edge::wire;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use tokio::time::{MissedTickBehavior, interval};

/// Messages that wait to be sent at most.
const QUEUE: usize = 1 << 16;
/// While more than this wait to be sent, nothing more is taken from the broker.
const BUSY: usize = 1 << 13;
/// Messages that may be unconfirmed at a time.
const INFLIGHT: u16 = 1_024;
/// Messages that may be unhandled, or handled and not confirmed yet, at a time, and the bytes of the unhandled ones. Far
/// beyond what was agreed with the broker: mosquitto 2.0.11 was seen to send more than 65,536 unconfirmed under load.
const HELD: (usize, usize) = (1 << 20, 1 << 26);

/// A process with hosts to run.
///
/// # Guarantee
/// A message is acknowledged to the broker once its changes are on disk, and only then do others hear of it. The
/// broker redelivers what was not acknowledged, and the host recognises duplicates. A reading that was kept therefore
/// outlives the process.
///
/// # Cost
/// One write to the journal and one sync for each batch of messages (all that have arrived, at most
/// [`RECEIVE_MAXIMUM`]), and another for each tick that sends readings, so that batches keep their numbers after a
/// crash. When the journal is longer than the state was (and than 1 MiB), all hosts are written as a whole and a new
/// journal begins: the bytes written are a small multiple of the bytes received, however much is kept.
pub struct ProcessRun {
    broker: Broker,
    clock: Clock,
    process: Process,
    disk: Disk,
    /// The moment up to which hosts have been told the time.
    now: Millis,
    /// Hosts changed without a message, so the journal alone cannot restore them.
    unseen: bool,
    resumed: Resumed,
    /// Which coordinator acts: its name and epoch.
    coordinator: Option<(u64, u64)>,
}

/// Snapshot passed to observers.
pub struct ProcessView<'a> {
    /// The role.
    pub process: &'a Process,
    /// Its connection.
    pub link: Status<'a>,
}

impl ProcessRun {
    /// A process that runs at most `room` squares. It resumes from the state in the folder, if there is one.
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
        let id = ProcessId(folder.identity("id")?);
        let mut process = Process::new(id, room, config);
        let now = clock.now();
        let (disk, resumed) = Disk::open(folder, &mut process, config, now)?;
        Ok(Self { broker, clock, process, disk, now, unseen: false, resumed, coordinator: None })
    }

    /// What it found when it started.
    pub fn resumed(&self) -> Resumed {
        self.resumed
    }

    /// Its name.
    pub fn id(&self) -> ProcessId {
        self.process.id()
    }

    /// Runs until it is asked to stop. `watch` is shown it about once a second.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn run(
        mut self,
        mut stop: Stop,
        mut watch: impl FnMut(&ProcessView<'_>),
    ) -> Result<(Process, Traffic), RunError> {
        let id = self.process.id();
        let mut guard = Guard::open(&self.broker, Office::Process(id));
        if !self.wait(&mut guard, &mut stop, &mut watch).await? {
            return Ok((self.process, Traffic::default()));
        }
        let gone = Message::Gone { process: id };
        let mut will = Vec::new();
        wire::encode(&gone, &mut will);
        let will = Some((topic(Peer::Coordinator, Sender::Process), will));
        let client = format!("lately-process-{id}");
        let profile = Profile { client: &client, will, durable: true, inflight: INFLIGHT };
        let mut link = Link::open(&self.broker, Sender::Process, profile, QUEUE);
        link.subscribe(Peer::Process(id));
        link.subscribe(Address::Gone);
        link.subscribe(Address::Lease(Office::Coordinator));
        self.listen_to_all(&mut link);
        let mut ticks = interval(self.clock.tick());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut held = Held::new(HELD);
        loop {
            tokio::select! {
                biased;
                () = stop.asked() => break,
                standing = guard::next(&mut guard) => alone(standing?, id)?,
                _ = ticks.tick() => {
                    self.tick(&mut link)?;
                    watch(&ProcessView { process: &self.process, link: link.status() });
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
        self.rewrite()?;
        link.send_to(Peer::Coordinator, &gone);
        let traffic = link.close(PATIENCE).await;
        if let Some(guard) = guard {
            guard.close().await;
        }
        Ok((self.process, traffic))
    }

    /// Waits until it is clear that no other process of this identity runs; `false` when it is asked to stop.
    async fn wait(
        &mut self,
        guard: &mut Option<Guard>,
        stop: &mut Stop,
        watch: &mut impl FnMut(&ProcessView<'_>),
    ) -> Result<bool, RunError> {
        let Some(guard) = guard else { return Ok(true) };
        loop {
            tokio::select! {
                biased;
                () = stop.asked() => return Ok(false),
                standing = guard.next() => match standing? {
                    Standing::Acts(_) => return Ok(true),
                    standing => alone(standing, self.process.id())?,
                },
            }
            if guard.status().trouble.is_some() {
                watch(&ProcessView { process: &self.process, link: guard.status() });
            }
        }
    }

    fn take(&mut self, link: &mut Link, event: Event, held: &mut Held) -> Result<(), RunError> {
        match event {
            Event::Arrived(arrived) => held.take(link, arrived),
            Event::Up => {
                link.send(&self.process.hello());
                self.process.reconnected();
            }
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
                    let is_submission = matches!(letter.message, Message::Submit { .. });
                    let handled = self.process.handle(now, to, letter.message, &mut out);
                    if is_change(handled) {
                        self.disk.note(now, to, arrived.payload());
                        moved.into_iter().for_each(|square| self.listen(link, square));
                    } else if let Handled::Refused(why) = handled
                        && is_submission
                    {
                        self.disk.note_refusal(now, to, why, arrived.payload());
                    }
                }
                Address::Lease(_) => self.coordinator_acts(&letter.message),
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

    /// Another coordinator than before is greeted at once.
    fn coordinator_acts(&mut self, message: &Message) {
        if let Message::Lease { holder, epoch, held: true } = *message
            && self.coordinator.replace((holder, epoch)) != Some((holder, epoch))
        {
            self.process.coordinator_acts();
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

    /// Lets time pass. A batch of readings is written to the journal before it is first sent.
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
                self.disk.note(now, Peer::Host(*square), &bytes);
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
        self.disk.commit()?;
        if self.unseen || self.disk.is_long() {
            self.rewrite()?;
        }
        Ok(())
    }

    /// Writes all hosts as a whole.
    fn rewrite(&mut self) -> io::Result<()> {
        self.unseen = false;
        self.disk.rewrite(&self.process)
    }
}

/// What has arrived and was not handled yet.
struct Held {
    queue: VecDeque<Arrived>,
    /// Bytes in it.
    bytes: usize,
    /// Messages and bytes that there is room for.
    most: (usize, usize),
    /// Some messages were discarded for lack of room; all that follow must be too, because their order matters.
    left_out: bool,
}

impl Held {
    fn new(most: (usize, usize)) -> Self {
        Self { queue: VecDeque::new(), bytes: 0, most, left_out: false }
    }

    /// Keeps what arrived, if there is room. A broker that respects the receive maximum never exceeds it; one that
    /// does not gets no acknowledgement, and redelivers on the next connection.
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

/// Two processes with one identity would take each other's messages.
fn alone(standing: Standing, id: ProcessId) -> Result<(), RunError> {
    match standing {
        Standing::Waits { .. } => Err(RunError::Refused(format!(
            "another process with the identity {id} runs at this broker; a copy of its --state folder has the same identity: remove `id` and `hosts` from the copy, or stop the other process"
        ))),
        Standing::Asking | Standing::Acts(_) => Ok(()),
    }
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

#[cfg(test)]
mod tests;
