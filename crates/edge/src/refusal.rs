//! Why a host does not take a message.

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
    /// The reading was too old when it was sent, or was on its way for too long.
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

    /// The one with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

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
