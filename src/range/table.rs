//! One table of a range window: codes in one of two forms, for a number of keys at a share of the rate.

use super::code::Codes;
use super::flat::Flat;
use super::pool::Pool;
use super::size::Size;
use super::tiers::{Now, Tiers};
use super::{RangeSpec, ages::Ages};
use crate::{Overload, WhenFull};

/// Codes of keys, and what becomes of keys that find no room.
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
    /// The oldest grain of which there was anything left when all levels were swept for the last time.
    swept: u64,
    pub(super) overload: Overload,
    planned_blocks: usize,
    /// Items beyond which there are more keys than planned, and the rate is above its share.
    planned_items: u64,
    /// Blocks and items from which on it is full.
    full_at: usize,
    most_items: u64,
    pub(super) items: Items,
}

/// Items in either form, those of levels of one word or two.
#[derive(Clone)]
pub(super) enum Items {
    Flat(Flat),
    Narrow(Tiers<u64>),
    Wide(Tiers<u128>),
}

/// The same expression over any of them.
macro_rules! each_form {
    ($form:expr, $items:ident => $do:expr) => {
        match $form {
            Items::Flat($items) => $do,
            Items::Narrow($items) => $do,
            Items::Wide($items) => $do,
        }
    };
}
pub(super) use each_form;

impl RangeTable {
    pub(super) fn new(spec: RangeSpec, size: Size) -> Self {
        Self::with_places(spec, size, usize::MAX)
    }

    /// With places for at most so many blocks, before more have to be made.
    /// 1 at least.
    pub(super) fn with_places(spec: RangeSpec, size: Size, most: usize) -> Self {
        let items = match size.flat {
            Some(shape) => Items::Flat(Flat::new(size.ages, shape)),
            None => Self::levels(&size, most),
        };
        Self {
            spec,
            size,
            codes: size.codes,
            newest: 0,
            last: None,
            horizon: 0,
            forgetting: 0,
            swept: 0,
            overload: Overload::default(),
            planned_blocks: size.planned_blocks(),
            planned_items: size.planned_items(),
            full_at: size.full_at(),
            most_items: size.most_items(),
            items,
        }
    }

    fn levels(size: &Size, most: usize) -> Items {
        let chunk_bits = size.chunk_bits().min(most.ilog2());
        let pool = Pool::new(chunk_bits, size.most_blocks() >> chunk_bits);
        let (ages, shapes) = (size.ages, size.shapes(most));
        if size.is_narrow() {
            Items::Narrow(Tiers::new(ages, &shapes, pool))
        } else {
            Items::Wide(Tiers::new(ages, &shapes, pool))
        }
    }

    /// Bytes allocated.
    pub(super) fn memory(&self) -> usize {
        each_form!(&self.items, items => items.memory())
    }

    fn ages(&self) -> &Ages {
        &self.size.ages
    }

    /// Has it as many items as it may have, so that another code would raise its rate above its share?
    #[inline]
    fn is_full(&self) -> bool {
        let (used, items) = each_form!(&self.items, items => (items.used(), items.items()));
        used >= self.full_at || items >= self.most_items
    }

    /// Has all that it holds expired, for certain?
    pub(super) fn is_over(&self, moment: u64) -> bool {
        let ages = self.ages();
        let reach = ages.span.saturating_add(ages.grain);
        !ages.is_eternal() && self.last.is_none_or(|last| last.saturating_add(reach) < moment)
    }

    /// Marks a key as seen at this moment. `false` where there is no room for it, even after what has expired was dropped.
    pub(super) fn insert(&mut self, key: u128, moment: u64) -> bool {
        let (code, elapsed) = (self.codes.of(key), moment - self.newest);
        self.pass(moment);
        let mut pace = 256.0 + elapsed as f64 * self.size.pace_of_a_tick;
        if !self.put(code) {
            self.sweep(pace as i64 - 256);
            if !self.put(code) {
                return false;
            }
            pace = 256.0;
        }
        self.last = Some(moment);
        self.sweep(pace as i64);
        true
    }

