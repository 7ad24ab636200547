//! How inputs are read: formats, key and time fields.

use crate::Failure;
use crate::brokers::BrokerArguments;
use crate::fields::{self, Names};
use clap::Args;
use lately::Digester;
use lately_stream::options::{Format, KeyRegex, Options};
use lately_stream::quantity;
use lately_stream::session::{DEFAULT_ZONE, InputSpec, Reading};
use lately_stream::stamp::TimeFormat;

/// The rest of the help of `--format`.
const FORMAT: &str = "`auto` treats each line as a record if no field is named, except in EPCIS documents \
    (XML). With a field named it detects the format, and with --within alone it detects only formats with \
    times of their own, such as RFID reads and Zeek logs.";

/// The help of `--key`.
const KEY: &str = "\
The fields that make up the key, separated by commas [default: the whole line, or the EPC in an RFID \
format]:

- a CSV column or a JSON member by its exact name. A name with a comma is put in double quotes \
('\"Reader, Ant\"') or the comma after a backslash
- a JSON pointer for a nested member: /user/id
- a column by its number, unless a column has that name: 3, or several: 2-4, 6- (the rest of the line)
- `.`: the whole record
- '*,-ts,-uptime': all fields but these; one that is absent does not matter

All spellings of one EPC are one key in an RFID format, and elsewhere with --key-format epc.";

/// The help of `--time-format`.
const TIME_FORMAT: &str = "\
auto, s, ms, us, ns (since 1970), rfc3339, or a pattern such as '%d/%b/%Y:%H:%M:%S %z'.

`auto` reads RFC 3339 and its variations, digits alone (20240501100000), the dates of mail, logs and \
people (Wed, 01 May 2024 10:00:00 +0200; May  1 10:00:00; 1.5.2024 10:00; 5/1/2024 10:00:00 AM), and \
numbers since 1970, whose unit is determined by their size. Numbers before 1990 or after 2100 are \
refused unless their unit is stated, and so are dates in which day and month cannot be distinguished. \
A date without a year has the latest year in which it is not more than a day in the future; a time of \
day without a date (10:00:00, 6:00 PM) is of the day on which it is nearest to the clock. 0, -1, the largest numbers of 64 bits and 9999-12-31 mean \"never\" in every format, and are no times.";

#[derive(Args)]
#[command(next_help_heading = "Input")]
pub struct InputArguments {
    /// The fields that make up the key: CSV columns, JSON members or pointers (/user/id), columns by
    /// number (3, 2-4, or 6- for the rest of the line), `.` for the whole record, or all but some
    /// ('*,-ts,-uptime') [default: the whole line, or the EPC in an RFID format]
    #[arg(long, short, value_name = "FIELD,..", value_parser = fields::names)]
    #[arg(long_help = KEY)]
    key: Vec<Names>,

    /// The key is what the groups of this regular expression match in the line, or in the field of --key:
    /// '^(\S+?)>[^:]*(:.*)$'. Without a group, all that it matches. A record that it does not match has no
    /// key. The syntax is that of ripgrep (docs.rs/regex)
    #[arg(long, value_name = "REGEX", value_parser = KeyRegex::new, allow_hyphen_values = true)]
    key_regex: Option<KeyRegex>,

    /// The field with the time of the event; several, such as date,time, are joined by a blank
    /// [default: that of the format if it brings one; else records are judged by when they arrive]
    #[arg(long, value_name = "FIELD,..", value_parser = fields::names)]
    time: Vec<Names>,

    /// auto (detected), s, ms, us, ns (since 1970), rfc3339, or a pattern such as
    /// '%d/%b/%Y:%H:%M:%S %z'
    #[arg(long, value_name = "FORMAT", default_value = "auto")]
    #[arg(long_help = TIME_FORMAT)]
    time_format: TimeFormat,

    /// The zone of times without one, and of its own abbreviations (CST, CEST): UTC, local, -06:00,
    /// America/Chicago. A time in the hour that a clock change repeats is taken as the earlier of the two
    #[arg(long, value_name = "ZONE", default_value = DEFAULT_ZONE)]
    time_zone: String,

