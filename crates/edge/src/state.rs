//! Saved roles: versioned bytes with a checksum, as the library's snapshots are.
//!
//! `\x89EDGE\r\n\x1a`, version (2 bytes), role (1), 0 (1), length of the body (8), body, XXH3-64 of all
//! before (8). Little endian. The body's layout is in `docs/edge.md`.

use crate::wire::{Reader, WireError};
use alloc::vec::Vec;
use core::fmt;
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: [u8; 8] = *b"\x89EDGE\r\n\x1a";
const VERSION: u16 = 1;
const HEADER: usize = 20;
const CHECKSUM: usize = 8;

/// Whose state it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Host = 1,
    Coordinator = 2,
}

/// Why bytes are no state that can be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StateError {
    /// They do not begin as a saved role of this kind does.
    Foreign,
    /// A version that this build does not know.
    Version(u16),
    /// They end before what the header promises, or go on after it.
    Length,
    /// The bytes were damaged.
    Checksum,
    /// A field has a value that no state can have.
    Field(WireError),
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => f.write_str("not a saved state of this role"),
            Self::Version(found) => write!(
                f,
                "a state of format version {found}, but this build reads version {VERSION}"
            ),
            Self::Length => f.write_str("a state that is truncated, or has bytes after its end"),
            Self::Checksum => f.write_str("a damaged state: its checksum does not match"),
            Self::Field(error) => write!(f, "a damaged state: {error}"),
        }
    }
}

impl core::error::Error for StateError {}

impl From<WireError> for StateError {
    fn from(error: WireError) -> Self {
        Self::Field(error)
    }
}

/// A body with everything around it.
pub(crate) fn seal(role: Role, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + body.len() + CHECKSUM);
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&[role as u8, 0]);
    bytes.extend_from_slice(&(body.len() as u64).to_le_bytes());
    bytes.extend_from_slice(body);
    let sum = xxh3_64(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

/// The body, after all that can be known before it is looked at.
pub(crate) fn open(role: Role, bytes: &[u8]) -> Result<Reader<'_>, StateError> {
    let (header, rest) = bytes.split_first_chunk::<HEADER>().ok_or(StateError::Foreign)?;
    let [m0, m1, m2, m3, m4, m5, m6, m7, v0, v1, found, zero, length @ ..] = *header;
    if [m0, m1, m2, m3, m4, m5, m6, m7] != MAGIC {
        return Err(StateError::Foreign);
    }
    let version = u16::from_le_bytes([v0, v1]);
    if version != VERSION {
        return Err(StateError::Version(version));
    }
    if (found, zero) != (role as u8, 0) {
        return Err(StateError::Foreign);
    }
    let (body, sum) = rest.split_last_chunk::<CHECKSUM>().ok_or(StateError::Length)?;
    if u64::from_le_bytes(length) != body.len() as u64 {
        return Err(StateError::Length);
    }
    let summed = bytes.get(..HEADER + body.len()).unwrap_or_default();
    if xxh3_64(summed) != u64::from_le_bytes(*sum) {
        return Err(StateError::Checksum);
    }
    Ok(Reader::new(body))
}
