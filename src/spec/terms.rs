//! What filters of points and of ranges are both asked for.

use crate::codec::{Reader, Writer};
use crate::{PlanError, Renewal, SnapshotError, Window};

/// What a filter does with new keys when it holds as many as it was planned for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum WhenFull {
    /// Add a table: the second of four times the keys, each later one of twice those of the one before. Under a
    /// memory limit this ends at the limit, and from there on the oldest table is dropped to make room.
    #[default]
    Grow,
    /// Keep to the planned size: the oldest quarter of the keys is forgotten to make room. It is
    /// counted with all the keys it ever took, including those that had expired.
    /// Duplicates of them may pass, nothing new is lost.
    Forget,
    /// Keep what is there: new keys are judged correctly, but not remembered.
    Refuse,
}

impl WhenFull {
    fn read(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        match input.u8()? {
            0 => Ok(Self::Grow),
            1 => Ok(Self::Forget),
            2 => Ok(Self::Refuse),
            _ => Err(SnapshotError::Invalid("unknown policy")),
        }
    }
}

/// What a [`Spec`](crate::Spec) and a [`RangeSpec`](crate::range::RangeSpec) have in common.
///
/// # Example
/// ```
/// use core::num::NonZeroU64;
/// use lately::range::RangeSpec;
/// use lately::{Spec, Terms, Window};
/// let mut terms = Terms::new(Window::Count(NonZeroU64::new(1_000).unwrap()), 1e-3);
/// terms.memory = Some(1 << 20);
/// let (keys, ranges) = (Spec::of(terms).plan()?, RangeSpec::of(terms).plan()?);
/// assert!(keys.memory() < 1 << 20 && ranges.memory() < 1 << 20);
/// # Ok::<(), lately::PlanError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Terms {
    /// How far back it remembers, and for how many keys.
    pub window: Window,
    /// The highest false positive rate allowed, over all it grows to.
    pub fpr: f64,
    /// How much longer than the window a key may still be reported, in ticks or arrivals. Keys that come within so many
    /// ticks may hold their room until all of them have expired: see [bursts](crate#bursts-growth-and-time).
    pub slack: u64,
    /// The most bytes that it may ever allocate.
    pub memory: Option<u64>,
    /// What happens past the capacity.
    pub when_full: WhenFull,
    /// The seed of the hash. Filters that are to be merged need the same.
    pub seed: u64,
}

impl Terms {
    /// No slack, no memory limit, growing when full, seed 0.
    pub const fn new(window: Window, fpr: f64) -> Self {
        Self { window, fpr, slack: 0, memory: None, when_full: WhenFull::Grow, seed: 0 }
    }

    /// Can they be planned for at all?
    pub(crate) fn check(&self) -> Result<(), PlanError> {
        if self.fpr > 0.0 && self.fpr < 1.0 { Ok(()) } else { Err(PlanError::Fpr(self.fpr)) }
    }

    /// Is so much memory within the limit?
    pub(crate) fn check_memory(&self, needed: u64) -> Result<(), PlanError> {
        match self.memory {
            Some(limit) if needed > limit => Err(PlanError::Memory { needed, limit }),
            _ => Ok(()),
        }
    }

    pub(crate) fn write(&self, own: Own, out: &mut Writer<'_>) {
        self.window.write(out);
        if let Own::Range { interval } = own {
            out.u128(interval);
        }
        out.f64(self.fpr);
        if let Own::Points(renewal) = own {
            out.u64(self.memory.unwrap_or(0));
            out.u8(renewal as u8);
        }
        out.u64(self.slack);
        if let Own::Range { .. } = own {
            out.flag(self.memory.is_some());
            out.u64(self.memory.unwrap_or(0));
        }
        out.u8(self.when_full as u8);
        out.u64(self.seed);
    }

    /// Reads terms and what `own` stands for.
    pub(crate) fn read(own: Own, input: &mut Reader<'_>) -> Result<(Self, Own), SnapshotError> {
        let mut own = own;
        let mut terms = Self::new(Window::read(input)?, 0.0);
        if let Own::Range { interval } = &mut own {
            *interval = input.u128()?;
        }
        terms.fpr = input.f64()?;
        if let Own::Points(renewal) = &mut own {
            terms.memory = Some(input.u64()?).filter(|&bytes| bytes > 0);
            *renewal = Renewal::read(input)?;
        }
        terms.slack = input.u64()?;
        if let Own::Range { .. } = own {
            let (limited, limit) = (input.flag()?, input.u64()?);
            if !limited && limit > 0 {
                return Err(SnapshotError::Invalid("a memory limit where there is none"));
            }
            terms.memory = limited.then_some(limit);
        }
        terms.when_full = WhenFull::read(input)?;
        terms.seed = input.u64()?;
        Ok((terms, own))
    }
}

/// What either kind of spec has of its own, in the places where snapshots have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Own {
    Points(Renewal),
    Range { interval: u128 },
}

/// The setters of a spec with `terms`.
macro_rules! terms_of {
    ($spec:ident) => {
        impl $spec {
            /// What it has in common with other specs.
            pub const fn terms(&self) -> &crate::Terms {
                &self.terms
            }

            /// The window asked for.
            pub const fn window(&self) -> crate::Window {
                self.terms.window
            }

            /// The same for another window.
            #[must_use]
            pub const fn over(mut self, window: crate::Window) -> Self {
                self.terms.window = window;
                self
            }

            /// The same, planned for another number of distinct keys; see
            /// [`Window::with_capacity`](crate::Window::with_capacity).
            #[must_use]
            pub const fn capacity(mut self, keys: core::num::NonZeroU64) -> Self {
                self.terms.window = self.terms.window.with_capacity(keys);
                self
            }

            /// The highest false positive rate allowed, over all it grows to. For a range window, that of
            /// intervals as long as planned for.
            #[must_use]
            pub const fn fpr(mut self, fpr: f64) -> Self {
                self.terms.fpr = fpr;
                self
            }

            /// The most bytes that it may ever allocate.
            #[must_use]
            pub const fn memory(mut self, bytes: u64) -> Self {
                self.terms.memory = Some(bytes);
                self
            }

            /// How much longer than the window a key may still be reported, in ticks or arrivals. Twice the
            /// slack saves one bit per cell or key.
            #[must_use]
            pub const fn slack(mut self, slack: u64) -> Self {
                self.terms.slack = slack;
                self
            }

            /// What happens past the capacity. A window of arrivals never comes past it.
            #[must_use]
            pub const fn when_full(mut self, when_full: crate::WhenFull) -> Self {
                self.terms.when_full = when_full;
                self
            }

            /// The seed of the hash. Filters that are to be merged need the same.
            #[must_use]
            pub const fn seed(mut self, seed: u64) -> Self {
                self.terms.seed = seed;
                self
            }
        }
    };
}
pub(crate) use terms_of;
