//! Which blocks of a table may hold entries: a sweep passes over the others.

use crate::PlanError;
use crate::bits::zeroed;
use alloc::vec::Vec;
use core::ops::Range;

/// Lines of a block.
const BLOCK: u64 = 64;

/// A bit for each block of lines: has it had an entry since it was found empty?
///
/// So what a sweep costs is bounded by what was put in, not by the size of the table, however long the gap was.
#[derive(Clone, Debug)]
pub(super) struct Marks {
    words: Vec<u64>,
    lines: u64,
}

impl Marks {
    pub(super) fn bytes_for(lines: u64) -> u64 {
        lines.div_ceil(BLOCK * 64) * 8
    }

    /// None is set.
    ///
    /// # Errors
    /// As [`zeroed`].
    pub(super) fn new(lines: u64) -> Result<Self, PlanError> {
        let words = usize::try_from(lines.div_ceil(BLOCK * 64)).ok();
        Ok(Self { words: zeroed(words)?, lines })
    }

    /// Marks the block of a line.
    #[inline(always)]
    pub(super) fn set(&mut self, line: u64) {
        let block = line / BLOCK;
        if let Some(word) = self.words.get_mut((block / 64) as usize) {
            *word |= 1 << (block % 64);
        }
    }

    /// The block of a line is empty.
    pub(super) fn unset(&mut self, line: u64) {
        let block = line / BLOCK;
        self.words[(block / 64) as usize] &= !(1 << (block % 64));
    }

    /// The first block that may hold entries and has lines from one to another, the end not included.
    pub(super) fn next(&self, from: u64, end: u64) -> Option<Range<u64>> {
        let mut block = from / BLOCK;
        while from < end && block * BLOCK < end {
            let rest = self.words.get((block / 64) as usize)? >> (block % 64);
            if rest != 0 {
                block += u64::from(rest.trailing_zeros());
                let lines = block * BLOCK..((block + 1) * BLOCK).min(self.lines);
                return (lines.start < end).then_some(lines);
            }
            block = (block / 64 + 1) * 64;
        }
        None
    }

    pub(super) fn clear(&mut self) {
        self.words.fill(0);
    }

    /// Bytes allocated.
    pub(super) fn memory(&self) -> usize {
        self.words.capacity() * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a look at every block.
        #[test]
        fn the_next_marked_block_is_found(
            lines in 1u64..20_000, marked in prop::collection::vec(any::<u64>(), 0..5),
            from: u64, len: u64,
        ) {
            let mut marks = Marks::new(lines).unwrap();
            let marked: Vec<u64> = marked.into_iter().map(|line| line % lines).collect();
            marked.iter().for_each(|&line| marks.set(line));
            let from = from % lines;
            let end = from + len % (lines - from + 1);
            let first = (from..end).map(|line| line / BLOCK * BLOCK).find(|line| {
                marked.iter().any(|one| one / BLOCK == line / BLOCK)
            });
            let expected = first.map(|line| line / BLOCK * BLOCK);
            prop_assert_eq!(marks.next(from, end).map(|block| block.start), expected);
            if let Some(block) = marks.next(from, end) {
                marks.unset(block.start);
                prop_assert!(marks.next(from, end) != Some(block));
            }
        }
    }
}
