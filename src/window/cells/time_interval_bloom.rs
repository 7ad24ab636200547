//! The Time Interval Bloom filter, plain and with space optimisation.

use crate::bits::packed::Packed;
use crate::bits::pages::Pages;
use crate::bits::swept::Swept;
use crate::bits::{TOO_LARGE, is_available};
use crate::codec::{Reader, Writer};
use crate::table::{Contract, Recipe, Windows};
use crate::window::cells::core::{Aged, Ages, Cells};
use crate::window::cells::shape::Shape;
use crate::window::cycle::{Cycle, Pace, Sweep};
use crate::window::traits::window_traits;
use crate::{PlanError, SnapshotError, Spec};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::ops::{Range, RangeInclusive};

/// How a cell keeps its interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntervalLayout {
    /// Start and end as two whole 64-bit times (section 6 of the paper).
    Plain,
    /// End as a cyclic stamp and the length up to one window, bit-packed (section 6.1).
    Compact,
}

/// A Bloom filter whose cells hold the interval of time in which they were set.
///
/// A key is a duplicate when the intervals of its `k` cells have a moment in common that lies
/// within the window: if the key was read at some moment, all its cells were set then.
///
/// # Guarantee
/// A key remembered within the last `span` ticks is always found. Under [`Renewal::Always`](crate::Renewal::Always) no key
/// is found that a [`TimeBloom`](super::TimeBloom) of the same shape would not find (Theorem 2 of
/// the paper), so its false positive rate bounds this one's. It is far below where the reads of
/// a key are close together in time. Both layouts give the same verdicts.
///
/// # Cost
/// `k` cells an operation. A compact cell takes [`Shape::stamp_bits`] + [`Shape::length_bits`]
/// bits, about twice a Time Bloom filter's: at equal memory and even reads that one is better.
/// A plain cell takes 128.
///
/// # Late arrivals
/// With [`Shape::lateness`] a cell's interval is extended to either side, and a key is a duplicate when the
/// intervals of its cells have a moment in common that lies within the window before or after its own. Its
/// own sightings are never missed, and alone never claim more than they are: where the lateness is longer
/// than the window, a key sets other cells in each block of two windows, and an arrival asks for two
/// blocks. The bound of the false positive rate is a Time Bloom filter's whose window is as long as window and
/// lateness, and with blocks twice that: a cell that is set again and again claims all the time between.
///
/// # Example
/// ```
/// use lately::{Digester, Renewal, Tick, Verdict, WindowFilter};
/// use lately::window::{IntervalLayout, Shape, TimeIntervalBloom};
/// let shape = Shape {
///     cells: 10_000, hashes: 7, span: 100, grain: 1, lateness: 0, capacity: 900, renewal: Renewal::Always,
/// };
/// let mut filter = TimeIntervalBloom::new(shape, IntervalLayout::Compact)?;
/// let tag = Digester::new(0).digest(b"tag");
/// assert_eq!(filter.observe(tag, Tick(0)), Verdict::Fresh);
/// assert_eq!(filter.observe(tag, Tick(100)), Verdict::Duplicate); // exactly one window later
/// assert_eq!(filter.observe(tag, Tick(201)), Verdict::Fresh);
/// # Ok::<(), lately::PlanError>(())
/// ```
///
/// # Reference
/// C.-H. Lee, C.-W. Chung, "An approximate duplicate elimination in RFID data streams",
/// Data & Knowledge Engineering 70, 2011, section 6, doi:10.1016/j.datak.2011.07.007.
///
/// # Differs from the paper
/// - "Unset" is a state of its own, so a read at time 0 is not lost.
/// - The compact cell holds `(end, end - start)`, not `(start, end - start)`: the end is what ages,
///   and its stamp needs fewer bits than that of a start which may be two windows old.
/// - A read older than the newest is judged at its own time, as far as the lateness allows it, and else at
///   the oldest time allowed: without a lateness, the newest.
/// - Duplicates may be left out of the renewal ([`Renewal::OnFresh`](crate::Renewal::OnFresh)); Theorem 2 does not cover that.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeIntervalBloom(Aged<Intervals>);

