//! A Bloom filter that grows bucket by bucket.

mod chosen;
mod shape;

use self::chosen::Chosen;
pub use self::shape::AccommodativeShape;
use self::shape::NO_SLICE;
use super::chain::{Chain, compound, in_filter};
use super::partitioned::Partitioned;
use crate::bits::is_available;
use crate::codec::{Reader, Writer};
use crate::table::{Contract, Recipe, Table, Windows};
use crate::{Digest, Filter, Overload, PlanError, SnapshotError, Spec, Tick, Verdict};
use alloc::vec::Vec;

/// Buckets of partitioned slices: a key is put in `k` buckets, and found if each of them has it.
///
/// # Guarantee
/// A key once remembered is always found. Another is found with a probability of at most
/// [`AccommodativeShape::fpr`] `ε`, however many keys there are. Its positions differ from bucket
/// to bucket, so the buckets' rates multiply; a bucket's rate is at most the sum of its slices',
/// `Σ (1 - ρ)·ε^(1/k)·ρ^i = ε^(1/k)`, and `k` of them make `ε`. Keys never expire.
///
/// # Cost
/// A key sets `k · k1` bits, in the newest slice of each bucket. A key that is there is looked for
/// in `log2` of the growth slices of `k` buckets, newest first; another is refused by the first
/// bucket that has it in no slice. Bits a key at 1 %, with 6,400 bits in 16 buckets at the start,
/// `k = k1 = 4` and `ρ = 0.85`: 80 after 1,000 keys, 47 after 10,000, 33 after 100,000. That is
/// some twice what a [`ScalableBloom`](super::ScalableBloom) takes for the same promise, as each
/// key is stored `k` times; the rate then measured is .0001, .0007, .002.
///
/// # Errors
/// [`AccommodativeBloom::new`] alone. Where memory ends it continues in the newest slices:
/// [`AccommodativeBloom::is_full`].
///
/// # Example
/// ```
/// use lately::{Digester, Filter, Verdict};
/// use lately::forever::{AccommodativeBloom, AccommodativeShape};
/// let mut seen = AccommodativeBloom::new(AccommodativeShape {
///     bits: 6_400, buckets: 16, choices: 4, hashes: 4, fpr: 0.01, tightening: 0.85,
/// })?;
/// let digester = Digester::new(0);
/// for key in 0..10_000u64 {
///     let _ = seen.observe(digester.digest(&key.to_le_bytes()));
/// }
/// assert!(seen.grown() > 0 && seen.estimated_fpr() <= 0.01);
/// assert_eq!(seen.observe(digester.digest(&7u64.to_le_bytes())), Verdict::Duplicate);
/// # Ok::<(), lately::PlanError>(())
/// ```
///
/// # Reference
/// A. Singh, S. Garg, S. Batra, N. Kumar, J. J. P. C. Rodrigues, "Bloom filter based optimization
/// scheme for massive data handling in IoT environment", Future Generation Computer Systems 82,
/// 2018, section 3 ("accommodative Bloom filter").
///
/// # Differs from the paper
/// - Level II asks for a key in *some* slice of each chosen bucket. Printed is "all slices", which
///   loses nearly every key after the first growth.
/// - A bucket's counter only rises. Line 10 of Algorithm 1 sets it back with every key.
/// - The number of bucket and slice is part of the position hash. With equal positions in every
///   bucket the buckets are copies where `b = k`, and their rates do not multiply.
/// - Slices double, and each is full at the share of set bits that its part of the rate allows. The
///   paper's slices of one small size add up to any rate, .99 after 5,000 keys.
/// - The chosen buckets are distinct: double hashing continues next to where it began when it comes
///   back there. So `k` above `b` is refused; equal choices would be one bucket's rate.
/// - What a chosen bucket is found to hold is not put in again.
///
/// It is not merged: slices of two filters united are fuller than their thresholds, and side by
/// side a bucket has twice as many, whose rates add up to twice its share.
#[derive(Clone, Debug, PartialEq)]
pub struct AccommodativeBloom {
    shape: AccommodativeShape,
    /// The slices of each bucket.
    buckets: Vec<Chain<Partitioned>>,
    /// Buckets that hold a key.
    used: u32,
    /// Slices added.
    grown: u64,
    /// Keys that were fresh when remembered.
    keys: u64,
    /// Bytes allocated.
    memory: u64,
    /// Bytes that it takes to add a slice to every bucket whose newest one is full.
    wanted: u128,
    /// The most bytes it may allocate.
    limit: u64,
}

