//! Key, time and other fields out of a record.
//!
//! The key of a single field is that field's bytes alone: a CSV column and a JSON string with the
//! same text are the same key, so inputs of both kinds can be joined. What is no string in JSON is
//! told apart from one by a leading byte 0xFF, which no text begins with: the number 1 and the
//! string "1" are two keys. Numbers are taken by their text, so 1 and 1.0 differ and no digit of a
//! long number is lost. Arrays and objects are written canonically first.
//!
//! Several fields are prefixed by their lengths, as [`lately::Digester::digest_fields`] does. If
//! one of them is missing the key is: half a key would merge what is not the same.

use crate::epc;
use crate::number::NumberReader;
use crate::options::{Schema, WHOLE_RECORD};
use crate::record::{Extra, Fault, Kind, Record};
use crate::scan::canonical;
use lately::Digest;
use std::borrow::Cow;

/// What a record has for a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    /// Nothing, and why.
    Missing(&'static str),
    /// Text: a column, or the unescaped content of a JSON string.
    Text(&'a [u8]),
    /// The text of a JSON number.
    Number(&'a [u8]),
    /// Anything else in JSON, written canonically.
    Json(&'a [u8]),
}

/// A record whose fields can be looked up.
pub(crate) trait Row {
    /// The field in this place; `spare` may be used to write it to.
    fn value<'r>(&'r self, slot: usize, spare: &'r mut Vec<u8>) -> Value<'r>;

    /// The whole record.
    fn whole<'r>(&'r self, spare: &'r mut Vec<u8>) -> Value<'r>;
}

/// Why an event without things has no key.
const EMPTY: &str = "an empty list";

/// Stands where there is none.
static NO_FIELD: Field = Field { name: String::new(), slots: Vec::new(), epc: false };

/// One field that is wanted.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    /// As the user named it.
    pub(crate) name: String,
    /// Where it may be found; the first place that has something counts. None: always missing.
    pub(crate) slots: Vec<usize>,
    /// Whether it is an EPC if it can be read as one.
    pub(crate) epc: bool,
}

impl Field {
    pub(crate) fn whole() -> Self {
        Self { name: WHOLE_RECORD.into(), slots: Vec::new(), epc: false }
    }

    fn find<'r>(&self, row: &'r impl Row, spare: &'r mut Vec<u8>) -> Value<'r> {
        if self.name == WHOLE_RECORD {
            return row.whole(spare);
        }
        let mut slots = self.slots.iter();
        let Some(&first) = slots.next() else { return Value::Missing("there is no such field") };
        // One place is by far the most usual, and the borrow checker wants the last one apart.
        let mut chosen = first;
        for &next in slots {
            if !matches!(row.value(chosen, spare), Value::Missing(_)) {
                break;
            }
            chosen = next;
        }
        row.value(chosen, spare)
    }
}

/// All fields that are wanted of each record.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) key: Vec<Field>,
    pub(crate) time: Option<Field>,
    pub(crate) change: Vec<Field>,
    pub(crate) rank: Option<Field>,
}

/// Buffers used again from record to record.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    key: Vec<u8>,
    spare: Vec<u8>,
    /// Numbers of a list beside the first, of the record at hand.
    pub(crate) further: Vec<u128>,
}

/// What is found out about one record.
pub(crate) struct Judged {
    pub(crate) kind: Kind,
    pub(crate) digest: Digest,
    pub(crate) time: u64,
    pub(crate) fault: Option<Fault>,
}

impl Wanted {
    /// Nothing but the record's own bytes, to be hashed as they are.
    pub(crate) fn only_whole(&self) -> bool {
        let plain = |field: &Field| field.name == WHOLE_RECORD && !field.epc;
        self.time.is_none() && !self.extras() && matches!(&*self.key, [field] if plain(field))
    }

    /// Whether records have extras.
    pub(crate) fn extras(&self) -> bool {
        !self.change.is_empty() || self.rank.is_some()
    }

    /// Key and time of a record.
    pub(crate) fn judge(&self, row: &impl Row, schema: &Schema, scratch: &mut Scratch) -> Judged {
        let mut judged = Judged {
            kind: Kind::Keyed,
            digest: Digest::new(0, 0),
            time: Record::NO_TIME,
            fault: None,
        };
        if let Some(field) = &self.time {
            match read_time(field, row, schema, &mut scratch.spare) {
                Ok(time) => judged.time = time,
                Err(reason) => {
                    judged.kind = Kind::Invalid;
                    judged.fault = Some(Fault { field: Some(field.name.clone()), reason });
                    return judged;
                }
            }
        }
        let key = match &schema.numbers {
            Some(reader) => self.number(row, reader, scratch),
            None => self.digest(row, schema, scratch).map_err(|(field, why)| (field, why.into())),
        };
        match key {
            Ok(digest) => judged.digest = digest,
            Err((field, reason)) => {
                judged.kind = Kind::KeyMissing;
                let reason = reason.into_owned();
                judged.fault = Some(Fault { field: Some(field.name.clone()), reason });
            }
        }
        judged
    }

