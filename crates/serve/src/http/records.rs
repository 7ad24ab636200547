//! `POST …/observe` with lines of JSON: the fresh ones come back.

use super::answer::{Answer, Problem, with};
use super::ask::{Asker, Reply};
use super::filters::observe_all;
use super::items::Item;
use super::query::Query;
use hyper::StatusCode;
use hyper::header::HeaderValue;
use serde_json::{Value, json};

pub(super) const KIND: &str = "application/x-ndjson";

/// Observes the key of each line, and gives back the lines whose key is fresh, unchanged and in order. Lines are
/// all read before the first is observed, so that a line without a key changes nothing.
pub(super) async fn observe(
    asker: &mut Asker<'_>,
    name: &[u8],
    query: &Query,
    body: &[u8],
) -> Result<Answer, Problem> {
    let pointer = match query.bytes("key") {
        None => None,
        Some(pointer) => {
            let pointer = std::str::from_utf8(pointer).unwrap_or_default();
            if !pointer.starts_with('/') {
                return Err(Problem::bad(
                    "the query: key is a JSON pointer such as /user/id; without it the whole line is the key",
                ));
            }
            Some(pointer)
        }
    };
    let mut lines = Vec::new();
    let mut keys = Vec::new();
    for (at, line) in body.split(|byte| *byte == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            continue;
        }
        keys.push(key(line, pointer).map_err(|what| {
            Problem::bad(format!("line {}: {what}; no line was observed", at + 1))
        })?);
        lines.push(line);
    }
    let outcomes = observe_all(asker, name, &keys, None).await?;
    let mut fresh = Vec::new();
    let (mut is_full, mut values) = (None, Vec::new());
    for (line, outcome) in lines.iter().zip(outcomes) {
        values.push(match outcome {
            Reply::Boolean(is_fresh) => Some(is_fresh),
            Reply::Error(error) => {
                is_full.get_or_insert(error);
                None
            }
            _ => None,
        });
        if values.last() == Some(&Some(true)) {
            fresh.extend_from_slice(line);
            fresh.push(b'\n');
        }
    }
    if let Some(error) = is_full {
        let problem = Problem::of_command(&error);
        return Err(match problem.status {
            StatusCode::FORBIDDEN => problem,
            _ => problem.and("fresh", json!(values)),
        });
    }
    let count = |wanted| values.iter().filter(|value| **value == Some(wanted)).count();
    let mut answer = with(StatusCode::OK, KIND, fresh);
    for (name, value) in [("lately-fresh", count(true)), ("lately-duplicates", count(false))] {
        answer.headers_mut().insert(name, HeaderValue::from(value));
    }
    Ok(answer)
}

/// The key of a line: the characters of a text, and other values as they are written.
fn key(line: &[u8], pointer: Option<&str>) -> Result<Item, String> {
    let Some(pointer) = pointer else { return Ok(Item(line.to_vec())) };
    let value: Value = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    match value.pointer(pointer) {
        Some(Value::String(text)) => Ok(Item(text.clone().into_bytes())),
        Some(Value::Null) | None => Err(format!("there is no key at {pointer}")),
        Some(value) => Ok(Item(value.to_string().into_bytes())),
    }
}
