//! x86-64: SSE2, which all have, AVX2 with bit instructions, and AVX-512.
#![allow(unsafe_code)]

use super::{GROUP, Group, Kernel, Level, STRING, Scalar, Work, in_order};
use crate::Digest;
use crate::bits::lanes;
use crate::bits::lines::Line;
use core::arch::x86_64::*;
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// The index of the best level; 0: not looked yet.
static FOUND: AtomicU8 = AtomicU8::new(0);

#[inline(always)]
pub(super) fn best() -> Level {
    match FOUND.load(Relaxed) {
        0 => look(),
        1 => Level::Sse2,
        2 => Level::Avx2,
        _ => Level::Avx512,
    }
}

/// Has the processor this level? `false` where nobody has looked yet.
#[inline(always)]
fn has(level: Level) -> bool {
    level as u8 <= FOUND.load(Relaxed)
}

/// [`use_no_more_than`](super::use_no_more_than): SSE2 is the least there is.
#[cfg(fuzzing)]
pub(super) fn use_no_more_than(level: u8) {
    FOUND.store(level.clamp(Level::Sse2 as u8, look() as u8), Relaxed);
}

#[cold]
#[allow(unused_unsafe)]
fn look() -> Level {
    const OS_SAVES_REGISTERS: u32 = 1 << 27;
    const POPCNT: u32 = 1 << 23;
    const LZCNT: u32 = 1 << 5;
    const BMI1_AVX2_BMI2: u32 = 1 << 3 | 1 << 5 | 1 << 8;
    const AVX512_F_CD_BW_VL: u32 = 1 << 16 | 1 << 28 | 1 << 30 | 1 << 31;
    const AVX512_VPOPCNTDQ: u32 = 1 << 14;
    // SAFETY: every x86_64 processor has `cpuid`, which only reads; one whose system saves the registers of
    // vectors has `xgetbv`.
    let (avx2, avx512) = unsafe {
        let (one, most) = (__cpuid(1), __cpuid(0).eax);
        let extended = __cpuid(0x8000_0000).eax > 0x8000_0000;
        let lzcnt = extended && __cpuid(0x8000_0001).ecx & LZCNT == LZCNT;
        let basic = most >= 7 && lzcnt && one.ecx & POPCNT == POPCNT;
        if !basic || one.ecx & OS_SAVES_REGISTERS == 0 {
            (false, false)
        } else {
            let (saved, seven) = (saved_registers(), __cpuid_count(7, 0));
            let avx2 = saved & 6 == 6 && seven.ebx & BMI1_AVX2_BMI2 == BMI1_AVX2_BMI2;
            let foundation = seven.ebx & AVX512_F_CD_BW_VL == AVX512_F_CD_BW_VL;
            let counts = seven.ecx & AVX512_VPOPCNTDQ == AVX512_VPOPCNTDQ;
            let avx512 = saved & 0xE6 == 0xE6 && foundation && counts;
            (avx2, avx2 && avx512)
        }
    };
    let level = match (avx2, avx512) {
        (true, true) => Level::Avx512,
        (true, false) => Level::Avx2,
        _ => Level::Sse2,
    };
    FOUND.store(level as u8, Relaxed);
    level
}

#[target_feature(enable = "xsave")]
fn saved_registers() -> u64 {
    // SAFETY: register 0 is there wherever the instruction is.
    unsafe { _xgetbv(0) }
}

#[inline(always)]
pub(super) fn run<T: Work>(level: Level, work: T) -> T::Result {
    match if level as u8 > best() as u8 { best() } else { level } {
        // SAFETY: the processor has what the function is compiled for: no level is better than the best.
        Level::Avx512 => unsafe { avx512(work) },
        // SAFETY: as before.
        Level::Avx2 => unsafe { avx2(work) },
        Level::Sse2 => work.run(Sse2::HERE),
        Level::Scalar => work.run(Scalar),
    }
}

/// [`Level::arrive`]: what it takes is in registers, which work of several words would not be.
#[inline(always)]
pub(super) fn arrive(
    level: Level,
    lines: &mut [Line],
    (a, b): (usize, usize),
    lane: u16,
    renews: bool,
) -> Option<bool> {
    match level {
        // SAFETY: the processor has what the function is compiled for.
        Level::Avx512 if has(level) => unsafe { arrive_512(lines, a, b, lane, renews) },
        // SAFETY: as before.
        Level::Avx2 if has(level) => unsafe { arrive_256(lines, a, b, lane, renews) },
        _ => arrive_otherwise(level, lines, (a, b), lane, renews),
    }
}

