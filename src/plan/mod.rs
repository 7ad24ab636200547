//! From what is asked for ([`Spec`]) to what is built ([`Plan`]): every sizing formula.

mod bytes;
mod formulas;
mod size;

pub use formulas::{
    blocked_fpr, bloom_fill, bloom_fpr, bloom_hashes, range_emptiness_bound, time_decaying_bound,
};
pub(crate) use size::{Size, capacity_within};

use crate::any::AnyFilter;
use crate::window::late::IN_ORDER;
use crate::{PlanError, Renewal, Structure, WhenFull, Window, generations};

/// What a filter is to do. Begin with [`Spec::new`], end with [`Spec::plan`].
///
/// # Example
/// ```
/// use core::num::NonZeroU64;
/// use lately::{Spec, Tick, Verdict, Window, WindowFilter};
/// let window = Window::Count(NonZeroU64::new(1_000).unwrap());
/// let plan = Spec::new(window).fpr(1e-4).plan()?;
/// assert!(plan.fpr() <= 1e-4);
/// let mut filter = plan.build();
/// let key = filter.digester().digest(b"a key");
/// assert_eq!(filter.observe(key, Tick(0)), Verdict::Fresh);
/// assert_eq!(filter.observe(key, Tick(0)), Verdict::Duplicate);
/// # Ok::<(), lately::PlanError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spec {
    pub(crate) window: Window,
    pub(crate) fpr: f64,
    pub(crate) memory: Option<u64>,
    pub(crate) structure: Option<Structure>,
    pub(crate) renewal: Renewal,
    pub(crate) slack: u64,
    pub(crate) lateness: u64,
    pub(crate) when_full: WhenFull,
    pub(crate) seed: u64,
}

impl Spec {
    /// A filter for this window with a false positive rate of 1e-6, no slack, no lateness, no memory limit,
    /// renewal by every sighting, growing when full.
    pub const fn new(window: Window) -> Self {
        Self {
            window,
            fpr: 1e-6,
            memory: None,
            structure: None,
            renewal: Renewal::Always,
            slack: 0,
            lateness: 0,
            when_full: WhenFull::Grow,
            seed: 0,
        }
    }

    pub(crate) fn keeps_renewal(&self, renewal: Renewal) -> bool {
        self.renewal == renewal
    }

    /// The window asked for.
    pub const fn window(&self) -> Window {
        self.window
    }

    /// The same, planned for another number of distinct keys; see [`Window::with_capacity`].
    #[must_use]
    pub const fn capacity(self, keys: core::num::NonZeroU64) -> Self {
        Self { window: self.window.with_capacity(keys), ..self }
    }

    /// The highest false positive rate allowed, over all a filter grows to.
    #[must_use]
    pub const fn fpr(self, fpr: f64) -> Self {
        Self { fpr, ..self }
    }

    /// The most bytes the filter may ever allocate for its tables.
    #[must_use]
    pub const fn memory(self, bytes: u64) -> Self {
        Self { memory: Some(bytes), ..self }
    }

    /// The structure. Left out, it is an aged table, or where nothing is forgotten a blocked Bloom filter.
    #[must_use]
    pub const fn structure(self, structure: Structure) -> Self {
        Self { structure: Some(structure), ..self }
    }

    /// Whether duplicates renew their key's age.
    #[must_use]
    pub const fn renewal(self, renewal: Renewal) -> Self {
        Self { renewal, ..self }
    }

    /// How much longer than the window a key may still be reported, in ticks or arrivals.
    /// Twice the slack saves a bit a cell.
    #[must_use]
    pub const fn slack(self, slack: u64) -> Self {
        Self { slack, ..self }
    }

    /// The most ticks that an arrival may lie behind the newest moment and be judged, and remembered, at
    /// its own: a duplicate exactly when an earlier arrival of its key (under
    /// [`Renewal::OnFresh`]: one that was fresh) lies within the window of it, before or after. One that
    /// lies further behind counts as one that lies just so far behind. 0, which is the default, judges
    /// every late arrival at the newest moment.
    ///
    /// A window of time only. Keys are kept for window and lateness, so a lateness of one window takes
    /// twice the room; one of more takes two entries for each visit of a key: 22 times the room for ten
    /// windows.
    #[must_use]
    pub const fn lateness(self, ticks: u64) -> Self {
        Self { lateness: ticks, ..self }
    }

    /// What happens past the capacity.
    #[must_use]
    pub const fn when_full(self, when_full: WhenFull) -> Self {
        Self { when_full, ..self }
    }

