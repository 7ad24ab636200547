//! Scenarios of the coordinator, of processes and of requesters.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use lately_edge::cell::Square;
use lately_edge::coordinator::{Coordinator, CoordinatorConfig};
use lately_edge::host::{Handled, Host, HostConfig, Receipt, Refusal};
use lately_edge::ids::{ProcessId, RequesterId, TaskId, WorkerId};
use lately_edge::message::{Aggregate, Message, Outgoing, Peer, Reading};
use lately_edge::process::Process;
use lately_edge::requester::{Requester, TaskState};
use lately_edge::rules::Rules;
use lately_edge::task::{Area, AreaCell, Task, TaskError};
use support::{NOON, REQUESTER, km, noise, submit, task};

fn square(name: &str) -> Square {
    name.parse().unwrap()
}

fn coordinator() -> Coordinator {
    Coordinator::new(CoordinatorConfig { tasks_of_one: 256, ..CoordinatorConfig::default() })
}

fn hello(host: u64, room: u32, squares: Vec<Square>) -> Message {
    Message::Hello { process: ProcessId(host), room, squares }
}

fn look_up(worker: u64, square: Square) -> Message {
    Message::LookUp { worker: WorkerId(worker), square }
}

fn take(out: &mut Vec<Outgoing>) -> Vec<(Peer, &'static str)> {
    out.drain(..).map(|outgoing| (outgoing.to, outgoing.message.kind().name())).collect()
}

#[test]
fn a_host_for_the_first_worker_of_a_square() {
    let (mut coordinator, mut out) = (coordinator(), Vec::new());
    let here = square("33TWL77");
    coordinator.handle(NOON, look_up(1, here), &mut out);
    assert_eq!(take(&mut out), [(Peer::Worker(WorkerId(1)), "unplaced")]);
    coordinator.handle(NOON, hello(1, 1, Vec::new()), &mut out);
    coordinator.handle(NOON, hello(2, 5, Vec::new()), &mut out);
    coordinator.handle(NOON, look_up(1, here), &mut out);
    coordinator.handle(NOON, look_up(2, here), &mut out);
    // The process with the most room; both workers wait until the host runs.
    assert_eq!(take(&mut out), [(Peer::Process(ProcessId(2)), "place")]);
    coordinator.handle(NOON, Message::Ready { process: ProcessId(1), square: here }, &mut out);
    assert!(out.is_empty(), "only its own process can say so");
    coordinator.handle(NOON, Message::Ready { process: ProcessId(2), square: here }, &mut out);
    let located = [1, 2].map(|worker| (Peer::Worker(WorkerId(worker)), "located"));
    assert_eq!(take(&mut out), located);
    coordinator.handle(NOON, look_up(3, here), &mut out);
    assert_eq!(take(&mut out), [(Peer::Worker(WorkerId(3)), "located")]);
    assert_eq!(coordinator.squares().collect::<Vec<_>>(), [(here, ProcessId(2))]);
}

#[test]
fn a_process_that_does_not_answer_or_is_gone() {
    let (mut coordinator, mut out) = (coordinator(), Vec::new());
    let here = square("33TWL77");
    coordinator.handle(NOON, hello(1, 5, Vec::new()), &mut out);
    coordinator.handle(NOON, look_up(1, here), &mut out);
    out.clear();
    coordinator.tick(NOON + 4_999, &mut out);
    assert!(out.is_empty());
    coordinator.tick(NOON + 5_000, &mut out);
    assert_eq!(take(&mut out), [(Peer::Process(ProcessId(1)), "place")]);
    coordinator.handle(NOON, Message::Ready { process: ProcessId(1), square: here }, &mut out);
    coordinator.handle(NOON, hello(2, 5, Vec::new()), &mut out);
    out.clear();
    // It has a minute to come back with what it knows.
    coordinator.handle(NOON, Message::Gone { process: ProcessId(1) }, &mut out);
    coordinator.tick(NOON + 59_999, &mut out);
    assert!(out.is_empty());
    let mut patient = coordinator.clone();
    patient.handle(NOON + 59_999, hello(1, 5, vec![here]), &mut out);
    assert_eq!(
        take(&mut out),
        [(Peer::Process(ProcessId(1)), "place")],
        "it may have missed a task"
    );
    patient.handle(NOON + 60_000, Message::Ready { process: ProcessId(1), square: here }, &mut out);
    patient.tick(NOON + 90_000, &mut out);
    assert!(out.is_empty(), "it runs, and is known to");
    coordinator.tick(NOON + 60_000, &mut out);
    assert_eq!(take(&mut out), [(Peer::Process(ProcessId(2)), "place")]);
    // Too late: somebody else runs it.
    coordinator.handle(NOON + 70_000, hello(1, 5, vec![here]), &mut out);
    assert_eq!(take(&mut out), [(Peer::Process(ProcessId(1)), "release")]);
    assert_eq!(coordinator.counts().released, 1);
    assert_eq!(coordinator.squares().collect::<Vec<_>>(), [(here, ProcessId(2))]);
    // Who runs it is gone in turn, and who was there before has its readings.
    coordinator.handle(NOON + 71_000, Message::Gone { process: ProcessId(2) }, &mut out);
    coordinator.handle(NOON + 72_000, hello(1, 5, vec![here]), &mut out);
    assert_eq!(take(&mut out), [(Peer::Process(ProcessId(1)), "place")]);
    assert_eq!(coordinator.squares().collect::<Vec<_>>(), [(here, ProcessId(1))]);
}

