//! Replies to bytes.

/// The version of the protocol that a client has asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Protocol {
    #[default]
    Resp2,
    Resp3,
}

/// Writes replies behind those that are there.
#[derive(Debug)]
pub(crate) struct Reply<'a> {
    pub(crate) out: &'a mut Vec<u8>,
    pub(crate) protocol: Protocol,
}

impl Reply<'_> {
    pub(crate) fn ok(&mut self) {
        self.out.extend_from_slice(b"+OK\r\n");
    }

    /// A short text without line ends.
    pub(crate) fn simple(&mut self, text: &str) {
        self.line(b'+', text);
    }

    /// An error: its kind in capitals, a space, what is wrong. Line ends in it become spaces.
    pub(crate) fn error(&mut self, text: &str) {
        self.line(b'-', text);
    }

    pub(crate) fn integer(&mut self, value: i64) {
        self.header(b':', value);
    }

    /// A count. Counts beyond 2^63 are not reached.
    pub(crate) fn count(&mut self, value: u64) {
        self.integer(i64::try_from(value).unwrap_or(i64::MAX));
    }

    pub(crate) fn bulk(&mut self, bytes: &[u8]) {
        self.header(b'$', bytes.len() as i64);
        self.out.extend_from_slice(bytes);
        self.out.extend_from_slice(b"\r\n");
    }

    pub(crate) fn nil(&mut self) {
        self.out.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"$-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    pub(crate) fn boolean(&mut self, value: bool) {
        self.out.extend_from_slice(match (self.protocol, value) {
            (Protocol::Resp2, false) => b":0\r\n",
            (Protocol::Resp2, true) => b":1\r\n",
            (Protocol::Resp3, false) => b"#f\r\n",
            (Protocol::Resp3, true) => b"#t\r\n",
        });
    }

    /// The beginning of an array of so many replies.
    pub(crate) fn array(&mut self, len: usize) {
        self.header(b'*', len as i64);
    }

    /// The beginning of a map of so many pairs: in RESP2 an array of keys and values by turns.
    pub(crate) fn map(&mut self, pairs: usize) {
        match self.protocol {
            Protocol::Resp2 => self.array(pairs * 2),
            Protocol::Resp3 => self.header(b'%', pairs as i64),
        }
    }

    /// The beginning of a map of one pair with this key, which RESP2 leaves out: an array of the value.
    pub(crate) fn map_of_one(&mut self, key: &str) {
        match self.protocol {
            Protocol::Resp2 => self.array(1),
            Protocol::Resp3 => {
                self.map(1);
                self.simple(key);
            }
        }
    }

    fn header(&mut self, kind: u8, value: i64) {
        self.out.push(kind);
        self.out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
        self.out.extend_from_slice(b"\r\n");
    }

    fn line(&mut self, kind: u8, text: &str) {
        self.out.push(kind);
        let clean = |byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte };
        self.out.extend(text.bytes().map(clean));
        self.out.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(protocol: Protocol, write: impl Fn(&mut Reply<'_>)) -> String {
        let mut out = Vec::new();
        write(&mut Reply { out: &mut out, protocol });
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn both_versions_of_the_protocol() {
        let all = |reply: &mut Reply<'_>| {
            reply.map(1);
            reply.bulk(b"a\r\n");
            reply.array(4);
            reply.boolean(true);
            reply.nil();
            reply.integer(i64::MIN);
            reply.count(u64::MAX);
            reply.error("ERR no\r\n+OK");
        };
        let rest = ":-9223372036854775808\r\n:9223372036854775807\r\n-ERR no  +OK\r\n";
        let two = format!("*2\r\n$3\r\na\r\n\r\n*4\r\n:1\r\n$-1\r\n{rest}");
        let three = format!("%1\r\n$3\r\na\r\n\r\n*4\r\n#t\r\n_\r\n{rest}");
        assert_eq!(written(Protocol::Resp2, all), two);
        assert_eq!(written(Protocol::Resp3, all), three);
    }
}
