//! Changes, in the order in which they were made, until a journal takes them.
//!
//! Whoever changes a filter adds the change while it holds the filter's lock, so that the changes of one filter are in
//! the order in which they were made.

use super::change::{Change, PIECE};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Changes that no journal has taken yet. Where there is no journal nothing is gathered.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    is_gathered: AtomicBool,
    waiting: Mutex<Waiting>,
    /// Bytes of changes that were ever added: where the next one begins.
    end: AtomicU64,
}

#[derive(Debug, Default)]
struct Waiting {
    bytes: Vec<u8>,
    /// How often another file was begun.
    files: u64,
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

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a change.
    pub(crate) fn add(&self, change: &Change<'_>) {
        if self.are_gathered() {
            self.write(&mut self.lock(), change);
        }
    }

    fn write(&self, waiting: &mut Waiting, change: &Change<'_>) {
        let before = waiting.bytes.len();
        change.write(&mut waiting.bytes);
        self.end.fetch_add((waiting.bytes.len() - before) as u64, Ordering::Release);
    }

    /// Adds some of the dump of a filter, which is behind so many bytes of it. Returns in which file it is.
    pub(crate) fn add_pieces(&self, id: u64, from: u64, bytes: &[u8]) -> u64 {
        let mut waiting = self.lock();
        if self.are_gathered() {
            for (number, bytes) in bytes.chunks(PIECE).enumerate() {
                let from = from + (number * PIECE) as u64;
                self.write(&mut waiting, &Change::Piece { id, from, bytes });
            }
        }
        waiting.files
    }

    /// Adds that a filter was made of a dump of this length, whose pieces are in this file. `false`: another one was begun, and the
    /// pieces are gone with the next snapshot.
    pub(crate) fn add_restored(&self, id: u64, name: &[u8], length: u64, file: u64) -> bool {
        let mut waiting = self.lock();
        let is_here = waiting.files == file;
        if is_here && self.are_gathered() {
            self.write(&mut waiting, &Change::Restored { id, name, length });
        }
        is_here
    }

    /// Where the next change will begin. Of a filter whose lock is held, all changes lie before it.
    pub(crate) fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    /// Takes all changes that wait, behind those that are there. If they are the last ones of a file, those that come
    /// later are in the next one.
    pub(crate) fn take(&self, into: &mut Vec<u8>, are_last: bool) {
        let mut waiting = self.lock();
        waiting.files += u64::from(are_last);
        if into.is_empty() {
            std::mem::swap(&mut waiting.bytes, into);
        } else {
            into.append(&mut waiting.bytes);
        }
    }
}