impl AccommodativeBloom {
    /// A filter of this shape, each bucket with a first slice of `bits / buckets` bits, rounded
    /// down to whole partitions.
    ///
    /// # Errors
    /// [`PlanError::Fpr`] when the rate is not between 0 and 1; [`PlanError::TooLarge`] when
    /// another number is outside its range, or the first slices are beyond any memory or cannot
    /// hold one key at this rate; [`PlanError::Unavailable`] when there is no memory for them.
    pub fn new(shape: AccommodativeShape) -> Result<Self, PlanError> {
        shape.check()?;
        let first = shape.slice(0).ok_or(NO_SLICE)?;
        let mut filter = Self::empty(shape);
        let no_memory = |_| PlanError::Unavailable { bytes: filter.memory };
        filter.buckets.try_reserve_exact(shape.buckets as usize).map_err(no_memory)?;
        for _ in 0..shape.buckets {
            filter.add_bucket(Chain::new(Partitioned::new(first)?));
        }
        Ok(filter)
    }

    fn empty(shape: AccommodativeShape) -> Self {
        let memory = u64::from(shape.buckets) * size_of::<Chain<Partitioned>>() as u64;
        let (used, grown, keys, wanted) = (0, 0, 0, 0);
        Self { shape, buckets: Vec::new(), used, grown, keys, memory, wanted, limit: u64::MAX }
    }

    fn add_bucket(&mut self, bucket: Chain<Partitioned>) {
        self.used += u32::from(is_used(&bucket));
        self.grown += bucket.last();
        self.memory += bucket.memory(Partitioned::memory) as u64;
        if bucket.newest().is_full() {
            self.wanted += self.bytes_after(&bucket);
        }
        self.buckets.push(bucket);
    }

    /// The most bytes it may allocate. What it has already is not given back.
    #[must_use]
    pub fn limit(self, bytes: u64) -> Self {
        Self { limit: bytes, ..self }
    }

    /// The paper's rate for independent positions, `[1 - Π_s (1 - φ_s^k1)]^k`, from the shares
    /// `φ_s` of set bits in the slices of a bucket.
    pub fn rate(fills: &[f64], hashes: u32, choices: u32) -> f64 {
        let slices = fills.iter().map(|&fill| libm::pow(fill, f64::from(hashes)));
        libm::pow(compound(slices), f64::from(choices))
    }

    /// The buckets of a key.
    #[inline]
    fn chosen(&self, digest: Digest) -> impl Iterator<Item = u32> + use<> {
        let buckets = self.shape.buckets;
        Chosen::new(digest, buckets).take(self.shape.choices as usize)
    }

    /// The key as slice `slice` of a bucket sees it.
    #[inline]
    fn in_slice(&self, digest: Digest, bucket: u32, slice: u64) -> Digest {
        in_filter(digest, slice * u64::from(self.shape.buckets) + u64::from(bucket))
    }

    fn bucket(&self, bucket: u32) -> &Chain<Partitioned> {
        &self.buckets[bucket as usize]
    }

    fn is_in_bucket(&self, digest: Digest, bucket: u32) -> bool {
        let mut slices = self.bucket(bucket).newest_first();
        slices.any(|(slice, bits)| bits.contains(self.in_slice(digest, bucket, slice)))
    }

    fn holds(&self, digest: Digest) -> bool {
        // Level I has nothing to say once every bucket is used, which is soon.
        let level_1 = self.used == self.shape.buckets
            || self.chosen(digest).all(|bucket| is_used(self.bucket(bucket)));
        level_1 && self.chosen(digest).all(|bucket| self.is_in_bucket(digest, bucket))
    }

