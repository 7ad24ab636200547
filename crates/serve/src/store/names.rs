//! Names to filters.

use super::change::Change;
use super::changes::Changes;
use super::{Entry, Refusal};
use lately::{Digest, Digester};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Filters by name, in the order of their names' digests: so that `SCAN` can go through them in parts, whatever is
/// added or dropped meanwhile.
#[derive(Debug)]
pub(crate) struct Names {
    digester: Digester,
    limit: usize,
    filters: RwLock<Filters>,
    /// One of them is asked for intervals, or was, or may be.
    has_numbers: AtomicBool,
    changes: Arc<Changes>,
}

type Filters = BTreeMap<(u64, u64), Arc<Entry>>;

/// A part of the filters.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) filters: Vec<Arc<Entry>>,
    /// Where the next part begins; 0 at the end.
    pub(crate) next: u64,
}

impl Names {
    pub(crate) fn new(seed: u64, limit: usize, changes: &Arc<Changes>) -> Self {
        let changes = Arc::clone(changes);
        let (filters, has_numbers) = (RwLock::default(), AtomicBool::new(false));
        Self { digester: Digester::new(seed), limit, filters, has_numbers, changes }
    }

    fn read(&self) -> RwLockReadGuard<'_, Filters> {
        self.filters.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Filters> {
        self.filters.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// From here on there may be filters that are asked for intervals.
    pub(crate) fn expect_numbers(&self) {
        self.has_numbers.store(true, Ordering::Relaxed);
    }

    /// May there be such filters?
    #[inline]
    pub(crate) fn may_have_numbers(&self) -> bool {
        self.has_numbers.load(Ordering::Relaxed)
    }

    fn note(&self, entry: &Entry) {
        if entry.numbers().is_some() {
            self.expect_numbers();
        }
    }

    fn id(&self, name: &[u8]) -> (u64, u64) {
        let digest = self.digester.digest(name);
        (digest.hi(), digest.lo())
    }

    /// The filter of this name, unless it has expired.
    pub(crate) fn get(&self, name: &[u8], now: u64) -> Option<Arc<Entry>> {
        let filters = self.read();
        let found = filters.get(&self.id(name))?;
        (found.name() == name && !found.has_expired(now)).then(|| Arc::clone(found))
    }

    /// Is any of these the digest of a filter's name?
    pub(crate) fn has_any(&self, digests: &[Digest], now: u64) -> bool {
        let filters = self.read();
        let has = |digest: &Digest| {
            let found = filters.get(&(digest.hi(), digest.lo()));
            found.is_some_and(|found| !found.has_expired(now))
        };
        !filters.is_empty() && digests.iter().any(has)
    }

    /// Adds a filter whose name is not taken.
    pub(crate) fn add(&self, entry: Entry, now: u64) -> Result<Arc<Entry>, Refusal> {
        let mut filters = self.write();
        let id = self.id(entry.name());
        match filters.get(&id) {
            Some(there) if !there.has_expired(now) => return Err(Refusal::Exists),
            Some(_) => {}
            None if filters.len() >= self.limit => return Err(Refusal::TooMany),
            None => {}
        }
        let entry = Arc::new(entry);
        self.note(&entry);
        self.changes.add(&entry.creation());
        filters.insert(id, Arc::clone(&entry));
        Ok(entry)
    }

    /// Adds a filter that was made of a dump of this length, in the place of one of its name if it `replaces` that. `false`: the
    /// pieces of the dump, which were in this file, are to be written again.
    pub(crate) fn restore(
        &self,
        entry: &Arc<Entry>,
        (length, file): (u64, u64),
        replaces: bool,
        now: u64,
    ) -> Result<bool, Refusal> {
        let mut filters = self.write();
        let id = self.id(entry.name());
        match filters.get(&id) {
            Some(there) if !replaces && !there.has_expired(now) => return Err(Refusal::Exists),
            None if filters.len() >= self.limit => return Err(Refusal::TooMany),
            _ => {}
        }
        if !self.changes.add_restored(entry.id(), entry.name(), length, file) {
            return Ok(false);
        }
        self.note(entry);
        let before = filters.insert(id, Arc::clone(entry));
        // Its memory is given back when others may go on.
        drop(filters);
        drop(before);
        Ok(true)
    }

    /// Puts a filter in the place of whichever has its name. Returns that.
    pub(crate) fn replace(&self, entry: Arc<Entry>) -> Option<Arc<Entry>> {
        let id = self.id(entry.name());
        self.note(&entry);
        self.write().insert(id, entry)
    }

    /// Drops a filter. `false` where there is none.
    pub(crate) fn remove(&self, name: &[u8], now: u64) -> bool {
        if self.get(name, now).is_none() {
            return false;
        }
        let mut filters = self.write();
        let Some(dropped) = filters.remove(&self.id(name)) else { return false };
        self.changes.add(&Change::Dropped { id: dropped.id() });
        true
    }

    /// Drops this very filter, if it is still there.
    pub(crate) fn drop_entry(&self, entry: &Arc<Entry>) {
        let (mut filters, id) = (self.write(), self.id(entry.name()));
        if filters.get(&id).is_some_and(|found| Arc::ptr_eq(found, entry)) {
            filters.remove(&id);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.read().len()
    }

    /// All filters.
    pub(crate) fn all(&self) -> Vec<Arc<Entry>> {
        self.read().values().cloned().collect()
    }

    /// About so many filters, from a place on that an earlier page named; 0 is the beginning.
    pub(crate) fn page(&self, from: u64, count: usize, now: u64) -> Page {
        let filters = self.read();
        let mut rest = filters.range((Bound::Included((from, 0)), Bound::Unbounded));
        let taken: Vec<_> = rest.by_ref().take(count.max(1)).collect();
        let last = taken.last().map(|((high, _), _)| *high);
        // No two names have digests that agree in 64 bits: there are 100,000 of them.
        let next = rest.next().and(last).and_then(|last| last.checked_add(1)).unwrap_or(0);
        let alive = taken.into_iter().filter(|(_, entry)| !entry.has_expired(now));
        Page { filters: alive.map(|(_, entry)| Arc::clone(entry)).collect(), next }
    }

    /// Drops what has expired.
    pub(crate) fn tidy(&self, now: u64) {
        if self.read().values().any(|entry| entry.has_expired(now)) {
            self.write().retain(|_, entry| !entry.has_expired(now));
        }
    }

    /// Drops all, while what else is to be done is done.
    pub(crate) fn clear(&self, meanwhile: impl FnOnce()) {
        let mut filters = self.write();
        meanwhile();
        filters.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Budget, Kept, Options};
    use super::*;

    fn entry(name: &str) -> Entry {
        let options = Options::default();
        let filter = Kept::new(&options, 1, &Budget::new(1 << 20)).unwrap();
        Entry::new(1, name.as_bytes(), options, filter, &Changes::new())
    }

    #[test]
    fn pages_reach_every_filter_once() {
        let names = Names::new(1, 100, &Changes::new());
        (0..100).for_each(|n| drop(names.add(entry(&format!("f{n}")), 0).unwrap()));
        assert!(matches!(names.add(entry("one more"), 0), Err(Refusal::TooMany)));
        assert!(matches!(names.add(entry("f7"), 0), Err(Refusal::Exists)));
        let (mut from, mut seen) = (0, Vec::new());
        loop {
            let page = names.page(from, 7, 0);
            seen.extend(page.filters.iter().map(|entry| entry.name().to_vec()));
            // What is dropped in between does not move the others.
            names.remove(&seen[0], 0);
            from = page.next;
            if from == 0 {
                break;
            }
        }
        assert_eq!(seen.len(), 100);
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 100);
    }

    #[test]
    fn expired_filters_are_not_there() {
        let names = Names::new(1, 1, &Changes::new());
        names.add(entry("a"), 0).unwrap().expire(Some(10));
        assert!(names.get(b"a", 9).is_some() && names.get(b"a", 10).is_none());
        assert!(!names.remove(b"a", 10));
        names.add(entry("a"), 10).unwrap();
        assert!(names.get(b"a", 10).is_some());
        names.get(b"a", 10).unwrap().expire(Some(20));
        names.tidy(20);
        assert_eq!(names.len(), 0);
    }
}
