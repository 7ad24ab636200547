//! For tests of snapshots: their bodies, whole and damaged.

use crate::SnapshotError;
use crate::snapshot::{Reader, Writer};
use alloc::vec::Vec;

/// What is written, without the envelope.
pub(crate) fn written(write: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut out = Writer::new(0);
    write(&mut out);
    let bytes = out.finish();
    bytes[20..bytes.len() - 8].to_vec()
}

/// Reads a body to its end, in an envelope whose length and checksum fit.
pub(crate) fn read<T>(
    body: &[u8],
    read: impl FnOnce(&mut Reader<'_>) -> Result<T, SnapshotError>,
) -> Result<T, SnapshotError> {
    let mut out = Writer::new(body.len());
    body.iter().for_each(|&byte| out.u8(byte));
    let bytes = out.finish();
    let mut input = Reader::open(&bytes)?;
    let filter = read(&mut input)?;
    input.finish().map(|()| filter)
}
