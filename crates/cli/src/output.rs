//! Opens outputs: files are appended to, or emptied when there is something to replace them with.

use crate::Failure;
use crate::brokers::{self, Brokers};
use crate::signals::Writing;
#[cfg(feature = "parquet")]
use lately_stream::columnar::ColumnFormat;
use lately_stream::write::output::Output;
use serde_json::Value;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The most bytes that are handed to a pipe at once: while it takes them it is not stuck.
const PIECE: usize = 64 * 1024;

/// Opens the outputs of a run.
pub struct Opener {
    /// What is there stays: the run remembers records across restarts, and that an output holds them
    /// must not depend on whether its state is there.
    appends: bool,
    writing: Writing,
    brokers: Brokers,
    replaced: Vec<(PathBuf, Replaced)>,
    /// Records are in columns, and outputs are of this format unless their names say otherwise.
    #[cfg(feature = "parquet")]
    columns: Option<ColumnFormat>,
}

impl Opener {
    /// For a run that appends to its outputs, or one that replaces them.
    pub fn new(appends: bool, writing: Writing, brokers: Brokers) -> Self {
        Self {
            appends,
            writing,
            brokers,
            replaced: Vec::new(),
            #[cfg(feature = "parquet")]
            columns: None,
        }
    }

    /// For records in columns.
    #[cfg(feature = "parquet")]
    pub fn of_columns(self, format: ColumnFormat) -> Self {
        Self { columns: Some(format), ..self }
    }

    /// What reaches brokers.
    pub fn brokers(&self) -> &Brokers {
        &self.brokers
    }

    /// A file, or messages to a broker.
    fn file(&mut self, path: &Path) -> Result<Output, Failure> {
        if brokers::is_output(path) {
            return self.brokers.output(path);
        }
        let appends = self.appends;
        let opened = self.writing.guard(|| open_output(path, appends))?;
        let whole = Replaced {
            file: Arc::new(opened.file),
            begun: Arc::new(AtomicBool::new(appends)),
            writing: self.writing.clone(),
        };
        let output = Output::new(path.display().to_string(), Box::new(whole.clone()))
            .sync_on_save(&whole.file)
            .made_in(opened.made_in)
            .ends_in_mid_line(appends && ends_in_mid_line(path));
        self.replaced.push((path.to_owned(), whole));
        #[cfg(feature = "parquet")]
        let output = output.of_columns(
            self.columns.map(|usual| ColumnFormat::of_extension(path).unwrap_or(usual)),
        );
        Ok(output.has_header(appends && !opened.is_empty))
    }

    /// A file, if one is named.
    pub fn maybe(&mut self, path: Option<&Path>) -> Result<Option<Output>, Failure> {
        path.map(|path| self.file(path)).transpose()
    }

    /// Where records are forwarded to: a file, or standard output.
    pub fn main(&mut self, path: Option<&Path>) -> Result<Output, Failure> {
        match path.filter(|path| !is_dash(path)) {
            Some(path) => self.file(path),
            None => stdout(&self.writing),
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
        Ok(Some(Self { path: path.to_owned(), file: open_output(path, false)?.file }))
    }

    /// Writes the numbers: to this file, or to standard error.
    pub fn write(file: Option<Self>, numbers: &Value) -> Result<(), Failure> {
        let Some(Self { path, mut file }) = file else {
            eprintln!("{numbers}");
            return Ok(());
        };
        let written = empty(&file).and_then(|()| writeln!(file, "{numbers:#}"));
        written.map_err(|error| cannot_write(&path, &error))
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
    writing: Writing,
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
        write_piece(&self.file, bytes, &self.writing)
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

/// An output as it is.
struct Opened {
    file: File,
    is_empty: bool,
    /// The folder that it was made in, if it was not there.
    made_in: Option<PathBuf>,
}

/// Every write goes to the end of the file, wherever that is by then: it may be cut off meanwhile, as by
/// a rotation of logs.
fn open_output(path: &Path, append: bool) -> Result<Opened, Failure> {
    let is_new = std::fs::metadata(path).is_err();
    let mut options = File::options();
    // Elsewhere a file that is opened to append cannot be emptied.
    options.write(true).append(append || cfg!(unix)).create(true).truncate(false);
    let opened = options.open(path).and_then(|file| {
        let metadata = file.metadata()?;
        let made_in = (is_new && metadata.is_file()).then(|| folder_of(path));
        Ok(Opened { is_empty: metadata.len() == 0, file, made_in })
    });
    opened.map_err(|error| cannot_write(path, &error))
}

fn folder_of(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new(".")).to_owned()
}

/// Does the file end without a line end: with a last line that never had one, or with what a crash left
/// of a record? One that may not be read is taken for one that does not.
fn ends_in_mid_line(path: &Path) -> bool {
    let last = || -> io::Result<u8> {
        let mut last = [b'\n'];
        if std::fs::metadata(path)?.is_file() {
            let mut file = File::open(path)?;
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
        }
        Ok(last[0])
    };
    // Records of `--null` end with NUL.
    last().is_ok_and(|last| !matches!(last, b'\n' | 0))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Trouble(format!("cannot write {}: {error}", path.display()))
}

/// Standard output without the line buffer of the standard library: batches are large already.
#[cfg(unix)]
fn stdout(writing: &Writing) -> Result<Output, Failure> {
    use std::os::fd::AsFd;
    let file = File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
    let again = file.try_clone()?;
    let watched = Watched { file, writing: writing.clone() };
    Ok(Output::new("standard output", Box::new(watched)).sync_on_save(&again))
}

#[cfg(not(unix))]
fn stdout(_: &Writing) -> Result<Output, Failure> {
    Ok(Output::new("standard output", Box::new(std::io::stdout())))
}

/// An output whose reader may take its time.
#[cfg(unix)]
struct Watched {
    file: File,
    writing: Writing,
}

#[cfg(unix)]
impl Write for Watched {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        write_piece(&self.file, bytes, &self.writing)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn write_piece(mut file: &File, bytes: &[u8], writing: &Writing) -> io::Result<usize> {
    let piece = &bytes[..bytes.len().min(PIECE)];
    writing.guard(|| file.write(piece))
}
