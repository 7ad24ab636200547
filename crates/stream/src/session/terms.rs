//! The terms of a window that filters and indexes share, their defaults, and what is wrong with them.

use crate::judge::clock::StreamClock;
use lately::Window;
use std::fmt;
use std::num::NonZeroU64;

/// The most memory that is used when nothing is said: 1 GiB.
pub const DEFAULT_MEMORY: u64 = 1 << 30;

/// The false positive rate of a filter when nothing is said.
pub const DEFAULT_FPR: f64 = 1e-6;

/// The largest leap in time that a single record is believed when nothing is said: an hour.
const MAX_SKEW: u64 = 3600 * 1_000_000_000;

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
    /// window; without a window of time, no record is late.
    pub lateness: Option<u64>,
    /// The largest leap ahead of the clock that a single record is believed, in nanoseconds. `None`: an
    /// hour.
    pub max_skew: Option<u64>,
}

impl ClockSpec {
    /// The stream clock of a window of this span; `None` where records are judged when they arrive.
    pub(super) fn clock(self, span: Span) -> Option<StreamClock> {
        let within = if let Span::Within(length) = span { Some(length) } else { None };
        let lateness = self.lateness.or(within).unwrap_or(u64::MAX);
        let clock = || StreamClock::new(lateness, self.max_skew.unwrap_or(MAX_SKEW));
        self.timed.unwrap_or(within.is_some()).then(clock)
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
