//! Puts the keys of records, which are numbers, into a range window.

use crate::judge::Verdicts;
use crate::judge::class::Class;
use crate::judge::clock::Timing;
use crate::judge::moment::{Asked, Moments, SavedClock};
use crate::judge::timeline::Timeline;
use crate::record::{Batch, Record};
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
    pub fn new(window: RangeWindow, moments: Moments) -> Self {
        Self { window, moments }
    }

    /// Resumes the clock of a saved index. See [`Moments::resume`].
    pub(crate) fn resume_clock(&mut self, line: Timeline, saved: Option<SavedClock>) {
        self.moments.resume_line(line);
        let Some(saved) = saved else { return self.moments.resume_early() };
        let now = saved.now;
        if self.moments.resume(saved) {
            self.window.advance(now);
        }
    }

    /// Indexes a batch. `next` is the batch after it, if it is at hand.
    pub fn index(&mut self, batch: &Batch, next: Option<&Batch>, verdicts: &mut Verdicts) {
        verdicts.clear();
        let (window, timed) = (&mut self.window, self.moments.clock.is_some());
        let insert = |window: &mut RangeWindow, index, tick| {
            batch.numbers(index).for_each(|number| window.insert(number, tick));
        };
        let ask = |index, _: &Record, asked: Asked| {
            if asked.stepped_back {
                forget(window);
            }
            insert(window, index, asked.at);
        };
        let now = self.moments.place(batch, next, Class::Indexed, verdicts, ask);
        if verdicts.stepped_back {
            forget(&mut self.window);
        }
        if !timed {
            let classes = verdicts.classes.iter().enumerate();
            classes
                .filter(|(_, class)| **class == Class::Indexed)
                .for_each(|(index, _)| insert(&mut self.window, index, now));
        }
    }

    /// Indexes one number. `time` is `None` for a record that brings no time.
    pub fn index_one(&mut self, number: u128, time: Option<i64>) -> Class {
        let timing = self.moments.place_one(time, std::iter::empty);
        if let Timing::SteppedBack(_) = timing {
            forget(&mut self.window);
        }
        match timing {
            Timing::At(tick) | Timing::SteppedBack(tick) => {
                self.window.insert(number, tick);
                Class::Indexed
            }
            Timing::Late => Class::Late,
            Timing::Skewed => Class::Skewed,
        }
    }
}

/// Forgets all keys: the clock was wrong, and they were seen at times that never were.
fn forget(window: &mut RangeWindow) {
    // Where there is no memory for another window, the old one is of more use than none.
    let _ = window.clear();
}
