//! Scenarios in which something goes wrong that operators do: what was sent is counted once, and told.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use lately_edge::Millis;
use lately_edge::filter::Stamp;
use lately_edge::host::{Handled, Host, HostConfig, Receipt, Refusal};
use lately_edge::ids::{ProcessId, WorkerId};
use lately_edge::lease::{ASK, LOST, Lease, RENEW, Standing};
use lately_edge::message::{Message, Outgoing, Peer, Reading};
use lately_edge::process::Process;
use lately_edge::rules::{Mode, Rules};
use lately_edge::tally::{Tally, first_of};
use lately_edge::worker::{Lack, Outcome, Worker};
use support::{MINUTE, NOON, REQUESTER, announce, host, km, noise, property, rules, submit, task};

/// A reading taken then and sent then.
fn buffered(sequence: u64, at: u32, taken: Millis, sent: Millis) -> Message {
    let reading = Reading { element: noise(at), value: 1.0, time: taken };
    let (worker, stamp) = (WorkerId(1), Stamp::default());
    Message::Submit { worker, sequence, sent, stamp, refresh: false, reading }
}

fn tallies(out: &mut Vec<Outgoing>) -> Vec<(Peer, u32, Tally)> {
    let all = out.drain(..).filter_map(|outgoing| match outgoing.message {
        Message::Tally { life, tally, .. } => Some((outgoing.to, life, tally)),
        _ => None,
    });
    all.collect()
}

/// Numbers of another life are no repetitions, whatever order they are in.
#[test]
fn lives_are_kept_apart() {
    let (mut host, mut out) = (host(HostConfig::default(), 1, NOON), Vec::new());
    for (at, life) in (0..).zip([9, 3, u32::MAX, 0]) {
        let first = first_of(life);
        let mut arrive =
            |sequence, at| host.handle(NOON, submit(1, sequence, noise(at), NOON), &mut out);
        assert_eq!(arrive(first, 2 * at), Handled::Reading(Receipt::Kept));
        assert_eq!(arrive(first + 1, 2 * at + 1), Handled::Reading(Receipt::Kept));
        assert_eq!(arrive(first, 2 * at), Handled::Reading(Receipt::Duplicate));
    }
}

/// A host tells each life what became of its submissions: all of them, once, also after a restart.
#[test]
fn workers_are_told_what_became_of_what_they_sent() {
    let config = HostConfig::default();
    let (mut host, mut out) = (host(config, 1, NOON), Vec::new());
    let first = first_of(7);
    let mut number = first;
    for at in [1, 1, 2] {
        let _ = host.handle(NOON, submit(1, number, noise(at), NOON), &mut out);
        number += 1;
    }
    let _ = host.handle(NOON, submit(1, number, noise(3), NOON + 2 * MINUTE), &mut out);
    let _ = host.handle(NOON, submit(1, first, noise(1), NOON), &mut out);
    out.clear();
    host.tick(NOON + config.tell_every, &mut out);
    let mut wanted = Tally { kept: 2, redundant: 1, repeated: 1, ..Tally::default() };
    wanted.refused[Refusal::Future as usize] = 1;
    assert_eq!(tallies(&mut out), [(Peer::Worker(WorkerId(1)), 7, wanted)]);
    assert_eq!(wanted.all(), 4);
    host.tick(NOON + 5 * config.tell_every, &mut out);
    assert!(tallies(&mut out).is_empty(), "nothing new");
    let mut again = Host::restore(&host.save(), config, NOON + MINUTE).unwrap();
    again.tick(NOON + 2 * MINUTE, &mut out);
    assert_eq!(tallies(&mut out), [(Peer::Worker(WorkerId(1)), 7, wanted)]);
    // Who leaves is told at once.
    let _ = again.handle(NOON + 2 * MINUTE, submit(1, number + 1, noise(4), NOON), &mut out);
    out.clear();
    let _ = again.handle(NOON + 2 * MINUTE, Message::Leave { worker: WorkerId(1) }, &mut out);
    assert_eq!(tallies(&mut out)[0].2.kept, 3);
}

