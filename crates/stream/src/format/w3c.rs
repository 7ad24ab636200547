//! The W3C extended log format, as IIS and CloudFront write it.
//!
//! Directives are lines that begin with `#`; `#Fields:` names the columns and comes again whenever
//! the server restarts. Fields are separated by blanks (IIS), and those in quotes may hold some; or
//! by tabs (CloudFront), whose `#Fields:` line is separated by blanks all the same. `-` is a field
//! without a value.
//!
//! Source: P. M. Hallam-Baker, B. Behlendorf, "Extended Log File Format", W3C Working Draft
//! WD-logfile-960323.

use super::head::{Head, Signs};
use super::layout::Description;
use super::table::{Directives, Split, Table, directives, first_row};
use crate::record::Heading;
use memchr::memchr;

pub(crate) const FORMAT: Description = Description {
    signs: Signs::Line(|line, head| {
        if !DIRECTIVE.iter().any(|directive| line.starts_with(directive)) {
            return Some(false);
        }
        // Other files begin with such a comment, too: `#Fields:` decides.
        let found = directives(head.bytes).any(|line| line.starts_with(FIELDS));
        let more = !found && !head.ended && first_row(head).is_none();
        if more { None } else { Some(found) }
    }),
    open: |head| DIRECTIVES.open(head),
    key: &[],
    time: &["date", "time"],
    profile: None,
    sample: ("#Version: 1.0\n#Fields: date time id\n1 2 a\n1 3 \"b b\"\n", "id"),
};

const FIELDS: &[u8] = b"#Fields:";

/// What a log may begin with.
const DIRECTIVE: [&[u8]; 7] =
    [FIELDS, b"#Version:", b"#Software:", b"#Date:", b"#Start-Date:", b"#End-Date:", b"#Remark:"];

static DIRECTIVES: Directives = Directives {
    begin: &["\n#Fields:"],
    read,
    missing: "no `#Fields:` line before the first row: not a W3C extended log",
    headings: &[Heading { begins: FIELDS, separator: Some(b' '), name: "lately" }],
};

fn read(head: &Head<'_>, before: Option<&Table>) -> Option<Table> {
    let fields = directives(head.bytes).find_map(|line| line.strip_prefix(FIELDS))?;
    let split = match (before, first_row(head)) {
        (Some(before), _) => before.split,
        (None, Some(row)) if memchr(b'\t', row).is_some() => Split::At(b'\t'),
        // Only a row shows what separates its fields.
        (None, None) if !head.ended => return None,
        (None, _) => Split::Blanks { brackets: false },
    };
    let names = fields.split(u8::is_ascii_whitespace).filter(|name| !name.is_empty());
    Some(Table {
        split,
        separator: if split == Split::At(b'\t') { b'\t' } else { b' ' },
        names: Some(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()),
        header: false,
        lead: Vec::new(),
        unset: Some(b"-".to_vec()),
        directives: Some(&DIRECTIVES),
        lenient: false,
        longest: head.max_line,
    })
}

#[cfg(test)]
mod tests {
    use crate::options::{Format, Options, read_time};
    use crate::read::tests::{batches, drip, groups, keyed, kinds, options, read, refusal, seen};
    use crate::record::stamp::{StampParser, TimeFormat, Zone};
    use crate::record::{Kind, Mark};

    const IIS: &str = "#Software: Microsoft Internet Information Services 10.0\r\n\
        #Version: 1.0\r\n#Date: 2024-05-01 00:00:05\r\n\
        #Fields: date time c-ip cs-username cs(User-Agent)\r\n\
        2024-05-01 00:00:05 10.0.0.1 - Mozilla/5.0+(X11)\r\n\
        2024-05-01 00:00:06 10.0.0.2 - \"Mozilla/5.0 (X11)\"\r\n\
        #Software: Microsoft Internet Information Services 10.0\r\n\
        #Version: 1.0\r\n#Date: 2024-05-02 00:00:00\r\n\
        #Fields: time date c-ip\r\n\
        00:00:07 2024-05-02 10.0.0.1\r\n\
        00:00:08 2024-05-02\r\n";
    const CLOUDFRONT: &str = "#Version: 1.0\n#Fields: date time c-ip x-note\n\
        2024-05-01\t00:00:05\t10.0.0.1\ta b\n2024-05-01\t00:00:05\t10.0.0.1\t-\n";

