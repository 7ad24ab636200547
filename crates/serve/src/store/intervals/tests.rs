use super::super::{Numbers, as_digest};
use super::*;
use lately::Window;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::num::NonZeroU64;

const SPAN: u64 = 50;

/// With no slack and a rate so low that false positives do not come up.
fn spec(window: usize, capacity: u64) -> RangeSpec {
    let (span, capacity) = (NonZeroU64::new(SPAN).unwrap(), NonZeroU64::new(capacity).unwrap());
    let window = match window {
        0 => Window::Time { span, capacity },
        _ => Window::Unbounded { capacity },
    };
    RangeSpec::new(window).interval(100).fpr(1e-12).slack(0).seed(3)
}

/// When each key was marked.
#[derive(Default)]
struct Exact {
    at: BTreeMap<u128, u64>,
    now: u64,
}

impl Exact {
    fn any(&self, window: usize, keys: RangeInclusive<u128>, within: u64) -> bool {
        let is_within = |(_, &at): (_, &u64)| window > 0 || self.now - at <= within;
        !keys.is_empty() && self.at.range(keys).any(is_within)
    }
}

proptest! {
    /// Whether it is being saved, was, or is not: it answers as an exact set does, and what was saved is what it was when it
    /// was held. There is room enough that nobody has to wait.
    #[test]
    fn held_or_not_it_answers_alike(window in 0usize..2, capacity in 1_500u64..4_000, steps in prop::collection::vec(
        (0usize..9, 0u128..90, 0u64..12, 1u128..5), 1..300))
    {
        let budget = Budget::new(1 << 26);
        let mut filter = Intervals::new(spec(window, capacity), &budget).unwrap();
        let (mut exact, mut held): (Exact, Option<(Held, Vec<u8>)>) = (Exact::default(), None);
        for (what, n, passes, many) in steps {
            exact.now += passes;
            let now = Tick(exact.now);
            // Apart from each other, so that there are empty intervals between them.
            let key = |n: u128| n * 50;
            match what {
                0..=2 => {
                    let keys: Vec<u128> = (n..n + many).map(key).collect();
                    let digests: Vec<_> = keys.iter().map(|&key| as_digest(key)).collect();
                    let mut outcomes = Vec::new();
                    filter.observe(&digests, now, &mut outcomes);
                    for (key, outcome) in keys.into_iter().zip(outcomes) {
                        let known = exact.any(window, key..=key, SPAN);
                        prop_assert_eq!(outcome, if known { Outcome::Seen } else { Outcome::Fresh }, "{}", key);
                        exact.at.insert(key, exact.now);
                    }
                }
                3 => {
                    prop_assert!(filter.remember(as_digest(key(n)), now));
                    exact.at.insert(key(n), exact.now);
                }
                4 => {
                    let within = u64::try_from(many).unwrap() * 9;
                    let keys = key(n)..=key(n + many);
                    prop_assert_eq!(filter.any(keys.clone(), Some(within), now), exact.any(window, keys, within));
                }
                5 => {
                    if let Some(hold) = filter.hold() {
                        let Tables::Ranges(tables) = hold.tables() else { panic!("{hold:?}") };
                        let before = tables.snapshot();
                        held = Some((hold, before));
                    }
                }
                6 => if let Some((held, before)) = held.take() {
                    let Tables::Ranges(tables) = held.tables() else { panic!("{held:?}") };
                    prop_assert_eq!(tables.snapshot(), before);
                },
                7 => {
                    filter.catch_up(many as usize);
                }
                _ => filter.advance(now),
            }
            for n in (0..96).step_by(3) {
                for keys in [key(n)..=key(n), key(n) + 1..=key(n + 1) - 1, key(n)..=key(n + 2), key(n + 1)..=key(n)] {
                    let expected = exact.any(window, keys.clone(), SPAN);
                    prop_assert_eq!(filter.any(keys.clone(), None, Tick(exact.now)), expected, "{:?} at {}", keys, exact.now);
                }
            }
            prop_assert!(budget.used() <= budget.limit());
        }
        drop(held);
        prop_assert!(filter.catch_up(usize::MAX));
        prop_assert_eq!(budget.used(), filter.memory());
        prop_assert!(filter.memory() >= filter.window().memory() as u64);
    }
}

