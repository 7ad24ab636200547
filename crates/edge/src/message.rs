//! All messages, and who sends them to whom. Their bytes are in [`wire`](crate::wire).

use crate::Millis;
use crate::cell::{KmCell, SmallCell, Square};
use crate::element::{Element, Property};
use crate::filter::{Share, Stamp};
use crate::ids::{ProcessId, RequesterId, TaskId, WorkerId};
use crate::rules::Rules;
use crate::tally::Tally;
use crate::task::{Task, TaskError};
use alloc::vec::Vec;

/// Who a message is for, or from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Peer {
    /// The one coordinator.
    Coordinator,
    /// A process that runs hosts.
    Process(ProcessId),
    /// The host of a square.
    Host(Square),
    /// A worker.
    Worker(WorkerId),
    /// All workers in a cell of 1 km: one message (multicast).
    Cell(KmCell),
    /// All workers in a square that have a task there: one message, of which the broker keeps the newest for those that
    /// come later.
    Square(Square),
    /// A requester.
    Requester(RequesterId),
}

/// A message on its way.
#[derive(Clone, Debug, PartialEq)]
pub struct Outgoing {
    /// Who it is for.
    pub to: Peer,
    /// What it says.
    pub message: Message,
}

/// A reading: what was measured where and when, and how much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// Where and what.
    pub element: Element,
    /// How much, in the property's unit; a finite number.
    pub value: f64,
    /// When, by the worker's clock.
    pub time: Millis,
}

/// What a host tells the coordinator of its square: counts since the host began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Aggregate {
    /// Readings kept.
    pub kept: u64,
    /// Readings that were redundant.
    pub redundant: u64,
    /// Workers known at present.
    pub workers: u32,
    /// Cells of 1 km with a filter at present.
    pub cells: u32,
    /// Elements that false positives are expected to have cost.
    pub expected_lost: f64,
    /// Sum of the kept values, of the property that [`Message::Aggregate`] names.
    pub sum: f64,
    /// Number of the kept values of that property.
    pub count: u64,
    /// The least of them; 0 when there are none.
    pub least: f64,
    /// The greatest of them; 0 when there are none.
    pub greatest: f64,
}

