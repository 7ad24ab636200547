//! What windows of slots share: one fingerprint and one stamp a key, time, and the order of one step.

use crate::codec::{Reader, Writer};
use crate::table::Contract;
use crate::window::cycle::{Cycle, Pace, Passed, coarsest_grain};
use crate::window::late::{self, IN_ORDER, Late};
use crate::window::slots::stash::{self, Stash};
use crate::{
    Digest, MergeError, Overload, PlanError, Renewal, Seen, SnapshotError, Spec, Tick, Verdict,
    Window,
};
use core::ops::Range;

/// What a window of slots keeps, besides the size of its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keeps {
    /// The last `n` arrivals, or a span of ticks with so many distinct keys in it.
    pub window: Window,
    /// Ticks that count as one moment; 1 is exact. Arrivals that are counted in more than one need
    /// to be told: their tick is their number.
    pub grain: u64,
    /// The most ticks that an arrival may lie behind the newest moment; 0 for arrivals in order, and
    /// for those that are counted.
    pub lateness: u64,
    /// Does a duplicate renew its key's age?
    pub renewal: Renewal,
    /// The most keys that are kept outside the table when they find no slot.
    pub stash: u64,
}

/// Keys that the stash of any table takes: more than one of the planned size ever needs.
pub(crate) const STASHED: u64 = 8;

impl Keeps {
    /// Exactly this window, in order, every sighting renewing, with a stash that holds a whole count
    /// window.
    pub const fn exactly(window: Window) -> Self {
        let (grain, lateness, renewal) = (1, 0, Renewal::Always);
        Self { window, grain, lateness, renewal, stash: window.capacity() }
    }

    /// How the table of so many keys is kept, and how much room its stash has.
    pub(super) fn of(spec: &Spec, capacity: u64) -> Result<Self, PlanError> {
        let (span, slack) = (spec.terms.window.span().unwrap_or(1), spec.terms.slack);
        let (grain, stash) = match spec.terms.window {
            // All of them may want the same slots; a table that cannot grow must take them all the same.
            Window::Count(n) => (1, n.get()),
            Window::Time { .. } | Window::Unbounded { .. } => {
                (coarsest_grain(span, slack), STASHED + capacity / 512)
            }
        };
        let capacity = core::num::NonZeroU64::new(capacity).unwrap_or(core::num::NonZeroU64::MIN);
        let window = spec.terms.window.with_capacity(capacity);
        let Spec { lateness, renewal, .. } = *spec;
        let keeps = Self { window, grain, lateness, renewal, stash };
        keeps.check().map(|()| keeps)
    }

    /// [`Keeps::of`] with a grain for slack in arrivals too.
    pub(super) fn coarsest(spec: &Spec, capacity: u64) -> Result<Self, PlanError> {
        let span = spec.terms.window.span().unwrap_or(1);
        let keeps = Self::of(spec, capacity)?;
        let coarse = Self { grain: coarsest_grain(span, spec.terms.slack), ..keeps };
        coarse.check().map(|()| coarse)
    }

    /// The same, with the finest grain of which window and lateness together have no more than so many.
    pub(super) fn in_steps(self, steps: u64) -> Self {
        let (span, lateness) = (self.window.span().unwrap_or(1), self.lateness);
        let grain = |steps: u64| span.saturating_add(lateness).div_ceil(steps.max(1));
        let fits = |grain: u64| span.div_ceil(grain) + lateness.div_ceil(grain) <= steps;
        // Each is rounded up by itself, which takes a grain more at the most.
        let grain = if fits(grain(steps)) { grain(steps) } else { grain(steps - 1) };
        Self { grain, ..self }
    }

    /// What a table that is kept like this promises.
    pub(super) fn contract(&self) -> Contract {
        let steps = self.window.span().unwrap_or(1).div_ceil(self.grain);
        Contract { capacity: self.window.capacity(), slack: self.slack(), steps }
    }

    pub(crate) fn pace(&self) -> Pace {
        Pace::lazy(self.window, self.grain, self.lateness)
    }

    pub(crate) fn late(&self) -> Option<Late> {
        Late::new(self.window.span().unwrap_or(1), self.grain, self.lateness)
    }

    pub(crate) fn check(&self) -> Result<(), PlanError> {
        let counts = matches!(self.window, Window::Count(_));
        let fits = self.window.span().is_some_and(|span| {
            self.grain > 0
                && (self.lateness == 0 || !counts)
                && span.div_ceil(self.grain) <= 1 << 60
                && self.lateness.div_ceil(self.grain) <= 1 << 60
                && span.checked_add(self.grain).is_some_and(|ticks| ticks < 1 << 62)
                && self.lateness < 1 << 61
        });
        fits.then_some(()).ok_or(PlanError::TooLarge(
            "a window of slots has 1 to 2^60 grains, less than 2^62 ticks and less than 2^61 of lateness, which one that counts arrivals has none of",
        ))
    }

