//! Memory prefetch. A hint only: it changes no answer, and does nothing where there is none.
#![allow(unsafe_code)]

/// Asks for the cache line that holds `slice[index]`; an index past the end does no harm.
#[inline(always)]
pub(crate) fn prefetch<T>(slice: &[T], index: usize) {
    Ahead::of(slice).prefetch(index);
}

/// Where a slice lies, so that its elements can be fetched ahead while it is written to.
#[derive(Clone, Copy)]
pub(crate) struct Ahead<T>(*const T);

impl<T> Ahead<T> {
    #[inline(always)]
    pub(crate) fn of(slice: &[T]) -> Self {
        Self(slice.as_ptr())
    }

    /// As [`prefetch`].
    #[inline(always)]
    pub(crate) fn prefetch(self, index: usize) {
        #[cfg(target_arch = "x86_64")]
        {
            use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: SSE is part of every x86_64 target, and a prefetch of any address is allowed: it never faults.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(self.0.wrapping_add(index).cast()) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (self.0, index);
    }
}
