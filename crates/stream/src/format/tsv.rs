//! Tab-separated values with a header line; quotes have no meaning.

use super::head::Signs;
use super::layout::Description;
use super::table;

pub(crate) const FORMAT: Description = Description {
    signs: Signs::Row(|line, _| Some(line.contains(&b'\t'))),
    open: |head| table::open(head, b'\t', false, !head.no_header),
    key: &[],
    time: &[],
    profile: None,
    sample: ("id\tv\na\t1\nb\t2\n", "id"),
};
