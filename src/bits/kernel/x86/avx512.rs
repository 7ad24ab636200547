//! AVX-512, which takes a line at once, and the lines of eight keys together.
#![allow(unsafe_code)]

use super::super::{GROUP, Group, Kernel, STRING, in_order};
use super::{Lanes, again};
use crate::Digest;
use crate::bits::lines::Line;
use core::arch::x86_64::*;

/// The first word's lanes from the second operand, lane 4 from lane 0, others from the lane below.
static UP: Lanes = {
    let mut from = [0; 32];
    let mut at = 0;
    while at < 32 {
        from[at] = match at {
            0..4 => 32 + at as u16,
            4 => 0,
            _ => at as u16 - 1,
        };
        at += 1;
    }
    Lanes(from)
};

/// Each lane from where it is.
static STAY: Lanes = {
    let mut from = [0; 32];
    let mut at = 0;
    while at < 32 {
        from[at] = at as u16;
        at += 1;
    }
    Lanes(from)
};

/// AVX-512, and bit instructions: made only in functions that are compiled for them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx512(pub(super) ());

impl Kernel for Avx512 {
    const GROUPS: bool = true;

    #[inline(always)]
    fn equal(self, line: &Line, lane: u16) -> u32 {
        // SAFETY: there is one of these only where the processor has the instructions; the load, which needs no
        // alignment, is of the 64 bytes of the line.
        unsafe {
            let line = _mm512_loadu_si512(line.as_ptr().cast());
            let equal = _mm512_cmpeq_epi16_mask(line, _mm512_set1_epi16(lane.cast_signed()));
            in_order(equal)
        }
    }

    #[inline(always)]
    fn is_in_either(self, a: &Line, b: &Line, lane: u16) -> bool {
        // SAFETY: as in `equal`.
        unsafe {
            let value = _mm512_set1_epi16(lane.cast_signed());
            let in_a = _mm512_cmpeq_epi16_mask(_mm512_loadu_si512(a.as_ptr().cast()), value);
            let in_b = _mm512_cmpeq_epi16_mask(_mm512_loadu_si512(b.as_ptr().cast()), value);
            // Lanes 1 to 3 are no entries.
            (in_a | in_b) & !0b1110 != 0
        }
    }

    #[inline(always)]
    fn push(self, line: &mut Line, upto: u32, first: u64) {
        // SAFETY: there is one of these only where the processor has the instructions.
        unsafe { push_512(line, (upto ^ upto.wrapping_sub(1)) << 3 | 7, first) }
    }

    #[inline(always)]
    fn place(self, line: &mut Line, from: u32, upto: u32, lane: u16, first: u64) {
        let at: *mut __m512i = again(line);
        // SAFETY: as in `push_512`.
        unsafe {
            let old = _mm512_loadu_si512(at);
            let here = 1 << (from + 3);
            let moves = ((upto ^ upto.wrapping_sub(1)) << 3 | 7) & !(here - 1);
            let front = _mm512_castsi128_si512(_mm_cvtsi64_si128(first.cast_signed()));
            let moved = _mm512_permutex2var_epi16(old, up_512(moves), front);
            let lane = _mm512_set1_epi16(lane.cast_signed());
            let new = _mm512_mask_mov_epi16(moved, here, lane);
            _mm512_storeu_si512(at, _mm512_mask_mov_epi64(new, 1, front));
        }
    }

    #[inline(always)]
    fn cut(self, line: &mut Line, count: u32, end: u32, first: u64) {
        let at: *mut __m512i = line.as_mut_ptr().cast();
        // SAFETY: as in `equal`; the store is of the same bytes.
        unsafe {
            let kept = _bzhi_u32(u32::MAX, count + 3) | !_bzhi_u32(u32::MAX, end + 3);
            let new = _mm512_maskz_mov_epi16(kept, _mm512_loadu_si512(at.cast_const()));
            let word = _mm512_castsi128_si512(_mm_cvtsi64_si128(first.cast_signed()));
            _mm512_storeu_si512(at, _mm512_mask_mov_epi64(new, 1, word));
        }
    }

    #[inline(always)]
    fn deposit(self, nth: u64, word: u64) -> u64 {
        // SAFETY: there is one of these only where the processor has the instruction.
        unsafe { _pdep_u64(nth, word) }
    }

    #[inline(always)]
    fn places(self, digests: &[Digest; GROUP], lines: u64, group: &mut Group) {
        // SAFETY: there is one of these only where the processor has the instructions.
        unsafe { places_512(digests, lines, group) }
    }

