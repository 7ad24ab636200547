//! Judges by a filter: seen lately, or not.

use crate::judge::Verdicts;
use crate::judge::change::LastValues;
use crate::judge::class::Class;
use crate::judge::clock::{StreamClock, Timing};
use crate::judge::moment::Moments;
use crate::record::{Batch, Record};
use lately::{AnyFilter, Digest, Renewal, Tick, Verdict, WindowFilter};

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
    // What the filter is asked about a batch: the records that nothing else decides about.
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
            digests: Vec::new(),
            ticks: Vec::new(),
            answers: Vec::new(),
        }
    }

    /// Resumes the clock of a saved state. See [`Moments::resume`].
    pub fn resume_clock(&mut self, now: Tick, of_events: bool) {
        if self.moments.resume(now, of_events) {
            self.filter.advance(now);
        }
    }

    /// Judges a batch. `next` is the batch after it, if it is at hand.
    pub fn judge(&mut self, batch: &Batch, next: Option<&Batch>, verdicts: &mut Verdicts) {
        self.place(batch, next, verdicts);
        let Verdicts { classes, changed, .. } = verdicts;
        let Self { ticks, answers, .. } = self;
        // Without a clock every keyed record is judged.
        let digests = if self.moments.clock.is_none() { &batch.digests } else { &self.digests };
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
        mark_duplicates(classes, answers);
    }

    /// Judges one record by its digest. `time` is `None` for a record that brings no time.
    ///
    /// Without later records at hand, a time far ahead of the clock is believed if it is not ahead of
    /// the wall clock.
    pub fn judge_one(&mut self, digest: Digest, time: Option<u64>) -> Class {
        match self.moments.place_one(time, std::iter::empty) {
            Timing::At(tick) if self.filter.observe(digest, tick).is_duplicate() => {
                Class::Duplicate
            }
            Timing::At(_) => Class::Fresh,
            Timing::Late => Class::Late,
            Timing::Skewed => Class::Skewed,
        }
    }

    /// Judges records by their digests, each with its time if there are any. Appends their classes.
    pub fn judge_digests(
        &mut self,
        digests: &[Digest],
        times: Option<&[u64]>,
        classes: &mut Vec<Class>,
    ) {
        let count = times.map_or(digests.len(), |times| times.len().min(digests.len()));
        let begin = classes.len();
        self.digests.clear();
        self.ticks.clear();
        for (at, &digest) in digests.iter().enumerate().take(count) {
            let later = || times.into_iter().flat_map(|times| times.iter().skip(at + 1).copied());
            classes.push(match self.moments.place_one(times.map(|times| times[at]), later) {
                Timing::At(tick) => {
                    self.digests.push(digest);
                    self.ticks.push(tick);
                    Class::Fresh
                }
                Timing::Late => Class::Late,
                Timing::Skewed => Class::Skewed,
            });
        }
        self.answers.clear();
        self.answers.resize(self.digests.len(), Verdict::Fresh);
        self.filter.observe_batch(&self.digests, &self.ticks, &mut self.answers);
        mark_duplicates(&mut classes[begin..], &self.answers);
    }

    /// Sets the class of all records that the filter does not decide about, and gathers the others.
    fn place(&mut self, batch: &Batch, next: Option<&Batch>, verdicts: &mut Verdicts) {
        verdicts.clear();
        let Self { digests, ticks, .. } = self;
        digests.clear();
        ticks.clear();
        let ask = |_, record: &Record, tick| {
            digests.push(record.digest);
            ticks.push(tick);
        };
        let now = self.moments.place(batch, next, Class::Fresh, verdicts, ask);
        if self.moments.clock.is_none() {
            ticks.resize(batch.digests.len(), now);
        }
    }
}

/// Does the filter decide about this record? Before it has, those are the fresh ones.
fn is_asked(class: Class) -> bool {
    class == Class::Fresh
}

/// Enters what the filter has answered about the records it was asked about.
fn mark_duplicates(classes: &mut [Class], answers: &[Verdict]) {
    let asked = classes.iter_mut().filter(|class| is_asked(**class));
    for (class, answer) in asked.zip(answers) {
        if answer.is_duplicate() {
            *class = Class::Duplicate;
        }
    }
}
