//! One structure over one stream: how often wrong, by how much, and how fast.

use super::streams::{Keep, Step, Stream};
use super::structures::WindowUnderTest;
use crate::figures::clock::Blocks;
use crate::oracle::LastArrival;
use lately::{Digest, Tick};

/// Errors of an age are counted above each of these.
pub const ERRORS: [u64; 6] = [0, 1, 10, 100, 1_000, 5_000];

/// What a structure answered, against the truth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Questions counted.
    pub asked: u64,
    /// Those of them about keys not in the window.
    pub negatives: u64,
    /// Those of these answered "present".
    pub false_positives: u64,
    /// Keys in the window that were answered "absent"; there must be none.
    pub false_negatives: u64,
    /// The longest that the list of overflowing keys ever was.
    pub longest_overflow: usize,
    /// Ages told.
    pub ages: u64,
    /// Those of them too small by more than each of [`ERRORS`].
    pub age_errors: [u64; ERRORS.len()],
}

impl Outcome {
    /// Adds another run of the same stream.
    pub fn add(&mut self, other: &Self) {
        self.asked += other.asked;
        self.negatives += other.negatives;
        self.false_positives += other.false_positives;
        self.false_negatives += other.false_negatives;
        self.longest_overflow = self.longest_overflow.max(other.longest_overflow);
        self.ages += other.ages;
        for (sum, more) in self.age_errors.iter_mut().zip(other.age_errors) {
            *sum += more;
        }
    }

    /// Share of the questions about absent keys that were answered "present".
    pub fn fpr(&self) -> f64 {
        self.false_positives as f64 / self.negatives.max(1) as f64
    }

    fn judge_age(&mut self, told: Option<u64>, truth: Option<u64>, window: u64) {
        let Some(told) = told else { return };
        // Of a key that is gone, the best that can be said is that it is just out of the window.
        let error = truth.unwrap_or(window + 1).saturating_sub(told);
        self.ages += 1;
        for (count, bound) in self.age_errors.iter_mut().zip(ERRORS) {
            *count += u64::from(error > bound);
        }
    }
}

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Presence only, once the first steps have filled the window.
    Filled,
    /// Presence only, from the first step on: a trace is too short to give some away.
    All,
    /// Ages as well.
    Ages,
}

/// Runs a stream through a structure: query, then remember, each arrival a tick.
pub fn judge(
    structure: &mut dyn WindowUnderTest,
    stream: &Stream,
    digests: &[Digest],
    window: u64,
    look: Look,
) -> Outcome {
    let mut outcome = Outcome::default();
    let mut oracle = LastArrival::new(window, stream.keys);
    // A cyclic stamp comes round after two windows: by then all parts of the machine have run.
    let counted_from = if look == Look::Filled { 2 * window } else { 0 };
    for (&Step { ask, see }, now) in stream.steps.iter().zip(1_u64..) {
        let key = digests[ask as usize];
        let present = structure.contains(key, Tick(now));
        let truth = oracle.age(ask, now);
        if now > counted_from {
            outcome.asked += 1;
            outcome.negatives += u64::from(truth.is_none());
            outcome.false_positives += u64::from(truth.is_none() && present);
        }
        outcome.false_negatives += u64::from(truth.is_some() && !present);
        if look == Look::Ages {
            outcome.judge_age(structure.age(key, Tick(now)), truth, window);
        }
        if stream.keep == Keep::Always || !present {
            structure.remember(digests[see as usize], Tick(now));
            oracle.remember(see, now);
        }
        outcome.longest_overflow = outcome.longest_overflow.max(structure.overflow());
    }
    outcome
}

/// Nanoseconds a query and an update take, keys hashed beforehand.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    /// Of a query: half the keys asked for were just seen at random ages, as the stream has it.
    pub query: f64,
    /// Of an update.
    pub update: f64,
}

