//! What users of HTTP may do, and see.

use super::{Answer, ask, ask_with, service, service_of};
use crate::net::Service;
use crate::users::Users;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;

/// SHA-256 of "1", "2", "3" and "4".
const SECRETS: [&str; 4] = [
    "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b",
    "d4735e3a265e16eee03f59718b9b5d03019c07d8b6c51f90da3a666eec13ab35",
    "4e07408562bedb8b60ce05c1decfe3ad16b72230967de01f640b7e4729b49fce",
    "4b227777d4dd1fc61c6f884f48641d02b4d121d3fd328cb08b5531fcacdabf8a",
];

fn users() -> Users {
    let [one, two, three, four] = SECRETS;
    let text = format!(
        "[[user]]\nname = \"reader\"\nmay = \"read\"\nfilters = [\"a:*\"]\npassword_sha256 = \"{one}\"\n
        [[user]]\nname = \"writer\"\nmay = \"write\"\nfilters = [\"a:*\"]\npassword_sha256 = \"{two}\"\n
        [[user]]\nname = \"root\"\nmay = \"admin\"\npassword_sha256 = \"{three}\"\n
        [[user]]\nname = \"watch\"\nmay = \"read\"\npassword_sha256 = \"{four}\"\n"
    );
    Users::parse(&text, None).unwrap()
}

fn with_token(service: &Service, token: &str, method: &str, path: &str, body: &str) -> Answer {
    ask_with(service, method, path, &format!("Authorization: Bearer {token}\r\n"), body)
}

fn is_problem(answer: &Answer, status: u16, what: &str) {
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(answer.header("content-type"), "application/problem+json");
    let said = answer.json();
    assert!(said["detail"].as_str().unwrap().contains(what), "{said}");
    assert_eq!(said["status"], status);
}

#[test]
fn each_with_its_own_token() {
    let service = service_of(users(), true);
    let status = |headers: &str| ask_with(&service, "GET", "/v1/filters", headers, "").status;
    let basic = |pair: &str| format!("Authorization: Basic {}\r\n", BASE64_STANDARD.encode(pair));
    for token in ["1", "2", "3", "4"] {
        assert_eq!(status(&format!("Authorization: Bearer {token}\r\n")), 200, "{token}");
    }
    assert_eq!(status(&basic("reader:1")), 200);
    for wrong in [
        "",
        "Authorization: Bearer 5\r\n",
        "Authorization: Basic !!\r\n",
        "Authorization: Token 1\r\n",
    ] {
        assert_eq!(status(wrong), 401, "{wrong}");
    }
    // A name and a password belong together.
    for wrong in ["reader:2", "nobody:1", "reader", ":1", "default:1"] {
        assert_eq!(status(&basic(wrong)), 401, "{wrong}");
    }
    let stranger = ask(&service, "GET", "/v1/filters", "");
    is_problem(&stranger, 401, "this server has passwords");
    assert_eq!(stranger.header("www-authenticate"), "Bearer");
}

