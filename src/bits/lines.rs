//! A table of cache lines.

use crate::PlanError;
use crate::bits::prefetch::{Ahead, prefetch};
use crate::bits::{addressable_words, zeroed};
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

/// The words of a cache line.
pub(crate) type Line = [u64; WORDS];

const WORDS: usize = 8;

/// Lines that are zeroed together: a page of memory.
const BLOCK: usize = 64;

/// What a line looks like whose zeroing is still to come.
static ZEROED: Line = [0; WORDS];

/// `len` lines, all zero at first, each in a cache line of its own.
///
/// Zeroing all takes no time to speak of: a block of lines is zeroed when one of them is about to change.
pub(crate) struct Lines {
    /// The lines, with room for moving the first to where a cache line begins.
    words: Vec<u64>,
    /// The word at which the first begins.
    first: usize,
    len: u64,
    /// A bit for each block: is it yet to be zeroed?
    stale: Vec<u64>,
    /// Blocks that are.
    stale_blocks: usize,
}

/// Its size: the lines would be millions.
impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").field("len", &self.len).finish_non_exhaustive()
    }
}

impl Lines {
    /// Bytes that so many take, or `None` where that is beyond any memory.
    pub(crate) fn bytes_for(len: u64) -> Option<usize> {
        let words = words_for(len) + u128::from(marks_for(len));
        addressable_words(words).map(|words| words * 8)
    }

    /// Zeroed lines.
    ///
    /// # Errors
    /// As [`zeroed`].
    pub(crate) fn new(len: u64) -> Result<Self, PlanError> {
        let fits = Self::bytes_for(len);
        let words = zeroed(fits.and_then(|_| addressable_words(words_for(len))))?;
        let stale = zeroed(fits.and_then(|_| addressable_words(marks_for(len).into())))?;
        Ok(Self::begin(words, len, stale))
    }

    fn begin(words: Vec<u64>, len: u64, stale: Vec<u64>) -> Self {
        let past = words.as_ptr().addr() / 8 % WORDS;
        Self { words, first: (WORDS - past) % WORDS, len, stale, stale_blocks: 0 }
    }

    /// Words to read besides those of the lines, for [`Lines::from_words`].
    pub(crate) const SPARE: usize = WORDS - 1;

