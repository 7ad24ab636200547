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
use crate::options::Options;
use std::io::Read;

/// All inputs, one after another.
#[derive(Debug)]
pub struct Source {
    options: Options,
    names: Vec<String>,
    next: usize,
    current: Option<Input>,
    rest: Rest,
}

impl Source {
    /// The name of standard input.
    pub const STDIN: &'static str = open::STDIN;

    /// Reads these files in this order; [`Self::STDIN`] is standard input. Nothing is opened yet.
    pub fn new(names: Vec<String>, options: Options) -> Self {
        Self { options, names, next: 0, current: None, rest: Rest::default() }
    }

    /// Reads from `reader` alone, as if it were a pipe of this name.
    pub fn from_reader(name: &str, reader: Box<dyn Read + Send>, options: Options) -> Self {
        let rest = Rest::default();
        let current = Some(Input::new(0, reader, true, rest.clone()));
        Self { options, names: vec![name.into()], next: 1, current, rest }
    }

    /// The name of an input.
    pub fn name(&self, source: usize) -> &str {
        self.names.get(source).map_or("", String::as_str)
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
                    let opened = opened
                        .map_err(|error| self.error(self.next - 1, SourceErrorKind::Open(error)))?;
                    let rest = self.rest.clone();
                    self.current.insert(Input::new(self.next - 1, opened.reader, opened.live, rest))
                }
            };
            match input.chunk(&self.options, &mut buffer) {
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

    /// What has been read from a pipe and not been handed on, as if the pipe ended there. What is
    /// in a file stays in the file.
    pub(crate) fn last_chunk(&mut self) -> Result<Option<Chunk>, SourceError> {
        let Some(input) = self.current.as_mut().filter(|input| input.pipe) else { return Ok(None) };
        let bytes = std::mem::take(&mut input.held);
        let piece = input.piece(bytes, None);
        let source = input.source;
        piece.into_chunk(&self.options).map_err(|kind| self.error(source, kind))
    }

    fn error(&self, source: usize, kind: SourceErrorKind) -> SourceError {
        SourceError { source, name: self.name(source).into(), kind }
    }
}
