//! Merged filters: what either found is found, and a merge that cannot be changes nothing.

// The helpers fail as the tests do.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "support/forge.rs"]
mod forge;
mod support;

use core::fmt::Debug;
use lately::forever::{BlockedBloom, Bloom};
use lately::window::{
    AgedBuckets, AgedTable, CuckooSize, CuckooWindow, DleftWindow, IntervalLayout, Keeps, Shape,
    TimeBloom, TimeIntervalBloom, TimingBloom,
};
use lately::{
    AnyFilter, Digest, Filter, LastSeen, Merge, MergeError, Renewal, Spec, Structure, Tick,
    WhenFull, WindowFilter,
};
use proptest::prelude::*;
use std::collections::HashMap;
use support::{Chance, at_most, count, key, time, unbounded};

/// When each key was last remembered, and the newest moment.
#[derive(Clone, Debug, Default)]
struct Known {
    last: HashMap<u64, u64>,
    newest: u64,
}

impl Known {
    fn observe(&mut self, filter: &mut impl WindowFilter, n: u64, tick: u64, renewal: Renewal) {
        let verdict = filter.observe(key(n), Tick(tick));
        self.newest = self.newest.max(tick);
        if renewal == Renewal::Always || !verdict.is_duplicate() {
            self.last.insert(n, self.newest);
        }
    }

    fn unite(&mut self, other: &Self) {
        for (&n, &last) in &other.last {
            let ours = self.last.entry(n).or_default();
            *ours = last.max(*ours);
        }
        self.newest = self.newest.max(other.newest);
    }

    fn live(&self, span: u64, now: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let last = self.last.iter().map(|(&n, &last)| (n, last));
        last.filter(move |&(_, last)| now.max(self.newest) - last <= span)
    }
}

/// What a test of a merge needs of a filter.
trait Mergeable: LastSeen + Merge + Clone + PartialEq + Debug {}
impl<F: LastSeen + Merge + Clone + PartialEq + Debug> Mergeable for F {}

/// Two filters with streams of their own, of which one may be long ahead; merged both ways, and
/// then used further.
fn check_merge<F: Mergeable>(
    empty: &F,
    streams: [&[(u64, u64)]; 2],
    starts: [u64; 2],
    renewal: Renewal,
    exact: bool,
) -> Result<(), TestCaseError> {
    let span = empty.window().span().unwrap_or(u64::MAX);
    let mut sides = [(empty.clone(), Known::default()), (empty.clone(), Known::default())];
    for (side, (stream, start)) in sides.iter_mut().zip(streams.into_iter().zip(starts)) {
        let mut now = start;
        for &(n, gap) in stream {
            now += gap;
            side.1.observe(&mut side.0, n, now, renewal);
        }
    }
    for (ours, theirs) in [(0, 1), (1, 0)] {
        let (mut merged, mut known) = sides[ours].clone();
        let (other, others) = &sides[theirs];
        merged.merge(other).unwrap();
        known.unite(others);
        for later in [0, 1, span.min(1 << 40) / 2, span.min(1 << 40)] {
            let now = known.newest + later;
            for (n, last) in known.live(span, now) {
                prop_assert!(merged.contains(key(n), Tick(now)), "{n} of {last} at {now}");
                prop_assert!(merged.contains_within(key(n), now - last, Tick(now)));
                let seen = merged.last_seen(key(n), Tick(now)).unwrap();
                prop_assert!(
                    !exact || (seen.from.0..=seen.to.0).contains(&last),
                    "{seen:?} {last}"
                );
            }
            // False positives too: all that either found.
            for n in 0..400 {
                let either = sides.iter().any(|(filter, _)| filter.contains(key(n), Tick(now)));
                prop_assert!(!either || merged.contains(key(n), Tick(now)), "{n}");
            }
        }
        // Twice is no more than once.
        let mut again = merged.clone();
        again.merge(other).unwrap();
        for (n, _) in known.live(span, known.newest) {
            prop_assert!(again.contains(key(n), Tick(known.newest)));
        }
        // It goes on, over turns of the stamps.
        let mut now = known.newest;
        for at in 0..60u64 {
            now += span.min(1 << 40) / 7 + at % 3;
            known.observe(&mut merged, at % 9, now, renewal);
            for (n, last) in known.live(span, now) {
                prop_assert!(merged.contains(key(n), Tick(now)), "{n} of {last} at {now}");
            }
        }
    }
    Ok(())
}

