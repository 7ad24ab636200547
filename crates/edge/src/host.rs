//! The host of a square of 10 km: which readings it has enough of, and who wants them.

mod cell;
mod counts;
mod lives;
mod outbox;
mod past;
mod saved;
mod submission;
mod tasks;

pub use crate::refusal::Refusal;
pub use counts::{Handled, HostCounts, Receipt};

use crate::Millis;
use crate::cell::{KmCell, Square};
use crate::element::Property;
use crate::filter::Stamp;
use crate::ids::{ProcessId, RequesterId, TaskId, WorkerId};
use crate::message::{Aggregate, MAX_PROPERTIES, Message, Outgoing, Peer};
use crate::rules::{Mode, Rules};
use crate::tally::Tally;
use crate::task::Task;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use cell::Cell;
use lives::Lives;
use outbox::Outbox;
use past::Past;
use submission::Submission;

/// How a host works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// The rules that it gives its workers.
    pub rules: Rules,
    /// Send what was added to a filter instead of all of it, where that is shorter.
    pub deltas: bool,
    /// Send elements by name instead of a filter's bits, where that is not longer.
    pub names: bool,
    /// Look again at each reading that the filter speaks against: the host knows exactly what it has, so
    /// it need not lose a reading to its own filter's mistake. The paper does not; readings that were
    /// sent to make sure are always looked at again.
    pub second_look: bool,
    /// What workers and requesters can make it keep.
    pub limits: Limits,
    /// How far ahead of the host's clock a reading's time may be.
    pub max_skew: Millis,
    /// How old a reading may be when it is sent: devices may buffer what they measure.
    pub max_age: Millis,
    /// How long a submission may be on its way: the broker keeps what is sent to a host that is away.
    pub max_delay: Millis,
    /// How long readings are gathered before they are handed on.
    pub deliver_every: Millis,
    /// When readings that nobody confirmed are sent again.
    pub resend_after: Millis,
    /// How often workers are told what became of what they sent, and whether there is nothing for them to do at all.
    /// 0, as in the paper: never.
    pub tell_every: Millis,
    /// How often the coordinator is told how the square does.
    pub aggregate_every: Millis,
    /// A worker that was not heard of for so long has left.
    pub worker_timeout: Millis,
}

/// What a host keeps at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Workers known at a time.
    pub workers: u32,
    /// Tasks, at most [`MAX_TASKS`](crate::message::MAX_TASKS).
    pub tasks: u32,
    /// Elements counted in a cell of 1 km.
    pub elements: u32,
    /// Readings that wait to be confirmed by their requesters, counted once for each task. Each task has an
    /// equal share: one whose requester is away does not take the room of the others. What waits for tasks that
    /// are over gives way.
    pub pending: u32,
}

impl Default for HostConfig {
    fn default() -> Self {
        Self {
            rules: Rules::PAPER,
            deltas: true,
            names: true,
            second_look: true,
            limits: Limits { workers: 100_000, tasks: 256, elements: 4_096, pending: 100_000 },
            max_skew: 60_000,
            max_age: 7_200_000,
            max_delay: 7_200_000,
            tell_every: 10_000,
            deliver_every: 1_000,
            resend_after: 30_000,
            aggregate_every: 60_000,
            worker_timeout: 3_600_000,
        }
    }
}

