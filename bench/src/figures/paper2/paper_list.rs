//! The paper's two tables with its list: what finds no position is kept there as a whole key.

use super::structures::WindowUnderTest;
use lately::{Digest, Tick};
use std::collections::{HashMap, VecDeque};

/// The paper's structure, to be measured, not used: a table is a plain array, stamps are whole numbers, and
/// the list is searched by hashing, so that only its answers are the paper's.
pub struct PaperCuckoo {
    window: u64,
    positions: u64,
    signature_bits: u32,
    most_moves: u32,
    tables: [Vec<Option<Entry>>; 2],
    list: HashMap<(u64, u64), u64>,
    /// Keys of the list as they came, with their times.
    order: VecDeque<((u64, u64), u64)>,
}

#[derive(Clone, Copy)]
struct Entry {
    at: u64,
    signature: u64,
    /// The key's position in the other table.
    partner: u64,
}

impl PaperCuckoo {
    /// An empty structure for the last `window` arrivals.
    pub fn new(window: u64, positions: u64, signature_bits: u32) -> Self {
        let table = || vec![None; positions as usize];
        Self {
            window,
            positions,
            signature_bits,
            // "At most O(log n) moves"
            most_moves: 4 * window.ilog2(),
            tables: [table(), table()],
            list: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    fn places(&self, key: Digest) -> ([u64; 2], u64) {
        let mut probes = key.probes(self.positions);
        let places = [0, 1].map(|_| probes.next().unwrap_or(0));
        // As the library's.
        (places, key.lo().checked_shr(64 - self.signature_bits).unwrap_or(0))
    }

    fn is_live(&self, at: u64, now: u64) -> bool {
        now - at <= self.window
    }

    /// Where an entry is that looks like the key's.
    fn found(&self, key: Digest, now: u64) -> Option<(usize, usize)> {
        let (places, signature) = self.places(key);
        (0..2).map(|table| (table, places[table] as usize)).find(|&(table, place)| {
            self.tables[table][place].is_some_and(|entry| {
                entry.signature == signature
                    && entry.partner == places[1 - table]
                    && self.is_live(entry.at, now)
            })
        })
    }

    fn insert(&mut self, key: Digest, now: u64) {
        let (places, signature) = self.places(key);
        let mut moved: Vec<(usize, usize, Option<Entry>)> = Vec::new();
        let (mut entry, mut table, mut place) =
            (Entry { at: now, signature, partner: places[1] }, 0, places[0] as usize);
        let is_free = |there: Option<Entry>| there.is_none_or(|there| now - there.at > self.window);
        if !is_free(self.tables[0][place]) && is_free(self.tables[1][places[1] as usize]) {
            (entry.partner, table, place) = (places[0], 1, places[1] as usize);
        }
        for _ in 0..=self.most_moves {
            let there = self.tables[table][place].replace(entry);
            moved.push((table, place, there));
            let Some(next) = there.filter(|there| now - there.at <= self.window) else { return };
            // It moves to its position in the other table, and this one is its partner there.
            entry = Entry { partner: place as u64, ..next };
            (table, place) = (1 - table, next.partner as usize);
        }
        for (table, place, there) in moved.into_iter().rev() {
            self.tables[table][place] = there;
        }
        let key = (key.hi(), key.lo());
        self.list.insert(key, now);
        self.order.push_back((key, now));
    }
}

impl WindowUnderTest for PaperCuckoo {
    fn contains(&self, key: Digest, now: Tick) -> bool {
        self.age(key, now).is_some()
    }

    fn remember(&mut self, key: Digest, now: Tick) {
        let now = now.0;
        while let Some(&(old, at)) = self.order.front().filter(|old| now - old.1 > self.window) {
            self.order.pop_front();
            if self.list.get(&old) == Some(&at) {
                self.list.remove(&old);
            }
        }
        let listed = (key.hi(), key.lo());
        if let Some((table, place)) = self.found(key, now) {
            if let Some(entry) = &mut self.tables[table][place] {
                entry.at = now;
            }
        } else if let Some(at) = self.list.get_mut(&listed) {
            *at = now;
            self.order.push_back((listed, now));
        } else {
            self.insert(key, now);
        }
    }

    fn age(&self, key: Digest, now: Tick) -> Option<u64> {
        let in_tables = self.found(key, now.0).and_then(|(table, place)| self.tables[table][place]);
        let listed = self.list.get(&(key.hi(), key.lo())).copied();
        let at = in_tables.map(|entry| entry.at).or(listed)?;
        Some(now.0 - at).filter(|&age| age <= self.window)
    }

    fn overflow(&self) -> usize {
        self.list.len()
    }

    fn bits(&self) -> u64 {
        let stamp = u64::from((2 * self.window).ilog2() + 1);
        let entry = stamp + u64::from(self.signature_bits) + u64::from(self.positions.ilog2() + 1);
        2 * self.positions * entry + self.list.len() as u64 * (128 + stamp)
    }
}
