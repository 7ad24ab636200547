//! What a person is told at the end of a run.

use super::Arguments;
use crate::run::Done;
use crate::{many, notes, plan};
use lately::{Filter, Window, WindowFilter};
use lately_stream::judge::Decide;
use lately_stream::judge::class::Class;
use lately_stream::quantity;
use lately_stream::session::Dedup;
use lately_stream::write::summary;

impl Arguments {
    /// Prints warnings about what was lost, or may not be as it was meant.
    pub(super) fn print_warnings(&self, done: &Done<'_, Dedup>) {
        let report = &done.pipeline.report;
        let judge = &done.pipeline.judge;
        notes::invalid(report, "forwarded", self.output.keeps_invalid());
        let missing = report.counts.of(Class::KeyMissing);
        if missing > 0 {
            let records = many(missing, "record");
            notes::examples(&format!("{records} without a key, forwarded"), &report.missing);
        }
        notes::off_the_clock(report, "not judged", "forwarded without being judged");
        notes::clock(judge.moments(), report);
        warn_of_overload(done);
        warn_of_lost_values(done);
        warn_of_lost_counts(done);
        if report.counts.read() == 0 {
            return;
        }
        let by_arrival = judge.moments().by_arrival();
        let is_timed = matches!(judge.filter().window(), Window::Time { .. });
        if is_timed && by_arrival && done.reads_files && !self.input.is_timed() {
            eprintln!("lately: no --time: records were judged by when they were read");
        }
        if self.time.lateness.lateness.is_some() && by_arrival {
            eprintln!(
                "lately: --lateness had no effect: no record was judged by a time of its own; --time names the field, and --within uses it"
            );
        }
    }
}

fn warn_of_lost_values(done: &Done<'_, Dedup>) {
    let report = &done.pipeline.report;
    // A few are pushed out by chance below the limit, too.
    if report.change_evicted > report.counts.read() / 10_000 {
        eprintln!(
            "lately: last values were forgotten early, {}: unchanged records may have been forwarded as changed; allow more --memory",
            many(report.change_evicted, "time")
        );
    }
}

fn warn_of_lost_counts(done: &Done<'_, Dedup>) {
    let report = &done.pipeline.report;
    if report.counted_early > 0 {
        eprintln!(
            "lately: {} forwarded before the window closed, for lack of room; allow more --memory",
            many(report.counted_early, "record")
        );
    }
    if report.uncounted > 0 {
        eprintln!(
            "lately: {} in no count, as the first of their key was forwarded before",
            many(report.uncounted, "duplicate")
        );
    }
}

fn warn_of_overload(done: &Done<'_, Dedup>) {
    let filter = done.pipeline.judge.filter();
    let overload = filter.overload();
    let full = format!("the filter was full ({})", quantity::display_bytes(filter.memory() as u64));
    // A state keeps its filter, and the filter its limit.
    let remedy = if done.resumes {
        "the state keeps the --memory it was started with: begin a new state with more"
    } else {
        "allow more --memory"
    };
    // These count records and marks: a key may be among them many times.
    if overload.forgotten > 0 {
        eprintln!(
            "lately: {full}: it forgot early, {}; duplicates of them may have been forwarded; {remedy}",
            many(overload.forgotten, "mark")
        );
    }
    if overload.refused > 0 {
        eprintln!(
            "lately: {full}: records were forwarded without being remembered, {}; duplicates of them may have been forwarded; {remedy}",
            many(overload.refused, "time")
        );
    }
}

/// Prints what was done, for people.
pub(super) fn summarise(done: &Done<'_, Dedup>) {
    let report = &done.pipeline.report;
    let filter = done.pipeline.judge.filter();
    let records = many(report.counts.read(), "record");
    eprintln!("{records}: {}", summary::classes_in_words::<Dedup>(report));
    eprintln!("{}", notes::throughput(report, done.took, true));
    notes::times(done.pipeline.judge.moments());
    eprintln!(
        "{} over {}: {}, {:.0} % full, false positive rate {} of at most {}",
        filter.structure(),
        plan::describe_window(filter.window()),
        quantity::display_bytes(filter.memory() as u64),
        filter.fill() * 100.0,
        display_rate(filter.estimated_fpr()),
        display_rate(filter.fpr()),
    );
}

fn display_rate(rate: f64) -> String {
    if rate == 0.0 { "0".into() } else { format!("{rate:.1e}") }
}
