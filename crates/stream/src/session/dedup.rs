//! Deduplication: what is asked ([`DedupSpec`]) and what does it ([`Dedup`]).

mod merge;

pub use merge::MergeError;

use super::identity::{Identity, Reading};
use super::terms::{ClockSpec, DEFAULT_FPR, DEFAULT_MEMORY, Slack, Span, SpecError, Term};
use crate::judge::change::LastValues;
use crate::judge::class::Class;
use crate::judge::clocks::Clock;
use crate::judge::dedup::Judge;
use crate::judge::hold::{Better, Counting, Held, Hold, Wanted};
use crate::judge::moment::Moments;
use crate::judge::{Decide, Verdicts};
use crate::read::Left;
use crate::record::Batch;
use crate::state::dedup::State;
use crate::state::{self, StateError};
use lately::{
    AnyFilter, Digest, Digester, Filter, LastSeen, Overload, Plan, PlanError, Renewal, Seen, Spec,
    Structure, Tick, WhenFull,
};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

/// Distinct keys that a filter without a window of time is planned for when nothing is said: it grows.
const EXPECTED_EVER: u64 = 1_000_000;

/// The most distinct keys that it is planned for by the number of records.
const MOST_EXPECTED: u64 = 1 << 24;

/// Distinct keys that a window of time is planned for when nothing is said: it grows.
const EXPECTED_WITHIN: u64 = 4096;

/// The most bytes of records that wait when nothing is said: 64 MiB.
const HELD_BYTES: usize = 64 << 20;

/// What is to be done: the window, what may be used for it, the clock. Whatever is `None` has a default
/// that all programs share.
///
/// Make one with [`DedupSpec::within`], [`DedupSpec::last`] or [`DedupSpec::ever`], and set what is to
/// differ.
///
/// # Example
/// ```
/// use lately_stream::session::DedupSpec;
/// use std::time::Duration;
/// let small = DedupSpec { memory: Some(1 << 20), ..DedupSpec::within(Duration::from_secs(60)) };
/// assert!(small.plan()?.memory() <= 1 << 20);
/// # Ok::<(), lately_stream::session::SpecError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DedupSpec {
    /// How long a key is remembered.
    pub span: Span,
    /// Distinct keys expected within the window: a hint, the filter grows. `None`: a million, or what `records` says; 4096 in a
    /// window of time. A number that nobody named is lowered until its filter fits into the memory.
    pub expect: Option<u64>,
    /// About how many records there will be, if that is known: where keys are remembered for ever and nothing else is said,
    /// the filter is planned for as many keys, but for a million at least and 16 million at most. One that need
    /// not grow is faster, and makes fewer mistakes.
    pub records: Option<u64>,
    /// The most bytes for all that is remembered. `None`: [`DEFAULT_MEMORY`].
    pub memory: Option<u64>,
    /// The highest share of new records that are wrongly called duplicates. `None`: [`DEFAULT_FPR`].
    pub fpr: Option<f64>,
    /// How much longer than the window a key may be reported. `None`: less than a microsecond.
    pub slack: Option<Slack>,
    /// What renews a key's age.
    pub renewal: Renewal,
    /// What happens past the planned capacity. `None`: the filter grows up to its memory, then forgets
    /// the oldest.
    pub when_full: Option<WhenFull>,
    /// The structure. `None`: the fastest for the window.
    pub structure: Option<Structure>,
    /// The seed of the hash. Filters that are to know each other's keys need the same.
    pub seed: u64,
    /// When records are judged.
    pub clock: ClockSpec,
    /// The fields whose change lets a duplicate through. If there are any, a quarter of the memory
    /// holds the last value of each key.
    pub changes: Vec<String>,
    /// By how much the numbers must have changed that [`Batch::bands`] has, to let a duplicate through:
    /// from those of the last record of the key that was forwarded.
    pub bands: Vec<f64>,
    /// How fresh records are held for the best of a burst, if they are.
    pub hold: Option<HoldSpec>,
    /// How copies are counted, if they are. Not together with `hold`.
    pub count: Option<CountSpec>,
    /// How keys and times are read from records. `None`: they are handed over as they are.
    pub reading: Option<Reading>,
}

/// How fresh records are held until their copies are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountSpec {
    /// Which of them are forwarded then.
    pub wanted: Wanted,
    /// The most bytes of records that wait. `None`: 64 MiB.
    pub limit: Option<usize>,
}

