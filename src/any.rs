//! The filter that a [`Plan`] builds.

mod saved;
mod tables;

pub(crate) use saved::{FILTER, RANGE_FORMS, RANGE_TABLES};

use crate::engine::AHEAD;
use crate::generations::Generation;
use crate::plan::growth;
use crate::{
    Digest, Digester, Filter, LastSeen, Leaps, Merge, MergeError, ObserveAll, Overload, Plan,
    PlanError, Seen, Structure, Tick, Verdict, Window, WindowFilter,
};
use alloc::vec::Vec;

/// Arrivals of a batch whose moments a guard looks at before they are judged.
const GUARDED: usize = 256;

/// A filter of whichever structure its [`Plan`] chose, with its policy for what is past capacity.
///
/// # Guarantee
/// A key seen within the window is never called fresh, except for keys that the policy had to give
/// up, which are counted in [`AnyFilter::overload`]. Others are called duplicates with at most the
/// plan's false positive rate.
///
/// # Cost
/// That of the structure; of several, while tables that have been outgrown are still needed.
/// Memory is allocated when it is built and when [`Overload::grown`] counts one up; and, in a window of arrivals, should
/// chance want more keys in one place than there is room for, a few kilobytes for these.
///
/// # Example
/// ```
/// use core::num::NonZeroU64;
/// use lately::{AnyFilter, Spec, Tick, Verdict, Window, WindowFilter};
/// let window = Window::Unbounded { capacity: NonZeroU64::new(1_000).unwrap() };
/// let mut filter = Spec::new(window).plan()?.build();
/// let key = filter.digester().digest(b"a key");
/// assert_eq!(filter.observe(key, Tick(0)), Verdict::Fresh);
///
/// let bytes = filter.snapshot();
/// let mut restored = AnyFilter::restore(&bytes)?;
/// assert_eq!(restored.observe(key, Tick(0)), Verdict::Duplicate);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct AnyFilter {
    plan: Plan,
    /// The table that takes new keys.
    active: Generation,
    /// Tables that are only asked, oldest first.
    older: Vec<Generation>,
    /// The newest moment seen, in the unit of the tables; arrivals so far for a count window.
    newest: Tick,
    /// The guard before it, where the spec has one and time passes.
    leaps: Option<Leaps>,
    can_overflow: bool,
    overload: Overload,
}

impl Plan {
    /// The empty filter.
    ///
    /// # Panics
    /// When there is no memory for it, as `Vec` does; [`Plan::try_build`] says so instead.
    pub fn build(&self) -> AnyFilter {
        match self.try_build() {
            Ok(filter) => filter,
            Err(error) => unavailable(&error),
        }
    }

    /// The empty filter.
    ///
    /// # Errors
    /// [`PlanError::Unavailable`] when there is no memory for it.
    pub fn try_build(&self) -> Result<AnyFilter, PlanError> {
        AnyFilter::new(self)
    }
}

/// Ends a call that has no other way to say it.
#[cold]
#[expect(clippy::panic, reason = "what `Vec` does when there is no memory; documented")]
pub(crate) fn unavailable(error: &PlanError) -> ! {
    panic!("{error}")
}

impl AnyFilter {
    fn new(plan: &Plan) -> Result<Self, PlanError> {
        let active =
            Generation::new(&plan.size, growth::first_share(&plan.spec, plan.structure()))?;
        Ok(Self::with_tables(*plan, active, Vec::new()))
    }

    fn with_tables(plan: Plan, active: Generation, older: Vec<Generation>) -> Self {
        let can_overflow = plan.spec.can_overflow();
        Self {
            leaps: plan.most_leap().map(Leaps::of_at_most),
            plan,
            active,
            older,
            newest: Tick(0),
            can_overflow,
            overload: Overload::default(),
        }
    }

    /// The plan it was built from.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The structure.
    pub fn structure(&self) -> Structure {
        self.plan.structure()
    }

    /// What became of keys beyond the planned capacity.
    pub fn overload(&self) -> Overload {
        let tables = self.older.iter().chain([&self.active]);
        tables.map(|table| table.engine.table().overload()).fold(self.overload, Overload::plus)
    }

