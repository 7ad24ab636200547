//! Keys that are taken out before they expire.

use crate::window::slots::core::Slotted;
use crate::window::slots::table::Slots;
use crate::{Digest, Tick, Window};

impl<T: Slots> Slotted<T> {
    /// Takes out all that is remembered of a key. Was there anything that has not expired?
    pub(super) fn forget(&mut self, digest: Digest) -> bool {
        let known = match self.late.filter(|late| !late.newest_only()) {
            None => self.take_out(digest),
            // In each block a key is another one.
            Some(late) => {
                let now = self.cycle.now();
                let blocks = late.blocks(&(now.saturating_sub(self.cycle.steps())..=now));
                blocks.fold(false, |known, block| self.take_out(late.key(digest, block)) | known)
            }
        };
        self.settle();
        known
    }

    fn take_out(&mut self, digest: Digest) -> bool {
        let oldest = self.oldest_found();
        let Self { slots, stash, cycle, .. } = self;
        let mut known = false;
        // Tables that can forget know a key by one name.
        let id = slots.ids(digest).next().unwrap_or(0);
        slots.take_out(id, cycle, |age| known |= age <= oldest);
        stash.take_out(id, |moment| known |= cycle.now() - moment <= oldest);
        known
    }

    /// The most grains that a sighting is old which a question finds: one of the oldest moment that may be asked about.
    fn oldest_found(&self) -> u64 {
        let (cycle, newest) = (&self.cycle, self.cycle.newest());
        if let Some(late) = self.late {
            return (cycle.now() - late.moment(Tick(0), newest) + late.window()).min(cycle.kept());
        }
        // Where arrivals are counted it is the next one that asks.
        let next = u64::from(matches!(self.keeps.window, Window::Count(_)));
        let oldest = cycle.steps().saturating_sub(cycle.grains_until(Tick(newest.0 + next)));
        oldest.min(cycle.kept())
    }
}
