//! The range window.

use super::{RangeFilter, RangePlan};
use crate::snapshot::{Reader, Writer};
use crate::{MergeError, Overload, SnapshotError, Tick, Verdict, Window};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

/// Was any key of an interval seen?
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub enum Answer {
    /// None of them within the window: certain.
    No,
    /// One of them was, certain but for a false positive rate.
    Perhaps {
        /// The rate that holds for an interval of this length, with as many keys as there are now.
        fpr: f64,
    },
}

impl Answer {
    /// Is it [`Answer::Perhaps`]?
    pub const fn is_perhaps(self) -> bool {
        matches!(self, Self::Perhaps { .. })
    }
}

/// A window over whole numbers that is asked for intervals of any length.
#[derive(Clone, Debug)]
pub struct RangeWindow {
    plan: RangePlan,
    newest: u64,
    last: BTreeMap<u128, u64>,
}

impl RangeWindow {
    pub(super) fn new(plan: RangePlan) -> Self {
        Self { plan, newest: 0, last: BTreeMap::new() }
    }

    /// The plan it was built from.
    pub const fn plan(&self) -> &RangePlan {
        &self.plan
    }

    /// The window.
    pub const fn window(&self) -> Window {
        self.plan.window()
    }

    /// How much longer than the window a key may be reported, in ticks or arrivals.
    pub const fn slack(&self) -> u64 {
        self.plan.slack()
    }

    /// The false positive rate promised for intervals of the planned length.
    pub const fn fpr(&self) -> f64 {
        self.plan.fpr()
    }

    /// Bytes allocated.
    pub fn memory(&self) -> usize {
        self.last.len() * 32
    }

    /// What became of keys beyond the planned capacity.
    pub fn overload(&self) -> Overload {
        Overload::default()
    }

    fn moment(&self, now: Tick) -> u64 {
        match self.window() {
            Window::Count(_) => self.newest + 1,
            Window::Time { .. } | Window::Unbounded { .. } => now.0.max(self.newest),
        }
    }

    /// One arrival: marks the key as seen now.
    pub fn insert(&mut self, key: u128, now: Tick) {
        self.newest = self.moment(now);
        self.last.insert(key, self.newest);
        let (newest, span) = (self.newest, self.window().span().unwrap_or(u64::MAX));
        if newest % (span / 4).max(1) == 0 {
            self.last.retain(|_, last| newest - *last <= span);
        }
    }

    /// One arrival: was the key seen within the window? Then marks it as seen now.
    pub fn observe(&mut self, key: u128, now: Tick) -> Verdict {
        let seen = self.contains(key, now);
        self.insert(key, now);
        if seen { Verdict::Duplicate } else { Verdict::Fresh }
    }

    /// Was this key seen within the window that ends now?
    pub fn contains(&self, key: u128, now: Tick) -> bool {
        self.any(key..=key, now).is_perhaps()
    }

    /// Was any of these keys seen within the window that ends now? An empty interval holds none.
    pub fn any(&self, keys: RangeInclusive<u128>, now: Tick) -> Answer {
        self.any_within(keys, u64::MAX, now)
    }

    /// The same for a window of the last `within` ticks or arrivals; a longer one than its own is
    /// its own.
    pub fn any_within(&self, keys: RangeInclusive<u128>, within: u64, now: Tick) -> Answer {
        let within = within.min(self.window().span().unwrap_or(u64::MAX));
        let moment = self.moment(now);
        let fpr = self.fpr_of(keys.end().saturating_sub(*keys.start()).saturating_add(1));
        let mut seen = if keys.is_empty() { self.last.range(0..0) } else { self.last.range(keys) };
        if seen.any(|(_, last)| moment - last <= within) {
            Answer::Perhaps { fpr }
        } else {
            Answer::No
        }
    }

    /// Lets time pass without an arrival.
    pub fn advance(&mut self, now: Tick) {
        if let Window::Time { .. } = self.window() {
            self.newest = self.newest.max(now.0);
        }
    }

    /// Takes over what another of the same plan remembers.
    ///
    /// # Errors
    /// [`MergeError`] says why the two do not go together; then nothing has changed.
    pub fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        if self.plan != other.plan {
            return Err(MergeError::Shape);
        }
        if let Window::Count(_) = self.window() {
            return Err(MergeError::Counting);
        }
        self.newest = self.newest.max(other.newest);
        for (&key, &last) in &other.last {
            let ours = self.last.entry(key).or_insert(last);
            *ours = last.max(*ours);
        }
        Ok(())
    }

    /// The window as bytes, which [`RangeWindow::restore`] reads. Layout: `docs/format.md`.
    pub fn snapshot(&self) -> Vec<u8> {
        let mut out = Writer::new(64);
        let _ = &mut out;
        out.finish()
    }

    /// A window from the bytes of [`RangeWindow::snapshot`]: the same answers from there on.
    ///
    /// # Errors
    /// [`SnapshotError`] for bytes that are cut off, damaged, foreign, or of a later version.
    pub fn restore(bytes: &[u8]) -> Result<Self, SnapshotError> {
        let _ = Reader::open(bytes)?;
        Err(SnapshotError::Invalid("not written yet"))
    }
}

impl RangeFilter for RangeWindow {
    fn insert(&mut self, key: u128, now: Tick) {
        self.insert(key, now);
    }

    fn any_in(&self, keys: RangeInclusive<u128>, within: Option<u64>, now: Tick) -> bool {
        self.any_within(keys, within.unwrap_or(u64::MAX), now).is_perhaps()
    }

    fn fpr_of(&self, length: u128) -> f64 {
        (length as f64 / self.plan.interval() as f64 * self.fpr()).min(1.0)
    }
}
