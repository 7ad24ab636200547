//! The laws of the windows at scale: up to 1e5 keys, over many turns of the stamps, in tables that
//! are full and far too small, for keys that an adversary chose.
//!
//! `LATELY_LONG=1 cargo test -p lately --test windows` goes twenty times as far in windows of time
//! and in what is asked of rates, and twice as far, under both renewals, in the largest windows.

// The helpers fail as the tests do.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "support/forge.rs"]
mod forge;
mod support;

use lately::window::{
    AgedBuckets, AgedTable, CuckooSize, CuckooWindow, DleftWindow, Keeps, Shape, TimingBloom,
};
use lately::{
    AnyFilter, Digest, Filter, LastSeen, Overload, Renewal, Spec, Structure, Tick, WhenFull,
    Window, WindowFilter,
};
use support::{Chance, Oracle, at_most, count, key, time};

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

/// A whole number with 1/i as the chance of i, nearly: Zipf's law with exponent 1.
fn zipf(chance: &mut Chance, keys: u64) -> u64 {
    let uniform = (chance.next() >> 11) as f64 / (1u64 << 53) as f64;
    (keys as f64).powf(uniform) as u64 - 1
}

/// Where the keys of a stream come from.
#[derive(Clone, Copy, Debug)]
enum Keys {
    /// Every arrival another key.
    New,
    /// Twice as many keys as the window has arrivals, all as frequent.
    Uniform,
    /// Ten times as many, by Zipf's law.
    Zipf,
    /// New keys, and as many that come again at any age up to the window's, and at its ends.
    Again,
}

/// A filter beside its oracle, with the arrivals in order.
struct Pair<'a, F> {
    filter: F,
    oracle: Oracle,
    digest: &'a dyn Fn(u64) -> Digest,
    /// Key numbers, and the arrival in the window's unit.
    arrivals: Vec<(u64, u64)>,
    chance: Chance,
    /// Arrivals that were judged duplicates though they could not be.
    wrong: u64,
    strangers: u64,
}

impl<'a, F: LastSeen> Pair<'a, F> {
    fn new(filter: F, renewal: Renewal, digest: &'a dyn Fn(u64) -> Digest) -> Self {
        let oracle = Oracle::new(filter.window(), renewal);
        let (arrivals, chance) = (Vec::new(), Chance(filter.memory() as u64));
        Self { filter, oracle, digest, arrivals, chance, wrong: 0, strangers: 0 }
    }

    fn next_key(&mut self, keys: Keys, n: u64) -> u64 {
        let at = self.arrivals.len() as u64;
        match keys {
            Keys::New => at,
            Keys::Uniform => self.chance.below(2 * n),
            Keys::Zipf => zipf(&mut self.chance, 10 * n),
            Keys::Again if at < n || self.chance.below(2) == 0 => at,
            Keys::Again => {
                let back = match self.chance.below(4) {
                    0 => n,
                    1 => n + 1,
                    _ => 1 + self.chance.below(n),
                };
                self.arrivals[(at.saturating_sub(back)) as usize].0
            }
        }
    }

    fn must_find(&self, n: u64, tick: Tick) {
        if self.oracle.is_live(n, tick) {
            let found = self.filter.contains((self.digest)(n), tick);
            assert!(found, "key {n} of age {:?} at {tick:?}", self.oracle.age(n, tick));
        }
    }

    /// One arrival: those at the edge of the window, one within, and the arriving one are asked for.
    fn arrive(&mut self, n: u64, tick: Tick) {
        let edge = match self.filter.window() {
            Window::Count(n) => self.arrivals.len().saturating_sub(n.get() as usize),
            _ => {
                let reach = self.filter.window().span().unwrap_or(0);
                self.arrivals.partition_point(|&(_, at)| at.saturating_add(reach) < tick.0)
            }
        };
        let within = (self.arrivals.len() - edge).max(1) as u64;
        for at in [edge, edge + 1, edge + self.chance.below(within) as usize] {
            if let Some(&(n, _)) = self.arrivals.get(at) {
                self.must_find(n, tick);
            }
        }
        let (live, known) =
            (self.oracle.is_live(n, tick), self.oracle.may_be_found(n, tick, self.filter.slack()));
        let verdict = self.filter.observe((self.digest)(n), tick);
        assert!(!live || verdict.is_duplicate(), "{n} of {:?}", self.oracle.age(n, tick));
        self.strangers += u64::from(!known);
        self.wrong += u64::from(!known && verdict.is_duplicate());
        self.oracle.observe(n, tick, verdict);
        let moment = if matches!(self.filter.window(), Window::Count(_)) {
            self.arrivals.len() as u64 + 1
        } else {
            tick.0
        };
        self.arrivals.push((n, moment));
    }

