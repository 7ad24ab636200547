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

use super::epc;
use super::value::Value;
use crate::scan::canonical;

/// How the text of a key field becomes the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyFormat {
    /// As it is.
    #[default]
    Text,
    /// What can be read as an EPC, in any spelling, becomes the EPC itself; other text stays.
    Epc,
}

/// The name that stands for the whole record in a list of key fields.
pub const WHOLE_RECORD: &str = ".";

/// Writes one field's length and then what `write` writes.
pub(super) fn prefixed(key: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = key.len();
    key.extend_from_slice(&[0; 8]);
    write(key);
    let length = (key.len() - at - 8) as u64;
    if let Some(place) = key[at..].first_chunk_mut() {
        *place = length.to_le_bytes();
    }
}

/// Appends the key bytes of one value.
pub(super) fn append(value: Value<'_>, epc: bool, key: &mut Vec<u8>) {
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
