//! How full an aged Bloom filter is, measured instead of counted.

use crate::SnapshotError;
use crate::codec::{Reader, Writer};
use crate::window::Shape;

/// The share of live cells, sampled.
///
/// A key that turns out fresh has looked at `k` cells at random. What it saw costs nothing to know,
/// where counting live cells exactly would need a second sweep at every expiry. It is a biased
/// sample, as a key that saw none but live cells is a duplicate and does not count:
/// [`FillSample::fill`] and [`seen_at`] take that into account.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FillSample {
    /// Average share of live cells that fresh keys saw.
    seen: f64,
    /// Fresh keys looked at, as far as they count.
    samples: u32,
    /// Fresh keys that the average reaches back over.
    reach: u32,
    /// Full, until fresh keys see less than `empty_below`: were it `full_above` too, the sample's
    /// ups and downs would let in key after key.
    full: bool,
    full_above: f64,
    empty_below: f64,
}

/// Fresh keys that the average reaches back over, and so by how many it is late when a table fills
/// up: few enough to cost little room, many enough to be steady.
pub(crate) fn reach(capacity: u64) -> u32 {
    (capacity / 32).clamp(16, 4096) as u32
}

/// Cells that tell the fill here and now: to one part in 64 at half fill.
pub(crate) const LOOKS: usize = 1024;

/// Five standard deviations of the sample at half fill, its worst: an exponential average over
/// `r` keys has the variance of `2·r` independent ones. With few hashes the sample's mean moves
/// less with the fill than its deviation does: hence the last factor.
pub(crate) fn margin(capacity: u64, hashes: u32) -> f64 {
    let hashes = f64::from(hashes);
    2.5 / libm::sqrt(2.0 * f64::from(reach(capacity)) * hashes) * (1.0 + 1.0 / hashes)
}

/// The share of live cells that a fresh key sees on average at this fill: `(p - p^k) / (1 - p^k)`.
///
/// With one hash that is 0, as the one cell of a fresh key is not live: no fill can be told.
pub(crate) fn seen_at(fill: f64, hashes: u32) -> f64 {
    let hashes = f64::from(hashes);
    if fill >= 1.0 {
        return (hashes - 1.0) / hashes;
    }
    let all = libm::pow(fill, hashes);
    (fill - all) / (1.0 - all)
}

impl FillSample {
    pub(crate) fn new(shape: &Shape) -> Self {
        Self {
            seen: 0.0,
            samples: 0,
            reach: reach(shape.capacity),
            full: false,
            full_above: seen_at(shape.full_at(), shape.hashes),
            empty_below: seen_at(shape.fill_at_capacity(), shape.hashes),
        }
    }

    /// Takes in what one fresh key saw.
    #[inline]
    pub(crate) fn add(&mut self, live: u32, looked_at: u32) {
        self.samples = (self.samples + 1).min(self.reach);
        let seen = f64::from(live) / f64::from(looked_at);
        self.seen += (seen - self.seen) / f64::from(self.samples);
        let bound = if self.full { self.empty_below } else { self.full_above };
        self.full = self.samples == self.reach && self.seen > bound;
    }

    /// Are there more keys than planned, for certain?
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    /// The fill at which fresh keys see what they saw.
    pub(crate) fn fill(&self, hashes: u32) -> f64 {
        let (mut low, mut high) = (0.0, 1.0);
        // Rises with the fill, so halving finds it, to more digits than the sample has.
        for _ in 0..40 {
            let middle = (low + high) / 2.0;
            if seen_at(middle, hashes) < self.seen {
                low = middle;
            } else {
                high = middle;
            }
        }
        if self.seen > 0.0 { high } else { 0.0 }
    }

    /// Goes on as if fresh keys had seen this for long.
    pub(crate) fn resume(&mut self, seen: f64) {
        (self.seen, self.samples, self.full) = (seen, self.reach, false);
    }

    pub(crate) fn reset(&mut self) {
        (self.seen, self.samples, self.full) = (0.0, 0, false);
    }

    pub(crate) fn write(&self, out: &mut Writer<'_>) {
        out.f64(self.seen);
        out.u32(self.samples);
        out.u8(u8::from(self.full));
    }

    pub(crate) fn read(shape: &Shape, input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        let mut sample = Self::new(shape);
        (sample.seen, sample.samples) = (input.f64()?, input.u32()?);
        sample.full = input.flag()?;
        let in_range = (0.0..=1.0).contains(&sample.seen) && sample.samples <= sample.reach;
        in_range.then_some(sample).ok_or(SnapshotError::Invalid("a fill outside 0 to 1"))
    }
}
