//! When was a key last seen? The interval holds the truth, and shorter windows miss nothing.

// The helpers fail as the tests do.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use lately::window::{
    AgedBuckets, AgedTable, CuckooSize, CuckooWindow, DleftWindow, IntervalLayout, Keeps, Shape,
    TimeBloom, TimeIntervalBloom, TimingBloom,
};
use lately::{AnyFilter, LastSeen, Renewal, Spec, Structure, Tick, WhenFull, Window, WindowFilter};
use support::{Chance, Oracle, at_most, count, key, specs, time};

/// A filter beside its oracle.
struct Pair<F> {
    filter: F,
    oracle: Oracle,
    /// Live keys whose last sighting was not in the interval.
    dishonest: u64,
    asked: u64,
}

impl<F: LastSeen> Pair<F> {
    fn new(filter: F, renewal: Renewal) -> Self {
        let oracle = Oracle::new(filter.window(), renewal);
        Self { filter, oracle, dishonest: 0, asked: 0 }
    }

    fn observe(&mut self, n: u64, tick: Tick) {
        let verdict = self.filter.observe(key(n), tick);
        self.oracle.observe(n, tick, verdict);
    }

    /// Asks for every live key: when it was seen, and whether within windows of all lengths.
    fn ask_all(&mut self, now: u64, moment_now: u64) {
        let tick = Tick(now);
        let live: Vec<u64> = self.oracle.live(tick).collect();
        for n in live {
            let age = self.oracle.age(n, tick).unwrap();
            let seen = self.filter.last_seen(key(n), tick);
            let seen = seen.unwrap_or_else(|| panic!("{n} of age {age} was not seen by {now}"));
            assert!(seen.from <= seen.to, "{seen:?}");
            let truth = Tick(moment_now - age);
            self.asked += 1;
            self.dishonest += u64::from(truth < seen.from || truth > seen.to);
            for within in [age, age + 1, age.saturating_mul(2), u64::MAX] {
                let found = self.filter.contains_within(key(n), within, tick);
                assert!(found, "{n} of age {age} within {within}");
            }
        }
    }

    /// Keys that are too old for a shorter window, allowing for the slack, are not found in it.
    /// Of so few false positives there are none.
    fn ask_shorter(&self, now: u64) {
        let (tick, slack) = (Tick(now), self.filter.slack());
        let keys: Vec<u64> = self.oracle.live(tick).collect();
        for n in keys {
            let age = self.oracle.age(n, tick).unwrap();
            // Of two grains: the window's length in grains is rounded up, and the question's too.
            let Some(within) = age.checked_sub(2 * slack + 1) else { continue };
            for within in [0, within / 2, within] {
                let found = self.filter.contains_within(key(n), within, tick);
                assert!(!found, "{n} of age {age} within {within}, slack {slack}");
            }
        }
    }
}

fn renewal_of(spec: &Spec) -> Renewal {
    let text = format!("{spec:?}");
    if text.contains("OnFresh") { Renewal::OnFresh } else { Renewal::Always }
}

/// The moment at which a question is judged, as the oracle does.
fn moment(window: Window, arrivals: u64, newest: u64, tick: u64) -> u64 {
    if matches!(window, Window::Count(_)) { arrivals + 1 } else { tick.max(newest) }
}

/// Every structure in every small window, with tables added where the policy is to grow.
#[test]
fn the_interval_holds_the_last_sighting() {
    for (i, spec) in specs().into_iter().enumerate() {
        let filter = spec.plan().unwrap().build();
        let window = filter.window();
        let span = window.span().unwrap_or(50);
        let mut pair = Pair::new(filter, renewal_of(&spec));
        let mut chance = Chance(i as u64);
        let (mut now, mut newest) = (0u64, 0);
        for at in 0..250u64 {
            now += match chance.below(12) {
                0..=4 => 0,
                5..=8 => 1,
                9 | 10 => chance.below(span / 8 + 2),
                _ => chance.below(2 * span.min(1 << 40)),
            };
            let tick = if chance.below(9) == 0 { now.saturating_sub(span / 3) } else { now };
            newest = newest.max(tick);
            pair.observe(chance.below(window.capacity() * 3 / 2 + 3), Tick(tick));
            let overload = pair.filter.overload();
            if overload.forgotten + overload.refused == 0 {
                pair.ask_all(newest, moment(window, at + 1, newest, newest));
                let later = newest + chance.below(span / 2 + 1);
                pair.ask_all(later, moment(window, at + 1, newest, later));
                if window.span().is_some() {
                    pair.ask_shorter(newest);
                    pair.ask_shorter(later);
                }
            }
        }
        assert_eq!(pair.dishonest, 0, "{spec:?} {:?}", pair.filter.overload());
    }
}

