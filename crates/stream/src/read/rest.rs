//! How a run ends that is told to while it reads, and what has been read by then and not been handed on:
//! no whole record, as yet. It is gone from the pipe.
//!
//! A thread that reads a [`Pipe`](super::pipe::Pipe) is told by a bell and ends by itself. One that waits in
//! a read, or for a named pipe to open, cannot be told: it leaves what it has here, from where the thread
//! that ends the run takes it.

use super::chunk::{Chunk, Fate};
use super::error::{SourceError, SourceErrorKind};
use crate::format::layout::Progress;
use crate::options::Options;
use crate::schema::{Resolved, Schema};
use std::fmt;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How long a run that was told to end waits for the rest of a record that it has read in part.
const GRACE: Duration = Duration::from_millis(500);

/// How often to look whether the run is to end where there is no bell.
pub(super) const LOOK: Duration = Duration::from_millis(20);

/// The beginning of a record, which a run that was told to end had read of a pipe, and forwarded without
/// judging it. What the next run reads of that pipe begins with the rest of the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// What tells the pipe from others, as long as the machine runs.
    pub pipe: String,
    /// What was read of the record.
    pub bytes: Vec<u8>,
}

/// Bytes on their way to becoming a chunk.
#[derive(Debug, Default)]
pub(super) struct Piece {
    pub(super) source: usize,
    pub(super) bytes: Vec<u8>,
    pub(super) schema: Option<Arc<Schema>>,
    pub(super) header: bool,
    pub(super) overlong: Option<u64>,
    /// So much of it was read and forwarded by the last run.
    pub(super) begun: usize,
}

impl Piece {
    /// The chunk that it is if the run ends here: what is not a whole record is not judged as one.
    pub(super) fn into_chunk(self, options: &Options) -> Result<Option<Chunk>, SourceErrorKind> {
        let Self { source, bytes, schema, mut header, overlong, begun } = self;
        if bytes.len() == begun {
            return Ok(None);
        }
        let schema = match schema {
            Some(schema) => schema,
            None => {
                let schema = match Schema::resolve(options, &bytes, true) {
                    Ok(Resolved::Schema(schema)) => *schema,
                    Ok(Resolved::More) => Schema::raw(options).map_err(SourceErrorKind::Setup)?,
                    Err(reason) => return Err(SourceErrorKind::Setup(reason)),
                };
                header = schema.header;
                Arc::new(schema)
            }
        };
        let fate = match overlong {
            Some(length) => Fate::Overlong(length),
            None => {
                let mut progress = Progress { is_begun: !header, ..Progress::default() };
                match schema.layout.cut(&bytes, 0, &mut progress) {
                    // A header is no record, and is not judged.
                    0 if header => Fate::Records,
                    end => Fate::Left(end),
                }
            }
        };
        let begun = begun.min(bytes.len());
        Ok(Some(Chunk { source, bytes, schema, header, fate, begun }))
    }
}

#[derive(Debug, Default)]
enum Slot {
    /// The reading thread is at work.
    #[default]
    Busy,
    /// It waits for bytes, and these are what it has.
    Waiting(Piece),
    /// It reads bytes that are there, unless another process took them meanwhile.
    Reading(Piece),
    /// The run has ended without it.
    Taken,
}

/// How long to wait for the bytes of a pipe.
pub(super) enum Patience<'a> {
    /// Until this rings.
    Bell(&'a PipeReader),
    /// For so long.
    For(Duration),
    /// Not any longer.
    Over,
}

/// What the threads that read and judge have in common.
#[derive(Clone, Debug, Default)]
pub(super) struct Rest(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    slot: Mutex<Slot>,
    stop: AtomicBool,
    /// When it was first found to be set.
    stopped: OnceLock<Instant>,
    bell: Option<(PipeReader, PipeWriter)>,
    left: Mutex<Option<Left>>,
    /// The input that begins with the rest of a record of the last run.
    resumed: AtomicUsize,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            slot: Mutex::default(),
            stop: AtomicBool::new(false),
            stopped: OnceLock::new(),
            bell: io::pipe().ok(),
            left: Mutex::default(),
            resumed: AtomicUsize::new(usize::MAX),
        }
    }
}

impl Rest {
    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.0.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves this here, before waiting.
    pub(super) fn leave(&self, piece: Piece) {
        self.set(Slot::Waiting(piece));
    }

    /// Leaves this here, before reading what is there.
    pub(super) fn leave_shortly(&self, piece: Piece) {
        self.set(Slot::Reading(piece));
    }

    fn set(&self, to: Slot) {
        let mut slot = self.slot();
        if !matches!(*slot, Slot::Taken) {
            *slot = to;
        }
    }

