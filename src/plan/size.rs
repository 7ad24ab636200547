//! How large a table must be: one generation of a filter.

use super::formulas::blocked_fpr;
use crate::bits::lines::Lines;
use crate::bits::packed::Packed;
use crate::forever::{
    self, AccommodativeBloom, AccommodativeShape, BlockedBloom, DynamicBloom, ScalableBloom,
    ScalableShape,
};
use crate::structure::Engine;
use crate::window::Pace;
use crate::window::{
    AGED_LOAD, AgedBuckets, AgedTable, CuckooSize, CuckooWindow, DleftWindow, IntervalLayout,
    KEYS_A_BUCKET, Keeps, STASHED, Shape, TimeBloom, TimeIntervalBloom, TimingBloom, aged_size,
    aged_slots, dleft_fpr, fill_margin, fill_reach, paired_fpr,
};
use crate::{PlanError, Spec, Structure, Window, generations};

/// A structure of a given size: what one generation of a filter is built from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Size {
    Bloom {
        bits: u64,
        hashes: u32,
        capacity: u64,
    },
    Blocked {
        blocks: u64,
        rounds: u32,
        capacity: u64,
    },
    Time(Shape),
    Interval(Shape, IntervalLayout),
    Timing(Shape),
    Cuckoo(Keeps, CuckooSize),
    Dleft {
        keeps: Keeps,
        buckets: u64,
        fingerprint_bits: u32,
    },
    AgedTable {
        keeps: Keeps,
        lines: u64,
        fingerprint_bits: u32,
    },
    AgedBuckets {
        keeps: Keeps,
        buckets: u64,
        fingerprint_bits: u32,
    },
    /// These grow by themselves, to so many bytes.
    Dynamic {
        bits: u64,
        hashes: u32,
        capacity: u64,
        limit: u64,
    },
    Scalable(ScalableShape, u64),
    Accommodative(AccommodativeShape, u64),
}

impl Size {
    /// The smallest table that keeps `fpr` for `capacity` keys.
    pub(crate) fn new(
        spec: &Spec,
        structure: Structure,
        capacity: u64,
        fpr: f64,
    ) -> Result<Self, PlanError> {
        let shape = || aged_shape(spec, capacity, fpr);
        let size = match structure {
            Structure::Bloom => {
                let hashes = hashes_for(fpr);
                let bits = cells_for(capacity as f64, hashes, fpr, 0.0);
                Self::Bloom { bits: bits?, hashes, capacity }
            }
            Structure::BlockedBloom => {
                let (blocks, rounds) = blocks_for(capacity, best_load(fpr))?;
                Self::Blocked { blocks, rounds, capacity }
            }
            Structure::TimeBloom => Self::Time(shape()?),
            Structure::IntervalBloom => Self::Interval(shape()?, IntervalLayout::Compact),
            Structure::IntervalBloomPlain => Self::Interval(shape()?, IntervalLayout::Plain),
            Structure::TimingBloom => Self::Timing(Shape { grain: 1, ..shape()? }),
            Structure::CuckooWindow => {
                let keeps = keeps(spec, capacity)?;
                Self::Cuckoo(keeps, CuckooSize::for_keys(keeps.full_at(), fpr))
            }
            Structure::DleftWindow => {
                let keeps = keeps(spec, capacity)?;
                let keys = keeps.full_at();
                let buckets = libm::ceil(keys / KEYS_A_BUCKET as f64) as u64;
                let rate = |bits: &u32| dleft_fpr(buckets, *bits, keys) <= fpr;
                let fingerprint_bits = (1..=64).find(rate).ok_or(PlanError::TooLarge(TOO_LOW))?;
                Self::Dleft { keeps, buckets, fingerprint_bits }
            }
            Structure::AgedTable => {
                let keeps = generation_keeps(spec, capacity)?;
                let size = aged_size(&keeps, keeps.full_at(), fpr);
                let (lines, fingerprint_bits) = size.ok_or(PlanError::TooLarge(TOO_LOW))?;
                Self::AgedTable { keeps, lines, fingerprint_bits }
            }
            Structure::AgedBuckets => {
                let keeps = aged_keeps(spec, capacity)?;
                let keys = keeps.full_at();
                // A few more, as chance fills small tables less evenly.
                let buckets = libm::ceil(keys / (4.0 * AGED_LOAD)) as u64 + 1;
                let rate = |bits: &u32| paired_fpr(buckets, *bits, keys) <= fpr;
                let fingerprint_bits = (1..=64).find(rate).ok_or(PlanError::TooLarge(TOO_LOW))?;
                Self::AgedBuckets { keeps, buckets, fingerprint_bits }
            }
            Structure::DynamicBloom => {
                // Its rate is the sum of all filters', so their number is planned for.
                let filters = if generations::grows(spec) { DYNAMIC_FILTERS } else { 1 };
                let rate = fpr / filters as f64;
                let hashes = hashes_for(rate);
                let bits = cells_for(capacity as f64, hashes, rate, 0.0)?;
                let most = DynamicBloom::memory_of(filters, bits).unwrap_or(u64::MAX);
                let limit = most.min(generations::limit_of_growth(spec));
                Self::Dynamic { bits, hashes, capacity, limit }
            }
            Structure::ScalableBloom => Self::Scalable(
                ScalableShape::for_keys(capacity, fpr),
                generations::limit_of_growth(spec),
            ),
            Structure::AccommodativeBloom => Self::Accommodative(
                AccommodativeShape::for_keys(capacity, fpr),
                generations::limit_of_growth(spec),
            ),
        };
        let bytes = size.checked_memory();
        let bytes = bytes.ok_or(PlanError::TooLarge("a table larger than any memory"))?;
        Ok(size.with_stash_within(spec, bytes))
    }

