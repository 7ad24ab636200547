//! Files as people have them, and the parts of records that make up their keys. The cases are those of
//! `../shared/cases/in`, and their bytes are here, so that the tests do not depend on the files.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use std::path::PathBuf;
use support::{Folder, dedup, dedup_with};

/// The bytes of a file of cases, which are these if the file is there.
fn case<'a>(file: &str, bytes: &'a [u8]) -> &'a [u8] {
    let near = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("LATELY_SHARED").map_or(near, PathBuf::from);
    match std::fs::read(shared.join("cases/in").join(file)) {
        Ok(found) => assert_eq!(found, bytes, "{file}"),
        Err(error) => eprintln!("skipped: {file}: {error}"),
    }
    bytes
}

fn text<'a>(file: &str, text: &'a str) -> &'a str {
    case(file, text.as_bytes());
    text
}

const ROWS: &str = "ts,dev,uptime,val\n2024-05-01T00:00:00Z,a,100,5\n2024-05-01T00:00:10Z,a,110,5\n2024-05-01T00:00:20Z,a,120,6\n";

#[test]
fn all_fields_but_some_are_the_key() {
    let csv = text("x3.csv", ROWS);
    let lines: Vec<_> = csv.lines().collect();
    let expected = format!("{}\n{}\n{}\n", lines[0], lines[1], lines[3]);
    dedup("--key *,-ts,-uptime", csv).counts([2, 1, 0, 0, 0, 0]).out(&expected);
    // By their numbers, and of columns without names.
    dedup("--key *,-1,-3", csv).out(&expected);
    let blanks = "1 a 5 x\n2 a 6 x\n3 a 6 y\n4 a 6\n5 a 6\n";
    dedup("--format columns --key *,-1,-3", blanks).out("1 a 5 x\n3 a 6 y\n4 a 6\n");
    // Members, nested ones, and ones that are not there.
    let json = "{\"ts\":1,\"m\":{\"n\":1,\"v\":2},\"k\":\"a\"}\n{\"k\":\"a\",\"m\":{\"v\":2}}\n{\"ts\":3,\"k\":\"a\",\"m\":{\"v\":3}}\n{\"k\":\"a\"}\n{\"k\":\"a\",\"ts\":\"x\"}\n";
    let lines: Vec<_> = json.lines().collect();
    let expected = format!("{}\n{}\n{}\n", lines[0], lines[2], lines[3]);
    dedup("--key *,-ts,-/m/n", json).counts([3, 2, 0, 0, 0, 0]).out(&expected);
    let array = "[{\"ts\":1,\"a\":\"x\"}, {\"a\":\"x\",\"ts\":\"2\"},\n {\"a\":\"y\"}]";
    dedup("--key *,-ts", array)
        .counts([2, 1, 0, 0, 0, 0])
        .out("{\"ts\":1,\"a\":\"x\"}\n{\"a\":\"y\"}\n");
    // What is left out has a value in one row and none in another: no difference. What is not has.
    let zeek = "#separator \\x09\n#fields\tts\tid\tq\n1\ta\t-\n2\ta\t-\n-\ta\tx\n3\ta\t\n";
    dedup("--key *,-ts", zeek).counts([3, 1, 0, 0, 0, 0]);
    for (key, words) in [
        ("*,dev", "only fields to leave out can follow it, such as -dev"),
        ("*,-devv", "did you mean `dev`?"),
        ("-ts", "all columns but that are written '*,-ts'"),
    ] {
        dedup_with(&[&format!("--key={key}")], csv).code(2).out("").says(words);
    }
    // All but none is the whole record, field by field.
    dedup("--key *", "a,b\n1,2\n\"1\",2\n").counts([1, 1, 0, 0, 0, 0]);
}

