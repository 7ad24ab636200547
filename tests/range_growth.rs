//! Range windows with more keys than planned: the rate that was promised, the memory, and what is counted.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "support/forms.rs"]
mod forms;
mod support;

use forms::{FORMS, in_each_form};
use lately::range::{Answer, RangePlan, RangeSpec, RangeWindow};
use lately::{MergeError, Tick, WhenFull, Window};
use std::fs;
use std::path::PathBuf;
use support::{Chance, at_most, time, unbounded};

const FPR: f64 = 0.01;
const INTERVAL: u128 = 64;

/// Keys lie below 2^100, questions for strangers above.
fn key(at: u64) -> u128 {
    u128::from(Chance(at).next()) << 30 | u128::from(at & 0xFF)
}

/// The share of intervals without a key that are called occupied is what was promised, and so is what every answer says.
fn keeps_its_rate(window: &RangeWindow, now: u64, name: &str) {
    let (asked, mut wrong, mut chance) = (40_000u64, 0, Chance(now ^ 5));
    for _ in 0..asked {
        let first = 1 << 110 | u128::from(chance.next());
        if let Answer::Perhaps { fpr } = window.any(first..=first + INTERVAL - 1, Tick(now)) {
            wrong += 1;
            assert!(fpr <= FPR * 1.000_001, "{name}: said {fpr}");
        }
    }
    assert!(f64::from(wrong) <= at_most(asked, FPR), "{name}: {wrong} of {asked}");
    assert!(window.estimated_fpr() <= FPR * 1.000_001, "{name}: {}", window.estimated_fpr());
}

fn spec(window: Window) -> RangeSpec {
    RangeSpec::new(window).interval(INTERVAL).fpr(FPR)
}

/// Twenty times as many keys as planned: none of the window is lost, the rate is kept at every size on the way, and when time has
/// emptied the older tables they are gone.
#[test]
fn a_growing_window_keeps_its_rate_and_its_keys() {
    for capacity in [1u64, 30, 200, 1_000, 10_000] {
        let span = 20 * capacity;
        for (window, slack) in
            [(time(span, capacity), span / 8), (time(span, capacity), 0), (unbounded(capacity), 0)]
        {
            for plan in in_each_form(spec(window).slack(slack)) {
                keeps_its_keys_as_it_grows(&plan);
            }
        }
    }
}

fn keeps_its_keys_as_it_grows(plan: &RangePlan) {
    let (window, capacity) = (plan.window(), plan.window().capacity());
    let span = 20 * capacity;
    let name = format!("{plan:?}");
    let mut seen = plan.build();
    let (mut largest, mut memory) = (0, 0);
    for at in 0..3 * span {
        if window.span().is_none() && at >= span {
            break;
        }
        seen.insert(key(at), Tick(at));
        largest = largest.max(seen.tables());
        memory = memory.max(seen.memory());
        if (at + 1) % (span / 4).max(1) == 0 {
            keeps_its_rate(&seen, at, &format!("{name} at {at}"));
            for old in (at.saturating_sub(span)..=at).step_by(1 + capacity as usize / 100) {
                let key = key(old);
                let around = key - key.min(3)..=key + 5;
                assert!(seen.contains(key, Tick(at)), "{name}: {old} at {at}");
                assert!(seen.any_within(around, at - old, Tick(at)).is_perhaps(), "{name}");
            }
        }
    }
    let overload = seen.overload();
    assert_eq!(overload.forgotten + overload.refused, 0, "{name}: {overload:?}");
    // A table for one key has room for those that wait in its buffer.
    assert!(largest >= 2 || capacity < 100, "{name}: {largest}");
    assert_eq!(overload.grown > 0, largest > 1, "{name}: {overload:?}");
    if window.span().is_some() {
        for at in 0..span {
            seen.insert(key(at % 3), Tick(3 * span + at));
        }
        seen.advance(Tick(6 * span));
        assert_eq!(seen.tables(), 1, "{name}");
        assert!(seen.memory() <= memory, "{name}");
        assert!(!seen.any(0..=u128::MAX, Tick(6 * span)).is_perhaps(), "{name}");
    }
}

