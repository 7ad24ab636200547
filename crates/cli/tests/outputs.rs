//! Outputs: whose end is no trouble, and which must not be one another.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
#![cfg(unix)]

mod support;

use std::fs;
use std::process::{Command, Stdio};
use support::{Folder, LATELY, dedup_with, lately};

/// The program in a shell, in this folder: its exit status and what is on standard error.
fn shell(folder: &Folder, command: &str) -> (i32, String) {
    let output = Command::new("bash")
        .args(["-c", &format!("cd '{}'; {command}", folder.path(""))])
        .env("LATELY", LATELY)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

fn many_twice() -> String {
    let lines = (0..200_000).map(|i| format!("a line with the number {}\n", i / 2));
    lines.collect()
}

#[test]
fn a_closed_pipe_is_no_trouble_for_the_main_output_alone() {
    let folder = Folder::new();
    folder.file("in", many_twice());
    let (code, stderr) = shell(&folder, "$LATELY dedup in | head -1 > out; exit ${PIPESTATUS[0]}");
    assert_eq!((code, &*stderr), (0, ""));
    // Its end hides no trouble of the others.
    let command = "$LATELY dedup in --duplicates /dev/full | head -1 > out; exit ${PIPESTATUS[0]}";
    let (code, stderr) = shell(&folder, command);
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains("cannot write /dev/full"), "{stderr}");
    for flag in ["--duplicates", "--invalid"] {
        let wanted = if flag == "--invalid" { "--max-line 5B" } else { "" };
        let command =
            format!("$LATELY dedup in {wanted} --state state {flag} >(head -1 >/dev/null) > out");
        let (code, stderr) = shell(&folder, &command);
        assert_eq!(code, 1, "{stderr}");
        assert!(stderr.contains("cannot write /dev/fd/"), "{stderr}");
        assert!(fs::metadata(folder.path("state")).is_err());
    }
}

#[test]
fn files_that_would_destroy_each_other_are_refused() {
    let folder = Folder::new();
    for (command, names) in [
        ("--summary /dev/stdout < in > o", ["--summary /dev/stdout", "standard output"]),
        ("--duplicates /dev/stdout < in > o", ["--duplicates /dev/stdout", "standard output"]),
        ("--duplicates /dev/stdout < in | cat", ["--duplicates /dev/stdout", "standard output"]),
        ("--late /dev/stderr < in 2> o", ["--late /dev/stderr", "standard error"]),
        ("in -o ./o --duplicates o", ["--output ./o", "--duplicates o"]),
        ("link -o in", ["the input link", "--output in"]),
        ("-o in < in", ["standard input", "--output in"]),
        ("< in >> in", ["standard input", "standard output"]),
        ("in -o s --state s", ["--output s", "--state s"]),
        ("in --summary sx --state sx", ["--summary sx", "--state sx"]),
        ("in --late s.new --state s", ["--late s.new", "--state,"]),
        ("in --late s.lock --state s", ["--late s.lock", "--state,"]),
        ("in --state in", ["the input in", "--state in"]),
        ("in -o dangling --late target", ["--output dangling", "--late target"]),
    ] {
        for file in ["s", "sx", "o", "link", "dangling", "target"] {
            let _ = fs::remove_file(folder.path(file));
        }
        folder.file("in", "a\na\n");
        fs::hard_link(folder.path("in"), folder.path("link")).unwrap();
        std::os::unix::fs::symlink("target", folder.path("dangling")).unwrap();
        let to_file = command.contains("2> o");
        let (code, stderr) =
            shell(&folder, &format!("$LATELY dedup {command}; exit ${{PIPESTATUS[0]}}"));
        let stderr = if to_file { folder.read("o") } else { stderr };
        assert_eq!(code, 2, "{command}: {stderr}");
        assert!(names.iter().all(|name| stderr.contains(name)), "{command}: {stderr}");
        assert!(stderr.contains("are the same"), "{stderr}");
        assert_eq!(folder.read("in"), "a\na\n", "{command}");
        for file in ["s", "sx", "s.new"] {
            assert!(fs::metadata(folder.path(file)).is_err(), "{command} left {file}");
        }
    }
    for fine in [
        "in in -o /dev/null --duplicates /dev/null",
        "in > o 2>&1",
        "in -o - --summary /dev/stdout | cat > /dev/null; test ${PIPESTATUS[0]} = 2",
        "in -o o --summary /dev/stdout | grep -q fresh",
    ] {
        let (code, stderr) = shell(&folder, &format!("$LATELY dedup {fine}"));
        assert_eq!(code, 0, "{fine}: {stderr}");
    }
}

