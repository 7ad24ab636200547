//! Any processor: the twin of all others.

use super::{Kernel, in_order};
use crate::bits::dispatch::{Bits, Portable};
use crate::bits::lanes;
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
        in_order(lanes::scalar(line, lane))
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
    fn place(self, line: &mut Line, from: u32, upto: u32, lane: u16, first: u64) {
        let (start, end) = (from + 3, upto.trailing_zeros() + 4);
        let mut carry = line[0] & 0xFFFF;
        for (at, word) in line.iter_mut().enumerate().skip(1) {
            let moves = lanes_below(end, at) & !lanes_below(start, at);
            let (moved, next) = (*word << 16 | carry, *word >> 48);
            *word = *word & !moves | moved & moves;
            carry = next;
        }
        let (word, shift) = (start as usize / 4 % 8, 16 * (start % 4));
        line[word] = line[word] & !(0xFFFF << shift) | u64::from(lane) << shift;
        line[0] = first;
    }

    #[inline(always)]
    fn cut(self, line: &mut Line, count: u32, end: u32, first: u64) {
        for (at, word) in line.iter_mut().enumerate() {
            *word &= lanes_below(count + 3, at) | !lanes_below(end + 3, at);
        }
        line[0] = first;
    }

    #[inline(always)]
    fn deposit(self, nth: u64, word: u64) -> u64 {
        let n = nth.trailing_zeros();
        if n >= word.count_ones() { 0 } else { 1 << Portable.nth_one(word, n) }
    }
}
