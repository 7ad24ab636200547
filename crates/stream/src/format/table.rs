//! Tables: rows of columns, which a header may name. CSV, TSV, columns between blanks, and logs whose
//! headers are `#` lines are tables.

use super::emit::Emit;
use super::head::Head;
use super::layout::{Buffers, Layout, Opened, Progress};
use super::names;
use crate::record::value::{Row, Value};
use crate::record::{Heading, Kind, Mark};
use crate::scan::delimited::{self, Cell, Scan, undouble};
use crate::scan::first::first_line;
use crate::scan::lines::{Lines, Span, line_end};
use memchr::{memchr, memchr_iter, memmem, memrchr};

/// How rows are split into fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Split {
    /// At each of these bytes.
    At(u8),
    /// At each of these bytes; fields may be quoted, and then hold them and line ends.
    Quoted(u8),
    /// At runs of blanks.
    Blanks {
        /// A field in quotes may hold blanks; with this also one in brackets, and quotes in quotes are
        /// escaped by a backslash, as in the logs of web servers.
        brackets: bool,
    },
}

/// A table of rows.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) split: Split,
    /// What comes before a mark.
    pub(crate) separator: u8,
    /// The names of the columns, or their numbers where there is no header. `None`: rows may have any
    /// number of columns.
    pub(crate) names: Option<Vec<String>>,
    /// The first row is the header.
    pub(crate) header: bool,
    /// The text of a field that has no value.
    pub(crate) unset: Option<Vec<u8>>,
    /// Lines that begin with `#` are no rows, and headers are among them.
    pub(crate) directives: Option<&'static Directives>,
    /// Columns that are not there are missing from every record instead of an error: for a header in
    /// mid-stream, after which the stream has to go on.
    pub(crate) lenient: bool,
    pub(crate) longest: usize,
}

/// What a log with headers in `#` lines says of them.
#[derive(Debug)]
pub(crate) struct Directives {
    /// What the first line of a header begins with, after a line end.
    pub(crate) begin: &'static [&'static str],
    /// The table by the `#` lines that bytes begin with; `None` if they do not name the columns, or
    /// not yet all of what there is to know. A header in mid-stream leaves out what the one `before`
    /// it said.
    pub(crate) read: fn(&Head<'_>, before: Option<&Table>) -> Option<Table>,
    /// Why an input without a header is refused.
    pub(crate) missing: &'static str,
    /// The lines that name or type the columns.
    pub(crate) headings: &'static [Heading],
}

impl Directives {
    /// Reads the header of an input.
    pub(crate) fn open(&self, head: &Head<'_>) -> Opened {
        if let Some(table) = (self.read)(head, None) {
            return Ok(Some(Box::new(table)));
        }
        if head.ended || first_row(head).is_some() {
            return Err(self.missing.into());
        }
        Ok(None)
    }
}

/// The first line that is neither blank nor begins with `#`, if it is complete.
pub(crate) fn first_row<'a>(head: &Head<'a>) -> Option<&'a [u8]> {
    let mut lines = Lines::new(head.bytes).map(|span| &head.bytes[span.start..span.end]);
    let row = lines.find(|line| !matches!(line[0], b'#' | b'\r' | b'\n'))?;
    (head.ended || line_end(row) > 0).then_some(row)
}

/// The lines that begin with `#`, up to the first row: each without its line end. Blank lines are
/// left out; the last line may be incomplete and then is left out too.
pub(crate) fn directives(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    Lines::new(bytes)
        .map(|span| &bytes[span.start..span.end])
        .take_while(|line| line_end(line) > 0 && matches!(line[0], b'#' | b'\r' | b'\n'))
        .map(|line| &line[..line.len() - line_end(line)])
}

/// Reads the header line of a table of separated values; without a header, columns are numbered.
pub(crate) fn open(head: &Head<'_>, separator: u8, quoted: bool, header: bool) -> Opened {
    let Head { bytes, ended, max_line, .. } = *head;
    let start = bytes.iter().position(|c| !matches!(c, b'\r' | b'\n')).unwrap_or(bytes.len());
    if start == bytes.len() && !ended {
        return Ok(None);
    }
    if start == bytes.len() {
        return Err("there is no header line".into());
    }
    let mut cells = Vec::new();
    if quoted {
        match delimited::record(bytes, start, separator, max_line, ended, &mut cells) {
            Scan::More => return Ok(None),
            Scan::Broken(_) => return Err("the header line has a quote that is not closed".into()),
            Scan::Whole(_) if cells.is_empty() => {
                return Err(format!("the header line is longer than {max_line} bytes"));
            }
            Scan::Whole(_) => {}
        }
    } else {
        let Some(line) = first_line(&bytes[start..], ended) else { return Ok(None) };
        delimited::split(bytes, start, start + line.len(), separator, &mut cells);
    }
    let name = |cell: &Cell| {
        let text = &bytes[cell.start..cell.end];
        let mut plain = Vec::new();
        if cell.doubled {
            undouble(text, &mut plain);
        } else {
            plain.extend_from_slice(text);
        }
        String::from_utf8_lossy(&plain).into_owned()
    };
    let names = if header {
        cells.iter().map(name).collect()
    } else {
        (1..=cells.len()).map(|number| number.to_string()).collect()
    };
    Ok(Some(Box::new(Table {
        split: if quoted { Split::Quoted(separator) } else { Split::At(separator) },
        separator,
        names: Some(names),
        header,
        unset: None,
        directives: None,
        lenient: false,
        longest: max_line,
    })))
}

