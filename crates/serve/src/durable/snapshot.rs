//! Snapshots: two files in a folder.
//!
//! `filters-N` has the tables of all filters, one behind the other, each in the product's own format. `manifest` says
//! which N, and what each filter is; it is replaced once `filters-N` is on disk. So whenever the process or the
//! machine stops, the old snapshot is there or the new one.
//!
//! Filters are written one after the other, and the keys of `SET` last. What is written is held: nobody changes it, and no
//! client waits either, as what comes meanwhile is put in a queue ([`Bounded::hold`]). So each filter is what it was at
//! one moment, after the snapshot was begun, and the keys of `SET` are what they were at one moment all together: one that
//! `EXPIRE` gives another life is in one of them. With a journal, the manifest says for each which changes are in it.

use super::disk::{JOURNAL, RealDisk};
use super::journal::Journal;
use super::recover::{self, JournalFault, Recovered};
use crate::command::{Keeper, Server};
use crate::store::{
    Bounded, Changes, Entry, Family, Held, Kept, Record, Refusal, Replay, SavedEntry, Share, Store,
    Table, Tables as Kinds, WITH_REMOVED, WITHOUT_JOURNAL, What,
};
use lately::codec::{self, Format};
use lately::{RestoreError, SnapshotError};
use lately_store::{Lock, Replacement};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

const MANIFEST: Format = Format::new(*b"\x89LSERV\r\n", WITH_REMOVED).since(WITHOUT_JOURNAL);
const NAME: &str = "manifest";
const TABLES: &str = "filters-";

/// The folder that snapshots are kept in. One server at a time has it.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    _lock: Lock,
    /// The number of the last snapshot or journal; held while a snapshot is taken.
    number: Mutex<u64>,
    journal: OnceLock<Journal>,
    is_saving: AtomicBool,
    /// Somebody waits until a snapshot is taken, so that none rests.
    in_hurry: AtomicBool,
    last: AtomicU64,
    asked: Mutex<Asked>,
    wake: Condvar,
}

/// What the thread that takes snapshots is asked for.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    to_save: bool,
    to_end: bool,
}

/// What a snapshot remembers besides the filters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Saved {
    number: u64,
    pub(crate) seed: u64,
    /// The moment of the snapshot.
    pub(crate) moment: u64,
    /// The place in the journal where what changed after it begins.
    pub(crate) place: u64,
    records: Vec<Record>,
}

impl Saved {
    /// How many filters it holds, those of keys included.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }
}

/// Why a snapshot cannot be taken up.
#[derive(Debug)]
pub(crate) struct RestoreFault {
    path: PathBuf,
    what: String,
}

impl fmt::Display for RestoreFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}; nothing was changed. Put a copy of the folder back, or move it away to begin with nothing remembered",
            self.path.display(),
            self.what
        )
    }
}

impl Folder {
    /// Makes the folder if need be, and locks it.
    pub(crate) fn open(path: &Path, now: u64) -> Result<Self, String> {
        let named = |error: io::Error| format!("{}: {error}", path.display());
        fs::create_dir_all(path).map_err(named)?;
        let lock = Lock::take_folder(path).map_err(|error| error.to_string())?;
        Ok(Self {
            path: path.into(),
            _lock: lock,
            number: Mutex::new(0),
            journal: OnceLock::new(),
            is_saving: AtomicBool::new(false),
            in_hurry: AtomicBool::new(false),
            last: AtomicU64::new(now),
            asked: Mutex::default(),
            wake: Condvar::new(),
        })
    }

    fn tables(&self, number: u64) -> PathBuf {
        self.path.join(format!("{TABLES}{number}"))
    }

    /// Reads the manifest, if there is one.
    pub(crate) fn look(&self) -> Result<Option<Saved>, RestoreFault> {
        let path = self.path.join(NAME);
        let fault = |what: String| RestoreFault { path: path.clone(), what };
        let mut file = match File::open(&path) {
            Ok(file) => BufReader::new(file),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(fault(error.to_string())),
        };
        let length = file.get_ref().metadata().map_err(|error| fault(error.to_string()))?.len();
        let saved = codec::read(
            MANIFEST,
            length,
            |into| file.read(into),
            |input| {
                let (number, seed, moment) = (input.u64()?, input.u64()?, input.u64()?);
                let place = if input.version() == WITHOUT_JOURNAL { 0 } else { input.u64()? };
                let mut records = Vec::new();
                for record in 0..input.u64()? {
                    records.push(Record::read(input, record + 1)?);
                }
                Ok::<_, SnapshotError>(Saved { number, seed, moment, place, records })
            },
        );
        saved.map(Some).map_err(|error: RestoreError<io::Error>| fault(error.to_string()))
    }

