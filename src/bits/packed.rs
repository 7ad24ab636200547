//! Fixed-width integers packed without gaps.

use crate::PlanError;
use crate::bits::prefetch::prefetch;
use crate::bits::{addressable_words, looked_at, zeroed};
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

/// `len` cells of `width` bits each, all zero at first.
///
/// A cell may be read in parts ([`Packed::bits`]), so a cell of two fields may be wider than a word.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Packed {
    /// One word more than the cells need, so that a read of two words never runs past the end.
    words: Vec<u64>,
    /// Bits a cell.
    width: u32,
    len: u64,
}

/// Its size: the cells would be millions.
impl fmt::Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packed")
            .field("width", &self.width)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

impl Packed {
    /// Words that `len` cells of `width` bits take, or `None` where that is beyond any memory.
    pub(crate) fn words_for(len: u64, width: u32) -> Option<usize> {
        addressable_words((u128::from(len) * u128::from(width)).div_ceil(64) + 1)
    }

    /// Zeroed cells.
    ///
    /// # Errors
    /// As [`zeroed`].
    pub(crate) fn new(len: u64, width: u32) -> Result<Self, PlanError> {
        Ok(Self { words: zeroed(Self::words_for(len, width))?, width, len })
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
        self.bits_at(self.first_bit(cell) + u64::from(from), width)
    }

    /// Where a cell begins. Bits are counted in `u64`: a table has more than a size of 32 bits counts.
    #[inline]
    fn first_bit(&self, cell: u64) -> u64 {
        cell * u64::from(self.width)
    }

    #[inline]
    fn bits_at(&self, bit: u64, width: u32) -> u64 {
        looked_at(1);
        let (word, shift) = ((bit / 64) as usize, (bit % 64) as u32);
        // Two shifts by less than 64 each, as one by 64 would be undefined for shift 0.
        let high = self.words[word + 1] << 1 << (63 - shift);
        ((self.words[word] >> shift) | high) & (u64::MAX >> (64 - width))
    }

    /// Sets the bits that [`Packed::bits`] reads; `value` must fit in `width`.
    #[inline]
    pub(crate) fn set_bits(&mut self, cell: u64, from: u32, width: u32, value: u64) {
        let bit = self.first_bit(cell) + u64::from(from);
        let (word, shift) = ((bit / 64) as usize, (bit % 64) as u32);
        let mask = u64::MAX >> (64 - width);
        self.words[word] = (self.words[word] & !(mask << shift)) | (value << shift);
        let spill = mask >> 1 >> (63 - shift);
        self.words[word + 1] = (self.words[word + 1] & !spill) | (value >> 1 >> (63 - shift));
    }

    /// The bit at `at`, where cells have one bit each.
    #[inline]
    pub(crate) fn bit(&self, at: u64) -> bool {
        looked_at(1);
        self.words[(at / 64) as usize] >> (at % 64) & 1 != 0
    }

    /// Sets the bit at `at`, where cells have one bit each.
    #[inline]
    pub(crate) fn set_bit(&mut self, at: u64) {
        self.words[(at / 64) as usize] |= 1 << (at % 64);
    }

    /// Sets every bit that is set in another of the same length and width.
    pub(crate) fn unite(&mut self, other: &Self) {
        self.words.iter_mut().zip(&other.words).for_each(|(ours, theirs)| *ours |= theirs);
    }

    /// Zeroes everything.
    pub(crate) fn clear(&mut self) {
        looked_at(self.words.len());
        self.words.fill(0);
    }

    /// The words that hold the cells of a range, and parts of others at either end.
    fn words_with(&self, range: Range<u64>) -> Range<usize> {
        let first = self.first_bit(range.start) / 64;
        first as usize..self.first_bit(range.end).div_ceil(64) as usize
    }

