//! What a person is told at the end of a run, and the exit status.

use super::Arguments;
use crate::{many, notes};
use lately::{Filter, Window, WindowFilter};
use lately_stream::pipeline::Pipeline;
use lately_stream::quantity;
use std::time::Duration;

pub struct Notes<'a> {
    pub arguments: &'a Arguments,
    pub pipeline: &'a Pipeline,
    /// It goes on from a state.
    pub goes_on: bool,
    /// Inputs failed, and there was nothing in the others.
    pub nothing_read: bool,
    pub took: Duration,
}

impl Notes<'_> {
    /// Prints warnings, and the summary unless it is not wanted.
    pub fn print(&self) {
        let report = &self.pipeline.report;
        notes::inputs(report);
        if report.closed {
            return;
        }
        self.warn();
        if self.arguments.output.notes.for_people() && !self.nothing_read {
            self.summarise();
        }
    }

    fn warn(&self) {
        let report = &self.pipeline.report;
        let counts = &report.counts;
        notes::invalid(report, "passed on", self.arguments.output.keeps_invalid());
        if counts.missing_key > 0 {
            let records = many(counts.missing_key, "record");
            notes::examples(&format!("{records} without a key, passed on"), &report.missing);
        }
        notes::off_the_clock(report, "not judged", "passed on, not judged");
        notes::mismatched_headers(&self.pipeline.sink);
        self.warn_of_overload();
        self.warn_of_lost_values();
        if self.judged_by_arrival() && self.reads_files() && counts.read() > 0 {
            eprintln!("lately: no --time: records were judged by when they were read");
        }
        if self.arguments.time.lateness.is_some()
            && self.pipeline.judge.moments.by_arrival()
            && counts.read() > 0
        {
            eprintln!(
                "lately: --lateness had no effect: no record was judged by a time of its own; --time names the field, and --within uses it"
            );
        }
        notes::state_errors(report);
    }

    fn warn_of_lost_values(&self) {
        let evicted = self.pipeline.report.change_evicted;
        // A few are pushed out by chance below the limit, too.
        if evicted > self.pipeline.report.counts.read() / 10_000 {
            eprintln!(
                "lately: last values were forgotten early {}, records may have passed as changed that were not; allow more --memory",
                many(evicted, "time")
            );
        }
    }

    fn warn_of_overload(&self) {
        let filter = &self.pipeline.judge.filter;
        let overload = filter.overload();
        let full =
            format!("the filter was full ({})", quantity::display_bytes(filter.memory() as u64));
        // A state keeps its filter, and the filter its cap.
        let remedy = if self.goes_on {
            "the state keeps the --memory it was begun with: begin a new state with more"
        } else {
            "allow more --memory"
        };
        // These count records and marks: a key may be among them many times.
        if overload.forgotten > 0 {
            eprintln!(
                "lately: {full}: it forgot early, {}; duplicates of them may have passed; {remedy}",
                many(overload.forgotten, "mark")
            );
        }
        if overload.refused > 0 {
            eprintln!(
                "lately: {full}: records were passed on but not remembered, {}; duplicates of them may have passed; {remedy}",
                many(overload.refused, "time")
            );
        }
    }

    fn judged_by_arrival(&self) -> bool {
        let judge = &self.pipeline.judge;
        matches!(judge.filter.window(), Window::Time { .. }) && judge.moments.by_arrival()
    }

    fn reads_files(&self) -> bool {
        !self.arguments.files.is_empty() && self.arguments.files.iter().all(|file| file != "-")
    }

    fn summarise(&self) {
        let counts = &self.pipeline.report.counts;
        let filter = &self.pipeline.judge.filter;
        let seconds = self.took.as_secs_f64().max(1e-9);
        eprintln!(
            "{}: {} fresh, {} duplicate, {} late, {} invalid, {} missing key, {} skewed",
            many(counts.read(), "record"),
            quantity::display_count(counts.fresh),
            quantity::display_count(counts.duplicate),
            quantity::display_count(counts.late),
            quantity::display_count(counts.invalid),
            quantity::display_count(counts.missing_key),
            quantity::display_count(counts.skewed),
        );
        eprintln!(
            "{} in, {} out, {seconds:.2} s, {}/s",
            quantity::display_bytes(counts.bytes_in),
            quantity::display_bytes(counts.bytes_out),
            quantity::display_bytes((counts.bytes_in as f64 / seconds) as u64),
        );
        eprintln!(
            "{} over {}: {}, {:.0} % full, false positive rate {} of at most {}",
            filter.structure(),
            crate::plan::describe_window(filter.window()),
            quantity::display_bytes(filter.memory() as u64),
            filter.fill() * 100.0,
            display_rate(filter.estimated_fpr()),
            display_rate(filter.fpr()),
        );
    }
}

fn display_rate(rate: f64) -> String {
    if rate == 0.0 { "0".into() } else { format!("{rate:.1e}") }
}
