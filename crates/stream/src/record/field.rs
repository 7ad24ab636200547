//! The fields that are wanted of each record, and how they are read: key, time, change and rank.

use super::KeyFormat;
use super::batch::{Extra, Fault, Kind, Record};
use super::envelope::{Envelope, EnvelopeField};
use super::epc::Epc;
use super::key::{Form, WHOLE_RECORD, append, prefixed};
use super::number::NumberReader;
use super::regex::KeyRegex;
use super::stamp::ReadTime;
use super::texts::{Columns, Texts};
use super::time::{Stated, Time};
use super::value::{Row, Value};
use crate::scan::canonical;
use ::regex::bytes::CaptureLocations;
use lately::{Digest, Digester};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Why an event without things has no key.
const EMPTY: &str = "an empty list";

/// Why a record that a regular expression does not match has no key.
const NO_MATCH: &str = "the regular expression does not match";

/// Stands where there is none.
static NO_FIELD: Field = Field {
    name: String::new(),
    part: Part::Slots(Vec::new()),
    form: Form { format: KeyFormat::Text, fold: false },
    hint: None,
};

/// Which part of a record a field is.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    /// All of it.
    Whole,
    /// One of these places; the first that has something counts. None: always missing.
    Slots(Vec<usize>),
    /// All columns from this place on.
    From(usize),
    /// All fields but those in these places.
    AllBut(Vec<usize>),
}

impl Part {
    /// The number of the last column that it is in, from 1, or 0 for none; `None` if any may be.
    fn last_column(&self) -> Option<usize> {
        match self {
            Self::Whole => Some(0),
            Self::Slots(slots) => Some(slots.iter().max().map_or(0, |last| last + 1)),
            Self::From(_) | Self::AllBut(_) => None,
        }
    }
}

/// One field that is wanted.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    /// As the user named it.
    pub(crate) name: String,
    /// Where it is.
    pub(crate) part: Part,
    /// What its text goes through to be a key.
    pub(crate) form: Form,
    /// Where else it may be, and under which name.
    pub(crate) hint: Option<(usize, String)>,
}

impl Field {
    pub(crate) fn new(name: &str, part: Part) -> Self {
        Self { name: name.into(), part, form: Form::default(), hint: None }
    }

    pub(crate) fn whole() -> Self {
        Self::new(WHOLE_RECORD, Part::Whole)
    }

