//! The classic Bloom filter.

use crate::bits::packed::Packed;
use crate::codec::{Reader, Writer};
use crate::plan::formulas::{bloom_fpr, cells_for, hashes_for};
use crate::table::{Contract, Recipe, Table, Windows};
use crate::{Digest, Filter, Merge, MergeError, PlanError, SnapshotError, Spec, Tick, Verdict};

/// A Bloom filter: `m` bits of which each key sets `k`.
///
/// # Guarantee
/// A key once remembered is always found. Another is found with probability
/// `(1 - (1 - 1/m)^(k·n))^k` after `n` keys. Keys never expire.
///
/// # Cost
/// `k` cache lines an operation; `m` bits. [`BlockedBloom`](super::BlockedBloom) touches one line.
///
/// # Example
/// ```
/// use lately::{Digester, Filter, Tick, Verdict, forever::Bloom};
/// let mut seen = Bloom::new(10_000, 7, 1_000)?;
/// let digester = Digester::new(0);
/// assert_eq!(seen.observe(digester.digest(b"a")), Verdict::Fresh);
/// assert_eq!(seen.observe(digester.digest(b"a")), Verdict::Duplicate);
/// assert!(seen.contains(digester.digest(b"a"), Tick(0)));
/// # Ok::<(), lately::PlanError>(())
/// ```
///
/// # Reference
/// B. H. Bloom, "Space/time trade-offs in hash coding with allowable errors", CACM 13(7), 1970,
/// doi:10.1145/362686.362692.
///
/// # Differs from the paper
/// Bit positions are derived from one 128-bit digest, not from `k` hash functions.
#[derive(Clone, Debug, PartialEq)]
pub struct Bloom {
    bits: Packed,
    /// Bits a key sets, 1 to 64.
    hashes: u32,
    /// Keys it is planned for.
    capacity: u64,
    /// Keys that were fresh when remembered.
    keys: u64,
}

impl Bloom {
    /// A filter of `bits` bits of which each key sets `hashes`, full after `capacity` keys.
    ///
    /// # Errors
    /// [`PlanError::TooLarge`] when a number is 0, `hashes` above 64 or `bits` beyond any
    /// memory; [`PlanError::Unavailable`] when there is no memory for them.
    pub fn new(bits: u64, hashes: u32, capacity: u64) -> Result<Self, PlanError> {
        if bits == 0 || Packed::words_for(bits, 1).is_none() || !(1..=64).contains(&hashes) {
            return Err(PlanError::TooLarge(
                "a Bloom filter has 1 to 2^56 bits and 1 to 64 hashes",
            ));
        }
        Ok(Self { bits: Packed::new(bits, 1)?, hashes, capacity, keys: 0 })
    }

    /// One arrival: was the key seen before? It is now.
    pub fn observe(&mut self, digest: Digest) -> Verdict {
        let mut spare = [0; 64];
        let cells = digest.probes(self.bits.len()).write_down(self.hashes, &mut spare);
        // All of them, as a branch that depends on a bit is predicted wrongly more often than not.
        if cells.iter().fold(true, |seen, &cell| seen & self.bits.bit(cell)) {
            return Verdict::Duplicate;
        }
        cells.iter().for_each(|&cell| self.bits.set_bit(cell));
        self.keys += 1;
        Verdict::Fresh
    }

    /// Keys that were fresh when remembered.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// Keys it is planned for.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Does it hold the keys it was planned for?
    pub fn is_full(&self) -> bool {
        self.keys >= self.capacity
    }

    pub(crate) fn bits(&self) -> u64 {
        self.bits.len()
    }

    pub(crate) fn hashes(&self) -> u32 {
        self.hashes
    }

    pub(crate) fn read(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        let (len, hashes) = (input.u64()?, input.u32()?);
        let (capacity, keys) = (input.u64()?, input.count()?);
        if len == 0 || !(1..=64).contains(&hashes) {
            return Err(SnapshotError::Invalid("a Bloom filter of no bits or no hashes"));
        }
        let words = input.words(Packed::words_for(len, 1))?;
        let bits = Packed::from_words(words, len, 1)
            .ok_or(SnapshotError::Invalid("bits set past the end of a Bloom filter"))?;
        Ok(Self { bits, hashes, capacity, keys })
    }
}

impl Recipe for Bloom {
    type Table = Self;
    /// Bits, hashes, capacity.
    type Size = (u64, u32, u64);

    const WINDOWS: Windows = Windows::Forever;

    fn size(_: &Spec, capacity: u64, fpr: f64) -> Result<Self::Size, PlanError> {
        let hashes = hashes_for(fpr);
        Ok((cells_for(capacity as f64, hashes, fpr, 0.0)?, hashes, capacity))
    }

    fn contract(&(.., capacity): &Self::Size) -> Contract {
        Contract::forever(capacity)
    }

    fn memory(&(bits, ..): &Self::Size) -> Option<u64> {
        Some(Packed::words_for(bits, 1)? as u64 * 8)
    }

    fn cell_bits_and_hashes(&(_, hashes, _): &Self::Size) -> (u32, u32) {
        (1, hashes)
    }

    fn build((bits, hashes, capacity): Self::Size) -> Result<Self, PlanError> {
        Self::new(bits, hashes, capacity)
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        Self::read(input)
    }
}

impl crate::filter::sealed::Sealed for Bloom {}

impl Filter for Bloom {
    fn contains(&self, digest: Digest, _now: Tick) -> bool {
        digest.probes(self.bits.len()).take(self.hashes as usize).all(|cell| self.bits.bit(cell))
    }

    fn fpr(&self) -> f64 {
        bloom_fpr(self.bits.len(), self.hashes, self.capacity as f64)
    }

    fn estimated_fpr(&self) -> f64 {
        bloom_fpr(self.bits.len(), self.hashes, self.keys as f64)
    }

    /// Counted: the share of bits that are set.
    fn fill(&self) -> f64 {
        let set: u64 = self.bits.words().iter().map(|w| u64::from(w.count_ones())).sum();
        set as f64 / self.bits.len() as f64
    }

    fn memory(&self) -> usize {
        self.bits.memory()
    }
}

impl Merge for Bloom {
    fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        if (self.bits.len(), self.hashes) != (other.bits.len(), other.hashes) {
            return Err(MergeError::Shape);
        }
        self.bits.unite(&other.bits);
        // At most: a key that both had counts twice.
        self.keys += other.keys;
        Ok(())
    }
}

impl Table for Bloom {
    #[inline]
    fn observe(&mut self, digest: Digest, _now: Tick) -> Verdict {
        Self::observe(self, digest)
    }

    fn is_full(&self) -> bool {
        Self::is_full(self)
    }

    fn clear(&mut self) {
        self.bits.clear();
        self.keys = 0;
    }

    fn keys_now(&self) -> u64 {
        self.keys()
    }

    fn prefetch(&self, digest: Digest) {
        for cell in digest.probes(self.bits.len()).take(self.hashes as usize) {
            self.bits.prefetch(cell);
        }
    }

    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        Merge::merge(self, other)
    }

    fn write(&self, out: &mut Writer<'_>) {
        out.u64(self.bits.len());
        out.u32(self.hashes);
        out.u64(self.capacity);
        out.u64(self.keys);
        out.words(self.bits.words());
    }
}
