//! Requests that are wrong, strange, slow or hostile.

use super::super::fuzzing::converse;
use super::{answers, ask, ask_with, block_on, request, say, service};
use proptest::prelude::*;
use std::cell::RefCell;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Everything that is wrong is said, with where it is.
#[test]
fn faults_say_where() {
    let service = service(None, true);
    let cases = [
        ("GET", "/nothing", "", 404, "there is no such path"),
        ("GET", "/v1/filters/", "", 404, "no filter of this name"),
        ("PUT", "/v1/filters/", "", 400, "a filter needs a name"),
        ("POST", "/v1/filters/x", "", 405, "this path takes GET, HEAD, PUT, DELETE"),
        ("PATCH", "/", "", 405, "this path takes GET"),
        ("GET", "/v1/filters?sort=colour", "", 400, "sort is one of name, rate"),
        ("GET", "/v1/filters?limit=0", "", 400, "limit is a number from 1 to 1000"),
        ("GET", "/v1/filters?sorted=name", "", 400, "no parameter \\\"sorted\\\""),
        (
            "PUT",
            "/v1/filters/x",
            "{\"window\":\"10m\",\"last\":5}",
            400,
            "give one of window, last and forever",
        ),
        ("PUT", "/v1/filters/x", "{\"window\":\"soon\"}", 400, "window is a length of time"),
        ("PUT", "/v1/filters/x", "{\"windw\":\"10m\"}", 400, "unknown field `windw`"),
        ("PUT", "/v1/filters/x", "{\"capacity\":0}", 400, "capacity is a number of keys above 0"),
        ("PUT", "/v1/filters/x", "{\"capacity\":18446744073709551615}", 400, "capacity"),
        (
            "PUT",
            "/v1/filters/x",
            "{\"capacity\":9223372036854775807}",
            400,
            "larger than any memory",
        ),
        ("PUT", "/v1/filters/x", "{\"fpr\":1}", 400, "fpr is a number above 0 and below 1"),
        ("PUT", "/v1/filters/x", "{\"fpr\":1e-300}", 507, "not enough memory"),
        ("PUT", "/v1/filters/x", "{\"renew\":\"never\"}", 400, "renew is"),
        ("PUT", "/v1/filters/x", "{\"on_full\":\"weep\"}", 400, "on_full is"),
        ("PUT", "/v1/filters/x", "{\"memory\":\"much\"}", 400, "memory is"),
        ("PUT", "/v1/filters/x", "{\"slack\":\"a bit\"}", 400, "slack is"),
        ("PUT", "/v1/filters/x", "{\"structure\":\"tree\"}", 400, "no such structure"),
        ("PUT", "/v1/filters/x", "{\"structure\":\"scalable-bloom\"}", 400, "give memory"),
        ("PUT", "/v1/filters/x", "[]", 400, "the body is no JSON object"),
        ("POST", "/v1/filters/x/observe", "{\"items\":[{\"a\":1}]}", 400, "one member, base64"),
        ("POST", "/v1/filters/x/seen", "{\"items\":[\"a\"],\"within\":\"soon\"}", 400, "within"),
        ("GET", "/v1/filters/x/lastseen", "", 400, "give the key"),
    ];
    for (method, path, body, status, said) in cases {
        let answer = ask(&service, method, path, body);
        let text = answer.text();
        assert!(
            answer.status == status && text.contains(said),
            "{method} {path} {body}: {answer:?} {text}"
        );
        assert_eq!(answer.header("content-type"), "application/problem+json");
        let problem = answer.json();
        assert_eq!(problem["status"], status);
        assert!(problem["detail"].as_str().unwrap().len() > 8, "{problem}");
    }
    let large = format!("{{\"items\":[\"a\",\"{}\"]}}", "k".repeat((1 << 20) + 1));
    for what in ["observe", "seen", "remember"] {
        let large = ask(&service, "POST", &format!("/v1/filters/x/{what}"), &large);
        assert!(
            large.status == 400 && large.text().contains("key 2 of the body has more than"),
            "{large:?}"
        );
    }
    let long = ask(&service, "PUT", &format!("/v1/filters/{}", "n".repeat(513)), "");
    assert!(long.status == 400 && long.text().contains("512 bytes"), "{long:?}");
    assert_eq!(service.server.store.names.len(), 0);
}

#[test]
fn a_password_is_asked_for_before_anything_else() {
    let service = service(Some("right"), false);
    let get = |headers: &str| ask_with(&service, "GET", "/v1/filters", headers, "");
    for headers in [
        "",
        "Authorization: Basic cmlnaHQ=\r\n",
        "Authorization: Bearer wrong\r\n",
        "Authorization: Bearer \r\n",
    ] {
        let refused = get(headers);
        assert_eq!(
            (refused.status, refused.header("www-authenticate")),
            (401, "Bearer"),
            "{headers}"
        );
    }
    assert_eq!(get("Authorization: bearer right\r\n").status, 200);
    // Only what was a password counts.
    assert_eq!(service.server.auth.failures(), 1);
    for path in ["/", "/healthz", "/readyz", "/openapi.json"] {
        assert_eq!(ask(&service, "GET", path, "").status, 200, "{path}");
    }
    for path in ["/metrics", "/v1/overview", "/v1/keys/x", "/v1/filters/x/lastseen?item=a"] {
        assert_eq!(ask(&service, "GET", path, "").status, 401, "{path}");
    }
    // A stranger's body is not waited for.
    let head = "PUT /v1/filters/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000000\r\n\r\n";
    assert_eq!(answers(&say(&service, head.as_bytes()), true)[0].status, 401);
}

