//! Snapshots that were tampered with, under a length and a checksum that are right.

use crate::support::Chance;
use core::ops::Range;
use xxhash_rust::xxh3::xxh3_64;

/// Where the body begins.
const HEADER: usize = 20;
/// Bytes behind the body.
const CHECKSUM: usize = 8;

/// The same with the length and the checksum that belong to it.
pub(crate) fn resummed(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.len() - CHECKSUM;
    let body = (end - HEADER) as u64;
    bytes[12..HEADER].copy_from_slice(&body.to_le_bytes());
    let sum = xxh3_64(&bytes[..end]);
    bytes[end..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// One byte, and eight, set to each of these values, at each of these places.
pub(crate) fn with_values(
    bytes: &[u8],
    places: Range<usize>,
    values: &[u64],
    mut each: impl FnMut(Vec<u8>),
) {
    for at in places {
        for value in values {
            for width in [1, 8].into_iter().filter(|width| at + width <= bytes.len() - CHECKSUM) {
                let mut crafted = bytes.to_vec();
                crafted[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
                each(resummed(crafted));
            }
        }
    }
}

/// Once in eight times a part is cut out of the body.
pub(crate) fn maybe_cut(crafted: &mut Vec<u8>, chance: &mut Chance) {
    if chance.below(8) == 0 {
        let body = crafted.len() - HEADER - CHECKSUM;
        let from = HEADER + chance.below(body as u64) as usize;
        let until = (from + chance.below(20) as usize).min(crafted.len() - CHECKSUM);
        crafted.drain(from..until);
    }
}
