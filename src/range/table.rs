//! One table of a range window: levels of codes, for so many keys at a share of the rate.

use super::code::Codes;
use super::pool::Pool;
use super::size::Size;
use super::tiers::{Now, Tiers};
use super::word::Word;
use super::{RangeSpec, ages::Ages};
use crate::{Overload, WhenFull};

/// Codes of keys in levels, and what becomes of keys that find no room.
///
/// Moments are those of its window, which go on and never back.
#[derive(Clone)]
pub(super) struct RangeTable {
    /// What it was built for: the keys that it takes, at its share of the rate.
    pub(super) spec: RangeSpec,
    pub(super) size: Size,
    codes: Codes,
    /// The newest moment; arrivals so far in a count window.
    pub(super) newest: u64,
    /// When the last key was remembered.
    pub(super) last: Option<u64>,
    /// Moments before this one are being forgotten, for lack of room.
    pub(super) horizon: u64,
    /// In which round of the last level the horizon was set.
    pub(super) forgetting: u64,
    pub(super) overload: Overload,
    planned_blocks: usize,
    /// Items beyond which there are more keys than planned, and the rate is above its share.
    planned_items: u64,
    full_at: usize,
    pub(super) tiers: Width,
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

impl RangeTable {
    pub(super) fn new(spec: RangeSpec, size: Size) -> Self {
        Self::with_places(spec, size, usize::MAX)
    }

