//! Running a day.

use super::ledger::{Ledger, Slot};
use super::oracle::{Mixer, Oracle};
use super::trace::{DAY, Trace, Walk};
use crate::Millis;
use crate::cell::{KmCell, SmallCell, Square};
use crate::coordinator::{Coordinator, CoordinatorConfig};
use crate::decide::Decider;
use crate::element::{Element, Property};
use crate::filter::Stamp;
use crate::host::{Handled, HostConfig, Limits, Receipt};
use crate::ids::{ProcessId, RequesterId, TaskId, WorkerId};
use crate::message::{Kind, Message, Outgoing, Peer};
use crate::process::Process;
use crate::requester::Requester;
use crate::rules::{Mode, Rules};
use crate::task::{Area, Task};
use crate::wire;
use crate::worker::{Outcome, Worker};
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::BuildHasherDefault;
use std::vec::Vec;

/// Who is a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// Each walk, as the paper says: many people, each with one filter and its own counters.
    Walk,
    /// Each person in each cell of 1 km, whichever day it is: the walks of one person share filter and
    /// counters. The paper's figures fit this reading better; see `docs/results/paper5.md`.
    Person,
}

/// What workers do with a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// Ask their filter.
    Decide,
    /// Send it: the system to compare with, and the paper's section 4.1, where all readings go into the
    /// hosts' filters.
    All,
}

/// What a reset is sent to, and so how many messages it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resets {
    /// Each worker of the cell: Algorithm 5 of the paper, by the letter.
    Workers,
    /// A topic that the workers of a cell of 1 km share: what the real system does.
    Cells,
    /// A topic that the workers of all cells of a host share: one message for all cells that are reset at a time,
    /// since each has the same stamp.
    Squares,
}

/// What is simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// The rules; a validity period of whole minutes.
    pub rules: Rules,
    /// Readings wanted of an element in a period (the paper's m_MEC).
    pub m_mec: u16,
    /// Send what was added to filters instead of all.
    pub deltas: bool,
    /// Send elements by name instead of filters' bits, where that is not longer.
    pub names: bool,
    /// Do hosts look again at what their filter speaks against?
    pub second_look: bool,
    /// How resets are counted.
    pub resets: Resets,
    /// The paper's future work: filters are also emptied once this share of their bits is set. Alone, with
    /// a validity period as long as the day.
    pub reset_fill: Option<f64>,
    /// The paper's future work: only so many workers of a cell receive the empty filter after a reset, those of whom
    /// most readings were kept so far. Each is written to by itself.
    pub preferred: Option<u16>,
    /// By which period elements are counted and readings are called fresh; the validity period if `None`.
    pub judged_by: Option<Millis>,
    /// Who is a worker.
    pub identity: Identity,
    /// What workers do.
    pub sending: Sending,
    /// Minutes of the day, from and until.
    pub part: (u16, u16),
    /// When in its minute each worker measures is drawn from this.
    pub seed: u64,
}

impl Default for Setting {
    /// The paper's system over a whole day.
    fn default() -> Self {
        Self {
            rules: Rules::PAPER,
            m_mec: 1,
            deltas: false,
            names: false,
            second_look: false,
            resets: Resets::Cells,
            reset_fill: None,
            preferred: None,
            judged_by: None,
            identity: Identity::Walk,
            sending: Sending::Decide,
            part: (0, DAY as u16),
            seed: 1,
        }
    }
}

/// Midnight before the day: a multiple of a day.
const MIDNIGHT: Millis = 19_675 * 86_400_000;
const MINUTE: Millis = 60_000;
const PROCESS: ProcessId = ProcessId(1);
const REQUESTER: RequesterId = RequesterId(1);

/// Runs a day, or a part of it.
///
/// Messages take no time: what one leads to is done before the next worker measures. Workers measure once a
/// minute, each at a second of its own.
pub fn run(trace: &Trace, setting: &Setting) -> Ledger {
    run_watched(trace, setting, &mut |_| ())
}

/// The same, and somebody is shown each message.
pub fn run_watched(trace: &Trace, setting: &Setting, watch: &mut dyn FnMut(&Outgoing)) -> Ledger {
    let mut day = Day::new(trace, setting, watch);
    let (from, until) = setting.part;
    for minute in usize::from(from)..usize::from(until).min(DAY) {
        day.minute(minute);
    }
    day.finish(usize::from(until))
}

