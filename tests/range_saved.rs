//! Range windows as bytes: pinned, restored, merged, and no bytes make a restore panic.
//!
//! `LATELY_BLESS=1 cargo test -p lately --test range_saved` writes golden files that are not there yet, such as those of a
//! new format version.

// The helpers fail as the tests do.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "support/crafted.rs"]
mod crafted;
#[path = "support/forms.rs"]
mod forms;
mod support;

use crafted::{maybe_cut, resummed, with_values};
use forms::{FORMS, Form, in_each_form};
use lately::range::{RangePlan, RangeSpec, RangeWindow};
use lately::{AnyFilter, MergeError, SnapshotError, Tick, WhenFull, Window};
use std::fs;
use std::path::PathBuf;
use support::{Chance, count, time, unbounded};

fn key(at: u64) -> u128 {
    (u128::from(at / 40) << 70) + 3 * u128::from(at % 40)
}

/// Of each kind of window, in the middle of a round; "forgetting" is full, "grown" has more than one table. Those of a flat
/// table come last.
fn small_windows() -> Vec<(String, RangeWindow)> {
    let specs = [
        ("count", RangeSpec::new(count(900)).slack(100).seed(7), 2_000),
        ("time", RangeSpec::new(time(900, 300)).interval(1 << 80).fpr(1e-3), 700),
        ("unbounded", RangeSpec::new(unbounded(500)).interval(10), 500),
        ("forgetting", RangeSpec::new(time(50_000, 300)).when_full(WhenFull::Forget), 9_000),
        ("empty", RangeSpec::new(count(1)), 0),
        ("grown", RangeSpec::new(time(3_000, 150)).slack(400).interval(1 << 20), 1_100),
    ];
    let windows = |(form, kind): (Form, &str)| {
        specs.map(|(name, spec, arrivals)| {
            let mut window = form(spec).unwrap().build();
            for at in 0..arrivals {
                window.insert(key(at), Tick(at * 3));
            }
            (format!("{kind}{name}"), window)
        })
    };
    [(FORMS[1], ""), (FORMS[0], "flat-")].into_iter().flat_map(windows).collect()
}

/// Whatever a restored window holds, it must be usable, and must not grow without measure.
fn use_it(mut window: RangeWindow, bytes: usize) {
    for at in 0..60u64 {
        window.insert(key(at * 7), Tick(at * at * 40));
        let limit = 40 * bytes + (1 << 20);
        assert!(window.memory() < limit, "{} of {bytes}", window.memory());
        let _ = window.any(key(at)..=key(at) + 1_000, Tick(at));
    }
    window.advance(Tick(1 << 40));
    let _ = window.observe(9, Tick(u64::MAX));
    assert!(window.contains(9, Tick(0)) || window.overload().any());
    let _ = window.any(0..=u128::MAX, Tick(0));
    match RangeWindow::restore(&window.snapshot()) {
        Ok(again) => assert_eq!(again.snapshot(), window.snapshot()),
        // A crafted counter was at the end of its range.
        Err(error) => assert!(error.to_string().contains("2^63"), "{error}"),
    }
}

#[test]
fn the_bytes_are_the_golden_ones() {
    for (name, window) in small_windows() {
        let bytes = window.snapshot();
        let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("tests/golden")
            .join(format!("range-{name}.bin"));
        if std::env::var_os("LATELY_BLESS").is_some() && !golden.exists() {
            fs::write(&golden, &bytes).unwrap();
        }
        let pinned = fs::read(&golden).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(pinned == bytes, "{name}");
        let restored = RangeWindow::restore(&pinned).unwrap();
        assert_eq!(restored.plan(), window.plan());
        assert_eq!(restored.overload(), window.overload());
        let is_past_its_plan = name.ends_with("forgetting") || name.ends_with("grown");
        assert_eq!(restored.overload().any(), is_past_its_plan, "{:?}", restored.overload());
        assert_eq!(restored.tables() > 1, name.ends_with("grown"), "{name}");
        let is_flat = name.starts_with("flat-");
        assert_eq!(*restored.plan() == restored.plan().in_levels().unwrap(), !is_flat, "{name}");
        assert!(restored.snapshot() == pinned, "{name}");
    }
}

/// What was written before windows had tables is read as it was, and written so again.
#[test]
fn windows_of_one_table_are_read() {
    for (name, window) in small_windows() {
        let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("tests/golden")
            .join(format!("range-{name}-of-one-table.bin"));
        // Windows of arrivals in levels are written so still.
        let Ok(pinned) = fs::read(&golden) else {
            let is_new = name.starts_with("flat-") || name == "grown";
            assert!(is_new || matches!(window.window(), Window::Count(_)), "{name}");
            continue;
        };
        let restored = RangeWindow::restore(&pinned).unwrap();
        assert!(restored.snapshot() == pinned, "{name}");
        assert_eq!(restored.overload().any(), name == "forgetting", "{:?}", restored.overload());
        assert_eq!((restored.tables(), restored.window()), (1, window.window()));
        let newest = [("time", 699), ("unbounded", 499), ("forgetting", 8_999)];
        let newest = newest.iter().find(|&&(of, _)| of == name).unwrap().1;
        assert!(restored.contains(key(newest), Tick(newest * 3)), "{name}");
    }
}

