//! A filter whose memory is part of the budget.

use super::budget::{Budget, Share};
use super::kept::Held;
use super::waiting::Waiting;
use super::{Outcome, Refusal};
use lately::{
    AnyFilter, Digest, Filter, LastSeen, Plan, Seen, Spec, Tick, Verdict, WhenFull, Window,
    WindowFilter,
};
use std::sync::Arc;

/// A filter that does not grow past what is left of the budget: then it takes no new keys, and says so.
///
/// It can be saved while it is in use. Then what comes waits in a queue in front of the filter, which does not change until it has been
/// saved, and everything is answered as if it had changed.
#[derive(Debug)]
pub(crate) struct Bounded {
    filter: Arc<AnyFilter>,
    /// What waits because the filter is being saved, or was a moment ago.
    waiting: Option<Box<Waiting>>,
    share: Share,
    /// It may take more memory than it has.
    grows: bool,
    /// The share of the budget that is taken from the beginning, for filters with a limit of their own.
    reserved: u64,
    /// Keys that it took for new ones, in all.
    fresh: u64,
}

/// Buffers that calls share, so that none allocates.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    ticks: Vec<Tick>,
    verdicts: Vec<Verdict>,
    selected: Vec<Digest>,
}

impl Scratch {
    /// The keys whose outcome is such.
    pub(crate) fn select(
        &mut self,
        digests: &[Digest],
        outcomes: &[Outcome],
        is_such: impl Fn(&Outcome) -> bool,
    ) -> &[Digest] {
        self.selected.clear();
        let such = digests.iter().zip(outcomes).filter(|(_, outcome)| is_such(outcome));
        self.selected.extend(such.map(|(digest, _)| *digest));
        &self.selected
    }
}

/// Tables of a filter that keeps its size by forgetting.
const TABLES: u64 = 4;
/// Acts that waited and are done by whoever comes with a few of his own.
const CAUGHT_UP: usize = 64;

impl Bounded {
    /// Plans a filter, and builds it if that is within the budget.
    pub(crate) fn new(spec: Spec, budget: &Arc<Budget>) -> Result<Self, Refusal> {
        let plan = spec.plan().map_err(Refusal::of_plan)?;
        let needed = Self::reserve(&spec, &plan).max(plan.memory());
        let share = Self::share(needed, budget)?;
        let refused = |_| Refusal::Memory { needed, left: budget.left() };
        let filter = plan.try_build().map_err(refused)?;
        Ok(Self::with(filter, &spec, share))
    }

    /// Takes in a filter that was saved.
    pub(crate) fn restore(
        filter: AnyFilter,
        spec: &Spec,
        fresh: u64,
        budget: &Arc<Budget>,
    ) -> Result<Self, Refusal> {
        Self::restore_within(filter, spec, fresh, Share::none(budget))
    }

    /// So much of the budget.
    pub(crate) fn share(needed: u64, budget: &Arc<Budget>) -> Result<Share, Refusal> {
        let refused = || Refusal::Memory { needed, left: budget.left() };
        budget.take(needed).ok_or_else(refused)
    }

    /// The same, with a share of the budget that may have to be larger.
    pub(crate) fn restore_within(
        filter: AnyFilter,
        spec: &Spec,
        fresh: u64,
        mut share: Share,
    ) -> Result<Self, Refusal> {
        let needed = Self::reserve(spec, filter.plan()).max(filter.memory() as u64);
        let more = needed.saturating_sub(share.bytes());
        if more > 0 && !share.extend(more) {
            return Err(Refusal::Memory { needed, left: share.budget().left() });
        }
        share.settle(needed);
        let mut restored = Self::with(filter, spec, share);
        restored.fresh = fresh;
        Ok(restored)
    }

    fn with(filter: AnyFilter, spec: &Spec, share: Share) -> Self {
        let terms = spec.terms();
        let may_grow =
            !matches!(terms.window, Window::Count(_)) && terms.when_full == WhenFull::Grow;
        let reserved = Self::reserve(spec, filter.plan());
        let filter = Arc::new(filter);
        Self { filter, waiting: None, share, grows: may_grow && reserved == 0, reserved, fresh: 0 }
    }

