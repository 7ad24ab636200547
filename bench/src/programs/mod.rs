//! Whole programs side by side: the same input, time, peak memory, and whether the output is right.

pub mod job;
pub mod page;
pub mod process;

use crate::workload::Summary;
use job::{Job, Program};
use process::{Finding, Measurement};
use std::error::Error;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// What a comparison needs to know.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Timed runs of each program, interleaved.
    pub runs: usize,
    /// 1: eight million lines and gigabytes; less for a quick look.
    pub scale: f64,
    /// The program `lately`.
    pub lately: PathBuf,
    /// A folder of other programs, looked through before `PATH`.
    pub tools: Option<PathBuf>,
    /// Where inputs are written, and removed again.
    pub work: PathBuf,
}

/// One program on one input.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The program.
    pub program: Program,
    /// Lines that it wrote.
    pub lines: u64,
    /// The timed runs.
    pub runs: Vec<Measurement>,
}

impl Outcome {
    /// Did it write as many lines as it should, given the input?
    pub fn is_right(&self, job: &Job, input: Summary) -> bool {
        let (least, most) = job.expected(self.program.output, input);
        (least..=most).contains(&self.lines)
    }

    /// The median of the wall times, in seconds.
    pub fn median(&self) -> f64 {
        let mut seconds: Vec<f64> = self.runs.iter().map(|run| run.seconds).collect();
        seconds.sort_by(f64::total_cmp);
        let middle = seconds.len() / 2;
        match seconds.get(middle) {
            Some(upper) if seconds.len().is_multiple_of(2) => (seconds[middle - 1] + upper) / 2.0,
            Some(exact) => *exact,
            None => f64::NAN,
        }
    }

    /// The shortest and the longest wall time.
    pub fn spread(&self) -> (f64, f64) {
        let seconds = self.runs.iter().map(|run| run.seconds);
        (seconds.clone().fold(f64::INFINITY, f64::min), seconds.fold(0.0, f64::max))
    }

    /// The highest peak of resident memory, in bytes.
    pub fn peak(&self) -> u64 {
        self.runs.iter().map(|run| run.peak).max().unwrap_or(0)
    }
}

/// All programs on one input.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The input.
    pub job: Job,
    /// What is in it.
    pub input: Summary,
    /// The programs that were there.
    pub results: Vec<Outcome>,
    /// The names of those that were not.
    pub missing: Vec<String>,
}

/// Runs all comparisons.
///
/// # Errors
/// When an input cannot be written or a program cannot be run.
pub fn compare(settings: &Settings) -> Result<Vec<Comparison>, Box<dyn Error>> {
    fs::create_dir_all(&settings.work)?;
    let finding = Finding::new(&settings.lately, settings.tools.as_deref());
    Job::all(settings.scale)
        .into_iter()
        .map(|job| {
            let path = settings.work.join(job.name);
            eprintln!("{}: writing the input", job.name);
            let outcome = (job.write)(settings.scale, File::create(&path)?)
                .map_err(Box::from)
                .and_then(|input| compare_on(job, input, &path, &finding, settings.runs));
            fs::remove_file(&path)?;
            outcome
        })
        .collect()
}

fn compare_on(
    job: Job,
    input: Summary,
    path: &Path,
    finding: &Finding,
    runs: usize,
) -> Result<Comparison, Box<dyn Error>> {
    let (there, missing): (Vec<Program>, Vec<Program>) =
        job.programs.iter().cloned().partition(|program| finding.has(program));
    let missing = missing.into_iter().map(|program| program.name.to_owned()).collect();
    warm(path)?;
    let mut results = Vec::new();
    for program in there {
        // Untimed: the output is counted, and whatever is slow the first time has been.
        let lines = finding.count_lines(&program, path)?;
        eprintln!("{}: {} writes {lines} lines", job.name, program.name);
        results.push(Outcome { program, lines, runs: Vec::new() });
    }
    for run in 0..runs {
        for result in &mut results {
            let measured = finding.measure(&result.program, path)?;
            let (name, Measurement { seconds, peak }) = (result.program.name, measured);
            eprintln!("{} {}: {name} {seconds:.3} s, {} MB", job.name, run + 1, peak / 1_000_000);
            result.runs.push(measured);
        }
    }
    Ok(Comparison { job, input, results, missing })
}

/// Brings a file into the page cache.
fn warm(path: &Path) -> io::Result<()> {
    io::copy(&mut File::open(path)?, &mut io::sink()).map(|_| ())
}
