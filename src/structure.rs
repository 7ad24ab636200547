//! The structures by name, and one of them behind a common face.

use crate::codec::{Reader, Writer};
use crate::forever::{AccommodativeBloom, BlockedBloom, Bloom, DynamicBloom, ScalableBloom};
use crate::window::{
    AgedBuckets, AgedTable, CuckooWindow, DleftWindow, TimeBloom, TimeIntervalBloom, TimingBloom,
};
use crate::{
    Digest, Filter, LastSeen, Merge, MergeError, Overload, Seen, SnapshotError, Spec, Tick,
    Verdict, Window,
};
use core::fmt;
use core::str::FromStr;

/// The structures a [`Spec`](crate::Spec) can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Structure {
    /// [`forever::Bloom`](crate::forever::Bloom): never forgets, smallest.
    Bloom,
    /// [`forever::BlockedBloom`](crate::forever::BlockedBloom): never forgets, fastest.
    BlockedBloom,
    /// [`window::TimeBloom`](crate::window::TimeBloom).
    TimeBloom,
    /// [`window::TimeIntervalBloom`](crate::window::TimeIntervalBloom) with space optimisation.
    IntervalBloom,
    /// [`window::TimeIntervalBloom`](crate::window::TimeIntervalBloom) as first described.
    IntervalBloomPlain,
    /// [`window::TimingBloom`](crate::window::TimingBloom): the last n arrivals.
    TimingBloom,
    /// [`window::CuckooWindow`](crate::window::CuckooWindow).
    CuckooWindow,
    /// [`window::DleftWindow`](crate::window::DleftWindow).
    DleftWindow,
    /// [`forever::DynamicBloom`](crate::forever::DynamicBloom): never forgets, grows by equal parts.
    DynamicBloom,
    /// [`forever::ScalableBloom`](crate::forever::ScalableBloom): never forgets, grows by doubling.
    ScalableBloom,
    /// [`forever::AccommodativeBloom`](crate::forever::AccommodativeBloom): never forgets, grows
    /// bucket by bucket.
    AccommodativeBloom,
    /// [`window::AgedTable`](crate::window::AgedTable): the fastest with a window.
    AgedTable,
    /// [`window::AgedBuckets`](crate::window::AgedBuckets): the smallest with a window; new keys take long.
    AgedBuckets,
}

impl Structure {
    /// Every structure, in the order in which plans list them.
    pub const ALL: [Self; 13] = [
        Self::Bloom,
        Self::BlockedBloom,
        Self::TimeBloom,
        Self::IntervalBloom,
        Self::IntervalBloomPlain,
        Self::TimingBloom,
        Self::CuckooWindow,
        Self::DleftWindow,
        Self::DynamicBloom,
        Self::ScalableBloom,
        Self::AccommodativeBloom,
        Self::AgedTable,
        Self::AgedBuckets,
    ];

    /// The name that flags and summaries use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bloom => "bloom",
            Self::BlockedBloom => "blocked-bloom",
            Self::TimeBloom => "time-bloom",
            Self::IntervalBloom => "interval-bloom",
            Self::IntervalBloomPlain => "interval-bloom-plain",
            Self::TimingBloom => "timing-bloom",
            Self::CuckooWindow => "cuckoo-window",
            Self::DleftWindow => "dleft-window",
            Self::DynamicBloom => "dynamic-bloom",
            Self::ScalableBloom => "scalable-bloom",
            Self::AccommodativeBloom => "accommodative-bloom",
            Self::AgedTable => "aged-table",
            Self::AgedBuckets => "aged-buckets",
        }
    }

    /// Does it remember for ever?
    pub const fn is_unbounded(self) -> bool {
        matches!(self, Self::Bloom | Self::BlockedBloom) || self.grows()
    }

    /// Does it grow by itself, instead of being one of several tables?
    pub(crate) const fn grows(self) -> bool {
        matches!(self, Self::DynamicBloom | Self::ScalableBloom | Self::AccommodativeBloom)
    }

    /// Can it keep this window?
    pub const fn keeps(self, window: Window) -> bool {
        match (self, window) {
            (Self::TimingBloom, Window::Count(_)) => true,
            (Self::TimingBloom, _) => false,
            (_, Window::Unbounded { .. }) => self.is_unbounded(),
            (_, Window::Count(_) | Window::Time { .. }) => !self.is_unbounded(),
        }
    }

    /// Can it judge arrivals at moments behind the newest ([`Spec::lateness`])?
    pub const fn takes_late_arrivals(self) -> bool {
        matches!(
            self,
            Self::AgedTable | Self::AgedBuckets | Self::IntervalBloom | Self::IntervalBloomPlain
        )
    }

    pub(crate) fn read(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        let tag = input.u8()?;
        Self::ALL
            .into_iter()
            .find(|&structure| structure as u8 == tag)
            .ok_or(SnapshotError::Invalid("unknown structure"))
    }
}

