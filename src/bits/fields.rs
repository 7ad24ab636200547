//! Fixed-width fields packed without gaps, read with one unaligned load each.

use crate::PlanError;
use crate::bits::prefetch::prefetch;
use crate::bits::{addressable, looked_at, zeroed_bytes};
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

/// Bits that one load of 8 bytes at any bit yields.
const ONE_LOAD: u32 = 57;

/// A row of bits, all zero at first, that is read and written in fields of up to 64.
///
/// [`Packed`](super::packed::Packed) puts two words together for each field; this takes 8 bytes where
/// the field begins, which is faster for many small fields side by side.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Fields {
    /// Little endian, and 8 bytes more than the bits need, so that no load runs past the end.
    bytes: Vec<u8>,
}

/// Its size: the bytes would be millions.
impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fields").field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}

impl Fields {
    /// Bytes that so many bits take, or `None` where that is beyond any memory.
    pub(crate) fn bytes_for(bits: u128) -> Option<usize> {
        addressable(bits.div_ceil(8) + 8)
    }

    /// # Errors
    /// As [`zeroed_bytes`].
    pub(crate) fn new(bits: u128) -> Result<Self, PlanError> {
        Ok(Self { bytes: zeroed_bytes(Self::bytes_for(bits))? })
    }

    /// From the bytes of another; `None` if their number is not what so many bits imply or a bit past
    /// the last one is set.
    pub(crate) fn from_bytes(bytes: Vec<u8>, bits: u128) -> Option<Self> {
        let (used, rest) = (usize::try_from(bits / 8).ok()?, (bits % 8) as u32);
        let tail = bytes.get(used..)?;
        let clear = tail.first().is_none_or(|byte| byte >> rest == 0)
            && tail.iter().skip(1).all(|&byte| byte == 0);
        (Self::bytes_for(bits) == Some(bytes.len()) && clear).then_some(Self { bytes })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes allocated.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.capacity()
    }

    /// The 8 bytes that hold a bit, with it lowest: [`ONE_LOAD`] bits of them are there.
    #[inline(always)]
    fn load(&self, bit: u64) -> u64 {
        looked_at(1);
        let mut eight = [0; 8];
        eight.copy_from_slice(&self.bytes[(bit / 8) as usize..][..8]);
        u64::from_le_bytes(eight) >> (bit % 8)
    }

    /// The `width` (1 to 64) bits from `bit` on.
    #[inline(always)]
    pub(crate) fn get(&self, bit: u64, width: u32) -> u64 {
        let mask = u64::MAX >> (64 - width);
        if width <= ONE_LOAD {
            self.load(bit) & mask
        } else {
            let low = self.load(bit) & 0xFFFF_FFFF;
            (low | self.load(bit + 32) << 32) & mask
        }
    }

    /// Four fields side by side: with one load where they are small.
    #[inline(always)]
    pub(crate) fn four(&self, bit: u64, width: u32) -> [u64; 4] {
        let step = u64::from(width);
        if 4 * width <= ONE_LOAD {
            let (all, mask) = (self.load(bit), u64::MAX >> (64 - width));
            [all & mask, all >> step & mask, all >> (2 * step) & mask, all >> (3 * step) & mask]
        } else {
            [0, 1, 2, 3].map(|at| self.get(bit + at * step, width))
        }
    }

    /// Sets the bits that [`Fields::get`] reads; `value` must fit in `width`.
    #[inline(always)]
    pub(crate) fn set(&mut self, bit: u64, width: u32, value: u64) {
        if width <= ONE_LOAD {
            self.set_few(bit, width, value);
        } else {
            self.set_few(bit, 32, value & 0xFFFF_FFFF);
            self.set_few(bit + 32, width - 32, value >> 32);
        }
    }

    #[inline(always)]
    fn set_few(&mut self, bit: u64, width: u32, value: u64) {
        let shift = bit % 8;
        let mask = (u64::MAX >> (64 - width)) << shift;
        let at = &mut self.bytes[(bit / 8) as usize..][..8];
        let mut eight = [0; 8];
        eight.copy_from_slice(at);
        let changed = (u64::from_le_bytes(eight) & !mask) | value << shift;
        at.copy_from_slice(&changed.to_le_bytes());
    }

    /// Zeroes the bytes that hold a range of bits: to be used where all others are to go too.
    pub(crate) fn clear_bytes_with(&mut self, range: Range<u64>) {
        let bytes = (range.start / 8) as usize..range.end.div_ceil(8) as usize;
        looked_at(bytes.len() / 8);
        self.bytes[bytes].fill(0);
    }

    /// Begins to fetch the memory of a bit.
    #[inline(always)]
    pub(crate) fn prefetch(&self, bit: u64) {
        prefetch(&self.bytes, (bit / 8) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// More than 2^32 bits: 553 MiB, of which but a few pages are touched.
    #[test]
    fn bits_past_2_to_the_32nd_are_others_than_the_first() {
        let mut fields = Fields::new(553 << 23).unwrap();
        let places = [0u64, 1 << 31, 1 << 32, (1 << 32) + 40, (553 << 23) - 40];
        for (bit, value) in places.into_iter().zip(1..) {
            fields.set(bit, 40, value);
        }
        for (bit, value) in places.into_iter().zip(1..) {
            assert_eq!(fields.get(bit, 40), value);
        }
        assert_eq!(fields.four(1 << 32, 10), [3, 0, 0, 0]);
        assert_eq!(Fields::bytes_for(1 << 64), None);
    }

    proptest! {
        /// Against a plain vector: any width, any order of writes.
        #[test]
        fn behaves_as_a_vector(
            width in 1u32..=64,
            writes in prop::collection::vec((0usize..40, any::<u64>()), 1..200),
        ) {
            let bits = 40 * u128::from(width);
            let mut fields = Fields::new(bits).unwrap();
            let mut plain = [0u64; 40];
            for (at, value) in writes {
                let value = value >> (64 - width);
                fields.set(at as u64 * u64::from(width), width, value);
                plain[at] = value;
                for (at, &value) in plain.iter().enumerate() {
                    prop_assert_eq!(fields.get(at as u64 * u64::from(width), width), value);
                }
            }
            prop_assert_eq!(Fields::from_bytes(fields.bytes().to_vec(), bits), Some(fields));
        }
    }
}
