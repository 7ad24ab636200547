//! The Time Bloom filter.

use crate::bits::packed::Packed;
use crate::snapshot::{Reader, Writer};
use crate::window::cycle::{Cycle, Sweep};
use crate::window::fill::{self, FillSample};
use crate::window::shape::Shape;
use crate::{
    Digest, Filter, PlanError, Renewal, SnapshotError, Tick, Verdict, Window, WindowFilter,
};
use core::num::NonZeroU64;

/// A Bloom filter whose cells hold the time they were last set.
///
/// A key is a duplicate when all its `k` cells were set within the window.
///
/// # Guarantee
/// A key remembered within the last `span` ticks is always found; one last remembered more than
/// `span + slack` ticks ago is found with probability at most [`Filter::fpr`] while no more than
/// `capacity` distinct keys fall into a span: `(1 - (1 - 1/m)^(k·n'))^k` (Theorem 1 of the paper).
///
/// # Cost
/// `k` cells an operation, each a cache line when the table is larger than the cache;
/// [`Shape::stamp_bits`] bits a cell; a sweep of about one cell a cell set.
/// A pause longer than a window clears the table in one pass.
///
/// # Example
/// ```
/// use lately::{Digester, Renewal, Tick, Verdict, WindowFilter, window::{Shape, TimeBloom}};
/// let shape = Shape {
///     cells: 10_000, hashes: 7, span: 8, grain: 1, capacity: 900, renewal: Renewal::Always,
/// };
/// let mut filter = TimeBloom::new(shape)?;
/// let tag = Digester::new(0).digest(b"tag");
/// assert_eq!(filter.observe(tag, Tick(5)), Verdict::Fresh);
/// assert_eq!(filter.observe(tag, Tick(10)), Verdict::Duplicate);
/// assert_eq!(filter.observe(tag, Tick(15)), Verdict::Duplicate); // the chain goes on
/// assert_eq!(filter.observe(tag, Tick(24)), Verdict::Fresh);
/// # Ok::<(), lately::PlanError>(())
/// ```
///
/// # Reference
/// C.-H. Lee, C.-W. Chung, "An approximate duplicate elimination in RFID data streams",
/// Data & Knowledge Engineering 70, 2011, section 5, doi:10.1016/j.datak.2011.07.007.
///
/// # Differs from the paper
/// - "Unset" is a state of its own, so a read at time 0 is not lost.
/// - Cells hold cyclic stamps of the window's size, not whole times; a sweep keeps them right.
/// - A read older than the newest is judged at the newest time: no cell goes back.
/// - Duplicates may be left out of the renewal ([`Renewal::OnFresh`]).
#[derive(Clone, Debug, PartialEq)]
pub struct TimeBloom {
    shape: Shape,
    cycle: Cycle,
    /// Stamps, 0 for "unset".
    cells: Packed,
    /// Width of a stamp.
    stamp_bits: u32,
    /// Was any cell set since the table was last cleared?
    marked: bool,
    sample: FillSample,
}

impl TimeBloom {
    /// An empty filter.
    ///
    /// # Errors
    /// [`PlanError::TooLarge`] for a shape that cannot be.
    pub fn new(shape: Shape) -> Result<Self, PlanError> {
        shape.check()?;
        Packed::words_for(shape.cells, shape.stamp_bits())
            .ok_or(PlanError::TooLarge("a table larger than any memory"))?;
        Ok(Self::with_cells(shape, Packed::new(shape.cells, shape.stamp_bits())))
    }

    fn with_cells(shape: Shape, cells: Packed) -> Self {
        Self {
            shape,
            cycle: Cycle::new(&shape),
            cells,
            stamp_bits: shape.stamp_bits(),
            marked: false,
            sample: FillSample::new(&shape),
        }
    }

