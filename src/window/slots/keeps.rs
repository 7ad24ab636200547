//! What a window of slots keeps, whatever its table.

use crate::codec::{Reader, Writer};
use crate::table::Contract;
use crate::window::cycle::{Pace, coarsest_grain};
use crate::window::late::{self, IN_ORDER, Late};
use crate::window::slots::stash;
use crate::{PlanError, Renewal, SnapshotError, Spec, Window};

/// What a window of slots keeps, besides the size of its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keeps {
    /// The last `n` arrivals, or a span of ticks with so many distinct keys in it.
    pub window: Window,
    /// Ticks that count as one moment; 1 is exact. Arrivals that are counted in more than one need
    /// to be told: their tick is their number.
    pub grain: u64,
    /// The most ticks that an arrival may lie behind the newest moment; 0 for arrivals in order, and
    /// for those that are counted.
    pub lateness: u64,
    /// Does a duplicate renew its key's age?
    pub renewal: Renewal,
    /// The most keys that are kept outside the table when they find no slot.
    pub stash: u64,
}

/// Keys that the stash of any table takes: more than one of the planned size ever needs.
pub(crate) const STASHED: u64 = 8;

impl Keeps {
    /// Exactly this window, in order, every sighting renewing, with a stash that holds a whole count
    /// window.
    pub const fn exactly(window: Window) -> Self {
        let (grain, lateness, renewal) = (1, 0, Renewal::Always);
        Self { window, grain, lateness, renewal, stash: window.capacity() }
    }

    /// How the table of so many keys is kept, and how much room its stash has.
    pub(super) fn of(spec: &Spec, capacity: u64) -> Result<Self, PlanError> {
        let (span, slack) = (spec.terms.window.span().unwrap_or(1), spec.terms.slack);
        let (grain, stash) = match spec.terms.window {
            // All of them may want the same slots; a table that cannot grow must take them all the same.
            Window::Count(n) => (1, n.get()),
            Window::Time { .. } | Window::Unbounded { .. } => {
                (coarsest_grain(span, slack), STASHED + capacity / 512)
            }
        };
        let capacity = core::num::NonZeroU64::new(capacity).unwrap_or(core::num::NonZeroU64::MIN);
        let window = spec.terms.window.with_capacity(capacity);
        let Spec { lateness, renewal, .. } = *spec;
        let keeps = Self { window, grain, lateness, renewal, stash };
        keeps.check().map(|()| keeps)
    }

    /// [`Keeps::of`] with a grain for slack in arrivals too.
    pub(super) fn coarsest(spec: &Spec, capacity: u64) -> Result<Self, PlanError> {
        let span = spec.terms.window.span().unwrap_or(1);
        let keeps = Self::of(spec, capacity)?;
        let coarse = Self { grain: coarsest_grain(span, spec.terms.slack), ..keeps };
        coarse.check().map(|()| coarse)
    }

    /// The same, with the finest grain of which window and lateness together have no more than so many.
    pub(super) fn in_steps(self, steps: u64) -> Self {
        let (span, lateness) = (self.window.span().unwrap_or(1), self.lateness);
        let grain = |steps: u64| span.saturating_add(lateness).div_ceil(steps.max(1));
        let fits = |grain: u64| span.div_ceil(grain) + lateness.div_ceil(grain) <= steps;
        // Each is rounded up by itself, which takes a grain more at the most.
        let grain = if fits(grain(steps)) { grain(steps) } else { grain(steps - 1) };
        Self { grain, ..self }
    }

    /// What a table that is kept like this promises.
    pub(super) fn contract(&self) -> Contract {
        let steps = self.window.span().unwrap_or(1).div_ceil(self.grain);
        Contract { capacity: self.window.capacity(), slack: self.slack(), steps }
    }

    pub(crate) fn pace(&self) -> Pace {
        Pace::lazy(self.window, self.grain, self.lateness)
    }

    pub(crate) fn late(&self) -> Option<Late> {
        Late::new(self.window.span().unwrap_or(1), self.grain, self.lateness)
    }