/// Pages of other hosts cannot use a browser on this machine to ask.
#[test]
fn browsers() {
    let local = service(None, true);
    let status = |service, host: &str, more: &str| {
        let bytes = format!(
            "PUT /v1/filters/x HTTP/1.1\r\nHost: {host}\r\n{more}Content-Length: 0\r\n\r\n"
        );
        answers(&say(service, bytes.as_bytes()), true)[0].status
    };
    assert_eq!(status(&local, "evil.example", ""), 421);
    assert_eq!(status(&local, "localhost:7380", "Origin: https://evil.example\r\n"), 403);
    assert_eq!(status(&local, "localhost:7380", "Origin: null\r\n"), 403);
    assert_eq!(local.server.store.names.len(), 0);
    assert_eq!(status(&local, "localhost:7380", "Origin: http://localhost:7380\r\n"), 201);
    let open = service(None, false);
    assert_eq!(status(&open, "lately.internal", ""), 201);
    assert_eq!(status(&open, "lately.internal", "Host: another\r\n"), 400);
    let page = ask(&open, "GET", "/", "");
    assert!(page.header("content-security-policy").contains("default-src 'none'"));
}

/// Whoever speaks another protocol gets one answer, and none of it is done.
#[test]
fn other_protocols() {
    let service = service(None, true);
    for bytes in [
        &b"*3\r\n$6\r\nBF.ADD\r\n$1\r\na\r\n$1\r\nb\r\n"[..],
        b"SET a 1 NX EX 600\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        &[0; 4096],
    ] {
        let said = say(&service, bytes);
        let said = answers(&said, true);
        assert!(said.len() == 1 && said[0].status >= 400, "{bytes:?}: {said:?}");
    }
    // Whoever begins with HTTP/2 knows what it means that nobody answers.
    assert_eq!(say(&service, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), b"");
    assert_eq!(service.server.store.names.len(), 0);
}

/// Whether its bytes come at once or one by one.
#[test]
fn a_bad_head_that_never_ends() {
    let service = service(None, true);
    assert_eq!(answers(&say(&service, b"0K="), true)[0].status, 400);
    // hyper looks at a head that it has waited for only when that has ended. Then nothing is said, and the conversation
    // ends even so.
    let said = block_on(converse(&service, &[b"0", b"K", b"="]));
    assert!(said.is_empty() || answers(&said, true)[0].status == 400);
    let said = block_on(converse(&service, &[b"0", b"K", b"=\r\n\r\n"]));
    assert_eq!(answers(&said, true)[0].status, 400);
}

#[test]
fn absurd_heads_and_bodies() {
    let service = service(None, true);
    let get = |more: &str| format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\n{more}\r\n");
    let post = |more: &str, body: &str| {
        format!("POST /v1/filters/x/observe HTTP/1.1\r\nHost: localhost\r\n{more}\r\n{body}")
    };
    for (bytes, status) in [
        (get(&format!("A: {}\r\n", "x".repeat(20_000))), 431),
        (get(&"A: b\r\n".repeat(100)), 431),
        (format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "x".repeat(70_000)), 431),
        (post("Content-Length: 99999999999\r\n", ""), 413),
        (post("Content-Length: 99999999999999999999999999\r\n", ""), 400),
        (post("Content-Length: 5\r\nContent-Length: 6\r\n", "hello!"), 400),
        (post("Content-Length: -1\r\n", ""), 400),
        (post("Transfer-Encoding: chunked\r\n", "zz\r\n"), 400),
        (post("Transfer-Encoding: chunked\r\n", "ffffffffffffffffff\r\n"), 400),
        (post("Transfer-Encoding: gzip\r\n", ""), 400),
        (post("Content-Length: 3\r\n", "[[["), 400),
        (post("Content-Length: 100000\r\n", &"[".repeat(100_000)), 400),
        ("GET /healthz HTTP/9.9\r\n\r\n".into(), 400),
        (" GET / HTTP/1.1\r\n\r\n".into(), 400),
        ("GET /healthz HTTP/1.1\r\n\r\n".into(), 400),
    ] {
        let said = say(&service, bytes.as_bytes());
        let shown = String::from_utf8_lossy(&said[..said.len().min(300)]).into_owned();
        let first = answers(&said, true);
        let shown_request = &bytes[..bytes.len().min(120)];
        // A head that hyper does not take apart may be answered by closing, too.
        assert!(
            first.first().is_some_and(|answer| answer.status == status),
            "{shown_request}: {status} {shown}"
        );
    }
    let chunked =
        post("Transfer-Encoding: chunked\r\n", "d\r\n{\"items\":[\"a\"\r\n2\r\n]}\r\n0\r\n\r\n");
    let said = answers(&say(&service, chunked.as_bytes()), true);
    assert_eq!((said[0].status, said[0].text()), (200, "{\"fresh\":[true]}".into()));
}

