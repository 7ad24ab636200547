//! Judges by a filter: seen lately, or not.

use crate::judge::Verdicts;
use crate::judge::change::LastValues;
use crate::judge::class::Class;
use crate::judge::clock::Timing;
use crate::judge::moment::{Asked, Moments, SavedClock, UNTIMED};
use crate::judge::timeline::Timeline;
use crate::record::{Batch, Record};
use lately::{AnyFilter, Digest, Renewal, Tick, Verdict, WindowFilter};
use std::ops::Range;

/// Judges by a filter: seen lately, or not.
#[derive(Debug)]
pub struct Judge {
    /// What was seen lately.
    pub filter: AnyFilter,
    /// When records are judged.
    pub moments: Moments,
    /// The last value of each key, where a change lets a duplicate pass.
    pub last_values: Option<LastValues>,
    /// By how much each number of a key must have changed to let a duplicate pass.
    bands: Vec<f64>,
    renewal: Renewal,
    // What the filter is asked about a batch: the records that nothing else decides about.
    digests: Vec<Digest>,
    ticks: Vec<Tick>,
    answers: Vec<Verdict>,
    /// Where among them the clock was set back.
    steps_back: Vec<usize>,
}

impl Judge {
    /// A judge that begins with this filter.
    pub fn new(
        filter: AnyFilter,
        moments: Moments,
        last_values: Option<LastValues>,
        renewal: Renewal,
    ) -> Self {
        Self {
            filter,
            moments,
            last_values,
            bands: Vec::new(),
            renewal,
            digests: Vec::new(),
            ticks: Vec::new(),
            answers: Vec::new(),
            steps_back: Vec::new(),
        }
    }

    /// With dead bands for numbers.
    #[must_use]
    pub(crate) fn with_bands(self, bands: Vec<f64>) -> Self {
        Self { bands, ..self }
    }

    /// Resumes the clock of a saved state. See [`Moments::resume`].
    pub(crate) fn resume_clock(&mut self, line: Timeline, saved: Option<SavedClock>) {
        self.moments.resume_line(line);
        let Some(saved) = saved else { return self.moments.resume_early() };
        let now = saved.now;
        if self.moments.resume(saved) {
            self.filter.advance(now);
        }
    }

    /// Judges a batch. `next` is the batch after it, if it is at hand.
    pub fn judge(&mut self, batch: &Batch, next: Option<&Batch>, verdicts: &mut Verdicts) {
        self.place(batch, next, verdicts);
        let Verdicts { classes, changed, .. } = verdicts;
        // Without a clock every keyed record is judged.
        if self.moments.clock.is_none() {
            self.digests.clone_from(&batch.digests);
        }
        self.answers.clear();
        self.answers.resize(self.digests.len(), Verdict::Fresh);
        let values: Vec<u64> = match &self.last_values {
            None => Vec::new(),
            Some(_) => {
                let asked = batch.extras.iter().zip(&*classes);
                asked
                    .filter(|(_, class)| is_asked(**class))
                    .map(|(extra, _)| extra.change)
                    .collect()
            }
        };
        let width = self.bands.len();
        let numbers: Vec<f64> = match width {
            0 => Vec::new(),
            _ => {
                let asked = batch.bands.chunks(width).zip(&*classes);
                asked
                    .filter(|(_, class)| is_asked(**class))
                    .flat_map(|one| one.0)
                    .copied()
                    .collect()
            }
        };
        let mut begin = 0;
        for at in 0..=self.steps_back.len() {
            let end = self.steps_back.get(at).copied().unwrap_or(self.digests.len());
            *changed += if width == 0 {
                self.ask(begin..end, &values)
            } else {
                self.ask_with_bands(begin..end, &values, &numbers)
            };
            if at < self.steps_back.len() {
                self.forget();
            }
            begin = end;
        }
        if verdicts.stepped_back {
            self.forget();
        }
        mark_duplicates(&mut verdicts.classes, &self.answers);
    }

    /// Asks the filter about some of the records of a batch. How many duplicates had changed?
    fn ask(&mut self, range: Range<usize>, values: &[u64]) -> u64 {
        let Self { digests, ticks, answers, filter, renewal, .. } = self;
        let (digests, ticks, answers) =
            (&digests[range.clone()], &ticks[range.clone()], &mut answers[range.clone()]);
        let Some(last_values) = &mut self.last_values else {
            filter.observe_batch(digests, ticks, answers);
            return 0;
        };
        let mut changed = 0;
        // One by one: a change is itself a sighting to remember, before the next is judged.
        let values = values.get(range).unwrap_or_default();
        for (((&digest, &tick), &value), answer) in
            digests.iter().zip(ticks).zip(values).zip(answers)
        {
            let unchanged = last_values.is_unchanged(digest, value);
            *answer = filter.observe(digest, tick);
            if answer.is_duplicate() && !unchanged {
                *answer = Verdict::Fresh;
                changed += 1;
                if *renewal == Renewal::OnFresh {
                    filter.remember(digest, tick);
                }
            }
        }
        changed
    }

