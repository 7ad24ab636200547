//! What became of the messages a host got.

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

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Refusal {
    /// A kind of message, or a square, that another role is for.
    NotForMe,
    /// The cell is not in the host's square.
    ForeignCell,
    /// A worker that can measure nothing, or too much.
    Properties,
    /// The reading's time lies ahead of the host's clock by more than is allowed.
    Future,
    /// The reading is too old.
    Old,
    /// No task wants such a reading.
    NoTask,
    /// A task that is over, elsewhere, or somebody else's.
    Task,
    /// As many workers as can be known.
    TooManyWorkers,
    /// As many tasks as can be kept.
    TooManyTasks,
    /// As many elements as can be counted in the cell.
    TooManyElements,
    /// As many readings wait for their requesters as can be kept.
    Full,
}

impl Refusal {
    /// All reasons.
    pub const ALL: [Self; 11] = [
        Self::NotForMe,
        Self::ForeignCell,
        Self::Properties,
        Self::Future,
        Self::Old,
        Self::NoTask,
        Self::Task,
        Self::TooManyWorkers,
        Self::TooManyTasks,
        Self::TooManyElements,
        Self::Full,
    ];

    /// A short name, to count by.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::NotForMe => "not-for-me",
            Self::ForeignCell => "foreign-cell",
            Self::Properties => "properties",
            Self::Future => "future",
            Self::Old => "old",
            Self::NoTask => "no-task",
            Self::Task => "task",
            Self::TooManyWorkers => "too-many-workers",
            Self::TooManyTasks => "too-many-tasks",
            Self::TooManyElements => "too-many-elements",
            Self::Full => "full",
        }
    }
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
    pub(super) fn note(&mut self, handled: Handled) {
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
    pub(super) fn counted(self, counts: &mut HostCounts) -> Self {
        if let Self::Refused(refusal) = self
            && let Some(count) = counts.refusals.get_mut(refusal as usize)
        {
            *count += 1;
        }
        self
    }
}