    /// One arrival: was the key seen before? It is now.
    pub fn observe(&mut self, digest: Digest) -> Verdict {
        if self.holds(digest) {
            return Verdict::Duplicate;
        }
        for bucket in self.chosen(digest) {
            if !self.is_in_bucket(digest, bucket) {
                self.put(digest, bucket);
            }
        }
        self.keys += 1;
        Verdict::Fresh
    }

    fn put(&mut self, digest: Digest, bucket: u32) {
        self.used += u32::from(!is_used(self.bucket(bucket)));
        // Without memory the newest slice takes the key, as beyond the limit.
        let _ = self.grow(bucket);
        let digest = self.in_slice(digest, bucket, self.bucket(bucket).last());
        let newest = self.buckets[bucket as usize].newest_mut();
        let was_full = newest.is_full();
        newest.insert(digest);
        if !was_full && newest.is_full() {
            self.wanted += self.bytes_after(self.bucket(bucket));
        }
    }

    /// Adds a slice to a bucket whose newest one is full, within the limit.
    fn grow(&mut self, bucket: u32) -> Result<(), PlanError> {
        let limit = self.limit;
        let slices = &mut self.buckets[bucket as usize];
        if !slices.newest().is_full() {
            return Ok(());
        }
        let next = self.shape.slice(slices.last() + 1).ok_or(NO_SLICE)?;
        let needed = self.memory.saturating_add(next.bytes());
        if needed > limit {
            return Err(PlanError::Memory { needed, limit });
        }
        slices.push(Partitioned::new(next)?)?;
        self.memory = needed;
        self.wanted -= u128::from(next.bytes());
        self.grown += 1;
        Ok(())
    }

    /// Bytes of the slice that would follow in a bucket: more than any limit if none can.
    fn bytes_after(&self, bucket: &Chain<Partitioned>) -> u128 {
        self.shape.slice(bucket.last() + 1).map_or(1 << 64, |next| u128::from(next.bytes()))
    }

    /// Is there a bucket whose newest slice is full, and no room to add one to each such bucket?
    /// A key is still taken then, and the rate may rise above what was promised.
    ///
    /// *Cost:* asks the system for memory, but only while there is such a bucket.
    pub fn is_full(&self) -> bool {
        let words = || usize::try_from(self.wanted / 8);
        self.wanted > 0
            && (u128::from(self.memory) + self.wanted > u128::from(self.limit)
                || !words().is_ok_and(|words| is_available(words).is_ok()))
    }

    /// What it was built from.
    pub fn shape(&self) -> AccommodativeShape {
        self.shape
    }

    /// Keys that were fresh when remembered.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// Keys after which its first slices are full, on the average of the buckets: as many as set
    /// the share of bits that is their threshold, if each goes to `choices` of `buckets`.
    pub fn capacity(&self) -> u64 {
        self.shape.capacity()
    }

    /// Slices there are in all buckets.
    pub fn slices(&self) -> u64 {
        u64::from(self.shape.buckets) + self.grown
    }

    /// How many slices were added.
    pub fn grown(&self) -> u64 {
        self.grown
    }

    fn all_slices(&self) -> impl Iterator<Item = &Partitioned> {
        self.buckets.iter().flat_map(Chain::oldest_first)
    }

    pub(crate) fn read(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        let (bits, buckets, choices) = (input.u64()?, input.u32()?, input.u32()?);
        let (hashes, fpr, tightening) = (input.u32()?, input.f64()?, input.f64()?);
        let shape = AccommodativeShape { bits, buckets, choices, hashes, fpr, tightening };
        let impossible = |_| SnapshotError::Invalid("an accommodative Bloom filter that cannot be");
        shape.check().map_err(impossible)?;
        let mut filter = Self::empty(shape);
        (filter.limit, filter.keys) = (input.u64()?, input.count()?);
        for _ in 0..buckets {
            // The list grows with what has been read, not with what is said to follow.
            filter.add_bucket(read_bucket(input, &shape)?);
        }
        filter.buckets.shrink_to_fit();
        let set: u64 = filter.all_slices().map(Partitioned::set).sum();
        // A fresh key sets a bit at least, and one in each partition of its buckets at most.
        let most = filter.keys.saturating_mul(u64::from(choices * hashes));
        if !(filter.keys..=most).contains(&set) {
            return Err(SnapshotError::Invalid("more or fewer bits set than so many keys set"));
        }
        Ok(filter)
    }
}