    /// The parameters it was built from.
    pub fn shape(&self) -> &Shape {
        &self.shape
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

    #[inline]
    fn stamp_of(&self, cell: u64) -> u64 {
        self.cells.bits(cell, 0, self.stamp_bits)
    }

    /// How many of these cells are live now?
    #[inline]
    fn count_live(&self, positions: impl Iterator<Item = u64>) -> u32 {
        positions.map(|cell| u32::from(self.cycle.is_live(self.stamp_of(cell)))).sum()
    }

    #[inline]
    fn mark(&mut self, positions: impl Iterator<Item = u64>) {
        let (stamp, bits) = (self.cycle.stamp(), self.stamp_bits);
        for cell in positions {
            self.cells.set_bits(cell, 0, bits, stamp);
        }
        self.marked = true;
    }

    /// One arrival at given cells.
    #[inline]
    fn observe_at(&mut self, positions: impl Iterator<Item = u64> + Clone, now: Tick) -> Verdict {
        self.advance(now);
        let live = self.count_live(positions.clone());
        let duplicate = live == self.shape.hashes;
        if !duplicate {
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
        f64::from(self.count_live(cells)) / fill::LOOKS as f64
    }

    /// Goes on from this fill.
    pub(crate) fn resume(&mut self, fill: f64) {
        self.sample.resume(fill::seen_at(fill, self.shape.hashes));
    }

    /// Notes the fill that a fresh key saw without remembering it.
    pub(crate) fn sample(&mut self, digest: Digest) {
        let live = self.count_live(self.positions(digest));
        if live < self.shape.hashes {
            self.sample.add(live, self.shape.hashes);
        }
    }

    #[inline]
    pub(crate) fn prefetch(&self, digest: Digest) {
        for cell in self.positions(digest) {
            self.cells.prefetch(cell);
        }
    }

    pub(crate) fn write(&self, out: &mut Writer) {
        self.shape.write(out);
        self.cycle.write(out);
        self.sample.write(out);
        out.words(self.cells.words());
    }

    pub(crate) fn read(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        let shape = Shape::read(input)?;
        let cycle = Cycle::read(&shape, input)?;
        let sample = FillSample::read(&shape, input)?;
        let words = input.words(Packed::words_for(shape.cells, shape.stamp_bits()))?;
        let cells = Packed::from_words(words, shape.cells, shape.stamp_bits())
            .ok_or(SnapshotError::Invalid("bits set past the end of a table"))?;
        Ok(Self { cycle, sample, marked: true, ..Self::with_cells(shape, cells) })
    }
}

impl Filter for TimeBloom {
    fn contains(&self, digest: Digest, now: Tick) -> bool {
        self.positions(digest).all(|cell| self.cycle.is_live_at(self.stamp_of(cell), now))
    }

    fn fpr(&self) -> f64 {
        self.shape.fpr()
    }

    fn estimated_fpr(&self) -> f64 {
        libm::pow(self.fill(), f64::from(self.shape.hashes))
    }

    /// Sampled: from the share of live cells that recent fresh keys saw. 0 with one hash.
    fn fill(&self) -> f64 {
        self.sample.fill(self.shape.hashes)
    }

    fn memory(&self) -> usize {
        self.cells.memory()
    }
}

impl WindowFilter for TimeBloom {
    fn remember(&mut self, digest: Digest, now: Tick) {
        self.advance(now);
        let positions = self.positions(digest);
        let live = self.count_live(positions.clone());
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
        let (cycle, bits) = (&mut self.cycle, self.stamp_bits);
        match cycle.advance(now) {
            Sweep::Nothing => {}
            Sweep::Everything => {
                if self.marked {
                    self.cells.clear();
                    self.marked = false;
                }
                self.sample.reset();
            }
            Sweep::Cells(first, second) => {
                for range in [first, second] {
                    self.cells.retain(range, bits, |stamp| cycle.is_live(stamp));
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

/// The window of a shape, whose numbers are known not to be 0.
pub(super) fn window_of(shape: &Shape) -> Window {
    let at_least_one = |n| NonZeroU64::new(n).unwrap_or(NonZeroU64::MIN);
    Window::Time { span: at_least_one(shape.span), capacity: at_least_one(shape.capacity) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{Duplicate, Fresh};

    fn filter(cells: u64, hashes: u32, span: u64) -> TimeBloom {
        let renewal = Renewal::Always;
        TimeBloom::new(Shape { cells, hashes, span, grain: 1, capacity: 10, renewal }).unwrap()
    }

    #[test]
    fn example_1_of_the_paper() {
        let mut filter = filter(8, 3, 100);
        let (id1, id2) = ([0, 5, 2], [5, 7, 3]);
        let mut read = |id: [u64; 3], time| filter.observe_at(id.iter().copied(), Tick(time));
        assert_eq!(read(id1, 10), Fresh);
        assert_eq!(read(id2, 120), Fresh);
        assert_eq!(read(id1, 130), Fresh);
    }

    #[test]
    fn example_2_of_the_paper() {
        let mut filter = filter(5, 3, 100);
        let (id1, id2, id3, id4) = ([0, 1, 2], [3, 1, 2], [1, 2, 4], [3, 0, 4]);
        for (id, time) in [(id1, 10), (id1, 11), (id2, 14), (id3, 15), (id2, 17), (id2, 18)] {
            let _ = filter.observe_at(id.iter().copied(), Tick(time));
        }
        // A false positive: the time interval Bloom filter answers Fresh here.
        assert_eq!(filter.observe_at(id4.iter().copied(), Tick(20)), Duplicate);
    }

    #[test]
    fn a_chain_of_reads_is_one_visit() {
        let mut filter = filter(1000, 3, 8);
        let tag = Digest::new(1 << 60, 12345);
        let verdicts = [5, 10, 15].map(|time| filter.observe(tag, Tick(time)));
        assert_eq!(verdicts, [Fresh, Duplicate, Duplicate]);
    }

    #[test]
    fn a_read_at_time_0_is_not_lost() {
        let mut filter = filter(1000, 3, 8);
        let tag = Digest::new(7, 9);
        assert_eq!(filter.observe(tag, Tick(0)), Fresh);
        assert_eq!(filter.observe(tag, Tick(0)), Duplicate);
        assert_eq!(filter.observe(tag, Tick(8)), Duplicate);
    }
}
