//! Inputs merged by time: `--merge`.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use proptest::prelude::*;
use std::fmt::Write as _;
use support::{Folder, Outcome, dedup, real, summed};

const START: u64 = 1_700_000_000;

/// Rows of a file: their times, and a number that no other row has.
fn csv(file: usize, times: &[u64]) -> String {
    let mut text = String::from("t,n\n");
    for (n, time) in times.iter().enumerate() {
        writeln!(text, "{}.{:03},{file}-{n}", START + time / 1000, time % 1000).unwrap();
    }
    text
}

/// All rows of all files in the order of time, then of files, then of rows.
fn merged(files: &[Vec<u64>]) -> String {
    let mut rows: Vec<_> = (files.iter().enumerate())
        .flat_map(|(file, times)| {
            csv(file, times)
                .lines()
                .skip(1)
                .zip(times)
                .map(|(row, &time)| (time, file, row.to_owned()))
                .collect::<Vec<_>>()
        })
        .collect();
    rows.sort_by_key(|row| (row.0, row.1));
    let rows: String = rows.into_iter().map(|row| row.2 + "\n").collect();
    format!("t,n\n{rows}")
}

fn run(folder: &Folder, files: &[Vec<u64>], more: &str) -> Outcome {
    let paths: Vec<_> = (files.iter().enumerate())
        .map(|(at, times)| folder.file(&format!("{at}.csv"), csv(at, times)))
        .collect();
    dedup(&format!("{} --merge --key n --time t {more}", paths.join(" ")), "")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn files_in_order_come_out_in_order(
        mut files in prop::collection::vec(prop::collection::vec(0..100_000_u64, 0..200), 1..6),
    ) {
        files.iter_mut().for_each(|times| times.sort_unstable());
        let folder = Folder::new();
        let found = run(&folder, &files, "--within 1s --lateness 0s --max-skew 1h");
        let total: usize = files.iter().map(Vec::len).sum();
        prop_assert_eq!(found.count("fresh"), total as u64, "{}", found.stderr);
        prop_assert_eq!(found.text(), merged(&files));
        prop_assert!(!found.stderr.contains("order of time"), "{}", found.stderr);
    }

    #[test]
    fn every_file_keeps_its_order(
        files in prop::collection::vec(prop::collection::vec(0..3000_u64, 0..100), 1..4),
    ) {
        let folder = Folder::new();
        let found = run(&folder, &files, "--within 1h --max-skew 1h");
        let total: usize = files.iter().map(Vec::len).sum();
        prop_assert_eq!(found.count("fresh"), total as u64, "{}", found.stderr);
        for (at, times) in files.iter().enumerate() {
            let own = format!(",{at}-");
            let rows: String = found.text().lines().filter(|row| row.contains(&own)).map(|row| format!("{row}\n")).collect();
            prop_assert_eq!(format!("t,n\n{rows}"), csv(at, times));
            let descents = times.windows(2).filter(|pair| pair[1] < pair[0]).count();
            let (verb, told) = if descents == 1 { ("record is", 1) } else { ("records are", descents) };
            let note = format!("{at}.csv is not in the order of time: {told} {verb} earlier");
            prop_assert_eq!(found.stderr.contains(&note), descents > 0, "{}", found.stderr);
        }
    }
}

/// More than a piece of each, of lengths of their own.
#[test]
fn long_files_are_merged_piece_by_piece() {
    let folder = Folder::new();
    let files: Vec<Vec<u64>> = [(40_000, 7), (25_000, 11), (300, 977), (60_000, 3)]
        .map(|(rows, step)| (0..rows).map(|row| row * step + row % 3).collect())
        .into();
    let found = run(&folder, &files, "--within 1s --lateness 0s --fpr 1e-12");
    assert_eq!(found.count("fresh"), 125_300, "{}", found.stderr);
    assert!(found.text() == merged(&files));
    // One after the other, most are late.
    let paths: Vec<_> = (0..4).map(|at| folder.path(&format!("{at}.csv"))).collect();
    let other =
        dedup(&format!("{} --key n --time t --within 1s --lateness 0s", paths.join(" ")), "");
    assert!(other.count("late") > 10_000, "{}", other.stderr);
}

#[test]
fn a_wild_time_does_not_hold_up_its_file() {
    let folder = Folder::new();
    let mut first: Vec<u64> = (0..200).map(|row| row * 1000).collect();
    first[50] = 900_000_000;
    let second: Vec<u64> = (0..200).map(|row| row * 1000 + 500).collect();
    let found = run(&folder, &[first.clone(), second.clone()], "--within 10s");
    found.counts([399, 0, 0, 0, 0, 1]);
    first[50] = 50_000;
    let expected = merged(&[first, second]).replace(",0-50\n", "\n");
    let rows = |text: &str| -> Vec<String> {
        text.lines().map(|row| row.rsplit(',').next().unwrap().to_owned()).collect()
    };
    // It leaves where the record after it does, and the others as ever.
    let others: Vec<_> = rows(found.text()).into_iter().filter(|n| n != "0-50").collect();
    let expected: Vec<_> =
        rows(&expected).into_iter().filter(|n| !n.is_empty() && !n.starts_with("17")).collect();
    assert_eq!(others, expected);
}

