//! What the aged Bloom filters are built from.

use crate::PlanError;
use crate::codec::{Reader, Writer};
use crate::plan::formulas::{TOO_LOW, bloom_fill, cells_for, hashes_for};
use crate::table::Contract;
use crate::window::cells::fill;
use crate::window::cycle::coarsest_grain;
use crate::window::late::{self, IN_ORDER, Late};
use crate::{Renewal, SnapshotError, Spec};

/// The parameters of a [`TimeBloom`](super::TimeBloom) or
/// [`TimeIntervalBloom`](super::TimeIntervalBloom). [`Plan`](crate::Plan) chooses them well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Cells, `m`.
    pub cells: u64,
    /// Cells that a key sets, `k`: 1 to 64.
    pub hashes: u32,
    /// Length of the window in ticks, `τ`: 1 to 2^60 grains.
    pub span: u64,
    /// Ticks that count as one moment. 1 is exact; `g` saves `log2(g)` bits per cell and costs less
    /// than `2·g` ticks of slack (less than `g` when it divides `span`).
    pub grain: u64,
    /// The most ticks that an arrival may lie behind the newest moment; 0 for arrivals in order.
    pub lateness: u64,
    /// Distinct keys within a span beyond which the filter calls itself full, `n'`.
    pub capacity: u64,
    /// Does a duplicate renew its key's age?
    pub renewal: Renewal,
}

/// A table for fewer keys would be overfull before its sample of the fill is steady.
const LEAST_CAPACITY: u64 = 64;

