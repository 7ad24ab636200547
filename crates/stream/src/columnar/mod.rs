//! Records in columns: Parquet and Arrow files.
//!
//! Their rows are read in batches, and judged as records of any other format are: a field is found by its column
//! and read as text. What is forwarded are the rows of the batch themselves, so that all types stay.

mod read;
mod row;
mod write;

pub(crate) use read::ColumnReader;
pub(crate) use write::ColumnWriter;

use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// A format of files whose records are in columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnFormat {
    /// Apache Parquet.
    Parquet,
    /// The file format of Apache Arrow (IPC, also called Feather 2).
    Arrow,
}

impl ColumnFormat {
    /// The format of a regular file, by its first and last bytes; `None` for any other, or none.
    pub fn of_file(name: &str) -> Option<Self> {
        // A named pipe waits for its writer when it is opened.
        let is_file = std::fs::metadata(name).is_ok_and(|found| found.is_file());
        if !is_file {
            return None;
        }
        let (mut begin, mut end) = ([0; 8], [0; 6]);
        let mut file = File::open(name).ok()?;
        file.read_exact(&mut begin).ok()?;
        file.seek(SeekFrom::End(-6)).ok()?;
        file.read_exact(&mut end).ok()?;
        match (&begin, &end) {
            (b"ARROW1\0\0", b"ARROW1") => Some(Self::Arrow),
            ([b'P', b'A', b'R', b'1', ..], [.., b'P', b'A', b'R', b'1']) => Some(Self::Parquet),
            _ => None,
        }
    }

    /// The format that the name of a file asks for.
    pub fn of_extension(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?;
        let is = |names: &[&str]| names.iter().any(|name| extension.eq_ignore_ascii_case(name));
        if is(&["parquet", "pq"]) {
            Some(Self::Parquet)
        } else if is(&["arrow", "feather", "ipc"]) {
            Some(Self::Arrow)
        } else {
            None
        }
    }
}

impl fmt::Display for ColumnFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Parquet => "Parquet",
            Self::Arrow => "Arrow",
        })
    }
}
