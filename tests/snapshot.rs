//! Snapshots and digests: their bytes are pinned, and no bytes make a restore panic.
//!
//! `LATELY_BLESS=1 cargo test -p lately --test snapshot` writes the golden files anew: only for a
//! new format version.

// The helpers fail as the tests do.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "support/crafted.rs"]
mod crafted;
mod support;

use crafted::{maybe_cut, resummed, with_values};
use lately::{
    AnyFilter, Digest, Digester, Filter, Merge, Renewal, SnapshotError, Spec, Structure, Tick,
    Verdict, WhenFull, WindowFilter,
};
use std::fs;
use std::path::PathBuf;
use support::{Chance, count, growable, key, specs, time};

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// The golden file's bytes; `now`, if it is to be written anew.
fn pinned(name: &str, now: &[u8]) -> Vec<u8> {
    if std::env::var_os("LATELY_BLESS").is_some() {
        fs::write(golden(name), now).unwrap();
    }
    fs::read(golden(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A small filter with something in every part, by name.
fn small_filters() -> Vec<(String, AnyFilter)> {
    let mut filters = Vec::new();
    for &structure in Structure::ALL {
        for (name, when_full, arrivals) in
            [("one-table", WhenFull::Refuse, 12), ("grown", WhenFull::Grow, 150)]
        {
            let Some(window) = growable(structure, 600, 20) else { continue };
            let spec = Spec::new(window).fpr(0.1).structure(structure).seed(7).slack(24);
            let mut filter = spec.when_full(when_full).plan().unwrap().build();
            for n in 0..arrivals {
                let _ = filter.observe(filter.digester().digest(&[n]), Tick(u64::from(n) * 3));
                let _ = filter.observe(filter.digester().digest(&[n / 3]), Tick(u64::from(n) * 3));
            }
            filters.push((format!("{structure}-{name}"), filter));
        }
        if structure.keeps(count(10)) {
            let spec = Spec::new(count(10)).fpr(0.1).structure(structure);
            let mut filter = spec.renewal(Renewal::OnFresh).plan().unwrap().build();
            for n in 0..25u8 {
                let _ = filter.observe(filter.digester().digest(&[n]), Tick(0));
            }
            filters.push((format!("{structure}-count"), filter));
        }
        for (name, lateness) in [("late", 400), ("very-late", 2_000)] {
            let Some(window) = growable(structure, 600, 10) else { continue };
            let spec = Spec::new(window).fpr(0.1).structure(structure).seed(7).slack(24);
            if !structure.takes_late_arrivals() {
                continue;
            }
            let mut filter = spec.lateness(lateness).plan().unwrap().build();
            for n in 0..150u8 {
                let at = Tick(u64::from(n) * 3 + 5_000 - lateness * u64::from(n % 2));
                let _ = filter.observe(filter.digester().digest(&[n / 3]), at);
            }
            filters.push((format!("{structure}-{name}"), filter));
        }
    }
    filters
}

/// Whatever a restored filter holds, it must be usable, and must not grow without measure.
fn use_it(mut filter: AnyFilter, bytes: usize) {
    for n in 0..40 {
        let _ = filter.observe(key(n), Tick(n * n * 40));
        assert!(filter.memory() < 2_000 * bytes + (1 << 16), "{} of {bytes}", filter.memory());
    }
    let _ = filter.contains(key(1), Tick(u64::MAX));
    let _ = filter.observe(key(1), Tick(u64::MAX));
    filter.remember(key(2), Tick(0));
    filter.advance(Tick(u64::MAX));
    filter.count_arrival();
    let (fill, rate) = (filter.fill(), filter.estimated_fpr());
    assert!((0.0..=1.0).contains(&fill) && (0.0..=1.0).contains(&rate), "{fill} {rate}");
    assert!(filter.capacity() > 0 && filter.tables() > 0);
    let again = AnyFilter::restore(&filter.snapshot()).unwrap();
    assert_eq!(again.snapshot(), filter.snapshot());
}

#[test]
fn the_bytes_are_the_golden_ones() {
    for (name, filter) in small_filters() {
        let bytes = filter.snapshot();
        let golden =
            pinned(&format!("{name}{}.bin", if is_marked(&bytes) { "-marks" } else { "" }), &bytes);
        // Its limit of growth is that of the memory it takes, which is less where pointers have 32 bits.
        let is_portable = cfg!(target_pointer_width = "64") || name != "dynamic-bloom-grown";
        if is_portable {
            assert_eq!(hex(&bytes), hex(&golden), "{name}");
        }
        let restored = AnyFilter::restore(&golden).unwrap();
        assert_eq!(restored.plan(), filter.plan());
        assert_eq!(restored.overload(), filter.overload());
        assert_eq!(restored.tables(), filter.tables());
        let grown = restored.overload().grown > 0;
        assert!(!name.ends_with("grown") || grown, "{name}");
    }
}

/// Does a snapshot say when parts of its window were last marked?
fn is_marked(bytes: &[u8]) -> bool {
    u16::from_le_bytes([bytes[8], bytes[9]]) > 8
}

/// Snapshots that do not say when parts of their windows were marked: they are read, know what the filter knows, and
/// say it from then on.
#[test]
fn snapshots_without_marks_are_read() {
    let mut read = 0;
    for (name, filter) in small_filters() {
        if !is_marked(&filter.snapshot()) {
            continue;
        }
        let before = fs::read(golden(&format!("{name}.bin"))).unwrap();
        assert!(!is_marked(&before), "{name}");
        // Of windows of time that may grow the first table had half of the rate then.
        let by_halves = fs::read(golden(&format!("{name}-marks-by-halves.bin")));
        let filter = by_halves.map_or(filter, |bytes| AnyFilter::restore(&bytes).unwrap());
        let mut restored = AnyFilter::restore(&before).unwrap();
        let told = restored.snapshot();
        assert!(is_marked(&told), "{name}");
        assert!(AnyFilter::restore(&told).unwrap() == restored, "{name}");
        assert_eq!(restored.plan(), filter.plan());
        assert_eq!(restored.overload(), filter.overload());
        assert_eq!(restored.tables(), filter.tables());
        let newest = 5_000 + 150 * 3;
        for at in (0..newest + 700).step_by(20) {
            for n in 0..150u8 {
                let digest = filter.digester().digest(&[n]);
                let known = filter.contains(digest, Tick(at));
                assert!(!known || restored.contains(digest, Tick(at)), "{name} {n} at {at}");
            }
        }
        for n in 0..150u8 {
            let digest = filter.digester().digest(&[n]);
            let at = Tick(newest + u64::from(n) * 9);
            let _ = restored.observe(digest, at);
            assert!(restored.overload().refused > 0 || restored.contains(digest, at), "{name} {n}");
        }
        read += 1;
    }
    assert!(read > 10, "{read}");
}

/// Windows of time whose first table had half of the rate are read, say the same as before, and are used on.
#[test]
fn windows_whose_first_table_had_half_of_the_rate_are_restored() {
    let mut read = 0;
    for (name, _) in small_filters() {
        let Ok(bytes) = fs::read(golden(&format!("{name}-marks-by-halves.bin"))) else { continue };
        let mut filter = AnyFilter::restore(&bytes).unwrap();
        assert_eq!(filter.snapshot(), bytes, "{name}");
        use_it(filter.clone(), bytes.len());
        filter.clear();
        assert_eq!((filter.len(), filter.tables()), (0, 1), "{name}");
        read += 1;
    }
    assert!(read > 10, "{read}");
}

/// Filters whose further tables had halves of what was left of the rate are read, and grow on.
#[test]
fn filters_that_grew_by_halves_are_restored() {
    for structure in ["bloom", "blocked-bloom"] {
        let bytes = fs::read(golden(&format!("{structure}-grown-by-halves.bin"))).unwrap();
        let mut filter = AnyFilter::restore(&bytes).unwrap();
        assert_eq!(filter.snapshot(), bytes);
        let digester = filter.digester();
        let (before, now) = (filter.tables(), Tick(450));
        let mut n = 0u64;
        while filter.tables() < before + 3 {
            let _ = filter.observe(digester.digest(&n.to_le_bytes()), now);
            n += 1;
        }
        assert!((0..150u8).all(|n| filter.contains(digester.digest(&[n]), now)), "{structure}");
        assert_eq!(AnyFilter::restore(&filter.snapshot()).unwrap().snapshot(), filter.snapshot());
    }
}

#[test]
fn the_digests_are_the_golden_ones() {
    let mut lines = vec!["# fields (hex, comma between)\tseed\tdigest hi\tdigest lo\tfirst probes of 1000 cells\tfirst probes of 2^40 cells".to_string()];
    let long: Vec<u8> = (0..=255).cycle().take(1_000).collect();
    let single: [&[u8]; 9] = [
        b"",
        b"a",
        b"tag",
        b"12345678",
        &long[..16],
        &long[..17],
        &long[..129],
        &long[..241],
        &long,
    ];
    let several: [&[&[u8]]; 6] = [
        &[b"ab", b"c"],
        &[b"a", b"bc"],
        &[b"", b""],
        &[b"", b"", b""],
        &[b"A", b"B"],
        &[&long, b"x"],
    ];
    for seed in [0, 1, 0x9E37_79B9_7F4A_7C15] {
        let digester = Digester::new(seed);
        let mut line = |fields: String, digest: Digest| {
            let probes = |cells| {
                let first = digest.probes(cells).take(4).map(|probe| probe.to_string());
                first.collect::<Vec<_>>().join(",")
            };
            let (hi, lo) = (digest.hi(), digest.lo());
            let (few, many) = (probes(1_000), probes(1 << 40));
            lines.push(format!("{fields}\t{seed}\t{hi:016x}\t{lo:016x}\t{few}\t{many}"));
        };
        for key in single {
            line(hex(key), digester.digest(key));
        }
        for fields in several {
            let text = fields.iter().map(|field| hex(field)).collect::<Vec<_>>().join(",");
            line(text, digester.digest_fields(fields.iter().copied()));
        }
    }
    let now = lines.join("\n") + "\n";
    let golden = pinned("digests.tsv", now.as_bytes());
    assert_eq!(now, String::from_utf8(golden).unwrap());
    assert_eq!(Digester::ALGORITHM, "xxh3-128");
}

/// The digest and the probes, written down a second time from `docs/format.md`.
#[test]
fn the_format_page_says_how_probes_are_made() {
    for n in 0..1_000 {
        let digest = key(n);
        for cells in [1u64, 3, 1_000, u64::MAX] {
            let mut x = digest.hi();
            for probe in digest.probes(cells).take(64) {
                x = x.wrapping_add(digest.lo() | 1);
                let m = (x ^ (x >> 32)).wrapping_mul(0x9FB2_1C65_1E98_DF25);
                let m = m ^ (m >> 29);
                assert_eq!(probe, ((u128::from(m) * u128::from(cells)) >> 64) as u64);
            }
        }
    }
    let prefixed = [&2u64.to_le_bytes()[..], b"ab", &1u64.to_le_bytes(), b"c"].concat();
    let digester = Digester::new(5);
    assert_eq!(digester.digest(&prefixed), digester.digest_fields([b"ab".as_slice(), b"c"]));
}

/// A restored filter gives the verdicts that the first one would have given, for ever.
/// Where a table is too large to be swept at once, what is left of expired keys depends on when that was done.
fn is_swept_at_once(filter: &AnyFilter) -> bool {
    let has_a_sweep = matches!(
        filter.structure(),
        Structure::TimeBloom
            | Structure::TimingBloom
            | Structure::IntervalBloom
            | Structure::CuckooWindow
            | Structure::DleftWindow
            | Structure::AgedBuckets
    );
    !has_a_sweep || filter.memory() <= 4_096
}

#[test]
fn a_restored_filter_goes_on_as_the_first_one() {
    for (i, spec) in specs().into_iter().enumerate() {
        let mut chance = Chance(i as u64);
        let mut first = spec.seed(i as u64).plan().unwrap().build();
        let span = first.window().span().unwrap_or(5);
        let keys = first.window().capacity() * 3 + 3;
        let mut now = 0u64;
        let mut arrival = |chance: &mut Chance| {
            now = now.saturating_add(chance.below(span / 3 + 2));
            (key(chance.below(keys)), Tick(now))
        };
        for _ in 0..chance.below(120) {
            let (digest, tick) = arrival(&mut chance);
            let _ = first.observe(digest, tick);
        }
        let bytes = first.snapshot();
        let mut second = AnyFilter::restore(&bytes).unwrap();
        assert_eq!(second.snapshot(), bytes);
        assert_eq!(second.memory(), first.memory());
        assert_eq!(second.estimated_fpr(), first.estimated_fpr());
        for _ in 0..120 {
            let (digest, tick) = arrival(&mut chance);
            assert_eq!(first.observe(digest, tick), second.observe(digest, tick), "{spec:?}");
        }
        assert_eq!(first.overload(), second.overload());
        if is_swept_at_once(&first) {
            assert_eq!(first.snapshot(), second.snapshot());
        }
    }
}

#[test]
fn case_s6_a_truncated_snapshot_is_an_error() {
    for (name, filter) in small_filters() {
        let bytes = filter.snapshot();
        for len in 0..bytes.len() {
            let error = AnyFilter::restore(&bytes[..len]).unwrap_err();
            let cut = matches!(error, SnapshotError::Foreign | SnapshotError::Length { .. });
            assert!(cut, "{name} {len} {error}");
            assert!(len > 0 || error == SnapshotError::Foreign);
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(matches!(AnyFilter::restore(&longer), Err(SnapshotError::Length { .. })));
    }
}

#[test]
fn case_s6_a_flipped_bit_is_an_error() {
    for (name, filter) in small_filters() {
        let mut bytes = filter.snapshot();
        // Every bit of the small ones, and all that is not a cell of the others.
        for bit in 0..bytes.len().min(1_500) * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(AnyFilter::restore(&bytes).is_err(), "{name} {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(AnyFilter::restore(&bytes).is_ok());
    }
}

#[test]
fn case_s6_foreign_bytes_and_future_versions_are_told_apart() {
    let mut chance = Chance(3);
    for len in 0..200 {
        let foreign: Vec<u8> = (0..len).map(|_| chance.next() as u8 & 0x7F).collect();
        assert_eq!(AnyFilter::restore(&foreign).unwrap_err(), SnapshotError::Foreign);
    }
    let bytes = small_filters()[0].1.snapshot();
    let as_text: Vec<u8> = bytes.iter().copied().filter(|&byte| byte != b'\r').collect();
    assert_eq!(AnyFilter::restore(&as_text).unwrap_err(), SnapshotError::Foreign);
    let of_version = |version: u16| {
        let mut other = bytes.clone();
        other[8..10].copy_from_slice(&version.to_le_bytes());
        AnyFilter::restore(&resummed(other)).unwrap_err()
    };
    for version in [0u16, 5, 6, 7, 8, 13, u16::MAX] {
        let expected = SnapshotError::Version { found: version, newest: 12 };
        assert_eq!(of_version(version), expected);
    }
    // Version 2 is for late arrivals, 3 for a guard against leaps and 4 for both, and 8 more for windows that note when
    // they were marked, which this filter does not.
    for version in [2, 3, 4, 9, 10, 11, 12] {
        assert!(matches!(of_version(version), SnapshotError::Invalid(_)), "{version}");
    }
    let mut reserved = bytes;
    reserved[10] = 1;
    assert!(matches!(AnyFilter::restore(&resummed(reserved)), Err(SnapshotError::Invalid(_))));
}

/// Every field of a snapshot set to every extreme, with a checksum that is right: an error, or a
/// filter that works.
#[test]
fn case_s6_crafted_fields_never_panic_nor_take_memory() {
    let extremes = [
        0,
        1,
        64,
        255,
        1 << 32,
        1 << 53,
        1 << 60,
        (1 << 62) - 1,
        u64::MAX,
        1.0f64.to_bits(),
        0.999_999_f64.to_bits(),
        f64::MIN_POSITIVE.to_bits(),
        f64::NAN.to_bits(),
        f64::INFINITY.to_bits(),
        (-0.5f64).to_bits(),
    ];
    let mut worked = 0;
    for (_, filter) in small_filters() {
        let bytes = filter.snapshot();
        if bytes.len() > 3_000 {
            continue;
        }
        let header_and_fields = bytes.len().min(260);
        with_values(&bytes, 20..header_and_fields - 8, &extremes, |crafted| {
            if let Ok(filter) = AnyFilter::restore(&crafted) {
                worked += 1;
                use_it(filter, crafted.len());
            }
        });
    }
    assert!(worked > 1_000, "{worked}");
}

/// Bits flipped and parts cut out, with a checksum and a length that are right.
#[test]
fn case_s6_mutated_bodies_never_panic() {
    let mut chance = Chance(9);
    for (_, filter) in small_filters() {
        let bytes = filter.snapshot();
        for _ in 0..(2_000_000 / bytes.len()).min(2_000) {
            let mut crafted = bytes.clone();
            for _ in 0..1 + chance.below(3) {
                let at = 20 + chance.below(bytes.len() as u64 - 28) as usize;
                match chance.below(4) {
                    0 => crafted[at % (bytes.len() - 8)] = chance.next() as u8,
                    _ => crafted[at % (bytes.len() - 8)] ^= 1 << chance.below(8),
                }
            }
            maybe_cut(&mut crafted, &mut chance);
            let crafted = resummed(crafted);
            if let Ok(filter) = AnyFilter::restore(&crafted) {
                use_it(filter, crafted.len());
            }
        }
    }
}

/// A full filter that was refusing, forgetting or growing goes on doing so.
#[test]
fn what_a_full_filter_does_outlives_a_snapshot() {
    for &structure in Structure::ALL {
        for when_full in [WhenFull::Grow, WhenFull::Forget, WhenFull::Refuse] {
            let Some(window) = growable(structure, 1_000, 100) else { continue };
            let spec = Spec::new(window).fpr(1e-3).structure(structure).when_full(when_full);
            let (mut whole, mut stopped) =
                (spec.plan().unwrap().build(), spec.plan().unwrap().build());
            let mut fresh = 0;
            for n in 0..2_000 {
                let verdict = whole.observe(key(n), Tick(n / 8));
                fresh += u64::from(verdict == Verdict::Fresh);
                assert_eq!(stopped.observe(key(n), Tick(n / 8)), verdict);
                if n % 50 == 0 {
                    stopped = AnyFilter::restore(&stopped.snapshot()).unwrap();
                }
            }
            assert_eq!(whole.overload(), stopped.overload());
            assert!(whole.overload().any() && fresh > 1_900, "{fresh} {:?}", whole.overload());
            if is_swept_at_once(&whole) {
                assert_eq!(whole.snapshot(), stopped.snapshot());
            }
            for n in 0..4_000 {
                let tick = Tick(250 + n / 16);
                assert_eq!(whole.observe(key(n), tick), stopped.observe(key(n), tick), "{n}");
            }
        }
    }
}

/// A key in the stash must be one of its table's: elsewhere it would be looked for past the table's end, at a merge.
#[test]
fn a_crafted_stash_is_refused_and_never_panics() {
    for &structure in Structure::ALL {
        if !structure.keeps(time(100, 500)) {
            continue;
        }
        let spec = Spec::new(time(100, 500)).fpr(1e-3).structure(structure);
        let filter = spec.when_full(WhenFull::Refuse).plan().unwrap().build();
        let bytes = filter.snapshot();
        // Behind the table: the stash's length and entries, the keys refused, and the checksum.
        let end = bytes.len() - 8 - 8 - 8;
        if bytes[end..end + 16] != [0; 16] {
            continue;
        }
        for id in [u128::MAX, 1 << 100, u128::from(u64::MAX), 500 << 64, 1 << 64, 7] {
            let mut crafted = bytes.clone();
            crafted[end] = 1;
            let entry = [(id as u64).to_le_bytes(), ((id >> 64) as u64).to_le_bytes(), [0; 8]];
            crafted.splice(end + 8..end + 8, entry.concat());
            let Ok(mut crafted) = AnyFilter::restore(&resummed(crafted)) else { continue };
            assert!(id != u128::MAX, "{structure}");
            let _ = (crafted.merge(&filter), crafted.observe(key(3), Tick(5)));
            let mut other = filter.clone();
            let _ = (other.merge(&crafted), other.observe(key(3), Tick(5)));
        }
    }
}
