//! One output: a file, standard output, or messages to a broker.

use super::message::{About, MessageOutput};
#[cfg(feature = "parquet")]
use crate::columnar::{ColumnFormat, ColumnWriter};
use crate::judge::class::Class;
use crate::scan::lines::line_end;
#[cfg(feature = "parquet")]
use arrow_array::{BooleanArray, RecordBatch};
#[cfg(feature = "parquet")]
use arrow_select::filter::filter_record_batch;
use lately_store::sync_folder;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes gathered before they are written.
const BUFFER: usize = 256 * 1024;

/// One output: a file, standard output, or messages to a broker.
pub struct Output {
    name: String,
    writer: Box<dyn Write + Send>,
    /// The same, where it is a regular file: it can be made durable.
    file: Option<Arc<File>>,
    /// The same, where it is none: its reader may go away.
    pipe: Option<Arc<File>>,
    /// The folder of a file that was made by this run: its name has to be made durable, too.
    folder: Option<Arc<Path>>,
    /// Records go out one by one, in place of all that.
    messages: Option<Box<dyn MessageOutput>>,
    /// What is known of the record that is put next, where it goes out as a message.
    pub(super) about: About,
    /// Records were sent that nobody has confirmed yet.
    awaits: bool,
    buffer: Vec<u8>,
    /// Forwarded records go here.
    pub(super) main: bool,
    pub(super) has_header: bool,
    /// Nothing is written.
    discards: bool,
    /// The last record written had no line end; one is added if another follows.
    open_line: bool,
    /// What ends a line.
    pub(super) line_end: u8,
    pub(super) written: u64,
    /// How often the buffer was written out.
    pub(super) writes: u64,
    /// Records were put and could not be written.
    pub(super) failed: bool,
    /// What is put are rows of columns, and the file is to be of this format.
    #[cfg(feature = "parquet")]
    columns: Option<ColumnFormat>,
    #[cfg(feature = "parquet")]
    column_writer: Option<ColumnWriter>,
}

impl Output {
    /// An output that is called `name` in errors.
    pub fn new(name: impl Into<String>, writer: Box<dyn Write + Send>) -> Self {
        let buffer = Vec::with_capacity(BUFFER + (BUFFER / 4));
        Self {
            name: name.into(),
            writer,
            file: None,
            pipe: None,
            folder: None,
            messages: None,
            about: About::class(Class::Fresh),
            awaits: false,
            buffer,
            main: false,
            has_header: false,
            discards: false,
            open_line: false,
            line_end: b'\n',
            written: 0,
            writes: 0,
            failed: false,
            #[cfg(feature = "parquet")]
            columns: None,
            #[cfg(feature = "parquet")]
            column_writer: None,
        }
    }

    /// An output that sends each record as a message. It has no header line, and no comments.
    pub fn of_messages(name: impl Into<String>, messages: Box<dyn MessageOutput>) -> Self {
        let output = Self::new(name, Box::new(io::sink()));
        Self { messages: Some(messages), has_header: true, buffer: Vec::new(), ..output }
    }

    /// Do its records go out one by one?
    pub(super) fn is_of_messages(&self) -> bool {
        self.messages.is_some()
    }

    /// Are there records that nobody has confirmed yet?
    pub(super) fn awaits(&self) -> bool {
        self.awaits
    }

    /// Waits until all records are confirmed that were sent as messages.
    pub(super) fn confirm(&mut self) -> Result<(), SinkError> {
        let confirmed = match self.messages.as_mut().filter(|_| self.awaits) {
            Some(messages) => messages.confirm(),
            None => return Ok(()),
        };
        confirmed.map_err(|error| self.message_failed(error))?;
        self.awaits = false;
        Ok(())
    }

