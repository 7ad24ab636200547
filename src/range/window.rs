//! The range window.

use super::table::RangeTable;
use super::{RangeFilter, RangePlan};
use crate::{MergeError, Overload, PlanError, Tick, Verdict, Window};
use alloc::vec::Vec;
use core::fmt;
use core::ops::RangeInclusive;

/// Was any key of an interval seen?
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub enum Answer {
    /// None of them within the window: certain.
    No,
    /// One of them was, certain but for a false positive rate.
    Perhaps {
        /// The rate that holds for an interval of this length, with as many keys as there are now.
        fpr: f64,
    },
}

impl Answer {
    /// Is it [`Answer::Perhaps`]?
    pub const fn is_perhaps(self) -> bool {
        matches!(self, Self::Perhaps { .. })
    }
}

/// A window over whole numbers that is asked for intervals, at a cost that does not grow with their length.
///
/// Keys are hashed so that neighbours stay neighbours, and kept as sorted codes, each with a stamp of its age. Up to about
/// 2,000 keys are in one array. More are Elias-Fano coded in blocks of 1 KiB. There are a few *levels*: new codes come into a small
/// sorted buffer; a sweep goes round each level, and at every point merges in what the level above has there, drops what has
/// expired and rewrites what is left. The last level holds nearly all.
///
/// # Guarantee
/// An interval with a key of the window in it is never called empty, whatever its length, but for keys that the
/// policy for full windows had to give up, which [`RangeWindow::overload`] counts. Another is called occupied with
/// probability at most [`RangeWindow::fpr`] if it is as long as planned for, however keys are distributed and
/// however near they are; a shorter one with a probability as much lower, a longer one as much higher, as
/// [`Answer::Perhaps`] says. The probability is over seeds. Questions that lie close together share their luck: a run of
/// keys may cover the codes of a run of questions elsewhere, all or none of them.
///
/// Keys are reported for at most [`RangeWindow::slack`] longer than the window. An interval that covers more than half of all
/// codes, which is longer than `keys / (2·fpr)` planned intervals, is answered by when the last key of all came.
///
/// # More keys than planned
/// A window of time, and one that never forgets, hold at most a fixed number of codes, and are planned for the rate that these
/// many give: the rate is kept whatever comes. What happens with more keys says [`WhenFull`](crate::WhenFull):
///
/// - [`WhenFull::Grow`](crate::WhenFull::Grow) adds a table, of four times the keys, later ones of twice those of the one before, which takes the new keys.
///   The older ones are still asked until all in them has expired. The first has seven eighths of the rate, and each
///   further one half of what is left, so that all together keep it. [`Overload::grown`] counts tables. Where
///   no further table fits into the memory limit, the oldest is dropped, and then the oldest eighth of the window is forgotten, time
///   after time; [`Overload::forgotten`] counts their keys.
/// - [`WhenFull::Forget`](crate::WhenFull::Forget) forgets the oldest eighth of the window, or in an array up to an eighth of the
///   keys, and [`WhenFull::Refuse`](crate::WhenFull::Refuse) takes no new keys; both within
///   [`RangePlan::most_memory`](super::RangePlan::most_memory).
///
/// Keys that have expired but may still be reported take no room from others where they came in a burst, as the next one drops
/// them: in levels, when all keys have expired; in an array, when all have that came within about an eighth of the window, or
/// within the slack where that is longer. Where some always come in between, plan for twice as many keys.
///
/// Windows restored from snapshots of versions 1 and 5 have no arrays. Those of version 1 do as they did: those that grow have one
/// table, whose rate rises with its keys; [`RangeWindow::estimated_fpr`] and every answer say how far.
///
/// # Cost
/// `log2(L/ε)` bits per key for its code and as many more as it takes to distinguish `window/slack` ages, one more or
/// two; 2.5 for the order; up to 2 for the upper levels and the ends of blocks, or in one array 5 for order and 1 for what has
/// expired and was not dropped yet: see [`RangePlan::bits_per_key`](super::RangePlan::bits_per_key). No
/// stamp costs more than an eighth of the window for slack needs, 4 bits; none at all `log2` of the window.
/// A question searches the buffer and one block of each level, 2 to 5 of them, or some 11 items of the array. Where an interval has
/// many keys that are older than asked for, it goes through them. An arrival does some steps of the sweeps: 20 to 40 codes are
/// rewritten, a few microseconds at most at once. In an array it moves what lies behind it, and one of many drops what has expired.
/// After a gap in a window of time the sweeps have to catch up, up to a round of each level. Memory is taken as it is needed, in
/// chunks of about a hundredth of what is planned; that of an array at once.
///
/// # Example
/// ```
/// use core::num::NonZeroU64;
/// use lately::range::{Answer, RangeSpec};
/// use lately::{Tick, Window};
/// let window = Window::Time {
///     span: NonZeroU64::new(600).unwrap(),
///     capacity: NonZeroU64::new(10_000).unwrap(),
/// };
/// let mut seen = RangeSpec::new(window).interval(1 << 16).fpr(1e-3).slack(75).plan()?.build();
/// seen.insert(0x0A01_0203, Tick(100));
/// // 10.1.0.0/16
/// assert!(seen.any(0x0A01_0000..=0x0A01_FFFF, Tick(300)).is_perhaps());
/// assert!(!seen.any_within(0x0A01_0000..=0x0A01_FFFF, 60, Tick(300)).is_perhaps());
/// assert_eq!(seen.any(0x0A02_0000..=0x0A02_FFFF, Tick(300)), Answer::No);
/// # Ok::<(), lately::PlanError>(())
/// ```
///
/// # Reference
/// M. Goswami, A. Grønlund, K. G. Larsen, R. Pagh, "Approximate range emptiness in constant time and optimal
/// space", SODA 2015, doi:10.1137/1.9781611973730.52, for the hash; M. Costa, P. Ferragina, G. Vinciguerra, "Grafite: taming adversarial
/// queries with optimal range filters", SIGMOD 2024, doi:10.1145/3639258, for the codes in Elias-Fano coding; X. Wang et al., IEEE
/// Access 7, 2019, for the problem over a window (see [`DleftWindow`](crate::window::DleftWindow)).
///
/// # Differs from the papers
/// - Grafite's set is static. Here levels of sorted blocks are swept, as the runs of a log-structured merge tree are merged, but bit by
///   bit, and what a level has given away is known from where the two sweeps are.
/// - Ages: a stamp a code, so that a question asks a few levels for all ages, and not a set for each slice of the window.
/// - Blocks of a power of two keys in the hash, not of the number of codes: no division.
#[derive(Clone)]
pub struct RangeWindow {
    pub(super) plan: RangePlan,
    /// The newest moment; arrivals so far in a count window.
    pub(super) newest: u64,
    /// Tables added, and what was forgotten with those that are gone. The others count for themselves.
    pub(super) overload: Overload,
    /// The table that takes new keys.
    pub(super) active: RangeTable,
    /// Tables that are only asked, oldest first.
    pub(super) older: Vec<RangeTable>,
    /// Is it known that no further table fits?
    pub(super) is_at_its_end: bool,
}

