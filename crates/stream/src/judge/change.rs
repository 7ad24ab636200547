//! The last value a key was forwarded with: `--pass-on-change`.

use lately::codec::{Reader, Writer};
use lately::{Digest, SnapshotError};

/// Entries of a bucket.
const WAYS: usize = 16;

/// Bytes of a bucket, here and in a saved state.
const BUCKET: usize = WAYS * 16;

/// Buckets to begin with.
const FIRST: usize = 512;

/// A bounded table of the last value of each key. It grows with the keys up to a limit in bytes;
/// while it does, it takes up to half as much again.
///
/// # Guarantee
/// It never calls a value unchanged that differs from the key's last one, but for a collision of
/// hashes of 64 bits (below 1e-17). A key pushed out by others counts as changed, so what is lost
/// by the limit is a duplicate that is forwarded, never a change. Below the limit a key is pushed out
/// only from a table that is three quarters empty: one of 100,000, about.
#[derive(Clone, Debug)]
pub struct LastValues {
    /// (fingerprint of the key, hash of the value); a fingerprint of 0 is an empty entry. Newest
    /// first within a bucket, the empty ones last. Ordered by fingerprint from bucket to bucket, so
    /// that a bucket's entries are in two neighbours once there are twice as many.
    buckets: Vec<[(u64, u64); WAYS]>,
    used: usize,
    limit: usize,
    evicted: u64,
}

impl LastValues {
    /// An empty table that may take this many bytes (and always takes a few).
    pub fn new(limit: usize) -> Self {
        let buckets = (limit / BUCKET).clamp(1, FIRST);
        Self { buckets: vec![[(0, 0); WAYS]; buckets], used: 0, limit, evicted: 0 }
    }

