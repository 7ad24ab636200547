//! How far a broker has confirmed what was sent to it, for the thread that waits for that.

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// How many records a broker has confirmed, and what it refuses.
#[derive(Default)]
pub(crate) struct Progress {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    confirmed: u64,
    /// The longest message that the broker takes, if it says.
    longest: Option<usize>,
    failed: Option<String>,
}

impl Progress {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The broker takes no longer messages.
    pub(crate) fn limit(&self, longest: Option<usize>) {
        self.lock().longest = longest;
    }

    /// It has confirmed so many more.
    pub(crate) fn confirm(&self, more: u64) {
        self.lock().confirmed += more;
        self.changed.notify_all();
    }

    /// Nothing more will be confirmed. The first reason counts.
    pub(crate) fn fail(&self, why: &str) {
        self.lock().failed.get_or_insert_with(|| why.into());
        self.changed.notify_all();
    }

    /// Can a message of this length, for a record of `record` bytes, be sent there?
    ///
    /// # Errors
    /// It is too long for the broker, or nothing can be sent any more.
    pub(crate) fn check(&self, length: usize, record: usize, topic: &str) -> io::Result<()> {
        let state = self.lock();
        if let Some(why) = &state.failed {
            return Err(io::Error::other(why.clone()));
        }
        match state.longest.filter(|longest| length > *longest) {
            None => Ok(()),
            Some(longest) => Err(io::Error::other(format!(
                "a record of {record} bytes for {topic} makes a message of {length}, and the broker takes {longest} at most; let it take more, or limit records with --max-line, beyond which they are invalid"
            ))),
        }
    }

    /// Why nothing can be sent any more.
    pub(crate) fn failure(&self) -> io::Error {
        let failed = self.lock().failed.clone();
        io::Error::other(failed.unwrap_or_else(|| "the connection has ended".into()))
    }

    /// Waits until so many are confirmed.
    ///
    /// # Errors
    /// They never will be.
    pub(crate) fn wait(&self, sent: u64) -> io::Result<()> {
        let mut state = self.lock();
        loop {
            if let Some(why) = &state.failed {
                return Err(io::Error::other(why.clone()));
            }
            if state.confirmed >= sent {
                return Ok(());
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
