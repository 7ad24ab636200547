//! Sixteen-bit lanes of a cache line, compared all at once.
#![allow(unsafe_code)]

use crate::bits::lines::Line;

/// A bit for each of the 32 lanes (the lowest bits of a word are its first) that is equal to `value`.
#[inline(always)]
pub(crate) fn equal(line: &Line, value: u16) -> u32 {
    #[cfg(target_arch = "x86_64")]
    return sse2(line, value);
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    return neon(line, value);
    #[cfg(not(any(
        target_arch = "x86_64",
        all(target_arch = "aarch64", target_endian = "little")
    )))]
    return scalar(line, value);
}

/// [`equal`] in any words: the twin of the others.
#[inline(always)]
pub(crate) fn scalar(line: &Line, value: u16) -> u32 {
    const LOW: u64 = 0x7FFF_7FFF_7FFF_7FFF;
    let value = u64::from(value) * 0x0001_0001_0001_0001;
    let mut equal = 0;
    for (at, word) in line.iter().enumerate() {
        let differ = word ^ value;
        // The high bit of each lane: is it all zero? No sum carries into the next.
        let zero = !(((differ & LOW) + LOW) | differ) & !LOW;
        let four = (zero >> 15).wrapping_mul(0x0001_0002_0004_0008) >> 48 & 15;
        equal |= (four as u32) << (4 * at);
    }
    equal
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn sse2(line: &Line, value: u16) -> u32 {
    use core::arch::x86_64::{
        __m128i, _mm_cmpeq_epi16, _mm_loadu_si128, _mm_movemask_epi8, _mm_packs_epi16,
        _mm_set1_epi16,
    };
    let quarters: *const __m128i = line.as_ptr().cast();
    // SAFETY: SSE2 is part of every x86_64 target; the four loads of 16 bytes, which need no
    // alignment, are the 64 bytes of the line.
    unsafe {
        let value = _mm_set1_epi16(value.cast_signed());
        let equal = |at: usize| _mm_cmpeq_epi16(_mm_loadu_si128(quarters.add(at)), value);
        let low = _mm_movemask_epi8(_mm_packs_epi16(equal(0), equal(1)));
        let high = _mm_movemask_epi8(_mm_packs_epi16(equal(2), equal(3)));
        low.cast_unsigned() | high.cast_unsigned() << 16
    }
}

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
#[inline(always)]
fn neon(line: &Line, value: u16) -> u32 {
    use core::arch::aarch64::{vaddvq_u16, vandq_u16, vceqq_u16, vdupq_n_u16, vld1q_u16};
    let lanes: *const u16 = line.as_ptr().cast();
    let bits: [u16; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
    // SAFETY: NEON is part of every aarch64 target; the four loads of 16 bytes are the 64 bytes of
    // the line, the fifth those of `bits`.
    unsafe {
        let (value, bits) = (vdupq_n_u16(value), vld1q_u16(bits.as_ptr()));
        let eight = |at: usize| {
            let equal = vceqq_u16(vld1q_u16(lanes.add(8 * at)), value);
            u32::from(vaddvq_u16(vandq_u16(equal, bits)))
        };
        eight(0) | eight(1) << 8 | eight(2) << 16 | eight(3) << 24
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against one lane after the other; values that differ in one bit are the hard ones.
        #[test]
        fn finds_the_lanes_that_are_equal(value: u16, differ in prop::array::uniform32(0u32..24)) {
            let lanes = differ.map(|bit| value ^ (1u32 << bit) as u16);
            let mut line = [0; 8];
            for (at, lane) in lanes.into_iter().enumerate() {
                line[at / 4] |= u64::from(lane) << (16 * (at % 4));
            }
            let one_by_one = |set, (at, lane): (usize, u16)| set | u32::from(lane == value) << at;
            let expected = lanes.into_iter().enumerate().fold(0, one_by_one);
            prop_assert_eq!(equal(&line, value), expected);
            prop_assert_eq!(scalar(&line, value), expected);
        }
    }
}
