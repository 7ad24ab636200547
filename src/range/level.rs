//! One level of a range window: sorted items in blocks, rewritten by a sweep that goes round.

mod sweep;

pub(super) use sweep::{Desk, Drop, INTAKE};

use super::ages::Live;
use super::block::Layout;
use super::pool::Pool;
use super::word::Word;
use crate::bits::dispatch::{Bits, Portable};
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::{ControlFlow, Range};

/// How a level codes its items.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LevelShape {
    /// Its fields: the low bits of a code, and the stamp.
    pub(super) layout: Layout,
    /// Bits of a stamp.
    pub(super) stamp_bits: u32,
    /// Buckets a prefix, as a power of two.
    pub(super) prefix_bits: u32,
    /// Prefixes that there are.
    pub(super) prefixes: usize,
    /// In how many arrivals the sweep goes round.
    pub(super) period: u64,
    /// Items from which on it goes round more seldom.
    pub(super) many: u64,
}

impl LevelShape {
    /// With so few prefixes as so many blocks need.
    pub(super) fn for_blocks(self, blocks: usize) -> Self {
        let mut shape = self;
        while shape.prefixes > 2 && shape.prefixes / 4 > blocks {
            shape.prefix_bits += 1;
            shape.prefixes = shape.prefixes / 2 + 1;
        }
        shape
    }
}

/// A block in its place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Entry {
    /// The bucket of its first item.
    pub(super) first: u32,
    /// Its number in the pool.
    pub(super) block: u32,
}

/// Items sorted by their codes, each code once.
///
/// The sweep reads the blocks in order of their codes, drops what has expired or been taken by the level
/// below, merges in what it takes from the level above, and writes new blocks behind: so the blocks
/// are a ring, in which those from the cursor on are of this round (*new*) and those before of the last
/// (*old*). Items below the cursor are found in the new ones, others in the old ones.
#[derive(Clone, Debug)]
pub(super) struct Level<W> {
    pub(super) shape: LevelShape,
    pub(super) ring: VecDeque<Entry>,
    /// Old ones among them, at the front.
    pub(super) old: usize,
    /// Blocks that have left at the front, modulo 2^32.
    gone: u32,
    /// Where the sweep is: a multiple of the cycle of stamps.
    pub(super) cursor: W,
    /// For each prefix the number (from the very first) of a block that its first item is not before.
    pub(super) index: Vec<u32>,
    /// Prefixes set in this round.
    pub(super) indexed: usize,
    /// The last item's bucket in the last block, counted from its first, if it is to be added to.
    pub(super) open: Option<u64>,
    /// Items in all blocks, from the cursor on in the old ones.
    pub(super) items: u64,
    /// Rounds that have been completed.
    pub(super) rounds: u64,
    /// Where the level below was when this one's sweep overtook it, and in which round: what lies
    /// between there and where that one is now has been taken and is dropped.
    pub(super) overtook: (W, u64),
    /// The grains when this round and the last one began.
    pub(super) began: [u64; 2],
    /// Until the next step is due: 256ths of an arrival.
    pub(super) wait: i64,
    /// Between two steps.
    pub(super) pause: i64,
}

impl<W: Word> Level<W> {
    pub(super) fn new(shape: LevelShape, blocks: usize) -> Self {
        Self {
            shape,
            ring: VecDeque::with_capacity(blocks),
            old: 0,
            gone: 0,
            cursor: W::default(),
            index: vec![0; shape.prefixes + 1],
            indexed: 0,
            open: None,
            items: 0,
            rounds: 0,
            overtook: (W::default(), 0),
            began: [0; 2],
            wait: 0,
            pause: 1,
        }
    }

    /// Bytes allocated but for the blocks.
    pub(super) fn memory(&self) -> usize {
        self.ring.capacity() * size_of::<Entry>() + self.index.capacity() * 4
    }

    /// The item without its stamp.
    #[inline(always)]
    pub(super) fn code_of(&self, item: W) -> W {
        item >> self.shape.stamp_bits << self.shape.stamp_bits
    }

    #[inline(always)]
    pub(super) fn bucket_of(&self, item: W) -> u64 {
        (item >> self.shape.layout.bits).low()
    }

    #[inline(always)]
    fn field_of(&self, item: W) -> W {
        item & W::mask(self.shape.layout.bits)
    }

    /// The item of a bucket and a field.
    #[inline(always)]
    pub(super) fn item(&self, bucket: u64, field: W) -> W {
        W::from_low(bucket) << self.shape.layout.bits | field
    }

    pub(super) fn first_item(&self, at: usize, pool: &Pool) -> W {
        let entry = self.ring[at];
        let field = pool.block(entry.block).field(0, self.shape.layout.bits);
        self.item(u64::from(entry.first), field)
    }