/// A refusal that was noted since the state was saved counts once when its submission comes again.
#[test]
fn a_refusal_outlives_the_host() {
    let config = HostConfig::default();
    let (mut host, mut out) = (host(config, 1, NOON), Vec::new());
    let saved = host.save();
    let message = submit(1, first_of(7), noise(3), NOON + 2 * MINUTE);
    let refused = Handled::Refused(Refusal::Future);
    assert_eq!(host.handle(NOON, message.clone(), &mut out), refused);
    let mut again = Host::reopen(&saved, config).unwrap();
    again.replay_refusal(NOON, &message, Refusal::Future);
    again.resume(NOON + 1, config);
    assert_eq!(again.counts(), host.counts());
    let known = Handled::Reading(Receipt::Duplicate);
    assert_eq!(again.handle(NOON + 5 * MINUTE, message, &mut out), known);
}

/// The worker knows what its hosts have told, by life, and what nobody has answered.
#[test]
fn a_worker_adds_up_what_it_is_told() {
    let mut worker = Worker::new(WorkerId(1), &[property("noise")], first_of(7));
    let (mut host, mut out) = (host(HostConfig::default(), 1, NOON), Vec::new());
    assert_eq!(worker.lack(), Lack::Coordinator);
    worker.go(NOON, km(), &mut out);
    worker.handle(NOON, Message::Unplaced { square: km().square() }, &mut out);
    assert_eq!(worker.lack(), Lack::Host);
    worker.handle(NOON, Message::Located { square: km().square() }, &mut out);
    assert_eq!(worker.lack(), Lack::Answer);
    assert_eq!(worker.sense(NOON, noise(1), 1.0, &mut out), Outcome::NoTask);
    assert_eq!(worker.counts().lacking, [0, 0, 1, 0]);
    let mut now = NOON;
    let mut deliver = |worker: &mut Worker, host: &mut Host, out: &mut Vec<Outgoing>| {
        let mut answers = Vec::new();
        for outgoing in out.drain(..).filter(|outgoing| matches!(outgoing.to, Peer::Host(_))) {
            let _ = host.handle(NOON, outgoing.message, &mut answers);
        }
        now += 20_000;
        host.tick(now, &mut answers);
        answers.drain(..).for_each(|answer| worker.handle(NOON, answer.message, out));
    };
    deliver(&mut worker, &mut host, &mut out);
    assert_eq!(worker.lack(), Lack::Task);
    for at in 1..4 {
        assert_eq!(worker.sense(NOON, noise(at), 1.0, &mut out), Outcome::Sent);
    }
    assert_eq!((worker.unanswered(), worker.tally().all()), (3, 0));
    deliver(&mut worker, &mut host, &mut out);
    assert_eq!((worker.unanswered(), worker.tally().kept), (0, 3));
    let square = km().square();
    let tally = Tally { kept: 99, ..Tally::default() };
    worker.handle(NOON, Message::Tally { square, born: NOON, life: 8, tally }, &mut out);
    assert_eq!((worker.counts().of_others, worker.tally().kept), (1, 3));
}

/// A worker whose property nobody asks for is told so: the host answers without tasks.
#[test]
fn a_host_without_tasks_answers() {
    let mut host = Host::new(km().square(), HostConfig::default(), NOON);
    let mut out = Vec::new();
    let _ = host.handle(NOON, announce(1, km()), &mut out);
    match out.as_slice() {
        [Outgoing { message: Message::Assign { tasks, .. }, .. }] => assert!(tasks.is_empty()),
        other => panic!("{other:?}"),
    }
}

/// The age of a reading counts from when it was sent; how long the broker kept it is another matter.
#[test]
fn age_counts_from_sending() {
    let config = HostConfig { max_age: 10 * MINUTE, ..HostConfig::default() };
    let (mut host, mut out) = (host(config, 1, NOON), Vec::new());
    let later = NOON + 200 * MINUTE;
    let kept = Handled::Reading(Receipt::Kept);
    let old = Handled::Refused(Refusal::Old);
    let ago = |minutes| later - minutes * MINUTE;
    let mut arrive = |sequence, taken, sent| {
        host.handle(later, buffered(sequence, sequence as u32, taken, sent), &mut out)
    };
    assert_eq!(arrive(1, ago(119), ago(119)), kept);
    assert_eq!(arrive(2, ago(121), ago(121)), old);
    assert_eq!(arrive(3, ago(70), ago(60)), kept);
    assert_eq!(arrive(4, ago(71), ago(60)), old);
    assert_eq!(arrive(5, later, later + 2 * MINUTE), Handled::Refused(Refusal::Future));
}