    /// The seed of the [`Digester`](crate::Digester) that goes with the filter.
    #[must_use]
    pub const fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Chooses a structure and its size.
    ///
    /// # Errors
    /// [`PlanError`] says which wish cannot be kept, and what would help.
    pub fn plan(self) -> Result<Plan, PlanError> {
        if !(self.fpr > 0.0 && self.fpr < 1.0) {
            return Err(PlanError::Fpr(self.fpr));
        }
        let structure = self.structure.unwrap_or(match self.window {
            Window::Unbounded { .. } => Structure::BlockedBloom,
            Window::Count(_) | Window::Time { .. } => Structure::AgedTable,
        });
        if !structure.keeps(self.window) {
            let unbounded = matches!(self.window, Window::Unbounded { .. });
            return Err(PlanError::Window {
                structure: structure.name(),
                reason: match structure {
                    _ if structure.is_unbounded() => {
                        "it never forgets, so it keeps no window; `aged-table` and `time-bloom` do"
                    }
                    Structure::TimingBloom if !unbounded => {
                        "it counts arrivals, so its window is the last so many of them; `time-bloom` keeps times"
                    }
                    _ => {
                        "its keys age, so it needs a window; `bloom` and `blocked-bloom` remember for ever"
                    }
                },
            });
        }
        let spec = Self { structure: Some(structure), ..self };
        spec.check_lateness(structure)?;
        let capacity = generations::first_capacity(&spec, structure)?;
        let size = Size::new(&spec, structure, capacity, generations::first_share(&spec))?;
        if let Some(limit) = spec.memory.filter(|&limit| size.memory() > limit) {
            return Err(PlanError::Memory { needed: size.memory(), limit });
        }
        Ok(Plan { spec, structure, size })
    }

    fn check_lateness(&self, structure: Structure) -> Result<(), PlanError> {
        let reason = match self.window {
            _ if self.lateness == 0 => return Ok(()),
            Window::Time { .. } if structure.takes_late_arrivals() => return Ok(()),
            Window::Time { .. } => IN_ORDER,
            Window::Count(_) => {
                "arrivals that are counted are in order by themselves: leave out the lateness, or give a window of time"
            }
            Window::Unbounded { .. } => {
                "what is never forgotten is found however late it comes: leave out the lateness, or give a window of time"
            }
        };
        Err(PlanError::Window { structure: structure.name(), reason })
    }
}

/// What will be built, and what it keeps. Made by [`Spec::plan`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    pub(crate) spec: Spec,
    structure: Structure,
    pub(crate) size: Size,
}

impl Plan {
    /// The structure chosen.
    pub fn structure(&self) -> Structure {
        self.structure
    }

    /// The window asked for.
    pub fn window(&self) -> Window {
        self.spec.window
    }

    /// Whether duplicates renew their key's age.
    pub fn renewal(&self) -> Renewal {
        self.spec.renewal
    }

    /// The seed of the digester that goes with the filter.
    pub fn seed(&self) -> u64 {
        self.spec.seed
    }

    /// Keys that the first table holds before [`WhenFull`] is asked.
    pub fn capacity(&self) -> u64 {
        self.size.capacity()
    }

    /// The false positive rate promised, over all the filter may grow to.
    pub fn fpr(&self) -> f64 {
        self.spec.fpr
    }

    /// How much longer than the window a key may be reported, in ticks or arrivals.
    pub fn slack(&self) -> u64 {
        self.size.slack()
    }

    /// The most ticks that an arrival may lie behind the newest moment and be judged at its own.
    pub fn lateness(&self) -> u64 {
        self.spec.lateness
    }

    /// Bytes allocated at the start.
    pub fn memory(&self) -> u64 {
        self.size.memory()
    }

    /// Bits allocated a key of the capacity.
    pub fn bits_per_key(&self) -> f64 {
        self.memory() as f64 * 8.0 / self.capacity() as f64
    }

    /// Bits a cell and hashes a key; for a window of slots, bits a slot and buckets a key.
    pub fn cell_bits_and_hashes(&self) -> (u32, u32) {
        self.size.cell_bits_and_hashes()
    }

    /// Bits a key that no structure with this contract can go below: `log2(1/ε)` to tell keys
    /// apart, and `log2(steps)` to tell ages apart, where `steps` is the window over the grain.
    ///
    /// In a window of the last `n` arrivals that is what the bound of Wang et al. comes to
    /// ([`range_emptiness_bound`], for intervals of one key).
    pub fn lower_bound(&self) -> f64 {
        -libm::log2(self.spec.fpr) + libm::log2(self.size.steps() as f64)
    }

    /// The empty filter.
    ///
    /// # Panics
    /// When there is no memory for it, as `Vec` does; [`Plan::try_build`] says so instead.
    pub fn build(&self) -> AnyFilter {
        match self.try_build() {
            Ok(filter) => filter,
            Err(error) => unavailable(&error),
        }
    }

    /// The empty filter.
    ///
    /// # Errors
    /// [`PlanError::Unavailable`] when there is no memory for it.
    pub fn try_build(&self) -> Result<AnyFilter, PlanError> {
        AnyFilter::new(self)
    }
}

/// Ends a call that has no other way to say it.
#[cold]
#[expect(clippy::panic, reason = "what `Vec` does when there is no memory; documented")]
fn unavailable(error: &PlanError) -> ! {
    panic!("{error}")
}
