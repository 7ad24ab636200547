//! Files that a crash at any moment leaves whole.
//!
//! | type | what it does |
//! |---|---|
//! | [`Replacement`] | replaces a file atomically: after a crash there is the old file or the new one |
//! | [`Lock`] | keeps a second process from using the same file |
//!
//! Both follow symbolic links in the name they are given, so that two names of one file mean that file. Neither
//! follows a symbolic link in the place of the files they make next to it (`FILE.new`, `FILE.lock`).
//!
//! Depends on the standard library only.

mod lock;
mod replace;

pub use lock::{Lock, LockError};
pub use replace::{Replacement, replace, sync_folder};

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Links that are followed at most, as in Linux.
const MAX_LINKS: usize = 40;

/// The file that a name leads to, through all symbolic links; it need not exist.
///
/// # Errors
/// What the file system says, or that the links form a loop.
fn target(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_symlink() => {
                let to = fs::read_link(&path).map_err(at(&path))?;
                path = folder_of(&path).join(to);
            }
            // Whatever else is wrong shows itself when the file is made.
            _ => return Ok(path),
        }
    }
    let message = format!("{}: too many symbolic links, or a loop of them", path.display());
    Err(io::Error::other(message))
}

/// A file in the folder of this one: its name and an ending.
fn sibling(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(ending);
    path.with_file_name(name)
}

/// The folder that a file is in.
fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Names the file that an error is about.
fn at(path: &Path) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Whether two descriptions are of one and the same file.
#[cfg(unix)]
fn is_same(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(not(unix))]
fn is_same(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    one.is_file() && other.is_file()
}

/// Whether a file has one name only. A second one means that somebody else uses it.
#[cfg(unix)]
fn has_one_name(file: &fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(file) == 1
}

#[cfg(not(unix))]
fn has_one_name(_: &fs::Metadata) -> bool {
    true
}
