//! A sparse array in blocks: an empty position costs one bit.

use crate::bits::packed::Packed;
use crate::bits::pages::Pages;
use crate::bits::swept::Swept;
use crate::codec::{Reader, Writer};
use crate::{PlanError, SnapshotError};
use core::ops::Range;

/// What a position may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) stamp: u64,
    pub(super) signature: u64,
    /// Its position in the other table.
    pub(super) partner: u64,
}

/// One of a block's 64 positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) block: u64,
    pub(super) bit: u32,
}

/// Blocks of 64 positions: a word that says which are in use, then their entries, packed in the
/// order of the positions, with room for a fixed number of them.
///
/// In the place of the variable-bit-length array of D. K. Blandford, G. E. Blelloch, "Compact
/// dictionaries for variable-length keys and data with applications", ACM TALG 4(2), 2008.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Blocks {
    /// A block a cell, in whole words.
    packed: Swept,
    /// Bits of stamp, signature and partner.
    fields: [u32; 3],
    /// Entries that a block has room for.
    room: u32,
    /// Entries in all.
    occupied: u64,
}

/// Bits of stamp, signature and partner, and room in a block.
type Layout = ([u32; 3], u32);

fn entry_bits(fields: [u32; 3]) -> u32 {
    fields.iter().sum()
}

fn block_bits((fields, room): Layout) -> u32 {
    64 + (entry_bits(fields) * room).next_multiple_of(64)
}

impl Blocks {
    pub(super) fn bytes_for(blocks: u64, layout: Layout) -> Option<u64> {
        Swept::bytes_for(blocks, block_bits(layout))
    }

    pub(super) fn new(blocks: u64, layout: Layout) -> Result<Self, PlanError> {
        let packed = Swept::new(blocks, block_bits(layout))?;
        Ok(Self { packed, fields: layout.0, room: layout.1, occupied: 0 })
    }

    #[inline]
    fn in_use(&self, block: u64) -> u64 {
        self.packed.bits(block, 0, 64)
    }

    /// The bit at which the `rank`-th entry of a block begins.
    #[inline]
    fn start(&self, rank: u32) -> u32 {
        64 + rank * entry_bits(self.fields)
    }

    /// Where a position's entry begins, or would.
    #[inline]
    fn start_of(&self, Position { block, bit }: Position) -> u32 {
        let before = self.in_use(block) & ((1 << bit) - 1);
        self.start(before.count_ones())
    }

    #[inline]
    fn is_used(&self, Position { block, bit }: Position) -> bool {
        self.in_use(block) >> bit & 1 == 1
    }

    /// The entry of a position.
    #[inline]
    pub(super) fn get(&self, position: Position) -> Option<Entry> {
        self.is_used(position).then(|| self.entry_at(position.block, self.start_of(position)))
    }

    #[inline]
    fn entry_at(&self, block: u64, start: u32) -> Entry {
        let [stamp, signature, partner] = self.fields;
        Entry {
            stamp: self.field(block, start, stamp),
            signature: self.field(block, start + stamp, signature),
            partner: self.field(block, start + stamp + signature, partner),
        }
    }

    #[inline]
    fn field(&self, block: u64, from: u32, bits: u32) -> u64 {
        if bits == 0 { 0 } else { self.packed.bits(block, from, bits) }
    }

    fn set_field(&mut self, block: u64, from: u32, bits: u32, value: u64) {
        if bits > 0 {
            self.packed.set_bits(block, from, bits, value);
        }
    }

    fn set_entry(&mut self, block: u64, start: u32, entry: Entry) {
        let [stamp, signature, partner] = self.fields;
        self.set_field(block, start, stamp, entry.stamp);
        self.set_field(block, start + stamp, signature, entry.signature);
        self.set_field(block, start + stamp + signature, partner, entry.partner);
    }

    /// Entries in a block, unless it is full.
    pub(super) fn room(&self, block: u64) -> Option<u32> {
        let entries = self.in_use(block).count_ones();
        (entries < self.room).then_some(entries)
    }