/// A row of a table, or of columns.
pub(crate) struct TableRow<'a> {
    pub(crate) text: &'a [u8],
    pub(crate) whole: &'a [u8],
    pub(crate) cells: &'a [Cell],
    pub(crate) unset: Option<&'a [u8]>,
}

impl Row for TableRow<'_> {
    #[inline]
    fn value<'r>(&'r self, slot: usize, spare: &'r mut Vec<u8>) -> Value<'r> {
        let Some(cell) = self.cells.get(slot) else { return Value::Missing("the row ends early") };
        let text = &self.text[cell.start..cell.end];
        if self.unset.is_some_and(|unset| unset == text) {
            Value::Missing("unset")
        } else if cell.doubled {
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

impl Layout for Table {
    fn find(&mut self, name: &str, own: &[&str]) -> Result<Vec<usize>, String> {
        match &self.names {
            None => names::number(name).map(|column| vec![column]),
            Some(names) => match names::find(name, own, names) {
                Err(_) if self.lenient => Ok(Vec::new()),
                found => found,
            },
        }
    }

    fn longest(&self) -> usize {
        self.longest
    }

    fn cut(&self, bytes: &[u8], examined: usize, progress: &mut Progress) -> usize {
        let separator = match self.split {
            Split::Quoted(separator) if memchr(b'"', bytes).is_some() => separator,
            _ => return memrchr(b'\n', &bytes[examined..]).map_or(0, |at| examined + at + 1),
        };
        let mut end = 0;
        while end < bytes.len() {
            let cells = &mut progress.cells;
            cells.clear();
            match delimited::record(bytes, end, separator, self.longest, false, cells) {
                Scan::Whole(next) | Scan::Broken(next) => end = next,
                Scan::More => break,
            }
        }
        end
    }

    fn parse(&self, bytes: &[u8], header: bool, buffers: &mut Buffers, emit: &mut Emit<'_>) {
        let cells = &mut buffers.cells;
        match self.split {
            Split::Quoted(separator) if memchr(b'"', bytes).is_some() => {
                self.rows::<true>(bytes, header, cells, emit, |bytes, start, cells| {
                    delimited::record(bytes, start, separator, self.longest, true, cells)
                });
            }
            Split::Quoted(separator) | Split::At(separator) => {
                self.rows::<false>(bytes, header, cells, emit, |bytes, start, cells| {
                    delimited::line(bytes, start, separator, cells)
                });
            }
            Split::Blanks { brackets } => {
                self.rows::<false>(bytes, header, cells, emit, |bytes, start, cells| {
                    delimited::line_of_blanks(bytes, start, brackets, cells)
                });
            }
        }
    }

    fn mark(&self) -> Mark {
        Mark::Column(self.separator)
    }

    fn has_header(&self) -> bool {
        self.header
    }

    fn columns(&self) -> Option<&[String]> {
        self.names.as_deref().filter(|_| self.header)
    }

    fn headings(&self) -> &'static [Heading] {
        self.directives.map_or(&[], |directives| directives.headings)
    }

    fn renewed(&self, bytes: &[u8]) -> Option<Box<dyn Layout>> {
        let head = Head {
            bytes,
            ended: true,
            names: &[],
            fields_wanted: true,
            no_header: false,
            max_line: self.longest,
            max_document: self.longest,
        };
        let table = (self.directives?.read)(&head, Some(self))?;
        Some(Box::new(Self { lenient: true, ..table }))
    }

    fn next_header(&self, bytes: &[u8]) -> Option<usize> {
        let begin = self.directives?.begin;
        let mut start = 0;
        while let Some(b'#' | b'\r' | b'\n') = bytes.get(start) {
            start += memchr(b'\n', &bytes[start..])? + 1;
        }
        let rest = &bytes[start..];
        let at = begin.iter().filter_map(|begin| memmem::find(rest, begin.as_bytes())).min()?;
        Some(start + at + 1)
    }
}

impl Table {
    /// `LINES`: a row may have several.
    #[inline]
    fn rows<const LINES: bool>(
        &self,
        bytes: &[u8],
        mut header: bool,
        cells: &mut Vec<Cell>,
        emit: &mut Emit<'_>,
        split: impl Fn(&[u8], usize, &mut Vec<Cell>) -> Scan,
    ) {
        let columns = self.names.as_ref().map(Vec::len);
        let mut span = Span { start: 0, end: 0, line: 0 };
        while span.start < bytes.len() {
            cells.clear();
            let scan = split(bytes, span.start, cells);
            let (Scan::Whole(end) | Scan::Broken(end)) = scan else { return };
            span.end = end;
            let text = &bytes[span.start..end];
            let text = &text[..text.len() - line_end(text)];
            if text.len() > self.longest {
                emit.overlong(span, text.len());
            } else if scan == Scan::Broken(end) {
                emit.dead(span, "a quoted field is not closed properly".into());
            } else if text.is_empty()
                || cells.is_empty()
                || self.directives.is_some() && text[0] == b'#'
            {
                emit.other(span, Kind::Aside);
            } else if std::mem::take(&mut header) {
                emit.other(span, Kind::Header);
            } else if let Some(columns) = columns.filter(|columns| *columns != cells.len()) {
                emit.dead(span, wrong_count(cells.len(), columns));
            } else {
                let unset = self.unset.as_deref();
                emit.row(span, &TableRow { text: bytes, whole: text, cells, unset });
            }
            let lines = if LINES { memchr_iter(b'\n', &bytes[span.start..end]).count() } else { 1 };
            span = Span { start: end, end, line: span.line + lines as u32 };
        }
    }
}

fn wrong_count(found: usize, columns: usize) -> String {
    let fields = if found == 1 { "field" } else { "fields" };
    format!("{found} {fields} where the table has {columns} columns")
}