/// No last will came: the broker died with it, or the coordinator was away.
#[test]
fn a_process_that_is_not_heard_of_is_gone() {
    let here = square("33TWL77");
    let minutes = |count: u64| NOON + count * support::MINUTE;
    let (mut coordinator, mut out) = (coordinator(), Vec::new());
    coordinator.handle(NOON, hello(1, 9, vec![here]), &mut out);
    coordinator.handle(NOON, Message::Ready { process: ProcessId(1), square: here }, &mut out);
    let config = CoordinatorConfig::default();
    let mut coordinator = Coordinator::restore(&coordinator.save(), config, NOON).unwrap();
    out.clear();
    coordinator.tick(NOON, &mut out);
    assert_eq!(take(&mut out), [(Peer::Process(ProcessId(1)), "place")], "with rules and tasks");
    coordinator.handle(NOON, Message::Ready { process: ProcessId(1), square: here }, &mut out);
    coordinator.handle(minutes(4), hello(2, 5, Vec::new()), &mut out);
    coordinator.tick(minutes(5), &mut out);
    coordinator.tick(minutes(6) - 1, &mut out);
    assert!(out.is_empty());
    coordinator.tick(minutes(6), &mut out);
    assert_eq!(take(&mut out), [(Peer::Process(ProcessId(2)), "place")]);
    // One that greets and yet does not answer gets a minute of questions, and no more.
    for second in 0..100 {
        let now = minutes(6) + second * 1_000;
        if second % 30 == 0 {
            coordinator.handle(now, hello(3, 2, Vec::new()), &mut out);
        }
        coordinator.tick(now, &mut out);
    }
    assert_eq!(coordinator.squares().collect::<Vec<_>>(), [(here, ProcessId(3))]);
}

/// Squares at sea, where somebody's position was wrong once.
#[test]
fn squares_where_nobody_is_are_given_back() {
    let (mut coordinator, mut out) = (coordinator(), Vec::new());
    let squares = ["33TWL77", "33TWL78", "33TWL79"].map(square);
    let [busy, idle, later] = squares;
    let minutes = |count: u64| NOON + count * support::MINUTE;
    let process = Peer::Process(ProcessId(1));
    coordinator.handle(NOON, hello(1, 2, vec![busy, idle]), &mut out);
    for square in [busy, idle] {
        coordinator.handle(NOON, Message::Ready { process: ProcessId(1), square }, &mut out);
    }
    let aggregate = Aggregate { workers: 1, ..Aggregate::default() };
    out.clear();
    for minute in 1..10 {
        let told = Message::Aggregate { square: busy, property: None, aggregate };
        coordinator.handle(minutes(minute), told, &mut out);
        coordinator.handle(minutes(minute), hello(1, 2, vec![busy, idle]), &mut out);
    }
    coordinator.handle(minutes(9), look_up(1, later), &mut out);
    assert_eq!(take(&mut out), [(Peer::Worker(WorkerId(1)), "unplaced")]);
    coordinator.handle(minutes(10), look_up(1, later), &mut out);
    assert_eq!(take(&mut out), [(process, "release"), (process, "place")]);
    assert_eq!(coordinator.squares().map(|(square, _)| square).collect::<Vec<_>>(), [busy, later]);
    coordinator.handle(
        minutes(11),
        Message::Ready { process: ProcessId(1), square: later },
        &mut out,
    );
    out.clear();
    // After a day, even where there is room.
    coordinator.handle(minutes(1_445), hello(1, 9, vec![busy, later]), &mut out);
    coordinator.tick(minutes(1_449), &mut out);
    assert_eq!(take(&mut out), [(process, "release")]);
}

