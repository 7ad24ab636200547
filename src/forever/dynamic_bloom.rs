//! A Bloom filter that grows by filters of the same size.

use super::Bloom;
use super::chain::{Chain, compound, in_filter};
use crate::bits::is_available;
use crate::bits::packed::Packed;
use crate::codec::{Reader, Writer};
use crate::plan::formulas::{cells_for, hashes_for};
use crate::table::{Contract, Recipe, Table, Windows};
use crate::{Digest, Filter, Overload, PlanError, SnapshotError, Spec, Tick, Verdict};

/// Bloom filters of one size: when the newest holds the keys it was planned for, another follows.
///
/// # Guarantee
/// A key once remembered is always found. Another is found with the probability
/// [`DynamicBloom::rate`] gives: `1 - (1 - f)^(r-1) · (1 - f_t)`, which has no bound below 1, so
/// [`Filter::fpr`] is that of the first filter and [`Filter::estimated_fpr`] rises above it with
/// the first growth. Keys never expire. [`ScalableBloom`](super::ScalableBloom) keeps a rate.
///
/// # Cost
/// `r` times that of a [`Bloom`] filter of `m` bits, in time and in space, after `r · capacity`
/// keys: newest filter first, and a fresh key is asked of all.
///
/// # Errors
/// [`DynamicBloom::new`] alone. Where memory ends it continues in the newest filter:
/// [`DynamicBloom::is_full`].
///
/// # Example
/// ```
/// use lately::{Digester, Verdict, forever::DynamicBloom};
/// let mut seen = DynamicBloom::new(1_000, 7, 100)?;
/// let digester = Digester::new(0);
/// for key in 0..250u64 {
///     let _ = seen.observe(digester.digest(&key.to_le_bytes()));
/// }
/// assert_eq!(seen.filters(), 3);
/// assert_eq!(seen.observe(digester.digest(&7u64.to_le_bytes())), Verdict::Duplicate);
/// # Ok::<(), lately::PlanError>(())
/// ```
///
/// # Reference
/// D. Guo, J. Wu, H. Chen, Y. Yuan, X. Luo, "The dynamic Bloom filters", IEEE TKDE 22(1), 2010,
/// doi:10.1109/TKDE.2009.57, section 3.
///
/// # Differs from the paper
/// A key that an older filter is found to hold, rightly or not, is not put in again. Each filter
/// takes positions of its own; with those of the paper, equal in all, the formula holds as well,
/// as its filters hold different keys. No deletion: that needs counters, and forgets keys.
#[derive(Clone, Debug, PartialEq)]
pub struct DynamicBloom {
    filters: Chain<Bloom>,
    /// Bits of a filter, 1 to 2^56.
    bits: u64,
    /// Bits a key sets in a filter, 1 to 64.
    hashes: u32,
    /// The most bytes it may allocate.
    limit: u64,
}

impl DynamicBloom {
    /// Filters of `bits` bits of which each key sets `hashes`, each full after `capacity` keys.
    ///
    /// # Errors
    /// [`PlanError::TooLarge`] when a number is 0, `hashes` above 64 or `bits` beyond any
    /// memory; [`PlanError::Unavailable`] when there is no memory for the first.
    pub fn new(bits: u64, hashes: u32, capacity: u64) -> Result<Self, PlanError> {
        if capacity == 0 {
            return Err(PlanError::TooLarge("a dynamic Bloom filter grows after 1 key or more"));
        }
        let filters = Chain::new(Bloom::new(bits, hashes, capacity)?);
        Ok(Self { filters, bits, hashes, limit: u64::MAX })
    }

    /// The most bytes it may allocate. What it has already is not given back.
    #[must_use]
    pub fn limit(self, bytes: u64) -> Self {
        Self { limit: bytes, ..self }
    }

    /// Bytes that so many filters of so many bits allocate.
    pub(crate) fn memory_of(filters: u64, bits: u64) -> Option<u64> {
        let words = Packed::words_for(bits, 1)? as u64;
        (words * 8)
            .checked_mul(filters)?
            .checked_add(Chain::<Bloom>::LINK * filters.saturating_sub(1))
    }

    /// The paper's formula: the rate of `full` filters at rate `f` and one at rate `f_t`.
    pub fn rate(full: u32, f: f64, f_t: f64) -> f64 {
        let newest = libm::log1p(-f_t.min(1.0));
        let older = if full == 0 { 0.0 } else { f64::from(full) * libm::log1p(-f.min(1.0)) };
        -libm::expm1(older + newest)
    }

