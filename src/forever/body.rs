//! For tests of snapshots: their bodies, whole and damaged.

use crate::SnapshotError;
use crate::codec::{self, Format, Reader, Writer};
use alloc::vec::Vec;

const BODY: Format = Format::new(*b"\x89body\r\n\x1a", 1);

/// What is written, without the envelope.
pub(crate) fn written(write: impl Fn(&mut Writer<'_>)) -> Vec<u8> {
    let bytes = codec::to_vec(BODY, write);
    bytes[20..bytes.len() - 8].to_vec()
}

/// Reads a body to its end, in an envelope whose length and checksum fit.
pub(crate) fn read<T>(
    body: &[u8],
    read: impl FnOnce(&mut Reader<'_>) -> Result<T, SnapshotError>,
) -> Result<T, SnapshotError> {
    codec::from_slice(BODY, &codec::to_vec(BODY, |out| out.bytes(body)), read)
}
