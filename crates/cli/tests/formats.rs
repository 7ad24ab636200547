//! The RFID formats, asked for and recognised, and the smaller subcommands.

#![allow(clippy::unwrap_used, clippy::panic, non_snake_case, reason = "tests, named after cases")]

mod support;

use support::{dedup, lately};

/// By looking and by name: the same.
fn both(format: &str, flags: &str, input: &str, expected: &str, counts: [u64; 6]) {
    for flags in [format!("--within 5s {flags}"), format!("--within 5s --format {format} {flags}")]
    {
        dedup(&flags, input).out(expected).counts(counts).code(0);
    }
}

#[test]
fn case_impinj_iot_device_interface() {
    let event = |time: &str, epc: &str, rssi: i32| {
        format!(
            "{{\"timestamp\":\"2026-02-26T17:13:{time}Z\",\"eventType\":\"tagInventory\",\"tagInventoryEvent\":{{{epc},\"antennaPort\":3,\"peakRssiCdbm\":{rssi}}}}}\n"
        )
    };
    let a = event("37.432087177", "\"epc\":\"ikUCJA==\"", -7400);
    let b = event("38.432087177", "\"epcHex\":\"8A450224\"", -5400);
    let c = event("39.432087177", "\"epc\":\"4oARkaUDAGXybMv_\"", -7400);
    let d = event("43.432089", "\"epc\":\"ikUCJA==\"", -7400);
    let input = [&*a, &b, &c, &d].concat();
    both("impinj", "", &input, &[&*a, &c, &d].concat(), [3, 1, 0, 0, 0, 0]);
    both(
        "impinj",
        "--key epc,antenna --best rssi:max --hold 2s",
        &input,
        &[&*b, &c, &d].concat(),
        [3, 1, 0, 0, 0, 0],
    );
    both("impinj", "--key /tagInventoryEvent/antennaPort", &input, &a, [1, 3, 0, 0, 0, 0]);
}

#[test]
fn case_zebra_iot_connector() {
    let read = |time: &str, id: &str| {
        format!(
            "{{\"data\":{{\"antenna\":1,\"eventNum\":194,\"format\":\"epc\",\"idHex\":\"{id}\",\"peakRssi\":-54,\"reads\":9}},\"timestamp\":\"2023-02-24T10:14:{time}+0000\",\"type\":\"INVENTORY\"}}"
        )
    };
    let (a, b) =
        (read("42.851", "ad99160040aac99525000025"), read("47.851", "AD99160040AAC99525000025"));
    let c = read("52.852", "ad99160040aac99525000025");
    let array = format!("[{a},{b}]\n[{c}]\n");
    both("zebra", "", &array, &format!("{a}\n{c}\n"), [2, 1, 0, 0, 0, 0]);
    both(
        "zebra",
        "--key epc,antenna",
        &format!("{a}\n{b}\n{c}\n"),
        &format!("{a}\n{c}\n"),
        [2, 1, 0, 0, 0, 0],
    );
}

#[test]
fn case_csv_of_sllurp_speedway_and_runtimestamp() {
    let header = "timestamp,reader,antenna,rssi,epc,phase_angle\n";
    let input = format!(
        "{header}1755033487.197361,r:5084,1,-77,b'303040420a8824d61e7f24d2',1\n1755033488.1,r:5084,1,-70,b'303040420A8824D61E7F24D2',2\n"
    );
    both("sllurp", "", &input, &input[..input.rfind("17550").unwrap()], [1, 1, 0, 0, 0, 0]);
    let header =
        "antenna_port,epc,first_seen_timestamp,mac_address,peak_rssi,reader_name,tid,timestamp\n";
    let row =
        |t: u64, rest: &str| format!("3,303435FC8803D056D15B963F,{t},00:16,-55,R,E280,{rest}\n");
    let (a, b) = (row(1_744_913_242_868_317, "x"), row(1_744_913_247_868_317, "y"));
    let c = row(1_744_913_252_868_318, "z");
    both(
        "speedway",
        "--key epc,tid",
        &format!("{header}{a}{b}{c}"),
        &format!("{header}{a}{c}"),
        [2, 1, 0, 0, 0, 0],
    );
    let header =
        "RunTimestamp,Timestamp,EPC,AntennaPort,RSSI,PhaseAngle,Frequency,DopplerFrequency\n";
    let row = "2025-03-31T10:49:17.735379,1743439909247166,333030383333623264646439303134303030303030303030,1,-59.50,7.24,22,46.71\n";
    both(
        "runtimestamp",
        "",
        &format!("{header}{row}{row}"),
        &format!("{header}{row}"),
        [1, 1, 0, 0, 0, 0],
    );
}