fn stream() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let gap = prop_oneof![6 => 0u64..4, 2 => 0u64..30, 1 => 0u64..400];
    prop::collection::vec((0u64..60, gap), 0..120)
}

fn start() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 0u64..50, 0u64..2_000, Just(1 << 50)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    /// The structures themselves, of any size: with many false positives, and with full stashes'
    /// worth of keys.
    #[test]
    fn what_either_structure_found_is_found(
        one in stream(), two in stream(), starts in [start(), start()],
        span in 1u64..80, grain in 1u64..30, cells in 30u64..3_000, hashes in 1u32..12,
        always: bool, bits in 1u32..40,
    ) {
        let renewal = if always { Renewal::Always } else { Renewal::OnFresh };
        let shape = Shape { cells, hashes, span, grain, lateness: 0, capacity: 30, renewal };
        let streams = [one.as_slice(), two.as_slice()];
        check_merge(&TimeBloom::new(shape).unwrap(), streams, starts, renewal, true)?;
        for layout in [IntervalLayout::Plain, IntervalLayout::Compact] {
            let filter = TimeIntervalBloom::new(shape, layout).unwrap();
            check_merge(&filter, streams, starts, renewal, true)?;
        }
        let keeps = Keeps { window: time(span, 30), grain, lateness: 0, renewal, stash: 500 };
        for positions in [1, 7, 40, 200] {
            for entries_a_block in [1, 9, 64] {
                let size = CuckooSize { positions, signature_bits: bits, entries_a_block };
                let filter = CuckooWindow::new(keeps, size).unwrap();
                check_merge(&filter, streams, starts, renewal, bits > 30)?;
            }
        }
        for buckets in [1, 2, 10] {
            let filter = DleftWindow::new(keeps, buckets, bits).unwrap();
            check_merge(&filter, streams, starts, renewal, bits > 30)?;
            let filter = AgedBuckets::new(keeps, 4 * buckets, bits).unwrap();
            check_merge(&filter, streams, starts, renewal, bits > 30)?;
            let filter = AgedTable::new(keeps, buckets, 16 + bits).unwrap();
            check_merge(&filter, streams, starts, renewal, bits > 14)?;
        }
    }

    /// As planned, of every structure that can be merged.
    #[test]
    fn what_either_planned_filter_found_is_found(
        one in stream(), two in stream(), starts in [start(), start()],
        span in 1u64..80, slack in 0u64..60, always: bool, seed in 0u64..3,
    ) {
        let renewal = if always { Renewal::Always } else { Renewal::OnFresh };
        for structure in mergeable() {
            let window = if structure.is_unbounded() { unbounded(300) } else { time(span, 300) };
            if !structure.keeps(window) {
                continue;
            }
            let spec = Spec::new(window).structure(structure).slack(slack).seed(seed);
            let filter = spec.renewal(renewal).fpr(1e-7).plan().unwrap().build();
            check_merge(&filter, [&one, &two], starts, renewal, true)?;
        }
    }
}

