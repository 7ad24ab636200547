//! Liu, Chen & Guan 2013: two cuckoo tables, and a list for what finds no position.

use crate::support::{Chance, count, key, time};
use lately::plan::time_decaying_bound;
use lately::window::{CuckooSize, CuckooWindow, Keeps, TimingBloom};
use lately::{Digest, Filter, Spec, Structure, Tick, WindowFilter};
use std::collections::HashMap;

/// The paper's tables, its moves one after another, and its list. Entries are whole keys here: none
/// is taken for another.
struct Paper {
    positions: u64,
    tables: [HashMap<u64, Held>; 2],
    list: Vec<Held>,
    most_moves: u32,
}

#[derive(Clone, Copy)]
struct Held {
    key: u64,
    at: u64,
    positions: [u64; 2],
}

impl Paper {
    fn new(n: u64, positions: u64) -> Self {
        // "At most O(log n) moves"
        let most_moves = 4 * n.ilog2();
        Self { positions, tables: [HashMap::new(), HashMap::new()], list: Vec::new(), most_moves }
    }

    /// A new key; everything from before `oldest` has expired.
    fn insert(&mut self, key: u64, digest: Digest, now: u64, oldest: u64) {
        self.list.retain(|held| held.at >= oldest);
        let mut probes = digest.probes(self.positions);
        let positions = [probes.next().unwrap(), probes.next().unwrap()];
        let mut held = Held { key, at: now, positions };
        let before = self.tables.clone();
        for moves in 0..=self.most_moves {
            let free = (0..2).find(|&table| {
                let there = self.tables[table].get(&held.positions[table]);
                there.is_none_or(|there| there.at < oldest)
            });
            if let Some(table) = free {
                self.tables[table].insert(held.positions[table], held);
                return;
            }
            // The entry there moves on, to the other table.
            let table = moves as usize % 2;
            held = self.tables[table].insert(held.positions[table], held).unwrap();
        }
        self.tables = before;
        self.list.push(Held { key, at: now, positions });
    }

    fn holds(&self, key: u64, digest: Digest) -> bool {
        let at = digest.probes(self.positions);
        let in_tables = self
            .tables
            .iter()
            .zip(at)
            .any(|(table, at)| table.get(&at).is_some_and(|held| held.key == key));
        in_tables || self.list.iter().any(|held| held.key == key)
    }
}

/// The longest list of the paper's tables, and of ours of the same size.
fn longest(n: u64, positions: u64, arrivals: u64) -> (u64, u64) {
    let mut paper = Paper::new(n, positions);
    let size = CuckooSize { positions, signature_bits: 20, entries_a_block: 64 };
    let mut ours = CuckooWindow::new(Keeps::exactly(count(n)), size).unwrap();
    let mut longest = (0, 0);
    for at in 0..arrivals {
        let _ = ours.observe(key(at), Tick(0));
        paper.insert(at, key(at), at, (at + 1).saturating_sub(n));
        longest.0 = longest.0.max(paper.list.len() as u64);
        longest.1 = longest.1.max(ours.stashed());
        let oldest = at.saturating_sub(n - 1);
        assert!(ours.contains(key(oldest), Tick(0)) && paper.holds(oldest, key(oldest)));
    }
    longest
}

/// As simulated for n = 1000: 307, 97, 28, 13, 0. The paper allows any size; every key in its list
/// costs every question a look.
#[test]
fn too_small_a_table_has_a_long_list_and_says_so() {
    let n = 1_000;
    for (tenths, simulated) in [(5, 307), (8, 97), (10, 28), (11, 13), (20, 0)] {
        let (paper, ours) = longest(n, n * tenths / 10, 8 * n);
        let near = simulated / 4..=simulated * 15 / 10 + 6;
        assert!(near.contains(&paper), "{tenths}: {paper}");
        assert!(near.contains(&ours), "{tenths}: {ours}");
        println!("l = {tenths}/10 n: paper {paper}, ours {ours}");
    }
}

