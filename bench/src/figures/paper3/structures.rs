//! The structures compared, behind one face.

use super::paper_slices::{PaperAccommodative, PaperShape};
use lately::forever::{
    AccommodativeBloom, AccommodativeShape, DynamicBloom, ScalableBloom, ScalableShape,
};
use lately::{Digest, Filter, Tick};
use std::error::Error;

/// Bits that each structure begins with.
pub const BITS: u32 = 6_400;

/// The false positive rate asked for.
pub const FPR: f64 = 0.01;

/// Bits of the slices that the paper adds, m/k: of an SBF whole, of an ABF divided by k1 once more.
const SLICE: u32 = BITS / 4;

/// Which structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structure {
    /// The Dynamic Bloom filter.
    Dynamic,
    /// The Scalable Bloom filter.
    Scalable,
    /// The Accommodative Bloom filter with the library's slices.
    Accommodative,
    /// The same with the paper's slices, in this many buckets.
    PaperSlices(u32),
    /// The Scalable Bloom filter that grows by slices of 1,600 bits, as in the paper's experiment.
    SlicedScalable,
}

impl Structure {
    /// All of them, in the order of the legends.
    pub const ALL: [Self; 5] = [
        Self::Dynamic,
        Self::Scalable,
        Self::Accommodative,
        Self::PaperSlices(4),
        Self::PaperSlices(16),
    ];

    /// Its name in tables and legends.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dynamic => "DBF",
            Self::Scalable => "SBF",
            Self::Accommodative => "ABF with our slices",
            Self::SlicedScalable => "SBF with 1600-bit slices",
            Self::PaperSlices(4) => "ABF with the paper's slices (b = 4)",
            Self::PaperSlices(_) => "ABF with the paper's slices (b = 16)",
        }
    }

    /// Buckets of an ABF.
    pub fn buckets(self) -> u32 {
        if let Self::PaperSlices(buckets) = self { buckets } else { 16 }
    }
}

/// A structure with its parameters.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Which.
    pub structure: Structure,
    /// Hashes of a DBF; buckets chosen in an ABF, k. An SBF's follow from its errors.
    pub hashes: u32,
    /// Bits that a key sets in each bucket of an ABF, k1.
    pub part_hashes: u32,
    /// Share of its bits at which a filter of a DBF is full.
    pub fill: f64,
    /// Error of an SBF's first filter.
    pub first_error: f64,
}

/// How much smaller the error of each filter of an SBF is than that of the one before.
pub const TIGHTENING: f64 = 0.85;

impl Setup {
    /// The paper's k = k1 = 4, and what keeps the rate asked for: a DBF's filters are full at the
    /// fill at which they err so often, an SBF's errors add up to it.
    pub fn standard(structure: Structure) -> Self {
        Self {
            structure,
            hashes: 4,
            part_hashes: 4,
            fill: FPR.powf(0.25),
            first_error: FPR * (1.0 - TIGHTENING),
        }
    }

    /// This many hashes per key, as Figure 6 varies them: an ABF's are divided between buckets and
    /// partitions; filters are full at half their bits, since only so more hashes fill them sooner.
    pub fn with_hashes(structure: Structure, hashes: u32) -> Self {
        let accommodative = !matches!(structure, Structure::Dynamic | Structure::Scalable);
        Self {
            structure,
            hashes: if accommodative { hashes / 2 } else { hashes },
            part_hashes: hashes / 2,
            fill: 0.5,
            // A trifle more, as a trifle less would take one more hash.
            first_error: 0.5_f64.powi(hashes as i32) * (1.0 + 1e-9),
        }
    }

    /// Keys that a filter of a DBF takes until it is that full: `-m/k · ln(1 - fill)`.
    pub fn filter_capacity(&self) -> u64 {
        let keys = -f64::from(BITS) / f64::from(self.hashes) * (1.0 - self.fill).ln();
        keys.max(1.0) as u64
    }

