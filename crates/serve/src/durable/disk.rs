//! The files of a journal, so that tests can put a disk in their place that fills up or breaks.

use lately_store::Replacement;
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::sync::Arc;

/// Makes the files of a journal.
pub(crate) trait Disk: Send + Sync + fmt::Debug {
    /// A new file that begins with these bytes, which are on disk when this returns.
    fn create(&self, number: u64, header: &[u8]) -> io::Result<Arc<dyn Medium>>;
    /// Keeps some room, for changes that are made before anybody notices that the disk is full.
    fn reserve(&self) -> io::Result<()>;
    /// Gives that room up.
    fn release(&self);
}

/// A file of a journal.
pub(crate) trait Medium: Send + Sync + fmt::Debug {
    /// Writes all of these bytes at this place; some of them may have been written after an error.
    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()>;
    /// Returns when all that was written is on disk.
    fn sync(&self) -> io::Result<()>;
}

/// Files are `journal-N`.
pub(crate) const JOURNAL: &str = "journal-";
/// A file that is removed when the disk is full.
const RESERVE: &str = "reserve";
/// Bytes of it: more than a turn of all workers writes, unless requests are of many megabytes.
const RESERVED: usize = 8 << 20;

/// A folder on a real disk.
#[derive(Debug)]
pub(crate) struct RealDisk(pub(crate) PathBuf);

impl Disk for RealDisk {
    fn create(&self, number: u64, header: &[u8]) -> io::Result<Arc<dyn Medium>> {
        let path = self.0.join(format!("{JOURNAL}{number}"));
        // A crash leaves none or one with its header.
        lately_store::replace(&path, header)?;
        let file = File::options().write(true).open(&path);
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        Ok(Arc::new(RealMedium { file: file.map_err(named)? }))
    }

    fn reserve(&self) -> io::Result<()> {
        let path = self.0.join(RESERVE);
        if std::fs::metadata(&path).is_ok_and(|found| found.len() == RESERVED as u64) {
            return Ok(());
        }
        let mut file = Replacement::begin(&path)?;
        let part = [0x5a; 1 << 16];
        for _ in 0..RESERVED / part.len() {
            file.write_all(&part)?;
        }
        file.commit()
    }

    fn release(&self) {
        // Where it is not there it takes no room.
        let _ = std::fs::remove_file(self.0.join(RESERVE));
    }
}

#[derive(Debug)]
struct RealMedium {
    file: File,
}

impl Medium for RealMedium {
    #[cfg(unix)]
    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(&self.file, bytes, at)
    }

    #[cfg(not(unix))]
    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        use std::io::{Seek, SeekFrom};
        let mut file = &self.file;
        file.seek(SeekFrom::Start(at))?;
        file.write_all(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        match self.file.sync_data() {
            // The file systems that know no such thing lose nothing that they have.
            Err(error) if error.kind() == ErrorKind::Unsupported => Ok(()),
            synced => synced,
        }
    }
}