/// The host of a square.
///
/// # Guarantee
/// Of each element, as many readings are kept in a validity period as the tasks want, and further ones are
/// redundant; a reading is wrongly called redundant with the chance of the filter at its fill
/// ([`HostCounts::expected_lost`] sums it up), or never, with [`HostConfig::second_look`]. A reading that
/// was kept stays until every requester it is for has confirmed it, across [`Host::save`] and
/// [`Host::restore`] as well. (Algorithms 1 and 3 to 5 of the paper; the third by its prose: the reading
/// that completes the number is kept, and the element is in the filter from then on.)
///
/// Bad input is counted by reason in [`HostCounts`] and changes nothing else.
///
/// # Cost
/// Per reading, a few searches in ordered maps. Memory as [`Limits`] says.
///
/// # Time
/// A reading belongs to the period in which the host handles it, as long as its own time is no more than
/// a minute ago; one that was buffered, or waited at the broker, belongs to the period of its own time.
/// Moments that go back are taken as the newest one seen. A clock that goes back by more than an hour was wrong before: filters start empty, and readings stay.
#[derive(Clone, Debug)]
pub struct Host {
    square: Square,
    config: HostConfig,
    incarnation: u32,
    /// When it began.
    born: Millis,
    now: Millis,
    epoch: u32,
    cells: BTreeMap<KmCell, Cell>,
    past: Past,
    /// Versions of cells that are made again begin here, beyond those of cells that were forgotten.
    floor: u32,
    workers: BTreeMap<WorkerId, Known>,
    /// Up to then, none of the workers has been silent for too long.
    all_heard: Millis,
    lives: Lives,
    tasks: BTreeMap<TaskId, Wish>,
    /// The coordinator's book that tasks are known from at present.
    book: u64,
    outbox: Outbox,
    /// Tasks that are over, whose readings wait still, and since when.
    ended: BTreeMap<TaskId, Millis>,
    counts: HostCounts,
    values: BTreeMap<Property, Values>,
    next_tally: Millis,
    next_aggregate: Millis,
    next_cleaning: Millis,
}

/// A worker that the host knows.
#[derive(Clone, Debug, PartialEq)]
struct Known {
    cell: KmCell,
    properties: Vec<Property>,
    heard: Millis,
    /// It has said that it leaves, or its connection was lost: it may come back.
    away: bool,
}

/// A task, whose it is, and the coordinator's book that it is known from.
#[derive(Clone, Debug, PartialEq)]
struct Wish {
    requester: RequesterId,
    task: Task,
    book: u64,
}

/// What is summed up of a property.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Values {
    count: u64,
    sum: f64,
    least: f64,
    greatest: f64,
}

impl Values {
    fn add(&mut self, value: f64) {
        (self.least, self.greatest) = if self.count == 0 {
            (value, value)
        } else {
            (self.least.min(value), self.greatest.max(value))
        };
        self.count += 1;
        // A sum that overflows would be no number to anybody.
        self.sum = (self.sum + value).clamp(f64::MIN, f64::MAX);
    }
}

/// How long a worker that has left is remembered: it may come back.
const AWAY: Millis = 600_000;
/// How long the tally of a life that is silent is remembered.
const LIVES: Millis = 86_400_000;
/// Between two looks for workers and tasks that are gone.
const CLEAN_EVERY: Millis = 60_000;
/// A clock that goes back by more than this was wrong before.
pub const WRONG_CLOCK: Millis = 3_600_000;

impl Host {
    /// A host that knows nothing yet. Its rules must have been checked with [`Rules::check`].
    pub fn new(square: Square, config: HostConfig, now: Millis) -> Self {
        Self {
            square,
            config,
            incarnation: (now / 1000).clamp(1, u64::from(u32::MAX)) as u32,
            born: now,
            now,
            epoch: config.rules.epoch(now),
            cells: BTreeMap::new(),
            past: Past::default(),
            floor: 0,
            workers: BTreeMap::new(),
            all_heard: 0,
            lives: Lives::default(),
            tasks: BTreeMap::new(),
            book: 0,
            outbox: Outbox::default(),
            ended: BTreeMap::new(),
            counts: HostCounts::default(),
            values: BTreeMap::new(),
            next_tally: now,
            next_aggregate: now.saturating_add(config.aggregate_every),
            next_cleaning: now.saturating_add(CLEAN_EVERY),
        }
    }

    /// Its square.
    pub fn square(&self) -> Square {
        self.square
    }

    /// How it works.
    pub fn config(&self) -> &HostConfig {
        &self.config
    }

    /// What has happened so far.
    pub fn counts(&self) -> &HostCounts {
        &self.counts
    }

    /// Workers that are here.
    pub fn workers(&self) -> usize {
        self.workers.values().filter(|known| !known.away).count()
    }

    /// Is the worker here, or remembered?
    pub fn knows(&self, worker: WorkerId) -> bool {
        self.workers.contains_key(&worker)
    }

    /// Tasks known at present.
    pub fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// Elements of which readings were kept in this period, and cells of 1 km that they are in.
    pub fn coverage(&self) -> (usize, usize) {
        let kept = self.cells.values().map(|cell| cell.kept.len()).filter(|&kept| kept > 0);
        kept.fold((0, 0), |(elements, cells), kept| (elements + kept, cells + 1))
    }

