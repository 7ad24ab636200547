use super::*;
use crate::bits::kernel::{GROUP, Group, Kernel, Work};
use crate::codec::{self, Format};
use crate::window::late;
use crate::window::slots::core::Slotted;
use crate::{Renewal, Verdict, Window};
use alloc::vec;
use alloc::vec::Vec;
use core::num::NonZeroU64;
use proptest::prelude::*;
use std::collections::HashMap;

extern crate std;

/// As a filter's: the version says whether there is a lateness.
fn format(lateness: u64) -> Format {
    Format::new(*b"\x89TEST\r\n\x1a", 1 + if lateness > 0 { late::VERSION } else { 0 })
}

/// SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

fn digest(key: u64) -> Digest {
    let mut state = key.wrapping_mul(0xD134_2543_DE82_EF95);
    Digest::new(next(&mut state), next(&mut state))
}

fn number(n: u64) -> NonZeroU64 {
    NonZeroU64::new(n).unwrap_or(NonZeroU64::MIN)
}

fn keeps(is_time: bool, span: u64, lateness: u64, renewal: Renewal) -> Keeps {
    let span = number(span);
    let window = if is_time { Window::Time { span, capacity: span } } else { Window::Count(span) };
    let lateness = if is_time { lateness } else { 0 };
    Keeps { window, grain: 1, lateness, renewal, stash: 10_000 }.in_steps(18)
}

fn table(keeps: Keeps, lines: u64, bits: u32, level: Level) -> Slotted<Table> {
    // As much of a window of time as a snapshot may ask for.
    let stash = if let Window::Time { .. } = keeps.window { 7 * lines } else { keeps.stash };
    let keeps = Keeps { stash, ..keeps };
    let mut table = Table::new(&keeps, lines, bits).unwrap();
    table.level = level;
    Slotted::new(keeps, table)
}

fn bytes(table: &Slotted<Table>) -> Vec<u8> {
    codec::to_vec(format(table.slots.quick.lateness), |out| table.write(out))
}

/// What is done to a table.
#[derive(Clone, Debug)]
enum Call {
    /// Keys below a number, each so much later than the one before, or, but for every third, up to so much earlier.
    Batch(usize, u64, u64, u64),
    /// A key, so much later and then so much earlier.
    Observe(u64, u64, u64),
    Ask(u64, u64),
    Pause(u64),
    Restore,
}

/// Of use where arrivals may be late: otherwise all are of the present.
fn back() -> impl Strategy<Value = u64> {
    prop_oneof![2 => Just(0u64), 2 => 1u64..4_000, 1 => 1u64..50]
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        6 => (1usize..100, 1u64..3_000, 0u64..4, back())
            .prop_map(|(n, keys, gap, back)| Call::Batch(n, keys, gap, back)),
        2 => (0u64..3_000, 0u64..40, back()).prop_map(|(key, gap, back)| Call::Observe(key, gap, back)),
        2 => (0u64..3_000, back()).prop_map(|(key, back)| Call::Ask(key, back)),
        1 => (0u64..3_000).prop_map(Call::Pause),
        1 => Just(Call::Restore),
    ]
}

