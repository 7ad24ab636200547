//! `/v1/filters/{name}/snapshot`: a filter with its options as bytes, to be moved to another server.

use super::answer::{Answer, Problem, json, with};
use super::ask::{Asker, Reply};
use super::filters;
use super::keys::unexpected;
use super::query::Query;
use hyper::StatusCode;

pub(super) const KIND: &str = "application/octet-stream";

/// `GET …/snapshot`
pub(super) async fn get(asker: &mut Asker<'_>, name: &[u8]) -> Result<Answer, Problem> {
    match asker.one(&[b"LATELY.DUMP", name]).await? {
        Reply::Text(bytes) => Ok(with(StatusCode::OK, KIND, bytes)),
        Reply::Error(error) => Err(Problem::of_command(&error)),
        other => Err(unexpected(&other)),
    }
}

/// `PUT …/snapshot`: makes a filter of one that was dumped, with `replace=true` also where there is one.
pub(super) async fn put(
    asker: &mut Asker<'_>,
    name: &[u8],
    query: &Query,
    body: &[u8],
) -> Result<Answer, Problem> {
    let replaces = query.one_of("replace", &["false", "true"])? == "true";
    let was_there = asker.service.server.store.filter(name, asker.now()).is_some();
    let mut words = vec![b"LATELY.RESTORE", name, body];
    if replaces {
        words.push(b"REPLACE");
    }
    match asker.one(&words).await? {
        Reply::Text(_) => {
            let status = if was_there { StatusCode::OK } else { StatusCode::CREATED };
            Ok(json(status, &filters::info(asker, name)?))
        }
        Reply::Error(error) => Err(Problem::of_command(&error)),
        other => Err(unexpected(&other)),
    }
}
