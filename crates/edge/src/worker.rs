//! A worker: a device that moves about, measures, and decides what to send.

use crate::Millis;
use crate::cell::{KmCell, Square};
use crate::decide::{Decider, Decision};
use crate::element::{Element, Property};
use crate::filter::{ShareError, Stamp};
use crate::ids::WorkerId;
use crate::message::{MAX_PROPERTIES, Message, Outgoing, Peer, Reading};
use crate::rules::Rules;
use crate::tally::{Tally, life_of};
use crate::task::Task;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// A worker.
///
/// Tell it where it is with [`Worker::go`]; ask [`Worker::wants`] before a reading is taken, which may spare
/// the measuring too; give the reading to [`Worker::sense`].
///
/// # Guarantee
/// It sends nothing that no task asks for, and nothing without having heard from the cell's host. What it
/// skips is what [`Decider`] says.
///
/// # Cost
/// Memory for the filters of [`Worker::CELLS`] cells of 1 km: the one it is in and those it was in last, so
/// that coming back within a validity period costs no reading twice.
#[derive(Clone, Debug)]
pub struct Worker {
    id: WorkerId,
    properties: Vec<Property>,
    sequence: u64,
    /// Where it is.
    place: Option<KmCell>,
    /// Squares whose host is known to run, the newest last.
    located: Vec<Square>,
    /// When to ask for a host again, and how long to wait after that.
    retry: Option<(Millis, Millis)>,
    /// When it last said something to the host of its square.
    spoke: Millis,
    /// The square that nobody can host, as the coordinator said.
    unplaced: Option<Square>,
    /// The present cell last.
    cells: Vec<Assigned>,
    /// The newest reset of a whole square that it heard. Filters that are assigned later may be older still, where a process
    /// has not learnt yet that another one has its square.
    reset: Option<Reset>,
    /// What became of what it sent, by host: its square, and when it began.
    accounts: BTreeMap<(Square, Millis), Tally>,
    counts: WorkerCounts,
}

/// What is missing, so that no task asks for a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// An answer of the coordinator.
    Coordinator,
    /// A process that can host the square: the coordinator said so.
    Host,
    /// An answer of the square's host.
    Answer,
    /// A task: the host has answered, and none asks for that property there and then.
    Task,
}

impl Lack {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Coordinator, Self::Host, Self::Answer, Self::Task];
}

/// What a host told it about a cell.
#[derive(Clone, Debug)]
struct Assigned {
    cell: KmCell,
    tasks: Vec<Task>,
    decider: Decider,
}

/// [`Message::ResetAll`].
#[derive(Clone, Copy, Debug)]
struct Reset {
    square: Square,
    stamp: Stamp,
    since: u32,
}

/// What became of a reading, or of the wish to take one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// No task that the worker knows of asks for it.
    NoTask,
    /// Others have sent enough of it.
    Skipped,
    /// Sent.
    Sent,
    /// Sent to make sure, although it seems that others have sent enough of it.
    Refreshed,
}

/// What a worker did, and what it was told that it could not use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerCounts {
    /// Readings that no task asked for.
    pub unasked: u64,
    /// Of them, by what was missing: in the order of [`Lack::ALL`].
    pub lacking: [u64; Lack::ALL.len()],
    /// Readings skipped.
    pub skipped: u64,
    /// Readings sent.
    pub sent: u64,
    /// Of them, those sent to make sure.
    pub refreshed: u64,
    /// Messages about submissions of another life: a second worker uses this id, or an earlier start of this one.
    pub of_others: u64,
    /// Messages for another role, or another cell.
    pub strange: u64,
    /// Filters that could not be read, or rules that cannot be followed.
    pub malformed: u64,
    /// Filters older than the one known.
    pub stale: u64,
    /// Additions to a filter that is not there; all of it was asked for.
    pub gaps: u64,
    /// Filters that were emptied by a reset of their square.
    pub emptied: u64,
}

