//! Journals: what is written down is remembered, whatever happens to the process, the disk and the clock.

mod crash;
mod full;
mod intervals;
mod restored;

use super::disk::{Disk, Medium, RealDisk};
use super::journal::{HEADER, Journal};
use super::{Folder, Recovered};
use crate::command::Keeper;
use crate::store::{
    Clock, KeySpaceOptions, Life, Options, Outcome, Reach, Scratch, Store, Template,
};
use std::fs;
use std::io;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

const NOW: u64 = 1_800_000_000_000;
const SEED: u64 = 11;

fn store() -> Store {
    store_of(64 << 20)
}

/// With so many bytes of memory.
fn store_of(memory: u64) -> Store {
    let options = Options { capacity: 1000, fpr: 1e-6, ..Options::default() };
    let template = |pattern: &str, reach| Template {
        pattern: pattern.into(),
        options: Options { reach, ..options.clone() },
    };
    let templates = vec![
        template("w*", Reach::Within(60_000)),
        template("l*", Reach::Last(500)),
        Template { pattern: "r*".into(), options: intervals::options(Reach::Within(60_000)) },
        Template { pattern: "R*".into(), options: intervals::options(Reach::Forever) },
        template("*", Reach::Forever),
    ];
    let keys = KeySpaceOptions { capacity: 1000, ..KeySpaceOptions::default() };
    Store::new(SEED, memory, 1000, templates, keys)
}

/// A server's memory and its folder.
struct Kept {
    store: Store,
    folder: Folder,
    recovered: Recovered,
    newest: u64,
}

impl Kept {
    /// Takes up what a folder holds, as a server does at its start.
    fn open(path: &Path, leaves_out: bool) -> Result<Self, String> {
        Self::open_with(store(), path, leaves_out)
    }

    /// The same, into this memory.
    fn open_with(store: Store, path: &Path, leaves_out: bool) -> Result<Self, String> {
        let folder = Folder::open(path, NOW)?;
        let saved = folder.look().map_err(|fault| fault.to_string())?;
        let journaled = folder.seed_of_journals(saved.as_ref())?;
        assert!(journaled.is_none_or(|seed| seed == SEED));
        let (recovered, newest) = store.load(|| {
            if let Some(saved) = &saved {
                folder.restore(saved, &store).map_err(|fault| fault.to_string())?;
            }
            folder.replay(saved.as_ref(), leaves_out, &store)
        })?;
        folder.begin_journal(&store.changes, SEED, true)?;
        Ok(Self { store, folder, recovered, newest })
    }

    /// How many of these keys are fresh.
    fn add(&self, name: &str, keys: std::ops::Range<u32>, now: u64) -> usize {
        let digests: Vec<_> = keys.map(|key| self.store.digest(&key.to_le_bytes())).collect();
        let mut outcomes = Vec::new();
        let entry = self.store.filter_or_new(name.as_bytes(), now).unwrap();
        entry.lock().observe(&digests, now, &mut Scratch::default(), &mut outcomes);
        self.folder.commit().unwrap();
        outcomes.iter().filter(|outcome| **outcome == Outcome::Fresh).count()
    }

    fn has(&self, name: &str, key: u32, now: u64) -> bool {
        let Some(entry) = self.store.filter(name.as_bytes(), now) else { return false };
        let mut found = [false];
        entry.lock().contains(&[self.store.digest(&key.to_le_bytes())], now, &mut found);
        found[0]
    }

    fn set(&self, key: u32, ttl: u64, now: u64) -> Outcome {
        let life = Life::Ms { ttl: NonZeroU64::new(ttl).unwrap(), exact: true };
        let (digest, mut outcomes) = (self.store.digest(&key.to_le_bytes()), Vec::new());
        let mut scratch = Scratch::default();
        self.store.keys.set_fresh(&[digest], life, now, &mut scratch, &mut outcomes).unwrap();
        self.folder.commit().unwrap();
        outcomes[0]
    }
}

