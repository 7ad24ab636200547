//! The structures compared, behind one face.

use super::paper_list::PaperCuckoo;
use lately::window::{CuckooSize, CuckooWindow, Keeps, Shape as Cells, TimingBloom};
use lately::{Digest, Filter, LastSeen, Renewal, Spec, Tick, Window, WindowFilter};
use std::error::Error;
use std::num::NonZeroU64;

/// Which structure, and the number that the paper calls k or K.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structure {
    /// The Timing Bloom filter with this many hashes.
    Timing(u32),
    /// The same with the best number of hashes for its load: not in the paper, which gives it 4.
    BestTiming(u32),
    /// The library's cuckoo window, whose stash keeps what a position would, with signatures of this many bits.
    Cuckoo(u32),
    /// The same with the paper's list of whole keys.
    Listed(u32),
}

impl Structure {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Timing(_) => "TBF",
            Self::BestTiming(_) => "TBF with the best k",
            Self::Cuckoo(_) => "cuckoo",
            Self::Listed(_) => "cuckoo with the paper's list",
        }
    }

    /// Hashes, or bits of a signature.
    pub fn k(self) -> u32 {
        match self {
            Self::Timing(k) | Self::BestTiming(k) | Self::Cuckoo(k) | Self::Listed(k) => k,
        }
    }

    /// Positions in the filter, or in each of two tables, at the paper's measure of equal space.
    ///
    /// A position of the cuckoo table counts as two counters of a Timing Bloom filter (its stamp and
    /// its partner's place), with a signature as three.
    pub fn positions(self, counters: u64) -> u64 {
        match self {
            Self::Timing(_) | Self::BestTiming(_) => counters,
            Self::Cuckoo(0) | Self::Listed(0) => counters / 4,
            // To the nearest: the paper's 3,333 and 1,667.
            Self::Cuckoo(_) | Self::Listed(_) => (counters + 3) / 6,
        }
    }
}

/// A structure of a size.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Which.
    pub structure: Structure,
    /// Counters, or positions in each of two tables.
    pub positions: u64,
    /// What both count for: the number of counters at the measure of equal space.
    pub counters: u64,
    /// Arrivals in the window, n.
    pub window: u64,
}

/// What every structure is asked. A tick is the number of an arrival.
pub trait WindowUnderTest {
    /// Was the key seen at most n ticks before `now`?
    fn contains(&self, key: Digest, now: Tick) -> bool;

    /// The key is seen now.
    fn remember(&mut self, key: Digest, now: Tick);

    /// Ticks since the key was last seen, as far as the structure knows: never more than is true.
    fn age(&self, key: Digest, now: Tick) -> Option<u64>;

    /// Keys that found no place in the tables and are kept in a list.
    fn overflow(&self) -> usize;

    /// Bits allocated.
    fn bits(&self) -> u64;

    /// How many of the keys were seen, all asked at one moment: a block to be timed, so that the
    /// call of a trait object is paid once a block.
    fn contained(&self, keys: &[Digest], now: Tick) -> usize {
        keys.iter().filter(|&&key| self.contains(key, now)).count()
    }

    /// The keys are seen one after another, from that moment on.
    fn remember_all(&mut self, keys: &[Digest], first: Tick) {
        for (&key, tick) in keys.iter().zip(first.0..) {
            self.remember(key, Tick(tick));
        }
    }
}

/// Builds a structure.
pub type Build = fn(Setup) -> Result<Box<dyn WindowUnderTest>, Box<dyn Error>>;

/// Builds the library's structure.
///
/// # Errors
/// For one that cannot be built.
pub fn build(setup: Setup) -> Result<Box<dyn WindowUnderTest>, Box<dyn Error>> {
    let Setup { structure, positions, window, .. } = setup;
    match structure {
        Structure::Timing(hashes) | Structure::BestTiming(hashes) => {
            let shape = Cells {
                cells: positions,
                hashes,
                span: window,
                grain: 1,
                lateness: 0,
                capacity: window,
                renewal: Renewal::Always,
            };
            Ok(Box::new(TimingBloom::new(shape)?))
        }
        Structure::Listed(signature_bits) => {
            Ok(Box::new(PaperCuckoo::new(window, positions, signature_bits)))
        }
        Structure::Cuckoo(signature_bits) => {
            // Room for every position, as in the paper: no block is full before its positions are.
            let size = CuckooSize { positions, signature_bits, entries_a_block: 64 };
            Ok(Box::new(CuckooWindow::new(Keeps::exactly(last(window)?), size)?))
        }
    }
}

fn last(arrivals: u64) -> Result<Window, Box<dyn Error>> {
    Ok(Window::Count(NonZeroU64::new(arrivals).ok_or("a window of no arrivals")?))
}

/// Bits that the library's plan allocates for a cuckoo window that keeps this rate.
///
/// # Errors
/// For a rate that no plan keeps, 0 among them.
pub fn planned_bits(window: u64, fpr: f64) -> Result<u64, Box<dyn Error>> {
    let spec = Spec::new(last(window)?).structure(lately::Structure::CuckooWindow).fpr(fpr);
    Ok(8 * spec.plan()?.memory())
}

/// The arrivals since a key was last seen, as a window tells it.
fn age(window: &impl LastSeen, key: Digest, now: Tick) -> Option<u64> {
    window.last_seen(key, now).map(|seen| now.0 - seen.to.0)
}

impl WindowUnderTest for TimingBloom {
    fn contains(&self, key: Digest, now: Tick) -> bool {
        Filter::contains(self, key, now)
    }

    fn remember(&mut self, key: Digest, now: Tick) {
        WindowFilter::remember(self, key, now);
    }

    fn age(&self, key: Digest, now: Tick) -> Option<u64> {
        age(self, key, now)
    }

    fn overflow(&self) -> usize {
        0
    }

    fn bits(&self) -> u64 {
        8 * self.memory() as u64
    }
}

impl WindowUnderTest for CuckooWindow {
    fn contains(&self, key: Digest, now: Tick) -> bool {
        Filter::contains(self, key, now)
    }

    fn remember(&mut self, key: Digest, now: Tick) {
        WindowFilter::remember(self, key, now);
    }

    fn age(&self, key: Digest, now: Tick) -> Option<u64> {
        age(self, key, now)
    }

    fn overflow(&self) -> usize {
        self.stashed() as usize
    }

    fn bits(&self) -> u64 {
        8 * self.memory() as u64
    }
}
