//! Names and values in pairs, `level=info msg="a b" id=5`, as many services write their logs (logfmt).
//!
//! A value may be in quotes, and then has the escapes of JSON; a quote that nothing closes is an
//! ordinary character, so every line can be read. A name alone has no value. Of pairs with the same name
//! the last one counts.

use super::emit::Emit;
use super::head::Signs;
use super::layout::{Buffers, Description, Layout, Places};
use crate::record::value::{Row, Value};
use crate::record::{Form, Kind, Mark, append, prefixed};
use crate::scan::json::{Piece, Shape};
use crate::scan::lines::{Lines, line_end};
use crate::scan::unescape::unescape;
use memchr::{memchr2, memchr3};
use std::ops::Range;

pub(crate) const FORMAT: Description = Description {
    signs: Signs::Row(|line, head| Some(head.wants_fields() && is_logfmt(line))),
    open: |head| Ok(Some(Box::new(Logfmt { names: Vec::new(), longest: head.max_line }))),
    key: &[],
    time: &[],
    profile: None,
    sample: ("id=a v=1\nv=\"a \\\"b\\\"\" id=\"b\"\n", "id"),
};

/// Is a line nothing but pairs, and more than one?
fn is_logfmt(line: &[u8]) -> bool {
    let mut count = 0;
    let mut is_pair = true;
    each_pair(line, |name, value| {
        let begins = line[name.start].is_ascii_alphabetic() || line[name.start] == b'_';
        let is_name = |c: &u8| c.is_ascii_alphanumeric() || b"_.-@/".contains(c);
        // `a=1, b=2` is another way to write them.
        let bare = value.is_some_and(|value| match value.shape {
            Shape::String { .. } if line.get(value.end) == Some(&b'"') => true,
            _ => !value.of(line).ends_with(b","),
        });
        is_pair &= begins && line[name].iter().all(is_name) && bare;
        count += 1;
    });
    is_pair && count > 1
}

/// Calls `each` with every name and its value, if it has one.
fn each_pair(line: &[u8], mut each: impl FnMut(Range<usize>, Option<Piece>)) {
    let mut at = 0;
    while at < line.len() {
        if line[at].is_ascii_whitespace() {
            at += 1;
            continue;
        }
        let start = at;
        let rest = |at: usize| line.get(at..).unwrap_or_default();
        at = memchr3(b' ', b'\t', b'=', rest(at)).map_or(line.len(), |n| at + n);
        let name = start..at;
        if line.get(at) != Some(&b'=') {
            each(name, None);
            continue;
        }
        at += 1;
        let value = quoted(line, at).unwrap_or_else(|| {
            let end = memchr2(b' ', b'\t', rest(at)).map_or(line.len(), |n| at + n);
            Piece { start: at, end, shape: Shape::String { escaped: false } }
        });
        at = value.end + usize::from(value.start > at);
        // A `=` that nothing precedes names nothing.
        if !name.is_empty() {
            each(name, Some(value));
        }
    }
}

/// The content of the quotes that begin here and are closed before a blank or the end.
fn quoted(line: &[u8], at: usize) -> Option<Piece> {
    let start = at + 1;
    line.get(at).filter(|c| **c == b'"')?;
    let (mut end, mut escaped) = (start, false);
    loop {
        end += memchr2(b'"', b'\\', line.get(end..)?)?;
        if line[end] == b'"' {
            break;
        }
        escaped = true;
        end += 2;
    }
    let closed = matches!(line.get(end + 1), None | Some(b' ' | b'\t'));
    closed.then_some(Piece { start, end, shape: Shape::String { escaped } })
}

/// The names that are wanted.
#[derive(Debug)]
struct Logfmt {
    names: Vec<Vec<u8>>,
    longest: usize,
}

struct LogRow<'a> {
    line: &'a [u8],
    names: &'a [Vec<u8>],
    found: &'a [Option<Piece>],
}

impl LogRow<'_> {
    fn text<'r>(&'r self, piece: Piece, spare: &'r mut Vec<u8>) -> &'r [u8] {
        let text = piece.of(self.line);
        if piece.shape != (Shape::String { escaped: true }) {
            return text;
        }
        spare.clear();
        unescape(text, spare);
        spare
    }
}