/// Positions a table that a plan comes to, from what it says of itself.
fn positions_of(plan: &lately::Plan, stash: u64) -> u64 {
    let entry = u64::from(plan.cell_bits_and_hashes().0);
    let block = 64 + (24 * entry).next_multiple_of(64);
    // And one word more, for reads across the end.
    let bytes = plan.memory() - stash * 32 - 8;
    // Two bytes and a bit for each page of up to 2,048 bits, and one for each word of these.
    let a_page = 1 << (2_048 / block).checked_ilog2().unwrap_or(0);
    let with_pages = |blocks: u64| {
        let pages = blocks.div_ceil(a_page);
        let words = pages.div_ceil(64);
        blocks * block / 8 + (words + words.div_ceil(64)) * 8 + pages * 2
    };
    // Pages are less than one part in 50 of the blocks, but for the first two.
    let most = bytes * 8 / (2 * block);
    let pairs = (most * 98 / 100).saturating_sub(1)..=most;
    let pairs: Vec<u64> = pairs.filter(|pairs| with_pages(2 * pairs) == bytes).collect();
    assert_eq!(pairs.len(), 1);
    pairs[0] * 64
}

#[test]
fn no_plan_makes_a_table_smaller_than_1_1_n() {
    let sizes = (1..200).chain([250, 999, 1_000, 1_024, 12_345, 1 << 20, 123_456_789]);
    for n in sizes {
        for fpr in [0.5, 0.1, 1e-3, 1e-6, 1e-9, 1e-15] {
            let spec = Spec::new(count(n)).structure(Structure::CuckooWindow).fpr(fpr);
            let positions = positions_of(&spec.plan().unwrap(), n.min(8));
            assert!(positions * 10 >= n * 20, "{n} {fpr}: {positions}");
            // Of time, also for the keys of the slack.
            for slack in [0, 500, 999] {
                let spec = Spec::new(time(1_000, n)).structure(Structure::CuckooWindow).fpr(fpr);
                let plan = spec.slack(slack).plan().unwrap();
                let keys = n as f64 * (1.0 + plan.slack() as f64 / 1_000.0);
                let positions = positions_of(&plan, 8 + n / 512);
                assert!(positions as f64 >= 2.0 * keys, "{n} {fpr} {slack}: {positions}");
            }
        }
    }
}

/// Planned windows hardly ever need their stash: it never outgrows the few entries reserved for it.
#[test]
fn a_planned_window_keeps_its_keys_in_the_table() {
    for n in [50, 1_000, 20_000] {
        for fpr in [0.1, 1e-6] {
            let spec = Spec::new(count(n)).structure(Structure::CuckooWindow).fpr(fpr);
            let mut filter = spec.plan().unwrap().build();
            for at in 0..(30 * n).max(200_000) {
                let _ = filter.observe(key(at), Tick(0));
            }
            assert_eq!(filter.memory() as u64, filter.plan().memory(), "{n}: the stash has grown");
        }
    }
}

/// Without a sweep a stamp comes round and looks fresh again. Ours, asked about keys of any age,
/// never takes an expired one for a live one.
#[test]
fn an_expired_stamp_never_comes_round() {
    let n = 100u64;
    // The paper's stamps without its sweep: 1 to 2n, and no one clears them.
    let stamp = |at: u64| at % (2 * n) + 1;
    let distance = |then: u64, now: u64| {
        if now >= then { now - then + 1 } else { now + 2 * n - then + 1 }
    };
    let unswept = (0..6 * n).filter(|&age| distance(stamp(0), stamp(age)) <= n).count() as u64;
    assert_eq!(unswept, 3 * n, "fresh again for every second window");
    assert!(TimingBloom::stamp_bits(n) == 8);
    let size = CuckooSize { positions: 4 * n, signature_bits: 40, entries_a_block: 64 };
    let mut ours = CuckooWindow::new(Keeps::exactly(count(n)), size).unwrap();
    let mut chance = Chance(2);
    for at in 0..40 * n {
        // Arrivals leave most of the positions alone.
        let next = if chance.below(50) == 0 { at } else { 1 << 40 };
        let _ = ours.observe(key(next), Tick(0));
        for age in n..(10 * n).min(at) {
            let old = at - age;
            assert!(!ours.contains(key(old), Tick(0)), "{old} at {at}");
        }
    }
}

