//! Judges records: clock, filter, change.

use crate::change::LastValues;
use crate::clock::{LOOK_AHEAD, Place, StreamClock};
use crate::record::{Batch, Kind, Record};
use crate::sink::{Class, class_of_kind};
use lately::{AnyFilter, Digest, Renewal, Tick, Verdict, WindowFilter};
use std::time::{SystemTime, UNIX_EPOCH};

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
    // What the filter is asked, and where in `classes` the answers go.
    digests: Vec<Digest>,
    ticks: Vec<Tick>,
    answers: Vec<Verdict>,
    asked: Vec<u32>,
}

impl Judge {
    /// A judge that begins with this filter.
    pub fn new(
        filter: AnyFilter,
        clock: Option<StreamClock>,
        last_values: Option<LastValues>,
        renewal: Renewal,
    ) -> Self {
        Self { filter, clock, last_values, renewal, verdicts: Verdicts::default() }
    }

    /// Are records judged by when they arrive, for want of a time of their own?
    pub fn by_arrival(&self) -> bool {
        self.clock.as_ref().is_none_or(|clock| clock.now().is_none())
    }

    /// Judges a batch. `next` is the batch after it, if it is at hand.
    pub fn judge(&mut self, batch: &Batch, next: Option<&Batch>) -> &Verdicts {
        self.place(batch, next);
        let Verdicts { classes, digests, ticks, answers, asked, changed, .. } = &mut self.verdicts;
        answers.clear();
        answers.resize(digests.len(), Verdict::Fresh);
        if let Some(last_values) = &mut self.last_values {
            // One by one: a change is itself a sighting to remember, before the next is judged.
            for (i, (&digest, &tick)) in digests.iter().zip(&*ticks).enumerate() {
                let value = batch.extras.get(asked[i] as usize).map_or(0, |extra| extra.change);
                let unchanged = last_values.is_unchanged(digest, value);
                answers[i] = self.filter.observe(digest, tick);
                if answers[i].is_duplicate() && !unchanged {
                    answers[i] = Verdict::Fresh;
                    *changed += 1;
                    if self.renewal == Renewal::OnFresh {
                        self.filter.remember(digest, tick);
                    }
                }
            }
        } else {
            self.filter.observe_batch(digests, ticks, answers);
        }
        for (&at, answer) in asked.iter().zip(answers) {
            if answer.is_duplicate() {
                classes[at as usize] = Class::Duplicate;
            }
        }
        &self.verdicts
    }

    /// Sets the class of all records that the filter has no say in, and gathers the others.
    fn place(&mut self, batch: &Batch, next: Option<&Batch>) {
        let verdicts = &mut self.verdicts;
        verdicts.clear();
        let arrival = Tick(wall_clock());
        let mut now = self.clock.as_ref().and_then(StreamClock::now).unwrap_or(arrival);
        for (index, record) in batch.records.iter().enumerate() {
            let class = class_of_kind(record).unwrap_or_else(|| {
                let place = match &mut self.clock {
                    None => Place::At(arrival),
                    Some(clock) => {
                        clock.place(record.time, wall_clock, || times_after(batch, index, next))
                    }
                };
                match place {
                    Place::Late => Class::Late,
                    Place::Skewed => Class::Skewed,
                    Place::At(tick) => {
                        now = tick;
                        verdicts.digests.push(record.digest);
                        verdicts.ticks.push(tick);
                        verdicts.asked.push(index as u32);
                        Class::Fresh
                    }
                }
            });
            verdicts.classes.push(class);
            verdicts.moments.push(now);
        }
    }
}

impl Verdicts {
    fn clear(&mut self) {
        self.classes.clear();
        self.moments.clear();
        self.changed = 0;
        self.digests.clear();
        self.ticks.clear();
        self.asked.clear();
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

/// Nanoseconds since 1970.
pub fn wall_clock() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