    /// Is no bit set in the words that hold the cells of a range?
    #[inline]
    pub(crate) fn is_clear(&self, range: Range<u64>) -> bool {
        let words = &self.words[self.words_with(range)];
        let zeros = words.iter().take_while(|&&word| word == 0).count();
        looked_at(zeros + 1);
        zeros == words.len()
    }

    /// Zeroes the cells of a range.
    pub(crate) fn clear_cells(&mut self, range: Range<u64>) {
        let (first, last) = (self.first_bit(range.start), self.first_bit(range.end));
        let words = (first / 64) as usize..(last / 64) as usize;
        looked_at(words.len() + 1);
        let (below, above) = ((1 << (first % 64)) - 1, !((1 << (last % 64)) - 1));
        if words.is_empty() {
            self.words[words.start] &= below | above;
        } else {
            self.words[words.start] &= below;
            self.words[words.start + 1..words.end].fill(0);
            self.words[words.end] &= above;
        }
    }

    /// Zeroes the words that hold the cells of a range: to be used where all others have expired too.
    pub(crate) fn clear_words_with(&mut self, range: Range<u64>) {
        let words = self.words_with(range);
        looked_at(words.len());
        self.words[words].fill(0);
    }

    /// Begins to fetch the memory of a cell.
    #[inline]
    pub(crate) fn prefetch(&self, cell: u64) {
        self.prefetch_at(cell, 0);
    }

    /// Begins to fetch the memory of a cell's bit.
    #[inline]
    pub(crate) fn prefetch_at(&self, cell: u64, bit: u64) {
        prefetch(&self.words, ((self.first_bit(cell) + bit) / 64) as usize);
    }

    /// The first cell at or after `from` and before `until` that may have a bit set: skips runs
    /// of zero words at the speed of memory, so that sweeping a nearly empty table is cheap.
    #[inline]
    pub(crate) fn next_occupied(&self, from: u64, until: u64) -> Option<u64> {
        if from >= until {
            return None;
        }
        let first = (self.first_bit(from) / 64) as usize;
        let last = self.first_bit(until).div_ceil(64) as usize;
        let zeros = self.words[first..last].iter().take_while(|&&w| w == 0).count();
        looked_at(zeros + 1);
        if first + zeros == last {
            return None;
        }
        // The cell that holds the first bit of the first non-zero word.
        let cell = (first + zeros) as u64 * 64 / u64::from(self.width);
        Some(cell.max(from)).filter(|&cell| cell < until)
    }

    /// Clears every cell of the range unless `keep` says yes to its first `stamp_bits` bits.
    ///
    /// Without branches a cell: which ones have expired is as good as random, so a branch would be
    /// guessed wrong half the time.
    pub(crate) fn retain(
        &mut self,
        range: Range<u64>,
        stamp_bits: u32,
        keep: impl Fn(u64) -> bool,
    ) {
        let mut at = range.start;
        while at < range.end {
            let word = (self.first_bit(at) / 64) as usize;
            if self.words[word] | self.words[word + 1] == 0 {
                let Some(occupied) = self.next_occupied(at, range.end) else { return };
                at = occupied;
            }
            // A few cells before looking for zeros again.
            let mut bit = self.first_bit(at);
            let stop = (at + 4).min(range.end);
            for _ in at..stop {
                let clear = u64::from(keep(self.bits_at(bit, stamp_bits))).wrapping_sub(1);
                self.clear_at(bit, stamp_bits, clear);
                if self.width > stamp_bits {
                    self.clear_at(bit + u64::from(stamp_bits), self.width - stamp_bits, clear);
                }
                bit += u64::from(self.width);
            }
            at = stop;
        }
    }