    fn send(&mut self, record: &[u8]) -> Result<(), SinkError> {
        let record = &record[..record.len() - line_end(record)];
        let Some(messages) = self.messages.as_mut().filter(|_| !record.is_empty()) else {
            return Ok(());
        };
        self.awaits = true;
        let sent = messages.send(record, &self.about);
        // What is put next may have come in no message.
        (self.about.reason, self.about.from) = (None, None);
        match sent {
            Ok(()) => {
                self.writes += 1;
                self.written += record.len() as u64;
                Ok(())
            }
            Err(error) => Err(self.message_failed(error)),
        }
    }

    fn message_failed(&mut self, error: io::Error) -> SinkError {
        self.failed = true;
        self.error(error)
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

    /// States that what is there ends in mid-line, as in a file that another run left: a line end is
    /// added if a record follows.
    #[must_use]
    pub fn ends_in_mid_line(self, open_line: bool) -> Self {
        Self { open_line, ..self }
    }

    /// Names the file it writes to in the end. If that is a regular one, it is synced before a state
    /// that remembers its records is saved, and a write that fails half-way is taken back, so that no
    /// part of a record stays. If it is a pipe, it can be told whether its reader is still there.
    #[must_use]
    pub fn sync_on_save(self, file: &File) -> Self {
        let regular = file.metadata().is_ok_and(|metadata| metadata.is_file());
        let same = file.try_clone().ok().map(Arc::new);
        let (file, pipe) = if regular { (same, None) } else { (None, same) };
        Self { file, pipe, ..self }
    }

    /// Names the folder in which this run made the file: a new name, too, has to survive a power
    /// failure.
    #[must_use]
    pub fn made_in(self, folder: Option<PathBuf>) -> Self {
        Self { folder: folder.map(Into::into), ..self }
    }

    /// Has the reader of the pipe gone away?
    pub(super) fn is_closed(&self) -> bool {
        self.pipe.as_ref().is_some_and(|pipe| is_closed(pipe))
    }

    /// Is everything written that was put?
    pub(super) fn is_flushed(&self) -> bool {
        self.buffer.is_empty() && !self.failed && !self.awaits
    }

    /// What is left to do, after everything was flushed, for its records to survive a power failure; a
    /// pipe has no such thing.
    pub(super) fn unsynced(&self) -> Option<Unsynced> {
        let file = Arc::clone(self.file.as_ref()?);
        let folder = self.folder.clone();
        Some(Unsynced { name: self.name.clone(), main: self.main, file, folder })
    }

    /// Bytes written to it.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// States that what is put are rows of columns, to be written as a file of this format.
    #[cfg(feature = "parquet")]
    #[must_use]
    pub fn of_columns(self, columns: Option<ColumnFormat>) -> Self {
        Self { columns, ..self }
    }

    /// Puts rows of columns.
    #[cfg(feature = "parquet")]
    pub(super) fn put_rows(&mut self, rows: &RecordBatch) -> Result<(), SinkError> {
        let Some(format) = self.columns else { return Ok(()) };
        let bytes = match &mut self.column_writer {
            Some(writer) => writer.write(rows),
            None => ColumnWriter::new(format, rows.schema())
                .and_then(|writer| self.column_writer.insert(writer).write(rows)),
        };
        let bytes = bytes.map_err(|error| self.error(error))?;
        self.put_bytes(&bytes)
    }

    /// Puts those rows of which that is said.
    #[cfg(feature = "parquet")]
    pub(super) fn put_some_rows(
        &mut self,
        columns: &RecordBatch,
        which: &[bool],
    ) -> Result<(), SinkError> {
        if which.iter().all(|is_wanted| *is_wanted) {
            return self.put_rows(columns);
        }
        let rows = filter_record_batch(columns, &BooleanArray::from(which.to_vec()));
        let rows = rows.map_err(|error| self.error(io::Error::other(error)))?;
        self.put_rows(&rows)
    }

    /// Ends a file of columns.
    #[cfg(feature = "parquet")]
    pub(super) fn finish_columns(&mut self) -> Result<(), SinkError> {
        let Some(writer) = self.column_writer.take() else { return Ok(()) };
        let bytes = writer.finish().map_err(|error| self.error(error))?;
        self.put_bytes(&bytes)
    }

    /// Are there rows of columns that cannot be read before the end of the file is written?
    #[cfg(feature = "parquet")]
    pub(super) fn is_unfinished(&self) -> bool {
        self.column_writer.is_some()
    }

    /// Rows of columns are not written.
    #[cfg(not(feature = "parquet"))]
    pub(super) fn is_unfinished(&self) -> bool {
        false
    }

    /// Puts bytes that are no lines.
    #[cfg(feature = "parquet")]
    fn put_bytes(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER { self.write_out() } else { Ok(()) }
    }

    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        if self.messages.is_some() {
            return self.send(bytes);
        }
        let Some(last) = bytes.last().filter(|_| !self.discards) else { return Ok(()) };
        if self.open_line {
            self.buffer.push(self.line_end);
        }
        self.open_line = *last != self.line_end;
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER { self.write_out() } else { Ok(()) }
    }

