//! How inputs are read, as data: what the flags of the program and the arguments of a binding have in
//! common.

use super::Reading;
use crate::options::{Format, KeyRegex, Options, WHOLE_RECORD};
use crate::stamp::{StampParser, TimeFormat, Zone, read_time};
use lately::Digester;
use std::fmt;

/// The zone of times that state none, when nothing is said.
pub const DEFAULT_ZONE: &str = "UTC";

/// The longest JSON document over several lines when nothing is said: 16 MiB.
const MAX_DOCUMENT: u64 = 16 << 20;

/// The longest record when nothing is said: 1 MiB.
const MAX_LINE: u64 = 1 << 20;

/// How inputs are read: their format, and where key and time are.
///
/// # Example
/// ```
/// use lately::Digester;
/// use lately_stream::session::InputSpec;
/// let input = InputSpec { key: vec!["epc".into()], time: vec!["timestamp".into()], ..InputSpec::default() };
/// assert!(input.may_bring_times(true));
/// assert_eq!(input.options(Digester::new(0), true)?.key, ["epc"]);
///
/// let wrong = InputSpec { records: Some("/Records".into()), delimiter: Some(b';'), ..input };
/// let error = wrong.options(Digester::new(0), true).err().ok_or("no error")?;
/// assert_eq!(error.to_string(), "records: a JSON document has no --delimiter");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct InputSpec {
    /// The key fields, as in [`Options::key`].
    pub key: Vec<String>,
    /// What finds the key in its field, or in the whole record.
    pub key_regex: Option<KeyRegex>,
    /// The time field; the texts of several are joined by blanks.
    pub time: Vec<String>,
    /// How times are written.
    pub time_format: TimeFormat,
    /// The zone of times that state none, by its name.
    pub time_zone: String,
    /// The format.
    pub format: Format,
    /// Inputs are merged by the times of their records.
    pub merge: bool,
    /// CSV and TSV inputs have no header line.
    pub no_header: bool,
    /// What separates the columns of CSV.
    pub delimiter: Option<u8>,
    /// Where in a JSON document the list of records is.
    pub records: Option<String>,
    /// Records end with NUL.
    pub null: bool,
    /// The longest JSON document over several lines, in bytes.
    pub max_document: u64,
    /// The longest record, in bytes.
    pub max_line: u64,
}

impl Default for InputSpec {
    fn default() -> Self {
        Self {
            key: Vec::new(),
            key_regex: None,
            time: Vec::new(),
            time_format: TimeFormat::Auto,
            time_zone: DEFAULT_ZONE.into(),
            format: Format::Auto,
            merge: false,
            no_header: false,
            delimiter: None,
            records: None,
            null: false,
            max_document: MAX_DOCUMENT,
            max_line: MAX_LINE,
        }
    }
}

/// Terms of an [`InputSpec`] that do not go together: which one is at fault, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError {
    /// The name of the term.
    pub term: &'static str,
    /// What is wrong, and what would help.
    pub reason: String,
}

impl InputError {
    fn new(term: &'static str, reason: impl Into<String>) -> Self {
        Self { term, reason: reason.into() }
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.term, self.reason)
    }
}

impl std::error::Error for InputError {}

impl InputSpec {
    /// Refuses what does not go together.
    fn check(&self) -> Result<(), InputError> {
        let refuse = |term, reason: &str| Err(InputError::new(term, reason));
        let (auto, csv) = (self.format == Format::Auto, self.format.is_csv());
        if self.delimiter.is_some() && !(auto || csv) {
            return refuse(
                "delimiter",
                "only CSV has one; leave --format out, or say --format csv",
            );
        }
        if self.records.is_some() && !(auto || self.format == Format::Json) {
            return refuse("records", "only a JSON document has a list; say --format json");
        }
        if self.delimiter.is_some() && self.records.is_some() {
            return refuse("records", "a JSON document has no --delimiter");
        }
        if let (Some(_), [_, second, ..]) = (&self.key_regex, &*self.key) {
            return refuse(
                "key-regex",
                &format!(
                    "it is for one field, and `{second}` is a second one; its groups are the parts of the key"
                ),
            );
        }
        let others = self.delimiter.is_some() || self.records.is_some() || self.no_header;
        if self.null && (others || !(auto || self.format == Format::Lines)) {
            return refuse(
                "null",
                "records that end with NUL are taken as lines are, in no other format",
            );
        }
        if self.null && self.key.iter().any(|name| name != WHOLE_RECORD) {
            return refuse(
                "null",
                "records that end with NUL have no fields; --key-regex takes a part of one",
            );
        }
        Ok(())
    }

    /// What is wanted of the records, except how keys are read. `timed` says that a time is.
    ///
    /// # Errors
    /// [`InputError`] for terms that do not go together, and a zone or a format of times that is none.
    pub fn options(&self, digester: Digester, timed: bool) -> Result<Options, InputError> {
        self.check()?;
        let zone: Zone =
            self.time_zone.parse().map_err(|error: crate::stamp::TimeOptionError| {
                InputError::new("time-zone", error.to_string())
            })?;
        let stamps = StampParser::new(self.time_format.clone(), zone)
            .map_err(|error| InputError::new("time-format", error.to_string()))?;
        let mut options = Options::new(digester, read_time(stamps));
        options.format = self.format;
        options.time_wanted = timed;
        options.fields_wanted = self.format != Format::Auto;
        options.key.clone_from(&self.key);
        options.key_regex.clone_from(&self.key_regex);
        options.time.clone_from(&self.time);
        options.no_header = self.no_header;
        options.merge = self.merge;
        if self.merge && !options.is_timed() {
            return Err(InputError::new("merge", "name the time to merge by with --time"));
        }
        options.delimiter = self.delimiter;
        options.records.clone_from(&self.records);
        options.null = self.null;
        options.max_document = usize::try_from(self.max_document).unwrap_or(usize::MAX);
        options.max_line = usize::try_from(self.max_line).unwrap_or(usize::MAX);
        Ok(options)
    }

    /// Is the field of a time named?
    pub fn is_timed(&self) -> bool {
        !self.time.is_empty()
    }

    /// May records bring times: by a field that is named or, where the window is one of time (`within`), by
    /// their format?
    pub fn may_bring_times(&self, within: bool) -> bool {
        self.is_timed() || within && self.format.may_bring_times()
    }

    /// How keys and times are read, for the identity of a state; `form` is how keys are read.
    pub fn reading(&self, form: &str) -> Reading {
        let mut reading = Reading::new().with("key", self.key.iter().map(String::as_str));
        let mut set = |name: &str, value: String| {
            reading = std::mem::take(&mut reading).with(name, [value]);
        };
        if self.format != Format::Auto {
            set("format", self.format.to_string());
        }
        if form != "text" {
            set("key-format", form.into());
        }
        if let Some(regex) = &self.key_regex {
            set("key-regex", regex.to_string());
        }
        // By event time or by arrival: times of the one mean nothing to the other.
        if !self.time.is_empty() {
            set("time", self.time.join(","));
        }
        if !matches!(self.time_format, TimeFormat::Auto) {
            set("time-format", self.time_format.to_string());
        }
        if self.time_zone != DEFAULT_ZONE {
            set("time-zone", self.time_zone.clone());
        }
        if self.no_header {
            set("no-header", "true".into());
        }
        if let Some(delimiter) = self.delimiter {
            set("delimiter", char::from(delimiter).into());
        }
        if let Some(records) = &self.records {
            set("records", records.clone());
        }
        if self.null {
            set("null", "true".into());
        }
        reading
    }
}