    /// Clears those of `width` bits that are set in `which`.
    #[inline]
    fn clear_at(&mut self, bit: u64, width: u32, which: u64) {
        let (word, shift) = ((bit / 64) as usize, (bit % 64) as u32);
        let mask = (u64::MAX >> (64 - width)) & which;
        self.words[word] &= !(mask << shift);
        self.words[word + 1] &= !(mask >> 1 >> (63 - shift));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// More than 2^32 bits: 553 MiB, of which but a few pages are touched.
    #[test]
    fn bits_past_2_to_the_32nd_are_others_than_the_first() {
        let mut packed = Packed::new(553 << 20, 8).unwrap();
        let cells = [0u64, 1, 1 << 29, (1 << 29) + 1, (553 << 20) - 1];
        for (cell, value) in cells.into_iter().zip(1..) {
            packed.set_bits(cell, 0, 8, value);
        }
        for (cell, value) in cells.into_iter().zip(1..) {
            assert_eq!(packed.bits(cell, 0, 8), value);
        }
        assert_eq!(packed.next_occupied((1 << 29) - 8, 553 << 20), Some(1 << 29));
        packed.retain(1 << 29..(1 << 29) + 4, 8, |value| value == 4);
        assert_eq!(cells.map(|cell| packed.bits(cell, 0, 8)), [1, 2, 0, 4, 5]);
    }

    #[test]
    fn sizes_beyond_the_target_are_none_and_not_small() {
        for (len, width) in [(1u64 << 32, 32), (1 << 34, 128), (u64::MAX, 1), (u64::MAX, 192)] {
            let bytes = u128::from(len) * u128::from(width) / 8;
            match Packed::words_for(len, width) {
                Some(words) => assert!(words as u128 * 8 >= bytes, "{len} cells"),
                None => assert!(bytes > isize::MAX as u128 || bytes >= 1 << 58, "{len} cells"),
            }
        }
    }

    proptest! {
        /// Against a plain vector: any width, any order of writes, two fields a cell.
        #[test]
        fn behaves_as_a_vector_of_pairs(
            a in 1u32..=64, b in 1u32..=64,
            writes in prop::collection::vec((0u64..50, any::<u64>(), any::<u64>()), 1..200),
        ) {
            let mut packed = Packed::new(50, a + b).unwrap();
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

        /// Against a plain vector: what is kept, what is cleared, and nothing outside the range.
        #[test]
        fn retain_clears_what_it_is_told_to(
            stamp_bits in 1u32..=40, rest in 0u32..=40,
            set in prop::collection::btree_map(0u64..1000, any::<u64>(), 0..300),
            start in 0u64..1000, len in 0u64..1000,
        ) {
            let mut packed = Packed::new(1000, stamp_bits + rest).unwrap();
            for (&cell, &value) in &set {
                packed.set_bits(cell, 0, stamp_bits, value >> (64 - stamp_bits));
                if rest > 0 && value >> (64 - stamp_bits) > 0 {
                    packed.set_bits(cell, stamp_bits, rest, value.rotate_left(32) >> (64 - rest));
                }
            }
            let (range, before) = (start..(start + len).min(1000), packed.clone());
            let keep = |stamp: u64| stamp % 3 == 1;
            packed.retain(range.clone(), stamp_bits, keep);
            let mut cleared = before.clone();
            cleared.clear_cells(range.clone());
            for cell in 0..1000 {
                for (from, bits) in [(0, stamp_bits), (stamp_bits, rest)].into_iter().filter(|&(_, bits)| bits > 0) {
                    let left = if range.contains(&cell) { 0 } else { before.bits(cell, from, bits) };
                    prop_assert_eq!(cleared.bits(cell, from, bits), left);
                }
                let stamp = before.bits(cell, 0, stamp_bits);
                let kept = !range.contains(&cell) || keep(stamp);
                prop_assert_eq!(packed.bits(cell, 0, stamp_bits), if kept { stamp } else { 0 });
                if rest > 0 {
                    let other = before.bits(cell, stamp_bits, rest);
                    prop_assert_eq!(packed.bits(cell, stamp_bits, rest), if kept { other } else { 0 });
                }
            }
        }
    }
}
