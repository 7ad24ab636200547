//! Fresh records held for a moment, to forward the best of a burst (`--best FIELD:max --hold 200ms`) or to
//! count the copies of each (`--count`).

use crate::record::Mark;
use crate::session::Span;
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

/// How copies are counted: a record waits until its window closes, when no further one can come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counting {
    /// When that is.
    pub span: Span,
    /// Each copy renews the window; else it closes a window after the first.
    pub renews: bool,
    /// How far behind the clock a copy may be, in nanoseconds, where records bring times.
    pub lateness: u64,
    /// Which records are forwarded.
    pub wanted: Wanted,
}

/// Which records are forwarded by the number of their copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// All.
    #[default]
    All,
    /// Those that came more than once.
    Repeated,
    /// Those that came once.
    Unique,
}

/// What becomes of a burst.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    Best(Better),
    Count(Counting),
}

/// A record that waits.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// How it is marked: by the time it is forwarded, records of another format may have come.
    pub mark: Mark,
    /// The number it is ranked by; a record without one loses. Where copies are counted, their number.
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
/// A record waits for `hold` nanoseconds of stream time (where copies are counted, until no further one
/// can come), or less when all that wait take more than
/// `limit` bytes of memory, their places included (the oldest is then released early). It is released
/// exactly once, in the order in which the bursts began.
///
/// # Cost
/// Constant time for each record, amortized.
#[derive(Debug)]
pub struct Hold {
    hold: u64,
    purpose: Purpose,
    /// Records bring no times, so that none is late.
    in_order: bool,
    /// Records that were judged, the moments of a window of a number of records.
    arrivals: u64,
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
            purpose: Purpose::Best(better),
            in_order: false,
            arrivals: 0,
            limit,
            bytes: 0,
            order: VecDeque::new(),
            held: HashMap::new(),
            next: 0,
            changes: 0,
        }
    }

    /// Counts copies instead. `limit` in bytes.
    pub fn counting(counting: Counting, limit: usize) -> Self {
        let hold = match counting.span {
            Span::Within(length) => length.saturating_add(counting.lateness),
            Span::Last(_) | Span::Ever => u64::MAX,
        };
        Self { purpose: Purpose::Count(counting), ..Self::new(hold, Better::Max, limit) }
    }

    /// How copies are counted, if they are.
    pub fn counts(&self) -> Option<Counting> {
        match self.purpose {
            Purpose::Best(_) => None,
            Purpose::Count(counting) => Some(counting),
        }
    }

    /// Do records bring no times of their own, so that none is late?
    pub(crate) fn by_arrival(&mut self, by_arrival: bool) {
        self.in_order = by_arrival;
    }

    /// A record was judged: one more of a window of a number of records.
    pub(crate) fn arrive(&mut self) {
        self.arrivals += 1;
    }

    /// Is a record with so many copies one of those that are wanted?
    pub(crate) fn is_wanted(&self, held: &Held) -> bool {
        match self.counts().map(|counting| counting.wanted) {
            None | Some(Wanted::All) => true,
            Some(Wanted::Repeated) => copies(held) > 1,
            Some(Wanted::Unique) => copies(held) == 1,
        }
    }

    /// Until when a record waits that came, or was renewed, at `now`.
    fn until(&self, now: Tick) -> Tick {
        match self.purpose {
            Purpose::Count(Counting { span: Span::Last(n), .. }) => {
                Tick(self.arrivals.saturating_add(n))
            }
            Purpose::Count(Counting { span: Span::Within(length), .. }) if self.in_order => {
                Tick(now.0.saturating_add(length))
            }
            _ => Tick(now.0.saturating_add(self.hold)),
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
        self.push(self.until(now), key, record);
        outlived
    }

    /// Takes a record out, and leaves its place behind.
    fn remove(&mut self, key: Digest) -> Option<Held> {
        let Waiting { record, .. } = self.held.remove(&key)?;
        self.bytes -= memory(&record);
        self.tidy();
        Some(record)
    }

    /// Clears the queue of places whose records are gone or have later ones.
    fn tidy(&mut self) {
        if self.order.len() > self.held.len() + self.held.len() / 2 + STALE {
            let held = &self.held;
            self.order.retain(|place| is_current(held, place));
        }
        // What is at the front decides when the next one is due.
        while self.order.front().is_some_and(|place| !is_current(&self.held, place)) {
            self.order.pop_front();
        }
    }

    /// Does a record of this key wait?
    pub fn holds(&self, key: Digest) -> bool {
        self.held.contains_key(&key)
    }

    /// Enters a duplicate, which came at `now`, into its burst. Hands back the worse of the two, or the
    /// record itself where its key is not held or copies are counted.
    pub fn contend(&mut self, key: Digest, now: Tick, mut record: Held) -> Held {
        let better = match self.purpose {
            Purpose::Best(better) => better,
            Purpose::Count(counting) => {
                self.count(key, now, counting.renews);
                return record;
            }
        };
        let Some(Waiting { record: best, .. }) = self.held.get_mut(&key) else { return record };
        let wins = match (record.rank, best.rank) {
            (Some(new), Some(old)) => match better {
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

    /// Counts a copy of the record of this key, which waits longer for it if copies renew the window.
    fn count(&mut self, key: Digest, now: Tick, renews: bool) {
        let until = self.until(now);
        let Some(waiting) = self.held.get_mut(&key) else { return };
        waiting.record.rank = Some(waiting.record.rank.unwrap_or(1.0) + 1.0);
        self.changes += 1;
        if renews && until < Tick(u64::MAX) {
            waiting.burst = self.next;
            self.order.push_back(Place { until, key, burst: self.next });
            self.next += 1;
            self.tidy();
        }
    }

    /// How long a record waits.
    pub fn length(&self) -> u64 {
        self.hold
    }

    /// Is there a record for [`Hold::release`]?
    pub fn is_due(&self, now: Tick) -> bool {
        let now = match self.purpose {
            Purpose::Count(Counting { span: Span::Last(_), .. }) => Tick(self.arrivals),
            _ => now,
        };
        self.order.front().is_some_and(|place| now > place.until || self.is_full())
    }

    /// Do the records that wait take more memory than they may?
    pub(crate) fn is_full(&self) -> bool {
        self.bytes > self.limit
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
        // The next run counts arrivals from 0 again.
        let until = |place: &Place| Tick(place.until.0.saturating_sub(self.arrivals));
        current.filter_map(move |place| {
            Some((until(place), place.key, &self.held.get(&place.key)?.record))
        })
    }

    /// Puts back what a saved state held.
    pub fn resume(&mut self, until: Tick, key: Digest, record: Held) {
        self.push(until, key, record);
    }

    fn push(&mut self, until: Tick, key: Digest, record: Held) {
        self.bytes += memory(&record);
        self.changes += 1;
        let burst = self.next;
        self.next += 1;
        self.order.push_back(Place { until, key, burst });
        self.held.insert(key, Waiting { burst, record });
    }
}

/// How many times a held record came.
pub(crate) fn copies(held: &Held) -> u64 {
    held.rank.map_or(1, |copies| copies as u64)
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
        assert_eq!(hold.contend(tag, Tick(1000), record(-50.0)), record(-70.0));
        assert_eq!(hold.contend(tag, Tick(1000), record(-60.0)), record(-60.0));
        assert_eq!(hold.release(Tick(1200)), None);
        assert_eq!(hold.release(Tick(1201)), Some(record(-50.0)));
        assert_eq!(hold.contend(tag, Tick(1000), record(-10.0)), record(-10.0));
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

    fn counting(span: Span, renews: bool) -> Hold {
        let wanted = Wanted::All;
        Hold::counting(Counting { span, renews, lateness: 0, wanted }, 1 << 20)
    }

    fn first() -> Held {
        Held { rank: None, ..record(0.0) }
    }

    #[test]
    fn copies_are_counted_until_the_window_closes() {
        let tag = Digest::new(1, 2);
        for (renews, closes) in [(false, 110), (true, 119)] {
            let mut hold = counting(Span::Within(10), renews);
            assert_eq!(hold.begin(tag, Tick(100), first()), None);
            for at in [101, 109] {
                assert_eq!(hold.contend(tag, Tick(at), record(7.0)), record(7.0));
            }
            assert_eq!(hold.release(Tick(closes)), None);
            let released = hold.release(Tick(closes + 1)).unwrap();
            assert_eq!((copies(&released), &*released.bytes), (3, &b"0"[..]));
            assert_eq!((hold.memory(), hold.order.len()), (0, 0));
        }
    }

    #[test]
    fn a_window_of_records_closes_by_their_number() {
        let (tag, mut hold) = (Digest::new(1, 2), counting(Span::Last(2), true));
        hold.arrive();
        assert_eq!(hold.begin(tag, Tick(0), first()), None);
        hold.arrive();
        let _ = hold.contend(tag, Tick(0), record(7.0));
        [(); 2].iter().for_each(|()| hold.arrive());
        assert_eq!(hold.release(Tick(u64::MAX)), None);
        // In a later run, too, which counts from 0.
        let saved: Vec<_> =
            hold.waiting().map(|(until, key, held)| (until, key, held.clone())).collect();
        let mut resumed = counting(Span::Last(2), true);
        saved.into_iter().for_each(|(until, key, held)| resumed.resume(until, key, held));
        for mut hold in [hold, resumed] {
            hold.arrive();
            assert_eq!(hold.release(Tick(0)).map(|held| copies(&held)), Some(2));
        }
    }

    #[test]
    fn renewed_places_do_not_pile_up() {
        let mut hold = counting(Span::Within(1000), true);
        for key in 0..100 {
            let _ = hold.begin(Digest::new(key, 0), Tick(0), first());
        }
        for at in 0..100_000 {
            let _ = hold.contend(Digest::new(at % 100, 0), Tick(at / 1000), record(0.0));
            assert!(hold.order.len() <= 150 + STALE + 1);
        }
        let counts: Vec<_> = std::iter::from_fn(|| hold.pop()).map(|held| copies(&held)).collect();
        assert_eq!(counts, [1001; 100]);
    }
}
