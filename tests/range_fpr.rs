//! Range windows: false positive rates against what was promised, and what is past the capacity.

// The helpers fail as the tests do.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "support/forms.rs"]
mod forms;
mod support;

use forms::{FORMS, in_each_form};
use lately::range::{
    Answer, RangeFilter, RangePlan, RangeSpec, RangeWindow, beginning_with, between, number_of,
};
use lately::{PlanError, Tick, WhenFull, Window};
use std::collections::BTreeSet;
use support::{Chance, at_most, count, time, unbounded};

const SEEDS: u64 = 4;

fn wide(chance: &mut Chance) -> u128 {
    u128::from(chance.next()) << 64 | u128::from(chance.next())
}

/// A full window of the last so many keys, and the keys in it.
fn full(plan: &RangePlan, keys: impl Fn(u64) -> u128) -> (RangeWindow, Vec<u128>) {
    let mut window = plan.build();
    let n = window.window().capacity();
    for at in 0..3 * n + n / 3 {
        window.insert(keys(at), Tick(at));
    }
    (window, (2 * n + n / 3..3 * n + n / 3).map(keys).collect())
}

/// Asks for intervals which no key lies in, and none that was there lately: of the 150,000 (30,000 at
/// 10 %) no more than five standard deviations above the promised share are called occupied, over
/// all seeds together. In levels, and in a flat table. Gives the lower rate.
fn keeps_its_rate(
    name: &str,
    length: u128,
    fpr: f64,
    keys: impl Fn(u64, u64) -> u128,
    first: impl Fn(&[u128], u64, &mut Chance) -> u128,
) -> f64 {
    let spec = |capacity| {
        let spec = RangeSpec::new(count(capacity)).interval(length).fpr(fpr).slack(capacity / 8);
        assert_eq!(in_each_form(spec).len(), if capacity < 2_000 { 2 } else { 1 });
        spec
    };
    let in_levels = rate_in_levels(name, spec(4_000), &keys, &first);
    in_levels.min(rate_of_flat(name, spec(1_000), &keys, &first))
}

/// Few keys are soon all asked about: each question once, and of many seeds.
fn rate_of_flat(
    name: &str,
    spec: RangeSpec,
    keys: impl Fn(u64, u64) -> u128,
    first: impl Fn(&[u128], u64, &mut Chance) -> u128,
) -> f64 {
    let (fpr, length) = (spec.terms().fpr, spec.plan().unwrap().interval());
    let (mut wrong, mut asked) = (0, 0);
    for seed in 0..40 {
        let (window, live) = full(&spec.seed(seed).plan().unwrap(), |at| keys(at, seed % 8));
        let mut chance = Chance(seed);
        let questions: BTreeSet<u128> =
            (0..live.len() as u64).map(|at| first(&live, at, &mut chance)).collect();
        asked += questions.len() as u64;
        for first in questions {
            if let Answer::Perhaps { fpr: said } = window.any(first..=first + (length - 1), Tick(0))
            {
                wrong += 1;
                assert!(said <= fpr * 1.001, "{name}: said {said}");
            }
        }
        assert!(window.fpr_of(length) <= fpr * 1.001 && window.fpr_of(length) > fpr * 0.8);
    }
    assert!(f64::from(wrong) <= at_most(asked, fpr), "{name}, L {length}: {wrong} of {asked}");
    f64::from(wrong) / asked as f64
}

fn rate_in_levels(
    name: &str,
    spec: RangeSpec,
    keys: impl Fn(u64, u64) -> u128,
    first: impl Fn(&[u128], u64, &mut Chance) -> u128,
) -> f64 {
    let (fpr, length) = (spec.terms().fpr, spec.plan().unwrap().interval());
    let (mut wrong, mut asked) = (0u64, 0u64);
    let questions = if fpr > 0.05 { 7_500 } else { 37_500 };
    for seed in 0..SEEDS {
        let (window, live) = full(&spec.seed(seed).plan().unwrap(), |at| keys(at, seed));
        let mut chance = Chance(seed);
        for at in 0..questions {
            let first = first(&live, at, &mut chance);
            let answer = window.any(first..=first + (length - 1), Tick(0));
            if let Answer::Perhaps { fpr: said } = answer {
                wrong += 1;
                assert!(said <= fpr * 1.001, "{name}: said {said}");
            }
        }
        asked += questions;
        assert!(window.fpr_of(length) <= fpr * 1.001 && window.fpr_of(length) > fpr * 0.8);
    }
    assert!(wrong as f64 <= at_most(asked, fpr), "{name}, L {length}, {fpr}: {wrong} of {asked}");
    wrong as f64 / asked as f64
}

