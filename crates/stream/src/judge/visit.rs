//! Visits: chains of reads of one key, no two of which are further apart than the window.

use lately::{Digest, Tick};
use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BinaryHeap, HashMap, VecDeque};

/// One read of a key.
#[derive(Clone, Copy, Debug)]
pub struct Read<'a> {
    /// What is equal for equal keys.
    pub key: Digest,
    /// When it was made.
    pub at: Tick,
    /// The texts of the key, as [`Texts`](crate::record::texts::Texts) keeps them.
    pub text: &'a [u8],
    /// How strong it was, if that is known.
    pub strength: Option<f64>,
    /// Where it was made, such as by which antenna; may be empty.
    pub place: &'a [u8],
}

/// A chain of reads of one key.
#[derive(Clone, Debug, PartialEq)]
pub struct Visit {
    /// The time of its first read.
    pub arrived: Tick,
    /// The time of its last read.
    pub left: Tick,
    /// How many reads it has.
    pub reads: u64,
    /// The texts of its key, as the first of its reads to come had them.
    pub text: Box<[u8]>,
    /// The largest strength of its reads; `None` if none of them had one.
    pub strength: Option<f64>,
    /// Where its strongest read was made; of equally strong ones the first, and of reads without a
    /// strength the first.
    pub place: Box<[u8]>,
    /// When the strongest was made.
    pub(crate) strongest: Tick,
    /// Its number, in the order in which visits were begun.
    pub(crate) number: u64,
}

/// Why a visit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// No read that is still to come can belong to it.
    Gap,
    /// There was no room for more open visits, and its last read was the oldest.
    Memory,
    /// Nothing came from a live input for as long as its end had to be waited for.
    Silence,
    /// The clock was wrong and was set back.
    Clock,
    /// The input was over.
    End,
}

impl Ended {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Gap, Self::Memory, Self::Silence, Self::Clock, Self::End];

    /// Its name in rows and summaries.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gap => "gap",
            Self::Memory => "memory",
            Self::Silence => "silence",
            Self::Clock => "clock",
            Self::End => "end",
        }
    }
}

impl Visit {
    fn begin(read: &Read<'_>, number: u64) -> Self {
        let Read { at, text, strength, place, .. } = *read;
        let (text, place) = (text.into(), place.into());
        Self { arrived: at, left: at, reads: 1, text, strength, place, strongest: at, number }
    }

    /// Is a read of this strength and time to be preferred to the strongest so far?
    fn is_outdone(&self, strength: Option<f64>, at: Tick) -> bool {
        match (strength, self.strength) {
            (Some(new), Some(old)) if new != old => new > old,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            _ => at < self.strongest,
        }
    }

    fn take(&mut self, read: &Read<'_>) {
        if self.is_outdone(read.strength, read.at) {
            (self.strength, self.strongest) = (read.strength, read.at);
            if *self.place != *read.place {
                self.place = read.place.into();
            }
        }
        self.arrived = self.arrived.min(read.at);
        self.left = self.left.max(read.at);
        self.reads += 1;
    }

    /// Takes in a later visit that it has grown together with.
    fn join(&mut self, later: Self) {
        if self.is_outdone(later.strength, later.strongest) {
            (self.strength, self.strongest) = (later.strength, later.strongest);
            self.place = later.place;
        }
        self.left = later.left;
        self.reads += later.reads;
        if later.number < self.number {
            (self.number, self.text) = (later.number, later.text);
        }
    }

    /// Bytes that it takes besides its place among those of its key.
    fn memory(&self) -> usize {
        self.text.len() + self.place.len() + OVERHEAD
    }
}

/// What a key takes at most, with its place in a map that doubles and is copied meanwhile.
const KEY: usize = 3 * (size_of::<(Digest, VecDeque<Visit>)>() + 1) + 16;

/// What a visit takes at most besides itself and its texts: its places in the queue, which doubles, too,
/// and what the allocator adds.
const OVERHEAD: usize = 4 * size_of::<Due>() + 32;

/// Places in the queue without a visit that are kept at least, before it is cleared of them.
const STALE: usize = 64;

/// A place in the queue: a visit whose last read was then. It may have been extended, or joined to
/// another one, since.
type Due = Reverse<(Tick, u64, Digest)>;

/// The visits that have not ended, exactly.
///
/// # Guarantee
/// Reads of one key belong to one visit if each is at most `within` from the next, in the order of their
/// times; they may come in any order. Visits are closed in the order of their last reads. None is lost:
/// what is closed for lack of room is handed out like all others, and a later read begins another one.
///
/// # Cost
/// Per read a look-up in a hash map and a search by halves among the open visits of the key, of which
/// there is one unless reads may be late by more than the window; per visit an entry in a heap. Some 450
/// bytes per open visit.
#[derive(Debug)]
pub struct OpenVisits {
    within: u64,
    limit: usize,
    /// The visits of each key, in the order of time.
    open: HashMap<Digest, VecDeque<Visit>>,
    due: BinaryHeap<Due>,
    count: usize,
    reads: u64,
    bytes: usize,
    next: u64,
}

impl OpenVisits {
    /// None yet. `within` is the longest pause within a visit, `limit` the most memory in bytes.
    pub fn new(within: u64, limit: usize) -> Self {
        let (open, due) = (HashMap::new(), BinaryHeap::new());
        Self { within, limit, open, due, count: 0, reads: 0, bytes: 0, next: 0 }
    }

