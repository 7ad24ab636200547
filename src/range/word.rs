//! The width that items are computed in.

use core::fmt::Debug;
use core::ops::{BitAnd, BitOr, Shl, Shr};

/// Bytes of a block of items.
pub(super) const BLOCK: usize = 1024;

/// An item: a code and, in its lowest bits, the stamp of its age. One word, so that sorted by value
/// is sorted by code.
///
/// `u64` where that is wide enough, as for most plans, or else `u128`.
pub(super) trait Word:
    Copy
    + Ord
    + Default
    + Debug
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
{
    /// Beyond every item: the end of all codes.
    const END: Self;
    /// Bits that an item may have.
    const BITS: u32;
    /// Bits that a field may have which is read with one load.
    const FIELD: u32;

    fn from_wide(value: u128) -> Self;
    fn wide(self) -> u128;
    fn low(self) -> u64;

    /// So many low bits set: 1 or more, and not more than the word has.
    fn mask(bits: u32) -> Self;

    /// So many low bits of the lower half, or none.
    fn mask_of(bits: u32) -> u64 {
        (1 << bits) - 1
    }

    /// A word of this value.
    fn from_low(value: u64) -> Self;

    /// The bits from `bit` on, at least [`Word::FIELD`] of them or as many as there are.
    fn load(bytes: &[u8; BLOCK], bit: usize) -> Self;

    /// Puts the word's bits from `bit` on, as far as it and the bytes go, and clears those before in the same byte.
    fn store(bytes: &mut [u8; BLOCK], bit: usize, word: Self);
}

impl Word for u64 {
    const END: Self = Self::MAX;
    const BITS: u32 = 63;
    const FIELD: u32 = 57;

    #[inline(always)]
    fn from_wide(value: u128) -> Self {
        value as Self
    }

    #[inline(always)]
    fn mask(bits: u32) -> Self {
        Self::MAX >> (64 - bits)
    }

    #[inline(always)]
    fn from_low(value: u64) -> Self {
        value
    }

    #[inline(always)]
    fn wide(self) -> u128 {
        u128::from(self)
    }

    #[inline(always)]
    fn low(self) -> u64 {
        self
    }

    #[inline(always)]
    fn load(bytes: &[u8; BLOCK], bit: usize) -> Self {
        let at = (bit / 8).min(BLOCK - 8);
        let mut eight = [0; 8];
        eight.copy_from_slice(&bytes[at..at + 8]);
        // No field begins so late that it was moved.
        Self::from_le_bytes(eight) >> (bit % 8)
    }

    #[inline(always)]
    fn store(bytes: &mut [u8; BLOCK], bit: usize, word: Self) {
        let at = (bit / 8).min(BLOCK - 8);
        let word = word << (bit % 8);
        bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }
}

impl Word for u128 {
    const END: Self = Self::MAX;
    const BITS: u32 = 127;
    const FIELD: u32 = 121;

    #[inline(always)]
    fn from_wide(value: u128) -> Self {
        value
    }

    #[inline(always)]
    fn mask(bits: u32) -> Self {
        Self::MAX >> (128 - bits)
    }

    #[inline(always)]
    fn from_low(value: u64) -> Self {
        Self::from(value)
    }

    #[inline(always)]
    fn wide(self) -> u128 {
        self
    }

    #[inline(always)]
    fn low(self) -> u64 {
        self as u64
    }

    #[inline(always)]
    fn load(bytes: &[u8; BLOCK], bit: usize) -> Self {
        let at = (bit / 8).min(BLOCK - 16);
        let mut sixteen = [0; 16];
        sixteen.copy_from_slice(&bytes[at..at + 16]);
        Self::from_le_bytes(sixteen) >> ((bit - at * 8) % 128)
    }

    #[inline(always)]
    fn store(bytes: &mut [u8; BLOCK], bit: usize, word: Self) {
        let at = (bit / 8).min(BLOCK - 16);
        let word = word << ((bit - at * 8) % 128);
        bytes[at..at + 16].copy_from_slice(&word.to_le_bytes());
    }
}
