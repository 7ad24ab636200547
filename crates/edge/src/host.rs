//! The host of a square of 10 km: which readings it has enough of, and who wants them.

mod cell;
mod config;
mod counts;
mod lives;
mod members;
mod outbox;
mod past;
mod periods;
mod saved;
mod submission;
mod tasks;

pub use crate::refusal::Refusal;
pub use config::{HostConfig, Limits, ResetBy};
pub use counts::{Handled, HostCounts, Receipt};

use crate::Millis;
use crate::cell::{KmCell, Square};
use crate::element::Property;
use crate::filter::Stamp;
use crate::ids::{ProcessId, RequesterId, TaskId, WorkerId};
use crate::message::{Aggregate, Message, Outgoing, Peer};
use crate::rules::Mode;
use crate::tally::Tally;
use crate::task::Task;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use cell::Cell;
use lives::Lives;
use members::Known;
use outbox::Outbox;
use past::Past;
use submission::Submission;

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
    /// The first incarnation whose filters of this epoch hold nothing that it does not know.
    since: u32,
    /// Workers are to be told where filters stand: it begins, resumes after a restart, or has forgotten them.
    untold: bool,
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

/// How long the tally of a life that is silent is remembered.
const LIVES: Millis = 86_400_000;
/// Between two looks for workers and tasks that are gone.
const CLEAN_EVERY: Millis = 60_000;
/// A clock that goes back by more than this was wrong before.
pub const WRONG_CLOCK: Millis = 3_600_000;

impl Host {
    /// A host that knows nothing yet. Its rules must have been checked with
    /// [`Rules::check`](crate::rules::Rules::check).
    pub fn new(square: Square, config: HostConfig, now: Millis) -> Self {
        let incarnation = (now / 1000).clamp(1, u64::from(u32::MAX)) as u32;
        Self {
            square,
            config,
            incarnation,
            born: now,
            now,
            epoch: config.rules.epoch(now),
            since: incarnation,
            untold: true,
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
        self.tell_where_filters_stand(out);
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
        let untold = self.untold.then_some(0);
        [Some(self.next_aggregate), Some(self.outbox.due()), period, cleaning, tally, untold]
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

    /// Which process runs it: batches of two processes that have had the same square, and have begun in the same second,
    /// must not have the same number, as a requester confirms numbers.
    pub fn run_by(&mut self, process: ProcessId) {
        // Upwards of that, a life has room for 2^31 batches.
        self.outbox.number_from(((process.0 & 0x7FFF) << 16) as u32);
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

    /// The cell; an empty one, where it is not known.
    fn cell(&mut self, cell: KmCell) -> &mut Cell {
        let (rules, now, floor) = (&self.config.rules, self.now, self.floor);
        self.cells.entry(cell).or_insert_with(|| Cell::new(rules, now, floor))
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
