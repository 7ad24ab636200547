//! Bodies of requests about keys.

use super::answer::Problem;
use crate::resp::Limits;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::de::{DeserializeOwned, Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A key: a text, or any bytes in base64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item(pub(super) Vec<u8>);

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl<'de> Visitor<'de> for Bytes {
            type Value = Item;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a text, or bytes as {\"base64\": \"…\"}; a number is a text, too: \"17\"",
                )
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Item, E> {
                Ok(Item(text.as_bytes().to_vec()))
            }

            fn visit_string<E: Error>(self, text: String) -> Result<Item, E> {
                Ok(Item(text.into_bytes()))
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Item, M::Error> {
                let mut bytes = None;
                while let Some(name) = map.next_key::<String>()? {
                    if name != "base64" || bytes.is_some() {
                        return Err(Error::custom(
                            "a key that is an object has one member, base64",
                        ));
                    }
                    let text: String = map.next_value()?;
                    bytes = Some(BASE64_STANDARD.decode(text).map_err(Error::custom)?);
                }
                bytes.map(Item).ok_or_else(|| Error::missing_field("base64"))
            }
        }
        deserializer.deserialize_any(Bytes)
    }
}

/// The body of `observe` and `remember`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arrivals {
    pub(super) items: Vec<Item>,
    /// Milliseconds since 1970.
    #[serde(default)]
    pub(super) at: Option<u64>,
}

/// The body of `seen`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Questions {
    pub(super) items: Vec<Item>,
    /// A length of time, or a number of arrivals.
    #[serde(default)]
    pub(super) within: Option<Length>,
}

/// The body of `range`. An end that is left out is the first or the last key of all.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Interval {
    #[serde(default)]
    pub(super) first: Option<End>,
    #[serde(default)]
    pub(super) last: Option<End>,
    #[serde(default)]
    pub(super) within: Option<Length>,
}

/// An end of an interval.
#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "a key: a text, or a whole number below 2^64; give larger ones as texts"
)]
pub(super) enum End {
    Number(u64),
    Text(String),
}

impl End {
    pub(super) fn text(self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text,
        }
    }
}

/// The body of `forget`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Removals {
    pub(super) items: Vec<Item>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a length of time such as \"10m\", or a number of arrivals")]
pub(super) enum Length {
    Arrivals(u64),
    Time(String),
}

impl Length {
    /// As a command has it.
    pub(super) fn text(self) -> String {
        match self {
            Self::Arrivals(n) => n.to_string(),
            Self::Time(text) => text,
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Fresh {
    pub(super) fresh: Vec<bool>,
}

#[derive(Debug, Serialize)]
pub(super) struct Seen {
    pub(super) seen: Vec<bool>,
}

/// The keys, if each is as large as a key may be.
pub(super) fn fitting(items: &[Item]) -> Result<&[Item], Problem> {
    let most = Limits::FULL.item;
    match items.iter().position(|item| item.0.len() > most) {
        None => Ok(items),
        Some(at) => Err(Problem::bad(format!(
            "key {} of the body has more than {most} bytes: send a digest of it",
            at + 1
        ))),
    }
}

/// Reads a body; the error names line and column.
pub(super) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    // What is derived would take the members in a row, too.
    if body.trim_ascii_start().first().is_some_and(|first| *first != b'{') {
        return Err(Problem::bad("the body is no JSON object: it begins with {"));
    }
    serde_json::from_slice(body).map_err(|error| Problem::bad(format!("the body: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_and_what_is_none() {
        let body = br#"{"items":["a","\u00e9",{"base64":"AP8="}],"at":5}"#;
        let read: Arrivals = parse(body).unwrap();
        let items: Vec<&[u8]> = read.items.iter().map(|item| &item.0[..]).collect();
        assert_eq!((items, read.at), (vec![&b"a"[..], "é".as_bytes(), &[0, 255]], Some(5)));
        for (body, said) in [
            (r#"{"items":[5]}"#, "expected a text, or bytes as"),
            (r#"{"items":[{"base64":"?"}]}"#, "at line 1 column"),
            (r#"{"items":[{}]}"#, "missing field `base64`"),
            (r#"{"items":[{"base64":"","x":""}]}"#, "one member, base64"),
            (r#"{"itms":[]}"#, "unknown field `itms`"),
            (r#"{"items":[],"at":-1}"#, "invalid value"),
            ("{", "EOF"),
            ("", "EOF"),
        ] {
            let problem = format!("{:?}", parse::<Arrivals>(body.as_bytes()).unwrap_err());
            assert!(problem.contains(&said.escape_debug().to_string()), "{body}: {problem}");
        }
    }
}
