//! The range window.

use super::code::Codes;
use super::pool::Pool;
use super::tiers::{Now, Tiers};
use super::{RangeFilter, RangePlan};
use crate::{MergeError, Overload, PlanError, Tick, Verdict, WhenFull, Window};
use core::fmt;
use core::ops::RangeInclusive;

/// Was any key of an interval seen?
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub enum Answer {
    /// None of them within the window: certain.
    No,
    /// One of them was, certain but for a false positive rate.
    Perhaps {
        /// The rate that holds for an interval of this length, with as many keys as there are now.
        fpr: f64,
    },
}

impl Answer {
    /// Is it [`Answer::Perhaps`]?
    pub const fn is_perhaps(self) -> bool {
        matches!(self, Self::Perhaps { .. })
    }
}

/// A window over whole numbers that is asked for intervals, at a cost that does not grow with their length.
///
/// Keys are hashed so that neighbours stay neighbours, and kept as sorted codes, each with a stamp of its age,
/// Elias-Fano coded in blocks of 1 KiB. There are a few *levels*: new codes come into a small sorted buffer; a
/// sweep goes round each level, and at every point merges in what the level above has there, drops what has
/// expired and rewrites what is left. The last level holds nearly all.
///
/// # Guarantee
/// An interval with a key of the window in it is never called empty, whatever its length, but for keys that the
/// policy for full windows had to give up, which [`RangeWindow::overload`] counts. Another is called occupied with
/// probability at most [`RangeWindow::fpr`] if it is as long as planned for, however keys are distributed and
/// however near they are; a shorter one with a probability as much lower, a longer one as much higher, as
/// [`Answer::Perhaps`] says. The probability is over seeds. Questions that lie close together share their luck: a run of
/// keys may cover the codes of a run of questions elsewhere, all or none of them.
///
/// Keys are reported for at most [`RangeWindow::slack`] longer than the window. An interval that covers more than half of all
/// codes, which is longer than `keys / (2·fpr)` planned intervals, is answered by when the last key of all came.
///
/// # More keys than planned
/// [`WhenFull::Forget`] and [`WhenFull::Refuse`] keep to the planned number of keys and a quarter more (in windows of some hundred
/// keys, to twice as many), as those that wait in upper levels cannot be told from ones that are there twice. So their rate is
/// at most that much above the promised one, and their memory within
/// [`RangePlan::most_memory`](super::RangePlan::most_memory); what they give up is counted. [`WhenFull::Grow`] keeps every key: its rate rises with
/// their number, as each code is as likely to be hit; [`RangeWindow::estimated_fpr`] and every answer say how far, and
/// [`Overload::grown`] counts each doubling of keys or memory. Unlike a filter of points it adds no tables, as all of them would have to be asked. To keep the rate, plan for
/// more keys or forget.
///
/// # Cost
/// `log2(L/ε)` bits per key for its code and as many more as it takes to distinguish `window/slack` ages, one more or
/// two; 2.5 for the order; up to 2 for the upper levels and the ends of blocks: see [`RangePlan::bits_per_key`](super::RangePlan::bits_per_key). No
/// stamp costs more than an eighth of the window for slack needs, 4 bits; none at all `log2` of the window.
/// A question searches the buffer and one block of each level, 2 to 5 of them. Where an interval has many keys that are older
/// than asked for, it goes through them. An arrival does some steps of the sweeps: 20 to 40 codes are rewritten, a few
/// microseconds at most at once. After a gap in a window of time the sweeps have to catch up, up to a round of
/// each level. Memory is taken as it is needed, in chunks of about a hundredth of what is planned.
///
/// # Example
/// ```
/// use core::num::NonZeroU64;
/// use lately::range::{Answer, RangeSpec};
/// use lately::{Tick, Window};
/// let window = Window::Time {
///     span: NonZeroU64::new(600).unwrap(),
///     capacity: NonZeroU64::new(10_000).unwrap(),
/// };
/// let mut seen = RangeSpec::new(window).interval(1 << 16).fpr(1e-3).slack(75).plan()?.build();
/// seen.insert(0x0A01_0203, Tick(100));
/// // 10.1.0.0/16
/// assert!(seen.any(0x0A01_0000..=0x0A01_FFFF, Tick(300)).is_perhaps());
/// assert!(!seen.any_within(0x0A01_0000..=0x0A01_FFFF, 60, Tick(300)).is_perhaps());
/// assert_eq!(seen.any(0x0A02_0000..=0x0A02_FFFF, Tick(300)), Answer::No);
/// # Ok::<(), lately::PlanError>(())
/// ```
///
/// # Reference
/// M. Goswami, A. Grønlund, K. G. Larsen, R. Pagh, "Approximate range emptiness in constant time and optimal
/// space", SODA 2015, doi:10.1137/1.9781611973730.52, for the hash; M. Costa, P. Ferragina, G. Vinciguerra, "Grafite: taming adversarial
/// queries with optimal range filters", SIGMOD 2024, doi:10.1145/3639258, for the codes in Elias-Fano coding; X. Wang et al., IEEE
/// Access 7, 2019, for the problem over a window (see [`DleftWindow`](crate::window::DleftWindow)).
///
/// # Differs from the papers
/// - Grafite's set is static. Here levels of sorted blocks are swept, as the runs of a log-structured merge tree are merged, but bit by
///   bit, and what a level has given away is known from where the two sweeps are.
/// - Ages: a stamp a code, so that a question asks a few levels for all ages, and not a set for each slice of the window.
/// - Blocks of a power of two keys in the hash, not of the number of codes: no division.
#[derive(Clone)]
pub struct RangeWindow {
    pub(super) plan: RangePlan,
    pub(super) codes: Codes,
    /// The newest moment; arrivals so far in a count window.
    pub(super) newest: u64,
    /// When the last key was remembered.
    pub(super) last: Option<u64>,
    /// Moments before this one are being forgotten, for lack of room.
    pub(super) horizon: u64,
    /// In which round of the last level the horizon was set.
    pub(super) forgetting: u64,
    pub(super) overload: Overload,
    pub(super) planned_blocks: usize,
    /// Items beyond which there are more keys than planned, and the rate is above the promised one.
    pub(super) planned_items: u64,
    pub(super) full_at: usize,
    pub(super) tiers: Width,
}

