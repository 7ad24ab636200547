//! Topics: who is addressed, and by which role.
//!
//! `lately/1/{whom}/{by}`. The last level names the role that publishes, so that a broker's access
//! list can say who may speak to whom, and a receiver drops what another role has no business to say.

use lately_edge::cell::Square;
use lately_edge::ids::{ProcessId, RequesterId, WorkerId};
use lately_edge::message::{Kind, Peer};
use std::fmt;

/// What all topics begin with: the name and the version of the scheme.
const ROOT: &str = "lately/1/";
/// The filter to subscribe to for all messages of all roles.
pub const EVERYTHING: &str = "lately/1/#";
/// Where last wills of workers go: they do not know their square when they connect.
const GONE: &str = "gone";

/// Where the newest reset of a square stays.
const SQUARE: &str = "square";

/// Does the broker keep the newest message of this topic, or of the topics of this filter, for those who subscribe later?
pub fn is_kept(topic: &str) -> bool {
    let whom = topic.strip_prefix(ROOT).and_then(|rest| rest.split_once('/'));
    whom.is_some_and(|(whom, _)| whom == SQUARE)
}

/// The role that publishes a message. Hosts speak as the process that runs them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The coordinator.
    Coordinator,
    /// A process that runs hosts.
    Process,
    /// A worker.
    Worker,
    /// A requester.
    Requester,
}

impl Sender {
    const ALL: [Self; 4] = [Self::Coordinator, Self::Process, Self::Worker, Self::Requester];

    /// Its level of a topic.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Coordinator => "coordinator",
            Self::Process => "process",
            Self::Worker => "worker",
            Self::Requester => "requester",
        }
    }

    /// Is a message of this kind one that the role sends to whoever this is?
    pub const fn says(self, kind: Kind, to: Address) -> bool {
        match kind {
            Kind::LookUp | Kind::Announce | Kind::Submit | Kind::Leave => {
                matches!(self, Self::Worker)
            }
            Kind::Located
            | Kind::Unplaced
            | Kind::Place
            | Kind::Release
            | Kind::Posted
            | Kind::Refused
            | Kind::Listed
            | Kind::Forward => matches!(self, Self::Coordinator),
            Kind::Hello
            | Kind::Gone
            | Kind::Ready
            | Kind::Assign
            | Kind::Update
            | Kind::Reset
            | Kind::ResetAll
            | Kind::Results
            | Kind::Tally
            | Kind::Aggregate => matches!(self, Self::Process),
            Kind::Post | Kind::Received | Kind::List => matches!(self, Self::Requester),
            Kind::Lease => match to {
                Address::Lease(Office::Process(_)) => matches!(self, Self::Process),
                _ => matches!(self, Self::Coordinator),
            },
            // From its requester to the coordinator, and from there on.
            Kind::Withdraw => matches!(
                (self, to),
                (Self::Requester, Address::Peer(Peer::Coordinator))
                    | (Self::Coordinator, Address::Peer(Peer::Host(_)))
                    | (Self::Process, Address::Peer(Peer::Cell(_)))
            ),
        }
    }
}

/// Whom a topic addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// One peer, or the workers in a cell.
    Peer(Peer),
    /// All hosts: a worker's connection was lost.
    Gone,
    /// All who want to know who acts in an office.
    Lease(Office),
}

/// What only one may act as at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Office {
    /// The coordinator.
    Coordinator,
    /// A process of this identity.
    Process(ProcessId),
}

impl From<Peer> for Address {
    fn from(peer: Peer) -> Self {
        Self::Peer(peer)
    }
}

impl fmt::Display for Address {
    /// The levels of the topic that name it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str(GONE),
            Self::Lease(Office::Coordinator) => f.write_str("lease/coordinator"),
            Self::Lease(Office::Process(id)) => write!(f, "lease/{id}"),
            Self::Peer(Peer::Coordinator) => f.write_str("coordinator"),
            Self::Peer(Peer::Process(id)) => write!(f, "process/{id}"),
            Self::Peer(Peer::Host(square)) => write!(f, "host/{square}"),
            Self::Peer(Peer::Worker(id)) => write!(f, "worker/{id}"),
            Self::Peer(Peer::Cell(cell)) => write!(f, "cell/{cell}"),
            Self::Peer(Peer::Square(square)) => write!(f, "{SQUARE}/{square}"),
            Self::Peer(Peer::Requester(id)) => write!(f, "requester/{id}"),
        }
    }
}

