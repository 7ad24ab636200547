//! Scenarios of a worker: where it announces itself, what it sends, which filters it takes.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use lately_edge::decide::{Decider, Decision};
use lately_edge::filter::{Contents, Group, Named, Share, Stamp};
use lately_edge::ids::WorkerId;
use lately_edge::message::{Message, Outgoing, Peer};
use lately_edge::rules::{Mode, Rules};
use lately_edge::worker::{Outcome, Worker};
use support::{MINUTE, NOON, elsewhere, km, noise, property, rules, share_of, task};

fn stamp(version: u32) -> Stamp {
    let epoch = Rules::PAPER.epoch(NOON);
    Stamp { epoch, incarnation: 1, version }
}

fn names(elements: &[(u32, u8)], version: u32, since: Option<u32>) -> Share {
    let named = |&(at, age): &(u32, u8)| Named { element: noise(at), age };
    let contents = Contents::Elements(elements.iter().map(named).collect());
    Share { stamp: stamp(version), since, contents }
}

fn assign(rules: Rules, share: Share) -> Message {
    Message::Assign { cell: km(), rules, tasks: vec![task(1)], share }
}

/// A worker that is in its cell and was assigned.
fn at_work(rules: Rules, share: Share) -> Worker {
    let mut worker = Worker::new(WorkerId(1), &[property("noise")], 1);
    let mut out = Vec::new();
    worker.go(NOON, km(), &mut out);
    worker.handle(NOON, Message::Located { square: km().square() }, &mut out);
    worker.handle(NOON, assign(rules, share), &mut out);
    worker
}

fn kinds(out: &mut Vec<Outgoing>) -> Vec<(&'static str, Peer)> {
    out.drain(..).map(|outgoing| (outgoing.message.kind().name(), outgoing.to)).collect()
}

#[test]
fn the_way_to_a_host() {
    let mut worker = Worker::new(WorkerId(1), &[property("noise")], 1);
    let (mut out, square) = (Vec::new(), km().square());
    worker.go(NOON, km(), &mut out);
    assert_eq!(kinds(&mut out), [("look-up", Peer::Coordinator)]);
    // Nobody answers, or nobody can: it asks again, less and less often.
    worker.tick(NOON + 999, &mut out);
    worker.handle(NOON, Message::Unplaced { square }, &mut out);
    assert!(out.is_empty());
    let asked: Vec<u64> = (0..20_000)
        .filter(|second| {
            worker.tick(NOON + second * 1_000, &mut out);
            !kinds(&mut out).is_empty()
        })
        .collect();
    assert_eq!(asked[..5], [1, 3, 7, 15, 31]);
    assert!(asked.windows(2).all(|pair| pair[1] - pair[0] <= 300), "{asked:?}");
    worker.handle(NOON, Message::Located { square }, &mut out);
    assert_eq!(kinds(&mut out), [("announce", Peer::Host(square))]);
    assert_eq!(worker.sense(NOON, noise(1), 1.0, &mut out), Outcome::NoTask);
    // Staying in the cell is no news, another cell is, and another square begins anew.
    worker.go(NOON, km(), &mut out);
    assert!(out.is_empty());
    worker.go(NOON, elsewhere(0).km(), &mut out);
    assert_eq!(kinds(&mut out), [("announce", Peer::Host(square))]);
    let away: lately_edge::cell::KmCell = "33TWL8573".parse().unwrap();
    worker.go(NOON, away, &mut out);
    assert_eq!(kinds(&mut out), [("leave", Peer::Host(square)), ("look-up", Peer::Coordinator)]);
    worker.reconnected(NOON, &mut out);
    assert_eq!(kinds(&mut out), [("look-up", Peer::Coordinator)]);
    worker.leave(&mut out);
    assert_eq!(kinds(&mut out), [("leave", Peer::Host(away.square()))]);
}