#[test]
fn case_is_of_no_regard() {
    let office = text(
        "x5.csv",
        "office\nMember of legislative assembly\nMember of Legislative Assembly\nMember of Tamil Nadu Legislative Assembly\n",
    );
    let lines: Vec<_> = office.lines().collect();
    let expected = format!("{}\n{}\n{}\n", lines[0], lines[1], lines[3]);
    dedup("--key office --key-case fold", office).out(&expected).counts([2, 1, 0, 0, 0, 0]);
    dedup("--key office", office).counts([3, 0, 0, 0, 0, 0]);
    let uuid = text(
        "uuid.csv",
        "uuid\n6F9619FF-8B86-D011-B42D-00CF4FC964FF\n6f9619ff-8b86-d011-b42d-00cf4fc964ff\n",
    );
    for flags in ["--key-case fold", "--key-format uuid"] {
        let run = dedup(&format!("--key uuid {flags}"), uuid);
        run.counts([1, 1, 0, 0, 0, 0]).out("uuid\n6F9619FF-8B86-D011-B42D-00CF4FC964FF\n");
    }
    // Lines, letters beyond ASCII, several fields, members.
    dedup("--key-case fold", "STRASSE\nstraße\nÄB\näb\n").out("STRASSE\nÄB\n");
    dedup("--key-case fold --key a,b", "a,b\nX,Y\nx,y\nxY,\n").counts([2, 1, 0, 0, 0, 0]);
    dedup("--key-case fold --key .", "{\"A\":\"x\"}\n{\"a\":\"X\"}\n").counts([1, 1, 0, 0, 0, 0]);
    // Where the EPC cannot be read, the text is folded.
    let tags = "e\n3034257BF461A80000000000\n3034257bf461a80000000000\nTag 1\ntag 1\n";
    dedup("--key e --key-format epc --key-case fold", tags).counts([2, 2, 0, 0, 0, 0]);
}

#[test]
fn addresses_and_numbers_are_what_they_say() {
    let ip = text("ip.csv", "ip\n2001:db8::1\n2001:0DB8:0:0:0:0:0:1\n::ffff:10.0.0.1\n10.0.0.1\n");
    let run = dedup("--key ip --key-format ip", ip);
    run.counts([2, 2, 0, 0, 0, 0]).out("ip\n2001:db8::1\n::ffff:10.0.0.1\n");
    let numbers =
        "{\"n\":1}\n{\"n\":\"1.0\"}\n{\"n\":1e0}\n{\"n\":\"one\"}\n{\"n\":\"one\"}\n{\"n\":-1}\n";
    dedup("--key n --key-format number", numbers).counts([3, 3, 0, 0, 0, 0]);
    dedup("--key n", numbers).counts([5, 1, 0, 0, 0, 0]);
}

#[test]
fn columns_have_numbers() {
    // Of a header, too, unless a column is named so.
    dedup("--key 2", "id,v\na,1\nb,1\n").out("id,v\na,1\n");
    dedup("--key 2", "2,id\na,1\na,2\n").out("2,id\na,1\n");
    dedup("--key 3", "id,v\na,1\n").code(2).says("no column `3`; there are id, v");
    dedup("--key 2-3", "id,v,w\na,1,2\nb,1,2\nc,1,3\n").out("id,v,w\na,1,2\nc,1,3\n");
    dedup("--key 2-", "id,v,w\na,1,2\nb,1,2\nc,1,3\n").out("id,v,w\na,1,2\nc,1,3\n");
    dedup("--key 2-4", "id,v,w\na,1,2\n").code(2).says("no column 4 for `2-4`; there are 3");
    // The rest of a line, blanks and all.
    let log = text(
        "rsys.log",
        "Oct  3 18:03:49 h1 kernel: mpt: log_info(0x31)\nOct  3 18:03:50 h1 kernel: mpt: log_info(0x31)\nOct  3 18:03:50 h2 kernel: mpt: log_info(0x31)\n",
    );
    let lines: Vec<_> = log.lines().collect();
    let expected = format!("{}\n{}\n", lines[0], lines[2]);
    for flags in ["--format columns --key 4-", "-k 4-"] {
        dedup(flags, log).out(&expected).counts([2, 1, 0, 0, 0, 0]);
    }
    dedup("--format columns --key 2-", "1 \"a b\" c\n2 \"a b\" c\n3 a b c\n4\n4\n")
        .counts([2, 1, 0, 0, 2, 0])
        .says("the row ends early");
}

