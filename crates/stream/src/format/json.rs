//! JSON values one after another, over any number of lines; the elements of an array are the records.

use super::head::Signs;
use super::layout::Description;
use super::values::{self, Unpack};

pub(crate) const FORMAT: Description = Description {
    signs: Signs::Value(|kind| kind.documents || kind.is_array),
    open: |head| values::open(head, Unpack::Arrays),
    key: &[],
    time: &[],
    profile: None,
    sample: ("[{\"id\":\"a\"},\n{\"id\":1}]\n", "id"),
};
