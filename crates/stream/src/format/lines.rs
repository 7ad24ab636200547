//! A record is a line; its key is the line without its line end.

use super::{Emit, Lines, line_end};
use crate::record::field::{Row, Value};

/// A line as a record without fields.
struct Line<'a>(&'a [u8]);

impl Row for Line<'_> {
    fn value<'r>(&'r self, _: usize, _: &'r mut Vec<u8>) -> Value<'r> {
        Value::Missing("a raw line has no fields")
    }

    fn whole<'r>(&'r self, _: &'r mut Vec<u8>) -> Value<'r> {
        Value::Text(self.0)
    }
}

pub(crate) fn parse(bytes: &[u8], emit: &mut Emit<'_>) {
    let max = emit.schema.max_line;
    let plain = emit.schema.numbers.is_none() && emit.schema.wanted.only_whole();
    for place in Lines::new(bytes) {
        let line = &bytes[place.start..place.end];
        let line = &line[..line.len() - line_end(line)];
        if line.len() > max {
            emit.overlong(place, line.len());
        } else if plain {
            emit.keyed(place, line);
        } else {
            emit.row(place, &Line(line));
        }
    }
}
