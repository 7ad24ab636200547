//! A JSON scanner: checks a whole text by RFC 8259 and notes where the wanted members are, in one
//! pass and without allocating.
//!
//! Nothing is converted: numbers stay text and strings stay escaped until somebody asks. Text that
//! is not wanted is still checked to its end, because a record that is broken behind its key is a
//! broken record. Of members with the same name the last one counts, as in most JSON readers.

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

    /// Checks `text` and fills `found`, one place a slot. Returns the outermost value.
    pub(crate) fn scan(
        &self,
        text: &[u8],
        found: &mut Vec<Option<Piece>>,
    ) -> Result<Piece, Syntax> {
        found.clear();
        found.resize(self.slots, None);
        let mut scanner = Scanner { text, at: 0 };
        scanner.blank();
        let root = match self.nodes.first() {
            Some(root) => scanner.wanted(self, root, found, 0)?,
            None => scanner.skip(0)?,
        };
        scanner.blank();
        match scanner.peek() {
            None => Ok(root),
            Some(_) => scanner.fail("text after the end of the value"),
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
}

impl<'a> Scanner<'a> {
    fn fail<T>(&self, what: &'static str) -> Result<T, Syntax> {
        Err(Syntax { at: self.at, what })
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    pub(crate) fn blank(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// Takes `byte`, if it is next.
    fn take(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    /// A value some part of which is wanted. Recursion is as deep as the wanted paths are long.
    fn wanted(
        &mut self,
        tree: &Tree,
        node: &Node,
        found: &mut [Option<Piece>],
        depth: u32,
    ) -> Result<Piece, Syntax> {
        let piece = match self.peek() {
            Some(b'{') if !node.children.is_empty() && depth < MAX_DEPTH => {
                self.members(tree, node, found, depth)?
            }
            Some(b'[') if !node.children.is_empty() && depth < MAX_DEPTH => {
                self.elements(tree, node, found, depth)?
            }
            _ => self.skip(depth)?,
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
    ) -> Result<Piece, Syntax> {
        let start = self.at;
        self.at += 1;
        self.blank();
        if !self.take(b'}') {
            loop {
                let name = self.name()?;
                match node.children.iter().find(|child| same_name(name, self.text, &child.0)) {
                    Some(child) => {
                        let child = &tree.nodes[child.1];
                        tree.forget(child, found);
                        self.wanted(tree, child, found, depth + 1)?;
                    }
                    None => {
                        self.skip(depth + 1)?;
                    }
                }
                self.blank();
                if self.take(b'}') {
                    break;
                }
                if !self.take(b',') {
                    return self.fail("`,` or `}` expected");
                }
                self.blank();
            }
        }
        Ok(Piece { start, end: self.at, shape: Shape::Object })
    }

    fn elements(
        &mut self,
        tree: &Tree,
        node: &Node,
        found: &mut [Option<Piece>],
        depth: u32,
    ) -> Result<Piece, Syntax> {
        let start = self.at;
        self.at += 1;
        self.blank();
        if !self.take(b']') {
            for index in 0.. {
                let same = |child: &&(Vec<u8>, usize)| child.0 == index.to_string().as_bytes();
                match node.children.iter().find(same) {
                    Some(child) => {
                        self.wanted(tree, &tree.nodes[child.1], found, depth + 1)?;
                    }
                    None => {
                        self.skip(depth + 1)?;
                    }
                }
                self.blank();
                if self.take(b']') {
                    break;
                }
                if !self.take(b',') {
                    return self.fail("`,` or `]` expected");
                }
                self.blank();
            }
        }
        Ok(Piece { start, end: self.at, shape: Shape::Array })
    }

    /// A member's name, its colon and the blanks around it.
    #[inline]
    fn name(&mut self) -> Result<Piece, Syntax> {
        if self.peek() != Some(b'"') {
            return self.fail("a member's name in quotes expected");
        }
        let name = self.string()?;
        self.blank();
        if !self.take(b':') {
            return self.fail("`:` expected");
        }
        self.blank();
        Ok(name)
    }

    /// Checks one value and steps over it.
    pub(crate) fn skip(&mut self, depth: u32) -> Result<Piece, Syntax> {
        match self.peek() {
            Some(b'{' | b'[') => self.container(depth),
            _ => self.scalar(),
        }
    }

    /// Steps over an object or array without recursion: one bit a level says which it is.
    fn container(&mut self, outer: u32) -> Result<Piece, Syntax> {
        let start = self.at;
        let mut objects = 0_u128;
        let mut depth = outer;
        let shape = if self.peek() == Some(b'{') { Shape::Object } else { Shape::Array };
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
                if self.take(if object { b'}' } else { b']' }) {
                    depth -= 1;
                    objects >>= 1;
                    if depth == outer {
                        return Ok(Piece { start, end: self.at, shape });
                    }
                } else if self.take(b',') {
                    self.blank();
                    if object {
                        self.name()?;
                    }
                    break;
                } else {
                    return self.fail("`,` or the closing bracket expected");
                }
            }
        }
    }

    fn scalar(&mut self) -> Result<Piece, Syntax> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word(b"true", Shape::Word),
            Some(b'f') => self.word(b"false", Shape::Word),
            Some(b'n') => self.word(b"null", Shape::Null),
            Some(_) => self.fail("a value expected"),
            None => self.fail("the text ends too early"),
        }
    }

    fn word(&mut self, word: &[u8], shape: Shape) -> Result<Piece, Syntax> {
        if !self.text[self.at..].starts_with(word) {
            return self.fail("a value expected");
        }
        let start = self.at;
        self.at += word.len();
        Ok(Piece { start, end: self.at, shape })
    }

    fn digits(&mut self) -> Result<(), Syntax> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start { self.fail("a digit expected") } else { Ok(()) }
    }

    fn number(&mut self) -> Result<Piece, Syntax> {
        let start = self.at;
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
        Ok(Piece { start, end: self.at, shape: Shape::Number })
    }

    /// A string, from its opening quote on.
    #[inline]
    fn string(&mut self) -> Result<Piece, Syntax> {
        let start = self.at + 1;
        self.at = start;
        let mut escaped = false;
        loop {
            while let Some(eight) = self.text[self.at..].first_chunk::<8>() {
                let special = special(u64::from_le_bytes(*eight));
                if special != 0 {
                    self.at += (special.trailing_zeros() / 8) as usize;
                    break;
                }
                self.at += 8;
            }
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Piece { start, end: self.at - 1, shape: Shape::String { escaped } });
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(0..0x20) => return self.fail("a control character inside a string"),
                Some(_) => self.at += 1,
                None => return self.fail("a string without its closing quote"),
            }
        }
    }

    fn escape(&mut self) -> Result<(), Syntax> {
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
    const ONES: u64 = 0x0101_0101_0101_0101;
    let zero = |x: u64| x.wrapping_sub(ONES) & !x;
    let quote = zero(word ^ (ONES * 0x22));
    let backslash = zero(word ^ (ONES * 0x5C));
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (quote | backslash | control) & (ONES * 0x80)
}

