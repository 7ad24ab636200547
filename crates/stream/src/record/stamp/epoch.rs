//! Numbers since 1970, exactly.

use super::Trouble;

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

/// Nanoseconds of an epoch number; `None` if the text is no number.
pub(super) fn parse(text: &[u8], unit: Option<Unit>) -> Option<Result<u64, Trouble>> {
    let decimal = match whole(text) {
        Some(digits) => Decimal { negative: false, digits: digits.into(), scale: 0 },
        None => Decimal::parse(text)?,
    };
    Some(decimal.nanos(unit))
}

/// The common case: up to 19 digits.
fn whole(text: &[u8]) -> Option<u64> {
    if text.len() > 19 {
        return None;
    }
    text.iter().try_fold(0, |n, c| c.is_ascii_digit().then(|| n * 10 + u64::from(c - b'0')))
}

/// `digits` · 10^−`scale`.
struct Decimal {
    negative: bool,
    digits: u128,
    scale: i32,
}

/// Digits past this many are far below a nanosecond, or far past 2554.
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

    fn nanos(&self, unit: Option<Unit>) -> Result<u64, Trouble> {
        if self.negative && self.digits > 0 {
            return Err(Trouble::Before1970);
        }
        let unit = match unit {
            Some(unit) => unit,
            None => Unit::by_size(self.shifted(0).ok_or(Trouble::TooLate)?),
        };
        let nanos = self.shifted(unit.exponent()).ok_or(Trouble::TooLate)?;
        u64::try_from(nanos).map_err(|_| Trouble::TooLate)
    }

    /// The number times 10^`by`, without what is past the point; `None` if that is too large.
    fn shifted(&self, by: u32) -> Option<u128> {
        let shift = i64::from(by) - i64::from(self.scale);
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
