//! Stamps as they are read: those of the present, and those of cells that the sweep has not come to for long.

/// What stamps say, of cells that are all told from one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct View {
    /// The moment that stamps are told from, as a stamp.
    pub(super) stamp: u64,
    /// How long before the present that is, in grains: 0, but for cells that were not swept for long.
    pub(super) behind: u64,
    /// Stamps are `1..=length`, 0 being "unset".
    pub(super) length: u64,
    /// Grains for which a key is kept: the window's, and those of the lateness.
    pub(super) steps: u64,
    /// The most grains that something live is old: fewer than a window has where all in the oldest ones has expired.
    pub(super) kept: u64,
    /// Where stamps have at most 6 bits, a bit for each that is live; 0 where they have more, or none is.
    pub(super) live: u64,
}

impl View {
    /// Has everything expired, whatever its stamp?
    pub(crate) fn is_past(&self) -> bool {
        self.behind > self.kept
    }

    /// The age of a stamp in grains.
    #[inline]
    pub(crate) fn age(&self, stamp: u64) -> u64 {
        let wrapped = if stamp > self.stamp { self.length } else { 0 };
        self.stamp.wrapping_sub(stamp).wrapping_add(wrapped).saturating_add(self.behind)
    }

    /// Which of these stamps are set and within the window?
    #[inline(always)]
    pub(crate) fn are_live(&self, stamps: [u64; 4]) -> [bool; 4] {
        if self.live != 0 {
            stamps.map(|stamp| self.live >> (stamp & 63) & 1 == 1)
        } else {
            stamps.map(|stamp| self.is_live(stamp))
        }
    }

    /// Is this stamp set and within the window?
    #[inline]
    pub(crate) fn is_live(&self, stamp: u64) -> bool {
        (stamp != 0) & (self.age(stamp) <= self.kept)
    }

    /// Is this stamp set and still within the window so many grains later?
    #[inline]
    pub(crate) fn is_live_later(&self, stamp: u64, later: u64) -> bool {
        (stamp != 0) & self.is_kept_later(self.age(stamp), later)
    }

    /// Is something of that many grains' age still within the window so many grains later?
    #[inline]
    pub(crate) fn is_kept_later(&self, age: u64, later: u64) -> bool {
        // Any tick may be asked about: the sum may be beyond 64 bits.
        (age <= self.kept) & (age.saturating_add(later) <= self.steps)
    }
}