/// Keys that were taken out stay out, and those that came again after it are there: before a snapshot, and after it.
#[test]
fn what_was_taken_out_is_not_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let before = Kept::open(path, false).unwrap();
    let digest = |key: u32| before.store.digest(&key.to_le_bytes());
    for name in ["w", "last"] {
        before.add(name, 0..400, NOW);
        let entry = before.store.filter(name.as_bytes(), NOW).unwrap();
        for key in 0..300 {
            if key == 150 {
                before.folder.save(&before.store, NOW).unwrap();
            }
            assert_eq!(entry.lock().forget(digest(key), NOW), Ok(true), "{name} {key}");
        }
        before.add(name, 100..200, NOW);
    }
    for key in 0..400 {
        assert_eq!(before.set(key, 1 << 20, NOW), Outcome::Fresh);
    }
    for key in 0..300 {
        if key == 150 {
            before.folder.save(&before.store, NOW).unwrap();
        }
        assert_eq!(before.store.keys.forget(&[digest(key)], NOW), Ok(1));
    }
    assert!((100..200).all(|key| before.set(key, 1 << 21, NOW) == Outcome::Fresh));
    // From 1 << 20 to 1 << 21.
    let life = Life::Ms { ttl: NonZeroU64::new(1 << 21).unwrap(), exact: true };
    assert!(
        (300..350).all(|key| before.store.keys.change_life(digest(key), life, NOW) == Ok(true))
    );
    before.folder.commit().unwrap();
    drop(before);
    for round in 0..2 {
        let after = Kept::open(path, false).unwrap();
        assert_eq!(after.recovered.changes > 0, round == 0);
        let digest = |key: u32| after.store.digest(&key.to_le_bytes());
        for key in 0..400 {
            let is_there = (100..200).contains(&key) || key >= 300;
            for name in ["w", "last"] {
                assert_eq!(after.has(name, key, NOW), is_there, "{name} {key}");
            }
            assert_eq!(after.store.keys.contains(digest(key), NOW), is_there, "{key}");
            let later = NOW + (1 << 20) + (1 << 18);
            let lives_on = is_there && key < 350;
            assert_eq!(after.store.keys.contains(digest(key), later), lives_on, "{key}");
        }
        let removed =
            |name: &str| after.store.filter(name.as_bytes(), NOW).unwrap().lock().counts.removed;
        assert_eq!(["w", "last"].map(removed), [300, 300]);
        after.folder.save(&after.store, NOW).unwrap();
    }
}

/// What changed before a snapshot, while it was taken and after it, of every kind.
#[test]
fn what_is_written_down_is_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let before = Kept::open(path, false).unwrap();
    for part in 0..3 {
        let keys = part * 200..part * 200 + 200;
        let now = NOW + u64::from(part) * 20_000;
        for name in ["w", "last", "ever"] {
            assert_eq!(before.add(name, keys.clone(), now), 200, "{name}");
        }
        // Renewed.
        assert_eq!(before.add("w", 0..100, now), 0);
        assert_eq!(before.set(part, 1 << 20, now), Outcome::Fresh);
        assert_eq!(before.set(100 + part, 1 << 21, now), Outcome::Fresh);
        before.add(&format!("dropped{part}"), 0..9, now);
        before.add(&format!("expires{part}"), 0..9, now);
        let entry = |name: &str| before.store.filter(name.as_bytes(), now).unwrap();
        entry(&format!("expires{part}")).expire(Some(NOW + 1_000_000));
        let digest = before.store.digest(&77_777u32.to_le_bytes());
        entry("ever").lock().remember(digest, now, now).unwrap();
        assert!(before.store.names.remove(format!("dropped{part}").as_bytes(), now));
        before.folder.commit().unwrap();
        if part < 2 {
            before.folder.save(&before.store, now).unwrap();
        }
    }
    let counts = |kept: &Kept, name: &str| {
        let entry = kept.store.filter(name.as_bytes(), NOW).unwrap();
        let inner = entry.lock();
        (inner.counts.fresh, inner.filter.fresh())
    };
    let expected = ["w", "last", "ever"].map(|name| counts(&before, name));
    drop(before);
    for round in 0..2 {
        let after = Kept::open(path, false).unwrap();
        assert_eq!(after.recovered.changes > 0, round == 0);
        assert_eq!((after.recovered.torn, after.recovered.damaged), (0, 0));
        assert_eq!(["w", "last", "ever"].map(|name| counts(&after, name)), expected);
        let now = NOW + 60_000;
        for key in 0..600 {
            assert!(after.has("ever", key, now) && after.has("ever", 77_777, now), "{key}");
            // Of the last 500 arrivals.
            assert!(key < 100 || after.has("last", key, now), "{key}");
            // Some were renewed; others have expired, but for the slack.
            let in_window = (200..600).contains(&key) || key < 100;
            assert!(!in_window || after.has("w", key, now), "{key}");
        }
        assert!((0..3).all(|part| !after.has(&format!("dropped{part}"), 0, now)));
        assert!((0..3).all(|part| after.has(&format!("expires{part}"), 0, now)));
        assert!((0..3).all(|part| !after.has(&format!("expires{part}"), 0, NOW + 1_000_000)));
        for key in (0..3).chain(100..103) {
            assert_eq!(after.set(key, 1 << 20, now), Outcome::Seen);
        }
        // Without its journal, which is in the snapshot now.
        after.folder.save(&after.store, now).unwrap();
    }
}

