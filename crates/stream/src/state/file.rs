//! When a state is saved, and how: the bytes are written by the thread that judges, which the page
//! cache of the system makes quick, and what waits for the disk is left to another thread.

use super::StateError;
use crate::write::output::{SinkError, Unsynced};
use lately_store::Replacement;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Bytes gathered before they are written.
const BUFFER: usize = 256 * 1024;

/// Saves what `write` writes in a file that replaces the one that is there, and returns when it is on
/// disk.
///
/// # Errors
/// [`StateError::Io`]; the old file then still stands.
pub fn save(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), StateError> {
    let saved = begin(path, write).and_then(Replacement::commit);
    saved.map_err(|error| StateError::Io(path.into(), error))
}

/// Writes the new contents next to the file.
fn begin(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<Replacement> {
    let mut out = BufWriter::with_capacity(BUFFER, Replacement::begin(path)?);
    write(&mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)
}

/// The file of a state that changes while a stream runs.
///
/// # Guarantee
/// - Nothing is written if nothing has changed since the last save, and the file is still there.
/// - At most one save is in flight: while the disk is slow, changes gather.
/// - Outputs are synced before the state that remembers their records takes the place of the old one.
/// - Whenever the process or the machine stops, the file is the old state or the new one.
///
/// # Cost
/// [`StateFile::begin`] returns when the bytes are handed to the system. A stream pauses for that long,
/// and not for the disk: 1.6 s of processor time for a filter of 1 GiB (half of it the system's), as
/// measured on two cores. It takes buffers of less than 1 MiB.
#[derive(Debug)]
pub struct StateFile {
    path: PathBuf,
    every: Duration,
    /// Which changes the file holds; `None` if it was not written in this run, nor read.
    saved: Option<u64>,
    /// When the last save began.
    began: Instant,
    in_flight: Option<(u64, JoinHandle<Result<(), SaveError>>)>,
}

/// Why a state was not saved.
#[derive(Debug)]
pub enum SaveError {
    /// An output cannot be synced, so nothing of what it did not write may be remembered.
    Output(SinkError),
    /// The state itself cannot be written.
    State(StateError),
}

impl StateFile {
    /// A state in this file, saved this often. `resumed` says that it was read from there, and at which
    /// [`changes`](crate::judge::Decide::changes).
    pub fn new(path: PathBuf, every: Duration, resumed: Option<u64>) -> Self {
        Self { path, every, saved: resumed, began: Instant::now(), in_flight: None }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Is it time to save?
    pub fn is_due(&self) -> bool {
        self.began.elapsed() >= self.every
    }

    /// Does the file lack something: was it never written, or has anything changed since?
    pub fn is_stale(&self, changes: u64) -> bool {
        self.saved != Some(changes) || !self.path.exists()
    }

    /// There is nothing to save: it is asked again after the usual time.
    pub fn skip(&mut self) {
        self.began = Instant::now();
    }

    /// Is a save in flight that [`StateFile::settle`] would wait for?
    pub fn is_busy(&self) -> bool {
        self.in_flight.as_ref().is_some_and(|(_, thread)| !thread.is_finished())
    }

    /// Writes the state of this moment, which is that of `changes`, and leaves the rest to another thread:
    /// to sync the outputs, then the state, and put it in the place of the old one. One that is still
    /// in flight is waited for, and its outcome returned; that of this one comes from
    /// [`StateFile::settle`].
    ///
    /// # Errors
    /// [`SaveError`]; the old state then still stands.
    pub fn begin(
        &mut self,
        changes: u64,
        outputs: Vec<Unsynced>,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), SaveError> {
        self.settle()?;
        self.began = Instant::now();
        let failed = |path: &Path, error| SaveError::State(StateError::Io(path.into(), error));
        let new = begin(&self.path, write).map_err(|error| failed(&self.path, error))?;
        let path = self.path.clone();
        let commit = move || {
            outputs.iter().try_for_each(Unsynced::sync).map_err(SaveError::Output)?;
            new.commit().map_err(|error| failed(&path, error))
        };
        let thread = thread::Builder::new().name("save".into()).spawn(commit);
        let thread = thread.map_err(|error| failed(&self.path, error))?;
        self.in_flight = Some((changes, thread));
        Ok(())
    }

    /// Waits for the save in flight, if there is one: it is the old state or the new one, and safe.
    ///
    /// # Errors
    /// Those of the save.
    pub fn settle(&mut self) -> Result<(), SaveError> {
        let Some((changes, thread)) = self.in_flight.take() else { return Ok(()) };
        let lost = |_| {
            let error = io::Error::other("the thread that saves has failed");
            Err(SaveError::State(StateError::Io(self.path.clone(), error)))
        };
        thread.join().unwrap_or_else(lost)?;
        self.saved = Some(changes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("lately-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn case_s5_a_state_that_cannot_be_written_says_so() {
        let path = Path::new("/nonexistent-folder/state");
        let error = save(path, |out| out.write_all(b"state")).unwrap_err();
        assert!(error.to_string().contains("/nonexistent-folder/state"), "{error}");
        let mut state = StateFile::new(path.into(), Duration::ZERO, None);
        let begun = state.begin(1, Vec::new(), |out| out.write_all(b"state"));
        assert!(matches!(begun, Err(SaveError::State(StateError::Io(..)))), "{begun:?}");
        assert!(state.is_stale(1) && !state.is_busy());
    }

    #[test]
    fn what_has_not_changed_is_not_stale() {
        let folder = folder("stale");
        let path = folder.join("state");
        let mut state = StateFile::new(path.clone(), Duration::ZERO, None);
        assert!(state.is_stale(0), "the first save makes the file");
        state.begin(0, Vec::new(), |out| out.write_all(b"one")).unwrap();
        state.settle().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one");
        assert!(!state.is_stale(0) && state.is_stale(1));
        // One that fails leaves everything as it was.
        let failed = state.begin(1, Vec::new(), |out| {
            out.write_all(b"tw")?;
            Err(io::Error::other("a full disk"))
        });
        assert!(failed.is_err() && state.is_stale(1));
        assert_eq!(fs::read(&path).unwrap(), b"one");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_file(&path).unwrap();
        assert!(state.is_stale(0), "a file that was taken away is made again");
        fs::remove_dir_all(folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn an_output_that_cannot_be_synced_leaves_the_old_state() {
        let folder = folder("unsynced");
        let path = folder.join("state");
        save(&path, |out| out.write_all(b"old")).unwrap();
        let mut state = StateFile::new(path.clone(), Duration::ZERO, None);
        // A pipe stands for a file on a disk that fails: neither can be synced.
        let (_reader, writer) = io::pipe().unwrap();
        let broken = Unsynced::broken(std::os::fd::OwnedFd::from(writer).into());
        state.begin(1, vec![broken], |out| out.write_all(b"new")).unwrap();
        assert!(matches!(state.settle(), Err(SaveError::Output(_))));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert!(state.is_stale(1));
        fs::remove_dir_all(folder).unwrap();
    }
}
