//! Tells formats apart by looking at the first bytes of an input.

use super::shape::Shape;
use super::table::{self, Scan};
use super::values::Unpack;
use super::{Lines, Place, line_end};
use crate::options::{Format, Options};
use crate::scan::document::{self, Next, Pending};
use crate::scan::json::{Piece, Shape as JsonShape, Tree};

/// The format of an input that begins with `head`; `None` if more bytes are needed to tell.
pub(crate) fn format(options: &Options, head: &[u8], ended: bool) -> Option<Format> {
    if options.format != Format::Auto {
        return Some(options.format);
    }
    if !options.look_inside() {
        return Some(Format::Lines);
    }
    let found = look(options, head, ended)?;
    // Where no field is named, all that can be of use is a time that the format brings. To take a
    // log's first line for a header because it has a comma would lose lines.
    let named = options.fields_wanted || options.names().next().is_some();
    let brings_time = found.is_rfid() || found == Format::Zeek;
    Some(if named || brings_time { found } else { Format::Lines })
}

fn look(options: &Options, head: &[u8], ended: bool) -> Option<Format> {
    let blank = head.iter().position(|c| !c.is_ascii_whitespace());
    // Nothing but blanks has every format; this is one without a header to miss.
    let Some(blank) = blank else { return ended.then_some(Format::Ndjson) };
    let head = &head[blank..];
    if let b'{' | b'[' = head[0] {
        // Where no field is named only an RFID document is of use, and a line such as `[start` is
        // no beginning of one: do not wait for its bracket to close.
        let named = options.fields_wanted || options.names().next().is_some();
        if !named && !may_begin_records(first_line(head, ended)?) {
            return Some(Format::Lines);
        }
        let (text, documents) = first_value(head, options, ended)?;
        return Some(json_format(text, documents));
    }
    let line = first_line(head, ended)?;
    if line.starts_with(b"#separator") || line.starts_with(b"#fields") {
        return Some(Format::Zeek);
    }
    Some(table_format(line, options))
}

/// Can a document of objects begin with this line: an object, or an array of them?
fn may_begin_records(line: &[u8]) -> bool {
    let inner = line.trim_ascii();
    let inner = inner.strip_prefix(b"[").unwrap_or(inner).trim_ascii_start();
    let Some(members) = inner.strip_prefix(b"{") else { return inner.is_empty() };
    matches!(members.trim_ascii_start(), [] | [b'"' | b'}', ..])
}

fn first_line(head: &[u8], ended: bool) -> Option<&[u8]> {
    let line = Lines::new(head).next().map_or(head, |place| &head[..place.end]);
    let end = line_end(line);
    (end > 0 || ended).then(|| &line[..line.len() - end])
}

/// The first JSON value, and whether values may run over several lines. What decides is what
/// comes first in the input, so that it does not matter how much of it has been read.
fn first_value<'a>(head: &'a [u8], options: &Options, ended: bool) -> Option<(&'a [u8], bool)> {
    let valid = |text: &[u8]| Tree::default().scan(text, &mut Vec::new()).is_ok();
    let first = first_line(head, ended)?;
    if valid(first) {
        return Some((first, false));
    }
    let value = match document::next(head, 0, options.max_document, ended, &mut Pending::default())
    {
        // Several values on one line.
        Next::Value { end, .. }
            if end < first.len()
                && matches!(first[end..].trim_ascii_start(), [b'{' | b'[', ..]) =>
        {
            Some(&head[..end])
        }
        // Balanced, but on one line and not valid: that is a broken line.
        Next::Value { end, .. } if end > first.len() => Some(&head[..end]),
        Next::More if head[0] == b'[' => return None,
        Next::More => None,
        // An array that never ends: its elements can still be found one by one.
        Next::Junk { .. } if head[0] == b'[' => return Some((first, true)),
        _ if head[0] == b'[' => return Some((first, false)),
        _ => None,
    };
    // A broken first line must not make a document of all that follows: if another line is a
    // whole object, there is one a line. (In an array, lines may well be whole objects.)
    let complete = |place: &Place| ended || line_end(&head[place.start..place.end]) > 0;
    let line = Lines::new(head).take(LOOK).skip(1).filter(complete).find(|place| {
        head[0] == b'{' && head[place.start] == b'{' && valid(&head[place.start..place.end])
    });
    match (value, line) {
        (Some(value), Some(line)) if line.end < value.len() => {
            Some((&head[line.start..line.end], false))
        }
        (Some(value), _) => Some((value, true)),
        (None, Some(line)) => Some((&head[line.start..line.end], false)),
        (None, None) => {
            let looked = Lines::new(head).take(LOOK).filter(complete).count() == LOOK;
            let hopeless = looked && document::hopeless(head, options.max_document);
            (ended || hopeless).then_some((first, false))
        }
    }
}

