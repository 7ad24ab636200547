//! Filters and keys, as clients use them.

use super::{Answer, ask, ask_with, service};
use crate::net::{Service, clock};
use serde_json::{Value, json};

fn is(answer: &Answer, status: u16, body: &Value) {
    assert_eq!((answer.status, &answer.json()), (status, body), "{answer:?}");
}

#[test]
fn a_filter_from_making_to_dropping() {
    let service = service(None, true);
    let ask = |method: &str, path: &str, body: &str| ask(&service, method, path, body);
    let options = r#"{"window":"10m","capacity":1000,"fpr":1e-6,"renew":"fresh"}"#;
    let made = ask("PUT", "/v1/filters/a%2Fb", options);
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(ask("PUT", "/v1/filters/a%2Fb", options).status, 200);
    assert_eq!(ask("PUT", "/v1/filters/a%2Fb", r#"{"window":"11m"}"#).status, 409);
    let path = made.json()["path"].as_str().unwrap().to_owned();
    assert_eq!(path, "/v1/filters/a%2Fb");
    let body = r#"{"items":["x","y","x",{"base64":"AP8="}]}"#;
    is(
        &ask("POST", &format!("{path}/seen"), body),
        200,
        &json!({"seen":[false,false,false,false]}),
    );
    is(
        &ask("POST", &format!("{path}/observe"), body),
        200,
        &json!({"fresh":[true,true,false,true]}),
    );
    is(&ask("POST", &format!("{path}/seen"), body), 200, &json!({"seen":[true,true,true,true]}));
    is(
        &ask("POST", &format!("{path}/remember"), r#"{"items":["z"]}"#),
        200,
        &json!({"remembered":1}),
    );
    is(
        &ask("POST", &format!("{path}/seen"), r#"{"items":["z"],"within":"5m"}"#),
        200,
        &json!({"seen":[true]}),
    );
    let seen = ask("GET", &format!("{path}/lastseen?item=z"), "").json();
    let now = clock(&service.server);
    let (from, to) = (seen["from_ms"].as_u64().unwrap(), seen["to_ms"].as_u64().unwrap());
    assert!(from <= to && to + 60_000 > now && from < now + 1, "{seen}");
    let never = json!({"from_ms":null,"to_ms":null});
    is(&ask("GET", &format!("{path}/lastseen?item=never"), ""), 200, &never);
    let info = ask("GET", &path, "").json();
    for (member, value) in [
        ("name", json!("a/b")),
        ("window_ms", json!(600_000)),
        ("last", Value::Null),
        ("renew", json!("fresh")),
        ("fresh", json!(4)),
        ("duplicates", json!(1)),
        ("asked", json!(11)),
        ("fpr", json!(1e-6)),
    ] {
        assert_eq!(info[member], value, "{member} of {info}");
    }
    assert_eq!(ask("DELETE", &path, "").status, 204);
    assert_eq!(ask("DELETE", &path, "").status, 404);
    assert_eq!(ask("GET", &path, "").status, 404);
}

/// Moments that a client names, windows of arrivals, and names of any bytes.
#[test]
fn moments_arrivals_and_names() {
    let service = service(None, true);
    let ask = |method: &str, path: &str, body: &str| ask(&service, method, path, body);
    assert_eq!(ask("PUT", "/v1/filters/t", r#"{"window":"1m","slack":"1ms"}"#).status, 201);
    let now = clock(&service.server);
    let at = |at: u64| format!(r#"{{"items":["k"],"at":{at}}}"#);
    is(&ask("POST", "/v1/filters/t/observe", &at(now - 120_000)), 200, &json!({"fresh":[true]}));
    is(&ask("POST", "/v1/filters/t/observe", &at(now)), 200, &json!({"fresh":[true]}));
    let ahead = ask("POST", "/v1/filters/t/observe", &at(now + 120_000));
    assert!(ahead.status == 400 && ahead.text().contains("AT is in the future"), "{ahead:?}");
    assert_eq!(ask("PUT", "/v1/filters/last", r#"{"last":2,"slack":0}"#).status, 201);
    let body = r#"{"items":["a","b","c","a"]}"#;
    is(
        &ask("POST", "/v1/filters/last/observe", body),
        200,
        &json!({"fresh":[true,true,true,true]}),
    );
    is(
        &ask("POST", "/v1/filters/last/seen", r#"{"items":["c"],"within":1}"#),
        200,
        &json!({"seen":[false]}),
    );
    assert_eq!(ask("PUT", "/v1/filters/%FF%00?", "").status, 201);
    let listed = ask("GET", "/v1/filters?match=%FF", "").json();
    assert_eq!(listed["filters"][0]["path"], json!("/v1/filters/%FF%00"), "{listed}");
    assert_eq!(ask("GET", "/v1/filters/%FF%00", "").status, 200);
    // Nothing but a name: RedisBloom's defaults do not apply to HTTP.
    let made = ask("PUT", "/v1/filters/plain", "").json();
    assert_eq!((&made["capacity"], &made["fpr"]), (&json!(100_000), &json!(1e-6)));
}

#[test]
fn lists_are_sorted_searched_and_cut() {
    let service = service(None, true);
    for n in 0..30 {
        let capacity = 100 * (30 - n);
        let body = format!(r#"{{"forever":true,"capacity":{capacity}}}"#);
        assert_eq!(ask(&service, "PUT", &format!("/v1/filters/f{n:02}"), &body).status, 201);
    }
    let names = |query: &str| -> (Vec<String>, u64, u64) {
        let list = ask(&service, "GET", &format!("/v1/filters{query}"), "").json();
        let names = list["filters"].as_array().unwrap().iter();
        let names = names.map(|filter| filter["name"].as_str().unwrap().to_owned()).collect();
        (names, list["matched"].as_u64().unwrap(), list["total"].as_u64().unwrap())
    };
    let (all, matched, total) = names("");
    assert!(all.is_sorted() && all.len() == 30 && (matched, total) == (30, 30));
    assert_eq!(names("?offset=2&limit=2").0, ["f02", "f03"]);
    assert_eq!(
        names("?match=f0*&sort=capacity&limit=2"),
        (vec!["f09".into(), "f08".into()], 10, 30)
    );
    assert_eq!(names("?match=9&order=descending").0, ["f29", "f19", "f09"]);
    assert_eq!(names("?sort=memory&order=descending&limit=1").0, ["f00"]);
    assert_eq!(names("?offset=100").0, [""; 0]);
    for sort in ["rate", "duplicates", "fill", "fpr", "estimated_fpr", "last_used"] {
        assert_eq!(names(&format!("?sort={sort}")).0.len(), 30);
    }
}

#[test]
fn keys_of_set() {
    let service = service(None, true);
    let ask = |method: &str, path: &str| ask(&service, method, path, "");
    is(&ask("POST", "/v1/keys/order%3A17?ttl=600s"), 201, &json!({"fresh":true}));
    is(&ask("POST", "/v1/keys/order%3A17?ttl=600s"), 409, &json!({"fresh":false}));
    let left = ask("GET", "/v1/keys/order%3A17").json()["ttl_ms"].as_u64().unwrap();
    assert!((599_000..=600_000).contains(&left), "{left}");
    assert_eq!(ask("GET", "/v1/keys/other").status, 404);
    assert_eq!(ask("DELETE", "/v1/keys/other").status, 404);
    assert_eq!(ask("DELETE", "/v1/keys/order%3A17").status, 204);
    assert_eq!(ask("DELETE", "/v1/keys/order%3A17").status, 404);
    is(&ask("POST", "/v1/keys/order%3A17?ttl=600s"), 201, &json!({"fresh":true}));
    for (query, said) in
        [("", "give how long"), ("?ttl=10", "ttl"), ("?ttl=0s", "invalid expire time")]
    {
        let wrong = ask("POST", &format!("/v1/keys/x{query}"));
        assert!(wrong.status == 400 && wrong.text().contains(said), "{wrong:?}");
    }
}

#[test]
fn lines_of_json() {
    let service = service(None, true);
    let kind = "Content-Type: application/x-ndjson; charset=utf-8\r\n";
    let ask = |path: &str, body: &str| ask_with(&service, "POST", path, kind, body);
    let path = "/v1/filters/events/observe?key=/user/id";
    let body = "{\"user\":{\"id\":\"a\"},\"n\":1}\n{\"user\":{\"id\":7}}\r\n\n{\"user\":{\"id\":\"a\"},\"n\":2}";
    let fresh = ask(path, body);
    assert_eq!(fresh.text(), "{\"user\":{\"id\":\"a\"},\"n\":1}\n{\"user\":{\"id\":7}}\n");
    assert_eq!((fresh.header("lately-fresh"), fresh.header("lately-duplicates")), ("2", "1"));
    assert_eq!(ask(path, body).text(), "");
    // A line without a key is said, and changes nothing.
    for (line, said) in
        [("{\"user\":{}}", "line 2: there is no key at /user/id"), ("{", "line 2: EOF")]
    {
        let wrong = ask(path, &format!("{{\"user\":{{\"id\":\"new\"}}}}\n{line}"));
        assert!(wrong.status == 400 && wrong.text().contains(said), "{wrong:?}");
    }
    assert_eq!(ask(path, "{\"user\":{\"id\":\"new\"}}").header("lately-fresh"), "1");
    assert_eq!(ask("/v1/filters/lines/observe", "one\ntwo\none\n").text(), "one\ntwo\n");
    assert_eq!(ask("/v1/filters/lines/observe?key=x", "one").status, 400);
}

/// A filter that takes no more says so for each key, and what it found even so.
#[test]
fn full_is_never_silent() {
    let service = service(None, true);
    let small = r#"{"forever":true,"capacity":100,"on_full":"refuse","memory":65536}"#;
    assert_eq!(
        ask(&service, "PUT", "/v1/filters/big", r#"{"forever":true,"capacity":1000000000}"#).status,
        507
    );
    assert_eq!(ask(&service, "PUT", "/v1/filters/small", small).status, 201);
    let bloom = crate::command::Session::new(&service.server, 1, None);
    feed(&service, bloom, b"BF.RESERVE fixed 0.001 2 NONSCALING\r\n");
    let full = ask(&service, "POST", "/v1/filters/fixed/observe", r#"{"items":["a","b","c","a"]}"#);
    assert_eq!(
        (full.status, &full.json()["fresh"]),
        (507, &json!([true, true, null, false])),
        "{full:?}"
    );
}

fn feed(service: &Service, mut session: crate::command::Session, bytes: &[u8]) {
    let (mut work, mut out) = (Default::default(), Vec::new());
    session.feed(&service.server, &mut work, clock(&service.server), bytes, &mut out);
    assert_eq!(out, b"+OK\r\n");
}

/// More keys than fit into one turn.
#[test]
fn a_hundred_thousand_keys_at_once() {
    let service = service(None, true);
    assert_eq!(
        ask(&service, "PUT", "/v1/filters/many", r#"{"forever":true,"capacity":100000}"#).status,
        201
    );
    let items: Vec<String> = (0..100_000).map(|n| format!("\"{n}\"")).collect();
    let body = format!("{{\"items\":[{}]}}", items.join(","));
    let fresh = ask(&service, "POST", "/v1/filters/many/observe", &body).json();
    let fresh = fresh["fresh"].as_array().unwrap().clone();
    // At a rate of one in a million, three among them are hardly ever taken for others.
    assert!(fresh.len() == 100_000 && fresh.iter().filter(|fresh| **fresh == false).count() < 4);
    let seen = ask(&service, "POST", "/v1/filters/many/seen", &body).json();
    assert!(seen["seen"].as_array().unwrap().iter().all(|seen| *seen == true));
}

#[test]
fn intervals() {
    let service = service(None, true);
    let ask = |method: &str, path: &str, body: &str| ask(&service, method, path, body);
    let path = "/v1/filters/hosts";
    let options = r#"{"window":"10m","capacity":1000,"fpr":0.001,"range":"ip","interval":"/24"}"#;
    let made = ask("PUT", path, options);
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!((ask("PUT", path, options).status, ask("PUT", path, "{}").status), (200, 409));
    let info = made.json();
    for (member, value) in
        [("structure", "range-window"), ("range", "ip"), ("interval", "256"), ("renew", "always")]
    {
        assert_eq!(info[member], json!(value), "{info}");
    }
    let items = r#"{"items":["10.1.2.3","2001:db8::1","10.1.2.3"]}"#;
    let observed = ask("POST", &format!("{path}/observe"), items);
    is(&observed, 200, &json!({"fresh":[true,true,false]}));
    let range = format!("{path}/range");
    let found = ask("POST", &range, r#"{"first":"10.1.2.0","last":"10.1.2.255","within":"1m"}"#);
    let chance = found.json()["chance"].as_f64().unwrap();
    assert!(found.json()["seen"] == json!(true) && chance > 0.0 && chance <= 0.001, "{found:?}");
    let none = json!({"seen":false,"chance":0.0});
    is(&ask("POST", &range, r#"{"first":"10.1.3.0","last":"10.1.3.255"}"#), 200, &none);
    is(&ask("POST", &range, r#"{"first":"2001:db9::","last":"2001:db9::ff"}"#), 200, &none);
    is(&ask("POST", "/v1/filters/none/range", "{}"), 200, &none);
    assert_eq!(ask("POST", &range, "{}").json()["seen"], json!(true));
    let numbers = r#"{"range":"number","capacity":1000}"#;
    assert_eq!(ask("PUT", "/v1/filters/n", numbers).status, 201);
    is(&ask("POST", "/v1/filters/n/observe", r#"{"items":["17"]}"#), 200, &json!({"fresh":[true]}));
    let found = ask("POST", "/v1/filters/n/range", r#"{"first":10,"last":"20"}"#);
    assert_eq!(found.json()["seen"], json!(true));
    ask("PUT", "/v1/filters/points", "{}");
    for (path, body, said) in [
        ("hosts/range", r#"{"first":"10.1.3.0","last":"10.1.2.0"}"#, "give the smaller key first"),
        ("hosts/range", r#"{"first":10}"#, "`10` is no key of this filter, which is an address"),
        ("hosts/range", r#"{"first":"x"}"#, "`x` is no key of this filter"),
        ("hosts/range", r#"{"within":"soon"}"#, "within: \"soon\" is no length of time"),
        ("hosts/range", r#"{"from":"x"}"#, "unknown field `from`"),
        ("hosts/range", r#"{"first":-1}"#, "a key: a text, or a whole number"),
        (
            "n/range",
            r#"{"first":18446744073709551616}"#,
            "a whole number below 2^64; give larger ones",
        ),
        ("n/observe", r#"{"items":[17]}"#, "a number is a text, too: \"17\""),
        ("hosts/seen", r#"{"items":["x"],"within":"1m"}"#, "`x` is no key of this filter"),
        ("hosts/observe", r#"{"items":["x"]}"#, "`x` is no key of this filter"),
        ("hosts/forget", r#"{"items":["10.1.2.3"]}"#, "windows without range can"),
        ("points/range", "{}", "made with range (PUT /v1/filters/{name})"),
    ] {
        let answer = ask("POST", &format!("/v1/filters/{path}"), body);
        let problem = answer.json();
        assert_eq!(answer.status, 400, "{path} {body}: {problem}");
        assert!(problem["detail"].as_str().unwrap().contains(said), "{path} {body}: {problem}");
    }
    for (body, said) in [
        (r#"{"range":"text"}"#, "range is \"number\", \"ip\" or \"epc\""),
        (r#"{"interval":5}"#, "interval goes with range"),
        (r#"{"range":"number","interval":"/8"}"#, "interval is a number of keys"),
        (r#"{"range":"ip","last":5}"#, "give window or forever, not last"),
        (r#"{"range":"ip","window":"1m","renew":"fresh"}"#, "renew is \"always\""),
        (r#"{"range":"ip","structure":"bloom"}"#, "leave out structure"),
    ] {
        let problem = ask("PUT", "/v1/filters/x", body).json();
        assert!(problem["detail"].as_str().unwrap().contains(said), "{body}: {problem}");
    }
    let lastseen = ask("GET", &format!("{path}/lastseen?item=10.1.2.3"), "");
    assert!(
        lastseen.status == 400 && lastseen.text().contains("POST to seen or range, with within")
    );
    let largest = r#"{"first":18446744073709551615,"last":"18446744073709551616"}"#;
    is(&ask("POST", "/v1/filters/n/range", largest), 200, &none);
    // What the page shows of it.
    let list = ask("GET", "/v1/filters?match=hosts", "").json();
    assert_eq!(list["filters"][0]["range"], json!("ip"), "{list}");
    let now = clock(&service.server);
    (0..3).for_each(|n| service.board.sample(&service.server, now + n * 11_000));
    let list = ask("GET", "/v1/filters?sort=fill", "").json();
    assert!(list["matched"] == json!(3), "{list}");
    let metrics = ask("GET", "/metrics", "").text();
    assert!(metrics.contains("hosts"), "{metrics}");
    // And it moves.
    let dump = ask("GET", &format!("{path}/snapshot"), "");
    let moved = super::ask_bytes(&service, "PUT", "/v1/filters/moved/snapshot", &dump.body);
    assert_eq!(moved.status, 201, "{moved:?}");
    let found = ask("POST", "/v1/filters/moved/range", r#"{"first":"10.1.2.3","last":"10.1.2.3"}"#);
    assert_eq!(found.json()["seen"], json!(true));
}
