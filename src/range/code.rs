//! The hash that keeps neighbours together.

use crate::Digester;

/// Keys to codes: `h(x) = (q(x div 2^s) + x mod 2^s) mod r`, where `q` is a hash to `0..r` and `2^s` is the
/// greatest power of two up to `r`.
///
/// Keys of one block of `2^s` never share a code; two of different blocks are as far apart as chance has
/// it. So an interval of `L` keys is one of `L` codes (or a few that add up to it, where it goes over the end of a
/// block or of all codes), and each other key's code falls into it with probability `L/r`, however
/// keys are distributed and wherever the interval is.
///
/// # Reference
/// M. Goswami, A. Grønlund, K. G. Larsen, R. Pagh, "Approximate range emptiness in constant time and
/// optimal space", SODA 2015, doi:10.1137/1.9781611973730.52; M. Costa, P. Ferragina, G. Vinciguerra,
/// "Grafite: taming adversarial queries with optimal range filters", SIGMOD 2024,
/// doi:10.1145/3639258.
///
/// # Differs from the papers
/// Blocks are of a power of two instead of `r` keys, so that a key of 128 bits is cut without a division.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Codes {
    /// `r`: how many codes there are.
    pub(super) count: u128,
    /// `s`.
    shift: u32,
    seed: u64,
}

impl Codes {
    /// So many codes: 1 to 2^126.
    pub(super) fn new(count: u128, seed: u64) -> Self {
        Self { count, shift: 127 - count.max(1).leading_zeros(), seed }
    }

    /// Where a block begins.
    #[inline]
    fn offset(&self, block: u128) -> u128 {
        let Self { count, seed, .. } = *self;
        let digest = Digester::new(seed).digest_integer(block);
        let (high, low) = (u128::from(digest.hi()), u128::from(digest.lo()));
        if count <= u128::from(u64::MAX) {
            (high * count + ((low * count) >> 64)) >> 64
        } else {
            scale(high << 64 | low, count)
        }
    }

    #[inline]
    fn wrap(&self, code: u128) -> u128 {
        if code >= self.count { code - self.count } else { code }
    }

    /// The code of a key.
    #[inline]
    pub(super) fn of(&self, key: u128) -> u128 {
        self.wrap(self.offset(key >> self.shift) + (key & ((1 << self.shift) - 1)))
    }

    /// The codes of all keys from `first` to `last`, at least `first`: up to four intervals, both ends
    /// included. `None` for more than half of all codes.
    #[inline]
    pub(super) fn between(&self, first: u128, last: u128) -> Option<Pieces> {
        let (block, until) = (first >> self.shift, last >> self.shift);
        let mut pieces = Pieces { ends: [(1, 0); 4], len: 0 };
        if block == until {
            self.add(&mut pieces, self.of(first), last - first);
        } else if until - block == 1 {
            let start = until << self.shift;
            self.add(&mut pieces, self.of(first), start - 1 - first);
            self.add(&mut pieces, self.of(start), last - start);
        } else {
            return None;
        }
        Some(pieces)
    }

    /// Adds the codes from `code` on, and so many more.
    #[inline]
    fn add(&self, pieces: &mut Pieces, code: u128, more: u128) {
        let end = code + more;
        if end < self.count {
            pieces.push(code, end);
        } else {
            pieces.push(code, self.count - 1);
            pieces.push(0, end - self.count);
        }
    }
}

/// A few intervals of codes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pieces {
    ends: [(u128, u128); 4],
    len: usize,
}

impl Pieces {
    #[inline]
    fn push(&mut self, first: u128, last: u128) {
        if let Some(ends) = self.ends.get_mut(self.len) {
            *ends = (first, last);
            self.len += 1;
        }
    }

    #[inline]
    pub(super) fn as_slice(&self) -> &[(u128, u128)] {
        &self.ends[..self.len]
    }
}

/// `hash` scaled to `0..n` by its high bits: the high half of the product.
fn scale(hash: u128, n: u128) -> u128 {
    let low = |x: u128| x & u128::from(u64::MAX);
    let (a, b, c, d) = (hash >> 64, low(hash), n >> 64, low(n));
    let (ad, bc) = (a * d, b * c);
    let carried = ((b * d) >> 64) + low(ad) + low(bc);
    a * c + (ad >> 64) + (bc >> 64) + (carried >> 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Keys of an interval are exactly its codes, piece by piece.
        #[test]
        fn an_interval_keeps_its_length(
            count in 1u128..1_000, first: u64, high: bool, length in 1u128..3_000, seed: u64,
        ) {
            let codes = Codes::new(count, seed);
            let first = if high { u128::MAX - u128::from(first) } else { u128::from(first) };
            let last = first.saturating_add(length - 1);
            if let Some(pieces) = codes.between(first, last) {
                let mut expected: alloc::vec::Vec<u128> = (first..=last).map(|key| codes.of(key)).collect();
                let ends = pieces.as_slice().iter();
                let mut found: alloc::vec::Vec<u128> = ends.flat_map(|&(first, last)| first..=last).collect();
                prop_assert!(found.iter().all(|&code| code < count));
                expected.sort_unstable();
                found.sort_unstable();
                prop_assert_eq!(found, expected);
            } else {
                prop_assert!(length > count / 2);
            }
        }

        /// Keys that lie near each other never share a code.
        #[test]
        fn neighbours_differ(bits in 1u32..126, key: u128, gap: u128) {
            let codes = Codes::new((1 << bits) + (1 << (bits - 1)), 3);
            let within = (1 << bits) - 1;
            let other = (key & !within) | (key.wrapping_add(gap) & within);
            prop_assert_eq!(codes.of(key) == codes.of(other), key == other);
        }

        #[test]
        fn scaling_keeps_to_the_range(hash: u128, n in 1u128..1 << 126) {
            prop_assert!(scale(hash, n) < n);
            prop_assert_eq!(scale(hash, 1 << 100), hash >> 28);
            prop_assert_eq!(scale(hash, 3 << 60), ((hash >> 64) * (3 << 60) + (((hash & u128::from(u64::MAX)) * (3 << 60)) >> 64)) >> 64);
        }
    }
}
