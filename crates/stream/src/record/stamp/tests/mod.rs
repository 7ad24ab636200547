mod cases;
mod epochs;
mod property;
mod written;

use super::*;

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

/// Texts of one moment each, under `auto`.
fn all_are(texts: &[&str], moment: &str) {
    for text in texts {
        assert_eq!(display_time(auto(text)), moment, "{text}");
    }
}

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
