//! How long keys live.

use std::num::NonZeroU64;

/// How long a key lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Forever,
    /// Milliseconds. `exact`: asked for as a length, of which there are few. Ends at a stated moment are all
    /// different.
    Ms {
        ttl: NonZeroU64,
        exact: bool,
    },
}

/// What is left of a key's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    Forever,
    Ms(u64),
}

/// Rounded up to a multiple of an eighth of the power of two below it.
pub(super) fn eighths(ttl: NonZeroU64) -> NonZeroU64 {
    let step = (1u64 << (63 - ttl.leading_zeros()) >> 3).max(1);
    let rounded = ttl.get().div_ceil(step).checked_mul(step);
    rounded.and_then(NonZeroU64::new).unwrap_or(NonZeroU64::MAX)
}
