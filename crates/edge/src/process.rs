//! A process that runs hosts: as many as the coordinator gives it.

use crate::Millis;
use crate::cell::Square;
use crate::host::{Handled, Host, HostConfig, HostCounts, Refusal};
use crate::ids::{ProcessId, RequesterId};
use crate::message::{MAX_SQUARES, Message, Outgoing, Peer};
use crate::rules::Rules;
use crate::task::Task;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// A process and its hosts.
#[derive(Clone, Debug)]
pub struct Process {
    id: ProcessId,
    /// Squares that it runs at most.
    room: u32,
    config: HostConfig,
    hosts: BTreeMap<Square, Host>,
    /// Hosts that the next tick may have something to do for: a message came, or their time has come.
    awake: BTreeSet<Square>,
    /// When the others are to be woken, by square and by time.
    wakes: BTreeMap<Square, Millis>,
    alarms: BTreeSet<(Millis, Square)>,
    /// When the last tick was.
    ticked: Millis,
    /// How often a host was woken.
    woken: u64,
    /// Hosts of squares that another process runs by now, until their readings are handed over.
    leaving: BTreeMap<Square, Host>,
    /// What those did that are gone.
    former: HostCounts,
    next_hello: Millis,
    /// How long to wait after that one.
    hello_wait: Millis,
}

/// Between two greetings, at first and at most: the first ones may come before the coordinator listens.
const HELLO_EVERY: (Millis, Millis) = (1_000, 30_000);

impl Process {
    /// A process without hosts; rules come from the coordinator, all else from `config`. It runs at most
    /// [`MAX_SQUARES`] squares.
    pub fn new(id: ProcessId, room: u32, config: HostConfig) -> Self {
        let room = room.min(MAX_SQUARES as u32);
        Self {
            id,
            room,
            config,
            hosts: BTreeMap::new(),
            awake: BTreeSet::new(),
            wakes: BTreeMap::new(),
            alarms: BTreeSet::new(),
            ticked: 0,
            woken: 0,
            leaving: BTreeMap::new(),
            former: HostCounts::default(),
            next_hello: 0,
            hello_wait: HELLO_EVERY.0,
        }
    }

    /// Its name.
    pub fn id(&self) -> ProcessId {
        self.id
    }

    /// Takes over a host that was saved. It keeps its rules until the coordinator places its square again.
    pub fn adopt(&mut self, mut host: Host) {
        host.run_by(self.id);
        self.wake(host.square());
        self.hosts.insert(host.square(), host);
    }

    /// Takes over one that was saved while it was [leaving](Process::leaving).
    pub fn adopt_leaving(&mut self, mut host: Host) {
        host.run_by(self.id);
        self.leaving.insert(host.square(), host);
    }

    /// Takes a message again that it took after its hosts were saved: with [`Host::replay`], and however many
    /// hosts it may run by now. To be followed by [`Process::resume`].
    pub fn replay(&mut self, now: Millis, to: Peer, message: Message) {
        if let Peer::Host(square) = to {
            self.wake(square);
            let host = self.hosts.get_mut(&square).or_else(|| self.leaving.get_mut(&square));
            if let Some(host) = host {
                host.replay(now, message);
            }
            return;
        }
        let room = core::mem::replace(&mut self.room, u32::MAX);
        let _ = self.handle(now, to, message, &mut Vec::new());
        self.room = room;
    }

    /// Notes again that a submission was refused: with [`Host::replay_refusal`].
    pub fn replay_refusal(&mut self, now: Millis, to: Peer, message: &Message, why: Refusal) {
        let Peer::Host(square) = to else { return };
        self.wake(square);
        let host = self.hosts.get_mut(&square).or_else(|| self.leaving.get_mut(&square));
        host.into_iter().for_each(|host| host.replay_refusal(now, message, why));
    }

    /// Goes on with hosts that it took over: [`Host::resume`] for each of them.
    pub fn resume(&mut self, now: Millis) {
        let config = self.config;
        self.wake_all();
        self.hosts.values_mut().for_each(|host| host.resume(now, config));
        self.leaving.values_mut().for_each(|host| host.resume(now, config));
    }

    /// Its hosts.
    pub fn hosts(&self) -> impl Iterator<Item = &Host> {
        self.hosts.values()
    }

    /// Hosts that it had to let go of, as another process got their squares while it was away. They take no
    /// readings any more, and go when requesters have confirmed all that they had kept. To be saved like the
    /// others.
    pub fn leaving(&self) -> impl Iterator<Item = &Host> {
        self.leaving.values()
    }

    /// Its hosts, and then those that it had to let go of.
    pub fn all_hosts(&self) -> impl Iterator<Item = &Host> {
        self.hosts().chain(self.leaving())
    }

    /// What its hosts did, those together that it let go of.
    pub fn counts(&self) -> HostCounts {
        let mut counts = self.former;
        self.all_hosts().for_each(|host| counts.add(host.counts()));
        counts
    }

    /// How often it has let time pass for one of its hosts: what ticks cost.
    pub fn woken(&self) -> u64 {
        self.woken
    }

    /// Readings that wait to be confirmed, counted once for each task.
    pub fn pending(&self) -> usize {
        self.all_hosts().map(Host::pending).sum()
    }

    /// The host of a square.
    pub fn host(&self, square: Square) -> Option<&Host> {
        self.hosts.get(&square)
    }

