//! Memory prefetch. A hint only: it changes no answer, and does nothing where there is none.
#![allow(unsafe_code)]

/// Asks for the cache line that holds `slice[index]`; an index past the end is ignored.
#[inline(always)]
pub(crate) fn prefetch<T>(slice: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(element) = slice.get(index) {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of every x86_64 target, and the address is that of a live element
        // (a prefetch of any address would be allowed: it never faults).
        unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(element).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, index);
}
