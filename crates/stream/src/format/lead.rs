//! What comes before the header of a table: blank lines, comments (`#`, `//`), the `sep=;` of Excel,
//! and a title. All of it is forwarded where it is.

use super::head::Head;
use crate::scan::first::first_line;
use crate::scan::lines::{Lines, line_end};
use memchr::{memchr, memchr_iter};

/// How many lines after a title are looked at for the header.
const LOOK: usize = 20;

/// What comes before the header, or before the first row where there is none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lead {
    /// So many bytes.
    pub(crate) length: usize,
    /// What separates the columns.
    pub(crate) separator: u8,
    /// The header is a comment, and its first name begins after the mark of one.
    pub(crate) is_comment: bool,
}

/// How many bytes come before the first line that is a row or a header.
pub(crate) fn length(head: &Head<'_>, separator: u8) -> Option<usize> {
    find(head, separator, true).map(|lead| lead.length)
}

/// Finds the beginning of the table; `None` if more bytes are needed. Where there is no header,
/// nothing but comments and blank lines comes before the first row.
pub(crate) fn find(head: &Head<'_>, separator: u8, quoted: bool) -> Option<Lead> {
    let mut separator = head.delimiter.filter(|_| quoted).unwrap_or(separator);
    let mut is_first = true;
    for span in Lines::new(head.bytes) {
        let line = &head.bytes[span.start..span.end];
        let end = line_end(line);
        if end == 0 && !head.ended {
            return None;
        }
        let line = &line[..line.len() - end];
        let is_first = !line.is_empty() && std::mem::take(&mut is_first);
        let lead = Lead { length: span.start, separator, is_comment: false };
        match (line, comment(line)) {
            ([], _) => {}
            (_, Some(text)) => {
                let names = |line: &[u8]| !head.no_header && names_all(line, separator, head);
                if names(line) || names(text) {
                    return Some(Lead { is_comment: !names(line), ..lead });
                }
                if is_nameless(head, line) {
                    let rest = &head.bytes[span.end..];
                    let row = first_line(rest, head.ended)?;
                    let same = columns(line, separator)
                        .is_some_and(|n| columns(row, separator) == Some(n));
                    if same && comment(row).is_none() {
                        return Some(Lead { is_comment: true, ..lead });
                    }
                }
            }
            _ => match excel(line).filter(|_| quoted && is_first) {
                Some(stated) => separator = head.delimiter.unwrap_or(stated),
                None => return after_title(head, lead, line),
            },
        }
    }
    let length = head.bytes.len();
    head.ended.then_some(Lead { length, separator, is_comment: false })
}

/// May the comment be a header although nothing is asked for by name? `#id,v`, and not `# id, v`, if it
/// has as many columns as the row that follows it.
fn is_nameless(head: &Head<'_>, line: &[u8]) -> bool {
    let begins = matches!(line, [b'#', c, ..] if !c.is_ascii_whitespace() && *c != b'#');
    begins && !head.no_header && head.called().next().is_none()
}

/// How many columns a line has, if more than one.
fn columns(line: &[u8], separator: u8) -> Option<usize> {
    let separators = memchr_iter(separator, line).count();
    (separators > 0).then_some(separators)
}

/// The text of a comment.
pub(crate) fn comment(line: &[u8]) -> Option<&[u8]> {
    let text = line.strip_prefix(b"#").or_else(|| line.strip_prefix(b"//"))?;
    let marks = text.iter().take_while(|c| **c == b'#').count();
    Some(text[marks..].trim_ascii_start())
}

/// The separator that the first line states.
fn excel(line: &[u8]) -> Option<u8> {
    let line = line.strip_prefix(b"\"").and_then(|line| line.strip_suffix(b"\"")).unwrap_or(line);
    let (name, separator) = line.split_at_checked(4)?;
    match separator {
        [separator] if name.eq_ignore_ascii_case(b"sep=") && *separator != b'"' => Some(*separator),
        _ => None,
    }
}

/// Does the line name all columns that are wanted by their names?
fn names_all(line: &[u8], separator: u8, head: &Head<'_>) -> bool {
    let bare = |name: &[u8]| {
        let inner = name.strip_prefix(b"\"").and_then(|name| name.strip_suffix(b"\""));
        inner.unwrap_or(name).to_vec()
    };
    let columns: Vec<_> = line.split(|c| *c == separator).map(bare).collect();
    let mut wanted = head.called().peekable();
    wanted.peek().is_some() && wanted.all(|name| columns.iter().any(|c| c == name.as_bytes()))
}

/// The header, where the first line may be a title: one without a separator, which names nothing that
/// is wanted, while one of the next lines names all of it.
fn after_title(head: &Head<'_>, lead: Lead, line: &[u8]) -> Option<Lead> {
    let separator = lead.separator;
    let no_title = head.no_header
        || head.called().next().is_none()
        || memchr(separator, line).is_some()
        || names_all(line, separator, head);
    if no_title {
        return Some(lead);
    }
    let rest = &head.bytes[lead.length..];
    let mut lines = 0;
    for span in Lines::new(rest).skip(1).take(LOOK) {
        let line = &rest[span.start..span.end];
        let end = line_end(line);
        if end == 0 && !head.ended {
            break;
        }
        if names_all(&line[..line.len() - end], separator, head) {
            return Some(Lead { length: lead.length + span.start, ..lead });
        }
        lines += 1;
    }
    (head.ended || lines == LOOK).then_some(lead)
}
