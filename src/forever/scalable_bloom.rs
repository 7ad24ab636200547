//! A Bloom filter that grows by ever larger filters and keeps its rate.

use super::chain::{Chain, compound, in_filter};
use super::partitioned::{Partitioned, Partitions};
use crate::codec::{Reader, Writer};
use crate::table::{Contract, Recipe, Table, Windows};
use crate::{Digest, Filter, Overload, PlanError, SnapshotError, Spec, Tick, Verdict};

/// What a [`ScalableBloom`] is built from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScalableShape {
    /// Keys of the first filter, at least 1.
    pub capacity: u64,
    /// The rate that all filters together keep, between 0 and 1.
    pub fpr: f64,
    /// How many times the keys of a filter the next one holds, 2 to 16: the paper has 2 for sets
    /// that grow slowly and 4 for others.
    pub growth: u32,
    /// The rate of a filter as a share of that before, 0.5 to 0.99: the paper has 0.8 to 0.9.
    pub tightening: f64,
}

impl ScalableShape {
    /// The first filter takes so many keys for certain, and not only on average: five standard
    /// deviations more. (The keys after which half of a partition's bits are set vary by
    /// `0.66·√(keys/k)`, and `k` is at least 1.)
    pub(crate) fn for_keys(keys: u64, fpr: f64) -> Self {
        let margin = libm::ceil(3.3 * libm::sqrt(keys as f64)) as u64 + 1;
        Self { capacity: keys.saturating_add(margin), fpr, growth: 2, tightening: 0.85 }
    }

    /// Bytes that a new filter of this shape allocates.
    pub(crate) fn memory(&self) -> Option<u64> {
        self.check().ok()?;
        Some(self.filter(0)?.bytes() - Chain::<Partitioned>::LINK)
    }

    fn check(&self) -> Result<(), PlanError> {
        if !(self.fpr > 0.0 && self.fpr < 1.0) {
            return Err(PlanError::Fpr(self.fpr));
        }
        let is_possible = self.capacity > 0
            && (2..=16).contains(&self.growth)
            && (0.5..=0.99).contains(&self.tightening);
        is_possible.then_some(()).ok_or(PlanError::TooLarge(
            "a scalable Bloom filter has 1 key or more, a growth of 2 to 16 and a tightening of 0.5 to 0.99",
        ))
    }

    /// Partitions of filter `number`, as many as its rate takes; 65 stands for too many.
    pub(crate) fn hashes(&self, number: u64) -> u32 {
        let rate = self.fpr * (1.0 - self.tightening) * libm::pow(self.tightening, number as f64);
        libm::ceil(-libm::log2(rate)).clamp(1.0, 65.0) as u32
    }

    /// Filter `number`: `capacity · growth^number` keys at a rate of
    /// `fpr · (1 - tightening) · tightening^number`. `None` beyond any memory or 64 partitions.
    fn filter(&self, number: u64) -> Option<Partitions> {
        let times = u64::from(self.growth).checked_pow(u32::try_from(number).ok()?)?;
        let keys = self.capacity.checked_mul(times)?;
        let hashes = self.hashes(number);
        // So many cells are half full after `keys` keys: 1 - (1 - 1/cells)^keys = 1/2.
        let cells = libm::ceil(-1.0 / libm::expm1(-core::f64::consts::LN_2 / keys as f64));
        Partitions::new(cells as u64, hashes, 0.5)
    }
}

