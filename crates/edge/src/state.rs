//! Saved roles, in the envelope of [`lately::codec`]. The layout of the body is in `docs/edge.md`.

use crate::wire::WireError;
use alloc::vec::Vec;
use core::fmt;
use lately::SnapshotError;
use lately::codec::{self, Format};

const MAGIC: [u8; 8] = *b"\x89EDGE\r\n\x1a";
/// The newest that this build writes: a host's.
const VERSION: u16 = 3;
/// What it reads as well.
pub(crate) const VERSION_1: u16 = 1;
/// And this: a coordinator's, and a host's without `since`.
pub(crate) const VERSION_2: u16 = 2;

/// Whose state it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Host = 1,
    Coordinator = 2,
}

impl Role {
    const fn version(self) -> u16 {
        match self {
            Self::Host => VERSION,
            Self::Coordinator => VERSION_2,
        }
    }
}

/// Why bytes are no state that can be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StateError {
    /// They do not begin as a saved role of this kind does.
    Foreign,
    /// A version that this build does not know.
    Version(u16),
    /// They are shorter or longer than the header says.
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
                "a state of format version {found}, but this build reads versions up to {VERSION}"
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

impl From<SnapshotError> for StateError {
    fn from(error: SnapshotError) -> Self {
        match error {
            SnapshotError::Version { found, .. } => Self::Version(found),
            SnapshotError::Length { .. } => Self::Length,
            SnapshotError::Checksum => Self::Checksum,
            _ => Self::Foreign,
        }
    }
}

/// A body in its envelope.
pub(crate) fn seal(role: Role, body: &[u8]) -> Vec<u8> {
    seal_as(role, role.version(), body)
}

/// The same with another version.
pub(crate) fn seal_as(role: Role, version: u16, body: &[u8]) -> Vec<u8> {
    codec::to_vec(Format::new(MAGIC, version).kind(role as u8), |out| out.bytes(body))
}

/// The version and the body, undamaged.
pub(crate) fn open(role: Role, bytes: &[u8]) -> Result<(u16, Vec<u8>), StateError> {
    let body = |version| {
        codec::from_slice(Format::new(MAGIC, version).kind(role as u8), bytes, |input| {
            Ok(input.bytes(usize::try_from(input.left()).ok())?)
        })
    };
    let newest = role.version();
    match body(newest) {
        Err(StateError::Version(old)) if (VERSION_1..newest).contains(&old) => {
            Ok((old, body(old)?))
        }
        read => Ok((newest, read?)),
    }
}