/// # Safety
/// The processor must have these features.
#[target_feature(
    enable = "avx512f,avx512bw,avx512vl,avx512cd,avx512vpopcntdq,avx2,bmi1,bmi2,popcnt,lzcnt"
)]
unsafe fn arrive_512(
    lines: &mut [Line],
    a: usize,
    b: usize,
    lane: u16,
    renews: bool,
) -> Option<bool> {
    super::arrive(Avx512(()), lines, (a, b), lane, renews)
}

/// # Safety
/// The processor must have these features.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
unsafe fn arrive_256(
    lines: &mut [Line],
    a: usize,
    b: usize,
    lane: u16,
    renews: bool,
) -> Option<bool> {
    super::arrive(Avx2(()), lines, (a, b), lane, renews)
}

#[inline(never)]
fn arrive_otherwise(
    level: Level,
    lines: &mut [Line],
    places: (usize, usize),
    lane: u16,
    renews: bool,
) -> Option<bool> {
    run(level, super::Arrive { lines, places, lane, renews })
}

/// [`Level::is_in_either`], as [`arrive`].
#[inline(always)]
pub(super) fn is_in_either(level: Level, a: &Line, b: &Line, lane: u16) -> bool {
    match level {
        // SAFETY: as in `arrive`.
        Level::Avx512 if has(level) => unsafe { is_in_either_512(a, b, lane) },
        // SAFETY: as in `arrive`.
        Level::Avx2 if has(level) => unsafe { is_in_either_256(a, b, lane) },
        _ => is_in_either_otherwise(level, a, b, lane),
    }
}

/// # Safety
/// The processor must have these features.
#[target_feature(
    enable = "avx512f,avx512bw,avx512vl,avx512cd,avx512vpopcntdq,avx2,bmi1,bmi2,popcnt,lzcnt"
)]
unsafe fn is_in_either_512(a: &Line, b: &Line, lane: u16) -> bool {
    Avx512(()).is_in_either(a, b, lane)
}

/// # Safety
/// The processor must have these features.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
unsafe fn is_in_either_256(a: &Line, b: &Line, lane: u16) -> bool {
    Avx2(()).is_in_either(a, b, lane)
}

#[inline(never)]
fn is_in_either_otherwise(level: Level, a: &Line, b: &Line, lane: u16) -> bool {
    run(level, super::Either { a, b, lane })
}

/// # Safety
/// The processor must have these features.
#[target_feature(
    enable = "avx512f,avx512bw,avx512vl,avx512cd,avx512vpopcntdq,avx2,bmi1,bmi2,popcnt,lzcnt"
)]
unsafe fn avx512<T: Work>(work: T) -> T::Result {
    work.run(Avx512(()))
}

/// # Safety
/// The processor must have these features.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
unsafe fn avx2<T: Work>(work: T) -> T::Result {
    work.run(Avx2(()))
}

#[repr(align(64))]
struct Lanes([u16; 32]);

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

/// The number of each lane's entry; the lanes that are none count as the first.
static PLACES: Lanes = {
    let mut places = [0; 32];
    let mut at = 4;
    while at < 32 {
        places[at] = at as u16 - 3;
        at += 1;
    }
    Lanes(places)
};

/// What every x86-64 processor has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sse2(());

impl Sse2 {
    pub(super) const HERE: Self = Self(());
}

impl Kernel for Sse2 {
    #[inline(always)]
    fn equal(self, line: &Line, lane: u16) -> u32 {
        in_order(lanes::equal(line, lane))
    }

