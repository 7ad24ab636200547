//! Fresh records held for a moment, to forward the best of a burst: `--best FIELD:max --hold 200ms`.

use crate::record::Mark;
use lately::{Digest, Tick};
use std::collections::{HashMap, VecDeque};

/// Which of two records of a burst is the better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// The one with the larger number (a signal strength).
    Max,
    /// The one with the smaller number (a distance, an age).
    Min,
}

/// A record that waits.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// How it is marked: by the time it is forwarded, records of another format may have come.
    pub mark: Mark,
    /// The number it is ranked by; a record without one loses.
    pub rank: Option<f64>,
}

/// What a record takes besides its bytes, at most: its places in the queue and in the map, both of
/// which double when they are full and are copied meanwhile, and what the allocator adds.
const OVERHEAD: usize = 3 * (size_of::<(Digest, Waiting)>() + 1) + 3 * size_of::<Place>() + 16;

/// Places without a record that are kept at least, before the queue is cleared of them.
const STALE: usize = 64;

/// The records that wait, oldest first.
///
/// # Guarantee
/// A record waits for `hold` nanoseconds of stream time, or less when all that wait take more than
/// `limit` bytes of memory, their places included (the oldest is then released early). It is released
/// exactly once, in the order in which the bursts began.
///
/// # Cost
/// Constant time for each record, amortized.
#[derive(Debug)]
pub struct Hold {
    hold: u64,
    better: Better,
    limit: usize,
    /// Memory that the records take.
    bytes: usize,
    /// Places of records that were outlived stay until they come to the front or outnumber the others.
    order: VecDeque<Place>,
    held: HashMap<Digest, Waiting>,
    /// The number of the next burst.
    next: u64,
    /// Rises with every change.
    changes: u64,
}

/// A place in the queue: until when which burst waits.
#[derive(Clone, Copy, Debug)]
struct Place {
    until: Tick,
    key: Digest,
    burst: u64,
}

/// The best record of a burst so far.
#[derive(Debug)]
struct Waiting {
    burst: u64,
    record: Held,
}

fn memory(record: &Held) -> usize {
    record.bytes.capacity() + OVERHEAD
}

impl Hold {
    /// Nothing held yet.
    pub fn new(hold: u64, better: Better, limit: usize) -> Self {
        Self {
            hold,
            better,
            limit,
            bytes: 0,
            order: VecDeque::new(),
            held: HashMap::new(),
            next: 0,
            changes: 0,
        }
    }

    /// A number that rises whenever [`Hold::waiting`] changes.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Begins a burst with a fresh record. Hands back the record of a burst of the same key that
    /// still waits: it was outlived by a window shorter than the hold.
    #[must_use]
    pub fn begin(&mut self, key: Digest, now: Tick, record: Held) -> Option<Held> {
        let outlived = self.remove(key);
        self.resume(Tick(now.0.saturating_add(self.hold)), key, record);
        outlived
    }

    /// Takes a record out, and leaves its place behind.
    fn remove(&mut self, key: Digest) -> Option<Held> {
        let Waiting { record, .. } = self.held.remove(&key)?;
        self.bytes -= memory(&record);
        if self.order.len() > self.held.len() + self.held.len() / 2 + STALE {
            let held = &self.held;
            self.order.retain(|place| is_current(held, place));
        }
        // What is at the front decides when the next one is due.
        while self.order.front().is_some_and(|place| !is_current(&self.held, place)) {
            self.order.pop_front();
        }
        Some(record)
    }

    /// Does a record of this key wait?
    pub fn holds(&self, key: Digest) -> bool {
        self.held.contains_key(&key)
    }

    /// Enters a duplicate into its burst. Hands back the worse of the two, or the record itself
    /// where its key is not held.
    pub fn contend(&mut self, key: Digest, mut record: Held) -> Held {
        let Some(Waiting { record: best, .. }) = self.held.get_mut(&key) else { return record };
        let wins = match (record.rank, best.rank) {
            (Some(new), Some(old)) => match self.better {
                Better::Max => new > old,
                Better::Min => new < old,
            },
            (new, old) => new.is_some() && old.is_none(),
        };
        if wins {
            self.bytes = self.bytes + memory(&record) - memory(best);
            self.changes += 1;
            std::mem::swap(best, &mut record);
        }
        record
    }

    /// How long a record waits.
    pub fn length(&self) -> u64 {
        self.hold
    }

    /// Is there a record for [`Hold::release`]?
    pub fn is_due(&self, now: Tick) -> bool {
        self.order.front().is_some_and(|place| now > place.until || self.bytes > self.limit)
    }

    /// The oldest record whose time is over at `now`, or that must leave for lack of room.
    pub fn release(&mut self, now: Tick) -> Option<Held> {
        if self.is_due(now) { self.pop() } else { None }
    }

    /// The oldest record, whatever its time: at the end of the input.
    pub fn pop(&mut self) -> Option<Held> {
        let Place { key, .. } = *self.order.front()?;
        self.changes += 1;
        self.remove(key)
    }

