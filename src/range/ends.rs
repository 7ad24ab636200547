//! When each part of a window ended.

use super::ages::Ages;

/// Parts that the cycle of the stamps is divided into, as a power of two.
const PART_BITS: u32 = 4;

/// One more, as both ends of a window may lie within a part.
const PARTS: usize = (1 << PART_BITS) + 1;

/// The newest moment of each part of the time that stamps distinguish.
///
/// A stamp says which grain an item is of, and the window may begin in the middle of one. Where the newest item of a whole part has
/// expired, all of the grain has: so keys that came in a burst make room for the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ends(pub(super) [u64; PARTS]);

impl Ends {
    pub(super) const NONE: Self = Self([0; PARTS]);

    fn place(grain: u64, ages: &Ages) -> usize {
        let part = grain >> ages.bits.saturating_sub(PART_BITS);
        (part % PARTS as u64) as usize
    }

    /// Something was seen at this moment, of this grain.
    #[inline]
    pub(super) fn note(&mut self, moment: u64, grain: u64, ages: &Ages) {
        let end = &mut self.0[Self::place(grain, ages)];
        *end = moment.max(*end);
    }

    /// The oldest grain of which something may be live at this moment.
    pub(super) fn oldest(&self, moment: u64, ages: &Ages) -> u64 {
        let from = moment.saturating_sub(ages.span);
        let grain = ages.index(from);
        if ages.slack() == 0 {
            // Stamps tell moments.
            return grain;
        }
        // A part in which nothing came has the end of an earlier one.
        let has_expired = self.0[Self::place(grain, ages)] < from;
        grain + u64::from(has_expired)
    }
}
