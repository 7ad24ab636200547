//! What there is to say of a filter.

use super::entry::{Counts, Entry, Inner};
use super::template::Reach;
use lately::{Filter, Overload, Renewal, Structure, WindowFilter};

/// What is known of a filter without reading its tables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) structure: Structure,
    pub(crate) reach: Reach,
    /// How much longer than its window it may remember, in the window's unit.
    pub(crate) slack: u64,
    pub(crate) renewal: Renewal,
    pub(crate) counts: Counts,
    /// Keys that it can hold now.
    pub(crate) capacity: u64,
    /// The false positive rate that is promised.
    pub(crate) fpr: f64,
    /// Bytes of the budget.
    pub(crate) memory: u64,
    pub(crate) tables: usize,
    /// Refused keys include those for which the budget had no memory.
    pub(crate) overload: Overload,
}

/// How full a filter is, which takes reading all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Fullness {
    pub(crate) fill: f64,
    /// The false positive rate at this fill.
    pub(crate) estimated_fpr: f64,
}

impl Entry {
    pub(crate) fn facts(&self) -> Facts {
        self.lock().facts()
    }

    /// Callers wait meanwhile.
    pub(crate) fn fullness(&self) -> Fullness {
        self.lock().fullness()
    }
}

impl Inner {
    pub(crate) fn facts(&self) -> Facts {
        let filter = self.filter.filter();
        let mut overload = filter.overload();
        overload.refused = overload.refused.saturating_add(self.counts.refused);
        Facts {
            structure: filter.structure(),
            reach: self.options.reach,
            slack: if self.options.reach == Reach::Forever { 0 } else { filter.slack() },
            renewal: self.options.renewal,
            counts: self.counts,
            capacity: self.capacity(),
            fpr: filter.fpr(),
            memory: self.filter.memory(),
            tables: filter.tables(),
            overload,
        }
    }

    pub(crate) fn fullness(&self) -> Fullness {
        let filter = self.filter.filter();
        Fullness { fill: filter.fill(), estimated_fpr: filter.estimated_fpr() }
    }
}
