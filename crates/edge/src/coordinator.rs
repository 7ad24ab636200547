//! The coordinator: finds a host for each square, forwards tasks, gathers what hosts tell.

mod saved;

use crate::Millis;
use crate::cell::Square;
use crate::element::Property;
use crate::ids::{ProcessId, RequesterId, TaskId, WorkerId};
use crate::message::{Aggregate, MAX_TASKS, Message, Outgoing, Peer};
use crate::rules::Rules;
use crate::task::{Task, TaskError};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// How a coordinator works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoordinatorConfig {
    /// The rules for all squares.
    pub rules: Rules,
    /// Processes, squares and waiting look-ups that it knows at most; each of them.
    pub most: u32,
    /// Tasks that it keeps at most, no more than [`MAX_TASKS`].
    pub tasks: u32,
    /// Tasks of one requester at most.
    pub tasks_of_one: u32,
    /// When a process that was asked to run a host, and did not answer, is asked again.
    pub ask_again: Millis,
    /// How long a square waits for a process that is gone, before another one is to run it: one that
    /// comes back has the square's readings.
    pub grace: Millis,
}

impl Default for CoordinatorConfig {
    fn default() -> Self {
        let rules = Rules::PAPER;
        Self { rules, most: 100_000, tasks: 256, tasks_of_one: 64, ask_again: 5_000, grace: 60_000 }
    }
}

/// The coordinator.
///
/// # Guarantee
/// A square gets one host, when the first worker appears in it, at the process with the most room, and keeps it
/// as long as the process is heard of; one where nobody was for long is given back. A task reaches
/// every host whose square it touches, those that are placed later too.
#[derive(Clone, Debug)]
pub struct Coordinator {
    config: CoordinatorConfig,
    processes: BTreeMap<ProcessId, Process>,
    squares: BTreeMap<Square, Placement>,
    /// Look-ups that wait for a host to run.
    waiting: BTreeMap<Square, BTreeSet<WorkerId>>,
    waiting_count: usize,
    tasks: BTreeMap<TaskId, (RequesterId, Task)>,
    /// Names what it knows of tasks: another one begins without it.
    book: u64,
    /// When tasks were last posted.
    posted: BTreeMap<TaskId, Millis>,
    aggregates: BTreeMap<(Square, Option<Property>), Aggregate>,
    counts: CoordinatorCounts,
    changes: u64,
}

/// A process that runs hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    room: u32,
    used: u32,
    /// When it was last heard of.
    heard: Millis,
    /// Since when it is gone.
    gone: Option<Millis>,
}

/// Where a square's host runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Placement {
    process: ProcessId,
    /// Workers may be sent there.
    ready: bool,
    /// The process has answered: it knows the rules and tasks.
    told: bool,
    /// When to ask again, if it has not, and how often it was asked.
    again: Millis,
    asked: u8,
    /// When a worker was last known to be there.
    busy: Millis,
}

impl Placement {
    const fn new(process: ProcessId, now: Millis) -> Self {
        Self { process, ready: false, told: false, again: now, asked: 0, busy: now }
    }
}

/// A process that is not heard of for so long is gone, though no last will said so: it greets ten times meanwhile.
const SILENT: Millis = 300_000;
/// A requester that posts a task again after so long was away; one that misses the answer posts again sooner.
const AWAY: Millis = 30_000;
/// A process that fails to answer this many times loses the square to another one, if there is any.
const ASKED: u8 = 12;
/// A square without workers is given back after so long, and sooner where room is short.
const IDLE: (Millis, Millis) = (86_400_000, 600_000);

/// What a coordinator did, and what it could not use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CoordinatorCounts {
    /// Look-ups that came.
    pub look_ups: u64,
    /// Look-ups for squares that nobody can host.
    pub unplaced: u64,
    /// Squares given to a process, again or for the first time.
    pub placements: u64,
    /// Squares that a process is to let go of: another one runs them by now, or nobody is there any more.
    pub released: u64,
    /// Tasks taken.
    pub tasks: u64,
    /// Tasks refused.
    pub refused: u64,
    /// Messages for another role, or from a process that has no say in the square.
    pub strange: u64,
    /// Messages that there was no room for.
    pub full: u64,
}

impl Coordinator {
    /// A coordinator that knows nobody yet. Its rules must have been checked with [`Rules::check`].
    pub fn new(config: CoordinatorConfig) -> Self {
        Self {
            config,
            processes: BTreeMap::new(),
            squares: BTreeMap::new(),
            waiting: BTreeMap::new(),
            waiting_count: 0,
            tasks: BTreeMap::new(),
            book: 0,
            posted: BTreeMap::new(),
            aggregates: BTreeMap::new(),
            counts: CoordinatorCounts::default(),
            changes: 0,
        }
    }