    #[inline(always)]
    fn group(self, lines: &mut [Line], group: &Group, renews: bool) -> (usize, u8) {
        // SAFETY: there is one of these only where the processor has the instructions.
        unsafe { group_512(lines, group, renews) }
    }
}

/// Moves those lanes up by one that have a bit in `moves`, and puts the first word in front.
///
/// # Safety
/// The processor must have AVX-512 F and BW.
#[inline(always)]
unsafe fn push_512(line: &mut Line, moves: u32, first: u64) {
    // SAFETY: the processor has the instructions; load and store are of the 64 bytes of the line, which `Unaligned` lets lie
    // at any word. A volatile read, as the compiler would otherwise choose between two lines by a branch
    // that cannot be predicted, or store under a mask, for which whoever reads the line soon afterwards would have to wait.
    unsafe {
        let at: *mut Unaligned = line.as_mut_ptr().cast();
        let old = core::ptr::read_volatile(at).0;
        let front = _mm512_castsi128_si512(_mm_cvtsi64_si128(first.cast_signed()));
        let up = _mm512_loadu_si512(UP.0.as_ptr().cast());
        let new = _mm512_mask_permutex2var_epi16(old, moves, up, front);
        _mm512_storeu_si512(at.cast(), new);
    }
}

/// A line that begins at any word.
#[derive(Clone, Copy)]
#[repr(C, packed(8))]
struct Unaligned(__m512i);

/// From where each lane comes, if those that have a bit in `moves` go up by one.
///
/// # Safety
/// The processor must have AVX-512 F and BW.
#[inline(always)]
unsafe fn up_512(moves: u32) -> __m512i {
    // The mask is one of places and not of the line: that would become a store under a mask, and whoever reads the line
    // soon afterwards would have to wait for it.
    // SAFETY: the processor has the instructions; the loads are of the 64 bytes of `STAY` and of `UP`.
    unsafe {
        let stay = _mm512_loadu_si512(STAY.0.as_ptr().cast());
        _mm512_mask_mov_epi16(stay, moves, _mm512_loadu_si512(UP.0.as_ptr().cast()))
    }
}

/// Eight numbers from somewhere to a register.
///
/// # Safety
/// The processor must have AVX-512 F.
#[inline(always)]
unsafe fn load(numbers: &[u64; GROUP]) -> __m512i {
    // SAFETY: the load, which needs no alignment, is of 64 bytes that are there.
    unsafe { _mm512_loadu_si512(numbers.as_ptr().cast()) }
}

#[inline(always)]
unsafe fn store(numbers: __m512i) -> [u64; GROUP] {
    let mut room = [0; GROUP];
    // SAFETY: the processor has AVX-512 F, as there is a register of it; the store, which needs no alignment, is of
    // 64 bytes that are there.
    unsafe { _mm512_storeu_si512(room.as_mut_ptr().cast(), numbers) };
    room
}

/// [`Kernel::places`].
///
/// # Safety
/// The processor must have AVX-512 F and BW.
#[inline(always)]
unsafe fn places_512(digests: &[Digest; GROUP], lines: u64, group: &mut Group) {
    let at: *const __m512i = digests.as_ptr().cast();
    let to: *mut __m512i = group.lines.as_mut_ptr().cast();
    // SAFETY: the caller says that the processor has the instructions. The loads, which need no alignment, are of the
    // digests, two words each in the order of their halves; the stores are of the lines and the lanes of the group.
    unsafe {
        let (four, others) = (_mm512_loadu_si512(at), _mm512_loadu_si512(at.add(1)));
        let first = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
        let second = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
        let hi = _mm512_permutex2var_epi64(four, first, others);
        let lo = _mm512_permutex2var_epi64(four, second, others);
        let len = _mm512_set1_epi64(lines.cast_signed());
        let a = _mm512_srli_epi64::<32>(_mm512_mul_epu32(_mm512_srli_epi64::<32>(hi), len));
        let lanes = _mm512_max_epu64(_mm512_srli_epi64::<48>(lo), _mm512_set1_epi64(1));
        let less = _mm512_sub_epi64(_mm512_srli_epi64::<16>(_mm512_mul_epu32(lanes, len)), a);
        _mm512_storeu_si512(to, a);
        _mm512_storeu_si512(to.add(1), _mm512_min_epu64(less, _mm512_add_epi64(less, len)));
        _mm512_storeu_si512(group.lanes.as_mut_ptr().cast(), lanes);
    }
}

