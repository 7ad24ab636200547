//! Keys that are byte strings, as whole numbers in the same order.

use core::ops::RangeInclusive;

/// Bytes of a key that its number tells.
const TOLD: usize = 16;

/// The first 16 bytes of a key as a whole number, big-endian; a shorter key is filled up with zeros.
///
/// # Guarantee
/// Keeps the order: of two keys the lesser never has the greater number. Keys that agree in their first
/// 16 bytes have one number, and so has a key with those that only zeros set apart from it: of them
/// a window says "perhaps" where one was seen.
///
/// # Example
/// ```
/// use lately::range::number_of;
/// assert!(number_of(b"urn:epc:1") < number_of(b"urn:epc:2"));
/// assert_eq!(number_of(b"ab"), 0x6162 << 112);
/// ```
pub const fn number_of(key: &[u8]) -> u128 {
    let (mut number, mut at) = (0, 0);
    while at < TOLD {
        // No iterator in a constant function.
        let byte = if at < key.len() { key[at] } else { 0 };
        number = number << 8 | byte as u128;
        at += 1;
    }
    number
}

/// The numbers of all keys from one to another, both included: an interval to ask a window for.
///
/// Never leaves one out; the keys that share a number with an end are in it as well.
///
/// # Example
/// ```
/// use lately::range::{between, number_of};
/// let keys = between(b"apple", b"cherry");
/// assert!(keys.contains(&number_of(b"banana")));
/// assert!(!keys.contains(&number_of(b"date")));
/// ```
pub const fn between(first: &[u8], last: &[u8]) -> RangeInclusive<u128> {
    number_of(first)..=number_of(last)
}

/// The numbers of all keys that begin with these bytes. Of a longer beginning than 16 bytes the first
/// 16 count.
///
/// # Example
/// ```
/// use lately::range::{beginning_with, number_of};
/// let keys = beginning_with(b"10.1.");
/// assert!(keys.contains(&number_of(b"10.1.0.7")) && !keys.contains(&number_of(b"10.2.0.7")));
/// assert_eq!(beginning_with(b""), 0..=u128::MAX);
/// ```
pub const fn beginning_with(prefix: &[u8]) -> RangeInclusive<u128> {
    let first = number_of(prefix);
    let told = if prefix.len() < TOLD { prefix.len() } else { TOLD };
    let rest = if told == 0 {
        u128::MAX
    } else if told == TOLD {
        0
    } else {
        u128::MAX >> (8 * told)
    };
    first..=first | rest
}