    /// Names what it knows of tasks, at random, for a coordinator that begins without a state: hosts keep tasks that they
    /// know from another book until their requesters post them again, or their time is over.
    pub fn begin_book(&mut self, book: u64) {
        self.book = book;
        self.changes += 1;
    }

    /// How often what [`Coordinator::save`] writes has changed: no need to save it if this has not.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// What it did.
    pub fn counts(&self) -> &CoordinatorCounts {
        &self.counts
    }

    /// The squares that have a host, and the processes that run them.
    pub fn squares(&self) -> impl Iterator<Item = (Square, ProcessId)> {
        self.squares.iter().map(|(&square, placement)| (square, placement.process))
    }

    /// The processes that it knows: squares that each runs and may run in all, when it was last heard of, and whether it
    /// is there.
    pub fn processes(&self) -> impl Iterator<Item = (ProcessId, (u32, u32), Millis, bool)> {
        self.processes.iter().map(|(&id, process)| {
            (id, (process.used, process.room), process.heard, process.gone.is_none())
        })
    }

    /// Tasks, and whose they are.
    pub fn tasks(&self) -> impl Iterator<Item = (RequesterId, &Task)> {
        self.tasks.values().map(|(requester, task)| (*requester, task))
    }

    /// What hosts told last, by square and property.
    pub fn aggregates(&self) -> impl Iterator<Item = (Square, Option<Property>, Aggregate)> {
        self.aggregates
            .iter()
            .map(|(&(square, property), &aggregate)| (square, property, aggregate))
    }

    /// Takes a message. What it leads to is appended to `out`.
    pub fn handle(&mut self, now: Millis, message: Message, out: &mut Vec<Outgoing>) {
        match message {
            Message::LookUp { worker, square } => self.look_up(now, worker, square, out),
            Message::Hello { process, room, squares } => {
                self.hello(now, process, room, &squares, out);
            }
            Message::Gone { process } => self.gone(now, process),
            Message::Ready { process, square } => self.ready(now, process, square, out),
            Message::Post { requester, task } => self.post(now, requester, &task, out),
            Message::Withdraw { task } => self.withdraw(task, out),
            Message::List { requester } => {
                let tasks = self.tasks.values().take(MAX_TASKS).cloned().collect();
                let to = Peer::Requester(requester);
                out.push(Outgoing { to, message: Message::Listed { tasks } });
            }
            Message::Aggregate { square, property, aggregate } => {
                let room = self.aggregates.len() < self.config.most as usize;
                let known = self.aggregates.contains_key(&(square, property));
                if !self.squares.contains_key(&square) {
                    self.counts.strange += 1;
                } else if known || room {
                    if let Some(placement) = self.squares.get_mut(&square)
                        && aggregate.workers > 0
                    {
                        placement.busy = now;
                    }
                    self.aggregates.insert((square, property), aggregate);
                } else {
                    self.counts.full += 1;
                }
            }
            _ => self.counts.strange += 1,
        }
    }

    /// The connection was lost, or this is another life: what was said before may not have arrived. Every
    /// process is told its squares, rules and tasks again.
    pub fn say_again(&mut self, now: Millis) {
        for placement in self.squares.values_mut() {
            (placement.told, placement.again, placement.asked) = (false, now, 0);
        }
    }

    /// Lets time pass: asks processes again, moves squares whose process stays away, gives back those where
    /// nobody is, forgets tasks whose time is over. To be called about once a second.
    pub fn tick(&mut self, now: Millis, out: &mut Vec<Outgoing>) {
        let tasks = self.tasks.len();
        self.tasks.retain(|_, (_, task)| now < task.until);
        self.posted.retain(|id, _| self.tasks.contains_key(id));
        self.changes += u64::from(self.tasks.len() != tasks);
        for process in self.processes.values_mut() {
            let is_silent = now.saturating_sub(process.heard) >= SILENT;
            process.gone = process.gone.or(is_silent.then_some(now));
        }
        self.give_back_idle(now, IDLE.0, usize::MAX, out);
        let due: Vec<Square> = self
            .squares
            .iter()
            .filter(|(_, placement)| {
                let process = self.processes.get(&placement.process);
                match process.map(|process| process.gone) {
                    Some(None) => !placement.told && now >= placement.again,
                    Some(Some(since)) => now.saturating_sub(since) >= self.config.grace,
                    None => true,
                }
            })
            .map(|(&square, _)| square)
            .collect();
        for square in due {
            let Some(&Placement { process, asked, .. }) = self.squares.get(&square) else {
                continue;
            };
            if asked >= ASKED || !self.is_there(process) {
                self.unplace(square);
            }
            // Where there is no other, the same is asked on.
            let _ = self.place_but(now, square, Some(process), out)
                || self.place_but(now, square, None, out);
        }
    }