/// Windows that grow share a budget and never take more, nor lose a key that they took; and they do take others again when those
/// before have expired.
#[test]
fn memory_stays_within_the_budget() {
    for window in [0, 1] {
        let budget = Budget::new(1 << 18);
        let mut filters: Vec<_> =
            (0..3).map(|_| Intervals::new(spec(window, 500), &budget).unwrap()).collect();
        let (mut taken, mut refused) = (0, 0);
        for round in 0..60u128 {
            for filter in &mut filters {
                let keys: Vec<_> =
                    (0..500).map(|n| as_digest((round * 500 + n) * 1_000_003)).collect();
                let mut outcomes = Vec::new();
                filter.observe(&keys, Tick(5), &mut outcomes);
                for (key, outcome) in keys.iter().zip(&outcomes) {
                    let known = filter.contains(*key, None, Tick(5));
                    assert_eq!(known, *outcome != Outcome::NoMemory, "{outcome:?}");
                    taken += usize::from(known);
                    refused += usize::from(!known);
                }
                assert!(budget.used() <= budget.limit(), "{} bytes", budget.used());
                assert!(filter.memory() >= filter.window().memory() as u64);
            }
        }
        let real: u64 = filters.iter().map(|filter| filter.window().memory() as u64).sum();
        assert!(budget.used() >= real && real > 1 << 16, "{real}");
        assert!(taken > 3_000 && refused > 10_000, "{taken} {refused}");
        assert!(filters.iter().any(|filter| filter.window().tables() > 1));
        if window == 0 {
            let later = Tick(10 * SPAN);
            filters.iter_mut().for_each(|filter| filter.tidy(later));
            let mut outcomes = Vec::new();
            filters[0].observe(&[as_digest(1)], later, &mut outcomes);
            assert_eq!(outcomes, [Outcome::Fresh]);
        }
        drop(filters);
        assert_eq!(budget.used(), 0);
    }
}

/// Many keys that come while it is held are all there, at once and later, within the budget. Where there is no memory for them,
/// their callers wait and then hear the truth.
#[test]
fn many_keys_come_while_it_is_held() {
    for (window, memory) in [(0, 16 << 20), (1, 16 << 20), (0, 1 << 17)] {
        let budget = Budget::new(memory);
        let mut filter = Intervals::new(spec(window, 2_000), &budget).unwrap();
        let key = |n: u128| as_digest(n * 1_000_003);
        let observe = |filter: &mut Intervals, keys: std::ops::Range<u128>| {
            let keys: Vec<_> = keys.map(key).collect();
            let mut outcomes = Vec::new();
            filter.observe(&keys, Tick(5), &mut outcomes);
            for (key, outcome) in keys.iter().zip(&outcomes) {
                let known = filter.contains(*key, None, Tick(5));
                assert_eq!(known, *outcome != Outcome::NoMemory, "{outcome:?}");
            }
            outcomes
        };
        observe(&mut filter, 0..1_900);
        let held = filter.hold().unwrap();
        assert!(filter.hold().is_none());
        std::thread::scope(|scope| {
            if memory < 1 << 20 {
                scope.spawn(|| {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                    drop(held);
                });
            } else {
                // Until the end of all this.
                scope.spawn(move || {
                    std::thread::sleep(std::time::Duration::from_millis(200));
                    drop(held);
                });
            }
            for part in 19..38 {
                observe(&mut filter, part * 100..part * 100 + 100);
                assert!(budget.used() <= budget.limit());
            }
        });
        filter.catch_up(usize::MAX);
        let there = (0..3_800).filter(|&n| filter.contains(key(n), None, Tick(5))).count();
        assert!(there == 3_800 || memory < 1 << 20 && there >= 1_900, "{there}");
        assert!(budget.used() <= budget.limit() && budget.used() == filter.memory());
    }
}

