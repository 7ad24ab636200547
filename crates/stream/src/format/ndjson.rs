//! A JSON value a line.

use super::head::Signs;
use super::layout::Description;
use super::values;

pub(crate) const FORMAT: Description = Description {
    signs: Signs::Value(|_| true),
    open: values::open_lines,
    key: &[],
    time: &[],
    profile: None,
    sample: ("{\"id\":\"a\"}\n{\"id\":1}\n", "id"),
};
