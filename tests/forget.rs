//! Keys that are taken out before they expire, compared with an exact program.

// The helpers fail as the tests do.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "support/exact.rs"]
mod exact;
mod support;

use exact::Pair;
use lately::window::{AgedTable, Keeps};
use lately::{
    AnyFilter, Deduper, Digest, Filter, Renewal, Shared, Spec, Structure, Tick, Verdict, WhenFull,
    Window, WindowFilter,
};
use proptest::prelude::*;
use std::time::Duration;
use support::{at_most, count, key, specs, time};

const KEYS: u64 = 30;

#[derive(Clone, Debug)]
enum Call {
    Observe { n: u64, gap: u64, back: u64 },
    Batch(Vec<u64>),
    Forget(u64),
    Advance(u64),
    Restore,
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let gap = || prop_oneof![4 => 0u64..4, 2 => 0u64..20, 1 => 0u64..200];
    let back = prop_oneof![3 => Just(0u64), 2 => 0u64..10, 1 => 0u64..400];
    let call = prop_oneof![
        8 => (0..KEYS, gap(), back).prop_map(|(n, gap, back)| Call::Observe { n, gap, back }),
        1 => prop::collection::vec(0..KEYS, 0..40).prop_map(Call::Batch),
        4 => (0..KEYS).prop_map(Call::Forget),
        1 => gap().prop_map(Call::Advance),
        1 => Just(Call::Restore),
    ];
    prop::collection::vec(call, 1..150)
}

/// What can be told of all keys at the newest moment, and at others that may be asked about.
fn check(pair: &mut Pair<AnyFilter>, is_count: bool) {
    let newest = pair.exact.newest;
    for n in 0..KEYS {
        pair.ask(n, newest + u64::from(is_count));
        if !is_count {
            pair.ask(n, newest.saturating_sub(n * 7 % (pair.exact.lateness + 1)));
            pair.ask(n, newest + n);
        }
    }
    assert_eq!(pair.wrong, 0, "{} questions", pair.questions);
}

fn forget(pair: &mut Pair<AnyFilter>, n: u64, is_count: bool) {
    let (exact, slack) = (&mut pair.exact, pair.filter.slack());
    // What some moment that may be asked about is near to; where arrivals are counted, the next one.
    let (now, kept) = (exact.newest + u64::from(is_count), exact.span + exact.lateness);
    let sightings = exact.seen.remove(&n).unwrap_or_default();
    let is_within =
        |reach: u64| sightings.last().is_some_and(|last| last.saturating_add(reach) >= now);
    let known = pair.filter.forget(key(n));
    assert!(known || !is_within(kept), "{n}: {sightings:?} at {now}");
    assert!(!known || is_within(kept + slack), "{n}: {sightings:?} at {now}");
    assert!(!pair.filter.forget(key(n)), "twice");
}

fn run(spec: Spec, renewal: Renewal, calls: &[Call]) {
    let is_count = matches!(spec.window(), Window::Count(_));
    let (span, lateness) = (spec.window().span().unwrap(), spec.plan().unwrap().lateness());
    let filter = spec.renewal(renewal).plan().unwrap().build();
    let mut pair = Pair::new(filter, span, lateness, renewal);
    for call in calls {
        let newest = pair.exact.newest;
        match call {
            Call::Observe { n, gap, back } => {
                let at = if is_count { newest + 1 } else { (newest + gap).saturating_sub(*back) };
                let _ = pair.observe(*n, at);
            }
            Call::Batch(keys) => {
                let digests: Vec<_> = keys.iter().map(|&n| key(n)).collect();
                let ticks: Vec<_> = (1..=keys.len() as u64).map(|at| Tick(newest + at)).collect();
                let mut verdicts = vec![Verdict::Fresh; keys.len()];
                pair.filter.observe_batch(&digests, &ticks, &mut verdicts);
                for ((&n, at), verdict) in keys.iter().zip(ticks).zip(verdicts) {
                    pair.judge(n, at.0, verdict.is_duplicate());
                    pair.exact.observe(n, at.0, verdict);
                }
            }
            Call::Forget(n) => forget(&mut pair, *n, is_count),
            Call::Advance(_) if is_count => {}
            Call::Advance(gap) => {
                pair.exact.newest = newest + gap;
                pair.filter.advance(Tick(newest + gap));
            }
            Call::Restore => {
                let bytes = pair.filter.snapshot();
                pair.filter = AnyFilter::restore(&bytes).unwrap();
                assert_eq!(pair.filter.snapshot(), bytes);
            }
        }
        check(&mut pair, is_count);
    }
    let overload = pair.filter.overload();
    assert_eq!((overload.refused, overload.forgotten), (0, 0));
    for n in 0..KEYS {
        let _ = pair.filter.forget(key(n));
    }
    pair.exact.seen.clear();
    check(&mut pair, is_count);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// A forgotten key is gone until it is seen again, and no other is: in both cores, in windows of time and of
    /// arrivals, in order and late, with one table and with several.
    #[test]
    fn a_forgotten_key_is_gone_and_no_other(
        counting: bool, span in 1u64..60, eighteenths in prop_oneof![Just(0u64), 0u64..36],
        windows in prop_oneof![3 => Just(0u64), 2 => Just(1u64), 1 => 2u64..20],
        capacity in prop_oneof![Just(4u64), Just(40)], always: bool, calls in calls(),
    ) {
        let window = if counting { count(span) } else { time(span, capacity) };
        let renewal = if always { Renewal::Always } else { Renewal::OnFresh };
        let spec = Spec::new(window).structure(Structure::AgedTable).fpr(1e-9);
        let spec = spec.slack((span * eighteenths).div_ceil(18));
        let spec = if counting { spec } else { spec.lateness(windows * span) };
        run(spec, renewal, &calls);
    }
}

