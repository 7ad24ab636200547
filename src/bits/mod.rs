//! Bit-level storage: packed integers, cache lines; and the only `unsafe` code: lanes, prefetch, what
//! instruction sets can do with a line (kernel), and code that is compiled for bit instructions too (dispatch).

pub(crate) mod dispatch;
pub(crate) mod fields;
pub(crate) mod gaps;
pub(crate) mod kernel;
pub(crate) mod lanes;
pub(crate) mod lines;
pub(crate) mod packed;
pub(crate) mod pages;
pub(crate) mod prefetch;
pub(crate) mod swept;

use crate::PlanError;
use alloc::vec;
use alloc::vec::Vec;

/// Counts words of tables that were looked at, for tests of how much work is done.
#[cfg(not(all(test, feature = "std")))]
#[inline(always)]
pub(crate) fn looked_at(_words: usize) {}

#[cfg(all(test, feature = "std"))]
pub(crate) use counted::{looked_at, words_looked_at};

#[cfg(all(test, feature = "std"))]
mod counted {
    use core::cell::Cell;

    std::thread_local! {
        static WORDS: Cell<u64> = const { Cell::new(0) };
    }

    pub(crate) fn looked_at(words: usize) {
        WORDS.with(|sum| sum.set(sum.get() + words as u64));
    }

    /// Words that this thread has looked at so far.
    pub(crate) fn words_looked_at() -> u64 {
        WORDS.with(Cell::get)
    }
}

/// For a table of more than [`MOST_BYTES`].
pub(crate) const TOO_LARGE: PlanError = PlanError::TooLarge(
    "a table larger than this kind of processor can address: plan for fewer keys or a higher false positive rate",
);

/// The most bytes that a table has: fewer than 2^59, so that their bits can be counted, and no more than the target can
/// address. Bits are counted in `u64` on every target.
const MOST_BYTES: u128 = {
    let addressable = isize::MAX.unsigned_abs() as u128;
    if addressable < 1 << 59 { addressable } else { (1 << 59) - 1 }
};

/// So many bytes as a size, or `None` where no table can be that large.
pub(crate) fn addressable(bytes: u128) -> Option<usize> {
    (bytes <= MOST_BYTES).then(|| usize::try_from(bytes).ok()).flatten()
}

/// So many words as a number of words, or `None` where no table can be that large.
pub(crate) fn addressable_words(words: u128) -> Option<usize> {
    addressable(words.checked_mul(8)?).map(|bytes| bytes / 8)
}

/// So many zero words.
///
/// # Errors
/// [`PlanError::TooLarge`] for `None`, which stands for more than any memory;
/// [`PlanError::Unavailable`] when the system does not give them.
pub(crate) fn zeroed(words: Option<usize>) -> Result<Vec<u64>, PlanError> {
    let words = words.ok_or(TOO_LARGE)?;
    is_available(words)?;
    Ok(vec![0; words])
}

/// [`zeroed`], in bytes.
pub(crate) fn zeroed_bytes(bytes: Option<usize>) -> Result<Vec<u8>, PlanError> {
    let bytes = bytes.ok_or(TOO_LARGE)?;
    is_available(bytes.div_ceil(8))?;
    Ok(vec![0; bytes])
}

/// [`zeroed`], in pairs of bytes.
pub(crate) fn zeroed_pairs(pairs: Option<usize>) -> Result<Vec<u16>, PlanError> {
    let pairs = pairs.ok_or(TOO_LARGE)?;
    is_available(pairs.div_ceil(4))?;
    Ok(vec![0; pairs])
}

/// Asks for so many words and gives them back. `vec!` takes zeroed pages as the system has them,
/// untouched, but aborts where there are none; filling what was reserved would touch them all.
pub(crate) fn is_available(words: usize) -> Result<(), PlanError> {
    let mut asked: Vec<u64> = Vec::new();
    let given = asked.try_reserve_exact(words);
    // Or else the compiler sees that nobody uses it, and takes it as given.
    core::hint::black_box(&asked);
    given.map_err(|_| PlanError::Unavailable { bytes: words as u64 * 8 })
}
