//! The moment of each record: what the records of a batch are by themselves, before anything that
//! remembers is asked about them.

use crate::clock::{ArrivalClock, LOOK_AHEAD, Place, StreamClock, wall_clock};
use crate::record::{Batch, Kind, Record};
use crate::sink::{Class, class_of_kind};
use lately::Tick;

/// The clocks of a run.
#[derive(Debug)]
pub struct Moments {
    /// The stream clock; `None` when records are judged at the time they arrive.
    pub clock: Option<StreamClock>,
    arrivals: ArrivalClock,
    /// A record brought a time of its own, in this run or in one it goes on from.
    timed: bool,
}

impl Moments {
    /// Clocks that begin now.
    pub(crate) fn new(clock: Option<StreamClock>) -> Self {
        Self { clock, arrivals: ArrivalClock::start(), timed: false }
    }

    /// Are records judged by when they arrive, for want of a time of their own?
    pub fn by_arrival(&self) -> bool {
        !self.timed
    }

    /// The present moment, to records that are judged by when they arrive.
    pub fn arrival(&mut self) -> Tick {
        self.arrivals.now(self.clock.as_ref().and_then(StreamClock::now))
    }

    /// The largest time of the stream clock so far.
    pub fn now(&self) -> Option<Tick> {
        self.clock.as_ref().and_then(StreamClock::now)
    }

    /// Sets the clock on from a saved state; is there one? A clock of events goes on as one: until a
    /// record comes, it stands still, and the time of day says nothing about what waits for it.
    pub fn resume(&mut self, now: Tick, of_events: bool) -> bool {
        let Some(clock) = &mut self.clock else { return false };
        clock.resume(now);
        self.timed = of_events;
        true
    }

    /// Sets the class of all records that what remembers has no say in; the others are fresh so far.
    /// `moments` becomes the moment of each, and `ask` is called with those that are to be asked
    /// about, by their index, and theirs, where there is a clock; without one that is every keyed record, at the
    /// moment of the batch.
    pub(crate) fn place(
        &mut self,
        batch: &Batch,
        next: Option<&Batch>,
        classes: &mut Vec<Class>,
        moments: &mut Vec<Tick>,
        mut ask: impl FnMut(usize, &Record, Tick),
    ) -> Tick {
        let arrival = self.arrival();
        let Some(clock) = &mut self.clock else {
            if batch.digests.len() == batch.records.len() {
                classes.resize(batch.records.len(), Class::Fresh);
            } else {
                let of = |record| class_of_kind(record).unwrap_or(Class::Fresh);
                classes.extend(batch.records.iter().map(of));
            }
            moments.resize(batch.records.len(), arrival);
            return arrival;
        };
        let mut now = clock.now().unwrap_or(arrival);
        for (index, record) in batch.records.iter().enumerate() {
            let class = class_of_kind(record).unwrap_or_else(|| {
                let place = match record.time {
                    Record::NO_TIME => Place::At(clock.arrive(arrival)),
                    time => {
                        self.timed = true;
                        clock.place(time, wall_clock, || times_after(batch, index, next))
                    }
                };
                match place {
                    Place::Late => Class::Late,
                    Place::Skewed => Class::Skewed,
                    Place::At(tick) => {
                        now = tick;
                        ask(index, record, tick);
                        Class::Fresh
                    }
                }
            });
            classes.push(class);
            moments.push(now);
        }
        now
    }
}

/// The times of the records after one, as far as they are at hand and of use to the clock.
fn times_after<'a>(
    batch: &'a Batch,
    index: usize,
    next: Option<&'a Batch>,
) -> impl Iterator<Item = u64> + 'a {
    let here = batch.records.get(index + 1..).unwrap_or(&[]);
    let there = next.map_or(&[][..], |next| &next.records);
    let timed = |record: &&Record| {
        matches!(record.kind, Kind::Keyed | Kind::KeyMissing) && record.time != Record::NO_TIME
    };
    here.iter().chain(there).filter(timed).map(|record| record.time).take(LOOK_AHEAD)
}
