//! The two walks over a scheme's fields: bits → URI and URI → bits.
//!
//! Both read the one table in [`super::schemes`], so they cannot drift apart.

use super::EpcError;
use super::bits::{Bits, Reader};
use super::schemes::{
    COMPANY_BITS, Field, Reference, Scheme, is_cage, is_text6, is_text7, unfold6,
};
use std::borrow::Cow;
use std::fmt::Write;

// ---- bits → URI ----

/// Writes the URI of a binary EPC after its `urn:epc:…:` and returns the scheme.
pub(super) fn decode(bytes: &[u8], tag: bool) -> Result<String, EpcError> {
    let Some((&header, rest)) = bytes.split_first() else { return Err(EpcError::Empty) };
    let scheme = Scheme::by_header(header).ok_or(EpcError::UnknownHeader(header))?;
    let wrong_length =
        || EpcError::Length { scheme: scheme.name, expected: scheme.bits, found: bytes.len() * 8 };
    if scheme.bits > 0 && bytes.len() != scheme.bits.div_ceil(16) * 2 {
        return Err(wrong_length());
    }
    let (kind, name) = match scheme.name.split_once('-') {
        Some((identity, _)) if !tag => ("id", identity),
        _ => ("tag", scheme.name),
    };
    let mut uri = format!("urn:epc:{kind}:{name}:");
    let start = uri.len();
    let mut reader = Reader::new(rest);
    for field in scheme.fields {
        let shown = !matches!(field, Field::Reserved { .. })
            && (tag || !matches!(field, Field::Filter { .. }));
        if shown && uri.len() > start {
            uri.push('.');
        }
        match decode_field(field, &mut reader, if shown { Some(&mut uri) } else { None }) {
            Some(Ok(())) => {}
            Some(Err((name, reason))) => return Err(scheme.fault(name, reason)),
            None => return Err(wrong_length()),
        }
    }
    let whole = (reader.taken() + 8).div_ceil(16) * 2 == bytes.len();
    if !whole {
        return Err(wrong_length());
    }
    if !reader.rest_is_zero() {
        return Err(scheme.fault("padding", "the bits after the last field are not zero".into()));
    }
    Ok(uri)
}