    /// With places for at most so many blocks, before more have to be made.
    /// 1 at least.
    pub(super) fn with_places(spec: RangeSpec, size: Size, most: usize) -> Self {
        let chunk_bits = size.chunk_bits().min(most.ilog2());
        let pool = Pool::new(chunk_bits, size.most_blocks() >> chunk_bits);
        let (ages, shapes) = (size.ages, size.shapes(most));
        let tiers = if size.is_narrow() {
            Width::Narrow(Tiers::new(ages, &shapes, pool))
        } else {
            Width::Wide(Tiers::new(ages, &shapes, pool))
        };
        Self {
            spec,
            size,
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

    /// Bytes allocated.
    pub(super) fn memory(&self) -> usize {
        each_width!(&self.tiers, tiers => tiers.memory())
    }

    fn ages(&self) -> &Ages {
        &self.size.ages
    }

    /// Has it as many items as it may have, so that another key would raise its rate above its share?
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        let (used, items) = each_width!(&self.tiers, tiers => (tiers.pool.used(), tiers.items()));
        used >= self.full_at || self.has_all_its_items(items, 0)
    }

    /// Has all that it holds expired, for certain?
    pub(super) fn is_over(&self, moment: u64) -> bool {
        let ages = self.ages();
        let reach = ages.span.saturating_add(ages.grain);
        !ages.is_eternal() && self.last.is_none_or(|last| last.saturating_add(reach) < moment)
    }

    /// Marks a key as seen at this moment.
    pub(super) fn insert(&mut self, key: u128, moment: u64) {
        let code = self.codes.of(key);
        let elapsed = moment - self.newest;
        self.pass(moment);
        if self.has_room() {
            let index = self.size.ages.index(moment);
            each_width!(&mut self.tiers, tiers => tiers.insert(code, index));
            self.last = Some(moment);
        } else {
            self.overload.refused += 1;
        }
        let pace = 256.0 + elapsed as f64 * self.size.pace_of_a_tick;
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
        let has_more_keys = !self.size.keeps_to_plan() && items > self.planned_items << grown;
        if used > self.planned_blocks << grown || has_more_keys {
            self.overload.grown += 1;
        }
    }

    /// Is there room for another key? Where there is not, makes some if it may.
    #[inline]
    fn has_room(&mut self) -> bool {
        !self.is_full() || self.make_room(self.used())
    }

    /// Has a window that keeps to its plan as many items as it may have, and some more? Past them its rate would be above the promised one.
    #[inline]
    fn has_all_its_items(&self, items: u64, more: u64) -> bool {
        self.size.keeps_to_plan() && items >= self.planned_items + more
    }

    /// Moves the horizon on by an eighth of the window when what lay behind the last one is gone, and sweeps
    /// faster.
    #[cold]
    fn make_room(&mut self, used: usize) -> bool {
        if self.spec.terms.when_full == WhenFull::Refuse || self.size.ages.is_eternal() {
            return false;
        }
        let span = self.size.ages.span;
        let full_at = self.full_at;
        let rounds =
            each_width!(&self.tiers, tiers => tiers.levels.last().map_or(0, |level| level.rounds));
        // Rounds begin again at 0 after a pause in which all expires.
        if rounds >= self.forgetting || rounds + 2 < self.forgetting {
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
        used < full_at + full_at / 32 + 2
            && !self.has_all_its_items(items, self.size.items_in_passing())
    }

    /// Was this key seen within the window that ends at this moment?
    pub(super) fn contains(&self, key: u128, moment: u64) -> bool {
        let code = self.codes.of(key);
        each_width!(&self.tiers, tiers => {
            let live = self.ages().live(tiers.index, moment, u64::MAX);
            tiers.finds((code, code), &live)
        })
    }

    /// Was any key from the first to the last seen within the last so many ticks or arrivals?
    #[inline]
    pub(super) fn any_within(&self, (first, last): (u128, u128), within: u64, moment: u64) -> bool {
        match self.codes.between(first, last) {
            Some(pieces) => each_width!(&self.tiers, tiers => {
                let live = self.ages().live(tiers.index, moment, within);
                pieces.as_slice().iter().any(|&piece| tiers.finds(piece, &live))
            }),
            // More than half of all codes.
            None => {
                let within = within.min(self.ages().span);
                self.last.is_some_and(|last| moment - last <= within)
            }
        }
    }

    /// Lets time pass without an arrival.
    pub(super) fn advance(&mut self, moment: u64) {
        let elapsed = moment - self.newest;
        self.pass(moment);
        self.sweep((elapsed as f64 * self.size.pace_of_a_tick) as i64);
    }

    /// The rate for intervals of so many keys, with as many keys as there are now.
    pub(super) fn fpr_of(&self, length: u128) -> f64 {
        let items = each_width!(&self.tiers, tiers => tiers.items()) as f64;
        // Some have expired, and some are in two levels; beyond that it is fuller than planned.
        let keys = self.size.keys;
        let keys = if items <= 1.25 * keys { items.min(keys) } else { items };
        (keys * length as f64 / self.codes.count as f64).min(1.0)
    }

    /// Blocks in use.
    pub(super) fn used(&self) -> usize {
        each_width!(&self.tiers, tiers => tiers.pool.used())
    }

    /// Is there room for all that another table of its size has?
    pub(super) fn has_room_for(&self, other: &Self) -> bool {
        let items = |table: &Self| each_width!(&table.tiers, tiers => tiers.items());
        self.used().saturating_add(other.used()) <= self.full_at
            && !self.has_all_its_items(items(self).saturating_add(items(other)), 0)
    }

    /// Keys that are live at this moment; one that waits in an upper level may count twice.
    pub(super) fn live(&self, moment: u64) -> u64 {
        let mut count = 0;
        each_width!(&self.tiers, tiers => {
            let live = self.ages().live(tiers.index, moment, u64::MAX);
            tiers.for_each(|item| count += u64::from(live.has(item.low())));
        });
        count
    }

    /// Takes over what another of its size remembers.
    pub(super) fn merge(&mut self, other: &Self, moment: u64) {
        self.pass(moment);
        let ages = *self.ages();
        let bits = ages.bits;
        each_width!(&other.tiers, theirs => {
            let live = ages.live(theirs.index, moment, u64::MAX);
            theirs.for_each(|item| {
                let stamp = item.low();
                if live.has(stamp) {
                    let index = theirs.index.saturating_sub(live.age(stamp));
                    let code = (item >> bits).wide();
                    each_width!(&mut self.tiers, tiers => tiers.insert(code, index));
                    self.sweep(256);
                }
            });
        });
        self.last = self.last.max(other.last);
        self.overload = self.overload.plus(other.overload);
    }
}
