//! A JSON scanner: checks a whole text by RFC 8259 and notes where the wanted members are, in one
//! pass and without allocating.
//!
//! Nothing is converted: numbers stay text and strings stay escaped until somebody asks. Text that
//! is not wanted is still checked to its end, because a record that is broken behind its key is a
//! broken record. Of members with the same name the last one counts, as in most JSON readers.

use super::unescape::unescape;
use std::fmt;
use std::ops::Range;

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

/// The members that are wanted, as a tree of names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    slots: usize,
}

#[derive(Clone, Debug, Default)]
struct Node {
    slot: Option<usize>,
    children: Vec<(Vec<u8>, usize)>,
}

impl Tree {
    /// The slot of the value at this path from the root, added if it is new.
    pub(crate) fn slot<'p>(&mut self, path: impl IntoIterator<Item = &'p [u8]>) -> usize {
        if self.nodes.is_empty() {
            self.nodes.push(Node::default());
        }
        let mut at = 0;
        for name in path {
            at = match self.nodes[at].children.iter().find(|child| child.0 == name) {
                Some(child) => child.1,
                None => {
                    let new = self.nodes.len();
                    self.nodes.push(Node::default());
                    self.nodes[at].children.push((name.to_vec(), new));
                    new
                }
            };
        }
        *self.nodes[at].slot.get_or_insert_with(|| {
            self.slots += 1;
            self.slots - 1
        })
    }

    /// Is nothing wanted?
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Checks `text` and fills `found`, one place a slot. Returns the outermost value. `plain`: see
    /// [`Scanner`].
    pub(crate) fn scan(
        &self,
        text: &[u8],
        plain: bool,
        found: &mut Vec<Option<Piece>>,
    ) -> Result<Piece, Syntax> {
        found.clear();
        found.resize(self.slots, None);
        let mut scanner = Scanner::new(text).plain(plain);
        match scanner.document(self, found) {
            Ok(root) => Ok(root),
            Err(Failed) => Err(scanner.syntax()),
        }
    }

    /// Calls `each` with every element of a checked array, the bytes it is written in, and `found`
    /// filled for it; all places are in `array`.
    pub(crate) fn elements(
        &self,
        array: &[u8],
        found: &mut Vec<Option<Piece>>,
        mut each: impl FnMut(Piece, Range<usize>, &[Option<Piece>]),
    ) {
        let mut scanner = Scanner::new(array);
        if !scanner.take(b'[') {
            return;
        }
        scanner.blank();
        while !scanner.take(b']') {
            found.clear();
            found.resize(self.slots, None);
            let start = scanner.at;
            let element = match self.nodes.first() {
                Some(root) => scanner.wanted(self, root, found, 0),
                None => scanner.value(0),
            };
            let Ok(element) = element else { return };
            each(element, start..scanner.at, found);
            scanner.blank();
            if scanner.take(b',') {
                scanner.blank();
            }
        }
    }

    fn forget(&self, node: &Node, found: &mut [Option<Piece>]) {
        if let Some(slot) = node.slot {
            found[slot] = None;
        }
        for child in &node.children {
            self.forget(&self.nodes[child.1], found);
        }
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

    fn document(&mut self, tree: &Tree, found: &mut [Option<Piece>]) -> Result<Piece, Failed> {
        let root = match tree.nodes.first() {
            Some(root) => self.wanted(tree, root, found, 0)?,
            None => self.value(0)?,
        };
        self.end().map(|()| root)
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

    /// A value some part of which is wanted. Recursion is as deep as the wanted paths are long.
    fn wanted(
        &mut self,
        tree: &Tree,
        node: &Node,
        found: &mut [Option<Piece>],
        depth: u32,
    ) -> Result<Piece, Failed> {
        let start = self.at;
        let inside = !node.children.is_empty() && depth < MAX_DEPTH;
        let piece = match self.peek() {
            Some(b'{') if inside => {
                self.members(tree, node, found, depth)?;
                Piece { start, end: self.at, shape: Shape::Object }
            }
            Some(b'[') if inside => {
                self.elements(tree, node, found, depth)?;
                Piece { start, end: self.at, shape: Shape::Array }
            }
            _ => self.value(depth)?,
        };
        if let Some(slot) = node.slot {
            found[slot] = Some(piece);
        }
        Ok(piece)
    }

    fn members(
        &mut self,
        tree: &Tree,
        node: &Node,
        found: &mut [Option<Piece>],
        depth: u32,
    ) -> Result<(), Failed> {
        self.at += 1;
        self.blank();
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            let start = self.at + 1;
            let escaped = self.name()?;
            let name = &self.text[start..self.name_end];
            match node.children.iter().find(|child| same_name(name, escaped, &child.0)) {
                Some(child) => {
                    let child = &tree.nodes[child.1];
                    tree.forget(child, found);
                    self.wanted(tree, child, found, depth + 1)?;
                }
                None => self.skip(depth + 1)?,
            }
            if !self.goes_on(b'}', "`,` or `}` expected")? {
                return Ok(());
            }
        }
    }

    fn elements(
        &mut self,
        tree: &Tree,
        node: &Node,
        found: &mut [Option<Piece>],
        depth: u32,
    ) -> Result<(), Failed> {
        self.at += 1;
        self.blank();
        if self.take(b']') {
            return Ok(());
        }
        let mut index = 0_usize;
        loop {
            // A name is no index unless it is written as one.
            let same = |child: &&(Vec<u8>, usize)| is_index(&child.0, index);
            match node.children.iter().find(same) {
                Some(child) => {
                    self.wanted(tree, &tree.nodes[child.1], found, depth + 1)?;
                }
                None => self.skip(depth + 1)?,
            }
            index += 1;
            if !self.goes_on(b']', "`,` or `]` expected")? {
                return Ok(());
            }
        }
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

/// Is `name` this index as it is written, without zeros before it?
fn is_index(name: &[u8], index: usize) -> bool {
    let digits = |value: usize, c: &u8| {
        let digit = c.is_ascii_digit().then(|| usize::from(c - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    };
    let written = matches!(name, [b'0'] | [b'1'..=b'9', ..]);
    written && name.iter().try_fold(0, digits) == Some(index)
}

#[inline]
fn same_name(found: &[u8], escaped: bool, wanted: &[u8]) -> bool {
    if escaped {
        let mut plain = Vec::new();
        unescape(found, &mut plain);
        return plain == wanted;
    }
    found == wanted
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn a_name_is_an_index_only_as_it_is_written() {
        for index in [0, 1, 9, 10, 120, usize::MAX] {
            assert!(is_index(index.to_string().as_bytes(), index));
            assert!(!is_index(format!("0{index}").as_bytes(), index));
        }
        for name in [&b""[..], b"+1", b"1 ", b"x", b"99999999999999999999999"] {
            assert!(!is_index(name, 1));
        }
    }
}