/// Partitioned Bloom filters, each for more keys and a lower rate than the one before.
///
/// # Guarantee
/// A key once remembered is always found. Another is found with a probability of at most
/// [`ScalableShape::fpr`], however many keys there are: filter `i` keeps `P0·ρ^i` with
/// `P0 = fpr · (1 - ρ)`, and the sum of all is `P0 / (1 - ρ)`. Keys never expire.
///
/// # Cost
/// A key sets `k_i = ⌈log2 1/P_i⌉` bits, in the newest filter alone; a fresh key is asked of every
/// filter, newest first, and most answer at the second bit. After `n` keys there are about
/// `log_s (n / capacity)` filters. Bits a key are `k_i / ln 2` when the newest filter is full, 14
/// to 18 at 1 % with `ρ = 0.85` up to 500 times the first capacity; twice that with a growth of 2,
/// four times with 4, when it has just been added.
///
/// # Errors
/// [`ScalableBloom::new`] alone. Where memory ends it continues in the newest filter:
/// [`ScalableBloom::is_full`].
///
/// # Example
/// ```
/// use lately::{Digester, Filter, Verdict, forever::{ScalableBloom, ScalableShape}};
/// let shape = ScalableShape { capacity: 100, fpr: 0.01, growth: 2, tightening: 0.85 };
/// let mut seen = ScalableBloom::new(shape)?;
/// let digester = Digester::new(0);
/// for key in 0..10_000u64 {
///     let _ = seen.observe(digester.digest(&key.to_le_bytes()));
/// }
/// assert!(seen.filters() > 5 && seen.estimated_fpr() <= 0.01);
/// assert_eq!(seen.observe(digester.digest(&7u64.to_le_bytes())), Verdict::Duplicate);
/// # Ok::<(), lately::PlanError>(())
/// ```
///
/// # Reference
/// P. S. Almeida, C. Baquero, N. Preguiça, D. Hutchison, "Scalable Bloom Filters", Information
/// Processing Letters 101(6), 2007, doi:10.1016/j.ipl.2006.10.007, sections 3 and 4.
///
/// # Differs from the paper
/// A filter is full when half of its bits *are* set, not when as many keys are in as set half of
/// them on average: then each filter keeps its rate, and not only the mean of many. So the number
/// of keys it takes varies around the planned one. Each filter takes positions of its own.
///
/// It is not merged: the filters of two have equal sizes, and their union is fuller than half and
/// above its rate, while side by side they need twice the sum that the rates are planned for.
#[derive(Clone, Debug, PartialEq)]
pub struct ScalableBloom {
    filters: Chain<Partitioned>,
    shape: ScalableShape,
    /// Keys that were fresh when remembered.
    keys: u64,
    /// The most bytes it may allocate.
    limit: u64,
}

impl ScalableBloom {
    /// A filter of this shape.
    ///
    /// # Errors
    /// [`PlanError::Fpr`] when the rate is not between 0 and 1; [`PlanError::TooLarge`] when
    /// another number is outside its range, or the first filter needs more than 64 partitions or
    /// is beyond any memory; [`PlanError::Unavailable`] when there is no memory for it.
    pub fn new(shape: ScalableShape) -> Result<Self, PlanError> {
        shape.check()?;
        let first = shape.filter(0).ok_or(PlanError::TooLarge(
            "the first of a scalable Bloom filter's filters has at most 64 partitions, and not more bits than any memory",
        ))?;
        let filters = Chain::new(Partitioned::new(first)?);
        Ok(Self { filters, shape, keys: 0, limit: u64::MAX })
    }

    /// The most bytes it may allocate. What it has already is not given back.
    #[must_use]
    pub fn limit(self, bytes: u64) -> Self {
        Self { limit: bytes, ..self }
    }

    fn holds(&self, digest: Digest) -> bool {
        let mut filters = self.filters.newest_first();
        filters.any(|(number, filter)| filter.contains(in_filter(digest, number)))
    }

    /// One arrival: was the key seen before? It is now.
    pub fn observe(&mut self, digest: Digest) -> Verdict {
        if self.holds(digest) {
            return Verdict::Duplicate;
        }
        if self.filters.newest().is_full()
            && let Some(next) = self.next()
        {
            // Without memory the newest filter takes the key, as beyond the limit.
            let _ = self.grow(next);
        }
        let number = self.filters.last();
        self.filters.newest_mut().insert(in_filter(digest, number));
        self.keys += 1;
        Verdict::Fresh
    }

    /// The filter to be added next, if it is within the limit.
    fn next(&self) -> Option<Partitions> {
        let next = self.shape.filter(self.filters.last() + 1)?;
        let memory = next.bytes().saturating_add(self.memory() as u64);
        (memory <= self.limit).then_some(next)
    }

    fn grow(&mut self, next: Partitions) -> Result<(), PlanError> {
        self.filters.push(Partitioned::new(next)?)
    }

    /// Is the newest filter full, with no room to add one? A key is still taken then, and the
    /// rate rises above what was promised.
    ///
    /// *Cost:* asks the system for memory, but only while the newest filter is full.
    pub fn is_full(&self) -> bool {
        self.filters.newest().is_full() && !self.next().is_some_and(Partitions::is_available)
    }

    /// What it was built from.
    pub fn shape(&self) -> ScalableShape {
        self.shape
    }

