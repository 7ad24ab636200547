//! 64-bit ARM, little-endian.
#![allow(unsafe_code)]

use super::{Kernel, Scalar, in_order};
use crate::bits::lanes;
use crate::bits::lines::Line;
use core::arch::aarch64::*;

/// What every such processor has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Neon(());

impl Neon {
    pub(super) const HERE: Self = Self(());
}

/// The number of each lane's entry; the lanes that are none count as the first.
static PLACES: [u16; 32] = {
    let mut places = [0; 32];
    let mut at = 4;
    while at < 32 {
        places[at] = at as u16 - 3;
        at += 1;
    }
    places
};

impl Kernel for Neon {
    #[inline(always)]
    fn equal(self, line: &Line, lane: u16) -> u32 {
        in_order(lanes::equal(line, lane))
    }

    #[inline(always)]
    fn push(self, line: &mut Line, upto: u32, first: u64) {
        let lanes: *mut u16 = line.as_mut_ptr().cast();
        // SAFETY: NEON is part of every aarch64 target; loads and stores of 16 bytes are of the 64 bytes of the line,
        // or of `PLACES`.
        unsafe {
            let last = vdupq_n_u16(upto.trailing_zeros() as u16);
            let mut below = vdupq_n_u16(0);
            for quarter in 0..4 {
                let old = vld1q_u16(lanes.add(8 * quarter));
                let mut moved = vextq_u16::<7>(below, old);
                if quarter == 0 {
                    // Lane 4 takes lane 0.
                    moved = vsetq_lane_u16::<4>(vgetq_lane_u16::<0>(old), moved);
                }
                let stays = vcgtq_u16(vld1q_u16(PLACES.as_ptr().add(8 * quarter)), last);
                vst1q_u16(lanes.add(8 * quarter), vbslq_u16(stays, old, moved));
                below = old;
            }
        }
        line[0] = first;
    }

    #[inline(always)]
    fn place(self, line: &mut Line, from: u32, upto: u32, lane: u16, first: u64) {
        let lanes: *mut u16 = line.as_mut_ptr().cast();
        // SAFETY: as in `push`.
        unsafe {
            let (start, last) =
                (vdupq_n_u16(from as u16), vdupq_n_u16(upto.trailing_zeros() as u16));
            let new = vdupq_n_u16(lane);
            let mut below = vdupq_n_u16(0);
            for quarter in 0..4 {
                let old = vld1q_u16(lanes.add(8 * quarter));
                let places = vld1q_u16(PLACES.as_ptr().add(8 * quarter));
                let mut moved = vextq_u16::<7>(below, old);
                if quarter == 0 {
                    // Lane 4 takes lane 0.
                    moved = vsetq_lane_u16::<4>(vgetq_lane_u16::<0>(old), moved);
                }
                let stays = vorrq_u16(vcgtq_u16(places, last), vcgtq_u16(start, places));
                let line = vbslq_u16(stays, old, moved);
                let line = vbslq_u16(vceqq_u16(places, start), new, line);
                vst1q_u16(lanes.add(8 * quarter), line);
                below = old;
            }
        }
        line[0] = first;
    }

    #[inline(always)]
    fn cut(self, line: &mut Line, count: u32, end: u32, first: u64) {
        let lanes: *mut u16 = line.as_mut_ptr().cast();
        // SAFETY: as in `push`.
        unsafe {
            let (count, end) = (vdupq_n_u16(count as u16), vdupq_n_u16(end as u16));
            for quarter in 0..4 {
                let places = vld1q_u16(PLACES.as_ptr().add(8 * quarter));
                let kept = vorrq_u16(vcgtq_u16(count, places), vcgeq_u16(places, end));
                let old = vld1q_u16(lanes.add(8 * quarter));
                vst1q_u16(lanes.add(8 * quarter), vandq_u16(old, kept));
            }
        }
        line[0] = first;
    }

    #[inline(always)]
    fn deposit(self, nth: u64, word: u64) -> u64 {
        Scalar.deposit(nth, word)
    }
}
