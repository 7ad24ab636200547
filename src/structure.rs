//! The structures by name, and one of them behind a common face.

use crate::growing::{BlockedBloom, Bloom};
use crate::snapshot::{Reader, Writer};
use crate::window::{TimeBloom, TimeIntervalBloom};
use crate::{Digest, Filter, SnapshotError, Tick, Verdict, WindowFilter};
use core::fmt;
use core::str::FromStr;

/// The structures a [`Spec`](crate::Spec) can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Structure {
    /// [`growing::Bloom`](crate::growing::Bloom): never forgets, smallest.
    Bloom,
    /// [`growing::BlockedBloom`](crate::growing::BlockedBloom): never forgets, fastest.
    BlockedBloom,
    /// [`window::TimeBloom`](crate::window::TimeBloom).
    TimeBloom,
    /// [`window::TimeIntervalBloom`](crate::window::TimeIntervalBloom) with space optimisation.
    IntervalBloom,
    /// [`window::TimeIntervalBloom`](crate::window::TimeIntervalBloom) as first described.
    IntervalBloomPlain,
}

impl Structure {
    /// Every structure, in the order in which plans list them.
    pub const ALL: [Self; 5] = [
        Self::Bloom,
        Self::BlockedBloom,
        Self::TimeBloom,
        Self::IntervalBloom,
        Self::IntervalBloomPlain,
    ];

    /// The name that flags and summaries use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bloom => "bloom",
            Self::BlockedBloom => "blocked-bloom",
            Self::TimeBloom => "time-bloom",
            Self::IntervalBloom => "interval-bloom",
            Self::IntervalBloomPlain => "interval-bloom-plain",
        }
    }

    /// Does it remember for ever?
    pub const fn is_unbounded(self) -> bool {
        matches!(self, Self::Bloom | Self::BlockedBloom)
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

/// One structure, whichever it is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Engine {
    Bloom(Bloom),
    Blocked(BlockedBloom),
    Time(TimeBloom),
    Interval(TimeIntervalBloom),
}

/// The same call on whichever structure it is.
macro_rules! each {
    ($engine:expr, $inner:ident => $call:expr) => {
        match $engine {
            Engine::Bloom($inner) => $call,
            Engine::Blocked($inner) => $call,
            Engine::Time($inner) => $call,
            Engine::Interval($inner) => $call,
        }
    };
}

impl Engine {
    #[inline]
    pub(crate) fn contains(&self, digest: Digest, now: Tick) -> bool {
        each!(self, inner => inner.contains(digest, now))
    }

    #[inline]
    pub(crate) fn observe(&mut self, digest: Digest, now: Tick) -> Verdict {
        match self {
            Self::Bloom(inner) => inner.observe(digest),
            Self::Blocked(inner) => inner.observe(digest),
            Self::Time(inner) => inner.observe(digest, now),
            Self::Interval(inner) => inner.observe(digest, now),
        }
    }

    pub(crate) fn remember(&mut self, digest: Digest, now: Tick) {
        match self {
            Self::Bloom(_) | Self::Blocked(_) => drop(self.observe(digest, now)),
            Self::Time(inner) => inner.remember(digest, now),
            Self::Interval(inner) => inner.remember(digest, now),
        }
    }

    #[inline]
    pub(crate) fn advance(&mut self, now: Tick) {
        match self {
            Self::Bloom(_) | Self::Blocked(_) => {}
            Self::Time(inner) => inner.advance(now),
            Self::Interval(inner) => inner.advance(now),
        }
    }

    /// Takes a fresh key's look at the table into account though the key is not remembered, so
    /// that a full table notices when it has room again.
    pub(crate) fn sample(&mut self, digest: Digest) {
        match self {
            Self::Bloom(_) | Self::Blocked(_) => {}
            Self::Time(inner) => inner.sample(digest),
            Self::Interval(inner) => inner.sample(digest),
        }
    }

