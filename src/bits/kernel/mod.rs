//! What an instruction set can do with a cache line of ordered lanes; the same for all, sooner or later.
//!
//! Such a line has 32 lanes of 16 bits, lane 0 being the lowest bits of its first word. Lane 0 is entry 0, lanes
//! 1 to 3 are 48 bits that say something about the entries, and lane `i + 3` is entry `i`.

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod x86;

use crate::Digest;
use crate::bits::lines::Line;
use core::hint::select_unpredictable;
pub(crate) use scalar::Scalar;

/// What every processor of this kind has: for what is done too seldom to choose an instruction set for it.
#[cfg(target_arch = "x86_64")]
pub(crate) const BASE: x86::Sse2 = x86::Sse2::HERE;
/// What every processor of this kind has.
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
pub(crate) const BASE: neon::Neon = neon::Neon::HERE;
/// What every processor has.
#[cfg(not(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little"))))]
pub(crate) const BASE: Scalar = Scalar;

/// Entries that fit into the lanes of a line.
pub(crate) const ENTRIES: u32 = 29;

/// Keys whose lines are judged at once, where an instruction set can do that.
pub(crate) const GROUP: usize = 8;

/// Those bits of the first word that are no entry.
pub(crate) const STRING: u64 = !0xFFFF;

/// The lines and the lanes of some keys.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Group {
    /// The first lines of the keys, then the second ones.
    pub(crate) lines: [u64; 2 * GROUP],
    pub(crate) lanes: [u64; GROUP],
}

impl Group {
    pub(crate) const NONE: Self = Self { lines: [0; 2 * GROUP], lanes: [0; GROUP] };
}

/// An instruction set. There is one only where the processor has it.
pub(crate) trait Kernel: Copy {
    /// Can it do [`Kernel::group`]?
    const GROUPS: bool = false;

    /// A bit for each of the 29 lanes of entries that is equal to a value.
    fn equal(self, line: &Line, lane: u16) -> u32;

    /// Is a lane of an entry in either line equal to a value?
    #[inline(always)]
    fn is_in_either(self, a: &Line, b: &Line, lane: u16) -> bool {
        (self.equal(a, lane) | self.equal(b, lane)) != 0
    }

    /// Moves the entries before one up by a lane, over that one, which is the lowest bit of `upto`; the first word
    /// is new, and entry 0 with it. `upto` must have a bit among the lowest 29.
    fn push(self, line: &mut Line, upto: u32, first: u64);

    /// Moves the entries from number `from` on up by a lane, over the one that is the lowest bit of `upto`, and puts
    /// another in the place of the first of them; the first word is new, and entry 0 with it, which is the other if
    /// `from` is 0. `upto` must have a bit among the lowest 29, and none of an entry before `from`.
    fn place(self, line: &mut Line, from: u32, upto: u32, lane: u16, first: u64);

    /// Zeroes the entries from `count` up to `end` (29 at the most, and no less than `count`); the first word is new.
    fn cut(self, line: &mut Line, count: u32, end: u32, first: u64);

    /// The set bit of a word below which `n` others are, for `nth = 1 << n`; 0 where there are not so many, and for
    /// an `nth` of 0.
    fn deposit(self, nth: u64, word: u64) -> u64;

    /// The places of the keys of a group, all at once: [`lines_and_lane`] of each.
    #[inline(always)]
    fn places(self, digests: &[Digest; GROUP], lines: u64, group: &mut Group) {
        for (at, &digest) in digests.iter().enumerate() {
            let (a, b, lane) = lines_and_lane(digest, lines);
            (group.lines[at], group.lines[GROUP + at], group.lanes[at]) = (a, b, lane);
        }
    }

    /// One arrival of each key of a group, in lines of 29 entries, as [`arrive`] one after the other, up to the first
    /// that finds no room: how many were done, and a bit for each of them that was there. With `renews` those go in
    /// front, too.
    ///
    /// None is done where two want one line: they are to be done one by one.
    #[inline(always)]
    fn group(self, _lines: &mut [Line], _group: &Group, _renews: bool) -> (usize, u8) {
        (0, 0)
    }
}

/// The two lines of a key among so many, fewer than 2^32, and its lane, which is not 0. The other line follows from the
/// one and the lane.
#[inline(always)]
pub(crate) fn lines_and_lane(digest: Digest, lines: u64) -> (u64, u64, u64) {
    // So that the compiler knows, too, that 32 bits are enough.
    let lines = lines & 0xFFFF_FFFF;
    let lane = (digest.lo() >> 48).max(1);
    let a = ((digest.hi() >> 32) * lines) >> 32;
    let less = ((lane * lines) >> 16).wrapping_sub(a);
    (a, less.min(less.wrapping_add(lines)), lane)
}

