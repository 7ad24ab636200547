//! A reading that a worker sends (Algorithm 3).

use super::{Handled, Host, Receipt, Refusal};
use crate::Millis;
use crate::cell::KmCell;
use crate::filter::{Share, Stamp};
use crate::ids::WorkerId;
use crate::message::{Message, Outgoing, Peer, Reading};
use crate::rules::Rules;
use alloc::vec::Vec;

/// A reading that is older than this when it is handled was buffered, or waited at the broker: it belongs to the period of
/// its own time. What is younger belongs to the present one, as clocks differ a little.
const DELAYED: Millis = 60_000;
/// Elements of past periods that a host remembers, as a multiple of those of a cell at present.
const PAST: usize = 100;

/// [`Message::Submit`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Submission {
    pub(super) worker: WorkerId,
    pub(super) sequence: u64,
    pub(super) sent: Millis,
    /// The state of the filter by which it was decided.
    pub(super) known: Stamp,
    pub(super) refresh: bool,
    pub(super) reading: Reading,
}

impl Host {
    /// A submission: decides what becomes of it, once, and notes that for its worker.
    pub(super) fn submit(&mut self, submission: &Submission, out: &mut Vec<Outgoing>) -> Handled {
        let &Submission { worker, sequence, .. } = submission;
        let most = self.config.limits.workers;
        if let Some(handled) =
            self.lives.arrive(worker, sequence, (self.now, most), self.config.max_delay)
        {
            if handled == Handled::Reading(Receipt::Duplicate) {
                // It is there, and has nothing to be told again.
                let _ = self.meet(worker, &submission.reading);
            }
            return handled;
        }
        let handled = self.judge(submission, out);
        self.lives.note(worker, sequence, handled);
        handled
    }

    /// Notes a submission that was refused after the state was saved, as it was then: it may come again.
    pub fn replay_refusal(&mut self, now: Millis, message: &Message, refusal: Refusal) {
        let Message::Submit { worker, sequence, .. } = *message else { return };
        self.advance(now, &mut Vec::new());
        self.lives.admit(worker, sequence);
        if self.lives.arrive(worker, sequence, (self.now, u32::MAX), Millis::MAX).is_none() {
            let handled = Handled::Refused(refusal);
            self.lives.note(worker, sequence, handled);
            self.counts.note(handled);
        }
    }

    fn judge(&mut self, submission: &Submission, out: &mut Vec<Outgoing>) -> Handled {
        let &Submission { worker, sent, known, refresh, reading, .. } = submission;
        let (now, cell) = (self.now, reading.km());
        if cell.square() != self.square {
            return Handled::Refused(Refusal::ForeignCell);
        }
        if sent.max(reading.time) > now.saturating_add(self.config.max_skew) {
            return Handled::Refused(Refusal::Future);
        }
        let is_old = sent.saturating_sub(reading.time) > self.config.max_age;
        if is_old || now.saturating_sub(sent) > self.config.max_delay {
            return Handled::Refused(Refusal::Old);
        }
        let past = self.past_period(reading.time);
        let at = if past.is_some() { reading.time } else { now };
        let wanted = self.wanted(&reading.element, at);
        if wanted == 0 {
            return Handled::Refused(Refusal::NoTask);
        }
        if !self.meet(worker, &reading) {
            return Handled::Refused(Refusal::TooManyWorkers);
        }
        if let Some(period) = past {
            return self.keep_past(period, &reading, wanted);
        }
        let (rules, config) = (self.config.rules, self.config);
        let digest = reading.element.digest(Rules::salt(self.epoch));
        let grain = rules.grain(now);
        let state = self.cell(cell);
        state.active = true;
        let positive = state.filter.contains(digest, grain);
        let enough = state.kept(&reading.element, &rules, grain) >= u32::from(wanted);
        let look = refresh || config.second_look;
        if positive && (enough || !look) {
            if let Some(share) = self.update_for(cell, known) {
                let message = Message::Update { cell, share };
                out.push(Outgoing { to: Peer::Worker(worker), message });
            }
            return Handled::Reading(if enough { Receipt::Redundant } else { Receipt::Lost });
        }
        self.make_room();
        if !self.has_room_for(&reading.element, at) {
            return Handled::Refused(Refusal::Full);
        }
        let most = (wanted, config.limits.elements);
        let (rules, past) = (&rules, &mut self.past);
        let Some(state) = self.cells.get_mut(&cell) else {
            return Handled::Refused(Refusal::Full);
        };
        let Some(first) = state.keep(reading.element, digest, most, (rules, grain), past) else {
            return Handled::Refused(Refusal::TooManyElements);
        };
        if let Some(chance) = first {
            self.counts.expected_lost += chance / (1.0 - chance).max(1e-9);
        }
        self.deliver_to_tasks(&reading, at);
        Handled::Reading(if positive { Receipt::Recovered } else { Receipt::Kept })
    }

    /// Notes who sent a reading: a host that lost its state still knows what to do with it. `false` when there is no
    /// room for another worker.
    fn meet(&mut self, worker: WorkerId, reading: &Reading) -> bool {
        let known_as = self.workers.get(&worker);
        if known_as.is_none_or(|known| known.away) {
            let announced = known_as.map(|known| known.properties.clone());
            let properties = announced.unwrap_or_else(|| alloc::vec![reading.element.property]);
            if !self.enter(worker, reading.km(), &properties) {
                return false;
            }
        }
        let now = self.now;
        self.workers.get_mut(&worker).into_iter().for_each(|known| known.heard = now);
        true
    }

    /// The period of a moment, if it has ended: of a reading that was buffered, or waited at the broker.
    fn past_period(&self, time: Millis) -> Option<u64> {
        let (rules, now) = (&self.config.rules, self.now);
        let is_delayed = now.saturating_sub(time) > DELAYED;
        (is_delayed && rules.is_over(time, now)).then(|| rules.period(time))
    }

    /// The oldest period of which any reading is taken still.
    pub(super) fn oldest_period(&self) -> u64 {
        let reach = self.config.max_age.saturating_add(self.config.max_delay);
        if reach == 0 {
            return u64::MAX;
        }
        self.config.rules.period(self.now.saturating_sub(reach))
    }

    /// A reading of a period that is over: kept if too few were kept in it. Nobody's filter says so any more.
    fn keep_past(&mut self, period: u64, reading: &Reading, wanted: u16) -> Handled {
        let (element, rules) = (reading.element, self.config.rules);
        let most = self.config.limits.elements as usize * PAST;
        let present = self.cells.get(&reading.km());
        let present = present.map_or(0, |cell| cell.kept_in(&element, period, &rules));
        let kept = self.past.count(period, &element).saturating_add(present);
        if kept >= u32::from(wanted) {
            return Handled::Reading(Receipt::Redundant);
        }
        self.make_room();
        if !self.has_room_for(&element, reading.time) {
            return Handled::Refused(Refusal::Full);
        }
        if self.past.is_full_for(period, &element, most) {
            return Handled::Refused(Refusal::TooManyElements);
        }
        self.past.add(period, element, 1);
        self.deliver_to_tasks(reading, reading.time);
        Handled::Reading(Receipt::Kept)
    }

    /// The filter for a worker that sent something redundant; none when it knows all of it.
    fn update_for(&mut self, cell: KmCell, known: Stamp) -> Option<Share> {
        let mut state = self.cells.remove(&cell)?;
        let stamp = self.stamp_of(&state);
        let share = (known != stamp).then(|| {
            let known = self.config.deltas.then_some(known);
            state.share(stamp, known, &self.config.rules, self.now, self.config.names)
        });
        self.cells.insert(cell, state);
        share
    }
}