    /// A count window's stash may grow as far as the table leaves room under the memory limit.
    fn with_stash_within(mut self, spec: &Spec, bytes: u64) -> Self {
        let (Self::Cuckoo(keeps, _)
        | Self::Dleft { keeps, .. }
        | Self::AgedTable { keeps, .. }
        | Self::AgedBuckets { keeps, .. }) = &mut self
        else {
            return self;
        };
        if let (Window::Count(_), Some(limit)) = (spec.window, spec.memory) {
            keeps.limit_stash(limit.saturating_sub(bytes));
        }
        self
    }

    pub(super) fn checked_memory(&self) -> Option<u64> {
        let words = match self {
            Self::Bloom { bits, .. } => Packed::words_for(*bits, 1),
            Self::Blocked { blocks, .. } => BlockedBloom::words_for(*blocks),
            Self::Time(shape) => Packed::words_for(shape.cells, shape.stamp_bits()),
            Self::Interval(shape, IntervalLayout::Compact) => {
                Packed::words_for(shape.cells, shape.stamp_bits() + shape.length_bits())
            }
            Self::Interval(shape, IntervalLayout::Plain) => {
                usize::try_from(shape.cells).ok()?.checked_mul(2)
            }
            Self::Timing(shape) => {
                Packed::words_for(shape.cells, TimingBloom::stamp_bits(shape.span))
            }
            Self::Cuckoo(keeps, size) => CuckooWindow::words_for(keeps, size),
            Self::Dleft { keeps, buckets, fingerprint_bits } => {
                DleftWindow::words_for(keeps, *buckets, *fingerprint_bits)
            }
            Self::AgedTable { keeps, lines, .. } => {
                return Some(Lines::bytes_for(*lines)? as u64 + keeps.stash_memory());
            }
            Self::AgedBuckets { keeps, buckets, fingerprint_bits } => {
                let bytes = AgedBuckets::bytes_for(keeps, *buckets, *fingerprint_bits)? as u64;
                return Some(bytes + keeps.stash_memory());
            }
            Self::Dynamic { bits, .. } => return DynamicBloom::memory_of(1, *bits),
            Self::Scalable(shape, _) => return shape.memory(),
            Self::Accommodative(shape, _) => return shape.memory(),
        };
        let stash = match self {
            Self::Cuckoo(keeps, _)
            | Self::Dleft { keeps, .. }
            | Self::AgedTable { keeps, .. }
            | Self::AgedBuckets { keeps, .. } => keeps.stash_memory(),
            _ => 0,
        };
        words.map(|words| words as u64 * 8 + stash)
    }

    /// Bytes that [`Size::build`] allocates.
    pub(crate) fn memory(&self) -> u64 {
        self.checked_memory().unwrap_or(u64::MAX)
    }

    pub(crate) fn capacity(&self) -> u64 {
        match self {
            Self::Bloom { capacity, .. }
            | Self::Blocked { capacity, .. }
            | Self::Dynamic { capacity, .. } => *capacity,
            Self::Scalable(shape, _) => shape.capacity,
            Self::Accommodative(shape, _) => shape.capacity(),
            Self::Time(shape) | Self::Interval(shape, _) | Self::Timing(shape) => shape.capacity,
            Self::Cuckoo(keeps, _)
            | Self::Dleft { keeps, .. }
            | Self::AgedTable { keeps, .. }
            | Self::AgedBuckets { keeps, .. } => keeps.window.capacity(),
        }
    }

