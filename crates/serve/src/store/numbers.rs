//! Keys that are whole numbers, so that there are intervals of them.

use lately::codec::{Reader, Writer};
use lately::{Digest, SnapshotError};
use lately_stream::number::{NumberFormat, NumberReader, interval_length};
use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// How the keys of a filter are spelt that is asked for intervals, and how long those are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub(crate) format: NumberFormat,
    /// The longest interval, in keys, for which the false positive rate holds.
    pub(crate) interval: u128,
}

/// The formats that a server takes, in the order of their numbers in what is saved.
const FORMATS: [NumberFormat; 3] = [NumberFormat::Number, NumberFormat::Ip, NumberFormat::Epc];

impl Numbers {
    /// Keys of the format of this name, and intervals as long as is usual for it.
    ///
    /// # Errors
    /// What there is instead.
    pub(crate) fn of(name: &str) -> Result<Self, String> {
        let found =
            FORMATS.into_iter().find(|format| format.to_string().eq_ignore_ascii_case(name));
        let format = found.ok_or("bad RANGE: NUMBER, IP or EPC")?;
        Ok(Self { format, interval: format.usual_interval() })
    }

    /// The same for intervals of this length: `1000`, `2^38`, for addresses `/24`.
    ///
    /// # Errors
    /// What a length looks like.
    pub(crate) fn with_interval(self, length: &str) -> Result<Self, String> {
        let interval = interval_length(length, self.format)
            .map_err(|error| format!("bad INTERVAL: {error}"))?;
        Ok(Self { interval, ..self })
    }

    fn reader(self) -> NumberReader {
        // No format that the server takes is one of times.
        NumberReader::new(self.format, Arc::new(|_| Err("keys are no times here".into())))
    }

    /// The number of a key.
    ///
    /// # Errors
    /// What is wrong with it, and what one looks like.
    pub(crate) fn key(self, text: &[u8]) -> Result<u128, String> {
        self.reader().key(text).map_err(|error| self.fault(text, error))
    }

    /// The interval from one key to another, both in it. An end that is empty is the first or the last key of all.
    ///
    /// # Errors
    /// What is wrong with an end, or that they are the wrong way round.
    pub(crate) fn range(self, first: &[u8], last: &[u8]) -> Result<RangeInclusive<u128>, String> {
        let end = |text: &[u8], missing| match text.trim_ascii() {
            b"" => Ok(missing),
            text => self.key(text),
        };
        let range = end(first, 0)?..=end(last, u128::MAX)?;
        if range.is_empty() {
            let (first, last) = (shown(first), shown(last));
            return Err(format!(
                "the interval begins after its end: {first} is larger than {last}; give the smaller key first"
            ));
        }
        Ok(range)
    }

    /// What is wrong with a text that is no key. What the program says of numbers and addresses names options that only it has.
    fn fault(self, text: &[u8], error: String) -> String {
        let what = match self.format {
            NumberFormat::Ip => "an address such as 10.1.2.3 or 2001:db8::1",
            // It shows all of the text.
            NumberFormat::Epc if (1..=SHOWN).contains(&text.trim_ascii().len()) => return error,
            NumberFormat::Epc => {
                "an EPC such as urn:epc:id:sgtin:0614141.812345.6789 or its hex digits"
            }
            _ => "a whole number from 0 to 2^128 - 1",
        };
        format!("`{}` is no key of this filter, which is {what}", shown(text))
    }

    pub(super) fn write(self, out: &mut Writer<'_>) {
        let number = FORMATS.iter().position(|format| *format == self.format).unwrap_or(0);
        out.u8(number as u8);
        out.u128(self.interval);
    }

    pub(super) fn read(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        let format = FORMATS.get(usize::from(input.u8()?)).copied();
        let interval = Some(input.u128()?).filter(|&length| length > 0);
        match (format, interval) {
            (Some(format), Some(interval)) => Ok(Self { format, interval }),
            _ => Err(SnapshotError::Invalid("no such keys of a filter")),
        }
    }
}