    /// Bytes that are taken from the budget at once, whether they are needed or not: where the most that a filter
    /// can ever take is known.
    fn reserve(spec: &Spec, plan: &Plan) -> u64 {
        let terms = spec.terms();
        match (terms.when_full, terms.memory) {
            (_, Some(limit)) => limit,
            (WhenFull::Forget, None) => plan.memory().saturating_mul(TABLES),
            _ => 0,
        }
    }

    pub(crate) fn filter(&self) -> &AnyFilter {
        &self.filter
    }

    /// Keys that it took for new ones, in all.
    pub(crate) fn fresh(&self) -> u64 {
        self.fresh
    }

    /// Holds it as it is, so that it can be saved without its callers having to wait. `None` while it has not caught up
    /// with what came during the last time.
    pub(crate) fn hold(&mut self) -> Option<Held> {
        if self.waiting.is_some() {
            return None;
        }
        let room = if self.grows { self.room_in_tables() } else { u64::MAX };
        let (waiting, held) = Waiting::begin(&self.filter, room, self.share.budget());
        self.waiting = Some(Box::new(waiting));
        Some(held)
    }

    /// Does so many of the acts that wait, unless the filter is being saved. `true`: none is left.
    pub(crate) fn catch_up(&mut self, most: usize) -> bool {
        let Some(waiting) = &mut self.waiting else { return true };
        // Somebody else has it: it is being saved.
        let Some(filter) = Arc::get_mut(&mut self.filter) else { return false };
        waiting.apply(filter, most);
        if !waiting.is_empty() {
            return false;
        }
        self.waiting = None;
        self.settle();
        true
    }

    /// What so many keys have to wait in, if they have to. There is memory for them there, and in the filter later on.
    fn queue(&mut self, keys: usize) -> Option<(&AnyFilter, &mut Waiting)> {
        // More than come, so that there is an end.
        if self.catch_up(CAUGHT_UP + 2 * keys) {
            return None;
        }
        if !self.has_room_later(keys as u64) {
            // Nobody knows whether there will be room for them: that has to be asked of the filter itself.
            self.waiting.iter().for_each(|waiting| waiting.wait());
            self.catch_up(usize::MAX);
        }
        Some((&self.filter, self.waiting.as_deref_mut()?))
    }

    /// Is there memory for so many keys more, now and when they are added to the filter?
    fn has_room_later(&mut self, keys: u64) -> bool {
        let is_held = Arc::strong_count(&self.filter) > 1;
        let Some(waiting) = &mut self.waiting else { return true };
        if !waiting.has_room(keys, is_held) && !waiting.is_room_taken() {
            let taken = self.take_room().map_or(0, |room| room as u64);
            self.waiting.iter_mut().for_each(|waiting| waiting.room_taken(taken));
        }
        let Some(waiting) = &mut self.waiting else { return true };
        waiting.has_room(keys, is_held) && waiting.has_memory(keys)
    }

    /// The filter, to be changed. Nobody is saving it.
    fn own(&mut self) -> &mut AnyFilter {
        Arc::make_mut(&mut self.filter)
    }

    /// Arrivals, all at one moment. Adds an outcome for each.
    pub(crate) fn observe(
        &mut self,
        digests: &[Digest],
        now: Tick,
        scratch: &mut Scratch,
        outcomes: &mut Vec<Outcome>,
    ) {
        if let Some((filter, waiting)) = self.queue(digests.len()) {
            self.fresh += waiting.observe(filter, digests, now, outcomes);
            return;
        }
        let mut rest = digests;
        while !rest.is_empty() {
            let Some(most) = self.make_room() else { break };
            let (part, after) = rest.split_at(rest.len().min(most));
            scratch.ticks.clear();
            scratch.ticks.resize(part.len(), now);
            scratch.verdicts.clear();
            scratch.verdicts.resize(part.len(), Verdict::Fresh);
            self.own().observe_batch(part, &scratch.ticks, &mut scratch.verdicts);
            for verdict in &scratch.verdicts {
                self.fresh += u64::from(!verdict.is_duplicate());
                outcomes.push(Outcome::from(*verdict));
            }
            self.settle();
            rest = after;
        }
        // New keys are not remembered. A further sighting of a key takes no more room than it has.
        let judge = |&digest| match self.filter.contains(digest, now) {
            true => Outcome::from(self.own().observe(digest, now)),
            false => Outcome::NoMemory,
        };
        outcomes.extend(rest.iter().map(judge));
    }

