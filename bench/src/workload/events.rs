//! Events of many devices, some delivered twice, as NDJSON or CSV.

use super::{Counted, Summary, mix};
use oorandom::Rand64;
use std::io::{self, Write};

/// A stream of events as a broker that delivers at least once hands it on.
#[derive(Clone, Copy, Debug)]
pub struct Events {
    /// Stop with the record that reaches this many bytes.
    pub bytes: u64,
    /// Share of the records that were delivered before, byte for byte; below 1.
    pub repeats: f64,
    /// A repeat is of one of this many newest events.
    pub within: u64,
    /// Devices that report in turn, by chance.
    pub devices: u64,
    /// Decides everything else.
    pub seed: u64,
}

impl Default for Events {
    fn default() -> Self {
        Self { bytes: 1_000_000, repeats: 0.3, within: 1_000_000, devices: 10_000, seed: 1 }
    }
}

/// How events are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A JSON object a line.
    Ndjson,
    /// Comma-separated, with a header.
    Csv,
}

/// One event: all of it follows from its number, so none need be kept for a repeat.
struct Event {
    /// 128 bits, written like a UUID.
    id: (u64, u64),
    device: u64,
    /// Milliseconds since 2025-01-06T08:00:00Z; 10 events each.
    time: u64,
    sequence: u64,
    temperature: u64,
    humidity: u64,
    battery: u64,
}

impl Events {
    fn event(&self, number: u64) -> Event {
        let hash = mix(number ^ mix(!self.seed));
        let more = mix(hash ^ 0x5555_5555_5555_5555);
        Event {
            id: (hash, more),
            device: more % self.devices.max(1),
            time: number / 10,
            sequence: number / self.devices.max(1),
            temperature: hash % 4_000,
            humidity: (hash >> 16) % 1_000,
            battery: (hash >> 32) % 101,
        }
    }

    /// The number of each record's event, without end.
    fn numbers(self) -> impl Iterator<Item = u64> {
        let mut random = Rand64::new(u128::from(self.seed));
        let mut events = 0_u64;
        std::iter::from_fn(move || {
            if events > 0 && random.rand_float() < self.repeats {
                Some(random.rand_range(events.saturating_sub(self.within.max(1))..events))
            } else {
                events += 1;
                Some(events - 1)
            }
        })
    }

    /// Writes records until the bytes are reached.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(self, format: Format, out: impl Write) -> io::Result<Summary> {
        let mut out = Counted::new(out);
        if format == Format::Csv {
            out.put(b"ts,id,device,seq,temperature,humidity,battery,site\n")?;
        }
        let (mut records, mut distinct) = (0, 0);
        let mut line = Vec::with_capacity(256);
        for number in self.numbers() {
            if out.bytes() >= self.bytes {
                break;
            }
            line.clear();
            self.event(number).write(format, &mut line)?;
            out.put(&line)?;
            records += 1;
            distinct = distinct.max(number + 1);
        }
        Ok(Summary { records, distinct, bytes: out.finish()? })
    }
}

impl Event {
    fn write(&self, format: Format, line: &mut Vec<u8>) -> io::Result<()> {
        let (high, low) = self.id;
        let id = format_args!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            high >> 16 & 0xFFFF,
            high & 0xFFFF,
            low >> 48,
            low & 0xFFFF_FFFF_FFFF
        )
        .to_string();
        let seconds = 8 * 3_600 + self.time / 1_000;
        let (day, second) = (6 + seconds / 86_400, seconds % 86_400);
        // Days past the month's end are of no use to anybody: start again with the month.
        let time = format_args!(
            "2025-01-{:02}T{:02}:{:02}:{:02}.{:03}Z",
            (day - 1) % 31 + 1,
            second / 3_600,
            second / 60 % 60,
            second % 60,
            self.time % 1_000
        )
        .to_string();
        let Self { device, sequence, battery, .. } = self;
        let (degrees, hundredths) = (self.temperature / 100, self.temperature % 100);
        let (percent, rest) = (self.humidity / 10, self.humidity % 10);
        let site = device % 40;
        match format {
            Format::Ndjson => writeln!(
                line,
                "{{\"ts\":\"{time}\",\"id\":\"{id}\",\"device\":\"sensor-{device:05}\",\
                 \"seq\":{sequence},\"temperature\":{degrees}.{hundredths:02},\
                 \"humidity\":{percent}.{rest},\"battery\":{battery},\"site\":\"plant-{site:02}\"}}"
            ),
            Format::Csv => writeln!(
                line,
                "{time},{id},sensor-{device:05},{sequence},{degrees}.{hundredths:02},{percent}.{rest},\
                 {battery},plant-{site:02}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn counts_are_exact_in_both_formats() {
        for (format, headers) in [(Format::Ndjson, 0), (Format::Csv, 1)] {
            let mut out = Vec::new();
            let summary = Events::default().write(format, &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            let lines: Vec<&str> = text.lines().skip(headers).collect();
            let distinct: HashSet<&str> = lines.iter().copied().collect();
            assert_eq!(summary.records, lines.len() as u64);
            assert_eq!(summary.distinct, distinct.len() as u64);
            assert_eq!(summary.bytes, text.len() as u64);
            assert!((1_000_000..1_000_300).contains(&summary.bytes));
            let repeats = 1.0 - summary.distinct as f64 / summary.records as f64;
            assert!((repeats - 0.3).abs() < 0.02, "{repeats}");
        }
    }

    #[test]
    fn ids_are_distinct_exactly_where_records_are() {
        let mut out = Vec::new();
        let events = Events { bytes: 500_000, ..Events::default() };
        let summary = events.write(Format::Csv, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let ids: HashSet<&str> =
            text.lines().skip(1).filter_map(|line| line.split(',').nth(1)).collect();
        assert_eq!(ids.len() as u64, summary.distinct);
    }

    #[test]
    fn repeats_stay_within_their_bound() {
        let events = Events { within: 10, ..Events::default() };
        let mut newest = 0;
        for number in events.numbers().take(10_000) {
            newest = newest.max(number);
            assert!(newest - number < 10);
        }
    }
}
