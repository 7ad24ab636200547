//! One cache line of an aged table: fingerprints in the order of their age.

use crate::bits::gaps::{below, bits, close, open, set};
use crate::bits::lanes;
use crate::bits::lines::Line;

/// Bits of the head: a number for each generation, how many entries there are, and the generation of
/// the line's last turn.
const HEAD: usize = 48;
/// Where the head keeps the number of entries.
const COUNT: u32 = 40;
/// Where the head keeps the last turn's generation, of which there are [`TURNS`].
const TURN: u32 = 45;
/// A line is turned before so many generations have passed.
pub(super) const TURNS: u64 = 8;
/// Bits of a number in the head.
const NUMBER: usize = 5;
/// 1 in each of the eight numbers for generations.
const ONES: u64 = 0x08_4210_8421;
/// Generations that may be live besides the present one: the numbers there are.
const GENERATIONS: u64 = 8;
/// Bits of a fingerprint that lie in a lane; others lie behind the lanes.
pub(super) const LANE: u32 = 16;

/// How a line of 512 bits is used.
///
/// The head, then a lane of 16 bits for each of the slots, then for each the rest of its fingerprint
/// and of its moment, if there are any. Entries lie in the order of their generations, the oldest
/// first, without a gap. So their generations need no bits but those that count how many are older
/// than so many generations, 5 bits per generation instead of 4 per entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Entries that a line has room for.
    pub(super) slots: u32,
    /// A bit for each.
    all: u32,
    /// Bits of a fingerprint besides the lowest 16.
    rest: u32,
    /// Bits of a moment within its generation: a generation has `2^fine` grains.
    pub(super) fine: u32,
    /// Grains that make up the window.
    pub(super) steps: u64,
    /// The most generations that a live entry is old.
    oldest: u64,
}

/// The present moment, as lines know it.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    generation: u64,
    fine: u64,
}

/// An entry that is taken along to another line.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) fingerprint: u64,
    /// Generations that have passed since.
    pub(super) generations: u64,
    /// Its moment within its generation.
    pub(super) fine: u64,
}

impl Layout {
    /// For fingerprints of so many bits (16 to 64) and a window of so many grains.
    pub(super) fn new(fingerprint_bits: u32, steps: u64) -> Self {
        let rest = fingerprint_bits - LANE;
        let fine = (0..64).find(|&fine| ages(steps, fine) <= GENERATIONS).unwrap_or(63);
        let slots = (512 - HEAD as u32) / (LANE + rest + fine);
        Self { slots, all: (1 << slots) - 1, rest, fine, steps, oldest: ages(steps, fine) }
    }

    /// Bits of a fingerprint.
    pub(super) fn fingerprint_bits(&self) -> u32 {
        LANE + self.rest
    }

    #[inline(always)]
    pub(super) fn moment(&self, now: u64) -> Moment {
        Moment { generation: now >> self.fine, fine: now & ((1 << self.fine) - 1) }
    }

    /// The first bit of an entry's part behind the lanes.
    #[inline(always)]
    fn behind(&self, at: u32) -> usize {
        HEAD + (LANE * self.slots + (self.rest + self.fine) * at) as usize
    }

    #[inline(always)]
    fn end_of_lanes(&self) -> usize {
        self.behind(0)
    }

    /// A bit for each slot whose lane is that of a fingerprint, of those that are in use or are not.
    #[inline(always)]
    pub(super) fn candidates(&self, line: &Line, fingerprint: u64) -> u32 {
        lanes::equal(line, fingerprint as u16) >> (HEAD / 16) & self.all
    }

    /// The age of a candidate in grains, if it is a live entry with this fingerprint.
    #[inline(always)]
    pub(super) fn age_if_same(
        &self,
        line: &Line,
        at: u32,
        fingerprint: u64,
        now: Moment,
    ) -> Option<u64> {
        let same = self.rest == 0 || bits(line, self.behind(at), self.rest) == fingerprint >> LANE;
        let age = self.age(line, at, now);
        (same & (at < count(line)) & (age <= self.steps)).then_some(age)
    }

