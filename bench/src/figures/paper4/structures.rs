//! The structures compared, behind one face.

use super::measure::UNIVERSE;
use lately::plan::range_emptiness_bound;
use lately::range::{KeyByKey, RangeFilter, RangeSpec, RangeWindow};
use lately::window::{DleftWindow, Keeps, Shape, TimingBloom};
use lately::{Digester, LastSeen, Renewal, Spec, Tick, Window};
use std::error::Error;
use std::num::NonZeroU64;

/// The false positive rate asked for.
pub const FPR: f64 = 0.01;

/// Which structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structure {
    /// The paper's A: four hash tables of fingerprints and stamps.
    Dleft,
    /// A time-decaying Bloom filter, asked for every number of an interval.
    KeyByKey,
    /// Not the paper's: the range window of this library, with a slack of an eighth of the window.
    Range,
}

/// The part of the window that the slack of [`Structure::Range`] is.
pub const SLACK: u64 = 8;

impl Structure {
    /// All, in the order of the legends.
    pub const ALL: [Self; 3] = [Self::Dleft, Self::KeyByKey, Self::Range];

    /// Those that the paper compares.
    pub const PAPER: [Self; 2] = [Self::Dleft, Self::KeyByKey];

    /// The paper's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dleft => "A",
            Self::KeyByKey => "T-DBF",
            Self::Range => "ours",
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
        range_emptiness_bound(self.window, FPR, self.length)
    }

    /// What the paper says A takes: `4/3·n·(log 1/ε + log L + log n + log 24 + 1)` bits.
    pub fn paper_bits(&self) -> f64 {
        let n = self.window as f64;
        4.0 / 3.0 * (self.lower_bound() + n * (24_f64.log2() + 1.0))
    }

    /// Bits of a T-DBF whose counters are no wider than they must be: `ceil(log2(2n + 1))`.
    pub fn timing_bits(&self) -> u64 {
        self.counters() * u64::from(TimingBloom::stamp_bits(self.window))
    }

    /// The same by the formulas, with `log2(L/ε)` hashes and no rounding.
    pub fn timing_formula(&self) -> f64 {
        let hashes = (self.length as f64 / FPR).log2();
        let counters = self.window as f64 * hashes / std::f64::consts::LN_2;
        counters * f64::from(TimingBloom::stamp_bits(self.window))
    }

    /// The lower bound with its constants: what equations 17 to 21 of the paper leave when nothing is rounded off,
    /// `log2((cn)·(cn - 1)·…·(cn - n + 1)) + n·log2 L`, less what repairs the errors, with `c = u/(n·L)`. Where the universe
    /// is not as large as it must be (`c < 1/ε`) it is what the formula gives all the same.
    pub fn bound_with_constants(&self) -> f64 {
        let (n, length) = (self.window as f64, self.length as f64);
        let c = UNIVERSE as f64 / (n * length);
        let sequences: f64 = (0..self.window).map(|taken| (c * n - taken as f64).log2()).sum();
        let wrong = (n - 1.0) * FPR + 1.0;
        let array_b = n * (1.0 + (c - 1.0) * FPR).log2() + wrong * wrong.log2();
        let array_d = (FPR + (1.0 - FPR) / c) * n * length.log2();
        (sequences + n * length.log2() - array_b - array_d).max(0.0)
    }

    /// Buckets in each of A's four tables.
    pub fn buckets(&self) -> u64 {
        self.window.div_ceil(24)
    }

    /// Bits of A's fingerprints: `ceil(log2(24·L/ε))`.
    pub fn fingerprint_bits(&self) -> u32 {
        (24.0 * self.length as f64 / FPR).log2().ceil() as u32
    }

    /// A's bits with fields of whole bits and whole buckets, and stamps as wide as the paper's.
    pub fn whole_bits(&self) -> u64 {
        let slot = self.fingerprint_bits() + TimingBloom::stamp_bits(self.window);
        self.buckets() * 32 * u64::from(slot)
    }

    /// Is the universe as large as the lower bound needs: `u/(n·L) ≥ 1/ε`?
    pub fn universe_is_large(&self) -> bool {
        UNIVERSE as f64 / (self.window as f64 * self.length as f64) >= 1.0 / FPR
    }

    /// Bits that the library's plan allocates for intervals of this length.
    ///
    /// # Errors
    /// For what cannot be planned.
    pub fn planned_bits(&self) -> Result<u64, Box<dyn Error>> {
        let spec = Spec::new(self.last()?).structure(lately::Structure::DleftWindow);
        Ok(8 * spec.fpr(FPR / self.length as f64).plan()?.memory())
    }

    fn last(&self) -> Result<Window, Box<dyn Error>> {
        Ok(Window::Count(NonZeroU64::new(self.window).ok_or("a window of no arrivals")?))
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

    /// How many of the last arrivals may be reported, where n must be.
    fn remembers(&self, window: u64) -> u64 {
        window
    }

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
    let Setup { structure, window, .. } = setup;
    let digester = Digester::new(2019);
    match structure {
        Structure::Dleft => {
            let keeps = Keeps::exactly(setup.last()?);
            let filter = DleftWindow::new(keeps, setup.buckets(), setup.fingerprint_bits())?;
            Ok(Box::new(KeyByKey::new(digester, filter)))
        }
        Structure::KeyByKey => {
            let filter = TimingBloom::new(Shape {
                cells: setup.counters(),
                hashes: setup.hashes(),
                span: window,
                grain: 1,
                lateness: 0,
                capacity: window,
                renewal: Renewal::Always,
            })?;
            Ok(Box::new(KeyByKey::new(digester, filter)))
        }
        Structure::Range => {
            let spec = RangeSpec::new(setup.last()?).interval(u128::from(setup.length)).fpr(FPR);
            Ok(Box::new(spec.slack(window / SLACK).seed(2019).plan()?.build()))
        }
    }
}

impl RangeUnderTest for RangeWindow {
    fn insert(&mut self, number: u64, now: Tick) {
        Self::insert(self, u128::from(number), now);
    }

    fn any_in(&self, first: u64, last: u64, now: Tick) -> bool {
        self.any(u128::from(first)..=u128::from(last), now).is_perhaps()
    }

    fn bits(&self) -> u64 {
        8 * self.memory() as u64
    }

    fn remembers(&self, window: u64) -> u64 {
        window + window / SLACK
    }
}

impl<F: LastSeen> RangeUnderTest for KeyByKey<F> {
    fn insert(&mut self, number: u64, now: Tick) {
        RangeFilter::insert(self, u128::from(number), now);
    }

    fn any_in(&self, first: u64, last: u64, now: Tick) -> bool {
        RangeFilter::any_in(self, u128::from(first)..=u128::from(last), None, now)
    }

    fn bits(&self) -> u64 {
        8 * self.filter().memory() as u64
    }
}
