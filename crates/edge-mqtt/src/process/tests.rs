//! What outlives a crash.

use super::*;
use crate::mosquitto::{Mosquitto, find};
use lately_edge::element::{Element, Property};
use lately_edge::filter::Stamp;
use lately_edge::ids::{RequesterId, TaskId, WorkerId};
use lately_edge::message::{Kind, Reading};
use lately_edge::rules::Rules;
use lately_edge::task::{Area, Task};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

const MOST: usize = 1_024;
const THEN: Millis = 1_500_000_000_000;

fn bytes(message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    wire::encode(message, &mut bytes);
    bytes
}

fn submit(sequence: u64) -> Message {
    submit_at(sequence, THEN)
}

fn submit_at(sequence: u64, time: Millis) -> Message {
    let element = Element {
        cell: format!("33TWL7597{sequence:02}").parse().unwrap(),
        property: Property::new("noise").unwrap(),
    };
    let reading = Reading { element, value: 1.0, time };
    let (worker, stamp) = (WorkerId(7), Stamp::default());
    Message::Submit { worker, sequence, sent: reading.time, stamp, refresh: false, reading }
}

fn broker() -> Broker {
    // Nobody listens there.
    Broker::new("mqtt://127.0.0.1:1", None).unwrap()
}

fn start(place: &Path, room: u32) -> io::Result<ProcessRun> {
    let folder = Folder::open(place)?;
    ProcessRun::new(broker(), Clock::default(), folder, room, HostConfig::default())
}

fn link() -> Link {
    let profile = Profile { client: "test", will: None, durable: true, inflight: INFLIGHT };
    Link::open(&broker(), Sender::Process, profile, QUEUE)
}

fn square() -> Square {
    "33TWL77".parse().unwrap()
}

fn place_at(square: Square) -> Message {
    let property = Property::new("noise").unwrap();
    let (id, until) = (TaskId(1), Millis::MAX);
    let task = Task { id, property, area: Area::Everywhere, from: 0, until, wanted: 1 };
    Message::Place { square, rules: Rules::PAPER, tasks: vec![(RequesterId(1), task)], book: 1 }
}

impl ProcessRun {
    /// Takes a message as [`ProcessRun::batch`] does.
    fn take_message(&mut self, now: Millis, to: Peer, message: &Message) {
        let handled = self.process.handle(now, to, message.clone(), &mut Vec::new());
        assert!(is_change(handled), "{handled:?}");
        self.disk.note(now, to, &bytes(message));
        self.make_safe().unwrap();
    }

    /// Batches that a tick sends, and how many readings are in each.
    fn batches(&mut self, now: Millis) -> Vec<(u64, Vec<Reading>)> {
        let mut out = Vec::new();
        self.process.tick(now, &mut out);
        let batch = |outgoing: Outgoing| match outgoing.message {
            Message::Results { batch, readings, .. } => Some((batch, readings)),
            _ => None,
        };
        out.into_iter().filter_map(batch).collect()
    }
}

/// However long the pause, and wherever the journal was cut off.
#[test]
fn what_is_in_the_journal_is_there_after_a_restart() {
    let place = tempfile::tempdir().unwrap();
    let run = || start(place.path(), 8).unwrap();
    let me = run().id();
    {
        let mut first = run();
        first.disk.note(THEN, Peer::Process(me), &bytes(&place_at(square())));
        for sequence in 30..40 {
            let submit = bytes(&submit(sequence));
            first.disk.note(THEN, Peer::Host(square()), &submit);
        }
        first.disk.journal.commit().unwrap();
    }
    let second = run();
    assert_eq!(second.resumed(), Resumed { hosts: 0, messages: 11, cut_off: 0, missing: None });
    let host = second.process.host(square()).unwrap();
    assert_eq!((host.counts().kept, host.pending()), (10, 10));
    drop(second);
    let third = run();
    assert_eq!(third.resumed(), Resumed { hosts: 1, messages: 0, cut_off: 0, missing: None });
    assert_eq!(third.process.host(square()).unwrap().pending(), 10);
    assert_eq!(third.id(), me);
    let files = std::fs::read_dir(place.path()).unwrap().count();
    assert_eq!(files, 4, "hosts, id, lock and one journal");
}

