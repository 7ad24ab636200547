//! Zeek's TSV logs, with their `#fields` lines.

use super::head::{Head, Signs};
use super::layout::Description;
use super::table::{Directives, Split, Table, directives};
use crate::record::Heading;

pub(crate) const FORMAT: Description = Description {
    signs: Signs::Line(|line, _| {
        Some(line.starts_with(b"#separator") || line.starts_with(b"#fields"))
    }),
    open: |head| DIRECTIVES.open(head),
    key: &[],
    time: &["ts"],
    profile: None,
    sample: ("#separator \\x09\n#fields\tid\tts\n#types\tstring\ttime\na\t5\nb\t6\n", "id"),
};

static DIRECTIVES: Directives = Directives {
    begin: &["\n#separator", "\n#fields"],
    read,
    missing: "no `#fields` line before the first row: not a Zeek log",
    headings: &[
        Heading { begins: b"#fields", separator: None, name: "lately" },
        Heading { begins: b"#types", separator: None, name: "string" },
    ],
};

fn read(head: &Head<'_>, before: Option<&Table>) -> Option<Table> {
    let mut separator = before.map_or(b'\t', |table| table.separator);
    let before = before.and_then(|table| table.unset.as_deref());
    let mut unset = before.unwrap_or(b"-").to_vec();
    for line in directives(head.bytes) {
        let after = |name: &[u8]| {
            let rest = line.strip_prefix(name)?;
            rest.strip_prefix(&[separator]).or_else(|| rest.strip_prefix(b" "))
        };
        if let Some(text) = after(b"#separator") {
            let hex = text.strip_prefix(b"\\x").and_then(|hex| std::str::from_utf8(hex).ok());
            let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
            separator = byte.or(text.first().copied()).unwrap_or(separator);
        } else if let Some(text) = after(b"#unset_field") {
            unset = text.to_vec();
        } else if let Some(fields) = after(b"#fields") {
            let name = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
            return Some(Table {
                split: Split::At(separator),
                separator,
                names: Some(fields.split(|c| *c == separator).map(name).collect()),
                header: false,
                lead: Vec::new(),
                unset: Some(unset),
                directives: Some(&DIRECTIVES),
                lenient: false,
                longest: head.max_line,
            });
        }
    }
    None
}
