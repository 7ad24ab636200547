//! Sizes, counts, durations and shares, as people write them on a command line.
//!
//! Numbers are decimal and exact: `1.5GiB` is 1,610,612,736 bytes, with no double in between.
//! In all of them, digits may be grouped (`1_000_000`, `1,000,000`), there may be a fraction
//! (`2.5`) or an exponent (`1e6`), and a space before the unit.

use std::fmt;

/// What is wrong with a quantity, and an example of a right one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantityError {
    /// What was given.
    pub value: String,
    /// What is wrong and what is expected.
    pub reason: String,
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.value, self.reason)
    }
}

impl std::error::Error for QuantityError {}

fn fault<T>(value: &str, reason: impl Into<String>) -> Result<T, QuantityError> {
    Err(QuantityError { value: value.into(), reason: reason.into() })
}

const BYTES: &str = "expected a size such as 64MiB, 1.5GiB, 1GB or 512k";
const COUNT: &str = "expected a count such as 100000, 100k or 2.5M";
const DURATION: &str = "expected a duration such as 10s, 200ms, 1m30s or 7d";
const SHARE: &str = "expected a share between 0 and 1, such as 1e-6, 0.01%, or 1/1000";

/// A number of bytes: `64MiB`, `1GB`, `512k`, `1.5 GiB`, `4096`.
///
/// `KiB`, `MiB`, … are powers of 1024, `kB`, `MB`, … of 1000. A bare `k`, `M`, `G` or `T` is of
/// 1024, as `sort -S`, `dd` and the JVM have it. Case does not matter. Parts of a byte are cut off.
///
/// *Errors:* [`QuantityError`].
///
/// # Example
/// ```
/// use lately_stream::quantity::bytes;
/// assert_eq!(bytes("64MiB"), Ok(64 << 20));
/// assert_eq!(bytes("1GB"), Ok(1_000_000_000));
/// assert_eq!(bytes("512k"), Ok(512 << 10));
/// ```
pub fn bytes(text: &str) -> Result<u64, QuantityError> {
    let Some((number, unit)) = Number::split(text.trim()) else { return fault(text, BYTES) };
    let unit = unit.trim().to_ascii_lowercase();
    let (prefix, base) = match unit.as_str() {
        "" | "b" | "byte" | "bytes" => ("", 1),
        unit => match (unit.strip_suffix("ib"), unit.strip_suffix('b')) {
            (Some(prefix), _) => (prefix, 1024),
            (None, Some(prefix)) => (prefix, 1000),
            (None, None) => (unit, 1024u128),
        },
    };
    let power = match prefix {
        "" if base == 1 => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        "e" => 6,
        _ => return fault(text, format!("unknown unit {unit:?}; {BYTES}")),
    };
    match number.times(base.pow(power)) {
        Some((value, _)) => Ok(value),
        None => fault(text, format!("more than 16 EiB; {BYTES}")),
    }
}

/// A whole number: `100k`, `2.5M`, `1e6`, `1_000_000`.
///
/// `k`, `M`, `G` (or `B`, a billion) and `T` are powers of 1000. Case does not matter.
///
/// *Errors:* [`QuantityError`], also for what is not whole, such as `1.5`.
///
/// # Example
/// ```
/// use lately_stream::quantity::count;
/// assert_eq!(count("2.5M"), Ok(2_500_000));
/// ```
pub fn count(text: &str) -> Result<u64, QuantityError> {
    let Some((number, unit)) = Number::split(text.trim()) else { return fault(text, COUNT) };
    let factor = match unit.trim() {
        "" => 1,
        "k" | "K" => 1000,
        "m" | "M" => 1_000_000,
        "g" | "G" | "b" | "B" => 1_000_000_000,
        "t" | "T" => 1_000_000_000_000,
        unit => return fault(text, format!("unknown unit {unit:?}; {COUNT}")),
    };
    match number.times(factor) {
        Some((value, true)) => Ok(value),
        Some((_, false)) => fault(text, format!("not a whole number; {COUNT}")),
        None => fault(text, format!("too large; {COUNT}")),
    }
}

