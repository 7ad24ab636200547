//! Keys that are whole numbers: what a range window is asked for intervals of.
//!
//! Each format maps its texts to `u128` in the order that people expect of them, so that an interval
//! of texts is an interval of numbers: `10.1.0.0/16`, `-5..5`, a product of a company.

mod decimal;
mod intervals;
mod ip;

pub use intervals::Intervals;
pub(super) use ip::parse as address;

use super::epc::{self, EpcError};
use super::stamp::ReadTime;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// How the text of a key becomes a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NumberFormat {
    /// A whole number from 0 to 2^128 - 1.
    #[default]
    Number,
    /// A whole number from -2^127 to 2^127 - 1.
    Signed,
    /// A number with a fraction, of which nine digits count: two that agree so far are one key.
    Decimal,
    /// A time, in nanoseconds since 1970.
    Time,
    /// An EPC, as the thing that it names; see [`Epc::to_number`](crate::epc::Epc::to_number).
    Epc,
    /// An address of IPv4 or IPv6; one of IPv4 is the same as `::ffff:` and it.
    Ip,
}

/// What an order-preserving map adds to signed numbers.
const MIDDLE: u128 = 1 << 127;

/// Nanoseconds of an hour.
const HOUR: u128 = 3600 * 1_000_000_000;

impl NumberFormat {
    /// Every format with its name.
    pub const NAMES: [(&'static str, Self); 6] = [
        ("number", Self::Number),
        ("signed", Self::Signed),
        ("decimal", Self::Decimal),
        ("time", Self::Time),
        ("epc", Self::Epc),
        ("ip", Self::Ip),
    ];

    /// The length of interval that is asked for most, where nobody says: 1000 numbers, a unit of a
    /// decimal, an hour, an SGTIN class of one filter value, a /16 of IPv4.
    pub const fn usual_interval(self) -> u128 {
        match self {
            Self::Number | Self::Signed => 1000,
            Self::Decimal => decimal::UNIT,
            Self::Time => HOUR,
            Self::Epc => 1 << 38,
            Self::Ip => 1 << 16,
        }
    }
}

impl fmt::Display for NumberFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(_, format)| format == self).map_or("number", |n| n.0);
        f.pad(name)
    }
}

impl FromStr for NumberFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::NAMES.iter().find(|(name, _)| *name == text).map(|n| n.1).ok_or_else(|| {
            let names: Vec<_> = Self::NAMES.iter().map(|n| n.0).collect();
            format!("unknown key format `{text}`; known are {}", names.join(", "))
        })
    }
}

/// Reads keys of one format, and intervals of them.
///
/// # Example
/// ```
/// use lately_stream::options::read_time;
/// use lately_stream::number::{NumberFormat, NumberReader};
/// use lately_stream::stamp::{StampParser, TimeFormat, Zone};
/// let times = read_time(StampParser::new(TimeFormat::Auto, Zone::default())?);
/// let reader = NumberReader::new(NumberFormat::Ip, times);
/// let block = reader.intervals("10.1.0.0/16")?;
/// assert!(block[0].contains(&reader.key(b"10.1.200.7")?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct NumberReader {
    format: NumberFormat,
    read_time: ReadTime,
}

impl NumberReader {
    /// A reader; times, if that is what keys are, are read with `read_time`.
    pub fn new(format: NumberFormat, read_time: ReadTime) -> Self {
        Self { format, read_time }
    }

    /// The format.
    pub fn format(&self) -> NumberFormat {
        self.format
    }

    /// The number of one key.
    ///
    /// *Errors:* what is wrong with the text, and what it looks like instead.
    pub fn key(&self, text: &[u8]) -> Result<u128, String> {
        let text = text.trim_ascii();
        let number = match self.format {
            NumberFormat::Number => whole(text),
            NumberFormat::Signed => signed(text),
            NumberFormat::Decimal => decimal::parse(text),
            NumberFormat::Time => {
                let since = |nanos: i64| u128::try_from(nanos).ok();
                let time = (self.read_time)(text)?;
                let number = time.nanos().and_then(since);
                return number.ok_or_else(|| {
                    format!("as a key, the time {time} must be of 1970 or later, with a date")
                });
            }
            NumberFormat::Epc => epc::number(text),
            NumberFormat::Ip => ip::parse(text),
        };
        number.ok_or_else(|| self.fault(text))
    }