/// Algorithm 2: decides before it sends, and before it measures.
#[test]
fn what_is_in_the_filter_is_not_sent() {
    let mut worker = at_work(Rules::PAPER, names(&[(1, 0)], 1, None));
    let mut out = Vec::new();
    assert_eq!(worker.wants(NOON, &noise(1)), Outcome::Skipped);
    assert_eq!(worker.sense(NOON, noise(1), 1.0, &mut out), Outcome::Skipped);
    assert_eq!(worker.sense(NOON, noise(2), 1.0, &mut out), Outcome::Sent);
    assert_eq!(worker.sense(NOON, noise(2), 1.0, &mut out), Outcome::Skipped);
    let element = lately_edge::element::Element { property: property("co"), ..noise(3) };
    assert_eq!(worker.sense(NOON, element, 1.0, &mut out), Outcome::NoTask);
    match out.as_slice() {
        [Outgoing { message: Message::Submit { sequence: 1, stamp: sent, reading, .. }, .. }] => {
            assert_eq!((*sent, reading.element), (stamp(1), noise(2)));
        }
        other => panic!("{other:?}"),
    }
    let counts = worker.counts();
    assert_eq!((counts.sent, counts.skipped, counts.unasked), (1, 2, 1));
}

/// An update replaces the filter; what the worker sent itself in this period stays.
#[test]
fn an_update_keeps_what_the_worker_added() {
    let mut worker = at_work(Rules::PAPER, names(&[(1, 0)], 1, None));
    let mut out = Vec::new();
    assert_eq!(worker.sense(NOON, noise(2), 1.0, &mut out), Outcome::Sent);
    let share = names(&[(3, 0)], 2, None);
    worker.handle(NOON, Message::Update { cell: km(), share }, &mut out);
    let wants = [1, 2, 3].map(|at| worker.wants(NOON, &noise(at)));
    assert_eq!(wants, [Outcome::Sent, Outcome::Skipped, Outcome::Skipped]);
    // A delta adds, and a reset forgets it all.
    let share = names(&[(4, 0)], 3, Some(2));
    worker.handle(NOON, Message::Update { cell: km(), share }, &mut out);
    let wants = [3, 4].map(|at| worker.wants(NOON, &noise(at)));
    assert_eq!(wants, [Outcome::Skipped; 2]);
    let next = Stamp { epoch: stamp(0).epoch + 1, version: 0, ..stamp(0) };
    worker.handle(NOON, Message::Reset { cell: km(), stamp: next }, &mut out);
    let wants = [2, 3, 4].map(|at| worker.wants(NOON, &noise(at)));
    assert_eq!(wants, [Outcome::Sent; 3]);
    // Counters start again with the period.
    assert_eq!(worker.sense(NOON, noise(2), 1.0, &mut out), Outcome::Sent);
}

/// A reset of the whole square empties what is older than it, in all cells of the square, and once.
#[test]
fn a_square_is_reset_once() {
    let mut worker = at_work(Rules::PAPER, names(&[(1, 0)], 1, None));
    let (mut out, square) = (Vec::new(), km().square());
    assert_eq!(worker.square_of_task(), Some(square));
    let reset = |epoch: u32, incarnation: u32, since: u32| {
        let stamp = Stamp { epoch: stamp(0).epoch + epoch, incarnation, version: 0 };
        Message::ResetAll { square, stamp, since }
    };
    let mut hear = |worker: &mut Worker, message| {
        worker.handle(NOON, message, &mut out);
        let wants = worker.wants(NOON, &noise(1));
        (wants == Outcome::Skipped, worker.counts().emptied)
    };
    // Of an earlier period; of this one; and after a restart of the host in it, which has forgotten nothing.
    assert_eq!(
        hear(
            &mut worker,
            Message::ResetAll { square: "33TWL87".parse().unwrap(), stamp: stamp(0), since: 1 }
        ),
        (true, 0)
    );
    assert_eq!(hear(&mut worker, reset(0, 1, 1)), (true, 0));
    assert_eq!(hear(&mut worker, reset(0, 9, 1)), (true, 0));
    // The host has forgotten its filters in mid-period; the same once more.
    assert_eq!(hear(&mut worker, reset(0, 10, 10)), (false, 1));
    assert_eq!(hear(&mut worker, reset(0, 10, 10)), (false, 1));
    let named = |epoch: u32, incarnation: u32| Share {
        stamp: Stamp { epoch: stamp(0).epoch + epoch, incarnation, version: 1 },
        ..names(&[(1, 0)], 1, None)
    };
    let update = |share| Message::Update { cell: km(), share };
    assert_eq!(hear(&mut worker, update(named(0, 10))), (true, 1));
    // The period ends, and what is older than that is not believed any more.
    assert_eq!(hear(&mut worker, reset(1, 10, 10)), (false, 2));
    assert_eq!(hear(&mut worker, update(named(0, 10))), (false, 2));
    assert_eq!(hear(&mut worker, reset(0, 10, 10)), (false, 2));
    assert_eq!(hear(&mut worker, update(named(1, 10))), (true, 2));
    assert_eq!(hear(&mut worker, reset(1, 10, 10)), (true, 2));
    assert_eq!(hear(&mut worker, reset(1, 12, 10)), (true, 2));
    assert_eq!(worker.counts().strange, 0);
}

