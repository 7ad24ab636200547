//! From what is asked for ([`Spec`]) to what is built ([`Plan`]): every sizing formula.

use crate::any::AnyFilter;
use crate::bits::packed::Packed;
use crate::generations;
use crate::growing::BlockedBloom;
use crate::structure::Engine;
use crate::window::{Shape, TimeBloom, TimeIntervalBloom, fill_margin, fill_reach};
use crate::{PlanError, Renewal, Structure, WhenFull, Window, growing};

/// Share of set cells after `keys` keys set `hashes` of `cells` each: `1 - (1 - 1/m)^(k·n)`.
pub fn bloom_fill(cells: u64, hashes: u32, keys: f64) -> f64 {
    -libm::expm1(f64::from(hashes) * keys * libm::log1p(-1.0 / cells as f64))
}

/// False positive rate of a Bloom filter and, within a window, of a Time Bloom filter (Lee & Chung
/// 2011, Theorem 1): `(1 - (1 - 1/m)^(k·n))^k`.
pub fn bloom_fpr(cells: u64, hashes: u32, keys: f64) -> f64 {
    libm::pow(bloom_fill(cells, hashes, keys), f64::from(hashes))
}

/// The number of hashes that makes [`bloom_fpr`] least: `ln 2 · m / n`, rounded, at least 1
/// (Lee & Chung 2011, section 7).
pub fn bloom_hashes(cells: u64, keys: f64) -> u32 {
    libm::round(core::f64::consts::LN_2 * cells as f64 / keys).clamp(1.0, 64.0) as u32
}

/// False positive rate of a [`BlockedBloom`] filter: the keys of a block are Poisson distributed,
/// and each word of a block is a Bloom filter of 64 bits that `rounds` bits a key are set in.
pub fn blocked_fpr(blocks: u64, rounds: u32, keys: f64) -> f64 {
    let load = keys / blocks as f64;
    if load <= 0.0 {
        return 0.0;
    }
    // The bits of so many keys leave a word clear somewhere with a chance below 1e-26.
    if load > 4096.0 {
        return 1.0;
    }
    let deviation = libm::sqrt(load);
    let first = libm::floor(load - 12.0 * deviation).max(0.0) as u32;
    let last = (load + 12.0 * deviation + 40.0) as u32;
    // The chance of j keys in a block, and those that 1, 2, 3 given bits of a word stay clear: each
    // follows from the one before, and planning sums many such series.
    let j = f64::from(first);
    let mut chance = libm::exp(j * libm::log(load) - load - libm::lgamma(j + 1.0));
    let clear = [1.0, 2.0, 3.0].map(|bits| f64::from(rounds) * libm::log1p(-bits / 64.0));
    let a_key_more = clear.map(libm::exp);
    let mut clear = clear.map(|log| libm::exp(j * log));
    let mut rate = 0.0;
    for j in first..=last {
        let word = word_fpr(rounds, clear);
        let (squared, fourth) = (word * word, word * word * word * word);
        rate += chance * fourth * squared * squared;
        chance *= load / f64::from(j + 1);
        clear.iter_mut().zip(a_key_more).for_each(|(clear, more)| *clear *= more);
    }
    rate.min(1.0)
}

/// The chance that a new key's `rounds` bits of a word are all set, from the chances that one, two
/// and three given bits are clear.
///
/// The fill to the power of `rounds` would be too low: a word is small enough for its fill to vary.
fn word_fpr(rounds: u32, [one, two, three]: [f64; 3]) -> f64 {
    // That one, two, three different bits are all set.
    let set = [1.0 - one, 1.0 - 2.0 * one + two, 1.0 - 3.0 * one + 3.0 * two - three];
    // How many of the key's bits are different ones.
    let different = match rounds {
        1 => [1.0, 0.0, 0.0],
        2 => [1.0 / 64.0, 63.0 / 64.0, 0.0],
        _ => [1.0 / 4096.0, 3.0 * 63.0 / 4096.0, 63.0 * 62.0 / 4096.0],
    };
    set.iter().zip(different).map(|(set, chance)| set * chance).sum::<f64>().clamp(0.0, 1.0)
}

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
pub struct Spec {
    pub(crate) window: Window,
    pub(crate) fpr: f64,
    pub(crate) memory: Option<u64>,
    pub(crate) structure: Option<Structure>,
    pub(crate) renewal: Renewal,
    pub(crate) slack: u64,
    pub(crate) when_full: WhenFull,
    pub(crate) seed: u64,
}

