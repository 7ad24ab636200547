//! What callers meet first: shards, clearing, lengths, iterators, readers and writers, plain numbers, keys of any type.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use lately::range::RangeSpec;
use lately::window::{Shape, TimeBloom};
use lately::{
    AnyFilter, Digester, Filter, LastSeen, Renewal, Spec, Structure, Tick, Verdict, Window,
    WindowFilter,
};
use support::{key, specs};

/// As many false positives as expected, and five standard deviations and one more.
fn most(asked: u64, fpr: f64) -> u64 {
    let mean = asked as f64 * fpr;
    (mean + 5.0 * mean.sqrt() + 1.0) as u64
}

fn window_for(structure: Structure, keys: u64) -> Window {
    if structure.is_unbounded() { Window::unbounded(keys) } else { Window::count(keys) }
}

/// Filters that are given the keys of one shard each keep their rate, in every structure. With the upper bits of the high
/// half as the shard, a table takes all keys in one part of it: the rate is then hundreds of times as high.
#[test]
fn a_shard_keeps_the_rate_of_every_structure() {
    const SHARDS: usize = 16;
    const KEYS: u64 = 2_000;
    let mut of_one = (0..).map(key).filter(|key| key.shard(SHARDS) == 3);
    let members: Vec<_> = of_one.by_ref().take(KEYS as usize).collect();
    let others: Vec<_> = of_one.take(20_000).collect();
    for &structure in Structure::ALL {
        let spec = Spec::new(window_for(structure, KEYS)).structure(structure).fpr(2e-3);
        let mut filter = spec.plan().unwrap().build();
        for &member in &members {
            let _ = filter.observe(member, Tick(0));
        }
        let found = others.iter().filter(|&&other| filter.contains(other, Tick(0))).count() as u64;
        assert!(found <= most(others.len() as u64, 2e-3), "{structure}: {found} of 20,000");
        assert!(filter.estimated_fpr() <= 2e-3 && filter.overload().refused == 0, "{structure}");
    }
}

/// Shards are alike in size, and stay what they are.
#[test]
fn shards_are_even_and_the_same_everywhere() {
    for shards in [1, 2, 3, 16, 1_000] {
        let mut keys = vec![0u64; shards];
        (0..100_000).for_each(|n| keys[key(n).shard(shards)] += 1);
        let mean = 100_000.0 / shards as f64;
        let widest = 5.5 * mean.sqrt();
        assert!(
            keys.iter().all(|&keys| (keys as f64 - mean).abs() <= widest),
            "{shards}: {keys:?}"
        );
    }
    assert_eq!(key(1).shard(0), 0);
    let pinned: Vec<usize> = (0..8).map(|n| key(n).shard(1 << 16)).collect();
    assert_eq!(pinned, PINNED);
}

const PINNED: [usize; 8] = [20_094, 25_146, 23_698, 47_260, 22_688, 37_401, 61_433, 18_617];

/// Empty, used, and emptied by time: what is restored is equal to what was saved.
#[test]
fn what_is_restored_is_equal() {
    for spec in specs() {
        let mut filter = spec.plan().unwrap().build();
        let equal = |filter: &AnyFilter, when: &str| {
            let restored = AnyFilter::restore(&filter.snapshot()).unwrap();
            assert!(&restored == filter, "{when}: {spec:?}");
        };
        equal(&filter, "empty");
        filter.advance(Tick(77));
        equal(&filter, "after some time");
        for n in 0..30 {
            let _ = filter.observe(key(n), Tick(100 + n));
        }
        equal(&filter, "used");
        filter.advance(Tick(1 << 40));
        equal(&filter, "after a long time");
        filter.clear();
        equal(&filter, "cleared");
    }
}

/// A cleared filter is the one that was built, whatever it had been through.
#[test]
fn a_cleared_filter_is_as_it_was_built() {
    for spec in specs() {
        let new = spec.plan().unwrap().build();
        assert!(new.is_empty(), "{spec:?}");
        let mut filter = new.clone();
        for n in 0..3_000 {
            let _ = filter.observe(key(n), Tick(n / 4));
        }
        assert!(!filter.is_empty(), "{spec:?}");
        filter.clear();
        assert!(filter == new && filter.is_empty(), "{spec:?}");
        assert_eq!(filter.memory(), new.memory(), "{spec:?}");
        assert_eq!(filter.snapshot(), new.snapshot(), "{spec:?}");
    }
}

#[test]
fn lengths_are_about_right() {
    for &structure in Structure::ALL {
        for keys in [0u64, 1, 100, 1_000] {
            let spec = Spec::new(window_for(structure, 1_000)).structure(structure).fpr(1e-3);
            let mut filter = spec.plan().unwrap().build();
            filter.extend((0..keys).map(|n| (key(n), Tick(0))));
            let len = filter.len();
            assert_eq!(filter.is_empty(), keys == 0, "{structure}");
            assert!(len.abs_diff(keys) <= keys / 8 + keys.min(3), "{structure}: {len} of {keys}");
        }
    }
}

#[test]
fn arrivals_of_an_iterator_are_judged_as_one_by_one() {
    for &structure in Structure::ALL {
        let spec = Spec::new(window_for(structure, 500)).structure(structure).fpr(1e-3);
        let (mut one, mut all) = (spec.plan().unwrap().build(), spec.plan().unwrap().build());
        let arrivals = |n: u64| (key(n * n % 1_009), Tick(n));
        let by_one: Vec<_> =
            (0..3_000).map(arrivals).map(|(key, at)| one.observe(key, at)).collect();
        let mut judged = all.observe_all((0..3_000).map(arrivals));
        assert_eq!(judged.size_hint(), (3_000, Some(3_000)));
        assert_eq!(judged.next(), Some(Verdict::Fresh));
        assert_eq!(judged.size_hint(), (2_999, Some(2_999)));
        assert!(judged.eq(by_one[1..].iter().copied()), "{structure}");
        assert!(one == all);
    }
}