#[test]
fn names_may_hold_commas_and_blanks() {
    let csv = text("hdr.csv", "\"Tag ID\",\"Reader, Ant\"\nA,1\nA,1\nB,2\n");
    let expected = "\"Tag ID\",\"Reader, Ant\"\nA,1\nB,2\n";
    for key in ["Tag ID", "\"Reader, Ant\"", "Reader\\, Ant", "Tag ID,\"Reader, Ant\""] {
        dedup_with(&["--key", key], csv).out(expected).code(0);
    }
    dedup_with(&["--key", "Reader"], csv)
        .code(2)
        .says("did you mean `Reader, Ant`? A name with a comma is put in double quotes");
    let json = text("j_J6.ndjson", "{\"a,b\":1}\n{\"a,b\":1}\n");
    for key in ["\"a,b\"", "a\\,b", "/a\\,b"] {
        dedup_with(&["--key", key], json).out("{\"a,b\":1}\n").counts([1, 1, 0, 0, 0, 0]);
    }
    // Of every flag that names fields.
    let rows = "\"v, w\",\"at, t\",\"from, f\"\n1,5,a\n1,6,a\n2,7,a\n";
    let flags = ["--key", "3", "--within", "1h", "--time-format", "s", "--pass-on-change"];
    let more = ["v\\, w:0.5", "--time", "at\\, t", "--clock-by", "\"from, f\""];
    dedup_with(&[&flags[..], &more].concat(), rows).counts([2, 1, 0, 0, 0, 0]).code(0);
    dedup_with(&["--key", "\"a"], json).code(2).says("is not closed");
}

#[test]
fn a_dotted_name_hints_at_its_pointer() {
    let json = text("j_J7.ndjson", "{\"a\":{\"b\":1}}\n{\"a\":{\"b\":1}}\n");
    let run = dedup("--key a.b", json);
    run.counts([0, 0, 0, 0, 2, 0])
        .says("field `a.b`: absent; but there is a nested member, `/a/b`");
    dedup("--key /a/b", json).counts([1, 1, 0, 0, 0, 0]);
    let run = dedup("--key a.b", "{\"a.b\":1}\n{\"a.b\":1,\"a\":{\"b\":2}}\n{}\n");
    run.counts([1, 1, 0, 0, 1, 0]).says("field `a.b`: absent\n");
}

#[test]
fn a_part_of_a_line_is_the_key() {
    let aprs = text(
        "aprs.txt",
        "OH7AA>APRS,WIDE1-1,qAR,OH7LZB:!6028.51N/02505.68E#hi\nOH7AA>APRS,OH2X*,WIDE1,qAR,OH2BB:!6028.51N/02505.68E#hi\n",
    );
    let regex = r"^(\S+?)>[^:]*(:.*)$";
    let run = dedup_with(&["--key-regex", regex], aprs);
    run.counts([1, 1, 0, 0, 0, 0]).out(&format!("{}\n", aprs.lines().next().unwrap()));
    // Groups are kept apart, and one that takes no part is not an empty one.
    let run = dedup_with(&["--key-regex", "^(a*)(b*)"], "ab\naab\na\nabx\nc\n\n");
    run.counts([4, 2, 0, 0, 0, 0]).out("ab\naab\na\nc\n");
    let run = dedup_with(&["--key-regex", "^(a)?(b)?(c)"], "c\nabc\nac\nbc\nzz\nabc\n");
    run.counts([4, 1, 0, 0, 1, 0]).says("the regular expression does not match");
    // In a field, of bytes that are no text, and without regard to case.
    let run = dedup_with(&["--key", "u", "--key-regex", "^[^?]*"], "t,u\n1,/a?x\n2,/a?y\n3,/b\n");
    run.out("t,u\n1,/a?x\n3,/b\n");
    dedup_with(&["--key-regex", "(?-u)^(.)"], b"\xFF1\n\xFF2\n").counts([1, 1, 0, 0, 0, 0]);
    let flags = ["--key-regex", "user=(\\w+)", "--key-case", "fold"];
    dedup_with(&flags, "1 user=Ann\n2 user=ann\n").counts([1, 1, 0, 0, 0, 0]);
    dedup_with(&["--key-regex", "("], "").code(2).says("unclosed group");
    let two = dedup_with(&["--key", "a,b", "--key-regex", "x"], "a,b\n");
    two.code(2).says("--key-regex: it is for one field, and `b` is a second one");
}

