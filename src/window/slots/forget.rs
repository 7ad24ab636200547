//! Keys that are taken out before they expire.

use crate::Digest;
use crate::window::slots::core::{Slots, Slotted};

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
        let Self { slots, stash, cycle, .. } = self;
        // Where arrivals are counted the next one is a moment later.
        let later = cycle.grains_until(cycle.newest());
        let mut known = false;
        let mut note = |age: u64| known |= age.saturating_add(later) <= cycle.steps();
        // Tables that can forget know a key by one name.
        let id = slots.ids(digest).next().unwrap_or(0);
        slots.take_out(id, cycle, &mut note);
        stash.take_out(id, |moment| note(cycle.now() - moment));
        known
    }
}
