//! The one envelope around everything that is saved, written and read as a stream.
//!
//! | bytes | field |
//! |---|---|
//! | 8 | the format's magic |
//! | 2 | its version |
//! | 1 | its kind, 0 where it has only one |
//! | 1 | 0 |
//! | 8 | length of the body |
//! | length | body |
//! | 8 | XXH3-64 of everything before |
//!
//! All numbers are little-endian. Filters, state files, index files and saved roles of the edge are bodies in
//! this envelope, each with a [`Format`] of its own; an envelope may lie in the body of another. The layouts are
//! written down in `docs/format.md`.
//!
//! Nothing is held in memory twice. Writing hands the bytes to a sink a block at a time, and the length comes from
//! a first pass that only counts. Reading takes bytes from a source as they are needed, allocates what the bytes
//! that are there can back up, and checks the sum at the end: a damaged body is never returned.
//!
//! The crate has no I/O, so sinks and sources are closures, and whatever error they return comes back unchanged:
//!
//! ```
//! use lately::codec::{self, Format};
//! use lately::SnapshotError;
//! use std::io::{Read, Write};
//!
//! const NOTES: Format = Format::new(*b"\x89NOTES\r\n", 1);
//!
//! let mut file: Vec<u8> = Vec::new();
//! codec::write(NOTES, |bytes| file.write_all(bytes), |out| {
//!     out.u64(7);
//!     out.block(b"seven");
//! })?;
//!
//! let (len, mut source) = (file.len() as u64, &file[..]);
//! let (number, name) = codec::read(NOTES, len, |into| source.read(into), |input| {
//!     Ok::<_, SnapshotError>((input.u64()?, input.block()?))
//! })?;
//! assert_eq!((number, &name[..]), (7, &b"seven"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod reader;
mod writer;

pub use reader::{Reader, from_slice, read, read_unframed};
pub use writer::{Writer, length, to_vec, write};

/// Magic and version.
const NAME: usize = 10;
/// Magic, version, kind, a byte that is 0, and the length of the body.
const HEADER: usize = 20;
const CHECKSUM: usize = 8;
/// Bytes of an envelope around its body.
const FRAME: u64 = (HEADER + CHECKSUM) as u64;

/// Bytes that are handed to a sink, or asked of a source, at a time.
const BLOCK: usize = 1 << 16;

/// What an envelope holds: by which bytes it is recognised, and which versions of its body are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    magic: [u8; 8],
    kind: u8,
    oldest: u16,
    pub(crate) version: u16,
}

impl Format {
    /// A format whose bodies are written in this version, the only one that is read.
    ///
    /// A magic with its high bit set and with line ends shows transfers that mangle text.
    pub const fn new(magic: [u8; 8], version: u16) -> Self {
        Self { magic, kind: 0, oldest: version, version }
    }

    /// The same, for one of several things that share a magic.
    #[must_use]
    pub const fn kind(self, kind: u8) -> Self {
        Self { kind, ..self }
    }

    /// The same, reading versions from this one on. [`Reader::version`] says which it is.
    #[must_use]
    pub const fn since(self, oldest: u16) -> Self {
        Self { oldest, ..self }
    }

    /// Does a file that begins with these bytes begin like this format? It may still be of another version
    /// or kind, or damaged.
    pub fn begins(self, bytes: &[u8]) -> bool {
        bytes.starts_with(&self.magic)
    }

    /// The version behind this magic, if the bytes reach that far.
    pub fn version_in(self, bytes: &[u8]) -> Option<u16> {
        match bytes.strip_prefix(&self.magic)? {
            [low, high, ..] => Some(u16::from_le_bytes([*low, *high])),
            _ => None,
        }
    }
}
