//! How a record is marked with its class.

/// How a record is marked with its class, so that duplicates can be kept and still be recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// One more column after this separator; `lately` in the header.
    Column(u8),
    /// One more member, `"lately"`, in a JSON object.
    Member,
}

/// An aside that names or types the columns, such as Zeek's `#fields` line: a marked output has one
/// more column, so it gets one more name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heading {
    /// What its line begins with.
    pub(crate) begins: &'static [u8],
    /// What separates its names, if that is not what separates the columns of a record.
    pub(crate) separator: Option<u8>,
    /// What the column of marks is called in it.
    pub(crate) name: &'static str,
}

impl Heading {
    /// How the line is marked if it is this heading.
    pub(crate) fn mark_of(&self, line: &[u8], mark: Mark) -> Option<Mark> {
        let own = match mark {
            Mark::Column(separator) => separator,
            Mark::Member => return None,
        };
        let separator = self.separator.unwrap_or(own);
        let rest = line.strip_prefix(self.begins)?;
        (rest.first() == Some(&separator)).then_some(Mark::Column(separator))
    }
}

impl Mark {
    /// The record with its class added, before its line end.
    pub(crate) fn apply(self, bytes: &[u8], class: &str) -> Vec<u8> {
        let body = bytes.trim_ascii_end();
        let (body, end) = match self {
            // Blanks at the end of a column are data; only a line end is not.
            Self::Column(_) => {
                let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                (line, &bytes[line.len()..])
            }
            Self::Member => (body, &bytes[body.len()..]),
        };
        let mut out = Vec::with_capacity(bytes.len() + class.len() + 16);
        match (self, body.strip_suffix(b"}")) {
            (Self::Member, Some(members)) => {
                out.extend_from_slice(members);
                let first = members.trim_ascii() == b"{";
                out.extend_from_slice(if first { b"\"lately\":\"" } else { b",\"lately\":\"" });
                out.extend_from_slice(class.as_bytes());
                out.extend_from_slice(b"\"}");
            }
            // A JSON value that is no object has no place for a member.
            (Self::Member, None) => out.extend_from_slice(body),
            (Self::Column(separator), _) => {
                out.extend_from_slice(body);
                out.push(separator);
                out.extend_from_slice(class.as_bytes());
            }
        }
        out.extend_from_slice(end);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zeek_header_is_known_by_its_own_separator() {
        let begins = |line: &[u8], begins, mark| {
            Heading { begins, separator: None, name: "lately" }.mark_of(line, mark).is_some()
        };
        assert!(begins(b"#fields,a,b\n", b"#fields", Mark::Column(b',')));
        assert!(begins(b"#types\tint\n", b"#types", Mark::Column(b'\t')));
        assert!(!begins(b"#fields\ta\n", b"#fields", Mark::Column(b',')));
        assert!(!begins(b"#fields", b"#fields", Mark::Column(b',')));
    }

    #[test]
    fn marks_go_before_the_line_end() {
        let column = Mark::Column(b',');
        assert_eq!(column.apply(b"a,b\r\n", "fresh"), b"a,b,fresh\r\n");
        assert_eq!(column.apply(b"a, ", "fresh"), b"a, ,fresh");
        let member = |bytes| String::from_utf8(Mark::Member.apply(bytes, "late")).unwrap();
        assert_eq!(member(b"{\"a\":1}\n"), "{\"a\":1,\"lately\":\"late\"}\n");
        assert_eq!(member(b"{ } \r\n"), "{ \"lately\":\"late\"} \r\n");
        assert_eq!(member(b"[1]\n"), "[1]\n");
    }
}
