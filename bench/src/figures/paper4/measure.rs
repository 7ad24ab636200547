//! Numbers, intervals with the exact answers, and one structure over both.

use super::structures::{RangeUnderTest, SLACK};
use crate::figures::clock::Blocks;
use crate::oracle::LiveNumbers;
use crate::workload::zipf::Zipf;
use lately::Tick;
use oorandom::Rand64;

/// Numbers to choose from: 1 to this.
pub const UNIVERSE: u64 = 100_000_000;

/// Which law the numbers follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// Each number as likely.
    Uniform,
    /// Zipf's, with an exponent of 1.
    Zipf,
}

impl Law {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Uniform, Self::Zipf];

    /// The paper's name for the data.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uniform => "UNIFORM",
            Self::Zipf => "NON-UNIFORM",
        }
    }

    /// This many numbers.
    pub fn numbers(self, count: usize) -> Vec<u32> {
        let exponent = if self == Self::Uniform { 0.0 } else { 1.0 };
        let numbers = Zipf::new(UNIVERSE, exponent, 2019).take(count);
        numbers.map(|number| number as u32).collect()
    }
}

/// A stream in turns: some numbers arrive, then some intervals are asked for.
pub struct Trial<'a> {
    numbers: &'a [u32],
    window: usize,
    length: u64,
    /// Where the intervals begin.
    starts: Vec<u32>,
    /// Which of them hold a number of the window,
    truth: Vec<bool>,
    /// and which one of it or of the arrivals before it that a slack lets be reported.
    slack: Vec<bool>,
    turns: usize,
}

/// Turns of a stream: questions are asked of as many different windows.
const TURNS: usize = 1_000;

impl<'a> Trial<'a> {
    /// This many random intervals over a stream, with the exact answers. The stream must be longer
    /// than the window.
    pub fn new(numbers: &'a [u32], window: u64, length: u64, intervals: usize) -> Self {
        let mut random = Rand64::new(u128::from(window << 20 | length));
        let last = UNIVERSE - length + 1;
        let starts = (0..intervals).map(|_| random.rand_range(1..last + 1) as u32).collect();
        let turns = TURNS.min(intervals).max(1);
        let window = window as usize;
        let mut trial =
            Trial { numbers, window, length, starts, truth: Vec::new(), slack: Vec::new(), turns };
        trial.truth = trial.exact(window);
        trial.slack = trial.exact(window + window / SLACK as usize);
        trial
    }

    /// The numbers and the intervals of each turn, once the window is full.
    fn turns(&self) -> impl Iterator<Item = (&'a [u32], &[u32])> {
        let rest = &self.numbers[self.window.min(self.numbers.len())..];
        let part = |whole: usize, turn: usize| whole * turn / self.turns;
        (0..self.turns).map(move |turn| {
            let of = |whole| part(whole, turn)..part(whole, turn + 1);
            (&rest[of(rest.len())], &self.starts[of(self.starts.len())])
        })
    }

    fn filling(&self) -> &'a [u32] {
        &self.numbers[..self.window.min(self.numbers.len())]
    }

    fn exact(&self, remembered: usize) -> Vec<bool> {
        let mut oracle = LiveNumbers::new(remembered);
        let mut truth = Vec::with_capacity(self.starts.len());
        for &number in self.filling() {
            oracle.insert(u64::from(number));
        }
        for (numbers, starts) in self.turns() {
            for &number in numbers {
                oracle.insert(u64::from(number));
            }
            let any = |&start: &u32| {
                let start = u64::from(start);
                oracle.any_in(start..=start + self.length - 1)
            };
            truth.extend(starts.iter().map(any));
        }
        truth
    }

    /// Runs a structure through the stream.
    pub fn run(&self, structure: &mut dyn RangeUnderTest) -> Outcome {
        let (mut inserts, mut queries) = (Blocks::default(), Blocks::default());
        let mut answers = Vec::with_capacity(self.starts.len());
        structure.insert_all(self.filling(), Tick(1));
        let mut next = self.filling().len() as u64 + 1;
        for (numbers, starts) in self.turns() {
            inserts.time(numbers.len(), || structure.insert_all(numbers, Tick(next)));
            next += numbers.len() as u64;
            queries.time(starts.len(), || {
                structure.answer(starts, self.length, Tick(next), &mut answers);
            });
        }
        let window = self.window as u64;
        let reported = if structure.remembers(window) > window { &self.slack } else { &self.truth };
        let missed = self.truth.iter().zip(&answers).filter(|&(any, answer)| *any && !answer);
        let wrong = reported.iter().zip(&answers).filter(|&(any, answer)| !any && *answer);
        Outcome {
            intervals: answers.len() as u64,
            empty: reported.iter().filter(|&&any| !any).count() as u64,
            false_positives: wrong.count() as u64,
            false_negatives: missed.count() as u64,
            query: queries.quiet(),
            insert: inserts.quiet(),
        }
    }
}

/// What a structure answered, against the truth, and how fast.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Intervals asked for.
    pub intervals: u64,
    /// Those without a number of the window.
    pub empty: u64,
    /// Those of these answered "some".
    pub false_positives: u64,
    /// Intervals with a number of the window answered "none"; there must be none.
    pub false_negatives: u64,
    /// Nanoseconds a query takes, of an interval whole.
    pub query: f64,
    /// Nanoseconds an insertion takes.
    pub insert: f64,
}

impl Outcome {
    /// Share of the empty intervals answered "some".
    pub fn fpr(&self) -> f64 {
        self.false_positives as f64 / self.empty.max(1) as f64
    }

    /// Its standard error, by the binomial law.
    pub fn fpr_error(&self) -> f64 {
        (self.fpr() * (1.0 - self.fpr()) / self.empty.max(1) as f64).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Exact: each number with its last arrival.
    struct Exact {
        window: u64,
        last: BTreeMap<u64, u64>,
    }

    impl RangeUnderTest for Exact {
        fn insert(&mut self, number: u64, now: Tick) {
            self.last.insert(number, now.0);
        }

        fn any_in(&self, first: u64, last: u64, now: Tick) -> bool {
            self.last.range(first..=last).any(|(_, &time)| now.0 - time <= self.window)
        }

        fn bits(&self) -> u64 {
            128 * self.window
        }
    }

    #[test]
    fn an_exact_structure_has_no_error() {
        for law in Law::ALL {
            let numbers = law.numbers(20_000);
            let trial = Trial::new(&numbers, 500, 20_000, 5_000);
            let outcome = trial.run(&mut Exact { window: 500, last: BTreeMap::new() });
            let Outcome { intervals, empty, false_positives, false_negatives, .. } = outcome;
            assert_eq!((intervals, false_positives, false_negatives), (5_000, 0, 0));
            // Expected share of intervals that some number hits: 1 - e^(-500·20,000/1e8) = 9.5 %.
            assert!((4_000..5_000).contains(&empty), "{empty}");
            assert!(outcome.query > 0.0 && outcome.insert > 0.0);
        }
    }

    #[test]
    fn a_longer_memory_is_found_out() {
        let numbers = Law::Uniform.numbers(20_000);
        let trial = Trial::new(&numbers, 500, 20_000, 5_000);
        let long = trial.run(&mut Exact { window: 1_000, last: BTreeMap::new() });
        let short = trial.run(&mut Exact { window: 250, last: BTreeMap::new() });
        assert!(long.false_positives > 0 && long.false_negatives == 0);
        assert!(short.false_positives == 0 && short.false_negatives > 0);
    }
}
