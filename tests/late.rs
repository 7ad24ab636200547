//! Arrivals out of order, compared with an exact program of the law.

// The helpers fail as the tests do.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "support/exact.rs"]
mod exact;
mod support;

use exact::{Exact, Pair};

use lately::window::{AgedBuckets, AgedTable, IntervalLayout, Keeps, Shape, TimeIntervalBloom};
use lately::{
    AnyFilter, Filter, LastSeen, Merge, PlanError, Renewal, SnapshotError, Spec, Structure, Tick,
    Verdict, WhenFull, Window, WindowFilter,
};
use proptest::prelude::*;
use support::{Chance, count, key, nonzero, time, unbounded};

const LATE: [Structure; 4] = [
    Structure::AgedTable,
    Structure::AgedBuckets,
    Structure::IntervalBloom,
    Structure::IntervalBloomPlain,
];

fn spec(structure: Structure, span: u64, lateness: u64, keys: u64, renewal: Renewal) -> Spec {
    let spec = Spec::new(time(span, keys)).structure(structure).renewal(renewal);
    spec.lateness(lateness).fpr(1e-9)
}

fn planned(spec: Spec, span: u64, lateness: u64, renewal: Renewal) -> Pair<AnyFilter> {
    Pair::new(spec.plan().unwrap().build(), span, lateness, renewal)
}

/// The next arrival's moment: at, about, and up to twice the lateness behind the newest.
fn next_moment(chance: &mut Chance, newest: u64, span: u64, lateness: u64) -> u64 {
    let ahead = match chance.below(12) {
        0..=3 => return newest.saturating_sub(chance.below(lateness + 1)),
        4 => return newest.saturating_sub(chance.below(2 * lateness + 2)),
        5 => return newest.saturating_sub(lateness + chance.below(2)),
        6 => 0,
        7 => chance.below(span.div_ceil(8) + 2),
        8 => span + chance.below(3),
        9 if chance.below(6) == 0 => chance.below(3 * (span + lateness)),
        _ => 1,
    };
    newest.saturating_add(ahead)
}

/// Two sightings, and every moment that can be asked for: one, or the other, or both.
#[test]
fn every_offset_of_small_windows() {
    let mut asked = 0u64;
    for structure in LATE {
        for (span, lateness) in [(1, 1), (1, 2), (2, 5), (3, 2), (4, 4), (4, 9), (5, 23)] {
            for slack in [0, 1, span] {
                for renewal in [Renewal::Always, Renewal::OnFresh] {
                    let spec = spec(structure, span, lateness, 8, renewal).slack(slack);
                    let empty = spec.plan().unwrap().build();
                    let base = 1_000;
                    for first in base - lateness..=base {
                        for second in [0, 1, span, span + 1, 2 * span, 2 * span + 1, 2 * span + 2] {
                            let second = (first + second).min(base);
                            let mut pair = Pair::new(empty.clone(), span, lateness, renewal);
                            pair.filter.advance(Tick(base));
                            pair.exact.newest = base;
                            let (one, other) = if asked.is_multiple_of(2) {
                                (first, second)
                            } else {
                                (second, first)
                            };
                            let _ = pair.observe(1, one);
                            let _ = pair.observe(1, other);
                            for more in [0, 1, span.min(lateness), span.max(lateness)] {
                                let newest = base + more;
                                pair.filter.advance(Tick(newest));
                                pair.exact.newest = newest;
                                for at in newest - lateness.min(newest)..=newest + span + 2 {
                                    pair.ask(1, at);
                                    pair.ask_when(1, at);
                                    asked += 1;
                                }
                            }
                            assert_eq!(pair.wrong, 0, "{spec:?}");
                        }
                    }
                }
            }
        }
    }
    assert!(asked > 500_000, "{asked}");
}

