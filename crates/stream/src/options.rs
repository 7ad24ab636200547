//! Which format an input has, told by name or by looking, and what is wanted of its records.
//!
//! A [`Schema`] is the answer for one input: how to cut its bytes into records and where in a
//! record the key, the time and the other fields are. It is made once from the first bytes of the
//! input and then only read, so that any number of threads can parse with it.

use crate::format::{Layout, profile, sniff};
use crate::number::{NumberFormat, NumberReader};
use crate::record::field::Wanted;
use crate::sink::Mark;
use crate::stamp::StampParser;
use lately::Digester;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The formats that can be asked for by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// By looking; a record is a raw line unless fields are wanted.
    #[default]
    Auto,
    /// A record is a line, whatever is in it.
    Lines,
    /// Fields separated by runs of blanks, without a header, named `1`, `2`, `3` …
    Columns,
    /// Comma-separated values with a header line; quoted fields may hold line ends (RFC 4180).
    Csv,
    /// Tab-separated values with a header line; quotes have no meaning.
    Tsv,
    /// A JSON value a line.
    Ndjson,
    /// JSON values one after another, over any number of lines; an array's elements are the records.
    Json,
    /// Zeek's TSV logs, with their `#fields` lines.
    Zeek,
    /// RFID reads of an Impinj IoT device interface (JSON).
    Impinj,
    /// RFID reads of a Zebra IoT connector (JSON objects or arrays of them).
    Zebra,
    /// RFID reads written by sllurp (CSV).
    Sllurp,
    /// RFID reads written by Impinj's Speedway Connect (CSV).
    Speedway,
    /// RFID reads in the CSV that begins with `RunTimestamp,Timestamp,EPC`.
    Runtimestamp,
    /// EPCIS 2.0 documents or events (JSON).
    Epcis,
}

impl Format {
    /// Every format with the name it is asked for by.
    pub const NAMES: [(&'static str, Self); 14] = [
        ("auto", Self::Auto),
        ("lines", Self::Lines),
        ("columns", Self::Columns),
        ("csv", Self::Csv),
        ("tsv", Self::Tsv),
        ("ndjson", Self::Ndjson),
        ("json", Self::Json),
        ("zeek", Self::Zeek),
        ("impinj", Self::Impinj),
        ("zebra", Self::Zebra),
        ("sllurp", Self::Sllurp),
        ("speedway", Self::Speedway),
        ("runtimestamp", Self::Runtimestamp),
        ("epcis", Self::Epcis),
    ];

    /// Whether it is one of the RFID formats, which know their own key and time.
    pub const fn is_rfid(self) -> bool {
        profile::of(self).is_some()
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(_, format)| format == self).map_or("auto", |n| n.0);
        f.pad(name)
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::NAMES.iter().find(|(name, _)| *name == text).map(|n| n.1).ok_or_else(|| {
            let names: Vec<_> = Self::NAMES.iter().map(|n| n.0).collect();
            format!("unknown format `{text}`; known are {}", names.join(", "))
        })
    }
}

/// How the text of a key field becomes the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyFormat {
    /// As it is.
    #[default]
    Text,
    /// What can be read as an EPC, in any spelling, becomes the EPC itself; other text stays.
    Epc,
}

/// Reads the text of a time field: nanoseconds since 1970, or what is wrong with it.
pub type ReadTime = Arc<dyn Fn(&[u8]) -> Result<u64, String> + Send + Sync>;

/// Reads times with `parser`.
pub fn read_time(parser: StampParser) -> ReadTime {
    Arc::new(move |text| parser.parse(text).map_err(|error| error.to_string()))
}

/// The name that stands for the whole record in a list of key fields.
pub const WHOLE_RECORD: &str = ".";

/// What is wanted of the records of all inputs.
#[derive(Clone)]
pub struct Options {
    /// The format, or [`Format::Auto`].
    pub format: Format,
    /// For [`Format::Auto`]: the run needs to understand the records (a window in time, a profile)
    /// although no field is named. Naming any field implies it.
    pub fields_wanted: bool,
    /// The key fields. A CSV column by its exact name (of several the first); a JSON member of the outermost object by its
    /// exact name, dots included, or a JSON pointer (`/foo/bar`); a column by its number where
    /// there is no header; [`WHOLE_RECORD`]. None: the profile's key, else the whole record.
    pub key: Vec<String>,
    /// How key fields become the key.
    pub key_format: KeyFormat,
    /// The key, of one field, is a number of this format instead: see
    /// [`Record::number`](crate::record::Record::number).
    pub numbers: Option<NumberFormat>,
    /// The time field.
    pub time: Option<String>,
    /// A time is wanted: with no time field named, the format's own is taken if it has one.
    pub time_wanted: bool,
    /// Fields whose change lets a record pass.
    pub change: Vec<String>,
    /// The field whose number ranks duplicates.
    pub rank: Option<String>,
    /// CSV and TSV inputs have no header line; fields are named by number from 1.
    pub no_header: bool,
    /// The longest record in bytes, its line end not counted; longer ones become dead letters.
    pub max_line: usize,
    /// The longest JSON document in bytes.
    pub max_document: usize,
    /// How many bytes a chunk has, more or less.
    pub chunk: usize,
    /// Hashes the keys.
    pub digester: Digester,
    /// Reads the times.
    pub read_time: ReadTime,
}

