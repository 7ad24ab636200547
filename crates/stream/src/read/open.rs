//! Opens inputs and undoes what is around their bytes: compression, byte order marks.

use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};

/// The name of standard input.
pub(super) const STDIN: &str = "-";

/// An open input.
pub(super) struct Opened {
    pub(super) reader: Box<dyn Read + Send>,
    /// It may be slow: no regular file.
    pub(super) live: bool,
}

pub(super) fn open(name: &str) -> io::Result<Opened> {
    if name == STDIN {
        return Ok(Opened { reader: Box::new(io::stdin()), live: true });
    }
    let file = File::open(name)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    Ok(Opened { reader: Box::new(file), live: !metadata.is_file() })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    Gzip,
    Zstd,
}

pub(super) const BOM: &[u8] = b"\xEF\xBB\xBF";
const GZIP: &[u8] = b"\x1F\x8B\x08";
const ZSTD: &[u8] = b"\x28\xB5\x2F\xFD";
const UTF16: [&[u8]; 2] = [b"\xFF\xFE", b"\xFE\xFF"];

/// Whether `head` is too short to tell if there is a mark: it is the beginning of one.
pub(super) fn may_be_mark(head: &[u8]) -> bool {
    let utf16 = UTF16.iter().any(|mark| head.starts_with(mark)) && head.len() < 4;
    let marks = [BOM, GZIP, ZSTD, UTF16[0], UTF16[1]];
    utf16 || marks.iter().any(|mark| head.len() < mark.len() && mark.starts_with(head))
}

pub(super) fn compression(head: &[u8]) -> Option<Compression> {
    if head.starts_with(GZIP) {
        Some(Compression::Gzip)
    } else if head.starts_with(ZSTD) {
        Some(Compression::Zstd)
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
        Compression::Gzip => Box::new(MultiGzDecoder::new(reader)),
        Compression::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(reader)?),
    })
}