/// When a walk measures in its minute, and in which minutes it has anything to do: the one after its last is that in which
/// it leaves. Together, as all of them are looked through every minute.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    second: Millis,
    walk: u32,
    minutes: (u16, u16),
}

struct Day<'a> {
    trace: &'a Trace,
    watch: &'a mut dyn FnMut(&Outgoing),
    setting: Setting,
    coordinator: Coordinator,
    process: Process,
    requester: Requester,
    workers: Vec<Worker>,
    /// The worker of each walk, and where it was last.
    walks: Vec<(u32, Option<KmCell>)>,
    /// Walks in the order in which they measure.
    order: Vec<Turn>,
    /// Workers of persons, in [`Identity::Person`].
    persons: HashMap<(u32, KmCell), u32>,
    /// Who is in a cell: what the broker knows.
    members: HashMap<KmCell, Vec<u32>, BuildHasherDefault<Mixer>>,
    /// Cells where a reading was kept in this period.
    touched: HashSet<KmCell, BuildHasherDefault<Mixer>>,
    /// Readings kept of each worker, which make it preferred.
    merits: Vec<u32>,
    /// When a reset was last counted for a host.
    counted: HashMap<Square, Millis>,
    property: Property,
    oracle: Oracle,
    ledger: Ledger,
    queue: VecDeque<Outgoing>,
    out: Vec<Outgoing>,
    bytes: Vec<u8>,
    /// Messages of the paper's kinds in each second of this minute.
    seconds: [u32; 60],
    /// Readings sent in each second of this minute.
    sent: [u32; 60],
    slot: Slot,
    now: Millis,
}

impl<'a> Day<'a> {
    fn new(trace: &'a Trace, setting: &Setting, watch: &'a mut dyn FnMut(&Outgoing)) -> Self {
        let rules = setting.rules;
        let coordinator =
            Coordinator::new(CoordinatorConfig { rules, ..CoordinatorConfig::default() });
        let most = u32::MAX;
        let config = HostConfig {
            rules,
            deltas: setting.deltas,
            names: setting.names,
            second_look: setting.second_look,
            limits: Limits { workers: most, tasks: 8, elements: most, pending: most },
            // Nothing is late, and nobody asks what became of a reading.
            max_age: 0,
            max_delay: 0,
            tell_every: 0,
            deliver_every: MINUTE,
            aggregate_every: 60 * MINUTE,
            worker_timeout: 24 * 60 * MINUTE,
            ..HostConfig::default()
        };
        let turn = |(walk, path): (u32, &Walk)| {
            let lot = lately::Digester::new(setting.seed).digest(&walk.to_le_bytes());
            let second = lot.probes(MINUTE).next().unwrap_or(0);
            let last = usize::from(path.start).saturating_add(path.cells.len());
            let minutes = (path.start, last.min(usize::from(u16::MAX)) as u16);
            Turn { second, walk, minutes }
        };
        let mut order: Vec<Turn> = (0..).zip(&trace.walks).map(turn).collect();
        order.sort_unstable();
        let from = setting.part.0;
        let mut day = Self {
            trace,
            watch,
            setting: *setting,
            coordinator,
            process: Process::new(PROCESS, 4096, config),
            requester: Requester::new(REQUESTER),
            workers: Vec::new(),
            walks: std::vec![(u32::MAX, None); trace.walks.len()],
            order,
            persons: HashMap::new(),
            members: HashMap::default(),
            touched: HashSet::default(),
            merits: Vec::new(),
            counted: HashMap::new(),
            property: Property::new("noise").unwrap_or_else(|_| unreachable!("a name")),
            oracle: Oracle::default(),
            ledger: Ledger::default(),
            queue: VecDeque::new(),
            out: Vec::new(),
            bytes: Vec::new(),
            seconds: [0; 60],
            sent: [0; 60],
            slot: empty_slot(from),
            now: MIDNIGHT + Millis::from(from) * MINUTE,
        };
        day.begin();
        day
    }

    /// The process greets, the requester posts its task: readings everywhere, all day.
    fn begin(&mut self) {
        let task = Task {
            id: TaskId(1),
            property: self.property,
            area: Area::Everywhere,
            from: 0,
            until: Millis::MAX,
            wanted: self.setting.m_mec.max(1),
        };
        let mut out = core::mem::take(&mut self.out);
        self.process.tick(self.now, &mut out);
        // The task has no end, so it is not over.
        let _ = self.requester.post(self.now, task, &mut out);
        self.out = out;
        self.settle();
    }