    /// Lines from the words of others with [`Lines::SPARE`] after them, or `None` where there are not as many.
    pub(crate) fn from_words(words: Vec<u64>, len: u64) -> Option<Self> {
        let count = usize::try_from(len).ok()?;
        (addressable_words(words_for(len))? == words.len()).then_some(())?;
        let stale = zeroed(addressable_words(marks_for(len).into())).ok()?;
        let mut lines = Self::begin(words, len, stale);
        lines.words.copy_within(..count * WORDS, lines.first);
        Some(lines)
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    #[inline(always)]
    fn all(&self) -> &[Line] {
        &self.words[self.first..].as_chunks().0[..self.len as usize]
    }

    #[inline(always)]
    fn all_mut(&mut self) -> &mut [Line] {
        &mut self.words[self.first..].as_chunks_mut().0[..self.len as usize]
    }

    #[inline(always)]
    fn is_stale(&self, at: usize) -> bool {
        self.stale_blocks > 0 && self.stale[at / BLOCK / 64] >> (at / BLOCK % 64) & 1 == 1
    }

    #[inline(always)]
    pub(crate) fn line(&self, at: u64) -> &Line {
        let at = at as usize;
        if self.is_stale(at) { &ZEROED } else { &self.words[self.first..].as_chunks().0[at] }
    }

    #[inline(always)]
    pub(crate) fn line_mut(&mut self, at: u64) -> &mut Line {
        let at = at as usize;
        if self.is_stale(at) {
            self.zero_block(at / BLOCK);
        }
        &mut self.words[self.first..].as_chunks_mut().0[at]
    }

    #[cold]
    fn zero_block(&mut self, block: usize) {
        self.stale[block / 64] &= !(1 << (block % 64));
        self.stale_blocks -= 1;
        let end = ((block + 1) * BLOCK).min(self.len as usize);
        self.all_mut()[block * BLOCK..end].fill(ZEROED);
    }

    /// Begins to fetch one.
    #[inline(always)]
    pub(crate) fn prefetch(&self, at: u64) {
        prefetch(&self.words, self.first + at as usize * WORDS);
    }

    /// To fetch them while they change.
    #[inline(always)]
    pub(crate) fn ahead(&self) -> Ahead<Line> {
        Ahead::of(self.all())
    }

    /// Is anything yet to be zeroed?
    #[inline(always)]
    pub(crate) fn has_stale(&self) -> bool {
        self.stale_blocks > 0
    }

    /// All lines as they are in memory, for whoever has [finished clearing](Lines::finish_clearing) those it reads.
    #[inline(always)]
    pub(crate) fn settled(&self) -> &[Line] {
        self.all()
    }

    /// [`Lines::settled`], to be changed.
    #[inline(always)]
    pub(crate) fn settled_mut(&mut self) -> &mut [Line] {
        self.all_mut()
    }

    /// Zeroes all, sooner or later.
    pub(crate) fn clear(&mut self) {
        let blocks = (self.len as usize).div_ceil(BLOCK);
        for (at, marks) in self.stale.iter_mut().enumerate() {
            let left = blocks - at * 64;
            *marks = if left < 64 { (1 << left) - 1 } else { u64::MAX };
        }
        self.stale_blocks = blocks;
    }

    /// Zeroes what is still to be zeroed of the blocks that these lines lie in.
    pub(crate) fn finish_clearing(&mut self, lines: Range<u64>) {
        if self.stale_blocks > 0 {
            for block in lines.start as usize / BLOCK..(lines.end as usize).div_ceil(BLOCK) {
                if self.is_stale(block * BLOCK) {
                    self.zero_block(block);
                }
            }
        }
    }

    /// Bytes allocated.
    pub(crate) fn memory(&self) -> usize {
        (self.words.capacity() + self.stale.capacity()) * 8
    }
}

/// Words of so many lines.
fn words_for(len: u64) -> u128 {
    u128::from(len) * WORDS as u128 + WORDS as u128 - 1
}

/// Words for a bit for each block.
fn marks_for(len: u64) -> u64 {
    len.div_ceil(BLOCK as u64 * 64)
}

impl Clone for Lines {
    fn clone(&self) -> Self {
        // The copy lies elsewhere, so its lines begin at another word.
        let words = alloc::vec![0; self.words.len()];
        let mut copy = Self::begin(words, self.len, self.stale.clone());
        copy.stale_blocks = self.stale_blocks;
        copy.all_mut().copy_from_slice(self.all());
        copy
    }
}

impl PartialEq for Lines {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && (0..self.len).all(|at| self.line(at) == other.line(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(len: u64) -> Lines {
        let mut lines = Lines::new(len).unwrap();
        for at in 0..len {
            *lines.line_mut(at) = [at + 1; WORDS];
        }
        lines
    }

    #[test]
    fn lines_begin_where_cache_lines_do_and_copies_too() {
        let lines = numbered(100);
        let mut words: Vec<u64> = (1..=100).flat_map(|at| [at; WORDS]).collect();
        words.extend([0; Lines::SPARE]);
        let copies = [lines.clone(), Lines::from_words(words, 100).unwrap()];
        for lines in [&lines, &copies[0], &copies[1]] {
            assert_eq!(lines.line(0).as_ptr().addr() % 64, 0);
            assert!((0..100).all(|at| *lines.line(at) == [at + 1; WORDS]));
        }
        assert_eq!(copies[0], lines);
        assert_eq!(Lines::from_words(alloc::vec![0; 8], 2), None);
    }

    #[test]
    fn sizes_beyond_the_target_are_none_and_not_small() {
        // The bytes of the first wrap to 448 where a size has 32 bits, those of the last where it has 64.
        for len in [1u64 << 26, 1 << 32, 1 << 58, 1 << 63, u64::MAX] {
            let bytes = u128::from(len) * 64;
            match Lines::bytes_for(len) {
                Some(counted) => assert!(counted as u128 >= bytes, "{len} lines"),
                None => assert!(bytes * 2 > isize::MAX as u128 || bytes >= 1 << 58, "{len} lines"),
            }
        }
        assert_eq!(Lines::bytes_for(1 << 56), None);
    }

    #[test]
    fn what_is_cleared_is_zero_at_once_and_keeps_what_comes_after() {
        for len in [1, 63, 64, 65, 4_095, 4_096, 4_097, 10_000] {
            let mut lines = numbered(len);
            lines.clear();
            assert_eq!(lines, Lines::new(len).unwrap());
            lines.line_mut(len / 2)[3] = 7;
            let copy = lines.clone();
            lines.finish_clearing(len / 3..len);
            lines.finish_clearing(0..len / 3);
            assert_eq!((lines.stale_blocks, &lines), (0, &copy));
            let sum: u64 = (0..len).map(|at| lines.line(at).iter().sum::<u64>()).sum();
            assert_eq!((sum, lines.line(len / 2)[3]), (7, 7));
        }
    }
}
