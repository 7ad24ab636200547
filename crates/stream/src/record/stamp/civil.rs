//! Dates and times of day, as RFC 3339 has them and as people write them in its place.

use super::error::Trouble;
use super::unset;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::temporal::DateTimeParser;
use jiff::tz::OffsetConflict;

pub(super) const TIME: &str = "after the date, expected a time such as 10:14:42.851";
pub(super) const OFFSET: &str =
    "after the time, expected nothing, Z, UTC or an offset such as -06:00";
pub(super) const CALENDAR: &str = "there is no such day or time in the calendar";

/// Hour, minute, second and nanosecond.
pub(super) type Time = (i32, i32, i32, i32);

/// Whether a text is 8, 12, 14 or 17 digits that begin with a century, or 14 with a fraction: a date,
/// and none of the epochs that may have that many digits.
pub(super) fn is_compact(text: &[u8]) -> bool {
    let (digits, fraction) = match text.get(14) {
        Some(b'.') => (&text[..14], &text[15..]),
        _ => (text, &b""[..]),
    };
    matches!(digits.len(), 8 | 12 | 14 | 17)
        && matches!(digits, [b'1', b'9', ..] | [b'2', b'0', ..])
        && digits.iter().chain(fraction).all(u8::is_ascii_digit)
}

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
    let (mut clock, mut offset) = ((0, 0, 0, 0), None);
    if let Some((&c, mut after)) = rest.split_first() {
        match c {
            b'T' | b't' => {}
            b' ' => after = after.trim_ascii_start(),
            // 20240501100000, perhaps with a fraction and a zone.
            b'0'..=b'9' if separator.is_none() && matches!(year, 1900..2100) => after = rest,
            _ => return Err(Trouble::NoDate),
        }
        clock = time(&mut after).ok_or(Trouble::Unreadable(TIME))?;
        let after = after.trim_ascii_start();
        if !after.is_empty() {
            offset = Some(self::offset(after).ok_or(Trouble::Unreadable(OFFSET))?);
        }
    }
    Ok((datetime((year, month, day), clock)?, offset))
}

/// A date of year, month and day, and a time. A leap second is the second before it, as strftime
/// formats have it too.
pub(super) fn datetime(date: (i32, i32, i32), time: Time) -> Result<DateTime, Trouble> {
    let ((year, month, day), (hour, minute, second, nano)) = (date, time);
    if unset::date(year, month, day) {
        return Err(Trouble::Unset);
    }
    let second = if second == 60 { 59 } else { second };
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
    DateTime::new(year, month, day, hour, minute, second, nano)
        .map_err(|_| Trouble::Unreadable(CALENDAR))
}

fn time(rest: &mut &[u8]) -> Option<Time> {
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
    let nano = match *rest {
        [b'.' | b',', fraction @ ..] => {
            *rest = fraction;
            self::fraction(rest)?
        }
        // 20240501100000123
        [b'0'..=b'9', _, _] if !colon => fraction(rest)?,
        _ => 0,
    };
    Some((hour, minute, second, nano))
}

/// The nanoseconds that the digits after a point are; `None` if there are none.
pub(super) fn fraction(rest: &mut &[u8]) -> Option<i32> {
    let digits = rest.iter().take_while(|c| c.is_ascii_digit()).count();
    if digits == 0 {
        return None;
    }
    let padded = rest[..digits].iter().chain(std::iter::repeat(&b'0'));
    let nano = padded.take(9).fold(0, |nano, c| nano * 10 + i32::from(c - b'0'));
    *rest = &rest[digits..];
    Some(nano)
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
    if text.starts_with(b"9999-12-31") || text.starts_with(b"0001-01-01") {
        return Err(Trouble::Unset);
    }
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
