//! A process with hosts at a broker.

use crate::broker::{Broker, Profile, RECEIVE_MAXIMUM};
use crate::clock::Clock;
use crate::link::{Arrived, Event, Link, Status};
use crate::run::{PATIENCE, RunError, Stop};
use crate::store::{Folder, Journal, blobs};
use crate::topic::{Address, Sender, topic};
use crate::traffic::Traffic;
use lately_edge::Millis;
use lately_edge::cell::Square;
use lately_edge::host::{Handled, Host, HostConfig, Receipt};
use lately_edge::message::{HostId, Message, Outgoing, Peer};
use lately_edge::process::Process;
use lately_edge::wire;
use std::collections::VecDeque;
use std::io;
use tokio::time::{MissedTickBehavior, interval};

const STATE: &str = "hosts";
/// Messages that wait to be sent at most.
const QUEUE: usize = 1 << 16;
/// While more than this wait to be sent, nothing more is taken from the broker.
const BUSY: usize = 1 << 13;
/// Messages that may be unconfirmed at a time.
const INFLIGHT: u16 = 1_024;

/// A process with hosts to run.
///
/// # Guarantee
/// A message is confirmed to the broker when what it changed is on disk, and only then others are told of it.
/// What was not confirmed comes again, and is known again. So a reading that was kept outlives the process.
///
/// # Cost
/// Of each batch of messages (all that have arrived, at most [`RECEIVE_MAXIMUM`])
/// one write to the journal and one sync. Once a tick, if anything changed, all hosts are written as a whole and the journal
/// begins anew: so readings go out in batches whose numbers are on disk, and are not sent under others
/// after a crash.
pub struct HostRun {
    broker: Broker,
    clock: Clock,
    folder: Folder,
    process: Process,
    /// The number of the state on disk and its journal.
    number: u64,
    journal: Journal,
    resumed: Resumed,
}

/// What a process found when it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resumed {
    /// Hosts in the state.
    pub hosts: usize,
    /// Messages that came after it.
    pub messages: usize,
    /// Bytes of a message that the end cut off; nobody was told that it is safe.
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
        if let Some((saved, hosts)) = blobs::read(&folder, STATE)? {
            number = saved;
            let (records, cut_off) = Journal::read(&folder, number)?;
            // As of then: messages that were taken in time are still taken after a long pause.
            let then = records.first().and_then(|record| record.first_chunk::<8>());
            let now = then.map_or_else(|| clock.now(), |&then| Millis::from_le_bytes(then));
            for bytes in &hosts {
                process.adopt(restore(bytes, config, now, &folder)?);
            }
            resumed = Resumed { hosts: hosts.len(), messages: records.len(), cut_off };
            records.iter().for_each(|record| replay(&mut process, record));
        }
        let journal = snapshot(&folder, number + 1, &process)?;
        // One that is left behind is of no use, and harms nobody.
        let _ = std::fs::remove_file(folder.file(&format!("journal-{number}")));
        Ok(Self { broker, clock, folder, process, number: number + 1, journal, resumed })
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
        self.process.hosts().for_each(|host| link.subscribe(Peer::Host(host.square())));
        let mut ticks = interval(self.clock.tick());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut held = VecDeque::new();
        loop {
            tokio::select! {
                biased;
                () = stop.asked() => break,
                _ = ticks.tick() => {
                    self.tick(&mut link)?;
                    watch(&HostView { process: &self.process, link: link.status() });
                }
                event = link.next((!held.is_empty()).then_some(BUSY / 2)) => {
                    self.take(&mut link, event, &mut held)?;
                    while let Some(event) = link.next_arrived() {
                        self.take(&mut link, event, &mut held)?;
                    }
                }
            }
            while !held.is_empty() && link.waiting() < BUSY {
                self.batch(&mut link, &mut held)?;
            }
        }
        self.tick(&mut link)?;
        link.send_to(Peer::Coordinator, &gone);
        let traffic = link.close(PATIENCE).await;
        Ok((self.process, traffic))
    }

    fn take(
        &mut self,
        link: &mut Link,
        event: Event,
        held: &mut VecDeque<Arrived>,
    ) -> Result<(), RunError> {
        match event {
            // A broker that keeps to what was agreed sends only so many before they are confirmed.
            Event::Arrived(arrived) => held.push_back(arrived),
            Event::Up => link.send(&self.process.hello()),
            // They come again.
            Event::Down => held.clear(),
            Event::Room => {}
            Event::Refused(reason) => return Err(RunError::Refused(reason)),
        }
        Ok(())
    }

    /// Handles what has arrived, makes it safe, confirms it, and tells others.
    fn batch(&mut self, link: &mut Link, held: &mut VecDeque<Arrived>) -> io::Result<()> {
        if held.is_empty() {
            return Ok(());
        }
        let mut out = Vec::new();
        // No more at a time, even if a broker sends more: what they lead to must find room.
        let count = held.len().min(usize::from(RECEIVE_MAXIMUM));
        for arrived in held.iter().take(count) {
            let Some(letter) = link.read(arrived) else { continue };
            let now = self.clock.now();
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
        self.journal.commit()?;
        held.drain(..count).for_each(|arrived| link.confirm(arrived));
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
        if !matches!(message, Message::Leave { .. }) {
            return;
        }
        let squares: Vec<Square> = self.process.hosts().map(Host::square).collect();
        for square in squares {
            // A host that does not know the worker has nothing to do.
            let _ = self.process.handle(now, Peer::Host(square), message.clone(), out);
        }
    }

    /// Lets time pass.
    fn tick(&mut self, link: &mut Link) -> io::Result<()> {
        let mut out = Vec::new();
        let leaving: Vec<Square> = self.process.leaving().map(Host::square).collect();
        self.process.tick(self.clock.now(), &mut out);
        leaving.into_iter().for_each(|square| self.listen(link, square));
        let results = |outgoing: &Outgoing| matches!(outgoing.message, Message::Results { .. });
        if !self.journal.is_empty() || out.iter().any(results) {
            let next = snapshot(&self.folder, self.number + 1, &self.process)?;
            self.number += 1;
            std::mem::replace(&mut self.journal, next).discard()?;
        }
        out.iter().for_each(|outgoing| link.send(outgoing));
        Ok(())
    }
}