    /// Releases squares without workers for that long, the longest first, up to a limit.
    fn give_back_idle(&mut self, now: Millis, idle: Millis, most: usize, out: &mut Vec<Outgoing>) {
        let since = |placement: &Placement| now.saturating_sub(placement.busy);
        let places = self.squares.iter().filter(|(_, placement)| since(placement) >= idle);
        let mut given: Vec<(Millis, Square)> =
            places.map(|(&square, placement)| (placement.busy, square)).collect();
        given.sort_unstable();
        for (_, square) in given.into_iter().take(most) {
            if let Some(&Placement { process, .. }) = self.squares.get(&square) {
                self.release(process, square, out);
            }
            self.unplace(square);
        }
    }

    /// Tells a process to let go of a square.
    fn release(&mut self, process: ProcessId, square: Square, out: &mut Vec<Outgoing>) {
        out.push(Outgoing { to: Peer::Process(process), message: Message::Release { square } });
        self.counts.released += 1;
    }

    fn look_up(&mut self, now: Millis, worker: WorkerId, square: Square, out: &mut Vec<Outgoing>) {
        self.counts.look_ups += 1;
        if self.squares.get(&square).is_some_and(|placement| placement.ready) {
            let message = Message::Located { square };
            out.push(Outgoing { to: Peer::Worker(worker), message });
            return;
        }
        let is_placed = self.squares.contains_key(&square) || self.place(now, square, out) || {
            self.give_back_idle(now, IDLE.1, 1, out);
            self.place(now, square, out)
        };
        if !is_placed {
            self.counts.unplaced += 1;
            let message = Message::Unplaced { square };
            out.push(Outgoing { to: Peer::Worker(worker), message });
            return;
        }
        if self.waiting_count >= self.config.most as usize {
            // The worker asks again.
            self.counts.full += 1;
            return;
        }
        let new = self.waiting.entry(square).or_default().insert(worker);
        self.waiting_count += usize::from(new);
    }

    /// Asks the process that runs the square, or the one with the most room. `false` when nobody has any.
    fn place(&mut self, now: Millis, square: Square, out: &mut Vec<Outgoing>) -> bool {
        self.place_but(now, square, None, out)
    }

    /// The same, but that a square that nobody runs does not go to this process.
    fn place_but(
        &mut self,
        now: Millis,
        square: Square,
        not: Option<ProcessId>,
        out: &mut Vec<Outgoing>,
    ) -> bool {
        let placement = match self.squares.get(&square) {
            Some(placement) => *placement,
            None => {
                if self.squares.len() >= self.config.most as usize {
                    self.counts.full += 1;
                    return false;
                }
                let room = |process: &Process| process.room.saturating_sub(process.used);
                let open = self.processes.iter_mut().filter(|(id, process)| {
                    process.gone.is_none() && room(process) > 0 && Some(**id) != not
                });
                let Some((&id, process)) = open.max_by_key(|(_, process)| room(process)) else {
                    return false;
                };
                process.used += 1;
                self.changes += 1;
                Placement::new(id, now)
            }
        };
        self.counts.placements += 1;
        let (process, asked) = (placement.process, placement.asked.saturating_add(1));
        let again = now.saturating_add(self.config.ask_again);
        self.squares.insert(square, Placement { told: false, asked, again, ..placement });
        let tasks: Vec<(RequesterId, Task)> =
            self.tasks.values().filter(|(_, task)| task.area.touches(square)).cloned().collect();
        let (rules, book) = (self.config.rules, self.book);
        let message = Message::Place { square, rules, tasks, book };
        out.push(Outgoing { to: Peer::Process(process), message });
        true
    }

    fn unplace(&mut self, square: Square) {
        let removed = self.squares.remove(&square);
        self.changes += u64::from(removed.is_some());
        if let Some(placement) = removed
            && let Some(process) = self.processes.get_mut(&placement.process)
        {
            process.used = process.used.saturating_sub(1);
        }
    }

