//! The slowest single arrival among many.

use super::adapter::{Adapter, Built, Candidate};
use super::stream::{BLOCK, Block, Key, Stream};
use std::collections::HashMap;

/// Arrivals that took longer than this are remembered one by one.
const SLOW: u64 = 20_000;

/// What no arrival is to exceed.
pub const ALLOWED: u64 = 50_000;

/// Nanoseconds of single arrivals, the reading of the clock included.
#[derive(Clone, Debug)]
pub struct Latency {
    /// Half took at most so long.
    pub median: u64,
    /// 99 of 100.
    pub p99: u64,
    /// 9999 of 10 000.
    pub p9999: u64,
    /// The slowest.
    pub slowest: u64,
    /// How many took more than [`ALLOWED`].
    pub over: u64,
    /// The slowest in both of two equal runs at the same arrival, where above 20 µs: what the machine
    /// does comes at another time, what the structure does at the same.
    pub repeated: Option<u64>,
}

/// Does nothing: what remains is the clock and the machine.
struct Nothing;

impl Adapter for Nothing {
    #[inline]
    fn observe(&mut self, key: Key) -> bool {
        std::hint::black_box(key.id) == 0
    }

    #[inline]
    fn contains(&self, _key: Key) -> bool {
        false
    }
}

/// The control: the loop with nothing in it.
pub fn control(n: u64, arrivals: u64) -> Result<Latency, String> {
    measure(&|| Ok(Box::new(Nothing)), n, arrivals)
}

/// Fills a window, and then times arrivals of which half repeat, twice over.
///
/// # Errors
/// Why the structure cannot be built.
pub fn latency(candidate: &Candidate, n: u64, fpr: f64, arrivals: u64) -> Result<Latency, String> {
    measure(&|| (candidate.build)(n, fpr), n, arrivals)
}

fn measure(build: &dyn Fn() -> Built, n: u64, arrivals: u64) -> Result<Latency, String> {
    let mut first = Times::default();
    run(build, n, arrivals, |at, time| first.note(at, time))?;
    let mut repeated: Option<u64> = None;
    run(build, n, arrivals, |at, time| {
        if time > SLOW
            && let Some(&before) = first.slow.get(&at)
        {
            repeated = repeated.max(Some(before.min(time)));
        }
    })?;
    Ok(Latency {
        median: first.quantile(0.5),
        p99: first.quantile(0.99),
        p9999: first.quantile(0.9999),
        slowest: first.slowest,
        over: first.over,
        repeated,
    })
}

fn run(
    build: &dyn Fn() -> Built,
    n: u64,
    arrivals: u64,
    mut note: impl FnMut(u64, u64),
) -> Result<(), String> {
    let mut adapter = build()?;
    let filled = n + n / 2;
    let stream = Stream { mixed_from: filled, ..Stream::fresh(n) };
    let (mut block, mut times, mut at) = (Block::default(), Vec::with_capacity(BLOCK), 0);
    while at < filled {
        let end = (at + BLOCK as u64).min(filled);
        block.fill((at..end).map(|arrival| stream.index(arrival)));
        adapter.observe_each(&block);
        at = end;
    }
    while at < filled + arrivals {
        let end = (at + BLOCK as u64).min(filled + arrivals);
        block.fill((at..end).map(|arrival| stream.index(arrival)));
        adapter.time_each(&block, &mut times);
        for (arrival, &time) in (at..).zip(&times) {
            note(arrival, time);
        }
        at = end;
    }
    Ok(())
}

/// A histogram with steps of a thirty-second of each power of two.
#[derive(Clone, Debug, Default)]
struct Times {
    counts: Vec<u64>,
    total: u64,
    slowest: u64,
    over: u64,
    slow: HashMap<u64, u64>,
}

impl Times {
    fn note(&mut self, arrival: u64, time: u64) {
        let step = Self::step(time);
        if step >= self.counts.len() {
            self.counts.resize(step + 1, 0);
        }
        self.counts[step] += 1;
        self.total += 1;
        self.slowest = self.slowest.max(time);
        self.over += u64::from(time > ALLOWED);
        if time > SLOW {
            self.slow.insert(arrival, time);
        }
    }

    fn step(time: u64) -> usize {
        let power = time.max(32).ilog2() - 5;
        (u64::from(power) * 32 + (time >> power)) as usize
    }

    /// The largest time of a step.
    fn end(step: usize) -> u64 {
        if step < 64 {
            return step as u64;
        }
        let power = step as u64 / 32 - 1;
        ((step as u64 - power * 32 + 1) << power) - 1
    }

    fn quantile(&self, share: f64) -> u64 {
        let wanted = (share * self.total as f64).ceil() as u64;
        let mut sum = 0;
        for (step, &count) in self.counts.iter().enumerate() {
            sum += count;
            if sum >= wanted {
                return Self::end(step).min(self.slowest);
            }
        }
        self.slowest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_a_step() {
        let mut times = Times::default();
        (1..=10_000).for_each(|time| times.note(time, time));
        for (share, exact) in [(0.5, 5_000.0), (0.99, 9_900.0), (0.001, 10.0), (1.0, 10_000.0)] {
            let found = times.quantile(share) as f64;
            assert!(found >= exact && found <= exact * 1.04, "{share}: {found}");
        }
        for time in (0..5_000).chain([1 << 20, (1 << 40) + 12_345]) {
            let step = Times::step(time);
            assert!(
                Times::end(step) >= time && (step == 0 || Times::end(step - 1) < time),
                "{time}"
            );
        }
    }

    #[test]
    fn a_stall_that_comes_again_is_found() {
        struct Stalls(u64);
        impl Adapter for Stalls {
            fn observe(&mut self, _key: Key) -> bool {
                self.0 += 1;
                if self.0 == 2_000 {
                    std::thread::sleep(std::time::Duration::from_millis(2));
                }
                false
            }
            fn contains(&self, _key: Key) -> bool {
                false
            }
        }
        let stalled = measure(&|| Ok(Box::new(Stalls(0))), 1_000, 2_000).unwrap();
        assert!(stalled.repeated.is_some_and(|time| time >= 2_000_000), "{stalled:?}");
        assert!(stalled.over >= 1 && stalled.slowest >= 2_000_000);
    }
}