/// Keys that neither of their lines had room for are forgotten too.
#[test]
fn what_is_stashed_is_forgotten() {
    for (grain, lateness) in [(1, 0), (1_000, 0), (1_000, 10_000), (1, 100_000)] {
        let keeps = Keeps { grain, lateness, stash: 500, ..Keeps::exactly(time(10_000, 100)) };
        let mut table = AgedTable::new(keeps, 2, 40).unwrap();
        for n in 0..300 {
            assert_eq!(table.observe(key(n), Tick(n)), Verdict::Fresh);
        }
        assert!(table.stashed() > 100 && !table.overload().any());
        for n in 0..300 {
            assert!(table.contains(key(n), Tick(300)) && table.forget(key(n)), "{n}");
            assert!(!table.contains(key(n), Tick(300)) && !table.forget(key(n)), "{n}");
        }
        assert_eq!((table.stashed(), table.fill()), (0, 0.0));
    }
}

/// Of keys that the table cannot distinguish all are forgotten, as is documented.
#[test]
fn keys_that_look_alike_are_forgotten_together() {
    for slack in [0, 100] {
        let spec = Spec::new(time(1_000, 1_000)).structure(Structure::AgedTable).slack(slack);
        let mut filter = spec.fpr(1e-3).plan().unwrap().build();
        let digest = key(1);
        let alike = Digest::new(digest.hi(), digest.lo() ^ 1);
        let _ = filter.observe(digest, Tick(5));
        assert!(filter.contains(alike, Tick(5)));
        assert!(filter.forget(alike));
        assert!(!filter.contains(digest, Tick(5)));
    }
}

/// A call takes another key along with no more than the probability of a false positive, be it of a key that was seen or
/// of one that was not.
#[test]
fn others_are_lost_no_more_often_than_keys_are_taken_for_others() {
    let keys = 100_000;
    for slack in [0, 200_000] {
        for first in [0, 1 << 40] {
            let spec = Spec::new(time(1_000_000, keys)).structure(Structure::AgedTable);
            let mut filter = spec.fpr(1e-3).slack(slack).plan().unwrap().build();
            for n in 0..keys {
                let _ = filter.observe(key(n), Tick(n));
            }
            let calls = keys / 2;
            let most = at_most(calls, filter.estimated_fpr());
            assert!(most < calls as f64 / 500.0);
            let known = (first..first + calls).filter(|&n| filter.forget(key(n))).count() as f64;
            let stay = if first == 0 { calls..keys } else { 0..keys };
            let lost = stay.filter(|&n| !filter.contains(key(n), Tick(keys))).count() as f64;
            assert!(lost <= most && lost > 0.0, "{slack} {first}: {lost} lost, not {most}");
            if first == 0 {
                // Some had been forgotten with an earlier one already.
                assert!(known >= calls as f64 - most, "{slack}: {known} known");
            } else {
                assert!(known <= most, "{slack}: {known} of {calls} strangers");
            }
        }
    }
}

/// What was forgotten leaves its room to others.
#[test]
fn room_is_given_back() {
    for slack in [0, 100] {
        let spec = Spec::new(time(1_000, 500)).structure(Structure::AgedTable).slack(slack);
        let mut filter = spec.when_full(WhenFull::Refuse).plan().unwrap().build();
        for n in 0..50_000 {
            assert_eq!(filter.observe(key(n), Tick(n / 1_000)), Verdict::Fresh);
            if n >= 500 {
                assert!(filter.forget(key(n - 500)));
            }
        }
        assert!((500..520).contains(&filter.len()), "{}", filter.len());
        assert!(!filter.overload().any(), "{:?}", filter.overload());
    }
}

/// Where keys share bits nothing is forgotten, and the structure says so.
#[test]
fn structures_that_cannot_forget_say_so() {
    let mut can = Vec::new();
    for spec in specs() {
        let mut filter = spec.plan().unwrap().build();
        let structure = filter.structure();
        let _ = filter.observe(key(1), Tick(3));
        let before = filter.clone();
        let forgot = filter.forget(key(1));
        if structure.can_forget() {
            // The last arrival is one that the next one remembers, in any window.
            assert!(forgot && !filter.contains(key(1), Tick(3)), "{structure}");
            can.push(structure);
        } else {
            assert!(!forgot && filter == before, "{structure}");
        }
    }
    assert!(can.iter().all(|&structure| structure == Structure::AgedTable) && !can.is_empty());
}

#[test]
fn shared_filters_and_deduplicators_forget() {
    for window in [count(2_000), time(100, 2_000)] {
        let seen = Shared::new(Spec::new(window), 8).unwrap();
        for n in 0..1_000 {
            let _ = seen.observe(key(n), Tick(7));
        }
        for n in (0..1_000).step_by(2) {
            assert!(seen.forget(key(n)) && !seen.forget(key(n)));
        }
        assert!((0..1_000).all(|n| seen.contains(key(n), Tick(7)) == (n % 2 == 1)));
        assert_eq!(seen.len(), 500);
    }
    let seen = Shared::new(Spec::new(count(10)), 4).unwrap();
    for n in 0..11 {
        let _ = seen.observe(key(n), Tick(0));
    }
    // The eleventh arrival ago is no longer asked about by the next one.
    assert_eq!((0..3).map(|n| seen.forget(key(n))).collect::<Vec<_>>(), [false, true, true]);

    let mut seen = Deduper::within(Duration::from_secs(3_600)).unwrap();
    assert!(seen.insert("order 17") && seen.insert("order 18"));
    assert!(seen.forget("order 17") && !seen.forget("order 17"));
    assert!(seen.insert("order 17") && !seen.insert("order 18"));
}
