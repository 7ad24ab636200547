//! Where records go.

use crate::Failure;
use crate::notes::NoteArguments;
use crate::output::{Opener, is_dash};
use crate::place::Place;
use clap::Args;
use lately_stream::write::sink::Sink;
use std::path::PathBuf;

#[derive(Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArguments {
    /// Write forwarded records to this file [default: standard output]. An existing file is replaced when
    /// the first input is read; if a --state is resumed, it is appended to. This also holds for the
    /// files below
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

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
            .marked(self.mark))
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
