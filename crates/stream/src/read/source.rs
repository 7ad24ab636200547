//! Reads inputs one after another and cuts their bytes into chunks at record boundaries.
//!
//! One thread does this; what is costly, finding the records' fields and hashing them, is left to
//! [`Parser`](super::Parser)s on any number of threads. A chunk is as long as configured if
//! the input is a file, and whatever complete records one read brought if it is a pipe, so that a
//! slow stream is never held back.

use super::cut::{Cut, Cutter, second_header};
use super::open;

use super::rest::{Piece, Rest};
use crate::format::{Layout, limit_of, sniff};
use crate::options::{Options, Resolved, Schema};
use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;

/// A piece of one input, cut at record boundaries.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// Which input, counted from 0 in the order given.
    pub source: usize,
    /// The piece, decompressed and without a byte order mark.
    pub bytes: Vec<u8>,
    /// How to read it.
    pub schema: Arc<Schema>,
    /// The first record is a header line.
    pub header: bool,
    /// What is in it.
    pub fate: Fate,
}

/// What is in a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Complete records.
    Records,
    /// The beginning of one record of this many bytes, and its line end: it was too long to hold.
    Overlong(u64),
    /// One record in which the input broke off with an error.
    Torn,
}

/// An input that cannot be read, or not any further.
#[derive(Debug)]
pub struct SourceError {
    /// The input, counted from 0.
    pub source: usize,
    /// Its name.
    pub name: String,
    /// What is wrong with it.
    pub kind: SourceErrorKind,
}

/// What is wrong with an input.
#[derive(Debug)]
#[non_exhaustive]
pub enum SourceErrorKind {
    /// It cannot be opened.
    Open(io::Error),
    /// Reading or decompressing it failed; all records before that have been handed on.
    Read(io::Error),
    /// Its text is in an encoding that is not supported.
    Encoding(&'static str),
    /// It does not fit what was asked for, such as a key column that its header does not have.
    Setup(String),
    /// A part of it was lost to a fault of this program.
    Lost,
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match &self.kind {
            SourceErrorKind::Open(error) => write!(f, "cannot open {name}: {error}"),
            SourceErrorKind::Read(error) => write!(f, "cannot read {name} any further: {error}"),
            SourceErrorKind::Encoding(found) => {
                write!(f, "{name} is in {found}, which is not supported; convert it to UTF-8")
            }
            SourceErrorKind::Setup(reason) => write!(f, "{name}: {reason}"),
            SourceErrorKind::Lost => write!(
                f,
                "a part of {name} was lost to a fault of this program; please report what is printed above"
            ),
        }
    }
}

impl std::error::Error for SourceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            SourceErrorKind::Open(error) | SourceErrorKind::Read(error) => Some(error),
            SourceErrorKind::Encoding(_) | SourceErrorKind::Setup(_) | SourceErrorKind::Lost => {
                None
            }
        }
    }
}

/// All inputs, one after another.
#[derive(Debug)]
pub struct Source {
    pub(super) options: Options,
    pub(super) names: Vec<String>,
    next: usize,
    current: Option<Input>,
    pub(super) rest: Rest,
}

impl Source {
    /// The name of standard input.
    pub const STDIN: &'static str = "-";

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

/// One input while it is read.
struct Input {
    source: usize,
    reader: Box<dyn Read + Send>,
    /// No regular file: what has been read of it is gone from it.
    pipe: bool,
    /// Hand on what there is.
    live: bool,
    started: bool,
    schema: Option<Arc<Schema>>,
    /// The header is still to come.
    header: bool,
    cutter: Cutter,
    /// Read, but not handed on.
    held: Vec<u8>,
    /// So much of it is known to hold no complete record.
    examined: usize,
    ended: bool,
    failed: Option<io::Error>,
    /// Where to leave what has been read of a pipe while waiting for more.
    rest: Rest,
    /// What one read of a pipe brought.
    fresh: Vec<u8>,
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input").field("source", &self.source).finish_non_exhaustive()
    }
}

impl Input {
    fn new(source: usize, reader: Box<dyn Read + Send>, pipe: bool, rest: Rest) -> Self {
        Self {
            source,
            reader,
            pipe,
            live: pipe,
            started: false,
            schema: None,
            header: false,
            cutter: Cutter::default(),
            held: Vec::new(),
            examined: 0,
            ended: false,
            failed: None,
            rest,
            fresh: Vec::new(),
        }
    }

