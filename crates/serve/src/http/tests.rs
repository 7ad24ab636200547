//! What clients of HTTP hear, without sockets.

mod abuse;
mod described;
mod filters;
mod metrics;
mod schema;
mod snapshot;
mod users;

use super::fuzzing::{converse, service, service_of};
use crate::net::Service;
use serde_json::Value;

/// An answer, taken apart.
#[derive(Debug)]
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(other, _)| other == name);
        found.map_or("", |(_, value)| value)
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}

/// The answers in these bytes, in order; `has_body`: those to HEAD have none.
fn answers(mut bytes: &[u8], has_body: bool) -> Vec<Answer> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let mut headers = [httparse::EMPTY_HEADER; 32];
        let mut head = httparse::Response::new(&mut headers);
        let httparse::Status::Complete(length) = head.parse(bytes).unwrap() else {
            panic!("torn: {}", String::from_utf8_lossy(bytes));
        };
        let headers: Vec<(String, String)> = head
            .headers
            .iter()
            .map(|header| {
                let value = String::from_utf8(header.value.to_vec()).unwrap();
                (header.name.to_ascii_lowercase(), value)
            })
            .collect();
        let mut answer = Answer { status: head.code.unwrap(), headers, body: Vec::new() };
        bytes = &bytes[length..];
        if has_body {
            let length = answer.header("content-length").parse().unwrap_or(0);
            answer.body = bytes[..length].to_vec();
            bytes = &bytes[length..];
        }
        all.push(answer);
    }
    all
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build().unwrap().block_on(future)
}

/// What a server says to these bytes.
fn say(service: &Service, bytes: &[u8]) -> Vec<u8> {
    block_on(converse(service, &[bytes]))
}

/// A request with a body.
fn request(method: &str, path: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    )
}

/// The answer to a request.
fn ask(service: &Service, method: &str, path: &str, body: &str) -> Answer {
    ask_with(service, method, path, "", body)
}

/// The same, with a body of any bytes.
fn ask_bytes(service: &Service, method: &str, path: &str, body: &[u8]) -> Answer {
    let head =
        format!("Content-Type: application/octet-stream\r\nContent-Length: {}\r\n", body.len());
    let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{head}\r\n");
    let said = say(service, &[head.as_bytes(), body].concat());
    let mut all = answers(&said, true);
    assert_eq!(all.len(), 1, "{method} {path}: {}", String::from_utf8_lossy(&said));
    all.remove(0)
}

fn ask_with(service: &Service, method: &str, path: &str, headers: &str, body: &str) -> Answer {
    let said = say(service, request(method, path, headers, body).as_bytes());
    let mut all = answers(&said, method != "HEAD");
    assert_eq!(all.len(), 1, "{method} {path}: {}", String::from_utf8_lossy(&said));
    all.remove(0)
}
