//! Numbers since 1970, exactly.

use super::error::Trouble;
use super::{Time, unset};
use jiff::Timestamp;

/// What a number counts.
#[derive(Clone, Copy)]
pub(super) enum Unit {
    Seconds,
    Millis,
    Micros,
    Nanos,
}

impl Unit {
    /// A nanosecond is one of these to the power of −`exponent` of ten.
    fn exponent(self) -> u32 {
        match self {
            Unit::Seconds => 9,
            Unit::Millis => 6,
            Unit::Micros => 3,
            Unit::Nanos => 0,
        }
    }

    /// The ranges documented at [`super::TimeFormat::Auto`].
    fn by_size(integer: u128) -> Self {
        const SECONDS_END: u128 = 10_000_000_000;
        const MILLIS_END: u128 = 1000 * SECONDS_END;
        const MICROS_END: u128 = 1000 * MILLIS_END;
        match integer {
            0..SECONDS_END => Unit::Seconds,
            SECONDS_END..MILLIS_END => Unit::Millis,
            MILLIS_END..MICROS_END => Unit::Micros,
            _ => Unit::Nanos,
        }
    }
}

/// Nanoseconds of an epoch number whose unit is determined by its size; `None` if the text is no
/// number.
pub(super) fn by_size(text: &[u8]) -> Option<Result<Time, Trouble>> {
    /// 1990 to 2100.
    const BELIEVED: std::ops::Range<i64> = 631_152_000 * S..4_133_980_800 * S;
    /// Nanoseconds within 1990 are today's .NET ticks, of 100 ns since the year 1.
    const YEAR_1991: i64 = 662_688_000 * S;
    const S: i64 = 1_000_000_000;
    let decimal = decimal(text)?;
    let Some(integer) = decimal.shifted(0) else { return Some(Err(decimal.outside())) };
    let unit = Unit::by_size(integer);
    let since = if matches!(unit, Unit::Nanos) { YEAR_1991 } else { BELIEVED.start };
    Some(match decimal.nanos(unit) {
        Ok(time) if time.nanos().is_some_and(|ns| (since..BELIEVED.end).contains(&ns)) => Ok(time),
        Ok(_) | Err(Trouble::TooLate | Trouble::TooEarly) => {
            Err(decimal.disbelieved(integer, unit))
        }
        unset => unset,
    })
}

/// Nanoseconds of an epoch number in this unit.
pub(super) fn in_unit(text: &[u8], unit: Unit) -> Result<Time, Trouble> {
    let number = decimal(text).ok_or(Trouble::Unreadable(
        "a unit is stated, so a number is expected, for example 1755033487",
    ))?;
    number.nanos(unit)
}

/// What a number that states no unit and is no epoch may be.
fn perhaps(integer: u128) -> &'static str {
    // All for the years 1990 to 2100.
    match integer {
        32_874..73_416 => {
            "; it may be a serial day of a spreadsheet (Excel), to be exported as a date"
        }
        12_275_625_600_000_000..15_778_454_400_000_000 => {
            "; it may be WebKit's microseconds since 1601, to be converted to an epoch"
        }
        122_756_256_000_000_000..157_784_544_000_000_000 => {
            "; it may be a FILETIME of Windows (100 ns since 1601), to be converted to an epoch"
        }
        627_667_488_000_000_000..662_695_776_000_000_000 => {
            "; it may be ticks of .NET (100 ns since the year 1), to be converted to an epoch"
        }
        _ => "",
    }
}

fn decimal(text: &[u8]) -> Option<Decimal> {
    plain(text).or_else(|| Decimal::parse(text))
}

/// The common case: up to 19 digits, perhaps with a point before, among or after them.
fn plain(text: &[u8]) -> Option<Decimal> {
    if text.len() > 20 {
        return None;
    }
    let (mut digits, mut point) = (0_u64, None);
    for (at, &c) in text.iter().enumerate() {
        match c {
            // 20 of them are too many, and are found to be below.
            b'0'..=b'9' => digits = digits.wrapping_mul(10).wrapping_add(u64::from(c - b'0')),
            b'.' if point.is_none() => point = Some(at),
            _ => return None,
        }
    }
    let count = text.len() - usize::from(point.is_some());
    let scale = point.map_or(0, |at| text.len() - 1 - at) as i32;
    (1..20).contains(&count).then_some(Decimal { negative: false, digits: digits.into(), scale })
}

/// `digits` · 10^−`scale`.
struct Decimal {
    negative: bool,
    digits: u128,
    scale: i32,
}

/// Powers of ten up to the nanoseconds of a second.
const POWERS: [u64; 10] = {
    let mut powers = [1; 10];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = 10 * powers[at - 1];
        at += 1;
    }
    powers
};

/// Digits past this many are far below a nanosecond, or far past 2262.
const MAX_DIGITS: u128 = 10u128.pow(37);

impl Decimal {
    /// `[-]digits[.digits][e[±]digits]`.
    fn parse(text: &[u8]) -> Option<Self> {
        let (negative, text) = match text {
            [b'-', rest @ ..] => (true, rest),
            _ => (false, text),
        };
        let mut decimal = Decimal { negative, digits: 0, scale: 0 };
        let (mut seen, mut point) = (false, false);
        for (i, &c) in text.iter().enumerate() {
            match c {
                b'0'..=b'9' => {
                    seen = true;
                    if decimal.digits < MAX_DIGITS {
                        decimal.digits = decimal.digits * 10 + u128::from(c - b'0');
                        decimal.scale += i32::from(point);
                    } else if !point {
                        decimal.scale = decimal.scale.saturating_sub(1);
                    }
                }
                b'.' if !point => point = true,
                b'e' | b'E' if seen => {
                    let exponent = exponent(&text[i + 1..])?;
                    decimal.scale = decimal.scale.saturating_sub(exponent);
                    return Some(decimal);
                }
                _ => return None,
            }
        }
        seen.then_some(decimal)
    }

