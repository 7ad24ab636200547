//! A filter with its options as bytes, which another server can take up. Layout: `docs/format.md`.

use super::record::{Record, WITH_REMOVED, What};
use super::{Bounded, Counts, Entry, Family, Held, Kept, Refusal, SavedEntry, Store, Tables};
use lately::codec::{self, Format, Reader};
use lately::{SnapshotError, Tick};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

/// Says of a filter what the manifest of a snapshot does, so both have the versions of that.
const DUMP: Format = Format::new(*b"\x89LDUMP\r\n", WITH_REMOVED);

/// Counts are below this, so that no server ever comes to the end of its own.
const MOST: u64 = 1 << 62;
/// How far ahead of the clock the newest moment of a filter may be.
const AHEAD: u64 = 60_000;

/// Bytes of a dump that tell what it is and with which seed its filter was made: more than are read at once.
const BEGINNING: usize = 128 << 10;
/// How long it waits for a filter that is being saved, until it looks again.
const PAUSE: Duration = Duration::from_millis(1);
/// Bytes of a dump that are given to the journal at once, and written before others are. Few in tests, so that there are many.
const BATCH: usize = if cfg!(test) { 1 << 16 } else { 16 << 20 };
/// Acts that waited for a filter and are done before others may have its lock.
const CAUGHT_UP: usize = 512;

impl Entry {
    /// Holds the filter as it is at this moment, with what a snapshot says of it. `None` while it has not caught up with what came
    /// when it was held before.
    pub(crate) fn hold(&self, store: &Store) -> Option<(Held, Record)> {
        let mut inner = self.lock();
        let Some(held) = inner.filter.hold() else {
            inner.filter.catch_up(CAUGHT_UP);
            return None;
        };
        let what = What::Filter {
            id: self.id(),
            name: self.name().to_vec(),
            expires: self.expires(),
            options: inner.options.clone(),
            counts: inner.counts,
        };
        let (fresh, since) = (inner.filter.fresh(), store.changes.end());
        Some((held, Record { what, fresh, since, length: 0 }))
    }

    /// Does what came while the filter was held, until nothing is left. `between`: what else is to be done.
    pub(crate) fn catch_up(&self, mut between: impl FnMut()) {
        while !self.lock().filter.catch_up(CAUGHT_UP) {
            between();
        }
    }
}

impl Store {
    /// A filter as it is now, as bytes. Nobody waits for it but the caller, who waits for a snapshot that is just writing this
    /// filter.
    pub(crate) fn dump(&self, entry: &Entry, now: u64) -> Vec<u8> {
        let (held, mut record) = loop {
            match entry.hold(self) {
                Some(held) => break held,
                None => std::thread::sleep(PAUSE),
            }
        };
        record.length = held.tables().snapshot_len();
        let bytes = codec::to_vec(DUMP, |out| {
            out.u64(self.seed());
            out.u64(now);
            record.write(out);
            held.tables().write(out);
        });
        drop(held);
        entry.catch_up(|| ());
        bytes
    }

    /// How long the bytes of [`Store::dump`] are. Callers of the filter wait meanwhile.
    pub(crate) fn dump_len(&self, entry: &Entry) -> u64 {
        // Names and options: less than this.
        const REST: u64 = 2 << 10;
        entry.lock().filter.snapshot_len() + REST
    }

    /// Takes up a filter that was dumped, under this name, in the place of one that is there if it `replaces` that. If a
    /// family is named, it must be of that. `commit` writes the journal.
    pub(crate) fn restore(
        &self,
        name: &[u8],
        dump: &[u8],
        (replaces, family): (bool, Option<Family>),
        now: u64,
        commit: &dyn Fn() -> Result<(), String>,
    ) -> Result<(), Refusal> {
        self.check_name(name, now, replaces)?;
        let (saved, filter) = self.read_dump(name, dump)?;
        if family.is_some_and(|family| !saved.options.family.moves_as(family)) {
            let invalid = "a filter of another family";
            return Err(Refusal::Dump(SnapshotError::Invalid(invalid)));
        }
        if filter.newest().is_some_and(|newest| newest > Tick(now.saturating_add(AHEAD))) {
            return Err(Refusal::Ahead);
        }
        let id = self.next_id();
        let entry = Arc::new(Entry::with(SavedEntry { id, ..saved }, filter, &self.changes));
        let length = dump.len() as u64;
        loop {
            let Some(file) = self.write_dump(id, dump, commit)? else { continue };
            if self.names.restore(&entry, (length, file), replaces, now)? {
                return Ok(());
            }
        }
    }