/// At every moment within the limit; what does not fit is forgotten from the oldest on, and counted.
#[test]
fn a_growing_window_keeps_to_its_memory() {
    for (capacity, form) in [(300u64, FORMS[0]), (300, FORMS[1]), (3_000, FORMS[0])] {
        for times in [1, 2, 5, 12] {
            let span = 40 * capacity;
            let free = spec(time(span, capacity)).slack(span / 8);
            let limit = form(free).unwrap().most_memory() * times;
            let mut seen = form(free.memory(limit)).unwrap().build();
            let name = format!("{:?}, {times} times the memory", seen.plan());
            let mut refused = 0;
            for at in 0..2 * span {
                seen.insert(key(at), Tick(at));
                assert!(seen.memory() as u64 <= limit, "{name} at {at}: {}", seen.memory());
                let is_refused = seen.overload().refused > refused;
                refused = seen.overload().refused;
                assert!(is_refused || seen.contains(key(at), Tick(at)), "{name} at {at}");
                if at % (span / 3) == span / 3 - 1 {
                    keeps_its_rate(&seen, at, &name);
                }
            }
            let now = 2 * span - 1;
            let kept = (span..=now).filter(|&at| seen.contains(key(at), Tick(now))).count() as u64;
            let counted = seen.overload().forgotten + seen.overload().refused;
            assert!(kept + counted >= span, "{name}: {kept} kept, {counted} counted");
            assert!(kept >= capacity / 2, "{name}: {kept} kept");
            assert!(seen.overload().any(), "{name}");
        }
    }
}

/// Those that forget or refuse have one table, and its rate.
#[test]
fn other_policies_keep_the_rate_too() {
    for capacity in [20u64, 200, 1_000, 10_000] {
        for when_full in [WhenFull::Forget, WhenFull::Refuse] {
            for window in [time(10 * capacity, capacity), unbounded(capacity)] {
                let spec = spec(window).when_full(when_full).slack(capacity);
                for plan in in_each_form(spec) {
                    keeps_its_rate_past_its_capacity(&plan);
                }
            }
        }
    }
}

fn keeps_its_rate_past_its_capacity(plan: &RangePlan) {
    let (name, capacity) = (format!("{plan:?}"), plan.window().capacity());
    let mut seen = plan.build();
    for at in 0..25 * capacity {
        seen.insert(key(at), Tick(at));
        assert!(seen.memory() as u64 <= plan.most_memory(), "{name}");
        if at % (6 * capacity) == 0 {
            keeps_its_rate(&seen, at, &name);
        }
    }
    keeps_its_rate(&seen, 25 * capacity - 1, &name);
    assert_eq!((seen.tables(), seen.overload().grown), (1, 0), "{name}");
    let lost = seen.overload().forgotten + seen.overload().refused;
    assert!(lost > 0 || capacity < 100, "{name}: {:?}", seen.overload());
}

/// The same answers and the same bytes after a restoration, while tables come and go.
#[test]
fn a_grown_window_is_restored_as_it_was() {
    let free = spec(time(4_000, 150)).slack(500);
    let limited = free.memory(free.plan().unwrap().most_memory() * 4);
    let unlimited = [free, spec(unbounded(150))].into_iter().flat_map(in_each_form);
    for plan in unlimited.chain([limited.plan().unwrap()]) {
        let (mut one, mut other, mut most) = (plan.build(), plan.build(), 0);
        let (mut now, mut chance) = (0, Chance(2));
        for at in 0..9_000u64 {
            now += if at % 3_000 == 2_999 { 9_000 } else { chance.below(4) };
            one.insert(key(at), Tick(now));
            other.insert(key(at), Tick(now));
            most = most.max(other.tables());
            if at % 211 == 0 {
                let bytes = other.snapshot();
                assert_eq!(bytes.len() as u64, other.snapshot_len());
                other = RangeWindow::restore(&bytes).unwrap();
                assert!(other.snapshot() == bytes, "{plan:?} {at}");
            }
        }
        assert!(one.snapshot() == other.snapshot() && most >= 2, "{plan:?}: {most}");
        assert_eq!(one.overload(), other.overload());
        let mut empty = plan.build();
        assert_eq!(empty.merge(&one), Err(MergeError::Grown));
        one.clear().unwrap();
        assert!(one.snapshot() == empty.snapshot());
    }
}