    /// Keys of an SBF's first filter, so that it has the bits of the others: half full with a bit of
    /// each of its `log2(1/P0)` partitions a key.
    pub fn scalable_capacity(&self) -> u64 {
        let partitions = (-self.first_error.log2()).ceil();
        ((f64::from(BITS) / partitions - 1.0) * std::f64::consts::LN_2) as u64
    }
}

/// What every structure is asked.
pub trait GrowingSet {
    /// Remembers a key.
    fn insert(&mut self, key: Digest);

    /// Was the key inserted?
    fn contains(&self, key: Digest) -> bool;

    /// Bits allocated.
    fn bits(&self) -> u64;

    /// Filters, or slices of the bucket that has most.
    fn parts(&self) -> usize;

    /// How many of the keys are in it: a block to be timed, so that the call of a trait object is
    /// paid once a block.
    fn contained(&self, keys: &[Digest]) -> usize {
        keys.iter().filter(|&&key| self.contains(key)).count()
    }

    /// Remembers keys.
    fn insert_all(&mut self, keys: &[Digest]) {
        for &key in keys {
            self.insert(key);
        }
    }
}

/// Builds a structure.
pub type Build = fn(Setup) -> Result<Box<dyn GrowingSet>, Box<dyn Error>>;

/// Builds the library's structure, or the paper's variant of it that is ours to measure only.
///
/// # Errors
/// For one that cannot be built.
pub fn build(setup: Setup) -> Result<Box<dyn GrowingSet>, Box<dyn Error>> {
    match setup.structure {
        Structure::PaperSlices(buckets) => {
            let slice = SLICE / setup.part_hashes.max(1);
            let Setup { hashes: chosen, part_hashes: hashes, .. } = setup;
            let shape = PaperShape { bits: BITS, buckets, slice, chosen, hashes };
            Ok(Box::new(PaperAccommodative::new(shape)))
        }
        // One bucket of the same: a list of filters, searched from the newest on.
        Structure::SlicedScalable => Ok(Box::new(PaperAccommodative::new(PaperShape {
            bits: BITS,
            buckets: 1,
            slice: SLICE,
            chosen: 1,
            hashes: setup.hashes,
        }))),
        Structure::Dynamic => {
            let (bits, capacity) = (u64::from(BITS), setup.filter_capacity());
            Ok(Box::new(DynamicBloom::new(bits, setup.hashes, capacity)?))
        }
        Structure::Scalable => Ok(Box::new(ScalableBloom::new(ScalableShape {
            capacity: setup.scalable_capacity(),
            fpr: setup.first_error / (1.0 - TIGHTENING),
            growth: 2,
            tightening: TIGHTENING,
        })?)),
        Structure::Accommodative => Ok(Box::new(AccommodativeBloom::new(AccommodativeShape {
            bits: u64::from(BITS),
            buckets: setup.structure.buckets(),
            choices: setup.hashes,
            hashes: setup.part_hashes,
            fpr: FPR,
            tightening: TIGHTENING,
        })?)),
    }
}

impl GrowingSet for PaperAccommodative {
    fn insert(&mut self, key: Digest) {
        Self::insert(self, key);
    }

    fn contains(&self, key: Digest) -> bool {
        Self::contains(self, key)
    }

    fn bits(&self) -> u64 {
        Self::bits(self)
    }

    fn parts(&self) -> usize {
        self.most_slices()
    }
}

/// A filter of the library, and how many parts it has.
macro_rules! growing_set {
    ($filter:ty, $parts:expr) => {
        impl GrowingSet for $filter {
            fn insert(&mut self, key: Digest) {
                let _ = self.observe(key);
            }

            fn contains(&self, key: Digest) -> bool {
                Filter::contains(self, key, Tick(0))
            }

            fn bits(&self) -> u64 {
                8 * self.memory() as u64
            }

            fn parts(&self) -> usize {
                let parts: fn(&Self) -> usize = $parts;
                parts(self)
            }
        }
    };
}

growing_set!(DynamicBloom, Self::filters);
growing_set!(ScalableBloom, Self::filters);
growing_set!(AccommodativeBloom, |set| {
    set.slices().div_ceil(u64::from(set.shape().buckets)) as usize
});
