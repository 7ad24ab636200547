//! One tag, one key: EPCs in every spelling that readers and middleware print.
//!
//! The same tag arrives as hex from one reader, as base64 from the next, as `b'3034…'` from a
//! Python script and as a URI from EPCIS. [`normalise`] turns all of them into one key;
//! [`Epc`] shows what a tag says.

mod bits;
mod pattern;
mod schemes;
#[cfg(test)]
#[expect(non_snake_case, reason = "named after the acceptance cases")]
mod tests;
mod uri;

use base64::Engine;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bits::{Bits, MAX_BYTES};
pub(crate) use pattern::{fault, number, pattern};
use schemes::Scheme;
use std::fmt;
use std::str::FromStr;

/// First byte of the key of an EPC.
const BINARY: u8 = b'E';
/// First byte of the key of anything else.
const TEXT: u8 = b'T';

/// An inner hex text this long (96 bits) is taken for the EPC, a shorter one for chance.
const MIN_INNER_DIGITS: usize = 24;

/// Appends the key of the tag that `text` spells to `out`; false if it is no EPC.
///
/// The rules, in this order; the first that fits decides:
/// 1. Space around is dropped, then `b'…'` or `b"…"` (Python), `'…'` or `"…"`. Within Python's
///    bytes, escapes such as `\xe2` are resolved, and then the bytes are the EPC.
/// 2. `urn:epc:raw:…` (hex or decimal) and `urn:epc:tag:…` are encoded to the tag's bits.
/// 3. An even number of hex digits is hex, in either case, after an optional `0x`. Between groups
///    of equal, even length there may be one kind of separator: space, `-` or `:`. What is all hex
///    digits is therefore never unpadded base64: for 96 bits the two meet once in 10^7 tags.
/// 4. base64 of whole 16-bit words, in the standard or the URL alphabet, with padding or (from
///    4 bytes on) without; the unused bits must be zero.
/// 5. If the bytes found are themselves 24 or more ASCII hex digits, those are the EPC (`3330…`).
/// 6. A known scheme that is printed to the byte is filled up to its last 16-bit word.
///
/// All else, a pure identity (`urn:epc:id:…`, which lacks the filter bits of the tag) among it, is
/// its own key: the text without the space around it.
///
/// *Guarantee:* two spellings of one tag give equal keys; the key of an EPC never equals the key
/// of a text; different EPCs (as the rules read them), and different texts, give different keys.
/// Never fails.
///
/// *Cost:* one pass over hex or base64, without allocation once `out` has room; a tag URI costs
/// one step a bit, and allocates only for escapes such as `%2F`.
///
/// # Example
/// ```
/// use lately_stream::epc::normalise;
/// let key = |text: &str| {
///     let mut key = Vec::new();
///     normalise(text.as_bytes(), &mut key);
///     key
/// };
/// assert_eq!(key("4oARkaUDAGXybMv_"), key("e2801191a5030065f26ccbff"));
/// assert_eq!(
///     key("urn:epc:tag:sgtin-96:3.0614141.812345.6789"),
///     key("3074257BF7194E4000001A85"),
/// );
/// ```
pub fn normalise(text: &[u8], out: &mut Vec<u8>) -> bool {
    let start = out.len();
    out.push(BINARY);
    if decode(text, out).is_ok() {
        return true;
    }
    out.truncate(start);
    out.push(TEXT);
    out.extend_from_slice(text.trim_ascii());
    false
}

/// How a tag was spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// Hex digits, perhaps with `0x` or separators.
    Hex,
    /// Python's `b'…'`.
    PythonBytes,
    /// base64, standard alphabet.
    Base64,
    /// base64, URL alphabet.
    Base64Url,
    /// Any of the above, of the ASCII hex digits of the EPC.
    HexOfHex,
    /// `urn:epc:raw:…`
    RawUri,
    /// `urn:epc:tag:…`
    TagUri,
}