    /// Empties positions of a full block whose stamp is not to be kept.
    #[inline]
    pub(super) fn make_room(&mut self, block: u64, keep: impl Fn(u64) -> bool) {
        if self.in_use(block).count_ones() == self.room {
            self.retain_in(block, u64::MAX, &keep);
        }
    }

    /// Puts an entry at a position, in the place of one that is there. Says whether it was empty.
    /// An empty one's block must have room.
    pub(super) fn set(&mut self, position: Position, entry: Entry) -> bool {
        let Position { block, bit } = position;
        let start = self.start_of(position);
        let was_empty = !self.is_used(position);
        if was_empty {
            let end = self.start(self.in_use(block).count_ones());
            self.shift_up(block, start, end);
            self.packed.set_bits(block, 0, 64, self.in_use(block) | 1 << bit);
            self.occupied += 1;
        }
        self.set_entry(block, start, entry);
        was_empty
    }

    /// Moves the bits from `start` to `end` up by an entry, the last ones first.
    fn shift_up(&mut self, block: u64, start: u32, end: u32) {
        let by = entry_bits(self.fields);
        let mut at = end;
        while at > start {
            let bits = (at - start).min(64);
            at -= bits;
            let moved = self.packed.bits(block, at, bits);
            self.packed.set_bits(block, at + by, bits, moved);
        }
    }

    #[inline]
    pub(super) fn set_stamp(&mut self, position: Position, stamp: u64) {
        let start = self.start_of(position);
        self.packed.set_bits(position.block, start, self.fields[0], stamp);
    }

    /// Empties those positions of a range, counted through all blocks, whose stamp is not to be kept, which depends on
    /// when a page was swept.
    pub(super) fn retain<K: Fn(u64) -> bool>(
        &mut self,
        range: Range<u64>,
        keep: impl Fn(u16) -> K,
    ) {
        if range.is_empty() {
            return;
        }
        let (mut at, last) = (range.start / 64, range.end.div_ceil(64));
        while let Some(run) = self.packed.next_run(at..last) {
            at = run.end;
            let keep = keep(self.packed.pages().age(run.start));
            for block in run {
                let first = range.start.max(block * 64);
                let stop = range.end.min((block + 1) * 64);
                let positions = (u64::MAX >> (64 - (stop - first))) << (first % 64);
                self.retain_in(block, positions, &keep);
            }
        }
        self.packed.tidy(range.start / 64..last);
    }

    fn retain_in(&mut self, block: u64, positions: u64, keep: &impl Fn(u64) -> bool) {
        let in_use = self.in_use(block);
        let mut look_at = in_use & positions;
        let mut gone = 0u64;
        while look_at != 0 {
            let bit = look_at.trailing_zeros();
            look_at &= look_at - 1;
            let start = self.start((in_use & ((1 << bit) - 1)).count_ones());
            if !keep(self.packed.bits(block, start, self.fields[0])) {
                gone |= 1 << bit;
            }
        }
        if gone != 0 {
            self.close_gaps(block, in_use, gone);
            self.occupied -= u64::from(gone.count_ones());
        }
    }

    /// Moves the entries that stay down over those that are gone, and zeroes what is left behind.
    fn close_gaps(&mut self, block: u64, in_use: u64, gone: u64) {
        let mut to = (in_use & ((gone & gone.wrapping_neg()) - 1)).count_ones();
        let (mut from, mut rest) = (to, in_use & !((gone & gone.wrapping_neg()) - 1));
        while rest != 0 {
            let bit = rest & rest.wrapping_neg();
            rest ^= bit;
            if gone & bit == 0 {
                let entry = self.entry_at(block, self.start(from));
                self.set_entry(block, self.start(to), entry);
                to += 1;
            }
            from += 1;
        }
        for rank in to..from {
            self.set_entry(block, self.start(rank), Entry { stamp: 0, signature: 0, partner: 0 });
        }
        self.packed.set_bits(block, 0, 64, in_use & !gone);
    }

