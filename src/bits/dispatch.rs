//! The same code compiled twice: for any processor of the kind, and for those with bit instructions.
#![allow(unsafe_code)]

/// What a processor can do with bits in one instruction, or else in several.
pub(crate) trait Bits: Copy {
    /// The place of the set bit that `n` (below 64) others are below of; 63 where there are not so many.
    fn nth_one(self, word: u64, n: u32) -> u32;
}

/// Any processor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Portable;

/// Work that goes faster with bit instructions. What it calls must be inlined to have any of it, so closures,
/// iterators' above all, are no good in it.
pub(crate) trait Work {
    type Result;

    /// To be marked `#[inline(always)]`.
    fn run<B: Bits>(self, bits: B) -> Self::Result;
}

/// Does some work with the bit instructions of this processor, if it has them: the same result, sooner.
#[inline(always)]
pub(crate) fn dispatch<T: Work>(work: T) -> T::Result {
    #[cfg(target_arch = "x86_64")]
    if x86::has_bit_instructions() {
        // SAFETY: the processor has what the function is compiled for.
        return unsafe { x86::run(work) };
    }
    work.run(Portable)
}

impl Bits for Portable {
    #[inline(always)]
    fn nth_one(self, word: u64, n: u32) -> u32 {
        const BYTES: u64 = 0x0101_0101_0101_0101;
        let pairs = word - (word >> 1 & 0x5555_5555_5555_5555);
        let fours = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
        let bytes = (fours + (fours >> 4)) & 0x0F0F_0F0F_0F0F_0F0F;
        // Set bits up to the end of each byte.
        let sums = bytes.wrapping_mul(BYTES);
        // Bytes that end at or before it.
        let ended = ((u64::from(n) * BYTES + 0x80 * BYTES) - sums) >> 7 & BYTES;
        let byte = (ended.wrapping_mul(BYTES) >> 56) as u32;
        if byte > 7 {
            return 63;
        }
        let before = (sums << 8) >> (8 * byte) & 0xFF;
        // By halves, within the byte.
        let (mut rest, mut n) = ((word >> (8 * byte)) as u32 & 0xFF, n - before as u32);
        let mut at = 8 * byte;
        for half in [4, 2, 1] {
            let low = (rest & ((1 << half) - 1)).count_ones();
            let is_above = n >= low;
            n -= if is_above { low } else { 0 };
            let shift = if is_above { half } else { 0 };
            rest >>= shift;
            at += shift;
        }
        at
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Bits, Work};
    use core::arch::x86_64::{__cpuid, __cpuid_count, _pdep_u64};
    use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

    /// 0: not looked yet; 1: no; 2: yes.
    static FOUND: AtomicU8 = AtomicU8::new(0);

    /// A processor with bit instructions: made in [`run`] alone.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct BitInstructions(());

    impl Bits for BitInstructions {
        #[inline(always)]
        fn nth_one(self, word: u64, n: u32) -> u32 {
            // SAFETY: there is one of these only where the processor has the instruction.
            let bit = unsafe { _pdep_u64(1 << n, word) };
            bit.trailing_zeros().min(63)
        }
    }

    #[inline(always)]
    pub(super) fn has_bit_instructions() -> bool {
        match FOUND.load(Relaxed) {
            0 => look(),
            found => found == 2,
        }
    }

    #[cold]
    #[allow(unused_unsafe)]
    fn look() -> bool {
        const POPCNT: u32 = 1 << 23;
        const BMI1_AND_2: u32 = 1 << 3 | 1 << 8;
        const LZCNT: u32 = 1 << 5;
        // SAFETY: every x86_64 processor has the instruction; it only reads.
        let has = unsafe {
            __cpuid(0).eax >= 7
                && __cpuid(1).ecx & POPCNT == POPCNT
                && __cpuid_count(7, 0).ebx & BMI1_AND_2 == BMI1_AND_2
                && __cpuid(0x8000_0000).eax > 0x8000_0000
                && __cpuid(0x8000_0001).ecx & LZCNT == LZCNT
        };
        FOUND.store(1 + u8::from(has), Relaxed);
        has
    }

    /// # Safety
    /// The processor must have these features.
    #[target_feature(enable = "popcnt,bmi1,bmi2,lzcnt")]
    pub(super) unsafe fn run<T: Work>(work: T) -> T::Result {
        work.run(BitInstructions(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct NthOne(u64, u32);

    impl Work for NthOne {
        type Result = u32;

        #[inline(always)]
        fn run<B: Bits>(self, bits: B) -> u32 {
            bits.nth_one(self.0, self.1)
        }
    }

    /// On any processor and on this one.
    #[test]
    fn the_nth_one_is_found() {
        let mut word = 0x1234_5678_9ABC_DEF1u64;
        for round in 0..200 {
            word = word.rotate_left(7).wrapping_mul(0x9E37_79B9_7F4A_7C15) | word >> 60;
            let word = match round {
                0 => u64::MAX,
                1 => 1 << 63,
                2 => 1,
                3 => 0,
                _ => word,
            };
            let ones = (0..64).filter(|at| word >> at & 1 == 1).chain(core::iter::repeat(63));
            for (n, at) in (0..64).zip(ones) {
                assert_eq!(Portable.nth_one(word, n), at, "{word:x} {n}");
                assert_eq!(dispatch(NthOne(word, n)), at, "{word:x} {n}");
            }
        }
    }
}
