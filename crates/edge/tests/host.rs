//! Scenarios of a host: what it keeps, what it sends, what it refuses, and what survives a restart.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use lately_edge::element::Element;
use lately_edge::filter::Stamp;
use lately_edge::host::{Handled, Host, HostConfig, Limits, Receipt, Refusal, ResetBy};
use lately_edge::ids::{TaskId, WorkerId};
use lately_edge::message::{Message, Outgoing, Peer, Reading};
use lately_edge::rules::{Mode, Rules};
use lately_edge::state::StateError;
use lately_edge::task::{Area, AreaCell, Task};
use support::{
    MINUTE, NOON, REQUESTER, announce, elsewhere, host, km, noise, property, rules, submit, task,
};

fn paper() -> HostConfig {
    let rules = rules(Mode::Reset, 30 * MINUTE, 1);
    HostConfig {
        rules,
        second_look: false,
        deltas: false,
        names: false,
        tell_every: 0,
        ..HostConfig::default()
    }
}

fn messages(out: &mut Vec<Outgoing>) -> Vec<(Peer, Message)> {
    out.drain(..).map(|outgoing| (outgoing.to, outgoing.message)).collect()
}

fn reading(receipt: Receipt) -> Handled {
    Handled::Reading(receipt)
}

/// Figure 3 of the paper, as far as the host goes.
#[test]
fn a_redundant_reading_is_answered_with_the_filter() {
    let (mut host, mut out) = (host(paper(), 1, NOON), Vec::new());
    for worker in [1, 2] {
        let _ = host.handle(NOON, announce(worker, km()), &mut out);
    }
    let assigned = messages(&mut out);
    assert!(assigned.iter().all(|(_, message)| matches!(message, Message::Assign { .. })));
    assert_eq!(assigned[1].0, Peer::Worker(WorkerId(2)));
    assert_eq!(host.handle(NOON, submit(1, 1, noise(3), NOON), &mut out), reading(Receipt::Kept));
    assert!(out.is_empty());
    assert_eq!(
        host.handle(NOON, submit(2, 1, noise(3), NOON), &mut out),
        reading(Receipt::Redundant)
    );
    match messages(&mut out).as_slice() {
        [(Peer::Worker(WorkerId(2)), Message::Update { cell, share })] => {
            assert_eq!((*cell, share.stamp.version, share.since), (km(), 1, None));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn no_assignment_without_a_task_that_suits() {
    let mut host = Host::new(km().square(), paper(), NOON);
    let mut out = Vec::new();
    let _ = host.handle(NOON, announce(1, km()), &mut out);
    let carbon = Message::Announce {
        worker: WorkerId(2),
        cell: km(),
        properties: vec![property("co")],
        known: None,
    };
    let _ = host.handle(NOON, carbon, &mut out);
    assert!(out.is_empty());
    // Algorithm 4: the task comes, and whoever suits is told.
    let message = Message::Forward { requester: REQUESTER, task: task(1) };
    let _ = host.handle(NOON, message.clone(), &mut out);
    match messages(&mut out).as_slice() {
        [(Peer::Worker(WorkerId(1)), Message::Assign { tasks, .. })] => {
            assert_eq!(tasks, &[task(1)]);
        }
        other => panic!("{other:?}"),
    }
    // The same task again changes nothing; a time later it is over.
    assert_eq!(host.handle(NOON, message, &mut out), Handled::Done);
    assert!(out.is_empty());
    let _ = host.handle(NOON, Message::Withdraw { task: TaskId(7) }, &mut out);
    assert_eq!(messages(&mut out), [(Peer::Cell(km()), Message::Withdraw { task: TaskId(7) })]);
    assert_eq!(
        host.handle(NOON, submit(1, 1, noise(3), NOON), &mut out),
        Handled::Refused(Refusal::NoTask)
    );
}

/// Algorithm 5: one message for the cell, and the element is due again.
#[test]
fn filters_are_reset_at_the_end_of_the_period() {
    let (mut host, mut out) = (host(paper(), 1, NOON), Vec::new());
    let _ = host.handle(NOON, announce(1, km()), &mut out);
    let _ = host.handle(NOON, announce(2, elsewhere(0).km()), &mut out);
    let _ = host.handle(NOON + 1, submit(1, 1, noise(3), NOON), &mut out);
    out.clear();
    let end = NOON + 30 * MINUTE;
    host.tick(end - 1, &mut out);
    let resets = |out: &mut Vec<Outgoing>| {
        let resets = messages(out).into_iter();
        resets.filter(|(_, message)| matches!(message, Message::Reset { .. })).collect::<Vec<_>>()
    };
    assert!(resets(&mut out).is_empty());
    host.tick(end, &mut out);
    // Where nothing was sent, nothing needs to be reset.
    match resets(&mut out).as_slice() {
        [(Peer::Cell(cell), Message::Reset { stamp, .. })] => {
            assert_eq!((*cell, stamp.version), (km(), 0));
            assert_eq!(u64::from(stamp.epoch), end / (30 * MINUTE));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(host.handle(end, submit(1, 2, noise(3), end), &mut out), reading(Receipt::Kept));
}

/// The messages of a whole system of three workers in two cells, at the end of a period in which one of these was used.
fn resets(reset_by: ResetBy) -> Vec<(Peer, Message)> {
    let config = HostConfig { reset_by, ..paper() };
    let (mut host, mut out) = (host(config, 1, NOON), Vec::new());
    for worker in 1..=3 {
        let _ = host.handle(NOON, announce(worker, km()), &mut out);
    }
    let _ = host.handle(NOON, announce(4, elsewhere(0).km()), &mut out);
    let _ = host.handle(NOON, announce(5, elsewhere(0).km()), &mut out);
    let _ = host.handle(NOON + 1, submit(1, 1, noise(3), NOON), &mut out);
    let other = Element { cell: elsewhere(0), property: property("noise") };
    let _ = host.handle(NOON + 1, submit(4, 1, other, NOON), &mut out);
    let _ = host.handle(NOON + 2, Message::Leave { worker: WorkerId(5) }, &mut out);
    host.tick(NOON + MINUTE, &mut out);
    out.clear();
    host.tick(NOON + 30 * MINUTE, &mut out);
    let is_reset =
        |message: &Message| matches!(message, Message::Reset { .. } | Message::ResetAll { .. });
    messages(&mut out).into_iter().filter(|(_, message)| is_reset(message)).collect()
}

/// A reset is a message for each worker that is there, for each cell, or for the whole square.
#[test]
fn a_reset_is_sent_to_whom_it_is_set_to() {
    let to = |by| resets(by).into_iter().map(|(to, _)| to).collect::<Vec<_>>();
    let mut cells = to(ResetBy::Cell);
    cells.sort();
    assert_eq!(cells, [Peer::Cell(elsewhere(0).km()), Peer::Cell(km())]);
    assert_eq!(to(ResetBy::Worker), [1, 2, 3, 4].map(|id| Peer::Worker(WorkerId(id))));
    match resets(ResetBy::Square).as_slice() {
        [(Peer::Square(square), Message::ResetAll { square: named, stamp, since })] => {
            assert_eq!((square, named), (&km().square(), &km().square()));
            assert_eq!(u64::from(stamp.epoch), (NOON + 30 * MINUTE) / (30 * MINUTE));
            assert_eq!((stamp.version, *since), (0, stamp.incarnation));
        }
        other => panic!("{other:?}"),
    }
}

/// Where nobody sent anything, nothing is told, but at the start and when the broker may have forgotten it; and nothing
/// at all where filters age.
#[test]
fn a_square_is_told_when_there_is_something_to_tell() {
    let config = HostConfig { reset_by: ResetBy::Square, ..paper() };
    let told = |host: &mut Host, now| {
        let mut out = Vec::new();
        host.tick(now, &mut out);
        out.iter().filter(|outgoing| matches!(outgoing.to, Peer::Square(_))).count()
    };
    let mut quiet = host(config, 1, NOON);
    let times = [0, 1, 30, 60, 61].map(|minute| told(&mut quiet, NOON + minute * MINUTE));
    assert_eq!(times, [1, 0, 0, 0, 0]);
    quiet.reconnected();
    assert_eq!([62, 63].map(|minute| told(&mut quiet, NOON + minute * MINUTE)), [1, 0]);
    // A worker that sent something and has left may come back when the host is away.
    let mut out = Vec::new();
    let now = NOON + 64 * MINUTE;
    let _ = quiet.handle(now, submit(1, 1, noise(3), now), &mut out);
    let _ = quiet.handle(now, Message::Leave { worker: WorkerId(1) }, &mut out);
    assert_eq!([89, 90, 91].map(|minute| told(&mut quiet, NOON + minute * MINUTE)), [0, 1, 0]);
    let rules = rules(Mode::Ageing { steps: 60 }, 30 * MINUTE, 1);
    let mut ages = host(HostConfig { rules, ..config }, 1, NOON);
    let _ = ages.handle(NOON, submit(1, 1, noise(3), NOON), &mut out);
    ages.reconnected();
    assert_eq!([0, 31, 61].map(|minute| told(&mut ages, NOON + minute * MINUTE)), [0; 3]);
}

/// Ours: due again one validity period after the last reading, element by element.
#[test]
fn elements_age_one_by_one() {
    let rules = rules(Mode::Ageing { steps: 60 }, 30 * MINUTE, 1);
    let (mut host, mut out) = (host(HostConfig { rules, ..paper() }, 1, NOON), Vec::new());
    let mut at = |minute: u64, element: u32, sequence| {
        let now = NOON + minute * MINUTE;
        host.handle(now, submit(1, sequence, noise(element), now), &mut out)
    };
    assert_eq!(at(10, 1, 1), reading(Receipt::Kept));
    assert_eq!(at(20, 2, 2), reading(Receipt::Kept));
    assert_eq!(at(39, 1, 3), reading(Receipt::Redundant));
    assert_eq!(at(40, 1, 4), reading(Receipt::Kept));
    assert_eq!(at(49, 2, 5), reading(Receipt::Redundant));
    assert_eq!(at(50, 2, 6), reading(Receipt::Kept));
    assert!(out.iter().all(|outgoing| !matches!(outgoing.message, Message::Reset { .. })));
}

/// A cell that was forgotten and made again must not use a version twice.
#[test]
fn versions_go_on_when_a_cell_is_made_again() {
    let rules = rules(Mode::Ageing { steps: 60 }, 10 * MINUTE, 1);
    let config = HostConfig { rules, worker_timeout: MINUTE, ..HostConfig::default() };
    let (mut host, mut out) = (host(config, 1, NOON), Vec::new());
    for element in 0..5 {
        let sequence = u64::from(element) + 1;
        let _ = host.handle(NOON, submit(1, sequence, noise(element), NOON), &mut out);
    }
    let before = host.stamp(km()).unwrap();
    assert_eq!(before.version, 5);
    let later = NOON + 60 * MINUTE;
    host.tick(later, &mut out);
    assert_eq!((host.stamp(km()), host.workers()), (None, 0));
    let _ = host.handle(later, submit(1, 9, noise(50), later), &mut out);
    assert!(host.stamp(km()).unwrap().version > before.version);
}

#[test]
fn bad_input_is_refused_by_reason() {
    let limits = Limits { workers: 2, tasks: 2, elements: 2, pending: 4 };
    let (mut host, mut out) = (host(HostConfig { limits, ..paper() }, 1, NOON), Vec::new());
    let foreign: Element =
        Element { cell: "33TWL859737".parse().unwrap(), property: property("noise") };
    let carbon = Element { property: property("co"), ..noise(1) };
    let elsewhere_task = |id| Task {
        id: TaskId(id),
        area: Area::Cells(vec![AreaCell::Square(foreign.cell.square())]),
        ..task(1)
    };
    let forward = |task| Message::Forward { requester: REQUESTER, task };
    let stamp = Stamp::default();
    for (message, refusal) in [
        (submit(1, 1, foreign, NOON), Refusal::ForeignCell),
        (announce(1, foreign.cell.km()), Refusal::ForeignCell),
        (submit(1, 2, noise(1), NOON + 2 * MINUTE), Refusal::Future),
        (submit(1, 3, noise(1), NOON - 121 * MINUTE), Refusal::Old),
        (submit(1, 4, carbon, NOON), Refusal::NoTask),
        (Message::Reset { cell: km(), stamp }, Refusal::NotForMe),
        (Message::Received { square: foreign.cell.square(), batch: 1 }, Refusal::NotForMe),
        (
            Message::Announce { worker: WorkerId(1), cell: km(), properties: vec![], known: None },
            Refusal::Properties,
        ),
        (forward(elsewhere_task(8)), Refusal::Task),
        (forward(Task { until: NOON, ..task(1) }), Refusal::Task),
    ] {
        let before = host.counts().refused_for(refusal);
        assert_eq!(host.handle(NOON, message, &mut out), Handled::Refused(refusal));
        assert_eq!(host.counts().refused_for(refusal), before + 1);
    }
    let _ = host.handle(NOON, forward(Task { id: TaskId(8), ..task(1) }), &mut out);
    let third = forward(Task { id: TaskId(9), ..task(1) });
    assert_eq!(host.handle(NOON, third, &mut out), Handled::Refused(Refusal::TooManyTasks));
    let thief = Message::Forward { requester: lately_edge::ids::RequesterId(1), task: task(9) };
    assert_eq!(host.handle(NOON, thief, &mut out), Handled::Refused(Refusal::Task));
    // Workers, elements and waiting readings have their bounds.
    for worker in [1, 2] {
        assert_eq!(host.handle(NOON, announce(worker, km()), &mut out), Handled::Done);
    }
    let full = Handled::Refused(Refusal::TooManyWorkers);
    assert_eq!(host.handle(NOON, announce(3, km()), &mut out), full);
    assert_eq!(host.handle(NOON, submit(3, 1, noise(1), NOON), &mut out), full);
    assert_eq!(host.handle(NOON, submit(1, 5, noise(1), NOON), &mut out), reading(Receipt::Kept));
    assert_eq!(host.handle(NOON, submit(1, 6, noise(2), NOON), &mut out), reading(Receipt::Kept));
    let full = Handled::Refused(Refusal::Full);
    // Two tasks want each reading, so four wait.
    assert_eq!((host.pending(), host.workers()), (4, 2));
    assert_eq!(host.handle(NOON, submit(1, 7, noise(3), NOON), &mut out), full);
    host.tick(NOON, &mut out);
    host.tick(NOON + 1_000, &mut out);
    let batches: Vec<u64> = messages(&mut out)
        .into_iter()
        .filter_map(|(_, message)| match message {
            Message::Results { batch, .. } => Some(batch),
            _ => None,
        })
        .collect();
    for batch in batches {
        let square = km().square();
        let _ = host.handle(NOON, Message::Received { square, batch }, &mut out);
    }
    assert_eq!(host.pending(), 0);
    let many = Handled::Refused(Refusal::TooManyElements);
    assert_eq!(host.handle(NOON, submit(1, 8, noise(3), NOON), &mut out), many);
    let counts = host.counts();
    let classes = counts.kept + counts.redundant + counts.lost + counts.duplicates + counts.refused;
    assert_eq!(classes, counts.submissions);
}

#[test]
fn a_submission_counts_once() {
    let (mut host, mut out) = (host(paper(), 5, NOON), Vec::new());
    let mut arrive = |sequence| host.handle(NOON, submit(1, sequence, noise(1), NOON), &mut out);
    let (kept, again) = (reading(Receipt::Kept), reading(Receipt::Duplicate));
    assert_eq!([arrive(100), arrive(100)], [kept, again]);
    // Out of order is no repetition, as long as it is not too far behind.
    assert_eq!([arrive(90), arrive(90), arrive(37)], [kept, again, kept]);
    assert_eq!([arrive(36), arrive(101), arrive(37)], [again, kept, again]);
}

/// The chance of a false positive is made 1: what the paper's host loses, the second look keeps.
#[test]
fn the_second_look_keeps_what_the_filter_speaks_against() {
    let small = Rules {
        size: lately_edge::filter::FilterSize { bits: 1, hashes: 1 },
        ..rules(Mode::Reset, 30 * MINUTE, 1)
    };
    let receipts = |second_look, refresh| {
        let config = HostConfig { rules: small, second_look, ..HostConfig::default() };
        let (mut host, mut out) = (host(config, 1, NOON), Vec::new());
        let first = host.handle(NOON, submit(1, 1, noise(1), NOON), &mut out);
        let reading = Reading { element: noise(2), value: 1.0, time: NOON };
        let (worker, stamp) = (WorkerId(1), Stamp::default());
        let message = Message::Submit { worker, sequence: 2, sent: NOON, stamp, refresh, reading };
        [first, host.handle(NOON, message, &mut out)]
    };
    let kept = reading(Receipt::Kept);
    assert_eq!(receipts(false, false), [kept, reading(Receipt::Lost)]);
    assert_eq!(receipts(true, false), [kept, reading(Receipt::Recovered)]);
    assert_eq!(receipts(false, true), [kept, reading(Receipt::Recovered)]);
}

#[test]
fn no_accepted_reading_is_lost_by_a_restart() {
    for mode in [Mode::Reset, Mode::Ageing { steps: 60 }] {
        let config = HostConfig { rules: rules(mode, 30 * MINUTE, 1), ..HostConfig::default() };
        let (mut host, mut out) = (host(config, 2, NOON), Vec::new());
        for element in 0..10 {
            let _ = host.handle(NOON, announce(element, km()), &mut out);
            let message = submit(element, 1, noise(element as u32), NOON);
            assert_eq!(host.handle(NOON, message, &mut out), reading(Receipt::Kept));
        }
        let _ = host.handle(NOON, submit(20, 1, noise(0), NOON), &mut out);
        let bytes = host.save();
        let mut again = Host::restore(&bytes, config, NOON + 5).unwrap();
        assert_eq!((again.pending(), again.workers(), again.tasks()), (11, 11, 1));
        assert_eq!(again.counts(), host.counts());
        let (old, new) = (host.stamp(km()).unwrap(), again.stamp(km()).unwrap());
        assert_eq!((old.epoch, old.version), (new.epoch, new.version));
        assert!(new.incarnation > old.incarnation);
        // What came after the state was saved comes again, and is known; filters are as they were.
        let mut arrive = |worker, sequence, element| {
            again.handle(NOON + 5, submit(worker, sequence, noise(element), NOON), &mut out)
        };
        assert_eq!(arrive(20, 1, 0), reading(Receipt::Duplicate));
        assert_eq!(arrive(20, 2, 0), reading(Receipt::Redundant));
        assert_eq!(arrive(20, 3, 1), reading(Receipt::Kept));
        out.clear();
        again.tick(NOON + 10, &mut out);
        again.tick(NOON + 2_000, &mut out);
        let delivered: usize = messages(&mut out)
            .iter()
            .map(|(_, message)| match message {
                Message::Results { readings, .. } => readings.len(),
                _ => 0,
            })
            .sum();
        assert_eq!(delivered, 12);
    }
}

#[test]
fn unconfirmed_readings_come_again() {
    let (mut host, mut out) = (host(paper(), 1, NOON), Vec::new());
    let _ = host.handle(NOON, submit(1, 1, noise(1), NOON), &mut out);
    let mut results = |now| {
        host.tick(now, &mut out);
        let sent: Vec<Message> =
            messages(&mut out).into_iter().map(|(_, message)| message).collect();
        sent.into_iter()
            .filter(|message| matches!(message, Message::Results { .. }))
            .collect::<Vec<_>>()
    };
    assert!(results(NOON).is_empty());
    let first = results(NOON + 1_000);
    assert_eq!(first.len(), 1);
    assert!(results(NOON + 20_000).is_empty());
    assert_eq!(results(NOON + 31_000), first);
}

#[test]
fn damaged_states_are_refused() {
    let (mut host, mut out) = (host(paper(), 1, NOON), Vec::new());
    let _ = host.handle(NOON, submit(1, 1, noise(1), NOON), &mut out);
    let bytes = host.save();
    let restore = |bytes: &[u8]| Host::restore(bytes, paper(), NOON).map(|_| ());
    assert_eq!(restore(&bytes), Ok(()));
    for at in 0..bytes.len() {
        assert!(restore(&bytes[..at]).is_err());
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        assert!(restore(&flipped).is_err(), "byte {at}");
    }
    let mut newer = bytes.clone();
    newer[8] = 4;
    assert_eq!(restore(&newer), Err(StateError::Version(4)));
    assert_eq!(restore(b"something else entirely"), Err(StateError::Foreign));
}

/// A host keeps the rules it had when it was saved, until it is told others: then readings stay, filters
/// begin anew, and the workers hear of it.
#[test]
fn rules_change_when_the_coordinator_says_so() {
    let (mut host, mut out) = (host(paper(), 1, NOON), Vec::new());
    let _ = host.handle(NOON, announce(1, km()), &mut out);
    let _ = host.handle(NOON, submit(1, 1, noise(1), NOON), &mut out);
    let other = rules(Mode::Reset, MINUTE, 1);
    let config = HostConfig { rules: other, ..paper() };
    let mut again = Host::restore(&host.save(), config, NOON).unwrap();
    assert_eq!(again.config().rules, paper().rules);
    out.clear();
    again.set_rules(paper().rules, &mut out);
    assert!(out.is_empty());
    assert_eq!((again.pending(), again.stamp(km()).unwrap().version), (1, 1));
    let before = again.stamp(km()).unwrap();
    again.set_rules(other, &mut out);
    let after = again.stamp(km()).unwrap();
    assert_eq!((again.pending(), after.version), (1, 0));
    assert!(after.incarnation > before.incarnation);
    match messages(&mut out).as_slice() {
        [(Peer::Worker(WorkerId(1)), Message::Assign { rules, share, .. })] => {
            assert_eq!((*rules, share.stamp, share.since), (other, after, None));
        }
        other => panic!("{other:?}"),
    }
}

/// A clock that goes back does not begin an old period again.
#[test]
fn time_does_not_go_back() {
    let (mut host, mut out) = (host(paper(), 1, NOON), Vec::new());
    let _ = host.handle(NOON, submit(1, 1, noise(1), NOON), &mut out);
    let earlier = host.handle(NOON - 40 * MINUTE, submit(1, 2, noise(1), NOON), &mut out);
    assert_eq!(earlier, reading(Receipt::Redundant));
}

/// A connection that is lost and made again repeats what the broker had not confirmed: the last will must
/// not make it new.
#[test]
fn a_worker_that_left_is_known_for_its_submissions() {
    let paper = || HostConfig { max_delay: 10 * MINUTE, ..paper() };
    let (mut host, mut out) = (host(paper(), 3, NOON), Vec::new());
    let _ = host.handle(NOON, announce(1, km()), &mut out);
    let again = submit(1, 7, noise(1), NOON);
    assert_eq!(host.handle(NOON, again.clone(), &mut out), reading(Receipt::Kept));
    let _ = host.handle(NOON, Message::Leave { worker: WorkerId(1) }, &mut out);
    assert_eq!(host.workers(), 0);
    let mut host = Host::restore(&host.save(), paper(), NOON).unwrap();
    assert_eq!(host.workers(), 0);
    assert_eq!(host.handle(NOON, again.clone(), &mut out), reading(Receipt::Duplicate));
    assert_eq!(host.workers(), 1, "it is back");
    let _ = host.handle(NOON, Message::Leave { worker: WorkerId(1) }, &mut out);
    // Until a repetition would be too old to be taken.
    host.tick(NOON + 12 * MINUTE, &mut out);
    let late = host.handle(NOON + 12 * MINUTE, again, &mut out);
    assert_eq!(late, Handled::Refused(Refusal::Old));
}

/// Its readings do not take the room of others, and not for ever.
#[test]
fn a_requester_that_does_not_come_back_gives_way() {
    let limits = Limits { pending: 8, ..HostConfig::default().limits };
    let config = HostConfig { limits, ..paper() };
    let (mut host, mut out) = (host(config, 1, NOON), Vec::new());
    let gone = Task { id: TaskId(8), until: NOON + 60 * MINUTE, ..task(1) };
    let forward = Message::Forward { requester: lately_edge::ids::RequesterId(1), task: gone };
    let _ = host.handle(NOON, forward, &mut out);
    let mut readings = 0;
    let mut submit_and_confirm = |host: &mut Host, now: u64| {
        readings += 1;
        let element = noise(readings as u32 % 100);
        let receipt = host.handle(now, submit(1, readings, element, now), &mut out);
        assert_eq!(receipt, reading(Receipt::Kept), "{readings}");
        host.tick(now, &mut out);
        host.tick(now + 1_000, &mut out);
        for (to, message) in messages(&mut out) {
            if let (Peer::Requester(REQUESTER), Message::Results { square, batch, .. }) =
                (to, message)
            {
                let _ = host.handle(now, Message::Received { square, batch }, &mut out);
            }
        }
    };
    for second in 0..20 {
        submit_and_confirm(&mut host, NOON + second * 2_000);
    }
    assert_eq!((host.pending(), host.counts().undelivered), (4, 16), "half the room, no more");
    // Its task is over: what waits for it waits for another day.
    host.tick(NOON + 61 * MINUTE, &mut out);
    assert_eq!((host.pending(), host.tasks()), (4, 1));
    host.tick(NOON + 24 * 60 * MINUTE, &mut out);
    assert_eq!(host.pending(), 4);
    host.tick(NOON + 26 * 60 * MINUTE, &mut out);
    assert_eq!((host.pending(), host.counts().undelivered), (0, 20));
}

#[test]
fn a_clock_that_was_ahead_for_a_while_silences_nobody() {
    let (mut host, mut out) = (host(paper(), 1, NOON), Vec::new());
    let days = |count: u64| NOON + count * 24 * 60 * MINUTE;
    let _ = host.handle(days(30), announce(1, km()), &mut out);
    let ahead = host.handle(days(30), submit(1, 1, noise(1), days(30)), &mut out);
    assert_eq!(ahead, reading(Receipt::Kept));
    host.tick(days(30), &mut out);
    host.tick(days(30) + 1_000, &mut out);
    let before = host.stamp(km()).unwrap();
    let mut restored = Host::restore(&host.save(), paper(), NOON).unwrap();
    for host in [&mut host, &mut restored] {
        out.clear();
        let now = host.handle(NOON, submit(1, 2, noise(1), NOON), &mut out);
        assert_eq!(now, reading(Receipt::Kept));
        let after = host.stamp(km()).unwrap();
        assert!(after.incarnation > before.incarnation && host.workers() == 1);
        assert_eq!((host.counts().clock_corrections, host.pending()), (1, 2));
        host.tick(NOON, &mut out);
        host.tick(NOON + 1_000, &mut out);
        let results = |(_, message): &(Peer, Message)| matches!(message, Message::Results { .. });
        assert_eq!(messages(&mut out).iter().filter(|sent| results(sent)).count(), 2);
    }
}

/// What a coordinator lists when it places a square is all there is; what was kept for others waits.
#[test]
fn tasks_that_are_not_listed_have_ended() {
    let (mut host, mut out) = (host(paper(), 1, NOON), Vec::new());
    let _ = host.handle(NOON, submit(1, 1, noise(1), NOON), &mut out);
    host.keep_tasks(0, &[(REQUESTER, task(1))]);
    assert_eq!(host.tasks(), 1);
    host.keep_tasks(0, &[]);
    assert_eq!((host.tasks(), host.pending()), (0, 1));
    let refused = Handled::Refused(Refusal::NoTask);
    assert_eq!(host.handle(NOON, submit(1, 2, noise(2), NOON), &mut out), refused);
    // A late withdrawal still takes what waits.
    let _ = host.handle(NOON, Message::Withdraw { task: TaskId(7) }, &mut out);
    assert_eq!(host.pending(), 0);
}