const LENGTHS: [u128; 4] = [1, 30, 1_000, 1 << 40];

#[test]
fn uniform_keys_and_questions() {
    for length in LENGTHS {
        for fpr in [0.1, 0.01] {
            let keys = |at, seed| wide(&mut Chance(at << 3 | seed));
            let rate =
                keeps_its_rate("uniform", length, fpr, keys, |_, _, chance| wide(chance) >> 1);
            // Neither is memory wasted.
            assert!(rate > fpr / 2.0, "{length} {fpr}: {rate}");
        }
    }
}

#[test]
fn questions_that_begin_right_after_a_key() {
    for length in LENGTHS {
        let keys = |at, seed| wide(&mut Chance(at << 3 | seed)) >> 1;
        let after = |live: &[u128], at, _: &mut Chance| live[at as usize % live.len()] + 1;
        keeps_its_rate("after a key", length, 0.1, keys, after);
        keeps_its_rate("after a key", length, 0.01, keys, after);
    }
}

#[test]
fn questions_that_end_right_before_a_key() {
    for length in LENGTHS {
        let keys = |at, seed| wide(&mut Chance(at << 3 | seed)) >> 1 | 1 << 100;
        let before =
            move |live: &[u128], at, _: &mut Chance| live[at as usize % live.len()] - length;
        keeps_its_rate("before a key", length, 0.01, keys, before);
    }
}

/// Serial numbers: one run of all keys, asked for elsewhere; and many runs, asked for right behind each.
#[test]
fn runs_of_consecutive_keys() {
    for length in LENGTHS {
        let run = |at, seed| (1 << 96) + (u128::from(seed) << 80) + u128::from(at);
        keeps_its_rate("one run", length, 0.01, run, |_, _, chance| wide(chance) >> 1);
        let runs = |at: u64, seed| {
            (wide(&mut Chance((at / 50) << 3 | seed)) >> 1 | 0xFFFF) - u128::from(at % 50)
        };
        let behind =
            |live: &[u128], at: u64, _: &mut Chance| (live[at as usize % live.len()] | 0xFFFF) + 1;
        keeps_its_rate("behind runs", length, 0.01, runs, behind);
        keeps_its_rate("far from runs", length, 0.01, runs, |_, _, chance| wide(chance) >> 1);
    }
}

/// A few keys most of the time.
#[test]
fn zipf_keys() {
    for length in LENGTHS {
        let keys = |at: u64, seed| {
            let share = (Chance(at << 3 | seed).next() >> 11) as f64 / (1u64 << 53) as f64;
            wide(&mut Chance(100_000f64.powf(share) as u64)) >> 1
        };
        let spec = RangeSpec::new(count(4_000)).interval(length).fpr(0.01).slack(500);
        let (window, live) = full(&spec.plan().unwrap(), |at| keys(at, 0));
        let mut wrong = 0;
        for &key in live.iter().cycle().take(40_000) {
            let first = key + 1 + (u128::from(Chance(wrong).next()) << 50);
            wrong += u64::from(window.any(first..=first + (length - 1), Tick(0)).is_perhaps());
        }
        assert!(wrong as f64 <= at_most(40_000, 0.01), "{length}: {wrong}");
    }
}

/// Longer than planned: the rate rises with the length, as the answer says; past all codes every interval is
/// "perhaps", but in a window without keys.
#[test]
fn longer_intervals_are_answered_at_the_rate_that_is_said() {
    let spec = RangeSpec::new(count(2_000)).interval(64).fpr(0.01).slack(250);
    for plan in in_each_form(spec) {
        says_the_rate_of_longer_intervals(&plan);
    }
}