    fn holds(&self, digest: Digest) -> bool {
        let mut filters = self.filters.newest_first();
        filters.any(|(number, filter)| filter.contains(in_filter(digest, number), Tick(0)))
    }

    /// One arrival: was the key seen before? It is now.
    pub fn observe(&mut self, digest: Digest) -> Verdict {
        if self.holds(digest) {
            return Verdict::Duplicate;
        }
        if self.filters.newest().is_full() && self.fits() {
            // Without memory the newest filter takes the key, as beyond the limit.
            let _ = self.grow();
        }
        let number = self.filters.last();
        self.filters.newest_mut().observe(in_filter(digest, number))
    }

    /// Does the limit allow one more filter?
    fn fits(&self) -> bool {
        let words = Packed::words_for(self.bits, 1).map_or(u64::MAX, |words| words as u64);
        let needed = words.saturating_mul(8).saturating_add(Chain::<Bloom>::LINK);
        needed.saturating_add(self.memory() as u64) <= self.limit
    }

    fn grow(&mut self) -> Result<(), PlanError> {
        self.filters.push(Bloom::new(self.bits, self.hashes, self.capacity())?)
    }

    /// Is the newest filter full, with no room to add one? A key is still taken then, and the
    /// rate rises faster.
    ///
    /// *Cost:* asks the system for memory, but only while the newest filter is full.
    pub fn is_full(&self) -> bool {
        let has_room = || {
            let words = Packed::words_for(self.bits, 1);
            self.fits() && words.is_some_and(|words| is_available(words).is_ok())
        };
        self.filters.newest().is_full() && !has_room()
    }

    /// Keys that were fresh when remembered.
    pub fn keys(&self) -> u64 {
        self.filters.oldest_first().fold(0, |keys, filter| keys.saturating_add(filter.keys()))
    }

    /// Keys that one filter is planned for.
    pub fn capacity(&self) -> u64 {
        self.filters.newest().capacity()
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
        let (limit, filters) = (input.u64()?, input.count()?);
        let first = Bloom::read(input)?;
        let (bits, hashes, capacity) = (first.bits(), first.hashes(), first.capacity());
        if filters == 0 || capacity == 0 {
            return Err(SnapshotError::Invalid("a dynamic Bloom filter of no filters or no keys"));
        }
        let mut dynamic = Self { filters: Chain::new(first), bits, hashes, limit };
        // Each is there before memory is taken for it, so their number needs no bound.
        for _ in 1..filters {
            let next = Bloom::read(input)?;
            let is_like_first =
                (next.bits(), next.hashes(), next.capacity()) == (bits, hashes, capacity);
            if !is_like_first || !dynamic.filters.newest().is_full() {
                return Err(SnapshotError::Invalid("filters that no dynamic Bloom filter has"));
            }
            let no_memory = |_| SnapshotError::Invalid("more filters than memory holds");
            dynamic.filters.push(next).map_err(no_memory)?;
        }
        Ok(dynamic)
    }
}

/// Filters that it grows to before another table takes its place: its rate has no bound.
const FILTERS: u64 = 8;

impl Recipe for DynamicBloom {
    type Table = Self;
    /// Bits, hashes and capacity of a filter; the most bytes of all.
    type Size = (u64, u32, u64, u64);

    const WINDOWS: Windows = Windows::Forever;
    const GROWS: bool = true;

    fn size(spec: &Spec, capacity: u64, fpr: f64) -> Result<Self::Size, PlanError> {
        // Its rate is the sum of all filters', so their number is planned for.
        let filters = if spec.grows() { FILTERS } else { 1 };
        let rate = fpr / filters as f64;
        let hashes = hashes_for(rate);
        let bits = cells_for(capacity as f64, hashes, rate, 0.0)?;
        let most = Self::memory_of(filters, bits).unwrap_or(u64::MAX);
        Ok((bits, hashes, capacity, most.min(spec.limit_of_growth())))
    }

    fn contract(&(_, _, capacity, _): &Self::Size) -> Contract {
        Contract::forever(capacity)
    }

    fn memory(&(bits, ..): &Self::Size) -> Option<u64> {
        Self::memory_of(1, bits)
    }

    fn cell_bits_and_hashes(&(_, hashes, ..): &Self::Size) -> (u32, u32) {
        (1, hashes)
    }

