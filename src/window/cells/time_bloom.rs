//! The Time Bloom filter.

use crate::bits::swept::Swept;
use crate::codec::Reader;
use crate::table::{Contract, Recipe, Windows};
use crate::window::cells::core::Aged;
use crate::window::cells::shape::Shape;
use crate::window::cells::stamps::Stamps;
use crate::window::cycle::Pace;
use crate::window::traits::window_traits;
use crate::{PlanError, SnapshotError, Spec};

/// A Bloom filter whose cells hold the time they were last set.
///
/// A key is a duplicate when all its `k` cells were set within the window.
///
/// # Guarantee
/// A key remembered within the last `span` ticks is always found; one last remembered more than
/// `span + slack` ticks ago is found with probability at most [`Filter::fpr`](crate::Filter::fpr) while no more than
/// `capacity` distinct keys fall into a span: `(1 - (1 - 1/m)^(k·n'))^k` (Theorem 1 of the paper). With a grain of several
/// ticks, those that have expired count as long as others of their grain are live.
///
/// # Cost
/// `k` cells an operation, each a cache line when the table is larger than the cache;
/// [`Shape::stamp_bits`] bits per cell; a sweep of about one cell per cell set.
/// After a pause, however long, the arrivals that follow sweep the table, a few pages each.
///
/// # Example
/// ```
/// use lately::{Digester, Renewal, Tick, Verdict, WindowFilter, window::{Shape, TimeBloom}};
/// let shape = Shape {
///     cells: 10_000, hashes: 7, span: 8, grain: 1, lateness: 0, capacity: 900, renewal: Renewal::Always,
/// };
/// let mut filter = TimeBloom::new(shape)?;
/// let tag = Digester::new(0).digest(b"tag");
/// assert_eq!(filter.observe(tag, Tick(5)), Verdict::Fresh);
/// assert_eq!(filter.observe(tag, Tick(10)), Verdict::Duplicate);
/// assert_eq!(filter.observe(tag, Tick(15)), Verdict::Duplicate); // the chain continues
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
/// - A read older than the newest is judged at the newest time: no cell goes back. It takes no lateness.
/// - Duplicates may be left out of the renewal ([`Renewal::OnFresh`](crate::Renewal::OnFresh)).
#[derive(Clone, Debug, PartialEq)]
pub struct TimeBloom(Aged<Stamps>);

impl TimeBloom {
    /// An empty filter.
    ///
    /// # Errors
    /// [`PlanError`] for a shape that cannot be, or that there is no memory for.
    pub fn new(shape: Shape) -> Result<Self, PlanError> {
        shape.check_in_order("time-bloom")?;
        let pace = Pace::ticking(&shape);
        Ok(Self(Aged::new(shape, pace, Stamps::new(shape.cells, pace.stamp_bits())?)))
    }

    /// The parameters it was built from.
    pub fn shape(&self) -> &Shape {
        &self.0.shape
    }

    pub(crate) fn read(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        Aged::read(input, Pace::ticking, Stamps::read).map(Self)
    }
}

impl Recipe for TimeBloom {
    type Table = Self;
    type Size = Shape;

    const WINDOWS: Windows = Windows::Any;

    fn size(spec: &Spec, capacity: u64, fpr: f64) -> Result<Shape, PlanError> {
        Shape::for_keys(spec, capacity, fpr)
    }

    fn contract(shape: &Shape) -> Contract {
        shape.contract()
    }

    fn memory(shape: &Shape) -> Option<u64> {
        Swept::bytes_for(shape.cells, shape.stamp_bits())
    }

    fn cell_bits_and_hashes(shape: &Shape) -> (u32, u32) {
        (shape.stamp_bits(), shape.hashes)
    }

    fn build(shape: Shape) -> Result<Self, PlanError> {
        Self::new(shape)
    }

    fn read(input: &mut Reader<'_>) -> Result<Self::Table, SnapshotError> {
        Self::read(input)
    }
}

window_traits!(TimeBloom);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict::{Duplicate, Fresh};
    use crate::{Digest, Renewal, Tick, WindowFilter};

    fn filter(cells: u64, hashes: u32, span: u64) -> TimeBloom {
        let renewal = Renewal::Always;
        TimeBloom::new(Shape { cells, hashes, span, grain: 1, lateness: 0, capacity: 10, renewal })
            .unwrap()
    }

    #[test]
    fn example_1_of_the_paper() {
        let mut filter = filter(8, 3, 100);
        let (id1, id2) = ([0, 5, 2], [5, 7, 3]);
        let mut read = |id: [u64; 3], time| filter.0.observe_at(id.iter().copied(), Tick(time));
        assert_eq!(read(id1, 10), Fresh);
        assert_eq!(read(id2, 120), Fresh);
        assert_eq!(read(id1, 130), Fresh);
    }

    #[test]
    fn example_2_of_the_paper() {
        let mut filter = filter(5, 3, 100);
        let (id1, id2, id3, id4) = ([0, 1, 2], [3, 1, 2], [1, 2, 4], [3, 0, 4]);
        for (id, time) in [(id1, 10), (id1, 11), (id2, 14), (id3, 15), (id2, 17), (id2, 18)] {
            let _ = filter.0.observe_at(id.iter().copied(), Tick(time));
        }
        // A false positive: the time interval Bloom filter answers Fresh here.
        assert_eq!(filter.0.observe_at(id4.iter().copied(), Tick(20)), Duplicate);
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
