//! How inputs are read: formats, key and time fields.

use crate::Failure;
use clap::Args;
use lately::Digester;
use lately_stream::options::{Format, Options};
use lately_stream::quantity;
use lately_stream::session::Reading;
use lately_stream::stamp::{StampParser, TimeFormat, Zone};
use std::sync::Arc;

/// The zone of times that state none, when nothing is said.
const UTC: &str = "UTC";

/// The rest of the help of `--format`.
const FORMAT: &str = "`auto` treats each line as a record if no field is named. With a field named it detects the \
    format, and with --within alone it detects only formats with times of their own, such as RFID reads \
    and Zeek logs.";

/// The help of `--time-format`.
const TIME_FORMAT: &str = "\
auto, s, ms, us, ns (since 1970), rfc3339, or a pattern such as '%d/%b/%Y:%H:%M:%S %z'.

`auto` reads RFC 3339 and its variations, digits alone (20240501100000), the dates of mail, logs and \
people (Wed, 01 May 2024 10:00:00 +0200; May  1 10:00:00; 1.5.2024 10:00; 5/1/2024 10:00:00 AM), and \
numbers since 1970, whose unit is determined by their size. Numbers before 1990 or after 2100 are \
refused unless their unit is stated, and so are dates in which day and month cannot be distinguished. \
A date without a year has the latest year in which it is not more than a day in the future. 0, -1, the \
largest numbers of 64 bits and 9999-12-31 mean \"never\" in every format, and are no times.";

#[derive(Args)]
#[command(next_help_heading = "Input")]
pub struct InputArguments {
    /// The fields that make up the key: CSV columns, JSON members or pointers (/user/id), column
    /// numbers where there is no header, `.` for the whole record [default: the whole line, or the
    /// EPC in an RFID format]. All spellings of one EPC are one key in an RFID format, and elsewhere
    /// with --key-format epc
    #[arg(long, value_name = "FIELD,..", value_delimiter = ',')]
    pub key: Vec<String>,

    /// The field with the time of the event; several, such as date,time, are joined by a blank
    /// [default: that of the format if it brings one; else records are judged by when they arrive]
    #[arg(long, value_name = "FIELD,..", value_delimiter = ',')]
    time: Vec<String>,

    /// auto (detected), s, ms, us, ns (since 1970), rfc3339, or a pattern such as
    /// '%d/%b/%Y:%H:%M:%S %z'
    #[arg(long, value_name = "FORMAT", default_value = "auto")]
    #[arg(long_help = TIME_FORMAT)]
    time_format: TimeFormat,

    /// The zone of times without one, and of its own abbreviations (CST, CEST): UTC, local, -06:00,
    /// America/Chicago. A time in the hour that a clock change repeats is taken as the earlier of the two
    #[arg(long, value_name = "ZONE", default_value = UTC)]
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

    /// The longest JSON document that may run over several lines; longer ones are taken line by line
    #[arg(long, value_name = "SIZE", value_parser = quantity::bytes, default_value = "16MiB")]
    max_document: u64,

    /// The longest record, header or quoted field; longer records are invalid. JSON documents obey
    /// --max-document instead
    #[arg(long, value_name = "SIZE", value_parser = quantity::bytes, default_value = "1MiB")]
    max_line: u64,
}

impl InputArguments {
    /// What is wanted of the records, except how keys are read. `timed` says that a time is.
    pub fn options(&self, digester: Digester, timed: bool) -> Result<Options, Failure> {
        let usage = |flag: &str, error: String| Failure::Usage(format!("{flag}: {error}"));
        let zone: Zone =
            self.time_zone.parse().map_err(|error: lately_stream::stamp::TimeOptionError| {
                usage("--time-zone", error.to_string())
            })?;
        let stamps = StampParser::new(self.time_format.clone(), zone)
            .map_err(|error| usage("--time-format", error.to_string()))?;
        let read_time =
            Arc::new(move |text: &[u8]| stamps.parse(text).map_err(|error| error.to_string()));
        let explicit = !matches!(self.format, Format::Auto);
        let mut options = Options::new(digester, read_time);
        options.format = self.format;
        options.time_wanted = timed;
        options.fields_wanted = explicit;
        options.key.clone_from(&self.key);
        options.time.clone_from(&self.time);
        options.no_header = self.no_header;
        options.merge = self.merge;
        if self.merge && !options.is_timed() {
            return Err(Failure::Usage("--merge: name the time to merge by with --time".into()));
        }
        options.max_document = usize::try_from(self.max_document).unwrap_or(usize::MAX);
        options.max_line = usize::try_from(self.max_line).unwrap_or(usize::MAX);
        Ok(options)
    }

    /// Is the field of a time named?
    pub fn is_timed(&self) -> bool {
        !self.time.is_empty()
    }

    /// How keys and times are read, for the identity of a state; `form` is how keys are read.
    pub fn reading(&self, form: &str) -> Reading {
        let mut reading = Reading::new().with("key", self.key.iter().cloned());
        let mut set = |name: &str, value: String| {
            reading = std::mem::take(&mut reading).with(name, [value]);
        };
        if self.format != Format::Auto {
            set("format", self.format.to_string());
        }
        if form != "text" {
            set("key-format", form.into());
        }
        // By event time or by arrival: times of the one mean nothing to the other.
        if !self.time.is_empty() {
            set("time", self.time.join(","));
        }
        if !matches!(self.time_format, TimeFormat::Auto) {
            set("time-format", self.time_format.to_string());
        }
        if self.time_zone != UTC {
            set("time-zone", self.time_zone.clone());
        }
        if self.no_header {
            set("no-header", "true".into());
        }
        reading
    }
}