/// A window that was saved before there were tables continues as it was planned: one table, whose rate rises, as it says.
#[test]
fn a_window_of_version_1_grows_as_it_did() {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/range-time-of-one-table.bin");
    let mut seen = RangeWindow::restore(&fs::read(path).unwrap()).unwrap();
    let capacity = seen.window().capacity();
    for at in 0..20 * capacity {
        seen.insert(key(at), Tick(10_000 + at % 2));
        assert!(seen.contains(key(at), Tick(10_001)));
    }
    assert_eq!(seen.tables(), 1);
    assert!(seen.overload().grown >= 3 && seen.estimated_fpr() > 5.0 * seen.fpr());
    let again = RangeWindow::restore(&seen.snapshot()).unwrap();
    assert!(again.snapshot() == seen.snapshot());
}

/// A pause longer than the window empties a table, however full it was: what comes then finds room in it.
#[test]
fn after_a_pause_there_is_room() {
    for when_full in [WhenFull::Grow, WhenFull::Forget, WhenFull::Refuse] {
        let spec = spec(time(10_000, 1_000)).slack(1_000).when_full(when_full);
        for plan in in_each_form(spec) {
            has_room_after_a_pause(&plan, when_full);
        }
    }
}

fn has_room_after_a_pause(plan: &RangePlan, when_full: WhenFull) {
    let mut seen = plan.build();
    let mut now = 0;
    for round in 0..6 {
        // Full, and past it where keys are forgotten: the horizon moves on.
        let keys = if when_full == WhenFull::Forget { 6_000 } else { 1_000 };
        for at in 0..keys {
            seen.insert(key(round << 32 | at), Tick(now + at));
        }
        let before = seen.overload();
        now += 1_000_000;
        for at in 0..900 {
            seen.insert(key(round << 32 | 1 << 20 | at), Tick(now + at));
        }
        let kept =
            (0..900).filter(|at| seen.contains(key(round << 32 | 1 << 20 | at), Tick(now + 900)));
        assert_eq!(kept.count(), 900, "{when_full:?} {round}");
        assert_eq!(seen.overload(), before, "{when_full:?} {round}");
        assert_eq!(seen.tables(), 1, "{when_full:?} {round}");
        now += 1_000_000;
    }
}

/// As many keys as planned come at once, and as many others when those have expired but may still be found.
#[test]
fn a_burst_never_finds_the_room_taken_by_what_has_expired() {
    for (keys, span) in [(100, 1_000), (1_000, 1_000), (1_000, 86_400_000), (5_000, 10_000)] {
        for slack in [0, span / 8, 2 * span] {
            for when_full in [WhenFull::Grow, WhenFull::Forget, WhenFull::Refuse] {
                let spec = spec(time(span, keys)).slack(slack).when_full(when_full);
                for plan in in_each_form(spec) {
                    for pause in [span + 1, span + span / 20, 2 * span] {
                        takes_bursts(&plan, keys, pause, 0);
                    }
                }
            }
        }
    }
}

/// The same with a few keys in between, which outlive the burst before them.
#[test]
fn a_burst_finds_room_among_keys_that_come_seldom() {
    for slack in [0, 30, 125] {
        for when_full in [WhenFull::Grow, WhenFull::Forget, WhenFull::Refuse] {
            let spec = spec(time(1_000, 1_000)).slack(slack).when_full(when_full);
            for pause in [1_001, 1_050, 2_000] {
                takes_bursts(&spec.plan().unwrap(), 900, pause, 10);
            }
        }
    }
}

/// Bursts of a number of keys, with others evenly between each and the next: none of a window is lost.
fn takes_bursts(plan: &RangePlan, keys: u64, pause: u64, between: u64) {
    let (mut seen, span) = (plan.build(), plan.window().span().unwrap());
    let mut missed = 0;
    for burst in 0..12 {
        let (now, of) = (burst * pause, |at: u64| key(burst << 32 | at));
        for at in 0..keys {
            seen.insert(of(at), Tick(now));
        }
        for at in 0..between {
            seen.insert(of(1 << 20 | at), Tick(now + (at + 1) * span / (between + 1)));
        }
        let late = Tick(now + span);
        missed += (0..keys).filter(|&at| !seen.contains(of(at), late)).count();
        missed += (0..between).filter(|at| !seen.contains(of(1 << 20 | at), late)).count();
    }
    let overload = seen.overload();
    assert!(!overload.any() && missed == 0, "{plan:?} {pause}: {missed} {overload:?}");
    assert_eq!(seen.tables(), 1, "{plan:?} {pause}");
}

