//! One cache line whose entries lie in the order of their last sighting, the youngest first.

use crate::bits::gaps::{below, bits, close, set};
pub(super) use crate::bits::kernel::count;
use crate::bits::kernel::{BASE, ENTRIES, Kernel, STRING, renewed};
use crate::bits::lines::Line;

/// Bits of an entry that lie in its lane; others lie behind the lanes.
pub(super) const LANE: u32 = 16;

/// Bits that say how old entries are.
const AGES: u32 = 48;

/// The first bit of entry 1: that of entry 0 is the lowest.
const FIRST: usize = 64;

/// How a line of 512 bits is used.
///
/// Entry 0, the youngest, in the lowest 16 bits. Then 48 bits which say how old entries are: from the lowest, a 1 is
/// an entry, in the order of the entries, and a 0 says that a generation ended before the next one. Behind the last
/// entry there are only zeros. Then the lanes of the other entries, and last for each entry the rest of its
/// fingerprint, if it has any.
///
/// A lane of 0 is no entry, so a key is looked for without a look at the ages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Entries that a line has room for.
    pub(super) slots: u32,
    /// A bit for each.
    pub(super) all: u32,
    /// The bit of the last one.
    pub(super) last: u32,
    /// Bits of a fingerprint besides its highest 16.
    pub(super) rest: u32,
    /// The most generations that a live entry is old.
    pub(super) steps: u32,
}

/// An entry that is taken along to another line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) fingerprint: u64,
    /// Generations that have passed since.
    pub(super) age: u32,
}

/// Entries of a line with fingerprints of so many bits.
pub(super) fn slots_for(fingerprint_bits: u32) -> u32 {
    ((512 - AGES) / fingerprint_bits).min(ENTRIES)
}

/// The most generations that such a line can tell.
pub(super) fn most_steps(fingerprint_bits: u32) -> u32 {
    AGES - slots_for(fingerprint_bits)
}

impl Layout {
    /// For fingerprints of so many bits (16 to 64) and entries that are kept for so many generations, no more than
    /// [`most_steps`].
    pub(super) fn new(fingerprint_bits: u32, steps: u32) -> Self {
        let slots = slots_for(fingerprint_bits);
        let all = (1 << slots) - 1;
        Self { slots, all, last: 1 << (slots - 1), rest: fingerprint_bits - LANE, steps }
    }

    /// Bits of a fingerprint.
    pub(super) fn fingerprint_bits(&self) -> u32 {
        LANE + self.rest
    }

    /// Where the lanes end.
    #[inline(always)]
    fn end_of_lanes(&self) -> usize {
        FIRST + (LANE * (self.slots - 1)) as usize
    }

    /// The first bit of an entry's part behind the lanes.
    #[inline(always)]
    fn behind(&self, at: u32) -> usize {
        self.end_of_lanes() + (self.rest * at) as usize
    }

    /// The lane of a fingerprint.
    #[inline(always)]
    pub(super) fn lane(&self, fingerprint: u64) -> u16 {
        (fingerprint >> self.rest) as u16
    }

    /// What of a fingerprint lies behind the lanes.
    #[inline(always)]
    fn rest_of(&self, fingerprint: u64) -> u64 {
        fingerprint & ((1 << self.rest) - 1)
    }

    /// A bit for each entry with a fingerprint, of whatever age.
    #[inline(always)]
    pub(super) fn matches<K: Kernel>(&self, kernel: K, line: &Line, fingerprint: u64) -> u32 {
        let equal = kernel.equal(line, self.lane(fingerprint)) & self.all;
        if self.rest == 0 { equal } else { self.with_rest(line, equal, fingerprint) }
    }

    /// Those of some entries that have the rest of a fingerprint too.
    #[inline(always)]
    fn with_rest(&self, line: &Line, entries: u32, fingerprint: u64) -> u32 {
        let first = entries & entries.wrapping_neg();
        // Without a branch, as nobody can foretell whether there is one. Where there is none any will do.
        let at = (entries | self.last).trailing_zeros();
        let mut same = if self.has_rest(line, at, fingerprint) { first } else { 0 };
        let mut left = entries ^ first;
        while left != 0 {
            let at = left.trailing_zeros();
            if self.has_rest(line, at, fingerprint) {
                same |= 1 << at;
            }
            left &= left - 1;
        }
        same
    }

