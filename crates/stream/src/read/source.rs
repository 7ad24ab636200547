//! Reads inputs one after another and cuts their bytes into chunks at record boundaries.
//!
//! One thread does this; what is costly, finding the records' fields and hashing them, is left to
//! [`Parser`](super::Parser)s on any number of threads. A chunk is as long as configured if
//! the input is a file, and whatever complete records one read brought if it is a pipe, so that a
//! slow stream is never held back.

use super::chunk::Chunk;
pub use super::error::{SourceError, SourceErrorKind};
use super::input::Input;
use super::open;
use super::rest::{Piece, Remains, Rest};
use crate::options::{Format, Options};
use std::io::Read;

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
}

impl Source {
    /// The name of standard input.
    pub const STDIN: &'static str = open::STDIN;

    /// Reads these files in this order; [`Self::STDIN`] is standard input. Nothing is opened yet.
    pub fn new(names: Vec<String>, options: Options) -> Self {
        let (columns, notes) = (None, Vec::new());
        let rest = Rest::default();
        Self { options, names, next: 0, current: None, rest, columns, first: 0, notes }
    }

    /// Reads from `reader` alone, as if it were a pipe of this name.
    pub fn from_reader(name: &str, reader: Box<dyn Read + Send>, options: Options) -> Self {
        let rest = Rest::default();
        let current = Some(Input::new(0, reader, true, rest.clone()));
        let (columns, notes) = (None, Vec::new());
        let names = vec![name.into()];
        Self { options, names, next: 1, current, rest, columns, first: 0, notes }
    }

    /// The format of the first input, if that is a file and its beginning tells. What is in a pipe would
    /// be gone from it.
    pub fn look(&self) -> Option<Format> {
        const LOOK: u64 = 1 << 20;
        let name = self.names.first().filter(|name| *name != Self::STDIN)?;
        let opened = open::open_file(name)?;
        let mut options = self.options.clone();
        // Fields are looked for when it is read; the format does not depend on them.
        options.fields_wanted = true;
        options.key.clear();
        let file = Box::new(opened.take(LOOK));
        let mut input = Input::new(0, file, false, Rest::default());
        let chunk = input.chunk(&options, &mut Vec::new()).ok()??;
        Some(chunk.schema.format())
    }

    /// A source for each of the inputs, with the number that the input has here.
    pub(super) fn each(&self) -> impl Iterator<Item = Self> {
        let one = |(first, name): (usize, &String)| Self {
            first,
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

    /// May an input be slow, so that what is there must not wait for what comes next? All but
    /// regular files may.
    pub fn is_live(&self) -> bool {
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
                    self.current.insert(input.polled(opened.polled))
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
                Ok(None) if self.rest.is_taken() => return Ok(None),
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

    /// Is the run to end with the record at hand?
    pub(crate) fn is_stopping(&self) -> bool {
        self.rest.is_stopping()
    }

    /// Has a part of a record been read from a pipe, whose rest is still in it? What is in a file stays
    /// in the file.
    pub(crate) fn is_in_mid_record(&self) -> bool {
        self.current.as_ref().is_some_and(|input| input.pipe && !input.held.is_empty())
    }

    pub(super) fn error(&self, source: usize, kind: SourceErrorKind) -> SourceError {
        SourceError { source, name: self.name(source).into(), kind }
    }
}
