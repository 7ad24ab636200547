//! The roles, a broker between them, and a clock that each has of its own.

use crate::disturb::save;
use crate::support::{MINUTE, NOON, REQUESTER, property, task};
use lately_edge::Millis;
use lately_edge::cell::{SmallCell, Square};
use lately_edge::coordinator::{Coordinator, CoordinatorConfig};
use lately_edge::element::Element;
use lately_edge::filter::{FilterSize, Stamp};
use lately_edge::host::{Handled, HostConfig, Receipt, Refusal, ResetBy, WRONG_CLOCK};
use lately_edge::ids::{ProcessId, WorkerId};
use lately_edge::message::{Message, Outgoing, Peer, Reading};
use lately_edge::process::Process;
use lately_edge::requester::Requester;
use lately_edge::rules::Rules;
use lately_edge::tally::first_of;
use lately_edge::worker::{Outcome, Worker};
use oorandom::Rand64;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub(crate) const WORKERS: usize = 10;
pub(crate) const PROCESSES: usize = 2;
/// Of quiet time, in seconds, after what was disturbed.
const QUIET: u64 = 1_800;

/// What becomes of a submission: of those that arrive, the host's verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fate {
    Kept,
    Redundant,
    Refused(Refusal),
    /// The broker lost it when it ended: it had taken it, and keeps nothing on disk.
    LostWithBroker,
    /// Nobody listened to the square.
    Unheard,
}

pub(crate) type Letter = (Peer, Message);

/// A process with its state on disk, as `edge-mqtt` keeps it.
pub(crate) struct Machine {
    pub(crate) process: Process,
    pub(crate) saved: Vec<(bool, Vec<u8>)>,
    pub(crate) journal: Vec<(Millis, Letter, Option<Refusal>)>,
    /// How many of these are on disk.
    pub(crate) safe: usize,
    /// Delivered and not confirmed to the broker.
    pub(crate) unconfirmed: Vec<Letter>,
    /// Verdicts that are not on disk.
    pub(crate) verdicts: Vec<((WorkerId, u64), Fate)>,
    /// Elements added to filters in these epochs, the same way.
    pub(crate) added: Vec<(u32, Element)>,
    pub(crate) queue: VecDeque<Letter>,
    pub(crate) squares: BTreeSet<Square>,
    pub(crate) skew: i64,
    /// The moment up to which its hosts have been told the time, as `edge-mqtt` has it: replay cannot tell otherwise.
    pub(crate) now: Millis,
    /// Off until then.
    pub(crate) off: u64,
}

pub(crate) struct Device {
    pub(crate) worker: Worker,
    pub(crate) at: (u64, u64),
    pub(crate) queue: VecDeque<Message>,
    pub(crate) skew: i64,
    pub(crate) off: u64,
    /// The square whose resets it has subscribed to.
    pub(crate) listening: Option<Square>,
    /// What it has sent in its present life, by the epoch in which it did.
    pub(crate) own: BTreeSet<(u32, Element)>,
}

pub(crate) struct World {
    pub(crate) random: Rand64,
    pub(crate) second: u64,
    pub(crate) config: HostConfig,
    pub(crate) machines: Vec<Machine>,
    pub(crate) devices: Vec<Device>,
    pub(crate) coordinator: Coordinator,
    pub(crate) coordinator_saved: Vec<u8>,
    pub(crate) coordinator_queue: VecDeque<Letter>,
    pub(crate) coordinator_off: u64,
    pub(crate) requester: Requester,
    pub(crate) requester_queue: VecDeque<Message>,
    pub(crate) requester_off: u64,
    pub(crate) epoch: u64,
    pub(crate) sent: BTreeMap<(WorkerId, u64), Reading>,
    pub(crate) fates: BTreeMap<(WorkerId, u64), Vec<Fate>>,
    pub(crate) received: BTreeSet<u64>,
    pub(crate) repeats: u64,
    pub(crate) value: u64,
    /// The newest reset of each square, which the broker keeps.
    pub(crate) retained: BTreeMap<Square, Message>,
    /// What was added to filters, by epoch, as far as anybody may know.
    pub(crate) added: BTreeSet<(u32, Element)>,
    /// Readings that were skipped: all, and those by a filter of an earlier period than the host's.
    pub(crate) skipped: (u64, u64),
    /// Resets published.
    pub(crate) resets: u64,
}