/// Memory of a window that was dropped while it is being saved is taken until that is done.
#[test]
fn what_is_held_takes_memory() {
    let budget = Budget::new(1 << 22);
    let mut filter = Intervals::new(spec(0, 2_000), &budget).unwrap();
    let (memory, held) = (filter.memory(), filter.hold().unwrap());
    drop(filter);
    assert_eq!(budget.used(), memory);
    drop(held);
    assert_eq!(budget.used(), 0);
}

/// A limit of its own is taken at once and never passed; without one, what its tables need at worst is taken before they are
/// built.
#[test]
fn memory_is_taken_before_it_is_needed() {
    let budget = Budget::new(1 << 22);
    let limited = Intervals::new(spec(0, 1_000).memory(1 << 20), &budget).unwrap();
    assert_eq!((limited.memory(), budget.used()), (1 << 20, 1 << 20));
    let plan = spec(0, 100_000).plan().unwrap();
    let other = Intervals::new(spec(0, 100_000), &budget).unwrap();
    assert_eq!(other.memory(), plan.most_memory());
    let used = budget.used();
    let huge = Intervals::new(spec(0, 1 << 40), &budget);
    assert!(matches!(huge, Err(Refusal::Memory { .. } | Refusal::Plan(_))), "{huge:?}");
    assert_eq!(budget.used(), used);
    let interval = Numbers::of("number").unwrap().with_interval("2^100").unwrap().interval;
    let _ = Intervals::new(spec(0, 1 << 60).interval(interval), &budget).unwrap_err();
    assert_eq!(budget.used(), used);
}

/// What it took while others were refused it takes again from a journal, which knows nothing of those, and within the same budget.
#[test]
fn what_was_taken_is_taken_again() {
    for (window, capacity, memory) in [(4_000, 20_000, 300 << 10), (4_000, 5_000, 100 << 10)] {
        let spec = Numbers::of("number").unwrap().interval;
        let (span, keys) = (NonZeroU64::new(window).unwrap(), NonZeroU64::new(capacity).unwrap());
        let spec = RangeSpec::new(Window::Time { span, capacity: keys }).interval(spec);
        let spec = spec.fpr(1e-3).slack(window / 8);
        let (budget, again) = (Budget::new(memory), Budget::new(memory));
        let mut filter = Intervals::new(spec, &budget).unwrap();
        again.begin_loading();
        let mut other = Intervals::new(spec, &again).unwrap();
        let (mut state, mut recent, mut refused) = (1u64, Vec::new(), 0);
        let mut random = move || {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            state ^ state >> 29
        };
        for now in (0..14_000).step_by(15) {
            let mut part: Vec<u64> = (0..300).map(|_| random()).collect();
            let from = recent.len().saturating_sub(10_000);
            if recent.len() > from {
                part.extend(
                    (0..75).map(|_| recent[from + random() as usize % (recent.len() - from)]),
                );
            }
            for key in part {
                let key = as_digest(key.into());
                let (mut outcomes, known) = (Vec::new(), filter.contains(key, None, Tick(now)));
                filter.observe(&[key], Tick(now), &mut outcomes);
                if outcomes == [Outcome::NoMemory] {
                    assert!(!known, "known, and refused at {now}");
                    refused += 1;
                    continue;
                }
                recent.push(of_digest(key) as u64);
                other.observe(&[key], Tick(now), &mut outcomes);
                assert_ne!(outcomes[1], Outcome::NoMemory);
            }
            assert!(budget.used() <= budget.limit());
            assert!(again.used() <= again.limit(), "{} at {now}", again.used());
        }
        assert!(refused > 10_000, "{refused}");
        assert!(again.end_loading());
    }
}
