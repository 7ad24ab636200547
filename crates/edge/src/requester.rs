//! A requester: posts tasks, takes readings.

use crate::Millis;
use crate::cell::Square;
use crate::ids::{RequesterId, TaskId};
use crate::message::{Message, Outgoing, Peer, Reading};
use crate::task::{Task, TaskError};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// A requester.
///
/// # Guarantee
/// A batch of readings that arrives twice is handed on once, as long as it is among the last
/// [`Requester::BATCHES`] of its host. It is confirmed when it was taken with
/// [`Requester::take_readings`], so one that is lost with the requester comes again.
#[derive(Clone, Debug)]
pub struct Requester {
    id: RequesterId,
    tasks: BTreeMap<TaskId, Posted>,
    batches: BTreeMap<Square, BTreeSet<u64>>,
    arrived: Vec<Arrived>,
    /// Which batches these are.
    waiting: BTreeSet<(Square, u64)>,
    /// Which coordinator acts: its name and epoch.
    coordinator: Option<(u64, u64)>,
    listed: Option<Vec<(RequesterId, Task)>>,
    counts: RequesterCounts,
}

/// A task and what the coordinator said to it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Posted {
    task: Task,
    state: TaskState,
    /// When to post it again, and how long to wait after that.
    again: Millis,
    wait: Millis,
}

/// How a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// The coordinator has not answered.
    Waiting,
    /// Number of hosts that it was forwarded to; others follow as they are placed.
    Active(u32),
    /// The coordinator did not take it.
    Refused(TaskError),
}

/// Readings of a task, from one host.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrived {
    /// The task.
    pub task: TaskId,
    /// Whose.
    pub square: Square,
    /// Names the batch among those of this host.
    pub batch: u64,
    /// The readings.
    pub readings: Vec<Reading>,
}

/// What a requester got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequesterCounts {
    /// Readings that arrived for the first time.
    pub readings: u64,
    /// Batches that had arrived before.
    pub repeated: u64,
    /// Messages for another role, or for a task it does not have.
    pub strange: u64,
    /// Batches left for later, as too many wait to be taken.
    pub full: u64,
}

impl Requester {
    /// Batches that are known again, of each host.
    pub const BATCHES: usize = 4096;
    /// Batches that wait to be taken at most; further ones come again.
    pub const WAITING: usize = 4096;
    /// Hosts whose batches are known again.
    const HOSTS: usize = 4096;
    /// When a task that nobody answered is posted again, at first and at most.
    const AGAIN: (Millis, Millis) = (1_000, 10_000);

    /// A requester without tasks.
    pub fn new(id: RequesterId) -> Self {
        Self {
            id,
            tasks: BTreeMap::new(),
            batches: BTreeMap::new(),
            arrived: Vec::new(),
            waiting: BTreeSet::new(),
            coordinator: None,
            listed: None,
            counts: RequesterCounts::default(),
        }
    }

    /// Its name.
    pub fn id(&self) -> RequesterId {
        self.id
    }

    /// What it got.
    pub fn counts(&self) -> &RequesterCounts {
        &self.counts
    }

    /// How a task stands; `None` for one that it does not have.
    pub fn state(&self, task: TaskId) -> Option<TaskState> {
        self.tasks.get(&task).map(|posted| posted.state)
    }

    /// Posts a task.
    ///
    /// # Errors
    /// [`TaskError`] for one that nobody would take.
    pub fn post(
        &mut self,
        now: Millis,
        task: Task,
        out: &mut Vec<Outgoing>,
    ) -> Result<(), TaskError> {
        task.check(now)?;
        out.push(self.to_coordinator(&task));
        let (again, wait) = (now.saturating_add(Self::AGAIN.0), 2 * Self::AGAIN.0);
        self.tasks.insert(task.id, Posted { task, state: TaskState::Waiting, again, wait });
        Ok(())
    }

    fn to_coordinator(&self, task: &Task) -> Outgoing {
        let message = Message::Post { requester: self.id, task: task.clone() };
        Outgoing { to: Peer::Coordinator, message }
    }

    /// Ends a task before its time.
    pub fn withdraw(&mut self, task: TaskId, out: &mut Vec<Outgoing>) {
        if self.tasks.remove(&task).is_some() {
            out.push(Outgoing { to: Peer::Coordinator, message: Message::Withdraw { task } });
        }
    }

