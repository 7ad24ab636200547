//! A filter that is asked for intervals, whose memory is part of the budget.

use super::bounded::Bounded;
use super::budget::{Budget, Share};
use super::kept::{Held, Tables};
use super::numbers::of_digest;
use super::queue::Queue;
use super::{Outcome, Refusal};
use lately::range::{Answer, RangeSpec, RangeWindow};
use lately::{Digest, Tick, WhenFull};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// A range window that takes no more than there is of the budget, and can be saved while it is in use: what [`Bounded`] is to
/// filters of single keys.
///
/// What its tables can take at worst is taken from the budget before they are made.
#[derive(Debug)]
pub(crate) struct Intervals {
    window: Arc<RangeWindow>,
    /// What waits because the window is being saved, or was a moment ago.
    waiting: Option<Box<Queue>>,
    share: Share,
    /// It adds tables, and has no limit of its own.
    grows: bool,
    /// Keys that it took for new ones, in all.
    fresh: u64,
}

/// Acts that waited and are done by whoever comes with a few of his own.
const CAUGHT_UP: usize = 64;

impl Intervals {
    /// Plans a window, and builds it if that is within the budget.
    pub(crate) fn new(spec: RangeSpec, budget: &Arc<Budget>) -> Result<Self, Refusal> {
        let plan = spec.plan().map_err(Refusal::of_plan)?;
        let needed = Self::reserve(&spec).max(plan.most_memory());
        let share = Bounded::share(needed, budget)?;
        let refused = |_| Refusal::Memory { needed, left: budget.left() };
        let window = plan.try_build().map_err(refused)?;
        Ok(Self::with(window, &spec, share))
    }

    /// Takes in a window that was saved, with a share of the budget that may have to be larger.
    pub(crate) fn restore(
        window: RangeWindow,
        spec: &RangeSpec,
        fresh: u64,
        mut share: Share,
    ) -> Result<Self, Refusal> {
        let needed = Self::reserve(spec).max(Self::needed(&window));
        let more = needed.saturating_sub(share.bytes());
        if more > 0 && !share.extend(more) {
            return Err(Refusal::Memory { needed, left: share.budget().left() });
        }
        share.settle(needed);
        let mut restored = Self::with(window, spec, share);
        restored.fresh = fresh;
        Ok(restored)
    }

    fn with(window: RangeWindow, spec: &RangeSpec, share: Share) -> Self {
        let terms = spec.terms();
        let grows = terms.when_full == WhenFull::Grow && terms.memory.is_none();
        Self { window: Arc::new(window), waiting: None, share, grows, fresh: 0 }
    }

    /// Bytes that are taken from the budget whether they are needed or not: a limit of its own is all that a window takes.
    fn reserve(spec: &RangeSpec) -> u64 {
        spec.terms().memory.unwrap_or(0)
    }

    /// Bytes that the tables which are there take at worst.
    fn needed(window: &RangeWindow) -> u64 {
        window.most_memory().max(window.memory() as u64)
    }

    pub(crate) fn window(&self) -> &RangeWindow {
        &self.window
    }

    /// Keys that it took for new ones, in all.
    pub(crate) fn fresh(&self) -> u64 {
        self.fresh
    }

    /// Bytes of the budget.
    pub(crate) fn memory(&self) -> u64 {
        self.share.bytes()
    }

    /// Holds it as it is, so that it can be saved without its callers having to wait. `None` while it has not caught up
    /// with what came during the last time.
    pub(crate) fn hold(&mut self) -> Option<Held> {
        if self.waiting.is_some() {
            return None;
        }
        let room = if self.grows { self.window.room() } else { u64::MAX };
        let (held, left, end) = Held::begin(Tables::Ranges(Arc::clone(&self.window)));
        let queue = Queue::new(&self.window, room, self.share.budget(), left, end);
        self.waiting = Some(Box::new(queue));
        Some(held)
    }

    /// Does so many of the acts that wait, unless the window is being saved. `true`: none is left.
    pub(crate) fn catch_up(&mut self, most: usize) -> bool {
        let Some(queue) = &mut self.waiting else { return true };
        // Somebody else has it: it is being saved.
        let Some(window) = Arc::get_mut(&mut self.window) else { return false };
        queue.apply(window, most);
        if !queue.is_empty() {
            return false;
        }
        self.waiting = None;
        self.settle();
        true
    }

    /// What so many keys have to wait in, if they have to. There is memory for them there, and in the window later on.
    fn queue(&mut self, keys: usize) -> Option<(&RangeWindow, &mut Queue)> {
        // More than come, so that there is an end.
        if self.catch_up(CAUGHT_UP + 2 * keys) {
            return None;
        }
        if !self.has_room_later(keys as u64) {
            self.waiting.iter().for_each(|queue| queue.wait());
            self.catch_up(usize::MAX);
        }
        Some((&self.window, self.waiting.as_deref_mut()?))
    }