#[test]
fn case_epcis_events() {
    let event = |second: u32, list: &str| {
        format!(
            "{{\"type\":\"ObjectEvent\",\"eventTime\":\"2026-01-01T00:00:{second:02}.000+00:00\",\"epcList\":[{list}],\"readPoint\":{{\"id\":\"urn:epc:id:sgln:1\"}}}}"
        )
    };
    let one = "\"urn:epc:id:sgtin:0614141.812345.6789\"";
    let two = "\"urn:epc:id:sgtin:0614141.812345.7\"";
    let events = [
        event(1, one),
        event(2, &format!("{one},{two}")),
        event(3, &format!("{two},{one}")),
        event(4, one),
        event(5, ""),
    ];
    let document = format!(
        "{{\"type\":\"EPCISDocument\",\"epcisBody\":{{\"eventList\":[{}]}}}}",
        events.join(",\n")
    );
    let kept = format!("{}\n{}\n{}\n", events[0], events[1], events[4]);
    both("epcis", "", &document, &kept, [2, 2, 0, 0, 1, 0]);
    both(
        "epcis",
        "--key epc,reader",
        &format!("{}\n", events.join("\n")),
        &kept,
        [2, 2, 0, 0, 1, 0],
    );
}

#[test]
fn plan_tells_what_a_choice_costs() {
    let text = lately(&["plan", "--within", "10s", "--expect", "1M"], "");
    assert!(text.code(0).text().starts_with("window: 10s\n"), "{}", text.text());
    assert_eq!(text.text().matches("\n* ").count(), 2, "a row, and what the star means");
    let json = lately(&["plan", "--within", "10s", "--expect", "1M", "--json"], "");
    let rows: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let chosen: Vec<_> =
        rows.as_array().unwrap().iter().filter(|row| row["chosen"] == true).collect();
    assert_eq!(chosen.len(), 1);
    assert!(chosen[0]["fpr"].as_f64().unwrap() <= 1e-6);
    assert!(text.text().contains(&format!("* {}", chosen[0]["structure"].as_str().unwrap())));
    // It is what `dedup` takes, as the help says.
    let run = dedup("--within 10s --expect 1M", "a\n");
    assert_eq!(run.summary["filter"]["structure"], chosen[0]["structure"]);
    let (planned, taken) = (&chosen[0]["memory_bytes"], &run.summary["filter"]["memory_bytes"]);
    let (planned, taken) = (planned.as_f64().unwrap(), taken.as_f64().unwrap());
    assert!((planned - taken).abs() < planned * 0.01, "{planned} {taken}");
    for window in
        [&["--last", "100k"][..], &[], &["--within", "1h", "--structure", "interval-bloom"]]
    {
        lately(&[&["plan"], window].concat(), "").code(0);
    }
    lately(&["plan", "--within", "1h", "--structure", "nonsense"], "").code(2);
}

#[test]
fn simulated_reads_are_the_same_every_time_and_recognised() {
    let simulate =
        |extra: &[&str]| lately(&[&["simulate", "rfid", "--reads", "2k"], extra].concat(), "");
    let csv = simulate(&[]);
    assert_eq!(csv.code(0).text(), simulate(&[]).text());
    assert_ne!(csv.text(), simulate(&["--seed", "2"]).text());
    assert_eq!(csv.text().lines().count(), 2001);
    let ndjson = simulate(&["--format", "ndjson"]);
    assert_eq!(ndjson.text().lines().count(), 2000);
    let (a, b) = (
        dedup("--within 5s", csv.text()),
        dedup("--within 5s --key epc --time timestamp", ndjson.text()),
    );
    assert_eq!(a.count("fresh"), b.count("fresh"));
    assert!(a.count("fresh") > 10 && a.count("duplicate") > 1000, "{}", a.stderr);
}

#[test]
fn completions_and_pages_are_there() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(lately(&["completions", shell], "").code(0).text().contains("dedup"), "{shell}");
    }
    assert!(lately(&["man"], "").code(0).text().contains(".TH"));
    for name in ["dedup", "plan", "inspect", "epc", "simulate", "completions", "man"] {
        assert!(lately(&["man", name], "").code(0).text().contains(".SH"), "{name}");
        assert!(lately(&[name, "--help"], "").code(0).text().len() > 100);
    }
    lately(&["--version"], "").code(0);
    lately(&[], "").code(2);
}
