//! Event times, as streams write them, to nanoseconds since 1970.
//!
//! The clock of a stream needs one unit. What arrives is epochs of four sizes, RFC 3339 and its
//! usual deviants, and the formats of old log files.

mod civil;
mod epoch;
#[cfg(test)]
#[expect(non_snake_case, reason = "named after the acceptance cases")]
mod tests;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::strtime::BrokenDownTime;
use jiff::tz::{Offset, TimeZone};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// How the time field is written.
///
/// # Example
/// ```
/// use lately_stream::stamp::TimeFormat;
/// assert_eq!("ms".parse(), Ok(TimeFormat::Millis));
/// assert_eq!("%d.%m.%Y %H:%M".parse(), Ok(TimeFormat::Strftime("%d.%m.%Y %H:%M".into())));
/// assert!("minutes".parse::<TimeFormat>().is_err());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TimeFormat {
    /// A number is an epoch whose unit is told by its size, all else is as [`TimeFormat::Rfc3339`].
    ///
    /// The unit by the part before the decimal point, which makes each unit good for the years
    /// 1970 to 2286, but for the first 116 days:
    ///
    /// | integer part | unit | first | last |
    /// |---|---|---|---|
    /// | below 10^10 (up to 10 digits) | s | 1970-01-01 | 2286-11-20 |
    /// | below 10^13 (11 to 13) | ms | 1970-04-26 | 2286-11-20 |
    /// | below 10^16 (14 to 16) | µs | 1970-04-26 | 2286-11-20 |
    /// | from 10^16 (17 to 20) | ns | 1970-04-26 | 2554-07-21 |
    ///
    /// So small numbers (0, 5, 10) are seconds. A simulation that counts milliseconds from 0 must
    /// state its unit.
    #[default]
    Auto,
    /// Seconds since 1970, with any fraction.
    Seconds,
    /// Milliseconds since 1970, with any fraction.
    Millis,
    /// Microseconds since 1970, with any fraction.
    Micros,
    /// Nanoseconds since 1970.
    Nanos,
    /// RFC 3339 and what is commonly written in its place.
    ///
    /// `T`, `t` or spaces before the time; `-`, `/` or nothing in the date, `:` or nothing in the
    /// time; seconds or the whole time may be missing; a fraction after `.` or `,`; then `Z`,
    /// `UTC`, `GMT`, `+HH`, `+HHMM`, `+HH:MM`, a zone in brackets (an offset before it wins), or
    /// nothing.
    Rfc3339,
    /// A format of strftime, as the `jiff` crate documents it; `%.f` is an optional fraction.
    Strftime(String),
}

impl FromStr for TimeFormat {
    type Err = TimeOptionError;

    fn from_str(text: &str) -> Result<Self, TimeOptionError> {
        Ok(match text {
            "auto" => TimeFormat::Auto,
            "s" => TimeFormat::Seconds,
            "ms" => TimeFormat::Millis,
            "us" | "µs" | "μs" => TimeFormat::Micros,
            "ns" => TimeFormat::Nanos,
            "rfc3339" => TimeFormat::Rfc3339,
            _ if text.contains('%') => {
                check_strftime(text)?;
                TimeFormat::Strftime(text.into())
            }
            _ => {
                return Err(TimeOptionError {
                    value: text.into(),
                    reason: "expected auto, s, ms, us, ns, rfc3339, or a format with %, for \
                             example \"%d/%b/%Y:%H:%M:%S %z\""
                        .into(),
                });
            }
        })
    }
}

impl fmt::Display for TimeFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TimeFormat::Auto => "auto",
            TimeFormat::Seconds => "s",
            TimeFormat::Millis => "ms",
            TimeFormat::Micros => "us",
            TimeFormat::Nanos => "ns",
            TimeFormat::Rfc3339 => "rfc3339",
            TimeFormat::Strftime(format) => format,
        })
    }
}

/// Reads the text of a time field: nanoseconds since 1970, or what is wrong with it.
pub type ReadTime = Arc<dyn Fn(&[u8]) -> Result<u64, String> + Send + Sync>;

/// Reads times with `parser`.
pub fn read_time(parser: StampParser) -> ReadTime {
    Arc::new(move |text| parser.parse(text).map_err(|error| error.to_string()))
}

/// The zone of times that are written without one. Its default is UTC.
///
/// # Example
/// ```
/// use lately_stream::stamp::Zone;
/// for zone in ["UTC", "local", "America/Chicago", "-06:00"] {
///     assert!(zone.parse::<Zone>().is_ok());
/// }
/// assert!("Chicago".parse::<Zone>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone(TimeZone);

impl Default for Zone {
    fn default() -> Self {
        Self(TimeZone::UTC)
    }
}

impl FromStr for Zone {
    type Err = TimeOptionError;

