//! Comma-separated values with a header line; quoted fields may hold line ends (RFC 4180).

use super::head::{Head, Signs};
use super::layout::Description;
use super::table;

pub(crate) const FORMAT: Description = Description {
    // Any line can be the header of one column.
    signs: Signs::Row(|_, _| Some(true)),
    open: |head| table::open(head, b',', true, !head.no_header),
    key: &[],
    time: &[],
    profile: None,
    sample: ("id,v\na,1\n\"b\",2\n", "id"),
};

/// Whether the header names these columns, in any order.
pub(crate) fn names_columns(line: &[u8], head: &Head<'_>, columns: &[&str]) -> bool {
    if head.no_header || head.delimiter.is_none() && line.contains(&b'\t') {
        return false;
    }
    let delimiter = head.delimiter.unwrap_or(b',');
    let names: Vec<_> = line.split(|c| *c == delimiter).collect();
    columns.iter().all(|column| names.contains(&column.as_bytes()))
}