/// How fresh records are held for the best of a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldSpec {
    /// How long, in nanoseconds.
    pub length: u64,
    /// Which of two records is the better one.
    pub better: Better,
    /// The most bytes of records that wait. `None`: 64 MiB.
    pub limit: Option<usize>,
}

impl HoldSpec {
    /// A buffer for them.
    pub fn buffer(&self) -> Hold {
        Hold::new(self.length, self.better, self.limit.unwrap_or(HELD_BYTES))
    }
}

impl DedupSpec {
    /// For keys seen at most this long ago.
    pub fn within(window: Duration) -> Self {
        let length = u64::try_from(window.as_nanos()).unwrap_or(u64::MAX);
        Self { span: Span::Within(length), ..Self::default() }
    }

    /// For keys among the last `n` records.
    pub fn last(n: u64) -> Self {
        Self { span: Span::Last(n), ..Self::default() }
    }

    /// For every key ever seen.
    pub fn ever() -> Self {
        Self::default()
    }

    /// What the filter is to do.
    ///
    /// # Errors
    /// [`SpecError`] for a window of no length, and a slack without a window.
    pub fn spec(&self) -> Result<Spec, SpecError> {
        let within = matches!(self.span, Span::Within(_));
        let by_records = |records: u64| records.clamp(EXPECTED_EVER, MOST_EXPECTED);
        let ever = self.records.map_or(EXPECTED_EVER, by_records);
        let expected = if within { EXPECTED_WITHIN } else { ever };
        let mut spec = Spec::new(self.span.window(self.expect.unwrap_or(expected))?)
            .fpr(self.fpr.unwrap_or(DEFAULT_FPR))
            .memory(self.memory() - self.change_memory())
            .renewal(self.renewal)
            .slack(Slack::over(self.slack, self.span)?)
            .when_full(self.when_full.unwrap_or(WhenFull::Grow))
            .seed(self.seed);
        if let Some(structure) = self.structure {
            spec = spec.structure(structure);
        }
        // Where nobody asked for it, a structure that judges in order only is as welcome as ever.
        let (lateness, is_asked) = self.clock.filter_lateness(self.span);
        let takes = self.structure.is_none_or(Structure::takes_late_arrivals);
        Ok(if takes || is_asked { spec.lateness(lateness) } else { spec })
    }

    /// A plan for the filter. A capacity that nobody named is lowered until it fits into the memory.
    ///
    /// # Errors
    /// [`SpecError`] names the term that cannot be kept.
    pub fn plan(&self) -> Result<Plan, SpecError> {
        let spec = self.spec()?;
        let planned = if self.expect.is_some() { spec.plan() } else { spec.fit() };
        planned.map_err(|error| self.blame(&error))
    }

    /// The term that asks for more than can be had, and why.
    fn blame(&self, error: &PlanError) -> SpecError {
        // Would it do for a few keys?
        let small = || {
            let small = Self { expect: Some(1), fpr: None, memory: None, ..self.clone() };
            small.spec().is_ok_and(|spec| spec.plan().is_ok())
        };
        let term = match error {
            PlanError::Fpr(_) => Term::Fpr,
            PlanError::Window { .. }
                if self.clock.lateness.is_some_and(|lateness| lateness > 0) =>
            {
                Term::Lateness
            }
            PlanError::Window { .. } => Term::Structure,
            PlanError::Memory { .. } if self.memory.is_some() => Term::Memory,
            _ if matches!(self.span, Span::Last(_)) => Term::Last,
            _ if matches!(self.span, Span::Within(_)) && !small() => Term::Within,
            _ if self.expect.is_some() => Term::Expect,
            _ if self.fpr.is_some() => Term::Fpr,
            _ => Term::Within,
        };
        SpecError::new(
            term,
            match (term, error) {
                (Term::Within, PlanError::TooLarge(_)) => {
                    "too long a window; it can be at most 2^62 ns (146 years) long, and at most 2^60 times its slack".into()
                }
                (Term::Last, PlanError::TooLarge(_)) => {
                    "too large a window; it can have at most 2^60 records. Without one, keys are remembered for ever".into()
                }
                (_, error) => error.to_string(),
            },
        )
    }

    /// The limit of all that is remembered, in bytes.
    fn memory(&self) -> u64 {
        self.memory.unwrap_or(DEFAULT_MEMORY)
    }

    /// The limit of last values, in bytes: a quarter, where there are any.
    fn change_memory(&self) -> u64 {
        if self.changes.is_empty() { 0 } else { self.memory() / 4 }
    }

