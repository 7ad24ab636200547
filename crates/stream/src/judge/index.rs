//! Puts the keys of records, which are numbers, into a range window.

use crate::judge::Verdicts;
use crate::judge::class::Class;
use crate::judge::clock::{StreamClock, Timing};
use crate::judge::moment::Moments;
use crate::record::{Batch, Record};
use lately::Tick;
use lately::range::RangeWindow;

/// Puts the key of every record into a range window.
#[derive(Debug)]
pub struct Indexer {
    /// What was seen lately.
    pub window: RangeWindow,
    /// When records are.
    pub moments: Moments,
}

impl Indexer {
    /// An indexer that begins with this window.
    pub fn new(window: RangeWindow, clock: Option<StreamClock>) -> Self {
        Self { window, moments: Moments::new(clock) }
    }

    /// Resumes the clock of a saved index. See [`Moments::resume`].
    pub fn resume_clock(&mut self, now: Tick, of_events: bool) {
        if self.moments.resume(now, of_events) {
            self.window.advance(now);
        }
    }

    /// Indexes a batch. `next` is the batch after it, if it is at hand.
    pub fn index(&mut self, batch: &Batch, next: Option<&Batch>, verdicts: &mut Verdicts) {
        verdicts.clear();
        let (window, timed) = (&mut self.window, self.moments.clock.is_some());
        let mut insert = |index, tick| {
            batch.numbers(index).for_each(|number| window.insert(number, tick));
        };
        let ask = |index, _: &Record, tick| insert(index, tick);
        let now = self.moments.place(batch, next, Class::Indexed, verdicts, ask);
        if !timed {
            let classes = verdicts.classes.iter().enumerate();
            classes
                .filter(|(_, class)| **class == Class::Indexed)
                .for_each(|(index, _)| insert(index, now));
        }
    }

    /// Indexes one number. `time` is `None` for a record that brings no time.
    pub fn index_one(&mut self, number: u128, time: Option<u64>) -> Class {
        match self.moments.place_one(time, std::iter::empty) {
            Timing::At(tick) => {
                self.window.insert(number, tick);
                Class::Indexed
            }
            Timing::Late => Class::Late,
            Timing::Skewed => Class::Skewed,
        }
    }
}
