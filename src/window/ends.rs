//! When each part of a window was last marked.

use crate::codec::Reader;
use core::fmt;
use core::ops::Range;

/// What the version of a snapshot has in addition if it says when parts of a window were last marked. Snapshots of
/// before did not.
pub(crate) const VERSION: u16 = 8;

/// Does a snapshot say it?
pub(crate) fn are_told(input: &Reader<'_>) -> bool {
    (input.version() - 1) & VERSION != 0
}

/// Parts that are noted.
pub(super) const PARTS: u64 = 64;

/// The newest tick of each of the last [`PARTS`] parts of time, which are numbered; 0 for one in which there was none.
///
/// A key's moment is known to a grain, and the window may begin in the middle of one. But where the newest tick of a
/// whole part is before the window, all of the part has expired: so keys that came in a burst make room for the next one.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Ends([u64; PARTS as usize]);

/// Which there are is of no use to a reader.
impl fmt::Debug for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ends").finish_non_exhaustive()
    }
}

impl Ends {
    pub(super) const NONE: Self = Self([0; PARTS as usize]);

    #[inline]
    fn place(part: u64) -> usize {
        (part % PARTS) as usize
    }

    /// The newest tick of a part.
    #[inline]
    pub(super) fn of(&self, part: u64) -> u64 {
        self.0[Self::place(part)]
    }

    /// Something was seen at a tick, of this part.
    #[inline(always)]
    pub(super) fn note(&mut self, part: u64, tick: u64) {
        let end = &mut self.0[Self::place(part)];
        *end = tick.max(*end);
    }

    /// These parts end at a tick, whatever is known of them.
    pub(super) fn set(&mut self, parts: Range<u64>, tick: u64) {
        for part in parts.start.max(parts.end.saturating_sub(PARTS))..parts.end {
            self.0[Self::place(part)] = tick;
        }
    }

    /// Takes over what another one of the same moment knows.
    pub(super) fn unite(&mut self, other: &Self) {
        for (ours, &theirs) in self.0.iter_mut().zip(&other.0) {
            *ours = theirs.max(*ours);
        }
    }

    /// The first of some parts in which something was seen at a tick or later; their end, if there is none.
    pub(super) fn first_since(&self, tick: u64, parts: Range<u64>) -> u64 {
        parts.clone().find(|&part| self.of(part) >= tick).unwrap_or(parts.end)
    }
}