/// Filters and keys that come and go, each of which takes much of the memory there is: what was enough for them is enough to
/// take them up again.
#[test]
fn what_has_expired_takes_no_memory() {
    const MEMORY: u64 = 1 << 20;
    let folder = tempfile::tempdir().unwrap();
    let before = Kept::open_with(store_of(MEMORY), folder.path(), false).unwrap();
    let (mut now, mut most, mut sum) = (NOW, 0, 0);
    for round in 0..30 {
        let used = before.store.budget.used();
        let name = format!("expires{round}");
        assert!(before.add(&name, 0..10_000, now) > 9_900, "{round}");
        before.store.filter(name.as_bytes(), now).unwrap().expire(Some(now + 1_000));
        for key in 0..2_000 {
            let digest = before.store.digest(&key.to_string().into_bytes());
            let ttl = NonZeroU64::new(500 + round).unwrap();
            before.store.keys.set(digest, Life::Ms { ttl, exact: true }, now).unwrap();
        }
        before.folder.commit().unwrap();
        most = most.max(before.store.budget.used());
        sum += before.store.budget.used() - used;
        now += 1_000;
        before.store.tidy(now);
    }
    assert!(most <= MEMORY && sum > 2 * MEMORY, "{most} {sum}");
    before.add("last", 0..400, now);
    drop(before);
    let after = Kept::open_with(store_of(MEMORY), folder.path(), false).unwrap();
    assert!((0..400).all(|key| after.has("last", key, now)));
    assert!(after.store.filter(b"expires29", now).is_none());
}

#[test]
fn forgetting_everything_is_written_down() {
    let folder = tempfile::tempdir().unwrap();
    let before = Kept::open(folder.path(), false).unwrap();
    before.add("old", 0..10, NOW);
    before.set(1, 1000, NOW);
    before.folder.save(&before.store, NOW).unwrap();
    before.store.clear();
    before.add("new", 0..10, NOW);
    before.set(2, 1000, NOW);
    drop(before);
    let after = Kept::open(folder.path(), false).unwrap();
    assert!(after.store.filter(b"old", NOW).is_none() && after.has("new", 3, NOW));
    assert_eq!((after.set(1, 1000, NOW), after.set(2, 1000, NOW)), (Outcome::Fresh, Outcome::Seen));
}

/// A filter that was dropped and made again under its name is the later one.
#[test]
fn a_name_used_again_is_the_later_filter() {
    let folder = tempfile::tempdir().unwrap();
    let before = Kept::open(folder.path(), false).unwrap();
    before.add("f", 0..10, NOW);
    before.folder.save(&before.store, NOW).unwrap();
    before.store.names.remove(b"f", NOW);
    before.add("f", 10..20, NOW);
    before.store.filter(b"f", NOW).unwrap().expire(Some(NOW + 5));
    before.add("f", 20..30, NOW + 5);
    drop(before);
    let after = Kept::open(folder.path(), false).unwrap();
    assert!(!after.has("f", 1, NOW + 5) && !after.has("f", 11, NOW + 5));
    assert!((20..30).all(|key| after.has("f", key, NOW + 500)));
}

