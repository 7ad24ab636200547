//! State on disk that a crash at any moment leaves whole.

use lately::Digester;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A folder that one process at a time uses.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// Holds the lock as long as it is open.
    _lock: File,
}

impl Folder {
    /// Opens a folder, making it if need be, for this process alone.
    ///
    /// # Errors
    /// What the file system says, or that another process uses it.
    pub fn open(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        let lock = OpenOptions::new().create(true).append(true).open(path.join("lock"))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.into(), _lock: lock }),
            Err(TryLockError::WouldBlock) => {
                let busy = format!("{}: another process uses this state", path.display());
                Err(io::Error::new(io::ErrorKind::ResourceBusy, busy))
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The bytes of a file; `None` when it is not there.
    ///
    /// # Errors
    /// What the file system says.
    pub fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.file(name)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces a file as a whole: after a crash there is the old one or the new one.
    ///
    /// # Errors
    /// What the file system says; the old one then still stands.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let temporary = self.file(&format!("{name}.new"));
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, self.file(name))?;
        self.sync()
    }

    fn sync(&self) -> io::Result<()> {
        if cfg!(unix) { File::open(&self.path)?.sync_all() } else { Ok(()) }
    }

    /// The number in a file, made and kept the first time: the identity of whoever owns the folder.
    ///
    /// # Errors
    /// What the file system says, or that the file holds something else.
    pub fn identity(&self, name: &str) -> io::Result<u64> {
        if let Some(bytes) = self.read(name)? {
            let text = String::from_utf8_lossy(&bytes);
            return crate::topic::id(text.trim()).ok_or_else(|| damaged(&self.file(name)));
        }
        let id = fastrand::u64(..);
        self.replace(name, format!("{id:016x}\n").as_bytes())?;
        Ok(id)
    }
}

fn damaged(path: &Path) -> io::Error {
    let what = format!("{}: damaged; move it away to begin without it", path.display());
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Blobs in one file, with a number and a checksum.
pub(crate) mod blobs {
    use super::{Digester, Folder, damaged};
    use std::io;

    const MAGIC: [u8; 8] = *b"LHOSTS1\n";

    pub(crate) fn write(
        folder: &Folder,
        name: &str,
        number: u64,
        blobs: &[Vec<u8>],
    ) -> io::Result<()> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(number.to_le_bytes());
        for blob in blobs {
            bytes.extend((blob.len() as u64).to_le_bytes());
            bytes.extend(blob);
        }
        let check = Digester::new(0).digest(&bytes).lo();
        bytes.extend(check.to_le_bytes());
        folder.replace(name, &bytes)
    }

    /// The number and the blobs; `None` when there is no such file.
    pub(crate) fn read(folder: &Folder, name: &str) -> io::Result<Option<(u64, Vec<Vec<u8>>)>> {
        let Some(bytes) = folder.read(name)? else { return Ok(None) };
        parse(&bytes).map(Some).ok_or_else(|| damaged(&folder.file(name)))
    }

    fn parse(bytes: &[u8]) -> Option<(u64, Vec<Vec<u8>>)> {
        let (body, check) = bytes.split_last_chunk::<8>()?;
        if Digester::new(0).digest(body).lo() != u64::from_le_bytes(*check) {
            return None;
        }
        let (number, mut rest) = body.strip_prefix(&MAGIC)?.split_first_chunk::<8>()?;
        let mut blobs = Vec::new();
        while let Some((length, after)) = rest.split_first_chunk::<8>() {
            let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
            let (blob, after) = after.split_at_checked(length)?;
            blobs.push(blob.to_vec());
            rest = after;
        }
        rest.is_empty().then_some((u64::from_le_bytes(*number), blobs))
    }
}

/// What happened since the state was last written as a whole.
///
/// A record is its length and checksum (4 and 8 bytes, little endian) and its bytes. One that was cut off
/// by a crash ends the journal: nobody was told that it is safe.
pub(crate) struct Journal {
    file: File,
    buffer: Vec<u8>,
    records: u64,
    path: PathBuf,
}

impl Journal {
    fn path(folder: &Folder, number: u64) -> PathBuf {
        folder.file(&format!("journal-{number}"))
    }

