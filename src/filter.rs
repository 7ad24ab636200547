//! Verdicts, and the traits that every structure keeps.

use crate::codec::{Reader, Writer};
use crate::{Digest, MergeError, SnapshotError, Tick, Window};

/// What a filter says of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Verdict {
    /// Not seen within the window: certain.
    Fresh,
    /// Seen within the window: certain but for the false positive rate.
    Duplicate,
}

impl Verdict {
    /// Is it [`Verdict::Duplicate`]?
    pub const fn is_duplicate(self) -> bool {
        matches!(self, Self::Duplicate)
    }
}

/// What became of keys beyond the planned capacity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overload {
    /// How often the filter grew.
    pub grown: u64,
    /// Keys forgotten before their time, to make room: duplicates of them may pass.
    pub forgotten: u64,
    /// Keys judged correctly but not remembered, for lack of room: duplicates of them may pass.
    pub refused: u64,
}

impl Overload {
    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            grown: self.grown.saturating_add(other.grown),
            forgotten: self.forgotten.saturating_add(other.forgotten),
            refused: self.refused.saturating_add(other.refused),
        }
    }

    pub(crate) fn write(self, out: &mut Writer<'_>) {
        [self.grown, self.forgotten, self.refused].into_iter().for_each(|count| out.u64(count));
    }

    pub(crate) fn read(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        Ok(Self { grown: input.count()?, forgotten: input.count()?, refused: input.count()? })
    }

    /// Was the filter ever fuller than planned?
    pub const fn any(self) -> bool {
        self.grown > 0 || self.forgotten > 0 || self.refused > 0
    }
}

/// Traits that only the library implements, so that they may get further methods.
pub(crate) mod sealed {
    /// What they all require.
    pub trait Sealed {}
}

/// A set of digests that answers with a bounded share of false positives.
///
/// Sealed: implemented by the library alone.
pub trait Filter: sealed::Sealed {
    /// Was this key seen within the window that ends now? Never `false` for one that was.
    ///
    /// Where arrivals may be late ([`Spec::lateness`](crate::Spec::lateness)) `now` may be behind the newest
    /// moment, and sightings up to a window after it count too.
    fn contains(&self, digest: Digest, now: Tick) -> bool;

    /// [`Filter::contains`] for many keys at one moment, with the memory accesses of later ones begun
    /// early: where the filter is larger than the cache it takes half the time or less.
    ///
    /// Goes as far as the shorter of the two slices.
    fn contains_batch(&self, digests: &[Digest], now: Tick, found: &mut [bool]) {
        for (&digest, found) in digests.iter().zip(found) {
            *found = self.contains(digest, now);
        }
    }

    /// The false positive rate promised at the planned capacity.
    fn fpr(&self) -> f64;

    /// The false positive rate estimated from the present fill. It exceeds [`Filter::fpr`] when
    /// the structure is fuller than planned.
    fn estimated_fpr(&self) -> f64;

    /// Share of the cells in use, 0 to 1: counted or sampled, as the structure says.
    fn fill(&self) -> f64;

    /// Bytes allocated.
    fn memory(&self) -> usize;
}

/// A filter whose keys age.
pub trait WindowFilter: Filter {
    /// Marks the key as seen now, whatever was known of it, and counts as no arrival. A moment that is
    /// further behind the newest than the lateness is taken for the oldest allowed.
    ///
    /// For callers that forward a record between lookup and insert.
    fn remember(&mut self, digest: Digest, now: Tick);

    /// One arrival: query, then advance, then insert (or renew, as the filter's renewal says). A moment
    /// that is further behind the newest than the lateness is judged, and remembered, as the oldest allowed:
    /// callers that have another use for such arrivals compare with the newest moment themselves.
    fn observe(&mut self, digest: Digest, now: Tick) -> Verdict;

    /// [`WindowFilter::observe`] for many arrivals in order, with the memory accesses of later
    /// ones begun early. Same verdicts as one by one.
    ///
    /// Goes as far as the shortest of the three slices.
    fn observe_batch(&mut self, digests: &[Digest], now: &[Tick], verdicts: &mut [Verdict]) {
        for ((&digest, &now), verdict) in digests.iter().zip(now).zip(verdicts) {
            *verdict = self.observe(digest, now);
        }
    }

    /// Lets time pass without an arrival. An earlier moment than the newest seen changes nothing.
    fn advance(&mut self, now: Tick);

    /// The window.
    fn window(&self) -> Window;

    /// How much longer than the window a key may still be reported, in ticks or arrivals: before an
    /// arrival and, where they may be late, after it.
    fn slack(&self) -> u64;
}

/// When a key was last seen, as far as a filter knows: an interval of ticks, or of arrivals in a
/// count window, both ends included.
///
/// Where arrivals may be late, that is the latest sighting within the window around the question, or, for
/// questions behind the newest moment, one of its slack ahead.
///
/// A key that was seen within the window was last seen at or before `to`, and at or after `from`.
/// For another, which the filter takes for one that was seen, it says nothing: that happens with
/// the filter's false positive rate. In a window of slots it happens as rarely that a key is taken
/// for another one that was seen later, and the interval is the other one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Seen {
    /// The earliest it can have been.
    pub from: Tick,
    /// The latest it can have been.
    pub to: Tick,
}

/// A filter that knows the ages of its keys.
pub trait LastSeen: WindowFilter {
    /// [`Filter::contains`] for a window of the last `within` ticks or arrivals; a longer one than
    /// the filter's own is the filter's own. No false negatives; at most twice the slack, as a window
    /// that is no whole number of grains is rounded up.
    ///
    /// Where arrivals may be late it is the window's part before `now` that is shorter. After it, the whole
    /// window counts, and so does what lies between two sightings of a key no further apart than two
    /// windows: those between them are not kept.
    fn contains_within(&self, digest: Digest, within: u64, now: Tick) -> bool;

    /// When the key was last seen. `None`, for certain, where not within the window.
    fn last_seen(&self, digest: Digest, now: Tick) -> Option<Seen>;
}

/// A filter that can take over all that another of the same shape and seed remembers.
///
/// Afterwards it finds every key that either found. It holds the keys of both, so its false positive
/// rate rises as if all of them had been observed by it.
///
/// Sealed: implemented by the library alone.
pub trait Merge: sealed::Sealed {
    /// Takes over what the other remembers.
    ///
    /// # Errors
    /// [`MergeError`] says why the two do not go together; then nothing has changed.
    fn merge(&mut self, other: &Self) -> Result<(), MergeError>;
}
