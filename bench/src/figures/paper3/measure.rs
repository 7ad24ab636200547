//! One structure over the keys: how often wrong, how large, and how fast.

use super::keys::Keys;
use super::structures::GrowingSet;
use crate::figures::clock::Blocks;
use lately::Digest;

/// What was found after this many insertions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Keys inserted.
    pub keys: usize,
    /// Bits allocated.
    pub bits: u64,
    /// Filters, or slices a bucket, rounded up.
    pub parts: usize,
    /// Absent keys asked for.
    pub asked: usize,
    /// Those answered "present".
    pub false_positives: usize,
    /// Inserted keys answered "absent"; there must be none.
    pub false_negatives: usize,
    /// Nanoseconds a query of an inserted key takes.
    pub hit: f64,
    /// Nanoseconds a query of an absent key takes.
    pub miss: f64,
    /// Nanoseconds an insertion took since the last size.
    pub insert: f64,
}

impl Outcome {
    /// Share of the absent keys that were answered "present".
    pub fn fpr(&self) -> f64 {
        self.false_positives as f64 / self.asked.max(1) as f64
    }

    /// Bits for each key.
    pub fn bits_a_key(&self) -> f64 {
        self.bits as f64 / self.keys.max(1) as f64
    }
}

/// Keys of a timed block.
const BLOCK: usize = 200;

/// Fills a structure, and looks at it at each of these sizes (rising, none beyond the keys).
pub fn fill(structure: &mut dyn GrowingSet, keys: &Keys, sizes: &[usize]) -> Vec<Outcome> {
    let mut filled = 0;
    let mut outcomes = Vec::new();
    for &size in sizes {
        let mut inserts = Blocks::default();
        for block in keys.present[filled..size].chunks(BLOCK) {
            inserts.time(block.len(), || structure.insert_all(block));
        }
        filled = size;
        outcomes.push(look(structure, keys, size, inserts.median()));
    }
    outcomes
}

fn look(structure: &dyn GrowingSet, keys: &Keys, size: usize, insert: f64) -> Outcome {
    let (found, hit) = ask(structure, &keys.present[..size]);
    let (false_positives, miss) = ask(structure, &keys.absent);
    Outcome {
        keys: size,
        bits: structure.bits(),
        parts: structure.parts(),
        asked: keys.absent.len(),
        false_positives,
        false_negatives: size - found,
        hit,
        miss,
        insert,
    }
}

/// How many are found, and the time of one query.
fn ask(structure: &dyn GrowingSet, keys: &[Digest]) -> (usize, f64) {
    let mut blocks = Blocks::default();
    let count = |block: &[Digest]| blocks.time(block.len(), || structure.contained(block));
    let found = keys.chunks(BLOCK).map(count).sum();
    (found, blocks.median())
}