#[test]
fn what_each_may_do() {
    let service = service_of(users(), true);
    let items = r#"{"items":["x"]}"#;
    let ask = |token: &str, method: &str, path: &str, body: &str| {
        with_token(&service, token, method, path, body)
    };
    for (method, path, body, needs) in [
        ("PUT", "/v1/filters/a:f", r#"{"window":"10m"}"#, "admin"),
        ("POST", "/v1/filters/a:f/observe", items, "write"),
        ("POST", "/v1/filters/a:f/remember", items, "write"),
        ("POST", "/v1/filters/a:f/seen", items, "read"),
        ("POST", "/v1/filters/a:f/seen", r#"{"items":["x"],"within":"1m"}"#, "read"),
        ("GET", "/v1/filters/a:f", "", "read"),
        ("GET", "/v1/filters/a:f/hour", "", "read"),
        ("GET", "/v1/filters/a:f/lastseen?item=x", "", "read"),
        ("POST", "/v1/keys/a:k?ttl=10m", "", "write"),
        ("GET", "/v1/keys/a:k", "", "read"),
        ("DELETE", "/v1/keys/a:k", "", "write"),
        ("DELETE", "/v1/filters/a:f", "", "admin"),
    ] {
        for (token, right) in [("1", "read"), ("2", "write"), ("3", "admin")] {
            let order = ["read", "write", "admin"];
            let place = |right: &str| order.iter().position(|other| *other == right).unwrap();
            let answer = ask(token, method, path, body);
            if place(right) >= place(needs) {
                assert!(answer.status < 300 || answer.status == 409, "{right} {path}: {answer:?}");
            } else {
                is_problem(&answer, 403, "this user has no permissions to run the '");
                assert!(answer.json().get("fresh").is_none());
            }
            // So that there is a key to ask for.
            if path.starts_with("/v1/keys") && method == "DELETE" {
                let again = ask("3", "POST", "/v1/keys/a:k?ttl=10m", "").status;
                assert!([201, 409].contains(&again));
            }
        }
    }
    let lines = "Authorization: Bearer 1\r\nContent-Type: application/x-ndjson\r\n";
    let answer = ask_with(&service, "POST", "/v1/filters/a:f/observe", lines, "x\n");
    is_problem(&answer, 403, "lately.observe");
    assert!(answer.json().get("fresh").is_none());
}

/// Names of others are refused whatever there is, and shown nowhere.
#[test]
fn what_each_may_see() {
    let service = service_of(users(), true);
    let ask = |token: &str, method: &str, path: &str, body: &str| {
        with_token(&service, token, method, path, body)
    };
    let items = r#"{"items":["x"]}"#;
    for name in ["a:f", "b:f", "b:g"] {
        assert_eq!(ask("3", "POST", &format!("/v1/filters/{name}/observe"), items).status, 200);
    }
    for (method, path) in [
        ("GET", "/v1/filters/b:f"),
        ("GET", "/v1/filters/b:none"),
        ("PUT", "/v1/filters/b:f"),
        ("DELETE", "/v1/filters/b:f"),
        ("POST", "/v1/filters/b:f/observe"),
        ("POST", "/v1/filters/b:f/seen"),
        ("POST", "/v1/filters/b:f/remember"),
        ("GET", "/v1/filters/b:f/lastseen?item=x"),
        ("GET", "/v1/filters/b:f/hour"),
        ("POST", "/v1/keys/b:k?ttl=1m"),
        ("GET", "/v1/keys/b:f"),
        ("DELETE", "/v1/keys/b:f"),
        ("DELETE", "/v1/keys/b:k"),
    ] {
        is_problem(&ask("2", method, path, items), 403, "may not use this name");
    }
    let listed = |token: &str| {
        let said = ask(token, "GET", "/v1/filters?sort=rate", "").json();
        let names = said["filters"].as_array().unwrap().iter();
        let names: Vec<_> = names.map(|info| info["name"].as_str().unwrap().to_owned()).collect();
        (names.len(), said["matched"].as_u64(), said["total"].as_u64())
    };
    assert_eq!(listed("1"), (1, Some(1), Some(1)));
    assert_eq!(listed("4"), (3, Some(3), Some(3)));
    assert_eq!(ask("1", "GET", "/v1/filters?match=b", "").json()["filters"], serde_json::json!([]));
    for (token, filters) in [("1", 1), ("3", 3), ("4", 3)] {
        assert_eq!(ask(token, "GET", "/v1/overview", "").json()["filters"], filters);
    }
    is_problem(&ask("2", "GET", "/metrics", ""), 403, "metrics name all filters");
    assert!(ask("4", "GET", "/metrics", "").text().contains("lately_filters 3\n"));
}

/// Where a user needs no password, it is what clients are who say nothing; but no other.
#[test]
fn without_a_password() {
    let [one, ..] = SECRETS;
    let text = format!(
        "[[user]]\nname = \"root\"\nmay = \"admin\"\npassword_sha256 = \"{one}\"\n
        [[user]]\nname = \"default\"\nmay = \"read\"\nfilters = [\"a:*\"]\n"
    );
    let service = service_of(Users::parse(&text, None).unwrap(), true);
    assert_eq!(ask(&service, "GET", "/v1/filters/a:f", "").status, 404);
    assert_eq!(ask(&service, "PUT", "/v1/filters/a:f", "").status, 403);
    assert_eq!(ask(&service, "GET", "/v1/filters/b:f", "").status, 403);
    assert_eq!(with_token(&service, "1", "PUT", "/v1/filters/b:f", "").status, 201);
    assert_eq!(with_token(&service, "2", "GET", "/v1/filters/a:f", "").status, 401);
    // So pages of other hosts could ask, too.
    let named = "GET /v1/filters HTTP/1.1\r\nHost: evil.example\r\n\r\n";
    let said = super::answers(&super::say(&service, named.as_bytes()), true);
    assert_eq!(said[0].status, 421);
    // With nobody's password, any is as good as none.
    let open = self::service(None, true);
    assert_eq!(with_token(&open, "any", "GET", "/metrics", "").status, 200);
}