    /// The fill at cells that follow from a digest, and how far that is a fill of planned keys.
    /// `None` where keys do not age.
    pub(crate) fn look_at_fill(&self, digest: Digest) -> Option<(f64, f64)> {
        let (fill, shape) = match self {
            Self::Bloom(_) | Self::Blocked(_) => return None,
            Self::Time(inner) => (inner.look_at_fill(digest), inner.shape()),
            Self::Interval(inner) => (inner.look_at_fill(digest), inner.shape()),
        };
        Some((fill, shape.load_at(fill)))
    }

    /// The table takes new keys again, and has this fill.
    pub(crate) fn resume(&mut self, fill: f64) {
        match self {
            Self::Bloom(_) | Self::Blocked(_) => {}
            Self::Time(inner) => inner.resume(fill),
            Self::Interval(inner) => inner.resume(fill),
        }
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        each!(self, inner => inner.is_full())
    }

    #[inline]
    pub(crate) fn prefetch(&self, digest: Digest) {
        each!(self, inner => inner.prefetch(digest));
    }

    /// Calls those keys duplicates that the table holds; nothing changes in it.
    pub(crate) fn find_all(&self, digests: &[Digest], now: Tick, verdicts: &mut [Verdict]) {
        each!(self, inner => for (i, (&digest, verdict)) in digests.iter().zip(verdicts).enumerate() {
            if let Some(&ahead) = digests.get(i + AHEAD) {
                inner.prefetch(ahead);
            }
            if inner.contains(digest, now) {
                *verdict = Verdict::Duplicate;
            }
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
        /// One loop for each structure, so that nothing in it is looked up a key.
        macro_rules! observe_with {
            ($inner:ident, $observe:expr) => {
                for (i, (&digest, verdict)) in digests.iter().zip(verdicts).enumerate() {
                    if let Some(&ahead) = digests.get(i + AHEAD) {
                        $inner.prefetch(ahead);
                    }
                    if may_fill && $inner.is_full() {
                        return i;
                    }
                    if !verdict.is_duplicate() {
                        *verdict = $observe($inner, digest, i);
                    }
                }
            };
        }
        match self {
            Self::Bloom(inner) => observe_with!(inner, |t: &mut Bloom, d, _| t.observe(d)),
            Self::Blocked(inner) => {
                observe_with!(inner, |t: &mut BlockedBloom, d, _| t.observe(d));
            }
            Self::Time(inner) => {
                observe_with!(inner, |t: &mut TimeBloom, d, i| t.observe(d, moment(i)));
            }
            Self::Interval(inner) => {
                observe_with!(inner, |t: &mut TimeIntervalBloom, d, i| t.observe(d, moment(i)));
            }
        }
        digests.len()
    }

    pub(crate) fn estimated_fpr(&self) -> f64 {
        each!(self, inner => inner.estimated_fpr())
    }

    pub(crate) fn fill(&self) -> f64 {
        each!(self, inner => inner.fill())
    }

    pub(crate) fn memory(&self) -> usize {
        each!(self, inner => inner.memory())
    }

    /// Keys that the table is planned for.
    pub(crate) fn capacity(&self) -> u64 {
        match self {
            Self::Bloom(inner) => inner.capacity(),
            Self::Blocked(inner) => inner.capacity(),
            Self::Time(inner) => inner.shape().capacity,
            Self::Interval(inner) => inner.shape().capacity,
        }
    }

    /// The false positive rate with exactly so many keys in it.
    pub(crate) fn fpr_at_capacity(&self) -> f64 {
        match self {
            Self::Bloom(inner) => inner.fpr(),
            Self::Blocked(inner) => inner.fpr(),
            Self::Time(inner) => inner.shape().fpr_at_capacity(),
            Self::Interval(inner) => inner.shape().fpr_at_capacity(),
        }
    }

    /// The first tick of the newest grain that the table has seen.
    pub(crate) fn newest(&self) -> Tick {
        match self {
            Self::Bloom(_) | Self::Blocked(_) => Tick(0),
            Self::Time(inner) => inner.newest(),
            Self::Interval(inner) => inner.newest(),
        }
    }

    pub(crate) fn write(&self, out: &mut Writer) {
        each!(self, inner => inner.write(out));
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
        })
    }
}
