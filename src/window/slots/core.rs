//! What windows of slots share, whatever their table and what they keep: time, the stash, and the order of one step.

pub(super) use super::keeps::Keeps;
pub(super) use super::table::{Placed, Slots};

use crate::codec::{Reader, Writer};
use crate::window::cycle::{Cycle, Passed};
use crate::window::late::Late;
use crate::window::slots::keeps::STASHED;
use crate::window::slots::stash::Stash;
use crate::{
    Digest, MergeError, Overload, Renewal, Seen, SnapshotError, Spec, Tick, Verdict, Window,
};

/// Entries of a full table that are looked at together for what has expired, and how often before it is called full. Where
/// no more is live than planned one in 17 has, so that so many do not hide it.
const LOOK: u64 = 64;
const LOOKS: u64 = 8;

/// A window over some kind of slots.
#[derive(Clone, Debug)]
pub(super) struct Slotted<T> {
    pub(super) keeps: Keeps,
    /// How late arrivals are taken; none where they come in order.
    pub(super) late: Option<Late>,
    pub(super) cycle: Cycle,
    pub(super) slots: T,
    pub(super) stash: Stash,
    full_at: u64,
    /// Keys that neither the table nor the stash had room for.
    pub(super) refused: u64,
}

/// Equal in all that verdicts follow from: not in how far the sweep has come.
impl<T: Slots + PartialEq> PartialEq for Slotted<T> {
    fn eq(&self, other: &Self) -> bool {
        if self.slots.is_behind() || other.slots.is_behind() {
            return self.swept() == other.swept();
        }
        self.keeps == other.keeps
            && self.cycle == other.cycle
            && self.slots == other.slots
            && self.stash == other.stash
            && self.refused == other.refused
    }
}

/// Where a key was found.
#[derive(Clone, Copy)]
pub(super) enum Found<P> {
    Slot(P),
    /// By its id, and the moment that is known.
    Stash(u128, u64),
}

impl<T: Slots> Slotted<T> {
    pub(super) fn new(keeps: Keeps, mut slots: T) -> Self {
        let mut cycle = Cycle::new(T::pace(&keeps), slots.cells());
        let full_at = keeps.full_at() as u64;
        let stash = Stash::new(keeps.stash, keeps.stash_reserved());
        cycle.begin(&mut slots, true);
        Self { keeps, late: keeps.late(), cycle, slots, stash, full_at, refused: 0 }
    }

    /// The same, without what has expired.
    fn swept(&self) -> Self {
        let mut swept = self.clone();
        swept.cycle.sweep_all(&mut swept.slots);
        swept
    }

    /// The youngest sighting of what the key may be, and its age.
    #[inline(always)]
    pub(super) fn find(&self, digest: Digest) -> Option<(Found<T::Place>, u64)> {
        let slot =
            self.slots.find(digest, &self.cycle).map(|(place, age)| (Found::Slot(place), age));
        if self.stash.is_empty() { slot } else { self.younger_in_stash(digest).or(slot) }
    }

    #[cold]
    fn younger_in_stash(&self, digest: Digest) -> Option<(Found<T::Place>, u64)> {
        let slot = self.slots.find(digest, &self.cycle).map_or(u64::MAX, |(_, age)| age);
        let ids = self.slots.ids(digest);
        let stashed = ids.filter_map(|id| Some((id, self.cycle.now() - self.stash.get(id)?)));
        let (id, age) = stashed.min_by_key(|&(_, age)| age)?;
        (age < slot).then(|| (Found::Stash(id, self.cycle.now() - age), age))
    }

    /// [`Slotted::contains`] where that is a step.
    #[inline(always)]
    pub(super) fn contains_quickly(&self, digest: Digest, now: Tick) -> Option<bool> {
        (T::QUICK && self.slots.is_quick(now))
            .then(|| self.slots.contains_quickly(digest, now, self.cycle.newest()))
    }

