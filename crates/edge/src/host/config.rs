//! How a host works, and what it keeps at most.

use crate::Millis;
use crate::rules::Rules;

/// How a host works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// The rules that it gives its workers.
    pub rules: Rules,
    /// Send what was added to a filter instead of all of it, where that is shorter.
    pub deltas: bool,
    /// Send elements by name instead of a filter's bits, where that is not longer.
    pub names: bool,
    /// Look again at each reading that the filter speaks against: the host knows exactly what it has, so
    /// it need not lose a reading to its own filter's mistake. The paper does not; readings that were
    /// sent to make sure are always looked at again.
    pub second_look: bool,
    /// Whom it tells that filters were emptied.
    pub reset_by: ResetBy,
    /// What workers and requesters can make it keep.
    pub limits: Limits,
    /// How far ahead of the host's clock a reading's time may be.
    pub max_skew: Millis,
    /// How old a reading may be when it is sent: devices may buffer what they measure.
    pub max_age: Millis,
    /// How long a submission may be on its way: the broker keeps what is sent to a host that is away.
    pub max_delay: Millis,
    /// How long readings are gathered before they are handed on.
    pub deliver_every: Millis,
    /// When readings that nobody confirmed are sent again.
    pub resend_after: Millis,
    /// How often workers are told what became of what they sent, and whether there is nothing for them to do at all.
    /// 0, as in the paper: never.
    pub tell_every: Millis,
    /// How often the coordinator is told how the square does.
    pub aggregate_every: Millis,
    /// A worker that was not heard of for so long has left.
    pub worker_timeout: Millis,
}

/// Whom a host tells at the end of a validity period that filters were emptied, and so in how many messages. Where filters
/// age, nobody needs to be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResetBy {
    /// Each worker in a cell whose filter was not empty: as the paper's algorithm 5 does, in a loop over the workers.
    Worker,
    /// All workers in such a cell at once, with [`Message::Reset`](crate::message::Message::Reset): one message for each of
    /// these cells.
    #[default]
    Cell,
    /// All workers in the square at once, with [`Message::ResetAll`](crate::message::Message::ResetAll): one message, of
    /// which the broker keeps the newest. Workers that do not know this message, of before it came, only notice when they
    /// have heard nothing for two validity periods.
    Square,
}

/// What a host keeps at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Workers known at a time.
    pub workers: u32,
    /// Tasks, at most [`MAX_TASKS`](crate::message::MAX_TASKS).
    pub tasks: u32,
    /// Elements counted in a cell of 1 km.
    pub elements: u32,
    /// Readings that wait to be confirmed by their requesters, counted once for each task. Each task has an
    /// equal share: one whose requester is away does not take the room of the others. What waits for tasks that
    /// are over gives way.
    pub pending: u32,
}

impl Default for HostConfig {
    fn default() -> Self {
        Self {
            rules: Rules::PAPER,
            deltas: true,
            names: true,
            second_look: true,
            reset_by: ResetBy::Cell,
            limits: Limits { workers: 100_000, tasks: 256, elements: 4_096, pending: 100_000 },
            max_skew: 60_000,
            max_age: 7_200_000,
            max_delay: 7_200_000,
            tell_every: 10_000,
            deliver_every: 1_000,
            resend_after: 30_000,
            aggregate_every: 60_000,
            worker_timeout: 3_600_000,
        }
    }
}