/// Exactly as many readings of each element are kept in each period as are wanted, in whatever order they arrive.
#[test]
fn a_late_reading_belongs_to_its_own_period() {
    for mode in [Mode::Reset, Mode::Ageing { steps: 30 }] {
        let config = HostConfig { rules: rules(mode, 30 * MINUTE, 1), ..HostConfig::default() };
        let (mut host, mut out) = (host(config, 1, NOON), Vec::new());
        let mut arrive = |now: Millis, sequence, taken| {
            host.handle(now, buffered(sequence, 1, taken, now), &mut out)
        };
        let (kept, redundant) =
            (Handled::Reading(Receipt::Kept), Handled::Reading(Receipt::Redundant));
        assert_eq!(arrive(NOON, 1, NOON), kept);
        let now = NOON + 65 * MINUTE;
        assert_eq!(arrive(now, 2, now), kept);
        // In the period of the first, in the one between, and in the present one.
        assert_eq!(arrive(now, 3, NOON + 10 * MINUTE), redundant, "{mode:?}");
        assert_eq!(arrive(now, 4, NOON + 34 * MINUTE), kept, "{mode:?}");
        assert_eq!(arrive(now, 5, NOON + 35 * MINUTE - 1), redundant, "{mode:?}");
        assert_eq!(arrive(now, 6, now - 2 * MINUTE), redundant, "{mode:?}");
        let counts = *host.counts();
        let mut again = Host::restore(&host.save(), config, now).unwrap();
        assert_eq!(again.counts(), &counts);
        let late = buffered(7, 1, NOON + 34 * MINUTE, now);
        assert_eq!(again.handle(now, late, &mut Vec::new()), redundant, "{mode:?}");
    }
}

/// What was buffered is sent whatever the present filter says, and only if a task was there for it then.
#[test]
fn a_worker_sends_what_it_buffered() {
    let mut worker = Worker::new(WorkerId(1), &[property("noise")], first_of(7));
    let mut host = Host::new(km().square(), HostConfig::default(), NOON);
    let mut out = Vec::new();
    let mut posted = task(1);
    posted.from = NOON - 60 * MINUTE;
    let message = Message::Forward { requester: REQUESTER, task: posted };
    let _ = host.handle(NOON, message, &mut out);
    let _ = host.handle(NOON, submit(2, 1, noise(1), NOON), &mut out);
    worker.go(NOON, km(), &mut out);
    worker.handle(NOON, Message::Located { square: km().square() }, &mut out);
    let _ = host.handle(NOON, announce(1, km()), &mut out);
    let assign = out.pop().unwrap().message;
    worker.handle(NOON, assign, &mut out);
    let mut sense = |time| {
        let reading = Reading { element: noise(1), value: 1.0, time };
        worker.sense_buffered(NOON, reading, &mut out)
    };
    assert_eq!(sense(NOON), Outcome::Skipped);
    assert_eq!(sense(NOON - 40 * MINUTE), Outcome::Sent);
    assert_eq!(sense(NOON - 61 * MINUTE), Outcome::NoTask);
}

/// A coordinator that knows nothing takes no task away; one that knows of it does.
#[test]
fn tasks_of_another_book_stay() {
    let (mut host, mut out) = (host(HostConfig::default(), 1, NOON), Vec::new());
    host.keep_tasks(5, &[(REQUESTER, task(1))]);
    let message = Message::Forward { requester: REQUESTER, task: task(1) };
    let _ = host.handle(NOON, message.clone(), &mut out);
    host.keep_tasks(6, &[]);
    assert_eq!(host.tasks(), 1);
    let mut again = Host::restore(&host.save(), HostConfig::default(), NOON).unwrap();
    again.keep_tasks(6, &[]);
    assert_eq!(again.tasks(), 1);
    // Posted again, it is in the new book.
    let _ = again.handle(NOON, message, &mut out);
    again.keep_tasks(6, &[]);
    assert_eq!(again.tasks(), 0);
}

/// Readings for a requester that is away are sent seldom, and at once when it is there again.
#[test]
fn who_is_away_is_not_written_to_for_ever() {
    let (mut host, mut out) = (host(HostConfig::default(), 1, NOON), Vec::new());
    let _ = host.handle(NOON, submit(1, 1, noise(1), NOON), &mut out);
    let count = |out: &mut Vec<Outgoing>| {
        let results = |outgoing: &Outgoing| matches!(outgoing.message, Message::Results { .. });
        out.drain(..).filter(results).count()
    };
    let mut now = NOON;
    for _ in 0..3_600 {
        now += 1_000;
        host.tick(now, &mut out);
    }
    // At 30 s, 1.5, 3.5, 7.5, 15.5 and 31.5 minutes after the first; it was 121 times.
    assert_eq!(count(&mut out), 7);
    let message = Message::Forward { requester: REQUESTER, task: task(1) };
    let _ = host.handle(now, message, &mut out);
    host.tick(now + 1_000, &mut out);
    assert_eq!(count(&mut out), 1);
}

