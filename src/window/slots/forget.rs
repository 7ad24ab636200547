//! Keys that are taken out before they expire.

use crate::window::slots::core::{Slots, Slotted};
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
        let Self { slots, stash, cycle, keeps, .. } = self;
        // Where arrivals are counted it is the next one that may find a key.
        let next = u64::from(matches!(keeps.window, Window::Count(_)));
        let later = cycle.grains_until(Tick(cycle.newest().0 + next));
        let mut known = false;
        let mut note = |age: u64| known |= age.saturating_add(later) <= cycle.steps();
        // Tables that can forget know a key by one name.
        let id = slots.ids(digest).next().unwrap_or(0);
        slots.take_out(id, cycle, &mut note);
        stash.take_out(id, |moment| note(cycle.now() - moment));
        known
    }
}