    /// The intervals of numbers that a text names: `A..B` with both ends in it, of which either may
    /// be left out; a block of addresses (`10.1.0.0/16`); a pattern of EPCs
    /// (`urn:epc:idpat:sgtin:0614141.812345.*`, `3034257BF7*`); or a single key. A pattern has one for
    /// each encoding of an identity, and no two have a number in common.
    ///
    /// *Errors:* what is wrong with the text.
    pub fn intervals(&self, text: &str) -> Result<Vec<RangeInclusive<u128>>, String> {
        let text = text.trim();
        if let Some((first, last)) = self.ends(text) {
            return self.range(first, last).map(|range| vec![range]);
        }
        let is_uri = text.get(..4).is_some_and(|scheme| scheme.eq_ignore_ascii_case("urn:"));
        match self.format {
            NumberFormat::Ip if text.contains('/') => self.prefix(text),
            NumberFormat::Epc if is_uri || text.ends_with('*') => self.prefix(text),
            _ => self.key(text.as_bytes()).map(|key| vec![key..=key]),
        }
    }

    /// The intervals of a prefix: a block of addresses, or the beginning of EPCs as a pattern or as
    /// hex digits.
    ///
    /// *Errors:* what is wrong with the text.
    pub fn prefix(&self, text: &str) -> Result<Vec<RangeInclusive<u128>>, String> {
        let text = text.trim();
        match self.format {
            NumberFormat::Ip => ip::block(text).map(|block| vec![block]),
            NumberFormat::Epc => epc::pattern(text).map_err(|error| format!("{text}: {error}")),
            format => Err(format!(
                "{text}: only EPCs and addresses have prefixes, and keys are of format `{format}` here; give an interval A..B"
            )),
        }
    }

    /// An interval by its ends, both in it; an empty one is that of all keys.
    ///
    /// *Errors:* what is wrong with an end, or that they are the wrong way round.
    pub fn range(&self, first: &str, last: &str) -> Result<RangeInclusive<u128>, String> {
        let end = |text: &str, missing: u128| match text.trim() {
            "" => Ok(missing),
            text => self.key(text.as_bytes()),
        };
        let range = end(first, 0)?..=end(last, u128::MAX)?;
        if range.is_empty() {
            return Err(format!("{first}..{last}: the first end is larger than the second"));
        }
        Ok(range)
    }