    /// A process has connected, perhaps again. Squares that it reports are assigned to it, unless another connected
    /// process runs them: then it is told to release them.
    fn hello(
        &mut self,
        now: Millis,
        id: ProcessId,
        room: u32,
        squares: &[Square],
        out: &mut Vec<Outgoing>,
    ) {
        if !self.processes.contains_key(&id) && self.processes.len() >= self.config.most as usize {
            self.counts.full += 1;
            return;
        }
        let used = self.squares.values().filter(|placement| placement.process == id).count() as u32;
        let known = self.processes.insert(id, Process { room, used, heard: now, gone: None });
        self.changes += u64::from(known.is_none_or(|known| known.room != room));
        // What was said while it was away may not have arrived.
        let was_away = known.is_some_and(|known| known.gone.is_some());
        let claimed: BTreeSet<Square> = squares.iter().copied().collect();
        for &square in &claimed {
            let owner = self.squares.get(&square).map(|placement| placement.process);
            let full = self.squares.len() >= self.config.most as usize;
            if owner == Some(id) {
                continue;
            }
            if owner.is_some_and(|owner| self.is_there(owner)) {
                self.release(id, square, out);
            } else if owner.is_none() && full {
                self.counts.full += 1;
            } else {
                self.unplace(square);
                self.squares.insert(square, Placement::new(id, now));
                self.changes += 1;
                if let Some(process) = self.processes.get_mut(&id) {
                    process.used += 1;
                }
            }
        }
        // What it should run, but does not, or what nobody knew that it runs.
        let its = self.squares.iter().filter(|(square, placement)| {
            let is_known = placement.told && claimed.contains(square);
            placement.process == id && (was_away || !is_known)
        });
        let its: Vec<Square> = its.map(|(&square, _)| square).collect();
        for square in its {
            self.place(now, square, out);
        }
    }

    fn is_there(&self, id: ProcessId) -> bool {
        self.processes.get(&id).is_some_and(|process| process.gone.is_none())
    }

    fn gone(&mut self, now: Millis, id: ProcessId) {
        match self.processes.get_mut(&id) {
            Some(process) => process.gone = process.gone.or(Some(now)),
            None => self.counts.strange += 1,
        }
    }

    fn ready(&mut self, now: Millis, id: ProcessId, square: Square, out: &mut Vec<Outgoing>) {
        let Some(placement) = self.squares.get_mut(&square).filter(|p| p.process == id) else {
            self.counts.strange += 1;
            return;
        };
        self.changes += u64::from(!placement.ready);
        (placement.ready, placement.told, placement.asked) = (true, true, 0);
        if let Some(process) = self.processes.get_mut(&id) {
            process.heard = now;
        }
        let waiting = self.waiting.remove(&square).unwrap_or_default();
        self.waiting_count -= waiting.len();
        out.extend(waiting.into_iter().map(|worker| Outgoing {
            to: Peer::Worker(worker),
            message: Message::Located { square },
        }));
    }

    fn post(&mut self, now: Millis, requester: RequesterId, task: &Task, out: &mut Vec<Outgoing>) {
        let id = task.id;
        let to = Peer::Requester(requester);
        let known = self.tasks.get(&id);
        let room =
            known.is_some() || self.tasks.len() < (self.config.tasks as usize).min(MAX_TASKS);
        let of_one = self.tasks.values().filter(|(owner, _)| *owner == requester).count();
        let refusal = match task.check(now) {
            Err(error) => Some(error),
            Ok(()) if known.is_some_and(|(owner, _)| *owner != requester) => Some(TaskError::Taken),
            Ok(()) if !room => Some(TaskError::TooMany),
            Ok(()) if known.is_none() && of_one >= self.config.tasks_of_one as usize => {
                Some(TaskError::TooManyOfOne)
            }
            Ok(()) => None,
        };
        if let Some(reason) = refusal {
            self.counts.refused += 1;
            out.push(Outgoing { to, message: Message::Refused { task: id, reason } });
            return;
        }
        self.counts.tasks += 1;
        let known = self.tasks.insert(id, (requester, task.clone())).map(|(_, known)| known);
        self.changes += u64::from(known.as_ref() != Some(task));
        // Its requester is there again after a while: hosts may have readings for it.
        let before = self.posted.insert(id, now);
        let is_back = before.is_none_or(|before| now.saturating_sub(before) >= AWAY);
        let squares: Vec<Square> = self.squares.keys().copied().collect();
        let mut hosts = 0;
        for square in squares {
            if task.area.touches(square) {
                hosts += 1;
                // One that is posted again is known, or comes with the next Place.
                if known.as_ref() != Some(task) || is_back {
                    let message = Message::Forward { requester, task: task.clone() };
                    out.push(Outgoing { to: Peer::Host(square), message });
                }
            } else if known.as_ref().is_some_and(|known| known.area.touches(square)) {
                self.place(now, square, out);
            }
        }
        out.push(Outgoing { to, message: Message::Posted { task: id, hosts } });
    }

    fn withdraw(&mut self, id: TaskId, out: &mut Vec<Outgoing>) {
        let known = self.tasks.remove(&id);
        self.changes += u64::from(known.is_some());
        self.counts.strange += u64::from(known.is_none());
        // Hosts may know what a coordinator without its state does not.
        let is_there =
            |square: Square| known.as_ref().is_none_or(|(_, task)| task.area.touches(square));
        for &square in self.squares.keys().filter(|&&square| is_there(square)) {
            out.push(Outgoing { to: Peer::Host(square), message: Message::Withdraw { task: id } });
        }
    }
}
