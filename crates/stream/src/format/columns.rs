//! Fields separated by runs of blanks, without a header: `1 2 1082040961`. Blanks in quotes and in
//! brackets separate nothing, as in the logs of web servers.
//!
//! Rows may have any number of fields: files of this kind leave the last ones out.

use super::head::Signs;
use super::layout::Description;
use super::table::{Split, Table};
use crate::record::WHOLE_RECORD;
use memchr::{memchr, memchr2};

pub(crate) const FORMAT: Description = Description {
    // Only where all that is asked for are numbers of columns, or what stands for several.
    signs: Signs::Row(|line, head| {
        let numbers = head.called().next().is_none() && !head.names.contains(&WHOLE_RECORD);
        Some(numbers && memchr2(b'\t', b',', line).is_none() && memchr(b' ', line).is_some())
    }),
    open: |head| {
        Ok(Some(Box::new(Table {
            split: Split::Blanks { brackets: true },
            separator: b' ',
            names: None,
            header: false,
            lead: Vec::new(),
            unset: None,
            directives: None,
            lenient: false,
            longest: head.max_line,
        })))
    },
    key: &[],
    time: &[],
    profile: None,
    sample: ("1 2 5\n2 2 6\n", "2"),
};
