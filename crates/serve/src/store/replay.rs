//! Making changes again that a journal has kept.

use super::change::Change;
use super::{Bounded, Counts, Entry, Outcome, Refusal, SavedEntry, Scratch, Store};
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
    fn take_in(&mut self, saved: SavedEntry, filter: Bounded) {
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
                let spec = options.spec(self.store.seed())?;
                let filter = Bounded::new(spec, &self.store.budget)?;
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
