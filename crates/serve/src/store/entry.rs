//! A filter with a name.

use super::bounded::Scratch;
use super::change::Change;
use super::changes::Changes;
use super::kept::Kept;
use super::numbers::Numbers;
use super::template::{Family, Options, Reach};
use super::{Outcome, Refusal};
use lately::{Digest, Renewal, Seen, Tick};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A moment that never comes.
const NEVER: u64 = u64::MAX;

/// A filter with a name, which one caller at a time may use.
#[derive(Debug)]
pub(crate) struct Entry {
    name: Box<[u8]>,
    /// Its number. That of no other filter, also if one of the same name was dropped.
    id: u64,
    /// Changes before this place of the journal are in it.
    since: u64,
    /// How its keys are spelt, if it is asked for intervals.
    numbers: Option<Numbers>,
    /// When the whole filter is dropped.
    expires: AtomicU64,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    /// Its number. That of no other filter, also if one of the same name was dropped.
    id: u64,
    pub(crate) options: Options,
    pub(crate) filter: Kept,
    pub(crate) counts: Counts,
    changes: Arc<Changes>,
}

/// What was asked of a filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Arrivals that were fresh.
    pub(crate) fresh: u64,
    /// Arrivals that were duplicates.
    pub(crate) duplicates: u64,
    /// Arrivals that found no room.
    pub(crate) refused: u64,
    /// Keys that were only asked for.
    pub(crate) asked: u64,
    /// Keys that were taken out.
    pub(crate) removed: u64,
    /// The last moment at which it was used, in milliseconds.
    pub(crate) last: u64,
}

/// What is known of a filter that was saved.
#[derive(Debug)]
pub(crate) struct SavedEntry {
    pub(crate) id: u64,
    pub(crate) name: Vec<u8>,
    pub(crate) expires: Option<u64>,
    pub(crate) options: Options,
    pub(crate) counts: Counts,
    /// Changes before this place of the journal are in it.
    pub(crate) since: u64,
}

impl Entry {
    pub(crate) fn new(
        id: u64,
        name: &[u8],
        options: Options,
        filter: Kept,
        changes: &Arc<Changes>,
    ) -> Self {
        let counts = Counts::default();
        let name = name.to_vec();
        let saved = SavedEntry { id, name, expires: None, options, counts, since: 0 };
        Self::with(saved, filter, changes)
    }

    /// A filter that was saved.
    pub(crate) fn with(saved: SavedEntry, filter: Kept, changes: &Arc<Changes>) -> Self {
        let SavedEntry { id, name, expires, options, counts, since } = saved;
        let expires = AtomicU64::new(expires.unwrap_or(NEVER));
        let numbers = options.family.numbers();
        let inner = Inner { id, options, filter, counts, changes: Arc::clone(changes) };
        Self { name: name.into(), id, since, numbers, expires, inner: Mutex::new(inner) }
    }

    /// Its number. That of no other filter, also if one of the same name was dropped.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Changes before this place of the journal are in it.
    pub(crate) fn since(&self) -> u64 {
        self.since
    }

