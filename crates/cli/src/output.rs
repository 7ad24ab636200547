//! Opens outputs, and empties those that are replaced only when there is something to replace them
//! with.

use crate::Failure;
use lately_stream::write::output::Output;
use serde_json::Value;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Opens the outputs of a run.
pub struct Opener {
    /// The run resumes a state, and its outputs are appended to.
    resumes: bool,
    replaced: Vec<(PathBuf, Replaced)>,
}

impl Opener {
    /// For a run that begins, or one that resumes a state.
    pub fn new(resumes: bool) -> Self {
        Self { resumes, replaced: Vec::new() }
    }

    /// A file.
    fn file(&mut self, path: &Path) -> Result<Output, Failure> {
        let resumes = self.resumes;
        let (file, begins) = open_output(path, resumes)?;
        let whole = Replaced { file: Arc::new(file), begun: Arc::new(AtomicBool::new(resumes)) };
        let output = Output::new(path.display().to_string(), Box::new(whole.clone()))
            .sync_on_save(&whole.file);
        self.replaced.push((path.to_owned(), whole));
        Ok(output.has_header(resumes && !begins))
    }

    /// A file, if one is named.
    pub fn maybe(&mut self, path: Option<&Path>) -> Result<Option<Output>, Failure> {
        path.map(|path| self.file(path)).transpose()
    }

    /// Where records are forwarded to: a file, or standard output.
    pub fn main(&mut self, path: Option<&Path>) -> Result<Output, Failure> {
        match path.filter(|path| !is_dash(path)) {
            Some(path) => self.file(path),
            None => stdout(),
        }
    }

    /// All files that were opened.
    pub fn done(self) -> Begins {
        Begins(self.replaced)
    }
}

/// Where the numbers of a run go, if to a file.
pub struct SummaryFile {
    path: PathBuf,
    file: File,
}

impl SummaryFile {
    /// Opens it, if a file is named.
    pub fn open(path: Option<&Path>) -> Result<Option<Self>, Failure> {
        let Some(path) = path.filter(|path| !is_dash(path)) else { return Ok(None) };
        Ok(Some(Self { path: path.to_owned(), file: open_output(path, false)?.0 }))
    }

    /// Writes the numbers where they are wanted: to this file, or to standard error.
    pub fn write(file: Option<Self>, wanted: bool, numbers: &Value) -> Result<(), Failure> {
        match file {
            Some(Self { path, mut file }) => {
                let written = empty(&file).and_then(|()| writeln!(file, "{numbers:#}"));
                written.map_err(|error| cannot_write(&path, &error))
            }
            None => {
                if wanted {
                    eprintln!("{numbers}");
                }
                Ok(())
            }
        }
    }
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

/// Does it stand for a standard stream?
pub fn is_dash(path: &Path) -> bool {
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
    Ok(Output::new("standard output", Box::new(file)).sync_on_save(&again))
}

#[cfg(not(unix))]
fn stdout() -> Result<Output, Failure> {
    Ok(Output::new("standard output", Box::new(std::io::stdout())))
}