    /// `UTC`, `local`, an offset such as `-06:00`, or a name of the IANA database: that of the
    /// system, or the built-in one where the system has none.
    fn from_str(text: &str) -> Result<Self, TimeOptionError> {
        let fault = |reason: String| TimeOptionError { value: text.into(), reason };
        if let Some(seconds) = civil::offset(text.as_bytes()) {
            let offset = Offset::from_seconds(seconds).map_err(|e| fault(e.to_string()))?;
            return Ok(Self(offset.to_time_zone()));
        }
        if text == "local" {
            return TimeZone::try_system().map(Self).map_err(|e| {
                fault(format!(
                    "the zone of this system is unknown ({e}); name one, such as Europe/Berlin"
                ))
            });
        }
        TimeZone::get(text).map(Self).map_err(|_| {
            fault(
                "expected UTC, local, an offset such as -06:00, or a name such as America/Chicago"
                    .into(),
            )
        })
    }
}

/// A time format or a zone that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeOptionError {
    /// What was given.
    pub value: String,
    /// What is wrong with it and what is expected.
    pub reason: String,
}

impl fmt::Display for TimeOptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.value, self.reason)
    }
}

impl std::error::Error for TimeOptionError {}

/// Why a time cannot be read. The text is cut to its first characters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StampError {
    /// Nothing there.
    Empty,
    /// Not written as expected.
    Unreadable {
        /// What was there.
        text: String,
        /// What is wrong or expected.
        reason: String,
    },
    /// Before 1970, where the clock begins.
    Before1970 {
        /// What was there.
        text: String,
    },
    /// After 2554-07-21, where 64 bits of nanoseconds end.
    TooLate {
        /// What was there.
        text: String,
    },
}

impl fmt::Display for StampError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StampError::Empty => f.write_str("the time is empty"),
            StampError::Unreadable { text, reason } => {
                write!(f, "cannot read the time {text:?}: {reason}")
            }
            StampError::Before1970 { text } => {
                write!(f, "the time {text:?} is before 1970, where the clock begins")
            }
            StampError::TooLate { text } => {
                write!(f, "the time {text:?} is after the year 2554; is its unit right?")
            }
        }
    }
}

impl std::error::Error for StampError {}

/// What is wrong, before the text is put beside it.
enum Trouble {
    NoDate,
    Unreadable(&'static str),
    Unformatted(jiff::Error),
    Before1970,
    TooLate,
}

/// Reads the times of one stream.
///
/// *Guarantee:* the instant to the nanosecond, by integer arithmetic; finer digits are cut off.
/// Space, quotes and the brackets of log files around the time are dropped. Any bytes give a time
/// or an error.
///
/// - A time without offset that happened twice (the clock was set back) is the earlier of the two.
/// - One that never happened (the clock was set forward) is moved forward by the gap: 02:30 → 03:30.
/// - A leap second, 23:59:60, is the second before it: 23:59:59, fraction kept.
/// - Without a time, the date is its midnight.
///
/// *Cost:* epochs and RFC 3339 do not allocate; a time without offset costs a look into the zone.
///
/// # Example
/// ```
/// use lately_stream::stamp::{StampParser, TimeFormat};
/// let parser = StampParser::new(TimeFormat::Auto, "-06:00".parse()?)?;
/// assert_eq!(parser.parse(b"1755033487.197361")?, 1_755_033_487_197_361_000);
/// assert_eq!(parser.parse(b"2020-11-01 01:06")?, 1_604_214_360_000_000_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// *Reference:* RFC 3339 (2002); RFC 9557 (2024) for zones in brackets.
#[derive(Clone, Debug)]
pub struct StampParser {
    format: TimeFormat,
    zone: Zone,
}

/// A moment in nanoseconds since 1970 as RFC 3339, in UTC.
pub fn display_time(nanos: u64) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(nanos))
        .map_or_else(|_| format!("{nanos} ns"), |moment| moment.to_string())
}

impl StampParser {
    /// A parser for this format; `zone` is for times that state no offset.
    ///
    /// *Errors:* a strftime format that is not one, or that yields no date.
    pub fn new(format: TimeFormat, zone: Zone) -> Result<Self, TimeOptionError> {
        if let TimeFormat::Strftime(format) = &format {
            check_strftime(format)?;
        }
        Ok(Self { format, zone })
    }

    /// Nanoseconds since 1970.
    ///
    /// *Errors:* [`StampError`], with the text and what was expected.
    pub fn parse(&self, text: &[u8]) -> Result<u64, StampError> {
        let bare = strip(text, &self.format);
        if bare.is_empty() {
            return Err(StampError::Empty);
        }
        let unit = match &self.format {
            TimeFormat::Auto => match epoch::parse(bare, None) {
                Some(result) => return result.map_err(|e| e.about(bare, &self.format)),
                None => return self.civil(bare).map_err(|e| e.about(bare, &self.format)),
            },
            TimeFormat::Rfc3339 => {
                return self.civil(bare).map_err(|e| e.about(bare, &self.format));
            }
            TimeFormat::Strftime(format) => {
                return self.strftime(format, bare).map_err(|e| e.about(bare, &self.format));
            }
            TimeFormat::Seconds => epoch::Unit::Seconds,
            TimeFormat::Millis => epoch::Unit::Millis,
            TimeFormat::Micros => epoch::Unit::Micros,
            TimeFormat::Nanos => epoch::Unit::Nanos,
        };
        epoch::parse(bare, Some(unit))
            .unwrap_or(Err(Trouble::Unreadable(
                "a unit is stated, so a number is expected, for example 1755033487",
            )))
            .map_err(|e| e.about(bare, &self.format))
    }

