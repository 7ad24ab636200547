//! The laws of the windows at scale: up to 1e5 keys, over many turns of the stamps, in tables as they
//! are planned, for keys that an adversary chose. Tables of other sizes are in `slots.rs`.
//!
//! `LATELY_LONG=1 cargo test -p lately --test windows` goes twenty times as far in windows of time,
//! and twice as far, under both renewals, in the largest windows.

// The helpers fail as the tests do.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "support/forge.rs"]
mod forge;
#[path = "support/pair.rs"]
mod pair;
mod support;

use lately::window::{Shape, TimingBloom};
use lately::{AnyFilter, Filter, Renewal, Spec, Structure, Tick, Window, WindowFilter};
use pair::{Keys, Pair, gap};
use support::{Chance, at_most, count, key, time};

const AGED: [Structure; 8] = [
    Structure::TimeBloom,
    Structure::IntervalBloom,
    Structure::IntervalBloomPlain,
    Structure::TimingBloom,
    Structure::CuckooWindow,
    Structure::DleftWindow,
    Structure::AgedTable,
    Structure::AgedBuckets,
];

/// How much longer than usual to run.
fn scale() -> u64 {
    if std::env::var_os("LATELY_LONG").is_some() { 20 } else { 1 }
}

fn planned(structure: Structure, window: Window, renewal: Renewal, fpr: f64) -> AnyFilter {
    let spec = Spec::new(window).structure(structure).renewal(renewal).fpr(fpr);
    spec.plan().unwrap().build()
}

/// Values that a stamp of this structure takes for the last `n` arrivals, at the most.
fn turn(structure: Structure, n: u64) -> u64 {
    match structure {
        Structure::TimingBloom => 1 << TimingBloom::stamp_bits(n),
        Structure::CuckooWindow | Structure::DleftWindow | Structure::AgedBuckets => {
            (n + n / 8 + 3).next_power_of_two()
        }
        // Eight generations, of which each is at most a quarter of the window.
        Structure::AgedTable => 2 * n + 8,
        _ => (3 * n + 3).next_power_of_two(),
    }
}

/// Small windows: every live key at every arrival, over four turns of the stamps and more.
#[test]
fn no_live_key_is_missed_at_any_arrival_of_a_small_window() {
    for structure in AGED {
        for n in (1..=20).chain([31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 250]) {
            for renewal in [Renewal::Always, Renewal::OnFresh] {
                let kinds = [Keys::New, Keys::Uniform, Keys::Zipf, Keys::Again];
                // The large ones take turns.
                let chosen = |i: usize| n <= 20 || i as u64 == n % 4;
                for (_, keys) in kinds.into_iter().enumerate().filter(|&(i, _)| chosen(i)) {
                    let filter = planned(structure, count(n), renewal, 1e-6);
                    let mut pair = Pair::new(filter, renewal, &key);
                    let arrivals = 4 * turn(structure, n) + n;
                    pair.run_counting(keys, n, arrivals, arrivals);
                }
            }
        }
    }
}

/// Large windows at their planned size, full for ever: at each arrival the key exactly `n` ago, the
/// one after it, a random one between and the arriving one; all of them now and then.
fn large_windows(structure: Structure) {
    for (n, keys) in [
        (1_000, Keys::New),
        (1_000, Keys::Zipf),
        (1_023, Keys::Again),
        (10_000, Keys::Uniform),
        (32_768, Keys::Zipf),
        (100_000, Keys::Again),
    ] {
        for renewal in [Renewal::Always, Renewal::OnFresh] {
            if renewal == Renewal::OnFresh && n > 10_000 && scale() == 1 {
                continue;
            }
            let mut pair = Pair::new(planned(structure, count(n), renewal, 1e-3), renewal, &key);
            let arrivals = (4 * turn(structure, n) + n) * scale().min(2);
            pair.run_counting(keys, n, arrivals, 20);
            let name = format!("{structure} {n} {keys:?}: {} of {}", pair.wrong, pair.strangers);
            assert!(pair.wrong as f64 <= at_most(pair.strangers, 1e-3), "{name}");
            assert!(!pair.filter.overload().any(), "{name}");
        }
    }
}

#[test]
fn a_time_bloom_misses_no_live_key_at_scale() {
    large_windows(Structure::TimeBloom);
}

#[test]
fn an_interval_bloom_misses_no_live_key_at_scale() {
    large_windows(Structure::IntervalBloom);
}