    /// Readings that wait to be confirmed, counted once for each task.
    pub fn pending(&self) -> usize {
        self.outbox.pending()
    }

    /// The state of a cell's filter; `None` for a cell without one.
    pub fn stamp(&self, cell: KmCell) -> Option<Stamp> {
        self.cells.get(&cell).map(|state| self.stamp_of(state))
    }

    /// How many bits of each cell's filter are set.
    pub fn occupancy(&self) -> impl Iterator<Item = (KmCell, u32)> {
        self.cells.iter().map(|(&cell, state)| (cell, state.filter.ones()))
    }

    /// How many bits of one cell's filter are set.
    #[cfg(feature = "std")]
    pub(crate) fn ones(&self, cell: KmCell) -> u32 {
        self.cells.get(&cell).map_or(0, |state| state.filter.ones())
    }

    fn stamp_of(&self, cell: &Cell) -> Stamp {
        let incarnation = self.incarnation.saturating_add(cell.resets);
        Stamp { epoch: self.epoch, incarnation, version: cell.version }
    }

    /// Empties a cell's filter before the period ends, once so many of its bits are set, and tells its workers.
    /// For the simulator, which tries what the paper leaves to the future.
    #[cfg(feature = "std")]
    pub(crate) fn reset_at(&mut self, cell: KmCell, ones: u32, out: &mut Vec<Outgoing>) {
        let rules = self.config.rules;
        let Some(state) = self.cells.get_mut(&cell) else { return };
        if state.filter.ones() >= ones && state.begin_period(&rules) {
            state.resets = state.resets.saturating_add(1);
            let incarnation = self.incarnation.saturating_add(state.resets);
            let stamp = Stamp { epoch: self.epoch, incarnation, version: 0 };
            out.push(Outgoing { to: Peer::Cell(cell), message: Message::Reset { cell, stamp } });
        }
    }

    /// Takes a message. What it leads to is appended to `out`.
    pub fn handle(&mut self, now: Millis, message: Message, out: &mut Vec<Outgoing>) -> Handled {
        self.advance(now, out);
        match message {
            Message::Announce { worker, cell, properties, known } => {
                self.announce(worker, cell, &properties, known, out)
            }
            Message::Submit { worker, sequence, sent, stamp, refresh, reading } => {
                let known = stamp;
                let submission = Submission { worker, sequence, sent, known, refresh, reading };
                let handled = self.submit(&submission, out);
                self.counts.note(handled);
                return handled;
            }
            Message::Leave { worker } => {
                self.leave(worker);
                if self.config.tell_every > 0 {
                    self.lives.tell_worker(worker, (self.square, self.born), out);
                }
                Handled::Done
            }
            Message::Forward { requester, task } => self.take_task(requester, &task, out),
            Message::Withdraw { task } => {
                self.withdraw(task, out);
                Handled::Done
            }
            Message::Received { square, batch } if square == self.square => {
                self.outbox.received(batch);
                Handled::Done
            }
            _ => Handled::Refused(Refusal::NotForMe),
        }
        .counted(&mut self.counts)
    }

    /// Lets time pass: ends validity periods, hands readings on. To be called about once a second, and at
    /// the end of a validity period.
    pub fn tick(&mut self, now: Millis, out: &mut Vec<Outgoing>) {
        self.advance(now, out);
        let now = self.now;
        self.outbox.deliver(now, self.square, self.incarnation, &self.config, out);
        if self.config.tell_every > 0 && now >= self.next_tally {
            self.next_tally = now.saturating_add(self.config.tell_every);
            self.lives.tell(now, (self.square, self.born), out);
        }
        if now >= self.next_cleaning {
            // As if it had looked each time, also where it was not woken as there was nothing to do.
            let passed = (now - self.next_cleaning) / CLEAN_EVERY + 1;
            self.next_cleaning = self.next_cleaning.saturating_add(passed * CLEAN_EVERY);
            self.clean();
        }
        if now >= self.next_aggregate {
            self.next_aggregate = now.saturating_add(self.config.aggregate_every);
            self.aggregate(out);
        }
    }