/// The units of time, in nanoseconds: how they are shown, and how else they are written.
const UNITS: [(u64, &str, &[&str]); 8] = [
    (604_800_000_000_000, "w", &["week", "weeks"]),
    (86_400_000_000_000, "d", &["day", "days"]),
    (3_600_000_000_000, "h", &["hr", "hrs", "hour", "hours"]),
    (60_000_000_000, "m", &["min", "mins", "minute", "minutes"]),
    (1_000_000_000, "s", &["sec", "secs", "second", "seconds"]),
    (1_000_000, "ms", &["msec", "millisecond", "milliseconds", "millis"]),
    (1000, "us", &["µs", "μs", "usec", "microsecond", "microseconds", "micros"]),
    (1, "ns", &["nsec", "nanosecond", "nanoseconds", "nanos"]),
];

/// A span of time in nanoseconds: `10s`, `200ms`, `1.5h`, `1m30s`, `5 min`, `7d`.
///
/// Units are `w`, `d`, `h`, `m`, `s`, `ms`, `us` or `µs`, `ns`, and their names; each at most once,
/// the larger first. A day is 24 hours. Parts of a nanosecond are cut off.
///
/// *Errors:* [`QuantityError`]; a number without a unit among them, except 0.
///
/// # Example
/// ```
/// use lately_stream::quantity::duration;
/// assert_eq!(duration("1m30s"), Ok(90_000_000_000));
/// assert!(duration("10").unwrap_err().to_string().contains("10s"));
/// ```
pub fn duration(text: &str) -> Result<u64, QuantityError> {
    let mut rest = text.trim();
    let (mut total, mut last) = (0u64, u64::MAX);
    if rest.is_empty() {
        return fault(text, DURATION);
    }
    while !rest.is_empty() {
        let Some((number, tail)) = Number::split(rest) else { return fault(text, DURATION) };
        let tail = tail.trim_start();
        let end = tail.find(|c: char| !c.is_alphabetic()).unwrap_or(tail.len());
        let (unit, after) = tail.split_at(end);
        let found = UNITS.iter().find(|(_, short, names)| *short == unit || names.contains(&unit));
        let factor = match found {
            Some((factor, ..)) => *factor,
            None if unit.is_empty() && number.digits == 0 && after.is_empty() => 1,
            None if unit.is_empty() && (after.is_empty() || after.starts_with(is_digit)) => {
                let digits = rest[..rest.len() - tail.len()].trim();
                return fault(
                    text,
                    format!(
                        "{digits} of what? Add a unit: {digits}s, {digits}ms, {digits}m, {digits}h"
                    ),
                );
            }
            None => {
                let hint = if unit == "M" { " (m is minutes)" } else { "" };
                return fault(text, format!("unknown unit {unit:?}{hint}; {DURATION}"));
            }
        };
        if factor >= last {
            return fault(text, format!("the larger unit comes first, each once; {DURATION}"));
        }
        last = factor;
        let part = number.times(factor.into()).and_then(|(part, _)| total.checked_add(part));
        match part {
            Some(sum) => total = sum,
            None => return fault(text, format!("more than 584 years; {DURATION}")),
        }
        rest = after.trim_start();
    }
    Ok(total)
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

/// A share of a whole, between 0 and 1: `1e-6`, `0.001`, `0.1%`, `1/1000`.
///
/// *Errors:* [`QuantityError`].
///
/// # Example
/// ```
/// use lately_stream::quantity::share;
/// assert_eq!(share("0.1%"), Ok(0.001));
/// assert_eq!(share("1/1000"), Ok(0.001));
/// ```
pub fn share(text: &str) -> Result<f64, QuantityError> {
    let plain = |text: &str| -> Option<f64> {
        let (_, rest) = Number::split(text)?;
        let digits: String = text.chars().filter(|c| !matches!(c, '_' | ',')).collect();
        if rest.is_empty() { digits.parse().ok() } else { None }
    };
    let trimmed = text.trim();
    let value = if let Some(percent) = trimmed.strip_suffix('%') {
        plain(percent.trim_end()).map(|value| value / 100.0)
    } else if let Some((part, whole)) = trimmed.split_once('/') {
        plain(part.trim()).zip(plain(whole.trim())).map(|(part, whole)| part / whole)
    } else {
        plain(trimmed)
    };
    match value {
        Some(value) if (0.0..=1.0).contains(&value) => Ok(value),
        _ => fault(text, SHARE),
    }
}

/// A size for people: `64 MiB`, `1.5 GiB`, `999 B`; rounded to two decimals.
///
/// *Guarantee:* [`bytes`] reads it back, within half a percent, and shows the same again.
pub fn display_bytes(value: u64) -> String {
    const NAMES: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let hundredths = |power: usize| {
        let unit = 1u128 << (10 * power);
        (u128::from(value) * 100 + unit / 2) / unit
    };
    let mut power = 0;
    // By the rounded value: 1,048,575 bytes are 1 MiB, not 1024 KiB.
    while power + 1 < NAMES.len() && hundredths(power) >= 102_400 {
        power += 1;
    }
    let shown = hundredths(power);
    format!("{} {}", fraction(shown / 100, shown % 100, 2), NAMES[power])
}

/// A count for people: `1,234,567`.
///
/// *Guarantee:* [`count`] reads it back exactly.
pub fn display_count(value: u64) -> String {
    let digits = value.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(c);
    }
    grouped
}

