//! The first line and the first JSON value of an input.

use super::document::{self, Next, Pending};
use super::lines::{Lines, Span, line_end};
use super::tree::Tree;

/// The first line, without its end; `None` if it is not complete.
pub(crate) fn first_line(head: &[u8], ended: bool) -> Option<&[u8]> {
    let line = Lines::new(head).next().map_or(head, |place| &head[..place.end]);
    let end = line_end(line);
    (end > 0 || ended).then(|| &line[..line.len() - end])
}

/// The first JSON value of a `head` that begins with a bracket, and whether values may run over
/// several lines; `None` if more bytes are needed. What comes first in the input decides, so that it
/// does not matter how much of it has been read.
pub(crate) fn first_value(head: &[u8], max: usize, ended: bool) -> Option<(&[u8], bool)> {
    let valid = |text: &[u8]| Tree::default().scan(text, false, &mut Vec::new()).is_ok();
    let first = first_line(head, ended)?;
    if valid(first) {
        return Some((first, false));
    }
    let value = match document::next(head, 0, max, ended, &mut Pending::default()) {
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
    let complete = |place: &Span| ended || line_end(&head[place.start..place.end]) > 0;
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
            let hopeless = looked && document::hopeless(head, max);
            (ended || hopeless).then_some((first, false))
        }
    }
}

/// How many lines are looked at.
const LOOK: usize = 16;
