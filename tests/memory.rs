//! More memory than there is.

#![allow(clippy::unwrap_used, reason = "a test")]

use lately::{PlanError, Spec, Structure, Window};
use std::num::NonZeroU64;

fn nonzero(n: u64) -> NonZeroU64 {
    NonZeroU64::new(n).unwrap()
}

#[test]
fn what_there_is_no_memory_for_is_an_error_not_an_abort() {
    for structure in Structure::ALL {
        // More than any address space holds.
        let capacity = nonzero(1 << 46);
        let window = if structure.is_unbounded() {
            Window::Unbounded { capacity }
        } else {
            Window::Time { span: nonzero(10), capacity }
        };
        let plan = Spec::new(window).structure(structure).fpr(1e-6).plan().unwrap();
        assert!(matches!(plan.try_build(), Err(PlanError::Unavailable { .. })), "{structure}");
    }
}
