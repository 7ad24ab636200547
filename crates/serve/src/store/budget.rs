//! The memory that all filters together may take.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A limit on memory, and how much of it is in use.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: u64,
    used: AtomicU64,
    /// No sum is looked at yet.
    is_loading: AtomicBool,
}

impl Budget {
    pub(crate) fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicU64::new(0), is_loading: AtomicBool::new(false) })
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) fn left(&self) -> u64 {
        self.limit.saturating_sub(self.used())
    }

    /// While what was kept is taken up, the limit is that of each part: some are there together that never were, such as
    /// a filter as it was when it had grown, and one that was dropped before that.
    pub(crate) fn begin_loading(&self) {
        self.is_loading.store(true, Ordering::Relaxed);
    }

    /// Is what was kept being taken up?
    pub(crate) fn is_loading(&self) -> bool {
        self.is_loading.load(Ordering::Relaxed)
    }

    /// From here on the limit is that of the sum. Is it kept?
    pub(crate) fn end_loading(&self) -> bool {
        self.is_loading.store(false, Ordering::Relaxed);
        self.used() <= self.limit
    }

    /// Takes so many bytes, if they are left.
    pub(crate) fn take(self: &Arc<Self>, bytes: u64) -> Option<Share> {
        let is_loading = self.is_loading();
        let is_within = |sum: u64| if is_loading { bytes <= self.limit } else { sum <= self.limit };
        let within = |used: u64| used.checked_add(bytes).filter(|&sum| is_within(sum));
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within).ok()?;
        Some(Share { budget: Arc::clone(self), bytes })
    }
}

/// A part of the budget that is in use, until it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Share {
    /// Of nothing yet.
    pub(crate) fn none(budget: &Arc<Budget>) -> Self {
        Self { budget: Arc::clone(budget), bytes: 0 }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// All of it, of which nothing is left here.
    pub(crate) fn hand_over(&mut self) -> Self {
        Self { budget: Arc::clone(&self.budget), bytes: std::mem::take(&mut self.bytes) }
    }

    /// Takes so many bytes more, if they are left.
    pub(crate) fn extend(&mut self, bytes: u64) -> bool {
        let Some(mut more) = self.budget.take(bytes) else { return false };
        self.bytes += std::mem::take(&mut more.bytes);
        true
    }

    /// Makes it what is really in use.
    pub(crate) fn settle(&mut self, bytes: u64) {
        let used = &self.budget.used;
        if bytes >= self.bytes {
            used.fetch_add(bytes - self.bytes, Ordering::Relaxed);
        } else {
            used.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up() {
        let budget = Budget::new(100);
        let mut one = budget.take(60).unwrap();
        assert!(budget.take(41).is_none() && budget.take(u64::MAX).is_none());
        let two = budget.take(40).unwrap();
        assert_eq!((budget.used(), budget.left()), (100, 0));
        one.settle(10);
        assert_eq!(budget.left(), 50);
        one.settle(70);
        assert_eq!((budget.used(), budget.left()), (110, 0));
        one.settle(20);
        assert!(one.extend(40) && !one.extend(1));
        assert_eq!(budget.used(), 100);
        drop((one, two));
        assert_eq!(budget.used(), 0);
    }
}
