//! What the aged Bloom filters share: time, fill, and the order of one step.

use crate::snapshot::{Reader, Writer};
use crate::window::cycle::{Cycle, Sweep};
use crate::window::fill::{self, FillSample};
use crate::window::shape::Shape;
use crate::{Digest, Renewal, SnapshotError, Tick, Verdict, Window};
use core::num::NonZeroU64;
use core::ops::Range;

/// Cells that remember when they were set.
pub(super) trait Table {
    /// Looks at cells as they are `later` grains from now: how many are live, and is a key with
    /// just these cells a duplicate?
    fn judge(&self, cells: impl Iterator<Item = u64>, cycle: &Cycle, later: u64) -> (u32, bool);

    /// Is a key with just these cells a duplicate? May stop at the first cell that says no.
    fn holds(&self, cells: impl Iterator<Item = u64>, cycle: &Cycle, later: u64) -> bool {
        self.judge(cells, cycle, later).1
    }

    /// Sets cells now.
    fn mark(&mut self, cells: impl Iterator<Item = u64>, cycle: &Cycle);

    /// Unsets every cell.
    fn clear(&mut self);

    /// Unsets those of a range that are not live.
    fn clear_expired(&mut self, range: Range<u64>, cycle: &Cycle);

    /// Begins to fetch the memory of a cell.
    fn prefetch(&self, cell: u64);

    /// Bytes allocated.
    fn memory(&self) -> usize;

    /// Writes the cells; what the shape implies is known to who reads them.
    fn write(&self, out: &mut Writer);
}

/// An aged Bloom filter over some kind of cells.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Aged<T> {
    pub(super) shape: Shape,
    pub(super) cycle: Cycle,
    pub(super) table: T,
    /// Was any cell set since the table was last cleared?
    marked: bool,
    sample: FillSample,
}

impl<T: Table> Aged<T> {
    /// An empty filter; the shape has been checked and the table is of that shape.
    pub(super) fn new(shape: Shape, table: T) -> Self {
        let (cycle, sample) = (Cycle::new(&shape), FillSample::new(&shape));
        Self { shape, cycle, table, marked: false, sample }
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.sample.is_full()
    }

    #[inline]
    fn positions(&self, digest: Digest) -> impl Iterator<Item = u64> + Clone + use<T> {
        digest.probes(self.shape.cells).take(self.shape.hashes as usize)
    }

    #[inline]
    pub(super) fn contains(&self, digest: Digest, now: Tick) -> bool {
        self.table.holds(self.positions(digest), &self.cycle, self.cycle.grains_until(now))
    }

    /// The first tick of the newest grain seen.
    pub(super) fn newest(&self) -> Tick {
        self.cycle.newest()
    }

    /// The share of live cells, looked at here and now.
    pub(super) fn look_at_fill(&self, digest: Digest) -> f64 {
        let cells = digest.probes(self.shape.cells).take(fill::LOOKS);
        f64::from(self.table.judge(cells, &self.cycle, 0).0) / fill::LOOKS as f64
    }

    /// The share of live cells as far as fresh keys have seen it.
    pub(super) fn fill(&self) -> f64 {
        self.sample.fill(self.shape.hashes)
    }

    /// The false positive rate of a Time Bloom filter with this fill.
    pub(super) fn estimated_fpr(&self) -> f64 {
        libm::pow(self.fill(), f64::from(self.shape.hashes))
    }

    /// One arrival.
    #[inline]
    pub(super) fn observe(&mut self, digest: Digest, now: Tick) -> Verdict {
        let mut spare = [0; 64];
        let probes = digest.probes(self.shape.cells);
        let positions = probes.write_down(self.shape.hashes, &mut spare);
        self.observe_at(positions.iter().copied(), now)
    }

    /// One arrival at given cells: advance, query, insert or renew.
    #[inline]
    pub(super) fn observe_at(
        &mut self,
        positions: impl Iterator<Item = u64> + Clone,
        now: Tick,
    ) -> Verdict {
        self.advance(now);
        let (live, duplicate) = self.table.judge(positions.clone(), &self.cycle, 0);
        self.note(live);
        if !duplicate || self.shape.renewal == Renewal::Always {
            self.mark(positions);
        }
        if duplicate { Verdict::Duplicate } else { Verdict::Fresh }
    }

    /// Marks a key as seen, whatever was known of it.
    pub(super) fn remember(&mut self, digest: Digest, now: Tick) {
        self.advance(now);
        self.sample(digest);
        self.mark(self.positions(digest));
    }

    /// Notes the fill that a key sees without remembering it.
    pub(super) fn sample(&mut self, digest: Digest) {
        let (live, _) = self.table.judge(self.positions(digest), &self.cycle, 0);
        self.note(live);
    }

