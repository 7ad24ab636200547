//! `/v1/keys/{key}`: `SET key 1 NX PX …` for those without a client of Redis.

use super::answer::{Answer, Problem, json, nothing};
use super::ask::{Asker, Reply};
use super::query::Query;
use hyper::StatusCode;
use lately_stream::quantity;
use serde_json::json;

/// Marks a key if it is fresh.
pub(super) async fn mark(
    asker: &mut Asker<'_>,
    key: &[u8],
    query: &Query,
) -> Result<Answer, Problem> {
    let Some(ttl) = query.bytes("ttl") else {
        return Err(Problem::bad(
            "the query: give how long the key is to be remembered, such as ttl=600s",
        ));
    };
    let fault = |what: String| Problem::bad(format!("the query: ttl: {what}"));
    let ttl = std::str::from_utf8(ttl).map_err(|error| fault(error.to_string()))?;
    let nanos = quantity::duration(ttl).map_err(|error| fault(error.to_string()))?;
    let ms = nanos.div_ceil(1_000_000).to_string();
    match asker.one(&[b"SET", key, b"1", b"NX", b"PX", ms.as_bytes()]).await? {
        Reply::Text(_) => Ok(json(StatusCode::CREATED, &json!({ "fresh": true }))),
        Reply::Nil => Ok(json(StatusCode::CONFLICT, &json!({ "fresh": false }))),
        Reply::Error(error) => Err(Problem::of_command(&error)),
        other => Err(unexpected(&other)),
    }
}

/// How much longer a key is remembered.
pub(super) async fn left(asker: &mut Asker<'_>, key: &[u8]) -> Result<Answer, Problem> {
    match asker.one(&[b"PTTL", key]).await? {
        Reply::Integer(-2) => Err(missing()),
        Reply::Integer(-1) => Ok(json(StatusCode::OK, &json!({ "ttl_ms": null }))),
        Reply::Integer(ms) => Ok(json(StatusCode::OK, &json!({ "ttl_ms": ms }))),
        Reply::Error(error) => Err(Problem::of_command(&error)),
        other => Err(unexpected(&other)),
    }
}

/// Takes a key out, so that it is fresh again.
pub(super) async fn forget(asker: &mut Asker<'_>, key: &[u8]) -> Result<Answer, Problem> {
    if asker.service.server.store.filter(key, asker.now()).is_some() {
        return Err(missing());
    }
    match asker.one(&[b"DEL", key]).await? {
        Reply::Integer(0) => Err(missing()),
        Reply::Integer(_) => Ok(nothing()),
        Reply::Error(error) => Err(Problem::of_command(&error)),
        other => Err(unexpected(&other)),
    }
}

fn missing() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "this key is not remembered")
}

/// A reply that the command does not give.
pub(super) fn unexpected(reply: &Reply) -> Problem {
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, format!("a reply of another kind: {reply:?}"))
}
