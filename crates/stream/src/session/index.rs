//! An index of numbers: what is asked ([`IndexSpec`]) and what keeps it ([`Index`]).

use super::identity::{Identity, Reading};
use super::terms::{ClockSpec, DEFAULT_MEMORY, Slack, Span, SpecError, Term};
use crate::judge::class::Class;
use crate::judge::hold::Held;
use crate::judge::index::Indexer;
use crate::judge::moment::Moments;
use crate::judge::{Decide, Verdicts};
use crate::number::NumberFormat;
use crate::read::Left;
use crate::record::Batch;
use crate::state::index::SavedIndex;
use crate::state::{self, StateError};
use lately::range::{Answer, RangePlan, RangeSpec, RangeWindow};
use lately::{Digest, Overload, PlanError, Tick};
use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::path::Path;

/// Keys that an index is planned for when nothing is said: with few of them it takes some 150 KiB, and
/// with many more than planned each arrival costs more.
const EXPECTED: u64 = 1_000_000;

/// The chance that `perhaps` is wrong when nothing is said.
const FPR: f64 = 0.001;

/// The slack when nothing is said: an eighth of the window.
const SLACK: Slack = Slack::Share(0.125);

/// What an index is to remember, and what may be used for it. Whatever is `None` has a default that all
/// programs share.
///
/// # Example
/// ```
/// use lately_stream::number::NumberFormat;
/// use lately_stream::session::{IndexSpec, Span};
/// const MINUTE: u64 = 60_000_000_000;
/// let spec = IndexSpec::new(Span::Within(10 * MINUTE), NumberFormat::Number);
/// let mut orders = spec.build()?;
/// let noon = 1_700_000_000_000_000_000;
/// orders.observe(4711, Some(noon));
/// assert!(orders.any(4000..=4999, None).is_perhaps());
/// assert!(!orders.any(5000..=5999, None).is_perhaps());
/// # Ok::<(), lately_stream::session::SpecError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct IndexSpec {
    /// How long a key is remembered; an index needs a window.
    pub span: Span,
    /// How the texts of keys become numbers.
    pub format: NumberFormat,
    /// Distinct keys expected within a window of time. `None`: a million, or as many as fit into the
    /// memory.
    pub expect: Option<u64>,
    /// The most bytes. `None`: [`DEFAULT_MEMORY`].
    pub memory: Option<u64>,
    /// The chance that `perhaps` is wrong for an interval of `interval` keys. `None`: 0.001.
    pub fpr: Option<f64>,
    /// How much longer than the window a key may be reported. `None`: an eighth of the window.
    pub slack: Option<Slack>,
    /// The longest interval for which the rate is to hold. `None`: what is usual for the format.
    pub interval: Option<u128>,
    /// The seed of the hash.
    pub seed: u64,
    /// When records are.
    pub clock: ClockSpec,
    /// How keys and times are read from records. `None`: they are handed over as they are.
    pub reading: Option<Reading>,
}

impl IndexSpec {
    /// For keys of this format, all else by default.
    pub fn new(span: Span, format: NumberFormat) -> Self {
        Self {
            span,
            format,
            expect: None,
            memory: None,
            fpr: None,
            slack: None,
            interval: None,
            seed: 0,
            clock: ClockSpec::default(),
            reading: None,
        }
    }

    /// A plan for the window. A capacity that nobody named is lowered until it fits into the memory.
    ///
    /// # Errors
    /// [`SpecError`] names the term that cannot be kept.
    pub fn plan(&self) -> Result<RangePlan, SpecError> {
        let slack = Slack::over(Some(self.slack.unwrap_or(SLACK)), self.span)?;
        let window = self.span.window(self.expect.unwrap_or(EXPECTED))?;
        let spec = RangeSpec::new(window)
            .interval(self.interval.unwrap_or(self.format.usual_interval()))
            .fpr(self.fpr.unwrap_or(FPR))
            .slack(slack)
            .memory(self.memory.unwrap_or(DEFAULT_MEMORY))
            .seed(self.seed);
        let planned = if self.expect.is_some() { spec.plan() } else { spec.fit() };
        planned.map_err(|error| {
            let term = match &error {
                PlanError::Fpr(_) => Term::Fpr,
                PlanError::Memory { .. } => Term::Memory,
                _ if spec.interval(1).plan().is_ok() => Term::Interval,
                _ if matches!(self.span, Span::Last(_)) => Term::Last,
                _ if self.expect.is_some() => Term::Expect,
                _ => Term::Within,
            };
            SpecError::new(term, error.to_string())
        })
    }

    /// What decides which number a record has and how long it is remembered.
    pub fn identity(&self) -> Identity {
        Identity {
            reading: self.reading.clone(),
            span: self.span,
            renewal: None,
            seed: self.seed,
            changes: Vec::new(),
        }
    }

    /// An index of nothing yet.
    ///
    /// # Errors
    /// [`SpecError`] names the term that cannot be kept.
    pub fn build(&self) -> Result<Index, SpecError> {
        Ok(self.with_window(self.plan()?.build(), self.identity()))
    }

    /// The index saved in `path`; `None` where there is no such file. Its window keeps the size and the
    /// rate it was made with; the clock is that of `self`.
    ///
    /// # Errors
    /// [`StateError`] for a file that cannot be read, is damaged, or has another identity.
    pub fn resume(&self, path: &Path) -> Result<Option<Index>, StateError> {
        let Some(saved) = state::index::load(path)? else { return Ok(None) };
        let mut asked = self.identity();
        let mut differences = saved.differences(&asked);
        if saved.format != self.format && differences.is_empty() {
            let (saved, asked) = (saved.format.to_string(), self.format.to_string());
            differences.push(super::Difference { name: "key-format".into(), saved, asked });
        }
        if !differences.is_empty() {
            return Err(StateError::Settings(path.into(), differences));
        }
        asked.reading = asked.reading.or(saved.identity.reading);
        let mut index = self.with_window(saved.window, asked);
        index.indexer.resume_clock(saved.line, saved.clock);
        index.left = saved.left;
        Ok(Some(index))
    }

