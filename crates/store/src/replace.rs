//! A file is replaced as a whole.

use crate::{at, folder_of, has_one_name, is_same, sibling, target};
use std::fs::{self, File, Metadata, TryLockError};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Times that the temporary file is made again, when other processes make and remove it at the same moment.
const TRIES: usize = 8;

/// The new contents of a file, which take its place on [`commit`](Replacement::commit).
///
/// # Guarantee
/// Whenever the process or the machine stops, the file holds the old contents or the new ones, as a whole. If it is
/// dropped without a commit, the old contents stay.
///
/// - A symbolic link stays, and the file it leads to is replaced.
/// - The file keeps its permissions, and its owner and group as far as the process may set them; if it may not set
///   the group, the new group gets no more than everybody has. Access control lists and hard links are not kept.
/// - The new contents are written to `FILE.new` next to the file, which is made afresh and readable for its owner
///   alone until it has the permissions of the file that it replaces. What a crashed process left there is
///   removed: a file with one name that no process is writing. Anything else of that name, such as a symbolic link,
///   stays as it is and is an error.
///
/// # Cost
/// Writes are buffered (8 KiB). A commit costs an fsync of the file and one of its folder.
///
/// # Example
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("state");
/// use lately_store::Replacement;
/// use std::io::Write;
/// let mut new = Replacement::begin(&path)?;
/// new.write_all(b"first part, ")?;
/// new.write_all(b"second part")?;
/// assert!(!path.exists());
/// new.commit()?;
/// assert_eq!(std::fs::read(&path)?, b"first part, second part");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Replacement {
    target: PathBuf,
    temporary: PathBuf,
    file: BufWriter<File>,
    /// The temporary file is still there, and ours.
    is_pending: bool,
}

impl Replacement {
    /// Begins to replace the file that `path` leads to, or to make it.
    ///
    /// # Errors
    /// What the file system says, with the name of the file that it is about;
    /// [`ErrorKind::ResourceBusy`] if another process is replacing it.
    pub fn begin(path: &Path) -> io::Result<Self> {
        let target = target(path)?;
        let old = match fs::symlink_metadata(&target) {
            Ok(old) if !old.is_file() => {
                let what = format!("{}: not a regular file, so not replaced", target.display());
                return Err(io::Error::new(ErrorKind::InvalidInput, what));
            }
            old => old.is_ok(),
        };
        let temporary = sibling(&target, ".new");
        let file = make(&temporary, old).map_err(at(&temporary))?;
        Ok(Self { target, temporary, file: BufWriter::new(file), is_pending: true })
    }

    /// Where the new contents of a file are written until they take its place.
    ///
    /// # Errors
    /// What the file system says, or that symbolic links form a loop.
    pub fn path(path: &Path) -> io::Result<PathBuf> {
        Ok(sibling(&target(path)?, ".new"))
    }

    /// Puts the new contents in the place of the old ones, and returns when they are on disk.
    ///
    /// # Errors
    /// What the file system says. The old contents then stay, unless the error is of the folder: it could not be
    /// synced, and which of both is there after a power cut is open.
    pub fn commit(mut self) -> io::Result<()> {
        let replaced = self.replace();
        replaced.map_err(at(&self.temporary))?;
        self.is_pending = false;
        sync_folder(folder_of(&self.target))
    }

    fn replace(&mut self) -> io::Result<()> {
        self.file.flush()?;
        let file = self.file.get_ref();
        match fs::symlink_metadata(&self.target) {
            Ok(old) => keep(file, &old)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        file.sync_all()?;
        fs::rename(&self.temporary, &self.target)
    }
}

impl Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).map_err(at(&self.temporary))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush().map_err(at(&self.temporary))
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if self.is_pending {
            // What is half written is of no use to anybody.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Replaces a file by these bytes; see [`Replacement`].
///
/// # Errors
/// See [`Replacement::begin`] and [`Replacement::commit`].
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut new = Replacement::begin(path)?;
    new.write_all(bytes)?;
    new.commit()
}

/// Makes the names of the files in a folder durable: a file that was made or renamed, and synced itself, may
/// otherwise be gone after a power cut. Does nothing where folders cannot be opened or synced: on Windows, on some
/// network file systems, and in a folder whose names may not be listed.
///
/// # Errors
/// What the file system says of the disk.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(not(unix)) {
        return Ok(());
    }
    match File::open(path).and_then(|folder| folder.sync_all()) {
        Err(error) if cannot_sync(error.kind()) => Ok(()),
        synced => synced.map_err(at(path)),
    }
}

fn cannot_sync(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::InvalidInput | ErrorKind::Unsupported | ErrorKind::PermissionDenied)
}

/// Makes the temporary file, locked so that others know that it is being written. `is_private`: it replaces a file,
/// whose permissions it gets later.
fn make(name: &Path, is_private: bool) -> io::Result<File> {
    for _ in 0..TRIES {
        match create(name, is_private) {
            Ok(file) => {
                let is_locked = lock(&file)?;
                // Somebody else may have taken it for one that was left behind before it was locked.
                let there = fs::symlink_metadata(name);
                let is_there = there
                    .is_ok_and(|there| file.metadata().is_ok_and(|made| is_same(&there, &made)));
                if is_locked && is_there {
                    return Ok(file);
                }
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => remove_stale(name)?,
            Err(error) => return Err(error),
        }
    }
    Err(busy())
}

/// Never opens what is there, and so never follows a link.
fn create(name: &Path, is_private: bool) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if is_private {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    #[cfg(not(unix))]
    let _ = is_private;
    options.open(name)
}

/// Removes what a process that crashed left behind.
fn remove_stale(name: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(name) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    if !found.is_file() || !has_one_name(&found) {
        let what = "not left by this program, and in the way; move or remove it";
        return Err(io::Error::new(ErrorKind::AlreadyExists, what));
    }
    // One that cannot be opened cannot be asked for its lock: it is another user's.
    let file = File::open(name)?;
    if !lock(&file)? {
        return Err(busy());
    }
    // While it is locked nobody else removes it, so this is still the one that was looked at.
    if fs::symlink_metadata(name).is_ok_and(|there| {
        is_same(&there, &found) && file.metadata().is_ok_and(|opened| is_same(&there, &opened))
    }) {
        fs::remove_file(name)?;
    }
    Ok(())
}

/// Whether nobody else holds the lock on it, which is taken; `true` where the file system knows no locks.
fn lock(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn busy() -> io::Error {
    io::Error::new(ErrorKind::ResourceBusy, "another process is replacing this file")
}

/// Gives the file the owner and permissions of the one it replaces.
#[cfg(unix)]
fn keep(file: &File, old: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    let mut mode = old.mode() & 0o777;
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid())
        && fchown(file, Some(old.uid()), Some(old.gid())).is_err()
        && fchown(file, None, Some(old.gid())).is_err()
    {
        // Members of another group get what everybody has.
        mode = (mode & 0o707) | (mode & 0o007) << 3;
    }
    file.set_permissions(fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn keep(file: &File, old: &Metadata) -> io::Result<()> {
    file.set_permissions(old.permissions())
}