    /// [`Keeps::check`], for a table whose keys have one entry each.
    pub(crate) fn check_in_order(&self, structure: &'static str) -> Result<(), PlanError> {
        self.check()?;
        let in_order = self.lateness == 0;
        in_order.then_some(()).ok_or(PlanError::Window { structure, reason: IN_ORDER })
    }

    /// How much longer than the window a key may still be found, in ticks.
    pub(crate) fn slack(&self) -> u64 {
        self.pace().slack(self.window.span().unwrap_or(0))
    }

    /// Entries that are live at a time when the window is at its capacity: those of the slack and the
    /// lateness too.
    pub(crate) fn live_keys(&self) -> f64 {
        let span = self.window.span().unwrap_or(1);
        let entries = Late::entries_per_key(span, self.lateness, self.slack());
        self.window.capacity() as f64 * entries
    }

    /// Keys for which the stash has room at the start. A window of arrivals cannot grow, so its stash
    /// does, should many keys want the same slots.
    fn stash_reserved(&self) -> u64 {
        match self.window {
            Window::Count(_) => self.stash.min(STASHED),
            Window::Time { .. } | Window::Unbounded { .. } => self.stash,
        }
    }

    /// Bytes of the stash at the start.
    pub(crate) fn stash_memory(&self) -> u64 {
        self.stash_reserved() * stash::ENTRY
    }

    /// Lets the stash grow by no more than so many bytes: those of the list and, while it grows, of its copy.
    pub(crate) fn limit_stash(&mut self, bytes: u64) {
        self.stash = self.stash.min((bytes / (2 * stash::ENTRY)).max(STASHED));
    }

    /// Entries at which the table calls itself full. Some of the last 17th may have expired, see
    /// [`Slotted::note_entry`]. A window of arrivals never holds more live ones than it was planned for.
    pub(crate) fn full_at(&self) -> f64 {
        match self.window {
            Window::Count(_) => libm::ceil(self.live_keys()),
            Window::Time { .. } | Window::Unbounded { .. } => {
                libm::ceil(self.live_keys() * 17.0 / 16.0) + 8.0
            }
        }
    }

    fn write(&self, out: &mut Writer<'_>) {
        let counting = matches!(self.window, Window::Count(_));
        out.u8(u8::from(counting));
        out.u64(self.window.span().unwrap_or(0));
        out.u64(self.window.capacity());
        out.u64(self.grain);
        out.u8(self.renewal as u8);
        out.u64(self.stash);
        late::write(self.lateness, out);
    }

    pub(crate) fn read(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        let counting = input.flag()?;
        Self::read_of(counting, input)
    }

    /// [`Keeps::read`], when it has been read whether arrivals are counted.
    pub(super) fn read_of(counting: bool, input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        let positive = |n| {
            core::num::NonZeroU64::new(n)
                .ok_or(SnapshotError::Invalid("a window of length or capacity 0"))
        };
        let (span, capacity) = (positive(input.u64()?)?, positive(input.u64()?)?);
        let window = match counting {
            true if span == capacity => Window::Count(span),
            true => return Err(SnapshotError::Invalid("no such window")),
            false => Window::Time { span, capacity },
        };
        let (grain, renewal, stash) = (input.u64()?, Renewal::read(input)?, input.u64()?);
        let keeps = Self { window, grain, lateness: late::read(input)?, renewal, stash };
        keeps.check().map_err(|_| SnapshotError::Invalid("a window of an impossible shape"))?;
        Ok(keeps)
    }
}

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
pub(super) trait Slots: Clone {
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

    /// One arrival, where that is a step: was the key known? One that was is renewed `with_renewal`. `None`, and nothing
    /// has changed, where it is no step after all.
    #[inline(always)]
    fn observe_quickly(&mut self, _digest: Digest, _with_renewal: bool) -> Option<bool> {
        None
    }

    /// Is a key there, where that is a step?
    #[inline(always)]
    fn contains_quickly(&self, _digest: Digest) -> bool {
        false
    }

    /// As many arrivals, from the first on, as are steps, of those that are not called duplicates yet: how many, and
    /// their newest tick.
    #[inline(always)]
    fn observe_run<M: Fn(usize) -> Tick>(
        &mut self,
        _digests: &[Digest],
        _moment: M,
        _verdicts: &mut [Verdict],
        _with_renewal: bool,
    ) -> (usize, Tick) {
        (0, Tick(0))
    }

    /// Notes of those keys that are not found yet whether they are there, where that is a step.
    fn contains_run(&self, _digests: &[Digest], _found: &mut [bool]) {}

    /// Time has come to a moment, after this newest tick.
    #[inline(always)]
    fn pass(&mut self, _before: Tick, _cycle: &Cycle) {}

    /// Says from now on what is a step; nothing is, if arrivals are not `in_order` or something is stashed.
    #[inline(always)]
    fn settle(&mut self, _cycle: &Cycle, _in_order: bool) {}

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

    /// Empties those slots of a range whose entries have expired.
    fn clear_expired(&mut self, range: Range<u64>, cycle: &Cycle);

