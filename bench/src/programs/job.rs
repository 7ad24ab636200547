//! The inputs, and the programs that are run on each.

use crate::workload::Summary;
use crate::workload::events::{Events, Format};
use crate::workload::lines::Lines;
use std::fs::File;
use std::io;

/// A program and its arguments; it reads standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// How the table calls it.
    pub name: &'static str,
    /// The executable.
    pub executable: &'static str,
    /// Its arguments.
    pub arguments: &'static [&'static str],
    /// What it should write.
    pub output: Output,
}

/// How many lines a program should write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Each distinct record once.
    Distinct,
    /// As [`Output::Distinct`], but it may drop a few records: it works with false positives.
    DistinctNearly,
    /// A line for each record: it removes nothing, and is there as a yardstick.
    Records,
    /// One line.
    One,
}

/// One input.
#[derive(Clone, Debug)]
pub struct Job {
    /// The file's name.
    pub name: &'static str,
    /// What it is.
    pub about: String,
    /// Lines before the first record.
    pub header: u64,
    /// Writes it at a scale.
    pub write: fn(f64, File) -> io::Result<Summary>,
    /// The programs to run on it.
    pub programs: Vec<Program>,
}

impl Job {
    /// Lines that a program should write for this input; the least and the most.
    pub fn expected(&self, output: Output, input: Summary) -> (u64, u64) {
        let distinct = input.distinct + self.header;
        match output {
            Output::Distinct => (distinct, distinct),
            // Ten times what lately promises by default, so that chance alone never fails a run.
            Output::DistinctNearly => {
                (distinct.saturating_sub((distinct / 100_000).max(3)), distinct)
            }
            Output::Records => (input.records, input.records),
            Output::One => (1, 1),
        }
    }

    /// All inputs.
    pub fn all(scale: f64) -> Vec<Self> {
        let megabytes = scale * 1_000.0;
        vec![
            Self {
                name: "lines.txt",
                about: format!(
                    "{:.1} million lines of 25 bytes, {:.2} million distinct",
                    8.0 * scale,
                    4.4 * scale
                ),
                header: 0,
                write: lines,
                programs: line_programs(),
            },
            Self {
                name: "events.ndjson",
                about: format!("{megabytes:.0} MB of events as NDJSON, 30 % delivered twice"),
                header: 0,
                write: |scale, file| events(scale, Format::Ndjson, file),
                programs: ndjson_programs(),
            },
            Self {
                name: "events.csv",
                about: format!("{megabytes:.0} MB of events as CSV, 30 % delivered twice"),
                header: 1,
                write: |scale, file| events(scale, Format::Csv, file),
                programs: csv_programs(),
            },
        ]
    }
}

fn lines(scale: f64, file: File) -> io::Result<Summary> {
    let (records, distinct) = (8e6 * scale, 4.4e6 * scale);
    Lines { records: records as u64, distinct: (distinct as u64).max(1), seed: 1 }.write(file)
}

fn events(scale: f64, format: Format, file: File) -> io::Result<Summary> {
    Events { bytes: (1e9 * scale) as u64, ..Events::default() }.write(format, file)
}

const fn program(
    name: &'static str,
    executable: &'static str,
    arguments: &'static [&'static str],
    output: Output,
) -> Program {
    Program { name, executable, arguments, output }
}

/// The executable that [`super::Settings::lately`] names.
pub const LATELY: &str = "lately";

const WC: Program = program("wc -l (only reads)", "wc", &["-l"], Output::One);
const XUNIQ: Program = program("xuniq", "xuniq", &[], Output::Distinct);
const HUNIQ: Program = program("huniq", "huniq", &[], Output::Distinct);
const RUNIQ: Program = program("runiq", "runiq", &["-"], Output::Distinct);
const MAWK: Program = program("mawk '!seen[$0]++'", "mawk", &["!seen[$0]++"], Output::Distinct);

fn line_programs() -> Vec<Program> {
    use Output::{Distinct, DistinctNearly};
    vec![
        program("lately dedup", LATELY, &["dedup", "-q"], DistinctNearly),
        program(
            "lately dedup --threads 1",
            LATELY,
            &["dedup", "-q", "--threads", "1"],
            DistinctNearly,
        ),
        // A window that all lines are in, so that the output is the same.
        program("lately dedup --last 8M", LATELY, &["dedup", "-q", "--last", "8M"], DistinctNearly),
        program(
            "lately dedup --last 8M --structure dleft-window (the default before)",
            LATELY,
            &["dedup", "-q", "--last", "8M", "--structure", "dleft-window"],
            DistinctNearly,
        ),
        XUNIQ,
        program("xuniq --safe", "xuniq", &["--safe"], Distinct),
        HUNIQ,
        RUNIQ,
        program("runiq -f compact", "runiq", &["-f", "compact", "-"], DistinctNearly),
        MAWK,
        program("sort -u", "sort", &["-u"], Distinct),
        WC,
    ]
}

fn ndjson_programs() -> Vec<Program> {
    use Output::{DistinctNearly, Records};
    vec![
        program("lately dedup --key id", LATELY, &["dedup", "-q", "--key", "id"], DistinctNearly),
        program("lately dedup (whole line)", LATELY, &["dedup", "-q"], DistinctNearly),
        XUNIQ,
        HUNIQ,
        RUNIQ,
        MAWK,
        program("jq -r .id (only parses)", "jq", &["-r", ".id"], Records),
        WC,
    ]
}

fn csv_programs() -> Vec<Program> {
    use Output::{Distinct, DistinctNearly};
    vec![
        program("lately dedup --key id", LATELY, &["dedup", "-q", "--key", "id"], DistinctNearly),
        program("lately dedup (whole line)", LATELY, &["dedup", "-q"], DistinctNearly),
        program("mawk -F, '!seen[$2]++'", "mawk", &["-F,", "!seen[$2]++"], Distinct),
        XUNIQ,
        HUNIQ,
        RUNIQ,
        WC,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expectations_count_the_header() {
        let input = Summary { records: 10, distinct: 7, bytes: 100 };
        let jobs = Job::all(1.0);
        let expected = |job: usize, output| jobs[job].expected(output, input);
        assert_eq!(expected(0, Output::Distinct), (7, 7));
        assert_eq!(expected(2, Output::Distinct), (8, 8));
        assert_eq!(expected(2, Output::DistinctNearly), (5, 8));
        assert_eq!(expected(1, Output::Records), (10, 10));
        assert_eq!(expected(0, Output::One), (1, 1));
    }
}
