//! What became of the messages a host got.

use crate::refusal::Refusal;

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Handled {
    /// It was a reading.
    Reading(Receipt),
    /// It was something else, and was done.
    Done,
    /// It was not taken.
    Refused(Refusal),
}

/// What became of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// Kept, and on its way to the requesters.
    Kept,
    /// Kept although the filter spoke against it: the second look showed that it was wrong.
    Recovered,
    /// There are enough of it.
    Redundant,
    /// There are not enough of it, but the filter took it for one of which there are.
    Lost,
    /// It had arrived before.
    Duplicate,
}

/// Counts since the host began. Every submission is in exactly one of `kept`, `redundant`, `lost`,
/// `duplicates` and `refused`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct HostCounts {
    /// Readings that arrived.
    pub submissions: u64,
    /// Readings kept.
    pub kept: u64,
    /// Of them, those kept although the filter spoke against them.
    pub recovered: u64,
    /// Readings of which there were enough.
    pub redundant: u64,
    /// Readings lost to a false positive of the host's filter.
    pub lost: u64,
    /// Readings that had arrived before.
    pub duplicates: u64,
    /// Readings refused.
    pub refused: u64,
    /// Readings that one of the tasks that wanted them did not get, counted once for each such task: too many
    /// wait for its requester, or it did not come back in a day after the task's end.
    pub undelivered: u64,
    /// How often the clock went back by so much that it must have been wrong before.
    pub clock_corrections: u64,
    /// All messages refused, readings too, by reason.
    pub refusals: [u64; Refusal::ALL.len()],
    /// Elements that false positives are expected to have cost in a period, summed up from the filter's
    /// fill whenever a new element came: if one of `1 - φ` such gets through, `φ / (1 - φ)` did not.
    pub expected_lost: f64,
}

impl HostCounts {
    /// Counts what became of a submission.
    pub(crate) fn note(&mut self, handled: Handled) {
        self.submissions += 1;
        match handled {
            Handled::Reading(Receipt::Kept) => self.kept += 1,
            Handled::Reading(Receipt::Recovered) => {
                self.kept += 1;
                self.recovered += 1;
            }
            Handled::Reading(Receipt::Redundant) => self.redundant += 1,
            Handled::Reading(Receipt::Lost) => self.lost += 1,
            Handled::Reading(Receipt::Duplicate) => self.duplicates += 1,
            Handled::Refused(_) | Handled::Done => {
                self.refused += 1;
                let _ = handled.counted(self);
            }
        }
    }

    /// Adds another host's.
    pub fn add(&mut self, other: &Self) {
        self.submissions += other.submissions;
        self.kept += other.kept;
        self.recovered += other.recovered;
        self.redundant += other.redundant;
        self.lost += other.lost;
        self.duplicates += other.duplicates;
        self.refused += other.refused;
        self.undelivered += other.undelivered;
        self.clock_corrections += other.clock_corrections;
        for (count, more) in self.refusals.iter_mut().zip(other.refusals) {
            *count += more;
        }
        self.expected_lost += other.expected_lost;
    }

    /// How many messages were refused for a reason.
    pub fn refused_for(&self, refusal: Refusal) -> u64 {
        self.refusals.get(refusal as usize).copied().unwrap_or(0)
    }
}

impl Handled {
    /// Counts a refusal by its reason.
    pub(crate) fn counted(self, counts: &mut HostCounts) -> Self {
        if let Self::Refused(refusal) = self
            && let Some(count) = counts.refusals.get_mut(refusal as usize)
        {
            *count += 1;
        }
        self
    }
}