/// A crash after readings have gone out: their batch is not used for others, and comes again as it was.
#[tokio::test]
async fn batches_outlive_a_crash_without_the_state_being_written() {
    let place = tempfile::tempdir().unwrap();
    let mut link = link();
    let mut first = start(place.path(), 8).unwrap();
    let (to, now) = (Peer::Host(square()), Clock::system());
    first.take_message(now, Peer::Process(first.id()), &place_at(square()));
    let number = first.disk.number;
    for sequence in 30..34 {
        first.take_message(now, to, &submit_at(sequence, now));
    }
    // They gather for a second.
    first.tick(&mut link).unwrap();
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    first.tick(&mut link).unwrap();
    assert_eq!(link.traffic.sent(Kind::Results), 1);
    first.take_message(now, to, &submit_at(34, now));
    assert_eq!(first.disk.number, number, "nothing was written but the journal");
    let sent = first.process.host(square()).unwrap().last_batch().unwrap();
    drop(first);

    let mut second = start(place.path(), 8).unwrap();
    // Place, five readings, one batch.
    assert_eq!(second.resumed().messages, 7);
    let again = second.batches(Clock::system());
    let [(batch, readings)] = again.as_slice() else { panic!("{again:?}") };
    assert_eq!((*batch, readings.len()), (sent, 4));
    let new = second.batches(Clock::system() + 1_000);
    let [(batch, readings)] = new.as_slice() else { panic!("{new:?}") };
    assert!(*batch > sent, "{batch:x} {sent:x}");
    assert_eq!(readings.len(), 1);
}

#[test]
fn a_process_with_less_room_goes_on_with_all_it_had() {
    let place = tempfile::tempdir().unwrap();
    let mut first = start(place.path(), 8).unwrap();
    let other: Square = "33TWL78".parse().unwrap();
    for square in [square(), other] {
        first.take_message(THEN, Peer::Process(first.id()), &place_at(square));
    }
    first.take_message(THEN, Peer::Host(square()), &submit(30));
    drop(first);
    let second = start(place.path(), 1).unwrap();
    assert_eq!((second.process.hosts().count(), second.process.pending()), (2, 1));
}

#[tokio::test]
async fn hosts_that_leave_still_hear_of_their_readings() {
    let place = tempfile::tempdir().unwrap();
    let mut first = start(place.path(), 8).unwrap();
    let me = Peer::Process(first.id());
    first.take_message(THEN, me, &place_at(square()));
    first.take_message(THEN, Peer::Host(square()), &submit(30));
    first.take_message(THEN, me, &Message::Release { square: square() });
    drop(first);
    // From the journal, and from the state that is written then.
    for _ in 0..2 {
        let again = start(place.path(), 8).unwrap();
        assert_eq!(again.process.leaving().count(), 1);
        let mut link = link();
        again.listen_to_all(&mut link);
        assert!(link.listens(&topic(Peer::Host(square()), Sender::Requester)));
    }
}

/// Records that follow a damaged one were confirmed: nothing is thrown away.
#[test]
fn a_damaged_journal_is_kept() {
    let place = tempfile::tempdir().unwrap();
    let mut first = start(place.path(), 8).unwrap();
    let path = place.path().join(format!("journal-{}", first.disk.number));
    first.take_message(THEN, Peer::Process(first.id()), &place_at(square()));
    let middle = fs::metadata(&path).unwrap().len();
    first.take_message(THEN, Peer::Host(square()), &submit(30));
    first.take_message(THEN, Peer::Host(square()), &submit(31));
    drop(first);
    let mut bytes = fs::read(&path).unwrap();
    bytes[middle as usize + 30] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let words = start(place.path(), 8).err().unwrap().to_string();
    assert!(words.contains(&format!("damaged at byte {middle}")), "{words}");
    assert_eq!(fs::read(&path).unwrap(), bytes);
    // One that a crash cut off is no damage.
    fs::write(&path, &bytes[..middle as usize + 30]).unwrap();
    let cut_off = start(place.path(), 8).unwrap().resumed();
    assert_eq!(cut_off, Resumed { hosts: 0, messages: 1, cut_off: 30, missing: None });
}

