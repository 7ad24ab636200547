//! From what is asked for ([`Spec`]) to what is built ([`Plan`]).

pub(crate) mod formulas;
pub(crate) mod growth;

pub use formulas::{
    blocked_fpr, bloom_fill, bloom_fpr, bloom_hashes, range_emptiness_bound, time_decaying_bound,
};

use crate::engine::Size;
use crate::{PlanError, Renewal, Spec, Structure, Window};
use core::num::NonZeroU64;

impl Spec {
    /// Chooses a structure and its size.
    ///
    /// # Errors
    /// [`PlanError`] names the constraint that cannot be met and suggests a fix.
    pub fn plan(self) -> Result<Plan, PlanError> {
        self.terms.check()?;
        let structure = self.structure.unwrap_or(match self.terms.window {
            Window::Unbounded { .. } => Structure::BlockedBloom,
            Window::Count(_) | Window::Time { .. } => Structure::AgedTable,
        });
        structure.check(self.terms.window)?;
        let spec = Self { structure: Some(structure), ..self };
        structure.check_lateness(spec.terms.window, spec.lateness)?;
        let size = growth::first_size(&spec, structure)?;
        Ok(Plan { spec, structure, size })
    }

    /// [`Spec::plan`], where nobody named the number of keys: if as many do not fit into the memory limit, plans for
    /// about as many as do.
    ///
    /// A window of arrivals has no capacity of its own, and is planned as it is.
    ///
    /// # Errors
    /// As [`Spec::plan`]; [`PlanError::Memory`] where a single key does not fit.
    ///
    /// # Example
    /// ```
    /// use core::num::NonZeroU64;
    /// use lately::{Spec, Window};
    /// let window = Window::Unbounded { capacity: NonZeroU64::new(1_000_000).unwrap() };
    /// let spec = Spec::new(window).memory(1 << 20);
    /// assert!(spec.plan().is_err());
    /// assert!(spec.fit()?.window().capacity() > 100_000);
    /// # Ok::<(), lately::PlanError>(())
    /// ```
    pub fn fit(self) -> Result<Plan, PlanError> {
        if let Window::Count(_) = self.terms.window {
            return self.plan();
        }
        growth::fit(self.terms.window.capacity(), |keys| {
            self.capacity(NonZeroU64::new(keys).unwrap_or(NonZeroU64::MIN)).plan()
        })
    }
}

/// What will be built, and what it keeps. Made by [`Spec::plan`]; [`Plan::build`] makes the filter.
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
        self.spec.terms.window
    }

    /// Whether duplicates renew their key's age.
    pub fn renewal(&self) -> Renewal {
        self.spec.renewal
    }

    /// The seed of the digester that goes with the filter.
    pub fn seed(&self) -> u64 {
        self.spec.terms.seed
    }

    /// Keys that the first table holds before [`WhenFull`](crate::WhenFull) is asked.
    pub fn capacity(&self) -> u64 {
        self.size.contract().capacity
    }

    /// The false positive rate promised, over all the filter may grow to.
    pub fn fpr(&self) -> f64 {
        self.spec.terms.fpr
    }

    /// How much longer than the window a key may be reported, in ticks or arrivals.
    pub fn slack(&self) -> u64 {
        self.size.contract().slack
    }

    /// The most ticks that an arrival may lie behind the newest moment and be judged at its own.
    pub fn lateness(&self) -> u64 {
        self.spec.lateness
    }

    /// The most ticks that one arrival may be ahead of the newest moment and be believed, where there is a guard and
    /// moments matter: [`Spec::most_leap`].
    pub fn most_leap(&self) -> Option<u64> {
        self.spec.most_leap.filter(|_| matches!(self.window(), Window::Time { .. }))
    }

    /// Bytes allocated at the start.
    pub fn memory(&self) -> u64 {
        self.size.memory()
    }

    /// Bits allocated per key of the capacity.
    pub fn bits_per_key(&self) -> f64 {
        self.memory() as f64 * 8.0 / self.capacity() as f64
    }

    /// Bits per cell and hashes per key; for a window of slots, bits per slot and buckets per key.
    pub fn cell_bits_and_hashes(&self) -> (u32, u32) {
        self.size.cell_bits_and_hashes()
    }

    /// Bits per key that no structure with this contract can go below: `log2(1/ε)` to distinguish keys,
    /// and `log2(steps)` to distinguish ages, where `steps` is the window over the resolution.
    ///
    /// In a window of the last `n` arrivals that is what the bound of Wang et al. comes to
    /// ([`range_emptiness_bound`], for intervals of one key).
    pub fn lower_bound(&self) -> f64 {
        -libm::log2(self.spec.terms.fpr) + libm::log2(self.size.contract().steps as f64)
    }
}
