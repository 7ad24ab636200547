//! Intervals asked for key by key.

use super::RangeFilter;
use crate::{Digester, LastSeen, Tick};
use core::ops::RangeInclusive;

/// A point filter that is asked for intervals key by key.
///
/// Over a [`DleftWindow`](crate::window::DleftWindow) this is the range structure of Wang et al., over a
/// [`TimingBloom`](crate::window::TimingBloom) the baseline that they compare it with (T-DBF).
///
/// # Guarantee
/// That of the filter, for each key: an interval with a key of the window in it is never called
/// empty; another is called occupied with probability at most `L` times the filter's rate. So give
/// the filter `ε/L` for intervals of `L` keys.
///
/// # Cost
/// `L` questions for an interval of `L` keys: any length is answered, but a long one takes long.
///
/// # Example
/// ```
/// use core::num::NonZeroU64;
/// use lately::range::{KeyByKey, RangeFilter};
/// use lately::{Spec, Structure, Tick, Window};
/// let window = Window::Count(NonZeroU64::new(1_000).unwrap());
/// let plan = Spec::new(window).structure(Structure::DleftWindow).fpr(0.01 / 100.0).plan()?;
/// let filter = plan.build();
/// let mut seen = KeyByKey::new(filter.digester(), filter);
/// seen.insert(40_000, Tick(0));
/// assert!(seen.any_in(39_950..=40_049, None, Tick(0)));
/// assert!(!seen.any_in(40_001..=40_100, None, Tick(0)));
/// # Ok::<(), lately::PlanError>(())
/// ```
///
/// # Reference
/// X. Wang et al., IEEE Access 7, 2019, section IV.A (see [`DleftWindow`](crate::window::DleftWindow)).
#[derive(Clone, Debug, PartialEq)]
pub struct KeyByKey<F> {
    digester: Digester,
    filter: F,
}

impl<F: LastSeen> KeyByKey<F> {
    /// A range filter over this point filter, with keys hashed by this digester.
    pub const fn new(digester: Digester, filter: F) -> Self {
        Self { digester, filter }
    }

    /// The point filter.
    pub const fn filter(&self) -> &F {
        &self.filter
    }
}

impl<F: LastSeen> crate::filter::sealed::Sealed for KeyByKey<F> {}

impl<F: LastSeen> RangeFilter for KeyByKey<F> {
    fn insert(&mut self, key: u128, now: Tick) {
        let _ = self.filter.observe(self.digester.digest_integer(key), now);
    }

    fn any_in(&self, keys: RangeInclusive<u128>, within: Option<u64>, now: Tick) -> bool {
        let mut digests = keys.map(|key| self.digester.digest_integer(key));
        match within {
            None => digests.any(|digest| self.filter.contains(digest, now)),
            Some(within) => digests.any(|digest| self.filter.contains_within(digest, within, now)),
        }
    }

    fn fpr_of(&self, length: u128) -> f64 {
        -libm::expm1(length as f64 * libm::log1p(-self.filter.fpr()))
    }
}