impl Options {
    /// Raw lines, hashed with `digester`; times, if any, read with `read_time`.
    pub fn new(digester: Digester, read_time: ReadTime) -> Self {
        Self {
            format: Format::Auto,
            fields_wanted: false,
            key: Vec::new(),
            key_format: KeyFormat::Text,
            numbers: None,
            time: None,
            time_wanted: false,
            change: Vec::new(),
            rank: None,
            no_header: false,
            max_line: 1 << 20,
            max_document: 64 << 20,
            chunk: 128 << 10,
            digester,
            read_time,
        }
    }

    /// Whether the records have to be understood at all.
    pub(crate) fn look_inside(&self) -> bool {
        self.fields_wanted || self.time_wanted || self.names().next().is_some()
    }

    /// Every field named.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let named = self.key.iter().chain(&self.time).chain(&self.change).chain(&self.rank);
        named.map(String::as_str)
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("format", &self.format)
            .field("key", &self.key)
            .field("time", &self.time)
            .finish_non_exhaustive()
    }
}

/// The format of one input and where its fields are.
pub struct Schema {
    pub(crate) format: Format,
    pub(crate) layout: Layout,
    pub(crate) wanted: Wanted,
    pub(crate) max_line: usize,
    pub(crate) max_document: usize,
    pub(crate) digester: Digester,
    pub(crate) read_time: ReadTime,
    /// Reads keys that are numbers.
    pub(crate) numbers: Option<NumberReader>,
}

/// What the first bytes of an input tell.
pub(crate) enum Resolved {
    Schema(Box<Schema>),
    /// Nothing yet: more bytes are needed.
    More,
}

impl Schema {
    /// Resolves the format from the first bytes of an input; `ended` when there are no more.
    pub(crate) fn resolve(options: &Options, head: &[u8], ended: bool) -> Result<Resolved, String> {
        let Some(format) = sniff::format(options, head, ended) else { return Ok(Resolved::More) };
        let Some(shape) = sniff::shape(format, options, head, ended)? else {
            return Ok(Resolved::More);
        };
        let (layout, wanted) = shape.resolve(format, options)?;
        Ok(Resolved::Schema(Box::new(Self::of(format, layout, wanted, options))))
    }

    pub(crate) fn of(format: Format, layout: Layout, wanted: Wanted, options: &Options) -> Self {
        Self {
            format,
            layout,
            wanted,
            max_line: options.max_line.clamp(1, 1 << 30),
            max_document: options.max_document.clamp(1, 1 << 30),
            digester: options.digester.clone(),
            read_time: Arc::clone(&options.read_time),
            numbers: options
                .numbers
                .map(|format| NumberReader::new(format, Arc::clone(&options.read_time))),
        }
    }

    /// Raw lines: for an input that broke off before its format could be told.
    pub(crate) fn raw(options: &Options) -> Self {
        Self::of(Format::Lines, Layout::Lines, Wanted::default(), options)
    }

    /// The format found; never [`Format::Auto`].
    pub fn format(&self) -> Format {
        self.format
    }

    /// How a record of this format is marked with its class.
    pub fn mark(&self) -> Mark {
        match &self.layout {
            Layout::Lines => Mark::Column(b'\t'),
            Layout::Columns => Mark::Column(b' '),
            Layout::Delimited(table) => Mark::Column(table.separator),
            Layout::Json(_) => Mark::Member,
        }
    }

    /// The field the time is read from; `None` when records carry none.
    pub fn time_field(&self) -> Option<&str> {
        self.wanted.time.as_ref().map(|field| field.name.as_str())
    }

    /// The key fields, [`WHOLE_RECORD`] among them if it is one.
    pub fn key_fields(&self) -> impl Iterator<Item = &str> {
        self.wanted.key.iter().map(|field| field.name.as_str())
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema")
            .field("format", &self.format)
            .field("layout", &self.layout)
            .field("wanted", &self.wanted)
            .finish_non_exhaustive()
    }
}