    /// A buffer for fresh records, if they are held or their copies are counted by this session.
    pub fn buffer(&self, session: &Dedup) -> Option<Hold> {
        let counting = self.count.map(|count| {
            let lateness = session.moments().clock.as_ref().map_or(0, Clock::lateness);
            let renews = self.renewal == Renewal::Always;
            let counting = Counting { span: self.span, renews, lateness, wanted: count.wanted };
            Hold::counting(counting, count.limit.unwrap_or(HELD_BYTES))
        });
        counting.or_else(|| self.hold.map(|hold| hold.buffer()))
    }

    /// What decides which keys are equal and when they are duplicates.
    pub fn identity(&self) -> Identity {
        Identity {
            reading: self.reading.clone(),
            span: self.span,
            renewal: Some(self.renewal),
            seed: self.seed,
            changes: self.changes.clone(),
        }
    }

    /// A session that remembers nothing yet.
    ///
    /// # Errors
    /// [`SpecError`] names the term that cannot be kept.
    pub fn build(&self) -> Result<Dedup, SpecError> {
        let filter = self.plan()?.try_build().map_err(|error| {
            SpecError::new(
                Term::Memory,
                format!("{error}; allow less memory, or expect fewer keys"),
            )
        })?;
        Ok(self.with_filter(filter))
    }

    /// The session saved in `path`; `None` where there is no such file. Its filter keeps the size and
    /// the rate it was made with; the clock, the hold and the limit of last values are those of `self`.
    ///
    /// # Errors
    /// [`StateError`] for a file that cannot be read, is damaged, or has another identity.
    pub fn resume(&self, path: &Path) -> Result<Option<Dedup>, StateError> {
        let Some(saved) = state::dedup::load(path)? else { return Ok(None) };
        let differences = saved.differences(&self.identity());
        if !differences.is_empty() {
            return Err(StateError::Settings(path.into(), differences));
        }
        Ok(Some(self.continued(saved)))
    }

    /// The session that [`Dedup::to_bytes`] of one of these terms has written.
    ///
    /// # Errors
    /// What is wrong with the bytes, in words; which settings differ.
    ///
    /// # Example
    /// ```
    /// use lately_stream::judge::class::Class;
    /// use lately_stream::session::DedupSpec;
    /// let spec = DedupSpec::last(1_000);
    /// let mut seen = spec.build()?;
    /// seen.observe(b"a key", None);
    /// let mut copy = spec.resume_bytes(&seen.to_bytes())?;
    /// assert_eq!(copy.observe(b"a key", None), Class::Duplicate);
    /// assert!(DedupSpec::last(2_000).resume_bytes(&seen.to_bytes()).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn resume_bytes(&self, bytes: &[u8]) -> Result<Dedup, String> {
        let saved = State::from_bytes(bytes)?;
        match &*saved.differences(&self.identity()) {
            [] => Ok(self.continued(saved)),
            [difference, ..] => Err(difference.to_string()),
        }
    }

    /// What was saved by a session of the same identity, with the clock and the limits of these terms.
    fn continued(&self, saved: State) -> Dedup {
        let reading = self.reading.clone().or(saved.identity.reading);
        let mut session = self.with_filter(saved.filter);
        session.identity.reading = reading;
        session.judge.resume_clock(saved.line, saved.clock);
        if let (Some(own), Some(values)) = (&mut session.judge.last_values, saved.last_values) {
            let limit = usize::try_from(self.change_memory()).unwrap_or(usize::MAX);
            *own = values.limited(limit);
        }
        (session.waiting, session.left) = (saved.held, saved.left);
        session
    }

    fn with_filter(&self, filter: AnyFilter) -> Dedup {
        let limit = usize::try_from(self.change_memory()).unwrap_or(usize::MAX);
        let last_values = (!self.changes.is_empty()).then(|| LastValues::new(limit));
        let digester = filter.digester();
        let kept = matches!(self.span, Span::Within(_)).then(|| filter.plan().lateness());
        let moments = self.clock.moments(self.span, kept);
        Dedup {
            judge: Judge::new(filter, moments, last_values, self.renewal)
                .with_bands(self.bands.clone()),
            identity: self.identity(),
            digester,
            waiting: Vec::new(),
            left: None,
            lefts: 0,
        }
    }
}

