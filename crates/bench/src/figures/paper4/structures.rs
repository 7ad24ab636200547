//! The structures compared, behind one face.

use lately::window::{Shape, TimeBloom};
use lately::{Digester, Filter, PlanError, Renewal, Tick, WindowFilter};
use std::error::Error;

/// The false positive rate asked for.
pub const FPR: f64 = 0.01;

/// Which structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structure {
    /// The paper's A: four hash tables of fingerprints and stamps.
    Dleft,
    /// A time-decaying Bloom filter, asked for every number of an interval.
    KeyByKey,
}

impl Structure {
    /// Both, in the order of the legends.
    pub const ALL: [Self; 2] = [Self::Dleft, Self::KeyByKey];

    /// The paper's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dleft => "A",
            Self::KeyByKey => "T-DBF",
        }
    }
}

/// A structure of a size.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Which.
    pub structure: Structure,
    /// Arrivals in the window, n.
    pub window: u64,
    /// Numbers in an interval, L.
    pub length: u64,
}

impl Setup {
    /// Hashes of a T-DBF that errs for one number as rarely as an interval of L needs: `log2(L/ε)`.
    pub fn hashes(&self) -> u32 {
        (self.length as f64 / FPR).log2().ceil() as u32
    }

    /// Counters of that T-DBF: `n·k / ln 2`.
    pub fn counters(&self) -> u64 {
        (self.window as f64 * f64::from(self.hashes()) / std::f64::consts::LN_2).ceil() as u64
    }

    /// The paper's lower bound, less its O(n): `n·(log 1/ε + log L + log n)` bits.
    pub fn lower_bound(&self) -> f64 {
        let (n, length) = (self.window as f64, self.length as f64);
        n * ((1.0 / FPR).log2() + length.log2() + n.log2())
    }

    /// What the paper says A takes: `4/3·n·(log 1/ε + log L + log n + log 24 + 1)` bits.
    pub fn paper_bits(&self) -> f64 {
        let n = self.window as f64;
        4.0 / 3.0 * (self.lower_bound() + n * (24_f64.log2() + 1.0))
    }
}

/// What both structures are asked. A tick is the number of an arrival, from 1.
pub trait RangeUnderTest {
    /// The number arrives.
    fn insert(&mut self, number: u64, now: Tick);

    /// Did any number from `first` to `last` arrive at most n ticks before `now`?
    fn any_in(&self, first: u64, last: u64, now: Tick) -> bool;

    /// Bits allocated.
    fn bits(&self) -> u64;

    /// The answers for intervals of one length, all asked at one moment: a block to be timed, so
    /// that the call of a trait object is paid once a block.
    fn answer(&self, starts: &[u32], length: u64, now: Tick, answers: &mut Vec<bool>) {
        let answer = |&start: &u32| {
            let start = u64::from(start);
            self.any_in(start, start + length - 1, now)
        };
        answers.extend(starts.iter().map(answer));
    }

    /// Numbers arrive one after another, from that moment on.
    fn insert_all(&mut self, numbers: &[u32], first: Tick) {
        for (&number, tick) in numbers.iter().zip(first.0..) {
            self.insert(u64::from(number), Tick(tick));
        }
    }
}

/// Builds a structure.
pub type Build = fn(Setup) -> Result<Box<dyn RangeUnderTest>, Box<dyn Error>>;

/// Builds the library's structure.
///
/// # Errors
/// For one that cannot be built.
pub fn build(setup: Setup) -> Result<Box<dyn RangeUnderTest>, Box<dyn Error>> {
    match setup.structure {
        Structure::Dleft => Err("the d-left window is not merged yet".into()),
        Structure::KeyByKey => Ok(Box::new(EachNumber::new(setup)?)),
    }
}

/// A filter over single numbers, asked for each of an interval.
struct EachNumber {
    filter: TimeBloom,
    digester: Digester,
}

impl EachNumber {
    fn new(setup: Setup) -> Result<Self, PlanError> {
        let filter = TimeBloom::new(Shape {
            cells: setup.counters(),
            hashes: setup.hashes(),
            span: setup.window,
            grain: 1,
            capacity: setup.window,
            renewal: Renewal::Always,
        })?;
        Ok(Self { filter, digester: Digester::new(2019) })
    }
}

impl RangeUnderTest for EachNumber {
    fn insert(&mut self, number: u64, now: Tick) {
        self.filter.remember(self.digester.digest(&number.to_le_bytes()), now);
    }

    fn any_in(&self, first: u64, last: u64, now: Tick) -> bool {
        (first..=last)
            .any(|number| self.filter.contains(self.digester.digest(&number.to_le_bytes()), now))
    }

    fn bits(&self) -> u64 {
        8 * self.filter.memory() as u64
    }
}
