//! The state file of a run, for that run alone.

use crate::Failure;
use crate::place::Place;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

/// Holds the state for this run; dropped at its end.
pub struct Lock {
    _file: Option<File>,
}

/// The files of a state, as the flag `--state` leads to them.
pub fn places(path: &Path) -> [Place; 3] {
    [
        Place::output("--state", path),
        Place::output("the new file of --state,", &beside(path, ".new")),
        Place::output("the lock file of --state,", &beside(path, ".lock")),
    ]
}

/// A file beside the state: its name and an ending.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(ending);
    path.with_file_name(name)
}

impl Lock {
    /// Takes the state for this run alone: of two that save to one file, each would overwrite what
    /// the other remembers. The system lets go of the lock when the run ends in any way, so a lock
    /// file that was left behind means nothing.
    pub fn take(path: &Path) -> Result<Self, Failure> {
        if path.is_dir() {
            let message = format!("state {} is a folder; name a file", path.display());
            return Err(Failure::Trouble(message));
        }
        let name = beside(path, ".lock");
        let opened = File::options().write(true).create(true).truncate(false).open(&name);
        let error = match opened.map(|file| (file.try_lock(), file)) {
            Ok((Ok(()), file)) => return Ok(Self { _file: Some(file) }),
            Ok((Err(TryLockError::WouldBlock), _)) => {
                return Err(Failure::Trouble(format!(
                    "state {} is in use by another lately; wait for its end, or name another file",
                    path.display()
                )));
            }
            Ok((Err(TryLockError::Error(error)), _)) | Err(error) => error,
        };
        // A state that cannot be saved does not end the stream, but whoever started it is still
        // there to be told.
        eprintln!(
            "lately: cannot lock {}: {error}; the state may not be saved, the stream goes on",
            name.display()
        );
        Ok(Self { _file: None })
    }
}
