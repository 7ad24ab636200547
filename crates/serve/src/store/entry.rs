//! A filter with a name.

use super::bounded::{Bounded, Scratch};
use super::template::Options;
use super::{Outcome, Refusal};
use lately::{Digest, Seen, Tick};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A moment that never comes.
const NEVER: u64 = u64::MAX;

/// A filter with a name, which one caller at a time may use.
#[derive(Debug)]
pub(crate) struct Entry {
    name: Box<[u8]>,
    /// When the whole filter is dropped.
    expires: AtomicU64,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) options: Options,
    pub(crate) filter: Bounded,
    pub(crate) counts: Counts,
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
    /// The last moment at which it was used, in milliseconds.
    pub(crate) last: u64,
}

impl Entry {
    pub(crate) fn new(name: &[u8], options: Options, filter: Bounded) -> Self {
        Self::with(name, None, Inner { options, filter, counts: Counts::default() })
    }

    pub(crate) fn with(name: &[u8], expires: Option<u64>, inner: Inner) -> Self {
        let expires = AtomicU64::new(expires.unwrap_or(NEVER));
        Self { name: name.into(), expires, inner: Mutex::new(inner) }
    }

    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// When it is dropped, if ever.
    pub(crate) fn expires(&self) -> Option<u64> {
        Some(self.expires.load(Ordering::Relaxed)).filter(|&at| at != NEVER)
    }

    /// Drops it at this moment, or never.
    pub(crate) fn expire(&self, at: Option<u64>) {
        self.expires.store(at.unwrap_or(NEVER), Ordering::Relaxed);
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
    }

    /// Arrivals at a filter that takes exactly its capacity.
    fn observe_fixed(
        &mut self,
        digests: &[Digest],
        now: u64,
        scratch: &mut Scratch,
        outcomes: &mut Vec<Outcome>,
    ) {
        let mut room = self.options.capacity.saturating_sub(self.counts.fresh);
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
        Ok(())
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

    /// When it was last seen.
    pub(crate) fn last_seen(&mut self, digest: Digest, now: u64) -> Option<Seen> {
        self.asked(1, now);
        self.filter.last_seen(digest, Tick(now))
    }

    fn asked(&mut self, keys: usize, now: u64) {
        self.counts.asked += keys as u64;
        self.counts.last = now;
    }

    /// Keys it can hold now: what `BF.INFO` calls capacity.
    pub(crate) fn capacity(&self) -> u64 {
        let filter = self.filter.filter();
        let as_planned = filter.tables() == 1 && filter.overload().grown == 0;
        if as_planned { self.options.capacity } else { filter.capacity() }
    }
}
