//! From what is asked of a range window ([`RangeSpec`]) to what is built ([`RangePlan`]).

use super::RangeWindow;
use super::block::BLOCK;
use super::size::{Fullness, Size};
use crate::{PlanError, WhenFull, Window};

/// What a range window is to do. Begin with [`RangeSpec::new`], end with [`RangeSpec::plan`].
///
/// # Example
/// ```
/// use core::num::NonZeroU64;
/// use lately::range::RangeSpec;
/// use lately::{Tick, Window};
/// let window = Window::Count(NonZeroU64::new(10_000).unwrap());
/// let plan = RangeSpec::new(window).interval(256).fpr(0.01).slack(1_250).plan()?;
/// let mut seen = plan.build();
/// seen.insert(40_000, Tick(0));
/// assert!(seen.any(39_900..=40_100, Tick(0)).is_perhaps());
/// # Ok::<(), lately::PlanError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RangeSpec {
    pub(super) window: Window,
    pub(super) interval: u128,
    pub(super) fpr: f64,
    pub(super) slack: u64,
    pub(super) memory: Option<usize>,
    pub(super) when_full: WhenFull,
    pub(super) seed: u64,
}

impl RangeSpec {
    /// For this window, intervals of up to 1024 keys, a false positive rate of 1 %, no slack, no
    /// memory limit, growing when full.
    pub const fn new(window: Window) -> Self {
        Self {
            window,
            interval: 1 << 10,
            fpr: 0.01,
            slack: 0,
            memory: None,
            when_full: WhenFull::Grow,
            seed: 0,
        }
    }

    /// The longest interval, in keys, that is to keep the rate. Twice as long costs a bit a key.
    ///
    /// Longer ones are answered as well, at a rate that rises with their length.
    #[must_use]
    pub const fn interval(self, keys: u128) -> Self {
        Self { interval: keys, ..self }
    }

    /// The highest false positive rate allowed for intervals of that length.
    #[must_use]
    pub const fn fpr(self, fpr: f64) -> Self {
        Self { fpr, ..self }
    }

    /// How much longer than the window a key may still be reported, in ticks or arrivals. An eighth
    /// of the window costs 4 bits a key; none costs as many as there are in the window's length.
    #[must_use]
    pub const fn slack(self, slack: u64) -> Self {
        Self { slack, ..self }
    }

    /// The most bytes that the window may ever allocate.
    #[must_use]
    pub const fn memory_limit(self, bytes: usize) -> Self {
        Self { memory: Some(bytes), ..self }
    }

    /// What happens past the capacity of a window of time.
    #[must_use]
    pub const fn when_full(self, when_full: WhenFull) -> Self {
        Self { when_full, ..self }
    }

    /// The seed of the hash. Windows that are to be merged need the same.
    #[must_use]
    pub const fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Chooses the sizes.
    ///
    /// # Errors
    /// [`PlanError`] says which wish cannot be kept, and what would help.
    pub fn plan(self) -> Result<RangePlan, PlanError> {
        if !(self.fpr > 0.0 && self.fpr < 1.0) {
            return Err(PlanError::Fpr(self.fpr));
        }
        if self.interval == 0 {
            return Err(PlanError::TooLarge("an interval of no keys cannot be planned for"));
        }
        let size = Size::new(&self)?;
        let plan = RangePlan { spec: self, size };
        if let Some(limit) = self.memory.filter(|&limit| plan.most_memory() > limit) {
            let (needed, limit) = (plan.most_memory() as u64, limit as u64);
            return Err(PlanError::Memory { needed, limit });
        }
        Ok(plan)
    }
}

/// What will be built, and what it keeps. Made by [`RangeSpec::plan`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RangePlan {
    pub(super) spec: RangeSpec,
    pub(super) size: Size,
}

impl RangePlan {
    /// The window asked for.
    pub const fn window(&self) -> Window {
        self.spec.window
    }

    /// The longest interval that keeps the rate.
    pub const fn interval(&self) -> u128 {
        self.spec.interval
    }

    /// The false positive rate promised for intervals of [`RangePlan::interval`] keys.
    pub const fn fpr(&self) -> f64 {
        self.spec.fpr
    }

    /// The seed of the hash.
    pub const fn seed(&self) -> u64 {
        self.spec.seed
    }

    /// How much longer than the window a key may be reported, in ticks or arrivals: what was asked for, or less.
    pub const fn slack(&self) -> u64 {
        if self.size.ages.bits == 0 { 0 } else { self.size.ages.grain - 1 }
    }

    /// Steps that ages are told apart by within the window.
    pub fn slices(&self) -> u64 {
        self.spec.window.span().map_or(1, |span| span.div_ceil(self.size.ages.grain))
    }

    /// Bytes allocated when the window is full of keys that arrive evenly; before that, fewer.
    pub fn memory(&self) -> usize {
        self.size.fixed_memory() + self.size.blocks(Fullness::Usual) * BLOCK
    }

    /// Bytes allocated at worst, up to the capacity: when all arrivals come just behind the sweep.
    pub fn most_memory(&self) -> usize {
        self.size.fixed_memory() + self.size.chunks(Fullness::Most) * self.size.chunk_memory()
    }

    /// Bits allocated a key of a full window.
    pub fn bits_per_key(&self) -> f64 {
        self.memory() as f64 * 8.0 / self.spec.window.capacity() as f64
    }

    /// Bits a key that no structure with this contract can go below: `log2(L/ε)` to tell intervals
    /// apart, and `log2(window/slack)` to tell ages apart.
    pub fn bound_bits(&self) -> f64 {
        let steps = self.spec.window.span().unwrap_or(1) as f64 / self.spec.slack.max(1) as f64;
        libm::log2(self.spec.interval as f64 / self.spec.fpr) + libm::log2(steps.max(1.0))
    }

    /// The empty window.
    pub fn build(&self) -> RangeWindow {
        RangeWindow::new(*self)
    }
}
