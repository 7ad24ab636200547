//! What a structure must be able to do to be part of a filter.

use crate::codec::{Reader, Writer};
use crate::{
    Digest, Filter, MergeError, Overload, PlanError, Seen, SnapshotError, Spec, Tick, Verdict,
};

/// How a structure is sized, made and read. It is named in a line of `structures.rs`.
///
/// Mostly the table itself has it; a structure that is another one in a special shape has a type of its own for it.
pub(crate) trait Recipe {
    /// What is made.
    type Table: Table + Clone + core::fmt::Debug + PartialEq;

    /// The numbers a table is made from.
    type Size: Copy + core::fmt::Debug + PartialEq;

    /// Which windows it keeps.
    const WINDOWS: Windows;

    /// Does it take late arrivals into its windows of time ([`Spec::lateness`])?
    const LATE: bool = false;

    /// Can it forget single keys before they expire ([`Table::forget`])?
    const FORGETS: bool = false;

    /// Does it grow by itself, instead of being one of several tables?
    const GROWS: bool = false;

    /// While it grows by itself, does it stay within its rate for ever?
    const KEEPS_ITS_RATE: bool = false;

    /// The smallest table that keeps `fpr` for `capacity` keys.
    fn size(spec: &Spec, capacity: u64, fpr: f64) -> Result<Self::Size, PlanError>;

    /// What a table of this size promises.
    fn contract(size: &Self::Size) -> Contract;

    /// Bytes that [`Recipe::build`] allocates; `None` beyond any memory.
    fn memory(size: &Self::Size) -> Option<u64>;

    /// Bits per cell or slot, and cells that a key sets or buckets that may be its.
    fn cell_bits_and_hashes(size: &Self::Size) -> (u32, u32);

    /// How many keys fit into so many bytes, where that is quicker to say than by trying sizes.
    fn capacity_of(_bytes: u64, _fpr: f64) -> Option<u64> {
        None
    }

    /// Lets what the table keeps apart from its slots grow to no more than so many bytes.
    fn limit_stash(_size: &mut Self::Size, _bytes: u64) {}

    /// The empty table.
    fn build(size: Self::Size) -> Result<Self::Table, PlanError>;

    /// A table as [`Table::write`] has written it.
    fn read(input: &mut Reader<'_>) -> Result<Self::Table, SnapshotError>;
}

/// Windows that a structure keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Windows {
    /// None: it never forgets.
    Forever,
    /// Of times and of arrivals.
    Any,
    /// Of arrivals.
    Arrivals,
}

/// What a table of some size promises.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Contract {
    /// Keys.
    pub(crate) capacity: u64,
    /// How much longer than the window one may be found.
    pub(crate) slack: u64,
    /// Moments within the window that are distinguished.
    pub(crate) steps: u64,
}

impl Contract {
    /// Of a table that never forgets.
    pub(crate) const fn forever(capacity: u64) -> Self {
        Self { capacity, slack: 0, steps: 1 }
    }
}

/// What a filter asks of its tables, of whichever structure they are.
///
/// Structures that never forget do nothing when time passes.
pub(crate) trait Table: Filter {
    /// One arrival: advance, query, insert or renew.
    fn observe(&mut self, digest: Digest, now: Tick) -> Verdict;

    /// One arrival at a moment where nothing but the key's own places changes, sooner than [`Table::observe`]; `None`,
    /// and nothing has changed, elsewhere, and in a full table.
    #[inline(always)]
    fn observe_quickly(&mut self, _digest: Digest, _now: Tick) -> Option<Verdict> {
        None
    }

    /// [`Filter::contains`](crate::Filter::contains) at such a moment.
    #[inline(always)]
    fn contains_quickly(&self, _digest: Digest, _now: Tick) -> Option<bool> {
        None
    }

    /// Judges as many arrivals, from the first on, as it can at once, of those that are not called duplicates yet;
    /// returns how many. It stops where it is full.
    fn observe_run(
        &mut self,
        _digests: &[Digest],
        _moment: impl Fn(usize) -> Tick,
        _verdicts: &mut [Verdict],
    ) -> usize
    where
        Self: Sized,
    {
        0
    }