    fn judged_by(&self) -> Millis {
        self.setting.judged_by.unwrap_or(self.setting.rules.validity)
    }

    fn minute(&mut self, minute: usize) {
        self.now = MIDNIGHT + minute as Millis * MINUTE;
        let period = (self.judged_by() / MINUTE).max(1);
        if (minute as Millis).is_multiple_of(period) {
            self.end_slot(minute);
        }
        // Nothing is lost here or late, so that the coordinator has nothing to do by itself, and one greeting is enough. Both
        // would go through all squares.
        let mut out = core::mem::take(&mut self.out);
        self.process.tick_hosts(self.now, &mut out);
        self.out = out;
        self.settle();
        let mut confirmed = core::mem::take(&mut self.out);
        let arrived = self.requester.take_readings(&mut confirmed);
        self.out = confirmed;
        self.ledger.delivered += arrived.iter().map(|a| a.readings.len() as u64).sum::<u64>();
        self.settle();
        for at in 0..self.order.len() {
            let Some(&Turn { second, walk, minutes }) = self.order.get(at) else { continue };
            if minute < usize::from(minutes.0) || minute > usize::from(minutes.1) {
                continue;
            }
            self.now = MIDNIGHT + minute as Millis * MINUTE + second;
            self.fix(walk, minute);
        }
        let most = |counts: [u32; 60]| counts.into_iter().max().unwrap_or(0);
        self.ledger.peak = self.ledger.peak.max(most(self.seconds));
        self.ledger.peak_sent = self.ledger.peak_sent.max(most(self.sent));
        (self.seconds, self.sent) = ([0; 60], [0; 60]);
    }

    /// What a walk does in a minute: goes somewhere, measures, or is over.
    fn fix(&mut self, walk: u32, minute: usize) {
        let Some(path) = self.trace.walks.get(walk as usize) else { return };
        let Some(cell) = path.at(minute) else {
            if path.at(minute.wrapping_sub(1)).is_some() {
                self.leave(walk);
            }
            return;
        };
        self.go(walk, path.person, cell.km());
        let Some(&(worker, _)) = self.walks.get(walk as usize) else { return };
        self.sense(worker, cell);
    }

    /// Moves the walk's worker.
    fn go(&mut self, walk: u32, person: u32, km: KmCell) {
        let Some(&(worker, before)) = self.walks.get(walk as usize) else { return };
        if before == Some(km) {
            return;
        }
        let mut out = core::mem::take(&mut self.out);
        let worker = match self.setting.identity {
            Identity::Walk => {
                let worker = if worker == u32::MAX { self.new_worker() } else { worker };
                self.move_member(worker, before, km);
                worker
            }
            Identity::Person => match self.persons.get(&(person, km)) {
                Some(&worker) => worker,
                None => {
                    let worker = self.new_worker();
                    self.persons.insert((person, km), worker);
                    self.move_member(worker, None, km);
                    worker
                }
            },
        };
        if let Some(state) = self.workers.get_mut(worker as usize) {
            if state.place() == Some(km) {
                // Another day of the person comes to where one is.
                state.reconnected(self.now, &mut out);
            } else {
                state.go(self.now, km, &mut out);
            }
        }
        if let Some(place) = self.walks.get_mut(walk as usize) {
            *place = (worker, Some(km));
        }
        self.out = out;
        self.settle();
    }

    fn new_worker(&mut self) -> u32 {
        let worker = self.workers.len() as u32;
        self.merits.push(0);
        self.workers.push(Worker::new(WorkerId(u64::from(worker)), &[self.property], 1));
        worker
    }

    fn move_member(&mut self, worker: u32, from: Option<KmCell>, to: KmCell) {
        if let Some(left) = from.and_then(|from| self.members.get_mut(&from)) {
            left.retain(|&other| other != worker);
        }
        self.members.entry(to).or_default().push(worker);
    }

    /// The day of a walk is over. A person's worker stays, as others of its days may go on.
    fn leave(&mut self, walk: u32) {
        let Some(&(worker, Some(km))) = self.walks.get(walk as usize) else { return };
        if self.setting.identity == Identity::Walk {
            let mut out = core::mem::take(&mut self.out);
            if let Some(worker) = self.workers.get_mut(worker as usize) {
                worker.leave(&mut out);
            }
            if let Some(members) = self.members.get_mut(&km) {
                members.retain(|&other| other != worker);
            }
            self.out = out;
            self.settle();
        }
        if let Some(place) = self.walks.get_mut(walk as usize) {
            *place = (worker, None);
        }
    }

