//! Windows of slots: a key keeps a fingerprint and its age in one slot of a table.

mod aged_buckets;
mod aged_table;
mod core;
mod cuckoo_window;
mod dleft_window;
mod forget;
mod keeps;
mod late;
mod moves;
mod paired;
mod recency;
mod stash;
mod table;

pub use aged_buckets::AgedBuckets;
pub use aged_table::AgedTable;
pub use cuckoo_window::{CuckooSize, CuckooWindow};
pub use dleft_window::DleftWindow;
pub use keeps::Keeps;