/// A small journal: its file, and where each change begins.
fn small(path: &Path) -> (PathBuf, Vec<usize>) {
    let kept = Kept::open(path, false).unwrap();
    let file = path.join("journal-1");
    let mut ends = vec![HEADER as usize];
    let mut note = || ends.push(fs::metadata(&file).unwrap().len() as usize);
    kept.add("ever", 0..1, NOW);
    // Made, and its first key.
    note();
    for key in 1..4 {
        kept.add("ever", key..key + 1, NOW);
        note();
        kept.set(key, 1_000_000, NOW);
        note();
    }
    (file, ends)
}

/// Cut off anywhere: what was whole is remembered, the rest is cut off, and the journal goes on.
#[test]
fn a_torn_tail_is_cut_off() {
    let original = tempfile::tempdir().unwrap();
    let (file, ends) = small(original.path());
    let whole = fs::read(&file).unwrap();
    assert_eq!(whole.len(), *ends.last().unwrap());
    for cut in 0..whole.len() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("journal-1");
        fs::write(&file, &whole[..cut]).unwrap();
        if cut < HEADER as usize {
            // A file with half a header is never there.
            let error = Kept::open(folder.path(), false).map(drop).unwrap_err();
            assert!(error.contains("journal-1"), "{error}");
            continue;
        }
        let kept = Kept::open(folder.path(), false).unwrap();
        let key = |number: usize| number.div_ceil(2) as u32;
        for (number, end) in ends.iter().enumerate().skip(2) {
            let is_there = match number % 2 {
                0 => kept.has("ever", key(number - 1), NOW),
                _ => kept.set(key(number - 1), 1_000_000, NOW) == Outcome::Seen,
            };
            assert_eq!(is_there, *end <= cut, "{number} at {cut}");
        }
        assert_eq!(fs::metadata(&file).unwrap().len() + kept.recovered.torn, cut as u64);
        kept.add("later", 0..1, NOW);
        drop(kept);
        let again = Kept::open(folder.path(), false).unwrap();
        assert!(again.has("later", 0, NOW) && again.recovered.torn == 0, "{cut}");
    }
}

/// Damaged anywhere: the server does not start, and says where; or leaves out only what is damaged.
#[test]
fn damage_is_told_or_left_out() {
    let original = tempfile::tempdir().unwrap();
    let (file, ends) = small(original.path());
    let whole = fs::read(&file).unwrap();
    let last = ends[ends.len() - 2];
    // The creation of the filter is a change of its own.
    let second =
        HEADER as usize + 12 + u32::from_le_bytes(whole[52..56].try_into().unwrap()) as usize;
    let mut begins = ends.clone();
    begins.push(second);
    begins.sort_unstable();
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x24;
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("journal-1"), &damaged).unwrap();
        if at < last {
            let error = Kept::open(folder.path(), false).map(drop).unwrap_err();
            let begin = begins.iter().rev().find(|&&begin| begin <= at).copied().unwrap_or(0);
            assert!(error.contains(&format!("journal-1, byte {begin}: ")), "{at}: {error}");
            assert_eq!(fs::read(folder.path().join("journal-1")).unwrap(), damaged);
        }
        let kept = Kept::open(folder.path(), at < last).unwrap();
        if at < HEADER as usize {
            assert_eq!(kept.recovered.damaged, whole.len() as u64);
            continue;
        }
        let lost = begins.windows(2).position(|pair| (pair[0]..pair[1]).contains(&at)).unwrap();
        let length = (begins[lost + 1] - begins[lost]) as u64;
        match at < last {
            true => assert_eq!(kept.recovered.damaged, length, "{at}"),
            false => assert_eq!(kept.recovered.torn, length, "{at}"),
        }
        assert_eq!(kept.recovered.changes as usize, begins.len() - 2, "{at}");
    }
}