fn says_the_rate_of_longer_intervals(plan: &RangePlan) {
    let (window, _) = full(plan, |at| wide(&mut Chance(at)));
    let mut chance = Chance(77);
    for times in [2u128, 10, 40] {
        let (mut wrong, mut said) = (0u64, 0.0);
        for _ in 0..20_000 {
            let first = wide(&mut chance) >> 1;
            if let Answer::Perhaps { fpr } = window.any(first..=first + 64 * times - 1, Tick(0)) {
                wrong += 1;
                said = fpr;
            }
        }
        assert!(said <= 0.01 * times as f64 * 1.001 && said > 0.008 * times as f64, "{said}");
        assert!(wrong as f64 <= at_most(20_000, said) && wrong as f64 > 10_000.0 * said, "{wrong}");
    }
    for bits in 0..128 {
        let far = 1u128 << 127;
        let answer = window.any(far..=far + (u128::MAX >> 1 >> bits), Tick(0));
        assert!(bits > 90 || answer == Answer::Perhaps { fpr: 1.0 }, "{bits} {answer:?}");
    }
    let empty = plan.build();
    assert_eq!(empty.any(0..=u128::MAX, Tick(0)), Answer::No);
    let mut gone = RangeSpec::new(time(100, 10)).plan().unwrap().build();
    gone.insert(5, Tick(0));
    assert!(gone.any(0..=u128::MAX, Tick(100)).is_perhaps());
    assert_eq!(gone.any(0..=u128::MAX, Tick(101)), Answer::No);
}

/// Twenty times as many keys as planned.
fn crowd(plan: &RangePlan, each: impl Fn(&RangeWindow)) -> RangeWindow {
    let mut window = plan.build();
    for at in 0..40_000u64 {
        window.insert(u128::from(at) << 40, Tick(at));
        if at % 500 == 0 {
            each(&window);
        }
    }
    window
}

#[test]
fn a_window_grows_and_says_so() {
    for plan in in_each_form(RangeSpec::new(time(20_000, 1_000)).slack(2_500).interval(10)) {
        let window = crowd(&plan, |_| ());
        assert!(window.overload().grown >= 3, "{:?}", window.overload());
        assert_eq!(window.overload().forgotten + window.overload().refused, 0);
        for at in 20_000..40_000 {
            assert!(window.contains(u128::from(at as u64) << 40, Tick(39_999)));
        }
        // The rate stays as promised, and memory is what grows.
        let said = window.fpr_of(10);
        assert!(said <= plan.fpr() * 1.000_001, "{said}");
        assert!(window.tables() > 1);
        let wrong = (0..10_000u128).filter(|at| {
            window.any(1 << 127 | at << 70..=1 << 127 | at << 70 | 9, Tick(0)).is_perhaps()
        });
        assert!(wrong.count() as f64 <= at_most(10_000, said));
    }
}

#[test]
fn a_forgetting_window_keeps_to_its_memory_and_the_newest() {
    let slack = RangeSpec::new(time(20_000, 1_000)).slack(2_500);
    for form in FORMS {
        let most = form(slack).unwrap().most_memory();
        for (spec, limit) in
            [(slack.when_full(WhenFull::Forget), most * 5 / 4), (slack.memory(most * 2), most * 2)]
        {
            let window = crowd(&form(spec).unwrap(), |window| {
                assert!(window.memory() as u64 <= limit, "{} of {limit}", window.memory());
            });
            assert!(window.overload().forgotten > 10_000, "{:?}", window.overload());
            // None is both kept and counted, or neither.
            let found = |at: &u64| window.contains(u128::from(*at) << 40, Tick(39_999));
            let newest = (39_700..40_000).filter(found).count() as u64;
            assert!(newest + window.overload().refused >= 300, "{newest} {:?}", window.overload());
            let kept = (20_000..40_000).filter(found).count() as u64;
            let gone = window.overload().forgotten + window.overload().refused;
            assert!(kept >= 700 && 20_000 - kept <= gone, "{kept} {gone}");
        }
    }
}

#[test]
fn a_refusing_window_counts_what_it_does_not_take() {
    let spec = RangeSpec::new(time(20_000, 1_000)).slack(2_500).when_full(WhenFull::Refuse);
    for plan in in_each_form(spec) {
        let mut window = plan.build();
        let mut lost = 0;
        for at in 0..15_000u64 {
            let key = u128::from(at) << 40;
            let before = window.overload().refused;
            window.insert(key, Tick(at));
            let refused = window.overload().refused - before;
            assert!(refused == 1 || window.contains(key, Tick(at)));
            lost += refused;
        }
        assert!(lost > 10_000 && lost < 14_000, "{lost}");
        assert_eq!(window.overload().forgotten + window.overload().grown, 0);
    }
}