    fn find<'r>(&self, row: &'r impl Row, spare: &'r mut Vec<u8>) -> Value<'r> {
        let slots = match &self.part {
            Part::Slots(slots) => slots,
            Part::Whole => return row.whole(spare),
            Part::From(first) => return row.rest(*first, self.form, spare),
            Part::AllBut(slots) => return row.all_but(slots, self.form, spare),
        };
        let mut slots = slots.iter();
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

    /// Appends the key bytes of a value of this field.
    fn append(&self, value: Value<'_>, key: &mut Vec<u8>) {
        match (&self.part, value) {
            // Its texts have been through their form one by one.
            (Part::From(_) | Part::AllBut(_), Value::Text(text)) => key.extend_from_slice(text),
            (_, value) => append(value, self.form, key),
        }
    }

    /// Is there no place where it may be found?
    pub(crate) fn is_nowhere(&self) -> bool {
        matches!(&self.part, Part::Slots(slots) if slots.is_empty())
    }

    /// Is the text of this field its key as it is?
    fn is_plain(&self) -> bool {
        self.form.is_plain() || matches!(self.part, Part::From(_) | Part::AllBut(_))
    }

    /// The text of a field that is a time, or a part of one.
    fn time_text<'r>(&self, row: &'r impl Row, spare: &'r mut Vec<u8>) -> Result<&'r [u8], String> {
        match self.find(row, spare) {
            Value::Missing(reason) => Err(format!("no time: {reason}")),
            Value::Text(text) | Value::Number(text) => Ok(text),
            Value::Json(_) => Err("no time: neither a string nor a number".into()),
        }
    }

    /// Why this field of a record is missing, and under which name it is not.
    fn missing(&self, row: &impl Row, reason: &str) -> String {
        let there = |slot: usize| !matches!(row.value(slot, &mut Vec::new()), Value::Missing(_));
        match &self.hint {
            Some((slot, other)) if there(*slot) => {
                format!("{reason}; but there is a nested member, `{other}`")
            }
            _ => reason.into(),
        }
    }

    fn fault(&self, reason: String) -> Fault {
        Fault { field: Some(self.name.clone()), reason }
    }
}

/// All fields that are wanted of each record, and how their texts are read.
#[derive(Clone)]
pub(crate) struct Fields {
    pub(crate) key: Vec<Field>,
    /// The time; the texts of several fields are joined by blanks. None: records carry no time.
    pub(crate) time: Vec<Field>,
    pub(crate) change: Vec<Field>,
    pub(crate) rank: Option<Field>,
    /// Numbers that have dead bands.
    pub(crate) bands: Vec<Field>,
    /// What the fields are called whose texts are kept; `None`: no texts are kept.
    pub(crate) columns: Option<Arc<Columns>>,
    /// What says where a record was made.
    pub(crate) place: Option<Field>,
    /// What names the source of a record.
    pub(crate) source: Vec<Field>,
    /// Those of the envelopes of messages, in the order of their places.
    pub(crate) envelope: Vec<EnvelopeField>,
    /// A record whose time cannot be read is a dead letter.
    pub(crate) drop_untimed: bool,
    /// Hashes the keys.
    pub(crate) digester: Digester,
    /// Reads the times.
    pub(crate) read_time: ReadTime,
    /// Reads keys that are numbers.
    pub(crate) numbers: Option<NumberReader>,
    /// The part of the first key field that is the key; any others only divide it further.
    pub(crate) regex: Option<KeyRegex>,
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
    /// Where the groups of a regular expression are.
    groups: Option<CaptureLocations>,
    /// Numbers of a list after the first, of the record at hand.
    pub(crate) further: Vec<u128>,
    /// What surrounds the message at hand.
    pub(crate) envelope: Option<Arc<Envelope>>,
}

/// What was read of one record.
pub(crate) struct Parsed {
    pub(crate) kind: Kind,
    pub(crate) digest: Digest,
    pub(crate) time: Option<Time>,
    pub(crate) fault: Option<Fault>,
}

impl Fields {
    /// Nothing but the record's own bytes, to be hashed as they are.
    pub(crate) fn only_whole(&self) -> bool {
        let plain = |field: &Field| matches!(field.part, Part::Whole) && field.form.is_plain();
        self.numbers.is_none()
            && self.regex.is_none()
            && self.columns.is_none()
            && self.bands.is_empty()
            && self.time.is_empty()
            && !self.have_extras()
            && matches!(&*self.key, [field] if plain(field))
    }

    fn all(&self) -> impl Iterator<Item = &Field> {
        let lists = [&self.key, &self.time, &self.change, &self.bands, &self.source];
        lists.into_iter().flatten().chain(&self.rank).chain(&self.place)
    }

    /// How many columns a row has to be looked at for: those up to the last one that is wanted. `None`: all.
    pub(crate) fn columns_wanted(&self) -> Option<usize> {
        let last = self.all().map(|field| field.part.last_column());
        last.into_iter().try_fold(0, |most, last| Some(most.max(last?)))
    }

    /// Is what is in this column of any use?
    #[cfg(feature = "parquet")]
    pub(crate) fn uses(&self, column: usize) -> bool {
        self.all().any(|field| match &field.part {
            Part::Whole => true,
            Part::Slots(slots) => slots.contains(&column),
            Part::From(first) => column >= *first,
            Part::AllBut(slots) => !slots.contains(&column),
        })
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
        let key = match (&self.numbers, &self.regex) {
            (Some(reader), _) => self.number(row, reader, scratch),
            (None, Some(regex)) => {
                self.groups(row, regex, scratch).map_err(|(field, why)| (field, why.into()))
            }
            (None, None) => self.digest(row, scratch).map_err(|(field, why)| (field, why.into())),
        };
        match key {
            Ok(digest) => parsed.digest = digest,
            Err((field, reason)) => {
                parsed.kind = Kind::KeyMissing;
                parsed.fault = Some(field.fault(field.missing(row, &reason)));
            }
        }
        parsed
    }

