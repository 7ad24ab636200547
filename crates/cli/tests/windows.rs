//! Acceptance cases W1 to W6: how long a key is remembered, and which of several passes.

#![allow(clippy::unwrap_used, clippy::panic, non_snake_case, reason = "tests, named after cases")]

mod support;

use std::fs::File;
use std::process::Command;
use support::{Folder, dedup, dedup_with};

fn csv(times: impl IntoIterator<Item = f64>) -> String {
    let rows = times.into_iter().map(|t| format!("{:.1},k\n", 1_700_000_000.0 + t));
    std::iter::once("t,k\n".to_owned()).chain(rows).collect()
}

const KEYED: &str = "--key k --time t";

#[test]
fn case_W1_renewal_decides_whether_a_chain_of_reads_is_one() {
    let input = csv((0..300).map(|i| f64::from(i) * 0.2));
    dedup(&format!("{KEYED} --within 10s"), &input).counts([1, 299, 0, 0, 0, 0]);
    // A read exactly 10 s after the last that passed is still its duplicate: the next one passes.
    let expected = csv((0..6).map(|i| f64::from(i) * 10.2));
    let run = dedup(&format!("{KEYED} --within 10s --renew fresh"), &input);
    run.counts([6, 294, 0, 0, 0, 0]).out(&expected);
}

#[test]
fn case_W2_a_key_passes_again_after_the_window() {
    let run = dedup(&format!("{KEYED} --within 2.5s"), csv([0.0, 2.0, 5.0]));
    run.out(&csv([0.0, 5.0])).counts([2, 1, 0, 0, 0, 0]);
}

#[test]
fn case_W3_the_boundary_belongs_to_the_window() {
    for renew in ["always", "fresh"] {
        let flags = format!("{KEYED} --within 300s --renew {renew}");
        dedup(&flags, csv([0.0, 301.0, 302.0])).out(&csv([0.0, 301.0]));
        dedup(&flags, csv([0.0, 300.0])).out(&csv([0.0]));
        dedup(&flags, csv([0.0, 300.1])).out(&csv([0.0, 300.1]));
    }
    // Of records: a key is among the last 2 if at most one other came since.
    dedup("--last 2", "a\nb\na\nc\nd\na\n").out("a\nb\nc\nd\na\n");
}

#[test]
fn case_W4_a_change_passes() {
    let ndjson = "{\"id\":1,\"s\":\"on\"}\n{\"id\":1,\"s\":\"on\"}\n{\"id\":1,\"s\":\"off\"}\n{\"id\":1,\"s\":\"on\"}\n{\"id\":2,\"s\":\"on\"}\n";
    let run = dedup("--key id --pass-on-change s", ndjson);
    run.counts([4, 1, 0, 0, 0, 0]);
    assert_eq!(run.count("changed"), 2);
    let csv = "t,k,v,w\n1,a,1,1\n2,a,1,1\n3,a,1,2\n4,a,2,2\n5,a,2,2\n30,a,2,2\n";
    let run = dedup(
        "--key k --time t --time-format s --within 10s --renew fresh --pass-on-change v,w",
        csv,
    );
    run.out("t,k,v,w\n1,a,1,1\n3,a,1,2\n4,a,2,2\n30,a,2,2\n");
    // A change is a sighting: it begins the window anew, also under --renew fresh.
    let csv = "t,k,v\n1,a,1\n9,a,2\n12,a,2\n20,a,2\n";
    dedup("--key k --time t --time-format s --within 10s --renew fresh --pass-on-change v", csv)
        .out("t,k,v\n1,a,1\n9,a,2\n20,a,2\n");
}

const BURSTS: &str = "t,ant,rssi,epc\n1.0,1,-70,A\n1.1,2,-50,A\n1.15,1,-60,B\n1.2,3,-60,A\n5.0,1,-40,C\n9.0,1,-80,A\n";