/// Times blocks of queries and of updates in turn, on a full window.
pub fn time(
    structure: &mut dyn WindowUnderTest,
    stream: &Stream,
    digests: &[Digest],
    window: u64,
    blocks: usize,
) -> Times {
    const BLOCK: usize = 1_000;
    let filling = 2 * window as usize;
    let keys: Vec<Digest> = stream
        .steps
        .iter()
        .take(filling + blocks * BLOCK)
        .map(|step| digests[step.see as usize])
        .collect();
    let (fill, timed) = keys.split_at(filling.min(keys.len()));
    structure.remember_all(fill, Tick(1));
    let (mut queries, mut updates) = (Blocks::default(), Blocks::default());
    let mut next = fill.len() as u64 + 1;
    for block in timed.chunks(BLOCK) {
        queries.time(block.len(), || structure.contained(block, Tick(next)));
        updates.time(block.len(), || structure.remember_all(block, Tick(next)));
        next += block.len() as u64;
    }
    // Not the quiet blocks: the list may be empty in a tenth of them, and its cost is to be seen.
    Times { query: queries.median(), update: updates.median() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// Keeps `bits` bits of each key exactly: false positives at a known rate, nothing else wrong.
    struct Truncated {
        bits: u32,
        window: u64,
        last: HashMap<u64, u64>,
    }

    impl WindowUnderTest for Truncated {
        fn contains(&self, key: Digest, now: Tick) -> bool {
            self.age(key, now).is_some()
        }

        fn remember(&mut self, key: Digest, now: Tick) {
            self.last.insert(key.hi() >> (64 - self.bits), now.0);
        }

        fn age(&self, key: Digest, now: Tick) -> Option<u64> {
            let last = self.last.get(&(key.hi() >> (64 - self.bits)))?;
            Some(now.0 - last).filter(|&age| age <= self.window)
        }

        fn overflow(&self) -> usize {
            self.last.len()
        }

        fn bits(&self) -> u64 {
            u64::from(self.bits) * self.window
        }
    }

    fn truncated(bits: u32, window: u64) -> Truncated {
        Truncated { bits, window, last: HashMap::new() }
    }

    #[test]
    fn counts_false_positives() {
        let stream = Stream::zipf(0, 40_000);
        let outcome =
            judge(&mut truncated(16, 1_000), &stream, &stream.digests(0), 1_000, Look::Filled);
        assert_eq!((outcome.asked, outcome.false_negatives), (38_000, 0));
        // 990 or so live keys on 65,536 places.
        assert!((outcome.fpr() - 0.0151).abs() < 0.003, "{outcome:?}");
    }

    #[test]
    fn an_exact_structure_has_no_error() {
        for stream in [Stream::zipf(0, 20_000), Stream::zipf(1, 20_000)] {
            let outcome =
                judge(&mut truncated(63, 1_000), &stream, &stream.digests(0), 1_000, Look::Ages);
            assert_eq!((outcome.false_positives, outcome.false_negatives), (0, 0));
            assert!(outcome.ages > 100);
            assert_eq!(outcome.age_errors, [0; ERRORS.len()]);
        }
    }

    #[test]
    fn what_is_cached_is_not_renewed() {
        let step = Step { ask: 0, see: 0 };
        let stream = Stream { name: "", steps: vec![step; 12], keep: Keep::IfAbsent, keys: 1 };
        let outcome = judge(&mut truncated(63, 3), &stream, &stream.digests(0), 3, Look::All);
        // Fetched at 1, 5 and 9: each serves the three arrivals after it.
        assert_eq!((outcome.negatives, outcome.false_positives), (3, 0));
    }

    #[test]
    fn times_are_of_single_operations() {
        let stream = Stream::zipf(1, 10_000);
        let times = time(&mut truncated(20, 500), &stream, &stream.digests(0), 500, 5);
        assert!(times.query > 0.0 && times.update > 0.0 && times.query < 1e5, "{times:?}");
    }
}
