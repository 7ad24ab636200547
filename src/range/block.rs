//! A block of items in the order of their codes.

use super::word::{BLOCK, Word};
use crate::bits::dispatch::Bits;
use crate::bits::prefetch::prefetch;

/// Words of a block before the last, which has the number of items and the ranks.
const WORDS: usize = BLOCK / 8 - 1;

/// Where the fields end, in bits.
const END: usize = 64 * WORDS;

/// Sorted items as Elias and Fano coded them: the high bits of each, its *bucket*, as a step in unary
/// from the one before; the low bits, its *field*, as they are.
///
/// The steps begin at the front, one bit a bucket passed (0) and one an item (1); the fields begin at the
/// back. So a block can be added to until the two meet, and looked at at any time. The last word holds the
/// number of items, and *ranks*: how many items come before the first, second and third of some
/// words of steps, or 0 where the steps do not get there.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Block(pub(super) [u8; BLOCK]);

/// How a level's blocks are laid out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Layout {
    /// Bits of a field.
    pub(super) bits: u32,
    /// Words of steps between two ranks.
    stride: usize,
}

impl Layout {
    pub(super) fn new(bits: u32) -> Self {
        // Of steps there are some 2.6 bits an item: so there are about four strides.
        let steps = END / (bits as usize + 3) * 13 / 5;
        Self { bits, stride: steps.div_ceil(256).max(1) }
    }
}

impl Layout {
    /// Items that a block has room for, if they are all in one bucket.
    pub(super) fn most_items(&self) -> usize {
        END / (self.bits as usize + 1)
    }
}

/// Ranks of a block.
const RANKS: usize = 3;

impl Block {
    pub(super) const EMPTY: Self = Self([0; BLOCK]);

    /// A number in the last word.
    #[inline(always)]
    fn noted(&self, at: usize) -> usize {
        let at = WORDS * 8 + at * 2;
        usize::from(u16::from_le_bytes([self.0[at], self.0[at + 1]]))
    }

    fn note(&mut self, at: usize, number: usize) {
        let at = WORDS * 8 + at * 2;
        self.0[at..at + 2].copy_from_slice(&(number as u16).to_le_bytes());
    }

