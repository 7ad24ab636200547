//! A run over records, whichever subcommand it is: open, run, tell, exit.

use crate::arguments;
use crate::brokers::{self, BrokerArguments, Brokers};
use crate::metrics::Metrics;
use crate::notes::{self, NoteArguments};
use crate::output::{Begins, Opener, SummaryFile};
use crate::place::{self, Place};
use crate::progress::{Messages, Progress};
use crate::signals::{SUPERVISED, Signals};
use crate::{Failure, many};
use lately_store::{Lock, LockError};
#[cfg(feature = "parquet")]
use lately_stream::columnar::ColumnFormat;
use lately_stream::judge::Decide;
use lately_stream::judge::class::Class;
use lately_stream::judge::hold::Hold;
#[cfg(feature = "parquet")]
use lately_stream::options::Format;
use lately_stream::options::Options;
use lately_stream::pipeline::Pipeline;
use lately_stream::read::{Looked, Source};
use lately_stream::state::file::StateFile;
use lately_stream::write::report::{Counts, Report};
use lately_stream::write::sink::Sink;
use lately_stream::write::summary::{self, Describe};
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};

/// A subcommand that reads records.
pub trait Job {
    /// What judges them.
    type Judge: Describe;

    /// What is said while it runs.
    const MESSAGES: Messages;

    /// The inputs that were named.
    fn files(&self) -> &[String];

    /// Threads that parse.
    fn threads(&self) -> Option<usize>;

    /// How to get in at brokers.
    fn brokers(&self) -> &BrokerArguments;

    /// Do records wait in memory before they are written?
    fn keeps_records(&self) -> bool {
        false
    }

    /// What is told, and to whom.
    fn notes(&self) -> &NoteArguments;

    /// The file of the state.
    fn state(&self) -> Option<&Path> {
        None
    }

    /// Are outputs replaced although there is a state?
    fn overwrites(&self) -> bool {
        false
    }

    /// Do forwarded records go to standard output?
    fn writes_to_stdout(&self) -> bool;

    /// All other files of the run.
    fn places(&self) -> Result<Vec<Place>, Failure>;

    /// Reads the beginning of standard input, if it decides how the rest is read.
    fn look(&self, _stop: &dyn Fn() -> bool) -> Result<Option<Looked>, Failure> {
        Ok(None)
    }

    /// What judges, and what it is to read.
    fn begin(&self) -> Result<Begun<Self::Judge>, Failure>;

    /// What was asked for that records in columns do not go with: a flag, and why.
    #[cfg(feature = "parquet")]
    fn refuses_columns(&self) -> Option<(&'static str, &'static str)> {
        Some(("FILE", "this subcommand reads no records in columns"))
    }

    /// Opens the outputs.
    fn sink(&self, opener: &mut Opener) -> Result<Sink, Failure>;

