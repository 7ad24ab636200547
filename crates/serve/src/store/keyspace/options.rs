//! What the key space is made with, and which tables that allows.

use super::life::eighths;
use super::table::Table;
use crate::store::template::AN_AGE;
use lately::{Renewal, Spec, WhenFull, Window};
use std::num::NonZeroU64;

/// What the key space is made with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct KeySpaceOptions {
    /// Keys expected within each time to live.
    pub(crate) capacity: u64,
    /// The false positive rate of all its filters together.
    pub(crate) fpr: f64,
    /// Times to live that are kept exactly; others are rounded up.
    pub(crate) ttls: usize,
    /// Whether keys without a time to live are taken.
    pub(crate) forever: bool,
}

impl Default for KeySpaceOptions {
    fn default() -> Self {
        Self { capacity: 1_000_000, fpr: 1e-9, ttls: 32, forever: false }
    }
}

/// Rounded times to live that are kept in steps of an eighth; past that they are rounded up to a power of two.
const FINE: usize = 64;
/// Filters that rounded times to live, and keys without one, may need: one for each power of two there is, too.
pub(super) const ROUNDED: usize = 128;
/// Keys that the filter of a rounded time to live is made for, as a part of the capacity. It grows.
const PART: u64 = 16;
/// A key may be there for such a part of its time to live longer: 18 ms of ten minutes. The bits that ages are kept in would
/// otherwise be more, for long lives, than those that tell keys apart.
pub(super) const EXACTNESS: u64 = 1 << 15;

impl KeySpaceOptions {
    /// The time to live under which a key is kept: itself or a longer one.
    pub(super) fn round(
        self,
        tables: &[Table],
        ttl: NonZeroU64,
        exact: bool,
    ) -> (NonZeroU64, bool) {
        let exact_ones = tables.iter().filter(|table| table.is_exact).count();
        if exact && exact_ones < self.ttls {
            return (ttl, true);
        }
        let fine = eighths(ttl);
        let rounded = tables.iter().filter(|table| !table.is_exact).count();
        if rounded < FINE || tables.iter().any(|table| table.ttl == Some(fine)) {
            return (fine, false);
        }
        (ttl.checked_next_power_of_two().unwrap_or(NonZeroU64::MAX), false)
    }

    /// The false positive rate for a further table. Those of all that there can be add up to the one that was promised:
    /// half of it is for times to live that are kept exactly, half for those that are rounded.
    ///
    /// Most have one time to live, or a few. So the first table may take a half of what there is, the second a third of
    /// what is left then, the next a fourth, which is a sixth and a twelfth of the whole: each costs a bit or two per key more
    /// than the one before, and not all of them what the last one does.
    pub(super) fn fpr_of_next(self, tables: &[Table], is_exact: bool) -> f64 {
        let all = self.fpr / 2.0;
        if !is_exact {
            return all / ROUNDED as f64;
        }
        let rates = tables.iter().filter(|table| table.is_exact);
        let rates = rates.map(|table| table.filter.filter().plan().fpr());
        let (others, taken) = rates.fold((0, 0.0), |(others, sum), fpr| (others + 1, sum + fpr));
        // Tables that were saved when more was promised may have taken all.
        let least = all / (self.ttls.max(1) as f64 + 1.0).powi(2);
        ((all - taken) / f64::from(others + 2)).max(least)
    }

    /// What is asked of the library for such a table.
    pub(super) fn spec(
        self,
        (ttl, is_exact): (Option<NonZeroU64>, bool),
        fpr: f64,
        seed: u64,
    ) -> Spec {
        let part = if is_exact { 1 } else { PART };
        let capacity = NonZeroU64::new(self.capacity / part).unwrap_or(NonZeroU64::MIN);
        let span = ttl.unwrap_or(AN_AGE);
        let slack = ttl.map_or(AN_AGE.get(), |ttl| ttl.get() / EXACTNESS);
        let spec = Spec::new(Window::Time { span, capacity }).seed(seed).fpr(fpr);
        spec.slack(slack).renewal(Renewal::OnFresh).when_full(WhenFull::Grow)
    }
}
