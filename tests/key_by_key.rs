//! Intervals asked for key by key: against a sorted oracle.

// The helpers fail as the tests do.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use lately::range::{KeyByKey, RangeFilter};
use lately::{AnyFilter, Filter, Renewal, Spec, Structure, Tick, Window};
use std::collections::BTreeMap;
use support::{Chance, at_most, count, time};

/// When each key was last seen, in order of the keys.
struct Sorted {
    window: Window,
    arrivals: u64,
    last: BTreeMap<u128, u64>,
}

impl Sorted {
    fn insert(&mut self, key: u128, tick: u64) {
        self.arrivals += 1;
        let moment = if self.counts() { self.arrivals } else { tick };
        self.last.insert(key, moment);
    }

    fn counts(&self) -> bool {
        matches!(self.window, Window::Count(_))
    }

    fn age(&self, last: u64, tick: u64) -> u64 {
        (if self.counts() { self.arrivals + 1 } else { tick }) - last
    }

    /// Is a key of these in it that was seen within so many ticks or arrivals?
    fn any_in(&self, first: u128, last: u128, within: u64, tick: u64) -> bool {
        let within = within.min(self.window.span().unwrap());
        first <= last
            && self.last.range(first..=last).any(|(_, &last)| self.age(last, tick) <= within)
    }

    fn live(&self, tick: u64) -> Vec<(u128, u64)> {
        let span = self.window.span().unwrap();
        let ages = self.last.iter().map(|(&key, &last)| (key, self.age(last, tick)));
        ages.filter(|&(_, age)| age <= span).collect()
    }

    fn forget_expired(&mut self, tick: u64) {
        let (now, span) = (self.age(0, tick), self.window.span().unwrap());
        self.last.retain(|_, last| now - *last <= span);
    }
}

fn filter(structure: Structure, window: Window, fpr: f64) -> KeyByKey<AnyFilter> {
    let filter = Spec::new(window).structure(structure).fpr(fpr).plan().unwrap().build();
    KeyByKey::new(filter.digester(), filter)
}

const AGED: [Structure; 8] = [
    Structure::TimeBloom,
    Structure::IntervalBloom,
    Structure::IntervalBloomPlain,
    Structure::TimingBloom,
    Structure::CuckooWindow,
    Structure::DleftWindow,
    Structure::AgedTable,
    Structure::AgedBuckets,
];

fn kept() -> impl Iterator<Item = (Structure, Window)> {
    let windows = [count(300), time(900, 300)];
    let all = AGED.into_iter().flat_map(move |s| windows.map(|window| (s, window)));
    all.filter(|&(structure, window)| structure.keeps(window))
}

/// Near the ends of what a key can be, and anywhere in between.
fn any_key(chance: &mut Chance) -> u128 {
    let small = u128::from(chance.below(5_000));
    match chance.below(5) {
        0 => small,
        1 => u128::MAX - small,
        2 => (1 << 96) + 40 * small,
        3 => u128::from(u64::MAX) - 2_500 + small,
        _ => u128::from(chance.next()) << 64 | u128::from(chance.next()),
    }
}

/// Intervals that begin or end with a live key, hold one in the middle or are one; with windows
/// that it is just within.
#[test]
fn an_interval_with_a_live_key_is_never_called_empty() {
    for (structure, window) in kept() {
        let mut seen = filter(structure, window, 1e-6);
        let mut oracle = Sorted { window, arrivals: 0, last: BTreeMap::new() };
        let mut chance = Chance(5);
        let mut now = 0;
        for at in 0..4_000 {
            now += chance.below(7);
            let key = any_key(&mut chance);
            seen.insert(key, Tick(now));
            oracle.insert(key, now);
            if at % 200 != 199 {
                continue;
            }
            oracle.forget_expired(now);
            for (key, age) in oracle.live(now) {
                let length = 1 + u128::from(chance.below(40));
                let below = key.saturating_sub(length);
                let above = key.saturating_add(length);
                for (first, last) in [(key, key), (below, key), (key, above), (below, above)] {
                    for within in [None, Some(age), Some(age + 1), Some(u64::MAX)] {
                        let found = seen.any_in(first..=last, within, Tick(now));
                        assert!(found, "{structure} {key} of {age} in {first}..={last} {within:?}");
                    }
                }
            }
        }
    }
}

