//! Time an operation takes, when something else may run on the machine.

use std::time::Instant;

/// Times of many blocks of operations; the median stands for all.
///
/// A block that the scheduler interrupted does not move the median, as it would a mean.
#[derive(Clone, Debug, Default)]
pub struct Blocks {
    nanoseconds: Vec<f64>,
}

impl Blocks {
    /// Runs and times one block of so many operations.
    pub fn time<T>(&mut self, operations: usize, block: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = std::hint::black_box(block());
        let elapsed = start.elapsed();
        if operations > 0 {
            self.nanoseconds.push(elapsed.as_secs_f64() * 1e9 / operations as f64);
        }
        result
    }

    /// Nanoseconds an operation; 0 when nothing was timed.
    pub fn median(&self) -> f64 {
        let mut sorted = self.nanoseconds.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Blocks;

    #[test]
    fn the_median_ignores_an_interruption() {
        let blocks = Blocks { nanoseconds: vec![9.0, 1e9, 11.0, 10.0, 8.0] };
        assert_eq!(blocks.median(), 10.0);
        assert_eq!(Blocks::default().median(), 0.0);
        let mut timed = Blocks::default();
        assert_eq!(timed.time(3, || 7), 7);
        assert!(timed.median() > 0.0);
    }
}