/// Many merged into one, as for readers at many gates, each at a time of its own.
#[test]
fn many_merged_into_one_find_all_and_keep_the_rate() {
    for structure in mergeable() {
        // An entry of a d-left window cannot change its bucket, and few keys are mostly in their
        // leftmost ones: eight such tables fill these, and need twice the room.
        let keys = if structure == Structure::DleftWindow { 8_000 } else { 4_000 };
        let window = if structure.is_unbounded() { unbounded(keys) } else { time(10_000, keys) };
        if !structure.keeps(window) {
            continue;
        }
        for fpr in [1e-2, 1e-3] {
            let spec = Spec::new(window).structure(structure).fpr(fpr).when_full(WhenFull::Refuse);
            let mut sum: AnyFilter = spec.plan().unwrap().build();
            for gate in 0..8u64 {
                let mut filter = spec.plan().unwrap().build();
                for at in 0..500 {
                    let _ = filter.observe(key(gate * 1_000 + at), Tick(20_000 + gate * 700 + at));
                }
                // Restored from what another machine sent.
                sum.merge(&AnyFilter::restore(&filter.snapshot()).unwrap()).unwrap();
            }
            sum = AnyFilter::restore(&sum.snapshot()).unwrap();
            let now = Tick(20_000 + 7 * 700 + 499);
            for n in (0..8_000).filter(|n| n % 1_000 < 500) {
                assert!(sum.contains(key(n), now), "{structure} {n}");
            }
            let asked = 300_000;
            let wrong = (0..asked).filter(|n| sum.contains(key(1 << 50 | n), now)).count();
            assert!(wrong as f64 <= at_most(asked, fpr), "{structure} {fpr}: {wrong}");
            assert!(sum.estimated_fpr() <= fpr, "{structure}: {}", sum.estimated_fpr());
            assert!(!sum.overload().any(), "{structure}: {:?}", sum.overload());
        }
    }
}

/// Those that grow by themselves, and would not keep their rates.
const GROWING: [Structure; 3] =
    [Structure::DynamicBloom, Structure::ScalableBloom, Structure::AccommodativeBloom];

fn mergeable() -> impl Iterator<Item = Structure> {
    Structure::ALL.iter().copied().filter(|structure| !GROWING.contains(structure))
}

#[test]
fn structures_that_grow_by_themselves_are_refused() {
    for structure in GROWING {
        let plan = Spec::new(unbounded(100)).structure(structure).plan().unwrap();
        let (one, other) = (used(plan.build(), 50), used(plan.build(), 70));
        refuses(&one, &other, MergeError::Growing);
    }
}

/// Refused for this reason, and unchanged, on both sides.
fn refuses<F: Mergeable>(one: &F, other: &F, why: MergeError) {
    for (one, other) in [(one, other), (other, one)] {
        let mut merged = one.clone();
        assert_eq!(merged.merge(other), Err(why));
        assert!(merged == *one, "refused, and changed");
    }
}

fn used(mut filter: AnyFilter, keys: u64) -> AnyFilter {
    for n in 0..keys {
        let _ = filter.observe(key(n), Tick(n));
    }
    filter
}

#[test]
fn filters_of_different_plans_are_refused() {
    for structure in mergeable() {
        let window = if structure.is_unbounded() { unbounded(100) } else { time(500, 100) };
        if !structure.keeps(window) {
            continue;
        }
        let spec = Spec::new(window).structure(structure);
        let built = |spec: Spec| used(spec.plan().unwrap().build(), 50);
        let mut others = vec![
            spec.seed(1),
            spec.fpr(1e-3),
            spec.capacity(support::nonzero(120)),
            spec.when_full(WhenFull::Refuse),
        ];
        if !structure.is_unbounded() {
            others.push(spec.renewal(Renewal::OnFresh));
            others.push(spec.slack(100));
            others.push(Spec::new(time(501, 100)).structure(structure));
            others.push(Spec::new(count(500)).structure(structure));
        }
        let next = if structure == Structure::Bloom { 1 } else { 0 };
        others.extend(Structure::ALL.get(next).map(|&s| Spec::new(unbounded(100)).structure(s)));
        for other in others {
            if built(other).plan() == built(spec).plan() {
                continue;
            }
            refuses(&built(spec), &built(other), MergeError::Shape);
        }
    }
}

