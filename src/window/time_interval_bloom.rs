//! The Time Interval Bloom filter, plain and with space optimisation.

use crate::bits::packed::Packed;
use crate::snapshot::{Reader, Writer};
use crate::window::cycle::{Cycle, Sweep};
use crate::window::fill::{self, FillSample};
use crate::window::shape::Shape;
use crate::window::time_bloom::window_of;
use crate::{
    Digest, Filter, PlanError, Renewal, SnapshotError, Tick, Verdict, Window, WindowFilter,
};
use alloc::vec;
use alloc::vec::Vec;

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
/// A key remembered within the last `span` ticks is always found. Under [`Renewal::Always`] no key
/// is found that a [`TimeBloom`](super::TimeBloom) of the same shape would not find (Theorem 2 of
/// the paper), so its false positive rate bounds this one's. It is far below where the reads of
/// a key are close together in time. Both layouts give the same verdicts.
///
/// # Cost
/// `k` cells an operation. A compact cell takes [`Shape::stamp_bits`] + [`Shape::length_bits`]
/// bits, about twice a Time Bloom filter's: at equal memory and even reads that one is better.
/// A plain cell takes 128.
///
/// # Example
/// ```
/// use lately::{Digester, Renewal, Tick, Verdict, WindowFilter};
/// use lately::window::{IntervalLayout, Shape, TimeIntervalBloom};
/// let shape = Shape {
///     cells: 10_000, hashes: 7, span: 100, grain: 1, capacity: 900, renewal: Renewal::Always,
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
/// - A read older than the newest is judged at the newest time: no cell goes back.
/// - Duplicates may be left out of the renewal ([`Renewal::OnFresh`]); Theorem 2 does not cover that.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeIntervalBloom {
    shape: Shape,
    cycle: Cycle,
    cells: Cells,
    /// Was any cell set since the table was last cleared?
    marked: bool,
    sample: FillSample,
}

#[derive(Clone, Debug, PartialEq)]
enum Cells {
    /// `[start, end]` in grains; unset where start is the later.
    Plain(Vec<[u64; 2]>),
    /// The end's stamp (0: unset), then how long before it the start was.
    Compact { cells: Packed, stamp_bits: u32, length_bits: u32 },
}

/// A live interval, seen from the present moment: how many grains ago it began and ended.
#[derive(Clone, Copy)]
struct Ages {
    start: u64,
    end: u64,
}

const UNSET: [u64; 2] = [1, 0];

impl Cells {
    fn new(shape: &Shape, layout: IntervalLayout) -> Result<Self, PlanError> {
        let (stamp_bits, length_bits) = (shape.stamp_bits(), shape.length_bits());
        let width = match layout {
            IntervalLayout::Plain => 128,
            IntervalLayout::Compact => stamp_bits + length_bits,
        };
        Packed::words_for(shape.cells, width)
            .ok_or(PlanError::TooLarge("a table larger than any memory"))?;
        Ok(match layout {
            IntervalLayout::Plain => Self::Plain(vec![UNSET; shape.cells as usize]),
            IntervalLayout::Compact => {
                Self::Compact { cells: Packed::new(shape.cells, width), stamp_bits, length_bits }
            }
        })
    }

    /// The ages of a cell whose end is within the window `later` grains from now.
    #[inline]
    fn live(&self, cell: u64, cycle: &Cycle, later: u64) -> Option<Ages> {
        let ages = match self {
            Self::Plain(cells) => {
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
                let end = cycle.age(stamp);
                Ages { start: end + cells.bits(cell, *stamp_bits, *length_bits), end }
            }
        };
        // Any tick may be asked about: the sum may be beyond 64 bits.
        (ages.end.saturating_add(later) <= cycle.steps()).then_some(ages)
    }

    /// Sets a cell now: extends a live interval, begins a new one where there is none.
    #[inline]
    fn mark(&mut self, cell: u64, cycle: &Cycle) {
        let length = self.live(cell, cycle, 0).map_or(0, |ages| ages.start);
        match self {
            Self::Plain(cells) => cells[cell as usize] = [cycle.now() - length, cycle.now()],
            Self::Compact { cells, stamp_bits, length_bits } => {
                cells.set_bits(cell, 0, *stamp_bits, cycle.stamp());
                // A start before the window is as good as one at its edge: a moment in common
                // counts only if it lies within the window.
                cells.set_bits(cell, *stamp_bits, *length_bits, length.min(cycle.steps()));
            }
        }
    }

    fn clear(&mut self) {
        match self {
            Self::Plain(cells) => cells.fill(UNSET),
            Self::Compact { cells, .. } => cells.clear(),
        }
    }
}

