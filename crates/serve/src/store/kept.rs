//! What a name stands for: a filter of single keys, or one that is asked for intervals.

use super::budget::{Budget, Share};
use super::intervals::Intervals;
use super::template::{Family, Options};
use super::{Bounded, Outcome, Refusal, Scratch};
use lately::codec::{Reader, Writer};
use lately::range::RangeWindow;
use lately::{
    AnyFilter, Digest, Filter, Overload, RestoreError, Seen, SnapshotError, Tick, Window,
    WindowFilter,
};
use std::convert::Infallible;
use std::ops::RangeInclusive;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};

/// A filter in use. Keys are digests, or where it is asked for intervals, numbers in their place.
#[derive(Debug)]
pub(crate) enum Kept {
    Points(Bounded),
    Ranges(Intervals),
}

/// The same expression over either.
macro_rules! each {
    ($kept:expr, $filter:ident => $do:expr) => {
        match $kept {
            Kept::Points($filter) => $do,
            Kept::Ranges($filter) => $do,
        }
    };
}

impl Kept {
    /// Plans a filter, and builds it if that is within the budget.
    pub(crate) fn new(options: &Options, seed: u64, budget: &Arc<Budget>) -> Result<Self, Refusal> {
        match options.family {
            Family::Intervals(numbers) => {
                let spec = options.range_spec(numbers, seed)?;
                Intervals::new(spec, budget).map(Self::Ranges)
            }
            _ => Bounded::new(options.spec(seed)?, budget).map(Self::Points),
        }
    }

    /// Takes in a filter that was saved, with a share of the budget that may have to be larger.
    pub(crate) fn restore(
        tables: Tables,
        options: &Options,
        fresh: u64,
        share: Share,
    ) -> Result<Self, Refusal> {
        let other = SnapshotError::Invalid("a filter that its options do not make");
        match (options.family, tables) {
            (Family::Intervals(numbers), Tables::Ranges(window)) => {
                let spec = options.range_spec(numbers, window.plan().seed())?;
                let window = Arc::unwrap_or_clone(window);
                Intervals::restore(window, &spec, fresh, share).map(Self::Ranges)
            }
            (Family::Bloom | Family::Cuckoo | Family::Set, Tables::Points(filter)) => {
                let spec = options.spec(filter.plan().seed())?;
                let filter = Arc::unwrap_or_clone(filter);
                Bounded::restore_within(filter, &spec, fresh, share).map(Self::Points)
            }
            _ => Err(Refusal::Dump(other)),
        }
    }

    /// The length of its tables as bytes.
    pub(crate) fn snapshot_len(&self) -> u64 {
        match self {
            Self::Points(filter) => filter.filter().snapshot_len(),
            Self::Ranges(intervals) => intervals.window().snapshot_len(),
        }
    }

    /// The newest moment, where there is time: `None` for a window of arrivals, and where nothing is forgotten.
    pub(crate) fn newest(&self) -> Option<Tick> {
        let (window, newest) = match self {
            Self::Points(filter) => (filter.filter().window(), filter.filter().newest()),
            Self::Ranges(intervals) => (intervals.window().window(), intervals.window().newest()),
        };
        matches!(window, Window::Time { .. }).then_some(newest)
    }

    /// The filter of single keys.
    pub(crate) fn points(&self) -> Option<&AnyFilter> {
        match self {
            Self::Points(filter) => Some(filter.filter()),
            Self::Ranges(_) => None,
        }
    }

    /// Keys that it took for new ones, in all.
    pub(crate) fn fresh(&self) -> u64 {
        each!(self, filter => filter.fresh())
    }

    /// Bytes of the budget.
    pub(crate) fn memory(&self) -> u64 {
        each!(self, filter => filter.memory())
    }

    /// About how many keys it holds.
    pub(crate) fn len(&self) -> u64 {
        each!(self, filter => filter.len())
    }

    /// Holds it as it is, so that it can be saved without its callers having to wait. `None` while it has not caught up
    /// with what came during the last time.
    pub(crate) fn hold(&mut self) -> Option<Held> {
        each!(self, filter => filter.hold())
    }