#[test]
fn a_dash_is_standard_output_for_what_is_passed_on_alone() {
    let folder = Folder::new();
    let input = folder.file("in", "a\na\n");
    dedup_with(&[&input, "-o", "-"], "").code(0).out("a\n");
    for flag in ["--duplicates", "--late", "--invalid"] {
        lately(&["dedup", &input, flag, "-"], "").code(2).out("").says(&format!("{flag} -: "));
    }
}

#[test]
fn with_a_state_outputs_are_appended_to() {
    let folder = Folder::new();
    let names = ["main", "duplicates", "late", "invalid"].map(|name| folder.path(name));
    let [main, duplicates, late, invalid] = &names;
    let state = folder.path("state");
    let flags = ["--key", "k", "--time", "t", "--time-format", "s", "--within", "5s"];
    let flags = [&flags[..], &["--on-bad-time", "drop"]].concat();
    let outputs = ["-o", main, "--duplicates", duplicates, "--late", late, "--invalid", invalid];
    let all = [&flags[..], &outputs, &["--state", &state]].concat();
    // What is there is replaced on demand only.
    names.iter().for_each(|name| fs::write(name, "old\n").unwrap());
    let first = "t,k\n100,a\n101,a\n1,b\nx,c\n";
    let replaced = [&all[..], &["--overwrite"]].concat();
    dedup_with(&replaced, first).code(0).counts([1, 1, 1, 1, 0, 0]);
    assert_eq!(folder.read("duplicates"), "t,k\n101,a\n");
    dedup_with(&all, "t,k\n102,a\n200,b\n2,b\ny,c\n").code(0).counts([1, 1, 1, 1, 0, 0]);
    assert_eq!(folder.read("main"), "t,k\n100,a\n200,b\n");
    assert_eq!(folder.read("duplicates"), "t,k\n101,a\n102,a\n");
    assert_eq!(folder.read("late"), "t,k\n1,b\n2,b\n");
    assert_eq!(folder.read("invalid").lines().count(), 2);
    // One that is begun late has its header, too.
    fs::remove_file(duplicates).unwrap();
    dedup_with(&all, "t,k\n201,b\n").code(0);
    assert_eq!(folder.read("duplicates"), "t,k\n201,b\n");
}

#[test]
fn a_run_that_comes_to_nothing_leaves_the_outputs_as_they_were() {
    let folder = Folder::new();
    let (out, late) = (folder.file("out", "old\n"), folder.file("late", "old\n"));
    let input = folder.file("in", "k\na\n");
    let outputs = ["-o", &*out, "--late", &*late];
    dedup_with(&[&["/no/such/input"], &outputs[..]].concat(), "").code(1);
    dedup_with(&[&[&*input, "--key", "other"], &outputs[..]].concat(), "").code(2);
    dedup_with(&[&[&*input, "--invalid", "/no/such/folder/x"], &outputs[..]].concat(), "").code(1);
    let nowhere = ["dedup", &*input, "--summary", "/no/such/folder/x"];
    lately(&[&nowhere[..], &outputs[..]].concat(), "").code(1).says("cannot write /no/such");
    assert_eq!((folder.read("out"), folder.read("late")), ("old\n".into(), "old\n".into()));
    // Nothing to put into it is something to know.
    dedup_with(&[&[&*input], &outputs[..]].concat(), "").code(0);
    assert_eq!((folder.read("out"), folder.read("late")), ("k\na\n".into(), String::new()));
    lately(&[&["dedup"], &outputs[..]].concat(), "").code(0);
    assert_eq!(folder.read("out"), "");
}

/// On a terminal, which `script` stands for.
#[cfg(target_os = "linux")]
#[test]
fn the_progress_bar_is_erased_however_a_run_ends() {
    let folder = Folder::new();
    let input = folder.file("in", (0..1_000_000).map(|i| format!("{i}\n")).collect::<String>());
    let run = format!("{LATELY} dedup {input}");
    let ends = [
        (format!("{run} | head -3 > /dev/null"), ""),
        (format!("{run} > /dev/full"), "cannot write"),
        (format!("{run} > >(sleep 4) & p=$!; sleep 2; kill $p; sleep .3; kill $p; wait $p"), ""),
        (format!("{run} > >(sleep 12) & p=$!; sleep 2; kill $p; wait $p"), "taken nothing"),
    ];
    for (command, said) in ends {
        let script = Command::new("script")
            .args(["-q", "-e", "-c", &format!("bash -c '{command}'"), "/dev/null"])
            .env("COLUMNS", "200")
            .stdin(Stdio::null())
            .output();
        let Ok(output) = script else {
            println!("skipped: there is no `script`");
            return;
        };
        let shown = String::from_utf8_lossy(&output.stdout);
        assert!(shown.contains(said), "{command}: {shown:?}");
        // Short runs show none.
        let Some(bar) = shown.rfind(" fresh of ") else { continue };
        assert!(shown[bar..].contains("\x1b[2K"), "{command}: {:?}", &shown[bar..]);
    }
}
