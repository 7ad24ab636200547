//! `lately serve` over HTTP: real sockets, and the tools of others.
#![cfg(all(unix, feature = "serve"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::serving::{Serving, is_there};
use support::{Folder, LATELY};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Both languages see the same filters, and an end in good order lets answers out.
#[test]
fn one_store_in_two_languages() {
    let server = Serving::start(&[]);
    server.ask("PUT", "/v1/filters/seen", r#"{"window":"10m"}"#);
    let mut client = server.connect(&server.port);
    client.write_all(b"BF.ADD seen a\r\nSET k 1 NX EX 600\r\nQUIT\r\n").unwrap();
    let mut said = String::new();
    client.read_to_string(&mut said).unwrap();
    assert_eq!(said, ":1\r\n+OK\r\n+OK\r\n");
    let items = r#"{"items":["a","b"]}"#;
    assert_eq!(server.ask("POST", "/v1/filters/seen/observe", items), r#"{"fresh":[false,true]}"#);
    assert!(server.ask("GET", "/v1/keys/k", "").contains("ttl_ms"));
    // An idle client does not keep it from ending.
    let _idle = server.connect(&server.http);
    let begun = Instant::now();
    server.end();
    assert!(begun.elapsed() < Duration::from_secs(10));
}

/// Without --listen it is on 7380, with it only where --http says.
#[test]
fn where_it_speaks_http() {
    let check = |arguments: &[&str]| {
        let output =
            Command::new(LATELY).args(["serve", "--check"]).args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr)
    };
    assert!(check(&[]).contains("listens on http://127.0.0.1:7380\n"));
    assert!(!check(&["--listen", "127.0.0.1:1"]).contains("http"));
    assert!(check(&["--listen", "127.0.0.1:1", "--http", "[::1]:2"]).contains("http://[::1]:2\n"));
    assert!(check(&["--http", "0.0.0.0:80"]).contains("--password-file"));
}

/// 64 MiB of requests in a row from a client that reads nothing: others are served, and the server stays small.
#[test]
fn a_pipeline_that_nobody_reads() {
    let server = Serving::start(&["--threads", "1"]);
    let before = server.memory();
    let mut greedy = server.connect(&server.http);
    greedy.set_write_timeout(Some(Duration::from_secs(2))).unwrap();
    let request = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(1 << 14);
    let mut written = 0;
    while written < 64 << 20 {
        match greedy.write(&request) {
            Ok(bytes) => written += bytes,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                break;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(written > 0);
    let begun = Instant::now();
    assert!(server.ask("GET", "/healthz", "").contains("ok"));
    assert!(begun.elapsed() < Duration::from_secs(5));
    let grown = server.memory().saturating_sub(before);
    assert!(grown < 16 << 10, "{grown} KiB more, after {written} bytes");
    server.end();
}

/// A body of 64 MiB is taken, one byte more is not, and neither is kept.
#[test]
fn large_bodies() {
    let server = Serving::start(&[]);
    // One key is as large as a key may be, and there are many of them.
    let key = format!("\"{}\"", "k".repeat(1 << 20));
    let keys = vec![&key[..]; 63].join(",");
    let body = format!("{{\"items\":[{keys}]}}");
    let said = server.ask("POST", "/v1/filters/large/observe", &body);
    assert!(said.starts_with(r#"{"fresh":[true,false"#), "{}", &said[..100]);
    let mut client = server.connect(&server.http);
    let head = "POST /v1/filters/large/observe HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    client.write_all(head.as_bytes()).unwrap();
    let chunk = format!("{:x}\r\n{}\r\n", 1 << 20, " ".repeat(1 << 20));
    // It stops reading when it has said no.
    (0..80).try_for_each(|_| client.write_all(chunk.as_bytes())).ok();
    let mut said = Vec::new();
    let _ = client.read_to_end(&mut said);
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(said.is_empty() || said.starts_with("HTTP/1.1 413 "), "{said}");
    assert!(server.ask("GET", "/healthz", "").contains("ok"));
    server.end();
}

/// Prometheus' own checker has nothing to say. It is in Debian's package prometheus.
#[test]
fn promtool() {
    if !is_there("promtool", "--version") {
        return;
    }
    let server = Serving::start(&[]);
    server.ask("POST", "/v1/filters/odd%22%0A%5C/observe", r#"{"items":["a","a"]}"#);
    server.ask("POST", "/v1/keys/k?ttl=10m", "");
    std::thread::sleep(Duration::from_millis(1500));
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    promtool.stdin.take().unwrap().write_all(server.ask("GET", "/metrics", "").as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.trim().is_empty(), "{said}");
    for (what, file) in [("config", "prometheus.yml"), ("rules", "lately.rules.yml")] {
        let file = root().join("examples/serve").join(file);
        let output = Command::new("promtool").args(["check", what]).arg(file).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    server.end();
}

/// The metrics that the examples for Grafana and Prometheus ask for are those that there are.
#[test]
fn examples_ask_for_metrics_that_there_are() {
    let server = Serving::start(&[]);
    server.ask("POST", "/v1/filters/f/observe", r#"{"items":["a","a"]}"#);
    // What is sampled each second is there after the first of them.
    std::thread::sleep(Duration::from_secs(3));
    let metrics = server.ask("GET", "/metrics", "");
    let there: BTreeSet<&str> = metrics
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split(['{', ' ']).next().unwrap())
        .collect();
    let folder = root().join("examples/serve");
    let grafana = fs::read_to_string(folder.join("grafana.json")).unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&grafana).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(panels.len() > 10);
    for panel in panels {
        let targets = panel["targets"].as_array().unwrap();
        assert!(targets.iter().all(|target| target["expr"].as_str().unwrap().contains("lately")));
    }
    let rules = fs::read_to_string(folder.join("lately.rules.yml")).unwrap();
    let mut asked = 0;
    for text in [grafana, rules] {
        for word in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            if word.starts_with("lately_") || word.starts_with("process_") {
                assert!(there.contains(word), "{word} is none of {there:?}");
                asked += 1;
            }
        }
    }
    assert!(asked > 25, "{asked}");
    server.end();
}

/// A client that was generated from the description does what the description says, and thousands of generated
/// requests get described answers. `LATELY_PYTHON` names an interpreter that has `schemathesis` and
/// `openapi-python-client`.
#[test]
fn generated_clients() {
    let python = std::env::var("LATELY_PYTHON").unwrap_or_else(|_| "python3".into());
    let has = |module: &str| {
        let there = Command::new(&python)
            .args(["-c", &format!("import {module}")])
            .stderr(Stdio::null())
            .status();
        let there = there.is_ok_and(|status| status.success());
        if !there {
            eprintln!("skipped: {python} has no package {module}");
        }
        there
    };
    let server = Serving::start(&[]);
    let folder = Folder::new();
    let url = format!("http://127.0.0.1:{}", server.http);
    if has("openapi_python_client") {
        // It knows no lines of JSON and says so; all else it must know.
        let description = folder.file("openapi.json", server.ask("GET", "/openapi.json", ""));
        let output = Command::new(&python)
            .args([
                "-m",
                "openapi_python_client",
                "generate",
                "--path",
                &description,
                "--meta",
                "none",
            ])
            .args(["--output-path", &folder.path("made")])
            .current_dir(folder.path(""))
            .output()
            .unwrap();
        let said =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        let warnings = said.matches("WARNING").count();
        let known = said.matches("Unsupported content type application/x-ndjson").count();
        assert!(output.status.success() && warnings == known, "{said}");
        let script = r#"
import sys
from made import Client
from made.api.default import put_filter, observe, seen, get_filter, list_filters, delete_filter, mark_key, overview
from made.models import Options, Items, Questions, Problem
c = Client(base_url=sys.argv[1])
made = put_filter.sync_detailed("p/y", client=c, body=Options(window="10m", capacity=1000))
assert made.status_code == 201, made
assert put_filter.sync("p/y", client=c, body=Options(window="10m", capacity=1000)).name == "p/y"
assert isinstance(put_filter.sync("p/y", client=c, body=Options(last=5)), Problem)
assert observe.sync("p/y", client=c, body=Items(items=["a", "b", "a"])).fresh == [True, True, False]
assert seen.sync("p/y", client=c, body=Questions(items=["a", "z"])).seen == [True, False]
info = get_filter.sync("p/y", client=c)
assert info.fresh == 2 and info.duplicates == 1 and info.window_ms == 600000, info
assert [f.name for f in list_filters.sync(client=c, match="p").filters] == ["p/y"]
assert mark_key.sync("k", client=c, ttl="10m").fresh is True
assert mark_key.sync("k", client=c, ttl="10m").fresh is False
assert overview.sync(client=c).filters == 1
assert delete_filter.sync_detailed("p/y", client=c).status_code == 204
assert get_filter.sync("p/y", client=c).status == 404
print("all well")
"#;
        let output = Command::new(&python)
            .args(["-c", script, &url])
            .current_dir(folder.path(""))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "all well", "{said}");
    }
    if has("schemathesis") {
        let output = Command::new(&python)
            .args(["-m", "schemathesis.cli", "run", &format!("{url}/openapi.json"), "--url", &url])
            .args(["--max-examples", "50", "--seed", "1", "--phases", "examples,coverage,fuzzing"])
            .args(["--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"])
            .current_dir(folder.path(""))
            .output()
            .unwrap();
        let said =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
    }
    server.end();
}
