//! What every structure of the comparison is asked, and what it promises.

use crate::figures::paper4::structures::{self, RangeUnderTest, Setup, Structure};
use crate::oracle::LiveNumbers;
use core::num::NonZeroU64;
use lately::range::{RangeSpec, RangeWindow};
use lately::{Tick, Window};

/// The false positive rate asked for: the paper's.
pub const FPR: f64 = structures::FPR;

/// Slack of ours, as a part of the window.
pub const SLACK: u64 = 8;

/// A structure under one face. Whole blocks are given at a time, so that no call through the face is
/// timed with the keys.
pub trait RangeAdapter {
    /// Keys arrive one after another.
    fn insert_all(&mut self, keys: &[u64]);

    /// One answer for each interval of this length; `within` this many newest arrivals, where that
    /// can be asked.
    fn ask(&self, starts: &[u64], length: u64, within: Option<u64>, answers: &mut Vec<bool>);
}

/// What a structure remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contract {
    /// The last n arrivals, and at most n/8 more; also of any shorter window.
    Slack,
    /// The last n arrivals.
    Window,
    /// The last n arrivals, exactly, without a false positive.
    Exact,
    /// What it was built of; nothing can be added.
    Static,
}

impl Contract {
    /// As tables write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Slack => "window, slack n/8",
            Self::Window => "window",
            Self::Exact => "window, exact",
            Self::Static => "static",
        }
    }

    /// How many of the last arrivals may be reported.
    pub const fn remembered(self, n: u64) -> u64 {
        if matches!(self, Self::Slack) { n + n / SLACK } else { n }
    }

    /// The least bits per key of any structure with this contract: `log2(L/ε)` to tell intervals
    /// apart, and to tell ages apart as finely as the slack asks for.
    pub fn bound(self, n: u64, length: u64) -> f64 {
        let ages = match self {
            Self::Slack => SLACK as f64,
            Self::Window | Self::Exact => n as f64,
            Self::Static => 1.0,
        };
        (length as f64 / FPR).log2() + ages.log2()
    }
}

/// An adapter, or why there is none of that size.
pub type Built = Result<Box<dyn RangeAdapter>, String>;

/// A structure that can be built for any window and any length of intervals.
#[derive(Clone, Copy)]
pub struct Candidate {
    /// Its name in the tables.
    pub name: &'static str,
    /// What it promises.
    pub contract: Contract,
    /// Its query takes as many steps as the interval has numbers.
    pub by_number: bool,
    /// Builds it for n keys and intervals of this length; one that is static from these keys.
    pub build: fn(n: u64, length: u64, keys: &[u64]) -> Built,
}

/// The range window of this library.
pub const OURS: Candidate = Candidate {
    name: "range-window",
    contract: Contract::Slack,
    by_number: false,
    build: |n, length, _| {
        let n = NonZeroU64::new(n).ok_or("a window of no arrivals")?;
        let spec = RangeSpec::new(Window::Count(n)).interval(u128::from(length)).fpr(FPR);
        let plan = spec.slack(n.get() / SLACK).plan().map_err(|error| error.to_string())?;
        Ok(Box::new(Ours { window: plan.build(), arrivals: 0 }))
    },
};

/// The same over time, of which the window knows no more than how many keys to expect: an arrival a tick.
pub const BY_TIME: Candidate = Candidate {
    name: "range-window by time",
    contract: Contract::Slack,
    by_number: false,
    build: |n, length, _| {
        let n = NonZeroU64::new(n).ok_or("a window of no arrivals")?;
        let window = Window::Time { span: n, capacity: n };
        let spec = RangeSpec::new(window).interval(u128::from(length)).fpr(FPR);
        let plan = spec.slack(n.get() / SLACK).plan().map_err(|error| error.to_string())?;
        Ok(Box::new(Ours { window: plan.build(), arrivals: 0 }))
    },
};

/// The paper's structure A.
pub const DLEFT: Candidate = Candidate {
    name: "d-left (paper 4)",
    contract: Contract::Window,
    by_number: true,
    build: |n, length, _| of_paper(Structure::Dleft, n, length),
};

