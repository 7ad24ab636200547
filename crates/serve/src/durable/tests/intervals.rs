//! Filters that are asked for intervals.

use super::{Kept, NOW};
use crate::command::Keeper;
use crate::store::{Family, Numbers, Options, Outcome, Reach, Scratch, as_digest};
use std::fs;

/// At this rate no false positive comes up.
pub(super) fn options(reach: Reach) -> Options {
    let family = Family::Intervals(Numbers::of("number").unwrap());
    Options { family, reach, capacity: 1000, fpr: 1e-12, ..Options::default() }
}

fn key(n: u32) -> u128 {
    u128::from(n) * 1000
}

impl Kept {
    fn mark(&self, name: &str, keys: std::ops::Range<u32>, now: u64) -> usize {
        let keys: Vec<_> = keys.map(|n| as_digest(key(n))).collect();
        let mut outcomes = Vec::new();
        let entry = self.store.filter_or_new(name.as_bytes(), now).unwrap();
        entry.lock().observe(&keys, now, &mut Scratch::default(), &mut outcomes);
        self.folder.commit().unwrap();
        outcomes.iter().filter(|outcome| **outcome == Outcome::Fresh).count()
    }

    /// Is there a key between this one and the next, either included?
    fn any(&self, name: &str, from: u128, to: u128, now: u64) -> bool {
        let Some(entry) = self.store.filter(name.as_bytes(), now) else { return false };
        entry.lock().any(from..=to, None, now).unwrap().0
    }
}

/// What came before a snapshot, after it, and while it was written, is there after a crash, and nothing else. More keys come than were
/// planned for, so that it grows.
#[test]
fn what_is_written_down_is_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let before = Kept::open(path, false).unwrap();
    for part in 0..3 {
        let now = NOW + u64::from(part) * 20_000;
        for name in ["r", "R"] {
            assert_eq!(before.mark(name, part * 900..part * 900 + 900, now), 900, "{name}");
        }
        // Renewed.
        assert_eq!(before.mark("r", 0..100, now), 0);
        let entry = before.store.filter(b"R", now).unwrap();
        entry.lock().remember(as_digest(key(50_000)), now, now).unwrap();
        if part < 2 {
            // Half of them wait until the filter was written.
            let mut halves = 0;
            before
                .folder
                .save_at(&before.store, now, &mut || {
                    halves += 1;
                    if halves < 5 {
                        before.mark("r", 10_000 + halves * 10..10_010 + halves * 10, now);
                    }
                })
                .unwrap();
            assert!(halves >= 5, "{halves}");
        }
    }
    let facts = |kept: &Kept| {
        ["r", "R"].map(|name| {
            let entry = kept.store.filter(name.as_bytes(), NOW).unwrap();
            let inner = entry.lock();
            (inner.counts.fresh, inner.filter.fresh(), inner.options.clone())
        })
    };
    let expected = facts(&before);
    drop(before);
    for round in 0..2 {
        let after = Kept::open(path, false).unwrap();
        assert_eq!(after.recovered.changes > 0, round == 0);
        assert_eq!((after.recovered.torn, after.recovered.damaged), (0, 0));
        assert_eq!(facts(&after), expected);
        let now = NOW + 40_000;
        for n in (0..2_700).chain(10_010..10_050) {
            assert!(after.any("r", key(n), key(n), now), "{n}");
            assert!(after.any("r", key(n).saturating_sub(5), key(n) + 5, now), "{n}");
            assert!(!after.any("r", key(n) + 1, key(n) + 999, now), "{n}");
        }
        for n in (0..2_700).chain([50_000]) {
            assert!(after.any("R", key(n), key(n) + 1, now), "{n}");
            assert!(!after.any("R", key(n) + 1, key(n) + 999, now), "{n}");
        }
        // Those of the first part have expired but for the slack, and but for the ones that were renewed.
        let later = NOW + 65_000;
        assert!(after.any("r", key(50), key(50), later));
        assert!((200..900).all(|n| !after.any("r", key(n), key(n), later)), "expired");
        assert!((900..2_700).all(|n| after.any("r", key(n), key(n), later)));
        after.folder.save(&after.store, now).unwrap();
    }
    assert!(fs::read_dir(path).unwrap().count() > 2);
}

/// A dump that was taken up, and what came to it later.
#[test]
fn restored_filters_are_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let before = Kept::open(folder.path(), false).unwrap();
    before.mark("r", 0..500, NOW);
    let dump = before.store.dump(&before.store.filter(b"r", NOW).unwrap(), NOW);
    let commit = || before.folder.commit();
    before.store.restore(b"other", &dump, (false, None), NOW, &commit).unwrap();
    assert_eq!(before.mark("other", 400..600, NOW), 100);
    before.store.filter(b"other", NOW).unwrap().expire(Some(NOW + 50_000));
    before.folder.commit().unwrap();
    drop(before);
    let after = Kept::open(folder.path(), false).unwrap();
    assert!((0..600).all(|n| after.any("other", key(n), key(n), NOW)));
    assert!((0..600).all(|n| after.any("r", key(n), key(n), NOW) == (n < 500)));
    assert!(!after.any("other", key(0) + 1, key(1) - 1, NOW));
    assert!(after.store.filter(b"other", NOW + 50_000).is_none());
}
