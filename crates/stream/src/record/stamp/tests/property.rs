//! Any time, as jiff writes it, and any text.

use super::*;
use proptest::prelude::*;

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