type FieldFault = (&'static str, String);

/// `None`: the bits end too early.
fn decode_field(
    field: &Field,
    reader: &mut Reader<'_>,
    uri: Option<&mut String>,
) -> Option<Result<(), FieldFault>> {
    let mut unseen = String::new();
    let uri = uri.unwrap_or(&mut unseen);
    // Writing to a String cannot fail.
    Some(match *field {
        Field::Filter { bits } | Field::Number { bits, .. } => {
            let _ = write!(uri, "{}", reader.take(bits)?);
            Ok(())
        }
        Field::Company { name, bits, digits, reference } => {
            return decode_company(name, bits, digits, reference, reader, uri);
        }
        Field::Digits { name, bits, digits } => padded(name, reader.take(bits)?, digits, uri),
        Field::NumericString { name, bits, max } => {
            let text = reader.take(bits)?.to_string();
            match text.strip_prefix('1') {
                Some(digits) if (1..=max as usize).contains(&digits.len()) => {
                    uri.push_str(digits);
                    Ok(())
                }
                _ => Err((name, format!("{text} is not 1 followed by 1 to {max} digits"))),
            }
        }
        Field::Text7 { name, bits } => decode_text7(name, bits, bits / 7, reader, uri)?,
        Field::Text6 { name, min, max } => decode_text6(name, min, max, reader, uri)?,
        Field::Cage { width } => {
            let mut code = String::new();
            for _ in 0..6 {
                code.push(char::from(unfold6(reader.take(width)? as u8, width)));
            }
            let trimmed = code.strip_prefix(' ').unwrap_or(&code);
            if trimmed.bytes().all(is_cage) {
                uri.push_str(trimmed);
                Ok(())
            } else {
                Err(("CAGE", format!("{code:?} is no CAGE code (5 of 0-9 A-Z) or DoDAAC (6)")))
            }
        }
        Field::Reserved { bits } => match reader.take(bits)? {
            0 => Ok(()),
            value => Err(("reserved", format!("the last {bits} bits are {value:#x}, not 0"))),
        },
    })
}

fn decode_company(
    name: &'static str,
    bits: u32,
    digits: u32,
    reference: Reference,
    reader: &mut Reader<'_>,
    uri: &mut String,
) -> Option<Result<(), FieldFault>> {
    let partition = reader.take(3)? as u32;
    let Some(&company_bits) = COMPANY_BITS.get(partition as usize) else {
        return Some(Err(("partition", "it is 7, but only 0 to 6 are defined".into())));
    };
    let company_digits = 12 - partition;
    if let Err(fault) = padded("company prefix", reader.take(company_bits)?, company_digits, uri) {
        return Some(Err(fault));
    }
    uri.push('.');
    let bits = bits.saturating_sub(company_bits);
    let digits = digits - company_digits;
    Some(match reference {
        Reference::Digits => padded(name, reader.take(bits)?, digits, uri),
        Reference::Number => {
            let value = reader.take(bits)?;
            if value < 10u128.pow(digits) {
                let _ = write!(uri, "{value}");
                Ok(())
            } else {
                Err((name, format!("{value} has more than {digits} digits")))
            }
        }
        Reference::Text7 => decode_text7(name, bits, digits, reader, uri)?,
        Reference::Text6 => decode_text6(name, 1, digits as usize, reader, uri)?,
    })
}

fn padded(
    name: &'static str,
    value: u128,
    digits: u32,
    uri: &mut String,
) -> Result<(), FieldFault> {
    if value >= 10u128.pow(digits) {
        return Err((name, format!("{value} has more than {digits} digits")));
    }
    if digits > 0 {
        let _ = write!(uri, "{value:0width$}", width = digits as usize);
    }
    Ok(())
}

fn decode_text7(
    name: &'static str,
    bits: u32,
    max: u32,
    reader: &mut Reader<'_>,
    uri: &mut String,
) -> Option<Result<(), FieldFault>> {
    let (mut ended, mut count, mut fault) = (false, 0, None);
    for _ in 0..bits / 7 {
        match reader.take(7)? as u8 {
            0 => ended = true,
            code if ended => fault = Some(format!("{code:#04x} follows after its end")),
            code if is_text7(code) => {
                count += 1;
                push_escaped(uri, code);
            }
            code => fault = Some(format!("{code:#04x} is not a character of table A-1")),
        }
    }
    if reader.take(bits % 7)? != 0 {
        fault = Some("its padding is not zero".into());
    }
    if count == 0 || count > max {
        fault.get_or_insert(format!("it has {count} characters, not 1 to {max}"));
    }
    Some(fault.map_or(Ok(()), |reason| Err((name, reason))))
}

fn decode_text6(
    name: &'static str,
    min: usize,
    max: usize,
    reader: &mut Reader<'_>,
    uri: &mut String,
) -> Option<Result<(), FieldFault>> {
    let mut count = 0;
    loop {
        let code = reader.take(6)? as u8;
        if code == 0 {
            break;
        }
        count += 1;
        let c = unfold6(code, 6);
        if !is_text6(c) || count > max {
            let reason = format!("{code:#04x} is not one of up to {max} characters 0-9 A-Z # - /");
            return Some(Err((name, reason)));
        }
        push_escaped(uri, c);
    }
    if count < min {
        return Some(Err((name, "it is empty".into())));
    }
    Some(Ok(()))
}

// ---- URI → bits ----

/// The bits of what follows `urn:epc:tag:`.
pub(super) fn encode(uri: &str) -> Result<Bits, EpcError> {
    let (name, rest) = uri.split_once(':').unwrap_or((uri, ""));
    let scheme = Scheme::by_name(name).ok_or_else(|| EpcError::UnknownScheme(name.into()))?;
    // The last component may hold dots: they are characters of a serial.
    encode_parts(scheme, rest.splitn(scheme.components(), '.'), false)
}

/// The bits of a scheme with these components. Where they may end early, `open`, it is the bits up
/// to there, a company prefix without what follows it included.
pub(super) fn encode_parts<'a>(
    scheme: &Scheme,
    mut parts: impl Iterator<Item = &'a str> + Clone,
    open: bool,
) -> Result<Bits, EpcError> {
    let (expected, all) = (scheme.components(), parts.clone());
    let wrong_count =
        || EpcError::Components { scheme: scheme.name, expected, found: all.clone().count() };
    let mut bits = Bits::new();
    let too_long = || EpcError::TooLong;
    bits.push(u128::from(scheme.header), 8).ok_or_else(too_long)?;
    for field in scheme.fields {
        let part = match field {
            Field::Reserved { bits: width } => {
                bits.push(0, *width).ok_or_else(too_long)?;
                continue;
            }
            _ => match parts.next() {
                None if open => return Ok(bits),
                part => part.ok_or_else(wrong_count)?,
            },
        };
        let pushed = if let Field::Company { name, bits: width, digits, reference } = *field {
            match parts.next() {
                None if open => {
                    encode_company_prefix(part, &mut bits)
                        .map_err(|(name, reason)| scheme.fault(name, reason))?
                        .ok_or_else(too_long)?;
                    return Ok(bits);
                }
                second => {
                    let second = second.ok_or_else(wrong_count)?;
                    encode_company(name, width, digits, reference, part, second, &mut bits)
                }
            }
        } else {
            encode_field(field, part, &mut bits)
        };
        match pushed {
            Ok(Some(())) => {}
            Ok(None) => return Err(EpcError::TooLong),
            Err((name, reason)) => return Err(scheme.fault(name, reason)),
        }
    }
    Ok(bits)
}

