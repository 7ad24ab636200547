//! The filter of a cell of 1 km: what host and workers share.

mod aged;
mod bits;
mod positions;
mod share;

pub use aged::AgedFilter;
pub use bits::BitFilter;
pub use share::{Contents, Group, Named, Share, ShareError, Stamp};

use crate::rules::{Mode, Rules};
use alloc::vec::Vec;
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
    /// The size for so many elements and a false positive rate, as in the paper:
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

/// A filter of either kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CellFilter {
    Bits(BitFilter),
    Aged(AgedFilter),
}

impl CellFilter {
    pub(crate) fn new(rules: &Rules, grain: u64) -> Self {
        match rules.mode {
            Mode::Reset => Self::Bits(BitFilter::new(rules.size)),
            Mode::Ageing { steps } => {
                let mut filter = AgedFilter::new(rules.size, steps);
                filter.advance(grain);
                Self::Aged(filter)
            }
        }
    }

    #[inline]
    pub(crate) fn contains(&self, digest: Digest, grain: u64) -> bool {
        match self {
            Self::Bits(filter) => filter.contains(digest),
            Self::Aged(filter) => filter.contains(digest, grain),
        }
    }

    pub(crate) fn add(&mut self, digest: Digest, grain: u64) {
        match self {
            Self::Bits(filter) => filter.add(digest),
            Self::Aged(filter) => filter.add(digest, grain),
        }
    }

    pub(crate) fn set(&mut self, at: u32, age: u64) {
        match self {
            Self::Bits(filter) => filter.set(at),
            Self::Aged(filter) => filter.set(at, age),
        }
    }

    pub(crate) fn advance(&mut self, grain: u64) {
        if let Self::Aged(filter) = self {
            filter.advance(grain);
        }
    }

    pub(crate) fn clear(&mut self, grain: u64) {
        match self {
            Self::Bits(filter) => filter.clear(),
            Self::Aged(filter) => filter.clear(grain),
        }
    }

    /// How many bits are set.
    pub(crate) fn ones(&self) -> u32 {
        match self {
            Self::Bits(filter) => filter.ones(),
            Self::Aged(filter) => filter.ones(),
        }
    }

    /// All of its contents, as of a grain.
    pub(crate) fn contents(&mut self, grain: u64) -> Vec<Group> {
        match self {
            Self::Bits(filter) => {
                let positions: Vec<u32> = filter.positions().collect();
                if positions.is_empty() {
                    return Vec::new();
                }
                alloc::vec![Group::new(0, &positions, filter.size())]
            }
            Self::Aged(filter) => {
                filter.advance(grain);
                let mut live = Vec::new();
                filter.live(&mut live);
                by_age(live, filter.size())
            }
        }
    }
}

/// Positions by age, the youngest first, in any order and repeated or not. Ages are below 256.
pub(crate) fn group(live: impl Iterator<Item = (u32, u64)>, size: FilterSize) -> Vec<Group> {
    by_age(live.map(|(at, age)| (age as u32) << 16 | at).collect(), size)
}

/// The same of one number each, age before position: they are sorted at every assignment.
fn by_age(mut live: Vec<u32>, size: FilterSize) -> Vec<Group> {
    live.sort_unstable();
    live.dedup();
    let mut positions = Vec::with_capacity(live.len());
    let of_one_age = live.chunk_by(|one, other| one >> 16 == other >> 16);
    let groups = of_one_age.map(|group| {
        let age = group.first().map_or(0, |&first| first >> 16);
        positions.clear();
        positions.extend(group.iter().map(|&packed| packed & 0xFFFF));
        Group::new(age as u8, &positions, size)
    });
    groups.collect()
}

/// A position fits into what [`by_age`] has for it.
const _: () = assert!(MAX_BITS <= 1 << 16);

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