impl Spec {
    /// A filter for this window with a false positive rate of 1e-6, no slack, no memory limit,
    /// renewal by every sighting, growing when full.
    pub const fn new(window: Window) -> Self {
        Self {
            window,
            fpr: 1e-6,
            memory: None,
            structure: None,
            renewal: Renewal::Always,
            slack: 0,
            when_full: WhenFull::Grow,
            seed: 0,
        }
    }

    /// The window asked for.
    pub const fn window(&self) -> Window {
        self.window
    }

    /// The same, planned for another number of distinct keys; see [`Window::with_capacity`].
    #[must_use]
    pub const fn capacity(self, keys: core::num::NonZeroU64) -> Self {
        Self { window: self.window.with_capacity(keys), ..self }
    }

    /// The highest false positive rate allowed, over all a filter grows to.
    #[must_use]
    pub const fn fpr(self, fpr: f64) -> Self {
        Self { fpr, ..self }
    }

    /// The most bytes the filter may ever allocate for its tables.
    #[must_use]
    pub const fn memory(self, bytes: u64) -> Self {
        Self { memory: Some(bytes), ..self }
    }

    /// The structure. Left out, it is the smallest that keeps the window.
    #[must_use]
    pub const fn structure(self, structure: Structure) -> Self {
        Self { structure: Some(structure), ..self }
    }

    /// Whether duplicates renew their key's age.
    #[must_use]
    pub const fn renewal(self, renewal: Renewal) -> Self {
        Self { renewal, ..self }
    }

    /// How much longer than the window a key may still be reported, in ticks or arrivals.
    /// Twice the slack saves a bit a cell.
    #[must_use]
    pub const fn slack(self, slack: u64) -> Self {
        Self { slack, ..self }
    }

    /// What happens past the capacity.
    #[must_use]
    pub const fn when_full(self, when_full: WhenFull) -> Self {
        Self { when_full, ..self }
    }

    /// The seed of the [`Digester`](crate::Digester) that goes with the filter.
    #[must_use]
    pub const fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Chooses a structure and its size.
    ///
    /// # Errors
    /// [`PlanError`] says which wish cannot be kept, and what would help.
    pub fn plan(self) -> Result<Plan, PlanError> {
        if !(self.fpr > 0.0 && self.fpr < 1.0) {
            return Err(PlanError::Fpr(self.fpr));
        }
        let structure = self.structure.unwrap_or(match self.window {
            Window::Unbounded { .. } => Structure::BlockedBloom,
            Window::Count(_) | Window::Time { .. } => Structure::TimeBloom,
        });
        let unbounded = matches!(self.window, Window::Unbounded { .. });
        if unbounded != structure.is_unbounded() {
            return Err(PlanError::Window {
                structure: structure.name(),
                reason: if unbounded {
                    "its keys age, so it needs a window; `bloom` and `blocked-bloom` remember for ever"
                } else {
                    "it never forgets, so it keeps no window; `time-bloom` and `interval-bloom` do"
                },
            });
        }
        let spec = Self { structure: Some(structure), ..self };
        let capacity = generations::first_capacity(&spec, structure)?;
        let size = Size::new(&spec, structure, capacity, generations::first_share(&spec))?;
        if let Some(limit) = spec.memory.filter(|&limit| size.memory() > limit) {
            return Err(PlanError::Memory { needed: size.memory(), limit });
        }
        Ok(Plan { spec, structure, size })
    }
}

/// A structure of a given size: what one generation of a filter is built from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Size {
    Bloom { bits: u64, hashes: u32, capacity: u64 },
    Blocked { blocks: u64, rounds: u32, capacity: u64 },
    Time(Shape),
    Interval(Shape, crate::window::IntervalLayout),
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
            Structure::IntervalBloom => {
                Self::Interval(shape()?, crate::window::IntervalLayout::Compact)
            }
            Structure::IntervalBloomPlain => {
                Self::Interval(shape()?, crate::window::IntervalLayout::Plain)
            }
        };
        size.checked_memory().ok_or(PlanError::TooLarge("a table larger than any memory"))?;
        Ok(size)
    }

    fn checked_memory(&self) -> Option<u64> {
        let words = match self {
            Self::Bloom { bits, .. } => Packed::words_for(*bits, 1),
            Self::Blocked { blocks, .. } => BlockedBloom::words_for(*blocks),
            Self::Time(shape) => Packed::words_for(shape.cells, shape.stamp_bits()),
            Self::Interval(shape, crate::window::IntervalLayout::Compact) => {
                Packed::words_for(shape.cells, shape.stamp_bits() + shape.length_bits())
            }
            Self::Interval(shape, crate::window::IntervalLayout::Plain) => {
                usize::try_from(shape.cells).ok()?.checked_mul(2)
            }
        };
        words.map(|words| words as u64 * 8)
    }

    /// Bytes that [`Size::build`] allocates.
    pub(crate) fn memory(&self) -> u64 {
        self.checked_memory().unwrap_or(u64::MAX)
    }

    pub(crate) fn capacity(&self) -> u64 {
        match self {
            Self::Bloom { capacity, .. } | Self::Blocked { capacity, .. } => *capacity,
            Self::Time(shape) | Self::Interval(shape, _) => shape.capacity,
        }
    }

    pub(crate) fn build(&self) -> Result<Engine, PlanError> {
        Ok(match *self {
            Self::Bloom { bits, hashes, capacity } => {
                Engine::Bloom(growing::Bloom::new(bits, hashes, capacity)?)
            }
            Self::Blocked { blocks, rounds, capacity } => {
                Engine::Blocked(BlockedBloom::new(blocks, rounds, capacity)?)
            }
            Self::Time(shape) => Engine::Time(TimeBloom::new(shape)?),
            Self::Interval(shape, layout) => {
                Engine::Interval(TimeIntervalBloom::new(shape, layout)?)
            }
        })
    }
}

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
        capacity,
        renewal: spec.renewal,
    };
    shape.check()?;
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

