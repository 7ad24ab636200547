//! Broken, foreign and odd input: never a panic, never the end of the stream, nothing lost.
#![expect(non_snake_case, reason = "named after the acceptance cases")]

use super::{batches, drip, groups, keyed, kinds, options, read, refusal, seen, time};
use crate::options::{Format, Options};
use crate::read::{Fate, Parser, Source, SourceErrorKind};
use crate::record::Kind;
use std::io::{Read, Write};
use std::path::PathBuf;

/// A file that is there as long as this is.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("lately-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        Self(path)
    }

    fn name(&self) -> String {
        self.0.to_str().unwrap().into()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn case_I1_byte_order_mark_and_carriage_returns() {
    let found = read("\u{feff}id,v\r\na,1\r\na,2\n", &keyed(Format::Auto, &["id"]));
    assert_eq!(kinds(&found), [Kind::Header, Kind::Keyed, Kind::Keyed]);
    assert_eq!(groups(&found), [1, 1]);
    // The last column has no carriage return in it either.
    assert_eq!(groups(&read("v,id\r\n1,a\r\n2,a\n", &keyed(Format::Auto, &["id"]))), [1, 1]);
    assert_eq!(groups(&read("a\r\na\na", &options(Format::Auto))), [1, 1, 1]);
    assert_eq!(groups(&read("\u{feff}a\na\n", &options(Format::Auto))), [1, 1]);
    assert_eq!(groups(&read("\u{feff}{\"id\":1}\n", &keyed(Format::Auto, &["id"]))), [1]);
    // A carriage return elsewhere is text.
    assert_eq!(groups(&read("a\rb\nab\n", &options(Format::Auto))), [1, 2]);
}

#[test]
fn case_I2_an_overlong_line_is_one_dead_letter() {
    let long = "x".repeat(111_975);
    let limit = Options { max_line: 102_400, ..options(Format::Auto) };
    for end in ["\n", "\r\n"] {
        for most in [1000, 1 << 20] {
            let text = format!("before\n{long}{end}after\n");
            let found = seen(&batches(&mut drip(text.as_bytes(), most, &limit)).unwrap());
            assert_eq!(kinds(&found), [Kind::Keyed, Kind::Invalid, Kind::Keyed]);
            assert!(found[1].reason.contains("111975 bytes"), "{}", found[1].reason);
            assert_eq!(found[1].bytes, [&long.as_bytes()[..102_400], end.as_bytes()].concat());
            assert_eq!((found[1].line, found[2].line), (1, 2));
        }
    }
    // At the limit is within it.
    let fits = format!("{}\r\nb\n", "x".repeat(102_400));
    for most in [999, 1 << 20] {
        let found = seen(&batches(&mut drip(fits.as_bytes(), most, &limit)).unwrap());
        assert_eq!(kinds(&found), [Kind::Keyed, Kind::Keyed]);
    }
}

#[test]
fn case_I2_overlong_records_of_every_format() {
    let big = "y".repeat(5000);
    let cases = [
        (Format::Csv, format!("id,v\n1,{big}\n2,b\n")),
        (Format::Csv, format!("id,v\n1,\"{big}\"\n2,b\n")),
        (Format::Tsv, format!("id\tv\n1\t{big}\n2\tb\n")),
        (Format::Ndjson, format!("{{\"id\":0}}\n{{\"id\":1,\"v\":\"{big}\"}}\n{{\"id\":2}}\n")),
        (Format::Zeek, format!("#fields\tid\tv\n1\t{big}\n2\tb\n")),
    ];
    for (format, text) in cases {
        let limit = Options { max_line: 1000, ..keyed(format, &["id"]) };
        for most in [10, 700, 1 << 20] {
            let found = seen(&batches(&mut drip(text.as_bytes(), most, &limit)).unwrap());
            assert_eq!(kinds(&found)[1..], [Kind::Invalid, Kind::Keyed], "{format}");
            assert_eq!(found[1].bytes.len(), 1001);
        }
    }
}

#[test]
fn case_I3_bytes_that_are_no_text_are_kept() {
    let found = read(b"\xFF\xFE\n1\xA0000\n\xA0\n", &options(Format::Auto));
    assert_eq!(kinds(&found), [Kind::Keyed; 3]);
    assert_eq!(found[1].bytes, b"1\xA0000\n");
    let found = read(b"id,v\n\xA0,\xFF\n\xA0,\xFE\n", &keyed(Format::Auto, &["id"]));
    assert_eq!(groups(&found), [1, 1]);
    let columns = read(b"1 2\xA0000 5\n", &keyed(Format::Columns, &["2"]));
    assert_eq!(columns[0].digest, read(b"2\xA0000", &options(Format::Lines))[0].digest);
    // JSON is UTF-8 by definition.
    let found = read(b"{\"id\":\"\xA0\"}\n{\"id\":\"a\"}\n", &keyed(Format::Ndjson, &["id"]));
    assert_eq!(kinds(&found), [Kind::Invalid, Kind::Keyed]);
    assert_eq!(found[0].reason, "not UTF-8 at byte 8");
    assert_eq!(found[0].bytes, b"{\"id\":\"\xA0\"}\n");
}

#[test]
fn case_I4_a_broken_json_line_is_a_dead_letter() {
    let text =
        "{\"id\":\"a\", broken\n{\"id\":\"b\"}\n{\"id\":\"c\"} x\n{\"id\":\"d\"\n\n{\"id\":01}\n";
    let found = read(text, &keyed(Format::Auto, &["id"]));
    let (dead, fine) = (Kind::Invalid, Kind::Keyed);
    assert_eq!(kinds(&found), [dead, fine, dead, dead, Kind::Aside, dead]);
    assert_eq!(found[0].reason, "not valid JSON at byte 12: a member's name in quotes expected");
    assert_eq!(found[2].reason, "not valid JSON at byte 12: text after the end of the value");
    assert_eq!(found[5].line, 5);
}

#[test]
fn case_I4_a_row_with_too_many_or_few_fields_is_a_dead_letter() {
    for text in ["a,b\n1,2,3\n1\n1,2\n\n", "a\tb\n1\t2\t3\n1\n1\t2\n\n"] {
        let found = read(text, &keyed(Format::Auto, &["a"]));
        let dead = Kind::Invalid;
        assert_eq!(kinds(&found), [Kind::Header, dead, dead, Kind::Keyed, Kind::Aside]);
        assert_eq!(found[1].reason, "3 fields where the table has 2 columns");
        assert_eq!(found[2].reason, "1 field where the table has 2 columns");
    }
}

#[test]
fn case_I5_empty_input_and_a_last_line_without_its_end() {
    assert!(read("", &options(Format::Auto)).is_empty());
    assert!(read("", &keyed(Format::Auto, &["id"])).is_empty());
    assert!(read("", &keyed(Format::Csv, &["id"])).is_empty());
    assert!(read("\u{feff}", &keyed(Format::Csv, &["id"])).is_empty());
    // Blanks alone are no reason to miss a field.
    assert_eq!(kinds(&read("\n \n", &keyed(Format::Auto, &["id"]))), [Kind::Aside; 2]);
    assert!(refusal("\n", &keyed(Format::Csv, &["id"])).contains("no header line"));
    for (format, text) in [
        (Format::Lines, "a\nb"),
        (Format::Csv, "id\nb"),
        (Format::Csv, "id\n\"b\""),
        (Format::Ndjson, "{\"id\":1}\n{\"id\":2}"),
    ] {
        let key: &[&str] = if format == Format::Lines { &[] } else { &["id"] };
        let found = read(text, &keyed(format, key));
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].kind, Kind::Keyed);
        assert_eq!(found.iter().map(|r| &*r.bytes).collect::<Vec<_>>().concat(), text.as_bytes());
    }
}