/// Have these keys been seen lately? Made by a [`DedupSpec`], or loaded from a file.
///
/// # Guarantee
/// A key seen within the window is never called fresh, unless the memory ran out: see
/// [`Dedup::overload`]. A new one is called a duplicate with at most the planned rate. What
/// [`Dedup::load`] reads answers as what was saved would have.
///
/// # Cost
/// Of [`Dedup::observe`] that of [`AnyFilter`], and the hash of the key. Batches are faster. A save
/// streams: it takes no memory to speak of.
///
/// See the [module](super) for an example.
#[derive(Debug)]
pub struct Dedup {
    judge: Judge,
    identity: Identity,
    digester: Digester,
    /// Held records of a saved state which nobody has taken.
    waiting: Vec<(Tick, Digest, Held)>,
    /// What a run has left in a pipe, and how often that has changed.
    left: Option<Left>,
    lefts: u64,
}

impl Dedup {
    /// The session saved in `path`, whatever it was made with; `None` where there is no such file.
    /// In a window of time, records as late as its filter can judge are judged.
    ///
    /// # Errors
    /// [`StateError`] for a file that cannot be read, or is damaged.
    pub fn load(path: &Path) -> Result<Option<Self>, StateError> {
        Ok(state::dedup::load(path)?.map(Self::of_state))
    }

    /// The session that [`Dedup::to_bytes`] has written; see [`Dedup::load`].
    ///
    /// # Errors
    /// What is wrong with the bytes, in words.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        Ok(Self::of_state(State::from_bytes(bytes)?))
    }

    fn of_state(saved: State) -> Self {
        let Identity { reading, span, renewal, seed, changes } = saved.identity.clone();
        // One of time that has seen nothing has no clock yet.
        let timed = saved.clock.is_some().then_some(true);
        let lateness = matches!(span, Span::Within(_)).then(|| saved.filter.plan().lateness());
        let clock = ClockSpec { timed, lateness, ..ClockSpec::default() };
        let spec = DedupSpec {
            span,
            renewal: renewal.unwrap_or_default(),
            seed,
            clock,
            changes,
            reading,
            ..DedupSpec::default()
        };
        let mut session = spec.with_filter(saved.filter);
        session.judge.resume_clock(saved.line, saved.clock);
        session.judge.last_values = saved.last_values.or(session.judge.last_values);
        (session.waiting, session.left) = (saved.held, saved.left);
        session
    }

    /// The bytes that [`Dedup::save`] puts into a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // A vector takes whatever is written to it.
        let _ = self.write_state(&[], &mut bytes);
        bytes
    }

    /// The digest of a key, which [`Dedup::observe_batch`] takes.
    pub fn digest(&self, key: &[u8]) -> Digest {
        self.digester.digest(key)
    }

    /// Judges a record by its key, and remembers the key. `time` is when it happened, in nanoseconds
    /// since 1970; `None` for one that happens now, and [`UNTIMED`](super::UNTIMED) for one whose time is missing, which is
    /// judged at the present moment of the clock.
    ///
    /// The key of several fields is that of [`Digester::digest_fields`], see
    /// [`Dedup::observe_digest`].
    pub fn observe(&mut self, key: &[u8], time: Option<i64>) -> Class {
        self.observe_digest(self.digester.digest(key), time)
    }

    /// Judges a record by the digest of its key.
    pub fn observe_digest(&mut self, digest: Digest, time: Option<i64>) -> Class {
        self.judge.judge_one(digest, time)
    }

    /// Judges records by the digests of their keys, in order, which is faster than one by one.
    /// `times` has a time for each, or is `None` for records that happen now; [`UNTIMED`](super::UNTIMED) stands for a time
    /// that is missing. The classes are appended to `classes`.
    ///
    /// A leap in time is believed if the records after it in the batch follow.
    ///
    /// # Panics
    /// Never: digests without a time are not judged, nor are times without a digest.
    pub fn observe_batch(
        &mut self,
        digests: &[Digest],
        times: Option<&[i64]>,
        classes: &mut Vec<Class>,
    ) {
        self.judge.judge_digests(digests, times, classes);
    }

    /// Has this key been seen within the window? Remembers nothing and moves no clock. `time` is the
    /// moment of the question, in nanoseconds since 1970; `None` for the newest time that a record has
    /// brought, or where none has, for now.
    pub fn is_known(&mut self, key: &[u8], time: Option<i64>) -> bool {
        let (digest, now) = (self.digester.digest(key), self.moment(time));
        self.judge.filter.contains(digest, now)
    }

    /// [`Dedup::is_known`] for the digests of many keys at one moment, which is faster. The answers are
    /// appended to `found`.
    pub fn are_known(&mut self, digests: &[Digest], time: Option<i64>, found: &mut Vec<bool>) {
        let (now, begin) = (self.moment(time), found.len());
        found.resize(begin + digests.len(), false);
        self.judge.filter.contains_batch(digests, now, &mut found[begin..]);
    }

    /// When a key was last seen, if within the window; see [`LastSeen`]. `time` is the moment of the
    /// question, as in [`Dedup::is_known`].
    pub fn last_seen(&mut self, key: &[u8], time: Option<i64>) -> Option<Seen> {
        self.last_seen_digest(self.digester.digest(key), time)
    }

    /// The same, by the digest of the key.
    pub fn last_seen_digest(&mut self, digest: Digest, time: Option<i64>) -> Option<Seen> {
        let now = self.moment(time);
        self.judge.filter.last_seen(digest, now)
    }

    /// Both ends of [`Dedup::last_seen`] in nanoseconds since 1970; only in a window of time are they that.
    pub fn nanos(&self, seen: Seen) -> (i64, i64) {
        let line = self.judge.moments.line;
        (line.nanos(seen.from), line.nanos(seen.to))
    }

    /// What hashes keys; see [`Digester::digest_fields`] for those of several fields.
    pub fn digester(&self) -> Digester {
        self.digester.clone()
    }

    /// The moment of a question.
    fn moment(&mut self, time: Option<i64>) -> Tick {
        let moments = &mut self.judge.moments;
        match (&moments.clock, time) {
            (Some(_), Some(time)) => moments.line.tick(time),
            (Some(clock), None) if !moments.by_arrival() => clock.now().unwrap_or_default(),
            _ => moments.arrival(),
        }
    }

    /// The filter.
    pub fn filter(&self) -> &AnyFilter {
        &self.judge.filter
    }

    /// The last value of each key, where changes let duplicates through.
    pub fn last_values(&self) -> Option<&LastValues> {
        self.judge.last_values.as_ref()
    }

    /// What decides which keys are equal and when they are duplicates.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The records that waited when the state was saved, oldest first.
    pub fn waiting(&self) -> &[(Tick, Digest, Held)] {
        &self.waiting
    }

    /// The same, for a buffer in which they continue to wait. What is not taken is saved again.
    pub fn take_waiting(&mut self) -> Vec<(Tick, Digest, Held)> {
        std::mem::take(&mut self.waiting)
    }

    /// Saves the session in a file that replaces the one that is there, and returns when it is on disk.
    /// Whatever happens meanwhile, the file is the old one or the new one.
    ///
    /// # Errors
    /// [`StateError::Io`]; the old file then still stands.
    pub fn save(&self, path: &Path) -> Result<(), StateError> {
        state::file::save(path, |out| self.write_state(&[], out))
    }
}

