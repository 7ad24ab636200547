//! Dates and times as log files, mail and people write them: with names of months, unpadded, with AM
//! and PM, in any order that is not ambiguous.

use super::civil::{self, Time};
use super::error::Trouble;
use jiff::civil::DateTime;

const MONTHS: [&[u8]; 12] = [
    b"january",
    b"february",
    b"march",
    b"april",
    b"may",
    b"june",
    b"july",
    b"august",
    b"september",
    b"october",
    b"november",
    b"december",
];
const WEEKDAYS: [&[u8]; 7] =
    [b"monday", b"tuesday", b"wednesday", b"thursday", b"friday", b"saturday", b"sunday"];

const ORDER: &str = "the order of day, month and year is ambiguous: state it, for example --time-format \
                     '%d/%m/%Y %H:%M:%S'";
const WEEKDAY: &str = "a day of the week is no date";
const TWELVE: &str = "a time with AM or PM has the hours 1 to 12";

/// The parts of a date and time.
#[derive(Default)]
pub(super) struct Written<'a> {
    /// None: left out.
    pub(super) year: Option<i16>,
    month: Option<i32>,
    day: Option<i32>,
    time: Option<Time>,
    /// After noon, where the hours are 1 to 12.
    afternoon: Option<bool>,
    /// Month and day are numbers of up to two digits, with slashes: Americans write the month first,
    /// and use AM and PM.
    slashes: bool,
    /// A day of the week was named.
    weekday: bool,
    /// Seconds from UTC.
    pub(super) offset: Option<i32>,
    /// The abbreviation of a zone.
    pub(super) abbreviation: Option<&'a [u8]>,
}

/// Reads the parts.
///
/// *Errors:* [`Trouble::NoDate`] for a text that is something else, others for a date that is wrong.
pub(super) fn parse(text: &[u8]) -> Result<Written<'_>, Trouble> {
    let mut written = Written::default();
    let mut rest = text;
    loop {
        rest = skip(rest, |c| c.is_ascii_whitespace() || c == b',');
        match rest.first() {
            None => break,
            Some(b'0'..=b'9') => written.number(&mut rest)?,
            Some(c) if c.is_ascii_alphabetic() => written.word(&mut rest)?,
            Some(b'+' | b'-') if written.time.is_some() => written.offset(&mut rest)?,
            // A comment, as in RFC 2822.
            Some(b'(') if written.time.is_some() && rest.ends_with(b")") => break,
            Some(_) => return Err(Trouble::NoDate),
        }
    }
    written.check()?;
    Ok(written)
}

impl<'a> Written<'a> {
    /// The date and time if the year is this.
    pub(super) fn datetime(&self, year: i16) -> Result<DateTime, Trouble> {
        let (month, day) = (self.month.unwrap_or(0), self.day.unwrap_or(0));
        civil::datetime((year.into(), month, day), self.clock())
    }

    /// Nanoseconds since midnight, if it is a time of day without a date.
    pub(super) fn of_day(&self) -> Result<Option<u64>, Trouble> {
        if !self.is_dateless() {
            return Ok(None);
        }
        if self.weekday {
            return Err(Trouble::Unreadable(WEEKDAY));
        }
        let time = civil::datetime((1970, 1, 1), self.clock())?.time();
        let since = jiff::civil::Time::midnight().duration_until(time);
        u64::try_from(since.as_nanos()).map(Some).map_err(|_| Trouble::NoDate)
    }

    /// The time, with 24 hours.
    fn clock(&self) -> Time {
        let (mut hour, minute, second, nano) = self.time.unwrap_or_default();
        if let Some(afternoon) = self.afternoon {
            hour = hour % 12 + if afternoon { 12 } else { 0 };
        }
        (hour, minute, second, nano)
    }

    fn check(&self) -> Result<(), Trouble> {
        let dated = self.month.is_some() && self.day.is_some();
        if self.time.is_none() && self.year.is_none() || !dated && !self.is_dateless() {
            return Err(Trouble::NoDate);
        }
        if self.slashes && (self.afternoon.is_none() || self.month > Some(12)) {
            return Err(Trouble::Unreadable(ORDER));
        }
        match (self.afternoon, self.time) {
            (Some(_), Some((hour, ..))) if !(1..=12).contains(&hour) => {
                Err(Trouble::Unreadable(TWELVE))
            }
            _ => Ok(()),
        }
    }

    fn number(&mut self, rest: &mut &'a [u8]) -> Result<(), Trouble> {
        let (number, digits) = take(rest)?;
        match rest.first() {
            Some(b':') if self.time.is_none() && digits <= 2 => self.time(number, rest),
            Some(&separator @ (b'-' | b'/' | b'.')) if self.is_dateless() => {
                self.date(number, digits, separator, rest)
            }
            _ => self.part(number, digits, rest),
        }
    }

