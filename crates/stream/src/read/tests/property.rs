//! Any bytes, any chunk size: the same records, every byte in one of them, never a panic.

use super::{Seen, batches, drip, keyed, options, seen};
use crate::options::{Format, Options};
use crate::record::Kind;
use proptest::prelude::*;

/// Bytes that mean something to some format, and a few that mean nothing to any.
fn text(alphabet: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        20 => prop::sample::select(alphabet).prop_map(|part| part.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 1..4),
    ];
    prop::collection::vec(part, 0..60).prop_map(|parts| parts.concat())
}

const TABLE: &[&str] =
    &["a", "bc", ",", ",", "\t", "\"", "\"\"", "\n", "\r\n", "\r", "-", "#", "1 2", "\"x\ny\","];
const JSON: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\"id\"",
    "\"id\":1",
    "{\"id\":\"a\"}",
    "\n",
    "\r\n",
    "null",
    "7",
    "{\"id\":[1,\n2]}",
    "[{\"id\":1},\n{\"id\":2}]",
    " ",
    "\u{1e}",
    "é",
];

/// An input of the format, before anything else comes.
fn sample(format: Format) -> (&'static str, Option<&'static str>) {
    match format.description() {
        None => ("", None),
        Some(description) => (description.sample.0, Some(description.sample.1)),
    }
}

fn wanted(format: Format, max: usize, chunk: usize) -> Options {
    let (text, key) = sample(format);
    let key: Vec<_> = key.into_iter().collect();
    // A header that is longer than all limits is refused.
    let max = max + text.len();
    Options { max_line: max, max_document: max * 2, chunk, ..keyed(format, &key) }
}

/// Where records bring no line end, one is added by whoever writes them: it is not compared.
fn plain(mut records: Vec<Seen>) -> Vec<Seen> {
    for record in &mut records {
        while let Some(b'\n' | b'\r') = record.bytes.last() {
            record.bytes.pop();
        }
    }
    records
}

