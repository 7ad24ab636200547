//! Formats: one file each, and one line in the list below.
//!
//! A format says how it is recognised, how its header is read, and what its key and time are where
//! nobody names them (`layout::Description`); what it makes of the beginning of an input cuts,
//! parses and marks the records of that input (`layout::Layout`). Most formats share a layout:
//! `table` for rows of columns, `values` for JSON.

mod columns;
mod csv;
pub(crate) mod emit;
mod epcis;
mod epcis_xml;
pub(crate) mod head;
mod impinj;
mod json;
pub(crate) mod layout;
mod lead;
mod lines;
mod logfmt;
pub(crate) mod names;
mod ndjson;
mod nmea;
pub(crate) mod profile;
mod runtimestamp;
mod sllurp;
pub(crate) mod sniff;
mod speedway;
mod table;
mod tsv;
mod values;
mod w3c;
mod zebra;
mod zeek;

pub(crate) use epcis_xml::is_epcis;
use layout::Description;
use std::fmt;
use std::str::FromStr;

macro_rules! formats {
    ($($(#[$doc:meta])* $format:ident = $name:literal in $file:ident;)*) => {
        /// The formats that can be asked for by name.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum Format {
            /// By looking; a record is a raw line unless fields are wanted.
            #[default]
            Auto,
            $($(#[$doc])* $format,)*
        }

        impl Format {
            /// Every format with the name it is asked for by.
            pub const NAMES: [(&'static str, Self); 1 + [$($name),*].len()] =
                [("auto", Self::Auto), $(($name, Self::$format)),*];

            /// What the format says of itself; `None` for [`Format::Auto`], which is none.
            pub(crate) const fn description(self) -> Option<&'static Description> {
                match self {
                    Self::Auto => None,
                    $(Self::$format => Some(&$file::FORMAT),)*
                }
            }
        }
    };
}

// From the general to the special: an input is of the last format whose signs it bears.
formats! {
    /// A record is a line, whatever is in it.
    Lines = "lines" in lines;
    /// Comma-separated values with a header line; quoted fields may hold line ends (RFC 4180).
    Csv = "csv" in csv;
    /// Tab-separated values with a header line; quotes have no meaning.
    Tsv = "tsv" in tsv;
    /// Fields separated by runs of blanks, without a header, named `1`, `2`, `3` …
    Columns = "columns" in columns;
    /// A JSON value a line.
    Ndjson = "ndjson" in ndjson;
    /// JSON values one after another, over any number of lines; an array's elements are the records.
    Json = "json" in json;
    /// Names and values in pairs, as many services write their logs: `level=info msg="a b"`.
    Logfmt = "logfmt" in logfmt;
    /// NMEA 0183 sentences, one a line, which a tag block may precede.
    Nmea = "nmea" in nmea;
    /// Zeek's TSV logs, with their `#fields` lines.
    Zeek = "zeek" in zeek;
    /// The W3C extended log format, as IIS and CloudFront write it, with its `#Fields:` lines.
    W3c = "w3c" in w3c;
    /// RFID reads of a Zebra IoT connector (JSON objects or arrays of them).
    Zebra = "zebra" in zebra;
    /// RFID reads of an Impinj IoT device interface (JSON).
    Impinj = "impinj" in impinj;
    /// RFID reads written by sllurp (CSV).
    Sllurp = "sllurp" in sllurp;
    /// RFID reads written by Impinj's Speedway Connect (CSV).
    Speedway = "speedway" in speedway;
    /// RFID reads in the CSV that begins with `RunTimestamp,Timestamp,EPC`.
    Runtimestamp = "runtimestamp" in runtimestamp;
    /// EPCIS 2.0 documents or events (JSON).
    Epcis = "epcis" in epcis;
    /// EPCIS 1.2 documents (XML).
    EpcisXml = "epcis-xml" in epcis_xml;
}

impl Format {
    /// The names of all formats, separated by commas.
    pub fn list() -> String {
        Self::NAMES.map(|(name, _)| name).join(", ")
    }

    /// Whether its columns are separated as those of CSV are, by a character that may be another one.
    pub const fn is_csv(self) -> bool {
        matches!(self, Self::Csv | Self::Sllurp | Self::Speedway | Self::Runtimestamp)
    }

    /// Whether it is one of the RFID formats, which know their own key and time.
    pub const fn is_rfid(self) -> bool {
        matches!(self.description(), Some(Description { profile: Some(_), .. }))
    }

    /// May its records have a time that nobody has named? One that is to be recognised may.
    pub const fn may_bring_times(self) -> bool {
        match self.description() {
            Some(format) => !format.time.is_empty(),
            None => true,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(_, format)| format == self).map_or("auto", |n| n.0);
        f.pad(name)
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::NAMES.iter().find(|(name, _)| *name == text).map(|n| n.1);
        known.ok_or_else(|| format!("unknown format `{text}`; known are {}", Self::list()))
    }
}