#[test]
fn columns_are_separated_by_what_is_said() {
    let csv = text("x7.csv", "\"ColA\"|\"ColB\"\n\"s\"|\"A\nB\"\n\"s\"|\"A\nB\"\n\"s\"|\"C\"\n");
    let run = dedup("--delimiter | --key ColB", csv);
    run.out("\"ColA\"|\"ColB\"\n\"s\"|\"A\nB\"\n\"s\"|\"C\"\n").counts([2, 1, 0, 0, 0, 0]);
    dedup("--delimiter ; --key b", "a;b\n1;2,3\n2;2,3\n").out("a;b\n1;2,3\n");
    dedup_with(&["--delimiter", "\\t", "--key", "b"], "a\tb\n1\t\"x\ty\"\n2\t\"x\ty\"\n")
        .counts([1, 1, 0, 0, 0, 0]);
    dedup("--delimiter ; --no-header --key 2", "1;2\n3;2\n").out("1;2\n");
    // Without a key, rows are compared as they are, but found as rows.
    dedup("--delimiter ;", "a;b\n\"1\n\";2\n\"1\n\";2\n").out("a;b\n\"1\n\";2\n");
    // A stray quote costs its own row.
    let stray = "a;b\n\"x\"y;1\nx;2\nx;2\n";
    dedup("--delimiter ; --key a", stray).counts([1, 1, 0, 1, 0, 0]).says("not closed properly");
    let run = dedup("--key b", "a;b\n1;2\n");
    run.code(2).says("--delimiter ';' gives columns, and `b` is one");
    for (flags, words) in [
        ("--delimiter ab --key a", "must be a single ASCII character"),
        ("--delimiter 1 --key a", "cannot separate columns"),
        ("--delimiter ; --format ndjson --key a", "only CSV has one"),
        ("--records Records", "begins with `/`: /Records"),
    ] {
        dedup(flags, "").code(2).says(words);
    }
}

#[test]
fn what_comes_before_a_header_stays_there() {
    let excel = case("sep.csv", b"\xEF\xBB\xBFsep=;\r\nid;v\r\n1;a\r\n1;a\r\n");
    dedup("--key id", excel).out("sep=;\r\nid;v\r\n1;a\r\n").counts([1, 1, 0, 0, 0, 0]);
    let comments = text("cmt.csv", "# device: X\n# fw 1\nid,v\n1,a\n1,a\n2,b\n");
    let expected = "# device: X\n# fw 1\nid,v\n1,a\n2,b\n";
    for flags in ["--key id", "--key 1", "--format csv --key id", "--key id --mark"] {
        let run = dedup(flags, comments);
        run.code(0).counts([2, 1, 0, 0, 0, 0]);
        assert!(run.text().starts_with("# device: X\n# fw 1\nid,v"), "{}", run.text());
    }
    dedup("--key id", comments).out(expected);
    // Quotes in comments mean nothing, whether the file is read at once or from a pipe.
    let quotes = "// say \"x\n#,\"y\n\nid,v\n1,\"a\nb\"\n1,\"a\nb\"\n";
    dedup("--key id", quotes).out("// say \"x\n#,\"y\n\nid,v\n1,\"a\nb\"\n");
    // The header may be a comment; a title is none.
    dedup("--key id", "#id,v\n1,a\n1,b\n").out("#id,v\n1,a\n");
    for flags in ["--key 1", "--format csv --key 1", "--format csv --key *,-2"] {
        dedup(flags, "#id,v\n1,a\n1,b\n").out("#id,v\n1,a\n").counts([1, 1, 0, 0, 0, 0]);
    }
    dedup("--key POS", "##vcf\n#CHROM\tPOS\n1\t5\n2\t5\n").out("##vcf\n#CHROM\tPOS\n1\t5\n");
    dedup("--key CHROM", "##vcf\n#CHROM\tPOS\n1\t5\n1\t6\n").out("##vcf\n#CHROM\tPOS\n1\t5\n");
    let title = "Report of May\n\nid,v\n1,a\n1,a\n";
    dedup("--key id", title).out("Report of May\n\nid,v\n1,a\n").counts([1, 1, 0, 0, 0, 0]);
    dedup("--key idd", title).code(2).says("`Report of May`, is a single column");
    // Without a header comments are still none of the rows, and `#` further on is data.
    dedup("--no-header --format csv --key 1", "# x\n1,a\n1,b\n#,c\n").out("# x\n1,a\n#,c\n");
    // Of several files, every one keeps its own.
    let folder = Folder::new();
    let [one, two] = ["a", "b"].map(|v| folder.file(v, format!("# {v}\nid,v\n1,a\n{v},b\n")));
    let run = dedup_with(&[&one, &two, "--key", "id"], "");
    run.out("# a\nid,v\n1,a\na,b\n# b\nb,b\n").code(0);
}

