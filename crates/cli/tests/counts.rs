//! Copies are counted: `--count`, `--duplicates-only`, `--unique-only`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use proptest::prelude::*;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::process::Command;
use std::time::Duration;
use support::{Folder, Live, Outcome, dedup, dedup_with, lately};

const START: u64 = 1_700_000_000;

fn csv(rows: &[(u64, u8)]) -> String {
    let mut text = String::from("t,k,n\n");
    for (n, (at, key)) in rows.iter().enumerate() {
        writeln!(text, "{},{key},{n}", START + at).unwrap();
    }
    text
}

/// The groups of an exact program of the law, with their numbers of copies: by when the last of each
/// came (`renews`), or the first. And how many are late.
fn groups(
    rows: &[(u64, u8)],
    within: u64,
    lateness: u64,
    renews: bool,
) -> (Vec<(usize, u64)>, u64) {
    let mut seen: HashMap<u8, BTreeSet<u64>> = HashMap::new();
    // Of each key, its latest group; of each group, its first record, its last and their number.
    let mut latest: HashMap<u8, usize> = HashMap::new();
    let mut all: Vec<(usize, usize, u64)> = Vec::new();
    let (mut newest, mut late) = (0, 0);
    for (came, &(at, key)) in rows.iter().enumerate() {
        if at + lateness < newest {
            late += 1;
            continue;
        }
        newest = newest.max(at);
        let seen = seen.entry(key).or_default();
        let duplicate = seen.range(at.saturating_sub(within)..=at + within).next().is_some();
        if !duplicate || renews {
            seen.insert(at);
        }
        if duplicate {
            let group = &mut all[latest[&key]];
            (group.1, group.2) = (if renews { came } else { group.1 }, group.2 + 1);
        } else {
            latest.insert(key, all.len());
            all.push((came, came, 1));
        }
    }
    all.sort_unstable_by_key(|group| group.1);
    (all.into_iter().map(|(first, _, copies)| (first, copies)).collect(), late)
}

fn rows() -> impl Strategy<Value = Vec<(u64, u8)>> {
    let step = prop_oneof![6 => 0..3_i64, 1 => -15..15_i64, 1 => 0..40_i64];
    prop::collection::vec((step, 0..6_u8), 0..150).prop_map(|steps| {
        let mut now = 1000_i64;
        let mut row = |(step, key): (i64, u8)| {
            now += step;
            (now as u64, key)
        };
        steps.into_iter().map(&mut row).collect()
    })
}

/// First records and their counts, in the order of the output.
fn found(run: &Outcome) -> Vec<(usize, u64)> {
    let row = |row: &str| {
        let fields: Vec<_> = row.split(',').collect();
        (fields[2].parse().unwrap(), fields[3].parse().unwrap())
    };
    run.text().lines().skip(1).map(row).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn copies_are_those_of_an_exact_program(mut rows in rows(), within in 1..20_u64, renews: bool, sorted: bool) {
        let folder = Folder::new();
        let renew = if renews { "always" } else { "fresh" };
        let arguments = format!("--key k --time t --within {within}s --renew {renew} --max-skew 1h");
        if sorted {
            rows.sort();
        }
        let text = csv(&rows);
        let lateness = if sorted { 0 } else { within };
        let (expected, late) = groups(&rows, within, lateness, renews);
        let with_copies = format!("{arguments} --lateness {lateness}s --late {}", folder.path("late"));
        let run = dedup(&format!("{with_copies} --count"), &text);
        prop_assert_eq!(run.count("late"), late, "{}", run.stderr);
        let mut copies = found(&run);
        let total: u64 = copies.iter().map(|group| group.1).sum();
        prop_assert_eq!(total, rows.len() as u64 - late);
        prop_assert_eq!(run.count("uncounted"), 0);
        if sorted {
            prop_assert_eq!(&copies, &expected);
        } else {
            // The groups of one key do not wait for those of others.
            copies.sort_unstable();
            let mut expected = expected.clone();
            expected.sort_unstable();
            prop_assert_eq!(&copies, &expected);
        }
        let dropped = folder.path("dropped");
        for (flag, wanted) in [("--duplicates-only", false), ("--unique-only", true)] {
            let run = dedup(&format!("{with_copies} {flag} --duplicates {dropped}"), &text);
            let mut kept: Vec<usize> = (run.text().lines().skip(1))
                .map(|row| row.rsplit(',').next().unwrap().parse().unwrap())
                .collect();
            kept.sort_unstable();
            let mut asked: Vec<usize> =
                expected.iter().filter(|group| (group.1 == 1) == wanted).map(|group| group.0).collect();
            asked.sort_unstable();
            prop_assert_eq!(&kept, &asked);
            let others = expected.len() - asked.len();
            prop_assert_eq!(run.count("withheld"), others as u64);
            prop_assert_eq!(run.count("fresh"), asked.len() as u64);
            // Everything else is in the other outputs.
            let dropped = folder.read("dropped").lines().skip(1).count();
            prop_assert_eq!(kept.len() + dropped + late as usize, rows.len());
        }
    }
}

