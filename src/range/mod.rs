//! Filters that are asked for intervals of whole numbers.

mod ages;
mod block;
mod bytes;
mod code;
mod ends;
mod flat;
mod key_by_key;
mod level;
mod pool;
mod saved;
mod size;
mod spec;
mod table;
mod tiers;
mod window;
mod word;

pub use bytes::{beginning_with, between, number_of};
pub use key_by_key::KeyByKey;
pub use spec::{RangePlan, RangeSpec};
pub use window::{Answer, RangeWindow};

use crate::{Tick, Verdict};
use core::ops::RangeInclusive;

/// A window over keys that are whole numbers: was any key of an interval seen lately?
///
/// The one kind of filter that hashes its keys itself, as an interval is more than the digests of
/// its ends.
///
/// Sealed: implemented by the library alone.
pub trait RangeFilter: crate::filter::sealed::Sealed {
    /// One arrival that is marked without being judged.
    fn insert(&mut self, key: u128, now: Tick);

    /// One arrival: was the key seen within the window? It is marked as seen now in any case.
    fn observe(&mut self, key: u128, now: Tick) -> Verdict {
        let seen = self.any_in(key..=key, None, now);
        self.insert(key, now);
        if seen { Verdict::Duplicate } else { Verdict::Fresh }
    }

    /// Was any of these keys seen, within the window or the last `within` ticks or arrivals of it?
    /// Never `false` where one was. An empty interval holds no key.
    fn any_in(&self, keys: RangeInclusive<u128>, within: Option<u64>, now: Tick) -> bool;

    /// The most that the false positive rate of an interval of so many keys can be.
    fn fpr_of(&self, length: u128) -> f64;
}
