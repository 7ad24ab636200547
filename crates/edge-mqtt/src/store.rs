//! State on disk that a crash at any moment leaves whole.

use lately::Digester;
use lately_store::{Lock, LockError, sync_folder};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A folder that one process at a time uses.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    _lock: Lock,
}

impl Folder {
    /// Opens a folder, making it if need be, for this process alone.
    ///
    /// # Errors
    /// What the file system says, or that another process uses it.
    pub fn open(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path).map_err(at(path))?;
        match Lock::take_folder(path) {
            Ok(lock) => Ok(Self { path: path.into(), _lock: lock }),
            Err(LockError::Io(error)) => Err(error),
            Err(_) => {
                let path = path.display();
                let busy =
                    format!("{path}: another process uses this state; give each its own --state");
                Err(io::Error::new(io::ErrorKind::ResourceBusy, busy))
            }
        }
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The numbers of the journals that are in it.
    ///
    /// # Errors
    /// What the file system says.
    pub(crate) fn journals(&self) -> io::Result<Vec<u64>> {
        let entries = fs::read_dir(&self.path).map_err(at(&self.path))?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        Ok(names.filter_map(|name| name.strip_prefix("journal-")?.parse().ok()).collect())
    }

    /// The bytes of a file; `None` when it is not there.
    ///
    /// # Errors
    /// What the file system says.
    pub fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let path = self.file(name);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(at(&path)(error)),
        }
    }

    /// Replaces a file as a whole: after a crash there is the old one or the new one.
    ///
    /// # Errors
    /// See [`lately_store::replace`].
    pub fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        lately_store::replace(&self.file(name), bytes)
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