impl fmt::Display for Structure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Structure {
    type Err = UnknownStructure;

    fn from_str(name: &str) -> Result<Self, UnknownStructure> {
        Self::ALL.into_iter().find(|structure| structure.name() == name).ok_or(UnknownStructure)
    }
}

/// No structure has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownStructure;

impl fmt::Display for UnknownStructure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no such structure; there are")?;
        for structure in Structure::ALL {
            write!(f, " {structure}")?;
        }
        Ok(())
    }
}

impl core::error::Error for UnknownStructure {}

/// How many keys ahead of the one being judged a batch begins to fetch memory.
pub(crate) const AHEAD: usize = 16;

/// How many keys ahead what was fetched has come.
const NEAR: usize = 6;

/// What a filter asks of its tables, of whichever structure they are.
///
/// Structures that never forget do nothing when time passes.
pub(crate) trait Table: Filter {
    /// One arrival: advance, query, insert or renew.
    fn observe(&mut self, digest: Digest, now: Tick) -> Verdict;

    /// Marks a key as seen now, whatever was known of it.
    fn remember(&mut self, digest: Digest, now: Tick) {
        let _ = self.observe(digest, now);
    }

    /// Lets time pass.
    fn advance(&mut self, _now: Tick) {}

    /// Does it hold what it was planned for?
    fn is_full(&self) -> bool;

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

    /// Begins to fetch what a key's turn may look at besides, which depends on what has been fetched
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

    fn write(&self, out: &mut Writer<'_>);
}

/// One structure, whichever it is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Engine {
    Bloom(Bloom),
    Blocked(BlockedBloom),
    Time(TimeBloom),
    Interval(TimeIntervalBloom),
    Timing(TimingBloom),
    Cuckoo(CuckooWindow),
    Dleft(DleftWindow),
    Dynamic(DynamicBloom),
    Scalable(ScalableBloom),
    Accommodative(AccommodativeBloom),
    AgedTable(AgedTable),
    AgedBuckets(AgedBuckets),
}

/// The same call on whichever structure it is.
macro_rules! each {
    ($engine:expr, $inner:ident => $call:expr) => {
        match $engine {
            Engine::Bloom($inner) => $call,
            Engine::Blocked($inner) => $call,
            Engine::Time($inner) => $call,
            Engine::Interval($inner) => $call,
            Engine::Timing($inner) => $call,
            Engine::Cuckoo($inner) => $call,
            Engine::Dleft($inner) => $call,
            Engine::Dynamic($inner) => $call,
            Engine::Scalable($inner) => $call,
            Engine::Accommodative($inner) => $call,
            Engine::AgedTable($inner) => $call,
            Engine::AgedBuckets($inner) => $call,
        }
    };
}

/// The same call on whichever structure tells ages apart; something else for the others.
macro_rules! each_aged {
    ($engine:expr, $inner:ident => $call:expr, _ => $otherwise:expr) => {
        match $engine {
            Engine::Bloom(_)
            | Engine::Blocked(_)
            | Engine::Dynamic(_)
            | Engine::Scalable(_)
            | Engine::Accommodative(_) => $otherwise,
            Engine::Time($inner) => $call,
            Engine::Interval($inner) => $call,
            Engine::Timing($inner) => $call,
            Engine::Cuckoo($inner) => $call,
            Engine::Dleft($inner) => $call,
            Engine::AgedTable($inner) => $call,
            Engine::AgedBuckets($inner) => $call,
        }
    };
}

impl Engine {
    #[inline]
    pub(crate) fn observe(&mut self, digest: Digest, now: Tick) -> Verdict {
        each!(self, inner => Table::observe(inner, digest, now))
    }

    #[inline]
    pub(crate) fn contains(&self, digest: Digest, now: Tick) -> bool {
        each!(self, inner => Filter::contains(inner, digest, now))
    }

    /// The structure as what all have in common, for calls that are not made for every key.
    pub(crate) fn table(&self) -> &dyn Table {
        each!(self, inner => inner)
    }

    /// [`Engine::table`], to be changed.
    pub(crate) fn table_mut(&mut self) -> &mut dyn Table {
        each!(self, inner => inner)
    }

    #[inline]
    pub(crate) fn advance(&mut self, now: Tick) {
        each!(self, inner => Table::advance(inner, now));
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        each!(self, inner => Table::is_full(inner))
    }

    #[inline]
    pub(crate) fn prefetch(&self, digest: Digest) {
        each!(self, inner => Table::prefetch(inner, digest));
    }

    /// Was it seen within a shorter window? One that tells no ages apart answers for its own.
    pub(crate) fn contains_within(&self, digest: Digest, within: u64, now: Tick) -> bool {
        each_aged!(self, inner => inner.contains_within(digest, within, now),
            _ => self.contains(digest, now))
    }

