//! Every format by name and by looking.
use super::{Seen, drip, groups, keyed, kinds, options, read, refusal, time};
use crate::epc;
use crate::options::{Format, Options};
use crate::record::Kind;
use crate::schema::Schema;
use lately::{Digest, Digester};
use std::sync::Arc;

const IMPINJ: &str = r#"{"timestamp":"2026-02-26T17:13:37.432087177Z","eventType":"tagInventory","tagInventoryEvent":{"epc":"ikUCJA==","antennaPort":3,"peakRssiCdbm":-7400}}"#;
const ZEBRA: &str = r#"[{"data":{"antenna":1,"eventNum":194,"format":"epc","idHex":"ad99160040aac99525000025","peakRssi":-54,"reads":9},"timestamp":"2023-02-24T10:14:42.851+0000","type":"INVENTORY"}]"#;
const SLLURP: &str = "timestamp,reader,antenna,rssi,epc,phase_angle,channel_index,doppler_frequency\r\n\
    5,192.168.0.219:5084,1,-77,b'303040420a8824d61e7f24d2',3424,38,-1\r\n";
const SPEEDWAY: &str = "antenna_port,epc,first_seen_timestamp,mac_address,peak_rssi,reader_name,tid,timestamp\r\n\
    3,303040420A8824D61E7F24D2,5,00:16:25,-55,Impinj RFID Reader,E28068942000,2025-04-17 12:05:25\r\n";
const RUNTIMESTAMP: &str = "RunTimestamp,Timestamp,EPC,AntennaPort,RSSI,PhaseAngle,Frequency,DopplerFrequency\r\n\
    2025-03-31T10:49:17.735379,5,333033303430343230613838323464363165376632346432,1,-59.50,7.24,22,46.71\r\n";
const EPCIS: &str = r#"{"@context":["https://example.org"],"type":"EPCISDocument","epcisBody":{"eventList":[
  {"type":"ObjectEvent","eventTime":"5","epcList":["urn:epc:tag:sgtin-96:3.0614141.812345.6789"],"readPoint":{"id":"door 1"}},
  {"type":"ObjectEvent","eventTime":"6","epcList":["urn:epc:tag:sgtin-96:3.0614141.812345.6790"],"readPoint":{"id":"door 1"}}
]}}"#;

/// What a run with a time window wants.
fn windowed(format: Format) -> Options {
    let read_time = |text: &[u8]| Ok(time(text.len() as u64).unwrap());
    let read_time = Arc::new(read_time);
    Options { fields_wanted: true, time_wanted: true, read_time, ..options(format) }
}

fn schema(bytes: &str, options: &Options) -> Arc<Schema> {
    drip(bytes.as_bytes(), 1 << 20, options).next_chunk(Vec::new()).unwrap().unwrap().schema
}

fn epc_digest(text: &str) -> Digest {
    let mut key = Vec::new();
    epc::normalise(text.as_bytes(), &mut key);
    Digester::new(0).digest(&key)
}

fn only_record(records: &[Seen]) -> &Seen {
    let mut records = records.iter().filter(|record| record.kind == Kind::Keyed);
    let record = records.next().unwrap();
    assert!(records.next().is_none());
    record
}