/// One arrival of a key with two lines of 29 entries and a lane: it moves to the front of the line that has it, or
/// comes in front in the one with fewer entries. Was it there? `None`, and nothing has changed, where there is no room.
/// Where it is and does not renew nothing changes either.
#[inline(always)]
pub(crate) fn arrive<K: Kernel>(
    kernel: K,
    lines: &mut [Line],
    (a, b): (usize, usize),
    lane: u16,
    renews: bool,
) -> Option<bool> {
    let (in_a, in_b) = (kernel.equal(&lines[a], lane), kernel.equal(&lines[b], lane));
    let (string_a, string_b) = (lines[a][0] & STRING, lines[b][0] & STRING);
    // The line with the key, or the one with fewer entries.
    let full_a = if in_a != 0 { -1 } else { string_a.count_ones() as i32 };
    let full_b = if in_b != 0 { -1 } else { string_b.count_ones() as i32 };
    let is_b = full_b < full_a;
    if full_a.min(full_b) >= ENTRIES as i32 {
        return None;
    }
    let matches = select_unpredictable(is_b, in_b, in_a);
    let is_there = matches != 0;
    if !is_there || renews {
        let string = renewed(kernel, select_unpredictable(is_b, string_b, string_a), matches);
        let line = &mut lines[select_unpredictable(is_b, b, a)];
        kernel.push(line, matches | 1 << (ENTRIES - 1), string | u64::from(lane));
    }
    Some(is_there)
}

/// Entries of a line.
#[inline(always)]
pub(crate) fn count(line: &Line) -> u32 {
    (line[0] & STRING).count_ones()
}

/// The ages when the first of the entries in `matches` goes in front, or a new one if there is none.
#[inline(always)]
pub(crate) fn renewed<K: Kernel>(kernel: K, string: u64, matches: u32) -> u64 {
    let place = kernel.deposit(u64::from(matches & matches.wrapping_neg()), string);
    let below = place ^ place.wrapping_sub(1);
    (string ^ (string ^ string << 1) & below) | 1 << 16
}

/// Work that goes faster with more instructions. What it calls must be inlined to have any of them, so closures are
/// no good in it.
pub(crate) trait Work {
    type Result;

    /// To be marked `#[inline(always)]`.
    fn run<K: Kernel>(self, kernel: K) -> Self::Result;
}

/// The instruction sets there are, of which a processor has some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Scalar,
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    Neon,
    #[cfg(target_arch = "x86_64")]
    Sse2,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// The best that this processor has.
    #[inline(always)]
    pub(crate) fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        return x86::best();
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        return Self::Neon;
        #[cfg(not(any(
            target_arch = "x86_64",
            all(target_arch = "aarch64", target_endian = "little")
        )))]
        return Self::Scalar;
    }

    /// All that this processor has.
    #[cfg(test)]
    pub(crate) fn all() -> alloc::vec::Vec<Self> {
        #[cfg(target_arch = "x86_64")]
        let more = [Self::Sse2, Self::Avx2, Self::Avx512];
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        let more = [Self::Neon];
        #[cfg(not(any(
            target_arch = "x86_64",
            all(target_arch = "aarch64", target_endian = "little")
        )))]
        let more = [];
        let best = Self::best() as u8;
        [Self::Scalar]
            .into_iter()
            .chain(more.into_iter().filter(|&one| one as u8 <= best))
            .collect()
    }

    /// [`arrive`] with this instruction set, for arrivals that come one by one.
    #[inline(always)]
    pub(crate) fn arrive(
        self,
        lines: &mut [Line],
        places: (usize, usize),
        lane: u16,
        renews: bool,
    ) -> Option<bool> {
        #[cfg(target_arch = "x86_64")]
        return x86::arrive(self, lines, places, lane, renews);
        #[cfg(not(target_arch = "x86_64"))]
        self.run(Arrive { lines, places, lane, renews })
    }

    /// [`Kernel::is_in_either`] with this instruction set, for questions that come one by one.
    #[inline(always)]
    pub(crate) fn is_in_either(self, a: &Line, b: &Line, lane: u16) -> bool {
        #[cfg(target_arch = "x86_64")]
        return x86::is_in_either(self, a, b, lane);
        #[cfg(not(target_arch = "x86_64"))]
        self.run(Either { a, b, lane })
    }

    /// Does some work with this instruction set, or the best below it that the processor has.
    #[inline(always)]
    pub(crate) fn run<T: Work>(self, work: T) -> T::Result {
        #[cfg(target_arch = "x86_64")]
        if self != Self::Scalar {
            return x86::run(self, work);
        }
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        if self == Self::Neon {
            return work.run(neon::Neon::HERE);
        }
        work.run(Scalar)
    }
}

/// From now on no instruction set above this one is used; 0 is the simplest.
#[cfg(fuzzing)]
pub fn use_no_more_than(level: u8) {
    #[cfg(target_arch = "x86_64")]
    x86::use_no_more_than(level);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = level;
}

/// [`arrive`].
struct Arrive<'a> {
    lines: &'a mut [Line],
    places: (usize, usize),
    lane: u16,
    renews: bool,
}

impl Work for Arrive<'_> {
    type Result = Option<bool>;

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> Option<bool> {
        arrive(kernel, self.lines, self.places, self.lane, self.renews)
    }
}

/// [`Kernel::is_in_either`].
struct Either<'a> {
    a: &'a Line,
    b: &'a Line,
    lane: u16,
}

impl Work for Either<'_> {
    type Result = bool;

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> bool {
        kernel.is_in_either(self.a, self.b, self.lane)
    }
}

/// The bits of a compare of all 32 lanes, in the order of the entries.
#[inline(always)]
fn in_order(lanes: u32) -> u32 {
    lanes & 1 | lanes >> 4 << 1
}

#[cfg(test)]
mod tests;