/// Any order within the lateness and beyond, from none to a hundred windows, at every kind of grain.
#[test]
fn any_order_up_to_a_hundred_windows() {
    for (i, structure) in LATE.into_iter().enumerate() {
        for span in [1, 7, 20, 1_000, 10_000_000_000] {
            for windows in [(0, 1), (1, 3), (1, 1), (3, 2), (2, 1), (10, 1), (100, 1)] {
                let lateness = span * windows.0 / windows.1;
                for slack in [0, span / 8, span] {
                    for renewal in [Renewal::Always, Renewal::OnFresh] {
                        let spec = spec(structure, span, lateness, 30, renewal).slack(slack);
                        let mut pair = planned(spec, span, lateness, renewal);
                        let mut chance = Chance(i as u64 + span + lateness + slack);
                        for at in 0..250u64 {
                            let moment =
                                next_moment(&mut chance, pair.exact.newest, span, lateness);
                            let n = if chance.below(2) == 0 {
                                chance.below(4)
                            } else {
                                chance.below(40)
                            };
                            let _ = pair.observe(n, moment);
                            for _ in 0..4 {
                                let asked =
                                    next_moment(&mut chance, pair.exact.newest, span, lateness);
                                let n = chance.below(40);
                                pair.ask(n, asked);
                                pair.ask_when(n, asked);
                            }
                            if at % 100 == 99 {
                                pair.filter = AnyFilter::restore(&pair.filter.snapshot()).unwrap();
                            }
                        }
                        pair.check_rate(1e-9);
                        assert!(pair.duplicates > 30, "{}", pair.duplicates);
                        let overload = pair.filter.overload();
                        assert_eq!((overload.refused, overload.forgotten), (0, 0));
                    }
                }
            }
        }
    }
}

/// Strangers are found at the promised rate, and no more, in a window that is as full as planned: of keys
/// that come and go with two sightings each, and of keys that stay.
#[test]
fn false_positives_are_within_the_promise_at_the_planned_capacity() {
    let (span, keys) = (1_000u64, 625u64);
    for structure in LATE {
        for windows in [1, 2, 10] {
            for (fpr, stay) in [(0.01, false), (0.01, true), (0.1, false)] {
                let lateness = span * windows;
                let spec = Spec::new(time(span, keys)).structure(structure).fpr(fpr);
                let spec = spec.lateness(lateness).slack(span / 8).when_full(WhenFull::Refuse);
                let mut pair = planned(spec, span, lateness, Renewal::Always);
                let (mut chance, mut stranger) = (Chance(windows), 1 << 40);
                for at in 0..(windows + 3) * span {
                    // A new key every two ticks, seen again a quarter of a window later: `keys` in a window.
                    let n = if stay { at % keys } else { (at - at % 2 * 250.min(at)) / 2 };
                    let late = chance.below(4) * chance.below(span / 8);
                    let _ = pair.observe(n, at.saturating_sub(late.min(lateness)));
                    if at > (windows + 1) * span {
                        for _ in 0..20 {
                            stranger += 1;
                            pair.ask(stranger, at - chance.below(lateness + 1));
                        }
                    }
                }
                pair.check_rate(fpr);
                assert!(pair.questions > 30_000);
                let overload = pair.filter.overload();
                assert!(!overload.any(), "{structure} {windows} {stay} {overload:?}");
                let estimated = pair.filter.estimated_fpr();
                assert!(estimated <= fpr * 1.001, "{structure} {windows} {estimated}");
            }
        }
    }
}

/// Ten times the planned keys: the filter grows, and the law holds over all its tables.
#[test]
fn tables_that_are_added_keep_the_law() {
    for structure in LATE {
        for (span, lateness) in [(400, 100), (400, 400), (400, 2_000)] {
            for renewal in [Renewal::Always, Renewal::OnFresh] {
                let spec = spec(structure, span, lateness, 70, renewal).slack(span / 8);
                let mut pair = planned(spec, span, lateness, renewal);
                let mut chance = Chance(lateness);
                for at in 0..8_000u64 {
                    let moment = at.saturating_sub(chance.below(2) * chance.below(lateness + 9));
                    let n = if chance.below(3) == 0 { chance.below(60) } else { 100 + at / 2 };
                    let _ = pair.observe(n, moment);
                    if at % 500 < 20 {
                        let moment = at.saturating_sub(chance.below(lateness + 1));
                        for back in 0..200 {
                            pair.ask((100 + at / 2).saturating_sub(back * 9), moment);
                        }
                        (0..60).for_each(|n| pair.ask(n, moment));
                    }
                    if at % 1_000 == 999 {
                        pair.filter = AnyFilter::restore(&pair.filter.snapshot()).unwrap();
                        pair.exact.forget_expired(span);
                    }
                }
                pair.check_rate(1e-9);
                let overload = pair.filter.overload();
                assert!(overload.grown > 0 && overload.refused + overload.forgotten == 0);
            }
        }
    }
}

