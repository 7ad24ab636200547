//! The buckets of a key.

use crate::Digest;
use crate::digest::{mix, reduce};

/// The buckets of a key by double hashing, all distinct as long as there are any.
pub(super) struct Chosen {
    at: u32,
    step: u32,
    /// Where the present round began.
    origin: u32,
    buckets: u32,
}

impl Chosen {
    #[inline]
    pub(super) fn new(digest: Digest, buckets: u32) -> Self {
        let at = reduce(mix(digest.hi()), u64::from(buckets)) as u32;
        let step = 1 + reduce(mix(digest.lo()), u64::from(buckets) - 1) as u32;
        Self { at, step, origin: at, buckets }
    }
}

impl Iterator for Chosen {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        let chosen = self.at;
        self.at = (self.at + self.step) % self.buckets;
        // A step that divides the buckets comes round before all have been named; the rounds
        // that begin one further each time have no bucket in common.
        if self.at == self.origin {
            self.origin = (self.origin + 1) % self.buckets;
            self.at = self.origin;
        }
        Some(chosen)
    }
}
