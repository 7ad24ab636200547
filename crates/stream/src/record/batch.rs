//! Batches of records: what parsing hands on to the clock, the filter and the sink.

use super::envelope::Envelope;
use super::mark::Heading;
use super::texts::Texts;
use super::time::Time;
use lately::Digest;
use std::fmt;
use std::sync::Arc;

/// A piece of one input, cut at record boundaries, with the records found in it.
#[derive(Debug, Default)]
pub struct Batch {
    /// Which input, counted from 0 in the order given.
    pub source: usize,
    /// The piece itself, byte for byte as read (after decompression, without a byte order mark).
    pub bytes: Vec<u8>,
    /// Lines begun in this piece; what it adds to the line number of the next one.
    pub lines: u64,
    /// The records and asides, in order. Together they cover `bytes` without a gap, except where
    /// `detached` is set.
    pub records: Vec<Record>,
    /// The digests of the keyed records, in order: gathered where parsing is done, by many threads,
    /// for the one that judges.
    pub digests: Vec<Digest>,
    /// Where keys are numbers and a key field holds a list of them: all but the first, which is the
    /// record's own, as (index into `records`, number), ascending by index.
    pub further: Vec<(u32, u128)>,
    /// Parallel to `records` when a change field or a rank field was asked for, else empty.
    pub extras: Vec<Extra>,
    /// For each record as many numbers as there are fields with a dead band; NaN where there is none.
    pub bands: Vec<f64>,
    /// Parallel to `records` where texts are kept, else empty.
    pub texts: Texts,
    /// Why records are invalid or lack a key: (index into `records`, reason), ascending.
    pub faults: Vec<(u32, Fault)>,
    /// The records were cut out of an enclosing array and bring no line end of their own: the sink
    /// adds one to each.
    pub detached: bool,
    /// Where each record is from, if they are of several inputs.
    pub(crate) origins: Option<Origins>,
    /// The messages that the records came in, if they came from a broker.
    pub parcel: Option<Parcel>,
    /// What ends a record, if that is no line feed.
    pub line_end: Option<u8>,
    /// The rows that the records are, where these are in columns and not in `bytes`.
    #[cfg(feature = "parquet")]
    pub(crate) columns: Option<arrow_array::RecordBatch>,
    /// Asides that name or type the columns.
    pub(crate) headings: &'static [Heading],
}

/// The messages that the records of a batch came in.
#[derive(Clone, Debug, Default)]
pub struct Parcel {
    /// The number of the last message.
    pub token: u64,
    /// For each record what surrounds its message, and how many records of that came before it.
    pub of: Vec<(Arc<Envelope>, u32)>,
}

/// Where the records of a batch are from.
#[derive(Clone, Debug)]
pub(crate) struct Origins {
    /// All inputs.
    names: Arc<[String]>,
    /// For each record the number of its input, and its line.
    of: Vec<(u32, u64)>,
}

impl Batch {
    /// The input and the line of a record, where records are of several inputs.
    pub(crate) fn origin(&self, index: usize) -> Option<(&str, u64)> {
        let origins = self.origins.as_ref()?;
        let (source, line) = *origins.of.get(index)?;
        Some((origins.names.get(source as usize).map_or("", String::as_str), line))
    }

    /// Empties it, for records of these inputs.
    pub(crate) fn empty(&mut self, names: Arc<[String]>) {
        let bytes = std::mem::take(&mut self.bytes);
        let records = std::mem::take(&mut self.records);
        *self = Self { bytes, records, ..Self::default() };
        self.bytes.clear();
        self.records.clear();
        self.origins = Some(Origins { names, of: Vec::new() });
    }

