//! How full an aged Bloom filter is, measured instead of counted.

use crate::SnapshotError;
use crate::snapshot::{Reader, Writer};

/// The share of live cells, sampled.
///
/// A key that turns out fresh has looked at `k` cells at random, and the share of live ones among
/// them is an unbiased sample of the whole table. So the fill costs nothing to know, where
/// counting live cells exactly would need a second sweep at every expiry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FillSample {
    share: f64,
    /// Fresh keys looked at, as far as they count.
    samples: u32,
    /// Fresh keys that the average reaches back over.
    reach: u32,
}

/// Fresh keys that the average reaches back over: few enough to notice an overload long before
/// the window is over, many enough to be steady.
fn reach(capacity: u64) -> u32 {
    (capacity / 8).clamp(16, 1024) as u32
}

/// Four standard deviations of the sample at half fill, its worst: an exponential average over
/// `r` keys has the variance of `2·r` independent ones.
pub(crate) fn margin(capacity: u64, hashes: u32) -> f64 {
    2.0 / libm::sqrt(2.0 * f64::from(reach(capacity)) * f64::from(hashes))
}

impl FillSample {
    pub(crate) fn new(capacity: u64) -> Self {
        Self { share: 0.0, samples: 0, reach: reach(capacity) }
    }

    /// Takes in what one fresh key saw.
    #[inline]
    pub(crate) fn add(&mut self, live: u32, looked_at: u32) {
        self.samples = (self.samples + 1).min(self.reach);
        let seen = f64::from(live) / f64::from(looked_at);
        self.share += (seen - self.share) / f64::from(self.samples);
    }

    #[inline]
    pub(crate) fn share(&self) -> f64 {
        self.share
    }

    /// Steady enough to act on?
    #[inline]
    pub(crate) fn is_steady(&self) -> bool {
        self.samples == self.reach
    }

    pub(crate) fn reset(&mut self) {
        (self.share, self.samples) = (0.0, 0);
    }

    pub(crate) fn write(&self, out: &mut Writer) {
        out.f64(self.share);
        out.u32(self.samples);
    }

    pub(crate) fn read(capacity: u64, input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        let mut sample = Self::new(capacity);
        (sample.share, sample.samples) = (input.f64()?, input.u32()?);
        let in_range = (0.0..=1.0).contains(&sample.share) && sample.samples <= sample.reach;
        in_range.then_some(sample).ok_or(SnapshotError::Invalid("a fill outside 0 to 1"))
    }
}