#[test]
fn a_journal_that_is_missing_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for part in 0..3 {
        Kept::open(path, false).unwrap().add("ever", part..part + 1, NOW);
    }
    fs::remove_file(path.join("journal-2")).unwrap();
    let error = Kept::open(path, false).map(drop).unwrap_err();
    assert!(error.contains("journal-3, byte 0: a journal before this one is missing"), "{error}");
    let kept = Kept::open(path, true).unwrap();
    assert!(kept.has("ever", 0, NOW) && kept.has("ever", 2, NOW) && !kept.has("ever", 1, NOW));
}

/// A disk that takes so many bytes, and may break.
#[derive(Clone, Debug)]
struct SmallDisk {
    real: Arc<RealDisk>,
    left: Arc<AtomicI64>,
    has_reserve: Arc<AtomicBool>,
    is_broken: Arc<AtomicBool>,
}

const RESERVED: i64 = 4096;

#[derive(Debug)]
struct SmallMedium {
    disk: SmallDisk,
    file: Arc<dyn Medium>,
    length: Mutex<u64>,
}

impl SmallDisk {
    fn new(path: &Path, left: i64) -> Self {
        Self {
            real: Arc::new(RealDisk(path.into())),
            left: Arc::new(AtomicI64::new(left)),
            has_reserve: Arc::default(),
            is_broken: Arc::default(),
        }
    }

    fn take(&self, bytes: i64) -> io::Result<()> {
        if self.left.load(Ordering::SeqCst) < bytes {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.left.fetch_sub(bytes, Ordering::SeqCst);
        Ok(())
    }
}

impl Disk for SmallDisk {
    fn create(&self, number: u64, header: &[u8]) -> io::Result<Arc<dyn Medium>> {
        let file = self.real.create(number, header)?;
        self.take(header.len() as i64)?;
        let length = Mutex::new(header.len() as u64);
        Ok(Arc::new(SmallMedium { disk: self.clone(), file, length }))
    }

    fn reserve(&self) -> io::Result<()> {
        if !self.has_reserve.load(Ordering::SeqCst) {
            self.take(RESERVED)?;
            self.has_reserve.store(true, Ordering::SeqCst);
        }
        Ok(())
    }

    fn release(&self) {
        if self.has_reserve.swap(false, Ordering::SeqCst) {
            self.left.fetch_add(RESERVED, Ordering::SeqCst);
        }
    }
}

impl Medium for SmallMedium {
    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let mut length = self.length.lock().unwrap();
        let more = (at + bytes.len() as u64).saturating_sub(*length);
        if let Err(full) = self.disk.take(more as i64) {
            // As much as there is room for, as real disks do.
            let room = self.disk.left.swap(0, Ordering::SeqCst) as usize;
            self.file.write(&bytes[..room.min(bytes.len())], at)?;
            *length += room as u64;
            return Err(full);
        }
        *length += more;
        self.file.write(bytes, at)
    }

    fn sync(&self) -> io::Result<()> {
        match self.disk.is_broken.load(Ordering::SeqCst) {
            true => Err(io::Error::other("input/output error")),
            false => self.file.sync(),
        }
    }
}

fn mark(store: &Store, key: u32) {
    let entry = store.filter_or_new(b"ever", NOW).unwrap();
    entry.lock().remember(store.digest(&key.to_le_bytes()), NOW, NOW).unwrap();
}

/// Whoever asks before each change hears when the disk is full; what was committed is not lost; and when there is room
/// again, it goes on.
#[test]
fn a_full_disk_refuses_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let disk = SmallDisk::new(folder.path(), RESERVED + 2_000);
    let store = store();
    let journal = Journal::begin(Box::new(disk.clone()), &store.changes, SEED, 1, true).unwrap();
    let said = Mutex::new(Vec::new());
    let tick = || {
        journal.tick(&|line| said.lock().unwrap().push(line.to_owned()), &|| panic!("a snapshot"));
    };
    let (mut key, mut rounds) = (0, 0);
    while rounds < 3 {
        while journal.refusal().is_none() {
            mark(&store, key);
            journal.commit().unwrap();
            key += 1;
        }
        // Changes of other workers that were under way.
        for _ in 0..20 {
            mark(&store, key);
            journal.commit().unwrap();
            key += 1;
        }
        tick();
        assert!(journal.refusal().is_some() && said.lock().unwrap().len() == 2 * rounds + 1);
        disk.left.fetch_add(RESERVED + 1_000, Ordering::SeqCst);
        tick();
        assert!(journal.refusal().is_none() && said.lock().unwrap().len() == 2 * rounds + 2);
        rounds += 1;
    }
    assert!(key > 60, "{key}");
    drop(journal);
    let kept = Kept::open(folder.path(), false).unwrap();
    assert!((0..key).all(|key| kept.has("ever", key, NOW)));
    assert_eq!(kept.recovered.torn, 0);
}

