//! The file of `lately index --state`.

use super::codec::{self, Reason, SavedIdentity};
use super::{StateError, differences};
use crate::judge::moment::SavedClock;
use crate::judge::timeline::Timeline;
use crate::number::NumberFormat;
use crate::read::Left;
use crate::session::{Difference, Identity, Span};
use lately::codec::Reader;
use lately::range::RangeWindow;
use std::io::{self, Write};
use std::path::Path;

pub(super) const MAGIC: [u8; 8] = *b"\x89LINDEX\n";

/// What the file is to be.
const NAME: &str = "an index of `lately index`";

/// An index as it was saved.
#[derive(Debug)]
pub struct SavedIndex {
    /// What decides which number a record has and how long it is remembered.
    pub identity: Identity,
    /// The same, as version 1 had it.
    text: Option<String>,
    /// How keys are read.
    pub format: NumberFormat,
    /// Where all its ticks lie.
    pub(crate) line: Timeline,
    /// The stream clock.
    pub(crate) clock: Option<SavedClock>,
    /// What was seen lately.
    pub window: RangeWindow,
    /// The part of a record that was left in a pipe.
    pub left: Option<Left>,
}

/// What [`write`] writes; see [`SavedIndex`].
#[derive(Clone, Debug)]
pub(crate) struct Parts<'a> {
    pub identity: &'a Identity,
    pub format: NumberFormat,
    pub line: Timeline,
    pub clock: Option<SavedClock>,
    pub window: &'a RangeWindow,
    pub left: Option<&'a Left>,
}

/// The index in `path`; `None` when there is no such file. It is read as a stream: its bytes are never
/// in memory together with the window.
///
/// # Errors
/// [`StateError`] for a file that cannot be read, or is damaged.
pub fn load(path: &Path) -> Result<Option<SavedIndex>, StateError> {
    codec::load(path, MAGIC, NAME, SavedIndex::read)
}

impl SavedIndex {
    /// How it differs from what is asked for.
    pub fn differences(&self, asked: &Identity) -> Vec<Difference> {
        differences(&self.identity, self.text.as_deref(), asked)
    }

    /// An index from the bytes of a file.
    ///
    /// # Errors
    /// What is wrong with them, in words.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        codec::from_bytes(bytes, MAGIC, NAME, Self::read)
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Reason> {
        let SavedIdentity { reading, changes, text } = codec::read_identity(input)?;
        let format = input.text()?.parse()?;
        let (line, clock) = codec::read_clock(input)?;
        let window = codec::read_snapshot(input, RangeWindow::read)?;
        let left = codec::read_left(input)?;
        let identity = Identity {
            reading,
            span: Span::of(window.window()),
            renewal: None,
            seed: window.plan().seed(),
            changes,
        };
        Ok(Self { identity, text, format, line, clock, window, left })
    }
}

/// Writes an index of these parts.
///
/// # Errors
/// Those of `file`.
pub(crate) fn write(parts: &Parts<'_>, file: &mut dyn Write) -> io::Result<()> {
    codec::write(MAGIC, parts.left, file, |out| {
        codec::write_identity(parts.identity, out);
        out.block(parts.format.to_string().as_bytes());
        codec::write_clock(parts.line, parts.clock.as_ref(), out);
        parts.window.write(out);
    })
}