    /// Tables in use: 1 until the filter is fuller than planned.
    pub fn tables(&self) -> usize {
        self.older.len() + 1
    }

    /// Keys that the tables in use can hold.
    pub fn capacity(&self) -> u64 {
        let tables = self.older.iter().chain([&self.active]);
        tables.map(|table| table.engine.table().capacity_grown_to()).fold(0, u64::saturating_add)
    }

    /// About how many keys it holds: counted, or where that cannot be (aged Bloom filters) estimated from a sample of
    /// 65,536 cells. Keys that have just expired may be among them, and a key in several tables, or seen in several blocks of a long lateness, counts for each.
    pub fn len(&self) -> u64 {
        let tables = self.older.iter().chain([&self.active]);
        tables.map(|table| table.engine.table().keys_now()).fold(0, u64::saturating_add)
    }

    /// The newest moment that it knows of; in a window of arrivals the number of the last one.
    pub fn newest(&self) -> Tick {
        self.newest
    }

    /// Does it hold no key, as far as it knows? What has expired is noticed as time passes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets everything, the time, the arrivals and what became of keys among it: the filter is as it was built.
    ///
    /// *Cost:* zeroing one table. Memory is taken only where the first table is no longer there, or was made by another version.
    pub fn clear(&mut self) {
        self.older = Vec::new();
        let share = growth::first_share(&self.plan.spec, self.plan.structure());
        let is_first = self.active.share == share && self.active.capacity == self.plan.capacity();
        let new = (!is_first).then(|| Generation::new(&self.plan.size, share));
        match new {
            Some(Ok(table)) => self.active = table,
            // Without memory for another, a larger one serves as well.
            Some(Err(_)) | None => self.active.clear(),
        }
        (self.newest, self.overload) = (Tick(0), Overload::default());
        if let Some(leaps) = &mut self.leaps {
            leaps.clear();
        }
    }

    /// Judges the arrivals of an iterator, in batches of 256.
    ///
    /// # Example
    /// ```
    /// use lately::{Spec, Tick, Window};
    /// let mut seen = Spec::new(Window::time(60, 1_000)).plan()?.build();
    /// let digester = seen.digester();
    /// let lines = ["one", "two", "one"];
    /// let arrivals = lines.iter().zip(0..).map(|(line, at)| (digester.digest(line.as_bytes()), Tick(at)));
    /// let fresh: Vec<bool> = seen.observe_all(arrivals).map(|verdict| !verdict.is_duplicate()).collect();
    /// assert_eq!(fresh, [true, true, false]);
    /// # Ok::<(), lately::PlanError>(())
    /// ```
    pub fn observe_all<I>(&mut self, arrivals: I) -> ObserveAll<'_, Self, I::IntoIter>
    where
        I: IntoIterator<Item = (Digest, Tick)>,
    {
        ObserveAll::new(self, arrivals.into_iter())
    }

    /// Forgets one key before it expires, whatever became of it: nothing finds it any more until it is seen again.
    /// `true` if it was known at the newest moment: as `contains` would have said or, where arrivals may be late, as it
    /// would for some moment that may still be asked about.
    ///
    /// Only where the [structure can](Structure::can_forget); other filters do not change, and say `false`.
    ///
    /// # Guarantee
    /// All that is remembered of the key goes, in every table. **A key that the filter cannot distinguish from it goes
    /// too**, as in a cuckoo filter, and is a false negative until it is seen again. That happens with the probability
    /// of a false positive, [`Filter::fpr`], at most once per call: keys have one entry if they cannot be distinguished.
    /// It is the same for a key that was never observed: what is forgotten then is always another. So forget keys that
    /// were observed, and as seldom as the rate asks for: of a million calls at a rate of 10^-6 one may hit another key.
    ///
    /// *Cost:* that of an arrival that does not go by the fastest way, in each table.
    ///
    /// # Example
    /// ```
    /// use lately::{Filter, Spec, Tick, Verdict, Window, WindowFilter};
    /// let mut seen = Spec::new(Window::time(60, 1_000)).plan()?.build();
    /// let order = seen.digester().digest(b"order 17");
    /// assert_eq!(seen.observe(order, Tick(5)), Verdict::Fresh);
    /// assert!(seen.forget(order));
    /// assert!(!seen.contains(order, Tick(6)) && !seen.forget(order));
    /// # Ok::<(), lately::PlanError>(())
    /// ```
    pub fn forget(&mut self, digest: Digest) -> bool {
        self.pass_time();
        let tables = self.older.iter_mut().chain([&mut self.active]);
        tables.fold(false, |known, table| table.forget(digest) | known)
    }