    /// Drops all that has expired by the newest moment, wherever the sweeps are. `false` where there is no more of it than at
    /// the last time.
    #[cold]
    pub(super) fn drop_expired(&mut self) -> bool {
        let ages = self.ages();
        let oldest = ages.index(self.newest.saturating_sub(ages.span));
        if ages.is_eternal() || oldest <= self.swept {
            return false;
        }
        self.swept = oldest;
        self.sweep_levels();
        true
    }

    /// Marks a key as seen at this moment that it has already, or once had room for. In levels it is there twice until a sweep comes
    /// by; where too many are, all are swept at once. `false` where even that makes no room.
    #[cold]
    pub(super) fn renew(&mut self, key: u128, moment: u64) -> bool {
        self.pass(moment);
        if !self.has_room_in_passing(self.used()) {
            self.sweep_levels();
            if !self.has_room_in_passing(self.used()) {
                return false;
            }
        }
        let (code, index) = (self.codes.of(key), self.size.ages.index(moment));
        if !each_form!(&mut self.items, items => items.insert(code, index)) {
            return false;
        }
        self.last = Some(moment);
        self.sweep(256);
        true
    }

    /// Lets the sweep of each level go all the way round.
    fn sweep_levels(&mut self) {
        let now = Now { moment: self.newest, horizon: self.horizon };
        self.overload.forgotten += match &mut self.items {
            // It passes over all whenever it is full.
            Items::Flat(_) => 0,
            Items::Narrow(tiers) => tiers.sweep_all(now),
            Items::Wide(tiers) => tiers.sweep_all(now),
        };
    }

    /// Is there room for what a sweep will make room for? It does so by the block, so some keys may come in beforehand.
    fn has_room_in_passing(&self, used: usize) -> bool {
        let most_items = self.most_items.saturating_add(self.size.items_in_passing());
        used < self.full_at + self.full_at / 32 + 2 && self.items() < most_items
    }

    /// Marks a key as seen at the newest moment, where [`RangeTable::insert`] has found no room: the policy makes some, or it is
    /// refused.
    #[cold]
    pub(super) fn insert_by_policy(&mut self, key: u128) {
        let (code, index) = (self.codes.of(key), self.size.ages.index(self.newest));
        let is_in =
            self.make_room() && each_form!(&mut self.items, items => items.insert(code, index));
        if is_in {
            self.last = Some(self.newest);
        } else {
            self.overload.refused += 1;
        }
        self.sweep(256);
    }

    /// Remembers a code as of the newest moment, if there is room for it.
    #[inline]
    fn put(&mut self, code: u128) -> bool {
        let index = self.size.ages.index(self.newest);
        // One that is there already needs no room; levels do not know.
        let has_room = matches!(self.items, Items::Flat(_)) || !self.is_full();
        has_room && each_form!(&mut self.items, items => items.insert(code, index))
    }

    /// Lets the present moment be a later one.
    fn pass(&mut self, moment: u64) {
        let span = self.size.ages.span;
        if self.last.is_some_and(|last| last.saturating_add(span) < moment) && self.items() > 0 {
            // All has expired, though stamps may not tell yet.
            each_form!(&mut self.items, items => items.clear(moment));
        }
        let now = Now { moment, horizon: self.horizon };
        self.overload.forgotten += each_form!(&mut self.items, items => items.advance(now));
        self.newest = moment;
    }

    fn sweep(&mut self, pace: i64) {
        let now = Now { moment: self.newest, horizon: self.horizon };
        let (forgotten, used, items) = each_form!(&mut self.items, items => {
            (items.pace(pace, now), items.used(), items.items())
        });
        self.overload.forgotten += forgotten;
        // Each time that it is twice as large, in blocks or in keys: small windows have room to spare in their blocks.
        let grown = u32::try_from(self.overload.grown).unwrap_or(u32::MAX).min(31);
        let has_more_keys = !self.size.keeps_to_plan() && items > self.planned_items << grown;
        if used > self.planned_blocks << grown || has_more_keys {
            self.overload.grown += 1;
        }
    }

    /// Makes room for another key in a full table, if it may, by forgetting.
    fn make_room(&mut self) -> bool {
        if self.spec.terms.when_full == WhenFull::Refuse || self.size.ages.is_eternal() {
            return false;
        }
        let rounds = match &mut self.items {
            Items::Flat(flat) => {
                self.overload.forgotten += flat.forget_oldest(self.newest);
                return !self.is_full();
            }
            Items::Narrow(tiers) => tiers.last_rounds(),
            Items::Wide(tiers) => tiers.last_rounds(),
        };
        self.forget_by_rounds(rounds)
    }

