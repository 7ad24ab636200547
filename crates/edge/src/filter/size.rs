//! How large filters are.

use lately::Digest;
use lately::plan::bloom_hashes;

/// The most bits of a filter, so that a message cannot ask for more memory.
pub const MAX_BITS: u32 = 1 << 16;

/// Bits and hashes of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterSize {
    /// 1 to [`MAX_BITS`].
    pub bits: u32,
    /// Bits that an element sets: 1 to 64.
    pub hashes: u8,
}

impl FilterSize {
    /// The size for a number of elements and a false positive rate, as in the paper:
    /// `m = floor(-n·ln p / (ln 2)²)`, `k = round(m/n · ln 2)`.
    ///
    /// `None` where that is no filter, or one beyond [`MAX_BITS`].
    ///
    /// ```
    /// use lately_edge::filter::FilterSize;
    /// assert_eq!(FilterSize::for_elements(100, 0.001), Some(FilterSize { bits: 1437, hashes: 10 }));
    /// ```
    pub fn for_elements(elements: u32, fpr: f64) -> Option<Self> {
        if elements == 0 || !(fpr > 0.0 && fpr < 1.0) {
            return None;
        }
        let ln_2 = core::f64::consts::LN_2;
        let bits = libm::floor(-f64::from(elements) * libm::log(fpr) / (ln_2 * ln_2));
        if !(1.0..=f64::from(MAX_BITS)).contains(&bits) {
            return None;
        }
        let hashes = bloom_hashes(bits as u64, f64::from(elements));
        Some(Self { bits: bits as u32, hashes: hashes as u8 })
    }

    /// Can a filter be so large?
    pub const fn is_valid(self) -> bool {
        self.bits >= 1 && self.bits <= MAX_BITS && self.hashes >= 1 && self.hashes <= 64
    }

    /// The positions of a digest: those of [`lately::forever::Bloom`] with as many bits and hashes.
    #[inline]
    pub(crate) fn positions(self, digest: Digest) -> impl Iterator<Item = u32> {
        let probes = digest.probes(u64::from(self.bits));
        probes.take(usize::from(self.hashes)).map(|position| position as u32)
    }
}

/// Grains that an element stays in a filter that ages, at most.
pub(crate) const MAX_STEPS: u8 = 120;

#[cfg(test)]
mod tests {
    use super::FilterSize;

    #[test]
    fn sizes_of_the_paper() {
        for (elements, fpr, bits, hashes) in [
            (50, 0.1, 239, 3),
            (50, 0.001, 718, 10),
            (100, 0.001, 1437, 10),
            (200, 0.001, 2875, 10),
        ] {
            let size = FilterSize::for_elements(elements, fpr);
            assert_eq!(size, Some(FilterSize { bits, hashes }), "{elements} {fpr}");
        }
        for (elements, fpr) in [(0, 0.1), (50, 0.0), (50, 1.0), (50, f64::NAN), (1 << 20, 1e-9)] {
            assert_eq!(FilterSize::for_elements(elements, fpr), None);
        }
    }
}