impl fmt::Display for Spelling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Spelling::Hex => "hex",
            Spelling::PythonBytes => "Python bytes",
            Spelling::Base64 => "base64",
            Spelling::Base64Url => "base64url",
            Spelling::HexOfHex => "hex of hex digits",
            Spelling::RawUri => "raw URI",
            Spelling::TagUri => "tag URI",
        })
    }
}

/// What is wrong with an EPC, or with its spelling.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EpcError {
    /// Nothing there.
    Empty,
    /// None of the spellings.
    NotAnEpc,
    /// More than the 496 bits a tag can hold.
    TooLong,
    /// A `urn:epc:id:`: it names an object, not a tag.
    IdUri,
    /// A `urn:epc:raw:` that is not `LENGTH.xHEX`.
    RawUri,
    /// No scheme has this header byte.
    UnknownHeader(u8),
    /// A tag URI of an unknown scheme.
    UnknownScheme(String),
    /// The bits are more or fewer than the scheme has.
    Length {
        /// The scheme, as in its tag URI.
        scheme: &'static str,
        /// Bits it has; 0 if that varies.
        expected: usize,
        /// Bits found.
        found: usize,
    },
    /// A tag URI with too few components.
    Components {
        /// The scheme, as in its tag URI.
        scheme: &'static str,
        /// How many components it has.
        expected: usize,
        /// How many were found.
        found: usize,
    },
    /// A field holds what it cannot hold.
    Field {
        /// The scheme, as in its tag URI.
        scheme: &'static str,
        /// The field.
        field: &'static str,
        /// What is wrong and what is expected.
        reason: String,
    },
    /// A pattern that stands for no interval of tags: why, and what to write.
    Pattern(String),
}

impl fmt::Display for EpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EpcError::Empty => f.write_str("empty, expected an EPC"),
            EpcError::NotAnEpc => f.write_str(
                "not an EPC: expected hex (an even number of digits), base64, b'…', urn:epc:raw:… \
                 or urn:epc:tag:…, for example 3074257BF7194E4000001A85",
            ),
            EpcError::IdUri => f.write_str(
                "an id URI names the object, not the tag: it has no filter value and no length, \
                 so it has no bits; give the tag URI (urn:epc:tag:…)",
            ),
            EpcError::TooLong => write!(f, "more than the {} bits a tag holds", MAX_BYTES * 8),
            EpcError::RawUri => f.write_str(
                "expected urn:epc:raw:LENGTH.xHEX with no more bits than LENGTH, for example \
                 urn:epc:raw:96.x3074257BF7194E4000001A85",
            ),
            EpcError::UnknownHeader(header) => {
                write!(f, "no EPC scheme has the header {header:02X}; known are 2C to 41")
            }
            EpcError::UnknownScheme(name) => {
                write!(f, "unknown scheme {name:?}; known are")?;
                Scheme::names().try_for_each(|name| write!(f, " {name}"))
            }
            EpcError::Length { scheme, expected: 0, found } => {
                write!(f, "{scheme}: its fields do not end with the last word of {found} bits")
            }
            EpcError::Length { scheme, expected, found } => {
                write!(f, "{scheme}: has {expected} bits, in whole 16-bit words, not {found}")
            }
            EpcError::Components { scheme, expected, found } => {
                write!(f, "{scheme}: has {expected} components between dots, not {found}")
            }
            EpcError::Field { scheme, field, reason } => write!(f, "{scheme}: {field}: {reason}"),
            EpcError::Pattern(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for EpcError {}

/// The EPC of a tag: its bits, in whole bytes.
///
/// # Example
/// ```
/// use lately_stream::epc::Epc;
/// let epc: Epc = "3074257BF7194E4000001A85".parse()?;
/// assert_eq!(epc.to_tag_uri()?, "urn:epc:tag:sgtin-96:3.0614141.812345.6789");
/// assert_eq!(epc.to_id_uri()?, "urn:epc:id:sgtin:0614141.812345.6789");
/// # Ok::<(), lately_stream::epc::EpcError>(())
/// ```
///
/// *Reference:* GS1, EPC Tag Data Standard 1.13 (2019): SGTIN, SSCC, SGLN, GRAI, GIAI, GSRN,
/// GSRNP, GDTI, CPI, SGCN, ITIP, GID, USDOD and ADI in all their lengths.
///
/// *Differs from the standard:* the `+` and `++` schemes of version 2.0 are not known; they are
/// normalised by their bits as any EPC is, but have no URI.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epc {
    bytes: Vec<u8>,
}

