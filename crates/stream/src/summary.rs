//! What a run did, in numbers.

use crate::change::LastValues;
use crate::judge::Judge;
use crate::pipeline::Report;
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

    /// Counts the records of a batch. What is held is counted when it is decided.
    pub(crate) fn add(&mut self, classes: &[Class]) {
        let of = |class| classes.iter().filter(|&&other| other == class).count() as u64;
        self.fresh += of(Class::Fresh);
        self.duplicate += of(Class::Duplicate);
        self.late += of(Class::Late);
        self.invalid += of(Class::Invalid);
        self.missing_key += of(Class::KeyMissing);
        self.skewed += of(Class::Skewed);
    }
}

/// The numbers of a run as JSON: what `--summary` writes.
pub fn to_json(report: &Report, judge: &Judge, took: Duration) -> Value {
    let counts = &report.counts;
    json!({
        "read": counts.read(),
        "fresh": counts.fresh,
        "duplicate": counts.duplicate,
        "late": counts.late,
        "invalid": counts.invalid,
        "missing_key": counts.missing_key,
        "skewed": counts.skewed,
        "changed": counts.changed,
        "change_evicted": report.change_evicted,
        "change_memory_bytes": judge.last_values.as_ref().map_or(0, LastValues::memory),
        "bytes_in": counts.bytes_in,
        "bytes_out": counts.bytes_out,
        "seconds": took.as_secs_f64(),
        "state_errors": report.state_errors.0,
        "filter": filter_to_json(&judge.filter),
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
        "overloaded": overload.any(),
        "grown": overload.grown,
        "forgotten": overload.forgotten,
        "refused": overload.refused,
    })
}