    /// Moves the horizon by an eighth of the window when all from before the last one is gone, as the rounds of the last level's
    /// sweep tell, and sweeps faster.
    fn forget_by_rounds(&mut self, rounds: u64) -> bool {
        let span = self.size.ages.span;
        // Rounds begin again at 0 after a pause in which all expires.
        if rounds >= self.forgetting || rounds + 2 < self.forgetting {
            let from = self.horizon.max(self.newest.saturating_sub(span));
            self.horizon = from.saturating_add(span.div_ceil(8)).min(self.newest);
            // One that has begun has items of before.
            self.forgetting = rounds + 2;
        }
        let used = self.used();
        let now = Now { moment: self.newest, horizon: self.horizon };
        self.overload.forgotten += match &mut self.items {
            Items::Flat(_) => 0,
            Items::Narrow(tiers) => tiers.hasten(now),
            Items::Wide(tiers) => tiers.hasten(now),
        };
        self.has_room_in_passing(used)
    }

    /// Was this key seen within the window that ends at this moment?
    pub(super) fn contains(&self, key: u128, moment: u64) -> bool {
        let code = self.codes.of(key);
        each_form!(&self.items, items => {
            let live = self.ages().live(items.index, moment, u64::MAX);
            items.finds((code, code), &live)
        })
    }

    /// Was any key from the first to the last seen within the last so many ticks or arrivals?
    #[inline]
    pub(super) fn any_within(&self, (first, last): (u128, u128), within: u64, moment: u64) -> bool {
        match self.codes.between(first, last) {
            Some(pieces) => each_form!(&self.items, items => {
                let live = self.ages().live(items.index, moment, within);
                pieces.as_slice().iter().any(|&piece| items.finds(piece, &live))
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
        let keys = self.size.counted(self.items() as f64);
        (keys * length as f64 / self.codes.count as f64).min(1.0)
    }

    /// Keys that it takes for certain, besides those that it has.
    pub(super) fn room(&self) -> u64 {
        let capacity = self.spec.terms.window.capacity();
        (capacity - capacity / 8).saturating_sub(self.items())
    }

    /// Items, those that have expired among them; of levels some twice.
    pub(super) fn items(&self) -> u64 {
        each_form!(&self.items, items => items.items())
    }

    /// Blocks in use.
    fn used(&self) -> usize {
        each_form!(&self.items, items => items.used())
    }

    /// Is there room for all that another table of its size has at this moment?
    pub(super) fn has_room_for(&self, other: &Self, moment: u64) -> bool {
        if let Items::Flat(_) = self.items {
            return self.live(moment) + other.live(moment) <= self.most_items;
        }
        self.used().saturating_add(other.used()) <= self.full_at
            && self.items().saturating_add(other.items()) < self.most_items
    }

    /// Keys that are live at this moment; one that waits in an upper level may count twice.
    pub(super) fn live(&self, moment: u64) -> u64 {
        let mut count = 0;
        each_form!(&self.items, items => {
            let live = self.ages().live(items.index, moment, u64::MAX);
            items.for_each(|_, stamp| count += u64::from(live.has(stamp)));
        });
        count
    }

    /// Takes over what another of its size remembers.
    pub(super) fn merge(&mut self, other: &Self, moment: u64) {
        self.pass(moment);
        if let Items::Flat(flat) = &mut self.items {
            // There is room for what is live.
            flat.drop_expired(moment);
        }
        let ages = *self.ages();
        each_form!(&other.items, theirs => {
            let live = ages.live(theirs.index, moment, u64::MAX);
            theirs.for_each(|code, stamp| {
                if live.has(stamp) {
                    let index = theirs.index.saturating_sub(live.age(stamp));
                    if !each_form!(&mut self.items, items => items.insert(code, index)) {
                        self.overload.refused += 1;
                    }
                    self.sweep(256);
                }
            });
        });
        self.last = self.last.max(other.last);
        self.overload = self.overload.plus(other.overload);
    }
}
