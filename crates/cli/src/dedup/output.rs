//! Where records go.

use crate::Failure;
use crate::brokers::is_output;
use crate::notes::NoteArguments;
use crate::output::{Opener, is_dash};
use crate::place::Place;
use clap::Args;
use lately_stream::quantity;
use lately_stream::write::sink::Sink;
use lately_stream::write::sort::Sorter;
use std::path::PathBuf;

#[derive(Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArguments {
    /// Write forwarded records to this file [default: standard output]. An existing file is replaced when
    /// the first input is read. With --state it is appended to instead, whether or not there is a state
    /// already; if it ends in mid-line, as after a crash, that line is ended first. This also holds for
    /// the files below
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Replace existing output files although there is a --state
    #[arg(long)]
    overwrite: bool,

    /// Write duplicates to this file
    #[arg(long, value_name = "FILE")]
    duplicates: Option<PathBuf>,

    /// Write late records to this file instead of forwarding them
    #[arg(long, value_name = "FILE")]
    late: Option<PathBuf>,

    /// Write invalid records to this file: input, line, reason and the record, separated by tabs
    #[arg(long, value_name = "FILE")]
    invalid: Option<PathBuf>,

    /// Forward duplicates as well, and add the class to every record, as a column or a JSON member
    /// named `lately`. Invalid records are not forwarded
    #[arg(long)]
    mark: bool,

    /// Forward records in the order of their times: hold each until the clock is DURATION past it. The
    /// order is exact if no record is later than that; use at least --lateness. Not with --state, --best
    /// or --clock-by
    #[arg(long, value_name = "DURATION", value_parser = quantity::duration, conflicts_with_all = ["best", "state", "clock_by"])]
    sort_within: Option<u64>,

    /// The most memory of records that wait to be sorted; a run that needs more ends with an error
    #[arg(long, value_name = "SIZE", value_parser = quantity::bytes, default_value = "256MiB", requires = "sort_within")]
    sort_memory: u64,

    #[command(flatten)]
    pub notes: NoteArguments,
}

impl OutputArguments {
    /// Every file that is written to, with the flag that names it.
    pub fn places(&self) -> Result<Vec<Place>, Failure> {
        let mut places: Vec<Place> = Place::main(self.output.as_deref()).into_iter().collect();
        let others = [
            ("--duplicates", &self.duplicates),
            ("--late", &self.late),
            ("--invalid", &self.invalid),
        ];
        places.extend(Place::outputs(others, "standard output is for forwarded records; ")?);
        Ok(places)
    }

    /// Opens all outputs. Nothing is emptied before the first record, so that a run that comes to
    /// nothing leaves everything as it was.
    pub fn sink(&self, opener: &mut Opener) -> Result<Sink, Failure> {
        let main = opener.main(self.output.as_deref())?;
        let mut open = |path: &Option<PathBuf>| opener.maybe(path.as_deref());
        Ok(Sink::new(main)
            .dropped(open(&self.duplicates)?)
            .late(open(&self.late)?)
            .invalid(open(&self.invalid)?)
            .sorted(self.sorter())
            .marked(self.mark))
    }

    /// What was asked for that records in columns do not go with, and why.
    #[cfg(feature = "parquet")]
    pub fn refuses_columns(&self) -> Option<(&'static str, &'static str)> {
        let lines = "it is for records that are lines";
        let refused = [
            (self.to_stdout(), "--output", "name a file to write the rows to (-o FILE)"),
            (self.invalid.is_some(), "--invalid", lines),
            (self.mark, "--mark", lines),
            (self.sort_within.is_some(), "--sort-within", "its rows are forwarded as they come"),
        ];
        let refused = refused.into_iter().find(|(is_asked, ..)| *is_asked);
        refused.map(|(_, flag, why)| (flag, why))
    }

    /// Are existing files replaced in any case?
    pub fn overwrites(&self) -> bool {
        self.overwrite
    }

    fn sorter(&self) -> Option<Sorter> {
        let limit = usize::try_from(self.sort_memory).unwrap_or(usize::MAX);
        self.sort_within.map(|wait| Sorter::new(wait, limit))
    }

    /// Do records wait for their turn?
    pub fn sorts(&self) -> bool {
        self.sort_within.is_some()
    }

    /// Records that `wait` do so without what surrounded their messages, of which topics could be made.
    pub fn check_topics(&self, wait: bool) -> Result<(), Failure> {
        let outputs = [&self.output, &self.duplicates, &self.late, &self.invalid];
        let is_made = |path: &&PathBuf| is_output(path) && path.to_string_lossy().contains('{');
        match outputs.into_iter().flatten().find(is_made).filter(|_| wait) {
            Some(path) => Err(Failure::Usage(format!(
                "{}: records that wait (--best, --count, --duplicates-only, --unique-only, --sort-within) go to one topic, without fields in its name",
                path.display()
            ))),
            None => Ok(()),
        }
    }

    /// Are records forwarded to standard output?
    pub fn to_stdout(&self) -> bool {
        self.output.as_deref().is_none_or(is_dash)
    }

    /// Are dead letters kept?
    pub fn keeps_invalid(&self) -> bool {
        self.invalid.is_some()
    }
}