    fn is_dateless(&self) -> bool {
        self.year.is_none() && self.month.is_none() && self.day.is_none()
    }

    /// What follows the hour.
    fn time(&mut self, hour: i32, rest: &mut &'a [u8]) -> Result<(), Trouble> {
        let pair = |rest: &mut &'a [u8]| match take(&mut rest.strip_prefix(b":")?) {
            Ok((number, digits @ 1..=2)) => {
                *rest = &rest[1 + digits..];
                Some(number)
            }
            _ => None,
        };
        let minute = pair(rest).ok_or(Trouble::NoDate)?;
        let (mut second, mut nano) = (0, 0);
        if rest.starts_with(b":") {
            second = pair(rest).ok_or(Trouble::NoDate)?;
            if let [b'.' | b',', digits @ ..] = *rest
                && digits.first().is_some_and(u8::is_ascii_digit)
            {
                *rest = digits;
                nano = civil::fraction(rest).unwrap_or(0);
            }
        }
        self.time = Some((hour, minute, second, nano));
        match rest.first() {
            None | Some(b' ' | b'\t' | b',' | b'+' | b'-' | b'(') => Ok(()),
            Some(c) if c.is_ascii_alphabetic() => Ok(()),
            Some(_) => Err(Trouble::NoDate),
        }
    }

    /// Three parts with a separator between them, of which this is the first.
    fn date(
        &mut self,
        first: i32,
        digits: usize,
        separator: u8,
        rest: &mut &'a [u8],
    ) -> Result<(), Trouble> {
        *rest = &rest[1..];
        let month = if rest.first().is_some_and(u8::is_ascii_alphabetic) {
            Some(name(letters(rest), &MONTHS).ok_or(Trouble::NoDate)?)
        } else {
            None
        };
        let second = if month.is_none() { take(rest)? } else { (0, 1) };
        *rest = rest.strip_prefix(&[separator]).ok_or(Trouble::NoDate)?;
        let third = take(rest)?;
        let short = |(number, digits): (i32, usize)| (digits <= 2).then_some(number);
        let day_first = (short((first, digits)), third);
        match (month, day_first, short(second)) {
            (Some(month), (Some(day), year), _) => self.named(year, month, day)?,
            (Some(month), (None, day), _) => {
                self.named((first, digits), month, short(day).ok_or(Trouble::NoDate)?)?;
            }
            (None, (Some(day), year @ (_, 4)), Some(month)) if separator == b'.' => {
                self.named(year, month, day)?;
            }
            (None, (Some(month), year @ (_, 4)), Some(day)) if separator == b'/' => {
                self.slashes = true;
                self.named(year, month, day)?;
            }
            (None, (None, day), Some(month)) if digits == 4 => {
                self.named((first, digits), month, short(day).ok_or(Trouble::NoDate)?)?;
            }
            (None, (Some(_), _), Some(_)) => return Err(Trouble::Unreadable(ORDER)),
            _ => return Err(Trouble::NoDate),
        }
        // A time may follow at once.
        match *rest {
            [b':' | b'T' | b't' | b'_', tail @ ..]
                if tail.first().is_some_and(u8::is_ascii_digit) =>
            {
                *rest = tail;
                Ok(())
            }
            [] | [b' ' | b'\t' | b',', ..] => Ok(()),
            _ => Err(Trouble::NoDate),
        }
    }

    fn named(&mut self, year: (i32, usize), month: i32, day: i32) -> Result<(), Trouble> {
        self.year = Some(full(year)?);
        self.month = Some(month);
        self.day = Some(day);
        Ok(())
    }

    /// A number that stands alone.
    fn part(&mut self, number: i32, digits: usize, rest: &mut &'a [u8]) -> Result<(), Trouble> {
        let ordinal =
            |suffix: &&[u8; 2]| rest.get(..2).is_some_and(|c| c.eq_ignore_ascii_case(*suffix));
        if digits <= 2 && [b"st", b"nd", b"rd", b"th"].iter().any(ordinal) {
            *rest = &rest[2..];
        }
        if !matches!(rest.first(), None | Some(b' ' | b'\t' | b',')) {
            return Err(Trouble::NoDate);
        }
        match self {
            Written { year: None, .. } if digits == 4 => self.year = Some(full((number, 4))?),
            _ if digits > 2 => return Err(Trouble::NoDate),
            // 2024 5 1
            Written { year: Some(_), month: None, day: None, .. } => self.month = Some(number),
            Written { day: None, .. } => self.day = Some(number),
            Written { year: None, month: Some(_), time: None, .. } => {
                self.year = Some(full((number, digits))?);
            }
            _ => return Err(Trouble::NoDate),
        }
        Ok(())
    }

    fn word(&mut self, rest: &mut &'a [u8]) -> Result<(), Trouble> {
        for (half, afternoon) in [(b"a.m.", false), (b"p.m.", true)] {
            if rest.get(..4).is_some_and(|word| word.eq_ignore_ascii_case(half)) {
                *rest = &rest[4..];
                return self.half(afternoon);
            }
        }
        let word = letters(rest);
        if word == b"m" && rest.starts_with(b"=") {
            // What Go adds to a time that it prints: its monotonic clock.
            *rest = &[];
            return Ok(());
        }
        *rest = rest.strip_prefix(b".").unwrap_or(rest);
        let is = |other: &[u8]| word.eq_ignore_ascii_case(other);
        if is(b"AM") || is(b"PM") {
            return self.half(is(b"PM"));
        }
        if let Some(month) = name(word, &MONTHS) {
            return if self.month.replace(month).is_none() { Ok(()) } else { Err(Trouble::NoDate) };
        }
        let (has_date, has_time) = (self.month.is_some(), self.time.is_some());
        match word {
            _ if name(word, &WEEKDAYS).is_some() => {
                self.weekday = true;
                Ok(())
            }
            b"at" if has_date && !has_time => Ok(()),
            _ if !has_time => Err(Trouble::NoDate),
            _ if civil::offset(word).is_some() || is(b"UT") => {
                self.offset = self.offset.or(Some(0));
                // UTC+2 and GMT+0200
                if let Some(b'+' | b'-') = rest.first() { self.offset(rest) } else { Ok(()) }
            }
            _ if matches!(word.len(), 2..=6) && self.abbreviation.is_none() => {
                self.abbreviation = Some(word);
                Ok(())
            }
            _ => Err(Trouble::NoDate),
        }
    }

    fn half(&mut self, afternoon: bool) -> Result<(), Trouble> {
        let known = self.time.is_none() || self.afternoon.replace(afternoon).is_some();
        if known { Err(Trouble::NoDate) } else { Ok(()) }
    }

    fn offset(&mut self, rest: &mut &'a [u8]) -> Result<(), Trouble> {
        let tail = skip(&rest[1..], |c| c.is_ascii_digit() || c == b':');
        let text = &rest[..rest.len() - tail.len()];
        *rest = tail;
        let hours = |c: u8| i32::from(c - b'0') * 3600;
        self.offset = Some(match *text {
            [b'+', c @ b'0'..=b'9'] => hours(c),
            [b'-', c @ b'0'..=b'9'] => -hours(c),
            _ => civil::offset(text).ok_or(Trouble::Unreadable(civil::OFFSET))?,
        });
        Ok(())
    }
}