    /// Memory that the records that wait take at most, in bytes.
    pub fn memory(&self) -> usize {
        self.bytes
    }

    /// What waits, oldest first, for a saved state.
    pub fn waiting(&self) -> impl Iterator<Item = (Tick, Digest, &Held)> {
        let current = self.order.iter().filter(|place| is_current(&self.held, place));
        current
            .filter_map(|place| Some((place.until, place.key, &self.held.get(&place.key)?.record)))
    }

    /// Puts back what a saved state held.
    pub fn resume(&mut self, until: Tick, key: Digest, record: Held) {
        self.bytes += memory(&record);
        self.changes += 1;
        let burst = self.next;
        self.next += 1;
        self.order.push_back(Place { until, key, burst });
        self.held.insert(key, Waiting { burst, record });
    }
}

/// Whether the record of this place still waits.
fn is_current(held: &HashMap<Digest, Waiting>, place: &Place) -> bool {
    held.get(&place.key).is_some_and(|waiting| waiting.burst == place.burst)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(rank: f64) -> Held {
        Held { bytes: format!("{rank}").into_bytes(), mark: Mark::Member, rank: Some(rank) }
    }

    #[test]
    fn case_w5_the_strongest_of_a_burst_is_forwarded() {
        let mut hold = Hold::new(200, Better::Max, 1 << 20);
        let tag = Digest::new(1, 2);
        assert_eq!(hold.begin(tag, Tick(1000), record(-70.0)), None);
        assert_eq!(hold.contend(tag, record(-50.0)), record(-70.0));
        assert_eq!(hold.contend(tag, record(-60.0)), record(-60.0));
        assert_eq!(hold.release(Tick(1200)), None);
        assert_eq!(hold.release(Tick(1201)), Some(record(-50.0)));
        assert_eq!(hold.contend(tag, record(-10.0)), record(-10.0));
        assert_eq!(hold.pop(), None);
    }

    #[test]
    fn a_record_that_outlives_another_waits_for_its_own_time() {
        let mut hold = Hold::new(200, Better::Max, 1 << 20);
        let (tag, other) = (Digest::new(1, 2), Digest::new(3, 4));
        assert_eq!(hold.begin(tag, Tick(1000), record(-70.0)), None);
        assert_eq!(hold.begin(other, Tick(1010), record(-20.0)), None);
        assert_eq!(hold.begin(tag, Tick(1100), record(-60.0)), Some(record(-70.0)));
        assert!(hold.holds(tag) && !hold.holds(Digest::new(5, 6)));
        assert_eq!(hold.release(Tick(1211)), Some(record(-20.0)));
        assert_eq!(hold.release(Tick(1300)), None);
        assert_eq!(hold.release(Tick(1301)), Some(record(-60.0)));
        assert_eq!(hold.pop(), None);
    }

    #[test]
    fn the_oldest_goes_early_when_too_much_waits() {
        let mut hold = Hold::new(1000, Better::Min, memory(&record(-11.5)) + 8);
        assert_eq!(hold.begin(Digest::new(1, 0), Tick(0), record(-11.5)), None);
        assert_eq!(hold.begin(Digest::new(2, 0), Tick(1), record(-22.5)), None);
        assert_eq!(hold.release(Tick(1)), Some(record(-11.5)));
        assert_eq!(hold.release(Tick(1)), None);
    }

    /// Removal was linear for each key that was outlived: 60,000 keys took minutes.
    #[test]
    fn outlived_records_cost_no_more_than_others() {
        let mut hold = Hold::new(u64::MAX, Better::Max, usize::MAX);
        let keys = 60_000;
        for round in 0..3 {
            for key in 0..keys {
                let outlived = hold.begin(Digest::new(key, 0), Tick(round), record(-5.0));
                assert_eq!(outlived.is_some(), round > 0);
            }
        }
        assert!(hold.order.len() <= 2 * keys as usize + STALE + 1);
        assert_eq!(hold.waiting().count(), keys as usize);
        let order: Vec<_> = hold.waiting().map(|(_, key, _)| key.hi()).collect();
        assert!(order.is_sorted());
        assert_eq!(std::iter::from_fn(|| hold.pop()).count(), keys as usize);
        assert_eq!((hold.memory(), hold.order.len()), (0, 0));
    }

    #[test]
    fn small_records_count_with_all_that_they_take() {
        let limit = 1 << 20;
        let mut hold = Hold::new(u64::MAX, Better::Max, limit);
        for key in 0..100_000 {
            let _ = hold.begin(Digest::new(key, 0), Tick(0), record(1.0));
            while hold.release(Tick(0)).is_some() {}
            assert!(hold.memory() <= limit);
            let places = hold.order.capacity() * size_of::<Place>();
            let map = hold.held.capacity() * size_of::<(Digest, Waiting)>() * 8 / 7;
            assert!(places + map <= limit, "{places} + {map}");
        }
    }
}