    /// The ends of `A..B`. A URI may have two dots in it, so there the second one tells.
    fn ends<'t>(&self, text: &'t str) -> Option<(&'t str, &'t str)> {
        if self.format != NumberFormat::Epc || !text.contains(':') {
            return text.split_once("..");
        }
        let lower = text.to_ascii_lowercase();
        let at = lower.find("..urn:").or_else(|| lower.ends_with("..").then(|| text.len() - 2));
        let at = at.or_else(|| lower.starts_with("..").then_some(0))?;
        Some((text.get(..at)?, text.get(at + 2..)?))
    }

    /// What is wrong with a text that is no key of this format.
    fn fault(&self, text: &[u8]) -> String {
        let shown = String::from_utf8_lossy(text);
        let what = match self.format {
            NumberFormat::Number => "a whole number from 0 to 2^128 - 1",
            NumberFormat::Signed => "a whole number from -2^127 to 2^127 - 1",
            NumberFormat::Decimal => "a number",
            NumberFormat::Time => "a time",
            NumberFormat::Epc => {
                return match epc::fault(&shown) {
                    // Its own words are those for tags, which an identity is none of.
                    EpcError::NotAnEpc => format!(
                        "`{shown}`: not an EPC: expected hex (an even number of digits), base64, b'…', urn:epc:raw:…, \
                         urn:epc:tag:… or urn:epc:id:…, for example 3074257BF7194E4000001A85"
                    ),
                    error => format!("`{shown}`: {error}"),
                };
            }
            NumberFormat::Ip => "an address such as 10.1.2.3 or 2001:db8::1",
        };
        let hint = self
            .likeness(text)
            .map_or(String::new(), |other| format!("; it looks like one of --key-format {other}"));
        if text.is_empty() {
            return format!("empty, expected {what}");
        }
        format!("`{shown}` is not {what}{hint}")
    }

    /// The format that the text is of.
    fn likeness(&self, text: &[u8]) -> Option<NumberFormat> {
        let is = |format| match format {
            NumberFormat::Number => whole(text).is_some(),
            NumberFormat::Signed => signed(text).is_some(),
            NumberFormat::Ip => {
                let block = |text: &str| ip::block(text).is_ok();
                ip::parse(text).is_some() || std::str::from_utf8(text).is_ok_and(block)
            }
            NumberFormat::Decimal => decimal::parse(text).is_some(),
            NumberFormat::Epc => {
                let pattern = |text: &str| text.contains(':') && epc::pattern(text).is_ok();
                epc::number(text).is_some() || std::str::from_utf8(text).is_ok_and(pattern)
            }
            NumberFormat::Time => false,
        };
        let order = [
            NumberFormat::Number,
            NumberFormat::Signed,
            NumberFormat::Ip,
            NumberFormat::Decimal,
            NumberFormat::Epc,
        ];
        order.into_iter().find(|&format| format != self.format && is(format))
    }
}

impl fmt::Debug for NumberReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NumberReader").field("format", &self.format).finish_non_exhaustive()
    }
}

fn digits(text: &[u8]) -> Option<u128> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u128, |number, &digit| {
        let digit = u128::from(digit.wrapping_sub(b'0'));
        if digit > 9 { None } else { number.checked_mul(10)?.checked_add(digit) }
    })
}

fn whole(text: &[u8]) -> Option<u128> {
    digits(text.strip_prefix(b"+").unwrap_or(text))
}

fn signed(text: &[u8]) -> Option<u128> {
    match text.strip_prefix(b"-") {
        Some(rest) => MIDDLE.checked_sub(digits(rest)?),
        None => MIDDLE.checked_add(whole(text)?),
    }
}

/// A length of intervals as people write it: a count (`1000`, `64k`), a power (`2^38`), and for the
/// formats that have them a prefix (`/24`, of IPv4; `/64` and more are of IPv6) or a duration (`1h`).
///
/// *Errors:* what was expected.
pub fn interval_length(text: &str, format: NumberFormat) -> Result<u128, String> {
    let wrong = || {
        let more = match format {
            NumberFormat::Ip => ", or a prefix such as /24",
            NumberFormat::Time => ", or a duration such as 1h",
            _ => "",
        };
        format!("`{text}`: expected a length such as 1000, 64k or 2^38{more}")
    };
    let bare = text.trim();
    let length = if let Some(power) = bare.strip_prefix("2^") {
        1_u128.checked_shl(power.parse().map_err(|_| wrong())?)
    } else if let Some(bits) = bare.strip_prefix('/').filter(|_| format == NumberFormat::Ip) {
        let bits: u32 = bits.parse().map_err(|_| wrong())?;
        let whole: u32 = if bits <= 32 { 32 } else { 128 };
        whole.checked_sub(bits).and_then(|rest| 1_u128.checked_shl(rest))
    } else if let Some(number) = digits(bare.as_bytes()) {
        Some(number)
    } else {
        let duration =
            crate::quantity::duration(bare).ok().filter(|_| format == NumberFormat::Time);
        duration.or_else(|| crate::quantity::count(bare).ok()).map(u128::from)
    };
    length.filter(|&length| length > 0).ok_or_else(wrong)
}

#[cfg(test)]
mod tests;
