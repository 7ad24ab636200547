//! Filters that grow: nothing is lost at any step, and the rate is what was promised.

mod support;

use lately::forever::{
    AccommodativeBloom, AccommodativeShape, DynamicBloom, ScalableBloom, ScalableShape,
};
use lately::plan::bloom_fpr;
use lately::{Digest, Filter, Spec, Structure, Tick, Verdict, WhenFull, Window, WindowFilter};
use proptest::prelude::*;
use std::collections::HashSet;
use std::ops::Range;
use support::{at_most, key, nonzero};

/// What the three have in common.
trait Growing: Filter + Clone + PartialEq + std::fmt::Debug {
    fn take(&mut self, digest: Digest) -> Verdict;
    fn count(&self) -> u64;
    fn steps(&self) -> u64;
    fn is_at_its_limit(&self) -> bool;
}

macro_rules! growing {
    ($($filter:ty),*) => {$(
        impl Growing for $filter {
            fn take(&mut self, digest: Digest) -> Verdict {
                self.observe(digest)
            }
            fn count(&self) -> u64 {
                self.keys()
            }
            fn steps(&self) -> u64 {
                self.grown()
            }
            fn is_at_its_limit(&self) -> bool {
                self.is_full()
            }
        }
    )*};
}
growing!(DynamicBloom, ScalableBloom, AccommodativeBloom);

/// The shape of section 4 of the paper, with 16 buckets.
const PAPER: AccommodativeShape = AccommodativeShape {
    bits: 6_400,
    buckets: 16,
    choices: 4,
    hashes: 4,
    fpr: 0.01,
    tightening: 0.85,
};

/// Keys that were never put in.
fn stranger(n: u64) -> Digest {
    key(1 << 63 | n)
}

/// False positives among so many questions.
fn wrong(filter: &dyn Filter, questions: Range<u64>) -> f64 {
    questions.filter(|&n| filter.contains(stranger(n), Tick(0))).count() as f64
}

/// Every key taken is found after every step, whatever the limit, beyond it too; and up to there
/// the rate is what the filter `promises`, if it does.
fn loses_nothing(
    mut filter: impl Growing,
    promises: bool,
    keys: &[u64],
    limit: u64,
) -> Result<(), TestCaseError> {
    let mut oracle = HashSet::new();
    let memory_at_first = filter.memory() as u64;
    let mut fresh = 0;
    let mut was_ever_full = false;
    for &n in keys {
        let (before, steps, was_full) = (filter.clone(), filter.steps(), filter.is_at_its_limit());
        let verdict = filter.take(key(n));
        prop_assert!(oracle.insert(n) || verdict.is_duplicate(), "{} was lost", n);
        prop_assert_eq!(verdict.is_duplicate(), before.contains(key(n), Tick(0)), "{}", n);
        fresh += u64::from(!verdict.is_duplicate());
        // A duplicate changes nothing.
        prop_assert!(!verdict.is_duplicate() || filter == before);
        prop_assert!(!was_full || limit < u64::MAX);
        was_ever_full |= was_full;
        let rate = filter.estimated_fpr();
        prop_assert!(!promises || was_ever_full || rate <= filter.fpr() * (1.0 + 1e-9), "{}", rate);
        prop_assert!(filter.steps() >= steps);
        for &n in &oracle {
            prop_assert!(filter.contains(key(n), Tick(0)), "{} is lost", n);
        }
        prop_assert!(filter.memory() as u64 <= limit.max(memory_at_first));
        let shares = [filter.fpr(), filter.estimated_fpr(), filter.fill()];
        prop_assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{:?}", shares);
    }
    prop_assert_eq!(filter.count(), fresh);
    Ok(())
}

fn limits() -> impl Strategy<Value = u64> {
    prop_oneof![Just(u64::MAX), 0u64..6_000]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn a_dynamic_filter_loses_nothing(
        bits in 1u64..200, hashes in 1u32..6, capacity in 1u64..20, limit in limits(),
        keys in prop::collection::vec(0u64..120, 0..150),
    ) {
        let filter = DynamicBloom::new(bits, hashes, capacity).unwrap().limit(limit);
        loses_nothing(filter, false, &keys, limit)?;
    }

    #[test]
    fn a_scalable_filter_loses_nothing(
        capacity in 1u64..20, fpr in 1e-6f64..0.9, growth in 2u32..5, tightening in 0.5f64..0.99,
        limit in limits(), keys in prop::collection::vec(0u64..120, 0..150),
    ) {
        let shape = ScalableShape { capacity, fpr, growth, tightening };
        let filter = ScalableBloom::new(shape).unwrap().limit(limit);
        loses_nothing(filter, true, &keys, limit)?;
    }

    #[test]
    fn an_accommodative_filter_loses_nothing(
        bits in 1u64..400, buckets in 1u32..9, choices in 1u32..9, hashes in 1u32..6,
        fpr in 1e-3f64..0.9, tightening in 0.5f64..0.99, limit in limits(),
        keys in prop::collection::vec(0u64..120, 0..150),
    ) {
        let bits = bits * u64::from(buckets);
        let shape = AccommodativeShape { bits, buckets, choices, hashes, fpr, tightening };
        // Some shapes cannot hold a key at their rate, and say so.
        if let Ok(filter) = AccommodativeBloom::new(shape) {
            loses_nothing(filter.limit(limit), true, &keys, limit)?;
        }
    }
}

