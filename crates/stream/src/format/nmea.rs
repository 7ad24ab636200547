//! NMEA 0183 sentences, which a tag block may precede: `\s:r3669945,c:1241544035*4A\!AIVDM,1,1,…*13`.
//!
//! The sentence itself is the key, whichever station has received it; the time is that of the tag block
//! (`c`), in seconds or milliseconds since 1970.
//!
//! Source: NMEA 0183 version 4.10, section 7 (TAG blocks); A. Novak, "GPSD: AIVDM/AIVDO protocol
//! decoding", which describes them.

use super::emit::Emit;
use super::head::Signs;
use super::layout::{Buffers, Description, Layout, Places};
use crate::record::value::{Row, Value};
use crate::record::{Kind, Mark};
use crate::scan::first::first_line;
use crate::scan::lines::{Lines, line_end};
use memchr::{memchr, memchr2};

pub(crate) const FORMAT: Description = Description {
    signs: Signs::Line(|line, _| Some(parameter(line, b'c').is_some())),
    open: |head| {
        let Some(first) = first_line(head.bytes, head.ended) else { return Ok(None) };
        let has_time = parameter(first, b'c').is_some();
        Ok(Some(Box::new(Nmea { has_time, longest: head.max_line })))
    },
    key: &["sentence"],
    time: &["time"],
    profile: None,
    sample: ("\\s:a,c:5*00\\!AIVDM,1,1,,B,15N4cJ,0*13\n$GPGLL,1*00\n", "sentence"),
};

/// The fields that have names of their own; others are parameters of the tag block, by their letter.
const NAMES: [&str; 4] = ["sentence", "type", "time", "source"];

/// Sentences, one a line.
#[derive(Debug)]
struct Nmea {
    /// The first line has a tag block with a time.
    has_time: bool,
    longest: usize,
}

/// The content of the tag block, without its checksum, and the sentence.
fn parts(line: &[u8]) -> (&[u8], &[u8]) {
    let Some(inner) = line.strip_prefix(b"\\") else { return (b"", line) };
    let Some(end) = memchr(b'\\', inner) else { return (b"", line) };
    let block = &inner[..end];
    let block = &block[..memchr(b'*', block).unwrap_or(block.len())];
    (block, &inner[end + 1..])
}

/// A parameter of the tag block.
fn parameter(line: &[u8], letter: u8) -> Option<&[u8]> {
    let (block, _) = parts(line);
    let mut parameters = block.split(|c| *c == b',');
    parameters.find_map(|one| one.strip_prefix(&[letter, b':']))
}

struct Sentence<'a>(&'a [u8]);

impl Row for Sentence<'_> {
    fn value<'r>(&'r self, slot: usize, _: &'r mut Vec<u8>) -> Value<'r> {
        let (_, sentence) = parts(self.0);
        let is_sentence = matches!(sentence, [b'!' | b'$', _, ..]);
        let letter = match slot {
            0 | 1 if !is_sentence => return Value::Missing("the line has no sentence"),
            0 => return Value::Text(sentence),
            1 => {
                let end = memchr2(b',', b'*', sentence).unwrap_or(sentence.len());
                return Value::Text(&sentence[1..end.max(1)]);
            }
            2 => b'c',
            3 => b's',
            letter => letter as u8,
        };
        parameter(self.0, letter).map_or(Value::Missing("not in its tag block"), Value::Text)
    }

    fn whole<'r>(&'r self, _: &'r mut Vec<u8>) -> Value<'r> {
        Value::Text(self.0)
    }
}

impl Places for Nmea {
    fn find(&mut self, name: &str, _own: &[&str]) -> Result<Vec<usize>, String> {
        match (NAMES.iter().position(|known| *known == name), name.as_bytes()) {
            (Some(2), _) if !self.has_time => {
                Err("no field `time`: its first line has no tag block with a time (`c`)".into())
            }
            (Some(slot), _) => Ok(vec![slot]),
            (None, [letter @ b'a'..=b'z']) => Ok(vec![usize::from(*letter)]),
            (None, _) => Err(format!(
                "no field `{name}`; there are {}, and the parameters of the tag block by their letter",
                NAMES.join(", ")
            )),
        }
    }
}

impl Layout for Nmea {
    fn longest(&self) -> usize {
        self.longest
    }

    fn parse(&self, bytes: &[u8], _header: bool, _buffers: &mut Buffers, emit: &mut Emit<'_>) {
        for span in Lines::new(bytes) {
            let line = &bytes[span.start..span.end];
            let line = &line[..line.len() - line_end(line)];
            if line.len() > self.longest {
                emit.overlong(span, line.len());
            } else if line.is_empty() {
                emit.other(span, Kind::Aside);
            } else {
                emit.row(span, &Sentence(line));
            }
        }
    }

    fn mark(&self) -> Mark {
        Mark::Column(b'\t')
    }
}
