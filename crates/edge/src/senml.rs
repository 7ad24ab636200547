//! Readings as SenML JSON (RFC 8428), for programs that know nothing of this one.
//!
//! A pack has a record a reading: `{"n":"mgrs:33TWL759737/noise","t":1.5e9,"v":57.5}`, where the name
//! is the cell of 100 m and the property, and the time is in seconds. Base name, base time, base value
//! and units are understood when they come in. The same labels as numbers make SenML CBOR: n 0, v 2, t 6,
//! bn -2, bt -3, bv -5.

use crate::cell::SmallCell;
use crate::element::{Element, Property};
use crate::message::{MAX_READINGS, Reading};
use serde_json::{Map, Value, json};
use std::string::{String, ToString};
use std::vec::Vec;

/// What names of cells begin with.
const CELL: &str = "mgrs:";
/// The longest pack in bytes.
pub const MAX_PACK: usize = 1 << 18;
/// Times below are seconds before now (RFC 8428, section 4.5.3).
const RELATIVE: f64 = 268_435_456.0;

/// Why a text is no pack of readings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SenmlError {
    /// More than [`MAX_PACK`] bytes, or more than [`MAX_READINGS`] records.
    TooLong,
    /// No JSON, or no array of objects.
    Json,
    /// A record, counted from 0, without something, or with something that it cannot have.
    Record(usize, &'static str),
}

impl std::fmt::Display for SenmlError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooLong => {
                write!(f, "a pack of more than {MAX_PACK} bytes or {MAX_READINGS} records")
            }
            Self::Json => f.write_str("no SenML: an array of JSON objects is expected"),
            Self::Record(at, what) => write!(f, "SenML record {at}: {what}"),
        }
    }
}

impl std::error::Error for SenmlError {}

/// Readings as a pack.
pub fn write(readings: &[Reading]) -> String {
    let record = |reading: &Reading| {
        let Element { cell, property } = reading.element;
        let seconds = reading.time as f64 / 1000.0;
        json!({ "n": std::format!("{CELL}{cell}/{property}"), "t": seconds, "v": reading.value })
    };
    Value::Array(readings.iter().map(record).collect()).to_string()
}

/// The readings of a pack. Records without a time are of `now`, in milliseconds.
///
/// # Errors
/// [`SenmlError`] for what is no pack, or has a record that is no reading.
pub fn read(text: &str, now: crate::Millis) -> Result<Vec<Reading>, SenmlError> {
    if text.len() > MAX_PACK {
        return Err(SenmlError::TooLong);
    }
    let records: Vec<Map<String, Value>> =
        serde_json::from_str(text).map_err(|_| SenmlError::Json)?;
    if records.len() > MAX_READINGS {
        return Err(SenmlError::TooLong);
    }
    let mut base = Base { name: String::new(), time: 0.0, value: 0.0 };
    let mut readings = Vec::new();
    for (at, record) in records.iter().enumerate() {
        let reading = base.record(record, now).map_err(|what| SenmlError::Record(at, what))?;
        readings.extend(reading);
    }
    Ok(readings)
}

/// What holds for this record and those after it.
struct Base {
    name: String,
    time: f64,
    value: f64,
}

impl Base {
    fn record(
        &mut self,
        record: &Map<String, Value>,
        now: crate::Millis,
    ) -> Result<Option<Reading>, &'static str> {
        let number = |label: &str| match record.get(label) {
            None => Ok(None),
            Some(value) => value.as_f64().map(Some).ok_or("a time or value that is no number"),
        };
        let text = |label: &str| match record.get(label) {
            None => Ok(None),
            Some(value) => value.as_str().map(Some).ok_or("a name that is no text"),
        };
        if let Some(name) = text("bn")? {
            self.name = name.into();
        }
        self.time = number("bt")?.unwrap_or(self.time);
        self.value = number("bv")?.unwrap_or(self.value);
        // "A receiver must understand all fields whose name ends with an underscore."
        if record.keys().any(|label| label.ends_with('_')) {
            return Err("a field that must be understood");
        }
        let value = number("v")?;
        if value.is_none() && text("n")?.is_none() && record.contains_key("bn") {
            return Ok(None);
        }
        let value = value.ok_or("no value")? + self.value;
        let name = self.name.clone() + text("n")?.unwrap_or_default();
        let name = name.strip_prefix(CELL).ok_or("a name that does not begin with mgrs:")?;
        let (cell, property) = name.split_once('/').ok_or("a name without a property")?;
        let cell: SmallCell = cell.parse().map_err(|_| "no cell of 100 m")?;
        let property = Property::new(property).map_err(|_| "no name of a property")?;
        let mut seconds = number("t")?.unwrap_or(0.0) + self.time;
        if seconds < RELATIVE {
            seconds += now as f64 / 1000.0;
        }
        let time = (seconds * 1000.0).round();
        if !value.is_finite() || !(0.0..1e16).contains(&time) {
            return Err("a time or value out of range");
        }
        let element = Element { cell, property };
        Ok(Some(Reading { element, value, time: time as crate::Millis }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: crate::Millis = 1_600_000_000_000;

    #[test]
    fn reads_what_it_wrote() {
        let element = Element {
            cell: "33TWL759737".parse().unwrap(),
            property: Property::new("noise").unwrap(),
        };
        let readings = [
            Reading { element, value: 57.25, time: NOW + 1 },
            Reading { element, value: -3.0, time: NOW },
        ];
        let text = write(&readings);
        assert!(text.contains("\"mgrs:33TWL759737/noise\""), "{text}");
        assert_eq!(read(&text, 0).unwrap(), readings);
    }

    #[test]
    fn bases_hold_for_what_follows() {
        let text = r#"[{"bn":"mgrs:33TWL759737/","bt":1.6e9,"bu":"dB","n":"noise","v":1},{"n":"co","v":2,"t":-5},{"bt":0,"bv":10,"n":"co","v":1}]"#;
        let readings = read(text, NOW + 7).unwrap();
        let plain: Vec<_> =
            readings.iter().map(|r| (r.element.property.to_string(), r.value, r.time)).collect();
        assert_eq!(
            plain,
            [
                ("noise".into(), 1.0, NOW),
                ("co".into(), 2.0, NOW - 5_000),
                ("co".into(), 11.0, NOW + 7)
            ]
        );
    }

    #[test]
    fn what_is_no_pack() {
        for text in ["", "{}", "[1]", "[", "nul"] {
            assert_eq!(read(text, NOW), Err(SenmlError::Json), "{text}");
        }
        for text in [
            r#"[{"n":"mgrs:33TWL759737/noise"}]"#,
            r#"[{"n":"33TWL759737/noise","v":1}]"#,
            r#"[{"n":"mgrs:33TWL/noise","v":1}]"#,
            r#"[{"n":"mgrs:33TWL759737","v":1}]"#,
            r#"[{"n":"mgrs:33TWL759737/noise","v":"1"}]"#,
            r#"[{"n":"mgrs:33TWL759737/noise","v":1,"t":-1e300}]"#,
            r#"[{"n":"mgrs:33TWL759737/noise","v":1,"x_":1}]"#,
        ] {
            assert!(matches!(read(text, NOW), Err(SenmlError::Record(0, _))), "{text}");
        }
        let many = std::format!("[{}]", std::vec!["{}"; 257].join(","));
        assert_eq!(read(&many, NOW), Err(SenmlError::TooLong));
    }
}