#[test]
fn formats_are_told_apart_by_looking() {
    let cases = [
        (IMPINJ, Format::Impinj),
        (ZEBRA, Format::Zebra),
        (ZEBRA.trim_matches(['[', ']']), Format::Zebra),
        (SLLURP, Format::Sllurp),
        (SPEEDWAY, Format::Speedway),
        (RUNTIMESTAMP, Format::Runtimestamp),
        (EPCIS, Format::Epcis),
        ("{\"a\":1}\n{\"a\":2}\n", Format::Ndjson),
        ("{\"a\": broken\n{\"a\":2}\n", Format::Ndjson),
        ("{\"a\" 1}\n{\"a\":2}\n", Format::Ndjson),
        ("{\"a\":1} and\n{\"a\":2}\n", Format::Ndjson),
        ("{\"a\":1}{\"a\":2}\n", Format::Json),
        ("\n\n{\"a\":1}", Format::Ndjson),
        ("{\n\"a\":1\n}\n", Format::Json),
        ("[\n{\"a\":1}\n]\n", Format::Json),
        ("[{\"a\":1},{\"a\":2}]\n", Format::Json),
        ("#separator \\x09\n#fields\ta\tb\n", Format::Zeek),
        ("a\tb\n1\t2\n", Format::Tsv),
        ("a,b\n1,2\n", Format::Csv),
        ("a\n1\n", Format::Csv),
        ("  \n", Format::Ndjson),
    ];
    for (text, format) in cases {
        let wanted = Options { fields_wanted: true, ..options(Format::Auto) };
        assert_eq!(schema(text, &wanted).format(), format, "{text}");
        // Nobody wants to know: a record is a line.
        assert_eq!(schema(text, &options(Format::Auto)).format(), Format::Lines);
    }
    assert_eq!(schema("1 2 3\n", &keyed(Format::Auto, &["1", "3"])).format(), Format::Columns);
}

#[test]
fn every_name_is_read_and_written() {
    for (name, format) in Format::NAMES {
        assert_eq!(name.parse(), Ok(format));
        assert_eq!(format.to_string(), name);
    }
    let error = "parquet".parse::<Format>().unwrap_err();
    assert!(error.contains("unknown format `parquet`") && error.contains("ndjson"));
}

#[test]
fn real_format_impinj() {
    let found = read(IMPINJ, &windowed(Format::Auto));
    assert_eq!(only_record(&found).digest, epc_digest("8A450224"));
    assert_eq!(found[0].time, time("2026-02-26T17:13:37.432087177Z".len() as u64));
    let hex = IMPINJ.replace("\"epc\":\"ikUCJA==\"", "\"epc\":\"AAAA\",\"epcHex\":\"8a450224\"");
    assert_eq!(read(hex, &windowed(Format::Auto))[0].digest, found[0].digest);
    let rank = Options { rank: Some("rssi".into()), ..keyed(Format::Impinj, &["epc", "antenna"]) };
    assert_eq!(read(IMPINJ, &rank)[0].extra.rank, Some(-7400.0));
    // Another kind of event has no tag.
    let status = r#"{"timestamp":"5","eventType":"inventoryStatus","inventoryStatusEvent":{}}"#;
    let found = read(format!("{status}\n{IMPINJ}\n"), &windowed(Format::Auto));
    assert_eq!(kinds(&found), [Kind::KeyMissing, Kind::Keyed]);
}

#[test]
fn real_format_zebra() {
    let found = read(ZEBRA, &windowed(Format::Auto));
    let record = only_record(&found);
    assert_eq!(record.digest, epc_digest("AD99160040AAC99525000025"));
    assert_eq!(record.bytes, ZEBRA.trim_matches(['[', ']']).as_bytes());
    let object = ZEBRA.trim_matches(['[', ']']);
    let lines = format!("{object}\n[{object} , {object}]\r\n\n[]\n{object}, \n{object}\n");
    let found = read(&lines, &windowed(Format::Zebra));
    assert_eq!(groups(&found), [1, 1, 1, 0, 1]);
    assert_eq!(found.iter().map(|r| r.line).collect::<Vec<_>>(), [0, 1, 1, 2, 4, 5]);
    // Without arrays, lines stay as they are.
    let found = read(format!("{object}\r\n{object}\n"), &windowed(Format::Auto));
    assert_eq!(found[0].bytes, format!("{object}\r\n").as_bytes());
    // Over several lines, and one after the other.
    let pretty = ZEBRA.replace(',', ",\n").replace('{', "{\n");
    let found = read(format!("{pretty}\n{pretty}{pretty}"), &windowed(Format::Auto));
    assert_eq!(groups(&found), [1, 1, 1]);
}