impl WorkerCounts {
    /// Adds another worker's.
    pub fn add(&mut self, other: &Self) {
        self.unasked += other.unasked;
        self.lacking.iter_mut().zip(other.lacking).for_each(|(count, more)| *count += more);
        self.of_others += other.of_others;
        self.skipped += other.skipped;
        self.sent += other.sent;
        self.refreshed += other.refreshed;
        self.strange += other.strange;
        self.malformed += other.malformed;
        self.stale += other.stale;
        self.gaps += other.gaps;
        self.emptied += other.emptied;
    }
}

impl Worker {
    /// Cells of 1 km that it remembers.
    pub const CELLS: usize = 4;
    /// Squares whose hosts it remembers.
    const SQUARES: usize = 16;
    /// Hosts whose accounts it keeps; what it sends to more of them stays unanswered.
    const ACCOUNTS: usize = 4_096;
    /// How long it waits before it asks for a host again, at first and at most.
    const RETRY: (Millis, Millis) = (1_000, 300_000);
    /// When it announces itself again where it rests: hosts forget whom they do not hear of for an hour, and the square
    /// may have another host by then.
    const REST: Millis = 50 * 60_000;

    /// A worker that can measure these properties; those past [`MAX_PROPERTIES`] are left out.
    ///
    /// Its submissions are numbered from `sequence` on: [`first_of`](crate::tally::first_of) a life that is chosen at random at
    /// each start. With one that was used before, its readings pass for repeated ones.
    pub fn new(id: WorkerId, properties: &[Property], sequence: u64) -> Self {
        Self {
            id,
            properties: properties.iter().copied().take(MAX_PROPERTIES).collect(),
            sequence,
            place: None,
            located: Vec::new(),
            retry: None,
            spoke: 0,
            unplaced: None,
            cells: Vec::new(),
            reset: None,
            accounts: BTreeMap::new(),
            counts: WorkerCounts::default(),
        }
    }

    /// Its name.
    pub fn id(&self) -> WorkerId {
        self.id
    }

    /// The cell of 1 km that it is in.
    pub fn place(&self) -> Option<KmCell> {
        self.place
    }

    /// What it did.
    pub fn counts(&self) -> &WorkerCounts {
        &self.counts
    }

    /// The number of its next submission.
    pub fn next_sequence(&self) -> u64 {
        self.sequence
    }

    /// What became of what it sent, as far as hosts have told.
    pub fn tally(&self) -> Tally {
        let mut sum = Tally::default();
        self.accounts.values().for_each(|tally| sum.add(tally));
        sum
    }

    /// Submissions that no host has said anything about.
    pub fn unanswered(&self) -> u64 {
        self.counts.sent.saturating_sub(self.tally().all())
    }

    /// What is missing, so that no task asks for anything here; [`Lack::Task`] where nothing else is.
    pub fn lack(&self) -> Lack {
        let square = self.place.map(KmCell::square);
        if self.here().is_some() {
            Lack::Task
        } else if square.is_some_and(|square| self.located.contains(&square)) {
            Lack::Answer
        } else if square.is_some() && self.unplaced == square {
            Lack::Host
        } else {
            Lack::Coordinator
        }
    }

    fn note_unasked(&mut self) {
        self.counts.unasked += 1;
        let lack = self.lack() as usize;
        if let Some(count) = self.counts.lacking.get_mut(lack) {
            *count += 1;
        }
    }

    /// The square whose resets concern it: that where it is, once a host has named it a task there.
    pub fn square_of_task(&self) -> Option<Square> {
        let square = self.place?.square();
        let is_there = |known: &Assigned| known.cell.square() == square && !known.tasks.is_empty();
        self.cells.iter().any(is_there).then_some(square)
    }

    /// What it knows of the present cell's filter.
    pub fn decider(&self) -> Option<&Decider> {
        self.here().map(|here| &here.decider)
    }

    /// What it was told about the present cell, if anything.
    fn here(&self) -> Option<&Assigned> {
        self.cells.last().filter(|last| Some(last.cell) == self.place)
    }