    /// Prints warnings about how it went.
    fn warn(&self, done: &Done<'_, Self::Judge>);

    /// Prints the summary for people.
    fn summarise(&self, done: &Done<'_, Self::Judge>);

    /// What else belongs to the summary for programs.
    fn numbers(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }
}

/// What a job begins with.
pub struct Begun<J> {
    pub judge: J,
    pub options: Options,
    pub hold: Option<Hold>,
    pub state: Option<StateFile>,
    /// It resumes a state.
    pub resumes: bool,
}

impl<J: Decide> Begun<J> {
    /// Begins with what was saved, if anything was; nothing waits. `state` is its file, and how often to
    /// save it, in nanoseconds.
    pub fn new(
        resumed: Option<J>,
        begin: impl FnOnce() -> Result<J, Failure>,
        options: Options,
        state: Option<(&Path, u64)>,
    ) -> Result<Self, Failure> {
        let resumes = resumed.is_some();
        let judge = resumed.map_or_else(begin, Ok)?;
        let saved = resumes.then(|| judge.changes());
        let state = state
            .map(|(path, every)| StateFile::new(path.into(), Duration::from_nanos(every), saved));
        Ok(Self { judge, options, hold: None, state, resumes })
    }
}

/// A run at its end.
pub struct Done<'a, J> {
    pub pipeline: &'a Pipeline<J>,
    /// It resumed a state.
    pub resumes: bool,
    /// Inputs were files only, which says that no time of day has a meaning.
    pub reads_files: bool,
    pub took: Duration,
}

/// Runs a job.
pub fn run<J: Job>(job: &J) -> Result<(), Failure> {
    let started = Instant::now();
    let signals = Signals::listen()?;
    let files = files(job);
    let mut places = Place::inputs(files.iter());
    places.extend(job.places()?);
    places.extend(Place::summary(job.notes().summary.as_deref()));
    places.extend(job.state().into_iter().flat_map(Place::state));
    place::refuse_clashes(&places)?;

    let _lock = job.state().map(lock).transpose()?.flatten();
    let looked = job.look(&|| signals.stop())?;
    let begun = job.begin()?;
    if begun.options.merge && Source::new(files.clone(), begun.options.clone()).is_live() {
        return Err(Failure::Usage(
            "--merge reads files only: of a pipe nobody knows when its next record comes".into(),
        ));
    }
    let resumes = begun.resumes;
    // Whether the state is there or not: one that is missing or was moved away must not cost the
    // records that the outputs hold.
    let appends = job.state().is_some() && !job.overwrites();
    brokers::check(&files, begun.options.merge, job.keeps_records(), job.state().is_some())?;
    let identity = identity::<J>(job.state(), &files);
    let brokers = Brokers::new(job.brokers(), &identity, signals.writing())?;
    let mut opener = Opener::new(appends, signals.writing(), brokers);
    #[cfg(feature = "parquet")]
    if let Some(format) = columns_format(job, &files, &begun.options)? {
        opener = opener.of_columns(format);
    }
    let sink = job.sink(&mut opener)?;
    let summary = SummaryFile::open(job.notes().summary.as_deref())?;
    // What two names lead to is certain only now that all of it is there.
    place::refuse_clashes(&places)?;

    let (change, rank) = (begun.options.change.clone(), begun.options.rank.clone());
    let bands = begun.options.bands.clone();
    let mut pipeline = Pipeline::new(begun.judge, sink, begun.hold, begun.state);
    let source = source(job, &files, begun.options, looked, opener.brokers())?;
    let metrics = job.notes().metrics.map(Metrics::listen).transpose()?;
    let progress = progress(job, &files, signals, opener.done(), source.is_live());
    let mut progress = progress.noted(metrics);
    let result = pipeline.run(source, arguments::parsers(job.threads()), &mut progress);
    let nothing_read = progress.end(&pipeline.report)?;

    let reads_files = files.iter().all(|file| file != Source::STDIN && !brokers::is_address(file));
    let done = Done { pipeline: &pipeline, resumes, reads_files, took: started.elapsed() };
    tell(job, &done, nothing_read);
    warn_of_fields(&pipeline.report, &change, &bands, rank.as_deref());
    // Not for nothing: a filter counts its bits for it.
    if job.notes().summary.is_some() {
        SummaryFile::write(summary, &numbers(job, &pipeline, done.took))?;
    }
    result.map_err(|error| Failure::Trouble(error.to_string()))?;
    let report = &pipeline.report;
    job.notes().failure(report, pipeline.judge.moments()).map_or(Ok(()), Err)?;
    refuse_all_invalid(&report.counts)
}

/// What the job reads: a broker, or files, of which the beginning may have been read already.
fn source<J: Job>(
    job: &J,
    files: &[String],
    options: Options,
    looked: Option<Looked>,
    brokers: &Brokers,
) -> Result<Source, Failure> {
    let source = match files.first().filter(|file| brokers::is_address(file)) {
        Some(address) => {
            let source = brokers.input(address, options)?;
            if !job.notes().quiet {
                eprintln!("lately: reading {}", source.name(0));
            }
            source
        }
        None => Source::new(files.to_vec(), options),
    };
    Ok(match looked {
        Some(looked) => source.begin_with(looked),
        None => source,
    })
}

/// Where no record could be read, the options are wrong, or the input is.
fn refuse_all_invalid(counts: &Counts) -> Result<(), Failure> {
    let read = counts.read();
    if read > 0 && counts.of(Class::Invalid) == read {
        return Err(Failure::Trouble(format!(
            "no record could be read: {} invalid",
            many(read, "record")
        )));
    }
    Ok(())
}

/// The summary for programs.
fn numbers<J: Job>(job: &J, pipeline: &Pipeline<J::Judge>, took: Duration) -> Value {
    let mut numbers = summary::to_json(&pipeline.report, &pipeline.judge, took);
    if let Some(numbers) = numbers.as_object_mut() {
        numbers.extend(job.numbers().into_iter().map(|(name, number)| (name.into(), number)));
    }
    numbers
}

/// What a run is that is started again: a broker keeps messages for it meanwhile.
fn identity<J: Job>(state: Option<&Path>, files: &[String]) -> String {
    let place = match state {
        Some(state) => std::path::absolute(state).unwrap_or_else(|_| state.into()),
        None => std::env::current_dir().unwrap_or_default(),
    };
    let judge = std::any::type_name::<J::Judge>();
    let flow = std::env::var(SUPERVISED).map_or(String::new(), |name| format!("\n{name}"));
    format!("{judge}\n{}\n{}{flow}", place.display(), files.join("\n"))
}

/// The format of the inputs, if their records are in columns.
#[cfg(feature = "parquet")]
fn columns_format<J: Job>(
    job: &J,
    files: &[String],
    options: &Options,
) -> Result<Option<ColumnFormat>, Failure> {
    let format = Source::new(files.to_vec(), options.clone()).columns_format();
    let Some(format) = format.map_err(Failure::Usage)? else { return Ok(None) };
    let refused = job.refuses_columns().or_else(|| {
        (options.format != Format::Auto).then_some(("--format", "its format is known"))
    });
    match refused {
        None => Ok(Some(format)),
        Some((flag, why)) => Err(Failure::Usage(format!(
            "{flag}: {} is a file of records in columns ({format}): {why}",
            files[0]
        ))),
    }
}

/// The inputs: those that were named, or standard input.
pub fn files<J: Job>(job: &J) -> Vec<String> {
    match job.files() {
        [] => vec![Source::STDIN.into()],
        files => files.to_vec(),
    }
}

fn progress<J: Job>(
    job: &J,
    files: &[String],
    signals: Signals,
    begins: Begins,
    live: bool,
) -> Progress {
    let (to_stdout, quiet) = (job.writes_to_stdout(), job.notes().quiet);
    Progress::new(files, to_stdout, quiet, signals, begins, live, J::MESSAGES)
}

/// Takes the state for this run alone: of two that save to one file, each would overwrite what the
/// other remembers.
fn lock(path: &Path) -> Result<Option<Lock>, Failure> {
    match Lock::take(path) {
        Ok(lock) => Ok(Some(lock)),
        Err(error @ (LockError::Folder(_) | LockError::InUse(_))) => {
            Err(Failure::Trouble(error.to_string()))
        }
        // A state that cannot be saved does not end the stream, but whoever started it is still
        // there to be told.
        Err(error) => {
            eprintln!("lately: {error}; the state may not be saved, the stream continues");
            Ok(None)
        }
    }
}

/// Fields that were asked for and never there, as it is with a misspelt name.
fn warn_of_fields(report: &Report, change: &[String], bands: &[String], rank: Option<&str>) {
    let judged = report.counts.of(Class::Fresh) + report.counts.of(Class::Duplicate);
    if judged == 0 || report.closed {
        return;
    }
    if !change.is_empty() && report.with_change == 0 {
        let fields = change.join(",");
        eprintln!(
            "lately: no record has a field `{fields}` of --pass-on-change: nothing was seen to change"
        );
    }
    if !bands.is_empty() && report.with_band == 0 {
        let fields = bands.join(",");
        eprintln!(
            "lately: no record has a number in a field `{fields}` of --pass-on-change: nothing was seen to change"
        );
    }
    if let Some(field) = rank.filter(|_| report.with_rank == 0) {
        eprintln!(
            "lately: no record has a number or a time in the field `{field}` of --best: the first of each burst was forwarded"
        );
    }
}

fn tell<J: Job>(job: &J, done: &Done<'_, J::Judge>, nothing_read: bool) {
    let report = &done.pipeline.report;
    notes::inputs(report);
    report.notes.iter().for_each(|note| eprintln!("lately: {note}"));
    if report.closed {
        return;
    }
    job.warn(done);
    notes::mismatched_headers(&done.pipeline.sink);
    notes::state_errors(report);
    if job.notes().for_people() && !nothing_read {
        job.summarise(done);
    }
}
