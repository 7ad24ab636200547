//! The coordinator: finds a host for each square, forwards tasks, gathers what hosts tell.

mod saved;

use crate::Millis;
use crate::cell::Square;
use crate::element::Property;
use crate::message::{
    Aggregate, HostId, MAX_TASKS, Message, Outgoing, Peer, RequesterId, TaskId, WorkerId,
};
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
    /// When a process that was asked to run a host, and did not answer, is asked again.
    pub ask_again: Millis,
    /// How long a square waits for a process that is gone, before another one is to run it: one that
    /// comes back has the square's readings.
    pub grace: Millis,
}

impl Default for CoordinatorConfig {
    fn default() -> Self {
        let rules = Rules::PAPER;
        Self { rules, most: 100_000, tasks: 256, ask_again: 5_000, grace: 60_000 }
    }
}

/// The coordinator.
///
/// # Guarantee
/// A square gets one host, when the first worker appears in it, at the process with the most room. A task
/// reaches every host whose square it touches, those that are placed later too.
#[derive(Clone, Debug)]
pub struct Coordinator {
    config: CoordinatorConfig,
    processes: BTreeMap<HostId, Process>,
    squares: BTreeMap<Square, Placement>,
    /// Look-ups that wait for a host to run.
    waiting: BTreeMap<Square, BTreeSet<WorkerId>>,
    waiting_count: usize,
    tasks: BTreeMap<TaskId, (RequesterId, Task)>,
    aggregates: BTreeMap<(Square, Option<Property>), Aggregate>,
    counts: CoordinatorCounts,
}

/// A process that runs hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    room: u32,
    used: u32,
    /// Since when it is gone.
    gone: Option<Millis>,
}