#[test]
fn what_is_no_header_is_told() {
    let log = "Oct  3 18:03:49 h1 kernel: mpt: log_info(0x31) and more of it up to the end\n";
    let run = dedup("--key host", log);
    run.code(2).says("--format columns").says("--no-header").says("log_info(0x31) and more of i…");
    assert!(!run.stderr.contains("did you mean"), "{}", run.stderr);
    dedup("--key id", "7,2024-05-01,x\n").code(2).says("use --no-header");
    let run = dedup("--key id", "<a><b/></a>\n");
    assert!(!run.stderr.contains("did you mean"), "{}", run.stderr);
}

#[test]
fn flags_of_other_programs_are_told() {
    for (window, words) in [("5s", "--within 5s"), ("1000", "--last 1000")] {
        dedup(&format!("--window {window}"), "").code(2).says(words);
    }
    let run = support::lately(&["dedup", "--version"], "");
    assert!(run.code(0).text().contains(env!("CARGO_PKG_VERSION")));
}

#[test]
fn json_texts_may_begin_with_a_record_separator() {
    let json = text("j_J9.ndjson", "\u{1e}{\"id\":1}\n\u{1e}{\"id\":1}\n\u{1e}{\"id\":2}\n");
    for flags in ["--key id", "--format ndjson", "--format json --key id"] {
        let run = dedup(flags, json);
        run.counts([2, 1, 0, 0, 0, 0]).code(0);
    }
    dedup("--key id", json).out("\u{1e}{\"id\":1}\n\u{1e}{\"id\":2}\n");
    // Texts over several lines.
    let long = "\u{1e}{\n\"id\":1}\n\u{1e}{\n\"id\":1}\n";
    dedup("--key id", long).counts([1, 1, 0, 0, 0, 0]);
}

#[test]
fn the_records_may_be_a_list_in_a_document() {
    let document = "{\"Records\":[{\"id\":1,\"n\":{\"l\":[1]}},{\"id\":1},\n{\"id\":2}],\"more\":[{\"id\":1}]}";
    let run = dedup("--records /Records --key id", document);
    run.counts([2, 1, 0, 0, 0, 0]).out("{\"id\":1,\"n\":{\"l\":[1]}}\n{\"id\":2}\n");
    let deep =
        "{\"a\":{\"b\":[{\"id\":1},{\"id\":1}]}}\n{\"a\":{\"b\":[{\"id\":2}]}}\n{\"id\":3}\n";
    dedup("--records /a/b --key id", deep).out("{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n");
    // One line of more than --max-line is still a document.
    let long: String = (0..2000).map(|id| format!("{{\"id\":{}}},", id % 50)).collect();
    let long = format!("{{\"Records\":[{}]}}", long.trim_end_matches(','));
    dedup("--records /Records --key id --max-line 1KiB", long).counts([50, 1950, 0, 0, 0, 0]);
}

#[test]
fn a_state_knows_what_its_keys_are() {
    let folder = Folder::new();
    let state = folder.path("s");
    let run = |flags: &str| {
        let flags: Vec<_> = flags.split(' ').filter(|flag| !flag.is_empty()).collect();
        dedup_with(&[&["--state", &state, "--key", "id"], &*flags].concat(), "id,v\nA,1\n")
    };
    run("--key-case fold").code(0).counts([1, 0, 0, 0, 0, 0]);
    run("--key-case fold").code(0).counts([0, 1, 0, 0, 0, 0]);
    run("").code(1).says("key-case: saved fold, asked default");
    run("--key-case fold --key-regex (.)").code(1).says("key-regex: saved default, asked (.)");
    run("--key-case fold --delimiter ,").code(1).says("delimiter: saved default, asked ,");
    run("--key-case fold --key-format ip").code(1).says("key-format: saved text, asked ip");
}