impl TimeIntervalBloom {
    /// An empty filter.
    ///
    /// # Errors
    /// [`PlanError`] for a shape that cannot be, or that there is no memory for.
    pub fn new(shape: Shape, layout: IntervalLayout) -> Result<Self, PlanError> {
        shape.check()?;
        let intervals = Intervals::new(&shape, layout)?;
        Ok(Self(Aged::new(shape, Pace::ticking(&shape), intervals)))
    }

    /// How its cells keep their intervals.
    pub fn layout(&self) -> IntervalLayout {
        self.0.table.layout()
    }

    /// The parameters it was built from.
    pub fn shape(&self) -> &Shape {
        &self.0.shape
    }

    pub(crate) fn read(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        Aged::read(input, Pace::ticking, Intervals::read).map(Self)
    }
}

impl Recipe for TimeIntervalBloom {
    type Table = Self;
    type Size = Shape;

    const WINDOWS: Windows = Windows::Any;
    const LATE: bool = true;

    fn size(spec: &Spec, capacity: u64, fpr: f64) -> Result<Shape, PlanError> {
        Shape::for_keys(spec, capacity, fpr)
    }

    fn contract(shape: &Shape) -> Contract {
        shape.contract()
    }

    fn memory(shape: &Shape) -> Option<u64> {
        let (bits, _) = Self::cell_bits_and_hashes(shape);
        Swept::bytes_for(shape.cells, bits)
    }

    fn cell_bits_and_hashes(shape: &Shape) -> (u32, u32) {
        (shape.stamp_bits() + shape.length_bits(), shape.hashes)
    }

    fn build(shape: Shape) -> Result<Self, PlanError> {
        Self::new(shape, IntervalLayout::Compact)
    }

    fn read(input: &mut Reader<'_>) -> Result<Self::Table, SnapshotError> {
        Self::read(input)
    }
}

/// How a [`TimeIntervalBloom`] without the space optimisation is made.
pub(crate) struct PlainIntervals;

impl Recipe for PlainIntervals {
    type Table = TimeIntervalBloom;
    type Size = Shape;

    const WINDOWS: Windows = Windows::Any;
    const LATE: bool = true;

    fn size(spec: &Spec, capacity: u64, fpr: f64) -> Result<Shape, PlanError> {
        Shape::for_keys(spec, capacity, fpr)
    }

    fn contract(shape: &Shape) -> Contract {
        shape.contract()
    }

    fn memory(shape: &Shape) -> Option<u64> {
        shape.cells.checked_mul(16)?.checked_add(Pages::bytes_for(shape.cells, PLAIN_BITS))
    }

    fn cell_bits_and_hashes(shape: &Shape) -> (u32, u32) {
        (PLAIN_BITS, shape.hashes)
    }

    fn build(shape: Shape) -> Result<TimeIntervalBloom, PlanError> {
        TimeIntervalBloom::new(shape, IntervalLayout::Plain)
    }

    fn read(input: &mut Reader<'_>) -> Result<TimeIntervalBloom, SnapshotError> {
        TimeIntervalBloom::read(input)
    }
}

window_traits!(TimeIntervalBloom);

/// An interval a cell.
#[derive(Clone, PartialEq)]
enum Intervals {
    /// `[start, end]` in grains; unset where start is the later.
    Plain { cells: Vec<[u64; 2]>, pages: Pages },
    /// The end's stamp (0: unset), then how long before it the start was.
    Compact { cells: Swept, stamp_bits: u32, length_bits: u32 },
}

/// Their kind and number: the cells would be millions.
impl fmt::Debug for Intervals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut intervals = f.debug_struct("Intervals");
        intervals.field("layout", &self.layout()).field("len", &self.len()).finish_non_exhaustive()
    }
}