    /// How much longer than the window a key may be found.
    pub(super) fn slack(&self) -> u64 {
        match self {
            Self::Time(shape) | Self::Interval(shape, _) => shape.slack(),
            Self::Cuckoo(keeps, _)
            | Self::Dleft { keeps, .. }
            | Self::AgedTable { keeps, .. }
            | Self::AgedBuckets { keeps, .. } => keeps.slack(),
            _ => 0,
        }
    }

    /// Moments that are told apart.
    pub(super) fn steps(&self) -> u64 {
        match self {
            Self::Time(shape) | Self::Interval(shape, _) | Self::Timing(shape) => {
                shape.span.div_ceil(shape.grain)
            }
            Self::Cuckoo(keeps, _)
            | Self::Dleft { keeps, .. }
            | Self::AgedTable { keeps, .. }
            | Self::AgedBuckets { keeps, .. } => {
                keeps.window.span().unwrap_or(1).div_ceil(keeps.grain)
            }
            _ => 1,
        }
    }

    /// Bits a cell, and cells that a key sets or slots that may be its.
    pub(super) fn cell_bits_and_hashes(&self) -> (u32, u32) {
        match self {
            Self::Bloom { hashes, .. } => (1, *hashes),
            Self::Blocked { rounds, .. } => (1, rounds * 8),
            Self::Time(shape) => (shape.stamp_bits(), shape.hashes),
            Self::Interval(shape, IntervalLayout::Compact) => {
                (shape.stamp_bits() + shape.length_bits(), shape.hashes)
            }
            Self::Interval(shape, IntervalLayout::Plain) => (128, shape.hashes),
            Self::Timing(shape) => (TimingBloom::stamp_bits(shape.span), shape.hashes),
            Self::Cuckoo(keeps, size) => (size.entry_bits(keeps), 2),
            Self::Dleft { keeps, fingerprint_bits, .. } => {
                (fingerprint_bits + keeps.pace().stamp_bits(), 4)
            }
            Self::AgedTable { keeps, fingerprint_bits, .. } => {
                // With its share of the head, rounded up.
                (512u32.div_ceil(aged_slots(keeps, *fingerprint_bits)), 2)
            }
            Self::AgedBuckets { keeps, fingerprint_bits, .. } => {
                (fingerprint_bits + keeps.pace().stamp_bits(), 2)
            }
            Self::Dynamic { hashes, .. } => (1, *hashes),
            Self::Scalable(shape, _) => (1, shape.hashes(0)),
            Self::Accommodative(shape, _) => (1, shape.choices * shape.hashes),
        }
    }

    pub(crate) fn build(&self) -> Result<Engine, PlanError> {
        Ok(match *self {
            Self::Bloom { bits, hashes, capacity } => {
                Engine::Bloom(forever::Bloom::new(bits, hashes, capacity)?)
            }
            Self::Blocked { blocks, rounds, capacity } => {
                Engine::Blocked(BlockedBloom::new(blocks, rounds, capacity)?)
            }
            Self::Time(shape) => Engine::Time(TimeBloom::new(shape)?),
            Self::Interval(shape, layout) => {
                Engine::Interval(TimeIntervalBloom::new(shape, layout)?)
            }
            Self::Timing(shape) => Engine::Timing(TimingBloom::new(shape)?),
            Self::Cuckoo(keeps, size) => Engine::Cuckoo(CuckooWindow::new(keeps, size)?),
            Self::Dleft { keeps, buckets, fingerprint_bits } => {
                Engine::Dleft(DleftWindow::new(keeps, buckets, fingerprint_bits)?)
            }
            Self::AgedTable { keeps, lines, fingerprint_bits } => {
                Engine::AgedTable(AgedTable::new(keeps, lines, fingerprint_bits)?)
            }
            Self::AgedBuckets { keeps, buckets, fingerprint_bits } => {
                Engine::AgedBuckets(AgedBuckets::new(keeps, buckets, fingerprint_bits)?)
            }
            Self::Dynamic { bits, hashes, capacity, limit } => {
                Engine::Dynamic(DynamicBloom::new(bits, hashes, capacity)?.limit(limit))
            }
            Self::Scalable(shape, limit) => {
                Engine::Scalable(ScalableBloom::new(shape)?.limit(limit))
            }
            Self::Accommodative(shape, limit) => {
                Engine::Accommodative(AccommodativeBloom::new(shape)?.limit(limit))
            }
        })
    }
}

/// Filters that a dynamic Bloom filter grows to before another table takes its place.
const DYNAMIC_FILTERS: u64 = 8;

/// The number of hashes whose cells are half full at the target rate.
fn hashes_for(fpr: f64) -> u32 {
    libm::round(-libm::log2(fpr)).clamp(1.0, 64.0) as u32
}