    /// Begins to fetch the memory that a call for this key will look at, in every table. A hint that changes nothing.
    ///
    /// Batches do so by themselves. This is for whoever has many filters, each for a few keys at a time: first this for all
    /// of the next some dozen keys, then the calls.
    ///
    /// *Cost:* two lines are asked for in each table of the default structure; nothing waits for them.
    ///
    /// # Example
    /// ```
    /// use lately::{Spec, Tick, Window, WindowFilter};
    /// let plan = Spec::new(Window::time(60, 1_000)).plan()?;
    /// let mut tenants = vec![plan.build(); 3];
    /// let digester = tenants[0].digester();
    /// let arrivals = [(0, "a"), (2, "b"), (0, "a")].map(|(tenant, key)| (tenant, digester.digest(key.as_bytes())));
    /// for &(tenant, digest) in &arrivals {
    ///     tenants[tenant].prefetch(digest);
    /// }
    /// let known = arrivals.map(|(tenant, digest)| tenants[tenant].observe(digest, Tick(1)).is_duplicate());
    /// assert_eq!(known, [false, false, true]);
    /// # Ok::<(), lately::PlanError>(())
    /// ```
    #[inline]
    pub fn prefetch(&self, digest: Digest) {
        self.active.engine.prefetch(digest);
        self.older.iter().for_each(|table| table.engine.prefetch(digest));
    }

    /// The digester whose digests this filter is to be given.
    pub fn digester(&self) -> Digester {
        Digester::new(self.plan.spec.terms.seed)
    }

    /// Counts one arrival of a count window without judging it; elsewhere it does nothing.
    ///
    /// Use it with `contains` and `remember` when a record must be forwarded between lookup and insert: `contains`,
    /// this, and `remember` if the key is to be marked together equal [`WindowFilter::observe`].
    pub fn count_arrival(&mut self) {
        if let Window::Count(_) = self.plan.spec.terms.window {
            self.newest.0 += 1;
        }
    }

    /// The moment that an arrival is taken to be of, where there is a guard.
    #[inline]
    fn believed(&mut self, at: Tick) -> Tick {
        self.leaps.as_mut().map_or(at, |leaps| leaps.judge(at))
    }

    /// The moment of the next arrival, in the unit of the tables. Tables that were added later have
    /// not seen all moments, so the newest is kept here.
    #[inline]
    fn next_moment(&self, at: Tick) -> Tick {
        match self.plan.spec.terms.window {
            Window::Count(_) => Tick(self.newest.0 + 1),
            Window::Time { .. } | Window::Unbounded { .. } => at.max(self.oldest()),
        }
    }

    /// The moment of a call that is no arrival.
    #[inline]
    fn present_moment(&self, at: Tick) -> Tick {
        match self.plan.spec.terms.window {
            Window::Count(_) => self.newest,
            Window::Time { .. } | Window::Unbounded { .. } => at.max(self.oldest()),
        }
    }

    /// The oldest moment at which anything is judged: the newest, where arrivals come in order.
    #[inline]
    fn oldest(&self) -> Tick {
        Tick(self.newest.0.saturating_sub(self.plan.spec.lateness))
    }

    /// One arrival whose moment the guard has let pass.
    #[inline]
    fn observe_believed(&mut self, digest: Digest, now: Tick) -> Verdict {
        let now = self.next_moment(now);
        self.newest = self.newest.max(now);
        if self.older.is_empty()
            && let Some(verdict) = self.active.observe_quickly(digest, now)
        {
            return verdict;
        }
        self.observe_in_any(digest, now)
    }

    #[inline(never)]
    fn observe_in_any(&mut self, digest: Digest, now: Tick) -> Verdict {
        if self.older.is_empty() && !self.is_full() {
            self.active.observe(digest, now)
        } else {
            self.observe_tables(digest, now)
        }
    }

