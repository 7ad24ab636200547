//! The sweep: how it goes round a table, and what is done where it falls behind.

use crate::bits::pages::Pages;
use crate::window::cycle::{Cycle, Pace, View};
use core::ops::Range;

/// What a step sweeps at the most: a page whose cells may be live costs as much as [`PAGE`], one in which everything has
/// expired as much as [`PAST`]. Pages that were marked since are swept besides, as far as one arrival marks them.
const EFFORT: u64 = 256;
const PAGE: u64 = 16;
const PAST: u64 = 4;
const MARKED: u64 = 32;

/// Pages that are swept at once, if need be: such a table is never behind.
const FEW: usize = 32;

/// Units of [`Pages::age`] for each of which that a page waits the effort is doubled: none is to wait until their
/// numbers have gone round, be every arrival a window after the last one.
const PATIENCE: u64 = 1 << 13;

/// A table whose cells hold stamps, in the eyes of the sweep.
pub(crate) trait Sweep {
    /// Cells that the sweep counts in one that the pages count.
    const CELLS: u64 = 1;

    /// Where cells may be set, and when they were swept; none in a table whose cells tell time by themselves.
    fn pages(&self) -> Option<&Pages> {
        None
    }

    fn pages_mut(&mut self) -> Option<&mut Pages> {
        None
    }

    /// Where cells may be set, in a table that is too large to be swept at once.
    #[inline(always)]
    fn many_pages(&mut self) -> Option<&mut Pages> {
        self.pages_mut().filter(|pages| pages.len() > FEW)
    }

    /// Unsets those cells of a range that have expired, each as its page is to be [read](Cycle::view_of).
    fn clear_expired(&mut self, range: Range<u64>, cycle: &Cycle);

    /// Unsets every cell.
    fn clear(&mut self);

    /// Unsets what has expired, where that is everything.
    fn expire_all(&mut self) {
        self.clear();
    }

    /// May a page have been swept longer ago than its stamps tell time?
    #[inline(always)]
    fn is_behind(&self) -> bool {
        self.pages().is_some_and(Pages::is_behind)
    }

    /// How the stamps of a cell are read, as pages count them.
    #[inline(always)]
    fn view(&self, cell: u64, cycle: &Cycle) -> View {
        if self.is_behind() { self.view_of_page(cell, cycle) } else { cycle.view() }
    }

    #[cold]
    #[inline(never)]
    fn view_of_page(&self, cell: u64, cycle: &Cycle) -> View {
        self.pages().map_or(cycle.view(), |pages| cycle.view_of(pages.age(cell)))
    }

    /// Makes the page of a cell, as pages count them, one of the present moment: to be done before anything is set in it.
    #[inline(always)]
    fn settle_page(&mut self, cell: u64, cycle: &Cycle) {
        if self.is_behind() {
            self.sweep_page(cell, cycle);
        }
    }

    #[cold]
    #[inline(never)]
    fn sweep_page(&mut self, cell: u64, cycle: &Cycle) {
        let Some(pages) = self.pages() else { return };
        if cycle.behind(pages.age(cell)) > 0 {
            let page = pages.page_with(cell, cycle.cells / Self::CELLS);
            self.clear_expired(page.start * Self::CELLS..page.end * Self::CELLS, cycle);
        }
    }
}

impl Pace {
    /// Grains between two visits of the sweep to a page, at the most, so that stamps are right.
    fn reach_of_page(&self) -> u64 {
        self.length - self.steps - 1
    }

    /// Grains that count as one where it is noted when a page was swept, as a power of two: at most 2^8 of them make a
    /// cycle of stamps.
    fn unit_bits(&self) -> u32 {
        self.stamp_bits().saturating_sub(8)
    }

    /// The period, with room for what the unit rounds off.
    pub(super) fn period_of_pages(&self) -> u64 {
        let reach = self.reach_of_page();
        // That of a part of the laps, and of the units.
        let rounded = reach / 32 + (1 << self.unit_bits() & !1) * 2;
        self.period.min(reach.saturating_sub(rounded)).max(1)
    }
}

impl Cycle {
    /// Begins with a table, which is empty: or else all of it may have to be swept by the next grain.
    pub(crate) fn begin<T: Sweep>(&mut self, table: &mut T, is_empty: bool) {
        let Some(pages) = table.many_pages() else { return };
        let (reach, bits) = (self.pace.reach_of_page(), self.pace.unit_bits());
        let swept = 1 << bits;
        let clock = swept + reach;
        pages.all_swept_at((swept >> bits) as u16);
        self.laps.begin(
            clock,
            if is_empty { clock } else { swept },
            self.cells,
            pages.cells_a_page() * T::CELLS,
        );
        self.cursor -= self.cursor % T::CELLS;
        self.tell(table);
    }

    /// Tells a table the time.
    pub(super) fn tell(&self, table: &mut impl Sweep) {
        if let Some(pages) = table.pages_mut() {
            pages.set_now((self.laps.clock >> self.pace.unit_bits()) as u16);
        }
    }