/// Theorem 3, `(n - ε·|U|)·log(n - ε·|U|)`: it says nothing once there are as many false positives as keys.
#[test]
fn the_bound_is_theorem_3() {
    let bound = |n, fpr, universe| time_decaying_bound(n, fpr, universe);
    // 900 · log2(900), and without false positives n · log2(n).
    assert!((bound(1_000, 1e-3, 1e5) - 8_832.4).abs() < 0.1, "{}", bound(1_000, 1e-3, 1e5));
    assert_eq!(bound(1_024, 0.0, 1e9), 10_240.0);
    assert_eq!([bound(1_000, 0.01, 1e5), bound(1_000, 0.5, 1e9), bound(1, 0.0, 1e9)], [0.0; 3]);
}

/// The signature has `log2(n / (ε·ℓ²))` bits, two fewer than the paper's `log2(2 / (ε·ℓ))` at `ℓ = 2n`: the
/// paper counts every position as in use, of which a quarter are.
#[test]
fn a_signature_has_two_bits_fewer_than_the_papers() {
    let n = 1_000u64;
    let positions = 2_048.0_f64; // whole blocks of 64 for 2n
    for (fpr, papers, ours) in
        [(1e-2, 0, 0), (1e-3, 0, 0), (1e-4, 4, 2), (1e-6, 10, 8), (1e-9, 20, 18)]
    {
        let printed: f64 = (2.0 / (fpr * positions)).log2().ceil().max(0.0);
        assert_eq!(printed as u32, papers, "{fpr}");
        let spec = Spec::new(count(n)).structure(Structure::CuckooWindow).fpr(fpr);
        let (entry, hashes) = spec.plan().unwrap().cell_bits_and_hashes();
        // 11 bits of a stamp, and 11 of the position in the other table.
        assert_eq!((entry, hashes), (11 + 11 + ours, 2), "{fpr}");
    }
}

/// The paper's list has whole keys; our stash what a slot would have: both positions and the signature.
/// So while the list is long, the paper's tables err less by the share of the keys that are in it.
#[test]
fn a_stash_errs_as_the_slots_do_and_a_list_of_keys_not() {
    let (n, positions) = (2_000u64, 1_000);
    let mut paper = Paper::new(n, positions);
    let size = CuckooSize { positions, signature_bits: 0, entries_a_block: 64 };
    let mut ours = CuckooWindow::new(Keeps::exactly(count(n)), size).unwrap();
    let (mut listed, mut wrong, mut by_formula, mut asked) = (0u64, [0u64; 2], 0.0, 0u64);
    for at in 0..20 * n {
        let _ = ours.observe(key(at), Tick(0));
        paper.insert(at, key(at), at, (at + 1).saturating_sub(n));
        if at < 3 * n || at % 20 != 0 {
            continue;
        }
        let oldest = at + 1 - n;
        // Keys that never arrive.
        for stranger in 0..100u64 {
            let stranger = key((1 << 40) | (at * 100 + stranger));
            let mut probes = stranger.probes(positions);
            let pair = [probes.next().unwrap(), probes.next().unwrap()];
            // An entry of the paper's tables without a signature is its two positions.
            let alike = (0..2).any(|table| {
                let held = paper.tables[table].get(&pair[table]);
                held.is_some_and(|held| held.at >= oldest && held.positions == pair)
            });
            wrong[0] += u64::from(alike);
            wrong[1] += u64::from(ours.contains(stranger, Tick(0)));
            asked += 1;
            by_formula += n as f64 / (positions * positions) as f64;
        }
        listed += paper.list.len() as u64;
    }
    let questions = asked / 100;
    let share = 1.0 - listed as f64 / questions as f64 / n as f64;
    println!(
        "in the tables {share:.3}; wrong {wrong:?} of {asked}, by the formula {by_formula:.0}"
    );
    assert!(share < 0.85, "{share}");
    let near = |count: u64, expected: f64| (count as f64 - expected).abs() < 6.0 * expected.sqrt();
    assert!(near(wrong[1], by_formula), "{wrong:?} {by_formula}");
    assert!(near(wrong[0], by_formula * share), "{wrong:?} {by_formula} {share}");
    assert!(wrong[0] < wrong[1]);
}