/// The state is written when the journal has got as long, and not before.
#[tokio::test]
async fn the_state_is_written_seldom() {
    let place = tempfile::tempdir().unwrap();
    let mut run = start(place.path(), 8).unwrap();
    let mut link = link();
    run.take_message(THEN, Peer::Process(run.id()), &place_at(square()));
    let number = run.disk.number;
    let mut length = 0;
    for sequence in 0..40_000 {
        let message = Message::Announce {
            worker: WorkerId(sequence % 100),
            cell: "33TWL7573".parse().unwrap(),
            properties: vec![Property::new("noise").unwrap()],
            known: None,
        };
        run.disk.note(THEN, Peer::Host(square()), &bytes(&message));
        if sequence % 1_000 == 0 {
            assert_eq!(run.disk.number, number + u64::from(length > disk::SHORTEST), "{length}");
            run.tick(&mut link).unwrap();
            length = length.max(run.disk.journal.length());
        }
        if run.disk.number > number {
            break;
        }
    }
    assert_eq!(run.disk.number, number + 1);
    assert!(run.disk.journal.length() < 100);
}

/// However much a broker sends at once, memory is bounded, and nothing is taken out of order.
#[tokio::test]
async fn a_broker_that_sends_more_than_agreed_fills_no_memory() {
    let (mut held, mut link) = (Held::new((MOST, 1 << 26)), link());
    let most = MOST;
    let arrived = || Arrived::test(b"x");
    (0..10 * most).for_each(|_| held.take(&mut link, arrived()));
    assert_eq!((held.queue.len(), held.left_out), (most, true));
    // Confirmations that wait count as well.
    held.queue.drain(..).for_each(|arrived| link.confirm(arrived));
    held.take(&mut link, arrived());
    assert!(held.queue.is_empty());
    assert_eq!(link.traffic.dropped_for("left-out"), 9 * most as u64 + 1);
    let mut held = Held::new((MOST, 3));
    (0..10).for_each(|_| held.take(&mut link, arrived()));
    assert!(held.queue.is_empty(), "confirmations wait still");
    link.close(Duration::ZERO).await;
    let mut link = self::link();
    let mut held = Held::new((MOST, 3));
    (0..10).for_each(|_| held.take(&mut link, arrived()));
    assert_eq!(held.queue.len(), 3);
}

/// What was left out is delivered again to the next connection, in order, until all is handled.
#[tokio::test]
async fn what_was_left_out_comes_again() {
    if find().is_none() {
        eprintln!("skipped: mosquitto is not installed (apt-get install mosquitto)");
        return;
    }
    const COUNT: u64 = 5_000;
    let mosquitto = Mosquitto::start("max_inflight_messages 0").unwrap();
    let broker = Broker::new(&mosquitto.address(), None).unwrap();
    let open = |client, sender, durable| {
        let profile = Profile { client, will: None, durable, inflight: INFLIGHT };
        Link::open(&broker, sender, profile, QUEUE)
    };
    let mut from = open("from", Sender::Worker, false);
    let mut link = open("to", Sender::Process, true);
    link.subscribe(Address::Gone);
    let begin = Instant::now();
    // Until the broker has the subscription.
    while begin.elapsed() < Duration::from_secs(1) {
        tokio::select! {
            _ = from.next(None) => {}
            _ = link.next(None) => {}
            () = tokio::time::sleep(Duration::from_millis(50)) => {}
        }
    }
    let leave = |worker| Message::Leave { worker: WorkerId(worker) };
    (0..COUNT).for_each(|worker| from.send_to(Address::Gone, &leave(worker)));
    let (mut held, mut next) = (Held::new((MOST, 1 << 26)), 0);
    let run = async {
        while next < COUNT {
            tokio::select! {
                _ = from.next(None) => {}
                event = link.next(None) => match event {
                    Event::Arrived(arrived) => held.take(&mut link, arrived),
                    Event::Down => held = Held::new((MOST, 1 << 26)),
                    _ => {}
                },
                // Whoever handles messages has been away for a while.
                () = tokio::time::sleep(Duration::from_millis(200)) => {
                    for arrived in held.queue.drain(..) {
                        let letter = link.read(&arrived).unwrap();
                        let Message::Leave { worker } = letter.message else { panic!() };
                        // Only what was confirmed as the connection ended comes twice.
                        assert!(worker.0 <= next, "{worker:?} after {next}");
                        next = next.max(worker.0 + 1);
                        link.confirm(arrived);
                    }
                }
            }
            if held.left_out && held.queue.is_empty() && link.unconfirmed() == 0 {
                link.reconnect();
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), run).await.unwrap();
    assert!(link.traffic.connections > 1 && link.traffic.dropped_for("left-out") > 0);
}
