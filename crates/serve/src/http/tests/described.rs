//! What /openapi.json says is what is answered.

use super::schema::faults;
use super::{Answer, ask, ask_bytes, ask_with, service};
use crate::net::{Service, clock};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const METHODS: [&str; 5] = ["get", "put", "post", "delete", "patch"];

/// The operation for a path as it is asked for, with its path in the description.
fn operation<'a>(document: &'a Value, method: &str, path: &str) -> (String, &'a Value) {
    let path = path.split('?').next().unwrap();
    let fits = |pattern: &str| {
        let (pattern, path): (Vec<_>, Vec<_>) =
            (pattern.split('/').collect(), path.split('/').collect());
        pattern.len() == path.len()
            && pattern.iter().zip(&path).all(|(a, b)| a == b || a.starts_with('{'))
    };
    let paths = document["paths"].as_object().unwrap();
    let (pattern, operations) =
        paths.iter().find(|(pattern, _)| fits(pattern)).unwrap_or_else(|| panic!("{path}"));
    (pattern.clone(), &operations[method.to_ascii_lowercase()])
}

/// Checks an answer, and returns what of the description it shows.
fn check(document: &Value, method: &str, path: &str, answer: &Answer) -> String {
    let (pattern, operation) = operation(document, method, path);
    let status = answer.status.to_string();
    let mut response = &operation["responses"][&status];
    if let Some(reference) = response["$ref"].as_str() {
        response = document.pointer(reference.trim_start_matches('#')).unwrap();
    }
    assert!(
        !response.is_null(),
        "{method} {path} answers {status}, which is not described: {answer:?}"
    );
    let kind = answer.header("content-type").split(';').next().unwrap();
    match response["content"].as_object() {
        None => assert!(answer.body.is_empty(), "{method} {path}: {answer:?}"),
        Some(content) => {
            let schema = content
                .get(kind)
                .unwrap_or_else(|| panic!("{method} {path} {status}: {kind} is not described"));
            if kind.ends_with("json") && !kind.ends_with("ndjson") {
                let faults = faults(document, &schema["schema"], &answer.json(), "");
                assert!(faults.is_empty(), "{method} {path} {status}: {faults:?}");
            }
        }
    }
    format!("{method} {pattern} {status}")
}

fn document(service: &Service) -> Value {
    ask(service, "GET", "/openapi.json", "").json()
}

