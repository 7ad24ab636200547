//! Windows of Bloom cells: a key marks several cells of one table, and each cell ages by itself.

mod core;
mod fill;
mod shape;
mod stamps;
mod time_bloom;
mod time_interval_bloom;
mod timing_bloom;

pub use shape::Shape;
pub use time_bloom::TimeBloom;
pub(crate) use time_interval_bloom::PlainIntervals;
pub use time_interval_bloom::{IntervalLayout, TimeIntervalBloom};
pub use timing_bloom::TimingBloom;
