//! Filters that were dumped and restored are remembered as all others.

use super::crash::image;
use super::{Kept, NOW};
use crate::command::Keeper;
use crate::store::{Refusal, Store};
use std::cell::Cell;
use std::fs;
use std::path::Path;

fn dump(store: &Store, name: &str) -> Vec<u8> {
    store.dump(&store.filter(name.as_bytes(), NOW).unwrap(), NOW)
}

fn restore(kept: &Kept, name: &str, dump: &[u8], replaces: bool) {
    let commit = || kept.folder.commit();
    kept.store.restore(name.as_bytes(), dump, (replaces, None), NOW, &commit).unwrap();
    kept.folder.commit().unwrap();
}

/// How many of so many keys are there.
fn count(kept: &Kept, name: &str, keys: std::ops::Range<u32>) -> usize {
    keys.filter(|&key| kept.has(name, key, NOW)).count()
}

/// Before a snapshot, between two, and after one; with changes before the restoring and after it.
#[test]
fn what_was_restored_is_remembered() {
    for name in ["w", "last", "ever"] {
        let folder = tempfile::tempdir().unwrap();
        let before = Kept::open(folder.path(), false).unwrap();
        before.add(name, 0..100, NOW);
        let dumped = dump(&before.store, name);
        before.add(name, 100..200, NOW);
        restore(&before, "other", &dumped, false);
        before.add("other", 200..300, NOW);
        // As it was, without the second hundred.
        restore(&before, name, &dumped, true);
        before.add(name, 300..400, NOW);
        for round in 0..4 {
            let after = Kept::open(image(folder.path()).path(), false).unwrap();
            let has =
                |name: &str| [0, 100, 200, 300].map(|key| count(&after, name, key..key + 100));
            assert_eq!(has("other"), [100, 0, 100, 0], "{name} {round}");
            assert_eq!(has(name), [100, 0, 0, 100], "{name} {round}");
            assert_eq!(after.store.budget.used(), before.store.budget.used());
            let fresh = |kept: &Kept| kept.store.filter(b"other", NOW).unwrap().lock().counts.fresh;
            assert_eq!(fresh(&after), fresh(&before));
            match round {
                0 => before.folder.save(&before.store, NOW).unwrap(),
                1 => restore(&before, name, &dump(&before.store, name), true),
                _ => {
                    before.store.names.remove(b"other", NOW);
                    restore(&before, "other", &dumped, false);
                    before.add("other", 200..300, NOW);
                }
            }
        }
    }
}

/// While a snapshot is taken: in each piece of it a filter is replaced, and the server stops.
#[test]
fn restored_while_a_snapshot_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let kept = Kept::open(folder.path(), false).unwrap();
    kept.add("ever", 0..100, NOW);
    kept.add("w", 0..100, NOW);
    let dumped = dump(&kept.store, "ever");
    let (mut next, mut images) = (1_000, Vec::new());
    let mut between = || {
        restore(&kept, "ever", &dumped, true);
        assert_eq!(kept.add("ever", next..next + 10, NOW), 10);
        images.push((image(folder.path()), next));
        next += 10;
    };
    kept.folder.save_at(&kept.store, NOW, &mut between).unwrap();
    assert!(images.len() > 3, "{}", images.len());
    images.push((image(folder.path()), next - 10));
    for (image, last) in images {
        let after = Kept::open(image.path(), false).unwrap();
        assert_eq!(count(&after, "ever", 0..100), 100);
        assert_eq!(count(&after, "ever", last..last + 10), 10, "{last}");
        assert_eq!(count(&after, "ever", 1_000..last), 0, "{last}");
        assert_eq!(count(&after, "w", 0..100), 100);
    }
}