const UNSET: [u64; 2] = [1, 0];

/// Bits of a plain interval.
const PLAIN_BITS: u32 = 128;

impl Intervals {
    fn new(shape: &Shape, layout: IntervalLayout) -> Result<Self, PlanError> {
        let (stamp_bits, length_bits) = (shape.stamp_bits(), shape.length_bits());
        Ok(match layout {
            IntervalLayout::Plain => {
                let words = Packed::words_for(shape.cells, PLAIN_BITS);
                is_available(words.ok_or(TOO_LARGE)?)?;
                let pages = Pages::new(shape.cells, PLAIN_BITS)?;
                Self::Plain { cells: vec![UNSET; shape.cells as usize], pages }
            }
            IntervalLayout::Compact => {
                let cells = Swept::new(shape.cells, stamp_bits + length_bits)?;
                Self::Compact { cells, stamp_bits, length_bits }
            }
        })
    }

    fn layout(&self) -> IntervalLayout {
        match self {
            Self::Plain { .. } => IntervalLayout::Plain,
            Self::Compact { .. } => IntervalLayout::Compact,
        }
    }

    fn len(&self) -> u64 {
        match self {
            Self::Plain { cells, .. } => cells.len() as u64,
            Self::Compact { cells, .. } => cells.len(),
        }
    }

    #[inline]
    fn set(&mut self, cell: u64, ages: Ages, cycle: &Cycle) {
        match self {
            Self::Plain { cells, pages } => {
                pages.mark(cell);
                cells[cell as usize] = [cycle.now() - ages.start, cycle.now() - ages.end];
            }
            Self::Compact { cells, stamp_bits, length_bits } => {
                // A start before the window is as good as one at its edge: a moment in common
                // counts only if it lies within the window.
                let length = (ages.start - ages.end).min(cycle.steps());
                cells.set_bits(cell, 0, *stamp_bits, cycle.stamp_of(ages.end));
                cells.set_bits(cell, *stamp_bits, *length_bits, length);
            }
        }
    }

    /// The ages of a cell whose end is within the window `later` grains from now.
    #[inline]
    fn live(&self, cell: u64, cycle: &Cycle, later: u64) -> Option<Ages> {
        let ages = match self {
            Self::Plain { cells, .. } => {
                let [start, end] = cells[cell as usize];
                if start > end {
                    return None;
                }
                Ages { start: cycle.now() - start, end: cycle.now() - end }
            }
            Self::Compact { cells, stamp_bits, length_bits } => {
                let stamp = cells.bits(cell, 0, *stamp_bits);
                if stamp == 0 {
                    return None;
                }
                let end = self.view(cell, cycle).age(stamp);
                Ages { start: end + cells.bits(cell, *stamp_bits, *length_bits), end }
            }
        };
        cycle.view().is_kept_later(ages.end, later).then_some(ages)
    }

    fn read(shape: &Shape, cycle: &Cycle, input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        match input.u8()? {
            0 => {
                let cells = read_plain(shape.cells, input)?;
                let impossible = |&[start, end]: &[u64; 2]| {
                    end > cycle.now() || (start > end && [start, end] != UNSET)
                };
                if cells.iter().any(impossible) {
                    return Err(SnapshotError::Invalid("an interval after the newest read"));
                }
                let mut pages = Pages::new(shape.cells, PLAIN_BITS)
                    .map_err(|_| SnapshotError::Invalid("a table larger than any memory"))?;
                let set = (0u64..).zip(&cells).filter(|&(_, &interval)| interval != UNSET);
                set.for_each(|(cell, _)| pages.mark(cell));
                Ok(Self::Plain { cells, pages })
            }
            1 => {
                let (stamp_bits, length_bits) = (shape.stamp_bits(), shape.length_bits());
                let width = stamp_bits + length_bits;
                let words = input.words(Packed::words_for(shape.cells, width))?;
                let cells = Swept::from_words(words, shape.cells, width)
                    .ok_or(SnapshotError::Invalid("bits set past the end of a table"))?;
                Ok(Self::Compact { cells, stamp_bits, length_bits })
            }
            _ => Err(SnapshotError::Invalid("unknown interval layout")),
        }
    }
}

