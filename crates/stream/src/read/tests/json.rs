//! The scanner against serde_json, and the canonical form.

use crate::scan::canonical::{Workspace, canonical};
use crate::scan::tree::Tree;
use proptest::prelude::*;
use serde_json::Value;

fn scan(text: &[u8]) -> Result<(), String> {
    Tree::default().scan(text, false, &mut Vec::new()).map(|_| ()).map_err(|e| e.to_string())
}

/// Whether it is JSON to serde_json; no answer where it has no Rust value for the text.
fn serde(text: &[u8]) -> Option<bool> {
    let no_value = ["number out of range", "surrogate"];
    match serde_json::from_slice::<Value>(text) {
        Ok(_) => Some(true),
        Err(error) if no_value.iter().any(|no| error.to_string().contains(no)) => None,
        Err(_) => Some(false),
    }
}

fn canonical_of(text: &str) -> String {
    assert_eq!(scan(text.as_bytes()), Ok(()), "{text}");
    let mut out = Vec::new();
    canonical(text.as_bytes(), &[], &mut Workspace::default(), &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn valid_and_invalid_texts() {
    let valid = [
        "0",
        "-0",
        "1.5e-7",
        "1E+2",
        "\"\"",
        "true",
        "false",
        "null",
        "[]",
        "{}",
        " [ 1 , 2 ] ",
        "{\"a\":{\"b\":[{},[],\"\\u00e9\\n\"]}}",
        "\"\\ud800\"",
        "\"a long text of more than eight\"",
    ];
    for text in valid {
        assert_eq!(scan(text.as_bytes()), Ok(()), "{text}");
    }
    let invalid = [
        "",
        " ",
        "01",
        "-",
        "1.",
        ".5",
        "1e",
        "+1",
        "tru",
        "nul",
        "True",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{\"a\"}",
        "{\"a\":}",
        "{a:1}",
        "{\"a\":1,}",
        "{\"a\":1",
        "[1",
        "]",
        "}",
        "[1}",
        "{\"a\":1]",
        "\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"a\nb\"",
        "1 2",
        "{} {}",
        "NaN",
        "'a'",
        "\"\\",
        "[\"a\",\"bcdefghijk\u{1}\"]",
        "\u{a0}1",
    ];
    for text in invalid {
        assert!(scan(text.as_bytes()).is_err(), "{text}");
        assert_eq!(serde(text.as_bytes()), Some(false), "{text}");
    }
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth| "[".repeat(depth) + &"]".repeat(depth);
    assert!(scan(nested(128).as_bytes()).is_ok());
    assert!(scan(nested(129).as_bytes()).unwrap_err().contains("nested more than 128 deep"));
    assert!(scan("{\"a\":".repeat(1_000_000).as_bytes()).is_err());
    let mut tree = Tree::default();
    tree.slot(std::iter::repeat_n(b"0".as_slice(), 500));
    assert!(tree.scan(nested(400).as_bytes(), false, &mut Vec::new()).is_err());
    assert!(tree.scan(nested(128).as_bytes(), false, &mut Vec::new()).is_ok());
}

#[test]
fn one_canonical_form() {
    assert_eq!(canonical_of(" { \"b\" : 1.0 , \"a\" : [ ] } "), r#"{"a":[],"b":1.0}"#);
    assert_eq!(canonical_of(r#"{"a":{"z":1,"y":2},"a":{"y":"\u0041\/"}}"#), r#"{"a":{"y":"A/"}}"#);
    assert_eq!(canonical_of(r#"["\n\"\\é\u00e9"]"#), r#"["\u000a\"\\éé"]"#);
    assert_eq!(canonical_of(r#""\ud83d\ude00""#), "\"😀\"");
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        // serde_json does not read back every last digit of others.
        any::<i32>().prop_map(|n| Value::from(f64::from(n) / 8.0)),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 30, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((".{0,3}", inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// The same texts are valid to both, written, and with a byte changed, lost or cut off.
    #[test]
    fn agrees_with_serde_json(value in value(), at in any::<prop::sample::Index>(), byte: u8, how in 0..4) {
        let mut text = value.to_string().into_bytes();
        prop_assert_eq!(scan(&text), Ok(()));
        let at = at.index(text.len());
        let swap = b"\"\\{}[],:0-.eEtfn \n\t\x01"[usize::from(byte) % 20];
        match how {
            0 => text[at] = byte,
            1 => text[at] = swap,
            2 => { text.remove(at); }
            _ => text.truncate(at),
        }
        // The caller has checked for UTF-8.
        if std::str::from_utf8(&text).is_ok() && let Some(valid) = serde(&text) {
            prop_assert_eq!(scan(&text).is_ok(), valid, "{}", String::from_utf8_lossy(&text));
        }
    }

    #[test]
    fn the_canonical_form_says_the_same_and_is_its_own(value in value()) {
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        let form = canonical_of(&pretty);
        prop_assert_eq!(&form, &canonical_of(&value.to_string()));
        prop_assert_eq!(&form, &canonical_of(&form));
        prop_assert_eq!(serde_json::from_str::<Value>(&form).unwrap().to_string(), value.to_string());
    }
}