/// A key that is there already is renewed in a full flat table, and none that it holds is lost.
#[test]
fn a_full_flat_window_renews_what_it_holds() {
    let spec = RangeSpec::new(time(1_000_000, 100)).slack(125_000).when_full(WhenFull::Refuse);
    let mut window = spec.fpr(1e-9).plan().unwrap().build();
    let of = |at: u64| u128::from(at) << 64;
    let mut kept = 0;
    while window.overload().refused == 0 {
        kept += u64::from(!window.observe(of(kept), Tick(kept)).is_duplicate());
    }
    kept -= 1;
    assert!(kept >= 100, "{kept}");
    for at in 0..kept {
        window.insert(of(at), Tick(900_000 + at));
    }
    assert_eq!(window.overload().refused, 1);
    assert!((0..kept).all(|at| window.contains(of(at), Tick(1_890_000))));
    assert!(!window.contains(of(kept), Tick(1_890_000)));
}

/// Few keys take little more than many do: a flat table, chosen by itself, which is asked and filled as levels are.
#[test]
fn few_keys_are_planned_flat() {
    for (n, length, most) in [
        (100, 1, 22.0),
        (100, 1_000, 34.0),
        (100, 1_000_000_000, 59.0),
        (1_000, 1, 18.5),
        (1_000, 1_000, 30.0),
        (1_000, 1_000_000_000, 53.0),
        (2_000, 1, 18.5),
        (2_000, 1_000, 30.0),
        (2_000, 1_000_000_000, 53.0),
    ] {
        let spec = RangeSpec::new(count(n)).interval(length).slack(n / 8);
        let plans = in_each_form(spec);
        let [flat, levels] = &plans[..] else { panic!("{n} keys are not flat") };
        let name = format!("{n} keys, {length}: {} bits per key", flat.bits_per_key());
        println!("{name}, in levels {}", levels.bits_per_key());
        assert!(flat.bits_per_key() <= most && flat.bits_per_key() > flat.lower_bound(), "{name}");
        assert!(levels.bits_per_key() > 1.2 * flat.bits_per_key(), "{name}");
        let (window, _) = full(flat, |at| u128::from(at) << 64);
        assert_eq!(window.memory() as u64, flat.memory(), "{name}");
        assert_eq!(flat.memory(), flat.most_memory(), "{name}");
    }
    let many = RangeSpec::new(count(10_000)).slack(1_250);
    assert_eq!(in_each_form(many).len(), 1, "{}", many.plan().unwrap().bits_per_key());
}

#[test]
fn plans_say_what_they_cost() {
    for n in [100_000, 1_000_000] {
        let plan = RangeSpec::new(count(n)).slack(n / 8).plan().unwrap();
        assert!(plan.slack() <= n / 8 && plan.slices() >= 8);
        let bound = 1_024f64.log2() + 100f64.log2() + 3.0;
        assert!((plan.lower_bound() - bound).abs() < 0.01, "{}", plan.lower_bound());
        let mut window = plan.build();
        for at in 0..n * 5 / 2 {
            window.insert(u128::from(Chance(at).next()), Tick(0));
        }
        // Memory comes in chunks.
        let (memory, planned) = (window.memory() as f64, plan.memory() as f64);
        assert!(memory > 0.95 * planned && memory < 1.05 * planned, "{memory} {planned}");
        assert!(window.memory() as u64 <= plan.most_memory());
        assert!(plan.bits_per_key() < 1.4 * bound, "{}", plan.bits_per_key());
    }
}

/// While a large window fills up, each level takes its share: none holds what the one below should.
#[test]
fn a_window_that_fills_up_keeps_to_its_plan() {
    let n = 1_000_000;
    let plan = RangeSpec::new(time(n * 10, n)).slack(n).plan().unwrap();
    let mut window = plan.build();
    for at in 0..n + n / 4 {
        window.insert(u128::from(Chance(at).next()), Tick(at * 10));
    }
    assert!(!window.overload().any(), "{:?}", window.overload());
    let (memory, planned) = (window.memory() as f64, plan.memory() as f64);
    assert!(memory < 1.05 * planned, "{memory} {planned}");
}

#[test]
fn what_cannot_be_planned_is_refused() {
    let spec = RangeSpec::new(count(1_000));
    for fpr in [0.0, 1.0, -0.5, f64::NAN] {
        assert!(matches!(spec.fpr(fpr).plan(), Err(PlanError::Fpr(_))));
    }
    assert!(matches!(spec.interval(0).plan(), Err(PlanError::TooLarge(_))));
    assert!(matches!(spec.interval(u128::MAX).plan(), Err(PlanError::TooLarge(_))));
    assert!(matches!(spec.fpr(1e-300).plan(), Err(PlanError::TooLarge(_))));
    assert!(matches!(RangeSpec::new(count(1 << 60)).plan(), Err(PlanError::TooLarge(_))));
    assert!(matches!(RangeSpec::new(time(1 << 63, 5)).plan(), Err(PlanError::TooLarge(_))));
    assert!(matches!(RangeSpec::new(unbounded(u64::MAX)).plan(), Err(PlanError::TooLarge(_))));
    let needed = spec.plan().unwrap().most_memory();
    assert!(matches!(spec.memory(needed - 1).plan(), Err(PlanError::Memory { .. })));
    assert!(spec.memory(needed).plan().is_ok());
}