    /// One record; if it is detached it brings no line end.
    pub(super) fn put_record(&mut self, bytes: &[u8], detached: bool) -> Result<(), SinkError> {
        self.put(bytes)?;
        if detached && std::mem::take(&mut self.open_line) {
            self.buffer.push(b'\n');
        }
        Ok(())
    }

    fn write_out(&mut self) -> Result<(), SinkError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let mut done = 0;
        let result = loop {
            match self.writer.write(&self.buffer[done..]) {
                Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => done += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => break Err(error),
            }
            if done == self.buffer.len() {
                break Ok(());
            }
        };
        self.buffer.clear();
        if result.is_ok() {
            self.writes += 1;
            self.written += done as u64;
        } else {
            self.failed = true;
            self.take_back(done as u64);
        }
        result.map_err(|error| self.error(error))
    }

    /// Takes back the part of a buffer that was written before the rest could not be: it may end in the
    /// middle of a record, to which the next run would append.
    fn take_back(&self, written: u64) {
        let Some(file) = self.file.as_ref().filter(|_| written > 0) else { return };
        let Ok(metadata) = file.metadata() else { return };
        if let Some(before) = metadata.len().checked_sub(written) {
            // What cannot be taken back is completed with a line end by the next run.
            let _ = file.set_len(before).and_then(|()| (&**file).seek(io::SeekFrom::End(0)));
        }
    }

    pub(super) fn flush(&mut self) -> Result<(), SinkError> {
        self.write_out()?;
        self.writer.flush().map_err(|error| self.error(error))
    }

    /// The error of records that cannot be put in order.
    pub(super) fn full(&self, reason: String) -> SinkError {
        let name = "the records in order".into();
        SinkError { name, main: self.main, error: io::Error::other(reason) }
    }

    pub(super) fn error(&self, error: io::Error) -> SinkError {
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
    folder: Option<Arc<Path>>,
}

impl Unsynced {
    /// One of a file that nothing can be written to.
    #[cfg(test)]
    pub(crate) fn broken(file: File) -> Self {
        Self { name: "broken".into(), main: false, file: Arc::new(file), folder: None }
    }

    /// Waits until the records would survive a power failure.
    ///
    /// # Errors
    /// [`SinkError`] if they cannot be written.
    pub fn sync(&self) -> Result<(), SinkError> {
        let failed = |error| SinkError { name: self.name.clone(), main: self.main, error };
        let folder = || self.folder.as_ref().map_or(Ok(()), |folder| sync_folder(folder));
        self.file.sync_data().and_then(|()| folder()).map_err(failed)
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

/// Whether nobody reads from this pipe any more, and nobody will.
#[cfg(unix)]
fn is_closed(pipe: &File) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut fds = [PollFd::new(pipe, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).is_ok() && fds[0].revents().contains(PollFlags::ERR)
}

#[cfg(not(unix))]
fn is_closed(_: &File) -> bool {
    false
}
