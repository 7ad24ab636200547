//! A Bloom filter whose keys each live in one cache line.

use crate::bits::prefetch::prefetch;
use crate::bits::{addressable_words, zeroed};
use crate::codec::{Reader, Writer};
use crate::digest::{mix, reduce};
use crate::plan::formulas::{TOO_LOW, blocked_fpr};
use crate::table::{Contract, Recipe, Table, Windows};
use crate::{Digest, Filter, Merge, MergeError, PlanError, SnapshotError, Spec, Tick, Verdict};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

/// Words of a block: 8 × 64 bits are one cache line.
const LANES: usize = 8;

/// A Bloom filter cut into blocks of 512 bits. A key sets `rounds` (1 to 3) bits in each of the
/// eight words of one block.
///
/// # Guarantee
/// A key once remembered is always found. Another is found with the probability that
/// [`blocked_fpr`](crate::plan::blocked_fpr) gives. Keys never expire.
///
/// # Cost
/// One cache line an operation. Bits a key at 1 % 10.5, at 0.1 % 16, at 1e-6 39 (a classic Bloom
/// filter: 9.6, 14.4, 28.8): the price of blocks that are filled unevenly.
///
/// # Example
/// ```
/// use lately::{Digester, Verdict, forever::BlockedBloom};
/// let mut seen = BlockedBloom::new(100, 2, 1_000)?;
/// let digester = Digester::new(0);
/// assert_eq!(seen.observe(digester.digest(b"a")), Verdict::Fresh);
/// assert_eq!(seen.observe(digester.digest(b"a")), Verdict::Duplicate);
/// # Ok::<(), lately::PlanError>(())
/// ```
///
/// # Reference
/// F. Putze, P. Sanders, J. Singler, "Cache-, hash- and space-efficient Bloom filters", JEA 14,
/// 2009, doi:10.1145/1498698.1594230. The split into words is that of the split block Bloom filter
/// of Apache Parquet.
///
/// # Differs from the paper
/// 64-bit words and up to three bits per word, so that rates down to 1e-9 are reached with one line.
pub struct BlockedBloom {
    /// The blocks, from `start` on: a few words more than needed, so that blocks can begin on a
    /// cache line without an allocator call of our own.
    words: Vec<u64>,
    start: usize,
    blocks: u64,
    /// Bits a key sets in each word, 1 to 3.
    rounds: u32,
    capacity: u64,
    keys: u64,
}

/// Its size and keys: the words would be millions.
impl fmt::Debug for BlockedBloom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockedBloom")
            .field("blocks", &self.blocks)
            .field("rounds", &self.rounds)
            .field("capacity", &self.capacity)
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}

impl BlockedBloom {
    /// Words that a filter of `blocks` allocates, or `None` beyond any memory.
    pub(crate) fn words_for(blocks: u64) -> Option<usize> {
        let words = u128::from(blocks) * LANES as u128 + LANES as u128 - 1;
        addressable_words(words).filter(|_| words < 1 << 53)
    }

    /// A filter of `blocks` blocks of 64 bytes, full after `capacity` keys.
    ///
    /// # Errors
    /// [`PlanError::TooLarge`] when `blocks` is 0 or beyond any memory, or `rounds` not 1, 2 or 3;
    /// [`PlanError::Unavailable`] when there is no memory for them.
    pub fn new(blocks: u64, rounds: u32, capacity: u64) -> Result<Self, PlanError> {
        let words = Self::words_for(blocks).filter(|_| Self::is_shape(blocks, rounds));
        let words = words.ok_or(PlanError::TooLarge(
            "a blocked Bloom filter has at least 1 block, at most 2^50, and 1 to 3 rounds",
        ))?;
        let words = zeroed(Some(words))?;
        let start = aligned_start(&words);
        Ok(Self { words, start, blocks, rounds, capacity, keys: 0 })
    }

    const fn is_shape(blocks: u64, rounds: u32) -> bool {
        blocks > 0 && 1 <= rounds && rounds <= 3
    }

    #[inline]
    fn block_of(&self, digest: Digest) -> usize {
        self.start + reduce(digest.hi(), self.blocks) as usize * LANES
    }