/// With filters so large that none of them takes an element for another.
pub(crate) fn coordinator_config() -> CoordinatorConfig {
    let rules = Rules { size: FilterSize { bits: 1 << 16, hashes: 20 }, ..Rules::PAPER };
    CoordinatorConfig { rules, ..CoordinatorConfig::default() }
}

impl World {
    pub(crate) fn new(seed: u64, reset_by: ResetBy) -> Self {
        let config = HostConfig { max_age: 30 * MINUTE, reset_by, ..HostConfig::default() };
        let machine = |number: usize| Machine {
            process: Process::new(ProcessId(number as u64 + 1), 64, config),
            saved: Vec::new(),
            journal: Vec::new(),
            safe: 0,
            unconfirmed: Vec::new(),
            verdicts: Vec::new(),
            added: Vec::new(),
            queue: VecDeque::new(),
            squares: BTreeSet::new(),
            skew: 0,
            now: 0,
            off: 0,
        };
        let device = |number: usize| Device {
            worker: Worker::new(WorkerId(number as u64 + 1), &[property("noise")], first_of(1)),
            at: (number as u64, number as u64),
            queue: VecDeque::new(),
            skew: 0,
            off: 0,
            listening: None,
            own: BTreeSet::new(),
        };
        let mut coordinator = Coordinator::new(coordinator_config());
        coordinator.begin_book(seed);
        let mut world = Self {
            random: Rand64::new(u128::from(seed)),
            second: 0,
            config,
            machines: (0..PROCESSES).map(machine).collect(),
            devices: (0..WORKERS).map(device).collect(),
            coordinator_saved: coordinator.save(),
            coordinator,
            coordinator_queue: VecDeque::new(),
            coordinator_off: 0,
            requester: Requester::new(REQUESTER),
            requester_queue: VecDeque::new(),
            requester_off: 0,
            epoch: 1,
            sent: BTreeMap::new(),
            fates: BTreeMap::new(),
            received: BTreeSet::new(),
            repeats: 0,
            value: 0,
            retained: BTreeMap::new(),
            added: BTreeSet::new(),
            skipped: (0, 0),
            resets: 0,
        };
        world.begin_requester();
        world
    }