/// Are two of these numbers the same, or do they seem so?
///
/// Of each the lowest 16 bits are compared, with all others by turns: `vpconflictd` takes as long as all the rest of
/// a group on some processors.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2")]
fn may_meet(a: __m512i, b: __m512i) -> bool {
    let (a, b) = (_mm512_cvtepi64_epi16(a), _mm512_cvtepi64_epi16(b));
    let both = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(a), b);
    let all_a = _mm256_broadcastsi128_si256(a);
    let all_b = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(b), _mm_alignr_epi8::<8>(b, b));
    // 0 where two are the same. Compares would go where all the other work has to go.
    macro_rules! differ {
        ($these:expr, $by:literal, $others:expr) => {
            _mm256_xor_si256(_mm256_alignr_epi8::<$by>($these, $these), $others)
        };
    }
    // Within the ones and within the others by one to four places, and of the ones with the others by none to seven.
    let within = _mm256_min_epu16(
        _mm256_min_epu16(differ!(both, 2, both), differ!(both, 4, both)),
        _mm256_min_epu16(differ!(both, 6, both), differ!(both, 8, both)),
    );
    let across = _mm256_min_epu16(
        _mm256_min_epu16(_mm256_xor_si256(all_b, all_a), differ!(all_b, 2, all_a)),
        _mm256_min_epu16(differ!(all_b, 4, all_a), differ!(all_b, 6, all_a)),
    );
    let least = _mm256_min_epu16(within, across);
    _mm256_testn_epi16_mask(least, least) != 0
}