/// What it was built from and what became of it: the items would be millions.
impl fmt::Debug for RangeWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RangeWindow")
            .field("plan", &self.plan)
            .field("newest", &self.newest)
            .field("overload", &self.overload())
            .field("tables", &self.tables())
            .field("memory", &self.memory())
            .finish_non_exhaustive()
    }
}

impl RangeWindow {
    pub(super) fn new(plan: RangePlan) -> Self {
        Self::with_tables(plan, RangeTable::new(plan.first_table(), plan.size), Vec::new())
    }

    pub(super) fn with_tables(plan: RangePlan, active: RangeTable, older: Vec<RangeTable>) -> Self {
        let (newest, overload) = (active.newest, Overload::default());
        Self { plan, newest, overload, active, older, is_at_its_end: false }
    }

    /// The plan it was built from.
    pub const fn plan(&self) -> &RangePlan {
        &self.plan
    }

    /// The window.
    pub const fn window(&self) -> Window {
        self.plan.window()
    }

    /// How much longer than the window a key may be reported, in ticks or arrivals: of the coarsest of its tables, and never
    /// more than was asked for.
    pub fn slack(&self) -> u64 {
        self.all().map(|table| table.size.ages.slack()).max().unwrap_or(0)
    }

    /// The false positive rate promised for intervals of the planned length.
    pub const fn fpr(&self) -> f64 {
        self.plan.fpr()
    }

    /// The false positive rate for intervals of the planned length with the keys that are there now: above
    /// [`RangeWindow::fpr`] where there are more than planned.
    pub fn estimated_fpr(&self) -> f64 {
        self.fpr_of(self.plan.interval())
    }

    fn all(&self) -> impl Iterator<Item = &RangeTable> {
        self.older.iter().chain([&self.active])
    }

    /// Bytes allocated.
    pub fn memory(&self) -> usize {
        self.all().map(RangeTable::memory).sum()
    }

