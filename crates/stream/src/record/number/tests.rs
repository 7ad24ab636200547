use super::*;
use crate::options::read_time;
use crate::stamp::{StampParser, TimeFormat, Zone};
use proptest::prelude::*;

fn reader(format: NumberFormat) -> NumberReader {
    let times = read_time(StampParser::new(TimeFormat::Auto, Zone::default()).unwrap());
    NumberReader::new(format, times)
}

fn key(format: NumberFormat, text: &str) -> u128 {
    reader(format).key(text.as_bytes()).unwrap()
}

fn one(format: NumberFormat, text: &str) -> RangeInclusive<u128> {
    let all = reader(format).intervals(text).unwrap();
    assert_eq!(all.len(), 1, "{text}");
    all[0].clone()
}

fn fault(format: NumberFormat, text: &str) -> String {
    reader(format).intervals(text).unwrap_err()
}

#[test]
fn whole_numbers() {
    let largest = u128::MAX.to_string();
    assert_eq!(key(NumberFormat::Number, &largest), u128::MAX);
    assert_eq!(key(NumberFormat::Number, " +007 "), 7);
    for wrong in ["", "-1", "1.5", "0x10", "340282366920938463463374607431768211456", "1 2"] {
        assert!(reader(NumberFormat::Number).key(wrong.as_bytes()).is_err(), "{wrong}");
    }
    assert_eq!(one(NumberFormat::Number, "5..9"), 5..=9);
    assert_eq!(one(NumberFormat::Number, "5.."), 5..=u128::MAX);
    assert_eq!(one(NumberFormat::Number, ".."), 0..=u128::MAX);
    assert_eq!(one(NumberFormat::Number, "7"), 7..=7);
    assert!(fault(NumberFormat::Number, "9..5").contains("larger than the second"));
    assert!(fault(NumberFormat::Number, "10.1.2.3").contains("--key-format ip"));
    assert!(fault(NumberFormat::Number, "-4").contains("--key-format signed"));
    assert!(fault(NumberFormat::Number, "303435fc8803d056d15b963f").contains("--key-format epc"));
    let prefix = reader(NumberFormat::Number).prefix("12").unwrap_err();
    assert!(prefix.contains("only EPCs and addresses have prefixes"), "{prefix}");
}

#[test]
fn signed_numbers() {
    assert_eq!(key(NumberFormat::Signed, &i128::MIN.to_string()), 0);
    assert_eq!(key(NumberFormat::Signed, &i128::MAX.to_string()), u128::MAX);
    assert_eq!(one(NumberFormat::Signed, "-1..1"), MIDDLE - 1..=MIDDLE + 1);
    assert!(reader(NumberFormat::Signed).key(b"170141183460469231731687303715884105728").is_err());
    assert!(reader(NumberFormat::Signed).key(b"--1").is_err());
}

#[test]
fn decimals_are_rounded_down() {
    let value = |text: &str| key(NumberFormat::Decimal, text).wrapping_sub(MIDDLE) as i128;
    for (text, units) in [
        ("1", 1_000_000_000),
        ("-0.5", -500_000_000),
        (".25", 250_000_000),
        ("2.", 2_000_000_000),
        ("1e3", 1_000_000_000_000),
        ("12.5E-1", 1_250_000_000),
        ("0.0000000019", 1),
        ("-0.0000000019", -2),
        ("-0.0000000010", -1),
        ("-1e-400", -1),
        ("1e-400", 0),
        ("0e400", 0),
        ("1521911720.865716", 1_521_911_720_865_716_000),
        ("0.12345678901234567890123456789012345678901234567890", 123_456_789),
    ] {
        assert_eq!(value(text), units, "{text}");
    }
    for wrong in ["", ".", "-", "1.2.3", "e5", "1e", "1e99999", "nan", "inf", "1e40", "--1"] {
        assert!(reader(NumberFormat::Decimal).key(wrong.as_bytes()).is_err(), "{wrong}");
    }
    assert!(
        one(NumberFormat::Decimal, "-23.6..-23.5").contains(&key(NumberFormat::Decimal, "-23.55"))
    );
}

#[test]
fn times() {
    let day = one(NumberFormat::Time, "1995-08-01T00:00:00Z..1995-08-01T01:00:00Z");
    assert_eq!(day.end() - day.start(), HOUR);
    assert!(day.contains(&key(NumberFormat::Time, "807235300.5")));
}

