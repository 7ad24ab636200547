//! Where in a buffer the last complete record ends.

use crate::format::layout::Progress;
use crate::schema::Schema;
use memchr::memchr;

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
    progress: Progress,
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
        if ended && !bytes.is_empty() {
            return Cut::Records(bytes.len());
        }
        let end = schema.layout.cut(bytes, examined, &mut self.progress);
        let (limit, line_end) = (schema.layout.longest(), schema.layout.line_end());
        if end > 0 {
            self.progress.is_begun = true;
            Cut::Records(end)
        // One more for a carriage return that may belong to the line end.
        } else if bytes.len() >= limit + 2 && memchr(line_end, &bytes[..limit + 2]).is_none() {
            self.progress = Progress { is_begun: true, ..Progress::default() };
            Cut::Overlong
        } else {
            Cut::Nothing
        }
    }
}