#[test]
fn structures_of_different_sizes_are_refused() {
    let shape = Shape {
        cells: 500,
        hashes: 5,
        span: 100,
        grain: 1,
        lateness: 0,
        capacity: 30,
        renewal: Renewal::Always,
    };
    for other in [
        Shape { cells: 501, ..shape },
        Shape { hashes: 6, ..shape },
        Shape { span: 101, ..shape },
        Shape { grain: 2, ..shape },
        Shape { capacity: 31, ..shape },
        Shape { renewal: Renewal::OnFresh, ..shape },
    ] {
        let built = |shape| TimeBloom::new(shape).unwrap();
        refuses(&built(shape), &built(other), MergeError::Shape);
        let built = |shape| TimeIntervalBloom::new(shape, IntervalLayout::Compact).unwrap();
        refuses(&built(shape), &built(other), MergeError::Shape);
    }
    let keeps =
        Keeps { window: time(100, 30), grain: 1, lateness: 0, renewal: Renewal::Always, stash: 10 };
    let size = CuckooSize { positions: 64, signature_bits: 9, entries_a_block: 20 };
    let cuckoo = |keeps, size| CuckooWindow::new(keeps, size).unwrap();
    for other in [
        CuckooSize { positions: 63, ..size },
        CuckooSize { signature_bits: 8, ..size },
        CuckooSize { entries_a_block: 21, ..size },
    ] {
        refuses(&cuckoo(keeps, size), &cuckoo(keeps, other), MergeError::Shape);
    }
    let dleft = |keeps, buckets, bits| DleftWindow::new(keeps, buckets, bits).unwrap();
    refuses(&dleft(keeps, 4, 20), &dleft(keeps, 5, 20), MergeError::Shape);
    refuses(&dleft(keeps, 4, 20), &dleft(keeps, 4, 21), MergeError::Shape);
    let table = |keeps, lines, bits| AgedTable::new(keeps, lines, bits).unwrap();
    refuses(&table(keeps, 4, 20), &table(keeps, 5, 20), MergeError::Shape);
    refuses(&table(keeps, 4, 20), &table(keeps, 4, 21), MergeError::Shape);
    let buckets = |keeps, buckets, bits| AgedBuckets::new(keeps, buckets, bits).unwrap();
    refuses(&buckets(keeps, 4, 20), &buckets(keeps, 5, 20), MergeError::Shape);
    refuses(&buckets(keeps, 4, 20), &buckets(keeps, 4, 21), MergeError::Shape);
    for other in [
        Keeps { window: time(101, 30), ..keeps },
        Keeps { window: time(100, 31), ..keeps },
        Keeps { grain: 2, ..keeps },
        Keeps { renewal: Renewal::OnFresh, ..keeps },
        Keeps { stash: 11, ..keeps },
    ] {
        refuses(&cuckoo(keeps, size), &cuckoo(other, size), MergeError::Shape);
        refuses(&dleft(keeps, 4, 20), &dleft(other, 4, 20), MergeError::Shape);
        refuses(&table(keeps, 4, 20), &table(other, 4, 20), MergeError::Shape);
        refuses(&buckets(keeps, 4, 20), &buckets(other, 4, 20), MergeError::Shape);
    }
    let bloom = |bits, hashes| Bloom::new(bits, hashes, 10).unwrap();
    assert_eq!(bloom(100, 3).merge(&bloom(101, 3)), Err(MergeError::Shape));
    assert_eq!(bloom(100, 3).merge(&bloom(100, 4)), Err(MergeError::Shape));
    let blocked = |blocks, rounds| BlockedBloom::new(blocks, rounds, 10).unwrap();
    assert_eq!(blocked(2, 1).merge(&blocked(3, 1)), Err(MergeError::Shape));
    assert_eq!(blocked(2, 1).merge(&blocked(2, 2)), Err(MergeError::Shape));
}

