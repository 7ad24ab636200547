//! Filters whose keys age: a key is found for one window after it was last remembered.

mod cells;
mod cycle;
mod face;
pub(crate) mod late;
mod slots;

pub use cells::{IntervalLayout, Shape, TimeBloom, TimeIntervalBloom, TimingBloom};
pub(crate) use cells::{fill_margin, fill_reach};
pub(crate) use cycle::Pace;
pub(crate) use slots::{
    AGED_LOAD, KEYS_A_BUCKET, STASHED, aged_size, aged_slots, dleft_fpr, paired_fpr,
};
pub use slots::{AgedBuckets, AgedTable, CuckooSize, CuckooWindow, DleftWindow, Keeps};
