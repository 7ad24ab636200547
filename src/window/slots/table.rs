//! What a table of slots does for a window.

use crate::codec::Writer;
use crate::window::cycle::{Cycle, Pace, Sweep};
use crate::window::slots::keeps::Keeps;
use crate::{Digest, SnapshotError, Tick, Verdict};

/// Where an entry went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placed {
    /// Into an empty slot.
    New,
    /// In the place of one that has expired, or of itself.
    Instead,
    /// Nowhere: there is no slot for it.
    Nowhere,
}

/// A table of slots, each for a fingerprint and a stamp.
pub(super) trait Slots: Clone + Sweep {
    /// Where an entry is.
    type Place: Copy;

    /// How often the sweep goes round in a window, at the least.
    const ROUNDS: u64;

    /// Can most arrivals and questions do with one step, [`Slots::observe_quickly`] and its like?
    const QUICK: bool = false;

    /// How the table tells time.
    fn pace(keeps: &Keeps) -> Pace {
        keeps.pace().swept(Self::ROUNDS)
    }

    /// Slots, or positions: what the sweep counts.
    fn cells(&self) -> u64;

    /// Slots.
    fn slots(&self) -> u64 {
        self.cells()
    }

    /// Slots in use, of entries that have expired among them.
    fn occupied(&self) -> u64;

    /// The youngest entry that the key may be, and its age; one that has expired, or not.
    fn find(&self, digest: Digest, cycle: &Cycle) -> Option<(Self::Place, u64)>;

    /// Makes the pages of a key's places ones of the present moment, where the sweep is behind: to be done before
    /// anything is found that may be changed.
    fn settle_places(&mut self, _digest: Digest, _cycle: &Cycle) {}

    /// Makes an entry that was found one of the present moment.
    fn renew(&mut self, place: Self::Place, cycle: &Cycle);

    /// A new entry for a key that is not found.
    fn insert(&mut self, digest: Digest, cycle: &Cycle) -> Placed;

    /// The names under which the key may be in the stash; it is put there under the first.
    fn ids(&self, digest: Digest) -> impl Iterator<Item = u128>;

    /// Can there be such a name in a table of this size?
    fn is_name(&self, id: u128) -> bool;

    /// Every live entry, by its name, and its age.
    fn for_each(&self, cycle: &Cycle, each: impl FnMut(u128, u64));

    /// Has another table the same size?
    fn is_alike(&self, other: &Self) -> bool;

    /// Takes over an entry of another table by its name, unless a younger one is there.
    fn adopt(&mut self, id: u128, age: u64, cycle: &Cycle) -> Placed;

    /// Each live entry of a name, and its age. Only for tables that take late arrivals, as the two that
    /// follow: [`Keeps::check_in_order`] refuses lateness for the others, which are never asked.
    fn each(&self, _id: u128, _cycle: &Cycle, _each: impl FnMut(Self::Place, u64)) {}

    /// Gives a live entry another age.
    fn set_age(&mut self, _place: Self::Place, _age: u64, _cycle: &Cycle) {}

    /// A new entry of an age, whatever others its name has.
    fn insert_aged(&mut self, _id: u128, _age: u64, _cycle: &Cycle) -> Placed {
        Placed::Nowhere
    }

    /// Takes out all entries of a name, and tells the age of each that has not expired. Only for tables whose keys
    /// have one name: others cannot forget ([`Recipe::FORGETS`](crate::table::Recipe::FORGETS)), and are never asked.
    fn take_out(&mut self, _id: u128, _cycle: &Cycle, _each: impl FnMut(u64)) {}

    /// Does a call at this moment need no more than a step?
    #[inline(always)]
    fn is_quick(&self, _tick: Tick) -> bool {
        false
    }

    /// One arrival at a moment, where that is a step: was the key known? One that was is renewed `with_renewal`. `None`,
    /// and nothing has changed, where it is no step after all.
    #[inline(always)]
    fn observe_quickly(
        &mut self,
        _digest: Digest,
        _at: Tick,
        _newest: Tick,
        _with_renewal: bool,
    ) -> Option<bool> {
        None
    }

    /// Is a key there for a question at a moment, where that is a step?
    #[inline(always)]
    fn contains_quickly(&self, _digest: Digest, _at: Tick, _newest: Tick) -> bool {
        false
    }

    /// As many arrivals, from the first on, as are steps, of those that are not called duplicates yet: how many, and
    /// the newest tick then.
    #[inline(always)]
    fn observe_run<M: Fn(usize) -> Tick>(
        &mut self,
        _digests: &[Digest],
        _moment: M,
        newest: Tick,
        _verdicts: &mut [Verdict],
        _with_renewal: bool,
    ) -> (usize, Tick) {
        (0, newest)
    }

    /// Notes of those keys that are not found yet whether they are there, where that is a step.
    fn contains_run(&self, _digests: &[Digest], _at: Tick, _newest: Tick, _found: &mut [bool]) {}

    /// Time has come to a moment, after this newest tick.
    #[inline(always)]
    fn pass(&mut self, _before: Tick, _cycle: &Cycle) {}

    /// Says from now on what is a step; nothing is, unless keys have one entry each and none is stashed: `by_steps`.
    #[inline(always)]
    fn settle(&mut self, _cycle: &Cycle, _by_steps: bool) {}

    /// Looks for expired entries if it seems full; `false` where the sweep is to do that.
    #[inline(always)]
    fn look_for_room(&mut self, _cycle: &Cycle) -> bool {
        false
    }

    /// Are there entries that give way to a new one, as they have expired?
    fn holds_expired(&self, _cycle: &Cycle) -> bool {
        false
    }

    /// Takes over when another table of the same moment has had arrivals, before it takes over its entries.
    fn unite_times(&mut self, _other: &Self) {}

    /// Goes on at a moment, when it has been read.
    ///
    /// # Errors
    /// Where it cannot be that moment.
    fn resume(&mut self, _cycle: &Cycle) -> Result<(), SnapshotError> {
        Ok(())
    }

    /// Begins at the first tick again, when it has been emptied.
    fn restart(&mut self) {}

    /// Begins to fetch what a key's turn will look at.
    fn prefetch(&self, digest: Digest);

    /// Begins to fetch where entries could be moved to, if there is no slot for the key.
    fn prefetch_more(&self, _digest: Digest, _cycle: &Cycle) {}

    /// The chance that a key is found among so many others.
    fn fpr(&self, keys: f64) -> f64;

    /// Bytes allocated.
    fn memory(&self) -> usize;

    /// Writes the table; its size is known to who reads it.
    fn write(&self, out: &mut Writer<'_>);
}
