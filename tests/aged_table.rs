//! What the aged table promises besides the laws: keys that come in bursts or seldom, any rate, lateness longer than the
//! window, and snapshots of before.

// The helpers fail as the tests do.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "support/pair.rs"]
mod pair;
mod support;

use lately::window::{AgedTable, Keeps};
use lately::{
    AnyFilter, Filter, LastSeen, Renewal, Spec, Structure, Tick, Verdict, WhenFull, WindowFilter,
};
use pair::{Keys, Pair};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use support::{Chance, Oracle, at_most, count, key, time};

fn spec(window: lately::Window) -> Spec {
    Spec::new(window).structure(Structure::AgedTable)
}

/// A thousand keys at once, and a thousand others when those have expired but may still be found.
#[test]
fn a_burst_never_finds_the_room_taken_by_what_has_expired() {
    for slack in [0, 56, 100, 125, 500, 2_000] {
        for when_full in [WhenFull::Refuse, WhenFull::Grow] {
            for pause in [1_001, 1_002, 1_050, 1_100, 1_900, 5_000] {
                let spec = spec(time(1_000, 1_000)).fpr(1e-6).slack(slack).when_full(when_full);
                let mut filter = spec.plan().unwrap().build();
                let mut missed = 0;
                for burst in 0..20 {
                    let now = Tick(burst * pause);
                    for n in 0..1_000 {
                        let _ = filter.observe(key(burst * 1_000 + n), now);
                    }
                    let late = Tick(now.0 + 1_000);
                    let is_missed = |n: &u64| !filter.contains(key(burst * 1_000 + n), late);
                    missed += (0..1_000).filter(is_missed).count();
                }
                let overload = filter.overload();
                assert!(!overload.any() && missed == 0, "{slack} {pause} {missed} {overload:?}");
            }
        }
    }
}

/// One key in a window, or in many, of a table for a million: whatever the gap, no arrival waits for the table.
#[test]
fn a_seldom_arrival_does_not_wait_for_the_whole_table() {
    for slack in [0, 125] {
        let mut filter = spec(time(1_000, 1_000_000)).slack(slack).plan().unwrap().build();
        // A table that has been full.
        for n in 0..1_000_000u64 {
            let _ = filter.observe(key(n), Tick(n / 1_000));
        }
        let mut now = 1_000;
        for gap in [999, 500, 1_000, 1_001, 56, 3_000, 999] {
            // What was there is forgotten bit by bit.
            let mut took = [Duration::MAX; 3];
            for took in &mut took {
                let begin = Instant::now();
                for _ in 0..1_000 {
                    now += gap;
                    assert_eq!(filter.observe(key((1 << 40) + now), Tick(now)), Verdict::Fresh);
                }
                *took = begin.elapsed();
            }
            // As fast as it ever is, as others use the processor too; a sweep takes a hundred times as long.
            let least = took.into_iter().min().unwrap();
            assert!(least < Duration::from_millis(60), "{slack} {gap}: {took:?}");
        }
    }
}

/// Rates for which a fingerprint has 16 to 60 bits: the laws, and the rate.
#[test]
fn any_rate_is_kept_with_generations_alone() {
    for (fpr, renewal) in [
        (0.1, Renewal::Always),
        (1e-3, Renewal::OnFresh),
        (1e-4, Renewal::Always),
        (1e-5, Renewal::Always),
        (1e-6, Renewal::OnFresh),
        (1e-9, Renewal::Always),
        (1e-15, Renewal::Always),
    ] {
        for (n, keys) in [(2_000, Keys::Again), (5_000, Keys::Zipf), (1_003, Keys::Uniform)] {
            let spec = spec(count(n)).fpr(fpr).renewal(renewal).slack(n / 16);
            let mut pair = Pair::new(spec.plan().unwrap().build(), renewal, &key);
            pair.run_counting(keys, n, 12 * n, 12);
            let name = format!("{fpr} {n} {keys:?}: {} of {}", pair.wrong, pair.strangers);
            assert!(pair.wrong as f64 <= at_most(pair.strangers, fpr), "{name}");
            assert!(!pair.filter.overload().any(), "{name}");
        }
    }
}