    /// Does so many of the acts that wait, unless the filter is being saved. `true`: none is left.
    pub(crate) fn catch_up(&mut self, most: usize) -> bool {
        each!(self, filter => filter.catch_up(most))
    }

    /// Lets time pass, so that what has expired gives its memory back; later, if the filter is being saved.
    pub(crate) fn advance(&mut self, now: Tick) {
        each!(self, filter => filter.advance(now));
    }

    /// Drops tables whose last key has expired.
    pub(crate) fn tidy(&mut self, now: Tick) {
        each!(self, filter => filter.tidy(now));
    }

    /// Arrivals, all at one moment. Adds an outcome for each.
    pub(crate) fn observe(
        &mut self,
        keys: &[Digest],
        now: Tick,
        scratch: &mut Scratch,
        outcomes: &mut Vec<Outcome>,
    ) {
        match self {
            Self::Points(filter) => filter.observe(keys, now, scratch, outcomes),
            Self::Ranges(intervals) => intervals.observe(keys, now, outcomes),
        }
    }

    /// Marks a key as seen. `false` where there is no memory for it.
    pub(crate) fn remember(&mut self, key: Digest, now: Tick) -> bool {
        each!(self, filter => filter.remember(key, now))
    }

    /// Takes out a key that is within the window. Was it there?
    ///
    /// # Errors
    /// It cannot.
    pub(crate) fn forget(&mut self, key: Digest, now: Tick) -> Result<bool, Refusal> {
        match self {
            Self::Points(filter) if filter.can_forget() => Ok(filter.forget(key, now)),
            Self::Points(_) => Err(Refusal::CannotForget),
            Self::Ranges(_) => Err(Refusal::CannotForgetNumbers),
        }
    }

    /// Takes out a key that was taken out before, when its history is repeated. Nothing is being saved then.
    pub(crate) fn forget_again(&mut self, key: Digest) {
        if let Self::Points(filter) = self {
            filter.forget_again(key);
        }
    }

    pub(crate) fn contains(&self, key: Digest, now: Tick) -> bool {
        match self {
            Self::Points(filter) => filter.contains(key, now),
            Self::Ranges(intervals) => intervals.contains(key, None, now),
        }
    }

    pub(crate) fn contains_batch(&self, keys: &[Digest], now: Tick, found: &mut [bool]) {
        match self {
            Self::Points(filter) => filter.contains_batch(keys, now, found),
            Self::Ranges(intervals) => {
                for (key, found) in keys.iter().zip(found) {
                    *found = intervals.contains(*key, None, now);
                }
            }
        }
    }

    pub(crate) fn contains_within(&self, key: Digest, within: u64, now: Tick) -> bool {
        match self {
            Self::Points(filter) => filter.contains_within(key, within, now),
            Self::Ranges(intervals) => intervals.contains(key, Some(within), now),
        }
    }

    /// Was any of these keys seen, within the window or a shorter one? And the probability that this is wrong.
    ///
    /// # Errors
    /// It is not asked for intervals.
    pub(crate) fn any(
        &self,
        keys: RangeInclusive<u128>,
        within: Option<u64>,
        now: Tick,
    ) -> Result<(bool, f64), Refusal> {
        use lately::range::RangeFilter;
        let Self::Ranges(intervals) = self else { return Err(Refusal::NoIntervals) };
        let length = (keys.end().saturating_sub(*keys.start())).saturating_add(1);
        match intervals.any(keys, within, now) {
            true => Ok((true, intervals.window().fpr_of(length))),
            // Certain, unless keys had to be forgotten.
            false => Ok((false, 0.0)),
        }
    }

    /// When a key was last seen.
    ///
    /// # Errors
    /// It cannot tell.
    pub(crate) fn last_seen(&self, key: Digest, now: Tick) -> Result<Option<Seen>, Refusal> {
        match self {
            Self::Points(filter) => Ok(filter.last_seen(key, now)),
            Self::Ranges(_) => Err(Refusal::NoMoments),
        }
    }

    /// Tables in use.
    pub(crate) fn tables(&self) -> usize {
        match self {
            Self::Points(filter) => filter.filter().tables(),
            Self::Ranges(intervals) => intervals.window().tables(),
        }
    }

