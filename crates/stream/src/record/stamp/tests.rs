use super::*;
use proptest::prelude::*;
use std::path::PathBuf;

/// Reads times after 1970, as most of these tests do.
struct Since1970(StampParser);

impl Since1970 {
    fn present(self, nanos: u64) -> Self {
        Self(self.0.present(nanos.cast_signed()))
    }

    fn parse(&self, text: &[u8]) -> Result<u64, StampError> {
        let since = |time: Time| u64::try_from(time.nanos().expect("a date")).expect("after 1970");
        self.0.parse(text).map(since)
    }
}

fn parser(format: &str, zone: &str) -> Since1970 {
    Since1970(any_parser(format, zone))
}

fn any_parser(format: &str, zone: &str) -> StampParser {
    StampParser::new(format.parse().unwrap(), zone.parse().unwrap()).unwrap()
}

fn display_time(nanos: u64) -> String {
    super::display_time(nanos.cast_signed())
}

fn auto(text: &str) -> u64 {
    parser("auto", "UTC").parse(text.as_bytes()).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn error(format: &str, text: &str) -> String {
    parser(format, "UTC").parse(text.as_bytes()).unwrap_err().to_string()
}

const S: u64 = 1_000_000_000;

#[test]
fn case_T5_ambiguous_local_time_is_the_earlier() {
    let chicago = |text: &str| parser("auto", "America/Chicago").parse(text.as_bytes()).unwrap();
    // 01:06 happened at -05:00 and an hour later at -06:00.
    assert_eq!(chicago("2020-11-01 01:06:00"), auto("2020-11-01T01:06:00-05:00"));
    assert_eq!(chicago("2020-11-01 01:06"), 1_604_210_760 * S);
    // In the gap of 2021-03-14, 02:30 is 03:30.
    assert_eq!(chicago("2021-03-14 02:30"), auto("2021-03-14T03:30-05:00"));
    let strftime = parser("%d.%m.%Y %H:%M", "America/Chicago");
    assert_eq!(strftime.parse(b"01.11.2020 01:06").unwrap(), 1_604_210_760 * S);
}

#[test]
fn case_T5_offsets() {
    for text in [
        "2020-11-01T01:06:00+0000",
        "2020-11-01T01:06:00-00:00",
        "2020-11-01T01:06:00Z",
        "2020-11-01t01:06:00z",
        "2020-11-01 01:06:00+00",
        "2020-11-01 01:06:00 UTC",
        "2020-11-01 01:06:00 GMT",
        "2020-10-31T19:06:00-0600",
        "2020-10-31T19:06:00-06:00",
        "2020-10-31 19:06 -06",
        "20201031T190600-0600",
        "2020/10/31 19:06:00.000 -06:00",
        "2020-10-31T19:06:00-06:00[America/Chicago]",
        "2020-11-01T01:06:00Z[America/Chicago]",
        "\"2020-11-01T01:06:00\"",
        " 2020-11-01T01:06:00 ",
        "[2020-11-01T01:06:00]",
    ] {
        assert_eq!(auto(text), 1_604_192_760 * S, "{text}");
    }
    assert_eq!(parser("auto", "-06:00").parse(b"2020-10-31T19:06").unwrap(), 1_604_192_760 * S);
    assert_eq!(auto("2020-10-31T20:06-05:00[America/Chicago]"), auto("2020-11-01T01:06Z"));
}

#[test]
fn case_T6_epochs_by_size() {
    assert_eq!(auto("1755033487"), 1_755_033_487 * S);
    assert_eq!(auto("1755033487197"), 1_755_033_487_197_000_000);
    assert_eq!(auto("1755033487197361"), 1_755_033_487_197_361_000);
    assert_eq!(auto("1755033487197361248"), 1_755_033_487_197_361_248);
    // The first and last of each unit, which is believed from 1990 to 2100.
    for (unit, first, last) in [
        (S, 631_152_000, 4_133_980_799),
        (S / 1000, 631_152_000_000, 4_133_980_799_999),
        (1000, 631_152_000_000_000, 4_133_980_799_999_999),
        (1, 662_688_000_000_000_000, 4_133_980_799_999_999_999),
    ] {
        assert_eq!(auto(&first.to_string()), first * unit);
        assert_eq!(auto(&last.to_string()), last * unit);
        for text in [first - 1, last + 1] {
            assert!(error("auto", &text.to_string()).contains("--time-format s, ms, us or ns"));
        }
    }
    for text in ["5", "10", "9999999999", "10000000000", "9999999999999", "5000000000000000000"] {
        assert!(error("auto", text).contains("--time-format s, ms, us or ns"), "{text}");
    }
}

#[test]
fn case_T6_unit_as_stated() {
    let read = |format: &str, text: &str| parser(format, "UTC").parse(text.as_bytes()).unwrap();
    assert_eq!(read("ms", "5"), 5_000_000);
    assert_eq!(read("us", "5"), 5_000);
    assert_eq!(read("ns", "5"), 5);
    assert_eq!(read("s", "9000000001"), 9_000_000_001 * S);
    assert_eq!(read("ms", "1744913242868.317"), 1_744_913_242_868_317_000);
    assert_eq!(
        error("s", "1755033487197"),
        "the time \"1755033487197\" is after the year 2262; is its unit right?"
    );
    assert!(error("ms", "2020-11-01T01:06:00Z").contains("a unit is stated"));
}

#[test]
fn case_T6_fractions() {
    assert_eq!(auto("1755033487.197361"), 1_755_033_487_197_361_000);
    assert_eq!(auto("1755033487.1973612489"), 1_755_033_487_197_361_248);
    assert_eq!(auto("1755033487."), 1_755_033_487 * S);
    assert_eq!(parser("s", "UTC").parse(b".5").unwrap(), S / 2);
    assert_eq!(auto("1.5e9"), 1_500_000_000 * S);
    assert_eq!(auto("1.755033487197361e+09"), 1_755_033_487_197_361_000);
    assert_eq!(auto("17550334871973612489e-10"), 1_755_033_487_197_361_248);
    assert!(error("s", "1e-400").contains("not set"));
    assert!(error("auto", "0e999999999999").contains("not set"));
    let nines = "9".repeat(100);
    assert_eq!(auto(&format!("1755033487.{nines}")), 1_755_033_487_999_999_999);
    assert_eq!(auto("2026-02-26T17:13:37.432087177Z"), 1_772_126_017_432_087_177);
    assert_eq!(auto("2026-02-26T17:13:37,4320871779Z"), 1_772_126_017_432_087_177);
    assert_eq!(auto("2011-02-24T10:14:42.851+0000"), 1_298_542_482_851_000_000);
    assert_eq!(auto("2011-02-24"), 1_298_505_600 * S);
    assert_eq!(auto("2016-12-31T23:59:60.5Z"), auto("2016-12-31T23:59:59.5Z"));
}

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
fn errors_say_what_is_expected() {
    let early = "the time \"1066-10-14\" is before the year 1678; is its unit right?";
    assert_eq!(error("auto", "1066-10-14"), early);
    assert!(error("auto", "9999-01-01").contains("after the year 2262"));
    assert!(error("auto", "99999999999999999999").contains("it is 5138-11-16, and without a unit"));
    assert!(error("auto", "1e99").contains("after the year 2262"));
    assert!(error("s", "-1e30").contains("before the year 1678"));
    assert!(error("auto", "2021-02-29").contains("no such day"));
    assert!(error("auto", "2021-02-28T24:00").contains("no such day"));
    assert!(error("auto", "2021-02-28 noon").contains("expected a time"));
    assert!(error("auto", "2021-02-28T10:00 CST").contains("offset such as -06:00"));
    assert!(error("auto", "yesterday").contains("expected a date"));
    assert!(error("rfc3339", "1755033487").contains("states its unit"));
    assert_eq!(error("auto", " "), "the time is empty");
    let long = "x".repeat(5000);
    assert!(error("auto", &long).len() < 300);
    let option = |text: &str| text.parse::<TimeFormat>().unwrap_err().to_string();
    assert!(option("minutes").contains("expected auto, s, ms, us, ns, rfc3339"));
    assert!(!option("%H:%!").is_empty());
    assert!(!option("%Y-%m-%d %!").is_empty());
    assert!("Chicago".parse::<Zone>().unwrap_err().to_string().contains("America/Chicago"));
}

#[test]
fn times_before_1970() {
    let any = |format: &str, text: &str| {
        any_parser(format, "UTC").parse(text.as_bytes()).unwrap().to_string()
    };
    for (format, text, moment) in [
        ("auto", "1969-12-31T23:59:59Z", "1969-12-31T23:59:59Z"),
        ("auto", "19620220144739", "1962-02-20T14:47:39Z"),
        ("auto", "Thu, 20 Feb 1896 10:00:00 +0100", "1896-02-20T09:00:00Z"),
        ("auto", "1678-01-01", "1678-01-01T00:00:00Z"),
        ("%d.%m.%Y %H:%M", "09.11.1918 14:00", "1918-11-09T14:00:00Z"),
        ("s", "-86400.5", "1969-12-30T23:59:59.5Z"),
        ("ms", "-5", "1969-12-31T23:59:59.995Z"),
        ("ns", "-2", "1969-12-31T23:59:59.999999998Z"),
    ] {
        assert_eq!(any(format, text), moment, "{text}");
    }
    // Of a number without a unit that is more than can be believed.
    assert!(error("auto", "-86400").contains("it is 1969-12-31, and without a unit"));
}

#[test]
fn times_of_day() {
    for (format, zone, text, time) in [
        ("auto", "UTC", "10:14", "10:14:00Z"),
        ("auto", "UTC", "9:05:07,250", "09:05:07.25Z"),
        ("auto", "UTC", "23:59:60", "23:59:59Z"),
        ("auto", "UTC", "12:00 AM", "00:00:00Z"),
        ("auto", "UTC", "6:00:01 p.m.", "18:00:01Z"),
        ("auto", "UTC", "00:30:00+02:00", "22:30:00Z"),
        ("auto", "UTC", "22:00:00 EST", "03:00:00Z"),
        ("auto", "+05:30", "05:29", "23:59:00Z"),
        ("%H%M%S%.f", "UTC", "092750.000", "09:27:50Z"),
        ("%H:%M:%S", "-06:00", "20:00:00", "02:00:00Z"),
        ("%I:%M %p", "UTC", "12:01 PM", "12:01:00Z"),
        ("%H:%M %z", "UTC", "00:30 +0200", "22:30:00Z"),
    ] {
        let read = any_parser(format, zone).parse(text.as_bytes()).unwrap();
        assert!(matches!(read.stated(), Stated::OfDay(_)));
        assert_eq!(read.to_string(), time, "{text}");
    }
    // In summer the zone is two hours ahead.
    let berlin = any_parser("auto", "Europe/Berlin").present(1_719_792_000 * 1_000_000_000);
    assert_eq!(berlin.parse(b"10:00").unwrap().to_string(), "08:00:00Z");
    for text in ["24:00", "10:60", "10", "13:00 PM", "10:14 May"] {
        assert!(any_parser("auto", "UTC").parse(text.as_bytes()).is_err(), "{text}");
    }
}

/// Texts of one moment each, under `auto`.
fn all_are(texts: &[&str], moment: &str) {
    for text in texts {
        assert_eq!(display_time(auto(text)), moment, "{text}");
    }
}

#[test]
fn compact_dates_are_never_epochs() {
    all_are(
        &[
            "20240501100000",
            "202405011000",
            "20240501100000.0",
            "20240501100000Z",
            "20240501 100000",
            "20240501120000+0200",
        ],
        "2024-05-01T10:00:00Z",
    );
    all_are(
        &["20240501100000123", "20240501100000.123", "20240501T100000,123"],
        "2024-05-01T10:00:00.123Z",
    );
    all_are(&["20240501", "20240501000000"], "2024-05-01T00:00:00Z");
    all_are(&["19951231235959"], "1995-12-31T23:59:59Z");
    // A date that there is not does not become an epoch.
    for text in ["20249901", "20240231", "20240501256000", "202405012560", "20240501100000999999"] {
        assert!(parser("auto", "UTC").parse(text.as_bytes()).is_err(), "{text}");
    }
    // Ten digits are seconds, whatever they begin with.
    assert_eq!(auto("2024050110"), 2_024_050_110 * S);
    assert!(error("rfc3339", "1755033487197").contains("states its unit"));
}

#[test]
fn other_counts_of_time_are_refused_by_name() {
    for (text, name) in [
        ("45413.416667", "spreadsheet (Excel)"),
        ("133593012000000000", "FILETIME"),
        ("638501580000000000", ".NET"),
        ("13359301200000000", "WebKit"),
        ("5", "as seconds since 1970 it is 1970-01-01, and without a unit only 1990 to 2100"),
        ("31052024", "1970-12-26"),
    ] {
        let reason = error("auto", text);
        assert!(
            reason.contains(name) && reason.contains("--time-format s, ms, us or ns"),
            "{reason}"
        );
    }
    // Whoever states the unit is believed.
    assert_eq!(parser("ns", "UTC").parse(b"133593012000000000").unwrap(), 133_593_012_000_000_000);
    assert_eq!(parser("s", "UTC").parse(b"45413.5").unwrap(), 45_413_500_000_000);
}

#[test]
fn what_stands_for_never_is_no_time_in_any_format() {
    for text in [
        "0",
        "0.0",
        "-0",
        "000",
        "-1",
        "-1.0",
        "9223372036854775807",
        "18446744073709551615",
        "9.223372036854776e18",
        "1.8446744073709552e+19",
        "-9223372036854775808",
    ] {
        for format in ["auto", "s", "ms", "us", "ns"] {
            let reason = error(format, text);
            assert!(
                reason.ends_with("is what programs write for \"never\" or \"not set\""),
                "{format}: {reason}"
            );
        }
    }
    for text in [
        "9999-12-31",
        "9999-12-31T23:59:59.999Z",
        "9999-12-31 23:59:59",
        "9999-12-31T00:00+02:00[Europe/Berlin]",
        "0001-01-01T00:00:00Z",
        "0000-00-00 00:00:00",
        "1970-01-01",
        "1970-01-01T00:00:00Z",
        "1970-01-01T02:00:00+02:00",
        "2262-04-11T23:47:16.854775807Z",
    ] {
        for format in ["auto", "rfc3339"] {
            assert!(error(format, text).contains("not set"), "{text}");
        }
    }
    for text in [
        "31.12.9999 23:59",
        "Fri Dec 31 23:59:59 9999",
        "253402300799",
        "253402300799999",
        "99991231",
    ] {
        assert!(parser("auto", "UTC").parse(text.as_bytes()).is_err(), "{text}");
    }
    assert!(error("auto", "31.12.9999 23:59").contains("not set"));
    assert!(error("auto", "253402300799").contains("not set"));
    assert!(error("ms", "253402300799999").contains("not set"));
    assert!(error("%d.%m.%Y", "31.12.9999").contains("not set"));
    assert!(error("%s", "0").contains("not set"));
    // The neighbours are moments.
    assert_eq!(parser("s", "UTC").parse(b"1").unwrap(), S);
    assert_eq!(parser("ns", "UTC").parse(b"1").unwrap(), 1);
    assert_eq!(parser("auto", "UTC").parse(b"1970-01-01T00:00:01Z").unwrap(), S);
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

/// The `t` column of a file of cases, and its lines here, so that the test does not depend on the file.
fn times_of(file: &str, lines: &[&str]) -> Vec<Result<u64, StampError>> {
    let near = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("LATELY_SHARED").map_or(near, PathBuf::from);
    let path = shared.join("cases/in").join(file);
    match std::fs::read_to_string(&path) {
        Ok(text) => {
            let read: Vec<_> =
                text.lines().skip(1).filter_map(|l| l.split_once(',')).map(|(_, t)| t).collect();
            assert_eq!(read, lines, "{file}");
        }
        Err(_) => eprintln!("skipped: {} is not there", path.display()),
    }
    lines.iter().map(|line| parser("auto", "UTC").parse(line.as_bytes())).collect()
}

#[test]
fn the_files_of_cases() {
    let seconds = |file, lines: &[&str]| -> Vec<u64> {
        times_of(file, lines).into_iter().map(|time| time.unwrap() / S).collect()
    };
    let may = 1_714_521_600; // 2024-05-01
    assert_eq!(
        seconds("t14.csv", &["20240501100000", "20240501110000", "20240502110000"]),
        [may + 36_000, may + 39_600, may + 126_000]
    );
    assert_eq!(
        seconds("t8.csv", &["20240501", "20240502", "20240601"]),
        [may, may + 86_400, may + 31 * 86_400]
    );
    assert_eq!(
        seconds(
            "t_T3b.csv",
            &["3/10/2004 6:00:00 PM", "3/10/2004 6:00:30 PM", "3/10/2004 7:00:00 PM"]
        ),
        [1_078_941_600, 1_078_941_630, 1_078_945_200]
    );
    let mail = [
        "\"Wed, 01 May 2024 10:00:00 +0200\"",
        "\"Wed, 01 May 2024 08:00:01 +0000\"",
        "\"Wed, 1 May 2024 10:05:00 +0200\"",
    ];
    assert_eq!(seconds("t_T8.csv", &mail), [may + 28_800, may + 28_801, may + 29_100]);
    let ctime =
        ["Wed May  1 10:00:00 2024", "Wed May  1 10:00:01 2024", "Wed May  1 10:05:00 2024"];
    assert_eq!(seconds("t_T9.csv", &ctime), [may + 36_000, may + 36_001, may + 36_300]);
    let go = [
        "2024-05-01 10:00:00.123 +0000 UTC",
        "2024-05-01 10:00:01 +0000 UTC",
        "2024-05-01 10:05:00 +0000 UTC",
    ];
    assert_eq!(seconds("t_T14.csv", &go), [may + 36_000, may + 36_001, may + 36_300]);
    let est = ["2024-05-01 10:00:00 EST", "2024-05-01 10:00:01 EST", "2024-05-01 10:05:00 EST"];
    assert_eq!(seconds("t_T18.csv", &est), [may + 54_000, may + 54_001, may + 54_300]);
    for (file, lines, name) in [
        ("t_T6.csv", ["45413.416667", "45413.416678", "45414.0"], "Excel"),
        (
            "t_T22.csv",
            ["133593012000000000", "133593012010000000", "133593015000000000"],
            "FILETIME",
        ),
    ] {
        for time in times_of(file, &lines) {
            assert!(time.unwrap_err().to_string().contains(name));
        }
    }
}

/// Moments of 1678 to 2262, but for the second that stands for "never".
fn moments() -> impl Strategy<Value = i64> {
    let never = |ns: &i64| seconds_of(*ns) == 0;
    (-9_214_560_000_000_000_000i64..9_223_286_400_000_000_000)
        .prop_filter("never", move |ns| !never(ns))
}

fn seconds_of(ns: i64) -> i64 {
    ns.div_euclid(1_000_000_000) * 1_000_000_000
}

fn auto_any(text: &str) -> i64 {
    any_parser("auto", "UTC").parse(text.as_bytes()).unwrap().nanos().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn epochs_of_any_size(ns in 662_688_000_000_000_000u64..4_133_980_800_000_000_000) {
        prop_assert_eq!(auto(&ns.to_string()), ns);
        prop_assert_eq!(auto(&(ns / 1000).to_string()), ns / 1000 * 1000);
        prop_assert_eq!(auto(&(ns / 1_000_000).to_string()), ns / 1_000_000 * 1_000_000);
        prop_assert_eq!(auto(&(ns / S).to_string()), ns / S * S);
        prop_assert_eq!(auto(&format!("{}.{:09}", ns / S, ns % S)), ns);
        prop_assert_eq!(auto(&format!("{}.{:06}", ns / 1_000_000, ns % 1_000_000)), ns);
        prop_assert_eq!(auto(&format!("{}.{:03}", ns / 1000, ns % 1000)), ns);
    }

    #[test]
    fn rfc3339_against_jiff(ns in moments(), hours in -23i32..=23, minutes in 0i32..60, separator in "[Tt ]") {
        let timestamp = Timestamp::from_nanosecond(i128::from(ns)).unwrap();
        let offset = Offset::from_seconds(hours * 3600 + hours.signum() * minutes * 60).unwrap();
        let local = offset.to_datetime(timestamp);
        let form = |tail: &str| local.strftime(&format!("%Y-%m-%d{separator}%H:%M:%S{tail}")).to_string();
        let (sign, h, m) = (if hours < 0 { '-' } else { '+' }, hours.abs(), if hours == 0 { 0 } else { minutes });
        for text in [
            form(&format!(".%9f{sign}{h:02}:{m:02}")),
            form(&format!(",%9f {sign}{h:02}{m:02}")),
            local.strftime(&format!("%Y%m%dT%H%M%S.%9f{sign}{h:02}{m:02}")).to_string(),
            timestamp.to_string(),
        ] {
            prop_assert_eq!(auto_any(&text), ns, "{}", text);
        }
        let seconds = format!("{}{sign}{h:02}:{m:02}", form(""));
        prop_assert_eq!(auto_any(&seconds), seconds_of(ns), "{}", seconds);
    }

    #[test]
    fn local_against_jiff(ns in moments(), zone in proptest::sample::select(vec!["America/Chicago", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe"])) {
        let zoned = Timestamp::from_nanosecond(i128::from(ns)).unwrap().in_tz(zone).unwrap();
        let text = zoned.datetime().to_string();
        let read = any_parser("auto", zone).parse(text.as_bytes()).unwrap().nanos().unwrap();
        let written = Timestamp::from_nanosecond(i128::from(read)).unwrap().in_tz(zone).unwrap();
        prop_assert_eq!(written.datetime(), zoned.datetime());
        prop_assert!(read <= ns);
    }

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        for format in ["auto", "s", "ns", "rfc3339", "%d/%b/%Y:%H:%M:%S %z", "%s", "%F %T %Q", "%b %d"] {
            let _ = any_parser(format, "UTC").parse(&bytes);
        }
    }

    #[test]
    fn written_against_jiff(ns in moments(), hours in -12i8..=14) {
        let seconds = seconds_of(ns);
        let timestamp = Timestamp::from_nanosecond(i128::from(ns)).unwrap();
        let zoned = timestamp.to_zoned_datetime(jiff::tz::TimeZone::fixed(Offset::constant(hours)));
        for (format, expected) in [
            ("%a, %d %b %Y %H:%M:%S %z", seconds),
            ("%d/%b/%Y:%H:%M:%S %z", seconds),
            ("[%d/%b/%Y:%H:%M:%S%.f %z]", ns),
            ("%a %b %e %H:%M:%S %z %Y", seconds),
            ("%A, %B %-d, %Y at %-I:%M:%S %p %:z", seconds),
            ("%-m/%-d/%Y %-I:%M:%S%.f %P GMT%z", ns),
            ("%-d.%-m.%Y %-H:%M:%S %z", seconds),
            ("%Y-%-m-%-d %-H:%M:%S,%9f %z", ns),
            ("%Y-%m-%d %H:%M:%S.%9f %z ABC m=+0.5", ns),
            ("%d-%b-%Y %H:%M:%S %z", seconds),
        ] {
            let text = zoned.strftime(format).to_string();
            prop_assert_eq!(auto_any(&text), expected, "{}", text);
        }
        let text = jiff::fmt::rfc2822::to_string(&zoned).unwrap();
        prop_assert_eq!(auto_any(&text), seconds, "{}", text);
    }

    #[test]
    fn without_a_year_it_is_less_than_a_year_ago(now in 800_000_000 * S..4_000_000_000 * S, ago in 0..364 * 86_400u64) {
        let parser = parser("auto", "UTC").present(now);
        let moment = Timestamp::from_nanosecond(i128::from(now / S * S - ago * S)).unwrap();
        let text = moment.strftime("%b %e %H:%M:%S").to_string();
        prop_assert_eq!(parser.parse(text.as_bytes()).unwrap(), now / S * S - ago * S, "{}", text);
    }

    #[test]
    fn any_words(words in proptest::collection::vec(proptest::sample::select(vec![
        "May", "Mon", "1", "12", "2024", "10:00", "9:5:7.5", "PM", "a.m.", "+02", "-0400", "UTC", "EST", "(x)", ",", "3/4/2024",
        "1.5.2024", "2024-1-5", "1-May-24", ":", "/", "T", "at", "99999", "Dec.", "2nd", "m=+1",
    ]), 0..8), space in "[ ,]?") {
        let _ = any_parser("auto", "America/Chicago").parse(words.join(&space).as_bytes());
    }

    #[test]
    fn any_text(text in "[\\[\"]?[-+0-9./:,TtZz eE]{0,40}[\\]\"]?") {
        for format in ["auto", "us", "rfc3339"] {
            let _ = any_parser(format, "America/Chicago").parse(text.as_bytes());
        }
        let _ = (text.parse::<Zone>(), format!("%{text}").parse::<TimeFormat>());
    }
}