    pub(crate) fn chance(&mut self, one_in: u64) -> bool {
        self.random.rand_range(0..one_in) == 0
    }

    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.random.rand_range(0..most)
    }

    pub(crate) fn time(&self, skew: i64) -> Millis {
        (NOON + self.second * 1_000).saturating_add_signed(skew)
    }

    /// A requester of the same name as before, which posts its task again.
    pub(crate) fn begin_requester(&mut self) {
        let mut requester = Requester::new(REQUESTER);
        let mut posted = task(1);
        posted.from = NOON - 600 * MINUTE;
        let mut out = Vec::new();
        requester.post(self.time(0), posted, &mut out).unwrap();
        self.requester = requester;
        self.send(out);
    }

    /// The broker takes messages, now and then twice.
    pub(crate) fn send(&mut self, out: Vec<Outgoing>) {
        for Outgoing { to, message } in out {
            if let Message::Submit { worker, sequence, reading, .. } = message {
                self.sent.insert((worker, sequence), reading);
            }
            self.resets +=
                u64::from(matches!(message, Message::Reset { .. } | Message::ResetAll { .. }));
            let times = if self.chance(20) { 2 } else { 1 };
            for _ in 0..times {
                self.route(to, message.clone());
            }
        }
    }

    pub(crate) fn route(&mut self, to: Peer, message: Message) {
        match to {
            Peer::Coordinator => self.coordinator_queue.push_back((to, message)),
            Peer::Process(ProcessId(number)) => {
                self.machines[number as usize - 1].queue.push_back((to, message));
            }
            Peer::Host(square) => {
                let mut heard = false;
                for machine in
                    self.machines.iter_mut().filter(|machine| machine.squares.contains(&square))
                {
                    machine.queue.push_back((to, message.clone()));
                    heard = true;
                }
                if let (false, Message::Submit { worker, sequence, .. }) = (heard, message) {
                    self.fate(worker, sequence, Fate::Unheard);
                }
            }
            Peer::Worker(WorkerId(number)) => {
                let device = &mut self.devices[number as usize - 1];
                if device.off <= self.second {
                    device.queue.push_back(message);
                }
            }
            Peer::Cell(km) => {
                let second = self.second;
                let there = |device: &&mut Device| {
                    device.off <= second && device.worker.place() == Some(km)
                };
                self.devices
                    .iter_mut()
                    .filter(there)
                    .for_each(|device| device.queue.push_back(message.clone()));
            }
            Peer::Square(square) => {
                let second = self.second;
                let there =
                    |device: &&mut Device| device.off <= second && device.listening == Some(square);
                self.devices
                    .iter_mut()
                    .filter(there)
                    .for_each(|device| device.queue.push_back(message.clone()));
                self.retained.insert(square, message);
            }
            Peer::Requester(_) => {
                if self.requester_off <= self.second {
                    self.requester_queue.push_back(message);
                }
            }
        }
    }

    pub(crate) fn fate(&mut self, worker: WorkerId, sequence: u64, fate: Fate) {
        self.fates.entry((worker, sequence)).or_default().push(fate);
    }

    pub(crate) fn step(&mut self, disturbed: bool) {
        self.second += 1;
        if disturbed {
            self.disturb();
        }
        for number in 0..self.devices.len() {
            self.device(number);
        }
        for number in 0..self.machines.len() {
            self.machine(number, disturbed);
        }
        self.coordinate();
        self.request();
    }

    pub(crate) fn device(&mut self, number: usize) {
        let (measures, steps) = (self.chance(5), [self.below(3), self.below(3)]);
        let buffered = if self.chance(10) { self.below(20 * MINUTE) } else { 0 };
        let (second, value) = (self.second, self.value + 1);
        let device = &mut self.devices[number];
        if device.off > second {
            return;
        }
        let now = (NOON + second * 1_000).saturating_add_signed(device.skew);
        let mut out = Vec::new();
        for message in std::mem::take(&mut device.queue) {
            device.worker.handle(now, message, &mut out);
        }
        device.worker.tick(now, &mut out);
        let retained = &self.retained;
        listen(device, retained, now, &mut out);
        if measures {
            let step = |at: u64, by: u64| (at + 199 + by) % 200;
            device.at = (step(device.at.0, steps[0]), step(device.at.1, steps[1]));
            let cell: SmallCell =
                format!("33TWL{:03}{:03}", 650 + device.at.0, 700 + device.at.1 % 30)
                    .parse()
                    .unwrap();
            device.worker.go(now, cell.km(), &mut out);
            listen(device, retained, now, &mut out);
            let element = Element { cell, property: property("noise") };
            let reading =
                Reading { element, value: value as f64, time: now.saturating_sub(buffered) };
            let known = device.worker.decider().map(|decider| decider.stamp());
            let outcome = device.worker.sense_buffered(now, reading, &mut out);
            self.value = value;
            if let Some(known) = known {
                self.check_decision(number, known, element, outcome);
            }
        }
        self.send(out);
    }

    /// What a worker skips it has sent itself, or some host has added it to the filter that the worker knows; and that filter
    /// is not of before the newest reset that it can have heard.
    fn check_decision(&mut self, number: usize, known: Stamp, element: Element, outcome: Outcome) {
        let (device, own) = (&mut self.devices[number], (known.epoch, element));
        match outcome {
            Outcome::Sent | Outcome::Refreshed => {
                device.own.insert(own);
            }
            Outcome::Skipped => {
                let (at, second) = (device.worker.id(), self.second);
                let is_known = device.own.contains(&own) || self.added.contains(&own);
                assert!(is_known, "worker {at} at {second} believes {element:?} of {known:?}");
                let square = element.cell.square();
                let running = self.machines.iter().filter(|machine| machine.off <= second);
                let hosts = running.filter_map(|machine| machine.process.host(square));
                let newest = hosts
                    .filter_map(|host| host.stamp(element.cell.km()))
                    .max_by_key(|stamp| stamp.incarnation);
                let is_stale = newest.is_some_and(|newest| known.epoch < newest.epoch);
                self.skipped = (self.skipped.0 + 1, self.skipped.1 + u64::from(is_stale));
            }
            Outcome::NoTask => return,
        }
        let device = &self.devices[number];
        if let Some(Message::ResetAll { stamp, since, .. }) =
            device.listening.and_then(|square| self.retained.get(&square))
        {
            let valid = known.epoch >= stamp.epoch && known.incarnation >= *since;
            assert!(valid, "{known:?} is used at {}, after {stamp:?} since {since}", self.second);
        }
    }

    pub(crate) fn machine(&mut self, number: usize, disturbed: bool) {
        let crashes = disturbed && self.chance(400);
        let (away, takes) = (self.second + self.below(20 * 60), 1 + self.below(40) as usize);
        let machine = &mut self.machines[number];
        if machine.off > self.second {
            return;
        }
        let clock = (NOON + self.second * 1_000).saturating_add_signed(machine.skew);
        let was_wrong = clock.saturating_add(WRONG_CLOCK) < machine.now;
        machine.now = if was_wrong { clock } else { machine.now.max(clock) };
        let now = machine.now;
        let mut out = Vec::new();
        for _ in 0..takes.min(machine.queue.len()) {
            let Some((to, message)) = machine.queue.pop_front() else { break };
            let versions = |process: &Process, message: &Message| match message {
                Message::Submit { reading, .. } => {
                    let host = process.host(reading.cell().square());
                    host.and_then(|host| host.stamp(reading.km()))
                        .map(|stamp| (stamp, reading.element))
                }
                _ => None,
            };
            let before = versions(&machine.process, &message).map(|(stamp, _)| stamp);
            let handled = machine.process.handle(now, to, message.clone(), &mut out);
            let submission = match message {
                Message::Submit { worker, sequence, .. } => Some((worker, sequence)),
                _ => None,
            };
            let fate = match handled {
                Handled::Reading(Receipt::Kept | Receipt::Recovered) => Some(Fate::Kept),
                Handled::Reading(Receipt::Redundant | Receipt::Lost) => Some(Fate::Redundant),
                Handled::Refused(why) => Some(Fate::Refused(why)),
                Handled::Reading(Receipt::Duplicate) => {
                    self.repeats += 1;
                    None
                }
                Handled::Done => None,
            };
            machine.verdicts.extend(submission.zip(fate));
            let after = versions(&machine.process, &message);
            let added = after.filter(|&(after, _)| before != Some(after) && after.version > 0);
            machine.added.extend(added.map(|(after, element)| (after.epoch, element)));
            let why = match handled {
                Handled::Refused(why) => Some(why),
                _ => None,
            };
            let is_noted = submission.is_some() || why.is_none();
            if is_noted && handled != Handled::Reading(Receipt::Duplicate) {
                machine.journal.push((now, (to, message.clone()), why));
            }
            if let Message::Place { square, .. } | Message::Release { square } = message {
                let runs = machine.process.host(square).is_some();
                if runs {
                    machine.squares.insert(square);
                } else {
                    machine.squares.remove(&square);
                }
            }
            machine.unconfirmed.push((to, message));
        }
        if crashes {
            self.crash(number, away);
            return;
        }
        let last: BTreeMap<Square, u64> = machine
            .process
            .all_hosts()
            .filter_map(|host| Some((host.square(), host.last_batch()?)))
            .collect();
        let leaving = machine.process.leaving().count();
        machine.process.tick(now, &mut out);
        for Outgoing { message, .. } in &out {
            if let Message::Results { square, batch, .. } = message
                && last.get(square).is_none_or(|last| batch > last)
            {
                machine.journal.push((now, (Peer::Host(*square), message.clone()), None));
            }
        }
        // On disk: confirmed, and told.
        machine.unconfirmed.clear();
        machine.safe = machine.journal.len();
        let verdicts = std::mem::take(&mut machine.verdicts);
        self.added.extend(machine.added.drain(..));
        // Replay could not tell that hosts have gone, or that the clock was wrong.
        if was_wrong || machine.journal.len() > 2_000 || machine.process.leaving().count() < leaving
        {
            save(machine);
        }
        verdicts
            .into_iter()
            .for_each(|((worker, sequence), fate)| self.fate(worker, sequence, fate));
        self.send(out);
    }

    pub(crate) fn coordinate(&mut self) {
        if self.coordinator_off > self.second {
            return;
        }
        let now = self.time(0);
        let mut out = Vec::new();
        for (_, message) in std::mem::take(&mut self.coordinator_queue) {
            self.coordinator.handle(now, message, &mut out);
        }
        self.coordinator.tick(now, &mut out);
        self.coordinator_saved = self.coordinator.save();
        self.send(out);
    }

    pub(crate) fn request(&mut self) {
        if self.requester_off > self.second {
            return;
        }
        let now = self.time(0);
        let mut out = Vec::new();
        for message in std::mem::take(&mut self.requester_queue) {
            self.requester.handle(now, message, &mut out);
        }
        self.requester.tick(now, &mut out);
        let arrived = self.requester.take_readings(&mut out);
        let values = arrived.iter().flat_map(|batch| &batch.readings);
        self.received.extend(values.map(|reading| reading.value as u64));
        self.send(out);
    }

    /// All is put right, and time passes until everything has arrived.
    pub(crate) fn calm_down(&mut self) {
        self.devices.iter_mut().for_each(|device| (device.skew, device.off) = (0, 0));
        self.machines.iter_mut().for_each(|machine| (machine.skew, machine.off) = (0, 0));
        (self.coordinator_off, self.requester_off) = (0, 0);
        for number in 0..self.devices.len() {
            let now = self.time(0);
            let mut out = Vec::new();
            self.devices[number].worker.reconnected(now, &mut out);
            self.send(out);
        }
        (0..QUIET).for_each(|_| self.step(false));
        // Nobody measures any more. A host whose clock was set back by less than an hour waits until it has caught up.
        for _ in 0..240 {
            self.second += 20;
            for number in 0..self.machines.len() {
                self.machine(number, false);
            }
            self.coordinate();
            self.request();
            for number in 0..self.devices.len() {
                let now = self.time(0);
                let mut out = Vec::new();
                let device = &mut self.devices[number];
                for message in std::mem::take(&mut device.queue) {
                    device.worker.handle(now, message, &mut out);
                }
                self.send(out);
            }
        }
    }
}

/// Subscribes to the resets of another square, once there is a task; the broker delivers the newest one at once.
fn listen(
    device: &mut Device,
    retained: &BTreeMap<Square, Message>,
    now: Millis,
    out: &mut Vec<Outgoing>,
) {
    let square = device.worker.square_of_task();
    if std::mem::replace(&mut device.listening, square) != square
        && let Some(message) = square.and_then(|square| retained.get(&square))
    {
        device.worker.handle(now, message.clone(), out);
    }
}