#[test]
fn case_W5_the_strongest_of_a_burst_can_be_had() {
    dedup("--key epc --time t --time-format s --within 2s", BURSTS)
        .out("t,ant,rssi,epc\n1.0,1,-70,A\n1.15,1,-60,B\n5.0,1,-40,C\n9.0,1,-80,A\n");
    let folder = Folder::new();
    let lost = folder.path("lost");
    let flags =
        "--key epc --time t --time-format s --within 2s --best rssi:max --hold 200ms --duplicates";
    let run = dedup(&format!("{flags} {lost}"), BURSTS);
    run.counts([4, 2, 0, 0, 0, 0])
        .out("t,ant,rssi,epc\n1.1,2,-50,A\n1.15,1,-60,B\n5.0,1,-40,C\n9.0,1,-80,A\n");
    assert_eq!(folder.read("lost"), "t,ant,rssi,epc\n1.0,1,-70,A\n1.2,3,-60,A\n");
    let run = dedup(
        "--key epc --time t --time-format s --within 2s --best rssi:min --hold 200ms --mark",
        BURSTS,
    );
    run.counts([4, 2, 0, 0, 0, 0]);
    assert!(run.text().starts_with("t,ant,rssi,epc,lately\n"), "{}", run.text());
    assert!(
        run.text().contains("1.0,1,-70,A,fresh\n") && run.text().contains(",-50,A,duplicate\n")
    );
}

#[test]
fn case_W5_holding_loses_nothing_whatever_else_is_in_the_stream() {
    // Late, without a key, unreadable, without a rank, and a last line without its end.
    let rows =
        "100,1,A\n,2,A\n100.1,x,A\n101,5,\n1,9,A\n102,3,B\n102.05,1,2,3\n102.06,7,B\n103,1,C";
    let input = format!("t,r,k\n{rows}");
    let flags = "--key k --time t --time-format s --within 10s --on-bad-time drop --best r:max --hold 200ms";
    let run = dedup(flags, &input);
    // `A` at 100 keeps its place: x is no number. The empty key is a value.
    run.out("t,r,k\n100,1,A\n1,9,A\n101,5,\n102.06,7,B\n103,1,C").counts([4, 2, 1, 2, 0, 0]);
}

#[test]
fn case_W6_a_copy_that_comes_after_the_first_was_sent_on_is_a_duplicate() {
    let run = dedup(
        "--key k --time t --time-format s --within 10s --best r:max --hold 100ms",
        "t,r,k\n1,1,A\n2,1,B\n2.5,9,A\n",
    );
    run.out("t,r,k\n1,1,A\n2,1,B\n").counts([2, 1, 0, 0, 0, 0]);
    // Of two gateways, the slower one's copies have older times.
    let run = dedup(
        "--key k --time t --time-format s --within 10s",
        "t,k,gw\n1,A,1\n2,B,1\n1.5,A,2\n2,B,2\n",
    );
    run.out("t,k,gw\n1,A,1\n2,B,1\n").counts([2, 2, 0, 0, 0, 0]);
}

#[test]
fn json_arrays_can_be_held_too() {
    let run = dedup(
        "--key k --format json --best r:max --hold 1s",
        "[{\"k\":1,\"r\":1},{\"k\":1,\"r\":5}, {\"k\":2}]",
    );
    run.out("{\"k\":1,\"r\":5}\n{\"k\":2}\n").counts([2, 1, 0, 0, 0, 0]);
}