    /// Many of them, in slices of one length.
    fn observe_all_believed(&mut self, digests: &[Digest], now: &[Tick], verdicts: &mut [Verdict]) {
        let done = self.observe_at_once(digests, now, verdicts);
        for i in done..digests.len() {
            if let Some(&ahead) = digests.get(i + AHEAD) {
                self.active.engine.prefetch(ahead);
                self.older.iter().for_each(|table| table.engine.prefetch(ahead));
            }
            verdicts[i] = self.observe_believed(digests[i], now[i]);
        }
    }

    /// Observes as much of a batch as can be done table by table, in tight loops: all, as long as no
    /// table fills up and no older one changes meanwhile. Returns how much that was.
    fn observe_at_once(
        &mut self,
        digests: &[Digest],
        now: &[Tick],
        verdicts: &mut [Verdict],
    ) -> usize {
        let window = self.plan.spec.terms.window;
        if !self.older.is_empty() && window.span().is_some() {
            return 0;
        }
        verdicts.fill(Verdict::Fresh);
        for table in &self.older {
            table.engine.find_all(digests, self.newest, verdicts);
        }
        let (newest, oldest) = (self.newest, self.oldest());
        let moment = |i: usize| match window {
            Window::Count(_) => Tick(newest.0 + 1 + i as u64),
            // The table knows how far behind its newest moment one may lie.
            Window::Time { .. } | Window::Unbounded { .. } => now[i].max(oldest),
        };
        let done = self.active.engine.observe_all(digests, moment, verdicts, self.can_overflow);
        self.active.keys += count_fresh(&verdicts[..done]);
        self.newest = match window {
            Window::Count(_) => Tick(newest.0 + done as u64),
            Window::Time { .. } | Window::Unbounded { .. } => {
                now[..done].iter().copied().fold(newest, Tick::max)
            }
        };
        if done > 0 {
            self.active.last = self.active.last.max(self.newest);
        }
        done
    }
}

/// How many of them are fresh, by sums of bytes, of which a processor adds many at a time.
fn count_fresh(verdicts: &[Verdict]) -> u64 {
    let sum = |some: &[Verdict]| some.iter().map(|one| u8::from(!one.is_duplicate())).sum::<u8>();
    verdicts.chunks(128).map(|some| u64::from(sum(some))).sum()
}

impl crate::filter::sealed::Sealed for AnyFilter {}

impl Filter for AnyFilter {
    #[inline]
    fn contains(&self, digest: Digest, now: Tick) -> bool {
        let now = self.next_moment(now);
        // The usual case alone, which then needs nothing on the stack.
        if self.older.is_empty()
            && let Some(found) = self.active.engine.contains_quickly(digest, now)
        {
            return found;
        }
        self.is_known(digest, now)
    }

    fn contains_batch(&self, digests: &[Digest], now: Tick, found: &mut [bool]) {
        let now = self.next_moment(now);
        found.iter_mut().take(digests.len()).for_each(|found| *found = false);
        for table in self.older.iter().chain([&self.active]) {
            table.engine.contains_all(digests, now, found);
        }
    }

    fn fpr(&self) -> f64 {
        self.plan.fpr()
    }

    fn estimated_fpr(&self) -> f64 {
        let tables = self.older.iter().chain([&self.active]);
        1.0 - tables.map(|table| 1.0 - table.engine.table().estimated_fpr()).product::<f64>()
    }

    /// That of the table that takes new keys.
    fn fill(&self) -> f64 {
        self.active.engine.table().fill()
    }

    fn memory(&self) -> usize {
        self.older.iter().chain([&self.active]).map(|table| table.engine.table().memory()).sum()
    }
}

impl WindowFilter for AnyFilter {
    fn remember(&mut self, digest: Digest, now: Tick) {
        let now = self.believed(now);
        let now = self.present_moment(now);
        self.newest = self.newest.max(now);
        self.pass_time();
        if !self.renews_in_place() && self.is_known(digest, now) {
            self.take_besides(digest, now);
        } else if self.active.engine.contains(digest, now) {
            self.active.take(digest, now);
        } else if let Some(table) = self.older_with(digest, now) {
            self.older[table].take(digest, now);
        } else if self.is_full_now() {
            self.take_beyond_capacity(digest, now);
        } else {
            self.active.take(digest, now);
        }
    }

