//! How times are written: the files of cases in `../shared/cases/in`, and their lines here, so that the
//! tests do not depend on the files.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use std::path::PathBuf;
use support::{dedup, dedup_with};

/// The text of a file of cases, which is this if the file is there.
fn case<'a>(file: &str, text: &'a str) -> &'a str {
    let near = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("LATELY_SHARED").map_or(near, PathBuf::from);
    match std::fs::read_to_string(shared.join("cases/in").join(file)) {
        Ok(found) => assert_eq!(found, text, "{file}"),
        Err(error) => eprintln!("skipped: {file}: {error}"),
    }
    text
}

#[test]
fn digits_that_are_dates_are_never_1970() {
    let text = case("t14.csv", "id,t\na,20240501100000\na,20240501110000\na,20240502110000\n");
    dedup("--key id --time t --within 10s", text).out(text);
    let text = case("t8.csv", "id,t\na,20240501\na,20240502\na,20240601\n");
    dedup("--key id --time t --within 1h", text).out(text);
}

#[test]
fn dates_of_mail_logs_and_people_are_read() {
    for (file, text) in [
        (
            "t_T3b.csv",
            "id,t\na,3/10/2004 6:00:00 PM\na,3/10/2004 6:00:30 PM\na,3/10/2004 7:00:00 PM\n",
        ),
        (
            "t_T8.csv",
            "id,t\na,\"Wed, 01 May 2024 10:00:00 +0200\"\na,\"Wed, 01 May 2024 08:00:01 +0000\"\na,\"Wed, 1 May 2024 10:05:00 +0200\"\n",
        ),
        (
            "t_T9.csv",
            "id,t\na,Wed May  1 10:00:00 2024\na,Wed May  1 10:00:01 2024\na,Wed May  1 10:05:00 2024\n",
        ),
        (
            "t_T14.csv",
            "id,t\na,2024-05-01 10:00:00.123 +0000 UTC\na,2024-05-01 10:00:01 +0000 UTC\na,2024-05-01 10:05:00 +0000 UTC\n",
        ),
        (
            "t_T18.csv",
            "id,t\na,2024-05-01 10:00:00 EST\na,2024-05-01 10:00:01 EST\na,2024-05-01 10:05:00 EST\n",
        ),
    ] {
        let lines: Vec<_> = case(file, text).lines().collect();
        let expected = format!("{}\n{}\n{}\n", lines[0], lines[1], lines[3]);
        dedup("--key id --time t --within 1m", text).out(&expected);
    }
}

#[test]
fn counts_of_other_calendars_are_refused_by_name() {
    for (file, text, name) in [
        ("t_T6.csv", "id,t\na,45413.416667\na,45413.416678\na,45414.0\n", "Excel"),
        (
            "t_T22.csv",
            "id,t\na,133593012000000000\na,133593012010000000\na,133593015000000000\n",
            "FILETIME",
        ),
    ] {
        let run = dedup("--key id --time t --within 10s", case(file, text));
        run.says(name).says("--time-format s, ms, us or ns");
    }
}

#[test]
fn a_file_that_begins_a_year_ahead_is_judged_by_its_honest_times() {
    let line = |second: u64, start: u64| {
        format!("{{\"ts\":{},\"k\":\"k{}\"}}\n", start + second, second % 3)
    };
    let wild = (0..20).map(|second| line(second, 1_697_049_720));
    let text: String = wild.chain((0..300).map(|second| line(second, 1_665_513_720))).collect();
    let run = dedup("--key k --time ts --within 10s", case("fut20.ndjson", &text));
    assert_eq!((run.count("skewed"), run.count("late")), (20, 0), "{}", run.stderr);
    assert_eq!((run.count("fresh"), run.count("duplicate")), (3, 297), "{}", run.stderr);
}

#[test]
fn a_year_that_is_left_out_turns_at_new_year() {
    let text = case(
        "syslog.log",
        "Dec 31 23:59:58 host sshd[12]: Failed password for root from 192.0.2.7\n\
         Dec 31 23:59:59 host sshd[12]: Failed password for root from 192.0.2.7\n\
         Jan  1 00:00:03 host sshd[12]: Failed password for root from 192.0.2.7\n\
         Jan  1 00:05:00 host sshd[12]: Failed password for root from 192.0.2.7\n",
    );
    let lines: Vec<_> = text.lines().collect();
    let expected = format!("{}\n{}\n", lines[0], lines[3]);
    let flags =
        ["--format", "columns", "--key", "6,7,8,9,10,11", "--time", "1,2,3", "--within", "60s"];
    dedup_with(&flags, text).out(&expected);
    let stated = [&flags[..], &["--time-format", "%b %d %H:%M:%S"]].concat();
    dedup_with(&stated, text).out(&expected);
}

