//! The exact answer, by keeping every live key.

use std::collections::{HashMap, VecDeque};

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

#[cfg(test)]
mod tests {
    use super::LastSeen;

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
}