/// Asked of filters that have just grown and of such as are about to, so many questions in all.
fn keeps_its_rate(mut filter: impl Growing, keys: u64, questions: u64, name: &str) {
    let fpr = filter.fpr();
    let (mut asked, mut found, mut lost) = (0, 0.0, 0u64);
    let steps = 10;
    for n in 0..keys {
        lost += u64::from(filter.take(key(n)).is_duplicate());
        if (n + 1) % (keys / steps) == 0 {
            // Others each time: one that is found stays found.
            found += wrong(&filter, asked..asked + questions / steps);
            asked += questions / steps;
            assert!(filter.estimated_fpr() <= fpr, "{name} {}", filter.estimated_fpr());
        }
    }
    assert!(filter.steps() >= 6, "{name}: grown {} times", filter.steps());
    assert!(found <= at_most(asked, fpr), "{name}: {found} of {asked}");
    assert!(lost as f64 <= at_most(keys, fpr), "{name}: {lost} of {keys} never taken");
    assert!((0..keys).all(|n| filter.contains(key(n), Tick(0))), "{name}");
}

const RATES: [(f64, u64); 4] = [(0.1, 20_000), (1e-2, 100_000), (1e-3, 400_000), (1e-4, 800_000)];

#[test]
fn a_scalable_filter_keeps_its_rate() {
    for (fpr, questions) in RATES {
        for (growth, keys) in [(2, 20_000), (4, 100_000)] {
            for tightening in [0.5, 0.8, 0.9] {
                let capacity = if growth == 2 { 100 } else { 10 };
                let shape = ScalableShape { capacity, fpr, growth, tightening };
                let filter = ScalableBloom::new(shape).unwrap();
                keeps_its_rate(filter, keys, questions, &format!("{shape:?}"));
            }
        }
    }
}

#[test]
fn an_accommodative_filter_keeps_its_rate() {
    for (fpr, questions) in RATES {
        for (buckets, choices) in [(16, 4), (4, 4), (1, 1), (7, 2)] {
            for tightening in [0.5, 0.85] {
                let bits = 400 * u64::from(buckets);
                let shape = AccommodativeShape { bits, fpr, buckets, choices, tightening, ..PAPER };
                let filter = AccommodativeBloom::new(shape).unwrap();
                keeps_its_rate(filter, 20_000, questions, &format!("{shape:?}"));
            }
        }
    }
}

#[test]
fn the_papers_shape_keeps_its_rate_at_200_000_keys() {
    let mut filter = AccommodativeBloom::new(PAPER).unwrap();
    for n in 0..200_000 {
        let _ = filter.observe(key(n));
        if [1_000, 10_000, 50_000, 100_000, 199_999].contains(&n) {
            let (questions, bits) = (100_000, filter.memory() as f64 * 8.0 / n as f64);
            let rate = wrong(&filter, 0..questions) / questions as f64;
            assert!(rate <= 0.003 && filter.estimated_fpr() <= 0.003, "{n}: {rate}");
            // What it allocates, so also the ends of words and what names the slices.
            assert!(n < 10_000 || (30.0..70.0).contains(&bits), "{n}: {bits}");
        }
    }
}

/// The estimate is the rate: neither a bound far above it nor below.
#[test]
fn the_estimates_are_what_is_measured() {
    let questions = 2_000_000;
    let shape = ScalableShape { capacity: 50, fpr: 0.05, growth: 2, tightening: 0.85 };
    let mut scalable = ScalableBloom::new(shape).unwrap();
    let shape = AccommodativeShape { fpr: 0.3, choices: 2, ..PAPER };
    let mut accommodative = AccommodativeBloom::new(shape).unwrap();
    // Beyond their limits they rise above the promise, and the estimates say so.
    let mut full = ScalableBloom::new(scalable.shape()).unwrap().limit(2_000);
    let mut stuck = AccommodativeBloom::new(shape).unwrap().limit(8_000);
    for n in 0..8_000 {
        let _ = (scalable.observe(key(n)), accommodative.observe(key(n)));
        let _ = full.is_full() || full.observe(key(n)).is_duplicate();
        let _ = stuck.is_full() || stuck.observe(key(n)).is_duplicate();
    }
    assert!(full.is_full() && full.estimated_fpr() <= full.fpr());
    assert!(stuck.is_full() && stuck.estimated_fpr() <= stuck.fpr());
    for n in 0..1_000 {
        let _ = (full.observe(key(n)), stuck.observe(key(10_000 + n)));
    }
    assert!(full.estimated_fpr() > full.fpr(), "{}", full.estimated_fpr());
    for filter in [&scalable as &dyn Filter, &accommodative, &full, &stuck] {
        let rate = wrong(filter, 0..questions) / questions as f64;
        let ratio = rate / filter.estimated_fpr();
        assert!((0.9..1.1).contains(&ratio), "{ratio}: {}", filter.estimated_fpr());
    }
}