impl Shape {
    /// The smallest that keeps a rate for so many keys.
    pub(super) fn for_keys(spec: &Spec, capacity: u64, fpr: f64) -> Result<Self, PlanError> {
        let span = spec.terms.window.span().unwrap_or(1);
        // What cannot be fuller than planned need not find out whether it is.
        let overflows = spec.can_overflow();
        let capacity = if overflows { capacity.max(LEAST_CAPACITY) } else { capacity };
        let mut shape = Self {
            cells: 1,
            hashes: 1,
            span,
            grain: coarsest_grain(span, spec.terms.slack),
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
        let keys = shape.live_keys() + f64::from(fill::reach(capacity));
        let fewest = hashes_for(fpr).max(2);
        let mut sizes = (fewest..=fewest + 8).filter(|&hashes| hashes <= 64).filter_map(|hashes| {
            let margin = fill::margin(capacity, hashes);
            Some((cells_for(keys, hashes, fpr, margin).ok()?, hashes))
        });
        let (least, _) = sizes.clone().min().ok_or(TOO_LOW)?;
        // But not for a few cells less: every hash costs time.
        let worth = sizes.find(|&(cells, _)| cells <= least + least / 16);
        (shape.cells, shape.hashes) = worth.ok_or(TOO_LOW)?;
        Ok(shape)
    }

    /// Grains for which a key is kept: the window's, and those of the lateness.
    pub(crate) fn steps(&self) -> u64 {
        let grain = self.grain.max(1);
        self.span.div_ceil(grain).saturating_add(self.lateness.div_ceil(grain))
    }

    pub(crate) fn late(&self) -> Option<Late> {
        Late::new(self.span, self.grain, self.lateness)
    }

    /// Keys that a question asks for.
    pub(crate) fn keys_asked(&self) -> f64 {
        if self.late().is_some_and(|late| !late.newest_only()) { 2.0 } else { 1.0 }
    }

    /// How much longer than the span a key may still be found, in ticks.
    pub fn slack(&self) -> u64 {
        // A key seen at the first tick of its grain, asked for at the last of the last live one.
        let reach = u128::from(self.span.div_ceil(self.grain.max(1))) + 1;
        let slack = reach * u128::from(self.grain.max(1)) - 1 - u128::from(self.span);
        u64::try_from(slack).unwrap_or(u64::MAX)
    }

    /// Bits that a cyclic stamp takes: `ceil(log2(3·steps + 3))`.
    ///
    /// One value says "unset". A stamp is right up to an age of one window and two sweep periods;
    /// with a period of at least one window and a tick, a table is swept about once a window,
    /// which costs less time an arrival than setting the cells did.
    pub fn stamp_bits(&self) -> u32 {
        64 - self.steps().saturating_mul(3).saturating_add(2).leading_zeros()
    }

    /// Bits that the age of an interval's start takes, counted from its end: `ceil(log2(steps + 1))`.
    pub fn length_bits(&self) -> u32 {
        64 - self.steps().leading_zeros()
    }

    /// Keys that are live at a time when the filter is at its capacity: those of the slack and the
    /// lateness too.
    pub(crate) fn live_keys(&self) -> f64 {
        self.capacity as f64 * Late::marks_per_key(self.span, self.lateness, self.slack())
    }

    /// Share of the planned keys that leaves this fill.
    pub(crate) fn load_at(&self, fill: f64) -> f64 {
        let planned = self.fill_at_capacity();
        libm::log1p(-fill.min(0.999)) / libm::log1p(-planned.min(0.999))
    }

    /// Share of live cells at exactly `capacity` keys.
    pub(crate) fn fill_at_capacity(&self) -> f64 {
        bloom_fill(self.cells, self.hashes, self.live_keys())
    }

    /// The false positive rate at exactly `capacity` keys.
    pub(crate) fn fpr_at_capacity(&self) -> f64 {
        self.rate_of(self.fill_at_capacity())
    }

    /// Share of live cells at which the filter is full: that of `capacity` keys, and five standard
    /// deviations of the sample that measures it, so that a filter at its capacity is not called
    /// full by chance.
    pub fn full_at(&self) -> f64 {
        self.fill_at_capacity() + fill::margin(self.capacity, self.hashes)
    }

    /// The promised false positive rate: that of a filter which has just found out that it is full.
    pub(crate) fn fpr(&self) -> f64 {
        let keys = self.live_keys() + f64::from(fill::reach(self.capacity));
        let fill = bloom_fill(self.cells, self.hashes, keys);
        let fullest = fill + fill::margin(self.capacity, self.hashes);
        self.rate_of(fullest.min(1.0))
    }

    /// The false positive rate of a Time Bloom filter with this fill.
    pub(crate) fn rate_of(&self, fill: f64) -> f64 {
        (self.keys_asked() * libm::pow(fill, f64::from(self.hashes))).min(1.0)
    }

    /// What a filter of this shape promises.
    pub(super) fn contract(&self) -> Contract {
        Contract {
            capacity: self.capacity,
            slack: self.slack(),
            steps: self.span.div_ceil(self.grain),
        }
    }

    pub(crate) fn check(&self) -> Result<(), PlanError> {
        let fits = self.cells > 0
            && (1..=64).contains(&self.hashes)
            && self.span > 0
            && self.grain > 0
            && self.span.div_ceil(self.grain) <= 1 << 60
            && self.lateness.div_ceil(self.grain) <= 1 << 60
            && self.lateness < 1 << 61
            && self.span.checked_add(self.grain).is_some_and(|ticks| ticks < 1 << 62);
        fits.then_some(()).ok_or(PlanError::TooLarge(
            "an aged Bloom filter has at least 1 cell, 1 to 64 hashes, and a window of 1 to 2^60 grains and less than 2^62 ticks, with less than 2^61 of lateness",
        ))
    }

    /// [`Shape::check`], for cells that tell one moment each.
    pub(crate) fn check_in_order(&self, structure: &'static str) -> Result<(), PlanError> {
        self.check()?;
        let in_order = self.lateness == 0;
        in_order.then_some(()).ok_or(PlanError::Window { structure, reason: IN_ORDER })
    }

    /// Is this the shape of a table of that filter?
    pub(crate) fn keeps(&self, spec: &Spec) -> bool {
        spec.terms.window.span() == Some(self.span)
            && spec.lateness == self.lateness
            && spec.renewal == self.renewal
    }

    pub(crate) fn write(&self, out: &mut Writer<'_>) {
        out.u64(self.cells);
        out.u32(self.hashes);
        out.u64(self.span);
        out.u64(self.grain);
        out.u64(self.capacity);
        out.u8(self.renewal as u8);
        late::write(self.lateness, out);
    }

    pub(crate) fn read(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        let shape = Self {
            cells: input.u64()?,
            hashes: input.u32()?,
            span: input.u64()?,
            grain: input.u64()?,
            capacity: input.u64()?,
            renewal: Renewal::read(input)?,
            lateness: late::read(input)?,
        };
        shape.check().map_err(|_| SnapshotError::Invalid("a filter of an impossible shape"))?;
        Ok(shape)
    }
}

impl Renewal {
    pub(crate) fn read(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        match input.u8()? {
            0 => Ok(Self::Always),
            1 => Ok(Self::OnFresh),
            _ => Err(SnapshotError::Invalid("unknown renewal")),
        }
    }
}