/// Two that hear each other: the first one acts, until it falls silent, says good-bye, or they were apart.
#[test]
fn of_two_one_acts() {
    let mut leases = [Lease::new(1), Lease::new(2)];
    let mut out = Vec::new();
    let mut now: Millis = 1_000_000;
    leases[0].connected(now, &mut out);
    now += ASK + 256;
    leases[0].tick(now, &mut out);
    assert!(matches!(leases[0].standing(), Standing::Acts(_)));
    let talk = |leases: &mut [Lease; 2], now, out: &mut Vec<Message>| {
        while let Some(message) = out.pop() {
            leases.iter_mut().for_each(|lease| lease.handle(now, &message, out));
        }
    };
    talk(&mut leases, now, &mut out);
    leases[1].connected(now, &mut out);
    talk(&mut leases, now, &mut out);
    for _ in 0..100 {
        now += RENEW / 5;
        leases.iter_mut().for_each(|lease| lease.tick(now, &mut out));
        talk(&mut leases, now, &mut out);
        assert_eq!(leases[1].standing(), Standing::Waits { holder: 1 });
    }
    // It falls silent.
    let mut apart = Vec::new();
    for _ in 0..40 {
        now += LOST / 20;
        leases[1].tick(now, &mut apart);
    }
    assert!(matches!(leases[1].standing(), Standing::Acts(_)));
    // They meet again: the one that began later stays, whoever speaks first.
    for speaks in [0, 1] {
        let mut leases = leases.clone();
        let mut out = Vec::new();
        leases[speaks].connected(now, &mut out);
        talk(&mut leases, now, &mut out);
        assert_eq!(leases[0].standing(), Standing::Waits { holder: 2 });
        assert!(matches!(leases[1].standing(), Standing::Acts(_)));
        // Its good-bye, or its last will, leads to a question, and silence to the other's turn.
        let farewell = leases[1].farewell();
        leases[0].handle(now, &farewell, &mut out);
        assert_eq!(leases[0].standing(), Standing::Asking);
        leases[0].tick(now + ASK + 256, &mut out);
        assert!(matches!(leases[0].standing(), Standing::Acts(_)));
    }
}

/// A period that has ended, or, where filters age, one validity period.
#[test]
fn rules_say_what_is_over() {
    let reset = rules(Mode::Reset, 30 * MINUTE, 1);
    assert!(!reset.is_over(NOON, NOON + 30 * MINUTE - 1) && reset.is_over(NOON - 1, NOON));
    let ageing = Rules { mode: Mode::Ageing { steps: 30 }, ..reset };
    assert!(!ageing.is_over(NOON - 1, NOON) && ageing.is_over(NOON, NOON + 30 * MINUTE));
}

/// Two processes that have had the same square and begin in the same second: what one has delivered is not taken for
/// what the other has.
#[test]
fn batches_of_two_processes_are_kept_apart() {
    let square = km().square();
    let begin = |id| {
        let mut process = Process::new(ProcessId(id), 1, HostConfig::default());
        let tasks = vec![(REQUESTER, task(1))];
        let place = Message::Place { square, rules: Rules::PAPER, tasks, book: 1 };
        let mut out = Vec::new();
        let _ = process.handle(NOON, Peer::Process(ProcessId(id)), place, &mut out);
        let reading = submit(1, id, noise(id as u32), NOON);
        let _ = process.handle(NOON, Peer::Host(square), reading, &mut out);
        out.clear();
        process.tick(NOON, &mut out);
        process.tick(NOON + 1_000, &mut out);
        let batch = out.into_iter().find_map(|outgoing| match outgoing.message {
            Message::Results { batch, .. } => Some(batch),
            _ => None,
        });
        (process, batch.unwrap())
    };
    let ((_, batch), (mut other, _)) = (begin(1), begin(2));
    let received = Message::Received { square, batch };
    let _ = other.handle(NOON + 2_000, Peer::Host(square), received, &mut Vec::new());
    assert_eq!(other.pending(), 1);
}