/// More than the room that was kept: what is not written is not acknowledged.
#[test]
fn what_cannot_be_written_is_not_committed() {
    let folder = tempfile::tempdir().unwrap();
    let disk = SmallDisk::new(folder.path(), RESERVED + 500);
    let store = store();
    let journal = Journal::begin(Box::new(disk.clone()), &store.changes, SEED, 1, false).unwrap();
    let mut acknowledged = 0;
    for key in 0..500 {
        mark(&store, key);
        match journal.commit() {
            Ok(()) => acknowledged = key + 1,
            Err(error) => assert!(error.contains("storage"), "{error}"),
        }
    }
    assert!((50..500).contains(&acknowledged), "{acknowledged}");
    // All of it, once there is room.
    disk.left.fetch_add(100_000, Ordering::SeqCst);
    journal.tick(&|_| (), &|| ());
    assert!(journal.refusal().is_none() && journal.commit().is_ok());
    drop(journal);
    let kept = Kept::open(folder.path(), false).unwrap();
    assert!((0..500).all(|key| kept.has("ever", key, NOW)));
}

/// After an error of the disk, what was written before may be lost: only a snapshot makes it good.
#[test]
fn a_broken_disk_needs_a_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let disk = SmallDisk::new(folder.path(), 1 << 20);
    let store = store();
    let journal = Journal::begin(Box::new(disk.clone()), &store.changes, SEED, 1, true).unwrap();
    mark(&store, 1);
    journal.commit().unwrap();
    disk.is_broken.store(true, Ordering::SeqCst);
    mark(&store, 2);
    assert_eq!(journal.commit(), Err("input/output error".into()));
    disk.is_broken.store(false, Ordering::SeqCst);
    let asked = AtomicBool::new(false);
    journal.tick(&|_| (), &|| asked.store(true, Ordering::SeqCst));
    assert!(asked.load(Ordering::SeqCst) && journal.refusal().is_some());
    journal.rotate(2).unwrap();
    journal.snapshot_taken();
    assert!(journal.refusal().is_none());
    mark(&store, 3);
    journal.commit().unwrap();
}

/// A machine whose clock was a day ahead, or is set back: windows keep their length, and nothing that is in them is
/// forgotten.
#[test]
fn the_clock_goes_on_from_the_newest_moment() {
    const DAY: u64 = 86_400_000;
    for wrong in [DAY, 1_000, 0] {
        let folder = tempfile::tempdir().unwrap();
        let before = Kept::open(folder.path(), false).unwrap();
        before.add("w", 0..10, NOW + wrong);
        before.set(1, 50_000, NOW + wrong);
        drop(before);
        let after = Kept::open(folder.path(), false).unwrap();
        assert_eq!(after.newest, NOW + wrong);
        let clock = Clock::new(NOW, after.newest, 0);
        let now = clock.read(NOW + 30_000, 30_000);
        // Half a minute has passed since the newest moment, or by the wall clock.
        assert!(now >= NOW + 30_000 && now <= NOW + wrong + 30_000, "{wrong}: {now}");
        assert!((0..10).all(|key| after.has("w", key, now)));
        assert_eq!(after.set(1, 50_000, now), Outcome::Seen);
        // One window later they are gone, whatever the wall clock says.
        let later = clock.read(NOW, 62_000 + 30_000);
        assert!((0..10).all(|key| !after.has("w", key, later + 1_000)));
    }
}
