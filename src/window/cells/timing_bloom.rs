//! The Timing Bloom filter: a Time Bloom filter whose time is the number of the arrival.

use crate::bits::swept::Swept;
use crate::codec::Reader;
use crate::table::{Contract, Recipe, Windows};
use crate::window::cells::core::Aged;
use crate::window::cells::shape::Shape;
use crate::window::cells::stamps::Stamps;
use crate::window::cycle::Pace;
use crate::window::traits::window_traits;
use crate::{PlanError, SnapshotError, Spec};

/// A Bloom filter whose cells hold the number of the arrival that last set them, modulo a cycle.
///
/// A key is a duplicate when all its `k` cells were set by one of the last `n` arrivals. Every
/// [`observe`](crate::WindowFilter::observe) is an arrival; ticks are not needed, and count on when given.
///
/// # Guarantee
/// A key among the last `span` arrivals is always found; another is found with probability at most
/// [`Filter::fpr`](crate::Filter::fpr), `(1 - (1 - 1/m)^(k·n))^k`. No slack.
///
/// # Cost
/// `k` cells an operation, each a cache line when the table is larger than the cache;
/// `ceil(log2(2n + 1))` bits per cell; a sweep of `m/n` cells per arrival.
///
/// # Example
/// ```
/// use lately::{Digester, Renewal, Tick, Verdict, WindowFilter, window::{Shape, TimingBloom}};
/// let shape = Shape {
///     cells: 20_000, hashes: 7, span: 1_000, grain: 1, lateness: 0, capacity: 1_000, renewal: Renewal::Always,
/// };
/// let mut filter = TimingBloom::new(shape)?;
/// let key = Digester::new(0).digest(b"key");
/// assert_eq!(filter.observe(key, Tick(0)), Verdict::Fresh);
/// assert_eq!(filter.observe(key, Tick(0)), Verdict::Duplicate);
/// # Ok::<(), lately::PlanError>(())
/// ```
///
/// # Reference
/// L. Zhang, Y. Guan, "Detecting click fraud in pay-per-click streams of online advertising
/// networks", ICDCS 2008, doi:10.1109/ICDCS.2008.98. Papers that build on it call it TBF or T-DBF.
///
/// # Differs from the paper
/// - Positions are derived from one 128-bit digest, not from `k` hash functions.
/// - Duplicates may be left out of the renewal ([`Renewal::OnFresh`](crate::Renewal::OnFresh)).
/// - [`Merge`](crate::Merge) is refused: two filters count their own arrivals, and "the last n" of both together has
///   no meaning.
#[derive(Clone, Debug, PartialEq)]
pub struct TimingBloom(Aged<Stamps>);

impl TimingBloom {
    /// An empty filter for the last `shape.span` arrivals. The grain must be 1.
    ///
    /// # Errors
    /// [`PlanError`] for a shape that cannot be, or that there is no memory for.
    pub fn new(shape: Shape) -> Result<Self, PlanError> {
        shape.check_in_order("timing-bloom")?;
        if shape.grain != 1 {
            return Err(PlanError::TooLarge(
                "a Timing Bloom filter counts every arrival: its grain is 1",
            ));
        }
        let pace = Self::pace(&shape);
        Ok(Self(Aged::new(shape, pace, Stamps::new(shape.cells, pace.stamp_bits())?)))
    }

    fn pace(shape: &Shape) -> Pace {
        Pace::counting(shape.span)
    }

    /// Bits of a cell for the last `n` arrivals: `ceil(log2(2n + 1))`.
    pub fn stamp_bits(n: u64) -> u32 {
        Pace::counting(n).stamp_bits()
    }

    /// The parameters it was built from.
    pub fn shape(&self) -> &Shape {
        &self.0.shape
    }

    pub(crate) fn read(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        let filter = Aged::read(input, Self::pace, Stamps::read).map(Self)?;
        let exact = filter.shape().grain == 1;
        exact.then_some(filter).ok_or(SnapshotError::Invalid("arrivals counted in grains"))
    }
}

impl Recipe for TimingBloom {
    type Table = Self;
    type Size = Shape;

    const WINDOWS: Windows = Windows::Arrivals;

    fn size(spec: &Spec, capacity: u64, fpr: f64) -> Result<Shape, PlanError> {
        Ok(Shape { grain: 1, ..Shape::for_keys(spec, capacity, fpr)? })
    }

    fn contract(shape: &Shape) -> Contract {
        Contract { slack: 0, ..shape.contract() }
    }

    fn memory(shape: &Shape) -> Option<u64> {
        Swept::bytes_for(shape.cells, Self::stamp_bits(shape.span))
    }

    fn cell_bits_and_hashes(shape: &Shape) -> (u32, u32) {
        (Self::stamp_bits(shape.span), shape.hashes)
    }

    fn build(shape: Shape) -> Result<Self, PlanError> {
        Self::new(shape)
    }

    fn read(input: &mut Reader<'_>) -> Result<Self::Table, SnapshotError> {
        Self::read(input)
    }
}

window_traits!(TimingBloom);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Renewal, Tick, WindowFilter};

    /// The paper's counters: 2n stamps and "empty".
    #[test]
    fn stamps_are_as_narrow_as_the_papers() {
        for n in 1u64..5_000 {
            let values = 2 * n + 1;
            assert_eq!(TimingBloom::stamp_bits(n), 64 - (values - 1).leading_zeros(), "{n}");
        }
    }

    /// Every arrival counts one, whatever tick it is given.
    #[test]
    fn ticks_are_not_needed() {
        let shape = Shape {
            cells: 5_000,
            hashes: 8,
            span: 3,
            grain: 1,
            lateness: 0,
            capacity: 3,
            renewal: Renewal::Always,
        };
        let mut filter = TimingBloom::new(shape).unwrap();
        let key = |n| crate::Digester::new(0).digest(&[n]);
        let mut arrive = |n| filter.observe(key(n), Tick(0));
        let verdicts = [0, 1, 2, 0, 3, 4, 5, 0].map(|n| arrive(n).is_duplicate());
        assert_eq!(verdicts, [false, false, false, true, false, false, false, false]);
    }
}