    /// Marks a key as seen. `false` where there is no memory for it.
    pub(crate) fn remember(&mut self, digest: Digest, now: Tick) -> bool {
        if let Some((filter, waiting)) = self.queue(1) {
            let is_known = waiting.contains(filter, digest, now);
            waiting.remember(digest, now, is_known);
            self.fresh += u64::from(!is_known);
            return true;
        }
        let is_known = self.filter.contains(digest, now);
        if !is_known && self.make_room().is_none() {
            return false;
        }
        self.own().remember(digest, now);
        self.fresh += u64::from(!is_known);
        self.settle();
        true
    }

    /// Can it take out single keys?
    pub(crate) fn can_forget(&self) -> bool {
        self.filter.structure().can_forget()
    }

    /// Takes out a key that is within the window, where the structure can. Was it there?
    ///
    /// A key that the filter cannot distinguish from it goes too: with the probability of a false positive.
    pub(crate) fn forget(&mut self, digest: Digest, now: Tick) -> bool {
        if !self.can_forget() {
            return false;
        }
        if let Some((filter, waiting)) = self.queue(1) {
            let is_known = waiting.contains(filter, digest, now);
            if is_known {
                waiting.forget(digest);
            }
            return is_known;
        }
        let is_known = self.filter.contains(digest, now);
        if is_known {
            self.own().forget(digest);
            self.settle();
        }
        is_known
    }

    /// Takes out a key that was taken out before, when its history is repeated. Nothing is being saved then.
    pub(crate) fn forget_again(&mut self, digest: Digest) {
        self.own().forget(digest);
        self.settle();
    }

    /// How many keys it can take without taking more memory than there is. `None`: not even one.
    fn make_room(&mut self) -> Option<usize> {
        match self.take_room() {
            None => self.room_as_it_is(),
            room => room,
        }
    }

    /// Takes what the next table may need from the budget. How many keys there is room for then.
    fn take_room(&mut self) -> Option<usize> {
        if !self.grows {
            return Some(usize::MAX);
        }
        let memory = self.filter.memory() as u64;
        // The next table takes four times the keys of the first, or twice those of the one before, at a lower rate: where
        // rates are high, that makes more of a difference.
        let times = match self.filter.tables() {
            1 if self.filter.plan().fpr() > 0.1 => 12,
            1 => 6,
            _ => 4,
        };
        let next = memory.saturating_mul(times).max(1 << 16);
        let part = usize::try_from(self.filter.capacity() / 2).unwrap_or(usize::MAX).max(64);
        // Taken until it has settled, so that no two filters count on the same bytes.
        self.share.extend(next).then_some(part)
    }

    /// How many keys there is room for in the tables that there are.
    fn room_in_tables(&self) -> u64 {
        let capacity = self.filter.capacity();
        let keys = match self.filter.window() {
            // It holds no more than it ever took.
            Window::Unbounded { .. } => self.fresh,
            _ if self.filter.tables() == 1 => self.filter.len().saturating_add(capacity / 8),
            _ => capacity,
        };
        (capacity - capacity / 8).saturating_sub(keys)
    }

    /// How many keys it can certainly take as it is.
    fn room_as_it_is(&self) -> Option<usize> {
        let capacity = self.filter.capacity();
        let room = match self.filter.window() {
            // It holds no more than it ever took.
            Window::Unbounded { .. } => (capacity - capacity / 8).saturating_sub(self.fresh),
            // Slots are planned to be fuller than this.
            _ if self.filter.tables() == 1 && self.filter.fill() < 0.5 => (capacity / 8).min(1024),
            _ => 0,
        };
        usize::try_from(room).ok().filter(|&room| room > 0)
    }

