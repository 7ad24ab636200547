//! A table of cache lines.

use crate::PlanError;
use crate::bits::prefetch::prefetch;
use crate::bits::zeroed;
use alloc::vec::Vec;

/// The words of a cache line.
pub(crate) type Line = [u64; WORDS];

const WORDS: usize = 8;

/// `len` lines, all zero at first, each in a cache line of its own.
#[derive(Debug)]
pub(crate) struct Lines {
    /// The lines, with room for moving the first to where a cache line begins.
    words: Vec<u64>,
    /// The word at which the first begins.
    first: usize,
    len: u64,
}

impl Lines {
    /// Bytes that so many take, or `None` where that is beyond any memory.
    pub(crate) fn bytes_for(len: u64) -> Option<usize> {
        let words = (len < 1 << 50).then(|| usize::try_from(len).ok()).flatten()?;
        words.checked_mul(64)?.checked_add(56)
    }

    /// Zeroed lines.
    ///
    /// # Errors
    /// As [`zeroed`].
    pub(crate) fn new(len: u64) -> Result<Self, PlanError> {
        let words = zeroed(Self::bytes_for(len).map(|bytes| bytes / 8))?;
        Ok(Self::begin(words, len))
    }

    fn begin(words: Vec<u64>, len: u64) -> Self {
        let past = words.as_ptr().addr() / 8 % WORDS;
        Self { words, first: (WORDS - past) % WORDS, len }
    }

    /// Lines from the words of others, or `None` where there are not as many.
    pub(crate) fn from_words(from: &[u64], len: u64) -> Option<Self> {
        let mut lines = Self::new(len).ok()?;
        let first = lines.first;
        let to = lines.words.get_mut(first..first + usize::try_from(len).ok()? * WORDS)?;
        (to.len() == from.len()).then(|| to.copy_from_slice(from))?;
        Some(lines)
    }

    /// The words of all.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words[self.first..self.first + self.len as usize * WORDS]
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    #[inline(always)]
    pub(crate) fn line(&self, at: u64) -> &Line {
        &self.words[self.first..].as_chunks().0[at as usize]
    }

    #[inline(always)]
    pub(crate) fn line_mut(&mut self, at: u64) -> &mut Line {
        &mut self.words[self.first..].as_chunks_mut().0[at as usize]
    }

    /// Begins to fetch one.
    #[inline(always)]
    pub(crate) fn prefetch(&self, at: u64) {
        prefetch(&self.words, self.first + at as usize * WORDS);
    }

    /// Zeroes all.
    pub(crate) fn clear(&mut self) {
        self.words.fill(0);
    }

    /// Bytes allocated.
    pub(crate) fn memory(&self) -> usize {
        self.words.capacity() * 8
    }
}

impl Clone for Lines {
    fn clone(&self) -> Self {
        // The copy lies elsewhere, so its lines begin at another word.
        let mut copy = Self::begin(alloc::vec![0; self.words.len()], self.len);
        let first = copy.first;
        copy.words[first..first + self.words().len()].copy_from_slice(self.words());
        copy
    }
}

impl PartialEq for Lines {
    fn eq(&self, other: &Self) -> bool {
        self.words() == other.words()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_begin_where_cache_lines_do_and_copies_too() {
        let mut lines = Lines::new(100).unwrap();
        for at in 0..100 {
            *lines.line_mut(at) = [at + 1; WORDS];
        }
        let copies = [lines.clone(), Lines::from_words(lines.words(), 100).unwrap()];
        for lines in [&lines, &copies[0], &copies[1]] {
            assert_eq!(lines.line(0).as_ptr().addr() % 64, 0);
            assert!((0..100).all(|at| *lines.line(at) == [at + 1; WORDS]));
        }
        assert_eq!(copies[0], lines);
        assert_eq!(Lines::from_words(&[0; 8], 2), None);
    }
}