    /// Keys that its tables are planned for.
    pub(crate) fn capacity(&self) -> u64 {
        match self {
            Self::Points(filter) => filter.filter().capacity(),
            Self::Ranges(intervals) => intervals.window().capacity(),
        }
    }

    /// What became of keys beyond those that were planned for.
    pub(crate) fn overload(&self) -> Overload {
        match self {
            Self::Points(filter) => filter.filter().overload(),
            Self::Ranges(intervals) => intervals.window().overload(),
        }
    }
}

/// The tables of a filter.
#[derive(Clone, Debug)]
pub(crate) enum Tables {
    Points(Arc<AnyFilter>),
    Ranges(Arc<RangeWindow>),
}

impl Tables {
    /// From a source that has those of a filter of this family, in `len` bytes.
    pub(crate) fn restore_from<E>(
        family: Family,
        len: u64,
        source: impl FnMut(&mut [u8]) -> Result<usize, E>,
    ) -> Result<Self, RestoreError<E>> {
        match family {
            Family::Intervals(_) => {
                Ok(Self::Ranges(Arc::new(RangeWindow::restore_from(len, source)?)))
            }
            _ => Ok(Self::Points(Arc::new(AnyFilter::restore_from(len, source)?))),
        }
    }

    /// Reads what [`Tables::write`] has put into another envelope.
    pub(crate) fn read(family: Family, input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        match family {
            Family::Intervals(_) => Ok(Self::Ranges(Arc::new(RangeWindow::read(input)?))),
            _ => Ok(Self::Points(Arc::new(AnyFilter::read(input)?))),
        }
    }

    /// Are they what these options make with this seed?
    pub(crate) fn are_planned_by(&self, options: &Options, seed: u64) -> Result<bool, Refusal> {
        match (options.family, self) {
            (Family::Intervals(numbers), Self::Ranges(window)) => {
                let spec = options.range_spec(numbers, seed)?;
                Ok(spec.plan().as_ref() == Ok(window.plan()))
            }
            (_, Self::Points(filter)) => {
                let spec = options.spec(seed)?.structure(filter.structure());
                Ok(spec.plan().as_ref() == Ok(filter.plan()))
            }
            _ => Ok(false),
        }
    }

    /// Writes them into the body of another envelope.
    pub(crate) fn write(&self, out: &mut Writer<'_>) {
        match self {
            Self::Points(filter) => filter.write(out),
            Self::Ranges(window) => window.write(out),
        }
    }

    /// Hands their bytes to a sink, a part at a time.
    pub(crate) fn snapshot_to<E>(&self, sink: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        match self {
            Self::Points(filter) => filter.snapshot_to(sink),
            Self::Ranges(window) => window.snapshot_to(sink),
        }
    }

    /// How many bytes that are.
    pub(crate) fn snapshot_len(&self) -> u64 {
        match self {
            Self::Points(filter) => filter.snapshot_len(),
            Self::Ranges(window) => window.snapshot_len(),
        }
    }

    /// Bytes that they take in memory.
    pub(crate) fn memory(&self) -> usize {
        match self {
            Self::Points(filter) => filter.memory(),
            Self::Ranges(window) => window.memory(),
        }
    }

    /// The seed that keys are hashed with.
    pub(crate) fn seed(&self) -> u64 {
        match self {
            Self::Points(filter) => filter.plan().seed(),
            Self::Ranges(window) => window.plan().seed(),
        }
    }
}

/// A filter while it is being saved: nobody changes it as long as this is there.
#[derive(Debug)]
pub(crate) struct Held {
    tables: Tables,
    _share: Arc<OnceLock<Share>>,
    /// Dropped last, so that whoever waits for it finds the filter free.
    _end: Sender<Infallible>,
}

impl Held {
    /// Holds these tables; with what the filter's memory is left in if it is dropped meanwhile, and the end of this.
    pub(super) fn begin(tables: Tables) -> (Self, Arc<OnceLock<Share>>, Receiver<Infallible>) {
        let (begin, end) = channel();
        let left = Arc::new(OnceLock::new());
        (Self { tables, _share: Arc::clone(&left), _end: begin }, left, end)
    }

    pub(crate) fn tables(&self) -> &Tables {
        &self.tables
    }
}