/// How many lines are looked at.
const LOOK: usize = 16;

fn json_format(text: &[u8], documents: bool) -> Format {
    let mut tree = Tree::default();
    let mut slot = |path: &[&str]| tree.slot(path.iter().map(|name| name.as_bytes()));
    let body = slot(&["epcisBody"]);
    let event_time = [slot(&["eventTime"]), slot(&["0", "eventTime"])];
    let epcs = [slot(&["epcList"]), slot(&["0", "epcList"])];
    let kind = [slot(&["eventType"]), slot(&["0", "eventType"])];
    let inventory = [slot(&["tagInventoryEvent"]), slot(&["0", "tagInventoryEvent"])];
    let status = slot(&["inventoryStatusEvent"]);
    let id = [slot(&["data", "idHex"]), slot(&["0", "data", "idHex"])];
    let time = [slot(&["timestamp"]), slot(&["0", "timestamp"])];
    let mut found: Vec<Option<Piece>> = Vec::new();
    let Ok(root) = tree.scan(text, &mut found) else {
        return if documents { Format::Json } else { Format::Ndjson };
    };
    let has = |slots: &[usize]| slots.iter().any(|&slot| found[slot].is_some());
    if has(&[body]) || has(&event_time) && has(&epcs) {
        Format::Epcis
    } else if has(&kind) && (has(&inventory) || has(&[status])) {
        Format::Impinj
    } else if has(&id) && has(&time) {
        Format::Zebra
    } else if documents || root.shape == JsonShape::Array {
        Format::Json
    } else {
        Format::Ndjson
    }
}

fn table_format(line: &[u8], options: &Options) -> Format {
    if memchr::memchr(b'\t', line).is_some() {
        return Format::Tsv;
    }
    let numbers = || options.names().all(|name| name.bytes().all(|c| c.is_ascii_digit()));
    if memchr::memchr(b',', line).is_none() && line.contains(&b' ') && numbers() {
        return Format::Columns;
    }
    if options.no_header {
        return Format::Csv;
    }
    let names: Vec<_> = line.split(|c| *c == b',').collect();
    let has = |wanted: &[&str]| wanted.iter().all(|name| names.contains(&name.as_bytes()));
    if line.starts_with(b"RunTimestamp,Timestamp,EPC") {
        Format::Runtimestamp
    } else if has(&["antenna_port", "epc", "first_seen_timestamp"]) {
        Format::Speedway
    } else if has(&["timestamp", "reader", "antenna", "rssi", "epc"]) {
        Format::Sllurp
    } else {
        Format::Csv
    }
}