    /// Options with times as they are read in earnest.
    fn timed(key: &[&str]) -> Options {
        let parser = StampParser::new(TimeFormat::Auto, Zone::default()).unwrap();
        let read_time = read_time(parser);
        Options { time_wanted: true, read_time, ..keyed(Format::Auto, key) }
    }

    #[test]
    fn date_and_time_are_one_time_and_headers_come_again() {
        for most in [1, 7, 100, 1 << 20] {
            let found = seen(&batches(&mut drip(IIS.as_bytes(), most, &timed(&["c-ip"]))).unwrap());
            let (aside, keyed) = (Kind::Aside, Kind::Keyed);
            let expected = [aside, aside, aside, aside, keyed, keyed, aside, aside, aside, aside];
            assert_eq!(kinds(&found)[..10], expected);
            assert_eq!(kinds(&found)[10..], [keyed, Kind::Invalid]);
            assert_eq!(groups(&found), [1, 2, 1, 0]);
            let seconds = |at: usize| {
                found[at].time.and_then(|time| time.nanos()).map(|ns| ns / 1_000_000_000)
            };
            assert_eq!(
                [4, 5, 10].map(seconds),
                [1_714_521_605, 1_714_521_606, 1_714_608_007].map(Some)
            );
            assert_eq!(found[11].reason, "2 fields where the table has 3 columns");
            assert_eq!(
                found.iter().flat_map(|record| record.bytes.clone()).collect::<Vec<_>>(),
                IIS.as_bytes()
            );
        }
    }

    #[test]
    fn a_log_is_recognised_by_its_time_alone() {
        for text in [IIS, CLOUDFRONT] {
            let mut source = drip(text.as_bytes(), 1 << 20, &timed(&[]));
            let schema = source.next_chunk(Vec::new()).unwrap().unwrap().schema;
            assert_eq!(schema.format(), Format::W3c);
            assert_eq!(schema.time_fields().collect::<Vec<_>>(), ["date", "time"]);
        }
        // A comment announces it, but no `#Fields:` follows.
        let found = read("#Remark: none\nid\na\na\n", &keyed(Format::Auto, &["1"]));
        assert_eq!(found.len(), 4);
        assert!(refusal("a b\n", &keyed(Format::W3c, &["a"])).contains("#Fields:"));
    }

    #[test]
    fn quotes_tabs_and_values_that_are_not_there() {
        let found = read(IIS, &keyed(Format::Auto, &["cs(User-Agent)"]));
        let plain = read("Mozilla/5.0 (X11)\n", &options(Format::Lines));
        assert_eq!(found[5].digest, plain[0].digest);
        let found = read(IIS, &keyed(Format::Auto, &["cs-username"]));
        assert_eq!(found[4].reason, "field `cs-username`: unset");
        let found = read(CLOUDFRONT, &keyed(Format::Auto, &["x-note"]));
        assert_eq!(kinds(&found)[2..], [Kind::Keyed, Kind::KeyMissing]);
        assert_eq!(found[2].digest, read("a b\n", &options(Format::Lines))[0].digest);
    }

    #[test]
    fn a_column_of_marks_has_a_name() {
        let batches =
            batches(&mut drip(CLOUDFRONT.as_bytes(), 1 << 20, &options(Format::W3c))).unwrap();
        let mark = |line: &[u8]| batches[0].headings[0].mark_of(line, Mark::Column(b'\t'));
        assert_eq!(mark(b"#Fields: date time\n"), Some(Mark::Column(b' ')));
        assert_eq!(mark(b"#Version: 1.0\n"), None);
    }
}
