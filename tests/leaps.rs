//! The guard that a spec puts before its filter: single moments far ahead change nothing.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use lately::{
    AnyFilter, Digest, Filter, LastSeen, Merge, Spec, Structure, Tick, Verdict, Window,
    WindowFilter,
};
use support::{Chance, key};

const MOST: u64 = 5_000;

/// Every structure over a window of time, planned without and with a guard.
fn specs() -> impl Iterator<Item = Spec> {
    let window = Window::time(1_000, 300);
    let keeps = move |structure: &&Structure| structure.keeps(window) && !structure.is_unbounded();
    Structure::ALL.iter().filter(keeps).flat_map(move |&structure| {
        let spec = Spec::new(window).structure(structure).fpr(1e-6).slack(125);
        let late = structure.takes_late_arrivals().then(|| spec.lateness(400));
        [Some(spec), late].into_iter().flatten()
    })
}

/// Arrivals in order, some of them late; every twentieth moment is followed by a wild one.
fn arrivals() -> Vec<(Digest, Tick, bool)> {
    let (mut chance, mut now, mut arrivals) = (Chance(3), 10_000u64, Vec::new());
    for at in 0..4_000u64 {
        now += chance.below(8);
        // The one after a wild moment is not late, so that the next wild one does not confirm it.
        let late = if at % 20 == 8 { 0 } else { chance.below(300) };
        arrivals.push((key(chance.below(400)), Tick(now - late), false));
        if at % 20 == 7 {
            let ahead = [MOST + 301, 1 << 30, 1 << 50, u64::MAX - now][chance.below(4) as usize];
            arrivals.push((key(1 << 32 | at), Tick(now + ahead), true));
        }
    }
    arrivals
}

/// The verdicts on the arrivals that are not wild.
fn verdicts(
    filter: &mut AnyFilter,
    arrivals: &[(Digest, Tick, bool)],
    batch: usize,
) -> Vec<Verdict> {
    let mut all = Vec::new();
    for arrivals in arrivals.chunks(batch) {
        let digests: Vec<_> = arrivals.iter().map(|arrival| arrival.0).collect();
        let moments: Vec<_> = arrivals.iter().map(|arrival| arrival.1).collect();
        let mut judged = vec![Verdict::Fresh; arrivals.len()];
        if batch == 1 {
            judged[0] = filter.observe(digests[0], moments[0]);
        } else {
            filter.observe_batch(&digests, &moments, &mut judged);
        }
        let tame = arrivals.iter().zip(judged).filter(|(arrival, _)| !arrival.2);
        all.extend(tame.map(|(_, verdict)| verdict));
    }
    all
}

/// With a guard the verdicts are those of a stream without wild moments, one by one and in batches; without it
/// they are not.
#[test]
fn single_wild_moments_change_no_other_verdict() {
    let arrivals = arrivals();
    let tame: Vec<_> = arrivals.iter().filter(|arrival| !arrival.2).copied().collect();
    for spec in specs() {
        let build = |spec: Spec| spec.plan().unwrap().build();
        let expected = verdicts(&mut build(spec), &tame, 1);
        for batch in [1, 7, 600] {
            let guarded = verdicts(&mut build(spec.most_leap(MOST)), &arrivals, batch);
            assert!(guarded == expected, "{spec:?}, batches of {batch}");
            let frozen = verdicts(&mut build(spec), &arrivals, batch);
            assert!(frozen != expected, "{spec:?}, batches of {batch}");
        }
    }
}