    #[inline]
    fn observe(&mut self, digest: Digest, now: Tick) -> Verdict {
        let now = self.believed(now);
        self.observe_believed(digest, now)
    }

    fn observe_batch(&mut self, digests: &[Digest], now: &[Tick], verdicts: &mut [Verdict]) {
        let len = digests.len().min(now.len()).min(verdicts.len());
        let (digests, now, verdicts) = (&digests[..len], &now[..len], &mut verdicts[..len]);
        if self.leaps.is_none() {
            return self.observe_all_believed(digests, now, verdicts);
        }
        let mut believed = [Tick(0); GUARDED];
        let batches = digests.chunks(GUARDED).zip(now.chunks(GUARDED));
        for ((digests, now), verdicts) in batches.zip(verdicts.chunks_mut(GUARDED)) {
            for (believed, &at) in believed.iter_mut().zip(now) {
                *believed = self.believed(at);
            }
            self.observe_all_believed(digests, &believed[..now.len()], verdicts);
        }
    }

    fn advance(&mut self, now: Tick) {
        if let Window::Time { .. } = self.plan.spec.terms.window {
            self.newest = now.max(self.newest);
            if let Some(leaps) = &mut self.leaps {
                leaps.believe(self.newest);
            }
            self.pass_time();
        }
    }

    fn window(&self) -> Window {
        self.plan.window()
    }

    fn slack(&self) -> u64 {
        self.plan.slack()
    }
}

/// Every arrival is observed; what the verdicts are is not asked.
impl Extend<(Digest, Tick)> for AnyFilter {
    fn extend<I: IntoIterator<Item = (Digest, Tick)>>(&mut self, arrivals: I) {
        self.observe_all(arrivals).for_each(drop);
    }
}

/// In a filter that never forgets every window is the whole one, and a key was seen "by now".
impl LastSeen for AnyFilter {
    fn contains_within(&self, digest: Digest, within: u64, now: Tick) -> bool {
        let now = self.next_moment(now);
        let mut tables = self.older.iter().chain([&self.active]);
        tables.any(|table| table.engine.contains_within(digest, within, now))
    }

    fn last_seen(&self, digest: Digest, now: Tick) -> Option<Seen> {
        let now = self.next_moment(now);
        let tables = self.older.iter().chain([&self.active]);
        // A table may take the key for another, and a later one hide what its own table says.
        tables
            .filter_map(|table| table.engine.last_seen(digest, now))
            .reduce(|one, other| Seen { from: one.from.min(other.from), to: one.to.max(other.to) })
    }
}

/// Filters that have grown are not merged. Each of their tables has a share of the false positive rate, and those of both
/// add up to twice what was promised; united they would be fuller than planned, and keys cannot be put into one
/// table again, as they are not kept. Instead: plan both for the keys of all, so that they do not grow; or keep both, and ask
/// both, each planned with half the rate; or let the machines share the keys by [`Digest::shard`], and merge nothing.
///
/// Sound for filters of one plan that have not grown, over times or for ever. The sum is held by the
/// one table, so [`Filter::estimated_fpr`] is the rate to look at: plan for the keys of both.
impl Merge for AnyFilter {
    fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        if self.plan != other.plan {
            return Err(MergeError::Shape);
        }
        if let Window::Count(_) = self.plan.spec.terms.window {
            return Err(MergeError::Counting);
        }
        if self.tables() + other.tables() > 2 {
            return Err(MergeError::Grown);
        }
        // Of one plan, and yet of another shape: one has grown, and has dropped its first table.
        self.active.engine.merge(&other.active.engine).map_err(|why| match why {
            MergeError::Shape => MergeError::Grown,
            other => other,
        })?;
        self.active.keys = self.active.keys.saturating_add(other.active.keys);
        self.active.last = self.active.last.max(other.active.last);
        self.newest = self.newest.max(other.newest);
        if let (Some(ours), Some(theirs)) = (&mut self.leaps, &other.leaps) {
            ours.join(theirs);
        }
        self.overload = self.overload.plus(other.overload);
        Ok(())
    }
}
