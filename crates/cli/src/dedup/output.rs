//! Where records and numbers go.

use crate::Failure;
use clap::Args;
use lately_stream::sink::{Output, Sink};
use serde_json::Value;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArguments {
    /// Where records are passed on to [default: standard output]. A file that is there is replaced:
    /// to go on from a --state, append with `>>` instead
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
    /// `lately`
    #[arg(long)]
    mark: bool,

    /// Write the numbers of the run as JSON to this file; `-`: one line on standard error instead
    /// of the summary for people
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
    /// All outputs, opened.
    pub fn sink(&self, inputs: &[String]) -> Result<Sink, Failure> {
        self.refuse_to_overwrite(inputs)?;
        let open = |path: &Option<PathBuf>| path.as_deref().map(create).transpose();
        let main = match &self.output {
            Some(path) => create(path)?,
            None => stdout()?,
        };
        Ok(Sink::new(main)
            .duplicates(open(&self.duplicates)?)
            .late(open(&self.late)?)
            .invalid(open(&self.invalid)?)
            .marked(self.mark))
    }

    /// Opening an output empties it, so it must be neither an input nor another output.
    fn refuse_to_overwrite(&self, inputs: &[String]) -> Result<(), Failure> {
        let inputs = inputs.iter().filter(|name| *name != "-").map(Path::new);
        let mut taken: Vec<_> = inputs.map(|path| (path, "is also an input")).collect();
        let outputs = [&self.output, &self.duplicates, &self.late, &self.invalid, &self.summary];
        for path in outputs.into_iter().flatten().filter(|path| *path != Path::new("-")) {
            if let Some((_, why)) = taken.iter().find(|(other, _)| is_same(path, other)) {
                return Err(Failure::Usage(format!("the output {} {why}", path.display())));
            }
            taken.push((path, "is named twice"));
        }
        Ok(())
    }

    /// Are records passed on to standard output?
    pub fn to_stdout(&self) -> bool {
        self.output.is_none()
    }

    /// Are dead letters kept?
    pub fn keeps_invalid(&self) -> bool {
        self.invalid.is_some()
    }

    /// Is the summary for people wanted?
    pub fn for_people(&self) -> bool {
        !self.quiet && self.summary.as_deref() != Some(Path::new("-"))
    }

    /// Writes the numbers where they are wanted.
    pub fn write_summary(&self, numbers: &Value) -> Result<(), Failure> {
        match &self.summary {
            None => Ok(()),
            Some(path) if path == Path::new("-") => {
                eprintln!("{numbers}");
                Ok(())
            }
            Some(path) => {
                let written = File::create(path).and_then(|mut file| writeln!(file, "{numbers:#}"));
                written.map_err(|error| cannot_write(path, &error))
            }
        }
    }
}

/// Do both names lead to one regular file? (Two outputs may well go to one terminal.)
fn is_same(a: &Path, b: &Path) -> bool {
    if a == b && !a.exists() {
        return true;
    }
    let whole = |path: &Path| path.canonicalize().ok().filter(|path| path.is_file());
    whole(a).is_some_and(|a| whole(b) == Some(a))
}

fn create(path: &Path) -> Result<Output, Failure> {
    let file = File::create(path).map_err(|error| cannot_write(path, &error))?;
    Ok(Output::to_file(path.display().to_string(), file))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Trouble(format!("cannot write {}: {error}", path.display()))
}

/// Standard output without the line buffer of the standard library: batches are large already.
#[cfg(unix)]
fn stdout() -> Result<Output, Failure> {
    use std::os::fd::AsFd;
    let file = File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
    Ok(Output::to_file("standard output", file))
}

#[cfg(not(unix))]
fn stdout() -> Result<Output, Failure> {
    Ok(Output::new("standard output", Box::new(std::io::stdout())))
}