#[test]
fn a_plain_interval_bloom_misses_no_live_key_at_scale() {
    large_windows(Structure::IntervalBloomPlain);
}

#[test]
fn a_timing_bloom_misses_no_live_key_at_scale() {
    large_windows(Structure::TimingBloom);
}

#[test]
fn a_cuckoo_window_misses_no_live_key_at_scale() {
    large_windows(Structure::CuckooWindow);
}

#[test]
fn a_dleft_window_misses_no_live_key_at_scale() {
    large_windows(Structure::DleftWindow);
}

#[test]
fn an_aged_table_misses_no_live_key_at_scale() {
    large_windows(Structure::AgedTable);
}

#[test]
fn aged_buckets_miss_no_live_key_at_scale() {
    large_windows(Structure::AgedBuckets);
}

/// With as much slack as the narrowest entries need: at the edge of the window, over twenty turns.
#[test]
fn windows_with_slack_miss_no_live_key_at_scale() {
    for structure in [Structure::AgedTable, Structure::AgedBuckets] {
        for (n, share, keys) in [
            (1_000, 8, Keys::New),
            (1_003, 8, Keys::Again),
            (1_000, 1, Keys::Again),
            (999, 30, Keys::Zipf),
            (10_000, 8, Keys::Uniform),
            (20_000, 9, Keys::Again),
            (20_000, 1_000, Keys::Again),
        ] {
            let spec = Spec::new(count(n)).structure(structure).fpr(1e-3).slack(n / share);
            let mut pair = Pair::new(spec.plan().unwrap().build(), Renewal::Always, &key);
            pair.run_counting(keys, n, (20 * n + n / 2) * scale().min(2), 20);
            let name = format!("{structure} {n} {keys:?}: {} of {}", pair.wrong, pair.strangers);
            assert!(pair.wrong as f64 <= at_most(pair.strangers, 1e-3), "{name}");
            assert!(!pair.filter.overload().any(), "{name}");
        }
    }
}

/// Windows of arrivals of which many count as one moment: small ones in full, over 4 turns and more.
#[test]
fn no_live_key_is_missed_where_a_moment_is_many_arrivals() {
    let structures = AGED.into_iter().filter(|&structure| structure != Structure::TimingBloom);
    for (structure, renewal) in
        structures.flat_map(|s| [(s, Renewal::Always), (s, Renewal::OnFresh)])
    {
        for n in (1..=20).chain([63, 64, 65, 100, 2_000]) {
            for (slack, keys) in [(n / 8, Keys::Again), (n / 3, Keys::Zipf), (2 * n, Keys::Uniform)]
            {
                let spec = Spec::new(count(n)).structure(structure).renewal(renewal);
                let plan = spec.slack(slack).fpr(1e-6).plan().unwrap();
                assert!(plan.slack() <= slack, "{structure} {n}: {}", plan.slack());
                let mut pair = Pair::new(plan.build(), renewal, &key);
                // Eight generations are at least eight grains, which here may each be a window's.
                let turn = (3 * n + 3).next_power_of_two().max(8 * (plan.slack() + 1));
                let asked = if n < 1_000 { u64::MAX } else { 40 };
                let turns = if n < 1_000 || slack < n { 4 * turn } else { turn };
                pair.run_counting(keys, n, turns + n, asked.min(turns));
                assert!(!pair.filter.overload().any(), "{structure} {n} {slack}");
            }
        }
    }
}