/// What it was built from and what became of it: the items would be millions.
impl fmt::Debug for RangeWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RangeWindow")
            .field("plan", &self.plan)
            .field("newest", &self.newest)
            .field("overload", &self.overload)
            .field("memory", &self.memory())
            .finish_non_exhaustive()
    }
}

/// Items of one word or two.
#[derive(Clone)]
pub(super) enum Width {
    Narrow(Tiers<u64>),
    Wide(Tiers<u128>),
}

/// The same expression over either width.
macro_rules! each_width {
    ($width:expr, $tiers:ident => $do:expr) => {
        match $width {
            Width::Narrow($tiers) => $do,
            Width::Wide($tiers) => $do,
        }
    };
}
pub(super) use each_width;

impl RangeWindow {
    pub(super) fn new(plan: RangePlan) -> Self {
        Self::with_places(plan, usize::MAX)
    }

    /// With places for at most so many blocks, before more have to be made.
    /// 1 at least.
    pub(super) fn with_places(plan: RangePlan, most: usize) -> Self {
        let size = plan.size;
        let chunk_bits = size.chunk_bits().min(most.ilog2());
        let pool = Pool::new(chunk_bits, size.most_blocks() >> chunk_bits);
        let (ages, shapes) = (size.ages, size.shapes(most));
        let tiers = if size.is_narrow() {
            Width::Narrow(Tiers::new(ages, &shapes, pool))
        } else {
            Width::Wide(Tiers::new(ages, &shapes, pool))
        };
        Self {
            plan,
            codes: size.codes,
            newest: 0,
            last: None,
            horizon: 0,
            forgetting: 0,
            overload: Overload::default(),
            planned_blocks: size.planned_blocks(),
            planned_items: size.planned_items(),
            full_at: size.full_at(),
            tiers,
        }
    }

    /// The plan it was built from.
    pub const fn plan(&self) -> &RangePlan {
        &self.plan
    }

    /// The window.
    pub const fn window(&self) -> Window {
        self.plan.window()
    }

    /// How much longer than the window a key may be reported, in ticks or arrivals.
    pub const fn slack(&self) -> u64 {
        self.plan.slack()
    }

    /// The false positive rate promised for intervals of the planned length.
    pub const fn fpr(&self) -> f64 {
        self.plan.fpr()
    }

    /// The false positive rate for intervals of the planned length with the keys that are there now: above
    /// [`RangeWindow::fpr`] where there are more than planned.
    pub fn estimated_fpr(&self) -> f64 {
        self.fpr_of(self.plan.interval())
    }

