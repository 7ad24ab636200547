//! Opens inputs and undoes what is around their bytes: compression, byte order marks.

use super::pipe::Pipe;
use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::GzDecoder;
use lzma_rust2::XzReader;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};

/// The name of standard input.
pub(super) const STDIN: &str = "-";

/// An open input.
pub(super) struct Opened {
    pub(super) reader: Box<dyn Read + Send>,
    /// It may be slow: no regular file.
    pub(super) live: bool,
    /// The same, where one can be told to end while waiting for bytes.
    pub(super) pipe: Option<Pipe>,
}

pub(super) fn open(name: &str) -> io::Result<Opened> {
    if name == STDIN {
        return stdin();
    }
    let file = File::open(name)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let live = !metadata.is_file();
    let pipe = if live && cfg!(unix) { file.try_clone().ok() } else { None };
    let pipe = pipe.map(|pipe| Pipe::new(pipe, true));
    Ok(Opened { reader: Box::new(file), live, pipe })
}

/// A regular file, if it is one.
pub(super) fn open_file(name: &str) -> Option<File> {
    // A named pipe waits for its writer when it is opened.
    let is_file = std::fs::metadata(name).is_ok_and(|found| found.is_file());
    if is_file { File::open(name).ok() } else { None }
}

/// Standard input without the buffer of the standard library: what is not wanted stays in the pipe, for
/// whoever reads it next.
#[cfg(unix)]
fn stdin() -> io::Result<Opened> {
    use std::os::fd::AsFd;
    let file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let pipe = file.try_clone().ok().map(|pipe| Pipe::new(pipe, false));
    Ok(Opened { reader: Box::new(file), live: true, pipe })
}

#[cfg(not(unix))]
fn stdin() -> io::Result<Opened> {
    Ok(Opened { reader: Box::new(io::stdin()), live: true, pipe: None })
}

/// Standard input, if that is a regular file, and how far it has been read.
#[cfg(unix)]
pub(super) fn stdin_file() -> Option<(File, u64)> {
    use std::io::Seek;
    use std::os::fd::AsFd;
    let mut file = File::from(io::stdin().as_fd().try_clone_to_owned().ok()?);
    let is_file = file.metadata().is_ok_and(|found| found.is_file());
    is_file.then(|| file.stream_position().ok()).flatten().map(|at| (file, at))
}

#[cfg(not(unix))]
pub(super) fn stdin_file() -> Option<(File, u64)> {
    None
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    Gzip,
    Zstd,
    Bzip2,
    Xz,
}

pub(super) const BOM: &[u8] = b"\xEF\xBB\xBF";
const GZIP: &[u8] = b"\x1F\x8B\x08";
const ZSTD: &[u8] = b"\x28\xB5\x2F\xFD";
/// Up to the level, a digit, and the magic number of the first block: text may well begin with `BZh`.
const BZIP2: &[u8] = b"BZh";
const BZIP2_BLOCK: [&[u8]; 2] = [b"1AY&SY", b"\x17\x72\x45\x38\x50\x90"];
const XZ: &[u8] = b"\xFD7zXZ\0";

/// The most memory that an xz file may ask for, in KiB: twice what the highest level of `xz` takes.
const XZ_MEMORY: u32 = 128 << 10;

/// What is no stream of records, how it begins, and what to do with it.
const ARCHIVES: [(&[u8], &str, &str); 8] = [
    (b"PK\x03\x04", "a zip archive", "unzip it first (unzip -p FILE | lately ...)"),
    (b"PK\x05\x06", "a zip archive", "it is empty"),
    (b"7z\xBC\xAF\x27\x1C", "a 7z archive", "unpack it first (7z x -so FILE | lately ...)"),
    (b"Rar!\x1A\x07", "a rar archive", "unpack it first"),
    (b"PAR1", "a Parquet file", COLUMNS),
    (b"ARROW1\0\0", "an Arrow file", COLUMNS),
    (b"Obj\x01", "an Avro file", "write it as NDJSON first"),
    (b"SQLite format 3\0", "an SQLite database", "write the table as CSV first"),
];

/// What to do with records in columns.
const COLUMNS: &str = if cfg!(feature = "parquet") {
    "such a file is read whole, from the disk: it is no pipe, and not cut short"
} else {
    "this program was built without the feature `parquet`, which reads it; or write it as CSV or NDJSON first"
};

/// Where a tar archive says that it is one, after the name of the first file and what is known of it.
const TAR: (usize, &[u8]) = (257, b"ustar");
const TAR_NAME: usize = 100;
const UTF16: [&[u8]; 2] = [b"\xFF\xFE", b"\xFE\xFF"];