impl Row for LogRow<'_> {
    fn value<'r>(&'r self, slot: usize, spare: &'r mut Vec<u8>) -> Value<'r> {
        match self.found.get(slot) {
            Some(Some(piece)) => Value::Text(self.text(*piece, spare)),
            _ => Value::Missing("absent"),
        }
    }

    fn whole<'r>(&'r self, _: &'r mut Vec<u8>) -> Value<'r> {
        Value::Text(self.line)
    }

    /// By name, in whatever order they are written.
    fn all_but<'r>(&'r self, slots: &[usize], form: Form, spare: &'r mut Vec<u8>) -> Value<'r> {
        let left_out: Vec<_> = slots.iter().filter_map(|slot| self.names.get(*slot)).collect();
        let mut pairs: Vec<(&[u8], Option<Piece>)> = Vec::new();
        each_pair(self.line, |name, value| {
            let name = &self.line[name];
            pairs.retain(|pair| pair.0 != name);
            if !left_out.iter().any(|one| *one == name) {
                pairs.push((name, value));
            }
        });
        pairs.sort_unstable_by_key(|pair| pair.0);
        let mut plain = Vec::new();
        spare.clear();
        for (name, value) in pairs {
            prefixed(spare, |key| key.extend_from_slice(name));
            match value {
                None => spare.extend_from_slice(&u64::MAX.to_le_bytes()),
                Some(piece) => {
                    let text = self.text(piece, &mut plain);
                    prefixed(spare, |key| append(Value::Text(text), form, key));
                }
            }
        }
        Value::Text(spare)
    }
}

impl Places for Logfmt {
    fn find(&mut self, name: &str, _own: &[&str]) -> Result<Vec<usize>, String> {
        let known = self.names.iter().position(|known| known == name.as_bytes());
        Ok(vec![known.unwrap_or_else(|| {
            self.names.push(name.as_bytes().to_vec());
            self.names.len() - 1
        })])
    }
}

impl Layout for Logfmt {
    fn longest(&self) -> usize {
        self.longest
    }

    fn parse(&self, bytes: &[u8], _header: bool, buffers: &mut Buffers, emit: &mut Emit<'_>) {
        let found = &mut buffers.found;
        for span in Lines::new(bytes) {
            let line = &bytes[span.start..span.end];
            let line = &line[..line.len() - line_end(line)];
            if line.len() > self.longest {
                emit.overlong(span, line.len());
                continue;
            }
            if line.is_empty() {
                emit.other(span, Kind::Aside);
                continue;
            }
            found.clear();
            found.resize(self.names.len(), None);
            each_pair(line, |name, value| {
                if let Some(slot) = self.names.iter().position(|known| *known == line[name.clone()])
                {
                    found[slot] = value;
                }
            });
            emit.row(span, &LogRow { line, names: &self.names, found });
        }
    }

    fn mark(&self) -> Mark {
        Mark::Pair
    }
}

#[cfg(test)]
mod tests {
    use crate::options::Format;
    use crate::read::tests::{groups, keyed, options, read};
    use crate::record::Kind;

    const LOG: &str = "ts=1 level=info msg=\"a \\\"b\\\" c\" id=5\nts=2 id=\"5\" level=info msg=x ok\nts=3 msg=\"open id=6 level=\n\nts=4 id= id=5\n";

    #[test]
    fn pairs_are_found_by_name() {
        let group = |key: &str| groups(&read(LOG, &keyed(Format::Logfmt, &[key])));
        assert_eq!(group("id"), [1, 1, 2, 1]);
        assert_eq!(group("ok"), [0, 0, 0, 0]);
        assert_eq!(group("level"), [1, 1, 2, 0]);
        let found = read(LOG, &keyed(Format::Logfmt, &["msg"]));
        let plain = |text: &str| read(text, &options(Format::Lines))[0].digest;
        assert_eq!(found[0].digest, plain("a \"b\" c"));
        assert_eq!(found[2].digest, plain("\"open"));
        assert_eq!(found[3].kind, Kind::Aside);
        let found = read("a=1 b=2\nb=2 a=1\nb=2\n", &keyed(Format::Logfmt, &["*"]));
        assert_eq!(groups(&found), [1, 1, 2]);
        let found = read("a=1 b=2\nb=2 a=3\nb=2 c\n", &keyed(Format::Logfmt, &["*", "-a"]));
        assert_eq!(groups(&found), [1, 1, 2]);
    }
}