    /// The age of an entry in grains.
    #[inline(always)]
    fn age(&self, line: &Line, at: u32, now: Moment) -> u64 {
        let generations = since_turn(line, now) + older_than(line, at);
        if self.fine == 0 {
            return generations;
        }
        ((generations << self.fine) + now.fine).wrapping_sub(self.fine_of(line, at))
    }

    /// The moment of an entry within its generation; there must be bits for it.
    #[inline(always)]
    fn fine_of(&self, line: &Line, at: u32) -> u64 {
        bits(line, self.behind(at) + self.rest as usize, self.fine)
    }

    /// Lets the line know what time it is, and drops what is older than so many grains, no more than make up the window;
    /// returns how many entries.
    ///
    /// The line must have been turned less than [`TURNS`] generations ago, or be empty.
    #[inline(always)]
    pub(super) fn turn(&self, line: &mut Line, now: Moment, kept: u64) -> u32 {
        let entries = count(line);
        if entries == 0 {
            // Nothing is older than anything.
            line[0] = (now.generation % TURNS) << TURN;
            return 0;
        }
        let passed = since_turn(line, now);
        let mut gone = 0;
        if passed > 0 {
            gone = if passed > self.oldest { entries } else { number(line, self.oldest - passed) };
            let all = (1u64 << (NUMBER as u64 * self.oldest)) - 1;
            let passed = NUMBER as u64 * passed;
            let present = u64::from(entries) * (ONES & ((1 << passed) - 1));
            let numbers = ((line[0] & ((1 << COUNT) - 1)) << passed | present) & all;
            let rest = line[0] >> HEAD << HEAD | u64::from(entries) << COUNT;
            line[0] = rest | (now.generation % TURNS) << TURN | numbers;
        }
        if kept < self.steps || (self.fine > 0 && passed <= self.oldest) {
            let old = self.may_be_older(line, kept);
            while gone < old && self.age(line, gone, now) > kept {
                gone += 1;
            }
        }
        if gone > 0 {
            self.drop_oldest(line, gone);
        }
        gone
    }

    /// How many entries of a line that was turned may be older than so many grains: the first ones.
    #[inline(always)]
    fn may_be_older(&self, line: &Line, grains: u64) -> u32 {
        match grains >> self.fine {
            0 => count(line),
            generations => number(line, generations - 1),
        }
    }

    /// Drops whatever is older than so many grains from a line that was turned; returns how many entries. One that was
    /// seen again in its own generation lies before others that were not, and that a turn leaves there.
    pub(super) fn drop_hidden(&self, line: &mut Line, now: Moment, kept: u64) -> u32 {
        let mut gone = 0;
        for at in (0..self.may_be_older(line, kept)).rev() {
            if self.age(line, at, now) > kept {
                self.remove(line, at);
                gone += 1;
            }
        }
        gone
    }

    #[inline(always)]
    fn drop_oldest(&self, line: &mut Line, gone: u32) {
        if gone == count(line) {
            *line = [line[0] >> TURN << TURN & ((1 << HEAD) - 1), 0, 0, 0, 0, 0, 0, 0];
            return;
        }
        let last = NUMBER as u64 * (self.oldest - 1);
        let oldest = number(line, self.oldest - 1);
        if self.oldest < 2 || number(line, self.oldest - 2) >= gone {
            // Of the other numbers none is less: they count these entries too.
            line[0] -= u64::from(gone) * (ONES & ((1 << last) - 1) | 1 << COUNT);
            line[0] -= u64::from(oldest.min(gone)) << last;
        } else {
            let counted = |generation| u64::from(number(line, generation).min(gone));
            let gone_of = (0..self.oldest).map(|at| counted(at) << (NUMBER as u64 * at));
            line[0] -= gone_of.sum::<u64>() + (u64::from(gone) << COUNT);
        }
        self.close(line, 0, gone);
    }

    /// Moves what lies behind so many entries into their place.
    #[inline(always)]
    fn close(&self, line: &mut Line, at: u32, entries: u32) {
        let (from, by) = (HEAD + (LANE * at) as usize, (LANE * entries) as usize);
        let behind = self.rest + self.fine;
        if behind == 0 {
            close_to_the_end(line, from, by);
        } else {
            close(line, self.behind(at), (behind * entries) as usize, 512);
            close(line, from, by, self.end_of_lanes());
        }
    }