/// Cells tell the truth of a live key whatever else is in them: with false positives all about, in
/// one table and in several.
#[test]
fn bloom_filters_are_honest_of_live_keys_at_any_rate() {
    for structure in [Structure::TimeBloom, Structure::IntervalBloom, Structure::IntervalBloomPlain]
    {
        for fpr in [0.5, 0.1, 0.01] {
            for (when_full, keys) in [(WhenFull::Grow, 4_000), (WhenFull::Grow, 200)] {
                let spec = Spec::new(time(1_000, 100)).structure(structure).fpr(fpr);
                let filter = spec.when_full(when_full).plan().unwrap().build();
                let mut pair = Pair::new(filter, Renewal::Always);
                let mut chance = Chance(keys);
                for at in 0..6_000u64 {
                    let n = if chance.below(3) == 0 { chance.below(40) } else { at % keys };
                    pair.observe(n, Tick(at));
                    // While it grows keys are in all of its tables.
                    if at % 97 == 0 || (at < 1_500 && at % 5 == 0) {
                        pair.oracle.forget_expired(0);
                        pair.ask_all(at, at);
                    }
                }
                let name = format!("{structure} {fpr} {keys} {:?}", pair.filter.overload());
                assert!(keys < 1_000 || pair.filter.tables() > 1, "{name}");
                assert_eq!(pair.dishonest, 0, "{name} of {}", pair.asked);
            }
        }
    }
}

/// A slot may be renewed by another key of the same fingerprint: that is as rare as a false positive.
#[test]
fn slots_are_dishonest_no_more_often_than_they_find_strangers() {
    for structure in [
        Structure::CuckooWindow,
        Structure::DleftWindow,
        Structure::AgedTable,
        Structure::AgedBuckets,
    ] {
        for window in [count(1_000), time(1_000, 1_000)] {
            for fpr in [0.1, 0.01, 1e-3] {
                let spec = Spec::new(window).structure(structure).fpr(fpr);
                let mut pair = Pair::new(spec.plan().unwrap().build(), Renewal::Always);
                for at in 1..=20_000u64 {
                    pair.observe(at, Tick(at));
                    if at % 500 == 0 {
                        pair.oracle.forget_expired(0);
                        pair.ask_all(at, moment(window, at, at, at));
                    }
                }
                // Two keys are at odds for as long as both live, at half of the pairs' questions.
                let most = at_most(pair.asked, fpr) * 1.2 + 10.0;
                let name = format!("{structure} {fpr}: {} of {}", pair.dishonest, pair.asked);
                assert!(pair.dishonest as f64 <= most, "{name}");
            }
        }
    }
}

/// The structures themselves, and whether they tell the grain of a sighting.
fn raw(window: Window, grain: u64) -> Vec<(Box<dyn LastSeen>, bool)> {
    let span = window.span().unwrap();
    let renewal = Renewal::Always;
    let shape =
        Shape { cells: 40_000, hashes: 20, span, grain, lateness: 0, capacity: 500, renewal };
    let keeps = Keeps { grain, ..Keeps::exactly(window) };
    let size = CuckooSize { positions: 1_024, signature_bits: 30, entries_a_block: 64 };
    let mut filters: Vec<(Box<dyn LastSeen>, bool)> = vec![
        (Box::new(CuckooWindow::new(keeps, size).unwrap()), true),
        (Box::new(DleftWindow::new(keeps, 40, 40).unwrap()), true),
        (Box::new(AgedTable::new(keeps, 60, 40).unwrap()), true),
        (Box::new(AgedBuckets::new(keeps, 150, 40).unwrap()), true),
        // These keep few, and so the most of their keys in the stash.
        (Box::new(CuckooWindow::new(keeps, CuckooSize { positions: 4, ..size }).unwrap()), true),
        (Box::new(DleftWindow::new(keeps, 1, 48).unwrap()), true),
        (Box::new(AgedTable::new(keeps, 1, 48).unwrap()), true),
        (Box::new(AgedTable::new(keeps, 3, 64).unwrap()), true),
        (Box::new(AgedBuckets::new(keeps, 2, 48).unwrap()), true),
    ];
    if matches!(window, Window::Count(_)) {
        filters.push((Box::new(TimingBloom::new(shape).unwrap()), false));
    } else {
        let plain = TimeIntervalBloom::new(shape, IntervalLayout::Plain).unwrap();
        let compact = TimeIntervalBloom::new(shape, IntervalLayout::Compact).unwrap();
        filters.push((Box::new(TimeBloom::new(shape).unwrap()), false));
        filters.push((Box::new(plain), false));
        filters.push((Box::new(compact), false));
    }
    filters
}