    /// How long before the present its stamps are told from, in grains, where a page was swept so long ago.
    #[inline]
    pub(crate) fn behind(&self, age: u16) -> u64 {
        let bits = self.pace.unit_bits();
        // From the beginning of its unit.
        let since = (u64::from(age) << bits) + (self.laps.clock & ((1 << bits) - 1));
        since.saturating_sub(self.pace.reach_of_page())
    }

    /// How the stamps of a page are read that was swept so long ago.
    pub(crate) fn view_of(&self, age: u16) -> View {
        match self.behind(age) {
            0 => self.view(),
            behind => self.view_from(behind),
        }
    }

    /// Which stamps of a page that was swept so long ago are live; none where everything in it has expired.
    #[inline]
    pub(crate) fn live_of(&self, age: u16) -> Option<impl Fn(u64) -> bool + use<>> {
        let view = self.view_of(age);
        (!view.is_past()).then_some(move |stamp| view.is_live(stamp))
    }

    #[cold]
    fn view_from(&self, behind: u64) -> View {
        let view = self.view();
        let stamp = self.stamp_of(behind % self.pace.length);
        let live = view.kept.checked_sub(behind).map_or(0, |kept| self.pace.live_at(stamp, kept));
        View { stamp, behind, live, ..view }
    }

    /// Is there a page that was swept longer ago than its stamps tell time?
    fn is_behind(&self) -> bool {
        self.late() > self.pace.reach_of_page()
    }

    /// Grains since the oldest page was swept, at the most.
    fn late(&self) -> u64 {
        let bits = self.pace.unit_bits();
        self.laps.clock.wrapping_sub(self.laps.oldest(self.cursor) >> bits << bits)
    }

    /// Everything has expired: a table that is nearly empty is cleared, another one left to the sweep.
    pub(super) fn expire_all(&mut self, table: &mut impl Sweep) {
        self.due = self.next_due();
        self.laps.owed = 0;
        let Some(pages) = table.pages() else { return };
        if pages.used() * PAGE <= EFFORT {
            table.expire_all();
            self.note_all_swept(table);
        }
    }

    /// Sweeps the whole table.
    pub(crate) fn sweep_all(&mut self, table: &mut impl Sweep) {
        table.clear_expired(0..self.cells, self);
        self.note_all_swept(table);
        self.catch_up(table);
        self.settle();
    }

    /// The whole table has been swept now.
    fn note_all_swept<T: Sweep>(&mut self, table: &mut T) {
        if let Some(pages) = table.many_pages() {
            let clock = self.laps.clock;
            self.laps.begin(clock, clock, self.cells, pages.cells_a_page() * T::CELLS);
        }
    }

    /// Sweeps what is due, as far as an arrival has time for.
    pub(super) fn catch_up<T: Sweep>(&mut self, table: &mut T) {
        let marked = table.pages().map_or(0, |pages| pages.used().saturating_sub(self.laps.used));
        let waited = (self.late() >> self.pace.unit_bits()) / PATIENCE;
        let most =
            if waited < 7 { (EFFORT + PAGE * marked.min(MARKED)) << waited } else { u64::MAX };
        let mut effort = 0;
        while let Some(pages) = table.many_pages() {
            self.laps.used = pages.used();
            let behind = self.is_behind();
            pages.set_behind(behind);
            self.laps.busy = behind || self.laps.owed >= T::CELLS;
            if !self.laps.busy || effort >= most {
                break;
            }
            effort += self.sweep_one(table, behind);
        }
    }

    /// Sweeps up to the end of the next page in which anything may be set, or as far as is due; returns the effort.
    fn sweep_one<T: Sweep>(&mut self, table: &mut T, behind: bool) -> u64 {
        let Some(pages) = table.pages() else { return EFFORT };
        let next = pages.next_run(self.cursor / T::CELLS..self.cells / T::CELLS);
        let age = next.as_ref().map(|run| pages.age(run.start));
        let end = next.map_or(self.cells, |run| run.end * T::CELLS);
        let due = self.laps.owed - self.laps.owed % T::CELLS;
        let count = if behind { end - self.cursor } else { due.min(end - self.cursor) };
        self.sweep(count, table);
        self.laps.owed = self.laps.owed.saturating_sub(count);
        match age {
            None => 1,
            Some(age) if self.view_of(age).is_past() => PAST,
            Some(_) => PAGE,
        }
    }

    /// Sweeps the next `count` cells, or a few more.
    #[inline]
    pub(crate) fn sweep<T: Sweep>(&mut self, count: u64, table: &mut T) {
        let whole = if table.many_pages().is_some() { T::CELLS } else { 1 };
        let count = count.next_multiple_of(whole).min(self.cells);
        let first = self.cursor..(self.cursor + count).min(self.cells);
        let second = 0..count - (first.end - first.start);
        self.cursor = if first.end == self.cells { second.end } else { first.end };
        for cells in [first, second] {
            if !cells.is_empty() {
                table.clear_expired(cells.clone(), self);
                self.laps.pass(cells);
            }
        }
    }
}
