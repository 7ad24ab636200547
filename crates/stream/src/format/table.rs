//! CSV, TSV and Zeek's TSV.
//!
//! CSV follows RFC 4180: a field is quoted if it begins with a quote; inside, `""` is a quote and
//! line ends are text. A quote further on in a field is an ordinary character. We are strict in
//! one place: after a closing quote the field must end. That is what keeps a quote that nobody
//! closed from swallowing the stream: it is found out at the next quoted field, at the latest
//! after the longest record allowed. Then its line alone is a dead letter and reading resumes on
//! the next line.

use super::{Emit, Place, line_end};
use crate::record::Kind;
use crate::record::field::{Row, Value};
use memchr::{memchr, memchr_iter, memchr2};

/// A table with a fixed number of columns.
#[derive(Clone, Debug)]
pub(crate) struct Delimited {
    pub(crate) separator: u8,
    /// Whether fields may be quoted.
    pub(crate) quoted: bool,
    pub(crate) columns: usize,
    /// Zeek: lines beginning with `#` are asides, and this text is an unset field.
    pub(crate) unset: Option<Vec<u8>>,
}

/// Where a field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// It holds doubled quotes.
    pub(crate) doubled: bool,
}

/// Where a record ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scan {
    Whole(usize),
    /// Its quotes make no sense; this is where its first line ends.
    Broken(usize),
    /// Not here: more bytes are needed.
    More,
}

/// A row of a table, or of columns.
pub(crate) struct TableRow<'a> {
    pub(crate) text: &'a [u8],
    pub(crate) whole: &'a [u8],
    pub(crate) spans: &'a [Span],
    pub(crate) unset: Option<&'a [u8]>,
}

impl Row for TableRow<'_> {
    #[inline]
    fn value<'r>(&'r self, slot: usize, spare: &'r mut Vec<u8>) -> Value<'r> {
        let Some(span) = self.spans.get(slot) else { return Value::Missing("the row ends early") };
        let text = &self.text[span.start..span.end];
        if self.unset.is_some_and(|unset| unset == text) {
            Value::Missing("unset")
        } else if span.doubled {
            spare.clear();
            undouble(text, spare);
            Value::Text(spare)
        } else {
            Value::Text(text)
        }
    }

    fn whole<'r>(&'r self, _: &'r mut Vec<u8>) -> Value<'r> {
        Value::Text(self.whole)
    }
}

pub(crate) fn undouble(mut text: &[u8], out: &mut Vec<u8>) {
    while let Some(at) = memchr(b'"', text) {
        out.extend_from_slice(&text[..=at]);
        text = text.get(at + 2..).unwrap_or_default();
    }
    out.extend_from_slice(text);
}

pub(crate) fn parse(
    table: &Delimited,
    bytes: &[u8],
    mut header: bool,
    emit: &mut Emit<'_>,
    spans: &mut Vec<Span>,
) {
    let max = emit.schema.max_line;
    let quotes = table.quoted && memchr(b'"', bytes).is_some();
    let mut place = Place { start: 0, end: 0, line: 0 };
    while place.start < bytes.len() {
        spans.clear();
        let scan = if quotes {
            record(bytes, place.start, table.separator, max, true, spans)
        } else {
            line(bytes, place.start, table.separator, spans)
        };
        let (Scan::Whole(end) | Scan::Broken(end)) = scan else { return };
        place.end = end;
        let text = &bytes[place.start..end];
        let text = &text[..text.len() - line_end(text)];
        if text.len() > max {
            emit.overlong(place, text.len());
        } else if scan == Scan::Broken(end) {
            emit.dead(place, "a quoted field is not closed properly".into());
        } else if text.is_empty() || table.unset.is_some() && text[0] == b'#' {
            emit.other(place, Kind::Aside);
        } else if std::mem::take(&mut header) {
            emit.other(place, Kind::Header);
        } else if spans.len() != table.columns {
            emit.dead(place, wrong_count(spans.len(), table.columns));
        } else {
            let unset = table.unset.as_deref();
            emit.row(place, &TableRow { text: bytes, whole: text, spans, unset });
        }
        let lines = if quotes { memchr_iter(b'\n', &bytes[place.start..end]).count() } else { 1 };
        place = Place { start: end, end, line: place.line + lines as u32 };
    }
}

