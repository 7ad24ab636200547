//! Tables: rows of columns, which a header may name. CSV, TSV, columns between blanks, and logs whose
//! headers are `#` lines are tables.

use super::emit::Emit;
use super::head::Head;
use super::layout::{Buffers, Layout, Opened, Places, Progress};
use super::lead::{self, Lead};
use super::names;
use crate::record::value::{Row, Value};
use crate::record::{Form, Heading, Kind, Mark, append, prefixed};
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
    /// The bytes that come before the header or the first row, lines that are none.
    pub(crate) lead: Vec<u8>,
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

/// Why a table whose lines end as they did on old computers is refused.
const CARRIAGE_RETURNS: &str = "its lines end with a carriage return alone; write them as lines first (tr '\\r' '\\n' < FILE | lately ...)";

/// Reads the header line of a table of separated values; without a header, columns are numbered.
pub(crate) fn open(head: &Head<'_>, separator: u8, quoted: bool, header: bool) -> Opened {
    let Head { bytes, ended, max_line, .. } = *head;
    let Some(Lead { length: start, separator, is_comment }) = lead::find(head, separator, quoted)
    else {
        return Ok(None);
    };
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
    let names = if header {
        let names = names(bytes, &cells, is_comment);
        let returns = names.iter().any(|name| name.trim_end_matches('\r').contains('\r'));
        if returns && memchr(b'\n', &bytes[start..]).is_none() {
            return Err(CARRIAGE_RETURNS.into());
        }
        names
    } else {
        (1..=cells.len()).map(|number| number.to_string()).collect()
    };
    Ok(Some(Box::new(Table {
        split: if quoted { Split::Quoted(separator) } else { Split::At(separator) },
        separator,
        names: Some(names),
        header,
        lead: bytes[..start].to_vec(),
        unset: None,
        directives: None,
        lenient: false,
        longest: max_line,
    })))
}

/// The names in the cells of a header line, which may be a comment.
fn names(bytes: &[u8], cells: &[Cell], is_comment: bool) -> Vec<String> {
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
    let mut names: Vec<_> = cells.iter().map(name).collect();
    if let Some(first) = names.first_mut().filter(|_| is_comment)
        && let Some(text) = lead::comment(first.as_bytes())
    {
        *first = String::from_utf8_lossy(text).into_owned();
    }
    names
}

/// So few columns after the last one that is wanted are found as well.
const FEW: usize = 2;

/// A row of a table, or of columns.
pub(crate) struct TableRow<'a> {
    pub(crate) text: &'a [u8],
    pub(crate) whole: &'a [u8],
    pub(crate) cells: &'a [Cell],
    pub(crate) unset: Option<&'a [u8]>,
    /// Where the row begins in `text`.
    pub(crate) start: usize,
    /// Columns are separated by blanks.
    pub(crate) blanks: bool,
}

impl TableRow<'_> {
    /// The fields of some columns, each with its length, so that no two rows look alike.
    fn joined<'r>(
        &self,
        columns: impl Iterator<Item = usize>,
        form: Form,
        spare: &'r mut Vec<u8>,
    ) -> Value<'r> {
        spare.clear();
        let mut plain = Vec::new();
        for column in columns {
            match self.value(column, &mut plain) {
                // A length no field has: a value that is not there is not an empty one.
                Value::Missing(_) => spare.extend_from_slice(&u64::MAX.to_le_bytes()),
                value => prefixed(spare, |key| append(value, form, key)),
            }
        }
        Value::Text(spare)
    }
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

    fn rest<'r>(&'r self, first: usize, form: Form, spare: &'r mut Vec<u8>) -> Value<'r> {
        let Some(cell) = self.cells.get(first) else { return Value::Missing("the row ends early") };
        if !self.blanks {
            return self.joined(first..self.cells.len(), form, spare);
        }
        // As it is written, blanks and all.
        let quoted = cell.start > self.start && self.text[cell.start - 1] == b'"';
        let start = cell.start - usize::from(quoted);
        spare.clear();
        append(Value::Text(&self.text[start..self.start + self.whole.len()]), form, spare);
        Value::Text(spare)
    }

    fn all_but<'r>(&'r self, slots: &[usize], form: Form, spare: &'r mut Vec<u8>) -> Value<'r> {
        self.joined((0..self.cells.len()).filter(|column| !slots.contains(column)), form, spare)
    }
}

impl Places for Table {
    fn find(&mut self, name: &str, own: &[&str]) -> Result<Vec<usize>, String> {
        match &self.names {
            None => names::number(name).map(|column| vec![column]),
            Some(names) => match names::find(name, own, names) {
                Err(_) if self.lenient => Ok(Vec::new()),
                found => found,
            },
        }
    }

    fn width(&self) -> Option<usize> {
        self.names.as_ref().map(Vec::len)
    }

    fn is_table(&self) -> bool {
        true
    }
}

impl Layout for Table {
    fn longest(&self) -> usize {
        self.longest
    }

    fn cut(&self, bytes: &[u8], examined: usize, progress: &mut Progress) -> usize {
        let separator = match self.split {
            Split::Quoted(separator) if memchr(b'"', bytes).is_some() => separator,
            _ => return memrchr(b'\n', &bytes[examined..]).map_or(0, |at| examined + at + 1),
        };
        let mut end = if progress.is_begun { 0 } else { self.led(bytes) };
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
                let wanted = emit.fields.columns_wanted();
                // To count a few columns is not quicker than to find them.
                let is_many = |wanted: &usize| self.width().is_none_or(|all| all > wanted + FEW);
                let wanted = wanted.filter(is_many).unwrap_or(usize::MAX);
                self.rows::<false>(bytes, header, cells, emit, |bytes, start, cells| {
                    delimited::line(bytes, start, separator, wanted, cells)
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
        self.header || !self.lead.is_empty()
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
            delimiter: None,
            records: None,
            null: false,
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
    /// How many of the bytes come before the header or the first row.
    fn led(&self, bytes: &[u8]) -> usize {
        if bytes.starts_with(&self.lead) { self.lead.len() } else { 0 }
    }

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
        let led = if header { self.led(bytes) } else { 0 };
        header &= self.header;
        let mut span = Span { start: led, end: led, line: 0 };
        for aside in Lines::new(&bytes[..led]) {
            emit.other(aside, Kind::Aside);
            span.line = aside.line + 1;
        }
        let blanks = matches!(self.split, Split::Blanks { .. });
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
                let row =
                    TableRow { text: bytes, whole: text, cells, unset, start: span.start, blanks };
                emit.row(span, &row);
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