    fn settle(&mut self) {
        if self.grows {
            self.share.settle(self.filter.memory() as u64);
        }
    }

    /// Lets time pass, so that what has expired gives its memory back; later, if the filter is being saved.
    pub(crate) fn advance(&mut self, now: Tick) {
        if self.catch_up(CAUGHT_UP) {
            self.own().advance(now);
            self.settle();
        }
    }

    /// Drops tables whose last key has expired.
    pub(crate) fn tidy(&mut self, now: Tick) {
        if self.filter.tables() > 1 {
            self.advance(now);
        }
    }

    pub(crate) fn contains(&self, digest: Digest, now: Tick) -> bool {
        match &self.waiting {
            None => self.filter.contains(digest, now),
            Some(waiting) => waiting.contains(&self.filter, digest, now),
        }
    }

    pub(crate) fn contains_batch(&self, digests: &[Digest], now: Tick, found: &mut [bool]) {
        match &self.waiting {
            None => self.filter.contains_batch(digests, now, found),
            Some(waiting) => waiting.contains_batch(&self.filter, digests, now, found),
        }
    }

    pub(crate) fn contains_within(&self, digest: Digest, within: u64, now: Tick) -> bool {
        match &self.waiting {
            None => self.filter.contains_within(digest, within, now),
            Some(waiting) => waiting.contains_within(&self.filter, digest, Some(within), now),
        }
    }

    pub(crate) fn last_seen(&self, digest: Digest, now: Tick) -> Option<Seen> {
        match &self.waiting {
            None => self.filter.last_seen(digest, now),
            Some(waiting) => waiting.last_seen(&self.filter, digest, now),
        }
    }

    /// About how many keys it holds.
    pub(crate) fn len(&self) -> u64 {
        let keys = self.filter.len();
        self.waiting.as_ref().map_or(keys, |waiting| waiting.keys_after(keys))
    }

    /// Bytes of the budget.
    pub(crate) fn memory(&self) -> u64 {
        self.reserved.max(self.filter.memory() as u64)
    }
}

impl Drop for Bounded {
    /// The memory of a filter that is being saved is free only when that is done.
    fn drop(&mut self) {
        if let Some(waiting) = &self.waiting {
            waiting.leave(self.share.hand_over());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Options;
    use super::*;
    use lately::Digester;
    use std::num::NonZeroU64;

    fn digests(from: u64, n: u64) -> Vec<Digest> {
        (from..from + n).map(|key| Digester::new(9).digest(&key.to_le_bytes())).collect()
    }

    /// Growing filters share a budget and never take more, nor lose a key that they took.
    #[test]
    fn memory_stays_within_the_budget() {
        let capacity = NonZeroU64::new(1_000).unwrap();
        for window in [
            Window::Unbounded { capacity },
            Window::Time { span: NonZeroU64::new(1_000_000).unwrap(), capacity },
        ] {
            let budget = Budget::new(1 << 20);
            let spec = Spec::new(window).fpr(1e-3).seed(9);
            let mut filters: Vec<_> =
                (0..3).map(|_| Bounded::new(spec, &budget).unwrap()).collect();
            let mut scratch = Scratch::default();
            let mut taken = 0u64;
            for round in 0..200 {
                for filter in &mut filters {
                    let keys = digests(round * 1_000, 1_000);
                    let mut outcomes = Vec::new();
                    filter.observe(&keys, Tick(round), &mut scratch, &mut outcomes);
                    let fresh =
                        outcomes.iter().filter(|outcome| **outcome == Outcome::Fresh).count();
                    taken += fresh as u64;
                    for (key, outcome) in keys.iter().zip(&outcomes) {
                        let known = filter.contains(*key, Tick(round));
                        assert_eq!(known, *outcome != Outcome::NoMemory, "{outcome:?}");
                    }
                    assert!(budget.used() <= budget.limit(), "{} bytes", budget.used());
                }
            }
            let real: u64 = filters.iter().map(|filter| filter.filter().memory() as u64).sum();
            assert_eq!(budget.used(), real);
            // It is used, and it does end.
            assert!(real > 1 << 17, "{real}");
            assert!(taken < 600_000, "{taken}");
            assert!(filters.iter().any(|filter| filter.filter().tables() > 1));
            drop(filters);
            assert_eq!(budget.used(), 0);
        }
    }

    /// Where there is no memory for new keys, sightings of known ones still renew them.
    #[test]
    fn known_keys_are_renewed_without_memory() {
        const SPAN: u64 = 1_000;
        let capacity = NonZeroU64::new(1_000).unwrap();
        let window = Window::Time { span: NonZeroU64::new(SPAN).unwrap(), capacity };
        let spec = Spec::new(window).fpr(1e-6).seed(9);
        let mut filter = Bounded::new(spec, &Budget::new(1 << 17)).unwrap();
        let (mut scratch, mut outcomes, mut taken) = (Scratch::default(), Vec::new(), 0);
        while !outcomes.contains(&Outcome::NoMemory) {
            outcomes.clear();
            filter.observe(&digests(taken, 500), Tick(0), &mut scratch, &mut outcomes);
            taken += 500;
        }
        let known = digests(0, taken - 500);
        outcomes.clear();
        filter.observe(&known, Tick(SPAN - 1), &mut scratch, &mut outcomes);
        assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Seen));
        assert!(known.iter().all(|key| filter.contains(*key, Tick(2 * SPAN - 2))), "{taken}");
    }

