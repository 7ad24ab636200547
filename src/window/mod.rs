//! Filters whose keys age: a key is found for one window after it was last remembered.

mod aged;
mod cycle;
mod fill;
mod shape;
mod time_bloom;
mod time_interval_bloom;

pub(crate) use fill::{margin as fill_margin, reach as fill_reach};
pub use shape::Shape;
pub use time_bloom::TimeBloom;
pub use time_interval_bloom::{IntervalLayout, TimeIntervalBloom};
