//! Paths and queries of requests.

use super::answer::Problem;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

/// What stays as it is in a part of a path.
const PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The parts of a path, decoded; a slash in a name is written `%2F`.
pub(super) fn parts(path: &str) -> Vec<Vec<u8>> {
    path.split('/').skip(1).map(|part| percent_decode_str(part).collect()).collect()
}

/// The path of a filter.
pub(super) fn path_of(name: &[u8]) -> String {
    format!("/v1/filters/{}", percent_encode(name, PART))
}

/// The pairs of a query, decoded.
#[derive(Debug, Default)]
pub(super) struct Query(Vec<(String, Vec<u8>)>);

impl Query {
    /// Reads a query of which these names are known.
    pub(super) fn read(query: Option<&str>, known: &[&str]) -> Result<Self, Problem> {
        let mut pairs: Vec<(String, Vec<u8>)> = Vec::new();
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decode =
                |text: &str| percent_decode_str(&text.replace('+', " ")).collect::<Vec<u8>>();
            let name = String::from_utf8_lossy(&decode(name)).into_owned();
            if !known.contains(&&name[..]) {
                let known = match known {
                    [] => "none".to_owned(),
                    known => known.join(", "),
                };
                return Err(Problem::bad(format!(
                    "the query: there is no parameter {name:?} here ({known})"
                )));
            }
            if pairs.iter().any(|(other, _)| *other == name) {
                return Err(Problem::bad(format!("the query: {name} is given twice")));
            }
            pairs.push((name, decode(value)));
        }
        Ok(Self(pairs))
    }

    pub(super) fn bytes(&self, name: &str) -> Option<&[u8]> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| &value[..])
    }

    /// A text that must be one of these; the first if it is not given.
    pub(super) fn one_of<'a>(&self, name: &str, values: &[&'a str]) -> Result<&'a str, Problem> {
        let Some(given) = self.bytes(name) else { return Ok(values[0]) };
        let found = values.iter().find(|value| value.as_bytes() == given);
        found.copied().ok_or_else(|| {
            Problem::bad(format!("the query: {name} is one of {}", values.join(", ")))
        })
    }

    /// A number within bounds.
    pub(super) fn number(
        &self,
        name: &str,
        default: usize,
        bounds: std::ops::RangeInclusive<usize>,
    ) -> Result<usize, Problem> {
        let Some(given) = self.bytes(name) else { return Ok(default) };
        let number = std::str::from_utf8(given).ok().and_then(|text| text.parse().ok());
        number.filter(|number| bounds.contains(number)).ok_or_else(|| {
            let (least, most) = (bounds.start(), bounds.end());
            Problem::bad(format!("the query: {name} is a number from {least} to {most}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_queries() {
        assert_eq!(parts("/v1/a%2Fb%FF/"), [&b"v1"[..], b"a/b\xff", b""]);
        assert_eq!(path_of(b"crawl:a/b\xff"), "/v1/filters/crawl%3Aa%2Fb%FF");
        let query = Query::read(Some("a=1&b=x+y%26&"), &["a", "b"]).unwrap();
        assert_eq!(query.bytes("b"), Some(&b"x y&"[..]));
        assert_eq!(query.number("a", 9, 0..=1).unwrap(), 1);
        assert!(query.number("a", 9, 2..=3).is_err() && query.number("b", 9, 0..=9).is_err());
        assert!(Query::read(Some("c=1"), &["a"]).is_err());
        assert!(Query::read(Some("a=1&a=2"), &["a"]).is_err());
        assert_eq!(Query::read(None, &[]).unwrap().one_of("sort", &["x", "y"]).unwrap(), "x");
    }
}