/// Starts and ends of so many cells.
fn read_plain(len: u64, input: &mut Reader<'_>) -> Result<Vec<[u64; 2]>, SnapshotError> {
    let bytes = usize::try_from(len).ok().and_then(|len| len.checked_mul(16));
    let len = input.expect(bytes)? / 16;
    let mut cells = Vec::new();
    let no_memory = |_| SnapshotError::Invalid("a table larger than any memory");
    cells.try_reserve_exact(len).map_err(no_memory)?;
    // In parts, as words cannot be made pairs where they are.
    while cells.len() < len {
        let words = input.words(Some((len - cells.len()).min(4096) * 2))?;
        cells.extend_from_slice(words.as_chunks().0);
    }
    Ok(cells)
}

/// Plain cells hold whole times, which never wrap round: they are not swept.
impl Sweep for Intervals {
    #[inline(always)]
    fn pages(&self) -> Option<&Pages> {
        match self {
            Self::Plain { .. } => None,
            Self::Compact { cells, .. } => Some(cells.pages()),
        }
    }

    fn pages_mut(&mut self) -> Option<&mut Pages> {
        match self {
            Self::Plain { .. } => None,
            Self::Compact { cells, .. } => Some(cells.pages_mut()),
        }
    }

    #[inline]
    fn clear_expired(&mut self, range: Range<u64>, cycle: &Cycle) {
        if let Self::Compact { cells, stamp_bits, .. } = self {
            cells.retain(range, *stamp_bits, |age| cycle.live_of(age));
        }
    }

    /// Plain cells hold whole times: what has expired does no harm.
    fn expire_all(&mut self) {
        if matches!(self, Self::Compact { .. }) {
            self.clear();
        }
    }

    fn clear(&mut self) {
        match self {
            Self::Plain { cells, pages } => pages.drain(cells.len() as u64, |run| {
                cells[run.start as usize..run.end as usize].fill(UNSET);
            }),
            Self::Compact { cells, .. } => cells.clear(),
        }
    }
}

impl Cells for Intervals {
    #[inline]
    fn judge(&self, cells: impl Iterator<Item = u64>, cycle: &Cycle, later: u64) -> (u32, bool) {
        let (mut live, mut looked_at) = (0, 0);
        let mut common = Ages { start: u64::MAX, end: 0 };
        for cell in cells {
            looked_at += 1;
            if let Some(ages) = self.live(cell, cycle, later) {
                live += 1;
                common.start = common.start.min(ages.start);
                common.end = common.end.max(ages.end);
            }
        }
        (live, live == looked_at && common.start >= common.end)
    }

    /// The moments that all its cells' intervals have in common.
    fn ages(&self, cells: impl Iterator<Item = u64>, cycle: &Cycle) -> Ages {
        let widest = Ages { start: cycle.steps(), end: 0 };
        cells.filter_map(|cell| self.live(cell, cycle, 0)).fold(widest, |common, ages| Ages {
            start: common.start.min(ages.start),
            end: common.end.max(ages.end),
        })
    }

    /// From the earlier start to the later end: no moment that either knew is lost.
    fn merge(&mut self, other: &Self, cycle: &Cycle) {
        for cell in 0..self.len() {
            let Some(theirs) = other.live(cell, cycle, 0) else { continue };
            let ours = self.live(cell, cycle, 0).unwrap_or(theirs);
            let both = Ages { start: ours.start.max(theirs.start), end: ours.end.min(theirs.end) };
            self.set(cell, both, cycle);
        }
    }