#[test]
fn quoted_fields_hold_separators_quotes_and_line_ends() {
    let text = "id,v\n\"a,\"\"b\"\"\nc\",1\n\"a,\"\"b\"\"\nc\",2\r\nx\"y,3\n";
    for most in 1..text.len() {
        let found =
            seen(&batches(&mut drip(text.as_bytes(), most, &keyed(Format::Csv, &["id"]))).unwrap());
        assert_eq!(groups(&found), [1, 1, 2]);
        assert_eq!(found[1].bytes, b"\"a,\"\"b\"\"\nc\",1\n");
        assert_eq!(found[3].line, 5);
    }
}

#[test]
fn an_unclosed_quote_costs_its_line() {
    let rest: String = (0..2000).map(|n| format!("{n},plain\n")).collect();
    let text = format!("id,v\n1,\"lost\n{rest}");
    for most in [7, 100, 1 << 20] {
        let limit = Options { max_line: 1000, ..keyed(Format::Csv, &["id"]) };
        let found = seen(&batches(&mut drip(text.as_bytes(), most, &limit)).unwrap());
        assert_eq!(found.len(), 2002);
        assert_eq!(found[1].kind, Kind::Invalid);
        assert_eq!(found[1].bytes, b"1,\"lost\n");
        assert!(found[2..].iter().all(|record| record.kind == Kind::Keyed));
    }
    // Found out at the next quoted field, or at the end.
    for text in ["id,v\n1,\"lost\n2,\"b\"\n3,\"c\"\n", "id,v\n1,\"lost\n2,b\n3,c"] {
        let found = read(text, &keyed(Format::Csv, &["id"]));
        assert_eq!(kinds(&found)[1..], [Kind::Invalid, Kind::Keyed, Kind::Keyed]);
    }
}

