//! Fixed-width integers packed without gaps.

use crate::bits::prefetch::prefetch;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// `len` cells of `width` bits each, all zero at first.
///
/// A cell may be read in parts ([`Packed::bits`]), so a cell of two fields may be wider than a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packed {
    /// One word more than the cells need, so that a read of two words never runs past the end.
    words: Vec<u64>,
    /// Bits a cell, 1 to 128.
    width: u32,
    len: u64,
}

impl Packed {
    /// Words that `len` cells of `width` bits take, or `None` where that is beyond any memory.
    pub(crate) fn words_for(len: u64, width: u32) -> Option<usize> {
        let words = (u128::from(len) * u128::from(width)).div_ceil(64) + 1;
        // Positions are counted in bits, so those must fit too.
        let words = (words < 1 << 56).then(|| usize::try_from(words).ok()).flatten()?;
        words.checked_mul(64).map(|_| words)
    }

    /// Zeroed cells. The caller has checked the size with [`Packed::words_for`].
    pub(crate) fn new(len: u64, width: u32) -> Self {
        let words = Self::words_for(len, width).unwrap_or(1);
        Self { words: vec![0; words], width, len }
    }

    /// Cells from the words of another, or `None` if their number is not what the shape implies
    /// or a bit past the last cell is set.
    pub(crate) fn from_words(words: Vec<u64>, len: u64, width: u32) -> Option<Self> {
        let packed = Self { words, width, len };
        (Self::words_for(len, width)? == packed.words.len() && packed.tail_is_clear())
            .then_some(packed)
    }

    fn tail_is_clear(&self) -> bool {
        let used = u128::from(self.len) * u128::from(self.width);
        let (word, bit) = ((used / 64) as usize, (used % 64) as u32);
        self.words.get(word).is_none_or(|w| w >> bit == 0)
            && self.words.iter().skip(word + 1).all(|&w| w == 0)
    }

    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Bytes allocated.
    pub(crate) fn memory(&self) -> usize {
        self.words.capacity() * 8
    }

    /// The `width` (1 to 64) bits of a cell that begin at its bit `from`.
    #[inline]
    pub(crate) fn bits(&self, cell: u64, from: u32, width: u32) -> u64 {
        let bit = cell as usize * self.width as usize + from as usize;
        let (word, shift) = (bit / 64, (bit % 64) as u32);
        // Two shifts by less than 64 each, as one by 64 would be undefined for shift 0.
        let high = self.words[word + 1] << 1 << (63 - shift);
        ((self.words[word] >> shift) | high) & (u64::MAX >> (64 - width))
    }

    /// Sets the bits that [`Packed::bits`] reads; `value` must fit in `width`.
    #[inline]
    pub(crate) fn set_bits(&mut self, cell: u64, from: u32, width: u32, value: u64) {
        let bit = cell as usize * self.width as usize + from as usize;
        let (word, shift) = (bit / 64, (bit % 64) as u32);
        let mask = u64::MAX >> (64 - width);
        self.words[word] = (self.words[word] & !(mask << shift)) | (value << shift);
        let spill = mask >> 1 >> (63 - shift);
        self.words[word + 1] = (self.words[word + 1] & !spill) | (value >> 1 >> (63 - shift));
    }

    /// Zeroes everything.
    pub(crate) fn clear(&mut self) {
        self.words.fill(0);
    }

    /// Begins to fetch the memory of a cell.
    #[inline]
    pub(crate) fn prefetch(&self, cell: u64) {
        prefetch(&self.words, cell as usize * self.width as usize / 64);
    }

    /// The first cell at or after `from` and before `until` that may have a bit set: skips runs
    /// of zero words at the speed of memory, so that sweeping a nearly empty table is cheap.
    #[inline]
    pub(crate) fn next_occupied(&self, from: u64, until: u64) -> Option<u64> {
        if from >= until {
            return None;
        }
        let width = self.width as usize;
        let first = from as usize * width / 64;
        let last = (until as usize * width).div_ceil(64);
        let zeros = self.words[first..last].iter().take_while(|&&w| w == 0).count();
        if first + zeros == last {
            return None;
        }
        // The cell that holds the first bit of the first non-zero word.
        let cell = ((first + zeros) * 64 / width) as u64;
        Some(cell.max(from)).filter(|&cell| cell < until)
    }

    /// Calls `visit` for every cell of the range that may be non-zero.
    pub(crate) fn sweep(&mut self, range: Range<u64>, mut visit: impl FnMut(&mut Self, u64)) {
        let mut at = range.start;
        while let Some(cell) = self.next_occupied(at, range.end) {
            // A handful of cells before looking for zeros again: the look costs a division.
            let stop = (cell + 16).min(range.end);
            for cell in cell..stop {
                visit(self, cell);
            }
            at = stop;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a plain vector: any width, any order of writes, two fields a cell.
        #[test]
        fn behaves_as_a_vector_of_pairs(
            a in 1u32..=64, b in 1u32..=64,
            writes in prop::collection::vec((0u64..50, any::<u64>(), any::<u64>()), 1..200),
        ) {
            let mut packed = Packed::new(50, a + b);
            let mut plain = [(0u64, 0u64); 50];
            for (cell, x, y) in writes {
                let (x, y) = (x >> (64 - a), y >> (64 - b));
                packed.set_bits(cell, 0, a, x);
                packed.set_bits(cell, a, b, y);
                plain[cell as usize] = (x, y);
                for (cell, &(x, y)) in plain.iter().enumerate() {
                    prop_assert_eq!(packed.bits(cell as u64, 0, a), x);
                    prop_assert_eq!(packed.bits(cell as u64, a, b), y);
                }
            }
            let copy = Packed::from_words(packed.words().to_vec(), 50, a + b);
            prop_assert_eq!(copy, Some(packed));
        }

        /// A sweep visits every occupied cell of its range, once, in order.
        #[test]
        fn a_sweep_misses_nothing(
            width in 1u32..=100,
            set in prop::collection::btree_set(0u64..1000, 0..40),
            start in 0u64..1000, len in 0u64..1000,
        ) {
            let mut packed = Packed::new(1000, width);
            for &cell in &set {
                packed.set_bits(cell, width - 1, 1, 1);
            }
            let range = start..(start + len).min(1000);
            let mut seen = Vec::new();
            packed.sweep(range.clone(), |packed, cell| {
                assert!(range.contains(&cell));
                if packed.bits(cell, width - 1, 1) == 1 {
                    seen.push(cell);
                }
            });
            let expected: Vec<u64> = set.into_iter().filter(|c| range.contains(c)).collect();
            prop_assert_eq!(seen, expected);
        }
    }
}