#[test]
fn what_may_not_have_arrived_is_said_again() {
    let (mut coordinator, mut out) = (coordinator(), Vec::new());
    let [here, there] = ["33TWL77", "33TWL78"].map(square);
    let process = Peer::Process(ProcessId(1));
    coordinator.handle(NOON, hello(1, 9, vec![here, there]), &mut out);
    for square in [here, there] {
        coordinator.handle(NOON, Message::Ready { process: ProcessId(1), square }, &mut out);
    }
    coordinator.say_again(NOON);
    out.clear();
    coordinator.tick(NOON, &mut out);
    assert_eq!(take(&mut out), [(process, "place"); 2]);
    // The same task again is nothing new; in another area it leaves its old one.
    let area = |square| Area::Cells(vec![AreaCell::Square(square)]);
    let post = |square| Message::Post {
        requester: REQUESTER,
        task: Task { area: area(square), ..task(1) },
    };
    let (host, posted) = (Peer::Host, (Peer::Requester(REQUESTER), "posted"));
    let changes = coordinator.changes();
    coordinator.handle(NOON, post(here), &mut out);
    assert_eq!(take(&mut out), [(host(here), "forward"), posted]);
    coordinator.handle(NOON, post(here), &mut out);
    assert_eq!(take(&mut out), [posted]);
    assert_eq!(coordinator.changes(), changes + 1);
    coordinator.handle(NOON, post(there), &mut out);
    assert_eq!(take(&mut out), [(process, "place"), (host(there), "forward"), posted]);
}

#[test]
fn tasks_reach_the_hosts_they_touch() {
    let (mut coordinator, mut out) = (coordinator(), Vec::new());
    let [here, there, later] = ["33TWL77", "33TWL78", "33TWL79"].map(square);
    coordinator.handle(NOON, hello(1, 9, vec![here, there]), &mut out);
    out.clear();
    let everywhere = task(1);
    let local = Task { id: TaskId(8), area: Area::Cells(vec![AreaCell::Square(here)]), ..task(1) };
    for task in [&everywhere, &local] {
        let message = Message::Post { requester: REQUESTER, task: task.clone() };
        coordinator.handle(NOON, message, &mut out);
    }
    let to = Peer::Requester(REQUESTER);
    let forwarded = [(Peer::Host(here), "forward"), (Peer::Host(there), "forward"), (to, "posted")];
    assert_eq!(take(&mut out), [&forwarded[..], &forwarded[..1], &forwarded[2..]].concat());
    // A host that is placed later gets the tasks with its place.
    coordinator.handle(NOON, look_up(1, later), &mut out);
    match out.drain(..).next() {
        Some(Outgoing { message: Message::Place { tasks, .. }, .. }) => {
            assert_eq!(tasks, [(REQUESTER, everywhere.clone())]);
        }
        other => panic!("{other:?}"),
    }
    let refused = |coordinator: &mut Coordinator, requester, task| {
        let mut out = Vec::new();
        coordinator.handle(NOON, Message::Post { requester, task }, &mut out);
        match out.pop() {
            Some(Outgoing { message: Message::Refused { reason, .. }, .. }) => Some(reason),
            _ => None,
        }
    };
    let over = Task { until: NOON, ..everywhere.clone() };
    assert_eq!(refused(&mut coordinator, REQUESTER, over), Some(TaskError::Expired));
    assert_eq!(refused(&mut coordinator, RequesterId(1), everywhere), Some(TaskError::Taken));
    let mut last = None;
    for id in 100..400 {
        last = refused(&mut coordinator, REQUESTER, Task { id: TaskId(id), ..task(1) });
    }
    assert_eq!(last, Some(TaskError::TooMany));
    coordinator.handle(NOON, Message::Withdraw { task: local.id }, &mut out);
    assert_eq!(take(&mut out), [(Peer::Host(here), "withdraw")]);
}

