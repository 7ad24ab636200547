//! Keys as bytes: what the program reads from a record is what Python has as an object.

use crate::errors::{Kind, raise};
use lately::{Digest, Digester};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString, PyTuple};

/// Calls `take` with the bytes of a key of one part; `None` for one that is missing.
fn with_bytes<T>(key: &Bound<'_, PyAny>, take: impl FnOnce(&[u8]) -> T) -> PyResult<Option<T>> {
    if let Ok(text) = key.cast::<PyString>() {
        return Ok(Some(take(text.to_str()?.as_bytes())));
    }
    if let Ok(bytes) = key.cast::<PyBytes>() {
        return Ok(Some(take(bytes.as_bytes())));
    }
    if key.is_none() {
        return Ok(None);
    }
    if key.is_instance_of::<PyBool>() {
        return Err(no_key(key));
    }
    if let Some(number) = number(key) {
        return Ok(Some(take(itoa::Buffer::new().format(number).as_bytes())));
    }
    if key.is_instance_of::<PyInt>() {
        return Ok(Some(take(key.str()?.to_str()?.as_bytes())));
    }
    // What pandas has where a text is missing.
    if let Ok(float) = key.cast::<PyFloat>()
        && float.value().is_nan()
    {
        return Ok(None);
    }
    match key.get_type().name()?.to_str()? {
        "NAType" | "NaTType" => Ok(None),
        _ => Err(no_key(key)),
    }
}

/// A whole number, of Python or of NumPy.
fn number(key: &Bound<'_, PyAny>) -> Option<i128> {
    if key.is_instance_of::<PyFloat>() {
        return None;
    }
    if let Ok(number) = key.extract::<i64>() {
        return Some(number.into());
    }
    key.extract::<u64>().ok().map(Into::into)
}

fn no_key(key: &Bound<'_, PyAny>) -> PyErr {
    let name = key.get_type().name().map_or_else(|_| "this".into(), |name| name.to_string());
    raise(
        Kind::Key,
        format!("a key is str, bytes, int, None or a tuple of these, not {name}: give it as text"),
    )
}

/// The bytes of a part of a key; `None` for one that is missing.
pub(crate) fn text(part: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
    with_bytes(part, <[u8]>::to_vec)
}

/// The digest of a key; `None` where it, or a part of it, is missing.
pub(crate) fn digest(key: &Bound<'_, PyAny>, digester: &Digester) -> PyResult<Option<Digest>> {
    let Ok(parts) = key.cast::<PyTuple>() else {
        return with_bytes(key, |bytes| digester.digest(bytes));
    };
    let mut fields = Vec::with_capacity(parts.len());
    for part in parts.iter() {
        let Some(bytes) = text(&part)? else { return Ok(None) };
        fields.push(bytes);
    }
    // One field alone is its bytes, as in the program.
    Ok(Some(match &*fields {
        [field] => digester.digest(field),
        fields => digester.digest_fields(fields.iter().map(Vec::as_slice)),
    }))
}
