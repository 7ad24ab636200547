//! Which path means what, and who may ask.

use super::answer::{Answer, Problem, json, with};
use super::ask::{Asker, Credentials};
use super::query::{Query, parts};
use super::{filters, keys, metrics, overview, records, reserve, snapshot};
use crate::net::{Service, Shared};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body, Bytes};
use hyper::header::{
    AUTHORIZATION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderValue, ORIGIN,
};
use hyper::{HeaderMap, Method, Request, StatusCode, Version};
use serde_json::json;
use std::cell::RefCell;
use std::net::IpAddr;
use std::time::Duration;

/// Bytes of a body, as of a command of Redis.
const BODY: usize = 64 << 20;
/// How long a body may take to come.
const BODY_TIME: Duration = Duration::from_secs(60);

const PAGE: &str = include_str!("dashboard.html");
const OPENAPI: &str = include_str!("openapi.json");
/// The page brings all it needs, and asks nobody but this server.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The answer to a request.
pub(super) async fn answer<B>(
    request: Request<B>,
    from: Option<IpAddr>,
    service: &Service,
    shared: &RefCell<Shared>,
) -> Answer
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let done = match check(&request, service) {
        Ok(()) => route(request, from, service, shared).await,
        Err(problem) => Err(problem),
    };
    // What was changed outlives the process as it was asked for before anybody hears of it, also of a part that was
    // done.
    let done = match commit(service).await {
        Ok(()) => done,
        Err(problem) => Err(problem),
    };
    done.unwrap_or_else(Problem::answer)
}

async fn commit(service: &Service) -> Result<(), Problem> {
    let keeper = &service.server.keeper;
    if keeper.is_costly() {
        // Others that are ready have their turn first, so that all is written at once.
        tokio::task::yield_now().await;
    }
    keeper.commit().map_err(|error| {
        let error = error.trim_start_matches("ERR ");
        let what =
            format!("the journal cannot be written, and what was asked may be forgotten: {error}");
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, what)
    })
}

/// Refuses what a page of another host asks for through a browser here.
fn check<B>(request: &Request<B>, service: &Service) -> Result<(), Problem> {
    let headers = request.headers();
    let header = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let host = match (header(HOST), headers.get_all(HOST).iter().count()) {
        (Some(host), 1) => Some(host),
        (None, 0) if request.version() < Version::HTTP_11 => None,
        _ => return Err(Problem::bad("the headers: give one Host")),
    };
    let is_local_only = service.is_local && !service.server.auth.is_needed();
    if is_local_only && host.is_some_and(|host| !is_local(host)) {
        return Err(Problem::new(
            StatusCode::MISDIRECTED_REQUEST,
            "without a password this server answers to addresses and to localhost only: connect to 127.0.0.1, set a password, or start it with --open",
        ));
    }
    if let Some(origin) = headers.get(ORIGIN) {
        let own = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        if own.map(|(_, authority)| authority) != host {
            return Err(Problem::new(
                StatusCode::FORBIDDEN,
                "this request was made by a page of another host, and is refused",
            ));
        }
    }
    Ok(())
}

/// Does a Host header name an address, or `localhost`?
fn is_local(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    bare.parse::<IpAddr>().is_ok() || name.eq_ignore_ascii_case("localhost")
}

async fn route<B>(
    request: Request<B>,
    from: Option<IpAddr>,
    service: &Service,
    shared: &RefCell<Shared>,
) -> Result<Answer, Problem>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (head, body) = request.into_parts();
    let parts = parts(head.uri.path());
    let path: Vec<&[u8]> = parts.iter().map(|part| &part[..]).collect();
    let query = |known: &[&str]| Query::read(head.uri.query(), known);
    // The answer to HEAD is that to GET; the body is left out on its way.
    let method = if head.method == Method::HEAD { Method::GET } else { head.method.clone() };
    if let Some(answer) = open_to_all(&path, &method) {
        query(&[])?;
        return answer;
    }
    let credentials = credentials(&head.headers)?;
    let mut asker = Asker::begin(service, shared, from, credentials).await?;
    let asker = &mut asker;
    if let [b"v1", b"filters" | b"keys", name, ..] = &path[..] {
        asker.permit(name)?;
    }
    match (&path[..], method.as_str()) {
        ([b"metrics"], "GET") => query(&[]).and_then(|_| metrics::get(asker)),
        ([b"v1", b"overview"], "GET") => query(&[]).map(|_| overview::get(asker)),
        ([b"v1", b"filters"], "GET") => filters::list(asker, &query(filters::LIST_QUERY)?),
        ([b"v1", b"filters", name], "GET") => query(&[]).and_then(|_| filters::get(asker, name)),
        ([b"v1", b"filters", name], "PUT") => {
            query(&[])?;
            reserve::put(asker, name, &read(body, &head.headers).await?).await
        }
        ([b"v1", b"filters", name], "DELETE") => {
            query(&[])?;
            filters::delete(asker, name).await
        }
        ([b"v1", b"filters", name, b"hour"], "GET") => {
            query(&[]).and_then(|_| filters::hour(asker, name))
        }
        ([b"v1", b"filters", name, b"lastseen"], "GET") => {
            filters::last_seen(asker, name, &query(&["item"])?).await
        }
        (
            [
                b"v1",
                b"filters",
                name,
                what @ (b"observe" | b"seen" | b"range" | b"remember" | b"forget"),
            ],
            "POST",
        ) => {
            let are_lines = is_kind(&head.headers, records::KIND) && *what == b"observe";
            let query = query(if are_lines { &["key"] } else { &[] })?;
            let body = read(body, &head.headers).await?;
            match *what {
                b"observe" if are_lines => records::observe(asker, name, &query, &body).await,
                b"observe" => filters::observe(asker, name, &body).await,
                b"seen" => filters::seen(asker, name, &body).await,
                b"range" => filters::range(asker, name, &body).await,
                b"forget" => filters::forget(asker, name, &body).await,
                _ => filters::remember(asker, name, &body).await,
            }
        }
        ([b"v1", b"filters", name, b"snapshot"], "GET") => {
            query(&[])?;
            snapshot::get(asker, name).await
        }
        ([b"v1", b"filters", name, b"snapshot"], "PUT") => {
            let query = query(&["replace"])?;
            snapshot::put(asker, name, &query, &read(body, &head.headers).await?).await
        }
        ([b"v1", b"keys", key], "POST") => keys::mark(asker, key, &query(&["ttl"])?).await,
        ([b"v1", b"keys", key], "GET") => {
            query(&[])?;
            keys::left(asker, key).await
        }
        ([b"v1", b"keys", key], "DELETE") => {
            query(&[])?;
            keys::forget(asker, key).await
        }
        (path, _) => Err(no_such(path)),
    }
}