    /// Items in it.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.noted(0)
    }

    #[inline(always)]
    fn word(&self, word: usize) -> u64 {
        let mut eight = [0; 8];
        let at = (word * 8).min(BLOCK - 8);
        eight.copy_from_slice(&self.0[at..at + 8]);
        u64::from_le_bytes(eight)
    }

    /// Sets the bits of a word that are set in another.
    #[inline(always)]
    fn unite(&mut self, word: usize, bits: u64) {
        let united = self.word(word) | bits;
        let at = (word * 8).min(BLOCK - 8);
        self.0[at..at + 8].copy_from_slice(&united.to_le_bytes());
    }

    /// The field of an item, of so many bits.
    #[inline(always)]
    pub(super) fn field<W: Word>(&self, item: usize, bits: u32) -> W {
        W::load(&self.0, END.wrapping_sub((item + 1) * bits as usize)) & W::mask(bits)
    }

    /// Before the first item.
    #[inline(always)]
    pub(super) fn start(&self) -> Place {
        Place { word: self.word(0), at: 0, item: 0, len: self.len() }
    }

    /// Before the first item that is not less than this one.
    #[inline(always)]
    pub(super) fn seek<W: Word>(
        &self,
        bucket: u64,
        field: W,
        layout: Layout,
        processor: impl Bits,
    ) -> Place {
        let mut place = self.start();
        if bucket == 0 {
            self.skip_less(&mut place, 0, field, layout.bits);
            return place;
        }
        // Past so many zeros: first the ranks, then the words of a stride, then the bits of a word tell where. Which
        // one is as good as random, so that it is computed and not branched for.
        let mut rank = 0;
        for next in 1..=RANKS {
            rank += usize::from(self.zeros_before(next, layout) < bucket);
        }
        // Number 0 of what is noted is no rank.
        let mut item = if rank > 0 { self.noted(rank) } else { 0 };
        let mut zeros = bucket - (rank * layout.stride * 64 - item) as u64;
        let mut at = rank * layout.stride;
        // Behind the last step other things follow, but by then all items have been counted.
        while item < place.len {
            let words = [self.word(at), self.word(at + 1), self.word(at + 2), self.word(at + 3)];
            let mut ones = [0; 4];
            for word in 0..4 {
                ones[word] = u64::from(words[word].count_ones());
            }
            let mut past = [0; 4];
            for word in 1..4 {
                past[word] = past[word - 1] + 64 - ones[word - 1];
            }
            let word = usize::from(past[1] < zeros)
                + usize::from(past[2] < zeros)
                + usize::from(past[3] < zeros);
            if past[3] + 64 - ones[3] < zeros {
                item += (ones[0] + ones[1] + ones[2] + ones[3]) as usize;
                (at, zeros) = (at + 4, zeros - (past[3] + 64 - ones[3]));
                continue;
            }
            item += word * 64 - past[word] as usize;
            zeros -= past[word];
            let past = processor.nth_one(!words[word], zeros as u32 - 1) + 1;
            item += past as usize - zeros as usize;
            if item >= place.len {
                break;
            }
            let rest = if past < 64 { words[word] & (u64::MAX << past) } else { 0 };
            place = Place { word: rest, at: at + word, item, len: place.len };
            self.skip_less(&mut place, past, field, layout.bits);
            return place;
        }
        place.item = place.len;
        place
    }

    /// Zeros before the words of a rank; more than any where the steps do not go so far.
    #[inline(always)]
    fn zeros_before(&self, rank: usize, layout: Layout) -> u64 {
        let items = self.noted(rank);
        let before = (rank * layout.stride * 64).wrapping_sub(items) as u64;
        if items > 0 { before } else { u64::MAX }
    }

    /// From the first step of a bucket to its first item that is not less.
    #[inline(always)]
    fn skip_less<W: Word>(&self, place: &mut Place, step: u32, field: W, bits: u32) {
        let mut from = step;
        // A few one by one, as there mostly are; a crowd by halving.
        for _ in 0..6 {
            if from == 64 {
                place.at += 1;
                place.word = self.word(place.at);
                from = 0;
            }
            let is_in_bucket = place.item < place.len && place.word >> from & 1 == 1;
            if !is_in_bucket || self.field::<W>(place.item, bits) >= field {
                return;
            }
            place.word &= place.word - 1;
            place.item += 1;
            from += 1;
        }
        let (mut low, mut high) = (0, self.crowd(place, from));
        while low < high {
            let middle = (low + high) / 2;
            if self.field::<W>(place.item + middle, bits) < field {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let step = place.at * 64 + from as usize + low;
        place.item += low;
        place.at = step / 64;
        place.word = self.word(place.at) & (u64::MAX << (step % 64));
    }

    /// How many more items are in the same bucket.
    #[inline(never)]
    fn crowd(&self, place: &Place, from: u32) -> usize {
        let most = place.len - place.item;
        let (mut crowd, mut at, mut from) = (0, place.at, from);
        while crowd < most {
            let run = if from < 64 { (self.word(at) >> from).trailing_ones() } else { 0 };
            crowd += run as usize;
            if from + run < 64 {
                break;
            }
            (at, from) = (at + 1, 0);
        }
        crowd.min(most)
    }

    /// Appends all items from a place on, whole, with the bucket of the block's first.
    #[inline(always)]
    pub(super) fn read<W: Word>(
        &self,
        place: Place,
        first: u64,
        bits: u32,
        items: &mut [W],
    ) -> usize {
        let Place { mut word, mut at, mut item, len } = place;
        let (mask, mut read) = (W::mask(bits), 0);
        let mut begin = END.wrapping_sub(item * bits as usize);
        while item < len && at < WORDS {
            while word != 0 && item < len && read < items.len() {
                let step = at * 64 + word.trailing_zeros() as usize;
                word &= word - 1;
                begin = begin.wrapping_sub(bits as usize);
                let bucket = first + (step.wrapping_sub(item)) as u64;
                items[read] = W::from_low(bucket) << bits | (W::load(&self.0, begin) & mask);
                item += 1;
                read += 1;
            }
            at += 1;
            word = self.word(at);
        }
        read
    }

    /// Begins to fetch the ranks, and the fields and steps about so many 256ths of the way through them.
    #[inline(always)]
    pub(super) fn prefetch(&self, layout: Layout, share: u64) {
        prefetch(&self.0, BLOCK - 1);
        // Of a full block some 2.6 bits an item are steps.
        let steps = BLOCK as u64 * 26 / (10 * u64::from(layout.bits) + 26);
        let fields = (BLOCK as u64 - steps) * (256 - share) / 256 + steps;
        prefetch(&self.0, (steps * share / 256) as usize);
        prefetch(&self.0, (fields as usize).min(BLOCK - 1));
        prefetch(&self.0, (fields as usize).saturating_sub(48));
    }

    /// Is it what a writer makes of the items in it, and are their codes in order, without the stamps of so many bits?
    /// Then their number, and the bucket of the last.
    pub(super) fn check<W: Word>(&self, layout: Layout, stamp_bits: u32) -> Option<(usize, u64)> {
        let (mut writer, mut place) = (Writer::<W>::new(layout), self.start());
        let mut last: Option<(u64, W)> = None;
        while let Some((bucket, field)) = place.next::<W>(self, layout.bits) {
            let code = (bucket, field >> stamp_bits);
            let is_in_order = last.is_none_or(|last| last < code);
            if !is_in_order || writer.fill(&[W::from_low(bucket) << layout.bits | field], 0) == 0 {
                return None;
            }
            last = Some(code);
        }
        let (last, _) = last?;
        (writer.written().0 == self.0).then_some((writer.pen.len, last))
    }
}

/// Fills a block.
#[derive(Clone, Debug)]
pub(super) struct Writer<W> {
    block: Block,
    layout: Layout,
    ranks: [u16; RANKS],
    pub(super) pen: Pen<W>,
}

/// Where a writer is: apart from what it writes, to be kept in registers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pen<W> {
    /// Items written.
    pub(super) len: usize,
    /// The word of steps, and what is set in it.
    at: usize,
    steps: u64,
    /// Where the fields begin, and their first bits.
    begin: usize,
    fields: W,
}