    fn civil(&self, text: &[u8]) -> Result<u64, Trouble> {
        if text.ends_with(b"]") {
            return nanos(civil::annotated(text)?);
        }
        let (datetime, offset) = civil::parse(text)?;
        match offset {
            Some(seconds) => nanos(at_offset(datetime, seconds)?),
            None => self.in_zone(datetime),
        }
    }

    fn in_zone(&self, datetime: DateTime) -> Result<u64, Trouble> {
        // "Compatible" is the policy above: the earlier of two, and forward over a gap.
        let ambiguous = self.zone.0.to_ambiguous_timestamp(datetime);
        nanos(ambiguous.compatible().map_err(Trouble::Unformatted)?)
    }

    fn strftime(&self, format: &str, text: &[u8]) -> Result<u64, Trouble> {
        let parsed = BrokenDownTime::parse(format, text).map_err(Trouble::Unformatted)?;
        if parsed.timestamp().is_some() || parsed.offset().is_some() {
            return nanos(parsed.to_timestamp().map_err(Trouble::Unformatted)?);
        }
        if parsed.iana_time_zone().is_some() {
            return nanos(parsed.to_zoned_datetime().map_err(Trouble::Unformatted)?.timestamp());
        }
        self.in_zone(parsed.to_datetime().map_err(Trouble::Unformatted)?)
    }
}

impl Trouble {
    #[cold]
    fn about(self, text: &[u8], format: &TimeFormat) -> StampError {
        const SHOWN: usize = 60;
        let lossy = String::from_utf8_lossy(&text[..text.len().min(4 * SHOWN)]);
        let mut text: String = lossy.chars().take(SHOWN).collect();
        if text.len() < lossy.len() {
            text.push('…');
        }
        match self {
            Trouble::NoDate => {
                let also = match format {
                    TimeFormat::Auto => "or a number since 1970",
                    _ => "and for a number a format that states its unit: s, ms, us or ns",
                };
                let reason = format!("expected a date such as 2011-02-24T10:14:42.851Z, {also}");
                StampError::Unreadable { text, reason }
            }
            Trouble::Unreadable(reason) => StampError::Unreadable { text, reason: reason.into() },
            Trouble::Unformatted(e) => StampError::Unreadable { text, reason: e.to_string() },
            Trouble::Before1970 => StampError::Before1970 { text },
            Trouble::TooLate => StampError::TooLate { text },
        }
    }
}

/// Without space, quotes and brackets around it, unless the format writes brackets itself.
fn strip<'a>(text: &'a [u8], format: &TimeFormat) -> &'a [u8] {
    let brackets = !matches!(format, TimeFormat::Strftime(format) if format.starts_with('['));
    let text = text.trim_ascii();
    match text {
        [b'"', inner @ .., b'"'] | [b'\'', inner @ .., b'\''] => inner.trim_ascii(),
        [b'[', inner @ .., b']'] if brackets => inner.trim_ascii(),
        _ => text,
    }
}

fn at_offset(datetime: DateTime, seconds: i32) -> Result<Timestamp, Trouble> {
    Offset::from_seconds(seconds)
        .and_then(|offset| offset.to_timestamp(datetime))
        .map_err(Trouble::Unformatted)
}

fn nanos(timestamp: Timestamp) -> Result<u64, Trouble> {
    match timestamp.as_nanosecond() {
        ns if ns < 0 => Err(Trouble::Before1970),
        ns => u64::try_from(ns).map_err(|_| Trouble::TooLate),
    }
}

/// Prints an instant by the format and reads it back: that finds unknown directives, and formats
/// without a date, before the first record does.
fn check_strftime(format: &str) -> Result<(), TimeOptionError> {
    let fault = |reason: String| TimeOptionError { value: format.into(), reason };
    let sample = Timestamp::UNIX_EPOCH.to_zoned_datetime(TimeZone::UTC);
    let text = jiff::fmt::strtime::format(format, &sample).map_err(|e| fault(e.to_string()))?;
    let trial = StampParser { format: TimeFormat::Auto, zone: Zone::default() };
    match trial.strftime(format, text.as_bytes()) {
        Ok(_) => Ok(()),
        Err(Trouble::Unformatted(e)) => Err(fault(e.to_string())),
        Err(_) => Err(fault("it does not read back what it prints".into())),
    }
}
