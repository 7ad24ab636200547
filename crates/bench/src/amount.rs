//! Amounts on the command line: `8M`, `4.4M`, `1GB`.

/// Reads an amount: a decimal number, then optionally `k`, `M` or `G` (powers of 1000), then
/// optionally `B`. The result must be whole.
///
/// # Errors
/// With a reason for the user.
pub fn parse(text: &str) -> Result<u64, String> {
    let bare = text.strip_suffix('B').unwrap_or(text);
    let (number, unit) = match bare.char_indices().last() {
        Some((at, 'k')) => (&bare[..at], 3),
        Some((at, 'M')) => (&bare[..at], 6),
        Some((at, 'G')) => (&bare[..at], 9),
        _ => (bare, 0),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let refuse = || format!("`{text}` is not an amount like 1000, 4.4M or 1GB");
    if fraction.len() > unit {
        return Err(format!("`{text}` is not a whole number"));
    }
    let zeros = "0".repeat(unit - fraction.len());
    let digits = format!("{whole}{fraction}{zeros}");
    if whole.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(refuse());
    }
    digits.parse().map_err(|_| refuse())
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn amounts() {
        for (text, amount) in
            [("0", 0), ("25", 25), ("8M", 8_000_000), ("4.4M", 4_400_000), ("1GB", 1_000_000_000)]
        {
            assert_eq!(parse(text), Ok(amount), "{text}");
        }
        for text in ["", "M", ".5M", "1.5", "1.2345k", "-1", "1e6", "99999999999G", "+1"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