/// Whether `head` is too short to tell if there is a mark: it is the beginning of one.
pub(super) fn may_be_mark(head: &[u8]) -> bool {
    let utf16 = UTF16.iter().any(|mark| head.starts_with(mark)) && head.len() < 4;
    let marks = [BOM, GZIP, ZSTD, XZ, UTF16[0], UTF16[1]];
    let marks = marks.into_iter().chain(ARCHIVES.map(|(mark, ..)| mark));
    utf16
        || may_be_bzip2(head)
        || may_be_tar(head)
        || marks.into_iter().any(|mark| head.len() < mark.len() && mark.starts_with(head))
}

/// Text begins with `B`, but hardly any with what comes then: this waits for no more of it than is
/// needed.
fn may_be_bzip2(head: &[u8]) -> bool {
    let block = |magic: &&[u8]| magic.starts_with(head.get(4..).unwrap_or_default());
    let level = head.get(3).is_none_or(u8::is_ascii_digit);
    let begins = BZIP2.starts_with(head) || head.starts_with(BZIP2);
    head.len() < 10 && begins && level && BZIP2_BLOCK.iter().any(block)
}

/// A name, and nothing but zeros after it.
fn may_be_tar(head: &[u8]) -> bool {
    let name = &head[..head.len().min(TAR_NAME)];
    let end = name.iter().position(|&byte| byte == 0);
    let padded = end.is_some_and(|end| end > 0 && name[end..].iter().all(|&byte| byte == 0));
    head.len() < TAR.0 + TAR.1.len() && padded
}

/// What the input is, if it is an archive or a database, and what to do with it.
pub(super) fn archive(head: &[u8]) -> Option<(&'static str, &'static str)> {
    let tar = head.get(TAR.0..).is_some_and(|rest| rest.starts_with(TAR.1));
    if tar && head[..TAR_NAME].contains(&0) {
        return Some(("a tar archive", "unpack it first (tar -xOf FILE | lately ...)"));
    }
    let found = ARCHIVES.into_iter().find(|(mark, ..)| head.starts_with(mark));
    found.map(|(_, what, remedy)| (what, remedy))
}

pub(super) fn compression(head: &[u8]) -> Option<Compression> {
    if head.starts_with(GZIP) {
        Some(Compression::Gzip)
    } else if head.starts_with(ZSTD) {
        Some(Compression::Zstd)
    } else if head.starts_with(XZ) {
        Some(Compression::Xz)
    } else if head.starts_with(BZIP2)
        && head.get(4..).is_some_and(|rest| BZIP2_BLOCK.iter().any(|block| rest.starts_with(block)))
    {
        Some(Compression::Bzip2)
    } else {
        None
    }
}

/// The encoding of text that is not made of bytes. A mark alone does not tell (the bytes FF FE may
/// begin anything); a mark and a character of Latin script do.
pub(super) fn foreign(head: &[u8]) -> Option<&'static str> {
    match head {
        [0xFF, 0xFE, 0, 0, ..] => Some("UTF-32"),
        [0xFF, 0xFE, _, 0, ..] | [0xFE, 0xFF, 0, _, ..] => Some("UTF-16"),
        _ => None,
    }
}

/// Decompresses `reader`, of which `head` has been read. Files may be made of several parts.
pub(super) fn decompress(
    compression: Compression,
    head: Vec<u8>,
    reader: Box<dyn Read + Send>,
) -> io::Result<Box<dyn Read + Send>> {
    let reader = BufReader::with_capacity(1 << 16, Cursor::new(head).chain(reader));
    Ok(match compression {
        Compression::Gzip => Box::new(Gzip { member: Some(GzDecoder::new(reader)) }),
        Compression::Bzip2 => Box::new(MultiBzDecoder::new(reader)),
        Compression::Xz => Box::new(XzReader::new_mem_limit(reader, true, XZ_MEMORY)),
        Compression::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(reader)?),
    })
}

/// A gzip file: members one after another, and perhaps zeros after the last, with which tapes and some
/// cameras fill up their blocks.
struct Gzip<R> {
    /// `None` at the end.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(member) = &mut self.member else { return Ok(0) };
            let read = member.read(into)?;
            if read > 0 || into.is_empty() {
                return Ok(read);
            }
            let Some(member) = self.member.take() else { return Ok(0) };
            let mut rest = member.into_inner();
            self.member = skip_zeros(&mut rest)?.then(|| GzDecoder::new(rest));
        }
    }
}

/// Steps over zeros: is there anything after them?
fn skip_zeros(from: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let bytes = match from.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            bytes => bytes?,
        };
        let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
        let (is_end, is_more) = (bytes.is_empty(), zeros < bytes.len());
        from.consume(zeros);
        if is_end || is_more {
            return Ok(is_more);
        }
    }
}
