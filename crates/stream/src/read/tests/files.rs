//! Real files, where they are at hand: they may not be shipped.

use super::{Seen, batches, keyed, options, seen};
use crate::options::{Format, Options, read_time};
use crate::record::Kind;
use crate::source::Source;
use crate::stamp::{StampParser, TimeFormat, Zone};
use std::collections::HashSet;
use std::path::PathBuf;

/// The records of a real file, or nothing, with a word why.
fn real(name: &str, options: &Options) -> Option<Vec<Seen>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let path = folder.join(name);
    if !path.exists() {
        println!("skipped: there is no {name} in the folder shared/data beside the workspace");
        return None;
    }
    let mut source = Source::new(vec![path.to_str()?.into()], options.clone());
    Some(seen(&batches(&mut source).unwrap()))
}

fn count(records: &[Seen], kind: Kind) -> usize {
    records.iter().filter(|record| record.kind == kind).count()
}

fn distinct(records: &[Seen]) -> usize {
    let keyed = records.iter().filter(|record| record.kind == Kind::Keyed);
    keyed.map(|record| record.digest).collect::<HashSet<_>>().len()
}

/// A run with a time window.
fn windowed() -> Options {
    let parser = StampParser::new(TimeFormat::Auto, Zone::default()).unwrap();
    let read_time = read_time(parser);
    Options { fields_wanted: true, time_wanted: true, read_time, ..options(Format::Auto) }
}

#[test]
fn real_rfid_files() {
    let Some(found) = real("rfid_impinj_r420/Test10-2.csv", &windowed()) else { return };
    assert_eq!((count(&found, Kind::Keyed), distinct(&found)), (49_184, 29));
    assert_eq!(found.len(), 49_185);
    let times =
        || found[1..].iter().filter_map(|record| record.time).filter_map(|time| time.nanos());
    assert_eq!(times().count(), 49_184);
    // Reads behind the newest time seen, and the worst of them.
    let (mut newest, mut behind, mut worst) = (0, 0, 0);
    for time in times() {
        newest = newest.max(time);
        behind += usize::from(time < newest);
        worst = worst.max(newest - time);
    }
    assert_eq!((behind, worst / 10_000_000), (36_401, 10_021));
    for name in ["Fingerprint1-13_speedwayconnect.csv", "runtimestamp.csv", "Test9-8.csv"] {
        let Some(found) = real(&format!("rfid_impinj_r420/{name}"), &windowed()) else { return };
        assert_eq!(count(&found, Kind::Header), 1);
        assert_eq!(count(&found, Kind::Keyed), found.len() - 1, "{name}");
        println!("{name}: {} reads, {} tags", found.len() - 1, distinct(&found));
    }
}

#[test]
fn real_crowd_file() {
    let key = ["user", "ts", "lat", "lon"];
    let name = "crowd_interscity2017/locations_by_write_ts.csv";
    let Some(found) = real(name, &keyed(Format::Auto, &key)) else { return };
    assert_eq!(count(&found, Kind::Keyed), 131_131);
    assert_eq!(131_131 - distinct(&found), 1459);
    let Some(found) = real(name, &keyed(Format::Auto, &["user"])) else { return };
    assert_eq!(distinct(&found), 25);
}

#[test]
fn real_zeek_file() {
    let key = ["id.orig_h", "id.orig_p", "id.resp_h", "trans_id", "query", "qtype"];
    let Some(found) = real("ip_zeek/dns.log", &keyed(Format::Auto, &key)) else { return };
    let (keyed_rows, missing) = (count(&found, Kind::Keyed), count(&found, Kind::KeyMissing));
    assert_eq!(keyed_rows + missing, 53_615);
    // Nine rows lack a field; as text, their `-` would make five keys more: 24,597.
    assert_eq!((missing, distinct(&found)), (9, 24_592));
    let pair = keyed(Format::Auto, &["id.orig_h", "id.resp_h"]);
    let Some(found) = real("ip_zeek/dns.log", &pair) else { return };
    assert_eq!((count(&found, Kind::Keyed), distinct(&found)), (53_615, 465));
    assert_eq!(count(&found, Kind::Invalid), 0);
}

#[test]
fn real_sensor_files() {
    let name = "sensor_ulb/N1.txt";
    let Some(found) = real(name, &options(Format::Auto)) else { return };
    assert_eq!((found.len(), found.len() - distinct(&found)), (127_903, 16));
    let Some(found) = real(name, &keyed(Format::Auto, &["2", "3", "4", "5"])) else { return };
    assert_eq!(count(&found, Kind::Keyed) - distinct(&found), 475);
    // Bytes that are no UTF-8.
    let Some(found) = real("sensor_ulb/R3.txt", &keyed(Format::Columns, &["2"])) else { return };
    assert_eq!(count(&found, Kind::Keyed), found.len());
    assert!(found[0].bytes.contains(&0xA0));
}

#[test]
fn real_tsv_and_column_files() {
    let Some(found) = real("http_nasa/nasa_19950801.tsv", &keyed(Format::Auto, &["host"])) else {
        return;
    };
    assert_eq!(count(&found, Kind::Keyed), 30_969);
    let Some(found) = real("msg_collegemsg/CollegeMsg.txt", &keyed(Format::Auto, &["1", "2"]))
    else {
        return;
    };
    assert_eq!(count(&found, Kind::Keyed), 59_835);
    let Some(found) = real("gps_geolife/geolife_sample.csv", &keyed(Format::Auto, &["uid"])) else {
        return;
    };
    assert_eq!((count(&found, Kind::Keyed), distinct(&found)), (217_653, 2));
}