    /// Notes of those keys that are not found yet whether they are there; `false`, and nothing is noted, where it
    /// cannot do that at once.
    fn contains_run(&self, _digests: &[Digest], _now: Tick, _found: &mut [bool]) -> bool
    where
        Self: Sized,
    {
        false
    }

    /// Marks a key as seen now, whatever was known of it.
    fn remember(&mut self, digest: Digest, now: Tick) {
        let _ = self.observe(digest, now);
    }

    /// Takes out a key, and all that it is taken for: was it known? Of a [`Recipe`] that says it can.
    fn forget(&mut self, _digest: Digest) -> bool {
        false
    }

    /// Lets time pass.
    fn advance(&mut self, _now: Tick) {}

    /// Does it hold what it was planned for?
    fn is_full(&self) -> bool;

    /// [`Table::is_full`] at the moment to which time has passed: what has expired by now may give way.
    fn is_full_now(&mut self) -> bool {
        self.is_full()
    }

    /// Does it note when parts of its window were last marked, which its snapshots then say?
    fn notes_ends(&self) -> bool {
        false
    }

    /// Forgets everything: as it was built.
    fn clear(&mut self);

    /// About how many keys it holds.
    fn keys_now(&self) -> u64;

    /// Takes a fresh key's look at the table into account though the key is not remembered, so
    /// that a full table notices when it has room again.
    fn sample(&mut self, _digest: Digest) {}

    /// The fill at cells that follow from a digest, and how far that is a fill of planned keys.
    /// `None` where keys do not age.
    fn look_at_fill(&self, _digest: Digest) -> Option<(f64, f64)> {
        None
    }

    /// The table takes new keys again, and has this fill.
    fn resume(&mut self, _fill: f64) {}

    /// Begins to fetch what a key's turn will look at.
    fn prefetch(&self, digest: Digest);

    /// [`Table::prefetch`] for an arrival at a moment, where that makes a difference.
    fn prefetch_at(&self, digest: Digest, _at: Tick) {
        self.prefetch(digest);
    }

    /// Begins to fetch what a key's turn may look at in addition, which depends on what has been fetched
    /// by now.
    fn prefetch_more(&self, _digest: Digest) {}

    /// Keys that the table is planned for.
    fn capacity(&self) -> u64;

    /// Keys that it can hold now, if it grows by itself.
    fn capacity_grown_to(&self) -> u64 {
        self.capacity()
    }

    /// The false positive rate with exactly so many keys in it.
    fn fpr_at_capacity(&self) -> f64 {
        self.fpr()
    }

    /// The first tick of the newest grain that the table has seen.
    fn newest(&self) -> Tick {
        Tick(0)
    }

    /// Growth within the table, and keys that it had no room for.
    fn overload(&self) -> Overload {
        Overload::default()
    }

    /// Can it be a table of a filter of this spec?
    fn suits(&self, _spec: &Spec) -> bool {
        true
    }

    /// Was a key seen within a shorter window? A table that knows no ages answers for its own.
    fn contains_within(&self, digest: Digest, _within: u64, now: Tick) -> bool {
        self.contains(digest, now)
    }

    /// When a key was last seen. A table that knows no ages knows no more than "by now".
    fn last_seen(&self, digest: Digest, now: Tick) -> Option<Seen> {
        self.contains(digest, now).then_some(Seen { from: Tick(0), to: now })
    }

    /// Takes over what another table of the same shape remembers.
    ///
    /// # Errors
    /// Where it does not: a union of tables that grow by themselves would be fuller than any of their parts may
    /// be, and side by side their rates add up to twice what was promised.
    fn merge(&mut self, _other: &Self) -> Result<(), MergeError>
    where
        Self: Sized,
    {
        Err(MergeError::Growing)
    }

    /// Writes all but the envelope.
    fn write(&self, out: &mut Writer<'_>);
}
