//! JSON values, one a line or over several, whose parts may be the records.

use super::emit::Emit;
use super::head::Head;
use super::layout::{Buffers, Layout, Opened, Places, Progress};
use crate::record::value::{Row, Value};
use crate::record::{Form, Kind, Mark, NO_TEXT};
use crate::scan::canonical::{Workspace, canonical, check};
use crate::scan::document::{self, Next, Pending};
use crate::scan::first::first_value;
use crate::scan::json::{Piece, Shape, is_plain};
use crate::scan::lines::{Lines, RECORD_SEPARATOR, Span, line_end};
use crate::scan::tree::Tree;
use crate::scan::unescape::unescape;
use memchr::{memchr_iter, memrchr};
use std::cell::RefCell;
use std::ops::Range;

/// A layout of JSON values.
#[derive(Clone, Debug)]
pub(crate) struct Json {
    /// The members that are wanted.
    pub(crate) tree: Tree,
    /// Values may run over several lines; else there is one a line.
    pub(crate) documents: bool,
    /// Which parts of a value are records.
    pub(crate) unpack: Unpack,
    pub(crate) longest: usize,
}

/// Which parts of an outermost value are records.
#[derive(Clone, Debug)]
pub(crate) enum Unpack {
    /// It is one itself.
    No,
    /// The elements, if it is an array.
    Arrays,
    /// The elements, if it is an array; or those of the list that this finds in it.
    List(fn(&[u8]) -> Option<Piece>),
    /// The same, by the path to the list, which is the only slot of this tree.
    At(Tree),
}

/// A checked JSON text and where its wanted members are.
struct JsonRow<'a> {
    text: &'a [u8],
    root: Piece,
    found: &'a [Option<Piece>],
    work: &'a RefCell<Workspace>,
}

impl JsonRow<'_> {
    fn piece<'r>(&'r self, piece: Piece, spare: &'r mut Vec<u8>) -> Value<'r> {
        let text = piece.of(self.text);
        match piece.shape {
            Shape::Null => Value::Missing("null"),
            Shape::Number => Value::Number(text),
            Shape::Word => Value::Json(text),
            Shape::String { escaped: false } => Value::Text(text),
            Shape::String { escaped: true } => {
                spare.clear();
                unescape(text, spare);
                Value::Text(spare)
            }
            Shape::Array | Shape::Object => {
                spare.clear();
                canonical(text, &[], &mut self.work.borrow_mut(), spare);
                Value::Json(spare)
            }
        }
    }
}

impl Row for JsonRow<'_> {
    #[inline]
    fn value<'r>(&'r self, slot: usize, spare: &'r mut Vec<u8>) -> Value<'r> {
        match self.found.get(slot) {
            Some(Some(piece)) => self.piece(*piece, spare),
            _ => Value::Missing("absent"),
        }
    }

    fn whole<'r>(&'r self, spare: &'r mut Vec<u8>) -> Value<'r> {
        self.piece(self.root, spare)
    }

    fn all_but<'r>(&'r self, slots: &[usize], _: Form, spare: &'r mut Vec<u8>) -> Value<'r> {
        if self.root.shape != Shape::Object {
            return self.whole(spare);
        }
        let found = slots.iter().filter_map(|slot| self.found.get(*slot).copied().flatten());
        let mut left_out: Vec<_> = found.map(|piece| piece.outer_start()).collect();
        left_out.iter_mut().for_each(|at| *at -= self.root.start);
        spare.clear();
        let text = self.root.of(self.text);
        canonical(text, &left_out, &mut self.work.borrow_mut(), spare);
        Value::Json(spare)
    }
}

/// One value a line.
pub(crate) fn open_lines(head: &Head<'_>) -> Opened {
    let (tree, longest) = (Tree::default(), head.max_line);
    Ok(Some(Box::new(Json { tree, documents: false, unpack: Unpack::No, longest })))
}