/// All verdicts, and the bytes of the table in the end. `one_by_one` does batches so.
fn run(mut table: Slotted<Table>, calls: &[Call], one_by_one: bool) -> (Vec<bool>, Vec<u8>) {
    let (mut all, mut now, mut state) = (Vec::new(), 1u64, 7u64);
    for call in calls {
        match *call {
            Call::Batch(n, keys, gap, back) => {
                let digests: Vec<_> = (0..n).map(|_| digest(next(&mut state) % keys)).collect();
                let first = now;
                now += gap * n as u64 + u64::from(gap == 0);
                let back = |at: u64| if at.is_multiple_of(3) { 0 } else { back * (at % 8) / 8 };
                let moment =
                    |at: usize| Tick((first + gap * at as u64).saturating_sub(back(at as u64)));
                let mut verdicts = vec![Verdict::Fresh; n];
                let mut at = 0;
                while at < n {
                    if !one_by_one {
                        let later = |more: usize| moment(at + more);
                        at += table.observe_run(&digests[at..], later, &mut verdicts[at..]);
                    }
                    if at < n {
                        verdicts[at] = table.observe(digests[at], moment(at));
                        at += 1;
                    }
                }
                all.extend(verdicts.into_iter().map(Verdict::is_duplicate));
            }
            Call::Observe(key, gap, back) => {
                now += gap;
                let at = Tick(now.saturating_sub(back));
                all.push(table.observe(digest(key), at).is_duplicate());
            }
            Call::Ask(key, back) => {
                let at = Tick(now.saturating_sub(back));
                let keys: Vec<_> = (key..key + 50).map(digest).collect();
                let mut found = vec![false; keys.len()];
                if one_by_one || !table.contains_run(&keys, at, &mut found) {
                    for (found, &key) in found.iter_mut().zip(&keys) {
                        *found = table.contains(key, at);
                    }
                }
                all.extend(found);
            }
            Call::Pause(ticks) => {
                now += ticks;
                table.advance(Tick(now));
            }
            Call::Restore => {
                let level = table.slots.level;
                let (saved, format) = (bytes(&table), format(table.slots.quick.lateness));
                let restored: Slotted<Table> =
                    codec::from_slice(format, &saved, |input| Slotted::read(input, Table::read))
                        .unwrap();
                assert_eq!(bytes(&restored), saved);
                assert_eq!(restored, table);
                table = restored;
                table.slots.level = level;
            }
        }
    }
    (all, bytes(&table))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Every instruction set that the processor has, in batches and one by one: the same verdicts, and the same bytes.
    #[test]
    fn every_instruction_set_gives_the_same_verdicts_and_snapshots(
        is_time: bool, span in 18u64..3_000, always: bool, lines in 1u64..120,
        lateness in prop_oneof![Just(0u64), 0u64..3_000],
        bits in prop_oneof![3 => Just(16u32), 1 => 17u32..=64],
        calls in prop::collection::vec(call(), 1..60),
    ) {
        let renewal = if always { Renewal::Always } else { Renewal::OnFresh };
        let keeps = keeps(is_time, span, lateness, renewal);
        let expected = run(table(keeps, lines, bits, Level::Scalar), &calls, true);
        for level in Level::all() {
            for one_by_one in [false, true] {
                let table = table(keeps, lines, bits, level);
                prop_assert_eq!(&run(table, &calls, one_by_one), &expected, "{:?}", level);
            }
        }
    }
}

/// Two keys of one group that want one line, at every place in the group: none is lost. In a table of three lines all
/// groups are such, in one of three thousand few.
#[test]
fn keys_of_a_group_that_want_one_line_are_kept() {
    for level in Level::all() {
        for lines in [3, 17, 300, 3_000] {
            let n = lines * 29 * 9 / 10;
            let mut table = table(keeps(false, n, 0, Renewal::Always), lines, 16, level);
            let mut last: HashMap<u64, u64> = HashMap::new();
            let (mut state, mut now) = (lines, 0u64);
            let (mut missed, mut known) = (0, 0);
            while now < 20 * n.max(2_000) {
                // Some keys twice in a row, or a few apart.
                let fresh: Vec<u64> = (0..64).map(|_| next(&mut state) % (2 * n)).collect();
                let keys: Vec<u64> = (0..64)
                    .map(|at| fresh[at - at % (1 + next(&mut state) as usize % 7).min(at + 1)])
                    .collect();
                let digests: Vec<_> = keys.iter().map(|&key| digest(key)).collect();
                let mut verdicts = vec![Verdict::Fresh; 64];
                let mut at = 0;
                while at < 64 {
                    let first = now + at as u64 + 1;
                    at += table.observe_run(
                        &digests[at..],
                        |more| Tick(first + more as u64),
                        &mut verdicts[at..],
                    );
                    if at < 64 {
                        verdicts[at] = table.observe(digests[at], Tick(now + at as u64 + 1));
                        at += 1;
                    }
                }
                for (key, verdict) in keys.iter().zip(verdicts) {
                    now += 1;
                    if let Some(then) = last.insert(*key, now)
                        && now - then <= n
                    {
                        known += 1;
                        missed += u64::from(!verdict.is_duplicate());
                    }
                }
            }
            assert_eq!(missed, 0, "{level:?} {lines}");
            assert!(known > 1_000);
        }
    }
}