    /// Adds an entry of the present moment to a line that has room and was turned.
    #[inline(always)]
    pub(super) fn append(&self, line: &mut Line, fingerprint: u64, now: Moment) {
        let at = count(line);
        self.fill(line, at, fingerprint, now.fine);
        line[0] += 1 << COUNT;
    }

    /// Writes an entry over a slot whose bits are all zero.
    #[inline(always)]
    fn fill(&self, line: &mut Line, at: u32, fingerprint: u64, fine: u64) {
        set(line, HEAD + (LANE * at) as usize, fingerprint & 0xFFFF);
        if self.rest > 0 {
            set(line, self.behind(at), fingerprint >> LANE);
        }
        if self.fine > 0 {
            set(line, self.behind(at) + self.rest as usize, fine);
        }
    }

    /// Puts an entry of another line among those of its age, in a line that has room and was turned.
    pub(super) fn insert(&self, line: &mut Line, entry: Entry) {
        let generations = entry.generations;
        let mut at = if generations == 0 { count(line) } else { number(line, generations - 1) };
        let oldest_of_its = if generations < self.oldest { number(line, generations) } else { 0 };
        // Behind a younger one it would outlive its window.
        while self.fine > 0 && at > oldest_of_its && self.fine_of(line, at - 1) > entry.fine {
            at -= 1;
        }
        let behind = self.rest + self.fine;
        open(line, HEAD + (LANE * at) as usize, LANE as usize, self.end_of_lanes());
        if behind > 0 {
            open(line, self.behind(at), behind as usize, 512);
        }
        self.fill(line, at, entry.fingerprint, entry.fine);
        let younger = (1u64 << (NUMBER as u64 * generations)) - 1;
        line[0] += ONES & younger | 1 << COUNT;
    }

    /// Takes an entry out of a line that was turned.
    #[inline(always)]
    pub(super) fn remove(&self, line: &mut Line, at: u32) {
        let younger = (1u64 << (NUMBER as u64 * older_than(line, at))) - 1;
        line[0] -= ONES & younger | 1 << COUNT;
        self.close(line, at, 1);
    }

    /// An entry of a line that was turned.
    pub(super) fn entry(&self, line: &Line, at: u32) -> Entry {
        let behind = |from: u32, width| {
            if width > 0 { bits(line, self.behind(at) + from as usize, width) } else { 0 }
        };
        let lane = bits(line, HEAD + (LANE * at) as usize, LANE);
        Entry {
            fingerprint: lane | behind(0, self.rest) << (LANE - 1) << 1,
            generations: older_than(line, at),
            fine: behind(self.rest, self.fine),
        }
    }

    /// Makes an entry of a line that was turned one of the present moment, if it is of the present
    /// generation; `false` if it is not.
    #[inline(always)]
    pub(super) fn touch(&self, line: &mut Line, at: u32, now: Moment) -> bool {
        let is_present = since_turn(line, now) + older_than(line, at) == 0;
        if is_present && self.fine > 0 {
            let then = self.fine_of(line, at);
            set(line, self.behind(at) + self.rest as usize, then ^ now.fine);
        }
        is_present
    }

    /// An entry that is so many grains old now.
    pub(super) fn aged(&self, fingerprint: u64, age: u64, now: Moment) -> Entry {
        let now = (now.generation << self.fine) + now.fine;
        let then = self.moment(now.saturating_sub(age));
        let generations = (now >> self.fine) - then.generation;
        Entry { fingerprint, generations, fine: then.fine }
    }

    /// The age of each live entry, and its fingerprint.
    pub(super) fn entries(&self, line: &Line, now: Moment) -> impl Iterator<Item = (u64, u64)> {
        let live = (0..count(line))
            .map(move |at| (self.entry(line, at).fingerprint, self.age(line, at, now)));
        live.filter(|&(_, age)| age <= self.steps)
    }

