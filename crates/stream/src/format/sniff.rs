//! Recognises the format of an input by its first bytes.

use super::head::{Head, Kind, Signs};
use super::values::path;
use super::{Format, lead};
use crate::scan::first::{first_line, first_value};
use crate::scan::json::Shape;
use crate::scan::lines::RECORD_SEPARATOR;
use crate::scan::tree::Tree;

/// The format of an input that begins so; `None` if more bytes are needed to tell.
pub(crate) fn sniff(head: &Head<'_>) -> Option<Format> {
    let found = look(head)?;
    // Where no field is named, all that can be of use is a time that the format brings. To take a
    // log's first line for a header because it has a comma would lose lines.
    let brings_time = found.description().is_some_and(|format| !format.time.is_empty());
    Some(if head.wants_fields() || brings_time { found } else { Format::Lines })
}

fn look(head: &Head<'_>) -> Option<Format> {
    // A record separator may begin each JSON text (RFC 7464).
    let blank = head.bytes.iter().position(|c| !c.is_ascii_whitespace() && *c != RECORD_SEPARATOR);
    // Nothing but blanks has every format; this is one without a header to miss.
    let Some(blank) = blank else { return head.ended.then_some(Format::Ndjson) };
    let head = &Head { bytes: &head.bytes[blank..], ..*head };
    let line = first_line(head.bytes, head.ended);
    if let b'{' | b'[' = head.bytes[0] {
        // Where no field is named only an RFID document is of use, and a line such as `[start` is
        // no beginning of one: do not wait for its bracket to close.
        if !head.wants_fields() && !may_begin_records(line?) {
            return Some(Format::Lines);
        }
        let (text, documents) = first_value(head.bytes, head.max_document, head.ended)?;
        return Some(by_value(text, documents));
    }
    by_line(line?, head)
}

/// Can a document of objects begin with this line: an object, or an array of them?
fn may_begin_records(line: &[u8]) -> bool {
    let inner = line.trim_ascii();
    let inner = inner.strip_prefix(b"[").unwrap_or(inner).trim_ascii_start();
    let Some(members) = inner.strip_prefix(b"{") else { return inner.is_empty() };
    matches!(members.trim_ascii_start(), [] | [b'"' | b'}', ..])
}

/// The formats with their signs, the special ones first.
fn signs() -> impl Iterator<Item = (Format, Signs)> {
    let formats = Format::NAMES.into_iter().rev();
    formats.filter_map(|(_, format)| Some((format, format.description()?.signs)))
}

fn by_line(line: &[u8], head: &Head<'_>) -> Option<Format> {
    for (format, signs) in signs() {
        if let Signs::Line(bears) = signs
            && bears(line, head)?
        {
            return Some(format);
        }
    }
    let row = match lead::length(head, b',')? {
        lead if lead < head.bytes.len() => first_line(&head.bytes[lead..], head.ended)?,
        _ => line,
    };
    for (format, signs) in signs() {
        if let Signs::Row(bears) = signs
            && bears(row, head)?
        {
            return Some(format);
        }
    }
    Some(Format::Lines)
}

fn by_value(text: &[u8], documents: bool) -> Format {
    // One pass over the value for the members of all formats.
    let mut tree = Tree::default();
    let mut wanted = Vec::new();
    for (_, signs) in signs() {
        let Signs::Members(sets) = signs else { continue };
        for &member in sets.iter().copied().flatten() {
            let path = path(member);
            let names = || path.iter().map(|name| &**name);
            let first = [b"0".as_slice()].into_iter();
            wanted.push((member, [tree.slot(names()), tree.slot(first.chain(names()))]));
        }
    }
    let mut found = Vec::new();
    let root = tree.scan(text, false, &mut found).ok();
    let has = |member: &&str| {
        let slots = wanted.iter().filter(|wanted| wanted.0 == *member).flat_map(|wanted| wanted.1);
        slots.into_iter().any(|slot| found.get(slot).copied().flatten().is_some())
    };
    let is_array = root.is_some_and(|root| root.shape == Shape::Array);
    let kind = Kind { is_array, documents };
    let bears = |signs| match signs {
        Signs::Members(sets) => root.is_some() && sets.iter().any(|set| set.iter().all(has)),
        Signs::Value(bears) => bears(kind),
        Signs::Line(_) | Signs::Row(_) | Signs::None => false,
    };
    signs().find(|&(_, signs)| bears(signs)).map_or(Format::Ndjson, |(format, _)| format)
}
