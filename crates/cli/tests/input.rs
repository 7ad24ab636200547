//! Acceptance cases I1 to I5: what real inputs are like.

#![allow(clippy::unwrap_used, clippy::panic, non_snake_case, reason = "tests, named after cases")]

mod support;

use std::io::Write;
use std::process::{Command, Stdio};
use support::{Folder, LATELY, dedup, dedup_with, lately};

#[test]
fn case_I1_marks_and_line_ends_are_not_part_of_keys() {
    let run = dedup("--key id", "\u{FEFF}id,v\r\nx,1\r\nx,2\r\ny,3\r\n");
    run.out("id,v\r\nx,1\r\ny,3\r\n").counts([2, 1, 0, 0, 0, 0]);
    dedup("--key v", "id,v\r\n1,x\r\n2,x\n").out("id,v\r\n1,x\r\n").counts([1, 1, 0, 0, 0, 0]);
    dedup("", "a\r\na\nb").out("a\r\nb").counts([2, 1, 0, 0, 0, 0]);
    dedup("--key id", "\u{FEFF}{\"id\":1}\r\n{\"id\":1}\n").out("{\"id\":1}\r\n");
    dedup("", [0xFF, 0xFE, b'a', 0, b'\n', 0]).code(1).says("UTF-16");
}

#[test]
fn case_I2_a_line_that_is_too_long_is_one_dead_letter() {
    let folder = Folder::new();
    let dead = folder.path("dead");
    let long = "x".repeat(111_975);
    for (flags, header) in [("", ""), ("--key id", "id\n"), ("--key id --format ndjson", "")] {
        let ndjson = flags.contains("ndjson");
        let (a, b) = if ndjson { ("{\"id\":1}\n", "{\"id\":2}\n") } else { ("a\n", "b\n") };
        let input = folder.file("in", format!("{header}{a}{long}\n{b}{a}"));
        let run =
            dedup(&format!("{flags} --max-line 102400B --invalid {dead} --strict {input}"), "");
        run.counts([2, 1, 0, 1, 0, 0]).code(3).out(&format!("{header}{a}{b}"));
        let line = if header.is_empty() { 2 } else { 3 };
        let letters = folder.read("dead");
        assert!(
            letters.starts_with(&format!("{input}\t{line}\t111975 bytes long")),
            "{letters:.99}"
        );
        assert_eq!(letters.lines().count(), 1);
        run.says(&format!("{input}:{line}: "));
    }
}

#[test]
fn case_I3_bytes_that_are_no_text_are_kept() {
    for (flags, blank) in [("", b' '), ("--format columns --key 1,2", b' '), ("--key k", b',')] {
        let mut input = b"k a\n1\xA0000 x\n\xFF\xFE y\n1\xA0000 x\n\xFF\xFE y\n".to_vec();
        input.iter_mut().filter(|c| **c == b' ').for_each(|c| *c = blank);
        let run = dedup(flags, &input);
        assert_eq!(run.stdout, input[..input.len() - 13], "{flags}");
        run.code(0);
    }
    let run = dedup("--key k", b"{\"k\":\"\xFF\"}\n{\"k\":1}\n");
    run.out("{\"k\":1}\n").counts([1, 0, 0, 1, 0, 0]).says("-:1: not UTF-8 at byte 7");
}

