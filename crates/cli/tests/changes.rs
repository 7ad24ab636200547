//! What lets a duplicate through, or is chosen of a burst: dead bands, times that rank.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use proptest::prelude::*;
use std::collections::HashMap;
use std::fmt::Write as _;
use support::{Folder, dedup};

const ROWS: &str = "t,topic,v\n1,a,20.0\n2,a,20.05\n3,a,21.0\n4,a,20.9\n";

#[test]
fn case_rbe_a_dead_band_is_around_the_last_value_that_passed() {
    let passes = |band: &str, kept: &[usize]| {
        let lines: Vec<_> = ROWS.lines().collect();
        let expected: String =
            [0].iter().chain(kept).map(|&at| format!("{}\n", lines[at])).collect();
        dedup(&format!("--key topic --pass-on-change v:{band}"), ROWS).out(&expected).code(0);
    };
    passes("0.5", &[1, 3]);
    passes("1", &[1]);
    passes("0.04", &[1, 2, 3, 4]);
    // 0.95 and 0.1 are no larger than they are, whatever floating point makes of them.
    passes("0.95", &[1, 3]);
    passes("0.1", &[1, 3]);
    passes("0", &[1, 2, 3, 4]);
    dedup("--key topic --pass-on-change v:-1", ROWS).code(2).says("0 or more");
    dedup("--key topic --pass-on-change v:x", ROWS).code(2).says("v:x");
}

#[test]
fn several_fields_pass_when_one_of_them_changed() {
    let rows = "k,door,v\na,open,1\na,open,1.4\na,shut,1.4\na,shut,1.8\na,shut,2\na,shut,\na,shut,\na,shut,2\n";
    dedup("--key k --pass-on-change door,v:0.5", rows)
        .counts([5, 3, 0, 0, 0, 0])
        .out("k,door,v\na,open,1\na,shut,1.4\na,shut,2\na,shut,\na,shut,2\n");
    // A name with a comma.
    let rows = "k,\"a,b\"\nx,1\nx,1.4\nx,2\n";
    dedup("--key k --pass-on-change \"a,b:0.5\"", rows).counts([2, 1, 0, 0, 0, 0]);
    // A colon before something else belongs to the name, and one before a number can.
    let rows = "k,a:b,n:1\nx,1,5\nx,2,5\nx,2,6\n";
    dedup("--key k --pass-on-change a:b,n:1:0", rows).counts([3, 0, 0, 0, 0, 0]);
}

#[test]
fn a_field_that_is_never_there_is_told() {
    // poc.ndjson
    let records = "{\"id\":\"a\",\"v\":1}\n{\"id\":\"a\",\"v\":2}\n";
    dedup("--format ndjson --key id --pass-on-change V", records)
        .code(0)
        .says("no record has a field `V` of --pass-on-change");
    dedup("--format ndjson --key id --pass-on-change V:0.5", records)
        .code(0)
        .says("no record has a number in a field `V` of --pass-on-change");
    let found = dedup("--format ndjson --key id --pass-on-change v:0.5", records);
    found.counts([2, 0, 0, 0, 0, 0]);
    assert!(!found.stderr.contains("no record"), "{}", found.stderr);
}

#[test]
fn a_state_knows_its_dead_bands() {
    let folder = Folder::new();
    let state = folder.path("state");
    let run = |band: &str, rows: &str| {
        dedup(&format!("--key k --pass-on-change v:{band} --state {state}"), format!("k,v\n{rows}"))
    };
    run("0.5", "a,1\na,1.2\n").out("k,v\na,1\n");
    run("0.5", "a,1.5\na,1.6\n").out("k,v\na,1.6\n");
    run("0.6", "a,1.5\n").code(1).says("pass-on-change: saved v:0.5, asked v:0.6");
}

#[test]
fn case_x2b_the_latest_of_each_burst_is_forwarded() {
    let records = "\
{\"u\":\"aa\",\"v\":1,\"t\":\"2024-01-01T00:00:00.0Z\"}
{\"u\":\"bb\",\"v\":7,\"t\":\"2024-01-01T00:00:00.1Z\"}
{\"u\":\"aa\",\"v\":2,\"t\":\"2024-01-01T00:00:00.4Z\"}
{\"u\":\"cc\",\"v\":9,\"t\":\"2024-01-01T00:00:09Z\"}
";
    let lines: Vec<_> = records.lines().collect();
    let run = dedup("--format ndjson --key u --time t --within 1s --best t:max --hold 1s", records);
    run.out(&format!("{}\n{}\n{}\n", lines[2], lines[1], lines[3])).counts([3, 1, 0, 0, 0, 0]);
    let run = dedup("--format ndjson --key u --time t --within 1s --best t:min --hold 1s", records);
    run.out(&format!("{}\n{}\n{}\n", lines[0], lines[1], lines[3]));
    // Neither a number nor a time: told.
    dedup("--format ndjson --key u --time t --within 1s --best u:max --hold 1s", records)
        .says("no record has a number or a time in the field `u` of --best");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Halves are exact, so that no rounding matters.
    #[test]
    fn changes_are_those_of_an_exact_program(
        rows in prop::collection::vec((0..20_u8, -6..6_i32, prop::option::weighted(0.9, -6..6_i32), 0..3_u8), 0..300),
        first in 0..6_i32,
        second in 0..6_i32,
        plain: bool,
    ) {
        let mut text = String::from("k,a,b,c\n");
        let mut expected = text.clone();
        let mut last: HashMap<u8, (i32, Option<i32>, u8)> = HashMap::new();
        for &(key, a, b, c) in &rows {
            let half = |number: i32| f64::from(number) / 2.0;
            let b_text = b.map_or_else(String::new, |b| half(b).to_string());
            let row = format!("{key},{},{b_text},{c}", half(a));
            writeln!(text, "{row}").unwrap();
            let is_like = last.get(&key).is_some_and(|&(old_a, old_b, old_c)| {
                let b_like = match (old_b, b) {
                    (Some(old), Some(new)) => (new - old).abs() <= second,
                    (old, new) => old == new,
                };
                (a - old_a).abs() <= first && b_like && (!plain || c == old_c)
            });
            if !is_like {
                last.insert(key, (a, b, c));
                writeln!(expected, "{row}").unwrap();
            }
        }
        let fields = format!("a:{},b:{}", f64::from(first) / 2.0, f64::from(second) / 2.0);
        let fields = if plain { format!("c,{fields}") } else { fields };
        let run = dedup(&format!("--format csv --key k --pass-on-change {fields}"), text);
        prop_assert_eq!(run.text(), expected, "{}", run.stderr);
    }
}