    /// Adds a read: to a visit, which may grow together with the next one, or as a new one.
    pub fn add(&mut self, read: &Read<'_>) {
        self.reads += 1;
        let is_new = !self.open.contains_key(&read.key);
        let of_key = self.open.entry(read.key).or_default();
        let room = of_key.capacity();
        let at = of_key.partition_point(|visit| is_apart(visit.left, read.at, self.within));
        let before = (of_key.len(), self.bytes);
        match of_key.get_mut(at) {
            Some(visit) if !is_apart(read.at, visit.arrived, self.within) => {
                self.bytes -= visit.memory();
                visit.take(read);
                let (left, mut bytes) = (visit.left, visit.memory());
                let joins = |next: &Visit| !is_apart(left, next.arrived, self.within);
                if of_key.get(at + 1).is_some_and(joins)
                    && let Some(later) = of_key.remove(at + 1)
                {
                    self.bytes -= later.memory();
                    of_key[at].join(later);
                    bytes = of_key[at].memory();
                }
                self.bytes += bytes;
            }
            _ => {
                let visit = Visit::begin(read, self.next);
                self.next += 1;
                self.bytes += visit.memory() + if is_new { KEY } else { 0 };
                self.due.push(Reverse((visit.left, visit.number, read.key)));
                if is_new {
                    // Most keys never have a second one.
                    of_key.reserve_exact(1);
                }
                of_key.insert(at, visit);
            }
        }
        self.count = self.count + of_key.len() - before.0;
        self.bytes =
            self.bytes + of_key.capacity() * size_of::<Visit>() - room * size_of::<Visit>();
        self.clear_queue();
    }

    /// Is there a visit that has to be closed for lack of room?
    pub fn is_full(&self) -> bool {
        self.bytes > self.limit
    }

    /// Closes the visit whose last read is the oldest, if that was before `moment`.
    pub fn close_before(&mut self, moment: Tick) -> Option<Visit> {
        self.close(|left| left < moment)
    }

    /// Closes the visit whose last read is the oldest.
    pub fn close_oldest(&mut self) -> Option<Visit> {
        self.close(|_| true)
    }

    fn close(&mut self, is_due: impl Fn(Tick) -> bool) -> Option<Visit> {
        loop {
            let &Reverse((then, number, key)) = self.due.peek()?;
            if !is_due(then) {
                return None;
            }
            self.due.pop();
            let Entry::Occupied(mut entry) = self.open.entry(key) else { continue };
            let of_key = entry.get_mut();
            let at = of_key.partition_point(|visit| visit.left < then);
            let Some(visit) = of_key.get(at).filter(|visit| visit.number == number) else {
                continue;
            };
            if visit.left != then {
                self.due.push(Reverse((visit.left, number, key)));
                continue;
            }
            let room = of_key.capacity();
            let Some(visit) = of_key.remove(at) else { continue };
            if of_key.len() < room / 4 {
                of_key.shrink_to(room / 2);
            }
            let mut freed = visit.memory() + (room - of_key.capacity()) * size_of::<Visit>();
            if of_key.is_empty() {
                freed += KEY + of_key.capacity() * size_of::<Visit>();
                entry.remove();
            }
            self.bytes -= freed;
            self.count -= 1;
            self.reads -= visit.reads;
            return Some(visit);
        }
    }

    /// Visits that are joined leave places in the queue behind: they must not outnumber the others.
    fn clear_queue(&mut self) {
        if self.due.len() <= self.count + self.count / 2 + STALE {
            return;
        }
        let visits = self.open.iter().flat_map(|(&key, of_key)| {
            of_key.iter().map(move |visit| Reverse((visit.left, visit.number, key)))
        });
        self.due = visits.collect();
    }

    /// Visits that are open.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Is none open?
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Reads of the open visits.
    pub fn reads(&self) -> u64 {
        self.reads
    }

    /// Memory that they take at most, in bytes.
    pub fn memory(&self) -> usize {
        self.bytes
    }

    /// The longest pause within a visit.
    pub fn within(&self) -> u64 {
        self.within
    }

    /// All of them with their keys, in the order in which they were begun: for a saved state.
    pub fn all(&self) -> Vec<(Digest, &Visit)> {
        let visits = self.open.iter();
        let mut all: Vec<_> = visits
            .flat_map(|(&key, of_key)| of_key.iter().map(move |visit| (key, visit)))
            .collect();
        all.sort_unstable_by_key(|(_, visit)| visit.number);
        all
    }

    /// Puts back what a saved state held. Is it a visit that can be open next to those that are?
    #[must_use]
    pub(crate) fn resume(&mut self, key: Digest, visit: Visit) -> bool {
        let of_key = self.open.entry(key).or_default();
        let at = of_key.partition_point(|other| is_apart(other.left, visit.arrived, self.within));
        let fits =
            of_key.get(at).is_none_or(|next| is_apart(visit.left, next.arrived, self.within));
        let new_key = if of_key.is_empty() { KEY } else { 0 };
        if fits && visit.arrived <= visit.left && visit.reads > 0 {
            let room = of_key.capacity();
            self.reads = self.reads.saturating_add(visit.reads);
            self.count += 1;
            self.next = self.next.max(visit.number.saturating_add(1));
            self.bytes += visit.memory() + new_key;
            self.due.push(Reverse((visit.left, visit.number, key)));
            of_key.insert(at, visit);
            self.bytes += (of_key.capacity() - room) * size_of::<Visit>();
            return true;
        }
        if of_key.is_empty() {
            self.open.remove(&key);
        }
        false
    }
}

/// Is one moment after the other by more than the window?
fn is_apart(before: Tick, after: Tick, within: u64) -> bool {
    after.0.saturating_sub(before.0) > within
}