/// Two processes run the square for a while: what the second began with holds, although the first has continued since.
#[test]
fn of_two_resets_the_stricter_holds() {
    let mut worker = at_work(Rules::PAPER, names(&[(1, 0)], 1, None));
    let (mut out, square) = (Vec::new(), km().square());
    let reset = |incarnation: u32, since: u32| {
        let stamp = Stamp { incarnation, ..stamp(0) };
        Message::ResetAll { square, stamp, since }
    };
    worker.handle(NOON, reset(9, 1), &mut out);
    assert_eq!(worker.wants(NOON, &noise(1)), Outcome::Skipped);
    worker.handle(NOON, reset(5, 4), &mut out);
    assert_eq!(worker.wants(NOON, &noise(1)), Outcome::Sent);
    // What the first says is assigned again, from before and from after that.
    let share = |incarnation| Share {
        stamp: Stamp { incarnation, ..stamp(1) },
        ..names(&[(1, 0)], 1, None)
    };
    for (incarnation, outcome) in [(1, Outcome::Sent), (9, Outcome::Skipped)] {
        worker.handle(NOON, assign(Rules::PAPER, share(incarnation)), &mut out);
        assert_eq!(worker.wants(NOON, &noise(1)), outcome, "{incarnation}");
    }
}

/// What the broker has kept may be old: it does not make a silent host heard of. And it is not for filters that age.
#[test]
fn a_reset_that_was_kept_is_no_sign_of_life() {
    let mut worker = at_work(Rules::PAPER, names(&[(1, 0)], 1, None));
    let (mut out, square) = (Vec::new(), km().square());
    let later = NOON + 2 * Rules::PAPER.validity;
    worker.handle(later, Message::ResetAll { square, stamp: stamp(0), since: 1 }, &mut out);
    assert_eq!(worker.wants(later, &noise(1)), Outcome::Skipped);
    assert_eq!(worker.wants(later + 1, &noise(1)), Outcome::Sent);
    let ageing = rules(Mode::Ageing { steps: 60 }, 30 * MINUTE, 1);
    let share = Share { stamp: Stamp { epoch: 0, ..stamp(1) }, ..names(&[(1, 0)], 1, None) };
    let mut worker = at_work(ageing, share);
    worker.handle(NOON, Message::ResetAll { square, stamp: stamp(0), since: 1 }, &mut out);
    assert_eq!(worker.wants(NOON, &noise(1)), Outcome::Skipped);
}

