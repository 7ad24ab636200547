//! How inputs are read: formats, key and time fields.

use crate::Failure;
use clap::Args;
use lately::Digester;
use lately_stream::options::{Format, Options};
use lately_stream::quantity;
use lately_stream::stamp::{StampParser, TimeFormat, Zone};
use std::sync::Arc;

/// The zone of times that state none, when nothing is said.
const UTC: &str = "UTC";

#[derive(Args)]
#[command(next_help_heading = "Input")]
pub struct InputArguments {
    /// The fields that make up the key: CSV columns, JSON members or pointers (/user/id), column
    /// numbers where there is no header, `.` for the whole record [default: the whole line, or the
    /// EPC in an RFID format]. Spellings of one EPC are one key in an RFID format, and elsewhere
    /// with --key-format epc
    #[arg(long, value_name = "FIELD,..", value_delimiter = ',')]
    pub key: Vec<String>,

    /// The field with the time of the event [default: that of the RFID format; else records are
    /// judged by when they arrive]
    #[arg(long, value_name = "FIELD")]
    time: Option<String>,

    /// auto (by looking), s, ms, us, ns (since 1970), rfc3339, or a pattern such as
    /// '%d/%b/%Y:%H:%M:%S %z'
    #[arg(long, value_name = "FORMAT", default_value = "auto")]
    time_format: TimeFormat,

    /// The zone of times that state none: UTC, local, -06:00, America/Chicago. Of two readings in
    /// the hour that a clock change repeats, the earlier is taken
    #[arg(long, value_name = "ZONE", default_value = UTC)]
    time_zone: String,

    /// auto, lines, columns, csv, tsv, ndjson, json, zeek, impinj, zebra, sllurp, speedway,
    /// runtimestamp, epcis
    ///
    /// By itself, `auto` takes each line as a record; with a field named it looks, and with --within
    /// alone it looks for the RFID formats and Zeek logs, which bring their time.
    #[arg(long, value_name = "FORMAT", default_value = "auto")]
    pub format: Format,

    /// CSV and TSV inputs have no header line; fields are named 1, 2, 3, ..
    #[arg(long)]
    no_header: bool,

    /// The longest record; a longer one is a dead letter
    #[arg(long, value_name = "SIZE", value_parser = quantity::bytes, default_value = "1MiB")]
    max_line: u64,
}

impl InputArguments {
    /// What is wanted of the records, but for how keys are read. `timed` says that a time is.
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
        options.max_line = usize::try_from(self.max_line).unwrap_or(usize::MAX);
        Ok(options)
    }

    /// What decides which records have equal keys, as text; `form` is how keys are read.
    pub fn settings(&self, form: &str) -> String {
        let key = if self.key.is_empty() { "default".into() } else { self.key.join(",") };
        // By event time or by arrival: times of the one mean nothing to the other.
        let time = self.time.as_deref().unwrap_or("default");
        let mut settings =
            format!("format={} key={key} key-format={form} time={time}", self.format);
        // Only where they were asked for, so that a state that was begun before they were noted
        // still goes on.
        if !matches!(self.time_format, TimeFormat::Auto) {
            settings.push_str(&format!(" time-format={}", self.time_format));
        }
        if self.time_zone != UTC {
            settings.push_str(&format!(" time-zone={}", self.time_zone));
        }
        if self.no_header {
            settings.push_str(" no-header=true");
        }
        settings
    }
}
