//! Dates of log files, mail and people.

use super::*;

#[test]
fn log_files() {
    let clf = parser("%d/%b/%Y:%H:%M:%S %z", "UTC");
    assert_eq!(clf.parse(b"[01/Aug/1995:00:00:01 -0400]").unwrap(), 807_249_601 * S);
    assert_eq!(clf.parse(b"01/Aug/1995:00:00:01 -0400").unwrap(), 807_249_601 * S);
    let bracketed = parser("[%d/%b/%Y:%H:%M:%S %z]", "UTC");
    assert_eq!(bracketed.parse(b"[01/Aug/1995:00:00:01 -0400]").unwrap(), 807_249_601 * S);
    let leap = parser("%F %T%.f", "UTC");
    assert_eq!(leap.parse(b"2016-12-31 23:59:60").unwrap(), auto("2016-12-31T23:59:59Z"));
    assert_eq!(leap.parse(b"2016-12-31 23:59:01.25").unwrap(), auto("2016-12-31T23:59:01.25Z"));
    assert_eq!(parser("%Y-%m-%d", "UTC").parse(b"2011-02-24").unwrap(), auto("2011-02-24"));
    assert_eq!(parser("%s", "UTC").parse(b"1755033487").unwrap(), 1_755_033_487 * S);
    assert!(clf.parse(b"1995-08-01").is_err());
}

#[test]
fn dates_of_mail_logs_and_people() {
    all_are(
        &[
            "Wed, 01 May 2024 10:00:00 +0000",
            "Wed, 1 May 2024 12:00:00 +0200",
            "1 May 2024 10:00 GMT",
            "Wednesday, 01-May-24 10:00:00 GMT",
            "Wed, 01 May 2024 10:00:00 +0000 (UTC)",
            "Wed May  1 10:00:00 2024",
            "Wed May 1 10:00:00 UTC 2024",
            "Wed May 01 2024 12:00:00 GMT+0200 (Central European Summer Time)",
            "01/May/2024:10:00:00 +0000",
            "[01/May/2024:06:00:00 -0400]",
            "2024-5-1 10:00:00",
            "2024/5/1 10:0:0",
            "2024-05-01 10:00:00 +0000 UTC",
            "2024-05-01 12:00:00 +0200 CEST",
            "2024-05-01 12:00:00.000000000 +0200 CEST m=+0.000000001",
            "5/1/2024 10:00:00 AM",
            "05/01/2024 10:00 a.m.",
            "May 1, 2024 at 10:00 AM",
            "May 1st, 2024, 10:00am",
            "1.5.2024 10:00",
            "01.05.2024 10:00:00",
            "01-MAY-2024 10:00:00",
            "2024-May-01 10:00:00",
            "2024 5 1 10:00:00",
            "2024-05-01 10:00:00 UTC+0",
            "2024-05-01 12:00:00 UTC+2",
        ],
        "2024-05-01T10:00:00Z",
    );
    all_are(&["2024-1-5 9:05:00", "5 Jan. 2024 09:05", "1/5/2024 9:05 AM"], "2024-01-05T09:05:00Z");
    all_are(&["3/10/2004 6:00:30 PM", "3/10/2004 6:00:30PM"], "2004-03-10T18:00:30Z");
    all_are(&["3/10/2004 12:00:00 AM", "Mar 10 2004 12:00 am"], "2004-03-10T00:00:00Z");
    all_are(&["3/10/2004 12:00:00 PM"], "2004-03-10T12:00:00Z");
    all_are(
        &["2024-1-5 9:05:00,25", "2024-01-05 09:05:00,250", "Jan 5, 2024 9:05:00.25"],
        "2024-01-05T09:05:00.25Z",
    );
    all_are(
        &["May 1, 2024", "1 May 2024", "1.5.2024", "2024-5-1", "01-May-24"],
        "2024-05-01T00:00:00Z",
    );
    all_are(&["Sat Dec 31 23:59:60 2016"], "2016-12-31T23:59:59Z");
    for (text, reason) in [
        ("13:00:00 PM", "hours 1 to 12"),
        ("3/10/2004 13:00:00 PM", "hours 1 to 12"),
        ("13/10/2004 6:00:00 PM", "'%d/%m/%Y"),
        ("3/10/2004 18:00:00", "'%d/%m/%Y"),
        ("03-10-2004 18:00:00", "'%d/%m/%Y"),
        ("03/10/04", "'%d/%m/%Y"),
        ("Feb 30 2024 10:00", "no such day"),
        ("Mon 10:00", "a day of the week is no date"),
        ("May 1", "expected a date"),
        ("May", "expected a date"),
        ("1 May May 2024", "expected a date"),
        ("Wed May 1 10:00:00 1568", "before the year 1678"),
        ("-86400", "state its unit"),
    ] {
        let error = error("auto", text);
        assert!(error.contains(reason), "{text}: {error}");
    }
}

