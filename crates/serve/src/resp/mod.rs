//! The protocol: bytes to the positions of a command's arguments, and replies to bytes. Neither does any I/O nor
//! knows what commands mean.

mod limits;
mod parse;
mod write;

pub(crate) use limits::Limits;
pub(crate) use parse::{Parser, Span, Step};
pub(crate) use write::{Protocol, Reply};

/// A whole number as Redis reads it: an optional minus and digits, no leading zeros, no spaces.
pub(crate) fn integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let canonical = match digits {
        [b'0'] => text.len() == 1,
        [b'1'..=b'9', rest @ ..] => rest.len() < 19 && rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if !canonical {
        return None;
    }
    // Below zero, where there is a number more than above.
    let below = digits.iter().try_fold(0i64, |number, digit| {
        number.checked_mul(10)?.checked_sub(i64::from(digit - b'0'))
    })?;
    if digits.len() < text.len() { Some(below) } else { below.checked_neg() }
}
