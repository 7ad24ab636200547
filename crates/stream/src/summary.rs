//! What a run did, in numbers.

use crate::sink::Class;
use lately::{AnyFilter, Filter, Window, WindowFilter};
use serde_json::{Value, json};
use std::time::Duration;

/// Records by class. Each record is counted in exactly one, so they add up to [`Counts::read`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Passed on as not seen within the window.
    pub fresh: u64,
    /// Kept back.
    pub duplicate: u64,
    /// Too old to be judged.
    pub late: u64,
    /// Dead letters.
    pub invalid: u64,
    /// Passed on without a key.
    pub missing_key: u64,
    /// Passed on with a time too far in the future.
    pub skewed: u64,
    /// Of the fresh: seen within the window, but with another value of the change field.
    pub changed: u64,
    /// Bytes read, decompressed.
    pub bytes_in: u64,
    /// Bytes passed on.
    pub bytes_out: u64,
}

impl Counts {
    /// Records read: the sum of the classes.
    pub fn read(&self) -> u64 {
        self.fresh + self.duplicate + self.late + self.invalid + self.missing_key + self.skewed
    }

    pub(crate) fn add(&mut self, class: Class) {
        match class {
            Class::Fresh => self.fresh += 1,
            Class::Duplicate => self.duplicate += 1,
            Class::Late => self.late += 1,
            Class::Invalid => self.invalid += 1,
            Class::KeyMissing => self.missing_key += 1,
            Class::Skewed => self.skewed += 1,
            // Not yet decided, or no record.
            Class::Held | Class::Header | Class::Aside => {}
        }
    }
}

/// The numbers of a run as JSON: what `--summary` writes.
pub fn to_json(counts: &Counts, filter: &AnyFilter, took: Duration, state_errors: u64) -> Value {
    json!({
        "read": counts.read(),
        "fresh": counts.fresh,
        "duplicate": counts.duplicate,
        "late": counts.late,
        "invalid": counts.invalid,
        "missing_key": counts.missing_key,
        "skewed": counts.skewed,
        "changed": counts.changed,
        "bytes_in": counts.bytes_in,
        "bytes_out": counts.bytes_out,
        "seconds": took.as_secs_f64(),
        "state_errors": state_errors,
        "filter": filter_to_json(filter),
    })
}

/// A filter's parameters and condition as JSON.
pub fn filter_to_json(filter: &AnyFilter) -> Value {
    let overload = filter.overload();
    let (window, span) = match filter.window() {
        Window::Count(n) => ("count", Some(n.get())),
        Window::Time { span, .. } => ("time_ns", Some(span.get())),
        Window::Unbounded { .. } => ("unbounded", None),
    };
    json!({
        "structure": filter.structure().name(),
        "window": { "kind": window, "length": span },
        "slack": filter.slack(),
        "capacity": filter.capacity(),
        "tables": filter.tables(),
        "fpr_planned": filter.fpr(),
        "fpr_estimated": filter.estimated_fpr(),
        "memory_bytes": filter.memory(),
        "bits_per_key": filter.memory() as f64 * 8.0 / filter.capacity() as f64,
        "fill": filter.fill(),
        "overloaded": overload.happened(),
        "grown": overload.grown,
        "forgotten": overload.forgotten,
        "refused": overload.refused,
    })
}