    #[inline(always)]
    fn has_rest(&self, line: &Line, at: u32, fingerprint: u64) -> bool {
        bits(line, self.behind(at), self.rest) == self.rest_of(fingerprint)
    }

    /// Puts an entry in front: the first of those in `matches`, or a new one if there is none, for which the line
    /// must have room.
    #[inline(always)]
    pub(super) fn push<K: Kernel>(
        &self,
        kernel: K,
        line: &mut Line,
        matches: u32,
        fingerprint: u64,
    ) {
        let string = renewed(kernel, line[0] & STRING, matches);
        let upto = matches | self.last;
        if self.rest > 0 {
            self.push_rest(line, 0, upto.trailing_zeros(), fingerprint);
        }
        kernel.push(line, upto, string | u64::from(self.lane(fingerprint)));
    }

    /// Makes an entry one of an age: the first of those in `matches`, which must not be younger, or a new one if there
    /// is none, for which the line must have room. It goes before others of that age.
    #[inline(always)]
    pub(super) fn place<K: Kernel>(
        &self,
        kernel: K,
        line: &mut Line,
        age: u32,
        matches: u32,
        fingerprint: u64,
    ) {
        let (string, place) = placed(kernel, line[0] & STRING, age, matches);
        let from = (string & (place - 1)).count_ones();
        let upto = matches | self.last;
        if self.rest > 0 {
            self.push_rest(line, from, upto.trailing_zeros(), fingerprint);
        }
        let lane = self.lane(fingerprint);
        let youngest = if from == 0 { u64::from(lane) } else { line[0] & !STRING };
        kernel.place(line, from, upto, lane, string | youngest);
    }

    /// [`Kernel::place`] for what lies behind the lanes.
    #[inline(always)]
    fn push_rest(&self, line: &mut Line, from: u32, upto: u32, fingerprint: u64) {
        let (start, end) = (self.behind(from), self.behind(upto + 1));
        let mut carry = 0;
        // As many words for any entry: how many is not to be foretold.
        for (at, word) in line.iter_mut().enumerate().skip(self.end_of_lanes() / 64) {
            let below = |end: usize| below(end.saturating_sub(64 * at));
            let moves = below(end) & !below(start);
            let (moved, next) = (*word << self.rest | carry, *word >> (64 - self.rest));
            *word = *word & !moves | moved & moves;
            carry = next;
        }
        let moved = bits(line, start, self.rest);
        set(line, start, moved ^ self.rest_of(fingerprint));
    }

    /// Lets generations pass, and drops what is older than `most` then; returns how many entries.
    #[inline(always)]
    pub(super) fn age<K: Kernel>(&self, kernel: K, line: &mut Line, passed: u32, most: u32) -> u32 {
        let first = line[0];
        if first == 0 {
            return 0;
        }
        let before = first & STRING;
        let string = aged(kernel, before, passed, most);
        let count = string.count_ones();
        let youngest = if string == 0 { 0 } else { first & !STRING };
        let gone = before.count_ones() - count;
        if self.rest > 0 && gone > 0 {
            let end = self.behind(count);
            for (at, word) in line.iter_mut().enumerate().skip(self.end_of_lanes() / 64) {
                *word &= below(end.saturating_sub(64 * at));
            }
        }
        kernel.cut(line, count, self.slots, string | youngest);
        gone
    }

    /// How many generations old an entry was when the line last aged.
    #[inline(always)]
    pub(super) fn age_of(&self, line: &Line, at: u32) -> u32 {
        age_of(BASE, line, 1 << at)
    }

    /// An entry.
    pub(super) fn entry(&self, line: &Line, at: u32) -> Entry {
        Entry { fingerprint: self.fingerprint(line, at), age: self.age_of(line, at) }
    }

    /// The fingerprint of an entry.
    #[inline]
    pub(super) fn fingerprint(&self, line: &Line, at: u32) -> u64 {
        let lane = if at == 0 { line[0] & 0xFFFF } else { bits(line, lane_at(at), LANE) };
        let rest = if self.rest > 0 { bits(line, self.behind(at), self.rest) } else { 0 };
        lane << self.rest | rest
    }

