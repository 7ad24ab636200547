//! `lately watch`: records whose key is in one of many intervals.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use std::process::{Command, Stdio};
use std::time::Duration;
use support::{Folder, LATELY, Live, Outcome, summed};

/// What must come without more input is waited for this long.
const PATIENT: Duration = Duration::from_secs(20);

fn watch(folder: &Folder, list: &str, arguments: &str, input: &str) -> Outcome {
    let list = folder.file("list", list);
    let mut all = vec!["watch", "--ranges", &list];
    all.extend(arguments.split_whitespace());
    summed(&all, input)
}

#[test]
fn records_inside_pass_unchanged() {
    let folder = Folder::new();
    let run =
        watch(&folder, "1000..1999\n# and\n5\n1500..2500\n", "", "5\n6\n 2500\r\n2501\n999\n1000");
    run.out("5\n 2500\r\n1000").code(0).says("6 records: 3 inside, 3 outside");
    let counts =
        ["read", "inside", "outside", "missing_key", "invalid"].map(|name| run.count(name));
    assert_eq!(counts, [6, 3, 3, 0, 0]);
    assert_eq!((run.count("lines"), run.count("intervals")), (3, 2));
}

#[test]
fn records_without_a_usable_key_are_kept_back_and_told_of() {
    let folder = Folder::new();
    let [missing, others, invalid] = ["missing", "others", "invalid"].map(|name| folder.path(name));
    let input = "k,v\n1,a\n,b\nx,c\n7,d\n1,e,f\n2,g\n";
    let run = watch(
        &folder,
        "1..2\n",
        &format!("--key k --missing {missing} --others {others} --invalid {invalid}"),
        input,
    );
    run.out("k,v\n1,a\n2,g\n").code(0).says("2 records without a usable key").says("`x` is not");
    let counts =
        ["read", "inside", "outside", "missing_key", "invalid"].map(|name| run.count(name));
    assert_eq!(counts, [6, 2, 1, 2, 1]);
    assert_eq!(folder.read("missing"), "k,v\n,b\nx,c\n");
    assert_eq!(folder.read("others"), "k,v\n7,d\n");
    assert!(folder.read("invalid").contains("1,e,f"));
    let run = watch(&folder, "1..2\n", "--key k --strict", input);
    run.code(3).says("--missing FILE keeps them").says("--invalid FILE keeps them");
}

#[test]
fn formats_keep_their_comments_and_headers() {
    let folder = Folder::new();
    let zeek = "#separator \\x09\n#fields\tts\tid.orig_h\n#types\ttime\taddr\n1\t10.1.0.1\n2\t-\n3\tfe80::1\n4\t10.2.0.1\n#close\n";
    let run = watch(&folder, "10.1.0.0/16\nfe80::/10\n", "--key id.orig_h --key-format ip", zeek);
    run.out("#separator \\x09\n#fields\tts\tid.orig_h\n#types\ttime\taddr\n1\t10.1.0.1\n3\tfe80::1\n#close\n");
    assert_eq!(run.count("missing_key"), 1);
    let reads = "timestamp,epc\n1,b'3074257bf7194e4000001a85'\n2,3074257BF7194E8000001A85\n";
    let run = watch(&folder, "urn:epc:idpat:sgtin:0614141.812345.*\n", "--key epc", reads);
    run.out("timestamp,epc\n1,b'3074257bf7194e4000001a85'\n");
    let events = "{\"id\":7}\n{\"id\":\"7\"}\n{\"id\":8}\n{\"id\":[\"7\"]}\n{\"id\":[7,8]}\n{\"id\":[\"8\",\"7\"]}\n{\"id\":[]}\n";
    watch(&folder, "7\n", "--key id", events)
        .out("{\"id\":7}\n{\"id\":\"7\"}\n{\"id\":[\"7\"]}\n{\"id\":[\"8\",\"7\"]}\n");
}

#[test]
fn what_is_wrong_is_said() {
    let folder = Folder::new();
    let (nowhere, list) = (folder.path("nowhere"), folder.path("list"));
    watch(&folder, "1..\n10.0.0.0/8\n", "", "1\n")
        .code(2)
        .out("")
        .says("list:2")
        .says("--key-format ip");
    watch(&folder, "", "", "1\n").code(2).says("has no interval in it");
    watch(&folder, "1\n", "--key a,b", "1\n").code(2).says("`b` is a second one");
    watch(&folder, "1\n", "--key a", "b\n1\n").code(2).says("no column `a`");
    watch(&folder, "1\n", &nowhere, "").code(1).says("cannot open");
    watch(&folder, "1\n", &format!("--output {list}"), "1\n").code(2).says("are the same file");
    summed(&["watch", "--ranges", &nowhere], "1\n").code(1).says("--ranges").says("nowhere");
    summed(&["watch", "--ranges", "-"], "1\n").code(2).says("standard input is an input already");
    let input = folder.file("in", "1\n2\n");
    summed(&["watch", &input, "--ranges", "-"], "2..3\n").code(0).out("2\n");
}

#[cfg(unix)]
#[test]
fn a_slow_stream_is_passed_on_at_once_and_a_closed_pipe_is_quiet() {
    let folder = Folder::new();
    let list = folder.file("list", "5..7\n");
    let mut live = Live::start(&["watch", "--ranges", &list]);
    live.send("5\n9\n");
    live.expect("5\n", PATIENT);
    live.send("6\n");
    live.expect("5\n6\n", PATIENT);
    live.signal("TERM");
    assert_eq!(live.wait().0, 0);
    let numbers: String = (0..200_000).map(|_| "5\n").collect();
    let input = folder.file("in", numbers);
    let mut child = Command::new(LATELY)
        .args(["watch", "--ranges", &list, &input])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}
