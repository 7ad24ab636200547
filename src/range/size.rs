//! How large a range window's parts must be.

use super::RangeSpec;
use super::ages::Ages;
use super::block::{Block, Layout};
use super::code::Codes;
use super::flat::FlatShape;
use super::level::{INTAKE, LevelShape};
use super::tiers::MOST_LEVELS;
use super::word::{BLOCK, Word};
use crate::{PlanError, WhenFull, Window};
use alloc::vec::Vec;

/// Rounds of the last level's sweep a window of arrivals: more cost time an arrival, fewer keep more items in
/// the upper levels, where they take more room, and twice.
const ROUNDS: f64 = 16.0;

/// Arrivals in which the first level's sweep goes round, about: twice as many as the buffer holds.
const FIRST_PERIOD: f64 = 384.0;

/// How many times longer than the one above a level's sweep takes, at most.
const RATIO: f64 = 18.0;

/// How long a round may become, relative to its period: intakes add steps to it.
const LATE: f64 = 1.125;

/// The most items that a flat table is chosen for: an arrival moves half of them, 4 to 8 KB.
const MOST_IN_FLAT: usize = 2_500;

/// The most items that a flat table may have, if a snapshot says that it is one.
const MOST_IN_ANY_FLAT: f64 = 8_192.0;

/// Passes over a flat table per window, at most. There is room for this share of the keys in addition, so that full tables
/// need no more of them.
const PASSES: u64 = 16;

/// Items that a flat table has room for in addition, at least.
const LEAST_SPARE: f64 = 16.0;

/// Bits of a block that items can take.
const BLOCK_BITS: f64 = 8.0 * (BLOCK as f64 - 8.0);

/// The numbers a window is built from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Size {
    pub(super) ages: Ages,
    pub(super) codes: Codes,
    /// Keys that may be live at once.
    pub(super) keys: f64,
    /// 256ths of an arrival that a tick counts as for the sweeps.
    pub(super) pace_of_a_tick: f64,
    /// Arrivals that one round of the last level's sweep takes.
    period: f64,
    /// Of the last level's period that are arrivals of a full window.
    share: f64,
    capacity: f64,
    limit: Option<u64>,
    keeps_to_plan: bool,
    pub(super) promise: Promise,
    /// Of a table without levels.
    pub(super) flat: Option<FlatShape>,
}

/// How a table keeps its items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// In one sorted array: for few.
    Flat,
    /// In levels of blocks.
    Levels,
}

/// How full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fullness {
    /// With keys that arrive evenly over all codes.
    Usual,
    /// With all arrivals just behind the sweep.
    Most,
}

/// Which rate is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Promise {
    /// That of as many keys as planned for. What grows has more of them, and a higher rate.
    AsPlanned,
    /// That of as many items as there are ever taken in: it is kept whatever comes.
    Whatever,
}

impl Size {
    /// In the form that takes less memory.
    pub(super) fn new(spec: &RangeSpec, promise: Promise) -> Result<Self, PlanError> {
        let levels = Self::in_levels(spec, promise)?;
        let is_smaller =
            |flat: &FlatShape| flat.most <= MOST_IN_FLAT && flat.memory() <= levels.usual_memory();
        match Self::in_flat(spec, promise) {
            Ok(size) if size.flat.as_ref().is_some_and(is_smaller) => Ok(size),
            _ => Ok(levels),
        }
    }

    pub(super) fn in_form(
        form: Form,
        spec: &RangeSpec,
        promise: Promise,
    ) -> Result<Self, PlanError> {
        match form {
            Form::Flat => Self::in_flat(spec, promise),
            Form::Levels => Self::in_levels(spec, promise),
        }
    }

    pub(super) fn form(&self) -> Form {
        if self.flat.is_some() { Form::Flat } else { Form::Levels }
    }

