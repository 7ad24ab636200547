//! One output: a file, or standard output.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

/// Bytes gathered before they are written.
const BUFFER: usize = 256 * 1024;

/// One output: a file, or standard output.
pub struct Output {
    name: String,
    writer: Box<dyn Write + Send>,
    /// The same, where it is a regular file: it can be made durable.
    file: Option<Arc<File>>,
    buffer: Vec<u8>,
    /// Forwarded records go here.
    pub(super) main: bool,
    pub(super) has_header: bool,
    /// Nothing is written.
    discards: bool,
    /// The last record written had no line end; one is added if another follows.
    open_line: bool,
    pub(super) written: u64,
}

impl Output {
    /// An output that is called `name` in errors.
    pub fn new(name: impl Into<String>, writer: Box<dyn Write + Send>) -> Self {
        let buffer = Vec::with_capacity(BUFFER + (BUFFER / 4));
        Self {
            name: name.into(),
            writer,
            file: None,
            buffer,
            main: false,
            has_header: false,
            discards: false,
            open_line: false,
            written: 0,
        }
    }

    /// An output that discards what is written to it.
    pub fn none() -> Self {
        Self { discards: true, ..Self::new("nowhere", Box::new(io::sink())) }
    }

    /// States that the header line is there already, as in a file that is appended to.
    #[must_use]
    pub fn has_header(self, has_header: bool) -> Self {
        Self { has_header, ..self }
    }

    /// Names the file it writes to in the end. If that is a regular one, it is synced before a state
    /// that remembers its records is saved.
    #[must_use]
    pub fn sync_on_save(self, file: &File) -> Self {
        let regular = file.metadata().is_ok_and(|metadata| metadata.is_file());
        let file = if regular { file.try_clone().ok().map(Arc::new) } else { None };
        Self { file, ..self }
    }

    /// What is left to do, after everything was flushed, for its records to survive a power failure; a
    /// pipe has no such thing.
    pub(super) fn unsynced(&self) -> Option<Unsynced> {
        let file = Arc::clone(self.file.as_ref()?);
        Some(Unsynced { name: self.name.clone(), main: self.main, file })
    }

    /// Bytes written to it.
    pub fn written(&self) -> u64 {
        self.written
    }

    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        let Some(last) = bytes.last().filter(|_| !self.discards) else { return Ok(()) };
        if self.open_line {
            self.buffer.push(b'\n');
            self.written += 1;
        }
        self.open_line = *last != b'\n';
        self.written += bytes.len() as u64;
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER { self.write_out() } else { Ok(()) }
    }

    /// One record; if it is detached it brings no line end.
    pub(super) fn put_record(&mut self, bytes: &[u8], detached: bool) -> Result<(), SinkError> {
        self.put(bytes)?;
        if detached && std::mem::take(&mut self.open_line) {
            self.buffer.push(b'\n');
            self.written += 1;
        }
        Ok(())
    }

    fn write_out(&mut self) -> Result<(), SinkError> {
        let result = self.writer.write_all(&self.buffer);
        self.buffer.clear();
        result.map_err(|error| self.error(error))
    }

    pub(super) fn flush(&mut self) -> Result<(), SinkError> {
        self.write_out()?;
        self.writer.flush().map_err(|error| self.error(error))
    }

    /// The error of an output that cannot take more.
    pub(super) fn full(&self, reason: String) -> SinkError {
        self.error(io::Error::other(reason))
    }

    fn error(&self, error: io::Error) -> SinkError {
        SinkError { name: self.name.clone(), main: self.main, error }
    }
}

/// Records of an output that may still be in the caches of the system. Syncing may take long, and can be
/// done on any thread.
#[derive(Debug)]
pub struct Unsynced {
    name: String,
    main: bool,
    file: Arc<File>,
}

impl Unsynced {
    /// One of a file that nothing can be written to.
    #[cfg(test)]
    pub(crate) fn broken(file: File) -> Self {
        Self { name: "broken".into(), main: false, file: Arc::new(file) }
    }

    /// Waits until the records would survive a power failure.
    ///
    /// # Errors
    /// [`SinkError`] if they cannot be written.
    pub fn sync(&self) -> Result<(), SinkError> {
        let failed = |error| SinkError { name: self.name.clone(), main: self.main, error };
        self.file.sync_data().map_err(failed)
    }
}

/// An output that cannot be written to.
#[derive(Debug)]
pub struct SinkError {
    /// Which.
    pub name: String,
    /// It is the one that records are forwarded to.
    pub main: bool,
    /// Why.
    pub error: io::Error,
}

impl SinkError {
    /// The reader of the forwarded records went away, as `head` does: not a failure. For any other
    /// output it is one, as its records are lost.
    pub fn is_closed_pipe(&self) -> bool {
        self.main && self.error.kind() == io::ErrorKind::BrokenPipe
    }
}

impl std::fmt::Display for SinkError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot write {}: {}", self.name, self.error)
    }
}

impl std::error::Error for SinkError {}