/// Nanoseconds for people: `200ms`, `1.5s`, `1m30s`, `2d3h`.
///
/// *Guarantee:* [`duration`] reads it back exactly.
pub fn display_duration(nanos: u64) -> String {
    let mut text = String::new();
    let mut left = nanos;
    for (unit, name, _) in UNITS.iter().filter(|(_, name, _)| matches!(*name, "d" | "h" | "m")) {
        if left >= *unit {
            text += &format!("{}{name}", left / unit);
            left %= unit;
        }
    }
    if text.is_empty() && left < 1_000_000_000 {
        // A single unit, of those below a second.
        let (unit, name, decimals) = match left {
            0 => return "0s".into(),
            1..1000 => (1, "ns", 0),
            1000..1_000_000 => (1000, "us", 3),
            _ => (1_000_000, "ms", 6),
        };
        return fraction((left / unit).into(), (left % unit).into(), decimals) + name;
    }
    if left > 0 {
        let (whole, part) = (left / 1_000_000_000, left % 1_000_000_000);
        text += &fraction(whole.into(), part.into(), 9);
        text.push('s');
    }
    text
}

/// `whole.part` with so many decimals, without the zeros at the end.
fn fraction(whole: u128, part: u128, decimals: usize) -> String {
    if part == 0 {
        return whole.to_string();
    }
    format!("{whole}.{part:0decimals$}").trim_end_matches('0').into()
}

/// `digits` · 10^−`scale`, not negative.
struct Number {
    digits: u128,
    scale: i32,
}

impl Number {
    /// The number at the front of `text`, and what follows it.
    fn split(text: &str) -> Option<(Self, &str)> {
        let bytes = text.as_bytes();
        let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
        let mut number = Number { digits: 0, scale: 0 };
        let mut at = 0;
        let mut lead = 0; // digits before the first comma
        let mut comma = None;
        if !digit(0) {
            return None;
        }
        while digit(at) || matches!(bytes.get(at), Some(b'_' | b',')) && digit(at + 1) {
            match bytes[at] {
                b',' => {
                    // Groups of three only: `1,5` is more likely a fraction than fifteen.
                    let expected = comma.map_or(lead <= 3, |last| at - last == 4);
                    let group = (1..=3).all(|i| digit(at + i)) && !digit(at + 4);
                    if !expected || !group {
                        return None;
                    }
                    comma = Some(at);
                }
                b'_' => {}
                c => {
                    lead += usize::from(comma.is_none());
                    number.push(c)?;
                }
            }
            at += 1;
        }
        if bytes.get(at) == Some(&b'.') && digit(at + 1) {
            at += 1;
            while digit(at) {
                number.push(bytes[at])?;
                number.scale += 1;
                at += 1;
            }
        }
        // An exponent only if digits follow: `1e` is an exa-something.
        if matches!(bytes.get(at), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
            if digit(at + 1 + sign) {
                let start = at + 1;
                at = start + sign;
                while digit(at) {
                    at += 1;
                }
                let exponent: i32 = text[start..at].parse().ok()?;
                number.scale = number.scale.checked_sub(exponent)?;
            }
        }
        Some((number, &text[at..]))
    }

