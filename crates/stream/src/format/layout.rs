//! The seam between one format and the rest: what a format says of itself, and of one input.

use super::emit::Emit;
use super::head::{Head, Signs};
use super::profile::Profile;
use crate::record::{Heading, Mark};
use crate::scan::canonical::Workspace;
use crate::scan::delimited::Cell;
use crate::scan::document::Pending;
use crate::scan::json::Piece;
use std::cell::RefCell;
use std::fmt;

/// The layout of an input, by its beginning. `Ok(None)`: more bytes are needed.
pub(crate) type Opened = Result<Option<Box<dyn Layout>>, String>;

/// A format: a constant in the file that is named after it.
#[derive(Debug)]
pub(crate) struct Description {
    /// How it is recognised where no format is named.
    pub(crate) signs: Signs,
    /// Reads the beginning of an input, the header above all.
    pub(crate) open: fn(&Head<'_>) -> Opened,
    /// The key where no field is named; none: the whole record.
    pub(crate) key: &'static [&'static str],
    /// The time where no field is named but a time is wanted; the texts of several fields are joined
    /// by blanks. Unless it is a field of the profile, an input may lack it.
    pub(crate) time: &'static [&'static str],
    /// Names that this format has in common with others.
    pub(crate) profile: Option<&'static Profile>,
    /// A small input, and a field in it: for tests of what all formats have in common.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the tests"))]
    pub(crate) sample: (&'static str, &'static str),
}

/// Where the fields of records are.
pub(crate) trait Places {
    /// Where records have the field of this name, or those of the format's `own` names for it, of
    /// which the first that is there counts; nowhere: missing from every record.
    ///
    /// # Errors
    /// It is known that no record has it: what fields there are.
    fn find(&mut self, name: &str, own: &[&str]) -> Result<Vec<usize>, String>;

    /// Where a field may be instead that is not where its name says, and under which name.
    fn hint(&mut self, _name: &str) -> Option<(usize, String)> {
        None
    }

    /// How many columns records have: `None` where they have none, or any number.
    fn width(&self) -> Option<usize> {
        None
    }

    /// Are fields columns, which have numbers?
    fn is_table(&self) -> bool {
        false
    }
}

/// How the bytes of one input become records. It is made from the beginning of the input and then
/// only read, so that any number of threads can parse with it.
///
/// A call through this trait handles a whole chunk; what is done for each record is static.
pub(crate) trait Layout: Places + fmt::Debug + Send + Sync {
    /// What the last byte of a line is.
    fn line_end(&self) -> u8 {
        b'\n'
    }

    /// The longest record in bytes, its line end not counted.
    fn longest(&self) -> usize;

    /// Where the last complete record in `bytes` ends, of which the first `examined` hold none; 0 if
    /// there is none. More bytes may follow.
    fn cut(&self, bytes: &[u8], examined: usize, _progress: &mut Progress) -> usize {
        memchr::memrchr(b'\n', &bytes[examined..]).map_or(0, |at| examined + at + 1)
    }

    /// Finds the records in a chunk that was cut with [`Self::cut`], or is the last one. `header`
    /// says that it is the first one, of an input for which [`Self::has_header`] is true.
    fn parse(&self, bytes: &[u8], header: bool, buffers: &mut Buffers, emit: &mut Emit<'_>);

    /// How a record is marked with its class.
    fn mark(&self) -> Mark;

    /// Whether the input begins with a header line, or with other lines that are no records.
    fn has_header(&self) -> bool {
        false
    }

    /// The names of the columns, by the header line that the input begins with.
    fn columns(&self) -> Option<&[String]> {
        None
    }

    /// Asides that name or type the columns.
    fn headings(&self) -> &'static [Heading] {
        &[]
    }

    /// Whether records can be read without what precedes them. Where an input breaks off with an
    /// error before its format is settled, half a header is of no use, and whole values are.
    fn stands_alone(&self) -> bool {
        false
    }

    /// The layout from here on, if `bytes` begin with another header in mid-stream.
    fn renewed(&self, _bytes: &[u8]) -> Option<Box<dyn Layout>> {
        None
    }

    /// Where in `bytes` a header begins that is not the one they begin with.
    fn next_header(&self, _bytes: &[u8]) -> Option<usize> {
        None
    }
}

/// What is remembered of a buffer that was cut without success.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The document that the buffer begins with, as far as it is known.
    pub(crate) pending: Pending,
    pub(crate) cells: Vec<Cell>,
    /// The beginning of the input has been cut off.
    pub(crate) is_begun: bool,
}

/// Buffers used again from chunk to chunk.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    pub(crate) cells: Vec<Cell>,
    pub(crate) found: Vec<Option<Piece>>,
    /// For JSON in canonical form.
    pub(crate) work: RefCell<Workspace>,
    /// A whole record as a key.
    pub(crate) key: Vec<u8>,
}
