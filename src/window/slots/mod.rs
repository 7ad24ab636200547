//! Windows of slots: a key keeps a fingerprint and its age in one slot of a table.

mod aged_buckets;
mod aged_table;
mod core;
mod cuckoo_window;
mod dleft_window;
mod late;
mod paired;
mod stash;

pub use self::core::Keeps;
pub(crate) use self::core::STASHED;
pub use aged_buckets::AgedBuckets;
pub(crate) use aged_buckets::LOAD as AGED_LOAD;
pub use aged_table::AgedTable;
pub(crate) use aged_table::{aged_size, aged_slots};
pub use cuckoo_window::{CuckooSize, CuckooWindow};
pub use dleft_window::DleftWindow;
pub(crate) use dleft_window::{KEYS_A_BUCKET, dleft_fpr};
pub(crate) use paired::paired_fpr;