impl Epc {
    /// The tag that `text` spells, and how it spells it, by the rules of [`normalise`].
    ///
    /// *Errors:* what is wrong with a URI, [`EpcError::NotAnEpc`] for anything else.
    pub fn parse(text: &[u8]) -> Result<(Self, Spelling), EpcError> {
        let mut bytes = Vec::new();
        let spelling = decode(text, &mut bytes)?;
        Ok((Self { bytes }, spelling))
    }

    /// The tag with these bits.
    ///
    /// *Errors:* [`EpcError::Empty`], [`EpcError::TooLong`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, EpcError> {
        match bytes.len() {
            0 => Err(EpcError::Empty),
            1..=MAX_BYTES => Ok(Self { bytes: bytes.to_vec() }),
            _ => Err(EpcError::TooLong),
        }
    }

    /// The bits.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The thing that a tag is on as a number of 96 bits, such that the things of a company, or of one
    /// of its products, are an interval: the first 96 bits of the EPC, filled up with zeros, the filter
    /// value set to 0. What can be said in 96 bits is, whatever the tag's encoding. Of a longer EPC
    /// it is the first 58, which hold company prefix and item, and a hash of 38 for the rest.
    ///
    /// *Guarantee:* tags of one thing (`urn:epc:id:…`) have one number. Different things in up to 96
    /// bits have different numbers, if they differ in more than zeros at the end; longer ones have the
    /// same by chance, once in 2^38.
    pub fn to_number(&self) -> u128 {
        pattern::of_bytes(&self.bytes)
    }

    /// The bits in upper-case hex, as the standard prints them.
    pub fn to_hex(&self) -> String {
        const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
        let digits =
            |&byte: &u8| [byte >> 4, byte & 15].map(|i| char::from(DIGITS[usize::from(i)]));
        self.bytes.iter().flat_map(digits).collect()
    }

    /// The name of its scheme, such as `sgtin-96`, if its header is known.
    pub fn scheme(&self) -> Option<&'static str> {
        Scheme::by_header(*self.bytes.first()?).map(|scheme| scheme.name)
    }

    /// The tag as a URI with all its fields: `urn:epc:tag:sgtin-96:3.0614141.812345.6789`.
    ///
    /// *Guarantee:* parses back to this EPC.
    ///
    /// *Errors:* an unknown header, or bits that the scheme does not allow; such a tag was not
    /// written to the standard, and has only its hex.
    pub fn to_tag_uri(&self) -> Result<String, EpcError> {
        uri::decode(&self.bytes, true)
    }

    /// The object as a URI, whatever the tag: `urn:epc:id:sgtin:0614141.812345.6789`.
    ///
    /// *Errors:* as for [`Epc::to_tag_uri`].
    pub fn to_id_uri(&self) -> Result<String, EpcError> {
        uri::decode(&self.bytes, false)
    }
}

impl FromStr for Epc {
    type Err = EpcError;

    fn from_str(text: &str) -> Result<Self, EpcError> {
        Self::parse(text.as_bytes()).map(|(epc, _)| epc)
    }
}

// ---- spellings ----

/// Appends the bytes of the EPC to `out`; on an error `out` may hold anything past its length.
fn decode(text: &[u8], out: &mut Vec<u8>) -> Result<Spelling, EpcError> {
    let start = out.len();
    let spelling = spelled(text.trim_ascii(), out)?;
    let inner = unwrap_hex(start, out);
    match out.len() - start {
        0 => return Err(EpcError::Empty),
        1..=MAX_BYTES => {}
        _ => return Err(EpcError::TooLong),
    }
    if Scheme::by_header(out[start]).is_some_and(|s| s.lacks_a_byte(out.len() - start)) {
        out.push(0);
    }
    Ok(if inner { Spelling::HexOfHex } else { spelling })
}

