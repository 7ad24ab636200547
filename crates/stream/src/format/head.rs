//! What a format gets to see of an input before its records are read.

use crate::record::{ALL_FIELDS, WHOLE_RECORD};

/// The beginning of an input, and what was asked for that decides how to look at it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head<'a> {
    /// The first bytes, without a byte order mark.
    pub(crate) bytes: &'a [u8],
    /// No more bytes will follow.
    pub(crate) ended: bool,
    /// The fields that are named.
    pub(crate) names: &'a [&'a str],
    /// The run needs to understand the records, although perhaps no field is named.
    pub(crate) fields_wanted: bool,
    /// CSV and TSV inputs have no header line.
    pub(crate) no_header: bool,
    /// What separates the columns of CSV, if that was said.
    pub(crate) delimiter: Option<u8>,
    /// Where in a JSON document the list of records is.
    pub(crate) records: Option<&'a str>,
    /// Records end with NUL.
    pub(crate) null: bool,
    /// The longest record in bytes, its line end not counted.
    pub(crate) max_line: usize,
    /// The longest JSON document in bytes.
    pub(crate) max_document: usize,
}

impl Head<'_> {
    /// Whether fields matter, and not only a time that a format brings by itself.
    pub(crate) fn wants_fields(&self) -> bool {
        self.fields_wanted || !self.names.is_empty()
    }

    /// The fields that are named by what they are called: no numbers of columns, and nothing that
    /// stands for several.
    pub(crate) fn called(&self) -> impl Iterator<Item = &str> {
        let is_called = |name: &&str| {
            let is_number = name.bytes().all(|c| c.is_ascii_digit() || c == b'-');
            *name != WHOLE_RECORD && *name != ALL_FIELDS && !is_number
        };
        let names = self.names.iter().copied().filter(is_called);
        let left_out = self.names.contains(&ALL_FIELDS);
        names.map(move |name| if left_out { name.strip_prefix('-').unwrap_or(name) } else { name })
    }
}

/// How a format is recognised.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Signs {
    /// By its name alone.
    None,
    /// By the members of the first JSON value, or of the first element of an array: all members of
    /// one of these sets, as pointers.
    Members(&'static [&'static [&'static str]]),
    /// By the kind of the first JSON value: whether it is an array, or may run over several lines.
    Value(fn(Kind) -> bool),
    /// By the first line that is not blank, which is not JSON. `None`: more bytes are needed.
    Line(fn(&[u8], &Head<'_>) -> Option<bool>),
    /// The same, by the first line that is no comment either.
    Row(fn(&[u8], &Head<'_>) -> Option<bool>),
}

/// What kind of JSON value an input begins with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) is_array: bool,
    /// Values may run over several lines, or share one.
    pub(crate) documents: bool,
}