/// The shape of an input in `format`; `None` if more bytes are needed to tell.
pub(crate) fn shape(
    format: Format,
    options: &Options,
    head: &[u8],
    ended: bool,
) -> Result<Option<Shape>, String> {
    let json = |unpack| {
        let blank = head.iter().position(|c| !c.is_ascii_whitespace());
        let head = &head[blank.unwrap_or(head.len())..];
        let documents = match head.first() {
            None if !ended => return Ok(None),
            Some(b'{' | b'[') => match first_value(head, options, ended) {
                None => return Ok(None),
                Some((_, documents)) => documents,
            },
            _ => false,
        };
        Ok(Some(Shape::Json { documents, unpack }))
    };
    match format {
        Format::Auto | Format::Lines => Ok(Some(Shape::Lines)),
        Format::Columns => Ok(Some(Shape::Columns)),
        Format::Ndjson => Ok(Some(Shape::Json { documents: false, unpack: Unpack::No })),
        Format::Json | Format::Impinj | Format::Zebra => json(Unpack::Arrays),
        Format::Epcis => json(Unpack::Events),
        Format::Tsv => table(b'\t', false, options.no_header, options, head, ended),
        Format::Csv => table(b',', true, options.no_header, options, head, ended),
        Format::Sllurp | Format::Speedway | Format::Runtimestamp => {
            table(b',', true, false, options, head, ended)
        }
        Format::Zeek => match zeek(head, None) {
            Some(shape) => Ok(Some(shape)),
            None => {
                let row = |place: Place| !matches!(head[place.start], b'#' | b'\r' | b'\n');
                let rows = Lines::new(head).any(row);
                let error = || "no `#fields` line before the first row: not a Zeek log".into();
                if ended || rows { Err(error()) } else { Ok(None) }
            }
        },
    }
}

fn table(
    separator: u8,
    quoted: bool,
    no_header: bool,
    options: &Options,
    head: &[u8],
    ended: bool,
) -> Result<Option<Shape>, String> {
    let start = head.iter().position(|c| !matches!(c, b'\r' | b'\n')).unwrap_or(head.len());
    if start == head.len() && !ended {
        return Ok(None);
    }
    if start == head.len() {
        return Err("there is no header line".into());
    }
    let mut spans = Vec::new();
    let max = options.max_line.min(1 << 30);
    if quoted {
        match table::record(head, start, separator, max, ended, &mut spans) {
            Scan::More => return Ok(None),
            Scan::Broken(_) => return Err("the header line has a quote that is not closed".into()),
            Scan::Whole(_) if spans.is_empty() => {
                return Err(format!("the header line is longer than {max} bytes"));
            }
            Scan::Whole(_) => {}
        }
    } else {
        let Some(line) = first_line(&head[start..], ended) else { return Ok(None) };
        table::split(head, start, start + line.len(), separator, &mut spans);
    }
    let name = |span: &table::Span| {
        let text = &head[span.start..span.end];
        let mut plain = Vec::new();
        if span.doubled {
            table::undouble(text, &mut plain);
        } else {
            plain.extend_from_slice(text);
        }
        String::from_utf8_lossy(&plain).into_owned()
    };
    let names = match no_header {
        true => (1..=spans.len()).map(|number| number.to_string()).collect(),
        false => spans.iter().map(name).collect(),
    };
    Ok(Some(Shape::Table { separator, quoted, names, unset: None, lenient: false }))
}

/// The shape of a Zeek log by the `#` lines it begins with; `None` if `#fields` is not complete.
/// A header in the midst of a stream leaves out what the one `before` it said.
pub(crate) fn zeek(head: &[u8], before: Option<(u8, &[u8])>) -> Option<Shape> {
    let (mut separator, unset) = before.unwrap_or((b'\t', b"-"));
    let mut unset = unset.to_vec();
    for place in Lines::new(head) {
        let line = &head[place.start..place.end];
        let end = line_end(line);
        if end == 0 || !matches!(line[0], b'#' | b'\r' | b'\n') {
            return None;
        }
        let line = &line[..line.len() - end];
        let after = |name: &[u8]| {
            let rest = line.strip_prefix(name)?;
            rest.strip_prefix(&[separator]).or_else(|| rest.strip_prefix(b" "))
        };
        if let Some(text) = after(b"#separator") {
            let hex = text.strip_prefix(b"\\x").and_then(|hex| std::str::from_utf8(hex).ok());
            let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
            separator = byte.or(text.first().copied()).unwrap_or(separator);
        } else if let Some(text) = after(b"#unset_field") {
            unset = text.to_vec();
        } else if let Some(fields) = after(b"#fields") {
            let name = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
            let names = fields.split(|c| *c == separator).map(name).collect();
            let lenient = before.is_some();
            return Some(Shape::Table {
                separator,
                quoted: false,
                names,
                unset: Some(unset),
                lenient,
            });
        }
    }
    None
}
