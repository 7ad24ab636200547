//! Reads inputs one after another and cuts their bytes into chunks at record boundaries.
//!
//! One thread does this; what is costly, finding the records' fields and hashing them, is left to
//! [`Parser`](super::Parser)s on any number of threads. A chunk is as long as configured if
//! the input is a file, and whatever complete records one read brought if it is a pipe, so that a
//! slow stream is never held back.

use super::chunk::Chunk;
pub use super::error::{SourceError, SourceErrorKind};
use super::input::Input;
use super::message::{Acknowledge, MessageInput};
use super::open;
use super::rest::{LOOK, Left, Piece, Quiet, Remains, Rest};
#[cfg(feature = "parquet")]
use crate::columnar::ColumnFormat;
use crate::options::{Format, Options};
use std::io::{self, Read};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;

/// All inputs, one after another.
#[derive(Debug)]
pub struct Source {
    options: Options,
    names: Vec<String>,
    next: usize,
    current: Option<Input>,
    rest: Rest,
    /// The columns of the first input that names them.
    columns: Option<Vec<String>>,
    /// The number of the first input.
    first: usize,
    /// What there is to say of an input, and was not asked for.
    notes: Vec<String>,
    /// What the last run has left of a pipe.
    left: Option<Left>,
    quiet: Quiet,
    /// Why the input at hand cannot be read.
    failed: Option<SourceErrorKind>,
    /// Read in place of files.
    messages: Option<Messages>,
}

/// Messages of a broker.
struct Messages(Box<dyn MessageInput>);

impl std::fmt::Debug for Messages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("messages")
    }
}

/// The beginning of standard input, read to find out what it is.
#[derive(Debug)]
pub struct Looked {
    input: Input,
    rest: Rest,
    quiet: Quiet,
    format: Option<Format>,
    failed: Option<SourceErrorKind>,
}

impl Looked {
    /// Reads standard input until its format is known, or `stop` says that the run is to end.
    ///
    /// # Errors
    /// Standard input is not open.
    pub fn at_stdin(options: &Options, stop: &dyn Fn() -> bool) -> io::Result<Self> {
        let (rest, quiet) = (Rest::default(), Quiet::default());
        let opened = open::open(Source::STDIN)?;
        let input = Input::new(0, opened.reader, opened.live, rest.clone());
        let mut input = input.waited(opened.pipe, quiet.clone());
        let options = looking(options);
        let (done, looked) = mpsc::channel();
        thread::spawn(move || {
            let found = input.look(&options);
            let _ = done.send((input, found));
        });
        let (input, found) = loop {
            match looked.recv_timeout(LOOK) {
                Ok(looked) => break looked,
                Err(RecvTimeoutError::Timeout) if stop() => rest.stop(),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io::Error::other("the thread that reads has failed"));
                }
            }
        };
        let (format, failed) =
            found.map_or_else(|error| (None, Some(error)), |found| (found, None));
        Ok(Self { input, rest, quiet, format, failed })
    }

    /// The format, if the beginning tells.
    pub fn format(&self) -> Option<Format> {
        self.format
    }
}

/// Fields are looked for when it is read; the format does not depend on them.
fn looking(options: &Options) -> Options {
    Options { fields_wanted: true, key: Vec::new(), ..options.clone() }
}

impl Source {
    /// The name of standard input.
    pub const STDIN: &'static str = open::STDIN;

    /// Reads these files in this order; [`Self::STDIN`] is standard input. Nothing is opened yet.
    pub fn new(names: Vec<String>, options: Options) -> Self {
        Self {
            options,
            names,
            next: 0,
            current: None,
            rest: Rest::default(),
            columns: None,
            first: 0,
            notes: Vec::new(),
            left: None,
            quiet: Quiet::default(),
            failed: None,
            messages: None,
        }
    }

    /// Reads from `reader` alone, as if it were a pipe of this name.
    pub fn from_reader(name: &str, reader: Box<dyn Read + Send>, options: Options) -> Self {
        let source = Self::new(vec![name.into()], options);
        let current = Some(Input::new(0, reader, true, source.rest.clone()));
        Self { next: 1, current, ..source }
    }