impl<W: Word> Writer<W> {
    pub(super) fn new(layout: Layout) -> Self {
        let pen = Pen { len: 0, at: 0, steps: 0, begin: END, fields: W::default() };
        Self { block: Block::EMPTY, layout, ranks: [0; RANKS], pen }
    }

    /// Goes on with a block whose last item is in this bucket, counted from the first one's.
    pub(super) fn resume(block: &Block, last: u64, layout: Layout) -> Self {
        let len = block.len();
        let at = (last as usize + len).saturating_sub(1) / 64;
        let begin = END - (len * layout.bits as usize).min(END);
        // If fields are in the word of steps too they are put where they are.
        let (steps, fields) = (block.word(at), W::load(&block.0, begin.min(END - 1)));
        let fields = if len == 0 { W::default() } else { fields };
        let pen = Pen { len, at, steps, begin, fields };
        let ranks = [1, 2, 3].map(|rank| block.noted(rank) as u16);
        Self { block: block.clone(), layout, ranks, pen }
    }

    /// Adds items, after all that are there, as long as there is room. They are given whole, and the bucket of the
    /// block's first. Gives how many were added.
    #[inline(always)]
    pub(super) fn fill(&mut self, items: &[W], first: u64) -> usize {
        let (bits, mut pen) = (self.layout.bits, self.pen);
        let mask = W::mask(bits);
        let mut added = 0;
        while added < items.len() {
            let item = items[added];
            let step = ((item >> bits).low().wrapping_sub(first) as usize).saturating_add(pen.len);
            // A byte in between is cleared when a field is put down.
            if step.saturating_add(bits as usize + 8) >= pen.begin {
                break;
            }
            if step / 64 != pen.at {
                self.go_to(pen.at, step / 64, pen.steps, pen.len);
                (pen.at, pen.steps) = (step / 64, 0);
            }
            pen.steps |= 1 << (step % 64);
            // The fields before come along: so there is no need to read what is there.
            pen.fields = pen.fields << bits | (item & mask);
            pen.begin -= bits as usize;
            W::store(&mut self.block.0, pen.begin, pen.fields);
            pen.len += 1;
            added += 1;
        }
        self.pen = pen;
        added
    }