    pub(crate) fn check(&self) -> Result<(), PlanError> {
        let counts = matches!(self.window, Window::Count(_));
        let fits = self.window.span().is_some_and(|span| {
            self.grain > 0
                && (self.lateness == 0 || !counts)
                && span.div_ceil(self.grain) <= 1 << 60
                && self.lateness.div_ceil(self.grain) <= 1 << 60
                && span.checked_add(self.grain).is_some_and(|ticks| ticks < 1 << 62)
                && self.lateness < 1 << 61
        });
        fits.then_some(()).ok_or(PlanError::TooLarge(
            "a window of slots has 1 to 2^60 grains, less than 2^62 ticks and less than 2^61 of lateness, which one that counts arrivals has none of",
        ))
    }

    /// [`Keeps::check`], for a table whose keys have one entry each.
    pub(crate) fn check_in_order(&self, structure: &'static str) -> Result<(), PlanError> {
        self.check()?;
        let in_order = self.lateness == 0;
        in_order.then_some(()).ok_or(PlanError::Window { structure, reason: IN_ORDER })
    }

    /// How much longer than the window a key may still be found, in ticks.
    pub(crate) fn slack(&self) -> u64 {
        self.pace().slack(self.window.span().unwrap_or(0))
    }

    /// Entries that are live at a time when the window is at its capacity: those of the slack and the
    /// lateness too.
    pub(crate) fn live_keys(&self) -> f64 {
        let span = self.window.span().unwrap_or(1);
        let entries = Late::entries_per_key(span, self.lateness, self.slack());
        self.window.capacity() as f64 * entries
    }

    /// Keys for which the stash has room at the start. A window of arrivals cannot grow, so its stash
    /// does, should many keys want the same slots.
    pub(super) fn stash_reserved(&self) -> u64 {
        match self.window {
            Window::Count(_) => self.stash.min(STASHED),
            Window::Time { .. } | Window::Unbounded { .. } => self.stash,
        }
    }

    /// Bytes of the stash at the start.
    pub(crate) fn stash_memory(&self) -> u64 {
        self.stash_reserved() * stash::ENTRY
    }

    /// Lets the stash grow by no more than so many bytes: those of the list and, while it grows, of its copy.
    pub(crate) fn limit_stash(&mut self, bytes: u64) {
        self.stash = self.stash.min((bytes / (2 * stash::ENTRY)).max(STASHED));
    }

    /// Entries at which the table calls itself full. Some of the last 17th may have expired, see
    /// [`Slotted::note_entry`](super::core::Slotted::note_entry). A window of arrivals never holds more live ones than it was planned for.
    pub(crate) fn full_at(&self) -> f64 {
        match self.window {
            Window::Count(_) => libm::ceil(self.live_keys()),
            Window::Time { .. } | Window::Unbounded { .. } => {
                libm::ceil(self.live_keys() * 17.0 / 16.0) + 8.0
            }
        }
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) {
        let counting = matches!(self.window, Window::Count(_));
        out.u8(u8::from(counting));
        out.u64(self.window.span().unwrap_or(0));
        out.u64(self.window.capacity());
        out.u64(self.grain);
        out.u8(self.renewal as u8);
        out.u64(self.stash);
        late::write(self.lateness, out);
    }

    pub(crate) fn read(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        let counting = input.flag()?;
        Self::read_of(counting, input)
    }

    /// [`Keeps::read`], when it has been read whether arrivals are counted.
    pub(super) fn read_of(counting: bool, input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        let positive = |n| {
            core::num::NonZeroU64::new(n)
                .ok_or(SnapshotError::Invalid("a window of length or capacity 0"))
        };
        let (span, capacity) = (positive(input.u64()?)?, positive(input.u64()?)?);
        let window = match counting {
            true if span == capacity => Window::Count(span),
            true => return Err(SnapshotError::Invalid("no such window")),
            false => Window::Time { span, capacity },
        };
        let (grain, renewal, stash) = (input.u64()?, Renewal::read(input)?, input.u64()?);
        let keeps = Self { window, grain, lateness: late::read(input)?, renewal, stash };
        keeps.check().map_err(|_| SnapshotError::Invalid("a window of an impossible shape"))?;
        Ok(keeps)
    }
}