    /// The number that the only key field has, in the place of a digest.
    fn number(
        &self,
        row: &impl Row,
        reader: &NumberReader,
        scratch: &mut Scratch,
    ) -> Result<Digest, (&Field, Cow<'static, str>)> {
        let [field] = &*self.key else {
            return Err((self.key.first().unwrap_or(&NO_FIELD), "a number is one field".into()));
        };
        let read = |text: &[u8]| match reader.key(text) {
            Ok(number) => Ok(Record::digest_of_number(number)),
            Err(reason) => Err((field, reason.into())),
        };
        match field.find(row, &mut scratch.spare) {
            Value::Missing(reason) => Err((field, reason.into())),
            Value::Text(text) | Value::Number(text) => read(text),
            Value::Json(list) if list.first() == Some(&b'[') => {
                numbers_of_list(list, reader, &mut scratch.further)
                    .map(Record::digest_of_number)
                    .map_err(|reason| (field, reason))
            }
            Value::Json(_) => Err((field, "neither a string nor a number".into())),
        }
    }

    fn digest(
        &self,
        row: &impl Row,
        schema: &Schema,
        scratch: &mut Scratch,
    ) -> Result<Digest, (&Field, &'static str)> {
        let Scratch { key, spare, .. } = scratch;
        if let [field] = &*self.key {
            return match field.find(row, spare) {
                Value::Missing(reason) => Err((field, reason)),
                Value::Json(b"[]") if field.epc => Err((field, EMPTY)),
                Value::Text(text) if !field.epc => Ok(schema.digester.digest(text)),
                value => {
                    key.clear();
                    append(value, field.epc, key);
                    Ok(schema.digester.digest(key))
                }
            };
        }
        key.clear();
        for field in &self.key {
            match field.find(row, spare) {
                Value::Missing(reason) => return Err((field, reason)),
                Value::Json(b"[]") if field.epc => return Err((field, EMPTY)),
                value => prefixed(key, |key| append(value, field.epc, key)),
            }
        }
        Ok(schema.digester.digest(key))
    }

    /// The extras of a record.
    pub(crate) fn extra(&self, row: &impl Row, schema: &Schema, scratch: &mut Scratch) -> Extra {
        let Scratch { key, spare, .. } = scratch;
        key.clear();
        let mut any = false;
        for field in &self.change {
            match field.find(row, spare) {
                // A length no field has: an absent field is not an empty one.
                Value::Missing(_) => key.extend_from_slice(&u64::MAX.to_le_bytes()),
                value => {
                    any = true;
                    prefixed(key, |key| append(value, field.epc, key));
                }
            }
        }
        // 0 says "absent", so no value may hash to it.
        let change = if any { schema.digester.digest(key).lo().max(1) } else { 0 };
        let rank = self.rank.as_ref().and_then(|field| match field.find(row, spare) {
            Value::Text(text) | Value::Number(text) => number(text),
            Value::Missing(_) | Value::Json(_) => None,
        });
        Extra { change, rank }
    }
}

/// The numbers of a list of strings: the first, and the others in `further`. All of them or none.
fn numbers_of_list(
    list: &[u8],
    reader: &NumberReader,
    further: &mut Vec<u128>,
) -> Result<u128, Cow<'static, str>> {
    let (mut first, mut fault) = (None, None);
    let all_strings = canonical::each_string(list, |text| match reader.key(text) {
        Ok(number) if first.is_none() => first = Some(number),
        Ok(number) => further.push(number),
        Err(reason) => fault = fault.take().or(Some(reason)),
    });
    let fault =
        if all_strings { fault.map(Cow::Owned) } else { Some("a list of no strings".into()) };
    match (first, fault) {
        (Some(first), None) => Ok(first),
        (_, fault) => {
            further.clear();
            Err(fault.unwrap_or(EMPTY.into()))
        }
    }
}

fn read_time(
    field: &Field,
    row: &impl Row,
    schema: &Schema,
    spare: &mut Vec<u8>,
) -> Result<u64, String> {
    match field.find(row, spare) {
        Value::Missing(reason) => Err(format!("no time: {reason}")),
        Value::Text(text) | Value::Number(text) => (schema.read_time)(text),
        Value::Json(_) => Err("no time: neither a string nor a number".into()),
    }
}

fn number(text: &[u8]) -> Option<f64> {
    let number: f64 = std::str::from_utf8(text).ok()?.trim().parse().ok()?;
    number.is_finite().then_some(number)
}

/// Writes one field's length and then what `write` writes.
fn prefixed(key: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = key.len();
    key.extend_from_slice(&[0; 8]);
    write(key);
    let length = (key.len() - at - 8) as u64;
    if let Some(place) = key[at..].first_chunk_mut() {
        *place = length.to_le_bytes();
    }
}

/// Appends the key bytes of one value.
fn append(value: Value<'_>, epc: bool, key: &mut Vec<u8>) {
    match value {
        Value::Missing(_) => {}
        Value::Text(text) if epc => {
            epc::normalise(text, key);
        }
        Value::Text(text) => key.extend_from_slice(text),
        Value::Json(list) if epc && list.first() == Some(&b'[') => append_epcs(list, key),
        Value::Number(text) | Value::Json(text) => {
            key.push(0xFF);
            key.extend_from_slice(text);
        }
    }
}

/// A list of EPCs names a set of things: their order does not matter. One alone is that EPC.
fn append_epcs(list: &[u8], key: &mut Vec<u8>) {
    let mut epcs = Vec::new();
    let all_strings = canonical::each_string(list, |text| {
        let mut key = Vec::new();
        epc::normalise(text, &mut key);
        epcs.push(key);
    });
    match &*epcs {
        [epc] if all_strings => key.extend_from_slice(epc),
        [_, ..] if all_strings => {
            epcs.sort_unstable();
            key.push(0xFF);
            for epc in &epcs {
                prefixed(key, |key| key.extend_from_slice(epc));
            }
        }
        _ => {
            key.push(0xFF);
            key.extend_from_slice(list);
        }
    }
}
