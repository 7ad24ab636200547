//! Workers: who is where, and what they are told about it.

use super::{Handled, Host, Refusal};
use crate::Millis;
use crate::cell::KmCell;
use crate::element::Property;
use crate::filter::Stamp;
use crate::ids::WorkerId;
use crate::message::{MAX_PROPERTIES, Message, Outgoing, Peer};
use crate::task::Task;
use alloc::vec::Vec;

/// A worker that the host knows.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Known {
    pub(super) cell: KmCell,
    pub(super) properties: Vec<Property>,
    pub(super) heard: Millis,
    /// It has said that it leaves, or its connection was lost: it may come back.
    pub(super) away: bool,
}

/// How long a worker that has left is remembered: it may come back.
pub(super) const AWAY: Millis = 600_000;

impl Host {
    /// Workers that are here.
    pub fn workers(&self) -> usize {
        self.workers.values().filter(|known| !known.away).count()
    }

    /// Is the worker here, or remembered?
    pub fn knows(&self, worker: WorkerId) -> bool {
        self.workers.contains_key(&worker)
    }

    /// How long after it was heard of a worker is forgotten.
    pub(super) fn patience(&self, away: bool) -> Millis {
        let timeout = self.config.worker_timeout;
        if away { AWAY.min(timeout) } else { timeout }
    }

    /// Notes that a worker is to be forgotten so long after that moment, and perhaps not heard of before.
    pub(super) fn expect(&mut self, heard: Millis, away: bool) {
        self.all_heard = self.all_heard.min(heard.saturating_add(self.patience(away)));
    }

    pub(super) fn announce(
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
    pub(super) fn enter(
        &mut self,
        worker: WorkerId,
        cell: KmCell,
        properties: &[Property],
    ) -> bool {
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
    pub(super) fn present_in(&mut self, cell: KmCell) {
        self.cell(cell).present += 1;
    }

    /// A worker is no longer here.
    pub(super) fn leave(&mut self, worker: WorkerId) {
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
    pub(super) fn assign(
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

    pub(super) fn forget_silent(&mut self) {
        let (now, timeout, away) = (self.now, self.patience(false), self.patience(true));
        let silence = |known: &Known| now.saturating_sub(known.heard);
        let silent = self.workers.iter().filter(|(_, known)| silence(known) > timeout);
        let silent: Vec<WorkerId> = silent.map(|(&id, _)| id).collect();
        silent.into_iter().for_each(|worker| self.leave(worker));
        self.workers.retain(|_, known| !known.away || silence(known) <= away);
        let last = |known: &Known| known.heard.saturating_add(self.patience(known.away));
        self.all_heard = self.workers.values().map(last).min().unwrap_or(Millis::MAX);
    }
}