const ROWS: &str = "t,k\n1700000000,a\n1700000001,b\n1700000002,a\n1700000030,c\n1700000031,a\n";

#[test]
fn the_first_record_gets_the_number_of_its_copies() {
    let arguments = "--key k --time t --within 5s";
    dedup(&format!("{arguments} --count"), ROWS)
        .counts([4, 1, 0, 0, 0, 0])
        .out("t,k,count\n1700000001,b,1\n1700000000,a,2\n1700000030,c,1\n1700000031,a,1\n");
    dedup(&format!("{arguments} --count=copies"), ROWS)
        .out("t,k,copies\n1700000001,b,1\n1700000000,a,2\n1700000030,c,1\n1700000031,a,1\n");
    dedup(&format!("{arguments} --duplicates-only"), ROWS).out("t,k\n1700000000,a\n");
    dedup(&format!("{arguments} --unique-only"), ROWS)
        .out("t,k\n1700000001,b\n1700000030,c\n1700000031,a\n")
        .says("3 fresh, 1 duplicate, 1 withheld");
    // Both at once.
    dedup(&format!("{arguments} --duplicates-only --count"), ROWS)
        .out("t,k,count\n1700000000,a,2\n");
    let other = dedup(&format!("{arguments} --duplicates-only --unique-only"), "");
    other.code(2);
    dedup(&format!("{arguments} --count --best t:max --hold 1s"), "").code(2);
    dedup(&format!("{arguments} --count --lateness 6s"), "").code(2).says("--count: ");
}

#[test]
fn counts_are_members_and_columns() {
    let json = "{\"k\":1}\n{ }\n{\"k\":1}\n{\"k\":2}\n";
    dedup("--format ndjson --key k --count", json)
        .counts([2, 1, 0, 0, 1, 0])
        .out("{ \"count\":1}\n{\"k\":1,\"count\":2}\n{\"k\":2,\"count\":1}\n");
    let zeek = "#separator \\x09\n#fields\tts\tid\n#types\ttime\tstring\n5\ta\n6\ta\n#close\t7\n";
    dedup("--format zeek --key id --count", zeek).out(
        "#separator \\x09\n#fields\tts\tid\tcount\n#types\ttime\tstring\tcount\n#close\t7\n5\ta\t2\n",
    );
    // The elements of an array, and lines.
    dedup("--format json --key k --count", "[{\"k\":1},{\"k\":1}]").out("{\"k\":1,\"count\":2}\n");
    dedup("--count", "x\ny\nx").out("x\t2\ny\t1\n");
}

