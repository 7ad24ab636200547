//! Chunks to batches.
//!
//! Parsing is pure: a [`Chunk`] goes in, a [`Batch`] comes out, and any thread may do it. The chunk has
//! been cut at record boundaries by the same layout that finds the records here, so both always agree
//! on where a record ends.

use super::chunk::{Chunk, Fate};
use super::message::Message;
use crate::format::Format;
use crate::format::emit::Emit;
use crate::format::layout::Buffers;
use crate::options::Options;
use crate::record::field::Scratch;
use crate::record::{Batch, Fault, Kind, Mark, Parcel};
use crate::scan::lines::{Span, line_end};
use crate::schema::{Resolved, Schema};
use std::sync::Arc;

/// Parses chunks; keeps its buffers from one to the next.
#[derive(Debug, Default)]
pub struct Parser {
    scratch: Scratch,
    buffers: Buffers,
    overlong: Vec<usize>,
    /// That of messages whose format does not depend on what is in them.
    schema: Option<Arc<Schema>>,
    /// The records of one message.
    message: Batch,
}

impl Parser {
    /// A parser with empty buffers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Finds the records of `chunk` and puts them, and the bytes themselves, into `batch`, whose
    /// former content is dropped (take its `bytes` out first to use them again).
    ///
    /// *Cost:* one pass over the bytes; no allocation for each record, except for faults, numbers and
    /// anything escaped, once the buffers have grown.
    pub fn parse(&mut self, chunk: Chunk, batch: &mut Batch) {
        let schema = &*chunk.schema;
        let layout = &*schema.layout;
        batch.source = chunk.source;
        batch.parcel = None;
        batch.bytes = chunk.bytes;
        batch.headings = layout.headings();
        let end_byte = layout.line_end();
        batch.line_end = Some(end_byte).filter(|end| *end != b'\n');
        batch.lines = memchr::memchr_iter(end_byte, &batch.bytes).count() as u64;
        let (scratch, overlong) = (&mut self.scratch, &mut self.overlong);
        let (mut emit, bytes) =
            Emit::new(batch, &schema.fields, layout.longest(), scratch, overlong);
        let all = Span { start: 0, end: bytes.len(), line: 0 };
        let (begun, is_whole) = (chunk.begun, !matches!(chunk.fate, Fate::Overlong(_)));
        match chunk.fate {
            Fate::Records => layout.parse(bytes, chunk.header, &mut self.buffers, &mut emit),
            Fate::Overlong(length) => emit.cut_short(all, length),
            Fate::Left(end) => {
                layout.parse(&bytes[..end], chunk.header, &mut self.buffers, &mut emit);
                let line = memchr::memchr_iter(end_byte, &bytes[..end]).count() as u32;
                let left = Span { start: end, line, ..all };
                match bytes.len() - end {
                    0 => {}
                    length if length > layout.longest() => emit.overlong(left, length),
                    _ => emit.left(left),
                }
            }
            Fate::Torn => emit.dead(all, "the input broke off inside this record".into()),
        }
        batch.detached = emit.detached;
        if !self.overlong.is_empty() {
            shorten(batch, &self.overlong, schema.max_line);
        }
        if begun > 0 {
            resume(batch, begun, is_whole);
        }
        batch.gather_digests();
    }

