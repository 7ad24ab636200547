//! What a host does for tasks: who wants a reading, and what waits for whom.

use super::{Handled, Host, Refusal, Wish};
use crate::Millis;
use crate::element::Element;
use crate::ids::{RequesterId, TaskId};
use crate::message::{MAX_TASKS, Message, Outgoing, Peer, Reading};
use crate::task::Task;
use alloc::vec::Vec;

/// How long readings wait for the requester of a task that is over.
const WAIT_AFTER_END: Millis = 86_400_000;

impl Host {
    /// How many readings of the element at that moment the tasks want in a period: 0 when none does.
    pub(super) fn wanted(&self, element: &Element, at: Millis) -> u16 {
        let tasks = self.tasks.values().map(|wish| &wish.task);
        let wanting = tasks.filter(|task| task.wants(element.property, element.cell, at));
        wanting.map(|task| task.wanted).max().unwrap_or(0)
    }

    /// Has any task that wants it room for another reading?
    pub(super) fn has_room_for(&self, element: &Element, at: Millis) -> bool {
        let Element { property, cell } = *element;
        let mut wanting = self.tasks.iter().filter(|(_, wish)| wish.task.wants(property, cell, at));
        wanting.any(|(&id, _)| self.has_room_in(id))
    }

    fn has_room_in(&self, task: TaskId) -> bool {
        let all = self.config.limits.pending as usize;
        let share = all / self.tasks.len().max(1);
        self.outbox.pending() < all && self.outbox.pending_of(task) < share.max(1)
    }

    /// Drops what waits for a task that is over, if there is no room and any such.
    pub(super) fn make_room(&mut self) {
        if self.outbox.pending() < self.config.limits.pending as usize {
            return;
        }
        let over = self.outbox.tasks().find(|id| !self.tasks.contains_key(id));
        if let Some(over) = over {
            self.counts.undelivered += self.outbox.pending_of(over) as u64;
            self.outbox.drop_task(over);
        }
    }

    pub(super) fn deliver_to_tasks(&mut self, reading: &Reading, at: Millis) {
        let Element { property, cell } = reading.element;
        for (&id, Wish { requester, task, .. }) in &self.tasks {
            if !task.wants(property, cell, at) {
                continue;
            }
            if self.has_room_in(id) {
                self.outbox.add(id, *requester, *reading);
            } else {
                self.counts.undelivered += 1;
            }
        }
        self.values.entry(property).or_default().add(reading.value);
    }

    /// A new task (Algorithm 4), or one that is sent again.
    pub(super) fn take_task(
        &mut self,
        requester: RequesterId,
        task: &Task,
        out: &mut Vec<Outgoing>,
    ) -> Handled {
        let known = self.tasks.get(&task.id);
        if known.is_some_and(|known| known.requester == requester && known.task == *task) {
            // Its requester is there again, or another coordinator has learnt of it.
            let book = self.book;
            self.tasks.get_mut(&task.id).into_iter().for_each(|known| known.book = book);
            self.outbox.hurry(task.id, self.now, self.config.resend_after);
            return Handled::Done;
        }
        let room = known.is_some()
            || self.tasks.len() < (self.config.limits.tasks as usize).min(MAX_TASKS);
        let taken = known.is_some_and(|known| known.requester != requester);
        if task.check(self.now).is_err() || !task.area.touches(self.square) || taken {
            return Handled::Refused(Refusal::Task);
        }
        if !room {
            return Handled::Refused(Refusal::TooManyTasks);
        }
        let wish = Wish { requester, task: task.clone(), book: self.book };
        self.tasks.insert(task.id, wish);
        let (now, workers) = (self.now, core::mem::take(&mut self.workers));
        for (&worker, known) in workers.iter().filter(|(_, known)| !known.away) {
            if task.suits(&known.properties, known.cell, now) {
                self.assign(worker, known.cell, &known.properties, None, out);
            }
        }
        self.workers = workers;
        Handled::Done
    }

    /// The coordinator names all tasks in its book. Others that were in it have ended meanwhile, and what was kept for
    /// them waits for its requesters. Those of another book stay: a coordinator that begins without its state knows
    /// nothing of them until their requesters post them again.
    pub fn keep_tasks(&mut self, book: u64, of: &[(RequesterId, Task)]) {
        self.book = book;
        let is_there = |id: &TaskId| of.iter().any(|(_, task)| task.id == *id);
        self.tasks.retain(|id, wish| wish.book != book || is_there(id));
    }

    /// Ends a task: its readings are no longer wanted, not even those that wait.
    pub(super) fn withdraw(&mut self, id: TaskId, out: &mut Vec<Outgoing>) {
        self.outbox.drop_task(id);
        let Some(Wish { task, .. }) = self.tasks.remove(&id) else { return };
        for (&cell, state) in &self.cells {
            if state.present > 0 && task.area.touches_km(cell) {
                out.push(Outgoing {
                    to: Peer::Cell(cell),
                    message: Message::Withdraw { task: id },
                });
            }
        }
    }

    /// Drops what waits for requesters who did not come back in a day after the end of their task.
    pub(super) fn clean_outbox(&mut self) {
        let over: Vec<TaskId> =
            self.outbox.tasks().filter(|id| !self.tasks.contains_key(id)).collect();
        self.ended.retain(|id, _| over.contains(id));
        for id in over {
            let since = *self.ended.entry(id).or_insert(self.now);
            if self.now.saturating_sub(since) >= WAIT_AFTER_END {
                self.counts.undelivered += self.outbox.pending_of(id) as u64;
                self.outbox.drop_task(id);
            }
        }
    }
}