#[test]
fn what_cannot_be_used_is_counted() {
    let mut worker = at_work(Rules::PAPER, names(&[(1, 0)], 5, None));
    let mut out = Vec::new();
    let update = |share| Message::Update { cell: km(), share };
    let old_epoch = Share {
        stamp: Stamp { epoch: 1, ..stamp(9) },
        since: None,
        contents: Contents::Elements(Vec::new()),
    };
    let unreadable = Share {
        contents: Contents::Positions(vec![Group { age: 0, positions: vec![99] }]),
        ..names(&[], 9, None)
    };
    for (message, counts) in [
        (update(names(&[], 4, None)), (1, 0, 0, 0)),
        (update(old_epoch), (2, 0, 0, 0)),
        (Message::Reset { cell: km(), stamp: stamp(0) }, (3, 0, 0, 0)),
        (update(unreadable), (3, 1, 0, 0)),
        (Message::Update { cell: elsewhere(0).km(), share: names(&[], 9, None) }, (3, 1, 1, 0)),
        (Message::Gone { process: lately_edge::ids::ProcessId(1) }, (3, 1, 2, 0)),
        (update(names(&[], 9, Some(7))), (3, 1, 2, 1)),
    ] {
        worker.handle(NOON, message, &mut out);
        let found = worker.counts();
        assert_eq!((found.stale, found.malformed, found.strange, found.gaps), counts);
    }
    // Nothing has changed, and all of the filter was asked for.
    assert_eq!(worker.wants(NOON, &noise(1)), Outcome::Skipped);
    match out.as_slice() {
        [Outgoing { message: Message::Announce { known: None, .. }, .. }] => {}
        other => panic!("{other:?}"),
    }
}

/// Back within a period, it says what it knows, and does not send twice.
#[test]
fn a_cell_is_remembered() {
    let mut worker = at_work(Rules::PAPER, names(&[(1, 0)], 3, None));
    let mut out = Vec::new();
    assert_eq!(worker.sense(NOON, noise(2), 1.0, &mut out), Outcome::Sent);
    worker.go(NOON, elsewhere(0).km(), &mut out);
    assert_eq!(worker.wants(NOON, &noise(1)), Outcome::NoTask);
    out.clear();
    worker.go(NOON, km(), &mut out);
    match out.as_slice() {
        [Outgoing { message: Message::Announce { known: Some(known), .. }, .. }] => {
            assert_eq!(*known, stamp(3));
        }
        other => panic!("{other:?}"),
    }
    worker.handle(NOON, assign(Rules::PAPER, names(&[], 3, Some(3))), &mut out);
    let wants = [1, 2, 3].map(|at| worker.wants(NOON, &noise(at)));
    assert_eq!(wants, [Outcome::Skipped, Outcome::Skipped, Outcome::Sent]);
}

/// The host knows better how old an element is than the worker whose reading was redundant.
#[test]
fn a_redundant_reading_does_not_prolong_the_silence() {
    let rules = rules(Mode::Ageing { steps: 30 }, 30 * MINUTE, 1);
    let ageing = |elements: &[(u32, u8)], version, since| {
        let share = names(elements, version, since);
        Share { stamp: Stamp { epoch: 0, ..share.stamp }, ..share }
    };
    let mut worker = at_work(rules, ageing(&[], 0, None));
    let mut out = Vec::new();
    assert_eq!(worker.sense(NOON, noise(1), 1.0, &mut out), Outcome::Sent);
    let share = ageing(&[(1, 20)], 1, Some(0));
    worker.handle(NOON, Message::Update { cell: km(), share }, &mut out);
    let at = |minute| worker.wants(NOON + minute * MINUTE, &noise(1));
    assert_eq!([at(9), at(10), at(29)], [Outcome::Skipped, Outcome::Sent, Outcome::Sent]);
}

/// Bits and names lead to the same filter.
#[test]
fn both_forms_of_a_filter_are_alike() {
    for elements in [0, 1, 7, 40] {
        let deciders = [false, true].map(|by_name| {
            let (_, share) = share_of(elements, by_name);
            assert_eq!(matches!(share.contents, Contents::Elements(_)), by_name);
            Decider::new(WorkerId(1), Rules::PAPER, &share, NOON).unwrap()
        });
        for at in 0..100 {
            let [one, other] = [0, 1].map(|form: usize| deciders[form].decide(&noise(at), NOON));
            assert_eq!(one, other);
            assert!(at >= elements || one == Decision::Skip);
        }
    }
}

