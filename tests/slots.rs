//! The laws of the windows of slots in tables of sizes of one's own: far too small ones, and for keys
//! of an adversary; and their rates.
//!
//! `LATELY_LONG=1 cargo test -p lately --test slots` asks twenty times as much.

// The helpers fail as the tests do.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "support/forge.rs"]
mod forge;
#[path = "support/pair.rs"]
mod pair;
mod support;

use lately::window::{AgedBuckets, AgedTable, CuckooSize, CuckooWindow, DleftWindow, Keeps};
use lately::{
    Digest, Filter, LastSeen, Overload, Renewal, Spec, Structure, Tick, WhenFull, WindowFilter,
};
use pair::{Keys, Pair, gap};
use support::{Chance, count, key, time};

/// How much longer than usual to run.
fn scale() -> u64 {
    if std::env::var_os("LATELY_LONG").is_some() { 20 } else { 1 }
}

/// The windows of slots at sizes of one's own; cells, and bits of a fingerprint.
#[derive(Clone, Copy, Debug)]
enum Slots {
    Cuckoo(CuckooSize),
    Dleft(u64, u32),
    Table(u64, u32),
    Buckets(u64, u32),
}

trait Stashing: LastSeen {
    fn stashed(&self) -> u64;
    fn overload(&self) -> Overload;
}

impl Stashing for CuckooWindow {
    fn stashed(&self) -> u64 {
        self.stashed()
    }

    fn overload(&self) -> Overload {
        self.overload()
    }
}

impl Stashing for DleftWindow {
    fn stashed(&self) -> u64 {
        self.stashed()
    }

    fn overload(&self) -> Overload {
        self.overload()
    }
}

impl Stashing for AgedTable {
    fn stashed(&self) -> u64 {
        self.stashed()
    }

    fn overload(&self) -> Overload {
        self.overload()
    }
}

impl Stashing for AgedBuckets {
    fn stashed(&self) -> u64 {
        self.stashed()
    }

    fn overload(&self) -> Overload {
        self.overload()
    }
}

/// What is to be tried with any of them.
trait Trial {
    fn on(&self, filter: impl Stashing) -> u64;
}

fn run(keeps: Keeps, slots: Slots, trial: &impl Trial) -> u64 {
    match slots {
        Slots::Cuckoo(size) => trial.on(CuckooWindow::new(keeps, size).unwrap()),
        Slots::Dleft(buckets, bits) => trial.on(DleftWindow::new(keeps, buckets, bits).unwrap()),
        Slots::Table(lines, bits) => trial.on(AgedTable::new(keeps, lines, bits).unwrap()),
        Slots::Buckets(buckets, bits) => trial.on(AgedBuckets::new(keeps, buckets, bits).unwrap()),
    }
}

/// Windows of slots over all `n`, too small a table: the stash carries the rest. At every arrival
/// every live key is found, and the stash never holds more than the window. Over four turns of the
/// stamps, or of an aged table's eight generations.
struct Overfull<'a> {
    keeps: Keeps,
    digest: &'a dyn Fn(u64) -> Digest,
    keys: Keys,
}

impl Trial for Overfull<'_> {
    fn on(&self, filter: impl Stashing) -> u64 {
        let n = self.keeps.window.capacity();
        let asked = if n <= 100 {
            u64::MAX
        } else if n <= 300 {
            40
        } else {
            10
        };
        let arrivals = 4 * (n + n / 8 + 3).next_power_of_two().max(8) + n;
        let mut pair = Pair::new(filter, self.keeps.renewal, self.digest);
        let mut most = 0;
        for _ in 0..20 {
            pair.run_counting(self.keys, n, arrivals.div_ceil(20), asked);
            most = most.max(pair.filter.stashed());
        }
        assert_eq!(pair.filter.overload(), Overload::default());
        most
    }
}

fn overfull(keeps: Keeps, slots: Slots, digest: &dyn Fn(u64) -> Digest, keys: Keys) -> u64 {
    run(keeps, slots, &Overfull { keeps, digest, keys })
}

/// Arrivals of so many keys, at gaps of all kinds.
struct Irregular {
    keeps: Keeps,
    distinct: u64,
}

impl Trial for Irregular {
    fn on(&self, filter: impl Stashing) -> u64 {
        let Keeps { window, grain, renewal, .. } = self.keeps;
        let span = window.span().unwrap();
        let mut pair = Pair::new(filter, renewal, &key);
        let (mut chance, mut now, mut most) = (Chance(grain), 0, 0);
        for _ in 0..600 * scale() {
            // Through the eight generations step by step, too.
            now += match chance.below(12) {
                0 => span / 8 + chance.below(3),
                _ => gap(&mut chance, span, grain),
            };
            pair.arrive(chance.below(self.distinct), Tick(now));
            pair.ask_all(Tick(now));
            most = most.max(pair.filter.stashed());
        }
        assert_eq!(pair.filter.overload(), Overload::default(), "{:?}", self.keeps);
        assert!(now > 4 * 2 * span, "{now}");
        most
    }
}

/// Keys that all want the same slots, more than the stash takes: what it does not is counted.
struct Bounded<'a>(&'a [Digest]);

impl Trial for Bounded<'_> {
    fn on(&self, mut filter: impl Stashing) -> u64 {
        for &digest in self.0 {
            assert!(!filter.observe(digest, Tick(0)).is_duplicate());
        }
        let held = self.0.iter().filter(|&&digest| filter.contains(digest, Tick(0))).count() as u64;
        assert_eq!(filter.overload().refused, self.0.len() as u64 - held);
        held - filter.stashed()
    }
}

