//! The queue of records for a connection whose thread runs tasks.

use crate::queue::Progress;
use std::io;
use std::sync::Arc;
use tokio::sync::mpsc::{Sender, UnboundedReceiver, channel};

/// Records that wait for room on the connection.
const WAITING: usize = 1024;

/// Records for a connection `C`, as messages `T` that it sends.
pub(crate) struct Outbox<T, C> {
    sent: u64,
    progress: Arc<Progress>,
    // Before the connection, which ends when nothing more can come.
    messages: Sender<T>,
    _connection: C,
}

impl<T, C> Outbox<T, C> {
    /// `open` makes the connection, given what it is to send and where it tells how far it is.
    pub(crate) fn open<E>(
        open: impl FnOnce(tokio::sync::mpsc::Receiver<T>, Arc<Progress>) -> Result<C, E>,
    ) -> Result<Self, E> {
        let progress = Arc::<Progress>::default();
        let (messages, to_send) = channel(WAITING);
        let connection = open(to_send, Arc::clone(&progress))?;
        Ok(Self { sent: 0, progress, messages, _connection: connection })
    }

    /// How many were sent.
    #[cfg(feature = "nats")]
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// As [`Progress::check`].
    pub(crate) fn check(&self, length: usize, record: usize, topic: &str) -> io::Result<()> {
        self.progress.check(length, record, topic)
    }

    /// Sends a message, when there is room for it.
    pub(crate) fn send(&mut self, message: T) -> io::Result<()> {
        self.messages.blocking_send(message).map_err(|_| self.progress.failure())?;
        self.sent += 1;
        Ok(())
    }

    /// Waits until all that was sent is confirmed.
    pub(crate) fn confirm(&self) -> io::Result<()> {
        self.progress.wait(self.sent)
    }
}

/// The last of the messages that are dealt with by now, waiting for the first; `None` when nobody tells any more.
pub(crate) async fn last_told(told: &mut UnboundedReceiver<u64>) -> Option<u64> {
    let mut token = told.recv().await?;
    while let Ok(later) = told.try_recv() {
        token = later;
    }
    Some(token)
}
