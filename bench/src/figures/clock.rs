//! Time an operation takes, when something else may run on the machine.

use std::time::Instant;

/// Seconds that this thread had a processor for: what else runs does not count, except through the
/// memory and the caches it shares. Reading it takes a system call.
#[cfg(unix)]
pub fn processor() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Seconds so far; the processor's are not to be had.
#[cfg(not(unix))]
pub fn processor() -> f64 {
    use std::sync::LazyLock;
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_secs_f64()
}

/// What reading [`processor`] twice adds to the time between, in seconds: the median of many.
pub fn overhead() -> f64 {
    let mut times: Vec<f64> = (0..1_001)
        .map(|_| {
            let start = processor();
            processor() - start
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Times of many blocks of operations; one of them stands for all.
///
/// A block that the scheduler interrupted does not move a median, as it would a mean.
#[derive(Clone, Debug, Default)]
pub struct Blocks {
    nanoseconds: Vec<f64>,
}

impl Blocks {
    /// Runs and times one block of this many operations.
    pub fn time<T>(&mut self, operations: usize, block: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = std::hint::black_box(block());
        let elapsed = start.elapsed();
        if operations > 0 {
            self.nanoseconds.push(elapsed.as_secs_f64() * 1e9 / operations as f64);
        }
        result
    }

    /// The same by [`processor`], for blocks that take far longer than reading that.
    pub fn time_processor<T>(&mut self, operations: usize, block: impl FnOnce() -> T) -> T {
        let start = processor();
        let result = std::hint::black_box(block());
        let elapsed = processor() - start;
        if operations > 0 {
            self.nanoseconds.push(elapsed * 1e9 / operations as f64);
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
    use super::{Blocks, overhead, processor};

    #[test]
    fn the_processors_clock_goes_on_with_work_and_costs_little() {
        let start = processor();
        let sum: u64 = (0..10_000_000_u64).map(|i| std::hint::black_box(i) & 1).sum();
        assert!(processor() > start && sum > 0);
        assert!(overhead() < 1e-4);
    }

    #[test]
    fn the_median_ignores_an_interruption() {
        let blocks = Blocks { nanoseconds: vec![9.0, 1e9, 11.0, 10.0, 8.0] };
        assert_eq!((blocks.median(), blocks.quiet()), (10.0, 8.0));
        assert_eq!(Blocks::default().median(), 0.0);
        let mut timed = Blocks::default();
        assert_eq!(timed.time(3, || 7), 7);
        assert!(timed.median() > 0.0);
        let mut timed = Blocks::default();
        let work = || (0..1_000_000_u64).map(|i| std::hint::black_box(i) & 1).sum::<u64>();
        assert_eq!(timed.time_processor(1, work), 500_000);
        assert!(timed.median() > 0.0);
    }
}
