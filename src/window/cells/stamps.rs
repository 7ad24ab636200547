//! Cells that hold the moment they were last set.

use crate::bits::packed::Packed;
use crate::bits::pages::Pages;
use crate::bits::swept::Swept;
use crate::codec::{Reader, Writer};
use crate::window::cells::core::{Ages, Cells};
use crate::window::cells::shape::Shape;
use crate::window::cycle::{Cycle, Sweep};
use crate::{PlanError, SnapshotError};
use core::ops::Range;

/// A stamp a cell, 0 for "unset".
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stamps {
    cells: Swept,
    /// Width of a stamp.
    bits: u32,
}

impl Stamps {
    pub(super) fn new(cells: u64, bits: u32) -> Result<Self, PlanError> {
        Ok(Self { cells: Swept::new(cells, bits)?, bits })
    }

    pub(super) fn read(
        shape: &Shape,
        cycle: &Cycle,
        input: &mut Reader<'_>,
    ) -> Result<Self, SnapshotError> {
        let bits = cycle.pace().stamp_bits();
        let words = input.words(Packed::words_for(shape.cells, bits))?;
        let cells = Swept::from_words(words, shape.cells, bits)
            .ok_or(SnapshotError::Invalid("bits set past the end of a table"))?;
        Ok(Self { cells, bits })
    }

    #[inline]
    fn is_live(&self, cell: u64, cycle: &Cycle, later: u64) -> bool {
        self.view(cell, cycle).is_live_later(self.cells.bits(cell, 0, self.bits), later)
    }
}

impl Sweep for Stamps {
    #[inline(always)]
    fn pages(&self) -> Option<&Pages> {
        Some(self.cells.pages())
    }

    fn pages_mut(&mut self) -> Option<&mut Pages> {
        Some(self.cells.pages_mut())
    }

    #[inline]
    fn clear_expired(&mut self, range: Range<u64>, cycle: &Cycle) {
        self.cells.retain(range, self.bits, |age| cycle.live_of(age));
    }

    fn clear(&mut self) {
        self.cells.clear();
    }
}

impl Cells for Stamps {
    #[inline]
    fn judge(&self, cells: impl Iterator<Item = u64>, cycle: &Cycle, later: u64) -> (u32, bool) {
        let (mut live, mut looked_at) = (0, 0);
        for cell in cells {
            live += u32::from(self.is_live(cell, cycle, later));
            looked_at += 1;
        }
        (live, live == looked_at)
    }

    fn holds(&self, mut cells: impl Iterator<Item = u64>, cycle: &Cycle, later: u64) -> bool {
        cells.all(|cell| self.is_live(cell, cycle, later))
    }

    /// A key was seen no later than its oldest cell says: others may have set the cells since.
    fn ages(&self, cells: impl Iterator<Item = u64>, cycle: &Cycle) -> Ages {
        let age = |cell| self.view(cell, cycle).age(self.cells.bits(cell, 0, self.bits));
        Ages { start: cycle.steps(), end: cells.map(age).max().unwrap_or(0) }
    }

    /// Of two stamps the younger one.
    fn merge(&mut self, other: &Self, cycle: &Cycle) {
        let view = cycle.view();
        for cell in 0..self.cells.len() {
            let theirs = other.cells.bits(cell, 0, self.bits);
            let ours = self.cells.bits(cell, 0, self.bits);
            let younger = !view.is_live(ours) || view.age(theirs) < view.age(ours);
            if view.is_live(theirs) && younger {
                self.cells.set_bits(cell, 0, self.bits, theirs);
            }
        }
    }

    #[inline]
    fn mark(&mut self, cells: impl Iterator<Item = u64>, cycle: &Cycle) {
        for cell in cells {
            self.settle_page(cell, cycle);
            self.cells.set_bits(cell, 0, self.bits, cycle.stamp());
        }
    }

    #[inline]
    fn prefetch(&self, cell: u64) {
        self.cells.prefetch(cell);
    }

    fn memory(&self) -> usize {
        self.cells.memory()
    }

    fn write(&self, out: &mut Writer<'_>) {
        out.words(self.cells.words());
    }
}
