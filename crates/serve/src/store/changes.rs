//! Changes, in the order in which they were made, until a journal takes them.
//!
//! Whoever changes a filter adds the change while it holds the filter's lock, so that the changes of one filter are in
//! the order in which they were made.

use super::change::{Change, PIECE};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Changes that no journal has taken yet. Where there is no journal nothing is gathered.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    is_gathered: AtomicBool,
    waiting: Mutex<Vec<u8>>,
    /// Bytes of changes that were ever added: where the next one begins.
    end: AtomicU64,
}

impl Changes {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// The next change begins at this place.
    pub(crate) fn start_at(&self, end: u64) {
        self.end.store(end, Ordering::Release);
    }

    /// Gathers changes from here on.
    pub(crate) fn gather(&self) {
        self.is_gathered.store(true, Ordering::Release);
    }

    pub(crate) fn are_gathered(&self) -> bool {
        self.is_gathered.load(Ordering::Relaxed)
    }

    /// Adds a change.
    pub(crate) fn add(&self, change: &Change<'_>) {
        self.write(|waiting| change.write(waiting));
    }

    /// Adds that a filter was made of a dump. All of it lies in one file of the journal, as the next one may be the first
    /// that is kept.
    pub(crate) fn add_restored(&self, id: u64, name: &[u8], dump: &[u8]) {
        self.write(|waiting| {
            waiting.reserve(dump.len() + dump.len() / 1024);
            for (number, bytes) in dump.chunks(PIECE).enumerate() {
                let from = (number * PIECE) as u64;
                Change::Piece { id, from, bytes }.write(waiting);
            }
            Change::Restored { id, name, length: dump.len() as u64 }.write(waiting);
        });
    }

    fn write(&self, write: impl FnOnce(&mut Vec<u8>)) {
        if self.are_gathered() {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let before = waiting.len();
            write(&mut waiting);
            self.end.fetch_add((waiting.len() - before) as u64, Ordering::Release);
        }
    }

    /// Where the next change will begin. Of a filter whose lock is held, all changes lie before it.
    pub(crate) fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    /// Takes all changes that wait, behind those that are there.
    pub(crate) fn take(&self, into: &mut Vec<u8>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if into.is_empty() {
            std::mem::swap(&mut *waiting, into);
        } else {
            into.append(&mut waiting);
        }
    }
}
