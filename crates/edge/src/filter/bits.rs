//! The Bloom filter that is reset.

use super::FilterSize;
use alloc::boxed::Box;
use alloc::vec;
use lately::Digest;

/// A Bloom filter of exactly `m` bits whose bits can be shared.
///
/// # Guarantee
/// That of [`lately::forever::Bloom`], with the same positions: a test compares the two. It is not the
/// same type because that one does not give its bits away, and they are what is sent.
///
/// # Cost
/// `k` bits of a table that fits into the innermost cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BitFilter {
    size: FilterSize,
    words: Box<[u64]>,
}

impl BitFilter {
    /// An empty filter; a size that is not valid becomes the nearest that is.
    pub fn new(size: FilterSize) -> Self {
        let size = FilterSize {
            bits: size.bits.clamp(1, super::MAX_BITS),
            hashes: size.hashes.clamp(1, 64),
        };
        Self { size, words: vec![0; size.bits.div_ceil(64) as usize].into() }
    }

    /// Its size.
    pub fn size(&self) -> FilterSize {
        self.size
    }

    /// Is the element in it? Never `false` for one that is.
    #[inline]
    pub fn contains(&self, digest: Digest) -> bool {
        self.size.positions(digest).all(|at| self.get(at))
    }

    /// Adds an element.
    #[inline]
    pub fn add(&mut self, digest: Digest) {
        let size = self.size;
        size.positions(digest).for_each(|at| self.set(at));
    }

    #[inline]
    fn get(&self, at: u32) -> bool {
        self.words.get((at / 64) as usize).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    #[inline]
    pub(crate) fn set(&mut self, at: u32) {
        if let Some(word) = self.words.get_mut((at / 64) as usize) {
            *word |= 1 << (at % 64);
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.words.fill(0);
    }

    /// How many bits are set.
    pub fn ones(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// The positions that are set, ascending.
    pub(crate) fn positions(&self) -> impl Iterator<Item = u32> {
        self.words.iter().enumerate().flat_map(|(index, &word)| {
            let mut rest = word;
            core::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros())?;
                rest &= rest - 1;
                Some(index as u32 * 64 + bit)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use lately::forever::Bloom;
    use lately::{Digester, Filter, Tick};

    /// The library's filter is the measure: same bits, same hashes, same answers, false ones included.
    #[test]
    fn answers_as_the_library_does() {
        let digester = Digester::new(3);
        for size in [FilterSize { bits: 239, hashes: 3 }, FilterSize { bits: 1437, hashes: 10 }] {
            let mut ours = BitFilter::new(size);
            let mut library = Bloom::new(u64::from(size.bits), size.hashes.into(), 50).unwrap();
            let mut false_positives = 0;
            for key in 0..120_u32 {
                let digest = digester.digest(&key.to_le_bytes());
                ours.add(digest);
                let _ = library.observe(digest);
                for other in 0..500_u32 {
                    let asked = digester.digest(&other.to_le_bytes());
                    assert_eq!(ours.contains(asked), library.contains(asked, Tick(0)));
                    false_positives += u32::from(other > key && ours.contains(asked));
                }
            }
            assert!(false_positives > 0);
            assert_eq!(f64::from(ours.ones()) / f64::from(size.bits), library.fill());
        }
    }

    #[test]
    fn positions_are_those_set() {
        let mut filter = BitFilter::new(FilterSize { bits: 200, hashes: 1 });
        for at in [0, 63, 64, 199] {
            filter.set(at);
        }
        assert_eq!(filter.positions().collect::<Vec<_>>(), [0, 63, 64, 199]);
        filter.clear();
        assert_eq!(filter.positions().count(), 0);
    }
}
