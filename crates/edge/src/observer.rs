//! One who looks on: what the messages of all roles say about who is where and what was sent from where, for a map.

use crate::Millis;
use crate::cell::{KmCell, SmallCell, Square};
use crate::element::Property;
use crate::ids::{ProcessId, RequesterId, TaskId, WorkerId};
use crate::message::{Aggregate, Message};
use crate::task::Task;
use alloc::collections::BTreeMap;

/// What can be seen from outside.
///
/// # Cost
/// Memory for [`Observer::CELLS`] cells of 100 m, as many workers, and all squares and tasks that there are; of more,
/// those that were heard of the longest ago are forgotten.
#[derive(Clone, Debug, Default)]
pub struct Observer {
    cells: BTreeMap<SmallCell, Seen>,
    workers: BTreeMap<WorkerId, (KmCell, Millis)>,
    hosts: BTreeMap<Square, (ProcessId, Millis)>,
    aggregates: BTreeMap<Square, Aggregate>,
    tasks: BTreeMap<TaskId, (RequesterId, Task)>,
    coordinator: Option<(u64, Millis)>,
    counts: ObserverCounts,
}

/// What was sent from a cell of 100 m.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// When a reading was last sent from there.
    pub heard: Millis,
    /// Readings that were sent.
    pub sent: u64,
    /// The last one's property and value.
    pub last: (Property, f64),
}

/// Messages that went by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObserverCounts {
    /// All.
    pub messages: u64,
    /// Readings sent by workers.
    pub submissions: u64,
    /// Filters sent to workers whose reading was redundant.
    pub updates: u64,
    /// Messages that filters were emptied: to a worker, to a cell or to a whole square.
    pub resets: u64,
    /// Readings sent to requesters, each time they are sent.
    pub results: u64,
}

impl Observer {
    /// Cells of 100 m that are remembered.
    pub const CELLS: usize = 20_000;

    /// Sees a message.
    pub fn see(&mut self, now: Millis, message: &Message) {
        self.counts.messages += 1;
        match message {
            Message::Submit { worker, reading, .. } => {
                self.counts.submissions += 1;
                let last = (reading.element.property, reading.value);
                let sent = self.cells.get(&reading.cell()).map_or(0, |seen| seen.sent) + 1;
                let seen = Seen { heard: reading.time.min(now), sent, last };
                self.cells.insert(reading.cell(), seen);
                forget(&mut self.cells, |seen| seen.heard);
                self.worker(*worker, reading.km(), now);
            }
            Message::Announce { worker, cell, .. } => self.worker(*worker, *cell, now),
            Message::Leave { worker } => {
                self.workers.remove(worker);
            }
            Message::Update { .. } => self.counts.updates += 1,
            Message::Reset { .. } | Message::ResetAll { .. } => self.counts.resets += 1,
            Message::Results { readings, .. } => self.counts.results += readings.len() as u64,
            Message::Hello { process, squares, .. } => {
                self.hosts.retain(|_, (other, _)| other != process);
                self.hosts.extend(squares.iter().map(|&square| (square, (*process, now))));
            }
            Message::Ready { process, square } => {
                self.hosts.insert(*square, (*process, now));
            }
            Message::Gone { process } => self.hosts.retain(|_, (other, _)| other != process),
            Message::Aggregate { square, aggregate, .. } => {
                self.aggregates.insert(*square, *aggregate);
            }
            Message::Post { requester, task } | Message::Forward { requester, task } => {
                self.tasks.insert(task.id, (*requester, task.clone()));
            }
            Message::Place { tasks, .. } | Message::Listed { tasks } => {
                let tasks =
                    tasks.iter().map(|(requester, task)| (task.id, (*requester, task.clone())));
                self.tasks.extend(tasks);
            }
            Message::Withdraw { task } => {
                self.tasks.remove(task);
            }
            Message::Lease { holder, held: true, .. } => self.coordinator = Some((*holder, now)),
            _ => {}
        }
    }

    fn worker(&mut self, worker: WorkerId, cell: KmCell, now: Millis) {
        self.workers.insert(worker, (cell, now));
        forget(&mut self.workers, |(_, heard)| *heard);
    }

    /// Forgets tasks whose time is over.
    pub fn tick(&mut self, now: Millis) {
        self.tasks.retain(|_, (_, task)| now < task.until);
    }

    /// Cells of 100 m that readings were sent from.
    pub fn cells(&self) -> impl Iterator<Item = (SmallCell, Seen)> {
        self.cells.iter().map(|(&cell, &seen)| (cell, seen))
    }

    /// Workers, where they are, and when they were last heard of.
    pub fn workers(&self) -> impl Iterator<Item = (WorkerId, KmCell, Millis)> {
        self.workers.iter().map(|(&worker, &(cell, heard))| (worker, cell, heard))
    }

    /// Squares with a host, the process that runs it, and when that was last said.
    pub fn hosts(&self) -> impl Iterator<Item = (Square, ProcessId, Millis)> {
        self.hosts.iter().map(|(&square, &(process, heard))| (square, process, heard))
    }

    /// What hosts have told last of their squares.
    pub fn aggregates(&self) -> impl Iterator<Item = (Square, Aggregate)> {
        self.aggregates.iter().map(|(&square, &aggregate)| (square, aggregate))
    }

    /// Tasks, and whose they are.
    pub fn tasks(&self) -> impl Iterator<Item = (RequesterId, &Task)> {
        self.tasks.values().map(|(requester, task)| (*requester, task))
    }

    /// Which coordinator acts, and when it last said so.
    pub fn coordinator(&self) -> Option<(u64, Millis)> {
        self.coordinator
    }

    /// Messages that went by.
    pub fn counts(&self) -> &ObserverCounts {
        &self.counts
    }
}

/// Makes room: a tenth of all, those that were heard of the longest ago.
fn forget<K: Copy + Ord, V>(known: &mut BTreeMap<K, V>, heard: impl Fn(&V) -> Millis) {
    if known.len() <= Observer::CELLS {
        return;
    }
    let mut times: alloc::vec::Vec<Millis> = known.values().map(&heard).collect();
    times.sort_unstable();
    let oldest = times.get(times.len() / 10).copied().unwrap_or(0);
    known.retain(|_, value| heard(value) > oldest);
}