#[test]
fn windows_that_count_arrivals_are_refused() {
    for structure in mergeable().filter(|structure| structure.keeps(count(50))) {
        let spec = Spec::new(count(50)).structure(structure);
        let built = |keys| used(spec.plan().unwrap().build(), keys);
        refuses(&built(10), &built(70), MergeError::Counting);
    }
    let renewal = Renewal::Always;
    let shape =
        Shape { cells: 500, hashes: 5, span: 100, grain: 1, lateness: 0, capacity: 100, renewal };
    let built = || TimingBloom::new(shape).unwrap();
    refuses(&built(), &built(), MergeError::Counting);
    let keeps = Keeps::exactly(count(9));
    let built = || DleftWindow::new(keeps, 1, 9).unwrap();
    refuses(&built(), &built(), MergeError::Counting);
    let built = || AgedTable::new(keeps, 1, 16).unwrap();
    refuses(&built(), &built(), MergeError::Counting);
    let built = || AgedBuckets::new(keeps, 1, 9).unwrap();
    refuses(&built(), &built(), MergeError::Counting);
}

/// While several tables are there, and when time has dropped the first one and left a larger.
#[test]
fn filters_that_have_grown_are_refused() {
    for structure in mergeable() {
        let window = if structure.is_unbounded() { unbounded(100) } else { time(500, 100) };
        if !structure.keeps(window) {
            continue;
        }
        let spec = Spec::new(window).structure(structure).fpr(1e-3);
        let small = used(spec.plan().unwrap().build(), 20);
        let mut grown = spec.plan().unwrap().build();
        let mut n = 0;
        while grown.tables() == 1 {
            n += 1;
            let _ = grown.observe(key(n), Tick(5));
        }
        refuses(&small, &grown, MergeError::Grown);
        if structure.is_unbounded() {
            continue;
        }
        // Time drops the older table.
        for at in 0..2_000 {
            let _ = grown.observe(key((1 << 41) + at % 150), Tick(10 + at));
        }
        assert_eq!(grown.tables(), 1, "{structure}");
        refuses(&small, &grown, MergeError::Grown);
    }
}

/// Where the sum does not fit nothing changes; where the stash takes it, it does.
#[test]
fn a_sum_that_does_not_fit_is_refused() {
    // All want the same slots: 32 of them in a d-left window, two in a cuckoo window.
    let forged = forge::colliding(100, 4, 5);
    let keeps =
        Keeps { window: time(100, 30), grain: 1, lateness: 0, renewal: Renewal::Always, stash: 10 };
    let size = CuckooSize { positions: 64, signature_bits: 40, entries_a_block: 64 };
    let fill = |filter: &mut dyn WindowFilter, keys: core::ops::Range<usize>| {
        for &digest in &forged[keys] {
            let _ = filter.observe(digest, Tick(7));
        }
    };
    let dleft = |keys| {
        let mut filter = DleftWindow::new(keeps, 5, 40).unwrap();
        fill(&mut filter, keys);
        filter
    };
    refuses(&dleft(0..30), &dleft(30..60), MergeError::Full);
    let cuckoo = |keys| {
        let mut filter = CuckooWindow::new(keeps, size).unwrap();
        fill(&mut filter, keys);
        filter
    };
    refuses(&cuckoo(0..8), &cuckoo(8..16), MergeError::Full);
    // Twelve fit: two and the stash. The same keys twice are one.
    let (mut sum, other) = (cuckoo(0..7), cuckoo(5..12));
    sum.merge(&other).unwrap();
    assert_eq!((sum.stashed(), sum.overload().refused), (10, 0));
    assert!(forged[..12].iter().all(|&digest| sum.contains(digest, Tick(107))));
    // What has expired takes no room.
    let mut later = cuckoo(0..1);
    later.advance(Tick(108));
    later.merge(&cuckoo(0..12)).unwrap();
    assert!((0..12).all(|at| !later.contains(forged[at], Tick(108))) && later.stashed() == 0);
}

