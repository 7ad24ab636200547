//! Judges by a list of intervals: is the key in one of them?

use crate::judge::class::Class;
use crate::judge::hold::Held;
use crate::judge::moment::{Moments, OnLate};
use crate::judge::{Decide, Verdicts};
use crate::number::Intervals;
use crate::record::Batch;
use lately::{Digest, Overload, Tick};
use std::io::{self, Write};

/// Tells the records whose key, a number, is in one of many intervals (of a list of keys, one of
/// them) from all others. It remembers nothing.
#[derive(Debug)]
pub struct Watcher {
    intervals: Intervals,
    moments: Moments,
}

impl Watcher {
    /// A watcher over these intervals.
    pub fn new(intervals: Intervals) -> Self {
        Self { intervals, moments: Moments::new(None, OnLate::Pass) }
    }

    /// The intervals, merged where they overlap or touch.
    pub fn intervals(&self) -> &Intervals {
        &self.intervals
    }

    /// The class of one number.
    ///
    /// ```
    /// use lately_stream::judge::class::Class;
    /// use lately_stream::judge::watch::Watcher;
    /// let watcher = Watcher::new([10..=19, 15..=30].into_iter().collect());
    /// assert_eq!(watcher.class_of(30), Class::Inside);
    /// assert_eq!(watcher.class_of(31), Class::Outside);
    /// ```
    pub fn class_of(&self, number: u128) -> Class {
        if self.intervals.contains(number) { Class::Inside } else { Class::Outside }
    }
}

impl Decide for Watcher {
    const CLASSES: &'static [Class] =
        &[Class::Inside, Class::Outside, Class::KeyMissing, Class::Invalid];

    fn decide(&mut self, batch: &Batch, next: Option<&Batch>, verdicts: &mut Verdicts) {
        verdicts.clear();
        self.moments.place(batch, next, Class::Outside, verdicts, |_, _, _| {});
        for (index, class) in verdicts.classes.iter_mut().enumerate() {
            let mut numbers = batch.numbers(index);
            if *class == Class::Outside && numbers.any(|number| self.intervals.contains(number)) {
                *class = Class::Inside;
            }
        }
    }

    fn moments(&self) -> &Moments {
        &self.moments
    }

    fn moments_mut(&mut self) -> &mut Moments {
        &mut self.moments
    }

    fn overload(&self) -> Overload {
        Overload::default()
    }

    fn changes(&self) -> u64 {
        0
    }

    /// There is nothing to save.
    fn write_state(&self, _: &[(Tick, Digest, &Held)], _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}