/// Every operation is asked for until each of its answers, but for those that take long or much, was seen; and each
/// is as described.
#[test]
fn every_answer_is_as_described() {
    let (open, closed) = (service(None, true), service(Some("secret"), false));
    let document = document(&open);
    let mut shown = BTreeSet::new();
    let filter = "/v1/filters/f";
    let requests = [
        ("GET", "/", ""),
        ("GET", "/healthz", ""),
        ("GET", "/readyz", ""),
        ("GET", "/openapi.json", ""),
        ("GET", "/metrics", ""),
        ("GET", "/v1/overview", ""),
        ("PUT", filter, r#"{"window":"10m","capacity":1000}"#),
        ("PUT", filter, r#"{"window":"10m","capacity":1000}"#),
        ("PUT", filter, r#"{"window":"11m"}"#),
        ("PUT", filter, r#"{"window":1}"#),
        ("PUT", "/v1/filters/huge", r#"{"capacity":100000000000}"#),
        ("GET", filter, ""),
        ("GET", "/v1/filters/none", ""),
        ("GET", "/v1/filters", ""),
        ("GET", "/v1/filters?limit=x", ""),
        ("POST", "/v1/filters/f/observe", r#"{"items":["a","a"]}"#),
        ("POST", "/v1/filters/f/observe", ""),
        ("POST", "/v1/filters/f/seen", r#"{"items":["a","b"]}"#),
        ("POST", "/v1/filters/f/seen", "[]"),
        ("POST", "/v1/filters/f/remember", r#"{"items":["c"]}"#),
        ("POST", "/v1/filters/f/remember", "{}"),
        ("POST", "/v1/filters/f/forget", r#"{"items":["c","d"]}"#),
        ("POST", "/v1/filters/f/forget", r#"{"items":["c"],"at":5}"#),
        (
            "PUT",
            "/v1/filters/r",
            r#"{"window":"10m","capacity":1000,"range":"ip","interval":"/24"}"#,
        ),
        ("POST", "/v1/filters/r/range", r#"{"first":"10.1.0.0","last":"10.1.255.255"}"#),
        ("POST", "/v1/filters/r/range", r#"{"first":"10.1"}"#),
        ("GET", "/v1/filters/r", ""),
        ("GET", "/v1/filters/r/hour", ""),
        ("GET", "/v1/filters/none/snapshot", ""),
        ("PUT", "/v1/filters/f/snapshot", ""),
        ("GET", "/v1/filters/f/lastseen?item=c", ""),
        ("GET", "/v1/filters/f/lastseen?item=d", ""),
        ("GET", "/v1/filters/f/lastseen", ""),
        ("GET", "/v1/filters/none/lastseen?item=c", ""),
        ("GET", "/v1/filters/f/hour", ""),
        ("GET", "/v1/filters/none/hour", ""),
        ("POST", "/v1/keys/k?ttl=10m", ""),
        ("POST", "/v1/keys/k?ttl=10m", ""),
        ("POST", "/v1/keys/k", ""),
        ("GET", "/v1/keys/k", ""),
        ("GET", "/v1/keys/none", ""),
        ("PUT", "/v1/filters/k", "{}"),
        ("POST", "/v1/filters/k/observe", r#"{"items":["a"]}"#),
        ("POST", "/v1/filters/k/remember", r#"{"items":["a"]}"#),
        ("POST", "/v1/filters/k/forget", r#"{"items":["a"]}"#),
        ("GET", "/v1/filters/k/snapshot", ""),
        ("DELETE", "/v1/keys/k", ""),
        ("DELETE", "/v1/keys/none", ""),
    ];
    for (method, path, body) in requests {
        // Some have something to show only once they were looked at.
        let now = clock(&open.server);
        (0..3).for_each(|n| open.board.sample(&open.server, now + n * 11_000));
        shown.insert(check(&document, method, path, &ask(&open, method, path, body)));
    }
    let dump = ask(&open, "GET", "/v1/filters/f/snapshot", "");
    shown.insert(check(&document, "GET", "/v1/filters/f/snapshot", &dump));
    for path in
        ["/v1/filters/g/snapshot", "/v1/filters/g/snapshot?replace=true", "/v1/filters/f/snapshot"]
    {
        let put = ask_bytes(&open, "PUT", path, &dump.body);
        shown.insert(check(&document, "PUT", path, &put));
    }
    let lines = "Content-Type: application/x-ndjson\r\n";
    let path = "/v1/filters/f/observe?key=/id";
    check(&document, "POST", path, &ask_with(&open, "POST", path, lines, "{\"id\":1}\n"));
    shown.insert(check(&document, "DELETE", filter, &ask(&open, "DELETE", filter, "")));
    shown.insert(check(&document, "DELETE", filter, &ask(&open, "DELETE", filter, "")));
    let large = "Expect: 100-continue\r\nContent-Length: 999999999\r\n";
    for (pattern, operations) in document["paths"].as_object().unwrap() {
        let path = pattern.replace("{name}", "x").replace("{key}", "x");
        for method in METHODS {
            let upper = method.to_ascii_uppercase();
            let Some(operation) = operations.get(method) else {
                if method == "patch" {
                    let wrong = ask(&open, "PATCH", &path, "");
                    assert!(
                        wrong.status == 405 && !wrong.header("allow").is_empty(),
                        "{path}: {wrong:?}"
                    );
                }
                continue;
            };
            let cross = ask_with(&open, &upper, &path, "Origin: https://evil.example\r\n", "");
            shown.insert(check(&document, &upper, &path, &cross));
            let unknown = ask(&open, &upper, &format!("{path}?no=such"), "");
            shown.insert(check(&document, &upper, &path, &unknown));
            let named = format!("{upper} {path} HTTP/1.1\r\nHost: evil.example\r\n\r\n");
            let named = super::answers(&super::say(&open, named.as_bytes()), true).remove(0);
            shown.insert(check(&document, &upper, &path, &named));
            if operation["security"].is_null() {
                let stranger = ask(&closed, &upper, &path, "");
                assert_eq!(stranger.status, 401, "{upper} {path}");
                shown.insert(check(&document, &upper, &path, &stranger));
            }
            if !operation["requestBody"].is_null() {
                let head = format!("{upper} {path} HTTP/1.1\r\nHost: localhost\r\n{large}\r\n");
                let large = super::answers(&super::say(&open, head.as_bytes()), true).remove(0);
                shown.insert(check(&document, &upper, &path, &large));
            }
        }
    }
    let mut missing = Vec::new();
    for (pattern, operations) in document["paths"].as_object().unwrap() {
        for method in METHODS.iter().filter(|method| operations.get(**method).is_some()) {
            for status in operations[*method]["responses"].as_object().unwrap().keys() {
                let one = format!("{} {pattern} {status}", method.to_ascii_uppercase());
                // By definition not of this method; slow; a journal that fails; full; a key that was taken out.
                let elsewhere = ["405", "408", "503", "507"].contains(&&status[..])
                    || one == "DELETE /v1/keys/{key} 204"
                    || one == "DELETE /v1/keys/{key} 409";
                if !shown.contains(&one) && !elsewhere {
                    missing.push(one);
                }
            }
        }
    }
    assert!(missing.is_empty(), "described and never answered: {missing:#?}");
}

/// Bodies that are described are taken: each member of the options, by itself.
#[test]
fn what_is_described_is_taken() {
    let service = service(None, true);
    let document = document(&service);
    let options = &document["components"]["schemas"]["Options"];
    let bodies = [
        ("window", json!({"window":"10m"})),
        ("last", json!({"last":1000})),
        ("forever", json!({"forever":true})),
        ("capacity", json!({"capacity":1000})),
        ("fpr", json!({"fpr":0.001})),
        ("renew", json!({"window":"1h","renew":"fresh"})),
        ("slack", json!({"last":1000,"slack":10})),
        ("memory", json!({"memory":"64KiB","capacity":1000})),
        ("on_full", json!({"on_full":"forget","capacity":1000})),
        ("structure", json!({"structure":"bloom","capacity":1000,"window":null})),
        ("range", json!({"range":"epc","capacity":1000})),
        ("interval", json!({"range":"ip","interval":"/24","capacity":1000})),
    ];
    let described: Vec<&String> = options["properties"].as_object().unwrap().keys().collect();
    assert_eq!(described.len(), bodies.len());
    for (member, body) in bodies {
        assert!(faults(&document, options, &body, "").is_empty(), "{body}");
        let made = ask(&service, "PUT", &format!("/v1/filters/{member}"), &body.to_string());
        assert_eq!(made.status, 201, "{body}: {made:?}");
    }
}