    /// Takes the filters of a snapshot into an empty store.
    pub(crate) fn restore(&self, saved: &Saved, store: &Store) -> Result<(), RestoreFault> {
        let path = self.tables(saved.number);
        let fault = |what: String| RestoreFault { path: path.clone(), what };
        *self.number.lock().unwrap_or_else(PoisonError::into_inner) = saved.number;
        self.last.store(saved.moment, Ordering::Relaxed);
        let file = File::open(&path).map_err(|error| fault(error.to_string()))?;
        let mut file = BufReader::with_capacity(1 << 16, file);
        for record in &saved.records {
            let mut part = file.by_ref().take(record.length);
            let family = match &record.what {
                What::Filter { options, .. } => options.family,
                What::Keys { .. } => Family::Bloom,
            };
            let tables = Kinds::restore_from(family, record.length, |into| part.read(into));
            let tables =
                tables.map_err(|error: RestoreError<io::Error>| fault(error.to_string()))?;
            take_up(store, record.clone(), tables).map_err(&fault)?;
        }
        Ok(())
    }

    /// The seed of the digests in the journals, if there are any that belong to this snapshot.
    pub(crate) fn seed_of_journals(&self, saved: Option<&Saved>) -> Result<Option<u64>, String> {
        let journals = self.journals(saved)?;
        let seeds = journals.iter().filter_map(|(_, path)| recover::header(path).ok());
        Ok(seeds.map(|header| header.seed).next())
    }

    fn journals(&self, saved: Option<&Saved>) -> Result<Vec<(u64, PathBuf)>, String> {
        recover::journals(&self.path, saved.map_or(0, |saved| saved.number))
            .map_err(|error| format!("{}: {error}", self.path.display()))
    }

    /// Makes the changes again that journals hold, on top of what was restored. Says what they amounted to, and the
    /// newest moment in them.
    pub(crate) fn replay(
        &self,
        saved: Option<&Saved>,
        leaves_out: bool,
        store: &Store,
    ) -> Result<(Recovered, u64), String> {
        let journals = self.journals(saved)?;
        let mut number = self.number.lock().unwrap_or_else(PoisonError::into_inner);
        *number = journals.last().map_or(*number, |(last, _)| (*number).max(*last));
        let mut replay = Replay::new(store);
        let place = saved.map(|saved| saved.place);
        let recovered = recover::replay(&journals, place, leaves_out, &mut replay)
            .map_err(|fault: JournalFault| fault.to_string())?;
        store.changes.start_at(recovered.end);
        Ok((recovered, replay.newest))
    }

    /// Writes down every change from here on.
    pub(crate) fn begin_journal(
        &self,
        changes: &Arc<Changes>,
        seed: u64,
        is_always: bool,
    ) -> Result<(), String> {
        let mut number = self.number.lock().unwrap_or_else(PoisonError::into_inner);
        *number += 1;
        let disk = Box::new(RealDisk(self.path.clone()));
        let journal = Journal::begin(disk, changes, seed, *number, is_always)
            .map_err(|error| format!("{}: {error}", self.path.display()))?;
        // There is only this place where one is set.
        let _ = self.journal.set(journal);
        Ok(())
    }

    /// The journal, if changes are written down.
    pub(crate) fn journal(&self) -> Option<&Journal> {
        self.journal.get()
    }

    /// Takes snapshots every so often, until told to end.
    pub(crate) fn keep(
        &self,
        server: &Server,
        every: Duration,
        now: impl Fn() -> u64,
        log: &dyn Fn(&str),
    ) {
        let mut commands = server.stats.commands.load(Ordering::Relaxed);
        let mut rest = Rest::new(&self.in_hurry);
        let mut next = Instant::now() + every;
        loop {
            let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            while !asked.to_save && !asked.to_end && Instant::now() < next {
                let left = next.saturating_duration_since(Instant::now());
                asked =
                    self.wake.wait_timeout(asked, left).unwrap_or_else(PoisonError::into_inner).0;
            }
            let Asked { to_save, to_end } = std::mem::take(&mut *asked);
            drop(asked);
            if to_end {
                return;
            }
            next = Instant::now() + every;
            let seen = server.stats.commands.load(Ordering::Relaxed);
            if seen != commands || to_save {
                match self.save_at(&server.store, now(), &mut || rest.rest()) {
                    Ok(()) => commands = seen,
                    Err(error) => log(&error),
                }
            }
        }
    }