    /// When it was last seen. One that tells no ages apart knows no more than "by now".
    pub(crate) fn last_seen(&self, digest: Digest, now: Tick) -> Option<Seen> {
        each_aged!(self, inner => inner.last_seen(digest, now),
            _ => self.contains(digest, now).then_some(Seen { from: Tick(0), to: now }))
    }

    /// Takes over what another table of the same shape remembers.
    pub(crate) fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        match (self, other) {
            (Self::Bloom(ours), Self::Bloom(theirs)) => ours.merge(theirs),
            (Self::Blocked(ours), Self::Blocked(theirs)) => ours.merge(theirs),
            (Self::Time(ours), Self::Time(theirs)) => ours.merge(theirs),
            (Self::Interval(ours), Self::Interval(theirs)) => ours.merge(theirs),
            (Self::Timing(ours), Self::Timing(theirs)) => ours.merge(theirs),
            (Self::Cuckoo(ours), Self::Cuckoo(theirs)) => ours.merge(theirs),
            (Self::Dleft(ours), Self::Dleft(theirs)) => ours.merge(theirs),
            (Self::AgedTable(ours), Self::AgedTable(theirs)) => ours.merge(theirs),
            (Self::AgedBuckets(ours), Self::AgedBuckets(theirs)) => ours.merge(theirs),
            // A union would be fuller than any of their parts may be, and side by side their rates
            // add up to twice what was promised.
            (
                Self::Dynamic(_) | Self::Scalable(_) | Self::Accommodative(_),
                Self::Dynamic(_) | Self::Scalable(_) | Self::Accommodative(_),
            ) => Err(MergeError::Growing),
            _ => Err(MergeError::Shape),
        }
    }

    /// Calls those keys duplicates that the table holds; nothing changes in it.
    pub(crate) fn find_all(&self, digests: &[Digest], now: Tick, verdicts: &mut [Verdict]) {
        each!(self, inner => for (i, (&digest, verdict)) in digests.iter().zip(verdicts).enumerate() {
            if let Some(&ahead) = digests.get(i + AHEAD) {
                Table::prefetch(inner, ahead);
            }
            if inner.contains(digest, now) {
                *verdict = Verdict::Duplicate;
            }
        });
    }

    /// Notes of those keys that are not found yet whether the table holds them.
    pub(crate) fn contains_all(&self, digests: &[Digest], now: Tick, found: &mut [bool]) {
        each!(self, inner => for (i, (&digest, found)) in digests.iter().zip(found).enumerate() {
            if let Some(&ahead) = digests.get(i + AHEAD) {
                Table::prefetch(inner, ahead);
            }
            *found = *found || inner.contains(digest, now);
        });
    }

    /// Observes, in order, the keys that are not called duplicates yet, and returns how many it
    /// has dealt with: all, unless it is full before, as far as `may_fill` lets it care.
    pub(crate) fn observe_all(
        &mut self,
        digests: &[Digest],
        moment: impl Fn(usize) -> Tick,
        verdicts: &mut [Verdict],
        may_fill: bool,
    ) -> usize {
        // One loop for each structure, so that nothing in it is looked up a key.
        each!(self, inner => for (i, (&digest, verdict)) in digests.iter().zip(verdicts).enumerate() {
            if let Some(&ahead) = digests.get(i + AHEAD) {
                Table::prefetch(inner, ahead);
            }
            if let Some(&near) = digests.get(i + NEAR) {
                Table::prefetch_more(inner, near);
            }
            if may_fill && Table::is_full(inner) {
                return i;
            }
            if !verdict.is_duplicate() {
                *verdict = Table::observe(inner, digest, moment(i));
            }
        });
        digests.len()
    }

    pub(crate) fn read(
        structure: Structure,
        input: &mut Reader<'_>,
    ) -> Result<Self, SnapshotError> {
        Ok(match structure {
            Structure::Bloom => Self::Bloom(Bloom::read(input)?),
            Structure::BlockedBloom => Self::Blocked(BlockedBloom::read(input)?),
            Structure::TimeBloom => Self::Time(TimeBloom::read(input)?),
            Structure::IntervalBloom | Structure::IntervalBloomPlain => {
                Self::Interval(TimeIntervalBloom::read(input)?)
            }
            Structure::TimingBloom => Self::Timing(TimingBloom::read(input)?),
            Structure::CuckooWindow => Self::Cuckoo(CuckooWindow::read(input)?),
            Structure::DleftWindow => Self::Dleft(DleftWindow::read(input)?),
            Structure::AgedTable => Self::AgedTable(AgedTable::read(input)?),
            Structure::AgedBuckets => Self::AgedBuckets(AgedBuckets::read(input)?),
            Structure::DynamicBloom => Self::Dynamic(DynamicBloom::read(input)?),
            Structure::ScalableBloom => Self::Scalable(ScalableBloom::read(input)?),
            Structure::AccommodativeBloom => Self::Accommodative(AccommodativeBloom::read(input)?),
        })
    }
}
