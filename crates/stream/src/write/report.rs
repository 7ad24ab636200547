//! What a run has to report besides its output: the records by class, and what went wrong.

use crate::judge::class::Class;
use crate::record::{Batch, Kind};
use crate::source::SourceError;
use lately::Overload;

/// Faults whose wording is kept for the user.
const EXAMPLES: usize = 3;

/// Records by class, and bytes. Each record is counted in exactly one class, so they add up to
/// [`Counts::read`], except where an output failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    records: [u64; Class::FINAL.len()],
    /// Of the fresh: seen within the window, but with another value of the change field.
    pub changed: u64,
    /// Records that were judged, but which an output that failed may not have taken: they are in no
    /// class.
    pub unwritten: u64,
    /// Bytes read, decompressed.
    pub bytes_in: u64,
    /// Bytes forwarded.
    pub bytes_out: u64,
}

impl Counts {
    /// Records judged: the sum of the classes, and [`Counts::unwritten`].
    pub fn read(&self) -> u64 {
        self.records.iter().sum::<u64>() + self.unwritten
    }

    /// Records of this class.
    pub fn of(&self, class: Class) -> u64 {
        let at = Class::FINAL.iter().position(|other| *other == class);
        at.map_or(0, |at| self.records[at])
    }

    /// Counts records of a class.
    pub fn add(&mut self, class: Class, records: u64) {
        if let Some(at) = Class::FINAL.iter().position(|other| *other == class) {
            self.records[at] += records;
        }
    }

    /// Keeps those records that were certainly written; `more` were judged and not counted yet.
    pub(crate) fn keep(&mut self, certain: &Self, more: u64) {
        self.unwritten = (self.read() + more).saturating_sub(certain.read());
        self.records = certain.records;
    }

    /// The records of one batch.
    pub(crate) fn of_all(classes: &[Class]) -> Self {
        let mut counts = Self::default();
        counts.add_all(classes);
        counts
    }

    /// Counts the records of a batch. What is held is counted when it is decided.
    pub(crate) fn add_all(&mut self, classes: &[Class]) {
        let mut left = classes.len();
        for (class, count) in Class::FINAL.iter().zip(&mut self.records) {
            // Nearly all batches have but the first classes.
            if left == 0 {
                return;
            }
            let of_class = classes.iter().filter(|other| *other == class).count();
            *count += of_class as u64;
            left -= of_class;
        }
    }
}

/// What a run has to report besides its output.
#[derive(Debug, Default)]
pub struct Report {
    /// The records by class.
    pub counts: Counts,
    /// The first few dead letters: input, line and reason.
    pub invalid: Vec<String>,
    /// The first few records without a key.
    pub missing: Vec<String>,
    /// The first few records without a readable time that were judged all the same.
    pub untimed: Vec<String>,
    /// Where the first late record was: input and line.
    pub late: Option<String>,
    /// Where the first record was that came from too far in the future.
    pub skewed: Option<String>,
    /// What the filter gave up so far.
    pub overload: Overload,
    /// Inputs that could not be read, or not to their end.
    pub inputs: Vec<SourceError>,
    /// What there is to say of inputs that were read.
    pub notes: Vec<String>,
    /// Records with a value in a field of `--pass-on-change`.
    pub with_change: u64,
    /// Numbers in the fields of `--pass-on-change` that have a dead band.
    pub with_band: u64,
    /// Records with a number, or a time, in the field of `--best`.
    pub with_rank: u64,
    /// Records that were forwarded before their window closed, for lack of room, where copies are counted.
    pub counted_early: u64,
    /// Copies that are in no count, as their record was forwarded before.
    pub uncounted: u64,
    /// Failures to save the state: how many, and the last.
    pub state_errors: (u64, Option<String>),
    /// Under `--pass-on-change`: keys whose last value was pushed out for lack of room, so that a
    /// duplicate of theirs may have been forwarded as changed.
    pub change_evicted: u64,
    /// The reader of the output went away.
    pub closed: bool,
    /// The last attempt to save the state failed.
    pub save_failed: bool,
    /// The state file, if there is one, holds all that was judged.
    pub saved: Option<bool>,
}

impl Report {
    /// Counts a batch, and keeps the wording of its first faults.
    pub(crate) fn note(&mut self, batch: &Batch, classes: &[Class], name: &str, first_line: u64) {
        let place = |index: usize| {
            let line = batch.records.get(index).map_or(0, |record| record.line);
            batch.origin(index).unwrap_or((name, first_line + u64::from(line)))
        };
        self.counts.bytes_in += batch.size();
        self.counts.add_all(classes);
        let firsts = [(Class::Late, &mut self.late), (Class::Skewed, &mut self.skewed)];
        for (class, first) in firsts {
            if self.counts.of(class) > 0 && first.is_none() {
                let at = classes.iter().position(|&other| other == class);
                let (name, line) = place(at.unwrap_or(0));
                *first = Some(format!("{name}:{line}"));
            }
        }
        let keyed = batch.records.iter().zip(&batch.extras);
        for (_, extra) in keyed.filter(|(record, _)| record.kind == Kind::Keyed) {
            self.with_change += u64::from(extra.change != 0);
            self.with_rank += u64::from(extra.rank.is_some());
        }
        self.with_band += batch.bands.iter().filter(|number| !number.is_nan()).count() as u64;
        for (index, fault) in &batch.faults {
            let Some(record) = batch.records.get(*index as usize) else { continue };
            let examples = match classes.get(*index as usize) {
                Some(Class::Invalid) => &mut self.invalid,
                _ if record.kind == Kind::Untimed => &mut self.untimed,
                _ => &mut self.missing,
            };
            if examples.len() < EXAMPLES {
                let (name, line) = place(*index as usize);
                examples.push(format!("{name}:{line}: {fault}"));
            }
        }
    }
}