/// Says of which file or folder an error is.
pub fn at(path: &Path) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn damaged(path: &Path) -> io::Error {
    let what = format!("{}: damaged; move it away to begin without it", path.display());
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Blobs in one file, with a number, in the envelope of [`lately::codec`].
pub(crate) mod blobs {
    use super::{Digester, Folder, at, damaged};
    use lately::SnapshotError;
    use lately::codec::{self, Format};
    use lately_store::Replacement;
    use std::io::{self, Write};

    const FORMAT: Format = Format::new(*b"\x89HOSTS\r\n", 3);
    /// How files of version 2 began, which had no envelope. They are still read.
    pub(super) const VERSION_2: [u8; 8] = *b"LHOSTS2\n";

    /// Replaces the file; the blobs are not copied.
    pub(crate) fn write(
        folder: &Folder,
        name: &str,
        number: u64,
        blobs: &[Vec<u8>],
    ) -> io::Result<()> {
        let mut file = Replacement::begin(&folder.file(name))?;
        codec::write(
            FORMAT,
            |bytes| file.write_all(bytes),
            |out| {
                out.u64(number);
                blobs.iter().for_each(|blob| out.block(blob));
            },
        )?;
        file.commit()
    }

    /// The number and the blobs; `None` when there is no such file.
    pub(crate) fn read(folder: &Folder, name: &str) -> io::Result<Option<(u64, Vec<Vec<u8>>)>> {
        let Some(bytes) = folder.read(name)? else { return Ok(None) };
        let path = folder.file(name);
        if !FORMAT.begins(&bytes) {
            return version_2(&bytes).map(Some).ok_or_else(|| damaged(&path));
        }
        let read = codec::from_slice(FORMAT, &bytes, |input| {
            let (number, mut blobs) = (input.u64()?, Vec::new());
            while input.left() > 0 {
                blobs.push(input.block()?);
            }
            Ok::<_, SnapshotError>((number, blobs))
        });
        match read {
            Ok(read) => Ok(Some(read)),
            Err(error @ SnapshotError::Version { .. }) => {
                Err(at(&path)(io::Error::new(io::ErrorKind::InvalidData, error)))
            }
            Err(_) => Err(damaged(&path)),
        }
    }

    fn version_2(bytes: &[u8]) -> Option<(u64, Vec<Vec<u8>>)> {
        let (body, check) = bytes.split_last_chunk::<8>()?;
        if Digester::new(0).digest(body).lo() != u64::from_le_bytes(*check) {
            return None;
        }
        let (number, mut rest) = body.strip_prefix(&VERSION_2)?.split_first_chunk::<8>()?;
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
/// `LJOURN2\n`, 8 random bytes and their checksum; then, for each [`Journal::commit`], those 8 bytes again, length and checksum of
/// what follows (4 and 8 bytes, little endian), and the records, each with its length (4 bytes).
///
/// A commit begins only when the one before is on disk. An incomplete commit at the end was therefore truncated by a
/// crash before it was acknowledged; one that others follow was damaged later.
pub(crate) struct Journal {
    file: File,
    mark: [u8; 8],
    /// Records of the next commit.
    buffer: Vec<u8>,
    /// Bytes in the file.
    length: u64,
    path: PathBuf,
}

/// What is in a journal.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Entries {
    pub(crate) records: Vec<Vec<u8>>,
    /// Bytes after them, of a commit that was cut off.
    pub(crate) cut_off: usize,
}

const JOURNAL: [u8; 8] = *b"LJOURN2\n";

impl Journal {
    fn path(folder: &Folder, number: u64) -> PathBuf {
        folder.file(&format!("journal-{number}"))
    }

    /// Begins an empty journal.
    pub(crate) fn begin(folder: &Folder, number: u64) -> io::Result<Self> {
        let path = Self::path(folder, number);
        let mark = fastrand::u64(..).to_le_bytes();
        let begin = || {
            // What a crash left before its state was written; never opened, as it may be a link.
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut file = File::create_new(&path)?;
            file.write_all(&[JOURNAL, mark, checksum(&mark)].concat())?;
            file.sync_all()?;
            Ok(file)
        };
        let file = begin().map_err(at(&path))?;
        sync_folder(&folder.path)?;
        Ok(Self { file, mark, buffer: Vec::new(), length: 24, path })
    }

    /// Adds a record, which is safe after the next [`Journal::commit`].
    pub(crate) fn add(&mut self, record: &[u8]) {
        let Ok(length) = u32::try_from(record.len()) else { return };
        self.buffer.extend(length.to_le_bytes());
        self.buffer.extend(record);
    }

    /// Makes all records safe. Costs one write and one sync, nothing when there are no new ones.
    pub(crate) fn commit(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let path = at(&self.path);
        let length = u32::try_from(self.buffer.len())
            .map_err(|_| path(io::Error::other("more at a time than a journal takes")))?;
        let mut commit = self.mark.to_vec();
        commit.extend(length.to_le_bytes());
        commit.extend(checksum(&self.buffer));
        commit.append(&mut self.buffer);
        self.file.write_all(&commit).map_err(&path)?;
        self.file.sync_data().map_err(&path)?;
        self.length += commit.len() as u64;
        Ok(())
    }

    /// Bytes on disk.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// The state was written: it is of no use any more.
    pub(crate) fn discard(self) -> io::Result<()> {
        fs::remove_file(&self.path).map_err(at(&self.path))
    }

    /// What is in a journal.
    ///
    /// # Errors
    /// What the file system says, or that something before the last commit is damaged: what follows was
    /// confirmed, and is neither to be used without what is missing nor to be thrown away unseen.
    pub(crate) fn read(folder: &Folder, number: u64) -> io::Result<Entries> {
        let path = Self::path(folder, number);
        let bytes = fs::read(&path).map_err(at(&path))?;
        let header = bytes.strip_prefix(&JOURNAL).and_then(<[u8]>::split_first_chunk::<8>);
        let header =
            header.and_then(|(mark, rest)| Some((mark, rest.strip_prefix(&checksum(mark))?)));
        let (mark, mut rest) = header.ok_or_else(|| damaged(&path))?;
        let mut records = Vec::new();
        while let Some((body, after)) = commit(rest, mark) {
            records.extend(split(body).ok_or_else(|| damaged(&path))?);
            rest = after;
        }
        let at = bytes.len() - rest.len();
        let mut starts = rest.windows(8).enumerate().skip(1).filter(|(_, found)| found == mark);
        let whole = |from: &[u8]| commit(from, mark).is_some();
        if starts.any(|(start, _)| rest.get(start..).is_some_and(whole)) {
            let what = format!(
                "{}: damaged at byte {at}, and what follows was confirmed. Restore the folder from a copy, or move it away to begin without; to give up what was confirmed after that byte, cut the file there: truncate -s {at} '{}'",
                path.display(),
                path.display()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        Ok(Entries { records, cut_off: rest.len() })
    }
}

/// The records of a commit that is whole, and what follows it.
fn commit<'a>(bytes: &'a [u8], mark: &[u8; 8]) -> Option<(&'a [u8], &'a [u8])> {
    let (length, rest) = bytes.strip_prefix(mark)?.split_first_chunk::<4>()?;
    let (check, rest) = rest.split_first_chunk::<8>()?;
    let (body, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    (checksum(body) == *check).then_some((body, rest))
}

fn checksum(bytes: &[u8]) -> [u8; 8] {
    Digester::new(0).digest(bytes).lo().to_le_bytes()
}

fn split(mut body: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut records = Vec::new();
    while !body.is_empty() {
        let (length, rest) = body.split_first_chunk::<4>()?;
        let (record, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        records.push(record.to_vec());
        body = rest;
    }
    Some(records)
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

    /// Three commits in a journal, and where each ends.
    fn written(folder: &Folder) -> (Vec<u8>, [usize; 4]) {
        let mut journal = Journal::begin(folder, 3).unwrap();
        let mut ends = [24; 4];
        for (at, records) in [&[&b"one"[..], b""][..], &[b"two"], &[b"three"]].iter().enumerate() {
            records.iter().for_each(|record| journal.add(record));
            journal.commit().unwrap();
            ends[at + 1] = journal.length() as usize;
        }
        (fs::read(Journal::path(folder, 3)).unwrap(), ends)
    }

    #[test]
    fn a_journal_ends_where_a_crash_cut_it_off() {
        let (_place, folder) = folder();
        let (bytes, ends) = written(&folder);
        assert_eq!(bytes.len(), ends[3]);
        assert_eq!(Journal::read(&folder, 4).unwrap_err().kind(), io::ErrorKind::NotFound);
        for cut in 24..=bytes.len() {
            fs::write(Journal::path(&folder, 3), &bytes[..cut]).unwrap();
            let Entries { records, cut_off } = Journal::read(&folder, 3).unwrap();
            let whole = ends.iter().filter(|&&end| end <= cut).count() - 1;
            assert_eq!(
                records,
                [&b"one"[..], b"", b"two", b"three"][..[0, 2, 3, 4][whole]],
                "{cut}"
            );
            assert_eq!(cut - cut_off, ends[whole]);
        }
    }

    #[test]
    fn what_follows_damage_in_a_journal_is_not_thrown_away() {
        let (_place, folder) = folder();
        let (bytes, ends) = written(&folder);
        for at in 0..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[at] ^= 1;
            fs::write(Journal::path(&folder, 3), &wrong).unwrap();
            let read = Journal::read(&folder, 3);
            if at < ends[0] {
                assert!(read.unwrap_err().to_string().contains("journal-3: damaged"));
            } else if at < ends[2] {
                let error = read.unwrap_err().to_string();
                let first = ends.iter().rev().find(|&&end| end <= at).unwrap();
                assert!(error.contains("journal-3"), "{error}");
                assert!(error.contains(&format!("damaged at byte {first},")), "{at}: {error}");
            } else {
                let Entries { records, cut_off } = read.unwrap();
                assert_eq!((records.len(), cut_off), (3, ends[3] - ends[2]));
            }
            assert_eq!(fs::read(Journal::path(&folder, 3)).unwrap(), wrong);
        }
    }

    #[test]
    fn errors_say_where() {
        let (place, folder) = folder();
        let path = place.path();
        let busy = Folder::open(path).unwrap_err().to_string();
        assert!(busy.contains(path.to_str().unwrap()) && busy.contains("--state"), "{busy}");
        // A file where a folder is needed, and the other way round.
        fs::write(path.join("file"), b"").unwrap();
        let within = Folder::open(&path.join("file/state")).unwrap_err().to_string();
        assert!(within.contains("file/state"), "{within}");
        fs::create_dir(path.join("hosts.new")).unwrap();
        let replaced = folder.replace("hosts", b"state").unwrap_err().to_string();
        assert!(replaced.contains("hosts.new"), "{replaced}");
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

    #[test]
    fn files_of_before_the_envelope_are_read() {
        let (_place, folder) = folder();
        let mut bytes = blobs::VERSION_2.to_vec();
        bytes.extend(9_u64.to_le_bytes());
        for blob in [&b"first"[..], b"", b"third"] {
            bytes.extend((blob.len() as u64).to_le_bytes());
            bytes.extend(blob);
        }
        bytes.extend(checksum(&bytes));
        folder.replace("state", &bytes).unwrap();
        let blobs = vec![b"first".to_vec(), Vec::new(), b"third".to_vec()];
        assert_eq!(blobs::read(&folder, "state").unwrap(), Some((9, blobs)));
    }
}