    fn sense(&mut self, worker: u32, cell: SmallCell) {
        let element = Element { cell, property: self.property };
        // Any number will do; this one differs from place to place.
        let value = 40.0 + (cell.id() % 400) as f64 / 10.0;
        self.ledger.readings += 1;
        self.slot.readings += 1;
        self.oracle.seen(cell);
        let Some(state) = self.workers.get_mut(worker as usize) else { return };
        let outcome = match self.setting.sending {
            Sending::Decide => state.sense(self.now, element, value, &mut self.out),
            Sending::All => state.send_unasked(self.now, element, value, &mut self.out),
        };
        match outcome {
            Outcome::NoTask => self.ledger.unasked += 1,
            Outcome::Skipped => {
                let decider = state.decider();
                let known = decider.map(Decider::stamp);
                if decider.is_some_and(|decider| self.oracle.is_in(&element, decider, self.now)) {
                    self.ledger.suppressed += 1;
                } else if self.setting.preferred.is_some() && self.is_stale(cell.km(), known) {
                    self.ledger.suppressed_stale += 1;
                    self.oracle.seen(cell).lost = true;
                } else {
                    self.ledger.suppressed_wrongly += 1;
                    self.oracle.seen(cell).lost = true;
                }
            }
            Outcome::Sent => self.ledger.sent += 1,
            Outcome::Refreshed => {
                self.ledger.sent += 1;
                self.ledger.refreshed += 1;
            }
        }
        self.settle();
        let fresh = self.oracle.is_fresh(cell, self.judged_by(), self.now);
        self.ledger.fresh += u64::from(fresh);
        self.oracle.seen(cell).fresh |= fresh;
    }

    /// Has the host emptied the cell's filter since the worker heard of it?
    fn is_stale(&self, km: KmCell, known: Option<Stamp>) -> bool {
        let newest = self.process.host(km.square()).and_then(|host| host.stamp(km));
        newest.zip(known).is_some_and(|(newest, known)| !newest.is_comparable(known))
    }

    /// Delivers messages until there are none.
    fn settle(&mut self) {
        self.queue.extend(self.out.drain(..));
        while let Some(outgoing) = self.queue.pop_front() {
            self.deliver(outgoing);
            self.queue.extend(self.out.drain(..));
        }
    }

    fn deliver(&mut self, outgoing: Outgoing) {
        (self.watch)(&outgoing);
        let Outgoing { to, message } = outgoing;
        self.bytes.clear();
        wire::encode(&message, &mut self.bytes);
        let kind = message.kind();
        let times = self.times(to, kind);
        if let Some(messages) = self.ledger.messages.get_mut(kind as usize - 1) {
            messages.count += u64::from(times);
            messages.bytes += u64::from(times) * self.bytes.len() as u64;
        }
        if matches!(kind, Kind::Announce | Kind::Assign | Kind::Submit | Kind::Update | Kind::Reset)
        {
            let second = (self.now % MINUTE / 1000) as usize;
            if let Some(count) = self.seconds.get_mut(second) {
                *count += times;
            }
            if let Some(count) = self.sent.get_mut(second).filter(|_| kind == Kind::Submit) {
                *count += 1;
            }
        }
        match to {
            Peer::Coordinator => self.coordinator.handle(self.now, message, &mut self.out),
            Peer::Requester(_) => self.requester.handle(self.now, message, &mut self.out),
            Peer::Process(_) | Peer::Host(_) => self.ask_host(to, message),
            Peer::Worker(WorkerId(worker)) => {
                if let Some(worker) = self.workers.get_mut(worker as usize) {
                    worker.handle(self.now, message, &mut self.out);
                }
            }
            // Its hosts have no such setting: what a reset is sent to is only counted here.
            Peer::Square(_) => {}
            Peer::Cell(km) => {
                for worker in self.addressed(km) {
                    self.ledger.reset_deliveries += u64::from(kind == Kind::Reset);
                    if let Some(worker) = self.workers.get_mut(worker as usize) {
                        worker.handle(self.now, message.clone(), &mut self.out);
                    }
                }
            }
        }
    }

    /// How many messages this one is.
    fn times(&mut self, to: Peer, kind: Kind) -> u32 {
        let (Peer::Cell(km), Kind::Reset) = (to, kind) else { return 1 };
        match (self.setting.preferred, self.setting.resets) {
            (Some(_), _) | (None, Resets::Workers) => self.addressed(km).len() as u32,
            (None, Resets::Cells) => 1,
            (None, Resets::Squares) => {
                u32::from(self.counted.insert(km.square(), self.now) != Some(self.now))
            }
        }
    }

