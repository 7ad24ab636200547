//! What a run remembers across restarts: `--state FILE`.
//!
//! A file is replaced as a whole, so whenever the program is killed there is either the old state or the
//! new one. Layout: `docs/format.md`.

mod codec;
pub mod dedup;
pub mod file;
pub mod index;
pub mod visits;

use crate::session::{Difference, Identity};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a state cannot be loaded or saved.
#[derive(Debug)]
pub enum StateError {
    /// The file system says no.
    Io(PathBuf, io::Error),
    /// The bytes are no state of this program, or damaged.
    Damaged(PathBuf, String),
    /// A state of other settings, and which.
    Settings(PathBuf, Vec<Difference>),
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(path, error) => {
                // What replaces files names the one it is about.
                let (path, error) = (path.display().to_string(), error.to_string());
                match error.strip_prefix(&path) {
                    Some(rest) => write!(f, "state {path}{rest}"),
                    None => write!(f, "state {path}: {error}"),
                }
            }
            Self::Damaged(path, reason) => write!(
                f,
                "state {}: {reason}; move the file away to start without what it remembers",
                path.display()
            ),
            Self::Settings(path, differences) => {
                writeln!(f, "state {} was made with other settings", path.display())?;
                differences.iter().try_for_each(|difference| writeln!(f, "  {difference}"))?;
                f.write_str("use the same settings, or another state file")
            }
        }
    }
}

impl std::error::Error for StateError {}

/// How a saved identity differs from the one that is asked for. One that was saved as text is compared
/// as text, which was never ambiguous to the program that wrote it.
fn differences(saved: &Identity, text: Option<&str>, asked: &Identity) -> Vec<Difference> {
    if text.is_some_and(|text| text == asked.to_string()) {
        return Vec::new();
    }
    saved.differences(asked)
}

/// Which kind of file a state is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Of `lately dedup`.
    Dedup,
    /// Of `lately index`.
    Index,
    /// Of `lately visits`.
    Visits,
}

impl Kind {
    /// The kind of the file in `path`, by its first bytes; `None` if it is neither.
    ///
    /// # Errors
    /// [`StateError::Io`] for a file that cannot be read.
    pub fn of(path: &Path) -> Result<Option<Self>, StateError> {
        use std::io::Read;
        let mut magic = Vec::new();
        let file = std::fs::File::open(path).map_err(|error| StateError::Io(path.into(), error))?;
        let read = file.take(8).read_to_end(&mut magic);
        read.map_err(|error| StateError::Io(path.into(), error))?;
        Ok(if magic == dedup::MAGIC {
            Some(Self::Dedup)
        } else if magic == index::MAGIC {
            Some(Self::Index)
        } else if magic == visits::MAGIC {
            Some(Self::Visits)
        } else {
            None
        })
    }
}
