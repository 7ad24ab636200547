//! Decides what becomes of each record: its moment by a clock, and its class by what is remembered.
//!
//! Four judges share one interface: the filter of `dedup`, the range window of `index`, the list of
//! intervals of `watch`, the open visits of `visits`. None of them does I/O.

pub mod change;
pub mod class;
pub mod clock;
pub mod clocks;
pub mod dedup;
pub mod hold;
pub mod index;
pub mod moment;
pub mod timeline;
pub mod visit;
pub mod visit_row;
pub mod watch;

use crate::read::Left;
use crate::record::Batch;
use class::Class;
use hold::Held;
use lately::{Digest, Overload, Tick};
use moment::Moments;
use std::io::{self, Write};

/// Decides what becomes of each record.
pub trait Decide {
    /// The classes that records can end in, in the order in which they are reported.
    const CLASSES: &'static [Class];

    /// Finds the class of each record of a batch. `next` is the batch after it, if it is at hand.
    fn decide(&mut self, batch: &Batch, next: Option<&Batch>, verdicts: &mut Verdicts);

    /// When records are judged.
    fn moments(&self) -> &Moments;

    /// The same, to be advanced.
    fn moments_mut(&mut self) -> &mut Moments;

    /// What was given up for lack of room.
    fn overload(&self) -> Overload;

    /// Last values that were pushed out for lack of room.
    fn evicted(&self) -> u64 {
        0
    }

    /// The part of a record that the last run had left in a pipe.
    fn left(&self) -> Option<&Left> {
        None
    }

    /// Notes what this run leaves, to be written with the state.
    fn leave(&mut self, _left: Option<Left>) {}

    /// Nothing has come from a live input for so many nanoseconds.
    fn wait(&mut self, _silence: u64) {}

    /// The input is over.
    fn end(&mut self) {}

    /// Hands over what is to be written besides records, since the last time: the line that a new file
    /// begins with, and rows.
    fn take_rows(&mut self, _header: &mut Vec<u8>, _rows: &mut Vec<u8>) {}

    /// A number that rises whenever something changes that [`Decide::write_state`] writes.
    fn changes(&self) -> u64;

    /// Writes what is remembered, with the records that are held, to a state file.
    ///
    /// # Errors
    /// Those of `out`.
    fn write_state(&self, held: &[(Tick, Digest, &Held)], out: &mut dyn Write) -> io::Result<()>;
}

/// What was found out about the records of one batch, in order.
#[derive(Debug, Default)]
pub struct Verdicts {
    /// The class of each record.
    pub classes: Vec<Class>,
    /// The moment each record was judged at; that of the one before where it was not judged.
    pub moments: Vec<Tick>,
    /// Duplicates that were forwarded because a value had changed.
    pub changed: u64,
    /// The clock was set back after the last record that was judged.
    pub(crate) stepped_back: bool,
}

impl Verdicts {
    /// Nothing found out yet.
    pub(crate) fn clear(&mut self) {
        self.classes.clear();
        self.moments.clear();
        self.changed = 0;
        self.stepped_back = false;
    }
}