    fn chunk(
        &mut self,
        options: &Options,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Chunk>, SourceErrorKind> {
        buffer.clear();
        buffer.append(&mut self.held);
        if !self.started {
            self.started = true;
            self.start(buffer)?;
        }
        let step = options.chunk.clamp(1, 1 << 30);
        let schema = match &self.schema {
            Some(schema) => Arc::clone(schema),
            None => match self.resolve(options, buffer, step)? {
                Some(schema) => schema,
                None => return self.finish(),
            },
        };
        let mut goal = step.max(self.examined + 1);
        loop {
            let enough = buffer.len() >= goal || self.live && buffer.len() > self.examined;
            if !enough && !self.ended {
                let goal = if self.live { buffer.len() + step } else { goal };
                self.fill(buffer, goal);
                continue;
            }
            if buffer.is_empty() {
                return self.finish();
            }
            // Where the input broke off with an error, its last record is no record.
            let ended = self.ended && self.failed.is_none();
            match self.cutter.cut(&schema, buffer, self.examined, ended) {
                Cut::Records(end) => return Ok(Some(self.hand_on(options, schema, buffer, end))),
                Cut::Overlong => return Ok(Some(self.overlong(options, schema, buffer))),
                Cut::Nothing if self.ended => {
                    let bytes = std::mem::take(buffer);
                    self.examined = 0;
                    return Ok(Some(self.chunk_of(schema, bytes, Fate::Torn)));
                }
                Cut::Nothing => {
                    self.examined = buffer.len();
                    goal = buffer.len() + step;
                }
            }
        }
    }

    /// Cuts the first `end` bytes off as a chunk and holds the rest.
    fn hand_on(
        &mut self,
        options: &Options,
        mut schema: Arc<Schema>,
        buffer: &mut Vec<u8>,
        mut end: usize,
    ) -> Chunk {
        self.examined = buffer.len() - end;
        if let Layout::Delimited(table) = &schema.layout
            && let Some(unset) = &table.unset
        {
            // A Zeek header in the midst of the stream: a chunk of its own schema begins there.
            let before = Some((table.separator, &**unset));
            if let Some(shape) = sniff::zeek(&buffer[..end], before)
                && let Ok((layout, wanted)) = shape.resolve(schema.format, options)
            {
                schema = Arc::new(Schema::of(schema.format, layout, wanted, options));
                self.schema = Some(Arc::clone(&schema));
            }
            if let Some(at) = second_header(&buffer[..end]) {
                end = at;
                self.examined = 0;
            }
        }
        self.held.extend_from_slice(&buffer[end..]);
        let mut bytes = std::mem::take(buffer);
        bytes.truncate(end);
        self.chunk_of(schema, bytes, Fate::Records)
    }

    fn chunk_of(&mut self, schema: Arc<Schema>, bytes: Vec<u8>, fate: Fate) -> Chunk {
        let header = std::mem::take(&mut self.header);
        Chunk { source: self.source, bytes, schema, header, fate }
    }

    /// Steps over the rest of a line that is too long to hold.
    fn overlong(&mut self, options: &Options, schema: Arc<Schema>, buffer: &mut Vec<u8>) -> Chunk {
        let keep = schema.max_line.min(limit_of(&schema));
        let mut bytes = buffer[..keep].to_vec();
        let mut length = 0;
        let mut last = None;
        let end: &[u8] = loop {
            if let Some(at) = memchr::memchr(b'\n', buffer) {
                length += at as u64;
                last = if at > 0 { Some(buffer[at - 1]) } else { last };
                self.held.extend_from_slice(&buffer[at + 1..]);
                break if last == Some(b'\r') { b"\r\n" } else { b"\n" };
            }
            length += buffer.len() as u64;
            last = buffer.last().copied().or(last);
            if self.ended {
                break b"";
            }
            buffer.clear();
            if self.pipe {
                let read = self.wait(&mut bytes, Some(length), options.chunk);
                buffer.extend_from_slice(self.fresh.get(..read).unwrap_or_default());
            } else {
                self.fill(buffer, options.chunk.max(1));
            }
        };
        if end.len() == 2 {
            length -= 1;
        }
        bytes.extend_from_slice(end);
        self.examined = 0;
        self.chunk_of(schema, bytes, Fate::Overlong(length))
    }

    fn finish(&mut self) -> Result<Option<Chunk>, SourceErrorKind> {
        self.failed.take().map_or(Ok(None), |error| Err(SourceErrorKind::Read(error)))
    }

    /// Looks for compression and byte order marks, and steps over them.
    fn start(&mut self, buffer: &mut Vec<u8>) -> Result<(), SourceErrorKind> {
        // Read on only as long as what there is may become a mark: a pipe may be slow.
        while !self.ended && open::may_be_mark(buffer) {
            self.fill_once(buffer, 1 << 16);
        }
        if let Some(compression) = open::compression(buffer) {
            let compressed = std::mem::take(buffer);
            let reader = std::mem::replace(&mut self.reader, Box::new(io::empty()));
            self.ended = false;
            // This reads the first header, and may have to wait for it.
            self.rest.leave(self.piece(Vec::new(), None));
            let opened = open::decompress(compression, compressed, reader);
            self.ended = self.rest.take_back().is_none();
            self.reader = opened.map_err(SourceErrorKind::Read)?;
            while !self.ended && open::may_be_mark(buffer) {
                self.fill_once(buffer, 1 << 16);
            }
        }
        if let Some(encoding) = open::foreign(buffer) {
            return Err(SourceErrorKind::Encoding(encoding));
        }
        if buffer.starts_with(open::BOM) {
            buffer.drain(..open::BOM.len());
        }
        Ok(())
    }

    /// Reads until the format is known; `None` if there is nothing to read.
    fn resolve(
        &mut self,
        options: &Options,
        buffer: &mut Vec<u8>,
        step: usize,
    ) -> Result<Option<Arc<Schema>>, SourceErrorKind> {
        let most = options.max_line.saturating_add(options.max_document);
        loop {
            if buffer.is_empty() && self.ended {
                return Ok(None);
            }
            let ended = self.ended && self.failed.is_none() || buffer.len() > most;
            match Schema::resolve(options, buffer, ended).map_err(SourceErrorKind::Setup)? {
                Resolved::Schema(schema) => return Ok(Some(self.settle(options, *schema))),
                Resolved::More if self.failed.is_some() => {
                    // There may be whole values before the break; half a header is of no use.
                    let schema = match Schema::resolve(options, buffer, true) {
                        Ok(Resolved::Schema(schema))
                            if matches!(schema.layout, Layout::Json(_)) =>
                        {
                            *schema
                        }
                        _ => Schema::raw(options),
                    };
                    return Ok(Some(self.settle(options, schema)));
                }
                Resolved::More if ended => {
                    return Err(SourceErrorKind::Setup("its format cannot be told".into()));
                }
                // Looking starts from the beginning each time, so a long look takes long steps.
                Resolved::More => {
                    let goal = buffer.len() * 2;
                    self.fill_once(buffer, step);
                    while !self.ended && buffer.len() > 1 << 20 && buffer.len() < goal {
                        self.fill_once(buffer, step);
                    }
                }
            }
        }
    }

    fn settle(&mut self, options: &Options, schema: Schema) -> Arc<Schema> {
        self.header = has_header(&schema, options);
        self.examined = 0;
        let schema = Arc::new(schema);
        self.schema = Some(Arc::clone(&schema));
        schema
    }

    fn piece(&self, bytes: Vec<u8>, overlong: Option<u64>) -> Piece {
        let Self { source, header, .. } = *self;
        Piece { source, bytes, schema: self.schema.clone(), header, overlong }
    }

    /// Reads once from a pipe into `fresh`, at most `room` bytes, and says how many. Meanwhile what
    /// has been `read` lies where the end of the run finds it.
    fn wait(&mut self, read: &mut Vec<u8>, overlong: Option<u64>, room: usize) -> usize {
        let room = room.max(1);
        if self.fresh.len() < room {
            self.fresh.resize(room, 0);
        }
        loop {
            self.rest.leave(self.piece(std::mem::take(read), overlong));
            let result = self.reader.read(&mut self.fresh[..room]);
            let Some(bytes) = self.rest.take_back() else {
                self.ended = true;
                return 0;
            };
            *read = bytes;
            match result {
                Ok(n @ 1..) => return n,
                Ok(0) => self.ended = true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    self.ended = true;
                    self.failed = Some(error);
                }
            }
            return 0;
        }
    }