/// A pause of the whole stream: the second arrival confirms it.
#[test]
fn a_second_moment_confirms_a_leap() {
    for spec in specs() {
        let mut seen = spec.most_leap(MOST).plan().unwrap().build();
        assert_eq!(seen.observe(key(1), Tick(10_000)), Verdict::Fresh);
        assert_eq!(seen.observe(key(1), Tick(90_000)), Verdict::Duplicate, "doubted: {spec:?}");
        assert_eq!(seen.observe(key(2), Tick(90_001)), Verdict::Fresh, "{spec:?}");
        assert!(!seen.contains(key(1), Tick(90_001)), "time has moved on: {spec:?}");
        // Remembering counts as an arrival, letting time pass is believed.
        seen.remember(key(3), Tick(1 << 40));
        assert!(seen.last_seen(key(3), Tick(90_001)).unwrap().to <= Tick(90_001), "{spec:?}");
        seen.advance(Tick(1 << 40));
        assert!(!seen.contains(key(3), Tick(1 << 40)), "{spec:?}");
        assert_eq!(seen.observe(key(4), Tick((1 << 40) + 1)), Verdict::Fresh);
    }
}

/// What is doubted is saved too; clearing forgets it.
#[test]
fn a_guard_is_saved_cleared_and_merged() {
    for spec in specs() {
        let plan = spec.most_leap(MOST).plan().unwrap();
        let mut seen = plan.build();
        let _ = seen.observe(key(1), Tick(10_000));
        let _ = seen.observe(key(2), Tick(90_000));
        let mut restored = AnyFilter::restore(&seen.snapshot()).unwrap();
        assert!(restored == seen && restored.plan().most_leap() == Some(MOST));
        let _ = restored.observe(key(3), Tick(90_001));
        assert!(!restored.contains(key(1), Tick(90_001)), "confirmed after a restart: {spec:?}");
        if spec.plan().unwrap().lateness() == 0 {
            let mut other = plan.build();
            other.merge(&restored).unwrap();
            assert_eq!(other.observe(key(3), Tick(90_002)), Verdict::Duplicate, "{spec:?}");
            assert_eq!(other.observe(key(4), Tick(1 << 50)), Verdict::Fresh);
            assert_eq!(other.observe(key(3), Tick(90_003)), Verdict::Duplicate, "{spec:?}");
        }
        seen.clear();
        assert!(seen == plan.build(), "{spec:?}");
        let _ = seen.observe(key(5), Tick(1 << 41));
        assert!(seen.contains(key(5), Tick(1 << 41)), "the first moment is believed: {spec:?}");
    }
}

/// Windows of arrivals have no use for it, and keep what they were asked for.
#[test]
fn windows_of_arrivals_go_without() {
    let mut seen = Spec::new(Window::count(10)).most_leap(5).plan().unwrap().build();
    assert_eq!(seen.plan().most_leap(), None);
    for n in 0..30 {
        assert_eq!(seen.observe(key(n), Tick(n << 40)), Verdict::Fresh);
    }
    assert!(AnyFilter::restore(&seen.snapshot()).unwrap() == seen);
}

/// Threads share guarded shards.
#[cfg(feature = "std")]
#[test]
fn a_shared_filter_guards_each_shard() {
    let spec = Spec::new(Window::time(1_000, 300)).most_leap(MOST);
    let seen = lately::Shared::new(spec, 4).unwrap();
    for n in 0..100 {
        let _ = seen.observe(key(n), Tick(500));
    }
    let _ = seen.observe(key(1 << 32), Tick(u64::MAX));
    for n in 0..100 {
        assert_eq!(seen.observe(key(n), Tick(600)), Verdict::Duplicate);
        assert!(seen.contains(key(n), Tick(1_600)));
    }
}

/// The shards of a shared window of arrivals count by the numbers of all arrivals, among which there are no leaps.
#[test]
fn a_shared_window_of_arrivals_has_no_guard() {
    for shards in [1, 16] {
        let spec = Spec::new(Window::count(1_000)).most_leap(0);
        let seen = lately::Shared::new(spec, shards).unwrap();
        let key = |at: u64| seen.digester().digest(&at.to_le_bytes());
        for at in 0..5_000 {
            let _ = seen.observe(key(at), Tick(0));
            assert!(
                seen.contains(key(at), Tick(0))
                    && seen.contains(key(at.saturating_sub(900)), Tick(0))
            );
        }
        assert!(!seen.contains(key(0), Tick(0)));
    }
}