    /// How it came to be, for the journal.
    pub(crate) fn creation(&self) -> Change<'_> {
        Change::Created { id: self.id, name: &self.name, options: self.lock().options.clone() }
    }

    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// How its keys are spelt, if it is asked for intervals.
    pub(crate) fn numbers(&self) -> Option<Numbers> {
        self.numbers
    }

    /// Does it move in chunks by the commands of this family?
    pub(crate) fn moves_as(&self, family: Family) -> bool {
        self.lock().options.family.moves_as(family)
    }

    /// When it is dropped, if ever.
    pub(crate) fn expires(&self) -> Option<u64> {
        Some(self.expires.load(Ordering::Relaxed)).filter(|&at| at != NEVER)
    }

    /// Drops it at this moment, or never.
    pub(crate) fn expire(&self, at: Option<u64>) {
        let inner = self.lock();
        self.expires.store(at.unwrap_or(NEVER), Ordering::Relaxed);
        inner.changes.add(&Change::Expires { id: self.id, at });
    }

    pub(crate) fn has_expired(&self, now: u64) -> bool {
        self.expires().is_some_and(|at| at <= now)
    }

    /// Gives back the memory of keys that have expired, unless it is in use.
    pub(crate) fn tidy(&self, now: u64) {
        if let Ok(mut inner) = self.inner.try_lock() {
            inner.filter.tidy(Tick(now));
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Arrivals, all at one moment. Adds an outcome for each.
    pub(crate) fn observe(
        &mut self,
        digests: &[Digest],
        now: u64,
        scratch: &mut Scratch,
        outcomes: &mut Vec<Outcome>,
    ) {
        let from = outcomes.len();
        if self.options.is_fixed() {
            self.observe_fixed(digests, now, scratch, outcomes);
        } else {
            self.filter.observe(digests, Tick(now), scratch, outcomes);
        }
        for outcome in &outcomes[from..] {
            match outcome {
                Outcome::Fresh => self.counts.fresh += 1,
                Outcome::Seen => self.counts.duplicates += 1,
                Outcome::Full | Outcome::NoMemory => self.counts.refused += 1,
            }
        }
        self.counts.last = now;
        if self.changes.are_gathered() {
            self.add_changes(digests, now, &outcomes[from..], scratch);
        }
    }

    /// Adds to the changes what these arrivals have changed: fresh keys; and where a sighting renews a key or
    /// moves a window on, all that were taken.
    fn add_changes(
        &self,
        digests: &[Digest],
        moment: u64,
        outcomes: &[Outcome],
        scratch: &mut Scratch,
    ) {
        let all_count = match self.options.reach {
            Reach::Last(_) => true,
            Reach::Within(_) => self.options.renewal == Renewal::Always,
            Reach::Forever => false,
        };
        let is_change = |outcome: &Outcome| match outcome {
            Outcome::Fresh => true,
            Outcome::Seen => all_count,
            Outcome::Full | Outcome::NoMemory => false,
        };
        let digests = scratch.select(digests, outcomes, is_change);
        if !digests.is_empty() {
            let id = self.id;
            self.changes.add(&match all_count {
                true => Change::Arrived { id, moment, digests },
                false => Change::Marked { id, moment, digests },
            });
        }
    }

    /// Arrivals at a filter that takes exactly its capacity.
    fn observe_fixed(
        &mut self,
        digests: &[Digest],
        now: u64,
        scratch: &mut Scratch,
        outcomes: &mut Vec<Outcome>,
    ) {
        let mut room = self
            .options
            .capacity
            .saturating_sub(self.counts.fresh.saturating_sub(self.counts.removed));
        for digest in digests {
            if room == 0 && !self.filter.contains(*digest, Tick(now)) {
                outcomes.push(Outcome::Full);
                continue;
            }
            self.filter.observe(&[*digest], Tick(now), scratch, outcomes);
            room -= u64::from(room > 0 && outcomes.last() == Some(&Outcome::Fresh));
        }
    }

    /// Marks a key as seen.
    pub(crate) fn remember(&mut self, digest: Digest, at: u64, now: u64) -> Result<(), Refusal> {
        self.counts.last = now;
        let before = self.filter.fresh();
        if !self.filter.remember(digest, Tick(at)) {
            self.counts.refused += 1;
            return Err(Refusal::NoMemory);
        }
        self.counts.fresh += self.filter.fresh() - before;
        self.changes.add(&Change::Marked { id: self.id, moment: at, digests: &[digest] });
        Ok(())
    }

    /// Takes out a key. Was it there?
    pub(crate) fn forget(&mut self, digest: Digest, now: u64) -> Result<bool, Refusal> {
        let is_known = self.filter.forget(digest, Tick(now))?;
        self.counts.last = now;
        if is_known {
            self.counts.removed += 1;
            self.changes.add(&Change::Forgotten { id: self.id, digests: &[digest] });
        }
        Ok(is_known)
    }

    /// Takes out keys again that were taken out before.
    pub(crate) fn forget_again(&mut self, digests: &[Digest]) {
        for digest in digests {
            self.filter.forget_again(*digest);
            self.counts.removed += 1;
        }
    }

    /// Which of the keys were seen within the window.
    pub(crate) fn contains(&mut self, digests: &[Digest], now: u64, found: &mut [bool]) {
        self.filter.contains_batch(digests, Tick(now), found);
        self.asked(digests.len(), now);
    }

    /// Was it seen within a shorter window?
    pub(crate) fn contains_within(&mut self, digest: Digest, within: u64, now: u64) -> bool {
        self.asked(1, now);
        self.filter.contains_within(digest, within, Tick(now))
    }

    /// Was any of these keys seen, within the window or a shorter one? And the probability that this is wrong.
    pub(crate) fn any(
        &mut self,
        keys: RangeInclusive<u128>,
        within: Option<u64>,
        now: u64,
    ) -> Result<(bool, f64), Refusal> {
        let found = self.filter.any(keys, within, Tick(now))?;
        self.asked(1, now);
        Ok(found)
    }

    /// When it was last seen.
    pub(crate) fn last_seen(&mut self, digest: Digest, now: u64) -> Result<Option<Seen>, Refusal> {
        let seen = self.filter.last_seen(digest, Tick(now))?;
        self.asked(1, now);
        Ok(seen)
    }

    fn asked(&mut self, keys: usize, now: u64) {
        self.counts.asked += keys as u64;
        self.counts.last = now;
    }

    /// Keys it can hold now: what `BF.INFO` calls capacity.
    pub(crate) fn capacity(&self) -> u64 {
        let as_planned = self.filter.tables() == 1 && self.filter.overload().grown == 0;
        if as_planned { self.options.capacity } else { self.filter.capacity() }
    }
}