    /// Can a line of any bytes be one of these?
    pub(super) fn is_sound(&self, line: &Line) -> bool {
        let entries = count(line);
        let numbers = (0..GENERATIONS).map(|generation| number(line, generation));
        let falls = numbers.clone().zip(numbers.skip(1)).all(|(younger, older)| younger >= older);
        let none = |generation| number(line, generation) == 0;
        let rest = self.behind(entries)..512;
        let lanes = HEAD + (LANE * entries) as usize..self.end_of_lanes();
        entries <= self.slots
            && number(line, 0) <= entries
            && falls
            && (self.oldest..GENERATIONS).all(none)
            && lanes.chain(rest).all(|bit| line[bit / 64] >> (bit % 64) & 1 == 0)
    }
}

/// The most generations of `2^fine` grains that something within the window is old.
fn ages(steps: u64, fine: u32) -> u64 {
    steps.div_ceil(1 << fine)
}

/// Entries of a line.
#[inline(always)]
pub(super) fn count(line: &Line) -> u32 {
    (line[0] >> COUNT) as u32 & 31
}

/// Entries that at the last turn were more than so many generations old.
#[inline(always)]
fn number(line: &Line, generations: u64) -> u32 {
    (line[0] >> (NUMBER as u64 * generations)) as u32 & 31
}

/// Generations that have passed since the line's last turn.
#[inline(always)]
fn since_turn(line: &Line, now: Moment) -> u64 {
    now.generation.wrapping_sub(line[0] >> TURN) % TURNS
}

/// How many generations old the entry was at the last turn: as many as there are numbers above its
/// place. Every second number at a time is compared, with the bit above it borrowed from.
#[inline(always)]
fn older_than(line: &Line, at: u32) -> u64 {
    const EVERY_SECOND: u64 = 0x4010_0401;
    const ABOVE: u64 = EVERY_SECOND << NUMBER;
    const NUMBERS: u64 = EVERY_SECOND * 31;
    let place = (u64::from(at) + 1) * EVERY_SECOND;
    let even = ((line[0] & NUMBERS) | ABOVE) - place;
    let odd = ((line[0] >> NUMBER & NUMBERS) | ABOVE) - place;
    let larger = ((even & ABOVE) >> NUMBER) + ((odd & ABOVE) >> NUMBER);
    larger.wrapping_mul(EVERY_SECOND) >> 30 & 15
}

