//! Acceptance cases T1 to T6: when a record happened.

#![allow(clippy::unwrap_used, clippy::panic, non_snake_case, reason = "tests, named after cases")]

mod support;

use std::time::Duration;
use support::{Folder, Live, dedup, dedup_with};

const KEYED: &str = "--key k --time t";
/// 2022-01-01.
const Y2022: u64 = 1_640_995_200;

fn csv(rows: &[(u64, &str)]) -> String {
    let rows = rows.iter().map(|(t, k)| format!("{t},{k}\n"));
    std::iter::once("t,k\n".to_owned()).chain(rows).collect()
}

#[test]
fn case_T1_a_replay_gives_what_the_live_stream_gave() {
    let folder = Folder::new();
    // With a night, a wild stamp, stragglers and a backlog in it.
    let mut rows = Vec::new();
    for i in 0..20_000_u64 {
        let time = Y2022 + i / 7 + if i > 9000 { 40_000 } else { 0 };
        let time = match i % 1013 {
            500 => time + 86_400 * 3,
            700 => time - 5,
            900 => time - 5000,
            _ => time,
        };
        rows.push(format!("{time},tag{}\n", i * i % 97));
    }
    let text = format!("t,k\n{}", rows.concat());
    let file = folder.file("2022.csv", &text);
    let arguments = ["--key", "k", "--time", "t", "--within", "10s", "--renew", "fresh"];
    let replay = dedup_with(&[&[&*file], &arguments[..]].concat(), "");
    let piped = dedup_with(&arguments, &text);
    let few = dedup_with(&[&[&*file, "--threads", "1"], &arguments[..]].concat(), "");
    assert_eq!(replay.text(), piped.text());
    assert_eq!(replay.text(), few.text());
    assert_eq!(replay.count("skewed"), 20);
    assert!(replay.count("late") > 0 && replay.count("duplicate") > 0);
    assert_eq!(replay.count("read"), 20_000);
}

#[test]
fn case_T2_one_wild_stamp_is_flagged_and_moves_nothing() {
    let mut rows = vec![(Y2022, "a"), (Y2022 + 86_400, "wild")];
    let names = ["b", "c", "d", "e", "f", "g", "h", "i", "j", "a"];
    rows.extend(names.iter().zip(1..).map(|(&name, i)| (Y2022 + i, name)));
    let input = csv(&rows);
    let run = dedup(&format!("{KEYED} --within 5s"), &input);
    run.counts([11, 0, 0, 0, 0, 1]).out(&input).code(0).says("1 record with a time too far");
    // The first of all, too; and the user may believe more.
    rows.swap(0, 1);
    dedup(&format!("{KEYED} --within 5s"), csv(&rows)).counts([11, 0, 0, 0, 0, 1]);
    dedup(&format!("{KEYED} --within 5s --max-skew 2d"), csv(&rows)).counts([1, 0, 11, 0, 0, 0]);
}

#[test]
fn case_T2_live_a_stamp_after_which_nothing_comes_is_not_believed_if_in_the_future() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let mut live = Live::dedup(&["--key", "k", "--time", "t", "--within", "10s", "--mark"]);
    live.send(&format!("t,k\n{now},a\n{},b\n", now + 86_400));
    std::thread::sleep(Duration::from_millis(200));
    live.send(&format!("{},c\n", now + 1));
    let expected =
        format!("t,k,lately\n{now},a,fresh\n{},b,skewed\n{},c,fresh\n", now + 86_400, now + 1);
    live.expect(&expected, Duration::from_secs(20));
}

#[test]
fn case_T3_the_newest_time_is_not_late() {
    let input = csv(&[(Y2022, "a"), (Y2022, "b"), (Y2022 - 1, "c"), (Y2022, "a")]);
    let run = dedup(&format!("{KEYED} --within 10s --lateness 0s"), &input);
    run.counts([2, 1, 1, 0, 0, 0]).says("1 record late");
    // Judged at the present: as late as allowed, and a nanosecond more.
    let input = "t,k\n1640995200,a\n1640995190,a\n1640995189.999999999,a\n";
    dedup(&format!("{KEYED} --within 10s"), input).counts([1, 1, 1, 0, 0, 0]);
}

