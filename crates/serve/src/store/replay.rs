//! Making changes again that a journal has kept.

use super::change::Change;
use super::{Counts, Entry, Kept, Outcome, Refusal, SavedEntry, Scratch, Store};
use std::collections::HashMap;
use std::sync::Arc;

/// Makes changes again, in the order in which they were made.
#[derive(Debug)]
pub(crate) struct Replay<'a> {
    store: &'a Store,
    filters: HashMap<u64, Arc<Entry>>,
    /// The newest moment that was seen.
    pub(crate) newest: u64,
    scratch: Scratch,
    outcomes: Vec<Outcome>,
    /// What has come of the dumps of filters of these numbers.
    dumps: HashMap<u64, Vec<u8>>,
}

impl<'a> Replay<'a> {
    /// On top of what the store remembers, which answers nobody yet.
    pub(crate) fn new(store: &'a Store) -> Self {
        let filters = store.names.all().into_iter().map(|entry| (entry.id(), entry)).collect();
        let (scratch, outcomes) = (Scratch::default(), Vec::new());
        Self { store, filters, newest: 0, scratch, outcomes, dumps: HashMap::new() }
    }

    /// Takes in a filter that was made by a change.
    fn take_in(&mut self, saved: SavedEntry, filter: Kept) {
        let (entry, before) = self.store.take_in(saved, filter);
        if let Some(before) = before {
            self.filters.remove(&before.id());
        }
        self.filters.insert(entry.id(), entry);
    }

    /// Takes a piece of a dump.
    fn gather(&mut self, id: u64, from: u64, bytes: &[u8]) {
        if self.filters.contains_key(&id) {
            return;
        }
        let dump = self.dumps.entry(id).or_default();
        if from == 0 {
            dump.clear();
        }
        // A piece is missing where what is damaged is left out.
        if dump.len() as u64 == from {
            dump.extend_from_slice(bytes);
        }
    }

    /// Takes in the filter whose dump was gathered.
    fn restore(&mut self, id: u64, name: &[u8], length: u64, at: u64) -> Result<(), Refusal> {
        let dump = self.dumps.remove(&id).unwrap_or_default();
        if dump.len() as u64 == length && !self.filters.contains_key(&id) {
            let (saved, filter) = self.store.read_dump(name, &dump)?;
            self.take_in(SavedEntry { id, since: at, ..saved }, filter);
        }
        Ok(())
    }

    /// The filter of this number, unless it was dropped later or this change is in it already.
    fn filter(&self, id: u64, at: u64) -> Option<&Arc<Entry>> {
        self.filters.get(&id).filter(|entry| at >= entry.since())
    }

    /// Makes a change again that begins at place `at` of the journal.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(crate) fn apply(&mut self, change: Change<'_>, at: u64) -> Result<(), Refusal> {
        match change {
            Change::Created { id, name, options } if !self.filters.contains_key(&id) => {
                let filter = Kept::new(&options, self.store.seed(), &self.store.budget)?;
                let (name, counts) = (name.to_vec(), Counts::default());
                let saved = SavedEntry { id, name, expires: None, options, counts, since: at };
                self.take_in(saved, filter);
            }
            Change::Created { .. } => {}
            Change::Dropped { id } => {
                if let Some(entry) = self.filters.remove(&id) {
                    self.store.names.drop_entry(&entry);
                }
            }
            Change::Expires { id, at: moment } => {
                if let Some(entry) = self.filter(id, at) {
                    entry.expire(moment);
                }
            }
            Change::Arrived { id, moment, digests } => {
                self.newest = self.newest.max(moment);
                let Some(entry) = self.filter(id, at).cloned() else { return Ok(()) };
                self.outcomes.clear();
                let mut inner = entry.lock();
                inner.observe(digests, moment, &mut self.scratch, &mut self.outcomes);
                let is_lost = |outcome: &Outcome| *outcome == Outcome::NoMemory;
                if self.outcomes.iter().any(is_lost) {
                    return Err(Refusal::NoMemory);
                }
            }
            Change::Marked { id, moment, digests } => {
                self.newest = self.newest.max(moment);
                let Some(entry) = self.filter(id, at) else { return Ok(()) };
                let mut inner = entry.lock();
                for digest in digests {
                    inner.remember(*digest, moment, moment)?;
                }
            }
            Change::Set { ttl, is_exact, moment, digests } => {
                self.newest = self.newest.max(moment);
                self.store.keys.set_again(digests, (ttl, is_exact), moment, at)?;
            }
            Change::Forgotten { id, digests } => {
                let Some(entry) = self.filter(id, at) else { return Ok(()) };
                entry.lock().forget_again(digests);
            }
            Change::Unset { ttl, digests } => self.store.keys.forget_again(digests, ttl, at),
            Change::Piece { id, from, bytes } => self.gather(id, from, bytes),
            Change::Restored { id, name, length } => self.restore(id, name, length, at)?,
            Change::Tidied { moment } => {
                self.filters.retain(|_, entry| !entry.has_expired(moment));
                self.store.tidy(moment);
            }
            Change::Cleared => {
                self.filters.retain(|_, entry| {
                    let stays = entry.since() > at;
                    if !stays {
                        self.store.names.drop_entry(entry);
                    }
                    stays
                });
                self.store.keys.clear_again(at);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{KeySpaceOptions, Options};
    use super::*;

    const NAME: &[u8] = b"a";

    fn store() -> Store {
        Store::new(7, 1 << 20, 10, Vec::new(), KeySpaceOptions::default())
    }

    fn created(id: u64) -> Change<'static> {
        Change::Created { id, name: NAME, options: Options::default() }
    }

    /// A snapshot is begun; a filter is made, dropped, and made again; and only then the snapshot looks which filters
    /// there are. It has the second one, whose changes all come again.
    #[test]
    fn the_filter_of_a_snapshot_is_younger_than_the_change() {
        let store = store();
        let (options, counts) = (Options::default(), Counts::default());
        let filter = Kept::new(&options, 7, &store.budget).unwrap();
        let (id, name, since) = (6, NAME.to_vec(), 100);
        store.take_in(SavedEntry { id, name, expires: None, options, counts, since }, filter);
        let digests = [store.digest(b"key")];
        let mut replay = Replay::new(&store);
        let changes = [
            created(5),
            Change::Dropped { id: 5 },
            created(6),
            Change::Marked { id: 6, moment: 1, digests: &digests },
        ];
        for (change, at) in changes.into_iter().zip((10..).step_by(10)) {
            replay.apply(change, at).unwrap();
        }
        let entry = store.filter(NAME, 1).unwrap();
        let mut found = [false];
        entry.lock().contains(&digests, 1, &mut found);
        assert_eq!((entry.id(), found), (6, [true]));
    }

    /// A filter that another takes the place of gives its memory back at once.
    #[test]
    fn what_is_replaced_takes_no_memory() {
        let store = store();
        let mut replay = Replay::new(&store);
        replay.apply(created(1), 0).unwrap();
        let used = store.budget.used();
        let dump = store.dump(&store.filter(NAME, 1).unwrap(), 1);
        for id in 2..5 {
            replay.apply(Change::Piece { id, from: 0, bytes: &dump }, 1).unwrap();
            let length = dump.len() as u64;
            replay.apply(Change::Restored { id, name: NAME, length }, 1).unwrap();
            assert_eq!((store.filter(NAME, 1).unwrap().id(), store.budget.used()), (id, used));
        }
    }
}
