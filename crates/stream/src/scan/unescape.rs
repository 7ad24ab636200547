//! JSON strings without their escapes.

/// Appends the content of a checked string to `out`. Half a surrogate pair, which Unicode has no
/// bytes for, is written as its three bytes all the same: two such strings stay apart.
pub(crate) fn unescape(mut text: &[u8], out: &mut Vec<u8>) {
    while let Some(at) = memchr::memchr(b'\\', text) {
        out.extend_from_slice(&text[..at]);
        let rest = &text[at + 1..];
        let Some((&kind, rest)) = rest.split_first() else { return };
        text = rest;
        match kind {
            b'u' => text = unescape_unicode(rest, out),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            other => out.push(other),
        }
    }
    out.extend_from_slice(text);
}

fn unescape_unicode<'a>(text: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
    let (unit, rest) = hex4(text);
    if (0xD800..0xDC00).contains(&unit) && rest.starts_with(b"\\u") {
        let (low, after) = hex4(&rest[2..]);
        if (0xDC00..0xE000).contains(&low) {
            let code = 0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
            push_char(code, out);
            return after;
        }
    }
    push_char(unit, out);
    rest
}

fn hex4(text: &[u8]) -> (u32, &[u8]) {
    let (hex, rest) = text.split_at(text.len().min(4));
    let digit = |c: &u8| char::from(*c).to_digit(16).unwrap_or(0);
    (hex.iter().fold(0, |n, c| n << 4 | digit(c)), rest)
}

fn push_char(code: u32, out: &mut Vec<u8>) {
    match char::from_u32(code) {
        Some(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        None => out.extend([
            0xE0 | (code >> 12) as u8,
            0x80 | (code >> 6 & 0x3F) as u8,
            0x80 | (code & 0x3F) as u8,
        ]),
    }
}
