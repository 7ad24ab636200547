//! Ticks, windows and renewal: what "lately" means.

use crate::SnapshotError;
use crate::codec::{Reader, Writer};
use core::num::NonZeroU64;
use core::time::Duration;

/// A moment in the caller's unit (nanoseconds, seconds, anything that counts up).
///
/// The library has no clock: every call names the moment it speaks of. A filter takes moments up to its
/// lateness ([`Spec::lateness`](crate::Spec::lateness)) behind the newest one it has seen as they are. One
/// further behind is judged at the oldest moment allowed, the newest less the lateness; without a lateness,
/// which is the default, that is the newest itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Tick(pub u64);

/// How far back a filter remembers, and for how many keys.
///
/// The boundary is inclusive: a key is a duplicate when its last sighting is *at most* the window
/// ago. Where arrivals may be late ([`Spec::lateness`](crate::Spec::lateness)) it is one when any sighting is
/// at most the window away, before it or after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Window {
    /// The last so many arrivals before this one, duplicates among them included.
    /// The filter counts arrivals itself; the ticks it is given are not looked at.
    Count(NonZeroU64),
    /// The last `span` ticks, in which at most `capacity` distinct keys are expected.
    Time {
        /// Length of the window in ticks.
        span: NonZeroU64,
        /// Distinct keys expected within one span, however they come; with a slack not quite: see
        /// [bursts](crate#bursts-growth-and-time).
        capacity: NonZeroU64,
    },
    /// Everything ever seen, at most `capacity` distinct keys expected.
    Unbounded {
        /// Distinct keys expected in all.
        capacity: NonZeroU64,
    },
}

impl Window {
    /// [`Window::Count`] from a plain number: the last `arrivals` before this one. 0 is taken for 1.
    ///
    /// # Example
    /// ```
    /// use lately::{Spec, Tick, Window, WindowFilter};
    /// let mut seen = Spec::new(Window::count(1_000)).plan()?.build();
    /// let key = seen.digester().digest(b"a key");
    /// assert!(!seen.observe(key, Tick(0)).is_duplicate());
    /// # Ok::<(), lately::PlanError>(())
    /// ```
    pub const fn count(arrivals: u64) -> Self {
        Self::Count(at_least_1(arrivals))
    }

    /// [`Window::Time`] from plain numbers: the last `span` ticks, in which about `capacity` distinct keys are
    /// expected. 0 is taken for 1.
    pub const fn time(span: u64, capacity: u64) -> Self {
        Self::Time { span: at_least_1(span), capacity: at_least_1(capacity) }
    }

    /// [`Window::Time`] where a tick is a nanosecond: 584 years of them can be counted. A span too long for that is taken for
    /// the longest, which no plan keeps.
    ///
    /// A window whose every nanosecond counts takes wide stamps: allow a slack
    /// ([`Spec::slack`](crate::Spec::slack)) of a sixteenth of it or so.
    ///
    /// # Example
    /// ```
    /// use core::time::Duration;
    /// use lately::{Spec, Tick, Window};
    /// let window = Window::within(Duration::from_secs(10), 5_000);
    /// let plan = Spec::new(window).slack(600_000_000).plan()?;
    /// assert!(plan.bits_per_key() < 60.0);
    /// # Ok::<(), lately::PlanError>(())
    /// ```
    pub const fn within(span: Duration, capacity: u64) -> Self {
        let nanoseconds = span.as_nanos();
        let most = u64::MAX as u128;
        Self::time(if nanoseconds < most { nanoseconds as u64 } else { u64::MAX }, capacity)
    }

    /// [`Window::Unbounded`] from a plain number: for ever, for about `capacity` distinct keys. 0 is taken for 1.
    pub const fn unbounded(capacity: u64) -> Self {
        Self::Unbounded { capacity: at_least_1(capacity) }
    }

    /// The distinct keys a filter for this window is planned for.
    pub const fn capacity(self) -> u64 {
        match self {
            Self::Count(n) => n.get(),
            Self::Time { capacity, .. } | Self::Unbounded { capacity } => capacity.get(),
        }
    }

    /// Length of the window: arrivals or ticks. `None` where it has no end.
    pub const fn span(self) -> Option<u64> {
        match self {
            Self::Count(n) => Some(n.get()),
            Self::Time { span, .. } => Some(span.get()),
            Self::Unbounded { .. } => None,
        }
    }

    /// The same window, planned for another number of distinct keys. A count window has no
    /// capacity of its own and stays as it is.
    #[must_use]
    pub const fn with_capacity(self, capacity: NonZeroU64) -> Self {
        match self {
            Self::Count(_) => self,
            Self::Time { span, .. } => Self::Time { span, capacity },
            Self::Unbounded { .. } => Self::Unbounded { capacity },
        }
    }

    pub(crate) fn write(self, out: &mut Writer<'_>) {
        let kind = match self {
            Self::Count(_) => 0,
            Self::Time { .. } => 1,
            Self::Unbounded { .. } => 2,
        };
        out.u8(kind);
        out.u64(self.span().unwrap_or(0));
        out.u64(self.capacity());
    }

    pub(crate) fn read(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        let (kind, span, capacity) = (input.u8()?, input.u64()?, input.u64()?);
        let positive = |n| {
            NonZeroU64::new(n).ok_or(SnapshotError::Invalid("a window of length or capacity 0"))
        };
        match kind {
            0 if capacity == span => Ok(Self::Count(positive(span)?)),
            1 => Ok(Self::Time { span: positive(span)?, capacity: positive(capacity)? }),
            2 if span == 0 => Ok(Self::Unbounded { capacity: positive(capacity)? }),
            _ => Err(SnapshotError::Invalid("no such window")),
        }
    }
}

const fn at_least_1(number: u64) -> NonZeroU64 {
    match NonZeroU64::new(number) {
        Some(number) => number,
        None => NonZeroU64::MIN,
    }
}

/// Does a duplicate renew its key's age?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Renewal {
    /// Yes: a chain of sightings, each within the window of the one before, is one visit
    /// (Lee & Chung 2011, Definition 3).
    #[default]
    Always,
    /// No: a key passes again one window after it last *passed*.
    OnFresh,
}
