//! Packed integers that a sweep goes round.

use crate::PlanError;
use crate::bits::packed::Packed;
use crate::bits::pages::Pages;
use alloc::vec::Vec;
use core::ops::{Deref, Range};

/// [`Packed`] cells, and where any may be set: a sweep costs what is in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Swept {
    cells: Packed,
    pages: Pages,
}

/// To read.
impl Deref for Swept {
    type Target = Packed;

    #[inline]
    fn deref(&self) -> &Packed {
        &self.cells
    }
}

impl Swept {
    /// Bytes that `len` cells of `width` bits take, or `None` where that is beyond any memory.
    pub(crate) fn bytes_for(len: u64, width: u32) -> Option<u64> {
        Some(Packed::words_for(len, width)? as u64 * 8 + Pages::bytes_for(len, width))
    }

    /// Zeroed cells.
    ///
    /// # Errors
    /// As [`Packed::new`].
    pub(crate) fn new(len: u64, width: u32) -> Result<Self, PlanError> {
        Ok(Self { cells: Packed::new(len, width)?, pages: Pages::new(len, width)? })
    }

    /// As [`Packed::from_words`].
    pub(crate) fn from_words(words: Vec<u64>, len: u64, width: u32) -> Option<Self> {
        let cells = Packed::from_words(words, len, width)?;
        let mut pages = Pages::new(len, width).ok()?;
        for (at, _) in (0u64..).zip(cells.words()).filter(|&(_, &word)| word != 0) {
            // The cells of a word are of two pages at most.
            let (first, last) = (at * 64 / u64::from(width), (at * 64 + 63) / u64::from(width));
            pages.mark(first);
            pages.mark(last.min(len - 1));
        }
        Some(Self { cells, pages })
    }

    /// Bytes allocated.
    pub(crate) fn memory(&self) -> usize {
        self.cells.memory() + self.pages.memory()
    }

    /// As [`Packed::set_bits`].
    #[inline]
    pub(crate) fn set_bits(&mut self, cell: u64, from: u32, width: u32, value: u64) {
        self.cells.set_bits(cell, from, width, value);
        self.pages.mark(cell);
    }

    /// Zeroes everything.
    pub(crate) fn clear(&mut self) {
        let cells = &mut self.cells;
        self.pages.drain(cells.len(), |run| cells.clear_words_with(run));
    }

    /// Where any may be set, and when they were swept.
    #[inline(always)]
    pub(crate) fn pages(&self) -> &Pages {
        &self.pages
    }

    pub(crate) fn pages_mut(&mut self) -> &mut Pages {
        &mut self.pages
    }

    /// As [`Packed::clear_cells`].
    pub(crate) fn clear_cells(&mut self, range: Range<u64>) {
        self.cells.clear_cells(range);
    }

    /// The first cells of a range that may be set, as far as they lie together.
    #[inline]
    pub(crate) fn next_run(&self, range: Range<u64>) -> Option<Range<u64>> {
        self.pages.next_run(range)
    }

    /// After a range was swept: what has become empty is not looked at again.
    #[inline]
    pub(crate) fn tidy(&mut self, range: Range<u64>) {
        let cells = &self.cells;
        self.pages.tidy(range, cells.len(), |run| cells.is_clear(run));
    }

    /// As [`Packed::retain`]: what is kept depends on when a page was swept, or nothing is.
    #[inline]
    pub(crate) fn retain<K: Fn(u64) -> bool>(
        &mut self,
        range: Range<u64>,
        stamp_bits: u32,
        keep: impl Fn(u16) -> Option<K>,
    ) {
        let mut at = range.start;
        while let Some(run) = self.pages.next_run(at..range.end) {
            at = run.end;
            match keep(self.pages.age(run.start)) {
                Some(keep) => self.cells.retain(run, stamp_bits, keep),
                None => self.cells.clear_cells(run),
            }
        }
        self.tidy(range);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against cells without pages: any widths, writes and sweeps, and after a restoration.
        #[test]
        fn sweeps_as_packed_cells_do(
            stamp_bits in 1u32..=40, rest in 0u32..=40,
            steps in prop::collection::vec((0u64..5_000, any::<u64>(), 0u8..12), 1..150),
        ) {
            let (len, width) = (5_000, stamp_bits + rest);
            let mut swept = Swept::new(len, width).unwrap();
            let mut packed = Packed::new(len, width).unwrap();
            prop_assert_eq!(Some(swept.memory() as u64), Swept::bytes_for(len, width));
            for (cell, value, action) in steps {
                match action {
                    0 => {
                        let range = cell..(cell + value % 6_000).min(len);
                        let keep = |stamp: u64| stamp % 3 == 1;
                        swept.retain(range.clone(), stamp_bits, |_| Some(keep));
                        packed.retain(range, stamp_bits, keep);
                    }
                    1 => {
                        let words = swept.words().to_vec();
                        swept = Swept::from_words(words, len, width).unwrap();
                    }
                    2 if value % 8 == 0 => {
                        swept.clear();
                        packed.clear();
                    }
                    _ => {
                        swept.set_bits(cell, 0, stamp_bits, value >> (64 - stamp_bits));
                        packed.set_bits(cell, 0, stamp_bits, value >> (64 - stamp_bits));
                    }
                }
                prop_assert_eq!(&*swept, &packed);
            }
        }
    }
}
