//! Counts by size.

use std::sync::atomic::{AtomicU64, Ordering};

/// How often values were at most so large.
#[derive(Debug)]
pub(crate) struct Histogram {
    /// The largest value of each class, ascending; what is larger than all has a class of its own.
    bounds: &'static [u64],
    counts: Vec<AtomicU64>,
    sum: AtomicU64,
}

impl Histogram {
    pub(crate) fn new(bounds: &'static [u64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds, counts, sum: AtomicU64::new(0) }
    }

    pub(crate) fn record(&self, value: u64) {
        let class = self.bounds.partition_point(|&bound| bound < value);
        self.counts[class].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    pub(crate) fn bounds(&self) -> &'static [u64] {
        self.bounds
    }

    /// The count of each class.
    pub(crate) fn counts(&self) -> Vec<u64> {
        self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }

    pub(crate) fn sum(&self) -> u64 {
        self.sum.load(Ordering::Relaxed)
    }
}

/// The bound of the class in which this share of all values is reached; 0 where there are none.
pub(crate) fn quantile(bounds: &[u64], counts: &[u64], share: f64) -> u64 {
    let all: u64 = counts.iter().sum();
    let wanted = (all as f64 * share).ceil() as u64;
    let mut so_far = 0;
    for (class, count) in counts.iter().enumerate() {
        so_far += count;
        if so_far >= wanted && all > 0 {
            return bounds.get(class).or(bounds.last()).copied().unwrap_or(0);
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_and_quantiles() {
        let histogram = Histogram::new(&[1, 10, 100]);
        [0, 1, 2, 10, 11, 1_000].into_iter().for_each(|value| histogram.record(value));
        assert_eq!((histogram.counts(), histogram.sum()), (vec![2, 2, 1, 1], 1_024));
        let of = |share| quantile(histogram.bounds(), &histogram.counts(), share);
        assert_eq!((of(0.3), of(0.5), of(0.8), of(1.0)), (1, 10, 100, 100));
        assert_eq!(quantile(&[1], &[0, 0], 0.5), 0);
    }
}
