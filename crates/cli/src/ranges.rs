//! Intervals of keys, as arguments and as files of them.

use crate::Failure;
use crate::input::InputArguments;
use clap::Args;
use lately::Digester;
use lately_stream::number::{NumberFormat, NumberReader};
use lately_stream::options::{Format, KeyRegex};
use lately_stream::read::{Looked, Source};
use std::cell::OnceCell;
use std::fs;
use std::io::{self, Read};
use std::ops::RangeInclusive;
use std::rc::Rc;

/// How the key becomes a number.
#[derive(Args, Clone)]
#[command(next_help_heading = "Input")]
pub struct NumberArguments {
    /// How the key, which must be a single field, is read: number (0 to 2^128 - 1), signed, decimal
    /// (up to nine digits after the point), time, epc (a tag in any spelling, or a urn:epc:id:), ip
    /// (IPv4 and IPv6 in one order) [default: epc in an RFID format or if the field is called epc,
    /// else number]
    #[arg(long, value_name = "FORMAT")]
    key_format: Option<NumberFormat>,

    /// The format of standard input, once its beginning was read.
    #[arg(skip)]
    found: Rc<OnceCell<Option<Format>>>,
}

impl NumberArguments {
    /// Reads the beginning of standard input, if that is the first of `files` and nothing else tells how
    /// keys are to be read.
    pub fn look(
        &self,
        input: &InputArguments,
        files: &[String],
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Looked>, Failure> {
        let is_stdin = files.first().is_none_or(|name| name == Source::STDIN);
        let is_told = self.key_format.is_some() || !input.key().is_empty();
        if !is_stdin || is_told || input.format != Format::Auto {
            return Ok(None);
        }
        let looked = Looked::at_stdin(&input.options(Digester::new(0), true)?, stop)?;
        let _ = self.found.set(looked.format());
        Ok(Some(looked))
    }

    /// Was the format of keys told by that of the input, which then has to be found again when it is read?
    pub fn is_found(&self, input: &InputArguments, format: NumberFormat) -> bool {
        self.key_format.is_none() && input.key().is_empty() && format == NumberFormat::Epc
    }

    /// The format of keys, of one field. If nothing is said of it, the beginning of the first of `files`
    /// tells.
    pub fn format(
        &self,
        input: &InputArguments,
        files: &[String],
    ) -> Result<NumberFormat, Failure> {
        let key = input.key();
        if let [_, second, ..] = &*key {
            return Err(Failure::Usage(format!(
                "--key: intervals are of one field, and `{second}` is a second one"
            )));
        }
        if let Some(groups) = input.key_regex().map(KeyRegex::groups).filter(|groups| *groups > 1) {
            return Err(Failure::Usage(format!(
                "--key-regex: a key that is a number is one group, and there are {groups}; (?:...) groups without being one"
            )));
        }
        let found = || self.found.get().copied().flatten().is_some_and(Format::is_rfid);
        let is_rfid = || input.format.is_rfid() || found() || is_rfid(input, files);
        let is_epc = self.key_format.is_none() && key.is_empty() && is_rfid()
            || key.iter().any(|key| key.eq_ignore_ascii_case("epc"));
        let usual = if is_epc { NumberFormat::Epc } else { NumberFormat::Number };
        Ok(self.key_format.unwrap_or(usual))
    }
}

/// Whether the first input is found to be of an RFID format.
fn is_rfid(input: &InputArguments, files: &[String]) -> bool {
    let Ok(options) = input.options(Digester::new(0), true) else { return false };
    let is_open = input.format == Format::Auto;
    is_open && Source::new(files.to_vec(), options).look().is_some_and(Format::is_rfid)
}

/// One line of a file of intervals, or one argument.
pub struct Question {
    /// As it was written.
    pub text: String,
    /// What it stands for.
    pub intervals: Vec<RangeInclusive<u128>>,
}

/// The intervals in a file (`-`: standard input), one per line: `A..B`, a key or a prefix. Blank lines
/// and lines that begin with `#` are skipped.
pub fn read(path: &str, reader: &NumberReader) -> Result<Vec<Question>, Failure> {
    let named = |error: io::Error| Failure::Trouble(format!("--ranges {path}: {error}"));
    let bytes = match path {
        "-" => {
            let mut bytes = Vec::new();
            io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
        }
        path => fs::read(path),
    };
    let bytes = bytes.map_err(named)?;
    let text = String::from_utf8_lossy(bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes));
    let mut questions = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let intervals = reader
            .intervals(line)
            .map_err(|error| Failure::Usage(format!("{path}:{}: {error}", number + 1)))?;
        questions.push(Question { text: line.into(), intervals });
    }
    if questions.is_empty() {
        return Err(Failure::Usage(format!(
            "{path} has no interval in it; write one per line: A..B, a key, or a prefix"
        )));
    }
    Ok(questions)
}
