//! The journal: every change since the last snapshot, written before the replies leave.
//!
//! A file `journal-N` holds what changed after snapshot N was begun. The place of a change is counted in bytes from the
//! first journal on, so that a snapshot can say for each filter which changes are in it.

use super::disk::{Disk, Medium};
use crate::store::Changes;
use lately::SnapshotError;
use lately::codec::{self, Format, Reader};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const FORMAT: Format = Format::new(*b"\x89LJRNL\r\n", 1);

/// Bytes of a file before the first change.
pub(crate) const HEADER: u64 = 52;
/// How often what was written is synced, and a disk in trouble is tried again.
const TICK: Duration = Duration::from_secs(1);
/// Buffers are kept up to this size.
const KEPT: usize = 1 << 20;

/// What a journal file begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) seed: u64,
    pub(crate) number: u64,
    /// The place of its first change.
    pub(crate) base: u64,
}

impl Header {
    fn bytes(self) -> Vec<u8> {
        codec::to_vec(FORMAT, |out| {
            [self.seed, self.number, self.base].into_iter().for_each(|n| out.u64(n));
        })
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Self, SnapshotError> {
        codec::from_slice(FORMAT, bytes, |input: &mut Reader<'_>| {
            Ok(Self { seed: input.u64()?, number: input.u64()?, base: input.u64()? })
        })
    }
}

/// Writes changes to disk.
#[derive(Debug)]
pub(crate) struct Journal {
    disk: Box<dyn Disk>,
    changes: Arc<Changes>,
    seed: u64,
    /// Replies wait until their changes are on disk, and not only with the system.
    is_always: bool,
    segment: Mutex<Segment>,
    /// Changes before this place were given to the system; those before the other are on disk.
    written: AtomicU64,
    synced: AtomicU64,
    is_in_trouble: AtomicBool,
    trouble: Mutex<Option<Trouble>>,
    is_ending: Mutex<bool>,
    end: Condvar,
}

/// The file that is written to.
#[derive(Debug)]
struct Segment {
    file: Arc<dyn Medium>,
    base: u64,
    /// Changes that could not be written yet.
    unwritten: Vec<u8>,
}

/// Why no changes are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Trouble {
    error: String,
    /// What was written may be lost, and only a snapshot helps.
    is_broken: bool,
    is_said: bool,
}

impl Journal {
    /// Begins a journal with this file, where the store's changes are. On a full disk it begins by refusing changes.
    pub(crate) fn begin(
        disk: Box<dyn Disk>,
        changes: &Arc<Changes>,
        seed: u64,
        number: u64,
        is_always: bool,
    ) -> io::Result<Self> {
        let base = changes.end();
        let reserved = disk.reserve();
        let file = disk.create(number, &Header { seed, number, base }.bytes())?;
        changes.gather();
        let journal = Self {
            disk,
            changes: Arc::clone(changes),
            seed,
            is_always,
            segment: Mutex::new(Segment { file, base, unwritten: Vec::new() }),
            written: AtomicU64::new(base),
            synced: AtomicU64::new(base),
            is_in_trouble: AtomicBool::new(false),
            trouble: Mutex::default(),
            is_ending: Mutex::default(),
            end: Condvar::new(),
        };
        reserved.unwrap_or_else(|error| journal.refuse(&error, false));
        Ok(journal)
    }

    fn lock(&self) -> MutexGuard<'_, Segment> {
        self.segment.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn trouble(&self) -> MutexGuard<'_, Option<Trouble>> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of changes that are not on disk.
    pub(crate) fn lag(&self) -> u64 {
        self.changes.end().saturating_sub(self.synced.load(Ordering::Relaxed))
    }

    /// Why no changes are taken now.
    pub(crate) fn refusal(&self) -> Option<String> {
        if !self.is_in_trouble.load(Ordering::Acquire) {
            return None;
        }
        self.trouble().as_ref().map(|trouble| trouble.error.clone())
    }

    fn is_done(&self, end: u64) -> bool {
        let done = if self.is_always { &self.synced } else { &self.written };
        done.load(Ordering::Acquire) >= end
    }

    /// Returns once the changes that there are now are as safe as replies ask for. Callers that wait for each other
    /// have all their changes written, and synced, at once.
    pub(crate) fn commit(&self) -> Result<(), String> {
        let end = self.changes.end();
        if self.is_done(end) {
            return Ok(());
        }
        let mut segment = self.lock();
        if self.is_done(end) {
            return Ok(());
        }
        self.write(&mut segment, false)?;
        if self.is_always {
            let written = self.written.load(Ordering::Acquire);
            self.sync(&*segment.file, written)?;
        }
        Ok(())
    }

