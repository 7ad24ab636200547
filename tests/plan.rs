//! Plans: what they promise is what is built, for any numbers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use core::num::NonZeroU64;
use lately::range::RangeSpec;
use lately::{AnyFilter, Filter, PlanError, Spec, Structure, Tick, WhenFull, Window, WindowFilter};
use support::{count, key, specs, time, unbounded};

/// `Plan::memory` is what is allocated.
#[test]
fn a_plan_knows_its_memory() {
    for spec in specs() {
        let plan = spec.plan().unwrap();
        let filter = plan.build();
        assert_eq!(plan.memory(), filter.memory() as u64);
        assert_eq!(plan.capacity(), filter.capacity());
        assert_eq!(filter.clone().memory(), filter.memory());
        assert_eq!(AnyFilter::restore(&filter.snapshot()).unwrap().memory(), filter.memory());
    }
}

/// Plans for any numbers come at once, as a plan or an error, and never panic.
#[test]
fn plans_for_any_numbers_come_at_once() {
    let numbers = [1, 1_000, 1 << 40, (1 << 62) - 1, u64::MAX];
    for &structure in Structure::ALL {
        for n in numbers {
            for fpr in [0.999_999, 0.36, 1e-9, f64::MIN_POSITIVE] {
                for slack in [0, u64::MAX] {
                    for limit in [None, Some(0), Some(1 << 20), Some(u64::MAX)] {
                        for policy in [WhenFull::Grow, WhenFull::Forget, WhenFull::Refuse] {
                            for window in [count(n), time(n, 7), time(7, n), unbounded(n)] {
                                let spec = Spec::new(window).fpr(fpr).slack(slack);
                                let spec = spec.structure(structure).when_full(policy);
                                let spec = limit.map_or(spec, |limit| spec.memory(limit));
                                let Ok(plan) = spec.plan() else { continue };
                                assert!(plan.slack() <= slack);
                                assert!(plan.memory() <= limit.unwrap_or(u64::MAX));
                                assert!(plan.bits_per_key() > 0.0 && plan.lower_bound() > 0.0);
                                if plan.memory() < 1 << 16 {
                                    let _ = plan.build().observe(key(1), Tick(u64::MAX));
                                }
                            }
                        }
                    }
                }
            }
        }
    }
    for fpr in [0.0, 1.0, -1.0, 2.0, f64::NAN, f64::INFINITY] {
        assert!(Spec::new(count(5)).fpr(fpr).plan().is_err());
    }
}

/// A table is planned as large as it is, or refused: its size never wraps, whatever a size has bits for.
#[test]
fn sizes_that_the_target_cannot_address_are_refused() {
    for &structure in Structure::ALL {
        for n in [100_000_000u64, 1_000_000_000, 1 << 32, 1 << 36, 1 << 58] {
            let window = if structure.is_unbounded() { unbounded(n) } else { count(n) };
            match Spec::new(window).structure(structure).fpr(1e-3).plan() {
                Ok(plan) => {
                    let bytes = n.saturating_mul(9) / 8;
                    assert!(plan.memory() >= bytes, "{structure}: {} bytes", plan.memory());
                    assert!(u64::try_from(isize::MAX).is_ok_and(|most| plan.memory() <= most));
                }
                Err(PlanError::TooLarge(_)) => assert!(n > 1 << 26, "{structure}: {n}"),
                Err(error) => panic!("{structure}: {error}"),
            }
        }
    }
    for n in [100_000_000u64, 1_000_000_000, 1 << 32] {
        match RangeSpec::new(unbounded(n)).interval(1 << 16).fpr(1e-3).plan() {
            Ok(plan) => assert!(plan.memory() >= n * 26 / 8 && plan.most_memory() >= plan.memory()),
            Err(error) => assert!(matches!(error, PlanError::TooLarge(_)), "{error}"),
        }
    }
}

#[test]
fn what_there_is_no_memory_for_is_an_error_not_an_abort() {
    for &structure in Structure::ALL {
        // More than any address space holds.
        let windows = [unbounded(1 << 46), time(10, 1 << 46), count(1 << 46)];
        let Some(window) = windows.into_iter().find(|&window| structure.keeps(window)) else {
            continue;
        };
        let plan = Spec::new(window).structure(structure).fpr(1e-6).plan();
        if cfg!(target_pointer_width = "64") {
            let filter = plan.unwrap().try_build();
            assert!(matches!(filter, Err(PlanError::Unavailable { .. })), "{structure}");
        } else {
            assert!(matches!(plan, Err(PlanError::TooLarge(_))), "{structure}");
        }
    }
}

/// A capacity that nobody named is the largest that fits, to one part in 256; one that fits stays as it is.
#[test]
fn a_fitting_plan_is_about_the_largest_that_the_memory_allows() {
    let million = NonZeroU64::new(1_000_000).unwrap();
    for &structure in Structure::ALL {
        for when_full in [WhenFull::Grow, WhenFull::Forget, WhenFull::Refuse] {
            let windows = [unbounded(1_000_000), time(1_000, 1_000_000)];
            let keeps = |window: &Window| structure.keeps(*window);
            let Some(window) = windows.into_iter().find(keeps) else { continue };
            let spec = Spec::new(window).structure(structure).when_full(when_full).slack(125);
            let limit = spec.plan().unwrap().memory() / 3;
            let spec = spec.memory(limit);
            assert!(matches!(spec.plan(), Err(PlanError::Memory { .. })), "{structure}");
            let plan = spec.fit().unwrap();
            let keys = plan.window().capacity();
            assert!(plan.memory() <= limit && keys > 10_000, "{structure} {keys}");
            let more = NonZeroU64::new(keys + keys / 64).unwrap();
            assert!(spec.capacity(more).plan().is_err(), "{structure} {when_full:?} {keys}");
            let roomy = spec.memory(u64::MAX >> 4);
            assert_eq!(roomy.fit().unwrap(), roomy.plan().unwrap());
        }
    }
    let spec = RangeSpec::new(time(1_000, 1_000_000)).memory(1 << 20);
    let keys = spec.fit().unwrap().window().capacity();
    assert!(spec.plan().is_err() && keys > 10_000);
    let more = NonZeroU64::new(keys + keys / 64).unwrap();
    assert!(spec.capacity(more).plan().is_err() && spec.capacity(million).plan().is_err());
    // What no memory is enough for is an error still, and arrivals are as many as asked for.
    assert!(matches!(spec.memory(10).fit(), Err(PlanError::Memory { .. })));
    let counting = Spec::new(count(1_000_000)).memory(1_000);
    assert!(matches!(counting.fit(), Err(PlanError::Memory { .. })));
}
