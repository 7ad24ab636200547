//! What is one key and what is two.
#![expect(non_snake_case, reason = "named after the acceptance cases")]

use super::{groups, keyed, kinds, options, read, refusal};
use crate::options::{Format, KeyFormat, Options};
use crate::record::Kind;
use lately::Digester;

#[test]
fn case_K1_an_absent_key_passes_and_says_so() {
    let found = read(r#"{"a":1}"#.repeat(3).replace("}{", "}\n{"), &keyed(Format::Auto, &["id"]));
    assert_eq!(kinds(&found), [Kind::KeyMissing; 3]);
    assert_eq!(found[0].reason, "field `id`: absent");
    // No object at all has no members.
    assert_eq!(kinds(&read("7\n[1]\n", &keyed(Format::Ndjson, &["id"]))), [Kind::KeyMissing; 2]);
}

#[test]
fn case_K1_one_missing_field_of_several_is_a_missing_key() {
    let found = read("{\"a\":1,\"b\":2}\n{\"a\":1}\n", &keyed(Format::Auto, &["a", "b"]));
    assert_eq!(kinds(&found), [Kind::Keyed, Kind::KeyMissing]);
}

#[test]
fn case_K2_null_is_missing_and_an_empty_text_is_a_value() {
    let found = read("{\"id\":null}\n".repeat(3), &keyed(Format::Auto, &["id"]));
    assert_eq!(kinds(&found), [Kind::KeyMissing; 3]);
    let found = read("{\"id\":\"\"}\n{\"id\":\"\"}\n", &keyed(Format::Auto, &["id"]));
    assert_eq!(groups(&found), [1, 1]);
    let found = read("id,v\n,1\n,2\n\"\",3\n", &keyed(Format::Auto, &["id"]));
    assert_eq!(groups(&found), [1, 1, 1]);
}

#[test]
fn case_K3_numbers_keep_every_digit() {
    let text =
        "{\"id\":2882429806056571124}\n{\"id\":2882429806056571125}\n{\"id\":1}\n{\"id\":1.0}\n";
    assert_eq!(groups(&read(text, &keyed(Format::Auto, &["id"]))), [1, 2, 3, 4]);
    let nested = "{\"id\":[2882429806056571124]}\n{\"id\":[2882429806056571125]}\n";
    assert_eq!(groups(&read(nested, &keyed(Format::Auto, &["id"]))), [1, 2]);
}

#[test]
fn a_number_is_not_its_text_and_null_not_its_word() {
    let text =
        "{\"id\":1}\n{\"id\":\"1\"}\n{\"id\":true}\n{\"id\":\"true\"}\n{\"id\":\"\\u0031\"}\n";
    assert_eq!(groups(&read(text, &keyed(Format::Auto, &["id"]))), [1, 2, 3, 4, 2]);
}

#[test]
fn a_json_string_and_a_column_with_the_same_text_are_one_key() {
    let json = read("{\"id\":\"a \\\"b\\\"\"}\n", &keyed(Format::Auto, &["id"]));
    let csv = read("x,id\n1,\"a \"\"b\"\"\"\n", &keyed(Format::Auto, &["id"]));
    assert_eq!(json[0].digest, csv[1].digest);
    assert_eq!(json[0].digest, Digester::new(0).digest(b"a \"b\""));
}

#[test]
fn case_K4_fields_keep_their_order_and_their_bounds() {
    let table = "x,y\nA,B\nB,A\nab,c\na,bc\n";
    let found = read(table, &keyed(Format::Auto, &["x", "y"]));
    assert_eq!(groups(&found), [1, 2, 3, 4]);
    let fields = [b"A".as_slice(), b"B"];
    assert_eq!(found[1].digest, Digester::new(0).digest_fields(fields));
    let swapped = read(table, &keyed(Format::Auto, &["y", "x"]));
    assert_eq!(swapped[2].digest, found[1].digest);
}

#[test]
fn case_K5_members_have_no_order_and_lines_have() {
    let text = "{\"a\":1,\"b\":2}\n{ \"b\":2, \"a\":1 }\n{\"foo\":{\"bar\":1}}\n{\"foo.bar\":1}\n";
    assert_eq!(groups(&read(text, &options(Format::Ndjson))), [1, 1, 2, 3]);
    assert_eq!(groups(&read(text, &keyed(Format::Auto, &["."]))), [1, 1, 2, 3]);
    assert_eq!(groups(&read(text, &options(Format::Lines))), [1, 2, 3, 4]);
    assert_eq!(groups(&read(text, &options(Format::Auto))), [1, 2, 3, 4]);
}

#[test]
fn case_K5_a_dotted_name_is_one_member_and_a_pointer_is_a_path() {
    let text = "{\"foo\":{\"bar\":1}}\n{\"foo.bar\":1}\n";
    let dotted = read(text, &keyed(Format::Auto, &["foo.bar"]));
    assert_eq!(kinds(&dotted), [Kind::KeyMissing, Kind::Keyed]);
    let pointer = read(text, &keyed(Format::Auto, &["/foo/bar"]));
    assert_eq!(kinds(&pointer), [Kind::Keyed, Kind::KeyMissing]);
    let escaped = read("{\"a/b\":{\"~\":[5,6]}}\n", &keyed(Format::Auto, &["/a~1b/~0/1"]));
    let plain = read("{\"v\":6}\n", &keyed(Format::Auto, &["v"]));
    assert_eq!(escaped[0].digest, plain[0].digest);
}

#[test]
fn case_K6_names_match_whole_and_in_case() {
    let found = read("{\"orig_id\":1,\"ID\":2}\n", &keyed(Format::Auto, &["id"]));
    assert_eq!(kinds(&found), [Kind::KeyMissing]);
    let error = refusal("orig_id,ID\n1,2\n", &keyed(Format::Auto, &["id"]));
    assert!(error.contains("no column `id`; did you mean `ID`?"), "{error}");
    assert!(error.contains("orig_id, ID"), "{error}");
    let error = refusal("orig_id,name\n1,2\n", &keyed(Format::Auto, &["orig_di"]));
    assert!(error.contains("did you mean `orig_id`?"), "{error}");
    let error = refusal("a,b\n1,2\n", &keyed(Format::Auto, &["temperature"]));
    assert!(!error.contains("did you mean"), "{error}");
}

#[test]
fn a_name_may_be_written_with_escapes() {
    let found = read("{\"\\u0069d\":\"x\"}\n{\"id\":\"x\"}\n", &keyed(Format::Auto, &["id"]));
    assert_eq!(groups(&found), [1, 1]);
}

#[test]
fn of_members_with_one_name_the_last_counts() {
    let text = "{\"id\":1,\"id\":2}\n{\"id\":2}\n{\"id\":2,\"id\":null}\n";
    assert_eq!(groups(&read(text, &keyed(Format::Auto, &["id"]))), [1, 1, 0]);
    assert_eq!(groups(&read(text, &options(Format::Ndjson)))[..2], [1, 1]);
    // Also when what is wanted is deeper.
    let deep = "{\"a\":{\"x\":1},\"a\":{}}\n";
    assert_eq!(groups(&read(deep, &keyed(Format::Auto, &["/a/x"]))), [0]);
}

#[test]
fn case_K7_one_epc_and_two_tids_are_two_tags() {
    let line = |tid| {
        format!(
            "{{\"timestamp\":\"1\",\"eventType\":\"tagInventory\",\"tagInventoryEvent\":\
             {{\"epc\":\"ikUCJA==\",\"tidHex\":\"{tid}\",\"antennaPort\":1}}}}\n"
        )
    };
    let text = line("E280") + &line("E281") + &line("E280");
    assert_eq!(groups(&read(&text, &keyed(Format::Auto, &["epc", "tid"]))), [1, 2, 1]);
    assert_eq!(groups(&read(&text, &keyed(Format::Auto, &["epc"]))), [1, 1, 1]);
}

#[test]
fn case_K8_two_readers_with_antenna_1_are_two_places() {
    let text =
        "timestamp,reader,antenna,rssi,epc\n1,a,1,-7,b'30'\n2,b,1,-7,b'30'\n3,a,1,-7,b'30'\n";
    let key = ["epc", "reader", "antenna"];
    assert_eq!(groups(&read(text, &keyed(Format::Auto, &key))), [1, 2, 1]);
    assert_eq!(groups(&read(text, &keyed(Format::Auto, &["epc", "antenna"]))), [1, 1, 1]);
}

#[test]
fn case_K9_one_tag_in_every_spelling_is_one_key() {
    let tag = "3074257bf7194e4000001a85";
    let hex_of_hex: String = tag.bytes().map(|c| format!("{c:02x}")).collect();
    let spellings = [
        format!("b'{tag}'"),
        tag.into(),
        tag.to_uppercase(),
        hex_of_hex,
        "MHQle/cZTkAAABqF".into(),
        "urn:epc:tag:sgtin-96:3.0614141.812345.6789".into(),
    ];
    let csv = format!("tag,x\n{}", spellings.map(|s| format!("{s},1\n")).concat());
    let epc = Options { key_format: KeyFormat::Epc, ..keyed(Format::Auto, &["tag"]) };
    assert_eq!(groups(&read(&csv, &epc)), [1; 6]);
    assert_eq!(groups(&read(&csv, &keyed(Format::Auto, &["tag"]))), [1, 2, 3, 4, 5, 6]);
    let two = "tag\n4oARkaUDAGXybMv_\ne2801191a5030065f26ccbff\nno tag\n no tag\n";
    let epc = Options { no_header: false, ..epc };
    assert_eq!(groups(&read(two, &epc))[..2], [1, 1]);
}

#[test]
fn case_K9_a_line_may_be_an_epc() {
    let lines = "3074257BF7194E4000001A85\nb'3074257bf7194e4000001a85'\r\nother\n";
    let epc = Options { key_format: KeyFormat::Epc, ..options(Format::Auto) };
    assert_eq!(groups(&read(lines, &epc)), [1, 1, 2]);
}

#[test]
fn lists_of_epcs_are_sets() {
    let event = |list: &str| {
        format!("{{\"type\":\"ObjectEvent\",\"eventTime\":\"1\",\"epcList\":{list}}}\n")
    };
    let (a, b) = ("3074257BF7194E4000001A85", "302396D12A475094A080AD3B");
    let text = event(&format!("[\"{a}\",\"{b}\"]"))
        + &event(&format!("[\"{b}\", \"{}\"]", a.to_lowercase()))
        + &event(&format!("[\"{a}\"]"))
        + &event("[]");
    let found = read(text, &Options { fields_wanted: true, ..options(Format::Auto) });
    assert_eq!(groups(&found), [1, 1, 2, 0]);
    let one = read(format!("epc\n{a}\n"), &{
        Options { key_format: KeyFormat::Epc, ..keyed(Format::Csv, &["epc"]) }
    });
    assert_eq!(one[1].digest, found[2].digest);
}