    /// Is there memory for so many keys more, now and when they are added to the window?
    fn has_room_later(&mut self, keys: u64) -> bool {
        let Some(queue) = &mut self.waiting else { return true };
        if !queue.has_room(keys) && !queue.is_room_taken() {
            // The next table takes at least twice as many keys as the first: half of them may be in its way by then.
            let room = match self.window.memory_of_next() {
                Some(next) if !self.share.extend(next) => 0,
                Some(_) => self.window.plan().window().capacity(),
                None => u64::MAX,
            };
            queue.take_room(room);
        }
        queue.has_room(keys) && queue.has_memory(keys)
    }

    /// The window, to be changed. Nobody is saving it.
    fn own(&mut self) -> &mut RangeWindow {
        Arc::make_mut(&mut self.window)
    }

    /// Makes its share what its tables take at worst. What waits may need more.
    fn settle(&mut self) {
        if self.grows && self.waiting.is_none() {
            self.share.settle(Self::needed(&self.window));
        }
    }

    /// Arrivals, all at one moment. Adds an outcome for each.
    pub(crate) fn observe(&mut self, keys: &[Digest], now: Tick, outcomes: &mut Vec<Outcome>) {
        if let Some((window, queue)) = self.queue(keys.len()) {
            let outcome = |key: &Digest| queue.observe(window, of_digest(*key), now);
            let from = outcomes.len();
            outcomes.extend(keys.iter().map(outcome));
            let fresh = outcomes[from..].iter().filter(|outcome| **outcome == Outcome::Fresh);
            self.fresh += fresh.count() as u64;
            return;
        }
        for key in keys {
            outcomes.push(self.observe_one(of_digest(*key), now));
        }
        self.settle();
    }

    fn observe_one(&mut self, key: u128, now: Tick) -> Outcome {
        let is_known = self.window.contains(key, now);
        // Without a window there is nothing to renew.
        let is_marked = is_known && self.window.window().span().is_none() || self.mark(key, now);
        match (is_marked, is_known) {
            (false, _) => Outcome::NoMemory,
            (true, true) => Outcome::Seen,
            (true, false) => {
                self.fresh += 1;
                Outcome::Fresh
            }
        }
    }

    /// Marks a key as seen. `false` where that would take another table, and there is no memory for one.
    ///
    /// What a journal has is marked in any case: it found room once, so it does again. Who loads it looks at the sum.
    fn mark(&mut self, key: u128, now: Tick) -> bool {
        if self.grows {
            let is_loading = self.share.budget().is_loading();
            let window = self.own();
            let is_in = match is_loading {
                true => window.insert_again(key, now),
                false => window.insert_without_growing(key, now),
            };
            if is_in {
                return true;
            }
            let next = self.window.memory_of_next().unwrap_or(0);
            if !self.share.extend(next) {
                if !is_loading {
                    return false;
                }
                self.share.settle(self.share.bytes().saturating_add(next));
            }
        }
        self.own().insert(key, now);
        true
    }

    /// Marks a key as seen. `false` where there is no memory for it.
    pub(crate) fn remember(&mut self, key: Digest, now: Tick) -> bool {
        let key = of_digest(key);
        if let Some((window, queue)) = self.queue(1) {
            let is_known = queue.remember(window, key, now);
            self.fresh += u64::from(!is_known);
            return true;
        }
        let is_known = self.window.contains(key, now);
        let is_marked = self.mark(key, now);
        self.fresh += u64::from(is_marked && !is_known);
        self.settle();
        is_marked
    }

    /// Was any of these keys seen, within the window or a shorter one?
    pub(crate) fn any(&self, keys: RangeInclusive<u128>, within: Option<u64>, now: Tick) -> bool {
        // What never forgets does not know when.
        let within = within.filter(|_| self.window.window().span().is_some());
        match &self.waiting {
            Some(queue) => queue.any(&self.window, keys, within, now),
            None => {
                let within = within.unwrap_or(u64::MAX);
                matches!(self.window.any_within(keys, within, now), Answer::Perhaps { .. })
            }
        }
    }

    /// Was this one?
    pub(crate) fn contains(&self, key: Digest, within: Option<u64>, now: Tick) -> bool {
        let key = of_digest(key);
        self.any(key..=key, within, now)
    }

    /// Lets time pass, so that what has expired gives its memory back; later, if the window is being saved.
    pub(crate) fn advance(&mut self, now: Tick) {
        if self.catch_up(CAUGHT_UP) {
            self.own().advance(now);
            self.settle();
        }
    }

    /// Drops tables whose last key has expired.
    pub(crate) fn tidy(&mut self, now: Tick) {
        if self.window.tables() > 1 {
            self.advance(now);
        }
    }

    /// About how many keys it holds.
    pub(crate) fn len(&self) -> u64 {
        self.window.keys() + self.waiting.as_ref().map_or(0, |queue| queue.added())
    }
}

impl Drop for Intervals {
    /// The memory of a window that is being saved is free only when that is done.
    fn drop(&mut self) {
        if let Some(queue) = &self.waiting {
            queue.leave(self.share.hand_over());
        }
    }
}

#[cfg(test)]
mod tests;