/// What will be built, and what it keeps. Made by [`Spec::plan`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    pub(crate) spec: Spec,
    structure: Structure,
    pub(crate) size: Size,
}

impl Plan {
    /// The structure chosen.
    pub fn structure(&self) -> Structure {
        self.structure
    }

    /// The window asked for.
    pub fn window(&self) -> Window {
        self.spec.window
    }

    /// Whether duplicates renew their key's age.
    pub fn renewal(&self) -> Renewal {
        self.spec.renewal
    }

    /// The seed of the digester that goes with the filter.
    pub fn seed(&self) -> u64 {
        self.spec.seed
    }

    /// Keys that the first table holds before [`WhenFull`] is asked.
    pub fn capacity(&self) -> u64 {
        self.size.capacity()
    }

    /// The false positive rate promised, over all the filter may grow to.
    pub fn fpr(&self) -> f64 {
        self.spec.fpr
    }

    /// How much longer than the window a key may be reported, in ticks or arrivals.
    pub fn slack(&self) -> u64 {
        match &self.size {
            Size::Time(shape) | Size::Interval(shape, _) => shape.slack(),
            Size::Bloom { .. } | Size::Blocked { .. } => 0,
        }
    }

    /// Bytes allocated at the start.
    pub fn memory(&self) -> u64 {
        self.size.memory()
    }

    /// Bits allocated a key of the capacity.
    pub fn bits_per_key(&self) -> f64 {
        self.memory() as f64 * 8.0 / self.capacity() as f64
    }

    /// Bits a cell and hashes a key.
    pub fn cell_bits_and_hashes(&self) -> (u32, u32) {
        match &self.size {
            Size::Bloom { hashes, .. } => (1, *hashes),
            Size::Blocked { rounds, .. } => (1, rounds * 8),
            Size::Time(shape) => (shape.stamp_bits(), shape.hashes),
            Size::Interval(shape, crate::window::IntervalLayout::Compact) => {
                (shape.stamp_bits() + shape.length_bits(), shape.hashes)
            }
            Size::Interval(shape, crate::window::IntervalLayout::Plain) => (128, shape.hashes),
        }
    }

    /// Bits a key that no structure with this contract can go below: `log2(1/ε)` to tell keys
    /// apart, and `log2(steps)` to tell ages apart, where `steps` is the window over the grain.
    pub fn lower_bound(&self) -> f64 {
        let steps = match &self.size {
            Size::Time(shape) | Size::Interval(shape, _) => shape.steps(),
            Size::Bloom { .. } | Size::Blocked { .. } => 1,
        };
        -libm::log2(self.spec.fpr) + libm::log2(steps as f64)
    }

    /// The empty filter.
    ///
    /// # Panics
    /// When there is no memory for it, as `Vec` does; [`Plan::try_build`] says so instead.
    pub fn build(&self) -> AnyFilter {
        match self.try_build() {
            Ok(filter) => filter,
            Err(error) => unavailable(&error),
        }
    }

    /// The empty filter.
    ///
    /// # Errors
    /// [`PlanError::Unavailable`] when there is no memory for it.
    pub fn try_build(&self) -> Result<AnyFilter, PlanError> {
        AnyFilter::new(self)
    }
}

/// Ends a call that has no other way to say it.
#[cold]
#[expect(clippy::panic, reason = "what `Vec` does when there is no memory; documented")]
fn unavailable(error: &PlanError) -> ! {
    panic!("{error}")
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
