//! Are the answers right? At every offset of a run, as some filters err at some offsets only.

use super::adapter::{Adapter, Candidate, Contract};
use super::stream::{Key, Stream, arrivals_of_mixture, stranger};
use crate::workload::mix;
use lately::Digester;

/// What came of a check.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// Offsets at which keys of the window were asked for: every one.
    pub offsets: u64,
    /// Questions for them, and repeats among the arrivals.
    pub questions: u64,
    /// Those that were not found, or called fresh.
    pub missed: u64,
    /// Share of strangers that were taken for known.
    pub fpr: f64,
    /// Share of yes at ages past n, to 1.125 n.
    pub in_slack: f64,
    /// Share of yes at ages past 1.125 n, to 1.25 n.
    pub past_slack: f64,
    /// What is wrong; empty when nothing is.
    pub fault: String,
}

#[derive(Clone, Copy, Default)]
struct Share {
    yes: u64,
    of: u64,
}

impl Share {
    fn note(&mut self, yes: bool) {
        self.yes += u64::from(yes);
        self.of += 1;
    }

    fn share(self) -> f64 {
        self.yes as f64 / self.of.max(1) as f64
    }

    /// More than chance explains with this probability of each? Five standard deviations.
    fn exceeds(self, rate: f64) -> bool {
        let mean = rate * self.of as f64;
        self.yes as f64 > mean + 5.0 * mean.sqrt() + 3.0
    }
}

/// Offsets of a run at which all ages are asked for, over the keys of a window.
const FULL_LOOKS: f64 = 0.1;

/// Strangers that are asked for in all.
const STRANGERS: u64 = 1 << 18;

/// Runs a structure over fresh keys and over a mixture, four windows of each.
///
/// # Errors
/// Why it cannot be built.
pub fn check(candidate: &Candidate, n: u64, fpr: f64) -> Result<Checked, String> {
    let mut run = Run::new(n);
    for fresh in [true, false] {
        let mut adapter = (candidate.build)(n, fpr)?;
        let stream = if fresh { Stream::fresh(n) } else { Stream::mixed(n) };
        let arrivals = match (candidate.contract, fresh) {
            (Contract::Window(_), _) => 4 * n,
            (Contract::Forever, true) => n,
            (Contract::Forever, false) => arrivals_of_mixture(n),
        };
        run.stream(adapter.as_mut(), &stream, arrivals, candidate.contract, fresh);
    }
    Ok(run.verdict(candidate.contract, fpr))
}

struct Run {
    n: u64,
    digester: Digester,
    offsets: u64,
    /// Of the window: yes is what is wanted.
    known: Share,
    strangers: Share,
    in_slack: Share,
    past_slack: Share,
}

impl Run {
    fn new(n: u64) -> Self {
        let none = Share::default();
        Self {
            n,
            digester: Digester::new(0),
            offsets: 0,
            known: none,
            strangers: none,
            in_slack: none,
            past_slack: none,
        }
    }

    fn stream(
        &mut self,
        adapter: &mut dyn Adapter,
        stream: &Stream,
        arrivals: u64,
        contract: Contract,
        fresh: bool,
    ) {
        let n = self.n;
        let ages = contract != Contract::Forever;
        let looks = (FULL_LOOKS * n as f64) as u64;
        let every = (arrivals / looks.max(1)).max(1);
        for arrival in 0..arrivals {
            let index = stream.index(arrival);
            let seen = adapter.observe(self.key(index));
            if index != arrival {
                self.known.note(seen);
            }
            self.offsets += 1;
            // What the next arrival would be told.
            let next = arrival + 1;
            let oldest = n.min(next);
            let random = |draw| 1 + mix(arrival * 8 + draw) % oldest;
            let some = [1, 2.min(oldest), oldest.max(2) - 1, oldest];
            for age in some.into_iter().chain((0..6).map(random)) {
                let yes = adapter.contains(self.key(stream.index(next - age)));
                self.known.note(yes);
            }
            // Not in step with anything that is done once a part of the window.
            let last = next == arrivals;
            if !mix(arrival ^ n).is_multiple_of(every) && !last {
                continue;
            }
            for age in 1..=oldest {
                let yes = adapter.contains(self.key(stream.index(next - age)));
                self.known.note(yes);
            }
            if ages && fresh && next >= n + n / 2 {
                for age in n + 1..=n + n / 4 {
                    let yes = adapter.contains(self.key(stream.index(next - age)));
                    let share =
                        if age <= n + n / 8 { &mut self.in_slack } else { &mut self.past_slack };
                    share.note(yes);
                }
            }
            let steady = if ages { next >= n + n / 2 } else { last };
            if steady && fresh {
                let count = if ages { STRANGERS / (looks / 2).max(1) } else { STRANGERS };
                for _ in 0..count {
                    let key = self.key(stranger(self.strangers.of));
                    self.strangers.note(adapter.contains(key));
                }
            }
        }
    }

