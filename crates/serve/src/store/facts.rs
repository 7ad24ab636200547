//! What there is to say of a filter.

use super::entry::{Counts, Entry, Inner};
use super::kept::Kept;
use super::numbers::Numbers;
use super::template::{RANGE_WINDOW, Reach};
use lately::{Filter, Overload, Renewal, WindowFilter};

/// What is known of a filter without reading its tables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) structure: &'static str,
    /// How its keys are spelt, if it is asked for intervals.
    pub(crate) numbers: Option<Numbers>,
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
        let mut overload = self.filter.overload();
        overload.refused = overload.refused.saturating_add(self.counts.refused);
        let (structure, slack, fpr) = match &self.filter {
            Kept::Points(filter) => {
                let filter = filter.filter();
                (filter.structure().name(), filter.slack(), filter.fpr())
            }
            Kept::Ranges(intervals) => {
                let window = intervals.window();
                (RANGE_WINDOW, window.slack(), window.fpr())
            }
        };
        Facts {
            structure,
            numbers: self.options.family.numbers(),
            reach: self.options.reach,
            slack: if self.options.reach == Reach::Forever { 0 } else { slack },
            renewal: self.options.renewal,
            counts: self.counts,
            capacity: self.capacity(),
            fpr,
            memory: self.filter.memory(),
            tables: self.filter.tables(),
            overload,
        }
    }

    pub(crate) fn fullness(&self) -> Fullness {
        match &self.filter {
            Kept::Points(filter) => {
                let filter = filter.filter();
                Fullness { fill: filter.fill(), estimated_fpr: filter.estimated_fpr() }
            }
            Kept::Ranges(intervals) => {
                let window = intervals.window();
                // Some keys count twice, and some have expired.
                let fill = (window.keys() as f64 / window.capacity() as f64).min(1.0);
                Fullness { fill, estimated_fpr: window.estimated_fpr() }
            }
        }
    }
}