    fn nanos(&self, unit: Unit) -> Result<Time, Trouble> {
        let nanos = self.shifted(unit.exponent()).and_then(|nanos| i64::try_from(nanos).ok());
        match nanos {
            Some(nanos) if !self.is_minus_one() => {
                super::nanos(if self.negative { -i128::from(nanos) } else { nanos.into() })
            }
            _ => Err(self.outside()),
        }
    }

    /// Why a number that states no unit is not taken for an epoch, and what it may be.
    #[cold]
    fn disbelieved(&self, integer: u128, unit: Unit) -> Trouble {
        if unset::number(self.negative, integer) {
            return Trouble::Unset;
        }
        let name = match unit {
            Unit::Seconds => "seconds",
            Unit::Millis => "milliseconds",
            Unit::Micros => "microseconds",
            Unit::Nanos => "nanoseconds",
        };
        let nanos = self.shifted(unit.exponent()).and_then(|nanos| i128::try_from(nanos).ok());
        let nanos = nanos.map(|nanos| if self.negative { -nanos } else { nanos });
        let Some(Ok(moment)) = nanos.map(Timestamp::from_nanosecond) else { return self.outside() };
        Trouble::Explained(format!(
            "as {name} since 1970 it is {}, and without a unit only 1990 to 2100 is believed{}; if it is an \
             epoch, state its unit: --time-format s, ms, us or ns",
            moment.strftime("%Y-%m-%d"),
            perhaps(integer)
        ))
    }

    fn is_minus_one(&self) -> bool {
        self.negative && self.shifted(9) == Some(1_000_000_000)
    }

    /// What is wrong with a number that is no moment of 64 bits.
    #[cold]
    fn outside(&self) -> Trouble {
        let is_unset = |integer| unset::number(self.negative, integer);
        if self.digits == 0 || self.is_minus_one() || self.shifted(0).is_some_and(is_unset) {
            Trouble::Unset
        } else if self.negative {
            Trouble::TooEarly
        } else {
            Trouble::TooLate
        }
    }

    /// The number times 10^`by`, without what is past the point; `None` if that is too large.
    fn shifted(&self, by: u32) -> Option<u128> {
        let shift = i64::from(by) - i64::from(self.scale);
        // Of most times, without wide arithmetic.
        let power = POWERS.get(shift.unsigned_abs() as usize);
        if let (Some(power), Ok(digits)) = (power, u64::try_from(self.digits)) {
            if shift < 0 {
                return Some((digits / power).into());
            }
            if let Some(shifted) = digits.checked_mul(*power) {
                return Some(shifted.into());
            }
        }
        let factor = u32::try_from(shift.abs()).ok().and_then(|n| 10u128.checked_pow(n));
        match factor {
            _ if self.digits == 0 => Some(0),
            Some(factor) if shift >= 0 => self.digits.checked_mul(factor),
            Some(factor) => Some(self.digits / factor),
            None => (shift < 0).then_some(0),
        }
    }
}

fn exponent(text: &[u8]) -> Option<i32> {
    let (sign, digits) = match text {
        [b'-', rest @ ..] => (-1, rest),
        [b'+', rest @ ..] => (1, rest),
        _ => (1, text),
    };
    if digits.is_empty() {
        return None;
    }
    digits
        .iter()
        .try_fold(0i32, |n, c| {
            c.is_ascii_digit().then(|| n.saturating_mul(10).saturating_add(i32::from(c - b'0')))
        })
        .map(|n| n.min(1_000_000_000) * sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_numbers_are_read_as_any_decimal_is() {
        let of = |number: Decimal| (number.negative, number.digits, number.scale);
        for text in [
            "1700000000.123",
            ".5",
            "5.",
            "0.0",
            "9999999999.999999999",
            "9.999999999999999999",
            "5",
            "0",
            "1700000000",
            "9999999999999999999",
        ] {
            let text = text.as_bytes();
            assert_eq!(plain(text).map(of), Decimal::parse(text).map(of));
            assert!(plain(text).is_some());
        }
        for text in ["", ".", "1.2.3", "-1.5", "1.5e3", "1 .5", "1234567890.12345678901"] {
            assert!(plain(text.as_bytes()).is_none(), "{text}");
        }
        assert!(plain(b"12345678901234567890").is_none());
    }

    #[test]
    fn numbers_are_shifted_as_wide_arithmetic_shifts_them() {
        let mut random = oorandom::Rand64::new(3);
        for _ in 0..20_000 {
            let digits = random.rand_u64() >> random.rand_range(0..64);
            let scale = random.rand_range(0..25) as i32 - 5;
            let number = Decimal { negative: false, digits: digits.into(), scale };
            for by in [0, 3, 9] {
                let shift = by as i32 - scale;
                let power = 10u128.pow(shift.unsigned_abs());
                let wide = u128::from(digits);
                let expected = if shift < 0 { Some(wide / power) } else { wide.checked_mul(power) };
                assert_eq!(number.shifted(by), expected, "{digits} {scale} {by}");
            }
        }
    }
}
