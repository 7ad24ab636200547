//! Parquet and Arrow files: read as the same records in CSV are, and refused where they cannot be.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use std::fs;
use support::{Folder, Outcome, dedup_with, summed};

const COLUMNS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/reads.parquet");
const LINES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/reads.csv");
const FIELDS: [&str; 6] = ["--key", "tag,antenna", "--time", "t", "--within", "5s"];

fn dedup(input: &str, more: &[&str]) -> Outcome {
    dedup_with(&[&[input], &FIELDS[..], more].concat(), "")
}

#[test]
fn rows_in_columns_are_judged_as_the_same_rows_in_lines() {
    let folder = Folder::new();
    let [out, twice, late] = ["out.parquet", "twice.arrow", "late"].map(|name| folder.path(name));
    let lines = dedup(LINES, &["--late", &folder.path("late.csv")]);
    let columns = dedup(COLUMNS, &["-o", &out, "--duplicates", &twice, "--late", &late]);
    columns.code(0).out("");
    let names = ["read", "fresh", "duplicate", "late"];
    let counts = |run: &Outcome| names.map(|name| run.count(name));
    assert_eq!(counts(&columns), counts(&lines));
    assert!(counts(&columns).iter().all(|count| *count > 10), "{}", columns.stderr);
    // What was written is read again, each in the format of its name, or in that of the input.
    let magic = |path: &str| fs::read(path).unwrap()[..4].to_vec();
    assert_eq!([&out, &twice, &late].map(|path| magic(path)), [*b"PAR1", *b"ARRO", *b"PAR1"]);
    for (path, name) in [(&out, "fresh"), (&twice, "duplicate"), (&late, "late")] {
        let again = folder.path("again.arrow");
        let run = dedup_with(&[path, "--key", ".", "-o", &again], "");
        run.code(0);
        assert_eq!(run.count("read"), columns.count(name), "{name}");
    }
    // Numbers, times and whole rows are keys as in CSV.
    for key in ["antenna", "t", "*,-list", "1-2"] {
        let csv = dedup_with(&[LINES, "--key", if key == "*,-list" { "." } else { key }], "");
        let run = dedup_with(&[COLUMNS, "--key", key, "-o", &out], "");
        assert_eq!(run.count("fresh"), csv.count("fresh"), "{key}");
    }
}

#[test]
fn visits_and_indexes_are_made_of_rows_in_columns() {
    let folder = Folder::new();
    let visits = |input| summed(&[&["visits", input], &FIELDS[..]].concat(), "");
    assert_eq!(visits(COLUMNS).code(0).text(), visits(LINES).text());
    let index = |input, name| {
        let flags = ["--key", "antenna", "--time", "t", "--within", "1h", "--state"];
        let state = folder.path(name);
        summed(&[&["index", input], &flags[..], &[&state]].concat(), "").count("indexed")
    };
    assert_eq!(index(COLUMNS, "columns"), index(LINES, "lines"));
}

#[test]
fn what_does_not_go_with_columns_is_refused() {
    let folder = Folder::new();
    let (out, state) = (folder.file("out.parquet", "old"), folder.path("state"));
    for (more, says) in [
        (&[][..], "--output: "),
        (&["-o", "-"], "name a file"),
        (&["-o", &out, "--state", &state], "cannot be appended to"),
        (&["-o", &out, "--mark"], "--mark: "),
        (&["-o", &out, "--count"], "--count: "),
        (&["-o", &out, "--unique-only"], "--unique-only: "),
        (&["-o", &out, "--best", "antenna:max", "--hold", "1s"], "--best: "),
        (&["-o", &out, "--sort-within", "1s"], "--sort-within: "),
        (&["-o", &out, "--invalid", &state], "--invalid: "),
        (&["-o", &out, "--format", "csv"], "--format: "),
        (&["-o", &out, LINES], "read them in runs of their own"),
    ] {
        dedup(COLUMNS, more).code(2).says(says);
        assert_eq!(folder.read("out.parquet"), "old", "{more:?}");
    }
    // A pipe, and a file that is cut short.
    let bytes = fs::read(COLUMNS).unwrap();
    let short = folder.file("short", &bytes[..bytes.len() - 1]);
    dedup_with(&["--key", "tag"], &bytes)
        .code(1)
        .says("is a Parquet file: such a file is read whole");
    dedup(&short, &["-o", &out]).code(1).says("is a Parquet file: such a file is read whole");
    // No such column: nothing is replaced.
    let run = dedup_with(&[COLUMNS, "--key", "tga", "-o", &out], "");
    run.code(2).says("did you mean `tag`?");
    assert_eq!(folder.read("out.parquet"), "old");
}