/// A filter of which no news comes is forgotten after two periods.
#[test]
fn silence_does_not_silence() {
    let mut worker = at_work(Rules::PAPER, names(&[(1, 0)], 1, None));
    let later = NOON + 2 * Rules::PAPER.validity;
    assert_eq!(worker.wants(later, &noise(1)), Outcome::Skipped);
    assert_eq!(worker.wants(later + 1, &noise(1)), Outcome::Sent);
    let mut out = Vec::new();
    assert_eq!(worker.sense(later + 1, noise(1), 1.0, &mut out), Outcome::Sent);
    assert_eq!(worker.sense(later + 2, noise(1), 1.0, &mut out), Outcome::Skipped);
}

/// The share that the host asks for is sent all the same, once an element and period.
#[test]
fn refreshes_are_drawn_by_element_and_period() {
    let refresh = 6_554; // a tenth
    let rules = Rules { refresh, ..Rules::PAPER };
    let all: Vec<(u32, u8)> = (0..100).map(|at| (at, 0)).collect();
    let (mut drawn, mut workers) = (0, Vec::new());
    for worker in 0..100 {
        let share = names(&all, 100, None);
        let mut decider = Decider::new(WorkerId(worker), rules, &share, NOON).unwrap();
        let mut of_this = Vec::new();
        for at in 0..100 {
            let decision = decider.decide(&noise(at), NOON);
            if decision == Decision::Refresh {
                decider.sent(&noise(at), decision, NOON);
                assert_eq!(decider.decide(&noise(at), NOON), Decision::Skip);
                of_this.push(at);
            }
        }
        drawn += of_this.len();
        workers.push(of_this);
    }
    // 10,000 draws at 0.1: five deviations are 150.
    assert!((850..1_150).contains(&drawn), "{drawn}");
    workers.dedup();
    assert_eq!(workers.len(), 100, "each worker draws others");
}

/// A sensor that stands still: its host forgets it, or another process runs the square by now.
#[test]
fn who_rests_for_long_asks_where_the_host_is() {
    let mut worker = at_work(Rules::PAPER, names(&[], 0, None));
    let (mut out, square) = (Vec::new(), km().square());
    worker.tick(NOON + 50 * MINUTE - 1, &mut out);
    assert!(out.is_empty());
    assert_eq!(worker.sense(NOON + 19 * MINUTE, noise(1), 1.0, &mut out), Outcome::Sent);
    out.clear();
    worker.tick(NOON + 69 * MINUTE - 1, &mut out);
    assert!(out.is_empty(), "the host has heard of it");
    worker.tick(NOON + 69 * MINUTE, &mut out);
    assert_eq!(kinds(&mut out), [("look-up", Peer::Coordinator)]);
    worker.handle(NOON + 69 * MINUTE, Message::Located { square }, &mut out);
    assert_eq!(kinds(&mut out), [("announce", Peer::Host(square))]);
    worker.tick(NOON + 70 * MINUTE, &mut out);
    assert!(out.is_empty());
}

/// In a filter that ages, a reading sent to make sure does not make its element younger than the host has
/// it: when the filter lets go of it, it is due.
#[test]
fn a_refresh_does_not_put_off_when_an_element_is_due() {
    let rules = Rules {
        mode: Mode::Ageing { steps: 10 },
        validity: 10 * MINUTE,
        refresh: u16::MAX,
        ..Rules::PAPER
    };
    // The host has a reading that is eight grains old.
    let share = Share { stamp: Stamp { epoch: 0, ..stamp(1) }, ..names(&[(1, 8)], 1, None) };
    let mut decider = Decider::new(WorkerId(1), rules, &share, NOON).unwrap();
    assert_eq!(decider.decide(&noise(1), NOON), Decision::Refresh);
    decider.sent(&noise(1), Decision::Refresh, NOON);
    assert_eq!(decider.decide(&noise(1), NOON + MINUTE), Decision::Skip);
    assert_eq!(decider.decide(&noise(1), NOON + 2 * MINUTE), Decision::Send);
}