/// The same of aged tables, which can move nothing: each of the keys has the same two lines.
#[test]
fn a_sum_that_does_not_fit_into_two_lines_is_refused() {
    let keeps =
        Keeps { window: time(100, 30), grain: 1, lateness: 0, renewal: Renewal::Always, stash: 10 };
    let forged = forge::sharing(60, 5, 40);
    // Twenty slots and the stash; eight and the stash.
    check_sums(&AgedTable::new(keeps, 5, 40).unwrap(), &forged, 30);
    check_sums(&AgedBuckets::new(keeps, 5, 40).unwrap(), &forged, 18);
}

fn check_sums<F: Mergeable>(empty: &F, forged: &[Digest], room: usize) {
    let filled = |keys: &[Digest], tick| {
        let mut filter = empty.clone();
        for &digest in keys {
            let _ = filter.observe(digest, Tick(tick));
        }
        filter
    };
    let halves = forged.split_at(room);
    refuses(&filled(halves.0, 7), &filled(&halves.1[..1], 7), MergeError::Full);
    refuses(&filled(halves.0, 7), &filled(&halves.1[..1], 90), MergeError::Full);
    // The same keys twice are one; the later moment counts.
    let mut sum = filled(&forged[..room - 3], 7);
    sum.merge(&filled(&forged[4..room], 50)).unwrap();
    let found = |at: usize, tick| sum.contains(forged[at], Tick(tick));
    assert!((0..room).all(|at| found(at, 107)));
    assert!((0..room).all(|at| found(at, 150) == (at >= 4)));
    // What has expired takes no room.
    let mut later = filled(&forged[..room], 7);
    later.merge(&filled(&forged[room..room + 5], 108)).unwrap();
    assert!((0..room + 5).all(|at| later.contains(forged[at], Tick(108)) == (at >= room)));
}

/// Two halves make a whole: of keys as many as were planned for, whoever had them.
#[test]
fn two_halves_of_the_planned_keys_fit_into_one() {
    for structure in mergeable() {
        for keys in [100, 1_000, 20_000] {
            let window = if structure.is_unbounded() { unbounded(keys) } else { time(keys, keys) };
            if !structure.keeps(window) {
                continue;
            }
            let spec = Spec::new(window).structure(structure).when_full(WhenFull::Refuse);
            for round in 0..10 {
                let mut halves = [0, 1].map(|_| spec.plan().unwrap().build());
                for at in 0..keys {
                    let _ = halves[at as usize % 2].observe(key(round << 32 | at), Tick(at));
                }
                let [mut sum, other] = halves;
                assert_eq!(sum.merge(&other), Ok(()), "{structure} {keys}");
                assert!((0..keys).all(|at| sum.contains(key(round << 32 | at), Tick(keys))));
            }
        }
    }
}

/// Fuller and fuller: a growing filter goes on growing after a merge, and loses nothing.
#[test]
fn a_filter_that_a_merge_has_filled_grows_on() {
    for structure in mergeable() {
        let window = if structure.is_unbounded() { unbounded(500) } else { time(5_000, 500) };
        if !structure.keeps(window) {
            continue;
        }
        let spec = Spec::new(window).structure(structure);
        let mut filters = [0, 1].map(|_| spec.plan().unwrap().build());
        let mut chance = Chance(3);
        for at in 0..560u64 {
            let _ = filters[chance.below(2) as usize].observe(key(at), Tick(at));
        }
        let [mut sum, other] = filters;
        assert!(!sum.overload().any(), "{structure}");
        sum.merge(&other).unwrap();
        for at in 560..3_000u64 {
            let _ = sum.observe(key(at), Tick(at));
            if at % 100 == 0 {
                assert!((0..=at).all(|n| sum.contains(key(n), Tick(at))), "{structure} {at}");
            }
        }
        let overload = sum.overload();
        assert!(overload.grown > 0 && overload.refused + overload.forgotten == 0, "{structure}");
    }
}