    #[inline]
    pub(super) fn contains(&self, digest: Digest, now: Tick) -> bool {
        if let Some(found) = self.contains_quickly(digest, now) {
            return found;
        }
        if let Some(late) = self.late {
            return self.holds_near(late, digest, u64::MAX, now).is_some();
        }
        self.holds(digest, self.cycle.steps(), now).is_some()
    }

    /// The age in grains of a key that is not older than so many when it is asked for.
    #[inline]
    fn holds(&self, digest: Digest, steps: u64, now: Tick) -> Option<u64> {
        let (_, age) = self.find(digest)?;
        let is_live = self.cycle.is_kept(age, now);
        (is_live && age.saturating_add(self.cycle.grains_until(now)) <= steps).then_some(age)
    }

    pub(super) fn contains_within(&self, digest: Digest, within: u64, now: Tick) -> bool {
        if let Some(late) = self.late {
            return self.holds_near(late, digest, within, now).is_some();
        }
        self.holds(digest, self.cycle.steps_within(within), now).is_some()
    }

    pub(super) fn last_seen(&self, digest: Digest, now: Tick) -> Option<Seen> {
        if let Some(late) = self.late {
            return self.holds_near(late, digest, u64::MAX, now);
        }
        Some(self.cycle.seen(self.holds(digest, self.cycle.steps(), now)?))
    }

    /// [`Slotted::observe`] where that is a step.
    #[inline(always)]
    pub(super) fn observe_quickly(&mut self, digest: Digest, now: Tick) -> Option<Verdict> {
        if !T::QUICK || !self.slots.is_quick(now) {
            return None;
        }
        let (with_renewal, newest) = (self.keeps.renewal == Renewal::Always, self.cycle.newest());
        let is_known = self.slots.observe_quickly(digest, now, newest, with_renewal)?;
        self.cycle.note(now);
        Some(if is_known { Verdict::Duplicate } else { Verdict::Fresh })
    }

    /// One arrival: advance, query, insert or renew.
    #[inline]
    pub(super) fn observe(&mut self, digest: Digest, now: Tick) -> Verdict {
        if !T::QUICK {
            return self.observe_in_full(digest, now);
        }
        match self.observe_quickly(digest, now) {
            Some(verdict) => verdict,
            None => self.observe_slowly(digest, now),
        }
    }

    #[cold]
    #[inline(never)]
    fn observe_slowly(&mut self, digest: Digest, now: Tick) -> Verdict {
        let verdict = self.observe_in_full(digest, now);
        self.settle();
        verdict
    }

    /// As many arrivals, from the first on, as need nothing but a step; returns how many.
    #[inline]
    pub(super) fn observe_run(
        &mut self,
        digests: &[Digest],
        moment: impl Fn(usize) -> Tick,
        verdicts: &mut [Verdict],
    ) -> usize {
        if !T::QUICK || digests.is_empty() || !self.slots.is_quick(moment(0)) {
            return 0;
        }
        let (with_renewal, newest) = (self.keeps.renewal == Renewal::Always, self.cycle.newest());
        let (done, newest) =
            self.slots.observe_run(digests, moment, newest, verdicts, with_renewal);
        self.cycle.note(newest);
        done
    }

    /// [`Slotted::contains`] for many keys, of those that are not found yet; `false` where they are to be asked for one
    /// by one.
    #[inline]
    pub(super) fn contains_run(&self, digests: &[Digest], now: Tick, found: &mut [bool]) -> bool {
        let is_quick = T::QUICK && self.slots.is_quick(now);
        if is_quick {
            self.slots.contains_run(digests, now, self.cycle.newest(), found);
        }
        is_quick
    }

    /// Says from now on what arrivals need nothing but a step.
    pub(super) fn settle(&mut self) {
        if T::QUICK {
            let one_each = self.late.is_none_or(|late| late.newest_only());
            self.slots.settle(&self.cycle, one_each && self.stash.is_empty());
        }
    }