/// `Ok(None)`: no room left.
type Pushed = Result<Option<()>, FieldFault>;

fn encode_field(field: &Field, part: &str, out: &mut Bits) -> Pushed {
    match *field {
        Field::Filter { bits } => Ok(out.push(number("filter", part, bits)?, bits)),
        Field::Number { name, bits } => Ok(out.push(number(name, part, bits)?, bits)),
        Field::Digits { name, bits, digits } => {
            Ok(out.push(exact_digits(name, part, digits)?, bits))
        }
        Field::NumericString { name, bits, max } => {
            if part.is_empty() || part.len() > max as usize || !all_digits(part) {
                return Err((name, format!("{part:?} is not 1 to {max} digits")));
            }
            let value = part.parse::<u128>().unwrap_or(0) + 10u128.pow(part.len() as u32);
            Ok(out.push(value, bits))
        }
        Field::Text7 { name, bits } => encode_text7(name, part, bits, bits / 7, out),
        Field::Text6 { name, min, max } => encode_text6(name, part, min, max, out),
        Field::Cage { width } => {
            if !(5..=6).contains(&part.len()) || !part.bytes().all(is_cage) {
                let reason =
                    format!("{part:?} is no CAGE code (5 of 0-9 A-Z without I, O) or DoDAAC (6)");
                return Err(("CAGE", reason));
            }
            let mut code = [b' '; 6];
            code[6 - part.len()..].copy_from_slice(part.as_bytes());
            let mask = (1 << width) - 1;
            Ok(code.iter().try_for_each(|&c| out.push(u128::from(c) & mask, width)))
        }
        // Walked by the caller.
        Field::Company { .. } | Field::Reserved { .. } => Ok(Some(())),
    }
}

fn encode_company(
    name: &'static str,
    bits: u32,
    digits: u32,
    reference: Reference,
    company: &str,
    part: &str,
    out: &mut Bits,
) -> Pushed {
    if encode_company_prefix(company, out)?.is_none() {
        return Ok(None);
    }
    let company_digits = company.len() as u32;
    let company_bits = COMPANY_BITS[12 - company_digits as usize];
    let bits = bits.saturating_sub(company_bits);
    let left = digits - company_digits;
    match reference {
        Reference::Digits => {
            let value = exact_digits(name, part, left).map_err(|(name, reason)| {
                let why = format!("because company prefix and {name} have {digits} together");
                (name, format!("{reason}, {why}"))
            })?;
            Ok(out.push(value, bits))
        }
        Reference::Number => {
            let value = number(name, part, bits)?;
            if value >= 10u128.pow(left) {
                return Err((name, format!("{part} has more than {left} digits")));
            }
            Ok(out.push(value, bits))
        }
        Reference::Text7 => encode_text7(name, part, bits, left, out),
        Reference::Text6 => encode_text6(name, part, 1, left as usize, out),
    }
}