    /// The same table with this limit. One that is larger already stays as it is.
    #[must_use]
    pub fn limited(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// Notes the value a key has now, and tells whether it is the one it had.
    pub fn is_unchanged(&mut self, key: Digest, value: u64) -> bool {
        let entry = (key.hi().max(1), value);
        loop {
            let slot = slot(entry.0, self.buckets.len());
            let Some(bucket) = self.buckets.get_mut(slot) else { return false };
            let known = bucket.iter().position(|&(fingerprint, _)| fingerprint == entry.0);
            let unchanged = known.is_some_and(|at| bucket[at] == entry);
            let full = bucket[WAYS - 1].0 != 0;
            if known.is_none() && full {
                if self.grow() {
                    continue;
                }
                self.evicted += 1;
            } else if known.is_none() {
                self.used += 1;
            }
            // Looked up again: growing has moved it.
            let Some(bucket) = self.buckets.get_mut(slot) else { return false };
            bucket[..=known.unwrap_or(WAYS - 1)].rotate_right(1);
            bucket[0] = entry;
            return unchanged;
        }
    }

    /// The value that a key has, if it is known.
    fn value(&mut self, fingerprint: u64) -> Option<u64> {
        let slot = slot(fingerprint, self.buckets.len());
        let bucket = self.buckets.get_mut(slot)?;
        let at = bucket.iter().position(|&(known, _)| known == fingerprint)?;
        bucket[..=at].rotate_right(1);
        Some(bucket[0].1)
    }

    /// Is a record as the last one that was forwarded of its key: with the same value, and each of its
    /// numbers within its dead band? Notes nothing; see [`LastValues::forwarded`].
    pub fn is_like(&mut self, key: Digest, value: u64, numbers: &[f64], bands: &[f64]) -> bool {
        let same = self.value(key.hi().max(1)) == Some(value);
        // All of them are looked up, so that they stay in the table together.
        (0..).zip(numbers.iter().zip(bands)).fold(same, |like, (field, (&number, &band))| {
            let last = self.value(of_field(key, field)).map(number_of);
            like & last.is_some_and(|last| is_within(last, number, band))
        })
    }

    /// Notes the value and the numbers with which a record is forwarded.
    pub fn forwarded(&mut self, key: Digest, value: u64, numbers: &[f64]) {
        self.is_unchanged(key, value);
        for (field, &number) in (0..).zip(numbers) {
            let bits = if number.is_nan() { NO_NUMBER } else { number.to_bits() };
            self.is_unchanged(Digest::new(of_field(key, field), 0), bits);
        }
    }

    /// Makes twice as many buckets, if that is allowed and of use.
    fn grow(&mut self) -> bool {
        let entries = self.buckets.len() * WAYS;
        if self.buckets.len() > self.limit / BUCKET / 2 || self.used < entries / 4 {
            return false;
        }
        let mut buckets = vec![[(0, 0); WAYS]; self.buckets.len() * 2];
        let mut used = 0;
        for &entry in self.buckets.iter().flatten().filter(|entry| entry.0 != 0) {
            let slot = slot(entry.0, buckets.len());
            if let Some(free) = buckets[slot].iter_mut().find(|other| other.0 == 0) {
                *free = entry;
                used += 1;
            }
        }
        (self.buckets, self.used) = (buckets, used);
        true
    }

    /// Keys that were pushed out, since the table was made or loaded.
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Bytes allocated.
    pub fn memory(&self) -> usize {
        self.buckets.capacity() * BUCKET
    }

    /// How many bytes [`LastValues::write`] writes.
    pub fn written(&self) -> usize {
        self.buckets.len() * BUCKET
    }

    /// Writes the table as little-endian bytes.
    pub fn write(&self, out: &mut Writer<'_>) {
        for (key, value) in self.buckets.iter().flatten() {
            out.u64(*key);
            out.u64(*value);
        }
    }

    /// A table from the `len` bytes that [`LastValues::write`] wrote. It does not grow before it is
    /// [`LastValues::limited`] otherwise.
    ///
    /// # Errors
    /// [`SnapshotError`] for bytes that are not a table, or not there; memory is taken only for those
    /// that are.
    pub fn read(len: u64, input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        let wrong = SnapshotError::Invalid("last values that are no table");
        let limit = input.expect(usize::try_from(len).ok())?;
        if !limit.is_multiple_of(BUCKET) || limit == 0 {
            return Err(wrong);
        }
        let count = limit / BUCKET;
        let mut buckets = Vec::with_capacity(count);
        let mut used = 0;
        for at in 0..count {
            let mut bucket = [(0, 0); WAYS];
            for entry in &mut bucket {
                *entry = (input.u64()?, input.u64()?);
            }
            let taken = bucket.iter().take_while(|entry| entry.0 != 0).count();
            let is_right = bucket[..taken].iter().all(|entry| slot(entry.0, count) == at)
                && bucket[taken..].iter().all(|entry| *entry == (0, 0));
            if !is_right {
                return Err(wrong);
            }
            buckets.push(bucket);
            used += taken;
        }
        Ok(Self { buckets, used, limit, evicted: 0 })
    }
}

/// Stands for a field that has no number: no number has these bits.
const NO_NUMBER: u64 = u64::MAX;

fn number_of(bits: u64) -> f64 {
    f64::from_bits(bits)
}

/// The fingerprint under which the number of one field of a key is kept.
fn of_field(key: Digest, field: u64) -> u64 {
    (key.hi() ^ (field + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)).max(1)
}

/// Do two numbers differ by no more than this? What the rounding of decimals adds to that does not count.
/// To have no number is a value of its own.
fn is_within(last: f64, number: f64, band: f64) -> bool {
    if last.is_nan() || number.is_nan() {
        return last.is_nan() && number.is_nan();
    }
    (number - last).abs() - band <= 4.0 * f64::EPSILON * last.abs().max(number.abs())
}

/// The bucket of a fingerprint among `buckets`.
fn slot(fingerprint: u64, buckets: usize) -> usize {
    ((u128::from(fingerprint) * buckets as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use lately::codec::{self, Format};

    fn key(n: u64) -> Digest {
        lately::Digester::new(0).digest(&n.to_le_bytes())
    }

    const TABLE: Format = Format::new(*b"A TABLE.", 1);

    fn bytes(last: &LastValues) -> Vec<u8> {
        codec::to_vec(TABLE, |out| last.write(out))
    }

    fn from_bytes(bytes: &[u8]) -> Result<LastValues, SnapshotError> {
        codec::from_slice(TABLE, bytes, |input| LastValues::read(input.left(), input))
    }

    #[test]
    fn case_w4_a_changed_value_is_distinguished_from_the_same_one() {
        let mut last = LastValues::new(1 << 20);
        assert!(!last.is_unchanged(key(1), 7));
        assert!(last.is_unchanged(key(1), 7));
        assert!(!last.is_unchanged(key(1), 8));
        // And back again: a change is against the last value, not against any earlier one.
        assert!(!last.is_unchanged(key(1), 7));
        // Two values that differ in no more than their upper halves, too.
        assert!(!last.is_unchanged(key(1), 7 | 1 << 60));
    }

    #[test]
    fn a_dead_band_is_around_what_was_forwarded_last() {
        let mut last = LastValues::new(1 << 20);
        let bands = [0.5, 0.0];
        let mut passes = |value, numbers: [f64; 2]| {
            let like = last.is_like(key(1), value, &numbers, &bands);
            if !like {
                last.forwarded(key(1), value, &numbers);
            }
            !like
        };
        assert!(passes(7, [20.0, 1.0]));
        assert!(!passes(7, [20.5, 1.0]) && !passes(7, [19.5, 1.0]));
        assert!(passes(7, [20.6, 1.0]));
        assert!(!passes(7, [20.1, 1.0]), "by 0.5, but for rounding");
        assert!(passes(7, [20.6, 1.1]) && passes(8, [20.6, 1.1]));
        // No number is a value, too.
        assert!(
            passes(8, [f64::NAN, 1.1]) && !passes(8, [f64::NAN, 1.1]) && passes(8, [20.6, 1.1])
        );
    }

    #[test]
    fn a_key_pushed_out_counts_as_changed() {
        let mut last = LastValues::new(1);
        for n in 0..10_000 {
            assert!(!last.is_unchanged(key(n), 1));
        }
        assert_eq!(last.evicted(), 10_000 - 16);
        assert!(!last.is_unchanged(key(0), 1));
        assert!(last.is_unchanged(key(0), 1));
    }

    #[test]
    fn it_grows_with_the_keys_and_forgets_next_to_none() {
        let mut last = LastValues::new(64 << 20);
        let mut changed = 0;
        for round in 0..3 {
            for n in 0..300_000 {
                let unchanged = last.is_unchanged(key(n), n % 7);
                assert!(round > 0 || !unchanged);
                changed += u64::from(round > 0 && !unchanged);
            }
        }
        assert!(last.evicted() < 30 && changed <= last.evicted(), "{} {changed}", last.evicted());
        assert!(last.memory() <= 64 << 20);
        // A quarter of its entries were in use when it last grew.
        assert!(last.memory() <= 300_000 * 16 * 8, "{}", last.memory());
    }

    #[test]
    fn it_does_not_grow_beyond_its_limit() {
        let mut last = LastValues::new(1 << 20);
        (0..300_000).for_each(|n| assert!(!last.is_unchanged(key(n), n)));
        assert_eq!(last.memory(), 1 << 20);
        assert_eq!(last.evicted(), 300_000 - (1 << 16));
        assert!((299_000..300_000).all(|n| last.is_unchanged(key(n), n)));
    }

    #[test]
    fn it_comes_back_from_its_bytes() {
        let mut last = LastValues::new(1 << 20);
        (0..10_000).for_each(|n| assert!(!last.is_unchanged(key(n), n)));
        let mut back = from_bytes(&bytes(&last)).unwrap();
        assert_eq!((bytes(&back), back.used), (bytes(&last), last.used));
        let before = back.memory();
        back = back.limited(8 << 20);
        for n in 0..100_000 {
            assert_eq!(back.is_unchanged(key(n), n), n < 10_000);
        }
        assert!(back.memory() > before && back.evicted() == 0);
        for wrong in [&[1, 2, 3][..], &[], &[1; BUCKET * 2]] {
            assert!(from_bytes(&codec::to_vec(TABLE, |out| out.bytes(wrong))).is_err());
        }
    }
}