/// Slots tell the grain of a sighting, no less and no more; shorter windows have the slack of their
/// grains: one for the moment of the sighting, one for the rounding of the window.
#[test]
fn slots_tell_the_grain_and_windows_have_no_more_slack_than_two() {
    let windows =
        [(count(300), 1), (time(1_000, 500), 1), (time(1_000, 500), 10), (time(999, 500), 64)];
    for (window, grain) in windows {
        for (mut filter, exact) in raw(window, grain) {
            let mut oracle = Oracle::new(filter.window(), Renewal::Always);
            let mut chance = Chance(grain);
            let counting = matches!(window, Window::Count(_));
            let mut now = 0u64;
            for at in 0..4_000u64 {
                now += chance.below(5);
                let n = chance.below(450);
                let tick = if counting { Tick(0) } else { Tick(now) };
                let verdict = filter.observe(key(n), tick);
                oracle.observe(n, tick, verdict);
                let moment = if counting { at + 2 } else { now };
                let n = chance.below(450);
                let Some(age) = oracle.age(n, tick) else { continue };
                let truth = moment - age;
                if oracle.is_live(n, tick) {
                    let seen = filter.last_seen(key(n), tick).unwrap();
                    assert!((seen.from.0..=seen.to.0).contains(&truth), "{seen:?} {truth}");
                    if exact {
                        assert_eq!(seen.from.0, truth / grain * grain);
                        // The end of the grain, as far as it has come.
                        assert_eq!(seen.to.0, (truth / grain * grain + grain - 1).min(moment));
                    } else {
                        assert!(seen.to.0 < truth + grain, "the oldest of twenty cells");
                    }
                }
                // Every window: found when it must be, and not two grains too late.
                for within in [0, 1, age / 2, age.saturating_sub(1), age, age + 1, 2 * age] {
                    let found = filter.contains_within(key(n), within, tick);
                    let live = oracle.is_live(n, tick);
                    assert!(found || age > within || !live, "{age} {within}");
                    assert!(!found || age <= within + 2 * (grain - 1), "{age} {within} {grain}");
                }
            }
        }
    }
}

/// Strangers are found in a shorter window no more often than in the whole, and in proportion less
/// by those that tell single ages.
#[test]
fn shorter_windows_have_fewer_false_positives() {
    for &structure in Structure::ALL {
        for window in [count(2_000), time(2_000, 2_000)] {
            if !structure.keeps(window) {
                continue;
            }
            for fpr in [0.1, 1e-2] {
                let mut filter =
                    Spec::new(window).structure(structure).fpr(fpr).plan().unwrap().build();
                let (mut wrong, mut asked) = ([0u64; 4], 0u64);
                for at in 1..=12_000u64 {
                    let _ = filter.observe(key(at), Tick(at));
                    if at >= 4_000 && at % 20 == 0 {
                        for _ in 0..500 {
                            let stranger = key(1 << 60 | asked);
                            for (wrong, within) in wrong.iter_mut().zip([u64::MAX, 2_000, 500, 0]) {
                                let found = filter.contains_within(stranger, within, Tick(at));
                                *wrong += u64::from(found);
                            }
                            asked += 1;
                        }
                    }
                }
                let name = format!("{structure} {window:?} {fpr} {wrong:?} of {asked}");
                assert!(wrong[0] as f64 <= at_most(asked, fpr), "{name}");
                assert!(
                    wrong[0] == wrong[1] && wrong[1] >= wrong[2] && wrong[2] >= wrong[3],
                    "{name}"
                );
                assert!(wrong[2] as f64 <= at_most(asked, fpr / 4.0) * 1.1, "{name}");
            }
        }
    }
}

/// One that never forgets says no more than "by now", and takes every window for the whole one.
#[test]
fn what_never_forgets_says_by_now() {
    for structure in [Structure::Bloom, Structure::BlockedBloom] {
        let spec = Spec::new(support::unbounded(50)).structure(structure);
        let mut filter: AnyFilter = spec.plan().unwrap().build();
        for n in 0..400 {
            let _ = filter.observe(key(n), Tick(n));
        }
        assert!(filter.tables() > 1);
        for n in 0..400 {
            let seen = filter.last_seen(key(n), Tick(500)).unwrap();
            assert_eq!((seen.from, seen.to), (Tick(0), Tick(500)));
            assert!(filter.contains_within(key(n), 0, Tick(500)));
        }
        assert_eq!(filter.last_seen(key(1 << 40), Tick(500)), None);
    }
}

/// A key's own table is not always the one that says the latest: what all tables say is heard.
#[test]
fn a_later_table_does_not_hide_an_earlier_sighting() {
    for structure in [Structure::TimeBloom, Structure::IntervalBloom, Structure::IntervalBloomPlain]
    {
        for fpr in [0.9, 0.5] {
            let spec = Spec::new(time(10_000, 100)).structure(structure).fpr(fpr);
            let mut pair = Pair::new(spec.plan().unwrap().build(), Renewal::Always);
            let mut at = 0;
            while pair.filter.tables() == 1 {
                at += 1;
                pair.observe(at, Tick(at));
            }
            // The new table's keys are seen all the time, and some older ones are found in it too.
            let first = at;
            for _ in 0..3_000 {
                at += 1;
                pair.observe((1 << 40) + at % 300, Tick(at));
            }
            pair.ask_all(at, at);
            assert!(pair.filter.tables() == 2 && at - first == 3_000, "{structure}");
            assert_eq!(pair.dishonest, 0, "{structure} {fpr}: of {}", pair.asked);
        }
    }
}
