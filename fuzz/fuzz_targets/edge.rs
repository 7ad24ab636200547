//! Decodes any bytes; and lets a host, a worker, a coordinator and a requester take arbitrary messages,
//! as they are decoded from the input; and a coordinator and two processes talk to each other. Counts must
//! add up, bounds must hold, and a state must come back.
#![no_main]

use arbitrary::{Arbitrary, Unstructured};
use lately_edge::cell::SmallCell;
use lately_edge::coordinator::{Coordinator, CoordinatorConfig};
use lately_edge::element::{Element, Property};
use lately_edge::filter::{FilterSize, Stamp};
use lately_edge::host::{Host, HostConfig, Limits};
use lately_edge::ids::{ProcessId, RequesterId, TaskId, WorkerId};
use lately_edge::message::{Message, Outgoing, Peer, Reading};
use lately_edge::process::Process;
use lately_edge::requester::Requester;
use lately_edge::rules::{Mode, Rules};
use lately_edge::task::{Area, Task};
use lately_edge::wire::{decode, encode};
use lately_edge::worker::Worker;
use libfuzzer_sys::fuzz_target;

/// One step of the story.
#[derive(Arbitrary, Debug)]
enum Step {
    Submit {
        worker: u8,
        sequence: u8,
        place: u8,
        late: i8,
        refresh: bool,
        version: u8,
    },
    Announce {
        worker: u8,
        place: u8,
        version: Option<u8>,
    },
    Leave(u8),
    Forward {
        task: u8,
        wanted: u8,
        until: u8,
    },
    Withdraw(u8),
    Received(u8),
    Tick(u16),
    /// The clock goes back by so many minutes.
    Back(u8),
    LookUp {
        worker: u8,
        square: u8,
    },
    Gone(u8),
    /// Messages to and from this process are lost until the next time.
    Cut(u8),
    /// Whatever the bytes say.
    Bytes(Vec<u8>),
    Restart,
}

#[derive(Arbitrary, Debug)]
struct Story {
    steps_of_age: u8,
    bits: u8,
    m_worker: u8,
    second_look: bool,
    deltas: bool,
    names: bool,
    refresh: u16,
    steps: Vec<Step>,
}

const BEGIN: u64 = 1_000_000_000;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(message) = decode(bytes) {
        let mut again = Vec::new();
        encode(&message, &mut again);
        assert_eq!(again, bytes, "a message has one form");
    }
    let _ = Host::restore(bytes, HostConfig::default(), BEGIN);
    let _ = Coordinator::restore(bytes, CoordinatorConfig::default(), BEGIN);
    if let Ok(story) = Story::arbitrary(&mut Unstructured::new(bytes)) {
        tell(story);
    }
});

fn place(at: u8) -> SmallCell {
    let names = ["33TWL7577", "33TWL7177", "33TWL8577"];
    let km = names[usize::from(at) % 3].replace("77", "73");
    let km: lately_edge::cell::KmCell = km.parse().expect("a cell");
    km.small(at % 100).expect("a place")
}

fn tell(story: Story) {
    let mode = match story.steps_of_age % 121 {
        0 => Mode::Reset,
        steps => Mode::Ageing { steps },
    };
    let rules = Rules {
        mode,
        validity: 60_000,
        size: FilterSize { bits: u32::from(story.bits) + 1, hashes: 3 },
        m_worker: story.m_worker.max(1),
        refresh: story.refresh,
    };
    let config = HostConfig {
        rules,
        deltas: story.deltas,
        names: story.names,
        second_look: story.second_look,
        limits: Limits { workers: 5, tasks: 3, elements: 20, pending: 30 },
        worker_timeout: 600_000,
        ..HostConfig::default()
    };
    let noise = Property::new("noise").expect("a name");
    let mut host = Host::new(place(0).square(), config, BEGIN);
    let mut worker = Worker::new(WorkerId(0), &[noise], 1);
    let mut requester = Requester::new(RequesterId(1));
    let mut coordinator = Coordinator::new(CoordinatorConfig { most: 8, ..Default::default() });
    let mut system = System::new(config);
    let (mut now, mut out) = (BEGIN, Vec::new());
    worker.go(now, place(0).km(), &mut out);
    worker.handle(now, Message::Located { square: place(0).square() }, &mut out);
    for step in story.steps {
        let message = match step {
            Step::Submit { worker, sequence, place: at, late, refresh, version } => {
                let element = Element { cell: place(at), property: noise };
                let time = now.saturating_add_signed(i64::from(late) * 10_000);
                Message::Submit {
                    worker: WorkerId(worker.into()),
                    sequence: sequence.into(),
                    sent: time,
                    stamp: stamp(&host, version),
                    refresh,
                    reading: Reading { element, value: f64::from(late), time },
                }
            }
            Step::Announce { worker, place: at, version } => Message::Announce {
                worker: WorkerId(worker.into()),
                cell: place(at).km(),
                properties: vec![noise],
                known: version.map(|version| stamp(&host, version)),
            },
            Step::Leave(worker) => Message::Leave { worker: WorkerId(worker.into()) },
            Step::Forward { task, wanted, until } => Message::Forward {
                requester: RequesterId(1),
                task: Task {
                    id: TaskId(task.into()),
                    property: noise,
                    area: Area::Everywhere,
                    from: 0,
                    until: now + u64::from(until) * 10_000,
                    wanted: wanted.into(),
                },
            },
            Step::Withdraw(task) => Message::Withdraw { task: TaskId(task.into()) },
            Step::Received(batch) => {
                let batch = BEGIN / 1000 << 32 | u64::from(batch);
                Message::Received { square: place(0).square(), batch }
            }
            Step::Tick(passed) => {
                now += u64::from(passed) * 10;
                host.tick(now, &mut out);
                worker.tick(now, &mut out);
                coordinator.tick(now, &mut out);
                requester.tick(now, &mut out);
                let _ = requester.take_readings(&mut out);
                system.tick(now);
                let element = Element { cell: place(3), property: noise };
                let _ = worker.sense(now, element, 1.0, &mut out);
                deliver(&mut out, now, &mut host, &mut worker);
                continue;
            }
            Step::Back(minutes) => {
                now -= (u64::from(minutes) * 60_000).min(now);
                continue;
            }
            Step::LookUp { worker, square } => {
                let square = place(square).square();
                system.say(now, Message::LookUp { worker: WorkerId(worker.into()), square });
                continue;
            }
            Step::Gone(host) => {
                system.say(now, Message::Gone { process: ProcessId(u64::from(host % 2)) });
                continue;
            }
            Step::Cut(host) => {
                let cut = &mut system.cut[usize::from(host % 2)];
                *cut = !*cut;
                continue;
            }
            Step::Bytes(bytes) => match decode(&bytes) {
                Ok(message) => message,
                Err(_) => continue,
            },
            Step::Restart => {
                let saved = host.save();
                let again = Host::restore(&saved, config, now).expect("its own state");
                assert_eq!(again.pending(), host.pending());
                assert_eq!(again.counts().submissions, host.counts().submissions);
                host = again;
                let saved = coordinator.save();
                let config = CoordinatorConfig { most: 8, ..Default::default() };
                coordinator = Coordinator::restore(&saved, config, now).expect("its own");
                system.restart(now);
                continue;
            }
        };
        worker.handle(now, message.clone(), &mut out);
        coordinator.handle(now, message.clone(), &mut out);
        requester.handle(now, message.clone(), &mut out);
        let _ = host.handle(now, message.clone(), &mut out);
        deliver(&mut out, now, &mut host, &mut worker);
        check(&host);
        system.say_to(now, Peer::Host(place(0).square()), message);
    }
}

