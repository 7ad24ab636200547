//! Judges records: clock, filter, change. And what a run asks of whatever judges.

use crate::change::LastValues;
use crate::clock::StreamClock;
use crate::hold::Held;
use crate::moment::Moments;
use crate::record::{Batch, Record};
use crate::sink::Class;
use crate::state::{self, StateError};
use lately::{AnyFilter, Digest, Overload, Renewal, Tick, Verdict, WindowFilter};
use std::path::Path;

/// Decides what becomes of each record: the part of a run that remembers, whatever that is.
pub trait Decide {
    /// The class of each record of a batch. `next` is the batch after it, if it is at hand.
    fn decide(&mut self, batch: &Batch, next: Option<&Batch>) -> &Verdicts;

    /// When records are judged.
    fn moments(&self) -> &Moments;

    /// The same, to be moved on.
    fn moments_mut(&mut self) -> &mut Moments;

    /// What was given up for lack of room.
    fn overload(&self) -> Overload;

    /// Last values that were pushed out for lack of room.
    fn evicted(&self) -> u64 {
        0
    }

    /// Saves what is remembered, with the records that are held back.
    ///
    /// *Errors:* [`StateError::Io`]; the old state then still stands.
    fn save(
        &self,
        path: &Path,
        settings: &str,
        held: &mut dyn Iterator<Item = (Tick, Digest, &Held)>,
    ) -> Result<(), StateError>;
}

/// Judges by a filter: seen lately, or not.
#[derive(Debug)]
pub struct Judge {
    /// What was seen lately.
    pub filter: AnyFilter,
    /// When records are judged.
    pub moments: Moments,
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
            moments: Moments::new(clock),
            last_values,
            renewal,
            verdicts: Verdicts::default(),
        }
    }

    /// Sets the clock on from a saved state. See [`Moments::resume`].
    pub fn resume_clock(&mut self, now: Tick, of_events: bool) {
        if self.moments.resume(now, of_events) {
            self.filter.advance(now);
        }
    }

    /// Judges a batch. `next` is the batch after it, if it is at hand.
    pub fn judge(&mut self, batch: &Batch, next: Option<&Batch>) -> &Verdicts {
        self.place(batch, next);
        let Verdicts { classes, digests, ticks, answers, changed, .. } = &mut self.verdicts;
        // Without a clock every keyed record is judged.
        let digests = if self.moments.clock.is_none() { &batch.digests } else { &*digests };
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
        self.verdicts.clear();
        let Verdicts { classes, moments, digests, ticks, .. } = &mut self.verdicts;
        let ask = |_, record: &Record, tick| {
            digests.push(record.digest);
            ticks.push(tick);
        };
        let now = self.moments.place(batch, next, classes, moments, ask);
        if self.moments.clock.is_none() {
            ticks.resize(batch.digests.len(), now);
        }
    }
}

impl Decide for Judge {
    fn decide(&mut self, batch: &Batch, next: Option<&Batch>) -> &Verdicts {
        self.judge(batch, next)
    }

    fn moments(&self) -> &Moments {
        &self.moments
    }

    fn moments_mut(&mut self) -> &mut Moments {
        &mut self.moments
    }

    fn overload(&self) -> Overload {
        self.filter.overload()
    }

    fn evicted(&self) -> u64 {
        self.last_values.as_ref().map_or(0, LastValues::evicted)
    }

    fn save(
        &self,
        path: &Path,
        settings: &str,
        held: &mut dyn Iterator<Item = (Tick, Digest, &Held)>,
    ) -> Result<(), StateError> {
        let parts = state::Parts {
            settings,
            clock: self.moments.now(),
            of_events: !self.moments.by_arrival(),
            filter: &self.filter,
            last_values: self.last_values.as_ref(),
        };
        state::save(path, &parts, held)
    }
}

/// Does the filter decide about this record? Before it has, those are the fresh ones.
fn is_asked(class: Class) -> bool {
    class == Class::Fresh
}

impl Verdicts {
    pub(crate) fn clear(&mut self) {
        self.classes.clear();
        self.moments.clear();
        self.changed = 0;
        self.digests.clear();
        self.ticks.clear();
    }
}
