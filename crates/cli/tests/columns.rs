//! Columns and fields that are not what they seem, and limits that every format obeys.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use support::{Folder, dedup, dedup_with};

#[test]
fn columns_in_another_order_are_refused() {
    let folder = Folder::new();
    let first = folder.file("m1.csv", "id,v\na,1\n");
    let other = folder.file("m3.csv", "v,id\n2,b\n");
    let again = folder.file("m2.csv", "\"id\",\"v\"\na,1\nc,3\n");
    let run = dedup_with(&[&first, &other, &again, "--key", "id"], "");
    run.code(1).out("id,v\na,1\nc,3\n").counts([2, 1, 0, 0, 0, 0]);
    run.says(
        "m3.csv: its columns are in another order (v,id) than those of the first input (id,v)",
    );
}

#[test]
fn of_two_columns_of_one_name_it_is_told_which_is_used() {
    let run = dedup("--key id", "id,v,id\na,1,x\na,2,y\n");
    run.code(0)
        .out("id,v,id\na,1,x\n")
        .says("more than one column `id`; the first is used, column 1");
    let run = dedup("--key v", "id,v,id\na,1,x\n");
    assert!(!run.stderr.contains("more than one"), "{}", run.stderr);
}

#[test]
fn fields_that_are_never_there_are_told() {
    let input = "{\"k\":1,\"v\":1}\n{\"k\":1,\"v\":2}\n";
    dedup("--key k --pass-on-change V", input)
        .code(0)
        .says("no record has a field `V` of --pass-on-change");
    let run = dedup("--key k --pass-on-change v", input);
    assert!(!run.stderr.contains("no record has"), "{}", run.stderr);
    let input = "{\"k\":1,\"t\":\"strong\"}\n{\"k\":1,\"t\":\"weak\"}\n";
    let run = dedup("--key k --within 5s --best t:max --hold 5s", input);
    run.code(0).says("no record has a number").says("in the field `t` of --best");
}

#[test]
fn a_mark_is_replaced() {
    let once = dedup("--key id --mark", "id,v\na,1\na,2\n");
    once.out("id,v,lately\na,1,fresh\na,2,duplicate\n");
    dedup("--key id --mark", once.text()).out(once.text());
    let once = dedup("--key id --mark", "{\"id\":1}\n{\"id\":1}\n");
    dedup("--key id --mark", once.text()).out(once.text());
}

#[test]
fn documents_obey_a_limit_too() {
    let large = format!("{{\n\"k\": \"{}\"\n}}\n", "x".repeat(5000));
    let flags = "--format json --key k --max-document 1KiB";
    let run = dedup(flags, format!("{{\n\"k\": 1\n}}\n{large}{{\"k\":2}}\n"));
    assert!(!run.text().contains("xxx"), "{}", run.text());
    assert_eq!((run.count("fresh"), run.count("invalid") > 0), (2, true));
    dedup("--format json --key k", &large).code(0).counts([1, 0, 0, 0, 0, 0]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_header_or_a_quote_without_an_end_takes_little_memory() {
    let flags = ["--key", "k", "--format", "csv"];
    for begin in ["k", "k,v\na,\"", "\"k"] {
        let mut live = support::Live::dedup(&flags);
        live.send(begin);
        let more = "x".repeat(1 << 20);
        for _ in 0..24 {
            live.send_or_not(&more);
        }
        let peak = live.peak_memory_or_none().unwrap_or(0);
        assert!(peak < 60 << 20, "{peak} after {begin:?}");
    }
}