#[test]
fn real_format_csv_of_three_makes_is_one_tag() {
    for (text, lost) in [(SLLURP, "tid"), (SPEEDWAY, "phase"), (RUNTIMESTAMP, "reader")] {
        let found = read(text, &windowed(Format::Auto));
        assert_eq!(found[0].kind, Kind::Header);
        let record = only_record(&found);
        assert_eq!(record.digest, epc_digest("303040420a8824d61e7f24d2"), "{text}");
        assert_eq!(record.time, time(1), "the time is the field that holds `5`");
        assert_eq!(read(text, &keyed(Format::Auto, &["epc"]))[1].digest, record.digest);
        let rank = Options { rank: Some("rssi".into()), ..keyed(Format::Auto, &["antenna"]) };
        assert!(read(text, &rank)[1].extra.rank.is_some_and(|rssi| rssi < -50.0));
        let error = refusal(text, &keyed(Format::Auto, &[lost]));
        assert!(error.contains(&format!("no column `{lost}`")), "{error}");
    }
    let error = refusal(SPEEDWAY.replace("epc", "tag"), &windowed(Format::Speedway));
    assert!(error.contains("no column `epc`"), "{error}");
}

#[test]
fn real_format_epcis() {
    for text in [EPCIS.to_owned(), EPCIS.replace('\n', ""), format!("{EPCIS}\n{EPCIS}")] {
        let found = read(&text, &windowed(Format::Auto));
        assert_eq!(groups(&found)[..2], [1, 2]);
        assert_eq!(found[0].digest, epc_digest("3074257BF7194E4000001A85"));
        assert!(found[0].bytes.starts_with(b"{\"type\":\"ObjectEvent\""));
    }
    let found = read(EPCIS, &keyed(Format::Epcis, &["reader"]));
    assert_eq!(groups(&found), [1, 1]);
    assert_eq!((found[0].line, found[1].line), (1, 2));
    let query = EPCIS
        .replace("\"eventList\":[", "\"queryResults\":{\"resultsBody\":{\"eventList\":[")
        .replace("]}}", "]}}}}");
    assert_eq!(groups(&read(query, &windowed(Format::Auto))), [1, 2]);
    let bare = EPCIS.lines().nth(1).unwrap().trim_matches([' ', ',']);
    assert_eq!(groups(&read(bare, &windowed(Format::Auto))), [1]);
}

#[test]
fn a_broken_document_costs_itself_alone() {
    let (good, time) = ("{\n\"id\": 1\n}\n", &keyed(Format::Json, &["id"]));
    let (dead, fine) = (Kind::Invalid, Kind::Keyed);
    // Balanced but wrong inside.
    let found = read(format!("{good}{{\n\"id\" 2\n}}\n{good}"), time);
    assert_eq!(kinds(&found), [fine, dead, fine]);
    // A bracket of the wrong kind: dead are the lines that belong to nothing.
    let found = read(format!("{good}[\n\"id\" 2\n}}\n{good}"), time);
    assert_eq!(kinds(&found).first(), Some(&fine));
    assert_eq!(kinds(&found).last(), Some(&fine));
    // An array that was cut off still gives its elements.
    let found = read("[\n{\"id\":1},\n{\"id\":2},\n{\"id\":", time);
    assert_eq!(kinds(&found), [dead, fine, fine, dead]);
}