    /// Lets time pass: posts again what nobody answered.
    pub fn tick(&mut self, now: Millis, out: &mut Vec<Outgoing>) {
        let mut unanswered = Vec::new();
        for posted in self.tasks.values_mut() {
            if posted.state == TaskState::Waiting && now >= posted.again && now < posted.task.until
            {
                posted.again = now.saturating_add(posted.wait);
                posted.wait = (2 * posted.wait).min(Self::AGAIN.1);
                unanswered.push(posted.task.clone());
            }
        }
        out.extend(unanswered.iter().map(|task| self.to_coordinator(task)));
    }

    /// Takes a message. What it leads to is appended to `out`.
    pub fn handle(&mut self, now: Millis, message: Message, out: &mut Vec<Outgoing>) {
        match message {
            Message::Posted { task, hosts } => self.answered(task, TaskState::Active(hosts)),
            Message::Refused { task, reason } => self.answered(task, TaskState::Refused(reason)),
            Message::Results { task, square, batch, readings } => {
                self.results(Arrived { task, square, batch, readings }, out);
            }
            Message::Lease { holder, epoch, held: true } => {
                self.coordinator_acts(now, (holder, epoch), out);
            }
            Message::Lease { .. } => {}
            Message::Listed { tasks } => self.listed = Some(tasks),
            _ => self.counts.strange += 1,
        }
    }

    /// A coordinator acts. Another one than before may know nothing of the tasks, so they are posted again.
    fn coordinator_acts(&mut self, now: Millis, who: (u64, u64), out: &mut Vec<Outgoing>) {
        if self.coordinator.replace(who) == Some(who) {
            return;
        }
        let live = self.tasks.values().filter(|posted| {
            now < posted.task.until && !matches!(posted.state, TaskState::Refused(_))
        });
        out.extend(live.map(|posted| self.to_coordinator(&posted.task)));
    }

    /// Asks for all tasks; [`Requester::take_list`] has the answer.
    pub fn list(&self, out: &mut Vec<Outgoing>) {
        let message = Message::List { requester: self.id };
        out.push(Outgoing { to: Peer::Coordinator, message });
    }

    /// The tasks that the coordinator has told.
    pub fn take_list(&mut self) -> Option<Vec<(RequesterId, Task)>> {
        self.listed.take()
    }

    fn answered(&mut self, task: TaskId, state: TaskState) {
        match self.tasks.get_mut(&task) {
            Some(posted) => posted.state = state,
            None => self.counts.strange += 1,
        }
    }

    fn results(&mut self, arrived: Arrived, out: &mut Vec<Outgoing>) {
        let (square, batch) = (arrived.square, arrived.batch);
        if self.batches.get(&square).is_some_and(|known| known.contains(&batch)) {
            self.counts.repeated += 1;
            out.push(confirm(square, batch));
        } else if !self.tasks.contains_key(&arrived.task) {
            // Of no use to anybody any more, so the host may forget it.
            self.counts.strange += 1;
            out.push(confirm(square, batch));
        } else if self.waiting.contains(&(square, batch)) {
            self.counts.repeated += 1;
        } else if self.arrived.len() >= Self::WAITING {
            self.counts.full += 1;
        } else {
            self.counts.readings += arrived.readings.len() as u64;
            self.waiting.insert((square, batch));
            self.arrived.push(arrived);
        }
    }

    /// Hands over what has arrived, and confirms it to the hosts: who must not lose it saves it before the
    /// confirmations in `out` are sent.
    pub fn take_readings(&mut self, out: &mut Vec<Outgoing>) -> Vec<Arrived> {
        for arrived in &self.arrived {
            if self.batches.len() >= Self::HOSTS && !self.batches.contains_key(&arrived.square) {
                self.batches.pop_first();
            }
            let known = self.batches.entry(arrived.square).or_default();
            known.insert(arrived.batch);
            if known.len() > Self::BATCHES {
                known.pop_first();
            }
            out.push(confirm(arrived.square, arrived.batch));
        }
        self.waiting.clear();
        core::mem::take(&mut self.arrived)
    }
}

fn confirm(square: Square, batch: u64) -> Outgoing {
    Outgoing { to: Peer::Host(square), message: Message::Received { square, batch } }
}