    #[inline(always)]
    fn push(self, line: &mut Line, upto: u32, first: u64) {
        let at: *mut __m128i = again(line);
        // SAFETY: SSE2 is part of every x86_64 target; all loads and stores of 16 bytes, which need no alignment, are
        // of the 64 bytes of the line or of `PLACES`. They are read again, as the compiler would otherwise choose
        // between the two lines that a caller has read by a branch that cannot be predicted.
        unsafe {
            let (a, b) = (_mm_loadu_si128(at), _mm_loadu_si128(at.add(1)));
            let (c, d) = (_mm_loadu_si128(at.add(2)), _mm_loadu_si128(at.add(3)));
            let last = _mm_set1_epi16(upto.trailing_zeros() as i16);
            let places: *const __m128i = PLACES.0.as_ptr().cast();
            let a_up = _mm_insert_epi16::<4>(_mm_slli_si128::<2>(a), _mm_cvtsi128_si32(a));
            let new = stay(a, a_up, _mm_loadu_si128(places), last);
            let word = _mm_castsi128_pd(_mm_cvtsi64_si128(first.cast_signed()));
            let new = _mm_castpd_si128(_mm_move_sd(_mm_castsi128_pd(new), word));
            _mm_storeu_si128(at, new);
            _mm_storeu_si128(at.add(1), stay(b, up(b, a), _mm_loadu_si128(places.add(1)), last));
            _mm_storeu_si128(at.add(2), stay(c, up(c, b), _mm_loadu_si128(places.add(2)), last));
            _mm_storeu_si128(at.add(3), stay(d, up(d, c), _mm_loadu_si128(places.add(3)), last));
        }
    }

    #[inline(always)]
    fn place(self, line: &mut Line, from: u32, upto: u32, lane: u16, first: u64) {
        let at: *mut __m128i = again(line);
        let places: *const __m128i = PLACES.0.as_ptr().cast();
        // SAFETY: as in `push`.
        unsafe {
            let (a, b) = (_mm_loadu_si128(at), _mm_loadu_si128(at.add(1)));
            let (c, d) = (_mm_loadu_si128(at.add(2)), _mm_loadu_si128(at.add(3)));
            let put = Put {
                start: _mm_set1_epi16(from as i16),
                last: _mm_set1_epi16(upto.trailing_zeros() as i16),
                lane: _mm_set1_epi16(lane.cast_signed()),
            };
            let a_up = _mm_insert_epi16::<4>(_mm_slli_si128::<2>(a), _mm_cvtsi128_si32(a));
            let new = put.to(a, a_up, _mm_loadu_si128(places));
            let word = _mm_castsi128_pd(_mm_cvtsi64_si128(first.cast_signed()));
            let new = _mm_castpd_si128(_mm_move_sd(_mm_castsi128_pd(new), word));
            _mm_storeu_si128(at, new);
            _mm_storeu_si128(at.add(1), put.to(b, up(b, a), _mm_loadu_si128(places.add(1))));
            _mm_storeu_si128(at.add(2), put.to(c, up(c, b), _mm_loadu_si128(places.add(2))));
            _mm_storeu_si128(at.add(3), put.to(d, up(d, c), _mm_loadu_si128(places.add(3))));
        }
    }

    #[inline(always)]
    fn cut(self, line: &mut Line, count: u32, end: u32, first: u64) {
        let at: *mut __m128i = line.as_mut_ptr().cast();
        let places: *const __m128i = PLACES.0.as_ptr().cast();
        // SAFETY: as in `push`.
        unsafe {
            let count = _mm_set1_epi16(count as i16);
            let last = _mm_set1_epi16(end as i16 - 1);
            for quarter in 0..4 {
                let places = _mm_loadu_si128(places.add(quarter));
                let kept =
                    _mm_or_si128(_mm_cmpgt_epi16(count, places), _mm_cmpgt_epi16(places, last));
                let old = _mm_loadu_si128(at.add(quarter));
                _mm_storeu_si128(at.add(quarter), _mm_and_si128(old, kept));
            }
        }
        line[0] = first;
    }

    #[inline(always)]
    fn deposit(self, nth: u64, word: u64) -> u64 {
        Scalar.deposit(nth, word)
    }
}

/// The same place, of which the compiler does not know that it is the same: so what is there is read again, and at once.
#[inline(always)]
#[expect(clippy::pointers_in_nomem_asm_block, reason = "there is no instruction that reads there")]
fn again<T>(place: &mut Line) -> *mut T {
    let mut at: *mut T = place.as_mut_ptr().cast();
    // SAFETY: there is no instruction.
    unsafe {
        core::arch::asm!("/* {0} */", inout(reg) at, options(pure, nomem, nostack, preserves_flags));
    }
    at
}

/// Lanes up by one, the first from the quarter below.
#[inline(always)]
fn up(quarter: __m128i, below: __m128i) -> __m128i {
    // SAFETY: SSE2 is part of every x86_64 target.
    unsafe { _mm_or_si128(_mm_slli_si128::<2>(quarter), _mm_srli_si128::<14>(below)) }
}

