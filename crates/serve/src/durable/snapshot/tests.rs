use super::*;
use crate::store::{KeySpaceOptions, Life, Options, Outcome, Reach, Scratch, Template};
use std::num::NonZeroU64;

const NOW: u64 = 1_800_000_000_000;

fn store(seed: u64) -> Store {
    let windowed =
        Options { reach: Reach::Within(60_000), expansion: Some(3), ..Options::default() };
    let templates = vec![Template { pattern: "w*".into(), options: windowed }];
    Store::new(
        seed,
        64 << 20,
        1000,
        templates,
        KeySpaceOptions { capacity: 1000, ..KeySpaceOptions::default() },
    )
}

fn add(store: &Store, name: &str, from: u32, to: u32) -> usize {
    let digests: Vec<_> = (from..to).map(|n| store.digest(&n.to_le_bytes())).collect();
    let mut outcomes = Vec::new();
    let entry = store.filter_or_new(name.as_bytes(), NOW).unwrap();
    entry.lock().observe(&digests, NOW, &mut Scratch::default(), &mut outcomes);
    outcomes.iter().filter(|outcome| **outcome == Outcome::Fresh).count()
}

fn set(store: &Store, key: u32, ttl: u64) -> Outcome {
    let life = Life::Ms { ttl: NonZeroU64::new(ttl).unwrap(), exact: true };
    let (digest, mut outcomes) = (store.digest(&key.to_le_bytes()), Vec::new());
    store.keys.set_fresh(&[digest], life, NOW, &mut Scratch::default(), &mut outcomes).unwrap();
    outcomes[0]
}

/// A store that takes up what a folder holds.
fn reopen(path: &Path) -> Result<Option<Store>, String> {
    let folder = Folder::open(path, NOW)?;
    let Some(saved) = folder.look().map_err(|fault| fault.to_string())? else { return Ok(None) };
    let store = store(saved.seed);
    folder.restore(&saved, &store).map_err(|fault| fault.to_string())?;
    Ok(Some(store))
}

fn fill(store: &Store) {
    // Some 1 % are taken for others.
    assert!(add(store, "w", 0, 900) > 800);
    assert!(add(store, "ever", 0, 900) > 800);
    add(store, "gone", 0, 9);
    store.filter(b"gone", NOW).unwrap().expire(Some(NOW));
    store.filter(b"w", NOW).unwrap().expire(Some(NOW + 5));
    assert_eq!((set(store, 1, 500), set(store, 2, 900)), (Outcome::Fresh, Outcome::Fresh));
}

/// A key that gets another life again and again while snapshots are taken is in each of them.
#[test]
fn a_key_that_moves_is_saved() {
    const LIVES: [u64; 8] =
        [200_000, 300_000, 400_000, 500_000, 600_000, 700_000, 800_000, 900_000];
    let folder = tempfile::tempdir().unwrap();
    let (keeper, before) = (Folder::open(folder.path(), NOW).unwrap(), store(11));
    for key in 0..20_000 {
        assert_eq!(set(&before, key, LIVES[key as usize % LIVES.len()]), Outcome::Fresh);
    }
    let (moving, has_ended) = (before.digest(&0u32.to_le_bytes()), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for ttl in LIVES.into_iter().cycle() {
                let life = Life::Ms { ttl: NonZeroU64::new(ttl).unwrap(), exact: true };
                assert_eq!(before.keys.change_life(moving, life, NOW), Ok(true));
                if has_ended.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        let is_saved = |_| {
            keeper.save(&before, NOW).unwrap();
            let (saved, after) = (keeper.look().unwrap().unwrap(), store(11));
            keeper.restore(&saved, &after).unwrap();
            after.keys.contains(moving, NOW)
        };
        let saved = (0..30).filter(|round| is_saved(*round)).count();
        has_ended.store(true, Ordering::Relaxed);
        assert_eq!(saved, 30);
    });
}

#[test]
fn what_is_saved_is_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    assert!(reopen(path).unwrap().is_none());
    let before = store(11);
    fill(&before);
    let keeper = Folder::open(path, NOW).unwrap();
    assert!(Folder::open(path, NOW).unwrap_err().contains("in use"));
    keeper.save(&before, NOW).unwrap();
    keeper.save(&before, NOW).unwrap();
    drop(keeper);
    // One snapshot, not two.
    let mut names: Vec<_> =
        fs::read_dir(path).unwrap().map(|file| file.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["filters-2", "lock", "manifest"]);

    let after = reopen(path).unwrap().unwrap();
    assert_eq!((after.seed(), after.names.len()), (11, 2));
    assert_eq!(
        after.budget.used(),
        before.budget.used() - before.filter(b"gone", NOW - 1).unwrap().lock().filter.memory()
    );
    assert_eq!((add(&after, "w", 0, 900), add(&after, "ever", 0, 900)), (0, 0));
    assert_eq!(
        (set(&after, 1, 500), set(&after, 2, 500), set(&after, 3, 500)),
        (Outcome::Seen, Outcome::Seen, Outcome::Fresh)
    );
    assert_eq!(after.filter(b"w", NOW).unwrap().expires(), Some(NOW + 5));
    let (one, other) = (before.filter(b"w", NOW).unwrap(), after.filter(b"w", NOW).unwrap());
    let (one, other) = (one.lock(), other.lock());
    assert_eq!(one.options, other.options);
    assert_eq!((one.counts.fresh, one.filter.fresh()), (other.counts.fresh, other.filter.fresh()));
}

