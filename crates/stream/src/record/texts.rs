//! The texts of fields that a run writes in words of its own, such as the tag of a visit.

use super::value::Value;
use std::sync::Arc;

/// What the fields are called whose texts are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// The fields of the key, in order.
    pub key: Vec<String>,
    /// The field of the number by which reads are ranked, if there is one.
    pub strength: Option<String>,
    /// The field that says where a read was made, such as an antenna, if there is one.
    pub place: Option<String>,
}

/// The texts of the records of a batch.
#[derive(Debug, Default)]
pub struct Texts {
    columns: Option<Arc<Columns>>,
    bytes: Vec<u8>,
    /// Where the key of each record ends in `bytes`, and where its place does.
    ends: Vec<(u32, u32)>,
}

/// What begins the text of a JSON value that is no string; no text of a field begins so.
const JSON: u8 = 0xFF;

impl Texts {
    /// What the fields are called; `None` where no texts are kept.
    pub fn columns(&self) -> Option<&Arc<Columns>> {
        self.columns.as_ref()
    }

    /// The texts of the key of the record in this place, for [`fields`].
    pub fn key(&self, index: usize) -> &[u8] {
        let Some(&(end, _)) = self.ends.get(index) else { return &[] };
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before].1);
        self.bytes.get(start as usize..end as usize).unwrap_or(&[])
    }

    /// The text of its place; empty where it has none.
    pub fn place(&self, index: usize) -> &[u8] {
        let Some(&(start, end)) = self.ends.get(index) else { return &[] };
        self.bytes.get(start as usize..end as usize).unwrap_or(&[])
    }

    /// Forgets all texts; those of these columns follow, if of any.
    pub(crate) fn begin(&mut self, columns: Option<&Arc<Columns>>) {
        self.columns = columns.cloned();
        self.restart();
    }

    /// Those of records of another batch follow those that there are.
    pub(crate) fn begin_with(&mut self, other: &Self) {
        if self.columns.is_none() {
            self.columns.clone_from(&other.columns);
        }
    }

    /// Copies those of a record of another batch, if texts are kept.
    pub(crate) fn copy(&mut self, from: &Self, index: usize) {
        if from.columns.is_some() {
            self.bytes.extend_from_slice(from.key(index));
            let key = self.bytes.len() as u32;
            self.bytes.extend_from_slice(from.place(index));
            self.ends.push((key, self.bytes.len() as u32));
        }
    }

    /// Forgets all texts so far, to begin again.
    pub(crate) fn restart(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Adds one more text to the key of the record at hand.
    pub(crate) fn push_key(&mut self, value: Value<'_>, spelled: impl Fn(&[u8]) -> Option<String>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        self.push(value, spelled);
        let length = (self.bytes.len() - start - 4) as u32;
        if let Some(place) = self.bytes[start..].first_chunk_mut() {
            *place = length.to_le_bytes();
        }
    }

    /// Completes the record at hand, with the text of its place.
    pub(crate) fn end(&mut self, place: Option<Value<'_>>) {
        let key = self.bytes.len() as u32;
        if let Some(place) = place {
            self.push(place, |_| None);
        }
        self.ends.push((key, self.bytes.len() as u32));
    }

    fn push(&mut self, value: Value<'_>, spelled: impl Fn(&[u8]) -> Option<String>) {
        match value {
            Value::Missing(_) => {}
            Value::Text(text) => match spelled(text) {
                Some(text) => self.bytes.extend_from_slice(text.as_bytes()),
                None => self.bytes.extend_from_slice(text),
            },
            Value::Number(text) | Value::Json(text) => {
                self.bytes.push(JSON);
                self.bytes.extend_from_slice(text);
            }
        }
    }
}

/// The text of a field, as it is or as the text of a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown<'a> {
    /// Text.
    Text(&'a [u8]),
    /// A JSON value that is no string.
    Json(&'a [u8]),
}

impl<'a> Shown<'a> {
    /// One text, such as that of a place.
    pub fn of(text: &'a [u8]) -> Self {
        match text.split_first() {
            Some((&JSON, json)) => Self::Json(json),
            _ => Self::Text(text),
        }
    }
}

/// The texts of a key, one per field.
pub fn fields(mut key: &[u8]) -> impl Iterator<Item = Shown<'_>> {
    std::iter::from_fn(move || {
        let (length, rest) = key.split_first_chunk()?;
        let (text, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        key = rest;
        Some(Shown::of(text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_record_by_record() {
        let mut texts = Texts::default();
        texts.begin(Some(&Arc::default()));
        texts.push_key(Value::Text(b"a"), |_| None);
        texts.push_key(Value::Number(b"1.0"), |_| None);
        texts.end(Some(Value::Text(b"east")));
        texts.end(None);
        texts.push_key(Value::Text(b"b'30'"), |_| Some("30".into()));
        texts.end(Some(Value::Missing("")));
        let key = |at| fields(texts.key(at)).collect::<Vec<_>>();
        assert_eq!(key(0), [Shown::Text(b"a"), Shown::Json(b"1.0")]);
        assert_eq!((key(1), key(2)), (vec![], vec![Shown::Text(b"30")]));
        let places = [0, 1, 2, 3].map(|at| texts.place(at));
        assert_eq!(places, [&b"east"[..], b"", b"", b""]);
    }

    #[test]
    fn a_damaged_key_has_fewer_fields() {
        for bytes in [&b"\x02\0\0\0a"[..], b"\x02\0\0", b""] {
            assert_eq!(fields(bytes).count(), 0);
        }
    }
}