/// Byte strings, by their first 16 bytes: never a false negative for any interval of them.
#[test]
fn byte_strings_are_found_in_their_order() {
    let mut window = RangeSpec::new(count(500)).fpr(1e-9).plan().unwrap().build();
    let mut chance = Chance(4);
    let mut key = || -> Vec<u8> {
        let len = chance.below(20);
        (0..len).map(|_| b"\0ab\xFF"[chance.below(4) as usize]).collect()
    };
    let mut keys: Vec<Vec<u8>> = Vec::new();
    for _ in 0..2_000 {
        let seen = key();
        window.insert(number_of(&seen), Tick(0));
        keys.push(seen);
        let newest = &keys[keys.len().saturating_sub(500)..];
        let (first, last) = (key(), key());
        let holds = |seen: &&Vec<u8>| first <= **seen && **seen <= last;
        let found = window.any(between(&first, &last), Tick(0)).is_perhaps();
        assert!(found || newest.iter().find(holds).is_none(), "{first:?} {last:?}");
        let prefix = &first[..first.len().min(6)];
        let found = window.any(beginning_with(prefix), Tick(0)).is_perhaps();
        assert!(found || !newest.iter().any(|seen| seen.starts_with(prefix)), "{prefix:?}");
    }
}

/// Windows of time without end at the end of time.
#[test]
fn the_end_of_time_is_a_moment_like_others() {
    for window in
        [time(10, 10), time(1 << 60, 10), Window::Unbounded { capacity: support::nonzero(9) }]
    {
        let mut seen = RangeSpec::new(window).plan().unwrap().build();
        seen.insert(1, Tick(5));
        seen.insert(2, Tick(u64::MAX));
        assert!(seen.any(2..=9, Tick(u64::MAX)).is_perhaps());
        assert_eq!(seen.contains(1, Tick(0)), window.span().is_none());
    }
}

/// Past its capacity a window that keeps to its plan keeps its rate and its memory, and says what it gave up; one that grows keeps
/// its rate and its keys, and says that it grew.
#[test]
fn past_its_capacity_a_window_says_so() {
    for capacity in [200u64, 1_000, 10_000] {
        for when_full in [WhenFull::Grow, WhenFull::Forget, WhenFull::Refuse] {
            let spec = RangeSpec::new(time(1 << 40, capacity)).slack(1 << 37).interval(64);
            for plan in in_each_form(spec.fpr(0.01).when_full(when_full)) {
                says_so_past_its_capacity(&plan, when_full);
            }
        }
    }
}

fn says_so_past_its_capacity(plan: &RangePlan, when_full: WhenFull) {
    let capacity = plan.window().capacity();
    let mut window = plan.build();
    let mut chance = Chance(capacity);
    for at in 0..4 * capacity {
        window.insert(u128::from(chance.next()), Tick(at * ((1 << 40) / capacity / 5)));
    }
    let now = Tick(4 * ((1 << 40) / 5));
    let asked = 40_000;
    let hits = (0..asked).filter(|_| {
        let first = u128::from(chance.next()) << 1;
        window.any(first..=first + 63, now).is_perhaps()
    });
    let rate = hits.count() as f64 / f64::from(asked);
    let name = format!("{capacity} {when_full:?}: {rate} {:?}", window.overload());
    assert!(window.overload().any(), "{name}");
    if when_full == WhenFull::Grow {
        assert!(window.overload().grown > 0 && rate <= 0.01 + 5.0 * 0.0005, "{name}");
        assert!(window.estimated_fpr() <= 0.01 * 1.000_001, "{name}");
        assert_eq!(window.overload().forgotten + window.overload().refused, 0, "{name}");
    } else {
        assert!(rate <= 0.01 + 5.0 * 0.0005, "{name}");
        let (memory, most) = (window.memory() as u64, window.plan().most_memory());
        assert!(memory <= most, "{name}: {memory} of {most}");
    }
}