#[test]
fn a_missing_time_is_a_dead_letter_where_asked() {
    let timed =
        Options { time: vec!["t".into()], drop_untimed: true, ..keyed(Format::Auto, &["id"]) };
    let text = "{\"id\":1,\"t\":5}\n{\"id\":1}\n{\"id\":1,\"t\":\"soon\"}\n{\"t\":7}\n{\"t\":[]}\n";
    let found = read(text, &timed);
    let dead = Kind::Invalid;
    assert_eq!(kinds(&found), [Kind::Keyed, dead, dead, Kind::KeyMissing, dead]);
    assert_eq!(found[1].reason, "field `t`: no time: absent");
    assert_eq!(found[2].reason, "field `t`: `soon` is not a time");
    assert_eq!((found[0].time, found[3].time), (time(5), time(7)));
    let found = read("id,t\na,5\na,\n", &timed);
    assert_eq!(kinds(&found), [Kind::Header, Kind::Keyed, Kind::Invalid]);
    // Else it is judged without.
    let timed = Options { drop_untimed: false, ..timed };
    let found = read("id,t\na,5\na,\n,soon\na,never\n", &timed);
    let untimed = Kind::Untimed;
    assert_eq!(kinds(&found), [Kind::Header, Kind::Keyed, untimed, untimed, untimed]);
    assert_eq!(found[1].digest, found[2].digest);
    assert!(found[2].time.is_none() && found[4].time.is_none());
    assert!(found[4].reason.contains("`never` is not a time"));
}

#[test]
fn change_and_rank() {
    let extras = Options {
        change: vec!["v".into()],
        rank: Some("rssi".into()),
        ..keyed(Format::Auto, &["id"])
    };
    let text = "{\"id\":1,\"v\":1,\"rssi\":-5.5}\n{\"id\":1,\"v\":2,\"rssi\":\"-4\"}\n{\"id\":1}\n";
    let found = read(text, &extras);
    assert_ne!(found[0].extra.change, found[1].extra.change);
    assert_eq!(found[2].extra.change, 0);
    let ranks: Vec<_> = found.iter().map(|record| record.extra.rank).collect();
    assert_eq!(ranks, [Some(-5.5), Some(-4.0), None]);
    let found = read("id,v,rssi\n1,a,NaN\n\n1,,2\n", &extras);
    assert_eq!(found.len(), 4);
    assert_eq!(found[1].extra.rank, None);
    assert_ne!(found[3].extra.change, 0, "empty is a value");
}