/// Where a square's host runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Placement {
    process: HostId,
    ready: bool,
    /// When to ask again.
    again: Millis,
}

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
    /// Squares that a process came back with after another one had got them.
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
            aggregates: BTreeMap::new(),
            counts: CoordinatorCounts::default(),
        }
    }

    /// What it did.
    pub fn counts(&self) -> &CoordinatorCounts {
        &self.counts
    }

    /// The squares that have a host, and the processes that run them.
    pub fn squares(&self) -> impl Iterator<Item = (Square, HostId)> {
        self.squares.iter().map(|(&square, placement)| (square, placement.process))
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
            Message::Hello { host, room, squares } => self.hello(now, host, room, &squares, out),
            Message::Gone { host } => self.gone(now, host),
            Message::Ready { host, square } => self.ready(host, square, out),
            Message::Post { requester, task } => self.post(now, requester, task, out),
            Message::Withdraw { task } => self.withdraw(task, out),
            Message::Aggregate { square, property, aggregate } => {
                let room = self.aggregates.len() < self.config.most as usize;
                let known = self.aggregates.contains_key(&(square, property));
                if !self.squares.contains_key(&square) {
                    self.counts.strange += 1;
                } else if known || room {
                    self.aggregates.insert((square, property), aggregate);
                } else {
                    self.counts.full += 1;
                }
            }
            _ => self.counts.strange += 1,
        }
    }

    /// Lets time pass: asks processes again, moves squares whose process stays away, forgets tasks whose
    /// time is over. To be called about once a second.
    pub fn tick(&mut self, now: Millis, out: &mut Vec<Outgoing>) {
        self.tasks.retain(|_, (_, task)| now < task.until);
        let due: Vec<Square> = self
            .squares
            .iter()
            .filter(|(_, placement)| {
                let away = self.processes.get(&placement.process).and_then(|process| process.gone);
                let given_up =
                    away.is_some_and(|since| now.saturating_sub(since) >= self.config.grace);
                given_up || (!placement.ready && now >= placement.again)
            })
            .map(|(&square, _)| square)
            .collect();
        for square in due {
            let gone = self.squares.get(&square).and_then(|p| self.processes.get(&p.process));
            if gone.is_none_or(|process| process.gone.is_some()) {
                self.unplace(square);
            }
            self.place(now, square, out);
        }
    }

    fn look_up(&mut self, now: Millis, worker: WorkerId, square: Square, out: &mut Vec<Outgoing>) {
        self.counts.look_ups += 1;
        if self.squares.get(&square).is_some_and(|placement| placement.ready) {
            let message = Message::Located { square };
            out.push(Outgoing { to: Peer::Worker(worker), message });
            return;
        }
        if !self.squares.contains_key(&square) && !self.place(now, square, out) {
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
        let process = match self.squares.get(&square) {
            Some(placement) => placement.process,
            None => {
                if self.squares.len() >= self.config.most as usize {
                    self.counts.full += 1;
                    return false;
                }
                let room = |process: &Process| process.room.saturating_sub(process.used);
                let open = self
                    .processes
                    .iter_mut()
                    .filter(|(_, process)| process.gone.is_none() && room(process) > 0);
                let Some((&id, process)) = open.max_by_key(|(_, process)| room(process)) else {
                    return false;
                };
                process.used += 1;
                id
            }
        };
        self.counts.placements += 1;
        let again = now.saturating_add(self.config.ask_again);
        self.squares.insert(square, Placement { process, ready: false, again });
        let tasks: Vec<(RequesterId, Task)> =
            self.tasks.values().filter(|(_, task)| task.area.touches(square)).cloned().collect();
        let message = Message::Place { square, rules: self.config.rules, tasks };
        out.push(Outgoing { to: Peer::Process(process), message });
        true
    }

    fn unplace(&mut self, square: Square) {
        if let Some(placement) = self.squares.remove(&square)
            && let Some(process) = self.processes.get_mut(&placement.process)
        {
            process.used = process.used.saturating_sub(1);
        }
    }

    /// A process is there, or there again. Squares that it says it runs are its, unless another one that is
    /// there runs them: then it is to let go of them.
    fn hello(
        &mut self,
        now: Millis,
        host: HostId,
        room: u32,
        squares: &[Square],
        out: &mut Vec<Outgoing>,
    ) {
        if !self.processes.contains_key(&host) && self.processes.len() >= self.config.most as usize
        {
            self.counts.full += 1;
            return;
        }
        let used =
            self.squares.values().filter(|placement| placement.process == host).count() as u32;
        self.processes.insert(host, Process { room, used, gone: None });
        for &square in squares {
            let owner = self.squares.get(&square).map(|placement| placement.process);
            let full = self.squares.len() >= self.config.most as usize;
            if owner == Some(host) {
                continue;
            }
            if owner.is_some_and(|owner| self.is_there(owner)) {
                let message = Message::Release { square };
                out.push(Outgoing { to: Peer::Process(host), message });
                self.counts.released += 1;
            } else if owner.is_none() && full {
                self.counts.full += 1;
            } else {
                self.unplace(square);
                let placement = Placement { process: host, ready: false, again: now };
                self.squares.insert(square, placement);
                if let Some(process) = self.processes.get_mut(&host) {
                    process.used += 1;
                }
            }
        }
        // What it should run, but does not, or what nobody knew that it runs.
        let its = self.squares.iter().filter(|(square, placement)| {
            placement.process == host && !(placement.ready && squares.contains(square))
        });
        let its: Vec<Square> = its.map(|(&square, _)| square).collect();
        its.into_iter().for_each(|square| {
            self.place(now, square, out);
        });
    }

    fn is_there(&self, host: HostId) -> bool {
        self.processes.get(&host).is_some_and(|process| process.gone.is_none())
    }

    fn gone(&mut self, now: Millis, host: HostId) {
        match self.processes.get_mut(&host) {
            Some(process) => process.gone = process.gone.or(Some(now)),
            None => self.counts.strange += 1,
        }
    }

    fn ready(&mut self, host: HostId, square: Square, out: &mut Vec<Outgoing>) {
        let Some(placement) = self.squares.get_mut(&square).filter(|p| p.process == host) else {
            self.counts.strange += 1;
            return;
        };
        placement.ready = true;
        let waiting = self.waiting.remove(&square).unwrap_or_default();
        self.waiting_count -= waiting.len();
        out.extend(waiting.into_iter().map(|worker| Outgoing {
            to: Peer::Worker(worker),
            message: Message::Located { square },
        }));
    }

    fn post(&mut self, now: Millis, requester: RequesterId, task: Task, out: &mut Vec<Outgoing>) {
        let id = task.id;
        let to = Peer::Requester(requester);
        let known = self.tasks.get(&id);
        let room =
            known.is_some() || self.tasks.len() < (self.config.tasks as usize).min(MAX_TASKS);
        let refusal = match task.check(now) {
            Err(error) => Some(error),
            Ok(()) if known.is_some_and(|(owner, _)| *owner != requester) => Some(TaskError::Taken),
            Ok(()) if !room => Some(TaskError::TooMany),
            Ok(()) => None,
        };
        if let Some(reason) = refusal {
            self.counts.refused += 1;
            out.push(Outgoing { to, message: Message::Refused { task: id, reason } });
            return;
        }
        self.counts.tasks += 1;
        let mut hosts = 0;
        for &square in self.squares.keys().filter(|&&square| task.area.touches(square)) {
            hosts += 1;
            let message = Message::Forward { requester, task: task.clone() };
            out.push(Outgoing { to: Peer::Host(square), message });
        }
        self.tasks.insert(id, (requester, task));
        out.push(Outgoing { to, message: Message::Posted { task: id, hosts } });
    }

    fn withdraw(&mut self, id: TaskId, out: &mut Vec<Outgoing>) {
        let Some((_, task)) = self.tasks.remove(&id) else {
            self.counts.strange += 1;
            return;
        };
        for &square in self.squares.keys().filter(|&&square| task.area.touches(square)) {
            out.push(Outgoing { to: Peer::Host(square), message: Message::Withdraw { task: id } });
        }
    }
}
