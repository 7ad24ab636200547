//! Where keys go that found no slot.

use crate::SnapshotError;
use crate::codec::{Reader, Writer};
use alloc::vec::Vec;
use core::fmt;

/// A bounded list of keys and when they were last seen, for a table's overflow.
///
/// A key is named by its id: the places in the table where it could be, and its fingerprint. So an
/// entry tells as much as a slot would, no more, and the two are merged alike.
///
/// *Cost:* a binary search a question; an insertion or a removal moves half the list. The list is
/// empty in a table that is not overfull.
pub(super) struct Stash {
    /// Id and moment in grains, by both; an id once, unless its moments were added one by one.
    entries: Vec<(u128, u64)>,
    /// The most entries there may be.
    limit: usize,
    /// No entry is older than this.
    oldest: u64,
}

/// By what is in it: how old the oldest entry can be is not saved.
impl PartialEq for Stash {
    fn eq(&self, other: &Self) -> bool {
        (&self.entries, self.limit) == (&other.entries, other.limit)
    }
}

/// How many entries there are: they may be as many as keys.
impl fmt::Debug for Stash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut stash = f.debug_struct("Stash");
        stash
            .field("entries", &self.entries.len())
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

/// Bytes an entry.
pub(crate) const ENTRY: u64 = size_of::<(u128, u64)>() as u64;

impl Stash {
    /// An empty one that may hold `limit` entries and has room for the first `reserved`.
    pub(super) fn new(limit: u64, reserved: u64) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut entries = Vec::new();
        // Without it the stash asks for memory when it needs some.
        let _ =
            entries.try_reserve_exact(limit.min(usize::try_from(reserved).unwrap_or(usize::MAX)));
        Self { entries, limit, oldest: u64::MAX }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn len(&self) -> u64 {
        self.entries.len() as u64
    }

    pub(super) fn is_full(&self) -> bool {
        self.entries.len() >= self.limit
    }

    /// When it was last seen.
    pub(super) fn get(&self, id: u128) -> Option<u64> {
        let at = self.entries.binary_search_by_key(&id, |entry| entry.0).ok()?;
        Some(self.entries[at].1)
    }

    /// Every moment at which it was seen, of those that were [added](Stash::add).
    pub(super) fn each(&self, id: u128) -> impl Iterator<Item = u64> + '_ {
        let first = self.entries.partition_point(|entry| entry.0 < id);
        self.entries[first..].iter().take_while(move |entry| entry.0 == id).map(|entry| entry.1)
    }

    pub(super) fn remove(&mut self, id: u128) {
        if let Ok(at) = self.entries.binary_search_by_key(&id, |entry| entry.0) {
            self.entries.remove(at);
        }
    }

    /// Takes out all that is known of it.
    pub(super) fn take_out(&mut self, id: u128, each: impl FnMut(u64)) {
        let first = self.entries.partition_point(|entry| entry.0 < id);
        let entries = self.entries[first..].iter().take_while(|entry| entry.0 == id).count();
        self.entries.drain(first..first + entries).map(|entry| entry.1).for_each(each);
    }

    /// Takes back what was [added](Stash::add).
    pub(super) fn remove_one(&mut self, id: u128, moment: u64) {
        if let Ok(at) = self.entries.binary_search(&(id, moment)) {
            self.entries.remove(at);
        }
    }

    /// Notes that it was seen then, besides other moments that are known. `false` where there is no
    /// room. A stash is either filled so or by [`Stash::insert`].
    pub(super) fn add(&mut self, id: u128, moment: u64) -> bool {
        match self.entries.binary_search(&(id, moment)) {
            Ok(_) => {}
            Err(_) if self.is_full() || !self.has_room() => return false,
            Err(at) => self.entries.insert(at, (id, moment)),
        }
        self.oldest = self.oldest.min(moment);
        true
    }

    /// Notes that it was seen then; a later moment that is known stays. `false` where there is no
    /// room.
    pub(super) fn insert(&mut self, id: u128, moment: u64) -> bool {
        match self.entries.binary_search_by_key(&id, |entry| entry.0) {
            Ok(at) => self.entries[at].1 = self.entries[at].1.max(moment),
            Err(_) if self.is_full() || !self.has_room() => return false,
            Err(at) => self.entries.insert(at, (id, moment)),
        }
        self.oldest = self.oldest.min(moment);
        true
    }

    /// Makes room for one more, and never for more than the limit.
    fn has_room(&mut self) -> bool {
        let entries = &mut self.entries;
        let more = entries.len().max(8).min(self.limit - entries.len());
        entries.len() < entries.capacity() || entries.try_reserve_exact(more).is_ok()
    }

    /// Drops what was last seen before a moment.
    #[inline]
    pub(super) fn expire(&mut self, before: u64) {
        if self.oldest < before {
            self.entries.retain(|entry| entry.1 >= before);
            self.oldest = self.entries.iter().map(|entry| entry.1).min().unwrap_or(u64::MAX);
        }
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.oldest = u64::MAX;
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (u128, u64)> + '_ {
        self.entries.iter().copied()
    }

    pub(super) fn memory(&self) -> usize {
        self.entries.capacity() * ENTRY as usize
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) {
        out.u64(self.entries.len() as u64);
        for &(id, moment) in &self.entries {
            out.u64(id as u64);
            out.u64((id >> 64) as u64);
            out.u64(moment);
        }
    }

    /// Fills an empty one with what was written: `several` moments an id, or one.
    pub(super) fn read(
        mut stash: Self,
        several: bool,
        now: u64,
        input: &mut Reader<'_>,
    ) -> Result<Self, SnapshotError> {
        let len = usize::try_from(input.count()?).unwrap_or(usize::MAX);
        let words = input.words(len.checked_mul(3))?;
        for entry in words.as_chunks::<3>().0 {
            let id = u128::from(entry[1]) << 64 | u128::from(entry[0]);
            let last = stash.entries.last();
            let in_order =
                last.is_none_or(|last| last.0 < id || several && last.0 == id && last.1 < entry[2]);
            if !in_order || entry[2] > now || !stash.add(id, entry[2]) {
                return Err(SnapshotError::Invalid("a stash out of order"));
            }
        }
        Ok(stash)
    }
}

impl Clone for Stash {
    /// With as much room.
    fn clone(&self) -> Self {
        let mut entries = Vec::with_capacity(self.entries.capacity());
        entries.extend_from_slice(&self.entries);
        Self { entries, ..*self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{self, Format};

    #[test]
    fn what_is_read_equals_what_was_written_also_after_its_oldest_entry_has_gone() {
        const FORMAT: Format = Format::new(*b"\x89STASH\r\n", 1);
        let mut stash = Stash::new(10, 0);
        for (id, moment) in [(1, 5), (2, 7), (3, 9)] {
            assert!(stash.insert(id, moment));
        }
        stash.remove(1);
        let bytes = codec::to_vec(FORMAT, |out| stash.write(out));
        let read = codec::from_slice(FORMAT, &bytes, |input| {
            Stash::read(Stash::new(10, 0), false, 9, input)
        });
        assert_eq!(read, Ok(stash));
    }
}
