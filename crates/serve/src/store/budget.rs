//! The memory that all filters together may take.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A limit on memory, and how much of it is in use.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: u64,
    used: AtomicU64,
}

impl Budget {
    pub(crate) fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicU64::new(0) })
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

    /// Takes so many bytes, if they are left.
    pub(crate) fn take(self: &Arc<Self>, bytes: u64) -> Option<Share> {
        let within = |used: u64| used.checked_add(bytes).filter(|&sum| sum <= self.limit);
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
