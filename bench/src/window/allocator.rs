//! Memory as the allocator sees it: bytes asked for and not given back.
//!
//! What a structure says of itself may leave out a list, a lock or a rounding; this does not.
#![expect(unsafe_code, reason = "an allocator cannot be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Bytes allocated now, by all threads.
pub fn live() -> usize {
    LIVE.load(Relaxed)
}

/// The most bytes that were allocated at a time since [`forget_peak`].
pub fn peak() -> usize {
    PEAK.load(Relaxed)
}

/// Begins a new peak.
pub fn forget_peak() {
    PEAK.store(live(), Relaxed);
}

/// The system's allocator, counted.
#[derive(Debug)]
pub struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn grew(by: usize) {
    let now = LIVE.fetch_add(by, Relaxed) + by;
    PEAK.fetch_max(now, Relaxed);
}

// SAFETY: every call is forwarded unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grew(layout.size());
        // SAFETY: the caller's promises are those that are asked for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grew(layout.size());
        // SAFETY: the caller's promises are those that are asked for.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promises are those that are asked for.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size >= layout.size() {
            grew(size - layout.size());
        } else {
            LIVE.fetch_sub(layout.size() - size, Relaxed);
        }
        // SAFETY: the caller's promises are those that are asked for.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn counts_what_is_live() {
        // Other tests run at the same time, so the vector is larger than what they allocate.
        const BYTES: usize = 1 << 28;
        let before = super::live();
        let mut bytes: Vec<u8> = Vec::with_capacity(BYTES);
        assert!(super::live() >= before + BYTES / 2 && super::peak() >= BYTES);
        bytes.shrink_to_fit();
        assert!(super::live() < before + BYTES / 2);
    }
}
