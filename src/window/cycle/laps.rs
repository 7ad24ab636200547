//! How far the sweep is behind.

/// Parts of a table, in each of which it is noted when the sweep came to it.
const PARTS: usize = 64;

/// When the sweep came to each part of a table the last time, on a clock of its own.
///
/// The clock counts grains as time does, but skips most of a pause in which everything expires: only whether a page was
/// swept since matters of it.
#[derive(Clone, Debug)]
pub(super) struct Laps {
    /// The present time.
    pub(super) clock: u64,
    /// When the sweep came to each part.
    entered: [u64; PARTS],
    /// When it had come to the part in which it is, the time before.
    before: u64,
    /// Cells of a part.
    cells: u64,
    /// Pages that were marked when the last step was done.
    pub(super) used: u64,
    /// Cells that ought to have been swept by now.
    pub(super) owed: u64,
    /// Is there more to be swept than an arrival had time for?
    pub(super) busy: bool,
    /// The first tick at which there is anything to do.
    pub(super) next: u64,
}

/// Always: it says what is yet to be swept, not what the table holds.
impl PartialEq for Laps {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Laps {
    pub(super) fn new(next: u64) -> Self {
        let (entered, cells) = ([0; PARTS], u64::MAX);
        Self { clock: 0, entered, before: 0, cells, used: 0, owed: 0, busy: false, next }
    }

    /// Begins with a table of so many cells, in pages of so many, all of which were swept at a time or after it.
    pub(super) fn begin(&mut self, clock: u64, swept: u64, cells: u64, page: u64) {
        self.clock = clock;
        self.entered = [swept; PARTS];
        self.before = swept;
        self.cells = cells.div_ceil(page).div_ceil(PARTS as u64).max(1).saturating_mul(page);
        (self.owed, self.busy) = (0, false);
    }

    /// The sweep passes over cells now.
    pub(super) fn pass(&mut self, cells: core::ops::Range<u64>) {
        if cells.is_empty() {
            return;
        }
        let parts = cells.start.div_ceil(self.cells)..=(cells.end - 1) / self.cells;
        for part in parts {
            let entered = &mut self.entered[part as usize % PARTS];
            self.before = *entered;
            *entered = self.clock;
        }
    }

    /// Nothing ahead of the sweep, when it is at a cell, was swept before this time.
    pub(super) fn oldest(&self, cursor: u64) -> u64 {
        if cursor.is_multiple_of(self.cells) {
            self.entered[(cursor / self.cells) as usize % PARTS]
        } else {
            self.before
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    proptest! {
        /// Against a time for each cell: no cell is older than it is called.
        #[test]
        fn no_page_is_older_than_it_is_called(
            page in 1u64..20, cells in 1u64..5_000,
            steps in prop::collection::vec((0u64..3_000, 0u64..5), 1..200),
        ) {
            let (mut laps, mut swept, mut cursor) = (Laps::new(0), vec![7; cells as usize], 0);
            laps.begin(7, 7, cells, page);
            for (count, gap) in steps {
                laps.clock += gap;
                let end = (cursor + count).min(cells);
                laps.pass(cursor..end);
                swept[cursor as usize..end as usize].fill(laps.clock);
                cursor = end % cells;
                let oldest = swept.iter().min();
                prop_assert!(oldest.is_some_and(|&oldest| laps.oldest(cursor) <= oldest));
            }
        }
    }
}
