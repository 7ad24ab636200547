//! The fields that are wanted of each record, and how they are read: key, time, change and rank.

use super::batch::{Extra, Fault, Kind, Record};
use super::epc::Epc;
use super::key::{WHOLE_RECORD, append, prefixed};
use super::number::NumberReader;
use super::stamp::ReadTime;
use super::texts::{Columns, Texts};
use super::value::{Row, Value};
use crate::scan::canonical;
use lately::{Digest, Digester};
use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;

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

    /// The text of a field that is a time, or a part of one.
    fn time_text<'r>(&self, row: &'r impl Row, spare: &'r mut Vec<u8>) -> Result<&'r [u8], String> {
        match self.find(row, spare) {
            Value::Missing(reason) => Err(format!("no time: {reason}")),
            Value::Text(text) | Value::Number(text) => Ok(text),
            Value::Json(_) => Err("no time: neither a string nor a number".into()),
        }
    }

    fn fault(&self, reason: String) -> Fault {
        Fault { field: Some(self.name.clone()), reason }
    }
}

/// Why a time of 0 is none.
const UNSET: &str = "0 is what programs write for a time that was never set";

/// All fields that are wanted of each record, and how their texts are read.
#[derive(Clone)]
pub(crate) struct Fields {
    pub(crate) key: Vec<Field>,
    /// The time; the texts of several fields are joined by blanks. None: records carry no time.
    pub(crate) time: Vec<Field>,
    pub(crate) change: Vec<Field>,
    pub(crate) rank: Option<Field>,
    /// What the fields are called whose texts are kept; `None`: no texts are kept.
    pub(crate) columns: Option<Arc<Columns>>,
    /// What says where a record was made.
    pub(crate) place: Option<Field>,
    /// What names the source of a record.
    pub(crate) source: Vec<Field>,
    /// A record whose time cannot be read is a dead letter.
    pub(crate) drop_untimed: bool,
    /// Hashes the keys.
    pub(crate) digester: Digester,
    /// Reads the times.
    pub(crate) read_time: ReadTime,
    /// Reads keys that are numbers.
    pub(crate) numbers: Option<NumberReader>,
}

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fields")
            .field("key", &self.key)
            .field("time", &self.time)
            .field("change", &self.change)
            .field("rank", &self.rank)
            .finish_non_exhaustive()
    }
}

/// Buffers used again from record to record.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    key: Vec<u8>,
    spare: Vec<u8>,
    /// The texts of a time of several fields.
    time: Vec<u8>,
    /// Numbers of a list after the first, of the record at hand.
    pub(crate) further: Vec<u128>,
}

/// What was read of one record.
pub(crate) struct Parsed {
    pub(crate) kind: Kind,
    pub(crate) digest: Digest,
    pub(crate) time: Option<NonZeroU64>,
    pub(crate) fault: Option<Fault>,
}

impl Fields {
    /// Nothing but the record's own bytes, to be hashed as they are.
    pub(crate) fn only_whole(&self) -> bool {
        let plain = |field: &Field| field.name == WHOLE_RECORD && !field.epc;
        self.numbers.is_none()
            && self.columns.is_none()
            && self.time.is_empty()
            && !self.have_extras()
            && matches!(&*self.key, [field] if plain(field))
    }

    /// Whether records have extras.
    pub(crate) fn have_extras(&self) -> bool {
        !self.change.is_empty() || self.rank.is_some() || !self.source.is_empty()
    }

