//! What is asked of a run: the format, the fields, the limits.

pub use crate::format::Format;
use crate::record::number::NumberFormat;
pub use crate::record::stamp::{ReadTime, read_time};
pub use crate::record::{ALL_FIELDS, KeyFormat, KeyRegex, WHOLE_RECORD};
use lately::Digester;
use std::fmt;

/// What is wanted of the records of all inputs.
#[derive(Clone)]
pub struct Options {
    /// The format, or [`Format::Auto`].
    pub format: Format,
    /// For [`Format::Auto`]: the run needs to understand the records (a window in time, a profile)
    /// although no field is named. Naming any field implies it.
    pub fields_wanted: bool,
    /// The key fields. A CSV column by its exact name (of several the first); a JSON member of the outermost object by its
    /// exact name, dots included, or a JSON pointer (`/foo/bar`); a column by its number, unless there
    /// is one of that name; several by theirs (`2-4`, `6-`); [`WHOLE_RECORD`]; [`ALL_FIELDS`], and then
    /// those that are left out (`-ts`). None: the profile's key, else the whole record.
    pub key: Vec<String>,
    /// Fields that divide keys further: they follow the key fields, named or not.
    pub by: Vec<String>,
    /// The texts of the key fields, and of `place`, are kept, for runs that write in words of their own.
    /// With no `rank` or `place` named, the signal strength and the antenna of the profile are taken,
    /// where the format has them.
    pub texts: bool,
    /// The field that says where a record was made.
    pub place: Option<String>,
    /// How key fields become the key.
    pub key_format: KeyFormat,
    /// Keys are compared without regard to case.
    pub fold_case: bool,
    /// The key is what the groups of this match in the only key field, or in the whole record.
    pub key_regex: Option<KeyRegex>,
    /// What separates the columns of CSV.
    pub delimiter: Option<u8>,
    /// Where in a JSON document the list is whose elements are the records: a JSON pointer.
    pub records: Option<String>,
    /// Records are lines that end with NUL.
    pub null: bool,
    /// The key, of one field, is a number of this format instead: see
    /// [`Record::number`](crate::record::Record::number).
    pub numbers: Option<NumberFormat>,
    /// The time field; several, such as a date and a time of day, are read as one text, joined by
    /// blanks. None: see [`Self::time_wanted`].
    pub time: Vec<String>,
    /// A time is wanted: with no time field named, the one that the format brings is taken, if it brings one.
    pub time_wanted: bool,
    /// Fields whose change lets a record pass.
    pub change: Vec<String>,
    /// Fields whose number lets a record pass when it has changed by more than a dead band.
    pub bands: Vec<String>,
    /// The field whose number, or time, ranks duplicates.
    pub rank: Option<String>,
    /// The fields that name the source of a record, where each source has a clock of its own.
    pub source: Vec<String>,
    /// A record whose time is missing or cannot be read is a dead letter; else it is judged by when it
    /// arrives.
    pub drop_untimed: bool,
    /// CSV and TSV inputs have no header line; fields are named by number from 1.
    pub no_header: bool,
    /// Inputs are not read one after another, but merged by the times of their records.
    pub merge: bool,
    /// Records come in messages of a broker: names that begin with `@` may be fields of what surrounds them
    /// ([`EnvelopeField`](crate::record::EnvelopeField)).
    pub messages: bool,
    /// What the input of messages is called.
    pub name: String,
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
            by: Vec::new(),
            texts: false,
            place: None,
            key_format: KeyFormat::Text,
            fold_case: false,
            key_regex: None,
            delimiter: None,
            records: None,
            null: false,
            numbers: None,
            time: Vec::new(),
            time_wanted: false,
            change: Vec::new(),
            bands: Vec::new(),
            rank: None,
            source: Vec::new(),
            drop_untimed: false,
            no_header: false,
            merge: false,
            messages: false,
            name: String::new(),
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

    /// The longest record and the longest document, within what a record can say of itself.
    pub(crate) fn limits(&self) -> (usize, usize) {
        (self.max_line.clamp(1, 1 << 30), self.max_document.clamp(1, 1 << 30))
    }

    /// Whether records may carry a time of their own.
    pub fn is_timed(&self) -> bool {
        self.time_wanted || !self.time.is_empty()
    }

    /// Every field named.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let named = self.key.iter().chain(&self.time).chain(&self.change);
        let named = named
            .chain(&self.rank)
            .chain(&self.source)
            .chain(&self.by)
            .chain(&self.place)
            .chain(&self.bands);
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