impl TimeIntervalBloom {
    /// An empty filter.
    ///
    /// # Errors
    /// [`PlanError::TooLarge`] for a shape that cannot be.
    pub fn new(shape: Shape, layout: IntervalLayout) -> Result<Self, PlanError> {
        shape.check()?;
        let cells = Cells::new(&shape, layout)?;
        Ok(Self::with_cells(shape, cells))
    }

    fn with_cells(shape: Shape, cells: Cells) -> Self {
        Self {
            shape,
            cycle: Cycle::new(&shape),
            cells,
            marked: false,
            sample: FillSample::new(&shape),
        }
    }

    /// The parameters it was built from.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// How its cells keep their intervals.
    pub fn layout(&self) -> IntervalLayout {
        match self.cells {
            Cells::Plain(_) => IntervalLayout::Plain,
            Cells::Compact { .. } => IntervalLayout::Compact,
        }
    }

    /// Does it hold more keys than it was planned for? With one hash it cannot tell.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.sample.is_full()
    }

    #[inline]
    fn positions(&self, digest: Digest) -> impl Iterator<Item = u64> + Clone + use<> {
        digest.probes(self.shape.cells).take(self.shape.hashes as usize)
    }

    /// How many of these cells are live `later` grains from now, and have they a moment in common?
    #[inline]
    fn judge(&self, positions: impl Iterator<Item = u64>, later: u64) -> (u32, bool) {
        let (mut live, mut common) = (0, Ages { start: u64::MAX, end: 0 });
        for cell in positions {
            if let Some(ages) = self.cells.live(cell, &self.cycle, later) {
                live += 1;
                common.start = common.start.min(ages.start);
                common.end = common.end.max(ages.end);
            }
        }
        (live, live == self.shape.hashes && common.start >= common.end)
    }

    #[inline]
    fn mark(&mut self, positions: impl Iterator<Item = u64>) {
        for cell in positions {
            self.cells.mark(cell, &self.cycle);
        }
        self.marked = true;
    }

    /// One arrival at given cells.
    #[inline]
    fn observe_at(&mut self, positions: impl Iterator<Item = u64> + Clone, now: Tick) -> Verdict {
        self.advance(now);
        let (live, duplicate) = self.judge(positions.clone(), 0);
        // Fresh keys whose cells are all live are left out, as `FillSample` expects.
        if live < self.shape.hashes {
            self.sample.add(live, self.shape.hashes);
        }
        if !duplicate || self.shape.renewal == Renewal::Always {
            self.mark(positions);
        }
        if duplicate { Verdict::Duplicate } else { Verdict::Fresh }
    }

    /// The first tick of the newest grain seen.
    pub(crate) fn newest(&self) -> Tick {
        self.cycle.newest()
    }

    /// The share of live cells, looked at here and now.
    pub(crate) fn look_at_fill(&self, digest: Digest) -> f64 {
        let cells = digest.probes(self.shape.cells).take(fill::LOOKS);
        f64::from(self.judge(cells, 0).0) / fill::LOOKS as f64
    }

    /// Goes on from this fill.
    pub(crate) fn resume(&mut self, fill: f64) {
        self.sample.resume(fill::seen_at(fill, self.shape.hashes));
    }

    /// Notes the fill that a fresh key saw without remembering it.
    pub(crate) fn sample(&mut self, digest: Digest) {
        let (live, _) = self.judge(self.positions(digest), 0);
        if live < self.shape.hashes {
            self.sample.add(live, self.shape.hashes);
        }
    }

    #[inline]
    pub(crate) fn prefetch(&self, digest: Digest) {
        if let Cells::Compact { cells, .. } = &self.cells {
            for cell in self.positions(digest) {
                cells.prefetch(cell);
            }
        }
    }

    pub(crate) fn write(&self, out: &mut Writer) {
        self.shape.write(out);
        self.cycle.write(out);
        self.sample.write(out);
        out.u8(self.layout() as u8);
        match &self.cells {
            Cells::Plain(cells) => out.words(cells.as_flattened()),
            Cells::Compact { cells, .. } => out.words(cells.words()),
        }
    }

    pub(crate) fn read(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        let shape = Shape::read(input)?;
        let cycle = Cycle::read(&shape, input)?;
        let sample = FillSample::read(&shape, input)?;
        let (stamp_bits, length_bits) = (shape.stamp_bits(), shape.length_bits());
        let cells = match input.u8()? {
            0 => {
                let len = usize::try_from(shape.cells).ok().and_then(|len| len.checked_mul(2));
                let words = input.words(len)?;
                let cells: Vec<[u64; 2]> = words.as_chunks().0.to_vec();
                if cells.iter().any(|&[start, end]| {
                    end > cycle.now() || (start > end && [start, end] != UNSET)
                }) {
                    return Err(SnapshotError::Invalid(
                        "an interval that ends after the newest read",
                    ));
                }
                Cells::Plain(cells)
            }
            1 => {
                let width = stamp_bits + length_bits;
                let words = input.words(Packed::words_for(shape.cells, width))?;
                let cells = Packed::from_words(words, shape.cells, width)
                    .ok_or(SnapshotError::Invalid("bits set past the end of a table"))?;
                Cells::Compact { cells, stamp_bits, length_bits }
            }
            _ => return Err(SnapshotError::Invalid("unknown interval layout")),
        };
        Ok(Self { cycle, sample, marked: true, ..Self::with_cells(shape, cells) })
    }
}

