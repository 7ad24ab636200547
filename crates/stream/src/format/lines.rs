//! Raw lines: a record is a line, and its key is the line without its end.

use super::emit::Emit;
use super::head::Signs;
use super::layout::{Buffers, Description, Layout};
use crate::record::Mark;
use crate::record::value::{Row, Value};
use crate::scan::lines::{self, line_end};

pub(crate) const FORMAT: Description = Description {
    signs: Signs::None,
    open: |head| Ok(Some(Box::new(Lines { longest: head.max_line }))),
    key: &[],
    time: &[],
    profile: None,
    sample: ("a\nb\na\n", "."),
};

/// Lines of at most so many bytes.
#[derive(Debug)]
struct Lines {
    longest: usize,
}

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

impl Layout for Lines {
    fn find(&mut self, name: &str, _own: &[&str]) -> Result<Vec<usize>, String> {
        Err(format!("raw lines have no field `{name}`; name a format that has"))
    }

    fn longest(&self) -> usize {
        self.longest
    }

    fn parse(&self, bytes: &[u8], _header: bool, _buffers: &mut Buffers, emit: &mut Emit<'_>) {
        let plain = emit.fields.only_whole();
        for span in lines::Lines::new(bytes) {
            let line = &bytes[span.start..span.end];
            let line = &line[..line.len() - line_end(line)];
            if line.len() > self.longest {
                emit.overlong(span, line.len());
            } else if plain {
                emit.keyed(span, line);
            } else {
                emit.row(span, &Line(line));
            }
        }
    }

    fn mark(&self) -> Mark {
        Mark::Column(b'\t')
    }
}