#[test]
fn records_may_end_with_nul() {
    let nul = text("nulsep.txt", "a\0b\0a\0");
    for flag in ["-z", "--null"] {
        dedup(flag, nul).out("a\0b\0").counts([2, 1, 0, 0, 0, 0]);
    }
    // Line ends are data, and an empty record is one; the last one may lack its end.
    dedup("-z", "a\nb\0a\nb\0\0\0c").out("a\nb\0\0c").counts([3, 2, 0, 0, 0, 0]);
    dedup("-z --mark", "a\0a\0").out("a\tfresh\0a\tduplicate\0");
    dedup_with(&["-z", "--key-regex", "[^/]*$"], "x/a\0y/a\0").out("x/a\0");
    // Too long, found at once or piece by piece.
    for long in [5000, 400_000] {
        let input = format!("a\0{}\0b\0a\0", "x".repeat(long));
        let run = dedup("-z --max-line 1KiB", input);
        run.out("a\0b\0").counts([2, 1, 0, 1, 0, 0]);
    }
    // Files are kept apart, and so are runs that append to one output.
    let folder = Folder::new();
    let (one, two) = (folder.file("one", "a\0b"), folder.file("two", "c\0a\0"));
    dedup_with(&["-z", &one, &two], "").out("a\0b\0c\0").counts([3, 1, 0, 0, 0, 0]);
    let (state, out) = (folder.path("s"), folder.path("out"));
    for input in ["a\0b\0", "b\0c\0"] {
        dedup_with(&["-z", "--state", &state, "-o", &out], input).code(0);
    }
    assert_eq!(folder.read("out"), "a\0b\0c\0");
    for flags in ["-z --key a", "-z --format csv", "-z --no-header"] {
        dedup(flags, "").code(2).says("--null: ");
    }
}

#[test]
fn carriage_returns_alone_end_lines_where_nothing_else_does() {
    let cr = text("cr.txt", "a\rb\ra\r");
    dedup("", cr).out("a\rb\r").counts([2, 1, 0, 0, 0, 0]);
    dedup("", "a\rb\ra").out("a\rb\r");
    // With line feeds, they are data.
    dedup("", "10%\r20%\n10%\r20%\n").out("10%\r20%\n");
    dedup("", "a\r\nb\r\na\r\n").out("a\r\nb\r\n");
    // A table is refused, and it is said what to do.
    dedup("--key id", "id,v\r1,a\r1,a\r").code(2).says("carriage return alone");
}

#[test]
fn logfmt_is_found_by_looking() {
    let log = "ts=2024-05-01T00:00:00Z level=info msg=\"a b\" id=1\nts=2024-05-01T00:00:01Z level=info msg=\"a b\" id=2\nts=2024-05-01T00:00:30Z level=info msg=\"a b\" id=3\n";
    let lines: Vec<_> = log.lines().collect();
    let expected = format!("{}\n{}\n", lines[0], lines[2]);
    for flags in ["", "--format logfmt "] {
        let run = dedup(&format!("{flags}--key level,msg --time ts --within 10s"), log);
        run.out(&expected).counts([2, 1, 0, 0, 0, 0]);
    }
    dedup("--key *,-ts,-id", log).counts([1, 2, 0, 0, 0, 0]);
    let marked = dedup("--key msg --mark", &log[..lines[0].len() + 1]);
    marked.out(&format!("{} lately=fresh\n", lines[0]));
    dedup("--key msg --mark", marked.text()).out(marked.text());
    // A header is none.
    dedup("--key b", "a b=c,b\n1,2\n3,2\n").out("a b=c,b\n1,2\n");
}

#[test]
fn nmea_sentences_follow_their_tag_blocks() {
    let ais = text(
        "x10.nmea",
        "\\g:1-2-73874,n:157036,s:r003669945,c:1241544035*4A\\!AIVDM,1,1,,B,15N4cJ`005Jrek0H@9n`DW5608EP,0*13\n\\s:r003669946,c:1241544035*5B\\!AIVDM,1,1,,B,15N4cJ`005Jrek0H@9n`DW5608EP,0*13\n\\s:r003669945,c:1241544105*59\\!AIVDM,1,1,,B,15N4cJ`005Jrek0H@9n`DW5608EP,0*13\n",
    );
    let lines: Vec<_> = ais.lines().collect();
    let expected = format!("{}\n{}\n", lines[0], lines[2]);
    for flags in ["", "--format nmea", "--key sentence --time time"] {
        let run = dedup(&format!("{flags} --within 30s"), ais);
        run.out(&expected).counts([2, 1, 0, 0, 0, 0]).code(0);
    }
    dedup("--key sentence,source --within 30s", ais).counts([3, 0, 0, 0, 0, 0]);
    dedup("--key s", ais).counts([2, 1, 0, 0, 0, 0]);
    dedup("--key type --format nmea", "$GPGLL,1*00\n$GPGLL,2*00\nx\n")
        .counts([1, 1, 0, 0, 1, 0])
        .says("the line has no sentence");
    dedup("--format nmea --key talker", ais).code(2).says("there are sentence, type, time, source");
    dedup("--format nmea --time time", "$GPGLL,1*00\n").code(2).says("no tag block with a time");
}