    /// Without codes yet. `ticks`, from the length of the window and the period of its levels, is the time within which all items
    /// are looked at again.
    fn without_codes(
        spec: &RangeSpec,
        promise: Promise,
        ticks: impl FnOnce(u64, f64) -> u64,
    ) -> Result<Self, PlanError> {
        let capacity = spec.terms.window.capacity() as f64;
        // Time passes in two ways, each of which pays a half at full load.
        let share = if matches!(spec.terms.window, Window::Time { .. }) { 0.5 } else { 1.0 };
        let period = (capacity / (ROUNDS * share)).max(capacity.min(64.0));
        let pace_of_a_tick = match spec.terms.window {
            Window::Time { span, capacity } => capacity.get() as f64 / span.get() as f64 * 256.0,
            Window::Count(_) | Window::Unbounded { .. } => 0.0,
        };
        let ages = match spec.terms.window.span() {
            Some(span) => Ages::new(span, spec.terms.slack, ticks(span, period))?,
            None => Ages::ETERNAL,
        };
        let slack = if ages.is_eternal() { 0.0 } else { ages.grain as f64 / ages.span as f64 };
        Ok(Self {
            ages,
            codes: Codes::new(1, spec.terms.seed),
            keys: libm::ceil(capacity * (1.0 + slack)),
            pace_of_a_tick,
            period,
            share,
            capacity,
            limit: spec.terms.memory,
            keeps_to_plan: spec.terms.when_full != WhenFull::Grow,
            promise,
            flat: None,
        })
    }

    /// With as many codes as it takes to keep the rate with this number of items.
    fn with_codes_for(mut self, items: f64, spec: &RangeSpec) -> Result<Self, PlanError> {
        let count = libm::ceil(items * spec.interval as f64 / spec.terms.fpr);
        if !count.is_finite() || count >= libm::exp2(f64::from(126 - self.ages.bits)) {
            return Err(PlanError::TooLarge(
                "so long an interval at so low a false positive rate cannot be planned: 2^126 codes are not enough",
            ));
        }
        self.codes = Codes::new(count as u128, spec.terms.seed);
        Ok(self)
    }

    fn in_flat(spec: &RangeSpec, promise: Promise) -> Result<Self, PlanError> {
        let size = Self::without_codes(spec, promise, |span, _| span.div_ceil(PASSES))?;
        let spare = if size.ages.is_eternal() {
            0.0
        } else {
            libm::ceil(size.capacity / PASSES as f64).max(LEAST_SPARE)
        };
        let most = size.keys + spare;
        if most > MOST_IN_ANY_FLAT {
            return Err(PlanError::TooLarge("a flat table of more than 8,192 items would be slow"));
        }
        let counted = match promise {
            // There may be more items than keys, but those have expired.
            Promise::AsPlanned => size.keys,
            Promise::Whatever => most,
        };
        let mut size = size.with_codes_for(counted, spec)?;
        size.flat = Some(FlatShape::new(most as usize, size.codes.count, size.ages.bits));
        Ok(size)
    }

    fn in_levels(spec: &RangeSpec, promise: Promise) -> Result<Self, PlanError> {
        let mut size = Self::without_codes(spec, promise, |span, period| {
            let per_arrival = span as f64 / spec.terms.window.capacity() as f64;
            (libm::ceil(2.0 * LATE * period * per_arrival) as u64).saturating_add(2)
        })?;
        let most = match promise {
            Promise::AsPlanned => size.keys,
            Promise::Whatever => size.planned_items() as f64 + size.items_in_passing() as f64,
        };
        size = size.with_codes_for(most, spec)?;
        if size.blocks_of_items(Fullness::Most) > libm::exp2(30.0) {
            return Err(PlanError::TooLarge(
                "a range window of more than 2^40 bytes cannot be planned",
            ));
        }
        Ok(size)
    }

    fn code_bits(&self) -> u32 {
        128 - self.codes.count.leading_zeros()
    }

    /// Are items of 64 bits wide enough?
    pub(super) fn is_narrow(&self) -> bool {
        self.code_bits() + self.ages.bits <= <u64 as Word>::BITS
            && self.levels().all(|level| level.shape().layout.bits <= u64::FIELD)
    }

    /// Levels from the small ones to the large one.
    fn levels(&self) -> impl Iterator<Item = LevelSize<'_>> + use<'_> {
        let upper = if self.period <= 1.5 * FIRST_PERIOD {
            0.0
        } else {
            libm::ceil(libm::log(self.period / FIRST_PERIOD) / libm::log(RATIO))
        };
        let upper = upper.min(MOST_LEVELS as f64 - 1.0);
        let ratio =
            if upper > 0.0 { libm::pow(self.period / FIRST_PERIOD, 1.0 / upper) } else { 1.0 };
        (0..=upper as u32).map(move |at| {
            let below = upper - f64::from(at);
            let period = self.period / libm::pow(ratio, below);
            let taken_in = (below > 0.0).then_some(period * ratio * self.share);
            LevelSize { size: self, period, taken_in }
        })
    }