    /// The newest moment of an arrival; in a count window the number of arrivals.
    pub const fn newest(&self) -> Tick {
        Tick(self.newest)
    }

    /// Bytes that its tables take at worst, as long as none is added.
    pub fn most_memory(&self) -> u64 {
        self.all().map(|table| table.size.most_memory()).sum()
    }

    /// Bytes that another table would take at worst, if one had to be added now. `None`: none will be.
    pub fn memory_of_next(&self) -> Option<u64> {
        let may_add = self.plan.adds_tables() && !self.is_at_its_end;
        let (_, size) = may_add.then(|| self.plan.next_size(&self.older, &self.active))??;
        Some(size.most_memory())
    }

    /// Keys that it takes for certain before another table is needed, besides those that it holds.
    pub fn room(&self) -> u64 {
        self.active.room()
    }

    /// Keys that its tables are planned for, all together.
    pub fn capacity(&self) -> u64 {
        self.all().map(|table| table.spec.terms.window.capacity()).fold(0, u64::saturating_add)
    }

    /// About how many keys it holds. Those that have expired and were not dropped yet are among them, and of many keys some count twice.
    pub fn keys(&self) -> u64 {
        self.all().map(RangeTable::items).sum()
    }

    /// Tables in use: 1 until there are more keys than planned.
    pub fn tables(&self) -> usize {
        self.older.len() + 1
    }

    /// What became of keys beyond the planned capacity.
    pub fn overload(&self) -> Overload {
        self.all().map(|table| table.overload).fold(self.overload, Overload::plus)
    }

    /// The moment of a question or an arrival.
    #[inline]
    fn moment(&self, now: Tick) -> u64 {
        match self.window() {
            Window::Count(_) => self.newest + 1,
            Window::Time { .. } | Window::Unbounded { .. } => now.0.max(self.newest),
        }
    }

    /// Forgets everything: it is as it was built.
    ///
    /// # Errors
    /// [`PlanError::Unavailable`] when there is no memory for what it begins with; then nothing has changed.
    pub fn clear(&mut self) -> Result<(), PlanError> {
        *self = self.plan.try_build()?;
        Ok(())
    }

    /// One arrival: marks the key as seen now. In a count window every call is an arrival.
    pub fn insert(&mut self, key: u128, now: Tick) {
        if !self.insert_if_room(key, now) {
            self.insert_past_capacity(key);
        }
    }

    /// [`RangeWindow::insert`], unless the window would have to add a table for it. `false`: it would, and the key is not marked.
    ///
    /// Before that, all that has expired is dropped, once a grain; and a key that is known is marked as long as there is room for it
    /// to be there twice.
    ///
    /// For callers that account for memory before it is taken; [`RangeWindow::memory_of_next`] says how much that would be.
    pub fn insert_without_growing(&mut self, key: u128, now: Tick) -> bool {
        if self.insert_if_room(key, now) {
            return true;
        }
        if self.plan.adds_tables() && !self.is_at_its_end {
            let is_in = self.active.drop_expired() && self.active.insert(key, self.newest);
            return is_in || self.renew(key);
        }
        self.active.insert_by_policy(key);
        true
    }

    /// [`RangeWindow::insert_without_growing`] for a key that such a call has taken before, at this moment and after the same keys: it
    /// finds room again, also where others were refused in between, during which sweeps went on.
    pub fn insert_again(&mut self, key: u128, now: Tick) -> bool {
        self.insert_without_growing(key, now) || self.active.renew(key, self.newest)
    }

    /// Marks a key as seen now where it is, if it is anywhere and there is room for that.
    #[cold]
    fn renew(&mut self, key: u128) -> bool {
        let newest = self.newest;
        let tables = core::iter::once(&mut self.active).chain(&mut self.older);
        let mut with_it = tables.filter(|table| table.contains(key, newest));
        with_it.next().is_some_and(|table| table.renew(key, newest))
    }

    /// Marks a key as seen, if the active table has room for it.
    #[inline]
    fn insert_if_room(&mut self, key: u128, now: Tick) -> bool {
        self.newest = self.moment(now);
        if !self.older.is_empty() {
            self.pass_time();
        }
        self.active.insert(key, self.newest)
    }

    /// Marks a key as seen that has found no room in the active table: in a new one, if there may be another, or as the policy has
    /// it.
    #[cold]
    fn insert_past_capacity(&mut self, key: u128) {
        let may_add = self.plan.adds_tables() && !self.is_at_its_end;
        if !(may_add && self.add_table() && self.active.insert(key, self.newest)) {
            self.active.insert_by_policy(key);
        }
    }