#[test]
fn case_I4_broken_records_are_dead_letters_that_say_where() {
    let folder = Folder::new();
    let dead = folder.path("dead");
    let csv = folder.file("a.csv", "k,v\na,1\nb,1,9\n\"open,2\nc\na,3\n");
    let run = dedup(&format!("{csv} --key k --invalid {dead} --strict"), "");
    run.out("k,v\na,1\n")
        .counts([1, 1, 0, 3, 0, 0])
        .code(3)
        .says("a.csv:3: 3 fields where the table has 2 columns");
    let letters = folder.read("dead");
    assert_eq!(
        letters,
        format!(
            "{csv}\t3\t3 fields where the table has 2 columns\tb,1,9\n{csv}\t4\ta quoted field is not closed properly\t\"open,2\n{csv}\t5\t1 field where the table has 2 columns\tc\n"
        )
    );
    dedup(&format!("{csv} --key k"), "").code(0).says("3 invalid records").says("--invalid FILE");
    let run = dedup(&format!("--key k --invalid {dead}"), "{\"k\":1}\n{\"k\":1,\n{\"k\":2}\n");
    run.out("{\"k\":1}\n{\"k\":2}\n").counts([2, 0, 0, 1, 0, 0]).code(0);
    assert!(folder.read("dead").starts_with("-\t2\t"), "{}", folder.read("dead"));
    let array = "[{\"k\":1},\n{\"k\":1},\n{\"k\":2}]\n[broken}\n{\"k\":3}\n";
    let run = dedup(&format!("--format json --key k --invalid {dead} --strict"), array);
    run.out("{\"k\":1}\n{\"k\":2}\n{\"k\":3}\n").counts([3, 1, 0, 1, 0, 0]).code(3);
    assert!(folder.read("dead").starts_with("-\t4\t"), "{}", folder.read("dead"));
}

#[test]
fn case_I4_lines_are_counted_right_far_into_a_stream_and_in_each_file() {
    let folder = Folder::new();
    let mut rows: Vec<_> =
        (0..60_000).map(|i| format!("k{i},some text to fill the chunk\n")).collect();
    rows[50_000] = "one field\n".into();
    let first = folder.file("1.csv", format!("k,v\n{}", rows.concat()));
    let second = folder.file("2.csv", "k,v\nx,y\nbad\n");
    for threads in ["1", "3"] {
        let run = dedup_with(&[&first, &second, "--key", "k", "--threads", threads], "");
        run.counts([60_000, 0, 0, 2, 0, 0]).says("1.csv:50002: ").says("2.csv:3: ");
    }
}

/// Reads one line of what a run writes and goes away.
fn head(arguments: &[&str], input: &str) -> (i32, String) {
    let mut child = support::spawn(Command::new(LATELY).arg("dedup").args(arguments));
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    (output.status.code().unwrap_or(-1), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn case_I5_an_output_closed_early_is_a_quiet_end() {
    let lines: String = (0..100_000).map(|i| format!("{i}\n")).collect();
    assert_eq!(head(&[], &lines), (0, String::new()));
    assert_eq!(head(&["--mark"], &lines), (0, String::new()));
    let folder = Folder::new();
    let file = folder.file("in", &lines);
    let shell = format!("{LATELY} dedup {file} | head -n 1; echo ${{PIPESTATUS[0]}}");
    let output = Command::new("bash").args(["-c", &shell]).output().unwrap();
    assert_eq!((&*output.stdout, &*output.stderr), (&b"0\n0\n"[..], &b""[..]));
    for arguments in [&["simulate", "rfid"][..], &["man"], &["plan"], &["completions", "bash"]] {
        let mut child = Command::new(LATELY)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), &*output.stderr), (Some(0), &b""[..]), "{arguments:?}");
    }
}

#[test]
fn case_I5_empty_inputs_and_last_lines_without_an_end() {
    for flags in [
        "",
        "--key id",
        "--within 5s",
        "--format ndjson",
        "--format json",
        "--no-header --key 1",
        "--format epcis",
    ] {
        dedup(flags, "").out("").counts([0; 6]).code(0);
    }
    dedup("--key id", "id,v\n").out("id,v\n").counts([0; 6]).code(0);
    dedup("", "a\nb\na\nc").out("a\nb\nc").counts([3, 1, 0, 0, 0, 0]);
    dedup("", "a\nb\na").out("a\nb\n").counts([2, 1, 0, 0, 0, 0]);
    dedup("--key id", "id\nx\ny").out("id\nx\ny").counts([2, 0, 0, 0, 0, 0]);
    dedup("--key id", "{\"id\":1}\n{\"id\":2}").out("{\"id\":1}\n{\"id\":2}");
    dedup("--key id --mark", "id\nx\nx").out("id,lately\nx,fresh\nx,duplicate");
    let folder = Folder::new();
    let (a, b) = (folder.file("a", "1\n2"), folder.file("b", "3\n1"));
    dedup_with(&[&a, &b], "").out("1\n2\n3\n");
    let duplicates = folder.path("duplicates");
    dedup_with(&[&a, &b, &a, "--duplicates", &duplicates], "").out("1\n2\n3\n");
    assert_eq!(folder.read("duplicates"), "1\n1\n2");
}

