//! Judges by a list of intervals: is the key in one of them?

use crate::hold::Held;
use crate::judge::{Decide, Verdicts};
use crate::moment::Moments;
use crate::number::Intervals;
use crate::record::Batch;
use crate::sink::Class;
use crate::state::StateError;
use lately::{Digest, Overload, Tick};
use std::path::Path;

/// Passes records on whose key, a number, is in one of many intervals, or one key of a list is. It remembers nothing.
///
/// Of the classes, [`Class::Fresh`] are those inside, and [`Class::Duplicate`] those outside, which
/// are kept back.
#[derive(Debug)]
pub struct Watcher {
    intervals: Intervals,
    moments: Moments,
    verdicts: Verdicts,
}

impl Watcher {
    /// A watcher over these intervals.
    pub fn new(intervals: Intervals) -> Self {
        Self { intervals, moments: Moments::new(None), verdicts: Verdicts::default() }
    }

    /// The intervals, merged where they overlap or touch.
    pub fn intervals(&self) -> &Intervals {
        &self.intervals
    }
}

impl Decide for Watcher {
    fn decide(&mut self, batch: &Batch, next: Option<&Batch>) -> &Verdicts {
        self.verdicts.clear();
        let Verdicts { classes, moments, .. } = &mut self.verdicts;
        self.moments.place(batch, next, classes, moments, |_, _, _| {});
        for (index, class) in classes.iter_mut().enumerate() {
            let mut numbers = batch.numbers(index);
            if *class == Class::Fresh && !numbers.any(|number| self.intervals.contains(number)) {
                *class = Class::Duplicate;
            }
        }
        &self.verdicts
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

    /// There is nothing to save.
    fn save(
        &self,
        _: &Path,
        _: &str,
        _: &mut dyn Iterator<Item = (Tick, Digest, &Held)>,
    ) -> Result<(), StateError> {
        Ok(())
    }
}
