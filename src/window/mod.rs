//! Filters whose keys age: a key is found for one window after it was last remembered.

#[cfg(all(test, feature = "std"))]
mod behind;
mod cells;
mod cycle;
pub(crate) mod ends;
pub(crate) mod late;
mod slots;
#[cfg(all(test, feature = "std"))]
mod sparse;
mod traits;

pub(crate) use cells::PlainIntervals;
pub use cells::{IntervalLayout, Shape, TimeBloom, TimeIntervalBloom, TimingBloom};
pub use slots::{AgedBuckets, AgedTable, CuckooSize, CuckooWindow, DleftWindow, Keeps};