impl Filter for TimeIntervalBloom {
    fn contains(&self, digest: Digest, now: Tick) -> bool {
        self.judge(self.positions(digest), self.cycle.grains_until(now)).1
    }

    fn fpr(&self) -> f64 {
        self.shape.fpr()
    }

    /// The estimate of a Time Bloom filter with this fill, which bounds this filter's rate.
    fn estimated_fpr(&self) -> f64 {
        libm::pow(self.fill(), f64::from(self.shape.hashes))
    }

    /// Sampled: from the share of live cells that recent fresh keys saw. 0 with one hash.
    fn fill(&self) -> f64 {
        self.sample.fill(self.shape.hashes)
    }

    fn memory(&self) -> usize {
        match &self.cells {
            Cells::Plain(cells) => cells.capacity() * 16,
            Cells::Compact { cells, .. } => cells.memory(),
        }
    }
}

impl WindowFilter for TimeIntervalBloom {
    fn remember(&mut self, digest: Digest, now: Tick) {
        self.advance(now);
        let positions = self.positions(digest);
        let (live, _) = self.judge(positions.clone(), 0);
        if live < self.shape.hashes {
            self.sample.add(live, self.shape.hashes);
        }
        self.mark(positions);
    }

    #[inline]
    fn observe(&mut self, digest: Digest, now: Tick) -> Verdict {
        let mut spare = [0; 64];
        let probes = digest.probes(self.shape.cells);
        let positions = probes.write_down(self.shape.hashes, &mut spare);
        self.observe_at(positions.iter().copied(), now)
    }

    #[inline]
    fn advance(&mut self, now: Tick) {
        match self.cycle.advance(now) {
            Sweep::Nothing => {}
            Sweep::Everything => {
                if self.marked {
                    self.cells.clear();
                    self.marked = false;
                }
                self.sample.reset();
            }
            Sweep::Cells(first, second) => {
                // Plain cells hold whole times and never wrap round.
                if let Cells::Compact { cells, stamp_bits, .. } = &mut self.cells {
                    let (cycle, bits) = (&self.cycle, *stamp_bits);
                    for range in [first, second] {
                        cells.retain(range, bits, |stamp| cycle.is_live(stamp));
                    }
                }
            }
        }
    }

    fn window(&self) -> Window {
        window_of(&self.shape)
    }

    fn slack(&self) -> u64 {
        self.shape.slack()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::Fresh;

    fn filter(cells: u64, hashes: u32, span: u64, layout: IntervalLayout) -> TimeIntervalBloom {
        let renewal = Renewal::Always;
        let shape = Shape { cells, hashes, span, grain: 1, capacity: 10, renewal };
        TimeIntervalBloom::new(shape, layout).unwrap()
    }

    #[test]
    fn example_1_of_the_paper() {
        for layout in [IntervalLayout::Plain, IntervalLayout::Compact] {
            let mut filter = filter(8, 3, 100, layout);
            let (id1, id2) = ([0, 5, 2], [5, 7, 3]);
            for (id, time) in [(id1, 10), (id2, 120), (id1, 130)] {
                assert_eq!(filter.observe_at(id.iter().copied(), Tick(time)), Fresh);
            }
        }
    }

    #[test]
    fn example_2_of_the_paper() {
        for layout in [IntervalLayout::Plain, IntervalLayout::Compact] {
            let mut filter = filter(5, 3, 100, layout);
            let (id1, id2, id3, id4) = ([0, 1, 2], [3, 1, 2], [1, 2, 4], [3, 0, 4]);
            for (id, time) in [(id1, 10), (id1, 11), (id2, 14), (id3, 15), (id2, 17), (id2, 18)] {
                let _ = filter.observe_at(id.iter().copied(), Tick(time));
            }
            filter.advance(Tick(20));
            let intervals = id4.map(|cell| {
                let ages = filter.cells.live(cell, &filter.cycle, 0).unwrap();
                [20 - ages.start, 20 - ages.end]
            });
            assert_eq!(intervals, [[14, 18], [10, 11], [15, 15]]);
            assert_eq!(filter.observe_at(id4.iter().copied(), Tick(20)), Fresh);
        }
    }
}
