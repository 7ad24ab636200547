//! A filter with a clock of its own, for programs that ask "now".

use crate::codec::{self, Format, Reader, Writer};
use crate::{
    AnyFilter, Filter, PlanError, RestoreError, SnapshotError, Spec, Tick, Window, WindowFilter,
};
use core::hash::Hash;
use std::io;
use std::time::{Duration, Instant, SystemTime};

/// Begins the snapshots of deduplicators.
const DEDUPER: Format = Format::new(*b"\x89LATEDD\n", 1);

/// Keys that are planned for where nobody says how many; past them it grows.
const EXPECTED: u64 = 10_000;

/// Was this key seen within the last so many seconds? With the machine's clock and keys that are any Rust values.
///
/// The clock is the wall clock at the start, and from there on one that only goes forward: setting the system's clock
/// neither stops nor empties a filter that runs. A tick is a nanosecond since 1970.
///
/// # Guarantee
/// A key inserted within the last `span` is never called new. It may be remembered up to a sixteenth of the span longer.
/// Other keys are taken for ones seen with a probability of at most one in a million, unless the spec says otherwise.
///
/// # Cost
/// About 35 bits per key, and growth past 10,000 keys. Say how many to expect with [`Deduper::of`] where it is known.
///
/// # Example
/// ```
/// use lately::Deduper;
/// use std::time::Duration;
/// let mut seen = Deduper::within(Duration::from_secs(10))?;
/// assert!(seen.insert("order 17"));
/// assert!(!seen.insert("order 17"));
/// assert!(seen.insert(&(17u32, "another kind of key")));
/// # Ok::<(), lately::PlanError>(())
/// ```
#[derive(Debug)]
pub struct Deduper {
    filter: AnyFilter,
    clock: Clock,
}

/// The wall clock at some moment, and what has passed since.
#[derive(Clone, Copy, Debug)]
struct Clock {
    start: u64,
    started: Instant,
}

impl Clock {
    /// One that shows the time of day, or what was shown before where that is later.
    fn since(newest: Tick) -> Self {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { start: nanoseconds(wall).max(newest.0), started: Instant::now() }
    }

    fn now(&self) -> Tick {
        Tick(self.start.saturating_add(nanoseconds(self.started.elapsed())))
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Deduper {
    /// For keys of the last `span`: about 10,000 at a time at first, growing when there are more.
    ///
    /// # Errors
    /// [`PlanError`] for a span of more than 146 years, or where there is no memory.
    pub fn within(span: Duration) -> Result<Self, PlanError> {
        let window = Window::within(span, EXPECTED);
        Self::of(Spec::new(window).slack(nanoseconds(span) / 16))
    }

    /// For any spec. Where it is a window of time, a tick is a nanosecond: [`Window::within`]. Its clock never leaps, so
    /// that it goes without the guard of [`Spec::most_leap`], which would hold up the first key after a pause.
    ///
    /// # Errors
    /// As [`Spec::plan`], and where there is no memory.
    pub fn of(spec: Spec) -> Result<Self, PlanError> {
        let filter = Spec { most_leap: None, ..spec }.plan()?.try_build()?;
        Ok(Self { filter, clock: Clock::since(Tick(0)) })
    }

    /// Marks a key as seen now. `true` if it is new: not seen within the window.
    pub fn insert<K: Hash + ?Sized>(&mut self, key: &K) -> bool {
        let digest = self.filter.digester().digest_hash(key);
        !self.filter.observe(digest, self.clock.now()).is_duplicate()
    }

    /// Was a key seen within the window? Changes nothing.
    pub fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let digest = self.filter.digester().digest_hash(key);
        self.filter.contains(digest, self.clock.now())
    }

    /// Forgets a key before it expires: [`AnyFilter::forget`]. `true` if it was seen within the window.
    pub fn forget<K: Hash + ?Sized>(&mut self, key: &K) -> bool {
        let digest = self.filter.digester().digest_hash(key);
        self.filter.advance(self.clock.now());
        self.filter.forget(digest)
    }

    /// About how many keys it holds.
    pub fn len(&self) -> u64 {
        self.filter.len()
    }

    /// Does it hold no key, as far as it knows?
    pub fn is_empty(&self) -> bool {
        self.filter.is_empty()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.filter.clear();
    }

    /// The filter within.
    pub fn filter(&self) -> &AnyFilter {
        &self.filter
    }

    /// Writes it whole, to be read by [`Deduper::load`].
    ///
    /// # Errors
    /// The writer's.
    pub fn save(&self, mut out: impl io::Write) -> io::Result<()> {
        // The clock is read once: the body is written twice, the first time to be counted.
        let now = self.clock.now().0;
        let body = |writer: &mut Writer<'_>| {
            writer.u64(now);
            self.filter.write(writer);
        };
        codec::write(DEDUPER, |bytes| out.write_all(bytes), body)
    }

    /// Reads what [`Deduper::save`] has written: `len` bytes, such as the length of a file. Time has passed meanwhile, as much as the
    /// wall clock says, or none where it says less than before.
    ///
    /// # Errors
    /// The reader's, and [`io::ErrorKind::InvalidData`] with a [`SnapshotError`].
    pub fn load(len: u64, mut input: impl io::Read) -> io::Result<Self> {
        let read = |input: &mut Reader<'_>| -> Result<_, SnapshotError> {
            Ok((Tick(input.u64()?), AnyFilter::read(input)?))
        };
        let (then, filter) =
            codec::read(DEDUPER, len, |into| input.read(into), read).map_err(io_error)?;
        Ok(Self { filter, clock: Clock::since(then) })
    }
}

/// Content that is wrong is invalid data.
pub(crate) fn io_error(error: RestoreError<io::Error>) -> io::Error {
    match error {
        RestoreError::Source(error) => error,
        RestoreError::Content(error) => io::Error::new(io::ErrorKind::InvalidData, error),
    }
}