/// What roles say to each other.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Message {
    /// Worker → coordinator: which host is responsible for this square?
    LookUp {
        /// Who asks.
        worker: WorkerId,
        /// Where it is.
        square: Square,
    },
    /// Coordinator → worker: the square has a host.
    Located {
        /// The square.
        square: Square,
    },
    /// Coordinator → worker: nobody can host the square at present; ask again later.
    Unplaced {
        /// The square.
        square: Square,
    },
    /// Process → coordinator: I can run hosts. Sent at the start and from time to time.
    Hello {
        /// Who offers.
        process: ProcessId,
        /// Squares that it can run in all.
        room: u32,
        /// Squares that it runs, at most [`MAX_SQUARES`].
        squares: Vec<Square>,
    },
    /// Anybody → coordinator, as a last will: the process is gone.
    Gone {
        /// Which.
        process: ProcessId,
    },
    /// Coordinator → process: run the host of this square.
    Place {
        /// The square.
        square: Square,
        /// The rules of its workers.
        rules: Rules,
        /// Tasks that touch it and whom they are for, at most [`MAX_TASKS`].
        tasks: Vec<(RequesterId, Task)>,
        /// Names what the coordinator knows of tasks: what hosts know from another book is not over because it is not
        /// named here.
        book: u64,
    },
    /// Coordinator → process that was away too long: another one runs the host of this square now.
    Release {
        /// The square.
        square: Square,
    },
    /// Process → coordinator: the host of this square runs.
    Ready {
        /// Who runs it.
        process: ProcessId,
        /// The square.
        square: Square,
    },
    /// Worker → host: I am in this cell.
    Announce {
        /// Who.
        worker: WorkerId,
        /// Where.
        cell: KmCell,
        /// What it can measure, at most [`MAX_PROPERTIES`].
        properties: Vec<Property>,
        /// Which state of the cell's filter it still has.
        known: Option<Stamp>,
    },
    /// Host → worker: what to do in this cell, and the cell's filter.
    Assign {
        /// The cell.
        cell: KmCell,
        /// The rules.
        rules: Rules,
        /// Tasks that suit the worker, at most [`MAX_TASKS`].
        tasks: Vec<Task>,
        /// The filter, or what was added since the state that the worker named.
        share: Share,
    },
    /// Worker → host: a reading.
    Submit {
        /// Who.
        worker: WorkerId,
        /// Counts the submissions of a worker's life, so that one delivered twice is known; see
        /// [`life_of`](crate::tally::life_of).
        sequence: u64,
        /// When it was sent, by the worker's clock: the reading's time, unless it was buffered.
        sent: Millis,
        /// The state of the filter by which it was decided.
        stamp: Stamp,
        /// Was it sent to make sure, although the filter spoke against it?
        refresh: bool,
        /// The reading.
        reading: Reading,
    },
    /// Host → worker: what became of what it has sent so far.
    Tally {
        /// The host's square.
        square: Square,
        /// When that host began: another one of the same square counts from 0.
        born: Millis,
        /// Of which of the worker's lives.
        life: u32,
        /// Since that life began.
        tally: Tally,
    },
    /// Coordinator → coordinators, and all who want to know; process → processes of its identity: who acts. See
    /// [`Lease`](crate::lease::Lease).
    Lease {
        /// Who says so: a random number of each start.
        holder: u64,
        /// 0 for a question; the higher one stays.
        epoch: u64,
        /// It acts.
        held: bool,
    },
    /// Requester → coordinator: which tasks are there?
    List {
        /// Who asks.
        requester: RequesterId,
    },
    /// Coordinator → requester: the tasks that there are, at most [`MAX_TASKS`].
    Listed {
        /// Whose they are, and the tasks.
        tasks: Vec<(RequesterId, Task)>,
    },
    /// Host → worker that sent something redundant: the cell's filter.
    Update {
        /// The cell.
        cell: KmCell,
        /// The filter, or what was added.
        share: Share,
    },
    /// Host → all workers of a cell: the filter was emptied.
    Reset {
        /// The cell.
        cell: KmCell,
        /// The state of the empty filter.
        stamp: Stamp,
    },
    /// Host → all workers of its square: filters of an earlier period, or of an earlier incarnation than `since`, were
    /// emptied. Those of this period are valid from that incarnation on, so a worker that was told, or assigned, since
    /// then loses nothing when it is told again.
    ResetAll {
        /// The square.
        square: Square,
        /// The state of its empty filters.
        stamp: Stamp,
        /// The first incarnation whose filters hold nothing that the host does not know; at most that of the stamp.
        since: u32,
    },
    /// Worker → host, or as its last will: it is no longer there.
    Leave {
        /// Who.
        worker: WorkerId,
    },
    /// Requester → coordinator: a task.
    Post {
        /// Who.
        requester: RequesterId,
        /// The task.
        task: Task,
    },
    /// Requester → coordinator, coordinator → hosts, host → workers: the task is over.
    Withdraw {
        /// Which.
        task: TaskId,
    },
    /// Coordinator → requester: the task was taken.
    Posted {
        /// Which.
        task: TaskId,
        /// Hosts that it was forwarded to; others follow when they are placed.
        hosts: u32,
    },
    /// Coordinator → requester: the task was not taken.
    Refused {
        /// Which.
        task: TaskId,
        /// Why.
        reason: TaskError,
    },
    /// Coordinator → host: a task, and whom its readings are for.
    Forward {
        /// Who posted it.
        requester: RequesterId,
        /// The task.
        task: Task,
    },
    /// Host → requester: readings. Sent again until they are confirmed.
    Results {
        /// Of which task.
        task: TaskId,
        /// From which host.
        square: Square,
        /// Names the batch among all of this host.
        batch: u64,
        /// At most [`MAX_READINGS`].
        readings: Vec<Reading>,
    },
    /// Requester → host: the batch is safe here.
    Received {
        /// From which host it came.
        square: Square,
        /// Which.
        batch: u64,
    },
    /// Host → coordinator: how the square does, with the values of one property.
    Aggregate {
        /// The square.
        square: Square,
        /// The property whose values are summed up; `None` when no reading was kept yet.
        property: Option<Property>,
        /// The counts.
        aggregate: Aggregate,
    },
}

/// The most properties of a worker.
pub const MAX_PROPERTIES: usize = 16;
/// The most tasks in one message.
pub const MAX_TASKS: usize = 256;
/// The most readings in one message.
pub const MAX_READINGS: usize = 256;
/// The most squares in one message.
pub const MAX_SQUARES: usize = 4096;

