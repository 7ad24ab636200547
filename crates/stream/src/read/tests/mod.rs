//! Whole inputs through source and parser.

mod files;
mod formats;
mod input;
mod json;
mod keys;
mod property;

use super::parser::Parser;
use crate::options::{Format, Options};
use crate::record::Time;
use crate::record::{Batch, Extra, Kind};
use crate::source::{Source, SourceError};
use lately::{Digest, Digester};
use std::io::Read;
use std::sync::Arc;

/// A record, apart from the batch it was in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seen {
    pub(crate) bytes: Vec<u8>,
    pub(crate) kind: Kind,
    pub(crate) digest: Digest,
    pub(crate) time: Option<Time>,
    pub(crate) line: u64,
    pub(crate) reason: String,
    pub(crate) extra: Extra,
}

/// The time of a record that brings one.
pub(crate) fn time(nanos: u64) -> Option<Time> {
    Time::since_1970(nanos.cast_signed())
}

/// Options with a simple reading of times: a whole number is nanoseconds.
pub(crate) fn options(format: Format) -> Options {
    let read = |text: &[u8]| {
        let text = std::str::from_utf8(text).map_err(|e| e.to_string())?;
        let nanos = text.parse().ok().and_then(Time::since_1970);
        nanos.ok_or_else(|| format!("`{text}` is not a time"))
    };
    Options { format, ..Options::new(Digester::new(0), Arc::new(read)) }
}

pub(crate) fn keyed(format: Format, key: &[&str]) -> Options {
    Options { key: key.iter().map(|k| (*k).into()).collect(), ..options(format) }
}

/// Reads of at most so many bytes.
struct Drip {
    bytes: Vec<u8>,
    at: usize,
    most: usize,
}

impl Read for Drip {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.most.min(buffer.len()).min(self.bytes.len() - self.at);
        buffer[..n].copy_from_slice(&self.bytes[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

pub(crate) fn drip(bytes: &[u8], most: usize, options: &Options) -> Source {
    let reader = Drip { bytes: bytes.to_vec(), at: 0, most };
    Source::from_reader("input", Box::new(reader), options.clone())
}

/// All batches of a source, each checked for gaps.
pub(crate) fn batches(source: &mut Source) -> Result<Vec<Batch>, SourceError> {
    let mut parser = Parser::new();
    let mut batches = Vec::new();
    while let Some(chunk) = source.next_chunk(Vec::new())? {
        let mut batch = Batch::default();
        parser.parse(chunk, &mut batch);
        check(&batch);
        batches.push(batch);
    }
    Ok(batches)
}

/// Records are in order, cover the bytes, and every one that lacks something has its reason.
fn check(batch: &Batch) {
    let mut at = 0;
    for record in &batch.records {
        assert!(record.start >= at && record.end >= record.start);
        assert!(batch.detached || record.start == at, "gap at {at}");
        at = record.end;
    }
    assert!(at as usize <= batch.bytes.len());
    assert!(batch.detached || batch.records.is_empty() || at as usize == batch.bytes.len());
    let with_reason: Vec<_> = batch.faults.iter().map(|fault| fault.0 as usize).collect();
    let faulty = |kind| matches!(kind, Kind::Invalid | Kind::KeyMissing | Kind::Untimed);
    let expected: Vec<_> =
        (0..batch.records.len()).filter(|&i| faulty(batch.records[i].kind)).collect();
    assert_eq!(with_reason, expected);
}

pub(crate) fn seen(batches: &[Batch]) -> Vec<Seen> {
    let mut lines = 0;
    let mut all = Vec::new();
    for batch in batches {
        for (i, record) in batch.records.iter().enumerate() {
            let fault = batch.faults.iter().find(|fault| fault.0 as usize == i);
            all.push(Seen {
                bytes: batch.bytes_of(record).to_vec(),
                kind: record.kind,
                digest: record.digest,
                time: record.time,
                line: lines + u64::from(record.line),
                reason: fault.map(|fault| fault.1.to_string()).unwrap_or_default(),
                extra: batch.extras.get(i).copied().unwrap_or_default(),
            });
        }
        lines += batch.lines;
    }
    all
}

/// The records of an input that is read at once.
pub(crate) fn read(bytes: impl AsRef<[u8]>, options: &Options) -> Vec<Seen> {
    let bytes = bytes.as_ref();
    seen(&batches(&mut drip(bytes, bytes.len().max(1), options)).unwrap())
}

/// What keeps an input from being read.
pub(crate) fn refusal(bytes: impl AsRef<[u8]>, options: &Options) -> String {
    batches(&mut drip(bytes.as_ref(), 1 << 20, options)).unwrap_err().to_string()
}

pub(crate) fn kinds(records: &[Seen]) -> Vec<Kind> {
    records.iter().map(|record| record.kind).collect()
}

/// Numbers the keys in order of appearance: equal keys, equal numbers; 0 where there is none.
pub(crate) fn groups(records: &[Seen]) -> Vec<usize> {
    let mut known = Vec::new();
    let records = records.iter().filter(|r| !matches!(r.kind, Kind::Header | Kind::Aside));
    records
        .map(|record| {
            if record.kind != Kind::Keyed {
                return 0;
            }
            let place = known.iter().position(|digest| *digest == record.digest);
            1 + place.unwrap_or_else(|| {
                known.push(record.digest);
                known.len() - 1
            })
        })
        .collect()
}
