//! How full an aged Bloom filter is, measured instead of counted.

use crate::SnapshotError;
use crate::snapshot::{Reader, Writer};

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
}

/// Fresh keys that the average reaches back over: few enough to notice an overload long before
/// the window is over, many enough to be steady.
fn reach(capacity: u64) -> u32 {
    (capacity / 8).clamp(32, 4096) as u32
}

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
    pub(crate) fn new(capacity: u64) -> Self {
        Self { seen: 0.0, samples: 0, reach: reach(capacity) }
    }

    /// Takes in what one fresh key saw.
    #[inline]
    pub(crate) fn add(&mut self, live: u32, looked_at: u32) {
        self.samples = (self.samples + 1).min(self.reach);
        let seen = f64::from(live) / f64::from(looked_at);
        self.seen += (seen - self.seen) / f64::from(self.samples);
    }

    /// Have fresh keys seen more than this on average, long enough to be sure?
    #[inline]
    pub(crate) fn exceeds(&self, seen: f64) -> bool {
        self.seen > seen && self.samples == self.reach
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

    pub(crate) fn reset(&mut self) {
        (self.seen, self.samples) = (0.0, 0);
    }

    pub(crate) fn write(&self, out: &mut Writer) {
        out.f64(self.seen);
        out.u32(self.samples);
    }

    pub(crate) fn read(capacity: u64, input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        let mut sample = Self::new(capacity);
        (sample.seen, sample.samples) = (input.f64()?, input.u32()?);
        let in_range = (0.0..=1.0).contains(&sample.seen) && sample.samples <= sample.reach;
        in_range.then_some(sample).ok_or(SnapshotError::Invalid("a fill outside 0 to 1"))
    }
}