    /// What the coordinator is to be told at the start and after a lost connection.
    pub fn hello(&self) -> Outgoing {
        let squares = self.hosts.keys().copied().collect();
        let message = Message::Hello { process: self.id, room: self.room, squares };
        Outgoing { to: Peer::Coordinator, message }
    }

    /// The host of a square, to be changed: for the simulator.
    #[cfg(feature = "std")]
    pub(crate) fn host_mut(&mut self, square: Square) -> Option<&mut Host> {
        self.wake(square);
        self.hosts.get_mut(&square)
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
            (Peer::Process(id), Message::Place { square, rules, tasks, book }) if id == self.id => {
                self.place(now, square, rules, book, tasks, out)
            }
            (Peer::Process(id), Message::Release { square }) if id == self.id => {
                if let Some(mut host) = self.hosts.remove(&square) {
                    host.let_go(out);
                    self.leaving.insert(square, host);
                }
                Handled::Done
            }
            (Peer::Host(square), message) => self.hand_on(now, square, message, out),
            _ => Handled::Refused(Refusal::NotForMe),
        }
    }

    /// Runs a square from now on, with these tasks, which are in this book of the coordinator.
    fn place(
        &mut self,
        now: Millis,
        square: Square,
        rules: Rules,
        book: u64,
        tasks: Vec<(RequesterId, Task)>,
        out: &mut Vec<Outgoing>,
    ) -> Handled {
        let full = self.hosts.len() >= self.room as usize;
        if (full && !self.hosts.contains_key(&square)) || rules.check().is_err() {
            return Handled::Refused(Refusal::NotForMe);
        }
        let config = HostConfig { rules, ..self.config };
        self.wake(square);
        let known = self.leaving.remove(&square).map(|mut host| {
            host.begin_life(now);
            host
        });
        let host = self
            .hosts
            .entry(square)
            .or_insert_with(|| known.unwrap_or_else(|| Host::new(square, config, now)));
        host.run_by(self.id);
        host.set_rules(rules, out);
        host.keep_tasks(book, &tasks);
        for (requester, task) in tasks {
            // A task that is over meanwhile, or known, is nothing to complain about.
            let _ = host.handle(now, Message::Forward { requester, task }, out);
        }
        let message = Message::Ready { process: self.id, square };
        out.push(Outgoing { to: Peer::Coordinator, message });
        Handled::Done
    }

    /// Hands a message on to the host of a square, or to one that was let go, if it is of what that had left to do.
    fn hand_on(
        &mut self,
        now: Millis,
        square: Square,
        message: Message,
        out: &mut Vec<Outgoing>,
    ) -> Handled {
        if self.hosts.contains_key(&square) {
            self.wake(square);
        }
        let host = match self.hosts.get_mut(&square) {
            None if matches!(message, Message::Received { .. } | Message::Withdraw { .. }) => {
                self.leaving.get_mut(&square)
            }
            host => host,
        };
        if let Some(host) = host {
            return host.handle(now, message, out);
        }
        let handled = Handled::Refused(Refusal::NotForMe);
        if matches!(message, Message::Submit { .. }) {
            self.former.note(handled);
        }
        handled
    }

    /// The connection to the broker is there, or there again: see [`Host::reconnected`].
    pub fn reconnected(&mut self) {
        self.wake_all();
        self.hosts.values_mut().for_each(Host::reconnected);
    }

    /// A coordinator begins to act: it is greeted at once.
    pub fn coordinator_acts(&mut self) {
        (self.next_hello, self.hello_wait) = (0, HELLO_EVERY.0);
    }

    /// Lets time pass for all hosts, and greets the coordinator from time to time.
    ///
    /// # Cost
    /// That of the hosts that have something to do: a square where nothing happens costs nothing until its next report.
    pub fn tick(&mut self, now: Millis, out: &mut Vec<Outgoing>) {
        // Later than it can be: the clock was set back.
        if now >= self.next_hello || self.next_hello - now > HELLO_EVERY.1 {
            self.next_hello = now.saturating_add(self.hello_wait);
            self.hello_wait = (2 * self.hello_wait).min(HELLO_EVERY.1);
            out.push(self.hello());
        }
        self.tick_hosts(now, out);
    }

    /// The same without a greeting.
    pub(crate) fn tick_hosts(&mut self, now: Millis, out: &mut Vec<Outgoing>) {
        if core::mem::replace(&mut self.ticked, now) > now {
            self.wake_all();
        }
        while let Some(&(when, square)) = self.alarms.first()
            && when <= now
        {
            self.wake(square);
        }
        for square in core::mem::take(&mut self.awake) {
            let Some(host) = self.hosts.get_mut(&square) else { continue };
            host.tick(now, out);
            self.woken += 1;
            let when = host.due();
            self.wakes.insert(square, when);
            self.alarms.insert((when, square));
        }
        self.leaving.values_mut().for_each(|host| host.hand_over(now, out));
        self.leaving.retain(|_, host| {
            let stays = host.pending() > 0;
            if !stays {
                self.former.add(host.counts());
            }
            stays
        });
    }

    /// The next tick is for this host, too.
    fn wake(&mut self, square: Square) {
        if let Some(when) = self.wakes.remove(&square) {
            self.alarms.remove(&(when, square));
        }
        self.awake.insert(square);
    }

    fn wake_all(&mut self) {
        self.wakes.clear();
        self.alarms.clear();
        self.awake.extend(self.hosts.keys());
    }
}
