//! Acceptance cases K1 to K9: what makes two records the same.

#![allow(clippy::unwrap_used, clippy::panic, non_snake_case, reason = "tests, named after cases")]

mod support;

use support::{dedup, dedup_with};

#[test]
fn case_K1_an_absent_key_is_no_key() {
    // A column that no row reaches cannot be in a table; a Zeek field can be unset, JSON's absent.
    let ndjson = "{\"a\":1}\n{\"a\":1}\n{\"id\":7}\n{\"id\":7}\n";
    for key in ["id", "/id"] {
        let run = dedup(&format!("--key {key}"), ndjson);
        run.out("{\"a\":1}\n{\"a\":1}\n{\"id\":7}\n").counts([1, 1, 0, 0, 2, 0]).code(0);
        run.says("2 records without a key").says("-:1: field").says("-:2: field");
        assert_eq!(run.stderr.matches("without a key, forwarded, such as").count(), 1);
    }
    let deep = "{\"u\":{\"id\":1}}\n{\"u\":{}}\n{\"u\":3}\n{\"u\":{\"id\":1}}\n";
    dedup("--key /u/id", deep).counts([1, 1, 0, 0, 2, 0]).out(&deep[..deep.len() - 15]);
    let zeek = "#separator \\x09\n#unset_field\t-\n#fields\tts\tid\n1\t-\n2\t-\n3\tx\n4\tx\n";
    let run = dedup("--key id", zeek);
    run.counts([1, 1, 0, 0, 2, 0]).out(&zeek[..zeek.len() - 4]).says("-:4:").says("unset");
    let columns = "a 1\nb\nb\na 1\n";
    dedup("--format columns --key 2", columns).counts([1, 1, 0, 0, 2, 0]).out("a 1\nb\nb\n");
    // An empty column is a value, as in K2.
    dedup("--key id", "id,v\n,1\n,2\n").counts([1, 1, 0, 0, 0, 0]).out("id,v\n,1\n");
    // A column that is not there is a mistake of the user's.
    dedup("--key idd", "id,v\n1,1\n").code(2).out("").says("did you mean `id`?");
}

#[test]
fn case_K2_null_is_missing_and_the_empty_string_is_not() {
    let run = dedup("--key id", "{\"id\":null}\n".repeat(3));
    run.counts([0, 0, 0, 0, 3, 0]).out(&"{\"id\":null}\n".repeat(3));
    let run = dedup("--key id", "{\"id\":\"\"}\n".repeat(3));
    run.counts([1, 2, 0, 0, 0, 0]).out("{\"id\":\"\"}\n");
}

#[test]
fn case_K3_numbers_are_told_apart_by_their_text() {
    let input = "{\"id\":2882429806056571124}\n{\"id\":2882429806056571125}\n";
    dedup("--key id", input).counts([2, 0, 0, 0, 0, 0]).out(input);
    let input = "{\"id\":1}\n{\"id\":1.0}\n{\"id\":\"1\"}\n{\"id\":1}\n";
    dedup("--key id", input).counts([3, 1, 0, 0, 0, 0]);
}

#[test]
fn case_K4_fields_are_kept_apart_and_in_order() {
    let csv = "x,y\nA,B\nB,A\nab,c\na,bc\nA,B\n";
    dedup("--key x,y", csv).counts([4, 1, 0, 0, 0, 0]).out(&csv[..csv.len() - 4]);
    let json =
        "{\"x\":\"ab\",\"y\":\"c\"}\n{\"x\":\"a\",\"y\":\"bc\"}\n{\"y\":\"c\",\"x\":\"ab\"}\n";
    dedup("--key x,y", json).counts([2, 1, 0, 0, 0, 0]);
}

#[test]
fn case_K5_whole_json_records_are_compared_as_values_lines_as_bytes() {
    let input = "{\"a\":1,\"b\":2}\n{\"b\":2,\"a\":1}\n";
    dedup("--format ndjson", input).counts([1, 1, 0, 0, 0, 0]).out("{\"a\":1,\"b\":2}\n");
    dedup("--key .", input).counts([1, 1, 0, 0, 0, 0]);
    dedup("", input).counts([2, 0, 0, 0, 0, 0]).out(input);
    let input = "{\"foo\":{\"bar\":1}}\n{\"foo.bar\":1}\n";
    dedup("--key .", input).counts([2, 0, 0, 0, 0, 0]);
    dedup("--key foo.bar", input).counts([1, 0, 0, 0, 1, 0]);
    dedup("--key /foo/bar", input).counts([1, 0, 0, 0, 1, 0]);
}

#[test]
fn case_K6_names_match_exactly() {
    let json = "{\"id\":1,\"orig_id\":5}\n{\"id\":2,\"orig_id\":5}\n{\"ID\":3}\n";
    dedup("--key orig_id", json).counts([1, 1, 0, 0, 1, 0]);
    dedup("--key id", json).counts([2, 0, 0, 0, 1, 0]);
    dedup("--key orig_id", "id,orig_id\n1,5\n2,5\n").counts([1, 1, 0, 0, 0, 0]);
    dedup("--key Id", "id,orig_id\n1,5\n2,5\n").code(2).says("no column `Id`");
}