    /// Reads messages of a broker, which is called `name`. They are acknowledged when what was made of them is safe.
    pub fn of_messages(name: &str, input: Box<dyn MessageInput>, options: Options) -> Self {
        let options = Options { messages: true, name: name.into(), ..options };
        Self { messages: Some(Messages(input)), ..Self::new(vec![name.into()], options) }
    }

    /// The messages that are read in place of files, if so it is.
    pub(super) fn take_messages(&mut self) -> Option<Box<dyn MessageInput>> {
        self.messages.take().map(|messages| messages.0)
    }

    /// What acknowledges the messages that are read.
    pub(crate) fn acknowledger(&self) -> Option<Box<dyn Acknowledge>> {
        self.messages.as_ref().map(|messages| messages.0.acknowledger())
    }

    /// Resumes the record that the last run has left in a pipe, if that is read.
    #[must_use]
    pub fn resume(self, left: Option<Left>) -> Self {
        let current = self.current.map(|input| input.resumed(left.as_ref()));
        Self { left, current, ..self }
    }

    /// Begins with standard input, of which the beginning has been read; it is the first input.
    #[must_use]
    pub fn begin_with(self, looked: Looked) -> Self {
        let Looked { input, rest, quiet, failed, .. } = looked;
        Self { next: 1, current: Some(input), rest, quiet, failed, ..self }
    }

    /// Calls this whenever nothing is there to be read, once after each piece that was handed on.
    pub(crate) fn on_quiet(&self, tell: impl Fn() + Send + Sync + 'static) {
        self.quiet.call(tell);
    }

    /// The format of the first input, if that is a file and its beginning tells. What is in a pipe would
    /// be gone from it.
    pub fn look(&self) -> Option<Format> {
        const LOOK: u64 = 1 << 20;
        let name = self.names.first().filter(|name| *name != Self::STDIN)?;
        let opened = open::open_file(name)?;
        let options = looking(&self.options);
        let file = Box::new(opened.take(LOOK));
        let mut input = Input::new(0, file, false, Rest::default());
        let chunk = input.chunk(&options, &mut Vec::new()).ok()??;
        Some(chunk.schema.format())
    }

    /// A source for each of the inputs, with the number that the input has here.
    pub(super) fn each(&self) -> impl Iterator<Item = Self> {
        let one = |(first, name): (usize, &String)| Self {
            first,
            rest: self.rest.clone(),
            ..Self::new(vec![name.clone()], self.options.clone())
        };
        self.names.iter().enumerate().map(one)
    }

    /// The columns of the first input that named some.
    pub(super) fn columns(&self) -> Option<Vec<String>> {
        self.columns.clone()
    }

    /// Inputs have to have these columns in this order, if in any other.
    pub(super) fn compare_with(&mut self, columns: Option<Vec<String>>) {
        self.columns = self.columns.take().or(columns);
    }

    /// The name of an input.
    pub fn name(&self, source: usize) -> &str {
        self.names.get(source.wrapping_sub(self.first)).map_or("", String::as_str)
    }

    /// The names of all inputs, in order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// What is wanted of the records.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The format of the files, if their records are in columns.
    ///
    /// # Errors
    /// Those of some are, and those of others are not.
    #[cfg(feature = "parquet")]
    pub fn columns_format(&self) -> Result<Option<ColumnFormat>, String> {
        let formats: Vec<_> = self.names.iter().map(|name| ColumnFormat::of_file(name)).collect();
        let Some(at) = formats.iter().position(Option::is_some) else { return Ok(None) };
        match formats.iter().position(Option::is_none) {
            None => Ok(formats[at]),
            Some(other) => Err(format!(
                "{} has its records in columns, and {} has not; read them in runs of their own",
                self.names[at], self.names[other]
            )),
        }
    }

    /// May an input be slow, so that what is there must not wait for what comes next? All but
    /// regular files may.
    pub fn is_live(&self) -> bool {
        if self.messages.is_some() {
            return true;
        }
        let slow = |name: &String| {
            name == Self::STDIN || std::fs::metadata(name).is_ok_and(|file| !file.is_file())
        };
        self.current.as_ref().is_some_and(|input| input.live) || self.names.iter().any(slow)
    }

