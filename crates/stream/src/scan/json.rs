//! A JSON scanner: checks text by RFC 8259 and says where its values are, in one pass and without
//! allocating.
//!
//! Nothing is converted: numbers stay text and strings stay escaped until somebody asks.

use std::fmt;

/// Deeper nesting is refused, so that nothing that walks a value can run out of stack.
pub(crate) const MAX_DEPTH: u32 = 128;

/// Where a text stops being JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Syntax {
    /// Byte offset.
    pub(crate) at: usize,
    pub(crate) what: &'static str,
}

impl fmt::Display for Syntax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not valid JSON at byte {}: {}", self.at + 1, self.what)
    }
}

/// A text was found not to be JSON; where and why is in the [`Scanner`]. Nothing but this travels
/// through the returns of the hot path, so that they stay in a register.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failed;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    String { escaped: bool },
    Number,
    Word,
    Null,
    Array,
    Object,
}

/// Where a value is; of a string, its content without the quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) shape: Shape,
}

impl Piece {
    pub(crate) fn of<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        &text[self.start..self.end]
    }

    /// Where it begins; of a string, with its quote.
    pub(crate) fn outer_start(&self) -> usize {
        self.start - usize::from(matches!(self.shape, Shape::String { .. }))
    }
}

/// A position in a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scanner<'a> {
    pub(crate) text: &'a [u8],
    pub(crate) at: usize,
    /// The text is known to have neither backslashes nor control characters ([`is_plain`]): a string ends
    /// at the next quote.
    plain: bool,
    /// Where the last name ended.
    pub(super) name_end: usize,
    /// What is wrong, once something is.
    what: &'static str,
}

impl<'a> Scanner<'a> {
    /// At the first byte of the text that is not blank.
    pub(crate) fn new(text: &'a [u8]) -> Self {
        let mut scanner = Self { text, at: 0, plain: false, name_end: 0, what: "" };
        scanner.blank();
        scanner
    }

    /// Says whether the text is known to be plain.
    pub(crate) fn plain(self, plain: bool) -> Self {
        Self { plain, ..self }
    }

    #[cold]
    pub(super) fn fail<T>(&mut self, what: &'static str) -> Result<T, Failed> {
        self.what = what;
        Err(Failed)
    }

    /// Checks that nothing follows.
    pub(super) fn end(&mut self) -> Result<(), Failed> {
        self.blank();
        match self.peek() {
            None => Ok(()),
            Some(_) => self.fail("text after the end of the value"),
        }
    }

    /// Where it failed, and why.
    pub(super) fn syntax(&self) -> Syntax {
        Syntax { at: self.at, what: self.what }
    }

    #[inline]
    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    #[inline]
    pub(crate) fn blank(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// Takes `byte`, if it is next.
    #[inline]
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    /// Steps over what follows a member or an element: is there another, or is this the end?
    #[inline]
    pub(super) fn goes_on(&mut self, close: u8, expected: &'static str) -> Result<bool, Failed> {
        self.blank();
        if self.take(b',') {
            self.blank();
            return Ok(true);
        }
        if self.take(close) { Ok(false) } else { self.fail(expected) }
    }

    /// A member's name, its colon and the blanks around it; whether the name has escapes. It
    /// begins behind the quote that was next and ends at `name_end`.
    #[inline]
    pub(super) fn name(&mut self) -> Result<bool, Failed> {
        if self.peek() != Some(b'"') {
            return self.fail("a member's name in quotes expected");
        }
        let escaped = self.string()?;
        self.name_end = self.at - 1;
        self.blank();
        if !self.take(b':') {
            return self.fail("`:` expected");
        }
        self.blank();
        Ok(escaped)
    }

    /// The same, as a piece.
    pub(super) fn name_piece(&mut self) -> Result<Piece, Failed> {
        let start = self.at + 1;
        let escaped = self.name()?;
        Ok(Piece { start, end: self.name_end, shape: Shape::String { escaped } })
    }

    /// Checks one value and says what it is.
    #[inline]
    pub(crate) fn value(&mut self, depth: u32) -> Result<Piece, Failed> {
        let start = self.at;
        let shape = match self.peek() {
            Some(b'"') => {
                let escaped = self.string()?;
                let shape = Shape::String { escaped };
                return Ok(Piece { start: start + 1, end: self.at - 1, shape });
            }
            Some(b'{') => Shape::Object,
            Some(b'[') => Shape::Array,
            Some(b't' | b'f') => Shape::Word,
            Some(b'n') => Shape::Null,
            _ => Shape::Number,
        };
        self.skip(depth)?;
        Ok(Piece { start, end: self.at, shape })
    }

    /// Checks one value and steps over it.
    #[inline]
    pub(super) fn skip(&mut self, depth: u32) -> Result<(), Failed> {
        match self.peek() {
            Some(b'{' | b'[') => self.container(depth),
            _ => self.scalar(),
        }
    }

    /// Steps over an object or array without recursion: one bit a level says which it is.
    fn container(&mut self, outer: u32) -> Result<(), Failed> {
        let mut objects = 0_u128;
        let mut depth = outer;
        loop {
            if let Some(open @ (b'{' | b'[')) = self.peek() {
                if depth >= MAX_DEPTH {
                    return self.fail("nested more than 128 deep");
                }
                depth += 1;
                objects = objects << 1 | u128::from(open == b'{');
                self.at += 1;
                self.blank();
                if !matches!(self.peek(), Some(b'}' | b']')) {
                    if open == b'{' {
                        self.name()?;
                    }
                    continue;
                }
            } else {
                self.scalar()?;
            }
            // A value has ended; perhaps what it was in ends with it.
            loop {
                self.blank();
                let object = objects & 1 == 1;
                if self.take(b',') {
                    self.blank();
                    if object {
                        self.name()?;
                    }
                    break;
                }
                if !self.take(if object { b'}' } else { b']' }) {
                    return self.fail("`,` or the closing bracket expected");
                }
                depth -= 1;
                objects >>= 1;
                if depth == outer {
                    return Ok(());
                }
            }
        }
    }

    #[inline]
    pub(super) fn scalar(&mut self) -> Result<(), Failed> {
        match self.peek() {
            Some(b'"') => self.string().map(|_| ()),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word(b"true"),
            Some(b'f') => self.word(b"false"),
            Some(b'n') => self.word(b"null"),
            Some(_) => self.fail("a value expected"),
            None => self.fail("the text ends too early"),
        }
    }

    fn word(&mut self, word: &[u8]) -> Result<(), Failed> {
        if !self.text[self.at..].starts_with(word) {
            return self.fail("a value expected");
        }
        self.at += word.len();
        Ok(())
    }

    #[inline]
    fn digits(&mut self) -> Result<(), Failed> {
        let rest = &self.text[self.at..];
        let digits = rest.iter().take_while(|c| c.is_ascii_digit()).count();
        self.at += digits;
        if digits == 0 { self.fail("a digit expected") } else { Ok(()) }
    }

    fn number(&mut self) -> Result<(), Failed> {
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if !self.take(b'+') {
                self.take(b'-');
            }
            self.digits()?;
        }
        Ok(())
    }

