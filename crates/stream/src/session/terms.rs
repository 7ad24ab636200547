//! The terms of a window that filters and indexes share, their defaults, and what is wrong with them.

use crate::judge::clock::StreamClock;
use crate::judge::clocks::{Clock, Clocks};
use crate::judge::moment::{Moments, OnLate};
use crate::quantity::{self, QuantityError};
use lately::Window;
use std::fmt;
use std::num::NonZeroU64;

/// The most memory that is used when nothing is said: 1 GiB.
pub const DEFAULT_MEMORY: u64 = 1 << 30;

/// The false positive rate of a filter when nothing is said.
pub const DEFAULT_FPR: f64 = 1e-6;

/// The largest leap in time that a single record is believed when nothing is said: the window, but no
/// less and no more than these.
const MAX_SKEW: (u64, u64) = (1_000_000_000, 3600 * 1_000_000_000);

/// The most sources with a clock of their own.
const MOST_SOURCES: usize = 4096;

/// Times have a resolution of a microsecond when nothing is said.
const RESOLUTION: u64 = 1_000;

/// How long a key is remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Span {
    /// For this many nanoseconds.
    Within(u64),
    /// For this many records.
    Last(u64),
    /// Without end.
    #[default]
    Ever,
}

impl Span {
    /// The span of a window.
    pub fn of(window: Window) -> Self {
        match window {
            Window::Time { span, .. } => Self::Within(span.get()),
            Window::Count(n) => Self::Last(n.get()),
            Window::Unbounded { .. } => Self::Ever,
        }
    }

    /// A window of this span that is planned for so many keys, if it is not one of a number of records.
    pub(super) fn window(self, keys: u64) -> Result<Window, SpecError> {
        let positive = |n: u64, term: Term| {
            NonZeroU64::new(n).ok_or_else(|| SpecError::new(term, "must be more than 0"))
        };
        let capacity = positive(keys, Term::Expect)?;
        Ok(match self {
            Self::Within(span) => Window::Time { span: positive(span, Term::Within)?, capacity },
            Self::Last(n) => Window::Count(positive(n, Term::Last)?),
            Self::Ever => Window::Unbounded { capacity },
        })
    }
}

/// How much longer than its window a key may be reported, to save memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Slack {
    /// So many nanoseconds, or records.
    Exactly(u64),
    /// A share of the window.
    Share(f64),
}

impl Slack {
    /// The slack that a text states for a window of this span: a share (`1%`), or a duration or a count,
    /// whichever the window is of.
    ///
    /// # Errors
    /// What is wrong with the text.
    ///
    /// # Example
    /// ```
    /// use lately_stream::session::{Slack, Span};
    /// assert_eq!(Slack::parse("1%", Span::Last(100))?, Slack::Share(0.01));
    /// assert_eq!(Slack::parse("2us", Span::Within(100_000))?, Slack::Exactly(2_000));
    /// # Ok::<(), lately_stream::quantity::QuantityError>(())
    /// ```
    pub fn parse(text: &str, span: Span) -> Result<Self, QuantityError> {
        match span {
            _ if text.ends_with('%') => quantity::share(text).map(Self::Share),
            Span::Within(_) | Span::Ever => quantity::duration(text).map(Self::Exactly),
            Span::Last(_) => quantity::count(text).map(Self::Exactly),
        }
    }

    /// The slack over this span; where nothing is said, what a resolution of a microsecond allows.
    pub(super) fn over(slack: Option<Self>, span: Span) -> Result<u64, SpecError> {
        match (slack, span) {
            (None, Span::Within(length)) if length.is_multiple_of(RESOLUTION) => Ok(RESOLUTION - 1),
            (None, _) => Ok(0),
            (Some(_), Span::Ever) => Err(SpecError::new(Term::Slack, "needs a window")),
            (Some(Self::Exactly(slack)), _) => Ok(slack),
            (Some(Self::Share(share)), Span::Within(length) | Span::Last(length)) => {
                Ok((share * length as f64) as u64)
            }
        }
    }
}

/// When records are judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockSpec {
    /// Whether records may bring a time. If not, all are judged when they arrive. `None`: if the
    /// window is one of time.
    pub timed: Option<bool>,
    /// How far behind the newest time a record may be to be judged, in nanoseconds. `None`: the
    /// window, as far as the structure can; without a window of time, no record is late.
    pub lateness: Option<u64>,
    /// The largest leap ahead of the clock that a single record is believed, in nanoseconds. `None`: the
    /// window, but at least a second and at most an hour.
    pub max_skew: Option<u64>,
    /// Each source of the stream has a clock of its own.
    pub by_source: bool,
    /// What is done with late records.
    pub on_late: OnLate,
}

impl ClockSpec {
    /// Do records bring a time to a window of this span?
    fn is_timed(self, span: Span) -> bool {
        self.timed.unwrap_or(matches!(span, Span::Within(_)))
    }

    /// The lateness that the filter of a window of this span is to keep, and whether it was asked for.
    pub(super) fn filter_lateness(self, span: Span) -> (u64, bool) {
        match span {
            Span::Within(length) if self.is_timed(span) => {
                (self.lateness.unwrap_or(length), self.lateness.is_some())
            }
            _ => (0, false),
        }
    }

    /// The clock of a window of this span. `kept` is the lateness that its filter keeps, where it is
    /// one of times: a record further behind is late, whatever was asked for.
    pub(super) fn moments(self, span: Span, kept: Option<u64>) -> Moments {
        let within = if let Span::Within(length) = span { Some(length) } else { None };
        let asked = self.lateness.or(within).unwrap_or(u64::MAX);
        let lateness = kept.map_or(asked, |kept| kept.min(asked));
        let usual = within.map_or(MAX_SKEW.1, |length| length.clamp(MAX_SKEW.0, MAX_SKEW.1));
        let max_skew = self.max_skew.unwrap_or(usual);
        let clock = || match self.by_source {
            false => Clock::Shared(StreamClock::new(lateness, max_skew)),
            true => Clock::BySource(Clocks::new(lateness, max_skew, MOST_SOURCES)),
        };
        Moments::new(self.is_timed(span).then(clock), self.on_late)
    }
}

/// One of the terms of a specification, by the name it has in all programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    /// The window, in time.
    Within,
    /// The window, in records.
    Last,
    /// The keys expected within the window.
    Expect,
    /// The limit in bytes.
    Memory,
    /// The false positive rate.
    Fpr,
    /// How much longer than the window a key may be reported.
    Slack,
    /// How far behind the newest time a record may be to be judged.
    Lateness,
    /// The structure.
    Structure,
    /// The length of intervals.
    Interval,
}

impl Term {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Within => "within",
            Self::Last => "last",
            Self::Expect => "expect",
            Self::Memory => "memory",
            Self::Fpr => "fpr",
            Self::Slack => "slack",
            Self::Lateness => "lateness",
            Self::Structure => "structure",
            Self::Interval => "interval",
        }
    }
}

/// A specification that cannot be kept: which of its terms is at fault, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// The term that asks for more than can be had.
    pub term: Term,
    /// What is wrong, and what would help.
    pub reason: String,
}

impl SpecError {
    pub(super) fn new(term: Term, reason: impl Into<String>) -> Self {
        Self { term, reason: reason.into() }
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.term.name(), self.reason)
    }
}

impl std::error::Error for SpecError {}
