//! Outputs: whose end is no trouble, and which must not be one another.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
#![cfg(unix)]

mod common;

use common::{Folder, LATELY};
use std::fs;
use std::process::{Command, Stdio};

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
