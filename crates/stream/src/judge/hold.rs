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

/// The records that wait, oldest first.
///
/// # Guarantee
/// A record waits for `hold` nanoseconds of stream time, or less when more than `limit` bytes wait
/// (the oldest is then released early). It is released exactly once, in the order in which the
/// bursts began.
#[derive(Debug)]
pub struct Hold {
    hold: u64,
    better: Better,
    limit: usize,
    bytes: usize,
    order: VecDeque<(Tick, Digest)>,
    held: HashMap<Digest, Held>,
    /// Rises with every change.
    changes: u64,
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
        let outlived = self.held.remove(&key);
        if let Some(outlived) = &outlived {
            self.bytes -= outlived.bytes.len();
            // Its place goes with it: the new record waits for as long as any other. Rare, as it
            // takes a window shorter than the hold.
            self.order.retain(|(_, other)| *other != key);
        }
        self.resume(Tick(now.0.saturating_add(self.hold)), key, record);
        outlived
    }

    /// Does a record of this key wait?
    pub fn holds(&self, key: Digest) -> bool {
        self.held.contains_key(&key)
    }

    /// Enters a duplicate into its burst. Hands back the worse of the two, or the record itself
    /// where its key is not held.
    pub fn contend(&mut self, key: Digest, mut record: Held) -> Held {
        let Some(best) = self.held.get_mut(&key) else { return record };
        let wins = match (record.rank, best.rank) {
            (Some(new), Some(old)) => match self.better {
                Better::Max => new > old,
                Better::Min => new < old,
            },
            (new, old) => new.is_some() && old.is_none(),
        };
        if wins {
            self.bytes = self.bytes + record.bytes.len() - best.bytes.len();
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
        self.order.front().is_some_and(|&(until, _)| now > until || self.bytes > self.limit)
    }

    /// The oldest record whose time is over at `now`, or that must leave for lack of room.
    pub fn release(&mut self, now: Tick) -> Option<Held> {
        if self.is_due(now) { self.pop() } else { None }
    }

    /// The oldest record, whatever its time: at the end of the input.
    pub fn pop(&mut self) -> Option<Held> {
        let (_, key) = self.order.pop_front()?;
        self.changes += 1;
        let held = self.held.remove(&key)?;
        self.bytes -= held.bytes.len();
        Some(held)
    }

    /// What waits, oldest first, for a saved state.
    pub fn waiting(&self) -> impl Iterator<Item = (Tick, Digest, &Held)> {
        self.order.iter().filter_map(|&(until, key)| Some((until, key, self.held.get(&key)?)))
    }

    /// Puts back what a saved state held.
    pub fn resume(&mut self, until: Tick, key: Digest, record: Held) {
        self.bytes += record.bytes.len();
        self.changes += 1;
        self.order.push_back((until, key));
        self.held.insert(key, record);
    }
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
        let mut hold = Hold::new(1000, Better::Min, 8);
        assert_eq!(hold.begin(Digest::new(1, 0), Tick(0), record(-11.5)), None);
        assert_eq!(hold.begin(Digest::new(2, 0), Tick(1), record(-22.5)), None);
        assert_eq!(hold.release(Tick(1)), Some(record(-11.5)));
        assert_eq!(hold.release(Tick(1)), None);
    }
}
