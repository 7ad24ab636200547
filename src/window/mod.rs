//! Filters whose keys age: a key is found for one window after it was last remembered.

mod aged;
mod aged_buckets;
mod aged_line;
mod aged_table;
mod cuckoo_blocks;
mod cuckoo_window;
mod cycle;
mod dleft_window;
mod face;
mod fill;
mod paired;
mod shape;
mod slotted;
mod stamps;
mod stash;
mod time_bloom;
mod time_interval_bloom;
mod timing_bloom;

pub use aged_buckets::AgedBuckets;
pub(crate) use aged_buckets::LOAD as AGED_LOAD;
pub use aged_table::AgedTable;
pub(crate) use aged_table::{aged_size, aged_slots};
pub use cuckoo_window::{CuckooSize, CuckooWindow};
pub(crate) use cycle::Pace;
pub use dleft_window::DleftWindow;
pub(crate) use dleft_window::{KEYS_A_BUCKET, dleft_fpr};
pub(crate) use fill::{margin as fill_margin, reach as fill_reach};
pub(crate) use paired::paired_fpr;
pub use shape::Shape;
pub use slotted::Keeps;
pub(crate) use slotted::STASHED;
pub use time_bloom::TimeBloom;
pub use time_interval_bloom::{IntervalLayout, TimeIntervalBloom};
pub use timing_bloom::TimingBloom;
