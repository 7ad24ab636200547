//! Filters that follow each other: the newest takes keys, all are asked.

use crate::{Digest, PlanError};
use alloc::vec::Vec;
use core::iter;

/// A filter that takes keys, and those that were full before it. Number 0 is the oldest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chain<T> {
    newest: T,
    older: Vec<T>,
}

impl<T> Chain<T> {
    pub(crate) const fn new(first: T) -> Self {
        Self { newest: first, older: Vec::new() }
    }

    /// Puts a filter in front.
    ///
    /// # Errors
    /// [`PlanError::Unavailable`] when there is no memory to hold one more; nothing has changed.
    pub(crate) fn push(&mut self, filter: T) -> Result<(), PlanError> {
        // One at a time: a chain grows seldom, and what it allocates can so be told beforehand.
        self.older
            .try_reserve_exact(1)
            .map_err(|_| PlanError::Unavailable { bytes: Self::LINK })?;
        self.older.push(core::mem::replace(&mut self.newest, filter));
        Ok(())
    }

    /// Drops all but the oldest, which is to be cleared.
    pub(crate) fn start_over(&mut self, clear: impl FnOnce(&mut T)) {
        let older = core::mem::take(&mut self.older);
        if let Some(oldest) = older.into_iter().next() {
            self.newest = oldest;
        }
        clear(&mut self.newest);
    }

    /// Bytes that a chain takes for one more filter, in addition to those of the filter.
    pub(crate) const LINK: u64 = size_of::<T>() as u64;

    pub(crate) fn len(&self) -> usize {
        self.older.len() + 1
    }

    /// The number of the newest filter.
    pub(crate) fn last(&self) -> u64 {
        self.older.len() as u64
    }

    pub(crate) fn newest(&self) -> &T {
        &self.newest
    }

    pub(crate) fn newest_mut(&mut self) -> &mut T {
        &mut self.newest
    }

    pub(crate) fn oldest_first(&self) -> impl Iterator<Item = &T> {
        self.older.iter().chain(iter::once(&self.newest))
    }

    /// Each with its number. Keys are looked for in this order.
    pub(crate) fn newest_first(&self) -> impl Iterator<Item = (u64, &T)> {
        let older = self.older.iter().enumerate().rev();
        let newest = iter::once((self.last(), &self.newest));
        newest.chain(older.map(|(number, filter)| (number as u64, filter)))
    }

    /// Bytes allocated, given those of each filter.
    pub(crate) fn memory(&self, of: impl Fn(&T) -> usize) -> usize {
        self.older.capacity() * size_of::<T>() + self.oldest_first().map(of).sum::<usize>()
    }
}

/// The rate of filters that are asked one after the other, each with positions of its own.
pub(crate) fn compound(rates: impl Iterator<Item = f64>) -> f64 {
    // In logarithms, as 1 minus a product loses all digits of rates like 1e-12.
    -libm::expm1(rates.map(|rate| libm::log1p(-rate.min(1.0))).sum::<f64>())
}

/// The key as filter `number` sees it: with positions of its own.
///
/// Filters that hold the same key at positions scaled from one hash are copies of each other,
/// whatever their sizes: what is wrongly found in one is likely found in all, and rates that
/// should multiply, as those of an accommodative filter's buckets, do not. Rates of filters that
/// hold different keys add up at worst, but only positions of their own make the sum exact. So
/// each filter takes the next 64 of the key's endless series of probes: as many as any filter uses.
#[inline]
pub(crate) const fn in_filter(digest: Digest, number: u64) -> Digest {
    let passed = (digest.lo() | 1).wrapping_mul(number.wrapping_mul(64));
    Digest::new(digest.hi().wrapping_add(passed), digest.lo())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Digester;

    #[test]
    fn filters_take_the_next_probes_of_one_series() {
        let digest = Digester::new(0).digest(b"a");
        for number in [0, 1, 2, 77] {
            let all = digest.probes(1 << 40).skip(number * 64).take(64);
            assert!(all.eq(in_filter(digest, number as u64).probes(1 << 40).take(64)));
        }
    }

    #[test]
    fn numbers_follow_age() {
        let mut chain = Chain::new('a');
        chain.push('b').unwrap();
        chain.push('c').unwrap();
        assert!(chain.oldest_first().eq(&['a', 'b', 'c']));
        assert!(chain.newest_first().eq([(2, &'c'), (1, &'b'), (0, &'a')]));
        assert_eq!((chain.len(), chain.last(), *chain.newest()), (3, 2, 'c'));
    }

    #[test]
    fn small_rates_add_up() {
        assert!((compound([1e-15, 2e-15].into_iter()) - 3e-15).abs() < 1e-20);
        assert!((compound([0.5, 0.5].into_iter()) - 0.75).abs() < 1e-15);
        assert_eq!(compound([0.5, 1.0].into_iter()), 1.0);
    }
}
