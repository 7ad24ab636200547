//! From what is asked of a range window ([`RangeSpec`]) to what is built ([`RangePlan`]).

use super::RangeWindow;
use super::size::{Form, Promise, Size};
use super::table::RangeTable;
use crate::any::unavailable;
use crate::bits::{TOO_LARGE, addressable, addressable_words, is_available};
use crate::plan::growth;
use crate::spec::TABLES_KEPT;
use crate::spec::terms::terms_of;
use crate::{PlanError, Terms, WhenFull, Window};
use core::num::NonZeroU64;

/// What a range window is to do. Begin with [`RangeSpec::new`], end with [`RangeSpec::plan`].
///
/// # Example
/// ```
/// use core::num::NonZeroU64;
/// use lately::range::RangeSpec;
/// use lately::{Tick, Window};
/// let window = Window::Count(NonZeroU64::new(10_000).unwrap());
/// let plan = RangeSpec::new(window).interval(256).fpr(0.01).slack(1_250).plan()?;
/// let mut seen = plan.build();
/// seen.insert(40_000, Tick(0));
/// assert!(seen.any(39_900..=40_100, Tick(0)).is_perhaps());
/// # Ok::<(), lately::PlanError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RangeSpec {
    pub(super) terms: Terms,
    pub(super) interval: u128,
}

impl RangeSpec {
    /// For this window, intervals of up to 1024 keys, a false positive rate of 1 %, no slack, no
    /// memory limit, growing when full.
    pub const fn new(window: Window) -> Self {
        Self::of(Terms::new(window, 0.01))
    }

    /// On these terms, for intervals of up to 1024 keys.
    ///
    /// A slack of an eighth of the window costs 4 bits per key; none costs as many as there are in the window's length.
    pub const fn of(terms: Terms) -> Self {
        Self { terms, interval: 1 << 10 }
    }

    /// The longest interval, in keys, that is to keep the rate. Twice as long costs one bit per key.
    ///
    /// Longer ones are answered as well, at a rate that rises with their length.
    #[must_use]
    pub const fn interval(self, keys: u128) -> Self {
        Self { interval: keys, ..self }
    }

    /// Chooses the sizes.
    ///
    /// # Errors
    /// [`PlanError`] names the constraint that cannot be met and suggests a fix.
    pub fn plan(self) -> Result<RangePlan, PlanError> {
        self.plan_by(Size::new)
    }

    /// [`RangeSpec::plan`] for a first table of this form.
    pub(super) fn plan_in_form(self, form: Form) -> Result<RangePlan, PlanError> {
        self.plan_by(|table, promise| Size::in_form(form, table, promise))
    }

    fn plan_by(
        self,
        size: impl Fn(&Self, Promise) -> Result<Size, PlanError>,
    ) -> Result<RangePlan, PlanError> {
        self.terms.check()?;
        if self.interval == 0 {
            return Err(PlanError::TooLarge("an interval of no keys cannot be planned for"));
        }
        let (table, promise) = (self.first_table(), self.promise());
        let plan = RangePlan { spec: self, size: size(&table, promise)? };
        addressable(plan.most_memory().into()).ok_or(TOO_LARGE)?;
        self.terms.check_memory(plan.most_memory()).map(|()| plan)
    }

    /// Does its window add tables when it has more keys than planned? A window of arrivals never has.
    fn adds_tables(&self) -> bool {
        self.terms.when_full == WhenFull::Grow && self.can_overflow()
    }

    const fn can_overflow(&self) -> bool {
        !matches!(self.terms.window, Window::Count(_))
    }

    /// What its tables promise.
    pub(super) fn promise(&self) -> Promise {
        if self.can_overflow() { Promise::Whatever } else { Promise::AsPlanned }
    }

    /// What its first table is built for.
    fn first_table(self) -> Self {
        let share = if self.adds_tables() { FIRST_SHARE } else { 1.0 };
        self.table(self.terms.window.capacity(), self.terms.fpr * share, self.terms.memory)
    }

    /// What one of its tables is built for. Of several each keeps to its own plan.
    pub(super) fn table(mut self, keys: u64, fpr: f64, memory: Option<u64>) -> Self {
        if self.adds_tables() {
            self.terms.when_full = WhenFull::Forget;
            let keys = NonZeroU64::new(keys).unwrap_or(NonZeroU64::MIN);
            self.terms.window = self.terms.window.with_capacity(keys);
        }
        (self.terms.fpr, self.terms.memory) = (fpr, memory);
        self
    }

    /// [`RangeSpec::plan`], where nobody named the number of keys: if as many do not fit into the memory limit, plans
    /// for about as many as do. A window of arrivals is planned as it is.
    ///
    /// # Errors
    /// As [`RangeSpec::plan`]; [`PlanError::Memory`] where a single key does not fit.
    pub fn fit(self) -> Result<RangePlan, PlanError> {
        if let Window::Count(_) = self.terms.window {
            return self.plan();
        }
        growth::fit(self.terms.window.capacity(), |keys| {
            self.capacity(NonZeroU64::new(keys).unwrap_or(NonZeroU64::MIN)).plan()
        })
    }
}

terms_of!(RangeSpec);

/// The first table's share of the rate, where there may be others.
const FIRST_SHARE: f64 = 7.0 / 8.0;

/// What will be built, and what it keeps. Made by [`RangeSpec::plan`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RangePlan {
    pub(super) spec: RangeSpec,
    pub(super) size: Size,
}

