use super::super::{KeySpaceOptions, Numbers, Options, Outcome, Reach, Scratch};
use super::*;
use lately::{Renewal, Structure, WhenFull};
use proptest::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

const NOW: u64 = 1_800_000_000_000;
const MEMORY: u64 = 1 << 22;

fn store_of(seed: u64, memory: u64) -> Store {
    Store::new(seed, memory, 100, Vec::new(), KeySpaceOptions::default())
}

fn store() -> Store {
    store_of(7, MEMORY)
}

/// There is no journal.
fn commit() -> Result<(), String> {
    Ok(())
}

fn numbers() -> Family {
    Family::Intervals(Numbers::of("number").unwrap())
}

/// Filters of every kind.
fn kinds() -> Vec<Options> {
    let plain = Options { capacity: 500, fpr: 1e-6, ..Options::default() };
    let window = Options { reach: Reach::Within(60_000), ..plain.clone() };
    vec![
        plain.clone(),
        window.clone(),
        Options { renewal: Renewal::OnFresh, ..window.clone() },
        Options { reach: Reach::Last(500), ..plain.clone() },
        Options { family: Family::Set, ..plain.clone() },
        Options { family: Family::Cuckoo, expansion: None, ..plain.clone() },
        Options { when_full: WhenFull::Forget, ..window },
        Options { memory: Some(1 << 16), when_full: WhenFull::Refuse, ..plain.clone() },
        Options {
            structure: Some(Structure::ScalableBloom),
            memory: Some(1 << 16),
            ..plain.clone()
        },
        Options { structure: Some(Structure::BlockedBloom), capacity: 20, ..plain.clone() },
        Options { family: numbers(), reach: Reach::Within(60_000), fpr: 1e-3, ..plain.clone() },
        Options { family: numbers(), ..plain },
    ]
}

fn add(store: &Store, name: &[u8], keys: std::ops::Range<u32>) -> Vec<Outcome> {
    let digests: Vec<_> = keys.map(|key| store.digest(&key.to_le_bytes())).collect();
    let mut outcomes = Vec::new();
    let entry = store.filter(name, NOW).unwrap();
    entry.lock().observe(&digests, NOW, &mut Scratch::default(), &mut outcomes);
    outcomes
}

fn same_tables(one: &Kept, other: &Kept) -> bool {
    match (one, other) {
        (Kept::Ranges(one), Kept::Ranges(other)) => {
            one.window().snapshot() == other.window().snapshot()
        }
        _ => one.points().is_some() && one.points() == other.points(),
    }
}

/// A store with a filter `a` of this kind and 300 keys, and its dump.
fn dumped(options: Options) -> (Store, Vec<u8>) {
    let store = store();
    store.create(b"a", options, NOW).unwrap();
    add(&store, b"a", 0..300);
    let entry = store.filter(b"a", NOW).unwrap();
    let dump = store.dump(&entry, NOW);
    (store, dump)
}

#[test]
fn what_was_dumped_is_what_is_restored() {
    for options in kinds() {
        let (store, dump) = dumped(options.clone());
        let entry = store.filter(b"a", NOW).unwrap();
        let announced = store.dump_len(&entry);
        let length = dump.len() as u64;
        assert!(length <= announced && announced < length + 4096, "{options:?}");
        let other = self::store();
        other.restore(b"b", &dump, (false, Some(options.family)), NOW, &commit).unwrap();
        let restored = other.filter(b"b", NOW).unwrap();
        {
            let (one, two) = (entry.lock(), restored.lock());
            assert_eq!((&one.options, one.counts), (&two.options, two.counts));
            assert!(same_tables(&one.filter, &two.filter), "{options:?}");
            assert_eq!(one.filter.fresh(), two.filter.fresh());
            assert_eq!(one.filter.memory(), two.filter.memory());
        }
        assert_eq!(store.budget.used(), other.budget.used());
        // From here on they judge alike, also where they grow.
        assert_eq!(add(&store, b"a", 200..2_000), add(&other, b"b", 200..2_000), "{options:?}");
        assert_eq!(store.budget.used(), other.budget.used());
    }
}

#[test]
fn an_end_moves_with_the_filter() {
    let (store, _) = dumped(Options::default());
    let entry = store.filter(b"a", NOW).unwrap();
    entry.expire(Some(NOW + 500));
    let dump = store.dump(&entry, NOW);
    store.restore(b"b", &dump, (false, None), NOW, &commit).unwrap();
    assert!(store.filter(b"b", NOW + 499).is_some() && store.filter(b"b", NOW + 500).is_none());
}

