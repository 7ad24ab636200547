//! What the parsing threads have done, in the order in which it was read.

use crate::read::workers::Event;
use std::collections::BTreeMap;

/// Events that came before their turn.
#[derive(Default)]
pub(super) struct InOrder {
    early: BTreeMap<u64, Event>,
    /// The number of the next event.
    expected: u64,
    /// All that was there to be read comes before this number.
    quiet: Option<u64>,
}

impl InOrder {
    /// Takes in an event, and its number.
    pub(super) fn put(&mut self, number: u64, event: Event) {
        match event {
            Event::Quiet => self.quiet = Some(number),
            event => drop(self.early.insert(number, event)),
        }
    }

    /// The next event, if it is there.
    pub(super) fn next(&mut self) -> Option<Event> {
        let event = self.early.remove(&self.expected)?;
        self.expected += 1;
        Some(event)
    }

    /// How many events have been dealt with.
    pub(super) fn dealt(&self) -> u64 {
        self.expected
    }

    /// Has all been dealt with that was there to be read? Says so once.
    pub(super) fn is_quiet(&mut self) -> bool {
        self.quiet.take_if(|number| *number <= self.expected).is_some()
    }
}