    fn time(&self, row: &impl Row, scratch: &mut Scratch) -> Result<Time, Fault> {
        let read = &*self.read_time;
        if let [field] = &*self.time {
            if let Part::Slots(slots) = &field.part
                && let [slot] = **slots
                && let Some(time) = row.moment(slot)
            {
                return Ok(time);
            }
            let text = field.time_text(row, &mut scratch.spare).map_err(|why| field.fault(why))?;
            return read(text).map_err(|why| field.fault(why));
        }
        scratch.time.clear();
        for field in &self.time {
            if !scratch.time.is_empty() {
                scratch.time.push(b' ');
            }
            let text = field.time_text(row, &mut scratch.spare).map_err(|why| field.fault(why))?;
            // Without its time, a date would be read as midnight; without its date, a time as any day's.
            if text.trim_ascii().is_empty() {
                return Err(field.fault("it is empty, and a part of the time".into()));
            }
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
        let Scratch { key, spare, groups, .. } = scratch;
        match (field.find(row, spare), &self.regex) {
            (Value::Missing(reason), _) => Err((field, reason.into())),
            (Value::Text(text) | Value::Number(text) | Value::Json(text), Some(regex)) => {
                key.clear();
                let groups = groups.get_or_insert_with(|| regex.locations());
                match regex.append(text, Form::default(), groups, key) {
                    true => read(key),
                    false => Err((field, NO_MATCH.into())),
                }
            }
            (Value::Text(text) | Value::Number(text), None) => read(text),
            (Value::Json(list), None) if list.first() == Some(&b'[') => {
                numbers_of_list(list, reader, &mut scratch.further)
                    .map(Record::digest_of_number)
                    .map_err(|reason| (field, reason))
            }
            (Value::Json(_), None) => Err((field, "neither a string nor a number".into())),
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
                Value::Json(b"[]") if field.form.is_epc() => Err((field, EMPTY)),
                Value::Text(text) if field.is_plain() => Ok(self.digester.digest(text)),
                value => {
                    key.clear();
                    field.append(value, key);
                    Ok(self.digester.digest(key))
                }
            };
        }
        key.clear();
        append_all(&self.key, row, spare, key)?;
        Ok(self.digester.digest(key))
    }

