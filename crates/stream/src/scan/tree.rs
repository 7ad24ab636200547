//! The members of a JSON text that are wanted, and where they are in it.
//!
//! Text that is not wanted is still checked to its end, because a record that is broken behind its
//! key is a broken record. Of members with the same name the last one counts, as in most JSON readers.

use super::json::{Failed, MAX_DEPTH, Piece, Scanner, Shape, Syntax};
use super::unescape::unescape;
use std::ops::Range;

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

impl Scanner<'_> {
    fn document(&mut self, tree: &Tree, found: &mut [Option<Piece>]) -> Result<Piece, Failed> {
        let root = match tree.nodes.first() {
            Some(root) => self.wanted(tree, root, found, 0)?,
            None => self.value(0)?,
        };
        self.end().map(|()| root)
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