    /// Begins another word of steps.
    #[inline(never)]
    fn go_to(&mut self, from: usize, at: usize, steps: u64, len: usize) {
        self.block.unite(from, steps);
        let stride = self.layout.stride;
        for rank in from / stride + 1..=(at / stride).min(RANKS) {
            self.ranks[rank - 1] = len as u16;
        }
    }

    /// The block, with all that was added.
    pub(super) fn written(&mut self) -> &Block {
        self.block.unite(self.pen.at, self.pen.steps);
        self.block.note(0, self.pen.len);
        for (rank, at) in self.ranks.into_iter().zip(1..) {
            self.block.note(at, usize::from(rank));
        }
        &self.block
    }
}

/// A place between two items of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Steps yet to go in this word of them.
    word: u64,
    at: usize,
    /// The next item's number.
    item: usize,
    len: usize,
}

impl Place {
    /// The next item: its bucket, counted from the block's first, and its field.
    #[inline(always)]
    pub(super) fn next<W: Word>(&mut self, block: &Block, bits: u32) -> Option<(u64, W)> {
        if self.item >= self.len {
            return None;
        }
        while self.word == 0 {
            self.at += 1;
            if self.at >= BLOCK / 8 {
                self.item = self.len;
                return None;
            }
            self.word = block.word(self.at);
        }
        let step = self.at * 64 + self.word.trailing_zeros() as usize;
        self.word &= self.word - 1;
        let bucket = step.wrapping_sub(self.item) as u64;
        let field = block.field(self.item, bits);
        self.item += 1;
        Some((bucket, field))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::dispatch::Portable;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn behaves_as_a_vector<W: Word>(bits: u32, gaps: &[u128]) {
        let layout = Layout::new(bits);
        let (mut writer, mut items) = (Writer::new(layout), Vec::new());
        let mut item = 0u128;
        for gap in gaps {
            item += gap + 1;
            let word = W::from_wide(item);
            let start = items.first().copied().unwrap_or(item) >> bits;
            let bucket = (word >> bits).low() - start as u64;
            if writer.fill(&[word], start as u64) == 0 {
                break;
            }
            items.push(item);
            if item.is_multiple_of(7) {
                writer = Writer::resume(writer.written(), bucket, layout);
            }
        }
        let block = writer.written().clone();
        let start = items.first().map_or(0, |item| item >> bits);
        assert_eq!(block.len(), items.len());
        if let Some(last) = items.last() {
            let last = ((last >> bits) - start) as u64;
            assert_eq!(block.check::<W>(layout, 0), Some((items.len(), last)));
        }
        let mut asked: Vec<u128> =
            items.iter().flat_map(|&item| [item - 1, item, item + 1]).collect();
        asked.extend([0, item + (5 << bits), item + (50_000 << bits)]);
        for ask in asked {
            let word = W::from_wide(ask);
            if ask >> bits < start {
                continue;
            }
            let bucket = (word >> bits).low() - start as u64;
            let mut place = block.seek(bucket, word & W::mask(bits), layout, Portable);
            let rest = items.iter().copied().filter(|&item| item >= ask);
            for item in rest.take(3) {
                let (bucket, field) = place.next::<W>(&block, bits).unwrap();
                let bucket = start + u128::from(bucket);
                assert_eq!(bucket << bits | field.wide(), item, "{ask}");
            }
        }
    }

    proptest! {
        /// Against a plain vector: sparse, crowded and mixed, filled to the brim.
        #[test]
        fn items_are_found(
            bits in 1u32..57, spread in 0u32..62, crowd in 0u128..4,
            gaps in prop::collection::vec(any::<u32>(), 0..1_200),
        ) {
            let gaps: Vec<u128> = gaps
                .iter()
                .map(|&gap| if u128::from(gap) % 4 < crowd {
                    0
                } else {
                    (u128::from(gap) << 30) >> (62 - spread.min(bits + 4))
                })
                .collect();
            behaves_as_a_vector::<u64>(bits.min(50), &gaps.iter().map(|gap| gap % (1 << 50)).collect::<Vec<_>>());
            behaves_as_a_vector::<u128>(bits * 2, &gaps);
        }
    }
}