/// Whoever accounts for memory hears of a further table before there is one, how much it takes at worst, and can do without it.
#[test]
fn growing_is_announced() {
    for capacity in [100, 5_000] {
        for window in [time(1_000, capacity), unbounded(capacity)] {
            let mut seen = RangeSpec::new(window).fpr(1e-3).slack(0).plan().unwrap().build();
            let (mut key, mut tables) = (0, 1);
            while tables < 4 {
                assert!(seen.memory() as u64 <= seen.most_memory(), "{capacity} {tables}");
                let (most, next) = (seen.most_memory(), seen.memory_of_next().unwrap());
                if seen.insert_without_growing(key, Tick(0)) {
                    assert!(seen.contains(key, Tick(0)));
                    assert_eq!((seen.tables(), seen.most_memory()), (tables, most));
                } else {
                    assert_eq!(seen.tables(), tables);
                    assert!(seen.keys() >= seen.capacity() / 2, "{} keys", seen.keys());
                    seen.insert(key, Tick(0));
                    tables += 1;
                    assert_eq!((seen.tables(), seen.most_memory()), (tables, most + next));
                }
                key += 1_000_003;
            }
            assert!(seen.capacity() > 10 * capacity);
        }
    }
    // Where none is added the policy holds.
    let refusing = RangeSpec::new(unbounded(100)).when_full(WhenFull::Refuse).plan().unwrap();
    let mut seen = refusing.build();
    assert_eq!(seen.memory_of_next(), None);
    assert!((0..10_000).all(|key| seen.insert_without_growing(key * 1_000_003, Tick(0))));
    assert!(seen.tables() == 1 && seen.overload().refused > 0);
}

/// A window that may not grow takes keys until it is full, and again as they expire. Another that hears of those alone which it took
/// takes them too: nothing that was refused has made room for any. And those that are known are renewed all the time.
#[test]
fn who_was_refused_has_changed_nothing_that_matters() {
    for (capacity, interval, slack) in [
        (300, 1, 0),
        (300, 1 << 20, 50),
        (4_000, 1 << 16, 0),
        (4_000, 64, 125),
        (20_000, 1 << 16, 125),
    ] {
        let spec = RangeSpec::new(time(1_000, capacity)).interval(interval).fpr(1e-3).slack(slack);
        let plan = spec.plan().unwrap();
        let (mut seen, mut again) = (plan.try_build().unwrap(), plan.try_build().unwrap());
        let (mut chance, mut now, mut refused) = (Chance(capacity), 0, 0);
        let mut taken: Vec<(u128, u64)> = Vec::new();
        for arrival in 0..60 * capacity {
            // Sometimes a pause, in which a part expires or all does.
            now += match chance.next() % (2 * capacity) {
                0 => 900,
                1 => 2_500,
                many => u64::from(many % (capacity / 60 + 1) == 0),
            };
            let known = taken.get(taken.len().wrapping_sub(1 + (chance.next() % 200) as usize));
            let known = known.filter(|(_, at)| arrival % 3 == 0 && now - at <= 1_000);
            let key = known.map_or_else(|| key(chance.next()), |(key, _)| *key);
            let is_in = seen.insert_without_growing(key, Tick(now));
            assert!(is_in || known.is_none(), "{plan:?}: known, and refused at {now}");
            if is_in {
                assert!(again.insert_again(key, Tick(now)), "{plan:?}: at {now}");
                taken.push((key, now));
            }
            refused += u64::from(!is_in);
        }
        assert!(refused > 100, "{plan:?}: {refused} refused");
        let live = taken.iter().filter(|(_, at)| now - at <= 1_000);
        for (key, _) in live {
            assert!(seen.contains(*key, Tick(now)) && again.contains(*key, Tick(now)));
        }
        assert_eq!((seen.tables(), again.tables()), (1, 1));
    }
}