    fn with_window(&self, window: RangeWindow, identity: Identity) -> Index {
        let indexer = Indexer::new(window, self.clock.moments(self.span, None));
        Index { indexer, identity, format: self.format, left: None, lefts: 0 }
    }
}

/// Which numbers were seen lately, to be asked for intervals of them. Made by an [`IndexSpec`], or
/// loaded from a file of `lately index`.
///
/// # Guarantee
/// `no` is never said of an interval with a key seen within the window, unless the memory ran out: see
/// [`Index::overload`].
#[derive(Debug)]
pub struct Index {
    indexer: Indexer,
    identity: Identity,
    format: NumberFormat,
    /// What a run has left in a pipe, and how often that has changed.
    left: Option<Left>,
    lefts: u64,
}

impl Index {
    /// The index saved in `path`, whatever it was made with; `None` where there is no such file.
    ///
    /// # Errors
    /// [`StateError`] for a file that cannot be read, or is damaged.
    pub fn load(path: &Path) -> Result<Option<Self>, StateError> {
        Ok(state::index::load(path)?.map(Self::of_state))
    }

    /// The index that [`Index::to_bytes`] has written; see [`Index::load`].
    ///
    /// # Errors
    /// What is wrong with the bytes, in words.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        Ok(Self::of_state(SavedIndex::from_bytes(bytes)?))
    }

    fn of_state(saved: SavedIndex) -> Self {
        let Identity { reading, span, seed, .. } = saved.identity.clone();
        // One of time that has seen nothing has no clock yet.
        let clock =
            ClockSpec { timed: saved.clock.is_some().then_some(true), ..ClockSpec::default() };
        let spec = IndexSpec { seed, clock, reading, ..IndexSpec::new(span, saved.format) };
        let mut index = spec.with_window(saved.window, saved.identity);
        index.indexer.resume_clock(saved.line, saved.clock);
        index.left = saved.left;
        index
    }

    /// The bytes that [`Index::save`] puts into a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // A vector takes whatever is written to it.
        let _ = self.write_state(&[], &mut bytes);
        bytes
    }

    /// Remembers a key. `time` is when it was seen, in nanoseconds since 1970; `None` for now.
    pub fn observe(&mut self, number: u128, time: Option<i64>) -> Class {
        self.indexer.index_one(number, time)
    }

    /// Was any key of an interval seen at most `within` ago (nanoseconds or records; `None`: within
    /// the window)? The moment of the question is [`Index::now`].
    pub fn any(&self, keys: RangeInclusive<u128>, within: Option<u64>) -> Answer {
        match within {
            Some(within) => self.indexer.window.any_within(keys, within, self.now()),
            None => self.indexer.window.any(keys, self.now()),
        }
    }

    /// The present moment: where records brought times the newest of them, else the time of day, or
    /// the last arrival if that is later.
    pub fn now(&self) -> Tick {
        let moments = &self.indexer.moments;
        let wall = if moments.by_arrival() { moments.line.now() } else { Tick(0) };
        moments.now().unwrap_or(Tick(0)).max(wall)
    }

    /// The newest time of a record, in nanoseconds since 1970; `None` where they are indexed as they
    /// arrive.
    pub fn clock(&self) -> Option<i64> {
        self.indexer.moments.time()
    }

    /// The window.
    pub fn window(&self) -> &RangeWindow {
        &self.indexer.window
    }

    /// How the texts of keys become numbers.
    pub fn format(&self) -> NumberFormat {
        self.format
    }

    /// What decides which number a record has and how long it is remembered.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Saves the index in a file that replaces the one that is there, and returns when it is on disk.
    ///
    /// # Errors
    /// [`StateError::Io`]; the old file then still stands.
    pub fn save(&self, path: &Path) -> Result<(), StateError> {
        state::file::save(path, |out| self.write_state(&[], out))
    }
}

impl Decide for Index {
    const CLASSES: &'static [Class] =
        &[Class::Indexed, Class::Late, Class::Invalid, Class::KeyMissing, Class::Skewed];

    fn decide(&mut self, batch: &Batch, next: Option<&Batch>, verdicts: &mut Verdicts) {
        self.indexer.index(batch, next, verdicts);
    }

    fn moments(&self) -> &Moments {
        &self.indexer.moments
    }

    fn moments_mut(&mut self) -> &mut Moments {
        &mut self.indexer.moments
    }

    fn overload(&self) -> Overload {
        self.indexer.window.overload()
    }

    fn left(&self) -> Option<&Left> {
        self.left.as_ref()
    }

    fn leave(&mut self, left: Option<Left>) {
        self.lefts += u64::from(self.left != left);
        self.left = left;
    }

    fn changes(&self) -> u64 {
        self.indexer.moments.changes() + self.lefts
    }

    fn write_state(&self, _: &[(Tick, Digest, &Held)], out: &mut dyn Write) -> io::Result<()> {
        let parts = state::index::Parts {
            identity: &self.identity,
            format: self.format,
            line: self.indexer.moments.line,
            clock: self.indexer.moments.saved(),
            window: &self.indexer.window,
            left: self.left.as_ref(),
        };
        state::index::write(&parts, out)
    }
}
