//! A progress bar on a terminal, and nothing anywhere else.

use crate::Failure;
use crate::metrics::Metrics;
use crate::output::Begins;
use crate::signals::Signals;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lately_stream::judge::class::Class;
use lately_stream::pipeline::Observer;
use lately_stream::quantity;
use lately_stream::write::report::Report;
use std::cell::Cell;
use std::fs;
use std::io::{IsTerminal, stderr, stdout};
use std::time::{Duration, Instant};

/// Kinds of trouble that are reported when they are new.
const NEWS: usize = 7;

/// How long the end of files that are read may be waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a subcommand says about what happens.
#[derive(Clone, Copy)]
pub struct Messages {
    /// Of the first unreadable record.
    pub invalid: &'static str,
    /// Of the first record without a key.
    pub missing: &'static str,
    /// What becomes of records that are late,
    pub late: &'static str,
    /// and of those from the future.
    pub skewed: &'static str,
    /// When room is made by forgetting,
    pub forgotten: &'static str,
    /// or by not remembering.
    pub refused: &'static str,
    /// The class of the records that the run is about.
    pub done: Class,
}

/// Watches a run for the person at the terminal.
pub struct Progress {
    bar: Option<ProgressBar>,
    signals: Signals,
    /// Outputs to be emptied when the first bytes are read.
    begins: Begins,
    /// An input is live: its end, when all is reported, may be months away.
    live: bool,
    started: Instant,
    /// What was reported.
    told: [bool; NEWS],
    messages: Messages,
    /// Where it is said how far the run has come.
    metrics: Option<Metrics>,
    /// Somebody has asked how far that is.
    asked: Cell<bool>,
    quiet: bool,
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
        live: bool,
        messages: Messages,
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
            let last = bar.clone();
            signals.before_end(move || last.finish_and_clear());
            bar
        });
        let (told, metrics, asked) = ([false; NEWS], None, Cell::new(false));
        let started = Instant::now();
        Self { bar, signals, begins, live, started, told, messages, metrics, asked, quiet }
    }

    /// Also says there how far the run has come.
    #[must_use]
    pub fn noted(self, metrics: Option<Metrics>) -> Self {
        Self { metrics, ..self }
    }

    /// Says how far the run has come, on a line.
    fn tell_counts(&self, report: &Report) {
        let counts = Class::FINAL.into_iter().filter(|class| report.counts.of(*class) > 0);
        let counts: Vec<_> = counts
            .map(|class| {
                format!("{} {}", quantity::display_count(report.counts.of(class)), class.name())
            })
            .collect();
        let read = quantity::display_count(report.counts.read());
        let counts = counts.join(", ");
        let tell = || eprintln!("lately: {read} records so far: {counts}");
        self.bar.as_ref().map_or_else(tell, |bar| bar.suspend(tell));
    }

    /// Reports each kind of trouble once, when it is new. How much of it there was is reported at the
    /// end, and if that comes soon, only then.
    fn tell_news(&mut self, report: &Report) {
        let soon = !self.live && self.started.elapsed() < PATIENCE;
        let (overload, messages) = (report.overload, self.messages);
        let of = |class| report.counts.of(class);
        let first = |examples: &[String], what: &str| {
            examples.first().map(|example| format!("{example}: {what}"))
        };
        let news: [(bool, &dyn Fn() -> Option<String>); NEWS] = [
            (report.state_errors.0 > 0, &|| {
                let error = report.state_errors.1.as_ref()?;
                Some(format!("{error}; the stream continues without it"))
            }),
            (!soon && of(Class::Invalid) > 0, &|| first(&report.invalid, messages.invalid)),
            (!soon && of(Class::KeyMissing) > 0, &|| first(&report.missing, messages.missing)),
            (!soon && of(Class::Late) > 0, &|| {
                let place = report.late.as_ref()?;
                Some(format!(
                    "{place}: the first late record (more than --lateness behind the newest), {}; merge files by time (--merge), or raise --lateness",
                    messages.late
                ))
            }),
            (!soon && of(Class::Skewed) > 0, &|| {
                let place = report.skewed.as_ref()?;
                Some(format!(
                    "{place}: the first record with a time too far in the future (see --max-skew), {}",
                    messages.skewed
                ))
            }),
            (!soon && overload.forgotten > 0, &|| Some(messages.forgotten.into())),
            (!soon && overload.refused > 0, &|| Some(messages.refused.into())),
        ];
        for ((is_so, message), told) in news.into_iter().zip(&mut self.told) {
            if is_so
                && !*told
                && let Some(message) = message()
            {
                *told = true;
                let tell = || eprintln!("lately: {message}");
                self.bar.as_ref().map_or_else(tell, |bar| bar.suspend(tell));
            }
        }
    }

    /// Clears the bar away, and empties the outputs that are replaced, unless inputs failed and nothing
    /// was read: then it returns `true`.
    pub fn end(&mut self, report: &Report) -> Result<bool, Failure> {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        let nothing_read = report.counts.read() == 0 && !report.inputs.is_empty();
        if !nothing_read {
            self.begins.begin()?;
        }
        Ok(nothing_read)
    }
}

impl Observer for Progress {
    fn progress(&mut self, report: &Report) {
        if report.counts.bytes_in > 0 {
            // One that cannot be emptied is tried again, and reported, at the end.
            let _ = self.begins.begin();
        }
        self.tell_news(report);
        if let Some(metrics) = &self.metrics {
            metrics.note(report);
        }
        if self.asked.take() {
            self.tell_counts(report);
        }
        if let Some(bar) = &self.bar {
            bar.set_position(report.counts.bytes_in);
            let counts = &report.counts;
            let [done, read] =
                [counts.of(self.messages.done), counts.read()].map(quantity::display_count);
            bar.set_message(format!("{done} {} of {read}", self.messages.done.name()));
        }
    }

    fn stop(&self) -> bool {
        self.signals.stop()
    }

    fn save(&self) -> bool {
        let asked = self.signals.save();
        self.asked.set(self.asked.get() || asked && !self.quiet);
        asked
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