    /// Gives all changes to the system, the last ones of a file or not. If the disk is full, the room that was kept is given up, and
    /// no changes are taken from here on.
    fn write(&self, segment: &mut Segment, are_last: bool) -> Result<(), String> {
        self.changes.take(&mut segment.unwritten, are_last);
        if segment.unwritten.is_empty() {
            return Ok(());
        }
        let at = HEADER + (self.written.load(Ordering::Acquire) - segment.base);
        let mut written = segment.file.write(&segment.unwritten, at);
        if let Err(error) = &written {
            self.refuse(error, false);
            self.disk.release();
            written = segment.file.write(&segment.unwritten, at);
        }
        written.map_err(|error| error.to_string())?;
        self.written.fetch_add(segment.unwritten.len() as u64, Ordering::Release);
        segment.unwritten.clear();
        segment.unwritten.shrink_to(KEPT);
        Ok(())
    }

    fn sync(&self, file: &dyn Medium, written: u64) -> Result<(), String> {
        match file.sync() {
            Ok(()) => {
                self.synced.fetch_max(written, Ordering::Release);
                Ok(())
            }
            Err(error) => {
                self.refuse(&error, true);
                Err(error.to_string())
            }
        }
    }

    fn refuse(&self, error: &io::Error, is_broken: bool) {
        let mut trouble = self.trouble();
        let error = error.to_string();
        match &mut *trouble {
            Some(trouble) => trouble.is_broken |= is_broken,
            None => *trouble = Some(Trouble { error, is_broken, is_said: false }),
        }
        self.is_in_trouble.store(true, Ordering::Release);
    }

    fn accept(&self) {
        *self.trouble() = None;
        self.is_in_trouble.store(false, Ordering::Release);
    }

    /// Writes what comes from here on to another file. Returns the place where that begins.
    pub(crate) fn rotate(&self, number: u64) -> Result<u64, String> {
        let mut segment = self.lock();
        let is_broken = self.trouble().as_ref().is_some_and(|trouble| trouble.is_broken);
        self.write(&mut segment, true)?;
        let base = self.written.load(Ordering::Acquire);
        // All of it, also where replies do not wait: the next file must not be there without it.
        if let Err(error) = self.sync(&*segment.file, base)
            && !is_broken
        {
            return Err(error);
        }
        let header = Header { seed: self.seed, number, base };
        let file = self.disk.create(number, &header.bytes()).map_err(|error| error.to_string())?;
        (segment.file, segment.base) = (file, base);
        Ok(base)
    }

    /// A snapshot was taken: what was in older files is not needed.
    pub(crate) fn snapshot_taken(&self) {
        let is_broken = self.trouble().as_ref().is_some_and(|trouble| trouble.is_broken);
        if is_broken && self.disk.reserve().is_ok() {
            self.accept();
        }
    }

    /// Syncs what was written and tries a disk that was in trouble again, every second, until told to end. What goes
    /// wrong is said once; if a snapshot is needed, it is asked for.
    pub(crate) fn keep(&self, log: &dyn Fn(&str), snapshot: &dyn Fn()) {
        let mut is_ending = self.is_ending.lock().unwrap_or_else(PoisonError::into_inner);
        while !*is_ending {
            let waited = self.end.wait_timeout(is_ending, TICK);
            is_ending = waited.unwrap_or_else(PoisonError::into_inner).0;
            self.tick(log, snapshot);
        }
    }

    /// What is done every second.
    pub(crate) fn tick(&self, log: &dyn Fn(&str), snapshot: &dyn Fn()) {
        let file = Arc::clone(&self.lock().file);
        let written = self.written.load(Ordering::Acquire);
        if self.synced.load(Ordering::Acquire) < written {
            // Said below.
            let _ = self.sync(&*file, written);
        }
        let trouble = self.trouble().clone();
        let Some(trouble) = trouble else { return };
        if !trouble.is_said {
            log(&format!(
                "the journal cannot be written, so changes are refused: {}",
                trouble.error
            ));
            self.trouble().iter_mut().for_each(|trouble| trouble.is_said = true);
        }
        if trouble.is_broken {
            snapshot();
            return;
        }
        let written = self.write(&mut self.lock(), false);
        if written.is_ok() && self.disk.reserve().is_ok() {
            self.accept();
            log("the journal can be written again, so changes are taken");
        }
    }

    /// Ends [`Journal::keep`].
    pub(crate) fn end(&self) {
        *self.is_ending.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.end.notify_all();
    }
}
