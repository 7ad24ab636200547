//! The Bloom filter that ages.

use super::FilterSize;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use lately::Digest;

/// A Time Bloom filter of small stamps that can be shared: an element leaves it by itself, one
/// validity period after it was added.
///
/// Time is counted in grains, `steps` of which make up the validity. An element added at grain `g` is in
/// it up to grain `g + steps - 1`: so it is due again one validity period later, or sooner by less than
/// a grain.
///
/// # Guarantee
/// An element is found until it is due again. Another one is found with the chance of a Bloom filter
/// of as many bits that holds the elements of the last `steps` grains.
///
/// # Cost
/// A byte a cell. Stamps are grains modulo 255; those that have expired are cleared before they can look
/// fresh again, in one pass of the table every 64 grains.
///
/// # Reference
/// C.-H. Lee, C.-W. Chung, Data & Knowledge Engineering 70, 2011, section 5 (the Time Bloom filter).
///
/// # Differs from the library's
/// [`lately::window::TimeBloom`] does not give its cells away, and they are what is sent; and its window
/// includes its end, while a reading is due *at* the end of the validity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgedFilter {
    size: FilterSize,
    /// Grains that an element stays, 1 to [`AgedFilter::MAX_STEPS`].
    steps: u8,
    /// 0, or the grain modulo 255 at which the cell was last set, plus 1.
    stamps: Box<[u8]>,
    /// The newest grain seen.
    newest: u64,
    /// The grain of the last pass.
    swept: u64,
}

/// Stamps wrap around after this many grains.
const CYCLE: u64 = 255;

/// Cells that are looked at together: no more than a byte can count.
const BLOCK: usize = 128;

/// How many grains before `hand` a stamp was set; `u8::MAX`, which is never live, for none. Without a
/// division or a branch, as whole tables are counted with it.
#[inline]
fn age(stamp: u8, hand: u8) -> u8 {
    // Below the hand the cycle's 255 is a borrow of 256 and 1 less.
    let age = hand.wrapping_sub(stamp).wrapping_sub(u8::from(stamp > hand));
    if stamp == 0 { u8::MAX } else { age }
}
/// Grains between two passes. A cell that was live at one is less than `MAX_STEPS + SWEEP` grains old at
/// the next, which is below `CYCLE`: no stamp is ambiguous.
const SWEEP: u64 = 64;

impl AgedFilter {
    /// The finest resolution: grains per validity period.
    pub const MAX_STEPS: u8 = super::size::MAX_STEPS;

    /// An empty filter; sizes and steps that are not valid become the nearest that are.
    pub fn new(size: FilterSize, steps: u8) -> Self {
        let size = FilterSize {
            bits: size.bits.clamp(1, super::MAX_BITS),
            hashes: size.hashes.clamp(1, 64),
        };
        let stamps = vec![0; size.bits as usize].into();
        Self { size, steps: steps.clamp(1, Self::MAX_STEPS), stamps, newest: 0, swept: 0 }
    }

    /// Its size.
    pub fn size(&self) -> FilterSize {
        self.size
    }

    /// Grains that an element stays.
    pub fn steps(&self) -> u8 {
        self.steps
    }

    /// The newest grain seen.
    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// How many grains ago a cell was set, seen from the newest grain; `None` when it is not live.
    #[inline]
    fn age(&self, stamp: u8) -> Option<u64> {
        let age = age(stamp, self.hand());
        (age < self.steps).then_some(age.into())
    }

    /// The stamp of a cell that is set in the newest grain.
    #[inline]
    fn hand(&self) -> u8 {
        (self.newest % CYCLE) as u8 + 1
    }

    /// Is the element in it at that grain? Never `false` for one that is.
    #[inline]
    pub fn contains(&self, digest: Digest, grain: u64) -> bool {
        let later = grain.saturating_sub(self.newest);
        self.size.positions(digest).all(|at| {
            let stamp = self.stamps.get(at as usize).copied().unwrap_or(0);
            self.age(stamp).is_some_and(|age| age.saturating_add(later) < u64::from(self.steps))
        })
    }

    /// Adds an element.
    pub fn add(&mut self, digest: Digest, grain: u64) {
        self.advance(grain);
        let size = self.size;
        size.positions(digest).for_each(|at| self.set(at, 0));
    }

    /// Sets a cell to an age in grains before the newest; a cell that was set later stays.
    pub(crate) fn set(&mut self, at: u32, age: u64) {
        let Some(&stamp) = self.stamps.get(at as usize) else { return };
        if age < u64::from(self.steps) && self.age(stamp).is_none_or(|present| age < present) {
            let set = (self.newest % CYCLE + CYCLE - age) % CYCLE;
            if let Some(cell) = self.stamps.get_mut(at as usize) {
                *cell = set as u8 + 1;
            }
        }
    }

    /// Lets time pass; an earlier grain than the newest changes nothing.
    pub fn advance(&mut self, grain: u64) {
        if grain <= self.newest {
            return;
        }
        if grain - self.newest >= u64::from(self.steps) {
            self.clear(grain);
            return;
        }
        while self.newest < grain {
            self.newest = grain.min(self.swept + SWEEP);
            if self.newest - self.swept == SWEEP {
                self.sweep();
            }
        }
    }

