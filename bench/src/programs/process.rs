//! Running a program on a file, measured.

use super::job::{LATELY, Program};
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// What one run took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measurement {
    /// From start to end.
    pub seconds: f64,
    /// Most resident memory at any time, in bytes.
    pub peak: u64,
}

/// Knows where executables are.
#[derive(Clone, Debug)]
pub struct Finding {
    lately: PathBuf,
    folders: Vec<PathBuf>,
}

/// GNU time. It is small and starts the program itself: the peak that the system reports of a
/// program is at least the size that its starter had, so this one must not be it.
const TIME: &str = "/usr/bin/time";

impl Finding {
    /// Looks in `tools` (and its `bin`) before `PATH`.
    pub fn new(lately: &Path, tools: Option<&Path>) -> Self {
        let mut folders: Vec<PathBuf> =
            tools.into_iter().flat_map(|tools| [tools.join("bin"), tools.to_owned()]).collect();
        folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        Self { lately: lately.to_owned(), folders }
    }

    fn path_of(&self, program: &Program) -> Option<PathBuf> {
        if program.executable == LATELY {
            return Some(self.lately.clone()).filter(|path| path.is_file());
        }
        let places = self.folders.iter().map(|folder| folder.join(program.executable));
        places.into_iter().find(|path| path.is_file())
    }

    /// Is the program there?
    pub fn has(&self, program: &Program) -> bool {
        self.path_of(program).is_some()
    }

    fn locate(&self, program: &Program) -> Result<PathBuf, Box<dyn Error>> {
        self.path_of(program).ok_or_else(|| format!("{} is not there", program.executable).into())
    }

    /// Runs the program and counts the lines it writes.
    ///
    /// # Errors
    /// When it cannot be run or fails.
    pub fn count_lines(&self, program: &Program, input: &Path) -> Result<u64, Box<dyn Error>> {
        let mut command = Command::new(self.locate(program)?);
        let mut child = command
            .args(program.arguments)
            .env("LC_ALL", "C")
            .stdin(File::open(input)?)
            .stdout(Stdio::piped())
            .spawn()?;
        let lines = child.stdout.take().map_or(Ok(0), count_newlines)?;
        check(program, child.wait()?.success())?;
        Ok(lines)
    }

    /// Runs the program with its output thrown away.
    ///
    /// # Errors
    /// When it, or GNU time, cannot be run or fails.
    pub fn measure(&self, program: &Program, input: &Path) -> Result<Measurement, Box<dyn Error>> {
        let report = input.with_extension("time");
        let mut command = Command::new(TIME);
        command
            .args(["-f", "%M", "-o"])
            .arg(&report)
            .arg(self.locate(program)?)
            .args(program.arguments)
            .env("LC_ALL", "C")
            .stdin(File::open(input)?)
            .stdout(Stdio::null());
        let start = Instant::now();
        let status = command.status().map_err(|error| format!("{TIME}: {error}"))?;
        let seconds = start.elapsed().as_secs_f64();
        check(program, status.success())?;
        let kilobytes: u64 = fs::read_to_string(&report)?.trim().parse()?;
        fs::remove_file(&report)?;
        Ok(Measurement { seconds, peak: kilobytes * 1024 })
    }
}

fn check(program: &Program, success: bool) -> Result<(), Box<dyn Error>> {
    if success { Ok(()) } else { Err(format!("{} failed", program.name).into()) }
}

fn count_newlines(mut from: impl Read) -> io::Result<u64> {
    let mut buffer = vec![0; 1 << 16];
    let mut lines = 0;
    loop {
        let read = from.read(&mut buffer)?;
        if read == 0 {
            return Ok(lines);
        }
        lines += buffer[..read].iter().filter(|&&byte| byte == b'\n').count() as u64;
    }
}
