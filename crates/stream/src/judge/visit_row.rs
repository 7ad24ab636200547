//! How visits are written: a row each.

use crate::judge::timeline::Timeline;
use crate::judge::visit::{Ended, Visit};
use crate::record::WHOLE_RECORD;
use crate::record::texts::{Columns, Shown, fields};
use crate::stamp::display_time;
use std::io::Write;

/// The format of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowFormat {
    /// A header line, and a line of values for each visit.
    #[default]
    Csv,
    /// A JSON object per line.
    Ndjson,
}

/// What the columns of every visit are called, after those of its key and before those of its strongest
/// read.
const NAMES: [&str; 4] = ["arrived", "left", "dwell", "reads"];

/// What the column is called that says why a visit ended.
const ENDED: &str = "ended";

/// The name of a key that is the whole record.
const RECORD: &str = "record";

impl RowFormat {
    /// The line that a new file begins with; empty if there is none.
    pub fn header(self, columns: &Columns) -> Vec<u8> {
        let mut line = Vec::new();
        if self == Self::Csv {
            for name in names(columns) {
                separate(&mut line);
                put_quoted(&mut line, name.as_bytes());
            }
            line.push(b'\n');
        }
        line
    }

    /// Appends the row of a visit, whose moments are on this line.
    pub fn write(
        self,
        columns: &Columns,
        line: Timeline,
        visit: &Visit,
        ended: Ended,
        rows: &mut Vec<u8>,
    ) {
        let times = [visit.arrived, visit.left].map(|tick| display_time(line.nanos(tick)));
        let dwell = seconds(visit.left.0.saturating_sub(visit.arrived.0));
        let reads = visit.reads.to_string();
        let numbers = [&dwell, &reads].map(|text| Shown::Json(text.as_bytes()));
        let times = times.iter().map(|text| Shown::Text(text.as_bytes()));
        let strength = visit.strength.map_or_else(|| "null".into(), |number| number.to_string());
        let mut key = fields(&visit.text);
        let key = columns.key.iter().map(|_| key.next().unwrap_or(Shown::Json(b"null")));
        let place = match &*visit.place {
            [] => Shown::Json(b"null"),
            place => Shown::of(place),
        };
        let strength = columns.strength.as_ref().map(|_| Shown::Json(strength.as_bytes()));
        let place = columns.place.as_ref().map(|_| place);
        let ended = Shown::Text(ended.name().as_bytes());
        let values = key.chain(times).chain(numbers).chain(strength).chain(place).chain([ended]);
        match self {
            Self::Csv => csv(values, rows),
            Self::Ndjson => ndjson(names(columns).zip(values), rows),
        }
    }
}

fn csv<'a>(values: impl Iterator<Item = Shown<'a>>, rows: &mut Vec<u8>) {
    let begin = rows.len();
    for value in values {
        if rows.len() > begin {
            rows.push(b',');
        }
        match value {
            Shown::Json(b"null") => {}
            Shown::Text(text) | Shown::Json(text) => put_quoted(rows, text),
        }
    }
    rows.push(b'\n');
}

fn ndjson<'a>(members: impl Iterator<Item = (&'a str, Shown<'a>)>, rows: &mut Vec<u8>) {
    let mut separator = b'{';
    for (name, value) in members {
        rows.push(separator);
        separator = b',';
        put_string(rows, name);
        rows.push(b':');
        match value {
            Shown::Json(json) => rows.extend_from_slice(json),
            Shown::Text(text) => put_string(rows, &String::from_utf8_lossy(text)),
        }
    }
    rows.extend_from_slice(b"}\n");
}

/// The names of all columns of a row, in order.
fn names(columns: &Columns) -> impl Iterator<Item = &str> {
    let key = columns.key.iter().map(|name| match &**name {
        WHOLE_RECORD => RECORD,
        name => name,
    });
    let best = columns.strength.iter().chain(&columns.place).map(String::as_str);
    key.chain(NAMES).chain(best).chain([ENDED])
}

fn separate(line: &mut Vec<u8>) {
    if !line.is_empty() {
        line.push(b',');
    }
}

/// A value as a column, in quotes where it needs them.
fn put_quoted(line: &mut Vec<u8>, text: &[u8]) {
    if !text.iter().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r')) {
        line.extend_from_slice(text);
        return;
    }
    line.push(b'"');
    for &byte in text {
        if byte == b'"' {
            line.push(b'"');
        }
        line.push(byte);
    }
    line.push(b'"');
}

fn put_string(line: &mut Vec<u8>, text: &str) {
    let written = serde_json::to_string(text);
    line.extend_from_slice(written.as_deref().unwrap_or("null").as_bytes());
}

/// Nanoseconds as seconds, exactly.
fn seconds(nanos: u64) -> String {
    let (whole, part) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    let mut text = Vec::new();
    // A vector takes everything.
    let _ = write!(text, "{whole}.{part:09}");
    let text = String::from_utf8(text).unwrap_or_default();
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::texts::Texts;
    use crate::record::value::Value;
    use lately::Tick;
    use std::sync::Arc;

    fn row(format: RowFormat, columns: &Columns, visit: &Visit) -> String {
        let mut rows = format.header(columns);
        format.write(columns, Timeline::SINCE_1970, visit, Ended::Gap, &mut rows);
        String::from_utf8(rows).unwrap()
    }

    #[test]
    fn visits_are_rows_of_both_formats() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let columns = Columns {
            key: names(&[".", "at, exactly"]),
            strength: Some("rssi".into()),
            place: Some("antenna".into()),
        };
        let mut texts = Texts::default();
        texts.begin(Some(&Arc::new(columns.clone())));
        texts.push_key(Value::Text(b"say \"a\""), |_| None);
        texts.push_key(Value::Number(b"7"), |_| None);
        texts.end(None);
        let mut visit = Visit {
            arrived: Tick(1_736_150_420_250_000_000),
            left: Tick(1_736_150_425_250_000_001),
            reads: 3,
            text: texts.key(0).into(),
            strength: Some(-59.5),
            place: (*b"2").into(),
            strongest: Tick(0),
            number: 0,
        };
        assert_eq!(
            row(RowFormat::Csv, &columns, &visit),
            "record,\"at, exactly\",arrived,left,dwell,reads,rssi,antenna,ended\n\
             \"say \"\"a\"\"\",7,2025-01-06T08:00:20.25Z,2025-01-06T08:00:25.250000001Z,5.000000001,3,-59.5,2,gap\n"
        );
        (visit.strength, visit.place) = (None, Box::default());
        visit.left = visit.arrived;
        assert_eq!(
            row(RowFormat::Ndjson, &columns, &visit),
            "{\"record\":\"say \\\"a\\\"\",\"at, exactly\":7,\"arrived\":\"2025-01-06T08:00:20.25Z\",\
             \"left\":\"2025-01-06T08:00:20.25Z\",\"dwell\":0,\"reads\":3,\"rssi\":null,\"antenna\":null,\
             \"ended\":\"gap\"}\n"
        );
        let bare = Columns { strength: None, place: None, key: names(&["epc"]) };
        assert!(
            row(RowFormat::Csv, &bare, &visit).starts_with("epc,arrived,left,dwell,reads,ended\n")
        );
    }

    #[test]
    fn seconds_are_exact() {
        for (nanos, text) in [(0, "0"), (10_000_000_000, "10"), (1, "0.000000001")] {
            assert_eq!(seconds(nanos), text);
        }
    }
}
