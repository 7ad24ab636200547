//! Key bytes out of field values.
//!
//! The key of a single field is that field's bytes alone: a CSV column and a JSON string with the
//! same text are the same key, so inputs of both kinds can be joined. What is no string in JSON
//! begins with a byte 0xFF, which no text begins with: the number 1 and the string "1" are two keys.
//! Numbers are taken by their text, so 1 and 1.0 differ and no digit of a long number is lost. Arrays
//! and objects are written canonically first.
//!
//! Several fields are prefixed by their lengths, as [`lately::Digester::digest_fields`] does. If
//! one of them is missing the key is: half a key would merge what is not the same.

use super::value::Value;
use super::{epc, spelling};
use crate::scan::canonical;

/// How the text of a key field becomes the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyFormat {
    /// As it is.
    #[default]
    Text,
    /// What can be read as an EPC, in any spelling, becomes the EPC itself; other text stays.
    Epc,
    /// What can be read as an address of IPv4 or IPv6 becomes that address, and one of IPv4 that is
    /// mapped into IPv6 becomes one of IPv4; other text stays.
    Ip,
    /// What can be read as a decimal number becomes its exact value, whether it is text or a number of
    /// JSON; other text stays.
    Number,
    /// What can be read as a UUID becomes the UUID; other text stays.
    Uuid,
}

impl KeyFormat {
    /// Every format with its name.
    pub const NAMES: [(&'static str, Self); 5] = [
        ("text", Self::Text),
        ("epc", Self::Epc),
        ("ip", Self::Ip),
        ("number", Self::Number),
        ("uuid", Self::Uuid),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, format)| *format == self).map_or("text", |found| found.0)
    }
}

/// What a text goes through before it is a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) format: KeyFormat,
    /// Letters of either case are the same.
    pub(crate) fold: bool,
}

impl Form {
    /// Whether texts are keys as they are.
    pub(crate) fn is_plain(self) -> bool {
        self == Self::default()
    }

    pub(crate) fn is_epc(self) -> bool {
        self.format == KeyFormat::Epc
    }

    fn text(self, text: &[u8], key: &mut Vec<u8>) {
        let is_read = match self.format {
            KeyFormat::Text => false,
            KeyFormat::Epc => {
                let start = key.len();
                // What is no EPC is written all the same, and marked as text.
                if !epc::normalise(text, key) && self.fold {
                    let text = key.split_off(start);
                    spelling::fold(&text, key);
                }
                true
            }
            KeyFormat::Ip => spelling::ip(text, key),
            KeyFormat::Number => spelling::number(text, key),
            KeyFormat::Uuid => spelling::uuid(text, key),
        };
        match is_read {
            true => {}
            false if self.fold => spelling::fold(text, key),
            false => key.extend_from_slice(text),
        }
    }
}

/// The name that stands for the whole record in a list of key fields.
pub const WHOLE_RECORD: &str = ".";

/// The name that stands for all fields in a list of key fields, after which those that are left out
/// follow, each with a `-` before its name.
pub const ALL_FIELDS: &str = "*";

/// What the key of a value of JSON that is no string begins with; no text does.
pub(crate) const NO_TEXT: u8 = 0xFF;

/// Writes one field's length and then what `write` writes.
pub(crate) fn prefixed(key: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = key.len();
    key.extend_from_slice(&[0; 8]);
    write(key);
    let length = (key.len() - at - 8) as u64;
    if let Some(place) = key[at..].first_chunk_mut() {
        *place = length.to_le_bytes();
    }
}

/// Appends the key bytes of one value.
pub(crate) fn append(value: Value<'_>, form: Form, key: &mut Vec<u8>) {
    match value {
        Value::Missing(_) => {}
        Value::Text(text) => form.text(text, key),
        Value::Json(list) if form.is_epc() && list.first() == Some(&b'[') => {
            append_epcs(list, key);
        }
        Value::Number(text) if form.format == KeyFormat::Number => form.text(text, key),
        Value::Json(text) if form.fold => {
            key.push(NO_TEXT);
            spelling::fold(text, key);
        }
        Value::Number(text) | Value::Json(text) => {
            key.push(NO_TEXT);
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
            key.push(NO_TEXT);
            for epc in &epcs {
                prefixed(key, |key| key.extend_from_slice(epc));
            }
        }
        _ => {
            key.push(NO_TEXT);
            key.extend_from_slice(list);
        }
    }
}
