//! One input while it is read.

use super::chunk::{Chunk, Fate};
use super::cut::{Cut, Cutter};
use super::error::SourceErrorKind;
use super::open;
use super::pipe::{Gate, Pipe};
use super::rest::{Left, Piece, Quiet, Rest};
use crate::options::{Format, Options};
use crate::schema::{Resolved, Schema};
use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// One input while it is read.
pub(super) struct Input {
    pub(super) source: usize,
    reader: Box<dyn Read + Send>,
    /// Read in its place, where it is there.
    waited: Option<Pipe>,
    /// What is decompressed is read through a [`Gate`]: whether that has shut.
    gate: Option<Arc<AtomicBool>>,
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
    /// It has not ended: the run was told to.
    pub(super) left_off: bool,
    failed: Option<io::Error>,
    /// Where to leave what has been read of a pipe while waiting for more.
    rest: Rest,
    /// Whom to tell that nothing is there.
    quiet: Quiet,
    /// The pipe, if another run can read on where this one ends.
    name: Option<String>,
    /// So much of what is held was read and forwarded by the last run.
    begun: usize,
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
            waited: None,
            gate: None,
            pipe,
            live: pipe,
            started: false,
            schema: None,
            header: false,
            cutter: Cutter::default(),
            held: Vec::new(),
            examined: 0,
            ended: false,
            left_off: false,
            failed: None,
            rest,
            quiet: Quiet::default(),
            name: None,
            begun: 0,
            fresh: Vec::new(),
        }
    }

    /// Reads this in place of the reader: it can be told to end while it waits.
    pub(super) fn waited(mut self, pipe: Option<Pipe>, quiet: Quiet) -> Self {
        self.name = pipe.as_ref().and_then(Pipe::name).map(str::to_owned);
        Self { waited: pipe, quiet, ..self }
    }

    /// Resumes a record whose beginning the last run has read, if it was of this pipe.
    pub(super) fn resumed(mut self, left: Option<&Left>) -> Self {
        if let Some(left) = left.filter(|left| self.name.as_ref() == Some(&left.pipe)) {
            self.rest.set_resumed(self.source);
            self.begun = left.bytes.len();
            self.held.splice(0..0, left.bytes.iter().copied());
        }
        self
    }

    /// Reads until the format is known, and holds what was read. What cannot be told by then is found out
    /// when it is read with all that is wanted of it.
    pub(super) fn look(&mut self, options: &Options) -> Result<Option<Format>, SourceErrorKind> {
        let mut buffer = Vec::new();
        self.started = true;
        self.start(&mut buffer)?;
        let step = options.chunk.clamp(1, 1 << 30);
        let schema = self.resolve(options, &mut buffer, step).ok().flatten();
        (self.held, self.schema, self.header) = (buffer, None, false);
        Ok(schema.map(|schema| schema.format()))
    }

    /// Is this the end of what a run reads that was told to end? What has been read of a record is to be
    /// completed, what has been read of a compressed pipe decompressed.
    pub(super) fn ends_here(&self) -> bool {
        !self.pipe || self.held.is_empty() && (self.gate.is_none() || self.ended)
    }

    pub(super) fn chunk(
        &mut self,
        options: &Options,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Chunk>, SourceErrorKind> {
        buffer.clear();
        buffer.append(&mut self.held);
        self.quiet.end();
        if !self.started {
            self.started = true;
            self.start(buffer)?;
        }
        let step = options.chunk.clamp(1, 1 << 30);
        let schema = match &self.schema {
            Some(schema) => Arc::clone(schema),
            None => match self.resolve(options, buffer, step)? {
                Some(schema) => schema,
                None if self.left_off => return self.leave_off(options, buffer, None),
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
            let ended = self.is_over();
            match self.cutter.cut(&schema, buffer, self.examined, ended) {
                Cut::Records(end) => return Ok(Some(self.hand_on(options, schema, buffer, end))),
                Cut::Overlong => return self.overlong(options, schema, buffer),
                Cut::Nothing if self.left_off => return self.leave_off(options, buffer, None),
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
        let begun = std::mem::take(&mut self.begun).min(bytes.len());
        Chunk { source: self.source, bytes, schema, header, fate, begun }
    }

    /// Has it come to its end, whole?
    fn is_over(&self) -> bool {
        self.ended && self.failed.is_none() && !self.left_off
    }

    /// The last chunk of a run that was told to end: what it has read of a record, which is left to the
    /// next one.
    fn leave_off(
        &mut self,
        options: &Options,
        buffer: &mut Vec<u8>,
        overlong: Option<u64>,
    ) -> Result<Option<Chunk>, SourceErrorKind> {
        let piece = self.piece(std::mem::take(buffer), overlong);
        self.begun = 0;
        let chunk = piece.into_chunk(options)?;
        if let (Some(pipe), Some(chunk)) = (&self.name, &chunk) {
            let from = if let Fate::Left(end) = chunk.fate { end } else { 0 };
            let bytes = chunk.bytes[from..].to_vec();
            if !bytes.is_empty() && !matches!(chunk.fate, Fate::Records) {
                self.rest.set_left(Left { pipe: pipe.clone(), bytes });
            }
        }
        Ok(chunk)
    }

    /// Steps over the rest of a line that is too long to hold.
    fn overlong(
        &mut self,
        options: &Options,
        schema: Arc<Schema>,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Chunk>, SourceErrorKind> {
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
            if self.left_off {
                return self.leave_off(options, &mut bytes, Some(length));
            }
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
        Ok(Some(self.chunk_of(schema, bytes, Fate::Overlong(length))))
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
            // Another run cannot begin in the middle.
            self.name = None;
            let reader = match self.waited.take() {
                Some(pipe) => Box::new(self.gate(pipe)),
                None => reader,
            };
            // This reads the first header, and may have to wait for it.
            if self.gate.is_none() {
                self.rest.leave(self.piece(Vec::new(), None));
            }
            let opened = open::decompress(compression, compressed, reader);
            self.ended = self.rest.take_back().is_none();
            if self.is_shut() {
                return Ok(());
            }
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

    fn gate(&mut self, pipe: Pipe) -> Gate {
        let shut = Arc::<AtomicBool>::default();
        self.gate = Some(Arc::clone(&shut));
        Gate { pipe, rest: self.rest.clone(), quiet: self.quiet.clone(), shut }
    }

    /// Has the gate shut? Then this is the end of what is read, though not that of the input.
    fn is_shut(&mut self) -> bool {
        let shut = self.gate.as_ref().is_some_and(|shut| shut.load(Ordering::Relaxed));
        if shut {
            (self.ended, self.left_off) = (true, true);
        }
        shut
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
            let ended = self.is_over() || buffer.len() > most;
            match Schema::resolve(options, buffer, ended).map_err(SourceErrorKind::Setup)? {
                Resolved::Schema(schema) => return Ok(Some(self.settle(*schema))),
                Resolved::More if self.left_off => return Ok(None),
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

    fn piece(&self, bytes: Vec<u8>, overlong: Option<u64>) -> Piece {
        let Self { source, header, begun, .. } = *self;
        Piece { source, bytes, schema: self.schema.clone(), header, overlong, begun }
    }

    /// Reads once from a pipe into `fresh`, at most `room` bytes, and says how many. What has been `read`
    /// is the beginning of a record, if it is anything.
    fn wait(&mut self, read: &mut Vec<u8>, overlong: Option<u64>, room: usize) -> usize {
        let room = room.max(1);
        if self.fresh.len() < room {
            self.fresh.resize(room, 0);
        }
        loop {
            let part = read.len() > self.begun || overlong.is_some();
            let room = match self.rest.is_stopping() && self.gate.is_none() {
                true if !part && self.waited.is_some() => {
                    (self.ended, self.left_off) = (true, true);
                    return 0;
                }
                // The rest of the record, and nothing of the next one.
                true => 1,
                false => room,
            };
            match self.read(read, overlong, room) {
                Ok(n @ 1..) => return n,
                Ok(0) => {
                    self.ended = true;
                    self.is_shut();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => match &self.waited {
                    Some(pipe) if error.kind() == io::ErrorKind::WouldBlock => {
                        self.quiet.tell();
                        if pipe.wait(&self.rest, part) {
                            continue;
                        }
                        (self.ended, self.left_off) = (true, true);
                    }
                    _ => {
                        self.ended = true;
                        if !self.is_shut() {
                            self.failed = Some(error);
                        }
                    }
                },
            }
            return 0;
        }
    }

    /// Reads once. If that may have to wait, what has been `read` lies meanwhile where the end of the run
    /// finds it.
    fn read(
        &mut self,
        read: &mut Vec<u8>,
        overlong: Option<u64>,
        room: usize,
    ) -> io::Result<usize> {
        if self.gate.is_some() {
            return self.reader.read(&mut self.fresh[..room]);
        }
        match &mut self.waited {
            Some(pipe) if !pipe.may_wait() => return pipe.read(&mut self.fresh[..room]),
            Some(pipe) if !pipe.is_ready() => return Err(io::ErrorKind::WouldBlock.into()),
            _ => {}
        }
        let piece = self.piece(std::mem::take(read), overlong);
        let result = match &mut self.waited {
            Some(pipe) => {
                self.rest.leave_shortly(piece);
                pipe.read(&mut self.fresh[..room])
            }
            None => {
                self.rest.leave(piece);
                self.reader.read(&mut self.fresh[..room])
            }
        };
        // Nobody is there any more to judge it.
        let Some(bytes) = self.rest.take_back() else { return Ok(0) };
        *read = bytes;
        result
    }

    /// Reads until `buffer` has `goal` bytes, or just once from a pipe.
    fn fill(&mut self, buffer: &mut Vec<u8>, goal: usize) {
        if self.pipe {
            loop {
                // A run that ends takes the rest of the record at hand, and nothing of the next one.
                let stopping = self.rest.is_stopping() && self.gate.is_none();
                let read = self.wait(buffer, None, goal.saturating_sub(buffer.len()));
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