/// A key was never last seen in the future, and never before it was.
#[test]
fn nothing_was_last_seen_in_the_future() {
    for &structure in Structure::ALL {
        for window in [Window::time(1_000, 100), Window::count(100)] {
            if !structure.keeps(window) {
                continue;
            }
            let spec = Spec::new(window).structure(structure).slack(120).fpr(1e-6);
            let mut filter = spec.plan().unwrap().build();
            for n in 0..300u64 {
                let now = n * 7;
                let _ = filter.observe(key(n), Tick(now));
                let seen = filter.last_seen(key(n), Tick(now)).unwrap();
                let arrival = if matches!(window, Window::Count(_)) { n + 1 } else { now };
                assert!(seen.to.0 <= arrival, "{structure}: {seen:?} at {arrival}");
                assert!(seen.from.0 <= arrival && arrival - seen.to.0 == 0, "{structure}");
            }
        }
    }
}

/// A filter of a million keys says what it is in a page, not in a million lines.
#[test]
fn what_is_printed_of_a_filter_is_short() {
    for &structure in Structure::ALL {
        let spec = Spec::new(window_for(structure, 20_000)).structure(structure).fpr(1e-3);
        let mut filter = spec.plan().unwrap().build();
        filter.extend((0..20_000).map(|n| (key(n), Tick(0))));
        let printed = format!("{filter:?}");
        assert!(printed.len() < 20_000, "{structure}: {} bytes", printed.len());
    }
    let mut window = RangeSpec::new(Window::count(20_000)).plan().unwrap().build();
    (0..20_000).for_each(|n| window.insert(n * n, Tick(0)));
    assert!(format!("{window:?}").len() < 4_000);
}

/// Shapes that no filter has are answered with numbers, and refused when they are to be built.
#[test]
fn impossible_shapes_are_refused_and_never_panic() {
    let good = Shape {
        cells: 100,
        hashes: 3,
        span: 10,
        grain: 1,
        lateness: 0,
        capacity: 5,
        renewal: Renewal::Always,
    };
    for (span, grain, lateness) in [
        (0, 0, 0),
        (10, 0, 5),
        (u64::MAX, 1, 0),
        (u64::MAX, u64::MAX, u64::MAX),
        (1, u64::MAX, 1),
        (u64::MAX, 1, u64::MAX),
    ] {
        let shape = Shape { span, grain, lateness, ..good };
        let _ = (shape.slack(), shape.stamp_bits(), shape.length_bits(), shape.full_at());
        assert!(TimeBloom::new(shape).is_err(), "{shape:?}");
    }
}

#[cfg(feature = "std")]
#[test]
fn filters_go_through_writers_and_readers() {
    let mut filter = Spec::new(Window::count(1_000)).plan().unwrap().build();
    filter.extend((0..2_000).map(|n| (key(n), Tick(0))));
    let mut file = Vec::new();
    filter.save(&mut file).unwrap();
    assert_eq!(file, filter.snapshot());
    assert!(AnyFilter::load(file.len() as u64, &file[..]).unwrap() == filter);
    file[100] ^= 1;
    let error = AnyFilter::load(file.len() as u64, &file[..]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
}

#[cfg(feature = "std")]
#[test]
fn a_deduper_has_a_clock() {
    use std::time::Duration;
    let mut seen = lately::Deduper::within(Duration::from_millis(400)).unwrap();
    assert!(seen.is_empty() && !seen.contains("a"));
    assert!(seen.insert("a") && !seen.insert("a") && seen.contains("a"));
    let mut file = Vec::new();
    seen.save(&mut file).unwrap();
    let mut restored = lately::Deduper::load(file.len() as u64, &file[..]).unwrap();
    assert!(!restored.insert("a") && restored.insert("b"));
    std::thread::sleep(Duration::from_millis(430));
    assert!(seen.insert("a"));
    seen.clear();
    assert!(seen.is_empty());
    assert!(lately::Deduper::within(Duration::MAX).is_err());
}

#[cfg(feature = "serde")]
#[test]
fn specs_go_through_serde() {
    for spec in specs() {
        let text = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<Spec>(&text).unwrap(), spec, "{text}");
    }
    let range = RangeSpec::new(Window::time(600, 1_000)).interval(1 << 20).slack(75);
    let text = serde_json::to_string(&range).unwrap();
    assert_eq!(serde_json::from_str::<RangeSpec>(&text).unwrap(), range);
    assert!(serde_json::from_str::<Structure>("\"no such\"").is_err());
    assert!(serde_json::from_str::<Window>("{\"Count\":0}").is_err());
}

#[test]
fn plain_numbers_make_windows() {
    assert_eq!(Window::count(0), Window::count(1));
    assert_eq!(Window::time(10, 5).span(), Some(10));
    assert_eq!(Window::unbounded(7).capacity(), 7);
    assert_eq!(Window::within(core::time::Duration::from_micros(3), 5), Window::time(3_000, 5));
    assert_ne!(Digester::new(1).digest_hash(&7u32), Digester::new(1).digest_hash(&7u64));
}
