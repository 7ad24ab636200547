//! The structures of this library.

use super::adapter::{Adapter, Built, Candidate, Contract};
use super::stream::{BLOCK, Block, Key};
use core::num::NonZeroU64;
use lately::{AnyFilter, Filter, Spec, Structure, Tick, Verdict, WhenFull, Window, WindowFilter};

/// How the last `n` arrivals are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// By count, with slack.
    Count,
    /// By count, exactly.
    Exact,
    /// By time, an arrival a tick, with slack.
    Time,
    /// Not at all.
    Forever,
}

fn spec(structure: Structure, mode: Mode, n: u64, fpr: f64) -> Spec {
    let n = NonZeroU64::new(n).unwrap_or(NonZeroU64::MIN);
    let spec = match mode {
        Mode::Count => Spec::new(Window::Count(n)).slack(n.get() / 8),
        Mode::Exact => Spec::new(Window::Count(n)),
        Mode::Time => Spec::new(Window::Time { span: n, capacity: n }).slack(n.get() / 8),
        Mode::Forever => Spec::new(Window::Unbounded { capacity: n }),
    };
    // Where it cannot grow by itself a share of the rate would be kept for tables that never come.
    let alone = matches!(structure, Structure::Bloom | Structure::BlockedBloom);
    let when_full = if alone { WhenFull::Refuse } else { WhenFull::Grow };
    spec.structure(structure).fpr(fpr).when_full(when_full)
}

/// Every structure, in every way that it can keep the window.
pub(super) fn candidates() -> Vec<Candidate> {
    let mut all = Vec::new();
    for &structure in Structure::ALL {
        if structure.is_unbounded() {
            all.push(candidate(structure, Mode::Forever));
            continue;
        }
        let uses_slack = |mode| {
            let plan = spec(structure, mode, 8_000, 1e-3).plan();
            plan.is_ok_and(|plan| plan.slack() > 0)
        };
        if uses_slack(Mode::Count) {
            all.push(candidate(structure, Mode::Count));
        }
        let is_default = structure == Structure::AgedTable;
        if uses_slack(Mode::Time) && (is_default || !uses_slack(Mode::Count)) {
            all.push(candidate(structure, Mode::Time));
        }
        all.push(candidate(structure, Mode::Exact));
    }
    all
}

fn candidate(structure: Structure, mode: Mode) -> Candidate {
    let name = structure.name();
    let (name, contract) = match mode {
        Mode::Count => (name.to_owned(), Contract::Window(0.125)),
        Mode::Exact => (format!("{name} exact"), Contract::Window(0.0)),
        Mode::Time => (format!("{name} by time"), Contract::Window(0.125)),
        Mode::Forever => (name.to_owned(), Contract::Forever),
    };
    let build = move |n: u64, fpr: f64| -> Built {
        let plan = spec(structure, mode, n, fpr).plan().map_err(|error| error.to_string())?;
        let filter = plan.try_build().map_err(|error| error.to_string())?;
        Ok(if mode == Mode::Time {
            Box::new(ByTime { filter, arrivals: 0 })
        } else {
            Box::new(ByCount(filter))
        })
    };
    let how = match mode {
        Mode::Time => "digests; by time, an arrival a tick",
        _ => "digests",
    };
    Candidate { name, contract, own: true, how, build: Box::new(build) }
}

const NO_TICKS: [Tick; BLOCK] = [Tick(0); BLOCK];

/// A filter that counts for itself, or never forgets.
struct ByCount(AnyFilter);

fn count(verdicts: &[Verdict]) -> usize {
    verdicts.iter().map(|verdict| usize::from(verdict.is_duplicate())).sum()
}

impl Adapter for ByCount {
    #[inline]
    fn observe(&mut self, key: Key) -> bool {
        self.0.observe(key.digest, Tick(0)).is_duplicate()
    }

    #[inline]
    fn contains(&self, key: Key) -> bool {
        self.0.contains(key.digest, Tick(0))
    }

    fn observe_batch(&mut self, block: &Block) -> Option<usize> {
        let mut verdicts = [Verdict::Fresh; BLOCK];
        let verdicts = &mut verdicts[..block.len()];
        self.0.observe_batch(&block.digests, &NO_TICKS, verdicts);
        Some(count(verdicts))
    }
}

/// A filter whose ticks are the numbers of the arrivals.
struct ByTime {
    filter: AnyFilter,
    arrivals: u64,
}

impl Adapter for ByTime {
    #[inline]
    fn observe(&mut self, key: Key) -> bool {
        self.arrivals += 1;
        self.filter.observe(key.digest, Tick(self.arrivals)).is_duplicate()
    }

    #[inline]
    fn contains(&self, key: Key) -> bool {
        self.filter.contains(key.digest, Tick(self.arrivals + 1))
    }

    fn observe_batch(&mut self, block: &Block) -> Option<usize> {
        let mut verdicts = [Verdict::Fresh; BLOCK];
        let verdicts = &mut verdicts[..block.len()];
        let mut now = NO_TICKS;
        for (tick, number) in now[..block.len()].iter_mut().zip(self.arrivals + 1..) {
            *tick = Tick(number);
        }
        self.arrivals += block.len() as u64;
        self.filter.observe_batch(&block.digests, &now, verdicts);
        Some(count(verdicts))
    }
}