/// The topic of a message.
///
/// # Example
/// ```
/// use lately_edge::message::Peer;
/// use lately_edge_mqtt::topic::{Sender, topic};
/// let host = Peer::Host("33TWL77".parse()?);
/// assert_eq!(topic(host, Sender::Worker), "lately/1/host/33TWL77/worker");
/// # Ok::<(), lately_edge::cell::CellError>(())
/// ```
pub fn topic(to: impl Into<Address>, by: Sender) -> String {
    format!("{ROOT}{}/{}", to.into(), by.name())
}

/// The filter to subscribe to for all that is addressed to somebody.
pub fn filter(to: impl Into<Address>) -> String {
    format!("{ROOT}{}/+", to.into())
}

/// Whom a topic addresses, and the role that publishes there; `None` for a topic that is not ours.
pub fn parse(topic: &str) -> Option<(Address, Sender)> {
    let (whom, by) = topic.strip_prefix(ROOT)?.rsplit_once('/')?;
    let by = Sender::ALL.into_iter().find(|sender| sender.name() == by)?;
    if whom == GONE {
        return Some((Address::Gone, by));
    }
    if whom == "coordinator" {
        return Some((Peer::Coordinator.into(), by));
    }
    let (role, name) = whom.split_once('/')?;
    if role == "lease" {
        let office = match name {
            "coordinator" => Office::Coordinator,
            id_of => Office::Process(ProcessId(id(id_of)?)),
        };
        return Some((Address::Lease(office), by));
    }
    let peer = match role {
        "process" => Peer::Process(ProcessId(id(name)?)),
        "host" => Peer::Host(name.parse::<Square>().ok()?),
        "worker" => Peer::Worker(WorkerId(id(name)?)),
        "cell" => Peer::Cell(name.parse().ok()?),
        SQUARE => Peer::Square(name.parse::<Square>().ok()?),
        "requester" => Peer::Requester(RequesterId(id(name)?)),
        _ => return None,
    };
    Some((peer.into(), by))
}

/// An id as it is displayed: 16 hexadecimal digits.
pub fn id(name: &str) -> Option<u64> {
    let digits = name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    digits.then(|| u64::from_str_radix(name, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_go_back() {
        let peers = [
            Address::Gone,
            Address::Lease(Office::Coordinator),
            Address::Lease(Office::Process(ProcessId(7))),
            Peer::Coordinator.into(),
            Peer::Process(ProcessId(7)).into(),
            Peer::Host("33TWL77".parse().unwrap()).into(),
            Peer::Worker(WorkerId(u64::MAX)).into(),
            Peer::Cell("33TWL7573".parse().unwrap()).into(),
            Peer::Square("33TWL77".parse().unwrap()).into(),
            Peer::Requester(RequesterId(0)).into(),
        ];
        for peer in peers {
            for by in Sender::ALL {
                assert_eq!(parse(&topic(peer, by)), Some((peer, by)));
            }
        }
    }

    #[test]
    fn only_resets_of_squares_are_kept() {
        let square = "33TWL77".parse().unwrap();
        for (peer, kept) in [
            (Peer::Square(square), true),
            (Peer::Host(square), false),
            (Peer::Cell("33TWL7573".parse().unwrap()), false),
            (Peer::Coordinator, false),
        ] {
            assert_eq!(is_kept(&topic(peer, Sender::Process)), kept);
            assert_eq!(is_kept(&filter(peer)), kept);
        }
        assert!(!is_kept(EVERYTHING));
    }

    #[test]
    fn what_is_no_topic() {
        for topic in [
            "",
            "lately/1/",
            "lately/2/coordinator/worker",
            "lately/1/coordinator",
            "lately/1/coordinator/nobody",
            "lately/1/host/33TWL7/worker",
            "lately/1/worker/7/coordinator",
            "lately/1/worker/+00000000000007/coordinator",
            "lately/1/host/33TWL77/worker/x",
        ] {
            assert_eq!(parse(topic), None, "{topic}");
        }
    }

    #[test]
    fn every_kind_has_a_sender() {
        let host = Peer::Host("33TWL77".parse().unwrap()).into();
        let cell = Peer::Cell("33TWL7573".parse().unwrap()).into();
        for kind in Kind::ALL {
            for to in [Peer::Coordinator.into(), host, cell] {
                let says = |sender: &Sender| sender.says(kind, to);
                let senders: Vec<Sender> = Sender::ALL.into_iter().filter(says).collect();
                assert_eq!(senders.len(), 1, "{kind:?}");
            }
        }
        // Only the coordinator ends a task at a host, as a requester could end another's.
        assert!(!Sender::Requester.says(Kind::Withdraw, host));
        assert!(Sender::Coordinator.says(Kind::Withdraw, host));
    }
}