#[test]
fn addresses_are_in_one_order() {
    let ip = |text| key(NumberFormat::Ip, text);
    assert_eq!(ip("10.1.2.3"), ip("::ffff:10.1.2.3"));
    assert_eq!(one(NumberFormat::Ip, "10.1.0.0/16"), ip("10.1.0.0")..=ip("10.1.255.255"));
    assert_eq!(one(NumberFormat::Ip, "0.0.0.0/0"), ip("0.0.0.0")..=ip("255.255.255.255"));
    assert_eq!(one(NumberFormat::Ip, "::/0"), 0..=u128::MAX);
    assert_eq!(one(NumberFormat::Ip, "10.0.0.1/32"), ip("10.0.0.1")..=ip("10.0.0.1"));
    assert_eq!(one(NumberFormat::Ip, "10.0.0.1..10.0.0.9"), ip("10.0.0.1")..=ip("10.0.0.9"));
    assert!(one(NumberFormat::Ip, "2001:db8::/32").contains(&ip("2001:db8:1::2")));
    assert!(fault(NumberFormat::Ip, "10.1.2.3/16").contains("did you mean 10.1.0.0/16?"));
    assert!(fault(NumberFormat::Ip, "2001:db8::1/32").contains("did you mean 2001:db8::/32?"));
    assert!(fault(NumberFormat::Ip, "10.0.0.0/33").contains("32 bits"));
    assert!(fault(NumberFormat::Ip, "10.1/16").contains("10.1.0.0/16"));
}

#[test]
fn a_uri_with_two_dots_is_no_interval() {
    let tag = "urn:epc:tag:sgln-96:3.061414112345..400";
    assert_eq!(
        one(NumberFormat::Epc, tag),
        key(NumberFormat::Epc, tag)..=key(NumberFormat::Epc, tag)
    );
    let both = format!("{tag}..urn:epc:tag:sgln-96:3.061414112345..500");
    let range = one(NumberFormat::Epc, &both);
    assert_eq!(range.end() - range.start(), 100);
    assert_eq!(one(NumberFormat::Epc, &format!("{tag}..")).end(), &u128::MAX);
}

#[test]
fn lengths_of_intervals() {
    let length = |text, format| interval_length(text, format).ok();
    assert_eq!(length("1000", NumberFormat::Number), Some(1000));
    assert_eq!(length("64k", NumberFormat::Number), Some(64_000));
    assert_eq!(length("2^38", NumberFormat::Epc), Some(1 << 38));
    assert_eq!(length("2^128", NumberFormat::Epc), None);
    assert_eq!(length("/24", NumberFormat::Ip), Some(256));
    assert_eq!(length("/64", NumberFormat::Ip), Some(1 << 64));
    assert_eq!(length("/24", NumberFormat::Number), None);
    assert_eq!(length("1h", NumberFormat::Time), Some(HOUR));
    assert_eq!(length("1h", NumberFormat::Number), None);
    assert_eq!(length("0", NumberFormat::Number), None);
}

#[test]
fn sets_of_intervals() {
    let set: Intervals =
        [10..=20, 15..=30, 31..=31, 50..=50, u128::MAX..=u128::MAX].into_iter().collect();
    assert_eq!(set.len(), 3);
    for (number, inside) in
        [(9, false), (10, true), (31, true), (32, false), (50, true), (51, false)]
    {
        assert_eq!(set.contains(number), inside, "{number}");
    }
    assert!(set.contains(u128::MAX) && !set.contains(0));
    assert!(Intervals::default().is_empty() && !Intervals::default().contains(0));
}

proptest! {
    #[test]
    fn a_set_holds_what_any_of_its_intervals_does(
        ends in prop::collection::vec((0_u128..200, 0_u128..20), 0..20),
        number in 0_u128..230,
    ) {
        let all: Vec<_> = ends.iter().map(|&(first, more)| first..=first + more).collect();
        let set: Intervals = all.iter().cloned().collect();
        prop_assert_eq!(set.contains(number), all.iter().any(|range| range.contains(&number)));
    }

    #[test]
    fn decimals_keep_their_order(a in -1e12..1e12, b in -1e12..1e12) {
        let of = |x: f64| key(NumberFormat::Decimal, &format!("{x}"));
        // What differs in places behind the ninth only may be one key, but never changes places.
        prop_assert!(a > b || of(a) <= of(b));
        prop_assert!(a < b || of(a) >= of(b));
        prop_assert!((a - b).abs() < 1e-8 || of(a) != of(b));
    }

    #[test]
    fn any_text_is_a_key_or_a_fault(text in ".{0,60}") {
        for (_, format) in NumberFormat::NAMES {
            let reader = reader(format);
            let _ = (reader.key(text.as_bytes()), reader.intervals(&text), reader.prefix(&text));
        }
    }
}