#[test]
fn zeek_headers_fields_and_unset_values() {
    let text = "#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n\
        #path\tdns\n#fields\tts\tid.orig_h\tquery\n#types\ttime\taddr\tstring\n\
        5\ta\tx\n6\ta\t-\n7\tb\tx\n8\tb\n#close\t2024\n\
        #separator \\x09\n#fields\tquery\tts\n#types\tstring\ttime\nx\t9\n";
    let timed = Options { time_wanted: true, ..keyed(Format::Auto, &["query"]) };
    for most in [3, 50, 1 << 20] {
        let found = super::seen(&super::batches(&mut drip(text.as_bytes(), most, &timed)).unwrap());
        assert!(found[..7].iter().all(|record| record.kind == Kind::Aside));
        assert_eq!(groups(&found), [1, 0, 1, 0, 1]);
        assert_eq!(found[8].reason, "field `query`: unset");
        assert_eq!(found[10].reason, "2 fields where the table has 3 columns");
        assert_eq!(found.last().unwrap().time, time(9));
        assert_eq!(found.last().unwrap().line, 15);
    }
    // A later header may lack the field: its rows pass, and say so.
    let lost = text.replace("#fields\tquery\tts", "#fields\tq\tts");
    let found = read(lost, &timed);
    assert_eq!(found.last().unwrap().kind, Kind::KeyMissing);
    assert!(refusal("1\t2\n", &keyed(Format::Zeek, &["a"])).contains("#fields"));
    assert!(refusal(text, &keyed(Format::Auto, &["orig_h"])).contains("mean `id.orig_h`"));
    assert_eq!(schema(text, &keyed(Format::Auto, &["query"])).time_fields().next(), None);
    assert_eq!(schema(text, &timed).time_fields().collect::<Vec<_>>(), ["ts"]);
}

#[test]
fn columns_and_tables_without_header() {
    let found = read("1 2 9\n\n 1   2\t9 \n1 2\n3 2 8\n", &keyed(Format::Auto, &["1", "3"]));
    assert_eq!(groups(&found), [1, 1, 0, 2]);
    assert_eq!(found[1].kind, Kind::Aside);
    let numbered = Options { no_header: true, ..keyed(Format::Csv, &["2"]) };
    let found = read("a,b\n\"c\",b\n1,2,3\n", &numbered);
    assert_eq!(kinds(&found), [Kind::Keyed, Kind::Keyed, Kind::Invalid]);
    assert_eq!(groups(&found)[..2], [1, 1]);
    assert!(refusal("a,b\n", &Options { key: vec!["3".into()], ..numbered }).contains("`3`"));
    assert!(refusal("1 2\n", &keyed(Format::Columns, &["0"])).contains("named 1, 2, 3"));
}

#[test]
fn columns_keep_quotes_and_brackets_together() {
    let log = concat!(
        "h - - [01/Aug/1995:00:00:01 -0400] \"GET /a b HTTP/1.0\" 200 \"a \\\"q\\\" b\"\n",
        "h - - [01/Aug/1995:00:00:02 -0400] \"GET /a b HTTP/1.0\" 200 \"a \\\"q\\\" c\"\n",
        "h - - [01/Aug/1995:00:00:01 -0400] \"GET /a c HTTP/1.0\" 200 \"\"\n",
    );
    let columns = |key: &str| groups(&read(log, &keyed(Format::Columns, &[key])));
    assert_eq!(columns("4"), [1, 2, 1]);
    assert_eq!(columns("5"), [1, 1, 2]);
    assert_eq!(columns("6"), [1, 1, 1]);
    assert_eq!(columns("7"), [1, 2, 3]);
    // What nothing closes, or closes within a word, is an ordinary character.
    let loose = "[a b]: \"c d\", [e \"f\n[a b]: \"c x\", [e \"f\n";
    for (key, expected) in [("1", [1, 1]), ("2", [1, 1]), ("4", [1, 2]), ("6", [1, 1])] {
        assert_eq!(groups(&read(loose, &keyed(Format::Columns, &[key]))), expected, "{key}");
    }
    let whole = read("\"GET /a\" 1\n", &keyed(Format::Columns, &["1"]));
    assert_eq!(whole[0].digest, read("GET /a\n", &options(Format::Lines))[0].digest);
}

#[test]
fn without_a_key_a_row_is_its_own_key_and_has_its_time() {
    let timed = Options { time: vec!["t".into()], ..options(Format::Auto) };
    let found = read("t,v\n5,a\n6,a\n5,a\n", &timed);
    assert_eq!(groups(&found), [1, 2, 1]);
    assert_eq!(found[1].time, time(5));
    // A window alone says nothing of a time field.
    let found = read("t,v\n5,a\n", &windowed(Format::Auto));
    assert_eq!(found[1].time, None);
    assert!(refusal("a\n", &keyed(Format::Lines, &["x"])).contains("raw lines have no field"));
}
