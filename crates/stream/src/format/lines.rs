//! Raw lines: a record is a line, and its key is the line without its end.

use super::emit::Emit;
use super::head::{Head, Signs};
use super::layout::{Buffers, Description, Layout, Places, Progress};
use crate::record::Mark;
use crate::record::value::{Row, Value};
use crate::scan::lines::{self, Span, line_end as length_of_end};
use memchr::{memchr, memchr_iter, memchr2, memrchr};

pub(crate) const FORMAT: Description = Description {
    signs: Signs::None,
    open: |head| {
        let longest = head.max_line;
        Ok(match line_end(head) {
            None => None,
            Some(b'\n') => Some(Box::new(Lines { longest })),
            Some(end) => Some(Box::new(Terminated { end, longest })),
        })
    },
    key: &[],
    time: &[],
    profile: None,
    sample: ("a\nb\na\n", "."),
};

/// What ends the lines of an input; `None` if more bytes are needed. A carriage return alone does where
/// there is no line feed at all.
fn line_end(head: &Head<'_>) -> Option<u8> {
    if head.null {
        return Some(0);
    }
    // No line is longer than this, so no more of the input has a say, however much of it there is.
    let most = head.max_line.saturating_add(1);
    let bytes = head.bytes.get(..most).unwrap_or(head.bytes);
    let is_all = head.ended || bytes.len() == most;
    match memchr2(b'\n', b'\r', bytes).map(|at| &bytes[at..]) {
        Some([b'\r', rest @ ..]) if memchr(b'\n', rest).is_none() => is_all.then_some(b'\r'),
        Some(_) => Some(b'\n'),
        None => is_all.then_some(b'\n'),
    }
}

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

fn no_field(name: &str) -> Result<Vec<usize>, String> {
    Err(format!("raw lines have no field `{name}`; name a format that has"))
}

impl Places for Lines {
    fn find(&mut self, name: &str, _own: &[&str]) -> Result<Vec<usize>, String> {
        no_field(name)
    }
}

impl Layout for Lines {
    fn longest(&self) -> usize {
        self.longest
    }

    fn parse(&self, bytes: &[u8], _header: bool, _buffers: &mut Buffers, emit: &mut Emit<'_>) {
        let plain = emit.fields.only_whole();
        for span in lines::Lines::new(bytes) {
            let line = &bytes[span.start..span.end];
            let line = &line[..line.len() - length_of_end(line)];
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

/// Records of at most so many bytes that end with a byte of their own.
#[derive(Debug)]
struct Terminated {
    end: u8,
    longest: usize,
}

impl Places for Terminated {
    fn find(&mut self, name: &str, _own: &[&str]) -> Result<Vec<usize>, String> {
        no_field(name)
    }
}

impl Layout for Terminated {
    fn longest(&self) -> usize {
        self.longest
    }

    fn line_end(&self) -> u8 {
        self.end
    }

    fn cut(&self, bytes: &[u8], examined: usize, _progress: &mut Progress) -> usize {
        memrchr(self.end, &bytes[examined..]).map_or(0, |at| examined + at + 1)
    }

    fn parse(&self, bytes: &[u8], _header: bool, _buffers: &mut Buffers, emit: &mut Emit<'_>) {
        let plain = emit.fields.only_whole();
        let ends = memchr_iter(self.end, bytes).map(|at| (at, at + 1));
        let (mut start, mut line) = (0, 0);
        for (text_end, end) in ends.chain([(bytes.len(), bytes.len())]) {
            if start == end {
                continue;
            }
            let span = Span { start, end, line };
            let text = &bytes[start..text_end];
            if text.len() > self.longest {
                emit.overlong(span, text.len());
            } else if plain {
                emit.keyed(span, text);
            } else {
                emit.row(span, &Line(text));
            }
            (start, line) = (end, line + 1);
        }
    }

    fn mark(&self) -> Mark {
        Mark::Column(b'\t')
    }
}