/// The kind of a message, to count them by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// [`Message::LookUp`].
    LookUp = 1,
    /// [`Message::Located`].
    Located = 2,
    /// [`Message::Unplaced`].
    Unplaced = 3,
    /// [`Message::Hello`].
    Hello = 4,
    /// [`Message::Gone`].
    Gone = 5,
    /// [`Message::Place`].
    Place = 6,
    /// [`Message::Ready`].
    Ready = 7,
    /// [`Message::Announce`].
    Announce = 8,
    /// [`Message::Assign`].
    Assign = 9,
    /// [`Message::Submit`].
    Submit = 10,
    /// [`Message::Update`].
    Update = 11,
    /// [`Message::Reset`].
    Reset = 12,
    /// [`Message::Leave`].
    Leave = 13,
    /// [`Message::Post`].
    Post = 14,
    /// [`Message::Withdraw`].
    Withdraw = 15,
    /// [`Message::Posted`].
    Posted = 16,
    /// [`Message::Refused`].
    Refused = 17,
    /// [`Message::Forward`].
    Forward = 18,
    /// [`Message::Results`].
    Results = 19,
    /// [`Message::Received`].
    Received = 20,
    /// [`Message::Aggregate`].
    Aggregate = 21,
    /// [`Message::Release`].
    Release = 22,
    /// [`Message::Tally`].
    Tally = 23,
    /// [`Message::Lease`].
    Lease = 24,
    /// [`Message::List`].
    List = 25,
    /// [`Message::Listed`].
    Listed = 26,
    /// [`Message::ResetAll`].
    ResetAll = 27,
}

impl Kind {
    /// All, in the order of their numbers, which begin with 1.
    pub const ALL: [Self; 27] = [
        Self::LookUp,
        Self::Located,
        Self::Unplaced,
        Self::Hello,
        Self::Gone,
        Self::Place,
        Self::Ready,
        Self::Announce,
        Self::Assign,
        Self::Submit,
        Self::Update,
        Self::Reset,
        Self::Leave,
        Self::Post,
        Self::Withdraw,
        Self::Posted,
        Self::Refused,
        Self::Forward,
        Self::Results,
        Self::Received,
        Self::Aggregate,
        Self::Release,
        Self::Tally,
        Self::Lease,
        Self::List,
        Self::Listed,
        Self::ResetAll,
    ];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LookUp => "look-up",
            Self::Located => "located",
            Self::Unplaced => "unplaced",
            Self::Hello => "hello",
            Self::Gone => "gone",
            Self::Place => "place",
            Self::Ready => "ready",
            Self::Announce => "announce",
            Self::Assign => "assign",
            Self::Submit => "submit",
            Self::Update => "update",
            Self::Reset => "reset",
            Self::Leave => "leave",
            Self::Post => "post",
            Self::Withdraw => "withdraw",
            Self::Posted => "posted",
            Self::Refused => "refused",
            Self::Forward => "forward",
            Self::Results => "results",
            Self::Received => "received",
            Self::Aggregate => "aggregate",
            Self::Release => "release",
            Self::Tally => "tally",
            Self::Lease => "lease",
            Self::List => "list",
            Self::Listed => "listed",
            Self::ResetAll => "reset-all",
        }
    }
}

impl Message {
    /// Its kind.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::LookUp { .. } => Kind::LookUp,
            Self::Located { .. } => Kind::Located,
            Self::Unplaced { .. } => Kind::Unplaced,
            Self::Hello { .. } => Kind::Hello,
            Self::Gone { .. } => Kind::Gone,
            Self::Place { .. } => Kind::Place,
            Self::Ready { .. } => Kind::Ready,
            Self::Announce { .. } => Kind::Announce,
            Self::Assign { .. } => Kind::Assign,
            Self::Submit { .. } => Kind::Submit,
            Self::Update { .. } => Kind::Update,
            Self::Reset { .. } => Kind::Reset,
            Self::Leave { .. } => Kind::Leave,
            Self::Post { .. } => Kind::Post,
            Self::Withdraw { .. } => Kind::Withdraw,
            Self::Posted { .. } => Kind::Posted,
            Self::Refused { .. } => Kind::Refused,
            Self::Forward { .. } => Kind::Forward,
            Self::Results { .. } => Kind::Results,
            Self::Received { .. } => Kind::Received,
            Self::Aggregate { .. } => Kind::Aggregate,
            Self::Release { .. } => Kind::Release,
            Self::Tally { .. } => Kind::Tally,
            Self::Lease { .. } => Kind::Lease,
            Self::List { .. } => Kind::List,
            Self::Listed { .. } => Kind::Listed,
            Self::ResetAll { .. } => Kind::ResetAll,
        }
    }
}

impl Reading {
    /// The cell of 1 km whose filter decides about it.
    pub const fn km(&self) -> KmCell {
        self.element.cell.km()
    }

    /// The cell of 100 m.
    pub const fn cell(&self) -> SmallCell {
        self.element.cell
    }
}