/// Windows of time, whatever the gaps: every live key of small ones at every arrival, and over so
/// many turns of the stamps.
#[test]
fn no_live_key_is_missed_in_a_window_of_time() {
    let structures = AGED.into_iter().filter(|&structure| structure != Structure::TimingBloom);
    for (structure, renewal) in
        structures.flat_map(|s| [(s, Renewal::Always), (s, Renewal::OnFresh)])
    {
        for (span, slack, capacity) in [
            (1, 0, 20),
            (7, 0, 20),
            (8, 0, 40),
            (16, 0, 50),
            (63, 0, 60),
            (64, 0, 60),
            (64, 7, 60),
            (100, 30, 60),
            (1_000, 0, 100),
            (1_000, 1_000, 100),
            (1_000_003, 5_000, 200),
            (100_000, 0, 20_000),
        ] {
            let spec = Spec::new(time(span, capacity)).structure(structure).renewal(renewal);
            let plan = spec.slack(slack).fpr(1e-6).plan().unwrap();
            let mut pair = Pair::new(plan.build(), renewal, &key);
            let arrivals = if capacity > 1_000 { 60_000 } else { 1_500 } * scale();
            let (mut chance, mut now) = (Chance(span + slack), 0);
            for at in 0..arrivals {
                now += match capacity {
                    // Gaps for so many keys a window, with pauses now and then.
                    20_000 if chance.below(2_000) > 0 => chance.below(10),
                    _ => gap(&mut chance, span, plan.slack() + 1),
                };
                let keys = if chance.below(2) == 0 { capacity / 4 + 1 } else { 3 * capacity };
                let n = chance.below(keys);
                pair.arrive(n, Tick(now));
                if capacity < 1_000 || at % 2_000 == 0 {
                    pair.ask_all(Tick(now));
                }
            }
            let overload = pair.filter.overload();
            assert_eq!(overload.forgotten + overload.refused, 0, "{structure} {span}");
        }
    }
}

/// A planned filter of the last n arrivals withstands the same keys: its stash takes them all.
#[test]
fn an_adversary_cannot_make_a_planned_count_window_forget() {
    let n = 500;
    for structure in AGED {
        let plan = Spec::new(count(n)).structure(structure).fpr(1e-6).plan().unwrap();
        let forged = match structure {
            Structure::AgedTable | Structure::AgedBuckets => forge::for_plan(2_000, &plan),
            _ => (0..2_000).map(|salt| forge::with_positions(1 << 62, 3 << 61, salt)).collect(),
        };
        let digest = |n: u64| forged[n as usize % forged.len()];
        let mut pair = Pair::new(plan.build(), Renewal::Always, &digest);
        pair.run_counting(Keys::Again, n, 6 * n, 60);
        assert!(!pair.filter.overload().any(), "{structure}");
        // Of slots, a few are wanted by all, so that the stash has grown.
        let grows = matches!(structure, Structure::AgedTable | Structure::AgedBuckets);
        assert!(!grows || pair.filter.memory() as u64 > plan.memory(), "{structure}");
    }
}

/// Nor can it make a filter take more memory than was allowed: what finds no room is counted.
#[test]
fn an_adversary_cannot_make_a_count_window_pass_its_memory_limit() {
    let n = 500;
    for structure in [Structure::AgedTable, Structure::AgedBuckets] {
        let spec = Spec::new(count(n)).structure(structure).fpr(1e-6);
        let table = spec.plan().unwrap().memory();
        for limit in [table, table + 1_000, table + 20_000, 2 * table, 100 * table] {
            let plan = spec.memory(limit).plan().unwrap();
            let forged = forge::for_plan(2_000, &plan);
            let mut filter = plan.build();
            for arrival in 0..6 * n {
                let _ = filter.observe(forged[arrival as usize % forged.len()], Tick(0));
                assert!(filter.memory() as u64 <= limit, "{structure} {limit} {}", filter.memory());
            }
            // Room for all keys, and as much again while the list grows.
            let enough = limit >= table + 2 * 32 * n;
            assert_eq!(filter.overload().any(), !enough, "{structure} {limit}");
        }
    }
}

/// A Timing Bloom filter of a size of one's own against the formula of Bloom filters.
#[test]
fn the_rate_of_a_timing_bloom_filter_is_its_formula() {
    for (cells, hashes) in [(5_000, 4), (10_000, 4), (20_000, 7), (10_000, 1)] {
        let renewal = Renewal::Always;
        let shape =
            Shape { cells, hashes, span: 1_000, grain: 1, lateness: 0, capacity: 1_000, renewal };
        let mut filter = TimingBloom::new(shape).unwrap();
        let (mut wrong, mut asked) = (0u64, 0u64);
        for at in 0..40_000 {
            let _ = filter.observe(key(at), Tick(0));
            if at >= 2_000 && at % 100 == 0 {
                for _ in 0..1_000 {
                    wrong += u64::from(filter.contains(key(1 << 50 | asked), Tick(0)));
                    asked += 1;
                }
            }
        }
        let mean = asked as f64 * lately::plan::bloom_fpr(cells, hashes, 1_000.0);
        // Windows differ in their fill.
        let spread = 5.0 * mean.sqrt() + 0.05 * mean;
        assert!((wrong as f64 - mean).abs() <= spread, "{cells} {hashes}: {wrong}, {mean}");
    }
}
