//! Numbers: epochs, what looks like them, and what stands for "never".

use super::*;

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
