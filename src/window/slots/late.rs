//! Arrivals out of order in a window of slots; [`crate::window::late`] says which entries are kept, and why.

use crate::window::late::Late;
use crate::window::slots::core::{Found, Slotted};
use crate::window::slots::table::{Placed, Slots};
use crate::{Digest, Renewal, Seen, Tick, Verdict};

/// An entry of a name, and its moment in grains.
type Dated<P> = (Found<P>, u64);

impl<T: Slots> Slotted<T> {
    /// One arrival at its own moment: advance, query, insert or renew.
    #[inline(never)]
    pub(super) fn observe_late(&mut self, late: Late, digest: Digest, at: Tick) -> Verdict {
        self.pass(at);
        let at = late.judged(at, self.cycle.newest());
        if late.newest_only() {
            return self.observe_newest(late, digest, at);
        }
        let known = self.holds_near(late, digest, u64::MAX, at).is_some();
        if !known || self.keeps.renewal == Renewal::Always {
            self.note_sighting(late, digest, at);
        }
        if known { Verdict::Duplicate } else { Verdict::Fresh }
    }

    /// [`Slotted::observe_late`] where a key has one entry, which is looked for once.
    #[inline]
    fn observe_newest(&mut self, late: Late, digest: Digest, at: Tick) -> Verdict {
        self.settle_places(digest);
        let (found, moment) = (self.find(digest), late.grain_of(at));
        let live = found.filter(|&(_, age)| age <= self.cycle.kept());
        let newest = live.map(|(_, age)| self.cycle.now().saturating_sub(age));
        let known = newest.is_some_and(|newest| newest >= moment.saturating_sub(late.window()));
        if !known || self.keeps.renewal == Renewal::Always {
            self.cycle.note_mark_at(at, moment);
            self.note_newest(found, digest, moment);
        }
        if known { Verdict::Duplicate } else { Verdict::Fresh }
    }

    /// Marks a key as seen at a moment of the retention.
    pub(super) fn note_sighting(&mut self, late: Late, digest: Digest, at: Tick) {
        let moment = late.grain_of(at);
        self.cycle.note_mark_at(at, moment);
        if late.newest_only() {
            self.settle_places(digest);
            return self.note_newest(self.find(digest), digest, moment);
        }
        let key = late.key(digest, late.block_of(moment));
        self.settle_places(key);
        let id = self.id(key);
        let noted = self.note_in_block(late, id, moment);
        self.refused += u64::from(!noted);
    }

    /// The later of what is known of a key and a moment.
    #[inline]
    fn note_newest(&mut self, found: Option<(Found<T::Place>, u64)>, digest: Digest, moment: u64) {
        let age = self.cycle.now() - moment;
        match found {
            Some((_, known)) if known <= age => {}
            Some((place, _)) if age == 0 => self.renew(place, digest),
            Some((place, known)) if known <= self.cycle.kept() => {
                let id = self.id(digest);
                let _ = self.change(place, id, moment);
            }
            None if age == 0 => self.insert(digest),
            // What has expired is no entry of the key's any more.
            Some(_) | None => {
                let id = self.id(digest);
                let noted = self.place(id, age) || self.stash.insert(id, moment);
                self.refused += u64::from(!noted);
            }
        }
    }

    /// The first and the last sighting of a name within a block, a moment taken in; `false` where there
    /// was no room for it.
    pub(super) fn note_in_block(&mut self, late: Late, id: u128, moment: u64) -> bool {
        match self.ends(late, id, late.block_of(moment)) {
            Some([(_, first), (_, last)]) if (first..=last).contains(&moment) => true,
            Some([first, last]) if first.1 < last.1 => {
                let (place, _) = if moment < first.1 { first } else { last };
                self.change(place, id, moment)
            }
            _ => self.place(id, self.cycle.now() - moment) || self.stash.add(id, moment),
        }
    }

    /// Gives an entry another moment.
    fn change(&mut self, place: Found<T::Place>, id: u128, moment: u64) -> bool {
        let age = self.cycle.now() - moment;
        match place {
            Found::Slot(place) if age == 0 => self.slots.renew(place, &self.cycle),
            Found::Slot(place) => self.slots.set_age(place, age, &self.cycle),
            // There may be a slot for it by now; if not, it leaves room for itself.
            Found::Stash(of, known) => {
                self.stash.remove_one(of, known);
                return self.place(id, age) || self.stash.add(id, moment);
            }
        }
        true
    }

    /// A new entry in the table, if there is room.
    fn place(&mut self, id: u128, age: u64) -> bool {
        let placed = self.slots.insert_aged(id, age, &self.cycle);
        if placed == Placed::New {
            self.note_entry();
        }
        placed != Placed::Nowhere
    }

    /// The first and the last entry of a name within a block.
    fn ends(&self, late: Late, id: u128, block: u64) -> Option<[Dated<T::Place>; 2]> {
        let mut ends: Option<[Dated<T::Place>; 2]> = None;
        let mut take_in = |place, moment| {
            if late.block_of(moment) == block {
                let [first, last] = ends.get_or_insert([(place, moment); 2]);
                if moment < first.1 {
                    *first = (place, moment);
                }
                if moment > last.1 {
                    *last = (place, moment);
                }
            }
        };
        let now = self.cycle.now();
        self.slots.each(id, &self.cycle, |place, age| take_in(Found::Slot(place), now - age));
        if !self.stash.is_empty() {
            self.stash.each(id).for_each(|moment| take_in(Found::Stash(id, moment), moment));
        }
        ends
    }

    /// The last sighting within the window around a question, no more than so many ticks before it.
    #[inline(never)]
    pub(super) fn holds_near(
        &self,
        late: Late,
        digest: Digest,
        within: u64,
        at: Tick,
    ) -> Option<Seen> {
        let around = late.around(late.moment(at, self.cycle.newest()), within);
        let around = self.cycle.first_kept(at).max(*around.start())..=*around.end();
        if late.newest_only() {
            let (_, age) = self.find(digest)?;
            let newest = self.cycle.now().saturating_sub(age);
            return (newest >= *around.start()).then(|| self.cycle.seen(age));
        }
        // What is later than the present moment is in no table.
        let around = *around.start()..=self.cycle.now().min(*around.end());
        // Whether there are others between a block's first and last sighting is not known.
        late.blocks(&around).rev().find_map(|block| {
            let id = self.id(late.key(digest, block));
            let [(_, first), (_, last)] = self.ends(late, id, block)?;
            let meet = first <= *around.end() && last >= *around.start();
            let from = if last <= *around.end() { last } else { first };
            meet.then(|| self.cycle.seen_between(from, last.min(*around.end())))
        })
    }

    /// The first name of a key.
    #[inline]
    fn id(&self, digest: Digest) -> u128 {
        self.slots.ids(digest).next().unwrap_or(0)
    }

    /// Begins to fetch what a key of a moment will look at.
    pub(super) fn prefetch_late(&self, late: Late, digest: Digest, at: Tick) {
        if late.newest_only() {
            return self.slots.prefetch(digest);
        }
        let moment = late.moment(at, self.cycle.newest());
        let around = late.around(moment, u64::MAX);
        let around = *around.start()..=self.cycle.now().max(moment).min(*around.end());
        for block in late.blocks(&around) {
            self.slots.prefetch(late.key(digest, block));
        }
    }
}
