//! Dates and times of day, as RFC 3339 has them and as people write them in its place.

use super::Trouble;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::temporal::DateTimeParser;
use jiff::tz::OffsetConflict;

const TIME: &str = "after the date, expected a time such as 10:14:42.851";
const OFFSET: &str = "after the time, expected nothing, Z, UTC or an offset such as -06:00";
const CALENDAR: &str = "there is no such day or time in the calendar";

/// The local date and time, and the offset from UTC in seconds if one is stated.
pub(super) fn parse(text: &[u8]) -> Result<(DateTime, Option<i32>), Trouble> {
    let mut rest = text;
    let year = take(&mut rest, 4).ok_or(Trouble::NoDate)?;
    let separator = match rest.first() {
        Some(&c @ (b'-' | b'/')) => Some(c),
        _ => None,
    };
    let mut part = || {
        if let Some(separator) = separator {
            rest = rest.strip_prefix(&[separator])?;
        }
        take(&mut rest, 2)
    };
    let (Some(month), Some(day)) = (part(), part()) else { return Err(Trouble::NoDate) };
    let (mut hour, mut minute, mut second, mut nano) = (0, 0, 0, 0);
    let mut offset = None;
    if let Some((&c, mut after)) = rest.split_first() {
        if !matches!(c, b'T' | b't' | b' ') {
            return Err(Trouble::NoDate);
        }
        if c == b' ' {
            after = after.trim_ascii_start();
        }
        (hour, minute, second, nano) = time(&mut after).ok_or(Trouble::Unreadable(TIME))?;
        let after = after.trim_ascii_start();
        if !after.is_empty() {
            offset = Some(self::offset(after).ok_or(Trouble::Unreadable(OFFSET))?);
        }
    }
    // The leap second is the second before it, as strftime formats have it too.
    if second == 60 {
        second = 59;
    }
    let (Ok(year), Ok(month), Ok(day), Ok(hour), Ok(minute), Ok(second)) = (
        i16::try_from(year),
        i8::try_from(month),
        i8::try_from(day),
        i8::try_from(hour),
        i8::try_from(minute),
        i8::try_from(second),
    ) else {
        return Err(Trouble::Unreadable(CALENDAR));
    };
    let datetime = DateTime::new(year, month, day, hour, minute, second, nano)
        .map_err(|_| Trouble::Unreadable(CALENDAR))?;
    Ok((datetime, offset))
}

/// Hour, minute, second, nanosecond.
fn time(rest: &mut &[u8]) -> Option<(i32, i32, i32, i32)> {
    let hour = take(rest, 2)?;
    let colon = rest.first() == Some(&b':');
    if colon {
        *rest = &rest[1..];
    }
    let minute = take(rest, 2)?;
    let more = match rest.first() {
        Some(b':') if colon => {
            *rest = &rest[1..];
            true
        }
        Some(c) => !colon && c.is_ascii_digit(),
        None => false,
    };
    if !more {
        return Some((hour, minute, 0, 0));
    }
    let second = take(rest, 2)?;
    let mut nano = 0;
    if let [b'.' | b',', fraction @ ..] = *rest {
        let digits = fraction.iter().take_while(|c| c.is_ascii_digit()).count();
        if digits == 0 {
            return None;
        }
        let padded = fraction[..digits].iter().chain(std::iter::repeat(&b'0'));
        for c in padded.take(9) {
            nano = nano * 10 + i32::from(c - b'0');
        }
        *rest = &fraction[digits..];
    }
    Some((hour, minute, second, nano))
}

/// Seconds of `Z`, `UTC`, `GMT`, `+HH`, `+HHMM`, `+HH:MM`, with seconds too.
pub(super) fn offset(text: &[u8]) -> Option<i32> {
    if [b"Z".as_slice(), b"UTC", b"GMT"].iter().any(|name| text.eq_ignore_ascii_case(name)) {
        return Some(0);
    }
    let (sign, mut rest) = match text {
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return None,
    };
    let mut seconds = take(&mut rest, 2).filter(|&hours| hours < 24)? * 3600;
    for unit in [60, 1] {
        if rest.is_empty() {
            break;
        }
        rest = rest.strip_prefix(b":").unwrap_or(rest);
        seconds += take(&mut rest, 2).filter(|&n| n < 60)? * unit;
    }
    rest.is_empty().then_some(sign * seconds)
}

/// `2020-11-01T01:06-06:00[America/Chicago]`, by RFC 9557: a stated offset is believed, whatever
/// the zone's rules are today.
pub(super) fn annotated(text: &[u8]) -> Result<Timestamp, Trouble> {
    static PARSER: DateTimeParser =
        DateTimeParser::new().offset_conflict(OffsetConflict::AlwaysOffset);
    PARSER.parse_zoned_datetime(text).map(|zoned| zoned.timestamp()).map_err(Trouble::Unformatted)
}

/// A number of exactly so many digits off the front.
fn take(rest: &mut &[u8], digits: usize) -> Option<i32> {
    let (head, tail) = rest.split_at_checked(digits)?;
    let value =
        head.iter().try_fold(0, |n, c| c.is_ascii_digit().then(|| n * 10 + i32::from(c - b'0')))?;
    *rest = tail;
    Some(value)
}