const EPCIS: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<epcis:EPCISDocument xmlns:epcis=\"urn:epcglobal:epcis:xsd:1\" schemaVersion=\"1.2\" creationDate=\"2020-01-01T00:00:00Z\"><EPCISBody><EventList>\n<ObjectEvent><eventTime>2020-01-01T10:00:00Z</eventTime><eventTimeZoneOffset>+00:00</eventTimeZoneOffset><epcList><epc>urn:epc:id:sgtin:0614141.107346.2017</epc></epcList><action>OBSERVE</action></ObjectEvent>\n<ObjectEvent><eventTime>2020-01-01T10:00:00Z</eventTime><eventTimeZoneOffset>+00:00</eventTimeZoneOffset><epcList><epc>urn:epc:id:sgtin:0614141.107346.2017</epc></epcList><action>OBSERVE</action></ObjectEvent>\n</EventList></EPCISBody></epcis:EPCISDocument>\n";

#[test]
fn epcis_documents_of_version_1_are_read() {
    let xml = text("epcis12.xml", EPCIS);
    let lines: Vec<_> = xml.lines().collect();
    let expected = format!("{}\n{}\n{}\n{}\n", lines[0], lines[1], lines[2], lines[4]);
    for flags in
        ["", "--within 10s", "--key epc --within 10s", "--format epcis-xml", "--key eventTime"]
    {
        let run = dedup(flags, xml);
        run.out(&expected).counts([1, 1, 0, 0, 0, 0]).code(0);
    }
    // Indented, over several lines, with namespaces and entities.
    let event = |time: u32, epcs: &str, more: &str| {
        format!(
            "  <e:ObjectEvent>\n    <eventTime>2020-01-01T10:00:{time:02}Z</eventTime>\n    <epcList>{epcs}</epcList>\n    {more}\n  </e:ObjectEvent>\n"
        )
    };
    let document = |events: &[String]| {
        format!(
            "<!-- <ObjectEvent> -->\n<EPCISDocument xmlns:e=\"x\"><EPCISBody><EventList>\n{}</EventList></EPCISBody></EPCISDocument>",
            events.concat()
        )
    };
    let (one, two) = ("<epc>a</epc>", "<epc>b</epc><epc>a</epc>");
    let read = "<readPoint><id>A &amp; B</id></readPoint>";
    let events = [
        event(0, one, read),
        event(1, "<epc>b</epc> <epc>\na</epc>", "<x:y>1</x:y>"),
        event(2, two, "<!-- </ObjectEvent> -->"),
        event(3, "<epc>&#97;</epc>", read),
        event(4, "", ""),
        event(5, "<epc>a</epcc>", ""),
    ];
    let run = dedup("--within 10s", document(&events));
    run.counts([2, 2, 0, 1, 1, 0]).says("not well-formed XML");
    let [first, second, _, _, fifth, _] = &events;
    run.out(&document(&[first.clone(), second.clone(), fifth.clone()]));
    dedup("--key reader", document(&events)).counts([1, 1, 0, 1, 3, 0]);
    dedup("--key /readPoint/id", document(&events)).counts([1, 1, 0, 1, 3, 0]);
    let marked = dedup("--key epc --mark", document(&events[..1]));
    assert!(marked.text().contains("<e:ObjectEvent lately=\"fresh\">"), "{}", marked.text());
    dedup("--key epc --mark", marked.text()).out(marked.text());
    // One that ends too early costs the event that it ends in.
    let torn = document(&events[..1]);
    let torn = &torn[..torn.find("</epcList>").unwrap()];
    dedup("--key epc", torn).counts([0, 0, 0, 1, 0, 0]);
}

#[test]
fn other_xml_is_named() {
    let llrp = "<?xml version=\"1.0\"?>\n<llrp:RO_ACCESS_REPORT xmlns:llrp=\"http://www.llrp.org/ltk/schema/core/encoding/xml/1.0\"/>\n";
    dedup("--key epc", llrp).code(2).out("").says("it is LLRP messages as XML");
    let html = "<?xml version=\"1.0\"?>\n<a/>\n";
    dedup("--key id", html).code(2).says("it is XML, of which only EPCIS documents are read");
    dedup("--format lines", html).code(0).out(html);
    dedup("", html).out(html);
    // What begins with an angle bracket need not be XML.
    dedup("--within 1m", "<34>Oct 11 a\n<34>Oct 11 a\n").counts([1, 1, 0, 0, 0, 0]);
}