/// Bits per key at the slack of an eighteenth and at an eighth: no more than is said.
#[test]
fn a_finer_slack_takes_fewer_bits() {
    for (slack, fpr, most) in [
        (56_000, 1e-3, 19.7),
        (125_000, 1e-3, 19.7),
        (56_000, 1e-4, 25.2),
        (56_000, 1e-6, 33.6),
        (56_000, 1e-9, 49.0),
    ] {
        let plan = spec(count(1_000_000)).fpr(fpr).slack(slack).plan().unwrap();
        assert!(plan.slack() <= slack);
        assert!(plan.bits_per_key() <= most, "{slack} {fpr}: {}", plan.bits_per_key());
    }
}

/// When a key was last seen, to the generation, and shorter windows.
#[test]
fn generations_tell_when_a_key_was_last_seen() {
    for window in [time(1_000, 500), count(1_000)] {
        let plan = spec(window).fpr(1e-9).slack(60).plan().unwrap();
        let (mut filter, slack) = (plan.build(), plan.slack());
        let mut oracle = Oracle::new(window, Renewal::Always);
        let (mut chance, mut now) = (Chance(5), 0);
        for _ in 0..20_000 {
            now += chance.below(5);
            let n = chance.below(700);
            let verdict = filter.observe(key(n), Tick(now));
            oracle.observe(n, Tick(now), verdict);
            let n = chance.below(700);
            let (Some(age), true) = (oracle.age(n, Tick(now)), oracle.is_live(n, Tick(now))) else {
                continue;
            };
            assert!(filter.last_seen(key(n), Tick(now)).is_some());
            for within in [0, age / 2, age, age + 1, 2 * age] {
                let found = filter.contains_within(key(n), within, Tick(now));
                assert!(found || within < age, "{age} {within}");
                assert!(!found || age <= within + 2 * (slack + 2), "{age} {within}");
            }
        }
    }
}

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// Snapshots written before there were tables of generations alone: read, going on, and written as they were but for
/// saying when parts of a window of time were last marked.
#[test]
fn snapshots_of_the_former_core_are_read() {
    for name in ["time", "grown", "late", "very-late", "count"] {
        let bytes = fs::read(golden(&format!("aged-table-eighths-{name}.bin"))).unwrap();
        let mut filter = AnyFilter::restore(&bytes).unwrap();
        if name == "count" {
            assert_eq!(filter.snapshot(), bytes, "{name}");
        } else {
            assert_eq!(filter.snapshot()[8], bytes[8] + 8, "{name}");
            assert!(AnyFilter::restore(&filter.snapshot()).unwrap() == filter, "{name}");
        }
        let late = filter.plan().lateness() > 0;
        // The last of 150 keys, each with one seen before.
        let last = Tick(5_000 + 149 * 5);
        let known = (0..150).filter(|&n| filter.contains(key(n), last)).count();
        assert!(known >= if late { 60 } else { 12 }, "{name} {known}");
        for n in 200..2_000 {
            let now = Tick(last.0 + n * 7);
            let _ = filter.observe(key(n), now);
            if filter.overload().refused < 100 && name != "time" {
                assert!(filter.contains(key(n), Tick(now.0)), "{name} {n}");
            }
        }
        let again = AnyFilter::restore(&filter.snapshot()).unwrap();
        assert_eq!(again.snapshot(), filter.snapshot(), "{name}");
    }
}

/// Snapshots of tables of generations alone are pinned.
#[test]
fn the_bytes_of_generations_are_the_golden_ones() {
    let of = |window| spec(window).fpr(0.01).seed(7).when_full(WhenFull::Refuse);
    let filters = [
        ("time", of(time(600, 60)).slack(75)),
        ("rate", of(count(100)).slack(12).fpr(1e-4).renewal(Renewal::OnFresh)),
        ("late", of(time(600, 60)).slack(300).lateness(600)),
        ("very-late", of(time(600, 60)).slack(300).lateness(2_000)),
    ];
    for (name, spec) in filters {
        let mut filter = spec.plan().unwrap().build();
        for n in 0..150u64 {
            let at = 5_000 + n * 5;
            let _ = filter.observe(key(n), Tick(at));
            let _ = filter.observe(key(n / 3), Tick(at));
        }
        let bytes = filter.snapshot();
        let path = golden(&format!("aged-table-generations-{name}.bin"));
        if std::env::var_os("LATELY_BLESS").is_some() {
            fs::write(&path, &bytes).unwrap();
        }
        assert_eq!(bytes, fs::read(&path).unwrap(), "{name}");
        assert_eq!(AnyFilter::restore(&bytes).unwrap().snapshot(), bytes);
    }
}

