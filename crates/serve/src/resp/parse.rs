//! Bytes to the positions of a command's arguments. Nothing is copied.

use super::{Limits, integer};
use memchr::memchr;

/// Where an argument lies in the bytes of its request: from, to.
pub(crate) type Span = (usize, usize);

/// The longest line that can say a length.
const COUNT: usize = 32;

/// Reads one request after the other.
///
/// It is given the bytes from the first one of the request at hand on, and keeps how far it has read them, so a
/// request that arrives in many pieces is looked at once.
#[derive(Debug)]
pub(crate) struct Parser {
    pub(crate) limits: Limits,
    /// Everything before it is done with.
    at: usize,
    /// There is no line end between `at` and here.
    scanned: usize,
    /// Arguments that are still to come; `None` before the request has said how many there are.
    left: Option<usize>,
    /// Length of the argument at hand.
    bulk: Option<usize>,
    arguments: Vec<Span>,
    is_complete: bool,
}

/// What the bytes given so far amount to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A command: see [`Parser::arguments`] and [`Parser::consumed`].
    Command,
    /// Something that asks for nothing, such as an empty line: see [`Parser::consumed`].
    Nothing,
    /// The request is not complete.
    More,
}

/// Bytes that are no request. There is no way to find the next one behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProtocolError {
    MultibulkLength,
    StrictMultibulkLength,
    MultibulkLine,
    Dollar(u8),
    BulkLength,
    StrictBulkLength,
    BulkLine,
    BulkEnd,
    Request,
    Line,
    Quotes,
    Escape,
    /// A web browser that was made to send a request here. It gets no reply.
    CrossProtocol,
}

impl ProtocolError {
    /// The reply. `None` where there is to be none.
    pub(crate) fn reply(self) -> Option<String> {
        let what = match self {
            Self::MultibulkLength => "invalid multibulk length",
            Self::StrictMultibulkLength => "unauthenticated multibulk length",
            Self::MultibulkLine => "too big mbulk count string",
            Self::Dollar(found) => {
                let found = char::from(if found.is_ascii_graphic() { found } else { b'?' });
                return Some(format!("ERR Protocol error: expected '$', got '{found}'"));
            }
            Self::BulkLength => "invalid bulk length",
            Self::StrictBulkLength => "unauthenticated bulk length",
            Self::BulkLine => "too big bulk count string",
            Self::BulkEnd => "an argument does not end where its length says",
            Self::Request => "too big request",
            Self::Line => "too big inline request",
            Self::Quotes => "unbalanced quotes in request",
            Self::Escape => "no escapes in inline requests; send an array",
            Self::CrossProtocol => return None,
        };
        Some(format!("ERR Protocol error: {what}"))
    }
}

