//! How a record is marked with its class.

use crate::judge::class::Class;

/// How a record is marked with its class, so that duplicates can be kept and still be recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// One more column after this separator; `lately` in the header.
    Column(u8),
    /// One more member, `"lately"`, in a JSON object.
    Member,
    /// One more pair, `lately=`, after a blank.
    Pair,
    /// One more attribute, `lately`, in the first element of an XML text.
    Attribute,
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
            Mark::Member | Mark::Pair | Mark::Attribute => return None,
        };
        let separator = self.separator.unwrap_or(own);
        let rest = line.strip_prefix(self.begins)?;
        (rest.first() == Some(&separator)).then_some(Mark::Column(separator))
    }
}

impl Mark {
    /// Does this header line name a column of marks already, the last one?
    pub(crate) fn is_named_in(self, header: &[u8]) -> bool {
        let Self::Column(separator) = self else { return false };
        let last = header.trim_ascii_end().rsplit(|&byte| byte == separator).next();
        matches!(last, Some(b"lately" | b"\"lately\""))
    }

    /// The record without its last column, or without its last member if that is a mark, which is what
    /// another run has added.
    pub(crate) fn take_off(self, bytes: &[u8]) -> Vec<u8> {
        let body = body(bytes);
        let end = &bytes[body.len()..];
        let kept = match self {
            Self::Column(separator) => {
                let at = memchr::memrchr(separator, body);
                at.map(|at| body[..at].to_vec())
            }
            Self::Member => unmarked(body),
            Self::Pair => memchr::memmem::rfind(body, PAIR)
                .filter(|at| is_class(&body[at + PAIR.len()..]))
                .map(|at| body[..at].to_vec()),
            Self::Attribute => unmarked_element(body),
        };
        kept.map_or_else(|| bytes.to_vec(), |kept| [&kept, end].concat())
    }

    /// The record with its class added, before its line end.
    pub(crate) fn apply(self, bytes: &[u8], class: &str) -> Vec<u8> {
        match self {
            Self::Column(_) => self.append(bytes, "lately", class),
            Self::Member => self.append(bytes, "lately", &format!("\"{class}\"")),
            Self::Pair | Self::Attribute => self.append(bytes, "lately", class),
        }
    }

    /// The record with a value added, before its line end: as a column, or as a member, a pair or an
    /// attribute of this name. For a member it is the text of a JSON value.
    pub(crate) fn append(self, bytes: &[u8], name: &str, value: &str) -> Vec<u8> {
        let body = body(bytes);
        let (body, end) = match self {
            // Blanks at the end of a column are data; only a line end is not.
            Self::Column(_) => {
                let line = bytes.strip_suffix(b"\n").or(bytes.strip_suffix(b"\0"));
                let line = line.unwrap_or(bytes);
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                (line, &bytes[line.len()..])
            }
            Self::Member | Self::Pair | Self::Attribute => (body, &bytes[body.len()..]),
        };
        let mut out = Vec::with_capacity(bytes.len() + name.len() + value.len() + 8);
        match (self, body.strip_suffix(b"}")) {
            (Self::Member, Some(members)) => {
                out.extend_from_slice(members);
                let first = members.trim_ascii() == b"{";
                if !first {
                    out.push(b',');
                }
                let name = serde_json::to_string(name).unwrap_or_default();
                out.extend_from_slice(name.as_bytes());
                out.push(b':');
                out.extend_from_slice(value.as_bytes());
                out.push(b'}');
            }
            // A JSON value that is no object has no place for a member.
            (Self::Member, None) => out.extend_from_slice(body),
            (Self::Column(separator), _) => {
                out.extend_from_slice(body);
                out.push(separator);
                out.extend_from_slice(value.as_bytes());
            }
            (Self::Pair, _) => {
                out.extend_from_slice(body);
                out.push(b' ');
                out.extend_from_slice(name.as_bytes());
                out.push(b'=');
                out.extend_from_slice(value.as_bytes());
            }
            (Self::Attribute, _) => {
                let (before, after) = body.split_at(end_of_first_name(body));
                out.extend_from_slice(before);
                if !before.is_empty() {
                    out.push(b' ');
                    out.extend_from_slice(name.as_bytes());
                    out.extend_from_slice(b"=\"");
                    out.extend_from_slice(value.as_bytes());
                    out.push(b'"');
                }
                out.extend_from_slice(after);
            }
        }
        out.extend_from_slice(end);
        out
    }
}

