//! Tables that the sweep is behind with, after a pause: nothing is lost, and nothing comes back.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::bits::words_looked_at;
use crate::{
    AnyFilter, Digest, Digester, Filter, LastSeen, Spec, Structure, Tick, Window, WindowFilter,
};
use proptest::prelude::*;
use std::collections::HashMap;

const SPAN: u64 = 1_000;
const KEYS: u64 = 10_000;
const RATE: f64 = 0.01;

/// A filter, when each key was last seen, and what it got wrong.
struct Pair {
    filter: AnyFilter,
    seen: HashMap<u64, u64>,
    now: u64,
    asked: u64,
    wrong: u64,
}

fn digest(key: u64) -> Digest {
    Digester::new(3).digest(&key.to_le_bytes())
}

impl Pair {
    fn new(structure: Structure, slack: u64, lateness: u64) -> Self {
        let spec = Spec::new(Window::time(SPAN, KEYS)).structure(structure).fpr(RATE);
        let filter = spec.slack(slack).lateness(lateness).plan().unwrap().build();
        Self { filter, seen: HashMap::new(), now: 0, asked: 0, wrong: 0 }
    }

    /// How long ago a key was seen, if that is known for certain.
    fn check(&mut self, key: u64, found: bool) {
        let age = self.seen.get(&key).map(|&at| self.now - at);
        assert!(
            found || age.is_none_or(|age| age > SPAN),
            "{key} of age {age:?} at {} is lost",
            self.now
        );
        if age.is_none_or(|age| age > SPAN + self.filter.slack()) {
            self.asked += 1;
            self.wrong += u64::from(found);
        }
    }

    fn observe(&mut self, key: u64) {
        let found = self.filter.observe(digest(key), Tick(self.now)).is_duplicate();
        self.check(key, found);
        self.seen.insert(key, self.now);
    }

    fn ask(&mut self, key: u64) {
        let found = self.filter.contains(digest(key), Tick(self.now));
        self.check(key, found);
        if let Some(seen) = self.filter.last_seen(digest(key), Tick(self.now)) {
            assert!(found && seen.from <= seen.to && seen.to <= Tick(self.now));
            if let Some(&at) = self.seen.get(&key).filter(|&&at| self.now - at <= SPAN) {
                assert!(seen.to >= Tick(at), "{key}, seen at {at}: {seen:?}");
            }
        }
    }

    /// As many keys as there is room for, within a few ticks or a good part of a window.
    fn fill(&mut self, first: u64, ticks: u64) {
        let start = self.now;
        for at in 0..KEYS * 9 / 10 {
            self.now = start + at * ticks / KEYS;
            self.observe((first + at) % (4 * KEYS));
        }
    }

    fn restore(&mut self) {
        let bytes = self.filter.snapshot();
        let restored = AnyFilter::restore(&bytes).unwrap();
        assert!(restored == self.filter);
        assert_eq!(restored.snapshot(), bytes);
        self.filter = restored;
    }
}

/// The structures with a sweep, how much slack they have, and whether late arrivals are taken.
fn cases() -> impl Strategy<Value = (Structure, u64, u64)> {
    let in_order = [Structure::TimeBloom, Structure::CuckooWindow, Structure::DleftWindow];
    let late = [Structure::IntervalBloom, Structure::AgedBuckets];
    let slack = prop_oneof![Just(SPAN / 8), Just(0), Just(SPAN)];
    prop_oneof![
        (prop::sample::select(in_order.to_vec()), slack.clone(), Just(0)),
        (prop::sample::select(late.to_vec()), slack, prop_oneof![Just(0), Just(200u64)]),
    ]
}

proptest! {
    // Each takes as long as ten others.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 10 + 1))]

    /// Against a map: full tables, pauses of any length, arrivals and questions between them, and restorations.
    #[test]
    fn nothing_is_lost_and_nothing_comes_back(
        (structure, slack, lateness) in cases(),
        seed in any::<u64>(),
        rounds in prop::collection::vec(
            (any::<u64>(), 0u64..2, prop::collection::vec((0u64..8, any::<u64>()), 1..60)), 1..5,
        ),
    ) {
        let mut pair = Pair::new(structure, slack, lateness);
        pair.now = seed % 5_000;
        for (first, long, steps) in rounds {
            pair.fill(first % (4 * KEYS), if long == 1 { 700 } else { 3 });
            for (action, value) in steps {
                let key = value % (4 * KEYS);
                match action {
                    0 => pair.now += value % 150,
                    1 => pair.now += value % (2 * SPAN),
                    2 => pair.now += 1 << (value % 40),
                    3 if value % 4 == 0 => pair.restore(),
                    _ => pair.now += value % 3,
                }
                for near in key..key + 4 {
                    pair.ask(near);
                    pair.observe(near);
                    pair.ask(near + 10);
                }
            }
        }
        // Five deviations above the promised rate.
        let expected = pair.asked as f64 * RATE;
        prop_assert!((pair.wrong as f64) < expected + 5.0 * expected.sqrt() + 3.0,
            "{structure:?}: {} of {}", pair.wrong, pair.asked);
    }
}

/// Words that the slowest of some arrivals looks at after a pause, one every so many ticks.
fn words_after(mut filter: AnyFilter, pause: u64, gap: u64) -> u64 {
    let mut now = filter.newest().0 + pause;
    let mut slowest = 0;
    for key in 200_000..200_500 {
        let before = words_looked_at();
        let _ = filter.observe(digest(key), Tick(now));
        slowest = slowest.max(words_looked_at() - before);
        now += gap;
    }
    slowest
}

/// Cells count as words here, and tables of 100,000 keys have 200,000 to 1,400,000: 30,000 take about 20 microseconds.
#[test]
fn an_arrival_after_a_full_window_and_a_pause_is_no_slower_than_others() {
    let swept = [
        Structure::TimeBloom,
        Structure::IntervalBloom,
        Structure::CuckooWindow,
        Structure::DleftWindow,
        Structure::AgedBuckets,
    ];
    for structure in swept {
        let spec = Spec::new(Window::time(SPAN, 100_000)).structure(structure).fpr(1e-3);
        let mut filter = spec.plan().unwrap().build();
        for key in 0..100_000 {
            let _ = filter.observe(digest(key), Tick(key / 100));
        }
        for pause in [1, 126, 500, 999, 1_500, 1_000_000] {
            for gap in [0, 1, 20, 1_001] {
                let words = words_after(filter.clone(), pause, gap);
                assert!(
                    words <= 30_000,
                    "{structure:?}, {words} words after {pause} and then every {gap}"
                );
            }
        }
    }
}
