//! The range window: against a sorted oracle.

// The helpers fail as the tests do.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "support/forms.rs"]
mod forms;
mod support;

use forms::in_each_form;
use lately::range::{RangePlan, RangeSpec, RangeWindow};
use lately::{Tick, Window};
use std::collections::BTreeMap;
use support::{Chance, count, time, unbounded};

/// When each key was last seen, in order of the keys.
#[derive(Clone)]
struct Sorted {
    window: Window,
    newest: u64,
    last: BTreeMap<u128, u64>,
}

impl Sorted {
    fn new(window: Window) -> Self {
        Self { window, newest: 0, last: BTreeMap::new() }
    }

    fn moment(&self, tick: u64) -> u64 {
        if let Window::Count(_) = self.window { self.newest + 1 } else { tick.max(self.newest) }
    }

    fn insert(&mut self, key: u128, tick: u64) {
        self.newest = self.moment(tick);
        self.last.insert(key, self.newest);
    }

    /// How long ago was the youngest of these keys seen, asked at this tick?
    fn youngest(&self, first: u128, last: u128, tick: u64) -> Option<u64> {
        if first > last {
            return None;
        }
        let moment = self.moment(tick);
        self.last.range(first..=last).map(|(_, &last)| moment - last).min()
    }

    fn forget_expired(&mut self, slack: u64) {
        let reach = self.window.span().unwrap_or(u64::MAX).saturating_add(slack);
        let newest = self.newest;
        self.last.retain(|_, last| newest - *last <= reach);
    }
}

/// Keys as streams have them.
#[derive(Clone, Copy, Debug)]
enum Keys {
    Uniform,
    Zipf,
    Run,
    Runs,
    Ends,
    Shuffled,
}

const KEYS: [Keys; 6] =
    [Keys::Uniform, Keys::Zipf, Keys::Run, Keys::Runs, Keys::Ends, Keys::Shuffled];

impl Keys {
    fn key(self, at: u64, chance: &mut Chance) -> u128 {
        let wide = u128::from(chance.next()) << 64 | u128::from(chance.next());
        match self {
            Self::Uniform => wide,
            // A share of 1/k for the k-th, nearly.
            Self::Zipf => {
                let share = chance.below(1 << 30) as f64 / (1u64 << 30) as f64;
                1 << 70 | (2_000f64.powf(share) as u128 * 1_000)
            }
            Self::Run => (1 << 96) + u128::from(at),
            Self::Runs => (u128::from(at / 100) << 80) + u128::from(at % 100),
            Self::Ends => {
                let small = u128::from(chance.below(3_000));
                if wide & 1 == 0 { small } else { u128::MAX - small }
            }
            Self::Shuffled => u128::from(at.wrapping_mul(0x9E37_79B9) % 5_000),
        }
    }
}

/// Asks around every key, and anywhere.
fn ask(seen: &RangeWindow, oracle: &Sorted, now: u64, chance: &mut Chance, keys: Keys, at: u64) {
    let span = oracle.window.span().unwrap_or(u64::MAX);
    let planned = seen.plan().interval();
    let length = match chance.below(8) {
        0 => 1,
        1 => 2,
        2 => planned,
        3 => planned * 3,
        4 => 1 << chance.below(128),
        5 => u128::MAX >> chance.below(4),
        _ => 1 + u128::from(chance.below(planned as u64 * 2)),
    };
    let key = keys.key(at, chance);
    let below = (length / 32).saturating_mul(u128::from(chance.below(40)));
    let first = key.saturating_sub(below);
    let last = first.saturating_add(length - 1);
    let youngest = oracle.youngest(first, last, now);
    let found = seen.any(first..=last, Tick(now)).is_perhaps();
    let live = youngest.is_some_and(|age| age <= span);
    assert!(found || !live, "{first}..={last} {youngest:?} {oracle:?}", oracle = oracle.newest);
    if let Some(age) = youngest.filter(|&age| age <= span) {
        for within in [age, age.saturating_add(1), u64::MAX] {
            assert!(seen.any_within(first..=last, within, Tick(now)).is_perhaps());
        }
    }
    let far = youngest.is_none_or(|age| age > span.saturating_add(seen.slack()));
    if far && length <= planned * 3 {
        assert!(!found, "{first}..={last} of {youngest:?} at {now}, slack {}", seen.slack());
    }
    if let Some(age) =
        youngest.filter(|&age| age > seen.slack() + 1 && length <= planned * 3 && span < u64::MAX)
    {
        let within = age - seen.slack() - 1;
        assert!(!seen.any_within(first..=last, within, Tick(now)).is_perhaps(), "{within} {age}");
    }
}

/// At a rate of 1e-9: each answer is the oracle's, but for the slack; in both forms where there are few keys.
fn answers_as_the_oracle(window: Window, slack: u64, keys: Keys, arrivals: u64, gap: u64) {
    let plans = in_each_form(RangeSpec::new(window).interval(100).fpr(1e-9).slack(slack));
    // What is to test levels must not silently be flat.
    assert_eq!(plans.len(), if window.capacity() <= 2_000 { 2 } else { 1 }, "{window:?}");
    for plan in plans {
        assert!(plan.slack() <= slack);
        answers_as_planned(&plan, keys, arrivals, gap);
    }
}

fn answers_as_planned(plan: &RangePlan, keys: Keys, arrivals: u64, gap: u64) {
    let (window, slack) = (plan.window(), plan.slack());
    let mut seen = plan.build();
    let mut oracle = Sorted::new(window);
    let mut chance = Chance(arrivals ^ slack);
    let mut now = 0;
    for at in 0..arrivals {
        if gap > 0 {
            now += match chance.below(64) {
                0 => chance.below(gap * 400),
                1..20 => 0,
                _ => chance.below(gap * 2),
            };
        }
        let key = keys.key(at, &mut chance);
        seen.insert(key, Tick(now));
        oracle.insert(key, now);
        assert!(seen.contains(key, Tick(now)), "{keys:?} {at}");
        if at % 1_000 == 0 {
            oracle.forget_expired(slack);
        }
        let back = at - chance.below(at.min(2_000) + 1);
        let later = if chance.below(3) == 0 { chance.below(gap * 30 + 1) } else { 0 };
        ask(&seen, &oracle, now + later, &mut chance, keys, back);
    }
    let overload = seen.overload();
    assert!(!overload.any(), "{window:?} {keys:?} {overload:?}");
}

#[test]
fn answers_are_the_oracles_in_windows_of_arrivals() {
    for keys in KEYS {
        for (n, slack) in [
            (1, 0),
            (2, 1),
            (7, 0),
            (100, 12),
            (1_000, 125),
            (1_000, 0),
            (5_000, 600),
            (3_000, 9_000),
        ] {
            answers_as_the_oracle(count(n), slack, keys, n * 4 + 500, 0);
        }
    }
}

#[test]
fn answers_are_the_oracles_in_windows_of_time() {
    for keys in KEYS {
        for (span, capacity, slack) in
            [(1, 1, 0), (50, 100, 6), (1_000, 300, 125), (20_000, 6_000, 2_500), (20_000, 6_000, 0)]
        {
            let gap = (span / capacity).max(1) * 2;
            answers_as_the_oracle(time(span, capacity), slack, keys, capacity * 4 + 500, gap);
        }
    }
}

#[test]
fn answers_are_the_oracles_without_a_window() {
    for keys in KEYS {
        answers_as_the_oracle(unbounded(5_000), 0, keys, 5_000, 3);
    }
}
