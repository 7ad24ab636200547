//! One input while it is read.

use super::chunk::{Chunk, Fate};
use super::cut::{Cut, Cutter};
use super::error::SourceErrorKind;
use super::open;
use super::rest::{Piece, Rest};
use crate::options::Options;
use crate::schema::{Resolved, Schema};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

/// One input while it is read.
pub(super) struct Input {
    pub(super) source: usize,
    reader: Box<dyn Read + Send>,
    /// The same, where one can wait for bytes without taking them.
    polled: Option<File>,
    /// No regular file: what has been read of it is gone from it.
    pub(super) pipe: bool,
    /// Hand on what there is.
    pub(super) live: bool,
    started: bool,
    schema: Option<Arc<Schema>>,
    /// The header is still to come.
    header: bool,
    cutter: Cutter,
    /// Read, but not handed on.
    pub(super) held: Vec<u8>,
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
    pub(super) fn new(source: usize, reader: Box<dyn Read + Send>, pipe: bool, rest: Rest) -> Self {
        Self {
            source,
            reader,
            polled: None,
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

    /// Waits for bytes with this before it reads them: then none are read that the run has no use for
    /// because it ends meanwhile.
    pub(super) fn polled(self, polled: Option<File>) -> Self {
        Self { polled, ..self }
    }

    pub(super) fn chunk(
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
        // A header in mid-stream: a chunk of its own schema begins there.
        if let Some(renewed) = schema.renewed(&buffer[..end], options) {
            schema = Arc::new(renewed);
            self.schema = Some(Arc::clone(&schema));
        }
        if let Some(at) = schema.layout.next_header(&buffer[..end]) {
            end = at;
            self.examined = 0;
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
        let keep = schema.max_line.min(schema.layout.longest());
        let mut bytes = buffer[..keep].to_vec();
        let mut length = 0;
        let mut last = None;
        let line_end = schema.layout.line_end();
        let end: &[u8] = loop {
            if let Some(at) = memchr::memchr(line_end, buffer) {
                length += at as u64;
                last = if at > 0 { Some(buffer[at - 1]) } else { last };
                self.held.extend_from_slice(&buffer[at + 1..]);
                break match (line_end, last) {
                    (0, _) => b"\0",
                    (b'\r', _) => b"\r",
                    (_, Some(b'\r')) => b"\r\n",
                    _ => b"\n",
                };
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
            // What was decompressed is not seen by waiting.
            self.polled = None;
            // This reads the first header, and may have to wait for it.
            self.rest.leave(self.piece(Vec::new(), None));
            let opened = open::decompress(compression, compressed, reader);
            self.ended = self.rest.take_back().is_none();
            self.reader = opened.map_err(SourceErrorKind::Read)?;
            while !self.ended && open::may_be_mark(buffer) {
                self.fill_once(buffer, 1 << 16);
            }
        }
        if let Some((what, remedy)) = open::archive(buffer) {
            return Err(SourceErrorKind::Archive(what, remedy));
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
        loop {
            if buffer.is_empty() && self.ended {
                return Ok(None);
            }
            // A header is a line, however many there are; only what begins with a bracket may be a document.
            let first = buffer.iter().find(|byte| !byte.is_ascii_whitespace());
            let is_document = matches!(first, Some(b'{' | b'['));
            let documents = if is_document { options.max_document } else { 0 };
            let most = options.max_line.saturating_add(documents);
            let ended = self.ended && self.failed.is_none() || buffer.len() > most;
            match Schema::resolve(options, buffer, ended).map_err(SourceErrorKind::Setup)? {
                Resolved::Schema(schema) => return Ok(Some(self.settle(*schema))),
                Resolved::More if self.failed.is_some() => {
                    // There may be whole values before the break; half a header is of no use.
                    let schema = match Schema::resolve(options, buffer, true) {
                        Ok(Resolved::Schema(schema)) if schema.layout.stands_alone() => *schema,
                        _ => Schema::raw(options).map_err(SourceErrorKind::Setup)?,
                    };
                    return Ok(Some(self.settle(schema)));
                }
                Resolved::More if ended => {
                    return Err(SourceErrorKind::Setup("its format cannot be told".into()));
                }
                // Looking starts from the beginning each time, so a long look takes long steps.
                Resolved::More => {
                    let goal = most.saturating_add(1).min(buffer.len() * 2);
                    self.fill_once(buffer, step);
                    while !self.ended && buffer.len() > 1 << 20 && buffer.len() < goal {
                        self.fill_once(buffer, step);
                    }
                }
            }
        }
    }

    fn settle(&mut self, schema: Schema) -> Arc<Schema> {
        self.header = schema.header;
        self.examined = 0;
        let schema = Arc::new(schema);
        self.schema = Some(Arc::clone(&schema));
        schema
    }

    pub(super) fn piece(&self, bytes: Vec<u8>, overlong: Option<u64>) -> Piece {
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
            let mut room = room;
            if let Some(polled) = &self.polled {
                open::wait_for_bytes(polled);
                if self.rest.is_stopping() {
                    room = 1;
                }
            }
            let read_early =
                self.polled.is_none().then(|| self.reader.read(&mut self.fresh[..room]));
            let Some(bytes) = self.rest.take_back() else {
                self.ended = true;
                return 0;
            };
            *read = bytes;
            match read_early.unwrap_or_else(|| self.reader.read(&mut self.fresh[..room])) {
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
            loop {
                // A run that ends takes the rest of the record at hand, and nothing of the next one.
                let stopping = self.rest.is_stopping();
                let room = if stopping { 1 } else { goal.saturating_sub(buffer.len()) };
                let read = self.wait(buffer, None, room);
                let fresh = self.fresh.get(..read).unwrap_or_default();
                buffer.extend_from_slice(fresh);
                let line_end = self.schema.as_ref().map_or(b'\n', |one| one.layout.line_end());
                let is_end = |byte: &u8| matches!(byte, b'\n' | b'}' | b']') || *byte == line_end;
                if !stopping || self.ended || matches!(fresh, [byte] if is_end(byte)) {
                    return;
                }
            }
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