    /// Keys that were fresh when remembered.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// Keys that the first filter is planned for.
    pub fn capacity(&self) -> u64 {
        self.shape.capacity
    }

    /// Filters there are.
    pub fn filters(&self) -> usize {
        self.filters.len()
    }

    /// How often it grew.
    pub fn grown(&self) -> u64 {
        self.filters.last()
    }

    pub(crate) fn read(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        let (capacity, fpr) = (input.u64()?, input.f64()?);
        let (growth, tightening) = (input.u32()?, input.f64()?);
        let shape = ScalableShape { capacity, fpr, growth, tightening };
        let (limit, keys, grown) = (input.u64()?, input.count()?, input.count()?);
        let impossible = SnapshotError::Invalid("a scalable Bloom filter of an impossible shape");
        shape.check().map_err(|_| impossible.clone())?;
        let size = |number| shape.filter(number).ok_or(impossible.clone());
        let mut filters = Chain::new(Partitioned::read(input, size(0)?)?);
        for number in 1..=grown {
            let next = Partitioned::read(input, size(number)?)?;
            if !filters.newest().is_full() {
                return Err(SnapshotError::Invalid("a filter that is followed before it is full"));
            }
            let no_memory = |_| SnapshotError::Invalid("more filters than memory holds");
            filters.push(next).map_err(no_memory)?;
        }
        let set = filters.oldest_first().map(Partitioned::set).sum();
        // A fresh key sets a bit at least, and one in each partition at most.
        if !(keys..=keys.saturating_mul(64)).contains(&set) {
            return Err(SnapshotError::Invalid("more or fewer bits set than so many keys set"));
        }
        Ok(Self { filters, shape, keys, limit })
    }
}

impl Recipe for ScalableBloom {
    type Table = Self;
    /// And the most bytes that it grows to.
    type Size = (ScalableShape, u64);

    const WINDOWS: Windows = Windows::Forever;
    const GROWS: bool = true;
    const KEEPS_ITS_RATE: bool = true;

    fn size(spec: &Spec, capacity: u64, fpr: f64) -> Result<Self::Size, PlanError> {
        Ok((ScalableShape::for_keys(capacity, fpr), spec.limit_of_growth()))
    }

    fn contract((shape, _): &Self::Size) -> Contract {
        Contract::forever(shape.capacity)
    }

    fn memory((shape, _): &Self::Size) -> Option<u64> {
        shape.memory()
    }

    fn cell_bits_and_hashes((shape, _): &Self::Size) -> (u32, u32) {
        (1, shape.hashes(0))
    }

    fn build((shape, limit): Self::Size) -> Result<Self, PlanError> {
        Ok(Self::new(shape)?.limit(limit))
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        Self::read(input)
    }
}

impl crate::filter::sealed::Sealed for ScalableBloom {}

impl Filter for ScalableBloom {
    fn contains(&self, digest: Digest, _now: Tick) -> bool {
        self.holds(digest)
    }

    /// Of all filters together, while it is not full.
    fn fpr(&self) -> f64 {
        self.shape.fpr
    }

    /// `1 - Π (1 - fill^k)` over the filters, their fills counted.
    fn estimated_fpr(&self) -> f64 {
        compound(self.filters.oldest_first().map(Partitioned::rate))
    }

    /// Counted: the share of bits that are set.
    fn fill(&self) -> f64 {
        let set: u64 = self.filters.oldest_first().map(Partitioned::set).sum();
        let bits: u64 = self.filters.oldest_first().map(Partitioned::len).sum();
        set as f64 / bits as f64
    }

    fn memory(&self) -> usize {
        self.filters.memory(Partitioned::memory)
    }
}

impl Table for ScalableBloom {
    #[inline]
    fn observe(&mut self, digest: Digest, _now: Tick) -> Verdict {
        Self::observe(self, digest)
    }

    fn is_full(&self) -> bool {
        Self::is_full(self)
    }

    fn clear(&mut self) {
        self.filters.start_over(Partitioned::clear);
        self.keys = 0;
    }

    fn keys_now(&self) -> u64 {
        self.keys()
    }

    fn prefetch(&self, digest: Digest) {
        self.filters.newest().prefetch(in_filter(digest, self.filters.last()));
    }

    fn capacity(&self) -> u64 {
        Self::capacity(self)
    }

