//! The files of cases.

use super::*;
use std::path::PathBuf;

/// The `t` column of a file of cases, and its lines here, so that the test does not depend on the file.
fn times_of(file: &str, lines: &[&str]) -> Vec<Result<u64, StampError>> {
    let near = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("LATELY_SHARED").map_or(near, PathBuf::from);
    let path = shared.join("cases/in").join(file);
    match std::fs::read_to_string(&path) {
        Ok(text) => {
            let read: Vec<_> =
                text.lines().skip(1).filter_map(|l| l.split_once(',')).map(|(_, t)| t).collect();
            assert_eq!(read, lines, "{file}");
        }
        Err(_) => eprintln!("skipped: {} is not there", path.display()),
    }
    lines.iter().map(|line| parser("auto", "UTC").parse(line.as_bytes())).collect()
}

#[test]
fn the_files_of_cases() {
    let seconds = |file, lines: &[&str]| -> Vec<u64> {
        times_of(file, lines).into_iter().map(|time| time.unwrap() / S).collect()
    };
    let may = 1_714_521_600; // 2024-05-01
    assert_eq!(
        seconds("t14.csv", &["20240501100000", "20240501110000", "20240502110000"]),
        [may + 36_000, may + 39_600, may + 126_000]
    );
    assert_eq!(
        seconds("t8.csv", &["20240501", "20240502", "20240601"]),
        [may, may + 86_400, may + 31 * 86_400]
    );
    assert_eq!(
        seconds(
            "t_T3b.csv",
            &["3/10/2004 6:00:00 PM", "3/10/2004 6:00:30 PM", "3/10/2004 7:00:00 PM"]
        ),
        [1_078_941_600, 1_078_941_630, 1_078_945_200]
    );
    let mail = [
        "\"Wed, 01 May 2024 10:00:00 +0200\"",
        "\"Wed, 01 May 2024 08:00:01 +0000\"",
        "\"Wed, 1 May 2024 10:05:00 +0200\"",
    ];
    assert_eq!(seconds("t_T8.csv", &mail), [may + 28_800, may + 28_801, may + 29_100]);
    let ctime =
        ["Wed May  1 10:00:00 2024", "Wed May  1 10:00:01 2024", "Wed May  1 10:05:00 2024"];
    assert_eq!(seconds("t_T9.csv", &ctime), [may + 36_000, may + 36_001, may + 36_300]);
    let go = [
        "2024-05-01 10:00:00.123 +0000 UTC",
        "2024-05-01 10:00:01 +0000 UTC",
        "2024-05-01 10:05:00 +0000 UTC",
    ];
    assert_eq!(seconds("t_T14.csv", &go), [may + 36_000, may + 36_001, may + 36_300]);
    let est = ["2024-05-01 10:00:00 EST", "2024-05-01 10:00:01 EST", "2024-05-01 10:05:00 EST"];
    assert_eq!(seconds("t_T18.csv", &est), [may + 54_000, may + 54_001, may + 54_300]);
    for (file, lines, name) in [
        ("t_T6.csv", ["45413.416667", "45413.416678", "45414.0"], "Excel"),
        (
            "t_T22.csv",
            ["133593012000000000", "133593012010000000", "133593015000000000"],
            "FILETIME",
        ),
    ] {
        for time in times_of(file, &lines) {
            assert!(time.unwrap_err().to_string().contains(name));
        }
    }
}
