//! Answers, and what is wrong as RFC 9457 says it.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};
use serde::Serialize;
use serde_json::{Map, Value, json};

pub(super) type Answer = Response<Full<Bytes>>;

/// A body of this type.
pub(super) fn with(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    answer
}

pub(super) fn json(status: StatusCode, body: &impl Serialize) -> Answer {
    match serde_json::to_vec(body) {
        Ok(body) => with(status, "application/json", body),
        // Numbers and texts can always be written.
        Err(error) => with(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", error.to_string()),
    }
}

/// Done, and nothing to say.
pub(super) fn nothing() -> Answer {
    let mut answer = Response::new(Full::default());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    answer
}

/// What errors begin with that speak of other commands, and the same of paths and members.
const PATHS: &[(&str, &str)] = &[
    (
        "this filter knows single keys only",
        "this filter knows single keys only: intervals are for filters made with range (PUT /v1/filters/{name})",
    ),
    (
        "a filter of intervals does not tell",
        "a filter of intervals does not tell when a key was seen: POST to seen or range, with within",
    ),
    (
        "a filter of intervals cannot forget",
        "a filter of intervals cannot forget single keys; windows without range can",
    ),
];

fn of_paths(error: &str) -> Option<&'static str> {
    PATHS.iter().find(|(begin, _)| error.starts_with(begin)).map(|(_, said)| *said)
}

/// Why a request is not done: what is wrong, where, and what to do.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
    detail: String,
    /// What was done even so.
    more: Map<String, Value>,
    allow: Option<&'static str>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), more: Map::new(), allow: None }
    }

    pub(super) fn bad(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// This path takes other methods.
    pub(super) fn method(allow: &'static str) -> Self {
        let detail = format!("this path takes {allow}");
        Self { allow: Some(allow), ..Self::new(StatusCode::METHOD_NOT_ALLOWED, detail) }
    }

    pub(super) fn and(mut self, name: &str, value: Value) -> Self {
        self.more.insert(name.into(), value);
        self
    }

    /// Does it begin with this?
    pub(super) fn is_said(&self, what: &str) -> bool {
        self.detail.starts_with(what)
    }

    /// What an error of a command means here.
    pub(super) fn of_command(error: &str) -> Self {
        use StatusCode as S;
        let (kind, rest) = error.split_once(' ').unwrap_or((error, ""));
        let status = match kind {
            "NOAUTH" | "WRONGPASS" => S::UNAUTHORIZED,
            "NOPERM" => S::FORBIDDEN,
            "WRONGTYPE" => S::CONFLICT,
            "OOM" => S::INSUFFICIENT_STORAGE,
            "LOADING" | "MISCONF" => S::SERVICE_UNAVAILABLE,
            _ if rest.starts_with("not found") => S::NOT_FOUND,
            _ if [
                "item exists",
                "this filter was made with another seed",
                "the newest moment of",
            ]
            .iter()
            .any(|other| rest.starts_with(other)) =>
            {
                S::CONFLICT
            }
            _ if [
                "not enough memory",
                "non scaling filter is full",
                "there are as many filters",
                "the dump has about",
            ]
            .iter()
            .any(|full| rest.starts_with(full)) =>
            {
                S::INSUFFICIENT_STORAGE
            }
            _ => S::BAD_REQUEST,
        };
        let detail = match kind {
            "OOM" => {
                "the memory limit of the server (--memory) is reached: new keys are not remembered"
            }
            "WRONGTYPE" => "there is a key of SET by this name, and no filter",
            "ERR" if status == S::NOT_FOUND => "there is no filter of this name",
            "ERR" => of_paths(rest).unwrap_or(rest),
            "MISCONF" | "NOPERM" => rest,
            _ => error,
        };
        Self::new(status, detail)
    }

    pub(super) fn answer(self) -> Answer {
        let Self { status, detail, mut more, allow } = self;
        more.insert("type".into(), json!("about:blank"));
        more.insert("title".into(), json!(status.canonical_reason().unwrap_or("Error")));
        more.insert("status".into(), json!(status.as_u16()));
        more.insert("detail".into(), json!(detail));
        let body = Value::Object(more).to_string();
        let mut answer = with(status, "application/problem+json", body);
        if status == StatusCode::UNAUTHORIZED {
            answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(allow) = allow {
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
        }
        answer
    }
}