    /// Forgets everything; time moves, forward or back, to this grain.
    pub fn clear(&mut self, grain: u64) {
        self.stamps.fill(0);
        (self.newest, self.swept) = (grain, grain);
    }

    /// Unsets the cells that are not live.
    fn sweep(&mut self) {
        self.swept = self.newest;
        let (hand, steps) = (self.hand(), self.steps);
        for stamp in &mut self.stamps {
            *stamp = if age(*stamp, hand) < steps { *stamp } else { 0 };
        }
    }

    /// How many cells are live.
    pub fn ones(&self) -> u32 {
        let (hand, steps) = (self.hand(), self.steps);
        // Bytes are added up as bytes, which goes many at a time, as long as their sum is one.
        let blocks = self.stamps.chunks(BLOCK);
        let live = |block: &[u8]| -> u8 {
            block.iter().map(|&stamp| u8::from(age(stamp, hand) < steps)).sum()
        };
        blocks.map(|block| u32::from(live(block))).sum()
    }

    /// Appends the cells that are live: how many grains ago each was set, times 65,536, and its position.
    pub(crate) fn live(&self, into: &mut Vec<u32>) {
        let (hand, steps) = (self.hand(), self.steps);
        for (block, first) in self.stamps.chunks(BLOCK).zip((0_u32..).step_by(BLOCK)) {
            // All cells are written down, and only live ones are counted: nothing to be foretold wrongly.
            let (mut live, mut count) = ([0; BLOCK], 0);
            for (&stamp, at) in block.iter().zip(first..) {
                let age = age(stamp, hand);
                if let Some(slot) = live.get_mut(count) {
                    *slot = u32::from(age) << 16 | at;
                }
                count += usize::from(age < steps);
            }
            into.extend_from_slice(live.get(..count).unwrap_or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lately::Digester;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        /// Beside an exact table: nothing is forgotten too soon, and what is found although it is
        /// due is a false positive, of which a filter of 4,000 cells has none here.
        #[test]
        fn forgets_when_due(steps in 1_u8..=120, moves in prop::collection::vec((0_u8..40, 0_u64..90), 1..200)) {
            let mut filter = AgedFilter::new(FilterSize { bits: 4_000, hashes: 8 }, steps);
            let digester = Digester::new(1);
            let (mut exact, mut now) = (HashMap::new(), 1_000_u64);
            for (key, passed) in moves {
                now += passed;
                for (&other, &added) in &exact {
                    let digest = digester.digest(&[other]);
                    let due: bool = now - added >= u64::from(steps);
                    prop_assert_eq!(filter.contains(digest, now), !due);
                }
                filter.add(digester.digest(&[key]), now);
                exact.insert(key, now);
            }
        }
    }

    /// Every stamp and hand, compared with the division that it stands for.
    #[test]
    fn ages_go_round() {
        for hand in 1..=255_u8 {
            assert_eq!(age(0, hand), u8::MAX);
            for stamp in 1..=255_u8 {
                let expected = (u64::from(hand) + CYCLE - u64::from(stamp)) % CYCLE;
                assert_eq!(u64::from(age(stamp, hand)), expected, "{stamp} seen from {hand}");
            }
        }
    }

    fn live(filter: &AgedFilter) -> Vec<(u32, u64)> {
        let mut packed = Vec::new();
        filter.live(&mut packed);
        packed.into_iter().map(|cell| (cell & 0xFFFF, u64::from(cell >> 16))).collect()
    }

    /// Counting and listing by blocks, compared with cell by cell, also for partial blocks.
    #[test]
    fn counts_and_lists_all_live_cells() {
        for bits in [1, 7, 8, 129, 300] {
            let mut filter = AgedFilter::new(FilterSize { bits, hashes: 1 }, 120);
            filter.advance(200);
            for at in 0..bits {
                filter.advance(200 + u64::from(at / 2));
                filter.set(at, 0);
            }
            let all = filter.stamps.iter().zip(0_u32..);
            let one_by_one: Vec<(u32, u64)> =
                all.filter_map(|(&stamp, at)| Some((at, filter.age(stamp)?))).collect();
            assert_eq!(live(&filter), one_by_one);
            assert_eq!(filter.ones(), one_by_one.len() as u32);
            assert_eq!(one_by_one.len(), bits.min(240) as usize);
        }
    }

    #[test]
    fn an_older_mark_does_not_make_a_cell_older() {
        let mut filter = AgedFilter::new(FilterSize { bits: 10, hashes: 1 }, 10);
        filter.advance(100);
        filter.set(3, 2);
        filter.set(3, 5);
        filter.set(4, 10);
        assert_eq!(live(&filter), [(3, 2)]);
        filter.advance(107);
        assert_eq!((filter.ones(), live(&filter)), (1, vec![(3, 9)]));
        filter.advance(108);
        assert_eq!(filter.ones(), 0);
    }
}