    /// Bytes allocated.
    pub fn memory(&self) -> usize {
        each_width!(&self.tiers, tiers => tiers.memory())
    }

    /// What became of keys beyond the planned capacity.
    pub fn overload(&self) -> Overload {
        self.overload
    }

    /// The moment of a question or an arrival.
    #[inline]
    fn moment(&self, now: Tick) -> u64 {
        match self.window() {
            Window::Count(_) => self.newest + 1,
            Window::Time { .. } | Window::Unbounded { .. } => now.0.max(self.newest),
        }
    }

    /// Forgets everything: it is as it was built.
    ///
    /// # Errors
    /// [`PlanError::Unavailable`] when there is no memory for what it begins with; then nothing has changed.
    pub fn clear(&mut self) -> Result<(), PlanError> {
        *self = self.plan.try_build()?;
        Ok(())
    }

    /// One arrival: marks the key as seen now. In a count window every call is an arrival.
    pub fn insert(&mut self, key: u128, now: Tick) {
        let (moment, code) = (self.moment(now), self.codes.of(key));
        let elapsed = moment - self.newest;
        self.pass(moment);
        if self.has_room() {
            let index = self.plan.size.ages.index(moment);
            each_width!(&mut self.tiers, tiers => tiers.insert(code, index));
            self.last = Some(moment);
        } else {
            self.overload.refused += 1;
        }
        let pace = 256.0 + elapsed as f64 * self.plan.size.pace_of_a_tick;
        self.sweep(pace as i64);
    }

    /// Lets the present moment be a later one.
    fn pass(&mut self, moment: u64) {
        let now = Now { moment, horizon: self.horizon };
        self.overload.forgotten += each_width!(&mut self.tiers, tiers => tiers.advance(now));
        self.newest = moment;
    }

    fn sweep(&mut self, pace: i64) {
        let now = Now { moment: self.newest, horizon: self.horizon };
        let (forgotten, used, items) = each_width!(&mut self.tiers, tiers => {
            (tiers.pace(pace, now), tiers.pool.used(), tiers.items())
        });
        self.overload.forgotten += forgotten;
        // Each time that it is twice as large, in blocks or in keys: small windows have room to spare in their blocks.
        let grown = u32::try_from(self.overload.grown).unwrap_or(u32::MAX).min(31);
        let has_more_keys = !self.plan.size.keeps_to_plan() && items > self.planned_items << grown;
        if used > self.planned_blocks << grown || has_more_keys {
            self.overload.grown += 1;
        }
    }

    /// Is there room for another key? Where there is not, makes some if it may.
    #[inline]
    fn has_room(&mut self) -> bool {
        let (used, items) = each_width!(&self.tiers, tiers => (tiers.pool.used(), tiers.items()));
        let fits = used < self.full_at && !self.has_all_its_items(items, 0);
        fits || self.make_room(used)
    }

    /// Has a window that keeps to its plan as many items as it may have, and some more? Past them its rate would be above the promised one.
    #[inline]
    fn has_all_its_items(&self, items: u64, more: u64) -> bool {
        self.plan.size.keeps_to_plan() && items >= self.planned_items + more
    }

    /// Moves the horizon on by an eighth of the window when what lay behind the last one is gone, and sweeps
    /// faster.
    #[cold]
    fn make_room(&mut self, used: usize) -> bool {
        if self.plan.spec.terms.when_full == WhenFull::Refuse || self.plan.size.ages.is_eternal() {
            return false;
        }
        let span = self.plan.size.ages.span;
        let full_at = self.full_at;
        let rounds =
            each_width!(&self.tiers, tiers => tiers.levels.last().map_or(0, |level| level.rounds));
        if rounds >= self.forgetting {
            let from = self.horizon.max(self.newest.saturating_sub(span));
            self.horizon = from.saturating_add(span.div_ceil(8)).min(self.newest);
            // One that has begun has items of before.
            self.forgetting = rounds + 2;
        }
        let now = Now { moment: self.newest, horizon: self.horizon };
        let forgotten = each_width!(&mut self.tiers, tiers => {
            let last = tiers.levels.len() - 1;
            tiers.step(last, now) + tiers.step(last, now)
        });
        self.overload.forgotten += forgotten;
        let items = each_width!(&self.tiers, tiers => tiers.items());
        // A sweep frees room by the block, so some keys may come in beforehand.
        used < full_at + full_at / 32 + 2 && !self.has_all_its_items(items, self.planned_items / 16)
    }