    /// It is in this cell of 1 km now. Announces itself there, if it is another one than before.
    pub fn go(&mut self, now: Millis, cell: KmCell, out: &mut Vec<Outgoing>) {
        let before = self.place.replace(cell);
        if before == Some(cell) {
            return;
        }
        let left = before.map(KmCell::square).filter(|&square| square != cell.square());
        out.extend(left.map(|square| self.farewell(square)));
        if self.located.contains(&cell.square()) {
            self.retry = None;
            self.announce(now, out);
        } else {
            self.look_up(now, Self::RETRY.0, out);
        }
    }

    fn farewell(&self, square: Square) -> Outgoing {
        Outgoing { to: Peer::Host(square), message: Message::Leave { worker: self.id } }
    }

    fn look_up(&mut self, now: Millis, wait: Millis, out: &mut Vec<Outgoing>) {
        let Some(square) = self.place.map(KmCell::square) else { return };
        self.retry = Some((now.saturating_add(wait), (2 * wait).min(Self::RETRY.1)));
        let message = Message::LookUp { worker: self.id, square };
        out.push(Outgoing { to: Peer::Coordinator, message });
    }

    /// Announces itself in the present cell, whose filter it may still know.
    fn announce(&mut self, now: Millis, out: &mut Vec<Outgoing>) {
        let Some(cell) = self.place else { return };
        self.spoke = now;
        if let Some(at) = self.cells.iter().position(|known| known.cell == cell) {
            self.cells.get_mut(at..).into_iter().for_each(|newer| newer.rotate_left(1));
        }
        let known = self.here().map(|here| here.decider.stamp());
        self.announce_knowing(cell, known, out);
    }

    fn announce_knowing(&self, cell: KmCell, known: Option<Stamp>, out: &mut Vec<Outgoing>) {
        let (worker, properties) = (self.id, self.properties.clone());
        let message = Message::Announce { worker, cell, properties, known };
        out.push(Outgoing { to: Peer::Host(cell.square()), message });
    }

    /// It goes out of service.
    pub fn leave(&mut self, out: &mut Vec<Outgoing>) {
        if let Some(cell) = self.place.take() {
            out.push(self.farewell(cell.square()));
        }
        self.retry = None;
    }

    /// The connection was lost and is there again: hosts may have been told that it left.
    pub fn reconnected(&mut self, now: Millis, out: &mut Vec<Outgoing>) {
        let Some(cell) = self.place else { return };
        if self.located.contains(&cell.square()) {
            self.announce(now, out);
        } else {
            self.look_up(now, Self::RETRY.0, out);
        }
    }

    /// A coordinator begins to act: who waits for a host asks again at once.
    pub fn coordinator_acts(&mut self, now: Millis, out: &mut Vec<Outgoing>) {
        if self.retry.is_some() {
            self.look_up(now, Self::RETRY.0, out);
        }
    }

    /// Lets time pass: asks again for a host that was not there, and after a long rest where it is now.
    pub fn tick(&mut self, now: Millis, out: &mut Vec<Outgoing>) {
        let rested = now.abs_diff(self.spoke) >= Self::REST;
        if let Some(square) = self.place.map(KmCell::square)
            && self.retry.is_none()
            && rested
        {
            self.located.retain(|&known| known != square);
            self.look_up(now, Self::RETRY.0, out);
        }
        if let Some((_, wait)) = self.retry.filter(|&(when, _)| now >= when) {
            self.look_up(now, wait, out);
        }
    }

    /// Is a reading of this element worth taking here and now? Changes nothing.
    #[inline]
    pub fn wants(&self, now: Millis, element: &Element) -> Outcome {
        self.wants_of(now, now, element)
    }