/// Partition value and company prefix.
fn encode_company_prefix(company: &str, out: &mut Bits) -> Pushed {
    if !(6..=12).contains(&company.len()) || !all_digits(company) {
        return Err(("company prefix", format!("{company:?} is not 6 to 12 digits")));
    }
    let partition = 12 - company.len() as u32;
    let company_bits = COMPANY_BITS[partition as usize];
    let value = company.parse().unwrap_or(0);
    Ok(out.push(u128::from(partition), 3).and_then(|()| out.push(value, company_bits)))
}

fn number(name: &'static str, part: &str, bits: u32) -> Result<u128, FieldFault> {
    let max = (1u128 << bits) - 1;
    let canonical = all_digits(part) && !part.is_empty() && (part == "0" || !part.starts_with('0'));
    match part.parse::<u128>() {
        Ok(value) if canonical && value <= max => Ok(value),
        _ => Err((name, format!("{part:?} is not a number from 0 to {max} without leading zeros"))),
    }
}

fn exact_digits(name: &'static str, part: &str, digits: u32) -> Result<u128, FieldFault> {
    if part.len() != digits as usize || !all_digits(part) {
        return Err((name, format!("{part:?} is not {digits} digits")));
    }
    Ok(part.parse().unwrap_or(0))
}

fn all_digits(part: &str) -> bool {
    part.bytes().all(|c| c.is_ascii_digit())
}

fn encode_text7(name: &'static str, part: &str, bits: u32, max: u32, out: &mut Bits) -> Pushed {
    let text = unescape(name, part)?;
    if text.is_empty() || text.len() > max as usize || !text.iter().copied().all(is_text7) {
        let reason = format!(
            "{part:?} is not 1 to {max} characters of 0-9 A-Z a-z _ ! \" % & ' ( ) * + , - . / : ; < = > ? (with \" % & / < > ? as %XX)"
        );
        return Err((name, reason));
    }
    let rest = bits - 7 * text.len() as u32;
    Ok(text.iter().try_for_each(|&c| out.push(u128::from(c), 7)).and_then(|()| out.push(0, rest)))
}

fn encode_text6(name: &'static str, part: &str, min: usize, max: usize, out: &mut Bits) -> Pushed {
    let text = unescape(name, part)?;
    if text.len() < min || text.len() > max || !text.iter().copied().all(is_text6) {
        let reason = format!(
            "{part:?} is not {min} to {max} characters of 0-9 A-Z - # / (# as %23, / as %2F)"
        );
        return Err((name, reason));
    }
    Ok(text
        .iter()
        .try_for_each(|&c| out.push(u128::from(c & 0x3F), 6))
        .and_then(|()| out.push(0, 6)))
}

/// `%2F` → `/`.
fn unescape<'a>(name: &'static str, part: &'a str) -> Result<Cow<'a, [u8]>, FieldFault> {
    if !part.contains('%') {
        return Ok(Cow::Borrowed(part.as_bytes()));
    }
    let mut text = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((&c, tail)) = rest.split_first() {
        rest = tail;
        if c != b'%' {
            text.push(c);
            continue;
        }
        let (Some(high), Some(low)) = (
            rest.first().and_then(|&c| super::nibble(c)),
            rest.get(1).and_then(|&c| super::nibble(c)),
        ) else {
            return Err((name, format!("{part:?} has a % without two hex digits")));
        };
        text.push(high << 4 | low);
        rest = &rest[2..];
    }
    Ok(Cow::Owned(text))
}

fn push_escaped(uri: &mut String, c: u8) {
    if matches!(c, b'"' | b'%' | b'&' | b'/' | b'<' | b'>' | b'?' | b'#') {
        let _ = write!(uri, "%{c:02X}");
    } else {
        uri.push(char::from(c));
    }
}
