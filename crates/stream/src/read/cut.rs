//! Where in a buffer the last complete record ends.

use crate::format::Layout;
use crate::format::table::{self, Scan};
use crate::options::Schema;
use crate::scan::document::{self, Next, Pending};
use memchr::{memchr, memmem, memrchr};

/// What can be cut off the front of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// So many bytes of complete records; more than none.
    Records(usize),
    /// It begins with a line that is already too long.
    Overlong,
    /// More bytes are needed.
    Nothing,
}

/// Cuts one input.
#[derive(Debug, Default)]
pub(super) struct Cutter {
    /// The document that the buffer begins with, as far as it is known.
    pending: Pending,
    spans: Vec<table::Span>,
}

impl Cutter {
    /// Cuts `bytes`, of which the first `examined` hold no complete record; `ended` when no more
    /// will follow.
    pub(super) fn cut(
        &mut self,
        schema: &Schema,
        bytes: &[u8],
        examined: usize,
        ended: bool,
    ) -> Cut {
        let (end, limit) = match &schema.layout {
            _ if ended && !bytes.is_empty() => return Cut::Records(bytes.len()),
            Layout::Json(json) if json.documents => {
                (self.documents(bytes, schema.max_document), schema.max_document)
            }
            Layout::Delimited(table) if table.quoted && memchr(b'"', bytes).is_some() => {
                (self.quoted(bytes, table.separator, schema.max_line), schema.max_line)
            }
            _ => {
                let end = memrchr(b'\n', &bytes[examined..]).map_or(0, |at| examined + at + 1);
                (end, schema.max_line)
            }
        };
        if end > 0 {
            Cut::Records(end)
        // One more for a carriage return that may belong to the line end.
        } else if bytes.len() >= limit + 2 && memchr(b'\n', &bytes[..limit + 2]).is_none() {
            self.pending = Pending::default();
            Cut::Overlong
        } else {
            Cut::Nothing
        }
    }

    fn quoted(&mut self, bytes: &[u8], separator: u8, max: usize) -> usize {
        let mut end = 0;
        while end < bytes.len() {
            self.spans.clear();
            match table::record(bytes, end, separator, max, false, &mut self.spans) {
                Scan::Whole(next) | Scan::Broken(next) => end = next,
                Scan::More => break,
            }
        }
        end
    }

    fn documents(&mut self, bytes: &[u8], max: usize) -> usize {
        let mut end = 0;
        loop {
            match document::next(bytes, end, max, false, &mut self.pending) {
                Next::Value { end: next, .. } | Next::Junk { end: next, .. } => {
                    end = next;
                    self.pending = Pending::default();
                }
                Next::Blank => return bytes.len(),
                // What comes next shall be what the buffer begins with.
                Next::More => return end + document::separators(&bytes[end..]),
            }
        }
    }
}

/// Where in a piece of a Zeek log a header begins that is not the one it begins with.
pub(super) fn second_header(bytes: &[u8]) -> Option<usize> {
    let mut start = 0;
    while let Some(b'#' | b'\r' | b'\n') = bytes.get(start) {
        start += memchr(b'\n', &bytes[start..])? + 1;
    }
    let rest = &bytes[start..];
    let find = |name: &str| memmem::find(rest, name.as_bytes());
    let at = match (find("\n#separator"), find("\n#fields")) {
        (Some(a), Some(b)) => a.min(b),
        (a, b) => a.or(b)?,
    };
    Some(start + at + 1)
}