    #[inline]
    fn observe_in_full(&mut self, digest: Digest, now: Tick) -> Verdict {
        if let Some(late) = self.late {
            return self.observe_late(late, digest, now);
        }
        self.pass(self.cycle.arrival(now));
        self.settle_places(digest);
        match self.find(digest) {
            Some((_, age))
                if age <= self.cycle.kept() && self.keeps.renewal == Renewal::OnFresh =>
            {
                Verdict::Duplicate
            }
            Some((place, age)) => {
                self.cycle.note_mark();
                self.renew(place, digest);
                if age <= self.cycle.kept() { Verdict::Duplicate } else { Verdict::Fresh }
            }
            None => {
                self.cycle.note_mark();
                self.insert(digest);
                Verdict::Fresh
            }
        }
    }

    /// Marks a key as seen, whatever was known of it.
    pub(super) fn remember(&mut self, digest: Digest, now: Tick) {
        if T::QUICK
            && self.slots.is_quick(now)
            && self.slots.observe_quickly(digest, now, self.cycle.newest(), true).is_some()
        {
            return self.cycle.note(now);
        }
        self.pass(now);
        if let Some(late) = self.late {
            self.note_sighting(late, digest, late.judged(now, self.cycle.newest()));
        } else {
            self.settle_places(digest);
            self.cycle.note_mark();
            match self.find(digest) {
                Some((place, _)) => self.renew(place, digest),
                None => self.insert(digest),
            }
        }
        self.settle();
    }

    /// Before anything is found that may be changed.
    #[inline(always)]
    pub(super) fn settle_places(&mut self, digest: Digest) {
        if self.slots.is_behind() {
            self.slots.settle_places(digest, &self.cycle);
        }
    }

    #[inline]
    pub(super) fn renew(&mut self, place: Found<T::Place>, digest: Digest) {
        match place {
            Found::Slot(place) => self.slots.renew(place, &self.cycle),
            // There may be a slot for it by now.
            Found::Stash(id, _) => {
                self.stash.remove(id);
                self.insert(digest);
            }
        }
    }

    #[inline(always)]
    pub(super) fn insert(&mut self, digest: Digest) {
        match self.slots.insert(digest, &self.cycle) {
            Placed::New => self.note_entry(),
            Placed::Instead => {}
            Placed::Nowhere => {
                let id = self.slots.ids(digest).next();
                let stashed = id.is_some_and(|id| self.stash.insert(id, self.cycle.now()));
                self.refused += u64::from(!stashed);
            }
        }
    }

    /// Above its capacity a table looks for what has expired, so that it is not called full for
    /// that: all of it is looked at before a sixteenth more has come in.
    pub(super) fn note_entry(&mut self) {
        if T::QUICK && self.slots.look_for_room(&self.cycle) {
            return;
        }
        let capacity = self.full_at / 17 * 16;
        if self.slots.occupied() > capacity && self.overflows() {
            let count = self.slots.cells().div_ceil((self.full_at - capacity).max(1));
            self.cycle.sweep(count, &mut self.slots);
        }
    }

    #[inline]
    pub(super) fn prefetch(&self, digest: Digest) {
        self.prefetch_at(digest, self.cycle.newest());
    }

    #[inline]
    pub(super) fn prefetch_at(&self, digest: Digest, at: Tick) {
        match self.late {
            Some(late) => self.prefetch_late(late, digest, at),
            None => self.slots.prefetch(digest),
        }
    }

    #[inline]
    pub(super) fn prefetch_more(&self, digest: Digest) {
        if self.late.is_some_and(|late| !late.newest_only()) {
            return;
        }
        self.slots.prefetch_more(digest, &self.cycle);
    }

    /// Lets time pass, and clears what has expired meanwhile.
    #[inline]
    pub(super) fn advance(&mut self, now: Tick) {
        if T::QUICK && self.slots.is_quick(now) {
            return self.cycle.note(now);
        }
        self.pass(now);
        self.settle();
    }