    /// Is one that was taken then?
    fn wants_of(&self, now: Millis, time: Millis, element: &Element) -> Outcome {
        let Some(here) = self.here().filter(|here| here.cell == element.cell.km()) else {
            return Outcome::NoTask;
        };
        if !here.tasks.iter().any(|task| task.wants(element.property, element.cell, time)) {
            return Outcome::NoTask;
        }
        // No filter says what was sent in a period that is over.
        if here.decider.rules().is_over(time, now) {
            return Outcome::Sent;
        }
        match here.decider.decide(element, now) {
            Decision::Skip => Outcome::Skipped,
            Decision::Send => Outcome::Sent,
            Decision::Refresh => Outcome::Refreshed,
        }
    }

    /// A reading was taken here: sends it if it is wanted (Algorithm 2).
    pub fn sense(
        &mut self,
        now: Millis,
        element: Element,
        value: f64,
        out: &mut Vec<Outgoing>,
    ) -> Outcome {
        self.sense_buffered(now, Reading { element, value, time: now }, out)
    }

    /// The same for a reading that was taken before, at the time that it has, here: it belongs to the period of that time.
    pub fn sense_buffered(
        &mut self,
        now: Millis,
        reading: Reading,
        out: &mut Vec<Outgoing>,
    ) -> Outcome {
        let outcome = self.wants_of(now, reading.time, &reading.element);
        let decision = match outcome {
            Outcome::NoTask => {
                self.note_unasked();
                return outcome;
            }
            Outcome::Skipped => {
                self.counts.skipped += 1;
                return outcome;
            }
            Outcome::Sent => Decision::Send,
            Outcome::Refreshed => Decision::Refresh,
        };
        self.submit(now, reading, decision, out);
        outcome
    }

    /// Sends a reading whatever the filter says: the system without filters, to compare with. What no
    /// task asks for is not sent.
    pub fn send_unasked(
        &mut self,
        now: Millis,
        element: Element,
        value: f64,
        out: &mut Vec<Outgoing>,
    ) -> Outcome {
        if self.wants(now, &element) == Outcome::NoTask {
            self.note_unasked();
            return Outcome::NoTask;
        }
        self.submit(now, Reading { element, value, time: now }, Decision::Send, out);
        Outcome::Sent
    }

    fn submit(
        &mut self,
        now: Millis,
        reading: Reading,
        decision: Decision,
        out: &mut Vec<Outgoing>,
    ) {
        let Some(here) = self.cells.last_mut() else { return };
        if !here.decider.rules().is_over(reading.time, now) {
            here.decider.sent(&reading.element, decision, now);
        }
        let stamp = here.decider.stamp();
        let (worker, sequence) = (self.id, self.sequence);
        self.sequence += 1;
        self.spoke = now;
        self.counts.sent += 1;
        let refresh = decision == Decision::Refresh;
        self.counts.refreshed += u64::from(refresh);
        let square = reading.cell().square();
        let message = Message::Submit { worker, sequence, sent: now, stamp, refresh, reading };
        out.push(Outgoing { to: Peer::Host(square), message });
    }

    /// A host has told what became of what was sent to it; it counts from the start of this life, so an older message
    /// says less.
    fn told(&mut self, host: (Square, Millis), life: u32, tally: Tally) {
        if life != life_of(self.sequence) {
            self.counts.of_others += 1;
            return;
        }
        if self.accounts.len() >= Self::ACCOUNTS && !self.accounts.contains_key(&host) {
            self.counts.strange += 1;
            return;
        }
        let known = self.accounts.entry(host).or_default();
        // A host that was killed may have forgotten repeats, but nothing else.
        if tally.all() >= known.all() {
            *known = Tally { repeated: tally.repeated.max(known.repeated), ..tally };
        }
    }

