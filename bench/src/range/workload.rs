//! Keys that arrive, and intervals that are asked for among them.

use crate::workload::mix;
use crate::workload::zipf::Zipf;
use oorandom::Rand64;
use std::collections::VecDeque;

/// Which keys arrive, and where the intervals are that hold none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Keys anywhere, intervals anywhere.
    Uniform,
    /// Keys by Zipf's law, z = 1, over 10^8 places far apart; intervals in the gap behind a recent
    /// key, so that most are asked for where the same keys come again and again.
    Zipf,
    /// Runs of a thousand consecutive keys, as serial numbers come; intervals close behind a run.
    Runs,
    /// Keys anywhere; intervals that begin with one of the eight numbers behind a key.
    Correlated,
}

/// Keys of a run.
const RUN: u64 = 1000;

/// Places of Zipf's law, and how far apart they are.
const PLACES: u64 = 100_000_000;
const APART: u64 = u64::MAX / PLACES;

impl Workload {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Uniform, Self::Zipf, Self::Runs, Self::Correlated];

    /// As tables write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Zipf => "zipf",
            Self::Runs => "runs",
            Self::Correlated => "correlated",
        }
    }

    /// What follows a key that an interval without one could begin with: at most this many numbers.
    fn gap(self, length: u64) -> u64 {
        match self {
            Self::Uniform => 0,
            Self::Zipf => APART - length.min(APART - 1),
            Self::Runs => length.max(RUN),
            Self::Correlated => 8,
        }
    }
}

/// The stream, and the newest of its keys.
pub struct Stream {
    workload: Workload,
    zipf: Zipf,
    next: u64,
    /// The newest keys, oldest first: those of the window and its slack.
    recent: VecDeque<u64>,
    keep: usize,
}

impl Stream {
    /// A stream of which the last `keep` keys are kept.
    pub fn new(workload: Workload, keep: usize) -> Self {
        let zipf = Zipf::new(PLACES, 1.0, 2026);
        Self { workload, zipf, next: 0, recent: VecDeque::with_capacity(keep + 1), keep }
    }

    /// The next keys, in the place of those that are there.
    pub fn fill(&mut self, keys: &mut Vec<u64>, count: usize) {
        keys.clear();
        for _ in 0..count {
            let number = self.next;
            self.next += 1;
            let key = match self.workload {
                Workload::Uniform | Workload::Correlated => mix(number),
                Workload::Zipf => self.zipf.next().unwrap_or(1) * APART,
                // Not so near the end that a run would pass it.
                Workload::Runs => (mix(number / RUN) >> 1) + number % RUN,
            };
            keys.push(key);
            if self.recent.len() == self.keep {
                self.recent.pop_front();
            }
            self.recent.push_back(key);
        }
    }

    /// The newest `n` keys, sorted.
    pub fn newest(&self, n: usize) -> Sorted {
        let skip = self.recent.len().saturating_sub(n);
        let mut keys: Vec<u64> = self.recent.iter().skip(skip).copied().collect();
        keys.sort_unstable();
        Sorted(keys)
    }

    /// The newest `n` keys in the order in which they came.
    pub fn in_order(&self, n: usize) -> impl Iterator<Item = u64> + '_ {
        self.recent.iter().skip(self.recent.len().saturating_sub(n)).copied()
    }

    fn any(&self, n: usize, random: &mut Rand64) -> u64 {
        let n = n.min(self.recent.len()) as u64;
        let back = random.rand_range(0..n.max(1)) as usize;
        let at = self.recent.len().saturating_sub(1 + back);
        self.recent.get(at).copied().unwrap_or(0)
    }

    /// Where an interval of this length may begin so that it holds no key.
    pub fn empty(&self, length: u64, random: &mut Rand64) -> u64 {
        let last = u64::MAX - length;
        let start = match self.workload {
            Workload::Uniform => random.rand_u64(),
            Workload::Runs => {
                // The end of a run, of those that have come to one.
                let runs = (self.recent.len() as u64 / RUN).min(self.next / RUN).max(1);
                let run = (self.next / RUN).saturating_sub(1 + random.rand_range(0..runs));
                let behind = random.rand_range(0..self.workload.gap(length));
                (mix(run) >> 1) + RUN + behind
            }
            Workload::Zipf | Workload::Correlated => {
                let behind = random.rand_range(0..self.workload.gap(length));
                self.any(self.keep, random).saturating_add(1 + behind)
            }
        };
        start.min(last)
    }

    /// Where an interval of this length begins that holds one of the newest `n` keys.
    pub fn full(&self, n: usize, length: u64, random: &mut Rand64) -> u64 {
        let key = self.any(n, random);
        key.saturating_sub(random.rand_range(0..length)).min(u64::MAX - length)
    }
}

/// Keys in order: what intervals truly hold.
pub struct Sorted(Vec<u64>);

impl Sorted {
    /// Is any of them in the interval of this length that begins here?
    pub fn any(&self, start: u64, length: u64) -> bool {
        let at = self.0.partition_point(|&key| key < start);
        self.0.get(at).is_some_and(|&key| key - start < length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_what_they_are_said_to_be() {
        for workload in Workload::ALL {
            let mut stream = Stream::new(workload, 4_500);
            stream.fill(&mut Vec::new(), 20_000);
            let (window, all) = (stream.newest(4_000), stream.newest(4_500));
            let mut random = Rand64::new(1);
            for length in [1, 1_000, 1_000_000_000] {
                let starts: Vec<u64> =
                    (0..500).map(|_| stream.full(4_000, length, &mut random)).collect();
                assert!(starts.iter().all(|&start| window.any(start, length)), "{workload:?}");
                let starts: Vec<u64> =
                    (0..500).map(|_| stream.empty(length, &mut random)).collect();
                let empty = starts.iter().filter(|&&start| !all.any(start, length)).count();
                assert!(empty > 400, "{workload:?} {length}: {empty} of 500");
            }
        }
    }

    #[test]
    fn sorted_keys_are_found() {
        let sorted = Sorted(vec![5, 9, u64::MAX]);
        assert!(sorted.any(5, 1) && sorted.any(0, 6) && !sorted.any(0, 5) && !sorted.any(6, 3));
        assert!(sorted.any(u64::MAX - 1, 2) && !sorted.any(10, 1_000));
    }
}