    /// The same, where numbers have dead bands: compared with the last record that was forwarded.
    fn ask_with_bands(&mut self, range: Range<usize>, values: &[u64], numbers: &[f64]) -> u64 {
        let Self { digests, ticks, answers, filter, renewal, bands, .. } = self;
        let Some(last_values) = &mut self.last_values else { return 0 };
        let numbers = numbers.chunks(bands.len()).chain(std::iter::repeat(&[][..]));
        let mut changed = 0;
        for (at, numbers) in range.clone().zip(numbers.skip(range.start)) {
            let (digest, tick) = (digests[at], ticks[at]);
            let value = values.get(at).copied().unwrap_or(0);
            let is_like = last_values.is_like(digest, value, numbers, bands);
            let mut answer = filter.observe(digest, tick);
            if answer.is_duplicate() && !is_like {
                answer = Verdict::Fresh;
                changed += 1;
                if *renewal == Renewal::OnFresh {
                    filter.remember(digest, tick);
                }
            }
            if !answer.is_duplicate() {
                last_values.forwarded(digest, value, numbers);
            }
            answers[at] = answer;
        }
        changed
    }

    /// Forgets all keys: the clock was wrong, and they were seen at times that never were.
    fn forget(&mut self) {
        self.filter.clear();
    }

    /// Judges one record by its digest. `time` is `None` for a record that brings no time.
    ///
    /// Without later records at hand, a time far ahead of the clock is believed if it is not ahead of
    /// the wall clock.
    pub fn judge_one(&mut self, digest: Digest, time: Option<i64>) -> Class {
        let timing = self.moments.place_one(time, std::iter::empty);
        if let Timing::SteppedBack(_) = timing {
            self.forget();
        }
        match timing {
            Timing::Late => Class::Late,
            Timing::Skewed => Class::Skewed,
            Timing::At(at) | Timing::SteppedBack(at) => match self.filter.observe(digest, at) {
                Verdict::Duplicate => Class::Duplicate,
                Verdict::Fresh => Class::Fresh,
            },
        }
    }

    /// Judges records by their digests, each with its time if there are any. Appends their classes.
    pub fn judge_digests(
        &mut self,
        digests: &[Digest],
        times: Option<&[i64]>,
        classes: &mut Vec<Class>,
    ) {
        let begin = classes.len();
        self.digests.clear();
        self.ticks.clear();
        self.answers.clear();
        match times {
            None => self.place_arrivals(digests, classes),
            Some(times) => self.place_times(digests, times, classes),
        }
        self.ask_the_rest();
        mark_duplicates(&mut classes[begin..], &self.answers);
    }

    /// Gathers records that all happen now.
    fn place_arrivals(&mut self, digests: &[Digest], classes: &mut Vec<Class>) {
        let now = self.moments.arrive_all(digests.len());
        self.digests.extend_from_slice(digests);
        self.ticks.resize(digests.len(), now);
        classes.resize(classes.len() + digests.len(), Class::Fresh);
    }

    /// Gathers those records that the filter decides about.
    fn place_times(&mut self, digests: &[Digest], times: &[i64], classes: &mut Vec<Class>) {
        let arrival = self.moments.arrival();
        for (at, (&digest, &time)) in digests.iter().zip(times).enumerate() {
            let later = || {
                let later = times.iter().skip(at + 1).copied();
                later.filter(|&time| time != UNTIMED)
            };
            let timing = self.moments.place_at(Some(time), arrival, later);
            if let Timing::SteppedBack(_) = timing {
                self.ask_the_rest();
                self.forget();
            }
            classes.push(match timing {
                Timing::At(tick) | Timing::SteppedBack(tick) => {
                    self.digests.push(digest);
                    self.ticks.push(tick);
                    Class::Fresh
                }
                Timing::Late => Class::Late,
                Timing::Skewed => Class::Skewed,
            });
        }
    }

    /// Asks the filter about the records gathered that it was not asked about before.
    fn ask_the_rest(&mut self) {
        let done = self.answers.len();
        self.answers.resize(self.digests.len(), Verdict::Fresh);
        let (digests, ticks) = (&self.digests[done..], &self.ticks[done..]);
        self.filter.observe_batch(digests, ticks, &mut self.answers[done..]);
    }

    /// Sets the class of all records that the filter does not decide about, and gathers the others.
    fn place(&mut self, batch: &Batch, next: Option<&Batch>, verdicts: &mut Verdicts) {
        verdicts.clear();
        let Self { digests, ticks, steps_back, .. } = self;
        digests.clear();
        ticks.clear();
        steps_back.clear();
        let ask = |_, record: &Record, asked: Asked| {
            if asked.stepped_back {
                steps_back.push(digests.len());
            }
            digests.push(record.digest);
            ticks.push(asked.at);
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