    /// One arrival: was the key seen within the window? Then marks it as seen now.
    pub fn observe(&mut self, key: u128, now: Tick) -> Verdict {
        let seen = self.contains(key, now);
        self.insert(key, now);
        if seen { Verdict::Duplicate } else { Verdict::Fresh }
    }

    /// Was this key seen within the window that ends now?
    pub fn contains(&self, key: u128, now: Tick) -> bool {
        let code = self.codes.of(key);
        let moment = self.moment(now);
        each_width!(&self.tiers, tiers => {
            let live = self.plan.size.ages.live(tiers.index, moment, u64::MAX);
            tiers.finds((code, code), &live)
        })
    }

    /// Was any of these keys seen within the window that ends now? An empty interval holds none.
    #[inline]
    pub fn any(&self, keys: RangeInclusive<u128>, now: Tick) -> Answer {
        self.any_within(keys, u64::MAX, now)
    }

    /// The same for a window of the last `within` ticks or arrivals; a longer one than its own is
    /// its own.
    pub fn any_within(&self, keys: RangeInclusive<u128>, within: u64, now: Tick) -> Answer {
        if keys.is_empty() {
            return Answer::No;
        }
        let (first, last) = keys.into_inner();
        let moment = self.moment(now);
        let found = match self.codes.between(first, last) {
            Some(pieces) => each_width!(&self.tiers, tiers => {
                let live = self.plan.size.ages.live(tiers.index, moment, within);
                pieces.as_slice().iter().any(|&piece| tiers.finds(piece, &live))
            }),
            // More than half of all codes.
            None => {
                let within = within.min(self.plan.size.ages.span);
                self.last.is_some_and(|last| moment - last <= within)
            }
        };
        if found {
            Answer::Perhaps { fpr: self.fpr_of((last - first).saturating_add(1)) }
        } else {
            Answer::No
        }
    }

    /// Lets time pass without an arrival. An earlier moment than the newest seen changes nothing.
    pub fn advance(&mut self, now: Tick) {
        if let Window::Time { .. } = self.window() {
            let moment = self.moment(now);
            let elapsed = moment - self.newest;
            self.pass(moment);
            self.sweep((elapsed as f64 * self.plan.size.pace_of_a_tick) as i64);
        }
    }

    /// Takes over what another of the same plan remembers.
    ///
    /// # Errors
    /// [`MergeError`] says why the two do not go together; then nothing has changed.
    pub fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        if self.plan != other.plan {
            return Err(MergeError::Shape);
        }
        if let Window::Count(_) = self.window() {
            return Err(MergeError::Counting);
        }
        let used = |window: &Self| each_width!(&window.tiers, tiers => tiers.pool.used());
        if used(self).saturating_add(used(other)) > self.full_at {
            return Err(MergeError::Full);
        }
        self.pass(self.newest.max(other.newest));
        let (ages, moment) = (self.plan.size.ages, self.newest);
        let bits = ages.bits;
        each_width!(&other.tiers, theirs => {
            let live = ages.live(theirs.index, moment, u64::MAX);
            theirs.for_each(|item| {
                let stamp = super::word::Word::low(item);
                if live.has(stamp) {
                    let index = theirs.index.saturating_sub(live.age(stamp));
                    let code = super::word::Word::wide(item >> bits);
                    each_width!(&mut self.tiers, tiers => tiers.insert(code, index));
                    self.sweep(256);
                }
            });
        });
        self.last = self.last.max(other.last);
        self.overload = self.overload.plus(other.overload);
        Ok(())
    }
}

impl crate::filter::sealed::Sealed for RangeWindow {}

impl RangeFilter for RangeWindow {
    fn insert(&mut self, key: u128, now: Tick) {
        self.insert(key, now);
    }

    fn any_in(&self, keys: RangeInclusive<u128>, within: Option<u64>, now: Tick) -> bool {
        self.any_within(keys, within.unwrap_or(u64::MAX), now).is_perhaps()
    }

    /// With as many keys as there are now.
    fn fpr_of(&self, length: u128) -> f64 {
        let items = each_width!(&self.tiers, tiers => tiers.items()) as f64;
        // Some have expired, and some are in two levels; beyond that it is fuller than planned.
        let keys = self.plan.size.keys;
        let keys = if items <= 1.25 * keys { items.min(keys) } else { items };
        (keys * length as f64 / self.codes.count as f64).min(1.0)
    }
}
