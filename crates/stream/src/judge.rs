//! Judges records: clock, filter, change.

use crate::change::LastValues;
use crate::clock::{ArrivalClock, LOOK_AHEAD, Place, StreamClock, wall_clock};
use crate::record::{Batch, Kind, Record};
use crate::sink::{Class, class_of_kind};
use lately::{AnyFilter, Digest, Renewal, Tick, Verdict, WindowFilter};

/// The part of a run that remembers.
#[derive(Debug)]
pub struct Judge {
    /// What was seen lately.
    pub filter: AnyFilter,
    /// The stream clock; `None` when records are judged at the time they arrive.
    pub clock: Option<StreamClock>,
    /// The last value of each key, where a change lets a duplicate pass.
    pub last_values: Option<LastValues>,
    renewal: Renewal,
    arrivals: ArrivalClock,
    /// A record brought a time of its own, in this run or in one it goes on from.
    timed: bool,
    verdicts: Verdicts,
}

/// What was found out about the records of one batch, in order.
#[derive(Debug, Default)]
pub struct Verdicts {
    /// The class of each record.
    pub classes: Vec<Class>,
    /// The moment each record was judged at; that of the one before where it was not judged.
    pub moments: Vec<Tick>,
    /// Duplicates that passed because a value had changed.
    pub changed: u64,
    // What the filter is asked about the records that are fresh as far as all else goes.
    digests: Vec<Digest>,
    ticks: Vec<Tick>,
    answers: Vec<Verdict>,
}

impl Judge {
    /// A judge that begins with this filter.
    pub fn new(
        filter: AnyFilter,
        clock: Option<StreamClock>,
        last_values: Option<LastValues>,
        renewal: Renewal,
    ) -> Self {
        Self {
            filter,
            clock,
            last_values,
            renewal,
            arrivals: ArrivalClock::start(),
            timed: false,
            verdicts: Verdicts::default(),
        }
    }

    /// Are records judged by when they arrive, for want of a time of their own?
    pub fn by_arrival(&self) -> bool {
        !self.timed
    }

    /// The present moment, to records that are judged by when they arrive.
    pub fn arrival(&mut self) -> Tick {
        self.arrivals.now(self.clock.as_ref().and_then(StreamClock::now))
    }

    /// Sets the clock on from a saved state. A clock of events goes on as one: until a record
    /// comes, it stands still, and the time of day says nothing about what waits for it.
    pub fn resume_clock(&mut self, now: Tick, of_events: bool) {
        if let Some(clock) = &mut self.clock {
            clock.resume(now);
            self.filter.advance(now);
            self.timed = of_events;
        }
    }

    /// Judges a batch. `next` is the batch after it, if it is at hand.
    pub fn judge(&mut self, batch: &Batch, next: Option<&Batch>) -> &Verdicts {
        self.place(batch, next);
        let Verdicts { classes, digests, ticks, answers, changed, .. } = &mut self.verdicts;
        // Without a clock every keyed record is judged.
        let digests = if self.clock.is_none() { &batch.digests } else { &*digests };
        answers.clear();
        answers.resize(digests.len(), Verdict::Fresh);
        if let Some(last_values) = &mut self.last_values {
            // One by one: a change is itself a sighting to remember, before the next is judged.
            let asked = batch.extras.iter().zip(&*classes).filter(|(_, class)| is_asked(**class));
            let values = asked.map(|(extra, _)| extra.change);
            for (((&digest, &tick), value), answer) in
                digests.iter().zip(&*ticks).zip(values).zip(&mut *answers)
            {
                let unchanged = last_values.is_unchanged(digest, value);
                *answer = self.filter.observe(digest, tick);
                if answer.is_duplicate() && !unchanged {
                    *answer = Verdict::Fresh;
                    *changed += 1;
                    if self.renewal == Renewal::OnFresh {
                        self.filter.remember(digest, tick);
                    }
                }
            }
        } else {
            self.filter.observe_batch(digests, ticks, answers);
        }
        let asked = classes.iter_mut().filter(|class| is_asked(**class));
        for (class, answer) in asked.zip(answers) {
            if answer.is_duplicate() {
                *class = Class::Duplicate;
            }
        }
        &self.verdicts
    }

    /// Sets the class of all records that the filter has no say in, and gathers the others.
    fn place(&mut self, batch: &Batch, next: Option<&Batch>) {
        let verdicts = &mut self.verdicts;
        verdicts.clear();
        let arrival = self.arrivals.now(self.clock.as_ref().and_then(StreamClock::now));
        let Some(clock) = &mut self.clock else {
            verdicts.ticks.resize(batch.digests.len(), arrival);
            if batch.digests.len() == batch.records.len() {
                verdicts.classes.resize(batch.records.len(), Class::Fresh);
            } else {
                let of = |record| class_of_kind(record).unwrap_or(Class::Fresh);
                verdicts.classes.extend(batch.records.iter().map(of));
            }
            verdicts.moments.resize(batch.records.len(), arrival);
            return;
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
                        verdicts.digests.push(record.digest);
                        verdicts.ticks.push(tick);
                        Class::Fresh
                    }
                }
            });
            verdicts.classes.push(class);
            verdicts.moments.push(now);
        }
    }
}

/// Does the filter decide about this record? Before it has, those are the fresh ones.
fn is_asked(class: Class) -> bool {
    class == Class::Fresh
}

impl Verdicts {
    fn clear(&mut self) {
        self.classes.clear();
        self.moments.clear();
        self.changed = 0;
        self.digests.clear();
        self.ticks.clear();
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