fn spelled(text: &[u8], out: &mut Vec<u8>) -> Result<Spelling, EpcError> {
    if let Some(inner) = text.strip_prefix(b"b").and_then(unquote) {
        if inner.contains(&b'\\') {
            python_escapes(inner, out).ok_or(EpcError::NotAnEpc)?;
        } else {
            bare(inner.trim_ascii(), out)?;
        }
        return Ok(Spelling::PythonBytes);
    }
    bare(unquote(text).unwrap_or(text).trim_ascii(), out)
}

/// `'…'` or `"…"` without its quotes.
fn unquote(text: &[u8]) -> Option<&[u8]> {
    match text {
        [b'\'', inner @ .., b'\''] | [b'"', inner @ .., b'"'] => Some(inner),
        _ => None,
    }
}

fn bare(text: &[u8], out: &mut Vec<u8>) -> Result<Spelling, EpcError> {
    if text.is_empty() {
        return Err(EpcError::Empty);
    }
    if hex(text, out) {
        return Ok(Spelling::Hex);
    }
    if let Some(raw) = after_prefix(text, b"urn:epc:raw:") {
        out.extend_from_slice(raw_uri(raw).ok_or(EpcError::RawUri)?.words());
        return Ok(Spelling::RawUri);
    }
    if let Some(tag) = after_prefix(text, b"urn:epc:tag:") {
        let tag = std::str::from_utf8(tag).map_err(|_| EpcError::NotAnEpc)?;
        out.extend_from_slice(uri::encode(tag)?.words());
        return Ok(Spelling::TagUri);
    }
    if after_prefix(text, b"urn:epc:id:").is_some() {
        return Err(EpcError::IdUri);
    }
    base64(text, out).ok_or(EpcError::NotAnEpc)
}

/// The scheme of a URI is case-insensitive; what follows is not.
fn after_prefix<'a>(text: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (head, tail) = text.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(tail)
}

const NO_NIBBLE: u8 = 0xFF;

const NIBBLES: [u8; 256] = {
    let mut table = [NO_NIBBLE; 256];
    let mut i = 0;
    while i < 16 {
        table[b"0123456789ABCDEF"[i] as usize] = i as u8;
        table[b"0123456789abcdef"[i] as usize] = i as u8;
        i += 1;
    }
    table
};

/// The value of a hex digit.
fn nibble(c: u8) -> Option<u8> {
    let value = NIBBLES[usize::from(c)];
    (value != NO_NIBBLE).then_some(value)
}

/// Hex by rule 3; otherwise `out` is as it was.
fn hex(text: &[u8], out: &mut Vec<u8>) -> bool {
    let text = match text {
        [b'0', b'x' | b'X', digits @ ..] => digits,
        _ => text,
    };
    let start = out.len();
    if plain_hex(text, out) {
        return true;
    }
    out.truncate(start);
    let Some(group) = text.iter().position(|c| matches!(c, b' ' | b'-' | b':')) else {
        return false;
    };
    // At least 32 bits: `12-34` is a number of its own, not the tag 1234.
    let regular = group >= 2 && group % 2 == 0 && (text.len() + 1).is_multiple_of(group + 1);
    let separator = text[group];
    let grouped = regular
        && text.chunks(group + 1).all(|chunk| {
            let (digits, tail) = chunk.split_at(group);
            (tail.is_empty() || tail == [separator]) && plain_hex(digits, out)
        })
        && out.len() - start >= 4;
    if !grouped {
        out.truncate(start);
    }
    grouped
}

/// Appends as far as it goes; true if all was hex.
fn plain_hex(text: &[u8], out: &mut Vec<u8>) -> bool {
    let (pairs, rest) = text.as_chunks::<2>();
    if !rest.is_empty() || pairs.is_empty() {
        return false;
    }
    for pair in pairs {
        let (high, low) = (NIBBLES[usize::from(pair[0])], NIBBLES[usize::from(pair[1])]);
        if high | low == NO_NIBBLE {
            return false;
        }
        out.push(high << 4 | low);
    }
    true
}