#[test]
fn blank_lines_and_comments_stay_where_they_are() {
    dedup("--key id", "id,v\n\na,1\n\na,2\nb,1\n").out("id,v\n\na,1\n\nb,1\n");
    dedup("--key id", "{\"id\":1}\n\n{\"id\":1}\n{\"id\":2}\n").out("{\"id\":1}\n\n{\"id\":2}\n");
}

#[test]
fn several_files_share_one_header() {
    let folder = Folder::new();
    let a = folder.file("a.csv", "k,v\nx,1\n");
    let b = folder.file("b.csv", "k,v\r\nx,2\r\ny,3\r\n");
    let c = folder.file("c.csv", "v,k\n4,z\n");
    let kept = folder.path("kept");
    let run = dedup_with(&[&a, &b, "--key", "k", "--duplicates", &kept], "");
    run.out("k,v\nx,1\ny,3\r\n").counts([2, 1, 0, 0, 0, 0]);
    assert_eq!(folder.read("kept"), "k,v\nx,2\r\n");
    assert!(!run.stderr.contains("different header"));
    let d = folder.file("d.csv", "k,w\nz,4\n");
    dedup_with(&[&a, &d, "--key", "k"], "").says("d.csv has a different header line");
    let run = dedup_with(&[&a, &c, "--key", "k"], "");
    run.code(1).out("k,v\nx,1\n").says("c.csv: its columns are in another order");
    // One that cannot be read does not keep the others from it.
    let gone = folder.path("gone.csv");
    let run = dedup_with(&[&a, &gone, &b, "--key", "k"], "");
    run.out("k,v\nx,1\ny,3\r\n").code(1).says("gone.csv");
    let other = folder.file("d.csv", "id\n1\n");
    let run = dedup_with(&[&a, &other, "--key", "k"], "");
    run.out("k,v\nx,1\n").code(1).says("d.csv: no column `k`");
    dedup_with(&[&other, "--key", "k"], "").code(2);
}

#[test]
fn compression_is_told_by_content() {
    let gzip = |text: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let folder = Folder::new();
    let members = [gzip("id,v\nx,1\n"), gzip("x,2\ny,3\n")].concat();
    dedup("--key id", &members).out("id,v\nx,1\ny,3\n").counts([2, 1, 0, 0, 0, 0]);
    let file = folder.file("no-ending", &members);
    dedup_with(&[&file, "--key", "id"], "").out("id,v\nx,1\ny,3\n");
    let frames = [
        zstd::encode_all(&b"a\nb\n"[..], 1).unwrap(),
        zstd::encode_all(&b"a\nc\n"[..], 1).unwrap(),
    ];
    dedup("", frames.concat()).out("a\nb\nc\n").counts([3, 1, 0, 0, 0, 0]);
    // Cut off: what came before is there, and it says so.
    let whole =
        gzip(&(0..50_000).map(|i| format!("line {}\n", i * 7919 % 65_536)).collect::<String>());
    let run = dedup("", &whole[..whole.len() - 100]);
    run.code(1).says("cannot read - any further");
    assert!(run.count("fresh") > 1000);
}