    /// The place in the ring of a block by its number.
    #[inline(always)]
    fn place_of(&self, number: u32) -> usize {
        let place = number.wrapping_sub(self.gone);
        // One that has left is far behind.
        if place > u32::MAX / 2 { 0 } else { place as usize }
    }

    /// A block in a part of the ring (not empty) from which on to look for items that are not less: it is the
    /// part's first, or begins no later than the item.
    #[inline(always)]
    pub(super) fn locate(&self, part: Range<usize>, item: W, pool: &Pool) -> usize {
        let bucket = self.bucket_of(item);
        let prefix = ((bucket >> self.shape.prefix_bits) as usize).min(self.shape.prefixes);
        let (mut low, mut high) = (part.start, part.end - 1);
        let is_old = part.end <= self.old;
        if (prefix < self.indexed) != is_old {
            low = low.max(self.place_of(self.index[prefix])).min(high);
        } else if !is_old {
            low = high;
        }
        let next = (prefix + 1).min(self.shape.prefixes);
        if next > prefix && (next < self.indexed) != is_old {
            high = high.min(self.place_of(self.index[next])).max(low);
        }
        let first = |at: usize| u64::from(self.ring[at].first);
        // The last block that begins before the bucket.
        while high - low > 8 {
            let middle = low + (high - low) / 2;
            if first(middle) < bucket { low = middle } else { high = middle }
        }
        // It is narrowed down to blocks that begin before, and perhaps one that does not. Mostly it is the first, or
        // one more: that is no better than guessed, so it is computed.
        for _ in 0..2 {
            let next = (low + 1).min(part.end - 1);
            low = if first(next) < bucket { next } else { low };
        }
        while low < part.end - 1 && first(low + 1) < bucket {
            low += 1;
        }
        // In a crowd several begin in the same bucket.
        if low < part.end - 1 && first(low + 1) == bucket {
            let crowd = low + 1..part.end;
            let (mut from, mut to) = (crowd.start, crowd.end);
            while from < to {
                let middle = from + (to - from) / 2;
                if first(middle) <= bucket && self.first_item(middle, pool) <= item {
                    from = middle + 1;
                } else {
                    to = middle;
                }
            }
            low = from - 1;
        }
        low
    }

    #[inline(always)]
    fn parts(&self) -> [Range<usize>; 2] {
        [self.old..self.ring.len(), 0..self.old]
    }

