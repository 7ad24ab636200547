//! What each life of a worker has submitted, and what became of it.

use super::{Handled, Receipt};
use crate::Millis;
use crate::cell::Square;
use crate::ids::WorkerId;
use crate::message::{Message, Outgoing, Peer};
use crate::refusal::Refusal;
use crate::tally::{Tally, life_of};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The lives of workers that the host remembers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Lives {
    pub(super) all: BTreeMap<(WorkerId, u32), Life>,
    /// Those whose tally has changed since their worker was told.
    pub(super) untold: Vec<(WorkerId, u32)>,
    /// Those that are to be told again, and when: a worker whose connection is lost does not hear it.
    pub(super) again: Vec<(Millis, (WorkerId, u32))>,
    /// None of them was heard of last before this.
    pub(super) oldest: Millis,
}

/// How long after it was told a worker is told the same again, the first time and the second.
const AGAIN: [Millis; 2] = [60_000, 600_000];

/// A life of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Life {
    pub(super) heard: Millis,
    pub(super) sequences: Sequences,
    pub(super) tally: Tally,
    /// Its tally has changed since the worker was told.
    pub(super) is_untold: bool,
    /// How often it was told since it has changed.
    pub(super) told: usize,
}

/// The submissions of a life that arrived: the highest, and which of the 64 up to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sequences {
    pub(super) highest: u64,
    pub(super) seen: u64,
}

impl Sequences {
    /// Notes a number. `false` for one that was there before, or that is too old to be told.
    fn note(&mut self, sequence: u64) -> bool {
        if self.seen == 0 || sequence > self.highest {
            let step = sequence.saturating_sub(self.highest);
            self.seen = if self.seen == 0 || step >= 64 { 1 } else { self.seen << step | 1 };
            self.highest = sequence;
            return true;
        }
        let back = self.highest - sequence;
        let known = back >= 64 || self.seen >> back & 1 == 1;
        if !known {
            self.seen |= 1 << back;
        }
        !known
    }
}

impl Lives {
    /// Notes that a submission arrives. What becomes of it, where that is clear already: it arrived before, or there
    /// is no room for another life.
    pub(super) fn arrive(
        &mut self,
        worker: WorkerId,
        sequence: u64,
        (now, most): (Millis, u32),
        max_delay: Millis,
    ) -> Option<Handled> {
        let key = (worker, life_of(sequence));
        if !self.all.contains_key(&key) && self.all.len() >= most as usize {
            self.forget(now.saturating_sub(max_delay));
            if self.all.len() >= most as usize {
                return Some(Handled::Refused(Refusal::TooManyWorkers));
            }
        }
        if self.all.is_empty() {
            self.oldest = now;
        }
        let life = self.all.entry(key).or_default();
        life.heard = now;
        if life.sequences.note(sequence) {
            return None;
        }
        self.note(worker, sequence, Handled::Reading(Receipt::Duplicate));
        Some(Handled::Reading(Receipt::Duplicate))
    }

    /// A submission that is known not to have arrived before counts as new.
    pub(super) fn admit(&mut self, worker: WorkerId, sequence: u64) {
        if let Some(life) = self.all.get_mut(&(worker, life_of(sequence)))
            && !{ life.sequences }.note(sequence)
        {
            life.sequences = Sequences::default();
        }
    }

    /// Notes what became of a submission that has arrived.
    pub(super) fn note(&mut self, worker: WorkerId, sequence: u64, handled: Handled) {
        let key = (worker, life_of(sequence));
        let Some(life) = self.all.get_mut(&key) else { return };
        let tally = &mut life.tally;
        match handled {
            Handled::Reading(Receipt::Kept | Receipt::Recovered) => tally.kept += 1,
            Handled::Reading(Receipt::Redundant) => tally.redundant += 1,
            Handled::Reading(Receipt::Lost) => tally.lost += 1,
            Handled::Reading(Receipt::Duplicate) => tally.repeated += 1,
            Handled::Refused(refusal) => tally.refuse(refusal),
            Handled::Done => return,
        }
        life.told = 0;
        if !core::mem::replace(&mut life.is_untold, true) {
            self.untold.push(key);
        }
    }

    /// Tells workers what has become of what they sent, where that is news.
    pub(super) fn tell(&mut self, now: Millis, host: (Square, Millis), out: &mut Vec<Outgoing>) {
        let due = self.again.iter().filter(|(when, _)| now >= *when).map(|&(_, key)| key);
        for key in due.collect::<Vec<_>>() {
            if let Some(life) = self.all.get_mut(&key)
                && !core::mem::replace(&mut life.is_untold, true)
            {
                self.untold.push(key);
            }
        }
        self.again.retain(|(when, _)| now < *when);
        for key in core::mem::take(&mut self.untold) {
            self.tell_one(key, host, out);
            let Some(life) = self.all.get_mut(&key) else { continue };
            let wait = AGAIN.get(life.told);
            life.told += 1;
            self.again.extend(wait.map(|wait| (now.saturating_add(*wait), key)));
        }
    }

    /// Tells one worker, wherever that is news.
    pub(super) fn tell_worker(
        &mut self,
        worker: WorkerId,
        host: (Square, Millis),
        out: &mut Vec<Outgoing>,
    ) {
        let lives = self.all.range((worker, 0)..=(worker, u32::MAX));
        let keys: Vec<(WorkerId, u32)> = lives.map(|(&key, _)| key).collect();
        keys.into_iter().for_each(|key| self.tell_one(key, host, out));
    }

    fn tell_one(
        &mut self,
        key: (WorkerId, u32),
        (square, born): (Square, Millis),
        out: &mut Vec<Outgoing>,
    ) {
        if let Some(life) = self.all.get_mut(&key)
            && core::mem::take(&mut life.is_untold)
        {
            let message = Message::Tally { square, born, life: key.1, tally: life.tally };
            out.push(Outgoing { to: Peer::Worker(key.0), message });
        }
    }

    /// A worker is there again: what it was told meanwhile may not have arrived.
    pub(super) fn say_again_to(&mut self, worker: WorkerId) {
        for (&key, life) in self.all.range_mut((worker, 0)..=(worker, u32::MAX)) {
            if !core::mem::replace(&mut life.is_untold, true) {
                self.untold.push(key);
            }
        }
    }

    /// Workers that were heard of lately may not have been told: the host was away.
    pub(super) fn say_again(&mut self, since: Millis) {
        for (&key, life) in self.all.iter_mut().filter(|(_, life)| life.heard >= since) {
            if !core::mem::replace(&mut life.is_untold, true) {
                self.untold.push(key);
            }
        }
    }

    /// Forgets lives that were not heard of since then: what comes again is refused by then.
    pub(super) fn forget(&mut self, since: Millis) {
        if self.oldest >= since {
            return;
        }
        self.all.retain(|_, life| life.heard >= since);
        self.oldest = self.all.values().map(|life| life.heard).min().unwrap_or(since);
        self.untold.retain(|key| self.all.contains_key(key));
        self.again.retain(|(_, key)| self.all.contains_key(key));
    }

    /// When one of them is to be forgotten, so long after it was heard of.
    pub(super) fn due(&self, keep: Millis) -> Option<Millis> {
        let first = self.oldest.saturating_add(keep).saturating_add(1);
        (!self.all.is_empty()).then_some(first)
    }

    /// The clock was wrong before.
    pub(super) fn correct_clock(&mut self, now: Millis) {
        self.oldest = self.oldest.min(now);
        self.all.values_mut().for_each(|life| life.heard = life.heard.min(now));
        self.again.iter_mut().for_each(|(when, _)| *when = now);
    }
}
