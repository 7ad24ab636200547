//! Bytes to records: one file a format.
//!
//! Parsing is pure: a [`Chunk`] goes in, a [`Batch`] comes out, and any thread may do it. The
//! [`source`](crate::source) has cut the chunk at record boundaries with the same functions that
//! find the records here, so both always agree on where a record ends.

mod columns;
pub(crate) mod table;

mod lines;
pub(crate) mod profile;
mod values;

mod shape;
pub(crate) mod sniff;

use crate::options::Schema;
use crate::record::field::{Row, Scratch};
use crate::record::{Batch, Extra, Fault, Kind, Record};
use crate::scan::json::Piece;
use crate::source::{Chunk, Fate};
use lately::Digest;
use table::{Delimited, Span};
use values::Json;

/// How the bytes of an input become records.
#[derive(Clone, Debug)]
pub(crate) enum Layout {
    Lines,
    Columns,
    Delimited(Delimited),
    Json(Json),
}

/// Parses chunks; keeps its buffers from one to the next.
#[derive(Debug, Default)]
pub struct Parser {
    scratch: Scratch,
    spans: Vec<Span>,
    found: Vec<Option<Piece>>,
    overlong: Vec<usize>,
}

impl Parser {
    /// A parser with empty buffers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Finds the records of `chunk` and puts them, and the bytes themselves, into `batch`, whose
    /// former content is dropped (take its `bytes` out first to use them again).
    ///
    /// *Cost:* one pass over the bytes; no allocation a record, but for faults, numbers and
    /// anything escaped, once the buffers have grown.
    pub fn parse(&mut self, chunk: Chunk, batch: &mut Batch) {
        batch.source = chunk.source;
        batch.bytes = chunk.bytes;
        batch.records.clear();
        batch.extras.clear();
        batch.faults.clear();
        batch.further.clear();
        batch.detached = false;
        batch.lines = memchr::memchr_iter(b'\n', &batch.bytes).count() as u64;
        self.overlong.clear();
        let schema = &*chunk.schema;
        let mut emit = Emit {
            schema,
            records: &mut batch.records,
            extras: &mut batch.extras,
            faults: &mut batch.faults,
            further: &mut batch.further,
            scratch: &mut self.scratch,
            overlong: &mut self.overlong,
            want_extras: schema.wanted.extras(),
        };
        let bytes = &*batch.bytes;
        let all = Place { start: 0, end: bytes.len(), line: 0 };
        match chunk.fate {
            Fate::Records => match &schema.layout {
                Layout::Lines => lines::parse(bytes, &mut emit),
                Layout::Columns => columns::parse(bytes, &mut emit, &mut self.spans),
                Layout::Delimited(table) => {
                    table::parse(table, bytes, chunk.header, &mut emit, &mut self.spans);
                }
                Layout::Json(json) => {
                    batch.detached = json.parse(bytes, &mut emit, &mut self.found);
                }
            },
            Fate::Overlong(length) => emit.dead(all, too_long(length, limit_of(schema))),
            Fate::Torn => emit.dead(all, "the input broke off inside this record".into()),
        }
        if !self.overlong.is_empty() {
            shorten(batch, &self.overlong, schema.max_line);
        }
        let keyed = batch.records.iter().filter(|record| record.kind == Kind::Keyed);
        batch.digests.clear();
        batch.digests.extend(keyed.map(|record| record.digest));
    }
}

/// Where a record is: bytes, line end included, and the line it begins on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) line: u32,
}

/// Takes the records as they are found.
pub(crate) struct Emit<'a> {
    pub(crate) schema: &'a Schema,
    records: &'a mut Vec<Record>,
    extras: &'a mut Vec<Extra>,
    faults: &'a mut Vec<(u32, Fault)>,
    further: &'a mut Vec<(u32, u128)>,
    scratch: &'a mut Scratch,
    overlong: &'a mut Vec<usize>,
    want_extras: bool,
}

