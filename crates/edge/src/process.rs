//! A process that runs hosts: as many as the coordinator gives it.

use crate::Millis;
use crate::cell::Square;
use crate::host::{Handled, Host, HostConfig, Refusal};
use crate::message::{HostId, MAX_SQUARES, Message, Outgoing, Peer};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// A process and its hosts.
#[derive(Clone, Debug)]
pub struct Process {
    id: HostId,
    /// Squares that it runs at most.
    room: u32,
    config: HostConfig,
    hosts: BTreeMap<Square, Host>,
    next_hello: Option<Millis>,
}

/// Between two greetings.
const HELLO_EVERY: Millis = 30_000;

impl Process {
    /// A process without hosts; rules come from the coordinator, all else from `config`. It runs at most
    /// [`MAX_SQUARES`] squares.
    pub fn new(id: HostId, room: u32, config: HostConfig) -> Self {
        let room = room.min(MAX_SQUARES as u32);
        Self { id, room, config, hosts: BTreeMap::new(), next_hello: None }
    }

    /// Its name.
    pub fn id(&self) -> HostId {
        self.id
    }

    /// Takes over a host that was saved.
    pub fn adopt(&mut self, host: Host) {
        self.hosts.insert(host.square(), host);
    }

    /// Its hosts.
    pub fn hosts(&self) -> impl Iterator<Item = &Host> {
        self.hosts.values()
    }

    /// The host of a square.
    pub fn host(&self, square: Square) -> Option<&Host> {
        self.hosts.get(&square)
    }

    /// What the coordinator is to be told at the start and after a lost connection.
    pub fn hello(&self) -> Outgoing {
        let squares = self.hosts.keys().copied().collect();
        let message = Message::Hello { host: self.id, room: self.room, squares };
        Outgoing { to: Peer::Coordinator, message }
    }

    /// Takes a message for the process itself or for one of its hosts.
    pub fn handle(
        &mut self,
        now: Millis,
        to: Peer,
        message: Message,
        out: &mut Vec<Outgoing>,
    ) -> Handled {
        match (to, message) {
            (Peer::Process(id), Message::Place { square, rules, tasks }) if id == self.id => {
                let full = self.hosts.len() >= self.room as usize;
                if (full && !self.hosts.contains_key(&square)) || rules.check().is_err() {
                    return Handled::Refused(Refusal::NotForMe);
                }
                let config = HostConfig { rules, ..self.config };
                let host =
                    self.hosts.entry(square).or_insert_with(|| Host::new(square, config, now));
                for (requester, task) in tasks {
                    // A task that is over meanwhile, or known, is nothing to complain about.
                    let _ = host.handle(now, Message::Forward { requester, task }, out);
                }
                let message = Message::Ready { host: self.id, square };
                out.push(Outgoing { to: Peer::Coordinator, message });
                Handled::Done
            }
            (Peer::Host(square), message) => match self.hosts.get_mut(&square) {
                Some(host) => host.handle(now, message, out),
                None => Handled::Refused(Refusal::NotForMe),
            },
            _ => Handled::Refused(Refusal::NotForMe),
        }
    }

    /// Lets time pass for all hosts, and greets the coordinator from time to time.
    pub fn tick(&mut self, now: Millis, out: &mut Vec<Outgoing>) {
        if self.next_hello.is_none_or(|next| now >= next) {
            self.next_hello = Some(now.saturating_add(HELLO_EVERY));
            out.push(self.hello());
        }
        self.hosts.values_mut().for_each(|host| host.tick(now, out));
    }
}