    fn capacity_grown_to(&self) -> u64 {
        let times = (0..=self.filters.last() as u32)
            .map(|n| u64::from(self.shape.growth).saturating_pow(n));
        times.fold(0, |keys, times| self.shape.capacity.saturating_mul(times).saturating_add(keys))
    }

    fn overload(&self) -> Overload {
        Overload { grown: Self::grown(self), ..Overload::default() }
    }

    fn write(&self, out: &mut Writer<'_>) {
        out.u64(self.shape.capacity);
        out.f64(self.shape.fpr);
        out.u32(self.shape.growth);
        out.f64(self.shape.tightening);
        out.u64(self.limit);
        out.u64(self.keys);
        out.u64(self.grown());
        for filter in self.filters.oldest_first() {
            filter.write(out);
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

    fn filled(shape: ScalableShape, keys: u64) -> ScalableBloom {
        let mut filter = ScalableBloom::new(shape).unwrap();
        for n in 0..keys {
            let _ = filter.observe(key(n));
        }
        filter
    }

    const SHAPE: ScalableShape =
        ScalableShape { capacity: 3, fpr: 0.01, growth: 2, tightening: 0.85 };

    /// Each filter is within its share at any moment, and so all are within the whole.
    #[test]
    fn every_filter_keeps_its_share() {
        for fpr in [0.9, 0.1, 1e-3, 1e-9] {
            let shape = ScalableShape { fpr, ..SHAPE };
            let mut filter = ScalableBloom::new(shape).unwrap();
            for n in 0..3_000 {
                let _ = filter.observe(key(n));
                assert!(filter.estimated_fpr() <= fpr);
            }
            for (number, part) in filter.filters.newest_first() {
                let share = fpr * 0.15 * libm::pow(0.85, number as f64);
                assert!(part.rate() <= share, "{fpr} {number}");
            }
            // Larger filters, and none of them before its time.
            assert!((5..12).contains(&filter.filters()), "{fpr} {}", filter.filters());
        }
    }

    #[test]
    fn shapes_that_cannot_be() {
        for fpr in [0.0, 1.0, -1.0, f64::NAN, f64::INFINITY] {
            let result = ScalableBloom::new(ScalableShape { fpr, ..SHAPE });
            assert!(matches!(result, Err(PlanError::Fpr(_))), "{fpr}");
        }
        for shape in [
            ScalableShape { capacity: 0, ..SHAPE },
            ScalableShape { capacity: u64::MAX, ..SHAPE },
            ScalableShape { growth: 1, ..SHAPE },
            ScalableShape { growth: 17, ..SHAPE },
            ScalableShape { tightening: 1.0, ..SHAPE },
            ScalableShape { tightening: f64::NAN, ..SHAPE },
            ScalableShape { fpr: 1e-20, ..SHAPE },
        ] {
            assert!(matches!(ScalableBloom::new(shape), Err(PlanError::TooLarge(_))), "{shape:?}");
        }
    }

    proptest! {
        #[test]
        fn snapshots_are_read_back(
            capacity in 1u64..20, growth in 2u32..=4, keys in 0u64..300, limit in 0u64..4_000,
        ) {
            let shape = ScalableShape { capacity, growth, ..SHAPE };
            let mut filter = ScalableBloom::new(shape).unwrap().limit(limit);
            for n in 0..keys {
                let _ = filter.observe(key(n));
            }
            let body = body::written(|out| filter.write(out));
            prop_assert_eq!(body::read(&body, ScalableBloom::read), Ok(filter));
        }

        #[test]
        fn damaged_snapshots_do_no_harm(
            keys in 0u64..60, at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in 0usize..9,
        ) {
            let mut body = body::written(|out| filled(SHAPE, keys).write(out));
            let at = at.index(body.len().min(if cut > 4 { 56 } else { usize::MAX }));
            body[at] = byte;
            body.truncate(body.len() - cut.saturating_sub(6));
            if let Ok(mut filter) = body::read(&body, ScalableBloom::read) {
                filter = filter.limit(1 << 16);
                for n in 0..100 {
                    let _ = filter.observe(key(n));
                    prop_assert!(filter.contains(key(n), Tick(0)));
                }
                prop_assert!((0.0..=1.0).contains(&filter.estimated_fpr()));
                let _ = (filter.is_full(), filter.fill(), filter.memory());
            }
        }
    }
}