#[test]
fn case_S3_memory_is_flat_at_the_cap_and_the_policy_shows() {
    let lines: String = (0..40_000).map(|i| format!("key {i}\n")).collect();
    for (policy, counter) in [("grow", "forgotten"), ("forget", "forgotten"), ("refuse", "refused")]
    {
        let run = dedup_with(&["--memory", "16KiB", "--on-full", policy], &lines);
        run.code(0).says("the filter was full").says("allow more --memory");
        let filter = &run.summary["filter"];
        assert!(filter["memory_bytes"].as_u64().unwrap() <= 16 << 10, "{filter}");
        assert!(filter[counter].as_u64().unwrap() > 0, "{policy}: {filter}");
        assert!(filter["fpr_estimated"].as_f64().unwrap() < 1e-3, "{filter}");
        assert!(filter["fill"].as_f64().unwrap() > 0.0);
        // Never dropped for lack of room.
        assert!(run.count("fresh") >= 39_990, "{policy}: {}", run.count("fresh"));
    }
}

#[test]
fn case_S4_no_gigabytes_for_92_000_keys() {
    let lines: String = (0..92_000).map(|i| format!("key {i}\n")).collect();
    let run = dedup("", &lines);
    run.counts([92_000, 0, 0, 0, 0, 0]);
    let filter = &run.summary["filter"];
    assert!(filter["memory_bytes"].as_u64().unwrap() < 16 << 20, "{filter}");
    assert!(
        filter["fill"].as_f64().unwrap() > 0.01
            && filter["fpr_estimated"].as_f64().unwrap() <= 1e-6
    );
}

#[test]
fn the_filter_is_planned_for_what_files_hold() {
    let folder = Folder::new();
    // Both are needed for more than a million.
    let (one, two) =
        (folder.file("1.txt", "a\n".repeat(700_000)), folder.file("2.txt", "b\n".repeat(700_000)));
    let memory = |arguments: &[&str], input: &str| {
        let run = dedup_with(arguments, input);
        run.counts([2, 1_399_998, 0, 0, 0, 0]);
        run.summary["filter"]["memory_bytes"].as_u64().unwrap()
    };
    let (planned, asked) =
        (memory(&[&one, &two], ""), memory(&[&one, &two, "--expect", "1.4M"], ""));
    assert!(planned.abs_diff(asked) < asked / 100, "{planned} {asked}");
    // Whoever keeps a filter gets one of the usual size, and so does whose input nobody knows.
    let state = folder.path("state");
    let kept = memory(&[&one, &two, "--state", &state], "");
    let both = format!("{}{}", "a\n".repeat(700_000), "b\n".repeat(700_000));
    assert_eq!(kept, memory(&[], &both));
    assert_eq!(kept, memory(&[&one, &two, "--expect", "1M"], ""));
    assert!(kept < planned);
    // Standard input may be a file, of which something was read before.
    let third = folder.file("3.txt", format!("read before\n{both}"));
    let script = r#"read line; exec "$0" dedup --summary -"#;
    let third = File::open(third).unwrap();
    let done = Command::new("bash").args(["-c", script, support::LATELY]).stdin(third).output();
    let done = done.unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    let summary = said.lines().find(|line| line.starts_with('{')).unwrap();
    let summary: serde_json::Value = serde_json::from_str(summary).unwrap();
    assert_eq!(done.stdout, b"a\nb\n");
    assert_eq!(summary["filter"]["memory_bytes"], planned);
}

#[test]
fn values_of_many_keys_are_remembered_under_pass_on_change() {
    let rows: String = (0..100_000).map(|i| format!("{i},{}\n", i % 3)).collect();
    let input = format!("k,v\n{rows}{rows}");
    let run = dedup("--key k --pass-on-change v", &input);
    // A few may be pushed out before the table grows.
    assert!(run.count("changed") <= run.count("change_evicted"));
    assert!(run.count("change_evicted") < 10);
    assert_eq!(run.count("fresh"), 100_000 + run.count("changed"));
    assert!(run.count("change_memory_bytes") > 100_000 * 16);
    // Too little memory lets duplicates pass, and is told.
    let run = dedup("--key k --pass-on-change v --memory 1MiB", &input);
    assert!(run.count("change_memory_bytes") <= 256 << 10);
    assert!(run.count("change_evicted") > 100_000 && run.count("changed") > 0);
}
