//! The sweep of a level: what is read, merged with what comes in from above, and written behind.

use super::{Entry, Level};
use crate::bits::dispatch::Bits;
use crate::range::ages::Live;
use crate::range::block::Writer;
use crate::range::pool::Pool;
use crate::range::word::Word;
use alloc::vec;
use alloc::vec::Vec;

/// Items that one step of a sweep takes in, at most.
pub(in crate::range) const INTAKE: usize = 256;

/// What a step drops in addition to what has expired.
pub(in crate::range) struct Drop<W> {
    /// What the level below has taken: from the first to the second, round the end if they are so ordered.
    pub(in crate::range) taken: (W, W),
    /// Where the step overtakes the level below: from there on it looks at items which it wrote after that one
    /// had been there.
    pub(in crate::range) overtakes: W,
    pub(in crate::range) live: Live,
    /// Live by the window, if not by the policy for full ones.
    pub(in crate::range) by_window: Live,
    /// Those that were live and yet dropped.
    pub(in crate::range) forgotten: u64,
}

impl<W: Word> Drop<W> {
    /// What of it lies in a step that begins at the cursor: from the first to the second. Of two parts the first:
    /// what is not dropped now is dropped in the next round.
    fn taken_in_step(&self, cursor: W) -> (W, W) {
        let (from, to) = self.taken;
        let to = if from <= to || cursor < to { to } else { W::END };
        let from =
            if self.taken.0 <= self.taken.1 || cursor >= self.taken.1 { from } else { cursor };
        (from, to.min(self.overtakes))
    }
}

impl<W: Word> Level<W> {
    /// Goes on with the sweep up to `until`, which is at most [`Level::reach`], with all that comes in from
    /// above up to there. Gives how many items were lost as there is no memory for another block.
    ///
    /// Read, merge and write are three loops: each is short enough to be kept in registers.
    #[inline(always)]
    pub(in crate::range) fn step(
        &mut self,
        until: W,
        desk: &mut Desk<W>,
        drop: &mut Drop<W>,
        pool: &mut Pool,
        index: u64,
        processor: impl Bits,
    ) -> u64 {
        let read = self.read_old(until, &mut desk.read, pool, processor);
        desk.merge(read, self.shape.stamp_bits, drop.taken_in_step(self.cursor), drop);
        let lost = self.write_new(&desk.merged[..desk.left], pool);
        self.cursor = until;
        if until == W::END {
            self.finish_round(index);
        }
        lost
    }

    /// Reads what is left of the first old block up to `until`, and lets it go if that is all. Gives the number of
    /// items read.
    #[inline(always)]
    fn read_old(
        &mut self,
        until: W,
        items: &mut [W],
        pool: &mut Pool,
        processor: impl Bits,
    ) -> usize {
        if self.old == 0 {
            return 0;
        }
        let entry = self.ring[0];
        let (first, layout) = (u64::from(entry.first), self.shape.layout);
        let block = pool.block(entry.block);
        let bucket = self.bucket_of(self.cursor);
        let place = if bucket >= first {
            block.seek(bucket - first, self.field_of(self.cursor), layout, processor)
        } else {
            block.start()
        };
        let all = block.read(place, first, layout.bits, items);
        let read = if all > 0 && items[all - 1] >= until {
            items[..all].partition_point(|&item| item < until)
        } else {
            all
        };
        self.items -= read as u64;
        if read == all {
            self.ring.pop_front();
            self.old -= 1;
            self.gone = self.gone.wrapping_add(1);
            pool.give_back(entry.block);
        }
        read
    }

    /// Adds items behind all others.
    #[inline(always)]
    fn write_new(&mut self, items: &[W], pool: &mut Pool) -> u64 {
        let (mut writer, mut first) = match (self.open, self.ring.back()) {
            (Some(last), Some(entry)) => {
                let block = pool.block(entry.block);
                (Writer::resume(block, last, self.shape.layout), u64::from(entry.first))
            }
            _ => (Writer::new(self.shape.layout), 0),
        };
        let (mut written, mut lost) = (0, 0);
        while written < items.len() {
            if self.open.is_some() {
                let added = writer.fill(&items[written..], first);
                written += added;
                if added > 0 {
                    self.open = Some(self.bucket_of(items[written - 1]) - first);
                }
                if written == items.len() {
                    break;
                }
                self.put_away(&mut writer, pool);
            }
            // The next begins a block.
            let bucket = self.bucket_of(items[written]);
            if self.begin_block(bucket, pool) {
                (first, writer) = (bucket, Writer::new(self.shape.layout));
            } else {
                lost = (items.len() - written) as u64;
                break;
            }
        }
        self.put_away(&mut writer, pool);
        self.items += written as u64;
        lost
    }