/// One requester has room for 64 tasks, and leaves the rest to others; what it has posted already may be posted again.
#[test]
fn one_requester_leaves_room_for_others() {
    let (mut coordinator, mut out) = (Coordinator::new(CoordinatorConfig::default()), Vec::new());
    let mut post = |requester: u64, id: u64| {
        let task = Task { id: TaskId(id), ..task(1) };
        let requester = RequesterId(requester);
        coordinator.handle(NOON, Message::Post { requester, task }, &mut out);
        match out.drain(..).next_back() {
            Some(Outgoing { message: Message::Refused { reason, .. }, .. }) => Some(reason),
            _ => None,
        }
    };
    let answers: Vec<Option<TaskError>> = (0..300).map(|id| post(1, id)).collect();
    assert!(answers[..64].iter().all(Option::is_none));
    assert!(answers[64..].iter().all(|&answer| answer == Some(TaskError::TooManyOfOne)));
    assert_eq!(post(1, 5), None);
    assert_eq!(post(2, 1_000), None);
}

#[test]
fn a_coordinator_comes_back_from_its_state() {
    let (mut coordinator, mut out) = (coordinator(), Vec::new());
    let here = square("33TWL77");
    coordinator.handle(NOON, hello(1, 9, vec![here]), &mut out);
    coordinator.handle(NOON, Message::Ready { process: ProcessId(1), square: here }, &mut out);
    coordinator.handle(NOON, Message::Post { requester: REQUESTER, task: task(1) }, &mut out);
    let bytes = coordinator.save();
    let config = CoordinatorConfig::default();
    let mut again = Coordinator::restore(&bytes, config, NOON).unwrap();
    out.clear();
    again.handle(NOON, look_up(1, here), &mut out);
    again.handle(NOON, look_up(1, square("33TWL78")), &mut out);
    let found = take(&mut out);
    assert_eq!(
        found,
        [(Peer::Worker(WorkerId(1)), "located"), (Peer::Process(ProcessId(1)), "place")]
    );
    for at in 0..bytes.len() {
        assert!(Coordinator::restore(&bytes[..at], config, NOON).is_err());
        let mut flipped = bytes.clone();
        flipped[at] ^= 4;
        assert!(Coordinator::restore(&flipped, config, NOON).is_err());
    }
}

#[test]
fn what_a_coordinator_keeps_is_bounded() {
    let config = CoordinatorConfig { most: 10, ..CoordinatorConfig::default() };
    let (mut coordinator, mut out) = (Coordinator::new(config), Vec::new());
    coordinator.handle(NOON, hello(1, u32::MAX, Vec::new()), &mut out);
    for number in 0..100_u64 {
        let place =
            Square::from_id(km().square().id() & !0xFF | ((number / 10) << 4) | (number % 10));
        coordinator.handle(NOON, look_up(number, place.unwrap()), &mut out);
        coordinator.handle(NOON, hello(number, 3, Vec::new()), &mut out);
    }
    assert_eq!(coordinator.squares().count(), 10);
    assert!(coordinator.counts().full >= 90);
}

#[test]
fn a_process_runs_what_it_is_given() {
    let mut process = Process::new(ProcessId(1), 1, HostConfig::default());
    let mut out = Vec::new();
    process.tick(NOON, &mut out);
    assert_eq!(take(&mut out), [(Peer::Coordinator, "hello")]);
    let place = |square| Message::Place {
        square,
        rules: Rules::PAPER,
        tasks: vec![(REQUESTER, task(1))],
        book: 1,
    };
    let me = Peer::Process(ProcessId(1));
    let here = km().square();
    assert_eq!(process.handle(NOON, me, place(here), &mut out), Handled::Done);
    assert_eq!(process.handle(NOON, me, place(here), &mut out), Handled::Done);
    assert_eq!(take(&mut out), [(Peer::Coordinator, "ready"); 2]);
    let refused = Handled::Refused(Refusal::NotForMe);
    assert_eq!(process.handle(NOON, me, place(square("33TWL78")), &mut out), refused);
    assert_eq!(process.host(here).unwrap().tasks(), 1);
    let message = submit(1, 1, noise(1), NOON);
    assert!(matches!(
        process.handle(NOON, Peer::Host(here), message.clone(), &mut out),
        Handled::Reading(_)
    ));
    let elsewhere = Peer::Host(square("33TWL78"));
    assert_eq!(process.handle(NOON, elsewhere, message, &mut out), refused);
}

