//! What checked JSON says, apart from how it is written: values in one canonical spelling, arrays
//! taken apart.

use super::json::{Failed, Piece, Scanner, Shape, Tree};
use super::unescape::unescape;
use std::borrow::Cow;

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