/// A nearly full table whose keys are named one by one, as those of 2^24 lines or more are: groups that end at a key without
/// room must not run ahead of the names. Long batches do as one by one.
#[test]
fn groups_never_run_ahead_of_names() {
    let lines = 3_000;
    let n = lines * 29 * 92 / 100;
    for level in Level::all() {
        let build = || {
            let mut table = table(keeps(false, n, 0, Renewal::Always), lines, 16, level);
            (table.slots.chosen_by, table.slots.is_plain) = (!0, false);
            table
        };
        let (mut batched, mut single) = (build(), build());
        let (mut key, mut grouped) = (0u64, 0);
        while key < 3 * n {
            let digests: Vec<_> = (key..key + 256).map(digest).collect();
            let mut verdicts = vec![Verdict::Fresh; 256];
            let mut at = 0;
            while at < 256 {
                let first = key + at as u64 + 1;
                let tick = |more| Tick(first + more as u64);
                let done = batched.observe_run(&digests[at..], tick, &mut verdicts[at..]);
                (at, grouped) = (at + done, grouped + done);
                if at < 256 {
                    verdicts[at] = batched.observe(digests[at], Tick(key + at as u64 + 1));
                    at += 1;
                }
            }
            for (at, &digest) in digests.iter().enumerate() {
                let expected = single.observe(digest, Tick(key + at as u64 + 1));
                assert_eq!(verdicts[at], expected, "{level:?} {}", key + at as u64);
            }
            key += 256;
        }
        assert!(grouped as u64 > 2 * n, "{grouped}");
        assert_eq!(batched.slots.occupied, single.slots.occupied);
    }
}

/// The places of many keys.
struct Places<'a>(&'a [Digest; GROUP], u64, &'a mut Group);

impl Work for Places<'_> {
    type Result = ();

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) {
        kernel.places(self.0, self.1, self.2);
    }
}

/// Many keys at once have the names that each has alone, also those whose lane would be 0.
#[test]
fn groups_have_the_names_of_their_keys() {
    for lines in [1u64, 3_000, (1 << 24) - 1] {
        let naming = Naming { lines, chosen_by: !0 << 32, rest: 0 };
        assert!(naming.is_plain());
        let mut state = lines;
        for round in 0..1_000 {
            let low = if round % 10 == 0 { !0 >> 16 } else { !0 };
            let digests: [Digest; GROUP] =
                core::array::from_fn(|_| Digest::new(next(&mut state), next(&mut state) & low));
            for level in Level::all() {
                let mut group = Group::NONE;
                level.run(Places(&digests, lines, &mut group));
                for (at, digest) in digests.into_iter().enumerate() {
                    let name = naming.name(digest);
                    let expected = (name.home, naming.other(name), name.fingerprint);
                    let found = (group.lines[at], group.lines[GROUP + at], group.lanes[at]);
                    assert_eq!(found, expected, "{lines} {level:?}");
                    assert_eq!(kernel::lines_and_lane(digest, lines), expected, "{lines}");
                }
            }
        }
    }
}

/// More lines than 32 bits of a hash choose among evenly.
#[test]
fn all_bits_of_a_hash_choose_among_many_lines() {
    let keeps = keeps(false, 1_000, 0, Renewal::Always);
    for lines in [5, 1 << 24, (1 << 26) + 3] {
        if lines * 64 > usize::MAX as u64 / 2 {
            // Where sizes have 32 bits there is no such table.
            continue;
        }
        let table = table(keeps, lines, 16, Level::best());
        let mut state = lines;
        for _ in 0..1_000 {
            let digest = Digest::new(next(&mut state), next(&mut state));
            let name = table.slots.name(digest);
            let other = table.slots.other(name);
            let back = table.slots.other(Name { home: other, ..name });
            assert!(name.home < lines && other < lines);
            assert_eq!(back, name.home);
            let expected = if lines < 1 << 24 { digest.hi() >> 32 << 32 } else { digest.hi() };
            assert_eq!(u128::from(name.home), (u128::from(expected) * u128::from(lines)) >> 64);
        }
    }
}
