//! What a record has for a field.

use super::key::Form;
use super::time::Time;

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

    /// The moment that the field in this place is, if it is one and no text.
    fn moment(&self, _slot: usize) -> Option<Time> {
        None
    }

    /// The whole record.
    fn whole<'r>(&'r self, spare: &'r mut Vec<u8>) -> Value<'r>;

    /// All columns from this place on.
    fn rest<'r>(&'r self, _first: usize, _form: Form, _spare: &'r mut Vec<u8>) -> Value<'r> {
        Value::Missing("its records have no columns")
    }

    /// All fields but those in these places, which may be missing.
    fn all_but<'r>(&'r self, slots: &[usize], _form: Form, spare: &'r mut Vec<u8>) -> Value<'r> {
        match slots {
            [] => self.whole(spare),
            _ => Value::Missing("no field can be left out of records of this format"),
        }
    }
}
