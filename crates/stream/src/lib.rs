//! Records of real streams, from bytes to verdicts and back to bytes.
//!
//! Whoever has keys and times already, instead of bytes, begins with [`session`].

#[cfg(feature = "parquet")]
pub mod columnar;
pub mod format;
pub mod judge;
pub mod options;
pub mod pipeline;
pub mod quantity;
pub mod read;
pub mod record;
mod scan;
pub mod schema;
pub mod session;
pub mod simulate;
pub mod state;
pub mod write;

pub use read::source;
pub use record::{epc, number, stamp};
