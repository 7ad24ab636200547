//! Lines and their ends.

/// Where a record is: its bytes, line end included, and the line it begins on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) line: u32,
}

/// What may begin a JSON text (RFC 7464).
pub(crate) const RECORD_SEPARATOR: u8 = 0x1E;

/// The length of the line end that closes `line`: 0, 1 or 2.
#[inline]
pub(crate) fn line_end(line: &[u8]) -> usize {
    match line {
        [.., b'\r', b'\n'] => 2,
        [.., b'\n'] => 1,
        _ => 0,
    }
}

/// The lines of some bytes, each with its line end.
pub(crate) struct Lines<'a> {
    bytes: &'a [u8],
    ends: memchr::Memchr<'a>,
    at: usize,
    line: u32,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, ends: memchr::memchr_iter(b'\n', bytes), at: 0, line: 0 }
    }
}

impl Iterator for Lines<'_> {
    type Item = Span;

    #[inline]
    fn next(&mut self) -> Option<Span> {
        let start = self.at;
        let end = match self.ends.next() {
            Some(end) => end + 1,
            None if start < self.bytes.len() => self.bytes.len(),
            None => return None,
        };
        self.at = end;
        self.line += 1;
        Some(Span { start, end, line: self.line - 1 })
    }
}