/// Of lanes whose place is after the last, the old ones; the moved ones elsewhere.
#[inline(always)]
fn stay(old: __m128i, moved: __m128i, places: __m128i, last: __m128i) -> __m128i {
    // SAFETY: SSE2 is part of every x86_64 target.
    unsafe {
        let stays = _mm_cmpgt_epi16(places, last);
        _mm_or_si128(_mm_and_si128(stays, old), _mm_andnot_si128(stays, moved))
    }
}

/// An entry that goes among others.
struct Put {
    start: __m128i,
    last: __m128i,
    lane: __m128i,
}

impl Put {
    /// A quarter with the old lanes before the first place and after the last, the new one at the first, and moved
    /// ones elsewhere.
    #[inline(always)]
    fn to(&self, old: __m128i, moved: __m128i, places: __m128i) -> __m128i {
        // SAFETY: SSE2 is part of every x86_64 target.
        unsafe {
            let before = _mm_cmpgt_epi16(self.start, places);
            let stays = _mm_or_si128(before, _mm_cmpgt_epi16(places, self.last));
            let line = _mm_or_si128(_mm_and_si128(stays, old), _mm_andnot_si128(stays, moved));
            let here = _mm_cmpeq_epi16(places, self.start);
            _mm_or_si128(_mm_and_si128(here, self.lane), _mm_andnot_si128(here, line))
        }
    }
}

/// AVX2, and bit instructions: made in [`avx2`] alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx2(());

