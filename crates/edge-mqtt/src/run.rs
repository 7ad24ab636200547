//! What all runtimes share: how they are stopped, and why they end.

use std::fmt;
use std::io;
use std::time::Duration;
use tokio::sync::watch;

/// How long a connection may take to say what it still has to say.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);

/// Asks runtimes to end.
#[derive(Debug)]
pub struct Stopper(watch::Sender<bool>);

/// Tells a runtime when to end.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>);

/// A pair of them.
pub fn stop() -> (Stopper, Stop) {
    let (stopper, stop) = watch::channel(false);
    (Stopper(stopper), Stop(stop))
}

impl Stopper {
    /// All who hold the other end are to end in good order. So they are when this is dropped.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Stop {
    /// Returns when the run is to end.
    pub async fn asked(&mut self) {
        // An error says that nobody can ask any more.
        let _ = self.0.wait_for(|&stop| stop).await;
    }
}

/// Why a runtime ends before it is asked to.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// The broker will not have it.
    Refused(String),
    /// State or readings cannot be read or written. What was not confirmed comes again after a restart.
    Storage(io::Error),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(reason) => f.write_str(reason),
            Self::Storage(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RunError {}

impl From<io::Error> for RunError {
    fn from(error: io::Error) -> Self {
        Self::Storage(error)
    }
}
