//! The partitioned Bloom filter that the filters of growing size are made of.

use crate::bits::is_available;
use crate::bits::packed::Packed;
use crate::codec::{Reader, Writer};
use crate::forever::chain::Chain;
use crate::{Digest, PlanError, SnapshotError};

/// The size of a partitioned filter, and when it is full.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Partitions {
    /// Bits of a partition, at least 1.
    cells: u64,
    /// Partitions, in each of which a key sets one bit: 1 to 64.
    hashes: u32,
    /// The most bits that are set before it is full: `hashes` to `cells · hashes`.
    threshold: u64,
}

impl Partitions {
    /// So many partitions of `cells` bits, full when the share `fill` of them is set; `None` when
    /// it is beyond any memory or cannot take one key.
    pub(crate) fn new(cells: u64, hashes: u32, fill: f64) -> Option<Self> {
        let bits = cells.checked_mul(u64::from(hashes))?;
        Packed::words_for(bits, 1)?;
        let threshold = libm::floor(bits as f64 * fill) as u64;
        let takes_a_key = (u64::from(hashes)..=bits).contains(&threshold);
        ((1..=64).contains(&hashes) && takes_a_key).then_some(Self { cells, hashes, threshold })
    }

    const fn bits(self) -> u64 {
        self.cells * self.hashes as u64
    }

    /// Bytes that one more filter of this size takes in a chain.
    pub(crate) fn bytes(self) -> u64 {
        let words = Packed::words_for(self.bits(), 1).map_or(u64::MAX, |words| words as u64);
        words.saturating_mul(8).saturating_add(Chain::<Partitioned>::LINK)
    }

    /// Would the system give the memory for one?
    pub(crate) fn is_available(self) -> bool {
        Packed::words_for(self.bits(), 1).is_some_and(|words| is_available(words).is_ok())
    }
}

/// Partitions of bits, in each of which a key sets one.
///
/// It counts the bits that are set, not the keys: the mean of the partitions' fills is at least
/// their geometric mean, so a key that is not in it is found with a chance of at most
/// `fill^hashes`, however the keys fell. A number of keys bounds that only on the average of many
/// filters.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Partitioned {
    bits: Packed,
    shape: Partitions,
    /// Bits that are set.
    set: u64,
}

impl Partitioned {
    pub(crate) fn new(shape: Partitions) -> Result<Self, PlanError> {
        Ok(Self { bits: Packed::new(shape.bits(), 1)?, shape, set: 0 })
    }

    /// The cells of a key, one in each partition.
    #[inline]
    fn cells(shape: Partitions, digest: Digest) -> impl Iterator<Item = u64> {
        let starts = (0..u64::from(shape.hashes)).map(move |part| part * shape.cells);
        starts.zip(digest.probes(shape.cells)).map(|(start, probe)| start + probe)
    }

    #[inline]
    pub(crate) fn contains(&self, digest: Digest) -> bool {
        Self::cells(self.shape, digest).all(|cell| self.bits.bits(cell, 0, 1) == 1)
    }

    #[inline]
    pub(crate) fn insert(&mut self, digest: Digest) {
        for cell in Self::cells(self.shape, digest) {
            self.set += 1 - self.bits.bits(cell, 0, 1);
            self.bits.set_bits(cell, 0, 1, 1);
        }
    }

    /// Could one more key take it past its threshold?
    #[inline]
    pub(crate) const fn is_full(&self) -> bool {
        self.set + self.shape.hashes as u64 > self.shape.threshold
    }

    /// Bits that are set.
    pub(crate) const fn set(&self) -> u64 {
        self.set
    }

    /// Bits there are.
    pub(crate) const fn len(&self) -> u64 {
        self.shape.bits()
    }

    /// The rate at its present fill; no more than that.
    pub(crate) fn rate(&self) -> f64 {
        libm::pow(self.set as f64 / self.len() as f64, f64::from(self.shape.hashes))
    }

    pub(crate) fn clear(&mut self) {
        self.bits.clear();
        self.set = 0;
    }

    pub(crate) fn memory(&self) -> usize {
        self.bits.memory()
    }

    pub(crate) fn prefetch(&self, digest: Digest) {
        for cell in Self::cells(self.shape, digest) {
            self.bits.prefetch(cell);
        }
    }

    /// The bits alone: the shape follows from the owner's.
    pub(crate) fn write(&self, out: &mut Writer<'_>) {
        out.words(self.bits.words());
    }

    pub(crate) fn read(input: &mut Reader<'_>, shape: Partitions) -> Result<Self, SnapshotError> {
        let words = input.words(Packed::words_for(shape.bits(), 1))?;
        let set = words.iter().map(|word| u64::from(word.count_ones())).sum();
        let bits = Packed::from_words(words, shape.bits(), 1)
            .ok_or(SnapshotError::Invalid("bits set past the end of a partitioned filter"))?;
        Ok(Self { bits, shape, set })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Digester;

    #[test]
    fn a_key_sets_one_bit_in_each_partition() {
        let mut filter = Partitioned::new(Partitions::new(100, 5, 0.5).unwrap()).unwrap();
        let digest = Digester::new(0).digest(b"a");
        filter.insert(digest);
        assert_eq!(filter.set(), 5);
        for part in 0..5 {
            let set = (0..100).filter(|cell| filter.bits.bits(part * 100 + cell, 0, 1) == 1);
            assert_eq!(set.count(), 1);
        }
        filter.insert(digest);
        assert_eq!(filter.set(), 5);
        assert!(filter.contains(digest));
    }

    #[test]
    fn it_never_passes_its_threshold_before_it_is_full() {
        for (cells, hashes, fill) in [(2, 1, 0.5), (1, 7, 1.0), (50, 3, 0.3), (1_000, 10, 0.9)] {
            let shape = Partitions::new(cells, hashes, fill).unwrap();
            let mut filter = Partitioned::new(shape).unwrap();
            let mut keys = 0u64;
            while !filter.is_full() {
                filter.insert(Digester::new(0).digest(&keys.to_le_bytes()));
                keys += 1;
            }
            assert!(keys > 0 && filter.set() <= shape.threshold);
            assert!(filter.rate() <= libm::pow(fill, f64::from(hashes)) * (1.0 + 1e-12));
        }
    }

    #[test]
    fn shapes_that_cannot_be() {
        let wrong = [(0, 1, 0.5), (1, 1, 0.5), (10, 0, 0.5), (10, 65, 0.5), (u64::MAX, 2, 0.5)];
        for (cells, hashes, fill) in wrong {
            assert_eq!(Partitions::new(cells, hashes, fill), None);
        }
        for fill in [f64::NAN, f64::INFINITY, -1.0, 0.0, 1.5] {
            assert_eq!(Partitions::new(10, 2, fill), None);
        }
    }
}
