//! The filter that threads share, against a single one and against exact counts.
#![cfg(feature = "std")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use lately::{Filter, Shared, Spec, Tick, Verdict, WhenFull, Window, WindowFilter};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use support::{Chance, key};

/// One thread after the other: every key of the window is found, whichever shard it is in.
#[test]
fn a_shared_filter_has_no_false_negative() {
    for (window, span) in [
        (Window::count(700), 700),
        (Window::time(700, 500), 700),
        (Window::unbounded(3_000), u64::MAX),
    ] {
        for shards in [1, 3, 16] {
            let seen = Shared::new(Spec::new(window).fpr(1e-4), shards).unwrap();
            let (mut last, mut chance, mut now) = (HashMap::new(), Chance(9), 0);
            let is_count = matches!(window, Window::Count(_));
            for _ in 0..20_000u64 {
                now += if is_count { 1 } else { chance.below(3) };
                let n = chance.below(1_500);
                let age = last.get(&n).map(|last| now - last);
                let is_live = age.is_some_and(|age| age <= span);
                assert!(!is_live || seen.contains(key(n), Tick(now)), "{window:?} {shards}");
                let verdict = seen.observe(key(n), Tick(now));
                assert!(!is_live || verdict.is_duplicate(), "{window:?} {shards}: {age:?}");
                last.insert(n, now);
            }
            assert_eq!((seen.overload().refused, seen.overload().forgotten), (0, 0));
        }
    }
}

/// The rate is that of one filter, and memory is within the limit.
#[test]
fn a_shared_filter_keeps_rate_and_memory() {
    let spec = Spec::new(Window::count(50_000)).fpr(1e-3).memory(1 << 20);
    let seen = Shared::new(spec, 16).unwrap();
    for n in 0..120_000 {
        let _ = seen.observe(key(n), Tick(0));
    }
    let found = (1 << 32..(1 << 32) + 100_000u64).filter(|&n| seen.contains(key(n), Tick(0)));
    let found = found.count();
    assert!(found <= 100 + 5 * 10 + 1, "{found} of 100,000");
    assert!(seen.memory() <= 1 << 20 && seen.fpr() <= 1e-3 && seen.estimated_fpr() <= 1e-3);
    assert!((50_000..60_000).contains(&seen.len()), "{}", seen.len());
    seen.clear();
    assert!(seen.is_empty() && !seen.contains(key(119_999), Tick(0)));
}

/// Many threads bring the same keys: each is fresh once, whoever brings it, one by one or in batches.
#[test]
fn a_key_is_fresh_for_one_thread_only() {
    let seen = Shared::new(Spec::new(Window::time(1 << 40, 40_000)).fpr(1e-6), 16).unwrap();
    let fresh = AtomicU64::new(0);
    thread::scope(|scope| {
        for worker in 0..4u64 {
            let (seen, fresh) = (&seen, &fresh);
            scope.spawn(move || {
                let mut chance = Chance(worker);
                for _ in 0..200 {
                    let keys: Vec<_> = (0..100).map(|_| key(chance.below(20_000))).collect();
                    let mut verdicts = vec![Verdict::Fresh; 100];
                    if worker % 2 == 0 {
                        seen.observe_batch(&keys, &[Tick(5); 100], &mut verdicts);
                    } else {
                        for (key, verdict) in keys.iter().zip(&mut verdicts) {
                            *verdict = seen.observe(*key, Tick(5));
                        }
                    }
                    let news = verdicts.iter().filter(|verdict| !verdict.is_duplicate()).count();
                    fresh.fetch_add(news as u64, Ordering::Relaxed);
                }
            });
        }
    });
    let mut distinct = std::collections::HashSet::new();
    for worker in 0..4 {
        let mut chance = Chance(worker);
        distinct.extend((0..20_000).map(|_| chance.below(20_000)));
    }
    let (fresh, distinct) = (fresh.into_inner(), distinct.len() as u64);
    assert!(fresh <= distinct && distinct - fresh <= 3, "{fresh} of {distinct}");
}

#[test]
fn a_shared_filter_is_saved_and_restored() {
    for window in [Window::count(500), Window::time(100, 500), Window::unbounded(2_000)] {
        let seen = Shared::new(Spec::new(window).fpr(1e-4).seed(3), 5).unwrap();
        for n in 0..1_000 {
            let _ = seen.observe(key(n), Tick(n / 10));
        }
        let save = |seen: &Shared| {
            let mut bytes = Vec::new();
            let sink = |part: &[u8]| {
                bytes.extend_from_slice(part);
                Ok::<_, ()>(())
            };
            seen.snapshot_to(sink).unwrap();
            bytes
        };
        let bytes = save(&seen);
        let restore = |bytes: &[u8]| {
            let mut source = bytes;
            let read = |into: &mut [u8]| std::io::Read::read(&mut source, into);
            Shared::restore_from(bytes.len() as u64, read)
        };
        let restored = restore(&bytes).unwrap();
        assert_eq!(save(&restored), bytes);
        assert_eq!((restored.shards(), restored.digester().seed()), (5, 3));
        assert_eq!(restored.window().span(), window.span());
        for n in 0..1_500 {
            assert_eq!(restored.observe(key(n), Tick(100)), seen.observe(key(n), Tick(100)), "{n}");
        }
        for at in (0..bytes.len()).step_by(97) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(restore(&damaged).is_err());
        }
    }
}

/// A batch has the verdicts of a single filter that is asked one by one.
#[test]
fn batches_are_judged_in_their_order() {
    let spec = Spec::new(Window::time(50, 300)).fpr(1e-6).when_full(WhenFull::Refuse);
    let seen = Shared::new(spec, 4).unwrap();
    let mut single =
        spec.capacity(std::num::NonZeroU64::new(1_000).unwrap()).plan().unwrap().build();
    let mut chance = Chance(4);
    for batch in 0..100u64 {
        let keys: Vec<_> = (0..64).map(|_| key(chance.below(400))).collect();
        let moments: Vec<_> = (0..64).map(|at| Tick(batch * 16 + at / 4)).collect();
        let mut verdicts = [Verdict::Fresh; 64];
        seen.observe_batch(&keys, &moments, &mut verdicts);
        for at in 0..64 {
            assert_eq!(verdicts[at], single.observe(keys[at], moments[at]), "{batch} {at}");
        }
    }
    assert!(single.estimated_fpr() <= 1e-6);
}