    /// What RedisBloom 2.8 allocates for the bits of a filter: of each of its filters within filters, the first for half
    /// of the rate, each further one for half of the rate before and twice the keys.
    fn redisbloom(capacity: u64, fpr: f64, keys: u64) -> f64 {
        let (mut capacity, mut fpr, mut room, mut bits) = (capacity as f64, fpr / 2.0, 0.0, 0.0);
        while room < keys as f64 {
            bits += (capacity * -fpr.ln() / std::f64::consts::LN_2.powi(2) / 64.0).ceil() * 64.0;
            room += capacity;
            (capacity, fpr) = (capacity * 2.0, fpr / 2.0);
        }
        bits / 8.0
    }

    #[test]
    fn what_never_forgets_is_no_larger_than_in_redisbloom() {
        for fpr in [0.01, 1e-3, 1e-6] {
            // As planned, and grown to 20 and to 2,000 times as much.
            for (capacity, keys) in [(50_000, 50_000), (2_500, 50_000), (100, 200_000)] {
                let options = Options { capacity, fpr, ..Options::default() };
                let budget = Budget::new(1 << 30);
                let mut filter = Bounded::new(options.spec(9).unwrap(), &budget).unwrap();
                let (mut scratch, mut outcomes) = (Scratch::default(), Vec::new());
                filter.observe(&digests(0, keys), Tick(0), &mut scratch, &mut outcomes);
                let (ours, theirs) = (filter.memory() as f64, redisbloom(capacity, fpr, keys));
                assert!(ours < theirs * 1.002, "{fpr} {capacity}: {ours} {theirs}");
                assert!(
                    capacity == keys || ours < theirs * 0.98,
                    "{fpr} {capacity}: {ours} {theirs}"
                );
            }
        }
    }

    #[test]
    fn a_filter_that_cannot_grow_reserves_all_it_can_take() {
        let budget = Budget::new(1 << 20);
        let window = Window::Unbounded { capacity: NonZeroU64::new(1_000).unwrap() };
        let spec = Spec::new(window).memory(1 << 19);
        let one = Bounded::new(spec, &budget).unwrap();
        assert_eq!((one.memory(), budget.used()), (1 << 19, 1 << 19));
        let _two = Bounded::new(spec, &budget).unwrap();
        assert!(matches!(Bounded::new(spec, &budget), Err(Refusal::Memory { left: 0, .. })));
    }
}
