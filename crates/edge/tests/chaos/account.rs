//! What became of every submission.

use crate::world::{Device, Fate, World};
use lately_edge::ids::WorkerId;
use lately_edge::message::Message;
use lately_edge::tally::life_of;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::AddAssign;

/// Counts of one run, or of several together.
#[derive(Default)]
pub(crate) struct Account {
    sent: u64,
    classes: BTreeMap<Fate, u64>,
    /// In a queue, as the host waits for its clock.
    waiting: u64,
    delivered: u64,
    /// Kept, and on the way to the requester.
    pending: u64,
    repeats: u64,
    /// Judged by two processes, as the square has moved; the better verdict counts.
    twice: u64,
    /// Readings that workers skipped; and those of them by a filter of an earlier period than the host's.
    skipped: (u64, u64),
    /// Resets that hosts published.
    resets: u64,
}

impl AddAssign for Account {
    fn add_assign(&mut self, other: Self) {
        self.sent += other.sent;
        for (fate, count) in other.classes {
            *self.classes.entry(fate).or_default() += count;
        }
        self.waiting += other.waiting;
        self.delivered += other.delivered;
        self.pending += other.pending;
        self.repeats += other.repeats;
        self.twice += other.twice;
        self.skipped.0 += other.skipped.0;
        self.skipped.1 += other.skipped.1;
        self.resets += other.resets;
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} sent = ", self.sent)?;
        for (fate, count) in &self.classes {
            write!(f, "{fate:?} {count} + ")?;
        }
        write!(
            f,
            "waiting {}; {} delivered, {} pending, {} repeats recognised, {} judged twice; {} skipped, {} of them after a reset that was not heard; {} resets",
            self.waiting,
            self.delivered,
            self.pending,
            self.repeats,
            self.twice,
            self.skipped.0,
            self.skipped.1,
            self.resets
        )
    }
}

impl World {
    /// Every submission is in one class, what was kept arrived or is on the way, and all counts agree.
    pub(crate) fn account(&self, seed: u64) -> Account {
        let mut account = Account {
            sent: self.sent.len() as u64,
            delivered: self.received.len() as u64,
            repeats: self.repeats,
            skipped: self.skipped,
            resets: self.resets,
            ..Account::default()
        };
        let pending = self.machines.iter().map(|machine| machine.process.pending() as u64).sum();
        let queued: BTreeSet<(WorkerId, u64)> = self
            .machines
            .iter()
            .flat_map(|machine| &machine.queue)
            .filter_map(|(_, message)| match message {
                Message::Submit { worker, sequence, .. } => Some((*worker, *sequence)),
                _ => None,
            })
            .collect();
        for (key, reading) in &self.sent {
            let Some(fates) = self.fates.get(key) else {
                assert!(queued.contains(key), "seed {seed}: {key:?} ({reading:?}) is nowhere");
                account.waiting += 1;
                continue;
            };
            // The best of them: one that moved to another process may have been judged by both.
            let fate = *fates.iter().min().unwrap();
            account.twice += u64::from(fates.len() > 1);
            *account.classes.entry(fate).or_default() += 1;
            if fate == Fate::Kept && !self.received.contains(&(reading.value as u64)) {
                account.pending += 1;
            }
        }
        let all = account.classes.values().sum::<u64>() + account.waiting;
        assert_eq!(all, account.sent, "seed {seed}");
        let missing = account.pending;
        assert!(
            missing <= pending,
            "seed {seed}: {missing} kept, not delivered; {pending} pending"
        );
        assert_eq!(all, self.sent.len() as u64, "seed {seed}");
        for machine in &self.machines {
            let counts = machine.process.counts();
            let classes =
                counts.kept + counts.redundant + counts.lost + counts.duplicates + counts.refused;
            assert_eq!(classes, counts.submissions, "seed {seed}");
        }
        self.check_workers(seed);
        account
    }

    /// Each worker that still runs was told all that any host knows of what it sent, and no more than they judged.
    fn check_workers(&self, seed: u64) {
        for Device { worker, .. } in &self.devices {
            let (id, life) = (worker.id(), life_of(worker.next_sequence()));
            let hosts = self.machines.iter().flat_map(|machine| machine.process.hosts());
            let known: u64 = hosts.map(|host| host.tally(id, life).all()).sum();
            let told = worker.tally().all();
            assert!(told >= known, "seed {seed}: worker {id} was told of {told} of {known}");
            // One that two processes have judged, as its square has moved, is told by both.
            let judged = |fate: &&Fate| !matches!(fate, Fate::LostWithBroker | Fate::Unheard);
            let verdicts = self
                .fates
                .iter()
                .filter(|((other, sequence), _)| (*other, life_of(*sequence)) == (id, life));
            let most: u64 =
                verdicts.map(|(_, fates)| fates.iter().filter(judged).count() as u64).sum();
            assert!(told <= most, "seed {seed}: worker {id} was told of {told} of {most}");
        }
    }
}
