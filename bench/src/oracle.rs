//! The exact answer, by keeping every live key.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::RangeInclusive;

/// Exact duplicates within a time window, with renewal by every sighting.
///
/// *Cost:* a hash map entry for each key within the window and a queue entry for each sighting
/// within it: far more memory than any filter, which is what it is compared with.
#[derive(Clone, Debug)]
pub struct LastSeen {
    span: u64,
    last: HashMap<u128, u64>,
    /// Sightings within the window, oldest first; only a key's newest counts.
    sightings: VecDeque<(u64, u128)>,
}

impl LastSeen {
    /// An oracle for a window of `span` ticks.
    pub fn new(span: u64) -> Self {
        Self { span, last: HashMap::new(), sightings: VecDeque::new() }
    }

    /// One sighting, in order of time: was the key seen at most the span before?
    pub fn observe(&mut self, key: u128, now: u64) -> bool {
        self.expire(now);
        self.sightings.push_back((now, key));
        self.last.insert(key, now).is_some()
    }

    /// Distinct keys seen within the window that ended at the last sighting.
    pub fn live(&self) -> usize {
        self.last.len()
    }

    fn expire(&mut self, now: u64) {
        while let Some(&(time, key)) = self.sightings.front() {
            if now.saturating_sub(time) <= self.span {
                break;
            }
            self.sightings.pop_front();
            if self.last.get(&key) == Some(&time) {
                self.last.remove(&key);
            }
        }
    }
}

/// Exact last sightings of numbered keys within the last `n` arrivals.
///
/// *Cost:* 8 bytes for each key there is, live or not.
#[derive(Clone, Debug)]
pub struct LastArrival {
    n: u64,
    /// The tick of each key's last sighting, from 1; 0 for never.
    last: Vec<u64>,
}

impl LastArrival {
    /// An oracle for the last `n` arrivals, over this many keys.
    pub fn new(n: u64, keys: usize) -> Self {
        Self { n, last: vec![0; keys] }
    }

    /// How long ago the key was seen, if that was at most `n` ticks ago.
    pub fn age(&self, key: u32, now: u64) -> Option<u64> {
        let last = self.last.get(key as usize).copied().filter(|&last| last > 0)?;
        Some(now - last).filter(|&age| age <= self.n)
    }

    /// The key is seen at this tick, which is at least 1.
    pub fn remember(&mut self, key: u32, now: u64) {
        if let Some(last) = self.last.get_mut(key as usize) {
            *last = now;
        }
    }
}

/// The last `n` numbers that arrived, in order of their size.
///
/// *Cost:* a tree entry for each distinct number and a queue entry for each arrival in the window.
#[derive(Clone, Debug)]
pub struct LiveNumbers {
    n: usize,
    counts: BTreeMap<u64, u32>,
    arrivals: VecDeque<u64>,
}

impl LiveNumbers {
    /// An oracle for the last `n` arrivals.
    pub fn new(n: usize) -> Self {
        Self { n, counts: BTreeMap::new(), arrivals: VecDeque::with_capacity(n + 1) }
    }

    /// One arrival.
    pub fn insert(&mut self, number: u64) {
        self.arrivals.push_back(number);
        *self.counts.entry(number).or_insert(0) += 1;
        if self.arrivals.len() <= self.n {
            return;
        }
        let Some(oldest) = self.arrivals.pop_front() else { return };
        if let Some(count) = self.counts.get_mut(&oldest) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&oldest);
            }
        }
    }

    /// Is any number of the interval among the last `n` arrivals?
    pub fn any_in(&self, interval: RangeInclusive<u64>) -> bool {
        self.counts.range(interval).next().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::{LastArrival, LastSeen, LiveNumbers};

    #[test]
    fn a_chain_of_sightings_is_one_visit() {
        let mut oracle = LastSeen::new(8);
        let verdicts = [5, 10, 15, 23, 32].map(|now| oracle.observe(1, now));
        assert_eq!(verdicts, [false, true, true, true, false]);
    }

    #[test]
    fn counts_the_live_keys() {
        let mut oracle = LastSeen::new(10);
        for now in 0..100 {
            oracle.observe(u128::from(now % 50), now);
            assert_eq!(oracle.live() as u64, (now + 1).min(11));
        }
        assert!(oracle.sightings.len() <= 11);
    }

    #[test]
    fn ages_end_with_the_window() {
        let mut oracle = LastArrival::new(3, 2);
        assert_eq!(oracle.age(0, 1), None);
        oracle.remember(0, 1);
        assert_eq!([2, 4, 5].map(|now| oracle.age(0, now)), [Some(1), Some(3), None]);
        assert_eq!(oracle.age(1, 2), None);
        assert_eq!(oracle.age(7, 2), None);
    }

    #[test]
    fn intervals_over_the_last_numbers() {
        let mut oracle = LiveNumbers::new(3);
        for number in [5, 90, 5, 40] {
            oracle.insert(number);
        }
        assert!(oracle.any_in(5..=5) && oracle.any_in(6..=40) && oracle.any_in(90..=90));
        oracle.insert(7);
        assert!(!oracle.any_in(41..=100) && oracle.any_in(5..=6));
        oracle.insert(8);
        assert!(!oracle.any_in(0..=6), "both fives have left");
    }
}