impl Decide for Dedup {
    const CLASSES: &'static [Class] = &[
        Class::Fresh,
        Class::Duplicate,
        Class::Withheld,
        Class::Late,
        Class::Invalid,
        Class::KeyMissing,
        Class::Skewed,
    ];

    fn decide(&mut self, batch: &Batch, next: Option<&Batch>, verdicts: &mut Verdicts) {
        self.judge.judge(batch, next, verdicts);
    }

    fn moments(&self) -> &Moments {
        &self.judge.moments
    }

    fn moments_mut(&mut self) -> &mut Moments {
        &mut self.judge.moments
    }

    fn overload(&self) -> Overload {
        self.judge.filter.overload()
    }

    fn evicted(&self) -> u64 {
        self.last_values().map_or(0, LastValues::evicted)
    }

    fn left(&self) -> Option<&Left> {
        self.left.as_ref()
    }

    fn leave(&mut self, left: Option<Left>) {
        self.lefts += u64::from(self.left != left);
        self.left = left;
    }

    fn changes(&self) -> u64 {
        self.judge.moments.changes() + self.lefts
    }

    fn write_state(&self, held: &[(Tick, Digest, &Held)], out: &mut dyn Write) -> io::Result<()> {
        let parts = state::dedup::Parts {
            identity: &self.identity,
            line: self.judge.moments.line,
            clock: self.judge.moments.saved(),
            filter: &self.judge.filter,
            last_values: self.judge.last_values.as_ref(),
            left: self.left.as_ref(),
        };
        let waiting = self.waiting.iter().map(|(until, key, held)| (*until, *key, held));
        let all: Vec<_> = waiting.chain(held.iter().copied()).collect();
        state::dedup::write(&parts, &all, out)
    }
}