    /// Empties every slot.
    fn clear(&mut self);

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

/// A window over some kind of slots.
#[derive(Clone, Debug, PartialEq)]
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

/// Where a key was found.
#[derive(Clone, Copy)]
pub(super) enum Found<P> {
    Slot(P),
    /// By its id, and the moment that is known.
    Stash(u128, u64),
}

impl<T: Slots> Slotted<T> {
    pub(super) fn new(keeps: Keeps, slots: T) -> Self {
        let cycle = Cycle::new(T::pace(&keeps), slots.cells());
        let full_at = keeps.full_at() as u64;
        let stash = Stash::new(keeps.stash, keeps.stash_reserved());
        Self { keeps, late: keeps.late(), cycle, slots, stash, full_at, refused: 0 }
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

    #[inline]
    pub(super) fn contains(&self, digest: Digest, now: Tick) -> bool {
        if T::QUICK && self.slots.is_quick(now) {
            return self.slots.contains_quickly(digest);
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
        (age.saturating_add(self.cycle.grains_until(now)) <= steps).then_some(age)
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

    /// One arrival: advance, query, insert or renew.
    #[inline]
    pub(super) fn observe(&mut self, digest: Digest, now: Tick) -> Verdict {
        if !T::QUICK {
            return self.observe_in_full(digest, now);
        }
        let with_renewal = self.keeps.renewal == Renewal::Always;
        if self.slots.is_quick(now)
            && let Some(is_known) = self.slots.observe_quickly(digest, with_renewal)
        {
            self.cycle.note(now);
            return if is_known { Verdict::Duplicate } else { Verdict::Fresh };
        }
        self.observe_slowly(digest, now)
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
        let with_renewal = self.keeps.renewal == Renewal::Always;
        let (done, newest) = self.slots.observe_run(digests, moment, verdicts, with_renewal);
        self.cycle.note(newest);
        done
    }

    /// [`Slotted::contains`] for many keys, of those that are not found yet; `false` where they are to be asked for one
    /// by one.
    #[inline]
    pub(super) fn contains_run(&self, digests: &[Digest], now: Tick, found: &mut [bool]) -> bool {
        let is_quick = T::QUICK && self.slots.is_quick(now);
        if is_quick {
            self.slots.contains_run(digests, found);
        }
        is_quick
    }

    /// Says from now on what arrivals need nothing but a step.
    pub(super) fn settle(&mut self) {
        if T::QUICK {
            let in_order = self.late.is_none() && self.stash.is_empty();
            self.slots.settle(&self.cycle, in_order);
        }
    }

    #[inline]
    fn observe_in_full(&mut self, digest: Digest, now: Tick) -> Verdict {
        if let Some(late) = self.late {
            return self.observe_late(late, digest, now);
        }
        self.pass(self.cycle.arrival(now));
        match self.find(digest) {
            Some((_, age))
                if age <= self.cycle.steps() && self.keeps.renewal == Renewal::OnFresh =>
            {
                Verdict::Duplicate
            }
            Some((place, age)) => {
                self.renew(place, digest);
                if age <= self.cycle.steps() { Verdict::Duplicate } else { Verdict::Fresh }
            }
            None => {
                self.insert(digest);
                Verdict::Fresh
            }
        }
    }

    /// Marks a key as seen, whatever was known of it.
    pub(super) fn remember(&mut self, digest: Digest, now: Tick) {
        if T::QUICK
            && self.slots.is_quick(now)
            && self.slots.observe_quickly(digest, true).is_some()
        {
            return self.cycle.note(now);
        }
        self.pass(now);
        if let Some(late) = self.late {
            self.note_sighting(late, digest, late.moment(now, self.cycle.newest()));
        } else {
            match self.find(digest) {
                Some((place, _)) => self.renew(place, digest),
                None => self.insert(digest),
            }
        }
        self.settle();
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
            let slots = &mut self.slots;
            self.cycle.sweep(count, |cells, cycle| slots.clear_expired(cells, cycle));
        }
    }

    #[inline]
    pub(super) fn prefetch(&self, digest: Digest) {
        if let Some(late) = self.late {
            return self.prefetch_late(late, digest);
        }
        self.slots.prefetch(digest);
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
        let slots = &mut self.slots;
        let passed = self.cycle.advance(now, |cells, cycle| slots.clear_expired(cells, cycle));
        if passed == Passed::Everything {
            if self.slots.occupied() > 0 {
                self.slots.clear();
            }
            self.stash.clear();
        } else if !self.stash.is_empty() {
            self.stash.expire(self.cycle.now().saturating_sub(self.cycle.steps()));
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
    pub(super) fn is_full_now(&self) -> bool {
        self.is_full() && (self.stash.is_full() || !self.slots.holds_expired(&self.cycle))
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
        both.slots.unite_times(&other.slots);
        let mut fits = true;
        other.slots.for_each(&other.cycle, |id, age| fits &= both.adopt(id, age));
        for (id, moment) in other.stash.entries() {
            fits &= both.adopt(id, both.cycle.now() - moment);
        }
        if !fits {
            return Err(MergeError::Full);
        }
        both.refused += other.refused;
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
        read.settle();
        Ok(read)
    }
}