/// A snapshot is begun, and taken, in the middle of what is written of a dump: all of it is written again.
#[test]
fn a_snapshot_in_the_middle() {
    let folder = tempfile::tempdir().unwrap();
    let kept = Kept::open(folder.path(), false).unwrap();
    kept.add("ever", 0..60_000, NOW);
    let dumped = dump(&kept.store, "ever");
    let (batches, saves) = (Cell::new(0), Cell::new(0));
    let commit = || {
        batches.set(batches.get() + 1);
        kept.folder.commit()?;
        // After the first batch, and after the first two of all when they are written again.
        if [1, 3].contains(&batches.get()) {
            saves.set(saves.get() + 1);
            kept.folder.save(&kept.store, NOW)?;
        }
        Ok(())
    };
    kept.store.restore(b"copy", &dumped, (false, None), NOW, &commit).unwrap();
    assert!(batches.get() > 4 && saves.get() == 2, "{} {}", batches.get(), saves.get());
    kept.add("copy", 100_000..100_100, NOW);
    let after = Kept::open(image(folder.path()).path(), false).unwrap();
    assert_eq!(count(&after, "copy", 0..1_000), 1_000);
    assert_eq!(count(&after, "copy", 100_000..100_100), 100);
    // A journal that cannot be written: nothing is there, here or after a start.
    let fails = || Err("no room".to_owned());
    let refused = kept.store.restore(b"more", &dumped, (false, None), NOW, &fails);
    assert_eq!(refused, Err(Refusal::Journal("no room".into())));
    let again = Kept::open(image(folder.path()).path(), false).unwrap();
    for kept in [&kept, &again] {
        assert!(kept.store.filter(b"more", NOW).is_none());
    }
    assert_eq!(again.store.budget.used(), kept.store.budget.used());
}

/// A filter is dumped while a snapshot is writing it, and others add to it.
#[test]
fn dumped_while_a_snapshot_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let kept = Kept::open(folder.path(), false).unwrap();
    kept.add("ever", 0..60_000, NOW);
    std::thread::scope(|threads| {
        let mut dumping = None;
        let mut next = 100_000;
        let mut between = || {
            let begin = || threads.spawn(|| dump(&kept.store, "ever"));
            dumping.get_or_insert_with(begin);
            kept.add("ever", next..next + 1, NOW);
            next += 1;
        };
        kept.folder.save_at(&kept.store, NOW, &mut between).unwrap();
        let dumped = dumping.unwrap().join().unwrap();
        restore(&kept, "copy", &dumped, false);
        assert!(next > 100_003, "{next}");
        assert_eq!(count(&kept, "copy", 0..60_000), 60_000);
        assert_eq!(count(&kept, "ever", 100_000..next), (next - 100_000) as usize);
    });
}

fn journal(folder: &Path) -> std::path::PathBuf {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    files.filter(|path| path.to_string_lossy().contains("journal-")).max().unwrap()
}

/// Written by half: it is the old filter, with all its keys.
#[test]
fn restored_by_half() {
    let folder = tempfile::tempdir().unwrap();
    let kept = Kept::open(folder.path(), false).unwrap();
    // Of several pieces.
    kept.add("ever", 0..60_000, NOW);
    let dumped = dump(&kept.store, "ever");
    assert!(dumped.len() > 2 * crate::store::change::PIECE, "{}", dumped.len());
    kept.add("ever", 100_000..100_100, NOW);
    let before = fs::metadata(journal(folder.path())).unwrap().len();
    restore(&kept, "ever", &dumped, true);
    let after = fs::metadata(journal(folder.path())).unwrap().len();
    for length in (before..after).step_by(50_000).chain([after - 1, after]) {
        let image = image(folder.path());
        let file = fs::File::options().write(true).open(journal(image.path())).unwrap();
        file.set_len(length).unwrap();
        let mut again = Kept::open(image.path(), false).unwrap();
        let news = if length == after { 0 } else { 100 };
        assert_eq!(count(&again, "ever", 100_000..100_100), news, "{length}");
        assert_eq!(count(&again, "ever", 0..1_000), 1_000);
        // What is half there does not stand in the way of the next one.
        restore(&again, "next", &dumped, false);
        drop(again);
        again = Kept::open(image.path(), false).unwrap();
        assert_eq!(count(&again, "next", 0..1_000), 1_000);
        assert_eq!(count(&again, "ever", 100_000..100_100), news);
    }
}

/// A damaged piece stops the start; with `--recover` the filter is left out, and all others are there.
#[test]
fn a_damaged_piece() {
    let folder = tempfile::tempdir().unwrap();
    let kept = Kept::open(folder.path(), false).unwrap();
    kept.add("ever", 0..60_000, NOW);
    let dumped = dump(&kept.store, "ever");
    let before = fs::metadata(journal(folder.path())).unwrap().len();
    restore(&kept, "copy", &dumped, false);
    kept.add("w", 0..100, NOW);
    let mut bytes = fs::read(journal(folder.path())).unwrap();
    bytes[before as usize + 100_000] ^= 1;
    let image = image(folder.path());
    fs::write(journal(image.path()), bytes).unwrap();
    assert!(Kept::open(image.path(), false).is_err());
    let after = Kept::open(image.path(), true).unwrap();
    assert!(after.store.filter(b"copy", NOW).is_none());
    assert_eq!((count(&after, "ever", 0..1_000), count(&after, "w", 0..100)), (1_000, 100));
}