    /// From when on a tick has anything to do, unless a message comes before: until then it changes nothing that can be seen.
    pub(crate) fn due(&self) -> Millis {
        let HostConfig { rules, tell_every, .. } = self.config;
        let ageing = matches!(rules.mode, Mode::Ageing { .. });
        let vacant = self.cells.values().any(|cell| cell.present == 0);
        let ends = self.cells.values().any(|cell| cell.active || cell.present == 0);
        let period = (!ageing && ends)
            .then(|| rules.period(self.now).saturating_add(1).saturating_mul(rules.validity));
        let is_over = |id: TaskId| !self.tasks.contains_key(&id);
        let unclean = vacant
            || (ageing && !self.cells.is_empty())
            || !self.ended.is_empty()
            || self.outbox.tasks().any(is_over);
        let worker = (!self.workers.is_empty()).then(|| self.all_heard.saturating_add(1));
        let task = self.tasks.values().map(|wish| wish.task.until).min();
        let life = self.lives.due(self.memory());
        let cleaning = [unclean.then_some(0), worker, task, life].into_iter().flatten().min();
        let cleaning = cleaning.map(|when| {
            let later = when.saturating_sub(self.next_cleaning).div_ceil(CLEAN_EVERY);
            self.next_cleaning.saturating_add(later.saturating_mul(CLEAN_EVERY))
        });
        let tally = (tell_every > 0).then_some(self.next_tally);
        [Some(self.next_aggregate), Some(self.outbox.due()), period, cleaning, tally]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(0)
    }

    /// How long the lives of workers are remembered. What comes again later than that is refused anyway; but where workers
    /// are told, from 0 on they would not believe it.
    fn memory(&self) -> Millis {
        let told = if self.config.tell_every > 0 { LIVES } else { 0 };
        self.config.max_delay.max(told)
    }

    /// How long after it was heard of a worker is forgotten.
    fn patience(&self, away: bool) -> Millis {
        let timeout = self.config.worker_timeout;
        if away { AWAY.min(timeout) } else { timeout }
    }

    /// Notes that a worker is to be forgotten so long after that moment, and perhaps not heard of before.
    fn expect(&mut self, heard: Millis, away: bool) {
        self.all_heard = self.all_heard.min(heard.saturating_add(self.patience(away)));
    }

    /// Switches to other rules: filters start empty, readings stay, and workers are told. The rules
    /// must have been checked with [`Rules::check`].
    pub fn set_rules(&mut self, rules: Rules, out: &mut Vec<Outgoing>) {
        if rules == self.config.rules {
            return;
        }
        self.config.rules = rules;
        self.restart_filters();
        let workers = core::mem::take(&mut self.workers);
        for (&worker, known) in workers.iter().filter(|(_, known)| !known.away) {
            self.assign(worker, known.cell, &known.properties, None, out);
        }
        self.workers = workers;
    }

    /// Forgets all filters, and makes those that workers have incomparable with what follows.
    fn restart_filters(&mut self) {
        self.incarnation = self.incarnation.saturating_add(1);
        (self.epoch, self.floor) = (self.config.rules.epoch(self.now), 0);
        self.cells.clear();
        self.count_present();
    }

    /// Which process runs it: batches of two processes that have had the same square, and have begun in the same second,
    /// must not have the same number, as a requester confirms numbers.
    pub fn run_by(&mut self, process: ProcessId) {
        // Upwards of that, a life has room for 2^31 batches.
        self.outbox.number_from(((process.0 & 0x7FFF) << 16) as u32);
    }

    /// It runs again after another process may have run its square: workers may know that one's filters.
    pub fn begin_life(&mut self, now: Millis) {
        let by_clock = (now / 1000).min(u64::from(u32::MAX)) as u32;
        self.incarnation = self.incarnation.saturating_add(1).max(by_clock);
    }

    /// Lets time pass for a host that another process has taken over from: it only hands on what it kept.
    pub fn hand_over(&mut self, now: Millis, out: &mut Vec<Outgoing>) {
        self.now = self.now.max(now);
        self.outbox.deliver(self.now, self.square, self.incarnation, &self.config, out);
        if self.config.tell_every > 0 && now >= self.next_tally {
            self.next_tally = now.saturating_add(self.config.tell_every);
            self.lives.tell(now, (self.square, self.born), out);
        }
    }