#[test]
fn marks_say_the_class_in_every_format() {
    dedup("--key k --mark", "k,v\r\na,1\r\na,2\r\n")
        .out("k,v,lately\r\na,1,fresh\r\na,2,duplicate\r\n");
    dedup("--key k --mark", "{\"k\":1}\n{\"k\":1}\n{}\n").out(
        "{\"k\":1,\"lately\":\"fresh\"}\n{\"k\":1,\"lately\":\"duplicate\"}\n{\"lately\":\"missing_key\"}\n",
    );
    dedup("--mark", "a b\na b\n").out("a b\tfresh\na b\tduplicate\n");
    let zeek = "#separator \\x09\n#fields\tts\tid\n#types\ttime\tstring\n1\tx\n1\tx\n#close\tnow\n";
    dedup("--key id --mark", zeek).out(
        "#separator \\x09\n#fields\tts\tid\tlately\n#types\ttime\tstring\tstring\n1\tx\tfresh\n1\tx\tduplicate\n#close\tnow\n",
    );
    dedup("--format json --key k --mark", "[{\"k\":1},{\"k\":1}]")
        .out("{\"k\":1,\"lately\":\"fresh\"}\n{\"k\":1,\"lately\":\"duplicate\"}\n");
    let run = dedup(
        "--key k --time t --time-format s --within 5s --mark",
        "t,k\n100,a\n1,a\n200000,b\n101,c\n102,d\n103,e\n",
    );
    run.out("t,k,lately\n100,a,fresh\n1,a,late\n200000,b,skewed\n101,c,fresh\n102,d,fresh\n103,e,fresh\n");
}

#[test]
fn tables_without_a_header_have_numbers() {
    dedup("--no-header --key 2", "1,x\n2,x\n3,y\n").out("1,x\n3,y\n").counts([2, 1, 0, 0, 0, 0]);
    dedup("--no-header --format tsv --key 1", "a\t1\na\t2\n").out("a\t1\n");
    dedup("--format columns --key 1,2", "1  2 9\n1 2 8\n 1 2\n2 1\n").out("1  2 9\n2 1\n");
    dedup("--format columns --key id", "1 2\n").code(2).says("columns are named 1, 2, 3");
    dedup("--no-header --key id", "1,2\n").code(2).says("no column `id`; there are 1, 2");
    dedup("--format lines --key id", "1\n").code(2).says("raw lines have no field `id`");
}

#[test]
fn wrong_usage_is_status_2_and_says_what_to_do() {
    for (flags, words) in [
        ("--within 5s --last 3", "cannot be used with"),
        ("--within 0s", "--within: must be more than 0"),
        ("--within soon", "soon"),
        ("--best rssi", "FIELD:max or FIELD:min"),
        ("--best rssi:max", "--hold"),
        ("--hold 1s", "--best"),
        ("--format xml", "known are auto, lines"),
        ("--memory 10B --expect 1M", "memory"),
        ("--slack 1s", "--slack needs a window"),
        ("--slack 5%", "--slack needs a window"),
        ("--last 18446744073709551615", "--last: too large"),
        ("--last 18446744073709551615 --memory 1EiB", "--last"),
        ("--within 100000d", "--within: too long"),
        ("--expect 18446744073709551615 --memory 15EiB", "--expect"),
        ("--within 5s --expect 18446744073709551615 --memory 15EiB", "--expect"),
        ("--expect 1T", "--expect"),
        ("--memory 1B", "--memory"),
        ("--within 5s --memory 1B", "--memory"),
        ("--time-format minutes", "expected auto"),
        ("--structure none", "none"),
    ] {
        let run = dedup(flags, "a\n");
        run.code(2).out("").says(words);
    }
    lately(&["dedupe"], "").code(2);
    lately(&["man", "nothing"], "").code(2).says("no subcommand `nothing`");
}

#[test]
fn what_is_said_at_the_end_can_be_chosen() {
    let run = lately(&["dedup", "--quiet"], "a\na\n");
    assert_eq!((run.text(), &*run.stderr), ("a\n", ""));
    let run = lately(&["dedup", "--summary", "-"], "a\na\n");
    let numbers: serde_json::Value = serde_json::from_str(&run.stderr).unwrap();
    assert_eq!((&numbers["read"], &numbers["duplicate"]), (&2.into(), &1.into()));
    assert_eq!(run.stderr.lines().count(), 1);
    assert_eq!((&numbers["bytes_in"], &numbers["bytes_out"]), (&4.into(), &2.into()));
    // Warnings stay.
    let run = lately(&["dedup", "--quiet", "--key", "k"], "{\"k\":1}\n{\n");
    assert_eq!(run.stderr.lines().count(), 4, "{}", run.stderr);
    lately(&["dedup", "--summary", "/no/such/folder/s"], "a\n")
        .code(1)
        .says("/no/such/folder/s")
        // Before anything is read.
        .out("");
}

