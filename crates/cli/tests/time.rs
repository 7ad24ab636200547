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
    let run = dedup(
        &format!("{KEYED} --within 1s --strict --on-bad-time drop"),
        "t,k\n1640995200,a\nsoon,b\n,c\n",
    );
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

#[test]
fn a_record_without_a_readable_time_is_judged_by_when_it_arrives() {
    let rows = "t,k\n1640995200,a\nsoon,a\n,b\n1640995201,b\n1640995203,c\n";
    let run = dedup(&format!("{KEYED} --within 1s"), rows);
    // `b` arrives when the clock says 1640995200, a second before the other.
    run.counts([3, 2, 0, 0, 0, 0]).code(0);
    run.says("2 records without a readable time").says("-:3: field `t`");
    // When they arrived says nothing to the times that come later.
    let rows = "t,k\n,a\n,a\n1640995200,a\n1640995200,a\n";
    dedup(&format!("{KEYED} --within 1s"), rows).counts([2, 2, 0, 0, 0, 0]);
    let run = dedup(&format!("{KEYED} --within 1s"), "t,k\nsoon,a\nlater,b\n");
    run.counts([2, 0, 0, 0, 0, 0]).code(1).says("no time could be read");
}

#[test]
fn heartbeats_of_an_older_file_are_all_judged_by_their_own_time() {
    let folder = Folder::new();
    let newer = folder.file("la.csv", csv(&[(Y2022 + 7200, "y")]));
    let beats: Vec<_> = (0..12).map(|i| (Y2022 + 600 * i, "hb")).collect();
    let older = folder.file("lb.csv", csv(&beats));
    dedup(&format!("{newer} {older} {KEYED} --within 5s --lateness 1d"), "")
        .counts([13, 0, 0, 0, 0, 0]);
}

/// Records out of order, judged one by one by the law.
fn by_the_law(rows: &[(u64, &str)], window: u64, lateness: u64, always: bool) -> [u64; 3] {
    let (mut now, mut counts) = (0, [0; 3]);
    let mut seen: Vec<(u64, &str)> = Vec::new();
    for &(time, key) in rows {
        if time + lateness < now {
            counts[2] += 1;
            continue;
        }
        now = now.max(time);
        let like = seen.iter().any(|&(s, other)| other == key && time.abs_diff(s) <= window);
        counts[usize::from(like)] += 1;
        if !like || always {
            seen.push((time, key));
        }
    }
    counts
}

#[test]
fn records_in_any_order_are_judged_by_the_law() {
    let mut random = 7_u64;
    let mut next = |n: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) % n
    };
    let keys = ["a", "b", "c", "d", "e"];
    for lateness in [0, 3, 10, 25, 100] {
        let mut now = Y2022;
        let rows: Vec<_> = (0..1500)
            .map(|_| {
                now += next(4);
                (now - next(lateness + 5), keys[next(5) as usize])
            })
            .collect();
        for (renew, always) in [("always", true), ("fresh", false)] {
            let flags =
                format!("{KEYED} --within 10s --lateness {lateness}s --renew {renew} --fpr 1e-9");
            let [fresh, duplicate, late] = by_the_law(&rows, 10, lateness, always);
            dedup(&flags, csv(&rows)).counts([fresh, duplicate, late, 0, 0, 0]);
        }
    }
}

#[test]
fn a_time_that_means_never_moves_nothing() {
    let mut rows: Vec<String> = (0..500).map(|i| format!("{}000000000,k{i}", Y2022 + i)).collect();
    for never in ["18446744073709551615", "9223372036854775807", "0"] {
        rows.insert(100, format!("{never},wild"));
    }
    let input = format!("t,k\n{}\n", rows.join("\n"));
    let run = dedup(&format!("{KEYED} --time-format ns --within 10s"), input);
    assert_eq!((run.count("read"), run.count("late")), (503, 0), "{}", run.stderr);
    assert_eq!(run.count("fresh") + run.count("duplicate") + run.count("skewed"), 503);
}

