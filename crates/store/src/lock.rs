//! One process at a time.

use crate::{at, folder_of, is_same, sibling, target};
use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// An exclusive lock on a file, held until it is dropped.
///
/// # Guarantee
/// While it is held, no other [`Lock`] on the same file can be taken, by this process or another, under whatever
/// symbolic link. The system releases it when the process ends in any way, so a lock file that a crash left behind
/// locks nothing. Hard links are different files to it.
///
/// # Example
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let state = folder.path().join("state");
/// use lately_store::{Lock, LockError};
/// let held = Lock::take(&state)?;
/// assert!(matches!(Lock::take(&state), Err(LockError::InUse(_))));
/// drop(held);
/// Lock::take(&state)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Why a lock cannot be taken.
#[derive(Debug)]
#[non_exhaustive]
pub enum LockError {
    /// What is to be locked is a folder.
    Folder(PathBuf),
    /// Another process holds it.
    InUse(PathBuf),
    /// The lock file cannot be made or locked. The error names it.
    Io(io::Error),
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => {
                write!(f, "state {} is a folder; name a file", path.display())
            }
            Self::InUse(path) => write!(
                f,
                "state {} is in use by another lately; wait until it ends, or name another file",
                path.display()
            ),
            Self::Io(error) => write!(f, "cannot lock {error}"),
        }
    }
}

impl std::error::Error for LockError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Folder(_) | Self::InUse(_) => None,
        }
    }
}

impl Lock {
    /// Locks a file, which need not exist, through `FILE.lock` in the folder of the file that `path` leads to.
    ///
    /// # Errors
    /// [`LockError`]. It does not wait.
    pub fn take(path: &Path) -> Result<Self, LockError> {
        if path.is_dir() {
            return Err(LockError::Folder(path.into()));
        }
        Self::take_file(&Self::path(path).map_err(LockError::Io)?, path)
    }

    /// Locks a folder, which must exist, through the file `lock` in it.
    ///
    /// # Errors
    /// [`LockError`]. It does not wait.
    pub fn take_folder(path: &Path) -> Result<Self, LockError> {
        Self::take_file(&path.join("lock"), path)
    }

    /// The lock file of a file.
    ///
    /// # Errors
    /// What the file system says, or that symbolic links form a loop.
    pub fn path(path: &Path) -> io::Result<PathBuf> {
        Ok(sibling(&target(path)?, ".lock"))
    }

    fn take_file(name: &Path, locked: &Path) -> Result<Self, LockError> {
        let file = open(name).map_err(at(name)).map_err(LockError::Io)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(LockError::InUse(locked.into())),
            Err(TryLockError::Error(error)) => Err(LockError::Io(at(name)(error))),
        }
    }
}

/// Opens a lock file, or makes it; never through a symbolic link, behind which it would make a file elsewhere.
fn open(name: &Path) -> io::Result<File> {
    let found = match fs::symlink_metadata(name) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            match File::options().write(true).create_new(true).open(name) {
                // Another process made it at the same moment.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    fs::symlink_metadata(name)?
                }
                made => return made,
            }
        }
        found => found?,
    };
    let foreign = || {
        let what = format!("not a lock file; remove it from {}", folder_of(name).display());
        io::Error::new(ErrorKind::AlreadyExists, what)
    };
    if !found.is_file() {
        return Err(foreign());
    }
    let file = match File::options().write(true).open(name) {
        // Of another user; to read it is enough for a lock on most file systems.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => File::open(name)?,
        opened => opened?,
    };
    if is_same(&found, &file.metadata()?) { Ok(file) } else { Err(foreign()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let held = Lock::take(&state).unwrap();
        let error = Lock::take(&state).unwrap_err();
        assert!(matches!(error, LockError::InUse(_)));
        assert!(error.to_string().contains(state.to_str().unwrap()), "{error}");
        Lock::take(&folder.path().join("other")).unwrap();
        drop(held);
        // What is left behind locks nothing.
        assert!(folder.path().join("state.lock").is_file());
        Lock::take(&state).unwrap();
        assert!(matches!(Lock::take(folder.path()), Err(LockError::Folder(_))));
        let held = Lock::take_folder(folder.path()).unwrap();
        assert!(matches!(Lock::take_folder(folder.path()), Err(LockError::InUse(_))));
        drop(held);
        Lock::take_folder(folder.path()).unwrap();
        let nowhere = Lock::take(&folder.path().join("no/such/state")).unwrap_err();
        assert!(nowhere.to_string().contains("no/such/state.lock: "), "{nowhere}");
    }

    /// Hardening case 6: two runs on two names of one state, each of which overwrote what the other remembered.
    #[cfg(unix)]
    #[test]
    fn two_names_of_one_file_are_one_file() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("there")).unwrap();
        // Through a link to a link, before the file exists and after.
        symlink("there/link", path("s")).unwrap();
        symlink("state", path("there/link")).unwrap();
        for _ in 0..2 {
            let held = Lock::take(&path("there/state")).unwrap();
            for name in ["s", "there/link"] {
                let error = Lock::take(&path(name)).unwrap_err();
                assert!(matches!(error, LockError::InUse(_)), "{name}: {error}");
                assert_eq!(Lock::path(&path(name)).unwrap(), path("there/state.lock"));
            }
            drop(held);
            fs::write(path("there/state"), "").unwrap();
        }
        symlink("loop", path("loop")).unwrap();
        assert!(Lock::take(&path("loop")).unwrap_err().to_string().contains("symbolic links"));
    }

    #[cfg(unix)]
    #[test]
    fn a_lock_file_is_not_made_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::os::unix::fs::symlink(path("victim"), path("state.lock")).unwrap();
        let error = Lock::take(&path("state")).unwrap_err();
        assert!(error.to_string().contains("state.lock: not a lock file"), "{error}");
        assert!(!path("victim").exists());
    }
}