#[test]
fn a_log_of_a_web_server_has_its_time_and_request_in_a_column_each() {
    let line = |time: &str, path: &str| {
        format!("host - - [01/Aug/1995:00:00:{time} -0400] \"GET {path} HTTP/1.0\" 200 1839\n")
    };
    let text = [line("01", "/a b"), line("05", "/a b"), line("06", "/a c"), line("16", "/a b")];
    let run = dedup("--format columns --key 1,5 --time 4 --within 10s", text.concat());
    run.out(&[&*text[0], &*text[2], &*text[3]].concat()).counts([3, 1, 0, 0, 0, 0]);
}

#[test]
fn a_date_and_a_time_are_one_time_however_they_are_written() {
    for (date, [first, second, third]) in [
        ("2024-05-01", ["10:00:00", "10:00:01", "10:00:12.5"]),
        ("20240501", ["100000", "100001", "100013"]),
        ("2024/5/1", ["9:05:00", "9:05:01", "9:05:13"]),
        ("5/1/2024", ["9:59:59 AM", "10:00:00 AM", "10:00:30 AM"]),
        ("01.05.2024", ["10:00:00,5", "10:00:01,5", "10:00:12,0"]),
        ("1 May 2024", ["10:00", "10:00:09", "10:01"]),
        ("May 1", ["10:00:00", "10:00:01", "10:00:12"]),
    ] {
        let rows = [first, second, third].map(|time| format!("{date};{time};a\n"));
        let input = format!("d;t;k\n{}", rows.concat()).replace(',', ".").replace(';', ",");
        let run = dedup("--key k --time d,t --within 10s", input);
        run.counts([2, 1, 0, 0, 0, 0]);
    }
    // A part that is missing is not midnight, and not any day.
    for row in ["2024-05-01,,a", ",10:00:00,a", "2024-05-01,  ,a"] {
        let run = dedup("--key k --time d,t --within 10s", format!("d,t,k\n{row}\n"));
        run.code(1).says("it is empty, and a part of the time");
    }
}

#[test]
fn times_of_day_roll_over_at_midnight() {
    let input = "t,k\n23:59:50,a\n23:59:55,b\n00:00:01,b\n00:00:02,a\n11:00,a\n22:00,a\n";
    let run = dedup("--key k --time t --within 10s", input);
    run.out("t,k\n23:59:50,a\n23:59:55,b\n00:00:02,a\n11:00,a\n22:00,a\n")
        .counts([5, 1, 0, 0, 0, 0]);
    run.says("times from 2000-01-01T23:59:50Z to 2000-01-02T22:00:00Z");
    // NMEA sentences have no date, and no colons.
    let input = "$GPGGA,235959.00,A\n$GPGGA,235959.50,A\n$GPGGA,000001.50,A\n";
    let run = dedup_with(
        &[
            "--format",
            "csv",
            "--no-header",
            "--key",
            "1",
            "--time",
            "2",
            "--time-format",
            "%H%M%S%.f",
            "--within",
            "2s",
            "--renew",
            "fresh",
        ],
        input,
    );
    run.out("$GPGGA,235959.00,A\n$GPGGA,000001.50,A\n");
    // The records are sorted by the days that the clock finds.
    let input = "t,k\n23:59:58,a\n00:00:01,c\n23:59:59,b\n00:00:09,d\n";
    let run = dedup("--key k --time t --within 1s --lateness 5s --sort-within 5s", input);
    run.out("t,k\n23:59:58,a\n23:59:59,b\n00:00:01,c\n00:00:09,d\n");
}

#[test]
fn times_before_1970_are_judged_as_any_other() {
    let input = "t,k\n1969-12-31T23:59:58Z,a\n1970-01-01T00:00:01Z,a\n1896-01-01,b\n1970-01-01T00:00:09Z,a\n";
    let run = dedup("--key k --time t --within 5s", input);
    run.out("t,k\n1969-12-31T23:59:58Z,a\n1896-01-01,b\n1970-01-01T00:00:09Z,a\n");
    run.counts([2, 1, 1, 0, 0, 0]).says("times from 1896-01-01T00:00:00Z to 1970-01-01T00:00:09Z");
    let text = "t,k\n-86400,a\n-86399,a\n-86000,a\n";
    let run = dedup("--key k --time t --time-format s --within 5s", text);
    run.out("t,k\n-86400,a\n-86000,a\n");
}