fn read_bucket(
    input: &mut Reader<'_>,
    shape: &AccommodativeShape,
) -> Result<Chain<Partitioned>, SnapshotError> {
    let impossible = SnapshotError::Invalid("a slice that no bucket has");
    let grown = u64::from(input.u8()?);
    let size = |number| shape.slice(number).ok_or(impossible.clone());
    let mut bucket = Chain::new(Partitioned::read(input, size(0)?)?);
    for number in 1..=grown {
        let next = Partitioned::read(input, size(number)?)?;
        if !bucket.newest().is_full() {
            return Err(impossible);
        }
        let no_memory = |_| SnapshotError::Invalid("more slices than memory holds");
        bucket.push(next).map_err(no_memory)?;
    }
    Ok(bucket)
}

/// Does the bucket hold a key: is its counter above 0?
fn is_used(bucket: &Chain<Partitioned>) -> bool {
    // A slice is added for a key, so that only a first one can be empty.
    bucket.newest().set() > 0
}

impl Recipe for AccommodativeBloom {
    type Table = Self;
    /// And the most bytes that it grows to.
    type Size = (AccommodativeShape, u64);

    const WINDOWS: Windows = Windows::Forever;
    const GROWS: bool = true;
    const KEEPS_ITS_RATE: bool = true;

    fn size(spec: &Spec, capacity: u64, fpr: f64) -> Result<Self::Size, PlanError> {
        Ok((AccommodativeShape::for_keys(capacity, fpr), spec.limit_of_growth()))
    }

    fn contract((shape, _): &Self::Size) -> Contract {
        Contract::forever(shape.capacity())
    }

    fn memory((shape, _): &Self::Size) -> Option<u64> {
        shape.memory()
    }

    fn cell_bits_and_hashes((shape, _): &Self::Size) -> (u32, u32) {
        (1, shape.choices * shape.hashes)
    }

    fn build((shape, limit): Self::Size) -> Result<Self, PlanError> {
        Ok(Self::new(shape)?.limit(limit))
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        Self::read(input)
    }
}

impl crate::filter::sealed::Sealed for AccommodativeBloom {}

impl Filter for AccommodativeBloom {
    fn contains(&self, digest: Digest, _now: Tick) -> bool {
        self.holds(digest)
    }

    /// Of all slices together, while it is not full.
    fn fpr(&self) -> f64 {
        self.shape.fpr
    }

    /// The paper's formula, from the mean over the buckets of `1 - Π_s (1 - φ_s^k1)`, the fills
    /// counted. For distinct buckets it is no less than the mean over their choices.
    fn estimated_fpr(&self) -> f64 {
        let bucket =
            |slices: &Chain<Partitioned>| compound(slices.oldest_first().map(Partitioned::rate));
        let mean = self.buckets.iter().map(bucket).sum::<f64>() / f64::from(self.shape.buckets);
        libm::pow(mean, f64::from(self.shape.choices))
    }

    /// Counted: the share of bits that are set.
    fn fill(&self) -> f64 {
        let set: u64 = self.all_slices().map(Partitioned::set).sum();
        let bits: u64 = self.all_slices().map(Partitioned::len).sum();
        set as f64 / bits as f64
    }

    fn memory(&self) -> usize {
        self.memory as usize
    }
}

impl Table for AccommodativeBloom {
    #[inline]
    fn observe(&mut self, digest: Digest, _now: Tick) -> Verdict {
        Self::observe(self, digest)
    }

