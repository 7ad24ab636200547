//! A table of few keys: one sorted array.

use super::ages::{Ages, Live};
use super::ends::Ends;
use super::tiers::Now;
use alloc::vec;
use alloc::vec::Vec;

/// The numbers that a flat table is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlatShape {
    /// Items that it has room for.
    pub(super) most: usize,
    /// Bits of a code that an item keeps: those above are the number of its bucket.
    pub(super) low_bits: u32,
    pub(super) stamp_bits: u32,
    pub(super) buckets: usize,
}

impl FlatShape {
    /// With the number of buckets for which items and buckets together take the fewest bits: one for 11 items or so.
    ///
    /// `most` is at most [`u16::MAX`], `codes` at least 1; a code and a stamp have 127 bits at most.
    pub(super) fn new(most: usize, codes: u128, stamp_bits: u32) -> Self {
        let buckets = |low_bits: u32| ((codes - 1) >> low_bits) + 1;
        let cost = |&low_bits: &u32| {
            let starts = buckets(low_bits).saturating_mul(u16::BITS.into());
            (most as u128 * u128::from(low_bits)).saturating_add(starts)
        };
        let low_bits = (1..=127 - stamp_bits).min_by_key(cost).unwrap_or(1);
        Self { most, low_bits, stamp_bits, buckets: buckets(low_bits) as usize }
    }

    /// Bits of an item.
    pub(super) fn width(&self) -> u32 {
        self.low_bits + self.stamp_bits
    }

    /// Words that a number of items takes.
    pub(super) fn words_of(&self, items: usize) -> usize {
        (items * self.width() as usize).div_ceil(64)
    }

    /// Words allocated: an item is read together with the word behind it, or the two behind it.
    fn words(&self) -> usize {
        self.words_of(self.most) + if self.width() <= u64::BITS { 1 } else { 2 }
    }

    /// Bytes allocated.
    pub(super) fn memory(&self) -> u64 {
        self.words() as u64 * 8 + (self.buckets as u64 + 1) * 2
    }
}

/// Items sorted by their codes, each code once with its newest stamp, packed without gaps.
///
/// The high bits of the codes are not kept: they are the numbers of *buckets*, of which it is known where each begins. An
/// arrival moves all items behind its own by one place. What has expired is dropped when there is no more room, in one pass over
/// all items, or earlier where stamps would become ambiguous.
#[derive(Clone, Debug)]
pub(super) struct Flat {
    pub(super) ages: Ages,
    pub(super) shape: FlatShape,
    pub(super) words: Vec<u64>,
    /// The number of items before each bucket, and of all.
    pub(super) starts: Vec<u16>,
    /// The grain that stamps are read as of.
    pub(super) index: u64,
    /// All items are of this grain or a later one.
    pub(super) since: u64,
    /// The newest moment.
    pub(super) newest: u64,
    pub(super) ends: Ends,
}

impl Flat {
    pub(super) fn new(ages: Ages, shape: FlatShape) -> Self {
        let (words, starts) = (vec![0; shape.words()], vec![0; shape.buckets + 1]);
        Self { ages, shape, words, starts, index: 0, since: 0, newest: 0, ends: Ends::NONE }
    }

