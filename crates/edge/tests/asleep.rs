//! A process wakes its hosts only when there is something to do: that changes nothing of what they say.

#![allow(clippy::unwrap_used)]

mod support;

use lately_edge::Millis;
use lately_edge::cell::Square;
use lately_edge::host::{Host, HostConfig, ResetBy};
use lately_edge::ids::{ProcessId, TaskId, WorkerId};
use lately_edge::message::{Message, Outgoing, Peer};
use lately_edge::process::Process;
use lately_edge::rules::Mode;
use lately_edge::task::Task;
use oorandom::Rand64;
use support::{MINUTE, NOON, REQUESTER, elsewhere, noise, property, rules, small, submit, task};

/// Hosts of two squares in a process, and the same ones that are told the time every second.
struct Pair {
    process: Process,
    hosts: [Host; 2],
    said: u64,
}

impl Pair {
    fn new(config: HostConfig) -> Self {
        let mut process = Process::new(ProcessId(1), 8, config);
        let squares: [Square; 2] = ["33TWL77", "33TWL78"].map(|name| name.parse().unwrap());
        for square in squares {
            let tasks = vec![(REQUESTER, task(2))];
            let place = Message::Place { square, rules: config.rules, tasks, book: 1 };
            let _ = process.handle(NOON, Peer::Process(ProcessId(1)), place, &mut Vec::new());
        }
        let hosts = squares.map(|square| process.host(square).unwrap().clone());
        Self { process, hosts, said: 0 }
    }

    fn handle(&mut self, now: Millis, message: &Message) {
        let (mut ours, mut all) = (Vec::new(), Vec::new());
        let to = Peer::Host(self.hosts[0].square());
        let handled = self.process.handle(now, to, message.clone(), &mut ours);
        assert_eq!(handled, self.hosts[0].handle(now, message.clone(), &mut all));
        self.compare(now, &ours, &all);
    }

    fn tick(&mut self, now: Millis) {
        let (mut ours, mut all) = (Vec::new(), Vec::new());
        self.process.tick(now, &mut ours);
        ours.retain(|outgoing| !matches!(outgoing.message, Message::Hello { .. }));
        self.hosts.iter_mut().for_each(|host| host.tick(now, &mut all));
        self.compare(now, &ours, &all);
    }

    fn compare(&mut self, now: Millis, ours: &[Outgoing], all: &[Outgoing]) {
        assert_eq!(ours, all, "{} s", (now - NOON) / 1_000);
        self.said += ours.len() as u64;
    }
}

/// Three hours in which a few workers come, measure, rest, leave and are lost, with long pauses between.
fn hours(config: HostConfig, seed: u64) -> (u64, u64) {
    let (mut pair, mut random) = (Pair::new(config), Rand64::new(u128::from(seed)));
    let mut below = |most: u64| random.rand_range(0..most);
    let mut numbers = [0_u64; 4];
    for second in 1..3 * 3_600 {
        let now = NOON + second * 1_000;
        let busy = second / 600 % 3 == 0;
        if busy && below(10) == 0 {
            let worker = below(4);
            let element = noise(below(20) as u32);
            let message = match below(8) {
                0 => {
                    let cell = [small(0), elsewhere(0)][below(2) as usize].km();
                    let properties = vec![property("noise")];
                    Message::Announce { worker: WorkerId(worker), cell, properties, known: None }
                }
                1 => Message::Leave { worker: WorkerId(worker) },
                2 => {
                    let until = now + below(40 * MINUTE);
                    let task = Task { id: TaskId(100 + below(5)), until, ..task(1) };
                    Message::Forward { requester: REQUESTER, task }
                }
                _ => {
                    numbers[worker as usize] += 1;
                    submit(worker, numbers[worker as usize], element, now)
                }
            };
            pair.handle(now, &message);
        }
        pair.tick(now);
    }
    (pair.said, pair.process.woken())
}

#[test]
fn who_sleeps_misses_nothing() {
    let all = [ResetBy::Worker, ResetBy::Cell, ResetBy::Square];
    for (seed, reset_by) in (0..6).zip(all.into_iter().cycle()) {
        for mode in [Mode::Reset, Mode::Ageing { steps: 20 }] {
            for (tell_every, timeout) in [(0, 20), (10_000, 60)] {
                let config = HostConfig {
                    rules: rules(mode, 7 * MINUTE, 1),
                    reset_by,
                    tell_every,
                    max_delay: tell_every * 100,
                    worker_timeout: timeout * MINUTE,
                    ..HostConfig::default()
                };
                let (said, woken) = hours(config, seed);
                assert!(said > 500, "{said}");
                // Two hosts that are told the time each second.
                assert!(woken < 2 * 3 * 3_600 / 4, "{woken}");
            }
        }
    }
}