    /// One arrival: was the key seen before? It is now.
    #[inline]
    pub fn observe(&mut self, digest: Digest) -> Verdict {
        let at = self.block_of(digest);
        let masks = masks(digest, self.rounds);
        let Some(block) = self.words.get_mut(at..at + LANES) else { return Verdict::Fresh };
        let mut missing = 0;
        for (word, mask) in block.iter_mut().zip(masks) {
            missing |= mask & !*word;
            *word |= mask;
        }
        self.keys += u64::from(missing != 0);
        if missing == 0 { Verdict::Duplicate } else { Verdict::Fresh }
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
    #[inline]
    pub fn is_full(&self) -> bool {
        self.keys >= self.capacity
    }

    /// The bits: eight words a block.
    pub fn words(&self) -> &[u64] {
        self.words.get(self.start..self.start + self.blocks as usize * LANES).unwrap_or(&[])
    }

    pub(crate) fn read(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        let (blocks, rounds) = (input.u64()?, input.u32()?);
        let (capacity, keys) = (input.u64()?, input.count()?);
        let cells = Self::words_for(blocks).filter(|_| Self::is_shape(blocks, rounds));
        let cells = cells
            .ok_or(SnapshotError::Invalid("a blocked Bloom filter of an impossible shape"))?
            - (LANES - 1);
        let mut words = input.words_and(Some(cells), LANES - 1)?;
        let start = aligned_start(&words);
        words.copy_within(..cells, start);
        Ok(Self { words, start, blocks, rounds, capacity, keys })
    }
}

impl Recipe for BlockedBloom {
    type Table = Self;
    /// Blocks, rounds, capacity.
    type Size = (u64, u32, u64);

    const WINDOWS: Windows = Windows::Forever;

    fn size(_: &Spec, capacity: u64, fpr: f64) -> Result<Self::Size, PlanError> {
        let (blocks, rounds) = blocks_for(capacity, best_load(fpr))?;
        Ok((blocks, rounds, capacity))
    }

    fn contract(&(.., capacity): &Self::Size) -> Contract {
        Contract::forever(capacity)
    }

    fn memory(&(blocks, ..): &Self::Size) -> Option<u64> {
        Some(Self::words_for(blocks)? as u64 * 8)
    }

    fn cell_bits_and_hashes(&(_, rounds, _): &Self::Size) -> (u32, u32) {
        (1, rounds * LANES as u32)
    }

    /// A search would sum the series of the rate again for every number of keys.
    fn capacity_of(bytes: u64, fpr: f64) -> Option<u64> {
        let blocks = (bytes.saturating_sub(8 * (LANES as u64 - 1)) / 64).min((1 << 50) - 1);
        Some((blocks as f64 * best_load(fpr).0) as u64)
    }

    fn build((blocks, rounds, capacity): Self::Size) -> Result<Self, PlanError> {
        Self::new(blocks, rounds, capacity)
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        Self::read(input)
    }
}

/// The most keys per block that keep this rate, and the number of rounds with which they do.
fn best_load(fpr: f64) -> (f64, u32) {
    let most = |rounds: u32| {
        let (mut low, mut high) = (0.0, 4.0);
        while high < 4096.0 && blocked_fpr(1, rounds, high) <= fpr {
            (low, high) = (high, high * 2.0);
        }
        for _ in 0..24 {
            let middle = (low + high) / 2.0;
            // The rate depends on the load alone.
            if blocked_fpr(1, rounds, middle) > fpr {
                high = middle;
            } else {
                low = middle;
            }
        }
        (low, rounds)
    };
    let loads = [most(1), most(2), most(3)];
    loads.into_iter().fold((0.0, 1), |best, load| if load.0 > best.0 { load } else { best })
}

/// The fewest blocks, over all numbers of rounds.
fn blocks_for(keys: u64, (load, rounds): (f64, u32)) -> Result<(u64, u32), PlanError> {
    let blocks = libm::ceil(keys as f64 / load).max(1.0);
    let fits = blocks < (1u64 << 50) as f64;
    fits.then_some((blocks as u64, rounds)).ok_or(TOO_LOW)
}

/// The first index of `words` that lies on a cache line. What lies there decides speed only.
fn aligned_start(words: &[u64]) -> usize {
    words.as_ptr().align_offset(64).min(LANES - 1)
}

/// The bits per key sets in the words of its block.
#[inline]
fn masks(digest: Digest, rounds: u32) -> [u64; LANES] {
    let mut state = digest.lo();
    let mut masks = [0u64; LANES];
    // Ten 6-bit positions a mixed word; eight are used.
    for _ in 0..rounds {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let bits = mix(state);
        for (lane, mask) in masks.iter_mut().enumerate() {
            *mask |= 1 << ((bits >> (16 + 6 * lane)) & 63);
        }
    }
    masks
}

impl Clone for BlockedBloom {
    fn clone(&self) -> Self {
        // A copy lies elsewhere, so its first whole line does too.
        let mut words = vec![0; self.words.len()];
        let start = aligned_start(&words);
        words[start..start + self.words().len()].copy_from_slice(self.words());
        Self { words, start, ..*self }
    }
}

impl PartialEq for BlockedBloom {
    fn eq(&self, other: &Self) -> bool {
        (self.rounds, self.capacity, self.keys) == (other.rounds, other.capacity, other.keys)
            && self.words() == other.words()
    }
}

impl crate::filter::sealed::Sealed for BlockedBloom {}

impl Filter for BlockedBloom {
    #[inline]
    fn contains(&self, digest: Digest, _now: Tick) -> bool {
        let at = self.block_of(digest);
        let masks = masks(digest, self.rounds);
        self.words
            .get(at..at + LANES)
            .is_some_and(|block| block.iter().zip(masks).all(|(word, mask)| word & mask == mask))
    }

