//! Where a table may have something set, so that sweeps skip the rest.

use crate::PlanError;
use crate::bits::looked_at;
use crate::bits::{addressable_words, zeroed, zeroed_pairs};
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

/// Bits of a table that a page has at most, unless a single cell has more.
const PAGE_BITS: u32 = 2048;

/// A bit for each page of a table that is set when any of its cells may be, and above these a bit for each
/// word of them: sweeping a nearly empty table costs what is in it.
///
/// A page is a power of two of cells. Its bit is set with the first cell and taken back by a sweep
/// that finds the page empty. The bits are about 1/1,000 to 1/2,000 of a table of narrow cells.
///
/// For each page it is noted, too, when it was last swept, in two bytes: 1/128 to 1/64 of the table. So the
/// sweep may fall behind, and what a page holds is still understood.
#[derive(Clone)]
pub(crate) struct Pages {
    marked: Vec<u64>,
    /// A bit for each word of `marked` that is not 0.
    words: Vec<u64>,
    /// Pages that are marked.
    used: u64,
    /// When each page was last swept, or first marked since: the time as a number that goes round.
    swept: Vec<u16>,
    /// The present time, as such a number.
    now: u16,
    /// When the sweep came to the page that it has not left.
    entered: u16,
    /// May a page have been swept longer ago than its cells tell time?
    behind: bool,
    /// Cells in a page, as a power of two.
    shift: u32,
}

/// Always: it says where to look, not what is there.
impl PartialEq for Pages {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Pages {}

/// Nothing but the size of a page.
impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").field("shift", &self.shift).finish_non_exhaustive()
    }
}

/// Words for a bit each of so many.
fn words_of(bits: u64) -> u64 {
    bits.div_ceil(64).max(1)
}

impl Pages {
    fn shift_for(width: u32) -> u32 {
        (PAGE_BITS / width.max(1)).checked_ilog2().unwrap_or(0)
    }

    /// Pages, and words of both levels.
    fn sizes(cells: u64, width: u32) -> (u64, u64, u64) {
        let pages = cells.div_ceil(1 << Self::shift_for(width));
        let marked = words_of(pages);
        (pages, marked, words_of(marked))
    }

    /// Bytes that the pages of so many cells of `width` bits take.
    pub(crate) fn bytes_for(cells: u64, width: u32) -> u64 {
        let (pages, marked, words) = Self::sizes(cells, width);
        (marked + words) * 8 + pages * 2
    }

    /// No page marked.
    ///
    /// # Errors
    /// As [`zeroed`].
    pub(crate) fn new(cells: u64, width: u32) -> Result<Self, PlanError> {
        let (pages, marked, words) = Self::sizes(cells, width);
        let zeroed_words = |words: u64| zeroed(addressable_words(u128::from(words)));
        let (marked, words) = (zeroed_words(marked)?, zeroed_words(words)?);
        let swept = zeroed_pairs(usize::try_from(pages).ok())?;
        let (shift, behind) = (Self::shift_for(width), false);
        Ok(Self { marked, words, used: 0, swept, now: 0, entered: 0, behind, shift })
    }

    /// Bytes allocated.
    pub(crate) fn memory(&self) -> usize {
        (self.marked.capacity() + self.words.capacity()) * 8 + self.swept.capacity() * 2
    }

    /// Notes that a cell may be set.
    #[inline(always)]
    pub(crate) fn mark(&mut self, cell: u64) {
        let page = cell >> self.shift;
        if self.marked[(page / 64) as usize] >> (page % 64) & 1 == 0 {
            self.mark_first(page);
        }
    }

    #[inline(never)]
    fn mark_first(&mut self, page: u64) {
        self.marked[(page / 64) as usize] |= 1 << (page % 64);
        self.words[(page / 64 / 64) as usize] |= 1 << (page / 64 % 64);
        self.swept[page as usize] = self.now;
        self.used += 1;
    }

    fn unmark(&mut self, page: u64) {
        let word = &mut self.marked[(page / 64) as usize];
        *word &= !(1 << (page % 64));
        if *word == 0 {
            self.words[(page / 64 / 64) as usize] &= !(1 << (page / 64 % 64));
        }
        self.used -= 1;
    }

    /// Pages in all.
    pub(crate) fn len(&self) -> usize {
        self.swept.len()
    }

    /// Pages that are marked.
    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// Cells of a page.
    pub(crate) fn cells_a_page(&self) -> u64 {
        1 << self.shift
    }

    /// The cells of the page that a cell lies in, in a table of so many.
    pub(crate) fn page_with(&self, cell: u64, cells: u64) -> Range<u64> {
        let start = cell >> self.shift << self.shift;
        start..cells.min(start + self.cells_a_page())
    }

    /// What pages are swept and marked from now on, is so at this time.
    pub(crate) fn set_now(&mut self, now: u16) {
        self.now = now;
    }

    /// Every page was last swept at this time.
    pub(crate) fn all_swept_at(&mut self, time: u16) {
        self.swept.fill(time);
        self.entered = time;
    }