const TOO_LOW: &str =
    "so low a false positive rate for so many keys needs a table larger than any memory";

/// The fewest cells whose fill after `keys` keys, and `margin` more, is `fpr^(1/hashes)`.
fn cells_for(keys: f64, hashes: u32, fpr: f64, margin: f64) -> Result<u64, PlanError> {
    let target = libm::pow(fpr, 1.0 / f64::from(hashes)) - margin;
    let cells = -f64::from(hashes) * keys / libm::log1p(-target);
    if !(target > 0.0 && cells < (1u64 << 56) as f64) {
        return Err(PlanError::TooLarge(TOO_LOW));
    }
    // The formula takes (1 - 1/m)^(kn) for e^(-kn/m); one cell a hash more covers the difference.
    Ok(libm::ceil(cells) as u64 + u64::from(hashes))
}

/// The most keys a block that keep this rate, and the number of rounds with which they do.
fn best_load(fpr: f64) -> (f64, u32) {
    let most = |rounds: u32| {
        let (mut low, mut high) = (0.0, 4.0);
        while high < 4096.0 && blocked_fpr(1, rounds, high) <= fpr {
            (low, high) = (high, high * 2.0);
        }
        for _ in 0..24 {
            let middle = (low + high) / 2.0;
            // The rate depends on the load alone.
            if blocked_fpr(1, rounds, middle) > fpr {
                high = middle;
            } else {
                low = middle;
            }
        }
        (low, rounds)
    };
    let loads = [most(1), most(2), most(3)];
    loads.into_iter().fold((0.0, 1), |best, load| if load.0 > best.0 { load } else { best })
}

/// The fewest blocks, over all numbers of rounds.
fn blocks_for(keys: u64, (load, rounds): (f64, u32)) -> Result<(u64, u32), PlanError> {
    let blocks = libm::ceil(keys as f64 / load).max(1.0);
    let fits = blocks < (1u64 << 50) as f64;
    fits.then_some((blocks as u64, rounds)).ok_or(PlanError::TooLarge(TOO_LOW))
}

/// A table for fewer keys would be overfull before its sample of the fill is steady.
const LEAST_CAPACITY: u64 = 64;

fn aged_shape(spec: &Spec, capacity: u64, fpr: f64) -> Result<Shape, PlanError> {
    let span = spec.window.span().unwrap_or(1);
    // What cannot be fuller than planned need not find out whether it is.
    let overflows = generations::can_overflow(spec);
    let capacity = if overflows { capacity.max(LEAST_CAPACITY) } else { capacity };
    let mut shape = Shape {
        cells: 1,
        hashes: 1,
        span,
        grain: coarsest_grain(span, spec.slack),
        lateness: spec.lateness,
        capacity,
        renewal: spec.renewal,
    };
    shape.check()?;
    let fpr = fpr / shape.keys_asked();
    if !overflows {
        shape.hashes = hashes_for(fpr);
        shape.cells = cells_for(shape.live_keys(), shape.hashes, fpr, 0.0)?;
        return Ok(shape);
    }
    // One hash could not tell how full the table is, and the more there are the surer it is: a
    // small table takes fewer cells with a few more.
    let keys = shape.live_keys() + f64::from(fill_reach(capacity));
    let fewest = hashes_for(fpr).max(2);
    let mut sizes = (fewest..=fewest + 8).filter(|&hashes| hashes <= 64).filter_map(|hashes| {
        let margin = fill_margin(capacity, hashes);
        Some((cells_for(keys, hashes, fpr, margin).ok()?, hashes))
    });
    let (least, _) = sizes.clone().min().ok_or(PlanError::TooLarge(TOO_LOW))?;
    // But not for a few cells less: every hash costs time.
    let worth = sizes.find(|&(cells, _)| cells <= least + least / 16);
    (shape.cells, shape.hashes) = worth.ok_or(PlanError::TooLarge(TOO_LOW))?;
    Ok(shape)
}

/// A grain whose slack is at most `slack`, and nearly as large as that allows.
fn coarsest_grain(span: u64, slack: u64) -> u64 {
    let slack_of = |grain: u64| {
        let reach = (u128::from(span.div_ceil(grain)) + 1) * u128::from(grain);
        reach - 1 - u128::from(span)
    };
    // Steps of equal length overlap the window least; a few more of them may be needed to fit.
    let fewest = span.div_ceil(slack.saturating_add(1));
    (fewest..fewest.saturating_add(8))
        .map(|steps| span.div_ceil(steps))
        .find(|&grain| slack_of(grain) <= u128::from(slack))
        // Any grain costs at most twice itself, less 2.
        .unwrap_or(slack / 2 + 1)
}

