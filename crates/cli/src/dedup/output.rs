//! Where records and numbers go.

use crate::Failure;
use crate::notes::NoteArguments;
use crate::output::{Begins, Opener, SummaryFile, is_dash};
use crate::place::{self, Place};
use clap::Args;
use lately_stream::sink::Sink;
use std::path::PathBuf;

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
        places.extend(Place::outputs(others, "standard output is for what is passed on; ")?);
        places.extend(Place::summary(self.notes.summary.as_deref()));
        Ok(places)
    }

    /// Opens all outputs. Nothing is emptied before [`Begins::begin`] or the first record, so
    /// that a run that comes to nothing leaves everything as it was. `places` are all files of the
    /// run; `goes_on` says that it goes on from a state, and so do its outputs.
    pub fn open(&self, places: &[Place], goes_on: bool) -> Result<Outputs, Failure> {
        let mut opener = Opener::new(goes_on);
        let main = opener.main(self.output.as_deref())?;
        let mut open = |path: &Option<PathBuf>| opener.maybe(path.as_deref());
        let sink = Sink::new(main)
            .duplicates(open(&self.duplicates)?)
            .late(open(&self.late)?)
            .invalid(open(&self.invalid)?)
            .marked(self.mark);
        let summary = SummaryFile::open(self.notes.summary.as_deref())?;
        // What two names lead to is sure only now that all of it is there.
        place::refuse_clashes(places)?;
        Ok(Outputs { sink, begins: opener.done(), summary })
    }

    /// Are records passed on to standard output?
    pub fn to_stdout(&self) -> bool {
        self.output.as_deref().is_none_or(is_dash)
    }

    /// Are dead letters kept?
    pub fn keeps_invalid(&self) -> bool {
        self.invalid.is_some()
    }
}

/// The open outputs of a run.
pub struct Outputs {
    /// For records.
    pub sink: Sink,
    /// For the files among them that are replaced.
    pub begins: Begins,
    /// For the numbers.
    pub summary: Option<SummaryFile>,
}