    fn ask_all(&mut self, tick: Tick) {
        self.oracle.forget_expired(self.filter.slack());
        for n in self.oracle.live(tick) {
            self.must_find(n, tick);
        }
    }

    /// So many arrivals of a window of the last `n`; all live keys are asked for `asked` times.
    fn run_counting(&mut self, keys: Keys, n: u64, arrivals: u64, asked: u64) {
        let every = (arrivals / asked).max(1);
        for at in 0..arrivals {
            let next = self.next_key(keys, n);
            self.arrive(next, Tick(0));
            if at % every == every - 1 {
                self.ask_all(Tick(0));
            }
        }
    }
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
            assert!(!pair.filter.overload().happened(), "{name}");
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
            assert!(!pair.filter.overload().happened(), "{name}");
        }
    }
}

/// Gaps at and around all that a window's time has of marks: the grain, the sweep's period, the
/// window and its multiples.
fn gap(chance: &mut Chance, span: u64, grain: u64) -> u64 {
    let marks = [0, 1, grain, span / 8, span / 4, span / 2, span, span + grain, 2 * span, 3 * span];
    match chance.below(8) {
        0 => chance.below(span / 16 + 2),
        1 | 2 if chance.below(8) == 0 => {
            let mark = marks[chance.below(marks.len() as u64) as usize];
            (mark + chance.below(3)).saturating_sub(1)
        }
        3 if chance.below(16) == 0 => chance.below(20 * span),
        4 | 5 => chance.below(4),
        6 => 1,
        _ => 0,
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

/// The windows of slots at sizes of one's own.
enum Slots {
    Cuckoo(CuckooSize),
    Dleft(u64, u32),
    Lines(u64, u32),
    Buckets(u64, u32),
}

/// Windows of slots over all `n`, too small a table: the stash carries the rest. At every arrival
/// every live key is found, and the stash never holds more than the window.
fn overfull(keeps: Keeps, slots: &Slots, digest: &dyn Fn(u64) -> Digest, keys: Keys) -> u64 {
    let n = keeps.window.capacity();
    let asked = if n <= 300 { u64::MAX } else { 40 };
    let arrivals = 4 * turn(Structure::DleftWindow, n) + n;
    let run = (n, arrivals, asked);
    match *slots {
        Slots::Cuckoo(size) => {
            let filter = CuckooWindow::new(keeps, size).unwrap();
            let pair = Pair::new(filter, keeps.renewal, digest);
            most_stashed(pair, keys, run, |one| (one.stashed(), one.overload()))
        }
        Slots::Dleft(buckets, bits) => {
            let filter = DleftWindow::new(keeps, buckets, bits).unwrap();
            let pair = Pair::new(filter, keeps.renewal, digest);
            most_stashed(pair, keys, run, |one| (one.stashed(), one.overload()))
        }
        Slots::Lines(lines, bits) => {
            let filter = AgedTable::new(keeps, lines, bits).unwrap();
            let pair = Pair::new(filter, keeps.renewal, digest);
            most_stashed(pair, keys, run, |one| (one.stashed(), one.overload()))
        }
        Slots::Buckets(buckets, bits) => {
            let filter = AgedBuckets::new(keeps, buckets, bits).unwrap();
            let pair = Pair::new(filter, keeps.renewal, digest);
            most_stashed(pair, keys, run, |one| (one.stashed(), one.overload()))
        }
    }
}

/// The most keys in the stash during a run, in which nothing may be refused.
fn most_stashed<F: LastSeen>(
    mut pair: Pair<'_, F>,
    keys: Keys,
    (n, arrivals, asked): (u64, u64, u64),
    stashed: impl Fn(&F) -> (u64, Overload),
) -> u64 {
    let mut most = 0;
    for _ in 0..20 {
        pair.run_counting(keys, n, arrivals / 20, asked);
        let (keys, overload) = stashed(&pair.filter);
        assert_eq!(overload, Overload::default());
        most = most.max(keys);
    }
    most
}

#[test]
fn no_live_key_is_missed_where_the_table_is_far_too_small() {
    for renewal in [Renewal::Always, Renewal::OnFresh] {
        for n in [40, 300, 2_000] {
            let keeps = Keeps { renewal, ..Keeps::exactly(count(n)) };
            let half = CuckooSize { positions: n / 2, signature_bits: 12, entries_a_block: 64 };
            let narrow = CuckooSize { positions: n, signature_bits: 12, entries_a_block: 10 };
            let tiny = CuckooSize { positions: 1, signature_bits: 20, entries_a_block: 1 };
            for (slots, share) in [
                (Slots::Cuckoo(half), 5),
                (Slots::Cuckoo(narrow), 3),
                (Slots::Cuckoo(tiny), 2),
                (Slots::Dleft(n / 48 + 1, 20), 5),
                (Slots::Dleft(1, 24), 2),
                (Slots::Lines(n / 60 + 1, 20), 5),
                (Slots::Lines(2, 64), 2),
                (Slots::Lines(1, 40), 2),
                (Slots::Buckets(n / 6 + 1, 20), 5),
                (Slots::Buckets(1, 24), 2),
            ] {
                // These look far and wide for room before they give up.
                if n > 300 && matches!(slots, Slots::Lines(..) | Slots::Buckets(..)) {
                    continue;
                }
                for keys in [Keys::New, Keys::Again] {
                    let stashed = overfull(keeps, &slots, &key, keys);
                    // Small ones are rounded up to whole blocks and buckets.
                    assert!(n < 300 || stashed >= n / share / 3, "{n} {stashed}");
                    assert!(stashed <= n, "{n} {stashed}");
                }
            }
        }
    }
}

/// Keys of an adversary who knows the hash: all in the same buckets, or at the same positions with
/// different signatures, or with the same ones too.
#[test]
fn no_live_key_is_missed_when_all_want_the_same_slots() {
    let n = 250;
    for renewal in [Renewal::Always, Renewal::OnFresh] {
        let keeps = Keeps { renewal, ..Keeps::exactly(count(n)) };
        for positions in [2 * n, 256] {
            let forged = forge::colliding(3_000, 2, positions);
            let digest = |n: u64| forged[n as usize % forged.len()];
            for signature_bits in [40, 8, 1, 0] {
                let size = CuckooSize { positions, signature_bits, entries_a_block: 64 };
                for keys in [Keys::New, Keys::Again, Keys::Zipf] {
                    let stashed = overfull(keeps, &Slots::Cuckoo(size), &digest, keys);
                    let all = signature_bits == 40 && matches!(keys, Keys::New);
                    // The key exactly n ago is there still when the next one comes.
                    assert!(!all || stashed == n + 1 - 2, "{stashed}");
                }
            }
        }
        let forged = forge::colliding(3_000, 4, 11);
        let digest = |n: u64| forged[n as usize % forged.len()];
        for bits in [40, 8, 1] {
            for keys in [Keys::New, Keys::Again, Keys::Zipf] {
                let stashed = overfull(keeps, &Slots::Dleft(11, bits), &digest, keys);
                let all = bits == 40 && matches!(keys, Keys::New);
                assert!(!all || stashed == n + 1 - 32, "{stashed}");
            }
        }
    }
}

/// A planned filter of the last n arrivals withstands the same keys: its stash takes them all.
#[test]
fn an_adversary_cannot_make_a_planned_count_window_forget() {
    let n = 500;
    let forged: Vec<Digest> =
        (0..2_000).map(|salt| forge::with_positions(1 << 62, 3 << 61, salt)).collect();
    let digest = |n: u64| forged[n as usize % forged.len()];
    for structure in AGED {
        let mut pair = Pair::new(
            planned(structure, count(n), Renewal::Always, 1e-6),
            Renewal::Always,
            &digest,
        );
        pair.run_counting(Keys::Again, n, 6 * n, 60);
        assert!(!pair.filter.overload().happened(), "{structure}");
    }
}

/// Where time windows' stashes fill up, the policy decides, and what it counts adds up to what is
/// missing.
#[test]
fn what_a_full_stash_gives_up_is_counted_to_the_key() {
    for structure in [Structure::CuckooWindow, Structure::DleftWindow] {
        for when_full in [WhenFull::Grow, WhenFull::Forget, WhenFull::Refuse] {
            for (capacity, keys) in [(60, 200), (700, 400)] {
                let spec = Spec::new(time(1_000, capacity)).structure(structure).fpr(1e-13);
                let plan = spec.when_full(when_full).plan().unwrap();
                let forged = match structure {
                    Structure::DleftWindow => {
                        // The buckets that the plan comes to: found by asking for any that collide.
                        let slot = u64::from(plan.cell_bits_and_hashes().0);
                        let stash = 32 * (8 + plan.capacity() / 512);
                        let buckets = ((plan.memory() - stash) * 8 / slot) / 32;
                        forge::colliding(keys, 4, buckets)
                    }
                    _ => (0..keys as u64).map(|i| forge::with_positions(0, 0, i)).collect(),
                };
                let mut filter = plan.build();
                for &digest in &forged {
                    assert!(!filter.observe(digest, Tick(5)).is_duplicate());
                    // A refusing filter is full until time passes: the rest find it so.
                    if when_full != WhenFull::Refuse {
                        assert!(filter.contains(digest, Tick(1_005)));
                    }
                }
                let held =
                    forged.iter().filter(|&&digest| filter.contains(digest, Tick(1_005))).count();
                let overload = filter.overload();
                let name = format!("{structure} {when_full:?} {capacity}: {held} {overload:?}");
                let given_up = overload.forgotten + overload.refused;
                assert_eq!(held as u64 + given_up, keys as u64, "{name}");
                match when_full {
                    WhenFull::Grow => assert!(overload.grown > 0 && given_up == 0, "{name}"),
                    WhenFull::Forget => {
                        assert!(overload.forgotten > 0 && overload.refused == 0, "{name}");
                    }
                    WhenFull::Refuse => {
                        assert!(overload.refused > 0 && overload.grown == 0, "{name}");
                    }
                }
                // A window later there is room again.
                filter.advance(Tick(1_006 + plan.slack()));
                let before = filter.overload();
                let _ = filter.observe(forged[0], Tick(2_000));
                assert!(filter.contains(forged[0], Tick(3_000)), "{name}");
                assert_eq!(filter.overload(), before, "{name}");
            }
        }
    }
}

/// A stash of one's own size in a count window: full, it refuses, and counts.
#[test]
fn a_bounded_stash_of_a_count_window_counts_what_it_refuses() {
    for stash in [0, 1, 30] {
        let keeps = Keeps { stash, ..Keeps::exactly(count(300)) };
        let forged = forge::colliding(300, 4, 13);
        let mut filter = DleftWindow::new(keeps, 13, 40).unwrap();
        for &digest in &forged {
            assert!(!filter.observe(digest, Tick(0)).is_duplicate());
        }
        assert_eq!((filter.stashed(), filter.overload().refused), (stash, 300 - 32 - stash));
        let held = forged.iter().filter(|&&digest| filter.contains(digest, Tick(0))).count();
        assert_eq!(held as u64, 32 + stash);
    }
}

/// Full windows of given sizes against their formulas, which are exact: on both sides.
#[test]
fn the_rates_of_the_windows_of_slots_are_their_formulas() {
    let questions = 1_500_000 * scale();
    let mut chance = Chance(99);
    let mut check = |name: String, filter: &mut dyn WindowFilter, n: u64, expected: f64| {
        for at in 0..5 * n {
            let _ = filter.observe(key(at), Tick(0));
        }
        let (mut wrong, mut asked) = (0u64, 0u64);
        // Over some windows, as the keys of one are few.
        for round in 0..50 {
            for at in 0..n / 2 {
                let _ = filter.observe(key((6 + round) * n + at), Tick(0));
            }
            for _ in 0..questions / 50 {
                wrong +=
                    u64::from(filter.contains(Digest::new(chance.next(), chance.next()), Tick(0)));
                asked += 1;
            }
        }
        let mean = asked as f64 * expected;
        let spread = 5.0 * mean.sqrt() + 0.02 * mean + 1.0;
        let text = format!("{name}: {wrong}, {mean}");
        assert!(wrong as f64 <= mean + spread, "{text}");
        // An arrival that is taken for another key takes no slot of its own.
        assert!(wrong as f64 >= mean * (1.0 - expected) - spread, "{text}");
        assert!(filter.fpr() >= expected * 0.999 && filter.fpr() <= expected * 1.001, "{text}");
        println!("{text}, ratio {:.3}", wrong as f64 / mean);
    };
    for (n, positions, signature_bits) in
        [(200, 400, 0), (200, 220, 0), (200, 100, 0), (200, 250, 3), (1_000, 2_048, 0), (30, 60, 6)]
    {
        let keeps = Keeps::exactly(count(n));
        let size = CuckooSize { positions, signature_bits, entries_a_block: 64 };
        let pairs = (positions * positions) as f64;
        let each = 1.0 / pairs / f64::from(1u32 << signature_bits);
        let mut filter = CuckooWindow::new(keeps, size).unwrap();
        check(format!("cuckoo {size:?}"), &mut filter, n, -(-(n as f64) * each).exp_m1());
    }
    for (n, buckets, bits) in
        [(1_000u64, 42u64, 8u32), (1_000, 42, 12), (1_000, 20, 10), (240, 10, 6), (5_000, 209, 14)]
    {
        let mut filter = DleftWindow::new(Keeps::exactly(count(n)), buckets, bits).unwrap();
        let same = 0.5f64.powi(bits as i32);
        let expected = 1.0 - (1.0 - same).powf(n as f64 / buckets as f64);
        check(format!("d-left {n} {buckets} {bits}"), &mut filter, n, expected);
    }
}

/// A Timing Bloom filter of a size of one's own against the formula of Bloom filters.
#[test]
fn the_rate_of_a_timing_bloom_filter_is_its_formula() {
    for (cells, hashes) in [(5_000, 4), (10_000, 4), (20_000, 7), (10_000, 1)] {
        let renewal = Renewal::Always;
        let shape = Shape { cells, hashes, span: 1_000, grain: 1, capacity: 1_000, renewal };
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