    /// The workers of a cell whom a message to it reaches.
    fn addressed(&self, km: KmCell) -> Vec<u32> {
        let mut members = self.members.get(&km).cloned().unwrap_or_default();
        if let Some(preferred) = self.setting.preferred {
            let merit = |worker: &u32| self.merits.get(*worker as usize).copied().unwrap_or(0);
            members.sort_by_key(|worker| (std::cmp::Reverse(merit(worker)), *worker));
            members.truncate(usize::from(preferred));
        }
        members
    }

    fn ask_host(&mut self, to: Peer, message: Message) {
        let Message::Submit { worker, reading, .. } = message else {
            let _ = self.process.handle(self.now, to, message, &mut self.out);
            return;
        };
        let (cell, km) = (reading.cell(), reading.km());
        let version = |process: &Process| process.host(km.square()).and_then(|host| host.stamp(km));
        let handled = self.process.handle(self.now, to, message, &mut self.out);
        match handled {
            Handled::Reading(receipt @ (Receipt::Kept | Receipt::Recovered)) => {
                self.ledger.kept += 1;
                self.ledger.recovered += u64::from(receipt == Receipt::Recovered);
                self.oracle.seen(cell).kept = true;
                self.oracle.keep(cell, self.now);
                self.touched.insert(km);
                self.note_added(cell, version(&self.process));
                self.merits.get_mut(worker.0 as usize).into_iter().for_each(|merit| *merit += 1);
                self.reset_if_full(km);
            }
            Handled::Reading(Receipt::Redundant) => self.ledger.redundant += 1,
            Handled::Reading(Receipt::Lost) => {
                self.ledger.lost_at_host += 1;
                self.oracle.seen(cell).lost = true;
            }
            Handled::Reading(Receipt::Duplicate) => self.ledger.duplicates += 1,
            Handled::Refused(_) | Handled::Done => self.ledger.refused += 1,
        }
    }

    /// Empties the cell's filter if it is as full as it may be.
    fn reset_if_full(&mut self, km: KmCell) {
        let Some(fill) = self.setting.reset_fill else { return };
        let ones = (fill * f64::from(self.setting.rules.size.bits)).ceil().max(1.0) as u32;
        if let Some(host) = self.process.host_mut(km.square()) {
            host.reset_at(km, ones, &mut self.out);
        }
    }

    /// With the last reading wanted, the element is in the host's filter.
    fn note_added(&mut self, cell: SmallCell, after: Option<Stamp>) {
        let Some(stamp) = after else { return };
        if self.oracle.advance(cell.km(), stamp) {
            self.oracle.add(cell, stamp, self.setting.rules.grain(self.now));
        }
    }

    fn end_slot(&mut self, minute: usize) {
        let rules = self.setting.rules;
        let ends_now = rules.mode == Mode::Reset && self.judged_by() == rules.validity;
        let filters: Vec<u32> = if ends_now {
            // In all others nothing was set.
            let ones =
                |&km: &KmCell| self.process.host(km.square()).map_or(0, |host| host.ones(km));
            self.touched.iter().map(ones).collect()
        } else {
            let hosts = self.process.hosts();
            hosts.flat_map(|host| host.occupancy().map(|(_, ones)| ones)).collect()
        };
        self.touched.clear();
        for ones in filters.into_iter().filter(|&ones| ones > 0) {
            let ones = ones as usize;
            if self.ledger.occupancy.len() <= ones {
                self.ledger.occupancy.resize(ones + 1, 0);
            }
            if let Some(count) = self.ledger.occupancy.get_mut(ones) {
                *count += 1;
            }
        }
        let (elements, covered, lost) = self.oracle.end_period();
        let slot = Slot { elements, covered, lost, ..self.slot };
        if slot.readings > 0 {
            self.ledger.slots.push(slot);
        }
        self.slot = empty_slot(minute as u16);
    }

    fn finish(mut self, minute: usize) -> Ledger {
        self.end_slot(minute);
        self.ledger.woken = self.process.woken();
        self.ledger.expected_lost =
            self.process.hosts().map(|host| host.counts().expected_lost).sum();
        self.ledger
    }
}

fn empty_slot(start: u16) -> Slot {
    Slot { start, readings: 0, elements: 0, covered: 0, lost: 0 }
}
