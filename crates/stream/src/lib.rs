//! Records of real streams, from bytes to verdicts and back to bytes.
//!
//! source → frame → field → clock → filter → sink; one file each.

pub mod change;
pub mod clock;
pub mod epc;
pub mod field;
pub mod format;
pub mod frame;
pub mod hold;
pub mod index;
pub mod judge;
mod line;
pub mod moment;
pub mod number;
pub mod pipeline;
pub mod quantity;
pub mod record;
pub mod simulate;
pub mod sink;
pub mod source;
pub mod stamp;
pub mod state;
pub mod summary;
pub mod watch;
