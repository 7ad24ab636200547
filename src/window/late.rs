//! Moments out of order: where a key is judged, and which of its sightings are kept.
//!
//! `docs/late.md` has the law, the proofs and the costs. In short, with moments in grains, a window of `w`
//! grains, a lateness of `l`, and so a retention of `w + l`:
//!
//! - `l <= w`: the newest sighting `n` of a key is enough. It is at most `w` ahead of any arrival `t`, so
//!   `|t - n| <= w` exactly when `n >= t - w`; and if `n < t - w`, so are all others.
//! - `l > w`: time is cut into blocks of `2w + 1` grains, and a key is in each a key of its own, of which the
//!   first sighting `a` and the last one `b` are kept. Whatever lies within `w` of one between them lies
//!   within `w` of `a` or of `b`: below `a` and above `b` those are nearer, and in between one of them is at most
//!   `(b - a) / 2 <= w` away. `[t - w, t + w]` lies in at most two blocks.
//! - A cell's interval holds all sightings that set it until it expires, and then all of them have expired.

use crate::codec::{Reader, Writer};
use crate::digest::mix;
use crate::{Digest, SnapshotError, Tick};
use core::ops::RangeInclusive;

/// Why a structure takes no late arrivals, and which do.
pub(crate) const IN_ORDER: &str = "it judges arrivals in the order they come in, so it takes no lateness; `aged-table`, `aged-buckets` and `interval-bloom` do";

/// How a window of time takes arrivals that lie up to a lateness behind the newest moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Late {
    /// The most ticks that an arrival lies behind the newest moment.
    lateness: u64,
    /// Ticks that count as one moment.
    grain: u64,
    /// Grains that make up the window.
    window: u64,
    /// Grains of a block; 0 where the newest sighting of a key is enough.
    block: u64,
}

impl Late {
    /// For a window of so many ticks. `None` where arrivals come in order.
    pub(crate) fn new(span: u64, grain: u64, lateness: u64) -> Option<Self> {
        let window = span.div_ceil(grain);
        let block = if lateness <= span { 0 } else { 2 * window + 1 };
        (lateness > 0).then_some(Self { lateness, grain, window, block })
    }

    /// Entries to make room for, per key of the capacity.
    ///
    /// With blocks: two for each of the keys that come and go (a window of them takes twice the capacity
    /// every window), or for keys that stay two per block and one for the block that begins, whichever
    /// are more. A mixture of both kinds takes no more than the larger of the two.
    pub(crate) fn entries_per_key(span: u64, lateness: u64, slack: u64) -> f64 {
        let windows = 1.0 + (lateness as f64 + slack as f64) / span as f64;
        if lateness <= span {
            return windows;
        }
        (2.0 * windows).max(2.0 * libm::ceil(windows / 2.0) + 1.0)
    }

    /// The same for cells, which keep a block's sightings as one.
    pub(crate) fn marks_per_key(span: u64, lateness: u64, slack: u64) -> f64 {
        let windows = 1.0 + (lateness as f64 + slack as f64) / span as f64;
        if lateness <= span {
            return windows;
        }
        windows.max(libm::ceil(windows / 2.0) + 1.0)
    }

    /// Is the newest sighting of a key all that is kept of it?
    #[inline]
    pub(crate) fn newest_only(&self) -> bool {
        self.block == 0
    }

    /// The tick at which an arrival is judged: its own, or the oldest there may be.
    #[inline]
    pub(crate) fn judged(&self, at: Tick, newest: Tick) -> Tick {
        Tick(at.0.max(newest.0.saturating_sub(self.lateness)))
    }

    /// The grain that a tick lies in.
    #[inline]
    pub(crate) fn grain_of(&self, at: Tick) -> u64 {
        at.0 / self.grain
    }

    /// The grain at which an arrival is judged.
    #[inline]
    pub(crate) fn moment(&self, at: Tick, newest: Tick) -> u64 {
        self.grain_of(self.judged(at, newest))
    }

    /// Grains that make up the window.
    #[inline]
    pub(crate) fn window(&self) -> u64 {
        self.window
    }

    /// The moments within the window of one, but no more than so many ticks behind it.
    #[inline]
    pub(crate) fn around(&self, moment: u64, within: u64) -> RangeInclusive<u64> {
        let behind = within.div_ceil(self.grain).min(self.window);
        moment.saturating_sub(behind)..=moment.saturating_add(self.window)
    }

    /// The block that a moment lies in.
    #[inline]
    pub(crate) fn block_of(&self, moment: u64) -> u64 {
        moment.checked_div(self.block).unwrap_or(0)
    }

    /// The blocks that moments lie in: two at most, where they are those around one.
    #[inline]
    pub(crate) fn blocks(&self, moments: &RangeInclusive<u64>) -> RangeInclusive<u64> {
        self.block_of(*moments.start())..=self.block_of(*moments.end())
    }

    /// Those of some moments that lie in a block.
    pub(crate) fn part_of(&self, block: u64, moments: &RangeInclusive<u64>) -> RangeInclusive<u64> {
        if self.block == 0 {
            return moments.clone();
        }
        let first = block.saturating_mul(self.block);
        let last = first.saturating_add(self.block - 1);
        first.max(*moments.start())..=last.min(*moments.end())
    }

    /// The key that a key is in a block.
    #[inline]
    pub(crate) fn key(&self, digest: Digest, block: u64) -> Digest {
        if self.block == 0 {
            return digest;
        }
        let place = mix(digest.hi().wrapping_add((block + 1).wrapping_mul(STEP)));
        Digest::new(place, digest.lo())
    }
}

/// What the version of a snapshot has in addition to 1 if it says how late arrivals may come. Others have no place for it.
pub(crate) const VERSION: u16 = 1;

/// Writes how late arrivals may come, if they may: in a snapshot whose version has [`VERSION`].
pub(crate) fn write(lateness: u64, out: &mut Writer<'_>) {
    if lateness > 0 {
        out.u64(lateness);
    }
}

/// Reads what [`write()`] has written; 0 from snapshots of before.
pub(crate) fn read(input: &mut Reader<'_>) -> Result<u64, SnapshotError> {
    if (input.version() - 1) & VERSION == 0 {
        return Ok(0);
    }
    // What a version without it can say is not said in another way.
    let lateness = input.u64()?;
    (lateness > 0).then_some(lateness).ok_or(SnapshotError::Invalid("a lateness of nothing"))
}

/// From one block to the next: odd, so that no two have the same. The golden ratio's.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
