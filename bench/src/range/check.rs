//! Are the answers right? Every offset of a stream, every age, shorter windows, long intervals.

use super::adapter::{Candidate, Contract, FPR};
use super::workload::{Stream, Workload};
use oorandom::Rand64;
use std::collections::BTreeMap;

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Moments at which it was asked: every one from the first arrival on.
    pub offsets: u64,
    /// Intervals asked for that held a key of the window asked for.
    pub hits: u64,
    /// Those of them that were called empty: there must be none.
    pub missed: u64,
    /// Intervals asked for without a key of the window or the slack.
    pub empty: u64,
    /// Those of them that were called occupied.
    pub wrong: u64,
}

impl Checked {
    /// Are there more false positives than chance allows: more than the rate and five of its standard
    /// deviations?
    pub fn too_many(&self) -> bool {
        let expected = self.empty as f64 * FPR;
        self.wrong as f64 > expected + 5.0 * expected.sqrt() + 1.0
    }
}

/// The last arrival of each key.
struct Oracle(BTreeMap<u64, u64>);

impl Oracle {
    /// How many arrivals ago the youngest of these keys came; 1 is the newest arrival.
    fn age(&self, start: u64, length: u64, now: u64) -> Option<u64> {
        let keys = start..=start + (length - 1);
        self.0.range(keys).map(|(_, &arrival)| now - arrival).min()
    }
}

/// Asks after each of `5 n` arrivals: for intervals around keys of all ages, around the one that has
/// just left, and for those that the workload leaves empty; of a structure that can, in shorter
/// windows too.
///
/// # Errors
/// Why the structure cannot be built.
pub fn check(
    candidate: &Candidate,
    workload: Workload,
    n: u64,
    length: u64,
) -> Result<Checked, String> {
    let mut adapter = (candidate.build)(n, length, &[])?;
    let remembered = candidate.contract.remembered(n);
    let slack = remembered - n;
    let mut stream = Stream::new(workload, 2 * remembered as usize);
    let mut random = Rand64::new(5);
    let mut oracle = Oracle(BTreeMap::new());
    let (mut keys, mut checked) = (Vec::new(), Checked::default());
    let mut answers = Vec::new();
    for arrival in 0..5 * n {
        stream.fill(&mut keys, 1);
        adapter.insert_all(&keys);
        for &key in &keys {
            oracle.0.insert(key, arrival);
        }
        let now = arrival + 1;
        let shorter = (candidate.contract == Contract::Slack)
            .then(|| random.rand_range(1..n + 1))
            .filter(|_| arrival % 2 == 0);
        // The oldest key of the window, the two that have left, and three of any age.
        let back = [n, n + 1, remembered + 1].map(|age| stream.in_order(age as usize).next());
        let mut starts: Vec<u64> = back
            .into_iter()
            .flatten()
            .map(|key| key.saturating_sub(random.rand_range(0..length)).min(u64::MAX - length))
            .collect();
        starts.extend((0..3).map(|_| stream.full(n as usize, length, &mut random)));
        starts.extend((0..3).map(|_| stream.empty(length, &mut random)));
        answers.clear();
        adapter.ask(&starts, length, shorter, &mut answers);
        checked.offsets += 1;
        let window = shorter.unwrap_or(n);
        for (&start, &answer) in starts.iter().zip(&answers) {
            match oracle.age(start, length, now) {
                Some(age) if age <= window => {
                    checked.hits += 1;
                    checked.missed += u64::from(!answer);
                }
                Some(age) if age <= window + slack => {}
                _ => {
                    checked.empty += 1;
                    checked.wrong += u64::from(answer);
                }
            }
        }
    }
    Ok(checked)
}