fn wrong_count(found: usize, columns: usize) -> String {
    let fields = if found == 1 { "field" } else { "fields" };
    format!("{found} {fields} where the table has {columns} columns")
}

/// Splits the line that begins at `start`, in which quotes mean nothing.
fn line(bytes: &[u8], start: usize, separator: u8, spans: &mut Vec<Span>) -> Scan {
    let end = memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |n| start + n + 1);
    split(bytes, start, end, separator, spans);
    Scan::Whole(end)
}

#[inline]
pub(crate) fn split(bytes: &[u8], start: usize, end: usize, separator: u8, spans: &mut Vec<Span>) {
    let text = &bytes[start..end];
    let text = &text[..text.len() - line_end(text)];
    let mut from = start;
    for at in memchr_iter(separator, text) {
        spans.push(Span { start: from, end: start + at, doubled: false });
        from = start + at + 1;
    }
    spans.push(Span { start: from, end: start + text.len(), doubled: false });
}

/// Finds the end and the fields of the record that begins at `start`.
///
/// The answer does not depend on how much of the stream is in `bytes`, except that it may be
/// [`Scan::More`] where that is not enough; the source and the parser rely on it.
pub(crate) fn record(
    bytes: &[u8],
    start: usize,
    separator: u8,
    max: usize,
    ended: bool,
    spans: &mut Vec<Span>,
) -> Scan {
    let newline = memchr(b'\n', &bytes[start..]);
    let first = match newline {
        Some(n) => start + n + 1,
        None if ended => bytes.len(),
        None => return Scan::More,
    };
    let text = &bytes[start..first];
    if text.len() - line_end(text) > max {
        return Scan::Whole(first);
    }
    if memchr(b'"', text).is_none() {
        split(bytes, start, first, separator, spans);
        return Scan::Whole(first);
    }
    match quoted(&bytes[..bytes.len().min(start + max + 2)], start, separator, spans) {
        Quoted::Ends(end) => {
            let text = &bytes[start..end];
            let fits = end <= first || text.len() - line_end(text) <= max;
            if fits { Scan::Whole(end) } else { Scan::Broken(first) }
        }
        Quoted::Nonsense => Scan::Broken(first),
        // The limit was reached, or the end of the stream, inside quotes.
        Quoted::Open if ended || bytes.len() >= start + max + 2 => Scan::Broken(first),
        Quoted::Unended if bytes.len() >= start + max + 2 => Scan::Broken(first),
        Quoted::Unended if ended => Scan::Whole(bytes.len()),
        Quoted::Open | Quoted::Unended => Scan::More,
    }
}

enum Quoted {
    /// A line end was met outside quotes, before this.
    Ends(usize),
    /// Text after a closing quote.
    Nonsense,
    /// The bytes end inside quotes.
    Open,
    /// The bytes end outside quotes, and no line end was met.
    Unended,
}

fn quoted(bytes: &[u8], start: usize, separator: u8, spans: &mut Vec<Span>) -> Quoted {
    let mut at = start;
    loop {
        if bytes.get(at) == Some(&b'"') {
            let from = at + 1;
            let mut doubled = false;
            at = from;
            loop {
                let rest = bytes.get(at..).unwrap_or_default();
                let Some(n) = memchr(b'"', rest) else { return Quoted::Open };
                at += n;
                if bytes.get(at + 1) != Some(&b'"') {
                    break;
                }
                doubled = true;
                at += 2;
            }
            spans.push(Span { start: from, end: at, doubled });
            at += 1;
            match &bytes[at..] {
                [b'\n', ..] => return Quoted::Ends(at + 1),
                [b'\r', b'\n', ..] => return Quoted::Ends(at + 2),
                [] | [b'\r'] => return Quoted::Unended,
                [next, ..] if *next == separator => at += 1,
                _ => return Quoted::Nonsense,
            }
        } else {
            match memchr2(separator, b'\n', &bytes[at..]) {
                Some(n) if bytes[at + n] == separator => {
                    spans.push(Span { start: at, end: at + n, doubled: false });
                    at += n + 1;
                }
                Some(n) => {
                    let end = at + n + 1;
                    let text = end - line_end(&bytes[at..end]);
                    spans.push(Span { start: at, end: text, doubled: false });
                    return Quoted::Ends(end);
                }
                None => {
                    spans.push(Span { start: at, end: bytes.len(), doubled: false });
                    return Quoted::Unended;
                }
            }
        }
    }
}
