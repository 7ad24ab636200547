//! Capacity is the number of keys that are live, whatever they arrive like: nothing live is refused or forgotten because
//! keys that have expired, and may still be reported, hold the room.

// The helpers fail as the tests do.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "support/exact.rs"]
mod exact;
mod support;

use exact::Exact;
use lately::{
    AnyFilter, Filter, Merge, Renewal, Spec, Structure, Tick, WhenFull, Window, WindowFilter,
};
use support::{Chance, Oracle, count, key, time};

const SPAN: u64 = 1_000;
const KEYS: u64 = 400;

/// Slacks of one grain and of several, that stamps tell in a few parts or in more than there are.
const SLACKS: [u64; 9] = [0, 1, 7, 30, 56, 100, 125, 500, 2_000];

/// Structures that keep windows of time.
fn structures() -> impl Iterator<Item = Structure> {
    Structure::ALL.iter().copied().filter(|structure| structure.keeps(time(SPAN, KEYS)))
}

/// Every such structure, policy and slack, at a rate so low that nothing is taken for another.
fn specs() -> impl Iterator<Item = Spec> {
    structures().flat_map(|structure| {
        SLACKS.into_iter().flat_map(move |slack| {
            [WhenFull::Refuse, WhenFull::Grow].map(|when_full| {
                let spec = Spec::new(time(SPAN, KEYS)).structure(structure).fpr(1e-9);
                spec.slack(slack).when_full(when_full)
            })
        })
    })
}

/// Those of a range of keys that a filter does not find.
fn missed(filter: &AnyFilter, keys: core::ops::Range<u64>, at: u64) -> usize {
    keys.filter(|&n| !filter.contains(key(n), Tick(at))).count()
}

/// Observes a range of keys at one moment.
fn burst(filter: &mut AnyFilter, keys: core::ops::Range<u64>, at: u64) {
    for n in keys {
        let _ = filter.observe(key(n), Tick(at));
    }
}