/// What a host kept before another one took its square reaches the requester, and nothing else does.
#[test]
fn a_process_that_lets_go_hands_its_readings_over() {
    let (mut process, mut out) = (Process::new(ProcessId(1), 1, HostConfig::default()), Vec::new());
    let here = km().square();
    let (me, host) = (Peer::Process(ProcessId(1)), Peer::Host(here));
    let place = |square| Message::Place {
        square,
        rules: Rules::PAPER,
        tasks: vec![(REQUESTER, task(1))],
        book: 1,
    };
    let _ = process.handle(NOON, me, place(here), &mut out);
    assert_eq!(
        process.handle(NOON, host, submit(1, 1, noise(3), NOON), &mut out),
        Handled::Reading(Receipt::Kept)
    );
    let _ = process.handle(NOON, me, Message::Release { square: here }, &mut out);
    assert_eq!((process.hosts().count(), process.leaving().count()), (0, 1));
    let refused = Handled::Refused(Refusal::NotForMe);
    assert_eq!(process.handle(NOON, host, submit(1, 2, noise(4), NOON), &mut out), refused);
    // It has room for another square meanwhile.
    let _ = process.handle(NOON, me, place(square("33TWL78")), &mut out);
    assert_eq!(process.hosts().count(), 1);
    take(&mut out);
    process.tick(NOON, &mut out);
    process.tick(NOON + 2_000, &mut out);
    let results = out.drain(..).find_map(|outgoing| match outgoing {
        Outgoing { to, message: Message::Results { batch, readings, .. } } => {
            Some((to, batch, readings.len()))
        }
        _ => None,
    });
    let (to, batch, readings) = results.unwrap();
    assert_eq!((to, readings), (Peer::Requester(REQUESTER), 1));
    assert_eq!(process.leaving().count(), 1, "not confirmed yet");
    // Its square comes back, and goes again.
    let mut again = process.clone();
    let _ = again.handle(NOON, me, Message::Release { square: square("33TWL78") }, &mut out);
    let _ = again.handle(NOON, me, place(here), &mut out);
    assert_eq!(again.host(here).map(Host::pending), Some(1));
    let received = Message::Received { square: here, batch };
    assert_eq!(process.handle(NOON + 3_000, host, received, &mut out), Handled::Done);
    process.tick(NOON + 4_000, &mut out);
    assert_eq!(process.leaving().count(), 0);
    assert_eq!((process.counts().kept, process.pending()), (1, 0));
}

/// Else it would be silent until its clock is where it was, and lose its squares.
#[test]
fn a_process_greets_when_its_clock_is_set_back() {
    let (mut process, mut out) = (Process::new(ProcessId(1), 1, HostConfig::default()), Vec::new());
    for second in 0..120 {
        process.tick(NOON + second * 1_000, &mut out);
    }
    take(&mut out);
    let mut greetings = 0;
    for second in 0..120 {
        process.tick(NOON - 20 * support::MINUTE + second * 1_000, &mut out);
        greetings += take(&mut out).len();
    }
    assert!((4..=5).contains(&greetings), "{greetings}");
}

#[test]
fn readings_arrive_once() {
    let mut requester = Requester::new(REQUESTER);
    let mut out = Vec::new();
    requester.post(NOON, task(1), &mut out).unwrap();
    assert_eq!(requester.post(NOON, task(0), &mut out), Err(TaskError::Nothing));
    assert_eq!(take(&mut out), [(Peer::Coordinator, "post")]);
    assert_eq!(requester.state(TaskId(7)), Some(TaskState::Waiting));
    requester.tick(NOON + 10_000, &mut out);
    assert_eq!(take(&mut out), [(Peer::Coordinator, "post")]);
    requester.handle(NOON, Message::Posted { task: TaskId(7), hosts: 3 }, &mut out);
    assert_eq!(requester.state(TaskId(7)), Some(TaskState::Active(3)));
    let readings = vec![Reading { element: noise(1), value: 1.0, time: NOON }];
    let square = km().square();
    let results =
        |task, batch| Message::Results { task, square, batch, readings: readings.clone() };
    requester.handle(NOON, results(TaskId(7), 5), &mut out);
    requester.handle(NOON, results(TaskId(7), 5), &mut out);
    assert!(out.is_empty(), "not confirmed before it was taken");
    let taken = requester.take_readings(&mut out);
    assert_eq!((taken.len(), requester.counts().readings), (1, 1));
    assert_eq!(take(&mut out), [(Peer::Host(square), "received")]);
    // The confirmation was lost, so it comes again: confirmed, not handed on.
    requester.handle(NOON, results(TaskId(7), 5), &mut out);
    requester.handle(NOON, results(TaskId(99), 6), &mut out);
    assert_eq!(take(&mut out), [(Peer::Host(square), "received"); 2]);
    assert!(requester.take_readings(&mut out).is_empty());
}