    /// Takes an entry out.
    #[inline(always)]
    pub(super) fn remove<K: Kernel>(&self, kernel: K, line: &mut Line, at: u32) {
        let string = line[0] & STRING;
        let below = kernel.deposit(1 << at, string).wrapping_sub(1);
        let string = string & below | (string >> 1) & !below & STRING;
        let youngest = if at == 0 { line[1] & 0xFFFF } else { line[0] & 0xFFFF };
        close(line, lane_at(at.max(1)), LANE as usize, self.end_of_lanes());
        if self.rest > 0 {
            close(line, self.behind(at), self.rest as usize, self.behind(self.slots));
        }
        line[0] = string | youngest;
    }

    /// Puts an entry among those of its age, the first of them, in a line that has room.
    pub(super) fn insert(&self, line: &mut Line, entry: Entry) {
        self.place(BASE, line, entry.age, 0, entry.fingerprint);
    }

    /// Can a line of any bytes be one of these?
    pub(super) fn is_sound(&self, line: &Line) -> bool {
        let count = count(line);
        let string = line[0] & STRING;
        let most = 15 + count + self.steps;
        let is_zero = |at: u32| {
            let lane = if at == 0 { line[0] & 0xFFFF } else { bits(line, lane_at(at), LANE) };
            lane == 0
        };
        let behind = self.behind(count.min(self.slots))..512;
        count <= self.slots
            && (string == 0 || 63 - string.leading_zeros() <= most)
            && (0..self.slots).all(|at| is_zero(at) == (at >= count))
            && (behind.start..behind.end).all(|bit| line[bit / 64] >> (bit % 64) & 1 == 0)
    }
}

/// The first bit of an entry's lane, of those that are not the youngest.
#[inline(always)]
fn lane_at(at: u32) -> usize {
    FIRST + (LANE * (at - 1)) as usize
}

/// The ages when the first of the entries in `matches`, or a new one if there is none, is given an age; and the bit that
/// is its.
#[inline(always)]
fn placed<K: Kernel>(kernel: K, string: u64, age: u32, matches: u32) -> (u64, u64) {
    // Where the generation before its own began: nowhere for the present one.
    let before = kernel.deposit(1 << age >> 1, !string & STRING);
    let place = (before << 1).max(1 << 16);
    let old = kernel.deposit(u64::from(matches & matches.wrapping_neg()), string);
    let moves = (old ^ old.wrapping_sub(1)) & !(place - 1);
    ((string ^ (string ^ string << 1) & moves) | place, place)
}

/// How many generations old the first of some entries was when the line last aged; any number if there is none.
#[inline(always)]
pub(super) fn age_of<K: Kernel>(kernel: K, line: &Line, matches: u32) -> u32 {
    let place = kernel.deposit(u64::from(matches & matches.wrapping_neg()), line[0] & STRING);
    (!line[0] & STRING & place.wrapping_sub(1)).count_ones()
}