/// One value a line or over several lines, as the input shows.
pub(crate) fn open(head: &Head<'_>, unpack: Unpack) -> Opened {
    let unpack = match head.records {
        Some(pointer) => {
            let mut tree = Tree::default();
            tree.slot(path(pointer).iter().map(|part| &**part));
            Unpack::At(tree)
        }
        None => unpack,
    };
    let blank = head.bytes.iter().position(|c| !c.is_ascii_whitespace() && *c != RECORD_SEPARATOR);
    let bytes = &head.bytes[blank.unwrap_or(head.bytes.len())..];
    let documents = match bytes.first() {
        // A document that holds a list is long, on however many lines.
        _ if matches!(unpack, Unpack::At(_)) => true,
        None if !head.ended => return Ok(None),
        Some(b'{' | b'[') => match first_value(bytes, head.max_document, head.ended) {
            None => return Ok(None),
            Some((_, documents)) => documents,
        },
        _ => false,
    };
    let longest = if documents { head.max_document } else { head.max_line };
    Ok(Some(Box::new(Json { tree: Tree::default(), documents, unpack, longest })))
}

impl Places for Json {
    fn find(&mut self, name: &str, own: &[&str]) -> Result<Vec<usize>, String> {
        let mut slot = |name: &str| self.tree.slot(path(name).iter().map(|part| &**part));
        Ok(if own.is_empty() {
            vec![slot(name)]
        } else {
            own.iter().map(|own| slot(own)).collect()
        })
    }

    fn hint(&mut self, name: &str) -> Option<(usize, String)> {
        if name.starts_with('/') || !name.contains('.') {
            return None;
        }
        let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1").replace('.', "/"));
        Some((self.tree.slot(name.split('.').map(str::as_bytes)), pointer))
    }
}

impl Layout for Json {
    fn longest(&self) -> usize {
        self.longest
    }

    fn cut(&self, bytes: &[u8], examined: usize, progress: &mut Progress) -> usize {
        if !self.documents {
            return memrchr(b'\n', &bytes[examined..]).map_or(0, |at| examined + at + 1);
        }
        let mut end = 0;
        loop {
            match document::next(bytes, end, self.longest, false, &mut progress.pending) {
                Next::Value { end: next, .. } | Next::Junk { end: next, .. } => {
                    end = next;
                    progress.pending = Pending::default();
                }
                Next::Blank => return bytes.len(),
                // What comes next shall be what the buffer begins with.
                Next::More => return end + document::separators(&bytes[end..]),
            }
        }
    }

    fn parse(&self, bytes: &[u8], _header: bool, buffers: &mut Buffers, emit: &mut Emit<'_>) {
        // Nearly always the whole chunk is valid, and then no text needs to be looked at again.
        let utf8 = std::str::from_utf8(bytes).is_ok();
        // Nothing but the values themselves is wanted: checking and writing is one pass.
        let whole =
            self.tree.is_empty() && matches!(self.unpack, Unpack::No) && emit.fields.only_whole();
        // No line feed is within a text if there is one a line.
        let plain = !self.documents && is_plain(bytes);
        let Buffers { found, work, key, .. } = buffers;
        let detached = self.documents;
        let mut texts = Texts { json: self, bytes, utf8, plain, whole, found, work, key, detached };
        if self.documents {
            texts.documents(emit);
        } else if !texts.lines(emit) {
            emit.restart();
            texts.detached = true;
            texts.lines(emit);
        }
        emit.detached = texts.detached;
    }

    fn mark(&self) -> Mark {
        Mark::Member
    }

    fn stands_alone(&self) -> bool {
        true
    }
}

/// The path of a JSON field: a pointer (RFC 6901) if it begins with `/`, else one member's name.
pub(crate) fn path(name: &str) -> Vec<Vec<u8>> {
    match name.strip_prefix('/') {
        Some(pointer) => pointer
            .split('/')
            .map(|part| part.replace("~1", "/").replace("~0", "~").into_bytes())
            .collect(),
        None => vec![name.as_bytes().to_vec()],
    }
}

struct Texts<'a> {
    json: &'a Json,
    bytes: &'a [u8],
    utf8: bool,
    plain: bool,
    whole: bool,
    found: &'a mut Vec<Option<Piece>>,
    work: &'a RefCell<Workspace>,
    key: &'a mut Vec<u8>,
    detached: bool,
}

