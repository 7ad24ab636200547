//! `/metrics` by a parser of the format.

use super::{ask, service};
use crate::net::clock;
use std::collections::{HashMap, HashSet};

/// A name, labels and a value.
type Sample = (String, Vec<(String, String)>, f64);

/// Samples by name and labels, in the order of the text. Checks the format as it goes.
fn parse(text: &str) -> Vec<Sample> {
    let (mut kinds, mut helped) = (HashMap::new(), HashSet::new());
    let (mut samples, mut seen, mut family) = (Vec::new(), HashSet::new(), String::new());
    let is_name = |name: &str| {
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && !name.starts_with(|first: char| first.is_ascii_digit())
    };
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(is_name(name) && !help.is_empty() && helped.insert(name.to_owned()), "{line}");
            continue;
        }
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(
                helped.contains(name) && kinds.insert(name.to_owned(), kind.to_owned()).is_none(),
                "{line}"
            );
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            family = name.to_owned();
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').map_or((series, ""), |(name, rest)| {
            (name, rest.strip_suffix('}').unwrap_or_else(|| panic!("{line}")))
        });
        let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        let is_own = name == family || (base == Some(&family[..]) && kinds[&family] == "histogram");
        assert!(is_name(name) && is_own, "{line} in {family}");
        assert!(seen.insert(series.to_owned()), "twice: {series}");
        let value = if value == "+Inf" { f64::INFINITY } else { value.parse().unwrap() };
        samples.push((name.to_owned(), parse_labels(labels), value));
    }
    samples
}

fn parse_labels(mut text: &str) -> Vec<(String, String)> {
    let mut labels = Vec::new();
    while !text.is_empty() {
        let (name, rest) = text.split_once("=\"").unwrap();
        let (mut value, mut chars) = (String::new(), rest.char_indices());
        let end = loop {
            match chars.next().unwrap() {
                (end, '"') => break end,
                (_, '\\') => value.push(match chars.next().unwrap().1 {
                    'n' => '\n',
                    other @ ('"' | '\\') => other,
                    other => panic!("\\{other}"),
                }),
                (_, '\n') => panic!("a line end in {text}"),
                (_, other) => value.push(other),
            }
        };
        labels.push((name.to_owned(), value));
        text = rest[end + 1..].strip_prefix(',').unwrap_or(&rest[end + 1..]);
    }
    labels
}

#[test]
fn as_prometheus_reads_it() {
    let service = service(None, true);
    for name in ["plain", "quo\"te", "back\\slash", "line\nend", "other", "é"] {
        let path = super::super::query::path_of(name.as_bytes());
        assert_eq!(ask(&service, "PUT", &path, r#"{"window":"10m"}"#).status, 201);
    }
    // No text: it has no label.
    assert_eq!(ask(&service, "PUT", "/v1/filters/%FF", "").status, 201);
    ask(&service, "POST", "/v1/filters/plain/observe", r#"{"items":["a","b","a"]}"#);
    ask(&service, "POST", "/v1/filters/plain/seen", r#"{"items":["a"]}"#);
    ask(&service, "POST", "/v1/keys/k?ttl=10m", "");
    service.board.sample(&service.server, clock(&service.server));
    let answer = ask(&service, "GET", "/metrics", "");
    assert_eq!(answer.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    let samples = parse(&answer.text());
    let value = |name: &str, labels: &[(&str, &str)]| {
        let found = samples.iter().find(|(other, own, _)| {
            other == name
                && own.len() == labels.len()
                && own.iter().zip(labels).all(|((a, b), (c, d))| a == c && b == d)
        });
        found.unwrap_or_else(|| panic!("{name} {labels:?} in {samples:?}")).2
    };
    let verdict =
        |verdict| value("lately_keys_total", &[("filter", "plain"), ("verdict", verdict)]);
    assert_eq!((verdict("fresh"), verdict("duplicate"), verdict("refused")), (2.0, 1.0, 0.0));
    assert_eq!(value("lately_asked_total", &[("filter", "plain")]), 1.0);
    assert_eq!(value("lately_commands_total", &[("command", "lately.observe")]), 3.0);
    assert_eq!(value("lately_commands_total", &[("command", "set")]), 1.0);
    assert_eq!(value("lately_filters", &[]), 7.0);
    assert_eq!(value("lately_keyspace_keys", &[]), 1.0);
    assert_eq!(value("lately_filter_fpr_planned", &[("filter", "line\nend")]), 1e-6);
    assert!(value("lately_filter_fill", &[("filter", "plain")]) > 0.0);
    // The one without a label, and the one of that name.
    assert_eq!(value("lately_filter_tables", &[("filter", "other")]), 2.0);
    let run = |le| value("lately_run_length_bucket", &[("le", le)]);
    assert!(
        run("1") >= 2.0
            && run("4") - run("2") == 1.0
            && run("+Inf") == value("lately_run_length_count", &[])
    );
    let buckets: Vec<f64> = samples
        .iter()
        .filter(|(name, ..)| name == "lately_turn_seconds_bucket")
        .map(|sample| sample.2)
        .collect();
    assert!(buckets.len() == 14 && buckets.is_sorted());
    #[cfg(target_os = "linux")]
    assert!(
        value("process_resident_memory_bytes", &[]) > 1e6
            && value("process_cpu_seconds_total", &[]) >= 0.0
    );
}

/// However many filters there are, the series stay few, and add up.
#[test]
fn at_most_two_hundred_labels() {
    let mut service = service(None, true);
    let store = crate::store::Store::new(7, 1 << 30, 10_000, Vec::new(), Default::default());
    std::sync::Arc::get_mut(&mut service.server).unwrap().store = store;
    for n in 0..1_000 {
        ask(&service, "POST", &format!("/v1/filters/f{n}/observe"), r#"{"items":["a"]}"#);
    }
    service.board.sample(&service.server, clock(&service.server));
    let labels = |text: &str| -> Vec<String> {
        let fresh = parse(text)
            .into_iter()
            .filter(|(name, labels, _)| name == "lately_keys_total" && labels[1].1 == "fresh");
        let fresh: Vec<_> = fresh.collect();
        assert_eq!(fresh.iter().map(|sample| sample.2).sum::<f64>(), 1_000.0);
        fresh.into_iter().map(|(_, labels, _)| labels[0].1.clone()).collect()
    };
    let first = labels(&ask(&service, "GET", "/metrics", "").text());
    assert_eq!(first.len(), 201);
    // They stay with the filters that have them.
    ask(&service, "PUT", "/v1/filters/a", "");
    service.board.sample(&service.server, clock(&service.server));
    assert_eq!(labels(&ask(&service, "GET", "/metrics", "").text()), first);
}