    /// How long ago the page of a cell was swept, in the units of [`Pages::set_now`].
    #[inline]
    pub(crate) fn age(&self, cell: u64) -> u16 {
        looked_at(1);
        self.now.wrapping_sub(self.swept[(cell >> self.shift) as usize])
    }

    /// May a page have been swept longer ago than its cells tell time?
    #[inline(always)]
    pub(crate) fn is_behind(&self) -> bool {
        self.behind
    }

    pub(crate) fn set_behind(&mut self, behind: bool) {
        self.behind = behind;
    }

    /// The first cells of a range that may be set, as far as they are of one page.
    #[inline]
    pub(crate) fn next_run(&self, range: Range<u64>) -> Option<Range<u64>> {
        if range.is_empty() {
            return None;
        }
        let last = (range.end - 1) >> self.shift;
        let page = self.next_marked(range.start >> self.shift).filter(|&page| page <= last)?;
        let start = (page << self.shift).max(range.start);
        // The last page may end beyond the table.
        Some(start..start.max((page + 1) << self.shift).min(range.end))
    }

    /// The first marked page from this one on.
    #[inline]
    fn next_marked(&self, page: u64) -> Option<u64> {
        looked_at(1);
        let word = page / 64;
        let here = self.marked[word as usize] & (u64::MAX << (page % 64));
        if here != 0 {
            return Some(word * 64 + u64::from(here.trailing_zeros()));
        }
        let word = next_one(&self.words, word + 1)?;
        Some(word * 64 + u64::from(self.marked[word as usize].trailing_zeros()))
    }

    /// After a range of cells was swept: notes the time of those pages that end in it, or takes back the marks of
    /// those that are empty. `cells` is how many the table has.
    #[inline]
    pub(crate) fn tidy(
        &mut self,
        range: Range<u64>,
        cells: u64,
        mut is_empty: impl FnMut(Range<u64>) -> bool,
    ) {
        let to_the_end = range.end == cells;
        let last = if to_the_end { cells } else { range.end >> self.shift << self.shift };
        let mut at = range.start >> self.shift << self.shift;
        while let Some(run) = self.next_run(at..last) {
            at = run.end;
            let page = run.start >> self.shift;
            let time = if range.start <= run.start { self.now } else { self.entered };
            if is_empty(run) {
                self.unmark(page);
            } else {
                self.note_swept(page, time);
            }
        }
        if last < range.end && range.start <= last {
            self.entered = self.now;
        }
    }

    /// A page was swept by itself, perhaps, since the sweep came to it.
    fn note_swept(&mut self, page: u64, time: u16) {
        let swept = &mut self.swept[page as usize];
        if self.now.wrapping_sub(time) < self.now.wrapping_sub(*swept) {
            *swept = time;
        }
    }

    /// Takes back every mark, naming the cells of the pages that had one.
    pub(crate) fn drain(&mut self, cells: u64, mut each: impl FnMut(Range<u64>)) {
        let mut at = 0;
        while let Some(run) = self.next_run(at..cells) {
            at = run.end;
            self.unmark(run.start >> self.shift);
            each(run);
        }
    }
}

/// The first bit that is set, from this one on.
fn next_one(words: &[u64], from: u64) -> Option<u64> {
    let first = (from / 64) as usize;
    let here = words.get(first)? & (u64::MAX << (from % 64));
    if here != 0 {
        return Some(from / 64 * 64 + u64::from(here.trailing_zeros()));
    }
    let at = first + 1 + words[first + 1..].iter().position(|&word| word != 0)?;
    looked_at(at - first);
    Some(at as u64 * 64 + u64::from(words[at].trailing_zeros()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    proptest! {
        /// Against a set: runs cover what is set, pages without anything are not named after a tidy
        /// that passed their end, and memory is as planned.
        #[test]
        fn runs_cover_what_is_set(
            width in 1u32..3_000, cells in 1u64..40_000,
            steps in prop::collection::vec((0u64..40_000, 0u64..40_000, any::<bool>()), 1..60),
        ) {
            let mut pages = Pages::new(cells, width).unwrap();
            let mut set = BTreeSet::new();
            prop_assert_eq!(pages.memory() as u64, Pages::bytes_for(cells, width));
            for (a, b, sweeps) in steps {
                let (a, b) = (a % cells, b % (cells + 1));
                if !sweeps {
                    pages.mark(a);
                    set.insert(a);
                    continue;
                }
                let range = a..b.max(a);
                let mut at = range.start;
                let mut seen = BTreeSet::new();
                while let Some(run) = pages.next_run(at..range.end) {
                    prop_assert!(run.start >= at && run.end <= range.end && !run.is_empty());
                    at = run.end;
                    seen.extend(set.range(run).copied());
                }
                prop_assert_eq!(&seen, &set.range(range.clone()).copied().collect());
                set.retain(|cell| !range.contains(cell));
                pages.tidy(range.clone(), cells, |run| set.range(run).next().is_none());
            }
            pages.tidy(0..cells, cells, |run| set.range(run).next().is_none());
            let page = |cell: &u64| cell >> pages.shift;
            let mut named = BTreeSet::new();
            pages.clone().drain(cells, |run| { named.insert(page(&run.start)); });
            prop_assert_eq!(named, set.iter().map(page).collect());
        }
    }
}