/// What version 0.1 wrote before windows kept to their number of keys is read as it was.
#[test]
fn a_golden_window_with_more_keys_than_planned_is_read() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/range-overfull.bin");
    let pinned = fs::read(path).unwrap();
    let mut restored = RangeWindow::restore(&pinned).unwrap();
    assert!(restored.snapshot() == pinned && restored.overload().forgotten > 0);
    assert!(restored.contains(key(8_999), Tick(8_999 * 3)));
    for at in 9_000..12_000 {
        restored.insert(key(at), Tick(at * 3));
        assert!(restored.contains(key(at), Tick(at * 3)) || restored.overload().refused > 0);
    }
    assert!(restored.memory() as u64 <= restored.plan().most_memory() * 17 / 16);
}

/// The same answers, and the same bytes, for ever.
#[test]
fn a_restored_window_goes_on_as_the_first_one() {
    let specs = [
        RangeSpec::new(count(1_500)).slack(200),
        RangeSpec::new(count(300)).interval(1 << 90),
        RangeSpec::new(time(4_000, 1_000)).slack(500).seed(3),
        RangeSpec::new(time(4_000, 300)).slack(500).when_full(WhenFull::Forget),
        RangeSpec::new(time(4_000, 200)).when_full(WhenFull::Refuse),
        RangeSpec::new(unbounded(2_000)),
    ];
    for plan in specs.into_iter().flat_map(in_each_form) {
        let mut chance = Chance(8);
        let (mut first, mut second) = (plan.build(), plan.build());
        let mut now = 0;
        for at in 0..5_000u64 {
            now += chance.below(9) * chance.below(9) / 8 + if at % 701 == 0 { 2_500 } else { 0 };
            let key = key(chance.below(5_000));
            let around = key.saturating_sub(50)..=key + u128::from(chance.below(1_000));
            let answers = [&first, &second].map(|window| window.any(around.clone(), Tick(now)));
            assert_eq!(answers[0], answers[1], "{plan:?} {at}");
            first.insert(key, Tick(now));
            second.insert(key, Tick(now));
            if at % 97 == 0 {
                second = RangeWindow::restore(&second.snapshot()).unwrap();
            }
        }
        assert!(first.snapshot() == second.snapshot(), "{plan:?}");
        assert_eq!(first.overload(), second.overload());
    }
}

#[test]
fn a_truncated_snapshot_is_an_error() {
    for (_, window) in small_windows() {
        let bytes = window.snapshot();
        for len in 0..bytes.len() {
            let error = RangeWindow::restore(&bytes[..len]).unwrap_err();
            let cut = matches!(error, SnapshotError::Foreign | SnapshotError::Length { .. });
            assert!(cut, "{len} {error}");
            // With the length and checksum of what is left.
            if len >= 28 && (len < 400 || len % 61 == 0) {
                assert!(RangeWindow::restore(&resummed(bytes[..len].to_vec())).is_err(), "{len}");
            }
        }
        let longer = resummed([&bytes[..], &[0]].concat());
        assert!(RangeWindow::restore(&longer).is_err());
    }
}