#[test]
fn dead_letters_are_lines_whatever_the_record_was() {
    let folder = Folder::new();
    let dead = folder.path("dead");
    let flags = format!(
        "--format json --key k --time t --time-format s --within 1s --on-bad-time drop --invalid {dead}"
    );
    let run = dedup(&flags, "[{\"k\":1,\"t\":\"soon\"},\n {\"k\":2},{\"k\":3,\"t\":5}]");
    run.out("{\"k\":3,\"t\":5}\n").counts([1, 0, 0, 2, 0, 0]);
    let letters = folder.read("dead");
    let places: Vec<_> = letters.lines().map(|line| line.split('\t').nth(1).unwrap()).collect();
    assert_eq!(places, ["1", "2"], "{letters}");
    assert!(letters.ends_with("\t{\"k\":2}\n"), "{letters}");
}

#[test]
fn nothing_is_summed_up_where_nothing_was_read() {
    let run = lately(&["dedup", "/no/such/file"], "");
    run.code(1).says("cannot open /no/such/file").says("1 input could not be read to the end");
    assert_eq!(run.stderr.lines().count(), 2, "{}", run.stderr);
    lately(&["dedup"], "").code(0).says("0 records: ");
}

#[test]
fn one_is_not_many() {
    let run = lately(&["dedup", "--key", "k"], "{\"k\":1}\n");
    run.says("1 record: 1 fresh");
    lately(&["dedup"], "").says("false positive rate 0 of at most");
    let run = lately(&["dedup", "--key", "k"], "{\"k\":1}\n{}\n{\n");
    run.says("lately: 1 invalid record, such as").says("lately: 1 record without a key, forwarded");
}

#[test]
fn a_lateness_that_does_nothing_is_told() {
    let words = "--lateness had no effect";
    lately(&["dedup", "--lateness", "5s"], "a\n").code(0).says(words);
    lately(&["dedup", "--lateness", "5s", "--within", "9s"], "a\n").code(0).says(words);
    let timed = ["dedup", "--key", "k", "--time", "t", "--lateness", "5s"];
    let run = lately(&timed, "t,k\n1640995200,a\n");
    assert!(!run.stderr.contains(words), "{}", run.stderr);
}

#[test]
fn help_can_be_pasted() {
    for arguments in [&["--help"][..], &["dedup", "--help"]] {
        let run = lately(arguments, "");
        let examples = run.text().lines().filter(|line| line.trim_start().starts_with("lately "));
        for example in examples.filter(|line| line.contains("each line once")) {
            assert!(example.contains("  # each line once"), "{example}");
        }
    }
    let plan = |flags: &[&str]| lately(&[&["plan"], flags].concat(), "").text().to_owned();
    assert!(plan(&["--within", "5s"]).contains("* is what `lately dedup` uses"));
    assert!(!plan(&["--within", "5s", "--memory", "64MiB"]).contains('*'));
}

#[test]
fn a_held_record_keeps_the_mark_of_its_own_format() {
    let folder = Folder::new();
    let json = folder.file("a.ndjson", "{\"k\":\"a\",\"t\":1640995200,\"r\":1}\n");
    let csv = folder.file("b.csv", "k,t,r\nb,1640995201,1\n");
    let flags = "--key k --time t --within 1h --best r:max --hold 1m --mark";
    let flags: Vec<_> = flags.split_whitespace().collect();
    let run = dedup_with(&[&[&*json, &*csv], &flags[..]].concat(), "");
    run.code(0).out(
        "k,t,r,lately\n{\"k\":\"a\",\"t\":1640995200,\"r\":1,\"lately\":\"fresh\"}\nb,1640995201,1,fresh\n",
    );
}
