//! What every run over records reports to a person at its end, and its exit status.

use crate::output::is_dash;
use crate::{Failure, many};
use clap::Args;
use lately_stream::judge::class::Class;
use lately_stream::judge::clocks::Clock;
use lately_stream::judge::moment::Moments;
use lately_stream::quantity;
use lately_stream::stamp;
use lately_stream::write::report::Report;
use lately_stream::write::sink::Sink;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Args)]
#[command(next_help_heading = "Output")]
pub struct NoteArguments {
    /// Write the summary as JSON to this file, replacing it; `-` writes it as one line to standard
    /// error, instead of the readable summary
    #[arg(long, value_name = "FILE")]
    pub summary: Option<PathBuf>,

    /// Hand out what the run has done so far at this address (127.0.0.1:9100), for Prometheus: records by class and
    /// more, at /metrics
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<std::net::SocketAddr>,

    /// Exit with status 3 if there were invalid records
    #[arg(long)]
    pub strict: bool,

    /// Print warnings only, no summary and no progress bar
    #[arg(long, short)]
    pub quiet: bool,
}

impl NoteArguments {
    /// Is the summary for people wanted?
    pub fn for_people(&self) -> bool {
        !self.quiet && !self.summary.as_deref().is_some_and(is_dash)
    }

    /// The exit status that a run deserves.
    pub fn failure(&self, report: &Report, moments: &Moments) -> Option<Failure> {
        if let Some(failure) = crate::inputs_failed(&report.inputs, report.counts.read()) {
            return Some(failure);
        }
        if report.save_failed {
            return Some(Failure::Trouble("the state could not be saved".into()));
        }
        let untimed = moments.told.untimed;
        if untimed > 0 && moments.told.times.is_none() {
            return Some(Failure::Trouble(format!(
                "no time could be read, of {}; is --time the right field, and --time-format its format?",
                many(untimed, "record")
            )));
        }
        (self.strict && report.counts.of(Class::Invalid) > 0).then_some(Failure::Strict)
    }
}

/// Inputs that could not be read.
pub fn inputs(report: &Report) {
    for error in &report.inputs {
        eprintln!("lately: {error}");
    }
}

/// Dead letters, what did not happen to them, and how to keep them if they are not kept.
pub fn invalid(report: &Report, undone: &str, kept: bool) {
    let count = report.counts.of(Class::Invalid);
    if count > 0 {
        examples(&many(count, "invalid record"), &report.invalid);
        remedy(undone, "invalid", kept);
    }
}

/// Records without a usable key, likewise.
pub fn without_key(report: &Report, undone: &str, kept: bool) {
    let count = report.counts.of(Class::KeyMissing);
    if count > 0 {
        examples(&format!("{} without a usable key", many(count, "record")), &report.missing);
        remedy(undone, "missing", kept);
    }
}

/// How many there were, and the first few.
pub fn examples(records: &str, examples: &[String]) {
    eprintln!("lately: {records}, such as");
    examples.iter().for_each(|example| eprintln!("  {example}"));
}

fn remedy(undone: &str, flag: &str, kept: bool) {
    if !kept {
        eprintln!("  they were not {undone}; --{flag} FILE keeps them");
    }
}

/// Records behind the clock and ahead of it, and what became of them.
pub fn off_the_clock(report: &Report, late: &str, skewed: &str) {
    let [late_records, skewed_records] =
        [Class::Late, Class::Skewed].map(|class| report.counts.of(class));
    if late_records > 0 {
        eprintln!(
            "lately: {} late (more than --lateness behind the newest), {late}; merge files by time (--merge), or raise --lateness",
            many(late_records, "record")
        );
    }
    if skewed_records > 0 {
        eprintln!(
            "lately: {} with a time too far in the future, {skewed}",
            many(skewed_records, "record")
        );
    }
}

/// Times that could not be read, and clocks that were wrong.
pub fn clock(moments: &Moments, report: &Report) {
    let told = &moments.told;
    if told.untimed > 0 {
        let records = many(told.untimed, "record");
        examples(&format!("{records} without a readable time, judged by arrival"), &report.untimed);
    }
    if told.late_judged > 0 {
        eprintln!("lately: {} late, judged by arrival", many(told.late_judged, "record"));
    }
    if told.stepped_back > 0 {
        eprintln!(
            "lately: the clock was ahead of the records and was set back, {}; what was remembered until then is forgotten",
            many(told.stepped_back, "time")
        );
    }
    if let Some(clocks) = moments.clock.as_ref().and_then(Clock::sources)
        && clocks.spilled() > 0
    {
        eprintln!(
            "lately: {} of sources beyond the first {} were judged by the common clock",
            many(clocks.spilled(), "record"),
            quantity::display_count(clocks.sources() as u64)
        );
    }
}

/// From when to when the records were, as read.
pub fn times(moments: &Moments) {
    if let Some((first, last)) = moments.told.times {
        let [first, last] = [first, last].map(|tick| stamp::display_time(moments.line.nanos(tick)));
        eprintln!("times from {first} to {last}");
    }
}

/// Inputs whose columns have other names than those of the first.
pub fn mismatched_headers(sink: &Sink) {
    for input in sink.mismatched_headers() {
        eprintln!(
            "lately: {input} has a different header line than the first input; its records are in the output under the header of the first"
        );
    }
}

/// What was read and written, and how fast.
pub fn throughput(report: &Report, took: Duration, writes: bool) -> String {
    let counts = &report.counts;
    let seconds = took.as_secs_f64().max(1e-9);
    let written = quantity::display_bytes(counts.bytes_out);
    format!(
        "{} in, {}{seconds:.2} s, {}/s",
        quantity::display_bytes(counts.bytes_in),
        if writes { format!("{written} out, ") } else { String::new() },
        quantity::display_bytes((counts.bytes_in as f64 / seconds) as u64),
    )
}

/// Failures to save the state.
pub fn state_errors(report: &Report) {
    if let (n @ 1.., Some(last)) = &report.state_errors {
        let since = if report.save_failed { "" } else { "; it was saved since" };
        eprintln!(
            "lately: the state could not be saved, {}; the last error: {last}{since}",
            many(*n, "time")
        );
    }
}