/// How a window of slots is kept, and how much room its stash has.
fn keeps(spec: &Spec, capacity: u64) -> Result<Keeps, PlanError> {
    let (span, slack) = (spec.window.span().unwrap_or(1), spec.slack);
    let (grain, stash) = match spec.window {
        // All of them may want the same slots; a table that cannot grow must take them all the same.
        Window::Count(n) => (1, n.get()),
        Window::Time { .. } | Window::Unbounded { .. } => {
            (coarsest_grain(span, slack), STASHED + capacity / 512)
        }
    };
    let capacity = core::num::NonZeroU64::new(capacity).unwrap_or(core::num::NonZeroU64::MIN);
    let window = spec.window.with_capacity(capacity);
    let (lateness, renewal) = (spec.lateness, spec.renewal);
    let keeps = Keeps { window, grain, lateness, renewal, stash };
    keeps.check().map(|()| keeps)
}

/// [`keeps`], for slack in arrivals too: the coarsest grain says how wide a stamp is, and so wide a
/// stamp allows a finer one, which leaves fewer expired keys in the table.
fn aged_keeps(spec: &Spec, capacity: u64) -> Result<Keeps, PlanError> {
    let keeps = keeps(spec, capacity)?;
    let span = spec.window.span().unwrap_or(1);
    let coarse = Keeps { grain: coarsest_grain(span, spec.slack), ..keeps };
    coarse.check()?;
    let bits = coarse.pace().stamp_bits();
    let steps = Pace::most_steps(bits).max(1);
    let fine = Keeps { grain: finest_grain(spec, steps), ..keeps };
    let better = fine.grain < coarse.grain && fine.pace().stamp_bits() <= bits;
    Ok(if better && fine.slack() <= spec.slack { fine } else { coarse })
}

/// [`keeps`], for lines that count eight generations: the finest grain that has the bits of the
/// coarsest one which the slack allows.
fn generation_keeps(spec: &Spec, capacity: u64) -> Result<Keeps, PlanError> {
    let keeps = keeps(spec, capacity)?;
    let span = spec.window.span().unwrap_or(1);
    let coarse = Keeps { grain: coarsest_grain(span, spec.slack), ..keeps };
    coarse.check()?;
    let steps = coarse.pace().steps().div_ceil(8).next_power_of_two().saturating_mul(8);
    let fine = Keeps { grain: finest_grain(spec, steps), ..keeps };
    let better = fine.grain < coarse.grain && fine.slack() <= spec.slack;
    Ok(if better { fine } else { coarse })
}

/// The finest grain of which window and lateness together have no more than so many.
fn finest_grain(spec: &Spec, steps: u64) -> u64 {
    let span = spec.window.span().unwrap_or(1);
    let grain = span.saturating_add(spec.lateness).div_ceil(steps);
    let fits = span.div_ceil(grain) + spec.lateness.div_ceil(grain) <= steps;
    // Each is rounded up by itself, which takes a grain more at the most.
    if fits { grain } else { span.saturating_add(spec.lateness).div_ceil((steps - 1).max(1)) }
}

/// The most keys that fit into `bytes` at this rate, at least 1.
pub(crate) fn capacity_within(
    spec: &Spec,
    structure: Structure,
    bytes: u64,
    fpr: f64,
) -> Option<u64> {
    let fits =
        |keys: u64| Size::new(spec, structure, keys, fpr).is_ok_and(|size| size.memory() <= bytes);
    if structure == Structure::BlockedBloom {
        // A search would sum the rate's series anew for every number of keys.
        let blocks = (bytes.saturating_sub(56) / 64).min((1 << 50) - 1);
        let keys = (blocks as f64 * best_load(fpr).0) as u64;
        return [keys, keys.saturating_sub(1)].into_iter().find(|&keys| keys > 0 && fits(keys));
    }
    // Bits a key hardly depend on the number of keys, so those of a million lead close.
    let million = Size::new(spec, structure, 1 << 20, fpr).ok()?.memory();
    let guess = u128::from(bytes) * (1 << 20) / u128::from(million.max(1));
    let (mut low, mut high) = (0u64, u64::try_from(guess).unwrap_or(u64::MAX).max(1));
    while fits(high) {
        (low, high) = (high, high.checked_mul(2)?);
    }
    // To the last key where they are few, and as close as matters where they are many.
    while high - low > 1 + low / 4096 {
        let middle = low + (high - low) / 2;
        if fits(middle) { low = middle } else { high = middle }
    }
    (low > 0).then_some(low)
}
