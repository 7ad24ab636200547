//! What an accommodative Bloom filter is built from.

use crate::PlanError;
use crate::forever::chain::Chain;
use crate::forever::partitioned::{Partitioned, Partitions};

/// What an [`AccommodativeBloom`](super::AccommodativeBloom) is built from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AccommodativeShape {
    /// Bits of all buckets together at the start.
    pub bits: u64,
    /// Buckets `b`, 1 to 2^20.
    pub buckets: u32,
    /// Buckets `k` that a key is put in, 1 to 64 and at most `buckets`.
    pub choices: u32,
    /// Bits `k1` that a key sets in each of them, one a partition: 1 to 64.
    pub hashes: u32,
    /// The rate to be kept, between 0 and 1.
    pub fpr: f64,
    /// The rate of a slice as a share of that of the slice before, 0.5 to 0.99.
    pub tightening: f64,
}

/// Bits and hashes that hold no key are not told from those beyond any memory.
pub(super) const NO_SLICE: PlanError = PlanError::TooLarge(
    "a bucket's first slice has bits enough for one key at this rate, and not more than any memory",
);

impl AccommodativeShape {
    /// The first slices take so many keys for certain, each in 4 of 16 buckets: five standard
    /// deviations more than falls to a bucket on average.
    pub(crate) fn for_keys(keys: u64, fpr: f64) -> Self {
        let (buckets, choices, tightening) = (16, 4, 0.85);
        let rate = (1.0 - tightening) * libm::pow(fpr, 1.0 / f64::from(choices));
        let hashes = libm::round(-libm::log2(rate)).clamp(1.0, 64.0) as u32;
        let shape = Self { bits: 0, buckets, choices, hashes, fpr, tightening };
        let mean = keys as f64 * f64::from(choices) / f64::from(buckets);
        let most = mean + 5.0 * libm::sqrt(mean) + 2.0;
        let cells = libm::ceil(most / -libm::log1p(-shape.threshold(0))) + 1.0;
        let bits = (cells as u64).saturating_mul(u64::from(hashes) * u64::from(buckets));
        Self { bits, ..shape }
    }

    /// Bytes that a new filter of this shape allocates.
    pub(crate) fn memory(&self) -> Option<u64> {
        self.check().ok()?;
        // A chain's own place is in the list of buckets, apart from what its slice allocates.
        let chain = size_of::<Chain<Partitioned>>() as u64;
        let bucket = self.slice(0)?.bytes() - Chain::<Partitioned>::LINK + chain;
        bucket.checked_mul(u64::from(self.buckets))
    }

    /// Keys after which the first slices are full, on the average of the buckets: as many as set
    /// the share of bits that is their threshold, if each goes to `choices` of `buckets`.
    pub(crate) fn capacity(&self) -> u64 {
        let clear = libm::log1p(-self.threshold(0));
        // The share of a partition's bits that a key leaves clear; of one bit it leaves none.
        let a_key = libm::log1p(-1.0 / self.cells() as f64);
        let keys = clear / a_key * f64::from(self.buckets) / f64::from(self.choices);
        (keys as u64).max(1)
    }

    pub(super) fn check(&self) -> Result<(), PlanError> {
        if !(self.fpr > 0.0 && self.fpr < 1.0) {
            return Err(PlanError::Fpr(self.fpr));
        }
        let is_possible = (1..=1 << 20).contains(&self.buckets)
            && (1..=self.buckets.min(64)).contains(&self.choices)
            && (1..=64).contains(&self.hashes)
            && (0.5..=0.99).contains(&self.tightening);
        is_possible.then_some(()).ok_or(PlanError::TooLarge(
            "an accommodative Bloom filter has 1 to 2^20 buckets, at most as many choices (and 64), 1 to 64 hashes and a tightening of 0.5 to 0.99",
        ))
    }

    /// Bits of a partition of the first slices.
    pub(super) const fn cells(&self) -> u64 {
        self.bits / self.buckets as u64 / self.hashes as u64
    }

    /// The share of bits that may be set in slice `number` of a bucket:
    /// `P_i^(1/k1)` for `P_i = (1 - ρ)·ε^(1/k)·ρ^i`.
    pub(super) fn threshold(&self, number: u64) -> f64 {
        let bucket = libm::pow(self.fpr, 1.0 / f64::from(self.choices));
        let rate = (1.0 - self.tightening) * bucket * libm::pow(self.tightening, number as f64);
        libm::pow(rate, 1.0 / f64::from(self.hashes))
    }

    /// Slice `number` of a bucket, twice the one before; `None` beyond any memory.
    pub(super) fn slice(&self, number: u64) -> Option<Partitions> {
        let times = 1u64.checked_shl(u32::try_from(number).ok()?)?;
        Partitions::new(self.cells().checked_mul(times)?, self.hashes, self.threshold(number))
    }
}