    /// Goes through the items of a part from one to another, both included, beginning in a block.
    #[inline(always)]
    pub(super) fn walk_part(
        &self,
        part: Range<usize>,
        block: usize,
        (from, to): (W, W),
        pool: &Pool,
        each: &mut impl FnMut(W) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let bits = self.shape.layout.bits;
        let mut skip = true;
        for at in block..part.end {
            let entry = self.ring[at];
            let first = u64::from(entry.first);
            if first > self.bucket_of(to) {
                break;
            }
            let block = pool.block(entry.block);
            let bucket = self.bucket_of(from);
            let mut place = if skip && bucket >= first {
                block.seek(bucket - first, self.field_of(from), self.shape.layout, Portable)
            } else {
                block.start()
            };
            skip = false;
            while let Some((bucket, field)) = place.next::<W>(block, bits) {
                let item = self.item(first + bucket, field);
                if item > to {
                    return ControlFlow::Continue(());
                }
                each(item)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Goes through the items from one to another, both included, in order.
    #[inline(always)]
    pub(super) fn walk(
        &self,
        from: W,
        to: W,
        pool: &Pool,
        mut each: impl FnMut(W) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let [new, old] = self.parts();
        if from < self.cursor && !new.is_empty() {
            let block = self.locate(new.clone(), from, pool);
            self.walk_part(new, block, (from, to), pool, &mut each)?;
        }
        if to >= self.cursor && !old.is_empty() {
            let from = from.max(self.cursor);
            let block = self.locate(old.clone(), from, pool);
            self.walk_part(old, block, (from, to), pool, &mut each)?;
        }
        ControlFlow::Continue(())
    }

    /// Begins to fetch what [`Level::finds`] will look at, and says where that is.
    #[inline(always)]
    pub(super) fn aim(&self, from: W, pool: &Pool) -> usize {
        let [new, old] = self.parts();
        let part = if from < self.cursor { new } else { old };
        if part.is_empty() {
            return usize::MAX;
        }
        let at = self.locate(part.clone(), from, pool);
        let entry = self.ring[at];
        let first = u64::from(entry.first);
        let next = self.ring.get(at + 1).map_or(first, |next| u64::from(next.first));
        let passed = self.bucket_of(from).saturating_sub(first);
        let share = (passed * 256 / next.saturating_sub(first).max(1)).min(256);
        pool.block(entry.block).prefetch(self.shape.layout, share);
        at
    }

    /// Is an item among these that is live? The block is what [`Level::aim`] said.
    #[inline(always)]
    pub(super) fn finds(
        &self,
        block: usize,
        (from, to): (W, W),
        live: &Live,
        pool: &Pool,
        processor: impl Bits,
    ) -> bool {
        let is_new = from < self.cursor;
        let end = if is_new { self.ring.len() } else { self.old };
        if block < end && self.finds_from(block, end, (from, to), live, pool, processor) {
            return true;
        }
        is_new && to >= self.cursor && self.old > 0 && self.finds_beyond_cursor(to, live, pool)
    }

    /// In the old part, of an interval that begins in the new one.
    #[cold]
    #[inline(never)]
    fn finds_beyond_cursor(&self, to: W, live: &Live, pool: &Pool) -> bool {
        let block = self.locate(0..self.old, self.cursor, pool);
        self.finds_from(block, self.old, (self.cursor, to), live, pool, Portable)
    }

    /// As [`Level::walk_part`]: without a closure, which would not be compiled as its caller is.
    #[inline(always)]
    fn finds_from(
        &self,
        block: usize,
        end: usize,
        (from, to): (W, W),
        live: &Live,
        pool: &Pool,
        processor: impl Bits,
    ) -> bool {
        let layout = self.shape.layout;
        let entry = self.ring[block];
        let mut first = u64::from(entry.first);
        let (bucket, mut at, mut block) = (self.bucket_of(from), block, pool.block(entry.block));
        let mut place = if bucket >= first {
            block.seek(bucket - first, self.field_of(from), layout, processor)
        } else {
            block.start()
        };
        loop {
            while let Some((bucket, field)) = place.next::<W>(block, layout.bits) {
                let item = self.item(first + bucket, field);
                if item > to {
                    return false;
                }
                if live.has(item.low()) {
                    return true;
                }
            }
            at += 1;
            if at >= end {
                return false;
            }
            let entry = self.ring[at];
            first = u64::from(entry.first);
            if first > self.bucket_of(to) {
                return false;
            }
            block = pool.block(entry.block);
            place = block.start();
        }
    }

    /// How far the next step goes: to the second old block.
    pub(super) fn reach(&self, pool: &Pool) -> W {
        if self.old > 1 { self.code_of(self.first_item(1, pool)) } else { W::END }
    }

    /// Four times as many prefixes, as there are many more blocks than when they were chosen.
    #[cold]
    fn refine(&mut self) {
        self.shape.prefix_bits -= 2;
        self.shape.prefixes *= 4;
        self.index.resize(self.shape.prefixes + 1, 0);
        let last = self.gone.wrapping_add(self.ring.len() as u32).wrapping_sub(1);
        let indexed = self.index_blocks(0..self.ring.len());
        self.index[indexed..].fill(last);
    }

    /// Sets the prefixes up to where the last of these blocks begins, as writing them does.
    pub(super) fn index_blocks(&mut self, blocks: Range<usize>) -> usize {
        let mut indexed = 0;
        for at in blocks.clone() {
            let bucket = u64::from(self.ring[at].first);
            let prefix = ((bucket >> self.shape.prefix_bits) as usize).min(self.shape.prefixes);
            if prefix >= indexed {
                let before = at.saturating_sub(1).max(blocks.start) as u32;
                self.index[indexed..=prefix].fill(self.gone.wrapping_add(before));
                indexed = prefix + 1;
            }
        }
        indexed
    }

    /// Sets the pace by how much there is to do now, here and above: a window that fills up has more from step to
    /// step.
    ///
    /// With `f` times as many items as planned a round takes `√f` times as many arrivals: so the cost of an arrival
    /// grows by `√f` here, and no more in the level above, in which so many more items wait. Nor do stamps
    /// come round: the arrivals are `f` times as dense.
    pub(super) fn set_pace(&mut self, above: u64) {
        let steps = (self.ring.len() as u64).max(above / INTAKE as u64) + 1;
        let longer = (self.items / self.shape.many).isqrt().max(1);
        let pause = self.shape.period.saturating_mul(longer).saturating_mul(256) / steps;
        self.pause = i64::try_from(pause).unwrap_or(i64::MAX).max(1);
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self, pool: &mut Pool, index: u64) {
        for entry in self.ring.drain(..) {
            pool.give_back(entry.block);
            self.gone = self.gone.wrapping_add(1);
        }
        (self.old, self.indexed, self.open, self.items) = (0, 0, None, 0);
        self.cursor = W::default();
        self.overtook = (W::default(), 0);
        self.rounds = 0;
        self.began = [index; 2];
    }
}