/// Two masks in one.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn both_masks(high: __mmask32, low: __mmask32) -> u64 {
    let (high, low) = (u64::from(high), u64::from(low));
    let both: u64;
    // SAFETY: the instruction only changes the register.
    unsafe {
        // The compiler would take it apart again.
        core::arch::asm!(
            "kunpckdq {both}, {high}, {low}",
            both = out(kreg) both, high = in(kreg) high, low = in(kreg) low,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    both
}

/// Where each of eight keys goes.
struct Chosen {
    /// The line with the key, or the one with fewer entries.
    line: __m512i,
    /// Its ages.
    string: __m512i,
    /// A bit for each of its entries with the key.
    matches: __m512i,
    /// The keys that are there.
    known: __mmask8,
    /// How many keys come before the first one that finds both of its lines full.
    before_full: u32,
}

/// Chooses one of two lines for each key. `equal` has a bit for each lane that is equal to the key's, of `a` in the lower half.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vpopcntdq,avx2")]
fn choose(a: __m512i, b: __m512i, equal: __m512i, words_a: __m512i, words_b: __m512i) -> Chosen {
    // A bit for each entry, in the order of the entries.
    let in_order = _mm512_or_si512(
        _mm512_and_si512(_mm512_srli_epi32::<3>(equal), _mm512_set1_epi32(!1)),
        _mm512_and_si512(equal, _mm512_set1_epi32(1)),
    );
    let in_a = _mm512_and_si512(in_order, _mm512_set1_epi64(0x1FFF_FFFF));
    let in_b = _mm512_srli_epi64::<32>(in_order);
    let string = _mm512_set1_epi64(STRING.cast_signed());
    let string_a = _mm512_and_si512(words_a, string);
    let string_b = _mm512_and_si512(words_b, string);
    let minus = _mm512_set1_epi64(-1);
    let (is_in_a, is_in_b) =
        (_mm512_test_epi64_mask(in_a, in_a), _mm512_test_epi64_mask(in_b, in_b));
    let full_a = _mm512_mask_mov_epi64(_mm512_popcnt_epi64(string_a), is_in_a, minus);
    let full_b = _mm512_mask_mov_epi64(_mm512_popcnt_epi64(string_b), is_in_b, minus);
    let most = _mm512_set1_epi64(i64::from(super::super::ENTRIES) - 1);
    let full = _mm512_cmpgt_epi64_mask(_mm512_min_epi64(full_a, full_b), most);
    let is_b = _mm512_cmplt_epi64_mask(full_b, full_a);
    let matches = _mm512_mask_mov_epi64(in_a, is_b, in_b);
    Chosen {
        line: _mm512_mask_mov_epi64(a, is_b, b),
        string: _mm512_mask_mov_epi64(string_a, is_b, string_b),
        matches,
        known: _mm512_test_epi64_mask(matches, matches),
        before_full: (u32::from(full) | 1 << GROUP).trailing_zeros(),
    }
}

/// A register of what is computed for each of eight keys, instead of words in memory: what is written word by word and read at
/// once has to wait for itself. A macro, as closures would not have the instructions.
macro_rules! eight {
    ($at:ident => $of:expr) => {
        _mm512_setr_epi64(
            eight!(0, $at => $of), eight!(1, $at => $of), eight!(2, $at => $of), eight!(3, $at => $of),
            eight!(4, $at => $of), eight!(5, $at => $of), eight!(6, $at => $of), eight!(7, $at => $of),
        )
    };
    ($n:literal, $at:ident => $of:expr) => {{
        let $at: usize = $n;
        let word: u64 = $of;
        word.cast_signed()
    }};
}

/// The first words of eight lines in which the key has come to the front, and the lanes that move for that.
///
/// # Safety
/// The processor must have the instructions.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
unsafe fn fronts(chosen: &Chosen, lanes: __m512i) -> ([u64; GROUP], [u64; GROUP]) {
    let Chosen { string, matches, .. } = *chosen;
    let minus = _mm512_set1_epi64(-1);
    let less = _mm512_add_epi64(matches, minus);
    let moves = _mm512_slli_epi64::<3>(_mm512_xor_si512(matches, less));
    // SAFETY: the processor has the instructions.
    unsafe {
        let moves = store(_mm512_or_si512(moves, _mm512_set1_epi64(7)));
        let lowest = store(_mm512_andnot_si512(less, matches));
        let strings = store(string);
        let place = eight!(at => _pdep_u64(lowest[at], strings[at]));
        let below = _mm512_xor_si512(place, _mm512_add_epi64(place, minus));
        // Of the doubled string what is below, of the string the rest.
        let new =
            _mm512_ternarylogic_epi64::<0xCA>(below, _mm512_add_epi64(string, string), string);
        (store(_mm512_ternarylogic_epi64::<0xFE>(new, lanes, _mm512_set1_epi64(1 << 16))), moves)
    }
}

/// [`Kernel::group`].
///
/// A function of its own, so that it may use all its instructions as it likes; it is called once for many keys.
///
/// # Safety
/// The processor must have AVX-512 F, BW, VL and VPOPCNTDQ, and BMI2.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vpopcntdq,avx2,bmi1,bmi2,popcnt,lzcnt")]
unsafe fn group_512(lines: &mut [Line], group: &Group, renews: bool) -> (usize, u8) {
    let (first, second) = group.lines.split_at(GROUP);
    // SAFETY: the caller says that the processor has the instructions; nothing is read or written but the lines, of which
    // it is looked whether they are there, and what is on the stack. No two of the lines that are written are the same.
    unsafe {
        let (a, b) =
            (_mm512_loadu_si512(first.as_ptr().cast()), _mm512_loadu_si512(second.as_ptr().cast()));
        let len = _mm512_set1_epi64(lines.len() as i64);
        let is_outside = _mm512_cmpge_epu64_mask(_mm512_max_epu64(a, b), len) != 0;
        // What only seems to meet is done one by one as well.
        if is_outside || may_meet(a, b) {
            return (0, 0);
        }
        let base: *mut Line = lines.as_mut_ptr();
        let equal = eight!(at => {
            let value = _mm512_set1_epi16(group.lanes[at] as i16);
            let (line_a, line_b) = (base.add(first[at] as usize), base.add(second[at] as usize));
            let in_a = _mm512_cmpeq_epi16_mask(_mm512_loadu_si512(line_a.cast()), value);
            let in_b = _mm512_cmpeq_epi16_mask(_mm512_loadu_si512(line_b.cast()), value);
            both_masks(in_b, in_a)
        });
        let words_a = eight!(at => (*base.add(first[at] as usize))[0]);
        let words_b = eight!(at => (*base.add(second[at] as usize))[0]);
        let chosen = choose(a, b, equal, words_a, words_b);
        let (new, moves) = fronts(&chosen, load(&group.lanes));
        // Where nothing is to change, a spare line is written instead.
        let mut spare: Line = [0; 8];
        let (start, spare) = (base.expose_provenance(), (&raw mut spare).expose_provenance());
        let to = _mm512_slli_epi64::<6>(chosen.line);
        let to = _mm512_add_epi64(_mm512_set1_epi64(start as i64), to);
        let waits = (!0u32 << chosen.before_full) as u8;
        let stays = waits | if renews { 0 } else { chosen.known };
        let to = store(_mm512_mask_mov_epi64(to, stays, _mm512_set1_epi64(spare as i64)));
        let mut at = 0;
        while at < GROUP {
            let line: *mut Line = core::ptr::with_exposed_provenance_mut(to[at] as usize);
            push_512(&mut *line, moves[at] as u32, new[at]);
            at += 1;
        }
        (chosen.before_full as usize, chosen.known & !waits)
    }
}
