//! What every structure of the comparison is asked, and what it promises.

use super::stream::{Block, Key};
use std::time::Instant;

/// A structure under one face.
///
/// Whole blocks are given at a time, so that no call through the face is timed with the keys: the
/// loops are compiled for each structure.
pub trait Adapter {
    /// One arrival: is it a duplicate?
    fn observe(&mut self, key: Key) -> bool;

    /// Would it be one, as the next arrival?
    fn contains(&self, key: Key) -> bool;

    /// Arrivals one by one; how many were called duplicates.
    fn observe_each(&mut self, block: &Block) -> usize {
        block.keys().map(|key| usize::from(self.observe(key))).sum()
    }

    /// Questions one by one; how many were answered with yes.
    fn contains_each(&self, block: &Block) -> usize {
        block.keys().map(|key| usize::from(self.contains(key))).sum()
    }

    /// Arrivals as a batch; `None` where there is no such call.
    fn observe_batch(&mut self, _block: &Block) -> Option<usize> {
        None
    }

    /// Arrivals one by one, and the nanoseconds that each took.
    fn time_each(&mut self, block: &Block, nanoseconds: &mut Vec<u64>) {
        nanoseconds.clear();
        let mut before = Instant::now();
        for key in block.keys() {
            std::hint::black_box(self.observe(key));
            let after = Instant::now();
            nanoseconds.push((after - before).as_nanos() as u64);
            before = after;
        }
    }
}

/// What a structure remembers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Contract {
    /// The last `n` arrivals, and at most this multiple of `n` more.
    Window(f64),
    /// Whatever was ever put in, which must be `n` keys at most.
    Forever,
}

impl Contract {
    /// As tables write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Forever => "forever",
            Self::Window(0.0) => "exact",
            Self::Window(slack) if slack <= 0.125 => "n/8",
            Self::Window(_) => "n",
        }
    }

    /// The least bits per key of any structure with this contract: to recognize keys, and to
    /// store their ages as finely as the slack requires.
    pub fn bound(self, n: u64, fpr: f64) -> f64 {
        let ages = match self {
            Self::Forever => 1.0,
            Self::Window(0.0) => n as f64,
            Self::Window(slack) => 1.0 / slack,
        };
        -fpr.log2() + ages.log2()
    }
}

/// An adapter, or why there is none of that size.
pub type Built = Result<Box<dyn Adapter>, String>;

/// A structure that can be built for any number of keys and any rate.
pub struct Candidate {
    /// Its name in the tables.
    pub name: String,
    /// What it promises.
    pub contract: Contract,
    /// Is it of this library?
    pub own: bool,
    /// What it hashes for itself, and how it was made to keep its contract.
    pub how: &'static str,
    /// Builds it for this many keys and this false positive rate.
    pub build: Box<dyn Fn(u64, f64) -> Built>,
}

impl Candidate {
    /// A structure from elsewhere.
    pub fn peer<A: Adapter + 'static>(
        name: &str,
        contract: Contract,
        how: &'static str,
        build: impl Fn(u64, f64) -> Result<A, String> + 'static,
    ) -> Self {
        let build = move |n, fpr| Ok(Box::new(build(n, fpr)?) as Box<dyn Adapter>);
        Self { name: name.to_owned(), contract, own: false, how, build: Box::new(build) }
    }
}

/// All structures of the comparison.
pub fn candidates() -> Vec<Candidate> {
    let mut all = super::library::candidates();
    all.push(super::exact::candidate());
    #[cfg(feature = "peers")]
    all.extend(super::peers::candidates());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds() {
        assert!((Contract::Window(0.125).bound(1000, 0.125) - 6.0).abs() < 1e-12);
        assert!((Contract::Window(0.0).bound(1 << 20, 0.25) - 22.0).abs() < 1e-12);
        assert!((Contract::Forever.bound(1000, 0.25) - 2.0).abs() < 1e-12);
        assert_eq!(Contract::Window(1.0).name(), "n");
    }

    #[test]
    fn names_are_told_apart() {
        let names: Vec<String> = candidates().into_iter().map(|one| one.name).collect();
        for (at, name) in names.iter().enumerate() {
            assert!(!names[..at].contains(name), "{name} twice");
        }
    }
}
