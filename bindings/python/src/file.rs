//! `lately.dedup_file`: what `lately dedup` does, in this process.

use crate::errors::{self, Kind, raise};
use crate::terms::{self, Arguments};
use lately::Digester;
use lately_store::{Lock, Replacement};
use lately_stream::judge::Decide;
use lately_stream::judge::class::Class;
use lately_stream::options::{Format, KeyFormat, Options};
use lately_stream::pipeline::{Observer, Pipeline};
use lately_stream::read::Source;
use lately_stream::session::{Dedup, DedupSpec, InputSpec, Span};
use lately_stream::stamp::TimeFormat;
use lately_stream::state::file::StateFile;
use lately_stream::write::output::Output;
use lately_stream::write::report::Report;
use lately_stream::write::sink::Sink;
use lately_stream::write::summary;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often a state is saved.
const SAVE_EVERY: Duration = Duration::from_secs(30);

/// How often the signals of Python are looked for.
const PATIENCE: Duration = Duration::from_millis(50);

/// Forwards each record of files once, as `lately dedup` does: unchanged and in order.
///
/// `inputs` is a path or several, `output` the file that the records go to. It is replaced as a whole when all is
/// well; with `state`, a file in which the run remembers across calls, it is appended to instead. `duplicates` is a file for the
/// records that are dropped.
///
/// `key` and `time` name fields, as `--key` and `--time` do: one, or a list. The terms of the filter are those of
/// `lately.Filter`; those of the input are `format`, `time_format`, `time_zone`, `key_format` (`"text"`, `"epc"`, `"ip"`, `"number"`,
/// `"uuid"`), `key_regex`, `fold_case`, `delimiter`, `no_header`, `records`, `null`, `merge`, `max_line`, `max_document`; `threads` is how
/// many parse. Returns what happened, in numbers: the summary of `lately dedup --summary`.
///
/// *Raises:* `InputError` where an input, or no record at all, can be read; `StateError`; `OSError` for an output.
///
/// >>> import tempfile, os
/// >>> folder = tempfile.mkdtemp()
/// >>> path, output = os.path.join(folder, "reads.csv"), os.path.join(folder, "clean.csv")
/// >>> with open(path, "w") as file:
/// ...     _ = file.write("tag,at\na,2024-05-01T10:00:00Z\na,2024-05-01T10:00:04Z\n")
/// >>> found = lately.dedup_file(path, output, key="tag", time="at", within="5s")
/// >>> found["fresh"], found["duplicate"], open(output).read()
/// (1, 1, 'tag,at\na,2024-05-01T10:00:00Z\n')
#[pyfunction]
#[pyo3(signature = (inputs, output, **terms))]
pub(crate) fn dedup_file<'py>(
    py: Python<'py>,
    inputs: &Bound<'py, PyAny>,
    output: PathBuf,
    terms: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let job = Job::new(paths(inputs)?, output, terms)?;
    let mut signals = Signals { seen: Instant::now(), raised: None };
    let done = py.detach(|| job.run(&mut signals));
    if let Some(error) = signals.raised {
        return Err(error);
    }
    py.import("json")?.call_method1("loads", (done?,))
}

/// A path, or several.
fn paths(inputs: &Bound<'_, PyAny>) -> PyResult<Vec<PathBuf>> {
    let is_one = inputs.is_instance_of::<PyString>() || inputs.hasattr("__fspath__")?;
    let paths = match is_one {
        true => vec![inputs.extract()?],
        false => inputs.try_iter()?.map(|one| one?.extract()).collect::<PyResult<Vec<_>>>()?,
    };
    if paths.is_empty() {
        return Err(PyValueError::new_err("there is no input"));
    }
    Ok(paths)
}

/// All that is asked.
struct Job {
    inputs: Vec<PathBuf>,
    output: PathBuf,
    duplicates: Option<PathBuf>,
    state: Option<PathBuf>,
    threads: usize,
    spec: DedupSpec,
    options: Options,
}