impl Kernel for Avx2 {
    #[inline(always)]
    fn equal(self, line: &Line, lane: u16) -> u32 {
        let at: *const __m256i = line.as_ptr().cast();
        // SAFETY: there is one of these only where the processor has the instructions; the two loads of 32 bytes,
        // which need no alignment, are the 64 bytes of the line.
        unsafe {
            let value = _mm256_set1_epi16(lane.cast_signed());
            let low = _mm256_cmpeq_epi16(_mm256_loadu_si256(at), value);
            let high = _mm256_cmpeq_epi16(_mm256_loadu_si256(at.add(1)), value);
            let both = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi16(low, high));
            in_order(_mm256_movemask_epi8(both).cast_unsigned())
        }
    }

    #[inline(always)]
    fn is_in_either(self, a: &Line, b: &Line, lane: u16) -> bool {
        let (a, b): (*const __m256i, *const __m256i) = (a.as_ptr().cast(), b.as_ptr().cast());
        // SAFETY: as in `equal`.
        unsafe {
            let value = _mm256_set1_epi16(lane.cast_signed());
            let equal = |half: usize| {
                let in_a = _mm256_cmpeq_epi16(_mm256_loadu_si256(a.add(half)), value);
                let in_b = _mm256_cmpeq_epi16(_mm256_loadu_si256(b.add(half)), value);
                _mm256_or_si256(in_a, in_b)
            };
            // Lanes 1 to 3 are no entries.
            let entries = _mm256_setr_epi64x(0xFFFF, -1, -1, -1);
            let low = _mm256_and_si256(equal(0), entries);
            let both = _mm256_or_si256(low, equal(1));
            _mm256_testz_si256(both, both) == 0
        }
    }

    #[inline(always)]
    fn push(self, line: &mut Line, upto: u32, first: u64) {
        let at: *mut __m256i = again(line);
        // SAFETY: there is one of these only where the processor has the instructions; all loads and stores of 32
        // bytes, which need no alignment, are of the 64 bytes of the line or of `PLACES`. The line is read again, as
        // the compiler would otherwise choose between two lines by a branch that cannot be predicted.
        unsafe {
            let (low, high) = (_mm256_loadu_si256(at), _mm256_loadu_si256(at.add(1)));
            let (low_up, high_up) = up_256(low, high);
            let last = _mm256_set1_epi16(upto.trailing_zeros() as i16);
            let places: *const __m256i = PLACES.0.as_ptr().cast();
            let low_stays = _mm256_cmpgt_epi16(_mm256_loadu_si256(places), last);
            let high_stays = _mm256_cmpgt_epi16(_mm256_loadu_si256(places.add(1)), last);
            let word = _mm256_castsi128_si256(_mm_cvtsi64_si128(first.cast_signed()));
            let new = _mm256_blendv_epi8(low_up, low, low_stays);
            _mm256_storeu_si256(at, _mm256_blend_epi32::<0b11>(new, word));
            _mm256_storeu_si256(at.add(1), _mm256_blendv_epi8(high_up, high, high_stays));
        }
    }

    #[inline(always)]
    fn place(self, line: &mut Line, from: u32, upto: u32, lane: u16, first: u64) {
        let at: *mut __m256i = again(line);
        // SAFETY: as in `push`.
        unsafe {
            let (low, high) = (_mm256_loadu_si256(at), _mm256_loadu_si256(at.add(1)));
            let (low_up, high_up) = up_256(low, high);
            let start = _mm256_set1_epi16(from as i16);
            let last = _mm256_set1_epi16(upto.trailing_zeros() as i16);
            let lane = _mm256_set1_epi16(lane.cast_signed());
            let places: *const __m256i = PLACES.0.as_ptr().cast();
            let mut new = [low, high];
            for (half, moved) in [low_up, high_up].into_iter().enumerate() {
                let places = _mm256_loadu_si256(places.add(half));
                let before = _mm256_cmpgt_epi16(start, places);
                let stays = _mm256_or_si256(before, _mm256_cmpgt_epi16(places, last));
                let line = _mm256_blendv_epi8(moved, new[half], stays);
                new[half] = _mm256_blendv_epi8(line, lane, _mm256_cmpeq_epi16(places, start));
            }
            let word = _mm256_castsi128_si256(_mm_cvtsi64_si128(first.cast_signed()));
            _mm256_storeu_si256(at, _mm256_blend_epi32::<0b11>(new[0], word));
            _mm256_storeu_si256(at.add(1), new[1]);
        }
    }

    #[inline(always)]
    fn cut(self, line: &mut Line, count: u32, end: u32, first: u64) {
        let at: *mut __m256i = line.as_mut_ptr().cast();
        let places: *const __m256i = PLACES.0.as_ptr().cast();
        // SAFETY: as in `push`.
        unsafe {
            let count = _mm256_set1_epi16(count as i16);
            let last = _mm256_set1_epi16(end as i16 - 1);
            for half in 0..2 {
                let places = _mm256_loadu_si256(places.add(half));
                let kept = _mm256_cmpgt_epi16(count, places);
                let kept = _mm256_or_si256(kept, _mm256_cmpgt_epi16(places, last));
                let old = _mm256_loadu_si256(at.add(half));
                _mm256_storeu_si256(at.add(half), _mm256_and_si256(old, kept));
            }
        }
        line[0] = first;
    }

    #[inline(always)]
    fn deposit(self, nth: u64, word: u64) -> u64 {
        // SAFETY: there is one of these only where the processor has the instruction.
        unsafe { _pdep_u64(nth, word) }
    }
}

/// The halves of a line with all lanes up by one, and lane 0 in lane 4.
///
/// # Safety
/// The processor must have AVX2.
#[inline(always)]
unsafe fn up_256(low: __m256i, high: __m256i) -> (__m256i, __m256i) {
    // SAFETY: the caller says that the processor has the instructions.
    unsafe {
        let low_up = _mm256_alignr_epi8::<14>(low, _mm256_permute2x128_si256::<0x08>(low, low));
        // In the lower half: the first blend repeats for both.
        let entry = _mm256_castsi128_si256(_mm_slli_si128::<8>(_mm256_castsi256_si128(low)));
        let with_entry = _mm256_blend_epi16::<0x10>(low_up, entry);
        let low_up = _mm256_blend_epi32::<0xF0>(with_entry, low_up);
        (low_up, _mm256_alignr_epi8::<14>(high, _mm256_permute2x128_si256::<0x21>(low, high)))
    }
}

/// AVX-512, and bit instructions: made in [`avx512`] alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx512(());

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
    // SAFETY: the processor has the instructions; load and store are of the 64 bytes of the line, which `Loose` lets lie
    // at any word. It is read again, and for certain: the compiler would otherwise choose between two lines by a branch
    // that cannot be predicted, or store under a mask, for which whoever reads the line soon afterwards would have to wait.
    unsafe {
        let at: *mut Loose = line.as_mut_ptr().cast();
        let old = core::ptr::read_volatile(at).0;
        let front = _mm512_castsi128_si512(_mm_cvtsi64_si128(first.cast_signed()));
        let up = _mm512_loadu_si512(UP.0.as_ptr().cast());
        let new = _mm512_mask_permutex2var_epi16(old, moves, up, front);
        _mm512_storeu_si512(at.cast(), new);
    }
}