    /// Takes it back, after waiting; `None` if the run has ended meanwhile.
    pub(super) fn take_back(&self) -> Option<Vec<u8>> {
        let mut slot = self.slot();
        match &mut *slot {
            Slot::Waiting(piece) | Slot::Reading(piece) => {
                let bytes = std::mem::take(&mut piece.bytes);
                *slot = Slot::Busy;
                Some(bytes)
            }
            Slot::Busy => Some(Vec::new()),
            Slot::Taken => None,
        }
    }

    /// Tells the reading thread to end with the record at hand.
    pub(super) fn stop(&self) {
        if !self.0.stop.swap(true, Ordering::Relaxed)
            && let Some((_, bell)) = &self.0.bell
        {
            // It is never answered, so it rings on.
            let _ = (&*bell).write(&[0]);
        }
    }

    /// Is the run to end with the record at hand?
    pub(super) fn is_stopping(&self) -> bool {
        self.0.stop.load(Ordering::Relaxed)
    }

    /// How long to wait for bytes, with a `part` of a record at hand or not.
    pub(super) fn patience(&self, part: bool) -> Patience<'_> {
        if !self.is_stopping() {
            let bell = self.0.bell.as_ref();
            return bell.map_or(Patience::For(LOOK), |(bell, _)| Patience::Bell(bell));
        }
        let since = self.0.stopped.get_or_init(Instant::now).elapsed();
        match GRACE.checked_sub(since) {
            Some(left) if part => Patience::For(left),
            _ => Patience::Over,
        }
    }

    pub(super) fn is_taken(&self) -> bool {
        matches!(*self.slot(), Slot::Taken)
    }

    /// The part of a record that this run leaves.
    pub(super) fn set_left(&self, left: Left) {
        *self.0.left.lock().unwrap_or_else(PoisonError::into_inner) = Some(left);
    }

    /// Notes that this input begins with the rest of a record.
    pub(super) fn set_resumed(&self, source: usize) {
        self.0.resumed.store(source, Ordering::Relaxed);
    }
}

/// Tells that nothing is there to be read, once after each piece that was handed on.
#[derive(Clone, Default)]
pub(super) struct Quiet(Arc<Teller>);

#[derive(Default)]
struct Teller {
    tell: OnceLock<Box<dyn Fn() + Send + Sync>>,
    told: AtomicBool,
}

impl Quiet {
    /// From now on this is called.
    pub(super) fn call(&self, tell: impl Fn() + Send + Sync + 'static) {
        let _ = self.0.tell.set(Box::new(tell));
    }

    /// There was something.
    pub(super) fn end(&self) {
        self.0.told.store(false, Ordering::Relaxed);
    }

    pub(super) fn tell(&self) {
        if !self.0.told.swap(true, Ordering::Relaxed)
            && let Some(tell) = self.0.tell.get()
        {
            tell();
        }
    }
}

impl fmt::Debug for Quiet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Quiet").finish_non_exhaustive()
    }
}

/// The other end: for the thread that ends the run.
#[derive(Debug)]
pub(crate) struct Remains {
    options: Options,
    names: Vec<String>,
    rest: Rest,
}

impl Remains {
    pub(super) fn new(options: Options, names: Vec<String>, rest: Rest) -> Self {
        Self { options, names, rest }
    }

    /// Tells the reading thread to end with the record at hand.
    pub(crate) fn stop(&self) {
        self.rest.stop();
    }

    /// The part of a record that the reading thread has left.
    pub(crate) fn left(&self) -> Option<Left> {
        self.rest.0.left.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Does this input begin with the rest of a record of the last run?
    pub(crate) fn is_resumed(&self, source: usize) -> bool {
        self.rest.0.resumed.load(Ordering::Relaxed) == source
    }

    /// If the reading thread waits where it cannot be told to end, and all that it handed on has been
    /// dealt with: what it has. From then on it hands on nothing. The rest of a record is waited for
    /// at first, and so are bytes that were there; `stopped` is how long ago the run was told to end.
    pub(crate) fn take_if(
        &self,
        stopped: Duration,
        all_done: impl Fn() -> bool,
    ) -> Option<Result<Option<Chunk>, SourceError>> {
        let mut slot = self.rest.slot();
        // Asked while the lock is held: the reading thread can hand on nothing meanwhile.
        match &*slot {
            Slot::Waiting(piece) if stopped < GRACE && piece.bytes.len() > piece.begun => {
                return None;
            }
            Slot::Reading(_) if stopped < 2 * GRACE => return None,
            Slot::Waiting(_) | Slot::Reading(_) if all_done() => {}
            _ => return None,
        }
        let slot = std::mem::replace(&mut *slot, Slot::Taken);
        let (Slot::Waiting(piece) | Slot::Reading(piece)) = slot else { return None };
        let source = piece.source;
        Some(piece.into_chunk(&self.options).map_err(|kind| {
            let name = self.names.get(source).cloned().unwrap_or_default();
            SourceError { source, name, kind }
        }))
    }
}