impl Emit<'_> {
    /// A record whose fields can be looked up.
    #[inline]
    pub(crate) fn row(&mut self, place: Place, row: &impl Row) {
        let judged = self.schema.wanted.judge(row, self.schema, self.scratch);
        if let Some(fault) = judged.fault {
            self.faults.push((self.records.len() as u32, fault));
        }
        if !self.scratch.further.is_empty() {
            let at = self.records.len() as u32;
            self.further.extend(self.scratch.further.drain(..).map(|number| (at, number)));
        }
        if self.want_extras {
            self.extras.push(self.schema.wanted.extra(row, self.schema, self.scratch));
        }
        self.records.push(record(place, judged.kind, judged.digest, judged.time));
    }

    /// A record that is nothing but its key.
    #[inline]
    pub(crate) fn keyed(&mut self, place: Place, key: &[u8]) {
        let digest = self.schema.digester.digest(key);
        self.records.push(record(place, Kind::Keyed, digest, Record::NO_TIME));
    }

    /// A header or an aside.
    pub(crate) fn other(&mut self, place: Place, kind: Kind) {
        if self.want_extras {
            self.extras.push(Extra::default());
        }
        self.records.push(record(place, kind, Digest::new(0, 0), Record::NO_TIME));
    }

    /// A record that cannot be read.
    pub(crate) fn dead(&mut self, place: Place, reason: String) {
        self.faults.push((self.records.len() as u32, Fault { field: None, reason }));
        self.other(place, Kind::Invalid);
    }

    /// A record of more than the allowed length, here in full; it is shortened later.
    pub(crate) fn overlong(&mut self, place: Place, length: usize) {
        self.overlong.push(self.records.len());
        self.dead(place, too_long(length as u64, limit_of(self.schema)));
    }

    /// Forgets all records so far, to begin again.
    pub(crate) fn restart(&mut self) {
        self.records.clear();
        self.extras.clear();
        self.faults.clear();
        self.further.clear();
        self.overlong.clear();
    }
}

fn record(place: Place, kind: Kind, digest: Digest, time: u64) -> Record {
    let Place { start, end, line } = place;
    Record { start: start as u32, end: end as u32, line, kind, digest, time }
}

/// The longest record, its line end not counted, that this layout takes.
pub(crate) fn limit_of(schema: &Schema) -> usize {
    match &schema.layout {
        Layout::Json(json) if json.documents => schema.max_document,
        _ => schema.max_line,
    }
}

fn too_long(length: u64, limit: usize) -> String {
    format!("{length} bytes long, more than the {limit} allowed; only its beginning is kept")
}

/// Cuts overlong records down to their first `keep` bytes and their line end, so that they look
/// the same whether they were found here or by the source, which never held them whole.
fn shorten(batch: &mut Batch, overlong: &[usize], keep: usize) {
    let mut overlong = overlong.iter().peekable();
    let mut to = 0;
    let mut last = 0;
    for (i, record) in batch.records.iter_mut().enumerate() {
        let (start, end) = (record.start as usize, record.end as usize);
        // What lies between two records (only when they are detached) is of no use to anybody.
        let gap = start - last;
        last = end;
        batch.bytes.copy_within(start - gap..start, to);
        to += gap;
        record.start = to as u32;
        if overlong.next_if(|&&long| long == i).is_some() {
            let tail = line_end(&batch.bytes[start..end]);
            let keep = keep.min(end - start - tail);
            batch.bytes.copy_within(start..start + keep, to);
            batch.bytes.copy_within(end - tail..end, to + keep);
            to += keep + tail;
        } else {
            batch.bytes.copy_within(start..end, to);
            to += end - start;
        }
        record.end = to as u32;
    }
    batch.bytes.truncate(to);
}

/// The length of the line end that closes `line`: 0, 1 or 2.
#[inline]
pub(crate) fn line_end(line: &[u8]) -> usize {
    match line {
        [.., b'\r', b'\n'] => 2,
        [.., b'\n'] => 1,
        _ => 0,
    }
}

/// The lines of a chunk, each with its line end.
pub(crate) struct Lines<'a> {
    bytes: &'a [u8],
    ends: memchr::Memchr<'a>,
    at: usize,
    line: u32,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, ends: memchr::memchr_iter(b'\n', bytes), at: 0, line: 0 }
    }
}

impl Iterator for Lines<'_> {
    type Item = Place;

    #[inline]
    fn next(&mut self) -> Option<Place> {
        let start = self.at;
        let end = match self.ends.next() {
            Some(end) => end + 1,
            None if start < self.bytes.len() => self.bytes.len(),
            None => return None,
        };
        self.at = end;
        self.line += 1;
        Some(Place { start, end, line: self.line - 1 })
    }
}
