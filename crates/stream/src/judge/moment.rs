//! The moment of each record: what the records of a batch are by themselves, before anything that
//! remembers is asked about them.

use crate::judge::Verdicts;
use crate::judge::class::Class;
use crate::judge::clock::{ArrivalClock, LOOK_AHEAD, StreamClock, Timing, wall_clock};
use crate::record::{Batch, Kind, Record};
use lately::Tick;

/// The clocks of a run.
#[derive(Debug)]
pub struct Moments {
    /// The stream clock; `None` when records are judged at the time they arrive.
    pub clock: Option<StreamClock>,
    arrivals: ArrivalClock,
    /// A record brought a time of its own, in this run or in one it resumes.
    timed: bool,
    /// Rises whenever a record is to be asked about, or brings the first time.
    changes: u64,
}

impl Moments {
    /// Clocks that begin now.
    pub(crate) fn new(clock: Option<StreamClock>) -> Self {
        Self { clock, arrivals: ArrivalClock::start(), timed: false, changes: 0 }
    }

    /// Are records judged by when they arrive, as they bring no time of their own?
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

    /// Resumes the clock of a saved state; is there a clock? One of events resumes as one: until a
    /// record comes, it stands still, and the time of day says nothing about what waits for it.
    pub fn resume(&mut self, now: Tick, of_events: bool) -> bool {
        let Some(clock) = &mut self.clock else { return false };
        clock.resume(now);
        self.timed = of_events;
        true
    }

    /// A number that rises whenever what is remembered may have changed.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Places one record in time. `later` are the times of the records after it that are at hand.
    pub fn place_one<I: Iterator<Item = u64>>(
        &mut self,
        time: Option<u64>,
        later: impl FnOnce() -> I,
    ) -> Timing {
        let arrival = self.arrival();
        let timing = match (&mut self.clock, time) {
            (None, _) => Timing::At(arrival),
            (Some(clock), None) => Timing::At(clock.arrive(arrival)),
            (Some(clock), Some(time)) => {
                self.changes += u64::from(!self.timed);
                self.timed = true;
                clock.place(time, wall_clock, later)
            }
        };
        self.changes += u64::from(matches!(timing, Timing::At(_)));
        timing
    }

    /// Sets the class of all records that are late, skewed, or decided by their kind; the others are
    /// `asked` so far. Sets the moment of each, and calls `ask` with those that are to be asked
    /// about, by their index, and their moment, where there is a clock; without one those are all
    /// keyed records, at the moment of the batch, which is returned.
    pub(crate) fn place(
        &mut self,
        batch: &Batch,
        next: Option<&Batch>,
        asked: Class,
        verdicts: &mut Verdicts,
        mut ask: impl FnMut(usize, &Record, Tick),
    ) -> Tick {
        let Verdicts { classes, moments, .. } = verdicts;
        let arrival = self.arrival();
        let Some(clock) = &mut self.clock else {
            self.changes += 1;
            if batch.digests.len() == batch.records.len() {
                classes.resize(batch.records.len(), asked);
            } else {
                classes
                    .extend(batch.records.iter().map(|one| Class::of_kind(one).unwrap_or(asked)));
                self.changes -= u64::from(!classes.contains(&asked));
            }
            moments.resize(batch.records.len(), arrival);
            return arrival;
        };
        let mut now = clock.now().unwrap_or(arrival);
        for (index, record) in batch.records.iter().enumerate() {
            let class = Class::of_kind(record).unwrap_or_else(|| {
                let timing = match record.time {
                    Record::NO_TIME => Timing::At(clock.arrive(arrival)),
                    time => {
                        self.changes += u64::from(!self.timed);
                        self.timed = true;
                        clock.place(time, wall_clock, || times_after(batch, index, next))
                    }
                };
                match timing {
                    Timing::Late => Class::Late,
                    Timing::Skewed => Class::Skewed,
                    Timing::At(tick) => {
                        now = tick;
                        self.changes += 1;
                        ask(index, record, tick);
                        asked
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
