//! Cuts JSON values that may run over any number of lines, or stand side by side on one.
//!
//! Only brackets and strings are looked at: enough to find where a value ends, and a value that
//! is broken inside still ends where it seems to. If brackets do not match, a string runs over a
//! line end, or no end comes within the longest document allowed, the value's first line is a
//! dead letter and reading resumes on the next line, so that a lost bracket costs one line, or one
//! value, and not the rest of the stream.

use super::json::MAX_DEPTH;
use memchr::memchr;

/// Follows the brackets of one value through any number of pieces.
#[derive(Clone, Debug, Default)]
pub(crate) struct Balance {
    objects: u128,
    depth: u32,
    in_string: bool,
    escaped: bool,
    broken: bool,
}

impl Balance {
    /// Goes on through `bytes`: `Some(n)` if the value ends after `n` of them. Once the value is
    /// known to be broken nothing more is found.
    fn feed(&mut self, bytes: &[u8]) -> Option<usize> {
        if self.broken {
            return None;
        }
        for (at, &byte) in bytes.iter().enumerate() {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    b'\n' => return self.give_up(),
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => {
                    if self.depth == MAX_DEPTH {
                        return self.give_up();
                    }
                    self.depth += 1;
                    self.objects = self.objects << 1 | u128::from(byte == b'{');
                }
                b'}' | b']' => {
                    if (self.objects & 1 == 1) != (byte == b'}') {
                        return self.give_up();
                    }
                    self.depth -= 1;
                    self.objects >>= 1;
                    if self.depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }

    fn give_up(&mut self) -> Option<usize> {
        self.broken = true;
        None
    }
}

/// What comes next in a stream of documents. Offsets are into the bytes given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A value with balanced brackets.
    Value { start: usize, end: usize },
    /// Something else, up to the end of its line.
    Junk { start: usize, end: usize },
    /// Nothing but blanks and commas up to the end of the bytes.
    Blank,
    /// More bytes are needed to tell.
    More,
}

/// How far a value has been followed that did not end in the bytes at hand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pending {
    balance: Balance,
    /// How many bytes of it have been seen.
    seen: usize,
}

/// The length of what may stand between two values. Commas are left over when an enclosing array
/// is broken; 0x1E separates texts in RFC 7464.
pub(crate) fn separators(bytes: &[u8]) -> usize {
    let separator = |c: &u8| matches!(c, b' ' | b'\t' | b'\r' | b'\n' | b',' | 0x1E);
    bytes.iter().position(|c| !separator(c)).unwrap_or(bytes.len())
}

/// Finds what comes at `at`. `pending` must be fresh for a new position and is kept for the same
/// one.
pub(crate) fn next(
    bytes: &[u8],
    at: usize,
    max: usize,
    ended: bool,
    pending: &mut Pending,
) -> Next {
    let start = at + separators(&bytes[at..]);
    let Some(first) = bytes.get(start) else { return Next::Blank };
    if let b'{' | b'[' = first {
        let most = bytes.len().min(start + max);
        let unseen = bytes.get(start + pending.seen..most).unwrap_or_default();
        if let Some(n) = pending.balance.feed(unseen) {
            return Next::Value { start, end: start + pending.seen + n };
        }
        pending.seen += unseen.len();
        if !pending.balance.broken && bytes.len() < start + max && !ended {
            return Next::More;
        }
    }
    match memchr(b'\n', &bytes[start..]) {
        Some(n) => Next::Junk { start, end: start + n + 1 },
        None if ended => Next::Junk { start, end: bytes.len() },
        None => Next::More,
    }
}

/// Whether the value that `bytes` begins with is known never to end.
pub(crate) fn hopeless(bytes: &[u8], max: usize) -> bool {
    matches!(next(bytes, 0, max, false, &mut Pending::default()), Next::Junk { .. })
}