#[test]
fn a_window_of_records_closes_after_so_many() {
    // The copy keeps `a` for two more.
    dedup("--last 2 --count", "a\nb\na\nc\nd\ne\na\n").out("b\t1\na\t2\nc\t1\nd\t1\ne\t1\na\t1\n");
    dedup("--last 2 --renew fresh --count", "a\na\na\na\nb\n").out("a\t3\na\t1\nb\t1\n");
}

/// As `sort | uniq -c`, `-d` and `-u` have it.
#[test]
#[cfg(unix)]
fn counts_are_those_of_uniq() {
    let folder = Folder::new();
    let mut state = 7_u64;
    let mut text = String::new();
    for _ in 0..20_000 {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        writeln!(text, "line-{}", (state >> 33) % 3000 * ((state >> 50) % 5 + 1)).unwrap();
    }
    let path = folder.file("lines", text);
    let uniq = |flag: &str| {
        let script = format!("LC_ALL=C sort {path} | LC_ALL=C uniq {flag}");
        String::from_utf8(Command::new("sh").args(["-c", &script]).output().unwrap().stdout)
            .unwrap()
    };
    for (own, flag) in [("--count", "-c"), ("--duplicates-only", "-d"), ("--unique-only", "-u")] {
        let run = dedup(&format!("{path} {own}"), "");
        let counted = |line: &str| match line.split_once('\t') {
            Some((line, count)) => format!("{count} {line}"),
            None => line.to_owned(),
        };
        let mut lines: Vec<_> = run.text().lines().map(counted).collect();
        let mut expected: Vec<_> = uniq(flag).lines().map(|line| line.trim().to_owned()).collect();
        lines.sort();
        expected.sort();
        assert_eq!(lines, expected, "{flag}");
        assert!(!lines.is_empty());
    }
}

#[test]
fn without_room_the_oldest_are_forwarded_early() {
    let mut text = String::new();
    (0..2).for_each(|_| (0..50_000).for_each(|n| writeln!(text, "line-{n}").unwrap()));
    let run = dedup("--count --memory 4MiB --expect 60k", &text);
    let early = run.count("counted_early");
    assert!(early > 10_000, "{early}");
    let counted: u64 = run
        .text()
        .lines()
        .map(|line| line.split_once('\t').unwrap().1.parse::<u64>().unwrap())
        .sum();
    assert_eq!(counted + run.count("uncounted"), 100_000);
    assert_eq!(run.text().lines().count(), 50_000);
    run.says("before the window closed").says("in no count");
}

#[test]
fn a_state_has_its_counts() {
    let folder = Folder::new();
    let state = folder.path("state");
    let arguments = format!("--key k --time t --within 5s --state {state}");
    let mut live =
        Live::dedup(&[&*arguments.split(' ').collect::<Vec<_>>(), &["--count"]].concat());
    live.send("t,k\n1700000000,a\n1700000001,a\n");
    let started = std::time::Instant::now();
    // Both came in one piece.
    while !lately(&["inspect", &state], "").text().contains("held       1 record") {
        assert!(started.elapsed() < Duration::from_secs(30));
        live.signal("USR1");
        std::thread::sleep(Duration::from_millis(20));
    }
    live.kill();
    let words: Vec<_> = arguments.split(' ').collect();
    dedup_with(&[&*words, &["--mark"]].concat(), "")
        .code(1)
        .says("count: saved true, asked default");
    // What waited is counted on.
    dedup(&format!("{arguments} --count"), "t,k\n1700000002,a\n1700000009,b\n")
        .out("t,k,count\n1700000000,a,3\n1700000009,b,1\n");
    // It was forwarded at the end of the input.
    let run = dedup(&format!("{arguments} --count"), "t,k\n1700000010,b\n");
    run.out("t,k,count\n");
    assert_eq!(run.count("uncounted"), 1);
}

#[test]
fn a_count_comes_although_nothing_more_does() {
    let mut live = Live::dedup(&["--format", "lines", "--within", "300ms", "--count"]);
    live.send("a\nb\na\n");
    live.expect("b\t1\na\t2\n", Duration::from_secs(30));
}
