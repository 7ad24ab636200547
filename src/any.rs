//! The filter that a [`Plan`] builds.

use crate::codec::{self, Format, Reader, Writer};
use crate::engine::AHEAD;
use crate::generations::{self, Generation};
use crate::plan::growth;
use crate::window::late;
use crate::{
    Digest, Digester, Filter, LastSeen, Merge, MergeError, ObserveAll, Overload, Plan, PlanError,
    Renewal, RestoreError, Seen, SnapshotError, Spec, Structure, Tick, Verdict, WhenFull, Window,
    WindowFilter,
};
use alloc::vec::Vec;

/// Begins the snapshots of filters, and of range windows.
const MAGIC: [u8; 8] = *b"\x89LATE\r\n\x1a";

/// Snapshots of filters whose arrivals come in order, and of range windows.
pub(crate) const FILTER: Format = Format::new(MAGIC, 1);

/// Snapshots of filters that take late arrivals; the others are read too.
const LATE_FILTER: Format = Format::new(MAGIC, late::VERSION).since(1);

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
        let active = Generation::new(&plan.size, growth::first_share(&plan.spec))?;
        Ok(Self::with_tables(*plan, active, Vec::new()))
    }

    fn with_tables(plan: Plan, active: Generation, older: Vec<Generation>) -> Self {
        let can_overflow = plan.spec.can_overflow();
        let newest = Tick(0);
        Self { plan, active, older, newest, can_overflow, overload: Overload::default() }
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

    /// Does it hold no key, as far as it knows? What has expired is noticed as time passes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets everything, the time, the arrivals and what became of keys among it: the filter is as it was built.
    ///
    /// *Cost:* zeroing one table. Memory is taken only where the first table is no longer there.
    pub fn clear(&mut self) {
        self.older = Vec::new();
        let first = self.active.share == growth::first_share(&self.plan.spec)
            && self.active.capacity == self.plan.capacity();
        let new = (!first)
            .then(|| Generation::new(&self.plan.size, growth::first_share(&self.plan.spec)));
        match new {
            Some(Ok(table)) => self.active = table,
            // Without memory for another, a larger one serves as well.
            Some(Err(_)) | None => self.active.clear(),
        }
        (self.newest, self.overload) = (Tick(0), Overload::default());
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

    /// [`AnyFilter::snapshot`] into a writer, a part at a time.
    ///
    /// # Errors
    /// The writer's.
    #[cfg(feature = "std")]
    pub fn save(&self, mut out: impl std::io::Write) -> std::io::Result<()> {
        self.snapshot_to(|bytes| out.write_all(bytes))
    }

    /// A filter from a reader that has a snapshot of `len` bytes, such as a file of that length.
    ///
    /// # Errors
    /// The reader's, and [`std::io::ErrorKind::InvalidData`] with a [`SnapshotError`].
    #[cfg(feature = "std")]
    pub fn load(len: u64, mut input: impl std::io::Read) -> std::io::Result<Self> {
        Self::restore_from(len, |into| input.read(into)).map_err(crate::deduper::io_error)
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

    /// Does a sighting of a key that is already known change anything?
    fn renews(&self) -> bool {
        self.plan.spec.renewal == Renewal::Always && self.plan.spec.terms.window.span().is_some()
    }

    /// Does a further sighting of a key take no more room than it has? Where lateness is longer than the
    /// window a key has several entries, and those of an older or a full table cannot become more.
    fn renews_in_place(&self) -> bool {
        self.plan.spec.lateness <= self.plan.spec.terms.window.span().unwrap_or(u64::MAX)
    }

    /// Remembers a further sighting of a key wherever there is room.
    #[cold]
    fn take_besides(&mut self, digest: Digest, now: Tick) {
        if self.is_full_now() && self.plan.spec.terms.when_full != WhenFull::Refuse {
            self.take_beyond_capacity(digest, now);
        } else {
            self.active.take(digest, now);
        }
    }

    /// Lets time pass in all tables, and drops those whose last key has expired.
    fn pass_time(&mut self) {
        let now = self.newest;
        self.active.engine.advance(now);
        if let Some(span) = self.plan.spec.terms.window.span() {
            let reach = span.saturating_add(self.plan.slack());
            let reach = reach.saturating_add(self.plan.spec.lateness);
            self.older.retain_mut(|table| {
                table.engine.advance(now);
                table.last.0.saturating_add(reach) >= now.0
            });
        }
    }

    /// An arrival while there are several tables, or the one there is was full.
    fn observe_tables(&mut self, digest: Digest, now: Tick) -> Verdict {
        self.pass_time();
        self.active.last = self.active.last.max(now);
        if !self.renews_in_place() {
            return self.observe_besides(digest, now);
        }
        if let Some(table) = self.older_with(digest, now) {
            // In its place: copies of keys that are seen often would crowd out others.
            if self.renews() {
                self.older[table].take(digest, now);
            }
            return Verdict::Duplicate;
        }
        // Time may have emptied the table that was full.
        if !self.is_full_now() {
            return self.active.observe(digest, now);
        }
        if self.active.engine.contains(digest, now) {
            if self.renews() {
                self.active.take(digest, now);
            }
            return Verdict::Duplicate;
        }
        self.take_beyond_capacity(digest, now);
        Verdict::Fresh
    }

    /// An arrival while there are several tables, where a key may have entries in all of them.
    fn observe_besides(&mut self, digest: Digest, now: Tick) -> Verdict {
        if !self.is_known(digest, now) {
            if !self.is_full_now() {
                return self.active.observe(digest, now);
            }
            self.take_beyond_capacity(digest, now);
            return Verdict::Fresh;
        }
        if self.renews() {
            self.take_besides(digest, now);
        }
        Verdict::Duplicate
    }

    /// Is it found in any of the tables?
    #[inline]
    fn is_known(&self, digest: Digest, now: Tick) -> bool {
        self.active.engine.contains(digest, now) || self.older_with(digest, now).is_some()
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
        let fresh = verdicts[..done].iter().filter(|verdict| !verdict.is_duplicate()).count();
        self.active.keys += fresh as u64;
        self.newest = (0..done).map(moment).fold(newest, Tick::max);
        if done > 0 {
            self.active.last = self.active.last.max(self.newest);
        }
        done
    }

    /// Does the policy have to be asked before a fresh key is remembered?
    #[inline]
    fn is_full(&self) -> bool {
        self.can_overflow && self.active.engine.is_full()
    }

    /// [`AnyFilter::is_full`], where time has passed to the newest moment.
    #[inline]
    fn is_full_now(&self) -> bool {
        self.is_full() && self.active.engine.is_full_now()
    }

    /// Remembers a fresh key though the active table is full, if the policy allows it.
    #[cold]
    fn take_beyond_capacity(&mut self, digest: Digest, now: Tick) {
        self.active.engine.table_mut().sample(digest);
        if self.plan.spec.terms.when_full != WhenFull::Refuse
            && (self.reuse_table(digest) || self.add_table())
        {
            self.active.take(digest, now);
        } else {
            self.overload.refused += 1;
        }
    }

    /// Puts an older table that time has emptied in the active one's place. `false` where none is.
    /// Renewals may keep few keys of a table alive for long, and it cannot be dropped.
    fn reuse_table(&mut self, digest: Digest) -> bool {
        let most_room = generations::most_room(&self.older, &self.active, digest);
        let Some((at, fill)) = most_room else { return false };
        let mut table = self.older.remove(at);
        table.engine.table_mut().resume(fill);
        self.older.push(core::mem::replace(&mut self.active, table));
        true
    }

    /// Puts a new table in the active one's place. `false` where none fits.
    fn add_table(&mut self) -> bool {
        let (spec, structure) = (&self.plan.spec, self.plan.structure());
        let (table, forgotten) = generations::next(spec, structure, &mut self.older, &self.active);
        self.overload.forgotten += forgotten;
        let Some(table) = table else { return false };
        self.older.push(core::mem::replace(&mut self.active, table));
        self.overload.grown += 1;
        true
    }

    /// The newest of the older tables in which a key is found.
    fn older_with(&self, digest: Digest, now: Tick) -> Option<usize> {
        self.older.iter().rposition(|table| table.engine.contains(digest, now))
    }

    /// The filter as bytes, which [`AnyFilter::restore`] reads. Layout: `docs/format.md`.
    ///
    /// *Cost:* one pass over the tables; as many bytes as [`Filter::memory`] and about 200 more.
    /// [`AnyFilter::snapshot_to`] does not hold them all at once.
    pub fn snapshot(&self) -> Vec<u8> {
        codec::to_vec(self.format(), |out| self.write_body(out))
    }

    /// The length of [`AnyFilter::snapshot`], exactly.
    pub fn snapshot_len(&self) -> u64 {
        codec::length(|out| self.write_body(out))
    }

    /// Hands the bytes of [`AnyFilter::snapshot`] to a sink, a part at a time.
    ///
    /// *Cost:* one pass over the tables, and a buffer of 64 KiB.
    ///
    /// # Errors
    /// The sink's first error; it is not called again after that.
    ///
    /// # Example
    /// ```
    /// # use core::num::NonZeroU64;
    /// use lately::{AnyFilter, Spec, Window};
    /// use std::io::{Read, Write};
    /// # let window = Window::Unbounded { capacity: NonZeroU64::new(1_000).unwrap() };
    /// # let filter = Spec::new(window).plan()?.build();
    /// let mut file = Vec::new();
    /// filter.snapshot_to(|bytes| file.write_all(bytes))?;
    ///
    /// let (len, mut source) = (file.len() as u64, &file[..]);
    /// let restored = AnyFilter::restore_from(len, |into| source.read(into))?;
    /// # assert!(restored == filter);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn snapshot_to<E>(&self, sink: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        codec::write(self.format(), sink, |out| self.write_body(out))
    }

    /// Writes the snapshot into the body of another envelope.
    pub fn write(&self, out: &mut Writer<'_>) {
        out.envelope(self.format(), |out| self.write_body(out));
    }

    fn format(&self) -> Format {
        if self.plan.spec.lateness > 0 { LATE_FILTER } else { FILTER }
    }

    fn write_body(&self, out: &mut Writer<'_>) {
        self.plan.spec.write(self.structure(), out);
        out.u64(self.newest.0);
        self.overload.write(out);
        out.u32(self.older.len() as u32);
        for table in self.older.iter().chain([&self.active]) {
            table.write(out);
        }
    }

    /// A filter from the bytes of [`AnyFilter::snapshot`]: the same verdicts from there on.
    ///
    /// # Errors
    /// [`SnapshotError`] for bytes that are cut off, damaged, foreign, or of a later version.
    /// Nothing is allocated that the bytes do not back up.
    pub fn restore(bytes: &[u8]) -> Result<Self, SnapshotError> {
        codec::from_slice(LATE_FILTER, bytes, Self::read_body)
    }

    /// A filter from a source that has a snapshot of `len` bytes, and works as `std::io::Read::read` does.
    ///
    /// *Cost:* one pass, and a buffer of 64 KiB. Memory is taken as far as `len` backs it up.
    ///
    /// # Errors
    /// The source's own error, or that of [`AnyFilter::restore`].
    pub fn restore_from<E>(
        len: u64,
        source: impl FnMut(&mut [u8]) -> Result<usize, E>,
    ) -> Result<Self, RestoreError<E>> {
        codec::read(LATE_FILTER, len, source, Self::read_body)
    }

    /// Reads what [`AnyFilter::write`] has put into another envelope.
    ///
    /// # Errors
    /// As [`AnyFilter::restore`].
    pub fn read(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        input.envelope(LATE_FILTER, Self::read_body)
    }

    fn read_body(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        let (spec, structure) = Spec::read(input)?;
        let impossible = |_| SnapshotError::Invalid("a filter that no plan makes");
        let plan = spec.plan().map_err(impossible)?;
        let newest = match spec.terms.window {
            Window::Count(_) => Tick(input.count()?),
            Window::Time { .. } | Window::Unbounded { .. } => Tick(input.u64()?),
        };
        let overload = Overload::read(input)?;
        let mut older = Vec::new();
        for _ in 0..input.u32()? {
            older.push(Generation::read(&spec, structure, newest, input)?);
        }
        let active = Generation::read(&spec, structure, newest, input)?;
        generations::check(&plan, &older, &active).map_err(SnapshotError::Invalid)?;
        Ok(Self { newest, overload, ..Self::with_tables(plan, active, older) })
    }
}

impl crate::filter::sealed::Sealed for AnyFilter {}

impl Filter for AnyFilter {
    #[inline]
    fn contains(&self, digest: Digest, now: Tick) -> bool {
        let now = self.next_moment(now);
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
        let now = self.next_moment(now);
        self.newest = self.newest.max(now);
        if self.older.is_empty() && !self.is_full() {
            self.active.observe(digest, now)
        } else {
            self.observe_tables(digest, now)
        }
    }

    fn observe_batch(&mut self, digests: &[Digest], now: &[Tick], verdicts: &mut [Verdict]) {
        let len = digests.len().min(now.len()).min(verdicts.len());
        let (digests, now, verdicts) = (&digests[..len], &now[..len], &mut verdicts[..len]);
        let done = self.observe_at_once(digests, now, verdicts);
        for i in done..len {
            if let Some(&ahead) = digests.get(i + AHEAD) {
                self.active.engine.prefetch(ahead);
                self.older.iter().for_each(|table| table.engine.prefetch(ahead));
            }
            verdicts[i] = self.observe(digests[i], now[i]);
        }
    }

    fn advance(&mut self, now: Tick) {
        if let Window::Time { .. } = self.plan.spec.terms.window {
            self.newest = now.max(self.newest);
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
        self.active.keys += other.active.keys;
        self.active.last = self.active.last.max(other.active.last);
        self.newest = self.newest.max(other.newest);
        self.overload = self.overload.plus(other.overload);
        Ok(())
    }
}