    /// The key that a regular expression finds in the first key field, with those that divide it further.
    fn groups(
        &self,
        row: &impl Row,
        regex: &KeyRegex,
        scratch: &mut Scratch,
    ) -> Result<Digest, (&Field, &'static str)> {
        let Scratch { key, spare, groups, .. } = scratch;
        let Some((field, others)) = self.key.split_first() else {
            return Err((&NO_FIELD, NO_MATCH));
        };
        let groups = groups.get_or_insert_with(|| regex.locations());
        let text = match field.find(row, spare) {
            Value::Missing(reason) => return Err((field, reason)),
            Value::Text(text) | Value::Number(text) | Value::Json(text) => text,
        };
        key.clear();
        let mut found = false;
        if others.is_empty() {
            found = regex.append(text, field.form, groups, key);
        } else {
            prefixed(key, |key| found = regex.append(text, field.form, groups, key));
        }
        if !found {
            return Err((field, NO_MATCH));
        }
        append_all(others, row, spare, key)?;
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
                    prefixed(key, |key| field.append(value, key));
                }
            }
        }
        any.then(|| self.digester.digest(key).lo())
    }

    /// Appends the numbers that have dead bands; NaN where there is none.
    pub(crate) fn push_bands(&self, row: &impl Row, scratch: &mut Scratch, bands: &mut Vec<f64>) {
        bands.extend(self.bands.iter().map(|field| match field.find(row, &mut scratch.spare) {
            Value::Text(text) | Value::Number(text) => number(text).unwrap_or(f64::NAN),
            Value::Missing(_) | Value::Json(_) => f64::NAN,
        }));
    }

    /// Keeps the texts of a record: those of its key, in which EPCs are spelled in hex, and its place.
    pub(crate) fn keep_texts(&self, row: &impl Row, scratch: &mut Scratch, texts: &mut Texts) {
        let Scratch { key, spare, groups, .. } = scratch;
        for (at, field) in self.key.iter().enumerate() {
            // Of several fields in one the texts are shown as they are, in a list.
            let mut value = match &field.part {
                Part::AllBut(slots) => row.all_but(slots, Form::default(), spare),
                Part::From(first) => row.rest(*first, Form::default(), spare),
                Part::Slots(_) | Part::Whole => field.find(row, spare),
            };
            let mut is_list = matches!(field.part, Part::AllBut(_) | Part::From(_));
            if let (0, Some(regex)) = (at, &self.regex)
                && let Value::Text(text) | Value::Number(text) | Value::Json(text) = value
            {
                key.clear();
                let groups = groups.get_or_insert_with(|| regex.locations());
                let found = regex.append(text, Form::default(), groups, key);
                value = if found { Value::Text(key) } else { Value::Missing(NO_MATCH) };
                is_list = regex.groups() > 1;
            }
            let list = match value {
                Value::Text(text) if is_list => list(text),
                _ => None,
            };
            let value = list.as_ref().map_or(value, |list| Value::Json(list.as_bytes()));
            texts.push_key(value, |text| {
                let epc = field.form.is_epc().then(|| Epc::parse(text).ok());
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
                    prefixed(key, |key| field.append(value, key));
                }
            }
        }
        // 0 says "absent", so no value may hash to it.
        let change = if any { self.digester.digest(key).lo().max(1) } else { 0 };
        let rank = self.rank.as_ref().and_then(|field| match field.find(row, spare) {
            // A time is compared as a number of seconds, to within a microsecond.
            Value::Text(text) | Value::Number(text) => {
                number(text).or_else(|| Some(seconds((self.read_time)(text).ok()?)))
            }
            Value::Missing(_) | Value::Json(_) => None,
        });
        Extra { change, rank, source: self.source(row, key, spare) }
    }
}

/// Appends these fields, each with its length.
fn append_all<'f>(
    fields: &'f [Field],
    row: &impl Row,
    spare: &mut Vec<u8>,
    key: &mut Vec<u8>,
) -> Result<(), (&'f Field, &'static str)> {
    for field in fields {
        match field.find(row, spare) {
            Value::Missing(reason) => return Err((field, reason)),
            Value::Json(b"[]") if field.form.is_epc() => return Err((field, EMPTY)),
            value => prefixed(key, |key| field.append(value, key)),
        }
    }
    Ok(())
}

/// Texts that are prefixed by their lengths, as a list in JSON; `None` if these are not. A length that no
/// text has stands for one that is not there.
fn list(mut texts: &[u8]) -> Option<String> {
    let mut list = Vec::new();
    while !texts.is_empty() {
        let (length, mut rest) = texts.split_first_chunk()?;
        let mut text = None;
        if *length != [0xFF; 8] {
            let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
            let (there, after) = rest.split_at_checked(length)?;
            (text, rest) = (Some(String::from_utf8_lossy(there)), after);
        }
        list.push(text);
        texts = rest;
    }
    serde_json::to_string(&list).ok()
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

/// Since 1970, or since midnight.
fn seconds(time: Time) -> f64 {
    match time.stated() {
        Stated::Since1970(nanos) => nanos as f64 / 1e9,
        Stated::OfDay(nanos) => nanos as f64 / 1e9,
    }
}

fn number(text: &[u8]) -> Option<f64> {
    let number: f64 = std::str::from_utf8(text).ok()?.trim().parse().ok()?;
    number.is_finite().then_some(number)
}
