//! A progress bar on a terminal, and nothing anywhere else.

use crate::dedup::output::Begins;
use crate::signals::Signals;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lately_stream::pipeline::{Report, Watch};
use std::fs;
use std::io::{IsTerminal, stderr, stdout};

/// Watches a run for the person at the terminal.
pub struct Progress {
    bar: Option<ProgressBar>,
    signals: Signals,
    /// Outputs to be emptied when the first bytes are read.
    pub begins: Begins,
    /// Failures to save the state that were told of.
    told: u64,
}

impl Progress {
    /// A bar, unless `quiet` or standard error is no terminal. Records that go to the same
    /// terminal leave no room for one either.
    pub fn new(
        files: &[String],
        to_stdout: bool,
        quiet: bool,
        signals: Signals,
        begins: Begins,
    ) -> Self {
        let wanted = !quiet && stderr().is_terminal() && !(to_stdout && stdout().is_terminal());
        let bar = wanted.then(|| {
            let size = size_of_all(files);
            let bar = ProgressBar::with_draw_target(size, ProgressDrawTarget::stderr_with_hz(8));
            let template = match size {
                Some(_) => "{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {msg}",
                None => "{spinner} {bytes} {bytes_per_sec} {msg}",
            };
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar
        });
        Self { bar, signals, begins, told: 0 }
    }

    /// Clears the bar away.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Watch for Progress {
    fn progress(&mut self, report: &Report) {
        if report.counts.bytes_in > 0 {
            // One that cannot be emptied is tried again, and told of, at the end.
            let _ = self.begins.begin();
        }
        // The end of a stream may be months away.
        if let (failures @ 1.., Some(error)) = &report.state_errors
            && self.told == 0
        {
            self.told = *failures;
            let tell = || eprintln!("lately: {error}; the stream goes on without it");
            self.bar.as_ref().map_or_else(tell, |bar| bar.suspend(tell));
        }
        if let Some(bar) = &self.bar {
            bar.set_position(report.counts.bytes_in);
            let counts = &report.counts;
            bar.set_message(format!("{} fresh of {}", counts.fresh, counts.read()));
        }
    }

    fn stop(&self) -> bool {
        self.signals.stop()
    }

    fn save(&self) -> bool {
        self.signals.save()
    }
}

/// Bytes of all inputs together, if all are plain files that are not compressed.
fn size_of_all(files: &[String]) -> Option<u64> {
    let size = |name: &String| {
        let compressed = [".gz", ".zst"].iter().any(|end| name.ends_with(end));
        fs::metadata(name).ok().filter(|file| file.is_file() && !compressed).map(|file| file.len())
    };
    files.iter().map(size).sum::<Option<u64>>().filter(|_| !files.is_empty())
}
