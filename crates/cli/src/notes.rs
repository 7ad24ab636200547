//! What every run over records tells a person at its end, and its exit status.

use crate::output::is_dash;
use crate::{Failure, many};
use clap::Args;
use lately_stream::pipeline::Report;
use lately_stream::sink::Sink;
use std::path::PathBuf;

#[derive(Args)]
#[command(next_help_heading = "Output")]
pub struct NoteArguments {
    /// Write the numbers of the run as JSON to this file, replacing it; `-`: one line on standard
    /// error instead of the summary for people
    #[arg(long, value_name = "FILE")]
    pub summary: Option<PathBuf>,

    /// Exit with status 3 if there were invalid records
    #[arg(long)]
    pub strict: bool,

    /// No summary, no progress bar; warnings only
    #[arg(long, short)]
    pub quiet: bool,
}

impl NoteArguments {
    /// Is the summary for people wanted?
    pub fn for_people(&self) -> bool {
        !self.quiet && !self.summary.as_deref().is_some_and(is_dash)
    }

    /// The exit status that a run deserves.
    pub fn failure(&self, report: &Report) -> Option<Failure> {
        if let Some(failure) = crate::inputs_failed(&report.inputs, report.counts.read()) {
            return Some(failure);
        }
        if report.state_errors.0 > 0 {
            return Some(Failure::Trouble("the state could not be saved".into()));
        }
        (self.strict && report.counts.invalid > 0).then_some(Failure::Strict)
    }
}

/// Inputs that could not be read.
pub fn inputs(report: &Report) {
    for error in &report.inputs {
        eprintln!("lately: {error}");
    }
}

/// Dead letters, what did not become of them, and how to keep them if they are not kept.
pub fn invalid(report: &Report, undone: &str, kept: bool) {
    let count = report.counts.invalid;
    if count > 0 {
        examples(&many(count, "invalid record"), &report.invalid);
        remedy(undone, "invalid", kept);
    }
}

/// Records without a usable key, likewise.
pub fn without_key(report: &Report, undone: &str, kept: bool) {
    let count = report.counts.missing_key;
    if count > 0 {
        examples(&format!("{} without a usable key", many(count, "record")), &report.missing);
        remedy(undone, "missing", kept);
    }
}

/// So many of them, and the first few.
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
    let counts = &report.counts;
    if counts.late > 0 {
        eprintln!(
            "lately: {} late (behind the newest by more than --lateness), {late}; merge inputs by time, or raise --lateness",
            many(counts.late, "record")
        );
    }
    if counts.skewed > 0 {
        eprintln!(
            "lately: {} with a time too far in the future, {skewed}",
            many(counts.skewed, "record")
        );
    }
}

/// Inputs whose columns have other names than the first one's.
pub fn mismatched_headers(sink: &Sink) {
    for input in sink.mismatched_headers() {
        eprintln!(
            "lately: {input} has another header line than the first input; its records are in the output under the names of the first"
        );
    }
}

/// Failures to save the state.
pub fn state_errors(report: &Report) {
    if let (n @ 1.., Some(last)) = &report.state_errors {
        eprintln!("lately: the state could not be saved, {}; the last: {last}", many(*n, "time"));
    }
}