#[test]
fn no_live_key_is_missed_where_the_table_is_far_too_small() {
    for renewal in [Renewal::Always, Renewal::OnFresh] {
        for n in [40, 300, 1_000] {
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
                (Slots::Table(n / 40 + 1, 20), 5),
                (Slots::Table(2, 64), 2),
                (Slots::Table(1, 16), 2),
                (Slots::Buckets(n / 8 + 1, 20), 5),
                (Slots::Buckets(1, 24), 2),
            ] {
                for keys in [Keys::New, Keys::Again] {
                    let stashed = overfull(keeps, slots, &key, keys);
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
                    let stashed = overfull(keeps, Slots::Cuckoo(size), &digest, keys);
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
                let stashed = overfull(keeps, Slots::Dleft(11, bits), &digest, keys);
                let all = bits == 40 && matches!(keys, Keys::New);
                assert!(!all || stashed == n + 1 - 32, "{stashed}");
            }
        }
        // Slots of two lines, or of two buckets; a line's depend on the bits of a fingerprint.
        for (slots, held) in [
            (Slots::Table(11, 40), 20),
            (Slots::Table(11, 16), 44),
            (Slots::Table(40, 64), 12),
            (Slots::Buckets(70, 40), 8),
            (Slots::Buckets(70, 8), 8),
            (Slots::Buckets(3, 1), 8),
        ] {
            let (Slots::Table(cells, bits) | Slots::Buckets(cells, bits)) = slots else { panic!() };
            let forged = forge::sharing(3_000, cells, bits);
            let digest = |n: u64| forged[n as usize % forged.len()];
            for keys in [Keys::New, Keys::Again, Keys::Zipf] {
                let stashed = overfull(keeps, slots, &digest, keys);
                let all = bits >= 16 && matches!(keys, Keys::New);
                assert!(!all || stashed == n + 1 - held, "{slots:?} {stashed}");
            }
        }
    }
}

/// Windows of time, whatever the gaps and the grain: every live key at every arrival, where the table
/// holds all, some and hardly any.
#[test]
fn no_live_key_is_missed_in_an_overfull_window_of_time() {
    let size = |positions| CuckooSize { positions, signature_bits: 40, entries_a_block: 64 };
    let kinds = [
        (Slots::Table(1, 16), 200),
        (Slots::Table(2, 48), 200),
        (Slots::Table(7, 24), 200),
        (Slots::Table(30, 64), 200),
        (Slots::Buckets(1, 30), 100),
        (Slots::Buckets(30, 40), 150),
        (Slots::Dleft(2, 40), 150),
        (Slots::Cuckoo(size(50)), 100),
    ];
    let windows = [
        (time(1, 30), 1),
        (time(7, 30), 1),
        (time(8, 30), 1),
        (time(9, 30), 1),
        (time(100, 30), 1),
        (time(1_000, 30), 1),
        (time(1_000, 30), 125),
        (time(999, 30), 64),
        (time(1_000_003, 30), 1),
        (time(1_000_003, 30), 1_000),
    ];
    for ((slots, distinct), renewal) in
        kinds.into_iter().flat_map(|kind| [(kind, Renewal::Always), (kind, Renewal::OnFresh)])
    {
        let most = windows.map(|(window, grain)| {
            let keeps = Keeps { window, grain, lateness: 0, renewal, stash: 1_000 };
            run(keeps, slots, &Irregular { keeps, distinct })
        });
        let is_tiny = matches!(slots, Slots::Table(1, _) | Slots::Buckets(1, _));
        assert!(!is_tiny || most.iter().any(|&stashed| stashed > 20), "{slots:?} {most:?}");
    }
}

/// Where time windows' stashes fill up, the policy decides, and what it counts adds up to what is
/// missing.
#[test]
fn what_a_full_stash_gives_up_is_counted_to_the_key() {
    for structure in [
        Structure::CuckooWindow,
        Structure::DleftWindow,
        Structure::AgedTable,
        Structure::AgedBuckets,
    ] {
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
                    Structure::AgedTable | Structure::AgedBuckets => forge::for_plan(keys, &plan),
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
                    _ => panic!("{name}: a policy that this test does not know"),
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
    let (dleft, aged) = (forge::colliding(300, 4, 13), forge::sharing(300, 13, 40));
    for stash in [0, 1, 30] {
        for (slots, forged, slotted) in [
            (Slots::Dleft(13, 40), &dleft, 32),
            (Slots::Table(13, 40), &aged, 20),
            (Slots::Buckets(13, 40), &aged, 8),
        ] {
            let keeps = Keeps { stash, ..Keeps::exactly(count(300)) };
            assert_eq!(run(keeps, slots, &Bounded(forged)), slotted, "{slots:?} {stash}");
        }
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
    // With two lines or buckets a key, of a table that holds all or about half.
    let both = |n: u64, cells: u64, bits: u32| {
        1.0 - (1.0 - 0.5f64.powi(bits as i32)).powf(2.0 * n as f64 / cells as f64)
    };
    for (n, lines, bits) in [(2_000u64, 110u64, 16u32), (5_000, 130, 17)] {
        let mut filter = AgedTable::new(Keeps::exactly(count(n)), lines, bits).unwrap();
        check(format!("aged {n} {lines} {bits}"), &mut filter, n, both(n, lines, bits));
    }
    for (n, buckets, bits) in [(1_000u64, 270u64, 8u32), (1_000, 130, 10)] {
        let mut filter = AgedBuckets::new(Keeps::exactly(count(n)), buckets, bits).unwrap();
        check(format!("buckets {n} {buckets} {bits}"), &mut filter, n, both(n, buckets, bits));
    }
}