    fn is_full(&self) -> bool {
        Self::is_full(self)
    }

    fn clear(&mut self) {
        let buckets = core::mem::take(&mut self.buckets);
        let limit = self.limit;
        *self = Self { limit, ..Self::empty(self.shape) };
        for mut bucket in buckets {
            bucket.start_over(Partitioned::clear);
            self.add_bucket(bucket);
        }
    }

    fn keys_now(&self) -> u64 {
        self.keys()
    }

    fn prefetch(&self, digest: Digest) {
        for bucket in self.chosen(digest) {
            let slices = self.bucket(bucket);
            slices.newest().prefetch(self.in_slice(digest, bucket, slices.last()));
        }
    }

    fn capacity(&self) -> u64 {
        Self::capacity(self)
    }

    /// Buckets grow one by one.
    fn capacity_grown_to(&self) -> u64 {
        Self::capacity(self).max(self.keys)
    }

    fn overload(&self) -> Overload {
        Overload { grown: Self::grown(self), ..Overload::default() }
    }

    fn write(&self, out: &mut Writer<'_>) {
        out.u64(self.shape.bits);
        out.u32(self.shape.buckets);
        out.u32(self.shape.choices);
        out.u32(self.shape.hashes);
        out.f64(self.shape.fpr);
        out.f64(self.shape.tightening);
        out.u64(self.limit);
        out.u64(self.keys);
        for bucket in &self.buckets {
            out.u8(bucket.last() as u8);
            bucket.oldest_first().for_each(|slice| slice.write(out));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Digester;
    use crate::forever::body;
    use proptest::prelude::*;

    fn key(n: u64) -> Digest {
        Digester::new(0).digest(&n.to_le_bytes())
    }

    const SHAPE: AccommodativeShape = AccommodativeShape {
        bits: 160,
        buckets: 5,
        choices: 3,
        hashes: 2,
        fpr: 0.01,
        tightening: 0.85,
    };

    fn filled(shape: AccommodativeShape, keys: u64, limit: u64) -> AccommodativeBloom {
        let mut filter = AccommodativeBloom::new(shape).unwrap().limit(limit);
        for n in 0..keys {
            let _ = filter.observe(key(n));
        }
        filter
    }

    #[test]
    fn chosen_buckets_are_distinct_and_even() {
        for buckets in [1, 2, 3, 4, 6, 12, 16, 60, 97] {
            let mut chosen = [0u32; 97];
            for n in 0..2_000 {
                let mut seen = [false; 97];
                for (at, bucket) in Chosen::new(key(n), buckets).take(buckets as usize).enumerate()
                {
                    assert!(!core::mem::replace(&mut seen[bucket as usize], true), "{buckets}");
                    chosen[bucket as usize] += u32::from(at < 3);
                }
            }
            let mean = f64::from(2_000 * buckets.min(3) / buckets);
            for count in &chosen[..buckets as usize] {
                assert!((f64::from(*count) - mean).abs() < 6.0 * libm::sqrt(mean) + 1.0);
            }
        }
    }

    /// Each slice is within its share at any moment, and so each bucket, and so all.
    #[test]
    fn every_slice_keeps_its_share() {
        for (fpr, choices, tightening) in [(0.9, 1, 0.5), (0.01, 3, 0.85), (1e-9, 5, 0.9)] {
            let shape = AccommodativeShape { bits: 640, fpr, choices, tightening, ..SHAPE };
            let mut filter = AccommodativeBloom::new(shape).unwrap();
            for n in 0..3_000 {
                let _ = filter.observe(key(n));
                assert!(n % 100 > 0 || filter.estimated_fpr() <= fpr);
            }
            let share = libm::pow(fpr, 1.0 / f64::from(choices)) * (1.0 - tightening);
            for bucket in &filter.buckets {
                assert!(bucket.len() > 3);
                for (number, slice) in bucket.newest_first() {
                    let share = share * libm::pow(tightening, number as f64);
                    assert!(slice.rate() <= share * (1.0 + 1e-12), "{fpr} {number}");
                }
            }
        }
    }

    /// What is kept up to date equals what it stands for, within a limit and beyond.
    #[test]
    fn counts_are_those_of_the_buckets() {
        for limit in [0, 1_500, 4_000, 20_000, u64::MAX] {
            let mut filter = AccommodativeBloom::new(SHAPE).unwrap().limit(limit);
            for n in 0..2_000 {
                let _ = filter.observe(key(n));
                let mut counted = AccommodativeBloom::empty(SHAPE).limit(limit);
                filter.buckets.iter().for_each(|bucket| counted.add_bucket(bucket.clone()));
                counted.keys = filter.keys;
                assert_eq!(filter, counted, "{limit} {n}");
            }
            assert_eq!(filter.is_full(), limit < u64::MAX);
        }
    }

    #[test]
    fn shapes_that_cannot_be() {
        for fpr in [0.0, 1.0, -1.0, f64::NAN, f64::INFINITY] {
            let result = AccommodativeBloom::new(AccommodativeShape { fpr, ..SHAPE });
            assert!(matches!(result, Err(PlanError::Fpr(_))), "{fpr}");
        }
        for shape in [
            AccommodativeShape { bits: 0, ..SHAPE },
            AccommodativeShape { bits: 9, ..SHAPE },
            AccommodativeShape { bits: u64::MAX, buckets: 1, choices: 1, ..SHAPE },
            AccommodativeShape { buckets: 0, ..SHAPE },
            AccommodativeShape { buckets: u32::MAX, ..SHAPE },
            AccommodativeShape { choices: 0, ..SHAPE },
            AccommodativeShape { choices: 6, ..SHAPE },
            AccommodativeShape { hashes: 0, ..SHAPE },
            AccommodativeShape { hashes: 65, ..SHAPE },
            AccommodativeShape { fpr: 1e-300, ..SHAPE },
            AccommodativeShape { tightening: 1.0, ..SHAPE },
            AccommodativeShape { tightening: f64::NAN, ..SHAPE },
        ] {
            let result = AccommodativeBloom::new(shape);
            assert!(matches!(result, Err(PlanError::TooLarge(_))), "{shape:?}");
        }
    }

    #[test]
    fn the_formula_is_that_of_even_buckets() {
        let rate = AccommodativeBloom::rate(&[0.5, 0.25], 2, 3);
        assert!((rate - libm::pow(1.0 - 0.75 * 0.9375, 3.0)).abs() < 1e-12);
        assert_eq!(AccommodativeBloom::rate(&[], 2, 3), 0.0);
    }

    proptest! {
        #[test]
        fn snapshots_are_read_back(
            buckets in 3u32..9, hashes in 1u32..5, keys in 0u64..300, limit in 0u64..9_000,
        ) {
            let shape = AccommodativeShape { bits: 400, buckets, hashes, ..SHAPE };
            let filter = filled(shape, keys, limit);
            let body = body::written(|out| filter.write(out));
            prop_assert_eq!(body::read(&body, AccommodativeBloom::read), Ok(filter));
        }

        #[test]
        fn damaged_snapshots_do_no_harm(
            keys in 0u64..60, at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in 0usize..9,
        ) {
            let mut body = body::written(|out| filled(SHAPE, keys, u64::MAX).write(out));
            let at = at.index(body.len().min(if cut > 4 { 53 } else { usize::MAX }));
            body[at] = byte;
            body.truncate(body.len() - cut.saturating_sub(6));
            if let Ok(mut filter) = body::read(&body, AccommodativeBloom::read) {
                filter = filter.limit(1 << 16);
                for n in 0..100 {
                    let _ = filter.observe(key(n));
                    prop_assert!(filter.contains(key(n), Tick(0)));
                }
                prop_assert!((0.0..=1.0).contains(&filter.estimated_fpr()));
                let _ = (filter.is_full(), filter.fill(), filter.memory(), filter.capacity());
            }
        }
    }
}
