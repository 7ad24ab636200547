//! Filters as bytes, and keys that are taken out.

use super::{ask, ask_bytes, service};
use serde_json::json;

#[test]
fn a_filter_moves() {
    let (one, two) = (service(None, true), service(None, true));
    let options = r#"{"window":"10m","capacity":300000,"fpr":1e-6}"#;
    assert_eq!(ask(&one, "PUT", "/v1/filters/a%2Fb", options).status, 201);
    let items = r#"{"items":["x",{"base64":"AP8="}]}"#;
    assert_eq!(ask(&one, "POST", "/v1/filters/a%2Fb/observe", items).status, 200);
    let dump = ask(&one, "GET", "/v1/filters/a%2Fb/snapshot", "");
    assert_eq!((dump.status, dump.header("content-type")), (200, "application/octet-stream"));
    assert!(dump.body.len() > 1 << 20, "{}", dump.body.len());
    let put = |path: &str, body: &[u8]| ask_bytes(&two, "PUT", path, body);
    let made = put("/v1/filters/c/snapshot", &dump.body);
    assert_eq!((made.status, &made.json()["window_ms"]), (201, &json!(600_000)), "{made:?}");
    assert_eq!((&made.json()["name"], &made.json()["fresh"]), (&json!("c"), &json!(2)));
    assert_eq!(ask(&two, "POST", "/v1/filters/c/seen", items).json(), json!({"seen":[true,true]}));
    let more = r#"{"items":["y"]}"#;
    assert_eq!(ask(&two, "POST", "/v1/filters/c/observe", more).json(), json!({"fresh":[true]}));
    let taken = put("/v1/filters/c/snapshot?replace=false", &dump.body);
    assert!(taken.status == 409 && taken.text().contains("item exists"), "{taken:?}");
    assert_eq!(put("/v1/filters/c/snapshot?replace=true", &dump.body).status, 200);
    assert_eq!(ask(&two, "POST", "/v1/filters/c/seen", more).json(), json!({"seen":[false]}));
    for (body, status, said) in [
        (&dump.body[..dump.body.len() - 1], 400, "this is no dump of a filter"),
        (b"".as_slice(), 400, "this is no dump of a filter"),
    ] {
        let wrong = put("/v1/filters/d/snapshot", body);
        assert!(wrong.status == status && wrong.text().contains(said), "{wrong:?}");
    }
    let wrong = put("/v1/filters/d/snapshot?replace=yes", &dump.body);
    assert!(wrong.status == 400 && wrong.text().contains("false, true"), "{wrong:?}");
    assert_eq!(ask(&two, "GET", "/v1/filters/d", "").status, 404);
    assert_eq!(ask(&two, "HEAD", "/v1/filters/c/snapshot", "").status, 200);
}

#[test]
fn keys_are_taken_out() {
    let service = service(None, true);
    let ask = |method: &str, path: &str, body: &str| ask(&service, method, path, body);
    assert_eq!(ask("PUT", "/v1/filters/f", r#"{"window":"10m"}"#).status, 201);
    ask("POST", "/v1/filters/f/observe", r#"{"items":["a","b"]}"#);
    let forgotten = ask("POST", "/v1/filters/f/forget", r#"{"items":["a","c","a"]}"#);
    assert_eq!(forgotten.json(), json!({"forgotten":[true,false,false]}));
    let seen = ask("POST", "/v1/filters/f/seen", r#"{"items":["a","b"]}"#);
    assert_eq!(seen.json(), json!({"seen":[false,true]}));
    let none = ask("POST", "/v1/filters/none/forget", r#"{"items":["a"]}"#);
    assert_eq!(none.json(), json!({"forgotten":[false]}));
    assert_eq!(ask("PUT", "/v1/filters/bloom", r#"{"forever":true}"#).status, 201);
    let cannot = ask("POST", "/v1/filters/bloom/forget", r#"{"items":["a"]}"#);
    assert!(cannot.status == 400 && cannot.text().contains("cannot forget"), "{cannot:?}");
}