    /// Adds a digit; `None` if there are more than any quantity needs.
    fn push(&mut self, c: u8) -> Option<()> {
        self.digits = self.digits.checked_mul(10)?.checked_add(u128::from(c - b'0'))?;
        Some(())
    }

    /// The number times `factor`, and whether that is whole; `None` if it is too large.
    fn times(&self, factor: u128) -> Option<(u64, bool)> {
        if self.scale <= 0 {
            let power = 10u128.checked_pow(self.scale.unsigned_abs());
            let value = match (self.digits, power) {
                (0, _) => 0,
                (digits, power) => digits.checked_mul(factor)?.checked_mul(power?)?,
            };
            return u64::try_from(value).ok().map(|value| (value, true));
        }
        // 18 decimals are kept, so that no product here overflows before the result does.
        const DECIMALS: u32 = 18;
        let surplus = self.scale.unsigned_abs().saturating_sub(DECIMALS);
        let (digits, cut) = match 10u128.checked_pow(surplus) {
            Some(power) => (self.digits / power, !self.digits.is_multiple_of(power)),
            None => (0, self.digits != 0),
        };
        let divisor = 10u128.pow(self.scale.unsigned_abs() - surplus);
        let whole = (digits / divisor).checked_mul(factor)?;
        let rest = (digits % divisor).checked_mul(factor)?;
        let value = whole.checked_add(rest / divisor)?;
        u64::try_from(value).ok().map(|value| (value, !cut && rest.is_multiple_of(divisor)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes() {
        for (text, value) in [
            ("0", 0),
            ("4096", 4096),
            ("64MiB", 64 << 20),
            ("64 mib", 64 << 20),
            ("1GB", 1_000_000_000),
            ("1kB", 1000),
            ("1KB", 1000),
            ("512k", 512 << 10),
            ("1M", 1 << 20),
            ("2g", 2 << 30),
            ("1.5GiB", 3 << 29),
            ("1.3k", 1331),
            ("1e6", 1_000_000),
            ("1e6 B", 1_000_000),
            ("1_000 bytes", 1000),
            ("1,000,000", 1_000_000),
            ("1E", 1 << 60),
            ("0.5000000000000000000000000000000000001MiB", 1 << 19),
            ("1e-999GiB", 0),
            ("1EiB", 1 << 60),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(bytes(text), Ok(value), "{text}");
        }
        for text in ["", "MiB", "-1", "64MiBs", "1.GB", "1,5GB", "16EiB", "1e99", "ib", "1ib", "∞"]
        {
            assert!(bytes(text).unwrap_err().to_string().contains("64MiB"), "{text}");
        }
    }

    #[test]
    fn counts() {
        for (text, value) in [
            ("100k", 100_000),
            ("1M", 1_000_000),
            ("2.5M", 2_500_000),
            ("2.5 m", 2_500_000),
            ("1e6", 1_000_000),
            ("1.5e3", 1500),
            ("1500e-2", 15),
            ("1_000_000", 1_000_000),
            ("1,000,000", 1_000_000),
            ("12,345", 12_345),
            ("3G", 3_000_000_000),
            ("3B", 3_000_000_000),
            ("0.001k", 1),
            ("0e99", 0),
            ("1.00000000000000000000000000000000", 1),
            ("100000000000000000000000000000000e-30", 100),
        ] {
            assert_eq!(count(text), Ok(value), "{text}");
        }
        for text in
            ["", "1.5", "1,00", "1000,000", "1,0000", "1,000,00", "k", "1kB", "1e-1", "20e18"]
        {
            assert!(count(text).unwrap_err().to_string().contains("100k"), "{text}");
        }
        assert!(count("1.2345k").unwrap_err().to_string().contains("not a whole number"));
    }

    #[test]
    fn durations() {
        const S: u64 = 1_000_000_000;
        for (text, value) in [
            ("0", 0),
            ("10s", 10 * S),
            ("200ms", S / 5),
            ("1.5h", 5400 * S),
            ("1m30s", 90 * S),
            ("1m 30s", 90 * S),
            ("5 min", 300 * S),
            ("7d", 604_800 * S),
            ("1w", 604_800 * S),
            ("2 days 3 hours", 183_600 * S),
            ("100us", 100_000),
            ("100µs", 100_000),
            ("50ns", 50),
            ("1.5e3ms", 1_500_000_000),
            ("0.5ns", 0),
            ("0s", 0),
        ] {
            assert_eq!(duration(text), Ok(value), "{text}");
        }
        let error = |text: &str| duration(text).unwrap_err().to_string();
        assert_eq!(error("10"), "\"10\": 10 of what? Add a unit: 10s, 10ms, 10m, 10h");
        assert!(error("1h30").contains("30 of what?"));
        assert!(error("1M").contains("m is minutes"));
        assert!(error("30s1m").contains("larger unit comes first"));
        assert!(error("1s1s").contains("larger unit comes first"));
        assert!(error("600y").contains("unknown unit"));
        assert!(error("300000d").contains("584 years"));
        for text in ["", "s", "-1s", "1.s", "ten seconds"] {
            assert!(error(text).contains("10s"), "{text}");
        }
    }

    #[test]
    fn shares() {
        for (text, value) in [
            ("1e-6", 1e-6),
            ("0.01", 0.01),
            ("1%", 0.01),
            ("0.1 %", 0.001),
            ("1/1,000", 1e-3),
            ("0", 0.0),
            ("1", 1.0),
        ] {
            assert_eq!(share(text), Ok(value), "{text}");
        }
        for text in ["", "2", "101%", "1/0", "0/0", "-0.1", "nan", "inf", "1/2/3", "%", "1e-6x"] {
            assert!(share(text).unwrap_err().to_string().contains("1e-6"), "{text}");
        }
    }

    #[test]
    fn shown() {
        assert_eq!(display_bytes(64 << 20), "64 MiB");
        assert_eq!(display_bytes(3 << 29), "1.5 GiB");
        assert_eq!(display_bytes(999), "999 B");
        assert_eq!(display_bytes((1 << 20) - 1), "1 MiB");
        assert_eq!(display_bytes(u64::MAX >> 1), "8 EiB");
        assert_eq!(display_count(1_234_567), "1,234,567");
        assert_eq!(display_count(999), "999");
        assert_eq!(display_duration(90_000_000_000), "1m30s");
        assert_eq!(display_duration(1_500_000_000), "1.5s");
        assert_eq!(display_duration(200_000_000), "200ms");
        assert_eq!(display_duration(183_600_000_000_000), "2d3h");
        assert_eq!(display_duration(0), "0s");
        assert_eq!(display_duration(1_500), "1.5us");
        assert_eq!(display_duration(60_000_000_001), "1m0.000000001s");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5000))]

        #[test]
        fn counts_round_trip(value: u64, shift in 0u32..64) {
            let value = value >> shift;
            prop_assert_eq!(count(&display_count(value)), Ok(value));
        }

        #[test]
        fn durations_round_trip(value: u64, shift in 0u32..64) {
            let value = value >> shift;
            prop_assert_eq!(duration(&display_duration(value)), Ok(value));
        }

        #[test]
        fn sizes_round_trip(value in 0u64..15 << 60, shift in 0u32..64) {
            let value = value >> shift;
            let text = display_bytes(value);
            let read = bytes(&text).unwrap();
            // Two digits behind the point, and a part of a byte that is cut off.
            let most = value as f64 * 0.005 + 1.0;
            prop_assert!(read.abs_diff(value) as f64 <= most, "{} {}", value, text);
            prop_assert_eq!(display_bytes(read), text);
        }

        #[test]
        fn any_text(text in "[0-9.,_eEkMGiBsmhdun% /+-]{0,20}|\\PC{0,20}") {
            let _ = (bytes(&text), count(&text), duration(&text), share(&text));
        }
    }
}
