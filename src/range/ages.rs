//! The ages of a range window.

use crate::PlanError;

/// A grain is so many ticks that count as one moment; a stamp is the number of a grain modulo a power of two.
///
/// Items that have expired are dropped by a sweep, or by a pass over all of them. One that was live then is no older than
/// `steps + spare` grains when it is looked at again, which is below the cycle of the stamps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ages {
    /// Bits of a stamp; 0 where nothing expires.
    pub(super) bits: u32,
    pub(super) grain: u64,
    /// Length of the window in ticks; as much as there is where nothing expires.
    pub(super) span: u64,
    /// Grains from the start of the last whole round of a sweep, or the last pass, until now, at most.
    pub(super) spare: u64,
}

/// The longest window: moments are added up.
const LONGEST: u64 = 1 << 62;

impl Ages {
    pub(super) const ETERNAL: Self =
        Self { bits: 0, grain: u64::MAX, span: u64::MAX, spare: u64::MAX };

    /// The narrowest stamps for a window whose sweep goes round twice in `ticks`, or whose items are passed once, and of
    /// grains that go with these the finest, as items that have expired take room until their grain has.
    pub(super) fn new(span: u64, slack: u64, ticks: u64) -> Result<Self, PlanError> {
        if span > LONGEST || ticks > LONGEST {
            return Err(PlanError::TooLarge("a window of more than 2^62 ticks cannot be planned"));
        }
        let coarsest = slack.saturating_add(1).min(LONGEST);
        let fits = |grain: u64, bits: u32| {
            span.div_ceil(grain) + ticks.div_ceil(grain) <= u64::MAX >> (64 - bits)
        };
        let bits = (1..=63).find(|&bits| fits(coarsest, bits));
        let bits =
            bits.ok_or(PlanError::TooLarge("a window of more than 2^62 ticks cannot be planned"))?;
        let (mut too_fine, mut grain) = (0, coarsest);
        while grain - too_fine > 1 {
            let middle = too_fine + (grain - too_fine) / 2;
            if fits(middle, bits) {
                grain = middle;
            } else {
                too_fine = middle;
            }
        }
        let spare = (u64::MAX >> (64 - bits)) - span.div_ceil(grain);
        Ok(Self { bits, grain, span, spare })
    }

    /// How much longer than the window an item may be taken for live.
    pub(super) const fn slack(&self) -> u64 {
        if self.bits == 0 { 0 } else { self.grain - 1 }
    }

    pub(super) fn is_eternal(&self) -> bool {
        self.bits == 0
    }

    /// The number of a moment's grain.
    #[inline]
    pub(super) fn index(&self, moment: u64) -> u64 {
        if self.is_eternal() { 0 } else { moment / self.grain }
    }

    pub(super) fn mask(&self) -> u64 {
        (1 << self.bits) - 1
    }

    /// What a question or a sweep at this moment takes for live, where items' stamps are to be read as of grain
    /// `index` or before.
    #[inline]
    pub(super) fn live(&self, index: u64, moment: u64, within: u64) -> Live {
        if self.is_eternal() {
            return Live { index: 0, mask: 0, ages: 1 };
        }
        self.live_since(index, self.index(moment.saturating_sub(within.min(self.span))))
    }

    /// The stamps of this grain and later ones, to be read as of grain `index` or before.
    pub(super) fn live_since(&self, index: u64, oldest: u64) -> Live {
        let ages = index.checked_sub(oldest).map_or(0, |ages| ages.saturating_add(1));
        Live { index, mask: self.mask(), ages }
    }
}

/// Which stamps are live.
#[derive(Clone, Copy, Debug)]
pub(super) struct Live {
    pub(super) index: u64,
    pub(super) mask: u64,
    /// Ages in grains from 0 to below this.
    pub(super) ages: u64,
}

impl Live {
    /// The age in grains of an item, whose lowest bits are its stamp.
    #[inline(always)]
    pub(super) fn age(&self, item: u64) -> u64 {
        self.index.wrapping_sub(item) & self.mask
    }

    #[inline(always)]
    pub(super) fn has(&self, item: u64) -> bool {
        self.age(item) < self.ages
    }
}
