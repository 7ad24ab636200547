//! What has been read from a pipe and not been handed on: no whole record, as yet. It is gone from
//! the pipe, so a run that ends while the reading thread waits for more takes it from here.

use super::chunk::{Chunk, Fate};
use super::error::{SourceError, SourceErrorKind};
use crate::options::Options;
use crate::schema::{Resolved, Schema};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes on their way to becoming a chunk.
#[derive(Debug, Default)]
pub(super) struct Piece {
    pub(super) source: usize,
    pub(super) bytes: Vec<u8>,
    pub(super) schema: Option<Arc<Schema>>,
    pub(super) header: bool,
    pub(super) overlong: Option<u64>,
}

impl Piece {
    /// The chunk that it is if nothing follows.
    pub(super) fn into_chunk(self, options: &Options) -> Result<Option<Chunk>, SourceErrorKind> {
        let Self { source, bytes, schema, mut header, overlong } = self;
        if bytes.is_empty() {
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
        let fate = overlong.map_or(Fate::Records, Fate::Overlong);
        Ok(Some(Chunk { source, bytes, schema, header, fate }))
    }
}

#[derive(Debug, Default)]
enum Slot {
    /// The reading thread is at work.
    #[default]
    Busy,
    /// It waits for bytes, and these are what it has.
    Waiting(Piece),
    /// The run has ended without it.
    Taken,
}

/// Where the reading thread leaves what it has while it waits.
#[derive(Clone, Debug, Default)]
pub(super) struct Rest(Arc<Mutex<Slot>>);

impl Rest {
    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves this here, before waiting.
    pub(super) fn leave(&self, piece: Piece) {
        let mut slot = self.slot();
        if !matches!(*slot, Slot::Taken) {
            *slot = Slot::Waiting(piece);
        }
    }

    /// Takes it back, after waiting; `None` if the run has ended meanwhile.
    pub(super) fn take_back(&self) -> Option<Vec<u8>> {
        let mut slot = self.slot();
        match &mut *slot {
            Slot::Waiting(piece) => {
                let bytes = std::mem::take(&mut piece.bytes);
                *slot = Slot::Busy;
                Some(bytes)
            }
            Slot::Busy => Some(Vec::new()),
            Slot::Taken => None,
        }
    }

    pub(super) fn is_taken(&self) -> bool {
        matches!(*self.slot(), Slot::Taken)
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

    /// If the reading thread waits for bytes and all that it handed on has been dealt with: what
    /// it has. From then on it hands on nothing.
    pub(crate) fn take_if(
        &self,
        all_done: impl FnOnce() -> bool,
    ) -> Option<Result<Option<Chunk>, SourceError>> {
        let mut slot = self.rest.slot();
        // Asked while the lock is held: the reading thread can hand on nothing meanwhile.
        if !matches!(*slot, Slot::Waiting(_)) || !all_done() {
            return None;
        }
        let Slot::Waiting(piece) = std::mem::replace(&mut *slot, Slot::Taken) else { return None };
        let source = piece.source;
        Some(piece.into_chunk(&self.options).map_err(|kind| {
            let name = self.names.get(source).cloned().unwrap_or_default();
            SourceError { source, name, kind }
        }))
    }
}