impl Job {
    fn new(
        inputs: Vec<PathBuf>,
        output: PathBuf,
        terms: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let mut arguments = Arguments::new(terms);
        let mut spec = terms::dedup(&mut arguments)?;
        let input = input(&mut arguments)?;
        let forms = KeyFormat::NAMES;
        let form = arguments.word("key_format", &forms)?.unwrap_or_default();
        let fold = arguments.flag("fold_case")?;
        let path = |value: Bound<'_, PyAny>| value.extract::<PathBuf>();
        let state = arguments.get("state")?.map(path).transpose()?;
        let duplicates = arguments.get("duplicates")?.map(path).transpose()?;
        let threads = arguments.count("threads")?.map(|n| usize::try_from(n).unwrap_or(1));
        arguments.end("dedup_file")?;

        let within = matches!(spec.span, Span::Within(_));
        spec.clock.timed = Some(input.may_bring_times(within));
        let reading = input.reading(form.name());
        spec.reading = Some(reading.with("key-case", fold.then_some("fold")));
        spec.plan().map_err(errors::spec)?;
        let mut options = input.options(Digester::new(spec.seed), within).map_err(errors::input)?;
        (options.key_format, options.fold_case) = (form, fold);
        let cores = || std::thread::available_parallelism().map_or(1, usize::from).min(8);
        let threads = threads.unwrap_or_else(cores).max(1);
        Ok(Self { inputs, output, duplicates, state, threads, spec, options })
    }

    /// Runs to the end; the summary as JSON.
    fn run(self, signals: &mut Signals) -> PyResult<String> {
        let started = Instant::now();
        self.refuse_clashes()?;
        let _lock = self
            .state
            .as_deref()
            .map(Lock::take)
            .transpose()
            .map_err(|error| raise(Kind::State, error))?;
        let saved = self.state.as_deref().map(|path| self.spec.resume(path)).transpose();
        let saved = saved.map_err(errors::state)?.flatten();
        let resumes = saved.is_some();
        let session = match saved {
            Some(session) => session,
            None => self.spec.build().map_err(errors::spec)?,
        };
        let changes = resumes.then(|| session.changes());
        let state = self.state.clone().map(|path| StateFile::new(path, SAVE_EVERY, changes));

        let appends = self.state.is_some();
        let main = Target::open(&self.output, appends)?;
        let dropped = self.duplicates.as_deref().map(|path| Target::open(path, appends));
        let dropped = dropped.transpose()?;
        let sink =
            Sink::new(main.output()?).dropped(dropped.as_ref().map(Target::output).transpose()?);
        let names = self.inputs.iter().map(|path| path.display().to_string()).collect();
        let mut pipeline = Pipeline::new(session, sink, None, state);
        let ended = pipeline.run(Source::new(names, self.options), self.threads, signals);
        ended.map_err(|error| PyOSError::new_err(error.to_string()))?;
        if signals.raised.is_some() {
            return Ok(String::new());
        }
        refuse_failure(&pipeline.report, &pipeline.judge)?;
        let numbers = summary::to_json(&pipeline.report, &pipeline.judge, started.elapsed());
        drop(pipeline);
        [Some(main), dropped].into_iter().flatten().try_for_each(Target::commit)?;
        Ok(numbers.to_string())
    }

    /// No file may be two things at once.
    fn refuse_clashes(&self) -> PyResult<()> {
        let named = [("the output", Some(&self.output)), ("duplicates", self.duplicates.as_ref())];
        let named = named.into_iter().chain([("state", self.state.as_ref())]);
        let inputs = self.inputs.iter().map(|path| ("the input", path));
        let mut known: Vec<(&str, PathBuf)> = Vec::new();
        for (label, path) in inputs.chain(named.filter_map(|(label, path)| Some((label, path?)))) {
            let Ok(place) = path.canonicalize() else { continue };
            let clash = known.iter().find(|(other, known)| {
                *known == place && (*other, label) != ("the input", "the input")
            });
            if let Some((other, _)) = clash {
                return Err(PyValueError::new_err(format!(
                    "{other} and {label} are the same file, {}; one would overwrite the other, name another",
                    path.display()
                )));
            }
            known.push((label, place));
        }
        Ok(())
    }
}

/// How the inputs are read.
fn input(arguments: &mut Arguments<'_, '_>) -> PyResult<InputSpec> {
    let usual = InputSpec::default();
    let delimiter = match arguments.parsed::<String>("delimiter")? {
        None => None,
        Some(text) => match text.as_bytes() {
            [byte] if byte.is_ascii() && !byte.is_ascii_alphanumeric() => Some(*byte),
            _ => {
                return Err(terms::wrong(
                    "delimiter",
                    "must be a single ASCII character, such as ';'",
                ));
            }
        },
    };
    Ok(InputSpec {
        key: arguments.names("key")?,
        key_regex: arguments.regex("key_regex")?,
        time: arguments.names("time")?,
        time_format: arguments.parsed("time_format")?.unwrap_or(TimeFormat::Auto),
        time_zone: arguments.parsed("time_zone")?.unwrap_or(usual.time_zone),
        format: arguments.parsed("format")?.unwrap_or(Format::Auto),
        merge: arguments.flag("merge")?,
        no_header: arguments.flag("no_header")?,
        delimiter,
        records: arguments.parsed("records")?,
        null: arguments.flag("null")?,
        max_document: arguments.bytes("max_document")?.unwrap_or(usual.max_document),
        max_line: arguments.bytes("max_line")?.unwrap_or(usual.max_line),
    })
}

