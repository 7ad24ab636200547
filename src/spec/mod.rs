//! What is asked for: terms, structure, renewal.

mod structure;
pub(crate) mod terms;

pub use structure::{Structure, UnknownStructure};
pub use terms::{Terms, WhenFull};

use crate::codec::{Reader, Writer};
use crate::leaps;
use crate::window::late;
use crate::{Digester, Renewal, SnapshotError, Window};
use terms::{Own, terms_of};

/// What a filter is to do. Begin with [`Spec::new`], end with [`Spec::plan`].
///
/// # Example
/// ```
/// use core::num::NonZeroU64;
/// use lately::{Spec, Tick, Verdict, Window, WindowFilter};
/// let window = Window::Count(NonZeroU64::new(1_000).unwrap());
/// let plan = Spec::new(window).fpr(1e-4).plan()?;
/// assert!(plan.fpr() <= 1e-4);
/// let mut filter = plan.build();
/// let key = filter.digester().digest(b"a key");
/// assert_eq!(filter.observe(key, Tick(0)), Verdict::Fresh);
/// assert_eq!(filter.observe(key, Tick(0)), Verdict::Duplicate);
/// # Ok::<(), lately::PlanError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Spec {
    pub(crate) terms: Terms,
    pub(crate) structure: Option<Structure>,
    pub(crate) renewal: Renewal,
    pub(crate) lateness: u64,
    pub(crate) most_leap: Option<u64>,
}

impl Spec {
    /// A filter for this window with a false positive rate of 1e-6, no slack, no lateness, no
    /// memory limit, renewal by every sighting, growing when full.
    pub const fn new(window: Window) -> Self {
        Self::of(Terms::new(window, 1e-6))
    }

    /// A filter on these terms, renewal by every sighting, no lateness.
    pub const fn of(terms: Terms) -> Self {
        Self { terms, structure: None, renewal: Renewal::Always, lateness: 0, most_leap: None }
    }

    /// The structure. Left out, it is an aged table, or where nothing is forgotten a blocked Bloom filter.
    #[must_use]
    pub const fn structure(self, structure: Structure) -> Self {
        Self { structure: Some(structure), ..self }
    }

    /// Whether duplicates renew their key's age.
    #[must_use]
    pub const fn renewal(self, renewal: Renewal) -> Self {
        Self { renewal, ..self }
    }

    /// The most ticks that an arrival may lie behind the newest moment and still be judged, and
    /// remembered, at its own: it is a duplicate exactly when an earlier arrival of its key (under
    /// [`Renewal::OnFresh`], one that was fresh) lies within the window of it, before or after. An arrival
    /// that lies further behind is taken for one that lies just that far behind. The default is 0, which
    /// judges every late arrival at the newest moment.
    ///
    /// For windows of time, and structures that [take late arrivals](Structure::takes_late_arrivals). Keys are
    /// kept for window and lateness, so a lateness of one window takes about twice the memory. A longer one
    /// takes two entries for each visit of a key: 23 times the memory for ten windows. [`Plan::memory`] has
    /// the exact figure. `docs/late.md` has the law, its proof and its costs.
    ///
    /// # Example
    /// ```
    /// use core::num::NonZeroU64;
    /// use lately::{Spec, Tick, Verdict, Window, WindowFilter};
    /// let (minute, capacity) = (NonZeroU64::new(60).unwrap(), NonZeroU64::new(1_000).unwrap());
    /// let spec = Spec::new(Window::Time { span: minute, capacity }).lateness(3_600);
    /// let mut filter = spec.plan()?.build();
    /// let key = filter.digester().digest(b"a key");
    /// assert_eq!(filter.observe(key, Tick(5_000)), Verdict::Fresh);
    /// assert_eq!(filter.observe(key, Tick(4_000)), Verdict::Fresh); // late, and far from the other
    /// assert_eq!(filter.observe(key, Tick(3_950)), Verdict::Duplicate);
    /// assert_eq!(filter.observe(key, Tick(4_950)), Verdict::Duplicate);
    /// # Ok::<(), lately::PlanError>(())
    /// ```
    ///
    /// [`Plan::memory`]: crate::Plan::memory
    #[must_use]
    pub const fn lateness(self, ticks: u64) -> Self {
        Self { lateness: ticks, ..self }
    }

