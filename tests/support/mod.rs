//! What the tests share: keys, chance, and the exact answer beside every filter.
// Each test program uses a part.
#![allow(dead_code, unreachable_pub)]

use lately::{Digest, Digester, Renewal, Spec, Structure, Tick, Verdict, WhenFull, Window};
use std::collections::HashMap;
use std::num::NonZeroU64;

pub fn nonzero(n: u64) -> NonZeroU64 {
    NonZeroU64::new(n).unwrap_or(NonZeroU64::MIN)
}

pub fn count(n: u64) -> Window {
    Window::Count(nonzero(n))
}

pub fn time(span: u64, capacity: u64) -> Window {
    Window::Time { span: nonzero(span), capacity: nonzero(capacity) }
}

pub fn unbounded(capacity: u64) -> Window {
    Window::Unbounded { capacity: nonzero(capacity) }
}

/// Key number `n`: consecutive numbers, as serial numbers are.
pub fn key(n: u64) -> Digest {
    Digester::new(0).digest(&n.to_le_bytes())
}

/// SplitMix64: the same series everywhere.
pub struct Chance(pub u64);

impl Chance {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }
}

/// The exact answer: when each key was last seen.
///
/// It follows the filter's own verdicts: under [`Renewal::OnFresh`] a false positive is not
/// remembered, so it must not be expected to be.
#[derive(Clone, Debug)]
pub struct Oracle {
    window: Window,
    renewal: Renewal,
    /// Of the newest arrival: its tick, or its number in a count window.
    newest: u64,
    last: HashMap<u64, u64>,
}

impl Oracle {
    pub fn new(window: Window, renewal: Renewal) -> Self {
        Self { window, renewal, newest: 0, last: HashMap::new() }
    }

    fn is_count(&self) -> bool {
        matches!(self.window, Window::Count(_))
    }

    /// The moment that a question asked at this tick is judged at.
    fn moment(&self, tick: Tick) -> u64 {
        if self.is_count() { self.newest + 1 } else { tick.0.max(self.newest) }
    }

    /// How long ago the key was remembered, from a question asked at this tick.
    pub fn age(&self, key: u64, tick: Tick) -> Option<u64> {
        self.last.get(&key).map(|last| self.moment(tick) - last)
    }

    /// Must the filter find it?
    pub fn is_live(&self, key: u64, tick: Tick) -> bool {
        let span = self.window.span().unwrap_or(u64::MAX);
        self.age(key, tick).is_some_and(|age| age <= span)
    }

    /// May the filter find it, false positives aside?
    pub fn may_be_found(&self, key: u64, tick: Tick, slack: u64) -> bool {
        let reach = self.window.span().unwrap_or(u64::MAX).saturating_add(slack);
        self.age(key, tick).is_some_and(|age| age <= reach)
    }

    pub fn observe(&mut self, key: u64, tick: Tick, verdict: Verdict) {
        self.newest = self.moment(tick);
        if verdict == Verdict::Fresh || self.renewal == Renewal::Always {
            self.last.insert(key, self.newest);
        }
    }

    pub fn remember(&mut self, key: u64, tick: Tick) {
        if !self.is_count() {
            self.newest = self.moment(tick);
        }
        self.last.insert(key, self.newest);
    }

    pub fn advance(&mut self, tick: Tick) {
        if matches!(self.window, Window::Time { .. }) {
            self.newest = self.moment(tick);
        }
    }

    /// Every key that must be found at this tick.
    pub fn live(&self, tick: Tick) -> impl Iterator<Item = u64> + '_ {
        self.last.keys().copied().filter(move |&key| self.is_live(key, tick))
    }

    /// Drops what has long expired, so that long runs stay quick.
    pub fn forget_expired(&mut self, slack: u64) {
        let (newest, window) = (self.newest, self.window);
        let reach = window.span().unwrap_or(u64::MAX).saturating_add(slack).saturating_mul(2);
        self.last.retain(|_, last| newest - *last <= reach);
    }
}

/// A window for so many keys that a structure can keep and grow in: of time, or for ever. `None` for
/// one that counts arrivals only.
pub fn growable(structure: Structure, span: u64, capacity: u64) -> Option<Window> {
    [unbounded(capacity), time(span, capacity)].into_iter().find(|&window| structure.keeps(window))
}

/// The windows that small runs go through: lengths at and around the powers of 2 where widths of
/// stamps change, and the least and greatest there are.
pub fn windows(structure: Structure) -> Vec<Window> {
    if structure.is_unbounded() {
        return [1, 2, 30].map(unbounded).to_vec();
    }
    let mut windows: Vec<Window> = [1, 2, 3, 4, 5, 9, 21, 31].map(count).to_vec();
    windows.extend(
        [(1, 1), (1, 9), (2, 4), (3, 5), (7, 20), (10, 1), (20, 12), (21, 30)]
            .map(|(span, capacity)| time(span, capacity)),
    );
    windows.extend([time(1_000_003, 25), time(10_000_000_000, 16), time((1 << 60) - 1, 8)]);
    windows.retain(|&window| structure.keeps(window));
    windows
}

/// Every structure with every window, renewal, policy and a few slacks.
pub fn specs() -> Vec<Spec> {
    let mut specs = Vec::new();
    for &structure in Structure::ALL {
        for window in windows(structure) {
            for renewal in [Renewal::Always, Renewal::OnFresh] {
                let span = window.span().unwrap_or(0);
                let mut slacks = vec![0];
                if span > 0 {
                    slacks.extend([1, span / 4, span - 1, 3 * span]);
                }
                slacks.dedup();
                for slack in slacks {
                    for when_full in [WhenFull::Grow, WhenFull::Forget, WhenFull::Refuse] {
                        let spec = Spec::new(window).fpr(1e-9).structure(structure);
                        specs.push(spec.renewal(renewal).slack(slack).when_full(when_full));
                    }
                }
            }
        }
    }
    specs
}

/// The most false positives that `questions` may have at this rate: five standard deviations
/// above the mean (passed by chance once in three million), and one for the steps of small numbers.
pub fn at_most(questions: u64, fpr: f64) -> f64 {
    let mean = questions as f64 * fpr;
    mean + 5.0 * mean.sqrt() + 1.0
}
