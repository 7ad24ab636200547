//! What is asked and what is remembered, arrival by arrival.

use crate::workload::traces::{Message, Request};
use crate::workload::zipf::Zipf;
use lately::{Digest, Digester};
use oorandom::Rand64;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;

/// Integers to choose from in the synthetic streams.
pub const UNIVERSE: u64 = 100_000;

/// Share of the arrivals under attack that are replays; the paper does not state its own.
pub const REPLAYS: f64 = 0.3;

/// One arrival: a question, then a key to be remembered. Keys are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The key asked for.
    pub ask: u32,
    /// The key seen.
    pub see: u32,
}

/// When the key of a step is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Always.
    Always,
    /// When the answer was "absent": what is in the cache is not fetched again.
    IfAbsent,
}

/// A stream of arrivals.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Its name in tables.
    pub name: &'static str,
    /// The arrivals.
    pub steps: Vec<Step>,
    /// When keys are remembered.
    pub keep: Keep,
    /// Keys are numbered from 0 to below this.
    pub keys: usize,
}

impl Stream {
    /// Integers by Zipf's law.
    pub fn zipf(exponent: u32, steps: usize) -> Self {
        let name = if exponent == 0 { "z = 0" } else { "z = 1" };
        let numbers = Zipf::new(UNIVERSE, f64::from(exponent), 2013 + u64::from(exponent));
        let steps = numbers.take(steps).map(|number| same(number as u32)).collect();
        Self { name, steps, keep: Keep::Always, keys: UNIVERSE as usize + 1 }
    }

    /// Pages asked of a proxy, which keeps what it had to fetch.
    pub fn caching(requests: &[Request]) -> Self {
        let mut numbers = Numbers::default();
        let steps = requests.iter().map(|request| same(numbers.of(request.url.as_str()))).collect();
        Self { name: "caching", steps, keep: Keep::IfAbsent, keys: numbers.len() }
    }

    /// Requests among which earlier ones are replayed: each replay is of one of the last `window`
    /// arrivals, so that every one of them must be told.
    pub fn attack(requests: &[Request], window: usize) -> Self {
        let mut numbers = Numbers::default();
        let mut random = Rand64::new(1995);
        let mut steps: Vec<Step> = Vec::new();
        for request in requests {
            while !steps.is_empty() && random.rand_float() < REPLAYS {
                let from = steps.len().saturating_sub(window) as u64;
                let again = random.rand_range(from..steps.len() as u64) as usize;
                steps.push(steps[again]);
            }
            steps.push(same(numbers.of(request.line.as_str())));
        }
        Self { name: "attack", steps, keep: Keep::Always, keys: numbers.len() }
    }

    /// Posts on walls: whose wall it is counts as seen; asked is whether the one who wrote has had
    /// posts lately.
    pub fn wall_posts(messages: &[Message]) -> Self {
        let mut numbers = Numbers::default();
        let step =
            |message: &Message| Step { ask: numbers.of(message.from), see: numbers.of(message.to) };
        let steps = messages.iter().map(step).collect();
        Self { name: "wall posts", steps, keep: Keep::Always, keys: numbers.len() }
    }

    /// The keys' digests under a seed. Any seed makes another run of the same stream.
    pub fn digests(&self, seed: u64) -> Vec<Digest> {
        let digester = Digester::new(seed);
        (0..self.keys as u32).map(|key| digester.digest(&key.to_le_bytes())).collect()
    }

    /// Distinct keys among the last `window` arrivals of the stream.
    pub fn live(&self, window: usize) -> usize {
        let from = self.steps.len().saturating_sub(window);
        self.steps[from..].iter().map(|step| step.see).collect::<HashSet<u32>>().len()
    }
}

fn same(key: u32) -> Step {
    Step { ask: key, see: key }
}

/// Numbers keys as they come.
struct Numbers<K>(HashMap<K, u32>);

impl<K> Default for Numbers<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Hash + Eq> Numbers<K> {
    fn of(&mut self, key: K) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(key).or_insert(next)
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(count: u32) -> Vec<Request> {
        let request =
            |number: u32| Request { line: number.to_string(), url: format!("/{}", number % 10) };
        (0..count).map(request).collect()
    }

    #[test]
    fn every_replay_is_of_the_window() {
        let stream = Stream::attack(&requests(5_000), 50);
        let mut newest = HashMap::new();
        let mut replays = 0;
        for (at, step) in stream.steps.iter().enumerate() {
            if let Some(before) = newest.insert(step.ask, at) {
                replays += 1;
                assert!(at - before <= 50);
            }
        }
        assert_eq!(stream.steps.len() - replays, 5_000);
        let share = replays as f64 / stream.steps.len() as f64;
        assert!((share - REPLAYS).abs() < 0.02, "{share}");
    }

    #[test]
    fn urls_and_people_are_numbered_once() {
        let caching = Stream::caching(&requests(100));
        assert_eq!((caching.keys, caching.steps.len(), caching.live(5)), (10, 100, 5));
        let messages = [Message { from: 7, to: 9 }, Message { from: 9, to: 7 }];
        let posts = Stream::wall_posts(&messages);
        assert_eq!(posts.steps, [Step { ask: 0, see: 1 }, Step { ask: 1, see: 0 }]);
        assert_eq!(posts.digests(1).len(), 2);
        assert_ne!(posts.digests(1), posts.digests(2));
    }
}
