//! Time an operation takes, when something else may run on the machine.

use std::time::Instant;

/// Times of many blocks of operations; one of them stands for all.
///
/// A block that the scheduler interrupted does not move a median, as it would a mean.
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

    /// Nanoseconds an operation, the median; 0 when nothing was timed.
    pub fn median(&self) -> f64 {
        self.at(2)
    }

    /// What a tenth of the blocks did not exceed: where all blocks do alike, and something else runs
    /// for longer than half of them.
    pub fn quiet(&self) -> f64 {
        self.at(10)
    }

    /// The value that is one `part`-th from below.
    fn at(&self, part: usize) -> f64 {
        let mut sorted = self.nanoseconds.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / part).copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Blocks;

    #[test]
    fn the_median_ignores_an_interruption() {
        let blocks = Blocks { nanoseconds: vec![9.0, 1e9, 11.0, 10.0, 8.0] };
        assert_eq!((blocks.median(), blocks.quiet()), (10.0, 8.0));
        assert_eq!(Blocks::default().median(), 0.0);
        let mut timed = Blocks::default();
        assert_eq!(timed.time(3, || 7), 7);
        assert!(timed.median() > 0.0);
    }
}