    fn build((bits, hashes, capacity, limit): Self::Size) -> Result<Self, PlanError> {
        Ok(Self::new(bits, hashes, capacity)?.limit(limit))
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        Self::read(input)
    }
}

impl crate::filter::sealed::Sealed for DynamicBloom {}

impl Filter for DynamicBloom {
    fn contains(&self, digest: Digest, _now: Tick) -> bool {
        self.holds(digest)
    }

    /// Of the first filter; it is not kept when others follow.
    fn fpr(&self) -> f64 {
        self.filters.newest().fpr()
    }

    /// The paper's formula, from the keys of each filter. It is low where a filter's own rate is
    /// beyond a few per cent: keys that were fresh set more bits than others.
    fn estimated_fpr(&self) -> f64 {
        compound(self.filters.oldest_first().map(Filter::estimated_fpr))
    }

    /// Counted: the share of bits that are set.
    fn fill(&self) -> f64 {
        let fills = self.filters.oldest_first().map(Filter::fill).sum::<f64>();
        fills / self.filters.len() as f64
    }

    fn memory(&self) -> usize {
        self.filters.memory(Filter::memory)
    }
}

impl Table for DynamicBloom {
    #[inline]
    fn observe(&mut self, digest: Digest, _now: Tick) -> Verdict {
        Self::observe(self, digest)
    }

    fn is_full(&self) -> bool {
        Self::is_full(self)
    }

    fn clear(&mut self) {
        self.filters.start_over(Table::clear);
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
        Self::capacity(self).saturating_mul(self.filters.len() as u64)
    }

    fn overload(&self) -> Overload {
        Overload { grown: Self::grown(self), ..Overload::default() }
    }

    fn write(&self, out: &mut Writer<'_>) {
        out.u64(self.limit);
        out.u64(self.filters.len() as u64);
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

    fn filled(capacity: u64, keys: u64, limit: u64) -> DynamicBloom {
        let mut filter = DynamicBloom::new(capacity * 10, 5, capacity).unwrap().limit(limit);
        for n in 0..keys {
            let _ = filter.observe(key(n));
        }
        filter
    }

    #[test]
    fn shapes_that_cannot_be() {
        for (bits, hashes, capacity) in
            [(0, 1, 1), (1, 0, 1), (1, 65, 1), (u64::MAX, 1, 1), (1, 1, 0)]
        {
            let result = DynamicBloom::new(bits, hashes, capacity);
            assert!(matches!(result, Err(PlanError::TooLarge(_))), "{bits} {hashes} {capacity}");
        }
    }

    #[test]
    fn the_formula_is_the_estimate() {
        let filter = filled(100, 730, u64::MAX);
        let (full, newest) = (filter.fpr(), filter.filters.newest().estimated_fpr());
        let formula = DynamicBloom::rate(filter.filters() as u32 - 1, full, newest);
        assert!((filter.estimated_fpr() - formula).abs() < 1e-12);
        assert!((DynamicBloom::rate(0, 1.0, 0.25) - 0.25).abs() < 1e-15);
        assert_eq!(DynamicBloom::rate(3, 1.0, 0.0), 1.0);
    }

    proptest! {
        #[test]
        fn snapshots_are_read_back(capacity in 1u64..20, keys in 0u64..300, limit in 0u64..4_000) {
            let filter = filled(capacity, keys, limit);
            let body = body::written(|out| filter.write(out));
            prop_assert_eq!(body::read(&body, DynamicBloom::read), Ok(filter));
        }

        #[test]
        fn damaged_snapshots_do_no_harm(
            keys in 0u64..60, at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in 0usize..9,
        ) {
            let mut body = body::written(|out| filled(5, keys, u64::MAX).write(out));
            let at = at.index(body.len().min(if cut > 4 { 44 } else { usize::MAX }));
            body[at] = byte;
            body.truncate(body.len() - cut.saturating_sub(6));
            if let Ok(mut filter) = body::read(&body, DynamicBloom::read) {
                filter = filter.limit(1 << 16);
                for n in 0..100 {
                    let _ = filter.observe(key(n));
                    prop_assert!(filter.contains(key(n), Tick(0)));
                }
                prop_assert!((0.0..=1.0).contains(&filter.estimated_fpr()));
                let _ = (filter.is_full(), filter.fill(), filter.memory(), filter.keys());
            }
        }
    }
}