    /// Bytes allocated.
    pub(super) fn memory(&self) -> usize {
        self.words.capacity() * size_of::<u64>() + self.starts.capacity() * size_of::<u16>()
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.starts[self.shape.buckets])
    }

    /// Items, those that have expired among them.
    pub(super) fn items(&self) -> u64 {
        self.len() as u64
    }

    /// It has no blocks.
    pub(super) const fn used(&self) -> usize {
        0
    }

    fn is_full(&self) -> bool {
        self.len() >= self.shape.most
    }

    /// The item at a place: the low bits of its code, and in the lowest bits its stamp.
    #[inline(always)]
    pub(super) fn item(&self, at: usize) -> u128 {
        let width = self.shape.width();
        let bit = at * width as usize;
        let (word, shift) = (bit / 64, (bit % 64) as u32);
        // Two shifts by less than 64 each, as one by 64 would be undefined for shift 0.
        let pair = |word: usize| {
            let high = self.words[word + 1] << 1 << (63 - shift);
            self.words[word] >> shift | high
        };
        if width <= u64::BITS {
            return u128::from(pair(word) & (u64::MAX >> (64 - width)));
        }
        let item = u128::from(pair(word)) | u128::from(pair(word + 1)) << 64;
        item & (u128::MAX >> (128 - width))
    }

    /// Puts an item at a place.
    #[inline(always)]
    fn set(&mut self, at: usize, item: u128) {
        let width = self.shape.width();
        let bit = at * width as usize;
        let (mut word, shift) = (bit / 64, (bit % 64) as u32);
        let mask = u128::MAX >> (128 - width);
        let put = |word: &mut u64, mask: u128, item: u128| {
            *word = *word & !(mask as u64) | item as u64;
        };
        put(&mut self.words[word], mask << shift, item << shift);
        let (mut mask, mut item) = (mask >> (64 - shift), item >> (64 - shift));
        while mask != 0 {
            word += 1;
            put(&mut self.words[word], mask, item);
            (mask, item) = (mask >> 64, item >> 64);
        }
    }

    #[inline(always)]
    pub(super) fn code_of(&self, item: u128) -> u128 {
        item >> self.shape.stamp_bits
    }

    /// The bucket of a code, and the code within it.
    #[inline(always)]
    fn split(&self, code: u128) -> (usize, u128) {
        let low_bits = self.shape.low_bits;
        ((code >> low_bits) as usize, code & (u128::MAX >> (128 - low_bits)))
    }

    /// The places of a bucket's items.
    #[inline(always)]
    pub(super) fn places(&self, bucket: usize) -> (usize, usize) {
        (usize::from(self.starts[bucket]), usize::from(self.starts[bucket + 1]))
    }

    /// The first of these places, all of one bucket, from which on codes are not before this one.
    #[inline(always)]
    fn seek(&self, (mut from, mut to): (usize, usize), low: u128) -> usize {
        while from < to {
            let middle = usize::midpoint(from, to);
            if self.code_of(self.item(middle)) < low {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        from
    }

    /// Is an item of these codes (both included) live?
    #[inline(always)]
    pub(super) fn finds(&self, (first, last): (u128, u128), live: &Live) -> bool {
        let ((bucket, low), (last_bucket, last_low)) = (self.split(first), self.split(last));
        let places = self.places(bucket);
        let from = self.seek(places, low);
        if bucket < last_bucket {
            let (begin, end) = self.places(last_bucket);
            let to = self.seek((begin, end), last_low);
            let to = to + usize::from(to < end && self.code_of(self.item(to)) == last_low);
            return (from..to).any(|at| live.has(self.item(at) as u64));
        }
        for at in from..places.1 {
            let item = self.item(at);
            if self.code_of(item) > last_low {
                return false;
            }
            if live.has(item as u64) {
                return true;
            }
        }
        false
    }

    /// Remembers a code as of a grain that is not after the present one. `false` where there is no room for another code.
    pub(super) fn insert(&mut self, code: u128, index: u64) -> bool {
        if !self.place(code, index & self.ages.mask()) {
            return false;
        }
        // Of an earlier grain, the moment may have been any of it.
        let end = index.saturating_add(1).saturating_mul(self.ages.grain) - 1;
        self.ends.note(end.min(self.newest), index, &self.ages);
        self.since = self.since.min(index);
        true
    }

    /// Puts a code in its place, or renews its stamp.
    #[inline(always)]
    fn place(&mut self, code: u128, stamp: u64) -> bool {
        let (bucket, low) = self.split(code);
        let item = low << self.shape.stamp_bits | u128::from(stamp);
        let places = self.places(bucket);
        let at = self.seek(places, low);
        if at < places.1 {
            let same = self.item(at);
            if self.code_of(same) == low {
                let live = Live { index: self.index, mask: self.ages.mask(), ages: 0 };
                if live.age(stamp) < live.age(same as u64) {
                    self.set(at, item);
                }
                return true;
            }
        }
        if self.is_full() {
            return false;
        }
        self.open(at);
        self.set(at, item);
        self.starts[bucket + 1..].iter_mut().for_each(|start| *start += 1);
        true
    }

    /// Moves all items from a place on by one. What is at the place then is none.
    #[inline(always)]
    fn open(&mut self, at: usize) {
        let width = self.shape.width() as usize;
        let (from, to) = (at * width, (self.len() + 1) * width);
        let (first, end) = (from / 64, to.div_ceil(64));
        let before = (1 << (from % 64)) - 1;
        let kept = self.words[first] & before;
        let (by_words, by_bits) = (width / 64, width % 64);
        if by_words > 0 {
            self.words.copy_within(first..end - by_words, first + by_words);
        }
        if by_bits > 0 {
            let mut carried = 0;
            for word in &mut self.words[first + by_words..end] {
                let moved = *word << by_bits | carried;
                carried = *word >> (64 - by_bits);
                *word = moved;
            }
        }
        self.words[first] = self.words[first] & !before | kept;
    }

    /// Moves on to a later moment, before anything of it is remembered. Nothing that is live is dropped: always 0.
    pub(super) fn advance(&mut self, now: Now) -> u64 {
        self.newest = now.moment;
        let index = self.ages.index(now.moment);
        if index > self.index {
            if index - self.since > self.ages.mask() {
                self.drop_expired(now.moment);
            }
            self.index = index;
        }
        0
    }

    /// Makes room where there is none, if more has expired than at the last pass. How many arrivals there were does not
    /// matter. Nothing that is live is dropped: always 0.
    pub(super) fn pace(&mut self, _arrivals: i64, now: Now) -> u64 {
        let may_expire = self.is_full() && !self.ages.is_eternal();
        if may_expire && self.ends.oldest(now.moment, &self.ages) > self.since {
            self.drop_expired(now.moment);
        }
        0
    }

    /// Drops all, as of this moment.
    pub(super) fn clear(&mut self, moment: u64) {
        self.starts.fill(0);
        self.since = self.ages.index(moment);
    }

    /// Drops what has expired, for certain.
    pub(super) fn drop_expired(&mut self, moment: u64) {
        let oldest = self.ends.oldest(moment, &self.ages);
        let live = self.ages.live_since(self.index, oldest);
        self.retain(|stamp| live.has(stamp));
        self.since = oldest;
    }

    /// Drops the items of the oldest eighth of the time that all are from, but no more than an eighth of all, and none of the
    /// present grain. Gives how many of them were live.
    pub(super) fn forget_oldest(&mut self, moment: u64) -> u64 {
        let live = self.ages.live(self.index, moment, u64::MAX);
        let age = |at| live.age(self.item(at) as u64);
        let oldest = (0..self.len()).map(age).max().unwrap_or(0);
        if oldest == 0 {
            return 0;
        }
        let (least, most) = (oldest + 1 - oldest.div_ceil(8), self.len().div_ceil(8));
        let (mut dropped, mut forgotten) = (0, 0);
        self.retain(|stamp| {
            let is_dropped = dropped < most && live.age(stamp) >= least;
            dropped += usize::from(is_dropped);
            forgotten += u64::from(is_dropped && live.has(stamp));
            !is_dropped
        });
        forgotten
    }

    /// Keeps the items whose stamps are to be kept; the stamps come with other bits above them.
    #[inline(always)]
    fn retain(&mut self, mut is_kept: impl FnMut(u64) -> bool) {
        let (mut at, mut kept) = (0, 0);
        for bucket in 0..self.shape.buckets {
            let end = usize::from(self.starts[bucket + 1]);
            while at < end {
                let item = self.item(at);
                if is_kept(item as u64) {
                    if kept < at {
                        self.set(kept, item);
                    }
                    kept += 1;
                }
                at += 1;
            }
            self.starts[bucket + 1] = kept as u16;
        }
    }

    /// Goes through all codes and stamps, those that have expired among them.
    pub(super) fn for_each(&self, mut each: impl FnMut(u128, u64)) {
        for bucket in 0..self.shape.buckets {
            let (from, to) = self.places(bucket);
            for at in from..to {
                let item = self.item(at);
                let code = (bucket as u128) << self.shape.low_bits | self.code_of(item);
                each(code, item as u64 & self.ages.mask());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    proptest! {
        /// Codes of any width are found where they were put, as long as they are live, and nothing else is.
        #[test]
        fn it_holds_what_a_map_holds(
            stamp_bits in 2u32..60,
            wide in 0u32..66,
            most in 1usize..200,
            arrivals in proptest::collection::vec((any::<u128>(), any::<bool>(), 0u64..4), 1..400),
        ) {
            let count = (1u128 << (wide + 1)) + 1;
            // One grain a tick, half of the cycle for the window.
            let span = 1u64 << (stamp_bits - 1);
            let spare = (u64::MAX >> (64 - stamp_bits)) - span;
            let ages = Ages { bits: stamp_bits, grain: 1, span, spare };
            let shape = FlatShape::new(most, count, stamp_bits);
            prop_assert!(shape.width() <= 127);
            let mut flat = Flat::new(ages, shape);
            let mut oracle: BTreeMap<u128, u64> = BTreeMap::new();
            let mut moment = 0;
            for (code, near, later) in arrivals {
                let code = if near { code % 40 % count } else { code % count };
                moment += later;
                let now = Now { moment, horizon: 0 };
                prop_assert_eq!(flat.advance(now) + flat.pace(0, now), 0);
                let is_in = flat.insert(code, moment);
                if is_in {
                    oracle.insert(code, moment);
                } else {
                    oracle.retain(|_, &mut last| last + span >= moment);
                    prop_assert!(oracle.len() >= most && !oracle.contains_key(&code));
                }
                let live = ages.live(moment, moment, u64::MAX);
                let is_live = |last: &u64| last + span >= moment;
                for first in [code.saturating_sub(1), code, code / 2] {
                    let last = (first + code % 7).min(count - 1);
                    let expected = oracle.range(first..=last).any(|(_, last)| is_live(last));
                    prop_assert_eq!(flat.finds((first, last), &live), expected);
                }
                let mut found = Vec::new();
                flat.for_each(|code, stamp| if live.has(stamp) { found.push((code, stamp)) });
                let expected: Vec<_> = (oracle.iter().filter(|(_, last)| is_live(last)))
                    .map(|(&code, last)| (code, last & ages.mask()))
                    .collect();
                prop_assert_eq!(found, expected);
            }
            prop_assert_eq!(flat.memory() as u64, shape.memory());
        }

        /// With grains of many ticks nothing live is lost, whatever is dropped to make room; nor is anything found that is older than
        /// its stamp allows.
        #[test]
        fn it_keeps_what_is_live_in_coarse_grains(
            stamp_bits in 2u32..8,
            grain in 2u64..50,
            most in 1usize..60,
            arrivals in proptest::collection::vec((0u128..200, 0u64..400), 1..400),
        ) {
            let span = (grain << (stamp_bits - 1)) - 1;
            let spare = (u64::MAX >> (64 - stamp_bits)) - span.div_ceil(grain);
            let ages = Ages { bits: stamp_bits, grain, span, spare };
            let mut flat = Flat::new(ages, FlatShape::new(most, 200, stamp_bits));
            let mut oracle: BTreeMap<u128, u64> = BTreeMap::new();
            let mut moment = 0;
            for (code, later) in arrivals {
                // Bursts and pauses.
                moment += later.saturating_sub(300);
                let now = Now { moment, horizon: 0 };
                prop_assert_eq!(flat.advance(now) + flat.pace(0, now), 0);
                if flat.insert(code, ages.index(moment)) {
                    oracle.insert(code, moment);
                } else {
                    prop_assert_eq!(flat.len(), most);
                }
                let live = ages.live(ages.index(moment), moment, u64::MAX);
                for (&code, &last) in &oracle {
                    let is_found = flat.finds((code, code), &live);
                    prop_assert!(is_found || last + span < moment, "{} of {} at {}", code, last, moment);
                    prop_assert!(!is_found || last + span + grain > moment, "{} of {} at {}", code, last, moment);
                }
            }
        }
    }
}
