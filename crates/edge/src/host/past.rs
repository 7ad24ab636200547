//! What was kept in periods that are over: what a device has buffered, or the broker has kept, may come still.

use crate::element::Element;
use alloc::collections::BTreeMap;

/// How many readings of each element were kept in each period that is over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Past {
    pub(super) kept: BTreeMap<(u64, Element), u32>,
}

impl Past {
    /// How many of that element were kept in that period.
    pub(super) fn count(&self, period: u64, element: &Element) -> u32 {
        self.kept.get(&(period, *element)).copied().unwrap_or(0)
    }

    /// Is there no room for another element? Of each period, as much as fits is remembered.
    pub(super) fn is_full_for(&self, period: u64, element: &Element, most: usize) -> bool {
        self.kept.len() >= most && !self.kept.contains_key(&(period, *element))
    }

    /// Notes that readings were kept.
    pub(super) fn add(&mut self, period: u64, element: Element, count: u32) {
        let kept = self.kept.entry((period, element)).or_default();
        *kept = kept.saturating_add(count);
    }

    /// Forgets periods before that one.
    pub(super) fn forget(&mut self, oldest: u64) {
        while self.kept.first_key_value().is_some_and(|(&(period, _), _)| period < oldest) {
            self.kept.pop_first();
        }
    }
}