    fn fpr(&self) -> f64 {
        blocked_fpr(self.blocks, self.rounds, self.capacity as f64)
    }

    fn estimated_fpr(&self) -> f64 {
        blocked_fpr(self.blocks, self.rounds, self.keys as f64)
    }

    /// Counted: the share of bits that are set.
    fn fill(&self) -> f64 {
        let set: u64 = self.words().iter().map(|w| u64::from(w.count_ones())).sum();
        set as f64 / (self.blocks * 512) as f64
    }

    fn memory(&self) -> usize {
        self.words.capacity() * 8
    }
}

impl Merge for BlockedBloom {
    fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        if (self.blocks, self.rounds) != (other.blocks, other.rounds) {
            return Err(MergeError::Shape);
        }
        let ours = self.words.iter_mut().skip(self.start);
        ours.zip(other.words()).for_each(|(ours, theirs)| *ours |= theirs);
        // At most: a key that both had counts twice.
        self.keys += other.keys;
        Ok(())
    }
}

impl BlockedBloom {
    /// For callers that are compiled without all of it.
    #[inline(never)]
    fn observe_by_call(&mut self, digest: Digest) -> Verdict {
        self.observe(digest)
    }

    #[inline(never)]
    fn contains_by_call(&self, digest: Digest) -> bool {
        self.contains(digest, Tick(0))
    }
}

impl Table for BlockedBloom {
    #[inline]
    fn observe(&mut self, digest: Digest, _now: Tick) -> Verdict {
        Self::observe(self, digest)
    }

    #[inline(always)]
    fn observe_quickly(&mut self, digest: Digest, _now: Tick) -> Option<Verdict> {
        (!Self::is_full(self)).then(|| self.observe_by_call(digest))
    }

    #[inline(always)]
    fn contains_quickly(&self, digest: Digest, _now: Tick) -> Option<bool> {
        Some(self.contains_by_call(digest))
    }

    #[inline]
    fn is_full(&self) -> bool {
        Self::is_full(self)
    }

    fn clear(&mut self) {
        self.words.fill(0);
        self.keys = 0;
    }

    fn keys_now(&self) -> u64 {
        self.keys()
    }

    #[inline]
    fn prefetch(&self, digest: Digest) {
        prefetch(&self.words, self.block_of(digest));
    }

    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        Merge::merge(self, other)
    }

    fn write(&self, out: &mut Writer<'_>) {
        out.u64(self.blocks);
        out.u32(self.rounds);
        out.u64(self.capacity);
        out.u64(self.keys);
        out.words(self.words());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Digester;
    use alloc::vec;

    /// Chi-square of counts that should be equal, in standard deviations from its mean.
    fn unevenness(counts: &[u32]) -> f64 {
        let mean = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
        let chi: f64 = counts.iter().map(|&c| libm::pow(f64::from(c) - mean, 2.0) / mean).sum();
        let freedom = (counts.len() - 1) as f64;
        (chi - freedom) / libm::sqrt(2.0 * freedom)
    }

    /// Every bit of every word is as likely, alone and together with any bit of the next word, and
    /// the bits of a word's rounds are independent: they agree once in 64 times.
    #[test]
    fn masks_are_uniform_and_independent() {
        let keys = 200_000u64;
        let mut single = vec![0u32; LANES * 64];
        let mut pairs = vec![vec![0u32; 64 * 64]; LANES];
        let mut agreeing = [0u32; LANES];
        for n in 0..keys {
            let digest = Digester::new(0).digest(&n.to_le_bytes());
            let one = masks(digest, 1);
            let three = masks(digest, 3);
            for lane in 0..LANES {
                assert_eq!(one[lane].count_ones(), 1);
                assert_eq!(three[lane] & one[lane], one[lane]);
                let (bit, next) = (one[lane].trailing_zeros(), one[(lane + 1) % LANES]);
                single[lane * 64 + bit as usize] += 1;
                pairs[lane][(bit * 64 + next.trailing_zeros()) as usize] += 1;
                agreeing[lane] += u32::from(masks(digest, 2)[lane] == one[lane]);
            }
        }
        assert!(unevenness(&single) < 6.0);
        for (lane, (pairs, agreeing)) in pairs.iter().zip(agreeing).enumerate() {
            assert!(unevenness(pairs) < 6.0, "{lane}");
            let expected = keys as f64 / 64.0;
            let off = (f64::from(agreeing) - expected).abs() / libm::sqrt(expected);
            assert!(off < 6.0, "{lane} {agreeing}");
        }
    }
}
