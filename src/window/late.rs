//! Moments out of order: where a key is judged, and which of its sightings are kept.
//!
//! # The law
//! `W` is the window, `L` the lateness, `c` the newest moment, `t >= c - L` that of an arrival. It is a
//! duplicate exactly when a sighting `s` of its key that arrived earlier has `|t - s| <= W`. Under
//! [`Renewal::Always`](crate::Renewal::Always) every arrival is a sighting, under
//! [`Renewal::OnFresh`](crate::Renewal::OnFresh) each that was fresh.
//!
//! # In grains
//! A moment is kept as its grain, `m = floor(t / g)`, and the window as `w = ceil(W / g)` grains. From
//! `|t - s| <= W` follows `|m(t) - m(s)| <= w`, so judging by grains misses nothing; and from
//! `|m(t) - m(s)| <= w` follows `|t - s| <= (w + 1)·g - 1 = W + slack`: the slack acts on both sides of
//! `t` alike, behind it and ahead of it. An arrival at `t >= c - L` asks for sightings at
//! `m(t) - w` or later, which are at most `R = w + ceil(L / g)` grains old: so long every one is kept.
//! From here on all moments are whole grains.
//!
//! # L <= W: the newest sighting is enough
//! Let `n` be a key's newest sighting. `n <= c <= t + L <= t + W`, so `|t - n| <= W` exactly when
//! `n >= t - W`. If `n < t - W`, all sightings are, as none is later. So keeping the newest alone answers
//! as keeping all does, under both renewals, and what renews a key is `max(n, t)`.
//!
//! # L > W: the first and the last sighting of every block
//! Time is cut into blocks of `2w + 1` grains. In each block a key is a key of its own, of which the
//! first sighting `a` and the last one `b` are kept; `b - a <= 2w`. Let `s` be another of its sightings
//! in that block, `a < s < b`, and `|t - s| <= w`. If `t < a`, then `a - t < s - t <= w`. If `t > b`, then
//! `t - b < t - s <= w`. Otherwise one of `t - a` and `b - t` is at most `(b - a) / 2 <= w`. So `a` or `b`
//! answers wherever `s` would, and as both are sightings they answer nowhere else. `[t - w, t + w]` has
//! `2w + 1` grains and lies in two blocks at most, so a question asks for two keys.
//!
//! The `R + 1` grains of the retention lie in at most `ceil(R / (2w + 1)) + 1` blocks, so a key has at
//! most `2·ceil(R / (2w + 1)) + 2` entries, which is less than `L / W + 5`. Each block's have places of
//! their own in the table: a key that is there all the time does not want all of its entries in the same
//! two lines.
//!
//! # Bloom cells
//! A cell's interval is extended to each sighting, so it holds all of them until it expires, and it
//! expires when its end is more than `R` grains old, as then all of them are. The intervals of a key's
//! cells therefore have every sighting in common. In one block (all of time, where `L <= W`) they say no
//! more of a key that is alone than its own first and last sighting, which the proofs above are about.

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

    /// Entries that a key of the capacity takes, for a window with so many grains of retention.
    ///
    /// With blocks: two for each of the keys that come and go (a window of them takes twice the capacity
    /// every window), or for keys that stay two a block and one for the block that begins, whichever
    /// are more. A mixture of both kinds takes no more than the larger of the two.
    pub(crate) fn entries_a_key(span: u64, lateness: u64, slack: u64) -> f64 {
        let windows = 1.0 + (lateness as f64 + slack as f64) / span as f64;
        if lateness <= span {
            return windows;
        }
        (2.0 * windows).max(2.0 * libm::ceil(windows / 2.0) + 1.0)
    }

    /// The same for cells, which keep a block's sightings as one.
    pub(crate) fn marks_a_key(span: u64, lateness: u64, slack: u64) -> f64 {
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

    /// The grain at which an arrival is judged: its own, or that of the oldest moment there may be.
    #[inline]
    pub(crate) fn moment(&self, at: Tick, newest: Tick) -> u64 {
        at.0.max(newest.0.saturating_sub(self.lateness)) / self.grain
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
        if self.block == 0 { 0 } else { moment / self.block }
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

/// The version of snapshots that say how late arrivals may come. Others have no place for it.
pub(crate) const VERSION: u16 = 2;

/// Writes how late arrivals may come, if they may: in a snapshot of [`VERSION`].
pub(crate) fn write(lateness: u64, out: &mut Writer<'_>) {
    if lateness > 0 {
        out.u64(lateness);
    }
}

/// Reads what [`write()`] has written; 0 from snapshots of before.
pub(crate) fn read(input: &mut Reader<'_>) -> Result<u64, SnapshotError> {
    if input.version() < VERSION {
        return Ok(0);
    }
    // What an older version can say is not said in another way.
    let lateness = input.u64()?;
    (lateness > 0).then_some(lateness).ok_or(SnapshotError::Invalid("a lateness of nothing"))
}

/// From one block to the next: odd, so that no two have the same. The golden ratio's.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