    /// The next piece, written into `buffer`; `None` when all inputs are read.
    ///
    /// # Errors
    /// An input that cannot be opened, understood or read any further. The next call goes on with
    /// the next input.
    pub fn next_chunk(&mut self, mut buffer: Vec<u8>) -> Result<Option<Chunk>, SourceError> {
        if let Some(kind) = self.failed.take() {
            self.current = None;
            return Err(self.error(0, kind));
        }
        loop {
            let input = match &mut self.current {
                Some(input) => input,
                None => {
                    let Some(name) = self.names.get(self.next) else { return Ok(None) };
                    self.next += 1;
                    // A named pipe opens when somebody writes to it.
                    self.rest.leave(Piece::default());
                    let opened = open::open(name);
                    if self.rest.take_back().is_none() {
                        return Ok(None);
                    }
                    let number = self.first + self.next - 1;
                    let opened =
                        opened.map_err(|error| self.error(number, SourceErrorKind::Open(error)))?;
                    let rest = self.rest.clone();
                    let input = Input::new(number, opened.reader, opened.live, rest);
                    let input = input.waited(opened.pipe, self.quiet.clone());
                    self.current.insert(input.resumed(self.left.as_ref()))
                }
            };
            match input.chunk(&self.options, &mut buffer) {
                Ok(Some(chunk)) if chunk.header => {
                    let source = chunk.source;
                    if let Err(reason) = self.check_columns(&chunk) {
                        self.current = None;
                        return Err(self.error(source, SourceErrorKind::Setup(reason)));
                    }
                    return Ok(Some(chunk));
                }
                Ok(Some(chunk)) => return Ok(Some(chunk)),
                Ok(None) if input.left_off || self.rest.is_taken() => return Ok(None),
                Ok(None) => self.current = None,
                Err(kind) => {
                    let source = input.source;
                    self.current = None;
                    return Err(self.error(source, kind));
                }
            }
        }
    }

    /// What the thread that ends the run takes over from the one that reads.
    pub(crate) fn remains(&self) -> Remains {
        Remains::new(self.options.clone(), self.names.clone(), self.rest.clone())
    }

    /// Refuses a header with the columns of the first in another order: what is forwarded would stand
    /// under the names of other columns.
    fn check_columns(&mut self, chunk: &Chunk) -> Result<(), String> {
        let Some(columns) = chunk.schema.layout.columns() else { return Ok(()) };
        let wanted = self
            .options
            .names()
            .filter(|name| columns.iter().filter(|column| column.as_str() == *name).count() > 1);
        let name = self.name(chunk.source);
        let twice = wanted.map(|wanted| {
            let at = columns.iter().position(|column| column == wanted).map_or(0, |at| at + 1);
            format!("{name} has more than one column `{wanted}`; the first is used, column {at}")
        });
        let twice: Vec<_> = twice.collect();
        self.notes.extend(twice);
        let Some(first) = &self.columns else {
            self.columns = Some(columns.to_vec());
            return Ok(());
        };
        let sorted = |columns: &[String]| {
            let mut columns = columns.to_vec();
            columns.sort();
            columns
        };
        if columns != first && sorted(columns) == sorted(first) {
            let [found, first] = [columns, first].map(|columns| columns.join(","));
            return Err(format!(
                "its columns are in another order ({found}) than those of the first input ({first}), under which its records would stand; read it in a run of its own, or put its columns into that order"
            ));
        }
        Ok(())
    }

    /// What there is to say of an input, once.
    pub(crate) fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Is the run to end, and nothing more to be read before it does?
    pub(crate) fn ends_here(&self) -> bool {
        self.rest.is_stopping() && self.current.as_ref().is_none_or(Input::ends_here)
    }

    pub(crate) fn error(&self, source: usize, kind: SourceErrorKind) -> SourceError {
        SourceError { source, name: self.name(source).into(), kind }
    }
}