#[test]
fn case_K7_one_epc_with_two_tids_is_two_tags() {
    let event = |tid| {
        format!(
            "{{\"timestamp\":\"2026-02-26T17:13:37.4Z\",\"eventType\":\"tagInventory\",\"tagInventoryEvent\":{{\"epcHex\":\"8A450224\",\"tidHex\":\"{tid}\"}}}}\n"
        )
    };
    let input = [event("E280AA"), event("E280BB"), event("E280AA")].concat();
    dedup("--key epc,tid --within 5s", &input).counts([2, 1, 0, 0, 0, 0]);
    dedup("--key epc --within 5s", &input).counts([1, 2, 0, 0, 0, 0]);
}

#[test]
fn case_K8_antenna_1_of_two_readers_is_two_places() {
    let csv = "timestamp,reader,antenna,rssi,epc\n1,r1,1,-50,b'30aa'\n2,r2,1,-50,b'30aa'\n3,r2,1,-50,b'30aa'\n";
    dedup("--key epc,reader,antenna --time-format s --within 9s", csv).counts([2, 1, 0, 0, 0, 0]);
    dedup("--key epc,antenna --time-format s --within 9s", csv).counts([1, 2, 0, 0, 0, 0]);
}

#[test]
fn case_K9_one_tag_in_any_spelling_is_one_key() {
    let spellings = [
        vec![
            "b'e2801191a5030065f26ccbff'",
            "e2801191a5030065f26ccbff",
            "E2801191A5030065F26CCBFF",
            "4oARkaUDAGXybMv_",
            "4oARkaUDAGXybMv/",
            "653238303131393161353033303036356632366363626666",
        ],
        vec!["3074257BF7194E4000001A85", "urn:epc:tag:sgtin-96:3.0614141.812345.6789"],
        vec!["302396D12A475094A080AD3B", "urn:epc:tag:sgtin-96:1.986572296660.2.88592133435"],
        vec!["305887668C7F5160AA3CB66F", "urn:epc:tag:sgtin-96:2.138650.3276101.140295059055"],
    ];
    let lines: String = spellings.iter().flatten().map(|epc| format!("{epc}\n")).collect();
    let firsts: String = spellings.iter().map(|of_one| format!("{}\n", of_one[0])).collect();
    dedup("--key-format epc", &lines).counts([4, 8, 0, 0, 0, 0]).out(&firsts);
    dedup("--key epc --key-format epc", format!("epc\n{lines}")).out(&format!("epc\n{firsts}"));
    dedup("", &lines).counts([12, 0, 0, 0, 0, 0]);
    // `lately epc` reads them all, too.
    for of_one in &spellings {
        let run = support::lately(&[&["epc"], &**of_one].concat(), "");
        let hex: Vec<_> = run.text().lines().map(|line| line.split('\t').nth(2).unwrap()).collect();
        assert_eq!(hex.len(), of_one.len());
        assert!(hex.iter().all(|hex| *hex == hexes(of_one)), "{hex:?}");
        run.code(0);
    }
    let run = support::lately(&["epc"], "3074257BF7194E4000001A85\nnonsense!\n");
    run.code(1).says("nonsense!").says("1 value is not an EPC");
    support::lately(&["epc", "urn:epc:id:sgtin:0614141.812345.6789"], "")
        .code(1)
        .says("has no filter value");
    assert!(run.text().contains("urn:epc:id:sgtin:0614141.812345.6789"));
}

fn hexes(of_one: &[&str]) -> String {
    let plain =
        of_one.iter().find(|text| text.len() == 24 && text.bytes().all(|c| c.is_ascii_hexdigit()));
    plain.unwrap().to_uppercase()
}

#[test]
fn keys_with_quotes_and_escapes_are_their_content() {
    let csv = "k,v\n\"a,b\",1\n\"say \"\"x\"\"\",2\n\"a,b\",3\nplain,4\n\"plain\",5\n";
    let run = dedup("--key k", csv);
    run.counts([3, 2, 0, 0, 0, 0]).out("k,v\n\"a,b\",1\n\"say \"\"x\"\"\",2\nplain,4\n");
    dedup("--key k", "{\"k\":\"\\u0061\"}\n{\"k\":\"a\"}\n").counts([1, 1, 0, 0, 0, 0]);
}

#[test]
fn csv_and_ndjson_of_the_same_key_are_joined() {
    let folder = support::Folder::new();
    let (a, b) = (folder.file("a.csv", "id\nx\ny\n"), folder.file("b.ndjson", "{\"id\":\"x\"}\n"));
    dedup_with(&[&a, &b, "--key", "id"], "").counts([2, 1, 0, 0, 0, 0]).out("id\nx\ny\n");
}