impl Parser {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            at: 0,
            scanned: 0,
            left: None,
            bulk: None,
            arguments: Vec::new(),
            is_complete: false,
        }
    }

    /// Reads on. `buffer` begins where the request at hand does: after a [`Step::Command`] or a [`Step::Nothing`]
    /// that is [`Parser::consumed`] bytes further on.
    ///
    /// # Errors
    /// [`ProtocolError`], after which the connection is of no use.
    pub(crate) fn next(&mut self, buffer: &[u8]) -> Result<Step, ProtocolError> {
        if self.is_complete {
            (self.at, self.scanned, self.left, self.bulk) = (0, 0, None, None);
            self.arguments.clear();
            self.is_complete = false;
        }
        let step = match self.left {
            None => self.begin(buffer),
            Some(_) => self.read_arguments(buffer),
        };
        self.is_complete = matches!(step, Ok(Step::Command | Step::Nothing));
        step
    }

    /// Where the command's arguments lie in the buffer.
    pub(crate) fn arguments(&self) -> &[Span] {
        &self.arguments
    }

    /// The length of the request.
    pub(crate) fn consumed(&self) -> usize {
        self.at
    }

    /// Frees what a large request took.
    pub(crate) fn shrink(&mut self) {
        if self.is_complete {
            self.arguments.clear();
            self.arguments.shrink_to(64);
        }
    }

    fn begin(&mut self, buffer: &[u8]) -> Result<Step, ProtocolError> {
        match buffer.first() {
            None => Ok(Step::More),
            Some(b'*') => {
                let invalid = ProtocolError::MultibulkLength;
                let count = match self.short(buffer, b'*') {
                    Some(count) => count as i64,
                    None => {
                        let line = self.line(buffer, COUNT, ProtocolError::MultibulkLine)?;
                        let Some(line) = line else { return Ok(Step::More) };
                        integer(&buffer[line.0 + 1..line.1]).ok_or(invalid)?
                    }
                };
                let Ok(count) = usize::try_from(count) else { return Ok(Step::Nothing) };
                if count > self.limits.arguments {
                    let strict = self.limits.is_strict;
                    return Err(if strict {
                        ProtocolError::StrictMultibulkLength
                    } else {
                        invalid
                    });
                }
                if count == 0 {
                    return Ok(Step::Nothing);
                }
                self.left = Some(count);
                self.read_arguments(buffer)
            }
            Some(_) => self.read_line(buffer),
        }
    }

    fn read_arguments(&mut self, buffer: &[u8]) -> Result<Step, ProtocolError> {
        while let Some(left) = self.left.filter(|&left| left > 0) {
            let Some(length) = self.length(buffer)? else { return Ok(Step::More) };
            let end = self.at + length;
            if buffer.len() < end + 2 {
                return Ok(Step::More);
            }
            if &buffer[end..end + 2] != b"\r\n" {
                return Err(ProtocolError::BulkEnd);
            }
            self.arguments.push((self.at, end));
            self.at = end + 2;
            self.scanned = self.at;
            self.bulk = None;
            self.left = Some(left - 1);
        }
        Ok(Step::Command)
    }

    /// The length of the argument at hand, if that is known yet.
    fn length(&mut self, buffer: &[u8]) -> Result<Option<usize>, ProtocolError> {
        if self.bulk.is_some() {
            return Ok(self.bulk);
        }
        let invalid = ProtocolError::BulkLength;
        let length = match self.short(buffer, b'$') {
            Some(length) => length,
            None => {
                let Some(line) = self.line(buffer, COUNT, ProtocolError::BulkLine)? else {
                    return Ok(None);
                };
                match buffer[line.0..line.1].split_first() {
                    Some((b'$', digits)) => {
                        let length =
                            integer(digits).and_then(|length| usize::try_from(length).ok());
                        length.ok_or(invalid)?
                    }
                    first => {
                        let first = first.map_or(b'\r', |(&byte, _)| byte);
                        return Err(ProtocolError::Dollar(first));
                    }
                }
            }
        };
        if length > self.limits.item && !self.is_large(buffer) {
            let strict = self.limits.is_strict;
            return Err(if strict { ProtocolError::StrictBulkLength } else { invalid });
        }
        if self.at + length > self.limits.request {
            return Err(ProtocolError::Request);
        }
        self.bulk = Some(length);
        Ok(self.bulk)
    }

    /// May the argument at hand be larger than others?
    #[cold]
    #[inline(never)]
    fn is_large(&self, buffer: &[u8]) -> bool {
        let is_large = |&(from, to): &Span| {
            let name = &buffer[from..to];
            Limits::LARGE.iter().any(|large| large.eq_ignore_ascii_case(name))
        };
        !self.limits.is_strict
            && self.arguments.len() >= 2
            && self.arguments.first().is_some_and(is_large)
    }

    /// The number of a line that is `mark`, one to three digits and a proper end, if that is the next line: what nearly all
    /// are, and sooner read than by [`Parser::line`]. `None`: it may be another kind of line, or not be there yet.
    #[inline]
    fn short(&mut self, buffer: &[u8], mark: u8) -> Option<usize> {
        // Six bytes: what the shortest line and the shortest argument behind it have, and the longest such line.
        let [found, first, second, third, fourth, fifth] = *buffer[self.at..].first_chunk()?;
        let digit =
            |byte: u8| Some(usize::from(byte.wrapping_sub(b'0'))).filter(|&digit| digit < 10);
        let number = digit(first).filter(|_| found == mark)?;
        let (number, length) = if [second, third] == *b"\r\n" {
            (number, 4)
        } else {
            // Numbers do not begin with 0.
            let number = 10 * Some(number).filter(|&number| number > 0)? + digit(second)?;
            if [third, fourth] == *b"\r\n" {
                (number, 5)
            } else {
                let number = 10 * number + digit(third)?;
                ([fourth, fifth] == *b"\r\n").then_some((number, 6))?
            }
        };
        self.at += length;
        self.scanned = self.at;
        Some(number)
    }

    /// The next line, without its end, if it is there.
    fn line(
        &mut self,
        buffer: &[u8],
        limit: usize,
        too_long: ProtocolError,
    ) -> Result<Option<Span>, ProtocolError> {
        let from = self.scanned.max(self.at);
        let end = memchr(b'\n', &buffer[from..]).map(|found| from + found);
        if end.unwrap_or(buffer.len()) - self.at > limit {
            return Err(too_long);
        }
        self.scanned = end.unwrap_or(buffer.len());
        let Some(end) = end else { return Ok(None) };
        let has_return = end > self.at && buffer[end - 1] == b'\r';
        let line = (self.at, end - usize::from(has_return));
        self.at = end + 1;
        self.scanned = self.at;
        Ok(Some(line))
    }

    /// A request in one line, as people type it.
    fn read_line(&mut self, buffer: &[u8]) -> Result<Step, ProtocolError> {
        let Some(line) = self.line(buffer, Limits::LINE, ProtocolError::Line)? else {
            return Ok(Step::More);
        };
        let mut at = line.0;
        while at < line.1 {
            if buffer[at].is_ascii_whitespace() {
                at += 1;
                continue;
            }
            at = self.word(&buffer[..line.1], at)?;
        }
        let Some(&(from, to)) = self.arguments.first() else { return Ok(Step::Nothing) };
        let first = &buffer[from..to];
        if first.eq_ignore_ascii_case(b"POST") || first.eq_ignore_ascii_case(b"Host:") {
            return Err(ProtocolError::CrossProtocol);
        }
        if self.arguments.len() > self.limits.arguments {
            return Err(ProtocolError::StrictMultibulkLength);
        }
        Ok(Step::Command)
    }

    /// Takes one word of a line, in quotes or not; returns where it ends.
    fn word(&mut self, line: &[u8], at: usize) -> Result<usize, ProtocolError> {
        let quote = line[at];
        if quote != b'"' && quote != b'\'' {
            let rest = &line[at..];
            let end = rest.iter().position(u8::is_ascii_whitespace).map_or(line.len(), |n| at + n);
            self.arguments.push((at, end));
            return Ok(end);
        }
        let inside = &line[at + 1..];
        let length = memchr(quote, inside).ok_or(ProtocolError::Quotes)?;
        if inside[..length].contains(&b'\\') {
            return Err(ProtocolError::Escape);
        }
        let end = at + 1 + length;
        self.arguments.push((at + 1, end));
        match line.get(end + 1) {
            Some(next) if !next.is_ascii_whitespace() => Err(ProtocolError::Quotes),
            _ => Ok(end + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All that a parser says of bytes that arrive in pieces of these lengths.
    fn read(bytes: &[u8], cuts: &[usize]) -> (Vec<Vec<Vec<u8>>>, Option<ProtocolError>) {
        let mut parser =
            Parser::new(Limits { arguments: 8, item: 64, request: 256, is_strict: false });
        let mut commands = Vec::new();
        let (mut from, mut end, mut cuts) = (0, 0, cuts.iter());
        loop {
            match parser.next(&bytes[from..end]) {
                Ok(Step::Command) => {
                    let taken = parser.arguments().iter();
                    let words = taken.map(|&(a, b)| bytes[from + a..from + b].to_vec());
                    commands.push(words.collect());
                    from += parser.consumed();
                }
                Ok(Step::Nothing) => from += parser.consumed(),
                Ok(Step::More) if end == bytes.len() => return (commands, None),
                Ok(Step::More) => {
                    end = (end + cuts.next().unwrap_or(&usize::MAX).clamp(&1, &bytes.len()))
                        .min(bytes.len());
                }
                Err(error) => return (commands, Some(error)),
            }
        }
    }

    fn words(command: &[&str]) -> Vec<Vec<u8>> {
        command.iter().map(|word| word.as_bytes().to_vec()).collect()
    }

    #[test]
    fn arrays_and_lines() {
        let bytes =
            b"*2\r\n$4\r\nECHO\r\n$2\r\n\r\n\r\nping\r\n\r\n*0\r\n*-1\r\nset 'a b' \"\" x\n";
        let expected =
            vec![words(&["ECHO", "\r\n"]), words(&["ping"]), words(&["set", "a b", "", "x"])];
        assert_eq!(read(bytes, &[]), (expected.clone(), None));
        assert_eq!(read(bytes, &[1; 100]), (expected, None));
    }

    #[test]
    fn hostile_lengths_are_refused() {
        use ProtocolError as E;
        let cases: &[(&[u8], E)] = &[
            (b"*9\r\n", E::MultibulkLength),
            (b"*99999999999999999999\r\n", E::MultibulkLength),
            (b"*x\r\n", E::MultibulkLength),
            (b"*01\r\n", E::MultibulkLength),
            (b"*\r\n", E::MultibulkLength),
            (b"*1111111111111111111111111111111111111111", E::MultibulkLine),
            (b"*1\r\n:1\r\n", E::Dollar(b':')),
            (b"*1\r\n\r\n", E::Dollar(b'\r')),
            (b"*1\r\n$-1\r\n", E::BulkLength),
            (b"*1\r\n$65\r\n", E::BulkLength),
            (b"*1\r\n$9223372036854775807\r\n", E::BulkLength),
            (b"*1\r\n$18446744073709551615\r\n", E::BulkLength),
            (b"*1\r\n$1\r\nab\r\n", E::BulkEnd),
            (b"POST / HTTP/1.1\r\n", E::CrossProtocol),
            (b"host: there\r\n", E::CrossProtocol),
            (b"get \"a\r\n", E::Quotes),
            (b"get \"a\"b\r\n", E::Quotes),
            (b"get \"\\x00\"\r\n", E::Escape),
        ];
        for &(bytes, error) in cases {
            assert_eq!(read(bytes, &[]).1, Some(error), "{:?}", String::from_utf8_lossy(bytes));
        }
        let long = [
            b"*5\r\n".to_vec(),
            [b"$60\r\n".to_vec(), vec![b'x'; 60], b"\r\n".to_vec()].concat().repeat(5),
        ];
        assert_eq!(read(&long.concat(), &[]).1, Some(E::Request));
        assert_eq!(read(&vec![b'x'; Limits::LINE + 1], &[]).1, Some(E::Line));
        assert_eq!(E::CrossProtocol.reply(), None);
        assert_eq!(E::Dollar(b'\n').reply().unwrap(), "ERR Protocol error: expected '$', got '?'");
    }

    #[test]
    fn numbers_as_redis_reads_them() {
        let good = [
            ("0", 0),
            ("-1", -1),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
        ];
        good.iter().for_each(|(text, value)| assert_eq!(integer(text.as_bytes()), Some(*value)));
        for bad in ["", "-", "-0", "+1", "01", " 1", "1 ", "1x", "9223372036854775808", "1.0", "١"]
        {
            assert_eq!(integer(bad.as_bytes()), None, "{bad}");
        }
    }

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            Just(b"*1\r\n".to_vec()),
            Just(b"*2\r\n$4\r\nECHO\r\n$3\r\na\r\n\r\n".to_vec()),
            Just(b"$1\r\nx\r\n".to_vec()),
            Just(b"\r\n".to_vec()),
            Just(b"ping 'a b'\n".to_vec()),
            prop::collection::vec(prop::sample::select(b"*$-0129\r\n\"' px".to_vec()), 0..6),
            prop::collection::vec(any::<u8>(), 0..4),
        ];
        prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn pieces_say_what_the_whole_says(bytes in bytes(), cuts in prop::collection::vec(1usize..9, 0..40)) {
            let whole = read(&bytes, &[usize::MAX]);
            prop_assert_eq!(&read(&bytes, &cuts), &whole);
            prop_assert_eq!(&read(&bytes, &[1; 400]), &whole);
        }
    }
}