/// What anybody may see: it says nothing of what is remembered.
fn open_to_all(path: &[&[u8]], method: &Method) -> Option<Result<Answer, Problem>> {
    let is_get = method == Method::GET;
    Some(match path {
        [b"" | b"openapi.json" | b"healthz" | b"readyz"] if !is_get => Err(no_such(path)),
        [b""] => Ok(page()),
        [b"openapi.json"] => {
            let version = env!("CARGO_PKG_VERSION");
            let document = OPENAPI.replace("{{version}}", version);
            Ok(with(StatusCode::OK, "application/json", document))
        }
        // Sockets are opened before what was saved is read, and answered after it.
        [b"healthz" | b"readyz"] => Ok(json(StatusCode::OK, &json!({ "status": "ok" }))),
        _ => return None,
    })
}

fn page() -> Answer {
    let mut answer = with(StatusCode::OK, "text/html; charset=utf-8", PAGE);
    let headers = answer.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_POLICY));
    headers.insert("referrer-policy", HeaderValue::from_static("no-referrer"));
    answer
}

/// A path or a method that there is not.
fn no_such(path: &[&[u8]]) -> Problem {
    match path {
        [b"" | b"openapi.json" | b"healthz" | b"readyz" | b"metrics"]
        | [b"v1", b"overview" | b"filters"]
        | [b"v1", b"filters", _, b"hour" | b"lastseen"] => Problem::method("GET, HEAD"),
        [b"v1", b"filters", _] => Problem::method("GET, HEAD, PUT, DELETE"),
        [b"v1", b"filters", _, b"snapshot"] => Problem::method("GET, HEAD, PUT"),
        [b"v1", b"filters", _, b"observe" | b"seen" | b"range" | b"remember" | b"forget"] => {
            Problem::method("POST")
        }
        [b"v1", b"keys", _] => Problem::method("GET, HEAD, POST, DELETE"),
        _ => Problem::new(
            StatusCode::NOT_FOUND,
            "there is no such path: /openapi.json lists those that there are; a slash in a name is written %2F",
        ),
    }
}

fn is_kind(headers: &HeaderMap, kind: &str) -> bool {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    given.split(';').next().is_some_and(|given| given.trim().eq_ignore_ascii_case(kind))
}

/// What `Authorization` says.
fn credentials(headers: &HeaderMap) -> Result<Option<Credentials<'_>>, Problem> {
    let Some(given) = headers.get(AUTHORIZATION) else { return Ok(None) };
    let given = given.as_bytes();
    let behind = |scheme: &[u8]| {
        let (found, rest) = given.split_at_checked(scheme.len())?;
        found.eq_ignore_ascii_case(scheme).then(|| rest.trim_ascii())
    };
    if let Some(token) = behind(b"bearer ") {
        return Ok(Some(Credentials::Bearer(token)));
    }
    let pair = behind(b"basic ").and_then(|text| BASE64_STANDARD.decode(text).ok());
    let pair = pair.and_then(|pair| {
        let colon = memchr::memchr(b':', &pair)?;
        Some(Credentials::Basic(pair[..colon].to_vec(), pair[colon + 1..].to_vec()))
    });
    pair.map(Some).ok_or_else(|| {
        Problem::new(
            StatusCode::UNAUTHORIZED,
            "the headers: send the password as `Authorization: Bearer PASSWORD`",
        )
    })
}

/// Reads a body, as far as it may be.
async fn read<B>(body: B, headers: &HeaderMap) -> Result<Bytes, Problem>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let too_large = || {
        let what = format!("the body has more than {BODY} bytes: send it in parts");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, what)
    };
    let announced = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    if announced.is_some_and(|length: usize| length > BODY) {
        return Err(too_large());
    }
    let reading = Limited::new(body, BODY).collect();
    match tokio::time::timeout(BODY_TIME, reading).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(error)) => Err(Problem::bad(format!("the body: {error}"))),
        Err(_) => {
            let what = format!("the body did not come within {} seconds", BODY_TIME.as_secs());
            Err(Problem::new(StatusCode::REQUEST_TIMEOUT, what))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_are_here() {
        for host in [
            "127.0.0.1",
            "127.0.0.1:7380",
            "[::1]:80",
            "[::1]",
            "localhost",
            "LocalHost:1",
            "10.0.0.1:7",
        ] {
            assert!(is_local(host), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:7380",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "",
            ":80",
        ] {
            assert!(!is_local(host), "{host}");
        }
    }
}