impl Texts<'_> {
    /// One text a line. `false`, at once, when a line has to be taken apart although the records
    /// are to keep their line ends.
    fn lines(&mut self, emit: &mut Emit<'_>) -> bool {
        let max = self.json.longest;
        for mut span in Lines::new(self.bytes) {
            let whole = &self.bytes[span.start..span.end];
            let text = &whole[..whole.len() - line_end(whole)];
            // A record separator may begin the text (RFC 7464).
            let length = text.len();
            let text = text.strip_prefix(&[RECORD_SEPARATOR]).unwrap_or(text);
            let begin = span.start + usize::from(whole.first() == Some(&RECORD_SEPARATOR));
            let blank = text.iter().all(u8::is_ascii_whitespace);
            if self.detached {
                span.end = begin + text.len();
            }
            if length > max {
                emit.overlong(span, length);
            } else if blank {
                emit.other(span, Kind::Aside);
            } else if !self.text(span, begin..begin + text.len(), emit) {
                return false;
            }
        }
        true
    }

    fn documents(&mut self, emit: &mut Emit<'_>) {
        let max = self.json.longest;
        let (mut at, mut line) = (0, 0);
        loop {
            let (start, end, junk) =
                match document::next(self.bytes, at, max, true, &mut Pending::default()) {
                    Next::Value { start, end } => (start, end, false),
                    Next::Junk { start, end } => (start, end, true),
                    Next::Blank | Next::More => return,
                };
            line += memchr_iter(b'\n', &self.bytes[at..start]).count() as u32;
            let trimmed = end - line_end(&self.bytes[start..end]);
            let span = Span { start, end: trimmed, line };
            if junk && trimmed - start > max {
                emit.overlong(span, trimmed - start);
            } else if junk {
                emit.dead(span, "not a JSON value, or one whose brackets do not match".into());
            } else {
                self.text(span, start..end, emit);
            }
            line += memchr_iter(b'\n', &self.bytes[start..end]).count() as u32;
            at = end;
        }
    }

    /// The JSON text in this range, and the records in it.
    fn text(&mut self, span: Span, range: Range<usize>, emit: &mut Emit<'_>) -> bool {
        let start = range.start;
        let text = &self.bytes[range];
        if !self.utf8
            && let Err(error) = std::str::from_utf8(text)
        {
            emit.dead(span, format!("not UTF-8 at byte {}", error.valid_up_to() + 1));
            return true;
        }
        if self.whole && matches!(text.trim_ascii_start(), [b'{' | b'[', ..]) {
            self.key.clear();
            self.key.push(NO_TEXT);
            match check(text, self.plain, &mut self.work.borrow_mut(), self.key) {
                Ok(()) => emit.keyed(span, self.key),
                Err(error) => emit.dead(span, error.to_string()),
            }
            return true;
        }
        let root = match self.json.tree.scan(text, self.plain, self.found) {
            Ok(root) => root,
            Err(error) => {
                emit.dead(span, error.to_string());
                return true;
            }
        };
        match list(&self.json.unpack, text, root) {
            Some(_) if !self.detached => return false,
            Some(list) => self.elements(Span { start, ..span }, text, list, emit),
            None => {
                let (found, work) = (&*self.found, self.work);
                emit.row(span, &JsonRow { text, root, found, work });
            }
        }
        true
    }

    fn elements(&mut self, span: Span, text: &[u8], list: Piece, emit: &mut Emit<'_>) {
        let (mut line, mut counted) = (span.line, 0);
        let (array, work) = (list.of(text), self.work);
        self.json.tree.elements(array, self.found, |root, range, found| {
            let start = list.start + range.start;
            line += memchr_iter(b'\n', &text[counted..start]).count() as u32;
            counted = start;
            let end = span.start + list.start + range.end;
            let span = Span { start: span.start + start, end, line };
            emit.row(span, &JsonRow { text: array, root, found, work });
        });
    }
}

/// The list whose elements are the records, if there is one.
fn list(unpack: &Unpack, text: &[u8], root: Piece) -> Option<Piece> {
    match (unpack, root.shape) {
        (Unpack::No, _) => None,
        (Unpack::At(tree), _) => {
            let mut found = Vec::new();
            tree.scan(text, false, &mut found).ok()?;
            found.first().copied().flatten().filter(|piece| piece.shape == Shape::Array)
        }
        (Unpack::Arrays | Unpack::List(_), Shape::Array) => Some(root),
        (Unpack::List(find), Shape::Object) => find(text),
        _ => None,
    }
}