    /// Ends [`Folder::keep`].
    pub(crate) fn end(&self) {
        self.in_hurry.store(true, Ordering::Relaxed);
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).to_end = true;
        self.wake.notify_all();
    }

    /// Saves, and does something else between two pieces of it.
    pub(super) fn save_at(
        &self,
        store: &Store,
        now: u64,
        between: &mut dyn FnMut(),
    ) -> Result<(), String> {
        let mut number = self.number.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_saving.store(true, Ordering::Relaxed);
        let written = self.write(store, now, *number + 1, between);
        self.is_saving.store(false, Ordering::Relaxed);
        // The number is used up even so: the manifest may name it.
        *number += 1;
        match written {
            Ok(()) => {
                self.last.store(now, Ordering::Relaxed);
                Ok(())
            }
            Err(error) => Err(format!("ERR cannot save: {error}")),
        }
    }

    fn write(
        &self,
        store: &Store,
        now: u64,
        number: u64,
        between: &mut dyn FnMut(),
    ) -> io::Result<()> {
        let place = match self.journal() {
            Some(journal) => journal.rotate(number).map_err(io::Error::other)?,
            None => store.changes.end(),
        };
        let file = Replacement::begin(&self.tables(number))?;
        let mut tables = Tables { file, between };
        let mut records = Vec::new();
        for entry in store.names.all() {
            (tables.between)();
            if !entry.has_expired(now) {
                records.push(write_entry(&entry, store, &mut tables)?);
            }
        }
        write_keys(store, &mut tables, &mut records)?;
        let Tables { file, between } = tables;
        file.commit()?;
        between();
        let mut manifest = Replacement::begin(&self.path.join(NAME))?;
        codec::write(
            MANIFEST,
            |bytes| manifest.write_all(bytes),
            |out| {
                [number, store.seed(), now, place, records.len() as u64]
                    .into_iter()
                    .for_each(|n| out.u64(n));
                records.iter().for_each(|record| record.write(out));
            },
        )?;
        manifest.commit()?;
        between();
        self.remove_others(number);
        self.journal().into_iter().for_each(Journal::snapshot_taken);
        Ok(())
    }

    /// Removes the tables and journals of earlier snapshots. What cannot be removed takes room and does no harm.
    fn remove_others(&self, current: u64) {
        let Ok(files) = fs::read_dir(&self.path) else { return };
        for path in files.flatten().map(|file| file.path()) {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let number = |prefix| name.strip_prefix(prefix)?.parse::<u64>().ok();
            if number(TABLES).is_some_and(|number| number != current)
                || number(JOURNAL).is_some_and(|number| number < current)
            {
                let _ = fs::remove_file(&path);
            }
        }
    }
}

impl Keeper for Folder {
    fn save(&self, store: &Store, now: u64) -> Result<(), String> {
        // A snapshot that is being taken in the background is waited for.
        self.in_hurry.store(true, Ordering::Relaxed);
        let saved = self.save_at(store, now, &mut || ());
        self.in_hurry.store(false, Ordering::Relaxed);
        saved
    }

    fn save_soon(&self) -> Result<(), String> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).to_save = true;
        self.wake.notify_all();
        Ok(())
    }

    fn last(&self) -> u64 {
        self.last.load(Ordering::Relaxed)
    }

    fn is_saving(&self) -> bool {
        self.is_saving.load(Ordering::Relaxed)
    }

    fn commit(&self) -> Result<(), String> {
        self.journal().map_or(Ok(()), Journal::commit)
    }

    fn refusal(&self) -> Option<String> {
        self.journal().and_then(Journal::refusal)
    }

    fn is_costly(&self) -> bool {
        self.journal().is_some()
    }

    fn lag(&self) -> Option<u64> {
        self.journal().map(Journal::lag)
    }
}

