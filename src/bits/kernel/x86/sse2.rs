//! SSE2, which every x86-64 processor has.
#![allow(unsafe_code)]

use super::super::{Kernel, Scalar, in_order};
use super::{PLACES, again};
use crate::bits::lanes;
use crate::bits::lines::Line;
use core::arch::x86_64::*;

/// What every x86-64 processor has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sse2(());

impl Sse2 {
    pub(in super::super) const HERE: Self = Self(());
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