    /// Begins an empty journal.
    pub(crate) fn begin(folder: &Folder, number: u64) -> io::Result<Self> {
        let path = Self::path(folder, number);
        let file = File::create(&path)?;
        folder.sync()?;
        Ok(Self { file, buffer: Vec::new(), records: 0, path })
    }

    /// Adds a record, which is safe after the next [`Journal::commit`].
    pub(crate) fn add(&mut self, record: &[u8]) {
        let Ok(length) = u32::try_from(record.len()) else { return };
        self.buffer.extend(length.to_le_bytes());
        self.buffer.extend(Digester::new(0).digest(record).lo().to_le_bytes());
        self.buffer.extend(record);
        self.records += 1;
    }

    /// Makes all records safe. Costs one write and one sync, nothing when there are no new ones.
    pub(crate) fn commit(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.file.write_all(&self.buffer)?;
        self.buffer.clear();
        self.file.sync_data()
    }

    /// Is there nothing in it?
    pub(crate) fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// The state was written: it is of no use any more.
    pub(crate) fn discard(self) -> io::Result<()> {
        fs::remove_file(self.path)
    }

    /// The records of a journal, as far as they are whole, and the bytes after them.
    pub(crate) fn read(folder: &Folder, number: u64) -> io::Result<(Vec<Vec<u8>>, usize)> {
        let bytes = match fs::read(Self::path(folder, number)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let (mut records, mut rest) = (Vec::new(), bytes.as_slice());
        while let Some((record, after)) = first(rest) {
            records.push(record.to_vec());
            rest = after;
        }
        Ok((records, rest.len()))
    }
}

fn first(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (check, rest) = rest.split_first_chunk::<8>()?;
    let (record, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let right = Digester::new(0).digest(record).lo() == u64::from_le_bytes(*check);
    right.then_some((record, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, Folder) {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path()).unwrap();
        (place, folder)
    }

    #[test]
    fn one_process_at_a_time() {
        let (place, folder) = folder();
        assert_eq!(Folder::open(place.path()).unwrap_err().kind(), io::ErrorKind::ResourceBusy);
        let id = folder.identity("id").unwrap();
        drop(folder);
        assert_eq!(Folder::open(place.path()).unwrap().identity("id").unwrap(), id);
    }

    #[test]
    fn a_journal_ends_where_it_is_damaged() {
        let (_place, folder) = folder();
        let mut journal = Journal::begin(&folder, 3).unwrap();
        journal.add(b"one");
        journal.add(b"");
        journal.add(b"three");
        journal.commit().unwrap();
        let bytes = fs::read(Journal::path(&folder, 3)).unwrap();
        assert_eq!(Journal::read(&folder, 4).unwrap(), (Vec::new(), 0));
        for cut in 0..=bytes.len() {
            fs::write(Journal::path(&folder, 3), &bytes[..cut]).unwrap();
            let (records, rest) = Journal::read(&folder, 3).unwrap();
            let whole = [15, 27, 44].iter().filter(|&&end| end <= cut).count();
            assert_eq!(records, [&b"one"[..], b"", b"three"][..whole], "{cut}");
            assert_eq!(cut - rest, [0, 15, 27, 44][whole]);
        }
        let mut wrong = bytes.clone();
        wrong[13] ^= 1;
        fs::write(Journal::path(&folder, 3), &wrong).unwrap();
        assert_eq!(Journal::read(&folder, 3).unwrap(), (Vec::new(), bytes.len()));
    }

    #[test]
    fn blobs_go_back_and_damage_is_seen() {
        let (_place, folder) = folder();
        assert_eq!(blobs::read(&folder, "state").unwrap(), None);
        let all = vec![b"first".to_vec(), Vec::new(), vec![7; 300]];
        blobs::write(&folder, "state", 9, &all).unwrap();
        assert_eq!(blobs::read(&folder, "state").unwrap(), Some((9, all)));
        let bytes = folder.read("state").unwrap().unwrap();
        for at in 0..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[at] ^= 0x10;
            folder.replace("state", &wrong).unwrap();
            assert!(blobs::read(&folder, "state").is_err(), "{at}");
        }
    }
}