/// As many keys as planned for at once, and as many others when those have expired but may still be reported.
#[test]
fn a_burst_never_finds_the_room_taken_by_what_has_expired() {
    let mut failed = Vec::new();
    for spec in specs() {
        for pause in [SPAN + 1, 1_050, 1_124, 5_000] {
            let (mut filter, mut lost) = (spec.plan().unwrap().build(), 0);
            for n in 0..8 {
                let (keys, now) = (n * KEYS..(n + 1) * KEYS, 77 + n * pause);
                burst(&mut filter, keys.clone(), now);
                lost += missed(&filter, keys, now + SPAN);
            }
            if lost > 0 || filter.overload().any() || filter.tables() > 1 {
                failed.push(format!("{pause} {lost} {:?} {spec:?}", filter.overload()));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// The same where time also passes without arrivals, as a program's clock does.
#[test]
fn a_clock_keeps_no_room_taken() {
    for spec in specs() {
        if spec.plan().unwrap().structure() == Structure::AgedTable {
            // Its generations end with the newest moment, whether anything arrived then or not.
            continue;
        }
        let (mut filter, mut lost) = (spec.plan().unwrap().build(), 0);
        for n in 0..8 {
            let (keys, now) = (n * KEYS..(n + 1) * KEYS, n * (SPAN + 1));
            burst(&mut filter, keys.clone(), now);
            for at in (now..=now + SPAN).step_by(10) {
                filter.advance(Tick(at));
            }
            lost += missed(&filter, keys, now + SPAN);
        }
        assert!(lost == 0 && !filter.overload().any(), "{lost} {:?} {spec:?}", filter.overload());
    }
}

/// Smaller bursts, of which several are in a window, and of which several are in a grain.
#[test]
fn bursts_at_any_distance_fit() {
    for spec in specs() {
        for parts in [2, 3, 7, 20, 100] {
            let (keys, distance) = (KEYS / parts, SPAN / parts + 1);
            let (mut filter, mut lost) = (spec.plan().unwrap().build(), 0);
            for n in 0..8 * parts {
                burst(&mut filter, n * keys..(n + 1) * keys, n * distance);
                // The oldest of those that are live.
                let oldest = (n * distance).saturating_sub(SPAN).div_ceil(distance);
                lost += missed(&filter, oldest * keys..(oldest + 1) * keys, n * distance);
            }
            let overload = filter.overload();
            assert!(lost == 0 && !overload.any(), "{parts} {lost} {overload:?} {spec:?}");
        }
    }
}

/// Bursts of any size at any distance, as large as what is live allows, with keys that come again: every live key is
/// found at every step, after snapshots and mergers too.
#[test]
fn whatever_is_live_within_the_capacity_is_kept() {
    for (i, spec) in specs().enumerate() {
        for renewal in [Renewal::Always, Renewal::OnFresh] {
            let mut chance = Chance(i as u64);
            let plan = spec.renewal(renewal).plan().unwrap();
            let (mut filter, mut oracle) = (plan.build(), Oracle::new(plan.window(), renewal));
            // Bursts closer than that may share a grain, whose keys expire together.
            let apart = plan.slack().max(SPAN / 16) + 1;
            let (mut now, mut next) = (0, 0);
            for step in 0..25 {
                let distances = [SPAN + 1, SPAN, SPAN - 1, SPAN + apart, SPAN / 2, apart, 3 * SPAN];
                now += distances[chance.below(7) as usize].max(apart);
                let live: Vec<u64> = oracle.live(Tick(now)).collect();
                for &n in &live {
                    assert!(filter.contains(key(n), Tick(now)), "{n} at {now}, {step}: {spec:?}");
                    if chance.below(4) == 0 {
                        oracle.observe(n, Tick(now), filter.observe(key(n), Tick(now)));
                    }
                }
                let room = KEYS - live.len() as u64;
                let new = if chance.below(3) == 0 { chance.below(room + 1) } else { room };
                for n in next..next + new {
                    oracle.observe(n, Tick(now), filter.observe(key(n), Tick(now)));
                }
                next += new;
                match chance.below(4) {
                    0 => {
                        let restored = AnyFilter::restore(&filter.snapshot()).unwrap();
                        assert_eq!(restored, filter, "{spec:?}");
                        filter = restored;
                    }
                    1 => {
                        let mut empty = plan.build();
                        empty.merge(&filter).unwrap();
                        filter = empty;
                    }
                    _ => {}
                }
                oracle.forget_expired(0);
            }
            assert!(!filter.overload().any(), "{:?} {spec:?}", filter.overload());
            assert_eq!(filter.tables(), 1);
        }
    }
}

/// A table that was too full has room as soon as what made it so has expired.
#[test]
fn what_was_too_much_leaves_no_trace() {
    for spec in specs() {
        if spec.plan().unwrap().structure().name().contains("bloom") {
            // What is sampled notices with a delay.
            continue;
        }
        let mut filter = spec.when_full(WhenFull::Refuse).plan().unwrap().build();
        let mut lost = 0;
        for n in 0..6 {
            let (keys, now) = (2 * n * KEYS..(2 * n + 1) * KEYS, n * 2 * (SPAN + 1));
            burst(&mut filter, keys.clone(), now);
            lost += missed(&filter, keys, now + SPAN);
            burst(&mut filter, (2 * n + 1) * KEYS..(2 * n + 4) * KEYS, now + SPAN + 1);
        }
        assert!(filter.overload().refused > 0, "{spec:?}");
        assert_eq!(lost, 0, "{spec:?}");
    }
}

/// Late bursts, of a lateness of one window and of several.
#[test]
fn late_bursts_never_find_the_room_taken_by_what_has_expired() {
    for structure in structures().filter(|structure| structure.takes_late_arrivals()) {
        for slack in [0, 7, 30, 125, 500] {
            if structure == Structure::AgedTable && slack > 30 {
                // Its generations may have been marked until their end.
                continue;
            }
            for lateness in [SPAN, 3 * SPAN] {
                let spec = Spec::new(time(SPAN, KEYS)).structure(structure).fpr(1e-9).slack(slack);
                let spec = spec.lateness(lateness).when_full(WhenFull::Refuse);
                let mut filter = spec.plan().unwrap().build();
                let mut exact = Exact::new(SPAN, lateness, Renewal::Always);
                let mut chance = Chance(slack);
                for burst in 0..12 {
                    let at = burst * (SPAN + 1);
                    // Half of the bursts are as late as they may be.
                    if chance.below(2) == 0 {
                        filter.advance(Tick(at + lateness));
                        exact.newest = exact.newest.max(at + lateness);
                    }
                    for n in burst * KEYS..(burst + 1) * KEYS {
                        exact.observe(n, at, filter.observe(key(n), Tick(at)));
                    }
                    for n in burst.saturating_sub(1) * KEYS..(burst + 1) * KEYS {
                        let found = filter.contains(key(n), Tick(at + SPAN / 2));
                        let must = exact.is_duplicate(n, at + SPAN / 2);
                        assert!(found || !must, "{n} at {at}: {spec:?}");
                    }
                }
                assert!(!filter.overload().any(), "{:?} {spec:?}", filter.overload());
            }
        }
    }
}

/// Windows of arrivals are of as many keys as they have arrivals, at any slack, and refuse nothing.
#[test]
fn windows_of_arrivals_take_every_key() {
    for &structure in Structure::ALL {
        if !structure.keeps(count(KEYS)) {
            continue;
        }
        for slack in SLACKS {
            for renewal in [Renewal::Always, Renewal::OnFresh] {
                let spec = Spec::new(count(KEYS)).structure(structure).fpr(1e-9).slack(slack);
                let mut filter = spec.renewal(renewal).plan().unwrap().build();
                let window: Window = filter.window();
                let (mut oracle, mut chance) = (Oracle::new(window, renewal), Chance(slack));
                for at in 0..8 * KEYS {
                    // New keys in bursts, and in between some that come again.
                    let n = if at / 700 % 2 == 0 { at } else { at - chance.below(KEYS).min(at) };
                    oracle.observe(n, Tick(0), filter.observe(key(n), Tick(0)));
                    if at % 997 == 0 {
                        let live: Vec<u64> = oracle.live(Tick(0)).collect();
                        let lost = live.iter().filter(|&&n| !filter.contains(key(n), Tick(0)));
                        assert_eq!(lost.count(), 0, "{spec:?}");
                        oracle.forget_expired(slack);
                    }
                }
                assert!(!filter.overload().any(), "{:?} {spec:?}", filter.overload());
            }
        }
    }
}