const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const BASE64: GeneralPurpose = GeneralPurpose::new(&STANDARD, LENIENT);
const BASE64_URL: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, LENIENT);

/// base64 by rule 4; otherwise `out` may hold anything past its length.
fn base64(text: &[u8], out: &mut Vec<u8>) -> Option<Spelling> {
    let start = out.len();
    let padded = text.ends_with(b"=");
    // What is all hex digits was hex, or an odd number of them and so nothing.
    if !padded && text.iter().all(|&c| nibble(c).is_some()) {
        return None;
    }
    let url = text.iter().any(|c| matches!(c, b'-' | b'_'));
    let (engine, spelling) = match url {
        true => (BASE64_URL, Spelling::Base64Url),
        false => (BASE64, Spelling::Base64),
    };
    engine.decode_vec(text, out).ok()?;
    let bytes = out.len() - start;
    (bytes.is_multiple_of(2) && bytes >= if padded { 2 } else { 4 }).then_some(spelling)
}

/// The bytes of the inside of a Python `b'…'` that holds escapes.
fn python_escapes(mut text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    while let Some((&c, rest)) = text.split_first() {
        text = rest;
        if c != b'\\' {
            out.push(c);
            continue;
        }
        let (&escaped, rest) = text.split_first()?;
        text = rest;
        out.push(match escaped {
            b'\\' | b'\'' | b'"' => escaped,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'x' => {
                let (digits, rest) = text.split_at_checked(2)?;
                text = rest;
                nibble(digits[0])? << 4 | nibble(digits[1])?
            }
            _ => return None,
        });
    }
    Some(())
}

/// `96.x3074…`, `96.1501…` (decimal) or `96.xA1.x3074…` (with an application family, which is no
/// part of the tag's EPC bits).
fn raw_uri(text: &[u8]) -> Option<Bits> {
    let text = std::str::from_utf8(text).ok()?;
    let (length, rest) = text.split_once('.')?;
    let length: u32 = length.parse().ok()?;
    let value = rest.rsplit_once('.').map_or(rest, |(_, value)| value);
    let mut bits = Bits::new();
    let Some(digits) = value.strip_prefix(['x', 'X']) else {
        let value: u128 = value.parse().ok()?;
        if length == 0 || value.checked_shr(length).unwrap_or(0) != 0 {
            return None;
        }
        bits.push(value, length)?;
        return Some(bits);
    };
    // The digits are one number of LENGTH bits: the first digit may stand for fewer than four.
    let width = digits.len().checked_mul(4)?;
    let missing = (length as usize).checked_sub(width);
    match missing {
        Some(missing) => bits.push(0, u32::try_from(missing).ok()?)?,
        None if width - length as usize >= 4 => return None,
        None => {}
    }
    for (i, c) in digits.bytes().enumerate() {
        let spare = if i == 0 && missing.is_none() { width as u32 - length } else { 0 };
        let value = nibble(c)?;
        if u32::from(value) >> (4 - spare) != 0 {
            return None;
        }
        bits.push(u128::from(value), 4 - spare)?;
    }
    (length > 0).then_some(bits)
}

/// Replaces bytes that are all ASCII hex digits by what they spell (rule 5).
fn unwrap_hex(start: usize, out: &mut Vec<u8>) -> bool {
    let bytes = &mut out[start..];
    let hex = bytes.len() >= MIN_INNER_DIGITS
        && bytes.len().is_multiple_of(2)
        && bytes.iter().all(|&c| nibble(c).is_some());
    if !hex {
        return false;
    }
    let inner = bytes.len() / 2;
    for i in 0..inner {
        bytes[i] = NIBBLES[usize::from(bytes[2 * i])] << 4 | NIBBLES[usize::from(bytes[2 * i + 1])];
    }
    out.truncate(start + inner);
    true
}
