//! Any calls in any order on a small range window, beside an exact oracle: no false negative, ever.
#![no_main]

use arbitrary::Arbitrary;
use lately::range::{RangeSpec, RangeWindow};
use lately::{MergeError, Tick, WhenFull, Window};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;
use std::num::NonZeroU64;

#[derive(Arbitrary, Debug)]
struct Input {
    kind: u8,
    span: u16,
    capacity: u16,
    slack: u16,
    interval_bits: u8,
    when_full: u8,
    rough: bool,
    limited: bool,
    late_start: bool,
    in_levels: bool,
    calls: Vec<Call>,
}

#[derive(Arbitrary, Debug)]
enum Call {
    Insert { key: Key, gap: u8 },
    Observe { key: Key, gap: u8 },
    Back { key: Key, gap: u8 },
    Run { key: Key, count: u16, step: u8, gap: u8 },
    Advance { gap: u16 },
    Pause { windows: u8, more: u16 },
    Any { key: Key, below: Length, above: Length, later: u8 },
    Within { key: Key, below: Length, above: Length, within: u16, later: u8 },
    Merge { key: Key, count: u16, step: u8, late: u16, other_seed: bool },
    Restore,
}

/// Near one of a few places, so that keys meet.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Key {
    place: u8,
    near: u16,
}

impl Key {
    fn number(self) -> u128 {
        let near = u128::from(self.near);
        match self.place % 6 {
            0 => near,
            1 => u128::MAX - near,
            2 => (1 << 96) + near,
            3 => (near & 0xFF) << 70 | near >> 8,
            4 => near.wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835),
            _ => u128::from(u64::MAX) - 30_000 + near,
        }
    }
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Length {
    bits: u8,
    some: u8,
}

impl Length {
    fn number(self) -> u128 {
        u128::from(self.some) << (self.bits % 120)
    }
}

struct Oracle {
    window: Window,
    newest: u64,
    last: BTreeMap<u128, u64>,
}

impl Oracle {
    fn moment(&self, tick: u64) -> u64 {
        if let Window::Count(_) = self.window { self.newest + 1 } else { tick.max(self.newest) }
    }

    fn insert(&mut self, key: u128, tick: u64) {
        self.newest = self.moment(tick);
        self.last.insert(key, self.newest);
    }

    /// How long ago was one of these seen, at the latest?
    fn youngest(&self, first: u128, last: u128, tick: u64) -> Option<u64> {
        let moment = self.moment(tick);
        self.last.range(first..=last).map(|(_, last)| moment - last).min()
    }
}

fn check(
    seen: &RangeWindow,
    oracle: &Oracle,
    ends: (u128, u128),
    within: u64,
    tick: u64,
    sure: bool,
) {
    let youngest = oracle.youngest(ends.0, ends.1, tick);
    let found = seen.any_within(ends.0..=ends.1, within, Tick(tick)).is_perhaps();
    let reach = within.min(oracle.window.span().unwrap_or(u64::MAX));
    if seen.overload().forgotten + seen.overload().refused == 0 {
        assert!(found || youngest.is_none_or(|age| age > reach), "{ends:?} {youngest:?} {within}");
    }
    // What is too long ago or was never there, in intervals as long as planned.
    let is_short = ends.1 - ends.0 < seen.plan().interval();
    if sure && is_short && !seen.overload().any() && oracle.window.span().is_some() {
        let gone =
            youngest.is_none_or(|age| age > reach.saturating_add(seen.slack()).saturating_add(1));
        assert!(!found || !gone, "{ends:?} {youngest:?} {within}");
    }
}