#[test]
fn names_that_are_taken() {
    let (store, dump) = dumped(kinds().remove(0));
    let restore =
        |name: &[u8], replaces| store.restore(name, &dump, (replaces, None), NOW, &commit);
    assert_eq!(restore(b"a", false), Err(Refusal::Exists));
    add(&store, b"a", 1_000..1_010);
    let used = store.budget.used();
    assert_eq!(restore(b"a", true), Ok(()));
    // As it was when it was dumped.
    assert_eq!(store.filter(b"a", NOW).unwrap().lock().filter.fresh(), 300);
    assert_eq!(store.budget.used(), used);
    assert_eq!(restore(&[b'x'; 513], false), Err(Refusal::Name));
    let cuckoo = store.restore(b"c", &dump, (false, Some(Family::Cuckoo)), NOW, &commit);
    assert!(matches!(cuckoo, Err(Refusal::Dump(_))), "{cuckoo:?}");
    (0..99).for_each(|n| restore(&[b'n', n], false).unwrap());
    assert_eq!(restore(b"one more", false), Err(Refusal::TooMany));
    assert_eq!(restore(b"a", true), Ok(()));
}

#[test]
fn another_seed_another_time_and_no_memory() {
    let (_, dump) = dumped(Options::default());
    let other = store_of(8, MEMORY);
    let refusal = other.restore(b"a", &dump, (false, None), NOW, &commit).unwrap_err();
    let said = "ERR this filter was made with another seed (start with --seed 7)";
    assert_eq!(refusal.to_string(), said);
    let window = Options { reach: Reach::Within(1_000), ..Options::default() };
    let (store, dump) = dumped(window);
    let restore = |now| store.restore(b"b", &dump, (true, None), now, &commit);
    assert_eq!(restore(NOW - 60_001), Err(Refusal::Ahead));
    assert_eq!(restore(NOW - 60_000), Ok(()));
    // Of arrivals there is no time.
    let (store, dump) = dumped(Options { reach: Reach::Last(50), ..Options::default() });
    assert_eq!(store.restore(b"b", &dump, (true, None), 0, &commit), Ok(()));
    for options in kinds() {
        let (store, dump) = dumped(options.clone());
        let needed = store.budget.used();
        let small = store_of(7, needed - 1);
        let refusal = small.restore(b"a", &dump, (false, None), NOW, &commit);
        assert!(matches!(refusal, Err(Refusal::Memory { .. })), "{refusal:?} {options:?}");
        assert!(small.budget.used() == 0 && small.names.len() == 0);
    }
}

#[test]
fn cut_off_or_with_any_byte_changed() {
    for options in kinds() {
        let (store, dump) = dumped(options);
        let used = store.budget.used();
        let refused = |bytes: &[u8]| {
            let refusal = store.restore(b"b", bytes, (false, None), NOW, &commit);
            assert!(matches!(refusal, Err(Refusal::Dump(_))), "{refusal:?}");
        };
        // All of what is said of the filter, and some of the filter.
        let places = (0..400).chain((400..dump.len()).step_by(97)).filter(|&at| at < dump.len());
        for at in places {
            refused(&dump[..at]);
            let mut damaged = dump.clone();
            damaged[at] ^= 1 << (at % 8);
            refused(&damaged);
        }
        refused(&[&dump[..], b"x"].concat());
        assert_eq!(store.budget.used(), used);
    }
}

/// Writes the sums of a dump again, that of the filter in it and its own.
fn seal(dump: &mut [u8]) {
    let end = dump.len() - 8;
    let begins = |at: &usize| dump[*at..].starts_with(b"\x89LATE\r\n\x1a");
    if let Some(filter) = (0..end).find(begins) {
        let sum = xxh3_64(&dump[filter..end - 8]);
        dump[end - 8..end].copy_from_slice(&sum.to_le_bytes());
    }
    let sum = xxh3_64(&dump[..end]);
    dump[end..].copy_from_slice(&sum.to_le_bytes());
}

proptest! {
    /// Bytes that somebody made up, with the right sums: they are refused, or are a filter that keeps to its memory.
    #[test]
    fn forged(kind in 0usize..12, changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let (store, mut dump) = dumped(kinds()[kind].clone());
        seal(&mut dump);
        prop_assert_eq!(store.restore(b"b", &dump, (false, None), NOW, &commit), Ok(()));
        // Most of them in what is said of the filter.
        let most = dump.len() - 16;
        for (number, (at, value)) in changes.iter().enumerate() {
            let at = if number == 2 { at.index(most) } else { 20 + at.index(380.min(most - 20)) };
            dump[at] = *value;
        }
        seal(&mut dump);
        if store.restore(b"c", &dump, (false, None), NOW, &commit).is_ok() && store.filter(b"c", NOW).is_some() {
            for from in [0, 10_000, 20_000] {
                add(&store, b"c", from..from + 3_000);
                prop_assert!(store.budget.used() <= MEMORY);
            }
            let entry = store.filter(b"c", NOW).unwrap();
            let again = store.dump(&entry, NOW);
            prop_assert_eq!(store.restore(b"c", &again, (true, None), NOW, &commit), Ok(()));
        }
    }
}
