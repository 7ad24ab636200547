//! The exact truth, to compare the filters with.

use crate::Millis;
use crate::cell::{KmCell, SmallCell};
use crate::decide::Decider;
use crate::element::Element;
use crate::filter::Stamp;
use crate::rules::{Mode, Rules};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Exact tables of one property: which elements are in the hosts' filters, and what was kept of each.
#[derive(Debug, Default)]
pub(super) struct Oracle {
    /// The state of its cell's filter that an element came with, and the grain.
    added: HashMap<SmallCell, (Stamp, u64), BuildHasherDefault<Mixer>>,
    /// The newest state of each cell's filter.
    newest: HashMap<KmCell, Stamp, BuildHasherDefault<Mixer>>,
    /// This period of each element that somebody was at.
    period: HashMap<SmallCell, Seen, BuildHasherDefault<Mixer>>,
    /// When a reading was last kept.
    kept: HashMap<SmallCell, Millis, BuildHasherDefault<Mixer>>,
}

/// What happened at an element in this period.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    pub(super) kept: bool,
    /// A reading was lost to a false positive.
    pub(super) lost: bool,
    /// At some time a reading that was kept before was valid still.
    pub(super) fresh: bool,
}

impl Oracle {
    /// Is this a newer state of the cell's filter than the one noted last?
    pub(super) fn advance(&mut self, km: KmCell, stamp: Stamp) -> bool {
        let before = self.newest.insert(km, stamp);
        let none = Stamp { version: 0, ..stamp };
        before.filter(|before| before.is_comparable(stamp)).unwrap_or(none) != stamp
    }

    /// An element is in its host's filter from this state on.
    pub(super) fn add(&mut self, cell: SmallCell, stamp: Stamp, grain: u64) {
        self.added.insert(cell, (stamp, grain));
    }

    /// Is the element in the worker's filter, or does the filter only say so?
    pub(super) fn is_in(&self, element: &Element, decider: &Decider, now: Millis) -> bool {
        let rules: &Rules = decider.rules();
        if decider.sent_of(element, now) >= rules.m_worker {
            return true;
        }
        let Some(&(stamp, grain)) = self.added.get(&element.cell) else { return false };
        let known = decider.stamp();
        let live = match rules.mode {
            Mode::Reset => true,
            Mode::Ageing { steps } => rules.grain(now) - grain < u64::from(steps),
        };
        live && stamp.is_comparable(known) && stamp.version <= known.version
    }

    /// Somebody is there. What happens to the reading is noted in the result.
    pub(super) fn seen(&mut self, cell: SmallCell) -> &mut Seen {
        self.period.entry(cell).or_default()
    }

    /// A reading was kept.
    pub(super) fn keep(&mut self, cell: SmallCell, now: Millis) {
        self.kept.insert(cell, now);
    }

    /// Is there a kept reading of the element that is not older than this?
    pub(super) fn is_fresh(&self, cell: SmallCell, age: Millis, now: Millis) -> bool {
        self.kept.get(&cell).is_some_and(|&kept| now - kept < age)
    }

    /// Ends the period: elements that were seen; that had a reading kept; that had none, although a false positive or
    /// something else has cost one, or none of before was valid.
    pub(super) fn end_period(&mut self) -> (u64, u64, u64) {
        let seen = self.period.len() as u64;
        let kept = self.period.values().filter(|seen| seen.kept).count() as u64;
        let lost =
            self.period.values().filter(|seen| !seen.kept && (seen.lost || !seen.fresh)).count()
                as u64;
        self.period.clear();
        (seen, kept, lost)
    }
}

/// Cells are numbers already, of which some bits never change.
#[derive(Default)]
pub(super) struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u64(&mut self, value: u64) {
        let mixed = (self.0 ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ mixed >> 32;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