    /// A string, from its opening quote to behind its closing one; whether it has escapes.
    #[inline]
    pub(super) fn string(&mut self) -> Result<bool, Failed> {
        if self.plain {
            return self.plain_string();
        }
        let mut at = self.at + 1;
        let mut escaped = false;
        loop {
            while let Some(eight) = self.text[at..].first_chunk::<8>() {
                let special = special(u64::from_le_bytes(*eight));
                if special != 0 {
                    at += (special.trailing_zeros() / 8) as usize;
                    break;
                }
                at += 8;
            }
            match self.text.get(at) {
                Some(b'"') => {
                    self.at = at + 1;
                    return Ok(escaped);
                }
                Some(0x20..) if self.text[at] != b'\\' => at += 1,
                other => {
                    self.at = at;
                    match other {
                        Some(b'\\') => self.escape()?,
                        Some(_) => return self.fail("a control character inside a string"),
                        None => return self.fail("a string without its closing quote"),
                    }
                    escaped = true;
                    at = self.at;
                }
            }
        }
    }

    #[inline]
    fn plain_string(&mut self) -> Result<bool, Failed> {
        let mut at = self.at + 1;
        while let Some(eight) = self.text.get(at..).and_then(<[u8]>::first_chunk::<8>) {
            let quotes = zeros(u64::from_le_bytes(*eight) ^ (ONES * 0x22)) & (ONES * 0x80);
            if quotes != 0 {
                self.at = at + (quotes.trailing_zeros() / 8) as usize + 1;
                return Ok(false);
            }
            at += 8;
        }
        let rest = self.text.get(at..).unwrap_or_default();
        if let Some(length) = rest.iter().position(|&c| c == b'"') {
            self.at = at + length + 1;
            return Ok(false);
        }
        self.at = self.text.len();
        self.fail("a string without its closing quote")
    }

    #[cold]
    fn escape(&mut self) -> Result<(), Failed> {
        match self.text.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => {
                let hex = self.text.get(self.at + 2..self.at + 6);
                if !hex.is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)) {
                    return self.fail("`\\u` without four hexadecimal digits");
                }
                self.at += 6;
            }
            _ => return self.fail("an unknown escape"),
        }
        Ok(())
    }
}

/// Bytes of `word` that end plain string text (quote, backslash, control): their high bits are set
/// in the result. Only the lowest set bit is exact, as borrows run upwards; it is all we look at.
#[inline]
fn special(word: u64) -> u64 {
    let quote = zeros(word ^ (ONES * 0x22));
    let backslash = zeros(word ^ (ONES * 0x5C));
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (quote | backslash | control) & (ONES * 0x80)
}

const ONES: u64 = 0x0101_0101_0101_0101;

/// Bytes of `word` that are 0, in the same way.
#[inline]
fn zeros(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word
}

/// Are there neither backslashes nor control characters in these lines, but for the line feeds that end them?
pub(crate) fn is_plain(lines: &[u8]) -> bool {
    let is_special = |c: u8| c == b'\\' || c < 0x20 && c != b'\n';
    // Without an early end within a piece, so that many bytes are looked at at once.
    lines.chunks(4096).all(|piece| !piece.iter().fold(false, |any, &c| any | is_special(c)))
}

#[cfg(test)]
mod tests {
    use super::super::tree::Tree;
    use super::*;

    #[test]
    fn texts_are_plain_without_escapes_and_control_characters() {
        for c in 0..=255_u8 {
            let mut text = vec![b'x'; 5000];
            text[4500] = c;
            assert_eq!(is_plain(&text), c == b'\n' || c >= 0x20 && c != b'\\', "{c}");
        }
        assert!(is_plain(b""));
        // A string that nothing closes fails in the same place.
        for text in
            ["[\"", "[\"a", "[\"12345678", "[\"123456789", "{\"a\":\"12345678\",\"b", "[\"a\" 1]"]
        {
            let scan = |plain| Tree::default().scan(text.as_bytes(), plain, &mut Vec::new());
            assert!(scan(true).is_err() && scan(true) == scan(false), "{text}");
        }
    }
}