    /// Begins a block with an item of this bucket. `false` where there is no memory for it.
    fn begin_block(&mut self, bucket: u64, pool: &mut Pool) -> bool {
        let Some(block) = pool.take() else {
            self.open = None;
            return false;
        };
        let number = self.gone.wrapping_add(self.ring.len() as u32);
        // A prefix begins in the block before, or in the very first.
        let before = if self.ring.len() > self.old { number.wrapping_sub(1) } else { number };
        let prefix = ((bucket >> self.shape.prefix_bits) as usize).min(self.shape.prefixes);
        if prefix >= self.indexed {
            self.index[self.indexed..=prefix].fill(before);
            self.indexed = prefix + 1;
        }
        self.ring.push_back(Entry { first: bucket as u32, block });
        self.open = Some(0);
        true
    }

    /// Puts what has been written into its block.
    fn put_away(&self, writer: &mut Writer<W>, pool: &mut Pool) {
        if let (Some(_), Some(last)) = (self.open, self.ring.back()) {
            pool.block_mut(last.block).clone_from(writer.written());
        }
    }

    fn finish_round(&mut self, index: u64) {
        let last = self.gone.wrapping_add(self.ring.len() as u32).wrapping_sub(1);
        let last = if self.ring.is_empty() { self.gone } else { last };
        self.index[self.indexed..].fill(last);
        self.indexed = 0;
        self.old = self.ring.len();
        if self.old > 4 * self.shape.prefixes && self.shape.prefix_bits > 1 {
            self.refine();
        }
        self.open = None;
        self.cursor = W::default();
        self.rounds += 1;
        self.began = [self.began[1], index];
    }
}

/// What a step works on.
#[derive(Clone, Debug)]
pub(in crate::range) struct Desk<W> {
    /// What comes in from above: up to [`INTAKE`] items, and one more.
    pub(in crate::range) intake: Vec<W>,
    /// A block's items.
    read: Vec<W>,
    /// What is to be written.
    merged: Vec<W>,
    left: usize,
}

impl<W: Word> Desk<W> {
    /// For blocks of at most so many items.
    pub(in crate::range) fn new(items: usize) -> Self {
        let intake = Vec::with_capacity(INTAKE + 1);
        let (read, merged) = (vec![W::default(); items], vec![W::default(); items + INTAKE + 1]);
        Self { intake, read, merged, left: 0 }
    }

    /// Bytes allocated.
    pub(in crate::range) fn memory(&self) -> usize {
        let words = self.intake.capacity() + self.read.capacity() + self.merged.capacity();
        words * size_of::<W>()
    }

    /// Merges what came in with what was read: of equal codes the younger, and nothing that is to be dropped.
    #[inline(always)]
    fn merge(&mut self, read: usize, stamp_bits: u32, taken: (W, W), drop: &mut Drop<W>) {
        let Self { intake, read: items, merged, left } = self;
        let (items, live) = (&items[..read], drop.live);
        if live.ages < drop.by_window.ages {
            let is_forgotten = |item: &W| !live.has(item.low()) && drop.by_window.has(item.low());
            let is_taken = |item: &W| taken.0 <= *item && *item < taken.1;
            let kept = items.iter().filter(|item| !is_taken(item) && is_forgotten(item)).count();
            drop.forgotten +=
                (kept + intake.iter().filter(|item| is_forgotten(item)).count()) as u64;
        }
        let (mut at, mut to) = (0, 0);
        let mut next = 0;
        loop {
            let until = intake.get(next).map_or(W::END, |&item| item >> stamp_bits << stamp_bits);
            // Which ones are dropped is as good as random, so that it is computed and not branched for.
            while at < items.len() && items[at] < until {
                let item = items[at];
                merged[to] = item;
                let is_taken = (taken.0 <= item) & (item < taken.1);
                to += usize::from(live.has(item.low()) & !is_taken);
                at += 1;
            }
            let Some(&(mut item)) = intake.get(next) else { break };
            next += 1;
            if let Some(&other) = items.get(at)
                && other >> stamp_bits == item >> stamp_bits
            {
                let is_taken = taken.0 <= other && other < taken.1;
                let is_younger = live.age(other.low()) < live.age(item.low());
                item = if is_younger && !is_taken { other } else { item };
                at += 1;
            }
            merged[to] = item;
            to += usize::from(live.has(item.low()));
        }
        *left = to;
    }
}