#[test]
fn a_stamp_50_minutes_ahead_makes_nothing_late() {
    let mut rows: Vec<_> = (0..3000).map(|i| (Y2022 + i, "tag")).collect();
    rows.insert(10, (Y2022 + 3000, "wild"));
    let run = dedup(&format!("{KEYED} --within 10s --renew fresh"), csv(&rows));
    assert_eq!((run.count("late"), run.count("skewed")), (0, 1), "{}", run.stderr);
}

#[test]
fn a_burst_of_2038_makes_no_more_late_than_it_has_records() {
    let names: Vec<String> = (0..20_000).map(|i| format!("k{i}")).collect();
    let mut rows: Vec<_> = (0..1000).map(|i| (Y2022 + i as u64, &*names[i])).collect();
    rows.extend((0..100).map(|_| (2_145_916_800, "wild")));
    rows.extend((1000..20_000).map(|i| (Y2022 + i as u64, &*names[i])));
    let folder = Folder::new();
    let state = folder.path("state");
    let run = dedup(&format!("{KEYED} --within 10s --state {state}"), csv(&rows));
    assert!(run.count("late") <= 100, "{}", run.stderr);
    // Nor in the next run from the state, if it was saved while the clock was wrong.
    let (before, after) = rows.split_at(1100);
    let other = folder.path("other");
    let run = dedup(&format!("{KEYED} --within 10s --state {other}"), csv(before));
    assert_eq!(run.count("read"), 1100);
    let run = dedup(&format!("{KEYED} --within 10s --state {other}"), csv(after));
    assert!(run.count("late") <= 100, "{}", run.stderr);
}

#[test]
fn a_reader_at_2000_has_a_clock_of_its_own() {
    const Y2000: u64 = 946_684_800;
    let rows = (0..200).flat_map(|i| {
        let tag = i / 4;
        [format!("{},tag{tag},good\n", Y2022 + i), format!("{},other{tag},bad\n", Y2000 + i)]
    });
    let input = format!("t,k,reader\n{}", rows.collect::<String>());
    // Without, every read of the second is late and passes.
    let run = dedup(&format!("{KEYED} --within 10s"), &input);
    assert_eq!((run.count("late"), run.count("duplicate")), (200, 150), "{}", run.stderr);
    let run = dedup(&format!("{KEYED} --within 10s --clock-by reader"), &input);
    run.counts([100, 300, 0, 0, 0, 0]);
    // A record without a reader is judged by the common time.
    let one = format!("t,k,reader\n{Y2022},a,good\n{Y2022},a,\n");
    dedup(&format!("{KEYED} --within 10s --clock-by reader"), one).counts([1, 1, 0, 0, 0, 0]);
}

#[test]
fn late_records_can_be_judged_by_when_they_arrive() {
    let mut rows = vec![(Y2022, "a")];
    rows.extend(["b", "d", "e", "f", "g"].map(|key| (Y2022 + 100, key)));
    rows.extend([(Y2022 + 1, "b"), (Y2022 + 2, "c")]);
    let (flags, rows) = (format!("{KEYED} --within 10s"), csv(&rows));
    dedup(&flags, &rows).counts([6, 0, 2, 0, 0, 0]);
    dedup(&format!("{flags} --on-late judge"), &rows)
        .counts([7, 1, 0, 0, 0, 0])
        .says("2 records late, judged");
}

#[test]
fn a_record_without_a_key_moves_the_clock() {
    let rows = format!(
        "{{\"t\":{Y2022},\"k\":\"a\"}}\n{{\"t\":{}}}\n{{\"t\":{},\"k\":\"b\"}}\n",
        Y2022 + 5,
        Y2022 + 1
    );
    dedup(&format!("{KEYED} --within 1s"), rows).counts([1, 0, 1, 0, 1, 0]);
}

#[test]
fn the_summary_says_from_when_to_when() {
    let run = dedup(&format!("{KEYED} --within 10s"), csv(&[(Y2022 + 5, "a"), (Y2022, "b")]));
    run.says("2022-01-01T00:00:00Z").says("2022-01-01T00:00:05Z");
}

