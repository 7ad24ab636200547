//! Any processor: the twin of all others.

use super::{Kernel, in_order};
use crate::bits::dispatch::{Bits, Portable};
use crate::bits::lines::Line;

/// Any processor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scalar;

/// Those bits of word `at` of a line that are among its first `lanes` lanes.
#[inline(always)]
fn lanes_below(lanes: u32, at: usize) -> u64 {
    let lanes = (lanes as usize).saturating_sub(4 * at);
    if lanes >= 4 { u64::MAX } else { (1 << (16 * lanes)) - 1 }
}

impl Kernel for Scalar {
    #[inline(always)]
    fn equal(self, line: &Line, lane: u16) -> u32 {
        const LOW: u64 = 0x7FFF_7FFF_7FFF_7FFF;
        let value = u64::from(lane) * 0x0001_0001_0001_0001;
        let mut equal = 0;
        for (at, word) in line.iter().enumerate() {
            let differ = word ^ value;
            // The high bit of each lane: is it all zero? No sum carries into the next.
            let zero = !(((differ & LOW) + LOW) | differ) & !LOW;
            let four = (zero >> 15).wrapping_mul(0x0001_0002_0004_0008) >> 48 & 15;
            equal |= (four as u32) << (4 * at);
        }
        in_order(equal)
    }

    #[inline(always)]
    fn push(self, line: &mut Line, upto: u32, first: u64) {
        let lanes = upto.trailing_zeros() + 4;
        let mut carry = line[0] & 0xFFFF;
        line[0] = first;
        for (at, word) in line.iter_mut().enumerate().skip(1) {
            let moves = lanes_below(lanes, at);
            let (moved, next) = (*word << 16 | carry, *word >> 48);
            *word = *word & !moves | moved & moves;
            carry = next;
        }
    }

    #[inline(always)]
    fn cut(self, line: &mut Line, count: u32, first: u64) {
        for (at, word) in line.iter_mut().enumerate() {
            *word &= lanes_below(count + 3, at);
        }
        line[0] = first;
    }

    #[inline(always)]
    fn deposit(self, nth: u64, word: u64) -> u64 {
        let n = nth.trailing_zeros();
        if n >= word.count_ones() { 0 } else { 1 << Portable.nth_one(word, n) }
    }
}