    fn blocks_of_items(&self, fullness: Fullness) -> f64 {
        self.levels().map(|level| level.blocks(fullness)).sum()
    }

    /// Blocks for so full a window.
    pub(super) fn blocks(&self, fullness: Fullness) -> usize {
        libm::ceil(self.blocks_of_items(fullness)) as usize
    }

    /// Blocks that memory is taken for at a time, as a power of two.
    pub(super) fn chunk_bits(&self) -> u32 {
        (self.blocks(Fullness::Usual) / 128).max(1).ilog2().min(10)
    }

    pub(super) fn chunk_memory(&self) -> u64 {
        // And of each block its number in the list of free ones, of each chunk where it is.
        (size_of::<Block>() as u64 + 4) * (1 << self.chunk_bits()) + 32
    }

    /// Blocks that there may ever be.
    pub(super) fn most_blocks(&self) -> usize {
        let chunks = |limit: u64| limit.saturating_sub(self.fixed_memory()) / self.chunk_memory();
        let blocks = self.limit.map_or(u64::MAX, |limit| chunks(limit) << self.chunk_bits());
        usize::try_from(blocks).unwrap_or(usize::MAX)
    }

    /// More than so many blocks in use is more than planned, whatever the order of arrivals.
    pub(super) fn planned_blocks(&self) -> usize {
        if self.flat.is_some() {
            return 0;
        }
        let most = self.blocks(Fullness::Most);
        most + most / 16 + 2
    }

    /// Items from which on there are more than planned, whatever the order of arrivals: those of the last level, of keys that wait
    /// above it and are there twice, and of the buffer.
    pub(super) fn planned_items(&self) -> u64 {
        if let Some(flat) = self.flat {
            return flat.most as u64;
        }
        let levels = self.levels().map(|level| level.items(Fullness::Most)).sum::<f64>();
        let buffer = self.levels().next().map_or(0.0, |level| 2.0 * level.period + 8.0);
        (libm::ceil((levels + buffer) * 17.0 / 16.0) as u64).saturating_add(16)
    }

    /// Items that may come in beyond the planned ones while a sweep makes room for them.
    pub(super) fn items_in_passing(&self) -> u64 {
        self.planned_items() / 16
    }

    /// Items from which on the window is full. Of those that grow by blocks there may be any number.
    pub(super) fn most_items(&self) -> u64 {
        if self.keeps_to_plan || self.flat.is_some() { self.planned_items() } else { u64::MAX }
    }

    /// Does the policy keep the window to the planned size?
    pub(super) fn keeps_to_plan(&self) -> bool {
        self.keeps_to_plan
    }

    /// The number of items that the rate is estimated with, of those that there are.
    pub(super) fn counted(&self, items: f64) -> f64 {
        match (self.form(), self.promise) {
            // Others have expired.
            (Form::Flat, Promise::AsPlanned) => items.min(self.keys),
            (Form::Flat, Promise::Whatever) => items,
            // Some have expired, and some are in two levels; beyond that it is fuller than planned.
            (Form::Levels, _) if items <= 1.25 * self.keys => items.min(self.keys),
            (Form::Levels, _) => items,
        }
    }

    /// Blocks in use from which on the window is full.
    pub(super) fn full_at(&self) -> usize {
        if self.flat.is_some() {
            return usize::MAX;
        }
        let planned = self.blocks(Fullness::Most);
        let limited = self.most_blocks();
        // Rounds in progress need some room.
        let limited = limited.saturating_sub(limited / 16 + 2 * MOST_LEVELS).max(planned);
        if self.keeps_to_plan { planned } else { limited }
    }

    /// Bytes allocated at worst: sweeps write blocks before they give back those they read, and what makes room in a
    /// full window takes some first.
    pub(super) fn most_memory(&self) -> u64 {
        if let Some(flat) = self.flat {
            return flat.memory();
        }
        let most = self.blocks(Fullness::Most);
        let in_progress = most / 16 + 2 + 2 * self.levels().count();
        let chunks = (most + in_progress).div_ceil(1 << self.chunk_bits());
        self.fixed_memory() + chunks as u64 * self.chunk_memory()
    }