/// The ages so many generations later, without what is older than `most` then.
#[inline(always)]
fn aged<K: Kernel>(kernel: K, string: u64, passed: u32, most: u32) -> u64 {
    let moved = string << passed.min(47);
    let end = kernel.deposit(1 << (most + 16), !moved);
    moved & (end ^ end.wrapping_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::kernel::Scalar;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    /// What is done to a line.
    #[derive(Clone, Debug)]
    enum Act {
        Pass(u32, u32),
        Push(u64),
        Insert(u64, u32),
        Remove(usize),
        Renew(usize),
        Place(usize, u32),
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let act = prop_oneof![
            3 => (0u32..60, any::<u32>()).prop_map(|(passed, most)| Act::Pass(passed, most)),
            3 => Just(Act::Pass(1, u32::MAX)),
            6 => any::<u64>().prop_map(Act::Push),
            3 => (any::<u64>(), any::<u32>()).prop_map(|(print, age)| Act::Insert(print, age)),
            1 => any::<usize>().prop_map(Act::Remove),
            3 => any::<usize>().prop_map(Act::Renew),
            3 => (any::<usize>(), any::<u32>()).prop_map(|(which, age)| Act::Place(which, age)),
        ];
        prop::collection::vec(act, 1..200)
    }

    proptest! {
        /// Against a list of fingerprints and ages in order.
        #[test]
        fn a_line_is_a_list_in_the_order_of_last_sight(
            fingerprint_bits in prop_oneof![Just(16u32), 17u32..=64], steps in 0u32..1_000, acts in acts(),
        ) {
            let steps = 1 + steps % most_steps(fingerprint_bits);
            let layout = Layout::new(fingerprint_bits, steps);
            let mut line: Line = [0; 8];
            let mut list: Vec<Entry> = Vec::new();
            // From few values, so that some are equal, and some in their lanes or in the rest only.
            let print = |n: u64| {
                let value = ((n % 5) | ((n % 3) << 40) | ((n % 2) << 63)) >> (64 - fingerprint_bits);
                if value >> layout.rest == 0 { value | 1 << layout.rest } else { value }
            };
            for act in acts {
                let room = list.len() < layout.slots as usize;
                match act {
                    Act::Pass(passed, most) => {
                        let passed = passed.min(steps + 1);
                        let most = most.min(steps);
                        let before = list.len();
                        list.iter_mut().for_each(|entry| entry.age += passed);
                        list.retain(|entry| entry.age <= most);
                        let gone = layout.age(Scalar, &mut line, passed, most);
                        prop_assert_eq!(gone as usize, before - list.len());
                    }
                    Act::Push(n) if room => {
                        layout.push(Scalar, &mut line, 0, print(n));
                        list.insert(0, Entry { fingerprint: print(n), age: 0 });
                    }
                    Act::Insert(n, age) if room => {
                        let entry = Entry { fingerprint: print(n), age: age % (steps + 1) };
                        layout.insert(&mut line, entry);
                        let at = list.iter().position(|one| one.age >= entry.age);
                        list.insert(at.unwrap_or(list.len()), entry);
                    }
                    Act::Remove(which) if !list.is_empty() => {
                        let at = which % list.len();
                        layout.remove(Scalar, &mut line, at as u32);
                        list.remove(at);
                    }
                    Act::Renew(which) if !list.is_empty() => {
                        let fingerprint = list[which % list.len()].fingerprint;
                        let at = list.iter().position(|one| one.fingerprint == fingerprint);
                        let matches = layout.matches(Scalar, &line, fingerprint);
                        prop_assert_eq!(at, Some(matches.trailing_zeros() as usize));
                        layout.push(Scalar, &mut line, matches, fingerprint);
                        list.remove(at.unwrap_or(0));
                        list.insert(0, Entry { fingerprint, age: 0 });
                    }
                    Act::Place(which, age) if !list.is_empty() => {
                        let fingerprint = list[which % list.len()].fingerprint;
                        let matches = layout.matches(Scalar, &line, fingerprint);
                        let old = list.iter().position(|one| one.fingerprint == fingerprint);
                        let old = list.remove(old.unwrap_or(0));
                        let age = age % (old.age + 1);
                        prop_assert_eq!(age_of(Scalar, &line, matches), old.age);
                        layout.place(Scalar, &mut line, age, matches, fingerprint);
                        let at = list.iter().position(|one| one.age >= age).unwrap_or(list.len());
                        list.insert(at, Entry { fingerprint, age });
                    }
                    _ => {}
                }
                prop_assert!(layout.is_sound(&line), "{:x?}", line);
                prop_assert_eq!(count(&line) as usize, list.len());
                let entries: Vec<_> =
                    (0..count(&line)).map(|at| layout.entry(&line, at)).collect();
                prop_assert_eq!(&entries, &list);
                for n in 0..30 {
                    let same = |one: &Entry| one.fingerprint == print(n);
                    let expected =
                        list.iter().enumerate().map(|(at, one)| u32::from(same(one)) << at).sum();
                    let matches: u32 = layout.matches(Scalar, &line, print(n));
                    prop_assert_eq!(matches, expected);
                }
            }
        }
    }
}