/// [`close`] with the end of the line for its end, without a branch.
#[inline(always)]
fn close_to_the_end(line: &mut Line, from: usize, by: usize) {
    let mut wide = [0; 17];
    wide[..8].copy_from_slice(line);
    let (words, shift) = (by / 64 % 8, by % 64);
    for (at, word) in line.iter_mut().enumerate() {
        let moved = wide[at + words] >> shift | wide[at + words + 1] << 1 << (63 - shift);
        let kept = below(from.saturating_sub(64 * at));
        *word = *word & kept | moved & !kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    /// What is done to a line.
    #[derive(Clone, Debug)]
    enum Act {
        Pass(u64),
        GiveUp(u64),
        Append(u64),
        Insert(u64, u64),
        Remove(usize),
        Renew(usize),
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let act = prop_oneof![
            4 => any::<u64>().prop_map(Act::Pass),
            4 => any::<u64>().prop_map(Act::Append),
            2 => (any::<u64>(), any::<u64>()).prop_map(|(print, age)| Act::Insert(print, age)),
            1 => any::<usize>().prop_map(Act::Remove),
            3 => any::<usize>().prop_map(Act::Renew),
            1 => any::<u64>().prop_map(Act::GiveUp),
        ];
        prop::collection::vec(act, 1..150)
    }

    /// The youngest age at which a line finds a fingerprint.
    fn found(layout: &Layout, line: &Line, fingerprint: u64, now: u64) -> Option<(u32, u64)> {
        let now = layout.moment(now);
        let candidates = layout.candidates(line, fingerprint);
        let set = (0..32).filter(|at| candidates >> at & 1 == 1);
        set.filter_map(|at| Some((at, layout.age_if_same(line, at, fingerprint, now)?)))
            .min_by_key(|&(_, age)| age)
    }

    proptest! {
        /// Against a list of fingerprints and moments: all that is live is there with its age, and
        /// nothing else is found.
        #[test]
        fn a_line_is_a_list_of_what_is_live(
            bits in 16u32..=64,
            steps in prop_oneof![1u64..40, Just(100), Just(1000), Just((1 << 20) + 1)],
            start in any::<u64>(),
            acts in acts(),
        ) {
            let layout = Layout::new(bits, steps);
            let (mut line, mut now): (Line, u64) = ([0; 8], start >> 2);
            let mut list: Vec<(u64, u64)> = Vec::new();
            for act in acts {
                // Fingerprints from few values, so that some are equal, and some in their lanes only.
                let print = |n: u64| ((n % 5) | ((n % 3) << 40) | ((n % 2) << 63)) >> (64 - bits);
                match act {
                    // Sooner than the turns go round.
                    Act::GiveUp(kept) => {
                        let kept = kept % (steps + 1);
                        layout.turn(&mut line, layout.moment(now), kept);
                        layout.drop_hidden(&mut line, layout.moment(now), kept);
                        list.retain(|&(_, then)| now - then <= kept);
                    }
                    Act::Pass(grains) => now += grains % (((TURNS - 1) << layout.fine) + 1),
                    Act::Append(n) | Act::Insert(n, _) => {
                        layout.turn(&mut line, layout.moment(now), steps);
                        if count(&line) == layout.slots {
                            continue;
                        }
                        let age = if let Act::Insert(_, age) = act { age % (steps + 1) } else { 0 };
                        if let Act::Append(_) = act {
                            layout.append(&mut line, print(n), layout.moment(now));
                        } else {
                            let entry = layout.aged(print(n), age, layout.moment(now));
                            layout.insert(&mut line, entry);
                        }
                        list.push((print(n), now - age));
                    }
                    Act::Remove(which) | Act::Renew(which) if !list.is_empty() => {
                        let (print, _) = list[which % list.len()];
                        let Some((at, age)) = found(&layout, &line, print, now) else { continue };
                        let moment = layout.moment(now);
                        let place = list.iter().position(|&one| one == (print, now - age));
                        list.remove(place.unwrap());
                        if let Act::Remove(_) = act {
                            let gone = layout.turn(&mut line, moment, steps);
                            layout.remove(&mut line, at - gone);
                        } else {
                            if !layout.touch(&mut line, at, moment) {
                                let gone = layout.turn(&mut line, moment, steps);
                                layout.remove(&mut line, at - gone);
                                layout.append(&mut line, print, moment);
                            }
                            list.push((print, now));
                        }
                    }
                    Act::Remove(_) | Act::Renew(_) => {}
                }
                layout.turn(&mut line, layout.moment(now), steps);
                list.retain(|&(_, then)| now - then <= steps);
                prop_assert!(layout.is_sound(&line), "{:x?}", line);
                let mut live: Vec<_> =
                    layout.entries(&line, layout.moment(now)).map(|(p, age)| (p, now - age)).collect();
                live.sort_unstable();
                list.sort_unstable();
                prop_assert_eq!(&live, &list);
                for n in 0..30 {
                    let youngest = list.iter().filter(|one| one.0 == print(n)).map(|one| now - one.1).min();
                    prop_assert_eq!(found(&layout, &line, print(n), now).map(|(_, age)| age), youngest);
                }
            }
        }

        /// Against bits one by one.
        #[test]
        fn gaps_close_and_open(
            line: Line, from in 48usize..512, by in 1usize..120, more in 0usize..464,
        ) {
            let end = (from + by + more).min(512);
            prop_assume!(from + by <= end);
            let bit = |line: &Line, at: usize| line[at / 64] >> (at % 64) & 1 == 1;
            let (mut closed, mut opened) = (line, line);
            close(&mut closed, from, by, end);
            open(&mut opened, from, by, end);
            for at in 0..512 {
                let is_inside = (from..end).contains(&at);
                let down = is_inside && at + by < end && bit(&line, at + by);
                let up = is_inside && at >= from + by && bit(&line, at - by);
                prop_assert_eq!(bit(&closed, at), if is_inside { down } else { bit(&line, at) });
                prop_assert_eq!(bit(&opened, at), if is_inside { up } else { bit(&line, at) });
            }
            let (mut to_the_end, mut closed) = (line, line);
            close_to_the_end(&mut to_the_end, from, by);
            if from + by < 512 {
                close(&mut closed, from, by, 512);
                prop_assert_eq!(to_the_end, closed);
            }
        }
    }
}