    fn key(&self, index: u64) -> Key {
        Key::new(index, &self.digester)
    }

    fn verdict(self, contract: Contract, fpr: f64) -> Checked {
        let mut faults = Vec::new();
        let missed = self.known.of - self.known.yes;
        if missed > 0 {
            let share = 100.0 * missed as f64 / self.known.of as f64;
            faults.push(format!("false negatives {share:.2} %"));
        }
        // A small table may by chance be fuller than the mean that it was planned for.
        let chance = 1.0 + 8.0 / (self.n as f64).sqrt();
        if self.strangers.exceeds(fpr * chance) {
            faults.push(format!("fpr {:.1} × what was asked", self.strangers.share() / fpr));
        }
        let late = match contract {
            // The same keys are asked for more than once.
            Contract::Window(0.0) => self.in_slack.exceeds(3.0 * fpr),
            Contract::Window(slack) if slack <= 0.125 => self.past_slack.exceeds(3.0 * fpr),
            _ => false,
        };
        if late {
            faults.push("remembers past its slack".to_owned());
        }
        Checked {
            offsets: self.offsets,
            questions: self.known.of,
            missed,
            fpr: self.strangers.share(),
            in_slack: self.in_slack.share(),
            past_slack: self.past_slack.share(),
            fault: faults.join("; "),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::adapter::candidates;

    /// One of many that forgets a share of its keys at some offsets only.
    struct Wrong(Vec<u64>);

    impl Adapter for Wrong {
        fn observe(&mut self, key: Key) -> bool {
            let seen = self.contains(key);
            self.0.push(key.id);
            seen
        }

        fn contains(&self, key: Key) -> bool {
            let from = self.0.len().saturating_sub(100);
            self.0[from..].contains(&key.id) && !(self.0.len() == 250 && key.id.is_multiple_of(4))
        }
    }

    #[test]
    fn a_wrong_one_is_found_out() {
        let wrong =
            Candidate::peer("wrong", Contract::Window(0.0), "", |_, _| Ok(Wrong(Vec::new())));
        let checked = check(&wrong, 100, 0.01).unwrap();
        assert!(checked.missed > 0 && checked.fault.contains("false negatives"), "{checked:?}");
        let lasting = Candidate::peer("lasting", Contract::Window(0.0), "", |n, _| {
            let n = usize::try_from(n).map_err(|error| error.to_string())?;
            Ok(Lasting(Vec::new(), n + n / 5))
        });
        let checked = check(&lasting, 100, 0.01).unwrap();
        assert_eq!(checked.fault, "remembers past its slack", "{checked:?}");
        assert!(checked.in_slack > 0.99 && checked.past_slack > 0.3);
    }

    struct Lasting(Vec<u64>, usize);

    impl Adapter for Lasting {
        fn observe(&mut self, key: Key) -> bool {
            let seen = self.contains(key);
            self.0.push(key.id);
            seen
        }

        fn contains(&self, key: Key) -> bool {
            self.0[self.0.len().saturating_sub(self.1)..].contains(&key.id)
        }
    }

    #[test]
    fn all_of_the_library_keep_their_contract() {
        for candidate in candidates().iter().filter(|candidate| candidate.own) {
            let checked = check(candidate, 500, 0.01).unwrap();
            assert_eq!(checked.fault, "", "{}: {checked:?}", candidate.name);
            assert!(checked.offsets >= 1_000 && checked.questions > 10 * checked.offsets);
        }
    }
}
