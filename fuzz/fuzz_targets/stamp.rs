//! Any text as a time: no panic, and what is read comes back from its RFC 3339 form.
#![no_main]

use lately_stream::stamp::{StampParser, TimeFormat};
use libfuzzer_sys::fuzz_target;

const ZONES: [&str; 4] = ["UTC", "America/Chicago", "-06:00", "Asia/Kathmandu"];
const FORMATS: [&str; 10] = [
    "auto",
    "s",
    "ms",
    "us",
    "ns",
    "rfc3339",
    "%d/%b/%Y:%H:%M:%S %z",
    "%Y-%m-%d %H:%M:%S%.f",
    "%b %d %H:%M:%S",
    "%H%M%S%.f",
];

fuzz_target!(|input: (u8, u8, &[u8])| {
    let (format, zone, text) = input;
    let format: TimeFormat = FORMATS[usize::from(format) % FORMATS.len()].parse().unwrap();
    let zone = ZONES[usize::from(zone) % ZONES.len()].parse().unwrap();
    let parser = StampParser::new(format, zone).unwrap();
    if let Ok(time) = parser.parse(text) {
        // Times of day, too, are read under `auto`. A leap second has no form of its own.
        let again = StampParser::new(TimeFormat::Auto, Default::default()).unwrap();
        assert_eq!(again.parse(time.to_string().as_bytes()).ok(), Some(time));
    }
    // A pattern from the user may be anything, too.
    if let Ok(pattern) = std::str::from_utf8(text)
        && let Ok(format) = pattern.parse::<TimeFormat>()
        && let Ok(parser) = StampParser::new(format, Default::default())
    {
        let _ = parser.parse(b"2024-02-29 12:34:56");
    }
});
