//! Where records go: one output for what is passed on, and one for each class that is asked for.

pub use crate::record::Mark;
use crate::record::{Batch, Fault, Heading, Kind, Record};
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;

/// What became of a record. Each has exactly one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Not seen within the window: passed on.
    Fresh,
    /// Seen within the window: kept back.
    Duplicate,
    /// Too old to be judged: passed on, or to its own output.
    Late,
    /// Unreadable, or without a readable time: a dead letter.
    Invalid,
    /// Without a key: passed on.
    KeyMissing,
    /// With a time too far in the future to be believed: passed on.
    Skewed,
    /// Held back for a moment; what becomes of it is said later.
    Held,
    /// No record: a header line.
    Header,
    /// No record: a comment or a blank line, passed on.
    Aside,
}

impl Class {
    /// Its name in summaries and marks.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fresh | Self::Held => "fresh",
            Self::Duplicate => "duplicate",
            Self::Late => "late",
            Self::Invalid => "invalid",
            Self::KeyMissing => "missing_key",
            Self::Skewed => "skewed",
            Self::Header => "header",
            Self::Aside => "aside",
        }
    }
}

/// Bytes gathered before they are written.
const BUFFER: usize = 256 * 1024;

/// One output: a file, or standard output.
pub struct Output {
    name: String,
    writer: Box<dyn Write + Send>,
    /// The same, where it is a regular file: it can be made to last through a power failure.
    file: Option<File>,
    buffer: Vec<u8>,
    /// What is passed on goes here.
    main: bool,
    has_header: bool,
    /// Nothing is written.
    discards: bool,
    /// The last record written had no line end; one is added if another follows.
    open_line: bool,
    written: u64,
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

    /// An output that nothing comes out of.
    pub fn none() -> Self {
        Self { discards: true, ..Self::new("nowhere", Box::new(io::sink())) }
    }

    /// Says that the header line is there already, as in a file that is appended to.
    #[must_use]
    pub fn has_header(self, has_header: bool) -> Self {
        Self { has_header, ..self }
    }

    /// Says which file it writes to in the end; [`Sink::sync`] makes it last if it is a regular one.
    #[must_use]
    pub fn sync_on_save(self, file: &File) -> Self {
        let regular = file.metadata().is_ok_and(|metadata| metadata.is_file());
        Self { file: if regular { file.try_clone().ok() } else { None }, ..self }
    }

    fn sync(&mut self) -> Result<(), SinkError> {
        let result = self.file.as_ref().map_or(Ok(()), File::sync_data);
        result.map_err(|error| self.error(error))
    }

