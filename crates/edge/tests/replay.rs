//! A process that was killed handles again what it had handled since its hosts were saved.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use lately_edge::Millis;
use lately_edge::host::{Handled, Host, HostConfig, Limits, Receipt};
use lately_edge::ids::ProcessId;
use lately_edge::message::{Message, Outgoing, Peer, Reading};
use lately_edge::process::Process;
use lately_edge::rules::Rules;
use std::collections::BTreeMap;
use support::{NOON, REQUESTER, km, noise, submit, task};

const ME: ProcessId = ProcessId(3);
type Batches = BTreeMap<u64, Vec<Reading>>;

fn batches(out: Vec<Outgoing>) -> Batches {
    let batch = |outgoing: Outgoing| match outgoing.message {
        Message::Results { batch, readings, .. } => Some((batch, readings)),
        _ => None,
    };
    out.into_iter().filter_map(batch).collect()
}

fn place() -> Message {
    let tasks = vec![(REQUESTER, task(1))];
    Message::Place { square: km().square(), rules: Rules::PAPER, tasks, book: 1 }
}

/// A process that has handled some messages, and those messages with what it sent between them.
fn lived() -> (Process, Vec<(Millis, Peer, Message)>, Batches) {
    let mut process = Process::new(ME, 1, HostConfig::default());
    let (mut journal, mut sent) = (Vec::new(), Batches::new());
    let host = Peer::Host(km().square());
    let take = |process: &mut Process, journal: &mut Vec<_>, now, to, message: Message| {
        let handled = process.handle(now, to, message.clone(), &mut Vec::new());
        assert!(matches!(handled, Handled::Done | Handled::Reading(Receipt::Kept)), "{handled:?}");
        journal.push((now, to, message));
    };
    take(&mut process, &mut journal, NOON, Peer::Process(ME), place());
    for at in 0..30 {
        let now = NOON + u64::from(at) * 400;
        let message = submit(u64::from(at % 4), u64::from(at), noise(at), now);
        take(&mut process, &mut journal, now, host, message);
        let mut out = Vec::new();
        process.tick(now, &mut out);
        for (batch, readings) in batches(out) {
            let (task, square) = (task(1).id, km().square());
            let message = Message::Results { task, square, batch, readings: readings.clone() };
            journal.push((now, host, message));
            assert_eq!(sent.insert(batch, readings), None);
        }
    }
    let (&first, _) = sent.first_key_value().unwrap();
    let received = Message::Received { square: km().square(), batch: first };
    take(&mut process, &mut journal, NOON + 12_000, host, received);
    sent.remove(&first);
    (process, journal, sent)
}

/// Each batch has the readings it had, and all else goes out under numbers that nobody has seen.
#[test]
fn batches_keep_their_numbers_and_readings_are_all_there() {
    let (before, journal, sent) = lived();
    // Room for nothing, and readings of a time that is long over: they were taken all the same.
    let limits = Limits { workers: 1, tasks: 256, elements: 1, pending: 1 };
    let config =
        HostConfig { limits, second_look: false, max_age: 1, max_skew: 0, ..HostConfig::default() };
    let mut process = Process::new(ME, 0, config);
    journal.into_iter().for_each(|(now, to, message)| process.replay(now, to, message));
    let later = NOON + 900_000;
    process.resume(later);
    assert_eq!(process.pending(), before.pending());
    let host = process.host(km().square()).unwrap();
    assert_eq!(host.counts().kept, 30);
    assert_eq!(*host.config(), config);
    let mut out = Vec::new();
    process.tick(later, &mut out);
    assert_eq!(batches(std::mem::take(&mut out)), sent);
    process.tick(later + config.deliver_every, &mut out);
    let new = batches(out);
    let highest = sent.last_key_value().map_or(0, |(&batch, _)| batch);
    assert!(!new.is_empty() && new.keys().all(|&batch| batch > highest));
    let count = |batches: &Batches| batches.values().map(Vec::len).sum::<usize>();
    assert_eq!(count(&sent) + count(&new), process.pending());
}

/// A worker that began anew with lower numbers, after the host had forgotten it.
#[test]
fn nothing_in_the_journal_is_taken_for_repeated() {
    let (before, mut journal, _) = lived();
    let message = submit(0, 0, noise(77), NOON + 20_000);
    journal.push((NOON + 20_000, Peer::Host(km().square()), message));
    let mut process = Process::new(ME, 1, HostConfig::default());
    journal.into_iter().for_each(|(now, to, message)| process.replay(now, to, message));
    assert_eq!(process.pending(), before.pending() + 1);
}

/// Leaving hosts go on handing over what they kept.
#[test]
fn a_host_that_leaves_is_still_leaving() {
    let (mut process, _, _) = lived();
    let (now, square) = (NOON + 20_000, km().square());
    let _ = process.handle(now, Peer::Process(ME), Message::Release { square }, &mut Vec::new());
    let saved: Vec<Vec<u8>> = process.leaving().map(Host::save).collect();
    let mut again = Process::new(ME, 1, HostConfig::default());
    again.adopt_leaving(Host::reopen(&saved[0], HostConfig::default()).unwrap());
    again.resume(now);
    assert_eq!((again.hosts().count(), again.leaving().count()), (0, 1));
    assert_eq!(again.pending(), process.pending());
}