/// A year of four digits, or of two: 1969 to 2068, as POSIX has it.
fn full((number, digits): (i32, usize)) -> Result<i16, Trouble> {
    let year = match digits {
        4 => number,
        2 if number >= 69 => 1900 + number,
        2 => 2000 + number,
        _ => return Err(Trouble::NoDate),
    };
    i16::try_from(year).map_err(|_| Trouble::NoDate)
}

/// A number of up to four digits, and how many they are.
fn take(rest: &mut &[u8]) -> Result<(i32, usize), Trouble> {
    let tail = skip(rest, |c| c.is_ascii_digit());
    let digits = &rest[..rest.len() - tail.len()];
    if digits.is_empty() || digits.len() > 4 {
        return Err(Trouble::NoDate);
    }
    *rest = tail;
    Ok((digits.iter().fold(0, |n, c| n * 10 + i32::from(c - b'0')), digits.len()))
}

fn letters<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let tail = skip(rest, |c| c.is_ascii_alphabetic());
    let word = &rest[..rest.len() - tail.len()];
    *rest = tail;
    word
}

fn skip(text: &[u8], what: impl Fn(u8) -> bool) -> &[u8] {
    let end = text.iter().position(|&c| !what(c)).unwrap_or(text.len());
    &text[end..]
}

/// Which of these names a word is, in full or shortened to three to five letters (Sep, Sept, Thurs),
/// from 1.
fn name(word: &[u8], names: &[&[u8]]) -> Option<i32> {
    let is = |name: &&[u8]| {
        let short = name.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word));
        short && (matches!(word.len(), 3..=5) || word.len() == name.len())
    };
    names.iter().zip(1..).find(|(name, _)| is(name)).map(|(_, number)| number)
}