    /// Copies a record of another batch, whose origin is the number of its input and the first line of
    /// that batch.
    pub(crate) fn take_record(&mut self, from: &Self, index: usize, origin: (u32, u64)) {
        let Some(&record) = from.records.get(index) else { return };
        let (start, at) = (self.bytes.len() as u32, self.records.len() as u32);
        let bytes = from.bytes_of(&record);
        self.bytes.extend_from_slice(bytes);
        // The last line of an input may lack its end, and is not the last one here.
        let line_end = from.line_end.unwrap_or(b'\n');
        if !self.detached && bytes.last() != Some(&line_end) {
            self.bytes.push(line_end);
        }
        let end = self.bytes.len() as u32;
        self.records.push(Record { start, end, line: 0, ..record });
        if record.kind == Kind::Keyed {
            self.digests.push(record.digest);
        }
        let numbers = from.numbers(index).skip(1).map(|number| (at, number));
        self.further.extend(numbers);
        self.extras.extend(from.extras.get(index));
        let width = from.bands.len() / from.records.len().max(1);
        self.bands.extend(from.bands.iter().skip(index * width).take(width));
        self.texts.copy(&from.texts, index);
        let fault = from.faults.binary_search_by_key(&(index as u32), |fault| fault.0);
        if let Some((_, fault)) = fault.ok().and_then(|fault| from.faults.get(fault)) {
            self.faults.push((at, fault.clone()));
        }
        if let Some(origins) = &mut self.origins {
            origins.of.push((origin.0, origin.1 + u64::from(record.line)));
        }
    }

    /// Gathers the digests of the keyed records.
    pub(crate) fn gather_digests(&mut self) {
        let keyed = self.records.iter().filter(|record| record.kind == Kind::Keyed);
        self.digests.clear();
        self.digests.extend(keyed.map(|record| record.digest));
    }

    /// How many bytes it has read.
    pub(crate) fn size(&self) -> u64 {
        #[cfg(feature = "parquet")]
        if let Some(columns) = &self.columns {
            return columns.get_array_memory_size() as u64;
        }
        self.bytes.len() as u64
    }

    /// The bytes of one record, line end included.
    pub fn bytes_of(&self, record: &Record) -> &[u8] {
        &self.bytes[record.start as usize..record.end as usize]
    }

    /// The numbers of the keyed record in this place: its own, and further ones of a list.
    pub fn numbers(&self, index: usize) -> impl Iterator<Item = u128> + '_ {
        let own = self.records.get(index).map(Record::number);
        let start = self.further.partition_point(|&(at, _)| (at as usize) < index);
        let further = self.further.get(start..).unwrap_or_default().iter();
        own.into_iter()
            .chain(further.take_while(move |&&(at, _)| at as usize == index).map(|one| one.1))
    }
}

/// One record: where its bytes are, and all that judging it needs.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// Where it begins in the batch's bytes.
    pub start: u32,
    /// Where it ends, line end included.
    pub end: u32,
    /// The line it begins on, counted from 0 within the batch.
    pub line: u32,
    /// What it is.
    pub kind: Kind,
    /// The digest of its key, or the two halves of the number that its key is
    /// ([`Record::number`]); of no meaning unless `kind` is [`Kind::Keyed`].
    pub digest: Digest,
    /// When it happened, as it says; `None` when no time field was asked for, or none could be read.
    pub time: Option<Time>,
}

impl Record {
    /// The number that its key is, where keys are read as numbers
    /// ([`Options::numbers`](crate::options::Options::numbers)). It stands in the place of the digest,
    /// as no run needs both.
    pub fn number(&self) -> u128 {
        u128::from(self.digest.hi()) << 64 | u128::from(self.digest.lo())
    }

    /// What stands in the place of the digest of a record with this number.
    pub(crate) fn digest_of_number(number: u128) -> Digest {
        Digest::new((number >> 64) as u64, number as u64)
    }
}

/// What a record is to the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It has a key (and a time, if one was asked for).
    Keyed,
    /// It has a key, but its time cannot be read: judged by when it arrives, counted. Its reason is in
    /// `faults`.
    Untimed,
    /// Readable, but the key is absent or null: it passes, counted.
    KeyMissing,
    /// Unreadable, or without a readable time: a dead letter. Its reason is in `faults`.
    Invalid,
    /// A header line: not a record; written once to each output.
    Header,
    /// A comment or a blank line: not a record; passed on unchanged.
    Aside,
}

/// What only some runs look at.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Extra {
    /// Hash of the `--pass-on-change` fields; 0 when absent.
    pub change: u64,
    /// The number in the `--best` field; `None` when absent or no number.
    pub rank: Option<f64>,
    /// Hash of the fields that name the source, where each source has a clock of its own; `None` when
    /// absent.
    pub source: Option<u64>,
}

/// Why a record cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The field it is about, if one.
    pub field: Option<String>,
    /// What is wrong, in words a user can act on.
    pub reason: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.field {
            Some(field) => write!(f, "field `{field}`: {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}