/// A line at any word.
#[derive(Clone, Copy)]
#[repr(C, packed(8))]
struct Loose(__m512i);

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
        if _mm512_cmpge_epu64_mask(_mm512_max_epu64(a, b), len) != 0 {
            return (0, 0);
        }
        // What only seems to meet is done one by one as well.
        if may_meet(a, b) {
            return (0, 0);
        }
        let base: *mut Line = lines.as_mut_ptr();
        // In registers: what is written word by word and read at once has to wait for itself. By macros, as closures
        // would not have the instructions.
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
        let equal = eight!(at => {
            let value = _mm512_set1_epi16(group.lanes[at] as i16);
            let (line_a, line_b) = (base.add(first[at] as usize), base.add(second[at] as usize));
            let in_a = _mm512_cmpeq_epi16_mask(_mm512_loadu_si512(line_a.cast()), value);
            let in_b = _mm512_cmpeq_epi16_mask(_mm512_loadu_si512(line_b.cast()), value);
            both_masks(in_b, in_a)
        });
        let words_a = eight!(at => (*base.add(first[at] as usize))[0]);
        let words_b = eight!(at => (*base.add(second[at] as usize))[0]);
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
        // The line with the key, or the one with fewer entries.
        let minus = _mm512_set1_epi64(-1);
        let (is_in_a, is_in_b) =
            (_mm512_test_epi64_mask(in_a, in_a), _mm512_test_epi64_mask(in_b, in_b));
        let full_a = _mm512_mask_mov_epi64(_mm512_popcnt_epi64(string_a), is_in_a, minus);
        let full_b = _mm512_mask_mov_epi64(_mm512_popcnt_epi64(string_b), is_in_b, minus);
        let most = _mm512_set1_epi64(i64::from(super::ENTRIES) - 1);
        let full = _mm512_cmpgt_epi64_mask(_mm512_min_epi64(full_a, full_b), most);
        let done = (u32::from(full) | 1 << GROUP).trailing_zeros();
        let waits = (!0u32 << done) as u8;
        let is_b = _mm512_cmplt_epi64_mask(full_b, full_a);
        let matches = _mm512_mask_mov_epi64(in_a, is_b, in_b);
        let string = _mm512_mask_mov_epi64(string_a, is_b, string_b);
        let chosen = _mm512_mask_mov_epi64(a, is_b, b);
        let known = _mm512_test_epi64_mask(matches, matches);
        let less = _mm512_add_epi64(matches, minus);
        let lowest = store(_mm512_andnot_si512(less, matches));
        let moves = _mm512_slli_epi64::<3>(_mm512_xor_si512(matches, less));
        let moves = store(_mm512_or_si512(moves, _mm512_set1_epi64(7)));
        let strings = store(string);
        let place = eight!(at => _pdep_u64(lowest[at], strings[at]));
        let below = _mm512_xor_si512(place, _mm512_add_epi64(place, minus));
        // Of the doubled string what is below, of the string the rest.
        let new =
            _mm512_ternarylogic_epi64::<0xCA>(below, _mm512_add_epi64(string, string), string);
        let lanes = load(&group.lanes);
        let new = store(_mm512_ternarylogic_epi64::<0xFE>(new, lanes, _mm512_set1_epi64(1 << 16)));
        // Where nothing is to change, a line changes that is none.
        let mut none: Line = [0; 8];
        let (start, none) = (base.expose_provenance(), (&raw mut none).expose_provenance());
        let to = _mm512_add_epi64(_mm512_set1_epi64(start as i64), _mm512_slli_epi64::<6>(chosen));
        let stays = waits | if renews { 0 } else { known };
        let to = store(_mm512_mask_mov_epi64(to, stays, _mm512_set1_epi64(none as i64)));
        let mut at = 0;
        while at < GROUP {
            let line: *mut Line = core::ptr::with_exposed_provenance_mut(to[at] as usize);
            push_512(&mut *line, moves[at] as u32, new[at]);
            at += 1;
        }
        (done as usize, known & !waits)
    }
}