fn stamp(host: &Host, version: u8) -> Stamp {
    let known = host.stamp(place(0).km()).unwrap_or_default();
    Stamp { version: version.into(), ..known }
}

/// What the roles say must go through the wire; what is for the worker is delivered, and its answers go to
/// the host.
fn deliver(out: &mut Vec<Outgoing>, now: u64, host: &mut Host, worker: &mut Worker) {
    let mut bytes = Vec::new();
    let mut answers = Vec::new();
    for Outgoing { message, .. } in out.drain(..) {
        bytes.clear();
        encode(&message, &mut bytes);
        let read = decode(&bytes).expect("our own message");
        assert_eq!(read, message);
        worker.handle(now, read, &mut answers);
    }
    for Outgoing { message, .. } in answers {
        let _ = host.handle(now, message, out);
    }
    out.clear();
}

fn check(host: &Host) {
    let counts = host.counts();
    let classes = counts.kept + counts.redundant + counts.lost + counts.duplicates + counts.refused;
    assert_eq!(classes, counts.submissions);
    assert!(counts.recovered <= counts.kept && counts.expected_lost >= 0.0);
    assert!(host.workers() <= 5 && host.tasks() <= 3);
    assert!(host.pending() <= 30);
    assert!(host.occupancy().all(|(cell, _)| cell.square() == host.square()));
}

/// A coordinator and two processes with room for two squares each.
struct System {
    coordinator: Coordinator,
    processes: [Process; 2],
    cut: [bool; 2],
}

impl System {
    fn new(config: HostConfig) -> Self {
        let process = |id| Process::new(ProcessId(id), 2, config);
        Self {
            coordinator: Coordinator::new(Self::config()),
            processes: [process(0), process(1)],
            cut: [false; 2],
        }
    }

    fn config() -> CoordinatorConfig {
        CoordinatorConfig { most: 4, ..CoordinatorConfig::default() }
    }

    fn say(&mut self, now: u64, message: Message) {
        self.say_to(now, Peer::Coordinator, message);
    }

    /// Delivers a message and all that it leads to.
    fn say_to(&mut self, now: u64, to: Peer, message: Message) {
        let mut waiting = std::collections::VecDeque::from([Outgoing { to, message }]);
        let mut out = Vec::new();
        while let Some(Outgoing { to, message }) = waiting.pop_front() {
            if to == Peer::Coordinator {
                self.coordinator.handle(now, message, &mut out);
            } else {
                for (process, cut) in self.processes.iter_mut().zip(self.cut) {
                    if !cut {
                        let mut answers = Vec::new();
                        let _ = process.handle(now, to, message.clone(), &mut answers);
                        out.append(&mut answers);
                    }
                }
            }
            waiting.extend(out.drain(..));
        }
        self.check();
    }

    fn tick(&mut self, now: u64) {
        let mut out = Vec::new();
        for (process, cut) in self.processes.iter_mut().zip(self.cut) {
            let mut said = Vec::new();
            process.tick(now, &mut said);
            out.extend(said.into_iter().filter(|_| !cut));
        }
        self.coordinator.tick(now, &mut out);
        for Outgoing { to, message } in out {
            self.say_to(now, to, message);
        }
    }

    /// The coordinator goes on from its state.
    fn restart(&mut self, now: u64) {
        let saved = self.coordinator.save();
        self.coordinator = Coordinator::restore(&saved, Self::config(), now).expect("its own");
        assert_eq!(self.coordinator.save(), saved);
    }

    fn check(&self) {
        assert!(self.coordinator.squares().count() <= 4);
        for process in &self.processes {
            assert!(process.hosts().count() <= 2);
            let leaving = |square| process.leaving().any(|host| host.square() == square);
            assert!(process.hosts().all(|host| !leaving(host.square())));
        }
    }
}