/// Under a limit, and where it refuses: nothing is forgotten that is not counted, nothing is found that
/// was not there, and what is new is remembered.
#[test]
fn policies_count_what_they_give_up() {
    for structure in LATE {
        for when_full in [WhenFull::Grow, WhenFull::Forget, WhenFull::Refuse] {
            for lateness in [3_000, 15_000] {
                let spec = Spec::new(time(3_000, 600)).structure(structure).fpr(1e-9);
                let spec = spec.lateness(lateness).when_full(when_full);
                let needed = match spec.memory(1).plan() {
                    Err(PlanError::Memory { needed, .. }) => needed,
                    other => panic!("{other:?}"),
                };
                let mut filter = spec.memory(needed * 5 / 4).plan().unwrap().build();
                let mut exact = Exact::new(3_000, lateness, Renewal::Always);
                let (mut chance, mut missed) = (Chance(lateness), 0u64);
                for at in 0..12_000u64 {
                    let moment = at.saturating_sub(chance.below(2) * chance.below(lateness));
                    let n = if chance.below(4) == 0 {
                        at.saturating_sub(chance.below(400))
                    } else {
                        at
                    };
                    let must = exact.is_duplicate(n, moment);
                    let may = exact.may_be_found(n, moment, filter.slack());
                    let verdict = filter.observe(key(n), Tick(moment));
                    missed += u64::from(must && !verdict.is_duplicate());
                    assert!(may || !verdict.is_duplicate());
                    let overload = filter.overload();
                    assert!(missed == 0 || overload.refused + overload.forgotten > 0);
                    if when_full != WhenFull::Refuse {
                        assert!(filter.contains(key(n), Tick(moment)), "the newest is there");
                    }
                    exact.observe(n, moment, verdict);
                    assert!(filter.memory() as u64 <= needed * 5 / 4);
                    if at % 1_000 == 0 {
                        exact.forget_expired(filter.slack());
                    }
                }
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Call {
    Observe(u64, u64),
    Late(u64, u64),
    AskThenRemember(u64, u64),
    Ask(u64, u64),
    Advance(u64),
    Batch(Vec<(u64, u64)>),
    Restore,
    Merge(Vec<(u64, u64)>),
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let gap = || prop_oneof![4 => 0u64..4, 2 => 0u64..40, 1 => 0u64..400];
    let back = || prop_oneof![3 => 0u64..10, 3 => 0u64..80, 1 => 0u64..6_000];
    let stream = || prop::collection::vec((0u64..30, back()), 0..20);
    let call = prop_oneof![
        6 => (0u64..30, gap()).prop_map(|(n, gap)| Call::Observe(n, gap)),
        8 => (0u64..30, back()).prop_map(|(n, back)| Call::Late(n, back)),
        2 => (0u64..30, back()).prop_map(|(n, back)| Call::AskThenRemember(n, back)),
        3 => (0u64..30, back()).prop_map(|(n, back)| Call::Ask(n, back)),
        1 => gap().prop_map(Call::Advance),
        1 => stream().prop_map(Call::Batch),
        1 => Just(Call::Restore),
        1 => stream().prop_map(Call::Merge),
    ];
    prop::collection::vec(call, 1..100)
}

/// The raw structures, of sizes that no plan makes, with what they were given.
fn raw(keeps: Keeps, cells: u64, hashes: u32) -> (AgedTable, AgedBuckets, [TimeIntervalBloom; 2]) {
    let Keeps { grain, lateness, renewal, .. } = keeps;
    let span = keeps.window.span().unwrap();
    let shape = Shape { cells, hashes, span, grain, lateness, capacity: 20, renewal };
    let bloom = |layout| TimeIntervalBloom::new(shape, layout).unwrap();
    (
        AgedTable::new(keeps, 1 + cells % 5, 44).unwrap(),
        AgedBuckets::new(keeps, 1 + cells % 7, 44).unwrap(),
        [bloom(IntervalLayout::Plain), bloom(IntervalLayout::Compact)],
    )
}

/// Calls on one structure; merging takes in one that has been filled by itself.
fn run<F: LastSeen + Merge + Clone>(
    empty: &F,
    keeps: Keeps,
    base: u64,
    calls: &[Call],
    restore: impl Fn(&F) -> F,
    exact_rate: bool,
) {
    let span = keeps.window.span().unwrap();
    let mut pair = Pair::new(empty.clone(), span, keeps.lateness, keeps.renewal);
    pair.filter.advance(Tick(base));
    pair.exact.newest = base;
    for call in calls {
        let newest = pair.exact.newest;
        match call {
            Call::Observe(n, gap) => drop(pair.observe(*n, newest.saturating_add(*gap))),
            Call::Late(n, back) => drop(pair.observe(*n, newest.saturating_sub(*back))),
            Call::AskThenRemember(n, back) => {
                pair.ask_then_remember(*n, newest.saturating_sub(*back));
            }
            Call::Ask(n, back) => {
                pair.ask(*n, newest.saturating_sub(*back));
                pair.ask(*n, newest.saturating_add(*back));
            }
            Call::Advance(gap) => {
                pair.exact.newest = newest.saturating_add(*gap);
                pair.filter.advance(Tick(pair.exact.newest));
            }
            Call::Batch(arrivals) => {
                let digests: Vec<_> = arrivals.iter().map(|&(n, _)| key(n)).collect();
                let moments: Vec<_> = arrivals
                    .iter()
                    .map(|&(n, back)| Tick(newest.saturating_add(n).saturating_sub(back)))
                    .collect();
                let mut verdicts = vec![Verdict::Fresh; digests.len()];
                pair.filter.observe_batch(&digests, &moments, &mut verdicts);
                for ((&(n, _), at), verdict) in arrivals.iter().zip(moments).zip(verdicts) {
                    pair.judge(n, at.0, verdict.is_duplicate());
                    pair.exact.observe(n, at.0, verdict);
                }
            }
            Call::Restore => pair.filter = restore(&pair.filter),
            Call::Merge(arrivals) => {
                let mut other = Pair::new(empty.clone(), span, keeps.lateness, keeps.renewal);
                for &(n, back) in arrivals {
                    let _ = other.observe(n, newest.saturating_add(n).saturating_sub(back));
                }
                pair.filter.merge(&other.filter).unwrap();
                pair.exact.unite(&other.exact);
            }
        }
        for n in 0..30 {
            let back = (n * 7 + newest % 1_000) % (keeps.lateness + 1);
            pair.ask(n, pair.exact.newest.saturating_sub(back));
        }
    }
    assert!(!exact_rate || pair.wrong == 0, "{} of {}", pair.wrong, pair.questions);
}

fn lateness_of(span: u64, windows: u64, more: u64) -> u64 {
    (span * windows + more % span).max(1)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Any calls in any order, as planned: with growth, batches, snapshots and merging.
    #[test]
    fn any_calls_keep_the_law(
        structure in prop::sample::select(LATE.to_vec()),
        span in 1u64..60, windows in prop_oneof![4 => Just(0u64), 2 => 1u64..4, 1 => 4u64..100],
        more in 0u64..60, slack in 0u64..70, always: bool,
        base in prop_oneof![Just(0), 0u64..1_000, Just(u64::MAX - 2_000)],
        calls in calls(),
    ) {
        let renewal = if always { Renewal::Always } else { Renewal::OnFresh };
        let lateness = lateness_of(span, windows, more);
        let spec = spec(structure, span, lateness, 20, renewal).slack(slack);
        let keeps = Keeps { lateness, renewal, ..Keeps::exactly(time(span, 20)) };
        let empty = spec.plan().unwrap().build();
        // What has grown does not merge.
        let calls: Vec<_> = calls.into_iter().filter(|call| !matches!(call, Call::Merge(_))).collect();
        run(&empty, keeps, base, &calls, |filter| {
            let bytes = filter.snapshot();
            let restored = AnyFilter::restore(&bytes).unwrap();
            assert_eq!(restored.snapshot(), bytes);
            restored
        }, true);
    }

    /// The structures themselves, far too small for what they are given: the stash takes it.
    #[test]
    fn raw_structures_keep_the_law(
        span in 1u64..60, windows in prop_oneof![3 => Just(0u64), 2 => 1u64..4, 1 => 4u64..30],
        more in 0u64..60, grain in 1u64..20, always: bool, cells in 60u64..4_000, hashes in 1u32..24,
        base in prop_oneof![Just(0), 0u64..1_000],
        calls in calls(),
    ) {
        let renewal = if always { Renewal::Always } else { Renewal::OnFresh };
        let lateness = lateness_of(span, windows, more);
        let keeps = Keeps { window: time(span, 20), grain, lateness, renewal, stash: 5_000 };
        let (table, buckets, blooms) = raw(keeps, cells, hashes);
        run(&table, keeps, base, &calls, Clone::clone, true);
        run(&buckets, keeps, base, &calls, Clone::clone, true);
        for bloom in blooms {
            run(&bloom, keeps, base, &calls, Clone::clone, false);
        }
    }

    /// A batch gives the verdicts and the state of its arrivals one by one.
    #[test]
    fn a_late_batch_is_its_arrivals_one_by_one(
        structure in prop::sample::select(LATE.to_vec()),
        windows in 0u64..5, always: bool,
        arrivals in prop::collection::vec((0u64..60, 0u64..20, 0u64..200), 0..200),
    ) {
        let renewal = if always { Renewal::Always } else { Renewal::OnFresh };
        let spec = spec(structure, 30, 30 * windows + 5, 20, renewal);
        let (mut one_by_one, mut batch) = (spec.plan().unwrap().build(), spec.plan().unwrap().build());
        let mut now = 0;
        let (digests, ticks): (Vec<_>, Vec<_>) = arrivals.iter().map(|&(n, gap, back)| {
            now += gap;
            (key(n), Tick(u64::saturating_sub(now, back)))
        }).unzip();
        let expected: Vec<Verdict> =
            digests.iter().zip(&ticks).map(|(&d, &t)| one_by_one.observe(d, t)).collect();
        let mut verdicts = vec![Verdict::Fresh; digests.len()];
        batch.observe_batch(&digests, &ticks, &mut verdicts);
        prop_assert_eq!(verdicts, expected);
        prop_assert_eq!(batch.snapshot(), one_by_one.snapshot());
    }
}

/// No key takes more entries than the proof says, whatever it does.
#[test]
fn a_key_has_no_more_entries_than_the_proof_says() {
    for (span, lateness) in [(10u64, 4u64), (10, 10), (10, 11), (10, 35), (10, 100), (10, 1_000)] {
        let most =
            if lateness <= span { 1 } else { 2 * (span + lateness).div_ceil(2 * span + 1) + 2 };
        let window = Window::Time { span: nonzero(span), capacity: nonzero(1_000) };
        let keeps = Keeps { lateness, ..Keeps::exactly(window) };
        for kind in 0..4 {
            let mut table = AgedTable::new(keeps, 400, 40).unwrap();
            let mut chance = Chance(kind);
            let (mut now, mut largest) = (5_000u64, 0.0f64);
            let room = 400.0 * f64::from(512 / (40 + 6));
            for _ in 0..6_000 {
                let at = match kind {
                    0 => now,
                    1 => now - chance.below(lateness + 1),
                    2 => now - now % (2 * span + 1),
                    _ => now - lateness + chance.below(2),
                };
                let _ = table.observe(key(1), Tick(at));
                now += chance.below(4);
                largest = largest.max(lately::Filter::fill(&table));
            }
            // What has expired is counted until it is swept, which is once in three quarters of it.
            let entries = largest * room;
            assert!(
                entries <= 2.0 * most as f64 + 1.0,
                "{span} {lateness} {kind}: {entries} {most}"
            );
        }
    }
}

/// The three cases of which records were lost: all of them pass.
#[test]
fn genuine_records_behind_the_clock_pass() {
    // Heartbeats ten minutes apart that come after another key's record of the next two hours.
    let mut filter = Spec::new(time(60, 100)).lateness(7_200).plan().unwrap().build();
    let _ = filter.observe(key(1), Tick(10_000));
    let beats = (0..12).filter(|beat| {
        let at = Tick(10_000 - 7_200 + 600 * beat);
        filter.observe(key(2), at) == Verdict::Fresh
    });
    assert_eq!(beats.count(), 12);
}

#[test]
fn what_takes_no_late_arrivals_says_so() {
    for &structure in Structure::ALL {
        for window in [count(10), time(10, 10), unbounded(10)] {
            let spec = Spec::new(window).structure(structure);
            if spec.plan().is_err() {
                continue;
            }
            let plan = spec.lateness(5).plan();
            let takes = matches!(window, Window::Time { .. }) && LATE.contains(&structure);
            assert_eq!(structure.takes_late_arrivals(), LATE.contains(&structure));
            match plan {
                Ok(plan) => assert!(takes && plan.lateness() == 5, "{structure}"),
                Err(PlanError::Window { structure: name, reason }) => {
                    assert!(!takes && name == structure.name());
                    let names = matches!(window, Window::Time { .. });
                    assert_eq!(reason.contains("aged-table"), names, "{reason}");
                }
                other => panic!("{other:?}"),
            }
        }
    }
    for lateness in [1 << 61, u64::MAX] {
        for structure in LATE {
            let plan = Spec::new(time(10, 10)).structure(structure).lateness(lateness).plan();
            assert!(matches!(plan, Err(PlanError::TooLarge(_))), "{plan:?}");
        }
    }
    let keeps = Keeps { lateness: 5, ..Keeps::exactly(count(10)) };
    assert!(AgedTable::new(keeps, 10, 20).is_err());
}

/// Only a filter that takes late arrivals is written in version 2, and only such bytes are read as one.
#[test]
fn the_version_says_whether_arrivals_may_be_late() {
    for structure in LATE {
        let bytes = |lateness| {
            let spec = Spec::new(time(100, 10)).structure(structure).lateness(lateness);
            let mut filter = spec.plan().unwrap().build();
            let _ = filter.observe(key(1), Tick(500));
            filter.snapshot()
        };
        assert_eq!(bytes(0)[8..10], [1, 0]);
        for lateness in [1, 100, 1_000] {
            let bytes = bytes(lateness);
            assert_eq!(bytes[8..10], [2, 0]);
            assert_eq!(AnyFilter::restore(&bytes).unwrap().plan().lateness(), lateness);
        }
        let mut later = bytes(1);
        later[8] = 13;
        let expected = SnapshotError::Version { found: 13, newest: 12 };
        assert_eq!(AnyFilter::restore(&later).unwrap_err(), expected);
    }
}

#[test]
fn a_merge_of_other_latenesses_is_refused() {
    for structure in LATE {
        let build = |lateness| {
            let spec = Spec::new(time(100, 10)).structure(structure).lateness(lateness);
            spec.plan().unwrap().build()
        };
        assert_eq!(build(10).merge(&build(11)), Err(lately::MergeError::Shape));
        assert_eq!(build(0).merge(&build(11)), Err(lately::MergeError::Shape));
    }
}

/// What lateness costs, as `docs/late.md` says.
#[test]
fn bits_per_key_are_as_documented() {
    let page = include_str!("../docs/late.md");
    let span = 8_000_000_000;
    for structure in LATE {
        let mut row = format!("| `{structure}` |");
        for windows in [0, 1, 10] {
            let spec = Spec::new(time(span, 1_000_000)).structure(structure).fpr(1e-6);
            let plan = spec.slack(span / 8).lateness(windows * span).plan().unwrap();
            row += &format!(" {:.1} |", plan.bits_per_key());
        }
        assert!(page.contains(&row), "{row}");
    }
}
