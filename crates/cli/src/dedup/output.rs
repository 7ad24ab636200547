//! Where records and numbers go.

use super::place::{self, Place};
use crate::Failure;
use clap::Args;
use lately_stream::sink::{Output, Sink};
use serde_json::Value;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArguments {
    /// Where records are passed on to [default: standard output]. A file that is there is
    /// replaced, as soon as there is something to replace it with; when a --state goes on, it is
    /// appended to. So are the files below
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write duplicates to this file
    #[arg(long, value_name = "FILE")]
    duplicates: Option<PathBuf>,

    /// Write late records to this file instead of passing them on
    #[arg(long, value_name = "FILE")]
    late: Option<PathBuf>,

    /// Write dead letters to this file: input, line, reason and the record, separated by tabs
    #[arg(long, value_name = "FILE")]
    invalid: Option<PathBuf>,

    /// Pass duplicates on too, and add the class to every record: a column, or a JSON member
    /// `lately`. Invalid records are not passed on
    #[arg(long)]
    mark: bool,

    /// Write the numbers of the run as JSON to this file, replacing it; `-`: one line on standard
    /// error instead of the summary for people
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,

    /// Exit with status 3 if there were invalid records
    #[arg(long)]
    pub strict: bool,

    /// No summary, no progress bar; warnings only
    #[arg(long, short)]
    pub quiet: bool,
}

impl OutputArguments {
    /// Every file that is written to, with the flag that names it.
    pub fn places(&self) -> Result<Vec<Place>, Failure> {
        let mut places = Vec::new();
        match &self.output {
            Some(path) if !is_dash(path) => places.push(Place::output("--output", path)),
            _ => places.extend(Place::stdout()),
        }
        let others = [
            ("--duplicates", &self.duplicates),
            ("--late", &self.late),
            ("--invalid", &self.invalid),
        ];
        for (flag, path) in others {
            let Some(path) = path else { continue };
            if is_dash(path) {
                return Err(Failure::Usage(format!(
                    "{flag} -: standard output is for what is passed on; name a file"
                )));
            }
            places.push(Place::output(flag, path));
        }
        let summary = self.summary.iter().filter(|path| !is_dash(path));
        places.extend(summary.map(|path| Place::output("--summary", path)));
        Ok(places)
    }

    /// Opens all outputs. Nothing is emptied before [`Begins::begin`] or the first record, so
    /// that a run that comes to nothing leaves everything as it was. `places` are all files of the
    /// run; `goes_on` says that it goes on from a state, and so do its outputs.
    pub fn open(&self, places: &[Place], goes_on: bool) -> Result<Outputs, Failure> {
        let mut replaced = Vec::new();
        let mut open = |path: &Path| {
            let (file, begins) = open_output(path, goes_on)?;
            let whole =
                Replaced { file: Arc::new(file), begun: Arc::new(AtomicBool::new(goes_on)) };
            let output = Output::new(path.display().to_string(), Box::new(whole.clone()))
                .lasting(&whole.file);
            replaced.push((path.to_owned(), whole));
            Ok::<_, Failure>(output.has_header(goes_on && !begins))
        };
        let main = match self.output.as_deref().filter(|path| !is_dash(path)) {
            Some(path) => open(path)?,
            None => stdout()?,
        };
        let mut open = |path: &Option<PathBuf>| path.as_deref().map(&mut open).transpose();
        let sink = Sink::new(main)
            .duplicates(open(&self.duplicates)?)
            .late(open(&self.late)?)
            .invalid(open(&self.invalid)?)
            .marked(self.mark);
        let summary = match self.summary.as_deref().filter(|path| !is_dash(path)) {
            Some(path) => Some((path.to_owned(), open_output(path, false)?.0)),
            None => None,
        };
        // What two names lead to is sure only now that all of it is there.
        place::refuse_clashes(places)?;
        Ok(Outputs { sink, begins: Begins(replaced), summary })
    }

    /// Are records passed on to standard output?
    pub fn to_stdout(&self) -> bool {
        self.output.as_deref().is_none_or(is_dash)
    }

    /// Are dead letters kept?
    pub fn keeps_invalid(&self) -> bool {
        self.invalid.is_some()
    }

    /// Is the summary for people wanted?
    pub fn for_people(&self) -> bool {
        !self.quiet && self.summary.as_deref() != Some(Path::new("-"))
    }

    /// Writes the numbers where they are wanted: to standard error, if not to this file.
    pub fn write_summary(
        &self,
        file: Option<(PathBuf, File)>,
        numbers: &Value,
    ) -> Result<(), Failure> {
        match file {
            Some((path, mut file)) => {
                let written = empty(&file).and_then(|()| writeln!(file, "{numbers:#}"));
                written.map_err(|error| cannot_write(&path, &error))
            }
            None => {
                if self.summary.is_some() {
                    eprintln!("{numbers}");
                }
                Ok(())
            }
        }
    }
}

/// The open outputs of a run.
pub struct Outputs {
    /// For records.
    pub sink: Sink,
    /// For the files among them that are replaced.
    pub begins: Begins,
    /// For the numbers.
    pub summary: Option<(PathBuf, File)>,
}

/// The files that are replaced. They are emptied when the first bytes of the input are read.
pub struct Begins(Vec<(PathBuf, Replaced)>);

impl Begins {
    /// Empties those that have not been.
    pub fn begin(&mut self) -> Result<(), Failure> {
        while let Some((path, file)) = self.0.last() {
            file.begin().map_err(|error| cannot_write(path, &error))?;
            self.0.pop();
        }
        Ok(())
    }
}

/// A file that is emptied when the first bytes are written to it, or before.
#[derive(Clone)]
struct Replaced {
    file: Arc<File>,
    begun: Arc<AtomicBool>,
}

impl Replaced {
    fn begin(&self) -> io::Result<()> {
        if !self.begun.load(Ordering::Relaxed) {
            empty(&self.file)?;
            self.begun.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Write for Replaced {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !bytes.is_empty() {
            self.begin()?;
        }
        (&*self.file).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        (&*self.file).flush()
    }
}

/// Pipes and devices have nothing to be emptied of.
fn empty(file: &File) -> io::Result<()> {
    if file.metadata()?.is_file() { file.set_len(0) } else { Ok(()) }
}

fn is_dash(path: &Path) -> bool {
    path == Path::new("-")
}

/// An output as it is, and whether there is nothing in it.
fn open_output(path: &Path, append: bool) -> Result<(File, bool), Failure> {
    let mut options = File::options();
    let opened = options.write(true).append(append).create(true).truncate(false).open(path);
    let opened = opened.and_then(|file| {
        let begins = file.metadata()?.len() == 0;
        Ok((file, begins))
    });
    opened.map_err(|error| cannot_write(path, &error))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Trouble(format!("cannot write {}: {error}", path.display()))
}

/// Standard output without the line buffer of the standard library: batches are large already.
#[cfg(unix)]
fn stdout() -> Result<Output, Failure> {
    use std::os::fd::AsFd;
    let file = File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
    let again = file.try_clone()?;
    Ok(Output::new("standard output", Box::new(file)).lasting(&again))
}

#[cfg(not(unix))]
fn stdout() -> Result<Output, Failure> {
    Ok(Output::new("standard output", Box::new(std::io::stdout())))
}
