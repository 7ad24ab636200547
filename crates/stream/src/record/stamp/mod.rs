//! Event times, as streams write them, to nanoseconds since 1970.
//!
//! The clock of a stream needs one unit. What arrives is epochs of four sizes, RFC 3339 and its
//! usual deviants, and the formats of log files, mail and people.

mod civil;
mod epoch;
mod error;
mod format;
mod pattern;
#[cfg(test)]
#[expect(non_snake_case, reason = "named after the acceptance cases")]
mod tests;
mod unset;
mod written;
mod year;
mod zone;

pub use error::{StampError, TimeOptionError};
pub use format::TimeFormat;
pub use zone::Zone;

use error::Trouble;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use std::sync::Arc;

/// Reads the text of a time field: nanoseconds since 1970, or what is wrong with it.
pub type ReadTime = Arc<dyn Fn(&[u8]) -> Result<u64, String> + Send + Sync>;

/// Reads times with `parser`.
pub fn read_time(parser: StampParser) -> ReadTime {
    Arc::new(move |text| parser.parse(text).map_err(|error| error.to_string()))
}

/// A moment in nanoseconds since 1970 as RFC 3339, in UTC.
pub fn display_time(nanos: u64) -> String {
    Timestamp::from_nanosecond(i128::from(nanos))
        .map_or_else(|_| format!("{nanos} ns"), |moment| moment.to_string())
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
/// - Without a year, the date has the latest year in which it is not more than a day after the
///   present, so that December is before the January that follows it.
/// - What programs write for "never" or "not set" is no time, in any format: 0, -1, the largest and
///   smallest numbers of 64 bits, 0000-00-00, 0001-01-01, 9999-12-31.
///
/// *Cost:* epochs and RFC 3339 do not allocate; a time without offset costs a look into the zone, and
/// one without a year a look at the system's clock.
///
/// # Example
/// ```
/// use lately_stream::stamp::{StampParser, TimeFormat};
/// let parser = StampParser::new(TimeFormat::Auto, "-06:00".parse()?)?;
/// assert_eq!(parser.parse(b"1755033487.197361")?, 1_755_033_487_197_361_000);
/// assert_eq!(parser.parse(b"2020-11-01 01:06")?, 1_604_214_360_000_000_000);
/// assert_eq!(parser.parse(b"Sun, 1 Nov 2020 07:06:00 GMT")?, 1_604_214_360_000_000_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// *Reference:* RFC 3339 (2002); RFC 9557 (2024) for zones in brackets; RFC 2822 (2001) for dates of
/// mail and abbreviations of zones.
#[derive(Clone, Debug)]
pub struct StampParser {
    format: TimeFormat,
    zone: Zone,
    present: Option<Timestamp>,
}

impl StampParser {
    /// A parser for this format; `zone` is for times that state no offset.
    ///
    /// *Errors:* a strftime format that is not one, or that yields no date.
    pub fn new(format: TimeFormat, zone: Zone) -> Result<Self, TimeOptionError> {
        if let TimeFormat::Strftime(format) = &format {
            pattern::check(format)?;
        }
        Ok(Self { format, zone, present: None })
    }

    /// Takes this moment, in nanoseconds since 1970, for the present where a date has no year. The
    /// default is the system's clock.
    ///
    /// # Example
    /// ```
    /// use lately_stream::stamp::{StampParser, TimeFormat, Zone, display_time};
    /// let parser = StampParser::new(TimeFormat::Auto, Zone::default())?;
    /// let parser = parser.present(1_704_067_500_000_000_000); // 2024-01-01T00:05:00Z
    /// assert_eq!(display_time(parser.parse(b"Dec 31 23:59:59")?), "2023-12-31T23:59:59Z");
    /// assert_eq!(display_time(parser.parse(b"Jan  1 00:00:03")?), "2024-01-01T00:00:03Z");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn present(self, nanos: u64) -> Self {
        Self { present: Timestamp::from_nanosecond(i128::from(nanos)).ok(), ..self }
    }

    /// Nanoseconds since 1970.
    ///
    /// *Errors:* [`StampError`], with the text and what was expected.
    pub fn parse(&self, text: &[u8]) -> Result<u64, StampError> {
        let bare = strip(text, &self.format);
        if bare.is_empty() {
            return Err(StampError::Empty);
        }
        let read = match &self.format {
            TimeFormat::Auto => self.auto(bare),
            TimeFormat::Rfc3339 => self.civil(bare),
            TimeFormat::Strftime(format) => {
                pattern::parse(format, bare, &self.zone, || self.now()).and_then(nanos)
            }
            TimeFormat::Seconds => epoch::in_unit(bare, epoch::Unit::Seconds),
            TimeFormat::Millis => epoch::in_unit(bare, epoch::Unit::Millis),
            TimeFormat::Micros => epoch::in_unit(bare, epoch::Unit::Micros),
            TimeFormat::Nanos => epoch::in_unit(bare, epoch::Unit::Nanos),
        };
        read.map_err(|trouble| trouble.about(bare, &self.format))
    }

    fn auto(&self, text: &[u8]) -> Result<u64, Trouble> {
        if !civil::is_compact(text)
            && let Some(result) = epoch::by_size(text)
        {
            return result;
        }
        let trouble = match self.civil(text) {
            // What it is not for it may yet be written in another way.
            Err(trouble @ (Trouble::NoDate | Trouble::Unreadable(civil::TIME | civil::OFFSET))) => {
                trouble
            }
            result => return result,
        };
        match self.written(text) {
            Err(Trouble::NoDate) => Err(trouble),
            result => result,
        }
    }

    fn civil(&self, text: &[u8]) -> Result<u64, Trouble> {
        if text.ends_with(b"]") {
            return nanos(civil::annotated(text)?);
        }
        let (datetime, offset) = civil::parse(text)?;
        nanos(match offset {
            Some(seconds) => at_offset(datetime, seconds)?,
            None => self.zone.instant(datetime)?,
        })
    }

    fn written(&self, text: &[u8]) -> Result<u64, Trouble> {
        let written = written::parse(text)?;
        let moment = |year| {
            let datetime = written.datetime(year)?;
            match (written.offset, written.abbreviation) {
                (Some(seconds), _) => at_offset(datetime, seconds),
                (None, Some(name)) => self.zone.abbreviated(datetime, name),
                (None, None) => self.zone.instant(datetime),
            }
        };
        nanos(match written.year {
            Some(year) => moment(year)?,
            None => year::latest(self.now(), moment)?,
        })
    }

    fn now(&self) -> Timestamp {
        self.present.unwrap_or_else(Timestamp::now)
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
        ns => match u64::try_from(ns) {
            Ok(ns) if unset::nanos(ns) => Err(Trouble::Unset),
            Ok(ns) => Ok(ns),
            Err(_) => Err(Trouble::TooLate),
        },
    }
}