    /// Reads key and time of a record.
    pub(crate) fn read(&self, row: &impl Row, scratch: &mut Scratch) -> Parsed {
        let mut parsed =
            Parsed { kind: Kind::Keyed, digest: Digest::new(0, 0), time: None, fault: None };
        if !self.time.is_empty() {
            match self.time(row, scratch) {
                Ok(time) => parsed.time = Some(time),
                Err(fault) => {
                    parsed.kind = if self.drop_untimed { Kind::Invalid } else { Kind::Untimed };
                    parsed.fault = Some(fault);
                    if self.drop_untimed {
                        return parsed;
                    }
                }
            }
        }
        let key = match &self.numbers {
            Some(reader) => self.number(row, reader, scratch),
            None => self.digest(row, scratch).map_err(|(field, why)| (field, why.into())),
        };
        match key {
            Ok(digest) => parsed.digest = digest,
            Err((field, reason)) => {
                parsed.kind = Kind::KeyMissing;
                parsed.fault = Some(field.fault(reason.into_owned()));
            }
        }
        parsed
    }

    fn time(&self, row: &impl Row, scratch: &mut Scratch) -> Result<NonZeroU64, Fault> {
        let read = |text: &[u8]| {
            let time = (self.read_time)(text)?;
            NonZeroU64::new(time).ok_or_else(|| UNSET.to_owned())
        };
        if let [field] = &*self.time {
            let text = field.time_text(row, &mut scratch.spare).map_err(|why| field.fault(why))?;
            return read(text).map_err(|why| field.fault(why));
        }
        scratch.time.clear();
        for field in &self.time {
            if !scratch.time.is_empty() {
                scratch.time.push(b' ');
            }
            let text = field.time_text(row, &mut scratch.spare).map_err(|why| field.fault(why))?;
            scratch.time.extend_from_slice(text);
        }
        read(&scratch.time).map_err(|reason| {
            let names: Vec<_> = self.time.iter().map(|field| &*field.name).collect();
            Fault { field: Some(names.join(",")), reason }
        })
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
        scratch: &mut Scratch,
    ) -> Result<Digest, (&Field, &'static str)> {
        let Scratch { key, spare, .. } = scratch;
        if let [field] = &*self.key {
            return match field.find(row, spare) {
                Value::Missing(reason) => Err((field, reason)),
                Value::Json(b"[]") if field.epc => Err((field, EMPTY)),
                Value::Text(text) if !field.epc => Ok(self.digester.digest(text)),
                value => {
                    key.clear();
                    append(value, field.epc, key);
                    Ok(self.digester.digest(key))
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
        Ok(self.digester.digest(key))
    }

    /// A hash of what names the source; `None` where all of it is missing.
    fn source(&self, row: &impl Row, key: &mut Vec<u8>, spare: &mut Vec<u8>) -> Option<u64> {
        key.clear();
        let mut any = false;
        for field in &self.source {
            match field.find(row, spare) {
                Value::Missing(_) => key.extend_from_slice(&u64::MAX.to_le_bytes()),
                value => {
                    any = true;
                    prefixed(key, |key| append(value, field.epc, key));
                }
            }
        }
        any.then(|| self.digester.digest(key).lo())
    }

    /// Keeps the texts of a record: those of its key, in which EPCs are spelled in hex, and its place.
    pub(crate) fn keep_texts(&self, row: &impl Row, scratch: &mut Scratch, texts: &mut Texts) {
        let spare = &mut scratch.spare;
        for field in &self.key {
            texts.push_key(field.find(row, spare), |text| {
                let epc = field.epc.then(|| Epc::parse(text).ok());
                epc.flatten().map(|(epc, _)| epc.to_hex())
            });
        }
        texts.end(self.place.as_ref().map(|field| field.find(row, spare)));
    }

    /// The extras of a record.
    pub(crate) fn extra(&self, row: &impl Row, scratch: &mut Scratch) -> Extra {
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
        let change = if any { self.digester.digest(key).lo().max(1) } else { 0 };
        let rank = self.rank.as_ref().and_then(|field| match field.find(row, spare) {
            Value::Text(text) | Value::Number(text) => number(text),
            Value::Missing(_) | Value::Json(_) => None,
        });
        Extra { change, rank, source: self.source(row, key, spare) }
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

fn number(text: &[u8]) -> Option<f64> {
    let number: f64 = std::str::from_utf8(text).ok()?.trim().parse().ok()?;
    number.is_finite().then_some(number)
}