    #[inline]
    pub(super) fn pass(&mut self, now: Tick) {
        let before = self.cycle.newest();
        if self.cycle.advance(now, &mut self.slots) == Passed::Everything {
            self.stash.clear();
        } else if !self.stash.is_empty() {
            self.stash.expire(self.cycle.now().saturating_sub(self.cycle.kept()));
        }
        if T::QUICK {
            self.slots.pass(before, &self.cycle);
        }
    }

    /// Can it ever hold more keys than it was planned for? A window of arrivals cannot.
    #[inline]
    fn overflows(&self) -> bool {
        !matches!(self.keeps.window, Window::Count(_))
    }

    /// Does it hold more keys than it was planned for?
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.overflows() && (self.slots.occupied() >= self.full_at || self.stash.is_full())
    }

    /// [`Slotted::is_full`] at the newest tick: what has expired gives way.
    pub(super) fn is_full_now(&mut self) -> bool {
        if T::QUICK {
            return self.is_full()
                && (self.stash.is_full() || !self.slots.holds_expired(&self.cycle));
        }
        let count = (LOOK * self.slots.cells()).div_ceil(self.slots.occupied().max(1));
        for _ in 0..LOOKS {
            if self.slots.occupied() < self.full_at {
                break;
            }
            self.cycle.sweep(count, &mut self.slots);
        }
        self.is_full()
    }

    pub(super) fn notes_ends(&self) -> bool {
        self.cycle.pace().notes_ends()
    }

    /// Takes over all that the other remembers.
    pub(super) fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        if self.keeps != other.keeps || !self.slots.is_alike(&other.slots) {
            return Err(MergeError::Shape);
        }
        if !self.overflows() {
            return Err(MergeError::Counting);
        }
        let (mut both, mut other) = (self.clone(), other.clone());
        both.advance(other.newest());
        other.advance(both.newest());
        // Each knows of its own entries which have expired before their grain has.
        both.cycle.sweep_all(&mut both.slots);
        other.cycle.sweep_all(&mut other.slots);
        both.slots.unite_times(&other.slots);
        both.cycle.unite(&other.cycle);
        let mut fits = true;
        other.slots.for_each(&other.cycle, |id, age| fits &= both.adopt(id, age));
        for (id, moment) in other.stash.entries() {
            fits &= both.adopt(id, both.cycle.now() - moment);
        }
        if !fits {
            return Err(MergeError::Full);
        }
        both.refused = both.refused.saturating_add(other.refused);
        both.settle();
        *self = both;
        Ok(())
    }

    fn adopt(&mut self, id: u128, age: u64) -> bool {
        if let Some(late) = self.late.filter(|late| !late.newest_only()) {
            return self.note_in_block(late, id, self.cycle.now() - age);
        }
        match self.slots.adopt(id, age, &self.cycle) {
            Placed::New | Placed::Instead => true,
            Placed::Nowhere => self.stash.insert(id, self.cycle.now() - age),
        }
    }

    /// Keys that wait in the stash.
    pub(super) fn stashed(&self) -> u64 {
        self.stash.len()
    }

    pub(super) fn overload(&self) -> Overload {
        Overload { refused: self.refused, ..Overload::default() }
    }

    /// The first tick of the newest grain seen.
    pub(super) fn newest(&self) -> Tick {
        self.cycle.newest()
    }

    /// The share of slots in use, of entries that have expired among them.
    pub(super) fn fill(&self) -> f64 {
        self.slots.occupied() as f64 / self.slots.slots() as f64
    }

    /// The fill, and how far the entries are those of planned keys: all, where the stash is full.
    pub(super) fn look_at_fill(&self, _digest: Digest) -> Option<(f64, f64)> {
        let entries = self.slots.occupied() as f64 / self.full_at as f64;
        Some((self.fill(), if self.stash.is_full() { 1.0 } else { entries }))
    }

    /// Forgets everything, the time too.
    pub(super) fn clear(&mut self) {
        self.slots.clear();
        self.slots.restart();
        self.stash.clear();
        self.cycle = Cycle::new(*self.cycle.pace(), self.slots.cells());
        self.cycle.begin(&mut self.slots, true);
        self.refused = 0;
        self.settle();
    }

    /// Keys, of which some may have expired.
    pub(super) fn keys_now(&self) -> u64 {
        self.slots.occupied() + self.stash.len()
    }

    /// Nothing is sampled: what is in use is counted.
    pub(super) fn sample(&mut self, _digest: Digest) {}

    pub(super) fn resume(&mut self, _fill: f64) {}

    pub(super) fn window(&self) -> Window {
        self.keeps.window
    }

    pub(super) fn slack(&self) -> u64 {
        self.keeps.slack()
    }

    pub(super) fn capacity(&self) -> u64 {
        self.keeps.window.capacity()
    }

    /// The promised false positive rate: that of a table which has just found out that it is full.
    pub(super) fn fpr(&self) -> f64 {
        self.slots.fpr(self.full_at as f64)
    }

    pub(super) fn fpr_at_capacity(&self) -> f64 {
        self.slots.fpr(self.keeps.live_keys())
    }

    pub(super) fn estimated_fpr(&self) -> f64 {
        // In a window of arrivals some of the entries have expired for certain.
        let keys = (self.slots.occupied() + self.stash.len()) as f64;
        let most = if self.overflows() { keys } else { self.full_at as f64 };
        self.slots.fpr(keys.min(most))
    }

    pub(super) fn suits(&self, spec: &Spec) -> bool {
        let window = spec.window().span() == self.keeps.window.span()
            && spec.lateness == self.keeps.lateness
            && matches!(spec.window(), Window::Count(_)) != self.overflows();
        window && spec.renewal == self.keeps.renewal
    }

    pub(super) fn memory(&self) -> usize {
        self.slots.memory() + self.stash.memory()
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) {
        if self.slots.is_behind() {
            return self.swept().write(out);
        }
        self.keeps.write(out);
        self.slots.write(out);
        self.cycle.write(out);
        self.stash.write(out);
        out.u64(self.refused);
    }

    /// Reads what [`Slotted::write`] wrote, the table with `slots`.
    pub(super) fn read(
        input: &mut Reader<'_>,
        slots: impl FnOnce(&Keeps, &mut Reader<'_>) -> Result<T, SnapshotError>,
    ) -> Result<Self, SnapshotError> {
        Self::read_of(Keeps::read(input)?, input, slots)
    }

    /// [`Slotted::read`], when it has been read what is kept.
    pub(super) fn read_of(
        keeps: Keeps,
        input: &mut Reader<'_>,
        slots: impl FnOnce(&Keeps, &mut Reader<'_>) -> Result<T, SnapshotError>,
    ) -> Result<Self, SnapshotError> {
        let slots = slots(&keeps, input)?;
        // Memory is taken for no more than the bytes of the table back up.
        if keeps.stash_reserved() > slots.slots() + STASHED {
            return Err(SnapshotError::Invalid("a stash larger than its table"));
        }
        let empty = Self::new(keeps, slots);
        let cycle = Cycle::read(*empty.cycle.pace(), empty.slots.cells(), input)?;
        let several = empty.late.is_some_and(|late| !late.newest_only());
        let stash = Stash::read(empty.stash, several, cycle.now(), input)?;
        if !stash.entries().all(|(id, _)| empty.slots.is_name(id)) {
            return Err(SnapshotError::Invalid("a stash whose keys are of another table"));
        }
        let refused = input.count()?;
        let mut read = Self { cycle, stash, refused, ..empty };
        read.slots.resume(&read.cycle)?;
        read.cycle.begin(&mut read.slots, false);
        read.settle();
        Ok(read)
    }
}
