//! The keys that all structures of a run are given, in blocks made before they are timed.

use crate::workload::mix;
use lately::{Digest, Digester};

/// Keys made and timed at a time: few enough to stay in the nearest caches.
pub const BLOCK: usize = 2048;

/// Keys, as whole numbers for structures that hash for themselves and as digests for the others.
#[derive(Clone, Debug)]
pub struct Block {
    /// The keys.
    pub ids: Vec<u64>,
    /// Their digests.
    pub digests: Vec<Digest>,
    digester: Digester,
}

impl Default for Block {
    fn default() -> Self {
        let (ids, digests) = (Vec::with_capacity(BLOCK), Vec::with_capacity(BLOCK));
        Self { ids, digests, digester: Digester::new(0) }
    }
}

impl Block {
    /// Puts the keys of these indices in the place of those that are there.
    pub fn fill(&mut self, indices: impl Iterator<Item = u64>) {
        self.ids.clear();
        self.digests.clear();
        for index in indices {
            let key = Key::new(index, &self.digester);
            self.ids.push(key.id);
            self.digests.push(key.digest);
        }
    }

    /// Keys in it.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Has it none?
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The keys one by one.
    pub fn keys(&self) -> impl Iterator<Item = Key> + '_ {
        self.ids.iter().zip(&self.digests).map(|(&id, &digest)| Key { id, digest })
    }
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// As a whole number.
    pub id: u64,
    /// Its digest.
    pub digest: Digest,
}

impl Key {
    /// The key of an index: different ones have different keys, neighbours unlike ones.
    pub fn new(index: u64, digester: &Digester) -> Self {
        let id = mix(index);
        Self { id, digest: digester.digest(&id.to_le_bytes()) }
    }
}

/// The index of a key that no stream has.
pub const fn stranger(number: u64) -> u64 {
    (1 << 62) + number
}

/// Arrivals of a mixture among which there are hardly ever more than `n` distinct keys: six standard
/// deviations below.
pub fn arrivals_of_mixture(n: u64) -> u64 {
    2 * n - ((6.0 * (2.0 * n as f64).sqrt()) as u64).min(n)
}

/// Which key arrives when: fresh ones, then the last `window` of them over and over, then a mixture.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    /// Arrivals within which duplicates repeat.
    pub window: u64,
    /// The first arrival that is no fresh one.
    pub repeats_from: u64,
    /// The first arrival of those of which half are fresh and half repeat any of the last `window`.
    pub mixed_from: u64,
}

impl Stream {
    /// Fresh keys only.
    pub const fn fresh(window: u64) -> Self {
        Self { window, repeats_from: u64::MAX, mixed_from: u64::MAX }
    }

    /// Half of it repeats, from the beginning.
    pub const fn mixed(window: u64) -> Self {
        Self { window, repeats_from: 0, mixed_from: 0 }
    }

    /// The index of the key that arrives there.
    pub fn index(&self, mut arrival: u64) -> u64 {
        while arrival >= self.mixed_from {
            let random = mix(arrival ^ 0x5EED_0000_0000_0000);
            if random & 1 == 0 || arrival == 0 {
                return arrival;
            }
            let age = 1 + ((u128::from(random) * u128::from(self.window)) >> 64) as u64;
            arrival -= age.min(arrival);
        }
        if arrival < self.repeats_from {
            return arrival;
        }
        let turn = (arrival - self.repeats_from) % self.window;
        self.repeats_from - self.window + turn
    }
}

#[cfg(test)]
mod tests {
    use super::Stream;

    #[test]
    fn every_repeat_is_within_the_window() {
        let stream = Stream { window: 100, repeats_from: 300, mixed_from: 700 };
        let keys: Vec<u64> = (0..5_000).map(|arrival| stream.index(arrival)).collect();
        assert!((0..300).all(|i| keys[i] == i as u64));
        assert!((300..700).all(|i| keys[i] == keys[i - 100]));
        let repeats = (700..5_000).filter(|&i| keys[i - 100..i].contains(&keys[i])).count();
        let known = (700..5_000).filter(|&i| keys[..i].contains(&keys[i])).count();
        assert_eq!(repeats, known);
        assert!((1_900..2_400).contains(&repeats), "{repeats}");
        let mixed = Stream::mixed(50);
        assert!((0..1_000).all(|i| mixed.index(i) <= i));
    }
}