    /// Takes a message. What it leads to is appended to `out`.
    pub fn handle(&mut self, now: Millis, message: Message, out: &mut Vec<Outgoing>) {
        match message {
            Message::Located { square } => self.located(now, square, out),
            // It asks again when its time has come.
            Message::Unplaced { square } => {
                self.located.retain(|&known| known != square);
                self.unplaced = Some(square);
            }
            Message::Tally { square, born, life, tally } => self.told((square, born), life, tally),
            Message::Assign { cell, rules, tasks, share } => {
                let taken = self.assigned(now, cell, rules, tasks, &share);
                self.obey_reset(now);
                self.answer(cell, taken, out);
            }
            Message::Update { cell, share } => {
                let taken = self.known(cell).map(|known| known.decider.update(&share, now));
                self.obey_reset(now);
                self.answer(cell, taken, out);
            }
            Message::Reset { cell, stamp } => {
                let taken = self.known(cell).map(|known| known.decider.reset(stamp, now));
                self.answer(cell, taken, out);
            }
            Message::ResetAll { square, stamp, since } => {
                // One that comes again is older in all. Where a clock was set right, the epoch may go back, and of two
                // processes that run the square for a while, each may be ahead in something.
                let newest =
                    self.reset.filter(|known| known.square == square).is_none_or(|known| {
                        stamp.epoch > known.stamp.epoch
                            || stamp.incarnation > known.stamp.incarnation
                            || since > known.since
                    });
                if newest {
                    self.reset = Some(Reset { square, stamp, since });
                }
                self.obey_reset(now);
            }
            Message::Withdraw { task } => {
                self.cells
                    .iter_mut()
                    .for_each(|known| known.tasks.retain(|other| other.id != task));
            }
            _ => self.counts.strange += 1,
        }
    }

    /// Empties what is older than the last reset of its square.
    fn obey_reset(&mut self, now: Millis) {
        let Some(Reset { square, stamp, since }) = self.reset else { return };
        let known = self.cells.iter_mut().filter(|known| known.cell.square() == square);
        for known in known {
            let emptied = known.decider.reset_all(stamp, since, now);
            self.counts.emptied += u64::from(emptied);
        }
    }

    fn known(&mut self, cell: KmCell) -> Option<&mut Assigned> {
        self.cells.iter_mut().find(|known| known.cell == cell)
    }

    /// Counts what could not be used, and asks for all of a filter where something is missing.
    fn answer(
        &mut self,
        cell: KmCell,
        taken: Option<Result<(), ShareError>>,
        out: &mut Vec<Outgoing>,
    ) {
        match taken {
            Some(Ok(())) => {}
            None => self.counts.strange += 1,
            Some(Err(ShareError::Stale)) => self.counts.stale += 1,
            Some(Err(ShareError::Malformed)) => self.counts.malformed += 1,
            Some(Err(ShareError::Gap)) => {
                self.counts.gaps += 1;
                if self.place == Some(cell) {
                    self.announce_knowing(cell, None, out);
                }
            }
        }
    }

    fn located(&mut self, now: Millis, square: Square, out: &mut Vec<Outgoing>) {
        if self.located.contains(&square) {
            return;
        }
        if self.located.len() >= Self::SQUARES {
            self.located.remove(0);
        }
        self.located.push(square);
        self.unplaced = self.unplaced.filter(|&unplaced| unplaced != square);
        if self.place.map(KmCell::square) == Some(square) {
            self.retry = None;
            self.announce(now, out);
        }
    }

    /// Takes what the host of a cell says. An assignment to a cell that it left already is of no use.
    fn assigned(
        &mut self,
        now: Millis,
        cell: KmCell,
        rules: Rules,
        tasks: Vec<Task>,
        share: &crate::filter::Share,
    ) -> Option<Result<(), ShareError>> {
        if self.place != Some(cell) {
            return None;
        }
        if let Some(known) = self.cells.last_mut().filter(|known| known.cell == cell) {
            known.decider.set_rules(rules, now);
            known.tasks = tasks;
            return Some(known.decider.update(share, now));
        }
        if share.since.is_some() {
            return Some(Err(ShareError::Gap));
        }
        let Ok(decider) = Decider::new(self.id, rules, share, now) else {
            return Some(Err(ShareError::Malformed));
        };
        if self.cells.len() >= Self::CELLS {
            self.cells.remove(0);
        }
        self.cells.push(Assigned { cell, tasks, decider });
        Some(Ok(()))
    }
}
