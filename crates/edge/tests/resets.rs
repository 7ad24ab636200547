//! What a host tells a worker arrives late, several times, in any order or never, while both begin again: once a worker has
//! heard the newest reset of its square, it believes of no element that the host has enough of it when it has not.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use lately_edge::Millis;
use lately_edge::cell::KmCell;
use lately_edge::element::Element;
use lately_edge::filter::FilterSize;
use lately_edge::host::{Handled, Host, HostConfig, Receipt, ResetBy};
use lately_edge::ids::WorkerId;
use lately_edge::message::{Message, Peer};
use lately_edge::rules::Rules;
use lately_edge::tally::first_of;
use lately_edge::worker::{Outcome, Worker};
use proptest::prelude::*;
use std::collections::BTreeSet;
use support::{MINUTE, NOON, elsewhere, host, km, noise, property, submit};

fn config() -> HostConfig {
    // Filters so large that none takes an element for another.
    let size = FilterSize { bits: 1 << 14, hashes: 20 };
    let rules = Rules { size, ..Rules::PAPER };
    HostConfig { reset_by: ResetBy::Square, rules, ..HostConfig::default() }
}

/// What happens.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Another worker sends a reading of this element.
    Submit(u32),
    /// So many minutes pass.
    Pass(u64),
    /// The host is killed and resumes with its state.
    RestartHost,
    /// The square moves to a host that knows nothing.
    ReplaceHost,
    /// The rules change, and change back: the host forgets its filters.
    ForgetFilters,
    /// The worker goes to the first cell or the second, and says so.
    Go(bool),
    /// The worker begins again.
    RestartWorker,
    /// Of all that was ever told, this arrives, counted from the newest.
    Deliver(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_u32..6).prop_map(Step::Submit),
        2 => (1_u64..40).prop_map(Step::Pass),
        1 => Just(Step::RestartHost),
        1 => Just(Step::ReplaceHost),
        1 => Just(Step::ForgetFilters),
        2 => any::<bool>().prop_map(Step::Go),
        1 => Just(Step::RestartWorker),
        8 => (0_usize..6).prop_map(Step::Deliver),
        4 => Just(Step::Deliver(0)),
    ]
}

/// Elements 0 to 2 are in the first cell, the others in the second.
fn element(number: u32) -> Element {
    if number < 3 {
        noise(number)
    } else {
        Element { cell: elsewhere(number), property: property("noise") }
    }
}

struct World {
    now: Millis,
    host: Host,
    worker: Worker,
    /// All that the worker was ever told.
    told: Vec<Message>,
    /// The number of the newest reset among them that it has heard in this life.
    heard: Option<usize>,
    /// What the host has enough of.
    known: BTreeSet<u32>,
    epoch: Option<u32>,
    sequence: u64,
}

impl World {
    fn new() -> Self {
        let worker = Worker::new(WorkerId(1), &[property("noise")], first_of(1));
        let host = host(config(), 1, NOON);
        let known = BTreeSet::new();
        Self {
            now: NOON,
            host,
            worker,
            told: Vec::new(),
            heard: None,
            known,
            epoch: None,
            sequence: 0,
        }
    }

    fn take(&mut self, out: Vec<lately_edge::message::Outgoing>) {
        for outgoing in out {
            match outgoing.to {
                Peer::Square(_) | Peer::Worker(WorkerId(1)) => self.told.push(outgoing.message),
                _ => {}
            }
        }
    }

    /// Time passes, and perhaps a period ends.
    fn pass(&mut self, by: Millis) {
        self.now += by;
        let epoch = Some(config().rules.epoch(self.now));
        if std::mem::replace(&mut self.epoch, epoch) != epoch {
            self.known.clear();
        }
    }

    fn step(&mut self, step: Step) {
        let mut out = Vec::new();
        self.pass(1_000);
        match step {
            Step::Submit(number) => {
                self.sequence += 1;
                let message = submit(2, self.sequence, element(number), self.now);
                let handled = self.host.handle(self.now, message, &mut out);
                let is_new = self.known.insert(number);
                let receipt = if is_new { Receipt::Kept } else { Receipt::Redundant };
                assert_eq!(handled, Handled::Reading(receipt));
            }
            Step::Pass(minutes) => self.pass(minutes * MINUTE),
            Step::RestartHost => {
                self.host = Host::restore(&self.host.save(), config(), self.now).unwrap();
            }
            Step::ReplaceHost => {
                self.host = host(config(), 1, self.now);
                self.known.clear();
            }
            Step::ForgetFilters => {
                let rules = self.host.config().rules;
                let mut others = rules;
                others.m_worker += 1;
                self.host.set_rules(others, &mut out);
                self.host.set_rules(rules, &mut out);
                self.known.clear();
            }
            Step::Go(second) => {
                let cell: KmCell = if second { elsewhere(0).km() } else { km() };
                let mut said = Vec::new();
                self.worker.go(self.now, cell, &mut said);
                self.worker.handle(self.now, Message::Located { square: km().square() }, &mut said);
                for outgoing in said {
                    if matches!(outgoing.to, Peer::Host(_)) {
                        let _ = self.host.handle(self.now, outgoing.message, &mut out);
                    }
                }
            }
            Step::RestartWorker => {
                let life = first_of(self.now as u32);
                self.worker = Worker::new(WorkerId(1), &[property("noise")], life);
                self.heard = None;
            }
            Step::Deliver(back) => {
                if let Some(number) = self.told.len().checked_sub(back + 1) {
                    let message = self.told[number].clone();
                    let is_reset = matches!(message, Message::ResetAll { .. });
                    self.worker.handle(self.now, message, &mut Vec::new());
                    if is_reset {
                        self.heard = self.heard.max(Some(number));
                    }
                }
            }
        }
        self.take(out);
        let mut out = Vec::new();
        self.host.tick(self.now, &mut out);
        self.take(out);
    }

    /// Does it believe nothing that is not so? `None` where it has not heard the newest reset.
    fn check(&self) -> Option<usize> {
        let is_reset = |message: &Message| matches!(message, Message::ResetAll { .. });
        if self.heard? < self.told.iter().rposition(is_reset)? {
            return None;
        }
        let skips =
            |&number: &u32| self.worker.wants(self.now, &element(number)) == Outcome::Skipped;
        let believed: Vec<u32> = (0..6).filter(skips).collect();
        let wrong = believed.iter().find(|number| !self.known.contains(number));
        assert_eq!(wrong, None, "of {:?}, after {:?}", self.known, self.told);
        Some(believed.len())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_worker_believes_what_is_not_so(steps in prop::collection::vec(step(), 1..80)) {
        let mut world = World::new();
        for step in steps {
            world.step(step);
            world.check();
        }
    }
}

/// The law above is not kept by believing nothing.
#[test]
fn a_worker_believes_what_is_so() {
    let mut world = World::new();
    for step in
        [Step::Go(false), Step::Submit(1), Step::Submit(2), Step::Deliver(0), Step::Deliver(1)]
    {
        world.step(step);
    }
    assert_eq!(world.check(), Some(0));
    // Back in its cell, it is told what it has missed.
    world.step(Step::Go(true));
    world.step(Step::Go(false));
    world.step(Step::Deliver(0));
    assert_eq!(world.check(), Some(2));
    world.step(Step::RestartHost);
    world.step(Step::Deliver(0));
    assert_eq!((world.check(), world.worker.counts().emptied), (Some(2), 0));
    world.step(Step::Pass(30));
    world.step(Step::Deliver(0));
    assert_eq!(world.check(), Some(0));
}
