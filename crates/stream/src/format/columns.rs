//! Fields separated by runs of blanks, without a header: `1 2 1082040961`.
//!
//! Rows may have any number of fields: files of this kind leave the last ones out.

use super::table::{Span, TableRow};
use super::{Emit, Lines, line_end};
use crate::record::Kind;

pub(crate) fn parse(bytes: &[u8], emit: &mut Emit<'_>, spans: &mut Vec<Span>) {
    let max = emit.schema.max_line;
    for place in Lines::new(bytes) {
        let line = &bytes[place.start..place.end];
        let line = &line[..line.len() - line_end(line)];
        if line.len() > max {
            emit.overlong(place, line.len());
            continue;
        }
        spans.clear();
        split(line, spans);
        if spans.is_empty() {
            emit.other(place, Kind::Aside);
        } else {
            emit.row(place, &TableRow { text: line, whole: line, spans, unset: None });
        }
    }
}

fn split(line: &[u8], spans: &mut Vec<Span>) {
    let mut start = 0;
    for end in memchr::memchr2_iter(b' ', b'\t', line).chain([line.len()]) {
        if end > start {
            spans.push(Span { start, end, doubled: false });
        }
        start = end + 1;
    }
}