    /// Bytes written to it.
    pub fn written(&self) -> u64 {
        self.written
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
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
    fn put_record(&mut self, bytes: &[u8], detached: bool) -> Result<(), SinkError> {
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

    fn flush(&mut self) -> Result<(), SinkError> {
        self.write_out()?;
        self.writer.flush().map_err(|error| self.error(error))
    }

    fn error(&self, error: io::Error) -> SinkError {
        SinkError { name: self.name.clone(), main: self.main, error }
    }
}

/// An output that cannot be written to.
#[derive(Debug)]
pub struct SinkError {
    /// Which.
    pub name: String,
    /// It is the one that records are passed on to.
    pub main: bool,
    /// Why.
    pub error: io::Error,
}

impl SinkError {
    /// The reader of what is passed on went away, as `head` does: no trouble. Whoever reads
    /// another output has not seen what it is for, and nobody said that the rest is not wanted.
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

/// All outputs of a run.
pub struct Sink {
    main: Output,
    duplicates: Option<Output>,
    late: Option<Output>,
    missing: Option<Output>,
    invalid: Option<Output>,
    marks: bool,
    /// The header line of the first input that had one, for outputs that begin later.
    header: Vec<u8>,
    /// Inputs with another header line than the first.
    mismatched_headers: Vec<String>,
}

impl Sink {
    /// A sink that passes records on to `main`.
    pub fn new(main: Output) -> Self {
        Self {
            main: Output { main: true, ..main },
            duplicates: None,
            late: None,
            missing: None,
            invalid: None,
            marks: false,
            header: Vec::new(),
            mismatched_headers: Vec::new(),
        }
    }

    /// Also writes duplicates somewhere.
    #[must_use]
    pub fn duplicates(self, output: Option<Output>) -> Self {
        Self { duplicates: output, ..self }
    }

    /// Writes late records somewhere instead of passing them on.
    #[must_use]
    pub fn late(self, output: Option<Output>) -> Self {
        Self { late: output, ..self }
    }

    /// Writes records without a key somewhere instead of passing them on.
    #[must_use]
    pub fn missing(self, output: Option<Output>) -> Self {
        Self { missing: output, ..self }
    }

    /// Writes dead letters somewhere: input, line, reason and the record, separated by tabs.
    #[must_use]
    pub fn invalid(self, output: Option<Output>) -> Self {
        Self { invalid: output, ..self }
    }

    /// Passes duplicates on too, and marks every record with its class.
    #[must_use]
    pub fn marked(self, marks: bool) -> Self {
        Self { marks, ..self }
    }

    /// Inputs whose header line is not the one that was written: their records are in the output
    /// under the names of other columns.
    pub fn mismatched_headers(&self) -> &[String] {
        &self.mismatched_headers
    }

    /// Bytes passed on.
    pub fn written(&self) -> u64 {
        self.main.written
    }

    /// Writes some records of a batch where their classes say. `first_line` is the number of the
    /// batch's first line in the input called `source`.
    ///
    /// # Errors
    /// [`SinkError`] when an output cannot be written; what was written before stands.
    pub fn write(
        &mut self,
        batch: &Batch,
        range: Range<usize>,
        classes: &[Class],
        mark: Mark,
        source: &str,
        first_line: u64,
    ) -> Result<(), SinkError> {
        self.write_batch(batch, range, classes, mark, source, first_line)
            .map_err(|error| self.gravest(error))
    }

    /// The reader of the main output may go, and then the run ends quietly: but not before the
    /// other outputs have what is theirs.
    fn gravest(&mut self, error: SinkError) -> SinkError {
        let quiet = error.is_closed_pipe();
        let flushed = if quiet { self.flush_others() } else { Ok(()) };
        flushed.err().unwrap_or(error)
    }

    fn write_batch(
        &mut self,
        batch: &Batch,
        range: Range<usize>,
        classes: &[Class],
        mark: Mark,
        source: &str,
        first_line: u64,
    ) -> Result<(), SinkError> {
        let Some(records) = batch.records.get(range.clone()) else { return Ok(()) };
        let Some(classes) = classes.get(range.clone()) else { return Ok(()) };
        if self.marks || batch.detached {
            for (record, &class) in records.iter().zip(classes) {
                if class == Class::Header {
                    self.header(batch.bytes_of(record), mark, source)?;
                } else if class == Class::Aside {
                    self.aside(batch, record, mark)?;
                } else if self.is_passed_on(class) {
                    self.pass_on(batch.bytes_of(record), class, mark, batch.detached)?;
                }
            }
        } else {
            self.write_runs(batch, records, classes, mark, source)?;
        }
        let others = [&self.duplicates, &self.late, &self.missing, &self.invalid];
        if others.into_iter().any(Option::is_some) {
            self.write_kept_back(batch, range, classes, source, first_line)?;
        }
        Ok(())
    }

    /// Passes an aside on; one that names or types the columns names those of the marks, too.
    fn aside(&mut self, batch: &Batch, record: &Record, mark: Mark) -> Result<(), SinkError> {
        let line = batch.bytes_of(record);
        let named = |heading: &Heading| Some((heading.mark_of(line, mark)?, heading.name));
        match batch.headings.iter().find_map(named).filter(|_| self.marks) {
            Some((mark, name)) => self.main.put_record(&mark.apply(line, name), batch.detached),
            None => self.main.put_record(line, batch.detached),
        }
    }

    /// Writes the classes that have an output of their own.
    fn write_kept_back(
        &mut self,
        batch: &Batch,
        range: Range<usize>,
        classes: &[Class],
        source: &str,
        first_line: u64,
    ) -> Result<(), SinkError> {
        let passed = batch.faults.partition_point(|(at, _)| (*at as usize) < range.start);
        let mut faults = batch.faults[passed..].iter().peekable();
        for (index, &class) in range.zip(classes) {
            let record = &batch.records[index];
            let bytes = batch.bytes_of(record);
            match class {
                Class::Duplicate => {
                    self.divert(|sink| &mut sink.duplicates, bytes, batch.detached)?;
                }
                Class::Late => self.divert(|sink| &mut sink.late, bytes, batch.detached)?,
                Class::KeyMissing => {
                    self.divert(|sink| &mut sink.missing, bytes, batch.detached)?;
                }
                Class::Invalid => {
                    while faults.next_if(|(at, _)| (*at as usize) < index).is_some() {}
                    let fault = faults.peek().map(|(_, fault)| fault);
                    self.dead_letter(bytes, fault, source, first_line + u64::from(record.line))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn is_passed_on(&self, class: Class) -> bool {
        match class {
            Class::Fresh | Class::Skewed | Class::Aside => true,
            Class::KeyMissing => self.missing.is_none(),
            Class::Duplicate => self.marks,
            Class::Late => self.late.is_none(),
            Class::Invalid | Class::Held | Class::Header => false,
        }
    }

    /// Records that follow one another in the batch are copied as one piece.
    fn write_runs(
        &mut self,
        batch: &Batch,
        records: &[Record],
        classes: &[Class],
        mark: Mark,
        source: &str,
    ) -> Result<(), SinkError> {
        let piece = |from: usize, to: usize| batch.bytes.get(from..to).unwrap_or(&[]);
        let (mut start, mut end) = (0, 0);
        for (record, &class) in records.iter().zip(classes) {
            if class == Class::Header {
                // It goes out at once, so what precedes it must go first.
                self.main.put(piece(start, end))?;
                (start, end) = (0, 0);
                self.header(batch.bytes_of(record), mark, source)?;
            } else if self.is_passed_on(class) {
                if record.start as usize != end {
                    self.main.put(piece(start, end))?;
                    start = record.start as usize;
                }
                end = record.end as usize;
            }
        }
        self.main.put(piece(start, end))
    }

    /// Passes on one record that is not in a batch: one that was held.
    ///
    /// # Errors
    /// As [`Sink::write`].
    pub fn pass_on(
        &mut self,
        bytes: &[u8],
        class: Class,
        mark: Mark,
        detached: bool,
    ) -> Result<(), SinkError> {
        let written = match class {
            Class::Aside => self.main.put_record(bytes, detached),
            class if self.marks => self.main.put_record(&mark.apply(bytes, class.name()), detached),
            _ => self.main.put_record(bytes, detached),
        };
        written.map_err(|error| self.gravest(error))
    }

    /// Writes one record that is not in a batch to the output for duplicates: one that lost.
    ///
    /// # Errors
    /// As [`Sink::write`].
    pub fn keep_back(&mut self, bytes: &[u8], mark: Mark) -> Result<(), SinkError> {
        if self.marks {
            self.pass_on(bytes, Class::Duplicate, mark, false)?;
        }
        self.divert(|sink| &mut sink.duplicates, bytes, false)
    }

    fn header(&mut self, bytes: &[u8], mark: Mark, source: &str) -> Result<(), SinkError> {
        if self.header.is_empty() {
            self.header = bytes.to_vec();
        } else if self.header.trim_ascii_end() != bytes.trim_ascii_end() {
            self.mismatched_headers.push(source.into());
        }
        if !self.main.has_header {
            self.main.has_header = true;
            let line = if self.marks { mark.apply(bytes, "lately") } else { bytes.to_vec() };
            self.main.put(&line)?;
        }
        Ok(())
    }

    fn divert(
        &mut self,
        output: impl FnOnce(&mut Self) -> &mut Option<Output>,
        bytes: &[u8],
        detached: bool,
    ) -> Result<(), SinkError> {
        let header = std::mem::take(&mut self.header);
        let result = output(self).as_mut().map_or(Ok(()), |output| {
            if !output.has_header {
                output.has_header = true;
                output.put(&header)?;
            }
            output.put_record(bytes, detached)
        });
        self.header = header;
        result
    }

    fn dead_letter(
        &mut self,
        bytes: &[u8],
        fault: Option<&Fault>,
        source: &str,
        line: u64,
    ) -> Result<(), SinkError> {
        let Some(output) = &mut self.invalid else { return Ok(()) };
        let reason = fault.map_or_else(|| "unreadable".into(), Fault::to_string);
        let reason = reason.replace(['\t', '\n'], " ");
        // The reason and the record are one line, and so is the next letter.
        let letter = [format!("{source}\t{line}\t{reason}\t").as_bytes(), bytes].concat();
        output.put_record(&letter, true)
    }

    /// Makes what has been handed on to regular files last through a power failure; a pipe has no
    /// such thing.
    ///
    /// # Errors
    /// As [`Sink::write`].
    pub fn sync(&mut self) -> Result<(), SinkError> {
        let all = [Some(&mut self.main), self.duplicates.as_mut(), self.late.as_mut()];
        let more = [self.missing.as_mut(), self.invalid.as_mut()];
        all.into_iter().chain(more).flatten().try_for_each(Output::sync)
    }

    /// Hands everything on.
    ///
    /// # Errors
    /// As [`Sink::write`].
    pub fn flush(&mut self) -> Result<(), SinkError> {
        let main = self.main.flush();
        let others = self.flush_others();
        // One that is no trouble does not hide one that is.
        match main {
            Err(error) if !error.is_closed_pipe() => Err(error),
            main => others.and(main),
        }
    }

    /// One that fails does not keep the rest from being flushed.
    fn flush_others(&mut self) -> Result<(), SinkError> {
        let others = [&mut self.duplicates, &mut self.late, &mut self.missing, &mut self.invalid];
        others.into_iter().flatten().map(Output::flush).fold(Ok(()), Result::and)
    }
}

/// The class of a record by its kind alone; `None` where the key decides.
pub fn class_of_kind(record: &Record) -> Option<Class> {
    match record.kind {
        Kind::Keyed => None,
        Kind::KeyMissing => Some(Class::KeyMissing),
        Kind::Invalid => Some(Class::Invalid),
        Kind::Header => Some(Class::Header),
        Kind::Aside => Some(Class::Aside),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_synced_and_other_outputs_left_alone() {
        let path = std::env::temp_dir().join(format!("lately-sync-{}", std::process::id()));
        let file = File::create(&path).unwrap();
        let file = Output::new("file", Box::new(file.try_clone().unwrap())).sync_on_save(&file);
        assert!(file.file.is_some());
        let mut sink = Sink::new(file).late(Some(Output::new("none", Box::new(io::sink()))));
        sink.main.put(b"a\n").unwrap();
        sink.flush().and_then(|()| sink.sync()).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"a\n");
        std::fs::remove_file(path).unwrap();
    }
}