    /// What became of the submissions of a life of a worker here.
    pub fn tally(&self, worker: WorkerId, life: u32) -> Tally {
        self.lives.all.get(&(worker, life)).map(|life| life.tally).unwrap_or_default()
    }

    /// Another process takes over: workers are told what became of what they sent here.
    pub fn let_go(&mut self, out: &mut Vec<Outgoing>) {
        if self.config.tell_every > 0 {
            self.lives.tell(self.now, (self.square, self.born), out);
        }
    }

    /// Ends the validity period when its time is over (Algorithm 5).
    fn advance(&mut self, now: Millis, out: &mut Vec<Outgoing>) {
        if now.saturating_add(WRONG_CLOCK) < self.now {
            self.correct_clock(now);
        }
        self.now = self.now.max(now);
        let epoch = self.config.rules.epoch(self.now);
        if epoch == self.epoch {
            return;
        }
        let ended = u64::from(core::mem::replace(&mut self.epoch, epoch));
        self.floor = 0;
        let oldest = self.oldest_period();
        let past = &mut self.past;
        let stamp = Stamp { epoch, incarnation: self.incarnation, version: 0 };
        self.cells.retain(|&cell, state| {
            // Where nobody sent anything in this period, everybody's filter is empty already.
            if ended >= oldest {
                state.kept.iter().for_each(|(&element, kept)| past.add(ended, element, kept.count));
            }
            if state.begin_period(&self.config.rules) && state.present > 0 {
                let message = Message::Reset { cell, stamp };
                out.push(Outgoing { to: Peer::Cell(cell), message });
            }
            state.present > 0
        });
        self.past.forget(oldest);
    }

    /// The clock was wrong before: what was noted by it would hold for as long as it was ahead.
    pub(super) fn correct_clock(&mut self, now: Millis) {
        self.now = now;
        self.restart_filters();
        self.workers.values_mut().for_each(|known| known.heard = known.heard.min(now));
        self.all_heard = 0;
        self.lives.correct_clock(now);
        self.next_tally = now;
        self.outbox.correct_clock(now);
        self.ended.clear();
        self.next_aggregate = now.saturating_add(self.config.aggregate_every);
        self.next_cleaning = now.saturating_add(CLEAN_EVERY);
        self.counts.clock_corrections += 1;
    }

    fn announce(
        &mut self,
        worker: WorkerId,
        cell: KmCell,
        properties: &[Property],
        known: Option<Stamp>,
        out: &mut Vec<Outgoing>,
    ) -> Handled {
        if cell.square() != self.square {
            return Handled::Refused(Refusal::ForeignCell);
        }
        if properties.len() > MAX_PROPERTIES || properties.is_empty() {
            return Handled::Refused(Refusal::Properties);
        }
        if !self.enter(worker, cell, properties) {
            return Handled::Refused(Refusal::TooManyWorkers);
        }
        self.lives.say_again_to(worker);
        self.assign(worker, cell, properties, known, out);
        Handled::Done
    }

    /// Notes that a worker is in a cell. `false` when there is no room for another worker.
    fn enter(&mut self, worker: WorkerId, cell: KmCell, properties: &[Property]) -> bool {
        let now = self.now;
        let full = self.workers.len() >= self.config.limits.workers as usize;
        let left = match self.workers.get_mut(&worker) {
            Some(known) => {
                known.heard = now;
                let was_away = core::mem::take(&mut known.away);
                if known.properties != properties {
                    known.properties = properties.to_vec();
                }
                Some(core::mem::replace(&mut known.cell, cell)).filter(|_| !was_away)
            }
            None if full => return false,
            None => {
                let properties = properties.to_vec();
                let known = Known { cell, properties, heard: now, away: false };
                self.workers.insert(worker, known);
                self.expect(now, false);
                None
            }
        };
        if left != Some(cell) {
            self.present_in(cell);
            if let Some(state) = left.and_then(|left| self.cells.get_mut(&left)) {
                state.present = state.present.saturating_sub(1);
            }
        }
        true
    }

    /// The cell, with one worker more in it.
    fn present_in(&mut self, cell: KmCell) {
        self.cell(cell).present += 1;
    }

