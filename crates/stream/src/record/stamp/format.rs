//! The formats of times, and their names.

use super::error::TimeOptionError;
use super::pattern;
use std::fmt;
use std::str::FromStr;

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
    /// A number is an epoch whose unit is determined by its size; everything else is a date, as
    /// [`TimeFormat::Rfc3339`] has it or as log files and people write it.
    ///
    /// The unit by the part before the decimal point:
    ///
    /// | integer part | unit |
    /// |---|---|
    /// | below 10^10 (up to 10 digits) | s |
    /// | below 10^13 (11 to 13) | ms |
    /// | below 10^16 (14 to 16) | µs |
    /// | from 10^16 (17 to 20) | ns |
    ///
    /// An epoch before 1990 or after 2100 is refused, because it is more likely to be something else:
    /// a counter, the serial day of a spreadsheet, or ticks since 1601. So are nanoseconds in 1990,
    /// which are .NET ticks of today. A stream that has such epochs must state their unit.
    ///
    /// 8, 12, 14 and 17 digits that begin with 19 or 20 are dates: `20240501`, `202405011000`,
    /// `20240501100000` and `20240501100000123`. No epoch from 1990 to 2100 looks like that.
    ///
    /// Further dates: unpadded (`2024-1-5 9:05:00`), with English names (`Wed, 01 May 2024 10:00:00
    /// +0200`, `Wed May  1 10:00:00 2024`, `01/Aug/1995:00:00:01 -0400`, `Dec 31 23:59:58`), with dots
    /// (`31.12.2024 10:00`, the day first), with AM or PM (`3/10/2004 6:00:00 PM`, the month first), and
    /// with both an offset and a zone (`2024-05-01 10:00:00 +0000 UTC`, where the offset counts). Other
    /// dates in which day and month cannot be distinguished are refused.
    ///
    /// - A date without a year has the latest year in which it is not more than a day in the future.
    /// - An abbreviation of a zone is read if the zone of the stream has it at that time, or if it is
    ///   one of EST, EDT, MST, MDT, PST and PDT (RFC 2822). All others are refused.
    /// - A time of day without a date (`10:14:42.851`, `6:00 PM`, `10:14:42+02:00`) is that time on the day
    ///   on which it is nearest to the clock of the stream.
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
    /// `T`, `t`, spaces or (in digits alone) nothing before the time; `-`, `/` or nothing in the date, `:` or nothing in the
    /// time; seconds or the whole time may be missing; a fraction after `.` or `,`; then `Z`,
    /// `UTC`, `GMT`, `+HH`, `+HHMM`, `+HH:MM`, a zone in brackets (an offset before it wins), or
    /// nothing.
    Rfc3339,
    /// A format of strftime, as the `jiff` crate documents it; `%.f` is an optional fraction. Without
    /// a year, the date has the latest year in which it is not more than a day in the future; without
    /// a date, it is a time of day.
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
                pattern::check(text)?;
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