/// Writes all hosts, and begins the journal that follows.
fn snapshot(folder: &Folder, number: u64, process: &Process) -> io::Result<Journal> {
    // The journal first: a state without one would be mistaken for a state after which nothing came.
    let journal = Journal::begin(folder, number)?;
    let hosts: Vec<Vec<u8>> = process.hosts().chain(process.leaving()).map(Host::save).collect();
    blobs::write(folder, STATE, number, &hosts)?;
    Ok(journal)
}

fn restore(bytes: &[u8], config: HostConfig, now: Millis, folder: &Folder) -> io::Result<Host> {
    Host::restore(bytes, config, now).map_err(|error| {
        let path = folder.file(STATE);
        io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", path.display()))
    })
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
        let _ = process.handle(u64::from_le_bytes(*now), to, message, &mut Vec::new());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lately_edge::element::{Element, Property};
    use lately_edge::filter::Stamp;
    use lately_edge::message::{Reading, RequesterId, TaskId, WorkerId};
    use lately_edge::rules::Rules;
    use lately_edge::task::{Area, Task};

    const THEN: Millis = 1_500_000_000_000;

    fn bytes(message: &Message) -> Vec<u8> {
        let mut bytes = Vec::new();
        wire::encode(message, &mut bytes);
        bytes
    }

    fn submit(sequence: u64) -> Message {
        let element = Element {
            cell: format!("33TWL7597{sequence:02}").parse().unwrap(),
            property: Property::new("noise").unwrap(),
        };
        let reading = Reading { element, value: 1.0, time: THEN };
        let (worker, stamp) = (WorkerId(7), Stamp::default());
        Message::Submit { worker, sequence, stamp, refresh: false, reading }
    }

    /// However long the pause, and wherever the journal was cut off.
    #[test]
    fn what_is_in_the_journal_is_there_after_a_restart() {
        let place = tempfile::tempdir().unwrap();
        let open = || Folder::open(place.path()).unwrap();
        let broker = Broker::new("mqtt://localhost", None).unwrap();
        let run = |folder| {
            let clock = Clock::default();
            HostRun::new(broker.clone(), clock, folder, 8, HostConfig::default()).unwrap()
        };
        let property = Property::new("noise").unwrap();
        let (id, until) = (TaskId(1), Millis::MAX);
        let task = Task { id, property, area: Area::Everywhere, from: 0, until, wanted: 1 };
        let square = "33TWL77".parse().unwrap();
        let tasks = vec![(RequesterId(1), task)];
        let me = run(open()).id();
        {
            let mut first = run(open());
            let place = Message::Place { square, rules: Rules::PAPER, tasks };
            first.journal.add(&record(THEN, Peer::Process(me), &bytes(&place)));
            for sequence in 30..40 {
                let submit = bytes(&submit(sequence));
                first.journal.add(&record(THEN, Peer::Host(square), &submit));
            }
            first.journal.commit().unwrap();
        }
        let second = run(open());
        assert_eq!(second.resumed(), Resumed { hosts: 0, messages: 11, cut_off: 0 });
        let host = second.process.host(square).unwrap();
        assert_eq!((host.counts().kept, host.pending()), (10, 10));
        drop(second);
        let third = run(open());
        assert_eq!(third.resumed(), Resumed { hosts: 1, messages: 0, cut_off: 0 });
        assert_eq!(third.process.host(square).unwrap().pending(), 10);
        assert_eq!(third.id(), me);
        let files = std::fs::read_dir(place.path()).unwrap().count();
        assert_eq!(files, 4, "hosts, id, lock and one journal");
    }
}