#[test]
fn records_keep_what_they_are_and_where_they_are_from() {
    let folder = Folder::new();
    let invalid = folder.path("invalid");
    // The last line of the first lacks its end; a record without a time stays where it is.
    let a = folder.file("a.csv", "t,n\n1700000000,a\n1700000009,b");
    let b = folder.file("b.csv", "t,n\n1700000001,c\nsoon,d\nx\n1700000010,e\n");
    let run =
        dedup(&format!("{a} {b} --merge --key n --time t --within 1s --invalid {invalid}"), "");
    run.out("t,n\n1700000000,a\n1700000001,c\nsoon,d\n1700000009,b\n1700000010,e\n");
    run.counts([5, 0, 0, 1, 0, 0]).says("b.csv:4: ");
    assert!(folder.read("invalid").starts_with(&format!("{b}\t4\t")), "{}", folder.read("invalid"));
    // Two formats: each record as it is.
    let json = folder.file("c.json", "{\"t\":1700000005,\"n\":\"z\"}\n");
    dedup(&format!("{a} {json} --merge --key n --time t --within 1s"), "")
        .out("t,n\n1700000000,a\n{\"t\":1700000005,\"n\":\"z\"}\n1700000009,b\n");
    let array = folder.file("d.json", "[{\"t\":1700000000,\"n\":1},{\"t\":1700000009,\"n\":2}]");
    dedup(&format!("--format json {array} {json} --merge --key n --time t --within 1s"), "").out(
        "{\"t\":1700000000,\"n\":1}\n{\"t\":1700000005,\"n\":\"z\"}\n{\"t\":1700000009,\"n\":2}\n",
    );
}

#[test]
fn what_cannot_be_merged_is_told() {
    let folder = Folder::new();
    let a = folder.file("a.csv", "t,n\n1700000000,a\n1700000009,b\n");
    let other = folder.file("b.csv", "n,t\nc,1700000001\n");
    dedup(&format!("{a} - --merge --key n --time t --within 1s"), "")
        .code(2)
        .says("--merge reads files only");
    dedup(&format!("{a} --merge --key n"), "").code(2).says("--merge: name the time");
    let run = dedup(&format!("{a} {other} --merge --key n --time t --within 1s"), "");
    run.code(1).says("in another order").out("t,n\n1700000000,a\n1700000009,b\n");
    let missing = folder.path("missing.csv");
    dedup(&format!("{missing} {a} --merge --key n --time t --within 1s"), "")
        .code(1)
        .says("missing.csv")
        .out("t,n\n1700000000,a\n1700000009,b\n");
    let zeek = |name: &str, fields: &str, row: &str| {
        folder.file(name, format!("#separator \\x09\n#fields\t{fields}\n{row}\n"))
    };
    let first = zeek("a.log", "ts\tid", "1700000000\ta");
    let same = zeek("b.log", "ts\tid", "1600000000\tb");
    let other = zeek("c.log", "id\tts", "c\t1650000000");
    let run = dedup(&format!("{first} {same} {other} --merge --key id --within 1s"), "");
    run.code(1).says("its columns are not those of the inputs before it");
    assert!(run.text().ends_with("1600000000\tb\n1700000000\ta\n"), "{}", run.text());
    // An input without a time of its own.
    let lines = folder.file("lines", "x\ny\n");
    dedup(&format!("{lines} --merge --within 1s"), "")
        .code(2)
        .says("it has no time to be merged by");
}

/// Four readers' files of one floor are one floor.
#[test]
fn visits_of_merged_files_are_those_of_one() {
    let Some(path) = real("rfid_impinj_r420/Test11-2.csv") else { return };
    let text = std::fs::read_to_string(path).unwrap();
    let (header, rows) = text.split_once('\n').unwrap();
    let mut rows: Vec<_> = rows.lines().collect();
    let time = |row: &&str| -> u64 {
        let (seconds, part) = row.split_once(',').unwrap().0.split_once('.').unwrap();
        format!("{seconds}{part:0<6}").parse().unwrap()
    };
    rows.sort_by_key(time);
    let folder = Folder::new();
    let file =
        |name: &str, rows: &[&str]| folder.file(name, format!("{header}\n{}\n", rows.join("\n")));
    let whole = file("whole.csv", &rows);
    let parts: Vec<_> = (0..4)
        .map(|part| {
            let own: Vec<_> = rows
                .iter()
                .enumerate()
                .filter(|(at, _)| at % 4 == part)
                .map(|row| *row.1)
                .collect();
            file(&format!("{part}.csv"), &own)
        })
        .collect();
    let [one, other] = [vec!["visits", &whole, "--within", "1s"], {
        let mut arguments = vec!["visits", "--merge", "--within", "1s", "--lateness", "0s"];
        arguments.extend(parts.iter().map(String::as_str));
        arguments
    }]
    .map(|arguments| summed(&arguments, ""));
    assert_eq!(one.count("in_visits"), rows.len() as u64, "{}", one.stderr);
    assert_eq!(other.count("in_visits"), rows.len() as u64, "{}", other.stderr);
    let rows = |run: &Outcome| -> Vec<String> {
        run.text().lines().map(|row| row.rsplit_once(',').unwrap().0.to_owned()).collect()
    };
    assert_eq!(rows(&one), rows(&other));
}
