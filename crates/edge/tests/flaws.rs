//! Where the paper's printed algorithms differ from its prose: both run on the same readings.

// The tests fail as they should.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use lately_edge::decide::{Decider, Decision};
use lately_edge::element::Element;
use lately_edge::filter::{Contents, Share, Stamp};
use lately_edge::host::{Handled, HostConfig, Receipt};
use lately_edge::ids::WorkerId;
use lately_edge::rules::Mode;
use std::collections::{HashMap, HashSet};
use support::{MINUTE, NOON, host, noise, rules, submit};

/// Algorithm 2 as printed; a set stands for the filter.
#[derive(Default)]
struct PrintedWorker {
    filter: HashSet<Element>,
    counter: HashMap<Element, u8>,
}

impl PrintedWorker {
    /// Is the reading sent?
    fn submit_result(&mut self, element: Element, k_s: u8) -> bool {
        if self.filter.contains(&element) {
            return false;
        }
        let counter = self.counter.entry(element).or_default();
        if *counter < k_s {
            *counter += 1;
        } else {
            self.filter.insert(element);
        }
        true
    }
}

/// Algorithm 3 as printed.
#[derive(Default)]
struct PrintedHost {
    filter: HashSet<Element>,
    counter: HashMap<Element, u16>,
    results: usize,
}

#[derive(Debug, PartialEq, Eq)]
enum Printed {
    Redundant,
    Kept,
    /// Neither kept nor answered: gone.
    Vanished,
}

impl PrintedHost {
    fn receive_result(&mut self, element: Element, k: u16) -> Printed {
        if self.filter.contains(&element) {
            return Printed::Redundant;
        }
        let counter = self.counter.entry(element).or_default();
        if *counter < k {
            *counter += 1;
            self.results += 1;
            return Printed::Kept;
        }
        self.filter.insert(element);
        Printed::Vanished
    }
}

fn decider(m_worker: u8) -> Decider {
    let rules = rules(Mode::Reset, 30 * MINUTE, m_worker);
    let stamp = Stamp { epoch: rules.epoch(NOON), incarnation: 1, version: 0 };
    let share = Share { stamp, since: None, contents: Contents::Positions(Vec::new()) };
    Decider::new(WorkerId(1), rules, &share, NOON).unwrap()
}

/// "A worker can be instructed to produce multiple results": `m_worker` of them, not one more.
#[test]
fn the_printed_worker_sends_one_reading_too_many() {
    for m_worker in [1, 2, 3, 5] {
        let mut printed = PrintedWorker::default();
        let by_print = (0..20).filter(|_| printed.submit_result(noise(1), m_worker)).count();
        let mut ours = decider(m_worker);
        let by_us = (0..20)
            .filter(|_| {
                let decision = ours.decide(&noise(1), NOON);
                if decision == Decision::Send {
                    ours.sent(&noise(1), decision, NOON);
                }
                decision == Decision::Send
            })
            .count();
        assert_eq!((by_print, by_us), (usize::from(m_worker) + 1, usize::from(m_worker)));
    }
}

/// "When the host collects sufficient number of results it adds this result": the one that completes the
/// number is kept.
#[test]
fn the_printed_host_loses_the_reading_that_triggers_the_add() {
    for m_mec in [1, 2, 5] {
        let mut printed = PrintedHost::default();
        let mut ours = host(HostConfig::default(), m_mec, NOON);
        let mut out = Vec::new();
        for arrival in 0..u64::from(m_mec) + 3 {
            let by_print = printed.receive_result(noise(1), m_mec);
            let by_us = ours.handle(NOON, submit(1, arrival + 1, noise(1), NOON), &mut out);
            let [expected_print, expected_ours] = match arrival.cmp(&u64::from(m_mec)) {
                std::cmp::Ordering::Less => [Printed::Kept, Printed::Kept],
                std::cmp::Ordering::Equal => [Printed::Vanished, Printed::Redundant],
                std::cmp::Ordering::Greater => [Printed::Redundant, Printed::Redundant],
            };
            assert_eq!(by_print, expected_print, "{arrival} of {m_mec}");
            let receipt =
                if expected_ours == Printed::Kept { Receipt::Kept } else { Receipt::Redundant };
            assert_eq!(by_us, Handled::Reading(receipt), "{arrival} of {m_mec}");
        }
        // Of `m_mec + 3` readings, the printed host answers one fewer.
        let counts = *ours.counts();
        assert_eq!((printed.results as u64, counts.kept), (m_mec.into(), m_mec.into()));
        assert_eq!(counts.redundant, 3);
    }
}