    /// Bytes allocated when it is full of keys that arrive evenly.
    pub(super) fn usual_memory(&self) -> u64 {
        if let Some(flat) = self.flat {
            return flat.memory();
        }
        self.fixed_memory() + self.blocks(Fullness::Usual) as u64 * BLOCK as u64
    }

    /// The levels, and blocks that each has places for: at most so many, before more are made.
    pub(super) fn shapes(&self, most: usize) -> Vec<(LevelShape, usize)> {
        let places = |level: &LevelSize<'_>| level.places().min(most);
        self.levels().map(|level| (level.shape().for_blocks(most), places(&level))).collect()
    }

    /// Bytes allocated but for blocks, and not less than that.
    pub(super) fn fixed_memory(&self) -> u64 {
        if let Some(flat) = self.flat {
            return flat.memory();
        }
        let word = if self.is_narrow() { 8 } else { 16 };
        let first = self.levels().next().map_or(0.0, |level| level.period) as u64;
        let levels = self
            .levels()
            .map(|level| level.places() as u64 * 8 + (level.shape().prefixes as u64 + 1) * 4 + 256);
        let most = self.levels().map(|level| level.shape().layout.most_items()).max();
        // What is read and what is written.
        let desk = 2 * (most.unwrap_or(0) + INTAKE + 1);
        levels.sum::<u64>() + (first * 2 + 8 + desk as u64) * word
    }
}

/// One level's numbers.
struct LevelSize<'a> {
    size: &'a Size,
    period: f64,
    /// Arrivals that wait here for the level below; in the last level none does.
    taken_in: Option<f64>,
}

impl LevelSize<'_> {
    fn items(&self, fullness: Fullness) -> f64 {
        let Size { capacity, keys, share, period, .. } = *self.size;
        match (self.taken_in, fullness) {
            (Some(waiting), Fullness::Usual) => waiting * 0.5 + self.period * share * 0.5,
            (Some(waiting), Fullness::Most) => waiting * 1.25 + self.period * share,
            (None, Fullness::Usual) => (capacity + keys) / 2.0,
            // What waits above is not here.
            (None, Fullness::Most) => keys + 0.25 * period * share,
        }
    }

    fn low_bits(&self) -> u32 {
        let spread = self.size.codes.count as f64 / self.items(Fullness::Usual).max(1.0);
        let cost = |bits: u32| f64::from(bits) + spread / libm::exp2(f64::from(bits));
        let exact = libm::log2(spread).max(1.0);
        let (down, up) = (libm::floor(exact) as u32 - 1, libm::floor(exact) as u32);
        let best = if cost(down) < cost(up) { down } else { up };
        // A bucket's number has 32 bits.
        let widest = <u128 as Word>::FIELD - self.size.ages.bits;
        best.max(1).max(self.size.code_bits().saturating_sub(32)).min(widest)
    }

    fn shape(&self) -> LevelShape {
        let low_bits = self.low_bits();
        let buckets = ((self.size.codes.count >> low_bits) + 1) as f64;
        let blocks = self.blocks(Fullness::Usual);
        let prefix_bits = libm::log2((buckets / (blocks + 1.0)).max(1.0)) as u32;
        LevelShape {
            layout: Layout::new(low_bits + self.size.ages.bits),
            stamp_bits: self.size.ages.bits,
            prefix_bits,
            prefixes: (buckets / libm::exp2(f64::from(prefix_bits))) as usize + 1,
            period: self.period as u64,
            many: match self.taken_in {
                Some(_) => u64::MAX,
                None => (self.items(Fullness::Most) as u64).max(1),
            },
        }
    }

    fn blocks(&self, fullness: Fullness) -> f64 {
        let (items, low_bits) = (self.items(fullness), self.low_bits());
        let buckets = self.size.codes.count as f64 / libm::exp2(f64::from(low_bits));
        let bits = f64::from(low_bits + self.size.ages.bits);
        // Half an item's bits are left over at the end of a block.
        let in_a_block = BLOCK_BITS - bits / 2.0;
        // The last block of each round is not filled, and one is read while another is written.
        let ends = if fullness == Fullness::Most { 3.0 } else { 1.0 };
        ((items * (bits + 1.0) + buckets) / in_a_block).max(1.0) + ends
    }

    /// Blocks that it has places for before more memory is taken for these.
    fn places(&self) -> usize {
        libm::ceil(self.blocks(Fullness::Most)) as usize + 4
    }
}