    /// Lets time pass in the older tables, and drops those in which all has expired.
    #[cold]
    fn pass_time(&mut self) {
        if !matches!(self.window(), Window::Time { .. }) {
            return;
        }
        let Self { newest, overload, older, .. } = self;
        older.retain_mut(|table| {
            table.advance(*newest);
            let is_over = table.is_over(*newest);
            if is_over {
                *overload = overload.plus(table.overload);
            }
            !is_over
        });
    }

    /// Puts a new table in the active one's place, and drops old ones where it needs their memory. `false` where none fits.
    fn add_table(&mut self) -> bool {
        loop {
            if let Some(next) = self.plan.next_table(&self.older, &self.active) {
                self.older.push(core::mem::replace(&mut self.active, next));
                self.overload.grown += 1;
                return true;
            }
            if self.older.is_empty() {
                self.is_at_its_end = true;
                return false;
            }
            let dropped = self.older.remove(0);
            self.overload = self.overload.plus(dropped.overload);
            self.overload.forgotten =
                self.overload.forgotten.saturating_add(dropped.live(self.newest));
        }
    }

    /// One arrival: was the key seen within the window? Then marks it as seen now.
    pub fn observe(&mut self, key: u128, now: Tick) -> Verdict {
        let seen = self.contains(key, now);
        self.insert(key, now);
        if seen { Verdict::Duplicate } else { Verdict::Fresh }
    }

    /// Was this key seen within the window that ends now?
    pub fn contains(&self, key: u128, now: Tick) -> bool {
        let moment = self.moment(now);
        self.active.contains(key, moment)
            || self.older.iter().any(|table| table.contains(key, moment))
    }

    /// Was any of these keys seen within the window that ends now? An empty interval holds none.
    #[inline]
    pub fn any(&self, keys: RangeInclusive<u128>, now: Tick) -> Answer {
        self.any_within(keys, u64::MAX, now)
    }

    /// The same for a window of the last `within` ticks or arrivals; a longer one than its own is
    /// its own.
    pub fn any_within(&self, keys: RangeInclusive<u128>, within: u64, now: Tick) -> Answer {
        if keys.is_empty() {
            return Answer::No;
        }
        let (first, last) = keys.into_inner();
        let moment = self.moment(now);
        let ends = (first, last);
        let found = self.active.any_within(ends, within, moment)
            || self.older.iter().any(|table| table.any_within(ends, within, moment));
        if found {
            Answer::Perhaps { fpr: self.fpr_of((last - first).saturating_add(1)) }
        } else {
            Answer::No
        }
    }

    /// Lets time pass without an arrival. An earlier moment than the newest seen changes nothing.
    pub fn advance(&mut self, now: Tick) {
        if let Window::Time { .. } = self.window() {
            self.newest = self.moment(now);
            self.active.advance(self.newest);
            self.pass_time();
        }
    }

    /// Takes over what another of the same plan remembers, if neither has grown: tables of a grown one have parts of the rate, and
    /// those of both would have it twice. Plan for the keys of both, or ask both.
    ///
    /// # Errors
    /// [`MergeError`] says why the two do not go together; then nothing has changed.
    pub fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        if self.plan != other.plan {
            return Err(MergeError::Shape);
        }
        if let Window::Count(_) = self.window() {
            return Err(MergeError::Counting);
        }
        if self.tables() + other.tables() > 2 || self.active.size != other.active.size {
            return Err(MergeError::Grown);
        }
        let newest = self.newest.max(other.newest);
        if !self.active.has_room_for(&other.active, newest) {
            return Err(MergeError::Full);
        }
        self.newest = newest;
        self.active.merge(&other.active, self.newest);
        self.overload = self.overload.plus(other.overload);
        Ok(())
    }
}

impl crate::filter::sealed::Sealed for RangeWindow {}

impl RangeFilter for RangeWindow {
    fn insert(&mut self, key: u128, now: Tick) {
        self.insert(key, now);
    }

    fn any_in(&self, keys: RangeInclusive<u128>, within: Option<u64>, now: Tick) -> bool {
        self.any_within(keys, within.unwrap_or(u64::MAX), now).is_perhaps()
    }

    /// With as many keys as there are now.
    fn fpr_of(&self, length: u128) -> f64 {
        self.all().map(|table| table.fpr_of(length)).sum::<f64>().min(1.0)
    }
}