#[test]
fn a_flipped_bit_is_an_error() {
    for (_, window) in small_windows() {
        let mut bytes = window.snapshot();
        for bit in 0..bytes.len().min(2_000) * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(RangeWindow::restore(&bytes).is_err(), "{bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

/// Every byte of the fields set to extremes, with a checksum that is right: an error, or a window that works.
#[test]
fn crafted_fields_never_panic_nor_take_memory() {
    let extremes = [0, 1, 64, 255, 1 << 32, 1 << 53, (1 << 62) - 1, u64::MAX, 0.999f64.to_bits()];
    let mut worked = 0;
    for (_, window) in small_windows() {
        let bytes = window.snapshot();
        with_values(&bytes, 20..bytes.len().min(420) - 8, &extremes, |crafted| {
            if let Ok(window) = RangeWindow::restore(&crafted) {
                worked += 1;
                use_it(window, bytes.len());
            }
        });
    }
    assert!(worked > 300, "{worked}");
}

/// Bits flipped and parts cut out, with a checksum and a length that are right.
#[test]
fn mutated_bodies_never_panic() {
    let mut chance = Chance(9);
    for (_, window) in small_windows() {
        let bytes = window.snapshot();
        for _ in 0..3_000 {
            let mut crafted = bytes.clone();
            for _ in 0..1 + chance.below(3) {
                let at = 20 + chance.below(bytes.len() as u64 - 28) as usize;
                crafted[at] ^= 1 << chance.below(8);
            }
            maybe_cut(&mut crafted, &mut chance);
            if let Ok(window) = RangeWindow::restore(&resummed(crafted)) {
                use_it(window, bytes.len());
            }
        }
    }
}

#[test]
fn other_structures_are_told_apart() {
    let window = small_windows().remove(0).1;
    assert!(matches!(AnyFilter::restore(&window.snapshot()), Err(SnapshotError::Invalid(_))));
    let flat = RangeSpec::new(count(10)).plan().unwrap().build();
    let error = AnyFilter::restore(&flat.snapshot()).unwrap_err();
    assert!(matches!(error, SnapshotError::Version { found: 6, .. }), "{error}");
    let filter = lately::Spec::new(count(10)).plan().unwrap().build();
    assert!(matches!(RangeWindow::restore(&filter.snapshot()), Err(SnapshotError::Invalid(_))));
}

#[test]
fn a_merged_window_finds_what_either_found() {
    for slack in [0, 300] {
        let spec = RangeSpec::new(time(3_000, 2_000)).slack(slack).fpr(1e-6);
        for plan in in_each_form(spec) {
            finds_what_either_found(&plan);
        }
    }
}

fn finds_what_either_found(plan: &RangePlan) {
    let (mut one, mut other) = (plan.build(), plan.build());
    for at in 0..2_600u64 {
        one.insert(key(at), Tick(at * 2));
        if at % 2 == 0 {
            other.insert(key(at + 50_000), Tick(at * 2 + 700));
        }
    }
    let before = one.clone();
    one.merge(&other).unwrap();
    let now = Tick(2_598 * 2 + 700);
    let mut found = 0;
    for at in (0..2_600).chain(50_000..52_600) {
        let around = key(at)..=key(at) + 1;
        for within in [100, 1_000, 3_000] {
            let either = before.any_within(around.clone(), within, now).is_perhaps()
                || other.any_within(around.clone(), within, now).is_perhaps();
            let both = one.any_within(around.clone(), within, now).is_perhaps();
            assert_eq!(both, either, "{at} {within}");
            found += u64::from(both);
        }
    }
    assert!((2_000..8_000).contains(&found), "{found}");
}

#[test]
fn windows_that_do_not_go_together_are_refused_and_unchanged() {
    let of = |plan: &RangePlan, keys: u64| {
        let mut window = plan.build();
        for at in 0..keys {
            window.insert(key(at), Tick(at));
        }
        window
    };
    let refusing =
        |keys| RangeSpec::new(time(50_000, keys)).when_full(WhenFull::Refuse).slack(keys / 8);
    for (keys, form) in [(20_000, FORMS[0]), (1_000, FORMS[0]), (1_000, FORMS[1])] {
        let plan_of = |spec| form(spec).unwrap();
        let (spec, many) = (refusing(keys), keys * 19 / 20);
        let mut one = of(&plan_of(spec), many);
        let before = one.snapshot();
        assert_eq!(one.merge(&of(&plan_of(spec.seed(1)), 5)), Err(MergeError::Shape));
        assert_eq!(one.merge(&of(&plan_of(spec), many)), Err(MergeError::Full));
        assert!(one.snapshot() == before);
    }
    let counting = RangeSpec::new(count(10)).plan().unwrap();
    assert_eq!(of(&counting, 5).merge(&of(&counting, 5)), Err(MergeError::Counting));
    let flat = refusing(1_000).plan().unwrap();
    assert_eq!(of(&flat, 5).merge(&of(&flat.in_levels().unwrap(), 5)), Err(MergeError::Shape));
}

/// A window has as many tables as its keys can fill, whatever its bytes say.
#[test]
fn more_tables_than_a_window_can_have_are_refused() {
    let plan = RangeSpec::new(unbounded(500)).interval(10).plan().unwrap();
    let mut bytes = plan.build().snapshot();
    let empty = bytes.len();
    let tables = RangeWindow::restore(&bytes).unwrap().tables();
    // The number of older tables stands before the first one, after the newest moment and the overload.
    let mut found = 0;
    for at in 0..empty - 4 {
        let before = bytes.clone();
        bytes[at..at + 4].copy_from_slice(&50_000u32.to_le_bytes());
        let refused = RangeWindow::restore(&resummed(bytes.clone()));
        found += usize::from(matches!(
            refused,
            Err(SnapshotError::Invalid("more tables than a window can have"))
        ));
        bytes = before;
    }
    assert!(tables == 1 && found > 0);
}