    /// Finds the records of messages and copies them into `batch`, whose former content is dropped. The first
    /// message has the number `first`. Returns how records are marked.
    ///
    /// Each message is read by itself: what is wrong in one has no effect on the next.
    ///
    /// *Cost:* that of [`Parser::parse`], and of finding out the format of each message, unless it is stated to be
    /// NDJSON.
    pub(crate) fn parse_messages(
        &mut self,
        messages: Vec<Message>,
        first: u64,
        options: &Options,
        batch: &mut Batch,
    ) -> Mark {
        let mut mark = None;
        let mut parcel = Parcel::default();
        let mut one = std::mem::take(&mut self.message);
        batch.empty([options.name.clone()].into());
        for (number, message) in (first..).zip(messages) {
            parcel.token = message.token;
            self.scratch.envelope = Some(Arc::clone(&message.envelope));
            let found = self.parse_message(message.payload, options, &mut one);
            mark = mark.or(found);
            (batch.line_end, batch.headings) = (one.line_end, one.headings);
            batch.texts.begin_with(&one.texts);
            for index in 0..one.records.len() {
                // Lines are counted in files; here, messages are.
                one.records[index].line = 0;
                batch.take_record(&one, index, (0, number));
                parcel.of.push((Arc::clone(&message.envelope), index as u32));
            }
        }
        self.message = one;
        batch.parcel = Some(parcel);
        mark.unwrap_or(Mark::Member)
    }

    /// How its records are marked, if there are any.
    fn parse_message(
        &mut self,
        bytes: Vec<u8>,
        options: &Options,
        batch: &mut Batch,
    ) -> Option<Mark> {
        if bytes.is_empty() {
            batch.records.clear();
            return None;
        }
        match self.schema_of(&bytes, options) {
            Ok(schema) => {
                let (mark, header) = (schema.mark(), schema.header);
                let fate = Fate::Records;
                self.parse(Chunk { source: 0, bytes, schema, header, fate, begun: 0 }, batch);
                Some(mark)
            }
            Err(reason) => {
                *batch = Batch { bytes, ..Batch::default() };
                let raw = Schema::raw(options).ok()?;
                let Self { scratch, overlong, .. } = self;
                let (mut emit, bytes) =
                    Emit::new(batch, &raw.fields, options.max_line, scratch, overlong);
                emit.dead(Span { start: 0, end: bytes.len(), line: 0 }, reason);
                Some(raw.mark())
            }
        }
    }

    fn schema_of(&mut self, bytes: &[u8], options: &Options) -> Result<Arc<Schema>, String> {
        if let Some(schema) = &self.schema {
            return Ok(Arc::clone(schema));
        }
        let Resolved::Schema(schema) = Schema::resolve(options, bytes, true)? else {
            return Err("its format cannot be told".into());
        };
        let schema: Arc<Schema> = schema.into();
        if options.format == Format::Ndjson {
            self.schema = Some(Arc::clone(&schema));
        }
        Ok(schema)
    }
}

/// Takes away the beginning of the first record, which the last run has forwarded. What is left of it is
/// forwarded, too, and judged as little: it is no record. Of one that is too long there is nothing left.
fn resume(batch: &mut Batch, begun: usize, is_whole: bool) {
    let begun = begun.min(batch.bytes.len());
    let lines = memchr::memchr_iter(b'\n', &batch.bytes[..begun]).count();
    batch.bytes.drain(..begun);
    batch.lines = batch.lines.saturating_sub(lines as u64);
    let cut = |at: u32| (at as usize).saturating_sub(begun) as u32;
    for record in &mut batch.records {
        (record.start, record.end) = (cut(record.start), cut(record.end));
        record.line = record.line.saturating_sub(lines as u32);
    }
    let Some(first) = batch.records.first_mut() else { return };
    if batch.bytes.is_empty() {
        batch.records.clear();
        batch.extras.clear();
        batch.faults.clear();
        return batch.further.clear();
    }
    if !is_whole || matches!(first.kind, Kind::Header | Kind::Aside) {
        return;
    }
    (first.kind, first.time) = (Kind::KeyMissing, None);
    let reason = "the rest of a record that the last run was told to end in".into();
    batch.further.retain(|&(at, _)| at > 0);
    batch.faults.retain(|&(at, _)| at > 0);
    batch.faults.insert(0, (0, Fault { field: None, reason }));
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
            let tail = match batch.line_end {
                Some(byte) => usize::from(batch.bytes[start..end].last() == Some(&byte)),
                None => line_end(&batch.bytes[start..end]),
            };
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
