//! Messages as bytes. The layout is written down in `docs/edge.md`.
//!
//! Our own compact form: `minicbor`, which would fit, has a licence that this project does not take
//! (BlueOak-1.0.0), and `ciborium` takes memory as the message says. All numbers are varints or of fixed
//! width, little endian; each message has one form only.

mod decode;
mod encode;

use core::fmt;

/// The first byte of every message.
pub const MAGIC: u8 = 0xED;
/// The version that this build writes and reads.
pub const VERSION: u8 = 1;
/// The longest message in bytes. Longer ones are refused unread.
pub const MAX_MESSAGE: usize = 1 << 16;

pub(crate) use decode::Reader;
pub use decode::decode;
pub(crate) use encode::Writer;
pub use encode::encode;

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WireError {
    /// They do not begin as a message does.
    Foreign,
    /// A version that this build does not know.
    Version(u8),
    /// A kind that this version does not have.
    Kind(u8),
    /// More than [`MAX_MESSAGE`] bytes.
    TooLong,
    /// They end too soon, or go on after the end.
    Length,
    /// A field has a value that it cannot have.
    Field(&'static str),
}

impl WireError {
    /// A short name, to count by.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Foreign => "foreign",
            Self::Version(_) => "version",
            Self::Kind(_) => "kind",
            Self::TooLong => "too-long",
            Self::Length => "length",
            Self::Field(_) => "field",
        }
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => f.write_str("not a message of lately"),
            Self::Version(found) => {
                write!(f, "a message of version {found}, but this build reads version {VERSION}")
            }
            Self::Kind(found) => write!(f, "no message has the kind {found}"),
            Self::TooLong => write!(f, "a message of more than {MAX_MESSAGE} bytes"),
            Self::Length => f.write_str("a message that is truncated, or has bytes after its end"),
            Self::Field(what) => write!(f, "a message with {what}"),
        }
    }
}

impl core::error::Error for WireError {}
