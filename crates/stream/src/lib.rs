//! Records of real streams, from bytes to verdicts and back to bytes.

pub mod change;
pub mod clock;
pub mod format;
pub mod hold;
pub mod index;
pub mod judge;
pub mod moment;
pub mod options;
pub mod pipeline;
pub mod quantity;
pub mod read;
pub mod record;
mod scan;
pub mod simulate;
pub mod sink;
pub mod state;
pub mod summary;
pub mod watch;

pub use read::source;
pub use record::{epc, number, stamp};