/// Late arrivals once went behind others of their generation: that order is read, kept, and answers alike.
#[test]
fn entries_of_a_generation_may_be_in_any_order() {
    let read = |name| AnyFilter::restore(&fs::read(golden(name)).unwrap()).unwrap();
    let mut former = read("aged-table-generations-late-in-another-order.bin");
    let mut now = read("aged-table-generations-late.bin");
    assert_ne!(former.snapshot(), now.snapshot());
    let newest = 5_000 + 149 * 5;
    let known = |filter: &AnyFilter, tick| {
        (0..200).map(|n| filter.contains(key(n), Tick(tick))).collect::<Vec<_>>()
    };
    for tick in (newest - 600..newest + 1_200).step_by(50) {
        assert_eq!(known(&former, tick), known(&now, tick), "{tick}");
    }
    for n in 200..500 {
        let tick = Tick(newest + n / 10);
        assert_eq!(former.observe(key(n / 2), tick), now.observe(key(n / 2), tick), "{n}");
    }
}

/// In batches, with ticks of their own that cross generations: the verdicts and the bytes of one by one.
#[test]
fn a_batch_with_ticks_of_its_own_is_its_arrivals_one_by_one() {
    for (window, slack) in [(time(1_000, 3_000), 60), (count(3_000), 200), (time(50, 2_000), 6)] {
        for when_full in [WhenFull::Grow, WhenFull::Refuse] {
            let plan = spec(window).fpr(1e-3).slack(slack).when_full(when_full).plan().unwrap();
            let (mut one_by_one, mut batches) = (plan.build(), plan.build());
            let (mut chance, mut now) = (Chance(slack), 0);
            for round in 0..300u64 {
                let len = chance.below(200) as usize;
                let mut digests = Vec::new();
                let mut ticks = Vec::new();
                for _ in 0..len {
                    now += if chance.below(10) == 0 { chance.below(20) } else { 0 };
                    digests.push(key(chance.below(3_000 + 20 * round)));
                    ticks.push(Tick(now.saturating_sub(chance.below(3))));
                }
                let mut verdicts = vec![Verdict::Fresh; len];
                batches.observe_batch(&digests, &ticks, &mut verdicts);
                let expected: Vec<_> =
                    digests.iter().zip(&ticks).map(|(&d, &t)| one_by_one.observe(d, t)).collect();
                assert_eq!(verdicts, expected);
                assert_eq!(batches.snapshot(), one_by_one.snapshot());
                let mut found = vec![false; len];
                batches.contains_batch(&digests, Tick(now), &mut found);
                let expected: Vec<_> =
                    digests.iter().map(|&d| one_by_one.contains(d, Tick(now))).collect();
                assert_eq!(found, expected);
            }
        }
    }
}

/// A table of a size of its own: its rate is its formula, with generations alone.
#[test]
fn the_rate_with_generations_is_the_formula() {
    for (n, lines, bits) in [(2_000u64, 110u64, 16u32), (5_000, 220, 17), (3_000, 200, 20)] {
        let keeps = Keeps { grain: n.div_ceil(18), ..Keeps::exactly(count(n)) };
        let mut filter = AgedTable::new(keeps, lines, bits).unwrap();
        let mut arrival = 0;
        let mut chance = Chance(n);
        let (mut wrong, mut asked, mut held) = (0u64, 0u64, 0.0);
        for round in 0..60 {
            for _ in 0..n / 2 {
                arrival += 1;
                let _ = filter.observe(key(arrival), Tick(arrival));
            }
            if round < 10 {
                continue;
            }
            let entries = filter.fill() * (lines * u64::from((464 / bits).min(29))) as f64;
            for _ in 0..20_000 {
                let stranger = lately::Digest::new(chance.next(), chance.next());
                wrong += u64::from(filter.contains(stranger, Tick(arrival)));
                asked += 1;
            }
            held += 20_000.0 * 2.0 * (entries + filter.stashed() as f64) / lines as f64;
        }
        let mean = held * 0.5f64.powi(bits as i32);
        let spread = 5.0 * mean.sqrt() + 0.02 * mean + 1.0;
        assert!((wrong as f64 - mean).abs() <= spread, "{n} {bits}: {wrong} {mean} of {asked}");
    }
}
