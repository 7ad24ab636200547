//! The last value a key was passed on with: `--pass-on-change`.

use lately::Digest;

/// Entries of a bucket: with hashes of 32 bits, a cache line.
const WAYS: usize = 8;

/// A bounded table of the last value of each key.
///
/// # Guarantee
/// It never calls a value unchanged that differs from the key's last one, but for a collision of
/// two 32-bit hashes at once (below 1e-17). A key pushed out by others counts as changed, so what
/// is lost by its bound is a duplicate that passes, never a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastValues {
    /// (fingerprint of the key, hash of the value); a fingerprint of 0 is an empty entry.
    /// Newest first within a bucket.
    buckets: Vec<[(u32, u32); WAYS]>,
}

impl LastValues {
    /// A table for about `keys` keys: 16 bytes each, so that few buckets overflow.
    pub fn new(keys: u64) -> Self {
        let buckets = (keys.saturating_mul(2) / WAYS as u64).clamp(16, 1 << 32);
        Self { buckets: vec![[(0, 0); WAYS]; buckets as usize] }
    }

    /// Notes the value a key has now, and tells whether it is the one it had.
    pub fn is_unchanged(&mut self, key: Digest, value: u64) -> bool {
        let slot = (u128::from(key.hi()) * self.buckets.len() as u128) >> 64;
        // The high half chose the bucket; the low half tells keys apart.
        let entry = ((key.lo() as u32).max(1), (value ^ (value >> 32)) as u32);
        let Some(bucket) = self.buckets.get_mut(slot as usize) else { return false };
        let known = bucket.iter().position(|&(fingerprint, _)| fingerprint == entry.0);
        let unchanged = known.is_some_and(|at| bucket[at] == entry);
        bucket[..=known.unwrap_or(WAYS - 1)].rotate_right(1);
        bucket[0] = entry;
        unchanged
    }

    /// Bytes allocated.
    pub fn memory(&self) -> usize {
        self.buckets.capacity() * size_of::<[(u32, u32); WAYS]>()
    }

    /// The table as little-endian bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let entries = self.buckets.iter().flatten();
        entries.flat_map(|(key, value)| [key.to_le_bytes(), value.to_le_bytes()].concat()).collect()
    }

    /// A table from [`LastValues::to_bytes`]; `None` for bytes that are not one.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (entries, rest) = bytes.as_chunks::<{ WAYS * 8 }>();
        if !rest.is_empty() || entries.is_empty() {
            return None;
        }
        let number = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes);
        let bucket = |bytes: &[u8; WAYS * 8]| {
            let mut bucket = [(0, 0); WAYS];
            for (entry, pair) in bucket.iter_mut().zip(bytes.as_chunks::<4>().0.chunks_exact(2)) {
                *entry = (number(&pair[0]), number(&pair[1]));
            }
            bucket
        };
        Some(Self { buckets: entries.iter().map(bucket).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u64) -> Digest {
        lately::Digester::new(0).digest(&n.to_le_bytes())
    }

    #[test]
    fn case_w4_a_changed_value_is_told_from_the_same_one() {
        let mut last = LastValues::new(100);
        assert!(!last.is_unchanged(key(1), 7));
        assert!(last.is_unchanged(key(1), 7));
        assert!(!last.is_unchanged(key(1), 8));
        // And back again: a change is against the last value, not against any earlier one.
        assert!(!last.is_unchanged(key(1), 7));
    }

    #[test]
    fn a_key_pushed_out_counts_as_changed() {
        let mut last = LastValues::new(1);
        for n in 0..10_000 {
            assert!(!last.is_unchanged(key(n), 1));
        }
        assert!(!last.is_unchanged(key(0), 1));
        assert!(last.is_unchanged(key(0), 1));
        assert_eq!(LastValues::from_bytes(&last.to_bytes()), Some(last));
        assert_eq!(LastValues::from_bytes(&[1, 2, 3]), None);
    }
}