#[test]
fn case_T4_a_backlog_is_never_merged_with_live_records() {
    let live = Y2022 + 86_400 * 365;
    let rows: Vec<_> = (0..20).flat_map(|i| [(live + i, "tag"), (Y2022 + i, "tag")]).collect();
    let folder = Folder::new();
    let late = folder.path("late.csv");
    let flags = format!("{KEYED} --within 10s");
    let run = dedup(&flags, csv(&rows));
    run.counts([1, 19, 20, 0, 0, 0]);
    assert_eq!(run.text().lines().count(), 1 + 21);
    let run = dedup(&format!("{flags} --late {late}"), csv(&rows));
    run.counts([1, 19, 20, 0, 0, 0]).out(&csv(&[(live, "tag")]));
    let backlog: Vec<_> = (0..20).map(|i| (Y2022 + i, "tag")).collect();
    assert_eq!(folder.read("late.csv"), csv(&backlog));
}

#[test]
fn case_T5_zones_are_read_and_the_repeated_hour_is_the_earlier() {
    let spellings = ["+0000", "-00:00", "Z", "+00:00"];
    let mut rows = String::from("t,k\n");
    spellings.iter().for_each(|zone| rows += &format!("2020-11-01T07:06:00{zone},a\n"));
    rows += "2020-11-01T01:06:00-0600,a\n2020-11-01 02:06:00-05:00,a\n";
    dedup_with(&["--key", "k", "--time", "t", "--within", "1ms"], &rows).counts([1, 5, 0, 0, 0, 0]);
    // 01:06 in Chicago is 06:06 UTC or 07:06 UTC on that day. The first is taken.
    let at = |other: &str| {
        let rows = format!("t,k\n{other},a\n2020-11-01 01:06:00,a\n");
        dedup(
            &format!("{KEYED} --within 1ms --lateness 0s --time-zone America/Chicago"),
            rows.replace(' ', "T"),
        )
    };
    at("2020-11-01T06:06:00Z").counts([1, 1, 0, 0, 0, 0]);
    at("2020-11-01T07:06:00Z").counts([1, 0, 1, 0, 0, 0]);
    dedup(&format!("{KEYED} --within 1s --time-zone Chicago"), "t,k\n")
        .code(2)
        .says("America/Chicago");
}

#[test]
fn case_T6_epochs_are_told_apart_by_size_and_keep_their_fractions() {
    let rows = "t,k\n1640995200,a\n1640995200000,a\n1640995200000000,a\n1640995200000000000,a\n";
    dedup(&format!("{KEYED} --within 1us"), rows).counts([1, 3, 0, 0, 0, 0]);
    let fractions = "t,k\n1640995200.000001,a\n1640995200.000003,a\n1640995200.000003,a\n";
    dedup(&format!("{KEYED} --within 1us"), fractions).counts([2, 1, 0, 0, 0, 0]);
    let stated = "t,k\n1,a\n999,a\n2000,a\n";
    dedup(&format!("{KEYED} --within 1s --time-format ms"), stated).counts([2, 1, 0, 0, 0, 0]);
    let logs =
        "t|k\n01/Aug/1995:00:00:01 -0400,a\n01/Aug/1995:04:00:01 +0000,a\n".replace('|', ",");
    dedup_with(
        &["--key", "k", "--time", "t", "--within", "1s", "--time-format", "%d/%b/%Y:%H:%M:%S %z"],
        &logs,
    )
    .counts([1, 1, 0, 0, 0, 0]);
}

#[test]
fn a_time_that_cannot_be_read_is_a_dead_letter_that_says_where() {
    let run = dedup(&format!("{KEYED} --within 1s --strict"), "t,k\n1640995200,a\nsoon,b\n,c\n");
    run.counts([1, 0, 0, 2, 0, 0])
        .code(3)
        .says("-:3: field `t`: ")
        .says("soon")
        .says("-:4: field `t`");
}

#[test]
fn without_a_time_records_are_judged_by_when_they_arrive() {
    let folder = Folder::new();
    let file = folder.file("log", "a line, with a comma\nanother\na line, with a comma\n");
    let run = dedup_with(&[&file, "--within", "1h"], "");
    run.counts([2, 1, 0, 0, 0, 0]).says("judged by when they were read");
    dedup("--key k --within 1h", "k\nx\nx\n").counts([1, 1, 0, 0, 0, 0]);
    let patient = Duration::from_secs(20);
    let mut live = Live::dedup(&["--within", "1500ms"]);
    live.send("x\n");
    live.expect("x\n", patient);
    live.send("x\n");
    live.send("y\n");
    live.expect("x\ny\n", patient);
    std::thread::sleep(Duration::from_millis(2000));
    live.send("x\n");
    live.expect("x\ny\nx\n", patient);
}
