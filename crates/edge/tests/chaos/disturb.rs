//! What happens to a broker, to processes and devices, and to their clocks.

use crate::support::{MINUTE, NOON, property};
use crate::world::{Fate, Machine, PROCESSES, WORKERS, World, coordinator_config};
use lately_edge::cell::Square;
use lately_edge::coordinator::Coordinator;
use lately_edge::host::Host;
use lately_edge::message::{Message, Outgoing, Peer};
use lately_edge::process::Process;
use lately_edge::tally::first_of;
use lately_edge::worker::Worker;
use std::collections::VecDeque;

impl World {
    /// One of the things that happen, each about once in some minutes.
    pub(crate) fn disturb(&mut self) {
        if self.chance(600) {
            // Both with and without its state.
            self.coordinator_off = self.second + self.below(300);
            let remembers = self.chance(2);
            self.begin_coordinator(remembers);
        }
        if self.chance(600) {
            self.requester_off = self.second + self.below(600);
            self.requester_queue.clear();
            let second = self.second;
            self.second = self.requester_off;
            self.begin_requester();
            self.second = second;
        }
        let number = self.below(WORKERS as u64) as usize;
        if self.chance(60) {
            // The clock is set, by up to 15 minutes; in two of three cases, right.
            let skew = if self.chance(3) {
                self.below(30 * MINUTE) as i64 - 15 * MINUTE as i64
            } else {
                0
            };
            self.devices[number].skew = skew;
        }
        if self.chance(120) {
            self.restart_worker(number);
        }
        if self.chance(60) {
            self.disconnect_worker(number);
        }
        if self.chance(900) {
            let machine = self.below(PROCESSES as u64) as usize;
            let skew = if self.chance(2) {
                self.below(200 * MINUTE) as i64 - 100 * MINUTE as i64
            } else {
                0
            };
            self.machines[machine].skew = skew;
        }
        if self.chance(900) {
            self.restart_broker();
        }
    }

    /// A process ends without a word: what is not on disk did not happen, and comes again.
    pub(crate) fn crash(&mut self, number: usize, until: u64) {
        let machine = &mut self.machines[number];
        machine.off = until;
        // Half of the time, what was handled last is on disk, though nobody was told.
        let keeps = self.random.rand_range(0..2) == 0;
        if keeps {
            let verdicts = std::mem::take(&mut machine.verdicts);
            for ((worker, sequence), fate) in verdicts {
                self.fates.entry((worker, sequence)).or_default().push(fate);
            }
            self.added.extend(machine.added.drain(..));
        } else {
            machine.journal.truncate(machine.safe);
            machine.verdicts.clear();
            machine.added.clear();
        }
        for letter in std::mem::take(&mut machine.unconfirmed).into_iter().rev() {
            machine.queue.push_front(letter);
        }
        let id = machine.process.id();
        self.send(vec![Outgoing { to: Peer::Coordinator, message: Message::Gone { process: id } }]);
        self.restart(number);
    }

    /// What is on disk.
    fn restart(&mut self, number: usize) {
        let config = self.config;
        let machine = &mut self.machines[number];
        let mut process = Process::new(machine.process.id(), 64, config);
        for (stays, bytes) in &machine.saved {
            let host = Host::reopen(bytes, config).unwrap();
            if *stays { process.adopt(host) } else { process.adopt_leaving(host) }
        }
        for (now, (to, message), why) in machine.journal.clone() {
            match why {
                None => process.replay(now, to, message),
                Some(why) => process.replay_refusal(now, to, &message, why),
            }
        }
        machine.now = (NOON + machine.off * 1_000).saturating_add_signed(machine.skew);
        process.resume(machine.now);
        machine.process = process;
        save(machine);
    }

    /// A coordinator begins to act: with its state, or without.
    fn begin_coordinator(&mut self, remembers: bool) {
        let config = coordinator_config();
        let now = self.time(0);
        self.coordinator = if remembers {
            Coordinator::restore(&self.coordinator_saved, config, now).unwrap()
        } else {
            let mut coordinator = Coordinator::new(config);
            coordinator.begin_book(self.random.rand_u64());
            coordinator
        };
        self.epoch += 1;
        let message = Message::Lease { holder: self.epoch, epoch: self.epoch, held: true };
        if self.requester_off <= self.second {
            self.requester_queue.push_back(message);
        }
        for machine in &mut self.machines {
            machine.process.coordinator_acts();
        }
        for number in 0..self.devices.len() {
            let mut out = Vec::new();
            let now = self.time(self.devices[number].skew);
            self.devices[number].worker.coordinator_acts(now, &mut out);
            self.send(out);
        }
    }

    /// A device is switched off and on: another life of the same id.
    fn restart_worker(&mut self, number: usize) {
        let life = self.random.rand_u64() as u32;
        let device = &mut self.devices[number];
        let worker = &device.worker;
        device.worker = Worker::new(worker.id(), &[property("noise")], first_of(life));
        device.queue.clear();
        device.listening = None;
        device.own.clear();
    }

    /// A connection is lost for up to a minute: what comes meanwhile is lost, and the broker tells hosts.
    fn disconnect_worker(&mut self, number: usize) {
        let until = self.second + self.below(60);
        let now = self.time(self.devices[number].skew);
        let device = &mut self.devices[number];
        (device.off, device.queue) = (until, VecDeque::new());
        device.listening = None;
        let id = device.worker.id();
        for machine in &mut self.machines {
            let squares: Vec<Square> =
                machine.process.hosts().filter(|host| host.knows(id)).map(Host::square).collect();
            for square in squares {
                machine.queue.push_back((Peer::Host(square), Message::Leave { worker: id }));
            }
        }
        let mut out = Vec::new();
        self.devices[number].worker.reconnected(now, &mut out);
        self.send(out);
    }

    /// It keeps nothing on disk: queues are lost, and connections are made again.
    fn restart_broker(&mut self) {
        let mut lost = Vec::new();
        for machine in &mut self.machines {
            for (_, message) in std::mem::take(&mut machine.queue) {
                if let Message::Submit { worker, sequence, .. } = message {
                    lost.push((worker, sequence));
                }
            }
            // Whoever is there subscribes and greets again.
            machine.process.coordinator_acts();
            machine.process.reconnected();
        }
        self.retained.clear();
        lost.into_iter()
            .for_each(|(worker, sequence)| self.fate(worker, sequence, Fate::LostWithBroker));
        self.coordinator_queue.clear();
        self.requester_queue.clear();
        self.coordinator.say_again(self.time(0));
        for number in 0..self.devices.len() {
            let now = self.time(self.devices[number].skew);
            let mut out = Vec::new();
            self.devices[number].queue.clear();
            self.devices[number].listening = None;
            self.devices[number].worker.reconnected(now, &mut out);
            self.send(out);
        }
        self.begin_requester();
    }
}

/// Writes all hosts as a whole, and begins a new journal.
pub(crate) fn save(machine: &mut Machine) {
    let staying = machine.process.hosts().map(|host| (true, host.save()));
    let saved: Vec<_> =
        staying.chain(machine.process.leaving().map(|host| (false, host.save()))).collect();
    (machine.saved, machine.journal, machine.safe) = (saved, Vec::new(), 0);
}