    /// The cell; an empty one, where it is not known.
    fn cell(&mut self, cell: KmCell) -> &mut Cell {
        let (rules, now, floor) = (&self.config.rules, self.now, self.floor);
        self.cells.entry(cell).or_insert_with(|| Cell::new(rules, now, floor))
    }

    /// A worker is no longer here.
    fn leave(&mut self, worker: WorkerId) {
        let Some(known) = self.workers.get_mut(&worker) else { return };
        let (cell, heard) = (known.cell, known.heard);
        if core::mem::replace(&mut known.away, true) {
            return;
        }
        self.expect(heard, true);
        if let Some(state) = self.cells.get_mut(&cell) {
            state.present = state.present.saturating_sub(1);
        }
    }

    /// Tells a worker its tasks, if there are any for it (Algorithm 1).
    fn assign(
        &mut self,
        worker: WorkerId,
        cell: KmCell,
        properties: &[Property],
        known: Option<Stamp>,
        out: &mut Vec<Outgoing>,
    ) {
        let now = self.now;
        let suits = |task: &&Task| task.suits(properties, cell, now);
        let tasks: Vec<Task> =
            self.tasks.values().map(|wish| &wish.task).filter(suits).cloned().collect();
        if tasks.is_empty() && self.config.tell_every == 0 {
            return;
        }
        let Some(mut state) = self.cells.remove(&cell) else { return };
        let (stamp, known) = (self.stamp_of(&state), known.filter(|_| self.config.deltas));
        let rules = self.config.rules;
        let share = state.share(stamp, known, &rules, now, self.config.names);
        self.cells.insert(cell, state);
        let message = Message::Assign { cell, rules, tasks, share };
        out.push(Outgoing { to: Peer::Worker(worker), message });
    }

    /// Forgets workers that fell silent, tasks whose time is over and cells that nobody is in. Readings of
    /// tasks that are over wait for a day.
    fn clean(&mut self) {
        let now = self.now;
        if now > self.all_heard {
            self.forget_silent();
        }
        self.lives.forget(now.saturating_sub(self.memory()));
        self.tasks.retain(|_, wish| now < wish.task.until);
        self.clean_outbox();
        let is_asked_for =
            |property: &Property| self.tasks.values().any(|wish| wish.task.property == *property);
        self.values.retain(|property, _| is_asked_for(property));
        let rules = self.config.rules;
        self.past.forget(self.oldest_period());
        let (floor, past) = (&mut self.floor, &mut self.past);
        self.cells.retain(|_, state| {
            state.forget_expired(&rules, rules.grain(now), past);
            let stays = state.present > 0 || state.holds_anything();
            if !stays {
                *floor = state.version.max(*floor);
            }
            stays
        });
    }

    fn forget_silent(&mut self) {
        let (now, timeout, away) = (self.now, self.patience(false), self.patience(true));
        let silence = |known: &Known| now.saturating_sub(known.heard);
        let silent = self.workers.iter().filter(|(_, known)| silence(known) > timeout);
        let silent: Vec<WorkerId> = silent.map(|(&id, _)| id).collect();
        silent.into_iter().for_each(|worker| self.leave(worker));
        self.workers.retain(|_, known| !known.away || silence(known) <= away);
        let last = |known: &Known| known.heard.saturating_add(self.patience(known.away));
        self.all_heard = self.workers.values().map(last).min().unwrap_or(Millis::MAX);
    }

    fn aggregate(&mut self, out: &mut Vec<Outgoing>) {
        let base = Aggregate {
            kept: self.counts.kept,
            redundant: self.counts.redundant,
            workers: self.workers() as u32,
            cells: self.cells.len() as u32,
            expected_lost: self.counts.expected_lost,
            ..Aggregate::default()
        };
        let tell = |property, aggregate| Outgoing {
            to: Peer::Coordinator,
            message: Message::Aggregate { square: self.square, property, aggregate },
        };
        if self.values.is_empty() {
            out.push(tell(None, base));
        }
        for (&property, values) in &self.values {
            let &Values { count, sum, least, greatest } = values;
            out.push(tell(Some(property), Aggregate { count, sum, least, greatest, ..base }));
        }
    }
}
