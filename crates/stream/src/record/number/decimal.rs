//! Numbers with a fraction.

use super::MIDDLE;

/// Digits after the point that count.
const PLACES: i32 = 9;

/// One, in the last digit that counts.
pub(super) const UNIT: u128 = 10_u128.pow(PLACES as u32);

/// A sign, digits with or without a point, and perhaps an exponent; in units of the last place,
/// rounded down, so that the order of numbers is kept. `None` for anything else, and for more than
/// ±1.7e29.
pub(super) fn parse(text: &[u8]) -> Option<u128> {
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let (text, exponent) = match text.iter().position(|c| matches!(c, b'e' | b'E')) {
        Some(at) => (text.get(..at)?, exponent(text.get(at + 1..)?)?),
        None => (text, 0),
    };
    let mut parts = text.splitn(2, |&c| c == b'.');
    let (before, after) = (parts.next()?, parts.next().unwrap_or_default());
    if before.is_empty() && after.is_empty() {
        return None;
    }
    let (mut value, mut shift) = (0_u128, exponent.checked_add(PLACES)?);
    // What is cut off below the last place is not nothing.
    let mut rest = false;
    for (at, &digit) in before.iter().chain(after).enumerate() {
        let digit = u128::from(digit.wrapping_sub(b'0'));
        if digit > 9 {
            return None;
        }
        match value.checked_mul(10).and_then(|value| value.checked_add(digit)) {
            Some(more) => {
                value = more;
                shift = shift.checked_sub(i32::from(at >= before.len()))?;
            }
            None => {
                rest |= digit > 0;
                shift = shift.checked_add(i32::from(at < before.len()))?;
            }
        }
    }
    if value > 0 && shift > 0 {
        value = value.checked_mul(10_u128.checked_pow(shift.unsigned_abs())?)?;
    } else if shift < 0 {
        let divisor = 10_u128.checked_pow(shift.unsigned_abs());
        rest |= divisor.map_or(value > 0, |divisor| !value.is_multiple_of(divisor));
        value = divisor.map_or(0, |divisor| value / divisor);
    }
    if negative {
        MIDDLE.checked_sub(value)?.checked_sub(u128::from(rest))
    } else {
        MIDDLE.checked_add(value)
    }
}

fn exponent(text: &[u8]) -> Option<i32> {
    // One so large that nothing but 0 has it is none.
    let text = std::str::from_utf8(text).ok()?;
    text.parse::<i32>().ok().filter(|exponent| exponent.unsigned_abs() < 10_000)
}
