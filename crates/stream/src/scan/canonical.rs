//! What checked JSON says, apart from how it is written: strings without escapes, values in one
//! canonical spelling, arrays taken apart.

use super::json::{Failed, Piece, Scanner, Shape, Tree};
use std::borrow::Cow;

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

/// Appends checked JSON in canonical form: no blanks, members sorted by name (of equal names the
/// last one), strings with the fewest escapes, numbers as they were written.
pub(crate) fn canonical(text: &[u8], out: &mut Vec<u8>) {
    let mut scanner = Scanner::new(text);
    // The text has been checked, so nothing fails here; if it did, the rest would be left out.
    let _ = scanner.canonical(out);
}

impl Scanner<'_> {
    fn canonical(&mut self, out: &mut Vec<u8>) -> Result<(), Failed> {
        match self.peek() {
            Some(b'{') => self.canonical_members(out),
            Some(b'[') => {
                self.at += 1;
                self.blank();
                out.push(b'[');
                while !self.take(b']') {
                    self.canonical(out)?;
                    self.blank();
                    if self.take(b',') {
                        out.push(b',');
                        self.blank();
                    }
                }
                out.push(b']');
                Ok(())
            }
            _ => {
                let piece = self.value(0)?;
                if let Shape::String { .. } = piece.shape {
                    let content = plain(piece, self.text);
                    quote(&content, matches!(content, Cow::Borrowed(_)), out);
                } else {
                    out.extend_from_slice(piece.of(self.text));
                }
                Ok(())
            }
        }
    }

    fn canonical_members(&mut self, out: &mut Vec<u8>) -> Result<(), Failed> {
        let mut members = Vec::with_capacity(16);
        self.at += 1;
        self.blank();
        while !self.take(b'}') {
            let name = plain(self.name_piece()?, self.text);
            let start = self.at;
            let shape = self.value(0)?.shape;
            members.push((name, start, self.at, shape));
            self.blank();
            if self.take(b',') {
                self.blank();
            }
        }
        // By place where names are equal.
        members.sort_unstable_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
        out.push(b'{');
        let mut first = true;
        for (i, (name, start, end, shape)) in members.iter().enumerate() {
            if members.get(i + 1).is_some_and(|next| next.0 == *name) {
                continue;
            }
            if !std::mem::take(&mut first) {
                out.push(b',');
            }
            quote(name, matches!(name, Cow::Borrowed(_)), out);
            out.push(b':');
            let text = &self.text[*start..*end];
            match shape {
                Shape::Array | Shape::Object | Shape::String { escaped: true } => {
                    Scanner::new(text).canonical(out)?;
                }
                _ => out.extend_from_slice(text),
            }
        }
        out.push(b'}');
        Ok(())
    }
}

/// The content of a string; a copy only where there are escapes.
fn plain(piece: Piece, text: &[u8]) -> Cow<'_, [u8]> {
    if piece.shape == (Shape::String { escaped: true }) {
        let mut plain = Vec::new();
        unescape(piece.of(text), &mut plain);
        return Cow::Owned(plain);
    }
    Cow::Borrowed(piece.of(text))
}

/// Writes a string; `verbatim` if it was valid without an escape and so needs none.
fn quote(plain: &[u8], verbatim: bool, out: &mut Vec<u8>) {
    out.push(b'"');
    if verbatim {
        out.extend_from_slice(plain);
    } else {
        for &c in plain {
            match c {
                b'"' | b'\\' => out.extend([b'\\', c]),
                0..0x20 => out.extend(format!("\\u{c:04x}").bytes()),
                _ => out.push(c),
            }
        }
    }
    out.push(b'"');
}

/// Calls `each` with every string of a checked array; `false` if it holds anything else.
pub(crate) fn each_string(array: &[u8], mut each: impl FnMut(&[u8])) -> bool {
    let mut only_strings = true;
    Tree::default().elements(array, &mut Vec::new(), |piece, _, _| match piece.shape {
        Shape::String { .. } => each(&plain(piece, array)),
        _ => only_strings = false,
    });
    only_strings
}