/// After so much work comes a rest, so that clients do not wait for a processor.
const WORK: Duration = Duration::from_micros(100);
/// How many times as long as the work it is.
const TIMES: u32 = 3;
/// The longest rest, however long the work was.
const REST: Duration = Duration::from_millis(10);

/// Rests now and then, unless there is a hurry.
#[derive(Debug)]
struct Rest<'a> {
    in_hurry: &'a AtomicBool,
    /// When it last rested.
    rested: Instant,
}

impl<'a> Rest<'a> {
    fn new(in_hurry: &'a AtomicBool) -> Self {
        Self { in_hurry, rested: Instant::now() }
    }

    fn rest(&mut self) {
        let worked = self.rested.elapsed();
        if !self.in_hurry.load(Ordering::Relaxed) && worked >= WORK {
            std::thread::sleep((worked * TIMES).min(REST));
            self.rested = Instant::now();
        }
    }
}

/// Acts that waited for a filter and are done before others may have its lock.
const CAUGHT_UP: usize = 512;

/// The file that tables are written to.
struct Tables<'a> {
    file: Replacement,
    /// What is done between two pieces.
    between: &'a mut dyn FnMut(),
}

impl Tables<'_> {
    /// Writes a filter, piece by piece. Returns its length.
    fn write(&mut self, held: &Held) -> io::Result<u64> {
        let mut length = 0;
        held.tables().snapshot_to(|bytes| {
            length += bytes.len() as u64;
            let written = self.file.write_all(bytes);
            (self.between)();
            written
        })?;
        Ok(length)
    }
}

fn write_entry(entry: &Entry, store: &Store, tables: &mut Tables<'_>) -> io::Result<Record> {
    let (held, mut record) = loop {
        if let Some(held) = entry.hold(store) {
            break held;
        }
        (tables.between)();
    };
    record.length = tables.write(&held)?;
    drop(held);
    entry.catch_up(|| (tables.between)());
    Ok(record)
}

/// Writes the keys of `SET`, all as they are at one moment.
fn write_keys(store: &Store, tables: &mut Tables<'_>, records: &mut Vec<Record>) -> io::Result<()> {
    let mut all = loop {
        if store.keys.catch_up(CAUGHT_UP)
            && let Some(all) = hold_keys(store)
        {
            break all;
        }
        (tables.between)();
    };
    // Small ones first, which have the least room for keys that wait.
    all.sort_by_key(|(held, _)| held.tables().memory());
    for (held, record) in all {
        let length = tables.write(&held)?;
        records.push(Record { length, ..record });
    }
    while !store.keys.catch_up(CAUGHT_UP) {
        (tables.between)();
    }
    Ok(())
}

/// Holds the tables of all lives. `None` while one has not caught up with what came during the last time.
fn hold_keys(store: &Store) -> Option<Vec<(Held, Record)>> {
    let mut tables = store.keys.lock();
    let since = store.changes.end();
    let hold = |table: &mut Table| {
        let what = What::Keys { ttl: table.ttl, is_exact: table.is_exact, last: table.last };
        let record = Record { what, fresh: table.filter.fresh(), since, length: 0 };
        Some((table.filter.hold()?, record))
    };
    tables.iter_mut().map(hold).collect()
}

fn take_up(store: &Store, record: Record, tables: Kinds) -> Result<(), String> {
    let text = |refusal: Refusal| refusal.to_string();
    if tables.seed() != store.seed() {
        return Err("a filter with another seed than its server".into());
    }
    match (record.what, tables) {
        (What::Filter { id, name, expires, options, counts }, tables) => {
            let share = Share::none(&store.budget);
            let filter = Kept::restore(tables, &options, record.fresh, share).map_err(text)?;
            let since = record.since;
            store.take_in(SavedEntry { id, name, expires, options, counts, since }, filter);
        }
        (What::Keys { ttl, is_exact, last }, Kinds::Points(filter)) => {
            let spec = store.keys.spec(ttl, is_exact, filter.plan().fpr());
            let filter = Arc::unwrap_or_clone(filter);
            let filter =
                Bounded::restore(filter, &spec, record.fresh, &store.budget).map_err(text)?;
            store.keys.lock().push(Table { ttl, is_exact, filter, last, since: record.since });
        }
        (What::Keys { .. }, Kinds::Ranges(_)) => return Err("keys of SET as intervals".into()),
    }
    Ok(())
}

#[cfg(test)]
mod tests;
