//! Checks values against schemas, as far as our description uses them.

use serde_json::Value;

/// What is wrong with a value.
pub(super) fn faults(document: &Value, schema: &Value, value: &Value, at: &str) -> Vec<String> {
    if let Some(reference) = schema["$ref"].as_str() {
        let schema = document.pointer(reference.trim_start_matches('#'));
        return faults(document, schema.unwrap_or_else(|| panic!("no {reference}")), value, at);
    }
    let mut found = Vec::new();
    for (word, rule) in schema.as_object().unwrap() {
        let fault = match &word[..] {
            "type" => {
                let kinds = rule.as_array().cloned().unwrap_or_else(|| vec![rule.clone()]);
                (!kinds.iter().any(|kind| is_a(value, kind.as_str().unwrap())))
                    .then(|| format!("no {rule}"))
            }
            "enum" => {
                (!rule.as_array().unwrap().contains(value)).then(|| format!("none of {rule}"))
            }
            "minimum" => value
                .as_f64()
                .filter(|n| *n < rule.as_f64().unwrap())
                .map(|n| format!("{n} < {rule}")),
            "maximum" => value
                .as_f64()
                .filter(|n| *n > rule.as_f64().unwrap())
                .map(|n| format!("{n} > {rule}")),
            "required" => {
                let names = rule.as_array().unwrap().iter().map(|name| name.as_str().unwrap());
                let missing: Vec<&str> = names.filter(|name| value.get(name).is_none()).collect();
                (!missing.is_empty()).then(|| format!("without {missing:?}"))
            }
            "properties" => {
                for (name, schema) in rule.as_object().unwrap() {
                    if let Some(member) = value.get(name) {
                        found.extend(faults(document, schema, member, &format!("{at}/{name}")));
                    }
                }
                None
            }
            "additionalProperties" => {
                assert_eq!(rule, &Value::Bool(false));
                let known = schema["properties"].as_object().unwrap();
                let members = value.as_object().into_iter().flatten();
                let others: Vec<&String> = members
                    .map(|(name, _)| name)
                    .filter(|name| !known.contains_key(*name))
                    .collect();
                (!others.is_empty()).then(|| format!("with {others:?}"))
            }
            "items" => {
                for (n, item) in value.as_array().into_iter().flatten().enumerate() {
                    found.extend(faults(document, rule, item, &format!("{at}/{n}")));
                }
                None
            }
            "oneOf" => {
                let fits = rule
                    .as_array()
                    .unwrap()
                    .iter()
                    .filter(|schema| faults(document, schema, value, at).is_empty());
                let fits = fits.count();
                (fits != 1).then(|| format!("fits {fits} of {rule}"))
            }
            "description" | "default" | "contentEncoding" | "minLength" | "maxLength" => None,
            other => panic!("the schema at {at} uses {other}, which is not checked"),
        };
        found.extend(fault.map(|fault| format!("{at}: {value} is {fault}")));
    }
    found
}

fn is_a(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("no type {other}"),
    }
}

#[test]
fn what_is_wrong_is_found() {
    use serde_json::json;
    let schema = json!({"type":"object","required":["a"],"additionalProperties":false,
        "properties":{"a":{"type":["integer","null"],"minimum":1},"b":{"type":"array","items":{"type":"string"}}}});
    let count = |value: Value| faults(&Value::Null, &schema, &value, "").len();
    assert_eq!(count(json!({"a":1,"b":["x"]})), 0);
    assert_eq!(count(json!({"a":null})), 0);
    for wrong in [
        json!([]),
        json!({}),
        json!({"a":0}),
        json!({"a":1.5}),
        json!({"a":1,"c":1}),
        json!({"a":1,"b":[1]}),
    ] {
        assert!(count(wrong.clone()) > 0, "{wrong}");
    }
}
