//! What outlives the process: snapshots and journals in a folder.

mod disk;
mod journal;
mod recover;
mod snapshot;
#[cfg(test)]
mod tests;

pub(crate) use journal::Journal;
pub(crate) use recover::{Recovered, replay_bytes};
pub(crate) use snapshot::{Folder, Saved};
