//! What is added to records that are forwarded: the class of each, or the number of its copies.

use crate::judge::class::Class;
use crate::record::{Batch, Heading, Mark, Record};
use std::borrow::Cow;

/// What is added, and how it is named where there is a header line.
#[derive(Default)]
pub(super) struct Added {
    /// Records are marked with their classes.
    pub(super) marks: bool,
    /// Records have the number of their copies, which is called this.
    pub(super) count: Option<String>,
    /// The input at hand has a column of marks already: its marks are replaced.
    is_marked: bool,
}

impl Added {
    pub(super) fn is_nothing(&self) -> bool {
        !self.marks && self.count.is_none()
    }

    /// An input with this header line begins.
    pub(super) fn begin(&mut self, header: &[u8], mark: Mark) {
        self.is_marked = self.marks && mark.is_named_in(header);
    }

    /// The header line of the input at hand, with a name for what is added.
    pub(super) fn to_header<'l>(&self, line: &'l [u8], mark: Mark) -> Cow<'l, [u8]> {
        match &self.count {
            Some(name) => mark.append(line, name, name).into(),
            None if self.marks && !self.is_marked => mark.apply(line, "lately").into(),
            None => line.into(),
        }
    }

    /// An aside; one that names or types the columns names or types what is added, too.
    pub(super) fn to_aside<'b>(
        &self,
        batch: &'b Batch,
        record: &Record,
        mark: Mark,
    ) -> Cow<'b, [u8]> {
        let line = batch.bytes_of(record);
        let named = |heading: &Heading| Some((heading.mark_of(line, mark)?, heading.name));
        match batch.headings.iter().find_map(named).filter(|_| !self.is_nothing()) {
            Some((mark, name)) if self.count.is_some() => {
                // Of the lines that describe columns one has their names, and one may have their types.
                let count = self.count.as_deref().filter(|_| name == "lately").unwrap_or("count");
                mark.append(line, "", count).into()
            }
            Some((mark, name)) => mark.apply(line, name).into(),
            None => line.into(),
        }
    }

    /// A record of this class, of which there are so many copies.
    pub(super) fn to_record<'r>(
        &self,
        record: &'r [u8],
        class: Class,
        copies: u64,
        mark: Mark,
    ) -> Cow<'r, [u8]> {
        if class == Class::Aside {
            return record.into();
        }
        if let Some(name) = &self.count {
            return mark.append(record, name, &copies.to_string()).into();
        }
        let has_mark = self.is_marked || !matches!(mark, Mark::Column(_));
        if self.marks && has_mark {
            mark.apply(&mark.take_off(record), class.name()).into()
        } else if self.marks {
            mark.apply(record, class.name()).into()
        } else {
            record.into()
        }
    }
}