fuzz_target!(|input: Input| {
    let least = |n: u16| NonZeroU64::new(u64::from(n % 3_000)).unwrap_or(NonZeroU64::MIN);
    let window = match input.kind % 3 {
        0 => Window::Count(least(input.span)),
        1 => Window::Time { span: least(input.span), capacity: least(input.capacity) },
        _ => Window::Unbounded { capacity: least(input.capacity) },
    };
    let when_full =
        [WhenFull::Grow, WhenFull::Forget, WhenFull::Refuse][usize::from(input.when_full) % 3];
    let spec = RangeSpec::new(window)
        .slack(u64::from(input.slack))
        .interval(1 << (input.interval_bits % 80))
        .fpr(if input.rough { 0.5 } else { 1e-9 })
        .when_full(when_full);
    // Few keys are planned flat; levels are for windows of many, and for those of older snapshots.
    let plan_of = |spec: RangeSpec| {
        let plan = spec.plan()?;
        if input.in_levels { plan.in_levels() } else { Ok(plan) }
    };
    let Ok(plan) = plan_of(spec) else { return };
    let limit = plan.most_memory() + u64::from(input.slack) * 8;
    let spec = if input.limited { spec.memory(limit) } else { spec };
    let mut seen = plan_of(spec).expect("it fits").build();
    let mut oracle = Oracle { window, newest: 0, last: BTreeMap::new() };
    let mut now = if input.late_start { u64::MAX - 100_000 } else { 0 };
    let mut left = 20_000u32;
    for call in input.calls.into_iter().take(100) {
        match call {
            Call::Insert { key, gap } => {
                now = now.saturating_add(u64::from(gap));
                seen.insert(key.number(), Tick(now));
                oracle.insert(key.number(), now);
            }
            Call::Observe { key, gap } => {
                now = now.saturating_add(u64::from(gap));
                let expected = seen.contains(key.number(), Tick(now));
                let verdict = seen.observe(key.number(), Tick(now));
                assert_eq!(verdict.is_duplicate(), expected);
                oracle.insert(key.number(), now);
            }
            Call::Back { key, gap } => {
                seen.insert(key.number(), Tick(now.saturating_sub(u64::from(gap))));
                oracle.insert(key.number(), now.saturating_sub(u64::from(gap)));
            }
            Call::Run { key, count, step, gap } => {
                for at in 0..u128::from(count % 4_096) {
                    left = left.saturating_sub(1);
                    if left == 0 {
                        break;
                    }
                    let key = key.number().wrapping_add(at * u128::from(step));
                    if at % 64 == 0 {
                        now = now.saturating_add(u64::from(gap));
                    }
                    seen.insert(key, Tick(now));
                    oracle.insert(key, now);
                }
            }
            Call::Advance { gap } => {
                now = now.saturating_add(u64::from(gap));
                seen.advance(Tick(now));
                if let Window::Time { .. } = window {
                    oracle.newest = oracle.moment(now);
                }
            }
            Call::Pause { windows, more } => {
                let span = window.span().unwrap_or(1);
                now = now.saturating_add(span * u64::from(windows) / 16 + u64::from(more));
            }
            Call::Any { key, below, above, later } => {
                let key = key.number();
                let ends = (key.saturating_sub(below.number()), key.saturating_add(above.number()));
                let tick = now.saturating_add(u64::from(later));
                check(&seen, &oracle, ends, u64::MAX, tick, !input.rough);
            }
            Call::Within { key, below, above, within, later } => {
                let key = key.number();
                let ends = (key.saturating_sub(below.number()), key.saturating_add(above.number()));
                let tick = now.saturating_add(u64::from(later));
                check(&seen, &oracle, ends, u64::from(within), tick, !input.rough);
            }
            Call::Merge { key, count, step, late, other_seed } => {
                let other_spec = spec.seed(u64::from(other_seed));
                let mut other = plan_of(other_spec).expect("planned before").build();
                let mut theirs = Oracle { window, newest: 0, last: BTreeMap::new() };
                let tick = now.saturating_sub(u64::from(late));
                for at in 0..u128::from(count % 1_024) {
                    let key = key.number().wrapping_add(at * u128::from(step));
                    other.insert(key, Tick(tick.saturating_add(at as u64)));
                    theirs.insert(key, tick.saturating_add(at as u64));
                }
                let before = seen.snapshot();
                match seen.merge(&other) {
                    Ok(()) => {
                        assert!(!other_seed && !matches!(window, Window::Count(_)));
                        oracle.newest = oracle.newest.max(theirs.newest);
                        now = now.max(oracle.newest);
                        for (key, last) in theirs.last {
                            let ours = oracle.last.entry(key).or_insert(last);
                            *ours = last.max(*ours);
                        }
                    }
                    Err(why) => {
                        assert_eq!(why == MergeError::Shape, other_seed);
                        assert_eq!(before, seen.snapshot(), "refused, and changed");
                    }
                }
            }
            Call::Restore => {
                let bytes = seen.snapshot();
                seen = RangeWindow::restore(&bytes).expect("its own snapshot");
                assert!(seen.snapshot() == bytes);
            }
        }
        if input.limited {
            assert!(seen.memory() as u64 <= limit, "{} of {limit}", seen.memory());
        }
    }
    // Every key that is live is found, in the end.
    for &key in oracle.last.keys() {
        check(&seen, &oracle, (key, key), u64::MAX, now, false);
    }
});