/// A run that comes to nothing is an error, as it is for the program.
fn refuse_failure(report: &Report, session: &Dedup) -> PyResult<()> {
    if let Some(error) = report.inputs.first() {
        return Err(raise(Kind::Input, error));
    }
    if report.save_failed {
        let (_, why) = &report.state_errors;
        let why = why.clone().unwrap_or_else(|| "the state could not be saved".into());
        return Err(raise(Kind::State, why));
    }
    let told = &session.moments().told;
    if told.untimed > 0 && told.times.is_none() {
        return Err(raise(
            Kind::Input,
            format!(
                "no time could be read, of {} records; is time the right field, and time_format its format?",
                told.untimed
            ),
        ));
    }
    let (read, invalid) = (report.counts.read(), report.counts.of(Class::Invalid));
    if read > 0 && invalid == read {
        let first = report.invalid.first().map_or("", String::as_str);
        return Err(raise(
            Kind::Input,
            format!("no record could be read: {invalid} invalid; {first}"),
        ));
    }
    Ok(())
}

/// Where records go.
enum Target {
    /// A file that is replaced in the end.
    New(Arc<Mutex<Option<Replacement>>>, PathBuf),
    /// One that is appended to.
    Appended(File, PathBuf),
}

impl Target {
    fn open(path: &Path, appends: bool) -> PyResult<Self> {
        let path = path.to_owned();
        let opened = match appends {
            true => File::options()
                .append(true)
                .create(true)
                .open(&path)
                .map(|file| Self::Appended(file, path.clone())),
            false => Replacement::begin(&path)
                .map(|file| Self::New(Arc::new(Mutex::new(Some(file))), path.clone())),
        };
        opened.map_err(|error| cannot_write(&path, &error))
    }

    fn output(&self) -> PyResult<Output> {
        match self {
            Self::New(file, path) => {
                let writer = Box::new(Shared(Arc::clone(file)));
                Ok(Output::new(path.display().to_string(), writer))
            }
            Self::Appended(file, path) => {
                let is_empty = file.metadata().map(|metadata| metadata.len() == 0);
                let is_empty = is_empty.map_err(|error| cannot_write(path, &error))?;
                let same = file.try_clone().map_err(|error| cannot_write(path, &error))?;
                Ok(Output::new(path.display().to_string(), Box::new(same))
                    .sync_on_save(file)
                    .ends_in_mid_line(ends_in_mid_line(path))
                    .has_header(!is_empty))
            }
        }
    }

    /// Lets what was written take the place of the old file.
    fn commit(self) -> PyResult<()> {
        let Self::New(file, path) = self else { return Ok(()) };
        let file = file.lock().unwrap_or_else(PoisonError::into_inner).take();
        file.map_or(Ok(()), Replacement::commit).map_err(|error| cannot_write(&path, &error))
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> PyErr {
    PyOSError::new_err(format!("cannot write {}: {error}", path.display()))
}

/// Does the file end without a line end, as a crash leaves it?
fn ends_in_mid_line(path: &Path) -> bool {
    let last = || -> io::Result<u8> {
        let mut last = [b'\n'];
        let mut file = File::open(path)?;
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        Ok(last[0])
    };
    last().is_ok_and(|last| !matches!(last, b'\n' | 0))
}

/// A replacement that is written to, and committed by another.
struct Shared(Arc<Mutex<Option<Replacement>>>);

impl Shared {
    fn with<T>(&self, write: impl FnOnce(&mut Replacement) -> io::Result<T>) -> io::Result<T> {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(file) => write(file),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.with(|file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.with(Replacement::flush)
    }
}

/// Ends a run when a signal was raised in Python.
struct Signals {
    seen: Instant,
    raised: Option<PyErr>,
}

impl Observer for Signals {
    fn progress(&mut self, _: &Report) {
        if self.raised.is_none() && self.seen.elapsed() >= PATIENCE {
            self.seen = Instant::now();
            self.raised = Python::attach(|py| py.check_signals()).err();
        }
    }

    fn stop(&self) -> bool {
        self.raised.is_some()
    }
}