impl RangePlan {
    /// The same, in levels however few keys there are: as windows from snapshots of versions 1 and 5 are, and as tests want it.
    ///
    /// # Errors
    /// As [`RangeSpec::plan`].
    #[doc(hidden)]
    pub fn in_levels(&self) -> Result<Self, PlanError> {
        self.spec.plan_in_form(Form::Levels)
    }

    /// What the first table is built for.
    pub(super) fn first_table(&self) -> RangeSpec {
        self.spec.first_table()
    }

    /// Does the window add tables when it has more keys than planned?
    pub(super) fn adds_tables(&self) -> bool {
        self.spec.adds_tables()
    }

    /// The table that follows. `None` where none worth having fits into the memory limit, or there is no memory for it.
    pub(super) fn next_table(
        &self,
        older: &[RangeTable],
        active: &RangeTable,
    ) -> Option<RangeTable> {
        let (spec, size) = self.next_size(older, active)?;
        is_available(addressable_words(size.fixed_memory().div_ceil(8).into())?).ok()?;
        Some(RangeTable::new(spec, size))
    }

    /// What the table that follows is built for, with half of the rate that is left. `None` where none worth having fits into
    /// the memory limit.
    pub(super) fn next_size(
        &self,
        older: &[RangeTable],
        active: &RangeTable,
    ) -> Option<(RangeSpec, Size)> {
        let all = || older.iter().chain([active]);
        let used: f64 = all().map(|table| table.spec.terms.fpr).sum();
        let share = (self.spec.terms.fpr - used) / 2.0;
        let (first, last) = (self.window().capacity(), active.spec.terms.window.capacity());
        let keys = growth::next_capacity(last, last <= first);
        let memory = match self.spec.terms.memory {
            None => None,
            Some(limit) => {
                // By their plans, not by what they have allocated, so that a restored window goes the same way.
                let taken = all().map(|table| table.size.most_memory()).sum::<u64>();
                let free = limit.saturating_sub(taken);
                Some((free >= limit / TABLES_KEPT).then_some(free)?)
            }
        };
        if share <= 0.0 {
            return None;
        }
        let plan = |keys| {
            let (spec, promise) = (self.spec.table(keys, share, memory), self.spec.promise());
            let size = match self.size.form() {
                Form::Flat => Size::new(&spec, promise)?,
                // Few keys are so for lack of memory, or in a window from before there were flat tables.
                Form::Levels => Size::in_form(Form::Levels, &spec, promise)?,
            };
            spec.terms.check_memory(size.most_memory()).map(|()| (spec, size))
        };
        growth::fit(keys, plan).ok()
    }

    /// The window asked for.
    pub const fn window(&self) -> Window {
        self.spec.terms.window
    }

    /// The longest interval that keeps the rate.
    pub const fn interval(&self) -> u128 {
        self.spec.interval
    }

    /// The false positive rate promised for intervals of [`RangePlan::interval`] keys.
    pub const fn fpr(&self) -> f64 {
        self.spec.terms.fpr
    }

    /// The seed of the hash.
    pub const fn seed(&self) -> u64 {
        self.spec.terms.seed
    }

    /// How much longer than the window a key may be reported, in ticks or arrivals: what was asked for, or less.
    /// Tables that a window adds may have other grains: [`RangeWindow::slack`].
    pub const fn slack(&self) -> u64 {
        self.size.ages.slack()
    }

    /// The resolution of ages: steps within the window.
    pub fn slices(&self) -> u64 {
        self.spec.terms.window.span().map_or(1, |span| span.div_ceil(self.size.ages.grain))
    }

    /// Bytes allocated when the window is full of keys that arrive evenly; before that, fewer.
    pub fn memory(&self) -> u64 {
        self.size.usual_memory()
    }

    /// Bytes allocated at worst, before it grows: when all arrivals come just behind the sweep.
    pub fn most_memory(&self) -> u64 {
        self.size.most_memory()
    }

    /// Bits allocated per key of a full window.
    pub fn bits_per_key(&self) -> f64 {
        self.memory() as f64 * 8.0 / self.spec.terms.window.capacity() as f64
    }

    /// Bits per key that no structure with this contract can go below: `log2(L/ε)` to distinguish
    /// intervals, and `log2(window/slack)` to distinguish ages.
    pub fn lower_bound(&self) -> f64 {
        let steps =
            self.spec.terms.window.span().unwrap_or(1) as f64 / self.spec.terms.slack.max(1) as f64;
        libm::log2(self.spec.interval as f64 / self.spec.terms.fpr) + libm::log2(steps.max(1.0))
    }

    /// The empty window.
    ///
    /// # Panics
    /// When there is no memory for it, as `Vec` does; [`RangePlan::try_build`] says so instead.
    pub fn build(&self) -> RangeWindow {
        match self.try_build() {
            Ok(window) => window,
            Err(error) => unavailable(&error),
        }
    }

    /// The empty window.
    ///
    /// # Errors
    /// [`PlanError::Unavailable`] when there is no memory for what it begins with. Blocks are allocated as keys come.
    pub fn try_build(&self) -> Result<RangeWindow, PlanError> {
        let words = addressable_words(self.size.fixed_memory().div_ceil(8).into());
        is_available(words.ok_or(TOO_LARGE)?)?;
        Ok(RangeWindow::new(*self))
    }
}
