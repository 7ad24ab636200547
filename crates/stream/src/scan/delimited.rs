//! Fields between separators or blanks.
//!
//! CSV follows RFC 4180: a field is quoted if it begins with a quote; inside, `""` is a quote and
//! line ends are text. A quote further on in a field is an ordinary character. One rule is stricter:
//! after a closing quote the field must end. That keeps a quote that is never closed from swallowing
//! the stream: it is detected at the next quoted field, at the latest after the longest record
//! allowed. Then its line alone is a dead letter and reading resumes on the next line.

use super::lines::line_end;
use memchr::{memchr, memchr_iter, memchr2};

/// Where a field is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
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

pub(crate) fn undouble(mut text: &[u8], out: &mut Vec<u8>) {
    while let Some(at) = memchr(b'"', text) {
        out.extend_from_slice(&text[..=at]);
        text = text.get(at + 2..).unwrap_or_default();
    }
    out.extend_from_slice(text);
}

/// Splits the line that begins at `start`, in which quotes mean nothing. Of the cells after the first so
/// many that are `wanted` nobody asks where they are, only how many there are.
#[inline]
pub(crate) fn line(
    bytes: &[u8],
    start: usize,
    separator: u8,
    wanted: usize,
    cells: &mut Vec<Cell>,
) -> Scan {
    let end = memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |n| start + n + 1);
    let text = &bytes[start..end];
    let text = &text[..text.len() - line_end(text)];
    let mut from = 0;
    let mut found = memchr_iter(separator, text);
    for at in found.by_ref().take(wanted) {
        cells.push(Cell { start: start + from, end: start + at, doubled: false });
        from = at + 1;
    }
    cells.push(Cell { start: start + from, end: start + text.len(), doubled: false });
    if cells.len() > wanted {
        // To count them is much quicker than to find each.
        let others = memchr_iter(separator, &text[from..]).count();
        cells.resize(cells.len() + others, Cell::default());
    }
    Scan::Whole(end)
}

#[inline]
pub(crate) fn split(bytes: &[u8], start: usize, end: usize, separator: u8, cells: &mut Vec<Cell>) {
    let text = &bytes[start..end];
    let text = &text[..text.len() - line_end(text)];
    let mut from = start;
    for at in memchr_iter(separator, text) {
        cells.push(Cell { start: from, end: start + at, doubled: false });
        from = start + at + 1;
    }
    cells.push(Cell { start: from, end: start + text.len(), doubled: false });
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
    cells: &mut Vec<Cell>,
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
        split(bytes, start, first, separator, cells);
        return Scan::Whole(first);
    }
    match quoted(&bytes[..bytes.len().min(start + max + 2)], start, separator, cells) {
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

fn quoted(bytes: &[u8], start: usize, separator: u8, cells: &mut Vec<Cell>) -> Quoted {
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
            cells.push(Cell { start: from, end: at, doubled });
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
                    cells.push(Cell { start: at, end: at + n, doubled: false });
                    at += n + 1;
                }
                Some(n) => {
                    let end = at + n + 1;
                    let text = end - line_end(&bytes[at..end]);
                    cells.push(Cell { start: at, end: text, doubled: false });
                    return Quoted::Ends(end);
                }
                None => {
                    cells.push(Cell { start: at, end: bytes.len(), doubled: false });
                    return Quoted::Unended;
                }
            }
        }
    }
}

/// Splits the line that begins at `start` at runs of blanks. A field that begins with a quote runs to
/// the next one if that is before a blank, and `""` in it is a quote. With `brackets`, so does a field
/// from `[` to `]`, brackets included, and a quote after a backslash does not end a field. A quote or
/// bracket that nothing closes is an ordinary character.
#[inline]
pub(crate) fn line_of_blanks(
    bytes: &[u8],
    start: usize,
    brackets: bool,
    cells: &mut Vec<Cell>,
) -> Scan {
    let end = memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |n| start + n + 1);
    let close = end - line_end(&bytes[start..end]);
    let mut from = start;
    // Not searched for to the end of the line more than once.
    let mut closable = brackets;
    while from < close {
        match bytes[from] {
            b'"' => {
                if let Some(cell) = quoted_in_line(&bytes[..close], from, brackets) {
                    from = cell.end + 2;
                    cells.push(cell);
                    continue;
                }
            }
            b'[' if closable => match memchr(b']', &bytes[from..close]).map(|n| from + n + 1) {
                Some(at) if at == close || matches!(bytes[at], b' ' | b'\t') => {
                    cells.push(Cell { start: from, end: at, doubled: false });
                    from = at + 1;
                    continue;
                }
                found => closable = found.is_some(),
            },
            _ => {}
        }
        let at = memchr2(b' ', b'\t', &bytes[from..close]).map_or(close, |n| from + n);
        if at > from {
            cells.push(Cell { start: from, end: at, doubled: false });
        }
        from = at + 1;
    }
    Scan::Whole(end)
}

/// The field whose opening quote is at `start`, if its closing one is the last byte or before a blank.
fn quoted_in_line(bytes: &[u8], start: usize, backslashes: bool) -> Option<Cell> {
    let (mut at, mut doubled) = (start + 1, false);
    loop {
        at += memchr(b'"', bytes.get(at..)?)?;
        let escapes = bytes[start..at].iter().rev().take_while(|&&c| c == b'\\').count();
        if backslashes && escapes % 2 == 1 {
            at += 1;
            continue;
        }
        match bytes.get(at + 1) {
            Some(b'"') => doubled = true,
            None | Some(b' ' | b'\t') => return Some(Cell { start: start + 1, end: at, doubled }),
            Some(_) => return None,
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_are_not_wanted_are_counted_all_the_same() {
        let bytes = b"x\na,bb,,dddd,\r\ny,z";
        let mut all = Vec::new();
        split(bytes, 2, 15, b',', &mut all);
        assert_eq!(all.len(), 5);
        for wanted in (0..8).chain([usize::MAX]) {
            let mut cells = Vec::new();
            assert_eq!(line(bytes, 2, b',', wanted, &mut cells), Scan::Whole(15));
            assert_eq!(cells.len(), all.len(), "{wanted}");
            let found = wanted.min(all.len());
            assert_eq!(cells[..found], all[..found], "{wanted}");
        }
    }
}
