//! Arrivals take no memory but where a filter grows.

// The helpers fail as the tests do; an allocator cannot be written without.
#![allow(clippy::unwrap_used, clippy::panic, unsafe_code)]

mod support;

use lately::{AnyFilter, Filter, Spec, Structure, Tick, Verdict, WhenFull, Window, WindowFilter};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use support::{Chance, count, key, time, unbounded};

/// Counts what this thread asks for.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn note() {
    // A thread that ends has no counter any more.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: every call is handed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note();
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of this thread meanwhile.
fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

const KEYS: u64 = 2_000;
const SPAN: u64 = 1_000;

/// Windows of each kind that a structure keeps, full from the second window on.
fn filters() -> Vec<(Spec, AnyFilter)> {
    let windows = [time(SPAN, KEYS), count(KEYS), unbounded(KEYS)];
    let mut filters = Vec::new();
    for &structure in Structure::ALL {
        for window in windows.into_iter().filter(|&window| structure.keeps(window)) {
            let may_be_late =
                structure.takes_late_arrivals() && matches!(window, Window::Time { .. });
            for slack in [0, 20, 125] {
                for lateness in [0, SPAN / 2, 3 * SPAN] {
                    if lateness > 0 && !may_be_late {
                        continue;
                    }
                    let spec = Spec::new(window).structure(structure).fpr(1e-3).slack(slack);
                    let spec = spec.lateness(lateness).when_full(WhenFull::Refuse);
                    filters.push((spec, spec.plan().unwrap().build()));
                }
            }
        }
    }
    filters
}

/// So many arrivals at moments that are so many ticks apart, one by one, asked for before, and in batches.
fn arrive(
    filter: &mut AnyFilter,
    chance: &mut Chance,
    now: &mut u64,
    arrivals: u64,
    gap: u64,
    each: u64,
) {
    let mut verdicts = [Verdict::Fresh; 50];
    for at in 0..arrivals / 100 {
        for n in 0..50 {
            *now += if n % each == 0 { gap } else { 0 };
            let digest = key(chance.next());
            let late = Tick(now.saturating_sub(chance.below(SPAN)));
            let _ = filter.contains(digest, late);
            let _ = filter.observe(digest, late);
        }
        let digests: [_; 50] = core::array::from_fn(|n| key(at * 50 + n as u64 % 40));
        let moments = [Tick(*now); 50];
        filter.observe_batch(&digests, &moments, &mut verdicts);
    }
}

/// Dense streams, in which a window is full, and sparse ones, in which it is nearly empty.
#[test]
fn arrivals_take_no_memory() {
    for (spec, mut filter) in filters() {
        let (mut chance, mut now) = (Chance(5), 10 * SPAN);
        let memory = filter.memory();
        arrive(&mut filter, &mut chance, &mut now, 4 * KEYS, 1, 2);
        let dense = allocations(|| arrive(&mut filter, &mut chance, &mut now, 50_000, 1, 2));
        let sparse = allocations(|| arrive(&mut filter, &mut chance, &mut now, 50_000, 999, 1));
        // A stash of a window of arrivals grows where chance wants it, as its filter says.
        let grown = u64::from(filter.memory() > memory);
        assert!(dense + sparse <= grown, "{dense} {sparse} {spec:?}");
        assert!(grown == 0 || matches!(spec.window(), Window::Count(_)), "{spec:?}");
    }
}

/// More keys than planned for: what is refused takes no memory either.
#[test]
fn refusing_takes_no_memory() {
    for (spec, mut filter) in filters() {
        if matches!(spec.window(), Window::Count(_)) {
            continue;
        }
        let (mut chance, mut now) = (Chance(6), 10 * SPAN);
        arrive(&mut filter, &mut chance, &mut now, 10 * KEYS, 1, 25);
        let overfull = allocations(|| arrive(&mut filter, &mut chance, &mut now, 20_000, 1, 25));
        assert_eq!(overfull, 0, "{spec:?}");
        assert!(filter.overload().refused > 0, "{spec:?}");
    }
}