/// What the paper compares it with.
pub const TDBF: Candidate = Candidate {
    name: "T-DBF",
    contract: Contract::Window,
    by_number: true,
    build: |n, length, _| of_paper(Structure::KeyByKey, n, length),
};

/// A sorted map of counts and a queue of arrivals.
pub const EXACT: Candidate = Candidate {
    name: "BTreeMap + VecDeque",
    contract: Contract::Exact,
    by_number: false,
    build: |n, _, _| Ok(Box::new(Exact(LiveNumbers::new(n as usize)))),
};

/// A range filter that is built once: the crate `grafite`, by C. Tsui, MIT.
#[cfg(feature = "peers")]
pub const GRAFITE: Candidate = Candidate {
    name: "grafite 0.2",
    contract: Contract::Static,
    by_number: false,
    build: |n, length, keys| Grafite::build(n, length, keys),
};

/// All structures of the comparison.
pub fn candidates() -> Vec<Candidate> {
    vec![
        OURS,
        BY_TIME,
        DLEFT,
        TDBF,
        EXACT,
        #[cfg(feature = "peers")]
        GRAFITE,
    ]
}

struct Ours {
    window: RangeWindow,
    /// What time it is, where that is asked for.
    arrivals: u64,
}

impl RangeAdapter for Ours {
    fn insert_all(&mut self, keys: &[u64]) {
        for &key in keys {
            self.arrivals += 1;
            self.window.insert(u128::from(key), Tick(self.arrivals));
        }
    }

    fn ask(&self, starts: &[u64], length: u64, within: Option<u64>, answers: &mut Vec<bool>) {
        let interval = |start: u64| u128::from(start)..=u128::from(start) + u128::from(length - 1);
        // A question is asked as the next arrival would be.
        let now = Tick(self.arrivals + 1);
        let within = within.unwrap_or(u64::MAX);
        let any = |&start: &u64| self.window.any_within(interval(start), within, now).is_perhaps();
        answers.extend(starts.iter().map(any));
    }
}

struct OfPaper {
    structure: Box<dyn RangeUnderTest>,
    arrivals: u64,
}

fn of_paper(structure: Structure, window: u64, length: u64) -> Built {
    let built = structures::build(Setup { structure, window, length });
    let structure = built.map_err(|error| error.to_string())?;
    Ok(Box::new(OfPaper { structure, arrivals: 0 }))
}

impl RangeAdapter for OfPaper {
    fn insert_all(&mut self, keys: &[u64]) {
        for &key in keys {
            self.arrivals += 1;
            self.structure.insert(key, Tick(self.arrivals));
        }
    }

    fn ask(&self, starts: &[u64], length: u64, _: Option<u64>, answers: &mut Vec<bool>) {
        let now = Tick(self.arrivals + 1);
        answers.extend(
            starts.iter().map(|&start| self.structure.any_in(start, start + (length - 1), now)),
        );
    }
}

struct Exact(LiveNumbers);

impl RangeAdapter for Exact {
    fn insert_all(&mut self, keys: &[u64]) {
        keys.iter().for_each(|&key| self.0.insert(key));
    }

    fn ask(&self, starts: &[u64], length: u64, _: Option<u64>, answers: &mut Vec<bool>) {
        answers.extend(starts.iter().map(|&start| self.0.any_in(start..=start + (length - 1))));
    }
}

#[cfg(feature = "peers")]
struct Grafite(grafite::RangeFilter);

#[cfg(feature = "peers")]
impl Grafite {
    fn build(n: u64, length: u64, keys: &[u64]) -> Built {
        let hasher = grafite::PairwiseIndependentHasher::new(n as usize, FPR, length)
            .map_err(|error| format!("{error:?}"))?;
        let mut keys = keys.to_vec();
        keys.sort_unstable();
        keys.dedup();
        Ok(Box::new(Self(grafite::RangeFilter::new(keys.into_iter(), hasher))))
    }
}

#[cfg(feature = "peers")]
impl RangeAdapter for Grafite {
    fn insert_all(&mut self, _: &[u64]) {}

    fn ask(&self, starts: &[u64], length: u64, _: Option<u64>, answers: &mut Vec<bool>) {
        answers.extend(starts.iter().map(|&start| self.0.query(start..=start + (length - 1))));
    }
}