fn same_whatever_the_chunks(format: Format, body: &[u8], max: usize, sizes: (usize, usize)) {
    let bytes = [sample(format).0.as_bytes(), body].concat();
    let whole = wanted(format, max, 1 << 20);
    let Ok(all) = batches(&mut drip(&bytes, 1 << 20, &whole)) else { return };
    let expected = seen(&all);
    let detached = all.iter().any(|batch| batch.detached);
    if expected.iter().all(|record| !record.reason.contains("bytes long")) && !detached {
        let covered: Vec<u8> = expected.iter().flat_map(|r| r.bytes.clone()).collect();
        assert_eq!(covered, bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes));
    }
    let small = wanted(format, max, sizes.1);
    let found = seen(&batches(&mut drip(&bytes, sizes.0, &small)).unwrap());
    assert_eq!(plain(found), plain(expected), "{format}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn tables_are_the_same_in_any_chunks(
        body in text(TABLE),
        max in prop_oneof![Just(1000_usize), 6_usize..40],
        sizes in (1_usize..50, 1_usize..50),
    ) {
        for (_, format) in Format::NAMES {
            same_whatever_the_chunks(format, &body, max, sizes);
        }
    }

    #[test]
    fn json_is_the_same_in_any_chunks(
        body in text(JSON),
        max in prop_oneof![Just(1000_usize), 6_usize..40],
        sizes in (1_usize..50, 1_usize..50),
    ) {
        for (_, format) in Format::NAMES {
            same_whatever_the_chunks(format, &body, max, sizes);
        }
    }

    #[test]
    fn lines_that_end_otherwise_are_the_same_in_any_chunks(
        parts in prop::collection::vec(prop::sample::select(&["a", "b\n", "\0", "\r", "\r\n", "", "ccccccc"][..]), 0..40),
        null in any::<bool>(),
        max in 3_usize..20,
        sizes in (1_usize..20, 1_usize..20),
    ) {
        // Without a line feed where none is to end a line.
        let bytes: String = parts.iter().map(|part| if null { (*part).into() } else { part.replace('\n', "") }).collect();
        let options = |chunk| Options { null, max_line: max, chunk, ..options(Format::Lines) };
        let whole = seen(&batches(&mut drip(bytes.as_bytes(), 1 << 20, &options(1 << 20))).unwrap());
        let small = seen(&batches(&mut drip(bytes.as_bytes(), sizes.0, &options(sizes.1))).unwrap());
        prop_assert_eq!(&small, &whole);
        let end = if null { '\0' } else { '\r' };
        if null || bytes[..bytes.len().min(max + 1)].contains(end) || bytes.len() <= max {
            let texts: Vec<_> = bytes.split_terminator(end).map(|text| text.len() <= max).collect();
            let kept: Vec<_> = whole.iter().map(|record| record.kind == Kind::Keyed).collect();
            prop_assert_eq!(kept, texts);
        }
    }

    #[test]
    fn what_leads_a_table_is_the_same_in_any_chunks(
        lead in prop::collection::vec(prop::sample::select(&["# a\n", "//,\"x\n", "\n", "#\"b\r\n", "A title\n", "#x,y\n"][..]), 0..6),
        body in text(TABLE),
        sizes in (1_usize..30, 1_usize..30),
        named in any::<bool>(),
    ) {
        let bytes = [lead.concat().as_bytes(), b"id,v\na,1\n", &body].concat();
        let options = |chunk| Options { chunk, ..keyed(Format::Csv, &[if named { "id" } else { "1" }]) };
        let whole = seen(&batches(&mut drip(&bytes, 1 << 20, &options(1 << 20))).unwrap());
        let small = seen(&batches(&mut drip(&bytes, sizes.0, &options(sizes.1))).unwrap());
        prop_assert_eq!(&small, &whole);
        if named {
            let at = whole.iter().position(|record| record.kind == Kind::Header).unwrap();
            prop_assert_eq!(&whole[at].bytes[..], b"id,v\n");
            prop_assert!(whole[..at].iter().all(|record| record.kind == Kind::Aside));
        }
    }

    #[test]
    fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for (_, format) in Format::NAMES {
            for fields_wanted in [false, true] {
                let options = Options { fields_wanted, max_line: 64, ..options(format) };
                // Refusing the input is an answer; only a panic is none.
                let _ = batches(&mut drip(&bytes, 7, &options));
            }
        }
    }

    #[test]
    fn lines_of_json_give_their_keys(ids in prop::collection::vec(".*", 1..20), most in 1_usize..99) {
        let text: String =
            ids.iter().map(|id| serde_json::json!({"x": [1], "id": id}).to_string() + "\n").collect();
        let found = seen(&batches(&mut drip(text.as_bytes(), most, &keyed(Format::Auto, &["id"]))).unwrap());
        prop_assert_eq!(found.len(), ids.len());
        for (record, id) in found.iter().zip(&ids) {
            prop_assert_eq!(record.kind, Kind::Keyed);
            prop_assert_eq!(record.digest, lately::Digester::new(0).digest(id.as_bytes()));
        }
    }

    /// Written as RFC 4180 says, any text comes back; csv-core is the judge of the writing.
    #[test]
    fn rows_of_csv_give_their_keys(
        ids in prop::collection::vec("[a-c,\"\r\n ]{0,6}", 1..20),
        most in 1_usize..99,
    ) {
        let quoted = |id: &String| format!("1,\"{}\"\r\n", id.replace('"', "\"\""));
        let text: String = ["n,id\n".into()].into_iter().chain(ids.iter().map(quoted)).collect();
        let found = seen(&batches(&mut drip(text.as_bytes(), most, &keyed(Format::Csv, &["id"]))).unwrap());
        prop_assert_eq!(found.len(), ids.len() + 1);
        for (record, id) in found[1..].iter().zip(&ids) {
            let (mut out, mut ends) = ([0; 64], [0; 8]);
            let mut reader = csv_core::Reader::new();
            let (_, _, written, _) = reader.read_record(&record.bytes, &mut out, &mut ends);
            prop_assert_eq!(&out[1..written], id.as_bytes());
            prop_assert_eq!(record.digest, lately::Digester::new(0).digest(id.as_bytes()));
        }
    }
}