/// Any intervals: occupied by the oracle is occupied by the filter; the others hardly ever are, as
/// the slack is none.
#[test]
fn intervals_are_answered_as_the_oracle_does() {
    for (structure, window) in kept() {
        let mut seen = filter(structure, window, 1e-9);
        let mut oracle = Sorted { window, arrivals: 0, last: BTreeMap::new() };
        let mut chance = Chance(6);
        let (mut now, mut occupied) = (0, 0);
        for _ in 0..3_000 {
            now += chance.below(7);
            let key = any_key(&mut chance);
            seen.insert(key, Tick(now));
            oracle.insert(key, now);
            let first = any_key(&mut chance);
            let last = first.saturating_add(u128::from(chance.below(60)));
            let within = [0, 1, 10, 100, 300, 900, u64::MAX][chance.below(7) as usize];
            let expected = oracle.any_in(first, last, within, now);
            occupied += u64::from(expected);
            let found = seen.any_in(first..=last, Some(within), Tick(now));
            assert_eq!(found, expected, "{structure} {window:?} {first}..={last} {within}");
        }
        assert!((100..2_900).contains(&occupied), "{occupied}");
    }
}

/// For intervals of 1, 10 and 1000 keys: a point filter for ε/L keeps ε, and what it says of its
/// rate is no less than what is measured.
#[test]
fn the_rate_of_an_interval_is_within_what_is_said() {
    for (structure, window) in kept() {
        for (length, questions) in [(1u128, 200_000u64), (10, 60_000), (1_000, 3_000)] {
            for fpr in [0.1, 0.01] {
                let mut seen = filter(structure, window, fpr / length as f64);
                // Inserted keys lie a thousand intervals apart from those asked for.
                for at in 0..1_500u64 {
                    seen.insert(u128::from(at) << 20, Tick(at * 3));
                }
                let mut wrong = 0u64;
                for at in 0..questions {
                    let now = 1_500 + at / (questions / 600);
                    if at % (questions / 600) == 0 {
                        seen.insert(u128::from(now) << 20, Tick(now * 3));
                    }
                    let first = (1 << 100) + u128::from(at) * length;
                    let keys = first..=first + (length - 1);
                    wrong += u64::from(seen.any_in(keys, None, Tick(now * 3)));
                }
                let name = format!("{structure} {window:?} {length} {fpr}: {wrong} of {questions}");
                assert!(wrong as f64 <= at_most(questions, fpr), "{name}");
                let said = seen.fpr_of(length);
                assert!(said <= fpr * 1.001, "{name}, said {said}");
                assert!(wrong as f64 <= at_most(questions, said), "{name}, said {said}");
                // A count window is exactly full, and so its rate is not far below.
                let exact = structure == Structure::TimingBloom;
                assert!(!exact || wrong as f64 >= 0.4 * questions as f64 * fpr, "{name}");
            }
        }
    }
}

#[test]
fn the_ends_of_the_universe_are_keys_like_others() {
    for (structure, window) in kept() {
        let mut seen = filter(structure, window, 1e-9);
        assert!(!seen.any_in(0..=100, None, Tick(0)));
        assert!(!seen.any_in(u128::MAX - 100..=u128::MAX, None, Tick(0)));
        seen.insert(0, Tick(0));
        seen.insert(u128::MAX, Tick(0));
        for length in 0..100 {
            assert!(seen.any_in(0..=length, None, Tick(1)));
            assert!(seen.any_in(u128::MAX - length..=u128::MAX, None, Tick(1)));
            assert!(!seen.any_in(1..=length, None, Tick(1)));
            assert!(!seen.any_in(u128::MAX - length - 1..=u128::MAX - 1, None, Tick(1)));
        }
    }
}

#[test]
fn an_empty_interval_holds_no_key() {
    for (structure, window) in kept() {
        let mut seen = filter(structure, window, 0.5);
        for key in 0..1_000 {
            seen.insert(key, Tick(0));
        }
        seen.insert(u128::MAX, Tick(0));
        for (first, last) in [(1, 0), (999, 998), (u128::MAX, 0), (u128::MAX, u128::MAX - 1)] {
            assert!(!seen.any_in(first..=last, None, Tick(0)), "{first}..={last}");
            assert!(!seen.any_in(first..=last, Some(u64::MAX), Tick(0)));
        }
        let mut gone = 5..=5;
        assert_eq!(gone.next(), Some(5));
        assert!(!seen.any_in(gone, None, Tick(0)), "one that has been gone through");
        assert!(seen.fpr_of(0).abs() < 1e-12 && seen.fpr_of(u128::MAX) <= 1.0);
        assert!(seen.filter().memory() > 0);
    }
}

/// A key that is inserted under `OnFresh` while it is known keeps its first age.
#[test]
fn renewal_is_the_filters() {
    for (renewal, found) in [(Renewal::Always, true), (Renewal::OnFresh, false)] {
        let spec = Spec::new(time(100, 50)).renewal(renewal);
        let filter = spec.plan().unwrap().build();
        let mut seen = KeyByKey::new(filter.digester(), filter);
        seen.insert(7, Tick(0));
        seen.insert(7, Tick(100));
        assert_eq!(seen.any_in(0..=10, None, Tick(150)), found);
    }
}