    /// Reads until `buffer` has `goal` bytes, or just once from a pipe.
    fn fill(&mut self, buffer: &mut Vec<u8>, goal: usize) {
        if self.pipe {
            let read = self.wait(buffer, None, goal.saturating_sub(buffer.len()));
            buffer.extend_from_slice(self.fresh.get(..read).unwrap_or_default());
            return;
        }
        let mut filled = buffer.len();
        buffer.resize(goal.max(filled + 1), 0);
        while filled < buffer.len() && !self.ended {
            match self.reader.read(&mut buffer[filled..]) {
                Ok(0) => self.ended = true,
                Ok(n) => {
                    filled += n;
                    if self.live {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.ended = true;
                    self.failed = Some(error);
                }
            }
        }
        buffer.truncate(filled);
    }

    fn fill_once(&mut self, buffer: &mut Vec<u8>, step: usize) {
        let live = std::mem::replace(&mut self.live, true);
        self.fill(buffer, buffer.len() + step);
        self.live = live;
    }
}

/// Does an input of this schema begin with a header line?
pub(super) fn has_header(schema: &Schema, options: &Options) -> bool {
    // RFID tables always have theirs: they are known by it.
    let bare = options.no_header && !schema.format.is_rfid();
    matches!(&schema.layout, Layout::Delimited(table) if table.unset.is_none() && !bare)
}
