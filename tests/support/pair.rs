//! A filter beside its oracle, for streams of many kinds.
// Each test program uses a part.
#![allow(dead_code, unreachable_pub)]

use crate::support::{Chance, Oracle};
use lately::{Digest, LastSeen, Renewal, Tick, Window};

/// A whole number with 1/i as the chance of i, nearly: Zipf's law with exponent 1.
pub fn zipf(chance: &mut Chance, keys: u64) -> u64 {
    let uniform = (chance.next() >> 11) as f64 / (1u64 << 53) as f64;
    (keys as f64).powf(uniform) as u64 - 1
}

/// Where the keys of a stream come from.
#[derive(Clone, Copy, Debug)]
pub enum Keys {
    /// Every arrival another key.
    New,
    /// Twice as many keys as the window has arrivals, all as frequent.
    Uniform,
    /// Ten times as many, by Zipf's law.
    Zipf,
    /// New keys, and as many that come again at any age up to the window's, and at its ends.
    Again,
}

/// A filter beside its oracle, with the arrivals in order.
pub struct Pair<'a, F> {
    pub filter: F,
    pub oracle: Oracle,
    pub digest: &'a dyn Fn(u64) -> Digest,
    /// Key numbers, and the arrival in the window's unit.
    pub arrivals: Vec<(u64, u64)>,
    pub chance: Chance,
    /// Arrivals that were judged duplicates though they could not be.
    pub wrong: u64,
    pub strangers: u64,
}

impl<'a, F: LastSeen> Pair<'a, F> {
    pub fn new(filter: F, renewal: Renewal, digest: &'a dyn Fn(u64) -> Digest) -> Self {
        let oracle = Oracle::new(filter.window(), renewal);
        let (arrivals, chance) = (Vec::new(), Chance(filter.memory() as u64));
        Self { filter, oracle, digest, arrivals, chance, wrong: 0, strangers: 0 }
    }

    pub fn next_key(&mut self, keys: Keys, n: u64) -> u64 {
        let at = self.arrivals.len() as u64;
        match keys {
            Keys::New => at,
            Keys::Uniform => self.chance.below(2 * n),
            Keys::Zipf => zipf(&mut self.chance, 10 * n),
            Keys::Again if at < n || self.chance.below(2) == 0 => at,
            Keys::Again => {
                let back = match self.chance.below(4) {
                    0 => n,
                    1 => n + 1,
                    _ => 1 + self.chance.below(n),
                };
                self.arrivals[(at.saturating_sub(back)) as usize].0
            }
        }
    }

    pub fn must_find(&self, n: u64, tick: Tick) {
        if self.oracle.is_live(n, tick) {
            let found = self.filter.contains((self.digest)(n), tick);
            assert!(found, "key {n} of age {:?} at {tick:?}", self.oracle.age(n, tick));
        }
    }

    /// One arrival: those at the edge of the window, one within, and the arriving one are asked for.
    pub fn arrive(&mut self, n: u64, tick: Tick) {
        let edge = match self.filter.window() {
            Window::Count(n) => self.arrivals.len().saturating_sub(n.get() as usize),
            _ => {
                let reach = self.filter.window().span().unwrap_or(0);
                self.arrivals.partition_point(|&(_, at)| at.saturating_add(reach) < tick.0)
            }
        };
        let within = (self.arrivals.len() - edge).max(1) as u64;
        for at in [edge, edge + 1, edge + self.chance.below(within) as usize] {
            if let Some(&(n, _)) = self.arrivals.get(at) {
                self.must_find(n, tick);
            }
        }
        let (live, known) =
            (self.oracle.is_live(n, tick), self.oracle.may_be_found(n, tick, self.filter.slack()));
        let verdict = self.filter.observe((self.digest)(n), tick);
        assert!(!live || verdict.is_duplicate(), "{n} of {:?}", self.oracle.age(n, tick));
        self.strangers += u64::from(!known);
        self.wrong += u64::from(!known && verdict.is_duplicate());
        self.oracle.observe(n, tick, verdict);
        let moment = if matches!(self.filter.window(), Window::Count(_)) {
            self.arrivals.len() as u64 + 1
        } else {
            tick.0
        };
        self.arrivals.push((n, moment));
    }

    pub fn ask_all(&mut self, tick: Tick) {
        self.oracle.forget_expired(self.filter.slack());
        for n in self.oracle.live(tick) {
            self.must_find(n, tick);
        }
    }

    /// So many arrivals of a window of the last `n`; all live keys are asked for `asked` times.
    pub fn run_counting(&mut self, keys: Keys, n: u64, arrivals: u64, asked: u64) {
        let every = (arrivals / asked).max(1);
        for at in 0..arrivals {
            let next = self.next_key(keys, n);
            self.arrive(next, Tick(0));
            if at % every == every - 1 {
                self.ask_all(Tick(0));
            }
        }
    }
}

/// Gaps at and around all that a window's time has of marks: the grain, the generations of an aged
/// table, the sweep's period, the window and its multiples.
pub fn gap(chance: &mut Chance, span: u64, grain: u64) -> u64 {
    let eighth = span / 8;
    let parts = [0, 1, grain, eighth, 2 * eighth, span / 2, span - eighth];
    let wholes = [span, span + grain, span + eighth, 2 * span, 3 * span];
    let marks = [&parts[..], &wholes].concat();
    match chance.below(8) {
        0 => chance.below(span / 16 + 2),
        1 | 2 if chance.below(8) == 0 => {
            let mark = marks[chance.below(marks.len() as u64) as usize];
            (mark + chance.below(3)).saturating_sub(1)
        }
        3 if chance.below(16) == 0 => chance.below(20 * span),
        4 | 5 => chance.below(4),
        6 => 1,
        _ => 0,
    }
}