fn same_name(piece: Piece, text: &[u8], name: &[u8]) -> bool {
    if piece.shape == (Shape::String { escaped: true }) {
        let mut plain = Vec::new();
        unescape(piece.of(text), &mut plain);
        return plain == name;
    }
    piece.of(text) == name
}

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
    let mut scanner = Scanner { text, at: 0 };
    scanner.blank();
    // The text has been checked, so nothing fails here; if it did, the rest would be left out.
    let _ = scanner.canonical(out);
}

impl Scanner<'_> {
    fn canonical(&mut self, out: &mut Vec<u8>) -> Result<(), Syntax> {
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
            Some(b'"') => {
                let content = self.string()?;
                let mut plain = Vec::new();
                unescape(content.of(self.text), &mut plain);
                quote(&plain, out);
                Ok(())
            }
            _ => {
                let scalar = self.scalar()?;
                out.extend_from_slice(scalar.of(self.text));
                Ok(())
            }
        }
    }

    fn canonical_members(&mut self, out: &mut Vec<u8>) -> Result<(), Syntax> {
        let mut members = Vec::new();
        self.at += 1;
        self.blank();
        while !self.take(b'}') {
            let mut name = Vec::new();
            unescape(self.name()?.of(self.text), &mut name);
            members.push((name, self.at));
            self.skip(0)?;
            self.blank();
            if self.take(b',') {
                self.blank();
            }
        }
        members.sort_by(|a, b| a.0.cmp(&b.0));
        out.push(b'{');
        let mut first = true;
        for (i, (name, at)) in members.iter().enumerate() {
            if members.get(i + 1).is_some_and(|next| next.0 == *name) {
                continue;
            }
            if !std::mem::take(&mut first) {
                out.push(b',');
            }
            quote(name, out);
            out.push(b':');
            Scanner { text: self.text, at: *at }.canonical(out)?;
        }
        out.push(b'}');
        Ok(())
    }
}

fn quote(plain: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &c in plain {
        match c {
            b'"' | b'\\' => out.extend([b'\\', c]),
            0..0x20 => out.extend(format!("\\u{c:04x}").bytes()),
            _ => out.push(c),
        }
    }
    out.push(b'"');
}

/// Calls `each` with every string of a checked array; `false` if it holds anything else.
pub(crate) fn each_string(array: &[u8], mut each: impl FnMut(&[u8])) -> bool {
    let mut only_strings = true;
    each_element(array, |piece, _| match piece.shape {
        Shape::String { .. } => {
            let mut plain = Vec::new();
            unescape(piece.of(array), &mut plain);
            each(&plain);
        }
        _ => only_strings = false,
    });
    only_strings
}

/// Calls `each` with every element of a checked array and with all the bytes it is written in.
pub(crate) fn each_element(array: &[u8], mut each: impl FnMut(Piece, Range<usize>)) {
    let mut scanner = Scanner { text: array, at: 0 };
    scanner.blank();
    if !scanner.take(b'[') {
        return;
    }
    scanner.blank();
    while !scanner.take(b']') {
        let start = scanner.at;
        let Ok(piece) = scanner.skip(0) else { return };
        each(piece, start..scanner.at);
        scanner.blank();
        if scanner.take(b',') {
            scanner.blank();
        }
    }
}