    /// Keys whose cells are all live are left out, as `FillSample` expects.
    #[inline]
    fn note(&mut self, live: u32) {
        if live < self.shape.hashes {
            self.sample.add(live, self.shape.hashes);
        }
    }

    /// Goes on from this fill.
    pub(super) fn resume(&mut self, fill: f64) {
        self.sample.resume(fill::seen_at(fill, self.shape.hashes));
    }

    #[inline]
    fn mark(&mut self, positions: impl Iterator<Item = u64>) {
        self.table.mark(positions, &self.cycle);
        self.marked = true;
    }

    #[inline]
    pub(super) fn prefetch(&self, digest: Digest) {
        self.positions(digest).for_each(|cell| self.table.prefetch(cell));
    }

    /// Lets time pass, and clears what has expired meanwhile.
    #[inline]
    pub(super) fn advance(&mut self, now: Tick) {
        match self.cycle.advance(now) {
            Sweep::Nothing => {}
            Sweep::Everything => {
                if self.marked {
                    self.table.clear();
                    self.marked = false;
                }
                self.sample.reset();
            }
            Sweep::Cells(first, second) => {
                self.table.clear_expired(first, &self.cycle);
                self.table.clear_expired(second, &self.cycle);
            }
        }
    }

    /// The window of the shape, whose numbers are known not to be 0.
    pub(super) fn window(&self) -> Window {
        let at_least_one = |n| NonZeroU64::new(n).unwrap_or(NonZeroU64::MIN);
        Window::Time {
            span: at_least_one(self.shape.span),
            capacity: at_least_one(self.shape.capacity),
        }
    }

    pub(super) fn write(&self, out: &mut Writer) {
        self.shape.write(out);
        self.cycle.write(out);
        self.sample.write(out);
        self.table.write(out);
    }

    /// Reads what [`Aged::write`] wrote, the cells with `table`.
    pub(super) fn read(
        input: &mut Reader<'_>,
        table: impl FnOnce(&Shape, &Cycle, &mut Reader<'_>) -> Result<T, SnapshotError>,
    ) -> Result<Self, SnapshotError> {
        let shape = Shape::read(input)?;
        let cycle = Cycle::read(&shape, input)?;
        let sample = FillSample::read(&shape, input)?;
        let table = table(&shape, &cycle, input)?;
        Ok(Self { shape, cycle, table, marked: true, sample })
    }
}

/// The public face of an aged Bloom filter: a struct around an [`Aged`].
macro_rules! face {
    ($filter:ident) => {
        impl $filter {
            /// The parameters it was built from.
            pub fn shape(&self) -> &Shape {
                &self.0.shape
            }

            /// Does it hold more keys than it was planned for? With one hash it cannot tell.
            #[inline]
            pub fn is_full(&self) -> bool {
                self.0.is_full()
            }

            pub(crate) fn newest(&self) -> Tick {
                self.0.newest()
            }

            pub(crate) fn look_at_fill(&self, digest: Digest) -> f64 {
                self.0.look_at_fill(digest)
            }

            pub(crate) fn resume(&mut self, fill: f64) {
                self.0.resume(fill);
            }

            pub(crate) fn sample(&mut self, digest: Digest) {
                self.0.sample(digest);
            }

            #[inline]
            pub(crate) fn prefetch(&self, digest: Digest) {
                self.0.prefetch(digest);
            }

            pub(crate) fn write(&self, out: &mut Writer) {
                self.0.write(out);
            }
        }

        impl Filter for $filter {
            #[inline]
            fn contains(&self, digest: Digest, now: Tick) -> bool {
                self.0.contains(digest, now)
            }

            fn fpr(&self) -> f64 {
                self.0.shape.fpr()
            }

            /// That of a Time Bloom filter with this fill, the most it can be for both kinds.
            fn estimated_fpr(&self) -> f64 {
                self.0.estimated_fpr()
            }

            /// Sampled: from the share of live cells that recent fresh keys saw. 0 with one hash.
            fn fill(&self) -> f64 {
                self.0.fill()
            }

            fn memory(&self) -> usize {
                self.0.table.memory()
            }
        }

        impl WindowFilter for $filter {
            fn remember(&mut self, digest: Digest, now: Tick) {
                self.0.remember(digest, now);
            }

            #[inline]
            fn observe(&mut self, digest: Digest, now: Tick) -> Verdict {
                self.0.observe(digest, now)
            }

            #[inline]
            fn advance(&mut self, now: Tick) {
                self.0.advance(now);
            }

            fn window(&self) -> Window {
                self.0.window()
            }

            fn slack(&self) -> u64 {
                self.0.shape.slack()
            }
        }
    };
}

pub(super) use face;