    /// Puts a guard before the filter ([`Leaps`]): an arrival whose moment is more than so many ticks ahead of the newest is judged
    /// at the newest, until a second one confirms the leap. Without it, which is the default, one arrival of a device
    /// with a broken clock makes a window of time forget everything and judge all others at that moment.
    ///
    /// Choose more than the longest pause that is usual: after a longer one, the first arrival is judged at the moment
    /// before the pause. [`WindowFilter::advance`](crate::WindowFilter::advance) is always believed, as a program calls it by its own clock. Windows of
    /// arrivals and filters that never forget have no use for it.
    ///
    /// # Example
    /// ```
    /// use lately::{Spec, Tick, Window, WindowFilter};
    /// let mut seen = Spec::new(Window::time(60, 1_000)).most_leap(3_600).plan()?.build();
    /// let key = seen.digester().digest(b"a key");
    /// assert!(!seen.observe(key, Tick(1_000)).is_duplicate());
    /// let other = seen.digester().digest(b"from a device whose clock is wrong");
    /// let _ = seen.observe(other, Tick(1 << 40));
    /// assert!(seen.observe(key, Tick(1_010)).is_duplicate());
    /// # Ok::<(), lately::PlanError>(())
    /// ```
    ///
    /// [`Leaps`]: crate::Leaps
    #[must_use]
    pub const fn most_leap(self, ticks: u64) -> Self {
        Self { most_leap: Some(ticks), ..self }
    }

    /// Takes the guard of [`Spec::most_leap`] away, which is the default.
    #[must_use]
    pub const fn any_leap(self) -> Self {
        Self { most_leap: None, ..self }
    }

    /// Can its filter ever hold more keys than planned? That of a count window cannot.
    pub(crate) const fn can_overflow(&self) -> bool {
        !matches!(self.terms.window, Window::Count(_))
    }

    /// May its filter take more keys than were planned?
    pub(crate) fn grows(&self) -> bool {
        self.can_overflow() && self.terms.when_full == WhenFull::Grow
    }

    /// The most bytes a table of a structure that grows by itself may grow to. Under a limit it is a
    /// part, as others are, so that dropping the oldest table never forgets everything.
    pub(crate) fn limit_of_growth(&self) -> u64 {
        match self.terms.memory {
            _ if !self.grows() => 0,
            Some(limit) => limit / TABLES_KEPT,
            None => u64::MAX,
        }
    }

    pub(crate) fn write(&self, structure: Structure, out: &mut Writer<'_>) {
        Digester::write_algorithm(out);
        out.u8(structure.tag());
        self.terms.write(Own::Points(self.renewal), out);
        late::write(self.lateness, out);
        leaps::write(self.most_leap, out);
    }

    pub(crate) fn read(input: &mut Reader<'_>) -> Result<(Self, Structure), SnapshotError> {
        Digester::check_algorithm(input)?;
        let structure = Structure::read(input)?;
        let (terms, own) = Terms::read(Own::Points(Renewal::Always), input)?;
        let renewal = match own {
            Own::Points(renewal) => renewal,
            Own::Range { .. } => Renewal::Always,
        };
        let (lateness, most_leap) = (late::read(input)?, leaps::read(input)?);
        let spec = Self { terms, structure: Some(structure), renewal, lateness, most_leap };
        Ok((spec, structure))
    }
}

terms_of!(Spec);

/// Tables that a forgetting filter keeps, and parts of a memory limit that a table is one of.
pub(crate) const TABLES_KEPT: u64 = 4;