/// What a mark is written after.
const PAIR: &[u8] = b" lately=";
const ATTRIBUTE: &[u8] = b" lately=\"";

/// A record without its line end.
fn body(bytes: &[u8]) -> &[u8] {
    bytes.strip_suffix(b"\0").unwrap_or_else(|| bytes.trim_ascii_end())
}

fn is_class(text: &[u8]) -> bool {
    Class::FINAL.iter().any(|one| one.name().as_bytes() == text)
}

/// Where the name in the first tag ends; 0 if there is none.
fn end_of_first_name(text: &[u8]) -> usize {
    let Some(start) = memchr::memchr(b'<', text) else { return 0 };
    let rest = &text[start..];
    let end = rest.iter().position(|c| c.is_ascii_whitespace() || matches!(c, b'>' | b'/'));
    end.map_or(0, |end| start + end)
}

/// An XML text whose first element has lost its first attribute, if that is a mark.
fn unmarked_element(text: &[u8]) -> Option<Vec<u8>> {
    let (before, after) = text.split_at(end_of_first_name(text));
    let after = after.strip_prefix(ATTRIBUTE)?;
    let end = memchr::memchr(b'"', after)?;
    is_class(&after[..end]).then(|| [before, &after[end + 1..]].concat())
}

/// An object without its last member, if that is a mark.
fn unmarked(object: &[u8]) -> Option<Vec<u8>> {
    let members = object.strip_suffix(b"}")?.trim_ascii_end();
    let at = memchr::memmem::rfind(members, b"\"lately\"")?;
    let (before, mark) = members.split_at(at);
    let class = mark[b"\"lately\"".len()..].trim_ascii_start().strip_prefix(b":")?;
    let class = class.trim_ascii_start().strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if !is_class(class) {
        return None;
    }
    let before = before.trim_ascii_end();
    let before = before.strip_suffix(b",").or_else(|| before.ends_with(b"{").then_some(before))?;
    Some([before, b"}"].concat())
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

    #[test]
    fn pairs_and_attributes_are_marks_and_are_taken_off() {
        for (mark, bare, marked) in [
            (Mark::Pair, "a=1 b=2\r\n", "a=1 b=2 lately=fresh\r\n"),
            (
                Mark::Attribute,
                "  <E a=\"1\"><b/></E>\n",
                "  <E lately=\"fresh\" a=\"1\"><b/></E>\n",
            ),
            (Mark::Attribute, "<E/>", "<E lately=\"fresh\"/>"),
            (Mark::Column(b'\t'), "a\0", "a\tfresh\0"),
        ] {
            assert_eq!(mark.apply(bare.as_bytes(), "fresh"), marked.as_bytes());
            assert_eq!(mark.take_off(marked.as_bytes()), bare.as_bytes());
        }
        for other in ["a=1 lately=mine", "lately=fresh a=1"] {
            assert_eq!(Mark::Pair.take_off(other.as_bytes()), other.as_bytes());
        }
        assert_eq!(Mark::Attribute.apply(b"text", "fresh"), b"text");
    }

    #[test]
    fn a_mark_is_taken_off() {
        let column = Mark::Column(b',');
        assert!(column.is_named_in(b"a,lately\r\n") && !column.is_named_in(b"a,lately,b\n"));
        assert_eq!(column.take_off(b"a,b,fresh\r\n"), b"a,b\r\n");
        let member = |bytes| String::from_utf8(Mark::Member.take_off(bytes)).unwrap();
        assert_eq!(member(b"{\"a\":1,\"lately\":\"late\"}\n"), "{\"a\":1}\n");
        assert_eq!(member(b"{\"a\":1, \"lately\" : \"fresh\" } \n"), "{\"a\":1} \n");
        assert_eq!(member(b"{\"lately\":\"fresh\"}"), "{}");
        for other in ["{\"lately\":\"mine\"}", "{\"lately\":\"late\",\"b\":1}", "[\"lately\"]"] {
            assert_eq!(member(other.as_bytes()), other);
        }
    }
}
