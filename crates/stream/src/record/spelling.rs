//! One spelling for what can be written in many ways: addresses, numbers, UUIDs, letters of either case.

use super::number::address;
use std::net::{IpAddr, Ipv6Addr};

/// Appends an address as it is usually written; one of IPv4 that is mapped into IPv6 is one of IPv4.
/// `false`, and nothing written, if the text is no address.
pub(super) fn ip(text: &[u8], out: &mut Vec<u8>) -> bool {
    let Some(bits) = address(text.trim_ascii()) else { return false };
    let six = Ipv6Addr::from_bits(bits);
    let address = six.to_ipv4_mapped().map_or(IpAddr::V6(six), IpAddr::V4);
    out.extend_from_slice(address.to_string().as_bytes());
    true
}

/// Appends a UUID in lower case and with hyphens. It may be in braces, after `urn:uuid:`, or without
/// hyphens. `false`, and nothing written, if the text is none.
pub(super) fn uuid(text: &[u8], out: &mut Vec<u8>) -> bool {
    const URN: &[u8] = b"urn:uuid:";
    let mut text = text.trim_ascii();
    if text.get(..URN.len()).is_some_and(|start| start.eq_ignore_ascii_case(URN)) {
        text = &text[URN.len()..];
    } else if let [b'{', inner @ .., b'}'] = text {
        text = inner;
    }
    let is_hyphen = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    let is_written = |(at, c): (usize, &u8)| {
        if is_hyphen(at) { *c == b'-' } else { c.is_ascii_hexdigit() }
    };
    match text.len() {
        36 if text.iter().enumerate().all(is_written) => {
            out.extend(text.iter().map(u8::to_ascii_lowercase));
        }
        32 if text.iter().all(u8::is_ascii_hexdigit) => {
            for (at, c) in text.iter().enumerate() {
                if matches!(at, 8 | 12 | 16 | 20) {
                    out.push(b'-');
                }
                out.push(c.to_ascii_lowercase());
            }
        }
        _ => return false,
    }
    true
}

/// Appends a decimal number by its value, exactly: its digits without zeros at either end, and the
/// power of ten of the last one. `false`, and nothing written, if the text is no number.
pub(super) fn number(text: &[u8], out: &mut Vec<u8>) -> bool {
    let text = text.trim_ascii();
    let (sign, text) = match text {
        [b'-', rest @ ..] => (&b"-"[..], rest),
        [b'+', rest @ ..] => (&b""[..], rest),
        _ => (&b""[..], text),
    };
    let at = text.iter().position(|c| matches!(c, b'e' | b'E'));
    let (mantissa, exponent) = at.map_or((text, None), |at| (&text[..at], Some(&text[at + 1..])));
    let Some(mut power) = exponent.map_or(Some(0), power_of_ten) else { return false };
    let point = mantissa.iter().position(|c| *c == b'.');
    let (whole, fraction) =
        point.map_or((mantissa, &b""[..]), |at| (&mantissa[..at], &mantissa[at + 1..]));
    let digits = || whole.iter().chain(fraction);
    if digits().next().is_none() || !digits().all(u8::is_ascii_digit) {
        return false;
    }
    power -= fraction.len() as i64;
    let zeros = digits().rev().take_while(|c| **c == b'0').count();
    let count = whole.len() + fraction.len() - zeros;
    if count == 0 {
        out.push(b'0');
        return true;
    }
    power += zeros as i64;
    out.extend_from_slice(sign);
    out.extend(digits().take(count).skip_while(|c| **c == b'0'));
    if power != 0 {
        out.extend_from_slice(format!("e{power}").as_bytes());
    }
    true
}

fn power_of_ten(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    text.parse::<i32>().ok().map(i64::from)
}

/// Appends a text without regard to case: every letter as Unicode maps it to upper and then to lower
/// case. Bytes that are no UTF-8 are kept, and of their text only ASCII letters are mapped.
pub(super) fn fold(text: &[u8], out: &mut Vec<u8>) {
    match std::str::from_utf8(text) {
        Ok(text) if !text.is_ascii() => {
            let mut bytes = [0; 4];
            for c in text.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase) {
                out.extend_from_slice(c.encode_utf8(&mut bytes).as_bytes());
            }
        }
        _ => out.extend(text.iter().map(u8::to_ascii_lowercase)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(spell: fn(&[u8], &mut Vec<u8>) -> bool, text: &str) -> Option<String> {
        let mut out = Vec::new();
        spell(text.as_bytes(), &mut out).then(|| String::from_utf8(out).unwrap_or_default())
    }

    #[test]
    fn numbers_are_their_value() {
        for (texts, value) in [
            (&["1", "1.0", "+1", "01", "1e0", "10e-1", "0.1E1", "1."][..], "1"),
            (&["0", "-0", "0.000", "0e9", "+0.", ".0"], "0"),
            (&["-2.50", "-25e-1", "-.25e1"], "-25e-1"),
            (&["1000", "1e3", "1.000E+3"], "1e3"),
            (&["2882429806056571125"], "2882429806056571125"),
        ] {
            for text in texts {
                assert_eq!(written(number, text).as_deref(), Some(value), "{text}");
            }
        }
        for text in ["", "-", ".", "e5", "1e", "1e99999999999", "0x10", "1,5", "NaN", "--1"] {
            assert_eq!(written(number, text), None, "{text}");
        }
    }

    #[test]
    fn addresses_and_uuids_have_one_spelling() {
        for text in ["2001:db8::1", "2001:0DB8:0:0:0:0:0:1", " 2001:db8:0::1"] {
            assert_eq!(written(ip, text).as_deref(), Some("2001:db8::1"));
        }
        for text in ["10.0.0.1", "::ffff:10.0.0.1", "::FFFF:0a00:1"] {
            assert_eq!(written(ip, text).as_deref(), Some("10.0.0.1"));
        }
        assert_eq!(written(ip, "10.0.0.1:80"), None);
        let one = "6f9619ff-8b86-d011-b42d-00cf4fc964ff";
        for text in [
            "6F9619FF-8B86-D011-B42D-00CF4FC964FF",
            "{6f9619ff-8b86-d011-b42d-00cf4fc964ff}",
            "URN:uuid:6f9619ff-8b86-d011-b42d-00cf4fc964ff",
            "6f9619ff8b86d011b42d00cf4fc964ff",
        ] {
            assert_eq!(written(uuid, text).as_deref(), Some(one));
        }
        for text in ["6f9619ff-8b86-d011-b42d-00cf4fc964f", "6f9619ff8b86-d011-b42d-00cf4fc964ff-"]
        {
            assert_eq!(written(uuid, text), None);
        }
    }

    #[test]
    fn letters_are_folded() {
        let folded = |text: &str| {
            let mut out = Vec::new();
            fold(text.as_bytes(), &mut out);
            out
        };
        for (one, other) in [("ÄB", "äb"), ("straße", "STRASSE"), ("ΟΔΟΣ", "οδος"), ("ſ", "S")]
        {
            assert_eq!(folded(one), folded(other), "{one}");
        }
        let mut out = Vec::new();
        fold(b"A\xFFB", &mut out);
        assert_eq!(out, b"a\xFFb");
    }
}