/// Bytes of a key that an error shows.
const SHOWN: usize = 128;

/// A word as errors show it, the beginning of a long one.
pub(crate) fn shown(text: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(&text[..text.len().min(SHOWN)])
}

/// A number in the place of a digest. Where keys are numbers, that is what stands for a key in runs, queues and journals.
pub(crate) fn as_digest(number: u128) -> Digest {
    Digest::new((number >> 64) as u64, number as u64)
}

/// The number in the place of a digest.
pub(crate) fn of_digest(digest: Digest) -> u128 {
    u128::from(digest.hi()) << 64 | u128::from(digest.lo())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_intervals_as_the_program_spells_them() {
        let ip = Numbers::of("IP").unwrap();
        assert_eq!((ip.format, ip.interval), (NumberFormat::Ip, 1 << 16));
        assert_eq!(ip.with_interval("/24").unwrap().interval, 256);
        let (first, last) = (ip.key(b"10.1.0.0").unwrap(), ip.key(b"::ffff:10.1.255.255").unwrap());
        assert_eq!(last - first, 0xFFFF);
        assert_eq!(ip.range(b"10.1.0.0", b"10.1.255.255"), Ok(first..=last));
        assert_eq!(ip.range(b"", b" "), Ok(0..=u128::MAX));
        let number = Numbers::of("number").unwrap().with_interval("2^38").unwrap();
        assert_eq!((number.interval, number.key(b"17")), (1 << 38, Ok(17)));
        let epc = Numbers::of("Epc").unwrap();
        let hex = epc.key(b"3074257BF7194E4000001A85").unwrap();
        assert_eq!(
            epc.range(b"3074257BF7194E4000001A85", b"").map(|range| *range.start()),
            Ok(hex)
        );
    }

    #[test]
    fn faults_say_what_and_how() {
        let (ip, number) = (Numbers::of("ip").unwrap(), Numbers::of("number").unwrap());
        let epc = Numbers::of("epc").unwrap();
        for (error, said) in [
            (Numbers::of("text").unwrap_err(), "NUMBER, IP or EPC"),
            (Numbers::of("signed").unwrap_err(), "NUMBER, IP or EPC"),
            (number.with_interval("/24").unwrap_err(), "bad INTERVAL: `/24`"),
            (number.with_interval("0").unwrap_err(), "a length such as 1000"),
            (ip.key(b"17").unwrap_err(), "`17` is no key of this filter, which is an address"),
            (number.key(b"10.1.2.3").unwrap_err(), "a whole number from 0 to 2^128 - 1"),
            (number.key(b"-1").unwrap_err(), "`-1` is no key"),
            (number.key(&[b'9'; 500]).unwrap_err(), "no key"),
            (epc.key(b"").unwrap_err(), "an EPC such as"),
            (epc.key(b"hello").unwrap_err(), "`hello`: not an EPC"),
            (epc.key(b"hello").unwrap_err(), "urn:epc:tag:… or urn:epc:id:…"),
            (epc.key(&[b'x'; 1 << 20]).unwrap_err(), "an EPC such as"),
            (ip.range(&[b'1'; 1 << 20], b"").unwrap_err(), "no key"),
            (number.range(b"5", b"4").unwrap_err(), "5 is larger than 4; give the smaller"),
            (number.range(b"x", b"4").unwrap_err(), "`x` is no key"),
        ] {
            assert!(error.contains(said), "{error}");
            assert!(error.len() < 300 && !error.contains("--"), "{error}");
        }
    }

    #[test]
    fn numbers_stand_in_the_place_of_digests() {
        for number in [0, 1, u128::MAX, 1 << 64, 0x1234_5678_9ABC_DEF0_1122_3344_5566_7788] {
            assert_eq!(of_digest(as_digest(number)), number);
        }
    }
}
