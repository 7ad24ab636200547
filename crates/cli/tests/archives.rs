//! What people have: compressed files are read, and archives are refused by name.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use std::io::Write;
use support::{Folder, Live, dedup_with};

const PATIENT: std::time::Duration = std::time::Duration::from_secs(60);

/// `a`, `b`, `a` by bzip2, and `c` after it; the same by xz; and nothing by bzip2.
const BZIP2: &[u8] = &[
    0x42, 0x5a, 0x68, 0x39, 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, 0xa3, 0x7b, 0x92, 0xa9, 0x00, 0x00,
    0x02, 0x41, 0x00, 0x00, 0x10, 0x30, 0x00, 0x20, 0x00, 0x30, 0xcc, 0x0c, 0x7a, 0x84, 0x5e, 0x2e,
    0xe4, 0x8a, 0x70, 0xa1, 0x21, 0x46, 0xf7, 0x25, 0x52, 0x42, 0x5a, 0x68, 0x39, 0x31, 0x41, 0x59,
    0x26, 0x53, 0x59, 0xc3, 0xcc, 0x48, 0xed, 0x00, 0x00, 0x00, 0xc1, 0x00, 0x00, 0x10, 0x08, 0x00,
    0x20, 0x00, 0x21, 0x00, 0x82, 0xb1, 0x77, 0x24, 0x53, 0x85, 0x09, 0x0c, 0x3c, 0xc4, 0x8e, 0xd0,
];
const XZ: &[u8] = &[
    0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04, 0xe6, 0xd6, 0xb4, 0x46, 0x02, 0x00, 0x21, 0x01,
    0x16, 0x00, 0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3, 0x01, 0x00, 0x05, 0x61, 0x0a, 0x62, 0x0a, 0x61,
    0x0a, 0x00, 0x00, 0x00, 0xfa, 0x3a, 0x24, 0x07, 0x03, 0xb2, 0xb0, 0x25, 0x00, 0x01, 0x1e, 0x06,
    0xc1, 0x2f, 0xa4, 0x1d, 0x1f, 0xb6, 0xf3, 0x7d, 0x01, 0x00, 0x00, 0x00, 0x00, 0x04, 0x59, 0x5a,
    0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04, 0xe6, 0xd6, 0xb4, 0x46, 0x02, 0x00, 0x21, 0x01,
    0x16, 0x00, 0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3, 0x01, 0x00, 0x01, 0x63, 0x0a, 0x00, 0x00, 0x00,
    0x09, 0xa5, 0x9e, 0x01, 0xb7, 0x6e, 0x97, 0x7d, 0x00, 0x01, 0x1a, 0x02, 0xdc, 0x2e, 0xa5, 0x7e,
    0x1f, 0xb6, 0xf3, 0x7d, 0x01, 0x00, 0x00, 0x00, 0x00, 0x04, 0x59, 0x5a,
];
const EMPTY: &[u8] =
    &[0x42, 0x5a, 0x68, 0x39, 0x17, 0x72, 0x45, 0x38, 0x50, 0x90, 0x00, 0x00, 0x00, 0x00];

#[test]
fn bzip2_and_xz_are_read() {
    let folder = Folder::new();
    for bytes in [BZIP2, XZ] {
        let input = folder.file("x", bytes);
        dedup_with(&[&input], "").code(0).out("a\nb\nc\n");
        dedup_with(&[], bytes).code(0).out("a\nb\nc\n");
        // Cut off, it is a failure.
        let run = dedup_with(&[], &bytes[..bytes.len() - 3]);
        run.code(1).says("cannot read");
    }
    dedup_with(&[], EMPTY).code(0).out("");
}

fn gzip(text: &str) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(text.as_bytes()).unwrap();
    out.finish().unwrap()
}

#[test]
fn gzip_may_be_filled_up_with_zeros() {
    let folder = Folder::new();
    for zeros in [1, 512, 200_000] {
        let bytes = [gzip("a\nb\n"), gzip("a\nc\n"), vec![0; zeros]].concat();
        let input = folder.file("pad.gz", &bytes);
        dedup_with(&[&input], "").code(0).out("a\nb\nc\n");
        dedup_with(&[], &bytes).code(0).out("a\nb\nc\n");
    }
    // Anything else after it is a fault, as ever.
    let bytes = [gzip("a\nb\n"), vec![0; 10], b"rubbish".to_vec()].concat();
    dedup_with(&[], &bytes).code(1).out("a\nb\n").says("cannot read");
}

#[test]
fn archives_are_refused_by_name() {
    let folder = Folder::new();
    let mut tar = vec![0; 1024];
    tar[..5].copy_from_slice(b"a.log");
    tar[257..262].copy_from_slice(b"ustar");
    tar[512..521].copy_from_slice(b"line\nline");
    let tar_gz = {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(&tar).unwrap();
        out.finish().unwrap()
    };
    for (bytes, what) in [
        (b"PK\x03\x04\x14\0\0\0a\nb\n".to_vec(), "a zip archive: unzip it first"),
        (b"7z\xBC\xAF\x27\x1C\0\x04a\nb\n".to_vec(), "a 7z archive"),
        (b"PAR1\x15\x04a\nb\n".to_vec(), "a Parquet file"),
        (b"ARROW1\0\0\xff\xff\n".to_vec(), "an Arrow file"),
        (b"SQLite format 3\0\x10\0\n".to_vec(), "an SQLite database"),
        (tar, "a tar archive: unpack it first"),
        (tar_gz, "a tar archive: unpack it first"),
    ] {
        let input = folder.file("x", &bytes);
        dedup_with(&[&input], "").code(1).out("").says(what);
        dedup_with(&[], &bytes).code(1).out("").says(what);
    }
    // Text that begins as they do is text, and does not wait.
    for text in
        ["PKa\n", "BZh\n", "BZh9\n", "7z\n", "PAR\n", "Obj\n", "SQLite\n", "Rar!\n", "a\0\0\0\n"]
    {
        let mut live = Live::dedup(&[]);
        live.send(text);
        live.expect(text, PATIENT);
    }
}
