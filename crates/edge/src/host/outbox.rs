//! Readings on their way to the requesters.

use super::HostConfig;
use crate::Millis;
use crate::cell::Square;
use crate::ids::{RequesterId, TaskId};
use crate::message::{MAX_READINGS, Message, Outgoing, Peer, Reading};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// A requester that does not answer is tried again at least so often; its greeting makes that at once.
const LONGEST_WAIT: Millis = 1_800_000;

/// Kept readings that no requester has confirmed yet.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Outbox {
    /// Not sent yet.
    pub(super) open: BTreeMap<TaskId, Open>,
    /// Sent, by the number of the batch.
    pub(super) sent: BTreeMap<u64, Batch>,
    /// Batches made in this life of the host.
    batches: u32,
    /// Readings in both, by task.
    pending: BTreeMap<TaskId, usize>,
    /// All of them.
    all: usize,
}

/// Readings of a task that wait for company.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Open {
    pub(super) requester: RequesterId,
    pub(super) readings: Vec<Reading>,
    /// When the first of them is to go at the latest.
    pub(super) due: Option<Millis>,
}

/// Readings that were sent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Batch {
    pub(super) task: TaskId,
    pub(super) requester: RequesterId,
    pub(super) readings: Vec<Reading>,
    pub(super) again: Millis,
    /// How long to wait after that.
    pub(super) wait: Millis,
}

impl Outbox {
    pub(super) fn pending(&self) -> usize {
        self.all
    }

    pub(super) fn pending_of(&self, task: TaskId) -> usize {
        self.pending.get(&task).copied().unwrap_or(0)
    }

    /// The tasks that any reading is of.
    pub(super) fn tasks(&self) -> impl Iterator<Item = TaskId> {
        self.pending.keys().copied()
    }

    fn note(&mut self, task: TaskId, more: usize) {
        *self.pending.entry(task).or_default() += more;
        self.all += more;
    }

    pub(super) fn add(&mut self, task: TaskId, requester: RequesterId, reading: Reading) {
        let empty = || Open { requester, readings: Vec::new(), due: None };
        self.open.entry(task).or_insert_with(empty).readings.push(reading);
        self.note(task, 1);
    }

    /// Batches of this life are numbered from there on.
    pub(super) fn number_from(&mut self, first: u32) {
        self.batches = self.batches.max(first);
    }

    /// What was saved.
    pub(super) fn restored(open: BTreeMap<TaskId, Open>, sent: BTreeMap<u64, Batch>) -> Self {
        let waiting: Vec<(TaskId, usize)> = open
            .iter()
            .map(|(&task, open)| (task, open.readings.len()))
            .chain(sent.values().map(|batch| (batch.task, batch.readings.len())))
            .collect();
        let mut outbox = Self { open, sent, ..Self::default() };
        waiting.into_iter().for_each(|(task, count)| outbox.note(task, count));
        outbox
    }

    /// Nothing waits for a moment that a wrong clock has named.
    pub(super) fn correct_clock(&mut self, now: Millis) {
        self.open.values_mut().for_each(|open| open.due = None);
        self.sent.values_mut().for_each(|batch| batch.again = batch.again.min(now));
    }

    /// Sends what is due, and again what was not confirmed.
    pub(super) fn deliver(
        &mut self,
        now: Millis,
        square: Square,
        incarnation: u32,
        config: &HostConfig,
        out: &mut Vec<Outgoing>,
    ) {
        let wait = config.resend_after;
        for (&id, batch) in &mut self.sent {
            if now >= batch.again {
                let pause = batch.wait.max(wait);
                batch.again = now.saturating_add(pause);
                batch.wait = pause.saturating_mul(2).min(wait.max(LONGEST_WAIT));
                out.push(batch.message(id, square));
            }
        }
        let again = now.saturating_add(wait);
        for (&task, open) in &mut self.open {
            let due = *open.due.get_or_insert(now.saturating_add(config.deliver_every));
            if now < due && open.readings.len() < MAX_READINGS {
                continue;
            }
            for readings in open.readings.chunks(MAX_READINGS) {
                let id = u64::from(incarnation) << 32 | u64::from(self.batches);
                self.batches = self.batches.wrapping_add(1);
                let requester = open.requester;
                let wait = 2 * wait;
                let readings = readings.to_vec();
                let batch = Batch { task, requester, readings, again, wait };
                out.push(batch.message(id, square));
                self.sent.insert(id, batch);
            }
            open.readings.clear();
        }
        self.open.retain(|_, open| !open.readings.is_empty());
    }

    /// From when on [`Outbox::deliver`] has anything to send.
    pub(super) fn due(&self) -> Millis {
        let first =
            |open: &Open| open.due.filter(|_| open.readings.len() < MAX_READINGS).unwrap_or(0);
        let open = self.open.values().map(first);
        open.chain(self.sent.values().map(|batch| batch.again)).min().unwrap_or(Millis::MAX)
    }

    /// The requester of a task is there: what was not confirmed is sent again at once.
    pub(super) fn hurry(&mut self, task: TaskId, now: Millis, wait: Millis) {
        for batch in self.sent.values_mut().filter(|batch| batch.task == task) {
            (batch.again, batch.wait) = (batch.again.min(now), wait);
        }
    }

    /// A batch that was sent before a restart, with these readings and no others.
    pub(super) fn sent_before(&mut self, id: u64, batch: Batch) {
        let (task, count) = (batch.task, batch.readings.len());
        let before = self.open.get(&task).map_or(0, |open| open.readings.len());
        if let Some(open) = self.open.get_mut(&task) {
            if open.readings.starts_with(&batch.readings) {
                open.readings.drain(..count);
            } else {
                let mut sent = batch.readings.clone();
                open.readings.retain(|reading| {
                    let at = sent.iter().position(|other| other == reading);
                    at.map(|at| sent.swap_remove(at)).is_none()
                });
            }
        }
        self.open.retain(|_, open| !open.readings.is_empty());
        let after = self.open.get(&task).map_or(0, |open| open.readings.len());
        self.note(task, count.saturating_sub(before - after));
        self.sent.insert(id, batch);
    }

    pub(super) fn received(&mut self, batch: u64) {
        let Some(batch) = self.sent.remove(&batch) else { return };
        let count = batch.readings.len();
        self.all -= count;
        if let Some(pending) = self.pending.get_mut(&batch.task) {
            *pending -= count;
            if *pending == 0 {
                self.pending.remove(&batch.task);
            }
        }
    }

    pub(super) fn drop_task(&mut self, task: TaskId) {
        if let Some(pending) = self.pending.remove(&task) {
            self.all -= pending;
            self.open.remove(&task);
            self.sent.retain(|_, batch| batch.task != task);
        }
    }
}

impl Batch {
    fn message(&self, batch: u64, square: Square) -> Outgoing {
        let (task, readings) = (self.task, self.readings.clone());
        Outgoing {
            to: Peer::Requester(self.requester),
            message: Message::Results { task, square, batch, readings },
        }
    }
}