    pub(super) fn for_each(&self, mut each: impl FnMut(Position, Entry)) {
        for block in 0..self.packed.len() {
            let mut in_use = self.in_use(block);
            for rank in 0..in_use.count_ones().min(self.room) {
                let bit = in_use.trailing_zeros();
                in_use &= in_use - 1;
                each(Position { block, bit }, self.entry_at(block, self.start(rank)));
            }
        }
    }

    /// Where there may be entries, by blocks, and when they were swept.
    #[inline(always)]
    pub(super) fn pages(&self) -> &Pages {
        self.packed.pages()
    }

    pub(super) fn pages_mut(&mut self) -> &mut Pages {
        self.packed.pages_mut()
    }

    /// Entries in all.
    pub(super) fn occupied(&self) -> u64 {
        self.occupied
    }

    pub(super) fn clear(&mut self) {
        self.packed.clear();
        self.occupied = 0;
    }

    /// Begins to fetch the line that says what is in use, and one of the entries.
    #[inline]
    pub(super) fn prefetch(&self, position: Position) {
        self.packed.prefetch_at(position.block, 0);
        // Entries lie in the order of the positions, and blocks are nearly alike in fill.
        let guess = u64::from(position.bit) * u64::from(block_bits((self.fields, self.room))) / 64;
        self.packed.prefetch_at(position.block, guess);
    }

    pub(super) fn memory(&self) -> usize {
        self.packed.memory()
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) {
        out.words(self.packed.words());
    }

    pub(super) fn read(
        blocks: u64,
        layout: Layout,
        input: &mut Reader<'_>,
    ) -> Result<Self, SnapshotError> {
        let width = block_bits(layout);
        let words = input.words(Packed::words_for(blocks, width))?;
        let packed = Swept::from_words(words, blocks, width)
            .ok_or(SnapshotError::Invalid("bits set past the end of a table"))?;
        let mut blocks = Self { packed, fields: layout.0, room: layout.1, occupied: 0 };
        let overfull = |block| blocks.in_use(block).count_ones() > blocks.room;
        if (0..blocks.packed.len()).any(overfull) {
            return Err(SnapshotError::Invalid("a block with more entries than room"));
        }
        let in_use = |block| u64::from(blocks.in_use(block).count_ones());
        blocks.occupied = (0..blocks.packed.len()).map(in_use).sum();
        Ok(blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    proptest! {
        /// Against a map: any widths, any order of writes, renewals and removals.
        #[test]
        fn behaves_as_a_map(
            stamp in 1u32..=40, signature in 0u32..=40, partner in 0u32..=40, room in 1u32..=64,
            steps in prop::collection::vec((0u64..200, any::<[u64; 3]>(), 0u8..8), 1..300),
        ) {
            let mut blocks = Blocks::new(4, ([stamp, signature, partner], room)).unwrap();
            let mut map = BTreeMap::new();
            let cut = |value: u64, bits: u32| if bits == 0 { 0 } else { value >> (64 - bits) };
            for (at, [a, b, c], action) in steps {
                let position = Position { block: at / 64, bit: (at % 64) as u32 };
                let entry = Entry {
                    stamp: cut(a, stamp), signature: cut(b, signature), partner: cut(c, partner),
                };
                match action {
                    0 => {
                        let range = at..(at + b % 100).min(256);
                        let keep = |stamp: u64| stamp % 3 == 1;
                        map.retain(|&at, entry: &mut Entry| !range.contains(&at) || keep(entry.stamp));
                        blocks.retain(range, |_| keep);
                    }
                    1 if map.contains_key(&at) => {
                        blocks.set_stamp(position, entry.stamp);
                        map.entry(at).and_modify(|old| old.stamp = entry.stamp);
                    }
                    _ if map.contains_key(&at) || blocks.room(position.block).is_some() => {
                        let was_empty = map.insert(at, entry).is_none();
                        prop_assert_eq!(blocks.set(position, entry), was_empty);
                    }
                    _ => {}
                }
                for at in 0..256 {
                    let position = Position { block: at / 64, bit: (at % 64) as u32 };
                    prop_assert_eq!(blocks.get(position), map.get(&at).copied());
                }
                prop_assert_eq!(blocks.occupied(), map.len() as u64);
            }
        }
    }
}
