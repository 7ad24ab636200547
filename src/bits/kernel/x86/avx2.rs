//! AVX2, and bit instructions.
#![allow(unsafe_code)]

use super::super::{Kernel, in_order};
use super::{PLACES, again};
use crate::bits::lines::Line;
use core::arch::x86_64::*;

/// AVX2, and bit instructions: made only in functions that are compiled for them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx2(pub(super) ());

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
            let low_a = _mm256_cmpeq_epi16(_mm256_loadu_si256(a), value);
            let low_b = _mm256_cmpeq_epi16(_mm256_loadu_si256(b), value);
            let high_a = _mm256_cmpeq_epi16(_mm256_loadu_si256(a.add(1)), value);
            let high_b = _mm256_cmpeq_epi16(_mm256_loadu_si256(b.add(1)), value);
            // Lanes 1 to 3 are no entries.
            let entries = _mm256_setr_epi64x(0xFFFF, -1, -1, -1);
            let low = _mm256_and_si256(_mm256_or_si256(low_a, low_b), entries);
            let both = _mm256_or_si256(low, _mm256_or_si256(high_a, high_b));
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
