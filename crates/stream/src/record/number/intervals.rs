//! A set of numbers given by intervals.

use std::ops::RangeInclusive;

/// Intervals of numbers, of which only one thing is asked: is a number in any of them?
///
/// They are kept sorted and merged, so that they do not overlap and a binary search finds the one
/// that can hold a number. That is all there is to do; an interval tree, as crates have them, answers
/// which of several overlapping ones hold it, and takes half-open ends, which leave out the largest
/// number.
///
/// *Cost:* 32 bytes an interval; `log2` of their number in steps a question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Intervals(Vec<(u128, u128)>);

impl FromIterator<RangeInclusive<u128>> for Intervals {
    fn from_iter<T: IntoIterator<Item = RangeInclusive<u128>>>(intervals: T) -> Self {
        let ends = |range: RangeInclusive<u128>| (!range.is_empty()).then(|| range.into_inner());
        let mut all: Vec<_> = intervals.into_iter().filter_map(ends).collect();
        all.sort_unstable();
        let mut merged: Vec<(u128, u128)> = Vec::with_capacity(all.len());
        for (first, last) in all {
            match merged.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => {
                    before.1 = before.1.max(last);
                }
                _ => merged.push((first, last)),
            }
        }
        merged.shrink_to_fit();
        Self(merged)
    }
}

impl Intervals {
    /// Is the number in one of them?
    pub fn contains(&self, number: u128) -> bool {
        let after = self.0.partition_point(|&(first, _)| first <= number);
        let before = after.checked_sub(1).and_then(|at| self.0.get(at));
        before.is_some_and(|&(_, last)| number <= last)
    }

    /// How many there are, overlapping and touching ones counted as one.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
