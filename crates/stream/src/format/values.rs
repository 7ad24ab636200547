//! NDJSON, and JSON documents whose parts are the records.

use super::{Emit, Lines, Place, line_end};
use crate::record::Kind;
use crate::record::field::{Row, Value};
use crate::scan::canonical;
use crate::scan::document::{self, Next, Pending};
use crate::scan::json::{Piece, Shape, Tree};
use memchr::memchr_iter;

/// A layout of JSON values.
#[derive(Clone, Debug)]
pub(crate) struct Json {
    /// The members that are wanted.
    pub(crate) tree: Tree,
    /// Values may run over several lines; else there is one a line.
    pub(crate) documents: bool,
    /// Which parts of a value are records.
    pub(crate) unpack: Unpack,
}

/// Which parts of an outermost value are records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unpack {
    /// It is one itself.
    No,
    /// The elements, if it is an array.
    Arrays,
    /// The events, if it is an EPCIS document.
    Events,
}

/// A checked JSON text and where its wanted members are.
struct JsonRow<'a> {
    text: &'a [u8],
    root: Piece,
    found: &'a [Option<Piece>],
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
                canonical::unescape(text, spare);
                Value::Text(spare)
            }
            Shape::Array | Shape::Object => {
                spare.clear();
                canonical::canonical(text, spare);
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
}

impl Json {
    /// Finds the records; `true` if they are detached from their line ends.
    pub(crate) fn parse(
        &self,
        bytes: &[u8],
        emit: &mut Emit<'_>,
        found: &mut Vec<Option<Piece>>,
    ) -> bool {
        // Nearly always the whole chunk is valid, and then no text needs to be looked at again.
        let utf8 = std::str::from_utf8(bytes).is_ok();
        let mut texts = Texts { json: self, bytes, utf8, found, detached: self.documents };
        if self.documents {
            texts.documents(emit);
        } else if !texts.lines(emit) {
            emit.restart();
            texts.detached = true;
            texts.lines(emit);
        }
        texts.detached
    }
}

struct Texts<'a> {
    json: &'a Json,
    bytes: &'a [u8],
    utf8: bool,
    found: &'a mut Vec<Option<Piece>>,
    detached: bool,
}

impl Texts<'_> {
    /// One text a line. `false`, at once, when a line has to be taken apart although the records
    /// are to keep their line ends.
    fn lines(&mut self, emit: &mut Emit<'_>) -> bool {
        let max = emit.schema.max_line;
        for mut place in Lines::new(self.bytes) {
            let whole = &self.bytes[place.start..place.end];
            let text = &whole[..whole.len() - line_end(whole)];
            let blank = text.iter().all(u8::is_ascii_whitespace);
            if self.detached {
                place.end = place.start + text.len();
            }
            if text.len() > max {
                emit.overlong(place, text.len());
            } else if blank {
                emit.other(place, Kind::Aside);
            } else if !self.text(place, place.start + text.len(), emit) {
                return false;
            }
        }
        true
    }

    fn documents(&mut self, emit: &mut Emit<'_>) {
        let max = emit.schema.max_document;
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
            let place = Place { start, end: trimmed, line };
            if junk && trimmed - start > max {
                emit.overlong(place, trimmed - start);
            } else if junk {
                emit.dead(place, "not a JSON value, or one whose brackets do not match".into());
            } else {
                self.text(place, end, emit);
            }
            line += memchr_iter(b'\n', &self.bytes[start..end]).count() as u32;
            at = end;
        }
    }

    /// One JSON text, from the place's start to `end`, and the records in it.
    fn text(&mut self, place: Place, end: usize, emit: &mut Emit<'_>) -> bool {
        let text = &self.bytes[place.start..end];
        if !self.utf8
            && let Err(error) = std::str::from_utf8(text)
        {
            emit.dead(place, format!("not UTF-8 at byte {}", error.valid_up_to() + 1));
            return true;
        }
        let root = match self.json.tree.scan(text, self.found) {
            Ok(root) => root,
            Err(error) => {
                emit.dead(place, error.to_string());
                return true;
            }
        };
        match list(self.json.unpack, text, root) {
            Some(_) if !self.detached => return false,
            Some(list) => self.elements(place, text, list, emit),
            None => emit.row(place, &JsonRow { text, root, found: self.found }),
        }
        true
    }

    fn elements(&mut self, place: Place, text: &[u8], list: Piece, emit: &mut Emit<'_>) {
        let (mut line, mut counted) = (place.line, 0);
        let array = list.of(text);
        self.json.tree.elements(array, self.found, |root, range, found| {
            let start = list.start + range.start;
            line += memchr_iter(b'\n', &text[counted..start]).count() as u32;
            counted = start;
            let end = place.start + list.start + range.end;
            let place = Place { start: place.start + start, end, line };
            emit.row(place, &JsonRow { text: array, root, found });
        });
    }
}

/// The list whose elements are the records, if there is one.
fn list(unpack: Unpack, text: &[u8], root: Piece) -> Option<Piece> {
    match (unpack, root.shape) {
        (Unpack::No, _) => None,
        (Unpack::Arrays | Unpack::Events, Shape::Array) => Some(root),
        (Unpack::Events, Shape::Object) => events(text),
        _ => None,
    }
}

/// The event list of an EPCIS document or query result.
fn events(text: &[u8]) -> Option<Piece> {
    memchr::memmem::find(text, b"\"epcisBody\"")?;
    let mut tree = Tree::default();
    let body = b"epcisBody".as_slice();
    let slots = [
        tree.slot([body, b"eventList"]),
        tree.slot([body, b"queryResults", b"resultsBody", b"eventList"]),
    ];
    let mut found = Vec::new();
    tree.scan(text, &mut found).ok()?;
    let list = |slot: usize| found.get(slot).copied().flatten();
    slots.into_iter().find_map(list).filter(|piece| piece.shape == Shape::Array)
}