#[test]
fn records_can_be_forwarded_in_order_of_time() {
    let mut random = 3_u64;
    let mut next = |n: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) % n
    };
    let names: Vec<String> = (0..3000).map(|i| format!("k{i}")).collect();
    let rows: Vec<_> =
        names.iter().enumerate().map(|(i, name)| (Y2022 + i as u64 - next(9), &**name)).collect();
    let mut sorted = rows.clone();
    sorted.sort_by_key(|row| row.0);
    let flags = format!("{KEYED} --within 1s --lateness 10s --sort-within 10s");
    dedup(&flags, csv(&rows)).counts([3000, 0, 0, 0, 0, 0]).out(&csv(&sorted));
    // Too much for the memory is refused, and what waits is not lost.
    let run = dedup(&format!("{flags} --sort-memory 500B"), csv(&rows));
    run.code(1).says("--sort-memory");
    dedup(&format!("{flags} --state x"), "").code(2);
    dedup(&format!("{flags} --clock-by k"), "").code(2);
    // A record without a time is of the present.
    let flags = format!("{KEYED} --within 10s --sort-within 10s");
    let rows = format!("t,k\n{Y2022},a\n{},b\n,c\n{},d\n", Y2022 + 1, Y2022 + 2);
    dedup(&flags, &rows).out(&rows);
}

#[test]
fn a_state_saved_before_the_first_time_does_not_hide_what_comes() {
    let folder = Folder::new();
    let state = folder.path("state");
    let flags = format!("{KEYED} --within 10s --state {state}");
    dedup(&flags, "t,k\n,boot\n").counts([1, 0, 0, 0, 0, 0]);
    let rows: Vec<_> = (0..100).map(|i| (Y2022 + 60 * i, ["a", "b"][i as usize % 2])).collect();
    dedup(&flags, csv(&rows)).counts([100, 0, 0, 0, 0, 0]);
}

#[test]
fn a_burst_is_held_by_its_key_so_no_other_visit_of_it_may_come_late() {
    let flags = format!("{KEYED} --within 1s --best t:max --hold 1s");
    dedup(&format!("{flags} --lateness 10s"), "t,k\n").code(2).says("at most --within");
    dedup(&format!("{flags} --lateness 1s"), "t,k\n").code(0);
}

#[test]
fn only_late_records_with_a_key_are_judged_by_arrival() {
    let now = Y2022 + 60;
    let keyed = |time: u64, key: &str| format!("{{\"t\":{time},\"k\":\"{key}\"}}\n");
    let keyless = format!("{{\"t\":{Y2022}}}\n");
    let rows = [keyed(now, "a"), keyed(now, "b"), keyless, keyed(Y2022, "a")].concat();
    let run = dedup(&format!("{KEYED} --within 1s --on-late judge"), rows);
    run.counts([2, 1, 0, 0, 1, 0]).says("1 record late, judged");
}

#[test]
fn a_state_keeps_to_the_clocks_of_its_sources() {
    let folder = Folder::new();
    let state = folder.path("state");
    let flags = format!("{KEYED} --within 10s --state {state}");
    dedup(&format!("{flags} --clock-by k"), csv(&[(Y2022, "a")])).code(0);
    let run = dedup(&flags, csv(&[(Y2022, "a")]));
    run.code(1).says("clock-by: saved k, asked default");
    dedup(&format!("{flags} --clock-by k"), csv(&[(Y2022 + 1, "a")])).counts([0, 1, 0, 0, 0, 0]);
}

#[test]
fn a_format_without_times_needs_no_memory_for_late_records() {
    let memory = |flags: &str| {
        let run = dedup(&format!("{flags} --within 10s --expect 1M"), "k\na\n");
        run.summary["filter"]["memory_bytes"].as_u64().unwrap()
    };
    let stated = memory("--format csv --key k");
    assert_eq!(stated, memory("--format csv --key k --lateness 0s --time k"));
    // What a format that is yet to be recognised brings is not known.
    assert!(memory("--key k") > stated * 3 / 2);
}