    /// Extends live intervals, begins new ones where there are none.
    #[inline]
    fn mark(&mut self, cells: impl Iterator<Item = u64>, cycle: &Cycle) {
        for cell in cells {
            self.settle_page(cell, cycle);
            let start = self.live(cell, cycle, 0).map_or(0, |ages| ages.start);
            self.set(cell, Ages { start, end: 0 }, cycle);
        }
    }

    fn moments(
        &self,
        cells: impl Iterator<Item = u64>,
        cycle: &Cycle,
    ) -> (u32, Option<RangeInclusive<u64>>) {
        let (mut live, mut looked_at) = (0, 0);
        let mut common = Ages { start: u64::MAX, end: 0 };
        for cell in cells {
            looked_at += 1;
            if let Some(ages) = self.live(cell, cycle, 0) {
                live += 1;
                common.start = common.start.min(ages.start);
                common.end = common.end.max(ages.end);
            }
        }
        let moment = |age| cycle.now().saturating_sub(age);
        let meet = live == looked_at && common.start >= common.end;
        (live, meet.then(|| moment(common.start)..=moment(common.end)))
    }

    /// Extends live intervals to either side, begins new ones where there are none.
    fn mark_at(&mut self, cells: impl Iterator<Item = u64>, age: u64, cycle: &Cycle) {
        for cell in cells {
            self.settle_page(cell, cycle);
            let ages = self.live(cell, cycle, 0).unwrap_or(Ages { start: age, end: age });
            let both = Ages { start: ages.start.max(age), end: ages.end.min(age) };
            self.set(cell, both, cycle);
        }
    }

    #[inline]
    fn prefetch(&self, cell: u64) {
        if let Self::Compact { cells, .. } = self {
            cells.prefetch(cell);
        }
    }

    fn memory(&self) -> usize {
        match self {
            Self::Plain { cells, pages } => cells.capacity() * 16 + pages.memory(),
            Self::Compact { cells, .. } => cells.memory(),
        }
    }

    fn write(&self, out: &mut Writer<'_>) {
        out.u8(self.layout() as u8);
        match self {
            Self::Plain { cells, .. } => out.words(cells.as_flattened()),
            Self::Compact { cells, .. } => out.words(cells.words()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict::Fresh;
    use crate::{Renewal, Tick, WindowFilter};

    fn filter(cells: u64, hashes: u32, span: u64, layout: IntervalLayout) -> TimeIntervalBloom {
        let renewal = Renewal::Always;
        let shape = Shape { cells, hashes, span, grain: 1, lateness: 0, capacity: 10, renewal };
        TimeIntervalBloom::new(shape, layout).unwrap()
    }

    #[test]
    fn example_1_of_the_paper() {
        for layout in [IntervalLayout::Plain, IntervalLayout::Compact] {
            let mut filter = filter(8, 3, 100, layout);
            let (id1, id2) = ([0, 5, 2], [5, 7, 3]);
            for (id, time) in [(id1, 10), (id2, 120), (id1, 130)] {
                assert_eq!(filter.0.observe_at(id.iter().copied(), Tick(time)), Fresh);
            }
        }
    }

    #[test]
    fn example_2_of_the_paper() {
        for layout in [IntervalLayout::Plain, IntervalLayout::Compact] {
            let mut filter = filter(5, 3, 100, layout);
            let (id1, id2, id3, id4) = ([0, 1, 2], [3, 1, 2], [1, 2, 4], [3, 0, 4]);
            for (id, time) in [(id1, 10), (id1, 11), (id2, 14), (id3, 15), (id2, 17), (id2, 18)] {
                let _ = filter.0.observe_at(id.iter().copied(), Tick(time));
            }
            filter.advance(Tick(20));
            let intervals = id4.map(|cell| {
                let ages = filter.0.table.live(cell, &filter.0.cycle, 0).unwrap();
                [20 - ages.start, 20 - ages.end]
            });
            assert_eq!(intervals, [[14, 18], [10, 11], [15, 15]]);
            assert_eq!(filter.0.observe_at(id4.iter().copied(), Tick(20)), Fresh);
        }
    }
}