/// `1 - (1 - f)^(r-1) · (1 - f_t)`, within the bound on both sides.
#[test]
fn a_dynamic_filter_follows_its_formula() {
    for (bits, hashes, capacity) in [(6_400, 4, 640), (6_400, 7, 668), (4_000, 2, 300)] {
        let mut filter = DynamicBloom::new(bits, hashes, capacity).unwrap();
        let f = bloom_fpr(bits, hashes, capacity as f64);
        assert_eq!((filter.fpr(), filter.capacity()), (f, capacity));
        let questions = 100_000;
        for n in 0u64.. {
            if filter.keys() >= 30 * capacity {
                break;
            }
            let _ = filter.observe(key(n));
            if n % (3 * capacity) == capacity / 2 {
                let (full, newest) = (filter.grown(), filter.keys() - filter.grown() * capacity);
                let newest = bloom_fpr(bits, hashes, newest as f64);
                let rate = DynamicBloom::rate(full as u32, f, newest);
                assert!((rate - filter.estimated_fpr()).abs() < 1e-9);
                let found = wrong(&filter, 0..questions);
                let mean = questions as f64 * rate;
                // Tables differ: a filter's fill is within some 2 % of the mean.
                let spread = at_most(questions, rate) - mean + 0.02 * f64::from(hashes) * mean;
                assert!((found - mean).abs() <= spread, "{bits} {n}: {found}, {mean}");
            }
        }
        // It promised that for the first filter alone.
        assert!(filter.filters() == 30 && filter.estimated_fpr() > 5.0 * f.min(0.15));
    }
}

/// The planned keys go into the first filter, give or take what chance does.
#[test]
fn the_first_filter_holds_what_it_is_planned_for() {
    fn taken(filter: &mut impl Growing) -> f64 {
        let first = (0u64..).find(|&n| {
            let _ = filter.take(key(n));
            filter.steps() > 0
        });
        first.unwrap() as f64
    }
    for capacity in [1, 2, 10, 100, 10_000] {
        let mut dynamic = DynamicBloom::new(capacity * 20, 7, capacity).unwrap();
        assert!(taken(&mut dynamic) >= capacity as f64);
        assert_eq!(dynamic.keys(), capacity + 1);
        let shape = ScalableShape { capacity, fpr: 1e-3, growth: 2, tightening: 0.85 };
        let keys = taken(&mut ScalableBloom::new(shape).unwrap());
        let expected = capacity as f64;
        assert!((keys - expected).abs() <= 2.0 * expected.sqrt(), "{keys}, {expected}");
    }
    for bits in [6_400, 64_000, 1_000_000] {
        let shape = AccommodativeShape { bits, buckets: 4, ..PAPER };
        let mut filter = AccommodativeBloom::new(shape).unwrap();
        let expected = filter.capacity() as f64;
        let keys = taken(&mut filter);
        assert!((0.9..1.05).contains(&(keys / expected)), "{keys}, {expected}");
    }
}

/// Tables that are never dropped may be many, so each has but little less of the rate than the one before.
#[test]
fn what_never_forgets_grows_without_wasting_bits() {
    const FPR: f64 = 1e-3;
    for structure in [Structure::Bloom, Structure::BlockedBloom] {
        let window = Window::Unbounded { capacity: nonzero(100) };
        let spec = Spec::new(window).fpr(FPR).structure(structure);
        let size = |capacity: u64, fpr: f64| {
            let spec = Spec::new(Window::Unbounded { capacity: nonzero(capacity) }).fpr(fpr);
            spec.structure(structure).when_full(WhenFull::Refuse).plan().unwrap().memory() as f64
        };
        let mut filter = spec.plan().unwrap().build();
        for n in 0..100_000 {
            let _ = filter.observe(key(n), Tick(0));
            assert!(n % 1_000 > 0 || filter.contains(key(n / 2), Tick(0)), "{structure} {n}");
        }
        let tables = filter.tables() as u32;
        assert!(tables > 8, "{structure}: {tables}");
        let capacity = |table: u32| if table == 0 { 100 } else { 400 << (table - 1) };
        let by_halves: f64 =
            (0..tables).map(|table| size(capacity(table), FPR / f64::from(2 << table))).sum();
        let memory = filter.memory() as f64;
        assert!(memory < by_halves * 0.9, "{structure}: {memory} {by_halves}");
        let wrong = wrong(&filter, 0..200_000);
        assert!(wrong <= at_most(200_000, FPR), "{structure}: {wrong}");
    }
}