    // The help is made of the list of formats, and of this.
    #[arg(long, value_name = "FORMAT", default_value = "auto", help = Format::list())]
    #[arg(long_help = format!("{}\n\n{FORMAT}", Format::list()))]
    pub format: Format,

    /// Merge the inputs by the times of their records, instead of reading one after the other. They are
    /// to be files, each in the order of time; a record that is earlier than one before it in its file
    /// stays behind that, and is counted. Records of one time come in the order of the files
    #[arg(long)]
    pub merge: bool,

    /// CSV and TSV inputs have no header line; fields are named 1, 2, 3, ..
    #[arg(long)]
    no_header: bool,

    /// What separates the columns of CSV: one character, such as ';', '|' or '\t' [default: a comma, or
    /// what a first line `sep=;` says]
    #[arg(long, value_name = "CHAR", value_parser = delimiter)]
    delimiter: Option<u8>,

    /// Where in a JSON document the list is whose elements are the records: a pointer, such as /Records.
    /// A document without it is one record
    #[arg(long, value_name = "POINTER", value_parser = pointer)]
    records: Option<String>,

    /// Records end with NUL instead of a line end, as those of `find -print0` do. Each is taken as a
    /// line is, whatever is in it
    #[arg(long, short = 'z')]
    null: bool,

    /// The longest JSON document that may run over several lines; longer ones are taken line by line
    #[arg(long, value_name = "SIZE", value_parser = quantity::bytes, default_value = "16MiB")]
    max_document: u64,

    /// The longest record, header or quoted field; longer records are invalid. JSON documents obey
    /// --max-document instead
    #[arg(long, value_name = "SIZE", value_parser = quantity::bytes, default_value = "1MiB")]
    max_line: u64,

    #[command(flatten)]
    pub brokers: BrokerArguments,
}

/// `--delimiter`.
fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        br"\t" => Ok(b'\t'),
        [b'"' | b'\r' | b'\n' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z'] => {
            Err("quotes, line ends, letters and digits cannot separate columns".into())
        }
        [byte] if byte.is_ascii() => Ok(*byte),
        _ => Err("must be a single ASCII character, such as ';', '|' or '\\t'".into()),
    }
}

/// `--records`.
fn pointer(text: &str) -> Result<String, String> {
    match text.strip_prefix('/') {
        Some(_) => Ok(text.into()),
        None => Err(format!("a JSON pointer begins with `/`: /{text}")),
    }
}

impl InputArguments {
    /// The fields of the key.
    pub fn key(&self) -> Vec<String> {
        fields::all(&self.key)
    }

    /// What finds the key in its field.
    pub fn key_regex(&self) -> Option<&KeyRegex> {
        self.key_regex.as_ref()
    }

    /// The same, as data.
    fn spec(&self) -> InputSpec {
        InputSpec {
            key: self.key(),
            key_regex: self.key_regex.clone(),
            time: fields::all(&self.time),
            time_format: self.time_format.clone(),
            time_zone: self.time_zone.clone(),
            format: self.format,
            merge: self.merge,
            no_header: self.no_header,
            delimiter: self.delimiter,
            records: self.records.clone(),
            null: self.null,
            max_document: self.max_document,
            max_line: self.max_line,
        }
    }

    /// What is wanted of the records, except how keys are read. `timed` says that a time is.
    pub fn options(&self, digester: Digester, timed: bool) -> Result<Options, Failure> {
        self.spec().options(digester, timed).map_err(|error| Failure::Usage(format!("--{error}")))
    }

    /// Is the field of a time named?
    pub fn is_timed(&self) -> bool {
        !self.time.is_empty()
    }

    /// May records bring times: by a field that is named or, where the window is one of time (`within`), by
    /// their format?
    pub fn may_bring_times(&self, within: bool) -> bool {
        self.spec().may_bring_times(within)
    }

    /// How keys and times are read, for the identity of a state; `form` is how keys are read.
    pub fn reading(&self, form: &str) -> Reading {
        self.spec().reading(form)
    }
}