/// A save in the background rests between its pieces, and saves the same.
#[test]
fn a_leisurely_save_is_a_whole_one() {
    let folder = tempfile::tempdir().unwrap();
    let before = store(11);
    fill(&before);
    add(&before, "ever", 900, 200_000);
    let keeper = Folder::open(folder.path(), NOW).unwrap();
    let in_hurry = AtomicBool::new(false);
    let mut rest = Rest::new(&in_hurry);
    keeper.save_at(&before, NOW, &mut || rest.rest()).unwrap();
    drop(keeper);
    let after = reopen(folder.path()).unwrap().unwrap();
    assert_eq!((add(&after, "w", 0, 900), add(&after, "ever", 0, 200_000)), (0, 0));

    let rested = |in_hurry| {
        let in_hurry = AtomicBool::new(in_hurry);
        let (mut rest, worked) = (Rest::new(&in_hurry), Duration::from_millis(3));
        rest.rested = Instant::now().checked_sub(worked).unwrap();
        let begun = rest.rested;
        rest.rest();
        (rest.rested - begun).saturating_sub(worked)
    };
    assert!(rested(false) >= Duration::from_millis(9));
    assert_eq!(rested(true), Duration::ZERO);
}

/// A server that stops at any moment of a save leaves the old snapshot or the new one.
#[test]
fn half_a_save_is_no_save() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let before = store(11);
    add(&before, "ever", 0, 100);
    let keeper = Folder::open(path, NOW).unwrap();
    keeper.save(&before, NOW).unwrap();
    // The tables of the next one are there, whole or not, and the manifest is still that of the last.
    fs::write(path.join("filters-2"), "half").unwrap();
    fs::write(path.join("manifest.new"), "half").unwrap();
    drop(keeper);
    let after = reopen(path).unwrap().unwrap();
    assert_eq!(add(&after, "ever", 0, 100), 0);
    let keeper = Folder::open(path, NOW).unwrap();
    let saved = keeper.look().unwrap().unwrap();
    keeper.restore(&saved, &store(11)).unwrap();
    add(&after, "ever", 100, 200);
    keeper.save(&after, NOW).unwrap();
    drop(keeper);
    assert_eq!(add(&reopen(path).unwrap().unwrap(), "ever", 0, 200), 0);
}

/// Damage anywhere is found: the server does not start with half of what it remembered.
#[test]
fn damage_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let before = store(11);
    fill(&before);
    Folder::open(path, NOW).unwrap().save(&before, NOW).unwrap();
    for name in ["manifest", "filters-1"] {
        let file = path.join(name);
        let whole = fs::read(&file).unwrap();
        for at in (0..whole.len()).step_by(1 + whole.len() / 97) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            fs::write(&file, &damaged).unwrap();
            let error = reopen(path).map(drop).unwrap_err();
            assert!(error.contains(name) && error.contains("nothing was changed"), "{at}: {error}");
            fs::write(&file, &whole[..at]).unwrap();
            reopen(path).map(drop).unwrap_err();
        }
        fs::write(&file, &whole).unwrap();
    }
    fs::remove_file(path.join("filters-1")).unwrap();
    assert!(reopen(path).map(drop).unwrap_err().contains("filters-1: "));
}

/// The manifest of the first version, which knows no journal.
#[test]
fn the_first_version_is_taken_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let before = store(11);
    add(&before, "ever", 0, 100);
    let keeper = Folder::open(path, NOW).unwrap();
    keeper.save(&before, NOW).unwrap();
    let saved = keeper.look().unwrap().unwrap();
    drop(keeper);
    let first = Format::new(*b"\x89LSERV\r\n", 1);
    let bytes = codec::to_vec(first, |out| {
        [1, 11, NOW, saved.records.len() as u64].into_iter().for_each(|n| out.u64(n));
        for record in &saved.records {
            let What::Filter { name, options, counts, .. } = &record.what else { panic!() };
            out.u8(0);
            out.block(name);
            out.flag(false);
            out.u64(0);
            options.write(out);
            [counts.fresh, 0, 0, 0, NOW, record.fresh, record.length]
                .into_iter()
                .for_each(|n| out.u64(n));
        }
    });
    fs::write(path.join("manifest"), bytes).unwrap();
    let after = reopen(path).unwrap().unwrap();
    assert_eq!(add(&after, "ever", 0, 100), 0);
}