/// One connection, many requests; HEAD has the headers of GET and no body.
#[test]
fn kept_alive_and_pipelined() {
    let service = service(None, true);
    let many = request("GET", "/healthz", "", "").repeat(100);
    assert_eq!(answers(&say(&service, many.as_bytes()), true).len(), 100);
    let last = request("GET", "/healthz", "Connection: close\r\n", "");
    let said = answers(&say(&service, format!("{last}{many}").as_bytes()), true);
    assert_eq!((said.len(), said[0].header("connection")), (1, "close"));
    let old = answers(&say(&service, b"GET /healthz HTTP/1.0\r\n\r\n"), true);
    assert_eq!((old.len(), old[0].status), (1, 200));
    for path in ["/", "/healthz", "/metrics", "/v1/filters", "/openapi.json"] {
        let (get, head) = (ask(&service, "GET", path, ""), ask(&service, "HEAD", path, ""));
        assert_eq!((head.status, head.body.len()), (200, 0), "{path}");
        assert_eq!(head.header("content-type"), get.header("content-type"));
        assert!(!head.header("content-length").is_empty(), "{path}");
    }
    assert_eq!(ask(&service, "HEAD", "/v1/filters/none", "").status, 404);
}

/// Whoever sends a head byte by byte is given up after half a minute, a body after a minute.
#[test]
fn slow_clients_are_given_up() {
    let service = service(None, true);
    let shared = RefCell::new(crate::net::Shared::default());
    let drip = |begin: &str| {
        block_on(async {
            let (mut client, stream) = tokio::io::duplex(1 << 16);
            let (_stop, stopping) = tokio::sync::watch::channel(false);
            let serving = super::super::serve(stream, None, &service, &shared, stopping);
            let begun = tokio::time::Instant::now();
            let talking = async {
                client.write_all(begin.as_bytes()).await.unwrap();
                let (mut said, mut part) = (Vec::new(), [0; 4096]);
                loop {
                    tokio::select! {
                        read = client.read(&mut part) => match read {
                            Ok(0) | Err(_) => break said,
                            Ok(bytes) => said.extend_from_slice(&part[..bytes]),
                        },
                        () = tokio::time::sleep(Duration::from_secs(5)) => {
                            let _ = client.write_all(b"x").await;
                        }
                    }
                }
            };
            let (_, said) = tokio::join!(serving, talking);
            (begun.elapsed().as_secs(), said)
        })
    };
    let (seconds, _) = drip("GET /healthz HTTP/1.1\r\nHost: localhost\r\nA: ");
    assert!((29..=40).contains(&seconds), "a head took {seconds} s");
    // Nothing at all, and nothing more.
    assert!((29..=40).contains(&drip("").0));
    let body =
        "POST /v1/filters/x/observe HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{";
    let (seconds, said) = drip(body);
    let said = answers(&said, true);
    assert!((59..=100).contains(&seconds) && said[0].status == 408, "{seconds} s: {said:?}");
}

/// A client that takes no answers is given up, and costs no memory that it has not asked for meanwhile.
#[test]
fn a_client_that_does_not_read() {
    let service = service(None, true);
    let shared = RefCell::new(crate::net::Shared::default());
    let seconds = block_on(async {
        let (mut client, stream) = tokio::io::duplex(1 << 14);
        let (_stop, stopping) = tokio::sync::watch::channel(false);
        let serving = super::super::serve(stream, None, &service, &shared, stopping);
        let begun = tokio::time::Instant::now();
        let sending = async {
            let many = request("GET", "/openapi.json", "", "").repeat(10_000);
            client.write_all(many.as_bytes()).await.is_err()
        };
        let (_, was_cut) = tokio::join!(serving, sending);
        assert!(was_cut);
        begun.elapsed().as_secs()
    });
    assert!((60..=80).contains(&seconds), "{seconds} s");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The answers are the same however the bytes are cut.
    #[test]
    fn any_cut_of_the_input(cuts in prop::collection::vec(0usize..900, 0..6)) {
        let all = [
            request("PUT", "/v1/filters/f", "", r#"{"window":"10m"}"#),
            request("POST", "/v1/filters/f/observe", "", r#"{"items":["a","b","a"]}"#),
            "POST /v1/filters/f/seen HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"ite\r\n9\r\nms\":[\"a\"]\r\n1\r\n}\r\n0\r\n\r\n".into(),
            request("POST", "/v1/keys/k?ttl=10m", "", ""),
            request("GET", "/nothing", "", ""),
        ]
        .concat();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(all.len())).collect();
        cuts.extend([0, all.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &all.as_bytes()[cut[0]..cut[1]]).collect();
        let said = block_on(converse(&service(None, true), &pieces));
        let statuses: Vec<u16> = answers(&said, true).iter().map(|answer| answer.status).collect();
        prop_assert_eq!(statuses, [201, 200, 200, 201, 404]);
    }
}
