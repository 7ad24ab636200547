//! Event times, as streams write them.
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

pub use super::time::{Stated, Time, display_time};
pub use error::{StampError, TimeOptionError};
pub use format::TimeFormat;
pub use zone::Zone;

use super::time::DAY;
use error::Trouble;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use std::sync::Arc;

/// Reads the text of a time field: the time, or what is wrong with it.
pub type ReadTime = Arc<dyn Fn(&[u8]) -> Result<Time, String> + Send + Sync>;

/// Reads times with `parser`.
pub fn read_time(parser: StampParser) -> ReadTime {
    Arc::new(move |text| parser.parse(text).map_err(|error| error.to_string()))
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
/// - Without a date, it is a time of day ([`Stated::OfDay`]), and the clock of the stream finds the day.
///   If it states no offset, it has the one that its zone has at present.
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
/// assert_eq!(parser.parse(b"1755033487.197361")?.nanos(), Some(1_755_033_487_197_361_000));
/// assert_eq!(parser.parse(b"2020-11-01 01:06")?.nanos(), Some(1_604_214_360_000_000_000));
/// assert_eq!(parser.parse(b"Sun, 1 Nov 2020 07:06:00 GMT")?.to_string(), "2020-11-01T07:06:00Z");
/// assert_eq!(parser.parse(b"02:00")?.to_string(), "08:00:00Z");
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
    /// use lately_stream::stamp::{StampParser, TimeFormat, Zone};
    /// let parser = StampParser::new(TimeFormat::Auto, Zone::default())?;
    /// let parser = parser.present(1_704_067_500_000_000_000); // 2024-01-01T00:05:00Z
    /// assert_eq!(parser.parse(b"Dec 31 23:59:59")?.to_string(), "2023-12-31T23:59:59Z");
    /// assert_eq!(parser.parse(b"Jan  1 00:00:03")?.to_string(), "2024-01-01T00:00:03Z");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn present(self, nanos: i64) -> Self {
        Self { present: Timestamp::from_nanosecond(i128::from(nanos)).ok(), ..self }
    }

    /// The time that a text is.
    ///
    /// *Errors:* [`StampError`], with the text and what was expected.
    pub fn parse(&self, text: &[u8]) -> Result<Time, StampError> {
        let bare = strip(text, &self.format);
        if bare.is_empty() {
            return Err(StampError::Empty);
        }
        let read = match &self.format {
            TimeFormat::Auto => self.auto(bare),
            TimeFormat::Rfc3339 => self.civil(bare),
            TimeFormat::Strftime(format) => pattern::parse(format, bare, &self.zone, || self.now()),
            TimeFormat::Seconds => epoch::in_unit(bare, epoch::Unit::Seconds),
            TimeFormat::Millis => epoch::in_unit(bare, epoch::Unit::Millis),
            TimeFormat::Micros => epoch::in_unit(bare, epoch::Unit::Micros),
            TimeFormat::Nanos => epoch::in_unit(bare, epoch::Unit::Nanos),
        };
        read.map_err(|trouble| trouble.about(bare, &self.format))
    }

    fn auto(&self, text: &[u8]) -> Result<Time, Trouble> {
        // A number has no such thing in its fifth place, and most times do.
        let punctuated = matches!(text.get(4), Some(b'-' | b'/'));
        if !punctuated
            && !civil::is_compact(text)
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

    fn civil(&self, text: &[u8]) -> Result<Time, Trouble> {
        if text.ends_with(b"]") {
            return time(civil::annotated(text)?);
        }
        let (datetime, offset) = civil::parse(text)?;
        time(match offset {
            Some(seconds) => at_offset(datetime, seconds)?,
            None => self.zone.instant(datetime)?,
        })
    }

    fn written(&self, text: &[u8]) -> Result<Time, Trouble> {
        let written = written::parse(text)?;
        if let Some(nanos) = written.of_day()? {
            return match (written.offset, written.abbreviation) {
                (None, Some(name)) => {
                    let present = TimeZone::UTC.to_datetime(self.now());
                    let moment = self.zone.abbreviated(present, name)?;
                    let ahead = TimeZone::UTC.to_datetime(moment).duration_until(present);
                    Ok(of_day(nanos, ahead.as_secs()))
                }
                (Some(seconds), _) => Ok(of_day(nanos, seconds.into())),
                (None, None) => Ok(of_day(nanos, self.zone.offset_at(self.now()))),
            };
        }
        let moment = |year| {
            let datetime = written.datetime(year)?;
            match (written.offset, written.abbreviation) {
                (Some(seconds), _) => at_offset(datetime, seconds),
                (None, Some(name)) => self.zone.abbreviated(datetime, name),
                (None, None) => self.zone.instant(datetime),
            }
        };
        time(match written.year {
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

fn time(moment: Timestamp) -> Result<Time, Trouble> {
    nanos(moment.as_nanosecond())
}

/// The moment so many nanoseconds after 1970, or before.
fn nanos(nanos: i128) -> Result<Time, Trouble> {
    match i64::try_from(nanos) {
        Ok(nanos) if unset::nanos(nanos) => Err(Trouble::Unset),
        Ok(nanos) => Time::since_1970(nanos).ok_or(Trouble::TooEarly),
        Err(_) if nanos < 0 => Err(Trouble::TooEarly),
        Err(_) => Err(Trouble::TooLate),
    }
}

/// A time of day of a place whose clocks are so many seconds ahead of UTC.
fn of_day(nanos: u64, ahead: i64) -> Time {
    let nanos = i128::from(nanos) - i128::from(ahead) * 1_000_000_000;
    Time::of_day(nanos.rem_euclid(i128::from(DAY)) as u64)
}