#[test]
fn foreign_encodings_are_refused_by_name() {
    let error = refusal(b"\xFF\xFEa\0\n\0", &options(Format::Auto));
    assert!(error.contains("UTF-16"), "{error}");
    assert!(refusal(b"\xFE\xFF\0a", &options(Format::Auto)).contains("UTF-16"));
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn compressed_files_of_several_parts() {
    let parts = [b"a\nb".as_slice(), b"c\n", b"a\n"];
    let gzip = parts.map(gzip).concat();
    let zstd = parts.map(|part| zstd::encode_all(part, 1).unwrap()).concat();
    for bytes in [gzip, zstd] {
        for most in [1, 3, 1 << 20] {
            let found = seen(&batches(&mut drip(&bytes, most, &options(Format::Auto))).unwrap());
            assert_eq!(groups(&found), [1, 2, 1]);
            assert_eq!(found[1].bytes, b"bc\n");
        }
    }
}

#[test]
fn a_truncated_file_keeps_what_was_read_and_the_next_one_follows() {
    let text: String = (0..20_000).map(|n| format!("{}\n", n * n)).collect();
    let whole = gzip(text.as_bytes());
    let cut = Temporary::new("cut.gz", &whole[..whole.len() / 2]);
    let zstd = zstd::encode_all(text.as_bytes(), 1).unwrap();
    let cut_zstd = Temporary::new("cut.zst", &zstd[..zstd.len() - 5]);
    let next = Temporary::new("next", b"next\n");
    for cut in [cut, cut_zstd] {
        let names = vec!["/no such file".into(), cut.name(), next.name()];
        let mut source = Source::new(names, options(Format::Auto));
        let error = source.next_chunk(Vec::new()).unwrap_err();
        assert!(matches!(error.kind, SourceErrorKind::Open(_)));
        assert!(error.to_string().contains("/no such file"));
        let (mut bytes, mut torn) = (Vec::new(), 0);
        let error = loop {
            match source.next_chunk(Vec::new()) {
                Ok(Some(chunk)) => {
                    torn += usize::from(chunk.fate == Fate::Torn);
                    bytes.extend(chunk.bytes);
                }
                Ok(None) => panic!("no error"),
                Err(error) => break error,
            }
        };
        assert!(text.as_bytes().starts_with(&bytes));
        assert!(torn <= 1);
        assert!(error.to_string().contains(&cut.name()), "{error}");
        assert_eq!(source.next_chunk(Vec::new()).unwrap().unwrap().bytes, b"next\n");
        assert!(source.next_chunk(Vec::new()).unwrap().is_none());
    }
}

#[test]
fn a_directory_is_no_file() {
    let name = std::env::temp_dir().to_str().unwrap().to_owned();
    let mut source = Source::new(vec![name], options(Format::Auto));
    assert!(matches!(source.next_chunk(Vec::new()).unwrap_err().kind, SourceErrorKind::Open(_)));
}

/// An input that fails in the midst of a record.
struct Failing(Option<&'static [u8]>);

impl Read for Failing {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let bytes = self.0.take().ok_or_else(|| std::io::Error::other("gone"))?;
        buffer[..bytes.len()].copy_from_slice(bytes);
        Ok(bytes.len())
    }
}

#[test]
fn a_record_torn_by_an_error_is_a_dead_letter() {
    for (format, text) in [
        (Format::Lines, b"a\nb".as_slice()),
        (Format::Csv, b"id\n\"b\nc"),
        (Format::Json, b"{\"id\":1}{\"id\":"),
    ] {
        let key: &[&str] = if format == Format::Lines { &[] } else { &["id"] };
        let mut source =
            Source::from_reader("pipe", Box::new(Failing(Some(text))), keyed(format, key));
        let mut parser = Parser::new();
        let mut found = Vec::new();
        let error = loop {
            match source.next_chunk(Vec::new()) {
                Ok(chunk) => {
                    let mut batch = crate::record::Batch::default();
                    parser.parse(chunk.unwrap(), &mut batch);
                    found.push(batch);
                }
                Err(error) => break error,
            }
        };
        let found = seen(&found);
        assert_eq!(found.len(), 2, "{format}");
        assert_eq!(found[1].kind, Kind::Invalid);
        assert!(error.to_string().contains("cannot read pipe any further: gone"));
    }
}

#[test]
fn each_input_has_its_own_header() {
    let one = Temporary::new("one.csv", b"id,v\na,1\n");
    let two = Temporary::new("two.csv", b"v,x,id\r\n1,2,a\r\n");
    let three = Temporary::new("three.csv", b"v\n1\n");
    let names = vec![one.name(), two.name(), three.name()];
    let mut source = Source::new(names, keyed(Format::Csv, &["id"]));
    let mut parser = Parser::new();
    let mut digests = Vec::new();
    for expected in 0..2 {
        let chunk = source.next_chunk(Vec::new()).unwrap().unwrap();
        let mut batch = crate::record::Batch::default();
        parser.parse(chunk, &mut batch);
        assert_eq!(batch.source, expected);
        assert_eq!(batch.records[0].kind, Kind::Header);
        digests.push(batch.records[1].digest);
    }
    assert_eq!(digests[0], digests[1]);
    let error = source.next_chunk(Vec::new()).unwrap_err();
    assert!(matches!(error.kind, SourceErrorKind::Setup(_)));
    assert_eq!(error.source, 2);
}

/// Gives its pieces one by one and does not bear being asked for more.
struct Slow(Vec<&'static [u8]>);

impl Read for Slow {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        assert!(!self.0.is_empty(), "this would wait for ever");
        let piece = self.0.remove(0);
        buffer[..piece.len()].copy_from_slice(piece);
        Ok(piece.len())
    }
}

#[test]
fn a_slow_pipe_is_not_held_back() {
    type Case = (Options, &'static [&'static [u8]], &'static [u8]);
    let cases: [Case; 6] = [
        (options(Format::Auto), &[b"a\nb"], b"a\n"),
        (options(Format::Auto), &[b"\x28", b"\n"], b"\x28\n"),
        (keyed(Format::Auto, &["id"]), &[b"{\"id\":1}\n"], b"{\"id\":1}\n"),
        (keyed(Format::Auto, &["id"]), &[b"i", b"d\n1\n\"2\n"], b"id\n1\n"),
        (keyed(Format::Json, &["id"]), &[b"{\n\"id\":1", b"\n}", b"{}["], b"{\n\"id\":1\n}"),
        (keyed(Format::Auto, &["a"]), &[b"#fields\ta\n", b"1\n"], b"#fields\ta\n"),
    ];
    for (options, pieces, first) in cases {
        let mut source = Source::from_reader("pipe", Box::new(Slow(pieces.to_vec())), options);
        let chunk = source.next_chunk(Vec::new()).unwrap().unwrap();
        assert_eq!(chunk.bytes, first);
    }
}

#[test]
fn an_endless_line_is_never_held() {
    let endless = std::io::repeat(b'x').take(300 << 20).chain(b"\nok\n".as_slice());
    let mut source = Source::from_reader("pipe", Box::new(endless), options(Format::Auto));
    let chunk = source.next_chunk(Vec::new()).unwrap().unwrap();
    assert_eq!(chunk.fate, Fate::Overlong(300 << 20));
    assert_eq!(chunk.bytes.len(), (1 << 20) + 1);
    assert_eq!(source.next_chunk(Vec::new()).unwrap().unwrap().bytes, b"ok\n");
}

#[test]
fn a_header_torn_by_an_error_is_a_dead_letter() {
    let mut source =
        Source::from_reader("pipe", Box::new(Failing(Some(b"i"))), keyed(Format::Csv, &["id"]));
    let chunk = source.next_chunk(Vec::new()).unwrap().unwrap();
    assert_eq!((chunk.fate, &*chunk.bytes), (Fate::Torn, b"i".as_slice()));
    assert!(matches!(source.next_chunk(Vec::new()).unwrap_err().kind, SourceErrorKind::Read(_)));
}
