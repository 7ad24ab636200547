//! What a run did, in numbers: `--summary`.

use crate::judge::Decide;
use crate::judge::change::LastValues;
use crate::judge::class::Class;
use crate::judge::clocks::Clock;
use crate::judge::moment::Moments;
use crate::judge::visit::Ended;
use crate::judge::watch::Watcher;
use crate::session::{Dedup, Index, Visits};
use crate::stamp;
use crate::write::report::Report;
use lately::range::RangeWindow;
use lately::{AnyFilter, Filter, Window, WindowFilter};
use serde_json::{Value, json};
use std::time::Duration;

/// What a judge has to say about itself.
pub trait Describe: Decide {
    /// Its condition and what of the run is its own, as members of the summary.
    fn describe(&self, report: &Report) -> Value;
}

/// The numbers of a run as JSON: what `--summary` writes.
pub fn to_json<J: Describe>(report: &Report, judge: &J, took: Duration) -> Value {
    let counts = &report.counts;
    let mut numbers = json!({
        "read": counts.read(),
        "unwritten": counts.unwritten,
        "reader_left": report.closed,
        "state_saved": report.saved,
        "bytes_in": counts.bytes_in,
        "seconds": took.as_secs_f64(),
    });
    let classes = J::CLASSES.iter().map(|class| (class.name(), json!(counts.of(*class))));
    let own = judge.describe(report);
    if let (Some(numbers), Value::Object(own)) = (numbers.as_object_mut(), own) {
        numbers.extend(classes.map(|(name, count)| (name.to_owned(), count)));
        numbers.extend(own);
    }
    numbers
}

impl Describe for Dedup {
    fn describe(&self, report: &Report) -> Value {
        json!({
            "changed": report.counts.changed,
            "change_evicted": report.change_evicted,
            "counted_early": report.counted_early,
            "uncounted": report.uncounted,
            "change_memory_bytes": self.last_values().map_or(0, LastValues::memory),
            "bytes_out": report.counts.bytes_out,
            "state_errors": report.state_errors.0,
            "times": times_to_json(self.moments()),
            "filter": filter_to_json(self.filter()),
        })
    }
}

impl Describe for Index {
    fn describe(&self, report: &Report) -> Value {
        json!({
            "state_errors": report.state_errors.0,
            "times": times_to_json(self.moments()),
            "filter": window_filter_to_json(self.window()),
        })
    }
}

impl Describe for Visits {
    fn describe(&self, report: &Report) -> Value {
        json!({
            "bytes_out": report.counts.bytes_out,
            "state_errors": report.state_errors.0,
            "times": times_to_json(self.moments()),
            "visits": visits_in_numbers(self),
        })
    }
}

impl Describe for Watcher {
    fn describe(&self, report: &Report) -> Value {
        json!({
            "bytes_out": report.counts.bytes_out,
            "intervals": self.intervals().len(),
        })
    }
}

/// What a saved state of `lately dedup` holds, as JSON.
pub fn state_to_json(session: &Dedup) -> Value {
    json!({
        "settings": session.identity().to_string(),
        "clock_ns": session.moments().time(),
        "held": session.waiting().len(),
        "last_values_bytes": session.last_values().map(LastValues::memory),
        "filter": filter_to_json(session.filter()),
    })
}

/// What a saved index holds, as JSON.
pub fn index_to_json(index: &Index) -> Value {
    json!({
        "settings": index.identity().to_string(),
        "clock_ns": index.clock(),
        "key_format": index.format().to_string(),
        "filter": window_filter_to_json(index.window()),
    })
}

/// What a saved state of `lately visits` holds, as JSON.
pub fn visits_to_json(visits: &Visits) -> Value {
    json!({
        "settings": visits.identity().to_string(),
        "clock_ns": visits.moments().time(),
        "open": visits.open().len(),
        "open_reads": visits.open().reads(),
        "memory_bytes": visits.open().memory(),
    })
}

/// Visits and their reads: those that were written, by why they ended, and those that are open. Reads
/// of the run and of the state that it resumed are those of both.
fn visits_in_numbers(visits: &Visits) -> Value {
    let ended = Ended::ALL.map(|ended| (ended.name().to_owned(), json!(visits.ended(ended))));
    json!({
        "written": visits.written(),
        "written_reads": visits.written_reads(),
        "ended": Value::Object(ended.into_iter().collect()),
        "open": visits.open().len(),
        "open_reads": visits.open().reads(),
        "resumed_reads": visits.resumed_reads(),
        "memory_bytes": visits.open().memory(),
    })
}

/// What is known of the times of the records, as JSON.
fn times_to_json(moments: &Moments) -> Value {
    let told = &moments.told;
    let sources = moments.clock.as_ref().and_then(Clock::sources);
    let display = |tick| stamp::display_time(moments.line.nanos(tick));
    json!({
        "first": told.times.map(|(first, _)| display(first)),
        "last": told.times.map(|(_, last)| display(last)),
        "untimed": told.untimed,
        "late_judged": told.late_judged,
        "clock_stepped_back": told.stepped_back,
        "clocks": sources.map(|clocks| clocks.sources()),
        "clocks_adjusted": sources.map(|clocks| clocks.adjusted()),
        "clocks_spilled": sources.map(|clocks| clocks.spilled()),
    })
}

/// A filter's parameters and condition as JSON.
fn filter_to_json(filter: &AnyFilter) -> Value {
    let overload = filter.overload();
    json!({
        "structure": filter.structure().name(),
        "window": window_to_json(filter.window()),
        "slack": filter.slack(),
        "lateness": filter.plan().lateness(),
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

/// A range window's parameters and condition as JSON.
fn window_filter_to_json(window: &RangeWindow) -> Value {
    let overload = window.overload();
    json!({
        "structure": "range-window",
        "window": window_to_json(window.window()),
        "slack": window.slack(),
        "capacity": window.window().capacity(),
        "interval": window.plan().interval().to_string(),
        "fpr_planned": window.fpr(),
        "memory_bytes": window.memory(),
        "overloaded": overload.any(),
        "grown": overload.grown,
        "forgotten": overload.forgotten,
        "refused": overload.refused,
    })
}

fn window_to_json(window: Window) -> Value {
    let (kind, length) = match window {
        Window::Count(n) => ("count", Some(n.get())),
        Window::Time { span, .. } => ("time_ns", Some(span.get())),
        Window::Unbounded { .. } => ("unbounded", None),
    };
    json!({ "kind": kind, "length": length })
}

/// The records by class, in words: `3 fresh, 1 duplicate, ...`.
pub fn classes_in_words<J: Decide>(report: &Report) -> String {
    let class = |class: &Class| {
        let count = crate::quantity::display_count(report.counts.of(*class));
        format!("{count} {}", class.name().replace('_', " "))
    };
    // Few runs withhold records or fail to write them, and others need not hear of it.
    let is_told = |class: &&Class| **class != Class::Withheld || report.counts.of(**class) > 0;
    let unwritten = report.counts.unwritten;
    let unwritten =
        (unwritten > 0).then(|| format!("{} unwritten", crate::quantity::display_count(unwritten)));
    let classes = J::CLASSES.iter().filter(is_told).map(class);
    classes.chain(unwritten).collect::<Vec<_>>().join(", ")
}