    /// Writes a dump to the journal. Returns in which file all of it is. `None`: in two, as a snapshot was begun meanwhile; the
    /// first of them is gone when that has been taken.
    fn write_dump(
        &self,
        id: u64,
        dump: &[u8],
        commit: &dyn Fn() -> Result<(), String>,
    ) -> Result<Option<u64>, Refusal> {
        let mut file = None;
        for (number, batch) in dump.chunks(BATCH).enumerate() {
            if number > 0 {
                commit().map_err(Refusal::Journal)?;
            }
            let this = self.changes.add_pieces(id, (number * BATCH) as u64, batch);
            if file.is_some_and(|file| file != this) {
                return Ok(None);
            }
            file = Some(this);
        }
        Ok(file)
    }

    /// Refuses a dump of this length whose beginning says already that it cannot be taken up, before all of it has come.
    pub(crate) fn check_beginning(&self, bytes: &[u8], length: u64) -> Result<(), Refusal> {
        let (mut rest, mut seed) = (&bytes[..bytes.len().min(BEGINNING)], None);
        let source = |into: &mut [u8]| {
            let (given, after) = rest.split_at(rest.len().min(into.len()));
            into[..given.len()].copy_from_slice(given);
            rest = after;
            Ok::<_, Infallible>(given.len())
        };
        // There are no more bytes, so whether all are right is not known: only what they begin with.
        let _ = codec::read(DUMP, length, source, |input| {
            seed = Some(input.u64()?);
            Ok::<_, SnapshotError>(())
        });
        match seed {
            Some(seed) if seed == self.seed() => Ok(()),
            Some(seed) => Err(Refusal::Seed(seed)),
            None => Err(Refusal::Dump(SnapshotError::Invalid("no dump begins like this"))),
        }
    }

    /// What a dump holds, as a filter of this name. Its number is still that which it had.
    pub(crate) fn read_dump(
        &self,
        name: &[u8],
        dump: &[u8],
    ) -> Result<(SavedEntry, Kept), Refusal> {
        codec::from_slice(DUMP, dump, |input| self.read_body(name, input))
    }

    fn read_body(
        &self,
        name: &[u8],
        input: &mut Reader<'_>,
    ) -> Result<(SavedEntry, Kept), Refusal> {
        let invalid = |what| Refusal::Dump(SnapshotError::Invalid(what));
        let (seed, _moment) = (input.u64()?, input.u64()?);
        let record = Record::read(input, 0)?;
        let What::Filter { id, expires, options, counts, .. } = record.what else {
            return Err(invalid("it is no filter"));
        };
        let Counts { fresh, duplicates, refused, asked, removed, last } = counts;
        let counted = [fresh, duplicates, refused, asked, removed, last, record.fresh];
        if counted.iter().any(|&count| count >= MOST) {
            return Err(invalid("a count beyond 2^62"));
        }
        if record.length != input.left() {
            return Err(invalid("a filter of another length"));
        }
        if seed != self.seed() {
            return Err(Refusal::Seed(seed));
        }
        if !options.is_bounded() {
            return Err(invalid("a filter without an end"));
        }
        // Asked before anything is built, as far as the bytes say what that takes.
        let share = Bounded::share(record.length, &self.budget)?;
        let tables = Tables::read(options.family, input)?;
        // A filter must be what its options say, or it would grow in another way than the budget is asked for.
        if !tables.are_planned_by(&options, seed)? {
            return Err(invalid("a filter that its options do not make"));
        }
        let filter = Kept::restore(tables, &options, record.fresh, share)?;
        let name = name.to_vec();
        Ok((SavedEntry { id, name, expires, options, counts, since: 0 }, filter))
    }
}

#[cfg(test)]
mod tests;