#[test]
fn abbreviations_of_zones() {
    all_are(
        &["2024-05-01 10:00:00 EST", "Wed, 01 May 2024 10:00:00 EST", "2024-05-01 11:00 edt"],
        "2024-05-01T15:00:00Z",
    );
    all_are(&["2024-05-01 10:00:00 PDT", "Wed May  1 10:00:00 PDT 2024"], "2024-05-01T17:00:00Z");
    let at = |zone: &str, text: &str| parser("auto", zone).parse(text.as_bytes()).map(display_time);
    // Those of the stream's own zone; and they say which of two hours is meant.
    assert_eq!(at("Europe/Berlin", "2024-05-01 10:00:00 CEST").unwrap(), "2024-05-01T08:00:00Z");
    assert_eq!(at("Asia/Shanghai", "2024-05-01 10:00:00 CST").unwrap(), "2024-05-01T02:00:00Z");
    assert_eq!(at("America/Chicago", "2020-11-01 01:06:00 CDT").unwrap(), "2020-11-01T06:06:00Z");
    assert_eq!(at("America/Chicago", "2020-11-01 01:06:00 CST").unwrap(), "2020-11-01T07:06:00Z");
    for (zone, name) in [("UTC", "CST"), ("UTC", "CEST"), ("UTC", "IST"), ("Europe/Berlin", "CST")]
    {
        let error = at(zone, &format!("2024-05-01 10:00:00 {name}")).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("--time-zone"), "{error}");
    }
}

#[test]
fn without_a_year_new_year_is_one_second_long() {
    let present = |now: &str| parser("auto", "UTC").present(auto(now));
    let strftime = |now: &str| parser("%b %d %H:%M:%S", "UTC").present(auto(now));
    let reads =
        |parser: Since1970, text: &str| display_time(parser.parse(text.as_bytes()).unwrap());
    for (now, text, expected) in [
        ("2024-01-01T00:05:00Z", "Dec 31 23:59:59", "2023-12-31T23:59:59Z"),
        ("2024-01-01T00:05:00Z", "Jan  1 00:00:03", "2024-01-01T00:00:03Z"),
        // A zone, or a clock, that is ahead.
        ("2023-12-31T23:59:00Z", "Jan  1 00:00:03", "2024-01-01T00:00:03Z"),
        ("2023-12-31T23:59:00Z", "Dec 31 23:59:59", "2023-12-31T23:59:59Z"),
        ("2024-11-28T00:00:00Z", "Dec 31 23:59:59", "2023-12-31T23:59:59Z"),
        ("2024-11-28T00:00:00Z", "Jan  1 00:00:03", "2024-01-01T00:00:03Z"),
        ("2026-11-28T00:00:00Z", "Feb 29 12:00:00", "2024-02-29T12:00:00Z"),
        ("2103-11-28T00:00:00Z", "Feb 29 12:00:00", "2096-02-29T12:00:00Z"),
    ] {
        assert_eq!(reads(present(now), text), expected, "{now} {text}");
        assert_eq!(reads(strftime(now), text), expected, "{now} {text}");
    }
    assert_eq!(reads(present("2024-01-01"), "Oct 11 22:14:15.003"), "2023-10-11T22:14:15.003Z");
    assert!(error("%b %d %H:%M", "Feb 30 10:00").contains("Feb 30"));
}
