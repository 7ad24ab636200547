use super::*;
use proptest::prelude::*;

fn parser(format: &str, zone: &str) -> StampParser {
    StampParser::new(format.parse().unwrap(), zone.parse().unwrap()).unwrap()
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
    for (text, ns) in [("0", 0), ("5", 5), ("10", 10), ("9999999999", 9_999_999_999)] {
        assert_eq!(auto(text), ns * S, "{text}");
    }
    assert_eq!(auto("10000000000"), 10_000_000_000 * 1_000_000);
    assert_eq!(auto("9999999999999"), 9_999_999_999_999 * 1_000_000);
    assert_eq!(auto("10000000000000"), 10_000_000_000_000 * 1000);
    assert_eq!(auto("10000000000000000"), 10_000_000_000_000_000);
    assert_eq!(auto("18446744073709551615"), u64::MAX);
}

#[test]
fn case_T6_unit_as_stated() {
    let read = |format: &str, text: &str| parser(format, "UTC").parse(text.as_bytes()).unwrap();
    assert_eq!(read("ms", "5"), 5_000_000);
    assert_eq!(read("us", "5"), 5_000);
    assert_eq!(read("ns", "5"), 5);
    assert_eq!(read("s", "10000000001"), 10_000_000_001 * S);
    assert_eq!(read("ms", "1744913242868.317"), 1_744_913_242_868_317_000);
    assert_eq!(
        error("s", "1755033487197"),
        "the time \"1755033487197\" is after the year 2554; is its unit right?"
    );
    assert!(error("ms", "2020-11-01T01:06:00Z").contains("a unit is stated"));
}

#[test]
fn case_T6_fractions() {
    assert_eq!(auto("1755033487.197361"), 1_755_033_487_197_361_000);
    assert_eq!(auto("1755033487.1973612489"), 1_755_033_487_197_361_248);
    assert_eq!(auto("1755033487."), 1_755_033_487 * S);
    assert_eq!(auto(".5"), S / 2);
    assert_eq!(auto("1.5e9"), 1_500_000_000 * S);
    assert_eq!(auto("1.755033487197361e+09"), 1_755_033_487_197_361_000);
    assert_eq!(auto("17550334871973612489e-10"), 1_755_033_487_197_361_248);
    assert_eq!(auto("1e-400"), 0);
    assert_eq!(auto("0e999999999999"), 0);
    assert_eq!(auto(&format!("1.{}", "9".repeat(100))), 1_999_999_999);
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
    assert_eq!(error("auto", "-5"), "the time \"-5\" is before 1970, where the clock begins");
    assert!(error("auto", "1969-12-31T23:59:59Z").contains("before 1970"));
    assert!(error("auto", "9999-01-01").contains("after the year 2554"));
    assert!(error("auto", "99999999999999999999").contains("after the year 2554"));
    assert!(error("auto", "1e99").contains("after the year 2554"));
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
    assert!(!option("%H:%M").is_empty());
    assert!(!option("%Y-%m-%d %!").is_empty());
    assert!("Chicago".parse::<Zone>().unwrap_err().to_string().contains("America/Chicago"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn epochs_of_any_size(ns in 10_000_000_000_000_000u64..10_000_000_000_000_000_000) {
        prop_assert_eq!(auto(&ns.to_string()), ns);
        prop_assert_eq!(auto(&(ns / 1000).to_string()), ns / 1000 * 1000);
        prop_assert_eq!(auto(&(ns / 1_000_000).to_string()), ns / 1_000_000 * 1_000_000);
        prop_assert_eq!(auto(&(ns / S).to_string()), ns / S * S);
        prop_assert_eq!(auto(&format!("{}.{:09}", ns / S, ns % S)), ns);
        prop_assert_eq!(auto(&format!("{}.{:06}", ns / 1_000_000, ns % 1_000_000)), ns);
        prop_assert_eq!(auto(&format!("{}.{:03}", ns / 1000, ns % 1000)), ns);
    }

    #[test]
    fn rfc3339_against_jiff(ns: u64, hours in -23i32..=23, minutes in 0i32..60, separator in "[Tt ]") {
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
            prop_assert_eq!(auto(&text), ns, "{}", text);
        }
        let seconds = format!("{}{sign}{h:02}:{m:02}", form(""));
        prop_assert_eq!(auto(&seconds), ns / S * S, "{}", seconds);
    }

    #[test]
    fn local_against_jiff(ns: u64, zone in proptest::sample::select(vec!["America/Chicago", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe"])) {
        let zoned = Timestamp::from_nanosecond(i128::from(ns)).unwrap().in_tz(zone).unwrap();
        let text = zoned.datetime().to_string();
        let read = parser("auto", zone).parse(text.as_bytes()).unwrap();
        let written = Timestamp::from_nanosecond(i128::from(read)).unwrap().in_tz(zone).unwrap();
        prop_assert_eq!(written.datetime(), zoned.datetime());
        prop_assert!(read <= ns);
    }

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        for format in ["auto", "s", "ns", "rfc3339", "%d/%b/%Y:%H:%M:%S %z", "%s", "%F %T %Q"] {
            let _ = parser(format, "UTC").parse(&bytes);
        }
    }

    #[test]
    fn any_text(text in "[\\[\"]?[-+0-9./:,TtZz eE]{0,40}[\\]\"]?") {
        for format in ["auto", "us", "rfc3339"] {
            let _ = parser(format, "America/Chicago").parse(text.as_bytes());
        }
        let _ = (text.parse::<Zone>(), format!("%{text}").parse::<TimeFormat>());
    }
}
