//! What several tests need.

// Each test uses a part of it.
#![allow(dead_code, clippy::unwrap_used, clippy::panic)]

use lately_edge::Millis;
use lately_edge::cell::{KmCell, SmallCell};
use lately_edge::element::{Element, Property};
use lately_edge::filter::{Contents, Named, Share, Stamp};
use lately_edge::host::{Host, HostConfig};
use lately_edge::ids::{ProcessId, RequesterId, TaskId, WorkerId};
use lately_edge::message::{Aggregate, Message, Outgoing, Reading};
use lately_edge::rules::{Mode, Rules};
use lately_edge::tally::Tally;
use lately_edge::task::{Area, AreaCell, Task, TaskError};

/// Noon of some day.
pub(crate) const NOON: Millis = 1_700_000_000_000 / 86_400_000 * 86_400_000 + 43_200_000;
pub(crate) const MINUTE: Millis = 60_000;

pub(crate) fn property(name: &str) -> Property {
    Property::new(name).unwrap()
}

/// The cell of 100 m number `at`, 0 to 99, of one cell of 1 km.
pub(crate) fn small(at: u32) -> SmallCell {
    format!("33TWL75{}73{}", at / 10 % 10, at % 10).parse().unwrap()
}

/// One of 100 m, in another cell of 1 km of the same square.
pub(crate) fn elsewhere(at: u32) -> SmallCell {
    format!("33TWL71{}73{}", at / 10 % 10, at % 10).parse().unwrap()
}

pub(crate) fn km() -> KmCell {
    small(0).km()
}

pub(crate) fn noise(at: u32) -> Element {
    Element { cell: small(at), property: property("noise") }
}

pub(crate) fn task(wanted: u16) -> Task {
    Task {
        id: TaskId(7),
        property: property("noise"),
        area: Area::Everywhere,
        from: 0,
        until: Millis::MAX,
        wanted,
    }
}

pub(crate) const REQUESTER: RequesterId = RequesterId(70);

pub(crate) fn rules(mode: Mode, validity: Millis, m_worker: u8) -> Rules {
    Rules { mode, validity, m_worker, ..Rules::PAPER }
}

/// A host with one task that wants so many readings.
pub(crate) fn host(config: HostConfig, wanted: u16, now: Millis) -> Host {
    let mut host = Host::new(km().square(), config, now);
    let message = Message::Forward { requester: REQUESTER, task: task(wanted) };
    let _ = host.handle(now, message, &mut Vec::new());
    host
}

pub(crate) fn submit(worker: u64, sequence: u64, element: Element, time: Millis) -> Message {
    let reading = Reading { element, value: 1.0, time };
    let (worker, stamp) = (WorkerId(worker), Stamp::default());
    Message::Submit { worker, sequence, sent: time, stamp, refresh: false, reading }
}

pub(crate) fn announce(worker: u64, cell: KmCell) -> Message {
    let properties = vec![property("noise")];
    Message::Announce { worker: WorkerId(worker), cell, properties, known: None }
}

/// What is sent to a worker of a cell whose host has so many elements.
pub(crate) fn share_of(elements: u32, names: bool) -> (KmCell, Share) {
    let mut host = host(HostConfig { names, ..HostConfig::default() }, 1, NOON);
    let mut out = Vec::new();
    for at in 0..elements {
        let _ = host.handle(NOON, submit(1, u64::from(at) + 1, noise(at), NOON), &mut out);
    }
    out.clear();
    let _ = host.handle(NOON, announce(2, km()), &mut out);
    match out.pop() {
        Some(Outgoing { message: Message::Assign { cell, share, .. }, .. }) => (cell, share),
        other => panic!("no assignment but {other:?}"),
    }
}

/// At least one message of each kind.
pub(crate) fn every_message() -> Vec<Message> {
    let (worker, process, requester) = (WorkerId(1), ProcessId(u64::MAX), RequesterId(3));
    let (square, cell) = (km().square(), km());
    let stamp = Stamp { epoch: 5, incarnation: u32::MAX, version: 300 };
    let cells = vec![AreaCell::Square(square), AreaCell::Km(cell), AreaCell::Small(small(7))];
    let here = Task { area: Area::Cells(cells), from: 4, until: 9, ..task(3) };
    let reading = Reading { element: noise(3), value: 57.25, time: NOON };
    let exact = Reading { value: 0.1, ..reading };
    let (_, share) = share_of(12, false);
    let (_, named) = share_of(12, true);
    let aged = Named { element: noise(5), age: 9 };
    let aged = Share { stamp, since: None, contents: Contents::Elements(vec![aged, aged]) };
    let mut tally = Tally { kept: 1, redundant: 200, lost: 3, repeated: 4, ..Tally::default() };
    tally.refused[2] = 1 << 40;
    let delta = Share { stamp, since: Some(299), contents: share.contents.clone() };
    let ageing = rules(Mode::Ageing { steps: 60 }, MINUTE, 2);
    vec![
        Message::LookUp { worker, square },
        Message::Located { square },
        Message::Unplaced { square },
        Message::Hello { process, room: 9, squares: vec![square] },
        Message::Gone { process },
        Message::Place { square, rules: ageing, tasks: vec![(requester, here.clone())], book: 5 },
        Message::Release { square },
        Message::Ready { process, square },
        Message::Announce { worker, cell, properties: vec![property("co")], known: Some(stamp) },
        announce(1, cell),
        Message::Assign { cell, rules: Rules::PAPER, tasks: vec![here.clone(), task(1)], share },
        Message::Submit { worker, sequence: 1 << 40, sent: NOON, stamp, refresh: true, reading },
        Message::Submit { worker, sequence: 9, sent: NOON + 1, stamp, refresh: false, reading },
        Message::Lease { holder: u64::MAX, epoch: 300, held: true },
        Message::List { requester },
        Message::Listed { tasks: vec![(requester, here.clone())] },
        Message::Tally { square, born: NOON, life: 7, tally },
        submit(1, 2, exact.element, 3),
        Message::Update { cell, share: delta },
        Message::Update { cell, share: named },
        Message::Update { cell, share: aged },
        Message::Reset { cell, stamp },
        Message::ResetAll { square, stamp, since: 300 },
        Message::Leave { worker },
        Message::Post { requester, task: here.clone() },
        Message::Withdraw { task: here.id },
        Message::Posted { task: here.id, hosts: 3 },
        Message::Refused { task: here.id, reason: TaskError::TooMany },
        Message::Forward { requester, task: here.clone() },
        Message::Results { task: here.id, square, batch: 1 << 60, readings: vec![reading, exact] },
        Message::Received { square, batch: 8 },
        Message::Aggregate { square, property: None, aggregate: Aggregate::default() },
        Message::Aggregate {
            square,
            property: Some(property("noise")),
            aggregate: Aggregate { kept: 9, sum: -0.5, least: -1.0, ..Aggregate::default() },
        },
    ]
}
