//! What outlives the process.

mod record;
mod snapshot;

pub(crate) use snapshot::{Folder, Saved};
